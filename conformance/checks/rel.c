/* SPDX-License-Identifier: Apache-2.0 */
/* REL: the locks of a fetch whose answer was lost are released by the fetch's id. */
#include "conformance/checks/checks.h"

enum { LOST = 7, OTHER = 8, NEVER = 9, SHORT_MS = 1000 };

/* All items that one fetch brings of these; at least one comes. */
static struct dk_works *
fetch_many(struct dk_check *t, uint32_t max_items, uint64_t fetch_id)
{
  struct dk_works *works;

  must(t, try_fetch_work(t, &works, .max_items = max_items, .fetch_id = fetch_id));
  return works;
}

/* REL-1: the turn is free at once, with its messages in their places, and its delivery is not
 * counted. */
void
rel_turn(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "a"));
  must(t, enqueue(t, "inst", .id = "b"));
  struct dk_turn *turn = fetch_turn(t, .fetch_id = LOST);
  must(t, enqueue(t, "inst", .id = "c"));
  advance(t, 1);
  must(t, release_fetch(t, LOST));
  expect_dead_turn(t, turn->head.lock_token);
  turn = the_turn_of(t, "inst");
  expect_ids(t, turn, "a", "b", "c");
  expect_equal(t, turn->messages[0].attempt, 1, "attempt: what was lost does not count");
  must(t, ack_turn(t, turn));
  expect_no_turn(t);
}

/* REL-1, REL-2: a lease that has run out is released as one that is alive. */
void
rel_run_out(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst", .id = "a"));
  fetch_turn(t, .fetch_id = LOST, .lock_ms = SHORT_MS);
  must(t, release_fetch(t, LOST));
  fetch_turn(t, .fetch_id = LOST, .lock_ms = SHORT_MS);
  fetch_work(t, .fetch_id = OTHER, .lock_ms = SHORT_MS);
  advance(t, SHORT_MS);
  must(t, release_fetch(t, LOST));
  must(t, release_fetch(t, OTHER));
  expect_equal(t, the_turn_of(t, "inst")->messages[0].attempt, 1, "attempt of the message");
  expect_equal(t, the_item_of(t, "inst", 1)->work.attempt, 1, "attempt of the activity");
}

/* REL-2: all items of the fetch are free at once, and their deliveries are not counted. */
void
rel_work(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 3);
  struct dk_works *lost = fetch_many(t, 3, LOST);
  must(t, release_fetch(t, LOST));
  for (size_t i = 0; i < lost->n_items; i++)
    expect_dead_work(t, lost->items[i].work.lock_token);
  struct taken_work again = take_work(t);
  expect_equal(t, again.n, 3, "activities that can be fetched");
  for (size_t i = 0; i < again.n; i++) {
    expect_equal(t, again.items[i]->work.attempt, 1, "attempt: what was lost does not count");
    must(t, ack_work(t, again.items[i]->work.lock_token, .to = "inst"));
  }
}

/* REL-1, REL-2: what was renewed still belongs to the fetch, and is released with it. */
void
rel_renewed(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t, .fetch_id = LOST);
  struct dk_work_item *work = fetch_work(t, .fetch_id = OTHER);
  must(t, renew_turn(t, turn->head.lock_token));
  must(t, renew_work(t, work->work.lock_token));
  must(t, release_fetch(t, LOST));
  must(t, release_fetch(t, OTHER));
  the_turn_of(t, "inst");
  the_item_of(t, "inst", 1);
}

/* REL-3: the leases of other fetches continue, whether these have an id or not. */
void
rel_nothing_else(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 3);
  must(t, enqueue(t, "inst"));
  must(t, enqueue(t, "other"));
  struct dk_turn *with_id = fetch_turn(t, .fetch_id = OTHER);
  struct dk_turn *without = fetch_turn(t);
  struct dk_works *lost = fetch_many(t, 1, LOST), *others = fetch_many(t, 1, OTHER);
  struct dk_work_item *bare = fetch_work(t);
  must(t, release_fetch(t, LOST));
  expect_dead_work(t, lost->items[0].work.lock_token);
  must(t, renew_work(t, others->items[0].work.lock_token));
  must(t, renew_work(t, bare->work.lock_token));
  must(t, renew_turn(t, with_id->head.lock_token));
  must(t, renew_turn(t, without->head.lock_token));
  expect_equal(t, take_work(t).n, 1, "activities that can be fetched");
  expect_no_turn(t);
}

/* REL-3: a release by the id of a fetch that holds nothing is DK_OK, and changes nothing. */
void
rel_unknown(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 2);
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t, .fetch_id = LOST);
  must(t, ack_turn(t, turn, .events = {{50}}));
  must(t, enqueue(t, "inst"));
  fetch_turn(t);
  must(t, ack_work(t, fetch_work(t, .fetch_id = OTHER)->work.lock_token, .to = "inst"));
  fetch_work(t);
  before(t);
  must(t, release_fetch(t, NEVER));
  must(t, release_fetch(t, LOST));
  must(t, release_fetch(t, OTHER));
  expect_unchanged(t);
}

/* REL-3: what was fetched again since belongs to the new holder. */
void
rel_taken_over(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst"));
  fetch_turn(t, .fetch_id = LOST, .lock_ms = SHORT_MS);
  fetch_work(t, .fetch_id = LOST, .lock_ms = SHORT_MS);
  advance(t, SHORT_MS);
  struct dk_turn *turn = fetch_turn(t);
  struct dk_work_item *work = fetch_work(t);
  before(t);
  must(t, release_fetch(t, LOST));
  expect_unchanged(t);
  must(t, renew_turn(t, turn->head.lock_token));
  must(t, renew_work(t, work->work.lock_token));
}

/* REL-4: any handle may release it, and a fetch that waits returns the work. */
void
rel_another_handle(struct dk_check *t)
{
  struct actor *other = another_handle(t), *waiter = another_thread(t);
  struct dk_turn *turn;

  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst"));
  fetch_turn(t, .on = other, .fetch_id = LOST);
  fetch_work(t, .on = other, .fetch_id = LOST);
  must(t, try_fetch_turn(t, &turn, .on = waiter, .start = true, .wait_ms = LEASE_MS / 2));
  until_it_waits(t, waiter);
  int64_t began = now(t);
  insist(t, release_fetch(t, LOST));
  expect_status(t, finish(t, waiter), DK_OK);
  expect(t, finished_turn(t, waiter), "the waiting fetch brings the turn");
  expect(t, now(t) < began + LEASE_MS / 2, "it has woken before its time was up");
  the_item_of(t, "inst", 1);
}
