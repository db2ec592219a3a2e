/* SPDX-License-Identifier: Apache-2.0 */
/* Time that passes while a call runs, and calls that meet.
 *
 * Stores get the virtual clock behind a gate.  A check arms the gate, and the n-th call that then
 * asks for the time is held in its question: a provider that reads the clock under its lock then
 * keeps all other calls waiting, and so does one that asks again when it passes on a result.  When
 * another call has come as far as it can, time is advanced and the held call released.
 *
 * Of two calls that race, the one that asks for the time first is held until the other has begun:
 * so they overlap, however late the other gets a processor.
 *
 * An unarmed gate never holds a call, and one gate holds one thread.  All of it lies in the shared
 * map, because the held call may be in another process.  The advanced time is the true time until
 * the virtual clock has caught up (time_has_passed). */
#include "conformance/kit/kit.h"

#include <errno.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

/* Holds any thread that asks, because a provider may ask on a thread of its own.  The wait is
 * bounded, in case the partner never arrives. */
static void
meet(struct kit_gate *gate)
{
  enum { PATIENCE_S = 2 };
  struct timespec until;

  if (atomic_load(&gate->shared->ready) != 2 || atomic_load(&gate->shared->begun) >= 2)
    return;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += PATIENCE_S;
  while (atomic_load(&gate->shared->begun) < 2 &&
         (sem_clockwait(&gate->met, CLOCK_MONOTONIC, &until) == 0 || errno == EINTR))
    continue;
}

void
kit_race_begins(struct kit_shared *shared)
{
  if (atomic_fetch_add(&shared->begun, 1) != 1)
    return;
  for (int i = 0; i < KIT_ACTORS; i++) /* as many as may wait, and more */
    sem_post(&shared->gate.met);
}

void
kit_race_is_over(struct kit_shared *shared)
{
  atomic_store(&shared->at_line, 0);
  atomic_store(&shared->ready, 0);
  atomic_store(&shared->go_ns, 0);
  atomic_store(&shared->begun, 0);
  while (sem_trywait(&shared->gate.met) == 0)
    continue;
}

static int64_t
gate_now(struct dk_clock *clock)
{
  struct kit_gate *gate = (struct kit_gate *)clock;
  int64_t pushed, time;

  meet(gate);
  if (atomic_load(&gate->countdown) > 0 && atomic_fetch_sub(&gate->countdown, 1) == 1) {
    atomic_store(&gate->holds, 1);
    while (sem_wait(&gate->go) != 0)
      continue;
    atomic_store(&gate->holds, 0);
  } else if (atomic_load(&gate->holds) != 0) {
    atomic_fetch_add(&gate->asked, 1);
  }
  pushed = atomic_load(&gate->pushed);
  time = gate->behind->now(gate->behind) + atomic_load(&gate->ahead);
  return time > pushed ? time : pushed;
}

static dk_status
gate_wait(struct dk_clock *clock, const struct dk_wait *wait)
{
  struct kit_gate *gate = (struct kit_gate *)clock;
  struct dk_wait behind = *wait;

  dk_status status;

  if (wait->until != INT64_MAX)
    behind.until -= atomic_load(&gate->ahead);
  bool is_answer = (wait->events & DK_WAIT_ANSWER) != 0;

  atomic_fetch_add(&gate->answers, is_answer);
  if (atomic_load(&gate->shared->cut.countdown) <= 0 ||
      !kit_cut_wait(gate->shared, gate->behind, &behind, &status))
    status = gate->behind->wait(gate->behind, &behind);
  atomic_fetch_sub(&gate->answers, is_answer);
  return status;
}

bool
kit_gate_init(struct kit_gate *gate, struct dk_clock *behind)
{
  gate->clock = (struct dk_clock){.now = gate_now, .wait = gate_wait};
  gate->behind = behind;
  return sem_init(&gate->go, 1, 0) == 0 && sem_init(&gate->met, 1, 0) == 0;
}

/* Resets the gate, when no call is held: a new pass begins. */
void
kit_gate_reset(struct kit_gate *gate, int64_t ahead)
{
  atomic_store(&gate->ahead, ahead);
  atomic_store(&gate->countdown, 0);
  atomic_store(&gate->asked, 0);
  atomic_store(&gate->answers, 0); /* a killed process has not counted it down */
  atomic_store(&gate->pushed, 0);
}

bool
kit_is_done(struct actor *who, int wait_ms)
{
  struct pollfd done = {.fd = who->done_fd, .events = POLLIN};

  return atomic_load(&who->done) != 0 || poll(&done, 1, wait_ms) == 1;
}

void
hold_at_clock(struct dk_check *t, uint32_t question)
{
  if (t->real_time)
    kit_trouble(t, "a call can be held only where it asks a virtual clock");
  atomic_store(&t->shared->gate.asked, 0);
  atomic_store(&t->shared->gate.countdown, (int32_t)question);
}

bool
stands_at_clock(struct dk_check *t, struct actor *actor)
{
  struct kit_gate *gate = &t->shared->gate;

  while (atomic_load(&gate->holds) == 0 && !kit_is_done(kit_actor(t, actor), 1))
    continue;
  atomic_store(&gate->countdown, 0);
  return atomic_load(&gate->holds) != 0;
}

static void
stall_let_go(struct kit_gate *gate)
{
  while (sem_post(&gate->go) != 0 && errno == EINTR)
    continue;
}

void
let_clock_go(struct dk_check *t)
{
  say_in_trace(t, "the held call continues");
  stall_let_go(&t->shared->gate);
}

/* Its thread may wait for a processor; the check's own deadline bounds that. */
void
until_begun(struct dk_check *t, struct actor *actor)
{
  struct actor *who = kit_actor(t, actor);

  while (atomic_load(&who->begun) == 0 && !kit_is_done(who, 1))
    continue;
}

/* ---- calls that wait, and calls that are only slow ------------------------------------------- */

/* A call that has got the time and is not done waits for the held one if none of its threads has
 * run in so many looks, and it does not wait for a server.  On a busy machine it is slow, but then
 * it runs, or waits for a processor. */
static bool
waits_for_held(struct dk_check *t, struct actor *who)
{
  enum { LOOKS = 200, LOOK_MS = 2, AT_MOST_MS = 20000 };
  int64_t bound = real_time_ms() + AT_MOST_MS;
  pid_t pid = who->kind == IS_PROCESS ? who->pid : getpid();

  int still = 0;

  while (still < LOOKS && real_time_ms() < bound) {
    if (kit_is_done(who, LOOK_MS))
      return false;
    still += kit_process_runs(pid) ? 0 : 1;
  }
  return still == LOOKS && atomic_load(&t->shared->gate.answers) == 0;
}

/* ---- time passes ----------------------------------------------------------------------------- */

/* A call that has not asked for the time yet will get the new time. */
enum passed
pass_time(struct dk_check *t, struct actor *actor, int64_t ms)
{
  enum { TO_COME_THERE_MS = 60 };
  struct kit_gate *gate = &t->shared->gate;
  struct actor *who = kit_actor(t, actor);
  bool done = false, asked = false;

  for (int i = 0; i < TO_COME_THERE_MS && !done && !asked; i++) {
    done = kit_is_done(who, 1);
    asked = atomic_load(&gate->asked) != 0;
  }
  if (asked && !done)
    done = !waits_for_held(t, who);
  atomic_store(&gate->pushed, now(t) + ms);
  bool asks_now = !asked && atomic_load(&gate->asked) != 0;
  say_in_trace(t, "%lld ms pass while a call is held and %s %s", (long long)ms, who->name,
               done ? "is done" : "waits for it");
  stall_let_go(gate);
  return done || asks_now ? PASSED_AFTER : PASSED_DURING;
}

bool
returns_within(struct dk_check *t, struct actor *actor, int real_ms)
{
  return kit_is_done(kit_actor(t, actor), real_ms);
}

/* Both calls have been finished: the check's own clock catches up. */
void
time_has_passed(struct dk_check *t)
{
  advance_to(t, atomic_load(&t->shared->gate.pushed));
  kit_gate_reset(&t->shared->gate, 0);
}
