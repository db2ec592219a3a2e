/* SPDX-License-Identifier: Apache-2.0 */
/* What the process may do with the files of a store; the system is asked.  SQLite's codes do not
 * show it: SQLite opens for reading whatever it could not open for writing, for any reason, and
 * reports at the first write that the database is read-only. */
#ifndef DK_SQLITE_RIGHTS_H
#define DK_SQLITE_RIGHTS_H

#include "providers/sqlite/why.h"

/* True: the process lacks a right that is needed to write the store at `path` (or only to read it).
 * *why is DK_REFUSED and names the right and the file.  If the system cannot answer for a right, it
 * counts as present. */
bool rights_are_lacking(const char *path, bool to_write, struct why *why);

#endif
