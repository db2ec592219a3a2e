/* SPDX-License-Identifier: Apache-2.0 */
/* ABI: a handle that was opened with DK_OPEN_READ_ONLY. */
#include "conformance/checks/admin.h"

static void
open_to_read(struct dk_check *t)
{
  close_handle(t, NULL);
  open_handle_to_read(t);
}

static void
open_to_write(struct dk_check *t)
{
  close_handle(t, NULL);
  open_handle(t, NULL);
}

/* ABI-15: a store that does not exist is not found, and not made. */
void
abi_reader_makes_nothing(struct dk_check *t)
{
  uint32_t clock = clock_flag(t);

  expect_status(t, open_status(t, clock | DK_OPEN_READ_ONLY | DK_OPEN_CREATE, "absent"),
                DK_NOT_FOUND);
  expect_status(t, open_status(t, clock | DK_OPEN_READ_ONLY, "absent"), DK_NOT_FOUND);
  expect_status(t, open_status(t, clock, "absent"), DK_NOT_FOUND);
}

/* Every call that would write is refused: with work to fetch, and with tokens that are valid. */
static void
expect_refusals(struct dk_check *t, const struct dk_turn *held, struct dk_bytes work)
{
  struct dk_turn *turn;
  struct dk_works *works;

  expect_status(t, enqueue(t, "inst", .id = "more"), DK_REFUSED);
  expect_status(t, enqueue(t, "new"), DK_REFUSED);
  expect_status(t, try_fetch_turn(t, &turn), DK_REFUSED);
  expect_status(t, ack_turn(t, held, .events = {{next_event(held)}}, .cancel = {7}), DK_REFUSED);
  expect_status(t, renew_turn(t, held->head.lock_token, .ms = 2 * LEASE_MS), DK_REFUSED);
  expect_status(t, abandon_turn(t, held->head.lock_token), DK_REFUSED);
  expect_status(t, try_fetch_work(t, &works), DK_REFUSED);
  expect_status(t, renew_work(t, work, .ms = 2 * LEASE_MS), DK_REFUSED);
  expect_status(t, ack_work(t, work, .to = "inst"), DK_REFUSED);
  expect_status(t, abandon_work(t, work), DK_REFUSED);
}

/* ABI-15: what would write is refused and has no effect; histories are read. */
void
abi_reader_changes_nothing(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .events = {{2, "second"}}, .schedule = {{7}, {8}}));
  struct dk_bytes work = fetch_work(t)->work.lock_token;
  given_instance(t, "held");
  struct dk_turn *held = next_turn(t, "held");
  must(t, enqueue(t, "inst", .id = "news"));

  open_to_read(t);
  struct dk_history *history = read_history(t, "inst");
  expect_equal(t, history->n_events, 2, "events, for a reader");
  expect_text(t, history->events[1].payload, "second", "payload of event 2");
  expect_refusals(t, held, work);
  expect_equal(t, read_history(t, "held")->n_events, 1, "events");

  open_to_write(t);
  must(t, ack_turn(t, held, .events = {{next_event(held)}}));
  must(t, ack_work(t, work));
  struct dk_turn *turn = fetch_turn(t);
  expect_ids(t, turn, "news");
  expect_equal(t, turn->messages[0].attempt, 1,
               "attempt of a message that the reader could not fetch");
  expect_no_turn(t);
  expect_equal(t, fetch_work(t)->work.attempt, 1,
               "attempt of an activity that the reader could not fetch");
  expect_no_work(t);
}

/* ABI-15, ADMIN-7: a handle that was opened to read looks at instances, and removes none. */
void
admin_for_readers(struct dk_check *t)
{
  given_root(t, "done", DK_COMPLETED);
  given_executions(t, "loop", 3, 0);
  must(t, enqueue(t, "unborn", .id = "one"));

  open_to_read(t);
  expect_listed(t, list_instances(t), "done", "loop", "unborn");
  expect_executions(t, "loop", 1, 2, 3);
  expect_equal(t, read_messages(t, "unborn")->n_items, 1, "messages, for a reader");
  expect_equal(t, read_stats(t)->completed, 1, "completed instances, for a reader");
  expect_status(t, delete_instances(t, .ids = {"done"}), DK_REFUSED);
  expect_status(t, delete_instances(t, .ids = {"unborn"}, .force = true), DK_REFUSED);
  expect_status(t, delete_matching(t, .only = {.name = "order"}), DK_REFUSED);
  expect_status(t, prune(t, "loop", .keep = 1), DK_REFUSED);
  expect_status(t, prune_matching(t, .keep = 1), DK_REFUSED);

  open_to_write(t);
  expect_listed(t, list_instances(t), "done", "loop", "unborn");
  expect_executions(t, "loop", 1, 2, 3);
  expect_ids(t, fetch_turn_of(t, "unborn"), "one");
}
