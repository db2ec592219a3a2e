/* SPDX-License-Identifier: Apache-2.0 */
/* How an activity is notified that it is cancelled, what it may do then, and what other activities
 * may do meanwhile. */
#include "conformance/runtime/runs.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "conformance/kit/engine.h"

static dk_result
two_activities(dk_orch *o, dk_str input)
{
  dk_future *first = dk_activity(o, "obeys", input);
  dk_future *second = dk_activity(o, "errs", input);

  dk_all(o, first, second);
  return dk_completed(o, dk_str_of("all"));
}

static struct dk_runtime_options *
given_works(struct dk_check *t)
{
  struct dk_runtime_options *options = given_runtime(t);

  given_orchestration(t, "works", works);
  return options;
}

/* The instance "i" runs only this activity, and its body has begun. */
static void
given_running(struct dk_check *t, const char *activity)
{
  start_runtime(t);
  start_instance(t, "i", "works", activity);
  eventually(t, atomic_load(&marks.began) == 1, "the activity begins");
}

/* ---- the token ------------------------------------------------------------------------------- */

/* The id of the first activity of "works": its event in the history. */
void
run_token(struct dk_check *t)
{
  given_works(t);
  given_running(t, "obeys");
  expect_equal(t, atomic_load(&marks.set_at_first), 0, "tokens that were set at the beginning");
  expect_equal(t, atomic_load(&marks.ended), 0, "bodies that have ended");
  uint64_t activity = event_id(t, "i", "activity", 1);
  cancel_and_expect(t, "i");
  uint32_t renewed = renewals_of(activity);
  expect_told(t, 1);
  expect(t, renewals_of(activity) <= renewed + 1, "its second renewal at the latest finds no row");
  eventually(t, atomic_load(&marks.told) == 1, "the token says that it is cancelled");
  expect_no_warning(t);
  expect_nothing_left(t);
}

/* ---- the grace ------------------------------------------------------------------------------- */

void
run_grace_kept(struct dk_check *t)
{
  given_works(t);
  given_running(t, "obeys");
  cancel_and_expect(t, "i");
  expect_told(t, 1);
  eventually(t, counters(t).grace_kept == 1, "the body ends within its grace");
  expect_equal(t, heard(DK_LOG_GRACE_EXCEEDED), 0, "warnings of an expired grace");
  expect_no_warning(t);
  expect_nothing_left(t);
}

/* The only slot runs the next activity while the body still runs. */
void
run_grace_exceeded(struct dk_check *t)
{
  struct dk_runtime_options *options = given_works(t);

  options->grace_ms = 100;
  options->activity_slots = 1;
  given_running(t, "deaf");
  cancel_and_expect(t, "i");
  expect_told(t, 1);
  eventually(t, heard(DK_LOG_GRACE_EXCEEDED) == 1, "a warning that the grace has expired");
  start_instance(t, "next", "works", "echo");
  expect_end(t, "next", "completed: echo");
  expect_equal(t, atomic_load(&marks.ended), 0, "bodies that have ended");
  release_deaf();
  eventually(t, counters(t).quarantined_now == 0, "the body ends at last");
  expect_equal(t, counters(t).grace_exceeded, 1, "activities without grace left");
  expect_equal(t, counters(t).grace_kept, 0, "activities that kept their grace");
  expect_nothing_left(t);
}

/* One succeeds and one fails, and neither has an effect. */
void
run_grace_dropped(struct dk_check *t)
{
  given_started(t, "two activities", two_activities, "");
  eventually(t, atomic_load(&marks.began) == 2, "both begin");
  cancel_and_expect(t, "i");
  expect_told(t, 2);
  eventually(t, counters(t).grace_kept == 2, "both end within their grace");
  expect_equal(t, counters(t).activities_completed + counters(t).activities_failed, 0, "results");
  expect_equal(t, count_events(t, "i", 1, "activity_completed", NULL), 0, "completions");
  expect_equal(t, count_events(t, "i", 1, "activity_failed", NULL), 0, "failures");
  expect_no_warning(t);
  expect_nothing_left(t);
}

/* It has not noticed the cancellation when it sends its result: the store refuses that. */
void
run_late_result(struct dk_check *t)
{
  given_works(t)->flags = DK_RUNTIME_NO_LOCAL_SIGNAL;
  given_running(t, "deaf");
  cancel_and_expect(t, "i");
  expect_equal(t, heard(DK_LOG_ACTIVITY_CANCELLED), 0, "activities that were notified");
  release_deaf();
  eventually(t, heard(DK_LOG_RESULT_REFUSED) == 1, "the store refuses the result");
  expect_equal(t, heard_how(DK_LOG_RESULT_REFUSED, DK_CAUSE_CANCELLED, DK_LEARNT_BY_ACK), 1,
               "results that were refused because the row was deleted");
  expect_equal(t, counters(t).strays, 0, "stray messages");
  expect_no_warning(t);
  expect_queues_empty(t);
}

/* ---- the grace of a process ------------------------------------------------------------------ */

static int began_pipe[2] = {-1, -1};

/* In a process of its own, which crashes when it is notified. */
static dk_result
crashes(dk_task *task, dk_str input)
{
  if (write(began_pipe[1], "b", 1) == 1)
    dk_task_sleep(task, 3600 * 1000);
  raise(SIGKILL);
  return dk_done(task, input);
}

static bool
has_begun(void)
{
  struct pollfd set = {.fd = began_pipe[0], .events = POLLIN};

  return poll(&set, 1, 0) == 1;
}

void
run_grace_crash(struct dk_check *t)
{
  const struct dk_activity_traits traits = {.struct_size = sizeof(traits),
                                            .isolation = DK_IN_PROCESS};

  given_works(t);
  given_activity(t, "crashes", crashes, &traits);
  expect(t, pipe(began_pipe) == 0, "there are descriptors for a pipe");
  given_processes(t);
  start_runtime(t);
  start_instance(t, "i", "works", "crashes");
  eventually(t, has_begun(), "the activity begins in its process");
  cancel_and_expect(t, "i");
  expect_told(t, 1);
  eventually(t, counters(t).grace_kept == 1, "its process ends within the grace");
  expect_equal(t, counters(t).activities_completed + counters(t).activities_failed, 0, "results");
  expect_no_warning(t);
  expect_nothing_left(t);
  close(began_pipe[0]);
  close(began_pipe[1]);
}

/* ---- before it begins, and after it ended ---------------------------------------------------- */

void
run_before_start(struct dk_check *t)
{
  given_works(t)->activity_slots = 1;
  given_running(t, "obeys");
  start_instance(t, "waits", "works", "echo");
  eventually(t, count_events(t, "waits", 1, "activity", NULL) == 1, "an activity waits");
  cancel_and_expect(t, "waits");
  cancel_and_expect(t, "i");
  expect_told(t, 1);
  start_instance(t, "next", "works", "echo");
  expect_end(t, "next", "completed: echo");
  expect_equal(t, atomic_load(&marks.echoed), 1, "activities that have run");
  expect_equal(t, counters(t).activities_started, 2, "activities that were begun");
  expect_no_warning(t);
  expect_nothing_left(t);
}

static dk_result
echoes_and_waits(dk_orch *o, dk_str input)
{
  dk_await(o, dk_activity(o, "echo", input));
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

/* A completion before the cancellation stays, and there is nothing to cancel. */
void
run_completes_before(struct dk_check *t)
{
  given_started(t, "echoes and waits", echoes_and_waits, "");
  eventually(t, count_events(t, "i", 1, "activity_completed", NULL) == 1, "it is completed");
  cancel_and_expect(t, "i");
  expect_equal(t, count_events(t, "i", 1, "activity_completed", NULL), 1, "completions");
  expect_equal(t, count_events(t, "i", 1, "ended", NULL), 0, "ended activities");
  expect_equal(t, counters(t).activities_cancelled, 0, "cancelled activities");
  expect_equal(t, heard(DK_LOG_ACTIVITY_CANCELLED), 0, "activities that were notified");
  expect_no_warning(t);
  expect_nothing_left(t);
}

/* ---- work in other threads ------------------------------------------------------------------- */

static atomic_int child_told, child_turns, child_may_end;
static pthread_t child;

static void *
with_token(void *token)
{
  atomic_fetch_add(&marks.began, 1);
  atomic_store(&child_told, dk_token_sleep(token, 3600 * 1000) == DK_CAUSE_CANCELLED);
  dk_token_free(token);
  return NULL;
}

static void *
without_token(void *unused)
{
  while (!atomic_load(&child_may_end) && run_waits(INT64_MAX))
    atomic_fetch_add(&child_turns, 1);
  return unused;
}

static dk_result
has_child(dk_task *task, dk_str input)
{
  if (pthread_create(&child, NULL, with_token, dk_task_token(task)) != 0)
    return dk_error(task, "there is no thread");
  int32_t cause = dk_task_sleep(task, 3600 * 1000);
  atomic_fetch_add(&marks.told, cause == DK_CAUSE_CANCELLED);
  pthread_join(child, NULL);
  atomic_fetch_add(&marks.ended, 1);
  return dk_done(task, input);
}

static dk_result
leaves_child(dk_task *task, dk_str input)
{
  if (pthread_create(&child, NULL, without_token, NULL) != 0)
    return dk_error(task, "there is no thread");
  atomic_fetch_add(&marks.began, 1);
  dk_task_sleep(task, 3600 * 1000);
  atomic_fetch_add(&marks.ended, 1);
  return dk_done(task, input);
}

void
run_child_with_token(struct dk_check *t)
{
  atomic_store(&child_told, 0);
  given_works(t);
  given_activity(t, "has child", has_child, NULL);
  given_running(t, "has child");
  cancel_and_expect(t, "i");
  expect_told(t, 1);
  eventually(t, atomic_load(&marks.ended) == 1, "the body and its thread end");
  expect_equal(t, atomic_load(&child_told), 1, "threads that were notified");
  eventually(t, counters(t).grace_kept == 1, "within the grace");
  expect_no_warning(t);
  expect_nothing_left(t);
}

/* The thread is not notified, and the runtime does not wait for it: the slot is free, and the
 * thread is the user's. */
void
run_child_without_token(struct dk_check *t)
{
  atomic_store(&child_may_end, 0);
  given_works(t)->activity_slots = 1;
  given_activity(t, "leaves child", leaves_child, NULL);
  given_running(t, "leaves child");
  cancel_and_expect(t, "i");
  expect_told(t, 1);
  eventually(t, counters(t).grace_kept == 1, "the body ends within its grace");
  start_instance(t, "next", "works", "echo");
  expect_end(t, "next", "completed: echo");
  int turns = atomic_load(&child_turns);
  eventually(t, atomic_load(&child_turns) > turns, "its thread works on");
  atomic_store(&child_may_end, 1);
  pthread_join(child, NULL);
  expect_no_warning(t);
  expect_nothing_left(t);
}

/* ---- many instances -------------------------------------------------------------------------- */

static dk_result
five_activities(dk_orch *o, dk_str input)
{
  dk_future *all[5];

  for (int i = 0; i < 5; i++)
    all[i] = dk_activity(o, "obeys", input);
  dk_all_of(o, all, 5);
  return dk_completed(o, dk_str_of("all"));
}

static void
each(struct dk_check *t, uint32_t n, const char *prefix,
     void (*what)(struct dk_check *t, const char *instance))
{
  char instance[32];

  for (uint32_t i = 0; i < n; i++) {
    snprintf(instance, sizeof(instance), "%s-%u", prefix, i);
    what(t, instance);
  }
}

static void
starts_five(struct dk_check *t, const char *instance)
{
  start_instance(t, instance, "five activities", "");
}

static void
starts_one(struct dk_check *t, const char *instance)
{
  start_instance(t, instance, "works", "obeys");
}

static void
starts_echo(struct dk_check *t, const char *instance)
{
  start_instance(t, instance, "works", "echo");
}

static void
ends_cancelled(struct dk_check *t, const char *instance)
{
  expect_end(t, instance, "cancelled: no use (the check)");
}

static void
ends_completed(struct dk_check *t, const char *instance)
{
  expect_end(t, instance, "completed: echo");
}

void
run_high_concurrency(struct dk_check *t)
{
  uint32_t n = kit_under_memcheck() ? 8 : 100, slots = 5 * n;
  struct dk_runtime_options *options = given_runtime(t);

  options->activity_slots = slots; /* all have begun before anything is cancelled */
  given_orchestration(t, "five activities", five_activities);
  start_runtime(t);
  each(t, n, "i", starts_five);
  eventually(t, atomic_load(&marks.began) == slots, "every slot has an activity");
  each(t, n, "i", cancel_instance);
  each(t, n, "i", ends_cancelled);
  eventually(t, counters(t).orchestrations_cancelled == n, "each instance is counted");
  expect_told(t, slots);
  expect_equal(t, counters(t).activities_cancelled, slots, "cancelled activities in the counters");
  expect_equal(t, is_by_renewal() ? counters(t).learnt_by_renewal : counters(t).learnt_by_commit,
               slots, "activities counted by the way they have learnt it");
  expect_equal(t, counters(t).activities_completed, 0, "activities that have completed");
  expect_no_warning(t);
  expect_all_told(t);
}

/* All slots are busy and other activities wait: the cancelled ones make room for them. */
void
run_all_slots_busy(struct dk_check *t)
{
  given_works(t);
  start_runtime(t);
  each(t, 8, "i", starts_one);
  eventually(t, atomic_load(&marks.began) == 4, "every slot has an activity");
  each(t, 4, "waits", starts_echo);
  each(t, 8, "i", cancel_instance);
  each(t, 8, "i", ends_cancelled);
  each(t, 4, "waits", ends_completed);
  each(t, 12, "next", starts_echo);
  each(t, 12, "next", ends_completed);
  expect_equal(t, atomic_load(&marks.echoed), 16, "activities that have completed");
  expect_no_warning(t);
  expect_all_told(t);
}
