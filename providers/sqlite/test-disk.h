/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that loses its power: keeps what of a database and its log was synced, and no more.  A
 * failed sync loses its data, and the next sync does not report that, as on Linux. */
#ifndef DK_SQLITE_TEST_DISK_H
#define DK_SQLITE_TEST_DISK_H

#include "providers/sqlite/test-calls.h"

void disk_begin(const char *path); /* all of the files is on it */
void disk_watch(const struct change *change); /* for calls.watch */
/* What the power cut leaves, as another database. */
void disk_cut(const char *to);
void disk_end(void);

#endif
