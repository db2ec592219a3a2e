/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit check --next`: for an author whose provider still lacks operations. */
#ifndef DK_RUNNER_COMMANDS_NEXT_OPERATION_H
#define DK_RUNNER_COMMANDS_NEXT_OPERATION_H

#include "runner/run/run.h"

/* A check that needs an operation which is not written yet is skipped; the skip names it. */
void next_operation_judge(const struct run *run, struct result *result);
/* Which operation to write next, and its clauses. */
void next_operation_print(const struct run *run);

#endif
