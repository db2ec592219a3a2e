/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of json.h: what is accepted and what is refused, with the texts; random values round trip;
 * and jansson as the oracle for random and damaged texts. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/base/utf8.h"
#include "core/runtime/format/json.h"
#include "core/runtime/testing/dice.h"

static dk_str
piece(const char *bytes, size_t size)
{
  return (dk_str){bytes, size};
}

static bool
same_text(dk_str a, dk_str b)
{
  return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* ---- samples --------------------------------------------------------------------------------- */

static const struct {
  const char *text;
  size_t size;
  const char *why; /* a part of it; NULL: it is JSON */
} samples[] = {
#define ACCEPTED(text) {text, sizeof(text) - 1, NULL}
#define REFUSED(text, why) {text, sizeof(text) - 1, why}
  ACCEPTED("null"),
  ACCEPTED(" \t\r\n{ } \t\r\n"),
  ACCEPTED("[ ]"),
  ACCEPTED("\"\""),
  ACCEPTED("\"\\u0000\""),
  ACCEPTED("\"\\ud83d\\ude00 \\uD83D\\uDE00 \xf0\x9f\x98\x80\""),
  ACCEPTED("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""),
  ACCEPTED("\"\x7f\""),
  ACCEPTED("-0"),
  ACCEPTED("-0.0e-0"),
  ACCEPTED("123456789012345678901234567890E+5"),
  ACCEPTED("{\"a\":1,\"b\":{\"a\":2}}"),
  REFUSED("", "byte 0: the text ends where a value is expected"),
  REFUSED(" ", "byte 1: the text ends where a value is expected"),
  REFUSED("nul", "'n' where a value is expected"),
  REFUSED("nullx", "byte 4: 'x' where the end of the text is expected"),
  REFUSED("null\0", "byte 0x00 where the end of the text is expected"),
  REFUSED("True", "'T' where a value is expected"),
  REFUSED("'a'", "where a value is expected"),
  REFUSED("1 2", "'2' where the end of the text is expected"),
  REFUSED("[", "ends where a value is expected"),
  REFUSED("[1", "ends where a comma or ] is expected"),
  REFUSED("[1,]", "']' where a value is expected"),
  REFUSED("[,1]", "',' where a value is expected"),
  REFUSED("[1}", "'}' where a comma or ] is expected"),
  REFUSED("{", "ends where a name in quotes is expected"),
  REFUSED("{\"a\"", "ends where a colon is expected"),
  REFUSED("{\"a\":", "ends where a value is expected"),
  REFUSED("{\"a\":1", "ends where a comma or } is expected"),
  REFUSED("{\"a\":1,}", "'}' where a name in quotes is expected"),
  REFUSED("{a:1}", "'a' where a name in quotes is expected"),
  REFUSED("{\"a\":1,\"b\":2,\"a\":3}", "the name \"a\" is in the object twice"),
  REFUSED("{\"\\u0061\":1,\"a\":3}", "the name \"a\" is in the object twice"),
  REFUSED("{\"a\\u0000\":1}", "a name with a NUL in it"),
  REFUSED("01", "'1' where the end of the text is expected"),
  REFUSED("-", "ends where a digit is expected"),
  REFUSED("+1", "'+' where a value is expected"),
  REFUSED("1.", "ends where a digit is expected"),
  REFUSED(".5", "'.' where a value is expected"),
  REFUSED("1.e5", "'e' where a digit is expected"),
  REFUSED("1e", "ends where a digit is expected"),
  REFUSED("1e+", "ends where a digit is expected"),
  REFUSED("NaN", "'N' where a value is expected"),
  REFUSED("\"", "ends where the end of a string is expected"),
  REFUSED("\"\\", "ends where an escape is expected"),
  REFUSED("\"\\x\"", "'x' where one of \" \\ / b f n r t u is expected"),
  REFUSED("\"\\\0\"", "byte 0x00 where one of"),
  REFUSED("\"\\u12g4\"", "'g' where a hexadecimal digit is expected"),
  REFUSED("\"\\u12", "ends where a hexadecimal digit is expected"),
  REFUSED("\"\\ud800\"", "a high surrogate, \\ud800, without a low one"),
  REFUSED("\"\\ud800\\u0041\"", "a high surrogate, \\ud800, without a low one"),
  REFUSED("\"\\udc00\"", "a low surrogate, \\udc00, without a high one"),
  REFUSED("\"a\nb\"", "byte 2: a control character, 0x0a, which must be escaped"),
  REFUSED("\"\0\"", "a control character, 0x00"),
  REFUSED("\"\xff\"", "byte 0xff is not UTF-8"),
  REFUSED("\"\xc0\x80\"", "byte 0xc0 is not UTF-8"),
  REFUSED("\"\xed\xa0\x80\"", "byte 0xed is not UTF-8"),
  REFUSED("\xef\xbb\xbfnull", "byte 0xef where a value is expected"),
};

static void
test_samples(void)
{
  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
    struct dk_arena arena;
    const struct json *value = NULL;
    const char *why = "";
    dk_arena_init(&arena);
    dk_status status =
      json_read(&arena, piece(samples[i].text, samples[i].size), &value, &why, NULL);
    if (!samples[i].why)
      ok(status == DK_OK && value, "%s is accepted", samples[i].text);
    else if (!ok(status == DK_CORRUPT && strstr(why, samples[i].why), "%s is refused",
                 samples[i].text))
      diag("status %d, \"%s\"", (int)status, why);
    dk_arena_done(&arena);
  }
}

/* ---- depth and numbers ----------------------------------------------------------------------- */

static dk_status
read_nested(unsigned depth, char opening, char closing)
{
  struct dk_arena arena;
  struct dk_text text = DK_TEXT_EMPTY;
  const struct json *value;
  const char *why;

  for (unsigned i = 0; i < depth; i++)
    dk_text_add(&text, &opening, 1);
  for (unsigned i = 0; i < depth; i++)
    dk_text_add(&text, &closing, 1);
  dk_arena_init(&arena);
  dk_status status = json_read(&arena, piece(text.bytes, text.length), &value, &why, NULL);
  dk_arena_done(&arena);
  dk_text_done(&text);
  return status;
}

static void
test_depth(void)
{
  cmp_ok(read_nested(JSON_DEPTH, '[', ']'), "==", DK_OK, "the deepest list");
  cmp_ok(read_nested(JSON_DEPTH + 1, '[', ']'), "==", DK_CORRUPT, "one that is too deep");
  cmp_ok(read_nested(1000000, '[', ']'), "==", DK_CORRUPT, "one that would need all the stack");
  cmp_ok(read_nested(1000000, '{', '}'), "==", DK_CORRUPT, "objects without names");
}

static void
test_numbers(void)
{
  static const struct {
    const char *text;
    bool is_uint, is_int;
    uint64_t as_uint;
    int64_t as_int;
  } numbers[] = {
    {"0", true, true, 0, 0},
    {"-0", false, true, 0, 0},
    {"9223372036854775807", true, true, INT64_MAX, INT64_MAX},
    {"9223372036854775808", true, false, UINT64_C(9223372036854775808), 0},
    {"18446744073709551615", true, false, UINT64_MAX, 0},
    {"18446744073709551616", false, false, 0, 0},
    {"99999999999999999999999", false, false, 0, 0},
    {"-9223372036854775808", false, true, 0, INT64_MIN},
    {"-9223372036854775809", false, false, 0, 0},
    {"1.0", false, false, 0, 0},
    {"1e3", false, false, 0, 0},
    {"\"1\"", false, false, 0, 0},
    {"null", false, false, 0, 0},
  };

  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
    struct dk_arena arena;
    const struct json *value = NULL;
    const char *why;
    uint64_t u = 0;
    int64_t s = 0;
    dk_arena_init(&arena);
    json_read(&arena, dk_str_of(numbers[i].text), &value, &why, NULL);
    ok(value && json_uint64(value, &u) == numbers[i].is_uint && u == numbers[i].as_uint,
       "%s as a number without sign", numbers[i].text);
    ok(value && json_int64(value, &s) == numbers[i].is_int && s == numbers[i].as_int,
       "%s as a number with sign", numbers[i].text);
    dk_arena_done(&arena);
  }
}

/* ---- random values --------------------------------------------------------------------------- */

static void
put_character(struct dice *dice, struct dk_text *text)
{
  static const char *const some[] = {"a", "\"", "\\", "/", "\n", "\t", "\r", "\b", "\x1f", "\x7f",
                                     "\xc2\x80", "\xc3\xa9", "\xe2\x80\xa8", "\xef\xbf\xbf",
                                     "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "{", "]", ",", ":"};
  size_t n = sizeof(some) / sizeof(some[0]), i = dice_below(dice, n + 1);

  if (i < n)
    dk_text_puts(text, some[i]);
  else
    dk_text_add(text, "\0", 1);
}

/* In the arena; without a NUL for a name. */
static dk_str
random_text(struct dice *dice, struct dk_arena *arena, bool is_name)
{
  struct dk_text text = DK_TEXT_EMPTY;
  size_t length = dice_below(dice, 8);

  for (size_t i = 0; i < length; i++)
    put_character(dice, &text);
  dk_str copy = {dk_arena_copy(arena, dk_text_str(&text), text.length), text.length};
  if (is_name)
    copy.len = strlen(copy.ptr);
  dk_text_done(&text);
  return copy;
}

static bool
has_name(const struct json *object, dk_str name)
{
  for (const struct json *m = object->first; m; m = m->next)
    if (same_text(m->name, name))
      return true;
  return false;
}

static void
random_value(struct dice *dice, struct dk_arena *arena, unsigned depth, struct json *value);

static void
random_elements(struct dice *dice, struct dk_arena *arena, unsigned depth, struct json *value)
{
  const struct json **link = &value->first;
  /* Seldom so many that names are sorted. */
  size_t wanted = dice_below(dice, dice_below(dice, 20) == 0 ? 40 : 4);

  for (size_t i = 0; i < wanted; i++) {
    struct json *element = dk_arena_alloc(arena, sizeof(*element));
    dk_str name = random_text(dice, arena, true);
    if (value->kind == VALUE_OBJECT && has_name(value, name))
      continue;
    if (value->kind == VALUE_OBJECT)
      element->name = name;
    random_value(dice, arena, depth + 1, element);
    *link = element;
    link = &element->next;
    value->n++;
  }
}

static void
random_value(struct dice *dice, struct dk_arena *arena, unsigned depth, struct json *value)
{
  static const char *const fractions[] = {"-0", "0.5", "1e9", "-12.25E-7"};

  value->kind = (enum json_kind)dice_below(dice, depth < 4 ? VALUE_OBJECT + 1 : VALUE_LIST);
  if (value->kind >= VALUE_LIST)
    random_elements(dice, arena, depth, value);
  else if (value->kind == VALUE_TEXT)
    value->text = random_text(dice, arena, false);
  else if (value->kind == VALUE_NUMBER && dice_below(dice, 4) == 0)
    value->text = dk_str_of(fractions[dice_below(dice, 4)]);
  else if (value->kind == VALUE_NUMBER)
    value->text = dk_str_of(dk_arena_printf(arena, "%s%llu", dice_below(dice, 2) ? "-" : "",
                                            (unsigned long long)dice_number(dice)));
}

static void
put_value(struct dk_text *text, const struct json *value)
{
  uint64_t u;
  int64_t s;

  switch (value->kind) {
  case VALUE_NULL:
    json_put_literal(text, "null");
    return;
  case VALUE_FALSE:
    json_put_literal(text, "false");
    return;
  case VALUE_TRUE:
    json_put_literal(text, "true");
    return;
  case VALUE_NUMBER:
    if (json_uint64(value, &u))
      json_put_uint64(text, u);
    else if (json_int64(value, &s) && s != 0)
      json_put_int64(text, s);
    else
      json_put_literal(text, value->text.ptr);
    return;
  case VALUE_TEXT:
    json_put_text(text, value->text);
    return;
  case VALUE_LIST:
  case VALUE_OBJECT:
    json_open(text, value->kind == VALUE_LIST ? '[' : '{');
    for (const struct json *e = value->first; e; e = e->next) {
      if (e->name.ptr)
        json_put_name(text, e->name.ptr);
      put_value(text, e);
    }
    json_close(text, value->kind == VALUE_LIST ? ']' : '}');
  }
}

static bool
same_value(const struct json *a, const struct json *b)
{
  const struct json *x = a->first, *y = b->first;

  if (a->kind != b->kind || a->n != b->n || !same_text(a->name, b->name) ||
      !same_text(a->text, b->text))
    return false;
  for (; x && y; x = x->next, y = y->next)
    if (!same_value(x, y))
      return false;
  return !x && !y;
}

static bool
round_trips(struct dice *dice)
{
  struct dk_arena arena;
  struct dk_text text = DK_TEXT_EMPTY;
  const struct json *read = NULL;
  const char *why = "";

  dk_arena_init(&arena);
  struct json *value = dk_arena_alloc(&arena, sizeof(*value));
  random_value(dice, &arena, 0, value);
  put_value(&text, value);
  dk_status status =
    json_read(&arena, piece(dk_text_str(&text), text.length), &read, &why, NULL);
  bool same = status == DK_OK && same_value(value, read);
  if (!same)
    diag("status %d, %s, of %s", (int)status, why, dk_text_str(&text));
  dk_text_done(&text);
  dk_arena_done(&arena);
  return same;
}

static void
test_round_trips(void)
{
  struct dice dice = {1};
  unsigned n = dice_rounds(20000), i = 0;

  while (i < n && round_trips(&dice))
    i++;
  cmp_ok(i, "==", n, "random values are read as they were written");
}

/* ---- the oracle ------------------------------------------------------------------------------ */

static bool agrees(const struct json *ours, json_t *theirs);

static bool
members_agree(const struct json *ours, json_t *theirs)
{
  if (ours->n != json_object_size(theirs))
    return false;
  for (const struct json *m = ours->first; m; m = m->next) {
    json_t *other = json_object_get(theirs, m->name.ptr);
    if (!other || !agrees(m, other))
      return false;
  }
  return true;
}

static bool
elements_agree(const struct json *ours, json_t *theirs)
{
  size_t i = 0;

  if (ours->n != json_array_size(theirs))
    return false;
  for (const struct json *e = ours->first; e; e = e->next)
    if (!agrees(e, json_array_get(theirs, i++)))
      return false;
  return true;
}

static bool
agrees(const struct json *ours, json_t *theirs)
{
  switch (ours->kind) {
  case VALUE_NULL:
    return json_is_null(theirs);
  case VALUE_FALSE:
    return json_is_false(theirs);
  case VALUE_TRUE:
    return json_is_true(theirs);
  case VALUE_NUMBER:
    return json_is_real(theirs) && strtod(ours->text.ptr, NULL) == json_real_value(theirs);
  case VALUE_TEXT:
    return json_is_string(theirs) &&
           same_text(ours->text,
                     piece(json_string_value(theirs), json_string_length(theirs))) &&
           ours->text.ptr[ours->text.len] == '\0';
  case VALUE_LIST:
    return json_is_array(theirs) && elements_agree(ours, theirs);
  case VALUE_OBJECT:
    return json_is_object(theirs) && members_agree(ours, theirs);
  }
  return false;
}

/* Both accept it and read the same, or both refuse it.  A number that jansson cannot hold does
 * not count; nor does a NUL byte, which JSON forbids, and jansson takes as the end of the text. */
static bool
oracle_agrees(dk_str text, unsigned *accepted)
{
  enum { FLAGS = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL |
                 JSON_DECODE_INT_AS_REAL };
  struct dk_arena arena;
  const struct json *ours = NULL;
  const char *why = "";
  json_error_t error;
  bool alike = true;

  dk_arena_init(&arena);
  dk_status status = json_read(&arena, text, &ours, &why, NULL);
  json_t *theirs = json_loadb(text.ptr, text.len, FLAGS, &error);
  if (memchr(text.ptr, '\0', text.len))
    alike = status == DK_CORRUPT;
  else if (theirs)
    alike = status == DK_OK && agrees(ours, theirs);
  else if (json_error_code(&error) != json_error_numeric_overflow)
    alike = status == DK_CORRUPT;
  if (!alike)
    diag("ours: %d %s; jansson: %s; of %zu bytes: %.*s", (int)status, why,
         theirs ? "accepted" : error.text, text.len, (int)text.len, text.ptr);
  *accepted += status == DK_OK;
  json_decref(theirs);
  dk_arena_done(&arena);
  return alike;
}

static const char *const scraps[] = {"{", "}", "[", "]", ",", ":", "\"", "\\", "\"a\"", "\"b\":",
                                     "0", "1", "-", ".", "e", "E+", "null", "true", "false", " ",
                                     "\n", "\\u", "\\ud83d", "\\ude00", "00e9", "\\n", "\xc3",
                                     "\xa9", "\xff", "\x01", "x"};
enum { N_SCRAPS = sizeof(scraps) / sizeof(scraps[0]) };

/* A text of scraps of JSON, or a whole one, damaged in a few places or not at all. */
static void
random_scraps(struct dice *dice, struct dk_text *text)
{
  size_t n = dice_below(dice, 12);

  for (size_t i = 0; i < n; i++)
    dk_text_puts(text, scraps[dice_below(dice, N_SCRAPS)]);
}

static void
damage(struct dice *dice, struct dk_text *text)
{
  struct dk_text damaged = DK_TEXT_EMPTY;
  size_t at = dice_below(dice, text->length + 1), from = at;

  dk_text_add(&damaged, dk_text_str(text), at);
  switch (dice_below(dice, 4)) {
  case 0: /* cut off */
    from = text->length;
    break;
  case 1: /* some bytes are left out */
    from += dice_below(dice, text->length - at + 1) % 4;
    break;
  case 2: /* something is inserted */
    dk_text_puts(&damaged, scraps[dice_below(dice, N_SCRAPS)]);
    break;
  default: { /* one byte is another */
    char byte = (char)dice_roll(dice);
    dk_text_add(&damaged, &byte, 1);
    from += at < text->length;
  }
  }
  dk_text_add(&damaged, dk_text_str(text) + from, text->length - from);
  dk_text_done(text);
  *text = damaged;
}

static void
random_document(struct dice *dice, struct dk_text *text)
{
  struct dk_arena arena;
  struct json value = {.kind = VALUE_NULL};

  if (dice_below(dice, 3) == 0) {
    random_scraps(dice, text);
    return;
  }
  dk_arena_init(&arena);
  random_value(dice, &arena, 1, &value);
  put_value(text, &value);
  dk_arena_done(&arena);
  for (size_t n = dice_below(dice, 3); n > 0; n--)
    damage(dice, text);
}

/* A copy of exactly the bytes, so that Valgrind and ASan see a read beyond them. */
static bool
judge_alone(const struct dk_text *text, unsigned *accepted)
{
  char *alone = malloc(text->length + (text->length == 0));

  if (!alone)
    BAIL_OUT("out of memory");
  memcpy(alone, dk_text_str(text), text->length);
  bool alike = oracle_agrees(piece(alone, text->length), accepted);
  free(alone);
  return alike;
}

static void
test_oracle(void)
{
  struct dice dice = {2};
  unsigned n = dice_rounds(200000), i, accepted = 0;

  for (i = 0; i < n; i++) {
    struct dk_text text = DK_TEXT_EMPTY;
    random_document(&dice, &text);
    bool alike = judge_alone(&text, &accepted);
    dk_text_done(&text);
    if (!alike)
      break;
  }
  cmp_ok(i, "==", n, "jansson says the same of random and damaged texts");
  note("%u of %u were JSON", accepted, n);
  cmp_ok(accepted, ">", n / 10, "many of which are JSON");
  cmp_ok(accepted, "<", n / 10 * 9, "and many of which are not");
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* With any amount of memory, the answer is right, or no memory. */
static void
test_memory(const char *text, dk_status right)
{
  static _Alignas(16) char region[8192];
  unsigned wrong = 0, without = 0;
  dk_status status = DK_NO_MEMORY;

  for (size_t size = 0; size < sizeof(region); size += 16) {
    struct dk_arena arena;
    const struct json *value = NULL;
    const char *why = NULL;
    dk_arena_init_fixed(&arena, region, size);
    status = json_read(&arena, dk_str_of(text), &value, &why, NULL);
    without += status == DK_NO_MEMORY;
    wrong += status != right && status != DK_NO_MEMORY;
    wrong += status == DK_CORRUPT && !why;
  }
  cmp_ok(wrong, "==", 0, "no memory is never taken for damage: %s", text);
  cmp_ok(without, ">", 0, "with little memory there is no result");
  cmp_ok(status, "==", right, "and in enough there is");
}

/* The texts stay valid when the nodes are freed. */
static void
test_rewind(void)
{
  struct dk_arena arena;
  struct dk_arena_mark nodes;
  const struct json *value = NULL;
  const char *why;

  dk_arena_init(&arena);
  json_read(&arena, dk_str_of("[\"k\\u0065pt\"]"), &value, &why, &nodes);
  dk_str text = value->first->text;
  dk_arena_rewind(&arena, nodes);
  memset(dk_arena_alloc(&arena, 256), 'x', 256);
  is(text.ptr, "kept", "a text outlives its node");
  dk_arena_done(&arena);
}

int
main(void)
{
  plan(NO_PLAN);
  test_samples();
  test_depth();
  test_numbers();
  test_round_trips();
  test_oracle();
  test_memory("{\"a\":[1,\"two\",{\"b\":null}],\"c\":\"\\u00e9\"}", DK_OK);
  test_memory("{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,"
              "\"j\":10,\"k\":11,\"l\":12,\"m\":13,\"n\":14,\"o\":15,\"p\":16,\"q\":17}",
              DK_OK);
  test_memory("{\"a\":[1,\"two\",{\"b\":nul}]}", DK_CORRUPT);
  test_rewind();
  return exit_status();
}
