/* SPDX-License-Identifier: Apache-2.0 */
/* The deadlines thread of the activity pool.  It puts a body that does not end within its grace
 * into quarantine and gives its slot a new thread; it cancels a call of the store that lasts too
 * long; it joins threads that have returned from quarantine.  Locking: see activity.h. */
#include "core/runtime/activity/activity.h"

#include <assert.h>
#include <stdlib.h>

enum { TRY_AGAIN_MS = 1000 };

bool
activity_pool_is_capped(const struct activity_pool *pool)
{
  assert(dk_lock_is_held(&pool->lock)); /* 1 */
  return pool->n_quarantined >= pool->setup.options->max_quarantined;
}

/* ---- quarantine ------------------------------------------------------------------------------ */

static void
log_quarantine(const struct activity *activity, bool is_cap_reached)
{
  const struct activity_pool *pool = activity->pool;
  struct dk_log_event event = activity_event(activity, DK_LOG_GRACE_EXCEEDED);

  event.ms = activity->grace_ms;
  log_report(pool->setup.log, &event, "it has not ended within its grace of %lld ms",
             (long long)activity->grace_ms);
  event.number = DK_LOG_QUARANTINED;
  log_report(pool->setup.log, &event,
             "its thread is abandoned, its slot is free; let the activity check its token "
             "(dk_task_cancelled), or run it in a process (DK_IN_PROCESS)");
  if (!is_cap_reached)
    return;
  event.number = DK_LOG_CAP_REACHED;
  log_report(pool->setup.log, &event,
             "%u threads are abandoned: no activity is fetched until one of them returns; if "
             "none does, restart the process",
             pool->setup.options->max_quarantined);
}

/* Called under the lock, which is released while this is logged. */
static void
quarantine(struct activity *activity)
{
  struct activity_pool *pool = activity->pool;
  struct lease *lease = activity->lease;

  assert(dk_lock_is_held(&pool->lock));                                    /* 1 */
  assert(activity->state == ACTIVITY_RUNS && lease);                       /* 2, 5 */
  assert(activity->slot->pool == pool && !activity->slot->is_quarantined); /* 8 */
  assert(pool->n_slots > 0);                                               /* 8 */
  assert(dk_token_cancelled(activity->task.token) != DK_CAUSE_NONE);       /* 6 */
  activity->state = ACTIVITY_QUARANTINED;
  activity->slot->is_quarantined = true;
  pool->n_slots--;
  pool->n_quarantined++;
  log_count(pool->setup.log, COUNT_GRACE_EXCEEDED);
  log_count(pool->setup.log, COUNT_GRACE_QUARANTINED);
  log_count(pool->setup.log, COUNT_QUARANTINED_NOW);
  bool is_cap_reached = pool->n_quarantined == pool->setup.options->max_quarantined;
  activity->references++;
  activity_remove(activity);
  if (dk_token_cancelled(activity->task.token) == DK_CAUSE_SHUTDOWN) {
    activity->references++;
    activity->next = pool->to_give_back;
    pool->to_give_back = activity;
    lease = NULL; /* used until then */
  } else {
    activity->lease = NULL;
  }
  dk_unlock(&pool->lock);
  if (lease)
    leases_let_go(pool->setup.leases, lease);
  if (is_cap_reached)
    dk_cancel(pool->fetch_canceller);
  log_quarantine(activity, is_cap_reached);
  activity_drop(activity);
  dk_lock(&pool->lock);
}

/* ---- calls of the store ---------------------------------------------------------------------- */

static int64_t
cancel_at(const struct activity_pool *pool, const struct slot *slot)
{
  if (slot->cancel_at == INT64_MAX || slot->cancel_at < pool->end_at)
    return slot->cancel_at;
  return pool->end_at;
}

static void
cancel_call(struct slot *slot)
{
  struct activity_pool *pool = slot->pool;

  assert(dk_lock_is_held(&pool->lock)); /* 1 */
  assert(!slot->is_being_cancelled);        /* 7: there is one deadlines thread */
  slot->cancel_at = INT64_MAX; /* once: it stays cancelled */
  slot->is_being_cancelled = true;
  dk_unlock(&pool->lock);
  dk_cancel(slot->canceller);
  dk_lock(&pool->lock);
  slot->is_being_cancelled = false;
  pthread_cond_broadcast(&pool->changed);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Joins the threads that were in quarantine and have ended. */
static void
join_returned(struct activity_pool *pool)
{
  struct slot **at = &pool->slots;

  assert(dk_lock_is_held(&pool->lock)); /* 1 */
  while (*at) {
    struct slot *slot = *at;
    if (!slot->is_quarantined || !slot->is_over) {
      at = &slot->next;
      continue;
    }
    *at = slot->next;
    pthread_join(slot->thread, NULL); /* it waited only for our lock, and has released it */
    slot_free(slot);
    free(slot);
  }
}

/* Starts a thread for each slot; false: none could be started, and it must be tried again. */
static bool
fill_slots(struct activity_pool *pool)
{
  uint32_t wanted = pool->setup.options->activity_slots;

  while (!pool->is_ending && !pool->is_over && pool->n_slots < wanted) {
    if (!slot_start(pool))
      return false;
    pthread_cond_broadcast(&pool->changed);
  }
  return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool
is_overdue(const struct activity *activity, int64_t now)
{
  return activity->state == ACTIVITY_RUNS && activity->grace_until > 0 &&
         activity->grace_until <= now && activity->registered->isolation != DK_IN_PROCESS;
}

/* Handles one thing that is due; true: there may be more, because the lists have changed. */
static bool
attend(struct activity_pool *pool, int64_t now)
{
  for (struct activity *activity = pool->activities; activity; activity = activity->next)
    if (is_overdue(activity, now)) {
      quarantine(activity);
      return true;
    }
  for (struct slot *slot = pool->slots; slot; slot = slot->next)
    if (cancel_at(pool, slot) <= now) {
      cancel_call(slot);
      return true;
    }
  if (cancel_at(pool, &pool->own) <= now) {
    cancel_call(&pool->own);
    return true;
  }
  return false;
}

static int64_t
next_look(const struct activity_pool *pool)
{
  int64_t at = cancel_at(pool, &pool->own);

  assert(dk_lock_is_held(&pool->lock)); /* 1 */
  for (const struct activity *activity = pool->activities; activity; activity = activity->next)
    if (is_overdue(activity, INT64_MAX))
      at = ticks_sooner(at, activity->grace_until);
  for (const struct slot *slot = pool->slots; slot; slot = slot->next)
    at = ticks_sooner(at, cancel_at(pool, slot));
  return at;
}

void *
activity_deadlines_main(void *argument)
{
  struct activity_pool *pool = argument;

  dk_lock(&pool->lock);
  while (!pool->is_deadlines_over) {
    int64_t now = ticks_now();
    if (attend(pool, now))
      continue;
    join_returned(pool);
    int64_t until = next_look(pool);
    if (!fill_slots(pool))
      until = ticks_sooner(until, now + TRY_AGAIN_MS);
    ticks_cond_wait(&pool->deadlines_changed, &pool->lock, until);
  }
  dk_unlock(&pool->lock);
  return NULL;
}
