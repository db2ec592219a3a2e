/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping: it waits for what runs; what does not end is given back or abandoned, and reported. */
#include <semaphore.h>
#include <stdatomic.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

static sem_t has_begun, go_on;

static void
wait_for(sem_t *semaphore)
{
  while (sem_wait(semaphore) != 0)
    continue;
}

static dk_result
hello(dk_orch *o, dk_str input)
{
  return dk_completed(o, input);
}

/* Stays in the middle of its turn until the test lets it continue. */
static dk_result
slow(dk_orch *o, dk_str input)
{
  sem_post(&has_begun);
  wait_for(&go_on);
  return dk_completed(o, input);
}

/* Busy with calls; it is delayed when the runtime ends. */
static dk_result
busy(dk_orch *o, dk_str input)
{
  sem_post(&has_begun);
  for (;;)
    dk_replaying(o), dk_ready(o, dk_external(o, "never"));
  return dk_completed(o, input);
}

static struct rig
begin(void)
{
  struct rig rig = rig_begin();

  sem_init(&has_begun, 0, 0);
  sem_init(&go_on, 0, 0);
  rig_orchestration(&rig, "hello", hello);
  rig_orchestration(&rig, "slow", slow);
  rig_orchestration(&rig, "busy", busy);
  rig.options.max_events = UINT32_MAX;
  rig.options.max_turn_ms = 600000;
  return rig;
}

static void
end(struct rig *rig)
{
  rig_end(rig);
  sem_destroy(&has_begun);
  sem_destroy(&go_on);
}

static void *
let_go_on(void *argument)
{
  struct rig *rig = argument;

  a_moment();
  (void)rig;
  sem_post(&go_on);
  return NULL;
}

static void
test_idle(void)
{
  struct rig rig = begin();

  rig.options.poll_ms = 3600 * 1000;
  rig_start(&rig);
  rig_run(&rig, "i", "hello", "x");
  is(rig_result(&rig, "i"), "completed: x", "one instance");
  int64_t began = ticks_now();
  struct dk_leftover leftover = rig_stop(&rig, 3600 * 1000);
  cmp_ok(ticks_now() - began, "<", 60000, "the fetches are cancelled, and the stop does not wait");
  cmp_ok(leftover.turns + leftover.activities + leftover.quarantined + leftover.not_given_back,
         "==", 0, "and nothing is left");
  cmp_ok(listener_count(rig.listener, DK_LOG_STORE_AWAY), "==", 0,
         "a cancelled call does not count as an outage");
  end(&rig);
}

static void
test_drained(void)
{
  struct rig rig = begin();
  pthread_t thread;

  rig_start(&rig);
  rig_run(&rig, "i", "slow", "x");
  wait_for(&has_begun);
  pthread_create(&thread, NULL, let_go_on, &rig);
  struct dk_leftover leftover = rig_stop(&rig, RIG_WAIT_MS);
  pthread_join(thread, NULL);
  cmp_ok(leftover.turns, "==", 0, "a turn that ends in time is waited for");
  is(rig_result(&rig, "i"), "completed: x", "and committed");
  end(&rig);
}

static void
test_given_back(void)
{
  struct rig rig = begin();
  struct dk_turn *turn = NULL;
  const struct dk_fetch_turn request = {.struct_size = sizeof(request), .lock_ms = 1000};

  rig.options.turn_lock_ms = 600000; /* under Valgrind other threads hardly run beside such code */
  rig_start(&rig);
  rig_run(&rig, "i", "busy", "x");
  wait_for(&has_begun);
  struct dk_leftover leftover = rig_stop(&rig, 0);
  cmp_ok(leftover.turns, "==", 1, "a turn that does not end in time is given back");
  cmp_ok(leftover.not_given_back, "==", 0, "which works");
  cmp_ok(leftover.quarantined, "==", 0, "and leaves no thread");
  dk_caller_reset(rig.caller);
  ok(dk_store_fetch_orchestration_item(rig.store, rig.caller, &request, &turn) == DK_OK,
     "the next one can have it at once");
  cmp_ok(turn ? turn->messages[0].attempt : 0, "==", 1, "and the attempt does not count");
  end(&rig);
}

/* The memory of a runtime that could not be freed stays reachable, so that it is not a leak. */
static struct dk_runtime *left[4];

static void
test_left(void)
{
  struct rig rig = begin();

  rig_start(&rig);
  rig_run(&rig, "i", "slow", "x");
  wait_for(&has_begun);
  struct dk_leftover leftover = {.struct_size = sizeof(leftover)};
  left[0] = rig.runtime;
  rig.runtime = NULL;
  ok(dk_runtime_stop(left[0], 0, &leftover) == 0, "code that does not return is abandoned");
  cmp_ok(leftover.turns, "==", 1, "a turn");
  cmp_ok(leftover.quarantined, "==", 1, "in a thread");
  cmp_ok(leftover.not_given_back, "==", 1, "which waits for the end of its lease");
  uint64_t calls = faulty_calls(rig.faulty, FAULTY_ACK_TURN);
  sem_post(&go_on);
  for (int i = 0; i < 100; i++)
    a_moment();
  cmp_ok(faulty_calls(rig.faulty, FAULTY_ACK_TURN), "==", calls,
         "after its return it calls nothing");
  end(&rig);
}

static void
test_hanging_commit(void)
{
  struct rig rig = begin();

  faulty_plan(rig.faulty, FAULTY_ACK_TURN, 0, 1, FAULT_HANG, DK_OK);
  rig_start(&rig);
  rig_run(&rig, "i", "hello", "x");
  ok(faulty_until_hanging(rig.faulty, 1), "a commit hangs");
  struct dk_leftover leftover = {.struct_size = sizeof(leftover)};
  left[1] = rig.runtime;
  rig.runtime = NULL;
  ok(dk_runtime_stop(left[1], 0, &leftover) == 1, "it is cancelled");
  cmp_ok(leftover.turns, "==", 1, "and its turn is given back");
  cmp_ok(leftover.not_given_back, "==", 0, "which works");
  end(&rig);
}

static void
test_deaf_commit(void)
{
  struct rig rig = begin();

  faulty_plan(rig.faulty, FAULTY_ACK_TURN, 0, 1, FAULT_DEAF, DK_OK);
  rig_start(&rig);
  rig_run(&rig, "i", "hello", "x");
  ok(faulty_until_hanging(rig.faulty, 1), "a commit hangs and ignores cancellation");
  struct dk_leftover leftover = {.struct_size = sizeof(leftover)};
  left[2] = rig.runtime;
  rig.runtime = NULL;
  ok(dk_runtime_stop(left[2], 0, &leftover) == 0, "its thread is abandoned");
  cmp_ok(leftover.quarantined, "==", 1, "which is reported");
  faulty_release(rig.faulty);
  rig_start(&rig);
  is(rig_result(&rig, "i"), "completed: x", "it is done once, by the old runtime or the new one");
  end(&rig);
}

/* The runtime itself is freed then: it is the leases' own thread. */
static void
test_deaf_renewal(void)
{
  struct rig rig = begin();
  struct dk_leftover leftover = {.struct_size = sizeof(leftover)};

  rig.options.turn_lock_ms = 60000;
  rig.options.turn_renewal_buffer_ms = 59400;
  rig_start(&rig);
  faulty_plan(rig.faulty, FAULTY_RENEW_TURN, 0, 1, FAULT_DEAF, DK_OK);
  rig_run(&rig, "i", "slow", "x");
  ok(faulty_until_hanging(rig.faulty, 1), "a renewal hangs and is deaf");
  sem_post(&go_on);
  is(rig_result(&rig, "i"), "completed: x", "its turn is committed");
  ok(dk_runtime_stop(rig.runtime, 0, &leftover) == 0, "a stop does not wait for it for ever");
  rig.runtime = NULL;
  cmp_ok(leftover.quarantined, "==", 1, "and reports that a thread is abandoned");
  faulty_release(rig.faulty);
  end(&rig);
}

/* If the store cannot list what it holds, a start that cannot run yet is delayed under its lease;
 * it is given back when the runtime stops. */
static void
test_parked(void)
{
  struct rig rig = rig_begin_on(faulty_open_plain_model());

  rig.options.backoff_ms = rig.options.max_backoff_ms = 3600 * 1000;
  rig_start(&rig);
  rig_run(&rig, "i", "later", "x");
  ok(listener_until(rig.listener, DK_LOG_STALLED, 1), "it is not registered");
  rig_stop(&rig, 1000);
  rig_orchestration(&rig, "later", hello);
  rig_start(&rig);
  is(rig_result(&rig, "i"), "completed: x", "the next runtime gets it at once");
  rig_end(&rig);
}

static void
test_older_caller(void)
{
  struct rig rig = begin();
  struct dk_leftover leftover = {.struct_size = 8, .turns = 77, .activities = 77};

  rig_start(&rig);
  ok(dk_runtime_stop(rig.runtime, 0, &leftover) == 1, "stopped by an older caller");
  rig.runtime = NULL;
  cmp_ok(leftover.turns, "==", 0, "a member that it knows is written");
  cmp_ok(leftover.activities, "==", 77, "one that it does not know is not");
  ok(dk_runtime_stop(NULL, 0, NULL) == 1, "no runtime at all is stopped");
  end(&rig);
}

int
main(void)
{
  test_idle();
  test_drained();
  test_given_back();
  test_left();
  test_hanging_commit();
  test_deaf_commit();
  test_deaf_renewal();
  test_parked();
  test_older_caller();
  return done_testing();
}
