/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the stores of a run are: `durakit clean` removes them with the same plugin, and where they
 * are. */
#ifndef DK_RUNNER_ORIGIN_H
#define DK_RUNNER_ORIGIN_H

#include "core/base/text.h"
#include "runner/run.h"

/* Into the run's folder, before the first store is made; false with errno. */
bool origin_note(const struct run *run);
/* The stores of the run that had this folder are not those of `run`: by what they differ. */
bool origin_differs(const struct run *run, const char *folder, struct dk_text *ret_how);

#endif
