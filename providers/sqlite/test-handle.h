/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the operations share: the plugin through a host, in a folder of their own, and
 * what the database and the disk were asked to do meanwhile.  A failure of the environment bails
 * out. */
#ifndef DK_SQLITE_TEST_HANDLE_H
#define DK_SQLITE_TEST_HANDLE_H

#include <stdbool.h>

#include "providers/testing/handle.h"

void begin(void);
void end(void);
bool is_slow(void); /* under Valgrind: less is to be done */
void open_store(struct handle_under_test *h, const char *name);
/* By a clock; NULL: the system's. */
void open_store_by(struct handle_under_test *h, const char *name, struct dk_clock *clock);
/* A host with these options, which is notified of violations. */
void open_store_with(struct handle_under_test *h, const char *name, uint32_t flags,
                     struct dk_host_options *options);
/* In the folder; lives until the next call. */
const char *path_of(const char *name);
/* Its file; lives until the next call. */
const char *place(const char *name);
/* Removes it, with a busy_timeout of a minute; NULL: it is never cancelled. */
dk_status destroy_store(const char *name, struct dk_canceller *canceller);
/* ---- what was asked of the database and the disk --------------------------------------------- */

/* The texts of the statements that ran on all connections since the last forgetting, one by one. */
/* Called before each statement of the plugin, in its thread, with the name of its file; NULL: no
 * more. */
void watch_statements(void (*act)(const char *path, const char *sql));
void forget_statements(void);
size_t n_statements(void);
const char *statement_run(size_t i);
/* Rows that they gave. */
size_t n_rows(void);
/* Steps that SQLite's machine has made for those that are done: they measure the work without a
 * clock. */
size_t n_steps(void);
/* Calls of fsync and fdatasync since then. */
void forget_syncs(void);
size_t n_syncs(void);

#endif
