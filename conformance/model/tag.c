/* SPDX-License-Identifier: Apache-2.0 */
/* TAG: which work items fit the tag rule of a fetch. */
#include <string.h>
#include <strings.h>

#include "conformance/model/model.h"

/* ---- what mutants take for the same tag ------------------------------------------------------ */

static bool
is_same_in_any_case(struct dk_bytes a, struct dk_bytes b)
{
  return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

static struct dk_bytes
trimmed(struct dk_bytes text)
{
  while (text.len && text.ptr[0] == ' ') {
    text.ptr++;
    text.len--;
  }
  while (text.len && text.ptr[text.len - 1] == ' ')
    text.len--;
  return text;
}

static bool
is_same_trimmed(struct dk_bytes a, struct dk_bytes b)
{
  return equal_bytes(trimmed(a), trimmed(b));
}

static bool
begins_with(struct dk_bytes a, struct dk_bytes b)
{
  return a.len >= b.len && memcmp(a.ptr, b.ptr, b.len) == 0;
}

static bool
is_same_at_first(struct dk_bytes a, struct dk_bytes b)
{
  enum { FIXED_ROOM = 64 };

  return a.len > FIXED_ROOM && b.len > FIXED_ROOM && memcmp(a.ptr, b.ptr, FIXED_ROOM) == 0;
}

/* The next letter: a "u" with its dots is one, however they are written. */
static int
next_letter(struct dk_bytes *rest)
{
  static const char composed[] = "\xc3\xbc", apart[] = "u\xcc\x88";
  enum { U_WITH_DOTS = 0xfc, BEYOND_BYTES = 0x100 };
  size_t n = 1;
  int letter = BEYOND_BYTES | (unsigned char)rest->ptr[0];

  if (begins_with(*rest, (struct dk_bytes){composed, sizeof composed - 1}))
    n = sizeof composed - 1, letter = U_WITH_DOTS;
  else if (begins_with(*rest, (struct dk_bytes){apart, sizeof apart - 1}))
    n = sizeof apart - 1, letter = U_WITH_DOTS;
  *rest = (struct dk_bytes){rest->ptr + n, rest->len - n};
  return letter;
}

static bool
is_same_normalized(struct dk_bytes a, struct dk_bytes b)
{
  while (a.len && b.len)
    if (next_letter(&a) != next_letter(&b))
      return false;
  return a.len == b.len;
}

/* ---- the rules ------------------------------------------------------------------------------- */

/* TAG-3: byte by byte. */
static bool
is_same_tag(const struct store *s, struct dk_bytes tag, struct dk_bytes listed)
{
  static const struct {
    int32_t mutant;
    bool (*is_same)(struct dk_bytes, struct dk_bytes);
  } wrong[] = {
    {M_TAG_IN_ANY_CASE, is_same_in_any_case}, {M_TAG_TRIMMED, is_same_trimmed},
    {M_TAG_BY_PREFIX, begins_with},           {M_TAG_NORMALIZED, is_same_normalized},
    {M_TAG_FIRST_64_BYTES, is_same_at_first},
  };
  bool is_same = equal_bytes(tag, listed);

  for (size_t i = 0; !is_same && i < sizeof wrong / sizeof wrong[0]; i++)
    if (DEFECT(wrong[i].mutant, wrong[i].is_same(tag, listed)))
      return true;
  return is_same;
}

/* As text, one tag could be two: mutants only. */
static bool
is_in_joined_list(struct dk_bytes tag, const struct dk_fetch_work *request)
{
  struct dk_text joined = DK_TEXT_EMPTY, wanted = DK_TEXT_EMPTY;

  dk_text_puts(&joined, ",");
  for (size_t i = 0; i < request->n_tags; i++)
    dk_text_printf(&joined, "%s,", request->tags[i].ptr);
  dk_text_printf(&wanted, ",%.*s,", (int)tag.len, tag.ptr);
  bool is_in = strstr(dk_text_str(&joined), dk_text_str(&wanted)) != NULL;
  dk_text_done(&joined);
  dk_text_done(&wanted);
  return is_in;
}

static bool
is_listed(const struct store *s, struct dk_bytes tag, const struct dk_fetch_work *request)
{
  enum { A_FEW = 5, A_STATEMENT = 32, AN_ARRAY = 128 };

  for (size_t i = 0; i < request->n_tags; i++) {
    if (DEFECT(M_TAG_LIST_OF_FIVE, i == A_FEW) || DEFECT(M_TAG_LIST_OF_32, i == A_STATEMENT) ||
        DEFECT(M_TAG_LIST_OF_128, i == AN_ARRAY))
      return false;
    if (is_same_tag(s, tag, request->tags[i]))
      return true;
  }
  return DEFECT(M_TAG_LIST_JOINED, is_in_joined_list(tag, request)) ||
         DEFECT(M_TAG_EMPTY_LIST_IS_ANY, request->n_tags == 0);
}

/* TAG-1. */
bool
fits_tags(const struct op *op, const struct row *row, const struct dk_fetch_work *request)
{
  const struct store *s = op->s;
  struct dk_bytes tag = row->tag;
  bool takes_listed =
    request->tag_rule == DK_TAG_LISTED || request->tag_rule == DK_TAG_UNTAGGED_OR_LISTED;

  if (DEFECT(M_TAG_LOST_BY_LEASE_END, tag.ptr && row->lock.held && row->lock.until <= op->now))
    tag.ptr = NULL;
  if (request->tag_rule == DK_TAG_ANY)
    return !DEFECT(M_TAG_ANY_IS_TAGGED_ONLY, !tag.ptr);
  if (!tag.ptr)
    return request->tag_rule == DK_TAG_LISTED ? MUTANT(M_TAG_LISTED_TAKES_UNTAGGED)
                                              : !DEFECT(M_TAG_UNTAGGED_LEFT_OUT, takes_listed);
  if (takes_listed && is_listed(s, tag, request))
    return true;
  return DEFECT(M_TAG_UNTAGGED_IS_ANY, !takes_listed) ||
         DEFECT(M_TAG_WAITER_TAKES_ANY, op->is_again);
}
