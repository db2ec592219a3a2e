/* SPDX-License-Identifier: Apache-2.0 */
/* The turn pool: starts and stops its threads and the deadlines thread.  Locking:
 * turn-loop.h. */
#include "core/runtime/turn/turn-pool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/plugin/refusal.h"
#include "core/runtime/turn/turn-loop.h"

enum {
  LET_GO_ON_MS = 500,       /* at the end, before calls are cancelled */
  LEAVE_MS = 5000,          /* at the end, before a thread is abandoned */
  MOST_REPLACED = 4096
};

/* ---- starting -------------------------------------------------------------------------------- */

static bool
offers(struct dk_store *store, const char *id)
{
  return dk_store_extension(store, id) != NULL;
}

/* The number of stuck threads that are replaced. */
static uint32_t
most_replaced(const struct dk_runtime_options *options)
{
  return options->max_quarantined < MOST_REPLACED ? options->max_quarantined : MOST_REPLACED;
}

static bool
turn_pool_prepare(struct turn_pool *pool, const struct turn_pool_setup *setup)
{
  pool->shared = (struct turn_shared){
      .store = setup->store,
      .options = setup->options,
      .leases = setup->leases,
      .log = setup->log,
      .activities = setup->activities,
      .owner = dk_str_of(setup->name),
      .limits = *dk_library_provider(dk_store_library(setup->store))->limits,
      .has_kv = offers(setup->store, "durakit.kv/1"),
      .has_status = offers(setup->store, "durakit.status/1"),
      .has_sessions = offers(setup->store, "durakit.sessions/1"),
      .has_admin = offers(setup->store, "durakit.admin/1"),
      .cache = cache_new(setup->options->cache_bytes, CACHE_RUNS),
      .retries = retry_counts_new(),
      .too_short = short_limits_new(),
      .delayed_starts = delayed_starts_begin(setup->store),
  };
  fetch_ids_begin(&pool->fetch_ids, setup->store);
  pool->next_alarm = INT64_MAX;
  pool->most_threads = setup->options->orchestration_slots + most_replaced(setup->options);
  pool->threads = calloc(pool->most_threads, sizeof(struct turn_thread *));
  dk_lock_init(&pool->lock);
  ticks_cond_init(&pool->idle);
  ticks_cond_init(&pool->changed);
  ticks_cond_init(&pool->alarm_changed);
  return pool->shared.cache && pool->shared.retries && pool->shared.too_short &&
         pool->shared.delayed_starts && pool->threads;
}

static void
discard(struct turn_pool *pool)
{
  for (uint32_t i = 0; i < pool->n_threads; i++)
    turn_thread_free(pool->threads[i]);
  free(pool->threads);
  delayed_starts_end(pool->shared.delayed_starts); /* it is still empty */
  cache_free(pool->shared.cache);
  retry_counts_free(pool->shared.retries);
  short_limits_free(pool->shared.too_short);
  pthread_cond_destroy(&pool->alarm_changed);
  pthread_cond_destroy(&pool->changed);
  pthread_cond_destroy(&pool->idle);
  dk_lock_done(&pool->lock);
  free(pool);
}

static void
stop_watcher(struct turn_pool *pool)
{
  dk_lock(&pool->lock);
  pool->deadlines_stop = true;
  pthread_cond_signal(&pool->alarm_changed);
  dk_unlock(&pool->lock);
  pthread_join(pool->deadlines_thread, NULL);
}

static void
join_threads(struct turn_pool *pool)
{
  for (uint32_t i = 0; i < pool->n_threads; i++) {
    struct turn_thread *thread = pool->threads[i];
    if (thread->is_left)
      pthread_detach(thread->pthread);
    else
      pthread_join(thread->pthread, NULL);
  }
}

static bool
add_all_threads(struct turn_pool *pool)
{
  bool all = true;

  dk_lock(&pool->lock);
  while (all && pool->n_threads < pool->shared.options->orchestration_slots)
    all = turn_thread_add(pool);
  dk_unlock(&pool->lock);
  return all;
}

static dk_status
turn_pool_refuse(struct dk_refusal *ret_refusal)
{
  dk_refusal_begin(ret_refusal, 0, "orchestration_slots", "the runtime cannot start its threads");
  dk_refusal_say(ret_refusal->expected, "memory, threads and descriptors for its slots");
  dk_refusal_say(ret_refusal->next, "raise the limits of the process, or use fewer slots");
  return DK_NO_MEMORY;
}

dk_status
turn_pool_start(const struct turn_pool_setup *setup, struct turn_pool **ret_pool,
                struct dk_refusal *ret_refusal)
{
  struct turn_pool *pool = calloc(1, sizeof(*pool));

  if (!pool)
    return turn_pool_refuse(ret_refusal);
  if (!turn_pool_prepare(pool, setup) ||
      pthread_create(&pool->deadlines_thread, NULL, turn_deadlines_main, pool) != 0) {
    discard(pool);
    return turn_pool_refuse(ret_refusal);
  }
  if (!add_all_threads(pool)) {
    turn_pool_stop_fetching(pool);
    stop_watcher(pool);
    join_threads(pool);
    discard(pool);
    return turn_pool_refuse(ret_refusal);
  }
  *ret_pool = pool;
  return DK_OK;
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void
wake_all(struct turn_pool *pool)
{
  assert(dk_lock_is_held(&pool->lock));
  pthread_cond_broadcast(&pool->idle);
  for (uint32_t i = 0; i < pool->n_threads; i++)
    pthread_cond_broadcast(&pool->threads[i]->wake);
}

static void
turn_pool_cancel_all(struct turn_pool *pool, enum turn_thread_state state)
{
  assert(dk_lock_is_held(&pool->lock));
  for (uint32_t i = 0; i < pool->n_threads; i++)
    if (pool->threads[i]->state == state)
      dk_cancel(pool->threads[i]->canceller);
}

void
turn_pool_stop_fetching(struct turn_pool *pool)
{
  dk_lock(&pool->lock);
  pool->is_stopping = true;
  turn_pool_cancel_all(pool, THREAD_FETCHES);
  wake_all(pool);
  dk_unlock(&pool->lock);
}

/* The number of busy threads, without those that are stuck. */
static uint32_t
n_busy(const struct turn_pool *pool)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < pool->n_threads; i++)
    n += turn_thread_is_busy(pool->threads[i]) && !pool->threads[i]->is_stuck;
  return n;
}

static void
wait_for_jobs(struct turn_pool *pool, int64_t until)
{
  assert(dk_lock_is_held(&pool->lock));
  while (n_busy(pool) > 0 && ticks_now() < until)
    ticks_cond_wait(&pool->changed, &pool->lock, until);
}

bool
turn_pool_drain(struct turn_pool *pool, int64_t until)
{
  dk_lock(&pool->lock);
  wait_for_jobs(pool, until);
  bool is_quiet = n_busy(pool) == 0 && pool->n_stuck == 0;
  dk_unlock(&pool->lock);
  return is_quiet;
}

static void
leave_those_that_stay(struct turn_pool *pool)
{
  assert(dk_lock_is_held(&pool->lock));
  pool->n_left = n_busy(pool) + pool->n_stuck;
  pool->is_over = pool->n_left > 0;
  for (uint32_t i = 0; i < pool->n_threads; i++) {
    struct turn_thread *thread = pool->threads[i];
    thread->is_left = turn_thread_is_busy(thread);
    if (thread->is_left && thread->turn.lease)
      lease_rest(thread->turn.lease);
  }
}

void
turn_pool_end(struct turn_pool *pool, struct dk_leftover *leftover)
{
  int64_t now = ticks_now();

  dk_lock(&pool->lock);
  atomic_store(&pool->is_ending, true);
  wake_all(pool);
  wait_for_jobs(pool, ticks_after(now, LET_GO_ON_MS));
  turn_pool_cancel_all(pool, THREAD_CALLS);
  turn_pool_cancel_all(pool, THREAD_FETCHES);
  wait_for_jobs(pool, ticks_after(now, LEAVE_MS));
  leave_those_that_stay(pool);
  leftover->turns += pool->given_back + pool->n_left;
  leftover->quarantined += pool->n_left;
  leftover->not_given_back += pool->not_given_back + pool->n_left;
  dk_unlock(&pool->lock);
}

bool
turn_pool_free(struct turn_pool *pool)
{
  bool nothing_hangs = delayed_starts_end(pool->shared.delayed_starts);

  pool->shared.delayed_starts = NULL;
  stop_watcher(pool);
  dk_lock(&pool->lock);
  bool is_over = pool->is_over;
  dk_unlock(&pool->lock);
  join_threads(pool);
  if (is_over || !nothing_hangs)
    return false; /* what they use is not freed */
  discard(pool);
  return true;
}

/* ---- health ---------------------------------------------------------------------------------- */

static const struct turn_thread *
stuck_thread(const struct turn_pool *pool)
{
  for (uint32_t i = 0; i < pool->n_threads; i++)
    if (pool->threads[i]->is_stuck)
      return pool->threads[i];
  return NULL;
}

bool
turn_pool_is_well(struct turn_pool *pool, char *reason, size_t size)
{
  dk_lock(&pool->lock);
  const struct turn_thread *stuck = stuck_thread(pool);
  bool is_healthy = !stuck;
  if (stuck)
    snprintf(reason, size, "%u turns do not return, instance %.*s among them", pool->n_stuck,
             (int)stuck->instance.len, stuck->instance.ptr);
  dk_unlock(&pool->lock);
  return is_healthy;
}

size_t
turn_pool_delayed(struct turn_pool *pool, enum delay *ret_why, char *room, size_t size)
{
  return retry_counts_delayed(pool->shared.retries, ticks_now(), ret_why, room, size);
}
