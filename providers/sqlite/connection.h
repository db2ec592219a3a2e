/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to the store: opened with the settings that everything else relies on, each read
 * back, for a pragma that is not known or not possible says nothing.  Owns the sqlite3 handle and
 * how long it waits for somebody who does not know our lock file (the sqlite3 shell, say).
 */
#ifndef DK_SQLITE_CONNECTION_H
#define DK_SQLITE_CONNECTION_H

#include "providers/sqlite/settings.h"
#include "providers/sqlite/shm.h"

enum connection_kind {
  CONNECTION_WRITER,    /* the one of the writer thread, and of open */
  CONNECTION_READER     /* PRAGMA query_only: read_history, and looks that write nothing */
};

struct connection {
  sqlite3 *db;                  /* NULL: closed */
  struct shm_methods shm;
  enum connection_kind kind;
  int64_t busy_ms;
  int64_t busy_since;           /* real time; of the wait that runs */
  int wake_fd;                  /* -1: none; readable: stop waiting, which is SQLITE_BUSY */
};

/* Opens the store's file, which must be there, and changes nothing: it may be anybody's.  Its log
 * is not written back when this is closed; but a transaction that its owner could not finish may
 * be taken back by the first statement (a hot journal), so glance first. */
dk_status connection_attach(struct connection *c, const struct settings *settings,
                            enum connection_kind kind, bool read_only, struct why *why);

/* Opens it as it lies on the disk: nothing is locked, no log and no journal is looked at, nothing
 * is changed or made.  Good for a glance at the first page, while no program of ours writes. */
dk_status connection_glance(struct connection *c, const struct settings *settings,
                            struct why *why);

/* Sets what belongs to the connection (synchronous, secure_delete, wal_autocheckpoint, ...) and
 * reads it back; for a store that is known to be ours. */
dk_status connection_settle(struct connection *c, const struct settings *settings,
                            struct why *why);

/* Reads back what must hold of the file: WAL, and its form; and that a writer can write.  Here and
 * in settle, what is wrong is DK_REFUSED, saying which, what was expected, what was found, and what
 * to do. */
dk_status connection_verify(struct connection *c, const struct settings *settings,
                            struct why *why);

/* Only the form, which cannot be changed any more: page size, encoding. */
dk_status connection_verify_form(struct connection *c, const struct settings *settings,
                                 struct why *why);

/* All three: for a store whose schema is checked (see store.h).  Also to reopen a poisoned one. */
dk_status connection_open(struct connection *c, const struct settings *settings,
                          enum connection_kind kind, bool read_only, struct why *why);

/* Closes; all statements must be finalized before.  No checkpoint, closed or not. */
void connection_close(struct connection *c);

/* wake_fd is readable: a SQLITE_BUSY was not the end of busy_ms. */
bool connection_was_woken(const struct connection *c);

/* Runs statements that give no rows. */
dk_status connection_exec(struct connection *c, const char *sql, const char *what,
                          struct why *why);

/* A statement that is kept for as long as the connection. */
dk_status connection_prepare(struct connection *c, const char *sql, sqlite3_stmt **ret_statement,
                             struct why *why);

/* The one integer that a statement gives; DK_CORRUPT if it gives no row. */
dk_status connection_integer(struct connection *c, const char *sql, int64_t *ret_value,
                             struct why *why);

#endif
