/* SPDX-License-Identifier: Apache-2.0 */
/* Parking: turns that are delayed while their lease is kept, so that the whole instance waits; on
 * providers without durakit.admin/1.
 *
 * A start that cannot be run yet (nobody has registered the orchestration) leaves no trace in the
 * store: the instance is not known.  Given back with a delay, it alone would be invisible, and what
 * comes after it (a cancel request) would be taken for messages of an instance that was never
 * started.  So its lease is made as long as the delay and a bit, nothing is fetched of it
 * meanwhile, and then it is given back at once: all its messages come together, in order.
 */
#ifndef DK_RUNTIME_TURN_DELAYED_STARTS_H
#define DK_RUNTIME_TURN_DELAYED_STARTS_H

#include <durakit/host.h>

#include <stdbool.h>

enum {
  MOST_DELAYED_STARTS = 1024,
  DELAYED_START_MARGIN_MS = 5000 /* by which a lease outlasts its delay */
};

struct delayed_starts;
/* One thread.  NULL: no memory, no thread. */
struct delayed_starts *delayed_starts_begin(struct dk_store *store);
/* The turn of this token is given back at that tick, its attempt not counted.  False: there is no
 * place (any more). */
bool delayed_starts_put(struct delayed_starts *delayed_starts, struct dk_bytes token, int64_t at);
/* All are given back now.  False: a call of the store does not come back; the thread and the memory
 * stay. */
bool delayed_starts_end(struct delayed_starts *delayed_starts); /* NULL is allowed */

#endif
