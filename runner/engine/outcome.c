/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a task: see engine.h. */
#include <stdlib.h>
#include <string.h>

#include "runner/engine/engine.h"
#include "runner/memory/findings.h"

void
outcome_free(struct outcome *outcome)
{
  if (!outcome)
    return;
  free(outcome->report);
  free(outcome->probe);
  free(outcome->output);
  findings_free(outcome->findings);
  free(outcome);
}

bool
outcome_removed(const struct outcome *outcome, const char *suffix)
{
  const struct kit_report *removal = outcome->report;

  for (uint32_t i = 0; i < removal->n_stores; i++) {
    if (removal->store_gone[i] && strcmp(removal->stores[i], suffix) == 0)
      return true;
  }
  return false;
}

bool
outcome_was_ended(const struct outcome *outcome)
{
  return outcome->verdict == VERDICT_CRASH || outcome->verdict == VERDICT_TIMEOUT
         || outcome->verdict == VERDICT_EARLY_EXIT || outcome->verdict == VERDICT_HOST_DAMAGE;
}
