/* SPDX-License-Identifier: Apache-2.0 */
/* Delayed starts: turns that are delayed while their lease is kept, so that the whole instance
 * waits.  Used with providers without durakit.admin/1.
 *
 * A start that cannot run yet (the orchestration is not registered) leaves no trace in the store:
 * the instance is unknown.  If it were given back with a delay, only the start would be invisible,
 * and a later message (a cancel request) would look like one for an instance that was never
 * started.  So its lease is extended to a little more than the delay.  Nothing of the instance is
 * fetched meanwhile, and then it is given back without a delay: all its messages are fetched
 * together, in order.
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
/* Starts one thread.  NULL: no memory, no thread. */
struct delayed_starts *delayed_starts_begin(struct dk_store *store);
/* Gives the turn of this token back at that tick, without counting the attempt.  False: it cannot
 * take it (any more). */
bool delayed_starts_put(struct delayed_starts *delayed_starts, struct dk_bytes token, int64_t at);
/* Gives all back now.  False: a call of the store does not return; the thread and the memory
 * remain. */
bool delayed_starts_end(struct delayed_starts *delayed_starts); /* NULL is allowed */

#endif
