/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes a decision for the store, in the arena. */
#ifndef DK_RUNTIME_TURN_COMMIT_ENCODE_H
#define DK_RUNTIME_TURN_COMMIT_ENCODE_H

#include "core/runtime/code/decision.h"

/* NULL: no memory. */
struct dk_turn_result *commit_encode(struct dk_arena *arena, const struct decision *decision,
                                     dk_str owner);
/* The empty commit with these messages. */
struct dk_turn_result *commit_encode_nothing(struct dk_arena *arena,
                                             const struct outgoing *answers, size_t n_answers);

#endif
