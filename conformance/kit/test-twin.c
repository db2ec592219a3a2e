/* SPDX-License-Identifier: Apache-2.0 */
/* Twin runs: a changed store is found by its effects, and misuse of the functions is trouble. */
#include <stdlib.h>

#include "conformance/kit/test-meta.h"

/* ---- twin runs ------------------------------------------------------------------------------- */

static void
two_regions(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_turn *turn = next_turn(t, "inst");

  before(t);
  expect_status(t, ack_turn(t, turn, .events = {{1}}), DK_DUPLICATE);
  expect_status(t, renew_turn(t, bytes("?")), DK_LOCK_LOST);
  expect_unchanged(t);
  advance(t, 30000);
  before(t);
  expect_status(t, renew_turn(t, turn->head.lock_token), DK_LOCK_LOST);
  expect_status(t, traced(t, dk_store_renew_orchestration_item_lock(
                               store_of(t, NULL), caller_of(t, NULL), turn->head.lock_token, 5)),
                DK_LOCK_LOST);
  expect_unchanged(t);
  must(t, ack_turn(t, fetch_turn(t), .events = {{2}}));
}

static void
region_that_waits(struct dk_check *t)
{
  struct dk_turn *none;

  must(t, enqueue(t, "inst", .delay_ms = 9000));
  before(t);
  expect_status(t, try_fetch_turn(t, &none, .wait_ms = 5000), DK_NOTHING);
  expect_unchanged(t);
}

static void
region_among_others(struct dk_check *t)
{
  struct actor *handle = another_handle(t), *process = another_process(t);
  struct actor *waiter = another_thread(t);

  must(t, enqueue(t, "inst", .on = process));
  struct dk_turn *turn = fetch_turn(t, .on = handle);
  fetch_turn(t, .on = waiter, .start = true, .wait_ms = 1000);
  expect_status(t, finish(t, waiter), DK_NOTHING);
  before(t);
  expect_status(t, ack_turn(t, turn, .nameless = true), DK_INVALID);
  expect_status(t, renew_turn(t, bytes("?"), .on = process), DK_LOCK_LOST);
  expect_unchanged(t);
  must(t, ack_turn(t, turn, .on = process));
}

/* A call that is left out also uses up its cancellation: the drain must not be cancelled. */
static void
region_with_a_cancelled_call(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");

  cancel_call(t, NULL);
  before(t);
  expect_status(t, ack_turn(t, turn, .events = {{1}}), DK_DUPLICATE);
  expect(t, !dk_cancelled(t->shared->actors[0].canceller), "the next call runs again");
  expect_unchanged(t);
}

static void
region_that_enqueues(struct dk_check *t)
{
  before(t);
  must(t, enqueue(t, "inst", .id = "m1", .payload = "more"));
  expect_unchanged(t);
}

static void
region_that_moves_a_lease(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t);

  before(t);
  must(t, renew_turn(t, turn->head.lock_token, .ms = 45000));
  expect_unchanged(t);
}

static void
region_that_takes_off_an_attempt(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t);

  advance(t, 29999);
  before(t);
  must(t, abandon_turn(t, turn->head.lock_token, .ms = 1, .ignore_attempt = true));
  expect_unchanged(t);
}

/* Ignores the status: the effect alone must be found. */
static void
renew_of_an_expired_turn(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t);

  advance(t, 30000);
  before(t);
  renew_turn(t, turn->head.lock_token);
  expect_unchanged(t);
}

/* A fetch without owner and pin shows neither. */
static void
refused_with_owner_and_pin(struct dk_check *t)
{
  static const struct dk_version pin = {2, 0, 0};

  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");

  before(t);
  ack_turn(t, turn, .events = {{1}}, .owner = "me", .pinned = &pin);
  expect_unchanged(t);
}

/* Only the end of the lease shows it. */
static void
region_that_moves_a_short_lease(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t, .lock_ms = 300);

  before(t);
  must(t, renew_turn(t, turn->head.lock_token, .ms = 3000000));
  expect_unchanged(t);
}

static void
steady_with_a_short_lease(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  must(t, enqueue(t, "later", .delay_ms = 3000000));
  struct dk_turn *turn = fetch_turn(t, .lock_ms = 300);

  before(t);
  expect_status(t, ack_turn(t, turn, .nameless = true), DK_INVALID);
  expect_unchanged(t);
}

/* A look returns the same in all runs, even in the one that does not make it. */
static void
region_that_looks(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, enqueue(t, "inst", .id = "m1"));
  before(t);
  const struct dk_instances *list = list_instances(t, .only = {.ids = {"inst", "unknown"}});
  expect_equal(t, list->n_items, 1, "instances of the list");
  expect_text(t, list->items[0].name, "order", "name");
  expect_equal(t, list_executions(t, "inst")->n_items, 1, "executions");
  expect_text(t, read_messages(t, "inst")->items[0].id, "m1", "id of the message");
  expect_equal(t, read_stats(t)->running, 1, "instances that run");
  expect_status(t, delete_instances(t, .ids = {"unknown"}), DK_NOT_FOUND);
  expect_unchanged(t);
}

static void
region_that_deletes(struct dk_check *t)
{
  struct dk_removed removed;

  given_instance(t, "inst");
  before(t);
  must(t, delete_instances(t, .ids = {"inst"}, .force = true, .ret = &removed));
  expect_equal(t, removed.instances, 1, "deleted instances");
  expect_unchanged(t);
}

/* The runs differ: a fault of the check. */
static void
unsteady(struct dk_check *t)
{
  for (int32_t i = 0; i <= t->pass; i++)
    must(t, enqueue(t, "inst"));
  before(t);
  expect_unchanged(t);
}

static void
region_in_region(struct dk_check *t)
{
  before(t);
  before(t);
}

static void
fetches_in_region(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  before(t);
  fetch_turn(t);
  expect_unchanged(t);
}

static void
open_region(struct dk_check *t)
{
  before(t);
}

static void
starts_twice(struct dk_check *t)
{
  struct actor *waiter = another_thread(t);

  fetch_turn(t, .on = waiter, .start = true, .wait_ms = 1000);
  fetch_turn(t, .on = waiter);
}

static const struct expected twins[] = {
  {.name = "two regions of refused calls", .run = two_regions, .verdict = VERDICT_PASS,
   .trace = "main ack_orchestration_item is left out"},
  {.name = "a region that waits", .run = region_that_waits, .verdict = VERDICT_PASS},
  {.name = "a region among others", .run = region_among_others, .verdict = VERDICT_PASS,
   .processes = 1, .trace = "process 1 renew_orchestration_item_lock is left out"},
  {.name = "a region with a cancelled call", .run = region_with_a_cancelled_call,
   .verdict = VERDICT_PASS},
  {.name = "a region that enqueues", .run = region_that_enqueues, .verdict = VERDICT_FAIL,
   .message = "the refused call changed something (region 1)",
   .found = "with the refused call: at T+0 message of \"inst\" place 1 id \"m1\" attempt 1"},
  {.name = "a region that moves a lease", .run = region_that_moves_a_lease,
   .verdict = VERDICT_FAIL, .message = "with the refused call: nothing like it / without: message "
   "of \"inst\" place 1 id - attempt 2"},
  {.name = "a region that takes off an attempt", .run = region_that_takes_off_an_attempt,
   .verdict = VERDICT_FAIL, .found = "attempt 1 visible"},
  {.name = "the renewal of an expired turn", .run = renew_of_an_expired_turn,
   .verdict = VERDICT_PASS},
  {.name = "the same, where it has an effect", .run = renew_of_an_expired_turn,
   .mutant = "token/expired-turn-renews", .verdict = VERDICT_FAIL,
   .message = "the refused call changed something"},
  {.name = "a refusal with owner and pin", .run = refused_with_owner_and_pin,
   .verdict = VERDICT_PASS},
  {.name = "the same, where it changes the owner", .run = refused_with_owner_and_pin,
   .mutant = "ack/refusal-changes-owner", .verdict = VERDICT_FAIL,
   .message = "with the refused call: would come to owner me: instance \"inst\" with 0 events from "
   "2 / without: would come to owner me: instance \"inst\" with 1 events from 1"},
  {.name = "the same, where it pins", .run = refused_with_owner_and_pin,
   .mutant = "ack/refusal-pins", .verdict = VERDICT_FAIL,
   .message = "with the refused call: nothing like it / without: would come for all but 2.0.0: "
   "instance \"inst\" with 1 events from 1"},
  {.name = "a region that looks", .run = region_that_looks, .verdict = VERDICT_PASS,
   .trace = "main read_stats is left out"},
  {.name = "a region that deletes", .run = region_that_deletes, .verdict = VERDICT_FAIL,
   .message = "with the refused call: nothing like it / without: history of \"inst\" execution 1"},
  {.name = "a check that is not steady", .run = unsteady, .verdict = VERDICT_ERROR,
   .message = "differ at call 3, before the region: nothing more in one, main "
              "enqueue_for_orchestrator -> DK_OK in the other"},
  {.name = "a region in a region", .run = region_in_region, .verdict = VERDICT_ERROR,
   .message = "before() inside another region"},
  {.name = "a region that brings something", .run = fetches_in_region, .verdict = VERDICT_ERROR,
   .message = "only refused calls belong there"},
  {.name = "a region without an end", .run = open_region, .verdict = VERDICT_ERROR},
  {.name = "two calls of one actor", .run = starts_twice, .verdict = VERDICT_ERROR,
   .message = "thread 1 got fetch_orchestration_item while its call"},
};

/* On a busy machine a short lease may end too soon: these run only with DURAKIT_DEEP. */
static const struct expected in_real_time[] = {
  {.name = "in real time", .run = steady_with_a_short_lease, .real_time = true,
   .verdict = VERDICT_PASS, .trace = "not looked at: 1 instants more than 1000 ms away"},
  {.name = "a moved lease in real time", .run = region_that_moves_a_short_lease,
   .real_time = true, .verdict = VERDICT_FAIL,
   .message = "without: message of \"inst\" place 1 id - attempt 2"},
};

int
main(void)
{
  meta_begin();
  RUN_ALL(twins);
  if (getenv("DURAKIT_DEEP"))
    RUN_ALL(in_real_time);
  return meta_end();
}
