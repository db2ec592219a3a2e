/* SPDX-License-Identifier: Apache-2.0 */
/* The rule by position (replay.h), in one place: all that an orchestration may learn of the order
 * of things goes through these three.  Owns nothing.
 *
 * A position is the id of the event by which something became ready; POSITION_NONE: it is not. */
#ifndef DK_RUNTIME_CODE_WINNER_RULE_H
#define DK_RUNTIME_CODE_WINNER_RULE_H

#include <stdbool.h>
#include <stdint.h>

#define POSITION_NONE UINT64_MAX

/* any and select, argument by argument: the candidate is a better winner than the best so far. */
bool rule_prefers(uint64_t candidate, uint64_t best, uint64_t now);

/* What does not wait may see it: ready and try_dequeue. */
bool rule_sees(uint64_t position, uint64_t now);

/* To drop it is nothing: it was over before. */
bool rule_is_over(uint64_t position, uint64_t now);

#endif
