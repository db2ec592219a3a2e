/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of utf8.h: the edges of each form, and what must not pass. */
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/base/utf8.h"

struct sample {
  const char *what;
  const char *bytes;
  uint32_t character; /* of a valid sample */
};

static const struct sample valid[] = {
  {"U+0001", "\x01", 0x01},
  {"U+007F, the last of one byte", "\x7f", 0x7f},
  {"U+0080, the first of two", "\xc2\x80", 0x80},
  {"U+07FF, the last of two", "\xdf\xbf", 0x7ff},
  {"U+0800, the first of three", "\xe0\xa0\x80", 0x800},
  {"U+D7FF, before the surrogates", "\xed\x9f\xbf", 0xd7ff},
  {"U+E000, behind the surrogates", "\xee\x80\x80", 0xe000},
  {"U+FFFF, the last of three", "\xef\xbf\xbf", 0xffff},
  {"U+10000, the first of four", "\xf0\x90\x80\x80", 0x10000},
  {"U+10FFFF, the last of all", "\xf4\x8f\xbf\xbf", 0x10ffff},
};

static const struct sample invalid[] = {
  {"a lone following byte", "\x80", 0},
  {"another lone following byte", "\xbf", 0},
  {"NUL in two bytes", "\xc0\x80", 0},
  {"U+007F in two bytes", "\xc1\xbf", 0},
  {"U+07FF in three bytes", "\xe0\x9f\xbf", 0},
  {"U+FFFF in four bytes", "\xf0\x8f\xbf\xbf", 0},
  {"the first surrogate", "\xed\xa0\x80", 0},
  {"the last surrogate", "\xed\xbf\xbf", 0},
  {"U+110000", "\xf4\x90\x80\x80", 0},
  {"a form of five bytes", "\xf8\x88\x80\x80\x80", 0},
  {"FE", "\xfe", 0},
  {"FF", "\xff", 0},
  {"two bytes, one is there", "\xc3", 0},
  {"three bytes, two are there", "\xe2\x82", 0},
  {"four bytes, three are there", "\xf0\x9f\x98", 0},
  {"a second byte that begins a character", "\xc3\xc3", 0},
  {"a third byte of ASCII", "\xe2\x82x", 0},
  {"a good start and a bad end", "abc\xff", 0},
  {"a bad start and a good end", "\xff" "abc", 0},
};

enum { VALID = sizeof(valid) / sizeof(valid[0]), INVALID = sizeof(invalid) / sizeof(invalid[0]) };

/* The bytes alone, so that Valgrind sees a read beyond them. */
static bool
is_valid_alone(const char *bytes, size_t size)
{
  char *copy = malloc(size ? size : 1);

  if (!copy)
    BAIL_OUT("out of memory");
  memcpy(copy, bytes, size);
  bool answer = dk_utf8_valid(copy, size);
  free(copy);
  return answer;
}

static void
characters(void)
{
  for (size_t i = 0; i < VALID; i++) {
    uint32_t found = 0xdeadbeef;
    size_t size = strlen(valid[i].bytes);
    cmp_ok(dk_utf8_next(valid[i].bytes, size, &found), "==", size, "length of %s", valid[i].what);
    cmp_ok(found, "==", valid[i].character, "character of %s", valid[i].what);
    ok(is_valid_alone(valid[i].bytes, size), "valid: %s", valid[i].what);
  }
  for (size_t i = 0; i < INVALID; i++)
    ok(!is_valid_alone(invalid[i].bytes, strlen(invalid[i].bytes)), "invalid: %s", invalid[i].what);

  uint32_t kept = 42;
  cmp_ok(dk_utf8_next("\xff", 1, &kept), "==", 0, "what is no character has length 0");
  cmp_ok(kept, "==", 42, "and writes none");
  cmp_ok(dk_utf8_next("x", 0, NULL), "==", 0, "nothing has length 0");
  cmp_ok(dk_utf8_next("x\xff", 2, NULL), "==", 1, "only the first character counts");
  ok(is_valid_alone("", 0), "nothing is valid");
  ok(is_valid_alone("a\0b", 3), "a NUL is valid");
  ok(is_valid_alone("gr\xc3\xb6\xc3\x9f" "er \xe2\x82\xac \xf0\x9f\x98\x80", 17), "a mixed text");
}

/* Each of the 1,114,112 code points, encoded by another way, is valid but for the surrogates. */
static void
every_character(void)
{
  unsigned wrong = 0;

  for (uint32_t c = 0; c <= 0x10ffff; c++) {
    char b[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    uint32_t found = 0;
    for (size_t i = n - 1; i > 0; i--)
      b[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
    b[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xf0) | c >> 6 * (n - 1));
    bool surrogate = c >= 0xd800 && c <= 0xdfff;
    size_t length = dk_utf8_next(b, n, &found);
    if (surrogate ? length != 0 : length != n || found != c)
      wrong++;
  }
  cmp_ok(wrong, "==", 0, "every character is read back, no surrogate is");
}

static void
printing(void)
{
  static const uint32_t prints[] = {' ', '~', 0xa0, 0xe9, 0x200d, 0x2027, 0x202f, 0x2065,
                                    0x206a, 0x20ac, 0xe000, 0xfdcf, 0xfdf0, 0xfefe, 0xfffd,
                                    0x1f600, 0x10fffd};
  static const uint32_t does_not[] = {0, '\t', '\n', 0x1f, 0x7f, 0x80, 0x85, 0x9f, 0x200e, 0x200f,
                                      0x2028, 0x2029, 0x202a, 0x202e, 0x2066, 0x2069, 0xfdd0,
                                      0xfdef, 0xfeff, 0xfffe, 0xffff, 0x1fffe, 0x10ffff};

  for (size_t i = 0; i < sizeof(prints) / sizeof(prints[0]); i++)
    ok(dk_utf8_printable(prints[i]), "U+%04X prints", (unsigned)prints[i]);
  for (size_t i = 0; i < sizeof(does_not) / sizeof(does_not[0]); i++)
    ok(!dk_utf8_printable(does_not[i]), "U+%04X does not print", (unsigned)does_not[i]);
}

static void
ids(void)
{
  ok(dk_text_id_valid("a", 1, 1), "an id of one byte, one allowed");
  ok(!dk_text_id_valid("", 0, 8), "an empty id");
  ok(dk_text_id_valid("12345678", 8, 8), "an id as long as allowed");
  ok(!dk_text_id_valid("123456789", 9, 8), "an id one byte longer");
  ok(!dk_text_id_valid("a\0b", 3, 8), "an id with a NUL inside");
  ok(!dk_text_id_valid("ab\0", 3, 8), "an id with a NUL at its end");
  ok(!dk_text_id_valid("a\xff", 2, 8), "an id that is not UTF-8");
  ok(dk_text_id_valid("\xc3\xa9", 2, 2), "bytes count, not characters: two of two");
  ok(!dk_text_id_valid("\xc3\xa9", 2, 1), "bytes count, not characters: two of one");
  ok(dk_text_id_valid("a b/\n", 5, 8), "white space and control characters may be in an id");
}

int
main(void)
{
  plan(NO_PLAN);
  characters();
  every_character();
  printing();
  ids();
  return exit_status();
}
