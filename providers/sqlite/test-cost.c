/* SPDX-License-Identifier: Apache-2.0 */
/* What operations cost, counted: the statements of a commit do not grow with what it cancels, each
 * statement goes by a key or an index, and callers at once share the syncs. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/sqlite/statements.h"
#include "providers/sqlite/tables.h"
#include "providers/sqlite/test-handle.h"

static void
expect_no_work(struct handle_under_test *h)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = 1, .lock_ms = LEASE};
  struct dk_works *works;

  ok(dk_store_fetch_work_item(h->store, h->caller, &request, &works) == DK_NOTHING,
     "a fetch that finds nothing");
}

/* ---- statements ------------------------------------------------------------------------------ */

/* Of the commit that cancels n of the instance's activities. */
static size_t
statements_of_commit(struct handle_under_test *h, const char *instance, size_t n)
{
  struct dk_commit_outcome outcome;

  given_activities(h, instance, n);
  struct dk_bytes token = fetch_turn(h);
  forget_statements();
  commit_cancelling(h, token, 1, n, &outcome);
  ok(outcome.report.free_rows == n, "%zu rows are deleted, %llu are reported", n,
     (unsigned long long)outcome.report.free_rows);
  return n_statements();
}

static void
test_statements(struct handle_under_test *h)
{
  static const size_t counts[] = {1, 50, 2000, 100000};
  size_t without = statements_of_commit(h, "none", 0);

  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    char name[32];
    snprintf(name, sizeof name, "many-%zu", counts[i]);
    size_t more = statements_of_commit(h, name, counts[i]) - without;
    size_t most = 1 + (counts[i] + 1999) / 2000;
    ok(more <= most, "%zu cancels take %zu statements more than none; at most %zu", counts[i], more,
       most);
  }
}

/* ---- plans ----------------------------------------------------------------------------------- */

static sqlite3 *
empty_store(void)
{
  sqlite3 *db;

  if (sqlite3_open(":memory:", &db) != SQLITE_OK)
    BAIL_OUT("no database in memory");
  for (const char *const *sql = sqlite_tables; *sql; sql++)
    if (sqlite3_exec(db, *sql, NULL, NULL, NULL) != SQLITE_OK)
      BAIL_OUT("a table cannot be made: %s", sqlite3_errmsg(db));
  return db;
}

/* One line a step, "; " between them. */
static void
plan_of(sqlite3 *db, const char *sql, char *plan, size_t size)
{
  char explain[4096];
  sqlite3_stmt *steps;

  plan[0] = '\0';
  snprintf(explain, sizeof explain, "EXPLAIN QUERY PLAN %s", sql);
  if (sqlite3_prepare_v2(db, explain, -1, &steps, NULL) != SQLITE_OK)
    BAIL_OUT("%s: %s", sql, sqlite3_errmsg(db));
  while (sqlite3_step(steps) == SQLITE_ROW) {
    size_t used = strlen(plan);
    snprintf(plan + used, size - used, "%s; ", (const char *)sqlite3_column_text(steps, 3));
  }
  sqlite3_finalize(steps);
}

/* A list that the caller gives is walked, and what a statement has found itself; a table never is.
 * What is sorted was not in order. */
static bool
is_flat(const char *plan)
{
  for (const char *scan = strstr(plan, "SCAN "); scan; scan = strstr(scan + 1, "SCAN "))
    if (strncmp(scan, "SCAN json_each", 14) != 0 && strncmp(scan, "SCAN doomed", 11) != 0)
      return false;
  return !strstr(plan, "B-TREE FOR ORDER BY") && !strstr(plan, "AUTOMATIC");
}

static void
test_plans(void)
{
  sqlite3 *db = empty_store();
  char plan[4096];

  for (int i = 0; i < SQL_STATEMENTS; i++) {
    if (strncmp(sql_name(i), "STATS_", 6) == 0)
      continue; /* counts every row */
    plan_of(db, sql_text(i), plan, sizeof plan);
    if (!ok(is_flat(plan), "%s uses a key or an index", sql_name(i)))
      diag("%s\n%s", sql_text(i), plan);
  }
  plan_of(db, "SELECT * FROM message WHERE payload=?1", plan, sizeof plan);
  ok(!is_flat(plan), "a statement that walks a table is found");
  sqlite3_close(db);
}

/* Checks the text that ran, not a copy of it. */
static void
test_plan_of_cancellation(struct handle_under_test *h)
{
  sqlite3 *db = empty_store();
  const char *ran = NULL;
  char plan[4096];

  statements_of_commit(h, "explained", 50);
  for (size_t i = 0; i < n_statements(); i++)
    if (strncmp(statement_run(i), "DELETE FROM work", 16) == 0)
      ran = statement_run(i);
  plan_of(db, ran ? ran : "SELECT 1", plan, sizeof plan);
  ok(strstr(plan, "PRIMARY KEY (iid=? AND execution=? AND activity=?)") != NULL,
     "a cancellation finds each row by its identity");
  diag("%s", plan);
  plan_of(db, sql_text(SQL_CANCEL_OF_EXECUTION), plan, sizeof plan);
  ok(strstr(plan, "PRIMARY KEY (iid=? AND execution=? AND activity=?)") != NULL,
     "so does one of many");
  sqlite3_close(db);
}

/* ---- rows that must be reported, among thousands --------------------------------------------- */

enum { THOUSANDS = 5000, HELD = 3, LARGE = 5000 };

/* Cancels 1 to n, in no order of theirs; the last, of a large payload, it adds itself. */
static void
commit_odd(struct handle_under_test *h, size_t n, struct dk_commit_outcome *ret_outcome)
{
  static struct dk_activity cancelled[THOUSANDS];
  static const char large[LARGE];
  struct dk_item own = {.struct_size = sizeof own, .execution_id = 1, .activity_id = n,
                        .payload = {large, sizeof large}};
  const struct dk_item *items[] = {&own};
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .worker_items = items, .n_worker_items = 1,
                                  .cancelled_activities = cancelled, .n_cancelled_activities = n};
  struct dk_bytes token = fetch_turn(h);

  for (size_t i = 0; i < n; i++)
    cancelled[i] = (struct dk_activity){1, n - i};
  forget_statements();
  if (dk_store_ack_orchestration_item(h->store, h->caller, token, &result, ret_outcome) != DK_OK)
    BAIL_OUT("a commit: %s", dk_caller_failure(h->caller)->text);
}

static bool
has_run(const char *sql)
{
  for (size_t i = 0; i < n_statements(); i++)
    if (strcmp(statement_run(i), sql) == 0)
      return true;
  return false;
}

/* CANCEL-6: locked rows are reported, and rows that no worker has seen are not counted. */
static void
test_odd_rows(struct handle_under_test *h)
{
  struct handle_under_test others[HELD];
  struct dk_commit_outcome outcome;
  const size_t n_free = THOUSANDS - 1 - HELD;

  given_activities(h, "odd", THOUSANDS - 1);
  for (int i = 0; i < HELD; i++) {
    others[i] = with_caller(h);
    fetch_work(&others[i]);
  }
  commit_odd(h, THOUSANDS, &outcome);
  ok(has_run(sql_text(SQL_CANCEL_OF_EXECUTION)) && has_run(sql_text(SQL_DELETE_ALL_LARGE)),
     "thousands of one execution are only counted, and the large payload is deleted with its row");
  ok(outcome.report.free_rows == n_free && outcome.report.locked_rows == HELD &&
       outcome.n_stolen == HELD,
     "%zu free and %d held: reported are %llu, %llu, and %zu by their tokens", n_free, HELD,
     (unsigned long long)outcome.report.free_rows, (unsigned long long)outcome.report.locked_rows,
     outcome.n_stolen);
  expect_no_work(h);
  for (int i = 0; i < HELD; i++)
    dk_caller_free(others[i].caller);
}

/* ---- a million instances --------------------------------------------------------------------- */

enum { PAGE = 100, PLACES = 5, SPREAD = 10 };

/* Each tenth is a child of the first. */
static void
given_instances(const char *name, int n)
{
  char sql[1024];
  sqlite3 *db;

  snprintf(sql, sizeof sql,
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%d)"
           "INSERT INTO instance(iid, known, status, execution, last_event, name, version, parent,"
           " instance, created_at) SELECT i, 1, 2, 1, 3, 'order', '1',"
           " iif(i%%%d=0, 'i-0000001', NULL), printf('i-%%07d', i), 5 FROM n;"
           "INSERT INTO execution(iid, execution, status, started_at, completed_at)"
           " SELECT iid, 1, 2, 5, 6 FROM instance; UPDATE meta SET counter=%d", n, SPREAD, n);
  if (sqlite3_open(path_of(name), &db) != SQLITE_OK ||
      sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
    BAIL_OUT("%s: %s", name, sqlite3_errmsg(db));
  sqlite3_close(db);
}

/* What a page takes that begins behind the number `after`. */
static size_t
steps_of_page(struct handle_under_test *h, const struct dk_instance_filter *filter, int after)
{
  char id[32];
  struct dk_list_instances request = {.struct_size = sizeof request, .filter = filter,
                                      .max_instances = PAGE};
  struct dk_instances *found = NULL;

  snprintf(id, sizeof id, "i-%07d", after);
  request.after = text(id);
  forget_statements();
  if (dk_store_list_instances(h->store, h->caller, &request, &found) != DK_OK ||
      found->n_items != PAGE)
    BAIL_OUT("a page: %s", dk_caller_failure(h->caller)->text);
  return n_steps();
}

static void
test_pages(struct handle_under_test *h, const struct dk_instance_filter *filter, int n,
           const char *what)
{
  size_t least = SIZE_MAX, most = 0;

  for (int i = 0; i < PLACES; i++) {
    size_t steps = steps_of_page(h, filter, (int)((int64_t)(n - PAGE * SPREAD - 1) * i /
                                                  (PLACES - 1)));
    least = steps < least ? steps : least;
    most = steps > most ? steps : most;
  }
  ok(most - least <= least / 20 && most < PAGE * 150,
     "%s: a page of %d takes %zu to %zu steps, wherever it begins in %d instances", what, PAGE,
     least, most, n);
}

/* ADMIN-1; and the one writer looks at so many, whatever is selected. */
static void
test_a_million(void)
{
  const struct dk_instance_filter children = {.struct_size = sizeof children,
                                              .parent_instance = text("i-0000001")};
  const struct dk_instance_filter failed = {.struct_size = sizeof failed,
                                            .statuses = 1u << DK_FAILED};
  struct dk_delete_matching request = {.struct_size = sizeof request, .filter = &failed,
                                       .max_instances = 1000};
  const int n = is_slow() ? 20000 : 1000000;
  struct handle_under_test h;
  struct dk_removed removed;

  open_store(&h, "million.db");
  given_instances("million.db", n);
  test_pages(&h, NULL, n, "all");
  test_pages(&h, &children, n, "children");
  forget_statements();
  if (dk_store_delete_matching(h.store, h.caller, &request, &removed) != DK_OK)
    BAIL_OUT("a page: %s", dk_caller_failure(h.caller)->text);
  ok(removed.instances == 0 && removed.next.ptr && n_rows() < 2100,
     "a deletion that finds nothing ends its page after %zu rows", n_rows());
  close_store(&h);
}

/* The statements of a deletion do not grow with the number of deleted rows. */
static void
test_statements_of_deletion(void)
{
  struct handle_under_test h;
  size_t statements[2];
  struct dk_bytes root = text("i-0000001");
  struct dk_delete_instances request = {.struct_size = sizeof request, .instances = &root,
                                        .n_instances = 1};
  struct dk_removed removed;

  for (int i = 0; i < 2; i++) {
    const char *name = i == 0 ? "few.db" : "more.db";
    const int n = i == 0 ? SPREAD : 2000 * SPREAD;
    open_store(&h, name);
    given_instances(name, n);
    forget_statements();
    if (dk_store_delete_instances(h.store, h.caller, &request, &removed) != DK_OK)
      BAIL_OUT("a deletion: %s", dk_caller_failure(h.caller)->text);
    statements[i] = n_statements();
    ok(removed.instances == (uint64_t)(1 + n / SPREAD), "a tree of %d", 1 + n / SPREAD);
    close_store(&h);
  }
  ok(statements[0] == statements[1] && statements[0] < 20, "takes %zu statements, and %zu",
     statements[0], statements[1]);
}

/* ---- syncs ----------------------------------------------------------------------------------- */

enum { ALONE = 100, CALLERS = 16, OPERATIONS = 60, PAIRS = OPERATIONS / 2, ROUNDS = 10 };

struct crowd {
  struct handle_under_test *h;
  void (*act)(struct handle_under_test *own, const char *instance); /* one or two operations */
  int times;
  atomic_int number;
};

static void
enqueue_once(struct handle_under_test *own, const char *instance)
{
  enqueue(own, instance);
}

/* Three events, an activity, and a message to itself, so that there is another turn: of whichever
 * instance it is. */
static void
do_turn(struct handle_under_test *own, const char *instance)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE};
  struct dk_turn *turn = NULL;

  (void)instance;
  if (dk_store_fetch_orchestration_item(own->store, own->caller, &request, &turn) != DK_OK)
    BAIL_OUT("no turn: %s", dk_caller_failure(own->caller)->text);
  const uint64_t last = turn->head.last_event_id;
  char of[64];
  snprintf(of, sizeof of, "%.*s", (int)turn->head.instance.len, turn->head.instance.ptr);
  struct dk_event events[3];
  for (uint64_t i = 0; i < 3; i++)
    events[i] = (struct dk_event){last + 1 + i, text("happened")};
  struct dk_item activity = {.struct_size = sizeof activity, .execution_id = 1,
                             .activity_id = last + 1, .payload = text("do")};
  struct dk_item message = {.struct_size = sizeof message, .instance = text(of),
                            .payload = text("go on")};
  const struct dk_item *activities[] = {&activity}, *messages[] = {&message};
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .name = text("order"), .version = text("1"),
                                  .events = events, .n_events = 3,
                                  .worker_items = activities, .n_worker_items = 1,
                                  .orchestrator_items = messages, .n_orchestrator_items = 1};
  struct dk_commit_outcome outcome;
  if (dk_store_ack_orchestration_item(own->store, own->caller, turn->head.lock_token, &result,
                                      &outcome) != DK_OK)
    BAIL_OUT("a commit: %s", dk_caller_failure(own->caller)->text);
}

static void
do_work(struct handle_under_test *own, const char *instance)
{
  (void)instance;
  ack_work(own, fetch_work(own), NULL);
}

/* The first write of a log syncs its head too; what was prepared before has made it. */
static void
test_syncs_alone(struct handle_under_test *h, struct crowd *crowd, int operations, const char *what)
{
  forget_syncs();
  for (int i = 0; i < ALONE; i++)
    crowd->act(h, "alone");
  ok(n_syncs() == (size_t)(ALONE * operations), "one caller, %s: %d operations, %zu syncs", what,
     ALONE * operations, n_syncs());
}

static void *
act_many_times(void *context)
{
  struct crowd *crowd = context;
  struct handle_under_test own = with_caller(crowd->h);
  char instance[32];

  snprintf(instance, sizeof instance, "caller-%d", atomic_fetch_add(&crowd->number, 1));
  for (int i = 0; i < crowd->times; i++)
    crowd->act(&own, instance);
  dk_caller_free(own.caller);
  return NULL;
}

static double
work_together(struct crowd *crowd)
{
  pthread_t threads[CALLERS];

  forget_syncs();
  for (int i = 0; i < CALLERS; i++)
    if (pthread_create(&threads[i], NULL, act_many_times, crowd) != 0)
      BAIL_OUT("no thread");
  for (int i = 0; i < CALLERS; i++)
    pthread_join(threads[i], NULL);
  return n_syncs() ? (double)(CALLERS * OPERATIONS) / (double)n_syncs() : 0;
}

/* On a busy machine a caller may come too late for a group: one of a few rounds must share. */
static void
test_syncs_together(struct crowd *crowd, const char *what)
{
  enum { WANTED = 6 };
  double shared = 0;

  for (int round = 0; round < ROUNDS && shared < WANTED; round++)
    shared = work_together(crowd);
  ok(shared >= WANTED, "%d callers, %s: %.1f operations a sync; at least %d", CALLERS, what, shared,
     WANTED);
}

static void
test_syncs_of_enqueues(struct handle_under_test *h)
{
  struct crowd crowd = {.h = h, .act = enqueue_once, .times = OPERATIONS};

  enqueue(h, "first");
  test_syncs_alone(h, &crowd, 1, "messages");
  test_syncs_together(&crowd, "messages");
  forget_syncs();
  expect_no_work(h);
  ok(n_syncs() == 0, "a fetch that finds nothing makes no sync (%zu)", n_syncs());
}

/* A turn is fetched and committed, each with its sync; for each caller there is an instance. */
static void
test_syncs_of_turns(void)
{
  struct handle_under_test h;
  struct crowd crowd = {.h = &h, .act = do_turn, .times = PAIRS};

  open_store(&h, "turns.db");
  for (int i = 0; i < CALLERS; i++) {
    char instance[32];
    snprintf(instance, sizeof instance, "turns-%d", i);
    enqueue(&h, instance);
  }
  test_syncs_alone(&h, &crowd, 2, "turns");
  test_syncs_together(&crowd, "turns");
  close_store(&h);
}

static void
test_syncs_of_work(void)
{
  struct handle_under_test h;
  struct crowd crowd = {.h = &h, .act = do_work, .times = PAIRS};

  open_store(&h, "work.db");
  given_activities(&h, "work", ALONE + ROUNDS * CALLERS * PAIRS);
  test_syncs_alone(&h, &crowd, 2, "work");
  test_syncs_together(&crowd, "work");
  close_store(&h);
}

int
main(void)
{
  struct handle_under_test h;

  begin();
  open_store(&h, "cost.db");
  test_plans();
  test_statements(&h);
  test_plan_of_cancellation(&h);
  test_odd_rows(&h);
  test_a_million();
  test_statements_of_deletion();
  test_syncs_of_enqueues(&h);
  test_syncs_of_turns();
  test_syncs_of_work();
  close_store(&h);
  end();
  return done_testing();
}
