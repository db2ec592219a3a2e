/* SPDX-License-Identifier: Apache-2.0 */
/* The turns: fetches instances that have messages, runs their code, commits what it decided. */
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
  struct activity_pool *activities;          /* told of stolen rows; NULL: not */
  const char *name;                          /* the owner: whose cache holds the history */
};

dk_status turn_pool_start(const struct turn_pool_setup *setup, struct turn_pool **ret_pool,
                          struct dk_refusal *ret_refusal);
void turn_pool_stop_fetching(struct turn_pool *pool);
bool turn_pool_drain(struct turn_pool *pool, int64_t until);
/* Gives back what is left (a turn that is stuck in its code stays as it is: its lease runs out). */
void turn_pool_end(struct turn_pool *pool, struct dk_leftover *leftover);
/* Whether all is freed. */
bool turn_pool_free(struct turn_pool *pool);
bool turn_pool_is_well(struct turn_pool *pool, char *reason, size_t size);
/* Of instances, see retry_counts_delayed. */
size_t turn_pool_delayed(struct turn_pool *pool, enum delay *ret_why, char *room, size_t size);

#endif
