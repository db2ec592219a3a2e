/* SPDX-License-Identifier: Apache-2.0 */
/* ACK, WORK: calls that are marked DK_REPEATED.  The mark does not replace a token: a caller that
 * has lost its lock is refused, and only what has landed is answered as done. */
#include "conformance/checks/checks.h"

/* ---- commits --------------------------------------------------------------------------------- */

static void
expect_lost_commit(struct dk_check *t, struct dk_bytes token)
{
  expect_status(t,
                ack_token(t, token, .repeated = true, .status = DK_COMPLETED, .output = "stale",
                          .events = {{1000}}, .schedule = {{1000}},
                          .send = {{"elsewhere", .id = "stale"}}),
                DK_LOCK_LOST);
  expect_status(t, ack_token(t, token, .repeated = true, .empty = true), DK_LOCK_LOST);
}

/* ACK-11: the repeat of a commit that never landed needs a live token, as every commit does. */
void
ack_repeated_is_fenced(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, enqueue(t, "inst"));
  struct dk_bytes slow = fetch_turn(t, .lock_ms = 1000)->head.lock_token;
  advance(t, 2000);
  before(t);
  expect_lost_commit(t, slow);
  expect_unchanged(t);

  struct dk_turn *holder = fetch_turn(t);
  before(t);
  expect_lost_commit(t, slow);
  expect_unchanged(t);
  must(t, ack_turn(t, holder, .events = {{next_event(holder)}}));
}

/* ACK-11: only the last token that was committed has landed; an abandoned one has not. */
void
ack_repeated_last_only(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  struct dk_bytes older = turn->head.lock_token;
  must(t, ack_turn(t, turn, .events = {{2}}));
  turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .events = {{3}}));
  before(t);
  expect_lost_commit(t, older);
  expect_unchanged(t);

  turn = next_turn(t, "inst");
  must(t, abandon_turn(t, turn->head.lock_token));
  before(t);
  expect_lost_commit(t, turn->head.lock_token);
  expect_unchanged(t);
}

/* ACK-11: the last commit is remembered beside the turn that is fetched next, and long after. */
void
ack_repeated_beside_next_turn(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *landed = next_turn(t, "inst");
  must(t, ack_turn(t, landed, .events = {{2}}, .send = {{"other", .id = "sent"}}));
  struct dk_turn *next = next_turn(t, "inst");
  before(t);
  expect_status(t, ack_turn(t, landed, .repeated = true, .events = {{2}},
                            .send = {{"other", .id = "sent"}}), DK_OK);
  expect_unchanged(t);
  advance(t, LEASE_MS - 1);
  expect_status(t, ack_turn(t, landed, .repeated = true, .events = {{2}}), DK_OK);
  must(t, ack_turn(t, next, .events = {{3}}));
  expect_status(t, ack_turn(t, landed, .repeated = true, .events = {{2}}), DK_LOCK_LOST);
}

/* ---- acks ------------------------------------------------------------------------------------ */

static void
expect_lost_ack(struct dk_check *t, struct dk_bytes token)
{
  expect_status(t, ack_work(t, token, .repeated = true, .to = "elsewhere", .id = "stale"),
                DK_LOCK_LOST);
  expect_status(t, ack_work(t, token, .repeated = true), DK_LOCK_LOST);
}

/* WORK-10: the repeat of an ack that never landed needs a live token, as every ack does. */
void
work_repeated_ack_is_fenced(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_bytes slow = fetch_work(t, .lock_ms = 1000)->work.lock_token;
  advance(t, 2000);
  before(t);
  expect_lost_ack(t, slow);
  expect_unchanged(t);

  struct dk_work_item *holder = fetch_work(t);
  before(t);
  expect_lost_ack(t, slow);
  expect_unchanged(t);
  must(t, ack_work(t, holder->work.lock_token, .repeated = true, .to = "inst", .id = "done"));
  expect_ids(t, the_turn_of(t, "inst"), "done");
}
