/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to the store: opened with the settings that everything else relies on.  Each is read
 * back, because a pragma that is unknown or not possible reports no error.  The connection owns the
 * sqlite3 handle, and how long it waits for a program that does not know our lock file (the sqlite3
 * shell, for example).
 */
#ifndef DK_SQLITE_CONNECTION_H
#define DK_SQLITE_CONNECTION_H

#include "providers/sqlite/settings.h"
#include "providers/sqlite/shm.h"

enum connection_kind {
  CONNECTION_WRITER,    /* the one of the writer thread, and of open */
  CONNECTION_READER     /* PRAGMA query_only: read_history, and reads of durakit.admin/1 */
};

struct connection {
  sqlite3 *db;                  /* NULL: closed */
  struct shm_methods shm;
  enum connection_kind kind;
  int64_t busy_ms;
  int64_t busy_since;           /* real time: the beginning of the present wait */
  int wake_fd;                  /* -1: none; readable: the wait ends with SQLITE_BUSY */
};

/* Opens the store's file, which must exist, and changes nothing: the file may belong to another
 * program.  Its log is not written back when the connection is closed.  But the first statement may
 * roll back a transaction that the owner could not finish (a hot journal), so call
 * connection_glance first. */
dk_status connection_attach(struct connection *c, const struct settings *settings,
                            enum connection_kind kind, bool read_only, struct why *why);

/* Opens the file as it is on the disk: it locks nothing, reads no log and no journal, and changes
 * or makes nothing.  It is good for a look at the first page while no program of ours writes. */
dk_status connection_glance(struct connection *c, const struct settings *settings,
                            struct why *why);

/* Sets what belongs to the connection (synchronous, secure_delete, wal_autocheckpoint, ...) and
 * reads it back; for a store that is known to be ours. */
dk_status connection_settle(struct connection *c, const struct settings *settings,
                            struct why *why);

/* Reads back what must hold of the file: WAL mode, its form, and that a writer can write.  Here and
 * in connection_settle a wrong setting is DK_REFUSED; the text names the setting, what was
 * expected, what was found, and what to do. */
dk_status connection_verify(struct connection *c, const struct settings *settings,
                            struct why *why);

/* Verifies only the form, which can no longer be changed: page size, encoding. */
dk_status connection_verify_form(struct connection *c, const struct settings *settings,
                                 struct why *why);

/* Does all three (attach, settle, verify), for a store whose schema is checked (see store.h).  It
 * also opens a poisoned connection again. */
dk_status connection_open(struct connection *c, const struct settings *settings,
                          enum connection_kind kind, bool read_only, struct why *why);

/* Closes the connection, after all its statements are finalized.  It makes no checkpoint. */
void connection_close(struct connection *c);

/* True: wake_fd is readable, so a SQLITE_BUSY does not mean that busy_ms has passed. */
bool connection_was_woken(const struct connection *c);

/* Runs statements that give no rows. */
dk_status connection_exec(struct connection *c, const char *sql, const char *what,
                          struct why *why);

/* Prepares a statement that is kept for as long as the connection. */
dk_status connection_prepare(struct connection *c, const char *sql, sqlite3_stmt **ret_statement,
                             struct why *why);

/* Reads the one integer that a statement gives; DK_CORRUPT if it gives no row. */
dk_status connection_integer(struct connection *c, const char *sql, int64_t *ret_value,
                             struct why *why);

#endif
