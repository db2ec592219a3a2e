/* SPDX-License-Identifier: Apache-2.0 */
/* CANCEL: an activity is cancelled by deleting its row, in the commit that decided it. */
#include "conformance/checks/checks.h"

/* ---- which rows are deleted, and which stay -------------------------------------------------- */

/* CANCEL-1: a cancelled row that is free is deleted, and the other rows stay. */
void
cancel_free_row(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 3);
  commit_cancelling(t, "inst", 2);
  struct taken_work work = take_work(t);
  expect_equal(t, work.n, 2, "activities that are left");
  expect(t, item_of(&work, "inst", 1, 1) && item_of(&work, "inst", 1, 3), "1 and 3 are left");
}

/* CANCEL-1: a row that a worker holds is deleted like any other; others are held as before. */
void
cancel_locked_row(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 3);
  struct taken_work held = take_work(t);
  commit_cancelling(t, "inst", 2);
  expect_dead_work(t, item_of(&held, "inst", 1, 2)->work.lock_token);
  must(t, renew_work(t, item_of(&held, "inst", 1, 1)->work.lock_token));
  advance(t, LEASE_MS);
  struct taken_work again = take_work(t);
  expect_equal(t, again.n, 2, "activities that come again when the leases have ended");
  expect(t, item_of(&again, "inst", 1, 1) && item_of(&again, "inst", 1, 3), "1 and 3 come again");
}

/* CANCEL-1: a row whose lease has run out is deleted, and no fetch returns it again. */
void
cancel_expired_row(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 2);
  struct taken_work held = take_work(t);
  advance(t, LEASE_MS);
  commit_cancelling(t, "inst", 2);
  the_item_of(t, "inst", 1);
  expect_dead_work(t, item_of(&held, "inst", 1, 2)->work.lock_token);
}

/* CANCEL-1: a row that is not due yet is deleted, and never becomes due. */
void
cancel_delayed_row(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"),
                   .schedule = {{1, .delay_ms = 5000}, {2, .visible_at = now(t) + 5000}, {3}}));
  must(t, abandon_work(t, the_item_of(t, "inst", 3)->work.lock_token, .ms = 5000));
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .cancel = {2, 3}));
  advance(t, 5000);
  the_item_of(t, "inst", 1);
}

/* CANCEL-1: a row that is bound to certain workers is deleted for them as well. */
void
cancel_bound_row(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"),
                   .schedule = {{1, .tag = "gpu"}, {2, .tag = "gpu"}, {3, .tag = "tape"}}));
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .cancel = {2, 3}));
  struct dk_work_item *work = fetch_work(t, .tag_rule = DK_TAG_LISTED, .tags = {"gpu"});
  expect_equal(t, work->item.activity_id, 1, "the activity that is left");
  expect_no_work(t, .tag_rule = DK_TAG_LISTED, .tags = {"gpu"});
  expect_no_work(t);
}

/* CANCEL-1: the same activity id of another instance stays, free or held. */
void
cancel_spares_other_instance(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  given_instance_with_activities(t, "other", 1);
  struct taken_work held = take_work(t);
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{2}}));
  must(t, ack_turn(t, next_turn(t, "other"), .schedule = {{2}}));
  must(t, ack_turn(t, next_turn(t, "inst"), .cancel = {1, 2}));
  expect_text(t, the_item_of(t, "other", 2)->item.instance, "other",
              "the instance whose activity 2 is left");
  must(t, ack_work(t, item_of(&held, "other", 1, 1)->work.lock_token));
  expect_dead_work(t, item_of(&held, "inst", 1, 1)->work.lock_token);
}

/* CANCEL-1: an id that begins like the turn's, or differs in case only, is another instance's. */
void
cancel_spares_similar_instance(struct dk_check *t)
{
  static const char *const others[] = {"inst-2", "inst2", "Inst", "INST", "inst ", "ins", "i_st"};
  enum { N_OTHERS = sizeof others / sizeof others[0] };

  for (size_t i = 0; i < N_OTHERS; i++)
    given_instance_with_activities(t, others[i], 1);
  given_instance_with_activities(t, "inst", 1);
  commit_cancelling(t, "inst", 1);
  struct taken_work left = take_work(t);
  for (size_t i = 0; i < N_OTHERS; i++)
    expect(t, item_of(&left, others[i], 1, 1), "the activity of \"%s\" stays", others[i]);
  expect_equal(t, left.n, N_OTHERS, "activities that are left");
}

/* CANCEL-1: the same activity id of another execution stays, of an earlier and of a later one. */
void
cancel_spares_other_execution(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 2);
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .schedule = {{1}, {2}}));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .cancel_of = {{1, 1}, {2, 2}}));
  struct taken_work work = take_work(t);
  expect_equal(t, work.n, 2, "activities that are left");
  expect(t, item_of(&work, "inst", 1, 2), "activity 2 of execution 1 is left");
  expect(t, item_of(&work, "inst", 2, 1), "activity 1 of execution 2 is left");
}

/* ---- part of the commit ---------------------------------------------------------------------- */

/* CANCEL-2: a commit that is refused deletes nothing, neither free rows nor held ones. */
void
cancel_part_of_the_commit(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *held = fetch_work(t);
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{2}}));
  struct dk_turn *turn = next_turn(t, "inst");

  before(t);
  expect_status(t, ack_turn(t, turn, .events = {{1}}, .cancel = {1, 2}), DK_DUPLICATE);
  expect_status(t, ack_turn(t, turn, .execution_id = 3, .cancel_of = {{1, 1}, {1, 2}}), DK_INVALID);
  expect_unchanged(t);
  must(t, renew_work(t, held->work.lock_token));
}

/* CANCEL-3: what one commit schedules and cancels leaves no row. */
void
cancel_schedule_and_cancel(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .schedule = {{7}, {8}, {9, .delay_ms = 1000}}, .cancel = {7, 9}));
  the_item_of(t, "inst", 8);
  advance(t, 1000);
  expect_no_work(t);
}

/* CANCEL-4: activities that are absent, done already or listed twice are no error. */
void
cancel_absent_and_twice(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, ack_work(t, fetch_work(t)->work.lock_token));
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{2}, {3}}));
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .cancel = {99, 2, 1, 2}, .cancel_of = {{7, 1}}));
  the_item_of(t, "inst", 3);
}

/* ---- what the worker is answered ------------------------------------------------------------- */

/* An activity that a worker holds, and that is then cancelled. */
static struct dk_bytes
given_cancelled_activity(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_bytes token = fetch_work(t)->work.lock_token;
  must(t, renew_work(t, token));
  commit_cancelling(t, "inst", 1);
  return token;
}

/* CANCEL-5: after the deletion the worker's heartbeat finds nothing, for good. */
void
cancel_renew_after_deletion(struct dk_check *t)
{
  struct dk_bytes token = given_cancelled_activity(t);

  before(t);
  expect_status(t, renew_work(t, token), DK_LOCK_LOST);
  expect_status(t, renew_work(t, token), DK_LOCK_LOST);
  expect_unchanged(t);
  expect_no_work(t);
}

/* CANCEL-5: after the deletion the worker's acknowledgement finds nothing, and enqueues nothing. */
void
cancel_ack_after_deletion(struct dk_check *t)
{
  struct dk_bytes token = given_cancelled_activity(t);

  before(t);
  expect_status(t, ack_work(t, token, .to = "inst", .payload = "done"), DK_LOCK_LOST);
  expect_status(t, ack_work(t, token), DK_LOCK_LOST);
  expect_unchanged(t);
  expect_no_turn(t);
}

/* CANCEL-5: after the deletion there is nothing to give back, and nothing is revived. */
void
cancel_abandon_after_deletion(struct dk_check *t)
{
  struct dk_bytes token = given_cancelled_activity(t);

  before(t);
  expect_status(t, abandon_work(t, token), DK_LOCK_LOST);
  expect_status(t, abandon_work(t, token, .ms = 5000), DK_LOCK_LOST);
  expect_unchanged(t);
  expect_no_work(t);
}

/* ---- the report ------------------------------------------------------------------------------ */

static void
expect_report(struct dk_check *t, const struct dk_commit_outcome *outcome, uint64_t free_rows,
              uint64_t locked_rows)
{
  expect(t, outcome->reported, "a commit that cancels activities reports its counts");
  expect_equal(t, outcome->report.free_rows, free_rows, "free rows that were deleted");
  expect_equal(t, outcome->report.locked_rows, locked_rows, "locked rows that were deleted");
  expect_equal(t, outcome->n_stolen, locked_rows, "rows that were reported as stolen");
}

/* CANCEL-6: the counts are of the rows that were deleted: not the length of the list, nor what the
 * commit inserts. */
void
cancel_report_counts(struct dk_check *t)
{
  struct dk_commit_outcome outcome;

  given_instance_with_activities(t, "inst", 1);
  fetch_work(t);
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{2}, {3, .delay_ms = 1000}, {4}, {5}}));
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{8}, {9}},
                   .cancel = {1, 2, 3, 4, 4, 8, 99}, .ret_outcome = &outcome));
  expect_report(t, &outcome, 3, 1);
  must(t, ack_turn(t, next_turn(t, "inst"), .cancel = {1, 99}, .ret_outcome = &outcome));
  expect_report(t, &outcome, 0, 0);
  must(t, ack_turn(t, next_turn(t, "inst"), .cancel = {5, 9}, .ret_outcome = &outcome));
  expect_report(t, &outcome, 2, 0);
}

static void
expect_stolen(struct dk_check *t, const struct dk_commit_outcome *outcome,
              const struct dk_work_item *work, const char *owner)
{
  for (size_t i = 0; i < outcome->n_stolen; i++) {
    const struct dk_stolen *stolen = &outcome->stolen[i];

    if (stolen->activity_id == work->item.activity_id) {
      expect_equal(t, stolen->execution_id, 1, "execution of the stolen row");
      expect_bytes(t, stolen->lock_token, work->work.lock_token, "the stolen row's token");
      expect_text(t, stolen->owner, owner, "owner of the stolen row");
      return;
    }
  }
  expect(t, false, "activity %llu was held and is reported as stolen",
         (unsigned long long)work->item.activity_id);
}

/* CANCEL-6: every row with a token is reported with identity, token and holder, even if expired. */
void
cancel_report_stolen(struct dk_check *t)
{
  struct dk_commit_outcome outcome;

  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *held = fetch_work(t, .owner = "alice");
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{2}}));
  struct dk_work_item *expired = fetch_work(t, .owner = "bob", .lock_ms = 1000);
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{3}}));
  struct dk_work_item *nameless = fetch_work(t, .owner = "");
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{4}}));
  must(t, abandon_work(t, fetch_work(t, .owner = "carol")->work.lock_token));
  advance(t, 2000);
  must(t, ack_turn(t, next_turn(t, "inst"), .cancel = {1, 2, 3, 4}, .ret_outcome = &outcome));
  expect_report(t, &outcome, 1, 3);
  expect_stolen(t, &outcome, held, "alice");
  expect_stolen(t, &outcome, expired, "bob");
  expect_stolen(t, &outcome, nameless, NULL);
}

/* ---- against an ack -------------------------------------------------------------------------- */

static dk_status
ack_answer(struct dk_check *t, struct actor *actor, struct dk_bytes token)
{
  dk_status status = finish(t, actor);

  for (int i = 0; i < MOST_RETRIES && is_retryable(status); i++)
    status = ack_work(t, token, .on = actor, .to = "sink");
  return status;
}

static struct dk_commit_outcome
cancel_outcome(struct dk_check *t, struct actor *actor, struct dk_turn *turn)
{
  dk_status status = finish(t, actor);
  struct dk_commit_outcome outcome = *finished_commit(t, actor);

  for (int i = 0; i < MOST_RETRIES && is_retryable(status); i++)
    status = ack_turn(t, turn, .on = actor, .cancel = {1}, .ret_outcome = &outcome);
  expect_status(t, status, DK_OK);
  return outcome;
}

/* CANCEL-7: in a race of ack and cancelling commit one wins: there is a completion, or a stolen row
 * and no completion. */
void
cancel_ack_races_commit(struct dk_check *t)
{
  struct actor *worker = racer(t), *runtime = racer(t);

  given_instance(t, "inst");
  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1}}));
    struct dk_bytes token = fetch_work(t)->work.lock_token;
    struct dk_turn *turn = next_turn(t, "inst");
    hold_at_line(t, worker);
    hold_at_line(t, runtime);
    must(t, ack_work(t, token, .on = worker, .start = true, .to = "sink"));
    must(t, ack_turn(t, turn, .on = runtime, .start = true, .cancel = {1}));
    witness(t, race(t, worker, runtime));
    dk_status acked = ack_answer(t, worker, token);
    struct dk_commit_outcome outcome = cancel_outcome(t, runtime, turn);

    expect_report(t, &outcome, 0, acked == DK_OK ? 0 : 1);
    if (acked != DK_OK) {
      expect_status(t, acked, DK_LOCK_LOST);
      expect_no_turn(t);
    } else {
      struct dk_turn *sink = the_turn_of(t, "sink");
      expect_equal(t, sink->n_messages, 1, "completions of an activity that was acked");
      must(t, ack_turn(t, sink, .empty = true));
    }
    expect_no_work(t);
  }
}

/* CANCEL-8: an ack without a completion removes the row and enqueues nothing. */
void
cancel_ack_without_completion(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, ack_work(t, fetch_work(t)->work.lock_token));
  expect_no_turn(t);
  advance(t, 4 * LEASE_MS);
  expect_no_turn(t);
  expect_no_work(t);
}

/* ---- no state -------------------------------------------------------------------------------- */

/* Fetch, renew, abandon and ack of the one activity there is, whatever its instance is. */
static void
run_activity(struct dk_check *t, const char *instance, uint64_t execution_id)
{
  struct dk_work_item *work = fetch_work(t);
  expect_text(t, work->item.instance, instance, "instance of the activity");
  expect_equal(t, work->item.execution_id, execution_id, "execution of the activity");
  must(t, renew_work(t, work->work.lock_token));
  must(t, abandon_work(t, work->work.lock_token));
  fetch_work(t, .lock_ms = 1000);
  advance(t, 1000);
  work = fetch_work(t);
  expect_equal(t, work->work.attempt, 3, "attempt");
  must(t, ack_work(t, work->work.lock_token, .to = instance, .id = "done"));
  struct dk_turn *turn = the_turn_of(t, instance);
  expect_ids(t, turn, "done");
  must(t, ack_turn(t, turn, .empty = true));
  expect_no_work(t);
}

/* CANCEL-9: work is work, whatever became of the orchestration. */
void
cancel_no_state(struct dk_check *t)
{
  static const struct {
    const char *instance;
    int32_t status;
  } states[] = {{"running", DK_RUNNING},
                {"completed", DK_COMPLETED},
                {"failed", DK_FAILED},
                {"cancelled", DK_CANCELLED},
                {"continued-as-new", DK_CONTINUED_AS_NEW}};

  for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
    given_instance_with_activities(t, states[i].instance, 1);
    must(t, ack_turn(t, next_turn(t, states[i].instance), .status = states[i].status));
    run_activity(t, states[i].instance, 1);
  }
  given_instance_with_activities(t, "next-execution", 1);
  must(t, ack_turn(t, next_turn(t, "next-execution"), .execution_id = 2, .status = DK_COMPLETED));
  run_activity(t, "next-execution", 1);
}

/* CANCEL-9: work is work, even if its execution or its instance never existed. */
void
cancel_no_instance(struct dk_check *t)
{
  must(t, enqueue_work(t, "unknown", .activity = {1}));
  run_activity(t, "unknown", 1);
  given_instance(t, "inst");
  must(t, enqueue_work(t, "inst", .activity = {1, .execution_id = 7}));
  run_activity(t, "inst", 7);
}

/* ---- many, and one row for one identity ------------------------------------------------------ */

enum { MOST_CANCELLED = 5000 };

static uint64_t
how_many(struct dk_check *t)
{
  uint64_t limit = provider(t)->limits->max_commit_items;

  return limit < MOST_CANCELLED ? limit : MOST_CANCELLED;
}

/* CANCEL-10: one commit cancels as many as the limits allow, some of them held by workers. */
void
cancel_mass(struct dk_check *t)
{
  struct dk_activity all[MOST_CANCELLED];
  struct dk_commit_outcome outcome;
  struct dk_works *works;
  uint64_t n = how_many(t), held = 0;

  given_instance(t, "inst");
  given_instance_with_activities(t, "other", 1);
  fetch_work(t);
  schedule_many(t, (struct dk_item){.activity_id = 1, .payload = bytes("one of many")}, n);
  for (int i = 0; i < 40 && held < n / 2; i++) { /* a fetch may bring fewer than it is asked for */
    expect_status(t, try_fetch_work(t, &works, .max_items = BATCH), DK_OK);
    held += works->n_items;
  }
  for (uint64_t i = 0; i < n; i++)
    all[i] = (struct dk_activity){1, n - i};
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .cancelled_activities = all, .n_cancelled_activities = n};
  must(t, ack_turn(t, next_turn(t, "inst"), .raw = &result, .ret_outcome = &outcome));
  expect_report(t, &outcome, n - held, held);
  expect_no_work(t);
  advance(t, LEASE_MS);
  expect_text(t, the_item_of(t, "other", 1)->item.instance, "other", "what is left in the end");
}

/* CANCEL-11: a second row of one identity refuses the commit, even if that cancels the first. */
void
cancel_identity_is_unique(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_turn *turn = next_turn(t, "inst");
  before(t);
  expect_status(t, ack_turn(t, turn, .events = {{2}}, .schedule = {{1}}), DK_DUPLICATE);
  expect_status(t, ack_turn(t, turn, .schedule = {{7}, {1}}, .cancel = {1}), DK_DUPLICATE);
  expect_unchanged(t);

  struct dk_work_item *held = fetch_work(t);
  before(t);
  expect_status(t, ack_turn(t, turn, .schedule = {{1}}), DK_DUPLICATE);
  expect_status(t, ack_turn(t, turn, .schedule = {{1}}, .cancel = {1}), DK_DUPLICATE);
  expect_unchanged(t);

  must(t, ack_turn(t, turn, .cancel = {1}));
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1, .payload = "anew"}}));
  struct dk_work_item *anew = the_item_of(t, "inst", 1);
  expect_text(t, anew->item.payload, "anew", "payload of the new row");
  expect_equal(t, anew->work.attempt, 1, "attempt of the new row");
  expect_dead_work(t, held->work.lock_token);
}

/* CANCEL-11: enqueue_for_worker refuses a second row of one identity as a commit does. */
void
cancel_identity_is_unique_directly(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  before(t);
  expect_status(t, enqueue_work(t, "inst", .activity = {1, .payload = "another"}), DK_DUPLICATE);
  expect_status(t, enqueue_work(t, "inst", .repeated = true, .activity = {1}), DK_DUPLICATE);
  expect_unchanged(t);

  must(t, enqueue_work(t, "inst", .repeated = true, .activity = {2}));
  must(t, enqueue_work(t, "inst", .activity = {1, .execution_id = 2}));
  must(t, enqueue_work(t, "other", .activity = {1}));
  struct dk_turn *turn = next_turn(t, "inst");
  before(t);
  expect_status(t, enqueue_work(t, "other", .activity = {1}), DK_DUPLICATE);
  expect_status(t, ack_turn(t, turn, .schedule = {{2}}), DK_DUPLICATE);
  expect_unchanged(t);
}
