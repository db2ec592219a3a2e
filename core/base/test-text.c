/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of text.h: growing, failing, and each escape byte for byte. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "conformance/tap/tap.h"
#include "core/base/text.h"

/* A request that no machine can satisfy must be refused here as elsewhere, not end the test. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
  return "allocator_may_return_null=1";
}

static void
building(void)
{
  struct dk_text text;

  dk_text_init(&text);
  is(dk_text_str(&text), "", "a new text is an empty string");
  dk_text_puts(&text, "one");
  dk_text_add(&text, ", two!", 5);
  dk_text_printf(&text, ", %s %d", "three", 3);
  is(dk_text_str(&text), "one, two, three 3", "pieces come one behind the other");
  cmp_ok(text.length, "==", 17, "the length is known");

  dk_text_add(&text, NULL, 0);
  dk_text_puts(&text, "");
  dk_text_printf(&text, "%s", "");
  is(dk_text_str(&text), "one, two, three 3", "adding no bytes changes nothing");
  dk_text_add(&text, "\0z", 2);
  cmp_mem(dk_text_str(&text), "one, two, three 3\0z", 20, "a NUL inside is kept");

  dk_text_reset(&text);
  is(dk_text_str(&text), "", "a reset empties");
  cmp_ok(text.length, "==", 0, "to length 0");
  dk_text_puts(&text, "again");
  is(dk_text_str(&text), "again", "and the text can be used again");
  dk_text_done(&text);
  is(dk_text_str(&text), "", "so it can after its end");
  dk_text_reset(&text);
  is(dk_text_str(&text), "", "where a reset does nothing");
  dk_text_done(&text);
  dk_text_done(NULL);
  ok(!dk_text_failed(&text), "nothing of this failed");
}

/* Every way of adding, at every length around the sizes at which the memory grows. */
static void
growing(void)
{
  unsigned wrong = 0;
  char whole[300];

  memset(whole, 'w', sizeof(whole));
  for (int size = 0; size < 300; size++)
    for (size_t start = 0; start < 3; start++) {
      struct dk_text added = DK_TEXT_EMPTY, printed = DK_TEXT_EMPTY;
      dk_text_add(&added, "abc", start);
      dk_text_add(&added, whole, (size_t)size);
      dk_text_add(&printed, "abc", start);
      dk_text_printf(&printed, "%.*s", size, whole);
      wrong += added.length != start + (size_t)size || strlen(dk_text_str(&added)) != added.length;
      wrong += strcmp(dk_text_str(&added), dk_text_str(&printed)) != 0;
      dk_text_done(&added);
      dk_text_done(&printed);
    }
  cmp_ok(wrong, "==", 0, "pieces of any length arrive whole");

  struct dk_text text = DK_TEXT_EMPTY;
  for (int i = 0; i < 100000; i++)
    dk_text_puts(&text, "0123456789");
  cmp_ok(text.length, "==", 1000000, "a text of a million bytes");
  cmp_ok(strlen(dk_text_str(&text)), "==", 1000000, "ends where it should");
  dk_text_done(&text);
}

static void
fails_with(size_t size, const char *what)
{
  struct dk_text text = DK_TEXT_EMPTY;

  dk_text_puts(&text, "before");
  dk_text_add(&text, "x", size); /* refused before the first byte is read */
  ok(dk_text_failed(&text), "%s: it fails", what);
  dk_text_puts(&text, "after");
  dk_text_printf(&text, "%d", 1);
  dk_text_add_escaped(&text, "after", 5, DK_ESCAPE_TAP);
  is(dk_text_str(&text), "before", "%s: the text stops before it", what);
  ok(dk_text_failed(&text), "%s: the failure is remembered", what);
  dk_text_reset(&text);
  dk_text_puts(&text, "new");
  ok(!dk_text_failed(&text), "%s: a reset forgets it", what);
  is(dk_text_str(&text), "new", "%s: and the text can be used again", what);
  dk_text_done(&text);
}

static void
failing(void)
{
  struct dk_text text = DK_TEXT_EMPTY;

  fails_with(SIZE_MAX, "the largest size");
  fails_with(SIZE_MAX - 6, "a sum that overflows");
  fails_with((size_t)PTRDIFF_MAX - 6, "more than an address space");
  fails_with((size_t)PTRDIFF_MAX - 4096, "no memory");

  dk_text_printf(&text, "%lc", (wint_t)0x7fffffff);
  ok(dk_text_failed(&text), "a format that fails");
  dk_text_done(&text);
  ok(!dk_text_failed(&text), "is forgotten at the end");
}

struct sample {
  const char *what;
  const char *bytes;
  size_t size;
  const char *yaml, *visible, *tap;
};

#define BYTES(text) text, sizeof(text) - 1

static const struct sample samples[] = {
  {"nothing", BYTES(""), "", "", ""},
  {"plain", BYTES("plain (text) 100%"), "plain (text) 100%", "plain (text) 100%",
   "plain (text) 100%"},
  {"quotes", BYTES("a \"b\" 'c'"), "a \\\"b\\\" 'c'", "a \"b\" 'c'", "a \"b\" 'c'"},
  {"backslash", BYTES("a\\b\\"), "a\\\\b\\\\", "a\\b\\", "a\\\\b\\\\"},
  {"hash", BYTES("# TODO x"), "# TODO x", "# TODO x", "\\# TODO x"},
  {"white space", BYTES(" \t\n "), " \\t\\n ", " \\t\\n ", " \\t\\n "},
  {"control", BYTES("\r\a\x1b[1m\x7f"), "\\x0d\\x07\\x1b[1m\\x7f", "\\x0d\\x07\\x1b[1m\\x7f",
   "\\x0d\\x07\\x1b[1m\\x7f"},
  {"NUL", BYTES("a\0b"), "a\\x00b", "a\\x00b", "a\\x00b"},
  {"UTF-8", BYTES("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
   "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
  {"not UTF-8", BYTES("\xff" "a\xc3"), "\\xffa\\xc3", "\\xffa\\xc3", "\\xffa\\xc3"},
  {"overlong", BYTES("\xc0\xaf"), "\\xc0\\xaf", "\\xc0\\xaf", "\\xc0\\xaf"},
  {"cut and followed", BYTES("\xe2\x82z"), "\\xe2\\x82z", "\\xe2\\x82z", "\\xe2\\x82z"},
  {"next line", BYTES("\xc2\x85"), "\\xc2\\x85", "\\xc2\\x85", "\\xc2\\x85"},
  {"line separator", BYTES("\xe2\x80\xa8"), "\\xe2\\x80\\xa8", "\\xe2\\x80\\xa8",
   "\\xe2\\x80\\xa8"},
  {"turned direction", BYTES("\xe2\x80\xae" "a"), "\\xe2\\x80\\xaea", "\\xe2\\x80\\xaea",
   "\\xe2\\x80\\xaea"},
  {"colon and space", BYTES("a: b"), "a\\x3a b", "a: b", "a: b"},
  {"space, colon and space", BYTES("a : b: c"), "a \\x3a b\\x3a c", "a : b: c", "a : b: c"},
  {"colon and a space beyond ASCII", BYTES("a:\xc2\xa0" "b"), "a\\x3a\xc2\xa0" "b",
   "a:\xc2\xa0" "b", "a:\xc2\xa0" "b"},
  {"colon alone", BYTES("a:b:"), "a:b:", "a:b:", "a:b:"},
  {"colon and tab", BYTES("a:\tb"), "a:\\tb", "a:\\tb", "a:\\tb"},
};

static void
escape_is(const struct sample *sample, enum dk_escape how, const char *expected, const char *name)
{
  struct dk_text text = DK_TEXT_EMPTY;
  char *alone = malloc(sample->size ? sample->size : 1);

  if (!alone)
    BAIL_OUT("out of memory");
  memcpy(alone, sample->bytes, sample->size); /* so that Valgrind sees a read beyond it */
  dk_text_puts(&text, ">");
  dk_text_add_escaped(&text, alone, sample->size, how);
  is(dk_text_str(&text) + 1, expected, "%s: %s", name, sample->what);
  free(alone);
  dk_text_done(&text);
}

static void
escaping(void)
{
  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
    escape_is(&samples[i], DK_ESCAPE_YAML, samples[i].yaml, "YAML");
    escape_is(&samples[i], DK_ESCAPE_VISIBLE, samples[i].visible, "visible");
    escape_is(&samples[i], DK_ESCAPE_TAP, samples[i].tap, "TAP");
  }
}

int
main(void)
{
  plan(NO_PLAN);
  building();
  growing();
  failing();
  escaping();
  return exit_status();
}
