/* SPDX-License-Identifier: Apache-2.0 */
/* DEL-5 to DEL-9: what tokens mean after a deletion, a new life under an old id, what is counted,
 * and deletion page by page. */
#include "conformance/checks/admin.h"

#include <stdio.h>
#include <string.h>

/* ---- tokens ---------------------------------------------------------------------------------- */

static void
expect_dead_for_good(struct dk_check *t, struct dk_bytes turn, struct dk_bytes work)
{
  expect_dead_turn(t, turn);
  expect_status(t, ack_token(t, turn, .repeated = true, .name = "order", .version = "1.0.0",
                             .events = {{1}}, .send = {{"sink", .id = "repeated"}}),
                DK_LOCK_LOST);
  expect_status(t, ack_token(t, turn, .empty = true), DK_LOCK_LOST);
  expect_dead_work(t, work);
  expect_status(t, ack_work(t, work, .repeated = true, .to = "sink", .id = "late"), DK_LOCK_LOST);
  expect_status(t, ack_work(t, work, .to = "inst", .id = "late"), DK_LOCK_LOST);
}

/* DEL-5: a token of a deleted instance has no effect, whatever the call. */
void
del_tokens_are_dead(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 2);
  struct dk_bytes work = fetch_activity(t, "inst", 1)->work.lock_token;
  struct dk_bytes turn = next_turn(t, "inst")->head.lock_token;

  must(t, delete_instances(t, .ids = {"inst"}, .force = true));
  before(t);
  expect_dead_for_good(t, turn, work);
  expect_unchanged(t);
  expect_none_listed(t, list_instances(t));
  expect_no_turn(t);
  expect_no_work(t);
}

/* DEL-5: the turn of a deleted id that was never committed cannot be committed. */
void
del_tokens_of_not_started(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "start"));
  struct dk_bytes token = fetch_turn(t)->head.lock_token;
  must(t, delete_instances(t, .ids = {"inst"}, .force = true));
  before(t);
  expect_dead_turn(t, token);
  expect_status(t, ack_token(t, token, .repeated = true, .name = "order", .version = "1.0.0"),
                DK_LOCK_LOST);
  expect_status(t, ack_token(t, token, .empty = true), DK_LOCK_LOST);
  expect_unchanged(t);
  expect_gone(t, "inst");
  must(t, enqueue(t, "inst"));
  expect_equal(t, fetch_turn(t)->head.known, 0, "known: no turn of it was committed");
}

/* DEL-5: the last commit of a deleted instance cannot be repeated, marked or not. */
void
del_no_commit_is_repeated(struct dk_check *t)
{
  given_root(t, "inst", DK_RUNNING);
  struct dk_bytes token = next_turn(t, "inst")->head.lock_token;
  must(t, ack_token(t, token, .events = {{2}}, .status = DK_COMPLETED));
  must(t, ack_token(t, token, .events = {{2}}, .status = DK_COMPLETED, .repeated = true));
  must(t, delete_instances(t, .ids = {"inst"}));
  before(t);
  expect_status(t, ack_token(t, token, .events = {{2}}, .status = DK_COMPLETED, .repeated = true),
                DK_LOCK_LOST);
  expect_status(t, ack_token(t, token, .events = {{2}}, .status = DK_COMPLETED), DK_LOCK_LOST);
  expect_unchanged(t);
  expect_none_listed(t, list_instances(t));
}

/* DEL-5: descendants' tokens die with their root, and their late results have no effect. */
void
del_tokens_of_descendants(struct dk_check *t)
{
  given_root(t, "root", DK_RUNNING);
  given_child(t, "child", "root", DK_RUNNING);
  must(t, ack_turn(t, next_turn(t, "child"), .schedule = {{1}, {2}}, .execution_id = 1));
  struct dk_bytes work = fetch_activity(t, "child", 1)->work.lock_token;
  struct dk_bytes turn = next_turn(t, "child")->head.lock_token;
  must(t, delete_instances(t, .ids = {"root"}, .force = true));
  before(t);
  expect_dead_for_good(t, turn, work);
  expect_status(t, ack_token(t, turn, .events = {{2}}, .send = {{"root", .id = "child is done"}}),
                DK_LOCK_LOST);
  expect_unchanged(t);
  expect_none_listed(t, list_instances(t));
  expect_no_work(t);
}

/* ---- a new life ------------------------------------------------------------------------------ */

static const struct dk_version pin = {9, 0, 0};
static const struct dk_version_range early = {{1, 0, 0}, {1, 9, 9}}; /* without the pin */

/* DEL-6: a deleted id begins anew, like any other. */
void
del_new_life(struct dk_check *t)
{
  must(t, ack_turn(t, next_turn(t, "inst"), .events = {{1}, {5}}, .schedule = {{1}, {2}},
                   .name = "old", .version = "9.0.0", .owner = "me", .parent = "parent"));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .events = {{7}}, .owner = "me",
                   .pinned = &pin, .schedule = {{1}}));
  must(t, enqueue(t, "inst", .id = "m"));
  struct dk_turn *old = fetch_turn(t);
  must(t, abandon_turn(t, old->head.lock_token));
  must(t, abandon_work(t, fetch_activity_of(t, "inst", 1, 1)->work.lock_token));
  must(t, delete_instances(t, .ids = {"inst"}, .force = true));

  must(t, enqueue(t, "inst", .id = "m"));
  struct dk_turn *turn = fetch_turn(t, .owner = "me");
  expect_equal(t, turn->head.known, 0, "known: this is another life");
  expect_equal(t, turn->head.birth, 0, "birth before the first commit");
  expect_ids(t, turn, "m");
  expect_equal(t, turn->messages[0].attempt, 1, "attempt");
  expect_status(t, ack_turn(t, turn, .nameless = true), DK_INVALID);
  must(t, ack_turn(t, turn, .name = "new", .version = "1.0.0", .events = {{1, "anew"}},
                   .schedule = {{1}, {2}}));
  must(t, enqueue(t, "inst"));
  turn = fetch_turn(t, .owner = "me", .ranges = &early, .n_ranges = 1);
  expect_equal(t, turn->head.execution_id, 1, "execution");
  expect_text(t, turn->head.name, "new", "name");
  expect_text(t, turn->head.parent_instance, NULL, "parent");
  expect_equal(t, turn->head.last_event_id, 1, "last event");
  expect_equal(t, turn->n_events, 1, "events, for the owner of the old life too");
  expect(t, turn->head.birth != 0 && turn->head.birth != old->head.birth,
         "each life has a birth of its own");
  expect_executions(t, "inst", 1);
  expect_equal(t, fetch_activity(t, "inst", 1)->work.attempt, 1, "attempt of an activity");
}

/* DEL-6: no token of the old life is one of the new, however often each was fetched. */
void
del_old_tokens_in_new_life(struct dk_check *t)
{
  enum { FETCHES = 4 };
  struct dk_bytes turns[FETCHES], works[FETCHES];

  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst"));
  for (int i = 0; i < FETCHES; i++) {
    turns[i] = fetch_turn(t)->head.lock_token;
    must(t, abandon_turn(t, turns[i]));
    works[i] = fetch_work(t)->work.lock_token;
    must(t, abandon_work(t, works[i]));
  }
  must(t, delete_instances(t, .ids = {"inst"}, .force = true));
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t), .schedule = {{1}}));
  must(t, enqueue(t, "inst"));
  for (int i = 0; i < FETCHES; i++) {
    struct dk_turn *turn = fetch_turn(t);
    struct dk_work_item *work = fetch_work(t);

    for (int k = 0; k < FETCHES; k++) {
      expect_status(t, renew_turn(t, turns[k]), DK_LOCK_LOST);
      expect_status(t, abandon_turn(t, turns[k]), DK_LOCK_LOST);
      expect_status(t, ack_token(t, turns[k], .repeated = true), DK_LOCK_LOST);
      expect_status(t, renew_work(t, works[k]), DK_LOCK_LOST);
      expect_status(t, ack_work(t, works[k], .to = "sink"), DK_LOCK_LOST);
    }
    must(t, abandon_turn(t, turn->head.lock_token));
    must(t, abandon_work(t, work->work.lock_token));
  }
}

/* ---- what is counted ------------------------------------------------------------------------- */

/* DEL-7: everything deleted is counted, each once. */
void
del_counts(struct dk_check *t)
{
  struct dk_removed removed;

  given_executions(t, "root", 3, 0);
  must(t, ack_turn(t, next_turn(t, "root"), .execution_id = 3, .events = {{2}, {9}},
                   .schedule = {{1}, {2, .tag = "gpu"}, {3, .delay_ms = 5000}}));
  given_child(t, "child", "root", DK_COMPLETED);
  must(t, ack_turn(t, next_turn(t, "child"), .schedule = {{1}}));
  given_root(t, "other", DK_COMPLETED);
  fetch_activity_of(t, "root", 3, 1);
  must(t, enqueue(t, "root", .id = "m", .delay_ms = 5000));
  must(t, enqueue(t, "child", .id = "n"));
  must(t, enqueue(t, "child", .id = "o"));
  must(t, delete_instances(t, .ids = {"root", "root", "root"}, .force = true, .ret = &removed));
  expect_counts(t, &removed, .instances = 2, .executions = 4, .events = 6, .messages = 3,
                .activities = 4);
  must(t, enqueue(t, "pending"));
  must(t, delete_instances(t, .ids = {"other", "pending"}, .force = true, .ret = &removed));
  expect_counts(t, &removed, .instances = 2, .executions = 1, .events = 1, .messages = 1);
}

static void
expect_roots(struct dk_check *t, const struct dk_removed *got, uint64_t roots, uint64_t instances)
{
  expect_equal(t, got->instances, instances, "instances reported as removed");
  expect_equal(t, got->roots, roots, "roots reported as removed");
}

/* DEL-7: each instance that a list names counts as a root, once; a descendant that is deleted with
 * it does not. */
void
del_roots(struct dk_check *t)
{
  struct dk_removed removed;

  given_root(t, "root", DK_COMPLETED);
  given_child(t, "a", "root", DK_COMPLETED);
  given_child(t, "a1", "a", DK_FAILED);
  given_root(t, "other", DK_CANCELLED);
  must(t, delete_instances(t, .ids = {"root", "other", "root"}, .ret = &removed));
  expect_roots(t, &removed, 2, 4);
  given_root(t, "root", DK_COMPLETED);
  given_child(t, "a", "root", DK_COMPLETED);
  given_child(t, "a1", "a", DK_COMPLETED);
  must(t, delete_instances(t, .ids = {"a1", "root"}, .ret = &removed));
  expect_roots(t, &removed, 2, 3);
  given_child(t, "ring", "its child", DK_COMPLETED);
  given_child(t, "its child", "ring", DK_COMPLETED);
  must(t, delete_instances(t, .ids = {"ring"}, .ret = &removed));
  expect_roots(t, &removed, 1, 2);
  must(t, enqueue(t, "pending"));
  must(t, delete_instances(t, .ids = {"pending"}, .force = true, .ret = &removed));
  expect_roots(t, &removed, 1, 1);
  must(t, delete_instances(t, .ret = &removed));
  expect_roots(t, &removed, 0, 0);
}

/* ---- what a filter selects ------------------------------------------------------------------- */

/* Trees in all states, of which a filter deletes only "over" and "orphan". */
static void
given_trees(struct dk_check *t)
{
  given_root(t, "over", DK_COMPLETED);
  given_child(t, "over/a", "over", DK_FAILED);
  given_child(t, "over/a/b", "over/a", DK_CANCELLED);
  given_root(t, "busy", DK_COMPLETED);
  given_child(t, "busy/a", "busy", DK_COMPLETED);
  given_child(t, "busy/a/b", "busy/a", DK_RUNNING);
  given_root(t, "running", DK_RUNNING);
  given_child(t, "running/a", "running", DK_COMPLETED);
  must(t, ack_turn(t, next_turn(t, "continued"), .status = DK_CONTINUED_AS_NEW));
  given_child(t, "orphan", "absent", DK_COMPLETED);
  must(t, enqueue(t, "pending"));
}

/* DEL-8: a filter deletes roots that have ended with all their descendants, and skips the rest. */
void
del_matching(struct dk_check *t)
{
  struct dk_removed removed;

  given_trees(t);
  removed = delete_all_matching(t, .only = {.statuses = WITH_STATUS(DK_RUNNING)});
  expect_counts(t, &removed, .instances = 0);
  expect_equal(t, list_instances(t)->n_items, 11, "instances before the deletion");
  removed = delete_all_matching(t);
  expect_counts(t, &removed, .instances = 4, .executions = 4, .events = 4);
  expect_listed(t, list_instances(t), "busy", "busy/a", "busy/a/b", "continued", "pending",
                "running", "running/a");
  must(t, ack_turn(t, fetch_turn_of(t, "pending"), .status = DK_COMPLETED));
  must(t, ack_turn(t, next_turn(t, "busy/a/b"), .status = DK_FAILED));
  must(t, ack_turn(t, next_turn(t, "running"), .status = DK_COMPLETED));
  removed = delete_all_matching(t);
  expect_counts(t, &removed, .instances = 6, .executions = 6, .events = 5);
  expect_listed(t, list_instances(t), "continued");
}

/* DEL-8: a filter selects roots: descendants are deleted with them, and none without its root. */
void
del_matching_selects_roots(struct dk_check *t)
{
  struct dk_removed removed;

  given_trees(t);
  must(t, ack_turn(t, next_turn(t, "named"), .name = "special", .status = DK_COMPLETED));
  given_child(t, "named/a", "named", DK_COMPLETED);
  removed = delete_all_matching(t, .only = {.parent = "over"});
  expect_counts(t, &removed, .instances = 0);
  removed = delete_all_matching(t, .only = {.ids = {"over/a", "running/a", "absent"}});
  expect_counts(t, &removed, .instances = 0);
  removed = delete_all_matching(t, .only = {.by_ids = true});
  expect_counts(t, &removed, .instances = 0);
  removed = delete_all_matching(t, .only = {.by_ids = true, .name = "order"});
  expect_counts(t, &removed, .instances = 0);
  expect_equal(t, list_instances(t)->n_items, 13, "instances before the deletion");
  removed = delete_all_matching(t, .only = {.name = "special"});
  expect_counts(t, &removed, .instances = 2, .executions = 2, .events = 1);
  expect_gone(t, "named/a");
  removed = delete_all_matching(t, .only = {.ids = {"over", "over", "busy", "orphan", "absent"}});
  expect_counts(t, &removed, .instances = 4, .executions = 4, .events = 4);
}

/* DEL-8, DEL-1, DEL-5: a filter deletes instances with their messages, work, histories and tokens,
 * queued, held or delayed, as a list does. */
void
del_matching_takes_all(struct dk_check *t)
{
  struct dk_removed removed;

  given_executions(t, "inst", 2, 0);
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .status = DK_COMPLETED,
                   .events = {{2}},
                   .schedule = {{1}, {2, .tag = "gpu"}, {3, .delay_ms = 3600000}}));
  given_child(t, "child", "inst", DK_COMPLETED);
  must(t, ack_turn(t, next_turn(t, "child"), .schedule = {{1}}));
  given_root(t, "queued", DK_FAILED);
  must(t, enqueue(t, "queued", .delay_ms = 3600000));
  struct dk_bytes work = fetch_activity_of(t, "inst", 2, 1)->work.lock_token;
  struct dk_bytes turn = next_turn(t, "inst")->head.lock_token;
  must(t, enqueue(t, "inst", .delay_ms = 3600000));
  must(t, enqueue(t, "child"));
  removed = delete_all_matching(t);
  expect_counts(t, &removed, .instances = 3, .executions = 4, .events = 5, .messages = 4,
                .activities = 4);
  const struct dk_stats *stats = read_stats(t);
  expect_equal(t, stats->messages_ready + stats->messages_delayed + stats->messages_locked, 0,
               "messages in the store");
  expect_equal(t, stats->activities_ready + stats->activities_delayed + stats->activities_locked,
               0, "work items in the store");
  expect_equal(t, stats->executions + stats->events, 0, "executions and events in the store");
  before(t);
  expect_dead_turn(t, turn);
  expect_dead_work(t, work);
  expect_unchanged(t);
  expect_none_listed(t, list_instances(t));
}

/* DEL-8, ADMIN-2: to the millisecond, and by the end of the current execution. */
void
del_matching_by_time(struct dk_check *t)
{
  struct dk_removed removed;

  given_root(t, "a", DK_RUNNING);
  given_root(t, "again", DK_COMPLETED);
  advance(t, 500);
  int64_t ended = now(t);
  must(t, ack_turn(t, next_turn(t, "a"), .status = DK_COMPLETED));
  must(t, ack_turn(t, next_turn(t, "again"), .execution_id = 2, .status = DK_COMPLETED));
  advance(t, 500);
  given_root(t, "b", DK_COMPLETED);
  removed = delete_all_matching(t, .only = {.completed_before = ended});
  expect_counts(t, &removed, .instances = 0);
  removed = delete_all_matching(t, .only = {.completed_before = ended + 1});
  expect_counts(t, &removed, .instances = 2, .executions = 3, .events = 2);
  removed = delete_all_matching(t, .only = {.created_before = ended + 500});
  expect_counts(t, &removed, .instances = 0);
  removed = delete_all_matching(t, .only = {.created_from = ended + 500});
  expect_counts(t, &removed, .instances = 1, .executions = 1, .events = 1);
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Deletes page after page, each from where the last one ended; returns the number of deleted
 * instances. */
static uint64_t
delete_in_pages(struct dk_check *t, uint32_t most, uint64_t in_each)
{
  enum { MOST_PAGES = 100 };
  char after[64] = "";
  uint64_t n = 0;

  for (int pages = 0; pages < MOST_PAGES; pages++) {
    struct dk_removed removed;

    must(t, delete_matching(t, .only = {.name = "order"}, .max = most,
                            .after = after[0] ? after : NULL, .ret = &removed));
    expect(t, removed.instances <= most * in_each, "a page of %u deletes no more than that", most);
    n += removed.instances;
    if (!removed.next.ptr)
      return n;
    expect(t, strcmp(removed.next.ptr, after) > 0, "the next page begins behind \"%s\"", after);
    snprintf(after, sizeof after, "%.*s", (int)removed.next.len, removed.next.ptr);
  }
  expect(t, false, "the pages come to an end");
  return n;
}

/* DEL-9: what is skipped is neither counted nor examined twice, and the last page has no next. */
void
del_pages(struct dk_check *t)
{
  enum { TREES = 10 };
  char id[16], child[16];

  for (uint32_t most = 1; most <= 4; most++) {
    for (int i = 0; i < TREES; i++) {
      snprintf(id, sizeof id, "t%d", i);
      snprintf(child, sizeof child, "t%d/c", i);
      given_root(t, id, i % 2 == 0 ? DK_COMPLETED : DK_RUNNING);
      given_child(t, child, id, DK_COMPLETED);
    }
    expect_equal(t, delete_in_pages(t, most, 2), TREES, "instances, in pages of %u", most);
    expect_equal(t, list_instances(t)->n_items, TREES, "instances that were skipped");
    expect_equal(t, delete_in_pages(t, most, 2), 0, "instances, when all are skipped");
    must(t, delete_instances(t, .ids = {"t1", "t3", "t5", "t7", "t9"}, .force = true));
    for (int i = 0; i < TREES; i++) { /* without children each is the next one's neighbour */
      snprintf(id, sizeof id, "r%d", i);
      given_root(t, id, DK_COMPLETED);
    }
    expect_equal(t, delete_in_pages(t, most, 1), TREES, "roots, in pages of %u", most);
  }
}

/* DEL-7: no page deletes more roots than were asked for, and all pages together count each root
 * that the limit counts: no children, which the filter selects as well, and nothing that is
 * skipped. */
void
del_roots_of_pages(struct dk_check *t)
{
  for (uint32_t most = 1; most <= 3; most++) {
    struct dk_removed page = {.next = {NULL, 0}};
    uint64_t instances = 0, roots = 0;

    given_trees(t);
    do {
      must(t, delete_matching(t, .after = page.next.ptr, .max = most, .ret = &page));
      expect(t, page.roots <= most, "a page of %u deletes no more roots than that", most);
      instances += page.instances;
      roots += page.roots;
    } while (page.next.ptr);
    expect_equal(t, roots, 2, "roots, in pages of %u", most);
    expect_equal(t, instances, 4, "instances, in pages of %u", most);
    must(t, delete_instances(t, .ids = {"busy", "running", "continued", "pending"}, .force = true,
                             .ret = &page));
    expect_roots(t, &page, 4, 7);
  }
}

/* From above `after` one is deleted, on the first page or on a later one. */
static void
delete_next(struct dk_check *t, const char *after)
{
  struct dk_removed removed = {.next = bytes(after)};

  do
    must(t, delete_matching(t, .after = removed.next.ptr, .max = 1, .ret = &removed));
  while (removed.instances == 0 && removed.next.ptr);
  expect_counts(t, &removed, .instances = 1, .executions = 1, .events = 1);
}

/* DEL-9: a page begins above `after`, whether that exists or not. */
void
del_page_begins_after(struct dk_check *t)
{
  struct dk_removed removed;

  given_root(t, "a", DK_COMPLETED);
  given_root(t, "b", DK_COMPLETED);
  given_root(t, "c", DK_COMPLETED);
  given_root(t, "d", DK_COMPLETED);
  delete_next(t, "b");
  expect_listed(t, list_instances(t), "a", "b", "d");
  delete_next(t, "c");
  expect_listed(t, list_instances(t), "a", "b");
  must(t, delete_matching(t, .after = "b", .ret = &removed));
  expect_counts(t, &removed, .instances = 0);
  expect_text(t, removed.next, NULL, "next, when nothing is above `after`");
  delete_next(t, "A");
  expect_listed(t, list_instances(t), "b");
}

/* DEL-9, PRUNE-4: pages that end by themselves are followed by others: one that has tens of
 * thousands of rows comes before all, and thousands that must stay come before the last. */
void
del_behind_thousands(struct dk_check *t)
{
  enum { WAITING = 2500, ROWS = 20500 };
  struct dk_bytes ids[WAITING];
  struct dk_removed removed;

  given_instance(t, "inst");
  schedule_many(t, (struct dk_item){.activity_id = 1, .payload = bytes("one of many")}, ROWS);
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_COMPLETED));
  given_many_waiting(t, ids, WAITING);
  given_executions(t, "the last", 2, 0);
  removed = prune_all_matching(t, .max = 2 * WAITING);
  expect_equal(t, removed.executions, 1, "executions that were pruned");
  must(t, ack_turn(t, next_turn(t, "the last"), .execution_id = 2, .status = DK_COMPLETED));
  removed = delete_all_matching(t);
  expect_equal(t, removed.instances, 2, "instances that were deleted");
  expect_equal(t, removed.activities, ROWS, "activities that were deleted");
  expect_gone(t, "inst");
  expect_gone(t, "the last");
  expect_equal(t, read_stats(t)->not_started, WAITING, "instances that have not started");
}
