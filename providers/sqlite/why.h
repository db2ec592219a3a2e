/* SPDX-License-Identifier: Apache-2.0 */
/* Why an operation fails: a status of the ABI and a text for people.  It is filled where the
 * failure is seen and told to the host by the one layer that has a call.  Nothing is allocated, so
 * that it works without memory too.  Owns the map from SQLite's result codes to the ABI's statuses,
 * which goes by extended code and never by text.
 */
#ifndef DK_SQLITE_WHY_H
#define DK_SQLITE_WHY_H

#include <durakit/provider.h>
#include <sqlite3.h>

#include <stdbool.h>

/* The only control macro: what is not DK_OK is returned. */
#define TRY(expression)                                                                            \
  do {                                                                                             \
    dk_status try_status_ = (expression);                                                          \
    if (try_status_ != DK_OK)                                                                      \
      return try_status_;                                                                          \
  } while (0)

struct why {
  dk_status status;
  int code;             /* SQLite's extended result code; 0: the failure is not SQLite's */
  bool poisons;         /* the connection may not be used again: close it, open another */
  char text[1024];      /* ends in a NUL; cut if it is longer */
};

/* Fills it and gives the status back: return why_set(why, DK_REFUSED, "...", ...). */
dk_status why_set(struct why *why, dk_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

/* The failure of a system call, by errno: no room and no access are told apart. */
dk_status why_errno(struct why *why, int error, const char *what, const char *path);

/* The failure of a call of SQLite on `db` (which may be NULL): `what` was being done.  `code` is
 * the result code; if it is a primary one, the extended one is asked of `db`.  Where it may be a
 * right that is lacking, the system is asked: if it is, that is DK_REFUSED, and else it passes. */
dk_status why_sqlite(struct why *why, sqlite3 *db, int code, const char *what);

/* The status of an extended result code as far as the code alone says it; DK_OK for SQLITE_OK,
 * SQLITE_ROW and SQLITE_DONE. */
dk_status why_status_of(int code);

/* After it the state of the connection is not known (a write or a sync failed: what reached the
 * disk is unknown, and a second sync would lie), or is such that it fails for good (a file was
 * opened for reading only): close it, open another, look what is there. */
bool why_poisons(int code);

/* SQLite says of a read that failed that the database is damaged: look again on a new
 * connection. */
bool why_may_be_the_disk(const struct why *why);

/* Tells the host, and gives the status back. */
dk_status why_tell(const struct why *why, const struct dk_host *host, struct dk_call *call);

#endif
