/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for the shortest plan that still shows the difference: first steps are left out, in halves,
 * quarters, and at last one by one, until none can be left out; then each request that remains is
 * made simpler.  A shorter plan counts if it differs by the same clause. */
#include "conformance/random/random.h"

#include <string.h>

enum { MOST_TRIES = 600, MEMCHECK_TRIES = 40 };
#define MOST_NS (INT64_C(6) * 1000 * 1000 * 1000)

static void
cut_behind(steps *plan, uint32_t number)
{
  size_t n = 0;

  while (n < plan->n && plan->items[n].number <= number)
    n++;
  plan->n = n;
}

void
shrink_begin(struct random_run *run, const struct difference *difference)
{
  int64_t limit = run->pass->t->job->rounds_until_ns;

  cut_behind(&run->plan, difference->step);
  run->difference = *difference;
  run->chunk = run->plan.n / 2;
  run->at = 0;
  run->until_ns = kit_real_ns() + MOST_NS;
  if (limit > 0 && limit < run->until_ns)
    run->until_ns = limit;
}

static void
copy_plan(struct pass *p, const steps *from, steps *to)
{
  to->n = 0;
  for (size_t i = 0; i < from->n; i++)
    *LIST_ADD(p->t, &p->t->lasting, to) = from->items[i];
}

/* The plan without the steps from `at` on, but with its last one, which shows the difference. */
static bool
leave_out(struct pass *p)
{
  struct random_run *run = p->run;
  size_t n = run->chunk;

  if (run->at + 1 >= run->plan.n)
    return false;
  if (run->at + n >= run->plan.n)
    n = run->plan.n - 1 - run->at;
  copy_plan(p, &run->plan, &run->candidate);
  memmove(&run->candidate.items[run->at], &run->candidate.items[run->at + n],
          (run->candidate.n - run->at - n) * sizeof(run->candidate.items[0]));
  run->candidate.n -= n;
  return true;
}

/* The end of a look at all steps: the next has a smaller chunk, unless a step was left out. */
static void
next_round(struct random_run *run)
{
  if (run->chunk > 1 || !run->is_shorter)
    run->chunk /= 2;
  run->at = 0;
  run->is_shorter = false;
}

static bool
simplify_next(struct pass *p)
{
  struct random_run *run = p->run;

  for (; run->at < run->plan.n; run->at++, run->simpler = 0) {
    for (; run->simpler < WAYS_TO_SIMPLIFY; run->simpler++) {
      struct step step = run->plan.items[run->at];
      if (!make_simpler(p, &step, run->simpler))
        continue;
      copy_plan(p, &run->plan, &run->candidate);
      run->candidate.items[run->at] = step;
      return true;
    }
  }
  return false;
}

bool
shrink_next(struct pass *p)
{
  struct random_run *run = p->run;
  uint32_t most = p->t->job->memcheck ? MEMCHECK_TRIES : MOST_TRIES;

  if (run->tries++ >= most || kit_real_ns() > run->until_ns)
    return false;
  while (run->chunk > 0) {
    if (leave_out(p))
      return true;
    next_round(run);
  }
  return simplify_next(p);
}

void
shrink_take(struct random_run *run, const struct difference *difference)
{
  bool is_same = difference->found && strcmp(difference->clause, run->difference.clause) == 0;

  if (is_same) {
    steps old = run->plan;
    run->plan = run->candidate;
    run->candidate = old;
    run->difference = *difference;
    cut_behind(&run->plan, difference->step);
    run->is_shorter = true;
  } else if (run->chunk > 0) {
    run->at += run->chunk;
  }
  if (run->chunk == 0)
    run->simpler++;
}
