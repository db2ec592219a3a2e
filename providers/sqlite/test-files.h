/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the store's files share: a folder, stores in it, and SQL beside the plugin.
 * A failure of the environment (no memory, no folder, wrong SQL) bails out. */
#ifndef DK_SQLITE_TEST_FILES_H
#define DK_SQLITE_TEST_FILES_H

#include <sys/types.h>

#include "conformance/tap/tap.h"
#include "providers/sqlite/schema.h"
#include "providers/sqlite/store.h"

extern struct why why; /* of the last that failed */

void begin(void);
int end(void);                            /* gives the program's exit status */
const char *place(const char *name);      /* a path in the folder; the last 256 are there */
bool is_there(const char *path);
mode_t mode_of(const char *path);         /* the permissions; 07777777 if it does not exist */
void make_file(const char *path, const void *bytes, size_t size);
char *bytes_of(const char *path, size_t *ret_size); /* to be freed; NULL: it does not exist */
void copy_file(const char *from, const char *to);

/* The plugin's side. */
dk_status open_files(const char *path, uint32_t flags, struct store_files *files,
                     struct connection *c);
dk_status open_files_within(const char *path, uint32_t flags, const char *busy_timeout,
                            struct store_files *files, struct connection *c);
void close_files(struct store_files *files, struct connection *c);
dk_status try_open(const char *path, uint32_t flags); /* and close */
dk_status destroy(const char *path);
/* One point: it is refused with this status, and a text in which these parts are. */
void expect_refused(dk_status got, dk_status expected, const char *part, const char *other_part,
                    const char *name);

/* A connection of another program. */
sqlite3 *somebody(const char *path);
void run_sql(sqlite3 *db, const char *sql);
void sql_at(const char *path, const char *sql);
int64_t number_at(const char *path, const char *sql);
/* All rows of all tables, and what the schema says; to be freed. */
char *dump_of(const char *path);

/* A store of version 1 from providers/sqlite/fixtures. */
void make_version_1(const char *path);

/* Runs `act` in a child and waits: its exit status, or minus its signal. */
int in_child(void (*act)(void *context), void *context);

#endif
