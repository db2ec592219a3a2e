/* SPDX-License-Identifier: Apache-2.0 */
/* Leases that have ended when the store's answer comes, as on a slow disk: no code runs in
 * vain, the event is logged, and no attempt counts. */
#include <stdatomic.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

/* Fetches that come too late; more of them than deliveries make poison. */
enum { TOO_LATE = 3, MAX_ATTEMPTS = 2 };

static atomic_int n_turns, n_bodies;

static dk_result
body(dk_task *task, dk_str input)
{
  atomic_fetch_add(&n_bodies, 1);
  return dk_done(task, input);
}

static dk_result
code(dk_orch *o, dk_str input)
{
  atomic_fetch_add(&n_turns, 1);
  return dk_completed(o, input);
}

static dk_result
has_activity(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, "body", input)));
}

static struct rig
begin(void)
{
  struct rig rig = rig_begin();

  atomic_store(&n_turns, 0);
  atomic_store(&n_bodies, 0);
  rig_orchestration(&rig, "code", code);
  rig_orchestration(&rig, "has activity", has_activity);
  rig_activity(&rig, "body", body);
  rig.options.max_attempts = MAX_ATTEMPTS;
  rig.options.orchestration_slots = 1;
  return rig;
}

static void
test_turns(void)
{
  struct rig rig = begin();

  rig.options.turn_lock_ms = 600;
  rig.options.turn_renewal_buffer_ms = 100;
  faulty_plan(rig.faulty, FAULTY_FETCH_TURN, 0, TOO_LATE, FAULT_OVERDUE, DK_OK);
  rig_run(&rig, "order", "code", "1");
  rig_start(&rig);
  is(rig_result(&rig, "order"), "completed: 1", "turns come too late, and it completes");
  cmp_ok(atomic_load(&n_turns), "==", 1, "its code ran once, in the turn that came in time");
  cmp_ok(rig_counters(&rig).turns_lost, "==", TOO_LATE, "the others are counted as lost");
  rig_is_told(&rig, DK_LOG_STORE_AWAY, "instance order", "came too late: its lease of 600 ms",
              "give longer leases");
  ok(listener_until(rig.listener, DK_LOG_STORE_BACK, 1), "and when they come in time again");
  rig_end(&rig);
}

static void
test_activities(void)
{
  struct rig rig = begin();

  rig.options.activity_lock_ms = 600;
  rig.options.activity_renewal_buffer_ms = 100;
  faulty_plan(rig.faulty, FAULTY_FETCH_WORK, 0, TOO_LATE, FAULT_OVERDUE, DK_OK);
  rig_run(&rig, "order", "has activity", "2");
  rig_start(&rig);
  is(rig_result(&rig, "order"), "completed: 2", "activities come too late, and it completes");
  cmp_ok(atomic_load(&n_bodies), "==", 1, "the body ran once, in the lease that was alive");
  cmp_ok(rig_counters(&rig).activities_lost, "==", TOO_LATE, "the others are counted as lost");
  rig_is_told(&rig, DK_LOG_LEASE_LOST, "order", "its lease of 600 ms had ended",
              "give a longer activity_lock_ms");
  rig_end(&rig);
}

/* ---- a store that cannot give lost fetches back ---------------------------------------------- */

/* Each counts as an attempt in the store: none of them counts toward poison here. */
static void
test_not_released(enum faulty_operation fetch, const char *what)
{
  struct rig rig = begin();

  rig.options.turn_lock_ms = rig.options.activity_lock_ms = 600;
  rig.options.turn_renewal_buffer_ms = rig.options.activity_renewal_buffer_ms = 100;
  faulty_plan(rig.faulty, fetch, 0, TOO_LATE, FAULT_OVERDUE, DK_OK);
  faulty_plan(rig.faulty, FAULTY_RELEASE_FETCH, 0, UINT32_MAX, FAULT_REFUSE, DK_REFUSED);
  rig_run(&rig, "order", "has activity", "3");
  rig_start(&rig);
  is(rig_result(&rig, "order"), "completed: 3",
     "%s come too late and are not given back: it completes when they come in time", what);
  cmp_ok(faulty_calls(rig.faulty, FAULTY_RELEASE_FETCH), "==", TOO_LATE,
         "what the store refuses to give back is left to its lease, and not asked for again");
  rig_end(&rig);
}

/* ---- the log --------------------------------------------------------------------------------- */

static void
is_warned_of(struct rig *rig, const char *instance, uint32_t n)
{
  rig_run(rig, instance, "has activity", "4");
  is(rig_result(rig, instance), "completed: 4", "activities come too late, for the %s time",
     instance);
  cmp_ok(listener_matching(rig->listener, DK_LOG_LEASE_LOST, -1, -1), "==", n,
         "a row of them is warned of once");
}

static void
test_warned_once(void)
{
  struct rig rig = begin();

  rig.options.activity_lock_ms = 600;
  rig.options.activity_renewal_buffer_ms = 100;
  faulty_plan(rig.faulty, FAULTY_FETCH_WORK, 0, TOO_LATE, FAULT_OVERDUE, DK_OK);
  rig_start(&rig);
  is_warned_of(&rig, "first", 1);
  faulty_plan(rig.faulty, FAULTY_FETCH_WORK, 0, TOO_LATE, FAULT_OVERDUE, DK_OK);
  rig_run(&rig, "between", "has activity", "4"); /* the fetch that waits brings it in time */
  rig_result(&rig, "between");
  is_warned_of(&rig, "second", 2);
  rig_end(&rig);
}

int
main(void)
{
  plan(NO_PLAN);
  test_turns();
  test_activities();
  test_not_released(FAULTY_FETCH_TURN, "turns");
  test_not_released(FAULTY_FETCH_WORK, "activities");
  test_warned_once();
  return done_testing();
}
