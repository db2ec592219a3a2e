/* SPDX-License-Identifier: Apache-2.0 */
/* A check, run again in another way: with larger payloads, other ids, longer lists, second
 * deliveries.
 *
 * The check does not know.  What it sends is changed on its way to the provider, and what comes
 * back is changed back: so the check expects what it always expects.  What comes back with another
 * padding than was sent with it is a failure of its own.  See checks/variations.def. */
#ifndef DK_KIT_VARY_H
#define DK_KIT_VARY_H

#include "conformance/kit/check.h"
#include "core/base/arena.h"

struct op;
/* The operation, its request varied and its reply brought back.  `run` makes the call. */
void kit_vary(struct op *op, struct dk_store *store, struct dk_caller *caller,
              dk_status (*run)(struct op *op, struct dk_store *store, struct dk_caller *caller));

/* What a variation does to lists (lengthen.c): false: no memory. */
bool kit_lengthen_result(struct dk_arena *arena, size_t by, const struct dk_limits *limits,
                         struct dk_turn_result *result);
bool kit_lengthen_fetch(struct dk_arena *arena, size_t by, struct op *op);

/* True: this is the id of an instance that is there besides those of the check (neighbours.c). */
bool kit_is_neighbour(const struct variation *by, struct dk_bytes id);

#endif
