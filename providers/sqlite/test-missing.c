/* SPDX-License-Identifier: Apache-2.0 */
/* A dropped table, column or index is damage, and is reported as such: by open, to write or to
 * read, and by the operations of an open handle.  When it is back, they work. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "providers/sqlite/test-deeds.h"

#ifdef HAVE_VALGRIND
#include <valgrind/valgrind.h>
#endif

static const char *template, *path;

enum { MOST_PARTS = 200 };

/* Every part of a store, and SQL that takes it away and brings it back. */
static struct part {
  const char *kind, *name, *column, *sql;
} parts[MOST_PARTS];
static int n_parts;

static char *
column_of(sqlite3_stmt *row, int column)
{
  const char *text = (const char *)sqlite3_column_text(row, column);

  return text ? strdup(text) : NULL;
}

static void
find_parts(void)
{
  sqlite3 *db = somebody(template);
  sqlite3_stmt *row;

  if (sqlite3_prepare_v2(db,
                         "SELECT type, name, NULL, sql FROM sqlite_schema WHERE sql NOTNULL"
                         " UNION ALL SELECT 'column', m.name, c.name, NULL FROM sqlite_schema m,"
                         " pragma_table_info(m.name) c WHERE m.type='table'",
                         -1, &row, NULL) != SQLITE_OK)
    BAIL_OUT("%s", sqlite3_errmsg(db));
  while (n_parts < MOST_PARTS && sqlite3_step(row) == SQLITE_ROW)
    parts[n_parts++] = (struct part){column_of(row, 0), column_of(row, 1), column_of(row, 2),
                                     column_of(row, 3)};
  sqlite3_finalize(row);
  sqlite3_close(db);
}

static void
run_printed(const char *format, const char *a, const char *b, const char *c)
{
  char sql[600];

  snprintf(sql, sizeof sql, format, a, b, c);
  sqlite3 *db = somebody(path);
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
  run_sql(db, "PRAGMA legacy_alter_table=ON");
  run_sql(db, sql);
  sqlite3_close(db);
}

/* Some columns cannot be dropped, but all can get another name; a table's rows are to come back. */
static void
take_away(const struct part *p)
{
  if (p->column)
    run_printed("ALTER TABLE %s RENAME COLUMN %s TO %s_gone", p->name, p->column, p->column);
  else if (strcmp(p->kind, "table") == 0)
    run_printed("ALTER TABLE %s RENAME TO %s_gone", p->name, p->name, "");
  else
    run_printed("DROP INDEX %s", p->name, "", "");
}

static void
bring_back(const struct part *p)
{
  if (p->column)
    run_printed("ALTER TABLE %s RENAME COLUMN %s_gone TO %s", p->name, p->column, p->column);
  else if (strcmp(p->kind, "table") == 0)
    run_printed("ALTER TABLE %s_gone RENAME TO %s", p->name, p->name, "");
  else
    run_printed("%s", p->sql, "", "");
}

static void
begin_store(void)
{
  static const char *const endings[] = {"-wal", "-shm", "-lock"};
  char name[300];

  for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
    snprintf(name, sizeof name, "%s%s", path, endings[i]);
    unlink(name);
  }
  copy_file(template, path);
}

static bool
is_told(dk_status status, const struct doer *doer, const struct part *p, const char *what)
{
  const char *text = failure_of(doer);

  if (status == DK_CORRUPT && strstr(text, "damaged") && strstr(text, p->name) &&
      (!p->column || strstr(text, p->column)))
    return true;
  diag("%s without %s %s%s%s: status %d: %s", what, p->kind, p->name, p->column ? "." : "",
       p->column ? p->column : "", (int)status, text);
  return false;
}

static bool
open_tells(const struct part *p, uint32_t flags)
{
  struct doer doer;

  begin_store();
  take_away(p);
  dk_status status = doer_open(&doer, path, flags);
  bool is_right = is_told(status, &doer, p, "open");
  doer_close(&doer);
  return is_right;
}

static bool
operations_tell(const struct part *p)
{
  struct doer doer;
  bool is_right = true;

  begin_store();
  if (doer_open(&doer, path, 0) != DK_OK || deed_do(READING, &doer, false) != DK_OK ||
      enqueue_bytes(&doer, "earlier", 10) != DK_OK)
    BAIL_OUT("%s", failure_of(&doer));
  take_away(p);
  for (int i = 0; i < 2; i++) {
    is_right &= is_told(deed_do(READING, &doer, false), &doer, p, "reading");
    is_right &= is_told(enqueue_bytes(&doer, "lost", 10), &doer, p, "writing");
  }
  bring_back(p);
  bool works = enqueue_bytes(&doer, "later", 10) == DK_OK &&
               deed_do(READING, &doer, false) == DK_OK;
  if (!works)
    diag("%s %s is back: %s", p->kind, p->name, failure_of(&doer));
  doer_close(&doer);
  return is_right && works;
}

/* ---- version 1 ------------------------------------------------------------------------------- */

static void
test_version_1(void)
{
  static const struct part of_version_1[] = {
    {"column", "instances", "parent_instance_id", NULL},
    {"column", "executions", "pinned_minor", NULL},
    {"column", "history", "event_data", NULL},
    {"column", "worker_queue", "attempt_count", NULL},
    {"column", "orchestrator_queue", "visible_at", NULL},
  };

  for (size_t i = 0; i < sizeof of_version_1 / sizeof of_version_1[0]; i++) {
    struct doer doer;
    begin_store();
    unlink(path);
    make_version_1(path);
    take_away(&of_version_1[i]);
    dk_status status = doer_open(&doer, path, 0);
    const char *column = strrchr(of_version_1[i].column, '_'); /* SQLite names one of them */
    ok(status == DK_CORRUPT && strstr(failure_of(&doer), column), "version 1 without %s.%s",
       of_version_1[i].name, of_version_1[i].column);
    if (status != DK_CORRUPT)
      diag("status %d: %s", (int)status, failure_of(&doer));
    doer_close(&doer);
  }
}

/* Under Valgrind, which is slow, every so many parts. */
static int
step(void)
{
#ifdef HAVE_VALGRIND
  if (RUNNING_ON_VALGRIND)
    return 12;
#endif
  return 1;
}

int
main(void)
{
  int tried = 0, in_open = 0, in_reading = 0, in_operations = 0;

  plan(NO_PLAN);
  begin();
  deeds_begin();
  template = strdup(place("template.db"));
  path = strdup(place("tried.db"));
  deeds_prepare(template);
  find_parts();
  cmp_ok(n_parts, ">", 60, "a store has %d tables, columns and indexes", n_parts);
  for (int i = 0; i < n_parts; i += step()) {
    tried++;
    in_open += open_tells(&parts[i], 0);
    in_reading += open_tells(&parts[i], DK_OPEN_READ_ONLY);
    in_operations += operations_tell(&parts[i]);
  }
  cmp_ok(in_open, "==", tried, "open reports what is missing");
  cmp_ok(in_reading, "==", tried, "and so it does to read");
  cmp_ok(in_operations, "==", tried, "so do operations, which work when it is back");
  test_version_1();
  for (int i = 0; i < n_parts; i++) {
    free((char *)parts[i].kind);
    free((char *)parts[i].name);
    free((char *)parts[i].column);
    free((char *)parts[i].sql);
  }
  free((char *)template);
  free((char *)path);
  deeds_end();
  return end();
}
