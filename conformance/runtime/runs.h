/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the checks of the profile `runtime`. */
#ifndef DK_CONFORMANCE_RUNS_H
#define DK_CONFORMANCE_RUNS_H

#include "conformance/runtime/run.h"

/* A mutant of the model on which the check fails. */
struct dk_control {
  const char *check, *mutant;
};
const struct dk_control *dk_controls(size_t *ret_n);

#define RUN(function, name, clauses, needs, says) void run_##function(struct dk_check *t);
#include "conformance/runtime/runs.def"

#endif
