/* SPDX-License-Identifier: Apache-2.0 */
/* The store is unreachable, or gives no clear answer: no instance fails for it, no activity is
 * cancelled, and nothing is done twice. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

enum { INSTANCES = 100, STEPS = 3 };

static atomic_int n_runs, n_told;

static dk_result
step(dk_task *task, dk_str input)
{
  char *text = dk_task_alloc(task, 32);

  atomic_fetch_add(&n_runs, 1);
  if (dk_task_sleep(task, 1) != DK_CAUSE_NONE)
    atomic_fetch_add(&n_told, 1);
  snprintf(text, 32, "%d", atoi(input.ptr) + 1);
  return dk_done(task, dk_str_of(text));
}

static dk_result
steps(dk_orch *o, dk_str input)
{
  for (int i = 0; i < STEPS; i++)
    input = dk_await(o, dk_activity(o, "step", input));
  return dk_completed(o, input);
}

/* Everything that a commit can carry: a child, a detached one, a timer that loses, a new
 * execution. */
static dk_result
all_kinds(dk_orch *o, dk_str input)
{
  dk_future *limit = dk_timer(o, 3600 * 1000);
  dk_future *work = dk_activity(o, "step", input);

  if (dk_select(o, work, limit) == limit)
    return dk_failed(o, "an hour has passed");
  dk_await(o, dk_child(o, "steps", dk_str_of("0"), NULL));
  if (dk_orch_execution(o) == 1)
    dk_continue_as_new(o, dk_str_of("7"), NULL);
  return dk_completed(o, input);
}

static dk_result
waits(dk_orch *o, dk_str input)
{
  (void)input;
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

static dk_result
all_at_once(dk_orch *o, dk_str input)
{
  return dk_completed(o, input);
}

static struct rig
begin(void)
{
  struct rig rig = rig_begin();

  atomic_store(&n_runs, 0);
  atomic_store(&n_told, 0);
  rig_activity(&rig, "step", step);
  rig_orchestration(&rig, "steps", steps);
  rig_orchestration(&rig, "all kinds", all_kinds);
  rig_orchestration(&rig, "waits", waits);
  return rig;
}

static void
start_all(struct rig *rig)
{
  char name[32];

  for (int i = 0; i < INSTANCES; i++) {
    snprintf(name, sizeof(name), "i-%d", i);
    rig_run(rig, name, "steps", "0");
  }
}

static int
n_completed(struct rig *rig)
{
  char name[32];
  int n = 0;

  for (int i = 0; i < INSTANCES; i++) {
    snprintf(name, sizeof(name), "i-%d", i);
    n += strcmp(rig_result(rig, name), "completed: 3") == 0;
  }
  return n;
}

static void
a_while(int64_t ms)
{
  int64_t until = ticks_now() + ms;

  while (ticks_now() < until)
    a_moment();
}

/* ---- away ------------------------------------------------------------------------------------ */

/* Longer than the leases of turns: those that were being committed are dropped. */
static void
test_away(void)
{
  struct rig rig = begin();
  char reason[256] = "";

  rig.options.turn_lock_ms = 1000;
  rig.options.turn_renewal_buffer_ms = 400;
  rig_start(&rig);
  start_all(&rig);
  ok(UNTIL(atomic_load(&n_runs) >= INSTANCES), "a hundred instances are half done");
  faulty_away(rig.faulty, true);
  ok(listener_until(rig.listener, DK_LOG_STORE_AWAY, 1),
     "the store becomes unreachable, which is logged");
  ok(UNTIL(!dk_runtime_healthy(rig.runtime, reason, sizeof(reason))),
     "and the runtime is not healthy");
  a_while(2500);
  faulty_away(rig.faulty, false);
  cmp_ok(n_completed(&rig), "==", INSTANCES, "when it is reachable again, all of them complete");
  ok(listener_until(rig.listener, DK_LOG_STORE_BACK, 1), "and that is logged, too");
  ok(UNTIL(dk_runtime_healthy(rig.runtime, reason, sizeof(reason))), "it is healthy again");
  cmp_ok(rig_counters(&rig).orchestrations_failed, "==", 0, "none failed");
  cmp_ok(rig_counters(&rig).activities_cancelled, "==", 0, "no activity was cancelled");
  cmp_ok(listener_count(rig.listener, DK_LOG_STORE_AWAY), "<=", 2,
         "each kind of fetch has logged it once");
  rig_end(&rig);
}

/* Commits fail while fetches work, for more deliveries than max_attempts. */
static dk_result
one_step(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, "step", input)));
}

/* The last fetch of this kind has failed, and no work comes for a long time. */
static void
fail_once(struct rig *rig, enum faulty_operation operation, const char *instance,
          const char *name, uint32_t n)
{
  char reason[256];

  faulty_plan(rig->faulty, operation, 0, 1, FAULT_REFUSE, DK_UNAVAILABLE);
  rig_run(rig, instance, name, "0");
  ok(rig_says(rig_result(rig, instance), "completed: "), "%s completes", instance);
  ok(listener_until(rig->listener, DK_LOG_STORE_AWAY, n), "a fetch fails");
  ok(listener_until(rig->listener, DK_LOG_STORE_BACK, n), "the recovery is logged soon");
  ok(UNTIL(dk_runtime_healthy(rig->runtime, reason, sizeof(reason))), "and it is healthy");
}

static void
test_back_while_idle(void)
{
  struct rig rig = begin();

  rig_orchestration(&rig, "idle", all_at_once);
  rig_orchestration(&rig, "one step", one_step);
  rig.options.poll_ms = 10 * RIG_WAIT_MS;
  rig.options.orchestration_slots = 1;
  rig_start(&rig);
  ok(faulty_until_calls(rig.faulty, FAULTY_FETCH_TURN, 1) &&
       faulty_until_calls(rig.faulty, FAULTY_FETCH_WORK, 1), "it waits for work");
  fail_once(&rig, FAULTY_FETCH_TURN, "i", "idle", 1);
  fail_once(&rig, FAULTY_FETCH_WORK, "j", "one step", 2);
  rig_end(&rig);
}

static void
test_commits_fail(void)
{
  struct rig rig = begin();

  rig.options.max_attempts = 2;
  rig.options.turn_lock_ms = 600;
  rig.options.turn_renewal_buffer_ms = 100;
  rig_start(&rig);
  rig_run(&rig, "i", "waits", "");
  ok(UNTIL(rig_counters(&rig).turns_committed == 1), "an instance waits");
  faulty_plan(rig.faulty, FAULTY_ACK_TURN, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  faulty_plan(rig.faulty, FAULTY_RENEW_TURN, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  faulty_plan(rig.faulty, FAULTY_ABANDON_TURN, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  dk_client_raise(rig.client, dk_str_of("i"), "go", dk_str_of("through"));
  ok(UNTIL(rig_counters(&rig).turns_dropped + rig_counters(&rig).turns_lost >= 5),
     "its turn is dropped again and again");
  faulty_heal(rig.faulty);
  is(rig_result(&rig, "i"), "completed: through", "and does not count as poison");
  rig_end(&rig);
}

/* Even for a process that has not seen the outage itself, if the turns could be given back. */
static void
test_store_refuses(void)
{
  struct rig rig = begin();

  rig.options.max_attempts = 2;
  faulty_plan(rig.faulty, FAULTY_ACK_TURN, 0, 6, FAULT_REFUSE, DK_INTERNAL);
  rig_start(&rig);
  rig_run(&rig, "i", "steps", "0");
  is(rig_result(&rig, "i"), "completed: 3",
     "nor does a commit that the store refuses for its own reasons");
  ok(rig_counters(&rig).turns_stalled >= 6, "but the turn is delayed");
  cmp_ok(listener_count(rig.listener, DK_LOG_STALLED), ">=", 1, "which is logged");
  rig_end(&rig);
}

/* ---- hanging --------------------------------------------------------------------------------- */

static void
test_hanging_commit(void)
{
  struct rig rig = begin();

  rig.options.turn_lock_ms = 1000;
  rig.options.turn_renewal_buffer_ms = 400;
  rig.options.orchestration_slots = 1;
  faulty_plan(rig.faulty, FAULTY_ACK_TURN, 0, 1, FAULT_HANG, DK_OK);
  rig_start(&rig);
  rig_run(&rig, "i", "steps", "0");
  ok(faulty_until_hanging(rig.faulty, 1), "a commit hangs");
  is(rig_result(&rig, "i"), "completed: 3", "it is cancelled, and the slot works again");
  rig_end(&rig);
}

/* ---- unclear answers ------------------------------------------------------------------------- */

struct unclear {
  enum faulty_operation operation;
  const char *name;
};
static const struct unclear operations[] = {
  {FAULTY_ENQUEUE_MESSAGE, "enqueue_for_orchestrator"},
  {FAULTY_FETCH_TURN, "fetch_orchestration_item"},
  {FAULTY_ACK_TURN, "ack_orchestration_item"},
  {FAULTY_ABANDON_TURN, "abandon_orchestration_item"},
  {FAULTY_RENEW_TURN, "renew_orchestration_item_lock"},
  {FAULTY_FETCH_WORK, "fetch_work_item"},
  {FAULTY_ACK_WORK, "ack_work_item"},
  {FAULTY_ABANDON_WORK, "abandon_work_item"},
  {FAULTY_RENEW_WORK, "renew_work_item_lock"},
  {FAULTY_READ_HISTORY, "read_history"},
};

/* No command of an execution has two ends, and there is one end of all. */
static bool
is_sound(struct rig *rig, const char *instance, uint64_t execution)
{
  struct dk_arena arena;
  size_t n, n_ends = 0;
  bool sound = true;

  dk_arena_init(&arena);
  const struct event *events = rig_events(rig, &arena, instance, execution, &n);
  for (size_t i = 0; i < n; i++) {
    n_ends += events[i].kind == EVENT_COMPLETED || events[i].kind == EVENT_CONTINUED;
    for (size_t j = i + 1; j < n && events[i].source > 0; j++)
      sound &= events[i].source != events[j].source || events[i].kind != events[j].kind;
  }
  dk_arena_done(&arena);
  return sound && n_ends == 1;
}

/* The n-th call of the operation is answered with "unknown", whether it was done or not. */
static void
test_unclear(const struct unclear *unclear, uint32_t skipped, enum fault fault)
{
  struct rig rig = begin();
  const char *how = fault == FAULT_FORGET ? "done" : "not done";

  rig.options.turn_lock_ms = 800;
  rig.options.turn_renewal_buffer_ms = 250;
  rig.options.activity_lock_ms = 800;
  rig.options.activity_renewal_buffer_ms = 250;
  faulty_plan(rig.faulty, unclear->operation, skipped, 1, fault, DK_OUTCOME_UNKNOWN);
  rig_start(&rig);
  rig_run(&rig, "i", "all kinds", "3");
  bool completed = strcmp(rig_result(&rig, "i"), "completed: 7") == 0;
  faulty_heal(rig.faulty);
  ok(completed && is_sound(&rig, "i", 1) && is_sound(&rig, "i", 2),
     "%s, call %u unknown, %s: all is there once", unclear->name, (unsigned)skipped + 1, how);
  rig_end(&rig);
}

static void
test_all_unclear(void)
{
  for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
    for (uint32_t skipped = 0; skipped < 6; skipped += 2) {
      test_unclear(&operations[i], skipped, FAULT_FORGET);
      test_unclear(&operations[i], skipped, FAULT_REFUSE);
    }
}

int
main(void)
{
  test_away();
  test_back_while_idle();
  test_commits_fail();
  test_store_refuses();
  test_hanging_commit();
  test_all_unclear();
  return done_testing();
}
