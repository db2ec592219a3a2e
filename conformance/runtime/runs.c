/* SPDX-License-Identifier: Apache-2.0 */
/* All checks of the profile `runtime`, made from runs.def. */
#include "conformance/runtime/runs.h"

#define ROW(row, id_, function, clauses_, needs_, says_)                                           \
  static const struct check row = {                                                                \
    .id = id_,                                                                                     \
    .clauses = clauses_,                                                                           \
    .says = says_,                                                                                 \
    .run = function,                                                                               \
    .needs = needs_,                                                                               \
    .flags = IS_RUNTIME | IS_SLOW,                                                                 \
  };

#define RUN(function, name, clauses, needs, says)                                                  \
  ROW(row_##function, "run/" name, run_##function, clauses, needs, says)
#define TWICE(function, name, clauses, needs, says)                                                \
  RUN(function, name, clauses, needs, says)                                                        \
  static void again_##function(struct dk_check *t)                                                 \
  {                                                                                                \
    without_local_signal();                                                                        \
    run_##function(t);                                                                             \
  }                                                                                                \
  ROW(row_again_##function, "run/" name "-by-renewal", again_##function, clauses, needs,           \
      says " (learnt by renewal)")
#include "conformance/runtime/runs.def"

static const struct check *const all[] = {
#define RUN(function, name, clauses, needs, says) &row_##function,
#define TWICE(function, name, clauses, needs, says) &row_##function, &row_again_##function,
#include "conformance/runtime/runs.def"
};

const struct check *const *
dk_runtime_checks(size_t *ret_n)
{
  *ret_n = sizeof(all) / sizeof(all[0]);
  return all;
}

static const struct dk_control controls[] = {
#define CONTROL(check, mutant) {check, mutant},
#include "conformance/runtime/controls.def"
};

const struct dk_control *
dk_controls(size_t *ret_n)
{
  *ret_n = sizeof(controls) / sizeof(controls[0]);
  return controls;
}
