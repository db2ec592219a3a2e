/* SPDX-License-Identifier: Apache-2.0 */
/* PRUNE: removing executions that are over, with their histories and nothing else. */
#include "conformance/model/model.h"

/* How many are newer. */
static uint64_t
newer_than(const struct execution *e)
{
  uint64_t n = 0;

  while ((e = e->next))
    n++;
  return n;
}

/* PRUNE-1, PRUNE-2: both have to hold. */
static bool
may_go(const struct execution *e, const struct dk_prune *request)
{
  uint64_t keep = request->keep ? request->keep : 1;

  return e->status != DK_RUNNING && newer_than(e) >= keep &&
         (!request->completed_before || e->completed_at < request->completed_before);
}

/* PRUNE-3, PRUNE-5. */
static void
prune(struct op *op, const struct instance *instance, const struct dk_prune *request,
      struct dk_removed *removed)
{
  removed->instances++;
  for (const struct execution *e = instance->first; e; e = e->next) {
    if (!may_go(e, request))
      continue;
    for (const struct event *v = e->first; v; v = v->next)
      removed->events++;
    removed->executions++;
    STEP(op, .kind = EXECUTION_GOES, .instance = instance->id, .execution_id = e->execution_id);
  }
}

static dk_status
prune_one(struct op *op, const struct dk_prune *request, struct dk_removed *removed)
{
  const struct instance *instance = find_instance(op->s, request->instance);

  if (!instance || !instance->birth)
    return refuse(op, DK_NOT_FOUND, "no turn of \"%.*s\" was ever committed",
                  (int)request->instance.len, request->instance.ptr);
  prune(op, instance, request, removed);
  return DK_OK;
}

/* PRUNE-4: whatever their status; also one of which nothing goes was looked at. */
static dk_status
prune_page(struct op *op, const struct dk_prune *request, struct dk_removed *removed)
{
  struct instance *const *all = instances_in_order(op->s);
  size_t n = op->s->instances.n;

  if (!all)
    return refuse(op, DK_NO_MEMORY, "out of memory");
  size_t i = place_after(op, all, request->after);
  for (; i < n && removed->instances < request->max_instances; i++)
    if (is_selected(op, all[i], request->filter))
      prune(op, all[i], request, removed);
  if (i < n)
    removed->next = all[i - 1]->id;
  return DK_OK;
}

static dk_status
prune_executions(struct op *op, const struct dk_prune *request)
{
  struct dk_removed removed = {.struct_size = sizeof removed};

  TRY(refuse_unknown(op, request->flags != 0, "a flag of the prune"));
  TRY(begin_filter(op, request->filter));
  TRY(refuse_reader(op));
  TRY(request->instance.ptr ? prune_one(op, request, &removed)
                            : prune_page(op, request, &removed));
  op->s->host->removed(op->call, &removed);
  return DK_OK;
}

dk_status
model_prune_executions(void *self, struct dk_call *call, const struct dk_prune *request)
{
  struct op op;

  TRY(enter(&op, self, call, "prune_executions"));
  return leave(&op, prune_executions(&op, request));
}
