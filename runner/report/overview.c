/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the results of a run with each other.  Owns nothing. */
#include "runner/report/overview.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/contract/contract.h"
#include "runner/memory/findings.h"
#include "runner/run/cause.h"

/* A group of failures: those of one clause, or of one operation that does not return. */
struct group {
  char name[96];
  unsigned checks;
};

static bool
is_named(const struct result *result, char *name, size_t size)
{
  const struct dk_clause *clause = run_result_clause(result);
  bool hung = result->verdict == VERDICT_TIMEOUT;

  if (!result->done || !result->outcome || run_result_is_advice(result)
      || (!run_is_violation(result->verdict) && result->verdict != VERDICT_MEMORY))
    return false;
  const struct kit_report *report = result->outcome->report;
  if (result->shared) /* without the provider's own words */
    snprintf(name, size, "%.*s", (int)strcspn(report->answer, ":"), report->answer);
  else if (hung)
    snprintf(name, size, "a time-out%s%s", report->running == 1 ? " in " : "",
             report->running == 1 ? report->operation : "");
  else
    snprintf(name, size, "%s", clause ? clause->id : verdict_name(result->verdict));
  return true;
}

/* If the same check fails in the same way in the other mode, it is not counted again. */
static bool
is_counted(const struct run *run, size_t number, const char *name)
{
  char other[96];

  for (size_t i = 0; i < number; i++) {
    if (run->results[i].check == run->results[number].check
        && is_named(&run->results[i], other, sizeof(other)) && strcmp(other, name) == 0)
      return true;
  }
  return false;
}

static int
by_checks(const void *a, const void *b)
{
  const struct group *one = a;
  const struct group *other = b;

  if (one->checks != other->checks)
    return one->checks < other->checks ? 1 : -1;
  return strcmp(one->name, other->name);
}

static size_t
make_groups(const struct run *run, struct group *groups)
{
  size_t n = 0;

  for (size_t i = 0; i < run->n_results; i++) {
    char name[sizeof(groups->name)];
    size_t g = 0;
    if (!is_named(&run->results[i], name, sizeof(name)) || is_counted(run, i, name))
      continue;
    while (g < n && strcmp(groups[g].name, name) != 0)
      g++;
    if (g == n)
      memcpy(groups[n++].name, name, sizeof(name));
    groups[g].checks++;
  }
  qsort(groups, n, sizeof(*groups), by_checks);
  return n;
}

void
overview_text(struct dk_text *text, const struct run *run)
{
  struct group *groups = calloc(run->n_results + 1, sizeof(*groups));
  size_t n = groups ? make_groups(run, groups) : 0;

  for (size_t i = 0; i < n && (n > 1 || groups[0].checks > 1); i++)
    dk_text_printf(text, "%s%s (%u%s)", i ? ", " : "violated: ", groups[i].name, groups[i].checks,
                   i ? "" : groups[i].checks == 1 ? " check" : " checks");
  free(groups);
}

static bool
ended_alike(const struct result *a, const struct result *b)
{
  const struct kit_report *one = a->outcome->report;
  const struct kit_report *other = b->outcome->report;

  if (b->repeated || b->shared || a->verdict == VERDICT_MEMORY || a->verdict == VERDICT_HOST_DAMAGE)
    return cause_is_same(a, b);
  if (a->verdict != b->verdict || a->mode != b->mode || one->phase != other->phase
      || strcmp(one->operation, other->operation) != 0 || strcmp(one->clause, other->clause) != 0)
    return false;
  if (a->verdict == VERDICT_TIMEOUT) /* whose words count calls */
    return one->running == 1 && other->running == 1;
  return strcmp(one->message, other->message) == 0;
}

const struct result *
overview_same(const struct run *run, const struct result *result)
{
  bool ended = result->verdict == VERDICT_CRASH || result->verdict == VERDICT_EARLY_EXIT
               || result->verdict == VERDICT_TIMEOUT;

  bool damaged = result->verdict == VERDICT_MEMORY || result->verdict == VERDICT_HOST_DAMAGE;

  if ((!ended && !damaged && !result->repeated && !result->shared) || !result->outcome
      || (!damaged && result->outcome->findings && findings_any(result->outcome->findings)))
    return NULL;
  for (size_t i = 0; i < run->n_results && &run->results[i] != result; i++) {
    const struct result *earlier = &run->results[i];
    if (earlier->done && earlier->outcome && ended_alike(earlier, result))
      return earlier;
  }
  return NULL;
}

/* The result of the same check natively; NULL: not known yet. */
static const struct result *
twin_of(const struct run *run, const struct result *result)
{
  for (size_t i = 0; i < run->n_results && result->mode == MODE_MEMCHECK; i++) {
    const struct result *twin = &run->results[i];
    if (twin->check == result->check && twin->mode == MODE_NATIVE)
      return twin->done ? twin : NULL;
  }
  return NULL;
}

const struct result *
overview_hung_twin(const struct run *run, const struct result *result)
{
  const struct result *twin = twin_of(run, result);

  return twin && twin->verdict == VERDICT_TIMEOUT ? twin : NULL;
}

const struct result *
overview_failed_twin(const struct run *run, const struct result *result)
{
  const struct result *twin = twin_of(run, result);

  return twin && run_is_violation(twin->verdict) ? overview_same(run, twin) : NULL;
}
