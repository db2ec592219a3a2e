/* SPDX-License-Identifier: Apache-2.0 */
/* The files of one store: the database, SQLite's -wal and -shm, and our -lock.  The functions here
 * open, make, migrate and remove them.  A new file gets the mode 0600, whatever the umask is. */
#ifndef DK_SQLITE_STORE_H
#define DK_SQLITE_STORE_H

#include <sys/types.h>

#include "providers/sqlite/connection.h"
#include "providers/sqlite/lockfile.h"

/* Which files the names lead to: database, log and its index; 0, 0: not there. */
struct store_ids {
  struct {
    dev_t dev;
    ino_t ino;
  } of[3];
};

struct store_files {
  struct settings settings;
  struct bell bell;
  struct lockfile lock; /* not open if is_read_only */
  struct store_ids ids; /* when it was opened */
  int64_t tables_version; /* at which nothing was missing */
  bool is_read_only;
  bool has_bell;
};

/* Does all that open does before there are threads.  `wake_fd` ends a wait for another process
 * (host->cancel_fd; -1: none).  DK_OPEN_CREATE makes a store where there is no file or an empty
 * file; without it a missing store is DK_NOT_FOUND, and nothing is made.  Version 1 is migrated, or
 * refused with DK_OPEN_READ_ONLY.  Two processes may do this at once.  On DK_OK the writer's
 * connection is open (with DK_OPEN_READ_ONLY: a connection that cannot write); otherwise nothing is
 * left open.  Must not move afterwards. */
dk_status store_files_open(struct store_files *files, const struct dk_open *open, int wake_fd,
                           struct connection *ret_writer, struct why *why);

/* Opens another connection, also after the first was poisoned; then the log may be another file. */
dk_status store_files_connect(struct store_files *files, enum connection_kind kind,
                              struct connection *ret_connection, struct store_ids *ret_ids,
                              struct why *why);

/* Call this before each use of a connection.  A connection goes on with the files that it has
 * opened, even if their names are removed or replaced; what it writes would then be lost.
 * DK_REFUSED: a file was removed or replaced. */
dk_status store_files_check(const struct store_files *files, const struct store_ids *ids,
                            struct why *why);

/* The connections must be closed before. */
void store_files_close(struct store_files *files);

/* Removes the database and all files beside it.  A missing store is DK_OK; a file that is not ours
 * is DK_REFUSED and stays.  `wake_fd` as in open. */
dk_status store_files_destroy(const struct dk_open *open, int wake_fd, struct why *why);

#endif
