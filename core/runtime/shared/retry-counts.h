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
enum delay {
  DELAY_UNREGISTERED = 0,
  DELAY_NONDETERMINISM,
  DELAY_CORRUPT,    /* its history, or the message that continues it */
  DELAY_UNREADABLE, /* one of its messages cannot be read */
  DELAY_LIMIT,      /* it says more than the store, or max_events, takes */
  DELAY_WRONG_CALL, /* its code calls the runtime wrongly */
  DELAY_OVERDUE,    /* its code takes too long */
  DELAY_STUCK,      /* its code has not come back from an earlier turn */
  DELAY_NO_MEMORY,
  DELAY_TAKEN,    /* an id that it gives a message is taken */
  DELAY_REFUSED,  /* the store refuses the commit for reasons of its own */
  DELAY_DROPPED,  /* not committed while the lease lived */
  DELAY_NO_START, /* messages for an instance that is not known (yet) */
  N_DELAYS
};

const char *delay_name(enum delay why); /* "wrong_call" */

struct retry_counts;
struct retry_counts *retry_counts_new(void);          /* NULL: no memory */
void retry_counts_free(struct retry_counts *retries); /* NULL is allowed */
/* How often in a row the instance was put off, this time included; *ret_first: for this reason it
 * is the first time. */
uint32_t retry_counts_delayed_again(struct retry_counts *retries, dk_str instance, enum delay why,
                                    bool *ret_first);
/* So it is delayed, until this tick. */
void retry_counts_delayed_until(struct retry_counts *retries, dk_str instance, enum delay why,
                                int64_t until);
/* How many are delayed at this tick.  If any, *ret_why is why one of them is, and `room` has its
 * name.  One whose time is over for long is not counted: another process has taken it. */
size_t retry_counts_delayed(struct retry_counts *retries, int64_t now, enum delay *ret_why,
                            char *room, size_t size);
/* Deliveries up to this count are pardoned. */
void retry_counts_pardon(struct retry_counts *retries, dk_str instance, uint32_t attempt);
/* The count that is to be judged, at least 1. */
uint32_t retry_counts_judged(struct retry_counts *retries, dk_str instance, uint32_t attempt);
/* A commit has landed. */
void retry_counts_forget(struct retry_counts *retries, dk_str instance);

#endif
