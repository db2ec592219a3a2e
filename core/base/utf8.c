/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, strictly: see utf8.h.  Owns nothing. */
#include "core/base/utf8.h"

#include <string.h>

/* What the first byte determines: how many bytes follow, its own bits, and the smallest character
 * that may have that length. */
struct form {
  unsigned char mask;
  unsigned char lead;
  unsigned char following;
  uint32_t smallest;
};

static const struct form forms[] = {
  {0x80, 0x00, 0, 0x0},
  {0xe0, 0xc0, 1, 0x80},
  {0xf0, 0xe0, 2, 0x800},
  {0xf8, 0xf0, 3, 0x10000},
};

static const struct form *
form_of(unsigned char first)
{
  for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
    if ((first & forms[i].mask) == forms[i].lead)
      return &forms[i];
  return NULL;
}

static bool
is_surrogate(uint32_t character)
{
  return character >= 0xd800 && character <= 0xdfff;
}

size_t
dk_utf8_next(const char *bytes, size_t size, uint32_t *ret_character)
{
  if (size == 0)
    return 0;

  const unsigned char *at = (const unsigned char *)bytes;
  const struct form *form = form_of(at[0]);
  if (!form || size <= form->following)
    return 0;

  uint32_t character = at[0] & (uint32_t)(unsigned char)~form->mask;
  for (size_t i = 1; i <= form->following; i++) {
    if ((at[i] & 0xc0) != 0x80)
      return 0;
    character = character << 6 | (at[i] & 0x3f);
  }
  if (character < form->smallest || character > 0x10ffff || is_surrogate(character))
    return 0;

  if (ret_character)
    *ret_character = character;
  return form->following + (size_t)1;
}

bool
dk_utf8_valid(const char *bytes, size_t size)
{
  while (size > 0) {
    size_t length = dk_utf8_next(bytes, size, NULL);
    if (length == 0)
      return false;
    bytes += length;
    size -= length;
  }
  return true;
}

struct range {
  uint32_t first;
  uint32_t last;
};

/* In addition to the characters that end in FFFE and FFFF in each plane.  A YAML reader refuses
 * most of these or takes them for an end of line; the others could make a text display something
 * else than it contains. */
static const struct range does_not_print[] = {
  {0x0000, 0x001f}, /* control characters */
  {0x007f, 0x009f}, /* delete and the second set of control characters */
  {0x200e, 0x200f}, /* direction marks */
  {0x2028, 0x202e}, /* line and paragraph separator, embedding and override of direction */
  {0x2066, 0x2069}, /* isolation of direction */
  {0xfdd0, 0xfdef}, /* never a character */
  {0xfeff, 0xfeff}, /* byte order mark */
};

bool
dk_utf8_printable(uint32_t character)
{
  for (size_t i = 0; i < sizeof(does_not_print) / sizeof(does_not_print[0]); i++)
    if (character >= does_not_print[i].first && character <= does_not_print[i].last)
      return false;
  return (character & 0xfffe) != 0xfffe;
}

bool
dk_text_id_valid(const char *bytes, size_t size, size_t max)
{
  return size >= 1 && size <= max && !memchr(bytes, '\0', size) && dk_utf8_valid(bytes, size);
}
