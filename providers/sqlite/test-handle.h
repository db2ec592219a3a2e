/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the operations share: the plugin through a host, in a folder of their own, and
 * what the database and the disk were asked to do meanwhile.  Misfortune bails out. */
#ifndef DK_SQLITE_TEST_HANDLE_H
#define DK_SQLITE_TEST_HANDLE_H

#include <durakit/host.h>

#include <stdbool.h>

enum { LEASE = 3600000 };

struct handle_under_test {
  struct dk_caller *caller;
  struct dk_store *store;
};

void begin(void);
void end(void);
bool is_slow(void); /* under Valgrind: less is to be done */
void open_store(struct handle_under_test *h, const char *name);
/* By a clock; NULL: the system's. */
void open_store_by(struct handle_under_test *h, const char *name, struct dk_clock *clock);
/* As a host that was told so, and hears of violations. */
void open_store_with(struct handle_under_test *h, const char *name, uint32_t flags,
                     struct dk_host_options *options);
/* In the folder; lives until the next call. */
const char *path_of(const char *name);
void close_store(struct handle_under_test *h);
/* Its file; lives until the next call. */
const char *place(const char *name);
/* Removes it, with a busy_timeout of a minute; NULL: nobody calls it back. */
dk_status destroy_store(const char *name, struct dk_canceller *canceller);
/* Another caller of the same store, for another thread. */
struct handle_under_test with_caller(const struct handle_under_test *h);

struct dk_bytes text(const char *string);

/* ---- operations in short: they bail out if they are not DK_OK -------------------------------- */

void enqueue(struct handle_under_test *h, const char *instance);
/* The token of its turn; lives until the caller's next result. */
struct dk_bytes fetch_turn(struct handle_under_test *h);
struct dk_bytes fetch_work(struct handle_under_test *h);
void ack_work(struct handle_under_test *h, struct dk_bytes token);
/* The first commit of an instance, with activities 1 to n of execution 1. */
void commit_first(struct handle_under_test *h, struct dk_bytes token, size_t n_activities);
/* Cancels `n` activities from `first` on. */
void commit_cancelling(struct handle_under_test *h, struct dk_bytes token, uint64_t first, size_t n,
                       struct dk_commit_outcome *ret_outcome);
/* An instance with that many activities, whose next turn is there to be fetched. */
void given_activities(struct handle_under_test *h, const char *instance, size_t n);

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
/* Steps that SQLite's machine has made for those that are done: it is told how much work they were,
 * and not by a clock. */
size_t n_steps(void);
/* Calls of fsync and fdatasync since then. */
void forget_syncs(void);
size_t n_syncs(void);

#endif
