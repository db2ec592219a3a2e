/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: fetches activities, runs them in slots, tells them to end, acknowledges. */
#ifndef DK_RUNTIME_ACTIVITY_ACTIVITY_POOL_H
#define DK_RUNTIME_ACTIVITY_ACTIVITY_POOL_H

#include "core/runtime/code/registry.h"
#include "core/runtime/format/event.h"
#include "core/runtime/lease/leases.h"

struct activity_pool;

struct activity_pool_setup {
  struct dk_store *store;
  const struct dk_runtime_options *options;  /* complete: no zeros left (options.h); outlives it */
  struct leases *leases;
  struct log *log;
  const char *name;                          /* the owner given with fetches */
};

dk_status activity_pool_start(const struct activity_pool_setup *setup,
                              struct activity_pool **ret_pool, struct dk_refusal *ret_refusal);
/* The commit of a turn in this process has deleted these rows just now: whoever runs them here is
 * told (DK_CAUSE_CANCELLED, DK_LEARNT_BY_COMMIT).  Tokens that are not known are somebody
 * else's. */
void activity_pool_signal(struct activity_pool *pool, dk_str instance,
                          const struct dk_stolen *stolen, size_t n_stolen);
/* The phases of dk_runtime_stop, each called once, in order. */
void activity_pool_stop_fetching(struct activity_pool *pool);
/* Waits for what runs until that tick; whether nothing runs any more. */
bool activity_pool_drain(struct activity_pool *pool, int64_t until);
/* Signals DK_CAUSE_SHUTDOWN, waits for the grace, gives back what is left, and fills in. */
void activity_pool_end(struct activity_pool *pool, struct dk_leftover *leftover);
/* Whether all is freed; else threads in quarantine use it, and it stays. */
bool activity_pool_free(struct activity_pool *pool);
/* Whether more work is fetched; else why not. */
bool activity_pool_is_well(struct activity_pool *pool, char *reason, size_t size);
/* Of activities, see retry_counts_delayed. */
size_t activity_pool_delayed(struct activity_pool *pool, enum delay *ret_why, char *room,
                             size_t size);

#endif
