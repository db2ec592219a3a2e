/* SPDX-License-Identifier: Apache-2.0 */
/* A turn thread, as its turn sees it: see turn-thread.h.  Locking: turn-loop.h. */
#include "core/runtime/turn/turn-loop.h"

#include <assert.h>
#include <string.h>

enum { LEAST_SLACK_MS = 100 /* so that code that calls the runtime stops before it is declared
                               stuck */ };

bool
turn_thread_is_busy(const struct turn_thread *thread)
{
  assert(dk_lock_is_held(&thread->pool->lock));
  return thread->state != THREAD_IDLE && thread->state != THREAD_IS_GONE;
}

void
turn_thread_set_alarm(struct turn_thread *thread, int64_t at)
{
  struct turn_pool *pool = thread->pool;

  assert(dk_lock_is_held(&pool->lock));
  thread->alarm = at;
  if (at < pool->next_alarm) {
    pool->next_alarm = at;
    pthread_cond_signal(&pool->alarm_changed);
  }
}

void
turn_thread_begin_call(struct turn_thread *thread, enum turn_thread_state state, int64_t at)
{
  assert(dk_lock_is_held(&thread->pool->lock));
  assert(state == THREAD_FETCHES || state == THREAD_CALLS);
  assert(thread->state == THREAD_IDLE || thread->state == THREAD_WORKS);
  dk_canceller_reset(thread->canceller);
  thread->state = state;
  turn_thread_set_alarm(thread, at);
}

bool
turn_thread_call_begins(struct turn_thread *thread, int64_t at)
{
  dk_lock(&thread->pool->lock);
  bool is_here = !thread->pool->is_over;
  if (is_here)
    turn_thread_begin_call(thread, THREAD_CALLS, at);
  dk_unlock(&thread->pool->lock);
  return is_here;
}

/* Back in our own code; false: the runtime was freed. */
static bool
return_to_pool(struct turn_thread *thread)
{
  assert(dk_lock_is_held(&thread->pool->lock));
  assert(turn_thread_is_busy(thread) && thread->state != THREAD_WORKS);
  thread->state = THREAD_WORKS;
  thread->alarm = INT64_MAX;
  return !thread->pool->is_over;
}

bool
turn_thread_call_ends(struct turn_thread *thread)
{
  dk_lock(&thread->pool->lock);
  bool is_here = return_to_pool(thread);
  dk_unlock(&thread->pool->lock);
  return is_here;
}

void
turn_thread_code_begins(struct turn_thread *thread, dk_str instance)
{
  int64_t most = thread->pool->shared.options->max_turn_ms;
  int64_t slack = most / 10 > LEAST_SLACK_MS ? most / 10 : LEAST_SLACK_MS;
  int64_t overdue_at = ticks_after(ticks_now(), most);

  dk_lock(&thread->pool->lock);
  assert(thread->state == THREAD_WORKS && !thread->is_stuck);
  thread->state = THREAD_RUNS;
  thread->overdue_at = overdue_at;
  thread->instance = instance;
  turn_thread_set_alarm(thread, ticks_after(overdue_at, slack));
  dk_unlock(&thread->pool->lock);
}

bool
turn_thread_code_ends(struct turn_thread *thread)
{
  struct turn_pool *pool = thread->pool;

  dk_lock(&pool->lock);
  assert(thread->state == THREAD_RUNS);
  assert(!thread->is_stuck || pool->n_stuck > 0);
  bool in_time = return_to_pool(thread) && !thread->is_stuck;
  pool->n_stuck -= thread->is_stuck;
  thread->is_stuck = false;
  thread->instance = (dk_str){NULL, 0};
  dk_unlock(&pool->lock);
  return in_time;
}

int32_t
turn_thread_overdue(void *context)
{
  const struct turn_thread *thread = context;

  return atomic_load(&thread->pool->is_ending) || ticks_roughly() >= thread->overdue_at;
}

bool
turn_thread_stuck_with(struct turn_thread *thread, dk_str instance)
{
  struct turn_pool *pool = thread->pool;
  bool found = false;

  dk_lock(&pool->lock);
  for (uint32_t i = 0; i < pool->n_threads && pool->n_stuck > 0; i++) {
    const struct turn_thread *other = pool->threads[i];
    found |= other->is_stuck && other->instance.len == instance.len &&
             memcmp(other->instance.ptr, instance.ptr, instance.len) == 0;
  }
  dk_unlock(&pool->lock);
  return found;
}

bool
turn_thread_pause(struct turn_thread *thread, int64_t ms)
{
  struct turn_pool *pool = thread->pool;
  int64_t until = ticks_after(ticks_now(), ms);

  dk_lock(&pool->lock);
  while (!atomic_load(&pool->is_ending) && ticks_now() < until)
    ticks_cond_wait(&thread->wake, &pool->lock, until);
  dk_unlock(&pool->lock);
  return !atomic_load(&pool->is_ending);
}

bool
turn_thread_is_abandoned(struct turn_thread *thread)
{
  dk_lock(&thread->pool->lock);
  bool is_over = thread->pool->is_over;
  dk_unlock(&thread->pool->lock);
  return is_over;
}

bool
turn_thread_ends(struct turn_thread *thread)
{
  return atomic_load(&thread->pool->is_ending);
}

void
turn_thread_gave_back(struct turn_thread *thread, bool worked)
{
  struct turn_pool *pool = thread->pool;

  dk_lock(&pool->lock);
  pool->given_back++;
  pool->not_given_back += !worked;
  dk_unlock(&pool->lock);
}

