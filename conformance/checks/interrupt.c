/* SPDX-License-Identifier: Apache-2.0 */
/* CALL-5: a call that the host cancels returns, wherever it blocks; and its answer is true about
 * what it has done.
 *
 * What blocks it: another process is in the middle of a fetch, and is held when it asks for the
 * time, with whatever locks a fetch takes. */
#include <stdio.h>

#include "conformance/checks/checks.h"

/* ---- the answer of a cancelled call ---------------------------------------------------------- */

/* Done, and then it cannot be done once more; or not done, and then it can. */
static void
expect_truth(struct dk_check *t, const char *what, dk_status first, dk_status again,
             dk_status if_done)
{
  char words[160];

  snprintf(words, sizeof words, "%s that is cancelled before it begins", what);
  if (first != DK_OK)
    kit_expect_status(t, first, DK_CALL_CANCELLED, words, __FILE__, __LINE__);
  snprintf(words, sizeof words, "%s, made again after it %s,", what,
           first == DK_OK ? "was done," : "was cancelled and so had done nothing,");
  kit_expect_status(t, again, first == DK_OK ? if_done : DK_OK, words, __FILE__, __LINE__);
}

/* The call twice: the first time it is cancelled from its start. */
#define cancelled_first(t, what, call, if_done)                                                    \
  do {                                                                                             \
    cancel_call(t, NULL);                                                                          \
    dk_status first_ = (call);                                                                     \
    dk_status again_ = (call);                                                                     \
    expect_truth(t, what, first_, again_, if_done);                                                \
  } while (0)

/* CALL-5: a call that is cancelled from its start is done, or is cancelled and has done nothing. */
void
call_cancelled_tells_the_truth(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 2);
  cancelled_first(t, "a message", enqueue(t, "inst", .id = "one"), DK_DUPLICATE);
  struct dk_turn *turn = fetch_turn(t);
  cancelled_first(t, "abandoning a turn", abandon_turn(t, turn->head.lock_token), DK_LOCK_LOST);
  turn = fetch_turn(t);
  cancelled_first(t, "a commit",
                  ack_turn(t, turn, .events = {{2}}, .schedule = {{3}},
                           .send = {{"other", .id = "sent"}}), DK_LOCK_LOST);
  expect_equal(t, read_history(t, "inst")->n_events, 2, "events after the commit");
  struct dk_bytes token = fetch_work(t)->work.lock_token;
  cancelled_first(t, "abandoning work", abandon_work(t, token), DK_LOCK_LOST);
  struct taken_work held = take_work(t);
  expect_equal(t, held.n, 3, "activities that are there");
  cancelled_first(t, "an ack", ack_work(t, held.items[0]->work.lock_token, .to = "other",
                                        .id = "done"), DK_LOCK_LOST);
  expect_ids(t, the_turn_of(t, "other"), "sent", "done");

  cancel_call(t, NULL);
  dk_status renewed = renew_work(t, held.items[1]->work.lock_token, .ms = 3 * LEASE_MS);
  expect(t, renewed == DK_OK || renewed == DK_CALL_CANCELLED, "a renewal is done or cancelled");
  advance(t, LEASE_MS);
  expect_status(t, renew_work(t, held.items[1]->work.lock_token),
                renewed == DK_OK ? DK_OK : DK_LOCK_LOST);
}

/* ---- blocked behind another process ---------------------------------------------------------- */

enum { TO_BLOCK_MS = 25, TO_BE_QUEUED_MS = 200, TO_COME_BACK_MS = 3000 };

/* The other process is held within a fetch of a turn; false: the fetch was not held. */
static bool
is_held(struct dk_check *t, struct actor *process)
{
  struct dk_turn *none;

  must(t, enqueue(t, "busy"));
  hold_at_clock(t, 2);
  must(t, try_fetch_turn(t, &none, .on = process, .start = true));
  return stands_at_clock(t, process);
}

/* Lets it continue, and ends its turn. */
static void
interrupt_let_go(struct dk_check *t, struct actor *process, struct actor *caller, bool was_held)
{
  struct dk_turn *busy;

  if (was_held)
    pass_time(t, caller, 0);
  dk_status status = finish(t, process);
  busy = finished_turn(t, process);
  time_has_passed(t);
  if (status == DK_CALL_CANCELLED || is_retryable(status))
    busy = fetch_turn_of(t, "busy");
  expect(t, busy, "the fetch that was held brings its turn");
  must(t, ack_turn(t, busy, .empty = true));
}

enum way {
  ENQUEUES, RENEWS_TURN, ABANDONS_TURN, COMMITS, FETCHES_WORK, RENEWS_WORK, ABANDONS_WORK,
  ACKS_WORK, WAYS
};

struct held_things {
  struct dk_turn *turn;
  struct dk_bytes work;
};

static dk_status
make_call(struct dk_check *t, enum way way, const struct held_things *held, struct actor *on)
{
  struct dk_works *none;
  bool start = on != NULL;

  switch (way) {
  case ENQUEUES:
    return enqueue(t, "inst", .on = on, .start = start, .id = "blocked");
  case RENEWS_TURN:
    return renew_turn(t, held->turn->head.lock_token, .on = on, .start = start);
  case ABANDONS_TURN:
    return abandon_turn(t, held->turn->head.lock_token, .on = on, .start = start);
  case COMMITS:
    return ack_turn(t, held->turn, .on = on, .start = start,
                    .events = {{next_event(held->turn)}});
  case FETCHES_WORK:
    return try_fetch_work(t, &none, .on = on, .start = start);
  case RENEWS_WORK:
    return renew_work(t, held->work, .on = on, .start = start);
  case ABANDONS_WORK:
    return abandon_work(t, held->work, .on = on, .start = start);
  default:
    return ack_work(t, held->work, .on = on, .start = start, .to = "inst", .id = "done");
  }
}

/* Each way needs a turn of "inst", an item that is held, and one that is free. */
static struct held_things
given_things(struct dk_check *t)
{
  struct held_things held;

  given_instance_with_activities(t, "inst", 2);
  held.work = fetch_work(t)->work.lock_token;
  held.turn = next_turn(t, "inst");
  return held;
}

/* What was cancelled has done nothing: it can be done now. */
static void
expect_comes_back(struct dk_check *t, enum way way, struct actor *process, struct actor *caller)
{
  struct held_things held = given_things(t);
  bool was_held = is_held(t, process);

  must(t, make_call(t, way, &held, caller));
  returns_within(t, caller, TO_BLOCK_MS);
  cancel_call(t, caller);
  bool came_back = returns_within(t, caller, TO_COME_BACK_MS);
  interrupt_let_go(t, process, caller, was_held);
  dk_status status = finish(t, caller);
  expect(t, came_back,
         "a call that another process blocks returns once the host cancels it; this one did "
         "not within %d ms, while that process was held", TO_COME_BACK_MS);
  if (status == DK_CALL_CANCELLED || is_retryable(status))
    must(t, make_call(t, way, &held, NULL));
  else
    expect_status(t, status, DK_OK);
}

/* Turns and work of one round end before the next. */
static void
clear(struct dk_check *t)
{
  struct dk_turn *turn;
  struct dk_works *works;

  advance(t, LEASE_MS);
  while (try_fetch_turn(t, &turn) == DK_OK)
    must(t, ack_turn(t, turn, .empty = true));
  while (try_fetch_work(t, &works) == DK_OK)
    must(t, ack_work(t, works->items[0].work.lock_token));
}

/* CALL-5: a call that waits for a lock of the store returns when it is cancelled, whichever call it
 * is. */
void
call_back_from_a_lock(struct dk_check *t)
{
  struct actor *process = another_process(t), *caller = racer(t);

  must(t, enqueue(t, "busy", .on = process));
  must(t, ack_turn(t, fetch_turn(t, .on = process), .on = process, .empty = true));
  for (enum way way = ENQUEUES; way < WAYS; way++) {
    expect_comes_back(t, way, process, caller);
    clear(t);
  }
}

/* Finishes the started enqueue of this id.  If the store answers "try again", it is repeated at
 * once, and the result is true. */
static bool
finish_or_repeat(struct dk_check *t, struct actor *caller, const char *id)
{
  dk_status status = finish(t, caller);

  if (!is_retryable(status)) {
    expect_status(t, status, DK_OK);
    return false;
  }
  insist(t, enqueue(t, "inst", .id = id));
  return true;
}

/* CALL-5: the second call in a queue returns when it is cancelled, though the first one is
 * stuck. */
void
call_back_from_the_queue(struct dk_check *t)
{
  struct actor *process = another_process(t);
  struct actor *first = another_thread(t), *second = another_thread(t);

  must(t, enqueue(t, "busy", .on = process));
  must(t, ack_turn(t, fetch_turn(t, .on = process), .on = process, .empty = true));
  bool was_held = is_held(t, process);
  must(t, enqueue(t, "inst", .on = first, .start = true, .id = "first"));
  returns_within(t, first, TO_BE_QUEUED_MS);
  must(t, enqueue(t, "inst", .on = second, .start = true, .id = "second"));
  returns_within(t, second, TO_BLOCK_MS);
  cancel_call(t, second);
  bool came_back = returns_within(t, second, TO_COME_BACK_MS);
  interrupt_let_go(t, process, second, was_held);
  dk_status status = finish(t, second);
  bool is_reversed = finish_or_repeat(t, first, "first") && status == DK_OK;
  expect(t, came_back,
         "a call that waits behind another one of its handle returns once the host cancels it; "
         "this one did not within %d ms: interrupt does not wake it", TO_COME_BACK_MS);
  if (status != DK_OK)
    insist(t, enqueue(t, "inst", .id = "second"));
  if (is_reversed)
    expect_ids(t, the_turn_of(t, "inst"), "second", "first");
  else
    expect_ids(t, the_turn_of(t, "inst"), "first", "second");
}
