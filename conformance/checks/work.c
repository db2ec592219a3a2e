/* SPDX-License-Identifier: Apache-2.0 */
/* WORK: one row is one activity to run; it is fetched, renewed, abandoned and acknowledged. */
#include "conformance/checks/checks.h"

/* ---- exclusive, and none left out ------------------------------------------------------------ */

/* WORK-1: a fetched item is not handed out again until its lease ends. */
void
work_handed_out_once(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  fetch_work(t);
  expect_no_work(t);
  expect_no_work(t, .max_items = 10);
  advance(t, LEASE_MS - 1);
  expect_no_work(t);
}

/* WORK-1: what one handle has locked, another one does not get. */
void
work_second_handle(struct dk_check *t)
{
  struct actor *other = another_handle(t);

  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *work = fetch_work(t);
  expect_no_work(t, .on = other);
  must(t, abandon_work(t, work->work.lock_token));
  fetch_work(t, .on = other);
  expect_no_work(t);
}

enum { MANY = 1000 };

/* WORK-2: an item that is ready all the time has come before 1,000 others that arrived after it. */
void
work_nobody_starves(struct dk_check *t)
{
  struct dk_works *works;
  size_t others = 0;

  given_instance_with_activities(t, "inst", 1);
  schedule_many(t, (struct dk_item){.activity_id = 2, .payload = bytes("other")}, MANY + BATCH);
  for (;;) {
    expect_status(t, try_fetch_work(t, &works, .max_items = BATCH), DK_OK);
    for (size_t i = 0; i < works->n_items; i++)
      if (works->items[i].item.activity_id == 1)
        return;
    others += works->n_items;
    expect(t, others < MANY, "after %zu others the oldest activity has not come", others);
  }
}

/* WORK-2: locked and future items, and those with other tags, do not delay those behind them. */
void
work_others_hold_up_nobody(struct dk_check *t)
{
  enum { EACH = 150 };
  const struct dk_bytes payload = bytes("in the way");
  struct dk_works *works;

  given_instance(t, "inst");
  schedule_many(t, (struct dk_item){.activity_id = 1, .payload = payload}, EACH);
  for (size_t n = 0; n < EACH; n += works->n_items)
    expect_status(t, try_fetch_work(t, &works, .max_items = BATCH), DK_OK);
  schedule_many(t, (struct dk_item){.activity_id = 1001, .payload = payload, .tag = bytes("gpu")},
                EACH);
  schedule_many(t, (struct dk_item){.activity_id = 2001, .payload = payload, .delay_ms = 60000},
                EACH);
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{3001}}));
  struct dk_work_item *work = fetch_work(t, .tag_rule = TAG_UNTAGGED);
  expect_equal(t, work->item.activity_id, 3001, "the only activity that is eligible");
  expect_no_work(t, .tag_rule = TAG_UNTAGGED);
}

/* ---- what comes ------------------------------------------------------------------------------ */

/* WORK-3: an item comes as it was stored, byte for byte, with the number of its delivery. */
void
work_comes_as_stored(struct dk_check *t)
{
  const struct dk_bytes odd = {"a\0b\xff\n'", 6}, empty = {"", 0};

  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"),
                   .schedule = {{INT64_MAX, .tag = "g p\xc3\xbc'", .bytes = odd},
                                {7, .bytes = empty}}));
  for (uint32_t attempt = 1; attempt <= 3; attempt++) {
    struct taken_work work = take_work(t);
    struct dk_work_item *one = item_of(&work, "inst", 1, INT64_MAX);
    struct dk_work_item *two = item_of(&work, "inst", 1, 7);
    expect(t, work.n == 2 && one && two, "the activities come with their identities");
    expect_bytes(t, one->item.payload, odd, "payload");
    expect_text(t, one->item.tag, "g p\xc3\xbc'", "tag");
    expect_text(t, one->item.session, NULL, "session that was not given");
    expect_equal(t, one->work.attempt, attempt, "attempt");
    expect_bytes(t, two->item.payload, empty, "an empty payload");
    expect_text(t, two->item.tag, NULL, "tag that was not given");
    must(t, abandon_work(t, one->work.lock_token));
    advance(t, LEASE_MS);
  }
}

/* WORK-3: as often as it comes again, the attempts count on. */
void
work_attempts_count_on(struct dk_check *t)
{
  enum { DELIVERIES = 8 };

  given_instance_with_activities(t, "inst", 1);
  for (uint32_t attempt = 1; attempt <= DELIVERIES; attempt++) {
    struct dk_work_item *work = fetch_work(t, .lock_ms = 1000);
    expect_equal(t, work->work.attempt, attempt, "attempt");
    if (attempt % 2)
      must(t, abandon_work(t, work->work.lock_token));
    else
      advance(t, 1000);
  }
}

/* WORK-8: a fetch brings at most max_items, each with a token and a life of its own. */
void
work_several_at_once(struct dk_check *t)
{
  struct dk_bytes tokens[5];
  struct dk_works *works;
  size_t n = 0;

  given_instance_with_activities(t, "inst", 5);
  while (n < 5) {
    expect_status(t, try_fetch_work(t, &works, .max_items = 2), DK_OK);
    expect(t, works->n_items >= 1 && works->n_items <= 2, "1 or 2 items come when 2 are asked for");
    for (size_t i = 0; i < works->n_items && n < 5; i++)
      tokens[n++] = works->items[i].work.lock_token;
  }
  expect_no_work(t, .max_items = 2);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < i; j++)
      expect(t, !same_bytes(tokens[i], tokens[j]), "each item has a token of its own");
  must(t, ack_work(t, tokens[0]));
  must(t, abandon_work(t, tokens[1]));
  must(t, renew_work(t, tokens[2], .ms = 5000));
  fetch_work(t);
  expect_no_work(t);
  for (size_t i = 2; i < n; i++)
    must(t, ack_work(t, tokens[i]));
}

/* WORK-8: max_bytes bounds a fetch, at least one item comes, and what stays behind is free. */
void
work_bounded_by_bytes(struct dk_check *t)
{
  struct dk_works *works;

  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1, .payload = "0123456789"},
                   {2, .payload = "0123456789"}, {3, .payload = "0123456789"},
                   {4, .payload = "0123456789"}}));
  expect_status(t, try_fetch_work(t, &works, .max_items = 10, .max_bytes = 20), DK_OK);
  size_t first = works->n_items;
  expect(t, first >= 1 && first <= 2, "1 or 2 items of 10 bytes fit into 20, %zu came", first);
  expect_status(t, try_fetch_work(t, &works, .max_items = 10, .max_bytes = 9), DK_OK);
  expect_equal(t, works->n_items, 1, "items, when each exceeds max_bytes by itself");
  expect_equal(t, take_work(t).n, 3 - first, "items that had stayed behind");
}

/* WORK-9: work that was enqueued directly is like that of a commit, its instance known or not. */
void
work_enqueued_directly(struct dk_check *t)
{
  given_instance(t, "known");
  must(t, enqueue_work(t, "unknown", .activity = {7, 3, .tag = "gpu", .payload = "in"}));
  must(t, enqueue_work(t, "known", .activity = {7, .delay_ms = 1000}));
  must(t, enqueue_work(t, "known", .activity = {8, .visible_at = now(t) + 2000}));
  struct dk_work_item *work = fetch_work(t);
  expect_text(t, work->item.instance, "unknown", "instance");
  expect_equal(t, work->item.execution_id, 3, "execution");
  expect_equal(t, work->item.activity_id, 7, "activity");
  expect_text(t, work->item.tag, "gpu", "tag");
  expect_text(t, work->item.payload, "in", "payload");
  expect_equal(t, work->work.attempt, 1, "attempt");

  advance(t, 999);
  expect_no_work(t);
  advance(t, 1);
  expect_text(t, the_item_of(t, "known", 7)->item.tag, NULL, "tag that was not given");
  advance(t, 1000);
  the_item_of(t, "known", 8);
  commit_cancelling(t, "known", 8);
  advance(t, 4 * LEASE_MS);
  struct taken_work left = take_work(t);
  expect_equal(t, left.n, 2, "items, after one was cancelled");
  expect(t, !item_of(&left, "known", 1, 8), "what was enqueued directly can be cancelled");
}

/* ---- how it ends ----------------------------------------------------------------------------- */

/* WORK-4: an ack removes the row and enqueues the completion. */
void
work_ack_enqueues_completion(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *work = fetch_work(t);
  must(t, ack_work(t, work->work.lock_token, .to = "inst", .id = "done-1", .payload = "result"));
  struct dk_turn *turn = fetch_turn(t);
  expect_ids(t, turn, "done-1");
  expect_text(t, turn->messages[0].payload, "result", "payload of the completion");
  must(t, ack_turn(t, turn, .events = {{next_event(turn)}}));
  advance(t, 4 * LEASE_MS);
  expect_no_work(t);
  expect_no_turn(t);
}

/* WORK-4: an ack whose completion is stored already is refused; the row stays locked as it was. */
void
work_refused_ack_changes_nothing(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *work = fetch_work(t);
  must(t, enqueue(t, "inst", .id = "done-1", .payload = "first"));

  before(t);
  expect_status(t, ack_work(t, work->work.lock_token, .to = "inst", .id = "done-1"), DK_DUPLICATE);
  expect_unchanged(t);
  must(t, ack_work(t, work->work.lock_token, .to = "inst", .id = "done-2"));
  expect_ids(t, fetch_turn(t), "done-1", "done-2");
}

/* WORK-5: at the end of its lease, not a millisecond before, an item comes again as it was. */
void
work_lease_end_frees(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1, .tag = "gpu", .payload = "in"}}));
  struct dk_work_item *work = fetch_work(t);
  advance(t, LEASE_MS - 1);
  expect_no_work(t);
  advance(t, 1);
  struct dk_work_item *again = the_item_of(t, "inst", 1);
  expect_text(t, again->item.tag, "gpu", "tag");
  expect_text(t, again->item.payload, "in", "payload");
  expect_equal(t, again->work.attempt, 2, "attempt");
  expect(t, !same_bytes(work->work.lock_token, again->work.lock_token), "the token is a new one");
  advance(t, LEASE_MS - 1);
  must(t, ack_work(t, again->work.lock_token));
}

/* WORK-6: a renewed lease ends at now + extend_ms, sooner or later than it did. */
void
work_renew_replaces(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *work = fetch_work(t);
  must(t, renew_work(t, work->work.lock_token, .ms = 10000));
  advance(t, 9999);
  expect_no_work(t);
  advance(t, 1);
  work = fetch_work(t);

  advance(t, 20000);
  must(t, renew_work(t, work->work.lock_token, .ms = 25000));
  advance(t, 20000);
  must(t, renew_work(t, work->work.lock_token, .ms = 25000));
  advance(t, 24999);
  expect_no_work(t);
  advance(t, 1);
  work = fetch_work(t);
  expect_equal(t, work->work.attempt, 3, "attempt: renewing counts nothing");
  must(t, renew_work(t, work->work.lock_token, .ms = 40000));
  must(t, ack_work(t, work->work.lock_token));
}

/* WORK-7: an abandoned item is free at once, or visible at now + delay_ms, and what it was. */
void
work_abandon_frees_and_delays(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1, .tag = "gpu", .payload = "in"}}));
  must(t, abandon_work(t, fetch_work(t)->work.lock_token));
  struct dk_work_item *work = fetch_work(t);
  advance(t, 1000);
  must(t, abandon_work(t, work->work.lock_token, .ms = 40000));
  expect_no_work(t);
  advance(t, 39999);
  expect_no_work(t);
  advance(t, 1);
  work = the_item_of(t, "inst", 1);
  expect_text(t, work->item.tag, "gpu", "tag");
  expect_text(t, work->item.payload, "in", "payload");
}

/* WORK-7: each abandon sets visible_at, even without a delay, and the next fetch reports it. */
void
work_abandon_tells_when(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  advance(t, 700);
  must(t, abandon_work(t, fetch_work(t)->work.lock_token));
  int64_t given_back = now(t);
  advance(t, 50);
  struct dk_work_item *work = fetch_work(t);
  expect_equal(t, work->item.visible_at, given_back, "visible_at of what came back at once");
  int64_t due = now(t) + 300;
  must(t, abandon_work(t, work->work.lock_token, .ms = 300));
  advance(t, 900);
  expect_equal(t, fetch_work(t)->item.visible_at, due, "visible_at of what came back delayed");
}

/* WORK-6: a lease, and a delay, may be as long as the runtime wants. */
void
work_long_times(struct dk_check *t)
{
  const int64_t month = (int64_t)31 * 24 * 3600 * 1000, year = 12 * month;

  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *work = fetch_work(t);
  must(t, renew_work(t, work->work.lock_token, .ms = year));
  advance(t, year - 1);
  expect_no_work(t);
  must(t, renew_work(t, work->work.lock_token, .ms = 1000));
  must(t, abandon_work(t, work->work.lock_token, .ms = month));
  advance(t, month - 1);
  expect_no_work(t);
  advance(t, 1);
  the_item_of(t, "inst", 1);
}

/* WORK-7: the time of an item is one of milliseconds, and nothing is rounded. */
void
work_due_to_the_millisecond(struct dk_check *t)
{
  given_instance(t, "inst");
  advance(t, 123);
  must(t, ack_turn(t, next_turn(t, "inst"),
                   .schedule = {{1, .delay_ms = 1500}, {2, .visible_at = now(t) + 2777}}));
  advance(t, 1499);
  expect_no_work(t);
  advance(t, 1);
  struct dk_work_item *work = the_item_of(t, "inst", 1);
  advance(t, 1276);
  expect_no_work(t);
  advance(t, 1);
  the_item_of(t, "inst", 2);
  must(t, abandon_work(t, work->work.lock_token, .ms = 1234));
  advance(t, 1233);
  expect_no_work(t);
  advance(t, 1);
  the_item_of(t, "inst", 1);
}

static void
repeat_ack(struct dk_check *t, struct dk_bytes token)
{
  dk_status status = ack_work(t, token, .repeated = true, .to = "sink");

  if (status != DK_OK)
    expect_status(t, status, DK_LOCK_LOST);
}

/* WORK-10: an ack that is repeated has no second effect; one that had not landed has its first. */
void
work_repeated_ack(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_bytes token = fetch_work(t)->work.lock_token;
  must(t, ack_work(t, token, .repeated = true, .to = "sink"));
  repeat_ack(t, token);
  repeat_ack(t, token);
  struct dk_turn *turn = fetch_turn(t);
  expect_equal(t, turn->n_messages, 1, "completions");
  must(t, ack_turn(t, turn, .empty = true));
  repeat_ack(t, token);
  expect_no_turn(t);
  advance(t, 4 * LEASE_MS);
  expect_no_work(t);
}

/* WORK-11: a completion goes to the instance that it names, known or not, at its own time. */
void
work_completion_waits_for_its_time(struct dk_check *t)
{
  int64_t start = now(t);

  given_instance_with_activities(t, "inst", 2);
  struct taken_work work = take_work(t);
  expect_equal(t, work.n, 2, "items");
  must(t, ack_work(t, work.items[0]->work.lock_token, .to = "unknown", .id = "late",
                   .delay_ms = 5000));
  must(t, ack_work(t, work.items[1]->work.lock_token, .to = "unknown", .id = "later",
                   .visible_at = start + 6000));
  advance(t, 4999);
  expect_no_turn(t);
  advance(t, 1);
  struct dk_turn *turn = the_turn_of(t, "unknown");
  expect_ids(t, turn, "late");
  must(t, ack_turn(t, turn, .empty = true));
  advance(t, 999);
  expect_no_turn(t);
  advance(t, 1);
  expect_ids(t, the_turn_of(t, "unknown"), "later");
}

/* ---- at once --------------------------------------------------------------------------------- */

static struct dk_work_item *
item_for(struct dk_check *t, struct actor *actor)
{
  dk_status status = finish(t, actor);
  struct dk_works *works = status == DK_OK ? finished_work(t, actor) : NULL;

  for (int i = 0; i < MOST_RETRIES && is_retryable(status); i++)
    status = try_fetch_work(t, &works, .on = actor);
  expect_status(t, status, DK_OK);
  expect_equal(t, works->n_items, 1, "items of a fetch that asked for one");
  return &works->items[0];
}

/* WORK-12: two that fetch at once never share an item, and none is lost between them. */
void
work_parallel_fetchers(struct dk_check *t)
{
  struct actor *a = racer(t), *b = racer(t);
  struct dk_works *none;

  given_instance(t, "inst");
  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1}, {2}}));
    hold_at_line(t, a);
    hold_at_line(t, b);
    must(t, try_fetch_work(t, &none, .on = a, .start = true));
    must(t, try_fetch_work(t, &none, .on = b, .start = true));
    witness(t, race(t, a, b));
    struct dk_work_item *first = item_for(t, a), *second = item_for(t, b);
    expect(t, first->item.activity_id != second->item.activity_id,
           "two concurrent fetches never get the same item");
    insist(t, ack_work(t, first->work.lock_token, .on = a));
    insist(t, ack_work(t, second->work.lock_token, .on = b));
  }
}
