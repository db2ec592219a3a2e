/* SPDX-License-Identifier: Apache-2.0 */
/* The turns: fetches instances that have messages, runs their code, commits what it decided. */
#ifndef DK_RUNTIME_TURN_TURN_POOL_H
#define DK_RUNTIME_TURN_TURN_POOL_H

#include "core/runtime/activity/activity-pool.h"
#include "core/runtime/code/registry.h"
#include "core/runtime/lease/leases.h"

struct turns;

struct turns_setup {
  struct dk_store *store;
  const struct dk_runtime_options *options;  /* complete */
  struct keeper *keeper;
  struct journal *journal;
  struct worker *worker;                     /* told of stolen rows; NULL: not */
  const char *name;                          /* the owner: whose cache holds the history */
};

dk_status turns_start(const struct turns_setup *setup, struct turns **ret_turns,
                      struct dk_refusal *ret_refusal);
void turns_stop_fetching(struct turns *turns);
bool turns_drain(struct turns *turns, int64_t until);
/* Gives back what is left (a turn that is stuck in its code stays as it is: its lease runs out). */
void turns_end(struct turns *turns, struct dk_leftover *leftover);
/* Whether all is freed. */
bool turns_free(struct turns *turns);
bool turns_healthy(struct turns *turns, char *reason, size_t size);
/* Of instances, see notes_delayed. */
size_t turns_delayed(struct turns *turns, enum stall *ret_why, char *room, size_t size);

#endif
