/* SPDX-License-Identifier: Apache-2.0 */
/* Events and messages: the table of their payloads' form, and the encoder that follows it.  Owns
 * nothing. */
#include "core/runtime/format/event.h"

#include <stddef.h>
#include <stdio.h>

#include "core/base/utf8.h"
#include "core/runtime/format/codec.h"
#include "core/runtime/format/json.h"

/* ---- the table ------------------------------------------------------------------------------- */

#define END                                                                                        \
  {                                                                                                \
    NULL, MEMBER_TEXT, 0, false                                                                    \
  }
#define LIST(...)                                                                                  \
  (const struct member[])                                                                          \
  {                                                                                                \
    __VA_ARGS__, END                                                                               \
  }

/* The struct, the JSON's name, the struct's member. */
#define MEMBER(s, name, type, field, required) {name, type, offsetof(struct s, field), required}
#define TEXT(s, name, field) MEMBER(s, name, MEMBER_TEXT, field, false)
#define NAME(s, name, field) MEMBER(s, name, MEMBER_TEXT, field, true) /* a required text */
#define INT(s, name, field) MEMBER(s, name, MEMBER_INT, field, false)
#define UINT(s, name, field) MEMBER(s, name, MEMBER_UINT, field, false)
#define REF(s, field) MEMBER(s, #field, MEMBER_UINT, field, true) /* a required id */
#define CODE(s) MEMBER(s, "code", MEMBER_CODE, code, false)
#define PARENT(s) MEMBER(s, "parent", MEMBER_PARENT, parent, false)
#define CARRIED(s) MEMBER(s, "carried", MEMBER_CARRIED, carried, false)

_Static_assert(offsetof(struct event, n_carried) ==
                   offsetof(struct event, carried) + sizeof(struct carried *) &&
                 offsetof(struct message, n_carried) ==
                   offsetof(struct message, carried) + sizeof(struct carried *),
               "the number of carried messages is stored after the pointer");

const struct member codec_parent[] = {NAME(parent, "instance", instance),
                                      UINT(parent, "execution", execution),
                                      UINT(parent, "source", source), END};
const struct member codec_carried[] = {NAME(carried, "queue", queue), TEXT(carried, "data", data),
                                       END};

static const struct shape event_shapes[N_EVENT_KINDS] = {
  [EVENT_STARTED] = {"started", LIST(NAME(event, "name", name), TEXT(event, "version", version),
                                     TEXT(event, "input", text), PARENT(event), CARRIED(event))},
  [EVENT_COMPLETED] = {"completed", LIST(TEXT(event, "output", text))},
  [EVENT_FAILED] = {"failed", LIST(TEXT(event, "error", text), CODE(event))},
  [EVENT_CANCELLED] = {"cancelled", LIST(TEXT(event, "reason", text), TEXT(event, "by", by))},
  [EVENT_CONTINUED] = {"continued",
                       LIST(TEXT(event, "input", text), TEXT(event, "version", version))},
  [EVENT_CANCEL_REQUESTED] = {"cancel_requested",
                              LIST(TEXT(event, "reason", text), TEXT(event, "by", by))},
  [EVENT_ACTIVITY] = {"activity", LIST(NAME(event, "name", name), TEXT(event, "input", text),
                                       TEXT(event, "tag", tag), TEXT(event, "session", session))},
  [EVENT_ACTIVITY_COMPLETED] = {"activity_completed",
                                LIST(REF(event, source), TEXT(event, "result", text))},
  [EVENT_ACTIVITY_FAILED] = {"activity_failed", LIST(REF(event, source),
                                                     TEXT(event, "error", text), CODE(event))},
  [EVENT_TIMER] = {"timer", LIST(INT(event, "duration", number), INT(event, "fire_at", time2))},
  [EVENT_TIMER_FIRED] = {"timer_fired", LIST(REF(event, source))},
  [EVENT_CHILD] = {"child",
                   LIST(NAME(event, "name", name), TEXT(event, "input", text),
                        NAME(event, "instance", instance), TEXT(event, "version", version))},
  [EVENT_CHILD_COMPLETED] = {"child_completed",
                             LIST(REF(event, source), TEXT(event, "result", text))},
  [EVENT_CHILD_FAILED] = {"child_failed",
                          LIST(REF(event, source), TEXT(event, "error", text), CODE(event))},
  [EVENT_DETACHED] = {"detached",
                      LIST(NAME(event, "name", name), TEXT(event, "input", text),
                           NAME(event, "instance", instance), TEXT(event, "version", version))},
  [EVENT_WAIT] = {"wait", LIST(NAME(event, "name", name))},
  [EVENT_RAISED] = {"raised", LIST(NAME(event, "name", name), TEXT(event, "data", text),
                                   TEXT(event, "message_id", message_id))},
  [EVENT_DEQUEUE] = {"dequeue", LIST(NAME(event, "queue", name))},
  [EVENT_QUEUED] = {"queued", LIST(NAME(event, "queue", name), TEXT(event, "data", text),
                                   TEXT(event, "message_id", message_id))},
  [EVENT_TRY_DEQUEUE] = {"try_dequeue", LIST(NAME(event, "queue", name),
                                             INT(event, "took", number),
                                             UINT(event, "source", source))},
  [EVENT_DROPPED] = {"dropped", LIST(REF(event, source), CODE(event))},
  [EVENT_ENDED] = {"ended", LIST(REF(event, source), CODE(event))},
  [EVENT_VALUE] = {"value", LIST(NAME(event, "name", name), INT(event, "number", number),
                                 TEXT(event, "text", text))},
  [EVENT_KV] = {"kv", LIST(INT(event, "op", number), TEXT(event, "key", name),
                           TEXT(event, "value", text))},
  [EVENT_STATUS] = {"status", LIST(TEXT(event, "status", text))},
};

static const struct member event_common[] = {INT(event, "time", time), END};

const struct record codec_events = {
  .what = "event",
  .shapes = event_shapes,
  .n_shapes = N_EVENT_KINDS,
  .kind_offset = offsetof(struct event, kind),
  .common = event_common,
};

static const struct shape message_shapes[N_MESSAGE_KINDS] = {
  [MESSAGE_START] = {"start", LIST(NAME(message, "name", name), TEXT(message, "version", version),
                                   TEXT(message, "input", text), PARENT(message))},
  [MESSAGE_CONTINUE] = {"continue", LIST(REF(message, execution), NAME(message, "name", name),
                                         TEXT(message, "version", version),
                                         TEXT(message, "input", text), PARENT(message),
                                         CARRIED(message))},
  [MESSAGE_ACTIVITY_COMPLETED] = {"activity_completed",
                                  LIST(REF(message, execution), REF(message, source),
                                       TEXT(message, "result", text))},
  [MESSAGE_ACTIVITY_FAILED] = {"activity_failed",
                               LIST(REF(message, execution), REF(message, source),
                                    TEXT(message, "error", text), CODE(message))},
  [MESSAGE_TIMER_FIRED] = {"timer_fired", LIST(REF(message, execution), REF(message, source))},
  [MESSAGE_CHILD_COMPLETED] = {"child_completed",
                               LIST(REF(message, execution), REF(message, source),
                                    TEXT(message, "result", text))},
  [MESSAGE_CHILD_FAILED] = {"child_failed", LIST(REF(message, execution), REF(message, source),
                                                 TEXT(message, "error", text), CODE(message))},
  [MESSAGE_RAISED] = {"raised", LIST(NAME(message, "name", name), TEXT(message, "data", text))},
  [MESSAGE_QUEUED] = {"queued", LIST(NAME(message, "queue", name), TEXT(message, "data", text))},
  [MESSAGE_CANCEL] = {"cancel", LIST(TEXT(message, "reason", text), TEXT(message, "by", by),
                                     PARENT(message))},
  [MESSAGE_DELAYED] = {"delayed", LIST(NAME(message, "why", name), TEXT(message, "text", text),
                                       TEXT(message, "by", by))},
};

const struct record codec_messages = {
  .what = "message",
  .shapes = message_shapes,
  .n_shapes = N_MESSAGE_KINDS,
  .kind_offset = offsetof(struct message, kind),
};

/* The only kind of task order. */
static const struct shape task_order_shapes[] = {
  {NULL, NULL},
  {"task", LIST(NAME(coded_task_order, "name", order.name),
                TEXT(coded_task_order, "input", order.input),
                TEXT(coded_task_order, "orchestration", order.orchestration),
                TEXT(coded_task_order, "version", order.version))},
};

const struct record codec_task_orders = {
  .what = "task",
  .shapes = task_order_shapes,
  .n_shapes = sizeof(task_order_shapes) / sizeof(task_order_shapes[0]),
  .kind_offset = offsetof(struct coded_task_order, kind),
};

const char *const codec_codes[N_CODES] = {
  [CODE_NONE] = "",
  [CODE_SELECT_LOSER_TIMEOUT] = "select_loser_timeout",
  [CODE_SELECT_LOSER_OTHER] = "select_loser_other",
  [CODE_DROPPED] = "dropped",
  [CODE_TERMINAL_COMPLETED] = "terminal_completed",
  [CODE_TERMINAL_FAILED] = "terminal_failed",
  [CODE_TERMINAL_CANCELLED] = "terminal_cancelled",
  [CODE_TERMINAL_CONTINUED_AS_NEW] = "terminal_continued_as_new",
  [CODE_POISON] = "poison",
  [CODE_LIMIT] = "limit",
  [CODE_CORRUPT] = "corrupt",
  [CODE_NONDETERMINISM] = "nondeterminism",
  [CODE_APPLICATION] = "application",
  [CODE_UNREGISTERED] = "unregistered",
  [CODE_INSTANCE_TAKEN] = "instance_taken",
  [CODE_CANCELLED] = "cancelled",
};

/* ---- encoding -------------------------------------------------------------------------------- */

static void
put_bytes(struct dk_text *text, const char *name, dk_str bytes)
{
  char other[64];

  if (!bytes.ptr)
    return;
  if (dk_utf8_valid(bytes.ptr, bytes.len)) {
    json_put_name(text, name);
    json_put_text(text, bytes);
    return;
  }
  snprintf(other, sizeof(other), "%s" CODEC_BASE64, name);
  json_put_name(text, other);
  dk_text_puts(text, "\"");
  base64_encode(text, bytes);
  dk_text_puts(text, "\"");
}

static void put_members(struct dk_text *text, const struct member *members, const void *value);

static void
put_parent(struct dk_text *text, const char *name, const struct parent *parent)
{
  if (!parent->instance.ptr)
    return;
  json_put_name(text, name);
  json_open(text, '{');
  put_members(text, codec_parent, parent);
  json_close(text, '}');
}

static void
put_carried(struct dk_text *text, const char *name, const struct carried *carried, size_t n)
{
  if (n == 0)
    return;
  json_put_name(text, name);
  json_open(text, '[');
  for (size_t i = 0; i < n; i++) {
    json_open(text, '{');
    put_members(text, codec_carried, &carried[i]);
    json_close(text, '}');
  }
  json_close(text, ']');
}

static void
put_member(struct dk_text *text, const struct member *member, const void *at)
{
  switch (member->type) {
  case MEMBER_TEXT:
    put_bytes(text, member->name, *(const dk_str *)at);
    return;
  case MEMBER_UINT:
    if (*(const uint64_t *)at == 0)
      return;
    json_put_name(text, member->name);
    json_put_uint64(text, *(const uint64_t *)at);
    return;
  case MEMBER_INT:
    if (*(const int64_t *)at == 0)
      return;
    json_put_name(text, member->name);
    json_put_int64(text, *(const int64_t *)at);
    return;
  case MEMBER_CODE:
    if (*(const enum code *)at != CODE_NONE)
      put_bytes(text, member->name, dk_str_of(codec_codes[*(const enum code *)at]));
    return;
  case MEMBER_PARENT:
    put_parent(text, member->name, at);
    return;
  case MEMBER_CARRIED:
    put_carried(text, member->name, *(struct carried *const *)at,
                *(const size_t *)((struct carried *const *)at + 1));
    return;
  }
}

static void
put_members(struct dk_text *text, const struct member *members, const void *value)
{
  for (const struct member *m = members; m && m->name; m++)
    put_member(text, m, (const char *)value + m->offset);
}

void
codec_encode(struct dk_text *text, const struct record *record, unsigned kind, const void *value)
{
  const struct shape *shape = &record->shapes[kind];

  dk_text_puts(text, "{");
  json_put_name(text, "v");
  json_put_int64(text, CODEC_FORMAT);
  json_put_name(text, "kind");
  json_put_text(text, dk_str_of(shape->kind));
  put_members(text, record->common, value);
  put_members(text, shape->members, value);
  json_close(text, '}');
}

void
event_encode(struct dk_text *text, const struct event *event)
{
  codec_encode(text, &codec_events, event->kind, event);
}

void
message_encode(struct dk_text *text, const struct message *message)
{
  codec_encode(text, &codec_messages, message->kind, message);
}

void
task_order_encode(struct dk_text *text, const struct task_order *order)
{
  const struct coded_task_order coded = {.kind = 1, .order = *order};

  codec_encode(text, &codec_task_orders, 1, &coded);
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char *
kind_name(const struct record *record, unsigned kind)
{
  return kind > 0 && kind < record->n_shapes ? record->shapes[kind].kind : "none";
}

const char *
event_kind_name(enum event_kind kind)
{
  return kind_name(&codec_events, kind);
}

const char *
message_kind_name(enum message_kind kind)
{
  return kind_name(&codec_messages, kind);
}

const char *
code_name(enum code code)
{
  return (unsigned)code < N_CODES ? codec_codes[code] : "";
}
