/* SPDX-License-Identifier: Apache-2.0 */
/* POISON: how often a message or work item has been handed out, and what does not count. */
#include "conformance/checks/checks.h"

enum { SHORT_MS = 1000, DELIVERIES = 6 };

static void
expect_attempt_of(struct dk_check *t, const struct dk_turn *turn, const char *id, uint32_t attempt)
{
  for (size_t i = 0; i < turn->n_messages; i++) {
    if (!same_bytes(turn->messages[i].id, bytes(id)))
      continue;
    expect_equal(t, turn->messages[i].attempt, attempt, "attempt of message \"%s\"", id);
    return;
  }
  expect(t, false, "message \"%s\" is in the turn", id);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* POISON-1: attempt is 1 at the first delivery, and one more at each further one: even if the first
 * came late, and with renewals between, which are not deliveries. */
void
poison_one_more_each_time(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "m", .delay_ms = 5000));
  advance(t, 7000);
  for (uint32_t attempt = 1; attempt <= DELIVERIES; attempt++) {
    struct dk_turn *turn = fetch_turn(t, .owner = attempt % 2 ? "one" : "two");
    expect_attempt_of(t, turn, "m", attempt);
    must(t, renew_turn(t, turn->head.lock_token));
    must(t, abandon_turn(t, turn->head.lock_token, .ms = attempt % 3 ? 0 : SHORT_MS));
    advance(t, SHORT_MS);
  }
}

/* POISON-1: the count of a message belongs to the store, and not to a handle. */
void
poison_whoever_fetches(struct dk_check *t)
{
  struct actor *other = another_handle(t);

  must(t, enqueue(t, "inst", .id = "m"));
  for (uint32_t attempt = 1; attempt <= DELIVERIES; attempt++) {
    struct actor *who = attempt % 3 ? other : NULL;
    struct dk_turn *turn = fetch_turn(t, .on = who);
    expect_attempt_of(t, turn, "m", attempt);
    must(t, abandon_turn(t, turn->head.lock_token, .on = who));
  }
}

/* POISON-1: the count is stored: it continues when the store is opened again. */
void
poison_counts_on_after_reopening(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "m"));
  must(t, abandon_turn(t, fetch_turn(t)->head.lock_token));
  expect_attempt_of(t, fetch_turn(t, .lock_ms = SHORT_MS), "m", 2);
  close_handle(t, NULL);
  open_handle(t, NULL);
  advance(t, SHORT_MS);
  expect_attempt_of(t, fetch_turn(t), "m", 3);
}

/* POISON-2: a crash loop, in which no process ever abandons anything, is counted. */
void
poison_expired_counts(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, enqueue(t, "inst", .id = "m"));
  for (uint32_t attempt = 1; attempt <= DELIVERIES; attempt++) {
    expect_attempt_of(t, fetch_turn(t, .lock_ms = SHORT_MS), "m", attempt);
    advance(t, attempt % 2 ? SHORT_MS : 5 * SHORT_MS);
  }
}

/* POISON-3: each message has a count of its own, however it came and whatever is delivered with
 * it. */
void
poison_each_message_its_own(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "bad"));
  for (int i = 0; i < DELIVERIES; i++)
    must(t, abandon_turn(t, fetch_turn(t)->head.lock_token));
  must(t, enqueue(t, "inst", .id = "second"));
  struct dk_turn *turn = fetch_turn(t);
  expect_attempt_of(t, turn, "bad", DELIVERIES + 1);
  expect_attempt_of(t, turn, "second", 1);
  must(t, enqueue(t, "inst", .id = "third"));
  must(t, abandon_turn(t, turn->head.lock_token));
  turn = fetch_turn(t);
  expect_attempt_of(t, turn, "bad", DELIVERIES + 2);
  expect_attempt_of(t, turn, "second", 2);
  expect_attempt_of(t, turn, "third", 1);
}

/* POISON-3: a later message with the id of a consumed one does not inherit its count. */
void
poison_count_goes_with_its_message(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, enqueue(t, "inst", .id = "m"));
  must(t, abandon_turn(t, fetch_turn(t)->head.lock_token));
  must(t, abandon_turn(t, fetch_turn(t)->head.lock_token));
  must(t, ack_turn(t, fetch_turn(t), .events = {{2}}));
  must(t, enqueue(t, "inst", .id = "m"));
  expect_attempt_of(t, fetch_turn(t), "m", 1);
}

/* POISON-4: with ignore_attempt the next delivery has the number of this one; without, one more. */
void
poison_ignored_attempt(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "m"));
  for (int i = 0; i < 3; i++) {
    struct dk_turn *turn = fetch_turn(t);
    expect_attempt_of(t, turn, "m", 1);
    must(t, abandon_turn(t, turn->head.lock_token, .ignore_attempt = true));
  }
  must(t, abandon_turn(t, fetch_turn(t)->head.lock_token));
  must(t, abandon_turn(t, fetch_turn(t)->head.lock_token));
  for (int i = 0; i < 3; i++) {
    struct dk_turn *turn = fetch_turn(t);
    expect_attempt_of(t, turn, "m", 3);
    must(t, abandon_turn(t, turn->head.lock_token, .ignore_attempt = true, .ms = SHORT_MS));
    advance(t, SHORT_MS);
  }
}

/* POISON-4: only the messages of that turn are lowered. */
void
poison_ignored_for_its_turn_only(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "first"));
  must(t, enqueue(t, "inst", .id = "second"));
  must(t, abandon_turn(t, fetch_turn(t)->head.lock_token));
  must(t, abandon_turn(t, fetch_turn(t)->head.lock_token));
  struct dk_turn *turn = fetch_turn(t, .max_messages = 1);
  expect_attempt_of(t, turn, "first", 3);
  must(t, abandon_turn(t, turn->head.lock_token, .ignore_attempt = true));
  turn = fetch_turn(t);
  expect_attempt_of(t, turn, "first", 3);
  expect_attempt_of(t, turn, "second", 3);
}

/* ---- work ------------------------------------------------------------------------------------ */

/* POISON-5: work items count a delivery that was abandoned and one whose lease ended, and no
 * renewal. */
void
poison_work_counts(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  for (uint32_t attempt = 1; attempt <= DELIVERIES; attempt++) {
    struct dk_work_item *work = fetch_work(t, .lock_ms = SHORT_MS);
    expect_equal(t, work->work.attempt, attempt, "attempt of the activity");
    must(t, renew_work(t, work->work.lock_token, .ms = 2 * SHORT_MS));
    if (attempt % 2)
      must(t, abandon_work(t, work->work.lock_token));
    else
      advance(t, 2 * SHORT_MS);
  }
}

/* POISON-5: ignore_attempt takes one off a work item's count, and off no other's. */
void
poison_work_ignored_attempt(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 2);
  for (int i = 0; i < 3; i++) {
    struct taken_work taken = take_work(t);
    struct dk_work_item *first = item_of(&taken, "inst", 1, 1);
    struct dk_work_item *second = item_of(&taken, "inst", 1, 2);
    expect(t, taken.n == 2 && first && second, "both activities come");
    expect_equal(t, first->work.attempt, 1,
                 "attempt of the item that is abandoned with ignore_attempt");
    expect_equal(t, second->work.attempt, i + 1,
                 "attempt of the item that is abandoned without it");
    must(t, abandon_work(t, first->work.lock_token, .ignore_attempt = true));
    must(t, abandon_work(t, second->work.lock_token));
  }
}

/* ---- what was not delivered ------------------------------------------------------------------ */

/* POISON-6: what stays behind a bound, or is not due yet, has not been delivered. */
void
poison_beyond_a_bound(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "a", .payload = "0123456789"));
  must(t, enqueue(t, "inst", .id = "b", .payload = "0123456789"));
  must(t, enqueue(t, "inst", .id = "later", .delay_ms = SHORT_MS));
  must(t, abandon_turn(t, fetch_turn(t, .max_messages = 1)->head.lock_token));
  must(t, abandon_turn(t, fetch_turn(t, .max_bytes = 15)->head.lock_token));
  advance(t, SHORT_MS);
  struct dk_turn *turn = fetch_turn(t);
  expect_attempt_of(t, turn, "a", 3);
  expect_attempt_of(t, turn, "b", 1);
  expect_attempt_of(t, turn, "later", 1);
}

/* POISON-6: an instance that was skipped is not counted: pinned elsewhere, or locked. */
void
poison_passed_by(struct dk_check *t)
{
  const struct dk_version pin = {2, 0, 0};
  const struct dk_version_range older = {{1, 0, 0}, {1, 9, 9}};
  struct dk_turn *turn;

  given_instance(t, "pinned");
  must(t, ack_turn(t, next_turn(t, "pinned"), .pinned = &pin));
  must(t, enqueue(t, "pinned", .id = "m"));
  for (int i = 0; i < 3; i++)
    expect_status(t, try_fetch_turn(t, &turn, .ranges = &older, .n_ranges = 1), DK_NOTHING);
  expect_attempt_of(t, fetch_turn(t), "m", 1);

  must(t, enqueue(t, "inst", .id = "first"));
  struct dk_turn *held = fetch_turn(t);
  must(t, enqueue(t, "inst", .id = "second"));
  for (int i = 0; i < 3; i++)
    expect_status(t, try_fetch_turn(t, &turn), DK_NOTHING);
  must(t, abandon_turn(t, held->head.lock_token));
  turn = fetch_turn(t);
  expect_attempt_of(t, turn, "first", 2);
  expect_attempt_of(t, turn, "second", 1);
}

/* POISON-6: an item is not counted if no fetch asked for its tag, or if it was one too many for a
 * fetch. */
void
poison_work_passed_by(struct dk_check *t)
{
  struct dk_works *works;

  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"),
                   .schedule = {{1, .tag = "gpu"}, {2, .tag = "gpu"}, {3, .tag = "gpu"}}));
  for (int i = 0; i < 3; i++) {
    expect_status(t, try_fetch_work(t, &works, .tag_rule = TAG_UNTAGGED), DK_NOTHING);
    expect_status(t, try_fetch_work(t, &works, .tag_rule = DK_TAG_LISTED, .tags = {"cpu"}),
                  DK_NOTHING);
  }
  for (int i = 0; i < 3; i++)
    must(t, abandon_work(t, fetch_work(t)->work.lock_token, .ignore_attempt = true));
  struct taken_work taken = take_work(t);
  expect_equal(t, taken.n, 3, "activities");
  for (size_t i = 0; i < taken.n; i++)
    expect_equal(t, taken.items[i]->work.attempt, 1, "attempt of what had been skipped");
}
