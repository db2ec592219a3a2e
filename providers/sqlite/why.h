/* SPDX-License-Identifier: Apache-2.0 */
/* Why an operation fails: a status of the ABI and a text for people.  The code that sees the
 * failure fills it; the one layer that has a call reports it to the host.  Nothing is allocated, so
 * that it also works without memory.  why.c owns the map from SQLite's result codes to the ABI's
 * statuses, which goes by extended code and never by text.
 */
#ifndef DK_SQLITE_WHY_H
#define DK_SQLITE_WHY_H

#include <sqlite3.h>
#include <stdbool.h>

#include "providers/shared/basics.h"

struct why {
  dk_status status;
  int code;             /* SQLite's extended result code; 0: the failure is not SQLite's */
  bool poisons;         /* the connection must not be used again: close it, open another */
  char text[1024];      /* ends in a NUL; cut if it is longer */
};

/* Fills it and gives the status back: return why_set(why, DK_REFUSED, "...", ...). */
dk_status why_set(struct why *why, dk_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

/* The failure of a system call, by errno: a full disk and a missing right get different statuses.
 */
dk_status why_errno(struct why *why, int error, const char *what, const char *path);

/* The failure of a call of SQLite on `db` (which may be NULL): `what` was being done.  `code` is
 * the result code; if it is a primary one, the extended one is asked of `db`.  Where a missing
 * right may be the cause, the system is asked: if a right is missing, the status is DK_REFUSED,
 * otherwise one that may pass. */
dk_status why_sqlite(struct why *why, sqlite3 *db, int code, const char *what);

/* The status of an extended result code as far as the code alone determines it; DK_OK for
 * SQLITE_OK, SQLITE_ROW and SQLITE_DONE. */
dk_status why_status_of(int code);

/* True: after this code the state of the connection is unknown (a write or a sync failed: what
 * reached the disk is unknown, and a second sync could wrongly succeed), or every later use fails
 * (a file was opened for reading only).  Close the connection, open another, and look at what is
 * stored. */
bool why_poisons(int code);

/* SQLite reports a failed read as damage of the database: look again on a new connection. */
bool why_may_be_the_disk(const struct why *why);

/* Reports the failure to the host, and returns the status. */
dk_status why_tell(const struct why *why, const struct dk_host *host, struct dk_call *call);

#endif
