/* SPDX-License-Identifier: Apache-2.0 */
/* The turn pool: fetches instances that have messages, runs their code, and commits the
 * decisions. */
#ifndef DK_RUNTIME_TURN_TURN_POOL_H
#define DK_RUNTIME_TURN_TURN_POOL_H

#include "core/runtime/activity/activity-pool.h"
#include "core/runtime/code/registry.h"
#include "core/runtime/lease/leases.h"

struct turn_pool;

struct turn_pool_setup {
  struct dk_store *store;
  const struct dk_runtime_options *options;  /* complete */
  struct leases *leases;
  struct log *log;
  struct activity_pool *activities;          /* gets stolen rows; NULL: none */
  const char *name;                          /* the owner: identifies the cache that holds the
                                                history */
};

dk_status turn_pool_start(const struct turn_pool_setup *setup, struct turn_pool **ret_pool,
                          struct dk_refusal *ret_refusal);
void turn_pool_stop_fetching(struct turn_pool *pool);
bool turn_pool_drain(struct turn_pool *pool, int64_t until);
/* Gives back unfinished turns (not one that is stuck in its code: its lease expires). */
void turn_pool_end(struct turn_pool *pool, struct dk_leftover *leftover);
/* True: everything is freed. */
bool turn_pool_free(struct turn_pool *pool);
bool turn_pool_is_well(struct turn_pool *pool, char *reason, size_t size);
/* For instances: see retry_counts_delayed. */
size_t turn_pool_delayed(struct turn_pool *pool, enum delay *ret_why, char *room, size_t size);

#endif
