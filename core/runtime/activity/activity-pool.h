/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: fetches activities, runs them in slots, tells them to end, acknowledges. */
#ifndef DK_RUNTIME_ACTIVITY_ACTIVITY_POOL_H
#define DK_RUNTIME_ACTIVITY_ACTIVITY_POOL_H

#include "core/runtime/code/registry.h"
#include "core/runtime/format/event.h"
#include "core/runtime/lease/leases.h"

struct worker;

struct worker_setup {
  struct dk_store *store;
  const struct dk_runtime_options *options;  /* complete: no zeros left (options.h); outlives it */
  struct keeper *keeper;
  struct journal *journal;
  const char *name;                          /* the owner given with fetches */
};

dk_status worker_start(const struct worker_setup *setup, struct worker **ret_worker,
                       struct dk_refusal *ret_refusal);
/* The commit of a turn in this process has deleted these rows just now: whoever runs them here is
 * told (DK_CAUSE_CANCELLED, DK_LEARNT_BY_COMMIT).  Tokens that are not known are somebody
 * else's. */
void worker_signal(struct worker *worker, dk_str instance, const struct dk_stolen *stolen,
                   size_t n_stolen);
/* The phases of dk_runtime_stop, each called once, in order. */
void worker_stop_fetching(struct worker *worker);
/* Waits for what runs until that tick; whether nothing runs any more. */
bool worker_drain(struct worker *worker, int64_t until);
/* Signals DK_CAUSE_SHUTDOWN, waits for the grace, gives back what is left, and fills in. */
void worker_end(struct worker *worker, struct dk_leftover *leftover);
/* Whether all is freed; else threads in quarantine use it, and it stays. */
bool worker_free(struct worker *worker);
/* Whether more work is fetched; else why not. */
bool worker_healthy(struct worker *worker, char *reason, size_t size);
/* Of activities, see notes_delayed. */
size_t worker_delayed(struct worker *worker, enum stall *ret_why, char *room, size_t size);

#endif
