/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches whose answer was lost, and what they have locked: that is given back by the fetch's id,
 * as soon as the store answers again, so that it need not wait for the end of a lease.  If the
 * store cannot do that (no release_fetch), the leases expire. */
#ifndef DK_RUNTIME_LEASE_LOST_FETCH_H
#define DK_RUNTIME_LEASE_LOST_FETCH_H

#include <stdatomic.h>
#include <stdbool.h>

#include <durakit/host.h>

/* The source of the ids; any thread. */
struct fetch_ids {
  bool can_release;
  _Atomic uint64_t last; /* begins at random, so that no other process has the same ids */
};
void fetch_ids_begin(struct fetch_ids *ids, struct dk_store *store);
uint64_t fetch_ids_next(struct fetch_ids *ids); /* 0: an id that release_fetch cannot use */

/* The last fetch of one thread, if its answer was lost. */
struct lost_fetch {
  uint64_t id;      /* 0: none was */
  dk_status status; /* the last answer: why it is not given back yet */
};
/* Records what that fetch has answered. */
void lost_fetch_note(struct lost_fetch *lost, uint64_t id, dk_status status);
/* Gives back what it locked.  DK_OK: nothing is lost any more, or nothing can be done about it;
 * else call it again, after a pause, and before the next fetch. */
dk_status lost_fetch_release(struct lost_fetch *lost, struct dk_store *store,
                             struct dk_caller *caller);
/* Whether a last attempt makes sense when no fetch follows: not if the store was unreachable,
 * because a stop does not wait for it. */
bool lost_fetch_is_near(const struct lost_fetch *lost);

#endif
