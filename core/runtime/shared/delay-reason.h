/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons: why a turn or an activity is delayed, stored so that everyone with access to the store
 * can read it.
 *
 * A reason is a message to the instance itself, of a kind that its code never sees.  It becomes
 * visible at the same time as what it explains: so it is fetched with it, deleted by its commit,
 * and delayed with it again.
 *
 * A stored message cannot be changed, and only a commit can remove it.  So a changed reason is
 * stored as another message with a higher number, and only the newest one is shown. */
#ifndef DK_RUNTIME_SHARED_DELAY_REASON_H
#define DK_RUNTIME_SHARED_DELAY_REASON_H

#include <durakit/host.h>

#include "core/runtime/shared/retry-counts.h"

/* The maximum number stored for one turn; the last one reports that the reason keeps changing. */
enum { MOST_REASONS = 32 };

struct reason {
  dk_str instance;
  enum delay why;
  uint64_t execution, activity; /* the activity; 0: it is the turn's */
  int64_t number;        /* of a turn: how many were stored before */
  dk_str text, by;       /* the text of the log, and the worker that logged it */
  int64_t visible_at;    /* until then it is delayed */
};

/* Stores the reason and returns the store's answer.  DK_DUPLICATE: it is stored already. */
dk_status reason_store(struct dk_store *store, struct dk_caller *caller,
                       const struct reason *reason);

/* Whether this message has the same content, whichever worker stored it.  Uses memory of the
 * arena. */
bool reason_is_same(struct dk_arena *arena, const struct dk_message *message,
                    const struct reason *reason);

/* The parts of a reason's id: the activity (or the turn), and the number. */
struct reason_id {
  dk_str whose;
  int64_t number;    /* the greatest is the newest; of an activity: until when */
  bool is_activity;
};
bool reason_read_id(dk_str id, struct reason_id *ret_id); /* false: not the id of a reason */

/* The newest reason of the turn among these; NULL: there is none. */
const struct dk_message *reason_newest(const struct dk_message *messages, size_t n);
/* Another one among these is newer, or the activity is no longer delayed for this one. */
bool reason_is_outdated(const struct dk_message *messages, size_t n,
                        const struct dk_message *reason);

#endif
