/* SPDX-License-Identifier: Apache-2.0 */
/* Valgrind's suppressions: our own, which are part of the command, and those of an author. */
#ifndef DK_RUNNER_SUPPRESSIONS_H
#define DK_RUNNER_SUPPRESSIONS_H

#include "runner/run.h"

/* All files of runner/suppressions, one after the other. */
extern const char suppressions_own[];

/* Refuses a file of the author's that has an entry without a reason, or one that could hide what
 * the provider does: EXIT_PASSED, or what else with the words said. */
int suppressions_check(struct run *run, const char *path);

#endif
