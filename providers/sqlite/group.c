/* SPDX-License-Identifier: Apache-2.0 */
/* A group of operations as one transaction, and what becomes of it if that fails.
 *
 * A member that is refused has written nothing, and the others go on.  If a statement fails, or the
 * commit does, all is rolled back, and each member runs again alone, so that one that cannot be
 * applied fails alone.  After a failed sync it is unknown whether the commit is on the disk: the
 * connection is made anew, the number of the last commit is looked up, and the log begins anew (see
 * settle).
 *
 * Invariants; the asserts name them by number:
 *
 *  1. All here runs in the writer thread, or before it began, under the lock file, and without the
 *     handle's mutex.
 *  2. An operation has a group exactly while it is applied, and it is applied in that group's
 *     transaction.
 *  3. The connection is in a transaction from begin to the commit or the rollback, and else in
 *     none; one that cannot be rolled back is closed.
 *  4. A member that is refused has written nothing, unless the whole group is rolled back for it.
 *  5. Nothing is committed but a commit of nothing while the log is in doubt.
 *  6. Each commit has the number after that of the last one.
 *  7. Of a group that was committed each member has a status; what was not committed has an error.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "providers/sqlite/handle.h"

enum outcome { COMMITTED, NOT_BEGUN, ROLLED_BACK, UNKNOWN };

/* ---- telling the host ------------------------------------------------------------------------ */

static dk_status
group_tell(struct operation *op, const struct dk_host *host, dk_status status, const char *why)
{
  char text[1400];
  int length = snprintf(text, sizeof text, "%s: %s", op->name, why);
  size_t size = length < 0 ? 0 : (size_t)length;

  if (size >= sizeof text)
    size = sizeof text - 1;
  return host->fail(op->call, status, (struct dk_bytes){text, size});
}

/* ACK-15: the item of the commit that is looked for. */
static void
name_duplicate(const struct operation *op, const struct dk_host *host)
{
  if (DK_HAS(dk_host, host, duplicate))
    host->duplicate(op->call, op->list, op->index);
}

dk_status
refuse(struct operation *op, dk_status status, const char *format, ...)
{
  char why[1024];
  va_list args;

  assert(op->group); /* 2 */
  va_start(args, format);
  vsnprintf(why, sizeof why, format, args);
  va_end(args);
  if (status == DK_DUPLICATE && op->list != 0)
    name_duplicate(op, op->group->h->host);
  return group_tell(op, op->group->h->host, status, why);
}

/* ABI-11. */
dk_status
refuse_unknown(struct operation *op, bool is_unknown, const char *what)
{
  return is_unknown ? refuse(op, DK_UNSUPPORTED, "%s is not known to this version", what) : DK_OK;
}

static void
group_fail(struct handle *h, struct operation *op, const struct why *why)
{
  assert(why->status != DK_OK); /* 7 */
  op->status = group_tell(op, h->host, why->status, why->text);
}

/* Forgets what the operation has handed up or reported so far. */
static void
group_forget(struct handle *h, struct operation *op)
{
  h->host->reset(op->call);
}

/* ---- the connection -------------------------------------------------------------------------- */

static int
note_wal(void *self, sqlite3 *db, const char *name, int pages)
{
  struct handle *h = self;

  (void)db;
  (void)name;
  if (pages < h->wal_pages)
    h->next_checkpoint = CHECKPOINT_PAGES; /* the log has begun anew */
  h->wal_pages = pages;
  return SQLITE_OK;
}

void
group_disconnect(struct handle *h)
{
  sql_done(&h->statements);
  connection_close(&h->writer);
}

/* Makes the connection, if there is none or `anew`; DK_REFUSED if its files are no longer the
 * store's. */
static dk_status
connect(struct handle *h, bool anew, struct why *why)
{
  if (anew)
    group_disconnect(h);
  h->statements.connection = &h->writer;
  if (!h->writer.db)
    TRY(store_files_connect(&h->files, CONNECTION_WRITER, &h->writer, &h->ids, why));
  h->writer.wake_fd = h->wake_fd;
  sqlite3_wal_hook(h->writer.db, note_wal, h);
  return store_files_check(&h->files, &h->ids, why);
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
    return why_set(&g->sql->why, DK_CORRUPT, "table meta has no row; the store is damaged: "
                                             "restore a backup");
  }
  g->counter = sqlite3_column_int64(row, 0);
  g->commits = sqlite3_column_int64(row, 1);
  g->last_now = sqlite3_column_int64(row, 2);
  g->store = sqlite3_column_int64(row, 3);
  sql_close(row);
  return DK_OK;
}

/* TIME-1: the clock is read after the last wait.  [TIME-8] */
static dk_status
group_begin(struct group *g)
{
  assert(sqlite3_get_autocommit(g->sql->connection->db)); /* 3 */
  TRY(sql_run(g->sql, SQL_BEGIN, ""));
  TRY(read_meta(g));
  TRY(sql_check_tables(g->sql));
  g->now = g->h->host->now(g->h->host);
  g->sql->has_written = false;
  if (g->now >= g->last_now)
    return DK_OK;
  TRY(sql_run(g->sql, SQL_FOLLOW_THE_CLOCK, "ii", g->now, g->last_now));
  if (sqlite3_changes(g->sql->connection->db) == 0)
    return DK_OK;
  g->has_written = true;
  g->rings = RING_TURNS;
  return DK_OK;
}

/* False: the whole group must be rolled back. */
static bool
apply(struct group *g, struct operation *op)
{
  assert(!op->group && op->state == OPERATION_BEGUN);      /* 2 */
  assert(!sqlite3_get_autocommit(g->sql->connection->db)); /* 3 */
  op->group = g;
  g->sql->has_written = false;
  op->status = op->apply(op);
  assert(op->group == g); /* 2 */
  op->group = NULL;
  if (op->status != DK_OK)
    sql_close_all(g->sql);
  if (g->sql->is_broken || (op->status != DK_OK && g->sql->has_written))
    return false;
  assert(op->status == DK_OK || !g->sql->has_written); /* 4 */
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

/* A connection that cannot even roll back would lock the database for good. */
static void
roll_back(struct group *g)
{
  sqlite3 *db = g->sql->connection->db;

  sql_close_all(g->sql);
  if (!sqlite3_get_autocommit(db))
    sql_run(g->sql, SQL_ROLLBACK, "");
  if (!sqlite3_get_autocommit(db))
    group_disconnect(g->h);
  assert(!g->h->writer.db || sqlite3_get_autocommit(g->h->writer.db)); /* 3 */
}

/* ---- a commit whose answer was lost ---------------------------------------------------------- */

/* A commit of nothing.  It overwrites what a failed commit may have left behind the end of the log:
 * a recovery after a crash might otherwise find that whole, and take it for committed. */
static dk_status
overwrite(struct group *g)
{
  assert(g->h->log_is_in_doubt); /* 5: else it would be a commit like any other */
  TRY(sql_run(g->sql, SQL_BEGIN, ""));
  TRY(read_meta(g));
  TRY(sql_run(g->sql, SQL_WRITE_META, "iii", g->counter, g->commits + 1, g->last_now));
  return sql_run(g->sql, SQL_COMMIT, "");
}

/* The data of a failed sync may never reach the disk, though it can be read, and no later sync
 * reports that.  A recovery after a power cut would end there, and lose what was committed behind
 * it.  So all is written to the database, which has a sync of its own, and the log begins anew.
 * Nothing is committed before that. */
static dk_status
renew_log(struct group *g, struct why *why)
{
  struct handle *h = g->h;
  int code = sqlite3_wal_checkpoint_v2(h->writer.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

  if (code != SQLITE_OK) {
    why_sqlite(why, h->writer.db, code, "writing back the log after a failed sync");
  } else if (overwrite(g) != DK_OK) {
    *why = g->sql->why;
  } else {
    h->log_is_in_doubt = false;
    return DK_OK;
  }
  group_disconnect(h);
  return why->status;
}

/* On a new connection the commit is there, or it is not.  If not, it is overwritten, as long as no
 * recovery has read the log since the sync failed; otherwise the log can no longer be trusted. */
static enum outcome
look_and_mend(struct group *g, int64_t expected, bool was_recovered)
{
  struct why why;

  if (connect(g->h, true, &why) != DK_OK)
    return UNKNOWN;
  g->sql->is_broken = false;
  if (read_meta(g) != DK_OK)
    return UNKNOWN;
  bool is_there = g->commits == expected;
  if (!is_there && !was_recovered && overwrite(g) == DK_OK)
    g->h->log_is_in_doubt = false;
  else if (renew_log(g, &why) != DK_OK)
    return UNKNOWN;
  return is_there ? COMMITTED : ROLLED_BACK;
}

/* Runs under the lock file, which no other handle had meanwhile.  The keeper holds the log's old
 * index, so that the new connection finds no reason to recover.  A recovery would take the data of
 * the failed sync for committed, though it may be in memory only.  If the disk fails even then, the
 * outcome is unknown. */
static enum outcome
settle(struct group *g)
{
  int64_t expected = g->commits;
  struct connection keeper;
  struct store_ids ids;
  struct why why;

  assert(g->has_written && g->h->files.lock.is_held); /* 1 */
  g->h->log_is_in_doubt = true;
  dk_status kept = store_files_connect(&g->h->files, CONNECTION_READER, &keeper, &ids, &why);
  enum outcome outcome = look_and_mend(g, expected, kept != DK_OK);
  if (kept == DK_OK)
    connection_close(&keeper);
  return outcome;
}

/* The last write makes the commit: if a write failed, or none was made, there is no commit.  Any
 * other failure may have come after the last write. */
static bool
may_be_committed(int code)
{
  int primary = code & 0xff;

  return code != SQLITE_IOERR_WRITE && primary != SQLITE_FULL && primary != SQLITE_BUSY;
}

static enum outcome
commit(struct group *g, struct why *why)
{
  assert(!g->h->log_is_in_doubt);                          /* 5 */
  assert(!sqlite3_get_autocommit(g->sql->connection->db)); /* 3 */
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
  if (status == DK_OK) {
    assert(sqlite3_get_autocommit(g->sql->connection->db)); /* 3 */
    return COMMITTED;
  }
  *why = g->sql->why;
  if (was_asked && may_be_committed(why->code))
    return settle(g);
  roll_back(g);
  if (why->poisons)
    group_disconnect(g->h);
  return ROLLED_BACK;
}

static enum outcome
group_attempt(struct group *g, struct operation *const *ops, size_t n, struct why *why)
{
  enum outcome outcome = NOT_BEGUN;

  assert(g->h->files.lock.is_held && !mutex_is_held(&g->h->mutex)); /* 1 */
  g->sql->is_broken = false;
  g->sql->why.status = DK_OK;
  if (connect(g->h, false, why) != DK_OK)
    return NOT_BEGUN;
  if (g->h->log_is_in_doubt && renew_log(g, why) != DK_OK)
    return NOT_BEGUN;
  if (group_begin(g) == DK_OK) {
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
  "the disk failed during the commit, and it is unknown whether this is stored: repeat it, marked "
  "DK_REPEATED, when the disk works again";

/* Runs it alone.  If it refused, its answer stays; otherwise the database's error is reported. */
static unsigned
run_alone(struct handle *h, struct operation *op)
{
  struct group g = {.h = h, .sql = &h->statements};
  struct why why = {.status = DK_OK};
  enum outcome outcome = group_attempt(&g, &op, 1, &why);

  if (outcome == ROLLED_BACK && why_may_be_the_disk(&why)) {
    group_forget(h, op);
    g = (struct group){.h = h, .sql = &h->statements};
    outcome = group_attempt(&g, &op, 1, &why);
  }
  if (outcome == COMMITTED)
    return g.rings;
  if (outcome == ROLLED_BACK && !g.sql->is_broken && why.status == DK_OK) {
    assert(op->status != DK_OK); /* 7 */
    return 0; /* it refused, after it had written */
  }
  group_forget(h, op);
  if (outcome == UNKNOWN)
    op->status = group_tell(op, h->host, DK_OUTCOME_UNKNOWN, unknown_outcome);
  else
    group_fail(h, op, &why);
  return outcome == UNKNOWN ? RING_ALL : 0;
}

unsigned
group_run(struct handle *h, struct operation *const *ops, size_t n)
{
  struct group g = {.h = h, .sql = &h->statements};
  struct why why = {.status = DK_OK};
  unsigned rings = 0;

  assert(n > 0);
  if (n == 1)
    return run_alone(h, ops[0]);
  enum outcome outcome = group_attempt(&g, ops, n, &why);
  if (outcome == COMMITTED)
    return g.rings;
  for (size_t i = 0; i < n; i++) {
    if (outcome != NOT_BEGUN)
      group_forget(h, ops[i]);
    if (outcome == UNKNOWN)
      ops[i]->status = group_tell(ops[i], h->host, DK_OUTCOME_UNKNOWN, unknown_outcome);
    else if (outcome == NOT_BEGUN)
      group_fail(h, ops[i], &why);
    else
      rings |= run_alone(h, ops[i]);
  }
  return outcome == UNKNOWN ? RING_ALL : rings;
}

/* ---- the log --------------------------------------------------------------------------------- */

static void
note_failed_checkpoint(struct handle *h)
{
  char line[300];
  int code = sqlite3_extended_errcode(h->writer.db);

  snprintf(line, sizeof line,
           "sqlite: %s: the log could not be written back to the database (this will be tried "
           "again): %s", h->files.settings.path, sqlite3_errmsg(h->writer.db));
  h->host->log(h->host, 2, (struct dk_bytes){line, strlen(line)});
  if (why_poisons(code))
    group_disconnect(h);
}

/* The log begins anew when all of it is written back and no reader uses it.  Readers that overlap
 * might never let that happen.  So most is written first; then the readers of this handle are held
 * back, and the writer waits for the others.  A reader that begins meanwhile reads in the database.
 * A reader that does not end costs a wait for each CHECKPOINT_PAGES. */
static int
restart_log(struct handle *h)
{
  int64_t busy_ms = h->writer.busy_ms;
  int64_t wait_ms = (int64_t)RESTART_MS * (h->wal_pages / RESTART_PAGES);
  int code = sqlite3_wal_checkpoint_v2(h->writer.db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

  assert(sqlite3_get_autocommit(h->writer.db)); /* 3 */
  if (code != SQLITE_OK && code != SQLITE_BUSY)
    return code;
  wait_ms = wait_ms < LONGEST_RESTART_MS ? wait_ms : LONGEST_RESTART_MS;
  h->writer.busy_ms = wait_ms < busy_ms ? wait_ms : busy_ms;
  readers_hold(h);
  code = sqlite3_wal_checkpoint_v2(h->writer.db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
  readers_let_go(h);
  h->writer.busy_ms = busy_ms;
  return code;
}

/* SQ3: by the writer only, and under the lock file. */
void
group_checkpoint(struct handle *h, bool is_last)
{
  int mode = is_last ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;

  assert(h->files.lock.is_held); /* 1 */
  if (!h->writer.db || (is_last ? h->wal_pages == 0 : h->wal_pages < h->next_checkpoint))
    return;
  if (is_last)
    sqlite3_busy_handler(h->writer.db, NULL, NULL); /* a present reader will cut it */
  int code = !is_last && h->wal_pages >= RESTART_PAGES
               ? restart_log(h)
               : sqlite3_wal_checkpoint_v2(h->writer.db, NULL, mode, NULL, NULL);
  h->next_checkpoint = h->wal_pages + CHECKPOINT_PAGES;
  if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY)
    note_failed_checkpoint(h);
}

/* The next holder of the store must not build on a log with a gap; the disk may work again. */
void
group_leave(struct handle *h)
{
  struct group g = {.h = h, .sql = &h->statements};
  struct why why;

  assert(h->files.lock.is_held); /* 1 */
  g.sql->is_broken = false;
  if (!h->log_is_in_doubt)
    group_checkpoint(h, true);
  else if (connect(h, false, &why) != DK_OK || renew_log(&g, &why) != DK_OK)
    h->host->log(h->host, 2, (struct dk_bytes){why.text, strlen(why.text)});
}
