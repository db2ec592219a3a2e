/* SPDX-License-Identifier: Apache-2.0 */
/* Counts results, and derives the exit code from them. */
#include <string.h>

#include "conformance/contract/contract.h"
#include "runner/run/plan.h"
#include "runner/run/run.h"
#include "runner/system/clock.h"

bool
run_is_violation(enum verdict verdict)
{
  return verdict == VERDICT_FAIL || verdict == VERDICT_HOST_DAMAGE || verdict == VERDICT_CRASH
         || verdict == VERDICT_TIMEOUT || verdict == VERDICT_EARLY_EXIT;
}

/* The first condition that holds decides. */
static int
exit_code_of(const struct run *run, const struct totals *totals, bool canaries_missed)
{
  const unsigned *counts = totals->counts;

  if (canaries_missed)
    return EXIT_INCOMPLETE; /* no verdict of this engine can be trusted */
  if (engine_interrupted(run->engine))
    return EXIT_INCOMPLETE;
  if (totals->failed > 0)
    return EXIT_VIOLATED;
  if (counts[VERDICT_ERROR] > 0)
    return EXIT_ENVIRONMENT;
  if (counts[VERDICT_NONE] > 0 || counts[VERDICT_NOT_RUN] > totals->spared || run->n_results == 0)
    return EXIT_INCOMPLETE;
  if (totals->memory > 0)
    return EXIT_FINDINGS;
  if (run->probe->n_missing > 0)
    return EXIT_INCOMPLETE; /* --next: operations are missing */
  if (counts[VERDICT_FLAKY] > 0 || counts[VERDICT_UNEXERCISED] > 0)
    return EXIT_UNCLEAR;
  return totals->passed + totals->advised > 0 ? EXIT_PASSED : EXIT_INCOMPLETE;
}

struct totals
run_totals(const struct run *run, bool canaries_missed)
{
  static const char *const words[] = {
    [EXIT_PASSED] = "PASS",           [EXIT_VIOLATED] = "FAIL",
    [EXIT_ENVIRONMENT] = "ERROR",     [EXIT_INCOMPLETE] = "INCOMPLETE",
    [EXIT_FINDINGS] = "MEMORY",       [EXIT_UNCLEAR] = "UNCLEAR",
  };
  struct totals totals = {.seconds = (double)(clock_ns() - run->started_ns) / 1e9};

  for (size_t i = 0; i < run->n_results; i++) {
    const struct result *result = &run->results[i];
    enum verdict verdict = result->done ? result->verdict : VERDICT_NOT_RUN;
    totals.counts[verdict]++;
    totals.spared += verdict == VERDICT_NOT_RUN && result->spared_by ? 1u : 0u;
    if (run_result_is_advice(result))
      totals.advised++;
    else if (run_is_violation(verdict))
      totals.failed++;
  }
  totals.passed = totals.counts[VERDICT_PASS];
  totals.skipped = totals.counts[VERDICT_SKIP];
  totals.memory = totals.counts[VERDICT_MEMORY];
  totals.memcheck = run->memcheck ? "" : run->no_memcheck;
  totals.other = (unsigned)run->n_results - totals.passed - totals.failed - totals.skipped -
                 totals.advised - totals.memory;
  totals.exit_code = exit_code_of(run, &totals, canaries_missed);
  totals.word = words[totals.exit_code];
  return totals;
}

bool
run_result_is_advice(const struct result *result)
{
  const struct dk_clause *clause = run_result_clause(result);

  return result->done && result->verdict == VERDICT_FAIL && clause && clause->level == DK_SHOULD;
}

const struct dk_clause *
run_result_clause(const struct result *result)
{
  char id[32];
  size_t n = plan_first_clause(result->check);

  if (result->outcome && result->outcome->report->clause[0]) {
    const struct dk_clause *broken = dk_clause_find(result->outcome->report->clause);
    if (broken)
      return broken;
  }
  if (n >= sizeof(id))
    return NULL;
  memcpy(id, result->check->clauses, n);
  id[n] = '\0';
  return dk_clause_find(id);
}
