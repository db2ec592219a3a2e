/* SPDX-License-Identifier: Apache-2.0 */
/* What the process may do with the files of a store, asked of the system.  SQLite's codes do not
 * say it: what could not be opened for writing it opens for reading, whatever the reason was, and
 * tells of the first write that the database is read-only. */
#ifndef DK_SQLITE_RIGHTS_H
#define DK_SQLITE_RIGHTS_H

#include "providers/sqlite/why.h"

/* True: a right is lacking that is needed to write the store at `path` (or only to read it), and
 * *why, DK_REFUSED, says which and of which file.  What the system cannot answer is not lacking. */
bool rights_are_lacking(const char *path, bool to_write, struct why *why);

#endif
