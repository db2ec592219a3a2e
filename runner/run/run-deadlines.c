/* SPDX-License-Identifier: Apache-2.0 */
/* How long a check may take: depends on the store's clock, on measured times, and on time-outs
 * so far. */
#include "runner/run/run.h"

enum {
  LEAST_DEADLINE_MS = 5000,
  SHORTEST_MS = 1000,      /* even if many checks have hung */
  ROUND_TRIPS = 500,       /* in one operation: a fetch that waits looks 320 times */
  LEAST_ROUND_TRIPS = 50,  /* even if many checks have hung */
  REAL_TIME_MS = 30000,    /* for a check that waits in real time, in each run of its twins */
  ON_SERVER_MS = 20000,    /* a busy machine slows a server more than one process */
  WITH_RUNTIME_MS = 120000, /* for a check that waits for a runtime, several times */
  WAITS_OF_RUNTIME = 3,    /* at most so many before it has failed */
  WITH_SERVER_MS = 120000, /* for a check that cuts a connection, or crashes a server, many times */
  HUNG_DEADLINE_MS = 400,  /* if the plugin already hung while it was probed */
  HUNG_SHORTEST_MS = 100,
  TIMEOUTS_TO_HALVE = 3,
  MORE_MS = 50000,         /* while operations end: more than the longest check at 20 ms each */
  TIMES_SLOWEST = 4,
  TIMES_MEMCHECK = 20,     /* how much slower than natively, at most */
  TIMES_SLOW_MEMCHECK = 3  /* the same for checks that mostly wait */
};

static int64_t
larger(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

static bool
goes_by_real_time(const struct run *run)
{
  return run->described && (run->probe->clocks & DK_CLOCK_HOST) == 0;
}

void
run_set_deadline(struct run *run)
{
  run->deadline_ms = run_scaled(run, LEAST_DEADLINE_MS);
  run->least_ms = run_scaled(run, SHORTEST_MS);
}

void
run_note_round_trip(struct run *run, int64_t ns)
{
  int64_t needed = run_scaled(run, ns / 1000000 * ROUND_TRIPS);
  int64_t least = run_scaled(run, ns / 1000000 * LEAST_ROUND_TRIPS);

  if (goes_by_real_time(run))
    needed = larger(needed, run_scaled(run, REAL_TIME_MS));
  if (run->described && run->probe->shared >= 3)
    needed = larger(needed, run_scaled(run, ON_SERVER_MS));
  run->probe->round_trip_ns = ns;
  run->deadline_ms = larger(run->deadline_ms, needed);
  run->least_ms = larger(run->least_ms, least);
}

void
run_note_hung_probe(struct run *run)
{
  int64_t hung = run_scaled(run, HUNG_DEADLINE_MS);

  run->deadline_ms = hung < run->deadline_ms ? hung : run->deadline_ms;
  run->least_ms = HUNG_SHORTEST_MS;
}

void
run_note_time(struct run *run, bool race, const struct outcome *outcome)
{
  int64_t ms = outcome->wall_ns / 1000000 + 1;

  if (outcome->slow)
    run->slow++;
  else if (outcome->verdict == VERDICT_TIMEOUT)
    run->timeouts++;
  else if (outcome->verdict == VERDICT_PASS)
    run->slowest_ms[race] = larger(run->slowest_ms[race], ms);
}

/* The time that a check needs, as far as it was measured.  Once a check has passed on a store that
 * uses its own clock, any other may wait for a lease in real time. */
static int64_t
needed_ms(const struct run *run, bool race)
{
  if (goes_by_real_time(run) && run->slowest_ms[0] + run->slowest_ms[1] > 0)
    return run->deadline_ms;
  return larger(run->least_ms, TIMES_SLOWEST * run->slowest_ms[race]);
}

/* After three time-outs in a run the other checks get half the time, but not less than was measured
 * to be needed: a check that is merely slow is not blamed because others hang.  So a run over a
 * plugin that hangs in every check takes less than six deadlines, and the least time for each
 * check; at worst, if some pass and the rest hang, a deadline for each that hangs. */
int64_t
run_deadline(const struct run *run, bool race)
{
  unsigned halves = run->timeouts / TIMEOUTS_TO_HALVE;
  int64_t ms = larger(halves < 40 ? run->deadline_ms >> halves : 0, needed_ms(run, race));

  return ms < run->deadline_ms ? ms : run->deadline_ms;
}

/* After three checks that were still too slow the others get half: in all less than six times
 * this. */
int64_t
run_more(const struct run *run)
{
  unsigned halves = run->slow / TIMEOUTS_TO_HALVE;

  return halves < 40 ? run_scaled(run, MORE_MS) >> halves : 0;
}

int64_t
run_slow_deadline(const struct run *run, const struct result *result)
{
  bool has_server = (result->check->needs & NEEDS_SERVER) != 0;
  bool runtime = (result->check->flags & IS_RUNTIME) != 0;
  int64_t times = result->mode == MODE_MEMCHECK ? TIMES_SLOW_MEMCHECK : 1;
  int64_t ms = runtime ? WITH_RUNTIME_MS : has_server ? WITH_SERVER_MS : REAL_TIME_MS;

  return run_scaled(run, times * ms);
}

int64_t
run_patience(const struct run *run, const struct result *result)
{
  return run_slow_deadline(run, result) / WAITS_OF_RUNTIME;
}

/* ---- under Valgrind -------------------------------------------------------------------------- */

void
run_note_memcheck_time(struct run *run, const struct outcome *outcome)
{
  int64_t ms = outcome->wall_ns / 1000000 + 1;

  if (outcome->verdict == VERDICT_TIMEOUT)
    run->memcheck_timeouts++;
  else if (outcome->verdict == VERDICT_PASS)
    run->memcheck_slowest_ms = larger(run->memcheck_slowest_ms, ms);
}

/* Checks that hung natively count as well. */
int64_t
run_memcheck_deadline(const struct run *run)
{
  unsigned halves = (run->timeouts + run->memcheck_timeouts) / TIMEOUTS_TO_HALVE;
  int64_t most = run->deadline_ms * TIMES_MEMCHECK;
  int64_t needed = larger(run->least_ms * TIMES_MEMCHECK / 2,
                          TIMES_SLOWEST * run->memcheck_slowest_ms);
  int64_t ms = larger(halves < 40 ? most >> halves : 0, needed);

  return ms < most ? ms : most;
}
