/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual clock: see durakit/clock.h.  Owns its region, which processes may share, and one
 * eventfd (the bell) for each actor, made with the clock so that a forked process inherits it.
 *
 * Locking.  `lock` guards everything except what is atomic and can be read at any time.  It is
 * robust: if a process is killed while it holds the lock, each word is still valid, and the next
 * process continues.  Nothing that blocks is called under it.  There is no condition variable,
 * because one whose waiter was killed might block all others forever: an actor that blocks does so
 * in poll on its own bell, which is rung under the lock after a change.
 *
 * The rule of time.  `epoch` counts the changes of any actor's state.  A waiting actor polls its
 * descriptor and, if it is not ready, stores the epoch from before the poll in `looked`.  Time
 * moves only when no actor runs and every waiting actor's `looked` is the epoch: then all waiting
 * actors have seen what the last running actor did. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <durakit/clock.h>

#include "core/plugin/look.h"

enum state { IDLE, RUNNING, WAITING };

struct actor {
  int32_t state;
  int32_t bell;
  int32_t watches; /* the actor whose changes ring this bell too; -1: none */
  int32_t reserved;
  int64_t deadline; /* of a waiting actor */
  uint64_t looked;
};

struct dk_virtual_clock {
  struct dk_clock clock;
  pthread_mutex_t lock;
  _Atomic int64_t now;
  uint64_t epoch;
  int32_t settle_ms, answer_ms;
  int32_t deadlocked;
  _Atomic int32_t n_actors; /* changed under the lock, read without it */
  struct actor actors[DK_MAX_ACTORS];
};

/* ---- state ----------------------------------------------------------------------------------- */

static void
lock_clock(struct dk_virtual_clock *clock)
{
  if (pthread_mutex_lock(&clock->lock) == EOWNERDEAD)
    pthread_mutex_consistent(&clock->lock);
}

static void
unlock_clock(struct dk_virtual_clock *clock)
{
  pthread_mutex_unlock(&clock->lock);
}

static bool
is_actor(const struct dk_virtual_clock *clock, int32_t actor)
{
  return actor >= 0 && actor < clock->n_actors;
}

static bool
any_runs(const struct dk_virtual_clock *clock)
{
  for (int32_t i = 0; i < clock->n_actors; i++)
    if (clock->actors[i].state == RUNNING)
      return true;
  return false;
}

static void
ring_waiters(struct dk_virtual_clock *clock)
{
  for (int32_t i = 0; i < clock->n_actors; i++)
    if (clock->actors[i].state == WAITING)
      dk_ring(clock->actors[i].bell);
}

static void
ring_watchers_of(struct dk_virtual_clock *clock, const struct actor *actor)
{
  for (int32_t i = 0; i < clock->n_actors; i++)
    if (clock->actors[i].watches == actor - clock->actors)
      dk_ring(clock->actors[i].bell);
}

/* While an actor runs, no other has to poll: the next change rings again. */
static void
set_state(struct dk_virtual_clock *clock, struct actor *actor, enum state state)
{
  actor->state = (int32_t)state;
  clock->epoch++;
  ring_watchers_of(clock, actor);
  if (!any_runs(clock))
    ring_waiters(clock);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* True if time may move now: then *ret_deadline is the smallest deadline of all, INT64_MAX if there
 * is none. */
static bool
time_may_move(const struct dk_virtual_clock *clock, int64_t *ret_deadline)
{
  int64_t deadline = INT64_MAX;
  bool any_waits = false;

  for (int32_t i = 0; i < clock->n_actors; i++) {
    const struct actor *actor = &clock->actors[i];
    if (actor->state == RUNNING || (actor->state == WAITING && actor->looked != clock->epoch))
      return false;
    if (actor->state == WAITING) {
      any_waits = true;
      deadline = actor->deadline < deadline ? actor->deadline : deadline;
    }
  }
  if (any_waits)
    *ret_deadline = deadline;
  return any_waits;
}

/* The actors whose time has come run from here on: time must not move again before they have
 * acted. */
static void
jump_to(struct dk_virtual_clock *clock, int64_t time)
{
  if (atomic_load(&clock->now) < time)
    atomic_store(&clock->now, time);
  for (int32_t i = 0; i < clock->n_actors; i++) {
    struct actor *actor = &clock->actors[i];
    if (actor->state == WAITING && actor->deadline <= time) {
      set_state(clock, actor, RUNNING);
      dk_ring(actor->bell);
    }
  }
}

static void
move_time(struct dk_virtual_clock *clock)
{
  int64_t deadline;

  if (!time_may_move(clock, &deadline))
    return;
  if (deadline != INT64_MAX) {
    jump_to(clock, deadline);
  } else {
    clock->deadlocked = 1;
    ring_waiters(clock);
  }
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* A wait of an actor; joining is a wait until another actor is idle. */
struct turn {
  const struct dk_wait *wait;
  int32_t joins; /* -1: none */
};

static bool
is_over(const struct dk_virtual_clock *clock, const struct turn *turn, unsigned seen,
        dk_status *ret_status)
{
  if (turn->joins >= 0 && clock->actors[turn->joins].state == IDLE)
    *ret_status = DK_OK;
  else if (seen & DK_LOOK_CANCELLED)
    *ret_status = DK_CALL_CANCELLED;
  else if (seen & DK_LOOK_READY)
    *ret_status = DK_OK;
  else if (atomic_load(&clock->now) >= turn->wait->until)
    *ret_status = DK_NOTHING;
  else if (clock->deadlocked)
    *ret_status = DK_CALL_CANCELLED;
  else
    return false;
  return true;
}

static void
begin_waiting(struct dk_virtual_clock *clock, struct actor *me, const struct turn *turn)
{
  lock_clock(clock);
  me->deadline = turn->wait->until;
  me->watches = turn->joins;
  set_state(clock, me, WAITING);
  unlock_clock(clock);
}

static void
stop_waiting(struct dk_virtual_clock *clock, struct actor *me)
{
  me->watches = -1;
  set_state(clock, me, RUNNING);
}

/* If the bell was not rung since before the poll, the actor has seen everything. */
static void
note_look(struct dk_virtual_clock *clock, struct actor *me, uint64_t epoch)
{
  if (me->state == WAITING && me->looked != epoch) {
    me->looked = epoch;
    ring_watchers_of(clock, me);
  }
  move_time(clock);
}

/* Polls once; then the wait has ended, or the poll is recorded. */
static bool
look_once(struct dk_virtual_clock *clock, struct actor *me, const struct turn *turn,
          dk_status *ret_status)
{
  int64_t settle_ms = turn->wait->fd >= 0 ? clock->settle_ms : 0;

  dk_unring(me->bell);
  lock_clock(clock);
  uint64_t epoch = clock->epoch;
  if (me->state != WAITING)
    settle_ms = 0; /* its time has come */
  unlock_clock(clock);

  unsigned seen = dk_look(turn->wait, me->bell, settle_ms);
  lock_clock(clock);
  bool over = clock->deadlocked || is_over(clock, turn, seen, ret_status);
  if (clock->deadlocked)
    *ret_status = DK_CALL_CANCELLED;
  if (over)
    stop_waiting(clock, me);
  else if (!(seen & DK_LOOK_BELL))
    note_look(clock, me, epoch);
  unlock_clock(clock);
  return over;
}

static bool
is_for_answer(struct dk_virtual_clock *clock, const struct dk_wait *wait)
{
  return (wait->events & DK_WAIT_ANSWER) != 0 && wait->fd >= 0 &&
         atomic_load(&clock->now) < wait->until;
}

/* An actor that waits for an answer counts as running, and time stands still. */
static dk_status
wait_turn(struct dk_virtual_clock *clock, int32_t actor, const struct turn *turn)
{
  struct actor *me = &clock->actors[actor];
  unsigned seen = dk_look(turn->wait, -1, is_for_answer(clock, turn->wait) ? clock->answer_ms : 0);
  dk_status status;

  lock_clock(clock);
  bool over = is_over(clock, turn, seen, &status);
  unlock_clock(clock);
  if (over)
    return status;

  begin_waiting(clock, me, turn);
  while (!look_once(clock, me, turn, &status))
    dk_look(turn->wait, me->bell, -1);
  return status;
}

static dk_status
virtual_wait(struct dk_clock *as_clock, const struct dk_wait *wait)
{
  struct dk_virtual_clock *clock = (struct dk_virtual_clock *)as_clock;
  struct turn turn = {.wait = wait, .joins = -1};

  return is_actor(clock, wait->actor) ? wait_turn(clock, wait->actor, &turn) : DK_CALL_CANCELLED;
}

static int64_t
virtual_now(struct dk_clock *clock)
{
  return atomic_load(&((struct dk_virtual_clock *)clock)->now);
}

/* ---- the clock ------------------------------------------------------------------------------- */

size_t
dk_virtual_clock_size(void)
{
  return sizeof(struct dk_virtual_clock);
}

static void
make_lock(pthread_mutex_t *lock)
{
  pthread_mutexattr_t attributes;

  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

struct dk_virtual_clock *
dk_virtual_clock_init(void *region, int64_t start, int32_t settle_ms)
{
  struct dk_virtual_clock *clock = region;

  memset(clock, 0, sizeof(*clock));
  clock->clock = (struct dk_clock){.now = virtual_now, .wait = virtual_wait};
  clock->settle_ms = settle_ms;
  clock->answer_ms = DK_ANSWER_MS;
  make_lock(&clock->lock);
  for (int32_t i = 0; i < DK_MAX_ACTORS; i++)
    clock->actors[i].bell = -1;
  for (int32_t i = 0; i < DK_MAX_ACTORS; i++) {
    clock->actors[i].bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (clock->actors[i].bell < 0) {
      dk_virtual_clock_done(clock);
      return NULL;
    }
  }
  dk_virtual_clock_restart(clock, start);
  return clock;
}

void
dk_virtual_clock_answer_within(struct dk_virtual_clock *clock, int32_t ms)
{
  clock->answer_ms = ms;
}

void
dk_virtual_clock_done(struct dk_virtual_clock *clock)
{
  if (!clock)
    return;
  for (int32_t i = 0; i < DK_MAX_ACTORS; i++) {
    if (clock->actors[i].bell >= 0)
      close(clock->actors[i].bell);
    clock->actors[i].bell = -1;
  }
  pthread_mutex_destroy(&clock->lock);
}

struct dk_clock *
dk_virtual_clock_as_clock(struct dk_virtual_clock *clock)
{
  return &clock->clock;
}

int64_t
dk_virtual_clock_now(struct dk_virtual_clock *clock)
{
  return atomic_load(&clock->now);
}

void
dk_virtual_clock_restart(struct dk_virtual_clock *clock, int64_t now)
{
  lock_clock(clock);
  atomic_store(&clock->now, now);
  clock->epoch++;
  clock->deadlocked = 0;
  clock->n_actors = 1;
  for (int32_t i = 0; i < DK_MAX_ACTORS; i++) {
    clock->actors[i].state = i == 0 ? RUNNING : IDLE;
    clock->actors[i].watches = -1;
    clock->actors[i].looked = 0;
    dk_unring(clock->actors[i].bell);
  }
  unlock_clock(clock);
}

int32_t
dk_virtual_clock_deadlocked(struct dk_virtual_clock *clock)
{
  lock_clock(clock);
  int32_t deadlocked = clock->deadlocked;
  unlock_clock(clock);
  return deadlocked;
}

/* ---- actors ---------------------------------------------------------------------------------- */

int32_t
dk_virtual_clock_add_actor(struct dk_virtual_clock *clock)
{
  lock_clock(clock);
  int32_t actor = clock->n_actors < DK_MAX_ACTORS ? clock->n_actors++ : -1;
  unlock_clock(clock);
  return actor;
}

void
dk_virtual_clock_give(struct dk_virtual_clock *clock, int32_t actor)
{
  lock_clock(clock);
  if (is_actor(clock, actor))
    set_state(clock, &clock->actors[actor], RUNNING);
  unlock_clock(clock);
}

void
dk_virtual_clock_finished(struct dk_virtual_clock *clock, int32_t actor)
{
  lock_clock(clock);
  if (is_actor(clock, actor)) {
    clock->actors[actor].watches = -1;
    set_state(clock, &clock->actors[actor], IDLE);
  }
  unlock_clock(clock);
}

dk_status
dk_virtual_clock_join(struct dk_virtual_clock *clock, int32_t watcher, int32_t actor)
{
  struct dk_wait wait = {.actor = watcher, .cancel_fd = -1, .fd = -1, .until = INT64_MAX};
  struct turn turn = {.wait = &wait, .joins = actor};

  if (!is_actor(clock, watcher) || !is_actor(clock, actor))
    return DK_CALL_CANCELLED;
  return wait_turn(clock, watcher, &turn);
}

dk_status
dk_virtual_clock_advance(struct dk_virtual_clock *clock, int32_t actor, int64_t until)
{
  struct dk_wait wait = {.actor = actor, .cancel_fd = -1, .fd = -1, .until = until};
  dk_status status = virtual_wait(&clock->clock, &wait);

  return status == DK_NOTHING ? DK_OK : status;
}

int32_t
dk_virtual_clock_until_it_waits(struct dk_virtual_clock *clock, int32_t watcher, int32_t actor)
{
  struct dk_wait nothing = {.cancel_fd = -1, .fd = -1};

  if (!is_actor(clock, watcher) || !is_actor(clock, actor))
    return 0;

  struct actor *me = &clock->actors[watcher];
  struct actor *it = &clock->actors[actor];
  lock_clock(clock);
  uint64_t since = ++clock->epoch;
  me->watches = actor;
  dk_ring(it->bell); /* it might have polled before the watcher's last action */
  while (it->state != IDLE && !(it->state == WAITING && it->looked >= since)) {
    unlock_clock(clock);
    dk_look(&nothing, me->bell, -1);
    dk_unring(me->bell);
    lock_clock(clock);
  }
  me->watches = -1;
  int32_t waits = it->state == WAITING;
  unlock_clock(clock);
  return waits;
}
