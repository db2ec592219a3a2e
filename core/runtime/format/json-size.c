/* SPDX-License-Identifier: Apache-2.0 */
/* The size of a text in a payload: see json-size.h. */
#include "core/runtime/format/json-size.h"

#include "core/base/utf8.h"

enum { ESCAPED = 6, QUOTES = 2, NAME = 16 };

/* At most the size of "\u001f" for a byte that may be escaped. */
static uint64_t
room_of_byte(unsigned char byte)
{
  return byte < 0x20 || byte == '"' || byte == '\\' || byte == '/' || byte == 0x7f ? ESCAPED : 1;
}

static uint64_t
room_of_base64(size_t size)
{
  return ((uint64_t)size + 2) / 3 * 4;
}

uint64_t
json_size(dk_str text)
{
  uint64_t room = QUOTES + NAME;

  if (!dk_utf8_valid(text.ptr, text.len))
    return room + room_of_base64(text.len);
  for (size_t i = 0; i < text.len; i++)
    room += room_of_byte((unsigned char)text.ptr[i]);
  return room;
}

size_t
json_fitting(dk_str text, uint64_t max)
{
  uint64_t room = QUOTES + NAME;
  size_t fits = 0;

  while (fits < text.len) {
    size_t size = dk_utf8_next(text.ptr + fits, text.len - fits, NULL);
    room += size == 1 ? room_of_byte((unsigned char)text.ptr[fits]) : size == 0 ? ESCAPED : size;
    if (room > max)
      break;
    fits += size == 0 ? 1 : size;
  }
  return fits;
}
