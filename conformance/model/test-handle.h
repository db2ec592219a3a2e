/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the model share: a handle with its caller, and the operations in short.
 * A failure of the environment (no memory, no folder) bails out. */
#ifndef DK_MODEL_TEST_HANDLE_H
#define DK_MODEL_TEST_HANDLE_H

#include <durakit/host.h>

#include <stdbool.h>
#include <sys/types.h>

enum { LEASE = 30000, START = 1000000 };

struct handle {
  struct dk_virtual_clock *clock;
  struct dk_caller *caller;
  struct dk_store *store;
  bool broke_a_rule;
};

/* Loads the model ($MODEL; the full one: $MODEL_FULL) and makes a folder for its stores; removes
 * both. */
struct dk_library *begin(void);
struct dk_library *begin_full(void);
void end(void);
const char *store_path(const char *name); /* until the next call */
off_t size_of(const char *path);          /* -1: it is not there */

struct dk_virtual_clock *new_clock(void **ret_region);
/* With `clock` NULL the store uses the system's clock, without `path` it is in memory. */
dk_status open_with(struct handle *h, struct dk_virtual_clock *clock, const char *path,
                    const char *mutant, uint32_t flags);
dk_status open_by_its_own_clock(struct handle *h, const char *path);
void open_handle(struct handle *h, struct dk_virtual_clock *clock, const char *path);
void close_handle(struct handle *h);

struct dk_bytes text(const char *string);
bool same(struct dk_bytes got, const char *expected);
/* A copy that outlives the caller's next result; a thread keeps its last 16. */
struct dk_bytes kept(struct dk_bytes token);

dk_status enqueue(struct handle *h, const char *instance, const char *id);
struct dk_turn *fetch_turn(struct handle *h);     /* NULL: none came */
struct dk_work_item *fetch_work(struct handle *h);
/* A first commit: one event, and activities 1 to n. */
dk_status commit_first(struct handle *h, struct dk_bytes token, size_t n_activities);
/* Cancels activities 1 to n. */
dk_status commit_cancelling(struct handle *h, struct dk_bytes token, size_t n,
                            struct dk_commit_outcome *ret_outcome);
dk_status ack_work(struct handle *h, struct dk_bytes token, const char *to);

#endif
