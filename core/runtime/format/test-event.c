/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of event.h: the payloads of each format so far are read, and written without a change;
 * random ones of all kinds round trip; unknown ones are refused by name; damaged ones cause no
 * crash. */
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/format/codec.h"
#include "core/runtime/testing/dice.h"

/* What one payload means. */
struct meaning {
  const struct record *record;
  struct event event;
  struct message message;
  struct coded_task_order task;
};

struct sample {
  struct meaning meaning;
  const char *payload;
  size_t size;
};

#define T(text) {text, sizeof(text) - 1}
#define EVENT(...) {{.record = &codec_events, .event = {__VA_ARGS__}},
#define MESSAGE(...) {{.record = &codec_messages, .message = {__VA_ARGS__}},
#define TASK(...) {{.record = &codec_task_orders, .task = {1, {__VA_ARGS__}}},
#define PAYLOAD(text) text, sizeof(text) - 1},

static const struct sample samples[] = {
#include "core/runtime/testing/payloads.h"
};
enum { N_SAMPLES = sizeof(samples) / sizeof(samples[0]) };

/* ---- comparing ------------------------------------------------------------------------------- */

static bool
same_text(dk_str a, dk_str b)
{
  return !a.ptr == !b.ptr && a.len == b.len && (!a.ptr || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Like a decoded text: absent, or followed by a NUL. */
static bool
decoded(dk_str expected, dk_str found)
{
  return same_text(expected, found) && (!found.ptr || found.ptr[found.len] == '\0');
}

static bool
same_parent(const struct parent *a, const struct parent *b)
{
  return decoded(a->instance, b->instance) && a->execution == b->execution &&
         a->source == b->source;
}

static bool
same_carried(const struct carried *a, size_t n_a, const struct carried *b, size_t n_b)
{
  for (size_t i = 0; i < n_a && i < n_b; i++)
    if (!decoded(a[i].queue, b[i].queue) || !decoded(a[i].data, b[i].data))
      return false;
  return n_a == n_b;
}

static bool
same_event(const struct event *a, const struct event *b)
{
  return a->id == b->id && a->source == b->source && a->kind == b->kind && a->code == b->code &&
         a->time == b->time && a->number == b->number && a->time2 == b->time2 &&
         decoded(a->name, b->name) && decoded(a->text, b->text) &&
         decoded(a->version, b->version) && decoded(a->instance, b->instance) &&
         decoded(a->tag, b->tag) && decoded(a->session, b->session) && decoded(a->by, b->by) &&
         decoded(a->message_id, b->message_id) && same_parent(&a->parent, &b->parent) &&
         same_carried(a->carried, a->n_carried, b->carried, b->n_carried);
}

static bool
same_message(const struct message *a, const struct message *b)
{
  return a->kind == b->kind && a->code == b->code && a->execution == b->execution &&
         a->source == b->source && decoded(a->id, b->id) && decoded(a->name, b->name) &&
         decoded(a->text, b->text) && decoded(a->version, b->version) && decoded(a->by, b->by) &&
         same_parent(&a->parent, &b->parent) &&
         same_carried(a->carried, a->n_carried, b->carried, b->n_carried);
}

static bool
same_task(const struct task_order *a, const struct task_order *b)
{
  return decoded(a->name, b->name) && decoded(a->input, b->input) &&
         decoded(a->orchestration, b->orchestration) && decoded(a->version, b->version);
}

static bool
same_meaning(const struct meaning *a, const struct meaning *b)
{
  return same_event(&a->event, &b->event) && same_message(&a->message, &b->message) &&
         same_task(&a->task.order, &b->task.order);
}

/* ---- through the calls of event.h ------------------------------------------------------------ */

static void
encode(struct dk_text *text, const struct meaning *meaning)
{
  if (meaning->record == &codec_events)
    event_encode(text, &meaning->event);
  else if (meaning->record == &codec_messages)
    message_encode(text, &meaning->message);
  else
    task_order_encode(text, &meaning->task.order);
}

static dk_status
decode(struct dk_arena *arena, const struct record *record, dk_str payload,
       struct meaning *ret_meaning, const char **ret_why)
{
  *ret_meaning = (struct meaning){.record = record};
  if (record == &codec_events)
    return event_decode(arena, payload, &ret_meaning->event, ret_why);
  if (record == &codec_messages)
    return message_decode(arena, payload, &ret_meaning->message, ret_why);
  return task_order_decode(arena, payload, &ret_meaning->task.order, ret_why);
}

/* ---- the corpus ------------------------------------------------------------------------------ */

static void
test_corpus(void)
{
  bool events[N_EVENT_KINDS] = {true}, messages[N_MESSAGE_KINDS] = {true};

  for (size_t i = 0; i < N_SAMPLES; i++) {
    const struct sample *s = &samples[i];
    struct dk_arena arena;
    struct dk_text text = DK_TEXT_EMPTY;
    struct meaning read;
    const char *why = "";
    dk_arena_init(&arena);
    dk_status status =
      decode(&arena, s->meaning.record, (dk_str){s->payload, s->size}, &read, &why);
    ok(status == DK_OK && same_meaning(&s->meaning, &read), "read: %s (%s)", s->payload, why);
    encode(&text, &s->meaning);
    is(dk_text_str(&text), s->payload, "written as it was");
    events[s->meaning.event.kind] = true;
    messages[s->meaning.message.kind] = true;
    dk_text_done(&text);
    dk_arena_done(&arena);
  }
  for (int i = 1; i < N_EVENT_KINDS; i++)
    ok(events[i], "the corpus has the event %s", event_kind_name((enum event_kind)i));
  for (int i = 1; i < N_MESSAGE_KINDS; i++)
    ok(messages[i], "the corpus has the message %s", message_kind_name((enum message_kind)i));
}

/* ---- random payloads ------------------------------------------------------------------------- */

static dk_str
random_text(struct dice *dice, struct dk_arena *arena)
{
  size_t size = dice_below(dice, 20);
  bool any = dice_below(dice, 4) == 0;
  char *bytes = dk_arena_copy(arena, NULL, 0);

  if (size > 0)
    bytes = dk_arena_alloc(arena, size + 1);
  for (size_t i = 0; i < size; i++)
    bytes[i] = any ? (char)dice_roll(dice) : (char)dice_below(dice, 128);
  return (dk_str){bytes, size};
}

static void fill(struct dice *dice, struct dk_arena *arena, const struct member *members,
                 void *value);

static void
fill_carried(struct dice *dice, struct dk_arena *arena, struct carried **ret_carried, size_t *ret_n)
{
  size_t n = dice_below(dice, 4);

  if (n == 0)
    return;
  *ret_carried = dk_arena_array(arena, n, sizeof(**ret_carried));
  *ret_n = n;
  for (size_t i = 0; i < n; i++)
    fill(dice, arena, codec_carried, &(*ret_carried)[i]);
}

static void
fill_member(struct dice *dice, struct dk_arena *arena, const struct member *member, void *at)
{
  switch (member->type) {
  case MEMBER_TEXT:
    *(dk_str *)at = random_text(dice, arena);
    return;
  case MEMBER_UINT:
    *(uint64_t *)at = dice_number(dice);
    if (member->required && *(uint64_t *)at == 0)
      *(uint64_t *)at = 1;
    return;
  case MEMBER_INT:
    *(int64_t *)at = (int64_t)dice_number(dice);
    return;
  case MEMBER_CODE:
    *(enum code *)at = (enum code)dice_below(dice, N_CODES);
    return;
  case MEMBER_PARENT:
    fill(dice, arena, codec_parent, at);
    return;
  case MEMBER_CARRIED:
    fill_carried(dice, arena, at, (size_t *)((struct carried **)at + 1));
  }
}

/* All required members, and half of the others. */
static void
fill(struct dice *dice, struct dk_arena *arena, const struct member *members, void *value)
{
  for (const struct member *m = members; m && m->name; m++)
    if (m->required || dice_below(dice, 2))
      fill_member(dice, arena, m, (char *)value + m->offset);
}

static void
random_meaning(struct dice *dice, struct dk_arena *arena, struct meaning *ret_meaning)
{
  static const struct record *const records[] = {&codec_events, &codec_messages,
                                                 &codec_task_orders};
  const struct record *record = records[dice_below(dice, 3)];
  unsigned kind = 1 + (unsigned)dice_below(dice, record->n_shapes - 1);
  void *value;

  *ret_meaning = (struct meaning){.record = record};
  value = record == &codec_events     ? (void *)&ret_meaning->event
          : record == &codec_messages ? (void *)&ret_meaning->message
                                      : (void *)&ret_meaning->task;
  memcpy((char *)value + record->kind_offset, &kind, sizeof(kind));
  fill(dice, arena, record->shapes[kind].members, value);
  fill(dice, arena, record->common, value);
}

static bool
round_trips(struct dice *dice)
{
  struct dk_arena arena;
  struct dk_text text = DK_TEXT_EMPTY;
  struct meaning meaning, read;
  const char *why = "";

  dk_arena_init(&arena);
  random_meaning(dice, &arena, &meaning);
  encode(&text, &meaning);
  dk_status status =
    decode(&arena, meaning.record, (dk_str){dk_text_str(&text), text.length}, &read, &why);
  bool same = status == DK_OK && same_meaning(&meaning, &read);
  if (!same)
    diag("status %d, %s, of %s", (int)status, why, dk_text_str(&text));
  dk_text_done(&text);
  dk_arena_done(&arena);
  return same;
}

static void
test_round_trips(void)
{
  struct dice dice = {3};
  unsigned n = dice_rounds(50000), i = 0;

  while (i < n && round_trips(&dice))
    i++;
  cmp_ok(i, "==", n, "random payloads mean what they meant");
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void
damage(struct dice *dice, char *bytes, size_t *size)
{
  static const char likely[] = "{}[]\",:0123456789eaoi_.\\u=";
  size_t at = *size > 0 ? dice_below(dice, *size) : 0;

  switch (*size > 0 ? dice_below(dice, 4) : 3) {
  case 0:
    bytes[at] = (char)dice_roll(dice);
    return;
  case 1:
    bytes[at] = likely[dice_below(dice, sizeof(likely) - 1)];
    return;
  case 2:
    memmove(bytes + at, bytes + at + 1, *size - at - 1);
    *size -= 1;
    return;
  default:
    *size = at;
  }
}

/* DK_OK, or DK_CORRUPT with its text; and what was read can be written and read again. */
static bool
survives(const struct record *record, dk_str payload, unsigned *read_anyway)
{
  struct dk_arena arena;
  struct dk_text text = DK_TEXT_EMPTY;
  struct meaning first, second;
  const char *why = NULL;
  bool fine;

  dk_arena_init(&arena);
  dk_status status = decode(&arena, record, payload, &first, &why);
  fine = status == DK_OK || (status == DK_CORRUPT && why && *why);
  if (status == DK_OK) {
    encode(&text, &first);
    status = decode(&arena, record, (dk_str){dk_text_str(&text), text.length}, &second, &why);
    /* A required number may have been written as 0, which the encoder leaves out. */
    fine = status == DK_OK ? same_meaning(&first, &second) : strstr(why, "is missing") != NULL;
    ++*read_anyway;
  }
  if (!fine)
    diag("status %d, %s, of %.*s", (int)status, why ? why : "", (int)payload.len, payload.ptr);
  dk_text_done(&text);
  dk_arena_done(&arena);
  return fine;
}

static bool
survives_damage(struct dice *dice, unsigned *read_anyway)
{
  const struct sample *s = &samples[dice_below(dice, N_SAMPLES)];
  char bytes[512];
  size_t size = s->size;

  memcpy(bytes, s->payload, size);
  for (size_t n = 1 + dice_below(dice, 3); n > 0; n--)
    damage(dice, bytes, &size);
  /* Exactly the bytes, so that Valgrind and ASan see a read beyond them. */
  char *alone = malloc(size + (size == 0));
  if (!alone)
    BAIL_OUT("out of memory");
  memcpy(alone, bytes, size);
  bool fine = survives(s->meaning.record, (dk_str){alone, size}, read_anyway);
  free(alone);
  return fine;
}

static void
test_damage(void)
{
  struct dice dice = {4};
  unsigned n = dice_rounds(200000), i = 0, read_anyway = 0;

  while (i < n && survives_damage(&dice, &read_anyway))
    i++;
  cmp_ok(i, "==", n, "damaged payloads are read, or refused with a text");
  note("%u of %u could be read", read_anyway, n);
  cmp_ok(read_anyway, ">", 0, "some of them can be read");
}

/* ---- refusals -------------------------------------------------------------------------------- */

static const struct {
  const struct record *record;
  const char *payload, *why;
} refusals[] = {
  {&codec_events, "", "event: the payload is not JSON: byte 0: the text ends"},
  {&codec_events, "[]", "event: the payload must be an object"},
  {&codec_events, "{}", "event: \"v\", the number of its format, is missing"},
  {&codec_events, "{\"v\":\"1\"}", "event: \"v\" must be the number of a format, 1 to 1"},
  {&codec_events, "{\"v\":0}", "event: \"v\" must be the number of a format, 1 to 1"},
  {&codec_events, "{\"v\":2,\"kind\":\"timer\",\"strange\":1}",
   "event: format 2 is unknown, 1 to 1 are known: written by a newer runtime?"},
  {&codec_events, "{\"v\":1}", "event: \"kind\" is missing"},
  {&codec_events, "{\"v\":1,\"kind\":7}", "event: \"kind\" must be a word"},
  {&codec_events, "{\"v\":1,\"kind\":\"\"}", "event: the kind \"\" is unknown"},
  {&codec_events, "{\"v\":1,\"kind\":\"teleport\"}",
   "event: the kind \"teleport\" is unknown: written by a newer runtime?"},
  {&codec_events, "{\"v\":1,\"kind\":\"activity\",\"name\":\"a\",\"weight\":1}",
   "activity: the member \"weight\" is unknown: written by a newer runtime?"},
  {&codec_events, "{\"v\":1,\"kind\":\"activity\"}", "activity: \"name\" is missing"},
  {&codec_events, "{\"v\":1,\"kind\":\"activity\",\"name\":null}",
   "activity: \"name\" must be a text"},
  {&codec_events, "{\"v\":1,\"kind\":\"activity\",\"name\":\"a\",\"name.base64\":\"YQ==\"}",
   "activity: \"name\" is present both as text and as base64"},
  {&codec_events, "{\"v\":1,\"kind\":\"completed\",\"output.base64\":\"YQ=\"}",
   "completed: \"output.base64\" must be base64"},
  {&codec_events, "{\"v\":1,\"kind\":\"completed\",\"output.base64\":\"YR==\"}",
   "completed: \"output.base64\" must be base64"},
  {&codec_events, "{\"v\":1,\"kind\":\"completed\",\"output.base64\":\"YQ==YQ==\"}",
   "completed: \"output.base64\" must be base64"},
  {&codec_events, "{\"v\":1,\"kind\":\"completed\",\"output.base64\":\"Y?==\"}",
   "completed: \"output.base64\" must be base64"},
  {&codec_events, "{\"v\":1,\"kind\":\"timer\",\"duration\":1.5}",
   "timer: \"duration\" must be a whole number of 64 bits, with or without a sign"},
  {&codec_events, "{\"v\":1,\"kind\":\"timer_fired\",\"source\":-1}",
   "timer_fired: \"source\" must be a whole number of 64 bits, not negative"},
  {&codec_events, "{\"v\":1,\"kind\":\"timer_fired\",\"source.base64\":\"YQ==\"}",
   "timer_fired: the member \"source.base64\" is unknown"},
  {&codec_events, "{\"v\":1,\"kind\":\"failed\",\"code\":\"bored\"}",
   "failed: the code \"bored\" is unknown: written by a newer runtime?"},
  {&codec_events, "{\"v\":1,\"kind\":\"failed\",\"code\":3}",
   "failed: \"code\" must be a word"},
  {&codec_events, "{\"v\":1,\"kind\":\"started\",\"name\":\"a\",\"parent\":1}",
   "started: \"parent\" must be an object"},
  {&codec_events, "{\"v\":1,\"kind\":\"started\",\"name\":\"a\",\"parent\":{}}",
   "started: \"instance\" is missing"},
  {&codec_events, "{\"v\":1,\"kind\":\"started\",\"name\":\"a\",\"carried\":{}}",
   "started: \"carried\" must be a list"},
  {&codec_events, "{\"v\":1,\"kind\":\"started\",\"name\":\"a\",\"carried\":[1]}",
   "started: \"[]\" must be an object"},
  {&codec_events, "{\"v\":1,\"kind\":\"started\",\"name\":\"a\",\"carried\":[{\"v\":1}]}",
   "started: the member \"v\" is unknown"},
  {&codec_messages, "{\"v\":1,\"kind\":\"started\",\"name\":\"a\"}",
   "message: the kind \"started\" is unknown"},
  {&codec_messages, "{\"v\":1,\"kind\":\"timer_fired\",\"source\":3}",
   "timer_fired: \"execution\" is missing"},
  {&codec_messages, "{\"v\":1,\"kind\":\"start\",\"name\":\"a\",\"time\":3}",
   "start: the member \"time\" is unknown"},
  {&codec_task_orders, "{\"v\":1,\"kind\":\"task\"}", "task: \"name\" is missing"},
  {&codec_task_orders, "{\"v\":1,\"kind\":\"start\"}", "task: the kind \"start\" is unknown"},
};

static void
test_refusals(void)
{
  for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
    struct dk_arena arena;
    struct meaning read;
    const char *why = "";
    dk_arena_init(&arena);
    dk_status status =
      decode(&arena, refusals[i].record, dk_str_of(refusals[i].payload), &read, &why);
    if (!ok(status == DK_CORRUPT && strncmp(why, refusals[i].why, strlen(refusals[i].why)) == 0,
            "refused: %s", refusals[i].payload))
      diag("status %d, \"%s\" instead of \"%s\"", (int)status, why, refusals[i].why);
    dk_arena_done(&arena);
  }
}

/* A refusal leaves the struct as it was. */
static void
test_refusal_writes_nothing(void)
{
  struct dk_arena arena;
  struct event event = {.kind = EVENT_TIMER, .number = 7};
  const char *why;

  dk_arena_init(&arena);
  event_decode(&arena, dk_str_of("{\"v\":1,\"kind\":\"kv\",\"op\":1,\"key\":2}"), &event, &why);
  ok(event.kind == EVENT_TIMER && event.number == 7, "what is refused is not written");
  dk_arena_done(&arena);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* With any amount of memory: the right result, or no memory. */
static void
test_memory(void)
{
  static _Alignas(16) char region[8192];
  unsigned wrong = 0, without = 0, right = 0;

  for (size_t i = 0; i < N_SAMPLES; i++)
    for (size_t size = 0; size <= sizeof(region); size += size < 2048 ? 16 : 2048) {
      struct dk_arena arena;
      struct meaning read;
      const char *why;
      dk_arena_init_fixed(&arena, region, size);
      dk_status status = decode(&arena, samples[i].meaning.record,
                                (dk_str){samples[i].payload, samples[i].size}, &read, &why);
      without += status == DK_NO_MEMORY;
      right += status == DK_OK && same_meaning(&samples[i].meaning, &read);
      wrong += status != DK_OK && status != DK_NO_MEMORY;
    }
  cmp_ok(wrong, "==", 0, "no memory is never taken for damage");
  cmp_ok(without, ">", N_SAMPLES, "with little memory there is no result");
  cmp_ok(right, ">", N_SAMPLES, "and in enough all is right");
}

/* A history of many events takes the memory of its texts, not of the nodes that they were read
 * with. */
static void
test_room(void)
{
  enum { N = 1000 };
  static _Alignas(16) char region[N * 128 + 4096];
  static const char payload[] = "{\"v\":1,\"kind\":\"activity_completed\",\"time\":1700000000000,"
                                "\"source\":3,\"result\":\"done\"}";
  struct dk_arena arena;
  unsigned n = 0;

  dk_arena_init_fixed(&arena, region, sizeof(region));
  for (; n < N; n++) {
    struct event event;
    const char *why;
    if (event_decode(&arena, dk_str_of(payload), &event, &why) != DK_OK)
      break;
  }
  cmp_ok(n, "==", N, "a payload of 88 bytes is decoded into less than 128");
}

static void
test_names(void)
{
  is(event_kind_name(EVENT_ACTIVITY_COMPLETED), "activity_completed", "an event's name");
  is(event_kind_name(EVENT_NONE), "none", "of none");
  is(event_kind_name(N_EVENT_KINDS), "none", "beyond the last");
  is(message_kind_name(MESSAGE_CANCEL), "cancel", "a message's name");
  is(message_kind_name(N_MESSAGE_KINDS), "none", "beyond the last");
  is(code_name(CODE_NONE), "", "no code");
  is(code_name(N_CODES), "", "nor beyond the last");
  for (int i = 1; i < N_CODES; i++)
    isnt(code_name((enum code)i), "", "code %d has a name, %s", i, code_name((enum code)i));
}

int
main(void)
{
  plan(NO_PLAN);
  test_corpus();
  test_round_trips();
  test_damage();
  test_refusals();
  test_refusal_writes_nothing();
  test_memory();
  test_room();
  test_names();
  return exit_status();
}
