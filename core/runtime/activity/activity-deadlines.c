/* SPDX-License-Identifier: Apache-2.0 */
/* The warden: sees to the times of the worker.  A body that does not end in its grace goes into
 * quarantine, and its slot gets a new thread; a call of the store that lasts too long is called
 * back; threads that came back from quarantine are joined.  Locking: see activity.h. */
#include "core/runtime/activity/activity.h"

#include <stdlib.h>

enum { TRY_AGAIN_MS = 1000 };

bool
worker_is_capped(const struct worker *worker)
{
  return worker->n_quarantined >= worker->setup.options->max_quarantined;
}

/* ---- quarantine ------------------------------------------------------------------------------ */

static void
tell_quarantine(const struct errand *errand, bool is_cap_reached)
{
  const struct worker *worker = errand->worker;
  struct dk_log_event event = errand_event(errand, DK_LOG_GRACE_EXCEEDED);

  event.ms = errand->grace_ms;
  journal_tell(worker->setup.journal, &event, "it has not ended in its grace of %lld ms",
               (long long)errand->grace_ms);
  event.number = DK_LOG_QUARANTINED;
  journal_tell(worker->setup.journal, &event,
               "its thread is left to itself, its slot is free; let it look at its token "
               "(dk_task_cancelled), or run it in a process (DK_IN_PROCESS)");
  if (!is_cap_reached)
    return;
  event.number = DK_LOG_CAP_REACHED;
  journal_tell(worker->setup.journal, &event,
               "%u threads are left to themselves: no activity is fetched until one of them comes "
               "back; if none does, restart the process",
               worker->setup.options->max_quarantined);
}

/* Under the lock, which is open while it is told. */
static void
quarantine(struct errand *errand)
{
  struct worker *worker = errand->worker;
  struct lease *lease = errand->lease;

  errand->state = ERRAND_QUARANTINED;
  errand->slot->is_quarantined = true;
  worker->n_slots--;
  worker->n_quarantined++;
  journal_count(worker->setup.journal, COUNT_GRACE_EXCEEDED);
  journal_count(worker->setup.journal, COUNT_GRACE_QUARANTINED);
  journal_count(worker->setup.journal, COUNT_QUARANTINED_NOW);
  bool is_cap_reached = worker->n_quarantined == worker->setup.options->max_quarantined;
  errand->references++;
  errand_remove(errand);
  if (dk_token_cancelled(errand->task.token) == DK_CAUSE_SHUTDOWN) {
    errand->references++;
    errand->next = worker->to_give_back;
    worker->to_give_back = errand;
    lease = NULL; /* needed until then */
  } else {
    errand->lease = NULL;
  }
  pthread_mutex_unlock(&worker->lock);
  if (lease)
    keeper_let_go(worker->setup.keeper, lease);
  if (is_cap_reached)
    dk_cancel(worker->fetch_canceller);
  tell_quarantine(errand, is_cap_reached);
  errand_drop(errand);
  pthread_mutex_lock(&worker->lock);
}

/* ---- calls of the store ---------------------------------------------------------------------- */

static int64_t
call_back_at(const struct worker *worker, const struct slot *slot)
{
  if (slot->call_back_at == INT64_MAX || slot->call_back_at < worker->end_at)
    return slot->call_back_at;
  return worker->end_at;
}

static void
call_back(struct slot *slot)
{
  struct worker *worker = slot->worker;

  slot->call_back_at = INT64_MAX; /* once: it stays called back */
  slot->is_called_back = true;
  pthread_mutex_unlock(&worker->lock);
  dk_cancel(slot->canceller);
  pthread_mutex_lock(&worker->lock);
  slot->is_called_back = false;
  pthread_cond_broadcast(&worker->changed);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Those that were in quarantine and are over. */
static void
join_returned(struct worker *worker)
{
  struct slot **at = &worker->slots;

  while (*at) {
    struct slot *slot = *at;
    if (!slot->is_quarantined || !slot->is_over) {
      at = &slot->next;
      continue;
    }
    *at = slot->next;
    pthread_join(slot->thread, NULL); /* it waits for nothing but our lock, and is past that */
    slot_free(slot);
    free(slot);
  }
}

/* A thread for each slot; false: there is none to be had, and it is to be tried again. */
static bool
fill_slots(struct worker *worker)
{
  uint32_t wanted = worker->setup.options->activity_slots;

  while (!worker->is_ending && !worker->is_over && worker->n_slots < wanted) {
    if (!slot_start(worker))
      return false;
    pthread_cond_broadcast(&worker->changed);
  }
  return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool
is_overdue(const struct errand *errand, int64_t now)
{
  return errand->state == ERRAND_RUNS && errand->grace_until > 0 && errand->grace_until <= now &&
         errand->registered->isolation != DK_IN_PROCESS;
}

/* One thing that is due; true: there may be more, the lists have changed. */
static bool
attend(struct worker *worker, int64_t now)
{
  for (struct errand *errand = worker->errands; errand; errand = errand->next)
    if (is_overdue(errand, now)) {
      quarantine(errand);
      return true;
    }
  for (struct slot *slot = worker->slots; slot; slot = slot->next)
    if (call_back_at(worker, slot) <= now) {
      call_back(slot);
      return true;
    }
  if (call_back_at(worker, &worker->own) <= now) {
    call_back(&worker->own);
    return true;
  }
  return false;
}

static int64_t
sooner(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static int64_t
next_look(const struct worker *worker)
{
  int64_t at = call_back_at(worker, &worker->own);

  for (const struct errand *errand = worker->errands; errand; errand = errand->next)
    if (is_overdue(errand, INT64_MAX))
      at = sooner(at, errand->grace_until);
  for (const struct slot *slot = worker->slots; slot; slot = slot->next)
    at = sooner(at, call_back_at(worker, slot));
  return at;
}

void *
warden_main(void *argument)
{
  struct worker *worker = argument;

  pthread_mutex_lock(&worker->lock);
  while (!worker->is_warden_over) {
    int64_t now = ticks_now();
    if (attend(worker, now))
      continue;
    join_returned(worker);
    int64_t until = next_look(worker);
    if (!fill_slots(worker))
      until = sooner(until, now + TRY_AGAIN_MS);
    ticks_cond_wait(&worker->warden_looks, &worker->lock, until);
  }
  pthread_mutex_unlock(&worker->lock);
  return NULL;
}
