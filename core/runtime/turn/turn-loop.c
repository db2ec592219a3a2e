/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a turn thread: it fetches, works, and fetches again.
 *
 * One thread at a time waits for work in the store (the waiter); when it gets a turn, another
 * thread becomes the waiter.  A thread that had work fetches once more without waiting before it
 * becomes idle.  So under load all threads fetch concurrently, and an idle runtime has one call
 * open.  Locking: turn-loop.h. */
#include "core/runtime/turn/turn-loop.h"

#include <assert.h>
#include <stdlib.h>

#include "core/plugin/store.h"

enum { FIRST_PAUSE_MS = 50, LONGEST_PAUSE_MS = 2000 };

/* ---- the store fails and recovers ------------------------------------------------------------ */

static struct health *
health_of(const struct turn_thread *thread)
{
  return &thread->pool->shared.log->health;
}

static bool
is_stopping(struct turn_pool *pool)
{
  dk_lock(&pool->lock);
  bool is_stopping = pool->is_stopping;
  dk_unlock(&pool->lock);
  return is_stopping;
}

static void
fetch_was_refused(struct turn_thread *thread, dk_status status)
{
  const struct dk_log_event event = {.number = DK_LOG_STORE_AWAY, .status = status};
  const char *why = dk_caller_failure(thread->caller)->text;

  if (thread->failures < UINT32_MAX)
    thread->failures++;
  if (is_stopping(thread->pool)) /* it was probably cancelled */
    health_rest(health_of(thread), &thread->fetching);
  else if (health_refused(health_of(thread), &thread->fetching, status, why))
    log_report(thread->pool->shared.log, &event,
               "turns cannot be fetched, trying until they can: %s", why);
}

static void
fetch_was_good(struct turn_thread *thread)
{
  struct dk_log_event event = {.number = DK_LOG_STORE_BACK};

  thread->failures = 0;
  if (health_good(health_of(thread), &thread->fetching, &event.ms))
    log_report(thread->pool->shared.log, &event, "turns can be fetched again, after %lld ms",
               (long long)event.ms);
}

/* ---- fetching -------------------------------------------------------------------------------- */

enum way { WAY_OUT, WAY_TO_WAIT, WAY_TO_LOOK };

static int64_t
longest_fetch(const struct turn_pool *pool)
{
  return pool->shared.options->poll_ms + pool->shared.options->turn_lock_ms;
}

/* How the thread must fetch; it is idle here while another one waits.  After a failure it fetches
 * without waiting, because a fetch that waits would show the store's recovery late. */
static enum way
next_way(struct turn_thread *thread)
{
  struct turn_pool *pool = thread->pool;
  enum way way = WAY_TO_WAIT;

  dk_lock(&pool->lock);
  if ((thread->had_work && pool->waiter) || health_fails(health_of(thread), HEALTH_TURNS) ||
      thread->lost.id != 0)
    way = WAY_TO_LOOK;
  assert(thread->state == THREAD_IDLE || thread->state == THREAD_WORKS);
  thread->state = THREAD_IDLE;
  pthread_cond_broadcast(&pool->changed);
  while (way == WAY_TO_WAIT && !pool->is_stopping && pool->waiter && pool->waiter != thread)
    dk_lock_wait(&pool->lock, &pool->idle);
  bool is_spare = pool->n_alive - pool->n_stuck > pool->shared.options->orchestration_slots;
  if (pool->is_stopping || is_spare)
    way = WAY_OUT;
  pool->n_alive -= way == WAY_OUT;
  assert(pool->n_alive <= pool->n_threads);
  assert(way != WAY_TO_WAIT || !pool->waiter || pool->waiter == thread);
  if (way == WAY_TO_WAIT)
    pool->waiter = thread;
  if (way != WAY_OUT || lost_fetch_is_near(&thread->lost))
    turn_thread_begin_call(thread, way == WAY_OUT ? THREAD_CALLS : THREAD_FETCHES,
                           ticks_after(ticks_now(), longest_fetch(pool)));
  dk_unlock(&pool->lock);
  return way;
}

/* Takes one from the count of fetches that must be different; two concurrent ones may both get
 * it. */
static bool
take_one(atomic_int *count)
{
  return atomic_load(count) > 0 && atomic_fetch_sub(count, 1) > 0;
}

static dk_status
turn_loop_fetch(struct turn_thread *thread, enum way way, struct dk_turn **ret_turn)
{
  struct turn_shared *shared = &thread->pool->shared;
  struct dk_fetch_turn request = {.struct_size = sizeof(request),
                                  .max_messages = shared->options->max_messages,
                                  .lock_ms = shared->options->turn_lock_ms,
                                  .owner = shared->owner};

  if (way == WAY_TO_WAIT)
    request.wait_until = ticks_after(dk_store_now(shared->store), shared->options->poll_ms);
  if (take_one(&shared->cold_fetches))
    request.owner = (dk_str){NULL, 0};
  thread->is_whole = take_one(&shared->whole_fetches);
  if (thread->is_whole)
    request.max_messages = 0;
  request.fetch_id = fetch_ids_next(&thread->pool->fetch_ids);
  dk_caller_reset(thread->caller);
  health_ask(health_of(thread), &thread->fetching, HEALTH_TURNS,
             way == WAY_TO_WAIT ? shared->options->poll_ms : 0);
  dk_status status =
      dk_store_fetch_orchestration_item(shared->store, thread->caller, &request, ret_turn);
  lost_fetch_note(&thread->lost, request.fetch_id, status);
  return status;
}

/* If the answer of the last fetch was lost, gives back what it locked before the next one. */
static dk_status
release_lost(struct turn_thread *thread)
{
  if (thread->lost.id != 0)
    health_ask(health_of(thread), &thread->fetching, HEALTH_TURNS, 0);
  return lost_fetch_release(&thread->lost, thread->pool->shared.store, thread->caller);
}

/* A turn that came too late: the store has counted an attempt that was never made. */
static void
pardon_overdue(struct turn_thread *thread)
{
  const struct dk_turn *fetched = dk_caller_overdue(thread->caller)->turn;
  uint32_t attempt = 0;

  if (!fetched)
    return;
  for (size_t i = 0; i < fetched->n_messages; i++)
    if (fetched->messages[i].attempt > attempt)
      attempt = fetched->messages[i].attempt;
  retry_counts_pardon(thread->pool->shared.retries, fetched->head.instance, attempt);
  log_count(thread->pool->shared.log, COUNT_TURNS_LOST);
}

/* Makes another thread the waiter. */
static void
hand_over(struct turn_thread *thread)
{
  struct turn_pool *pool = thread->pool;

  dk_lock(&pool->lock);
  if (pool->waiter == thread) {
    pool->waiter = NULL;
    pthread_cond_signal(&pool->idle);
  }
  dk_unlock(&pool->lock);
}

/* The pause grows with each failure. */
static void
pause_before_next(struct turn_thread *thread)
{
  struct turn_pool *pool = thread->pool;
  int64_t pause = FIRST_PAUSE_MS;

  for (uint32_t i = 0; i < thread->failures && pause < LONGEST_PAUSE_MS; i++)
    pause *= 2;
  int64_t until = ticks_after(ticks_now(), pause < LONGEST_PAUSE_MS ? pause : LONGEST_PAUSE_MS);
  dk_lock(&pool->lock);
  while (!pool->is_stopping && ticks_now() < until)
    ticks_cond_wait(&thread->wake, &pool->lock, until);
  dk_unlock(&pool->lock);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void
do_turn(struct turn_thread *thread, const struct dk_turn *fetched)
{
  struct turn *turn = &thread->turn;
  struct dk_arena arena = turn->arena;

  assert(!turn->lease && !turn->memory); /* the one before has left nothing */
  *turn = (struct turn){.shared = &thread->pool->shared,
                        .thread = thread,
                        .caller = thread->caller,
                        .arena = arena,
                        .is_whole = thread->is_whole,
                        .fetched = fetched};
  turn_run(turn);
  if (turn->lease && !turn_thread_is_abandoned(thread))
    leases_let_go(thread->pool->shared.leases, turn->lease);
  turn->lease = NULL;
  dk_arena_reset(&turn->arena);
}

static void
fetch_and_work(struct turn_thread *thread, enum way way)
{
  struct dk_turn *fetched = NULL;
  dk_status status = release_lost(thread);

  if (status == DK_OK)
    status = turn_loop_fetch(thread, way, &fetched);
  if (!turn_thread_call_ends(thread))
    return;
  thread->had_work = status == DK_OK;
  if (status == DK_OK || status == DK_NOTHING)
    fetch_was_good(thread);
  else
    fetch_was_refused(thread, status);
  if (status == DK_OK) {
    hand_over(thread);
    do_turn(thread, fetched);
    return;
  }
  pardon_overdue(thread);
  if (health_fails(health_of(thread), HEALTH_TURNS))
    pause_before_next(thread);
}

void
turn_thread_free(struct turn_thread *thread)
{
  dk_arena_done(&thread->turn.arena);
  dk_caller_free(thread->caller);
  dk_canceller_free(thread->canceller);
  pthread_cond_destroy(&thread->wake);
  free(thread);
}

/* Frees its place in the list for another thread. */
static void
turn_loop_leave(struct turn_thread *thread)
{
  struct turn_pool *pool = thread->pool;

  health_rest(health_of(thread), &thread->fetching);
  dk_lock(&pool->lock);
  assert(thread->state == THREAD_IDLE || thread->state == THREAD_WORKS);
  if (pool->waiter == thread)
    pool->waiter = NULL;
  thread->state = THREAD_IS_GONE;
  pthread_cond_broadcast(&pool->changed);
  pthread_cond_broadcast(&pool->idle);
  dk_unlock(&pool->lock);
}

static void *
turn_thread_main(void *argument)
{
  struct turn_thread *thread = argument;

  for (;;) {
    enum way way = next_way(thread);
    if (way == WAY_OUT)
      break;
    fetch_and_work(thread, way);
  }
  if (lost_fetch_is_near(&thread->lost)) { /* next_way has begun the call */
    release_lost(thread);
    turn_thread_call_ends(thread);
  }
  turn_loop_leave(thread);
  return NULL;
}

static bool
prepare_thread(struct turn_thread *thread, struct turn_pool *pool)
{
  thread->pool = pool;
  thread->alarm = INT64_MAX;
  ticks_cond_init(&thread->wake);
  dk_arena_init(&thread->turn.arena);
  thread->caller = dk_caller_new(NULL, 0);
  thread->canceller = dk_canceller_new(NULL);
  if (!thread->caller || !thread->canceller)
    return false;
  dk_caller_set_canceller(thread->caller, thread->canceller);
  return true;
}

/* Joins and frees a turn thread that has ended, if there is one, and returns its place. */
static struct turn_thread **
free_place(struct turn_pool *pool)
{
  assert(dk_lock_is_held(&pool->lock));
  for (uint32_t i = 0; i < pool->n_threads; i++)
    if (pool->threads[i]->state == THREAD_IS_GONE) {
      pthread_join(pool->threads[i]->pthread, NULL); /* it has released the lock, and returns */
      turn_thread_free(pool->threads[i]);
      pool->threads[i] = pool->threads[--pool->n_threads];
      break;
    }
  return pool->n_threads < pool->most_threads ? &pool->threads[pool->n_threads] : NULL;
}

bool
turn_thread_add(struct turn_pool *pool)
{
  struct turn_thread **place = free_place(pool);
  struct turn_thread *thread = place ? calloc(1, sizeof(*thread)) : NULL;

  if (!thread)
    return false;
  if (!prepare_thread(thread, pool) ||
      pthread_create(&thread->pthread, NULL, turn_thread_main, thread) != 0) {
    turn_thread_free(thread);
    return false;
  }
  *place = thread;
  pool->n_threads++;
  pool->n_alive++;
  assert(pool->n_alive <= pool->n_threads && pool->n_threads <= pool->most_threads);
  return true;
}

