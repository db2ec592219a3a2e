/* SPDX-License-Identifier: Apache-2.0 */
/* How far a run is: numbers, an estimate where there is one, a line for each minute. */
#include "runner/report/progress.h"

#include "conformance/tap/tap.h"

#define SECOND INT64_C(1000000000)

static void
says(size_t done, size_t n, double share, int64_t seconds, const char *expected)
{
  struct dk_text text = DK_TEXT_EMPTY;

  progress_text(&text, done, n, share, seconds * SECOND);
  is(dk_text_str(&text), expected, "%s", expected);
  dk_text_done(&text);
}

static void
draws(size_t done, size_t n, unsigned width, const char *expected)
{
  struct dk_text bar = DK_TEXT_EMPTY;

  progress_bar(&bar, done, n, "9 of 12", width);
  is(dk_text_str(&bar), expected, "on %u columns", width);
  dk_text_done(&bar);
}

static void
test_bar(void)
{
  draws(1, 2, 100, "[###############               ] 9 of 12");
  draws(1, 2, 41, "[###############               ] 9 of 12");
  draws(1, 2, 31, "[##########          ] 9 of 12");
  draws(2, 2, 16, "[#####] 9 of 12");
  draws(2, 2, 15, "9 of 12");
  draws(2, 2, 5, "9 of");
}

/* A line for each minute of the run, across its parts. */
static void
test_parts(void)
{
  struct progress progress = {.has_bar = false};

  progress_begin(&progress, "one", 5 * SECOND);
  progress_tell(&progress, 1, 2, 0.5, 6 * SECOND);
  cmp_ok(progress.told_ns, "==", 5 * SECOND, "nothing is printed in the first minute");
  progress_begin(&progress, "two", 40 * SECOND);
  cmp_ok(progress.n, "==", 0, "another part begins with nothing done");
  progress_wait(&progress, 64 * SECOND);
  cmp_ok(progress.told_ns, "==", 5 * SECOND, "nor because a part begins");
  progress_wait(&progress, 66 * SECOND);
  cmp_ok(progress.told_ns, "==", 66 * SECOND, "then a line is printed, even if nothing has ended");
  progress_tell(&progress, 1, 2, 0.5, 70 * SECOND);
  cmp_ok(progress.told_ns, "==", 66 * SECOND, "once");
}

static void
test_share(void)
{
  struct result results[] = {{.mode = MODE_NATIVE, .done = true},
                             {.mode = MODE_NATIVE, .done = true},
                             {.mode = MODE_MEMCHECK},
                             {.mode = MODE_MEMCHECK}};
  struct run run = {.results = results, .n_results = 4};

  ok(progress_share(&run) > 0 && progress_share(&run) < 0.2,
     "most of the work is left to Valgrind");
  results[2].done = results[3].done = true;
  ok(progress_share(&run) > 0.999, "all of it");
  run.n_results = 0;
  ok(progress_share(&run) < 0.001, "nothing to do");
}

int
main(void)
{
  struct progress progress = {.told_ns = 5 * SECOND};

  plan(NO_PLAN);
  says(0, 388, 0, 0, "0 of 388");
  says(1, 388, 0.001, 100, "1 of 388");
  says(100, 400, 0.25, 1, "100 of 400");
  says(100, 400, 0.25, 20, "100 of 400, about 60 s left");
  says(97, 388, 0.25, 60, "97 of 388, about 3 min left");
  says(388, 388, 1, 60, "388 of 388");
  test_share();
  test_bar();
  test_parts();

  ok(!progress_is_due(&progress, 5 * SECOND), "nothing is due at the beginning");
  ok(!progress_is_due(&progress, 64 * SECOND), "nor before a minute has passed");
  ok(progress_is_due(&progress, 66 * SECOND), "then it is");
  ok(!progress_is_due(&progress, 100 * SECOND), "once");
  ok(progress_is_due(&progress, 130 * SECOND), "and a minute later again");
  return done_testing();
}
