/* SPDX-License-Identifier: Apache-2.0 */
/* The poller: fetches as many activities as there are free slots, and passes them to the slots.  It
 * waits in the store; its fetch is cancelled when the pool drains or its cap is reached.  Locking:
 * see activity.h.
 */
#include "core/runtime/activity/activity.h"

#include <assert.h>

#include "core/plugin/store.h"

enum { FIRST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 1000 };

/* ---- fetching -------------------------------------------------------------------------------- */

/* How many may be fetched now; waits for a free slot.  0: no more.  A cancellation of the fetch
 * from now on reaches the next fetch, and a row that a commit deletes from now on might be one that
 * it returns. */
static uint32_t
wait_for_room(struct activity_pool *pool)
{
  dk_lock(&pool->lock);
  pool->is_fetching = false;
  activity_forget_early(pool);
  while (!pool->is_draining &&
         (activity_pool_is_capped(pool) || pool->n_slots <= pool->n_activities)) {
    health_rest(&pool->setup.log->health, &pool->fetching);
    dk_lock_wait(&pool->lock, &pool->changed);
  }
  uint32_t room = pool->is_draining ? 0 : pool->n_slots - pool->n_activities;
  pool->is_fetching = room > 0;
  assert(!pool->early); /* none is kept while nothing is fetched */
  dk_canceller_reset(pool->fetch_canceller);
  dk_unlock(&pool->lock);
  return room;
}

/* After a failure it does not wait for work, so that a recovery of the store is logged at once. */
static dk_status
activity_fetch_fetch(struct activity_pool *pool, uint32_t room, bool has_failed,
                     struct dk_works **ret_works)
{
  const struct dk_runtime_options *options = pool->setup.options;
  struct dk_store *store = pool->setup.store;
  struct dk_fetch_work request = {
      .struct_size = sizeof(request),
      .max_items = room,
      .lock_ms = options->activity_lock_ms,
      .wait_until = has_failed ? 0 : ticks_after(dk_store_now(store), options->poll_ms),
      .owner = dk_str_of(pool->setup.name),
      .tag_rule = options->tag_rule,
      .session_rule = options->session_rule,
      .tags = options->tags,
      .n_tags = options->n_tags,
      .session_lock_ms = options->session_rule == DK_SESSION_NONE ? 0 : options->session_lock_ms,
  };

  request.fetch_id = fetch_ids_next(&pool->fetch_ids);
  dk_caller_reset(pool->fetcher);
  health_ask(&pool->setup.log->health, &pool->fetching, HEALTH_WORK,
             has_failed ? 0 : options->poll_ms);
  dk_status status = dk_store_fetch_work_item(store, pool->fetcher, &request, ret_works);
  lost_fetch_note(&pool->lost, request.fetch_id, status);
  return status;
}

/* If the answer of the last fetch was lost, gives back what it locked before the next one. */
static dk_status
release_lost(struct activity_pool *pool)
{
  if (pool->lost.id != 0)
    health_ask(&pool->setup.log->health, &pool->fetching, HEALTH_WORK, 0);
  return lost_fetch_release(&pool->lost, pool->setup.store, pool->fetcher);
}

/* No fetch follows.  The canceller of fetches must not cancel this call. */
static void
release_last(struct activity_pool *pool)
{
  dk_caller_set_canceller(pool->fetcher, NULL);
  if (lost_fetch_is_near(&pool->lost))
    release_lost(pool);
}

/* ---- handing over ---------------------------------------------------------------------------- */

/* Gives an item back that cannot be run here.  If the store does not answer, its lease expires. */
static void
return_item(struct activity_pool *pool, const struct dk_work_item *item, const char *why)
{
  struct dk_log_event event = {
    .struct_size = sizeof(event),
    .number = DK_LOG_TEXT,
    .level = DK_LEVEL_INFO,
    .execution_id = item->item.execution_id,
    .activity_id = item->item.activity_id,
    .instance = item->item.instance,
    .token = item->work.lock_token,
  };
  /* A cancellation that is meant for a fetch must not cancel this call. */
  dk_caller_set_canceller(pool->fetcher, NULL);
  dk_status status =
      dk_store_abandon_work_item(pool->setup.store, pool->fetcher, item->work.lock_token, 0, 1);
  dk_caller_set_canceller(pool->fetcher, pool->fetch_canceller);

  event.status = status;
  log_count(pool->setup.log, COUNT_ACTIVITIES_PUT_OFF);
  log_report(pool->setup.log, &event, "it is given back to the store: %s", why);
  dk_lock(&pool->lock);
  if (pool->is_draining) {
    pool->leftover.activities++;
    pool->leftover.not_given_back += status != DK_OK && status != DK_LOCK_LOST;
  }
  dk_unlock(&pool->lock);
}

/* Signals it before it runs, and takes a reference, if a commit has already deleted its row; false:
 * no commit has.  Under the lock. */
static bool
signal_early(struct activity *activity)
{
  int64_t since_ns;

  assert(dk_lock_is_held(&activity->pool->lock)); /* 1 */
  if (!activity_is_early(activity, &since_ns) ||
      !activity_signal(activity, DK_CAUSE_CANCELLED, DK_LEARNT_BY_COMMIT, since_ns))
    return false;
  activity->references++;
  return true;
}

static void
hand_over(struct activity_pool *pool, const struct dk_work_item *item)
{
  struct activity *activity = activity_new(pool, item);
  bool is_signalled = false;

  if (!activity) {
    return_item(pool, item, "there is no memory to run it");
    return;
  }
  dk_lock(&pool->lock);
  bool is_taken = !pool->is_draining;
  if (is_taken) {
    activity_add(activity);
    is_signalled = signal_early(activity);
  }
  dk_unlock(&pool->lock);
  if (is_signalled) {
    activity_log_signal(activity, DK_CAUSE_CANCELLED, DK_LEARNT_BY_COMMIT);
    activity_drop(activity);
  }
  if (is_taken)
    return;
  return_item(pool, item, "the runtime stops");
  activity_drop(activity);
}

/* ---- leases that have ended ------------------------------------------------------------------ */

static void
log_overdue(struct activity_pool *pool, const struct dk_work_item *item)
{
  struct dk_log_event event = {
      .struct_size = sizeof(event),
      .number = DK_LOG_LEASE_LOST,
      .level = pool->is_late ? DK_LEVEL_TRACE : 0,
      .execution_id = item->item.execution_id,
      .activity_id = item->item.activity_id,
      .instance = item->item.instance,
      .token = item->work.lock_token,
  };

  log_report(pool->setup.log, &event,
             "its lease of %lld ms had ended before the store's answer came: it does not run, "
             "the attempt does not count, and it is fetched again; give a longer "
             "activity_lock_ms, or a faster store",
             (long long)pool->setup.options->activity_lock_ms);
}

/* The store has counted these attempts, but they were never made. */
static void
pardon_overdue(struct activity_pool *pool)
{
  const struct dk_overdue *overdue = dk_caller_overdue(pool->fetcher);

  for (size_t i = 0; i < overdue->n_items; i++) {
    activity_pardon_item(pool, &overdue->items[i]);
    log_count(pool->setup.log, COUNT_ACTIVITIES_LOST);
    log_overdue(pool, &overdue->items[i]);
    pool->is_late = true;
  }
}

/* ---- failures -------------------------------------------------------------------------------- */

static void
fetch_was_refused(struct activity_pool *pool, dk_status status)
{
  const struct dk_log_event event = {.number = DK_LOG_STORE_AWAY, .status = status};
  const char *why = dk_caller_failure(pool->fetcher)->text;
  struct log *log = pool->setup.log;

  if (health_refused(&log->health, &pool->fetching, status, why))
    log_report(log, &event, "activities cannot be fetched, trying until they can: %s", why);
}

static void
fetch_was_good(struct activity_pool *pool)
{
  struct dk_log_event event = {.number = DK_LOG_STORE_BACK};
  struct log *log = pool->setup.log;

  if (health_good(&log->health, &pool->fetching, &event.ms))
    log_report(log, &event, "activities can be fetched again, after %lld ms", (long long)event.ms);
}

static void
note_status(struct activity_pool *pool, dk_status status)
{
  if (status == DK_OK || status == DK_NOTHING)
    fetch_was_good(pool);
  else
    fetch_was_refused(pool, status);
}

/* Pauses after a failure, longer each time; shorter if the pool drains. */
static void
pause_after(struct activity_pool *pool, uint32_t failures)
{
  int64_t pause = (int64_t)FIRST_PAUSE_MS << (failures < 8 ? failures : 8);
  int64_t until = ticks_now() + (pause < LONGEST_PAUSE_MS ? pause : LONGEST_PAUSE_MS);

  dk_lock(&pool->lock);
  while (!pool->is_draining && ticks_now() < until)
    ticks_cond_wait(&pool->changed, &pool->lock, until);
  dk_unlock(&pool->lock);
}

/* ---- the thread ------------------------------------------------------------------------------ */

void *
activity_fetch_main(void *argument)
{
  struct activity_pool *pool = argument;
  struct health *health = &pool->setup.log->health;
  uint32_t room, failures = 0;

  while ((room = wait_for_room(pool)) > 0) {
    struct dk_works *works = NULL;
    bool fails = health_fails(health, HEALTH_WORK);
    dk_status status = release_lost(pool);
    if (status == DK_OK)
      status = activity_fetch_fetch(pool, room, failures > 0 || fails, &works);
    if (status != DK_OK && dk_cancelled(pool->fetch_canceller)) {
      health_rest(health, &pool->fetching); /* cancelled: that shows nothing about the store */
      continue;
    }
    note_status(pool, status);
    if (status == DK_OK && dk_caller_overdue(pool->fetcher)->n_items == 0)
      pool->is_late = false;
    pardon_overdue(pool);
    for (size_t i = 0; status == DK_OK && i < works->n_items; i++)
      hand_over(pool, &works->items[i]);
    failures = status == DK_OK || status == DK_NOTHING ? 0 : failures + 1;
    if (failures > 0 || (status == DK_NOTHING && health_fails(health, HEALTH_WORK)))
      pause_after(pool, failures);
  }
  release_last(pool);
  health_rest(health, &pool->fetching);
  dk_lock(&pool->lock);
  pool->is_poller_over = true;
  pthread_cond_broadcast(&pool->changed);
  dk_unlock(&pool->lock);
  return NULL;
}
