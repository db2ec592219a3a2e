/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of log.h: counters, levels by number, the line for people, and standard error if there is
 * no log function. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/runtime/shared/log.h"

/* The last event that the log function got, its text copied. */
struct told {
  struct dk_log_event event;
  char text[256], worker[64];
  int n;
};

static void
listen_to(void *context, const struct dk_log_event *event)
{
  struct told *told = context;

  told->event = *event;
  snprintf(told->text, sizeof(told->text), "%.*s", (int)event->text.len, event->text.ptr);
  snprintf(told->worker, sizeof(told->worker), "%.*s", (int)event->worker.len,
           event->worker.ptr);
  told->n++;
}

/* ---- counters -------------------------------------------------------------------------------- */

enum { THREADS = 4, TIMES = 10000 };

static void *
count_often(void *context)
{
  struct log *log = context;

  for (int i = 0; i < TIMES; i++) {
    log_count(log, COUNT_RENEWALS);
    log_count(log, COUNT_QUARANTINED_NOW);
    log_uncount(log, COUNT_QUARANTINED_NOW);
  }
  return NULL;
}

static void
test_counting(void)
{
  struct log log;
  struct dk_counters counters = {.struct_size = sizeof(counters)};
  pthread_t threads[THREADS];

  log_init(&log, NULL, NULL, "w");
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, count_often, &log) != 0)
      BAIL_OUT("no thread: %s", strerror(errno));
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  log_read(&log, &counters);
  cmp_ok(counters.renewals, "==", THREADS * TIMES, "threads count together");
  cmp_ok(counters.quarantined_now, "==", 0, "a gauge goes up and down");
  cmp_ok(counters.struct_size, "==", sizeof(counters), "the size stays the caller's");
  log_done(&log);
}

/* Both lists have the same order: each counter's number is in its member. */
static void
test_order(void)
{
  struct log log;
  struct dk_counters c = {.struct_size = sizeof(c)};

  log_init(&log, NULL, NULL, "w");
  for (int i = 0; i < N_TOLD_COUNTERS; i++)
    for (int n = 0; n <= i; n++)
      log_count(&log, (enum counter)i);
  log_read(&log, &c);
  cmp_ok(c.turns_committed, "==", COUNT_TURNS_COMMITTED + 1, "turns_committed");
  cmp_ok(c.turns_lost, "==", COUNT_TURNS_LOST + 1, "turns_lost");
  cmp_ok(c.orchestrations_continued, "==", COUNT_ORCHESTRATIONS_CONTINUED + 1, "continued");
  cmp_ok(c.activities_started, "==", COUNT_ACTIVITIES_STARTED + 1, "activities_started");
  cmp_ok(c.activities_put_off, "==", COUNT_ACTIVITIES_PUT_OFF + 1, "activities_put_off");
  cmp_ok(c.results_refused, "==", COUNT_RESULTS_REFUSED + 1, "results_refused");
  cmp_ok(c.acks_retried, "==", COUNT_ACKS_RETRIED + 1, "acks_retried");
  cmp_ok(c.learnt_by_commit, "==", COUNT_LEARNT_BY_COMMIT + 1, "learnt_by_commit");
  cmp_ok(c.learnt_by_deadline, "==", COUNT_LEARNT_BY_DEADLINE + 1, "learnt_by_deadline");
  cmp_ok(c.grace_kept, "==", COUNT_GRACE_KEPT + 1, "grace_kept");
  cmp_ok(c.quarantined_now, "==", COUNT_QUARANTINED_NOW + 1, "quarantined_now");
  cmp_ok(c.strays, "==", COUNT_STRAYS + 1, "strays");
  cmp_ok(c.warm_turns, "==", COUNT_WARM_TURNS + 1, "warm_turns");
  log_done(&log);
}

static void
test_older_caller(void)
{
  struct log log;
  struct dk_counters c = {.struct_size = offsetof(struct dk_counters, renewals) + 4};

  log_init(&log, NULL, NULL, "w");
  log_count(&log, COUNT_RESULTS_REFUSED);
  log_count(&log, COUNT_RENEWALS);
  c.renewals = 77;
  log_read(&log, &c);
  cmp_ok(c.results_refused, "==", 1, "an older caller gets what its struct has");
  cmp_ok(c.renewals, "==", 77, "and nothing is written after its end");
  log_done(&log);
}

/* ---- levels and lines ------------------------------------------------------------------------ */

static void
test_levels(void)
{
  static const struct {
    int32_t number, level, expected;
  } levels[] = {
    {DK_LOG_TEXT, DK_LEVEL_DEBUG, DK_LEVEL_DEBUG},
    {DK_LOG_TEXT, DK_LEVEL_INFO, DK_LEVEL_INFO},
    {DK_LOG_RENEWED, 0, DK_LEVEL_TRACE},
    {DK_LOG_RENEWAL_RETRIED, 0, DK_LEVEL_WARNING},
    {DK_LOG_RENEWAL_RETRIED, DK_LEVEL_TRACE, DK_LEVEL_TRACE},
    {DK_LOG_ACTIVITY_CANCELLED, 0, DK_LEVEL_INFO},
    {DK_LOG_RESULT_REFUSED, 0, DK_LEVEL_INFO},
    {DK_LOG_GRACE_EXCEEDED, 0, DK_LEVEL_WARNING},
    {DK_LOG_QUARANTINED, 0, DK_LEVEL_WARNING},
    {DK_LOG_CAP_REACHED, 0, DK_LEVEL_ERROR},
    {DK_LOG_ACK_RETRIED, 0, DK_LEVEL_WARNING},
    {DK_LOG_LEASE_LOST, 0, DK_LEVEL_WARNING},
    {DK_LOG_TURN_DROPPED, 0, DK_LEVEL_WARNING},
    {DK_LOG_STALLED, 0, DK_LEVEL_WARNING},
    {DK_LOG_STRAY, 0, DK_LEVEL_INFO},
    {DK_LOG_MESSAGE_DROPPED, 0, DK_LEVEL_WARNING},
    {DK_LOG_STORE_AWAY, 0, DK_LEVEL_WARNING},
    {DK_LOG_STORE_BACK, 0, DK_LEVEL_INFO},
    {DK_LOG_ORCHESTRATION_ENDED, 0, DK_LEVEL_DEBUG},
    {DK_LOG_PROGRAMMING_ERROR, 0, DK_LEVEL_ERROR},
    {DK_LOG_TURN_STUCK, 0, DK_LEVEL_ERROR},
    {DK_LOG_SHORT_LIMIT, 0, DK_LEVEL_WARNING},
    {12345, 0, DK_LEVEL_DEBUG},
  };
  struct told told = {.n = 0};
  struct log log;

  log_init(&log, listen_to, &told, "w");
  for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
    const struct dk_log_event event = {.number = levels[i].number, .level = levels[i].level};
    log_report(&log, &event, "x");
    cmp_ok(told.event.level, "==", levels[i].expected, "the level of %d, given as %d",
           (int)levels[i].number, (int)levels[i].level);
  }
}

static void
test_lines(void)
{
  struct told told = {.n = 0};
  struct log log;
  struct dk_log_event event = {
    .number = DK_LOG_ACTIVITY_CANCELLED,
    .instance = dk_str_of("order-1"),
    .execution_id = 2,
    .activity_id = 3,
    .activity = dk_str_of("charge"),
    .orchestration = dk_str_of("order"),
    .cause = DK_CAUSE_CANCELLED,
    .learnt = DK_LEARNT_BY_RENEWAL,
    .status = DK_LOCK_LOST,
  };

  log_init(&log, listen_to, &told, "worker-7");
  log_report(&log, &event, "signalled to end after %d ms", 12);
  is(told.text,
     "instance order-1, execution 2, activity 3 (charge): signalled to end after 12 ms "
     "[cancelled, learnt by a renewal, DK_LOCK_LOST]",
     "the whole line");
  is(told.worker, "worker-7", "the worker is filled in");
  cmp_ok(told.event.struct_size, "==", sizeof(told.event), "and the size");
  cmp_ok(told.event.activity_id, "==", 3, "the rest is unchanged");

  event = (struct dk_log_event){.instance = dk_str_of("a\nb"), .execution_id = 1,
                                .orchestration = dk_str_of("order")};
  log_report(&log, &event, "two\nlines");
  is(told.text, "instance a\\nb (order): two\\nlines", "one line, whatever is in the names");
  event = (struct dk_log_event){.number = DK_LOG_STORE_AWAY, .status = DK_UNAVAILABLE,
                                .worker = dk_str_of("other")};
  log_report(&log, &event, "the store is unreachable");
  is(told.text, "the store is unreachable [DK_UNAVAILABLE]", "without an instance");
  is(told.worker, "other", "a given worker is kept");
  event = (struct dk_log_event){.text = dk_str_of("as it is")};
  log_report(&log, &event, "not this");
  is(told.text, "as it is", "a given text is kept");
  event = (struct dk_log_event){.cause = DK_CAUSE_SHUTDOWN, .learnt = DK_LEARNT_BY_STOP};
  log_report(&log, &event, "x");
  is(told.text, "x [the runtime stops, learnt by the stop]", "cause and way alone");
  event = (struct dk_log_event){.cause = 99, .learnt = -1};
  log_report(&log, &event, "x");
  is(told.text, "x", "an unknown cause");
  cmp_ok(told.n, "==", 6, "each is logged once");
}

/* ---- standard error -------------------------------------------------------------------------- */

/* What is written to standard error for an event without a log function. */
static const char *
on_standard_error(int32_t number, int32_t level)
{
  static char found[256];
  const struct dk_log_event event = {.number = number, .level = level};
  struct log log;
  int pipe_ends[2], old = dup(STDERR_FILENO);

  if (old < 0 || pipe(pipe_ends) != 0)
    BAIL_OUT("no pipe: %s", strerror(errno));
  fflush(stderr);
  dup2(pipe_ends[1], STDERR_FILENO);
  log_init(&log, NULL, NULL, "w");
  log_report(&log, &event, "%s %d", "something", 1);
  fflush(stderr);
  dup2(old, STDERR_FILENO);
  close(old);
  close(pipe_ends[1]);
  ssize_t n = read(pipe_ends[0], found, sizeof(found) - 1);
  close(pipe_ends[0]);
  found[n > 0 ? n : 0] = '\0';
  log_done(&log);
  return found;
}

static void
test_standard_error(void)
{
  is(on_standard_error(DK_LOG_STALLED, 0), "durakit: warning: something 1\n",
     "a warning without a log function");
  is(on_standard_error(DK_LOG_TURN_STUCK, 0), "durakit: error: something 1\n",
     "an error without a log function");
  is(on_standard_error(DK_LOG_TEXT, DK_LEVEL_INFO), "", "information is not written");
  is(on_standard_error(DK_LOG_RENEWAL_RETRIED, DK_LEVEL_TRACE), "",
     "nor is a repeated warning");
}

int
main(void)
{
  plan(NO_PLAN);
  test_counting();
  test_order();
  test_older_caller();
  test_levels();
  test_lines();
  test_standard_error();
  return exit_status();
}
