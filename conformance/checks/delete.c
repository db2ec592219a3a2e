/* SPDX-License-Identifier: Apache-2.0 */
/* DEL-1 to DEL-4: what a deletion removes, what may be deleted, and lists of several. */
#include "conformance/checks/admin.h"

#include <stdio.h>
#include <stdlib.h>

enum { A_YEAR_S = 366 * 24 * 3600 };

/* ---- nothing is left ------------------------------------------------------------------------- */

/* The store holds as much as it did. */
static void
expect_same_counts(struct dk_check *t, const struct dk_stats *was)
{
  const struct dk_stats *is = read_stats(t);

  expect_equal(t, is->not_started, was->not_started, "instances that have not started");
  expect_equal(t, is->running, was->running, "instances that run");
  expect_equal(t, is->completed + is->failed + is->cancelled + is->continued_as_new,
               was->completed + was->failed + was->cancelled + was->continued_as_new,
               "instances that have ended");
  expect_equal(t, is->executions, was->executions, "executions in the store");
  expect_equal(t, is->events, was->events, "events in the store");
  expect_equal(t, is->messages_ready + is->messages_delayed + is->messages_locked,
               was->messages_ready + was->messages_delayed + was->messages_locked,
               "messages in the store");
  expect_equal(t, is->activities_ready + is->activities_delayed + is->activities_locked,
               was->activities_ready + was->activities_delayed + was->activities_locked,
               "work items in the store");
}

/* DEL-1: histories of all executions are deleted, and so are messages that are ready, held, delayed
 * or have an id. */
void
del_nothing_is_left(struct dk_check *t)
{
  struct dk_removed removed;

  given_root(t, "other", DK_COMPLETED);
  const struct dk_stats *was = read_stats(t);
  given_executions(t, "inst", 3, 0);
  must(t, enqueue(t, "inst", .id = "held"));
  fetch_turn(t, .owner = "me");
  must(t, enqueue(t, "inst", .id = "arrival"));
  must(t, enqueue(t, "inst", .id = "in a month", .delay_ms = INT64_C(30) * 24 * 3600 * 1000));
  must(t, enqueue(t, "inst"));
  must(t, delete_instances(t, .ids = {"inst"}, .force = true, .ret = &removed));
  expect_counts(t, &removed, .instances = 1, .executions = 3, .events = 3, .messages = 4);
  expect_text(t, removed.next, NULL, "next, of a deletion without pages");
  expect_gone(t, "inst");
  expect_same_counts(t, was);
  for (uint64_t number = 1; number <= 4; number++)
    expect(t, !read_history(t, "inst", .execution_id = number)->found, "no execution is left");
  advance(t, INT64_C(1000) * A_YEAR_S);
  expect_no_turn(t);
  expect_listed(t, list_instances(t), "other");
}

/* DEL-1: work items of all executions are deleted: free, held, expired, tagged or delayed. */
void
del_no_work_is_left(struct dk_check *t)
{
  struct dk_removed removed;

  must(t, ack_turn(t, next_turn(t, "other"), .schedule = {{1}}));
  must(t, ack_turn(t, next_turn(t, "inst"),
                   .schedule = {{1}, {2, .tag = "gpu"}, {3, .delay_ms = 3600000}, {4}}));
  struct dk_bytes expired = fetch_activity(t, "inst", 4, .lock_ms = 100)->work.lock_token;
  advance(t, 100);
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .schedule = {{1}, {5}}));
  struct dk_bytes held = fetch_activity_of(t, "inst", 2, 5)->work.lock_token;
  must(t, delete_instances(t, .ids = {"inst"}, .force = true, .ret = &removed));
  expect_counts(t, &removed, .instances = 1, .executions = 2, .activities = 6);
  expect_status(t, renew_work(t, held), DK_LOCK_LOST);
  expect_status(t, renew_work(t, expired), DK_LOCK_LOST);
  const struct dk_stats *stats = read_stats(t);
  expect_equal(t, stats->activities_ready + stats->activities_delayed + stats->activities_locked,
               1, "work items in the store");
  advance(t, INT64_C(1000) * A_YEAR_S);
  the_item_of(t, "other", 1);
}

/* DEL-1: instances whose ids only look alike stay, and so does what was sent to others. */
void
del_spares_others(struct dk_check *t)
{
  static const char *const ids[] = {"INST", "inst ", "inst%", "inst-2", "ins", "nst"};
  enum { IDS = sizeof ids / sizeof ids[0] };

  for (size_t i = 0; i < IDS; i++) {
    must(t, ack_turn(t, next_turn(t, ids[i]), .schedule = {{1}}, .events = {{1}}));
    must(t, enqueue(t, ids[i], .id = "m", .delay_ms = 1000));
  }
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1}}, .events = {{1}},
                   .status = DK_COMPLETED, .send = {{"ins", .id = "inst/1"}, {"sink"}}));
  must(t, enqueue(t, "inst", .id = "m"));
  must(t, delete_instances(t, .ids = {"inst"}));
  expect_gone(t, "inst");
  expect_listed(t, list_instances(t), "INST", "ins", "inst ", "inst%", "inst-2", "nst", "sink");
  for (size_t i = 0; i < IDS; i++) {
    expect(t, read_history(t, ids[i])->n_events == 1, "\"%s\" has its history", ids[i]);
    expect_equal(t, read_messages(t, ids[i])->n_items, i == 4 ? 2 : 1, "messages for \"%s\"",
                 ids[i]);
    fetch_activity(t, ids[i], 1);
  }
  expect_no_work(t);
  expect_equal(t, read_messages(t, "sink")->n_items, 1, "messages that it has sent");
}

/* DEL-1: an instance with any long or odd id is deleted, and one with nearly the same id stays. */
void
del_odd_ids(struct dk_check *t)
{
  struct dk_bytes longest = filled(t, provider(t)->limits->max_id, 'x');
  struct dk_bytes shorter = filled(t, longest.len - 1, 'x');
  const char *const pairs[][2] = { /* the first is deleted, the second stays */
    {longest.ptr, shorter.ptr},   {"\xc3\xa9", "e\xcc\x81"}, {"' OR 1=1 --", "' OR 1=1 "},
    {"a%", "ab"},                 {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x81"}, {"10", "010"},
  };
  enum { PAIRS = sizeof pairs / sizeof pairs[0] };

  for (size_t i = 0; i < PAIRS; i++) {
    given_root(t, pairs[i][0], DK_COMPLETED);
    given_child(t, pairs[i][1], "\"parent\\", DK_RUNNING);
  }
  for (size_t i = 0; i < PAIRS; i++) {
    must(t, delete_instances(t, .ids = {pairs[i][0]}));
    expect_gone(t, pairs[i][0]);
    expect_text(t, look_at(t, pairs[i][1])->parent_instance, "\"parent\\", "parent");
    expect_equal(t, read_history(t, pairs[i][1])->n_events, 1, "events of the one that stays");
  }
  expect_equal(t, list_instances(t)->n_items, PAIRS, "instances that stay");
}

/* DEL-1: what was deleted stays deleted when the store is opened again. */
void
del_same_after_reopening(struct dk_check *t)
{
  given_executions(t, "inst", 2, 0);
  given_child(t, "child", "inst", DK_COMPLETED);
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .schedule = {{1}}));
  must(t, enqueue(t, "inst", .delay_ms = 1000));
  given_root(t, "other", DK_COMPLETED);
  must(t, delete_instances(t, .ids = {"inst"}, .force = true));
  close_handle(t, NULL);
  open_handle(t, NULL);
  expect_gone(t, "inst");
  expect_gone(t, "child");
  expect_listed(t, list_instances(t), "other");
  expect_status(t, delete_instances(t, .ids = {"inst"}, .force = true), DK_NOT_FOUND);
  expect_no_work(t);
  advance(t, 1000);
  expect_no_turn(t);
  must(t, ack_turn(t, next_turn(t, "inst")));
}

/* DEL-1, DEL-5: what another process holds is taken from it, and it sees what was deleted. */
void
del_other_process_sees(struct dk_check *t)
{
  struct actor *other = another_process(t);

  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst", .on = other));
  expect_listed(t, list_instances(t, .on = other), "inst");
  struct dk_bytes turn = fetch_turn(t, .on = other)->head.lock_token;
  struct dk_bytes work = fetch_work(t, .on = other)->work.lock_token;
  must(t, delete_instances(t, .ids = {"inst"}, .force = true));
  expect_none_listed(t, list_instances(t, .on = other));
  expect_equal(t, read_stats(t, .on = other)->activities_locked, 0, "work items that are held");
  expect_status(t, renew_turn(t, turn, .on = other), DK_LOCK_LOST);
  expect_status(t, ack_token(t, turn, .on = other, .name = "order", .version = "1.0.0"),
                DK_LOCK_LOST);
  expect_status(t, renew_work(t, work, .on = other), DK_LOCK_LOST);
  expect_status(t, ack_work(t, work, .on = other, .to = "inst"), DK_LOCK_LOST);
  expect_status(t, delete_instances(t, .ids = {"inst"}, .force = true, .on = other), DK_NOT_FOUND);
  expect_none_listed(t, list_instances(t));
  given_root(t, "ours", DK_COMPLETED);
  must(t, delete_instances(t, .ids = {"ours"}, .on = other));
  expect_gone(t, "ours");
  expect_no_turn(t);
  expect_no_work(t);
}

/* ---- what may be deleted --------------------------------------------------------------------- */

/* DEL-2: running, between two executions, not started: refused, with nothing changed. */
void
del_not_over_stays(struct dk_check *t)
{
  given_root(t, "over", DK_COMPLETED);
  given_root(t, "running", DK_RUNNING);
  must(t, ack_turn(t, next_turn(t, "continued"), .status = DK_CONTINUED_AS_NEW, .output = "so far",
                   .send = {{"continued", .id = "next", .delay_ms = 1000}}));
  given_root(t, "again", DK_COMPLETED);
  must(t, ack_turn(t, next_turn(t, "again"), .execution_id = 2));
  must(t, enqueue(t, "pending"));
  before(t);
  expect_status(t, delete_instances(t, .ids = {"running"}), DK_REFUSED);
  expect_status(t, delete_instances(t, .ids = {"continued"}), DK_REFUSED);
  expect_status(t, delete_instances(t, .ids = {"again"}), DK_REFUSED);
  expect_status(t, delete_instances(t, .ids = {"pending"}), DK_REFUSED);
  expect_status(t, delete_instances(t, .ids = {"over", "running"}), DK_REFUSED);
  expect_unchanged(t);
  expect_equal(t, list_instances(t)->n_items, 5, "instances");
}

/* DEL-2: a tree of which one instance runs is refused as a whole. */
void
del_descendants_must_be_over(struct dk_check *t)
{
  given_root(t, "root", DK_COMPLETED);
  given_child(t, "child", "root", DK_FAILED);
  given_child(t, "other child", "root", DK_COMPLETED);
  given_child(t, "grandchild", "child", DK_RUNNING);
  before(t);
  expect_status(t, delete_instances(t, .ids = {"root"}), DK_REFUSED);
  expect_unchanged(t);
  must(t, ack_turn(t, next_turn(t, "grandchild"), .status = DK_CONTINUED_AS_NEW));
  expect_status(t, delete_instances(t, .ids = {"root"}), DK_REFUSED);
  must(t, ack_turn(t, next_turn(t, "grandchild"), .execution_id = 2, .status = DK_CANCELLED));
  must(t, delete_instances(t, .ids = {"root"}));
  expect_none_listed(t, list_instances(t));
}

/* DEL-2: what has completed, failed or was cancelled is deleted, whatever of it is queued or
 * held. */
void
del_over_goes(struct dk_check *t)
{
  given_root(t, "completed", DK_COMPLETED);
  given_root(t, "failed", DK_FAILED);
  given_root(t, "cancelled", DK_CANCELLED);
  given_root(t, "queued", DK_COMPLETED);
  must(t, enqueue(t, "queued", .delay_ms = 1000));
  must(t, ack_turn(t, next_turn(t, "working"), .status = DK_FAILED, .schedule = {{1}, {2}}));
  fetch_work(t);
  given_root(t, "held", DK_CANCELLED);
  given_child(t, "child", "held", DK_COMPLETED);
  must(t, enqueue(t, "held"));
  must(t, enqueue(t, "child"));
  fetch_turn(t);
  fetch_turn(t);
  must(t, delete_instances(t, .ids = {"completed"}));
  must(t, delete_instances(t, .ids = {"failed"}));
  must(t, delete_instances(t, .ids = {"cancelled"}));
  must(t, delete_instances(t, .ids = {"queued"}));
  must(t, delete_instances(t, .ids = {"working"}));
  must(t, delete_instances(t, .ids = {"held"}));
  expect_none_listed(t, list_instances(t));
  expect_no_work(t);
  advance(t, LEASE_MS);
  expect_no_turn(t);
  expect_no_work(t);
  given_root(t, "completed", DK_RUNNING);
  expect_equal(t, look_at(t, "completed")->created_at, now(t), "created_at of a new life");
}

/* DEL-2: with force the status plays no part. */
void
del_by_force(struct dk_check *t)
{
  struct dk_removed removed;

  given_root(t, "running", DK_RUNNING);
  given_child(t, "child", "running", DK_RUNNING);
  must(t, ack_turn(t, next_turn(t, "continued"), .status = DK_CONTINUED_AS_NEW));
  given_root(t, "over", DK_COMPLETED);
  must(t, enqueue(t, "pending"));
  must(t, delete_instances(t, .ids = {"running", "over"}, .force = true, .ret = &removed));
  expect_counts(t, &removed, .instances = 3, .executions = 3, .events = 3);
  must(t, delete_instances(t, .ids = {"continued"}, .force = true));
  must(t, delete_instances(t, .ids = {"pending"}, .force = true, .ret = &removed));
  expect_counts(t, &removed, .instances = 1, .messages = 1);
  expect_none_listed(t, list_instances(t));
  expect_no_turn(t);
}

/* ---- trees ----------------------------------------------------------------------------------- */

/* DEL-3: all descendants are deleted with their root, and no instance of another tree. */
void
del_whole_tree(struct dk_check *t)
{
  struct dk_removed removed;

  given_root(t, "root", DK_COMPLETED);
  given_child(t, "a", "root", DK_COMPLETED);
  given_child(t, "b", "root", DK_FAILED);
  given_child(t, "a1", "a", DK_COMPLETED);
  given_child(t, "a2", "a", DK_COMPLETED);
  given_child(t, "a21", "a2", DK_COMPLETED);
  given_child(t, "0", "a21", DK_COMPLETED);
  given_root(t, "roo", DK_COMPLETED);
  given_child(t, "c", "roo", DK_COMPLETED);
  must(t, delete_instances(t, .ids = {"root"}, .ret = &removed));
  expect_counts(t, &removed, .instances = 7, .executions = 7, .events = 7);
  expect_listed(t, list_instances(t), "c", "roo");
}

enum { GENERATIONS = 1000, IN_COMMIT = 100 };

/* Each is the child of the one before; the last one runs.  Their starts are sent by one root. */
static void
given_generations(struct dk_check *t)
{
  struct dk_item items[IN_COMMIT];
  const struct dk_item *pointers[IN_COMMIT];
  struct dk_turn_result sends = {.struct_size = sizeof sends, .execution_id = 1,
                                 .orchestrator_items = pointers, .n_orchestrator_items = IN_COMMIT};
  char names[IN_COMMIT][16], parent[16];

  given_root(t, "sender", DK_RUNNING);
  for (int i = 0; i < GENERATIONS; i += IN_COMMIT) {
    for (int k = 0; k < IN_COMMIT; k++) {
      snprintf(names[k], sizeof names[k], "%d", i + k);
      items[k] = (struct dk_item){.struct_size = sizeof items[k], .instance = bytes(names[k]),
                                  .payload = bytes("start")};
      pointers[k] = &items[k];
    }
    must(t, ack_turn(t, next_turn(t, "sender"), .raw = &sends));
    for (int k = 0; k < IN_COMMIT; k++) {
      struct dk_turn *turn = fetch_turn(t);
      int number = atoi(turn->head.instance.ptr);
      snprintf(parent, sizeof parent, "%d", number - 1);
      must(t, ack_turn(t, turn, .parent = number > 0 ? parent : NULL,
                       .status = number == GENERATIONS - 1 ? DK_RUNNING : DK_COMPLETED));
    }
  }
}

/* DEL-3: a tree is deleted however deep it is. */
void
del_thousand_generations(struct dk_check *t)
{
  struct dk_removed removed;

  given_generations(t);
  expect_status(t, delete_instances(t, .ids = {"0"}), DK_REFUSED);
  removed = delete_all_matching(t);
  expect_equal(t, removed.instances, 0, "instances of a tree whose last one runs");
  must(t, ack_turn(t, next_turn(t, "999"), .status = DK_COMPLETED));
  must(t, delete_instances(t, .ids = {"0"}, .ret = &removed));
  expect_equal(t, removed.instances, GENERATIONS, "instances that were deleted");
  expect_listed(t, list_instances(t), "sender");
}

/* DEL-3: a child is not deleted without its parent, even with force; but with it, or if that does
 * not exist. */
void
del_no_child_alone(struct dk_check *t)
{
  given_root(t, "root", DK_COMPLETED);
  given_child(t, "child", "root", DK_COMPLETED);
  given_child(t, "grandchild", "child", DK_COMPLETED);
  given_child(t, "orphan", "absent", DK_COMPLETED);
  given_root(t, "running", DK_RUNNING);
  given_child(t, "its child", "running", DK_COMPLETED);
  before(t);
  expect_status(t, delete_instances(t, .ids = {"child"}), DK_REFUSED);
  expect_status(t, delete_instances(t, .ids = {"child"}, .force = true), DK_REFUSED);
  expect_status(t, delete_instances(t, .ids = {"grandchild"}, .force = true), DK_REFUSED);
  expect_status(t, delete_instances(t, .ids = {"child", "grandchild"}), DK_REFUSED);
  expect_status(t, delete_instances(t, .ids = {"orphan", "child"}, .force = true), DK_REFUSED);
  expect_status(t, delete_instances(t, .ids = {"its child"}), DK_REFUSED);
  expect_status(t, delete_instances(t, .ids = {"its child"}, .force = true), DK_REFUSED);
  expect_unchanged(t);
  must(t, delete_instances(t, .ids = {"running"}, .force = true));
  must(t, delete_instances(t, .ids = {"orphan"}));
  must(t, delete_instances(t, .ids = {"grandchild", "root"}));
  expect_none_listed(t, list_instances(t));
  given_root(t, "root", DK_COMPLETED);
  given_child(t, "child", "root", DK_COMPLETED);
  must(t, delete_instances(t, .ids = {"child", "root"}));
  given_child(t, "child", "root", DK_RUNNING);
  expect_listed(t, list_instances(t), "child");
  must(t, delete_instances(t, .ids = {"child"}, .force = true));
  expect_none_listed(t, list_instances(t));
}

/* DEL-3: a parent that has only messages exists; an id whose messages were removed does not. */
void
del_parent_not_started(struct dk_check *t)
{
  struct dk_removed removed;

  given_child(t, "a", "parent", DK_COMPLETED);
  given_child(t, "b", "parent", DK_FAILED);
  given_child(t, "b1", "b", DK_COMPLETED);
  must(t, enqueue(t, "parent"));
  before(t);
  expect_status(t, delete_instances(t, .ids = {"a"}), DK_REFUSED);
  expect_status(t, delete_instances(t, .ids = {"a"}, .force = true), DK_REFUSED);
  expect_status(t, delete_instances(t, .ids = {"parent"}), DK_REFUSED);
  expect_unchanged(t);
  removed = delete_all_matching(t);
  expect_equal(t, removed.instances, 0, "deleted instances: each has a parent that exists");
  must(t, ack_turn(t, fetch_turn(t), .empty = true));
  must(t, delete_instances(t, .ids = {"a"}));
  removed = delete_all_matching(t);
  expect_counts(t, &removed, .instances = 2, .executions = 2, .events = 2);
  given_child(t, "a", "parent", DK_COMPLETED);
  must(t, enqueue(t, "parent"));
  must(t, delete_instances(t, .ids = {"parent"}, .force = true, .ret = &removed));
  expect_counts(t, &removed, .instances = 2, .executions = 1, .events = 1, .messages = 1);
  expect_none_listed(t, list_instances(t));
}

/* DEL-3: parents in a ring have one another for ancestors, and an instance may name itself. */
void
del_ring_of_parents(struct dk_check *t)
{
  struct dk_removed removed;

  given_child(t, "a", "c", DK_COMPLETED);
  given_child(t, "b", "a", DK_COMPLETED);
  given_child(t, "c", "b", DK_COMPLETED);
  given_child(t, "leaf", "b", DK_COMPLETED);
  given_child(t, "self", "self", DK_COMPLETED);
  given_root(t, "other", DK_COMPLETED);
  removed = delete_all_matching(t, .only = {.ids = {"a", "b", "c", "leaf", "self"}});
  expect_equal(t, removed.instances, 0, "deleted instances: each has a parent that exists");
  expect_status(t, delete_instances(t, .ids = {"leaf"}), DK_REFUSED);
  must(t, delete_instances(t, .ids = {"b"}, .ret = &removed));
  expect_counts(t, &removed, .instances = 4, .executions = 4, .events = 4);
  expect_listed(t, list_instances(t), "other", "self");
  must(t, delete_instances(t, .ids = {"self"}, .ret = &removed));
  expect_counts(t, &removed, .instances = 1, .executions = 1, .events = 1);
  expect_listed(t, list_instances(t), "other");
}

/* ---- several --------------------------------------------------------------------------------- */

/* DEL-4: one id that does not exist, or must not be deleted, keeps all of a list. */
void
del_refused_changes_nothing(struct dk_check *t)
{
  given_root(t, "a", DK_COMPLETED);
  given_root(t, "b", DK_COMPLETED);
  given_root(t, "running", DK_RUNNING);
  given_root(t, "gone", DK_COMPLETED);
  must(t, delete_instances(t, .ids = {"gone"}));
  must(t, enqueue(t, "dropped"));
  must(t, ack_turn(t, fetch_turn(t), .empty = true));
  before(t);
  expect_status(t, delete_instances(t, .ids = {"absent"}), DK_NOT_FOUND);
  expect_status(t, delete_instances(t, .ids = {"a", "b", "absent"}), DK_NOT_FOUND);
  expect_status(t, delete_instances(t, .ids = {"a", "gone"}, .force = true), DK_NOT_FOUND);
  expect_status(t, delete_instances(t, .ids = {"dropped"}, .force = true), DK_NOT_FOUND);
  expect_status(t, delete_instances(t, .ids = {"A"}), DK_NOT_FOUND);
  expect_status(t, delete_instances(t, .ids = {"a", "running", "b"}), DK_REFUSED);
  expect_unchanged(t);
  must(t, delete_instances(t, .ids = {"a", "b"}));
  expect_listed(t, list_instances(t), "running");
}

/* DEL-4: an empty list, one id twice, and one that has only a message. */
void
del_lists(struct dk_check *t)
{
  struct dk_removed removed;

  given_root(t, "a", DK_COMPLETED);
  given_root(t, "b", DK_COMPLETED);
  must(t, enqueue(t, "pending", .delay_ms = 1000));
  before(t);
  must(t, delete_instances(t, .ret = &removed));
  expect_counts(t, &removed, .instances = 0);
  must(t, delete_instances(t, .force = true, .ret = &removed));
  expect_counts(t, &removed, .instances = 0);
  expect_unchanged(t);
  must(t, delete_instances(t, .ids = {"a", "b", "a", "a"}, .ret = &removed));
  expect_counts(t, &removed, .instances = 2, .executions = 2, .events = 2);
  must(t, delete_instances(t, .ids = {"pending"}, .force = true, .ret = &removed));
  expect_counts(t, &removed, .instances = 1, .messages = 1);
  expect_none_listed(t, list_instances(t));
}

/* DEL-4: thousands of instances, by a list of tens of thousands that names each ten times. */
void
del_long_list(struct dk_check *t)
{
  enum { INSTANCES = 3000, IDS = 10 * INSTANCES };
  struct dk_bytes ids[IDS];
  struct dk_removed removed;

  given_many_waiting(t, ids, INSTANCES);
  for (size_t i = INSTANCES; i < IDS; i++)
    ids[i] = ids[i % INSTANCES];
  expect_status(t, delete_instances(t, .list = ids, .n = IDS), DK_REFUSED);
  expect_equal(t, read_stats(t)->not_started, INSTANCES, "instances that have not started");
  must(t, delete_instances(t, .list = ids, .n = IDS, .force = true, .ret = &removed));
  expect_counts(t, &removed, .instances = INSTANCES, .messages = INSTANCES);
  expect_listed(t, list_instances(t), "other");
}
