/* SPDX-License-Identifier: Apache-2.0 */
/* Compares replies of durakit.admin/1. */
#include "conformance/random/random.h"

static bool
same_instance(struct pass *p, const struct dk_instance *ours, const struct dk_instance *theirs)
{
  return same_text(p, "ADMIN-1", "instance", ours->instance, theirs->instance) &&
         same_number(p, "ADMIN-4", "status", (uint64_t)ours->status, (uint64_t)theirs->status) &&
         same_time(p, "ADMIN-3", "created_at", ours->created_at, theirs->created_at) &&
         same_time(p, "ADMIN-3", "locked_until", ours->locked_until, theirs->locked_until) &&
         same_text(p, "ADMIN-3", "owner", ours->owner, theirs->owner) &&
         same_text(p, "ADMIN-3", "name", ours->name, theirs->name) &&
         same_text(p, "ADMIN-3", "version", ours->version, theirs->version) &&
         same_text(p, "ADMIN-3", "parent_instance", ours->parent_instance,
                   theirs->parent_instance) &&
         same_birth(p, "ADMIN-3", ours->instance, ours->birth, theirs->birth) &&
         same_number(p, "ADMIN-3", "execution_id", ours->execution_id, theirs->execution_id) &&
         same_number(p, "ADMIN-3", "last_event_id", ours->last_event_id, theirs->last_event_id) &&
         same_time(p, "ADMIN-3", "started_at", ours->started_at, theirs->started_at) &&
         same_time(p, "ADMIN-3", "completed_at", ours->completed_at, theirs->completed_at) &&
         same_text(p, "ADMIN-3", "output", ours->output, theirs->output);
}

static bool
same_instances(struct pass *p)
{
  const struct dk_instances *ours = p->ours.instances, *theirs = p->theirs->instances;

  for (size_t i = 0; i < ours->n_items && i < theirs->n_items; i++)
    if (!same_instance(p, &ours->items[i], &theirs->items[i]))
      return false;
  return same_number(p, "ADMIN-2", "number of instances", ours->n_items, theirs->n_items);
}

static bool
same_executions(struct pass *p)
{
  const struct dk_executions *ours = p->ours.executions, *theirs = p->theirs->executions;

  for (size_t i = 0; i < ours->n_items && i < theirs->n_items; i++)
    if (!same_execution(p, "ADMIN-5", &ours->items[i], &theirs->items[i]))
      return false;
  return same_number(p, "ADMIN-5", "number of executions", ours->n_items, theirs->n_items);
}

static bool
same_stats(struct pass *p)
{
  const struct dk_stats *ours = &p->ours.stats, *theirs = &p->theirs->stats;

#define SAME_COUNT(field) same_number(p, "ADMIN-6", #field, ours->field, theirs->field)
  return same_time(p, "TIME-1", "now", ours->now, theirs->now) && SAME_COUNT(not_started) &&
         SAME_COUNT(running) && SAME_COUNT(completed) && SAME_COUNT(failed) &&
         SAME_COUNT(continued_as_new) && SAME_COUNT(cancelled) && SAME_COUNT(executions) &&
         SAME_COUNT(events) && SAME_COUNT(messages_ready) && SAME_COUNT(messages_delayed) &&
         SAME_COUNT(messages_locked) && SAME_COUNT(activities_ready) &&
         SAME_COUNT(activities_delayed) && SAME_COUNT(activities_locked) &&
         same_time(p, "ADMIN-6", "oldest_message", ours->oldest_message,
                   theirs->oldest_message) &&
         same_time(p, "ADMIN-6", "oldest_activity", ours->oldest_activity,
                   theirs->oldest_activity);
#undef SAME_COUNT
}

static bool
same_removed(struct pass *p, const char *clause)
{
  enum { COUNTS_ROOTS = 2 }; /* the minor of the ABI */
  const struct dk_removed *ours = &p->ours.removed, *theirs = &p->theirs->removed;

  return same_number(p, clause, "instances", ours->instances, theirs->instances) &&
         same_number(p, clause, "executions", ours->executions, theirs->executions) &&
         same_number(p, clause, "events", ours->events, theirs->events) &&
         same_number(p, clause, "messages", ours->messages, theirs->messages) &&
         same_number(p, clause, "activities", ours->activities, theirs->activities) &&
         (p->t->provider->abi_minor < COUNTS_ROOTS ||
          same_number(p, clause, "roots", ours->roots, theirs->roots));
}

bool
admin_replies_agree(struct pass *p)
{
  switch (p->ours.kind) {
  case OP_LIST_INSTANCES:
    return same_instances(p);
  case OP_LIST_EXECUTIONS:
    return same_executions(p);
  case OP_READ_STATS:
    return same_stats(p);
  case OP_PRUNE:
    return same_removed(p, "PRUNE-4");
  default:
    return same_removed(p, "DEL-7");
  }
}
