/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the operations share: the plugin through a host, on the server of DURAKIT_PG.
 * Misfortune bails out. */
#ifndef DK_PG_TEST_HANDLE_H
#define DK_PG_TEST_HANDLE_H

#include <durakit/host.h>
#include <libpq-fe.h>

#include <stdbool.h>

enum { LEASE = 3600000, A_DAY = 86400000 };

struct handle_under_test {
  struct dk_caller *caller;
  struct dk_store *store;
};

/* Loads the plugin of PG_PLUGIN. */
void begin(void);
void end(void);
struct dk_library *library_under_test(void);
/* By the server's clock. */
void open_store(struct handle_under_test *h, const char *conninfo, const char *schema);
dk_status try_to_open_store(struct handle_under_test *h, const char *conninfo, const char *schema);
/* What the stores that are opened from now on take for the time; NULL: the system's clock. */
void let_clock_be(struct dk_clock *clock);
void close_store(struct handle_under_test *h);
void destroy_store(const char *conninfo, const char *schema);
/* Another caller of the same store, for another thread. */
struct handle_under_test with_caller(const struct handle_under_test *h);

struct dk_bytes text(const char *string);

/* ---- SQL of the test's own ------------------------------------------------------------------- */

PGconn *connect_to(const char *conninfo);
void sql(PGconn *pg, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The first field of the first row; to be freed. */
char *sql_value(PGconn *pg, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- operations in short: they bail out if they are not DK_OK -------------------------------- */

void enqueue(struct handle_under_test *h, const char *instance);
/* Lives until the caller's next reset. */
struct dk_turn *fetch_turn_as(struct handle_under_test *h, const char *owner);
struct dk_bytes fetch_turn(struct handle_under_test *h);
struct dk_bytes fetch_work(struct handle_under_test *h);
void ack_work(struct handle_under_test *h, struct dk_bytes token, const char *completes);
/* The first commit of an instance, with activities 1 to n of execution 1. */
void commit_first(struct handle_under_test *h, struct dk_bytes token, size_t n_activities);
/* Cancels `n` activities from `first` on. */
void commit_cancelling(struct handle_under_test *h, struct dk_bytes token, uint64_t first, size_t n,
                       struct dk_commit_outcome *ret_outcome);
/* With `n` messages to as many instances, due in a day. */
void commit_timers(struct handle_under_test *h, struct dk_bytes token, size_t n);
/* An instance with that many activities, whose next turn is there to be fetched. */
void given_activities(struct handle_under_test *h, const char *instance, size_t n);

#endif
