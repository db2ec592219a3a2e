/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to the store: see connection.h.  No lock: a connection belongs to one thread at a
 * time (SQLITE_OPEN_NOMUTEX). */
#include "providers/sqlite/connection.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/sqlite/rights.h"

/* ---- waiting for programs that do not know our lock file ------------------------------------- */

/* SQLite asks whether to try again.  Its own handler cannot be ended by a close or a cancel. */
static int
wait_a_step(void *context, int count)
{
  struct connection *c = context;
  struct pollfd wake = {.fd = c->wake_fd, .events = POLLIN};

  if (count == 0)
    c->busy_since = real_ms();
  int64_t left = c->busy_ms - (real_ms() - c->busy_since);
  int step = count < 4 ? 1 << count : 10;
  if (left <= 0)
    return 0;
  return poll(&wake, 1, left < step ? (int)left : step) <= 0;
}

bool
connection_was_woken(const struct connection *c)
{
  struct pollfd wake = {.fd = c->wake_fd, .events = POLLIN};

  return poll(&wake, 1, 0) > 0;
}

/* ---- open and close -------------------------------------------------------------------------- */

/* If the process has the right, the cause was something else: no descriptor was left, for example.
 */
static void
cannot_be_written(const char *path, struct why *why)
{
  if (!rights_are_lacking(path, true, why))
    why_set(why, DK_UNAVAILABLE,
            "%s: the file could not be opened for writing, although the process has the right; "
            "try again, and check the number of descriptors (ulimit -n) and the system's log",
            path);
}

dk_status
connection_attach(struct connection *c, const struct settings *settings,
                  enum connection_kind kind, bool read_only, struct why *why)
{
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW |
                    SQLITE_OPEN_EXRESCODE |
                    (read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);

  *c = (struct connection){.kind = kind, .busy_ms = settings->busy_ms, .wake_fd = -1};
  if (!sqlite3_threadsafe())
    return why_set(why, DK_UNSUPPORTED,
                   "SQLite %s was compiled without threads; expected SQLITE_THREADSAFE 1 or 2",
                   sqlite3_libversion());
  int code = sqlite3_open_v2(settings->path, &c->db, flags, NULL);
  if (code == SQLITE_OK)
    code = sqlite3_db_config(c->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
  if (code == SQLITE_OK)
    code = sqlite3_busy_handler(c->db, wait_a_step, c);
  if (code == SQLITE_OK)
    code = shm_watch(c->db, &c->shm, settings->path);
  /* SQLite falls back to reading, and reports it only at the first write. */
  if (code == SQLITE_OK && !read_only && sqlite3_db_readonly(c->db, "main") == 1)
    cannot_be_written(settings->path, why);
  else if (code == SQLITE_OK)
    return DK_OK;
  else
    why_sqlite(why, c->db, code, settings->path);
  connection_close(c);
  return why->status;
}

/* As a URI, in which these bytes mean something: "?", "#" and "%". */
static char *
immutable_uri(const char *path)
{
  const size_t size = 3 * strlen(path) + sizeof "file:?immutable=1";
  char *uri = malloc(size);
  size_t n = 0;

  if (!uri)
    return NULL;
  n += (size_t)snprintf(uri, size, "file:");
  for (; *path != '\0'; path++)
    n += (size_t)snprintf(uri + n, size - n, strchr("?#%", *path) ? "%%%02x" : "%c",
                          (unsigned char)*path);
  snprintf(uri + n, size - n, "?immutable=1");
  return uri;
}

dk_status
connection_glance(struct connection *c, const struct settings *settings, struct why *why)
{
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW |
                    SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  char *uri = immutable_uri(settings->path);

  *c = (struct connection){.kind = CONNECTION_READER, .wake_fd = -1};
  if (!uri)
    return why_set(why, DK_NO_MEMORY, "%s: out of memory", settings->path);
  int code = sqlite3_open_v2(uri, &c->db, flags, NULL);
  free(uri);
  if (code == SQLITE_OK)
    return DK_OK;
  why_sqlite(why, c->db, code, settings->path);
  connection_close(c);
  return why->status;
}

void
connection_close(struct connection *c)
{
  int code = sqlite3_close(c->db);

  assert(code == SQLITE_OK); /* else a statement was not finalized */
  (void)code;
  c->db = NULL;
}

/* ---- what is set, and read back -------------------------------------------------------------- */

struct pragma {
  const char *name;
  const char *value;    /* as SQLite returns it */
  const char *next;     /* what to do if it is another */
};

static const struct pragma of_every_connection[] = {
  {"secure_delete", "0", "use another SQLite: deleting must not overwrite with zeros"},
  {"wal_autocheckpoint", "0", "use another SQLite: only the writer may make checkpoints"},
  {"foreign_keys", "1", "use an SQLite compiled without SQLITE_OMIT_FOREIGN_KEY"},
  {"trusted_schema", "0", "use SQLite 3.31 or later"},
  {"cell_size_check", "1", "use another SQLite"},
  {"temp_store", "2", "use an SQLite compiled without SQLITE_TEMP_STORE=0"},
};

static const struct pragma wal = {
  "journal_mode", "wal",
  "the file must be on a disk of this machine, and writable at the first open"};

/* These a file has from its first page on. */
static const struct pragma of_the_file[] = {
  {"page_size", "4096",
   "on a copy, run PRAGMA journal_mode=DELETE; PRAGMA page_size=4096; VACUUM; then use the copy"},
  {"encoding", "UTF-8", "dump it with the sqlite3 shell and load it into a new UTF-8 file"},
};

/* The options that have no pragma. */
static const struct {
  int option, value;
  const char *name;
} options[] = {
  {SQLITE_DBCONFIG_DEFENSIVE, 1, "SQLITE_DBCONFIG_DEFENSIVE"},
  {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, "SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE"},
  {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, "SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION"},
  {SQLITE_DBCONFIG_DQS_DML, 0, "SQLITE_DBCONFIG_DQS_DML"},
};

static dk_status
read_back(struct connection *c, const char *path, const char *name, const char *expected,
          const char *next, struct why *why)
{
  sqlite3_stmt *statement = NULL;
  char sql[64];

  snprintf(sql, sizeof sql, "PRAGMA %s", name);
  int code = sqlite3_prepare_v2(c->db, sql, -1, &statement, NULL);
  if (code == SQLITE_OK)
    code = sqlite3_step(statement);
  const char *found =
    code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : "nothing";
  if (code != SQLITE_ROW && code != SQLITE_DONE)
    why_sqlite(why, c->db, code, sql);
  else if (!found)
    why_set(why, DK_NO_MEMORY, "%s: out of memory", sql);
  else if (strcmp(found, expected) != 0)
    why_set(why, DK_REFUSED, "%s: %s has the wrong value; expected %s, found %s; %s", path, sql,
            expected, found, next);
  else
    why->status = DK_OK;
  sqlite3_finalize(statement);
  return why->status;
}

static dk_status
set_and_read_back(struct connection *c, const char *path, const struct pragma *pragma,
                  struct why *why)
{
  char sql[64];

  snprintf(sql, sizeof sql, "PRAGMA %s = %s", pragma->name, pragma->value);
  TRY(connection_exec(c, sql, sql, why));
  return read_back(c, path, pragma->name, pragma->value, pragma->next, why);
}

static dk_status
set_options(struct connection *c, const char *path, struct why *why)
{
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    int found = -1;
    int code = sqlite3_db_config(c->db, options[i].option, options[i].value, &found);
    if (code != SQLITE_OK || found != options[i].value)
      return why_set(why, DK_REFUSED,
                     "%s: %s cannot be set; expected %d, found %d; use another SQLite than %s",
                     path, options[i].name, options[i].value, found, sqlite3_libversion());
  }
  return DK_OK;
}

dk_status
connection_settle(struct connection *c, const struct settings *settings, struct why *why)
{
  const char *path = settings->path;
  const struct pragma synchronous = {
    "synchronous", settings->synchronous == SYNCHRONOUS_FULL ? "2" : "1",
    "use another SQLite"};
  const struct pragma query_only = {"query_only", c->kind == CONNECTION_READER ? "1" : "0",
                                    "use another SQLite"};

  TRY(set_options(c, path, why));
  /* No memory map: a stray write of the process would reach the file.  If SQLite was compiled
   * without it, the pragma returns nothing. */
  TRY(connection_exec(c, "PRAGMA mmap_size = 0", "PRAGMA mmap_size = 0", why));
  TRY(set_and_read_back(c, path, &synchronous, why));
  for (size_t i = 0; i < sizeof of_every_connection / sizeof of_every_connection[0]; i++)
    TRY(set_and_read_back(c, path, &of_every_connection[i], why));
  return set_and_read_back(c, path, &query_only, why);
}

dk_status
connection_verify_form(struct connection *c, const struct settings *settings, struct why *why)
{
  for (size_t i = 0; i < sizeof of_the_file / sizeof of_the_file[0]; i++)
    TRY(read_back(c, settings->path, of_the_file[i].name, of_the_file[i].value,
                  of_the_file[i].next, why));
  return DK_OK;
}

/* SQLite reports at the first write that it opened a file for reading only (the log, for example,
 * because no descriptor was left).  There is no wait for a connection that writes now: such a write
 * says nothing about this connection. */
static dk_status
try_to_write(struct connection *c, struct why *why)
{
  int64_t busy_ms = c->busy_ms;

  c->busy_ms = 0;
  dk_status status = connection_exec(c, "BEGIN IMMEDIATE; ROLLBACK", "beginning to write", why);
  c->busy_ms = busy_ms;
  return status == DK_BUSY ? DK_OK : status;
}

dk_status
connection_verify(struct connection *c, const struct settings *settings, struct why *why)
{
  TRY(read_back(c, settings->path, wal.name, wal.value, wal.next, why));
  TRY(connection_verify_form(c, settings, why));
  return c->kind == CONNECTION_WRITER ? try_to_write(c, why) : DK_OK;
}

dk_status
connection_open(struct connection *c, const struct settings *settings, enum connection_kind kind,
                bool read_only, struct why *why)
{
  TRY(connection_attach(c, settings, kind, read_only, why));
  dk_status status = connection_settle(c, settings, why);
  if (status == DK_OK)
    status = connection_verify(c, settings, why);
  if (status != DK_OK)
    connection_close(c);
  return status;
}

/* ---- statements ------------------------------------------------------------------------------ */

dk_status
connection_exec(struct connection *c, const char *sql, const char *what, struct why *why)
{
  int code = sqlite3_exec(c->db, sql, NULL, NULL, NULL);

  if (code == SQLITE_OK)
    return DK_OK;
  why_sqlite(why, c->db, code, what);
  if (code == SQLITE_READONLY && c->kind == CONNECTION_READER)
    why->status = DK_REFUSED; /* query_only, which does not pass */
  return why->status;
}

dk_status
connection_prepare(struct connection *c, const char *sql, sqlite3_stmt **ret_statement,
                   struct why *why)
{
  int code =
    sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_statement, NULL);
  char head[120]; /* of a long text: the error needs room behind it */

  snprintf(head, sizeof head, "%s", sql);
  return code == SQLITE_OK ? DK_OK : why_sqlite(why, c->db, code, head);
}

dk_status
connection_integer(struct connection *c, const char *sql, int64_t *ret_value, struct why *why)
{
  sqlite3_stmt *statement = NULL;
  int code = sqlite3_prepare_v2(c->db, sql, -1, &statement, NULL);
  dk_status status = DK_OK;

  if (code == SQLITE_OK)
    code = sqlite3_step(statement);
  if (code == SQLITE_ROW)
    *ret_value = sqlite3_column_int64(statement, 0);
  else if (code == SQLITE_DONE)
    status = why_set(why, DK_CORRUPT, "%s: expected a row, found none", sql);
  else
    status = why_sqlite(why, c->db, code, sql);
  sqlite3_finalize(statement);
  return status;
}
