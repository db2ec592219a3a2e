/* SPDX-License-Identifier: Apache-2.0 */
/* The rule by position: see winner-rule.h.  It has its own file, so that a test can replace it by a
 * wrong rule and check that this is found. */
#include "core/runtime/code/winner-rule.h"

/* If the best is at or before `now`, it stays: it is the first of the arguments that the code sees
 * as ready.  Else the smallest position wins, which is one at or before `now` if there is any. */
bool
rule_prefers(uint64_t candidate, uint64_t best, uint64_t now)
{
  return best > now && candidate < best;
}

bool
rule_sees(uint64_t position, uint64_t now)
{
  return position <= now;
}

bool
rule_is_over(uint64_t position, uint64_t now)
{
  return position <= now;
}
