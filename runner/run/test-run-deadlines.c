/* SPDX-License-Identifier: Apache-2.0 */
/* How long a check may take: never less than was measured to be needed, and bounded in all. */
#include "conformance/tap/tap.h"
#include "runner/run/run.h"

enum { CHECKS = 200 };

static const struct options options = {.timeout_scale = 1};

/* A run that has probed this. */
static struct run
probed(struct kit_probe *probe, uint32_t clocks, int64_t round_trip_ms)
{
  struct run run = {.options = &options, .probe = probe, .described = true};

  *probe = (struct kit_probe){.clocks = clocks};
  run_set_deadline(&run);
  run_note_round_trip(&run, round_trip_ms * 1000000);
  return run;
}

static void
ends(struct run *run, enum verdict verdict, int64_t ms)
{
  run_note_time(run, false, &(struct outcome){.verdict = verdict, .wall_ns = ms * 1000000});
}

static void
hangs(struct run *run, unsigned times)
{
  for (unsigned i = 0; i < times; i++)
    ends(run, VERDICT_TIMEOUT, run_deadline(run, false));
}

static void
by_the_host(void)
{
  struct kit_probe probe;
  struct run run = probed(&probe, DK_CLOCK_HOST, 1);

  cmp_ok(run_deadline(&run, false), "==", 5000, "five seconds");
  hangs(&run, 3);
  cmp_ok(run_deadline(&run, false), "==", 2500, "half of it after three that hang");
  hangs(&run, 60);
  cmp_ok(run_deadline(&run, false), "==", 1000, "never less than a second");
  ends(&run, VERDICT_PASS, 700);
  cmp_ok(run_deadline(&run, false), ">=", 2800, "nor four times what a passed check took");
  cmp_ok(run_deadline(&run, true), "==", 1000, "of its kind: races take longer");
  ends(&run, VERDICT_PASS, 4000);
  cmp_ok(run_deadline(&run, false), "==", 5000, "but never more than at the beginning");
  run = probed(&probe, DK_CLOCK_HOST, 30);
  hangs(&run, 60);
  cmp_ok(run_deadline(&run, false), "==", 1500, "nor than fifty round trips");
}

static void
by_the_store(void)
{
  struct kit_probe probe;
  struct run run = probed(&probe, DK_CLOCK_STORE, 1);

  cmp_ok(run_deadline(&run, false), ">=", 30000, "as long as a check may wait in real time");
  ends(&run, VERDICT_PASS, 10);
  hangs(&run, 60);
  cmp_ok(run_deadline(&run, false), ">=", 30000, "even beside checks that hang");
  run = probed(&probe, DK_CLOCK_STORE | DK_CLOCK_HOST, 1);
  cmp_ok(run_deadline(&run, false), "==", 5000, "but not if it can use the host's clock");
}

/* The total time if every check hangs. */
static int64_t
total(struct run *run)
{
  int64_t ms = 0;

  for (unsigned i = 0; i < CHECKS; i++) {
    ms += run_deadline(run, false);
    hangs(run, 1);
  }
  return ms;
}

static void
is_bounded(void)
{
  struct kit_probe probe;
  struct run run = probed(&probe, DK_CLOCK_HOST, 1);

  cmp_ok(total(&run), "<=", 6 * 5000 + CHECKS * 1000, "a plugin that always hangs is judged soon");
  run = probed(&probe, DK_CLOCK_STORE, 1);
  cmp_ok(total(&run), "<=", 6 * 120000 + CHECKS * 1000, "also with the store's clock");
  run = probed(&probe, DK_CLOCK_STORE, 1);
  run_note_hung_probe(&run);
  cmp_ok(total(&run), "<=", 6 * 400 + CHECKS * 100, "at once if it hung in the probe");
}

/* A check that is slow, and does not hang, gets more time; three that still were too slow halve
 * that. */
static void
gives_more(void)
{
  struct kit_probe probe;
  struct run run = probed(&probe, DK_CLOCK_HOST, 5);
  struct outcome slow = {.verdict = VERDICT_UNEXERCISED, .slow = true};
  int64_t ms = 0;

  cmp_ok(run_deadline(&run, false) + run_more(&run), ">=", 2040 * 20,
         "the longest check of all may end, at 20 ms an operation");
  int64_t first = run_more(&run);
  struct run slower = probed(&probe, DK_CLOCK_HOST, 20);
  cmp_ok(run_deadline(&slower, false), ">", 320 * 20,
         "so may a fetch that looks again and again: one operation of many calls");
  hangs(&run, 60);
  cmp_ok(run_more(&run), "==", first, "even if others have hung");
  for (unsigned i = 0; i < CHECKS; i++) {
    ms += run_more(&run);
    run_note_time(&run, false, &slow);
  }
  cmp_ok(ms, "<=", 6 * first, "a plugin that is always too slow is also judged soon");
  cmp_ok(run.timeouts, "==", 60, "and shortens no other deadline");
}

int
main(void)
{
  plan(NO_PLAN);
  gives_more();
  by_the_host();
  by_the_store();
  is_bounded();
  return done_testing();
}
