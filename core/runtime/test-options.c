/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of options.h: every default, what fits and what does not, with the text of the refusal. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/options.h"

static struct dk_registry *registry;

static struct dk_runtime_options
options(void)
{
  return (struct dk_runtime_options){.struct_size = sizeof(struct dk_runtime_options),
                                     .registry = registry};
}

static dk_result
work(dk_task *task, dk_str input)
{
  (void)task;
  (void)input;
  return (dk_result){0};
}

/* ---- what is accepted ------------------------------------------------------------------------ */

/* The defaults of runtime.h. */
static void
test_defaults(void)
{
  struct dk_runtime_options given = options(), o;
  struct dk_refusal refusal;

  cmp_ok(options_complete(&given, &o, &refusal), "==", DK_OK, "zeros are accepted");
  cmp_ok(o.orchestration_slots, "==", 2, "orchestration_slots");
  cmp_ok(o.activity_slots, "==", 2, "activity_slots");
  cmp_ok(o.max_quarantined, "==", 4, "max_quarantined");
  cmp_ok(o.max_attempts, "==", 10, "max_attempts");
  cmp_ok(o.turn_lock_ms, "==", 5000, "turn_lock_ms");
  cmp_ok(o.turn_renewal_buffer_ms, "==", 2000, "turn_renewal_buffer_ms");
  cmp_ok(o.max_turn_ms, "==", 10000, "max_turn_ms");
  cmp_ok(o.activity_lock_ms, "==", 30000, "activity_lock_ms");
  cmp_ok(o.activity_renewal_buffer_ms, "==", 5000, "activity_renewal_buffer_ms");
  cmp_ok(o.grace_ms, "==", 10000, "grace_ms");
  cmp_ok(o.poll_ms, "==", 30000, "poll_ms");
  cmp_ok(o.backoff_ms, "==", 1000, "backoff_ms");
  cmp_ok(o.max_backoff_ms, "==", 60000, "max_backoff_ms");
  cmp_ok(o.max_events, "==", 100000, "max_events");
  cmp_ok(o.max_messages, "==", 1000, "max_messages");
  cmp_ok(o.cache_bytes, "==", 64 * 1024 * 1024, "cache_bytes");
  cmp_ok(o.session_lock_ms, "==", 30000, "session_lock_ms");
  cmp_ok(o.tag_rule, "==", DK_TAG_UNTAGGED, "tag_rule");
  cmp_ok(o.session_rule, "==", DK_SESSION_NONE, "session_rule");
  ok(o.registry == registry && !o.name && !o.log, "the rest is as it was given");
  given.activity_slots = 7;
  options_complete(&given, &o, &refusal);
  cmp_ok(o.max_quarantined, "==", 14, "the cap follows the slots");
}

static void
test_given(void)
{
  const dk_str tags[] = {{"gpu", 3}, {"tpu", 3}};
  struct dk_runtime_options given = options(), o;
  struct dk_refusal refusal;

  given.flags = DK_RUNTIME_NO_LOCAL_SIGNAL | DK_RUNTIME_FAIL_FAST;
  given.name = "w-1";
  given.max_quarantined = 1;
  given.turn_lock_ms = 10000;
  given.turn_renewal_buffer_ms = 2000;
  given.cache_bytes = 1;
  given.tags = tags;
  given.n_tags = 2;
  given.tag_rule = DK_TAG_UNTAGGED_OR_LISTED;
  given.session_rule = DK_SESSION_ANY;
  cmp_ok(options_complete(&given, &o, &refusal), "==", DK_OK, "what is given is accepted");
  ok(o.flags == given.flags && o.max_quarantined == 1 && o.turn_lock_ms == 10000 &&
       o.cache_bytes == 1 && o.tags == tags && o.session_rule == DK_SESSION_ANY,
     "and kept");
}

/* Members that an older caller's struct lacks get the default, whatever follows the struct. */
static void
test_older_caller(void)
{
  struct dk_runtime_options given = options(), o;
  struct dk_refusal refusal;

  given.struct_size = offsetof(struct dk_runtime_options, activity_lock_ms);
  given.turn_lock_ms = 8000;
  given.activity_lock_ms = -5;
  given.tag_rule = 99;
  cmp_ok(options_complete(&given, &o, &refusal), "==", DK_OK, "an older caller is accepted");
  cmp_ok(o.turn_lock_ms, "==", 8000, "with what it has");
  cmp_ok(o.activity_lock_ms, "==", 30000, "and the default for what it has not");
  cmp_ok(o.struct_size, "==", sizeof(o), "completed");

  struct {
    struct dk_runtime_options options;
    uint64_t more;
  } newer = {options(), 1};
  newer.options.struct_size = sizeof(newer);
  cmp_ok(options_complete(&newer.options, &o, &refusal), "==", DK_OK, "so is a newer caller");
  cmp_ok(o.struct_size, "==", sizeof(o), "of whom this is read");
}

/* ---- renewals -------------------------------------------------------------------------------- */

/* As the papers count: lock - buffer, of at least half a second. */
static void
test_renewals(void)
{
  static const struct {
    int64_t lock, buffer;
    const char *found; /* NULL: accepted */
  } pairs[] = {
    {30000, 5000, NULL},
    {10000, 2000, NULL},
    {5500, 5000, NULL},
    {5000, 4500, NULL},
    {1000, 500, NULL},
    {501, 1, NULL},
    {5000, 4501, "5000 - 4501 = 499 ms"},
    {5000, 5000, "5000 - 5000 = 0 ms"},
    {5000, 5001, "5000 - 5001 = -1 ms"},
    {500, 1, "500 - 1 = 499 ms"},
  };
  struct dk_runtime_options o;

  for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
    struct dk_runtime_options turn = options(), activity = options();
    struct dk_refusal first = {.number = 0}, second = {.number = 0};
    turn.turn_lock_ms = activity.activity_lock_ms = pairs[i].lock;
    turn.turn_renewal_buffer_ms = activity.activity_renewal_buffer_ms = pairs[i].buffer;
    dk_status expected = pairs[i].found ? DK_INVALID : DK_OK;
    cmp_ok(options_complete(&turn, &o, &first), "==", expected, "a turn's %d - %d",
           (int)pairs[i].lock, (int)pairs[i].buffer);
    cmp_ok(options_complete(&activity, &o, &second), "==", expected, "an activity's");
    is(first.found, pairs[i].found ? pairs[i].found : "", "the words: %s", first.what);
    is(second.found, first.found, "the same for both");
  }
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Refused, with all parts, those given found in them; and *ret_options is left as it was. */
static void
refused(const struct dk_runtime_options *given, const char *where, const char *found,
        const char *next)
{
  struct dk_runtime_options o = {.max_events = 77};
  struct dk_refusal r = {.number = -1};

  cmp_ok(options_complete(given, &o, &r), "==", DK_INVALID, "%s: refused", where);
  is(r.where, where, "%s: %s", where, r.what);
  ok(r.what[0] && r.expected[0] && r.next[0], "%s: it has all parts", where);
  if (!ok(strstr(r.found, found) && strstr(r.next, next), "%s: found %s", where, found))
    diag("found \"%s\", next \"%s\"", r.found, r.next);
  cmp_ok(o.max_events, "==", 77, "%s: nothing is written", where);
}

static void
test_form(void)
{
  struct dk_runtime_options o = options();

  o.struct_size = 0;
  refused(&o, "struct_size", "0", "sizeof(options)");
  o = options();
  o.flags = 8 | DK_RUNTIME_FAIL_FAST;
  refused(&o, "flags", "0x8", "leave them out");
  o = options();
  o.registry = NULL;
  refused(&o, "registry", "NULL", "register");
  o = options();
  o.name = "";
  refused(&o, "name", "0 bytes", "NULL");
}

static void
test_ranges(void)
{
  struct dk_runtime_options o = options();

  o.orchestration_slots = 4097;
  refused(&o, "orchestration_slots", "4097", "0 for the default, 2");
  o = options();
  o.activity_slots = UINT32_MAX;
  refused(&o, "activity_slots", "4294967295", "0 for the default, 2");
  o = options();
  o.turn_lock_ms = -1;
  refused(&o, "turn_lock_ms", "-1", "0 for the default, 5000");
  o = options();
  o.activity_renewal_buffer_ms = INT64_MIN;
  refused(&o, "activity_renewal_buffer_ms", "-9223372036854775808", "0 for the default, 5000");
  o = options();
  o.poll_ms = INT64_MAX;
  refused(&o, "poll_ms", "9223372036854775807", "0 for the default, 30000");
  o = options();
  o.session_lock_ms = -3;
  refused(&o, "session_lock_ms", "-3", "0 for the default, 30000");
  o = options();
  o.max_backoff_ms = 10;
  refused(&o, "max_backoff_ms", "10", "set both");
}

static void
test_rules(void)
{
  const dk_str tags[] = {{"gpu", 3}, {"", 0}};
  struct dk_runtime_options o = options();

  o.tag_rule = 4;
  refused(&o, "tag_rule", "4", "one of them");
  o.tag_rule = -1;
  refused(&o, "tag_rule", "-1", "one of them");
  o.tag_rule = DK_TAG_LISTED;
  refused(&o, "tags", "tag_rule 1 with 0 tags", "list the tags");
  o.n_tags = 1;
  refused(&o, "tags", "tags is NULL", "list the tags");
  o.tags = tags;
  o.tag_rule = DK_TAG_UNTAGGED;
  refused(&o, "tags", "tag_rule 0 with 1 tags", "set tag_rule");
  o.tag_rule = DK_TAG_ANY;
  refused(&o, "tags", "tag_rule 3 with 1 tags", "set tag_rule");
  o.tag_rule = DK_TAG_LISTED;
  o.n_tags = 2;
  refused(&o, "tags", "tag 2 of 2, 0 bytes", "leave it out");
  o = options();
  o.session_rule = 3;
  refused(&o, "session_rule", "3", "one of them");
}

/* An activity that must run in a process needs a zygote. */
static void
test_zygote(void)
{
  const struct dk_activity_traits traits = {.struct_size = sizeof(traits),
                                            .isolation = DK_IN_PROCESS};
  struct dk_runtime_options o = options(), complete;
  struct dk_refusal refusal;

  dk_register_activity(registry, "in-thread", work, NULL);
  cmp_ok(options_complete(&o, &complete, &refusal), "==", DK_OK, "threads need no zygote");
  dk_register_activity(registry, "in-process", work, &traits);
  refused(&o, "zygote", "\"in-process\" with DK_IN_PROCESS", "start a zygote");
  o.zygote = (struct dk_zygote *)&o; /* is only compared with NULL */
  cmp_ok(options_complete(&o, &complete, &refusal), "==", DK_OK, "with one it is accepted");
}

int
main(void)
{
  plan(NO_PLAN);
  registry = dk_registry_new();
  test_defaults();
  test_given();
  test_older_caller();
  test_renewals();
  test_form();
  test_ranges();
  test_rules();
  test_zygote();
  dk_registry_free(registry);
  return exit_status();
}
