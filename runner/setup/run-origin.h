/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the stores of a run are: `durakit clean` removes them with the same plugin, and where they
 * are. */
#ifndef DK_RUNNER_SETUP_RUN_ORIGIN_H
#define DK_RUNNER_SETUP_RUN_ORIGIN_H

#include "core/base/text.h"
#include "runner/run/run.h"

/* Into the run's folder, before the first store is made; false with errno. */
bool run_origin_note(const struct run *run);
enum run_origin {
  RUN_ORIGIN_SAME,
  RUN_ORIGIN_DIFFERS, /* *ret_how says by what */
  RUN_ORIGIN_UNKNOWN   /* it could not be read or compared: *ret_how says why */
};
/* Whether the stores of the run that had this folder, which is open, are those of `run`. */
enum run_origin run_origin_compare(const struct run *run, int folder, struct dk_text *ret_how);

#endif
