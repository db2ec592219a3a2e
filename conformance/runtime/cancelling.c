/* SPDX-License-Identifier: Apache-2.0 */
/* What cancels an activity: each way in which an orchestration no longer needs its result. */
#include "conformance/runtime/runs.h"

#include <string.h>

#include "conformance/kit/engine.h"

/* ---- orchestrations -------------------------------------------------------------------------- */

/* Schedules the activity, then a time limit for it. */
static dk_result
times_out(dk_orch *o, dk_str input)
{
  dk_future *work = dk_activity(o, "obeys", input);

  dk_await(o, dk_external(o, "go"));
  dk_future *limit = dk_timer(o, 20);
  if (dk_select(o, work, limit) == limit)
    return dk_completed(o, dk_str_of("timed out"));
  return dk_completed(o, dk_await(o, work));
}

static dk_result
retries(dk_orch *o, dk_str input)
{
  const struct dk_retry retry = {.struct_size = sizeof(retry),
                                 .attempts = 2,
                                 .timeout_ms = 1000,
                                 .retry_timeouts = 1,
                                 .first_delay_ms = 1};
  dk_str value = {NULL, 0};

  if (dk_activity_retried(o, "obeys", input, NULL, &retry, &value) == DK_SUCCEEDED)
    return dk_completed(o, value);
  return dk_failed_with(o, "%.*s", (int)value.len, value.ptr);
}

/* Begins an activity and ends without waiting for it, in the way that its input says. */
static dk_result
leaves(dk_orch *o, dk_str input)
{
  if (dk_orch_execution(o) == 2)
    return dk_completed(o, dk_await(o, dk_activity(o, "echo", dk_str_of("the second"))));
  dk_activity(o, "obeys", input);
  dk_await(o, dk_external(o, "go"));
  if (strcmp(input.ptr, "fail") == 0)
    return dk_failed(o, "on purpose");
  if (strcmp(input.ptr, "continue") == 0)
    dk_continue_as_new(o, input, NULL);
  return dk_completed(o, dk_str_of("without it"));
}

/* Schedules as many at once as the input says. */
static dk_result
fans_out(dk_orch *o, dk_str input)
{
  size_t n = (size_t)(input.ptr[0] - '0') * 10;
  dk_future **all = dk_orch_alloc(o, n * sizeof(dk_future *));

  for (size_t i = 0; i < n; i++)
    all[i] = dk_activity(o, "obeys", input);
  dk_all_of(o, all, n);
  return dk_completed(o, dk_str_of("all"));
}

/* Three at once, each ending in its own way. */
static dk_result
three(dk_orch *o, dk_str input)
{
  dk_future *first = dk_activity(o, "obeys", input);
  dk_future *second = dk_activity(o, "errs", input);
  dk_future *third = dk_activity(o, "deaf", input);

  dk_all(o, first, second, third);
  return dk_completed(o, dk_str_of("all"));
}

/* ---- one that loses -------------------------------------------------------------------------- */

void
run_select_timeout(struct dk_check *t)
{
  given_started(t, "times out", times_out, "");
  eventually(t, atomic_load(&marks.began) == 1, "the activity begins");
  raise_event(t, "i", "go");
  expect_end(t, "i", "completed: timed out");
  expect_told(t, 1);
  expect_equal(t, count_events(t, "i", 1, "dropped", "select_loser_timeout"), 1, "losers");
  eventually(t, atomic_load(&marks.told) == 1, "the body sees that it is cancelled");
  expect_no_warning(t);
  expect_nothing_left(t);
}

/* An attempt may also be deleted before it began. */
void
run_retry_timeout(struct dk_check *t)
{
  given_started(t, "retries", retries, "");
  expect_end(t, "i", "failed: activity obeys took longer than 1000 ms (attempt 2 of 2)");
  expect_equal(t, count_events(t, "i", 1, "dropped", "select_loser_timeout"), 2, "losers");
  expect(t, atomic_load(&marks.began) > 0, "an attempt begins within its second");
  expect_no_warning(t);
  expect_all_told(t);
}

/* ---- all of an execution --------------------------------------------------------------------- */

static void
cancels_what_it_leaves(struct dk_check *t, const char *how, const char *end, const char *code)
{
  given_started(t, "leaves", leaves, how);
  eventually(t, atomic_load(&marks.began) == 1, "the activity begins");
  raise_event(t, "i", "go");
  expect_end(t, "i", end);
  expect_told(t, 1);
  expect_equal(t, count_events(t, "i", 1, "ended", code), 1, "activities ended as %s", code);
  expect_equal(t, count_events(t, "i", 1, "activity_completed", NULL), 0, "completions");
  eventually(t, atomic_load(&marks.told) == 1, "the body sees that it is cancelled");
  expect_no_warning(t);
  expect_nothing_left(t);
}

void
run_completion(struct dk_check *t)
{
  cancels_what_it_leaves(t, "complete", "completed: without it", "terminal_completed");
}

void
run_failure(struct dk_check *t)
{
  cancels_what_it_leaves(t, "fail", "failed: on purpose", "terminal_failed");
}

void
run_continue_as_new(struct dk_check *t)
{
  cancels_what_it_leaves(t, "continue", "completed: the second",
                         "terminal_continued_as_new");
}

void
run_cancel_instance(struct dk_check *t)
{
  given_started(t, "works", works, "obeys");
  eventually(t, atomic_load(&marks.began) == 1, "the activity begins");
  cancel_and_expect(t, "i");
  expect_told(t, 1);
  expect_equal(t, count_events(t, "i", 1, "ended", "terminal_cancelled"), 1, "ended activities");
  eventually(t, atomic_load(&marks.told) == 1, "the body sees that it is cancelled");
  expect_no_warning(t);
  expect_nothing_left(t);
}

/* ---- many ------------------------------------------------------------------------------------ */

/* When the instance has ended all rows have been deleted, those of activities that had not begun
 * and those that were leased: it was one commit. */
void
run_mass(struct dk_check *t)
{
  uint32_t many = kit_under_memcheck() ? 20 : 60;

  given_runtime(t)->activity_slots = 8;
  given_orchestration(t, "fans out", fans_out);
  start_runtime(t);
  start_instance(t, "i", "fans out", many == 20 ? "2" : "6");
  eventually(t, atomic_load(&marks.began) == 8, "every slot has an activity");
  cancel_and_expect(t, "i");
  expect_no_work(t);
  expect_equal(t, count_events(t, "i", 1, "ended", "terminal_cancelled"), many, "ended activities");
  expect_told(t, 8);
  eventually(t, atomic_load(&marks.told) == 8, "each body sees that it is cancelled");
  expect_equal(t, atomic_load(&marks.began), 8, "activities that have begun");
  expect_equal(t, count_events(t, "i", 1, "activity_completed", NULL), 0, "completions");
  expect_no_warning(t);
  expect_nothing_left(t);
}

/* Each ends in its own time and way, and none has a result. */
void
run_together(struct dk_check *t)
{
  given_started(t, "three", three, "");
  eventually(t, atomic_load(&marks.began) == 3, "all three begin");
  cancel_and_expect(t, "i");
  expect_told(t, 3);
  eventually(t, atomic_load(&marks.ended) == 2, "two notice it and end");
  expect_equal(t, counters(t).grace_exceeded, 0, "activities without grace left");
  release_deaf();
  eventually(t, atomic_load(&marks.ended) == 3, "the third ends later");
  eventually(t, counters(t).grace_kept == 3, "all end within their grace");
  expect_no_warning(t);
  expect_nothing_left(t);
}
