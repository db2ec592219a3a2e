/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what a successful commit has done, for the metrics (metrics.h). */
#include <stdlib.h>

#include "core/runtime/turn/turn.h"

/* ---- what it has cancelled ------------------------------------------------------------------- */

static int
commit_count_compare_ids(const void *a, const void *b)
{
  uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

  return (left > right) - (left < right);
}

/* The activities whose rows a worker had leased, as reported by the store. */
struct locked {
  uint64_t *ids;
  size_t n;
};

static bool
is_locked(const struct locked *locked, const struct cancelled *cancelled)
{
  return bsearch(&cancelled->activity_id, locked->ids, locked->n, sizeof(*locked->ids),
                 commit_count_compare_ids) != NULL;
}

static bool
list_locked(struct turn *turn, const struct dk_commit_outcome *outcome, struct locked *ret_locked)
{
  uint64_t *ids = dk_arena_array(&turn->arena, outcome->n_stolen, sizeof(*ids));

  if (!ids)
    return false;
  for (size_t i = 0; i < outcome->n_stolen; i++)
    ids[i] = outcome->stolen[i].activity_id;
  qsort(ids, outcome->n_stolen, sizeof(*ids), commit_count_compare_ids);
  *ret_locked = (struct locked){ids, outcome->n_stolen};
  return true;
}

/* Whether all activities whose rows were not leased have the same labels in the metrics. */
static bool
rest_is_alike(const struct decision *d, const struct locked *locked)
{
  const struct cancelled *first = NULL;

  for (size_t i = 0; i < d->n_cancelled; i++) {
    const struct cancelled *one = &d->cancelled[i];
    if (is_locked(locked, one))
      continue;
    if (first && (one->code != first->code || !str_equal(one->name, first->name)))
      return false;
    first = one;
  }
  return true;
}

/* The store reports which rows were locked, but only how many were free; the others were absent.
 * Which is which is known if there is only one of the two kinds, and does not matter if all have
 * the same labels.  A repeated commit might have no report. */
static bool
rest_is_known(const struct turn *turn, const struct dk_commit_outcome *outcome,
              const struct locked *locked)
{
  const struct decision *d = &turn->decision;
  uint64_t n_free = outcome->report.free_rows;

  if (!outcome->reported || outcome->incomplete || turn->is_unsure ||
      outcome->report.locked_rows != locked->n)
    return false;
  return n_free == 0 || n_free + locked->n >= d->n_cancelled || rest_is_alike(d, locked);
}

void
commit_count_cancelled(struct turn *turn, const struct dk_commit_outcome *outcome)
{
  const struct decision *d = &turn->decision;
  struct locked locked = {NULL, 0};

  if (d->n_cancelled == 0)
    return;
  bool is_known = list_locked(turn, outcome, &locked) && rest_is_known(turn, outcome, &locked);
  uint64_t n_free = outcome->report.free_rows;
  for (size_t i = 0; i < d->n_cancelled; i++) {
    const struct cancelled *one = &d->cancelled[i];
    enum cancel_phase phase = PHASE_UNKNOWN;
    if (locked.n > 0 && is_locked(&locked, one)) {
      phase = PHASE_LOCKED;
    } else if (is_known) {
      phase = n_free > 0 ? PHASE_QUEUED : PHASE_ABSENT;
      n_free -= n_free > 0;
    }
    metrics_cancelled(&turn->shared->log->metrics, one->code, phase, one->name);
  }
}

/* ---- what it has taken ----------------------------------------------------------------------- */

void
commit_count_requests(struct turn *turn)
{
  /* The history of an instance that has ended was not read. */
  dk_str name = turn->name.ptr ? turn->name : turn->fetched->head.name;

  for (int source = 0; source < N_REQUEST_SOURCES; source++)
    for (int outcome = 0; outcome < N_REQUEST_OUTCOMES; outcome++) {
      uint32_t n = turn->staged.requests[source][outcome];
      if (n > 0)
        metrics_requested(&turn->shared->log->metrics, (enum request_source)source,
                          (enum request_outcome)outcome, name, n);
    }
}
