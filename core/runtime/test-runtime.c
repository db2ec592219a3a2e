/* SPDX-License-Identifier: Apache-2.0 */
/* Whole runtimes on the model: typical orchestrations, from start to end. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

enum { FAN = 20, SEQUENCE = 5, GENERATIONS = 5, HALVES = 30 };

/* ---- activities ------------------------------------------------------------------------------ */

static atomic_int n_runs;
static atomic_int n_tries;
static atomic_int n_cancelled;

static dk_result
add_one(dk_task *task, dk_str input)
{
  char *text = dk_task_alloc(task, 32);

  atomic_fetch_add(&n_runs, 1);
  snprintf(text, 32, "%d", atoi(input.ptr) + 1);
  return dk_done(task, dk_str_of(text));
}

static dk_result
fails_twice(dk_task *task, dk_str input)
{
  if (atomic_fetch_add(&n_tries, 1) < 2)
    return dk_error(task, "not yet");
  return dk_done(task, input);
}

/* Works until it is signalled to end, which is long before an hour. */
static dk_result
endless(dk_task *task, dk_str input)
{
  if (dk_task_sleep(task, 3600 * 1000) == DK_CAUSE_CANCELLED)
    atomic_fetch_add(&n_cancelled, 1);
  return dk_done(task, input);
}

/* ---- orchestrations -------------------------------------------------------------------------- */

static dk_result
hello(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_format(o, "hello %.*s", (int)input.len, input.ptr));
}

static dk_result
sequence(dk_orch *o, dk_str input)
{
  for (int i = 0; i < SEQUENCE; i++)
    input = dk_await(o, dk_activity(o, "add one", input));
  return dk_completed(o, input);
}

static dk_result
fan_out(dk_orch *o, dk_str input)
{
  dk_future *futures[FAN];
  int sum = 0;

  (void)input;
  for (int i = 0; i < FAN; i++)
    futures[i] = dk_activity(o, "add one", dk_format(o, "%d", i));
  dk_all_of(o, futures, FAN);
  for (int i = 0; i < FAN; i++)
    sum += atoi(dk_await(o, futures[i]).ptr);
  return dk_completed(o, dk_format(o, "%d", sum));
}

static dk_result
times_out(dk_orch *o, dk_str input)
{
  dk_future *work = dk_activity(o, "endless", input);
  dk_future *limit = dk_timer(o, 100);

  if (dk_select(o, work, limit) == limit)
    return dk_failed(o, "timed out");
  return dk_completed(o, dk_await(o, work));
}

static dk_result
has_child(dk_orch *o, dk_str input)
{
  dk_str said = dk_await(o, dk_child(o, "hello", input, NULL));

  dk_start_detached(o, "hello", dk_str_of("on-its-own"), dk_str_of("you"), NULL);
  return dk_completed(o, said);
}

static dk_result
fails(dk_orch *o, dk_str input)
{
  dk_fail(o, "it is %.*s", (int)input.len, input.ptr);
}

static dk_result
child_fails(dk_orch *o, dk_str input)
{
  dk_str error = {NULL, 0};
  int32_t how = dk_outcome(o, dk_child(o, "fails", input, NULL), &error);

  return dk_completed(o, dk_format(o, "%s: %.*s", how == DK_FAULTED ? "faulted" : "what?",
                                   (int)error.len, error.ptr));
}

static dk_result
generations(dk_orch *o, dk_str input)
{
  int n = atoi(dk_await(o, dk_activity(o, "add one", input)).ptr);

  if (n < GENERATIONS)
    dk_continue_as_new(o, dk_format(o, "%d", n), NULL);
  return dk_completed(o, dk_format(o, "execution %d", (int)dk_orch_execution(o)));
}

/* Three messages; the last was sent in the time of an execution that did not take it. */
static dk_result
listens(dk_orch *o, dk_str input)
{
  dk_str first, second;

  if (input.len == 0) {
    first = dk_await(o, dk_external(o, "go"));
    second = dk_await(o, dk_dequeue(o, "mail"));
    dk_continue_as_new(o, dk_format(o, "%.*s %.*s", (int)first.len, first.ptr, (int)second.len,
                                    second.ptr), NULL);
  }
  first = dk_await(o, dk_dequeue(o, "mail"));
  return dk_completed(o, dk_format(o, "%.*s %.*s", (int)input.len, input.ptr, (int)first.len,
                                   first.ptr));
}

static dk_result
tries_again(dk_orch *o, dk_str input)
{
  const struct dk_retry retry = {
    .struct_size = sizeof(retry), .attempts = 3, .first_delay_ms = 1, .max_delay_ms = 10};
  dk_str value = {NULL, 0};
  int32_t how = dk_activity_retried(o, "fails twice", input, NULL, &retry, &value);

  return dk_completed(o, dk_format(o, "%s: %.*s", how == DK_SUCCEEDED ? "succeeded" : "faulted",
                                   (int)value.len, value.ptr));
}

static dk_result
works(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, "endless", input)));
}

static dk_result
calls_wrongly(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, input.len == 1000000 ? dk_timer(o, 1) : NULL));
}

static struct rig
begin(void)
{
  struct rig rig = rig_begin();

  rig_activity(&rig, "add one", add_one);
  rig_activity(&rig, "fails twice", fails_twice);
  rig_activity(&rig, "endless", endless);
  rig_orchestration(&rig, "hello", hello);
  rig_orchestration(&rig, "sequence", sequence);
  rig_orchestration(&rig, "fan out", fan_out);
  rig_orchestration(&rig, "times out", times_out);
  rig_orchestration(&rig, "has child", has_child);
  rig_orchestration(&rig, "fails", fails);
  rig_orchestration(&rig, "child fails", child_fails);
  rig_orchestration(&rig, "generations", generations);
  rig_orchestration(&rig, "listens", listens);
  rig_orchestration(&rig, "tries again", tries_again);
  rig_orchestration(&rig, "works", works);
  rig_orchestration(&rig, "calls wrongly", calls_wrongly);
  return rig;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const char *
result_of(struct rig *rig, const char *instance, const char *name, const char *input)
{
  rig_run(rig, instance, name, input);
  return rig_result(rig, instance);
}

static void
test_programs(struct rig *rig)
{
  is(result_of(rig, "hello", "hello", "world"), "completed: hello world", "hello");
  is(result_of(rig, "sequence", "sequence", "0"), "completed: 5", "five in a row");
  is(result_of(rig, "fan", "fan out", ""), "completed: 210", "twenty at once");
  cmp_ok(atomic_load(&n_runs), "==", SEQUENCE + FAN, "each activity ran once");
  is(result_of(rig, "child", "has child", "kid"), "completed: hello kid", "a child");
  is(rig_result(rig, "on-its-own"), "completed: hello you", "one of its own");
  is(result_of(rig, "fails", "fails", "bad"), "failed: it is bad", "a failure");
  is(result_of(rig, "c-fails", "child fails", "bad"), "completed: faulted: it is bad",
     "a child's failure reaches its parent");
  is(result_of(rig, "gen", "generations", "0"), "completed: execution 5", "continued as new");
  is(result_of(rig, "retry", "tries again", "x"), "completed: succeeded: x", "a retry");
  cmp_ok(atomic_load(&n_tries), "==", 3, "which took three attempts");
}

static void
test_select(struct rig *rig)
{
  is(result_of(rig, "slow", "times out", ""), "failed: timed out", "select with a time limit");
  ok(UNTIL(atomic_load(&n_cancelled) == 1), "the activity that lost is signalled");
  cmp_ok(rig_count_events(rig, "slow", EVENT_DROPPED), "==", 1, "and the history has the drop");
}

static void
test_messages(struct rig *rig)
{
  rig_run(rig, "mail", "listens", "");
  dk_client_enqueue(rig->client, dk_str_of("mail"), "mail", dk_str_of("b"));
  dk_client_enqueue(rig->client, dk_str_of("mail"), "mail", dk_str_of("c"));
  dk_client_raise(rig->client, dk_str_of("mail"), "go", dk_str_of("a"));
  is(rig_result(rig, "mail"), "completed: a b c", "events and queues, over a new execution too");
}

static void
test_cancel(struct rig *rig)
{
  rig_run(rig, "long", "works", "");
  ok(UNTIL(rig_counters(rig).activities_started >
           rig_counters(rig).activities_completed + rig_counters(rig).activities_failed +
             rig_counters(rig).activities_cancelled),
     "an activity runs");
  dk_client_cancel(rig->client, dk_str_of("long"), "no use", "me");
  is(rig_result(rig, "long"), "cancelled: no use (me)", "an instance is cancelled");
  ok(UNTIL(atomic_load(&n_cancelled) == 2), "and its activity is signalled");
  ok(UNTIL(listener_matching(rig->listener, DK_LOG_ACTIVITY_CANCELLED, DK_CAUSE_CANCELLED,
                             DK_LEARNT_BY_COMMIT) == 2),
     "both learnt it by the commit");
}

static void
test_wrong_use(struct rig *rig)
{
  rig_run(rig, "wrong", "calls wrongly", "");
  ok(listener_until(rig->listener, DK_LOG_PROGRAMMING_ERROR, 1), "a wrong call is logged");
  dk_client_cancel(rig->client, dk_str_of("wrong"), "no use", "me");
  is(rig_result(rig, "wrong"), "cancelled: no use (me)", "and its instance can be cancelled");
  cmp_ok(listener_level(rig->listener, DK_LEVEL_ERROR), "==", 1, "it was logged once");
}

static void
test_all(void)
{
  struct rig rig = begin();
  char reason[256];

  rig_start(&rig);
  test_programs(&rig);
  test_select(&rig);
  test_messages(&rig);
  test_cancel(&rig);
  test_wrong_use(&rig);
  ok(dk_runtime_healthy(rig.runtime, reason, sizeof(reason)), "it is healthy");
  cmp_ok(listener_count(rig.listener, DK_LOG_SHORT_LIMIT), "==", 1, "the limit is short here");
  cmp_ok(listener_level(rig.listener, DK_LEVEL_WARNING), "==", 1, "that was the one warning");
  cmp_ok(listener_level(rig.listener, DK_LEVEL_ERROR), "==", 1, "but one error: the wrong call");
  if (listener_level(rig.listener, DK_LEVEL_WARNING) > 1)
    listener_show(rig.listener, DK_LEVEL_WARNING);
  struct dk_leftover leftover = rig_stop(&rig, RIG_WAIT_MS);
  cmp_ok(leftover.turns + leftover.activities + leftover.quarantined, "==", 0, "nothing is left");
  rig_end(&rig);
}

/* Two runtimes share the work; one stops in the middle of it. */
static void
test_two(void)
{
  struct rig rig = begin();
  char name[32];
  int completed = 0;

  atomic_store(&n_runs, 0);
  rig_start(&rig);
  struct dk_runtime *other = rig_start_another(&rig);
  for (int i = 0; i < HALVES; i++) {
    snprintf(name, sizeof(name), "shared-%d", i);
    rig_run(&rig, name, "sequence", "0");
  }
  ok(UNTIL(atomic_load(&n_runs) >= HALVES), "two runtimes are in the middle of it");
  struct dk_leftover leftover = {.struct_size = sizeof(leftover)};
  ok(dk_runtime_stop(other, RIG_WAIT_MS, &leftover) == 1, "one stops");
  cmp_ok(leftover.not_given_back + leftover.quarantined, "==", 0, "and leaves nothing");
  for (int i = 0; i < HALVES; i++) {
    snprintf(name, sizeof(name), "shared-%d", i);
    completed += strcmp(rig_result(&rig, name), "completed: 5") == 0;
  }
  cmp_ok(completed, "==", HALVES, "the other one completes all");
  cmp_ok(atomic_load(&n_runs), "==", SEQUENCE * HALVES, "and nothing ran twice");
  cmp_ok(listener_level(rig.listener, DK_LEVEL_WARNING), "==", 0, "nothing was worth a warning");
  rig_end(&rig);
}

static void
test_refusals(void)
{
  struct rig rig = begin();
  struct dk_refusal refusal = {0};
  struct dk_runtime *runtime = NULL;

  rig.options.turn_lock_ms = 1000;
  rig.options.turn_renewal_buffer_ms = 900;
  ok(dk_runtime_start(rig.store, &rig.options, &runtime, &refusal) == DK_INVALID,
     "a buffer that leaves too little time is refused");
  is(refusal.where, "turn_renewal_buffer_ms", "by its name");
  rig.options.turn_lock_ms = rig.options.turn_renewal_buffer_ms = 0;
  rig.options.session_rule = DK_SESSION_ANY;
  ok(dk_runtime_start(rig.store, &rig.options, &runtime, &refusal) == DK_UNSUPPORTED,
     "sessions are refused on a store that has none");
  ok(rig_says(refusal.next, "session_rule"), "with what to do");
  ok(dk_runtime_start(NULL, &rig.options, &runtime, &refusal) == DK_INVALID,
     "without a store nothing starts");
  ok(!runtime, "nothing was started");
  rig_end(&rig);
}

int
main(void)
{
  test_all();
  test_two();
  test_refusals();
  return done_testing();
}
