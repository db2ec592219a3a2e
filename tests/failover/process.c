/* SPDX-License-Identifier: Apache-2.0 */
/* One worker: a runtime with the times that it has by default, until SIGTERM: see failover.h. */
#include "tests/failover/failover.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

enum { STEP_MS = 20, TURN_SLOTS = 4, ACTIVITY_SLOTS = 8, DRAIN_MS = 5000 };

static struct shared *shared;

/* ---- what it runs ---------------------------------------------------------------------------- */

static void
note_begin(int order, int step)
{
  long long none = 0;

  atomic_fetch_add(&shared->begun[order][step], 1);
  if (atomic_load(&shared->promoted_at) != 0 && atomic_load(&shared->first_at) == 0)
    atomic_compare_exchange_strong(&shared->first_at, &none, real_ms());
}

static void
note_end(int order, int step)
{
  if (atomic_fetch_add(&shared->ended[order][step], 1) == 0 && step == STEPS - 1)
    atomic_fetch_add(&shared->n_done, 1);
}

/* Its input is its number; so is what it gives, one more. */
static dk_result
do_step(dk_task *task, dk_str input)
{
  dk_str instance = dk_task_info(task)->instance;
  int order = instance.len > 6 ? atoi(instance.ptr + 6) : -1, step = atoi(input.ptr);
  char text[16];

  if (order < 0 || order >= MOST_ORDERS || step < 0 || step >= STEPS)
    return dk_error(task, "not a step: %s of %s", input.ptr, instance.ptr);
  note_begin(order, step);
  if (dk_task_sleep(task, STEP_MS) != DK_CAUSE_NONE)
    return dk_error(task, "the step was interrupted");
  note_end(order, step);
  snprintf(text, sizeof text, "%d", step + 1);
  return dk_done(task, dk_str_of(text));
}

static dk_result
do_order(dk_orch *o, dk_str input)
{
  for (int i = 0; i < STEPS; i++)
    input = dk_await(o, dk_activity(o, "step", input));
  return dk_completed(o, input);
}

/* ---- the worker ------------------------------------------------------------------------------ */

static void
tell(void *context, const struct dk_log_event *event)
{
  if (event->level >= DK_LEVEL_WARNING)
    fprintf(stderr, "%s: %.*s\n", (const char *)context, (int)event->text.len, event->text.ptr);
}

static struct dk_registry *
what_is_run(void)
{
  struct dk_registry *registry = dk_registry_new();

  if (!registry || dk_register_orchestration(registry, "order", NULL, do_order) != DK_OK ||
      dk_register_activity(registry, "step", do_step, NULL) != DK_OK)
    BAIL_OUT("nothing is registered");
  return registry;
}

int
run_worker(const struct run *run)
{
  struct dk_registry *registry = what_is_run();
  char who[32];
  const struct dk_runtime_options options = {
    .struct_size = sizeof options, .registry = registry, .log = tell, .log_context = who,
    .orchestration_slots = TURN_SLOTS, .activity_slots = ACTIVITY_SLOTS};
  struct dk_runtime *runtime;
  struct dk_refusal refusal;
  sigset_t signals;
  int number;

  shared = run->shared;
  snprintf(who, sizeof who, "worker %d", (int)getpid());
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  struct dk_store *store = open_store(run, who);
  if (dk_runtime_start(store, &options, &runtime, &refusal) != DK_OK)
    BAIL_OUT("the runtime does not start: %s: %s", refusal.where, refusal.what);
  sigwait(&signals, &number);
  if (!dk_runtime_stop(runtime, DRAIN_MS, NULL))
    return 1;
  close_store(store);
  dk_registry_free(registry);
  return 0;
}
