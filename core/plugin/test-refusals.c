/* SPDX-License-Identifier: Apache-2.0 */
/* What the host refuses before it calls: each with its status and a text that names the field, what
 * was expected and what was found; and that it accepts what is right, up to the limits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/plugin/testing/puppet.h"

/* A good request with one field made wrong: that is what overriding an initialiser is for. */
#pragma GCC diagnostic ignored "-Woverride-init"
#if !defined __clang__
#pragma GCC diagnostic ignored "-Woverride-init-side-effects"
#endif

enum { MAX_ID = 255, MAX_PAYLOAD = 64 * 1024 };

static char longest_id[MAX_ID + 1], too_long_id[MAX_ID + 2];
static char largest_payload[MAX_PAYLOAD], too_large_payload[MAX_PAYLOAD + 1];

static void
make_sizes(void)
{
  memset(longest_id, 'i', MAX_ID);
  memset(too_long_id, 'i', MAX_ID + 1);
}

/* The provider was not called, and the text names this. */
static void
expect_refused(struct puppet *puppet, dk_status status, dk_status expected, const char *words,
               const char *what)
{
  int acts = atomic_exchange(&puppet->acts, 0);
  const struct dk_failure *failure = dk_caller_failure(puppet->caller);

  cmp_ok(status, "==", expected, "%s", what);
  ok(strstr(failure->text, words), "its text has '%s': %s", words, failure->text);
  ok(acts == 0 && failure->by_host, "the provider was not asked");
}

static void
expect_passed(struct puppet *puppet, dk_status status, const char *what)
{
  cmp_ok(status, "==", DK_OK, "%s passes: %s", what, failure_text(puppet));
  cmp_ok(atomic_exchange(&puppet->acts, 0), "==", 1, "to the provider");
}

/* ---- items ----------------------------------------------------------------------------------- */

static dk_status
send(struct puppet *puppet, const struct dk_item *item)
{
  return dk_store_enqueue_for_orchestrator(puppet->store, puppet->caller, item);
}

#define MESSAGE(...)                                                                               \
  (&(struct dk_item){.struct_size = sizeof(struct dk_item), .instance = text("inst"), __VA_ARGS__})
#define BYTES(literal) ((struct dk_bytes){literal, sizeof(literal) - 1})
#define WRONG_MESSAGE(status, words, what, ...)                                                    \
  expect_refused(puppet, send(puppet, MESSAGE(__VA_ARGS__)), status, words, what)

static void
test_messages(struct puppet *puppet)
{
  expect_passed(puppet, send(puppet, MESSAGE(.id = text("m"), .flags = DK_REPEATED)), "a message");
  expect_passed(puppet, send(puppet, MESSAGE(.payload = BYTES("\0\xff"))), "any payload");
  expect_refused(puppet, send(puppet, &(struct dk_item){.struct_size = sizeof(struct dk_item)}),
                 DK_INVALID, "instance: expected 1 to 255 bytes, found nothing", "no instance");
  WRONG_MESSAGE(DK_INVALID, "struct_size: expected at least", "a size too small",
                .struct_size = 8);
  WRONG_MESSAGE(DK_UNSUPPORTED, "flags: expected none but 0x1, found 0x3", "an unknown flag",
                .flags = 3);
  WRONG_MESSAGE(DK_INVALID, "instance: expected 1 to 255 bytes, found none", "an empty instance",
                .instance = text(""));
  WRONG_MESSAGE(DK_INVALID, "instance: expected 1 to 255 bytes, found 256", "a long instance",
                .instance = text(too_long_id));
  WRONG_MESSAGE(DK_INVALID, "id: expected text without NUL", "a NUL in an id", .id = BYTES("a\0b"));
  WRONG_MESSAGE(DK_INVALID, "id: expected UTF-8", "an id that is no UTF-8",
                .id = BYTES("\xc0\xaf"));
  WRONG_MESSAGE(DK_INVALID, "id: expected a NUL after its 2 bytes",
                "an id without a NUL behind it", .id = {"abc", 2});
  WRONG_MESSAGE(DK_INVALID, "id: expected text, found 3 bytes at NULL", "an id at NULL",
                .id = {NULL, 3});
  WRONG_MESSAGE(DK_INVALID, "visible_at: expected at least 0, found -1", "a negative time",
                .visible_at = -1);
  WRONG_MESSAGE(DK_INVALID, "delay_ms: expected at least 0, found -5", "a negative delay",
                .delay_ms = -5);
  WRONG_MESSAGE(DK_INVALID, "activity_id: expected 0", "a message with an activity's number",
                .activity_id = 1);
  WRONG_MESSAGE(DK_INVALID, "tag: expected it to be absent", "a message with a tag",
                .tag = text("t"));
  WRONG_MESSAGE(DK_INVALID, "payload: expected bytes, found 9 at NULL", "a payload at NULL",
                .payload = {NULL, 9});
  expect_passed(puppet, send(puppet, MESSAGE(.id = text(longest_id))), "the longest id");
  expect_passed(puppet, send(puppet, MESSAGE(.payload = {largest_payload, MAX_PAYLOAD})),
                "the largest payload");
  WRONG_MESSAGE(DK_TOO_LARGE, "payload: expected at most 65536 bytes (max_payload), found 65537",
                "a payload one byte larger", .payload = {too_large_payload, MAX_PAYLOAD + 1});
  expect_refused(puppet, send(puppet, NULL), DK_INVALID, "item: expected an item", "no item");
}

static dk_status
send_work(struct puppet *puppet, struct dk_item item)
{
  item.instance = text("inst");
  return dk_store_enqueue_for_worker(puppet->store, puppet->caller, &item);
}

static void
test_activities(struct puppet *puppet)
{
  struct dk_item item = an_activity(7);

  expect_passed(puppet, send_work(puppet, item), "an activity");
  item.activity_id = 0;
  expect_refused(puppet, send_work(puppet, item), DK_INVALID,
                 "activity_id: expected 1 to 2^63 - 1, found 0", "activity 0");
  item.activity_id = UINT64_C(1) << 63;
  expect_refused(puppet, send_work(puppet, item), DK_INVALID, "activity_id: expected",
                 "an activity beyond 2^63 - 1");
  item = an_activity(7);
  item.id = text("x");
  expect_refused(puppet, send_work(puppet, item), DK_INVALID, "id: expected it to be absent",
                 "an activity with an id");
  item = an_activity(7);
  item.session = text("s");
  expect_refused(puppet, send_work(puppet, item), DK_UNSUPPORTED,
                 "does not declare durakit.sessions/1", "a session without the extension");
}

/* ---- fetches --------------------------------------------------------------------------------- */

static dk_status
fetch_with(struct puppet *puppet, struct dk_fetch_turn request)
{
  struct dk_turn *turn;

  return dk_store_fetch_orchestration_item(puppet->store, puppet->caller, &request, &turn);
}

static dk_status
fetch_work_with(struct puppet *puppet, struct dk_fetch_work request)
{
  struct dk_works *works;

  return dk_store_fetch_work_item(puppet->store, puppet->caller, &request, &works);
}

static void
test_fetches(struct puppet *puppet)
{
  struct dk_fetch_turn turn = a_fetch_turn();

  expect_passed(puppet, fetch_with(puppet, turn), "a fetch");
  turn.lock_ms = 0;
  expect_refused(puppet, fetch_with(puppet, turn), DK_INVALID,
                 "lock_ms: expected at least 1, found 0", "a lease of 0");
  turn = a_fetch_turn();
  turn.wait_until = -1;
  expect_refused(puppet, fetch_with(puppet, turn), DK_INVALID, "wait_until: expected at least 0",
                 "a wait until before 1970");
  turn = a_fetch_turn();
  turn.n_ranges = 1;
  expect_refused(puppet, fetch_with(puppet, turn), DK_INVALID, "ranges: expected a list",
                 "ranges at NULL");
  turn = a_fetch_turn();
  turn.owner = text("");
  expect_refused(puppet, fetch_with(puppet, turn), DK_INVALID, "owner: expected 1 to 255",
                 "an empty owner");
}

static void
test_fetches_of_work(struct puppet *puppet)
{
  struct dk_bytes tags[] = {text("a"), text("")};
  struct dk_fetch_work work = a_fetch_work(1);

  expect_passed(puppet, fetch_work_with(puppet, work), "a fetch of work");
  work.max_items = 0;
  expect_refused(puppet, fetch_work_with(puppet, work), DK_INVALID,
                 "max_items: expected at least 1, found 0", "no items");
  work = a_fetch_work(1);
  work.tag_rule = 4;
  expect_refused(puppet, fetch_work_with(puppet, work), DK_UNSUPPORTED,
                 "tag_rule: expected one of 0 to 3, found 4", "an unknown rule");
  work = a_fetch_work(1);
  work.tag_rule = DK_TAG_LISTED;
  work.tags = tags;
  work.n_tags = 2;
  expect_refused(puppet, fetch_work_with(puppet, work), DK_INVALID, "tags[1].tag: expected 1 to",
                 "an empty tag");
  work = a_fetch_work(1);
  work.session_rule = DK_SESSION_ANY;
  expect_refused(puppet, fetch_work_with(puppet, work), DK_UNSUPPORTED, "session_rule: expected",
                 "sessions without the extension");
  work = a_fetch_work(1);
  work.session_lock_ms = 5;
  expect_refused(puppet, fetch_work_with(puppet, work), DK_UNSUPPORTED, "session_lock_ms: expected",
                 "a lease of sessions without the extension");
}

/* ---- commits --------------------------------------------------------------------------------- */

static dk_status
commit(struct puppet *puppet, const struct dk_turn_result *result)
{
  return dk_store_ack_orchestration_item(puppet->store, puppet->caller, text("t"), result, NULL);
}

#define RESULT(...)                                                                                \
  (&(struct dk_turn_result){                                                                       \
    .struct_size = sizeof(struct dk_turn_result), .execution_id = 1, __VA_ARGS__})
#define WRONG_COMMIT(status, words, what, ...)                                                     \
  expect_refused(puppet, commit(puppet, RESULT(__VA_ARGS__)), status, words, what)

static void
test_commit_fields(struct puppet *puppet)
{
  const struct dk_event events[] = {{.event_id = 3}, {.event_id = 3}};
  const struct dk_activity activity = {.execution_id = 1};
  const struct dk_bytes no_id = {"", 0};
  const struct dk_kv_change kv = {.op = DK_KV_SET, .key = text("k")};

  expect_passed(puppet, commit(puppet, RESULT(.events = events, .n_events = 1)), "a commit");
  expect_passed(puppet, commit(puppet, RESULT(.execution_id = 0, .n_kv = 0)), "an empty commit");
  WRONG_COMMIT(DK_UNSUPPORTED, "flags: expected none but 0x1, found 0x2", "an unknown flag",
               .flags = 2);
  WRONG_COMMIT(DK_UNSUPPORTED, "status: expected one of 0 to 5, found 6", "an unknown status",
               .status = 6);
  WRONG_COMMIT(DK_INVALID, "events[1].event_id: expected more than 3, the one before, found 3",
               "event ids that do not ascend", .events = events, .n_events = 2);
  WRONG_COMMIT(DK_INVALID, "cancelled_activities[0].activity_id: expected 1 to", "activity 0",
               .cancelled_activities = &activity, .n_cancelled_activities = 1);
  WRONG_COMMIT(DK_INVALID, "cancelled_messages[0].id: expected 1 to", "an empty id",
               .cancelled_messages = &no_id, .n_cancelled_messages = 1);
  WRONG_COMMIT(DK_UNSUPPORTED, "does not declare durakit.kv/1", "kv without the extension",
               .kv = &kv, .n_kv = 1);
  WRONG_COMMIT(DK_UNSUPPORTED, "does not declare durakit.status/1",
               "a custom status without the extension", .custom_status_op = DK_CUSTOM_SET);
  WRONG_COMMIT(DK_INVALID, "name: expected 1 to", "an empty name", .name = text(""));
  WRONG_COMMIT(DK_INVALID, "execution_id: expected 1 to", "an execution beyond 2^63 - 1",
               .execution_id = UINT64_MAX);
  WRONG_COMMIT(DK_INVALID, "events: expected a list, found 2 elements at NULL", "events at NULL",
               .n_events = 2);
}

static void
test_commit_items(struct puppet *puppet)
{
  struct dk_item seven = an_activity(7), eight = an_activity(8), ours = an_activity(9);
  struct dk_item a = an_item("inst"), b = an_item("inst"), c = an_item("other");
  const struct dk_item *twice[] = {&seven, &eight, &seven};
  const struct dk_item *placed[] = {&ours};
  const struct dk_item *messages[] = {&a, &c, &b};

  ours.instance = text("inst");
  a.id = b.id = c.id = text("same");
  WRONG_COMMIT(DK_INVALID, "expected each activity once, found activity 7 of execution 1 twice",
               "an activity twice", .worker_items = twice, .n_worker_items = 3);
  expect_passed(puppet, commit(puppet, RESULT(.worker_items = twice, .n_worker_items = 2)),
                "two activities");
  WRONG_COMMIT(DK_INVALID, "worker_items[0].instance: expected it to be absent",
               "a worker item that names an instance", .worker_items = placed, .n_worker_items = 1);
  WRONG_COMMIT(DK_INVALID, "expected each id once for an instance, found 'same' twice",
               "a message id twice", .orchestrator_items = messages, .n_orchestrator_items = 3);
  expect_passed(puppet,
                commit(puppet, RESULT(.orchestrator_items = messages, .n_orchestrator_items = 2)),
                "one id for two instances");
  a.id = b.id = text(NULL);
  messages[1] = &b;
  expect_passed(puppet,
                commit(puppet, RESULT(.orchestrator_items = messages, .n_orchestrator_items = 2)),
                "two messages without ids");
  a.flags = DK_REPEATED;
  WRONG_COMMIT(DK_UNSUPPORTED, "orchestrator_items[0].flags: expected none but 0x0",
               "a repeated message inside a commit", .orchestrator_items = messages,
               .n_orchestrator_items = 2);
}

static void
test_commit_limits(struct puppet *puppet)
{
  enum { N = 101, LARGE = 16 };
  struct dk_activity activities[N];
  struct dk_event events[LARGE + 1];

  for (uint64_t i = 0; i < N; i++)
    activities[i] = (struct dk_activity){.execution_id = 1, .activity_id = i + 1};
  for (uint64_t i = 0; i <= LARGE; i++)
    events[i] = (struct dk_event){.event_id = i + 1, .payload = {largest_payload, MAX_PAYLOAD}};
  events[LARGE].payload = (struct dk_bytes){largest_payload, 1};

  expect_passed(puppet, commit(puppet, RESULT(.cancelled_activities = activities,
                                              .n_cancelled_activities = 100)), "100 items");
  WRONG_COMMIT(DK_TOO_LARGE, "expected at most 100 items in all lists (max_commit_items), found "
               "101", "one item more", .cancelled_activities = activities,
               .n_cancelled_activities = N);
  WRONG_COMMIT(DK_TOO_LARGE, "found 101", "one item more, in two lists",
               .cancelled_activities = activities, .n_cancelled_activities = 100, .events = events,
               .n_events = 1);
  expect_passed(puppet, commit(puppet, RESULT(.events = events, .n_events = LARGE)), "1 MiB");
  WRONG_COMMIT(DK_TOO_LARGE,
               "expected at most 1048576 bytes together (max_commit_bytes), found 1048577",
               "one byte more", .events = events, .n_events = LARGE + 1);
  WRONG_COMMIT(DK_TOO_LARGE, "output: expected at most 65536 bytes", "a large output",
               .output = {too_large_payload, MAX_PAYLOAD + 1});
  WRONG_COMMIT(DK_INVALID, "name: expected", "form comes before size",
               .output = {too_large_payload, MAX_PAYLOAD + 1}, .name = text(""));
}

/* ---- tokens, times, history ------------------------------------------------------------------ */

static dk_status
renew(struct puppet *puppet, struct dk_bytes token, int64_t ms)
{
  return dk_store_renew_work_item_lock(puppet->store, puppet->caller, token, ms);
}

static void
test_tokens(struct puppet *puppet)
{
  char token[2 * MAX_ID + 129];

  memset(token, 't', sizeof(token));
  expect_passed(puppet, renew(puppet, (struct dk_bytes){token, sizeof(token) - 1}, 1),
                "the longest token");
  expect_refused(puppet, renew(puppet, (struct dk_bytes){token, sizeof(token)}, 1), DK_LOCK_LOST,
                 "token: expected 1 to 638 bytes, found 639", "a longer one");
  expect_refused(puppet, renew(puppet, text(NULL), 1), DK_LOCK_LOST, "token: expected", "no token");
  expect_refused(puppet, renew(puppet, BYTES("a\0b"), 1), DK_LOCK_LOST,
                 "token: expected bytes without NUL", "a NUL in a token");
  expect_refused(puppet, renew(puppet, text("t"), 0), DK_INVALID,
                 "extend_ms: expected at least 1, found 0", "a renewal by 0");
  expect_refused(puppet,
                 dk_store_abandon_work_item(puppet->store, puppet->caller, text("t"), -1, 0),
                 DK_INVALID, "delay_ms: expected at least 0, found -1", "a negative delay");
}

static void
test_rest(struct puppet *puppet)
{
  struct dk_item item = an_item("inst");
  struct dk_work_result result = {.struct_size = sizeof(result), .completion = &item};
  struct dk_read_history read = {.struct_size = sizeof(read)};
  struct dk_history *history;

  expect_passed(puppet,
                dk_store_ack_work_item(puppet->store, puppet->caller, text("t"), &result),
                "an acknowledgement");
  item.instance = text("");
  expect_refused(puppet, dk_store_ack_work_item(puppet->store, puppet->caller, text("t"), &result),
                 DK_INVALID, "completion.instance: expected", "a completion without an instance");
  expect_refused(puppet, dk_store_read_history(puppet->store, puppet->caller, &read, &history),
                 DK_INVALID, "instance: expected", "a history without an instance");
}

/* ---- operations that do not exist, and unchecked calls --------------------------------------- */

static void
test_incomplete(void)
{
  struct puppet_descriptor described;
  struct puppet puppet = {.act = NULL};

  puppet_describe(&described);
  described.ops.enqueue_for_worker = NULL;
  puppet_open(&puppet, &described);
  expect_refused(&puppet, send_work(&puppet, an_activity(1)), DK_UNSUPPORTED,
                 "does not offer this operation", "an optional operation that is not there");
  puppet_close(&puppet);
}

static void
test_unchecked(void)
{
  struct puppet puppet = {.act = NULL};

  puppet_open(&puppet, NULL);
  dk_caller_set_unchecked(puppet.caller, 1);
  expect_passed(&puppet, send(&puppet, MESSAGE(.flags = 0x80)), "unchecked, an unknown flag");
  dk_caller_set_unchecked(puppet.caller, 0);
  expect_refused(&puppet, send(&puppet, MESSAGE(.flags = 0x80)), DK_UNSUPPORTED, "flags",
                 "checked again, it");
  puppet_close(&puppet);
}

int
main(void)
{
  struct puppet puppet = {.act = NULL};

  plan(NO_PLAN);
  make_sizes();
  puppet_open(&puppet, NULL);
  test_messages(&puppet);
  test_activities(&puppet);
  test_fetches(&puppet);
  test_fetches_of_work(&puppet);
  test_commit_fields(&puppet);
  test_commit_items(&puppet);
  test_commit_limits(&puppet);
  test_tokens(&puppet);
  test_rest(&puppet);
  puppet_close(&puppet);
  test_incomplete();
  test_unchecked();
  return done_testing();
}
