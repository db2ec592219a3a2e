/* SPDX-License-Identifier: Apache-2.0 */
/* Text: see text.h.  Owns the bytes of each text, from malloc. */
#include "core/base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"

enum { SMALLEST_TEXT = 64 };

/* Grows the text by `more` bytes and a NUL, or marks it as failed. */
static bool
text_make_room(struct dk_text *text, size_t more)
{
  if (text->failed)
    return false;
  if (more < text->capacity - text->length)
    return true;

  size_t capacity = text->capacity < SMALLEST_TEXT ? SMALLEST_TEXT : text->capacity;
  char *bytes = NULL;
  if (more < (size_t)PTRDIFF_MAX - text->length) {
    while (capacity <= text->length + more)
      capacity = capacity > (size_t)PTRDIFF_MAX / 2 ? (size_t)PTRDIFF_MAX : capacity * 2;
    bytes = realloc(text->bytes, capacity);
  }
  if (!bytes) {
    text->failed = true;
    return false;
  }
  text->bytes = bytes;
  text->capacity = capacity;
  return true;
}

void
dk_text_init(struct dk_text *text)
{
  *text = (struct dk_text)DK_TEXT_EMPTY;
}

void
dk_text_done(struct dk_text *text)
{
  if (!text)
    return;
  free(text->bytes);
  dk_text_init(text);
}

void
dk_text_reset(struct dk_text *text)
{
  text->length = 0;
  text->failed = false;
  if (text->bytes)
    text->bytes[0] = '\0';
}

void
dk_text_add(struct dk_text *text, const void *bytes, size_t size)
{
  if (!text_make_room(text, size))
    return;
  if (size > 0)
    memcpy(text->bytes + text->length, bytes, size);
  text->length += size;
  text->bytes[text->length] = '\0';
}

void
dk_text_puts(struct dk_text *text, const char *string)
{
  dk_text_add(text, string, strlen(string));
}

void
dk_text_vprintf(struct dk_text *text, const char *format, va_list args)
{
  va_list again;

  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  if (length < 0) {
    text->failed = true;
  } else if (text_make_room(text, (size_t)length)) {
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
    text->length += (size_t)length;
  }
  va_end(again);
}

void
dk_text_printf(struct dk_text *text, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  dk_text_vprintf(text, format, args);
  va_end(args);
}

/* The short escape of a character, if it has one for this kind of reader; else NULL. */
static const char *
short_escape(char c, enum dk_escape how)
{
  switch (c) {
  case '\n':
    return "\\n";
  case '\t':
    return "\\t";
  case '\\':
    return how == DK_ESCAPE_VISIBLE ? NULL : "\\\\";
  case '"':
    return how == DK_ESCAPE_YAML ? "\\\"" : NULL;
  case '#':
    return how == DK_ESCAPE_TAP ? "\\#" : NULL;
  default:
    return NULL;
  }
}

/* TAP::Harness takes a list item for a map if its first word ends in a colon and a space follows,
 * quoted or not, and drops the rest of the stream when that does not parse.  It decodes the stream,
 * so that a space may also be one of those beyond ASCII: there any character counts as one. */
static bool
colon_looks_like_key(const char *bytes, size_t size)
{
  return bytes[0] == ':' && size > 1 && (bytes[1] == ' ' || (unsigned char)bytes[1] >= 0x80);
}

static void
add_hex(struct dk_text *text, const char *bytes, size_t size)
{
  for (size_t i = 0; i < size; i++)
    dk_text_printf(text, "\\x%02x", (unsigned)(unsigned char)bytes[i]);
}

/* Adds the first character, or the first byte if it does not begin a valid character; returns the
 * number of bytes read. */
static size_t
add_one_escaped(struct dk_text *text, const char *bytes, size_t size, enum dk_escape how)
{
  uint32_t character;
  size_t length = dk_utf8_next(bytes, size, &character);
  const char *escape = short_escape(bytes[0], how);

  if (escape)
    dk_text_puts(text, escape);
  else if (length == 0 || !dk_utf8_printable(character))
    add_hex(text, bytes, length == 0 ? 1 : length);
  else if (how == DK_ESCAPE_YAML && colon_looks_like_key(bytes, size))
    add_hex(text, bytes, 1);
  else
    dk_text_add(text, bytes, length);
  return length == 0 ? 1 : length;
}

void
dk_text_add_escaped(struct dk_text *text, const void *bytes, size_t size, enum dk_escape how)
{
  const char *at = bytes;

  while (size > 0 && !text->failed) {
    size_t taken = add_one_escaped(text, at, size, how);
    at += taken;
    size -= taken;
  }
}

void
dk_text_add_text(struct dk_text *text, const struct dk_text *piece)
{
  dk_text_add(text, dk_text_str(piece), piece->length);
  if (piece->failed)
    dk_text_fail(text);
}

void
dk_text_fail(struct dk_text *text)
{
  text->failed = true;
}

const char *
dk_text_str(const struct dk_text *text)
{
  return text->bytes ? text->bytes : "";
}

bool
dk_text_failed(const struct dk_text *text)
{
  return text->failed;
}
