/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches that wait.  The model is asked when it would hand out something; the provider must answer
 * at that instant, or when the time of the fetch is up [CALL-2, CALL-3, CALL-6].  Meanwhile another
 * handle may make a call, after which the model is asked again, or the fetch is cancelled. */
#include "conformance/random/random.h"

static int64_t
when_over(int64_t due, int64_t here, int64_t until)
{
  if (due <= here)
    return here;
  return due < until ? due : until;
}

/* The provider has answered, at the present time. */
static bool
take_answer(struct pass *p, const struct step *step, int64_t due, int64_t end, int64_t until)
{
  int64_t here = now(p->t);

  p->step = step->number;
  p->present = NULL;
  if (here != end)
    return same_time(p, here < end || due > until ? "CALL-3" : "CALL-6", "when it has answered",
                     end, here);
  if (due == until && p->theirs->status == DK_NOTHING) { /* it need not look once more */
    p->ours.status = DK_NOTHING;
    return true;
  }
  call_model(p, step);
  return take_replies(p, step);
}

static struct op *
waiting_request(struct pass *p, const struct step *step, int64_t until)
{
  struct op *op = make_request(p, step);

  op->fetch_turn.wait_until = op->fetch_work.wait_until = until;
  return op;
}

static bool
wait_alone(struct pass *p, const struct step *step, int64_t due, int64_t until)
{
  int64_t end = when_over(due, now(p->t), until);

  p->theirs = waiting_request(p, step, until);
  kit_call(p->t, kit_actor(p->t, p->handles[step->handle]), false);
  return take_answer(p, step, due, end, until);
}

/* Cancelled before it has begun: it looks at most once. */
static bool
wait_cancelled(struct pass *p, const struct step *step, int64_t due, int64_t until)
{
  struct actor *who = kit_actor(p->t, p->handles[step->handle]);
  int64_t here = now(p->t);
  char got[32];

  p->theirs = waiting_request(p, step, until);
  cancel_call(p->t, who);
  kit_call(p->t, who, false);
  p->ours.status = DK_CALL_CANCELLED;
  if (now(p->t) != here)
    return same_time(p, "CALL-4", "when the cancelled call has answered", here, now(p->t));
  if (p->theirs->status == DK_CALL_CANCELLED)
    return true;
  if (due > here)
    return differs(p, "CALL-4", "status of the cancelled call", "DK_CALL_CANCELLED",
                   kit_status_name(p->theirs->status, got, sizeof(got)));
  return take_answer(p, step, due, here, until);
}

/* CALL-1, CALL-4. */
static bool
take_cancelled(struct pass *p, const struct step *step, struct actor *who)
{
  char got[32];

  cancel_call(p->t, who);
  dk_status status = finish(p->t, who);
  p->step = step->number;
  p->ours.kind = step->request->kind;
  p->ours.status = DK_CALL_CANCELLED;
  return status == DK_CALL_CANCELLED ||
         differs(p, "CALL-4", "status of the cancelled call", "DK_CALL_CANCELLED",
                 kit_status_name(status, got, sizeof(got)));
}

static bool
play_meanwhile(struct pass *p, const struct step *step, bool has_waited)
{
  bool is_same = play_step(p, step->during);

  *LIST_ADD(p->t, &p->t->arena, &p->meanwhile) = (struct meanwhile){
    step->number, has_waited, p->ours.status
  };
  return is_same;
}

static bool
wait_beside(struct pass *p, const struct step *step, struct actor *who, int64_t until)
{
  struct dk_check *t = p->t;
  char got[32];

  waiting_request(p, step, until);
  kit_call(t, who, true);
  if (!kit_waits(t, who)) {
    dk_status status = finish(t, who);
    return differs(p, "CALL-3", "a fetch that finds nothing", "it waits",
                   kit_status_name(status, got, sizeof(got)));
  }
  if (step->during->kind == STEP_CANCEL)
    return take_cancelled(p, step, who);
  if (!play_meanwhile(p, step, true))
    return false;
  int64_t due = ask_model_when(p, step);
  int64_t end = when_over(due, now(t), until);
  until_it_answers(t, who, end, p->run->until_ns == 0);
  finish(t, who);
  p->theirs = &who->op;
  return take_answer(p, step, due, end, until);
}

bool
play_wait(struct pass *p, const struct step *step)
{
  struct actor *who = kit_actor(p->t, p->handles[step->handle]);
  int64_t here = now(p->t), until = here + step->ms;
  int64_t due = ask_model_when(p, step);

  if (step->is_cancelled && !who->has_thread)
    return wait_cancelled(p, step, due, until);
  if (step->during != NULL && due > here)
    return wait_beside(p, step, who, until);
  if (!wait_alone(p, step, due, until))
    return false;
  if (step->during == NULL || step->during->kind == STEP_CANCEL)
    return true;
  dk_status status = p->ours.status;
  bool is_same = play_meanwhile(p, step, false);
  p->ours.status = status;
  return is_same;
}
