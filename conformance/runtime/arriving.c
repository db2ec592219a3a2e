/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that come too late, twice, or at the worst moment; and two runtimes on one store. */
#include "conformance/runtime/runs.h"

#include <stdio.h>

#include "conformance/kit/engine.h"

/* ---- by hand --------------------------------------------------------------------------------- */

/* An activity that no runtime here fetches: the check itself is its worker. */
static dk_future *
elsewhere(dk_orch *o)
{
  const struct dk_activity_options options = {.struct_size = sizeof(options),
                                              .tag = dk_str_of("elsewhere")};

  return dk_activity_with(o, "echo", dk_str_of(""), &options);
}

static const char *
completion(struct dk_check *t, uint64_t execution, uint64_t activity, const char *text)
{
  struct dk_bytes payload = payload_completion(run_arena(), execution, activity, text);

  expect(t, payload.ptr != NULL, "there is memory for a message");
  return payload.ptr;
}

/* Fetches the waiting activity, and acknowledges it with a result. */
static void
do_elsewhere(struct dk_check *t, uint64_t activity, const char *text)
{
  struct dk_work_item *work = fetch_work(t);

  expect_equal(t, work->work.item->activity_id, activity, "the waiting activity");
  must(t, ack_work(t, work->work.lock_token, .to = "i", .id = "done",
                   .payload = completion(t, 1, activity, text)));
}

/* ---- completions ----------------------------------------------------------------------------- */

/* One activity completes, one loses, one is awaited. */
static dk_result
three_steps(dk_orch *o, dk_str input)
{
  dk_await(o, dk_activity(o, "echo", input));
  dk_future *loser = elsewhere(o);
  dk_future *limit = dk_timer(o, 10);
  dk_select(o, loser, limit);
  dk_str result = dk_await(o, elsewhere(o));
  dk_await(o, dk_external(o, "go"));
  return dk_completed(o, result);
}

/* Completions that are already in the history; of a loser; of another execution; and the second of
 * two in one batch. */
void
run_late_completions(struct dk_check *t)
{
  given_started(t, "three steps", three_steps, "");
  eventually(t, count_events(t, "i", 1, "activity", NULL) == 3, "the third activity waits");
  uint64_t known = event_id(t, "i", "activity", 1), lost = event_id(t, "i", "activity", 2);
  uint64_t open = event_id(t, "i", "activity", 3);
  stop_runtime(t);
  must(t, enqueue(t, "i", .id = "1", .payload = completion(t, 1, known, "again")));
  must(t, enqueue(t, "i", .id = "2", .payload = completion(t, 1, lost, "too late")));
  must(t, enqueue(t, "i", .id = "3", .payload = completion(t, 7, open, "of another")));
  do_elsewhere(t, open, "first");
  must(t, enqueue(t, "i", .id = "4", .payload = completion(t, 1, open, "second")));
  start_runtime(t);
  eventually(t, counters(t).strays == 4, "four messages are stray");
  raise_event(t, "i", "go");
  expect_end(t, "i", "completed: first");
  expect_equal(t, count_events(t, "i", 1, "activity_completed", NULL), 2, "completions");
  expect_equal(t, counters(t).strays, 4, "stray messages");
  expect_no_warning(t);
  expect_queues_empty(t);
}

static dk_result
waits_elsewhere(dk_orch *o, dk_str input)
{
  dk_str result = dk_await(o, elsewhere(o));

  dk_await(o, dk_activity(o, "echo", input));
  return dk_completed(o, result);
}

/* The activity was acknowledged before the turn that cancels: its completion counts, and it is not
 * ended. */
void
run_completion_queued(struct dk_check *t)
{
  given_started(t, "waits elsewhere", waits_elsewhere, "");
  eventually(t, count_events(t, "i", 1, "activity", NULL) == 1, "an activity waits");
  uint64_t activity = event_id(t, "i", "activity", 1);
  stop_runtime(t);
  do_elsewhere(t, activity, "done");
  cancel_instance(t, "i");
  start_runtime(t);
  expect_end(t, "i", "cancelled: no use (the check)");
  expect_equal(t, count_events(t, "i", 1, "activity_completed", NULL), 1, "completions");
  expect_equal(t, count_events(t, "i", 1, "ended", NULL), 0, "ended activities");
  expect_equal(t, atomic_load(&marks.echoed), 0, "activities that began after the cancellation");
  expect_no_warning(t);
  expect_nothing_left(t);
}

/* ---- the moment of a cancellation ------------------------------------------------------------ */

static atomic_int tries;

static dk_result
fails(dk_task *task, dk_str input)
{
  (void)input;
  atomic_fetch_add(&tries, 1);
  return dk_error(task, "not yet");
}

static dk_result
retries(dk_orch *o, dk_str input)
{
  const struct dk_retry retry = {
    .struct_size = sizeof(retry), .attempts = 5, .first_delay_ms = 3600 * 1000};
  dk_str value;

  dk_activity_retried(o, "fails", input, NULL, &retry, &value);
  return dk_completed(o, value);
}

void
run_cancel_in_retry(struct dk_check *t)
{
  atomic_store(&tries, 0);
  given_runtime(t);
  given_orchestration(t, "retries", retries);
  given_activity(t, "fails", fails, NULL);
  start_runtime(t);
  start_instance(t, "i", "retries", "");
  eventually(t, count_events(t, "i", 1, "timer", NULL) == 1, "it waits for the second attempt");
  cancel_and_expect(t, "i");
  expect_equal(t, atomic_load(&tries), 1, "attempts");
  expect_equal(t, counters(t).activities_cancelled, 0, "cancelled activities");
  expect_no_warning(t);
  expect_nothing_left(t);
}

/* Runs an activity and continues as new, for ever. */
static dk_result
goes_on(dk_orch *o, dk_str input)
{
  dk_await(o, dk_activity(o, "echo", input));
  dk_continue_as_new(o, input, NULL);
}

static dk_result
goes_on_when_told(dk_orch *o, dk_str input)
{
  dk_await(o, dk_external(o, "go"));
  dk_continue_as_new(o, input, NULL);
}

/* One is cancelled in the turn that would continue, one at any moment. */
void
run_cancel_continuing(struct dk_check *t)
{
  given_runtime(t);
  given_orchestration(t, "goes on", goes_on);
  given_orchestration(t, "goes on when told", goes_on_when_told);
  start_instance(t, "told", "goes on when told", "");
  raise_event(t, "told", "go");
  cancel_instance(t, "told");
  start_runtime(t);
  expect_end(t, "told", "cancelled: no use (the check)");
  start_instance(t, "i", "goes on", "");
  eventually(t, atomic_load(&marks.echoed) >= 3, "it has reached its third execution");
  cancel_and_expect(t, "i");
  eventually(t, counters(t).orchestrations_cancelled == 2, "both are counted");
  expect_no_warning(t);
  expect_queues_empty(t);
}

static dk_result
echoes(dk_orch *o, dk_str input)
{
  for (int i = 0; i < 3; i++)
    input = dk_await(o, dk_activity(o, "echo", input));
  return dk_completed(o, input);
}

/* Cancelled before its first turn, after the start and before it. */
void
run_cancel_before_start(struct dk_check *t)
{
  given_runtime(t);
  given_orchestration(t, "echoes", echoes);
  start_instance(t, "behind", "echoes", "");
  cancel_instance(t, "behind");
  cancel_instance(t, "before");
  start_instance(t, "before", "echoes", "");
  start_runtime(t);
  expect_end(t, "behind", "cancelled: no use (the check)");
  expect_end(t, "before", "cancelled: no use (the check)");
  expect_equal(t, atomic_load(&marks.echoed), 0, "activities that have run");
  expect_no_warning(t);
  expect_nothing_left(t);
}

/* ---- two runtimes ---------------------------------------------------------------------------- */

static void
name_of(char name[32], uint32_t i)
{
  snprintf(name, 32, "i-%u", i);
}

/* Two runtimes on two handles; one stops in the middle, and the other completes everything,
 * once. */
void
run_two_runtimes(struct dk_check *t)
{
  uint32_t n = kit_under_memcheck() ? 6 : 20;
  char name[32];

  given_runtime(t);
  given_orchestration(t, "echoes", echoes);
  start_runtime(t);
  start_second_runtime(t, another_handle(t));
  for (uint32_t i = 0; i < n; i++) {
    name_of(name, i);
    start_instance(t, name, "echoes", "x");
  }
  eventually(t, atomic_load(&marks.echoed) >= n, "a third of the activities have run");
  stop_second_runtime(t);
  for (uint32_t i = 0; i < n; i++) {
    name_of(name, i);
    expect_end(t, name, "completed: x");
  }
  expect_equal(t, atomic_load(&marks.echoed), 3 * n, "activities that have run");
  expect_no_warning(t);
  expect_nothing_left(t);
}
