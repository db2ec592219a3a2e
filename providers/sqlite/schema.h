/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file is a store of ours, which version its tables have, and how they are made.  Each
 * function here that writes is called under the lock file, and is one transaction.
 *
 * PRAGMA application_id marks a file as a store of ours; user_version is the version of its tables.
 * Version 1 is the generation that inferred cancellation from the state of an orchestration: its
 * worker queue has no columns for an activity's identity.  Version 2 is tables.h.
 */
#ifndef DK_SQLITE_SCHEMA_H
#define DK_SQLITE_SCHEMA_H

#include "providers/sqlite/connection.h"

enum { SCHEMA_APPLICATION_ID = 0x44754b69, SCHEMA_VERSION = 2 }; /* "DuKi" */

enum schema_found {
  SCHEMA_EMPTY,         /* no tables, and no program's mark: a new file */
  SCHEMA_OURS,          /* version 2 */
  SCHEMA_OLD            /* version 1 */
};

/* Finds whose file it is.  Not a database, or another program's database: DK_REFUSED; a later
 * version: DK_REFUSED with both numbers. */
dk_status schema_look(struct connection *c, const char *path, enum schema_found *ret_found,
                      struct why *why);

/* Does the same by the first page of the file alone, before anything is opened that could change
 * the file.  It refuses a file that is not ours, and leaves an unclear case to schema_look (a log
 * that was not written back may have made it ours). */
dk_status schema_glance(const struct settings *settings, struct why *why);

/* Adds the tables of version 2 and the marks, in the transaction that runs. */
dk_status schema_add_tables(struct connection *c, struct why *why);

/* Makes version 2 in an empty database. */
dk_status schema_create(struct connection *c, struct why *why);

/* Makes version 2 of version 1 (migrate.c says how), all or nothing. */
dk_status schema_migrate(struct connection *c, const char *path, struct why *why);

/* DK_CORRUPT, naming it, if a table, a column or an index of version 2 is missing: it was dropped,
 * or a build that was never released made the store. */
dk_status schema_find_missing(struct connection *c, struct why *why);

/* Checks whether the store was made for the host's clock.  [TIME-7] */
dk_status schema_check_clock(struct connection *c, struct why *why);

#endif
