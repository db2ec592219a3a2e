/* SPDX-License-Identifier: Apache-2.0 */
/* One call, from the request of a check to its reply: it is traced before and after, counted, its
 * instants noted for the drain, its results copied, and judged by what the host saw.  The check's
 * own thread does all of this; only kit_op_run in between may run on an actor. */
#include "conformance/kit/kit.h"

#include <stdio.h>
#include <string.h>

#include "core/base/sat.h"

/* ---- notes for the drain --------------------------------------------------------------------- */

void
kit_name_instant(struct dk_check *t, int64_t time)
{
  if (time <= t->start || time == INT64_MAX)
    return;
  for (size_t i = 0; i < t->instants.n; i++) {
    if (t->instants.items[i] == time)
      return;
  }
  *LIST_ADD(t, &t->arena, &t->instants) = time;
}

void
kit_name_instance(struct dk_check *t, struct dk_bytes instance)
{
  if (instance.ptr == NULL)
    return;
  for (size_t i = 0; i < t->instances.n; i++) {
    if (same_bytes(t->instances.items[i], instance))
      return;
  }
  struct dk_bytes copy = kit_copy_bytes(t, &t->arena, instance);
  *LIST_ADD(t, &t->arena, &t->instances) = copy;
}

static void
name_item(struct dk_check *t, const struct dk_item *item, int64_t time)
{
  kit_name_instance(t, item->instance);
  kit_name_instant(t, item->visible_at);
  if (item->delay_ms > 0)
    kit_name_instant(t, dk_sat_add(time, item->delay_ms));
}

static void
name_owner(struct dk_check *t, struct dk_bytes owner)
{
  if (owner.ptr == NULL)
    return;
  for (size_t i = 0; i < t->owners.n; i++) {
    if (same_bytes(t->owners.items[i], owner))
      return;
  }
  struct dk_bytes copy = kit_copy_bytes(t, &t->arena, owner);
  *LIST_ADD(t, &t->arena, &t->owners) = copy;
}

static void
name_pin(struct dk_check *t, const struct dk_version *pin)
{
  if (pin == NULL)
    return;
  for (size_t i = 0; i < t->pins.n; i++) {
    if (memcmp(&t->pins.items[i], pin, sizeof(*pin)) == 0)
      return;
  }
  *LIST_ADD(t, &t->arena, &t->pins) = *pin;
}

static void
name_result(struct dk_check *t, const struct dk_turn_result *r, int64_t time)
{
  name_owner(t, r->owner);
  name_pin(t, r->pinned);
  for (size_t i = 0; i < r->n_worker_items; i++)
    name_item(t, r->worker_items[i], time);
  for (size_t i = 0; i < r->n_orchestrator_items; i++)
    name_item(t, r->orchestrator_items[i], time);
}

/* Notes each instant and each instance that this call names, as if it were made now: before the
 * call, and again after it, because a call may wait. */
static void
name_all(struct dk_check *t, const struct op *op)
{
  int64_t time = now(t);

  switch (op->kind) {
  case OP_ENQUEUE:
  case OP_ENQUEUE_WORK:
    name_item(t, &op->item, time);
    break;
  case OP_FETCH_TURN:
    kit_name_instant(t, dk_sat_add(time, op->fetch_turn.lock_ms));
    kit_name_instant(t, op->fetch_turn.wait_until);
    name_owner(t, op->fetch_turn.owner);
    break;
  case OP_FETCH_WORK:
    kit_name_instant(t, dk_sat_add(time, op->fetch_work.lock_ms));
    kit_name_instant(t, op->fetch_work.wait_until);
    break;
  case OP_ACK_TURN:
    name_result(t, op->result, time);
    break;
  case OP_ACK_WORK:
    if (op->work_result.completion != NULL)
      name_item(t, op->work_result.completion, time);
    break;
  case OP_READ_HISTORY:
    kit_name_instance(t, op->read_history.instance);
    break;
  case OP_RAW:
    break;
  default:
    kit_name_admin(t, op);
    if (op->ms > 0)
      kit_name_instant(t, dk_sat_add(time, op->ms));
  }
}

/* ---- before and after ------------------------------------------------------------------------ */

struct op *
kit_begin(struct dk_check *t, struct actor *who, enum op_kind kind)
{
  if (who->given)
    kit_trouble(t, "%s got %s while its call of %s has not been finished", who->name,
                kit_op_name(kind), kit_op_name(who->op.kind));
  if (who->kind == IS_PROCESS)
    dk_arena_reset(&who->requests);
  memset(&who->op, 0, sizeof(who->op));
  who->op.kind = kind;
  who->op.variation = t->job->check == NULL ? NULL : t->job->check->variation;
  if (who->op.variation != NULL && t->provider != NULL)
    who->op.limits = *t->provider->limits;
  kit_take_doom(who);
  return &who->op;
}

struct dk_arena *
kit_requests(struct dk_check *t, struct actor *who)
{
  return who->kind == IS_PROCESS ? &who->requests : &t->arena;
}

static void
trace_begin(struct dk_check *t, struct actor *who, bool start)
{
  struct dk_text text = DK_TEXT_EMPTY;

  if (start)
    dk_text_puts(&text, "start ");
  dk_text_printf(&text, "%s ", who->name);
  kit_say_op(t, &text, &who->op);
  who->trace_line = kit_trace(t->report, elapsed(t), dk_text_str(&text));
  dk_text_done(&text);
}

static void
trace_reply(struct dk_check *t, struct actor *who, bool started)
{
  struct dk_text text = DK_TEXT_EMPTY;

  if (started)
    dk_text_printf(&text, "%s %s", who->name, kit_op_name(who->op.kind));
  kit_say_reply(t, &text, &who->op);
  if (started)
    kit_trace(t->report, elapsed(t), dk_text_str(&text));
  else
    kit_trace_add(t->report, who->trace_line, dk_text_str(&text));
  dk_text_done(&text);
}

void
kit_enter(struct dk_check *t, const char *operation)
{
  snprintf(t->report->operation, sizeof(t->report->operation), "%s", operation);
  t->report->since_ns = kit_real_ns();
  t->report->running = 1;
}

void
kit_left(struct dk_check *t)
{
  t->report->since_ns = kit_real_ns();
  t->report->running = 0;
}

static void
note_operation(struct dk_check *t, const struct op *op)
{
  kit_enter(t, kit_op_name(op->kind));
  t->report->operations++;
}

/* All actors wait, and none has a time limit: what should have woken one of them did not. */
static void
judge_deadlock(struct dk_check *t, const struct actor *who)
{
  char text[KIT_TRACE_WIDTH];

  if (t->real_time || dk_virtual_clock_deadlocked(t->shared->clock) == 0)
    return;
  snprintf(text, sizeof(text), "%s",
           t->report->trace[who->trace_line % KIT_TRACE_LINES].text);
  kit_fail(t, VERDICT_FAIL, NULL, "the call returns once there is what it waits for", text,
           "deadlock in virtual time: all calls wait and no time limit is left: work that should "
           "have woken %s of %s did not", kit_op_name(who->op.kind), who->name);
}

/* `check --next`: an operation that is not written yet is no failure of this check, whether the
 * call was made by a word of the kit or directly. */
static void
skip_if_missing(struct dk_check *t, struct actor *who)
{
  const struct op *op = &who->op;
  const char *operation = kit_op_name(op->kind);
  const char *const *missing;

  if (!t->job->incomplete || op->status != DK_UNSUPPORTED || op->by_host == 0)
    return;
  if (op->kind == OP_RAW) /* made by this thread, so the host's word for it is still there */
    operation = dk_caller_failure(who->caller)->operation;
  missing = dk_library_missing(t->library);
  for (size_t i = 0; missing != NULL && missing[i] != NULL; i++) {
    if (strcmp(missing[i], operation) != 0)
      continue;
    kit_skip(t, "needs %s, which is not written yet", missing[i]);
  }
}

/* QUEUE-6, WORK-3, HIST-1. */
static void
judge_distortion(struct dk_check *t, const struct actor *who)
{
  const struct op *op = &who->op;

  if (op->distorted[0] == '\0')
    return;
  kit_fail(t, VERDICT_FAIL, NULL, "what was stored, byte for byte", op->distorted, "%s: %s (%s)",
           kit_op_name(op->kind), op->distorted, op->variation->says);
}

/* A variation may ask for more than this provider takes, which the host refuses. */
static void
skip_if_too_much(struct dk_check *t, const struct actor *who)
{
  const struct op *op = &who->op;
  const struct variation *v = op->variation;

  if (v != NULL && op->by_host != 0 &&
      ((op->status == DK_TOO_LARGE && v->n_sizes > 0) ||
       (op->status == DK_INVALID && (v->before_ids != NULL || v->after_ids != NULL))))
    kit_skip(t, "%s is beyond the provider's limits: %.120s", v->id, op->text);
}

static void
call_judge(struct dk_check *t, struct actor *who)
{
  struct op *op = &who->op;

  kit_judge_violation(t);
  if (op->broken != 0)
    kit_fail(t, VERDICT_FAIL, NULL, "the store can be used by another process", op->text, "%s: %s",
             who->name, op->text);
  judge_distortion(t, who);
  skip_if_too_much(t, who);
  judge_deadlock(t, who);
  skip_if_missing(t, who);
}

/* The reply has arrived: takes it from the actor. */
dk_status
kit_conclude(struct dk_check *t, struct actor *who)
{
  struct op *op = &who->op;
  bool started = who->given != 0;

  who->given = 0;
  t->last = who;
  kit_left(t);
  kit_copy_reply(t, &t->arena, op);
  kit_meet_tokens(t, op);
  if (op->turn != NULL)
    kit_name_instance(t, op->turn->head.instance);
  name_all(t, op);
  trace_reply(t, who, started);
  kit_twin_log(t, who, op);
  call_judge(t, who);
  kit_twin_remember(t, op);
  kit_take_back(op);
  return op->status;
}

/* The check's own thread makes the check's own calls, and those of another handle until a call is
 * started on it. */
static bool
runs_here(const struct actor *who, bool start)
{
  return !start && !who->has_thread &&
         (who->kind == IS_MAIN || who->kind == IS_HANDLE);
}

dk_status
kit_call(struct dk_check *t, struct actor *who, bool start)
{
  if (start && who->kind == IS_MAIN)
    kit_trouble(t, "a call of the check itself cannot be started: give it .on = an actor");
  if (!start && who->held)
    kit_trouble(t, "%s is held at the line, so its call has to be started", who->name);
  if (start && t->twin.inside)
    kit_trouble(t, "no call can be started between before and expect_unchanged");
  name_all(t, &who->op);
  if (kit_twin_skips(t)) {
    dk_status status = kit_twin_remembered(t, who);
    name_all(t, &who->op);
    return status;
  }
  note_operation(t, &who->op);
  trace_begin(t, who, start);
  if (runs_here(who, start)) {
    kit_run_varied(t, who);
    return kit_conclude(t, who);
  }
  kit_give(t, who);
  if (start) {
    kit_left(t); /* the check goes on; finish() waits for it */
    return DK_OK;
  }
  kit_wait_done(t, who);
  who->given = 0; /* concluded as a call of the check itself: one line in the trace */
  return kit_conclude(t, who);
}

/* ---- calls without a function of the kit ----------------------------------------------------- */

bool
kit_skips(struct dk_check *t, const char *call)
{
  kit_begin(t, kit_actor(t, NULL), OP_RAW);
  if (!kit_twin_skips(t))
    kit_enter(t, call);
  return kit_twin_skips(t);
}

dk_status
kit_skipped_status(struct dk_check *t)
{
  return kit_twin_remembered(t, kit_actor(t, NULL));
}

dk_status
kit_traced(struct dk_check *t, dk_status status, const char *call)
{
  struct actor *who = kit_actor(t, NULL);
  const struct dk_failure *failure = dk_caller_failure(who->caller);
  char text[KIT_TRACE_WIDTH];

  who->op.status = status;
  if (failure->status == status && status != DK_OK) {
    snprintf(who->op.text, sizeof(who->op.text), "%s", failure->text);
    who->op.by_host = failure->by_host;
  }
  snprintf(text, sizeof(text), "%s %s", who->name, call);
  who->trace_line = kit_trace(t->report, elapsed(t), text);
  t->report->operations++;
  return kit_conclude(t, who);
}

/* ---- calls of the drain ---------------------------------------------------------------------- */

dk_status
kit_call_quietly(struct dk_check *t)
{
  struct actor *who = kit_actor(t, NULL);

  note_operation(t, &who->op);
  kit_run_plain(t, who);
  kit_left(t);
  kit_judge_violation(t);
  judge_distortion(t, who);
  return who->op.status;
}
