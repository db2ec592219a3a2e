/* SPDX-License-Identifier: Apache-2.0 */
/* Time, and races.  With a virtual clock time moves only while the check waits in here (or in a
 * call that waits); with the system's clock the same words wait for real, by the same wait of the
 * clock. */
#include "conformance/kit/kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/sat.h"

int64_t
now(struct dk_check *t)
{
  return t->clock->now(t->clock);
}

int64_t
elapsed(struct dk_check *t)
{
  return now(t) - t->start;
}

void
advance(struct dk_check *t, int64_t ms)
{
  advance_to(t, dk_sat_add(now(t), ms));
}

/* In real time a check must not wait half a minute for each lease: it is skipped.  The store's own
 * clock has checks of its own, with short leases. */
static void
wait_no_longer_than_is_sane(struct dk_check *t, int64_t ms)
{
  enum { MOST_MS = 2000 };

  t->waited_ms = dk_sat_add(t->waited_ms, ms);
  if (t->waited_ms > MOST_MS)
    kit_skip(t, "needs a clock that the kit can move: it would wait %" PRId64 " ms in real time; "
             "the provider declares no DK_CLOCK_HOST", t->waited_ms);
}

void
advance_to(struct dk_check *t, int64_t time)
{
  int64_t here = now(t);

  if (t->real_time && t->shared->own_clock == 0 && time > here)
    wait_no_longer_than_is_sane(t, time - here);
  kit_go_to(t, time);
}

void
kit_go_to(struct dk_check *t, int64_t time)
{
  struct dk_wait wait = {.actor = 0, .cancel_fd = -1, .fd = -1, .until = time};

  if (time <= now(t))
    return;
  if (t->clock->wait(t->clock, &wait) != DK_NOTHING)
    kit_trouble(t, "the clock did not advance");
}

/* As on a machine whose clock was wrong: the next handle finds an earlier time. */
void
set_clock_back(struct dk_check *t, int64_t ms)
{
  for (int i = 0; i < KIT_ACTORS; i++)
    if (t->shared->actors[i].in_use && (i > 0 || t->shared->actors[i].store != NULL))
      kit_trouble(t, "the clock is set back while %s may have a handle",
                  t->shared->actors[i].name);
  if (t->real_time)
    kit_trouble(t, "the system's clock cannot be set back");
  dk_virtual_clock_restart(t->shared->clock, now(t) - ms);
  say_in_trace(t, "the clock is set back by %lld ms", (long long)ms);
}

void
set_host_clock_forward(struct dk_check *t, int64_t ms)
{
  if (t->shared->own_clock == 0)
    kit_trouble(t, "the host's clock is set forward only where stores use their own clock");
  atomic_fetch_add(&t->shared->gate.ahead, ms);
  say_in_trace(t, "the host's clock jumps forward by %lld ms", (long long)ms);
}

/* ---- races ----------------------------------------------------------------------------------- */

void
hold_at_line(struct dk_check *t, struct actor *actor)
{
  struct actor *who = kit_actor(t, actor);

  if (who->kind == IS_MAIN)
    kit_trouble(t, "the check itself cannot wait at the line of a race: use another actor");
  who->held = 1;
}

/* The last entry is for all that have no room. */
static struct kit_answers *
answers_of(struct kit_report *report, const char *what)
{
  for (uint32_t i = 0; i < report->n_answers; i++) {
    if (strcmp(report->answers[i].what, what) == 0)
      return &report->answers[i];
  }
  if (report->n_answers == KIT_ANSWERS)
    return &report->answers[KIT_ANSWERS - 1];
  struct kit_answers *answers = &report->answers[report->n_answers++];
  snprintf(answers->what, sizeof(answers->what), "%s",
           report->n_answers == KIT_ANSWERS ? "others" : what);
  return answers;
}

static bool
is_for_now(const struct op *op)
{
  return dk_status_class(op->status) == 1 || dk_status_class(op->status) == 3;
}

static void
count_answers(struct dk_check *t, const struct op *one, const struct op *other, bool at_once)
{
  char what[sizeof(t->report->answers[0].what)], name[2][32];

  snprintf(what, sizeof(what), "%s %s, %s %s", kit_op_name(one->kind),
           dk_status_name(one->status, name[0], sizeof(name[0])), kit_op_name(other->kind),
           dk_status_name(other->status, name[1], sizeof(name[1])));
  struct kit_answers *answers = answers_of(t->report, what);
  answers->times++;
  answers->is_interesting = is_for_now(one) || is_for_now(other);
  t->report->last_answers = (uint32_t)(answers - t->report->answers) + 1;
  answers->at_once += at_once ? 1u : 0u;
}

/* Each actor releases the other when it reaches the line; the check only waits, without taking a
 * processor. */
bool
race(struct dk_check *t, struct actor *a, struct actor *b)
{
  if (!a->given || !b->given)
    kit_trouble(t, "race() needs a started call of both actors");
  kit_wait_done(t, a);
  kit_wait_done(t, b);
  kit_race_is_over(t->shared);
  bool at_once = a->op.began_ns < b->op.ended_ns && b->op.began_ns < a->op.ended_ns;
  count_answers(t, &a->op, &b->op, at_once);
  return at_once;
}

void
call_times(struct dk_check *t, struct actor *actor, int64_t *ret_began, int64_t *ret_ended)
{
  const struct op *op = &kit_actor(t, actor)->op;

  *ret_began = op->began_ns;
  *ret_ended = op->ended_ns;
}

void
witness(struct dk_check *t, bool overlapped)
{
  if (overlapped)
    t->report->overlaps++;
}

bool
more_rounds(struct dk_check *t, uint32_t enough)
{
  enum { LONGEST_S = 10 };
  bool few = t->job->memcheck || t->runs_again;
  uint32_t most = few ? KIT_MEMCHECK_ROUNDS : KIT_MAX_ROUNDS;
  int64_t time = kit_real_ns();

  t->enough = enough;
  if (t->report->rounds == 0)
    t->rounds_began = time;
  if (t->report->overlaps >= enough || t->report->rounds >= most ||
      time - t->rounds_began > LONGEST_S * INT64_C(1000000000) ||
      (t->job->rounds_until_ns != 0 && time > t->job->rounds_until_ns))
    return false;
  t->report->rounds++;
  return true;
}
