/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's shared memory (the file <store>-shm) in the hands of a connection: a fault that passes
 * must not outlast itself there.  SQLite does two things that do:
 *
 *   - an unlock that fails is forgotten, and the lock stays as long as any connection of the
 *     process is open: no writer gets past it.  Here the unlock is tried again
 *   - what cannot be opened for writing is opened for reading, and so it stays for all connections
 *     of the process.  Here that is a failure, unless the right to write is what was lacking
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
