/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's shared memory (the file <store>-shm) of a connection: a temporary fault must not have
 * lasting effects there.  In two cases SQLite alone would let it:
 *
 *   - SQLite forgets an unlock that failed, and the lock stays as long as any connection of the
 *     process is open: no writer can go on.  Here the unlock is tried again
 *   - SQLite opens for reading what it cannot open for writing, and that lasts for all connections
 *     of the process.  Here that is a failure, unless the process lacks the right to write
 *
 * No lock: a struct shm_methods belongs to one connection.
 */
#ifndef DK_SQLITE_SHM_H
#define DK_SQLITE_SHM_H

#include <sqlite3.h>

struct shm_methods {
  sqlite3_io_methods ours;          /* first: the file leads to it */
  const sqlite3_io_methods *real;
  const char *path;                 /* of the store */
};

/* Puts `methods` between the connection and its database, before the first statement; they and
 * `path` must live until it is closed.  Gives SQLite's code. */
int shm_watch(sqlite3 *db, struct shm_methods *methods, const char *path);

#endif
