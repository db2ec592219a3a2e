/* SPDX-License-Identifier: Apache-2.0 */
/* PRUNE: removing executions that have ended, with their histories and nothing else. */
#include "conformance/model/model.h"

/* ---- which executions ------------------------------------------------------------------------ */

/* How many are newer. */
static uint64_t
newer_than(const struct op *op, const struct instance *instance, const struct execution *e)
{
  const struct store *s = op->s;
  uint64_t newer = 0, older = 0;

  for (const struct execution *other = instance->first; other != e; other = other->next)
    older++;
  for (const struct execution *other = e->next; other; other = other->next)
    newer += DEFECT(M_PRUNE_KEEPS_OF_THE_ENDED, other->next && other->status == DK_RUNNING) ? 0 : 1;
  return DEFECT(M_PRUNE_OLDEST_STAY, newer != older) ? older : newer;
}

static uint64_t
kept(const struct op *op, const struct dk_prune *request)
{
  const struct store *s = op->s;

  if (request->keep == 0)
    return MUTANT(M_PRUNE_ZERO_KEEPS_ALL) ? UINT64_MAX : 1;
  if (DEFECT(M_PRUNE_KEEP_IS_SIGNED, request->keep > INT32_MAX))
    return 1;
  return request->keep + (MUTANT(M_PRUNE_KEEPS_ONE_MORE) ? 1u : 0u);
}

/* PRUNE-2: before it, not at it. */
static bool
is_old_enough(const struct op *op, const struct instance *instance, const struct execution *e,
              const struct dk_prune *request)
{
  const struct store *s = op->s;
  int64_t completed = e->completed_at, before = request->completed_before;

  if (!before || DEFECT(M_PRUNE_TIME_IGNORED, completed >= before) ||
      DEFECT(M_PRUNE_PAGE_TIME_IGNORED, request->filter != NULL))
    return true;
  if (DEFECT(M_PRUNE_TIME_OF_CURRENT, instance->current->completed_at != completed))
    completed = instance->current->completed_at;
  return completed < before || DEFECT(M_PRUNE_AT_ITS_TIME, completed == before);
}

/* PRUNE-1, PRUNE-2: both have to hold. */
static bool
may_go(const struct op *op, const struct instance *instance, const struct execution *e,
       const struct dk_prune *request)
{
  const struct store *s = op->s;
  bool is_surplus = newer_than(op, instance, e) >= kept(op, request);
  bool is_old = is_old_enough(op, instance, e, request);

  if (e == instance->current || e->is_hidden)
    return false;
  if (!HOLDS(M_PRUNE_RUNNING_GOES, e->status != DK_RUNNING))
    return false;
  return (is_surplus && is_old) ||
         DEFECT(M_PRUNE_EITHER_IS_ENOUGH, request->completed_before && is_surplus != is_old);
}

/* ---- what is deleted with it ----------------------------------------------------------------- */

/* PRUNE-3: nothing else.  What mutants take as well. */
static void
take_more(struct op *op, const struct instance *instance, uint64_t execution_id)
{
  const struct store *s = op->s;
  const struct facts *f = instance->facts;

  FOR_EACH(at, &s->rows) {
    const struct identity *i = &OWNER_OF(at, struct row, link)->identity;
    if (DEFECT(M_PRUNE_TAKES_WORK, i->execution_id == execution_id &&
                                     equal_bytes(i->instance, instance->id)))
      delete_row(op, i->instance, &(struct dk_activity){i->execution_id, i->activity_id});
  }
  if (DEFECT(M_PRUNE_TAKES_MESSAGES, instance->messages.next != &instance->messages))
    STEP(op, .kind = MESSAGES_GO, .instance = instance->id);
  if (DEFECT(M_PRUNE_RELEASES_LEASE, is_held(op, &instance->lock)))
    release_turn(op, instance, false);
  if (DEFECT(M_PRUNE_FORGETS_OWNER, f->owner.ptr != NULL))
    STEP(op, .kind = FACTS, .instance = instance->id, .birth = instance->birth,
         .enqueued_at = instance->created_at, .name = f->name, .version = f->version,
         .parent = f->parent);
}

static void
prune_execution(struct op *op, const struct instance *instance, const struct execution *e,
                bool is_last, struct dk_removed *removed)
{
  const struct store *s = op->s;

  for (const struct event *v = e->first; v; v = v->next)
    removed->events += DEFECT(M_PRUNE_EVENTS_NOT_COUNTED, v == e->first) ? 0 : 1;
  removed->executions++;
  take_more(op, instance, e->execution_id);
  STEP(op, .kind = EXECUTION_GOES, .instance = instance->id, .execution_id = e->execution_id,
       .event_id = DEFECT(M_PRUNE_TRIMS_CURRENT, instance->current->first != NULL), /* PRUNE-5 */
       .epoch = DEFECT(M_PRUNE_RENUMBERS, is_last));
}

/* PRUNE-5.  The last one that is deleted: a mutant counts the others anew then. */
static const struct execution *
last_to_go(const struct op *op, const struct instance *instance, const struct dk_prune *request)
{
  const struct execution *last = NULL;

  for (const struct execution *e = instance->first; e; e = e->next)
    if (may_go(op, instance, e, request))
      last = e;
  return last;
}

/* Each instance whole or not at all. */
static void
prune(struct op *op, const struct instance *instance, const struct dk_prune *request,
      struct dk_removed *removed)
{
  const struct store *s = op->s;
  const struct execution *last = last_to_go(op, instance, request);

  for (const struct execution *e = instance->first; e; e = e->next) {
    if (!may_go(op, instance, e, request))
      continue;
    if (DEFECT(M_PRUNE_LIMIT_ON_EXECUTIONS,
               request->max_instances && removed->executions >= request->max_instances))
      break;
    prune_execution(op, instance, e, e == last, removed);
  }
  if (!DEFECT(M_PRUNE_COUNTS_PRUNED_ONLY, last == NULL))
    removed->instances++;
}

/* ---- the operation --------------------------------------------------------------------------- */

/* PRUNE-5.  A mutant has noted which is the newest, and lets others in before the rest goes. */
static dk_status
remove_all_but(struct op *op, struct dk_bytes id, uint64_t newest, struct dk_removed *removed)
{
  TRY(let_others_in(op));
  const struct instance *instance = find_instance(op->s, id);

  removed->instances = 1;
  for (const struct execution *e = instance ? instance->first : NULL; e; e = e->next)
    if (e->execution_id != newest && e->status != DK_RUNNING)
      prune_execution(op, instance, e, false, removed);
  return DK_OK;
}

static dk_status
prune_one(struct op *op, const struct dk_prune *request, struct dk_removed *removed)
{
  const struct store *s = op->s;
  const struct instance *instance = find_instance(s, request->instance);

  if (DEFECT(M_PRUNE_UNKNOWN_IS_OK, !is_there(instance)) ||
      DEFECT(M_PRUNE_PENDING_IS_OK, is_there(instance) && !instance->birth))
    return DK_OK;
  if (!instance || !instance->birth)
    return refuse(op, DK_NOT_FOUND, "no turn of \"%.*s\" was ever committed",
                  (int)request->instance.len, request->instance.ptr);
  if (MUTANT(M_PRUNE_NEWEST_READ_OUTSIDE))
    return remove_all_but(op, request->instance, instance->current->execution_id, removed);
  prune(op, instance, request, removed);
  return DK_OK;
}

/* PRUNE-4: whatever their status. */
static bool
is_of_page(const struct op *op, const struct instance *instance, const struct dk_prune *request)
{
  const struct store *s = op->s;
  bool fits = is_selected(op, instance, request->filter);

  if (DEFECT(M_PRUNE_FILTER_IGNORED, !fits && instance->birth))
    return true;
  return fits && !DEFECT(M_PRUNE_RUNNING_LEFT_OUT, status_of(instance) == DK_RUNNING) &&
         !DEFECT(M_PRUNE_HELD_LEFT_OUT, is_held(op, &instance->lock));
}

/* PRUNE-4: one of which nothing is deleted was examined, too. */
static dk_status
prune_page(struct op *op, const struct dk_prune *request, struct dk_removed *removed)
{
  const struct store *s = op->s;
  struct instance *const *all = instances_in_order(op->s);
  size_t n = s->instances.n, looked = 0;

  if (!all)
    return refuse(op, DK_NO_MEMORY, "out of memory");
  size_t i = place_after(op, all, request->after);
  for (; i < n && (looked < request->max_instances ||
                   DEFECT(M_PRUNE_LIMIT_IGNORED, looked == request->max_instances)); i++) {
    if (DEFECT(M_PRUNE_LONG_PAGE_IS_LAST, looked == 2000))
      return DK_OK;
    if (!is_of_page(op, all[i], request))
      continue;
    if (DEFECT(M_PRUNE_PENDING_ENDS_PAGE, !all[i]->birth))
      return refuse(op, DK_NOT_FOUND, "no turn of an instance was ever committed");
    prune(op, all[i], request, removed);
    looked++;
  }
  if (i < n && !MUTANT(M_PRUNE_NO_NEXT))
    removed->next = all[i - 1]->id;
  return DK_OK;
}

static dk_status
prune_executions(struct op *op, const struct dk_prune *request)
{
  const struct store *s = op->s;
  struct dk_removed removed = {.struct_size = sizeof removed};

  TRY(refuse_unknown(op, REFUSED(M_PRUNE_FLAGS_IGNORED, request->flags != 0),
                     "a flag of the prune"));
  TRY(begin_filter(op, request->filter));
  TRY(refuse_reader(op));
  TRY(request->instance.ptr ? prune_one(op, request, &removed)
                            : prune_page(op, request, &removed));
  s->host->removed(op->call, &removed);
  return DK_OK;
}

dk_status
model_prune_executions(void *self, struct dk_call *call, const struct dk_prune *request)
{
  struct op op;

  TRY(enter(&op, self, call, "prune_executions"));
  return leave(&op, prune_executions(&op, request));
}
