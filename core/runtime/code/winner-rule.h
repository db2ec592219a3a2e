/* SPDX-License-Identifier: Apache-2.0 */
/* The rule by position (replay.h), in one place: an orchestration learns the order of events only
 * through these three functions.  Owns nothing.
 *
 * A position is the id of the event that made something ready; POSITION_NONE: it is not ready. */
#ifndef DK_RUNTIME_CODE_WINNER_RULE_H
#define DK_RUNTIME_CODE_WINNER_RULE_H

#include <stdbool.h>
#include <stdint.h>

#define POSITION_NONE UINT64_MAX

/* For any and select, argument by argument: the candidate wins against the best so far. */
bool rule_prefers(uint64_t candidate, uint64_t best, uint64_t now);

/* Calls that do not wait (ready and try_dequeue) may see it. */
bool rule_sees(uint64_t position, uint64_t now);

/* Dropping it has no effect: it had already ended. */
bool rule_is_over(uint64_t position, uint64_t now);

#endif
