/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons: why a turn or an activity is delayed, where everybody can read it who sees the store.
 *
 * A reason is a message to the instance itself, of a kind that no code ever sees.  It is due when
 * what is delayed is, so it comes with it, goes with its commit, and is delayed with it again.
 *
 * A message that is stored cannot be changed, nor removed without a commit.  So a reason that has
 * changed is stored as another message with a higher number, and only the newest one is shown. */
#ifndef DK_RUNTIME_SHARED_DELAY_REASON_H
#define DK_RUNTIME_SHARED_DELAY_REASON_H

#include <durakit/host.h>

#include "core/runtime/shared/retry-counts.h"

/* So many are stored of one turn; the last one says that the reason goes on changing. */
enum { MOST_REASONS = 32 };

struct reason {
  dk_str instance;
  enum delay why;
  uint64_t execution, activity; /* whose it is; 0: the turn's */
  int64_t number;        /* of the turn's: how many were stored before */
  dk_str text, by;       /* the words of the log, and the worker that has logged them */
  int64_t visible_at;    /* until then it is delayed */
};

/* The store's answer.  DK_DUPLICATE: it is stored already. */
dk_status reason_store(struct dk_store *store, struct dk_caller *caller,
                       const struct reason *reason);

/* Does this message say the same, whoever has stored it?  Its memory is the arena's. */
bool reason_is_said(struct dk_arena *arena, const struct dk_message *message,
                    const struct reason *reason);

/* What the id of a reason tells: whose it is, and which of them. */
struct reason_id {
  dk_str whose;
  int64_t number;    /* the greatest of the same is the newest; of an activity: until when */
  bool is_activity;
};
bool reason_read_id(dk_str id, struct reason_id *ret_id); /* false: it is no reason's */

/* The newest reason of the turn among these; NULL: there is none. */
const struct dk_message *reason_newest(const struct dk_message *messages, size_t n);
/* Another one among these is newer, or the activity is not delayed for this one any more. */
bool reason_is_outdated(const struct dk_message *messages, size_t n,
                        const struct dk_message *reason);

#endif
