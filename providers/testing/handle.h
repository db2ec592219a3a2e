/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a provider in short, for the tests of both providers. */
#ifndef DK_PROVIDERS_TESTING_HANDLE_H
#define DK_PROVIDERS_TESTING_HANDLE_H

#include "providers/testing/words.h"

enum { LEASE = 3600000, A_DAY = 86400000 };

struct handle_under_test {
  struct dk_caller *caller;
  struct dk_store *store;
};

/* Bails out, with the words of the failure, if the status is not DK_OK. */
void must(struct handle_under_test *h, dk_status status, const char *what);
/* With a caller of its own; bails out if it is not opened. */
void open_with(struct handle_under_test *h, struct dk_library *library, uint32_t flags,
               const struct dk_host_options *options, const struct dk_setting *settings,
               size_t n_settings);
void close_store(struct handle_under_test *h);
/* Another caller of the same store, for another thread. */
struct handle_under_test with_caller(const struct handle_under_test *h);

/* ---- operations: they bail out if they are not DK_OK ----------------------------------------- */

void enqueue(struct handle_under_test *h, const char *instance);
/* Lives until the caller's next reset. */
struct dk_turn *fetch_turn_as(struct handle_under_test *h, const char *owner);
/* The token of its turn; lives until the caller's next result. */
struct dk_bytes fetch_turn(struct handle_under_test *h);
struct dk_bytes fetch_work(struct handle_under_test *h);
/* With a message to `completes`; NULL: with none. */
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
