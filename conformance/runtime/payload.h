/* SPDX-License-Identifier: Apache-2.0 */
/* The payloads of the runtime, for checks that look into a history or write to a queue by hand.  A
 * file of its own, because the runtime and the kit use the same names for different things. */
#ifndef DK_CONFORMANCE_PAYLOAD_H
#define DK_CONFORMANCE_PAYLOAD_H

#include <stdbool.h>

#include <durakit/host.h>

#include "core/base/arena.h"

/* The contents of an event that checks need. */
struct told {
  const char *kind;   /* "activity_completed" */
  const char *code;   /* "select_loser_timeout"; "" */
  uint64_t source;
};

/* false: it cannot be read, and *ret_why says why. */
bool payload_event(struct dk_arena *arena, struct dk_bytes payload, struct told *ret_told,
                   const char **ret_why);
/* The payload in the arena; absent without memory. */
struct dk_bytes payload_completion(struct dk_arena *arena, uint64_t execution, uint64_t activity,
                                   const char *text);
struct dk_bytes payload_order(struct dk_arena *arena, const char *name, const char *input);

#endif
