/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder of events, messages and task orders: follows the table of event.c.  It refuses what
 * it does not know, by name, so that nothing that a newer runtime has written is lost silently. */
#include "core/runtime/format/codec.h"
#include "core/runtime/format/json.h"

/* A payload that is being read. */
struct decoder {
  struct dk_arena *arena;
  const char *kind;      /* for the text of a refusal: "event" until its kind is known */
  const char **ret_why;
  bool keeps_nodes;      /* something was allocated after the nodes */
};

enum { MAX_SHOWN = 60 };

/* ---- refusing -------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static dk_status
refuse(struct decoder *d, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  const char *what = dk_arena_vprintf(d->arena, format, args);
  va_end(args);
  const char *why = what ? dk_arena_printf(d->arena, "%s: %s", d->kind, what) : NULL;
  if (!why)
    return DK_NO_MEMORY;
  *d->ret_why = why;
  return DK_CORRUPT;
}

/* How much of a text an error text shows. */
static int
shown(dk_str text)
{
  return text.len < MAX_SHOWN ? (int)text.len : MAX_SHOWN;
}

static bool
is_word(dk_str text, const char *word)
{
  return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

static dk_status
read_text(struct decoder *d, const struct json *member, bool base64, dk_str *ret_text)
{
  if (member->kind != VALUE_TEXT)
    return refuse(d, "\"%s\" must be a text", member->name.ptr);
  *ret_text = member->text;
  if (!base64)
    return DK_OK;
  /* The text is in the arena's copy of the payload, so it may be changed. */
  char *bytes = (char *)member->text.ptr;
  ptrdiff_t length = base64_decode(bytes, member->text.len);
  if (length < 0)
    return refuse(d, "\"%s\" must be base64", member->name.ptr);
  bytes[length] = '\0';
  ret_text->len = (size_t)length;
  return DK_OK;
}

static dk_status
read_code(struct decoder *d, const struct json *member, enum code *ret_code)
{
  if (member->kind != VALUE_TEXT)
    return refuse(d, "\"%s\" must be a word", member->name.ptr);
  for (int i = CODE_NONE + 1; i < N_CODES; i++)
    if (is_word(member->text, codec_codes[i])) {
      *ret_code = (enum code)i;
      return DK_OK;
    }
  return refuse(d, "the code \"%.*s\" is unknown: written by a newer runtime?", shown(member->text),
                member->text.ptr);
}

static dk_status read_object(struct decoder *d, const struct json *object,
                             const struct member *first, const struct member *second,
                             unsigned skipped, void *value);

static dk_status
read_carried(struct decoder *d, const struct json *list, struct carried **ret_carried,
             size_t *ret_n)
{
  struct carried *carried;
  size_t n = 0;

  if (list->kind != VALUE_LIST)
    return refuse(d, "\"%s\" must be a list", list->name.ptr);
  d->keeps_nodes = true;
  carried = dk_arena_array(d->arena, list->n, sizeof(*carried));
  if (!carried)
    return DK_NO_MEMORY;
  for (const struct json *item = list->first; item; item = item->next) {
    dk_status status = read_object(d, item, codec_carried, NULL, 0, &carried[n++]);
    if (status != DK_OK)
      return status;
  }
  *ret_carried = carried;
  *ret_n = n;
  return DK_OK;
}

static dk_status
decode_read_number(struct decoder *d, const struct json *json, enum member_type type, void *at)
{
  bool is_read = type == MEMBER_UINT ? json_uint64(json, at) : json_int64(json, at);

  if (is_read)
    return DK_OK;
  return refuse(d, "\"%s\" must be a whole number of 64 bits, %s", json->name.ptr,
                type == MEMBER_UINT ? "not negative" : "with or without a sign");
}

static dk_status
read_member(struct decoder *d, const struct json *json, const struct member *member, bool base64,
            void *at)
{
  switch (member->type) {
  case MEMBER_TEXT:
    return read_text(d, json, base64, at);
  case MEMBER_UINT:
  case MEMBER_INT:
    return decode_read_number(d, json, member->type, at);
  case MEMBER_CODE:
    return read_code(d, json, at);
  case MEMBER_PARENT:
    return read_object(d, json, codec_parent, NULL, 0, at);
  case MEMBER_CARRIED:
    return read_carried(d, json, at, (size_t *)((struct carried **)at + 1));
  }
  return DK_INTERNAL; /* the table names no other type */
}

/* ---- objects --------------------------------------------------------------------------------- */

/* Whether the JSON's name is the member's name, or its name for bytes. */
static bool
is_member(dk_str name, const struct member *member, bool *ret_base64)
{
  size_t length = strlen(member->name);

  *ret_base64 = member->type == MEMBER_TEXT && name.len == length + strlen(CODEC_BASE64) &&
                memcmp(name.ptr + length, CODEC_BASE64, strlen(CODEC_BASE64)) == 0;
  return (*ret_base64 || name.len == length) && memcmp(name.ptr, member->name, length) == 0;
}

static const struct member *
find_member(const struct member *members, dk_str name, bool *ret_base64)
{
  for (const struct member *m = members; m && m->name; m++)
    if (is_member(name, m, ret_base64))
      return m;
  return NULL;
}

/* Refuses a required member that is missing, and one that is present under both of its names. */
static dk_status
check_members(struct decoder *d, const struct json *object, const struct member *members)
{
  for (const struct member *m = members; m && m->name; m++) {
    unsigned n = 0;
    bool base64;
    for (const struct json *json = object->first; json; json = json->next)
      n += is_member(json->name, m, &base64);
    if (n == 0 && m->required)
      return refuse(d, "\"%s\" is missing", m->name);
    if (n > 1)
      return refuse(d, "\"%s\" is present both as text and as base64", m->name);
  }
  return DK_OK;
}

/* Reads the members of two lists into the struct; the object's first `skipped` are the caller's. */
static dk_status
read_object(struct decoder *d, const struct json *object, const struct member *first,
            const struct member *second, unsigned skipped, void *value)
{
  dk_status status;
  bool base64;

  if (object->kind != VALUE_OBJECT)
    return refuse(d, "\"%s\" must be an object", object->name.ptr ? object->name.ptr : "[]");
  for (const struct json *json = object->first; json; json = json->next) {
    if (skipped && (is_word(json->name, "v") || is_word(json->name, "kind")))
      continue;
    const struct member *member = find_member(first, json->name, &base64);
    if (!member)
      member = find_member(second, json->name, &base64);
    if (!member)
      return refuse(d, "the member \"%.*s\" is unknown: written by a newer runtime?",
                    shown(json->name), json->name.ptr);
    status = read_member(d, json, member, base64, (char *)value + member->offset);
    if (status != DK_OK)
      return status;
  }
  status = check_members(d, object, first);
  return status == DK_OK ? check_members(d, object, second) : status;
}

/* ---- payloads -------------------------------------------------------------------------------- */

static const struct json *
decode_find(const struct json *object, const char *name)
{
  for (const struct json *json = object->first; json; json = json->next)
    if (is_word(json->name, name))
      return json;
  return NULL;
}

/* Checked first: the members of another format might mean something else. */
static dk_status
check_format(struct decoder *d, const struct json *object)
{
  const struct json *format = decode_find(object, "v");
  uint64_t number;

  if (!format)
    return refuse(d, "\"v\", the number of its format, is missing");
  if (!json_uint64(format, &number) || number == 0)
    return refuse(d, "\"v\" must be the number of a format, 1 to %d", CODEC_FORMAT);
  if (number > CODEC_FORMAT)
    return refuse(d, "format %llu is unknown, 1 to %d are known: written by a newer runtime?",
                  (unsigned long long)number, CODEC_FORMAT);
  return DK_OK;
}

static dk_status
find_kind(struct decoder *d, const struct json *object, const struct record *record,
          unsigned *ret_kind)
{
  const struct json *kind = decode_find(object, "kind");

  if (!kind || kind->kind != VALUE_TEXT)
    return refuse(d, kind ? "\"kind\" must be a word" : "\"kind\" is missing");
  for (unsigned i = 1; i < record->n_shapes; i++)
    if (is_word(kind->text, record->shapes[i].kind)) {
      *ret_kind = i;
      return DK_OK;
    }
  return refuse(d, "the kind \"%.*s\" is unknown: written by a newer runtime?", shown(kind->text),
                kind->text.ptr);
}

static dk_status
read_record(struct decoder *d, const struct json *object, const struct record *record, void *value)
{
  unsigned kind = 0;
  dk_status status;

  if (object->kind != VALUE_OBJECT)
    return refuse(d, "the payload must be an object");
  status = check_format(d, object);
  if (status == DK_OK)
    status = find_kind(d, object, record, &kind);
  if (status != DK_OK)
    return status;
  d->kind = record->shapes[kind].kind;
  memcpy((char *)value + record->kind_offset, &kind, sizeof(kind));
  return read_object(d, object, record->shapes[kind].members, record->common, true, value);
}

dk_status
codec_decode(struct dk_arena *arena, dk_str payload, const struct record *record, void *value,
             const char **ret_why)
{
  struct decoder d = {.arena = arena, .kind = record->what, .ret_why = ret_why};
  struct dk_arena_mark nodes;
  const struct json *object;
  const char *why;
  dk_status status = json_read(arena, payload, &object, &why, &nodes);

  if (status == DK_CORRUPT)
    return refuse(&d, "the payload is not JSON: %s", why);
  if (status == DK_OK)
    status = read_record(&d, object, record, value);
  if (status == DK_OK && !d.keeps_nodes)
    dk_arena_rewind(arena, nodes);
  return status;
}

_Static_assert(sizeof(enum event_kind) == sizeof(unsigned) &&
                 sizeof(enum message_kind) == sizeof(unsigned),
               "a kind is written as an unsigned");

dk_status
event_decode(struct dk_arena *arena, dk_str payload, struct event *ret_event, const char **ret_why)
{
  struct event event = {.kind = EVENT_NONE};
  dk_status status = codec_decode(arena, payload, &codec_events, &event, ret_why);

  if (status == DK_OK)
    *ret_event = event;
  return status;
}

dk_status
message_decode(struct dk_arena *arena, dk_str payload, struct message *ret_message,
               const char **ret_why)
{
  struct message message = {.kind = MESSAGE_NONE};
  dk_status status = codec_decode(arena, payload, &codec_messages, &message, ret_why);

  if (status == DK_OK)
    *ret_message = message;
  return status;
}

dk_status
task_order_decode(struct dk_arena *arena, dk_str payload, struct task_order *ret_order,
                  const char **ret_why)
{
  struct coded_task_order coded = {.kind = 0};
  dk_status status = codec_decode(arena, payload, &codec_task_orders, &coded, ret_why);

  if (status == DK_OK)
    *ret_order = coded.order;
  return status;
}
