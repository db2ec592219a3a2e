/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches whose answer was lost, and what they have locked: it is given back by the fetch's id, as
 * soon as the store answers again, so that it need not wait for the end of a lease.  A store that
 * cannot do that (no release_fetch) is left to its leases. */
#ifndef DK_RUNTIME_LEASE_LOST_FETCH_H
#define DK_RUNTIME_LEASE_LOST_FETCH_H

#include <stdatomic.h>
#include <stdbool.h>

#include <durakit/host.h>

/* Where the ids come from; any thread. */
struct fetch_ids {
  bool can_release;
  _Atomic uint64_t last; /* begins at random: no other process gives the same */
};
void fetch_ids_begin(struct fetch_ids *ids, struct dk_store *store);
uint64_t fetch_ids_next(struct fetch_ids *ids); /* 0: nothing could be released by it */

/* The fetch that one thread has made last, if its answer was lost. */
struct lost_fetch {
  uint64_t id;      /* 0: none was */
  dk_status status; /* the last answer: why it is not given back yet */
};
/* What that fetch has answered. */
void lost_fetch_note(struct lost_fetch *lost, uint64_t id, dk_status status);
/* Gives it back.  DK_OK: nothing is lost any more, or nothing can be done about it; else it is to
 * be called again, after a pause, and no fetch made before. */
dk_status lost_fetch_release(struct lost_fetch *lost, struct dk_store *store,
                             struct dk_caller *caller);
/* Is it worth a last attempt when no fetch follows?  Not if the store could not be reached: a stop
 * does not wait for that. */
bool lost_fetch_is_near(const struct lost_fetch *lost);

#endif
