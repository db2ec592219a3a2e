/* SPDX-License-Identifier: Apache-2.0 */
/* Whose file it is, which version its tables have, and how they are made.  Everything here that
 * writes is called with the lock file held and is one transaction.
 *
 * A store says whose it is by PRAGMA application_id, and how its tables look by user_version.
 * Version 1 is the generation that inferred cancellation from the state of an orchestration: its
 * worker queue has no columns for an activity's identity.  Version 2 is tables.h.
 */
#ifndef DK_SQLITE_SCHEMA_H
#define DK_SQLITE_SCHEMA_H

#include "providers/sqlite/connection.h"

enum { SCHEMA_APPLICATION_ID = 0x44754b69, SCHEMA_VERSION = 2 }; /* "DuKi" */

enum schema_found {
  SCHEMA_EMPTY,         /* no tables, and nobody's: a file that was just made */
  SCHEMA_OURS,          /* version 2 */
  SCHEMA_OLD            /* version 1 */
};

/* Whose it is.  Not a database, or somebody else's: DK_REFUSED; a later version: DK_REFUSED with
 * both numbers. */
dk_status schema_look(struct connection *c, const char *path, enum schema_found *ret_found,
                      struct why *why);

/* The same by the first page of the file alone, before anything is opened that could change it:
 * refuses what is not ours, and leaves to schema_look what is unclear (a log that was not written
 * back may have made it ours). */
dk_status schema_glance(const struct settings *settings, struct why *why);

/* Adds the tables of version 2 and the marks, in the transaction that runs. */
dk_status schema_add_tables(struct connection *c, struct why *why);

/* Makes version 2 in an empty database. */
dk_status schema_create(struct connection *c, struct why *why);

/* Makes version 2 of version 1 (migrate.c says how), all or nothing. */
dk_status schema_migrate(struct connection *c, const char *path, struct why *why);

/* DK_CORRUPT, naming it, if a table, a column or an index of version 2 is not there: somebody has
 * dropped it, or a build made the store that was never released. */
dk_status schema_find_missing(struct connection *c, struct why *why);

/* The store was made for the host's clock?  [TIME-7] */
dk_status schema_check_clock(struct connection *c, struct why *why);

#endif
