/* SPDX-License-Identifier: Apache-2.0 */
/* Not a test: a program that passes and fails on purpose, for tests/tap-consumers.sh.  Its argument
 * selects how; its stream is made by the same code as the streams of our tests. */
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/base/utf8.h"

static int
all_pass(void)
{
  plan(8);
  ok(1 + 1 == 2, "ok");
  is("a", "a", "is");
  is(NULL, NULL, "is, without strings");
  isnt("a", "b", "isnt");
  isnt("a", NULL, "isnt, without a string");
  cmp_ok(-1, "<", 1ul, "cmp_ok, over signs");
  cmp_mem("ab", "ac", 1, "cmp_mem");
  pass("pass, %s", "formatted");
  note("a note\nof two lines");
  diag("said on standard %s", "error");
  return exit_status();
}

static int
all_fail(void)
{
  plan(9);
  ok(1 + 1 == 3, "ok");
  is("a\n", "b", "is");
  is(NULL, "NULL", "is, without a string");
  isnt("a", "a", "isnt");
  cmp_ok(2, "<", 1, "cmp_ok");
  cmp_ok(-1, ">=", UINT64_MAX, "cmp_ok, over signs");
  cmp_mem("abc", "abd", 3, "cmp_mem");
  cmp_mem("abc", NULL, 3, "cmp_mem, without bytes");
  fail("fail");
  return exit_status();
}

static int
compares(void)
{
  static const char *const relations[] = {"==", "!=", "<", "<=", ">", ">="};
  static const char holds[] = "NYYYNN" "YNNYNY" "NYNNYY"; /* for an order of -1, 0, 1 */

  plan(18);
  for (int order = -1; order <= 1; order++)
    for (int i = 0; i < 6; i++) {
      struct tap_integer a = TAP_INTEGER(order), b = TAP_INTEGER(0);
      bool expected = holds[(order + 1) * 6 + i] == 'Y';
      todo("only the word before matters");
      bool answer = tap_program_cmp(__FILE__, __LINE__, "", a, relations[i], b, "%s", "x");
      end_todo;
      if (answer != expected)
        BAIL_OUT("%d %s 0", order, relations[i]);
    }
  return exit_status();
}

static int
expected_to_fail(void)
{
  plan(3);
  todo("issue %d", 7);
  ok(false, "a todo that fails");
  pass("a todo that passes");
  end_todo;
  pass("after the todo");
  return exit_status();
}

static int
fails_beside_todo(void)
{
  plan(2);
  todo("later");
  fail("expected");
  end_todo;
  fail("not expected");
  return exit_status();
}

static int
some_skipped(void)
{
  plan(3);
  pass("one that runs");
  skip(2, "no %s", "server");
  return exit_status();
}

static int
all_skipped(void)
{
  plan(SKIP_ALL, "no server");
  fail("never to come here");
  return exit_status();
}

static int
bails_out(void)
{
  plan(2);
  pass("one");
  bail_out("no %s", "disk");
}

static int
too_few(void)
{
  plan(2);
  pass("one");
  return exit_status();
}

static int
too_many(void)
{
  plan(1);
  pass("one");
  pass("two");
  return exit_status();
}

static int
none_at_all(void)
{
  return done_testing();
}

static int
plan_last(void)
{
  plan(NO_PLAN);
  pass("one");
  pass("two");
  return exit_status();
}

static int
plan_by_done_testing(void)
{
  pass("one");
  return done_testing();
}

static int
without_plan(void)
{
  pass("one");
  return exit_status();
}

static int
unknown_relation(void)
{
  plan(1);
  todo("so that the point itself is no failure");
  cmp_ok(1, "=", 1, "no such relation");
  return exit_status();
}

static int
three_hundred_failures(void)
{
  plan(300);
  for (int i = 0; i < 300; i++)
    ok(i < 0, "number %d", i);
  return exit_status();
}

/* ---- A stream of the producer with values that are hard to read ------------------------------ */

struct value {
  const char *key;
  const char *bytes;
};

static const struct value values[] = {
  {"plain", "plain"},
  {"empty", ""},
  {"quotes", "\"a\" 'b' \\\"c\\\" \\"},
  {"backslashes", "\\ \\\\ \\n \\x41 \\"},
  {"lines", "one\ntwo\n\n\tthree\n"},
  {"spaces", "  around  "},
  {"map", "x: y"},
  {"map_of_one", "x: "},
  {"map_with_space", "x : y"},
  {"colons", ":a:b::c :"},
  {"wide_space", "x:\xc2\xa0y"},
  {"ideographic_space", "x:\xe3\x80\x80y"},
  {"comment", "# a # b #"},
  {"dash", "- a"},
  {"flow", "{a: [b, c]}"},
  {"block", "| > & * ! % @ `"},
  {"tilde", "~"},
  {"end", "..."},
  {"begin", "---"},
  {"point", "ok 99 - forged"},
  {"bail", "\nBail out!\n"},
  {"utf", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
  {"invalid", "\xff\xfe a\xc3"},
  {"control", "\x01\x1b[31m\x7f\r"},
  {"next_line", "a\xc2\x85" "b\xe2\x80\xa8" "c\xe2\x80\xa9" "d"},
  {"byte_order", "\xef\xbb\xbf" "a\xef\xbf\xbe"},
};

enum { VALUES = sizeof(values) / sizeof(values[0]) };

/* The values as map entries and again as items; the points around them show whether a reader loses
 * its place. */
static int
hard_values(void)
{
  struct tap *tap = tap_new(stdout, tap_version_from_environment());

  if (!tap)
    return 99;
  tap_plan(tap, 3);
  tap_point(tap, true, "before # SKIP is no directive", TAP_NONE, NULL);
  tap_point(tap, true, "values", TAP_NONE, NULL);
  tap_yaml_begin(tap);
  for (size_t i = 0; i < VALUES; i++)
    tap_yaml_string(tap, values[i].key, values[i].bytes);
  tap_yaml_list_begin(tap, "list");
  for (size_t i = 0; i < VALUES; i++)
    tap_yaml_item(tap, values[i].bytes);
  tap_yaml_list_end(tap);
  tap_yaml_list_begin(tap, "no_items");
  tap_yaml_list_end(tap);
  tap_yaml_number(tap, "number", -42);
  tap_yaml_end(tap);
  tap_point(tap, true, "after", TAP_NONE, NULL);
  return tap_done(tap) == 0 ? 0 : 1;
}

/* Prints one value as a YAML reader must return it, in numbers: an escaped byte is the character
 * with that number. */
static void
print_value(const char *name, const char *bytes)
{
  size_t size = strlen(bytes);

  printf("%s", name);
  while (size > 0) {
    uint32_t character;
    size_t length = dk_utf8_next(bytes, size, &character);
    if (length == 0 || !dk_utf8_printable(character)) {
      character = (unsigned char)bytes[0];
      length = 1;
    }
    printf(" %u", (unsigned)character);
    bytes += length;
    size -= length;
  }
  printf("\n");
}

static int
expected_values(void)
{
  for (size_t i = 0; i < VALUES; i++)
    print_value(values[i].key, values[i].bytes);
  for (size_t i = 0; i < VALUES; i++)
    print_value("list", values[i].bytes);
  print_value("number", "-42");
  return 0;
}

/* Directives whose texts look like directives: each consumer must find the real one. */
static int
hard_directives(void)
{
  struct tap *tap = tap_new(stdout, tap_version_from_environment());

  if (!tap)
    return 99;
  tap_point(tap, true, "a # TODO b", TAP_SKIP, "see # TODO");
  tap_point(tap, false, "a # SKIP b", TAP_TODO, "see #skip");
  tap_point(tap, true, "ends in a backslash \\", TAP_SKIP, NULL);
  tap_point(tap, true, "no directive # TODO", TAP_NONE, NULL);
  return tap_done(tap) == 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
  static const struct {
    const char *name;
    int (*run)(void);
  } modes[] = {
    {"pass", all_pass},
    {"fail", all_fail},
    {"compare", compares},
    {"todo", expected_to_fail},
    {"todo-and-fail", fails_beside_todo},
    {"skip", some_skipped},
    {"skip-all", all_skipped},
    {"bail-out", bails_out},
    {"too-few", too_few},
    {"too-many", too_many},
    {"none", none_at_all},
    {"plan-last", plan_last},
    {"done-testing", plan_by_done_testing},
    {"without-plan", without_plan},
    {"unknown-relation", unknown_relation},
    {"300-fail", three_hundred_failures},
    {"values", hard_values},
    {"expected-values", expected_values},
    {"directives", hard_directives},
  };

  for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
    if (argc == 2 && strcmp(argv[1], modes[i].name) == 0)
      return modes[i].run();
  fprintf(stderr, "%s: say one of the modes in its source\n", argv[0]);
  return 2;
}
