/* SPDX-License-Identifier: Apache-2.0 */
/* The leases: keeps the leases of all running turns and activities.
 *
 * A lease is renewed every lock - buffer.  DK_OK extends the local deadline, counted from before
 * the call, in ticks (CLOCK_MONOTONIC milliseconds: a wall clock that is set moves no lease).  What
 * can be tried again is tried until that deadline, each time after a fifth of what is left, at
 * least 50 ms.  Only DK_LOCK_LOST, or the deadline itself, is a loss.  A renewal that hangs in the
 * provider holds up no other lease, and is called back after a quarter of the lock, in time to be
 * tried again.
 */
#ifndef DK_RUNTIME_LEASE_LEASES_H
#define DK_RUNTIME_LEASE_LEASES_H

#include "core/runtime/shared/log.h"
#include "core/runtime/shared/ticks.h"

#include <stdbool.h>

struct leases;
struct lease;

enum lease_kind { LEASE_TURN, LEASE_WORK };

/* How a lease was lost: DK_LOCK_LOST as the store's answer while the lease lived, or the deadline
 * (also when the store's answer came after it). */
enum loss { LOSS_REFUSED, LOSS_DEADLINE };

struct lease_terms {
  enum lease_kind kind;
  dk_str token;           /* copied */
  int64_t lock_ms, buffer_ms;
  int64_t deadline;       /* in ticks; held to be lock_ms from now at most */
  /* Whose it is, for the log.  The text is copied. */
  dk_str instance, activity, orchestration;
  uint64_t execution_id, activity_id;
  /* Called at most once, by a thread of the leases, without its lock; must neither block nor let
   * the lease go. */
  void (*lost)(void *context, enum loss loss);
  void *context;
};

struct leases_setup {
  struct dk_store *store;
  struct log *log;
};

/* DK_OK, DK_NO_MEMORY. */
dk_status leases_start(const struct leases_setup *setup, struct leases **ret_leases);
/* All leases have been let go by then; renewals under way are called back.  How many do not come
 * back for all that, after some seconds: their threads are left, use the store when they come back,
 * and the last one frees the leases; 0: all is freed. */
uint32_t leases_stop(struct leases *leases);

/* NULL: no memory.  Renewed from now on. */
struct lease *leases_keep(struct leases *leases, const struct lease_terms *terms);
/* Not renewed any more; when this returns `lost` does not run and will not be called, and the lease
 * is freed.  Waits for no provider: a renewal under way ends by itself, and nobody hears of it. */
void leases_let_go(struct leases *leases, struct lease *lease);
/* Not renewed any more, but still there, from the moment an acknowledgement of it goes out: `lost`
 * is not called from now on; a renewal under way may still extend it.  false: it is lost, and
 * `lost` was called, or is just being called. */
bool lease_rest(struct lease *lease);
/* In ticks.  After a loss: in the past. */
int64_t lease_deadline(const struct lease *lease);
/* The tick at which the lease was last known to be good: before the last renewal that was DK_OK, or
 * before it was handed over. */
int64_t lease_good_at(const struct lease *lease);

#endif
