/* SPDX-License-Identifier: Apache-2.0 */
/* Health judges each kind of request separately: what the store refuses, and what it does not
 * answer, while all other requests succeed. */
#include <stdatomic.h>
#include <stdio.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

static atomic_bool may_end;

static dk_result
works(dk_task *task, dk_str input)
{
  while (!atomic_load(&may_end))
    if (dk_task_sleep(task, 20) != DK_CAUSE_NONE)
      break;
  return dk_done(task, input);
}

static dk_result
one_step(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, "works", input)));
}

static struct rig
begin(bool runs_long)
{
  struct rig rig = rig_begin();

  atomic_store(&may_end, !runs_long);
  rig_activity(&rig, "works", works);
  rig_orchestration(&rig, "one step", one_step);
  return rig;
}

/* It says so; the last that it has said, if it does not. */
static bool
says(struct rig *rig, const char *part)
{
  char reason[512] = "";

  if (UNTIL(!dk_runtime_healthy(rig->runtime, reason, sizeof(reason)) && strstr(reason, part)))
    return true;
  diag("healthy, or: %s", reason);
  return false;
}

static void
is_well_again(struct rig *rig)
{
  char reason[512] = "";

  faulty_heal(rig->faulty);
  faulty_release(rig->faulty);
  atomic_store(&may_end, true);
  is(rig_result(rig, "i"), "completed: x", "when it works again the instance completes");
  ok(UNTIL(dk_runtime_healthy(rig->runtime, reason, sizeof(reason))), "and all is well");
  rig_end(rig);
}

/* ---- refused --------------------------------------------------------------------------------- */

static void
refuses(enum faulty_operation operation, dk_status status, const char *what)
{
  struct rig rig = begin(operation == FAULTY_RENEW_WORK);

  rig.options.activity_lock_ms = 60 * 1000;
  rig.options.activity_renewal_buffer_ms = 59 * 1000;
  faulty_plan(rig.faulty, operation, 0, UINT32_MAX, FAULT_REFUSE, status);
  if (operation == FAULTY_ACK_WORK) /* else the activity would be delayed for that */
    faulty_plan(rig.faulty, FAULTY_ABANDON_WORK, 0, UINT32_MAX, FAULT_REFUSE, status);
  rig_start(&rig);
  rig_run(&rig, "i", "one step", "x");
  ok(says(&rig, what), "%s by status %d: health says it", what, (int)status);
  is_well_again(&rig);
}

/* ---- without an answer ----------------------------------------------------------------------- */

/* Leases are so long that nothing is cancelled meanwhile. */
static void
hangs(enum faulty_operation operation, const char *what)
{
  struct rig rig = begin(operation == FAULTY_RENEW_WORK);

  rig.options.turn_lock_ms = rig.options.activity_lock_ms = 600 * 1000;
  rig.options.turn_renewal_buffer_ms = 1000;
  rig.options.activity_renewal_buffer_ms = 599 * 1000;
  rig.options.orchestration_slots = 1;
  faulty_plan(rig.faulty, operation, 0, 1, FAULT_HANG, DK_OK);
  rig_start(&rig);
  rig_run(&rig, "i", "one step", "x");
  ok(faulty_until_hanging(rig.faulty, 1), "one hangs");
  int64_t began = ticks_now();
  ok(says(&rig, what), "%s: health reports it", what);
  cmp_ok(ticks_now() - began, "<", 30000, "before any call is cancelled");
  is_well_again(&rig);
}

/* ---- what is logged -------------------------------------------------------------------------- */

/* Each instance's first commit fails, and its second does not. */
static void
test_flapping(void)
{
  enum { INSTANCES = 20 };
  struct rig rig = begin(false);
  char name[16];

  rig_start(&rig);
  for (int i = 0; i < INSTANCES; i++) {
    snprintf(name, sizeof(name), "i-%d", i);
    faulty_plan(rig.faulty, FAULTY_ACK_TURN, 0, 1, FAULT_REFUSE, DK_UNAVAILABLE);
    rig_run(&rig, name, "one step", "x");
    rig_result(&rig, name);
  }
  cmp_ok(rig_counters(&rig).acks_retried, ">=", INSTANCES, "commits fail and succeed by turns");
  cmp_ok(listener_level(rig.listener, DK_LEVEL_WARNING), "<=", 3, "which is logged once or twice");
  cmp_ok(listener_count(rig.listener, DK_LOG_STORE_BACK), "<=", 3, "and so is the recovery");
  rig_end(&rig);
}

int
main(void)
{
  static const dk_status refusals[] = {DK_UNAVAILABLE, DK_BUSY, DK_REFUSED};

  for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
    refuses(FAULTY_FETCH_TURN, refusals[i], "turns cannot be fetched for ");
    refuses(FAULTY_FETCH_WORK, refusals[i], "activities cannot be fetched for ");
    refuses(FAULTY_ACK_TURN, refusals[i], "turns cannot be committed for ");
    refuses(FAULTY_ACK_WORK, refusals[i], "ends of activities cannot be stored for ");
    refuses(FAULTY_RENEW_WORK, refusals[i], "leases cannot be renewed for ");
  }
  hangs(FAULTY_ACK_TURN, "the commit of a turn has had no answer for ");
  hangs(FAULTY_ACK_WORK, "the end of an activity has had no answer for ");
  hangs(FAULTY_RENEW_WORK, "the renewal of a lease has had no answer for ");
  test_flapping();
  return done_testing();
}
