/* SPDX-License-Identifier: Apache-2.0 */
/* Many failures at a glance: which clauses they are of, and which of them is told already. */
#ifndef DK_RUNNER_REPORT_OVERVIEW_H
#define DK_RUNNER_REPORT_OVERVIEW_H

#include "core/base/text.h"
#include "runner/run/run.h"

/* "violated: TIME-4 (12 checks), TOKEN-4 (3)"; "" if less than two checks have failed. */
void overview_text(struct dk_text *text, const struct run *run);
/* An earlier check that got the same answer of the same operation, whose process ended or hung at
 * the same place in the same way, or that left the same damage or the same leak; NULL: none. */
const struct result *overview_same(const struct run *run, const struct result *result);
/* That of the same check natively, if it hung; NULL: it did not, or is not known yet. */
const struct result *overview_hung_twin(const struct run *run, const struct result *result);
/* If the same check failed natively as an earlier one did: that; NULL: it did not. */
const struct result *overview_failed_twin(const struct run *run, const struct result *result);

#endif
