/* SPDX-License-Identifier: Apache-2.0 */
/* What changes the metrics of turns: requests to cancel, and what commits cancel.  In each test one
 * thing happens, and then all changes are compared, so that a metric that is not named has not
 * changed. */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/prometheus-text.h"
#include "core/runtime/testing/whole-runtime.h"

/* Nothing is renewed by itself while a test runs. */
enum { LONG_MS = 600000 };

#define REQUESTS(source, outcome, name)                                                            \
  "dk_cancel_requests_total{source=\"" source "\",outcome=\"" outcome "\",name=\"" name "\"} +1\n"
#define CANCELLED(code, phase, name)                                                               \
  "dk_activities_cancelled_total{code=\"" code "\",phase=\"" phase "\",name=\"" name "\"} +1\n"
#define TURNS(outcome, n) "dk_turns_total{outcome=\"" outcome "\"} " n "\n"
#define ENDED(outcome) "dk_orchestrations_total{outcome=\"" outcome "\"} +1\n"
#define TOLD                                                                                       \
  "dk_activity_cancel_notification_seconds_count{path=\"local\"} +1\n"                             \
  "dk_activity_cancel_grace_total{outcome=\"kept\"} +1\n"
#define ACKED "dk_work_acks_total{result=\"ok\"} +1\n"
#define FAILED(code) \
  ENDED("failed") "dk_orchestrations_failed_total{code=\"" code "\"} +1\n"
#define DELAYED(code, n) "dk_delayed_total{code=\"" code "\"} " n "\n"
#define WORK(outcome) "dk_activities_total{outcome=\"" outcome "\"} +1\n"

/* ---- activities ------------------------------------------------------------------------------ */

static atomic_int n_held;
static sem_t may_end;

static dk_result
held(dk_task *task, dk_str input)
{
  atomic_fetch_add(&n_held, 1);
  dk_task_sleep(task, 3600 * 1000);
  return dk_done(task, input);
}

static dk_result
gated(dk_task *task, dk_str input)
{
  while (sem_wait(&may_end) != 0)
    continue;
  return dk_done(task, input);
}

/* ---- orchestrations -------------------------------------------------------------------------- */

static const struct dk_activity_options for_nobody = {
  .struct_size = sizeof(for_nobody), .tag = {"absent", 6}};

static dk_result
hello(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_format(o, "hello %.*s", (int)input.len, input.ptr));
}

/* One activity that runs, and one that no worker takes. */
static dk_result
works(dk_orch *o, dk_str input)
{
  dk_activity(o, "held", input);
  dk_activity_with(o, "left", input, &for_nobody);
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

/* Ends its activity, which no worker takes, for the requested reason. */
static dk_result
ends(dk_orch *o, dk_str input)
{
  dk_future *left = dk_activity_with(o, "left", input, &for_nobody);
  dk_str how = dk_await(o, dk_external(o, "go"));

  if (strcmp(how.ptr, "timeout") == 0)
    dk_select(o, left, dk_timer(o, 1));
  else if (strcmp(how.ptr, "other") == 0)
    dk_select(o, left, dk_external(o, "more"));
  else if (strcmp(how.ptr, "drop") == 0)
    dk_drop(o, left);
  else if (strcmp(how.ptr, "fail") == 0)
    dk_fail(o, "as requested");
  else if (strcmp(how.ptr, "continue") == 0)
    dk_continue_as_new(o, dk_str_of("x"), NULL);
  while (strcmp(how.ptr, "limit") == 0)
    dk_now(o);
  if (strcmp(how.ptr, "complete") != 0)
    dk_await(o, dk_external(o, "end"));
  return dk_completed(o, how);
}

/* Of its activities one has ended by the time of its end. */
static dk_result
mixes(dk_orch *o, dk_str other)
{
  dk_activity(o, "gated", other);
  dk_activity_with(o, other.ptr, other, &for_nobody);
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

static dk_result
alone(dk_orch *o, dk_str input)
{
  dk_activity(o, "gated", input);
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

static dk_result
waits(dk_orch *o, dk_str input)
{
  (void)input;
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

static dk_result
parent(dk_orch *o, dk_str input)
{
  const struct dk_child_options options = {.struct_size = sizeof(options),
                                           .instance = dk_str_of("kid")};

  dk_child(o, "waits", input, &options);
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

/* ---- comparing ------------------------------------------------------------------------------- */

static struct rig
begin(void)
{
  struct rig rig = rig_begin();

  atomic_store(&n_held, 0);
  rig_activity(&rig, "held", held);
  rig_activity(&rig, "gated", gated);
  rig_activity(&rig, "left", held);
  rig_orchestration(&rig, "hello", hello);
  rig_orchestration(&rig, "works", works);
  rig_orchestration(&rig, "ends", ends);
  rig_orchestration(&rig, "mixes", mixes);
  rig_orchestration(&rig, "alone", alone);
  rig_orchestration(&rig, "waits", waits);
  rig_orchestration(&rig, "parent", parent);
  rig.options.max_attempts = 3;
  rig.options.max_events = 100;
  rig.options.turn_lock_ms = rig.options.activity_lock_ms = LONG_MS;
  return rig;
}

static void
keep(void *context, dk_str text)
{
  struct scrape **scrape = context;

  *scrape = scrape_read(text);
}

static struct scrape *
scrape(struct rig *rig)
{
  struct scrape *found = NULL;

  if (dk_runtime_metrics(rig->runtime, keep, &found) != DK_OK || found->complaint[0])
    BAIL_OUT("the metrics cannot be read: %s", found ? found->complaint : "no memory");
  return found;
}

/* Whether exactly this has changed since then. */
static bool
has_counted(struct rig *rig, const struct scrape *before, const char *expected, bool is_told)
{
  struct scrape *now = scrape(rig);
  char *changes = scrape_changes(before, now);
  bool is_expected = scrape_alike(changes, expected);

  if (!is_expected && is_told)
    diag("counted:\n%sexpected:\n%s", changes, expected);
  free(changes);
  scrape_free(now);
  return is_expected;
}

/* What has changed comes to this; and while another instance comes and goes, nothing is added but
 * what that one does. */
static void
counts(struct rig *rig, struct scrape *before, const char *expected, const char *what)
{
  static const char its_own[] = TURNS("committed", "+1") ENDED("completed");
  static int n_others;
  char other[16];

  UNTIL(has_counted(rig, before, expected, false));
  ok(has_counted(rig, before, expected, true), "%s: this is counted", what);
  struct scrape *then = scrape(rig);
  snprintf(other, sizeof(other), "other-%d", n_others++);
  rig_run(rig, other, "hello", "you");
  rig_result(rig, other);
  UNTIL(has_counted(rig, then, its_own, false));
  ok(has_counted(rig, then, its_own, true), "and nothing else");
  scrape_free(then);
  scrape_free(before);
}

static void
raise_event(struct rig *rig, const char *instance, const char *event, const char *data)
{
  if (dk_client_raise(rig->client, dk_str_of(instance), event, dk_str_of(data)) != DK_OK)
    BAIL_OUT("%s is not raised: %s", event, dk_client_error(rig->client));
}

static void
cancel(struct rig *rig, const char *instance)
{
  if (dk_client_cancel(rig->client, dk_str_of(instance), "enough", "me") != DK_OK)
    BAIL_OUT("%s is not cancelled: %s", instance, dk_client_error(rig->client));
}

/* An instance whose first turn has ended, and what had been counted by then. */
static struct scrape *
waits_there(struct rig *rig, const char *name, const char *input)
{
  rig_start(rig);
  rig_run(rig, "i", name, input);
  UNTIL(rig_counters(rig).turns_committed == 1);
  return scrape(rig);
}

/* ---- requests to cancel ---------------------------------------------------------------------- */

static void
test_requested(void)
{
  struct rig rig = begin();

  rig_start(&rig);
  rig_run(&rig, "i", "works", "x");
  UNTIL(atomic_load(&n_held) == 1);
  struct scrape *before = scrape(&rig);
  cancel(&rig, "i");
  counts(&rig, before, REQUESTS("api", "requested", "works")
         CANCELLED("terminal_cancelled", "locked", "held")
         CANCELLED("terminal_cancelled", "queued", "left") TOLD TURNS("committed", "+1")
         ENDED("cancelled") WORK("cancelled"), "an instance is cancelled");
  before = scrape(&rig);
  cancel(&rig, "i");
  counts(&rig, before, REQUESTS("api", "terminal", "works") TURNS("committed", "+1"),
         "and once more, too late");
  rig_end(&rig);
}

/* A client's own second request is not stored beside the first: this one is another sender's. */
static void
test_requested_twice(void)
{
  const struct message another = {.kind = MESSAGE_CANCEL, .text = dk_str_of("enough")};
  struct rig rig = begin();

  rig_run(&rig, "i", "waits", "");
  cancel(&rig, "i");
  rig_send(&rig, "i", "another", &another);
  rig_start(&rig);
  counts(&rig, NULL, REQUESTS("api", "requested", "waits")
         REQUESTS("api", "already_requested", "waits") TURNS("committed", "+1")
         ENDED("cancelled"), "two ask at once, before its start");
  rig_end(&rig);

  rig = begin();
  rig_run(&rig, "i", "waits", "");
  cancel(&rig, "i");
  cancel(&rig, "i");
  rig_start(&rig);
  counts(&rig, NULL, REQUESTS("api", "requested", "waits") TURNS("committed", "+1")
         ENDED("cancelled"), "a client asks twice, before its start");
  rig_end(&rig);
}

static void
test_not_found(void)
{
  struct rig rig = begin();

  rig_start(&rig);
  cancel(&rig, "absent");
  counts(&rig, NULL, REQUESTS("api", "not_found", "") TURNS("committed", "+1")
         TURNS("stalled", "+3") DELAYED("no_start", "+3"), "it was not started");
  rig_end(&rig);
}

/* The parent's end cancels the child, whose end then finds no parent. */
static void
test_by_parent(void)
{
  struct rig rig = begin();

  rig_start(&rig);
  rig_run(&rig, "i", "parent", "");
  UNTIL(rig_counters(&rig).turns_committed == 2);
  struct scrape *before = scrape(&rig);
  raise_event(&rig, "i", "go", "");
  counts(&rig, before, REQUESTS("parent", "requested", "waits") TURNS("committed", "+3")
         "dk_orchestrations_total{outcome=\"completed\"} +1\n" ENDED("cancelled"),
         "a child is cancelled");
  rig_end(&rig);
}

static void
test_refused(void)
{
  struct rig rig = begin();
  const struct message request = {
    .kind = MESSAGE_CANCEL, .text = dk_str_of("no"),
    .parent = {.instance = dk_str_of("stranger"), .execution = 1, .source = 2}};

  struct scrape *before = waits_there(&rig, "waits", "");
  rig_send(&rig, "i", NULL, &request);
  counts(&rig, before, REQUESTS("parent", "refused", "waits") TURNS("committed", "+1"),
         "a stranger asks");
  rig_end(&rig);
}

/* A commit that fails counts nothing; its repetition does. */
static void
test_dropped(void)
{
  struct rig rig = begin();

  struct scrape *before = waits_there(&rig, "ends", "x");
  faulty_plan(rig.faulty, FAULTY_ACK_TURN, 0, 1, FAULT_REFUSE, DK_REFUSED);
  cancel(&rig, "i");
  counts(&rig, before, REQUESTS("api", "requested", "ends")
         CANCELLED("terminal_cancelled", "queued", "left") TURNS("committed", "+1")
         TURNS("stalled", "+1") ENDED("cancelled") DELAYED("refused", "+1"),
         "a commit is refused at first");
  rig_end(&rig);
}

/* ---- why activities are cancelled ------------------------------------------------------------ */

static void
test_code(const char *how, const char *event, uint32_t flags, const char *expected)
{
  struct rig rig = begin();

  rig.options.flags = flags;
  struct scrape *before = waits_there(&rig, "ends", "x");
  raise_event(&rig, "i", "go", how);
  if (event) {
    UNTIL(rig_counters(&rig).turns_committed == 2);
    raise_event(&rig, "i", event, "");
  }
  counts(&rig, before, expected, how);
  rig_end(&rig);
}

static void
test_codes(void)
{
  test_code("timeout", NULL, 0, CANCELLED("select_loser_timeout", "queued", "left")
            TURNS("committed", "+2"));
  test_code("other", "more", 0, CANCELLED("select_loser_other", "queued", "left")
            TURNS("committed", "+2"));
  test_code("drop", NULL, 0, CANCELLED("dropped", "queued", "left") TURNS("committed", "+1"));
  test_code("complete", NULL, 0, CANCELLED("terminal_completed", "queued", "left")
            TURNS("committed", "+1") ENDED("completed"));
  test_code("fail", NULL, 0, CANCELLED("terminal_failed", "queued", "left") TURNS("committed", "+1")
            FAILED("application"));
  test_code("continue", NULL, 0, CANCELLED("terminal_continued_as_new", "queued", "left")
            TURNS("committed", "+2") ENDED("continued"));
  test_code("limit", NULL, DK_RUNTIME_FAIL_FAST, CANCELLED("limit", "queued", "left")
            TURNS("committed", "+1") FAILED("limit"));
}

/* It was delivered too often to processes that crashed with it. */
static void
test_poison(void)
{
  struct rig rig = begin();
  const struct dk_fetch_turn request = {.struct_size = sizeof(request), .lock_ms = LONG_MS};

  scrape_free(waits_there(&rig, "ends", "x"));
  rig_stop(&rig, 60000);
  raise_event(&rig, "i", "go", "complete");
  for (int i = 0; i < 3; i++) {
    struct dk_turn *turn = NULL;
    dk_caller_reset(rig.caller);
    if (dk_store_fetch_orchestration_item(rig.store, rig.caller, &request, &turn) != DK_OK ||
        dk_store_abandon_orchestration_item(rig.store, rig.caller, turn->head.lock_token, 0, 0) !=
          DK_OK)
      BAIL_OUT("no turn: %s", dk_caller_failure(rig.caller)->text);
  }
  rig_start(&rig);
  counts(&rig, NULL, CANCELLED("poison", "queued", "left") TURNS("committed", "+1")
         FAILED("poison"), "poison");
  rig_end(&rig);
}

/* ---- what a commit finds of them ------------------------------------------------------------- */

/* The instance's end waits until its activity has ended, and then continues: what the commit
 * finds is `expected`. */
static void
test_absent(const char *name, const char *input, const char *expected, const char *what)
{
  struct rig rig = begin();

  struct scrape *before = waits_there(&rig, name, input);
  UNTIL(rig_counters(&rig).activities_started == 1);
  scrape_free(before);
  before = scrape(&rig);
  faulty_plan(rig.faulty, FAULTY_ACK_TURN, 0, 1, FAULT_HANG, DK_OK);
  raise_event(&rig, "i", "go", "");
  faulty_until_hanging(rig.faulty, 1);
  sem_post(&may_end);
  UNTIL(rig_counters(&rig).activities_completed == 1);
  faulty_release(rig.faulty);
  counts(&rig, before, expected, what);
  rig_end(&rig);
}

/* The commit succeeds, but its answer is lost; it is repeated, and the store does not report
 * again. */
static void
test_unknown(void)
{
  struct rig rig = begin();

  struct scrape *before = waits_there(&rig, "ends", "x");
  faulty_plan(rig.faulty, FAULTY_ACK_TURN, 0, 1, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  raise_event(&rig, "i", "go", "complete");
  counts(&rig, before, CANCELLED("terminal_completed", "unknown", "left")
         TURNS("committed", "+1") ENDED("completed"), "an answer is lost");
  rig_end(&rig);
}

static void
test_phases(void)
{
  /* Its result arrives after the end: one more turn, which does nothing. */
  test_absent("alone", "x", CANCELLED("terminal_completed", "absent", "gated") ACKED
              TURNS("committed", "+2") ENDED("completed") WORK("completed"), "one has ended");
  test_absent("mixes", "gated", CANCELLED("terminal_completed", "queued", "gated")
              CANCELLED("terminal_completed", "absent", "gated") ACKED TURNS("committed", "+2")
              ENDED("completed") WORK("completed"), "one of two alike has ended");
  test_absent("mixes", "left", CANCELLED("terminal_completed", "unknown", "gated")
              CANCELLED("terminal_completed", "unknown", "left") ACKED TURNS("committed", "+2")
              ENDED("completed") WORK("completed"), "it is unknown which of two has ended");
  test_unknown();
}

/* ---- no memory ------------------------------------------------------------------------------- */

static _Thread_local bool is_out_of_memory;

bool __real_dk_text_failed(const struct dk_text *text);
bool __wrap_dk_text_failed(const struct dk_text *text);
bool
__wrap_dk_text_failed(const struct dk_text *text)
{
  return is_out_of_memory || __real_dk_text_failed(text);
}

static void
test_no_memory(void)
{
  struct rig rig = begin();
  struct scrape *found = NULL;

  rig_start(&rig);
  is_out_of_memory = true;
  dk_status status = dk_runtime_metrics(rig.runtime, keep, &found);
  is_out_of_memory = false;
  cmp_ok(status, "==", DK_NO_MEMORY, "without memory there is no text");
  ok(!found, "and nothing is written");
  rig_end(&rig);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Whatever a name is, the text can be read, and the name is in it. */
static void
test_hostile_name(void)
{
  static const char name[] = "a \"name\"\\\n\xf0\x9f\xa6\x80";
  struct rig rig = begin();

  rig_orchestration(&rig, name, waits);
  rig_run(&rig, "i", name, "");
  cancel(&rig, "i");
  rig_start(&rig);
  counts(&rig, NULL, REQUESTS("api", "requested", "a \\\"name\\\"\\\\\\n\xf0\x9f\xa6\x80")
         TURNS("committed", "+1") ENDED("cancelled"), "a name that has it all");
  struct scrape *now = scrape(&rig);
  ok(scrape_find(now, "dk_cancel_requests_total", "name", name), "and it can be read back");
  scrape_free(now);
  rig_end(&rig);
}

int
main(void)
{
  plan(NO_PLAN);
  sem_init(&may_end, 0, 0);
  test_requested();
  test_requested_twice();
  test_not_found();
  test_by_parent();
  test_refused();
  test_dropped();
  test_codes();
  test_poison();
  test_phases();
  test_no_memory();
  test_hostile_name();
  sem_destroy(&may_end);
  return done_testing();
}
