/* SPDX-License-Identifier: Apache-2.0 */
/* TURN: what a fetch of a turn brings, what its lock excludes, and how a turn ends without a
 * commit. */
#include "conformance/checks/checks.h"

/* ---- exclusive ------------------------------------------------------------------------------- */

/* TURN-1: a locked instance is not handed out again, not even for later messages. */
void
turn_locked_stays_away(struct dk_check *t)
{
  given_instance(t, "inst");
  next_turn(t, "inst");
  expect_no_turn(t);
  must(t, enqueue(t, "inst", .id = "later"));
  expect_no_turn(t);
  advance(t, LEASE_MS - 1);
  expect_no_turn(t);
}

/* TURN-1: completions, and messages that other instances send, leave a locked instance locked. */
void
turn_news_unlock_nobody(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  given_instance(t, "other");
  struct dk_turn *sender = next_turn(t, "other"), *turn = next_turn(t, "inst");
  must(t, ack_work(t, fetch_work(t)->work.lock_token, .to = "inst", .id = "done"));
  expect_no_turn(t);
  must(t, ack_turn(t, sender, .send = {{"inst", .id = "sent"}}));
  expect_no_turn(t);
  must(t, renew_turn(t, turn->head.lock_token));
  must(t, ack_turn(t, turn, .events = {{next_event(turn)}}));
  expect_ids(t, the_turn_of(t, "inst"), "done", "sent");
}

static void
each_respects_the_other(struct dk_check *t, struct actor *other)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  expect_no_turn(t, .on = other);
  must(t, enqueue(t, "inst", .id = "later"));
  expect_no_turn(t, .on = other);
  must(t, ack_turn(t, turn));

  turn = fetch_turn(t, .on = other);
  expect_no_turn(t);
  must(t, ack_turn(t, turn, .on = other));
}

/* TURN-1: what one handle has locked, another one does not get. */
void
turn_second_handle(struct dk_check *t)
{
  each_respects_the_other(t, another_handle(t));
}

/* TURN-1: what one process has locked, another one does not get. */
void
turn_second_process(struct dk_check *t)
{
  each_respects_the_other(t, another_process(t));
}

/* ---- which messages -------------------------------------------------------------------------- */

/* TURN-2: all visible messages come, by effective visible time, then by arrival. */
void
turn_brings_all_in_order(struct dk_check *t)
{
  int64_t start = now(t);

  must(t, enqueue(t, "inst", .id = "last", .visible_at = start + 200));
  must(t, enqueue(t, "inst", .id = "third", .delay_ms = 100));
  must(t, enqueue(t, "inst", .id = "fourth", .visible_at = start + 100));
  must(t, enqueue(t, "inst", .id = "first"));
  advance(t, 10);
  must(t, enqueue(t, "inst", .id = "second", .visible_at = start - 5000));
  advance(t, 1000);
  expect_ids(t, fetch_turn(t), "first", "second", "third", "fourth", "last");
}

/* TURN-2: a turn brings no message before its time, and each at its time. */
void
turn_leaves_what_is_not_due(struct dk_check *t)
{
  int64_t start = now(t);

  given_instance(t, "inst");
  must(t, enqueue(t, "inst", .id = "due"));
  must(t, enqueue(t, "inst", .id = "at-100", .visible_at = start + 100));
  must(t, enqueue(t, "inst", .id = "in-200", .delay_ms = 200));
  struct dk_turn *turn = fetch_turn(t);
  expect_ids(t, turn, "due");
  must(t, ack_turn(t, turn));

  advance_to(t, start + 99);
  expect_no_turn(t);
  advance_to(t, start + 100);
  turn = fetch_turn(t);
  expect_ids(t, turn, "at-100");
  must(t, ack_turn(t, turn));
  advance_to(t, start + 199);
  expect_no_turn(t);
  advance_to(t, start + 200);
  expect_ids(t, fetch_turn(t), "in-200");
}

/* TURN-2: max_messages bounds a turn from the front; the rest keeps its place and its count. */
void
turn_bounded_by_messages(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "a"));
  must(t, enqueue(t, "inst", .id = "b"));
  must(t, enqueue(t, "inst", .id = "c"));
  must(t, enqueue(t, "inst", .id = "d"));
  struct dk_turn *turn = fetch_turn(t, .max_messages = 2);
  expect_ids(t, turn, "a", "b");
  must(t, ack_turn(t, turn));

  turn = fetch_turn(t, .max_messages = 3);
  expect_ids(t, turn, "c", "d");
  expect_equal(t, turn->messages[0].attempt, 1, "attempt of what had stayed behind");
}

/* TURN-2: max_bytes stops before the message that would exceed it, but at least one comes. */
void
turn_bounded_by_bytes(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "a", .payload = "0123456789"));
  must(t, enqueue(t, "inst", .id = "b", .payload = "0123456789"));
  must(t, enqueue(t, "inst", .id = "c", .payload = "0123456789"));
  must(t, enqueue(t, "inst", .id = "d", .payload = "0123456789"));
  struct dk_turn *turn = fetch_turn(t, .max_bytes = 20);
  expect_ids(t, turn, "a", "b");
  must(t, ack_turn(t, turn));
  turn = fetch_turn(t, .max_bytes = 19);
  expect_ids(t, turn, "c");
  must(t, ack_turn(t, turn));
  turn = fetch_turn(t, .max_bytes = 9);
  expect_ids(t, turn, "d");
  expect_equal(t, turn->messages[0].attempt, 1, "attempt of what had stayed behind twice");
}

/* ---- the head -------------------------------------------------------------------------------- */

/* TURN-3: an instance that is not known is handed out like any other, with all its messages. */
void
turn_unknown_instance(struct dk_check *t)
{
  must(t, enqueue(t, "unknown", .id = "stray"));
  must(t, enqueue(t, "unknown", .id = "start"));
  must(t, enqueue(t, "unknown", .id = "signal"));
  struct dk_turn *turn = fetch_turn(t);
  const struct dk_turn_head *head = &turn->head;

  expect_text(t, head->instance, "unknown", "instance of the turn");
  expect_equal(t, head->known, 0, "known");
  expect_ids(t, turn, "stray", "start", "signal");
  expect_text(t, head->name, NULL, "name of an unknown instance");
  expect_text(t, head->version, NULL, "version of an unknown instance");
  expect_text(t, head->parent_instance, NULL, "parent of an unknown instance");
  expect_equal(t, head->status, 0, "status of an unknown instance");
  expect_equal(t, head->execution_id, 0, "execution of an unknown instance");
  expect_equal(t, head->last_event_id, 0, "last event of an unknown instance");
  expect_equal(t, head->history_from, 0, "history_from of an unknown instance");
  expect_equal(t, turn->n_events, 0, "events of an unknown instance");
}

static void
expect_events(struct dk_check *t, const struct dk_turn *turn, const uint64_t *ids)
{
  size_t n = 0;

  for (; ids[n]; n++)
    if (n < turn->n_events)
      expect_equal(t, turn->events[n].event_id, ids[n], "id of event %zu of the turn", n + 1);
  expect_equal(t, turn->n_events, n, "events of the turn");
}
#define expect_event_ids(t, turn, ...)                                                             \
  expect_events(t, turn, (const uint64_t[]){__VA_ARGS__, 0})

/* TURN-4: the head reports what the last commit left; the current execution's events ascend. */
void
turn_known_head(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t), .status = DK_RUNNING, .name = "order", .version = "1.2.3",
                   .parent = "mother", .events = {{2}, {9}, {10, "tenth"}}));
  struct dk_turn *turn = next_turn(t, "inst");
  expect_equal(t, turn->head.known, 1, "known");
  expect_equal(t, turn->head.status, DK_RUNNING, "status");
  expect_text(t, turn->head.name, "order", "name");
  expect_text(t, turn->head.version, "1.2.3", "version");
  expect_text(t, turn->head.parent_instance, "mother", "parent");
  expect_equal(t, turn->head.execution_id, 1, "execution");
  expect_equal(t, turn->head.last_event_id, 10, "last event");
  expect_equal(t, turn->head.history_from, 2, "history_from");
  expect_event_ids(t, turn, 2, 9, 10);
  expect_text(t, turn->events[2].payload, "tenth", "payload of event 10");

  must(t, ack_turn(t, turn, .execution_id = 2, .events = {{1}}));
  turn = next_turn(t, "inst");
  expect_equal(t, turn->head.execution_id, 2, "execution after it was continued as new");
  expect_equal(t, turn->head.last_event_id, 1, "last event of the new execution");
  expect_event_ids(t, turn, 1);
}

/* TURN-13: last_event_id and history_from are reported even if no event follows. */
void
turn_nothing_follows(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t), .name = "order", .version = "1"));
  struct dk_turn *turn = next_turn(t, "inst");
  expect_text(t, turn->head.parent_instance, NULL, "parent that was never given");
  expect_equal(t, turn->head.last_event_id, 0, "last event of an empty history");
  expect_equal(t, turn->head.history_from, 1, "history_from of an empty history");
  expect_event_ids(t, turn, 0);

  must(t, ack_turn(t, turn, .events = {{3}, {7}}, .owner = "me"));
  must(t, enqueue(t, "inst"));
  turn = fetch_turn(t, .owner = "me");
  expect_equal(t, turn->head.last_event_id, 7, "last event, for the owner too");
  expect_equal(t, turn->head.history_from, 8, "history_from when no history is handed up");
  expect_event_ids(t, turn, 0);
}

static void
expect_history(struct dk_check *t, const char *owner, size_t n_events, const char *who)
{
  struct dk_turn *turn = fetch_turn(t, .owner = owner);

  expect_equal(t, turn->n_events, n_events, "events for %s", who);
  must(t, abandon_turn(t, turn->head.lock_token));
}

/* TURN-5: the owner of the last commit gets no history, any other caller gets all of it. */
void
turn_owner_brings_no_history(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t, .owner = "asked"), .events = {{1}, {2}}, .owner = "me"));
  must(t, enqueue(t, "inst"));
  expect_history(t, "me", 0, "the owner of the last commit");
  expect_history(t, "you", 2, "another owner");
  expect_history(t, "asked", 2, "an owner that fetched under another name than it committed");
  expect_history(t, NULL, 2, "a fetch without owner");
  expect_history(t, "me", 0, "the owner, after others have looked");

  must(t, ack_turn(t, fetch_turn(t), .events = {{3}}));
  must(t, enqueue(t, "inst"));
  expect_history(t, "me", 3, "the owner of an earlier commit");
  expect_history(t, NULL, 3, "a fetch without owner after a commit without");
}

/* TURN-5: an owner is identified by all of its name. */
void
turn_similar_owners(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t), .events = {{1}, {2}}, .owner = "runner-1"));
  must(t, enqueue(t, "inst"));
  expect_history(t, "runner-2", 2, "another owner whose name is as long");
  expect_history(t, "runner-11", 2, "another owner whose name begins like that");
  expect_history(t, "runner", 2, "another owner with the beginning of the name");
  expect_history(t, "Runner-1", 2, "another owner whose name differs in case");
  expect_history(t, "runner-1", 0, "the owner itself");
}

/* ---- how a turn ends ------------------------------------------------------------------------- */

/* TURN-6: once the commit has returned the instance is free, for what came meanwhile. */
void
turn_commit_frees(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "a"));
  must(t, enqueue(t, "inst", .id = "behind"));
  struct dk_turn *turn = fetch_turn(t, .max_messages = 1);
  must(t, enqueue(t, "inst", .id = "meanwhile"));
  must(t, ack_turn(t, turn));
  turn = fetch_turn(t);
  expect_ids(t, turn, "behind", "meanwhile");
  must(t, ack_turn(t, turn, .empty = true));
  must(t, enqueue(t, "inst", .id = "afterwards"));
  expect_ids(t, fetch_turn(t), "afterwards");
}

/* TURN-7: an abandoned turn is free at once with its messages in order, or at now + delay_ms. */
void
turn_abandon_frees_and_delays(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "a"));
  must(t, enqueue(t, "inst", .id = "b"));
  struct dk_turn *turn = fetch_turn(t);
  advance(t, 10);
  must(t, enqueue(t, "inst", .id = "c"));
  advance(t, 990);
  must(t, abandon_turn(t, turn->head.lock_token));
  turn = fetch_turn(t);
  expect_ids(t, turn, "a", "b", "c");

  must(t, abandon_turn(t, turn->head.lock_token, .ms = 40000));
  expect_no_turn(t);
  advance(t, 39999);
  expect_no_turn(t);
  advance(t, 1);
  expect_ids(t, fetch_turn(t), "a", "b", "c");
}

/* TURN-7: abandoned without a delay they keep their places; a delay is one time for all. */
void
turn_abandon_keeps_order(struct dk_check *t)
{
  int64_t start = now(t);

  must(t, enqueue(t, "inst", .id = "late", .delay_ms = 2000));
  must(t, enqueue(t, "inst", .id = "early", .delay_ms = 1000));
  must(t, enqueue(t, "inst", .id = "between", .delay_ms = 1500));
  advance(t, 3000);
  must(t, abandon_turn(t, fetch_turn(t)->head.lock_token));
  struct dk_turn *turn = fetch_turn(t);
  expect_ids(t, turn, "early", "between", "late");
  expect_equal(t, turn->messages[2].visible_at, start + 2000, "visible_at that was kept");

  must(t, abandon_turn(t, turn->head.lock_token, .ms = 4000));
  advance(t, 4000);
  turn = fetch_turn(t);
  expect_ids(t, turn, "late", "early", "between");
  expect_equal(t, turn->messages[0].visible_at, start + 7000, "visible_at after the delay");
}

/* TURN-8: abandon touches the messages of its turn only: none that arrived later, are due later or
 * lie behind a bound. */
void
turn_abandon_spares_later_arrivals(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "bad"));
  must(t, enqueue(t, "inst", .id = "behind"));
  must(t, enqueue(t, "inst", .id = "due-later", .delay_ms = 100));
  struct dk_turn *turn = fetch_turn(t, .max_messages = 1);
  must(t, enqueue(t, "inst", .id = "arrived"));
  must(t, abandon_turn(t, turn->head.lock_token, .ms = 60000));

  turn = fetch_turn(t);
  expect_ids(t, turn, "behind", "arrived");
  expect_equal(t, turn->messages[0].attempt, 1, "attempt of what had stayed behind");
  expect_equal(t, turn->messages[1].attempt, 1, "attempt of what arrived later");
  must(t, ack_turn(t, turn));
  advance(t, 100);
  expect_ids(t, fetch_turn(t), "due-later");
}

/* TURN-9: a renewed lease ends at now + extend_ms, sooner or later than it did. */
void
turn_renew_replaces(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, renew_turn(t, turn->head.lock_token, .ms = 10000));
  advance(t, 9999);
  expect_no_turn(t);
  advance(t, 1);
  turn = fetch_turn(t);

  advance(t, 20000);
  must(t, renew_turn(t, turn->head.lock_token, .ms = 25000));
  advance(t, 20000);
  must(t, renew_turn(t, turn->head.lock_token, .ms = 25000));
  advance(t, 24999);
  expect_no_turn(t);
  advance(t, 1);
  turn = fetch_turn(t);
  expect_equal(t, turn->messages[0].attempt, 3, "attempt: renewing counts nothing");
  must(t, renew_turn(t, turn->head.lock_token, .ms = 40000));
  must(t, ack_turn(t, turn));
}

/* QUEUE-3: at the end of the lease, not a millisecond before, the messages come as they were. */
void
turn_lease_end_frees(struct dk_check *t)
{
  given_instance(t, "inst");
  int64_t sent = now(t);
  must(t, enqueue(t, "inst", .id = "m", .payload = "hello"));
  fetch_turn(t);
  advance(t, LEASE_MS - 1);
  expect_no_turn(t);
  advance(t, 1);
  struct dk_turn *turn = fetch_turn(t);
  expect_ids(t, turn, "m");
  expect_text(t, turn->messages[0].payload, "hello", "payload of what comes again");
  expect_equal(t, turn->messages[0].visible_at, sent, "visible_at of what comes again");
  expect_equal(t, turn->messages[0].enqueued_at, sent, "enqueued_at of what comes again");
  advance(t, LEASE_MS - 1);
  must(t, ack_turn(t, turn, .events = {{next_event(turn)}}));
}

enum { DELIVERIES = 8 };

/* QUEUE-3: it comes again as often as it is not committed, and the attempts count on. */
void
turn_comes_again_and_again(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "m", .payload = "hello"));
  for (uint32_t attempt = 1; attempt <= DELIVERIES; attempt++) {
    struct dk_turn *turn = fetch_turn(t, .lock_ms = 1000);
    expect_ids(t, turn, "m");
    expect_text(t, turn->messages[0].payload, "hello", "payload of what comes again");
    expect_equal(t, turn->messages[0].attempt, attempt, "attempt");
    if (attempt % 2)
      must(t, abandon_turn(t, turn->head.lock_token));
    else
      advance(t, 1000);
  }
}

#define A_MONTH ((int64_t)31 * 24 * 3600 * 1000) /* more milliseconds than 31 bits hold */
#define A_YEAR  (12 * A_MONTH)

/* TURN-9: a lease, and a delay, may be as long as the runtime wants. */
void
turn_long_times(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "m"));
  struct dk_turn *turn = fetch_turn(t);
  must(t, renew_turn(t, turn->head.lock_token, .ms = A_YEAR));
  advance(t, A_YEAR - 1);
  expect_no_turn(t);
  must(t, renew_turn(t, turn->head.lock_token, .ms = 1000));
  must(t, abandon_turn(t, turn->head.lock_token, .ms = A_MONTH));
  advance(t, A_MONTH - 1);
  expect_no_turn(t);
  advance(t, 1);
  expect_ids(t, the_turn_of(t, "inst"), "m");
}

/* TIME-2: lease_left_ms is what is left at the upcall of the lease that ends at now + lock_ms. */
void
turn_lease_left(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst", .delay_ms = 4000));
  advance(t, 123);
  struct dk_work_item *work = fetch_work(t, .lock_ms = 7777);
  expect_equal(t, work->work.now, now(t), "the clock at the claim of the work item");
  expect_equal(t, work->work.lease_left_ms, 7777, "what is left of the lease of the work item");

  struct dk_turn *turn = fetch_turn(t, .lock_ms = 5555, .wait_ms = 60000);
  expect_equal(t, turn->head.now, now(t), "the clock at the claim of the turn, after the wait");
  expect_equal(t, turn->head.lease_left_ms, 5555, "what is left of the lease of the turn");
}

/* ---- each fetch gets a turn, and skipping leaves no trace ------------------------------------ */

static struct dk_turn *
turn_for(struct dk_check *t, struct actor *actor)
{
  dk_status status = finish(t, actor);
  struct dk_turn *turn = status == DK_OK ? finished_turn(t, actor) : NULL;

  for (int i = 0; i < MOST_RETRIES && is_retryable(status); i++)
    status = try_fetch_turn(t, &turn, .on = actor);
  expect_status(t, status, DK_OK);
  return turn;
}

/* TURN-10: two instances are ready and two fetch at once: each gets one. */
void
turn_every_fetcher_gets_one(struct dk_check *t)
{
  struct actor *a = racer(t), *b = racer(t);
  struct dk_turn *none;

  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    must(t, enqueue(t, "left"));
    must(t, enqueue(t, "right"));
    hold_at_line(t, a);
    hold_at_line(t, b);
    must(t, try_fetch_turn(t, &none, .on = a, .start = true));
    must(t, try_fetch_turn(t, &none, .on = b, .start = true));
    witness(t, race(t, a, b));
    struct dk_turn *first = turn_for(t, a), *second = turn_for(t, b);
    expect(t, !same_bytes(first->head.instance, second->head.instance),
           "two concurrent fetches get two instances");
    insist(t, ack_turn(t, first, .on = a));
    insist(t, ack_turn(t, second, .on = b));
  }
}

/* TURN-11: birth is 0 until the first commit of an execution, and then one number for good. */
void
turn_birth(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t);
  expect_equal(t, turn->head.birth, 0, "birth of an unknown instance");
  must(t, ack_turn(t, turn, .empty = true));
  turn = next_turn(t, "inst");
  expect_equal(t, turn->head.birth, 0, "birth after an empty commit");
  must(t, ack_turn(t, turn, .events = {{1}}));

  turn = next_turn(t, "inst");
  uint64_t birth = turn->head.birth;
  expect(t, birth != 0, "a known instance has a birth");
  must(t, ack_turn(t, turn, .events = {{2}}));
  turn = next_turn(t, "inst");
  expect_equal(t, turn->head.birth, birth, "birth one turn later");
  must(t, ack_turn(t, turn, .execution_id = 2));
  expect_equal(t, next_turn(t, "inst")->head.birth, birth, "birth in the next execution");
}

/* TURN-12: a fetch that skips an instance neither locks it nor counts an attempt. */
void
turn_nothing_leaves_no_trace(struct dk_check *t)
{
  const struct dk_version pin = {2, 0, 0};
  const struct dk_version_range older = {{1, 0, 0}, {1, 9, 9}};
  struct dk_turn *none;

  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .pinned = &pin));
  must(t, enqueue(t, "inst"));
  for (int i = 0; i < 3; i++)
    expect_status(t, try_fetch_turn(t, &none, .ranges = &older, .n_ranges = 1), DK_NOTHING);
  turn = fetch_turn(t);
  expect_text(t, turn->head.instance, "inst", "the instance that was skipped is not locked");
  expect_equal(t, turn->messages[0].attempt, 1, "attempt of what was skipped");
}
