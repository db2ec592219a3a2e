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
  ok(outcome.report.free_rows == n, "%zu rows are deleted, %llu are told", n,
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

/* A list that the caller gives is walked; a table never is.  What is sorted was not in order. */
static bool
is_flat(const char *plan)
{
  for (const char *scan = strstr(plan, "SCAN "); scan; scan = strstr(scan + 1, "SCAN "))
    if (strncmp(scan, "SCAN json_each", 14) != 0)
      return false;
  return !strstr(plan, "B-TREE FOR ORDER BY") && !strstr(plan, "AUTOMATIC");
}

static void
test_plans(void)
{
  sqlite3 *db = empty_store();
  char plan[4096];

  for (int i = 0; i < SQL_STATEMENTS; i++) {
    plan_of(db, sql_text(i), plan, sizeof plan);
    if (!ok(is_flat(plan), "%s goes by a key or an index", sql_name(i)))
      diag("%s\n%s", sql_text(i), plan);
  }
  plan_of(db, "SELECT * FROM message WHERE payload=?1", plan, sizeof plan);
  ok(!is_flat(plan), "a statement that walks a table is found out");
  sqlite3_close(db);
}

/* The text that ran, not the one that was meant. */
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
  sqlite3_close(db);
}

/* ---- syncs ----------------------------------------------------------------------------------- */

enum { ALONE = 100, CALLERS = 16, OPERATIONS = 60 };

/* The first write of a log syncs its head too. */
static void
test_syncs_alone(struct handle_under_test *h)
{
  enqueue(h, "first");
  forget_syncs();
  for (int i = 0; i < ALONE; i++)
    enqueue(h, "alone");
  ok(n_syncs() == ALONE, "one caller: %d operations, %zu syncs", ALONE, n_syncs());
  forget_syncs();
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = 1, .lock_ms = LEASE,
                                  .tag_rule = DK_TAG_LISTED};
  struct dk_works *works;
  ok(dk_store_fetch_work_item(h->store, h->caller, &request, &works) == DK_NOTHING,
     "a fetch that finds nothing");
  ok(n_syncs() == 0, "makes no sync (%zu)", n_syncs());
}

struct crowd {
  struct handle_under_test *h;
  atomic_int number;
};

static void *
enqueue_many(void *context)
{
  struct crowd *crowd = context;
  struct handle_under_test own = with_caller(crowd->h);
  char instance[32];

  snprintf(instance, sizeof instance, "caller-%d", atomic_fetch_add(&crowd->number, 1));
  for (int i = 0; i < OPERATIONS; i++)
    enqueue(&own, instance);
  dk_caller_free(own.caller);
  return NULL;
}

static void
test_syncs_together(struct handle_under_test *h)
{
  struct crowd crowd = {.h = h};
  pthread_t threads[CALLERS];

  forget_syncs();
  for (int i = 0; i < CALLERS; i++)
    if (pthread_create(&threads[i], NULL, enqueue_many, &crowd) != 0)
      BAIL_OUT("no thread");
  for (int i = 0; i < CALLERS; i++)
    pthread_join(threads[i], NULL);
  double shared = (double)(CALLERS * OPERATIONS) / (double)(n_syncs() ? n_syncs() : 1);
  ok(n_syncs() > 0 && shared >= 6, "%d callers: %.1f operations a sync; at least 6", CALLERS,
     shared);
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
  test_syncs_alone(&h);
  test_syncs_together(&h);
  close_store(&h);
  end();
  return done_testing();
}
