/* SPDX-License-Identifier: Apache-2.0 */
/* PRUNE: which executions are deleted, what is deleted with them, and that all else stays as it
 * was. */
#include "conformance/checks/admin.h"

#include <stdio.h>
#include <string.h>

/* ---- which executions are deleted ------------------------------------------------------------ */

/* PRUNE-1: the newest executions by their numbers stay, at least one. */
void
prune_newest_stay(struct dk_check *t)
{
  struct dk_removed removed;

  given_executions(t, "inst", 12, 0);
  must(t, prune(t, "inst", .keep = 13, .ret = &removed));
  expect_counts(t, &removed, .instances = 1);
  must(t, prune(t, "inst", .keep = UINT32_MAX, .ret = &removed));
  expect_counts(t, &removed, .instances = 1);
  must(t, prune(t, "inst", .keep = 12, .ret = &removed));
  expect_counts(t, &removed, .instances = 1);
  must(t, prune(t, "inst", .keep = 4, .ret = &removed));
  expect_counts(t, &removed, .instances = 1, .executions = 8, .events = 8);
  expect_executions(t, "inst", 9, 10, 11, 12);
  must(t, prune(t, "inst", .keep = 3, .ret = &removed));
  expect_counts(t, &removed, .instances = 1, .executions = 1, .events = 1);
  expect_executions(t, "inst", 10, 11, 12);
  must(t, prune(t, "inst", .ret = &removed));
  expect_counts(t, &removed, .instances = 1, .executions = 2, .events = 2);
  expect_executions(t, "inst", 12);
  must(t, prune(t, "inst", .keep = 1, .ret = &removed));
  expect_counts(t, &removed, .instances = 1);
}

/* PRUNE-1: the current execution stays, ended or not, and so does one that was not ended. */
void
prune_running_stay(struct dk_check *t)
{
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_CONTINUED_AS_NEW));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .events = {{1}}));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 3, .status = DK_FAILED));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 4, .status = DK_RUNNING));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 5, .status = DK_COMPLETED));
  must(t, prune(t, "inst", .keep = 3));
  expect_executions(t, "inst", 2, 3, 4, 5);
  must(t, prune(t, "inst", .completed_before = now(t) + 100000));
  expect_executions(t, "inst", 2, 4, 5);
  must(t, prune(t, "inst"));
  prune_all_matching(t);
  expect_executions(t, "inst", 2, 4, 5);
  expect_equal(t, read_history(t, "inst", .execution_id = 2)->n_events, 1, "events of the second");
  expect_equal(t, look_at(t, "inst")->status, DK_COMPLETED, "status");
}

/* PRUNE-2: only executions that completed before the time are deleted, to the millisecond; and
 * never fewer than `keep` stay. */
void
prune_completed_before(struct dk_check *t)
{
  struct dk_removed removed;
  int64_t first = now(t); /* each ends 100 ms after the one before */

  given_executions(t, "inst", 7, 100);
  must(t, prune(t, "inst", .completed_before = first, .ret = &removed));
  expect_counts(t, &removed, .instances = 1);
  must(t, prune(t, "inst", .completed_before = first + 200, .ret = &removed));
  expect_counts(t, &removed, .instances = 1, .executions = 2, .events = 2);
  expect_executions(t, "inst", 3, 4, 5, 6, 7);
  must(t, prune(t, "inst", .completed_before = first + 201, .ret = &removed));
  expect_counts(t, &removed, .instances = 1, .executions = 1, .events = 1);
  must(t, prune(t, "inst", .completed_before = first + 100000, .keep = 3, .ret = &removed));
  expect_counts(t, &removed, .instances = 1, .executions = 1, .events = 1);
  expect_executions(t, "inst", 5, 6, 7);
  must(t, prune(t, "inst", .completed_before = first + 1, .keep = 1));
  expect_executions(t, "inst", 5, 6, 7);
  must(t, prune(t, "inst", .completed_before = first + 100000));
  expect_executions(t, "inst", 7);
}

/* PRUNE-2: a time holds for all that a filter selects as well, by the ends of their executions. */
void
prune_filtered_before(struct dk_check *t)
{
  struct dk_removed removed;
  int64_t first = now(t);

  given_executions(t, "a", 4, 100);
  given_executions(t, "b", 2, 100);
  given_root(t, "c", DK_COMPLETED);
  removed = prune_all_matching(t, .completed_before = first + 100);
  expect_counts(t, &removed, .instances = 3, .executions = 1, .events = 1);
  expect_executions(t, "a", 2, 3, 4);
  removed = prune_all_matching(t, .completed_before = first + 100000, .keep = 2);
  expect_counts(t, &removed, .instances = 3, .executions = 1, .events = 1);
  expect_executions(t, "a", 3, 4);
  removed = prune_all_matching(t, .only = {.ids = {"b", "c"}}, .completed_before = first + 301);
  expect_counts(t, &removed, .instances = 2, .executions = 1, .events = 1);
  expect_executions(t, "a", 3, 4);
  expect_executions(t, "b", 2);
  removed = prune_all_matching(t, .completed_before = first + 100000);
  expect_counts(t, &removed, .instances = 3, .executions = 1, .events = 1);
  expect_executions(t, "a", 4);
  expect_executions(t, "c", 1);
}

/* ---- what is deleted with them --------------------------------------------------------------- */

/* PRUNE-3: histories are deleted with their executions, and no others. */
void
prune_histories_go(struct dk_check *t)
{
  must(t, ack_turn(t, next_turn(t, "inst"), .events = {{1}, {2}, {3}}, .output = "first",
                   .status = DK_CONTINUED_AS_NEW));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .events = {{1}, {7}},
                   .status = DK_CONTINUED_AS_NEW));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 3, .events = {{1, "of the third"}}));
  given_executions(t, "other", 2, 0);
  must(t, prune(t, "inst"));
  expect(t, !read_history(t, "inst", .execution_id = 1)->found, "the first execution was deleted");
  expect(t, !read_history(t, "inst", .execution_id = 2)->found, "the second execution was deleted");
  expect_equal(t, read_history(t, "inst", .execution_id = 1)->n_events, 0, "events of the first");
  struct dk_history *history = read_history(t, "inst");
  expect_equal(t, history->execution.execution_id, 3, "the latest");
  expect_equal(t, history->n_events, 1, "its events");
  expect_text(t, history->events[0].payload, "of the third", "payload");
  expect_executions(t, "other", 1, 2);
  expect_equal(t, read_history(t, "other", .execution_id = 1)->n_events, 1,
               "events of another instance");
  const struct dk_stats *stats = read_stats(t);
  expect_equal(t, stats->executions, 3, "executions in the store");
  expect_equal(t, stats->events, 3, "events in the store");
}

/* PRUNE-3: lease, messages, work, owner, pin and age stay, and a turn that is held can be
 * committed. */
void
prune_nothing_else(struct dk_check *t)
{
  static const struct dk_version pin = {3, 1, 4};
  int64_t created = now(t);

  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1}, {2}}, .events = {{1}},
                   .parent = "root", .status = DK_CONTINUED_AS_NEW));
  advance(t, 1000);
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .schedule = {{1}},
                   .status = DK_CONTINUED_AS_NEW));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 3, .events = {{1}}, .owner = "me",
                   .pinned = &pin));
  struct dk_bytes work = fetch_activity_of(t, "inst", 1, 1, .lock_ms = 4 * LEASE_MS)
                           ->work.lock_token;
  must(t, enqueue(t, "inst", .id = "m"));
  must(t, enqueue(t, "inst", .id = "later", .delay_ms = 5000));
  struct dk_turn *turn = fetch_turn(t, .owner = "me");
  expect_equal(t, turn->n_events, 0, "events for the owner");
  const struct dk_stats *was = read_stats(t);
  must(t, prune(t, "inst"));
  expect_executions(t, "inst", 3);
  expect_equal(t, look_at(t, "inst")->created_at, created, "created_at");
  expect_equal(t, look_at(t, "inst")->locked_until, now(t) + LEASE_MS, "locked_until");
  expect_text(t, look_at(t, "inst")->owner, "me", "owner");
  expect_text(t, look_at(t, "inst")->parent_instance, "root", "parent");
  const struct dk_stats *is = read_stats(t);
  expect_equal(t, is->activities_locked, was->activities_locked, "work items that are held");
  expect_equal(t, is->messages_locked, was->messages_locked, "messages that are held");
  expect_equal(t, is->messages_delayed, was->messages_delayed, "messages that are not due");
  expect_no_turn(t);
  must(t, renew_work(t, work));
  must(t, ack_work(t, work, .to = "inst", .id = "done"));
  must(t, ack_turn(t, turn, .execution_id = 3, .events = {{2}}));
  const struct dk_version_range fits = {pin, pin};
  expect_ids(t, fetch_turn(t, .ranges = &fits, .n_ranges = 1), "done");
}

/* ---- one, and many --------------------------------------------------------------------------- */

/* PRUNE-4: an instance that was never committed is not found, even if it has messages, or had
 * executions before a deletion. */
void
prune_unknown(struct dk_check *t)
{
  given_executions(t, "gone", 3, 0);
  must(t, delete_instances(t, .ids = {"gone"}, .force = true));
  given_executions(t, "inst", 3, 0);
  must(t, enqueue(t, "dropped"));
  must(t, ack_turn(t, fetch_turn(t), .empty = true));
  must(t, enqueue(t, "pending"));
  before(t);
  expect_status(t, prune(t, "absent"), DK_NOT_FOUND);
  expect_status(t, prune(t, "pending"), DK_NOT_FOUND);
  expect_status(t, prune(t, "dropped"), DK_NOT_FOUND);
  expect_status(t, prune(t, "gone", .keep = 1), DK_NOT_FOUND);
  expect_status(t, prune(t, "INST"), DK_NOT_FOUND);
  expect_unchanged(t);
  expect_executions(t, "inst", 1, 2, 3);
}

/* PRUNE-4: all instances that a filter selects are pruned and counted, running or ended, even those
 * of which nothing is deleted. */
void
prune_filtered(struct dk_check *t)
{
  struct dk_removed removed;

  given_executions(t, "a", 4, 0);
  given_executions(t, "b", 3, 0);
  must(t, ack_turn(t, next_turn(t, "b"), .execution_id = 3, .status = DK_COMPLETED));
  given_root(t, "c", DK_RUNNING);
  given_executions(t, "d", 5, 0);
  removed = prune_all_matching(t, .only = {.by_ids = true});
  expect_counts(t, &removed, .instances = 0);
  removed = prune_all_matching(t, .only = {.ids = {"absent"}});
  expect_counts(t, &removed, .instances = 0);
  removed = prune_all_matching(t, .only = {.ids = {"a", "c", "absent"}}, .keep = 2);
  expect_counts(t, &removed, .instances = 2, .executions = 2, .events = 2);
  expect_executions(t, "a", 3, 4);
  expect_executions(t, "d", 1, 2, 3, 4, 5);
  removed = prune_all_matching(t, .only = {.statuses = WITH_STATUS(DK_COMPLETED)});
  expect_counts(t, &removed, .instances = 1, .executions = 2, .events = 2);
  expect_executions(t, "b", 3);
  must(t, enqueue(t, "b2"));
  fetch_turn_of(t, "b2");
  must(t, enqueue(t, "d"));
  fetch_turn_of(t, "d");
  removed = prune_all_matching(t);
  expect_counts(t, &removed, .instances = 5, .executions = 5, .events = 5);
  expect_executions(t, "d", 5);
}

/* Prunes page after page, each from where the last one ended. */
static struct dk_removed
prune_in_pages(struct dk_check *t, uint32_t most)
{
  enum { MOST_PAGES = 50 };
  struct dk_removed sum = {.instances = 0}, removed;
  char after[16] = "";

  for (int pages = 0; pages < MOST_PAGES; pages++) {
    must(t, prune_matching(t, .only = {.created_from = 1}, .max = most,
                           .after = after[0] ? after : NULL, .ret = &removed));
    expect(t, removed.instances <= most, "a page examines %u instances at most", most);
    sum.instances += removed.instances;
    sum.executions += removed.executions;
    if (!removed.next.ptr)
      return sum;
    expect(t, strcmp(removed.next.ptr, after) > 0, "the next page begins behind \"%s\"", after);
    snprintf(after, sizeof after, "%.*s", (int)removed.next.len, removed.next.ptr);
  }
  expect(t, false, "the pages come to an end");
  return sum;
}

/* PRUNE-4: a page examines no more instances than were asked for, each whole. */
void
prune_pages(struct dk_check *t)
{
  enum { INSTANCES = 6 };
  char id[16];

  for (uint32_t most = 1; most <= 4; most++) {
    for (int i = 0; i < INSTANCES; i++) { /* 0, 1, 2, 0, 1 and 2 executions are to be deleted */
      snprintf(id, sizeof id, "inst-%u%d", most, i);
      given_executions(t, id, (uint64_t)i % 3 + 1, 0);
    }
    struct dk_removed sum = prune_in_pages(t, most);
    expect_equal(t, sum.instances, (uint64_t)INSTANCES * most, "instances, in pages of %u", most);
    expect_equal(t, sum.executions, 6, "executions, in pages of %u", most);
  }
}

/* ---- what is left ---------------------------------------------------------------------------- */

/* PRUNE-5: what is left is as it was, and the next commit continues from there. */
void
prune_goes_on(struct dk_check *t)
{
  given_executions(t, "inst", 5, 0);
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 5, .events = {{2}, {6}}));
  const struct dk_executions *was = list_executions(t, "inst", .after_number = 3);
  must(t, prune(t, "inst", .keep = 2));
  const struct dk_executions *is = list_executions(t, "inst");
  expect_equal(t, is->n_items, 2, "executions that are left");
  for (size_t i = 0; i < 2; i++) {
    expect_equal(t, is->items[i].execution_id, was->items[i].execution_id, "number");
    expect_equal(t, is->items[i].status, was->items[i].status, "status");
    expect_equal(t, is->items[i].last_event_id, was->items[i].last_event_id, "last event");
    expect_equal(t, is->items[i].started_at, was->items[i].started_at, "started_at");
    expect_equal(t, is->items[i].completed_at, was->items[i].completed_at, "completed_at");
    expect_bytes(t, is->items[i].output, was->items[i].output, "output");
  }
  struct dk_turn *turn = next_turn(t, "inst");
  expect_equal(t, turn->head.execution_id, 5, "execution of the next turn");
  expect_equal(t, turn->n_events, 3, "events of the next turn");
  expect_status(t, ack_turn(t, turn, .execution_id = 3), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .execution_id = 7), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .execution_id = 5, .events = {{6}}), DK_DUPLICATE);
  must(t, ack_turn(t, turn, .execution_id = 5, .events = {{7}}, .status = DK_CONTINUED_AS_NEW));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 6, .events = {{1}}));
  expect_executions(t, "inst", 4, 5, 6);
  expect_equal(t, read_history(t, "inst", .execution_id = 5)->n_events, 4, "events of the fifth");
}

/* PRUNE-5: what was pruned stays deleted when the store is opened again. */
void
prune_same_after_reopening(struct dk_check *t)
{
  given_executions(t, "inst", 4, 0);
  must(t, prune(t, "inst", .keep = 2));
  close_handle(t, NULL);
  open_handle(t, NULL);
  expect_executions(t, "inst", 3, 4);
  expect(t, !read_history(t, "inst", .execution_id = 2)->found,
         "the second execution stays deleted");
  expect_text(t, read_history(t, "inst", .execution_id = 3)->execution.output, "execution 3",
              "output of the third");
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 5));
  expect_executions(t, "inst", 3, 4, 5);
}

/* PRUNE-5: another process sees what is left, and prunes it. */
void
prune_other_process_sees(struct dk_check *t)
{
  struct actor *other = another_process(t);
  struct dk_removed removed;

  given_executions(t, "inst", 4, 0);
  expect_equal(t, list_executions(t, "inst", .on = other)->n_items, 4, "executions");
  must(t, prune(t, "inst", .keep = 3));
  expect_equal(t, list_executions(t, "inst", .on = other)->n_items, 3, "executions that are left");
  expect(t, !read_history(t, "inst", .on = other, .execution_id = 1)->found,
         "the first was deleted");
  must(t, prune(t, "inst", .on = other, .keep = 2, .ret = &removed));
  expect_counts(t, &removed, .instances = 1, .executions = 1, .events = 1);
  expect_executions(t, "inst", 3, 4);
  prune_all_matching(t, .on = other);
  expect_executions(t, "inst", 4);
}

/* ---- at the same time ------------------------------------------------------------------------ */

/* PRUNE-5: in a race of prune and commit, the execution that the commit has begun stays. */
void
prune_races_commit(struct dk_check *t)
{
  struct actor *runtime = racer(t), *admin = racer(t);
  uint64_t number = 1;

  given_root(t, "inst", DK_CONTINUED_AS_NEW);
  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    struct dk_bytes token = next_turn(t, "inst")->head.lock_token;
    number++;
    hold_at_line(t, runtime);
    hold_at_line(t, admin);
    must(t, ack_token(t, token, .on = runtime, .start = true, .execution_id = number,
                      .events = {{1}}, .status = DK_CONTINUED_AS_NEW));
    must(t, prune(t, "inst", .on = admin, .start = true));
    witness(t, race(t, runtime, admin));
    dk_status committed = finish(t, runtime), pruned = finish(t, admin);
    if (is_retryable(committed))
      insist(t, ack_token(t, token, .on = runtime, .execution_id = number, .events = {{1}},
                          .status = DK_CONTINUED_AS_NEW));
    else
      expect_status(t, committed, DK_OK);
    if (is_retryable(pruned))
      insist(t, prune(t, "inst", .on = admin));
    else
      expect_status(t, pruned, DK_OK);
    expect_equal(t, look_at(t, "inst")->execution_id, number, "current execution");
    expect_equal(t, read_history(t, "inst", .execution_id = number)->n_events, 1, "its events");
    const struct dk_executions *left = list_executions(t, "inst");
    expect(t, left->n_items > 0 && left->n_items <= 2, "one is left, or two: %zu", left->n_items);
    expect_equal(t, left->items[left->n_items - 1].execution_id, number, "the newest that is left");
  }
}
