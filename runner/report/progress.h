/* SPDX-License-Identifier: Apache-2.0 */
/* How far a run is, and how long it may still take: on standard error, a bar on a terminal,
 * elsewhere a line for each minute.  The parts of a run have names, and estimates of their own. */
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
  const char *part;      /* of the run, for people; NULL: it has one only */
  int64_t began_ns;      /* the part; 0: not yet */
  int64_t told_ns;       /* the last line, or the begin of the run */
  size_t done, n;        /* as they were told last */
  double share;
  size_t drawn;          /* columns of the bar that stands there */
};

struct progress progress_of_stderr(void);

/* What follows is of this part. */
void progress_begin(struct progress *progress, const char *part, int64_t now_ns);
/* So much is done; `share`: of the work, 0 to 1. */
void progress_tell(struct progress *progress, size_t done, size_t n, double share, int64_t now_ns);
/* Nothing new; what was told is told again when a minute is over. */
void progress_wait(struct progress *progress, int64_t now_ns);
/* Takes the bar away, before something else is written. */
void progress_clear(struct progress *progress);

/* ---- what it is made of ---------------------------------------------------------------------- */

/* The part of the work that is done, 0 to 1: a check takes longer under Valgrind. */
double progress_share(const struct run *run);

/* "120 of 388, about 3 min left"; without the time while too little is done to tell. */
void progress_text(struct dk_text *text, size_t done, size_t n, double share, int64_t elapsed_ns);

/* The text behind a bar that is as long as the terminal allows: together shorter than `width`. */
void progress_bar(struct dk_text *bar, size_t done, size_t n, const char *text, unsigned width);

/* A minute is over since the begin, or since this was true. */
bool progress_is_due(struct progress *progress, int64_t now_ns);

#endif
