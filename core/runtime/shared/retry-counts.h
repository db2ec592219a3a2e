/* SPDX-License-Identifier: Apache-2.0 */
/* Retry counts: what this process remembers about instances whose turns did not end in a commit.
 * The activity pool has its own, about activities that did not end.
 *
 * An instance is poison when its messages were delivered too often without a commit.  If a delivery
 * ended because the store was unreachable, or because the lease was lost while this process lived,
 * the instance is not to blame: deliveries up to that one are pardoned, and only later ones count.
 * A turn that is delayed has ended properly: its delivery is not counted (except with
 * DK_RUNTIME_FAIL_DELAYED), because a retry does not fix the cause of the delay.  A process that
 * crashes pardons nothing, so for an instance that crashes it all deliveries count.
 *
 * Any thread; one lock.  Old rows are deleted when there are too many.
 */
#ifndef DK_RUNTIME_SHARED_RETRY_COUNTS_H
#define DK_RUNTIME_SHARED_RETRY_COUNTS_H

#include "core/runtime/format/event.h"

#include <stdbool.h>

/* Why a turn is delayed; each reason is logged once for an instance until a commit of it
 * succeeds. */
enum delay {
  DELAY_UNREGISTERED = 0,
  DELAY_NONDETERMINISM,
  DELAY_CORRUPT,    /* its history, or the message that continues it */
  DELAY_UNREADABLE, /* one of its messages cannot be read */
  DELAY_LIMIT,      /* it produces more than the store, or max_events, allows */
  DELAY_WRONG_CALL, /* its code makes an invalid call of the runtime */
  DELAY_OVERDUE,    /* its code takes too long */
  DELAY_STUCK,      /* its code has not returned from an earlier turn */
  DELAY_NO_MEMORY,
  DELAY_TAKEN,    /* an id that it gives to a message is taken */
  DELAY_REFUSED,  /* the store refuses the commit for another reason */
  DELAY_DROPPED,  /* not committed before its lease ended */
  DELAY_NO_START, /* messages for an instance that is not known (yet) */
  N_DELAYS
};

const char *delay_name(enum delay why); /* "wrong_call" */

struct retry_counts;
struct retry_counts *retry_counts_new(void);          /* NULL: no memory */
void retry_counts_free(struct retry_counts *retries); /* NULL is allowed */
/* How often in a row the instance was delayed, including this time; *ret_first: the first time for
 * this reason. */
uint32_t retry_counts_delayed_again(struct retry_counts *retries, dk_str instance, enum delay why,
                                    bool *ret_first);
/* It is delayed until this tick. */
void retry_counts_delayed_until(struct retry_counts *retries, dk_str instance, enum delay why,
                                int64_t until);
/* How many are delayed at this tick.  If any, *ret_why is the reason of one of them, and `room`
 * gets its name.  One whose delay ended long ago is not counted: another process has taken it. */
size_t retry_counts_delayed(struct retry_counts *retries, int64_t now, enum delay *ret_why,
                            char *room, size_t size);
/* Deliveries up to this count are pardoned. */
void retry_counts_pardon(struct retry_counts *retries, dk_str instance, uint32_t attempt);
/* The count without the pardoned deliveries, at least 1. */
uint32_t retry_counts_judged(struct retry_counts *retries, dk_str instance, uint32_t attempt);
/* A commit has succeeded. */
void retry_counts_forget(struct retry_counts *retries, dk_str instance);

#endif
