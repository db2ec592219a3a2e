/* SPDX-License-Identifier: Apache-2.0 */
/* CANCEL: the rows that a commit deletes, and what it reports of them. */
#include "conformance/model/model.h"

#include <string.h>
#include <strings.h>

/* CANCEL-1: free, delayed, locked, expired or tagged, all rows go. */
static bool
is_spared(const struct op *op, const struct row *row, const struct dk_turn_result *r, size_t i)
{
  const struct store *s = op->s;
  bool is_live = row->lock.held && row->lock.until > op->now;
  uint64_t other = row->lock.handle ^ s->handle;
  size_t n = r->n_cancelled_activities;

  return MUTANT(M_CANCEL_NOTHING_DELETED) || DEFECT(M_CANCEL_ONLY_UNLOCKED, is_live) ||
         DEFECT(M_CANCEL_EXPIRED_STAYS, row->lock.held && !is_live) ||
         DEFECT(M_CANCEL_DELAYED_STAYS, row->visible_at > op->now) ||
         DEFECT(M_CANCEL_TAGGED_STAYS, row->tag.ptr != NULL) ||
         DEFECT(M_CANCEL_HELD_TAGGED_STAYS, is_live && row->tag.ptr) ||
         DEFECT(M_CANCEL_ROWS_PER_HANDLE, is_live && other != 0) ||
         DEFECT(M_CANCEL_ROWS_PER_PROCESS, is_live && other >> 32 != 0) ||
         DEFECT(M_CANCEL_LAST_CHUNK_LOST, n > 500 && i >= n - n % 500) ||
         DEFECT(M_CANCEL_FINAL_LIST_CUT, r->status > DK_RUNNING && i >= 1000) ||
         DEFECT(M_CANCEL_FIRST_1000_ONLY, i >= 1000);
}

/* CANCEL-6: a row that carried a token is reported with its holder, even if its lease has run
 * out. */
static void
report_row(struct op *op, const struct row *row, struct dk_cancel_report *report)
{
  const struct store *s = op->s;
  char room[MAX_TOKEN];
  bool is_locked =
    row->lock.held && !DEFECT(M_CANCEL_EXPIRED_NOT_STOLEN, row->lock.until <= op->now);
  struct dk_stolen stolen = {
    .struct_size = sizeof stolen,
    .execution_id = row->identity.execution_id,
    .activity_id = row->identity.activity_id,
    .lock_token =
      work_token(op->s, room, &row->identity,
                 row->lock.epoch - (DEFECT(M_CANCEL_STOLEN_FIRST_TOKEN, row->attempt > 1) ? 1 : 0)),
    .owner = row->owner,
  };

  *(is_locked ? &report->locked_rows : &report->free_rows) += 1;
  if (DEFECT(M_CANCEL_STOLEN_LACKS_OWNER, stolen.owner.ptr != NULL))
    stolen.owner = (struct dk_bytes){NULL, 0};
  if (is_locked)
    s->host->stolen(op->call, &stolen);
}

void
delete_row(struct op *op, struct dk_bytes instance, const struct dk_activity *activity)
{
  STEP(op, .kind = ROW_GOES, .instance = instance, .execution_id = activity->execution_id,
       .activity_id = activity->activity_id);
}

static const int32_t likenesses[] = {M_CANCEL_ANY_INSTANCE, M_CANCEL_ANY_EXECUTION,
                                     M_CANCEL_INSTANCE_BY_PREFIX, M_CANCEL_INSTANCE_IN_ANY_CASE};

/* What one of these mutants takes for the same. */
static bool
is_alike(const struct identity *a, const struct identity *b, int32_t mutant)
{
  struct dk_bytes x = a->instance, y = b->instance;

  if (mutant == M_CANCEL_ANY_EXECUTION)
    return equal_bytes(x, y);
  if (a->execution_id != b->execution_id)
    return false;
  if (mutant == M_CANCEL_INSTANCE_BY_PREFIX)
    return x.len >= y.len && memcmp(x.ptr, y.ptr, y.len) == 0;
  if (mutant == M_CANCEL_INSTANCE_IN_ANY_CASE)
    return x.len == y.len && strncasecmp(x.ptr, y.ptr, y.len) == 0;
  return true;
}

/* CANCEL-1: no others, neither of another instance nor of another execution. */
static void
delete_likenesses(struct op *op, const struct identity *deleted, int32_t mutant)
{
  FOR_EACH(at, &op->s->rows) {
    const struct identity *i = &OWNER_OF(at, struct row, link)->identity;
    if (i->activity_id == deleted->activity_id && is_alike(i, deleted, mutant))
      delete_row(op, i->instance, &(struct dk_activity){i->execution_id, i->activity_id});
  }
}

static bool
lies_between_listed(const struct dk_turn_result *r, uint64_t activity_id)
{
  bool above = false, below = false;

  for (size_t i = 0; i < r->n_cancelled_activities; i++) {
    above = above || r->cancelled_activities[i].activity_id < activity_id;
    below = below || r->cancelled_activities[i].activity_id > activity_id;
  }
  return above && below;
}

/* CANCEL-9: the status of the orchestration, before and after, does not matter to its rows.  What
 * these mutants do to all of them: delete those that fit, or take their locks off. */
static void
sweep(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  const struct store *s = op->s;
  bool ends = r->status > DK_RUNNING, begins = !turn->birth && r->execution_id;
  bool unlocks = DEFECT(M_CANCEL_END_UNLOCKS, ends);
  bool drops_delayed = DEFECT(M_CANCEL_END_DROPS_DELAYED, ends);
  bool drops = DEFECT(M_CANCEL_BIRTH_SWEEPS, begins) ||
               DEFECT(M_CANCEL_MANY_IS_ALL, r->n_cancelled_activities >= 1000);
  bool drops_range = DEFECT(M_CANCEL_MANY_IS_A_RANGE, r->n_cancelled_activities > 2000);

  if (!unlocks && !drops_delayed && !drops && !drops_range)
    return;
  FOR_EACH(at, &s->rows) {
    const struct row *row = OWNER_OF(at, struct row, link);
    const struct identity *i = &row->identity;

    if (!equal_bytes(i->instance, turn->id))
      continue;
    if (unlocks)
      change_row(op, row, (struct lock){.epoch = row->lock.epoch}, row->owner, row->visible_at,
                 row->attempt);
    else if (drops_range ? lies_between_listed(r, i->activity_id)
                         : drops || row->visible_at > op->now)
      delete_row(op, turn->id, &(struct dk_activity){i->execution_id, i->activity_id});
  }
}

/* The list is ignored, because of a status: mutants only. */
static bool
is_forgotten(const struct store *s, const struct instance *turn, const struct dk_turn_result *r)
{
  int32_t before = turn->current ? turn->current->status : DK_RUNNING;

  return DEFECT(M_CANCEL_END_SKIPS_LIST, r->status > DK_RUNNING) ||
         DEFECT(M_CANCEL_ENDED_KEEPS_ROWS, before > DK_RUNNING);
}

/* Of a long list: above its first id, in the same execution. */
static bool
is_beyond_first(const struct dk_turn_result *r, const struct dk_activity *a)
{
  const struct dk_activity *first = &r->cancelled_activities[0];

  return r->n_cancelled_activities > 2000 && a->execution_id == first->execution_id &&
         a->activity_id > first->activity_id;
}

/* CANCEL-6: what is counted is what is deleted.  A mutant counts first, and others come between. */
static bool
is_counted_before(struct op *op, const struct instance *turn, const struct dk_turn_result *r,
                  struct dk_cancel_report *report)
{
  const struct store *s = op->s;

  if (!DEFECT(M_CANCEL_REPORT_OUTSIDE, r->n_cancelled_activities > 0))
    return false;
  for (size_t i = 0; i < r->n_cancelled_activities; i++) {
    struct identity identity = {turn->id, r->cancelled_activities[i].execution_id,
                                r->cancelled_activities[i].activity_id};
    const struct row *row = find_row(s, &identity);
    if (row)
      report_row(op, row, report);
  }
  (void)let_others_in(op);
  return true;
}

void
delete_cancelled_activities(struct op *op, const struct instance *turn,
                            const struct dk_turn_result *r)
{
  const struct store *s = op->s;
  struct dk_cancel_report report = {.struct_size = sizeof report};
  bool is_counted = is_counted_before(op, turn, r, &report);

  sweep(op, turn, r);
  for (size_t i = 0; i < r->n_cancelled_activities; i++) {
    struct dk_activity a = r->cancelled_activities[i];
    if (DEFECT(M_CANCEL_LIST_32_BITS, a.activity_id > UINT32_MAX))
      a.activity_id = (uint32_t)a.activity_id;
    if (DEFECT(M_CANCEL_FIRST_EXECUTION_FOR_ALL,
               a.execution_id != r->cancelled_activities[0].execution_id))
      a.execution_id = r->cancelled_activities[0].execution_id;
    struct identity identity = {turn->id, a.execution_id, a.activity_id};
    struct row *row = find_row(s, &identity);

    if (row && (is_spared(op, row, r, i) || is_forgotten(s, turn, r)))
      continue;
    if (DEFECT(M_CANCEL_CHUNK_REPORTS_LAST, i > 0 && i % 500 == 0))
      report = (struct dk_cancel_report){.struct_size = sizeof report};
    bool is_told = is_counted || (row && row->seen_by == s->operations) ||
                   DEFECT(M_CANCEL_LONG_LIST_SPAN, is_beyond_first(r, &a));
    if (row && !is_told)                         /* CANCEL-4: listed twice, counted once */
      report_row(op, row, &report);
    if (row)
      row->seen_by = s->operations;
    else if (MUTANT(M_CANCEL_REPORT_COUNTS_INSERTED)) /* CANCEL-6: those are not counted */
      report.free_rows++;
    delete_row(op, turn->id, &a);
    if (DEFECT(M_CANCEL_LONG_LIST_BY_NUMBER, r->n_cancelled_activities > 2000))
      delete_likenesses(op, &identity, M_CANCEL_ANY_EXECUTION);
    for (size_t k = 0; k < sizeof likenesses / sizeof likenesses[0]; k++)
      if (MUTANT(likenesses[k]))
        delete_likenesses(op, &identity, likenesses[k]);
  }
  if (DEFECT(M_CANCEL_REPORT_SWAPPED, report.free_rows != report.locked_rows))
    report = (struct dk_cancel_report){sizeof report, 0, report.locked_rows, report.free_rows};
  if (r->n_cancelled_activities)
    s->host->cancelled_rows(op->call, &report);
}
