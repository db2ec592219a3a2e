/* SPDX-License-Identifier: Apache-2.0 */
/* The output for the user: TAP, or the human view.  Both get the same results in plan order.
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
  bool lost;               /* a text could not be built: the run does not succeed */
  FILE *file;
  struct tap *tap;
  unsigned width;          /* of the terminal; 0: not a terminal */
  struct progress progress;
  struct skipped {              /* human: skipped checks that are not reported yet */
    const struct result *first; /* of n checks with one reason */
    size_t n;
  } skipped[32];
  size_t n_skipped;
};

struct out *out_new(const struct options *options); /* NULL: no memory, no descriptor */
void out_free(struct out *out);

/* Reports that there is no run, and why. */
void out_refusal(struct out *out, const struct problem *problem, const struct secrets *secrets);
/* `canaries`: the result of the canaries, in words. */
void out_begin(struct out *out, const struct run *run, const char *canaries);
void out_result(struct out *out, const struct run *run, const struct result *result);
void out_progress(struct out *out, const struct run *run, size_t done);
/* Names the part that begins, for progress, before the checks or instead of them. */
void out_part(struct out *out, const char *part);
/* Called while something runs: `context` is the struct out. */
void out_wait(void *context);
void out_comment(struct out *out, const char *text);
/* The same for a text that was built.  If it is incomplete the output counts as lost. */
void out_comment_text(struct out *out, const struct dk_text *text);
/* Writes the last line.  false: something could not be written. */
bool out_end(struct out *out, const struct totals *totals);

/* ---- shared by the two views ----------------------------------------------------------------- */

/* Text from the child with secrets masked; from malloc.  NULL without memory, or if the text is
 * incomplete: then the output counts as lost, and no part of the text is shown. */
char *out_masked(struct out *out, const struct run *run, const char *text);
char *out_masked_text(struct out *out, const struct run *run, const struct dk_text *text);
/* The n-th of the last `most` lines of the trace, NULL after them; `ret_left_out` lines come
 * before. */
const struct kit_trace_line *out_trace(const struct kit_report *report, unsigned most, unsigned n,
                                       unsigned *ret_left_out);

void out_tap_begin(struct out *out, const struct run *run, const char *canaries);
void out_tap_result(struct out *out, const struct run *run, const struct result *result);
void out_tap_end(struct out *out, const struct totals *totals);
void out_human_begin(struct out *out, const struct run *run, const char *canaries);
void out_human_result(struct out *out, const struct run *run, const struct result *result);
void out_human_skipped(struct out *out); /* reports skipped checks that were not reported yet */
void out_human_end(struct out *out, const struct totals *totals);

/* "passed=90 failed=0 ..." */
void out_totals_text(struct dk_text *text, const struct totals *totals);

#endif
