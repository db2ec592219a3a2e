/* SPDX-License-Identifier: Apache-2.0 */
/* TURN, ACK, CANCEL: what was answered with DK_OK is there when the store is opened again. */
#include "conformance/checks/checks.h"

static void
reopen(struct dk_check *t)
{
  close_handle(t, NULL);
  open_handle(t, NULL);
}

/* TURN-11: birth and the rest of the head are as before, and so is the owner. */
void
turn_same_after_reopening(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t), .name = "order", .version = "1.2.3", .parent = "mother",
                   .events = {{1}}));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .owner = "me", .events = {{4}}));
  struct dk_turn *turn = next_turn(t, "inst");
  uint64_t birth = turn->head.birth;
  must(t, abandon_turn(t, turn->head.lock_token));

  reopen(t);
  turn = fetch_turn(t, .owner = "me");
  expect_equal(t, turn->head.known, 1, "known, after the store was opened again");
  expect_equal(t, turn->head.birth, birth, "birth, after the store was opened again");
  expect_equal(t, turn->n_events, 0, "events for the owner of the last commit");
  expect_equal(t, turn->head.last_event_id, 4, "last event");
  expect_equal(t, turn->head.execution_id, 2, "execution");
  expect_text(t, turn->head.name, "order", "name");
  expect_text(t, turn->head.version, "1.2.3", "version");
  expect_text(t, turn->head.parent_instance, "mother", "parent");
  expect_equal(t, turn->messages[0].attempt, 2, "attempt of a message that was abandoned");
  must(t, ack_turn(t, turn, .execution_id = 2, .events = {{5}}));
  expect_equal(t, next_turn(t, "inst")->head.birth, birth, "birth, a commit later");
}

/* TURN-1: a lock and the end of its lease are stored: closing frees no instance. */
void
turn_lock_after_reopening(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  reopen(t);
  expect_no_turn(t);
  must(t, enqueue(t, "inst", .id = "later"));
  expect_no_turn(t);
  must(t, ack_turn(t, turn, .events = {{next_event(turn)}}));
  expect_ids(t, the_turn_of(t, "inst"), "later");
}

/* ACK-1: everything that a commit has stored is in the store, not in the handle. */
void
ack_same_after_reopening(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_COMPLETED, .output = "result",
                   .events = {{2, "second"}, {5, "fifth"}}, .schedule = {{7, .tag = "gpu"}},
                   .send = {{"other", .id = "sent"}, {"inst", .id = "late", .delay_ms = 3000}}));
  reopen(t);
  struct dk_history *history = read_history(t, "inst");
  expect_equal(t, history->n_events, 3, "events, after the store was opened again");
  expect_text(t, history->events[1].payload, "second", "payload of event 2");
  expect_equal(t, history->events[2].event_id, 5, "id of the last event");
  expect_text(t, history->events[2].payload, "fifth", "payload of event 5");
  expect_equal(t, history->execution.status, DK_COMPLETED, "status");
  expect_text(t, history->execution.output, "result", "output");
  expect_text(t, the_item_of(t, "inst", 7)->item.tag, "gpu", "tag of the activity");
  expect_ids(t, the_turn_of(t, "other"), "sent");
  advance(t, 3000);
  expect_ids(t, the_turn_of(t, "inst"), "late");
}

/* ACK-11: which token was committed last is stored with the commit. */
void
ack_repeated_after_reopening(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .events = {{2}}, .send = {{"other", .id = "sent"}}));
  reopen(t);
  expect_status(t, ack_turn(t, turn, .events = {{2}}), DK_LOCK_LOST);
  expect_status(t, ack_turn(t, turn, .repeated = true, .events = {{2}},
                            .send = {{"other", .id = "sent"}}), DK_OK);
  expect_ids(t, the_turn_of(t, "other"), "sent");
  expect_equal(t, read_history(t, "inst")->n_events, 2, "events: the repeat added none");
}

/* CANCEL-2: the deletion is as durable as the commit, and so are the rows that it spared. */
void
cancel_same_after_reopening(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 4);
  struct taken_work work = take_work(t);
  expect_equal(t, work.n, 4, "activities");
  struct dk_work_item *gone = item_of(&work, "inst", 1, 1), *back = item_of(&work, "inst", 1, 2);
  struct dk_work_item *held = item_of(&work, "inst", 1, 3), *free = item_of(&work, "inst", 1, 4);
  expect(t, gone && back && held && free, "the activities come with their identities");
  must(t, abandon_work(t, back->work.lock_token));
  must(t, abandon_work(t, free->work.lock_token));
  must(t, ack_turn(t, next_turn(t, "inst"), .cancel = {1, 4}));

  reopen(t);
  struct dk_work_item *again = the_item_of(t, "inst", 2);
  expect_equal(t, again->work.attempt, 2, "attempt, counted on after the store was opened again");
  expect_status(t, renew_work(t, gone->work.lock_token), DK_LOCK_LOST);
  must(t, ack_work(t, held->work.lock_token));
  must(t, ack_work(t, again->work.lock_token));
  advance(t, LEASE_MS);
  expect_no_work(t);
}
