/* SPDX-License-Identifier: Apache-2.0 */
/* TIME: instants, to the millisecond: when something is visible, when a lease ends, by which
 * clock. */
#include "conformance/checks/checks.h"

#define AN_HOUR    INT64_C(3600000)
#define A_DAY      (24 * AN_HOUR)
#define A_YEAR     (365 * A_DAY)
#define FOR_EVER   INT64_MAX
#define A_CENTURY  (100 * A_YEAR)

/* ---- when a lease begins --------------------------------------------------------------------- */

/* TIME-1: a fetch that has waited for work hands out a whole lease, from now. */
void
time_whole_lease_after_a_wait(struct dk_check *t)
{
  int64_t start = now(t);

  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1, .delay_ms = 5000}}));
  must(t, enqueue(t, "inst", .id = "timer", .delay_ms = 9000));
  struct dk_work_item *work = fetch_work(t, .wait_ms = 60000, .lock_ms = 10000);
  expect_equal(t, work->work.now, start + 5000, "the clock at the claim of the work item");
  expect_equal(t, work->work.lease_left_ms, 10000, "what is left of the lease of the work item");
  struct dk_turn *turn = fetch_turn(t, .wait_ms = 60000, .lock_ms = 12000);
  expect_equal(t, turn->head.now, start + 9000, "the clock at the claim of the turn");
  expect_equal(t, turn->head.lease_left_ms, 12000, "what is left of the lease of the turn");

  advance_to(t, start + 15000 - 1);
  expect_no_work(t);
  advance(t, 1);
  the_item_of(t, "inst", 1);
  advance_to(t, start + 21000 - 1);
  expect_no_turn(t);
  must(t, renew_turn(t, turn->head.lock_token));
}

/* ---- when a call had to wait for another's lock ---------------------------------------------- */

enum { WHILE_WAITING_MS = 10000, UNTIL_THEN_MS = 5000 };

/* One call holds what others need, if the provider has such a thing, in a fetch of "busy". */
struct queue_of_two {
  struct actor *first, *second;
};

static struct queue_of_two
queue_of_two(struct dk_check *t)
{
  return (struct queue_of_two){racer(t), racer(t)};
}

/* The first one is held in the middle of a fetch. */
static bool
first_stands(struct dk_check *t, const struct queue_of_two *two)
{
  struct dk_turn *none;

  must(t, enqueue(t, "busy"));
  hold_at_clock(t, 2);
  must(t, try_fetch_turn(t, &none, .on = two->first, .start = true));
  return stands_at_clock(t, two->first);
}

static void
end_of_first(struct dk_check *t, const struct queue_of_two *two)
{
  struct dk_turn *busy = finished_turn(t, two->first);

  time_has_passed(t);
  for (int i = 0; !busy && i < MOST_RETRIES; i++)
    if (try_fetch_turn(t, &busy) == DK_NOTHING)
      break;
  expect(t, busy, "the fetch that was held brings its turn, at once or when it is repeated");
  must(t, ack_turn(t, busy, .empty = true));
}

/* TIME-1: a fetch of work that had to wait for another call hands out a whole lease, from then. */
static void
expect_whole_lease_of_work(struct dk_check *t, const struct queue_of_two *two)
{
  struct dk_works *works;

  if (!first_stands(t, two)) {
    end_of_first(t, two);
    return;
  }
  must(t, try_fetch_work(t, &works, .on = two->second, .start = true, .lock_ms = 20000));
  enum passed passed = pass_time(t, two->second, WHILE_WAITING_MS);
  dk_status status = finish(t, two->second);
  works = finished_work(t, two->second);
  end_of_first(t, two);
  if (passed != PASSED_DURING || is_retryable(status))
    return;
  expect_status(t, status, DK_OK);
  expect_equal(t, works->items[0].work.now, now(t), "the clock at the claim of the work item");
  expect_equal(t, works->items[0].work.lease_left_ms, 20000, "what is left of its lease");
}

/* The same of a fetch of a turn. */
static void
expect_whole_lease_of_turn(struct dk_check *t, const struct queue_of_two *two)
{
  struct dk_turn *turn;

  must(t, enqueue(t, "ready"));
  if (!first_stands(t, two)) {
    end_of_first(t, two);
    return;
  }
  must(t, try_fetch_turn(t, &turn, .on = two->second, .start = true, .lock_ms = 20000));
  enum passed passed = pass_time(t, two->second, WHILE_WAITING_MS);
  dk_status status = finish(t, two->second);
  turn = finished_turn(t, two->second);
  end_of_first(t, two);
  if (passed != PASSED_DURING || is_retryable(status))
    return;
  expect_status(t, status, DK_OK);
  expect_equal(t, turn->head.now, now(t), "the clock at the claim of the turn");
  expect_equal(t, turn->head.lease_left_ms, 20000, "what is left of its lease");
}

/* TIME-1: a fetch that had to wait for another call hands out a whole lease, from after that. */
void
time_whole_lease_after_a_lock(struct dk_check *t)
{
  struct queue_of_two two = queue_of_two(t);

  given_instance_with_activities(t, "inst", 1);
  expect_whole_lease_of_work(t, &two);
  expect_whole_lease_of_turn(t, &two);
}

/* TIME-1: so does an enqueue: a delay begins when the message is stored. */
void
time_delay_begins_after_a_lock(struct dk_check *t)
{
  struct queue_of_two two = queue_of_two(t);

  bool stood = first_stands(t, &two);
  must(t, enqueue(t, "inst", .on = two.second, .start = true, .delay_ms = 4000));
  enum passed passed = stood ? pass_time(t, two.second, WHILE_WAITING_MS) : PASSED_AFTER;
  dk_status status = finish(t, two.second);
  end_of_first(t, &two);
  if (passed != PASSED_DURING || is_retryable(status))
    return;
  expect_status(t, status, DK_OK);
  expect_no_turn(t);
  advance(t, 3999);
  expect_no_turn(t);
  advance(t, 1);
  the_turn_of(t, "inst");
}

enum { RENEWS_TURN, ABANDONS_TURN, ACKS_TURN, RENEWS_WORK, ABANDONS_WORK, ACKS_WORK, WAYS };

static dk_status
start_late_call(struct dk_check *t, int way, struct actor *on, struct dk_bytes token)
{
  switch (way) {
  case RENEWS_TURN:
    return renew_turn(t, token, .on = on, .start = true);
  case ABANDONS_TURN:
    return abandon_turn(t, token, .on = on, .start = true);
  case ACKS_TURN:
    return ack_token(t, token, .on = on, .start = true, .events = {{2}});
  case RENEWS_WORK:
    return renew_work(t, token, .on = on, .start = true);
  case ABANDONS_WORK:
    return abandon_work(t, token, .on = on, .start = true);
  default:
    return ack_work(t, token, .on = on, .start = true, .to = "inst", .id = "done");
  }
}

/* TIME-6: a lease that runs out while a call waits for another one has ended for this call too. */
void
time_lease_judged_after_a_lock(struct dk_check *t)
{
  struct queue_of_two two = queue_of_two(t);

  for (int way = 0; way < WAYS; way++) {
    char instance[] = "inst-0";
    instance[5] = (char)('0' + way);
    given_instance_with_activities(t, instance, 1);
    must(t, enqueue(t, instance));
    struct dk_bytes token = fetch_turn_of(t, instance, .lock_ms = UNTIL_THEN_MS)->head.lock_token;
    if (way >= RENEWS_WORK)
      token = fetch_activity(t, instance, 1, .lock_ms = UNTIL_THEN_MS)->work.lock_token;
    if (!first_stands(t, &two)) {
      end_of_first(t, &two);
      continue;
    }
    must(t, start_late_call(t, way, two.second, token));
    enum passed passed = pass_time(t, two.second, WHILE_WAITING_MS);
    dk_status status = finish(t, two.second);
    end_of_first(t, &two);
    if (passed == PASSED_DURING && !is_retryable(status))
      expect_status(t, status, DK_LOCK_LOST);
  }
}

/* ---- when something is visible --------------------------------------------------------------- */

/* TIME-3: a message is visible at its millisecond and not in the one before, whatever its
 * sender. */
void
time_message_at_its_millisecond(struct dk_check *t)
{
  given_instance_with_activities(t, "other", 1);
  struct dk_turn *sender = next_turn(t, "other");
  struct dk_work_item *work = fetch_work(t);
  advance(t, 123);
  int64_t start = now(t);

  must(t, enqueue(t, "now", .visible_at = start));
  must(t, enqueue(t, "enqueued", .visible_at = start + 1));
  must(t, ack_turn(t, sender, .send = {{"sent", .delay_ms = 5223}}));
  must(t, ack_work(t, work->work.lock_token, .to = "done", .visible_at = start + 5224));
  the_turn_of(t, "now");
  advance(t, 1);
  struct dk_turn *turn = the_turn_of(t, "enqueued");
  must(t, abandon_turn(t, turn->head.lock_token, .ms = 7001));
  advance_to(t, start + 5222);
  expect_no_turn(t);
  advance(t, 1);
  the_turn_of(t, "sent");
  advance(t, 1);
  the_turn_of(t, "done");
  advance_to(t, start + 7001);
  expect_no_turn(t);
  advance(t, 1);
  the_turn_of(t, "enqueued");
}

/* TIME-3: a work item is visible at its millisecond too, scheduled or abandoned. */
void
time_work_at_its_millisecond(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  advance(t, 123);
  int64_t start = now(t);

  must(t, ack_turn(t, turn, .schedule = {{1, .visible_at = start}, {2, .visible_at = start + 1},
                                         {3, .delay_ms = 5223}}));
  struct dk_work_item *work = the_item_of(t, "inst", 1);
  must(t, abandon_work(t, work->work.lock_token, .ms = 7001));
  advance(t, 1);
  the_item_of(t, "inst", 2);
  advance_to(t, start + 5222);
  expect_no_work(t);
  advance(t, 1);
  the_item_of(t, "inst", 3);
  advance_to(t, start + 7000);
  expect_no_work(t);
  advance(t, 1);
  the_item_of(t, "inst", 1);
}

/* TIME-5: the effective visible time is the greater of visible_at and now + delay_ms. */
void
time_greater_of_both(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_turn *turn = next_turn(t, "inst");
  struct dk_work_item *work = fetch_work(t);
  int64_t start = now(t), sooner = start + 1000, later = start + 3000;

  must(t, enqueue(t, "delayed", .visible_at = sooner, .delay_ms = 3000));
  must(t, enqueue(t, "timed", .visible_at = later, .delay_ms = 1000));
  must(t, ack_turn(t, turn, .send = {{"sent-delayed", .visible_at = sooner, .delay_ms = 3000},
                                     {"sent-timed", .visible_at = later, .delay_ms = 1000}},
                   .schedule = {{2, .visible_at = sooner, .delay_ms = 3000},
                                {3, .visible_at = later, .delay_ms = 1000}}));
  must(t, ack_work(t, work->work.lock_token, .to = "done", .visible_at = sooner, .delay_ms = 3000));
  advance_to(t, later - 1);
  expect_no_turn(t);
  expect_no_work(t);
  advance(t, 1);
  expect_equal(t, take_turns(t).n, 5, "instances whose message is due");
  expect_equal(t, take_work(t).n, 2, "activities that are due");
}

/* TIME-5: what is delayed without end never comes: no sum of a time and a delay wraps. */
void
time_parked_for_ever(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "timed", .visible_at = FOR_EVER));
  must(t, enqueue(t, "delayed", .delay_ms = FOR_EVER));
  must(t, enqueue(t, "both", .visible_at = FOR_EVER, .delay_ms = FOR_EVER));
  must(t, enqueue(t, "later", .delay_ms = FOR_EVER - now(t)));
  must(t, ack_turn(t, next_turn(t, "inst"), .send = {{"sent", .delay_ms = FOR_EVER}},
                   .schedule = {{2, .delay_ms = FOR_EVER}, {3, .visible_at = FOR_EVER}}));
  must(t, abandon_work(t, the_item_of(t, "inst", 1)->work.lock_token, .ms = FOR_EVER));
  must(t, enqueue(t, "inst"));
  must(t, abandon_turn(t, the_turn_of(t, "inst")->head.lock_token, .ms = FOR_EVER));
  expect_no_turn(t);
  expect_no_work(t);
  advance(t, A_CENTURY);
  expect_no_turn(t);
  expect_no_work(t);
}

/* TIME-5: a lease without an end does not wrap either: it lasts as long as its holder keeps it. */
void
time_held_for_ever(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  given_instance_with_activities(t, "other", 1);
  must(t, enqueue(t, "inst"));
  must(t, enqueue(t, "other"));
  struct dk_turn *turn = fetch_turn_of(t, "inst", .lock_ms = FOR_EVER);
  struct dk_turn *renewed = fetch_turn_of(t, "other");
  struct dk_work_item *work = fetch_activity(t, "inst", 1, .lock_ms = FOR_EVER);
  struct dk_work_item *prolonged = fetch_activity(t, "other", 1);
  must(t, renew_turn(t, renewed->head.lock_token, .ms = FOR_EVER));
  must(t, renew_work(t, prolonged->work.lock_token, .ms = FOR_EVER));
  expect(t, turn->head.lease_left_ms > A_CENTURY, "the turn is held for more than a century");
  expect(t, work->work.lease_left_ms > A_CENTURY, "the item is held for more than a century");

  advance(t, A_CENTURY);
  expect_no_turn(t);
  expect_no_work(t);
  must(t, ack_turn(t, turn, .events = {{next_event(turn)}}));
  must(t, ack_turn(t, renewed, .events = {{next_event(renewed)}}));
  must(t, ack_work(t, work->work.lock_token));
  must(t, ack_work(t, prolonged->work.lock_token));
}

/* ---- when a lease ends ----------------------------------------------------------------------- */

/* TIME-4: at its end the turn is free and its token dead; a millisecond earlier neither is so. */
void
time_turn_ends_at_its_instant(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t, .lock_ms = 5001);
  advance(t, 5000);
  expect_no_turn(t);
  must(t, renew_turn(t, turn->head.lock_token, .ms = 3001));
  advance(t, 3000);
  expect_no_turn(t);
  must(t, renew_turn(t, turn->head.lock_token, .ms = 1));
  expect_no_turn(t);
  advance(t, 1);
  before(t);
  expect_dead_turn(t, turn->head.lock_token);
  expect_unchanged(t);
  turn = fetch_turn(t, .lock_ms = 1);
  advance(t, 1);
  expect_dead_turn(t, turn->head.lock_token);
  expect_equal(t, the_turn_of(t, "inst")->messages[0].attempt, 3, "attempt of the message");
}

/* TIME-4: the same of a work item. */
void
time_work_ends_at_its_instant(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *work = fetch_work(t, .lock_ms = 5001);
  advance(t, 5000);
  expect_no_work(t);
  must(t, renew_work(t, work->work.lock_token, .ms = 3001));
  advance(t, 3000);
  expect_no_work(t);
  must(t, renew_work(t, work->work.lock_token, .ms = 1));
  expect_no_work(t);
  advance(t, 1);
  before(t);
  expect_dead_work(t, work->work.lock_token);
  expect_unchanged(t);
  work = fetch_work(t, .lock_ms = 1);
  advance(t, 1);
  expect_dead_work(t, work->work.lock_token);
  expect_equal(t, the_item_of(t, "inst", 1)->work.attempt, 3, "attempt of the activity");
}

/* ---- when the clock jumps -------------------------------------------------------------------- */

/* TIME-8: after a jump of the clock all that is due comes in its order, once, and leases that
 * should have ended in between have ended. */
void
time_jumps_forward(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 2);
  struct dk_turn *turn = next_turn(t, "inst");
  struct dk_work_item *work = fetch_activity(t, "inst", 1);
  must(t, enqueue(t, "inst", .id = "month", .delay_ms = 30 * A_DAY));
  must(t, enqueue(t, "inst", .id = "hour", .delay_ms = AN_HOUR));
  must(t, enqueue(t, "inst", .id = "day", .delay_ms = A_DAY));
  must(t, enqueue(t, "inst", .id = "soon"));
  must(t, enqueue(t, "inst", .id = "never", .delay_ms = 10 * A_YEAR));
  advance(t, A_YEAR);
  expect_dead_turn(t, turn->head.lock_token);
  expect_dead_work(t, work->work.lock_token);
  struct dk_turn *again = the_turn_of(t, "inst");
  expect_equal(t, again->n_messages, 5, "messages that are due after a year");
  for (size_t i = 0; i < 4; i++) {
    static const char *const ids[] = {"soon", "hour", "day", "month"};
    expect_text(t, again->messages[i + 1].id, ids[i], "message %zu of the turn", i + 2);
  }
  expect_equal(t, take_work(t).n, 2, "activities after a year");
  advance(t, LEASE_MS - 1);
  expect_no_turn(t);
  must(t, ack_turn(t, again, .events = {{next_event(again)}}));
  expect_no_turn(t);
}

/* TIME-8: between two openings the clock may go back: nothing is lost, the order is still by
 * arrival, and what had a time keeps it. */
void
time_set_back(struct dk_check *t)
{
  enum { SOME_MS = 500 };

  given_instance(t, "locked");
  struct dk_turn *held = next_turn(t, "locked");
  advance(t, 1);
  int64_t start = now(t), due = start + AN_HOUR;
  must(t, enqueue(t, "again", .id = "once"));
  must(t, enqueue(t, "again", .id = "twice"));
  must(t, enqueue(t, "inst", .id = "first", .visible_at = due));
  must(t, enqueue(t, "late", .id = "delayed", .delay_ms = 1000));
  advance(t, SOME_MS);
  must(t, ack_turn(t, fetch_turn(t, .max_messages = 1))); /* the other one was due before that */
  close_handle(t, NULL);
  set_clock_back(t, A_DAY + SOME_MS);
  open_handle(t, NULL);

  must(t, enqueue(t, "inst", .id = "second", .visible_at = due));
  must(t, enqueue(t, "new"));
  struct dk_turn *turn = the_turn_of(t, "new");
  expect_equal(t, turn->head.now, start - A_DAY, "the clock of a fetch after it was set back");
  expect_equal(t, turn->head.lease_left_ms, LEASE_MS, "what is left of a new lease");
  must(t, ack_turn(t, turn));
  must(t, enqueue(t, "locked"));
  expect_no_turn(t);
  must(t, ack_turn(t, held, .events = {{next_event(held)}}));
  must(t, ack_turn(t, the_turn_of(t, "locked"), .empty = true));
  advance_to(t, start - 1);
  expect_no_turn(t);
  advance(t, 1);
  turn = the_turn_of(t, "again");
  expect_ids(t, turn, "twice");
  must(t, ack_turn(t, turn, .events = {{next_event(turn)}}));
  advance_to(t, start + 999);
  expect_no_turn(t);
  advance(t, 1);
  the_turn_of(t, "late");
  advance_to(t, due - 1);
  must(t, ack_turn(t, the_turn_of(t, "late"), .empty = true));
  advance(t, 1);
  expect_ids(t, the_turn_of(t, "inst"), "first", "second");
}

/* ---- which clock ----------------------------------------------------------------------------- */

static void
goes_by_one(struct dk_check *t, const char *store, uint32_t kind, uint32_t other)
{
  must(t, open_status(t, DK_OPEN_CREATE | kind, store));
  expect_status(t, open_status(t, other, store), DK_REFUSED);
  expect_status(t, open_status(t, DK_OPEN_CREATE | other, store), DK_REFUSED);
  expect_status(t, open_status(t, DK_OPEN_READ_ONLY | other, store), DK_REFUSED);
  must(t, open_status(t, kind, store));
  must(t, destroy_store(t, store));
}

/* TIME-7: a store that was made for one clock is refused to the other, and stays as it was. */
void
time_one_clock_for_good(struct dk_check *t)
{
  goes_by_one(t, "by-host", DK_OPEN_HOST_CLOCK, 0);
  goes_by_one(t, "by-store", 0, DK_OPEN_HOST_CLOCK);
}
