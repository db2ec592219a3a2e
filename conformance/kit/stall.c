/* SPDX-License-Identifier: Apache-2.0 */
/* Time that passes while a call runs.
 *
 * The clock that stores are given is the virtual one behind a gate.  A check arms the gate, and
 * whoever asks for the time so many questions later is held in its question: a provider that reads
 * the clock under its lock then keeps all others waiting for it, and one that asks again when it
 * hands something up does so too.  When another call has come as far as it can, time is pushed on
 * and the held one let go.
 *
 * Nobody is ever held by an unarmed gate, and one gate holds one thread.  All of it lies in the
 * shared map, because the held one may be another process.  What was pushed is the truth until the
 * virtual clock has caught up (time_has_passed). */
#include "conformance/kit/kit.h"

#include <errno.h>
#include <poll.h>

static int64_t
gate_now(struct dk_clock *clock)
{
  struct kit_gate *gate = (struct kit_gate *)clock;
  int64_t pushed, time;

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
  if (atomic_load(&gate->shared->cut.countdown) > 0 &&
      kit_cut_wait(gate->shared, gate->behind, &behind, &status))
    return status;
  return gate->behind->wait(gate->behind, &behind);
}

bool
kit_gate_init(struct kit_gate *gate, struct dk_clock *behind)
{
  gate->clock = (struct dk_clock){.now = gate_now, .wait = gate_wait};
  gate->behind = behind;
  return sem_init(&gate->go, 1, 0) == 0;
}

/* Nobody is held: a new pass begins. */
void
kit_gate_reset(struct kit_gate *gate, int64_t ahead)
{
  atomic_store(&gate->ahead, ahead);
  atomic_store(&gate->countdown, 0);
  atomic_store(&gate->asked, 0);
  atomic_store(&gate->pushed, 0);
}

static bool
is_done(struct actor *who, int wait_ms)
{
  struct pollfd done = {.fd = who->done_fd, .events = POLLIN};

  return atomic_load(&who->done) != 0 || poll(&done, 1, wait_ms) == 1;
}

void
hold_at_clock(struct dk_check *t, uint32_t question)
{
  if (t->real_time)
    kit_trouble(t, "only who asks a virtual clock can be held");
  atomic_store(&t->shared->gate.asked, 0);
  atomic_store(&t->shared->gate.countdown, (int32_t)question);
}

bool
stands_at_clock(struct dk_check *t, struct actor *actor)
{
  struct kit_gate *gate = &t->shared->gate;

  while (atomic_load(&gate->holds) == 0 && !is_done(kit_actor(t, actor), 1))
    continue;
  atomic_store(&gate->countdown, 0);
  return atomic_load(&gate->holds) != 0;
}

/* Who has not asked for the time yet will be told the new one.  Who has, and is not done long after
 * that, waits for the one that is held. */
enum passed
pass_time(struct dk_check *t, struct actor *actor, int64_t ms)
{
  enum { TO_COME_THERE_MS = 60, TO_BE_DONE_MS = 400 };
  struct kit_gate *gate = &t->shared->gate;
  struct actor *who = kit_actor(t, actor);
  bool done = false, asked = false;

  for (int i = 0; i < TO_COME_THERE_MS && !done && !asked; i++) {
    done = is_done(who, 1);
    asked = atomic_load(&gate->asked) != 0;
  }
  if (asked && !done)
    done = is_done(who, TO_BE_DONE_MS);
  atomic_store(&gate->pushed, now(t) + ms);
  bool asks_now = !asked && atomic_load(&gate->asked) != 0;
  kit_trace_printf(t, "%lld ms pass while a call is held and %s %s", (long long)ms, who->name,
                   done ? "is done" : "waits for it");
  while (sem_post(&gate->go) != 0 && errno == EINTR)
    continue;
  return done || asks_now ? PASSED_AFTER : PASSED_DURING;
}

bool
returns_within(struct dk_check *t, struct actor *actor, int real_ms)
{
  return is_done(kit_actor(t, actor), real_ms);
}

/* Both calls have been finished: the check's own clock catches up. */
void
time_has_passed(struct dk_check *t)
{
  advance_to(t, atomic_load(&t->shared->gate.pushed));
  kit_gate_reset(&t->shared->gate, 0);
}
