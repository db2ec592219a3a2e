/* SPDX-License-Identifier: Apache-2.0 */
/* Staging: makes the arrivals of a turn events after the history, or strays.  See decision.h. */
#include "core/base/names.h"
#include "core/runtime/code/decision-parts.h"
#include "core/runtime/code/history.h"

struct staging {
  struct dk_arena *arena;
  struct history *history;
  uint64_t execution;
  int64_t time;
  struct names ids;      /* of messages that have become events in this turn */
  struct staged *staged;
};

/* What a message becomes; EVENT_NONE: never an event. */
static enum event_kind
event_of(enum message_kind kind)
{
  switch (kind) {
  case MESSAGE_ACTIVITY_COMPLETED:
    return EVENT_ACTIVITY_COMPLETED;
  case MESSAGE_ACTIVITY_FAILED:
    return EVENT_ACTIVITY_FAILED;
  case MESSAGE_TIMER_FIRED:
    return EVENT_TIMER_FIRED;
  case MESSAGE_CHILD_COMPLETED:
    return EVENT_CHILD_COMPLETED;
  case MESSAGE_CHILD_FAILED:
    return EVENT_CHILD_FAILED;
  case MESSAGE_RAISED:
    return EVENT_RAISED;
  case MESSAGE_QUEUED:
    return EVENT_QUEUED;
  case MESSAGE_CANCEL:
    return EVENT_CANCEL_REQUESTED;
  default:
    return EVENT_NONE;
  }
}

/* ---- parents ----------------------------------------------------------------------------------*/

static const struct parent *
own_parent(const struct staging *staging)
{
  static const struct parent none;
  const struct event *first =
    history_length(staging->history) == 0 ? NULL : history_event(staging->history, 0);

  return first && first->kind == EVENT_STARTED ? &first->parent : &none;
}

static bool
same_parent(const struct parent *a, const struct parent *b)
{
  return a->instance.ptr && b->instance.ptr && str_equal(a->instance, b->instance) &&
         a->execution == b->execution && a->source == b->source;
}

dk_status
decision_answer_start(struct dk_arena *arena, const struct parent *own,
                      const struct message *start, bool *ret_answer, struct outgoing *ret_outgoing)
{
  const struct parent *asking = &start->parent;

  *ret_answer = asking->instance.ptr && !same_parent(asking, own);
  if (!*ret_answer)
    return DK_OK;
  *ret_outgoing = outgoing_taken(arena, asking);
  return ret_outgoing->id.ptr ? DK_OK : DK_NO_MEMORY;
}

/* One commit must not send the same message twice. */
static bool
is_answered(const struct staged *staged, const struct outgoing *answer)
{
  for (size_t i = 0; i < staged->n_answers; i++)
    if (str_equal(staged->answers[i].instance, answer->instance) &&
        str_equal(staged->answers[i].id, answer->id))
      return true;
  return false;
}

static dk_status
answer_start(struct staging *staging, const struct message *start)
{
  struct staged *staged = staging->staged;
  struct outgoing *answer = &staged->answers[staged->n_answers];
  bool wanted;
  dk_status status =
    decision_answer_start(staging->arena, own_parent(staging), start, &wanted, answer);

  if (status == DK_OK && wanted && !is_answered(staged, answer))
    staged->n_answers++;
  return status;
}

/* ---- strays -----------------------------------------------------------------------------------*/

static const char *
stray_end(const struct staging *staging, const struct message *message)
{
  const struct event *source = history_find(staging->history, message->source);

  if (message->execution != staging->execution)
    return "it is for another execution";
  if (!source || source->kind != event_ends(event_of(message->kind)))
    return "it refers to nothing that this execution has begun";
  if (history_end_of(staging->history, source->id))
    return "what it refers to has already ended";
  if (history_is_dropped(staging->history, source->id))
    return "what it refers to was cancelled";
  return NULL;
}

enum request_source
request_source(const struct message *request)
{
  return request->parent.instance.ptr ? REQUEST_BY_PARENT : REQUEST_BY_API;
}

static const char *
stray_cancel(struct staging *staging, const struct message *message)
{
  enum request_outcome outcome = REQUEST_TAKEN;
  const char *why = NULL;

  if (message->parent.instance.ptr && !same_parent(&message->parent, own_parent(staging))) {
    outcome = REQUEST_REFUSED;
    why = "it comes from an instance that is not the parent";
  } else if (staging->history->cancel > 0) {
    outcome = REQUEST_REPEATED;
    why = "the cancellation was already requested";
  }
  staging->staged->requests[request_source(message)][outcome]++;
  return why;
}

/* Finds a message that was sent again although the first copy had arrived. */
static dk_status
find_repetition(struct staging *staging, const struct message *message, const char **ret_why)
{
  bool is_known;

  if (!message->id.ptr)
    return DK_OK;
  void **at = names_at(&staging->ids, staging->arena, message->id);
  if (!at || history_knows_message(staging->history, message->id, &is_known) != DK_OK)
    return DK_NO_MEMORY;
  if (*at || is_known)
    *ret_why = "it has already arrived";
  *at = staging;
  return DK_OK;
}

/* *ret_why NULL: it becomes an event. */
static dk_status
place_arrivals_judge(struct staging *staging, const struct message *message, const char **ret_why)
{
  *ret_why = NULL;
  switch (message->kind) {
  case MESSAGE_START:
    *ret_why = "the instance was already started";
    return answer_start(staging, message);
  case MESSAGE_RAISED:
  case MESSAGE_QUEUED:
    return find_repetition(staging, message, ret_why);
  case MESSAGE_CANCEL:
    *ret_why = stray_cancel(staging, message);
    return DK_OK;
  case MESSAGE_CONTINUE:
    *ret_why = "its execution has already begun";
    return DK_OK;
  default:
    *ret_why = stray_end(staging, message);
    return DK_OK;
  }
}

/* ---- staging ----------------------------------------------------------------------------------*/

static void
arrive(struct staging *staging, const struct message *message)
{
  struct staged *staged = staging->staged;

  staged->arrived[staged->n_arrived++] = (struct event){
    .id = history_next_id(staging->history),
    .kind = event_of(message->kind),
    .source = message->source,
    .code = message->code,
    .time = staging->time,
    .name = message->name,
    .text = message->text,
    .by = message->by,
    .message_id = event_of(message->kind) == EVENT_RAISED ||
                      event_of(message->kind) == EVENT_QUEUED ? message->id : dk_str_of(NULL)};
  history_arrive(staging->history);
}

static dk_status
place_arrivals_begin(struct staging *staging, size_t n_messages)
{
  struct staged *staged = staging->staged;

  staged->arrived = dk_arena_array(staging->arena, n_messages, sizeof(*staged->arrived));
  staged->answers = dk_arena_array(staging->arena, n_messages, sizeof(*staged->answers));
  staged->index = staging->history;
  if (!staged->arrived || !staged->answers)
    return DK_NO_MEMORY;
  return history_expect(staging->history, staged->arrived, n_messages);
}

static void
place_arrivals_conclude(const struct staging *staging)
{
  staging->staged->cancel = history_cancel(staging->history);
  staging->staged->cancel_requested = staging->staged->cancel;
}

dk_status
decision_stage(struct dk_arena *arena, struct history *history, uint64_t execution,
               const struct message *messages, size_t n_messages, int64_t time,
               void (*stray)(void *context, const struct message *message, const char *why),
               void *context, struct staged *ret_staged)
{
  struct staging staging = {.arena = arena, .history = history, .execution = execution,
                            .time = time, .staged = ret_staged};
  dk_status status;
  const char *why;

  *ret_staged = (struct staged){.n_arrived = 0};
  status = place_arrivals_begin(&staging, n_messages);
  for (size_t i = 0; i < n_messages && status == DK_OK; i++) {
    if (messages[i].kind == MESSAGE_NONE)
      continue;
    status = place_arrivals_judge(&staging, &messages[i], &why);
    if (status == DK_OK && !why)
      arrive(&staging, &messages[i]);
    else if (status == DK_OK && stray)
      stray(context, &messages[i], why);
  }
  if (status == DK_OK && staging.history->no_memory)
    status = DK_NO_MEMORY;
  if (status == DK_OK)
    place_arrivals_conclude(&staging);
  return status;
}
