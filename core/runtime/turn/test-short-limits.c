/* SPDX-License-Identifier: Apache-2.0 */
/* A limit that is not longer than the lease of activities is logged, once for each place; one that
 * is above it, and a timer that limits no activity, are not. */
#include <stdio.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"
#include "core/runtime/turn/short-limits.h"

enum { LEASE_MS = 20 * 1000 };

static dk_result
charge(dk_task *task, dk_str input)
{
  return dk_done(task, input);
}

/* The input is the limit. */
static dk_result
selects(dk_orch *o, dk_str input)
{
  dk_future *pay = dk_activity(o, "charge", dk_str_of("paid"));
  dk_future *limit = dk_timer(o, strtoll(input.ptr, NULL, 10));

  if (dk_select(o, pay, limit) == limit)
    return dk_failed(o, "payment timed out");
  return dk_completed(o, dk_await(o, pay));
}

static dk_result
waits_for_any(dk_orch *o, dk_str input)
{
  dk_future *limit = dk_timer(o, strtoll(input.ptr, NULL, 10));
  dk_future *long_one = dk_timer(o, 3600 * 1000);
  dk_future *pay = dk_activity(o, "charge", dk_str_of("paid"));

  dk_any(o, long_one, limit, pay);
  return dk_completed(o, dk_await(o, pay));
}

static dk_result
retries(dk_orch *o, dk_str input)
{
  const struct dk_retry retry = {.struct_size = sizeof(retry),
                                 .attempts = 2,
                                 .timeout_ms = strtoll(input.ptr, NULL, 10)};
  dk_str value;

  dk_activity_retried(o, "charge", dk_str_of("paid"), NULL, &retry, &value);
  return dk_completed(o, value);
}

/* A timer beside an event does not limit an activity; nor does one that has ended. */
static dk_result
waits_for_event(dk_orch *o, dk_str input)
{
  dk_future *event = dk_external(o, "paid"), *pay = dk_activity(o, "charge", dk_str_of(""));
  dk_future *limit = dk_timer(o, strtoll(input.ptr, NULL, 10));

  dk_await(o, pay);
  dk_select(o, event, limit);
  dk_any(o, pay, dk_timer(o, 1));
  return dk_completed(o, dk_str_of("paid"));
}

static struct rig
begin(void)
{
  struct rig rig = rig_begin();

  rig_activity(&rig, "charge", charge);
  rig_orchestration(&rig, "selects", selects);
  rig_orchestration(&rig, "waits_for_any", waits_for_any);
  rig_orchestration(&rig, "retries", retries);
  rig_orchestration(&rig, "waits_for_event", waits_for_event);
  rig.options.activity_lock_ms = LEASE_MS;
  rig_start(&rig);
  return rig;
}

static void
run(struct rig *rig, const char *instance, const char *name, const char *limit)
{
  rig_run(rig, instance, name, limit);
  is(rig_result(rig, instance), "completed: paid", "%s, %s ms", name, limit);
}

static void
test_told_once(const char *name)
{
  struct rig rig = begin();

  run(&rig, "above", name, "20001");
  cmp_ok(listener_count(rig.listener, DK_LOG_SHORT_LIMIT), "==", 0,
         "above the lease: nothing is logged");
  run(&rig, "equal", name, "20000");
  cmp_ok(listener_count(rig.listener, DK_LOG_SHORT_LIMIT), "==", 1, "equal to it: that is logged");
  struct heard heard = listener_latest(rig.listener, DK_LOG_SHORT_LIMIT);
  const struct whom whom = {.instance = "equal", .execution_id = 1, .activity = "charge",
                            .orchestration = name, .worker = heard.worker};
  ok(heard_names(&heard, &whom), "it names the instance, the activity, the orchestration");
  cmp_ok(heard.level, "==", DK_LEVEL_WARNING, "it is a warning");
  cmp_ok(heard.ms, "==", 20000, "with the limit");
  ok(rig_says(heard.text, "test-short-limits.c:"), "and the place in the code");
  ok(rig_says(heard.text, "its limit, 20000 ms, is not above the lease of activities, 20000 ms"),
     "and what is wrong");
  run(&rig, "below", name, "19000");
  cmp_ok(listener_count(rig.listener, DK_LOG_SHORT_LIMIT), "==", 1,
         "the same place is logged once");
  rig_end(&rig);
}

static void
test_each_place(void)
{
  struct rig rig = begin();

  run(&rig, "a", "selects", "19000");
  run(&rig, "b", "retries", "19000");
  run(&rig, "c", "selects", "19000");
  run(&rig, "d", "waits_for_any", "19000");
  cmp_ok(listener_count(rig.listener, DK_LOG_SHORT_LIMIT), "==", 3, "each place is logged");
  rig_end(&rig);
}

static void
test_no_limit(void)
{
  struct rig rig = begin();

  run(&rig, "i", "waits_for_event", "10");
  cmp_ok(listener_count(rig.listener, DK_LOG_SHORT_LIMIT), "==", 0,
         "a wait without an activity has no limit to log");
  rig_end(&rig);
}

/* Only so many places are remembered: later ones are not logged. */
static void
test_many_places(void)
{
  enum { MANY = 1000, MOST = 256 };
  struct short_limits *limits = short_limits_new();
  char line[32];
  int n = 0;

  for (int i = 0; i < MANY; i++) {
    snprintf(line, sizeof(line), "code.c:%d", i);
    n += short_limits_are_news(limits, dk_str_of("order"), dk_str_of("charge"), line);
  }
  cmp_ok(n, "==", MOST, "of very many places some are logged");
  short_limits_free(limits);
}

int
main(void)
{
  test_many_places();
  test_told_once("selects");
  test_told_once("waits_for_any");
  test_told_once("retries");
  test_each_place();
  test_no_limit();
  return done_testing();
}
