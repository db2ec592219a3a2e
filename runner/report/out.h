/* SPDX-License-Identifier: Apache-2.0 */
/* What the user reads: TAP, or the human view.  Both get the same results in plan order.
 * Standard output is a private copy that no child has; progress goes to standard error. */
#ifndef DK_RUNNER_REPORT_OUT_H
#define DK_RUNNER_REPORT_OUT_H

#include <stdio.h>

#include "conformance/tap/tap.h"
#include "runner/report/progress.h"
#include "runner/run/run.h"

struct out {
  enum format format;      /* tap or human */
  bool color, verbose, began;
  bool lost;               /* a text could not be built: the run is no success */
  FILE *file;
  struct tap *tap;
  unsigned width;          /* of the terminal; 0: it is none */
  struct progress progress;
  struct skipped {              /* human: not reported yet, in the order of their first */
    const struct result *first; /* of n with one reason */
    size_t n;
  } skipped[32];
  size_t n_skipped;
};

struct out *out_new(const struct options *options); /* NULL: no memory, no descriptor */
void out_free(struct out *out);

/* Instead of a run. */
void out_refusal(struct out *out, const struct problem *problem, const struct secrets *secrets);
/* `canaries`: what to say of them. */
void out_begin(struct out *out, const struct run *run, const char *canaries);
void out_result(struct out *out, const struct run *run, const struct result *result);
void out_progress(struct out *out, const struct run *run, size_t done);
/* What begins, for progress, before the checks or instead of them. */
void out_part(struct out *out, const char *part);
/* Called while something runs: `context` is the struct out. */
void out_wait(void *context);
void out_comment(struct out *out, const char *text);
/* The same of a text that was put together; one that is not whole is lost, and the run with it. */
void out_comment_text(struct out *out, const struct dk_text *text);
/* The last line.  false: something could not be written. */
bool out_end(struct out *out, const struct totals *totals);

/* ---- shared by the two views ----------------------------------------------------------------- */

/* Text from the child with secrets masked; from malloc.  NULL without memory, or if the text is not
 * whole: then the output is lost, and never a piece of it is shown for the whole. */
char *out_masked(struct out *out, const struct run *run, const char *text);
char *out_masked_text(struct out *out, const struct run *run, const struct dk_text *text);
/* The n-th of the last `most` lines of the trace, NULL behind them; `ret_left_out` lines stand
 * before. */
const struct kit_trace_line *out_trace(const struct kit_report *report, unsigned most, unsigned n,
                                       unsigned *ret_left_out);

void out_tap_begin(struct out *out, const struct run *run, const char *canaries);
void out_tap_result(struct out *out, const struct run *run, const struct result *result);
void out_tap_end(struct out *out, const struct totals *totals);
void out_human_begin(struct out *out, const struct run *run, const char *canaries);
void out_human_result(struct out *out, const struct run *run, const struct result *result);
void out_human_skipped(struct out *out); /* reports those that were not reported yet */
void out_human_end(struct out *out, const struct totals *totals);

/* "passed=90 failed=0 ..." */
void out_totals_text(struct dk_text *text, const struct totals *totals);

#endif
