/* SPDX-License-Identifier: Apache-2.0 */
/* One process of the storm: a runtime, until SIGTERM: see storm.h. */
#include "tests/storm/storm.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/failing-store.h"

enum { LOOK_MS = 20, TURN_SLOTS = 4, ACTIVITY_SLOTS = 16 };

/* An activity was notified that it is cancelled: was it? */
static bool
may_be_cancelled(const struct dk_log_event *event)
{
  int number = instance_number(event->instance);
  enum shape shape = number < 0 ? FIVE : instance_shape(number);

  return shape == SELECT || shape == HOLD;
}

static void
listen(void *context, const struct dk_log_event *event)
{
  struct shared *shared = context;

  if (event->number >= 0 && event->number < NUMBERS)
    atomic_fetch_add(&shared->numbers[event->number], 1);
  if (event->level >= DK_LEVEL_TRACE && event->level + 1 < LEVELS)
    atomic_fetch_add(&shared->levels[event->level + 1], 1);
  if (event->number == DK_LOG_ACTIVITY_CANCELLED && event->cause >= 0 && event->cause < CAUSES) {
    atomic_fetch_add(&shared->causes[event->cause], 1);
    if (event->cause == DK_CAUSE_CANCELLED && !may_be_cancelled(event))
      atomic_fetch_add(&shared->wrongly_cancelled, 1);
  }
  if (event->level >= DK_LEVEL_ERROR)
    fprintf(stderr, "# error: %.*s\n", (int)event->text.len, event->text.ptr);
}

/* The store is unreachable for as long as the driver requests. */
static void
until_told(const struct run *run, struct faulty *faulty, const sigset_t *signals)
{
  const struct timespec look = {.tv_nsec = LOOK_MS * 1000000};

  while (sigtimedwait(signals, NULL, &look) != SIGTERM)
    faulty_away(faulty, atomic_load(&run->shared->is_away));
}

static struct dk_runtime *
start_runtime(const struct run *run, struct dk_store *store, struct dk_registry *registry)
{
  const struct dk_runtime_options options = {
    .struct_size = sizeof options,
    .registry = registry,
    .flags = run->by_renewal ? DK_RUNTIME_NO_LOCAL_SIGNAL : 0,
    .log = listen,
    .log_context = run->shared,
    .orchestration_slots = TURN_SLOTS,
    .activity_slots = ACTIVITY_SLOTS,
    .turn_lock_ms = run->lock_ms,
    .turn_renewal_buffer_ms = run->lock_ms / 2,
    .activity_lock_ms = run->lock_ms,
    .activity_renewal_buffer_ms = run->lock_ms / 2,
    .backoff_ms = 50,
    .max_backoff_ms = 1000,
  };
  struct dk_runtime *runtime = NULL;
  struct dk_refusal refusal;

  if (dk_runtime_start(store, &options, &runtime, &refusal) != DK_OK)
    BAIL_OUT("the runtime does not start: %s: %s", refusal.where, refusal.what);
  return runtime;
}

int
run_process(const struct run *run)
{
  struct dk_leftover left = {.struct_size = sizeof left};
  struct dk_registry *registry = dk_registry_new();
  sigset_t signals;

  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  if (!register_shapes(registry, run->shared))
    BAIL_OUT("nothing is registered");
  struct faulty *faulty = faulty_open(run->plugin, run->settings, run->n_settings);
  struct dk_runtime *runtime = start_runtime(run, faulty_store(faulty), registry);
  until_told(run, faulty, &signals);
  int32_t is_gone = dk_runtime_stop(runtime, run->stop_ms, &left);
  atomic_fetch_add(&run->shared->not_given_back, left.not_given_back);
  if (!is_gone)
    return 1;
  faulty_close(faulty);
  dk_registry_free(registry);
  return 0;
}
