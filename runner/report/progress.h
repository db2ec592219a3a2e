/* SPDX-License-Identifier: Apache-2.0 */
/* How far a run is, and how long it will still take: on standard error, as a bar on a terminal,
 * elsewhere as a line each minute.  Each part of a run has a name, and an estimate of its own. */
#ifndef DK_RUNNER_REPORT_PROGRESS_H
#define DK_RUNNER_REPORT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/text.h"
#include "runner/run/run.h"

/* Begin with {0}, or with progress_of_stderr. */
struct progress {
  bool has_bar;
  const char *part;      /* name of the part; NULL: the run has only one */
  int64_t began_ns;      /* when the part began; 0: not yet */
  int64_t told_ns;       /* when the last line was printed, or the run began */
  size_t done, n;        /* as they were reported last */
  double share;
  size_t drawn;          /* columns of the bar on the terminal */
};

struct progress progress_of_stderr(void);

/* Begins this part. */
void progress_begin(struct progress *progress, const char *part, int64_t now_ns);
/* Reports how much is done; `share`: of the work, 0 to 1. */
void progress_tell(struct progress *progress, size_t done, size_t n, double share, int64_t now_ns);
/* Reports the same again if a minute has passed. */
void progress_wait(struct progress *progress, int64_t now_ns);
/* Removes the bar, before something else is written. */
void progress_clear(struct progress *progress);

/* ---- its parts ------------------------------------------------------------------------------- */

/* The share of the work that is done, 0 to 1; a check takes longer under Valgrind. */
double progress_share(const struct run *run);

/* "120 of 388, about 3 min left"; without the time while too little is done for an estimate. */
void progress_text(struct dk_text *text, size_t done, size_t n, double share, int64_t elapsed_ns);

/* The text after a bar that is as long as the terminal allows: together shorter than `width`. */
void progress_bar(struct dk_text *bar, size_t done, size_t n, const char *text, unsigned width);

/* A minute has passed since the run began, or since this was last true. */
bool progress_is_due(struct progress *progress, int64_t now_ns);

#endif
