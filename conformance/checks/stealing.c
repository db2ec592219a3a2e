/* SPDX-License-Identifier: Apache-2.0 */
/* CANCEL: the deletion takes a row from its holder, whichever that is by now, and in whatever state
 * the row is besides being held. */
#include "conformance/checks/checks.h"

/* The one row that a commit has taken away was held: by this token, and by this owner. */
static void
expect_one_stolen(struct dk_check *t, const struct dk_commit_outcome *outcome,
                  struct dk_bytes token, const char *owner)
{
  expect(t, outcome->reported, "a commit that cancels activities reports its counts");
  expect_equal(t, outcome->report.locked_rows, 1, "locked rows that were deleted");
  expect_equal(t, outcome->n_stolen, 1, "rows that were reported as stolen");
  expect_bytes(t, outcome->stolen[0].lock_token, token,
               "token of the stolen row: that of its last holder");
  expect_text(t, outcome->stolen[0].owner, owner, "owner of the stolen row: its last holder");
}

/* CANCEL-1, CANCEL-6: a row that was taken over is taken from its new holder; the former one is not
 * reported. */
void
cancel_taken_over_row(struct dk_check *t)
{
  struct dk_commit_outcome outcome;

  given_instance_with_activities(t, "inst", 1);
  struct dk_bytes former = fetch_work(t, .owner = "alice")->work.lock_token;
  advance(t, LEASE_MS);
  struct dk_bytes latest = fetch_work(t, .owner = "bob")->work.lock_token;
  must(t, renew_work(t, latest, .ms = 4 * LEASE_MS));
  must(t, ack_turn(t, next_turn(t, "inst"), .cancel = {1}, .ret_outcome = &outcome));
  expect_one_stolen(t, &outcome, latest, "bob");

  before(t);
  expect_dead_work(t, former);
  expect_dead_work(t, latest);
  expect_unchanged(t);
  advance(t, 4 * LEASE_MS);
  expect_no_work(t);
  expect_no_turn(t);
}

/* CANCEL-1: held, and something else besides: tagged, once delayed, fetched by another rule,
 * renewed, held for long. */
void
cancel_held_and_more(struct dk_check *t)
{
  struct dk_commit_outcome outcome;

  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"),
                   .schedule = {{1, .tag = "gpu"}, {2, .delay_ms = 1000}, {3}, {4}, {5}}));
  advance(t, 1000);
  struct taken_work held = take_work(t);
  expect_equal(t, held.n, 5, "activities that are held");
  must(t, abandon_work(t, item_of(&held, "inst", 1, 5)->work.lock_token, .ms = 1000));
  must(t, renew_work(t, item_of(&held, "inst", 1, 3)->work.lock_token, .ms = 1000));
  must(t, renew_work(t, item_of(&held, "inst", 1, 4)->work.lock_token,
                     .ms = INT64_C(365) * 24 * 3600 * 1000));
  advance(t, 1000);
  struct dk_work_item *again = fetch_activity(t, "inst", 5, .lock_ms = 1000);
  must(t, ack_turn(t, next_turn(t, "inst"), .cancel = {1, 2, 3, 4, 5}, .ret_outcome = &outcome));
  expect_equal(t, outcome.report.free_rows, 0, "free rows that were deleted");
  expect_equal(t, outcome.report.locked_rows, 5, "locked rows that were deleted");
  for (uint64_t i = 1; i <= 4; i++)
    expect_dead_work(t, item_of(&held, "inst", 1, i)->work.lock_token);
  expect_dead_work(t, again->work.lock_token);
  advance(t, INT64_C(366) * 24 * 3600 * 1000);
  expect_no_work(t);
}

/* Alice holds activity 1, and runs on `worker`; the deletion is made here. */
static void
steal_from(struct dk_check *t, struct actor *worker)
{
  struct dk_commit_outcome outcome;

  given_instance_with_activities(t, "inst", 2);
  struct dk_bytes token = fetch_activity(t, "inst", 1, .on = worker, .owner = "alice")
                            ->work.lock_token;
  must(t, renew_work(t, token, .on = worker));
  must(t, ack_turn(t, next_turn(t, "inst"), .cancel = {1}, .ret_outcome = &outcome));
  expect_one_stolen(t, &outcome, token, "alice");
  expect_status(t, renew_work(t, token, .on = worker), DK_LOCK_LOST);
  expect_status(t, ack_work(t, token, .on = worker, .to = "inst"), DK_LOCK_LOST);
  expect_status(t, abandon_work(t, token, .on = worker), DK_LOCK_LOST);
  expect_no_turn(t, .on = worker);
  advance(t, LEASE_MS);
  expect_equal(t, fetch_work(t, .on = worker)->item.activity_id, 2, "the activity that is left");
  expect_no_work(t, .on = worker);
  expect_no_work(t);
}

/* CANCEL-1: a row that another handle holds is taken from it. */
void
cancel_other_handle_holds(struct dk_check *t)
{
  steal_from(t, another_handle(t));
}

/* CANCEL-1: a row that another process holds is taken from it. */
void
cancel_other_process_holds(struct dk_check *t)
{
  steal_from(t, another_process(t));
}

/* ---- at the same time ------------------------------------------------------------------------ */

/* The answer of the fetch in the end; NULL: there was nothing. */
static struct dk_work_item *
fetched(struct dk_check *t, struct actor *worker)
{
  dk_status status = finish(t, worker);
  struct dk_works *works = status == DK_OK ? finished_work(t, worker) : NULL;

  for (int i = 0; i < MOST_RETRIES && is_retryable(status); i++)
    status = try_fetch_work(t, &works, .on = worker);
  if (status == DK_NOTHING)
    return NULL;
  expect_status(t, status, DK_OK);
  return &works->items[0];
}

/* CANCEL-6: in a race of fetch and cancelling commit, the row was fetched, and is reported as
 * stolen from its holder; or it was free, and no worker has it. */
void
cancel_fetch_races_commit(struct dk_check *t)
{
  struct actor *worker = racer(t), *runtime = racer(t);
  struct dk_works *none;

  given_instance(t, "inst");
  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1}}));
    struct dk_turn *turn = next_turn(t, "inst");
    hold_at_line(t, worker);
    hold_at_line(t, runtime);
    must(t, try_fetch_work(t, &none, .on = worker, .start = true, .owner = "alice"));
    must(t, ack_turn(t, turn, .on = runtime, .start = true, .cancel = {1}));
    witness(t, race(t, worker, runtime));
    struct dk_work_item *work = fetched(t, worker);
    dk_status status = finish(t, runtime);
    struct dk_commit_outcome outcome = *finished_commit(t, runtime);
    for (int i = 0; i < MOST_RETRIES && is_retryable(status); i++)
      status = ack_turn(t, turn, .on = runtime, .cancel = {1}, .ret_outcome = &outcome);
    expect_status(t, status, DK_OK);
    expect_equal(t, outcome.report.free_rows + outcome.report.locked_rows, 1,
                 "rows that were deleted, fetched or not");
    expect_equal(t, outcome.report.locked_rows, work ? 1 : 0,
                 "locked rows that were deleted: as many as were fetched before");
    if (work) {
      expect_one_stolen(t, &outcome, work->work.lock_token, "alice");
      expect_status(t, renew_work(t, work->work.lock_token), DK_LOCK_LOST);
    }
    expect_no_work(t);
  }
}
