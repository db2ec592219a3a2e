/* SPDX-License-Identifier: Apache-2.0 */
/* Decides the effects of a turn's run on the store.  See decision.h. */
#include "core/runtime/code/decision-parts.h"

#include <assert.h>

#include "core/runtime/format/json-size.h"

/* ---- what kind of end, if any -----------------------------------------------------------------*/

/* The code for everything that an end cancels; corrupt and the like count as failures here. */
static enum code
code_of_failure(enum code code)
{
  return code == CODE_POISON || code == CODE_LIMIT ? code : CODE_TERMINAL_FAILED;
}

static void
fails(struct deciding *d, enum code code, dk_str text)
{
  d->end = EVENT_FAILED;
  d->status = DK_FAILED;
  d->code = code;
  d->text = text;
  d->ended = code_of_failure(code);
}

static void
is_cancelled(struct deciding *d)
{
  const struct event *request = d->staged->cancel;

  d->end = EVENT_CANCELLED;
  d->status = DK_CANCELLED;
  d->code = CODE_CANCELLED;
  d->ended = CODE_TERMINAL_CANCELLED;
  d->text = request ? request->text : dk_str_of(NULL);
  d->by = request ? request->by : dk_str_of(NULL);
}

static void
completes(struct deciding *d, enum event_kind end, int32_t status, enum code ended)
{
  d->keeps_run = true;
  d->end = end;
  d->status = status;
  d->ended = ended;
  d->text = d->ran->text;
}

static dk_status
judge_run(struct deciding *d)
{
  switch (d->ran->ending) {
  case ENDING_WAITS:
    d->keeps_run = true;
    d->status = DK_RUNNING;
    return DK_OK;
  case ENDING_COMPLETED:
    completes(d, EVENT_COMPLETED, DK_COMPLETED, CODE_TERMINAL_COMPLETED);
    return DK_OK;
  case ENDING_CONTINUED:
    completes(d, EVENT_CONTINUED, DK_CONTINUED_AS_NEW, CODE_TERMINAL_CONTINUED_AS_NEW);
    return DK_OK;
  case ENDING_FAILED:
    fails(d, CODE_APPLICATION, d->ran->text);
    d->keeps_run = true;
    return DK_OK;
  case ENDING_LIMIT:
    fails(d, CODE_LIMIT, d->ran->text);
    return DK_OK;
  case ENDING_WRONG_USE:
    fails(d, CODE_APPLICATION, d->ran->text);
    return DK_OK;
  default:
    return DK_INVALID;
  }
}

static dk_status
decision_judge(struct deciding *d, const struct verdict_of *verdict)
{
  if (verdict->verdict == VERDICT_RAN)
    return d->ran ? judge_run(d) : DK_INVALID;
  if (verdict->verdict == VERDICT_CANCELLED)
    is_cancelled(d);
  else
    fails(d, verdict->code, verdict->text);
  return DK_OK;
}

static dk_str
cut(struct deciding *d, dk_str text, uint64_t room)
{
  size_t fits = text.ptr && d->past->max_payload > 0 ? json_fitting(text, room) : text.len;

  if (fits == text.len)
    return text;
  char *copy = dk_arena_copy(d->arena, text.ptr, fits);
  if (!copy)
    d->no_memory = true;
  return (dk_str){copy, copy ? fits : 0};
}

/* Half of a payload is enough for a text that people read. */
static void
cut_texts(struct deciding *d)
{
  uint64_t max = d->past->max_payload;

  if (d->end == EVENT_FAILED || d->end == EVENT_CANCELLED)
    d->text = cut(d, d->text, max / 2);
  d->by = cut(d, d->by, max / 8);
}

/* ---- memory
 * -------------------------------------------------------------------------------------*/

static size_t
n_uncommitted(const struct past *past)
{
  assert(past->n_committed <= past->n_events);
  return past->n_events - past->n_committed;
}

/* Allocates for everything that this decision can contain; what is open counts only at an end. */
static dk_status
decision_make_room(struct deciding *d)
{
  struct decision *made = d->decision;
  size_t n_open = d->end == EVENT_NONE ? 0 : count_open(d);
  size_t n_events = n_uncommitted(d->past) + d->staged->n_arrived + 2 * d->n_commands + n_open + 1;
  size_t n_cancelled = n_open + d->n_commands;
  size_t n_outgoing = n_cancelled + d->staged->n_answers + 2 +
                      (d->end == EVENT_CONTINUED ? d->ran->n_carried : 0);

  d->room.events = n_events;
  d->room.cancelled = n_cancelled;
  d->room.outgoing = n_outgoing;
  made->events = dk_arena_array(d->arena, n_events, sizeof(*made->events));
  made->scheduled = dk_arena_array(d->arena, d->n_commands, sizeof(*made->scheduled));
  made->cancelled = dk_arena_array(d->arena, n_cancelled, sizeof(*made->cancelled));
  made->withdrawn = dk_arena_array(d->arena, n_cancelled, sizeof(*made->withdrawn));
  made->outgoing = dk_arena_array(d->arena, n_outgoing, sizeof(*made->outgoing));
  made->kv = dk_arena_array(d->arena, d->n_commands, sizeof(*made->kv));
  d->gone = dk_arena_array(d->arena, d->n_commands, sizeof(*d->gone));
  d->dropped = dk_arena_array(d->arena, d->end == EVENT_NONE ? 0 : history_length(d->history),
                              sizeof(*d->dropped));
  return made->events && made->scheduled && made->cancelled && made->withdrawn &&
             made->outgoing && made->kv && d->gone && d->dropped ? DK_OK : DK_NO_MEMORY;
}

/* ---- events -----------------------------------------------------------------------------------*/

static void
add_events(struct deciding *d, const struct event *events, size_t n)
{
  struct decision *made = d->decision;

  assert(n <= d->room.events - made->n_events);
  for (size_t i = 0; i < n; i++)
    made->events[made->n_events++] = events[i];
}

struct event *
decide_event(struct deciding *d, enum event_kind kind)
{
  struct decision *made = d->decision;
  struct event *event = &made->events[made->n_events];

  assert(made->n_events < d->room.events);
  *event = (struct event){.kind = kind, .time = d->past->time};
  event->id = history_next_id(d->history) + (made->n_events - d->n_before);
  made->n_events++;
  return event;
}

static void
add_known_events(struct deciding *d)
{
  const struct past *past = d->past;

  add_events(d, past->events + past->n_committed, n_uncommitted(past));
  add_events(d, d->staged->arrived, d->staged->n_arrived);
  d->n_before = d->decision->n_events;
  add_events(d, d->commands, d->n_commands);
}

/* ---- what commands do -------------------------------------------------------------------------*/

/* What was begun and has ended in this turn has no effect outside of it. */
static void
mark_gone(struct deciding *d)
{
  for (size_t i = 0; i < d->n_commands; i++) {
    const struct event *command = &d->commands[i];
    assert(command->id == d->commands[0].id + i && command->source < command->id);
    if (command->kind == EVENT_DROPPED && command->source >= d->commands[0].id)
      d->gone[command->source - d->commands[0].id] = true;
  }
}

static void
schedule(struct deciding *d, const struct event *activity)
{
  struct decision *made = d->decision;

  assert(made->n_scheduled < d->n_commands);
  made->scheduled[made->n_scheduled++] = (struct scheduled){
    .activity_id = activity->id,
    .tag = activity->tag,
    .session = activity->session,
    .order = {.name = activity->name, .input = activity->text,
              .orchestration = d->started->name, .version = d->started->version}};
}

static void
set_timer(struct deciding *d, const struct event *timer)
{
  decide_send(d, (struct outgoing){
    .instance = d->past->instance,
    .id = message_id(d->arena, MESSAGE_TIMER_FIRED, d->past->execution, timer->id),
    .visible_at = timer->time2 > 0 ? timer->time2 : 0,
    .message = {.kind = MESSAGE_TIMER_FIRED, .execution = d->past->execution,
                .source = timer->id}});
}

/* A commit can start each id only once: true for the first. */
static bool
is_first_start(struct deciding *d, dk_str instance)
{
  void **at = names_at(&d->starts, d->arena, instance);

  if (!at) {
    d->no_memory = true;
    return true;
  }
  bool is_first = !*at;
  *at = d;
  return is_first;
}

static void
decision_start(struct deciding *d, const struct event *command)
{
  struct outgoing out = {
    .instance = command->instance,
    .id = message_id(d->arena, MESSAGE_START, 0, 0),
    .message = {.kind = MESSAGE_START, .name = command->name, .version = command->version,
                .text = command->text}};

  if (command->kind == EVENT_CHILD)
    out.message.parent =
      (struct parent){d->past->instance, d->past->execution, command->id};
  if (is_first_start(d, command->instance))
    decide_send(d, out);
  else if (command->kind == EVENT_CHILD)
    decide_send(d, outgoing_taken(d->arena, &out.message.parent));
}

static void
change_key(struct deciding *d, const struct event *command)
{
  struct decision *made = d->decision;

  assert(made->n_kv < d->n_commands);
  if (command->number != 0) /* else it was read */
    made->kv[made->n_kv++] = (struct dk_kv_change){
      .op = (int32_t)command->number, .key = command->name, .value = command->text,
      .updated_at = command->time};
}

static void
set_status(struct deciding *d, const struct event *command)
{
  d->decision->custom_status_op = command->text.ptr ? DK_CUSTOM_SET : DK_CUSTOM_CLEAR;
  d->decision->custom_status = command->text;
}

/* What would end with the execution is not begun in its last turn. */
static bool
is_begun(const struct deciding *d, size_t i)
{
  return !d->gone[i] && d->end == EVENT_NONE;
}

static void
do_command(struct deciding *d, size_t i)
{
  const struct event *command = &d->commands[i];

  assert(event_role(command->kind) == ROLE_COMMAND);
  if (command->kind == EVENT_ACTIVITY && is_begun(d, i))
    schedule(d, command);
  else if (command->kind == EVENT_TIMER && is_begun(d, i))
    set_timer(d, command);
  else if ((command->kind == EVENT_CHILD && is_begun(d, i)) || command->kind == EVENT_DETACHED)
    decision_start(d, command);
  else if (command->kind == EVENT_DROPPED && command->source < d->commands[0].id)
    decide_drop(d, command);
  else if (command->kind == EVENT_KV)
    change_key(d, command);
  else if (command->kind == EVENT_STATUS)
    set_status(d, command);
}

/* ---- the decision
 * --------------------------------------------------------------------------------*/

static void
name_execution(struct decision *made, const struct event *started, bool first)
{
  if (!first)
    return;
  made->name = started->name;
  made->version = started->version;
  made->parent = started->parent.instance;
}

static void
take_commands(struct deciding *d)
{
  if (!d->keeps_run)
    return;
  d->commands = d->ran->commands;
  d->n_commands = d->ran->n_commands;
}

static void
carry_out(struct deciding *d)
{
  add_known_events(d);
  mark_gone(d);
  for (size_t i = 0; i < d->n_commands; i++)
    do_command(d, i);
  for (size_t i = 0; i < d->staged->n_answers; i++)
    decide_send(d, d->staged->answers[i]);
  if (d->end != EVENT_NONE)
    decide_end(d);
}

dk_status
decide(struct dk_arena *arena, const struct past *past, const struct event *started, bool first,
       const struct staged *staged, const struct ran *ran, const struct verdict_of *verdict,
       struct decision *ret_decision)
{
  struct deciding d = {.arena = arena, .past = past, .started = started, .staged = staged,
                       .ran = ran, .history = staged->index, .decision = ret_decision};
  dk_status status = decision_judge(&d, verdict);

  *ret_decision = (struct decision){.execution = past->execution, .status = d.status};
  if (status != DK_OK)
    return status;
  cut_texts(&d);
  take_commands(&d);
  name_execution(ret_decision, started, first);
  status = decision_make_room(&d);
  if (status == DK_OK)
    carry_out(&d);
  return d.no_memory ? DK_NO_MEMORY : status;
}
