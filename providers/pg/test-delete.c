/* SPDX-License-Identifier: Apache-2.0 */
/* Removing instances: nothing is left of them, and nothing of others is deleted; a refusal changes
 * nothing; that their tokens are dead for good; pages of what a filter selects; and pruning. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-instances.h"

static struct handle_under_test h;
static char schema[64];

static void
begin_store(const char *name)
{
  snprintf(schema, sizeof schema, "%s", named(name));
  expect_done(open_as(conninfo, schema, CREATE, &h), name);
}

static void
end_store(void)
{
  close_store(&h);
  expect_done(try_destroy(schema), "removed");
}

/* In the schema of the store. */
static void
run(const char *statement)
{
  sql(plain, "SET search_path TO \"%s\"", schema);
  sql(plain, "%s", statement);
  sql(plain, "RESET search_path");
}

static char *
ids_left(void)
{
  return sql_value(plain, "SELECT string_agg(i.instance, ' ' ORDER BY i.instance)"
                   " FROM \"%s\".instance i", schema);
}

static void
is_left(const char *expected, const char *name)
{
  char *found = ids_left();

  is(found, expected, "%s", name);
  free(found);
}

/* An instance of this parent that has ended, with events. */
static void
given_over(const char *instance, const char *parent, size_t n_events)
{
  struct dk_event events[8];

  for (size_t i = 0; i < n_events; i++)
    events[i] = (struct dk_event){i + 1, text("happened")};
  struct dk_turn_result result = {.status = DK_COMPLETED, .events = events, .n_events = n_events};
  if (parent)
    result.parent_instance = text(parent);
  commit_of(&h, instance, result);
}

/* ---- nothing is left ------------------------------------------------------------------------- */

/* All that an instance can have: two executions with events, activities of both, free, locked,
 * delayed and tagged, messages, with ids, delayed and held, a pin, an owner, a turn. */
static struct dk_bytes
given_all_there_is(const char *instance, struct dk_bytes *ret_work)
{
  static const struct dk_event events[] = {{1, {"a", 1}}, {2, {"b", 1}}};
  static const struct dk_version pinned = {1, 2, 3};
  const struct dk_item work[] = {
    {.struct_size = sizeof *work, .execution_id = 1, .activity_id = 1, .payload = text("free")},
    {.struct_size = sizeof *work, .execution_id = 1, .activity_id = 2, .tag = text("gpu")},
    {.struct_size = sizeof *work, .execution_id = 1, .activity_id = 3, .delay_ms = A_DAY}};
  const struct dk_item more = {.struct_size = sizeof more, .execution_id = 2, .activity_id = 1};
  const struct dk_item *first[] = {&work[0], &work[1], &work[2]}, *second[] = {&more};
  struct dk_item message = {.struct_size = sizeof message, .instance = text(instance),
                            .id = text("id"), .delay_ms = A_DAY};

  COMMIT(&h, instance, .events = events, .n_events = 2, .worker_items = first, .n_worker_items = 3,
         .status = DK_CONTINUED_AS_NEW, .output = text("out"), .owner = text("me"));
  COMMIT(&h, instance, .execution_id = 2, .events = events, .n_events = 1, .worker_items = second,
         .n_worker_items = 1, .owner = text("me"), .pinned = &pinned);
  dk_store_enqueue_for_orchestrator(h.store, h.caller, &message);
  *ret_work = fetch_work(&h);
  return turn_of(&h, instance)->head.lock_token;
}

/* DEL-1, DEL-7: others, one of them with its name for a prefix, are as they were. */
static void
test_nothing_left(void)
{
  struct dk_removed removed;
  struct dk_bytes work;

  begin_store("left");
  given_all_there_is("order-10", &work);
  run("UPDATE work SET ready_at = 9000000000000"); /* the next one that is fetched is of order-1 */
  given_over("orde", NULL, 3);
  char *before = digest(schema);
  given_all_there_is("order-1", &work);
  expect_refused(try_to_delete(&h, "order-1", 0, &removed), DK_REFUSED, "is running",
                 "what runs is not deleted,");
  expect_done(try_to_delete(&h, "order-1", DK_DELETE_FORCE, &removed), "but by force");
  is_removed(&removed, "1 2 3 2 4 -", "the deleted rows are counted");
  char *after = digest(schema);
  is(after, before, "nothing is left in any table, and all others are as they were");
  free(before);
  free(after);
  end_store();
}

/* DEL-1: what it has sent to others is theirs. */
static void
test_messages_to_others(void)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text("other"),
                         .payload = text("from order-1")};
  const struct dk_item *items[] = {&item};
  struct dk_removed removed;

  begin_store("sent");
  COMMIT(&h, "order-1", .status = DK_CANCELLED, .orchestrator_items = items,
         .n_orchestrator_items = 1);
  expect_done(try_to_delete(&h, "order-1", 0, &removed), "one that was cancelled is deleted");
  is_removed(&removed, "1 1 0 0 0 -", "alone");
  struct dk_turn *turn = fetch_turn_as(&h, NULL);
  ok(turn->n_messages == 1 && strcmp(turn->messages[0].payload.ptr, "from order-1") == 0,
     "what it has sent arrives");
  end_store();
}

/* ---- what is refused ------------------------------------------------------------------------- */

static const struct {
  const char *ids;
  uint32_t flags;
  dk_status status;
  const char *says, *what;
} refused[] = {
  {"over absent", 0, DK_NOT_FOUND, "\"absent\" does not exist", "an unknown instance"},
  {"over absent", DK_DELETE_FORCE, DK_NOT_FOUND, "\"absent\"", "by force too"},
  {"over empty", DK_DELETE_FORCE, DK_NOT_FOUND, "\"empty\"", "an address without messages"},
  {"running over", 0, DK_REFUSED, "\"running\" has not ended: it is running", "one that runs"},
  {"over pending", 0, DK_REFUSED, "\"pending\" has not ended: it has not started", "not started"},
  {"over again", 0, DK_REFUSED, "\"again\" has not ended: it continues as new", "continued as new"},
  {"mother", 0, DK_REFUSED, "\"grandchild\" has not ended", "of which a descendant runs"},
  {"child over", 0, DK_REFUSED, "\"child\" is a child of \"mother\", which exists", "a child"},
  {"over grandchild", DK_DELETE_FORCE, DK_REFUSED, "\"child\"", "a child, by force"},
  {"of-pending", DK_DELETE_FORCE, DK_REFUSED, "\"pending\"", "whose parent has not started"},
};

/* DEL-2 to DEL-4. */
static void
test_refused(void)
{
  struct dk_removed removed;

  begin_store("refused");
  given_over("over", NULL, 1);
  given_over("mother", NULL, 1);
  given_over("child", "mother", 1);
  given_over("of-pending", "pending", 1);
  given_over("of-absent", "absent, too", 1);
  COMMIT(&h, "grandchild", .parent_instance = text("child"));
  COMMIT(&h, "running", .status = DK_RUNNING);
  COMMIT(&h, "again", .status = DK_CONTINUED_AS_NEW);
  enqueue(&h, "pending");
  run("INSERT INTO instance(instance) VALUES ('empty')");
  char *before = digest(schema);
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
    expect_refused(try_to_delete(&h, refused[i].ids, refused[i].flags, &removed),
                   refused[i].status, refused[i].says, refused[i].what);
  expect_done(try_to_delete(&h, "", 0, &removed), "an empty list");
  is_removed(&removed, "0 0 0 0 0 -", "deletes nothing");
  char *after = digest(schema);
  is(after, before, "nothing has changed");
  expect_done(try_to_delete(&h, "of-absent over of-absent", 0, &removed),
              "a parent that does not exist does not count");
  is_removed(&removed, "2 2 2 0 0 -", "and an id twice is that id");
  cmp_ok(removed.roots, "==", 2, "and one root");
  expect_done(try_to_delete(&h, "grandchild mother", DK_DELETE_FORCE, &removed),
              "a child is deleted with its parent");
  is_removed(&removed, "3 3 2 0 0 -", "each once");
  expect_done(try_to_delete(&h, "pending again running", DK_DELETE_FORCE, &removed),
              "by force all");
  is_removed(&removed, "4 3 1 1 0 -", "with the child of one that has not started");
  is_left("empty", "that is all");
  free(before);
  free(after);
  end_store();
}

/* ---- descendants ----------------------------------------------------------------------------- */

/* DEL-3. */
static void
test_descendants(void)
{
  struct dk_removed removed;

  begin_store("deep");
  run("INSERT INTO instance(instance, birth, status, execution, parent)"
      " SELECT 'deep-' || n, n, 2, 1,"
      " CASE WHEN n > 1 THEN 'deep-' || n - 1 END FROM generate_series(1, 2000) n");
  run("INSERT INTO instance(instance, birth, status, execution, parent) VALUES ('a', 1, 2, 1, 'c'),"
      " ('b', 2, 3, 1, 'a'), ('c', 3, 2, 1, 'b'), ('d', 4, 5, 1, 'b'), ('self', 5, 2, 1, 'self')");
  expect_done(try_to_delete(&h, "deep-1", 0, &removed), "2,000 deep");
  is_removed(&removed, "2000 0 0 0 0 -", "all are deleted");
  expect_done(try_to_delete(&h, "b", 0, &removed), "one of a ring");
  is_removed(&removed, "4 0 0 0 0 -", "and so does the ring, with what hangs on it");
  cmp_ok(removed.roots, "==", 1, "of which one was named");
  expect_done(try_to_delete(&h, "self", 0, &removed), "one that is its own parent");
  is_left("", "all are deleted");
  end_store();
}

/* Ids as long as any, and children of such: they are in one index. */
static void
test_long_ids(void)
{
  char ids[2][1025];
  struct dk_removed removed;

  begin_store("long");
  for (int i = 0; i < 2; i++) { /* which no compression makes shorter */
    char *random = sql_value(plain, "SELECT left(string_agg(md5(random()::text), ''), 1024)"
                             " FROM generate_series(1, 40)");
    snprintf(ids[i], sizeof ids[i], "%s", random);
    free(random);
  }
  given_over(ids[0], NULL, 0);
  given_over(ids[1], ids[0], 0);
  struct dk_instance_filter filter = {.struct_size = sizeof filter,
                                      .parent_instance = text(ids[0])};
  is(listed(&h, &filter, NULL, 0), ids[1], "a child of 1,024 bytes is found by a parent of 1,024");
  expect_done(try_to_delete(&h, ids[0], 0, &removed), "and is deleted with it");
  is_removed(&removed, "2 2 0 0 0 -", "both");
  end_store();
}

/* ---- tokens, and the next life --------------------------------------------------------------- */

/* DEL-5: no operation takes them, and nothing comes back. */
static void
test_dead(struct dk_bytes turn, struct dk_bytes work)
{
  struct dk_item done = {.struct_size = sizeof done, .instance = text("order-1")};
  struct dk_work_result result = {.struct_size = sizeof result, .flags = DK_REPEATED,
                                  .completion = &done};
  struct dk_turn_result again = {.execution_id = 2, .flags = DK_REPEATED};
  char *before = digest(schema);

  cmp_ok(try_to_commit(&h, turn, (struct dk_turn_result){.execution_id = 2}, NULL), "==",
         DK_LOCK_LOST, "its turn's token is dead");
  cmp_ok(try_to_commit(&h, turn, again, NULL), "==", DK_LOCK_LOST, "for a repeated commit, too");
  cmp_ok(dk_store_renew_orchestration_item_lock(h.store, h.caller, turn, LEASE), "==",
         DK_LOCK_LOST, "for renew");
  cmp_ok(dk_store_abandon_orchestration_item(h.store, h.caller, turn, 0, 0), "==", DK_LOCK_LOST,
         "and abandon");
  cmp_ok(dk_store_ack_work_item(h.store, h.caller, work, &result), "==", DK_LOCK_LOST,
         "its worker's for an ack");
  cmp_ok(dk_store_renew_work_item_lock(h.store, h.caller, work, LEASE), "==", DK_LOCK_LOST,
         "for renew");
  cmp_ok(dk_store_abandon_work_item(h.store, h.caller, work, 0, 0), "==", DK_LOCK_LOST,
         "and abandon");
  char *after = digest(schema);
  is(after, before, "nothing comes back, and nothing has changed");
  free(before);
  free(after);
}

/* DEL-6. */
static void
test_next_life(void)
{
  struct dk_bytes work, turn;
  char old_turn[300], old_work[300];

  begin_store("life");
  turn = given_all_there_is("order-1", &work);
  uint64_t birth = told(&h, "order-1").birth;
  snprintf(old_turn, sizeof old_turn, "%s", turn.ptr);
  snprintf(old_work, sizeof old_work, "%s", work.ptr);
  expect_done(try_to_delete(&h, "order-1", DK_DELETE_FORCE, NULL), "deleted");
  test_dead(text(old_turn), text(old_work));
  struct dk_turn *first = turn_of(&h, "order-1");
  ok(!first->head.known && first->head.birth == 0 && first->n_events == 0 &&
     first->messages[0].attempt == 1, "the next life begins like any other");
  isnt(first->head.lock_token.ptr, old_turn, "with another token");
  const struct dk_item item = {.struct_size = sizeof item, .execution_id = 1, .activity_id = 1};
  const struct dk_item *items[] = {&item};
  struct dk_turn_result begun = {.worker_items = items, .n_worker_items = 1};
  expect_done(try_to_commit(&h, first->head.lock_token, begun, NULL), "execution 1, activity 1");
  isnt(fetch_work(&h).ptr, old_work, "whose token is another, too");
  turn_of(&h, "order-1");
  cmp_ok(told(&h, "order-1").birth, ">", birth, "and another birth");
  test_dead(text(old_turn), text(old_work));
  end_store();
}

/* ---- judged under the locks ------------------------------------------------------------------ */

static void *
delete_both(void *ret_status)
{
  struct handle_under_test other = with_caller(&h);
  dk_status *status = ret_status;

  *status = try_to_delete(&other, "first second", 0, NULL);
  dk_caller_free(other.caller);
  return NULL;
}

/* Until a session waits for a lock. */
static void
until_somebody_waits(void)
{
  for (int i = 0; i < 3000; i++) {
    if (number(plain, "SELECT count(*) FROM pg_catalog.pg_locks WHERE NOT granted") > 0)
      return;
    free(sql_value(plain, "SELECT pg_catalog.pg_sleep(0.01)"));
  }
  BAIL_OUT("no session waits for a lock");
}

/* DEL-2: its state under the lock counts, and not its state at the first look. */
static void
test_judged_late(const char *change, dk_status expected, const char *left, const char *what)
{
  pthread_t thread;
  dk_status status;

  begin_store("late");
  given_over("first", NULL, 1);
  given_over("second", NULL, 1);
  sql(plain, "BEGIN");
  run(change);
  if (pthread_create(&thread, NULL, delete_both, &status) != 0)
    BAIL_OUT("no thread");
  until_somebody_waits();
  sql(plain, "COMMIT");
  pthread_join(thread, NULL);
  cmp_ok(status, "==", expected, "%s meanwhile", what);
  is_left(left, "whole or not at all");
  end_store();
}

/* A deletion whose session is ended while it waits for a row. */
static dk_status
delete_and_be_ended(void)
{
  pthread_t thread;
  dk_status status;

  sql(plain, "BEGIN");
  sql(plain, "SELECT FROM \"%s\".instance WHERE instance = 'second' FOR UPDATE", schema);
  if (pthread_create(&thread, NULL, delete_both, &status) != 0)
    BAIL_OUT("no thread");
  until_somebody_waits();
  sql(super, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted");
  pthread_join(thread, NULL);
  sql(plain, "ROLLBACK");
  return status;
}

/* After a lost connection it is unknown whether the deletion was done; a second attempt shows it.
 */
static void
test_unknown_outcome(void)
{
  begin_store("unknown");
  given_over("first", NULL, 1);
  given_over("second", NULL, 1);
  cmp_ok(delete_and_be_ended(), "==", DK_OUTCOME_UNKNOWN,
         "after its session has ended, the outcome of a deletion is unknown");
  is_left("first second", "this one was undone");
  expect_done(try_to_delete(&h, "first second", 0, NULL), "and can be tried again");
  expect_refused(try_to_delete(&h, "first second", 0, NULL), DK_NOT_FOUND, "\"first\"",
                 "after a deletion that was done, the next try finds nothing");
  end_store();
}

/* ---- by a filter ----------------------------------------------------------------------------- */

static struct dk_removed
delete_page(const struct dk_instance_filter *filter, const char *after, uint32_t most)
{
  static const struct dk_instance_filter all = {.struct_size = sizeof all};
  struct dk_delete_matching request = {.struct_size = sizeof request, .max_instances = most};
  struct dk_removed removed = {.instances = 4711};

  request.filter = filter ? filter : &all;
  if (after)
    request.after = text(after);
  dk_status status = dk_store_delete_matching(h.store, h.caller, &request, &removed);
  if (status != DK_OK)
    diag("status %d: %s", (int)status, dk_caller_failure(h.caller)->text);
  return removed;
}

/* DEL-8, DEL-9. */
static void
test_matching(void)
{
  struct dk_instance_filter filter = {.struct_size = sizeof filter,
                                      .statuses = 1u << DK_FAILED | 1u << DK_RUNNING};

  begin_store("matching");
  given_over("a", NULL, 1);
  given_over("b", "c", 1);
  given_over("c", NULL, 1);
  given_over("d", "absent", 1);
  COMMIT(&h, "e", .status = DK_RUNNING);
  given_over("f", NULL, 2);
  COMMIT(&h, "g", .parent_instance = text("f"), .status = DK_CONTINUED_AS_NEW);
  COMMIT(&h, "h", .status = DK_FAILED);
  enqueue(&h, "i");
  struct dk_removed removed = delete_page(&filter, NULL, 9);
  is_removed(&removed, "1 1 0 0 0 -", "of those that failed or run the one that failed");
  removed = delete_page(NULL, NULL, 1);
  is_removed(&removed, "1 1 1 0 0 a", "one, and where the page has ended");
  removed = delete_page(NULL, "a", 1);
  is_removed(&removed, "2 2 2 0 0 c", "the next is a child, deleted with its parent");
  cmp_ok(removed.roots, "==", 1, "which is the root");
  filter = (struct dk_instance_filter){.struct_size = sizeof filter, .flags = DK_FILTER_IDS};
  removed = delete_page(&filter, NULL, 9);
  is_removed(&removed, "0 0 0 0 0 -", "an empty list of ids deletes nothing");
  removed = delete_page(NULL, "c", 9);
  is_removed(&removed, "1 1 1 0 0 -", "then one whose parent does not exist, to the end");
  is_left("e f g i", "what runs, has a child that does, or has not started is passed over");
  end_store();
}

/* DEL-9: bounded, whatever there is; and the pages come to an end. */
static void
test_pages(void)
{
  struct dk_removed removed;
  char after[64] = "";
  uint64_t gone = 0;
  int pages = 0;

  begin_store("pages");
  run("INSERT INTO instance(instance, birth, status, execution)"
      " SELECT 'r' || lpad(n::text, 5, '0'), n, 1, 1 FROM generate_series(1, 4500) n");
  removed = delete_page(NULL, NULL, 100);
  is_removed(&removed, "0 0 0 0 0 r02000", "of what runs 2,000 are looked at");
  run("UPDATE instance SET status = 2");
  run("INSERT INTO history(instance, execution, event) SELECT i.instance, 1, n FROM instance i,"
      " generate_series(1, 30) n");
  run("ANALYZE history, instance");
  do {
    removed = delete_page(NULL, *after ? after : NULL, 4000);
    gone += removed.instances;
    ok(removed.events <= 20000, "a page of %zu instances and %zu rows", (size_t)removed.instances,
       (size_t)removed.events);
    snprintf(after, sizeof after, "%s", removed.next.ptr ? removed.next.ptr : "");
  } while (*after && ++pages < 20);
  cmp_ok(gone, "==", 4500, "all are deleted");
  ok(pages > 4 && pages < 10, "after some %d pages", pages);
  run("INSERT INTO instance(instance, birth, status, execution) VALUES ('large', 1, 2, 1)");
  run("INSERT INTO history(instance, execution, event) SELECT 'large', 1, n"
      " FROM generate_series(1, 30000) n");
  removed = delete_page(NULL, NULL, 1);
  is_removed(&removed, "1 0 30000 0 0 -", "one that is larger than a page is deleted whole");
  end_store();
}

int
main(void)
{
  plan(NO_PLAN);
  begin_stores();
  test_nothing_left();
  test_messages_to_others();
  test_refused();
  test_descendants();
  test_long_ids();
  test_next_life();
  test_judged_late("UPDATE instance SET status = 1 WHERE instance = 'second'", DK_REFUSED,
                   "first second", "one began to run");
  test_judged_late("DELETE FROM instance WHERE instance = 'second'", DK_NOT_FOUND, "first",
                   "one was deleted");
  test_judged_late("UPDATE instance SET parent = 'first' WHERE instance = 'second'", DK_OK, "",
                   "one became the child of another");
  if (super)
    test_unknown_outcome();
  else
    skip(1, "to end a session needs a superuser: DURAKIT_PG_SUPER is not set");
  test_matching();
  test_pages();
  end_stores();
  return done_testing();
}
