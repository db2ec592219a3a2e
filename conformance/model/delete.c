/* SPDX-License-Identifier: Apache-2.0 */
/* DEL: removing instances with all that is theirs.  Judged and done under one lock, as one record:
 * whole or not at all. */
#include "conformance/model/model.h"

dk_status
refuse_reader(struct op *op)
{
  return op->s->is_read_only ? refuse(op, DK_REFUSED, "the store was opened read-only") : DK_OK;
}

/* ---- all that goes --------------------------------------------------------------------------- */

static void
delete_rows(struct op *op, struct dk_removed *removed)
{
  FOR_EACH(at, &op->s->rows) {
    const struct identity *i = &OWNER_OF(at, struct row, link)->identity;

    if (!goes(op, find_instance(op->s, i->instance)))
      continue;
    delete_row(op, i->instance, &(struct dk_activity){i->execution_id, i->activity_id});
    removed->activities++;
  }
}

static void
delete_messages(struct op *op, const struct instance *instance, struct dk_removed *removed)
{
  FOR_EACH(at, &instance->messages)
    removed->messages++;
  STEP(op, .kind = MESSAGES_GO, .instance = instance->id);
}

/* DEL-7: each once. */
static void
count_histories(const struct instance *instance, struct dk_removed *removed)
{
  for (const struct execution *e = instance->first; e; e = e->next) {
    removed->executions++;
    for (const struct event *v = e->first; v; v = v->next)
      removed->events++;
  }
}

/* DEL-1, DEL-3: whoever has been let go, with all descendants. */
static void
delete_whoever_goes(struct op *op, struct instance *const *all, struct dk_removed *removed)
{
  delete_rows(op, removed);
  for (size_t i = 0; i < op->s->instances.n; i++) {
    if (!goes(op, all[i]))
      continue;
    removed->instances++;
    count_histories(all[i], removed);
    delete_messages(op, all[i], removed);
    STEP(op, .kind = INSTANCE_GOES, .instance = all[i]->id);
  }
}

static dk_status
hand_up_removed(struct op *op, const struct dk_removed *removed)
{
  op->s->host->removed(op->call, removed);
  return DK_OK;
}

/* ---- these ----------------------------------------------------------------------------------- */

/* DEL-4: each that is named is there, and goes. */
static dk_status
let_named_go(struct op *op, const struct dk_delete_instances *request)
{
  for (size_t i = 0; i < request->n_instances; i++) {
    struct dk_bytes id = request->instances[i];
    struct instance *named = find_instance(op->s, id);

    if (!is_there(named))
      return refuse(op, DK_NOT_FOUND, "there is no instance \"%.*s\"", (int)id.len, id.ptr);
    let_go(op, named);
  }
  return DK_OK;
}

/* DEL-3: nobody is taken from a parent that stays. */
static dk_status
refuse_children_of_others(struct op *op, const struct dk_delete_instances *request)
{
  for (size_t i = 0; i < request->n_instances; i++) {
    struct instance *named = find_instance(op->s, request->instances[i]);

    if (parent_of(op, named) && !goes(op, parent_of(op, named)))
      return refuse(op, DK_REFUSED, "\"%.*s\" has the parent \"%.*s\", which is to stay",
                    (int)named->id.len, named->id.ptr, (int)named->facts->parent.len,
                    named->facts->parent.ptr);
  }
  return DK_OK;
}

/* DEL-2. */
static dk_status
refuse_what_is_not_over(struct op *op, struct instance *const *all)
{
  for (size_t i = 0; i < op->s->instances.n; i++)
    if (goes(op, all[i]) && !is_over(op, all[i]))
      return refuse(op, DK_REFUSED, "\"%.*s\" is not over; DK_DELETE_FORCE deletes it nonetheless",
                    (int)all[i]->id.len, all[i]->id.ptr);
  return DK_OK;
}

static dk_status
delete_instances(struct op *op, const struct dk_delete_instances *request)
{
  struct dk_removed removed = {.struct_size = sizeof removed};

  TRY(refuse_unknown(op, request->flags & ~(uint32_t)DK_DELETE_FORCE, "a flag of the deletion"));
  TRY(refuse_reader(op));
  struct instance *const *all = instances_in_order(op->s);
  if (!all)
    return refuse(op, DK_NO_MEMORY, "out of memory");
  TRY(let_named_go(op, request));
  TRY(refuse_children_of_others(op, request));
  if (!(request->flags & DK_DELETE_FORCE))
    TRY(refuse_what_is_not_over(op, all));
  delete_whoever_goes(op, all, &removed);
  return hand_up_removed(op, &removed);
}

dk_status
model_delete_instances(void *self, struct dk_call *call, const struct dk_delete_instances *request)
{
  struct op op;

  TRY(enter(&op, self, call, "delete_instances"));
  return leave(&op, delete_instances(&op, request));
}

/* ---- what a filter selects ------------------------------------------------------------------- */

/* DEL-8: what is not over stays, and with it whoever has it for a descendant. */
static void
let_what_runs_stay(const struct op *op, struct instance *const *all)
{
  for (size_t i = 0; i < op->s->instances.n; i++)
    if (is_there(all[i]) && !is_over(op, all[i]))
      let_stay(op, all[i]);
}

/* DEL-8: a root, and nobody of its own has to stay. */
static bool
may_go(const struct op *op, struct instance *instance, const struct dk_instance_filter *filter)
{
  return is_selected(op, instance, filter) && !parent_of(op, instance) &&
         !has_to_stay(op, instance);
}

/* DEL-9. */
static dk_status
delete_matching(struct op *op, const struct dk_delete_matching *request)
{
  const struct store *s = op->s;
  struct dk_removed removed = {.struct_size = sizeof removed};
  uint32_t n = 0;

  TRY(refuse_unknown(op, request->flags != 0, "a flag of the deletion"));
  TRY(begin_filter(op, request->filter));
  TRY(refuse_reader(op));
  struct instance *const *all = instances_in_order(op->s);
  if (!all)
    return refuse(op, DK_NO_MEMORY, "out of memory");
  let_what_runs_stay(op, all);
  size_t i = place_after(op, all, request->after);
  for (; i < s->instances.n && n < request->max_instances; i++) {
    if (!may_go(op, all[i], request->filter))
      continue;
    let_go(op, all[i]);
    n++;
  }
  if (i < s->instances.n)
    removed.next = all[i - 1]->id;
  delete_whoever_goes(op, all, &removed);
  return hand_up_removed(op, &removed);
}

dk_status
model_delete_matching(void *self, struct dk_call *call, const struct dk_delete_matching *request)
{
  struct op op;

  TRY(enter(&op, self, call, "delete_matching"));
  return leave(&op, delete_matching(&op, request));
}
