/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates from what was done so far: see progress.h. */
#include "runner/report/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/cli/message.h"
#include "runner/cli/wrap.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)

/* The cost of a check under Valgrind, in checks that are run natively. */
enum { MEMCHECK_WEIGHT = 12 };
enum { LONGEST_BAR = 30, SHORTEST_BAR = 5 };

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

/* One column stays free, because a full line moves the cursor to the next line. */
void
progress_bar(struct dk_text *bar, size_t done, size_t n, const char *text, unsigned width)
{
  static const char full[] = "##############################";
  const size_t besides = strlen(text) + strlen("[] ") + 1;
  size_t room = width > besides ? width - besides : 0;
  size_t length = room < LONGEST_BAR ? room : LONGEST_BAR;
  size_t filled = n ? done * length / n : 0;

  if (length >= SHORTEST_BAR)
    dk_text_printf(bar, "[%.*s%*s] %s", (int)filled, full, (int)(length - filled), "", text);
  else
    dk_text_printf(bar, "%.*s", width > 0 ? (int)width - 1 : 0, text);
}

bool
progress_is_due(struct progress *progress, int64_t now_ns)
{
  if (now_ns - progress->told_ns < MINUTE)
    return false;
  progress->told_ns = now_ns;
  return true;
}

/* ---- on standard error ----------------------------------------------------------------------- */

static bool
is_set(const char *variable)
{
  const char *value = getenv(variable);

  return value && *value;
}

struct progress
progress_of_stderr(void)
{
  return (struct progress){
    .has_bar = isatty(STDERR_FILENO) && !is_set("CI") && !is_set("HARNESS_ACTIVE")};
}

void
progress_clear(struct progress *progress)
{
  if (progress->drawn > 0)
    fprintf(stderr, "\r%*s\r", (int)progress->drawn, "");
  progress->drawn = 0;
}

static void
draw(struct progress *progress, const char *text)
{
  struct dk_text bar = DK_TEXT_EMPTY;

  progress_bar(&bar, progress->done, progress->n, text, wrap_width(STDERR_FILENO));
  progress_clear(progress);
  fprintf(stderr, "\r%s", dk_text_str(&bar));
  fflush(stderr);
  progress->drawn = bar.length;
  dk_text_done(&bar);
}

static void
print_progress(struct progress *progress, int64_t now_ns)
{
  struct dk_text text = DK_TEXT_EMPTY;

  if (progress->part)
    dk_text_printf(&text, progress->n > 0 ? "%s: " : "%s", progress->part);
  if (progress->n > 0)
    progress_text(&text, progress->done, progress->n, progress->share,
                  now_ns - progress->began_ns);
  if (progress->has_bar)
    draw(progress, dk_text_str(&text));
  else
    message_print("%s", dk_text_str(&text));
  dk_text_done(&text);
}

void
progress_begin(struct progress *progress, const char *part, int64_t now_ns)
{
  progress->part = part;
  progress->began_ns = now_ns;
  progress->told_ns = progress->told_ns ? progress->told_ns : now_ns;
  progress->done = progress->n = 0;
  progress->share = 0;
}

void
progress_tell(struct progress *progress, size_t done, size_t n, double share, int64_t now_ns)
{
  if (progress->began_ns == 0)
    progress_begin(progress, NULL, now_ns);
  progress->done = done;
  progress->n = n;
  progress->share = share;
  if (progress->has_bar || progress_is_due(progress, now_ns))
    print_progress(progress, now_ns);
}

/* On a terminal there is a bar already. */
void
progress_wait(struct progress *progress, int64_t now_ns)
{
  if (progress->began_ns != 0 && (progress->n > 0 || progress->part)
      && progress_is_due(progress, now_ns))
    print_progress(progress, now_ns);
}
