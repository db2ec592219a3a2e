/* SPDX-License-Identifier: Apache-2.0 */
/* Many failures at a glance: the clauses they violate, and which failures repeat an earlier one. */
#ifndef DK_RUNNER_REPORT_OVERVIEW_H
#define DK_RUNNER_REPORT_OVERVIEW_H

#include "core/base/text.h"
#include "runner/run/run.h"

/* "violated: TIME-4 (12 checks), TOKEN-4 (3)"; "" if fewer than two checks have failed. */
void overview_text(struct dk_text *text, const struct run *run);
/* An earlier check with the same failure: the same answer of the same operation, a process that
 * ended or hung at the same place in the same way, the same damage or the same leak; NULL: none. */
const struct result *overview_same(const struct run *run, const struct result *result);
/* The result of the same check natively, if it hung; NULL: it did not, or is not known yet. */
const struct result *overview_hung_twin(const struct run *run, const struct result *result);
/* If natively the same check failed in the same way as an earlier one: that earlier check; else
 * NULL. */
const struct result *overview_failed_twin(const struct run *run, const struct result *result);

#endif
