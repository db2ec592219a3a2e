/* SPDX-License-Identifier: Apache-2.0 */
/* What a retry cannot repair is delayed until it is repaired or cancelled: no instance ends because
 * of it, and no result is lost.  With DK_RUNTIME_FAIL_DELAYED it fails after max_attempts. */
#include <stdatomic.h>
#include <stdio.h>

#include <durakit/manage.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

enum { MANY_EVENTS = 20, ATTEMPTS = 2, FOR_EVER_MS = 600000 };

/* ---- code ------------------------------------------------------------------------------------ */

static atomic_int n_deeds;

static dk_result
deed(dk_task *task, dk_str input)
{
  atomic_fetch_add(&n_deeds, 1);
  return dk_done(task, input);
}

static dk_result
good(dk_orch *o, dk_str input)
{
  (void)input;
  dk_str done = dk_await(o, dk_external(o, "go"));
  for (int i = 0; i < MANY_EVENTS; i++)
    dk_now(o);
  return dk_completed(o, dk_await(o, dk_activity(o, "deed", done)));
}

/* Another version of that code under the same number. */
static dk_result
changed(dk_orch *o, dk_str input)
{
  (void)input;
  return dk_completed(o, dk_await(o, dk_external(o, "went")));
}

static dk_result
calls_wrongly(dk_orch *o, dk_str input)
{
  dk_await(o, dk_external(o, "go"));
  dk_await(o, NULL);
  return dk_completed(o, input);
}

static dk_result
never_ends(dk_orch *o, dk_str input)
{
  dk_await(o, dk_external(o, "go"));
  for (;;)
    dk_now(o);
  return dk_completed(o, input);
}

static dk_result
does_two(dk_orch *o, dk_str input)
{
  dk_future *both[] = {dk_activity(o, "one", input), dk_activity(o, "other", input)};

  dk_all_of(o, both, 2);
  return dk_completed(o, input);
}

/* ---- causes ---------------------------------------------------------------------------------- */

/* A deployment that cannot continue an instance that an earlier one has begun. */
struct cause {
  const char *what;
  const char *name;            /* as shown by the status */
  dk_orchestration_fn *code;   /* NULL: none is registered */
  bool lacks_activity;
  uint32_t max_events;
  dk_status commits;           /* DK_OK: they succeed; else their answer */
  const char *message;         /* which comes before the event, and cannot be read */
  enum code code_of_failure;
  const char *word;            /* in the log */
};

static const struct cause causes[] = {
  {.what = "changed code", .name = "nondeterminism", .code = changed,
   .code_of_failure = CODE_NONDETERMINISM, .word = "went"},
  {.what = "a wrong call", .name = "wrong_call", .code = calls_wrongly,
   .code_of_failure = CODE_APPLICATION, .word = "NULL"},
  {.what = "code that does not end", .name = "overdue", .code = never_ends,
   .max_events = UINT32_MAX, .code_of_failure = CODE_POISON, .word = "max_turn_ms"},
  {.what = "a limit of events", .name = "limit", .code = good, .max_events = MANY_EVENTS / 2,
   .code_of_failure = CODE_LIMIT, .word = "dk_continue_as_new"},
  {.what = "a turn that the store does not take", .name = "limit", .code = good,
   .commits = DK_TOO_LARGE, .word = "the store does not accept its turn"},
  {.what = "no such orchestration", .name = "unregistered", .code_of_failure = CODE_UNREGISTERED,
   .word = "no orchestration \"work\""},
  {.what = "no such activity", .name = "unregistered", .code = good,
   .lacks_activity = true, .code_of_failure = CODE_NONE, .word = "no activity of this name"},
  {.what = "a message that cannot be read", .name = "unreadable", .code = good,
   .message = "this is no JSON", .code_of_failure = CODE_CORRUPT,
   .word = "the payload is not JSON"},
};
enum { N_CAUSES = sizeof(causes) / sizeof(causes[0]) };

static struct dk_registry *
registry_of(dk_orchestration_fn *code, bool has_activity)
{
  struct dk_registry *registry = dk_registry_new();

  if (!registry ||
      (code && dk_register_orchestration(registry, "work", NULL, code) != DK_OK) ||
      (has_activity && dk_register_activity(registry, "deed", deed, NULL) != DK_OK))
    BAIL_OUT("no registry");
  return registry;
}

static void
raise_event(struct rig *rig, const char *data)
{
  if (dk_client_raise(rig->client, dk_str_of("i"), "go", dk_str_of(data)) != DK_OK)
    BAIL_OUT("the event is not raised: %s", dk_client_error(rig->client));
}

static void
cancel(struct rig *rig, const char *instance)
{
  if (dk_client_cancel(rig->client, dk_str_of(instance), "enough", "me") != DK_OK)
    BAIL_OUT("no cancellation: %s", dk_client_error(rig->client));
}

/* An instance that waits for its event, left by a deployment that knew it. */
static struct rig
begin(void)
{
  struct rig rig = rig_begin();

  atomic_store(&n_deeds, 0);
  rig_orchestration(&rig, "work", good);
  rig_activity(&rig, "deed", deed);
  rig_start(&rig);
  rig_run(&rig, "i", "work", "");
  if (!UNTIL(rig_counters(&rig).turns_committed == 1))
    BAIL_OUT("no first turn");
  rig_stop(&rig, 10000);
  rig.options.max_attempts = ATTEMPTS;
  return rig;
}

/* The deployment that cannot continue, and the event that it cannot take.  The registry is freed by
 * the caller, when it has stopped. */
static struct dk_registry *
deploy(struct rig *rig, const struct cause *cause)
{
  struct dk_registry *bad = registry_of(cause->code, !cause->lacks_activity);

  rig->options.registry = bad;
  rig->options.max_events = cause->max_events;
  rig->options.max_turn_ms = cause->code == never_ends ? 50 : 0;
  if (cause->commits != DK_OK)
    faulty_plan(rig->faulty, FAULTY_ACK_TURN, 0, UINT32_MAX, FAULT_REFUSE, cause->commits);
  if (cause->message)
    rig_send_raw(rig, "i", cause->message);
  raise_event(rig, "done");
  rig_start(rig);
  return bad;
}

static uint64_t
n_delays(struct rig *rig)
{
  return rig_counters(rig).turns_stalled + rig_counters(rig).activities_put_off;
}

struct told {
  const char *name, *word;
  bool is_told;
};

static int32_t
look_for_reason(void *context, const struct dk_waiting *message)
{
  struct told *told = context;

  if (strcmp(message->kind, "delayed") == 0 && strcmp(message->name.ptr, told->name) == 0)
    told->is_told |= strstr(message->text.ptr, told->word) && message->by.len > 0;
  return 0;
}

/* Whether the store shows why the instance is delayed. */
static bool
is_told_why(struct rig *rig, const char *name, const char *word)
{
  struct told told = {.name = name, .word = word};
  dk_status status =
    dk_client_messages(rig->client, dk_str_of("i"), look_for_reason, &told);

  if (status != DK_OK && status != DK_NOT_FOUND)
    BAIL_OUT("no messages: %s", dk_client_error(rig->client));
  return told.is_told;
}

/* Whether health is good and reports the delay; name NULL: no delay. */
static bool
is_told_by_health(struct rig *rig, const char *name)
{
  char reason[512];

  if (!dk_runtime_healthy(rig->runtime, reason, sizeof(reason)))
    return false;
  return name ? rig_says(reason, "delayed: 1 ") && rig_says(reason, name) : *reason == '\0';
}

static bool
is_over(struct rig *rig, const char *instance)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};

  if (dk_client_status(rig->client, dk_str_of(instance), &info) != DK_OK)
    BAIL_OUT("no status: %s", dk_client_error(rig->client));
  return info.status != DK_RUNNING && info.status != DK_NOT_STARTED;
}

static void
heal(struct rig *rig)
{
  faulty_heal(rig->faulty);
  rig_stop(rig, 10000);
  rig->options.registry = rig->registry;
  rig->options.max_events = 0;
  rig->options.max_turn_ms = 0;
  rig->options.flags = 0;
}

/* ---- turns and activities -------------------------------------------------------------------- */

static void
test_delayed(const struct cause *cause)
{
  struct rig rig = begin();
  struct dk_registry *bad = deploy(&rig, cause);

  ok(UNTIL(n_delays(&rig) > 3 * ATTEMPTS), "%s: delayed again and again", cause->what);
  ok(!is_over(&rig, "i"), "its instance has not ended");
  int32_t number =
    cause->code == calls_wrongly ? DK_LOG_PROGRAMMING_ERROR : DK_LOG_STALLED;
  ok(rig_says(listener_latest(rig.listener, number).text, cause->word), "the log has the reason");
  cmp_ok(listener_matching(rig.listener, number, -1, -1), "==", 1, "once");
  ok(UNTIL(is_told_why(&rig, cause->name, cause->word)), "and so has the store");
  ok(UNTIL(is_told_by_health(&rig, cause->name)), "and health");
  heal(&rig);
  rig_start(&rig);
  if (cause->message) /* no deployment repairs that */
    cancel(&rig, "i");
  is(rig_result(&rig, "i"), cause->message ? "cancelled: enough (me)" : "completed: done",
     "it ends well when the cause is repaired");
  cmp_ok(atomic_load(&n_deeds), "==", cause->message ? 0 : 1, "and its activity runs once");
  ok(UNTIL(!is_told_why(&rig, cause->name, cause->word)), "no delay is reported any more");
  rig_end(&rig);
  dk_registry_free(bad);
}

/* However long the delay is. */
static void
test_cancelled(const struct cause *cause)
{
  struct rig rig = begin();

  rig.options.backoff_ms = rig.options.max_backoff_ms = FOR_EVER_MS;
  struct dk_registry *bad = deploy(&rig, cause);
  ok(UNTIL(n_delays(&rig) == 1), "%s: delayed for long", cause->what);
  faulty_heal(rig.faulty);
  cancel(&rig, "i");
  is(rig_result(&rig, "i"), "cancelled: enough (me)", "it is cancelled at once");
  if (!cause->lacks_activity) /* whose row is deleted, so that no worker fetches it */
    ok(UNTIL(is_told_by_health(&rig, NULL)), "health reports no delay any more");
  heal(&rig);
  rig_end(&rig);
  dk_registry_free(bad);
}

static enum code
code_of_end(struct rig *rig)
{
  struct dk_arena arena;
  size_t n = 0;

  dk_arena_init(&arena);
  const struct event *events = rig_events(rig, &arena, "i", 0, &n);
  enum code code = n > 0 ? events[n - 1].code : CODE_NONE;
  dk_arena_done(&arena);
  return code;
}

static void
test_failed(const struct cause *cause)
{
  struct rig rig = begin();

  if (cause->commits != DK_OK)
    return rig_end(&rig); /* of this the failure cannot be committed either: test-turn-commit.c */
  rig.options.flags = DK_RUNTIME_FAIL_DELAYED;
  struct dk_registry *bad = deploy(&rig, cause);
  ok(rig_says(rig_result(&rig, "i"), "failed: "), "%s: failed, where that is wanted", cause->what);
  cmp_ok(n_delays(&rig), ">=", 1, "after it was delayed");
  if (cause->code_of_failure != CODE_NONE)
    is(code_name(code_of_end(&rig)), code_name(cause->code_of_failure), "with its code");
  ok(listener_until(rig.listener, DK_LOG_ORCHESTRATION_ENDED, 1), "its end is logged");
  struct heard end = listener_latest(rig.listener, DK_LOG_ORCHESTRATION_ENDED);
  cmp_ok(end.level, "==",
         code_of_end(&rig) == CODE_APPLICATION ? DK_LEVEL_DEBUG : DK_LEVEL_WARNING,
         "it is warned of if the code has not said so itself: %s", end.text);
  is(end.instance, "i", "by its name");
  heal(&rig);
  rig_end(&rig);
  dk_registry_free(bad);
}

/* ---- what cannot be read --------------------------------------------------------------------- */

static struct dk_turn *
fetch(struct rig *rig)
{
  const struct dk_fetch_turn request = {.struct_size = sizeof(request), .lock_ms = 60000};
  struct dk_turn *turn = NULL;

  dk_caller_reset(rig->caller);
  if (dk_store_fetch_orchestration_item(rig->store, rig->caller, &request, &turn) != DK_OK)
    BAIL_OUT("there is no turn: %s", dk_caller_failure(rig->caller)->text);
  return turn;
}

/* The next turn ends with one event of this payload and this status, whatever it says. */
static void
commit_raw(struct rig *rig, const char *payload, int32_t status)
{
  struct dk_turn *turn = fetch(rig);
  const struct dk_event event = {1, dk_str_of(payload)};
  const struct dk_turn_result result = {.struct_size = sizeof(result),
                                        .execution_id = 1,
                                        .status = status,
                                        .events = &event,
                                        .n_events = 1,
                                        .name = dk_str_of("work"),
                                        .version = dk_str_of("1.0.0")};
  struct dk_commit_outcome outcome;

  if (dk_store_ack_orchestration_item(rig->store, rig->caller, turn->head.lock_token, &result,
                                      &outcome) != DK_OK)
    BAIL_OUT("no commit: %s", dk_caller_failure(rig->caller)->text);
}

static struct rig
begin_raw(const char *payload, int32_t status)
{
  struct rig rig = rig_begin();

  rig_orchestration(&rig, "work", good);
  rig.options.max_attempts = ATTEMPTS;
  rig_run(&rig, "i", "work", "");
  commit_raw(&rig, payload, status);
  return rig;
}

static uint32_t
n_messages(struct rig *rig)
{
  const struct dk_read_messages request = {.struct_size = sizeof(request),
                                           .instance = dk_str_of("i")};
  struct dk_messages *messages = NULL;

  dk_caller_reset(rig->caller);
  if (dk_store_read_messages(rig->store, rig->caller, &request, &messages) != DK_OK)
    BAIL_OUT("no messages: %s", dk_caller_failure(rig->caller)->text);
  uint32_t n = 0;
  for (size_t i = 0; i < messages->n_items; i++) /* without the reasons of its delay */
    n += !strstr(messages->items[i].payload.ptr, "\"kind\":\"delayed\"");
  return n;
}

/* For example, a newer release has written it: what arrives meanwhile is kept for that release. */
static void
test_unreadable_history(void)
{
  const struct message result = {.kind = MESSAGE_ACTIVITY_COMPLETED, .execution = 1, .source = 1,
                                 .text = dk_str_of("dear")};
  struct rig rig = begin_raw("{\"v\":1,\"kind\":\"newer\"}", DK_RUNNING);

  rig_send(&rig, "i", NULL, &result);
  rig_start(&rig);
  ok(UNTIL(n_delays(&rig) > 3 * ATTEMPTS), "a history that cannot be read delays its instance");
  ok(!is_over(&rig, "i"), "which has not ended");
  ok(rig_says(listener_latest(rig.listener, DK_LOG_STALLED).text, "event 1"),
     "the log has the reason");
  ok(n_messages(&rig) >= 1, "a result that arrives for it is kept");
  cmp_ok(rig_counters(&rig).strays, "==", 0, "and does not count as a stray");
  cancel(&rig, "i");
  is(rig_result(&rig, "i"), "cancelled: enough (me)", "it can be cancelled");
  rig_end(&rig);
}

static void
test_lost_continuation(void)
{
  const char *started = "{\"v\":1,\"kind\":\"started\",\"name\":\"work\",\"version\":\"1.0.0\"}";
  struct rig rig = begin_raw(started, DK_CONTINUED_AS_NEW);

  raise_event(&rig, "lost");
  rig_start(&rig);
  ok(UNTIL(n_delays(&rig) > 3 * ATTEMPTS), "one waits for the message that continues it");
  ok(!is_over(&rig, "i"), "for as long as it takes");
  cancel(&rig, "i");
  is(rig_result(&rig, "i"), "cancelled: enough (me)", "or until it is cancelled");
  rig_end(&rig);
}

/* Perhaps it is the start itself. */
static void
test_unreadable_start(void)
{
  struct rig rig = rig_begin();

  rig.options.max_attempts = ATTEMPTS;
  rig_send_raw(&rig, "i", "{\"v\":9}");
  rig_start(&rig);
  ok(UNTIL(n_delays(&rig) > 3 * ATTEMPTS), "a message for an instance that is not known");
  ok(n_messages(&rig) >= 1, "is kept if it cannot be read");
  cmp_ok(rig_counters(&rig).messages_dropped, "==", 0, "and not dropped");
  rig_end(&rig);
}

static void
test_cancel_of_unreadable_start(void)
{
  const struct dk_item start = {.struct_size = sizeof(start), .instance = dk_str_of("i"),
                                .id = dk_str_of("start"), .payload = dk_str_of("{\"v\":9}")};
  struct rig rig = rig_begin();

  rig.options.backoff_ms = rig.options.max_backoff_ms = FOR_EVER_MS;
  dk_caller_reset(rig.caller);
  if (dk_store_enqueue_for_orchestrator(rig.store, rig.caller, &start) != DK_OK)
    BAIL_OUT("no start: %s", dk_caller_failure(rig.caller)->text);
  rig_start(&rig);
  ok(UNTIL(n_delays(&rig) == 1), "a start that cannot be read is delayed");
  cancel(&rig, "i");
  is(rig_result(&rig, "i"), "cancelled: enough (me)", "and can be cancelled");
  rig_end(&rig);
}

/* ---- not started ----------------------------------------------------------------------------- */

/* For example, no worker has registered its name. */
static struct rig
begin_unregistered(bool has_admin, int64_t backoff_ms)
{
  struct rig rig = has_admin ? rig_begin() : rig_begin_on(faulty_open_plain_model());

  rig.options.max_attempts = ATTEMPTS;
  rig.options.backoff_ms = rig.options.max_backoff_ms = backoff_ms;
  rig_start(&rig);
  rig_run(&rig, "i", "work", "");
  ok(UNTIL(n_delays(&rig) >= 1), "the start of an unregistered orchestration is delayed");
  return rig;
}

static void
test_cancel_of_start(bool from_elsewhere)
{
  struct rig rig = begin_unregistered(true, FOR_EVER_MS);

  if (from_elsewhere) {
    rig_stop(&rig, 10000);
    rig_start(&rig); /* another worker, which knows nothing of it */
  }
  cancel(&rig, "i");
  is(rig_result(&rig, "i"), "cancelled: enough (me)", "it is cancelled at once%s",
     from_elsewhere ? ", even by another worker" : "");
  ok(UNTIL(n_messages(&rig) == 0), "and nothing of it is left");
  rig_end(&rig);
}

/* For far more deliveries than a message for an unknown instance may have. */
static void
test_event_before_start(bool has_admin)
{
  struct rig rig = begin_unregistered(has_admin, 20);

  raise_event(&rig, "early");
  uint64_t before = n_delays(&rig);
  ok(UNTIL(n_delays(&rig) > before + 4 * ATTEMPTS), "again and again");
  rig_stop(&rig, 10000);
  rig_orchestration(&rig, "work", good);
  rig_activity(&rig, "deed", deed);
  rig_start(&rig);
  is(rig_result(&rig, "i"), "completed: early", "what arrived for it meanwhile waits with it");
  cmp_ok(rig_counters(&rig).messages_dropped, "==", 0, "nothing is dropped");
  rig_end(&rig);
}

/* Each of several activities that cannot run is reported. */
static void
test_two_activities(void)
{
  struct rig rig = rig_begin();

  rig_orchestration(&rig, "two", does_two);
  rig_start(&rig);
  rig_run(&rig, "i", "two", "");
  ok(UNTIL(is_told_why(&rig, "unregistered", "(one)") &&
           is_told_why(&rig, "unregistered", "(other)")),
     "the store tells of both activities");
  cancel(&rig, "i");
  is(rig_result(&rig, "i"), "cancelled: enough (me)", "and is cancelled at once");
  rig_end(&rig);
}

int
main(void)
{
  for (int i = 0; i < N_CAUSES; i++) {
    test_delayed(&causes[i]);
    test_cancelled(&causes[i]);
    test_failed(&causes[i]);
  }
  test_unreadable_history();
  test_lost_continuation();
  test_unreadable_start();
  test_cancel_of_unreadable_start();
  test_cancel_of_start(false);
  test_cancel_of_start(true);
  test_event_before_start(true);
  test_event_before_start(false);
  test_two_activities();
  return done_testing();
}
