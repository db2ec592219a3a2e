/* SPDX-License-Identifier: Apache-2.0 */
/* From version 1: row by row, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/sqlite/test-files.h"

/* ---- row by row ------------------------------------------------------------------------------ */

/* Two questions to "old" (version 1) and to the migrated store, whose rows must be the same. */
static const struct {
  const char *name, *old, *new;
} same[] = {
  {"instances",
   "SELECT instance_id, orchestration_name, orchestration_version, current_execution_id,"
   " parent_instance_id, created_at FROM old.instances",
   "SELECT instance, name, version, execution, parent, created_at FROM main.instance"
   " WHERE known = 1"},
  {"executions",
   "SELECT instance_id, execution_id, started_at, coalesce(completed_at, 0), CAST(output AS BLOB)"
   " FROM old.executions",
   "SELECT instance, e.execution, started_at, completed_at, coalesce(output, l.payload)"
   " FROM main.execution e JOIN main.instance USING(iid) LEFT JOIN main.large l ON l.id = large"},
  {"pins of the current executions",
   "SELECT instance_id, pinned_major, pinned_minor, pinned_patch FROM old.executions"
   " JOIN old.instances USING(instance_id) WHERE execution_id = current_execution_id",
   "SELECT instance, pinned_major, pinned_minor, pinned_patch FROM main.instance WHERE known = 1"},
  {"events",
   "SELECT instance_id, execution_id, event_id, CAST(event_data AS BLOB) FROM old.history",
   "SELECT instance, h.execution, event, coalesce(h.payload, l.payload) FROM main.history h"
   " JOIN main.instance USING(iid) LEFT JOIN main.large l ON l.id = h.large"},
  {"messages, by arrival",
   "SELECT row_number() OVER (ORDER BY id), instance_id, visible_at, attempt_count, created_at,"
   " CAST(work_item AS BLOB) FROM old.orchestrator_queue",
   "SELECT row_number() OVER (ORDER BY seq), instance, visible_at, attempt, enqueued_at,"
   " coalesce(m.payload, l.payload) FROM main.message m JOIN main.instance USING(iid)"
   " LEFT JOIN main.large l ON l.id = m.large"},
  {"work items, by arrival",
   "SELECT row_number() OVER (ORDER BY id), visible_at, attempt_count, CAST(work_item AS BLOB)"
   " FROM old.worker_queue",
   "SELECT row_number() OVER (ORDER BY seq), visible_at, attempt, coalesce(w.payload, l.payload)"
   " FROM main.work w LEFT JOIN main.large l ON l.id = w.large"},
  {"the identities of activities",
   "SELECT 'order-1', 2, 4, '', NULL UNION ALL SELECT 'order-1', 2, 5, 'gpu', 's-1'"
   " UNION ALL SELECT 'order-2', 1, 2, '', NULL UNION ALL SELECT 'order-1', 2, 6, '', NULL",
   "SELECT instance, w.execution, activity, tag, session FROM main.work w"
   " JOIN main.instance USING(iid)"},
  {"status and last event",
   "SELECT 'order-1', 1, 6 UNION ALL SELECT 'order-2', 2, 2 UNION ALL SELECT 'order-3', 3, 2"
   " UNION ALL SELECT 'order ''ü'' 4', 0, 0",
   "SELECT instance, status, last_event FROM main.instance"},
  {"the statuses of executions",
   "SELECT 'order-1', 1, 4 UNION ALL SELECT 'order-1', 2, 1 UNION ALL SELECT 'order-2', 1, 2"
   " UNION ALL SELECT 'order-3', 1, 3",
   "SELECT instance, e.execution, e.status FROM main.execution e JOIN main.instance USING(iid)"},
  {"when an instance is ready",
   "SELECT 'order-1', 1700000008000 UNION ALL SELECT 'order ''ü'' 4', 1700000009000",
   "SELECT instance, ready_at FROM main.instance WHERE ready_at IS NOT NULL"},
  {"leases: there are none",
   "SELECT 1 WHERE 0",
   "SELECT 1 FROM main.instance WHERE locked_until <> 0 OR epoch <> 0 UNION ALL"
   " SELECT 1 FROM main.work WHERE epoch <> 0 OR ready_at <> visible_at OR owner IS NOT NULL"},
  {"numbers that were given: none is above the counter",
   "SELECT max(n) FROM (SELECT max(iid) AS n FROM main.instance UNION SELECT max(seq)"
   " FROM main.message UNION SELECT max(seq) FROM main.work UNION SELECT max(id)"
   " FROM main.large)",
   "SELECT counter FROM main.meta"},
  {"it has a number of its own", "SELECT 1", "SELECT store <> 0 FROM main.meta"},
  {"large payloads: each belongs to one row",
   "SELECT id FROM main.large",
   "SELECT large FROM main.message WHERE large > 0 UNION ALL SELECT large FROM main.work"
   " WHERE large > 0 UNION ALL SELECT large FROM main.history WHERE large > 0"},
};

static void
test_row_by_row(void)
{
  const char *old = place("old"), *new = place("new");
  char *sql;

  make_version_1(old);
  copy_file(old, new);
  if (!ok(try_open(new, 0) == DK_OK, "a store of version 1 is opened"))
    diag("%s", why.text);
  cmp_ok(number_at(new, "PRAGMA user_version"), "==", 2, "it has version 2 now");
  for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
    if (asprintf(&sql,
                 "ATTACH '%s' AS old; CREATE TEMP TABLE a AS %s; CREATE TEMP TABLE b AS %s;"
                 "CREATE TEMP VIEW odd AS SELECT * FROM (SELECT * FROM a EXCEPT SELECT * FROM b)"
                 " UNION ALL SELECT * FROM (SELECT * FROM b EXCEPT SELECT * FROM a)",
                 old, same[i].old, same[i].new) < 0)
      BAIL_OUT("no memory");
    sqlite3 *db = somebody(new);
    sqlite3_stmt *answer;
    run_sql(db, sql);
    free(sql);
    if (sqlite3_prepare_v2(db,
                           "SELECT (SELECT count(*) FROM odd)"
                           " + abs((SELECT count(*) FROM a) - (SELECT count(*) FROM b))",
                           -1, &answer, NULL) != SQLITE_OK ||
        sqlite3_step(answer) != SQLITE_ROW)
      BAIL_OUT("%s", sqlite3_errmsg(db));
    cmp_ok(sqlite3_column_int(answer, 0), "==", 0, "%s", same[i].name);
    sqlite3_finalize(answer);
    sqlite3_close(db);
  }
  cmp_ok(number_at(new, "SELECT count(*) FROM sqlite_schema WHERE name IN ('instances',"
                        " 'old_history', 'executions', 'worker_queue', 'orchestrator_queue',"
                        " 'instance_locks') OR name LIKE 'idx%'"),
         "==", 0, "nothing of version 1 is left");
  cmp_ok(number_at(new, "SELECT count(*) FROM pragma_integrity_check"
                        " WHERE integrity_check <> 'ok'"),
         "==", 0, "the database is whole");
  /* What is made anew and what is migrated have the same tables. */
  try_open(place("fresh"), DK_OPEN_CREATE);
  if (asprintf(&sql, "ATTACH '%s' AS fresh; CREATE TEMP TABLE odd AS SELECT name, sql"
                     " FROM main.sqlite_schema EXCEPT SELECT name, sql FROM fresh.sqlite_schema",
               place("fresh")) < 0)
    BAIL_OUT("no memory");
  sqlite3 *db = somebody(new);
  run_sql(db, sql);
  free(sql);
  int n = 0;
  sqlite3_stmt *answer;
  sqlite3_prepare_v2(db, "SELECT count(*) FROM odd", -1, &answer, NULL);
  n = sqlite3_step(answer) == SQLITE_ROW ? sqlite3_column_int(answer, 0) : -1;
  cmp_ok(n, "==", 0, "its tables are those of a store that was made by this version");
  sqlite3_finalize(answer);
  sqlite3_close(db);
}

/* ---- rows that cannot be understood ---------------------------------------------------------- */

static const struct {
  const char *spoil, *part, *other_part, *name;
} refusals[] = {
  {"UPDATE worker_queue SET work_item = 'no JSON' WHERE id = 12", "worker_queue, row 12",
   "cannot be read", "a work item that is not JSON"},
  {"UPDATE worker_queue SET work_item = '{\"ActivityExecute\":{\"instance\":\"a\",\"id\":1}}'"
   " WHERE id = 13",
   "worker_queue, row 13", "execution_id", "a work item without its execution"},
  {"UPDATE worker_queue SET work_item = json_set(work_item, '$.ActivityExecute.id', 'four')",
   "worker_queue, row 11", "rowid = 11", "an id that is no number; the first row is named"},
  {"UPDATE worker_queue SET work_item = json_set(work_item, '$.ActivityExecute.instance', '')"
   " WHERE id = 14",
   "worker_queue, row 14", "nothing was changed", "an instance without a name"},
  {"UPDATE worker_queue SET work_item = json_set(work_item, '$.ActivityExecute.tag', json('[1]'))"
   " WHERE id = 14; UPDATE worker_queue SET attempt_count = -1 WHERE id = 12",
   "worker_queue, row 12", "attempt_count", "a count below 0"},
  {"INSERT INTO worker_queue SELECT 20, work_item, 0, NULL, NULL, 0, 0 FROM worker_queue"
   " WHERE id = 12",
   "worker_queue, row 20", "another row has the same", "one activity twice"},
  {"UPDATE orchestrator_queue SET instance_id = replace(hex(zeroblob(600)), '0', 'x')"
   " WHERE id = 8",
   "orchestrator_queue, row 8", "1 to 1024 bytes", "a target that is too long"},
  {"UPDATE executions SET status = 'Sleeping' WHERE instance_id = 'order-3'", "executions, row 4",
   "Running, Completed", "an unknown status"},
  {"DELETE FROM executions WHERE instance_id = 'order-1' AND execution_id = 2", "instances, row 1",
   "no row in executions", "an instance without its execution"},
  {"UPDATE history SET event_id = 'x' WHERE rowid = 3", "history, row 3", "event_id",
   "an event without a number"},
  {"UPDATE instances SET created_at = 'today' WHERE instance_id = 'order-2'", "instances, row 2",
   "created_at", "an instance that was created at no time"},
  {"DROP TABLE worker_queue", "it has 5 of the six tables of version 1", "", "a table is missing"},
};

static void
test_refusals(void)
{
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    char name[32];
    snprintf(name, sizeof name, "refused-%zu", i);
    const char *path = place(name);
    make_version_1(path);
    sql_at(path, refusals[i].spoil);
    char *before = dump_of(path);
    dk_status expected = strstr(refusals[i].spoil, "DROP") ? DK_CORRUPT : DK_REFUSED;
    expect_refused(try_open(path, 0), expected, refusals[i].part, refusals[i].other_part,
                   refusals[i].name);
    expect_refused(try_open(path, 0), expected, refusals[i].part, refusals[i].other_part,
                   "and so again");
    cmp_ok(number_at(path, "PRAGMA user_version"), "==", 1, "it has version 1 still");
    char *after = dump_of(path);
    is(after, before, "nothing has changed");
    free(before);
    free(after);
  }
  sql_at(place("refused-0"), "DELETE FROM worker_queue WHERE id = 12");
  cmp_ok(try_open(place("refused-0"), 0), "==", DK_OK, "the repair that the text names works");
  make_version_1(place("reader"));
  expect_refused(try_open(place("reader"), DK_OPEN_READ_ONLY), DK_REFUSED, "version 1",
                 "open it once for writing", "a reader migrates nothing");
}

/* ---- what cannot be changed ------------------------------------------------------------------ */

static void
test_form(const char *name, const char *sql, const char *part, const char *other_part)
{
  const char *path = place(name);
  size_t before_size, after_size;

  sql_at(path, sql);
  make_version_1(path);
  char *before = bytes_of(path, &before_size);
  expect_refused(try_open(path, 0), DK_REFUSED, part, other_part, name);
  char *after = bytes_of(path, &after_size);
  ok(before_size == after_size && memcmp(before, after, before_size) == 0, "no byte has changed");
  free(before);
  free(after);
}

/* ---- at once --------------------------------------------------------------------------------- */

enum { OPENERS = 10 };

/* Each in a process of its own. */
static void
open_at_once(void *context)
{
  const int *begins = context;
  struct store_files files;
  struct connection c;
  char go;

  if (read(begins[0], &go, 1) < 0)
    _exit(1);
  if (open_files_within(place("crowd"), 0, "10m", &files, &c) != DK_OK)
    _exit(2);
  _exit(0);
}

static void
test_ten_at_once(void)
{
  int ends[2], status, failed = 0;

  make_version_1(place("crowd"));
  if (pipe(ends) < 0)
    BAIL_OUT("no pipe");
  fflush(NULL);
  for (int i = 0; i < OPENERS; i++)
    if (fork() == 0) {
      close(ends[1]);
      open_at_once(ends);
    }
  close(ends[1]); /* all of them begin */
  for (int i = 0; i < OPENERS; i++)
    failed += wait(&status) < 0 || status != 0;
  close(ends[0]);
  cmp_ok(failed, "==", 0, "%d processes open one store of version 1 at once", OPENERS);
  cmp_ok(number_at(place("crowd"), "SELECT count(*) FROM instance WHERE known"), "==", 3,
         "it is migrated once");
}

int
main(void)
{
  plan(NO_PLAN);
  begin();
  test_row_by_row();
  test_refusals();
  test_form("pages of 1 KiB", "PRAGMA page_size = 1024; VACUUM", "page_size", "found 1024");
  test_form("UTF-16", "PRAGMA encoding = 'UTF-16le'; CREATE TABLE x(a);"
            " DROP TABLE x", "encoding", "found UTF-16le");
  test_ten_at_once();
  return end();
}
