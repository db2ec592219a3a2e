/* SPDX-License-Identifier: Apache-2.0 */
/* JSON: see json.h.  The reader copies the document once and unescapes its texts in place: an
 * unescaped text is never longer, and the place of the closing quote takes the NUL. */
#include "core/runtime/format/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "core/base/utf8.h"

/* A document that is being read.  The first error is kept in status and why. */
struct reader {
  struct dk_arena *arena;
  char *begin, *at, *end;
  unsigned depth;
  dk_status status;
  const char *why;
};

/* ---- what is wrong --------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool
refuse(struct reader *r, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  const char *what = dk_arena_vprintf(r->arena, format, args);
  va_end(args);
  r->why = what ? dk_arena_printf(r->arena, "byte %zu: %s", (size_t)(r->at - r->begin), what)
                : NULL;
  r->status = r->why ? DK_CORRUPT : DK_NO_MEMORY;
  return false;
}

static bool
json_no_memory(struct reader *r)
{
  r->status = DK_NO_MEMORY;
  return false;
}

/* Reports what was found instead. */
static bool
refuse_expected(struct reader *r, const char *expected)
{
  if (r->at == r->end)
    return refuse(r, "the text ends where %s is expected", expected);
  unsigned char c = (unsigned char)*r->at;
  if (c > 0x20 && c < 0x7f)
    return refuse(r, "'%c' where %s is expected", c, expected);
  return refuse(r, "byte 0x%02x where %s is expected", c, expected);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static int
hex_digit(char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  c = (char)(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* After "\u". */
static bool
read_unit(struct reader *r, uint32_t *ret_unit)
{
  uint32_t unit = 0;

  for (int i = 0; i < 4; i++, r->at++) {
    int digit = r->at < r->end ? hex_digit(*r->at) : -1;
    if (digit < 0)
      return refuse_expected(r, "a hexadecimal digit");
    unit = unit << 4 | (uint32_t)digit;
  }
  *ret_unit = unit;
  return true;
}

static char *
put_utf8(char *to, uint32_t c)
{
  if (c < 0x80) {
    *to++ = (char)c;
  } else if (c < 0x800) {
    *to++ = (char)(0xc0 | c >> 6);
    *to++ = (char)(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    *to++ = (char)(0xe0 | c >> 12);
    *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    *to++ = (char)(0x80 | (c & 0x3f));
  } else {
    *to++ = (char)(0xf0 | c >> 18);
    *to++ = (char)(0x80 | (c >> 12 & 0x3f));
    *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    *to++ = (char)(0x80 | (c & 0x3f));
  }
  return to;
}

/* A character beyond U+FFFF is written as two units, a high one and a low one. */
static bool
read_unicode_escape(struct reader *r, char **to)
{
  uint32_t unit, low;

  if (!read_unit(r, &unit))
    return false;
  if (unit >= 0xdc00 && unit <= 0xdfff)
    return refuse(r, "a low surrogate, \\u%04x, without a high one", (unsigned)unit);
  if (unit >= 0xd800 && unit <= 0xdbff) {
    if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
      return refuse(r, "a high surrogate, \\u%04x, without a low one", (unsigned)unit);
    r->at += 2;
    if (!read_unit(r, &low))
      return false;
    if (low < 0xdc00 || low > 0xdfff)
      return refuse(r, "a high surrogate, \\u%04x, without a low one", (unsigned)unit);
    unit = 0x10000 + ((unit - 0xd800) << 10 | (low - 0xdc00));
  }
  *to = put_utf8(*to, unit);
  return true;
}

/* After the backslash. */
static bool
read_escape(struct reader *r, char **to)
{
  static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";

  if (r->at == r->end)
    return refuse_expected(r, "an escape");
  if (*r->at == 'u') {
    r->at++;
    return read_unicode_escape(r, to);
  }
  const char *found = *r->at ? strchr(escapes, *r->at) : NULL;
  if (!found)
    return refuse_expected(r, "one of \" \\ / b f n r t u");
  *(*to)++ = meant[found - escapes];
  r->at++;
  return true;
}

/* Characters without an escape, moved to the end of the unescaped text. */
static bool
read_plain(struct reader *r, char **to)
{
  char *from = r->at;

  while (r->at < r->end && *r->at != '"' && *r->at != '\\') {
    unsigned char c = (unsigned char)*r->at;
    if (c < 0x20)
      return refuse(r, "a control character, 0x%02x, which must be escaped", c);
    size_t length = c < 0x80 ? 1 : dk_utf8_next(r->at, (size_t)(r->end - r->at), NULL);
    if (length == 0)
      return refuse(r, "byte 0x%02x is not UTF-8", c);
    r->at += length;
  }
  size_t size = (size_t)(r->at - from);
  if (*to != from)
    memmove(*to, from, size);
  *to += size;
  return true;
}

/* From the quote on. */
static bool
read_text(struct reader *r, dk_str *ret_text)
{
  char *first = ++r->at, *to = first;

  for (;;) {
    if (!read_plain(r, &to))
      return false;
    if (r->at == r->end)
      return refuse_expected(r, "the end of a string");
    if (*r->at++ == '"')
      break;
    if (!read_escape(r, &to))
      return false;
  }
  *to = '\0';
  *ret_text = (dk_str){first, (size_t)(to - first)};
  return true;
}

/* ---- numbers and words ----------------------------------------------------------------------- */

static bool
skip_digits(struct reader *r)
{
  if (r->at == r->end || *r->at < '0' || *r->at > '9')
    return refuse_expected(r, "a digit");
  while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
    r->at++;
  return true;
}

static bool
skips(struct reader *r, const char *one_of)
{
  if (r->at == r->end || *r->at == '\0' || !strchr(one_of, *r->at))
    return false;
  r->at++;
  return true;
}

static bool
json_read_number(struct reader *r, struct json *value)
{
  const char *first = r->at;

  skips(r, "-");
  if (!skips(r, "0") && !skip_digits(r))
    return false;
  if (skips(r, ".") && !skip_digits(r))
    return false;
  if (skips(r, "eE")) {
    skips(r, "+-");
    if (!skip_digits(r))
      return false;
  }
  value->kind = VALUE_NUMBER;
  value->text = (dk_str){first, (size_t)(r->at - first)};
  return true;
}

static bool
read_word(struct reader *r, struct json *value)
{
  static const struct {
    const char *word;
    enum json_kind kind;
  } words[] = {{"null", VALUE_NULL}, {"false", VALUE_FALSE}, {"true", VALUE_TRUE}};

  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
    size_t length = strlen(words[i].word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, words[i].word, length) != 0)
      continue;
    r->at += length;
    value->kind = words[i].kind;
    return true;
  }
  return refuse_expected(r, "a value");
}

/* ---- lists and objects ----------------------------------------------------------------------- */

static void
skip_space(struct reader *r)
{
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
    r->at++;
}

static int
compare_names(const void *a, const void *b)
{
  const dk_str *x = &(*(const struct json *const *)a)->name;
  const dk_str *y = &(*(const struct json *const *)b)->name;
  int order = memcmp(x->ptr, y->ptr, x->len < y->len ? x->len : y->len);

  return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

static bool
refuse_twice(struct reader *r, const struct json *member)
{
  int length = member->name.len < 60 ? (int)member->name.len : 60;

  return refuse(r, "the name \"%.*s\" is in the object twice", length,
                member->name.ptr);
}

/* Objects with many members are sorted, so that the cost is not quadratic. */
static bool
check_many_names(struct reader *r, const struct json *object)
{
  const struct json **members = dk_arena_array(r->arena, object->n, sizeof(*members));
  size_t n = 0;

  if (!members)
    return json_no_memory(r);
  for (const struct json *m = object->first; m; m = m->next)
    members[n++] = m;
  qsort(members, n, sizeof(*members), compare_names);
  for (size_t i = 1; i < n; i++)
    if (compare_names(&members[i - 1], &members[i]) == 0)
      return refuse_twice(r, members[i]);
  return true;
}

static bool
check_names(struct reader *r, const struct json *object)
{
  enum { FEW = 16 };

  if (object->n > FEW)
    return check_many_names(r, object);
  for (const struct json *m = object->first; m; m = m->next)
    for (const struct json *other = object->first; other != m; other = other->next)
      if (m->name.len == other->name.len &&
          memcmp(m->name.ptr, other->name.ptr, m->name.len) == 0)
        return refuse_twice(r, m);
  return true;
}

static bool
read_name(struct reader *r, struct json *member)
{
  if (r->at == r->end || *r->at != '"')
    return refuse_expected(r, "a name in quotes");
  if (!read_text(r, &member->name))
    return false;
  if (memchr(member->name.ptr, '\0', member->name.len))
    return refuse(r, "a name with a NUL in it");
  skip_space(r);
  if (!skips(r, ":"))
    return refuse_expected(r, "a colon");
  skip_space(r);
  return true;
}

static bool read_value(struct reader *r, struct json *value);

/* Reads the elements between the brackets, and the closing bracket. */
static bool
read_elements(struct reader *r, struct json *value, const char *closing, const char *expected)
{
  const struct json **link = &value->first;

  skip_space(r);
  if (skips(r, closing))
    return true;
  do {
    struct json *element = dk_arena_alloc(r->arena, sizeof(*element));
    if (!element)
      return json_no_memory(r);
    skip_space(r);
    if (value->kind == VALUE_OBJECT && !read_name(r, element))
      return false;
    if (!read_value(r, element))
      return false;
    *link = element;
    link = &element->next;
    value->n++;
    skip_space(r);
  } while (skips(r, ","));
  return skips(r, closing) || refuse_expected(r, expected);
}

static bool
read_list(struct reader *r, struct json *value)
{
  value->kind = VALUE_LIST;
  return read_elements(r, value, "]", "a comma or ]");
}

static bool
read_object(struct reader *r, struct json *value)
{
  value->kind = VALUE_OBJECT;
  return read_elements(r, value, "}", "a comma or }") && check_names(r, value);
}

static bool
read_nested(struct reader *r, struct json *value)
{
  if (r->depth == JSON_DEPTH)
    return refuse(r, "more than %d nested brackets", JSON_DEPTH);
  r->depth++;
  bool done = *r->at++ == '{' ? read_object(r, value) : read_list(r, value);
  r->depth--;
  return done;
}

static bool
read_value(struct reader *r, struct json *value)
{
  if (r->at == r->end)
    return refuse_expected(r, "a value");
  switch (*r->at) {
  case '{':
  case '[':
    return read_nested(r, value);
  case '"':
    value->kind = VALUE_TEXT;
    return read_text(r, &value->text);
  case '-': case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7':
  case '8': case '9':
    return json_read_number(r, value);
  default:
    return read_word(r, value);
  }
}

/* One value, with nothing but white space around it. */
static bool
read_document(struct reader *r, struct json *value)
{
  skip_space(r);
  if (!read_value(r, value))
    return false;
  skip_space(r);
  return r->at == r->end || refuse_expected(r, "the end of the text");
}

dk_status
json_read(struct dk_arena *arena, dk_str text, const struct json **ret_value,
          const char **ret_why, struct dk_arena_mark *ret_nodes)
{
  char *copy = dk_arena_copy(arena, text.ptr, text.len);
  struct dk_arena_mark nodes = dk_arena_mark(arena);
  struct json *value = copy ? dk_arena_alloc(arena, sizeof(*value)) : NULL;

  if (!value)
    return DK_NO_MEMORY;
  struct reader r = {.arena = arena, .begin = copy, .at = copy, .end = copy + text.len};
  if (!read_document(&r, value)) {
    if (r.status == DK_CORRUPT)
      *ret_why = r.why;
    return r.status;
  }
  if (ret_nodes)
    *ret_nodes = nodes;
  *ret_value = value;
  return DK_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Digits only. */
static bool
parse_digits(dk_str digits, uint64_t *ret_number)
{
  uint64_t number = 0;

  for (size_t i = 0; i < digits.len; i++) {
    if (digits.ptr[i] < '0' || digits.ptr[i] > '9' ||
        __builtin_mul_overflow(number, UINT64_C(10), &number) ||
        __builtin_add_overflow(number, (uint64_t)(digits.ptr[i] - '0'), &number))
      return false;
  }
  *ret_number = number;
  return digits.len > 0;
}

bool
json_uint64(const struct json *value, uint64_t *ret_number)
{
  return value->kind == VALUE_NUMBER && parse_digits(value->text, ret_number);
}

bool
json_int64(const struct json *value, int64_t *ret_number)
{
  uint64_t number;
  dk_str text = value->text;

  if (value->kind != VALUE_NUMBER)
    return false;
  bool negative = text.ptr[0] == '-';
  if (!parse_digits((dk_str){text.ptr + negative, text.len - negative}, &number) ||
      number > (uint64_t)INT64_MAX + negative)
    return false;
  *ret_number = negative ? (int64_t)-number : (int64_t)number;
  return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A value or a name has a comma before it, unless it is the first inside its brackets. */
static void
put_comma(struct dk_text *text)
{
  char last = text->length > 0 ? text->bytes[text->length - 1] : '{';

  if (last != '{' && last != '[' && last != ':')
    dk_text_puts(text, ",");
}

static void
put_escape(struct dk_text *text, char c)
{
  switch (c) {
  case '"':
    dk_text_puts(text, "\\\"");
    return;
  case '\\':
    dk_text_puts(text, "\\\\");
    return;
  case '\n':
    dk_text_puts(text, "\\n");
    return;
  case '\t':
    dk_text_puts(text, "\\t");
    return;
  case '\r':
    dk_text_puts(text, "\\r");
    return;
  default:
    dk_text_printf(text, "\\u%04x", (unsigned)(unsigned char)c);
  }
}

static void
put_quoted(struct dk_text *text, dk_str value)
{
  size_t from = 0;

  dk_text_puts(text, "\"");
  for (size_t i = 0; i < value.len; i++) {
    char c = value.ptr[i];
    if ((unsigned char)c >= 0x20 && c != '"' && c != '\\')
      continue;
    dk_text_add(text, value.ptr + from, i - from);
    put_escape(text, c);
    from = i + 1;
  }
  dk_text_add(text, value.ptr + from, value.len - from);
  dk_text_puts(text, "\"");
}

void
json_put_name(struct dk_text *text, const char *name)
{
  put_comma(text);
  put_quoted(text, dk_str_of(name));
  dk_text_puts(text, ":");
}

void
json_put_text(struct dk_text *text, dk_str value)
{
  put_comma(text);
  put_quoted(text, value);
}

void
json_put_uint64(struct dk_text *text, uint64_t value)
{
  put_comma(text);
  dk_text_printf(text, "%" PRIu64, value);
}

void
json_put_int64(struct dk_text *text, int64_t value)
{
  put_comma(text);
  dk_text_printf(text, "%" PRId64, value);
}

void
json_put_literal(struct dk_text *text, const char *literal)
{
  put_comma(text);
  dk_text_puts(text, literal);
}

void
json_open(struct dk_text *text, char bracket)
{
  put_comma(text);
  dk_text_add(text, &bracket, 1);
}

void
json_close(struct dk_text *text, char bracket)
{
  dk_text_add(text, &bracket, 1);
}
