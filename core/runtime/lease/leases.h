/* SPDX-License-Identifier: Apache-2.0 */
/* The leases of all running turns and activities: renews them, and reports those that are lost.
 *
 * A lease is renewed every lock - buffer.  DK_OK extends the local deadline, counted from before
 * the call, in ticks (milliseconds of CLOCK_MONOTONIC: setting the wall clock moves no lease).  A
 * renewal that fails with a temporary error is repeated until that deadline, each time after a
 * fifth of the remaining time, at least 50 ms.  A lease is lost only by DK_LOCK_LOST or by the
 * deadline itself.  A renewal that hangs in the provider delays no other lease, and is cancelled
 * after a quarter of the lock, in time to be repeated.
 */
#ifndef DK_RUNTIME_LEASE_LEASES_H
#define DK_RUNTIME_LEASE_LEASES_H

#include "core/runtime/shared/log.h"
#include "core/runtime/shared/ticks.h"

#include <stdbool.h>

struct leases;
struct lease;

enum lease_kind { LEASE_TURN, LEASE_WORK };

/* How a lease was lost: the store answered DK_LOCK_LOST before the deadline, or the deadline has
 * passed (even if the store answered after it). */
enum loss { LOSS_REFUSED, LOSS_DEADLINE };

struct lease_terms {
  enum lease_kind kind;
  dk_str token;           /* copied */
  int64_t lock_ms, buffer_ms;
  int64_t deadline;       /* in ticks; treated as at most lock_ms from now */
  /* What it belongs to, for the log.  The text is copied. */
  dk_str instance, activity, orchestration;
  uint64_t execution_id, activity_id;
  /* Called at most once, by a thread of the leases, without their lock; must neither block nor
   * release the lease. */
  void (*lost)(void *context, enum loss loss);
  void *context;
};

struct leases_setup {
  struct dk_store *store;
  struct log *log;
};

/* DK_OK, DK_NO_MEMORY. */
dk_status leases_start(const struct leases_setup *setup, struct leases **ret_leases);
/* All leases must have been released before.  Cancels running renewals.  Returns how many have
 * still not returned after some seconds: their threads are abandoned, use the store when they
 * return, and the last one frees the leases; 0: everything is freed. */
uint32_t leases_stop(struct leases *leases);

/* NULL: no memory.  Renewed from now on. */
struct lease *leases_keep(struct leases *leases, const struct lease_terms *terms);
/* Releases the lease: it is no longer renewed.  When this returns, `lost` does not run and will not
 * be called, and the lease is freed.  It never waits for the provider: a running renewal ends by
 * itself, without a report. */
void leases_let_go(struct leases *leases, struct lease *lease);
/* Stops renewing the lease, but keeps it.  Call it before you commit or acknowledge what the lease
 * protects.  `lost` is not called from now on; a running renewal may still extend it.  false: it is
 * lost, and `lost` was called, or is being called. */
bool lease_rest(struct lease *lease);
/* In ticks.  After a loss: in the past. */
int64_t lease_deadline(const struct lease *lease);
/* The tick at which the lease was last known to be valid: before the last successful renewal, or
 * before leases_keep. */
int64_t lease_good_at(const struct lease *lease);

#endif
