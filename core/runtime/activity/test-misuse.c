/* SPDX-License-Identifier: Apache-2.0 */
/* Activities that are used wrongly: not registered, with an unreadable order, or never returning.
 * The log says what has happened, to which activity, and what to do; and other work continues. */
#include <semaphore.h>
#include <stdio.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

/* ---- orchestrations, activities -------------------------------------------------------------- */

/* Runs an activity of that name, and returns how it ended. */
static dk_result
asks(dk_orch *o, dk_str name)
{
  dk_str value = {NULL, 0};
  int32_t how = dk_outcome(o, dk_activity(o, name.ptr, dk_str_of("you")), &value);

  return dk_completed(o, dk_format(o, "%s, %.*s", how == DK_FAULTED ? "faulted" : "succeeded",
                                   (int)value.len, value.ptr));
}

static dk_result
greets(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, "greet", input)));
}

static dk_result
waits(dk_orch *o, dk_str input)
{
  (void)input;
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

static sem_t let_go;

static dk_result
greet(dk_task *task, dk_str input)
{
  char *text = dk_task_alloc(task, 100);

  snprintf(text, 100, "hello %.*s", (int)input.len, input.ptr);
  return dk_done(task, dk_str_of(text));
}

/* Ignores its token. */
static dk_result
never_returns(dk_task *task, dk_str input)
{
  while (sem_wait(&let_go) != 0)
    continue;
  return dk_done(task, input);
}

static struct rig
begin(void)
{
  struct rig rig = rig_begin();

  sem_init(&let_go, 0, 0);
  rig_orchestration(&rig, "asks", asks);
  rig_orchestration(&rig, "greets", greets);
  rig_activity(&rig, "greet", greet);
  rig_activity(&rig, "never returns", never_returns);
  rig_orchestration(&rig, "waits", waits);
  rig.options.max_attempts = 3;
  return rig;
}

static void
end(struct rig *rig)
{
  rig_end(rig);
  sem_destroy(&let_go);
}

static void
cancel(struct rig *rig, const char *instance)
{
  if (dk_client_cancel(rig->client, dk_str_of(instance), "no use", "me") != DK_OK)
    BAIL_OUT("no cancellation: %s", dk_client_error(rig->client));
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void
test_unregistered_activity(void)
{
  struct rig rig = begin();

  rig.options.flags = DK_RUNTIME_FAIL_DELAYED;
  rig_start(&rig);
  rig_run(&rig, "i", "asks", "ghost");
  ok(listener_until(rig.listener, DK_LOG_STALLED, 1), "an unregistered activity is delayed");
  rig_ten_complete(&rig, "greets");
  const char *result = rig_result(&rig, "i");
  ok(rig_says(result, "completed: faulted, unregistered: tried 3 times: no activity of this name"),
     "and fails in the end");
  rig_is_told(&rig, DK_LOG_STALLED, "instance i, activity 2 (ghost)", "no activity of this name",
              "dk_register_activity");
  end(&rig);
}

/* The store has an order that no runtime has written. */
static void
test_unreadable_order(void)
{
  struct rig rig = begin();
  const struct dk_item item = {.struct_size = sizeof(item), .instance = dk_str_of("i"),
                               .execution_id = 1, .activity_id = 77,
                               .payload = dk_str_of("no order")};

  rig.options.flags = DK_RUNTIME_FAIL_DELAYED;
  rig_start(&rig);
  rig_run(&rig, "i", "waits", "");
  dk_caller_reset(rig.caller);
  if (dk_store_enqueue_for_worker(rig.store, rig.caller, &item) != DK_OK)
    BAIL_OUT("no order: %s", dk_caller_failure(rig.caller)->text);
  ok(listener_until(rig.listener, DK_LOG_STALLED, 1), "an order that cannot be read is delayed");
  rig_is_told(&rig, DK_LOG_STALLED, "instance i, activity 77", "its order cannot be read",
              "cancel the instance");
  rig_ten_complete(&rig, "greets");
  ok(listener_until(rig.listener, DK_LOG_STRAY, 1), "in the end its instance receives the failure");
  dk_client_raise(rig.client, dk_str_of("i"), "go", dk_str_of("unharmed"));
  is(rig_result(&rig, "i"), "completed: unharmed",
     "which ignores it, because it began no such activity");
  end(&rig);
}

static void
test_never_returns(void)
{
  struct rig rig = begin();
  char reason[256] = "";

  rig.options.grace_ms = 50;
  rig.options.max_quarantined = 2;
  rig_start(&rig);
  rig_run(&rig, "i", "asks", "never returns");
  rig_run(&rig, "j", "asks", "never returns");
  ok(UNTIL(rig_counters(&rig).activities_started == 2), "two activities that never return run");
  cancel(&rig, "i");
  ok(listener_until(rig.listener, DK_LOG_QUARANTINED, 1), "one is cancelled");
  ok(rig_says(listener_latest(rig.listener, DK_LOG_GRACE_EXCEEDED).text,
              "instance i, activity 2 (never returns): it has not ended within its grace of 50 ms"),
     "with a time, which it does not keep");
  rig_is_told(&rig, DK_LOG_QUARANTINED, "instance i, activity 2 (never returns)",
              "its thread is abandoned", "dk_task_cancelled");
  rig_ten_complete(&rig, "greets");
  cancel(&rig, "j");
  ok(listener_until(rig.listener, DK_LOG_CAP_REACHED, 1), "then the other one");
  rig_is_told(&rig, DK_LOG_CAP_REACHED, "instance j, activity 2 (never returns)",
              "2 threads are abandoned", "restart the process");
  ok(!dk_runtime_healthy(rig.runtime, reason, sizeof(reason)), "which is not healthy");
  sem_post(&let_go);
  sem_post(&let_go);
  ok(UNTIL(dk_runtime_healthy(rig.runtime, reason, sizeof(reason))), "until they return");
  end(&rig);
}

/* Its orchestration waits for it, so nothing is wrong: the renewals and the counters show
 * that it runs. */
static void
test_never_returns_uncancelled(void)
{
  struct rig rig = begin();

  rig.options.activity_lock_ms = 20000;
  rig.options.activity_lock_ms = 30000;
  rig.options.activity_renewal_buffer_ms = 29500;
  rig_start(&rig);
  rig_run(&rig, "i", "asks", "never returns");
  ok(listener_until(rig.listener, DK_LOG_RENEWED, 2), "its lease is renewed, again and again");
  ok(UNTIL(strcmp(listener_latest_trace(rig.listener, DK_LOG_RENEWED).activity,
                  "never returns") == 0), "under its name");
  rig_ten_complete(&rig, "greets");
  ok(UNTIL(rig_counters(&rig).activities_completed == 10), "they are counted as completed");
  cmp_ok(rig_counters(&rig).activities_started, "==", 11, "and one more as started");
  cmp_ok(listener_level(rig.listener, DK_LEVEL_WARNING), "==", 0, "no warning is logged");
  sem_post(&let_go);
  is(rig_result(&rig, "i"), "completed: succeeded, you", "when it returns, it counts");
  end(&rig);
}

int
main(void)
{
  plan(NO_PLAN);
  test_unregistered_activity();
  test_unreadable_order();
  test_never_returns();
  test_never_returns_uncancelled();
  return done_testing();
}
