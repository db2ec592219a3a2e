/* SPDX-License-Identifier: Apache-2.0 */
/* A group of operations as one transaction, and what becomes of it if that fails.
 *
 * A member that is refused has written nothing, and the others go on.  If a statement fails, or the
 * commit does, all is rolled back, and each member runs again alone, so that one that cannot be
 * applied fails alone.  A sync that failed leaves open whether the commit is on the disk: the
 * connection is made anew and the number of the last commit looked up (see settle).
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "providers/sqlite/handle.h"

enum outcome { COMMITTED, NOT_BEGUN, ROLLED_BACK, UNKNOWN };

/* ---- telling the host ------------------------------------------------------------------------ */

static dk_status
tell(struct operation *op, const struct dk_host *host, dk_status status, const char *why)
{
  char text[1400];
  int length = snprintf(text, sizeof text, "%s: %s", op->name, why);
  size_t size = length < 0 ? 0 : (size_t)length;

  if (size >= sizeof text)
    size = sizeof text - 1;
  op->is_told = true;
  return host->fail(op->call, status, (struct dk_bytes){text, size});
}

dk_status
refuse(struct operation *op, dk_status status, const char *format, ...)
{
  char why[1024];
  va_list args;

  va_start(args, format);
  vsnprintf(why, sizeof why, format, args);
  va_end(args);
  return tell(op, op->group->h->host, status, why);
}

/* ABI-11. */
dk_status
refuse_unknown(struct operation *op, bool is_unknown, const char *what)
{
  return is_unknown ? refuse(op, DK_UNSUPPORTED, "%s is not known to this version", what) : DK_OK;
}

static void
fail(struct handle *h, struct operation *op, const struct why *why)
{
  op->status = tell(op, h->host, why->status, why->text);
}

/* What it has handed up or said so far is forgotten. */
static void
forget(struct handle *h, struct operation *op)
{
  h->host->reset(op->call);
  op->is_told = false;
}

/* ---- the connection -------------------------------------------------------------------------- */

static int
note_wal(void *self, sqlite3 *db, const char *name, int pages)
{
  struct handle *h = self;

  (void)db;
  (void)name;
  h->wal_pages = pages;
  return SQLITE_OK;
}

void
group_disconnect(struct handle *h)
{
  sql_done(&h->statements);
  connection_close(&h->writer);
}

/* Makes the connection, if there is none or `anew`. */
static dk_status
connect(struct handle *h, bool anew, struct why *why)
{
  if (anew)
    group_disconnect(h);
  h->statements.connection = &h->writer;
  if (!h->writer.db)
    TRY(store_files_connect(&h->files, CONNECTION_WRITER, &h->writer, why));
  h->writer.wake_fd = h->wake_fd;
  sqlite3_wal_hook(h->writer.db, note_wal, h);
  return DK_OK;
}

/* ---- one transaction ------------------------------------------------------------------------- */

static dk_status
read_meta(struct group *g)
{
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(g->sql, SQL_READ_META, &row, ""));
  TRY(sql_next(g->sql, row, &is_there));
  if (!is_there) {
    sql_close(row);
    g->sql->is_broken = true;
    return why_set(&g->sql->why, DK_CORRUPT, "the row of table meta is gone; the store is damaged: "
                                             "restore it from a backup");
  }
  g->counter = sqlite3_column_int64(row, 0);
  g->commits = sqlite3_column_int64(row, 1);
  g->last_now = sqlite3_column_int64(row, 2);
  sql_close(row);
  return DK_OK;
}

/* TIME-1: the clock is read when nothing is waited for any more.  [TIME-8] */
static dk_status
begin(struct group *g)
{
  TRY(sql_run(g->sql, SQL_BEGIN, ""));
  TRY(read_meta(g));
  g->now = g->h->host->now(g->h->host);
  g->sql->has_written = false;
  if (g->now >= g->last_now)
    return DK_OK;
  TRY(sql_run(g->sql, SQL_FOLLOW_THE_CLOCK, "i", g->now));
  g->has_written = true;
  g->rings = true;
  return DK_OK;
}

/* False: the whole group must be rolled back. */
static bool
apply(struct group *g, struct operation *op)
{
  op->group = g;
  op->is_told = false;
  g->sql->has_written = false;
  op->status = op->apply(op);
  op->group = NULL;
  if (op->status != DK_OK)
    sql_close_all(g->sql);
  if (g->sql->is_broken || (op->status != DK_OK && g->sql->has_written))
    return false;
  g->has_written |= g->sql->has_written;
  return true;
}

static bool
apply_all(struct group *g, struct operation *const *ops, size_t n)
{
  for (int turn = 0; turn < TURNS_OF_GROUP; turn++)
    for (size_t i = 0; i < n; i++)
      if ((int)ops[i]->turn == turn && !apply(g, ops[i]))
        return false;
  return true;
}

static void
roll_back(struct group *g)
{
  sql_close_all(g->sql);
  if (!sqlite3_get_autocommit(g->sql->connection->db))
    sql_run(g->sql, SQL_ROLLBACK, ""); /* if it fails, the connection is poisoned, or will say so */
}

/* ---- a commit whose answer was lost ---------------------------------------------------------- */

/* Overwrites what a failed commit has left behind the end of the log: a recovery after a crash
 * might else find it whole, and take it for committed. */
static dk_status
overwrite(struct group *g)
{
  TRY(sql_run(g->sql, SQL_BEGIN, ""));
  TRY(read_meta(g));
  TRY(sql_run(g->sql, SQL_WRITE_META, "iii", g->counter, g->commits + 1, g->last_now));
  return sql_run(g->sql, SQL_COMMIT, "");
}

/* Under the lock file, which nobody had meanwhile.  On a new connection the commit is there, and is
 * then written back to the database, with its own sync; or it is not, and is overwritten.  If that
 * fails too, nobody can know. */
static enum outcome
settle(struct group *g)
{
  struct handle *h = g->h;
  int64_t expected = g->commits;
  struct why why;

  if (connect(h, true, &why) != DK_OK)
    return UNKNOWN;
  g->sql->is_broken = false;
  if (read_meta(g) != DK_OK)
    return UNKNOWN;
  if (g->commits != expected)
    return overwrite(g) == DK_OK ? ROLLED_BACK : UNKNOWN;
  int code = sqlite3_wal_checkpoint_v2(h->writer.db, NULL, SQLITE_CHECKPOINT_FULL, NULL, NULL);
  return code == SQLITE_OK ? COMMITTED : UNKNOWN;
}

static enum outcome
commit(struct group *g, struct why *why)
{
  g->sql->is_broken = false;
  if (!g->has_written) {
    roll_back(g); /* nothing to sync */
    return COMMITTED;
  }
  g->commits++;
  dk_status status =
    sql_run(g->sql, SQL_WRITE_META, "iii", g->counter, g->commits, g->now);
  bool was_asked = status == DK_OK;
  if (was_asked)
    status = sql_run(g->sql, SQL_COMMIT, "");
  if (status == DK_OK)
    return COMMITTED;
  *why = g->sql->why;
  if (was_asked && why->poisons)
    return settle(g);
  roll_back(g);
  return ROLLED_BACK;
}

static enum outcome
attempt(struct group *g, struct operation *const *ops, size_t n, struct why *why)
{
  enum outcome outcome = NOT_BEGUN;

  g->sql->is_broken = false;
  g->sql->why.status = DK_OK;
  if (connect(g->h, false, why) != DK_OK)
    return NOT_BEGUN;
  if (begin(g) == DK_OK) {
    outcome = ROLLED_BACK;
    if (apply_all(g, ops, n))
      return commit(g, why);
  }
  *why = g->sql->why;
  bool is_broken = g->sql->is_broken;
  roll_back(g);
  if (is_broken && why->poisons)
    group_disconnect(g->h);
  g->sql->is_broken = is_broken;
  return outcome;
}

/* ---- a group --------------------------------------------------------------------------------- */

static const char *const unknown_outcome =
  "the disk failed while this was committed, and it cannot be told whether it is stored: repeat "
  "it, marked DK_REPEATED, when the disk works again";

/* Alone: what it answered stands if it refused; else it is told what the database said. */
static bool
run_alone(struct handle *h, struct operation *op)
{
  struct group g = {.h = h, .sql = &h->statements};
  struct why why = {.status = DK_OK};
  enum outcome outcome = attempt(&g, &op, 1, &why);

  if (outcome == COMMITTED)
    return g.rings;
  if (outcome == ROLLED_BACK && !g.sql->is_broken && why.status == DK_OK)
    return false; /* it refused, after it had written */
  forget(h, op);
  if (outcome == UNKNOWN)
    op->status = tell(op, h->host, DK_OUTCOME_UNKNOWN, unknown_outcome);
  else
    fail(h, op, &why);
  return outcome == UNKNOWN;
}

bool
group_run(struct handle *h, struct operation *const *ops, size_t n)
{
  struct group g = {.h = h, .sql = &h->statements};
  struct why why = {.status = DK_OK};
  bool rings = false;

  if (n == 1)
    return run_alone(h, ops[0]);
  enum outcome outcome = attempt(&g, ops, n, &why);
  if (outcome == COMMITTED)
    return g.rings;
  for (size_t i = 0; i < n; i++) {
    if (outcome != NOT_BEGUN)
      forget(h, ops[i]);
    if (outcome == UNKNOWN)
      ops[i]->status = tell(ops[i], h->host, DK_OUTCOME_UNKNOWN, unknown_outcome);
    else if (outcome == NOT_BEGUN)
      fail(h, ops[i], &why);
    else
      rings |= run_alone(h, ops[i]);
  }
  return rings || outcome == UNKNOWN;
}

/* ---- the log --------------------------------------------------------------------------------- */

static void
note_failed_checkpoint(struct handle *h)
{
  char line[300];
  int code = sqlite3_extended_errcode(h->writer.db);

  snprintf(line, sizeof line,
           "sqlite: %s: the log could not be written back to the database, which will be tried "
           "again: %s", h->files.settings.path, sqlite3_errmsg(h->writer.db));
  h->host->log(h->host, 2, (struct dk_bytes){line, strlen(line)});
  if (why_poisons(code))
    group_disconnect(h);
}

/* SQ3: by the writer only, and under the lock file. */
void
group_checkpoint(struct handle *h, bool is_last)
{
  int mode = is_last ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
  int pages = 0, done = 0;

  if (!h->writer.db || (is_last ? h->wal_pages == 0 : h->wal_pages < h->next_checkpoint))
    return;
  if (is_last)
    sqlite3_busy_handler(h->writer.db, NULL, NULL); /* who reads now will cut it */
  int code = sqlite3_wal_checkpoint_v2(h->writer.db, NULL, mode, &pages, &done);
  h->next_checkpoint = (done == pages ? 0 : h->wal_pages) + CHECKPOINT_PAGES;
  if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY)
    note_failed_checkpoint(h);
}
