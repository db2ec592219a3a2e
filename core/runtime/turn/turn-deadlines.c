/* SPDX-License-Identifier: Apache-2.0 */
/* The watcher of the turns: each seat has an alarm, at which a call is called back, or code is
 * called stuck.  Locking: turn-loop.h. */
#include "core/runtime/turn/turn-loop.h"

enum { CALL_BACK_AGAIN_MS = 1000 };

/* Its lease is not kept any more, its place is taken by another thread, and everybody is told. */
static void
call_stuck(struct turns *turns, struct seat *seat)
{
  const struct dk_log_event event = {.number = DK_LOG_TURN_STUCK,
                                     .instance = seat->instance,
                                     .execution_id = seat->job.execution,
                                     .orchestration = seat->job.name,
                                     .ms = turns->w.options->max_turn_ms};

  seat->is_stuck = true;
  seat->alarm = INT64_MAX;
  turns->n_stuck++;
  lease_rest(seat->job.lease);
  if (!turns->is_stopping)
    seat_add(turns);
  journal_tell(turns->w.journal, &event,
               "its code does not come back after %lld ms; the turn is given up, the thread waits "
               "for it",
               (long long)event.ms);
}

static void
ring(struct turns *turns, struct seat *seat, int64_t now)
{
  if (seat->state == SEAT_RUNS) {
    call_stuck(turns, seat);
    return;
  }
  seat->alarm = now + CALL_BACK_AGAIN_MS;
  dk_cancel(seat->canceller);
}

void *
watcher_main(void *argument)
{
  struct turns *turns = argument;

  pthread_mutex_lock(&turns->lock);
  while (!turns->watcher_stops) {
    int64_t now = ticks_now(), next = INT64_MAX;
    for (uint32_t i = 0; i < turns->n_seats; i++) {
      struct seat *seat = turns->seats[i];
      if (seat->alarm < next)
        next = seat->alarm;
      if (seat->alarm <= now)
        ring(turns, seat, now); /* which may change the list: at once once more */
    }
    turns->next_alarm = next;
    ticks_cond_wait(&turns->watches, &turns->lock, next);
  }
  pthread_mutex_unlock(&turns->lock);
  return NULL;
}
