/* SPDX-License-Identifier: Apache-2.0 */
/* Base64, for texts that are not UTF-8.  Owns nothing. */
#include "core/runtime/format/codec.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Up to three bytes as four digits, the missing ones as '='. */
static void
encode_group(struct dk_text *text, const char *bytes, size_t n)
{
  uint32_t bits = 0;
  char group[4];

  for (size_t i = 0; i < 3; i++)
    bits = bits << 8 | (i < n ? (unsigned char)bytes[i] : 0);
  for (size_t i = 0; i < 4; i++)
    group[i] = i <= n ? digits[bits >> (18 - 6 * i) & 63] : '=';
  dk_text_add(text, group, sizeof(group));
}

void
base64_encode(struct dk_text *text, dk_str bytes)
{
  for (size_t i = 0; i < bytes.len; i += 3)
    encode_group(text, bytes.ptr + i, bytes.len - i < 3 ? bytes.len - i : 3);
}

static int
digit_value(char c)
{
  const char *found = c ? strchr(digits, c) : NULL;

  return found ? (int)(found - digits) : -1;
}

/* Decodes four digits into up to three bytes; returns how many, or 0 if the digits are invalid.
 * Unused bits must be zero, so that the same bytes always have the same text. */
static size_t
decode_group(const char *group, char *bytes)
{
  size_t n = group[3] != '=' ? 3 : group[2] != '=' ? 2 : 1;
  uint32_t bits = 0;

  for (size_t i = 0; i < 4; i++) {
    int value = i <= n ? digit_value(group[i]) : 0;
    if (value < 0)
      return 0;
    bits = bits << 6 | (uint32_t)value;
  }
  if (bits & ((UINT32_C(1) << (24 - 8 * n)) - 1))
    return 0;
  for (size_t i = 0; i < n; i++)
    bytes[i] = (char)(bits >> (16 - 8 * i) & 0xff);
  return n;
}

ptrdiff_t
base64_decode(char *bytes, size_t size)
{
  size_t length = 0;

  if (size % 4 != 0)
    return -1;
  for (size_t i = 0; i < size; i += 4) {
    char group[3];
    size_t n = decode_group(bytes + i, group);
    if (n == 0 || (n < 3 && i + 4 < size))
      return -1;
    memcpy(bytes + length, group, n);
    length += n;
  }
  return (ptrdiff_t)length;
}
