/* SPDX-License-Identifier: Apache-2.0 */
/* CANCEL-5: an ack that finds no row fails for good, whatever it carries, wherever its completion
 * is addressed, however often it is tried, and whatever row has replaced its own. */
#include "conformance/checks/checks.h"

/* Three activities that a worker holds; the first two are cancelled. */
static struct dk_bytes
given_one_cancelled(struct dk_check *t)
{
  given_instance(t, "other");
  given_instance_with_activities(t, "inst", 3);
  struct dk_bytes token = fetch_activity(t, "inst", 1)->work.lock_token;
  must(t, ack_turn(t, next_turn(t, "inst"), .cancel = {1, 2}));
  must(t, enqueue(t, "other", .id = "stored", .delay_ms = 5000));
  return token;
}

/* CANCEL-5: wherever the completion is addressed, nothing arrives there. */
void
cancel_ack_goes_nowhere(struct dk_check *t)
{
  struct dk_bytes token = given_one_cancelled(t);

  before(t);
  expect_status(t, ack_work(t, token, .to = "inst", .id = "done"), DK_LOCK_LOST);
  expect_status(t, ack_work(t, token, .to = "other", .id = "done"), DK_LOCK_LOST);
  expect_status(t, ack_work(t, token, .to = "unknown", .id = "done"), DK_LOCK_LOST);
  expect_status(t, ack_work(t, token, .to = "inst", .delay_ms = 3000), DK_LOCK_LOST);
  expect_status(t, ack_work(t, token, .to = "inst", .visible_at = now(t) + 4000), DK_LOCK_LOST);
  expect_status(t, ack_work(t, token, .to = "other", .id = "stored"), DK_LOCK_LOST);
  expect_status(t, ack_work(t, token), DK_LOCK_LOST);
  expect_unchanged(t);
  expect_no_turn(t);
  advance(t, LEASE_MS);
  the_item_of(t, "inst", 3);
}

/* CANCEL-5: the marked repeat of an ack that never landed finds no row either. */
void
cancel_repeated_ack_of_cancelled(struct dk_check *t)
{
  struct dk_bytes token = given_one_cancelled(t);

  before(t);
  expect_status(t, ack_work(t, token, .to = "inst", .id = "done"), DK_LOCK_LOST);
  expect_status(t, ack_work(t, token, .to = "inst", .id = "done", .repeated = true),
                DK_LOCK_LOST);
  expect_status(t, ack_work(t, token, .to = "other", .repeated = true), DK_LOCK_LOST);
  expect_status(t, ack_work(t, token, .repeated = true), DK_LOCK_LOST);
  expect_unchanged(t);
}

static void
expect_lost_for_good(struct dk_check *t, struct dk_bytes token)
{
  for (int i = 0; i < 3; i++)
    expect_status(t, ack_work(t, token, .to = "inst", .id = "late"), DK_LOCK_LOST);
  expect_status(t, ack_work(t, token), DK_LOCK_LOST);
}

/* CANCEL-5: tried again and again, whatever happens meanwhile: even when there is a new row with
 * this identity, free, held or done. */
void
cancel_ack_is_lost_for_good(struct dk_check *t)
{
  struct dk_bytes token = given_one_cancelled(t);

  expect_lost_for_good(t, token);
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1, .payload = "anew"}}));
  expect_lost_for_good(t, token);
  struct dk_work_item *anew = fetch_activity(t, "inst", 1);
  expect_text(t, anew->item.payload, "anew", "payload of the new row");
  expect_equal(t, anew->work.attempt, 1, "attempt of the new row");
  expect_lost_for_good(t, token);
  must(t, renew_work(t, anew->work.lock_token));
  must(t, ack_work(t, anew->work.lock_token, .to = "inst", .id = "done"));
  expect_lost_for_good(t, token);
  struct dk_turn *turn = the_turn_of(t, "inst");
  expect_ids(t, turn, "done");
  must(t, ack_turn(t, turn, .status = DK_COMPLETED));
  advance(t, 4 * LEASE_MS);
  expect_lost_for_good(t, token);
  expect_ids(t, the_turn_of(t, "other"), "stored");
}

/* CANCEL-7: an ack that came first has won: the cancelling commit finds no row, the completion
 * stays, and the commit succeeds. */
void
cancel_ack_came_first(struct dk_check *t)
{
  struct dk_commit_outcome outcome;

  given_instance_with_activities(t, "inst", 2);
  struct taken_work held = take_work(t);
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_work(t, item_of(&held, "inst", 1, 1)->work.lock_token, .to = "inst", .id = "done"));
  must(t, ack_turn(t, turn, .cancel = {1, 2}, .ret_outcome = &outcome));
  expect_equal(t, outcome.report.free_rows, 0, "free rows that were deleted");
  expect_equal(t, outcome.report.locked_rows, 1, "locked rows that were deleted");
  expect_equal(t, outcome.n_stolen, 1, "rows that were reported as stolen");
  expect_equal(t, outcome.stolen[0].activity_id, 2, "the activity that was stolen");
  expect_status(t, ack_work(t, item_of(&held, "inst", 1, 2)->work.lock_token, .to = "inst"),
                DK_LOCK_LOST);
  expect_ids(t, the_turn_of(t, "inst"), "done");
}
