/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: threads that run activities, one at a time.  Locking: see activity.h. */
#include "core/runtime/activity/activity.h"

#include <assert.h>
#include <stdlib.h>

/* ---- calls of the store ---------------------------------------------------------------------- */

bool
slot_begin(struct slot *slot, struct activity_pool *pool)
{
  *slot = (struct slot){
      .pool = pool,
      .caller = dk_caller_new(NULL, 0),
      .canceller = dk_canceller_new(NULL),
      .cancel_at = INT64_MAX,
  };
  if (slot->caller && slot->canceller) {
    dk_caller_set_canceller(slot->caller, slot->canceller);
    return true;
  }
  slot_free(slot);
  return false;
}

void
slot_free(struct slot *slot)
{
  dk_caller_free(slot->caller);
  dk_canceller_free(slot->canceller);
}

void
slot_begin_call(struct slot *slot, int64_t until)
{
  struct activity_pool *pool = slot->pool;

  assert(!dk_lock_is_held(&slot->pool->lock));
  dk_caller_reset(slot->caller);
  dk_lock(&pool->lock);
  assert(slot->cancel_at == INT64_MAX && !slot->is_being_cancelled); /* 7 */
  dk_canceller_reset(slot->canceller);
  slot->cancel_at = until;
  pthread_cond_signal(&pool->deadlines_changed);
  dk_unlock(&pool->lock);
}

void
slot_end_call(struct slot *slot)
{
  struct activity_pool *pool = slot->pool;

  dk_lock(&pool->lock);
  slot->cancel_at = INT64_MAX;
  while (slot->is_being_cancelled)
    dk_lock_wait(&pool->lock, &pool->changed);
  dk_unlock(&pool->lock);
}

/* ---- before the body ------------------------------------------------------------------------- */

static bool
needs_zygote(const struct activity *activity)
{
  return activity->registered->isolation == DK_IN_PROCESS && !activity->pool->setup.options->zygote;
}

/* Why it cannot run here, and the code with which it would fail for that; NULL: it can. */
static const char *
obstacle(const struct activity *activity, enum code *ret_code)
{
  *ret_code = activity->unreadable ? CODE_CORRUPT : CODE_UNREGISTERED;
  if (activity->unreadable)
    return activity->unreadable;
  if (!activity->registered)
    return "no activity of this name is registered here: register it "
           "(dk_register_activity), or give it a tag that only workers with it fetch";
  if (needs_zygote(activity))
    return "it must run in a process, but the runtime was started without a zygote "
           "(dk_zygote_start, dk_runtime_options.zygote)";
  return NULL;
}

static enum delay
delay_of(enum code code)
{
  return code == CODE_CORRUPT ? DELAY_UNREADABLE : DELAY_UNREGISTERED;
}

/* Delays it until a worker can run it, or it is cancelled; with DK_RUNTIME_FAIL_DELAYED it fails in
 * the end. */
static void
delay_activity(struct activity *activity, const char *why, enum code code,
               struct outcome *ret_outcome)
{
  const struct activity_pool *pool = activity->pool;
  const struct dk_runtime_options *options = pool->setup.options;
  bool may_fail = options->flags & DK_RUNTIME_FAIL_DELAYED, is_first;
  uint32_t in_a_row = activity_count_delay(activity, delay_of(code), &is_first);
  uint32_t attempt = activity->judged;

  if (may_fail && attempt >= options->max_attempts) {
    task_fail(&activity->task, code, ret_outcome, "%s: tried %u times: %s", code_name(code),
              attempt, why);
    return;
  }
  int64_t delay_ms = activity_pool_backoff(pool, attempt > in_a_row ? attempt : in_a_row);
  activity_delayed(activity, delay_of(code), delay_ms);
  log_count(pool->setup.log, COUNT_DELAYED + delay_of(code));
  *ret_outcome = (struct outcome){
      .kind = OUTCOME_LATER,
      .text = dk_str_of(why),
      .delay_ms = delay_ms,
      .is_counted = may_fail,
      .is_logged = !is_first,
      .is_obstacle = true,
      .why = delay_of(code),
  };
}

/* It was handed out more often than allowed, and no worker has completed it.  An attempt of this
 * process during which the store was unreachable does not count; those of other processes do. */
static bool
is_poison(const struct activity *activity)
{
  return activity->judged > activity->pool->setup.options->max_attempts;
}

/* Whether the body must run; if not, *ret_outcome is what to do instead. */
static bool
may_run(struct activity *activity, struct outcome *ret_outcome)
{
  enum code code;
  const char *why = obstacle(activity, &code);

  if (why)
    delay_activity(activity, why, code, ret_outcome);
  else if (is_poison(activity))
    task_fail(&activity->task, CODE_POISON, ret_outcome,
              "poison: handed out %u times, and no worker has completed it",
              activity->judged - 1);
  else
    return true;
  return false;
}

/* ---- the body -------------------------------------------------------------------------------- */

/* false: it was signalled to end before it began. */
static bool
begin_body(struct slot *slot, struct activity *activity)
{
  struct activity_pool *pool = slot->pool;

  dk_lock(&pool->lock);
  assert(activity->state == ACTIVITY_READY && !activity->slot); /* 2 */
  bool runs = dk_token_cancelled(activity->task.token) == DK_CAUSE_NONE;
  if (runs)
    activity->state = ACTIVITY_RUNS;
  activity->slot = slot;
  dk_unlock(&pool->lock);
  if (runs)
    log_count(pool->setup.log, COUNT_ACTIVITIES_STARTED);
  return runs;
}

/* No signal reaches it from now on, and its lease rests, so that no renewal runs at its end.  If
 * the lease is lost, waits for the thread that is reporting that.  false: the deadlines thread has
 * put the thread into quarantine meanwhile. */
static bool
end_body(struct activity *activity)
{
  struct activity_pool *pool = activity->pool;

  dk_lock(&pool->lock);
  assert(activity->state != ACTIVITY_ENDS); /* 2 */
  bool has_ended = activity->state != ACTIVITY_QUARANTINED;
  if (has_ended && !lease_rest(activity->lease))
    while (dk_token_cancelled(activity->task.token) == DK_CAUSE_NONE)
      dk_lock_wait(&pool->lock, &pool->changed);
  has_ended = activity->state != ACTIVITY_QUARANTINED; /* possibly while it waited */
  if (has_ended)
    activity->state = ACTIVITY_ENDS;
  pthread_cond_broadcast(&pool->changed);
  bool kept_grace = has_ended && activity->grace_until > 0 && !activity->was_killed;
  dk_unlock(&pool->lock);
  if (kept_grace)
    log_count(pool->setup.log, COUNT_GRACE_KEPT);
  return has_ended;
}

static void
log_wrong_use(struct activity *activity, struct outcome *ret_outcome)
{
  struct dk_log_event event = activity_event(activity, DK_LOG_PROGRAMMING_ERROR);
  static const char what[] = "its function returned something other than the result of dk_done, "
                             "dk_error or dk_later";

  log_report(activity->pool->setup.log, &event, what);
  task_fail(&activity->task, CODE_APPLICATION, ret_outcome, "%s", what);
}

static void
run_body(struct activity *activity, struct outcome *ret_outcome)
{
  assert(!dk_lock_is_held(&activity->pool->lock));
  if (activity->registered->isolation == DK_IN_PROCESS)
    activity_run_in_child(activity, ret_outcome);
  else
    task_run(&activity->task, activity->registered->function, activity->input, ret_outcome);
  if (ret_outcome->kind == OUTCOME_NONE)
    log_wrong_use(activity, ret_outcome);
}

/* false: the thread is in quarantine. */
static bool
do_activity(struct slot *slot, struct activity *activity)
{
  struct outcome outcome = {.kind = OUTCOME_NONE};

  if (may_run(activity, &outcome) && begin_body(slot, activity))
    run_body(activity, &outcome);
  if (!end_body(activity))
    return false;
  activity_settle(slot, activity, &outcome);
  dk_lock(&slot->pool->lock);
  activity_remove(activity);
  dk_unlock(&slot->pool->lock);
  return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* The next activity; NULL: the pool is being stopped. */
static struct activity *
take_activity(struct activity_pool *pool)
{
  dk_lock(&pool->lock);
  while (!pool->ready && !pool->is_over)
    dk_lock_wait(&pool->lock, &pool->has_ready);
  struct activity *activity = pool->ready;
  if (activity) {
    assert(activity->state == ACTIVITY_READY); /* 4 */
    pool->ready = activity->next_ready;
    if (!pool->ready)
      pool->ready_end = &pool->ready;
  }
  dk_unlock(&pool->lock);
  return activity;
}

/* A body has returned after all: it leaves the quarantine. */
static void
leave_quarantine(struct slot *slot, const struct activity *activity)
{
  struct activity_pool *pool = slot->pool;
  struct dk_log_event event = activity_event(activity, DK_LOG_TEXT);

  log_uncount(pool->setup.log, COUNT_QUARANTINED_NOW);
  event.level = DK_LEVEL_INFO;
  log_report(pool->setup.log, &event, "its thread has returned");
  dk_lock(&pool->lock);
  assert(pool->n_quarantined > 0 && slot->is_quarantined); /* 8 */
  pool->n_quarantined--;
  dk_unlock(&pool->lock);
}

static void *
slot_main(void *argument)
{
  struct slot *slot = argument;
  struct activity_pool *pool = slot->pool;
  struct activity *activity;
  bool is_free = true;

  while (is_free && (activity = take_activity(pool)) != NULL) {
    is_free = do_activity(slot, activity);
    if (!is_free)
      leave_quarantine(slot, activity);
    activity_drop(activity);
  }
  dk_lock(&pool->lock);
  assert(!slot->is_over && slot->cancel_at == INT64_MAX); /* 7 */
  slot->is_over = true;
  pthread_cond_broadcast(&pool->changed);
  pthread_cond_signal(&pool->deadlines_changed);
  dk_unlock(&pool->lock);
  return NULL;
}

bool
slot_start(struct activity_pool *pool)
{
  struct slot *slot = malloc(sizeof(*slot));

  assert(dk_lock_is_held(&pool->lock));                        /* 1 */
  assert(pool->n_slots < pool->setup.options->activity_slots); /* 8 */
  if (!slot)
    return false;
  if (!slot_begin(slot, pool)) {
    free(slot);
    return false;
  }
  if (pthread_create(&slot->thread, NULL, slot_main, slot) != 0) {
    slot_free(slot);
    free(slot);
    return false;
  }
  slot->next = pool->slots;
  pool->slots = slot;
  pool->n_slots++;
  return true;
}
