/* SPDX-License-Identifier: Apache-2.0 */
/* Canaries: checks that must not pass, run through the same engine in every run.  If a canary gets
 * another verdict than its own, no verdict of the run can be trusted. */
#ifndef DK_RUNNER_SELFTEST_CANARIES_H
#define DK_RUNNER_SELFTEST_CANARIES_H

#include "runner/run/run.h"

/* Returns how many were caught; `text` describes the first that was not.  If some are missing and
 * `text` is "", no process could be started for them: errno says why. */
unsigned canaries_run(struct run *run, char *text, size_t size);
/* The number of canaries; those of memory count only in runs under memcheck. */
unsigned canaries_count(const struct run *run);
/* Their names, in order; NULL after the last. */
const char *canaries_name(unsigned number);
/* The canary with this id, for a child that knows only the id; NULL: none. */
const struct check *canaries_find(const char *id);
/* The canaries that this kit does not have yet, for `durakit selftest`. */
extern const char *const canaries_to_come;

#endif
