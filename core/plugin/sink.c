/* SPDX-License-Identifier: Apache-2.0 */
/* The upcalls for results: each copies at once into the caller's memory, in the size that the
 * provider wrote, and refuses what the contract does not allow at that point.  Owns nothing. */
#include <assert.h>
#include <string.h>

#include "core/base/sat.h"
#include "core/base/utf8.h"
#include "core/plugin/call.h"
#include "core/plugin/library.h"
#include "core/plugin/memory.h"
#include "core/plugin/sink.h"
#include "core/plugin/store.h"

enum { FEWEST_ROWS = 8, SMALLEST_STRUCT = 8, LARGEST_STRUCT = 64 * 1024 };

static const struct dk_limits *
limits_of(const struct dk_call *call)
{
  return &call->store->library->limits;
}

/* ---- memory ---------------------------------------------------------------------------------- */

dk_status
dk_sink_no_memory(struct dk_call *call)
{
  call->refused = dk_call_refuse(call, DK_NO_MEMORY, "there is no memory for the results");
  call->caller->failure.by_host = 0;
  return call->refused;
}

/* Adds a zeroed row after the others; NULL: no memory. */
void *
dk_sink_add_row(struct dk_call *call, struct dk_rows *rows, size_t size)
{
  if (rows->n == rows->room) {
    size_t room = rows->room ? rows->room * 2 : FEWEST_ROWS;
    void *first = dk_arena_array(&call->caller->arena, room, size);
    if (!first)
      return NULL;
    if (rows->n > 0)
      memcpy(first, rows->first, rows->n * size);
    rows->first = first;
    rows->room = room;
  }
  assert(rows->n < rows->room);
  return (char *)rows->first + rows->n++ * size;
}

/* Copies the bytes into the caller's memory; absent stays absent. */
dk_status
dk_sink_keep(struct dk_call *call, const char *what, struct dk_bytes *bytes)
{
  if (!bytes->ptr && bytes->len > 0)
    return dk_call_violated(call, "ABI-4", "%s: %zu bytes at NULL", what, bytes->len);
  if (!bytes->ptr)
    return DK_OK;
  bytes->ptr = dk_arena_copy(&call->caller->arena, bytes->ptr, bytes->len);
  return bytes->ptr ? DK_OK : dk_sink_no_memory(call);
}

/* Text must be what the host accepts: UTF-8 without NUL, 1 to max_id bytes, or absent. */
dk_status
dk_sink_keep_text(struct dk_call *call, const char *what, const char *clause, struct dk_bytes *text)
{
  if (text->ptr && !dk_text_id_valid(text->ptr, text->len, limits_of(call)->max_id))
    return dk_call_violated(call, clause,
                            "%s of %zu bytes, expected UTF-8 of 1 to %u without NUL", what,
                            text->len, limits_of(call)->max_id);
  return dk_sink_keep(call, what, text);
}

/* ERR-4: a provider must not return more than it accepts. */
dk_status
dk_sink_keep_payload(struct dk_call *call, const char *what, struct dk_bytes *payload)
{
  if (payload->len > limits_of(call)->max_payload)
    return dk_call_violated(call, "ERR-4", "%s of %zu bytes, more than the declared %llu", what,
                            payload->len, (unsigned long long)limits_of(call)->max_payload);
  return dk_sink_keep(call, what, payload);
}

/* TOKEN-1 */
static dk_status
keep_token(struct dk_call *call, const char *what, struct dk_bytes *token)
{
  size_t most = (size_t)limits_of(call)->max_id * 2 + 128;

  if (!token->ptr || token->len == 0)
    return dk_call_violated(call, "TOKEN-1", "%s without a lock token", what);
  if (token->len > most)
    return dk_call_violated(call, "TOKEN-1",
                            "%s with a lock token of %zu bytes, expected at most %zu", what,
                            token->len, most);
  if (memchr(token->ptr, '\0', token->len))
    return dk_call_violated(call, "TOKEN-1", "%s with a NUL in its lock token", what);
  return dk_sink_keep(call, what, token);
}

dk_status
dk_sink_keep_instance(struct dk_call *call, const char *what, const char *clause,
                      struct dk_bytes *instance)
{
  if (!instance->ptr ||
      !dk_text_id_valid(instance->ptr, instance->len, limits_of(call)->max_id))
    return dk_call_violated(call, clause, "%s with an instance that is not a valid id", what);
  return dk_sink_keep(call, what, instance);
}

/* ---- may this be handed up now --------------------------------------------------------------- */

/* ABI-4: in a running call, of an operation that has such results, and not after an error. */
dk_status
dk_sink_expect(struct dk_call *call, uint32_t takes, const char *upcall)
{
  const char *name = call->operation->name;

  if (!atomic_load(&call->is_running)) {
    dk_call_report(call, "ABI-4", "%s was called after %s had returned", upcall, name);
    return DK_INTERNAL;
  }
  if (call->refused != DK_OK) {
    dk_call_report(call, "ABI-4", "%s was called after an upcall of %s was refused", upcall, name);
    return call->refused;
  }
  if (call->failed != DK_OK)
    return dk_call_violated(call, "ABI-4", "%s was called after fail", upcall);
  if (!(call->operation->takes & takes))
    return dk_call_violated(call, "ABI-4", "%s was called by %s, which has no such result", upcall,
                            name);
  bool never_refused = (takes & (DK_TAKES_STOLEN | DK_TAKES_DUPLICATE | DK_TAKES_REMOVED)) != 0;
  if (!never_refused && call->caller->refuses > 0 && --call->caller->refuses == 0)
    return dk_sink_no_memory(call);
  return DK_OK;
}

/* A turn is handed up in its order; the other stages follow the head. */
static dk_status
expect_stage(struct dk_call *call, enum dk_stage stage, const char *upcall)
{
  TRY(dk_sink_expect(call, DK_TAKES_TURN, upcall));
  if (stage == DK_STAGE_HEAD ? call->results.stage != DK_STAGE_NONE
                             : call->results.stage < DK_STAGE_HEAD)
    return dk_call_violated(call, "ABI-4", "%s was called %s", upcall,
                            stage == DK_STAGE_HEAD ? "twice" : "before turn");
  if (stage < call->results.stage)
    return dk_call_violated(call, "ABI-4", "%s was called too late: the order is turn, kv, event, "
                                           "message", upcall);
  assert(stage != DK_STAGE_NONE && stage >= call->results.stage);
  call->results.stage = stage;
  return DK_OK;
}

/* ABI-9: reads the members that the provider's struct has; the others are zero. */
dk_status
dk_sink_read_struct(struct dk_call *call, const char *upcall, const struct dk_shape *shape,
                    const void *given, void *copy, size_t size)
{
  uint32_t given_size = 0, full = (uint32_t)size;

  TRY(dk_memory_size(call, upcall, given));
  if (given)
    memcpy(&given_size, given, sizeof(given_size));
  if (given_size < SMALLEST_STRUCT || given_size > LARGEST_STRUCT || given_size % 8 != 0)
    return dk_call_violated(call, "ABI-9", "%s with %s of struct_size %u", upcall,
                            given ? "a struct" : "NULL instead", given_size);
  TRY(dk_memory_struct(call, upcall, shape, given, given_size));
  memset(copy, 0, size);
  memcpy(copy, given, given_size < size ? given_size : size);
  memcpy(copy, &full, sizeof(full));
  return DK_OK;
}

/* POISON-1 */
static dk_status
expect_attempt(struct dk_call *call, const char *what, uint32_t attempt)
{
  if (attempt > 0)
    return DK_OK;
  return dk_call_violated(call, "POISON-1", "%s with attempt 0; the first is 1", what);
}

/* TIME-2; the lease may be used until the returned time, on the host's clock. */
static dk_status
take_lease(struct dk_call *call, const char *what, int64_t lease_left_ms, int64_t *ret_deadline)
{
  const struct dk_request *request = call->request;
  int64_t asked =
    request->fetch_turn ? request->fetch_turn->lock_ms : request->fetch_work->lock_ms;

  if (lease_left_ms < 1)
    return dk_call_violated(call, "TIME-2", "%s with %lld ms left: its lease has ended", what,
                            (long long)lease_left_ms);
  if (lease_left_ms > asked)
    return dk_call_violated(call, "TIME-2", "%s with %lld ms left of a lease of %lld", what,
                            (long long)lease_left_ms, (long long)asked);
  *ret_deadline = dk_sat_add(dk_store_now(call->store), lease_left_ms);
  return DK_OK;
}

/* ---- a turn ---------------------------------------------------------------------------------- */

static dk_status
sink_turn(struct dk_call *call, const struct dk_turn_head *given)
{
  struct dk_turn_head head;
  int64_t deadline;

  TRY(expect_stage(call, DK_STAGE_HEAD, "turn"));
  TRY(READ(call, "turn", turn, given, &head));
  TRY(take_lease(call, "a turn", head.lease_left_ms, &deadline));
  TRY(keep_token(call, "a turn", &head.lock_token));
  TRY(dk_sink_keep_instance(call, "a turn", "TURN-4", &head.instance));
  TRY(dk_sink_keep_text(call, "a turn with a name", "TURN-4", &head.name));
  TRY(dk_sink_keep_text(call, "a turn with a version", "TURN-4", &head.version));
  TRY(dk_sink_keep_text(call, "a turn with a parent_instance", "TURN-4", &head.parent_instance));

  struct dk_turn *turn = dk_arena_alloc(&call->caller->arena, sizeof(*turn));
  if (!turn)
    return dk_sink_no_memory(call);
  turn->head = head;
  turn->deadline = deadline;
  assert(!call->results.turn && call->results.stage == DK_STAGE_HEAD);
  call->results.turn = turn;
  return DK_OK;
}

static dk_status
sink_kv(struct dk_call *call, const struct dk_kv *given)
{
  struct dk_kv kv;

  TRY(expect_stage(call, DK_STAGE_KV, "kv"));
  if (!dk_library_declares(call->store->library, "durakit.kv/1"))
    return dk_call_violated(call, "ABI-3", "kv was called, but durakit.kv/1 is not declared");
  TRY(READ(call, "kv", kv, given, &kv));
  TRY(dk_sink_keep_text(call, "a key", "ERR-6", &kv.key));
  TRY(dk_sink_keep_payload(call, "a value", &kv.value));
  ADD_ROW(call, &call->results.kv, kv);
  return DK_OK;
}

/* HIST-1: ids ascend. */
static dk_status
expect_ascending(struct dk_call *call, uint64_t event_id)
{
  const struct dk_rows *rows = &call->results.events;
  const struct dk_event *events = rows->first;
  uint64_t last = rows->n > 0 ? events[rows->n - 1].event_id : 0;

  if (event_id > last)
    return DK_OK;
  return dk_call_violated(call, "HIST-1", "event %llu after event %llu",
                          (unsigned long long)event_id, (unsigned long long)last);
}

/* HIST-3 */
static dk_status
expect_wanted(struct dk_call *call, uint64_t event_id)
{
  const struct dk_read_history *asked = call->request->read_history;

  if (!call->results.history)
    return dk_call_violated(call, "ABI-4", "event was called before execution");
  if (event_id < asked->from_event)
    return dk_call_violated(call, "HIST-3", "event %llu, but the request begins at event %llu",
                            (unsigned long long)event_id, (unsigned long long)asked->from_event);
  if (asked->max_events > 0 && call->results.events.n >= asked->max_events)
    return dk_call_violated(call, "HIST-3", "more than the %u events that were requested",
                            asked->max_events);
  return DK_OK;
}

static dk_status
sink_event(struct dk_call *call, const struct dk_event *given)
{
  struct dk_event event;

  TRY(dk_sink_expect(call, DK_TAKES_TURN | DK_TAKES_HISTORY, "event"));
  if (call->operation->takes & DK_TAKES_TURN)
    TRY(expect_stage(call, DK_STAGE_EVENTS, "event"));
  if (!given)
    return dk_call_violated(call, "ABI-4", "event with NULL instead of a struct");
  TRY(dk_memory_struct(call, "event", &dk_shape_event, given, sizeof(*given)));
  event = *given;
  if (call->operation->takes & DK_TAKES_HISTORY)
    TRY(expect_wanted(call, event.event_id));
  TRY(expect_ascending(call, event.event_id));
  TRY(dk_sink_keep_payload(call, "the payload of an event", &event.payload));
  ADD_ROW(call, &call->results.events, event);
  return DK_OK;
}

static dk_status
sink_message(struct dk_call *call, const struct dk_message *given)
{
  struct dk_message message;

  TRY(dk_sink_expect(call, DK_TAKES_TURN | DK_TAKES_MESSAGES, "message"));
  if (call->operation->takes & DK_TAKES_TURN)
    TRY(expect_stage(call, DK_STAGE_MESSAGES, "message"));
  else
    TRY(dk_sink_expect_message(call));
  TRY(READ(call, "message", message, given, &message));
  if (call->operation->takes & DK_TAKES_TURN)
    TRY(expect_attempt(call, "a message", message.attempt));
  TRY(dk_sink_keep_text(call, "a message with an id", "QUEUE-6", &message.id));
  TRY(dk_sink_keep_payload(call, "the payload of a message", &message.payload));
  ADD_ROW(call, &call->results.messages, message);
  return DK_OK;
}

/* ---- work, history, stolen rows -------------------------------------------------------------- */

static dk_status
keep_item(struct dk_call *call, const struct dk_item *given, struct dk_item *item)
{
  if (!given)
    return dk_call_violated(call, "WORK-3", "a work item without its item");
  TRY(READ(call, "work", item, given, item));
  TRY(dk_sink_keep_instance(call, "a work item", "WORK-3", &item->instance));
  TRY(dk_sink_keep_text(call, "a work item with an id", "WORK-3", &item->id));
  TRY(dk_sink_keep_text(call, "a work item with a session", "WORK-3", &item->session));
  TRY(dk_sink_keep_text(call, "a work item with a tag", "WORK-3", &item->tag));
  return dk_sink_keep_payload(call, "the payload of a work item", &item->payload);
}

static dk_status
sink_work(struct dk_call *call, const struct dk_work *given)
{
  struct dk_work_item row = {.deadline = 0};

  TRY(dk_sink_expect(call, DK_TAKES_WORK, "work"));
  if (call->results.work_rows.n >= call->request->fetch_work->max_items)
    return dk_call_violated(call, "WORK-8", "more than the %u items that were requested",
                            call->request->fetch_work->max_items);
  TRY(READ(call, "work", work, given, &row.work));
  TRY(take_lease(call, "a work item", row.work.lease_left_ms, &row.deadline));
  TRY(expect_attempt(call, "a work item", row.work.attempt));
  TRY(keep_token(call, "a work item", &row.work.lock_token));
  TRY(keep_item(call, row.work.item, &row.item));
  row.work.item = NULL; /* set when the rows have their final place */
  ADD_ROW(call, &call->results.work_rows, row);
  return DK_OK;
}

static dk_status
sink_execution(struct dk_call *call, const struct dk_execution *given)
{
  struct dk_execution execution;

  TRY(dk_sink_expect(call, DK_TAKES_HISTORY | DK_TAKES_EXECUTIONS, "execution"));
  if (call->operation->takes & DK_TAKES_EXECUTIONS)
    return dk_sink_add_execution(call, given);
  if (call->results.history)
    return dk_call_violated(call, "ABI-4", "execution was called twice");
  TRY(READ(call, "execution", execution, given, &execution));
  TRY(dk_sink_keep_payload(call, "an output", &execution.output));

  struct dk_history *history = dk_arena_alloc(&call->caller->arena, sizeof(*history));
  if (!history)
    return dk_sink_no_memory(call);
  history->found = 1;
  history->execution = execution;
  call->results.history = history;
  return DK_OK;
}

static dk_status
add_stolen(struct dk_call *call, const struct dk_stolen *given)
{
  struct dk_stolen stolen;

  TRY(READ(call, "stolen", stolen, given, &stolen));
  TRY(dk_sink_keep(call, "the lock token of a stolen row", &stolen.lock_token));
  TRY(dk_sink_keep_text(call, "a stolen row with an owner", "CANCEL-6", &stolen.owner));
  ADD_ROW(call, &call->results.stolen, stolen);
  return DK_OK;
}

/* These two are never refused, because the rows may be deleted already: errors in them are
 * reported, and the operation continues. */
static void
sink_stolen(struct dk_call *call, const struct dk_stolen *given)
{
  dk_status refused = call->refused;
  dk_status status = dk_sink_expect(call, DK_TAKES_STOLEN, "stolen");

  if (status == DK_OK)
    status = add_stolen(call, given);
  call->results.is_incomplete |= status == DK_NO_MEMORY;
  call->refused = refused;
}

static dk_status
set_report(struct dk_call *call, const struct dk_cancel_report *given)
{
  TRY(dk_sink_expect(call, DK_TAKES_STOLEN, "cancelled_rows"));
  if (call->results.is_reported)
    return dk_call_violated(call, "ABI-4", "cancelled_rows was called twice");
  TRY(READ(call, "cancelled_rows", report, given, &call->results.report));
  call->results.is_reported = true;
  return DK_OK;
}

static void
sink_cancelled_rows(struct dk_call *call, const struct dk_cancel_report *given)
{
  dk_status refused = call->refused;

  set_report(call, given);
  call->refused = refused;
}

/* How many items the list has; 0: there is no such list. */
static uint64_t
length_of_list(const struct dk_turn_result *result, int32_t list)
{
  return list == DK_LIST_EVENTS               ? result->n_events
         : list == DK_LIST_WORKER_ITEMS       ? result->n_worker_items
         : list == DK_LIST_ORCHESTRATOR_ITEMS ? result->n_orchestrator_items
                                              : 0;
}

/* ACK-15 */
static dk_status
set_duplicate(struct dk_call *call, int32_t list, uint64_t index)
{
  TRY(dk_sink_expect(call, DK_TAKES_DUPLICATE, "duplicate"));
  TRY(dk_memory_value(call, "duplicate", "list", &list, sizeof(list)));
  TRY(dk_memory_value(call, "duplicate", "index", &index, sizeof(index)));
  if (call->results.duplicate_list != 0)
    return dk_call_violated(call, "ACK-15", "duplicate was called twice");
  if (index >= length_of_list(call->request->turn_result, list))
    return dk_call_violated(call, "ACK-15",
                            "duplicate named item %llu of list %d, which does not exist",
                            (unsigned long long)index, (int)list);
  call->results.duplicate_list = list;
  call->results.duplicate_index = index;
  return DK_OK;
}

/* Never refused: the commit is refused as it is. */
static void
sink_duplicate(struct dk_call *call, int32_t list, uint64_t index)
{
  dk_status refused = call->refused;

  set_duplicate(call, list, index);
  call->refused = refused;
}

void
dk_sink_upcalls(struct dk_host *host)
{
  host->turn = sink_turn;
  host->kv = sink_kv;
  host->event = sink_event;
  host->message = sink_message;
  host->work = sink_work;
  host->stolen = sink_stolen;
  host->cancelled_rows = sink_cancelled_rows;
  host->execution = sink_execution;
  host->duplicate = sink_duplicate;
  dk_sink_admin_upcalls(host);
}

/* ---- completeness ---------------------------------------------------------------------------- */

/* TURN-13: history_from and last_event_id must match the events that follow. */
static dk_status
complete_events(struct dk_call *call, const struct dk_turn_head *head)
{
  const struct dk_rows *rows = &call->results.events;
  const struct dk_event *events = rows->first;

  if (!head->known && rows->n > 0)
    return dk_call_violated(call, "TURN-13", "%zu events of an unknown instance",
                            rows->n);
  if (!head->known)
    return DK_OK;
  if (rows->n == 0 && head->history_from == head->last_event_id + 1)
    return DK_OK;
  if (rows->n > 0 && head->history_from == events[0].event_id &&
      head->last_event_id == events[rows->n - 1].event_id)
    return DK_OK;
  return dk_call_violated(
    call, "TURN-13", "history_from %llu and last_event_id %llu, but %zu events from %llu to %llu",
    (unsigned long long)head->history_from, (unsigned long long)head->last_event_id, rows->n,
    (unsigned long long)(rows->n > 0 ? events[0].event_id : 0),
    (unsigned long long)(rows->n > 0 ? events[rows->n - 1].event_id : 0));
}

static dk_status
complete_turn(struct dk_call *call)
{
  struct dk_results *results = &call->results;
  struct dk_turn *turn = results->turn;

  if (!turn)
    return dk_call_violated(call, "ERR-1",
                            "DK_OK without a turn; return DK_NOTHING if there is none");
  if (results->messages.n == 0)
    return dk_call_violated(call, "TURN-2", "a turn without a message");
  TRY(complete_events(call, &turn->head));
  turn->kv = results->kv.first;
  turn->n_kv = results->kv.n;
  turn->events = results->events.first;
  turn->n_events = results->events.n;
  turn->messages = results->messages.first;
  turn->n_messages = results->messages.n;
  return DK_OK;
}

static dk_status
complete_work(struct dk_call *call)
{
  struct dk_work_item *items = call->results.work_rows.first;

  if (call->results.work_rows.n == 0)
    return dk_call_violated(call, "ERR-1",
                            "DK_OK without a work item; return DK_NOTHING if there is none");
  for (size_t i = 0; i < call->results.work_rows.n; i++)
    items[i].work.item = &items[i].item;

  struct dk_works *works = dk_arena_alloc(&call->caller->arena, sizeof(*works));
  if (!works)
    return dk_sink_no_memory(call);
  *works = (struct dk_works){.items = items, .n_items = call->results.work_rows.n};
  call->results.works = works;
  return DK_OK;
}

static dk_status
complete_history(struct dk_call *call)
{
  struct dk_results *results = &call->results;

  if (!results->history)
    results->history = dk_arena_alloc(&call->caller->arena, sizeof(*results->history));
  if (!results->history)
    return dk_sink_no_memory(call);
  results->history->events = results->events.first;
  results->history->n_events = results->events.n;
  return DK_OK;
}

dk_status
dk_sink_complete(struct dk_call *call)
{
  uint32_t takes = call->operation->takes;

  return takes & DK_TAKES_TURN      ? complete_turn(call)
         : takes & DK_TAKES_WORK    ? complete_work(call)
         : takes & DK_TAKES_HISTORY ? complete_history(call)
                                    : dk_sink_complete_admin(call);
}
