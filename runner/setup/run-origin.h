/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin and settings that made the stores of a run: `durakit clean` removes stores only with
 * the same ones. */
#ifndef DK_RUNNER_SETUP_RUN_ORIGIN_H
#define DK_RUNNER_SETUP_RUN_ORIGIN_H

#include "core/base/text.h"
#include "runner/run/run.h"

/* Writes them into the run's folder, before the first store is made; false with errno. */
bool run_origin_note(const struct run *run);
enum run_origin {
  RUN_ORIGIN_SAME,
  RUN_ORIGIN_DIFFERS, /* *ret_how names the differences */
  RUN_ORIGIN_UNKNOWN   /* it could not be read or compared: *ret_how says why */
};
/* Compares the stores of the run whose folder this is, which is open, with those of `run`. */
enum run_origin run_origin_compare(const struct run *run, int folder, struct dk_text *ret_how);

#endif
