/* SPDX-License-Identifier: Apache-2.0 */
/* CANCEL-9: if the row is there, it is work.  Whatever became of the orchestration meanwhile, its
 * rows are fetched, renewed, abandoned and acked as before, free ones and held ones; and only a
 * commit that lists them deletes them. */
#include "conformance/checks/checks.h"

/* ---- what may become of an orchestration ----------------------------------------------------- */

/* Each is brought about by one commit, after its activities were scheduled. */
static const struct end {
  const char *instance;
  struct ack_turn_args commit;
} ends[] = {
  {"running", {.status = DK_RUNNING}},
  {"completed", {.status = DK_COMPLETED, .output = "result"}},
  {"failed", {.status = DK_FAILED, .output = "reason"}},
  {"cancelled", {.status = DK_CANCELLED}},
  {"continued-as-new", {.status = DK_CONTINUED_AS_NEW}},
  {"in-its-next-execution", {.execution_id = 2, .status = DK_RUNNING}},
  {"over-in-its-next-execution", {.execution_id = 2, .status = DK_COMPLETED}},
};
enum { N_ENDS = sizeof ends / sizeof ends[0] };

static void
come_to(struct dk_check *t, const struct end *end)
{
  must(t, kit_ack_turn(t, next_turn(t, end->instance), &end->commit));
}

/* ---- rows that a worker holds ---------------------------------------------------------------- */

/* The activities of an instance, by what becomes of them. */
enum {
  RENEWED = 1, CUT_SHORT, GIVEN_BACK, TAGGED, NOT_COUNTED, PUT_OFF, ACKED, ACKED_FOR_LATER,
  ACKED_AGAIN, ACKED_WITHOUT, LEFT, N_ACTIVITIES = LEFT
};
/* When, in ms after the end of the orchestration, leases end and delayed rows or messages come. */
enum { CUT_MS = 5000, PUT_OFF_MS = 10000, LATER_MS = 15000, AT_MS = 20000, RENEWED_MS = 120000 };

static const char *
tag_of(uint64_t activity_id)
{
  return activity_id == TAGGED ? "gpu" : NULL;
}

static struct taken_work
given_held_work(struct dk_check *t, const char *instance)
{
  struct ack_turn_args commit = {.execution_id = 1};

  given_instance(t, instance);
  for (uint64_t i = 1; i <= N_ACTIVITIES; i++)
    commit.schedule[i - 1] = (struct activity){i, .tag = tag_of(i)};
  must(t, kit_ack_turn(t, next_turn(t, instance), &commit));
  struct taken_work held = take_work(t);
  expect_equal(t, held.n, N_ACTIVITIES, "activities of \"%s\" that are held", instance);
  return held;
}

/* It was abandoned, and is the only one that is ready: with this attempt and its tag. */
static void
comes_again(struct dk_check *t, const char *instance, uint64_t activity_id, uint32_t attempt)
{
  struct dk_work_item *again = the_item_of(t, instance, activity_id);

  expect_equal(t, again->work.attempt, attempt, "attempt of activity %d of \"%s\"",
               (int)activity_id, instance);
  expect_text(t, again->item.tag, tag_of(activity_id), "its tag");
  must(t, ack_work(t, again->work.lock_token));
}

/* What a worker may do with rows that it held when the orchestration ended. */
static void
go_on_with(struct dk_check *t, const struct taken_work *held, const char *instance)
{
  struct dk_bytes token[N_ACTIVITIES + 1];
  int64_t end = now(t);

  for (uint64_t i = 1; i <= N_ACTIVITIES; i++) {
    struct dk_work_item *work = item_of(held, instance, 1, i);
    expect(t, work, "activity %d of %s was fetched", (int)i, instance);
    token[i] = work->work.lock_token;
  }
  must(t, renew_work(t, token[RENEWED], .ms = RENEWED_MS));
  must(t, renew_work(t, token[CUT_SHORT], .ms = CUT_MS));
  must(t, abandon_work(t, token[PUT_OFF], .ms = PUT_OFF_MS));
  expect_no_work(t);
  must(t, abandon_work(t, token[GIVEN_BACK]));
  comes_again(t, instance, GIVEN_BACK, 2);
  must(t, abandon_work(t, token[TAGGED]));
  comes_again(t, instance, TAGGED, 2);
  must(t, abandon_work(t, token[NOT_COUNTED], .ignore_attempt = true));
  comes_again(t, instance, NOT_COUNTED, 1);

  must(t, ack_work(t, token[ACKED], .to = instance, .id = "done"));
  must(t, ack_work(t, token[ACKED_FOR_LATER], .to = instance, .id = "later",
                   .delay_ms = LATER_MS));
  must(t, ack_work(t, token[ACKED_AGAIN], .to = instance, .id = "marked", .repeated = true,
                   .visible_at = end + AT_MS));
  must(t, ack_work(t, token[ACKED_WITHOUT]));
  struct dk_turn *turn = the_turn_of(t, instance);
  expect_ids(t, turn, "done");
  must(t, ack_turn(t, turn, .empty = true));
  expect_no_work(t);
}

/* The row whose lease or delay ends now. */
static void
expect_row(struct dk_check *t, const char *instance, uint64_t activity_id)
{
  comes_again(t, instance, activity_id, 2);
  expect_no_turn(t);
}

static void
expect_completion(struct dk_check *t, const char *instance, const char *id)
{
  struct dk_turn *turn = the_turn_of(t, instance);

  expect_ids(t, turn, id);
  must(t, ack_turn(t, turn, .empty = true));
  expect_no_work(t);
}

/* What was delayed comes at its time and not earlier, and nothing else does. */
static void
expect_the_rest(struct dk_check *t, const char *instance)
{
  int64_t end = now(t);

  advance_to(t, end + CUT_MS);
  expect_row(t, instance, CUT_SHORT);
  advance_to(t, end + PUT_OFF_MS);
  expect_row(t, instance, PUT_OFF);
  advance_to(t, end + LATER_MS);
  expect_completion(t, instance, "later");
  advance_to(t, end + AT_MS);
  expect_completion(t, instance, "marked");
  advance_to(t, end + LEASE_MS);
  expect_row(t, instance, LEFT);
  advance_to(t, end + RENEWED_MS);
  expect_row(t, instance, RENEWED);
}

/* CANCEL-9: a row that is held stays held, and its token works, whatever became of its instance. */
void
cancel_no_state_held(struct dk_check *t)
{
  for (size_t i = 0; i < N_ENDS; i++) {
    struct taken_work held = given_held_work(t, ends[i].instance);
    come_to(t, &ends[i]);
    expect_no_work(t);
    go_on_with(t, &held, ends[i].instance);
    expect_the_rest(t, ends[i].instance);
  }
}

/* CANCEL-9: a row comes when it is due, whatever became of its instance until then. */
void
cancel_no_state_delayed(struct dk_check *t)
{
  for (size_t i = 0; i < N_ENDS; i++) {
    given_instance(t, ends[i].instance);
    must(t, ack_turn(t, next_turn(t, ends[i].instance),
                     .schedule = {{1, .delay_ms = 5000}, {2, .tag = "gpu", .delay_ms = 5000}}));
    come_to(t, &ends[i]);
  }
  expect_no_work(t);
  advance(t, 5000);
  struct taken_work due = take_work(t);
  expect_equal(t, due.n, 2 * N_ENDS, "activities that are due");
  for (size_t i = 0; i < N_ENDS; i++) {
    struct dk_work_item *tagged = item_of(&due, ends[i].instance, 1, 2);
    expect(t, item_of(&due, ends[i].instance, 1, 1) && tagged, "both activities of \"%s\" are due",
           ends[i].instance);
    must(t, ack_work(t, tagged->work.lock_token, .to = "sink"));
  }
}

/* CANCEL-9: neither a status that was never given, nor an instance that has only messages, hides
 * work; and the first commit of an instance leaves the rows that were there before it. */
void
cancel_no_state_before_birth(struct dk_check *t)
{
  must(t, enqueue(t, "waiting"));
  for (uint64_t i = 1; i <= N_ACTIVITIES; i++)
    must(t, enqueue_work(t, "waiting", .activity = {i, .tag = tag_of(i)}));
  struct taken_work held = take_work(t);
  struct dk_turn *turn = fetch_turn(t);
  must(t, enqueue_work(t, "waiting", .activity = {100}));
  must(t, ack_turn(t, turn, .events = {{1}}));
  struct dk_work_item *before = the_item_of(t, "waiting", 100);
  must(t, renew_work(t, before->work.lock_token));
  must(t, ack_work(t, before->work.lock_token));
  go_on_with(t, &held, "waiting");
  expect_the_rest(t, "waiting");
}

/* ---- the commit that ends it ----------------------------------------------------------------- */

/* CANCEL-1: a commit that ends an execution deletes what it lists, free or held, and no more. */
void
cancel_with_the_end(struct dk_check *t)
{
  struct dk_commit_outcome outcome;

  for (size_t i = 0; i < N_ENDS; i++) {
    given_instance_with_activities(t, ends[i].instance, 4);
    struct taken_work held = take_work(t);
    must(t, abandon_work(t, item_of(&held, ends[i].instance, 1, 1)->work.lock_token));
    must(t, abandon_work(t, item_of(&held, ends[i].instance, 1, 3)->work.lock_token));
    struct ack_turn_args commit = ends[i].commit;
    commit.cancel_of[0] = (struct dk_activity){1, 1};
    commit.cancel_of[1] = (struct dk_activity){1, 2};
    commit.ret_outcome = &outcome;
    must(t, kit_ack_turn(t, next_turn(t, ends[i].instance), &commit));
    expect_equal(t, outcome.report.free_rows, 1, "free rows that \"%s\" deleted",
                 ends[i].instance);
    expect_equal(t, outcome.report.locked_rows, 1, "locked rows that \"%s\" deleted",
                 ends[i].instance);
    expect_dead_work(t, item_of(&held, ends[i].instance, 1, 2)->work.lock_token);
    must(t, ack_work(t, the_item_of(t, ends[i].instance, 3)->work.lock_token));
    must(t, ack_work(t, item_of(&held, ends[i].instance, 1, 4)->work.lock_token));
  }
  advance(t, LEASE_MS);
  expect_no_work(t);
}

/* CANCEL-1: a commit after the end of the execution deletes what it lists. */
void
cancel_after_the_end(struct dk_check *t)
{
  for (size_t i = 0; i < N_ENDS; i++) {
    given_instance_with_activities(t, ends[i].instance, 3);
    struct taken_work held = take_work(t);
    must(t, abandon_work(t, item_of(&held, ends[i].instance, 1, 1)->work.lock_token));
    come_to(t, &ends[i]);
    struct dk_turn *turn = next_turn(t, ends[i].instance);
    must(t, ack_turn(t, turn, .execution_id = turn->head.execution_id,
                     .cancel_of = {{1, 1}, {1, 2}}));
    expect_no_work(t);
    expect_dead_work(t, item_of(&held, ends[i].instance, 1, 2)->work.lock_token);
    must(t, ack_work(t, item_of(&held, ends[i].instance, 1, 3)->work.lock_token));
  }
}
