/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of commands: the k-th command of the code must be the k-th of the history.  See
 * orch.h. */
#include "core/runtime/code/orch.h"

#include <assert.h>
#include <stdio.h>

/* The members by which commands are compared; the rest of the event (fire at, resolved ids, values)
 * is taken from the history. */
enum {
  BY_NAME = 1,
  BY_TEXT = 2,
  BY_NUMBER = 4,
  BY_SOURCE = 8,
  BY_INSTANCE = 16,
  BY_VERSION = 32,
  BY_TAG = 64,
  BY_SESSION = 128
};

static const uint8_t compared[N_EVENT_KINDS] = {
  [EVENT_ACTIVITY] = BY_NAME | BY_TEXT | BY_TAG | BY_SESSION,
  [EVENT_TIMER] = BY_NUMBER,
  [EVENT_CHILD] = BY_NAME | BY_TEXT | BY_INSTANCE | BY_VERSION,
  [EVENT_DETACHED] = BY_NAME | BY_TEXT | BY_INSTANCE | BY_VERSION,
  [EVENT_WAIT] = BY_NAME,
  [EVENT_DEQUEUE] = BY_NAME,
  [EVENT_TRY_DEQUEUE] = BY_NAME | BY_NUMBER | BY_SOURCE,
  [EVENT_DROPPED] = BY_SOURCE,
  [EVENT_VALUE] = BY_NAME,
  [EVENT_KV] = BY_NAME | BY_NUMBER,
  [EVENT_STATUS] = BY_TEXT,
};

/* ---- words ------------------------------------------------------------------------------------*/

static const char *
words_of(const struct event *event, bool *ret_named)
{
  *ret_named = event->kind != EVENT_TIMER && event->kind != EVENT_DROPPED &&
               event->kind != EVENT_STATUS && event->name.len > 0;
  switch (event->kind) {
  case EVENT_ACTIVITY:
    return "activity";
  case EVENT_TIMER:
    return "timer of";
  case EVENT_CHILD:
    return "child";
  case EVENT_DETACHED:
    return "detached start of";
  case EVENT_WAIT:
    return "wait for event";
  case EVENT_DEQUEUE:
    return "dequeue from";
  case EVENT_TRY_DEQUEUE:
    return "try_dequeue from";
  case EVENT_DROPPED:
    return "drop of event";
  case EVENT_VALUE:
    return "recorded value";
  case EVENT_KV:
    return event->number == 0 ? "read of key" : "change of key";
  case EVENT_STATUS:
    return "custom status";
  default:
    return event_kind_name(event->kind);
  }
}

const char *
orch_describe(struct dk_orch *o, const struct event *event)
{
  bool named;
  const char *words = words_of(event, &named);

  if (named)
    return dk_arena_printf(o->arena, "%s \"%.*s\"", words, (int)event->name.len, event->name.ptr);
  if (event->kind == EVENT_TIMER)
    return dk_arena_printf(o->arena, "%s %lld ms", words, (long long)event->number);
  if (event->kind == EVENT_DROPPED)
    return dk_arena_printf(o->arena, "%s %llu", words, (unsigned long long)event->source);
  return words;
}

/* ---- comparing --------------------------------------------------------------------------------*/

/* A child to which no id was given has the id made from its event. */
static bool
same_instance(const struct dk_orch *o, const struct event *recorded, const struct event *said)
{
  char tail[64];
  dk_str parent = o->past->instance;

  if (said->instance.ptr)
    return str_equal(recorded->instance, said->instance);
  int length = snprintf(tail, sizeof(tail), "::%llu.%llu", (unsigned long long)o->past->execution,
                        (unsigned long long)recorded->id);
  return recorded->instance.len == parent.len + (size_t)length &&
         str_equal((dk_str){recorded->instance.ptr, parent.len}, parent) &&
         str_equal((dk_str){recorded->instance.ptr + parent.len, (size_t)length},
                   (dk_str){tail, (size_t)length});
}

/* A status can be empty or cleared; a key's value can be empty or absent. */
static bool
same_text(const struct event *recorded, const struct event *said)
{
  if (said->kind == EVENT_STATUS && !recorded->text.ptr != !said->text.ptr)
    return false;
  return str_equal(recorded->text, said->text);
}

/* NULL, or the name of what differs. */
static const char *
difference(const struct dk_orch *o, const struct event *recorded, const struct event *said)
{
  unsigned by = compared[said->kind];

  if (recorded->kind != said->kind)
    return "kind";
  if ((by & BY_NAME) && !str_equal(recorded->name, said->name))
    return "name";
  if ((by & BY_NUMBER) && recorded->number != said->number)
    return "number";
  if ((by & BY_TEXT || (said->kind == EVENT_KV && said->number != 0)) &&
      !same_text(recorded, said))
    return "input or value";
  if ((by & BY_TAG) && !str_equal(recorded->tag, said->tag))
    return "tag";
  if ((by & BY_SESSION) && !str_equal(recorded->session, said->session))
    return "session";
  if ((by & BY_VERSION) && !str_equal(recorded->version, said->version))
    return "version";
  if ((by & BY_INSTANCE) && !same_instance(o, recorded, said))
    return "instance id";
  return (by & BY_SOURCE) && recorded->source != said->source ? "source" : NULL;
}

DK_NORETURN static void
mismatch(struct dk_orch *o, const struct event *recorded, const struct event *said,
         const char *what)
{
  const char *was = orch_describe(o, recorded), *is = orch_describe(o, said);

  if (!was || !is)
    orch_leave(o, ENDING_NO_MEMORY);
  orch_nondeterminism(o, "recorded call %llu is event %llu of the history (%s), but the code now "
                         "calls: %s.  Its %s has changed; register a change under a new version",
                      (unsigned long long)o->n_matched + 1, (unsigned long long)recorded->id, was,
                      is, what);
}

/* ---- the history's commands -------------------------------------------------------------------*/

const struct event *
orch_next_recorded(struct dk_orch *o)
{
  const struct history *history = o->history;

  for (; o->cursor < history->n_events; o->cursor++)
    if (event_role(history->events[o->cursor].kind) == ROLE_COMMAND)
      return &history->events[o->cursor];
  return NULL;
}

size_t
orch_left_over(struct dk_orch *o, const struct event **ret_first)
{
  size_t n = 0;

  for (const struct event *event = orch_next_recorded(o); event; event = orch_next_recorded(o)) {
    if (n++ == 0)
      *ret_first = event;
    o->cursor++;
  }
  return n;
}

/* ---- new ones ---------------------------------------------------------------------------------*/

static struct event *
room_for_command(struct dk_orch *o)
{
  if (o->n_commands == o->room) {
    size_t room = o->room == 0 ? 4 : o->room * 2;
    struct event *commands = orch_array(o, room, sizeof(struct event));
    if (o->n_commands > 0)
      memcpy(commands, o->commands, o->n_commands * sizeof(struct event));
    o->commands = commands;
    o->room = room;
  }
  assert(o->n_commands < o->room);
  return &o->commands[o->n_commands];
}

static const struct event *
make_command(struct dk_orch *o, const struct event *said)
{
  struct event *made = room_for_command(o);

  *made = *said;
  made->id = history_next_id(o->history) + o->n_commands;
  if (o->past->max_events > 0 && made->id > o->past->max_events)
    orch_limit(o, "it would be event %llu of an execution, but at most %u are allowed: begin a "
                  "new one with dk_continue_as_new",
               (unsigned long long)made->id, o->past->max_events);
  made->time = o->past->time;
  made->name = orch_copy(o, said->name);
  made->text = orch_copy(o, said->text);
  made->version = orch_copy(o, said->version);
  made->instance = orch_copy(o, said->instance);
  made->tag = orch_copy(o, said->tag);
  made->session = orch_copy(o, said->session);
  o->n_commands++;
  return made;
}

const struct event *
orch_record_command(struct dk_orch *o, const struct event *said, bool *ret_made)
{
  const struct event *recorded = orch_next_recorded(o);

  assert(event_role(said->kind) == ROLE_COMMAND);
  assert(!recorded || o->n_commands == 0); /* nothing is new before all was matched */
  *ret_made = !recorded;
  if (!recorded)
    return make_command(o, said);
  const char *what = difference(o, recorded, said);
  if (what)
    mismatch(o, recorded, said, what);
  o->cursor++;
  o->n_matched++;
  return recorded;
}
