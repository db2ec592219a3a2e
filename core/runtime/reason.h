/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons: why a turn or an activity is delayed, where everybody can read it who sees the store.
 *
 * A reason is a message to the instance itself, of a kind that no code ever sees.  It is due when
 * what is delayed is, so it comes with it, goes with its commit, and is delayed with it again: it
 * is stored as long as what it says is true. */
#ifndef DK_RUNTIME_REASON_H
#define DK_RUNTIME_REASON_H

#include <durakit/host.h>

#include "core/runtime/notes.h"

struct reason {
  dk_str instance;
  enum stall why;
  uint64_t execution, activity; /* whose it is; 0: the turn's */
  dk_str text, by;       /* the words of the log, and the worker that has logged them */
  int64_t visible_at;    /* until then it is delayed */
};

/* The store's answer.  DK_DUPLICATE: it is stored already. */
dk_status reason_store(struct dk_store *store, struct dk_caller *caller,
                       const struct reason *reason);

#endif
