/* SPDX-License-Identifier: Apache-2.0 */
/* A seat as its job sees it: turn-thread.h.  Locking: turn-loop.h. */
#include "core/runtime/turn/turn-loop.h"

#include <string.h>

enum { LEAST_SLACK_MS = 100 /* for code that looks: it leaves before it is called stuck */ };

bool
seat_is_busy(const struct seat *seat)
{
  return seat->state != SEAT_IDLE && seat->state != SEAT_IS_GONE;
}

void
seat_set_alarm(struct seat *seat, int64_t at)
{
  struct turns *turns = seat->turns;

  seat->alarm = at;
  if (at < turns->next_alarm) {
    turns->next_alarm = at;
    pthread_cond_signal(&turns->watches);
  }
}

void
seat_begin_call(struct seat *seat, enum seat_state state, int64_t at)
{
  dk_canceller_reset(seat->canceller);
  seat->state = state;
  seat_set_alarm(seat, at);
}

bool
seat_call_begins(struct seat *seat, int64_t at)
{
  pthread_mutex_lock(&seat->turns->lock);
  bool is_here = !seat->turns->is_over;
  if (is_here)
    seat_begin_call(seat, SEAT_CALLS, at);
  pthread_mutex_unlock(&seat->turns->lock);
  return is_here;
}

/* Back in our own code; false: the runtime has gone. */
static bool
come_back(struct seat *seat)
{
  seat->state = SEAT_WORKS;
  seat->alarm = INT64_MAX;
  return !seat->turns->is_over;
}

bool
seat_call_ends(struct seat *seat)
{
  pthread_mutex_lock(&seat->turns->lock);
  bool is_here = come_back(seat);
  pthread_mutex_unlock(&seat->turns->lock);
  return is_here;
}

void
seat_code_begins(struct seat *seat, dk_str instance)
{
  int64_t most = seat->turns->w.options->max_turn_ms;
  int64_t slack = most / 10 > LEAST_SLACK_MS ? most / 10 : LEAST_SLACK_MS;
  int64_t overdue_at = ticks_after(ticks_now(), most);

  pthread_mutex_lock(&seat->turns->lock);
  seat->state = SEAT_RUNS;
  seat->overdue_at = overdue_at;
  seat->instance = instance;
  seat_set_alarm(seat, ticks_after(overdue_at, slack));
  pthread_mutex_unlock(&seat->turns->lock);
}

bool
seat_code_ends(struct seat *seat)
{
  struct turns *turns = seat->turns;

  pthread_mutex_lock(&turns->lock);
  bool in_time = come_back(seat) && !seat->is_stuck;
  turns->n_stuck -= seat->is_stuck;
  seat->is_stuck = false;
  seat->instance = (dk_str){NULL, 0};
  pthread_mutex_unlock(&turns->lock);
  return in_time;
}

int32_t
seat_overdue(void *context)
{
  const struct seat *seat = context;

  return atomic_load(&seat->turns->is_ending) || ticks_roughly() >= seat->overdue_at;
}

bool
seat_stuck_with(struct seat *seat, dk_str instance)
{
  struct turns *turns = seat->turns;
  bool found = false;

  pthread_mutex_lock(&turns->lock);
  for (uint32_t i = 0; i < turns->n_seats && turns->n_stuck > 0; i++) {
    const struct seat *other = turns->seats[i];
    found |= other->is_stuck && other->instance.len == instance.len &&
             memcmp(other->instance.ptr, instance.ptr, instance.len) == 0;
  }
  pthread_mutex_unlock(&turns->lock);
  return found;
}

bool
seat_pause(struct seat *seat, int64_t ms)
{
  struct turns *turns = seat->turns;
  int64_t until = ticks_after(ticks_now(), ms);

  pthread_mutex_lock(&turns->lock);
  while (!atomic_load(&turns->is_ending) && ticks_now() < until)
    ticks_cond_wait(&seat->wake, &turns->lock, until);
  pthread_mutex_unlock(&turns->lock);
  return !atomic_load(&turns->is_ending);
}

bool
seat_is_left(struct seat *seat)
{
  pthread_mutex_lock(&seat->turns->lock);
  bool is_over = seat->turns->is_over;
  pthread_mutex_unlock(&seat->turns->lock);
  return is_over;
}

bool
seat_ends(struct seat *seat)
{
  return atomic_load(&seat->turns->is_ending);
}

void
seat_gave_back(struct seat *seat, bool worked)
{
  struct turns *turns = seat->turns;

  pthread_mutex_lock(&turns->lock);
  turns->given_back++;
  turns->not_given_back += !worked;
  pthread_mutex_unlock(&turns->lock);
}

