/* SPDX-License-Identifier: Apache-2.0 */
/* How things end: one that was dropped, and everything that is open when an execution ends.  See
 * decision-parts.h. */
#include "core/runtime/code/decision-parts.h"

#include <assert.h>

#include "core/runtime/format/json-size.h"

static bool
has_a_life(enum event_kind kind)
{
  return kind == EVENT_ACTIVITY || kind == EVENT_TIMER || kind == EVENT_CHILD;
}

/* ---- messages ---------------------------------------------------------------------------------*/

void
decide_send(struct deciding *d, struct outgoing outgoing)
{
  /* Only messages of queues have no id. */
  if (!outgoing.id.ptr && outgoing.message.kind != MESSAGE_QUEUED)
    d->no_memory = true;
  assert(d->decision->n_outgoing < d->room.outgoing);
  d->decision->outgoing[d->decision->n_outgoing++] = outgoing;
}

dk_status
decision_leave_away(struct dk_arena *arena, dk_str instance, struct decision *decision, size_t i)
{
  struct outgoing *out = &decision->outgoing[i];

  assert(i < decision->n_outgoing);
  if (out->message.kind == MESSAGE_START && out->message.parent.instance.ptr &&
      str_equal(out->message.parent.instance, instance)) {
    *out = outgoing_taken(arena, &out->message.parent);
    return out->id.ptr ? DK_OK : DK_NO_MEMORY;
  }
  decision->n_outgoing--;
  for (; i < decision->n_outgoing; i++)
    decision->outgoing[i] = decision->outgoing[i + 1];
  return DK_OK;
}

/* ---- one thing --------------------------------------------------------------------------------*/

static void
cancel_child(struct deciding *d, const struct event *child, dk_str reason)
{
  decide_send(d, (struct outgoing){
    .instance = child->instance,
    .id = message_id(d->arena, MESSAGE_CANCEL, d->past->execution, child->id),
    .message = {.kind = MESSAGE_CANCEL, .text = reason, .by = d->past->instance,
                .parent = {d->past->instance, d->past->execution, child->id}}});
}

static void
withdraw_timer(struct deciding *d, const struct event *timer)
{
  dk_str id = timer_message_id(d->arena, d->past->execution, timer->id);

  if (!id.ptr)
    d->no_memory = true;
  assert(d->decision->n_withdrawn < d->room.cancelled);
  d->decision->withdrawn[d->decision->n_withdrawn++] = id;
}

/* Stops what may be running: deletes a row, sends a message or removes one. */
static void
stop(struct deciding *d, const struct event *thing, enum code code, dk_str reason)
{
  assert(d->decision->n_cancelled < d->room.cancelled);
  if (thing->kind == EVENT_ACTIVITY)
    d->decision->cancelled[d->decision->n_cancelled++] =
      (struct cancelled){thing->id, code, thing->name};
  else if (thing->kind == EVENT_TIMER)
    withdraw_timer(d, thing);
  else if (thing->kind == EVENT_CHILD)
    cancel_child(d, thing, reason);
}

/* At most once: a replay does not come here, and what has already ended need not be stopped. */
void
decide_drop(struct deciding *d, const struct event *drop)
{
  const struct event *thing = history_find(d->history, drop->source);

  if (!thing || !has_a_life(thing->kind))
    return;
  assert(thing->id >= 1 && thing->id <= history_length(d->history));
  if (d->end != EVENT_NONE)
    d->dropped[thing->id - 1] = true;
  if (!history_end_of(d->history, thing->id))
    stop(d, thing, drop->code, dk_str_of(code_name(drop->code)));
}

/* ---- everything that is open ------------------------------------------------------------------*/

static bool
is_open(const struct deciding *d, const struct event *event)
{
  return has_a_life(event->kind) && !history_end_of(d->history, event->id) &&
         !history_is_dropped(d->history, event->id);
}

size_t
count_open(const struct deciding *d)
{
  size_t n = 0;

  for (size_t i = 0; i < history_length(d->history); i++)
    n += is_open(d, history_event(d->history, i));
  return n;
}

static void
record_end(struct deciding *d, const struct event *thing)
{
  if (thing->kind == EVENT_TIMER)
    return;
  struct event *ended = decide_event(d, EVENT_ENDED);
  ended->source = thing->id;
  ended->code = d->ended;
}

static void
end_open(struct deciding *d)
{
  dk_str reason =
    d->end == EVENT_CANCELLED && d->text.len > 0 ? d->text : dk_str_of(code_name(d->ended));

  for (size_t i = 0; i < history_length(d->history); i++) {
    const struct event *event = history_event(d->history, i);
    if (!is_open(d, event) || d->dropped[i])
      continue;
    stop(d, event, d->ended, reason);
    record_end(d, event);
  }
}

/* It was begun in this turn, so nothing outside knows of it. */
static void
end_unborn(struct deciding *d)
{
  for (size_t i = 0; i < d->n_commands; i++)
    if (has_a_life(d->commands[i].kind) && !d->gone[i])
      record_end(d, &d->commands[i]);
}

/* ---- other instances ---------------------------------------------------------------------*/

static dk_str
text_for_parent(struct deciding *d)
{
  if (d->end != EVENT_CANCELLED)
    return d->text;
  char *text = dk_arena_printf(d->arena, "cancelled: %.*s", (int)d->text.len,
                               d->text.len > 0 ? d->text.ptr : "");
  if (!text)
    d->no_memory = true;
  return dk_str_of(text);
}

static void
answer_parent(struct deciding *d)
{
  const struct parent *parent = &d->started->parent;
  enum message_kind kind =
    d->end == EVENT_COMPLETED ? MESSAGE_CHILD_COMPLETED : MESSAGE_CHILD_FAILED;

  if (!parent->instance.ptr || d->end == EVENT_CONTINUED)
    return;
  decide_send(d, (struct outgoing){
    .instance = parent->instance,
    .id = message_id(d->arena, kind, parent->execution, parent->source),
    .message = {.kind = kind, .code = d->code, .execution = parent->execution,
                .source = parent->source, .text = text_for_parent(d)}});
}

/* How many of the messages that were not taken fit into the message to the next execution. */
static size_t
n_carried(const struct deciding *d)
{
  uint64_t max = d->past->max_payload, room = json_size(d->text);
  size_t n = 0;

  if (max == 0)
    return d->ran->n_carried;
  for (; n < d->ran->n_carried; n++) {
    const struct carried *carried = &d->ran->carried[n];
    room += 8 + json_size(carried->queue) + json_size(carried->data);
    if (room > max - max / 16)
      break;
  }
  return n;
}

/* Puts the rest into the queue again, after what has arrived meanwhile: better late than lost. */
static void
queue_again(struct deciding *d, size_t from)
{
  for (size_t i = from; i < d->ran->n_carried; i++)
    decide_send(d, (struct outgoing){
      .instance = d->past->instance,
      .message = {.kind = MESSAGE_QUEUED, .name = d->ran->carried[i].queue,
                  .text = d->ran->carried[i].data}});
}

static void
begin_next(struct deciding *d)
{
  uint64_t next = d->past->execution + 1;
  size_t carried = n_carried(d);

  decide_send(d, (struct outgoing){
    .instance = d->past->instance,
    .id = message_id(d->arena, MESSAGE_CONTINUE, next, 0),
    .message = {.kind = MESSAGE_CONTINUE, .execution = next, .name = d->started->name,
                .version = d->ran->version, .text = d->ran->text,
                .parent = d->started->parent, .carried = d->ran->carried,
                .n_carried = carried}});
  queue_again(d, carried);
}

static size_t
n_items(const struct decision *made)
{
  return made->n_events + made->n_scheduled + made->n_cancelled + made->n_withdrawn +
         made->n_outgoing + made->n_kv;
}

/* By how many items the commit exceeds its limit, with the last event. */
static size_t
excess(const struct deciding *d)
{
  size_t n = n_items(d->decision) + 1;

  return d->past->max_items == 0 || n <= d->past->max_items ? 0 : n - (size_t)d->past->max_items;
}

static void
decision_end_leave(size_t *count, size_t away)
{
  *count -= away < *count ? away : *count;
}

/* An execution must be able to end even if more is open than one commit can end; all events after
 * `before_ended` are EVENT_ENDED. */
static void
fit(struct deciding *d, size_t before_ended)
{
  if (excess(d) > 0)
    d->decision->n_events = before_ended;
  decision_end_leave(&d->decision->n_withdrawn, excess(d));
  decision_end_leave(&d->decision->n_cancelled, excess(d));
}

void
decide_end(struct deciding *d)
{
  size_t before_ended = d->decision->n_events;

  assert(event_is_terminal(d->end));
  end_open(d);
  end_unborn(d);
  if (d->end == EVENT_CONTINUED)
    begin_next(d);
  answer_parent(d);
  fit(d, before_ended);

  struct event *end = decide_event(d, d->end);
  end->text = d->text;
  end->by = d->by;
  end->code = d->end == EVENT_FAILED ? d->code : CODE_NONE;
  if (d->end == EVENT_CONTINUED)
    end->version = d->ran->version;
  else
    d->decision->output = d->text;
}
