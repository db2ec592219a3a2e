/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates by what was done so far: see progress.h. */
#include "runner/progress.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)

/* Of a check under Valgrind, in checks that are run natively. */
enum { MEMCHECK_WEIGHT = 12 };

double
progress_share(const struct run *run)
{
  double all = 0, done = 0;

  for (size_t i = 0; i < run->n_results; i++) {
    double weight = run->results[i].mode == MODE_MEMCHECK ? MEMCHECK_WEIGHT : 1;
    all += weight;
    done += run->results[i].done ? weight : 0;
  }
  return all > 0 ? done / all : 0;
}

void
progress_text(struct dk_text *text, size_t done, size_t n, double share, int64_t elapsed_ns)
{
  dk_text_printf(text, "%zu of %zu", done, n);
  if (done == n || share <= 0.02 || elapsed_ns < 3 * SECOND)
    return;
  double left = (double)elapsed_ns * (1 - share) / share / (double)SECOND;
  if (left < 90)
    dk_text_printf(text, ", about %.0f s left", left);
  else
    dk_text_printf(text, ", about %.0f min left", left / 60);
}

bool
progress_is_due(struct progress *progress, int64_t now_ns)
{
  int64_t since = progress->told_ns ? progress->told_ns : progress->began_ns;

  if (now_ns - since < MINUTE)
    return false;
  progress->told_ns = now_ns;
  return true;
}
