/* SPDX-License-Identifier: Apache-2.0 */
/* libtap, the producer: see tap.h.  Owns the text of the line that is being built.
 *
 * The output respects the weaknesses of consumers: an empty block, a list item that looks like a
 * map, and bytes that do not decode all make prove drop the rest of a stream; automake's driver
 * looks for a directive from the end of the line, so a reason must not contain a second one. */
#define TAP_NO_MACROS
#include "conformance/tap/tap.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/text.h"

enum plan {
  PLAN_NONE,
  PLAN_FIRST,
  PLAN_LAST,
  PLAN_SKIP_ALL,
};

enum block {
  BLOCK_NOT_HERE,   /* the last line was not a point */
  BLOCK_MAY_BEGIN,  /* the last line was a point */
  BLOCK_BEGUN,      /* begun, with nothing written yet */
  BLOCK_OPEN,
  BLOCK_LIST_EMPTY, /* "  key:" is written, its line is not ended */
  BLOCK_LIST,
  BLOCK_REFUSED,    /* begun in a wrong place: what follows is dropped until its end */
};

struct tap {
  FILE *out;
  struct dk_text line;
  enum plan plan;
  unsigned planned;
  unsigned points;
  unsigned failed;
  enum block block;
  const char *misuse; /* the first one, for the comment at the end */
  bool unwritten;
  bool bailed_out;
};

static void
blame(struct tap *tap, const char *misuse)
{
  if (!tap->misuse)
    tap->misuse = misuse;
}

/* Writes the line that was built, completely or not at all. */
static void
write_out(struct tap *tap)
{
  size_t length = tap->line.length;

  if (dk_text_failed(&tap->line) || tap->bailed_out
      || fwrite(dk_text_str(&tap->line), 1, length, tap->out) != length || fflush(tap->out) != 0)
    tap->unwritten = true;
  dk_text_reset(&tap->line);
}

static void
add_string(struct tap *tap, const char *string, enum dk_escape how)
{
  dk_text_add_escaped(&tap->line, string, strlen(string), how);
}

/* The text begins with a '#' that some consumer would take for a directive. */
static bool
looks_like_directive(const char *text)
{
  if (text[0] != '#')
    return false;
  text += 1 + strspn(text + 1, " \t");
  return strncasecmp(text, "todo", 4) == 0 || strncasecmp(text, "skip", 4) == 0;
}

/* Adds text to a line that has a directive, so that no second directive can be found in it. */
static void
add_beside_directive(struct tap *tap, const char *text, enum dk_escape how)
{
  while (*text) {
    size_t plain = strcspn(text, "#");
    if (text[plain] && !looks_like_directive(text + plain))
      plain++;
    dk_text_add_escaped(&tap->line, text, plain, how);
    text += plain;
    if (looks_like_directive(text)) {
      dk_text_puts(&tap->line, "\\x23");
      text++;
    }
  }
}

static void
add_list_end(struct tap *tap)
{
  if (tap->block == BLOCK_LIST_EMPTY)
    dk_text_puts(&tap->line, " []\n");
  tap->block = BLOCK_OPEN;
}

static void
end_block(struct tap *tap)
{
  if (tap->block == BLOCK_LIST_EMPTY || tap->block == BLOCK_LIST)
    add_list_end(tap);
  if (tap->block == BLOCK_OPEN) {
    dk_text_puts(&tap->line, "  ...\n");
    write_out(tap);
  }
  tap->block = BLOCK_NOT_HERE;
}

/* Called before any line that is not part of a block. */
static void
leave_block(struct tap *tap)
{
  if (tap->block >= BLOCK_BEGUN)
    blame(tap, "a YAML block was not ended");
  end_block(tap);
}

int
tap_version_from_environment(void)
{
  const char *asked = getenv("TAP_VERSION");

  if (!asked || !*asked || asked[strspn(asked, "0123456789")])
    return 13;
  return strtoul(asked, NULL, 10) >= 14 ? 14 : 13;
}

struct tap *
tap_new(FILE *out, int version)
{
  struct tap *tap = malloc(sizeof(*tap));

  if (!tap)
    return NULL;
  *tap = (struct tap){.out = out};
  dk_text_printf(&tap->line, "TAP version %d\n", version >= 14 ? 14 : 13);
  write_out(tap);
  return tap;
}

void
tap_plan(struct tap *tap, unsigned points)
{
  leave_block(tap);
  if (tap->plan != PLAN_NONE || points == 0) {
    blame(tap, points == 0 ? "a plan of nothing" : "a second plan");
    return;
  }
  tap->plan = tap->points == 0 ? PLAN_FIRST : PLAN_LAST;
  tap->planned = points;
  dk_text_printf(&tap->line, "1..%u\n", points);
  write_out(tap);
}

void
tap_plan_skip_all(struct tap *tap, const char *why)
{
  leave_block(tap);
  if (tap->plan != PLAN_NONE || tap->points > 0) {
    blame(tap, "all skipped, after a plan or a point");
    return;
  }
  tap->plan = PLAN_SKIP_ALL;
  dk_text_puts(&tap->line, "1..0 # SKIP ");
  add_beside_directive(tap, why ? why : "", DK_ESCAPE_VISIBLE);
  dk_text_puts(&tap->line, "\n");
  write_out(tap);
}

static void
add_directive(struct tap *tap, enum tap_directive directive, const char *reason)
{
  if (directive == TAP_NONE)
    return;
  dk_text_puts(&tap->line, directive == TAP_SKIP ? " # SKIP" : " # TODO");
  if (reason && *reason) {
    dk_text_puts(&tap->line, " ");
    add_beside_directive(tap, reason, DK_ESCAPE_VISIBLE);
  }
}

void
tap_point(struct tap *tap, bool passed, const char *name, enum tap_directive directive,
          const char *reason)
{
  leave_block(tap);
  if (tap->plan == PLAN_LAST || tap->plan == PLAN_SKIP_ALL)
    blame(tap, "a point after the plan that ends the stream");
  tap->points++;
  if (!passed && directive != TAP_TODO)
    tap->failed++;

  dk_text_printf(&tap->line, "%s %u", passed ? "ok" : "not ok", tap->points);
  if (name && *name) {
    dk_text_puts(&tap->line, " - ");
    if (directive == TAP_NONE)
      add_string(tap, name, DK_ESCAPE_TAP);
    else
      add_beside_directive(tap, name, DK_ESCAPE_TAP);
  }
  add_directive(tap, directive, reason);
  dk_text_puts(&tap->line, "\n");
  write_out(tap);
  tap->block = BLOCK_MAY_BEGIN;
}

/* Adds the text as comments, one for each of its lines; a final end of line begins no comment. */
static void
add_comments(struct dk_text *to, const char *text)
{
  do {
    size_t length = strcspn(text, "\n");
    dk_text_puts(to, length > 0 ? "# " : "#");
    dk_text_add_escaped(to, text, length, DK_ESCAPE_VISIBLE);
    dk_text_puts(to, "\n");
    text += length + (text[length] ? 1 : 0);
  } while (*text);
}

void
tap_comment(struct tap *tap, const char *text)
{
  leave_block(tap);
  add_comments(&tap->line, text);
  write_out(tap);
}

void
tap_comment_to(FILE *out, const char *text)
{
  struct dk_text comments = DK_TEXT_EMPTY;

  add_comments(&comments, text);
  fputs(dk_text_str(&comments), out);
  fflush(out);
  dk_text_done(&comments);
}

void
tap_bail_out(struct tap *tap, const char *why)
{
  end_block(tap);
  dk_text_puts(&tap->line, "Bail out!");
  if (why && *why) {
    dk_text_puts(&tap->line, "  ");
    add_string(tap, why, DK_ESCAPE_VISIBLE);
  }
  dk_text_puts(&tap->line, "\n");
  write_out(tap);
  tap->bailed_out = true;
}

void
tap_yaml_begin(struct tap *tap)
{
  bool may_begin = tap->block == BLOCK_MAY_BEGIN;

  leave_block(tap);
  if (!may_begin)
    blame(tap, "a YAML block that does not follow a point");
  tap->block = may_begin ? BLOCK_BEGUN : BLOCK_REFUSED;
}

static bool
is_key(const char *key)
{
  return *key && key[strspn(key, "abcdefghijklmnopqrstuvwxyz_")] == '\0';
}

/* Begins "  key:" and opens the block if it is not open; false: it is not allowed here. */
static bool
add_key(struct tap *tap, const char *key)
{
  if (tap->block == BLOCK_REFUSED)
    return false;
  if (tap->block != BLOCK_BEGUN && tap->block != BLOCK_OPEN) {
    blame(tap, "a YAML key outside of a block or inside a list");
    return false;
  }
  if (!is_key(key)) {
    blame(tap, "a YAML key that is not [a-z_]+");
    return false;
  }
  if (tap->block == BLOCK_BEGUN)
    dk_text_puts(&tap->line, "  ---\n");
  tap->block = BLOCK_OPEN;
  dk_text_printf(&tap->line, "  %s:", key);
  return true;
}

/* Adds a scalar and the end of its line. */
static void
add_scalar(struct tap *tap, const void *value, size_t size)
{
  if (value) {
    dk_text_puts(&tap->line, " \"");
    dk_text_add_escaped(&tap->line, value, size, DK_ESCAPE_YAML);
    dk_text_puts(&tap->line, "\"\n");
  } else {
    dk_text_puts(&tap->line, " ~\n");
  }
  write_out(tap);
}

void
tap_yaml_string(struct tap *tap, const char *key, const char *value)
{
  if (add_key(tap, key))
    add_scalar(tap, value, value ? strlen(value) : 0);
}

void
tap_yaml_bytes(struct tap *tap, const char *key, const void *value, size_t size)
{
  if (add_key(tap, key))
    add_scalar(tap, value || size > 0 ? value : "", size);
}

void
tap_yaml_number(struct tap *tap, const char *key, int64_t value)
{
  if (!add_key(tap, key))
    return;
  dk_text_printf(&tap->line, " %" PRId64 "\n", value);
  write_out(tap);
}

void
tap_yaml_list_begin(struct tap *tap, const char *key)
{
  if (!add_key(tap, key))
    return;
  write_out(tap);
  tap->block = BLOCK_LIST_EMPTY;
}

void
tap_yaml_item(struct tap *tap, const char *value)
{
  if (tap->block == BLOCK_REFUSED)
    return;
  if (tap->block != BLOCK_LIST_EMPTY && tap->block != BLOCK_LIST) {
    blame(tap, "a YAML item outside of a list");
    return;
  }
  dk_text_puts(&tap->line, tap->block == BLOCK_LIST_EMPTY ? "\n    -" : "    -");
  tap->block = BLOCK_LIST;
  add_scalar(tap, value, value ? strlen(value) : 0);
}

void
tap_yaml_list_end(struct tap *tap)
{
  if (tap->block == BLOCK_REFUSED)
    return;
  if (tap->block != BLOCK_LIST_EMPTY && tap->block != BLOCK_LIST) {
    blame(tap, "the end of a YAML list that was not begun");
    return;
  }
  add_list_end(tap);
  write_out(tap);
}

void
tap_yaml_end(struct tap *tap)
{
  if (tap->block < BLOCK_BEGUN)
    blame(tap, "the end of a YAML block that was not begun");
  if (tap->block == BLOCK_LIST_EMPTY || tap->block == BLOCK_LIST)
    blame(tap, "a YAML list was not ended");
  end_block(tap);
}

/* False: the number of points is wrong; a comment says how. */
static bool
plan_was_kept(struct tap *tap)
{
  if (tap->plan == PLAN_SKIP_ALL)
    return tap->points == 0;
  if (tap->points == 0 && tap->plan == PLAN_NONE) {
    /* A plan of 1..0 would mean "all skipped", and so a success. */
    tap_comment(tap, "no test was run, so there is no plan");
    return false;
  }
  if (tap->plan == PLAN_NONE)
    tap_plan(tap, tap->points);
  if (tap->points == tap->planned)
    return true;
  dk_text_printf(&tap->line, "# planned %u, ran %u\n", tap->planned, tap->points);
  write_out(tap);
  return false;
}

int
tap_done(struct tap *tap)
{
  if (!tap)
    return -1;

  bool as_planned = false;
  if (!tap->bailed_out) {
    leave_block(tap);
    as_planned = plan_was_kept(tap);
  }
  if (tap->misuse && !tap->bailed_out) {
    dk_text_printf(&tap->line, "# libtap was misused: %s\n", tap->misuse);
    write_out(tap);
  }

  int result = tap->failed > INT_MAX ? INT_MAX : (int)tap->failed;
  if (!as_planned || tap->misuse || tap->unwritten)
    result = -1;
  dk_text_done(&tap->line);
  free(tap);
  return result;
}
