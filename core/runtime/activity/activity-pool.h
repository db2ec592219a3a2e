/* SPDX-License-Identifier: Apache-2.0 */
/* The activity pool: fetches activities, runs them in slots, signals them to end, and stores their
 * results. */
#ifndef DK_RUNTIME_ACTIVITY_ACTIVITY_POOL_H
#define DK_RUNTIME_ACTIVITY_ACTIVITY_POOL_H

#include "core/runtime/code/registry.h"
#include "core/runtime/format/event.h"
#include "core/runtime/lease/leases.h"

struct activity_pool;

struct activity_pool_setup {
  struct dk_store *store;
  const struct dk_runtime_options *options;  /* complete: without zeros (options.h); outlives the
                                                pool */
  struct leases *leases;
  struct log *log;
  const char *name;                          /* the owner passed with fetches */
};

dk_status activity_pool_start(const struct activity_pool_setup *setup,
                              struct activity_pool **ret_pool, struct dk_refusal *ret_refusal);
/* The commit of a turn in this process has just deleted these rows: signals the activities that run
 * here (DK_CAUSE_CANCELLED, DK_LEARNT_BY_COMMIT).  Unknown tokens belong to other workers. */
void activity_pool_signal(struct activity_pool *pool, dk_str instance,
                          const struct dk_stolen *stolen, size_t n_stolen);
/* The phases of dk_runtime_stop, each called once, in order. */
void activity_pool_stop_fetching(struct activity_pool *pool);
/* Waits until that tick for what runs; true: nothing runs any more. */
bool activity_pool_drain(struct activity_pool *pool, int64_t until);
/* Signals DK_CAUSE_SHUTDOWN, waits for the grace, gives back what is unfinished, and fills in
 * `leftover`. */
void activity_pool_end(struct activity_pool *pool, struct dk_leftover *leftover);
/* True: everything is freed; else threads in quarantine still use the pool, and it is not freed. */
bool activity_pool_free(struct activity_pool *pool);
/* Whether more work is fetched; if not, the reason. */
bool activity_pool_is_well(struct activity_pool *pool, char *reason, size_t size);
/* For activities: see retry_counts_delayed. */
size_t activity_pool_delayed(struct activity_pool *pool, enum delay *ret_why, char *room,
                             size_t size);

#endif
