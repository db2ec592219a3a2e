/* SPDX-License-Identifier: Apache-2.0 */
/* How activities end: stores their outcome, and repeats the request until their lease ends.
 * Locking: see activity.h; all here is called without the lock. */
#include "core/plugin/store.h"
#include "core/runtime/activity/activity.h"
#include "core/runtime/shared/delay-reason.h"

#include <assert.h>
#include <stdio.h>

enum { FIRST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 1000 };

int64_t
activity_pool_backoff(const struct activity_pool *pool, uint32_t attempt)
{
  const struct dk_runtime_options *options = pool->setup.options;
  int64_t delay = options->backoff_ms;

  for (uint32_t i = 1; i < attempt && delay < options->max_backoff_ms; i++)
    delay = ticks_after(delay, delay);
  return delay < options->max_backoff_ms ? delay : options->max_backoff_ms;
}

/* ---- repeating requests ---------------------------------------------------------------------- */

/* One request to the store about an activity, with its repetitions. */
struct asking {
  struct slot *slot;
  struct activity *activity;
  const struct dk_item *completion; /* to acknowledge it with; NULL: none */
  bool gives_back;                  /* gives it back instead of acknowledging it */
  int64_t delay_ms;
  bool is_counted;

  bool is_repeated;  /* an outcome is unknown: it might have taken effect */
  uint32_t failures;
  struct asker asker;
  int64_t held_until; /* a tick: until when renewals hold it while the store refuses everything
                         about it */
  const struct outcome *later; /* if its result is refused: how it is delayed */
  bool is_delayed;    /* the store has accepted the delay */
};

static struct health *
health_of(const struct asking *asking)
{
  return &asking->slot->pool->setup.log->health;
}

static dk_status
ask_once(struct asking *asking)
{
  struct slot *slot = asking->slot;
  struct dk_store *store = slot->pool->setup.store;
  struct dk_bytes token = asking->activity->lock_token;
  struct dk_work_result result = {
    .struct_size = sizeof(result),
    .flags = asking->is_repeated ? DK_REPEATED : 0,
    .completion = asking->completion,
  };

  if (asking->gives_back)
    return dk_store_abandon_work_item(store, slot->caller, token, asking->delay_ms,
                                      !asking->is_counted);
  return dk_store_ack_work_item(store, slot->caller, token, &result);
}

static int64_t
end_of_lease(const struct asking *asking)
{
  int64_t deadline = lease_deadline(asking->activity->lease);

  return deadline > asking->held_until ? deadline : asking->held_until;
}

/* Until when requests may be repeated: the end of the lease, or of the runtime. */
static int64_t
last_tick(const struct asking *asking)
{
  struct activity_pool *pool = asking->slot->pool;
  int64_t deadline = end_of_lease(asking);

  dk_lock(&pool->lock);
  int64_t end = pool->end_at;
  dk_unlock(&pool->lock);
  return deadline < end ? deadline : end;
}

/* Counts acknowledgements only. */
static void
count_ack(const struct asking *asking, enum counter counter)
{
  if (!asking->gives_back)
    log_count(asking->slot->pool->setup.log, counter);
}

/* The first failure of a series is a warning, for all activities together. */
static void
log_failure(struct asking *asking, dk_status status)
{
  struct log *log = asking->slot->pool->setup.log;
  struct dk_log_event event = activity_event(asking->activity, DK_LOG_ACK_RETRIED);
  const char *why = dk_caller_failure(asking->slot->caller)->text;

  log_count(log, COUNT_ACKS_RETRIED);
  count_ack(asking, COUNT_WORK_ACKS_RETRIED);
  event.status = status;
  asking->failures++;
  if (!health_refused(health_of(asking), &asking->asker, status, why))
    event.level = DK_LEVEL_TRACE;
  log_report(log, &event, "its end could not be stored, trying again: %s", why);
}

static void
log_success(struct asking *asking)
{
  struct log *log = asking->slot->pool->setup.log;
  struct dk_log_event event = activity_event(asking->activity, DK_LOG_ACK_RETRIED);
  bool is_news = health_good(health_of(asking), &asking->asker, NULL);

  if (asking->failures == 0 && !is_news)
    return;
  event.level = is_news ? DK_LEVEL_INFO : DK_LEVEL_TRACE;
  log_report(log, &event, "its end was stored, after %u failed attempts",
             asking->failures);
}

/* Pauses; shorter if the runtime ends meanwhile and changes `end_at`. */
static void
pause_before_next(const struct asking *asking, int64_t until)
{
  struct activity_pool *pool = asking->slot->pool;
  uint32_t doublings = asking->failures < 8 ? asking->failures : 8;
  int64_t pause = (int64_t)FIRST_PAUSE_MS << doublings;
  int64_t at = ticks_now() + (pause < LONGEST_PAUSE_MS ? pause : LONGEST_PAUSE_MS);

  dk_lock(&pool->lock);
  while (ticks_now() < (at < until ? at : until) && ticks_now() < pool->end_at)
    ticks_cond_wait(&pool->changed, &pool->lock, at < until ? at : until);
  dk_unlock(&pool->lock);
}

/* The store refuses a result for reasons other than the result (a missing right, damage): another
 * attempt now would end the same way, so the activity is delayed. */
static bool
is_refused(const struct asking *asking, dk_status status)
{
  const struct dk_runtime_options *options = asking->slot->pool->setup.options;
  bool is_refusal = dk_status_class(status) == 2 && status != DK_LOCK_LOST &&
                    status != DK_DUPLICATE && status != DK_TOO_LARGE;

  return is_refusal && !asking->gives_back && !(options->flags & DK_RUNTIME_FAIL_DELAYED);
}

/* How it is delayed for that; the same for all repetitions. */
static const struct outcome *
later_for_refusal(const struct asking *asking, dk_status refusal)
{
  struct activity *activity = asking->activity;
  struct dk_arena *arena = &activity->task.arena;
  struct outcome *later = dk_arena_alloc(arena, sizeof(*later));
  char name[32];
  bool is_first;

  if (!later)
    return NULL;
  uint32_t in_a_row = activity_count_delay(activity, DELAY_REFUSED, &is_first);
  const char *why =
    dk_arena_printf(arena, "the store refuses its result (%s: %.400s), so it will be run again",
                    dk_status_name(refusal, name, sizeof(name)),
                    dk_caller_failure(asking->slot->caller)->text);
  *later = (struct outcome){
      .kind = OUTCOME_LATER,
      .text = dk_str_of(why ? why : "the store refuses its result"),
      .delay_ms = activity_pool_backoff(activity->pool, in_a_row),
      .is_logged = !is_first,
      .is_obstacle = true,
      .why = DELAY_REFUSED,
  };
  return later;
}

/* Gives the activity back, so that its slot is free for others.  DK_OK, DK_LOCK_LOST, or the store
 * refuses that too. */
static dk_status
delay_refused(struct asking *asking, dk_status refusal)
{
  struct slot *slot = asking->slot;

  assert(!asking->is_delayed); /* it is delayed once, and that is its end */
  if (!asking->later)
    asking->later = later_for_refusal(asking, refusal);
  if (!asking->later)
    return DK_NO_MEMORY;
  slot_begin_call(slot, last_tick(asking));
  dk_status status =
      dk_store_abandon_work_item(slot->pool->setup.store, slot->caller,
                                 asking->activity->lock_token, asking->later->delay_ms, 1);
  slot_end_call(slot);
  asking->is_delayed = status == DK_OK;
  return status;
}

/* The lease of an ended activity rests, so this renews it. */
static void
renew_held(struct asking *asking)
{
  struct slot *slot = asking->slot;
  int64_t lock_ms = slot->pool->setup.options->activity_lock_ms, now = ticks_now();

  if (end_of_lease(asking) - now > lock_ms / 2)
    return;
  slot_begin_call(slot, last_tick(asking));
  dk_status status = dk_store_renew_work_item_lock(slot->pool->setup.store, slot->caller,
                                                   asking->activity->lock_token, lock_ms);
  slot_end_call(slot);
  if (status == DK_OK)
    asking->held_until = ticks_after(now, lock_ms);
}

/* When to check next, in time for a renewal. */
static int64_t
next_look(const struct asking *asking)
{
  int64_t lock_ms = asking->slot->pool->setup.options->activity_lock_ms;
  int64_t at = ticks_after(ticks_now(), lock_ms / 4), last = last_tick(asking);

  return at < last ? at : last;
}

/* The outcome is final: the store has accepted it, will not accept it, or has delayed the
 * activity. */
static bool
is_clear(struct asking *asking, dk_status *status)
{
  if (!is_refused(asking, *status))
    return !health_may_pass(*status);
  dk_status delayed = delay_refused(asking, *status);
  if (delayed == DK_LOCK_LOST)
    *status = delayed;
  asking->is_repeated = asking->is_repeated || dk_status_class(delayed) == 3;
  return delayed == DK_OK || delayed == DK_LOCK_LOST;
}

/* A store that accepts neither the result nor the return of the activity accepts nothing at all:
 * then the result is held, so that nothing has to run twice when the store works again. */
static dk_status
ask_until_clear(struct asking *asking)
{
  assert(!dk_lock_is_held(&asking->slot->pool->lock));
  for (;;) {
    health_ask(health_of(asking), &asking->asker, HEALTH_ACKS, 0);
    slot_begin_call(asking->slot, last_tick(asking));
    dk_status status = ask_once(asking);
    slot_end_call(asking->slot);
    bool is_held = is_refused(asking, status);
    if (is_clear(asking, &status))
      return status;
    asking->is_repeated = asking->is_repeated || dk_status_class(status) == 3;
    log_failure(asking, status);
    if (is_held)
      renew_held(asking);
    pause_before_next(asking, next_look(asking));
    if (ticks_now() >= last_tick(asking))
      return status;
  }
}

/* The store's final answer; a temporary error only if there was no time for another attempt. */
static dk_status
activity_finish_ask(struct asking *asking)
{
  dk_status status = ask_until_clear(asking);

  if (status == DK_OK)
    log_success(asking);
  else
    health_rest(health_of(asking), &asking->asker);
  return status;
}

/* ---- outcomes -------------------------------------------------------------------------------- */

/* The row was deleted: that is how the worker learns that the activity was cancelled. */
static void
log_deleted_row(const struct asking *asking)
{
  struct log *log = asking->slot->pool->setup.log;
  struct dk_log_event event = activity_event(asking->activity, DK_LOG_RESULT_REFUSED);

  event.cause = DK_CAUSE_CANCELLED;
  event.learnt = DK_LEARNT_BY_ACK;
  activity_forget(asking->activity);
  count_ack(asking, COUNT_WORK_ACKS_REFUSED);
  log_count(log, COUNT_RESULTS_REFUSED);
  activity_count_learnt_late(asking->activity, DK_LEARNT_BY_ACK);
  log_count(log, COUNT_ACTIVITIES_CANCELLED);
  log_report(log, &event, "its row was deleted: its result is not needed, and is dropped");
}

static void
log_lost(const struct asking *asking, dk_status status)
{
  struct log *log = asking->slot->pool->setup.log;
  struct dk_log_event event = activity_event(asking->activity, DK_LOG_LEASE_LOST);

  event.cause = DK_CAUSE_LEASE_LOST;
  event.learnt = DK_LEARNT_BY_DEADLINE;
  event.status = status;
  activity_pardon(asking->activity);
  count_ack(asking, COUNT_WORK_ACKS_LOST);
  activity_count_learnt_late(asking->activity, DK_LEARNT_BY_DEADLINE);
  log_count(log, COUNT_ACTIVITIES_LOST);
  log_report(log, &event,
             "its end could not be stored before its lease ended; it will be "
             "run again");
}

/* If an answer was lost, a dead token means that the first attempt took effect or that the lease
 * has ended: it is not a cancellation in either case. */
static void
log_unknown(const struct asking *asking)
{
  struct dk_log_event event = activity_event(asking->activity, DK_LOG_TEXT);

  event.level = DK_LEVEL_INFO;
  event.status = DK_LOCK_LOST;
  count_ack(asking, COUNT_WORK_ACKS_UNKNOWN);
  log_report(asking->slot->pool->setup.log, &event,
             "its end was already stored, or "
             "another worker has the activity");
}

/* The token is dead: by a cancellation, or because the lease has ended by our own clock as well. */
static void
log_dead_token(const struct asking *asking)
{
  if (asking->is_repeated)
    log_unknown(asking);
  else if (ticks_now() >= end_of_lease(asking))
    log_lost(asking, DK_LOCK_LOST);
  else
    log_deleted_row(asking);
}

/* An attempt that does not count is handed out again a millisecond later at the earliest: otherwise
 * it could have the same time and the same attempt, and so the same fence. */
bool
activity_give_back(struct slot *slot, struct activity *activity, int64_t delay_ms, bool is_counted)
{
  struct asking asking = {.slot = slot,
                          .activity = activity,
                          .gives_back = true,
                          .delay_ms = !is_counted && delay_ms < 1 ? 1 : delay_ms,
                          .is_counted = is_counted};
  dk_status status = activity_finish_ask(&asking);

  if (status == DK_LOCK_LOST)
    log_dead_token(&asking);
  else if (status != DK_OK)
    log_lost(&asking, status);
  return status == DK_OK || status == DK_LOCK_LOST;
}

/* ---- delays ---------------------------------------------------------------------------------- */

/* Stores the reason, for users who read the instance's status. */
static void
store_reason(struct slot *slot, const struct activity *activity, const struct outcome *later,
             int64_t delay_ms)
{
  const struct activity_pool_setup *setup = &slot->pool->setup;
  const struct dk_task_info *info = &activity->task.info;
  struct dk_log_event event = activity_event(activity, DK_LOG_TEXT);
  struct dk_text text = DK_TEXT_EMPTY;

  if (!dk_store_extension(setup->store, "durakit.admin/1"))
    return; /* it could not be read */
  dk_text_printf(&text, "activity %llu (%.*s): %.*s", (unsigned long long)info->activity_id,
                 (int)info->name.len, info->name.ptr ? info->name.ptr : "", (int)later->text.len,
                 later->text.ptr);
  const struct reason reason = {.instance = info->instance,
                                .why = later->why,
                                .execution = info->execution_id,
                                .activity = info->activity_id,
                                .text = {dk_text_str(&text), text.length},
                                .by = dk_str_of(setup->name),
                                .visible_at = ticks_after(dk_store_now(setup->store), delay_ms)};
  slot_begin_call(slot, ticks_after(ticks_now(), LONGEST_PAUSE_MS));
  dk_status status = reason_store(setup->store, slot->caller, &reason);
  slot_end_call(slot);
  dk_text_done(&text);
  event.level = DK_LEVEL_TRACE;
  event.status = status;
  if (status != DK_OK && status != DK_DUPLICATE)
    log_report(setup->log, &event, "the reason of its delay cannot be stored: %s",
               dk_caller_failure(slot->caller)->text);
}

/* Text absent: the body requested it, or it is logged already.  An obstacle is logged once. */
static void
log_given_back(const struct activity *activity, const struct outcome *later, int64_t delay_ms)
{
  struct log *log = activity->pool->setup.log;
  struct dk_log_event event = activity_event(activity, DK_LOG_STALLED);

  event.ms = delay_ms;
  if (later->is_logged)
    event.level = DK_LEVEL_TRACE;
  log_count(log, COUNT_ACTIVITIES_PUT_OFF);
  if (later->text.ptr)
    log_report(log, &event, "delayed for %lld ms: %.*s", (long long)delay_ms, (int)later->text.len,
               later->text.ptr);
}

static void
put_off(struct slot *slot, struct activity *activity, const struct outcome *later)
{
  int64_t delay_ms = later->delay_ms;

  if (delay_ms < 0)
    delay_ms = activity_pool_backoff(slot->pool, activity->task.info.attempt);
  log_given_back(activity, later, delay_ms);
  if (activity_give_back(slot, activity, delay_ms, later->is_counted) && later->is_obstacle)
    store_reason(slot, activity, later, delay_ms);
}

/* Its result was refused, so it is given back. */
static void
log_delayed(const struct asking *asking)
{
  const struct outcome *later = asking->later;

  assert(asking->is_delayed && later);
  count_ack(asking, COUNT_WORK_ACKS_ERROR);
  log_count(asking->slot->pool->setup.log, COUNT_DELAYED + later->why);
  activity_delayed(asking->activity, later->why, later->delay_ms);
  log_given_back(asking->activity, later, later->delay_ms);
  store_reason(asking->slot, asking->activity, later, later->delay_ms);
}

/* ---- completions ----------------------------------------------------------------------------- */

static const struct message *
message_of(const struct activity *activity, const struct outcome *outcome, struct message *message)
{
  *message = (struct message){
      .kind = outcome->kind == OUTCOME_DONE ? MESSAGE_ACTIVITY_COMPLETED : MESSAGE_ACTIVITY_FAILED,
      .code = outcome->code,
      .execution = activity->task.info.execution_id,
      .source = activity->task.info.activity_id,
      .text = outcome->text,
  };
  return message;
}

static void
count_end(struct log *log, const struct outcome *outcome)
{
  log_count(log,
            outcome->kind == OUTCOME_DONE ? COUNT_ACTIVITIES_COMPLETED : COUNT_ACTIVITIES_FAILED);
}

/* The completion is stored already, by an attempt whose answer was lost or by an earlier owner:
 * only the row remains. */
static dk_status
remove_row(struct asking *asking)
{
  asking->completion = NULL;
  return activity_finish_ask(asking);
}

/* Handles the store's final answer to a completion.  DK_OK: it is settled in some way; else the
 * store refuses this completion permanently. */
static dk_status
activity_finish_conclude(const struct asking *asking, const struct outcome *outcome,
                         dk_status status)
{
  if (asking->is_delayed) {
    log_delayed(asking);
    return DK_OK;
  }
  if (status == DK_OK || (status == DK_LOCK_LOST && asking->is_repeated))
    count_end(asking->slot->pool->setup.log, outcome);
  if (status == DK_OK) {
    activity_forget(asking->activity);
    count_ack(asking, COUNT_WORK_ACKS_OK);
  } else if (status == DK_LOCK_LOST) {
    log_dead_token(asking);
  } else if (health_may_pass(status) || is_refused(asking, status)) {
    log_lost(asking, status);
  } else if (dk_status_class(status) == 2) {
    count_ack(asking, COUNT_WORK_ACKS_ERROR);
    return status;
  }
  return DK_OK;
}

/* As conclude; also DK_NO_MEMORY: the completion could not be made. */
static dk_status
acknowledge(struct slot *slot, struct activity *activity, const struct outcome *outcome)
{
  const struct dk_task_info *info = &activity->task.info;
  struct dk_text payload = DK_TEXT_EMPTY;
  struct message message;
  char id[64];
  struct dk_item item = {.struct_size = sizeof(item), .instance = info->instance};
  struct asking asking = {.slot = slot, .activity = activity, .completion = &item};

  message_encode(&payload, message_of(activity, outcome, &message));
  if (dk_text_failed(&payload)) {
    dk_text_done(&payload);
    return DK_NO_MEMORY;
  }
  snprintf(id, sizeof(id), "a%llu.%llu", (unsigned long long)info->execution_id,
           (unsigned long long)info->activity_id);
  item.id = dk_str_of(id);
  item.payload = (dk_str){dk_text_str(&payload), payload.length};
  dk_status status = activity_finish_ask(&asking);
  if (status == DK_DUPLICATE)
    status = remove_row(&asking);
  dk_text_done(&payload);
  return activity_finish_conclude(&asking, outcome, status);
}

/* The result is too large for the store: the orchestration gets an error instead; if the store
 * refuses that too, the activity is delayed. */
static void
refuse_result(struct slot *slot, struct activity *activity, const struct outcome *outcome,
              dk_status status)
{
  const char *why = dk_caller_failure(slot->caller)->text;
  struct outcome refused;
  char name[32];

  task_fail(&activity->task, status == DK_TOO_LARGE ? CODE_LIMIT : CODE_APPLICATION, &refused,
            "its result of %zu bytes was refused by the store (%s): %.500s", outcome->text.len,
            dk_status_name(status, name, sizeof(name)), why);
  if (outcome->kind != OUTCOME_DONE && outcome->text.len < 1000)
    status = DK_INVALID; /* its size is not the cause: another text would not help */
  else
    status = acknowledge(slot, activity, &refused);
  if (status != DK_OK) {
    refused.kind = OUTCOME_LATER;
    refused.delay_ms = -1;
    refused.is_counted = true;
    put_off(slot, activity, &refused);
  }
}

static void
activity_finish_finish(struct slot *slot, struct activity *activity, const struct outcome *outcome)
{
  static const struct outcome without_memory = {
    .kind = OUTCOME_LATER,
    .text = {"there is no memory for its completion", 37},
    .delay_ms = -1,
  };
  dk_status status = acknowledge(slot, activity, outcome);

  if (status == DK_NO_MEMORY)
    put_off(slot, activity, &without_memory);
  else if (status != DK_OK)
    refuse_result(slot, activity, outcome, status);
}

/* ---- settling -------------------------------------------------------------------------------- */

/* The runtime stops: the activity will run again, and this attempt does not count. */
static void
leave_over(struct slot *slot, struct activity *activity)
{
  struct activity_pool *pool = slot->pool;
  bool is_given_back = activity_give_back(slot, activity, 0, false);

  dk_lock(&pool->lock);
  pool->leftover.activities++;
  pool->leftover.not_given_back += !is_given_back;
  dk_unlock(&pool->lock);
}

void
activity_settle(struct slot *slot, struct activity *activity, const struct outcome *outcome)
{
  int32_t cause = dk_token_cancelled(activity->task.token);

  assert(activity->state == ACTIVITY_ENDS); /* its own thread's from now on */
  if (cause == DK_CAUSE_SHUTDOWN)
    leave_over(slot, activity);
  else if (cause != DK_CAUSE_NONE)
    return; /* its result is not needed */
  else if (outcome->kind == OUTCOME_LATER)
    put_off(slot, activity, outcome);
  else
    activity_finish_finish(slot, activity, outcome);
}
