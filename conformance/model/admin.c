/* SPDX-License-Identifier: Apache-2.0 */
/* ADMIN: looking.  Takes no lock of an instance and changes nothing; each answer is of the moment
 * at which the operation has entered. */
#include "conformance/model/model.h"

#include <string.h>

/* ---- instances ------------------------------------------------------------------------------- */

/* ADMIN-3, ADMIN-4. */
static dk_status
hand_up_instance(struct op *op, const struct instance *instance, bool with_output)
{
  const struct execution *e = instance->current;
  struct dk_instance told = {
    .struct_size = sizeof told,
    .status = status_of(instance),
    .instance = instance->id,
    .created_at = created_at(op, instance),
    .locked_until = is_held(op, &instance->lock) ? instance->lock.until : 0,
  };

  if (instance->birth) {
    told.owner = instance->facts->owner;
    told.name = instance->facts->name;
    told.version = instance->facts->version;
    told.parent_instance = instance->facts->parent;
    told.birth = instance->birth;
    told.execution_id = e->execution_id;
    told.last_event_id = e->last_event_id;
    told.started_at = e->started_at;
    told.completed_at = e->completed_at;
  }
  if (instance->birth && with_output)
    told.output = e->output;
  return op->s->host->instance(op->call, &told);
}

/* ADMIN-1. */
static dk_status
list_instances(struct op *op, const struct dk_list_instances *request)
{
  uint32_t n = 0, most = request->max_instances ? request->max_instances : UINT32_MAX;

  TRY(refuse_unknown(op, request->flags & ~(uint32_t)DK_LIST_OUTPUT, "a flag of the list"));
  TRY(begin_filter(op, request->filter));
  struct instance *const *all = instances_in_order(op->s);
  if (!all)
    return refuse(op, DK_NO_MEMORY, "out of memory");
  for (size_t i = place_after(op, all, request->after); i < op->s->instances.n && n < most; i++) {
    if (!is_selected(op, all[i], request->filter))
      continue;
    TRY(hand_up_instance(op, all[i], request->flags & DK_LIST_OUTPUT));
    n++;
  }
  return DK_OK;
}

static dk_status
model_list_instances(void *self, struct dk_call *call, const struct dk_list_instances *request)
{
  struct op op;

  TRY(enter(&op, self, call, "list_instances"));
  return leave(&op, list_instances(&op, request));
}

/* ---- executions and messages ----------------------------------------------------------------- */

/* ADMIN-5. */
static dk_status
list_executions(struct op *op, const struct dk_list_executions *request)
{
  const struct instance *of = find_instance(op->s, request->instance);
  uint32_t n = 0, most = request->max_executions ? request->max_executions : UINT32_MAX;

  for (const struct execution *e = of ? of->first : NULL; e && n < most; e = e->next) {
    struct dk_execution told = told_execution(e);
    if (e->execution_id <= request->after)
      continue;
    TRY(op->s->host->execution(op->call, &told));
    n++;
  }
  return DK_OK;
}

static dk_status
model_list_executions(void *self, struct dk_call *call, const struct dk_list_executions *request)
{
  struct op op;

  TRY(enter(&op, self, call, "list_executions"));
  return leave(&op, list_executions(&op, request));
}

/* ADMIN-8. */
static dk_status
read_messages(struct op *op, const struct dk_read_messages *request)
{
  const struct instance *of = find_instance(op->s, request->instance);
  uint32_t n = 0, most = request->max_messages ? request->max_messages : UINT32_MAX;

  if (!of)
    return DK_OK;
  FOR_EACH(at, &of->messages) {
    const struct message *message = OWNER_OF(at, struct message, link);
    if (n++ == most)
      break;
    TRY(op->s->host->message(op->call, &(struct dk_message){
                                         .struct_size = sizeof(struct dk_message),
                                         .id = message->id,
                                         .payload = message->payload,
                                         .visible_at = message->visible_at,
                                         .enqueued_at = message->enqueued_at,
                                       }));
  }
  return DK_OK;
}

static dk_status
model_read_messages(void *self, struct dk_call *call, const struct dk_read_messages *request)
{
  struct op op;

  TRY(enter(&op, self, call, "read_messages"));
  return leave(&op, read_messages(&op, request));
}

/* ---- counts ---------------------------------------------------------------------------------- */

struct depth {
  uint64_t ready, delayed, locked;
  int64_t oldest;
};

/* ADMIN-6: what waits for its time is delayed, whoever holds it; then what is held is locked. */
static void
count_waiting(const struct op *op, int64_t visible_at, const struct lock *lock,
              struct depth *depth)
{
  if (visible_at > op->now) {
    depth->delayed++;
  } else if (is_held(op, lock)) {
    depth->locked++;
  } else {
    if (!depth->ready++ || visible_at < depth->oldest)
      depth->oldest = visible_at;
  }
}

static void
count_status(const struct instance *instance, struct dk_stats *stats)
{
  uint64_t *const by_status[] = {
    [DK_NOT_STARTED] = &stats->not_started, [DK_RUNNING] = &stats->running,
    [DK_COMPLETED] = &stats->completed,     [DK_FAILED] = &stats->failed,
    [DK_CANCELLED] = &stats->cancelled,     [DK_CONTINUED_AS_NEW] = &stats->continued_as_new,
  };

  if (is_there(instance))
    ++*by_status[status_of(instance)];
}

static void
count_executions(const struct instance *instance, struct dk_stats *stats)
{
  for (const struct execution *e = instance->first; e; e = e->next) {
    stats->executions++;
    for (const struct event *v = e->first; v; v = v->next)
      stats->events++;
  }
}

static dk_status
read_stats(struct op *op, const struct dk_read_stats *request)
{
  const struct store *s = op->s;
  struct depth messages = {0}, activities = {0};
  struct dk_stats stats = {.struct_size = sizeof stats, .now = op->now};

  TRY(refuse_unknown(op, request->flags != 0, "a flag of the counts"));
  struct instance *const *all = instances_in_order(op->s);
  if (!all)
    return refuse(op, DK_NO_MEMORY, "out of memory");
  for (size_t i = 0; i < s->instances.n; i++) {
    count_status(all[i], &stats);
    count_executions(all[i], &stats);
    FOR_EACH(at, &all[i]->messages)
      count_waiting(op, OWNER_OF(at, struct message, link)->visible_at, &all[i]->lock, &messages);
  }
  FOR_EACH(at, &s->rows) {
    const struct row *row = OWNER_OF(at, struct row, link);
    count_waiting(op, row->visible_at, &row->lock, &activities);
  }
  stats.messages_ready = messages.ready;
  stats.messages_delayed = messages.delayed;
  stats.messages_locked = messages.locked;
  stats.oldest_message = messages.oldest;
  stats.activities_ready = activities.ready;
  stats.activities_delayed = activities.delayed;
  stats.activities_locked = activities.locked;
  stats.oldest_activity = activities.oldest;
  return s->host->stats(op->call, &stats);
}

static dk_status
model_read_stats(void *self, struct dk_call *call, const struct dk_read_stats *request)
{
  struct op op;

  TRY(enter(&op, self, call, "read_stats"));
  return leave(&op, read_stats(&op, request));
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct dk_admin model_admin = {
  .struct_size = sizeof model_admin,
  .list_instances = model_list_instances,
  .list_executions = model_list_executions,
  .read_messages = model_read_messages,
  .read_stats = model_read_stats,
  .delete_instances = model_delete_instances,
  .delete_matching = model_delete_matching,
  .prune_executions = model_prune_executions,
};
