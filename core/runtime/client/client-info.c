/* SPDX-License-Identifier: Apache-2.0 */
/* Reads instances: see client-info.h. */
#include "core/runtime/client/client-info.h"

#include "core/base/names.h"
#include "core/plugin/call.h"

enum { FEW_MESSAGES = 16 }; /* enough to contain a start, usually */

/* ---- beginning and end ----------------------------------------------------------------------- */

dk_status
info_reader_begin(struct info_reader *l, struct dk_client *client, bool with_output)
{
  *l = (struct info_reader){.client = client, .with_output = with_output};
  dk_arena_init(&l->page);
  dk_arena_init(&l->scratch);
  l->started = client_new_caller(client);
  l->unborn = client_new_caller(client);
  l->detail = client_new_caller(client);
  l->again = client_new_caller(client);
  if (l->started && l->unborn && l->detail && l->again)
    return DK_OK;
  return client_refuse(client, DK_NO_MEMORY, "no memory for the store's answer");
}

void
info_reader_end(struct info_reader *l)
{
  dk_caller_free(l->started);
  dk_caller_free(l->unborn);
  dk_caller_free(l->detail);
  dk_caller_free(l->again);
  dk_arena_done(&l->page);
  dk_arena_done(&l->scratch);
}

void
info_reader_next_page(struct info_reader *l)
{
  dk_arena_reset(&l->page);
}

/* ---- requests to the store ------------------------------------------------------------------- */

dk_status
info_list(struct info_reader *l, struct dk_caller *caller, const struct dk_list_instances *request,
          struct dk_instances **ret_instances)
{
  dk_status status;
  struct attempts attempts = attempts_begin();

  do {
    dk_caller_reset(caller);
    status = dk_store_list_instances(l->client->store, caller, request, ret_instances);
  } while (client_reads_again(l->client, &attempts, status, l->is_patient));
  return client_keep_error(l->client, caller, status);
}

dk_status
info_messages(struct info_reader *l, dk_str instance, uint32_t max,
              struct dk_messages **ret_messages)
{
  const struct dk_read_messages request = {
    .struct_size = sizeof(request), .max_messages = max, .instance = instance};
  dk_status status;
  struct attempts attempts = attempts_begin();

  do {
    dk_caller_reset(l->detail);
    status = dk_store_read_messages(l->client->store, l->detail, &request, ret_messages);
  } while (client_reads_again(l->client, &attempts, status, l->is_patient));
  return client_keep_error(l->client, l->detail, status);
}

dk_status
info_history(struct info_reader *l, const struct dk_read_history *request,
             struct dk_history **ret_history)
{
  dk_status status;
  struct attempts attempts = attempts_begin();

  do {
    dk_caller_reset(l->detail);
    status = dk_store_read_history(l->client->store, l->detail, request, ret_history);
  } while (client_reads_again(l->client, &attempts, status, l->is_patient));
  return client_keep_error(l->client, l->detail, status);
}

/* ---- events ---------------------------------------------------------------------------------- */

static dk_status
client_info_no_memory(struct info_reader *l)
{
  return client_refuse(l->client, DK_NO_MEMORY, "no memory for the data of an instance");
}

/* Keeps a text for the duration of the page. */
static dk_status
keep(struct info_reader *l, dk_str text, dk_str *ret_text)
{
  *ret_text =
    (dk_str){text.ptr ? dk_arena_copy(&l->page, text.ptr, text.len) : NULL, text.len};
  return text.ptr && !ret_text->ptr ? client_info_no_memory(l) : DK_OK;
}

/* The first event that was read, if it is readable; else one of kind EVENT_NONE: an instance is
 * reported even if its history is damaged. */
static dk_status
first_event(struct info_reader *l, const struct dk_history *history, struct event *ret_event)
{
  const char *why;
  dk_status status = DK_OK;

  dk_arena_reset(&l->scratch);
  *ret_event = (struct event){.kind = EVENT_NONE};
  if (history->found && history->n_events > 0)
    status = event_decode(&l->scratch, history->events[0].payload, ret_event, &why);
  if (status == DK_NO_MEMORY)
    return client_info_no_memory(l);
  if (status != DK_OK)
    *ret_event = (struct event){.kind = EVENT_NONE};
  return DK_OK;
}

static dk_status
read_event(struct info_reader *l, dk_str instance, uint64_t execution, uint64_t id,
           struct dk_history **ret_history, struct event *ret_event)
{
  const struct dk_read_history request = {
    .struct_size = sizeof(request),
    .max_events = 1,
    .instance = instance,
    .execution_id = execution,
    .from_event = id,
  };

  TRY(info_history(l, &request, ret_history));
  return first_event(l, *ret_history, ret_event);
}

/* Reads the requester of the cancellation from its last event. */
static dk_status
look_at_canceller(struct info_reader *l, struct dk_instance_info *info)
{
  struct dk_history *history;
  struct event event;

  TRY(read_event(l, info->instance, info->execution_id, info->n_events, &history, &event));
  return event.kind == EVENT_CANCELLED ? keep(l, event.by, &info->cancelled_by) : DK_OK;
}

dk_status
info_from_history(struct info_reader *l, dk_str instance, struct dk_instance_info *ret_info)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  struct dk_history *history;
  struct event event;

  TRY(read_event(l, instance, 0, 1, &history, &event));
  if (!history->found)
    return DK_NOT_FOUND;
  const struct dk_execution *execution = &history->execution;
  info.status = client_shown_status(execution->status);
  info.execution_id = execution->execution_id;
  info.n_events = execution->last_event_id;
  info.started_at = execution->started_at;
  info.ended_at = info.status == DK_RUNNING ? 0 : execution->completed_at;
  TRY(keep(l, instance, &info.instance));
  if (info.status != DK_RUNNING && l->with_output)
    TRY(keep(l, execution->output, &info.output));
  if (event.kind == EVENT_STARTED) {
    TRY(keep(l, event.name, &info.name));
    TRY(keep(l, event.version, &info.version));
    TRY(keep(l, event.parent.instance, &info.parent));
  }
  if (info.status == DK_CANCELLED && l->with_output)
    TRY(look_at_canceller(l, &info));
  *ret_info = info;
  return DK_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

dk_status
info_from_row(struct info_reader *l, const struct dk_instance *row,
              struct dk_instance_info *ret_info)
{
  bool is_over = row->status != DK_NOT_STARTED && client_shown_status(row->status) != DK_RUNNING;

  *ret_info = (struct dk_instance_info){
    .struct_size = sizeof(*ret_info),
    .status = client_shown_status(row->status),
    .execution_id = row->execution_id,
    .n_events = row->last_event_id,
    .started_at = row->started_at,
    .ended_at = is_over ? row->completed_at : 0,
    .name = row->name,
    .version = row->version,
    .instance = row->instance,
    .parent = row->parent_instance,
    .owner = row->owner,
    .created_at = row->created_at,
    .locked_until = row->locked_until,
  };
  if (is_over && l->with_output)
    ret_info->output = row->output;
  if (row->status == DK_CANCELLED && l->with_output)
    return look_at_canceller(l, ret_info);
  return DK_OK;
}

dk_status
info_keep(struct info_reader *l, struct dk_instance_info *info)
{
  dk_str *const texts[] = {&info->name,     &info->version, &info->output, &info->cancelled_by,
                           &info->instance, &info->parent,  &info->owner};

  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
    TRY(keep(l, *texts[i], texts[i]));
  return DK_OK;
}

/* ---- starts ---------------------------------------------------------------------------------- */

static const struct dk_message *
find_start(const struct dk_messages *messages)
{
  const dk_str id = dk_str_of(CLIENT_START_ID);

  for (size_t i = 0; i < messages->n_items; i++)
    if (messages->items[i].id.ptr && str_equal(messages->items[i].id, id))
      return &messages->items[i];
  return NULL;
}

static dk_status
decode_start(struct info_reader *l, const struct dk_message *row, struct message *ret_start)
{
  const char *why;

  dk_arena_reset(&l->scratch);
  *ret_start = (struct message){.kind = MESSAGE_NONE};
  dk_status status = message_decode(&l->scratch, row->payload, ret_start, &why);
  if (status == DK_NO_MEMORY)
    return client_info_no_memory(l);
  if (status != DK_OK || ret_start->kind != MESSAGE_START)
    *ret_start = (struct message){.kind = MESSAGE_START};
  return DK_OK;
}

/* Usually it is the first message; else all are searched. */
dk_status
info_find_start(struct info_reader *l, dk_str instance, struct message *ret_start,
                bool *ret_is_there)
{
  const struct dk_message *row;
  struct dk_messages *messages;

  TRY(info_messages(l, instance, FEW_MESSAGES, &messages));
  row = find_start(messages);
  if (!row && messages->n_items == FEW_MESSAGES) {
    TRY(info_messages(l, instance, 0, &messages));
    row = find_start(messages);
  }
  *ret_is_there = row != NULL;
  return row ? decode_start(l, row, ret_start) : DK_OK;
}

dk_status
info_from_start(struct info_reader *l, const struct message *start, struct dk_instance_info *info)
{
  TRY(keep(l, start->name, &info->name));
  TRY(keep(l, start->version, &info->version));
  TRY(keep(l, start->parent.instance, &info->parent));
  return l->with_output ? keep(l, start->text, &info->output) : DK_OK;
}
