/* SPDX-License-Identifier: Apache-2.0 */
/* ACK-1: a commit with every field filled is applied whole, or, however it is refused, not at
 * all. */
#include "conformance/checks/checks.h"

/* ---- a fat commit ---------------------------------------------------------------------------- */

static const struct dk_version pinned_to = {2, 0, 0};

/* What a commit can set besides events, activities and messages. */
#define ALL_THE_REST                                                                               \
  .status = DK_COMPLETED, .output = "result", .name = "renamed", .version = "2.0.0",               \
  .parent = "mother", .owner = "me", .pinned = &pinned_to, .cancel = {2},                          \
  .cancel_messages = {"timer"}

/* A correct commit. */
#define A_FAT_COMMIT                                                                               \
  ALL_THE_REST, .events = {{2}, {3}},                                                              \
  .schedule = {{7, .tag = "gpu"}, {8, .delay_ms = 70000}},                                         \
  .send = {{"other", .id = "hello"}, {"inst", .id = "late", .delay_ms = 60000}}

/* "inst" with activities 1 and 2 and a timer in 50 s; "other" has a message; a turn of "inst". */
static struct dk_turn *
given_much(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 2);
  must(t, enqueue(t, "inst", .id = "timer", .delay_ms = 50000));
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, enqueue(t, "other", .id = "there"));
  return turn;
}

/* All that the fat commit has done, just now. */
static void
expect_all_of_it(struct dk_check *t)
{
  struct dk_history *history = read_history(t, "inst");
  expect_equal(t, history->n_events, 3, "events of the history");
  expect_equal(t, history->execution.status, DK_COMPLETED, "status");
  expect_text(t, history->execution.output, "result", "output");
  struct taken_work work = take_work(t);
  expect_equal(t, work.n, 2, "work that is ready: one old activity and one new one");
  expect(t, item_of(&work, "inst", 1, 1), "the activity that was not cancelled is there");
  expect(t, item_of(&work, "inst", 1, 7), "the new activity is there");
  expect_ids(t, the_turn_of(t, "other"), "there", "hello");

  advance(t, 60000);
  struct taken_turns turns = take_turns(t);
  struct dk_turn *turn = turn_of(&turns, "inst");
  expect(t, turn, "the instance has a turn for the message to itself");
  expect_ids(t, turn, "late");
  expect_text(t, turn->head.name, "renamed", "name");
  expect_text(t, turn->head.version, "2.0.0", "version");
  expect_text(t, turn->head.parent_instance, "mother", "parent");
  must(t, abandon_turn(t, turn->head.lock_token));
  expect_equal(t, fetch_turn(t, .owner = "me")->n_events, 0, "events for the owner");
  advance(t, 10000);
  work = take_work(t);
  expect(t, item_of(&work, "inst", 1, 8), "the delayed activity is there");
}

/* ---- whole ----------------------------------------------------------------------------------- */

/* ACK-1: a commit with every field filled has all of its effects. */
void
ack_fat_commit(struct dk_check *t)
{
  struct dk_turn *turn = given_much(t);
  must(t, ack_turn(t, turn, A_FAT_COMMIT));
  expect_all_of_it(t);
}

/* ---- or not at all --------------------------------------------------------------------------- */

/* ACK-1: a fat commit that is refused for what is stored, or for its execution, changes nothing,
 * even if the fault is the last thing in it. */
void
ack_refused_changes_nothing(struct dk_check *t)
{
  struct dk_turn *turn = given_much(t);

  before(t);
  expect_status(t,
                ack_turn(t, turn, ALL_THE_REST, .events = {{1}, {2}}, .schedule = {{7}, {8}},
                         .send = {{"other", .id = "hello"}, {"inst"}}),
                DK_DUPLICATE);
  expect_unchanged(t);
  before(t);
  expect_status(t,
                ack_turn(t, turn, ALL_THE_REST, .events = {{2}, {3}}, .schedule = {{7}, {1}},
                         .send = {{"other", .id = "hello"}, {"inst"}}),
                DK_DUPLICATE);
  expect_unchanged(t);
  before(t);
  expect_status(t,
                ack_turn(t, turn, ALL_THE_REST, .events = {{2}, {3}}, .schedule = {{7}, {8}},
                         .send = {{"other", .id = "hello"}, {"inst"}, {"other", .id = "there"}}),
                DK_DUPLICATE);
  expect_unchanged(t);
  before(t);
  expect_status(t,
                ack_turn(t, turn, ALL_THE_REST, .events = {{2}, {3}}, .schedule = {{7}, {8}},
                         .send = {{"other", .id = "hello"}, {"inst"}, {"inst", .id = "timer"}}),
                DK_DUPLICATE);
  expect_unchanged(t);
  before(t);
  expect_status(t, ack_turn(t, turn, A_FAT_COMMIT, .execution_id = 7), DK_INVALID);
  expect_unchanged(t);
  must(t, ack_turn(t, turn, A_FAT_COMMIT));
  expect_all_of_it(t);
}

/* ACK-1: a fat commit without a live lease changes nothing: neither when the lease has run out, nor
 * when another holder has the turn, nor marked as a repeat, for it never landed. */
void
ack_late_changes_nothing(struct dk_check *t)
{
  struct dk_turn *turn = given_much(t);

  advance(t, LEASE_MS);
  before(t);
  expect_status(t, ack_turn(t, turn, A_FAT_COMMIT), DK_LOCK_LOST);
  expect_status(t, ack_turn(t, turn, A_FAT_COMMIT, .repeated = true), DK_LOCK_LOST);
  expect_unchanged(t);
  struct taken_turns taken = take_turns(t);
  struct dk_turn *anew = turn_of(&taken, "inst");
  expect(t, anew, "another holder gets the turn");
  before(t);
  expect_status(t, ack_turn(t, turn, A_FAT_COMMIT), DK_LOCK_LOST);
  expect_status(t, ack_turn(t, turn, A_FAT_COMMIT, .repeated = true), DK_LOCK_LOST);
  expect_unchanged(t);
  must(t, ack_turn(t, anew, A_FAT_COMMIT));
  advance(t, LEASE_MS); /* "other" was taken too */
  expect_all_of_it(t);
}

/* Does this provider give up a commit that is cancelled before it begins?  It may also apply it. */
static bool
gives_up_commits(struct dk_check *t)
{
  given_instance(t, "asked");
  struct dk_turn *turn = next_turn(t, "asked");
  cancel_call(t, NULL);
  dk_status status = ack_turn(t, turn, .status = DK_COMPLETED, .events = {{2}});
  if (status == DK_OK)
    return false;
  expect_status(t, status, DK_CALL_CANCELLED);
  must(t, ack_turn(t, turn, .status = DK_COMPLETED, .events = {{2}}));
  return true;
}

/* ACK-1: a fat commit that is cancelled before it begins changes nothing, or is applied whole. */
void
ack_cancelled_changes_nothing(struct dk_check *t)
{
  bool gives_up = gives_up_commits(t);
  struct dk_turn *turn = given_much(t);

  if (gives_up) {
    cancel_call(t, NULL);
    before(t);
    expect_status(t, ack_turn(t, turn, A_FAT_COMMIT), DK_CALL_CANCELLED);
    expect_unchanged(t);
    must(t, ack_turn(t, turn, A_FAT_COMMIT));
  } else {
    cancel_call(t, NULL);
    must(t, ack_turn(t, turn, A_FAT_COMMIT));
  }
  expect_all_of_it(t);
}
