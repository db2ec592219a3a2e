/* SPDX-License-Identifier: Apache-2.0 */
/* DEL: what is deleted, what stays, what is refused, and what becomes of the tokens. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "providers/sqlite/test-scene.h"

static void
expect_removed(const struct dk_removed *found, uint64_t instances, uint64_t executions,
               uint64_t events, uint64_t messages, uint64_t activities, const char *what)
{
  bool holds = found->instances == instances && found->executions == executions &&
               found->events == events && found->messages == messages &&
               found->activities == activities && !found->next.ptr;

  if (!ok(holds, "%s: the deleted rows are counted", what))
    diag("%llu instances, %llu executions, %llu events, %llu messages, %llu activities",
         (unsigned long long)found->instances, (unsigned long long)found->executions,
         (unsigned long long)found->events, (unsigned long long)found->messages,
         (unsigned long long)found->activities);
}

static int64_t
rows_in(const char *name)
{
  return number_in(name, "SELECT (SELECT count(*) FROM instance)+(SELECT count(*) FROM message)"
                         "+(SELECT count(*) FROM work)+(SELECT count(*) FROM execution)"
                         "+(SELECT count(*) FROM history)+(SELECT count(*) FROM large)");
}

/* ---- whole ----------------------------------------------------------------------------------- */

/* DEL-1, DEL-7: everything that an instance may have, each of it large. */
static void
test_everything(void)
{
  struct handle_under_test h;
  struct dk_removed removed;

  open_scene(&h, "all.db");
  make(&h, "inst0", .status = DK_COMPLETED, .payload = LARGE);
  make(&h, "ins", .parent = "inst0", .activities = 2, .payload = LARGE);
  int64_t before = rows_in("all.db");
  make(&h, "inst", .executions = 3, .activities = 4, .events = 5, .payload = LARGE);
  take_work(&h);
  send(&h, "inst", "by id", NOON + 77777, LARGE);
  take_turn(&h, "inst");
  send(&h, "inst", NULL, 0, LARGE);
  expect(&h, delete_ids(&h, "inst", 0, &removed), DK_REFUSED, "is running",
         "what is running is not deleted");
  expect(&h, delete_ids(&h, "inst", DK_DELETE_FORCE, &removed), DK_OK, "", "but by force");
  expect_removed(&removed, 1, 3, 15, 3, 12, "an instance with everything");
  expect_no_leftovers("all.db", "an instance with everything");
  cmp_ok(rows_in("all.db"), "==", before, "nothing else has changed");
  expect(&h, delete_ids(&h, "inst", DK_DELETE_FORCE, &removed), DK_NOT_FOUND, "inst",
         "it no longer exists");
  close_store(&h);
}

/* DEL-3: the tree, and nothing but the tree. */
static void
test_tree(void)
{
  struct handle_under_test h;
  struct dk_removed removed;
  char parent[32] = "root", child[32];

  open_scene(&h, "tree.db");
  make(&h, "root", .status = DK_COMPLETED);
  for (int i = 0; i < 300; i++) {
    snprintf(child, sizeof child, "deep-%d", i);
    make(&h, child, .parent = parent, .status = DK_FAILED, .payload = i == 299 ? LARGE : 0);
    snprintf(parent, sizeof parent, "%s", child);
  }
  make(&h, "wide", .parent = "deep-7", .status = DK_CANCELLED);
  make(&h, "other", .parent = "absent", .status = DK_COMPLETED);
  send(&h, "absent-yet", NULL, NOON + 5, 10);
  expect(&h, delete_ids(&h, "deep-7", DK_DELETE_FORCE, &removed), DK_REFUSED,
         "is a child of \"deep-6\"", "a child alone is not deleted, even by force");
  expect(&h, delete_ids(&h, "deep-7 deep-6", 0, &removed), DK_REFUSED, "is a child of \"deep-5\"",
         "nor with its parent, if the grandparent would stay");
  cmp_ok(number_in("tree.db", "SELECT count(*) FROM instance"), "==", 304, "nothing was deleted");
  expect(&h, delete_ids(&h, "deep-3 root deep-3", 0, &removed), DK_OK, "",
         "with the whole tree it is deleted");
  expect_removed(&removed, 302, 302, 604, 0, 0, "a tree");
  cmp_ok(removed.roots, "==", 2, "of which two were named");
  expect_no_leftovers("tree.db", "a tree");
  cmp_ok(number_in("tree.db", "SELECT count(*) FROM instance WHERE instance IN"
                              " ('other', 'absent-yet')"), "==", 2, "the others are there");
  expect(&h, delete_ids(&h, "other", 0, &removed), DK_OK, "",
         "a parent that does not exist does not count");
  close_store(&h);
}

/* A walk around a ring ends. */
static void
test_ring(void)
{
  struct handle_under_test h;
  struct dk_removed removed;

  open_scene(&h, "ring.db");
  make(&h, "a", .parent = "c", .status = DK_COMPLETED);
  make(&h, "b", .parent = "a", .status = DK_COMPLETED);
  make(&h, "c", .parent = "b", .status = DK_COMPLETED);
  make(&h, "d", .parent = "b", .status = DK_COMPLETED);
  make(&h, "self", .parent = "self", .status = DK_COMPLETED);
  expect(&h, delete_ids(&h, "d", 0, &removed), DK_REFUSED, "child of \"b\"", "a child of a ring");
  expect(&h, delete_ids(&h, "b", 0, &removed), DK_OK, "", "a ring is deleted as a whole");
  expect_removed(&removed, 4, 4, 8, 0, 0, "a ring");
  cmp_ok(removed.roots, "==", 1, "of which one was named");
  expect(&h, delete_ids(&h, "self", 0, &removed), DK_OK, "", "a ring of one, too");
  expect_no_leftovers("ring.db", "rings");
  close_store(&h);
}

/* ---- or not at all --------------------------------------------------------------------------- */

static void
test_refusals(void)
{
  struct handle_under_test h;
  struct dk_removed removed;

  open_scene(&h, "refused.db");
  make(&h, "over", .status = DK_COMPLETED, .payload = LARGE);
  make(&h, "child", .parent = "over", .status = DK_CONTINUED_AS_NEW);
  make(&h, "fine", .status = DK_FAILED);
  send(&h, "pending", NULL, NOON + 5, 10);
  drop_turn(&h, take_turn(&h, "only an address"));
  int64_t before = rows_in("refused.db"), commits = number_in("refused.db",
                                                              "SELECT commits FROM meta");
  expect(&h, delete_ids(&h, "fine over", 0, &removed), DK_REFUSED,
         "\"child\" has not ended: it continues as new",
         "a descendant between two executions has not ended");
  expect(&h, delete_ids(&h, "fine pending", 0, &removed), DK_REFUSED,
         "\"pending\" has not ended: it has not started",
         "an instance that has not started has not ended");
  expect(&h, delete_ids(&h, "fine absent", 0, &removed), DK_NOT_FOUND, "\"absent\"",
         "one that does not exist");
  struct dk_bytes address[] = {text("fine"), text("only an address")};
  struct dk_delete_instances request = {.struct_size = sizeof request, .instances = address,
                                        .n_instances = 2, .flags = DK_DELETE_FORCE};
  expect(&h, dk_store_delete_instances(h.store, h.caller, &request, NULL), DK_NOT_FOUND,
         "only an address", "an address without messages does not exist");
  expect(&h, delete_ids(&h, "", 0, &removed), DK_OK, "", "an empty list");
  expect_removed(&removed, 0, 0, 0, 0, 0, "an empty list");
  cmp_ok(rows_in("refused.db"), "==", before, "nothing was deleted");
  cmp_ok(number_in("refused.db", "SELECT commits FROM meta"), "==", commits,
         "nor committed: none of them has cost a sync");
  expect(&h, delete_ids(&h, "fine fine pending", DK_DELETE_FORCE, &removed), DK_OK, "",
         "by force one that has not started is deleted");
  expect_removed(&removed, 2, 1, 2, 1, 0, "an id twice is that id");
  cmp_ok(removed.roots, "==", 2, "and one root");
  close_store(&h);
}

/* ---- the tokens ------------------------------------------------------------------------------ */

static dk_status
commit(struct handle_under_test *h, struct dk_bytes token, uint32_t flags)
{
  struct dk_turn_result result = {.struct_size = sizeof result, .flags = flags, .execution_id = 1,
                                  .name = text("order"), .version = text("1")};
  struct dk_commit_outcome outcome;

  return dk_store_ack_orchestration_item(h->store, h->caller, token, &result, &outcome);
}

static dk_status
complete(struct handle_under_test *h, struct dk_bytes token, const char *instance)
{
  struct dk_item completion = {.struct_size = sizeof completion, .instance = text(instance),
                               .payload = text("done")};
  struct dk_work_result result = {.struct_size = sizeof result, .completion = &completion};

  return dk_store_ack_work_item(h->store, h->caller, token, &result);
}

static void
expect_dead(struct handle_under_test *h, struct dk_bytes turn, struct dk_bytes work,
            const char *when)
{
  int64_t before = rows_in("tokens.db");

  note("%s", when);
  expect(h, commit(h, turn, 0), DK_LOCK_LOST, "deleted", "a commit");
  expect(h, commit(h, turn, DK_REPEATED), DK_LOCK_LOST, "deleted", "a commit that is repeated");
  expect(h, dk_store_renew_orchestration_item_lock(h->store, h->caller, turn, 10), DK_LOCK_LOST,
         "deleted", "a renewal");
  expect(h, dk_store_abandon_orchestration_item(h->store, h->caller, turn, 0, 0), DK_LOCK_LOST,
         "deleted", "a turn that is given back");
  expect(h, complete(h, work, "inst"), DK_LOCK_LOST, "its instance was deleted", "an ack");
  expect(h, dk_store_renew_work_item_lock(h->store, h->caller, work, 10), DK_LOCK_LOST, "deleted",
         "a renewal of work");
  expect(h, dk_store_abandon_work_item(h->store, h->caller, work, 0, 0), DK_LOCK_LOST, "deleted",
         "work that is given back");
  cmp_ok(rows_in("tokens.db"), "==", before, "bring nothing back");
}

static uint64_t
birth_of(struct handle_under_test *h, const char *instance)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE};
  struct dk_turn *turn = NULL;

  send(h, instance, NULL, 0, 10);
  if (dk_store_fetch_orchestration_item(h->store, h->caller, &request, &turn) != DK_OK)
    BAIL_OUT("no turn");
  uint64_t birth = turn->head.birth;
  drop_turn(h, keep(turn->head.lock_token));
  return birth;
}

/* DEL-5, DEL-6: it is the youngest instance, so that a number that counts rows would come again;
 * and the store is closed between its lives, so that one kept in memory would. */
static void
test_tokens(void)
{
  struct handle_under_test h;
  struct dk_bytes turn, work, next_turn, next_work;
  struct dk_removed removed;

  open_scene(&h, "tokens.db");
  make(&h, "elder", .status = DK_COMPLETED);
  make(&h, "inst", .activities = 1);
  uint64_t birth = birth_of(&h, "inst");
  work = take_work(&h);
  turn = take_turn(&h, "inst");
  expect(&h, delete_ids(&h, "inst", DK_DELETE_FORCE, &removed), DK_OK, "", "deleted while held");
  expect_dead(&h, turn, work, "when it is deleted");
  close_store(&h);
  open_scene(&h, "tokens.db");
  make(&h, "inst", .activities = 1);
  ok(birth_of(&h, "inst") != birth, "its next life has another birth");
  next_work = take_work(&h);
  next_turn = take_turn(&h, "inst");
  expect_dead(&h, turn, work, "in its next life, of which the same turn and activity are held");
  expect(&h, dk_store_renew_work_item_lock(h.store, h.caller, next_work, LEASE), DK_OK, "",
         "the tokens of the next life hold what they held");
  expect(&h, complete(&h, next_work, "inst"), DK_OK, "", "its work");
  drop_turn(&h, next_turn);
  cmp_ok(number_in("tokens.db", "SELECT max(attempt) FROM message"), "==", 0,
         "attempts are counted anew");
  close_store(&h);
}

/* The instance is deleted after a commit whose answer was lost. */
static void
test_repeated_commit(void)
{
  struct handle_under_test h;
  struct dk_removed removed;

  open_scene(&h, "repeated.db");
  struct dk_bytes token = take_turn(&h, "inst");
  expect(&h, commit(&h, token, 0), DK_OK, "", "a commit");
  expect(&h, commit(&h, token, DK_REPEATED), DK_OK, "", "is done when it is repeated");
  expect(&h, delete_ids(&h, "inst", DK_DELETE_FORCE, &removed), DK_OK, "", "but deleted");
  expect(&h, commit(&h, token, DK_REPEATED), DK_LOCK_LOST, "deleted", "it is not done again");
  cmp_ok(rows_in("repeated.db"), "==", 0, "nothing comes back");
  close_store(&h);
}

/* ---- others meanwhile ------------------------------------------------------------------------ */

static void *
wait_for_turn(void *context)
{
  struct handle_under_test *h = context;
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE,
                                  .wait_until = INT64_MAX};
  static struct dk_bytes instance;
  struct dk_turn *turn = NULL;

  if (dk_store_fetch_orchestration_item(h->store, h->caller, &request, &turn) != DK_OK)
    return NULL;
  instance = turn->head.instance;
  return &instance;
}

/* A fetch that waits for the timer of a deleted instance continues to wait. */
static void
test_waiting(void)
{
  struct handle_under_test h, waiter;
  struct dk_removed removed;
  pthread_t thread;
  void *instance;

  open_scene(&h, "waits.db");
  make(&h, "inst");
  send(&h, "inst", NULL, NOON + 100000, 10);
  waiter = with_caller(&h);
  if (pthread_create(&thread, NULL, wait_for_turn, &waiter) != 0)
    BAIL_OUT("no thread");
  expect(&h, delete_ids(&h, "inst", DK_DELETE_FORCE, &removed), DK_OK, "", "deleted during a wait");
  send(&h, "next", NULL, 0, 10);
  pthread_join(thread, &instance);
  ok(instance && strncmp(((struct dk_bytes *)instance)->ptr, "next", 4) == 0,
     "the wait ends with what is there");
  dk_caller_free(waiter.caller);
  close_store(&h);
}

enum { RIVALS = 2, TREES = 40 };

/* Each in a process of its own: 1: it has deleted it, 0: it no longer existed. */
static int
delete_trees(int begins)
{
  struct handle_under_test h;
  struct dk_removed removed;
  char go, root[32];
  int n = 0;

  if (read(begins, &go, 1) < 0)
    return 99;
  open_scene(&h, "rivals.db");
  for (int i = 0; i < TREES; i++) {
    snprintf(root, sizeof root, "root-%d", i);
    dk_status status = delete_ids(&h, root, 0, &removed);
    if (status == DK_OK && removed.instances == 3)
      n++;
    else if (status != DK_NOT_FOUND)
      return 98;
  }
  close_store(&h);
  return n;
}

/* Each tree is deleted once, as a whole, by one of them. */
static void
test_two_processes(void)
{
  struct handle_under_test h;
  int ends[2], status, total = 0;
  char root[32], name[32];

  open_scene(&h, "rivals.db");
  for (int i = 0; i < TREES; i++) {
    snprintf(root, sizeof root, "root-%d", i);
    make(&h, root, .status = DK_COMPLETED, .payload = LARGE);
    snprintf(name, sizeof name, "child-%d", i);
    make(&h, name, .parent = root, .status = DK_COMPLETED);
    snprintf(name, sizeof name, "sibling-%d", i);
    make(&h, name, .parent = root, .status = DK_FAILED);
  }
  close_store(&h);
  if (pipe(ends) < 0)
    BAIL_OUT("no pipe: %s", strerror(errno));
  fflush(NULL);
  for (int i = 0; i < RIVALS; i++)
    if (fork() == 0) {
      close(ends[1]);
      _exit(delete_trees(ends[0]));
    }
  close(ends[1]); /* both begin */
  for (int i = 0; i < RIVALS; i++) {
    if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > TREES)
      BAIL_OUT("a rival ended with %d", status);
    total += WEXITSTATUS(status);
  }
  close(ends[0]);
  cmp_ok(total, "==", TREES, "two processes delete %d trees: each is deleted once", TREES);
  cmp_ok(rows_in("rivals.db"), "==", 0, "and nothing is left");
}

/* ---- growth ---------------------------------------------------------------------------------- */

static void
test_growth(void)
{
  struct handle_under_test h;
  struct dk_removed removed;
  const int lives = is_slow() ? 50 : 200;
  int64_t early = 0;

  open_scene(&h, "growth.db");
  for (int i = 0; i < lives; i++) {
    make(&h, "again", .executions = 2, .activities = 3, .events = 20, .payload = LARGE);
    send(&h, "again", "timer", NOON + 99999, LARGE);
    if (delete_ids(&h, "again", DK_DELETE_FORCE, &removed) != DK_OK)
      BAIL_OUT("a deletion: %s", dk_caller_failure(h.caller)->text);
    if (i == 20)
      early = number_in("growth.db", "PRAGMA page_count");
  }
  int64_t late = number_in("growth.db", "PRAGMA page_count");
  ok(late <= early, "%d lives and deaths: %lld pages after 20, %lld at the end", lives,
     (long long)early, (long long)late);
  cmp_ok(rows_in("growth.db"), "==", 0, "and not a row");
  close_store(&h);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static struct dk_removed
delete_page(struct handle_under_test *h, const struct dk_instance_filter *filter,
            struct dk_bytes after, uint32_t most)
{
  struct dk_delete_matching request = {.struct_size = sizeof request, .filter = filter,
                                       .after = after, .max_instances = most};
  struct dk_removed removed;

  if (dk_store_delete_matching(h->store, h->caller, &request, &removed) != DK_OK)
    BAIL_OUT("a page: %s", dk_caller_failure(h->caller)->text);
  return removed;
}

static bool
is_next(const struct dk_removed *removed, const char *id)
{
  return removed->next.ptr && removed->next.len == strlen(id) &&
         memcmp(removed->next.ptr, id, removed->next.len) == 0;
}

/* DEL-8, DEL-9. */
static void
test_matching(void)
{
  const struct dk_instance_filter all = {.struct_size = sizeof all};
  const struct dk_instance_filter orders = {.struct_size = sizeof orders, .name = text("order")};
  const struct dk_instance_filter nothing = {.struct_size = sizeof nothing,
                                             .flags = DK_FILTER_IDS};
  struct handle_under_test h;

  open_scene(&h, "matching.db");
  make(&h, "a", .status = DK_COMPLETED);
  make(&h, "b", .status = DK_FAILED);
  make(&h, "b-child", .parent = "b", .status = DK_COMPLETED);
  make(&h, "b-grandchild", .parent = "b-child");
  make(&h, "c");
  make(&h, "c-child", .parent = "c", .status = DK_COMPLETED);
  make(&h, "d", .parent = "absent", .status = DK_CANCELLED);
  make(&h, "d-child", .name = "bill", .parent = "d", .status = DK_COMPLETED);
  make(&h, "e", .status = DK_CONTINUED_AS_NEW);
  make(&h, "f", .name = "bill", .status = DK_COMPLETED);
  make(&h, "ring-1", .parent = "ring-2", .status = DK_COMPLETED);
  make(&h, "ring-2", .parent = "ring-1", .status = DK_COMPLETED);
  send(&h, "pending", NULL, NOON + 5, 10);
  struct dk_removed removed = delete_page(&h, &nothing, (struct dk_bytes){NULL, 0}, 10);
  ok(removed.instances == 0 && removed.roots == 0, "an empty list of ids deletes nothing");
  removed = delete_page(&h, &orders, (struct dk_bytes){NULL, 0}, 1);
  ok(removed.instances == 1 && is_next(&removed, "a"), "a page of one, and where it ended");
  removed = delete_page(&h, &orders, text("a"), 1);
  ok(removed.instances == 2 && removed.roots == 1 && is_next(&removed, "d"),
     "the next passes over what runs, what has a running descendant, and children; one root is "
     "deleted with its child, whatever the child's name is");
  removed = delete_page(&h, &orders, text("d"), 10);
  ok(removed.instances == 0 && !removed.next.ptr, "and that was all");
  removed = delete_page(&h, &all, (struct dk_bytes){NULL, 0}, 10);
  ok(removed.instances == 1 && removed.executions == 1 && removed.events == 2,
     "the last that may be deleted");
  cmp_ok(number_in("matching.db", "SELECT count(*) FROM instance"), "==", 9, "the others stay");
  expect_no_leftovers("matching.db", "pages");
  close_store(&h);
}

/* Makes instances by SQL; each has an execution, and one in `nth` has ended. */
static void
given_many(const char *name, int n, int nth, int events)
{
  char sql[1024];

  snprintf(sql, sizeof sql,
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%d)"
           "INSERT INTO instance(iid, known, status, execution, last_event, name, version,"
           " instance, created_at) SELECT i, 1, iif(i%%%d=0, 2, 1), 1, %d, 'order', '1',"
           " printf('i-%%07d', i), 5 FROM n;"
           "INSERT INTO execution(iid, execution, status, started_at, completed_at)"
           " SELECT iid, 1, status, 5, iif(status=2, 6, 0) FROM instance;"
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%d)"
           "INSERT INTO history(iid, execution, event, payload) SELECT iid, 1, i, x'00'"
           " FROM instance, n;"
           "UPDATE meta SET counter=%d", n, nth, events, events, n);
  run_in(name, sql);
}

/* The one writer is not held for long: pages that find little end early, and so do those that
 * remove much. */
static void
test_early_ends(void)
{
  const struct dk_instance_filter all = {.struct_size = sizeof all};
  const struct dk_instance_filter over = {.struct_size = sizeof over,
                                          .statuses = 1u << DK_COMPLETED};
  struct handle_under_test h;
  struct dk_bytes after = {NULL, 0};
  char last[32];
  int pages = 0;
  uint64_t deleted = 0, most = 0;

  open_scene(&h, "early.db");
  given_many("early.db", 9000, 100, 1);
  do {
    struct dk_removed removed = delete_page(&h, pages % 2 ? &all : &over, after, 1000);
    deleted += removed.instances;
    snprintf(last, sizeof last, "%.*s", (int)removed.next.len, removed.next.ptr);
    after = removed.next.ptr ? text(last) : (struct dk_bytes){NULL, 0};
    pages++;
  } while (after.ptr && pages < 10);
  ok(pages == 5 && deleted == 90, "90 among 9,000: %d pages, none of more than 2,000", pages);
  close_store(&h);
  open_scene(&h, "much.db");
  given_many("much.db", 3000, 1, 24);
  for (pages = 0; deleted > 0; pages++) {
    struct dk_removed removed = delete_page(&h, &all, (struct dk_bytes){NULL, 0}, 100000);
    deleted = removed.instances;
    most = removed.events > most ? removed.events : most;
  }
  ok(pages == 9 && most <= 10000, "72,000 events: %d pages, %llu events at most", pages,
     (unsigned long long)most);
  for (int i = 0; i < 40; i++) {
    char name[32];
    snprintf(name, sizeof name, "busy-%d", i);
    make(&h, name, .activities = 900, .status = DK_COMPLETED);
  }
  struct dk_removed removed = delete_page(&h, &all, (struct dk_bytes){NULL, 0}, 100000);
  ok(removed.activities > 9000 && removed.activities < 11000 && removed.next.ptr,
     "36,000 activities that were left over: %llu in the first page",
     (unsigned long long)removed.activities);
  while (removed.next.ptr)
    removed = delete_page(&h, &all, (struct dk_bytes){NULL, 0}, 100000);
  cmp_ok(rows_in("much.db"), "==", 0, "and nothing is left");
  close_store(&h);
}

int
main(void)
{
  begin();
  test_everything();
  test_tree();
  test_ring();
  test_refusals();
  test_tokens();
  test_repeated_commit();
  test_waiting();
  test_two_processes();
  test_growth();
  test_matching();
  test_early_ends();
  end();
  return done_testing();
}
