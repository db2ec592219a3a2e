/* SPDX-License-Identifier: Apache-2.0 */
/* A client that lists histories and queues, page by page, and reads counts.  Owns nothing.
 */
#include "core/plugin/call.h"
#include "core/runtime/client/client-info.h"
#include "core/runtime/shared/delay-reason.h"

enum { EVENTS = 64, EXECUTIONS = 16 }; /* in a page: their payloads and outputs may be long */

/* ---- what they have in common ---------------------------------------------------------------- */

/* The listing of one instance. */
struct listing {
  struct info_reader l;
  struct dk_text instance;
};

/* Call listing_end even after a failure. */
static dk_status
listing_begin(struct listing *t, struct dk_client *client, dk_str instance, const char *call,
              bool has_each)
{
  *t = (struct listing){.instance = DK_TEXT_EMPTY};
  dk_text_add(&t->instance, instance.ptr, instance.ptr ? instance.len : 0);
  TRY(info_reader_begin(&t->l, client, true));
  if (!has_each)
    return client_refuse(client, DK_INVALID, "%s has no callback: each is NULL", call);
  if (dk_text_failed(&t->instance))
    return client_refuse(client, DK_NO_MEMORY, "no memory for the instance's id");
  return DK_OK;
}

static void
listing_end(struct listing *t)
{
  info_reader_end(&t->l);
  dk_text_done(&t->instance);
}

static dk_str
id_of(const struct listing *t)
{
  return (dk_str){dk_text_str(&t->instance), t->instance.length};
}

static dk_status
was_ended(const struct listing *t)
{
  return client_refuse(t->l.client, DK_CALL_CANCELLED, "the callback has ended the call");
}

static dk_status
client_history_no_memory(const struct listing *t)
{
  return client_refuse(t->l.client, DK_NO_MEMORY, "no memory for the contents of a payload");
}

/* Nothing was listed.  DK_NOT_FOUND: because nothing is stored for this id. */
static dk_status
was_nothing(struct listing *t)
{
  const dk_str id = id_of(t);
  const struct dk_instance_filter filter = {
    .struct_size = sizeof(filter), .flags = DK_FILTER_IDS, .ids = &id, .n_ids = 1};
  const struct dk_list_instances request = {.struct_size = sizeof(request), .filter = &filter};
  struct dk_instances *found;

  TRY(info_list(&t->l, t->l.started, &request, &found));
  if (found->n_items > 0)
    return DK_OK;
  return client_refuse(t->l.client, DK_NOT_FOUND, "nothing is stored for %.200s", id.ptr);
}

/* ---- histories ------------------------------------------------------------------------------- */

struct reading {
  uint64_t execution, from, left;
  dk_history_fn *each;
  void *context;
};

static dk_status
list_event(struct listing *t, const struct reading *r, const struct dk_event *stored)
{
  struct event event = {.kind = EVENT_NONE};
  const char *why;

  dk_arena_reset(&t->l.scratch);
  dk_status status = event_decode(&t->l.scratch, stored->payload, &event, &why);
  if (status == DK_NO_MEMORY)
    return client_history_no_memory(t);
  if (status != DK_OK)
    event = (struct event){.kind = EVENT_NONE};
  const struct dk_history_entry entry = {
    .struct_size = sizeof(entry),
    .execution_id = r->execution,
    .event_id = stored->event_id,
    .source = event.source,
    .time = event.time,
    .kind = status == DK_OK ? event_kind_name(event.kind) : "unreadable",
    .code = code_name(event.code),
    .name = event.name,
    .text = event.text,
    .by = event.by,
    .other_instance = event.instance.ptr ? event.instance : event.parent.instance,
    .payload = stored->payload,
  };
  return r->each(r->context, &entry) == 0 ? DK_OK : was_ended(t);
}

/* Lists one page; *ret_is_last: there is no more, or the maximum is reached. */
static dk_status
list_events(struct listing *t, struct reading *r, bool *ret_is_last)
{
  const struct dk_read_history request = {
    .struct_size = sizeof(request),
    .max_events = r->left < EVENTS ? (uint32_t)r->left : EVENTS,
    .instance = id_of(t),
    .execution_id = r->execution,
    .from_event = r->from,
  };
  struct dk_history *history;

  TRY(info_history(&t->l, &request, &history));
  if (!history->found)
    return client_refuse(t->l.client, DK_NOT_FOUND, "%.200s has no stored execution %s%llu",
                         id_of(t).ptr, r->execution == 0 ? "at all, " : "",
                         (unsigned long long)r->execution);
  r->execution = history->execution.execution_id; /* from now on this one, even if it ends */
  for (size_t i = 0; i < history->n_events; i++)
    TRY(list_event(t, r, &history->events[i]));
  if (history->n_events > 0)
    r->from = history->events[history->n_events - 1].event_id + 1;
  r->left -= history->n_events;
  *ret_is_last = history->n_events < request.max_events || r->left == 0;
  return DK_OK;
}

dk_status
dk_client_history(struct dk_client *client, dk_str instance, uint64_t execution_id,
                  uint64_t from_event, uint64_t max, dk_history_fn *each, void *context)
{
  struct reading r = {.execution = execution_id,
                      .from = from_event,
                      .left = max > 0 ? max : UINT64_MAX,
                      .each = each,
                      .context = context};
  struct listing t;
  bool is_last = false;

  client_forget_error(client);
  dk_status status = listing_begin(&t, client, instance, "dk_client_history", each != NULL);
  while (status == DK_OK && !is_last)
    status = list_events(&t, &r, &is_last);
  listing_end(&t);
  return status;
}

/* ---- executions ------------------------------------------------------------------------------ */

static dk_status
list_executions(struct listing *t, uint64_t after, struct dk_executions **ret_executions)
{
  const struct dk_list_executions request = {.struct_size = sizeof(request),
                                             .max_executions = EXECUTIONS,
                                             .instance = id_of(t),
                                             .after = after};
  struct dk_client *client = t->l.client;
  dk_status status;
  struct attempts attempts = attempts_begin();

  do {
    dk_caller_reset(t->l.detail);
    status = dk_store_list_executions(client->store, t->l.detail, &request, ret_executions);
  } while (client_reads_again(client, &attempts, status, false));
  return client_keep_error(client, t->l.detail, status);
}

static dk_status
list_every_execution(struct listing *t, dk_execution_fn *each, void *context)
{
  struct dk_executions *executions;
  uint64_t after = 0;

  do {
    TRY(list_executions(t, after, &executions));
    if (after == 0 && executions->n_items == 0)
      return was_nothing(t);
    for (size_t i = 0; i < executions->n_items; i++)
      if (each(context, &executions->items[i]) != 0)
        return was_ended(t);
    if (executions->n_items > 0)
      after = executions->items[executions->n_items - 1].execution_id;
  } while (executions->n_items == EXECUTIONS);
  return DK_OK;
}

dk_status
dk_client_executions(struct dk_client *client, dk_str instance, dk_execution_fn *each,
                     void *context)
{
  struct listing t;

  TRY(client_needs_admin(client, "dk_client_executions"));
  dk_status status = listing_begin(&t, client, instance, "dk_client_executions", each != NULL);
  if (status == DK_OK)
    status = list_every_execution(&t, each, context);
  listing_end(&t);
  return status;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Skips a reason (delay-reason.h) if a newer one is stored. */
static dk_status
list_message(struct listing *t, const struct dk_messages *all, const struct dk_message *stored,
             dk_waiting_fn *each, void *context)
{
  struct message message = {.kind = MESSAGE_NONE};
  const char *why = NULL;

  dk_arena_reset(&t->l.scratch);
  dk_status status = message_decode(&t->l.scratch, stored->payload, &message, &why);
  if (status == DK_NO_MEMORY)
    return client_history_no_memory(t);
  if (status != DK_OK)
    message = (struct message){.kind = MESSAGE_NONE, .text = dk_str_of(why)};
  if (message.kind == MESSAGE_DELAYED && reason_is_outdated(all->items, all->n_items, stored))
    return DK_OK;
  const struct dk_waiting waiting = {
    .struct_size = sizeof(waiting),
    .visible_at = stored->visible_at,
    .enqueued_at = stored->enqueued_at,
    .kind = status == DK_OK ? message_kind_name(message.kind) : "unreadable",
    .id = stored->id,
    .name = message.name,
    .text = message.text,
    .by = message.by,
    .payload = stored->payload,
  };
  return each(context, &waiting) == 0 ? DK_OK : was_ended(t);
}

static dk_status
list_messages(struct listing *t, dk_waiting_fn *each, void *context)
{
  struct dk_messages *messages;

  TRY(info_messages(&t->l, id_of(t), 0, &messages));
  if (messages->n_items == 0)
    return was_nothing(t);
  for (size_t i = 0; i < messages->n_items; i++)
    TRY(list_message(t, messages, &messages->items[i], each, context));
  return DK_OK;
}

dk_status
dk_client_messages(struct dk_client *client, dk_str instance, dk_waiting_fn *each, void *context)
{
  struct listing t;

  TRY(client_needs_admin(client, "dk_client_messages"));
  dk_status status = listing_begin(&t, client, instance, "dk_client_messages", each != NULL);
  if (status == DK_OK)
    status = list_messages(&t, each, context);
  listing_end(&t);
  return status;
}

/* ---- counts ---------------------------------------------------------------------------------- */

dk_status
dk_client_stats(struct dk_client *client, struct dk_stats *ret_stats)
{
  struct dk_stats stats = {.struct_size = sizeof(stats)};
  struct info_reader l;
  struct attempts attempts = attempts_begin();

  TRY(client_needs_admin(client, "dk_client_stats"));
  dk_status status = info_reader_begin(&l, client, false);
  if (status == DK_OK) {
    do {
      dk_caller_reset(l.detail);
      status = dk_store_read_stats(client->store, l.detail, &stats);
    } while (client_reads_again(client, &attempts, status, false));
    client_keep_error(client, l.detail, status);
  }
  info_reader_end(&l);
  if (status != DK_OK)
    return status;
  uint32_t size = ret_stats->struct_size;
  memcpy(ret_stats, &stats, size < sizeof(stats) ? size : sizeof(stats));
  ret_stats->struct_size = size;
  return DK_OK;
}
