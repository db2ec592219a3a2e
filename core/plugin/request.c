/* SPDX-License-Identifier: Apache-2.0 */
/* What the host refuses before it calls: see request.h.  Form first, size last (ERR-5).  The
 * provider checks what only the store can know (ACK-4, ACK-5, ACK-8, every duplicate of something
 * stored).  Owns nothing. */
#include "core/plugin/request.h"

#include <stdlib.h>

#include "core/base/bytes.h"
#include "core/plugin/field.h"
#include "core/plugin/library.h"

/* ---- items ----------------------------------------------------------------------------------- */

/* What messages and activities have in common. */
static dk_status
check_item(struct dk_form *form, const struct dk_item *item, uint32_t known_flags)
{
  if (!item)
    return dk_form_refuse(form, DK_INVALID, "item", "expected an item, found NULL");
  TRY(dk_form_struct(form, item->struct_size, DK_SIZE_TO(dk_item, payload)));
  TRY(dk_form_flags(form, item->flags, known_flags));
  TRY(dk_form_at_least(form, "visible_at", item->visible_at, 0));
  TRY(dk_form_at_least(form, "delay_ms", item->delay_ms, 0));
  return dk_form_payload(form, "payload", item->payload);
}

static dk_status
check_zero(const struct dk_form *form, const char *field, uint64_t number)
{
  if (number == 0)
    return DK_OK;
  return dk_form_refuse(form, DK_INVALID, field, "expected 0 (a message has none), found %llu",
                        (unsigned long long)number);
}

static dk_status
check_message(struct dk_form *form, const struct dk_item *item, uint32_t known_flags)
{
  TRY(check_item(form, item, known_flags));
  TRY(dk_form_text(form, "instance", item->instance, false));
  TRY(dk_form_text(form, "id", item->id, true));
  TRY(check_zero(form, "execution_id", item->execution_id));
  TRY(check_zero(form, "activity_id", item->activity_id));
  TRY(dk_form_absent(form, "session", item->session, "a message has none"));
  return dk_form_absent(form, "tag", item->tag, "a message has none");
}

static dk_status
check_activity(struct dk_form *form, const struct dk_item *item, uint32_t known_flags)
{
  TRY(check_item(form, item, known_flags));
  TRY(dk_form_absent(form, "id", item->id, "an activity is identified by its numbers"));
  TRY(dk_form_number(form, "execution_id", item->execution_id));
  TRY(dk_form_number(form, "activity_id", item->activity_id));
  if (item->session.ptr || item->session.len > 0)
    TRY(dk_form_extension(form, "session", "durakit.sessions/1"));
  TRY(dk_form_text(form, "session", item->session, true));
  return dk_form_text(form, "tag", item->tag, true);
}

dk_status
dk_check_enqueue_message(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);

  TRY(check_message(&form, request->item, DK_REPEATED));
  return dk_form_payloads_fit(&form);
}

dk_status
dk_check_enqueue_work(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);

  TRY(check_activity(&form, request->item, DK_REPEATED));
  TRY(dk_form_text(&form, "instance", request->item->instance, false));
  return dk_form_payloads_fit(&form);
}

/* ---- fetches --------------------------------------------------------------------------------- */

static dk_status
check_lease(struct dk_form *form, int64_t lock_ms, int64_t wait_until, struct dk_bytes owner)
{
  TRY(dk_form_at_least(form, "lock_ms", lock_ms, 1));
  TRY(dk_form_at_least(form, "wait_until", wait_until, 0));
  return dk_form_text(form, "owner", owner, true);
}

/* A request made for an older host has none. */
#define TRY_FETCH_ID(form, type, fetch)                                                            \
  do {                                                                                             \
    if (DK_HAS_FIELD(type, fetch, fetch_id) && (fetch)->fetch_id != 0)                             \
      TRY(dk_form_number(form, "fetch_id", (fetch)->fetch_id));                                    \
  } while (0)

dk_status
dk_check_fetch_turn(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);
  const struct dk_fetch_turn *fetch = request->fetch_turn;

  TRY(dk_form_struct(&form, fetch->struct_size, DK_SIZE_TO(dk_fetch_turn, n_ranges)));
  TRY(check_lease(&form, fetch->lock_ms, fetch->wait_until, fetch->owner));
  TRY_FETCH_ID(&form, dk_fetch_turn, fetch);
  return dk_form_list(&form, "ranges", fetch->ranges, fetch->n_ranges);
}

static dk_status
check_sessions(struct dk_form *form, const struct dk_fetch_work *fetch)
{
  TRY(dk_form_value(form, "session_rule", fetch->session_rule, DK_SESSION_ANY));
  TRY(dk_form_at_least(form, "session_lock_ms", fetch->session_lock_ms, 0));
  if (fetch->session_rule != DK_SESSION_NONE)
    TRY(dk_form_extension(form, "session_rule", "durakit.sessions/1"));
  if (fetch->session_lock_ms != 0)
    TRY(dk_form_extension(form, "session_lock_ms", "durakit.sessions/1"));
  return DK_OK;
}

dk_status
dk_check_fetch_work(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);
  const struct dk_fetch_work *fetch = request->fetch_work;

  TRY(dk_form_struct(&form, fetch->struct_size, DK_SIZE_TO(dk_fetch_work, session_lock_ms)));
  TRY(dk_form_at_least(&form, "max_items", fetch->max_items, 1));
  TRY(check_lease(&form, fetch->lock_ms, fetch->wait_until, fetch->owner));
  TRY(dk_form_value(&form, "tag_rule", fetch->tag_rule, DK_TAG_ANY));
  TRY(check_sessions(&form, fetch));
  TRY_FETCH_ID(&form, dk_fetch_work, fetch);
  TRY(dk_form_list(&form, "tags", fetch->tags, fetch->n_tags));
  form.list = "tags";
  for (form.index = 0; form.index < fetch->n_tags; form.index++)
    TRY(dk_form_text(&form, "tag", fetch->tags[form.index], false));
  return DK_OK;
}

/* ---- the commit ------------------------------------------------------------------------------ */

static dk_status
check_events(struct dk_form *form, const struct dk_turn_result *result)
{
  uint64_t last = 0;

  TRY(dk_form_list(form, "events", result->events, result->n_events));
  form->list = "events";
  for (form->index = 0; form->index < result->n_events; form->index++) {
    const struct dk_event *event = &result->events[form->index];
    TRY(dk_form_number(form, "event_id", event->event_id));
    if (event->event_id <= last)
      return dk_form_refuse(form, DK_INVALID, "event_id",
                            "expected more than %llu, the one before, found %llu",
                            (unsigned long long)last, (unsigned long long)event->event_id);
    TRY(dk_form_payload(form, "payload", event->payload));
    last = event->event_id;
  }
  form->list = NULL;
  return DK_OK;
}

static dk_status
check_worker_items(struct dk_form *form, const struct dk_turn_result *result)
{
  TRY(dk_form_list(form, "worker_items", result->worker_items, result->n_worker_items));
  form->list = "worker_items";
  for (form->index = 0; form->index < result->n_worker_items; form->index++) {
    const struct dk_item *item = result->worker_items[form->index];
    TRY(check_activity(form, item, 0));
    TRY(dk_form_absent(form, "instance", item->instance, "it is the turn's"));
  }
  form->list = NULL;
  return DK_OK;
}

static dk_status
check_orchestrator_items(struct dk_form *form, const struct dk_turn_result *result)
{
  TRY(dk_form_list(form, "orchestrator_items", result->orchestrator_items,
                   result->n_orchestrator_items));
  form->list = "orchestrator_items";
  for (form->index = 0; form->index < result->n_orchestrator_items; form->index++)
    TRY(check_message(form, result->orchestrator_items[form->index], 0));
  form->list = NULL;
  return DK_OK;
}

static dk_status
check_cancelled(struct dk_form *form, const struct dk_turn_result *result)
{
  TRY(dk_form_list(form, "cancelled_activities", result->cancelled_activities,
                   result->n_cancelled_activities));
  form->list = "cancelled_activities";
  for (form->index = 0; form->index < result->n_cancelled_activities; form->index++) {
    const struct dk_activity *activity = &result->cancelled_activities[form->index];
    TRY(dk_form_number(form, "execution_id", activity->execution_id));
    TRY(dk_form_number(form, "activity_id", activity->activity_id));
  }
  form->list = NULL;
  TRY(dk_form_list(form, "cancelled_messages", result->cancelled_messages,
                   result->n_cancelled_messages));
  form->list = "cancelled_messages";
  for (form->index = 0; form->index < result->n_cancelled_messages; form->index++)
    TRY(dk_form_text(form, "id", result->cancelled_messages[form->index], false));
  form->list = NULL;
  return DK_OK;
}

static dk_status
check_kv(struct dk_form *form, const struct dk_turn_result *result)
{
  if (result->n_kv > 0)
    TRY(dk_form_extension(form, "kv", "durakit.kv/1"));
  TRY(dk_form_list(form, "kv", result->kv, result->n_kv));
  form->list = "kv";
  for (form->index = 0; form->index < result->n_kv; form->index++) {
    const struct dk_kv_change *change = &result->kv[form->index];
    if (change->op < DK_KV_SET || change->op > DK_KV_CLEAR_ALL)
      return dk_form_refuse(form, DK_UNSUPPORTED, "op", "expected one of 1 to 3, found %d",
                            (int)change->op);
    TRY(dk_form_text(form, "key", change->key, change->op == DK_KV_CLEAR_ALL));
    TRY(dk_form_payload(form, "value", change->value));
    TRY(dk_form_at_least(form, "updated_at", change->updated_at, 0));
  }
  form->list = NULL;
  return DK_OK;
}

static dk_status
check_outcome(struct dk_form *form, const struct dk_turn_result *result)
{
  TRY(dk_form_value(form, "status", result->status, DK_CANCELLED));
  TRY(dk_form_value(form, "custom_status_op", result->custom_status_op, DK_CUSTOM_CLEAR));
  if (result->custom_status_op != DK_CUSTOM_KEEP)
    TRY(dk_form_extension(form, "custom_status_op", "durakit.status/1"));
  if (result->custom_status.ptr || result->custom_status.len > 0)
    TRY(dk_form_extension(form, "custom_status", "durakit.status/1"));
  TRY(dk_form_payload(form, "custom_status", result->custom_status));
  TRY(dk_form_payload(form, "output", result->output));
  TRY(dk_form_text(form, "name", result->name, true));
  TRY(dk_form_text(form, "version", result->version, true));
  TRY(dk_form_text(form, "parent_instance", result->parent_instance, true));
  return dk_form_text(form, "owner", result->owner, true);
}

/* ---- one identity twice in a commit ---------------------------------------------------------- */

static int
compare_numbers(uint64_t a, uint64_t b)
{
  return (a > b) - (a < b);
}

static int
compare_activities(const struct dk_item *a, const struct dk_item *b)
{
  int order = compare_numbers(a->execution_id, b->execution_id);

  return order != 0 ? order : compare_numbers(a->activity_id, b->activity_id);
}

static int
compare_messages(const struct dk_item *a, const struct dk_item *b)
{
  int order = str_compare(a->instance, b->instance);

  return order != 0 ? order : str_compare(a->id, b->id);
}

static int
sort_activities(const void *a, const void *b)
{
  return compare_activities(*(const struct dk_item *const *)a, *(const struct dk_item *const *)b);
}

static int
sort_messages(const void *a, const void *b)
{
  return compare_messages(*(const struct dk_item *const *)a, *(const struct dk_item *const *)b);
}

/* The first in this order that equals the one before it; NULL: none does. */
static const struct dk_item *
find_equal_neighbours(const struct dk_item **sorted, size_t n,
                      int (*compare)(const struct dk_item *, const struct dk_item *))
{
  for (size_t i = 1; i < n; i++)
    if (compare(sorted[i - 1], sorted[i]) == 0)
      return sorted[i];
  return NULL;
}

/* Allocated for the duration of the check. */
static const struct dk_item **
borrow_list(struct dk_call *call, size_t n)
{
  return dk_arena_array(&call->caller->arena, n, sizeof(const struct dk_item *));
}

static dk_status
refuse_memory(const struct dk_form *form, const char *list)
{
  return dk_form_refuse(form, DK_NO_MEMORY, list, "there is no memory to look for repetitions");
}

static dk_status
check_repeated_activities(const struct dk_form *form, const struct dk_turn_result *result)
{
  size_t n = result->n_worker_items;
  const struct dk_item **sorted = borrow_list(form->call, n);

  if (!sorted)
    return refuse_memory(form, "worker_items");
  for (size_t i = 0; i < n; i++)
    sorted[i] = result->worker_items[i];
  qsort(sorted, n, sizeof(const struct dk_item *), sort_activities);
  const struct dk_item *twice = find_equal_neighbours(sorted, n, compare_activities);
  if (!twice)
    return DK_OK;
  return dk_form_refuse(form, DK_INVALID, "worker_items",
                        "expected each activity once, found activity %llu of execution %llu twice",
                        (unsigned long long)twice->activity_id,
                        (unsigned long long)twice->execution_id);
}

static dk_status
check_repeated_messages(const struct dk_form *form, const struct dk_turn_result *result)
{
  const struct dk_item **sorted = borrow_list(form->call, result->n_orchestrator_items);
  size_t n = 0;

  if (!sorted)
    return refuse_memory(form, "orchestrator_items");
  for (size_t i = 0; i < result->n_orchestrator_items; i++)
    if (result->orchestrator_items[i]->id.ptr)
      sorted[n++] = result->orchestrator_items[i];
  qsort(sorted, n, sizeof(const struct dk_item *), sort_messages);
  const struct dk_item *twice = find_equal_neighbours(sorted, n, compare_messages);
  if (!twice)
    return DK_OK;
  return dk_form_refuse(form, DK_INVALID, "orchestrator_items",
                        "expected each id once for an instance, found '%.64s' twice",
                        twice->id.ptr);
}

static dk_status
check_repetitions(const struct dk_form *form, const struct dk_turn_result *result)
{
  struct dk_arena *arena = &form->call->caller->arena;
  struct dk_arena_mark mark = dk_arena_mark(arena);
  dk_status status = DK_OK;

  if (result->n_worker_items > 1)
    status = check_repeated_activities(form, result);
  if (status == DK_OK && result->n_orchestrator_items > 1)
    status = check_repeated_messages(form, result);
  dk_arena_rewind(arena, mark);
  return status;
}

dk_status
dk_check_commit(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);
  const struct dk_turn_result *result = request->turn_result;

  TRY(dk_form_token(&form, request->token));
  TRY(dk_form_struct(&form, result->struct_size, DK_SIZE_TO(dk_turn_result, pinned)));
  TRY(dk_form_flags(&form, result->flags, DK_REPEATED));
  if (result->execution_id != 0)
    TRY(dk_form_number(&form, "execution_id", result->execution_id));
  TRY(check_events(&form, result));
  TRY(check_worker_items(&form, result));
  TRY(check_orchestrator_items(&form, result));
  TRY(check_cancelled(&form, result));
  TRY(check_kv(&form, result));
  TRY(check_outcome(&form, result));
  TRY(check_repetitions(&form, result));
  return dk_form_commit_fits(&form);
}

/* ---- the rest -------------------------------------------------------------------------------- */

dk_status
dk_check_ack_work(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);
  const struct dk_work_result *result = request->work_result;

  TRY(dk_form_token(&form, request->token));
  TRY(dk_form_struct(&form, result->struct_size, DK_SIZE_TO(dk_work_result, completion)));
  TRY(dk_form_flags(&form, result->flags, DK_REPEATED));
  if (result->completion) {
    form.list = "completion";
    form.index = DK_NO_INDEX;
    TRY(check_message(&form, result->completion, 0));
  }
  return dk_form_payloads_fit(&form);
}

dk_status
dk_check_abandon(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);

  TRY(dk_form_token(&form, request->token));
  return dk_form_at_least(&form, "delay_ms", request->ms, 0);
}

dk_status
dk_check_renew(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);

  TRY(dk_form_token(&form, request->token));
  return dk_form_at_least(&form, "extend_ms", request->ms, 1);
}

dk_status
dk_check_release_fetch(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);

  return dk_form_number(&form, "fetch_id", request->fetch_id);
}

dk_status
dk_check_read_history(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);
  const struct dk_read_history *asked = request->read_history;

  TRY(dk_form_struct(&form, asked->struct_size, DK_SIZE_TO(dk_read_history, from_event)));
  TRY(dk_form_text(&form, "instance", asked->instance, false));
  if (asked->execution_id != 0)
    TRY(dk_form_number(&form, "execution_id", asked->execution_id));
  if (asked->from_event != 0)
    TRY(dk_form_number(&form, "from_event", asked->from_event));
  return DK_OK;
}
