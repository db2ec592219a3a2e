/* SPDX-License-Identifier: Apache-2.0 */
/* What both plugins read from texts: see text.h. */
#include "providers/shared/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *
setting_value(const struct dk_open *open, const char *key)
{
  for (size_t i = 0; i < open->n_settings; i++)
    if (strcmp(open->settings[i].key, key) == 0 && open->settings[i].value.ptr)
      return open->settings[i].value.ptr;
  return NULL;
}

bool
text_is_duration(const char *text, int64_t *ret_ms)
{
  static const struct {
    const char *name;
    int64_t ms;
  } units[] = {{"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
  char *rest;

  errno = 0;
  long long number = strtoll(text, &rest, 10);
  if (rest == text || errno != 0 || number < 0)
    return false;
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
    if (strcmp(rest, units[i].name) == 0)
      return !__builtin_mul_overflow(number, units[i].ms, ret_ms);
  return false;
}

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

/* How many bytes the character takes that begins here; 0: it is none of UTF-8. */
static size_t
length_of_character(const unsigned char *at, size_t left)
{
  static const struct {
    unsigned char mask, lead;
    size_t length;
    uint32_t least;
  } forms[] = {
    {0x80, 0, 1, 1}, {0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};

  for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++) {
    size_t length = forms[form].length;
    uint32_t code = at[0] & (unsigned char)~forms[form].mask;
    if ((at[0] & forms[form].mask) != forms[form].lead)
      continue;
    if (length > left)
      return 0;
    for (size_t i = 1; i < length; i++) {
      if ((at[i] & 0xc0) != 0x80)
        return 0;
      code = code << 6 | (at[i] & 0x3fu);
    }
    bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < forms[form].least || code > 0x10ffff || is_surrogate ? 0 : length;
  }
  return 0;
}

bool
text_is_utf8(const char *text, size_t length)
{
  const unsigned char *at = (const unsigned char *)text;
  size_t character;

  for (size_t i = 0; i < length; i += character) {
    character = length_of_character(at + i, length - i);
    if (character == 0)
      return false;
  }
  return true;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

bool
token_take_number(struct dk_bytes *text, int64_t *ret_number)
{
  static const char digits[] = "0123456789abcdef";
  uint64_t number = 0;
  size_t i = 0;

  for (; i < text->len && i < 16; i++) {
    const char *digit = memchr(digits, text->ptr[i], 16);
    if (!digit || (i == 0 && digit == digits))
      break;
    number = number << 4 | (uint64_t)(digit - digits);
  }
  if (i == 0 || number > INT64_MAX)
    return false;
  *ret_number = (int64_t)number;
  *text = (struct dk_bytes){text->ptr + i, text->len - i};
  return true;
}

bool
token_take_letter(struct dk_bytes *text, char letter)
{
  if (text->len == 0 || text->ptr[0] != letter)
    return false;
  *text = (struct dk_bytes){text->ptr + 1, text->len - 1};
  return true;
}
