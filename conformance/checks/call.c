/* SPDX-License-Identifier: Apache-2.0 */
/* CALL: long poll, calls that the host cancels, and what is left after close. */
#include <dirent.h>
#include <stdlib.h>

#include "conformance/checks/checks.h"

enum { WAIT_MS = 60000, CYCLES = 12, CYCLES_TO_WARM_UP = 4 };

/* A fetch of the actor that waits: nothing was there when it looked. */
static void
wait_for_turn(struct dk_check *t, struct actor *actor)
{
  struct dk_turn *none;

  must(t, try_fetch_turn(t, &none, .on = actor, .start = true, .wait_ms = WAIT_MS));
  until_it_waits(t, actor);
}

static void
wait_for_work(struct dk_check *t, struct actor *actor)
{
  struct dk_works *none;

  must(t, try_fetch_work(t, &none, .on = actor, .start = true, .wait_ms = WAIT_MS));
  until_it_waits(t, actor);
}

/* The waiting fetch returns something, and before its time is up. */
static struct dk_turn *
turn_that_woke(struct dk_check *t, struct actor *actor, int64_t began)
{
  expect_status(t, finish(t, actor), DK_OK);
  struct dk_turn *turn = finished_turn(t, actor);
  expect(t, turn, "the waiting fetch brings a turn");
  expect(t, now(t) < began + WAIT_MS, "the fetch returned before its time was up");
  return turn;
}

static struct dk_work_item *
work_that_woke(struct dk_check *t, struct actor *actor, int64_t began)
{
  expect_status(t, finish(t, actor), DK_OK);
  struct dk_works *works = finished_work(t, actor);
  expect(t, works && works->n_items == 1, "the waiting fetch brings an item");
  expect(t, now(t) < began + WAIT_MS, "the fetch returned before its time was up");
  return &works->items[0];
}

/* ---- woken ----------------------------------------------------------------------------------- */

/* CALL-2: work that is enqueued, committed or abandoned while a fetch waits is returned by this
 * fetch. */
void
call_returns_new_work(struct dk_check *t)
{
  struct actor *waiter = another_thread(t);

  given_instance(t, "inst");
  int64_t began = now(t);
  wait_for_turn(t, waiter);
  insist(t, enqueue(t, "inst", .id = "enqueued"));
  struct dk_turn *turn = turn_that_woke(t, waiter, began);
  expect_ids(t, turn, "enqueued");

  began = now(t);
  wait_for_work(t, waiter);
  insist(t, ack_turn(t, turn, .schedule = {{1}}));
  struct dk_work_item *work = work_that_woke(t, waiter, began);
  began = now(t);
  wait_for_work(t, waiter);
  insist(t, abandon_work(t, work->work.lock_token));
  work = work_that_woke(t, waiter, began);
  began = now(t);
  wait_for_turn(t, waiter);
  insist(t, ack_work(t, work->work.lock_token, .to = "inst", .id = "completion"));
  turn = turn_that_woke(t, waiter, began);
  expect_ids(t, turn, "completion");

  began = now(t);
  wait_for_turn(t, waiter);
  insist(t, abandon_turn(t, turn->head.lock_token));
  turn = turn_that_woke(t, waiter, began);
  began = now(t);
  wait_for_turn(t, waiter);
  insist(t, ack_turn(t, turn, .send = {{"inst", .id = "sent"}}));
  expect_ids(t, turn_that_woke(t, waiter, began), "sent");
}

/* CALL-2: nothing slips between the look of a fetch and its wait: both run at once, in rounds. */
void
call_nothing_slips_between(struct dk_check *t)
{
  struct actor *waiter = racer(t), *sender = racer(t);
  struct dk_turn *none;

  for (int round = 0; round < 20; round++) {
    int64_t began = now(t);
    hold_at_line(t, waiter);
    hold_at_line(t, sender);
    must(t, try_fetch_turn(t, &none, .on = waiter, .start = true, .wait_ms = WAIT_MS));
    must(t, enqueue(t, "inst", .on = sender, .start = true));
    race(t, waiter, sender);
    if (is_retryable(finish(t, sender))) { /* nothing was sent in this round */
      expect_status(t, finish(t, waiter), DK_NOTHING);
      continue;
    }
    struct dk_turn *turn = turn_that_woke(t, waiter, began);
    must(t, ack_turn(t, turn, .on = waiter, .empty = true));
  }
}

/* CALL-6: a waiting fetch returns what becomes due, at this instant: a delay, a lease that ends. */
void
call_wakes_when_due(struct dk_check *t)
{
  int64_t start = now(t);

  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst", .id = "timer", .delay_ms = 5000));
  fetch_work(t, .lock_ms = 9000);
  struct dk_turn *turn = fetch_turn(t, .wait_ms = WAIT_MS, .lock_ms = 2000);
  expect_ids(t, turn, "timer");
  expect_equal(t, now(t) - start, 5000, "when the fetch returned the timer");
  fetch_turn(t, .wait_ms = WAIT_MS);
  expect_equal(t, now(t) - start, 7000, "when the fetch returned the turn whose lease had ended");

  struct dk_work_item *work = fetch_work(t, .wait_ms = WAIT_MS);
  expect_equal(t, now(t) - start, 9000, "when the fetch returned the item whose lease had ended");
  must(t, abandon_work(t, work->work.lock_token, .ms = 1000));
  fetch_work(t, .wait_ms = WAIT_MS);
  expect_equal(t, now(t) - start, 10000, "when the fetch returned the delayed item");
}

/* CALL-6: what a fetch waits for may come sooner than it seemed when it began to wait. */
void
call_wakes_when_lease_is_cut(struct dk_check *t)
{
  struct actor *waiter = another_thread(t);

  given_instance_with_activities(t, "inst", 1);
  int64_t start = now(t);
  struct dk_turn *turn = next_turn(t, "inst");
  wait_for_turn(t, waiter);
  must(t, renew_turn(t, turn->head.lock_token, .ms = 2000));
  until_it_answers(t, waiter, start + 2000, true);
  finished_turn(t, waiter);
  expect_equal(t, now(t) - start, 2000, "when the turn came whose lease was shortened");

  start = now(t);
  struct dk_work_item *work = fetch_work(t);
  wait_for_work(t, waiter);
  must(t, renew_work(t, work->work.lock_token, .ms = 2000));
  until_it_answers(t, waiter, start + 2000, true);
  finished_work(t, waiter);
  expect_equal(t, now(t) - start, 2000, "when the item came whose lease was shortened");
}

/* CALL-7: what another process does wakes a waiting fetch, and the other way round. */
void
call_other_process_wakes(struct dk_check *t)
{
  struct actor *other = another_process(t), *waiter = another_thread(t);

  given_instance(t, "inst");
  int64_t began = now(t);
  wait_for_turn(t, other);
  insist(t, enqueue(t, "inst"));
  struct dk_turn *turn = turn_that_woke(t, other, began);

  began = now(t);
  wait_for_work(t, waiter);
  insist(t, ack_turn(t, turn, .on = other, .schedule = {{1}}));
  struct dk_work_item *work = work_that_woke(t, waiter, began);
  began = now(t);
  wait_for_turn(t, other);
  insist(t, ack_work(t, work->work.lock_token, .to = "inst", .id = "completion"));
  expect_ids(t, turn_that_woke(t, other, began), "completion");
}

/* CALL-3: a fetch that finds nothing returns when its time is up, neither sooner nor later. */
void
call_waits_its_time(struct dk_check *t)
{
  struct dk_works *works;
  struct dk_turn *turn;

  given_instance_with_activities(t, "inst", 1);
  fetch_work(t, .lock_ms = 4 * WAIT_MS);
  must(t, enqueue(t, "inst", .delay_ms = 4 * WAIT_MS));
  expect_status(t, try_fetch_turn(t, &turn), DK_NOTHING);
  expect_status(t, try_fetch_work(t, &works), DK_NOTHING);
  expect_equal(t, elapsed(t), 0, "ms that fetches without a wait took");
  expect_status(t, try_fetch_turn(t, &turn, .wait_ms = 7000), DK_NOTHING);
  expect_equal(t, elapsed(t), 7000, "ms that a fetch of a turn with wait_ms 7000 took");
  expect_status(t, try_fetch_work(t, &works, .wait_ms = 8000), DK_NOTHING);
  expect_equal(t, elapsed(t), 15000, "ms after a fetch of work with wait_ms 8000");
}

/* CALL-3: an event that brings a waiting fetch no work does not end its wait. */
void
call_waits_on(struct dk_check *t)
{
  struct actor *waiter = another_thread(t);
  struct dk_works *none;

  given_instance(t, "inst");
  given_instance(t, "other");
  struct dk_turn *first = next_turn(t, "inst"), *second = next_turn(t, "other");
  must(t, try_fetch_work(t, &none, .on = waiter, .start = true, .wait_ms = WAIT_MS,
                         .tag_rule = TAG_UNTAGGED));
  until_it_waits(t, waiter);
  advance(t, 1000);
  insist(t, ack_turn(t, first, .schedule = {{1, .tag = "gpu"}}));
  advance(t, 1000);
  insist(t, ack_turn(t, second, .schedule = {{2, .delay_ms = 2 * WAIT_MS}}));
  expect_status(t, finish(t, waiter), DK_NOTHING);
  expect_equal(t, elapsed(t), WAIT_MS, "when the waiting fetch returned");
}

/* ---- cancelled ------------------------------------------------------------------------------- */

/* It was cancelled while it waited.  A server may have been asked once more just then; the call
 * does not wait for that answer. */
static void
expect_called_back(struct dk_check *t, dk_status status)
{
  if (provider(t)->shared < 3 || status != DK_OUTCOME_UNKNOWN)
    expect_status(t, status, DK_CALL_CANCELLED);
}

/* CALL-4: a fetch that waits without a limit returns once the host cancels it. */
void
call_cancelled_call_returns(struct dk_check *t)
{
  struct actor *waiter = another_thread(t), *worker = another_thread(t);
  struct dk_turn *no_turn;
  struct dk_works *no_work;

  must(t, try_fetch_turn(t, &no_turn, .on = waiter, .start = true, .wait_ms = -1));
  must(t, try_fetch_work(t, &no_work, .on = worker, .start = true, .wait_ms = -1));
  until_it_waits(t, waiter);
  until_it_waits(t, worker);
  cancel_call(t, waiter);
  expect_called_back(t, finish(t, waiter));
  cancel_call(t, worker);
  expect_called_back(t, finish(t, worker));
}

/* A fetch that is cancelled before it has looked returns what is there, or leaves it. */
static void
fetch_when_cancelled(struct dk_check *t)
{
  struct dk_turn *turn;

  must(t, enqueue(t, "ready"));
  cancel_call(t, NULL);
  dk_status status = try_fetch_turn(t, &turn, .wait_ms = WAIT_MS);
  if (status != DK_OK) {
    expect_status(t, status, DK_CALL_CANCELLED);
    turn = fetch_turn(t);
  }
  expect_equal(t, turn->messages[0].attempt, 1, "attempt of the message that was there");
}

/* CALL-1: a cancelled fetch has locked nothing and counted nothing. */
void
call_cancelled_fetch_leaves_no_trace(struct dk_check *t)
{
  struct actor *waiter = another_thread(t);
  struct dk_turn *none;
  struct dk_works *no_work;

  fetch_when_cancelled(t);
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1, .delay_ms = 5000}}));
  must(t, enqueue(t, "inst", .delay_ms = 5000));
  must(t, try_fetch_turn(t, &none, .on = waiter, .start = true, .wait_ms = -1));
  until_it_waits(t, waiter);
  cancel_call(t, waiter);
  expect_called_back(t, finish(t, waiter));
  must(t, try_fetch_work(t, &no_work, .on = waiter, .start = true, .wait_ms = -1));
  until_it_waits(t, waiter);
  cancel_call(t, waiter);
  expect_called_back(t, finish(t, waiter));

  advance(t, 5000);
  expect_equal(t, fetch_turn(t)->messages[0].attempt, 1, "attempt of the message");
  expect_equal(t, fetch_work(t)->work.attempt, 1, "attempt of the work item");
}

/* ---- closed ---------------------------------------------------------------------------------- */

static size_t
count_entries(struct dk_check *t, const char *folder)
{
  DIR *dir = opendir(folder);
  size_t n = 0;

  expect(t, dir, "%s can be read", folder);
  while (readdir(dir))
    n++;
  closedir(dir);
  return n;
}

/* Calls each required operation. */
static void
use_and_close(struct dk_check *t)
{
  struct dk_turn *turn;
  struct dk_works *works;

  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t), .schedule = {{1}}));
  struct dk_bytes token = fetch_work(t)->work.lock_token;
  must(t, renew_work(t, token));
  must(t, abandon_work(t, token));
  while (try_fetch_work(t, &works) == DK_OK)
    must(t, ack_work(t, works->items[0].work.lock_token));
  read_history(t, "inst");
  expect_status(t, try_fetch_turn(t, &turn, .wait_ms = 50), DK_NOTHING);
  expect_status(t, try_fetch_work(t, &works, .wait_ms = 50), DK_NOTHING);
  must(t, enqueue(t, "inst"));
  turn = fetch_turn(t);
  must(t, renew_turn(t, turn->head.lock_token));
  must(t, abandon_turn(t, turn->head.lock_token));
  close_handle(t, NULL);
}

/* CALL-8: threads, descriptors, memory, mappings and thread keys do not grow over cycles of open,
 * use and close.  A runtime that stays may add some now and then, but not in each cycle. */
void
call_cycles_leave_nothing(struct dk_check *t)
{
  struct growth growth = {.cycles = 0};
  bool runtime = (provider(t)->runtime & DK_RUNTIME_STAYS) != 0;

  use_and_close(t);
  size_t descriptors = count_entries(t, "/proc/self/fd");
  size_t threads = count_entries(t, "/proc/self/task");

  for (int cycle = 1; cycle <= CYCLES; cycle++) {
    open_handle(t, NULL);
    use_and_close(t);
    if (!runtime) {
      expect_equal(t, count_entries(t, "/proc/self/fd"), descriptors,
                   "open descriptors after %d more cycles", cycle);
      expect_equal(t, count_entries(t, "/proc/self/task"), threads,
                   "threads after %d more cycles", cycle);
    }
    growth_look(&growth, cycle > CYCLES_TO_WARM_UP);
  }
  expect_no_growth(t, &growth);
  open_handle(t, NULL);
}
