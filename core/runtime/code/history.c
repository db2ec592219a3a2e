/* SPDX-License-Identifier: Apache-2.0 */
/* An index of an execution's events: see history.h. */
#include "core/runtime/code/history.h"

/* In a valid history the event `id` is at index id - 1, so that every lookup is direct. */
#include <assert.h>
struct trace_of {
  size_t end; /* 1 + the index of the event that ended it; 0: it has not ended */
  bool dropped;
};

static const struct {
  enum event_role role;
  enum event_kind ends;
} kinds[N_EVENT_KINDS] = {
  [EVENT_STARTED] = {ROLE_LIFE, EVENT_NONE},
  [EVENT_COMPLETED] = {ROLE_LIFE, EVENT_NONE},
  [EVENT_FAILED] = {ROLE_LIFE, EVENT_NONE},
  [EVENT_CANCELLED] = {ROLE_LIFE, EVENT_NONE},
  [EVENT_CONTINUED] = {ROLE_LIFE, EVENT_NONE},
  [EVENT_CANCEL_REQUESTED] = {ROLE_ARRIVAL, EVENT_NONE},
  [EVENT_ACTIVITY] = {ROLE_COMMAND, EVENT_NONE},
  [EVENT_ACTIVITY_COMPLETED] = {ROLE_END, EVENT_ACTIVITY},
  [EVENT_ACTIVITY_FAILED] = {ROLE_END, EVENT_ACTIVITY},
  [EVENT_TIMER] = {ROLE_COMMAND, EVENT_NONE},
  [EVENT_TIMER_FIRED] = {ROLE_END, EVENT_TIMER},
  [EVENT_CHILD] = {ROLE_COMMAND, EVENT_NONE},
  [EVENT_CHILD_COMPLETED] = {ROLE_END, EVENT_CHILD},
  [EVENT_CHILD_FAILED] = {ROLE_END, EVENT_CHILD},
  [EVENT_DETACHED] = {ROLE_COMMAND, EVENT_NONE},
  [EVENT_WAIT] = {ROLE_COMMAND, EVENT_NONE},
  [EVENT_RAISED] = {ROLE_ARRIVAL, EVENT_NONE},
  [EVENT_DEQUEUE] = {ROLE_COMMAND, EVENT_NONE},
  [EVENT_QUEUED] = {ROLE_ARRIVAL, EVENT_NONE},
  [EVENT_TRY_DEQUEUE] = {ROLE_COMMAND, EVENT_NONE},
  [EVENT_DROPPED] = {ROLE_COMMAND, EVENT_NONE},
  [EVENT_ENDED] = {ROLE_LIFE, EVENT_NONE},
  [EVENT_VALUE] = {ROLE_COMMAND, EVENT_NONE},
  [EVENT_KV] = {ROLE_COMMAND, EVENT_NONE},
  [EVENT_STATUS] = {ROLE_COMMAND, EVENT_NONE},
};

static bool
history_is_known(enum event_kind kind)
{
  return kind > EVENT_NONE && kind < N_EVENT_KINDS;
}

enum event_role
event_role(enum event_kind kind)
{
  return history_is_known(kind) ? kinds[kind].role : ROLE_NONE;
}

enum event_kind
event_ends(enum event_kind kind)
{
  return history_is_known(kind) ? kinds[kind].ends : EVENT_NONE;
}

bool
event_is_terminal(enum event_kind kind)
{
  return kind == EVENT_COMPLETED || kind == EVENT_FAILED || kind == EVENT_CANCELLED ||
         kind == EVENT_CONTINUED;
}

size_t
history_length(const struct history *history)
{
  return history->n_events + history->n_arrived;
}

const struct event *
history_event(const struct history *history, size_t i)
{
  assert(i < history_length(history));
  return i < history->n_events ? &history->events[i] : &history->arrived[i - history->n_events];
}

/* Ids at least ascend, because stores guarantee that. */
static size_t
place_of(const struct history *history, uint64_t id)
{
  size_t low = 0, high = history_length(history);

  if (id >= 1 && id <= high && history_event(history, (size_t)(id - 1))->id == id)
    return (size_t)(id - 1);
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (history_event(history, middle)->id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < history_length(history) && history_event(history, low)->id == id ? low : SIZE_MAX;
}

const struct event *
history_find(const struct history *history, uint64_t id)
{
  size_t place = place_of(history, id);

  return place == SIZE_MAX ? NULL : history_event(history, place);
}

const struct event *
history_end_of(const struct history *history, uint64_t id)
{
  size_t place = place_of(history, id);

  if (place == SIZE_MAX || history->traces[place].end == 0)
    return NULL;
  return history_event(history, history->traces[place].end - 1);
}

bool
history_is_dropped(const struct history *history, uint64_t id)
{
  size_t place = place_of(history, id);

  return place != SIZE_MAX && history->traces[place].dropped;
}

const struct event *
history_cancel(const struct history *history)
{
  return history->cancel == 0 ? NULL : history_event(history, history->cancel - 1);
}

uint64_t
history_next_id(const struct history *history)
{
  size_t n = history_length(history);

  return n == 0 ? 1 : history_event(history, n - 1)->id + 1;
}

/* ---- invalid histories ----------------------------------------------------------------------*/

static void
complain(struct history *history, const struct event *event, const char *what)
{
  if (history->why)
    return;
  history->why = dk_arena_printf(history->arena, "event %llu (%s): %s",
                                 (unsigned long long)event->id, event_kind_name(event->kind), what);
  if (!history->why)
    history->no_memory = true;
}

static bool
can_be_dropped(enum event_kind kind)
{
  return kind == EVENT_ACTIVITY || kind == EVENT_TIMER || kind == EVENT_CHILD ||
         kind == EVENT_WAIT || kind == EVENT_DEQUEUE;
}

static void
check_place(struct history *history, const struct event *event, size_t i)
{
  if (event->id != (uint64_t)i + 1)
    complain(history, event, "its id is not the next one");
  else if (!history_is_known(event->kind))
    complain(history, event, "it could not be read");
  else if ((i == 0) != (event->kind == EVENT_STARTED))
    complain(history, event, "the first event, and no other, is \"started\"");
  else if (event_is_terminal(event->kind) || event->kind == EVENT_ENDED)
    complain(history, event, "the execution has ended here, and has no more turns");
}

/* ---- the pass ---------------------------------------------------------------------------------*/

static void
index_end(struct history *history, const struct event *event, size_t i)
{
  size_t place = place_of(history, event->source);

  if (place == SIZE_MAX || event->source >= event->id ||
      history_event(history, place)->kind != event_ends(event->kind))
    complain(history, event, "its source is not an earlier event that it can end");
  else if (history->traces[place].end)
    complain(history, event, "its source had already ended");
  else
    history->traces[place].end = i + 1;
}

static void
index_drop(struct history *history, const struct event *event)
{
  size_t place = place_of(history, event->source);

  if (place == SIZE_MAX || event->source >= event->id ||
      !can_be_dropped(history_event(history, place)->kind))
    complain(history, event, "its source is not an earlier event that can be dropped");
  else
    history->traces[place].dropped = true;
}

static void
index_outside(struct history *history, size_t i)
{
  struct outside *outside = dk_arena_alloc(history->arena, sizeof(*outside));

  if (!outside) {
    history->no_memory = true;
    return;
  }
  outside->place = i;
  if (history->last_outside)
    history->last_outside->next = outside;
  else
    history->outside = outside;
  history->last_outside = outside;
}

static void
index_event(struct history *history, size_t i)
{
  const struct event *event = history_event(history, i);

  assert(i < history->room); /* its trace has room */
  check_place(history, event, i);
  if (event_role(event->kind) == ROLE_END)
    index_end(history, event, i);
  else if (event->kind == EVENT_DROPPED)
    index_drop(history, event);
  else if (event->kind == EVENT_RAISED || event->kind == EVENT_QUEUED)
    index_outside(history, i);
  else if (event->kind == EVENT_CANCEL_REQUESTED && history->cancel == 0)
    history->cancel = i + 1;
}

/* Doubles the array; the old one stays in the arena. */
static bool
history_make_room(struct history *history, size_t wanted)
{
  size_t room = history->room <= wanted / 2 ? wanted : history->room * 2;

  if (wanted <= history->room)
    return true;
  struct trace_of *traces = dk_arena_array(history->arena, room, sizeof(*traces));
  if (!traces) {
    history->no_memory = true;
    return false;
  }
  if (history->room > 0)
    memcpy(traces, history->traces, history->room * sizeof(*traces));
  history->traces = traces;
  history->room = room;
  return true;
}

/* Indexes the events from that place on. */
static dk_status
index_from(struct history *history, size_t first)
{
  for (size_t i = first; i < history_length(history); i++)
    index_event(history, i);
  return history->no_memory ? DK_NO_MEMORY : DK_OK;
}

struct history *
history_new(struct dk_arena *arena, const struct event *events, size_t n_events)
{
  struct history *history = dk_arena_alloc(arena, sizeof(*history));

  if (!history)
    return NULL;
  *history = (struct history){.arena = arena};
  if (history_settle(history, events, n_events) != DK_OK)
    return NULL;
  if (n_events == 0)
    history->why = "it is empty, but \"started\" must be the first event";
  return history;
}

dk_status
history_expect(struct history *history, const struct event *arrived, size_t room)
{
  size_t wanted;

  history->arrived = arrived;
  if (__builtin_add_overflow(history->n_events, room, &wanted))
    return DK_NO_MEMORY;
  return history_make_room(history, wanted) ? DK_OK : DK_NO_MEMORY;
}

void
history_arrive(struct history *history)
{
  assert(history_length(history) < history->room); /* history_expect has made it */
  history->n_arrived++;
  index_event(history, history_length(history) - 1);
}

dk_status
history_settle(struct history *history, const struct event *events, size_t n_events)
{
  size_t known = history_length(history);

  if (!history_make_room(history, n_events))
    return DK_NO_MEMORY;
  history->events = events;
  history->n_events = n_events;
  history->arrived = NULL;
  history->n_arrived = 0;
  return index_from(history, known);
}

/* ---- messages ---------------------------------------------------------------------------------*/

/* Collected only when they are searched.  The texts of arrivals may be freed meanwhile. */
static dk_status
learn_messages(struct history *history)
{
  const struct outside *next =
    history->last_message ? history->last_message->next : history->outside;

  for (; next && next->place < history->n_events; next = next->next) {
    dk_str id = history->events[next->place].message_id;
    void **at = id.ptr ? names_at(&history->messages, history->arena, id) : NULL;
    if (id.ptr && !at)
      return DK_NO_MEMORY;
    if (at)
      *at = history;
    history->last_message = next;
  }
  return DK_OK;
}

dk_status
history_knows_message(struct history *history, dk_str id, bool *ret_is_known)
{
  if (learn_messages(history) != DK_OK)
    return DK_NO_MEMORY;
  *ret_is_known = names_find(&history->messages, id) != NULL;
  return DK_OK;
}
