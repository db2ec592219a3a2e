/* SPDX-License-Identifier: Apache-2.0 */
/* The upcalls for the results of durakit.admin/1: see sink.h.  Owns nothing. */
#include "core/plugin/sink.h"

#include "core/base/bytes.h"

/* ---- executions and messages ----------------------------------------------------------------- */

/* ADMIN-5: numbers ascend from the one requested, and there are no more than requested. */
dk_status
dk_sink_add_execution(struct dk_call *call, const struct dk_execution *given)
{
  const struct dk_list_executions *asked = call->request->list_executions;
  struct dk_rows *rows = &call->results.execution_rows;
  const struct dk_execution *others = rows->first;
  uint64_t last = rows->n > 0 ? others[rows->n - 1].execution_id : asked->after;
  struct dk_execution execution;

  if (asked->max_executions > 0 && rows->n >= asked->max_executions)
    return dk_call_violated(call, "ADMIN-5", "more than the %u executions that were requested",
                            asked->max_executions);
  TRY(READ(call, "execution", execution, given, &execution));
  if (execution.execution_id <= last)
    return dk_call_violated(call, "ADMIN-5", "execution %llu after %llu",
                            (unsigned long long)execution.execution_id, (unsigned long long)last);
  TRY(dk_sink_keep_payload(call, "an output", &execution.output));
  ADD_ROW(call, rows, execution);
  return DK_OK;
}

/* ADMIN-8 */
dk_status
dk_sink_expect_message(struct dk_call *call)
{
  const struct dk_read_messages *asked = call->request->read_messages;

  if (asked->max_messages == 0 || call->results.messages.n < asked->max_messages)
    return DK_OK;
  return dk_call_violated(call, "ADMIN-8", "more than the %u messages that were requested",
                          asked->max_messages);
}

/* ---- instances ------------------------------------------------------------------------------- */

/* ADMIN-1: ids ascend from the one requested, and there are no more than requested. */
static dk_status
expect_next_instance(struct dk_call *call, struct dk_bytes instance)
{
  const struct dk_list_instances *asked = call->request->list_instances;
  const struct dk_rows *rows = &call->results.instance_rows;
  const struct dk_instance *others = rows->first;
  struct dk_bytes last = rows->n > 0 ? others[rows->n - 1].instance : asked->after;

  if (asked->max_instances > 0 && rows->n >= asked->max_instances)
    return dk_call_violated(call, "ADMIN-1", "more than the %u instances that were requested",
                            asked->max_instances);
  if (!last.ptr || str_compare(instance, last) > 0)
    return DK_OK;
  return dk_call_violated(call, "ADMIN-1", "instance \"%.64s\" after \"%.64s\"", instance.ptr,
                          last.ptr);
}

static dk_status
sink_instance(struct dk_call *call, const struct dk_instance *given)
{
  struct dk_instance instance;

  TRY(dk_sink_expect(call, DK_TAKES_INSTANCES, "instance"));
  TRY(READ(call, "instance", instance, given, &instance));
  if (instance.status < DK_NOT_STARTED || instance.status > DK_CANCELLED)
    return dk_call_violated(call, "ADMIN-3", "an instance with status %d", (int)instance.status);
  TRY(dk_sink_keep_instance(call, "an instance", "ADMIN-1", &instance.instance));
  TRY(expect_next_instance(call, instance.instance));
  TRY(dk_sink_keep_text(call, "an instance with an owner", "ADMIN-3", &instance.owner));
  TRY(dk_sink_keep_text(call, "an instance with a name", "ADMIN-3", &instance.name));
  TRY(dk_sink_keep_text(call, "an instance with a version", "ADMIN-3", &instance.version));
  TRY(dk_sink_keep_text(call, "an instance with a parent", "ADMIN-3", &instance.parent_instance));
  TRY(dk_sink_keep_payload(call, "an output", &instance.output));
  ADD_ROW(call, &call->results.instance_rows, instance);
  return DK_OK;
}

static dk_status
sink_stats(struct dk_call *call, const struct dk_stats *given)
{
  TRY(dk_sink_expect(call, DK_TAKES_STATS, "stats"));
  if (call->results.is_reported)
    return dk_call_violated(call, "ABI-4", "stats was called twice");
  TRY(READ(call, "stats", stats, given, &call->results.stats));
  call->results.is_reported = true;
  return DK_OK;
}

static dk_status
set_removed(struct dk_call *call, const struct dk_removed *given)
{
  struct dk_removed removed;

  TRY(dk_sink_expect(call, DK_TAKES_REMOVED, "removed"));
  if (call->results.is_reported)
    return dk_call_violated(call, "ABI-4", "removed was called twice");
  TRY(READ(call, "removed", removed, given, &removed));
  if (removed.next.ptr && !(call->operation->takes & DK_TAKES_NEXT))
    return dk_call_violated(call, "DEL-4", "removed with a next, but no page was requested");
  TRY(dk_sink_keep_text(call, "removed with a next", "DEL-9", &removed.next));
  call->results.removed = removed;
  call->results.is_reported = true;
  return DK_OK;
}

static void
sink_removed(struct dk_call *call, const struct dk_removed *given)
{
  dk_status refused = call->refused;
  dk_status status = set_removed(call, given);

  call->results.is_incomplete |= status == DK_NO_MEMORY;
  call->refused = refused;
}

void
dk_sink_admin_upcalls(struct dk_host *host)
{
  host->instance = sink_instance;
  host->stats = sink_stats;
  host->removed = sink_removed;
}

/* ---- completeness ---------------------------------------------------------------------------- */

static dk_status
complete_instances(struct dk_call *call)
{
  const struct dk_rows *rows = &call->results.instance_rows;
  struct dk_instances *list = dk_arena_alloc(&call->caller->arena, sizeof(*list));

  if (!list)
    return dk_sink_no_memory(call);
  *list = (struct dk_instances){.items = rows->first, .n_items = rows->n};
  call->results.instances = list;
  return DK_OK;
}

static dk_status
complete_executions(struct dk_call *call)
{
  const struct dk_rows *rows = &call->results.execution_rows;
  struct dk_executions *list = dk_arena_alloc(&call->caller->arena, sizeof(*list));

  if (!list)
    return dk_sink_no_memory(call);
  *list = (struct dk_executions){.items = rows->first, .n_items = rows->n};
  call->results.executions = list;
  return DK_OK;
}

static dk_status
complete_messages(struct dk_call *call)
{
  const struct dk_rows *rows = &call->results.messages;
  struct dk_messages *list = dk_arena_alloc(&call->caller->arena, sizeof(*list));

  if (!list)
    return dk_sink_no_memory(call);
  *list = (struct dk_messages){.items = rows->first, .n_items = rows->n};
  call->results.waiting = list;
  return DK_OK;
}

static dk_status
complete_stats(struct dk_call *call)
{
  if (call->results.is_reported)
    return DK_OK;
  return dk_call_violated(call, "ADMIN-6", "DK_OK without stats");
}

/* The deletion cannot be undone.  If the end of the page is unknown, the caller may request the
 * same page again. */
static dk_status
complete_removed(struct dk_call *call)
{
  if (call->results.is_reported)
    return DK_OK;
  if (!call->results.is_incomplete)
    return dk_call_violated(call, "DEL-7", "DK_OK without removed");
  call->refused = dk_call_refuse(call, DK_OUTCOME_UNKNOWN,
                                 "the page was removed, but there is no memory for its end");
  call->caller->failure.by_host = 0;
  return call->refused;
}

dk_status
dk_sink_complete_admin(struct dk_call *call)
{
  uint32_t takes = call->operation->takes;

  return takes & DK_TAKES_INSTANCES    ? complete_instances(call)
         : takes & DK_TAKES_EXECUTIONS ? complete_executions(call)
         : takes & DK_TAKES_MESSAGES   ? complete_messages(call)
         : takes & DK_TAKES_STATS      ? complete_stats(call)
         : takes & DK_TAKES_REMOVED    ? complete_removed(call)
                                       : DK_OK;
}
