/* SPDX-License-Identifier: Apache-2.0 */
/* The rule by position: see winner-rule.h.  A file of its own, so that a test can put a wrong rule
 * in its place and see that it is found. */
#include "core/runtime/code/winner-rule.h"

/* A best at or before `now` stays: it was the first of the arguments that is seen ready.  Else the
 * smallest position wins, and that is one at or before `now` if there is any. */
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
