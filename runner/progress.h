/* SPDX-License-Identifier: Apache-2.0 */
/* How far a run is, and how long it may still take. */
#ifndef DK_RUNNER_PROGRESS_H
#define DK_RUNNER_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/text.h"
#include "runner/run.h"

struct progress {
  int64_t began_ns, told_ns; /* 0: not yet */
};

/* The part of the work that is done, 0 to 1: a check takes longer under Valgrind. */
double progress_share(const struct run *run);

/* "120 of 388, about 3 min left"; without the time while too little is done to tell. */
void progress_text(struct dk_text *text, size_t done, size_t n, double share, int64_t elapsed_ns);

/* A minute is over since the begin, or since this was true. */
bool progress_is_due(struct progress *progress, int64_t now_ns);

#endif
