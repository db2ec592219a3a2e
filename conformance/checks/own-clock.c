/* SPDX-License-Identifier: Apache-2.0 */
/* TIME, on a clock of the store's own, so in real time: a lease ends, a timer comes and is never
 * early, and the host's clock, which is an hour behind, has no effect.
 *
 * A busy machine may delay anything.  So nothing here fails for being late, except at a deadline
 * that is far away.  These checks judge what came before what, that nothing came too early, and the
 * time that the store itself reports.  Where a call has to come in time it is tried again with a
 * longer one. */
#include "conformance/checks/checks.h"

#include <time.h>

#define AN_HOUR INT64_C(3600000)

enum {
  SHORT_MS = 300,
  COMES_MS = 8000,      /* the longest time in which something that is due must come */
  WAITS_MS = 600000,    /* the time-out of a call that is woken before */
  LONGEST_MS = 20000,   /* of a lease that must be renewed in time */
  ROUNDING_MS = 3       /* clocks are read in whole milliseconds, and run a little differently */
};

static int64_t
real_ms(void)
{
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Expects that what was begun at `since` (or later) took at least so long. */
static void
expect_not_before(struct dk_check *t, int64_t since, int64_t ms, const char *what)
{
  int64_t took = real_ms() - since;

  expect(t, took >= ms - ROUNDING_MS, "%s comes after %lld ms at the earliest; it came after %lld",
         what, (long long)ms, (long long)took);
}

static struct dk_turn *
turn_that_comes(struct dk_check *t)
{
  return fetch_turn(t, .wait_ms = COMES_MS);
}

static struct dk_work_item *
work_that_comes(struct dk_check *t)
{
  return fetch_work(t, .wait_ms = COMES_MS);
}

static struct dk_turn *
turn_that_comes_for(struct dk_check *t, int64_t lock_ms)
{
  return fetch_turn(t, .wait_ms = COMES_MS, .lock_ms = lock_ms);
}

static struct dk_work_item *
work_that_comes_for(struct dk_check *t, int64_t lock_ms)
{
  return fetch_work(t, .wait_ms = COMES_MS, .lock_ms = lock_ms);
}

/* ---- leases ---------------------------------------------------------------------------------- */

/* TIME-4: a lease ends by the store's clock; then the turn or item is free, and the token dead. */
void
time_own_lease_ends(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst"));
  int64_t since = real_ms();
  struct dk_turn *turn = fetch_turn(t, .lock_ms = SHORT_MS);
  struct dk_turn *again = turn_that_comes(t);
  expect_not_before(t, since, SHORT_MS, "a turn whose lease has ended");
  expect_equal(t, again->messages[0].attempt, 2, "attempt of the message of a turn that was lost");
  expect_dead_turn(t, turn->head.lock_token);

  since = real_ms();
  struct dk_work_item *work = fetch_work(t, .lock_ms = SHORT_MS);
  struct dk_work_item *next = work_that_comes(t);
  expect_not_before(t, since, SHORT_MS, "a work item whose lease has ended");
  expect_equal(t, next->work.attempt, 2, "attempt of a work item that was lost");
  expect_dead_work(t, work->work.lock_token);
  must(t, ack_turn(t, again, .events = {{next_event(again)}}));
  must(t, ack_work(t, next->work.lock_token));
}

/* TOKEN-4: the token is dead even if no other holder took over. */
void
time_own_lease_ends_unseen(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t, .lock_ms = SHORT_MS);
  struct dk_work_item *work = fetch_work(t, .lock_ms = SHORT_MS);
  advance(t, SHORT_MS + ROUNDING_MS);
  expect_dead_turn(t, turn->head.lock_token);
  expect_dead_work(t, work->work.lock_token);
  must(t, ack_turn(t, turn_that_comes(t), .execution_id = 1));
  must(t, ack_work(t, work_that_comes(t)->work.lock_token));
}

/* The turn, renewed while its lease ran; if that came too late, again with a longer lease. */
static struct dk_turn *
turn_renewed_in_time(struct dk_check *t, int64_t renew_ms, int64_t *ret_lease_ms)
{
  for (int64_t lease = SHORT_MS;; lease *= 2) {
    int64_t since = real_ms();
    struct dk_turn *turn = fetch_turn(t, .lock_ms = lease, .wait_ms = COMES_MS);
    dk_status status = renew_turn(t, turn->head.lock_token, .ms = renew_ms);

    *ret_lease_ms = lease;
    if (status != DK_LOCK_LOST || real_ms() - since < lease - ROUNDING_MS || lease > LONGEST_MS) {
      expect_status(t, status, DK_OK);
      return turn;
    }
  }
}

static struct dk_work_item *
work_renewed_in_time(struct dk_check *t, int64_t renew_ms, int64_t *ret_lease_ms)
{
  for (int64_t lease = SHORT_MS;; lease *= 2) {
    int64_t since = real_ms();
    struct dk_work_item *work = fetch_work(t, .lock_ms = lease, .wait_ms = COMES_MS);
    dk_status status = renew_work(t, work->work.lock_token, .ms = renew_ms);

    *ret_lease_ms = lease;
    if (status != DK_LOCK_LOST || real_ms() - since < lease - ROUNDING_MS || lease > LONGEST_MS) {
      expect_status(t, status, DK_OK);
      return work;
    }
  }
}

/* TURN-9, WORK-6: a renewed lease holds beyond the end of the first, and ends at its own end. */
void
time_own_renew(struct dk_check *t)
{
  int64_t lease;

  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = turn_renewed_in_time(t, LEASE_MS, &lease);
  advance(t, lease + ROUNDING_MS);
  expect_no_turn(t);
  int64_t since = real_ms();
  must(t, renew_turn(t, turn->head.lock_token, .ms = SHORT_MS));
  turn_that_comes(t);
  expect_not_before(t, since, SHORT_MS, "a turn whose lease was shortened");

  struct dk_work_item *work = work_renewed_in_time(t, LEASE_MS, &lease);
  advance(t, lease + ROUNDING_MS);
  expect_no_work(t);
  since = real_ms();
  must(t, renew_work(t, work->work.lock_token, .ms = SHORT_MS));
  work_that_comes(t);
  expect_not_before(t, since, SHORT_MS, "a work item whose lease was shortened");
}

/* ---- timers ---------------------------------------------------------------------------------- */

/* Neither early by the real clock, nor by the store's clock when the store said that it was due. */
static struct dk_turn *
timer_that_comes(struct dk_check *t, int64_t since, const char *id)
{
  struct dk_turn *turn = turn_that_comes(t);

  expect_ids(t, turn, id);
  expect_not_before(t, since, SHORT_MS, id);
  expect(t, turn->head.now >= turn->messages[0].visible_at,
         "the message %s is not handed out before it is visible by the store's clock", id);
  return turn;
}

static struct dk_work_item *
item_that_comes(struct dk_check *t, int64_t since, const char *what)
{
  struct dk_work_item *work = work_that_comes(t);

  expect_not_before(t, since, SHORT_MS, what);
  expect(t, work->work.now >= work->item.visible_at,
         "%s is not handed out before it is visible by the store's clock", what);
  return work;
}

/* TIME-3: what has a delay comes by itself, and never early: messages, from whatever call. */
void
time_own_timer(struct dk_check *t)
{
  given_instance(t, "inst");
  int64_t since = real_ms();
  must(t, enqueue(t, "inst", .id = "delayed", .delay_ms = SHORT_MS));
  struct dk_turn *turn = timer_that_comes(t, since, "delayed");

  since = real_ms();
  must(t, ack_turn(t, turn, .send = {{"inst", .id = "at", .visible_at = turn->head.now + 1,
                                      .delay_ms = SHORT_MS}}));
  turn = timer_that_comes(t, since, "at");
  since = real_ms();
  must(t, abandon_turn(t, turn->head.lock_token, .ms = SHORT_MS));
  timer_that_comes(t, since, "at");
}

/* TIME-3: the same of work items. */
void
time_own_delayed_work(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  int64_t since = real_ms();
  must(t, ack_turn(t, turn, .schedule = {{1, .delay_ms = SHORT_MS}}));
  struct dk_work_item *work = item_that_comes(t, since, "an activity with a delay");

  since = real_ms();
  must(t, abandon_work(t, work->work.lock_token, .ms = SHORT_MS));
  work = item_that_comes(t, since, "an activity that was abandoned for later");
  expect_equal(t, work->work.attempt, 2, "attempt of an item that was abandoned");

  since = real_ms();
  must(t, ack_work(t, work->work.lock_token, .to = "inst", .id = "done", .delay_ms = SHORT_MS));
  timer_that_comes(t, since, "done");
}

/* TIME-3: a delay is that of one activity, however long it takes to store it. */
void
time_own_delay_of_one(struct dk_check *t)
{
  enum { LARGE = 4 << 20 };
  uint64_t most = provider(t)->limits->max_payload;
  struct dk_bytes large = filled(t, most < LARGE ? (size_t)most : LARGE, 'l');

  must(t, enqueue_work(t, "inst", .activity = {1}));
  must(t, enqueue_work(t, "inst", .activity = {2, .execution_id = 2}));
  must(t, enqueue_work(t, "other", .activity = {1, .execution_id = 2}));
  must(t, enqueue_work(t, "inst", .activity = {1, .execution_id = 2, .bytes = large,
                                               .delay_ms = AN_HOUR}));
  fetch_activity_of(t, "inst", 1, 1);
  fetch_activity_of(t, "inst", 2, 2);
  fetch_activity_of(t, "other", 2, 1);
  expect_no_work(t);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* The call's own time is far from up: only what has become due can have ended it. */
static void
expect_to_come(struct dk_check *t, struct actor *waiter, const char *what)
{
  expect(t, returns_within(t, waiter, COMES_MS), "a fetch that waits returns with %s", what);
  expect_status(t, finish(t, waiter), DK_OK);
}

/* CALL-6: a call that waits returns what becomes due meanwhile, even if host and store disagree
 * about the time, and even if it was stored after the call began to wait. */
void
time_own_wait(struct dk_check *t)
{
  struct actor *waiter = racer(t);
  struct dk_turn *none;
  struct dk_works *no_work;

  given_instance_with_activities(t, "inst", 1);
  must(t, try_fetch_turn(t, &none, .on = waiter, .start = true, .wait_ms = WAITS_MS));
  until_it_waits(t, waiter);
  int64_t since = real_ms();
  insist(t, enqueue(t, "inst", .id = "timer", .delay_ms = SHORT_MS));
  expect_to_come(t, waiter, "a timer");
  expect_ids(t, finished_turn(t, waiter), "timer");
  expect_not_before(t, since, SHORT_MS, "the timer that another call waits for");

  struct dk_work_item *work = fetch_work(t);
  must(t, try_fetch_work(t, &no_work, .on = waiter, .start = true, .wait_ms = WAITS_MS));
  until_it_waits(t, waiter);
  since = real_ms();
  insist(t, renew_work(t, work->work.lock_token, .ms = SHORT_MS));
  expect_to_come(t, waiter, "work whose lease ends");
  expect_not_before(t, since, SHORT_MS,
                    "the item whose lease was shortened while another call waits");
}

/* ---- the clock itself ------------------------------------------------------------------------ */

/* One claim: the time that the store reports, and the two real times between which it was. */
struct claim {
  int64_t before, now, left, after;
};

static struct claim
claim_turn(struct dk_check *t, const char *instance)
{
  struct claim claim = {.before = real_ms()};
  struct dk_turn *turn = fetch_turn_of(t, instance);

  claim.after = real_ms();
  claim.now = turn->head.now;
  claim.left = turn->head.lease_left_ms;
  return claim;
}

static struct claim
claim_work(struct dk_check *t)
{
  struct claim claim = {.before = real_ms()};
  struct dk_work_item *work = fetch_work(t);

  claim.after = real_ms();
  claim.now = work->work.now;
  claim.left = work->work.lease_left_ms;
  return claim;
}

static void
expect_of_lease(struct dk_check *t, const struct claim *claim, const char *what)
{
  expect(t, claim->left >= 1 && claim->left <= LEASE_MS, "%lld ms are left of a lease of %d ms, %s",
         (long long)claim->left, LEASE_MS, what);
  expect(t, LEASE_MS - claim->left <= claim->after - claim->before + ROUNDING_MS,
         "a lease has lost no more than the fetch took (%lld ms), %s: %lld ms are left",
         (long long)(claim->after - claim->before), what, (long long)claim->left);
}

/* As much time has passed by the store's clock as by ours, as far as can be seen from here. */
static void
expect_same_pace(struct dk_check *t, const struct claim *a, const struct claim *b)
{
  int64_t passed = b->now - a->now;

  expect(t, passed >= b->before - a->after - ROUNDING_MS,
         "`now` follows the store's clock: %lld ms between two claims, at least %lld "
         "passed", (long long)passed, (long long)(b->before - a->after));
  expect(t, passed <= b->after - a->before + ROUNDING_MS,
         "`now` is the store's: %lld ms between two claims, at most %lld passed",
         (long long)passed, (long long)(b->after - a->before));
}

/* TIME-2: what is left of a lease is measured by the clock that gave it, and so is `now`. */
void
time_own_lease_left(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 2);
  must(t, enqueue(t, "first"));
  must(t, enqueue(t, "second"));
  struct claim turn = claim_turn(t, "first"), work = claim_work(t);
  expect_of_lease(t, &turn, "of a turn");
  expect_of_lease(t, &work, "of a work item");
  expect_same_pace(t, &turn, &work);
  advance(t, SHORT_MS);
  struct claim later = claim_turn(t, "second"), next = claim_work(t);
  expect_same_pace(t, &turn, &later);
  expect_same_pace(t, &work, &next);
}

/* TIME-7: an hour of the host's clock ends no lease, makes no timer due, and turns no time back. */
void
time_host_clock_plays_no_part(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "later", .delay_ms = AN_HOUR));
  must(t, enqueue(t, "inst"));
  struct dk_work_item *work = fetch_work(t);
  struct dk_turn *turn = fetch_turn(t);
  int64_t since = real_ms();
  set_host_clock_forward(t, 2 * AN_HOUR);
  expect_no_turn(t);
  expect_no_work(t);
  if (real_ms() - since < LEASE_MS / 2) {
    must(t, renew_work(t, work->work.lock_token));
    must(t, renew_turn(t, turn->head.lock_token));
  }
  must(t, enqueue(t, "other"));
  struct claim first = claim_turn(t, "other");
  expect_of_lease(t, &first, "when the host's clock has jumped");
  expect(t, first.now - turn->head.now < AN_HOUR,
         "the store's clock has not jumped with the host's");
}

/* ---- on the way to a server ------------------------------------------------------------------ */

enum late { LATE_COMMIT, LATE_RENEW, LATE_ABANDON, LATE_ACK, LATE_WORK_RENEW, LATE_WORK_ABANDON,
            LATE_CALLS };

static dk_status
call_late(struct dk_check *t, enum late late, struct dk_bytes token, struct actor *on, bool start)
{
  switch (late) {
  case LATE_COMMIT:
    return ack_token(t, token, .on = on, .start = start, .execution_id = 1, .events = {{2}});
  case LATE_RENEW:
    return renew_turn(t, token, .on = on, .start = start);
  case LATE_ABANDON:
    return abandon_turn(t, token, .on = on, .start = start);
  case LATE_ACK:
    return ack_work(t, token, .on = on, .start = start, .to = "absent");
  case LATE_WORK_RENEW:
    return renew_work(t, token, .on = on, .start = start);
  default:
    return abandon_work(t, token, .on = on, .start = start);
  }
}

static struct dk_bytes
short_lease(struct dk_check *t, enum late late)
{
  return late < LATE_ACK ? turn_that_comes_for(t, SHORT_MS)->head.lock_token
                         : work_that_comes_for(t, SHORT_MS)->work.lock_token;
}

/* TIME-6: the call was made while its lease was alive, and its first message reaches the store
 * after the lease has ended. */
void
time_own_lease_judged_late(struct dk_check *t)
{
  struct actor *other = another_thread(t);

  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst"));
  for (int late = 0; late < LATE_CALLS; late++) {
    struct dk_bytes token = short_lease(t, (enum late)late);

    cut_at_message(t, (struct message_cut){.n = 1, .passed_on = true, .held = true});
    must(t, call_late(t, (enum late)late, token, other, true));
    bool is_held = message_is_held(t, other);
    advance(t, SHORT_MS + ROUNDING_MS);
    if (is_held)
      let_message_go(t);
    dk_status status = finish(t, other);
    for (int i = 0; i < MOST_RETRIES && is_retryable(status); i++)
      status = call_late(t, (enum late)late, token, other, false);
    expect_status(t, status, DK_LOCK_LOST);
  }
  expect_equal(t, read_history(t, "inst")->n_events, 1, "events, of which none came too late");
  must(t, ack_turn(t, turn_that_comes(t), .execution_id = 1));
  must(t, ack_work(t, work_that_comes(t)->work.lock_token));
  expect_no_turn(t);
}
