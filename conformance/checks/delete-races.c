/* SPDX-License-Identifier: Apache-2.0 */
/* DEL: a deletion and another call at the same time.  Whichever comes first, the other one is
 * judged by the store as it is then, and nothing is half done. */
#include "conformance/checks/admin.h"

/* The answer that counts: `again` makes the call once more, as long as that is what it says. */
#define settle(status, again)                                                                      \
  for (int tries_ = 0; tries_ < MOST_RETRIES && is_retryable(status); tries_++)                    \
  (status) = (again)

static void
stand_at_line(struct dk_check *t, struct actor *a, struct actor *b)
{
  hold_at_line(t, a);
  hold_at_line(t, b);
}

/* Removes the messages for "sink", so that the next round begins without any; returns their
 * number. */
static size_t
empty_sink(struct dk_check *t)
{
  size_t n = read_messages(t, "sink")->n_items;

  if (n > 0)
    must(t, ack_turn(t, the_turn_of(t, "sink"), .empty = true));
  return n;
}

/* DEL-5: the commit came first and was deleted with its instance, or it has lost and left
 * nothing. */
void
del_commit_races_delete(struct dk_check *t)
{
  struct actor *runtime = racer(t), *admin = racer(t);

  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    given_root(t, "inst", DK_RUNNING);
    struct dk_bytes token = next_turn(t, "inst")->head.lock_token;
    stand_at_line(t, runtime, admin);
    must(t, ack_token(t, token, .on = runtime, .start = true, .events = {{2}}, .schedule = {{1}},
                      .send = {{"sink"}, {"inst"}}));
    must(t, delete_instances(t, .on = admin, .start = true, .ids = {"inst"}, .force = true));
    witness(t, race(t, runtime, admin));
    dk_status committed = finish(t, runtime), deleted = finish(t, admin);
    settle(committed, ack_token(t, token, .on = runtime, .events = {{2}}, .schedule = {{1}},
                                .send = {{"sink"}, {"inst"}}));
    settle(deleted, delete_instances(t, .on = admin, .ids = {"inst"}, .force = true));
    expect_status(t, deleted, DK_OK);
    expect(t, committed == DK_OK || committed == DK_LOCK_LOST,
           "the commit is done, or has lost its lock");
    expect_gone(t, "inst");
    expect_no_work(t);
    expect_equal(t, empty_sink(t), committed == DK_OK ? 1 : 0, "messages of that commit");
    expect_no_turn(t);
  }
}

/* DEL-4: of two concurrent deletions of one instance exactly one finds it. */
void
del_two_deletes(struct dk_check *t)
{
  struct actor *a = racer(t), *b = racer(t);

  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    given_root(t, "inst", DK_COMPLETED);
    stand_at_line(t, a, b);
    must(t, delete_instances(t, .on = a, .start = true, .ids = {"inst"}));
    must(t, delete_instances(t, .on = b, .start = true, .ids = {"inst"}));
    witness(t, race(t, a, b));
    dk_status one = finish(t, a), two = finish(t, b);
    settle(one, delete_instances(t, .on = a, .ids = {"inst"}));
    settle(two, delete_instances(t, .on = b, .ids = {"inst"}));
    expect_status(t, one == DK_OK ? two : one, DK_NOT_FOUND);
    expect_status(t, one == DK_OK ? one : two, DK_OK);
    const struct dk_removed *removed = finished_removal(t, one == DK_OK ? a : b);
    expect_counts(t, removed, .instances = 1, .executions = 1, .events = 1);
    expect_gone(t, "inst");
  }
}

/* DEL-4: a list during a deletion shows a tree whole, or nothing of it. */
void
del_seen_whole(struct dk_check *t)
{
  struct actor *admin = racer(t), *looker = racer(t);

  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    given_root(t, "root", DK_COMPLETED);
    given_child(t, "a", "root", DK_COMPLETED);
    given_child(t, "b", "root", DK_COMPLETED);
    given_child(t, "c", "b", DK_COMPLETED);
    stand_at_line(t, admin, looker);
    must(t, delete_instances(t, .on = admin, .start = true, .ids = {"root"}));
    must(t, try_list_instances(t, .on = looker, .start = true));
    witness(t, race(t, admin, looker));
    dk_status looked = finish(t, looker), deleted = finish(t, admin);
    settle(looked, try_list_instances(t, .on = looker));
    expect_status(t, looked, DK_OK);
    const struct dk_instances *list = finished_instances(t, looker);
    settle(deleted, delete_instances(t, .on = admin, .ids = {"root"}));
    expect_status(t, deleted, DK_OK);
    expect(t, list->n_items == 0 || list->n_items == 4,
           "a tree of 4 is listed whole, or not at all: %zu",
           list->n_items);
    expect_none_listed(t, list_instances(t));
  }
}

/* DEL-7: a work item was acked, or it was deleted, and is counted so. */
void
del_ack_races_delete(struct dk_check *t)
{
  struct actor *worker = racer(t), *admin = racer(t);

  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    given_instance_with_activities(t, "inst", 1);
    struct dk_bytes token = fetch_work(t)->work.lock_token;
    stand_at_line(t, worker, admin);
    must(t, ack_work(t, token, .on = worker, .start = true, .to = "sink"));
    must(t, delete_instances(t, .on = admin, .start = true, .ids = {"inst"}, .force = true));
    witness(t, race(t, worker, admin));
    dk_status acked = finish(t, worker), deleted = finish(t, admin);
    settle(acked, ack_work(t, token, .on = worker, .to = "sink"));
    settle(deleted, delete_instances(t, .on = admin, .ids = {"inst"}, .force = true));
    expect_status(t, deleted, DK_OK);
    expect(t, acked == DK_OK || acked == DK_LOCK_LOST, "the ack is done, or has lost its lock");
    expect_equal(t, finished_removal(t, admin)->activities, acked == DK_OK ? 0 : 1,
                 "work items that were deleted");
    expect_equal(t, empty_sink(t), acked == DK_OK ? 1 : 0, "completions");
    expect_gone(t, "inst");
    expect_no_work(t);
  }
}

/* DEL-3: the child was born first and is deleted with its root, with what it has sent there; or it
 * is born after that, and its message begins another life. */
void
del_birth_races_delete(struct dk_check *t)
{
  struct actor *runtime = racer(t), *admin = racer(t);

  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    given_root(t, "root", DK_COMPLETED);
    struct dk_bytes token = next_turn(t, "child")->head.lock_token;
    stand_at_line(t, runtime, admin);
    must(t, ack_token(t, token, .on = runtime, .start = true, .parent = "root",
                      .send = {{"root", .id = "born"}}));
    must(t, delete_instances(t, .on = admin, .start = true, .ids = {"root"}, .force = true));
    witness(t, race(t, runtime, admin));
    dk_status born = finish(t, runtime), deleted = finish(t, admin);
    settle(born, ack_token(t, token, .on = runtime, .parent = "root",
                           .send = {{"root", .id = "born"}}));
    settle(deleted, delete_instances(t, .on = admin, .ids = {"root"}, .force = true));
    expect_status(t, born, DK_OK);
    expect_status(t, deleted, DK_OK);
    const struct dk_removed removed = *finished_removal(t, admin);
    const struct dk_instances *list = list_instances(t);
    if (removed.instances == 2) {
      expect_none_listed(t, list);
      expect_equal(t, removed.messages, 1, "messages of the child to its root");
      continue;
    }
    expect_equal(t, removed.instances, 1, "instances, when the child was not born yet");
    expect_listed(t, list, "child", "root");
    expect_equal(t, list->items[1].status, DK_NOT_STARTED, "status of the root's id");
    must(t, delete_instances(t, .ids = {"child", "root"}, .force = true));
  }
}

/* The next execution of "inst" and a deletion at the same time: the answer of the commit says
 * whether the instance still exists afterwards. */
static void
expect_one_of_both(struct dk_check *t, dk_status restarted)
{
  expect(t, restarted == DK_OK || restarted == DK_LOCK_LOST,
         "the restart is done, or has lost its lock");
  if (restarted == DK_LOCK_LOST) {
    expect_gone(t, "inst");
    return;
  }
  expect_equal(t, look_at(t, "inst")->execution_id, 2, "execution of what was restarted");
  must(t, delete_instances(t, .ids = {"inst"}, .force = true));
}

/* DEL-2: what was started again has not ended, whatever it was a moment ago. */
void
del_restart_races_delete(struct dk_check *t)
{
  struct actor *runtime = racer(t), *admin = racer(t);

  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    given_root(t, "inst", DK_COMPLETED);
    struct dk_bytes token = next_turn(t, "inst")->head.lock_token;
    stand_at_line(t, runtime, admin);
    must(t, ack_token(t, token, .on = runtime, .start = true, .execution_id = 2));
    must(t, delete_instances(t, .on = admin, .start = true, .ids = {"inst"}));
    witness(t, race(t, runtime, admin));
    dk_status restarted = finish(t, runtime), deleted = finish(t, admin);
    settle(restarted, ack_token(t, token, .on = runtime, .execution_id = 2));
    settle(deleted, delete_instances(t, .on = admin, .ids = {"inst"}));
    expect_status(t, deleted, restarted == DK_OK ? DK_REFUSED : DK_OK);
    expect_one_of_both(t, restarted);
  }
}

/* DEL-8: the same, for a deletion by a filter. */
void
del_restart_races_matching(struct dk_check *t)
{
  struct actor *runtime = racer(t), *admin = racer(t);

  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    given_root(t, "inst", DK_COMPLETED);
    struct dk_bytes token = next_turn(t, "inst")->head.lock_token;
    stand_at_line(t, runtime, admin);
    must(t, ack_token(t, token, .on = runtime, .start = true, .execution_id = 2));
    must(t, delete_matching(t, .on = admin, .start = true));
    witness(t, race(t, runtime, admin));
    dk_status restarted = finish(t, runtime), deleted = finish(t, admin);
    settle(restarted, ack_token(t, token, .on = runtime, .execution_id = 2));
    settle(deleted, delete_matching(t, .on = admin));
    expect_status(t, deleted, DK_OK);
    expect_equal(t, finished_removal(t, admin)->instances, restarted == DK_OK ? 0 : 1,
                 "instances that were deleted");
    expect_one_of_both(t, restarted);
  }
}

/* DEL-8, DEL-3: the child was born first, runs, and keeps its root; or it is born after that, and
 * its message begins another life. */
void
del_birth_races_matching(struct dk_check *t)
{
  struct actor *runtime = racer(t), *admin = racer(t);

  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    given_root(t, "root", DK_COMPLETED);
    struct dk_bytes token = next_turn(t, "child")->head.lock_token;
    stand_at_line(t, runtime, admin);
    must(t, ack_token(t, token, .on = runtime, .start = true, .parent = "root",
                      .send = {{"root", .id = "born"}}));
    must(t, delete_matching(t, .on = admin, .start = true));
    witness(t, race(t, runtime, admin));
    dk_status born = finish(t, runtime), deleted = finish(t, admin);
    settle(born, ack_token(t, token, .on = runtime, .parent = "root",
                           .send = {{"root", .id = "born"}}));
    settle(deleted, delete_matching(t, .on = admin));
    expect_status(t, born, DK_OK);
    expect_status(t, deleted, DK_OK);
    bool has_gone = finished_removal(t, admin)->instances > 0;
    const struct dk_instances *list = list_instances(t);
    expect_listed(t, list, "child", "root");
    expect_equal(t, list->items[1].status, has_gone ? DK_NOT_STARTED : DK_COMPLETED,
                 "status of the root, or of its id");
    expect_equal(t, read_messages(t, "root")->n_items, 1, "messages of the child to its root");
    must(t, delete_instances(t, .ids = {"child", "root"}, .force = true));
  }
}
