/* SPDX-License-Identifier: Apache-2.0 */
/* Canaries: checks that must not pass, run through the same engine in every run.  A canary that
 * gets another verdict than its own says that no verdict of this run is worth anything. */
#ifndef DK_RUNNER_SELFTEST_CANARIES_H
#define DK_RUNNER_SELFTEST_CANARIES_H

#include "runner/run/run.h"

/* How many were caught; `text` says of the first other one what came.  "" though some are missing:
 * no process could be started for them, with errno. */
unsigned canaries_run(struct run *run, char *text, size_t size);
/* Those of memory are for runs under memcheck. */
unsigned canaries_count(const struct run *run);
/* Their names, in order; NULL behind the last of all. */
const char *canaries_name(unsigned number);
/* By the id of its check, for a child that was told no more than that; NULL: no such one. */
const struct check *canaries_find(const char *id);
/* Those that this kit has not yet: for `durakit selftest`. */
extern const char *const canaries_to_come;

#endif
