/* SPDX-License-Identifier: Apache-2.0 */
/* How an orchestration waits.  If nothing is ready anywhere in the history, the turn ends; if
 * something is, the rule decides (winner-rule.h).  See orch.h. */
#include "core/runtime/code/orch.h"

/* A future that was dropped has ended: there is nothing to wait for. */
static uint64_t
position_of(const struct dk_orch *o, struct dk_future *future)
{
  return future->dropped ? 0 : orch_position(o, future);
}

static void
wait_for(struct dk_orch *o, struct dk_future *future)
{
  while (position_of(o, future) == POSITION_NONE)
    orch_wait(o);
  orch_take(o, future);
}

/* The event that ended an activity, timer or child that was taken. */
static const struct event *
end_of(const struct dk_orch *o, const struct dk_future *future)
{
  return history_find(o->history, future->position);
}

static bool
has_failed(const struct dk_orch *o, const struct dk_future *future)
{
  const struct event *end = future->arrival ? NULL : end_of(o, future);

  return end && (end->kind == EVENT_ACTIVITY_FAILED || end->kind == EVENT_CHILD_FAILED);
}

static int32_t
outcome_of(const struct dk_orch *o, const struct dk_future *future)
{
  if (future->dropped)
    return DK_DROPPED;
  return has_failed(o, future) ? DK_FAULTED : DK_SUCCEEDED;
}

/* What arrived in this turn is in memory that is freed with the turn. */
static dk_str
text_of_end(struct dk_orch *o, struct dk_future *future)
{
  if (!future->value.ptr) {
    dk_str text = end_of(o, future)->text;
    future->value = future->position <= o->past->n_events ? text : orch_copy(o, text);
  }
  return future->value;
}

/* The result or the error's text; never absent.  A timer has none, and what arrived for a dropped
 * one is not shown. */
static dk_str
wait_value_of(struct dk_orch *o, struct dk_future *future)
{
  if (future->dropped || future->kind == EVENT_TIMER)
    return dk_str_of("");
  dk_str value = future->arrival ? future->arrival->data : text_of_end(o, future);
  return value.ptr ? value : dk_str_of("");
}

static const char *
noun(const struct dk_future *future)
{
  switch (future->kind) {
  case EVENT_ACTIVITY:
    return "activity";
  case EVENT_CHILD:
    return "child";
  case EVENT_WAIT:
    return "event";
  case EVENT_DEQUEUE:
    return "queue";
  default:
    return "timer";
  }
}

DK_NORETURN static void
fail_with(struct dk_orch *o, dk_str error)
{
  o->ran->code = CODE_APPLICATION;
  o->ran->text = error;
  orch_leave(o, ENDING_FAILED);
}

DK_NORETURN static void
fail_as_dropped(struct dk_orch *o, const struct dk_future *future)
{
  char *text = dk_arena_printf(o->arena, "waited for a dropped future: %s %.*s", noun(future),
                               (int)future->name.len, future->name.len > 0 ? future->name.ptr : "");

  if (!text)
    orch_leave(o, ENDING_NO_MEMORY);
  fail_with(o, dk_str_of(text));
}

dk_str
dk_await(dk_orch *given, dk_future *of)
{
  struct dk_orch *o = orch_begin(given, "dk_await");

  if (!o)
    return dk_str_of(NULL);
  struct dk_future *future = orch_check_future(o, of);
  wait_for(o, future);
  if (future->dropped)
    fail_as_dropped(o, future);
  if (has_failed(o, future))
    fail_with(o, wait_value_of(o, future));
  return wait_value_of(o, future);
}

int32_t
dk_outcome(dk_orch *given, dk_future *of, dk_str *ret_value)
{
  struct dk_orch *o = orch_begin(given, "dk_outcome");

  if (!o)
    return DK_PENDING;
  struct dk_future *future = orch_check_future(o, of);
  wait_for(o, future);
  if (ret_value)
    *ret_value = wait_value_of(o, future);
  return outcome_of(o, future);
}

/* ---- several ----------------------------------------------------------------------------------*/

static void
check_futures(struct dk_orch *o, dk_future *const *futures, size_t n)
{
  if (n == 0 || !futures)
    orch_wrong(o, "there are no futures to wait for; give at least one");
  for (size_t i = 0; i < n; i++)
    orch_check_future(o, futures[i]);
}

/* The winner so far; NULL: none is ready. */
static struct dk_future *
best_of(struct dk_orch *o, dk_future *const *futures, size_t n)
{
  uint64_t best = POSITION_NONE;
  struct dk_future *winner = NULL;

  for (size_t i = 0; i < n; i++)
    if (rule_prefers(position_of(o, futures[i]), best, o->now)) {
      winner = futures[i];
      best = position_of(o, winner);
    }
  return winner;
}

/* For an activity and a timer: reports the timer as the activity's limit. */
static void
report_limit(struct dk_orch *o, dk_future *const *futures, size_t n)
{
  const struct dk_future *activity = NULL, *timer = NULL;

  for (size_t i = 0; i < n; i++) {
    if (futures[i]->kind == EVENT_ACTIVITY && !activity)
      activity = futures[i];
    if (futures[i]->kind == EVENT_TIMER && (!timer || futures[i]->ms < timer->ms))
      timer = futures[i];
  }
  if (activity && timer && o->past->limited)
    o->past->limited(o->past->context, activity->name, timer->ms, o->line);
}

static struct dk_future *
first_of(struct dk_orch *o, dk_future *const *futures, size_t n)
{
  struct dk_future *winner;

  check_futures(o, futures, n);
  if (!best_of(o, futures, n))
    report_limit(o, futures, n);
  while (winner = best_of(o, futures, n), !winner)
    orch_wait(o);
  orch_take(o, winner);
  return winner;
}

dk_future *
dk_any_of(dk_orch *given, dk_future *const *futures, size_t n)
{
  struct dk_orch *o = orch_begin(given, "dk_any_of");

  return o ? first_of(o, futures, n) : NULL;
}

dk_future *
dk_select_of(dk_orch *given, dk_future *const *futures, size_t n)
{
  struct dk_orch *o = orch_begin(given, "dk_select_of");

  if (!o)
    return NULL;
  struct dk_future *winner = first_of(o, futures, n);
  enum code code =
    winner->kind == EVENT_TIMER ? CODE_SELECT_LOSER_TIMEOUT : CODE_SELECT_LOSER_OTHER;
  for (size_t i = 0; i < n; i++)
    if (futures[i] != winner)
      orch_drop(o, futures[i], code);
  return winner;
}

void
dk_all_of(dk_orch *given, dk_future *const *futures, size_t n)
{
  struct dk_orch *o = orch_begin(given, "dk_all_of");

  if (!o)
    return;
  check_futures(o, futures, n);
  for (size_t i = 0; i < n; i++)
    wait_for(o, futures[i]);
}

/* ---- without waiting --------------------------------------------------------------------------*/

void
dk_drop(dk_orch *given, dk_future *future)
{
  struct dk_orch *o = orch_begin(given, "dk_drop");

  if (o)
    orch_drop(o, orch_check_future(o, future), CODE_DROPPED);
}

int32_t
dk_ready(const dk_orch *given, const dk_future *of)
{
  struct dk_orch *o = orch_enter(given, "dk_ready");

  if (!o)
    return DK_PENDING;
  struct dk_future *future = orch_check_future(o, of);
  if (!future->taken && !future->dropped && !rule_sees(orch_position(o, future), o->now))
    return DK_PENDING;
  return outcome_of(o, future);
}
