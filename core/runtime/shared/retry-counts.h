/* SPDX-License-Identifier: Apache-2.0 */
/* Notes: what this process remembers of instances whose turns did not end in a commit; the worker
 * keeps its own, of activities that came to no end.
 *
 * An instance is poison when its messages were delivered too often without coming to an end.
 * Deliveries that ended because the store could not be reached, or the lease was lost while this
 * process lived, are not its fault: the count as it was then is pardoned, and only what comes on
 * top is judged.  A turn that is delayed has come to an end: its delivery is not counted (but with
 * DK_RUNTIME_FAIL_DELAYED), for trying again does not mend what delays it.  A process that dies
 * writes no note, so an instance that kills it is judged by all.
 *
 * Any thread; one lock.  Old notes go when there are too many.
 */
#ifndef DK_RUNTIME_SHARED_RETRY_COUNTS_H
#define DK_RUNTIME_SHARED_RETRY_COUNTS_H

#include "core/runtime/format/event.h"

#include <stdbool.h>

/* Why a turn is delayed; each is told once for an instance until a commit of it lands. */
enum stall {
  STALL_UNREGISTERED = 0,
  STALL_NONDETERMINISM,
  STALL_CORRUPT,          /* its history, or the message that continues it */
  STALL_UNREADABLE,       /* one of its messages cannot be read */
  STALL_LIMIT,            /* it says more than the store, or max_events, takes */
  STALL_WRONG_CALL,       /* its code calls the runtime wrongly */
  STALL_OVERDUE,          /* its code takes too long */
  STALL_STUCK,            /* its code has not come back from an earlier turn */
  STALL_NO_MEMORY,
  STALL_TAKEN,            /* an id that it gives a message is taken */
  STALL_REFUSED,          /* the store refuses the commit for reasons of its own */
  STALL_DROPPED,          /* not committed while the lease lived */
  STALL_NO_START,         /* messages for an instance that is not known (yet) */
  N_STALLS
};

const char *stall_name(enum stall why); /* "wrong_call" */

struct notes;
struct notes *notes_new(void); /* NULL: no memory */
void notes_free(struct notes *notes); /* NULL is allowed */
/* How often in a row the instance was put off, this time included; *ret_first: for this reason it
 * is the first time. */
uint32_t notes_stalled(struct notes *notes, dk_str instance, enum stall why, bool *ret_first);
/* So it is delayed, until this tick. */
void notes_delayed_until(struct notes *notes, dk_str instance, enum stall why, int64_t until);
/* How many are delayed at this tick.  If any, *ret_why is why one of them is, and `room` has its
 * name.  One whose time is over for long is not counted: another process has taken it. */
size_t notes_delayed(struct notes *notes, int64_t now, enum stall *ret_why, char *room,
                     size_t size);
/* Deliveries up to this count are pardoned. */
void notes_pardon(struct notes *notes, dk_str instance, uint32_t attempt);
/* The count that is to be judged, at least 1. */
uint32_t notes_judged(struct notes *notes, dk_str instance, uint32_t attempt);
/* A commit has landed. */
void notes_forget(struct notes *notes, dk_str instance);

#endif
