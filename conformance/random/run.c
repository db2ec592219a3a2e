/* SPDX-License-Identifier: Apache-2.0 */
/* A random check from its first pass to its last: see random.h. */
#include "conformance/random/random.h"

#include <stdio.h>

#include "core/base/checksum.h"

/* One seed for all checks of a run, and yet each draws its own plan. */
static uint64_t
seed_of(const struct dk_check *t)
{
  const char *id = t->job->check->id;

  return dk_fnv1a64(t->job->seed ^ DK_FNV1A64_START, id, bytes(id).len);
}

static void
begin_run(struct dk_check *t, const struct profile *profile)
{
  struct random_run *run = kit_alloc(t, &t->lasting, 1, sizeof(*run));

  run->profile = profile;
  run->chance.state = seed_of(t);
  t->plan = run;
}

static bool
can_be_made_anew(const struct pass *p)
{
  return p->run->profile->made_anew && p->t->provider->durable >= 1 &&
         p->t->shared->store_key[0] != '\0';
}

/* True if the two sides agree to the end. */
static bool
draw_and_play(struct pass *p)
{
  enum { UNDER_MEMCHECK = 8 /* each step takes so many times as long */, FIRST_LIFE = 60 };
  struct random_run *run = p->run;
  uint32_t n = run->profile->n_steps / (p->t->job->memcheck ? UNDER_MEMCHECK : 1);

  draw_world(p);
  for (uint32_t i = 0; i < n && !p->difference.found; i++) {
    struct step step = {.kind = STEP_ANEW};
    if (i != FIRST_LIFE || !can_be_made_anew(p))
      draw_step(p, &step);
    play_new(p, step);
  }
  if (!p->difference.found)
    settle(p);
  return !p->difference.found;
}

static void
replay(struct pass *p, const steps *plan)
{
  for (size_t i = 0; i < plan->n && !p->difference.found; i++) {
    play_step(p, &plan->items[i]);
    *LIST_ADD(p->t, &p->t->arena, &p->statuses) = p->ours.status;
  }
}

/* The trace of the shortest plan only. */
static void
begin_telling(struct dk_check *t, const struct random_run *run)
{
  t->report->n_trace = 0;
  say_in_trace(t, "the shortest of %u plans that were tried, %zu steps of %u:", run->tries,
               run->plan.n, run->n_drawn);
}

static void
tell_difference(struct pass *p)
{
  struct dk_check *t = p->t;
  const struct difference *d = p->difference.found ? &p->difference : &p->run->difference;

  if (p->run->is_telling && p->difference.found)
    tell_as_check(p);
  snprintf(t->report->clause, sizeof(t->report->clause), "%s", d->clause);
  kit_fail(t, VERDICT_FAIL, NULL, d->expected, d->got,
           "after %zu random steps the provider answers otherwise than the contract says: %s%s",
           p->run->plan.n, d->what,
           p->difference.found ? "" : " (the same calls, made again, were answered rightly)");
}

void
random_check(struct dk_check *t, const struct profile *profile)
{
  struct pass *p = kit_alloc(t, &t->arena, 1, sizeof(*p));

  if (t->pass == 0)
    begin_run(t, profile);
  p->t = t;
  p->run = t->plan;
  if (p->run->is_telling)
    begin_telling(t, p->run);
  pass_begin(p);
  if (t->pass == 0 && draw_and_play(p))
    return;
  if (t->job->brief)
    tell_difference(p);
  if (p->run->is_telling) {
    replay(p, &p->run->plan);
    tell_difference(p);
  }
  if (t->pass == 0) {
    shrink_begin(p->run, &p->difference);
  } else {
    replay(p, &p->run->candidate);
    shrink_take(p->run, &p->difference);
  }
  p->run->is_telling = !shrink_next(p);
  kit_want_pass(t);
}
