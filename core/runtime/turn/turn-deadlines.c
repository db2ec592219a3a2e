/* SPDX-License-Identifier: Apache-2.0 */
/* The deadlines thread of the turn pool: each turn thread has an alarm, at which its call is
 * cancelled, or its code is declared stuck.  Locking: turn-loop.h. */
#include "core/runtime/turn/turn-loop.h"

#include <assert.h>

enum { CALL_BACK_AGAIN_MS = 1000 };

/* Declares the code stuck: gives up the lease, gives the place to another thread, and logs it. */
static void
call_stuck(struct turn_pool *pool, struct turn_thread *thread)
{
  const struct dk_log_event event = {.number = DK_LOG_TURN_STUCK,
                                     .instance = thread->instance,
                                     .execution_id = thread->turn.execution,
                                     .orchestration = thread->turn.name,
                                     .ms = pool->shared.options->max_turn_ms};

  assert(dk_lock_is_held(&pool->lock));
  assert(thread->state == THREAD_RUNS && !thread->is_stuck && thread->turn.lease);
  thread->is_stuck = true;
  thread->alarm = INT64_MAX;
  pool->n_stuck++;
  lease_rest(thread->turn.lease);
  if (!pool->is_stopping)
    turn_thread_add(pool);
  log_report(pool->shared.log, &event,
             "its code has not returned after %lld ms; the turn is given up, the thread waits "
             "for it",
             (long long)event.ms);
}

static void
ring(struct turn_pool *pool, struct turn_thread *thread, int64_t now)
{
  if (thread->state == THREAD_RUNS) {
    call_stuck(pool, thread);
    return;
  }
  thread->alarm = now + CALL_BACK_AGAIN_MS;
  dk_cancel(thread->canceller);
}

void *
turn_deadlines_main(void *argument)
{
  struct turn_pool *pool = argument;

  dk_lock(&pool->lock);
  while (!pool->deadlines_stop) {
    int64_t now = ticks_now(), next = INT64_MAX;
    for (uint32_t i = 0; i < pool->n_threads; i++) {
      struct turn_thread *thread = pool->threads[i];
      if (thread->alarm < next)
        next = thread->alarm;
      if (thread->alarm <= now)
        ring(pool, thread, now); /* which may change the list: begin again at once */
    }
    pool->next_alarm = next;
    ticks_cond_wait(&pool->alarm_changed, &pool->lock, next);
  }
  dk_unlock(&pool->lock);
  return NULL;
}
