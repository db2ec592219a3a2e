/* SPDX-License-Identifier: Apache-2.0 */
/* libtap, the calls of a test program: see tap.h.  Owns the one stream on standard output. */
#define TAP_NO_MACROS
#include "conformance/tap/tap.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"

/* The state of this test program, the only mutable object of this folder: the calls that C
 * programmers know from libtap take no object, so the state must be global. */
static struct program {
  struct tap *tap; /* NULL before the first call */
  struct dk_text todo;
  bool in_todo;
  bool has_plan;
  const char *misuse; /* the first misuse that the producer cannot see */
} program;

static struct tap *
program_tap(void)
{
  if (!program.tap)
    program.tap = tap_new(stdout, tap_version_from_environment());
  if (!program.tap) {
    fputs("Bail out!  libtap: out of memory\n", stdout);
    exit(255);
  }
  return program.tap;
}

/* Ends the stream: how many failed, or -1. */
static int
end_program(void)
{
  if (program.misuse)
    tap_comment(program_tap(), program.misuse);
  int failed = tap_done(program_tap());
  program.tap = NULL;
  return program.misuse ? -1 : failed;
}

/* Writes to standard error, where a person sees it under prove; an expected failure is reported on
 * standard output. */
static void
program_tell(const struct dk_text *text)
{
  if (program.in_todo)
    tap_comment(program_tap(), dk_text_str(text));
  else
    tap_comment_to(stderr, dk_text_str(text));
}

static bool
program_point(bool passed, const char *name, va_list args)
{
  struct dk_text text = DK_TEXT_EMPTY;

  dk_text_vprintf(&text, name, args);
  tap_point(program_tap(), passed, dk_text_str(&text), program.in_todo ? TAP_TODO : TAP_NONE,
            dk_text_str(&program.todo));
  if (!passed) {
    struct dk_text failed = DK_TEXT_EMPTY;
    dk_text_printf(&failed, "failed: %s", dk_text_str(&text));
    program_tell(&failed);
    dk_text_done(&failed);
  }
  dk_text_done(&text);
  return passed;
}

/* Reports where a point failed, what was expected and what was found; frees the two texts. */
static void
tell_failure(const char *file, int line, struct dk_text *expected, struct dk_text *found)
{
  struct dk_text text = DK_TEXT_EMPTY;

  dk_text_printf(&text, "  at        %s:%d\n  expected  %s\n  found     %s", file, line,
                 dk_text_str(expected), dk_text_str(found));
  program_tell(&text);
  dk_text_done(&text);
  dk_text_done(expected);
  dk_text_done(found);
}

static void
add_quoted(struct dk_text *text, const char *string)
{
  if (!string) {
    dk_text_puts(text, "NULL");
    return;
  }
  dk_text_puts(text, "\"");
  dk_text_add_escaped(text, string, strlen(string), DK_ESCAPE_YAML);
  dk_text_puts(text, "\"");
}

void
tap_program_plan(int points, const char *why, ...)
{
  struct tap *tap = program_tap();

  program.has_plan = true;
  if (points == SKIP_ALL) {
    tap_plan_skip_all(tap, why);
    tap_program_end_todo();
    exit(end_program() == 0 ? 0 : 255);
  }
  if (points != NO_PLAN)
    tap_plan(tap, points > 0 ? (unsigned)points : 0);
}

bool
tap_program_ok(const char *file, int line, const char *expression, bool holds, const char *name,
               ...)
{
  va_list args;

  va_start(args, name);
  program_point(holds, name, args);
  va_end(args);
  if (!holds) {
    struct dk_text expected = DK_TEXT_EMPTY;
    struct dk_text found = DK_TEXT_EMPTY;
    dk_text_puts(&expected, expression);
    dk_text_puts(&found, "that it is false");
    tell_failure(file, line, &expected, &found);
  }
  return holds;
}

bool
tap_program_is(const char *file, int line, bool alike, const char *got, const char *expected,
               const char *name, ...)
{
  bool equal = got && expected ? strcmp(got, expected) == 0 : got == expected;
  va_list args;

  va_start(args, name);
  bool passed = program_point(equal == alike, name, args);
  va_end(args);
  if (!passed) {
    struct dk_text wanted = DK_TEXT_EMPTY;
    struct dk_text found = DK_TEXT_EMPTY;
    dk_text_puts(&wanted, alike ? "" : "anything but ");
    add_quoted(&wanted, expected);
    add_quoted(&found, got);
    tell_failure(file, line, &wanted, &found);
  }
  return passed;
}

static bool
is_negative(struct tap_integer n)
{
  return !n.is_unsigned && n.value < 0;
}

/* -1, 0 or 1; for two numbers of the same sign the bits decide. */
static int
program_compare(struct tap_integer a, struct tap_integer b)
{
  if (is_negative(a) != is_negative(b))
    return is_negative(a) ? -1 : 1;
  return ((uintmax_t)a.value > (uintmax_t)b.value) - ((uintmax_t)a.value < (uintmax_t)b.value);
}

/* Whether the relation holds for an order that `compare` returned; -1: no such relation. */
static int
relation_holds(const char *relation, int order)
{
  static const struct {
    const char *name;
    bool holds[3];
  } relations[] = {
    {"==", {false, true, false}}, {"!=", {true, false, true}}, {"<", {true, false, false}},
    {"<=", {true, true, false}},  {">", {false, false, true}}, {">=", {false, true, true}},
  };

  for (size_t i = 0; i < sizeof(relations) / sizeof(relations[0]); i++)
    if (strcmp(relation, relations[i].name) == 0)
      return relations[i].holds[order + 1];
  return -1;
}

static void
add_integer(struct dk_text *text, struct tap_integer n)
{
  if (is_negative(n))
    dk_text_printf(text, "%" PRIdMAX, n.value);
  else
    dk_text_printf(text, "%" PRIuMAX, (uintmax_t)n.value);
}

bool
tap_program_cmp(const char *file, int line, const char *expression, struct tap_integer a,
                const char *relation, struct tap_integer b, const char *name, ...)
{
  int holds = relation_holds(relation, program_compare(a, b));
  va_list args;

  if (holds < 0)
    program.misuse = "libtap was misused: cmp_ok knows == != < <= > >= only";
  va_start(args, name);
  bool passed = program_point(holds > 0, name, args);
  va_end(args);
  if (!passed) {
    struct dk_text expected = DK_TEXT_EMPTY;
    struct dk_text found = DK_TEXT_EMPTY;
    dk_text_puts(&expected, expression);
    add_integer(&found, a);
    dk_text_puts(&found, " and ");
    add_integer(&found, b);
    tell_failure(file, line, &expected, &found);
  }
  return passed;
}

bool
tap_program_cmp_mem(const char *file, int line, const void *got, const void *expected, size_t size,
                    const char *name, ...)
{
  const unsigned char *g = got;
  const unsigned char *e = expected;
  bool comparable = (g && e) || size == 0;
  size_t same = 0;
  va_list args;

  while (comparable && same < size && g[same] == e[same])
    same++;
  va_start(args, name);
  bool passed = program_point(same == size, name, args);
  va_end(args);
  if (!passed) {
    struct dk_text wanted = DK_TEXT_EMPTY;
    struct dk_text found = DK_TEXT_EMPTY;
    dk_text_printf(&wanted, "%s", e ? "the same" : "NULL");
    dk_text_printf(&found, "%s", g ? "other bytes" : "NULL");
    if (comparable) {
      dk_text_printf(&wanted, " %zu bytes; byte %zu is 0x%02x", size, same, (unsigned)e[same]);
      dk_text_printf(&found, "; byte %zu is 0x%02x", same, (unsigned)g[same]);
    }
    tell_failure(file, line, &wanted, &found);
  }
  return passed;
}

void
tap_program_diag(const char *format, ...)
{
  struct dk_text text = DK_TEXT_EMPTY;
  va_list args;

  va_start(args, format);
  dk_text_vprintf(&text, format, args);
  va_end(args);
  program_tell(&text);
  dk_text_done(&text);
}

void
tap_program_note(const char *format, ...)
{
  struct dk_text text = DK_TEXT_EMPTY;
  va_list args;

  va_start(args, format);
  dk_text_vprintf(&text, format, args);
  va_end(args);
  tap_comment(program_tap(), dk_text_str(&text));
  dk_text_done(&text);
}

void
tap_program_skip(unsigned points, const char *why, ...)
{
  struct dk_text text = DK_TEXT_EMPTY;
  va_list args;

  va_start(args, why);
  dk_text_vprintf(&text, why, args);
  va_end(args);
  for (unsigned i = 0; i < points; i++)
    tap_point(program_tap(), true, NULL, TAP_SKIP, dk_text_str(&text));
  dk_text_done(&text);
}

void
tap_program_todo(const char *why, ...)
{
  va_list args;

  dk_text_reset(&program.todo);
  va_start(args, why);
  dk_text_vprintf(&program.todo, why, args);
  va_end(args);
  program.in_todo = true;
}

void
tap_program_end_todo(void)
{
  dk_text_done(&program.todo);
  program.in_todo = false;
}

void
tap_program_bail_out(const char *why, ...)
{
  struct dk_text text = DK_TEXT_EMPTY;
  va_list args;

  va_start(args, why);
  dk_text_vprintf(&text, why, args);
  va_end(args);
  tap_bail_out(program_tap(), dk_text_str(&text));
  dk_text_done(&text);
  tap_program_end_todo();
  end_program();
  exit(255);
}

int
tap_program_exit_status(void)
{
  tap_program_end_todo();
  if (!program.has_plan)
    program.misuse = "libtap was misused: neither plan() nor done_testing() was called";
  int failed = end_program();
  if (failed < 0)
    return 255;
  return failed > 254 ? 254 : failed;
}

int
tap_program_done_testing(void)
{
  program.has_plan = true;
  return tap_program_exit_status();
}
