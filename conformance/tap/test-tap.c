/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of libtap's producer: each stream byte for byte.  The calls of a test program, and what the
 * consumers make of all this, are in tests/tap-consumers.sh. */
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"

/* A stream into memory. */
struct recorded {
  char *text;
  size_t size;
  FILE *out;
  struct tap *tap;
};

static void
record(struct recorded *r, int version)
{
  *r = (struct recorded){.text = NULL};
  r->out = open_memstream(&r->text, &r->size);
  r->tap = r->out ? tap_new(r->out, version) : NULL;
  if (!r->tap)
    BAIL_OUT("out of memory");
}

/* Ends the stream: tap_done must return `result`, and the stream must be `expected`. */
static void
recorded_is(struct recorded *r, int result, const char *expected, const char *name)
{
  cmp_ok(tap_done(r->tap), "==", result, "%s: what tap_done returns", name);
  fclose(r->out);
  is(r->text, expected, "%s: the stream", name);
  free(r->text);
}

static void
points(void)
{
  struct recorded r;

  record(&r, 13);
  tap_plan(r.tap, 4);
  tap_point(r.tap, true, "first", TAP_NONE, NULL);
  tap_point(r.tap, false, "second", TAP_NONE, "a reason without a directive");
  tap_point(r.tap, true, NULL, TAP_NONE, NULL);
  tap_point(r.tap, true, "", TAP_NONE, NULL);
  recorded_is(&r, 1,
              "TAP version 13\n"
              "1..4\n"
              "ok 1 - first\n"
              "not ok 2 - second\n"
              "ok 3\n"
              "ok 4\n",
              "plan first");

  record(&r, 13);
  tap_point(r.tap, true, "a", TAP_NONE, NULL);
  tap_plan(r.tap, 1);
  recorded_is(&r, 0, "TAP version 13\nok 1 - a\n1..1\n", "plan last");

  record(&r, 13);
  tap_point(r.tap, false, "a", TAP_NONE, NULL);
  tap_point(r.tap, false, "b", TAP_NONE, NULL);
  recorded_is(&r, 2, "TAP version 13\nnot ok 1 - a\nnot ok 2 - b\n1..2\n", "no plan given");
}

static void
directives(void)
{
  struct recorded r;

  record(&r, 13);
  tap_point(r.tap, true, "a", TAP_SKIP, "no server");
  tap_point(r.tap, false, "b", TAP_TODO, "issue #12");
  tap_point(r.tap, true, "c", TAP_TODO, "");
  tap_point(r.tap, true, NULL, TAP_SKIP, NULL);
  tap_point(r.tap, false, "e", TAP_SKIP, "fails and is skipped");
  tap_point(r.tap, true, "f # x", TAP_SKIP, "two\nlines # TODO or #\tskip it, not # to do");
  tap_point(r.tap, true, "g #todo # TODO # SKIP", TAP_TODO, "# skip \\ #");
  recorded_is(&r, 1,
              "TAP version 13\n"
              "ok 1 - a # SKIP no server\n"
              "not ok 2 - b # TODO issue #12\n"
              "ok 3 - c # TODO\n"
              "ok 4 # SKIP\n"
              "not ok 5 - e # SKIP fails and is skipped\n"
              "ok 6 - f \\# x # SKIP two\\nlines \\x23 TODO or \\x23\\tskip it, not # to do\n"
              "ok 7 - g \\x23todo \\x23 TODO \\x23 SKIP # TODO \\x23 skip \\ #\n"
              "1..7\n",
              "directives");

  record(&r, 13);
  tap_plan_skip_all(r.tap, "no server\nanywhere");
  recorded_is(&r, 0, "TAP version 13\n1..0 # SKIP no server\\nanywhere\n", "all skipped");

  record(&r, 13);
  tap_plan_skip_all(r.tap, NULL);
  recorded_is(&r, 0, "TAP version 13\n1..0 # SKIP \n", "all skipped without a reason");
}

/* Names and texts that could break or forge a stream. */
static void
escapes(void)
{
  struct recorded r;

  record(&r, 13);
  tap_point(r.tap, true, "no # TODO here", TAP_NONE, NULL);
  tap_point(r.tap, true, "back\\slash \\# end\\", TAP_NONE, NULL);
  tap_point(r.tap, true, "two\nok 3 - lines\r\n", TAP_NONE, NULL);
  tap_point(r.tap, true, "caf\xc3\xa9 \xff \x1b[31m", TAP_NONE, NULL);
  tap_comment(r.tap, "one");
  tap_comment(r.tap, "ok 9 - two\n\nBail out!\r\n");
  tap_comment(r.tap, "");
  tap_comment(r.tap, "\\ # \xff");
  recorded_is(&r, 0,
              "TAP version 13\n"
              "ok 1 - no \\# TODO here\n"
              "ok 2 - back\\\\slash \\\\\\# end\\\\\n"
              "ok 3 - two\\nok 3 - lines\\x0d\\n\n"
              "ok 4 - caf\xc3\xa9 \\xff \\x1b[31m\n"
              "# one\n"
              "# ok 9 - two\n"
              "#\n"
              "# Bail out!\\x0d\n"
              "#\n"
              "# \\ # \\xff\n"
              "1..4\n",
              "escapes");
}

static void
bail_outs(void)
{
  struct recorded r;

  record(&r, 13);
  tap_plan(r.tap, 3);
  tap_point(r.tap, true, "a", TAP_NONE, NULL);
  tap_bail_out(r.tap, "the disk\nis full");
  tap_point(r.tap, true, "b", TAP_NONE, NULL);
  tap_comment(r.tap, "more");
  tap_bail_out(r.tap, "again");
  recorded_is(&r, -1,
              "TAP version 13\n1..3\nok 1 - a\nBail out!  the disk\\nis full\n", "bail out");

  record(&r, 13);
  tap_bail_out(r.tap, NULL);
  recorded_is(&r, -1, "TAP version 13\nBail out!\n", "bail out without a reason");

  record(&r, 13);
  tap_point(r.tap, false, "a", TAP_NONE, NULL);
  tap_yaml_begin(r.tap);
  tap_yaml_list_begin(r.tap, "trace");
  tap_yaml_item(r.tap, "one");
  tap_bail_out(r.tap, "inside");
  recorded_is(&r, -1,
              "TAP version 13\n"
              "not ok 1 - a\n"
              "  ---\n"
              "  trace:\n"
              "    - \"one\"\n"
              "  ...\n"
              "Bail out!  inside\n",
              "bail out inside a block");
}

static void
blocks(void)
{
  struct recorded r;

  record(&r, 13);
  tap_point(r.tap, false, "a", TAP_NONE, NULL);
  tap_yaml_begin(r.tap);
  tap_yaml_string(r.tap, "clause", "CANCEL-5: gone # not a comment");
  tap_yaml_string(r.tap, "found", "say \"no\"\n\tand \\ leave\xff\x01 caf\xc3\xa9");
  tap_yaml_string(r.tap, "nothing", NULL);
  tap_yaml_string(r.tap, "empty", "");
  tap_yaml_bytes(r.tap, "bytes", "a\0b", 3);
  tap_yaml_bytes(r.tap, "no_bytes", NULL, 0);
  tap_yaml_number(r.tap, "seed", INT64_MIN);
  tap_yaml_list_begin(r.tap, "trace");
  tap_yaml_item(r.tap, "t=5 ack: lost");
  tap_yaml_item(r.tap, "ack: lost");
  tap_yaml_item(r.tap, NULL);
  tap_yaml_list_end(r.tap);
  tap_yaml_list_begin(r.tap, "none");
  tap_yaml_list_end(r.tap);
  tap_yaml_number(r.tap, "last", 7);
  tap_yaml_end(r.tap);
  tap_point(r.tap, true, "b", TAP_NONE, NULL);
  tap_yaml_begin(r.tap);
  tap_yaml_end(r.tap);
  recorded_is(&r, 1,
              "TAP version 13\n"
              "not ok 1 - a\n"
              "  ---\n"
              "  clause: \"CANCEL-5\\x3a gone # not a comment\"\n"
              "  found: \"say \\\"no\\\"\\n\\tand \\\\ leave\\xff\\x01 caf\xc3\xa9\"\n"
              "  nothing: ~\n"
              "  empty: \"\"\n"
              "  bytes: \"a\\x00b\"\n"
              "  no_bytes: \"\"\n"
              "  seed: -9223372036854775808\n"
              "  trace:\n"
              "    - \"t=5 ack\\x3a lost\"\n"
              "    - \"ack\\x3a lost\"\n"
              "    - ~\n"
              "  none: []\n"
              "  last: 7\n"
              "  ...\n"
              "ok 2 - b\n"
              "1..2\n",
              "blocks");
}

static void
versions(void)
{
  static const struct {
    const char *asked;
    int version;
  } samples[] = {
    {NULL, 13},  {"", 13},    {"12", 13},  {"13", 13}, {"14", 14},
    {"15", 14},  {"0", 13},   {"-14", 13}, {"x", 13},  {"14x", 13},
    {" 14", 13}, {"014", 14}, {"99999999999999999999", 14},
  };
  char *before = getenv("TAP_VERSION");
  char *kept = before ? strdup(before) : NULL;
  struct recorded r;

  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
    if (samples[i].asked)
      setenv("TAP_VERSION", samples[i].asked, 1);
    else
      unsetenv("TAP_VERSION");
    cmp_ok(tap_version_from_environment(), "==", samples[i].version, "TAP_VERSION=%s",
           samples[i].asked ? samples[i].asked : "(unset)");
  }
  if (kept)
    setenv("TAP_VERSION", kept, 1);
  else
    unsetenv("TAP_VERSION");
  free(kept);

  record(&r, 14);
  tap_point(r.tap, true, NULL, TAP_NONE, NULL);
  recorded_is(&r, 0, "TAP version 14\nok 1\n1..1\n", "version 14");
  record(&r, 15);
  tap_point(r.tap, true, NULL, TAP_NONE, NULL);
  recorded_is(&r, 0, "TAP version 14\nok 1\n1..1\n", "an unknown version");
  record(&r, 12);
  tap_point(r.tap, true, NULL, TAP_NONE, NULL);
  recorded_is(&r, 0, "TAP version 13\nok 1\n1..1\n", "a version without blocks");
}

static void
wrong_numbers(void)
{
  struct recorded r;

  record(&r, 13);
  recorded_is(&r, -1, "TAP version 13\n# no test was run, so there is no plan\n", "nothing at all");

  record(&r, 13);
  tap_plan(r.tap, 2);
  recorded_is(&r, -1, "TAP version 13\n1..2\n# planned 2, ran 0\n", "a plan alone");

  record(&r, 13);
  tap_plan(r.tap, 2);
  tap_point(r.tap, true, NULL, TAP_NONE, NULL);
  recorded_is(&r, -1, "TAP version 13\n1..2\nok 1\n# planned 2, ran 1\n", "too few");

  record(&r, 13);
  tap_plan(r.tap, 1);
  tap_point(r.tap, true, NULL, TAP_NONE, NULL);
  tap_point(r.tap, true, NULL, TAP_NONE, NULL);
  recorded_is(&r, -1, "TAP version 13\n1..1\nok 1\nok 2\n# planned 1, ran 2\n", "too many");

  record(&r, 13);
  tap_point(r.tap, true, NULL, TAP_NONE, NULL);
  tap_plan(r.tap, 2);
  recorded_is(&r, -1, "TAP version 13\nok 1\n1..2\n# planned 2, ran 1\n", "a wrong plan last");
}

/* Does one wrong thing after a good point; the stream must report it and stay readable. */
static void
misuse_is_told(void (*wrong)(struct tap *), const char *lines, const char *complaint,
               const char *name)
{
  struct recorded r;
  char expected[300];

  record(&r, 13);
  tap_point(r.tap, true, NULL, TAP_NONE, NULL);
  wrong(r.tap);
  snprintf(expected, sizeof(expected), "TAP version 13\nok 1\n%s# libtap was misused: %s\n", lines,
           complaint);
  recorded_is(&r, -1, expected, name);
}

static void
plan_of_nothing(struct tap *tap)
{
  tap_plan(tap, 0);
}

static void
second_plan(struct tap *tap)
{
  tap_plan(tap, 1);
  tap_plan(tap, 1);
}

static void
point_after_the_plan(struct tap *tap)
{
  tap_plan(tap, 1);
  tap_point(tap, true, NULL, TAP_NONE, NULL);
}

static void
skip_all_after_a_point(struct tap *tap)
{
  tap_plan_skip_all(tap, "too late");
}

static void
block_after_a_comment(struct tap *tap)
{
  tap_comment(tap, "x");
  tap_yaml_begin(tap);
  tap_yaml_string(tap, "key", "dropped");
  tap_yaml_list_begin(tap, "list");
  tap_yaml_item(tap, "dropped");
  tap_yaml_list_end(tap);
  tap_yaml_number(tap, "number", 1);
  tap_yaml_end(tap);
}

static void
second_block(struct tap *tap)
{
  tap_yaml_begin(tap);
  tap_yaml_number(tap, "a", 1);
  tap_yaml_end(tap);
  tap_yaml_begin(tap);
  tap_yaml_number(tap, "b", 2);
  tap_yaml_end(tap);
}

static void
bad_keys(struct tap *tap)
{
  tap_yaml_begin(tap);
  tap_yaml_string(tap, "", "dropped");
  tap_yaml_number(tap, "Key", 1);
  tap_yaml_list_begin(tap, "a b");
  tap_yaml_number(tap, "good_key", 2);
  tap_yaml_end(tap);
}

static void
key_in_a_list(struct tap *tap)
{
  tap_yaml_begin(tap);
  tap_yaml_list_begin(tap, "list");
  tap_yaml_item(tap, "one");
  tap_yaml_string(tap, "key", "dropped");
  tap_yaml_item(tap, "two");
  tap_yaml_list_end(tap);
  tap_yaml_end(tap);
}

static void
key_outside(struct tap *tap)
{
  tap_yaml_string(tap, "key", "dropped");
}

static void
item_outside(struct tap *tap)
{
  tap_yaml_begin(tap);
  tap_yaml_item(tap, "dropped");
  tap_yaml_end(tap);
}

static void
list_end_outside(struct tap *tap)
{
  tap_yaml_begin(tap);
  tap_yaml_number(tap, "a", 1);
  tap_yaml_list_end(tap);
  tap_yaml_end(tap);
}

static void
block_end_outside(struct tap *tap)
{
  tap_yaml_end(tap);
}

static void
list_not_ended(struct tap *tap)
{
  tap_yaml_begin(tap);
  tap_yaml_list_begin(tap, "list");
  tap_yaml_end(tap);
}

static void
block_not_ended(struct tap *tap)
{
  tap_yaml_begin(tap);
  tap_yaml_number(tap, "a", 1);
}

static void
misuse(void)
{
  misuse_is_told(plan_of_nothing, "1..1\n", "a plan of nothing", "a plan of nothing");
  misuse_is_told(second_plan, "1..1\n", "a second plan", "a second plan");
  misuse_is_told(point_after_the_plan, "1..1\nok 2\n# planned 1, ran 2\n",
                 "a point after the plan that ends the stream", "a point after the plan");
  misuse_is_told(skip_all_after_a_point, "1..1\n", "all skipped, after a plan or a point",
                 "all skipped too late");
  misuse_is_told(block_after_a_comment, "# x\n1..1\n", "a YAML block that does not follow a point",
                 "a block after a comment");
  misuse_is_told(second_block, "  ---\n  a: 1\n  ...\n1..1\n",
                 "a YAML block that does not follow a point", "a second block");
  misuse_is_told(bad_keys, "  ---\n  good_key: 2\n  ...\n1..1\n", "a YAML key that is not [a-z_]+",
                 "bad keys");
  misuse_is_told(key_in_a_list, "  ---\n  list:\n    - \"one\"\n    - \"two\"\n  ...\n1..1\n",
                 "a YAML key outside of a block or inside a list", "a key inside a list");
  misuse_is_told(key_outside, "1..1\n", "a YAML key outside of a block or inside a list",
                 "a key outside of a block");
  misuse_is_told(item_outside, "1..1\n", "a YAML item outside of a list", "an item outside");
  misuse_is_told(list_end_outside, "  ---\n  a: 1\n  ...\n1..1\n",
                 "the end of a YAML list that was not begun", "the end of no list");
  misuse_is_told(block_end_outside, "1..1\n", "the end of a YAML block that was not begun",
                 "the end of no block");
  misuse_is_told(list_not_ended, "  ---\n  list: []\n  ...\n1..1\n", "a YAML list was not ended",
                 "a list that is not ended");
  misuse_is_told(block_not_ended, "  ---\n  a: 1\n  ...\n1..1\n", "a YAML block was not ended",
                 "a block that is not ended");
}

/* A full disk must not look like a success. */
static void
cannot_write(void)
{
  FILE *full = fopen("/dev/full", "w");

  cmp_ok(tap_done(NULL), "==", -1, "without a stream there is no success");
  if (!full) {
    skip(1, "there is no /dev/full");
    return;
  }
  struct tap *tap = tap_new(full, 13);
  if (!tap)
    BAIL_OUT("out of memory");
  tap_point(tap, true, "a", TAP_NONE, NULL);
  cmp_ok(tap_done(tap), "==", -1, "a stream that cannot be written is a failure");
  fclose(full);
}

/* Each call writes whole lines, so that a crash loses none. */
static void
flushed_at_once(void)
{
  struct recorded r;

  record(&r, 13);
  is(r.text, "TAP version 13\n", "the version is written at once");
  tap_point(r.tap, false, "a", TAP_NONE, NULL);
  is(r.text, "TAP version 13\nnot ok 1 - a\n", "a point is written at once");
  tap_yaml_begin(r.tap);
  tap_yaml_number(r.tap, "a", 1);
  is(r.text, "TAP version 13\nnot ok 1 - a\n  ---\n  a: 1\n", "a key is written at once");
  tap_yaml_end(r.tap);
  tap_comment(r.tap, "b");
  recorded_is(&r, 1, "TAP version 13\nnot ok 1 - a\n  ---\n  a: 1\n  ...\n# b\n1..1\n", "and all");
}

int
main(void)
{
  plan(NO_PLAN);
  points();
  directives();
  escapes();
  bail_outs();
  blocks();
  versions();
  wrong_numbers();
  misuse();
  cannot_write();
  flushed_at_once();
  return exit_status();
}
