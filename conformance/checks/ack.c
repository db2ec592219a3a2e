/* SPDX-License-Identifier: Apache-2.0 */
/* ACK: the commit of a turn, part by part.  ack-whole.c has the whole. */
#include "conformance/checks/checks.h"

#include <string.h>

/* ---- what stays ------------------------------------------------------------------------------ */

/* ACK-2: a refused commit keeps the lease and its end, and the same token carries a correct one. */
void
ack_refused_keeps_the_lease(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  advance(t, 1000);
  expect_status(t, ack_turn(t, turn, .events = {{1}}), DK_DUPLICATE);
  expect_status(t, ack_turn(t, turn, .execution_id = 7), DK_INVALID);
  expect_no_turn(t);
  must(t, enqueue(t, "inst", .id = "meanwhile"));
  advance(t, LEASE_MS - 1001);
  expect_no_turn(t);
  must(t, ack_turn(t, turn, .events = {{2}}));

  turn = fetch_turn(t);
  expect_ids(t, turn, "meanwhile");
  expect_equal(t, turn->head.last_event_id, 2, "last event, after the correct commit");
  expect_status(t, ack_turn(t, turn, .events = {{1}}), DK_DUPLICATE);
  advance(t, LEASE_MS);
  expect_equal(t, fetch_turn(t)->messages[0].attempt, 2, "attempt, after the lease has ended");
}

/* ACK-3: a commit removes the messages of its turn, and none that arrived later, are due later or
 * lie behind a bound. */
void
ack_removes_only_its_own(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, enqueue(t, "inst", .id = "given"));
  must(t, enqueue(t, "inst", .id = "behind"));
  must(t, enqueue(t, "inst", .id = "due-later", .delay_ms = 100));
  struct dk_turn *turn = fetch_turn(t, .max_messages = 1);
  expect_ids(t, turn, "given");
  must(t, enqueue(t, "inst", .id = "arrived"));
  must(t, enqueue(t, "inst", .id = "arrived-later", .delay_ms = 50));
  advance(t, 100);
  must(t, ack_turn(t, turn, .events = {{next_event(turn)}}));
  turn = fetch_turn(t);
  expect_ids(t, turn, "behind", "arrived", "arrived-later", "due-later");
  must(t, ack_turn(t, turn));
  advance(t, 4 * LEASE_MS);
  expect_no_turn(t);
}

/* ---- the form of a commit -------------------------------------------------------------------- */

/* ACK-4: the first commit of an unknown instance needs a name and a version. */
void
ack_first_commit_needs_name(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t);

  before(t);
  expect_status(t, ack_turn(t, turn, .nameless = true, .events = {{1}}), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .nameless = true, .name = "order"), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .nameless = true, .version = "1"), DK_INVALID);
  expect_unchanged(t);
  must(t, ack_turn(t, turn, .name = "order", .version = "1", .events = {{1}}));
  turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .nameless = true, .events = {{2}}));
}

/* ACK-5: a commit is for the current execution or the one after it; the first one is 1. */
void
ack_execution_current_or_next(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t);
  before(t);
  expect_status(t, ack_turn(t, turn, .execution_id = 2, .events = {{1}}), DK_INVALID);
  expect_unchanged(t);
  must(t, ack_turn(t, turn, .execution_id = 1, .events = {{1}}));

  turn = next_turn(t, "inst");
  before(t);
  expect_status(t, ack_turn(t, turn, .execution_id = 3, .events = {{11}}), DK_INVALID);
  expect_unchanged(t);
  must(t, ack_turn(t, turn, .execution_id = 2, .events = {{1}}));

  turn = next_turn(t, "inst");
  before(t);
  expect_status(t, ack_turn(t, turn, .execution_id = 1, .events = {{12}}), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .execution_id = 4, .events = {{13}}), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .execution_id = INT64_MAX, .events = {{14}}), DK_INVALID);
  expect_unchanged(t);
  must(t, ack_turn(t, turn, .execution_id = 2, .events = {{2}}));
  expect_equal(t, next_turn(t, "inst")->head.execution_id, 2, "execution of the next turn");
}

/* ACK-12: one event id that is not above the last one refuses the whole commit. */
void
ack_event_ids_ascend(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t), .events = {{2}, {5}}));
  struct dk_turn *turn = next_turn(t, "inst");

  before(t);
  expect_status(t, ack_turn(t, turn, .events = {{5, "another"}}), DK_DUPLICATE);
  expect_status(t, ack_turn(t, turn, .events = {{3}}), DK_DUPLICATE);
  expect_status(t, ack_turn(t, turn, .events = {{1}}), DK_DUPLICATE);
  expect_status(t, ack_turn(t, turn, .events = {{4}, {6}}), DK_DUPLICATE);
  expect_unchanged(t);
  must(t, ack_turn(t, turn, .events = {{6}, {9}}));
}

/* ---- what it sends --------------------------------------------------------------------------- */

/* ACK-6: worker items become work of the turn's instance, as they were given, when they are due. */
void
ack_schedules_work(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn,
                   .schedule = {{1, .payload = "plain"}, {2, .tag = "gpu"}, {3, .delay_ms = 1000},
                                {4, .visible_at = now(t) + 2000}, {5, .visible_at = 5}}));
  struct taken_work work = take_work(t);
  expect_equal(t, work.n, 3, "work that is ready at once");
  struct dk_work_item *plain = item_of(&work, "inst", 1, 1), *tagged = item_of(&work, "inst", 1, 2);
  expect(t, plain && tagged && item_of(&work, "inst", 1, 5), "activities 1, 2 and 5 are ready");
  expect_text(t, plain->item.payload, "plain", "payload of activity 1");
  expect_text(t, plain->item.tag, NULL, "tag of activity 1");
  expect_text(t, tagged->item.tag, "gpu", "tag of activity 2");
  expect_equal(t, plain->work.attempt, 1, "attempt of activity 1");

  advance(t, 999);
  expect_no_work(t);
  advance(t, 1);
  the_item_of(t, "inst", 3);
  advance(t, 999);
  expect_no_work(t);
  advance(t, 1);
  the_item_of(t, "inst", 4);
}

/* ACK-7: a timer is a message to itself that is visible at its time, not earlier. */
void
ack_timer_fires_on_time(struct dk_check *t)
{
  int64_t start = now(t);

  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn,
                   .send = {{"inst", .id = "at-5000", .visible_at = start + 5000},
                            {"inst", .id = "in-6000", .delay_ms = 6000},
                            {"inst", .id = "past", .visible_at = 5},
                            {"inst", .id = "at-5000-too", .visible_at = start + 5000}}));
  turn = fetch_turn(t);
  expect_ids(t, turn, "past");
  must(t, ack_turn(t, turn));
  advance_to(t, start + 4999);
  expect_no_turn(t);
  advance_to(t, start + 5000);
  turn = fetch_turn(t);
  expect_ids(t, turn, "at-5000", "at-5000-too");
  expect_equal(t, turn->messages[0].visible_at, start + 5000, "visible_at of the timer");
  must(t, ack_turn(t, turn));
  advance_to(t, start + 5999);
  expect_no_turn(t);
  advance_to(t, start + 6000);
  expect_ids(t, fetch_turn(t), "in-6000");
}

/* ACK-7: each message goes to the instance that it names, in the order of the list. */
void
ack_messages_to_others(struct dk_check *t)
{
  given_instance(t, "known");
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn,
                   .send = {{"unknown", .id = "start"},
                            {"known", .id = "z"},
                            {"inst", .id = "note"},
                            {"unknown", .id = "signal"},
                            {"known", .id = "a", .payload = "bytes"}}));
  struct taken_turns turns = take_turns(t);
  expect_equal(t, turns.n, 3, "instances that have a turn");
  struct dk_turn *known = turn_of(&turns, "known"), *unknown = turn_of(&turns, "unknown");
  expect(t, known && unknown && turn_of(&turns, "inst"), "all three instances have a turn");
  expect_ids(t, turn_of(&turns, "inst"), "note");
  expect_ids(t, unknown, "start", "signal");
  expect_equal(t, unknown->head.known, 0, "known, for an instance that only got messages");
  expect_ids(t, known, "z", "a");
  expect_text(t, known->messages[1].payload, "bytes", "payload of message a");
}

/* ACK-7: messages to an instance that has finished are delivered like any others: what to do with
 * them is for the runtime to decide. */
void
ack_messages_to_finished(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  given_instance(t, "finished");
  must(t, ack_turn(t, next_turn(t, "finished"), .status = DK_COMPLETED, .output = "result"));
  must(t, ack_turn(t, next_turn(t, "inst"), .send = {{"finished", .id = "sent"}}));
  must(t, ack_work(t, fetch_work(t)->work.lock_token, .to = "finished", .id = "done"));
  must(t, enqueue(t, "finished", .id = "signal"));
  struct dk_turn *turn = the_turn_of(t, "finished");
  expect_ids(t, turn, "sent", "done", "signal");
  expect_equal(t, turn->head.status, DK_COMPLETED, "status of the instance that has finished");
}

/* ACK-13: cancelled messages of this instance are removed with the commit, visible or not, stored
 * or not. */
void
ack_cancels_messages(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, enqueue(t, "inst", .id = "timer", .delay_ms = 5000));
  must(t, enqueue(t, "inst", .id = "kept", .delay_ms = 6000));
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, enqueue(t, "inst", .id = "arrived"));
  must(t, enqueue(t, "other", .id = "timer", .delay_ms = 5000));
  must(t, ack_turn(t, turn, .events = {{next_event(turn)}},
                   .send = {{"inst", .id = "both"}, {"other", .id = "both"}},
                   .cancel_messages = {"timer", "absent", "arrived", "timer", "both"}));
  expect_ids(t, the_turn_of(t, "other"), "both");

  advance(t, LEASE_MS);
  struct taken_turns turns = take_turns(t);
  expect_equal(t, turns.n, 2, "instances that have a turn");
  expect(t, turn_of(&turns, "inst") && turn_of(&turns, "other"), "both instances have a turn");
  expect_ids(t, turn_of(&turns, "inst"), "kept");
  expect_ids(t, turn_of(&turns, "other"), "both", "timer");
}

/* ---- the empty commit ------------------------------------------------------------------------ */

/* ACK-8: an empty commit removes the messages, sends others, releases the lock, and changes no
 * instance. */
void
ack_empty_commit(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "stray"));
  must(t, ack_turn(t, fetch_turn(t), .empty = true, .send = {{"inst", .id = "again"}}));
  struct dk_turn *turn = fetch_turn(t);
  expect_ids(t, turn, "again");
  expect_equal(t, turn->head.known, 0, "known, after an empty commit");
  expect_equal(t, read_history(t, "inst")->found, 0, "an execution, after an empty commit");

  must(t, ack_turn(t, turn, .status = DK_COMPLETED, .output = "result", .events = {{1}, {2}},
                   .owner = "me"));
  turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .empty = true, .send = {{"other", .id = "hello"}}));
  expect_ids(t, the_turn_of(t, "other"), "hello");
  must(t, enqueue(t, "inst", .id = "late"));
  turn = fetch_turn(t, .owner = "me");
  expect_ids(t, turn, "late");
  expect_equal(t, turn->n_events, 0, "events for the owner of the last commit that was not empty");
  expect_equal(t, turn->head.status, DK_COMPLETED, "status, after an empty commit");
  expect_equal(t, turn->head.execution_id, 1, "execution, after an empty commit");
  expect_equal(t, turn->head.last_event_id, 2, "last event, after an empty commit");
}

/* ACK-8: an empty commit with anything but messages in it is refused. */
void
ack_empty_commit_is_bare(struct dk_check *t)
{
  static const struct dk_version pinned_to = {2, 0, 0};

  given_instance_with_activities(t, "inst", 1);
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, enqueue(t, "inst", .id = "timer", .delay_ms = 5000));

  before(t);
  expect_status(t, ack_turn(t, turn, .empty = true, .events = {{2}}), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .empty = true, .schedule = {{7, 1}}), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .empty = true, .cancel_of = {{1, 1}}), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .empty = true, .cancel_messages = {"timer"}), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .empty = true, .status = DK_FAILED), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .empty = true, .output = "result"), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .empty = true, .name = "renamed"), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .empty = true, .version = "2"), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .empty = true, .parent = "mother"), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .empty = true, .owner = "me"), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .empty = true, .pinned = &pinned_to), DK_INVALID);
  expect_unchanged(t);
  must(t, ack_turn(t, turn, .empty = true, .send = {{"inst"}}));
}

/* ---- what it stores -------------------------------------------------------------------------- */

static void
expect_outcome(struct dk_check *t, int32_t status, const char *output, const char *when)
{
  struct dk_history *history = read_history(t, "inst");

  expect_equal(t, history->found, 1, "the execution, %s", when);
  expect_equal(t, history->execution.status, status, "status, %s", when);
  expect_text(t, history->execution.output, output, "output, %s", when);
}

/* ACK-9: a status is stored together with the output, present or absent; no status keeps both. */
void
ack_status_and_output(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t), .events = {{1}}));
  expect_outcome(t, DK_RUNNING, NULL, "of a new execution without a status");
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_RUNNING, .output = "half"));
  expect_outcome(t, DK_RUNNING, "half", "as stored");
  must(t, ack_turn(t, next_turn(t, "inst"), .events = {{2}}));
  expect_outcome(t, DK_RUNNING, "half", "after a commit without a status");
  must(t, ack_turn(t, next_turn(t, "inst"), .output = "ignored"));
  expect_outcome(t, DK_RUNNING, "half", "after a commit with an output, but without a status");
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_CONTINUED_AS_NEW));
  expect_outcome(t, DK_CONTINUED_AS_NEW, NULL, "after a status without an output");
  must(t, ack_turn(t, next_turn(t, "inst"), .events = {{3}}));
  expect_outcome(t, DK_CONTINUED_AS_NEW, NULL, "after another commit without a status");

  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2));
  expect_outcome(t, DK_RUNNING, NULL, "of the next execution");
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .status = DK_CANCELLED,
                   .output = ""));
  expect_outcome(t, DK_CANCELLED, "", "after a status with an empty output");
  expect_equal(t, next_turn(t, "inst")->head.status, DK_CANCELLED, "status in the head");
}

static void
expect_names(struct dk_check *t, const struct dk_turn *turn, const char *name, const char *version,
             const char *parent)
{
  expect_text(t, turn->head.name, name, "name");
  expect_text(t, turn->head.version, version, "version");
  expect_text(t, turn->head.parent_instance, parent, "parent");
}

/* ACK-10: name, version and parent stay as they were when they are absent, each by itself. */
void
ack_absent_keeps(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t), .name = "order", .version = "1.0.0", .parent = "mother"));
  struct dk_turn *turn = next_turn(t, "inst");
  expect_names(t, turn, "order", "1.0.0", "mother");
  must(t, ack_turn(t, turn, .nameless = true, .status = DK_RUNNING));
  turn = next_turn(t, "inst");
  expect_names(t, turn, "order", "1.0.0", "mother");
  must(t, ack_turn(t, turn, .nameless = true, .version = "1.1.0"));
  turn = next_turn(t, "inst");
  expect_names(t, turn, "order", "1.1.0", "mother");
  must(t, ack_turn(t, turn, .nameless = true, .execution_id = 2));
  expect_names(t, next_turn(t, "inst"), "order", "1.1.0", "mother");
}

/* ---- twice ----------------------------------------------------------------------------------- */

/* ACK-11: the repeat of a commit that landed is DK_OK without a second effect; without the mark it
 * is DK_LOCK_LOST. */
void
ack_repeated_once(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .repeated = true, .events = {{2}}));
  turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .send = {{"other"}}));
  must(t, enqueue(t, "inst", .id = "meanwhile"));
  expect_status(t, ack_turn(t, turn, .send = {{"other"}}), DK_LOCK_LOST);
  for (int i = 0; i < 2; i++)
    expect_status(t, ack_turn(t, turn, .repeated = true, .send = {{"other"}}), DK_OK);

  struct taken_turns turns = take_turns(t);
  expect_equal(t, turns.n, 2, "instances that have a turn");
  expect(t, turn_of(&turns, "inst") && turn_of(&turns, "other"), "both instances have a turn");
  expect_equal(t, turn_of(&turns, "other")->n_messages, 1, "messages that were sent");
  turn = turn_of(&turns, "inst");
  expect_ids(t, turn, "meanwhile");
  expect_equal(t, turn->head.last_event_id, 2, "last event");
  expect_equal(t, turn->messages[0].attempt, 1, "attempt: the repeat is not a delivery");
}

/* ACK-11: an empty commit is remembered by a known instance like any other. */
void
ack_repeated_empty(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .empty = true, .send = {{"other", .id = "sent"}}));
  expect_status(t, ack_turn(t, turn, .empty = true, .send = {{"other", .id = "sent"}}),
                DK_LOCK_LOST);
  expect_status(t, ack_turn(t, turn, .empty = true, .repeated = true,
                            .send = {{"other", .id = "sent"}}), DK_OK);
  expect_ids(t, the_turn_of(t, "other"), "sent");
}

/* QUEUE-4: duplicates are judged as the store was before the commit, with the turn's messages in
 * it. */
void
ack_own_message_is_stored(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, enqueue(t, "inst", .id = "tick"));
  struct dk_turn *turn = fetch_turn(t);
  before(t);
  expect_status(t, ack_turn(t, turn, .send = {{"inst", .id = "tick"}}), DK_DUPLICATE);
  expect_unchanged(t);

  must(t, ack_turn(t, turn));
  turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .send = {{"inst", .id = "tick"}}));
  expect_ids(t, the_turn_of(t, "inst"), "tick");
}

static dk_status
commit_status(struct dk_check *t, struct actor *actor, struct dk_bytes token, const char *payload)
{
  dk_status status = finish(t, actor);

  for (int i = 0; i < MOST_RETRIES && is_retryable(status); i++)
    status = ack_token(t, token, .on = actor, .send = {{"sink", .payload = payload}});
  return status;
}

/* ACK-14: of two commits with one token at once exactly one is applied, the other is refused. */
void
ack_one_token_one_commit(struct dk_check *t)
{
  struct actor *a = racer(t), *b = racer(t);

  given_instance(t, "inst");
  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    struct dk_bytes token = next_turn(t, "inst")->head.lock_token;
    hold_at_line(t, a);
    hold_at_line(t, b);
    must(t, ack_token(t, token, .on = a, .start = true, .send = {{"sink", .payload = "a"}}));
    must(t, ack_token(t, token, .on = b, .start = true, .send = {{"sink", .payload = "b"}}));
    witness(t, race(t, a, b));
    dk_status first = commit_status(t, a, token, "a"), second = commit_status(t, b, token, "b");
    expect_status(t, first == DK_OK ? second : first, DK_LOCK_LOST);
    expect_status(t, first == DK_OK ? first : second, DK_OK);
    struct dk_turn *sink = the_turn_of(t, "sink");
    expect_equal(t, sink->n_messages, 1, "messages sent by two commits of one turn");
    expect_text(t, sink->messages[0].payload, first == DK_OK ? "a" : "b",
                "payload of the commit that was answered with DK_OK");
    must(t, ack_turn(t, sink, .empty = true));
  }
}

/* ---- what a duplicate says ------------------------------------------------------------------- */

static void
expect_named(struct dk_check *t, const struct dk_turn *turn, const struct ack_turn_args *commit,
             int32_t list, uint64_t index)
{
  struct ack_turn_args args = *commit;
  struct named_item named;

  args.ret_duplicate = &named;
  expect_status(t, kit_ack_turn(t, turn, &args), DK_DUPLICATE);
  expect_equal(t, named.list, list, "the list of the item that is stored");
  expect_equal(t, named.index, index, "its index in the list");
}

#define COMMIT(...) (&(struct ack_turn_args){__VA_ARGS__})

/* ACK-15: the refusal names the item that is stored, in whichever list and at whichever index. */
void
ack_duplicate_is_named(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, enqueue(t, "other", .id = "stored"));
  uint64_t last = turn->head.last_event_id;

  expect_named(t, turn, COMMIT(.events = {{last}, {last + 1}}, .schedule = {{7}}),
               DK_LIST_EVENTS, 0);
  expect_named(t, turn, COMMIT(.events = {{last + 1}}, .schedule = {{7}, {1}, {8}},
                               .send = {{"inst", .id = "sent"}}),
               DK_LIST_WORKER_ITEMS, 1);
  expect_named(t, turn, COMMIT(.events = {{last + 1}}, .schedule = {{7}},
                               .send = {{"other"}, {"inst", .id = "stored"},
                                        {"other", .id = "sent"}, {"other", .id = "stored"},
                                        {"third", .id = "stored"}}),
               DK_LIST_ORCHESTRATOR_ITEMS, 3);
  expect_named(t, turn, COMMIT(.empty = true,
                               .send = {{"third", .id = "sent"}, {"other", .id = "stored"}}),
               DK_LIST_ORCHESTRATOR_ITEMS, 1);
  must(t, ack_turn(t, turn, .events = {{last + 1}}, .schedule = {{7}, {8}}));
}

/* Removes the item that was named, which must be one that is stored, from the commit. */
static void
leave_out(struct dk_check *t, struct ack_turn_args *commit, const struct named_item *named)
{
  size_t i = (size_t)named->index;

  if (named->list == DK_LIST_WORKER_ITEMS) {
    expect_equal(t, commit->schedule[i].activity_id, 1, "the activity that the refusal names");
    memmove(&commit->schedule[i], &commit->schedule[i + 1],
            (15 - i) * sizeof(commit->schedule[i]));
    return;
  }
  expect_equal(t, named->list, DK_LIST_ORCHESTRATOR_ITEMS, "the list of the item that is stored");
  expect(t, strncmp(commit->send[i].id, "stored", 6) == 0,
         "message %s, which the refusal names, is stored",
         commit->send[i].id);
  memmove(&commit->send[i], &commit->send[i + 1], (15 - i) * sizeof(commit->send[i]));
}

/* ACK-15, ACK-2: of several stored items each refusal names one, until the commit has none left. */
void
ack_duplicates_one_by_one(struct dk_check *t)
{
  struct named_item named;

  given_instance_with_activities(t, "inst", 1);
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, enqueue(t, "other", .id = "stored"));
  must(t, enqueue(t, "third", .id = "stored too"));
  struct ack_turn_args commit = {
    .events = {{next_event(turn)}}, .schedule = {{7}, {1}}, .ret_duplicate = &named,
    .send = {{"third", .id = "new"}, {"other", .id = "stored"}, {"other", .id = "new"},
             {"third", .id = "stored too"}}};

  for (int i = 0; i < 3; i++) {
    expect_status(t, kit_ack_turn(t, turn, &commit), DK_DUPLICATE);
    leave_out(t, &commit, &named);
  }
  must(t, kit_ack_turn(t, turn, &commit));
  struct taken_turns turns = take_turns(t);
  expect_equal(t, turns.n, 2, "instances that have a turn");
  expect_ids(t, turn_of(&turns, "other"), "stored", "new");
  expect_ids(t, turn_of(&turns, "third"), "stored too", "new");
  expect_equal(t, take_work(t).n, 2, "activities that can be fetched");
}
