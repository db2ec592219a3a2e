/* SPDX-License-Identifier: Apache-2.0 */
/* How long a check may take: never shorter than what was seen to be needed, and bounded in all. */
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
  cmp_ok(run_deadline(&run, false), ">=", 2800, "nor than four times what one took that passed");
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

  cmp_ok(run_deadline(&run, false), ">=", 30000, "so long as a check may wait in real time");
  ends(&run, VERDICT_PASS, 10);
  hangs(&run, 60);
  cmp_ok(run_deadline(&run, false), ">=", 30000, "also beside checks that hang");
  run = probed(&probe, DK_CLOCK_STORE | DK_CLOCK_HOST, 1);
  cmp_ok(run_deadline(&run, false), "==", 5000, "not if it can go by the host's clock");
}

/* Every check hangs: how long that takes in all. */
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

  cmp_ok(total(&run), "<=", 6 * 5000 + CHECKS * 1000, "what hangs everywhere is soon judged");
  run = probed(&probe, DK_CLOCK_STORE, 1);
  cmp_ok(total(&run), "<=", 6 * 120000 + CHECKS * 1000, "with the store's clock, too");
  run = probed(&probe, DK_CLOCK_STORE, 1);
  run_note_hung_probe(&run);
  cmp_ok(total(&run), "<=", 6 * 400 + CHECKS * 100, "what hung in the probe at once");
}

/* What is slow, and does not hang, gets more; three that were ended all the same halve that. */
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
         "so may a fetch that looks again and again: one operation in many calls");
  hangs(&run, 60);
  cmp_ok(run_more(&run), "==", first, "whatever has hung");
  for (unsigned i = 0; i < CHECKS; i++) {
    ms += run_more(&run);
    run_note_time(&run, false, &slow);
  }
  cmp_ok(ms, "<=", 6 * first, "what is too slow everywhere is soon judged, too");
  cmp_ok(run.timeouts, "==", 60, "and makes no deadline of others shorter");
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
