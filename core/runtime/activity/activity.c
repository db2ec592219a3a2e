/* SPDX-License-Identifier: Apache-2.0 */
/* Activities: how they begin, how they are signalled to end, and what is logged about that.
 * Locking: see activity.h. */
#include "core/runtime/activity/activity.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/runtime/activity/token.h"

/* ---- retry counts ---------------------------------------------------------------------------- */

enum { LONGEST_KEY = 2048 };

/* Its instance, execution and number; an instance id that is too long is cut: then activities of
 * such instances can share a key, and are pardoned together. */
static dk_str
write_key(uint64_t execution_id, uint64_t activity_id, dk_str instance, char room[LONGEST_KEY])
{
  int length = snprintf(room, LONGEST_KEY, "%llu.%llu.%.*s", (unsigned long long)execution_id,
                        (unsigned long long)activity_id,
                        (int)(instance.len < 1024 ? instance.len : 1024), instance.ptr);

  return (dk_str){room, (size_t)length};
}

static dk_str
key_of(const struct activity *activity, char room[LONGEST_KEY])
{
  const struct dk_task_info *info = &activity->task.info;

  return write_key(info->execution_id, info->activity_id, info->instance, room);
}

void
activity_pardon(const struct activity *activity)
{
  char room[LONGEST_KEY];

  retry_counts_pardon(activity->pool->retries, key_of(activity, room), activity->task.info.attempt);
}

uint32_t
activity_count_delay(const struct activity *activity, enum delay why, bool *ret_first)
{
  char room[LONGEST_KEY];

  return retry_counts_delayed_again(activity->pool->retries, key_of(activity, room), why,
                                    ret_first);
}

void
activity_delayed(const struct activity *activity, enum delay why, int64_t delay_ms)
{
  char room[LONGEST_KEY];

  retry_counts_delayed_until(activity->pool->retries, key_of(activity, room), why,
                             ticks_after(ticks_now(), delay_ms));
}

void
activity_pardon_item(struct activity_pool *pool, const struct dk_work_item *item)
{
  char room[LONGEST_KEY];

  retry_counts_pardon(
      pool->retries,
      write_key(item->item.execution_id, item->item.activity_id, item->item.instance, room),
      item->work.attempt);
}

void
activity_forget(const struct activity *activity)
{
  char room[LONGEST_KEY];

  retry_counts_forget(activity->pool->retries, key_of(activity, room));
}

static uint32_t
activity_judge(const struct activity *activity)
{
  char room[LONGEST_KEY];

  return retry_counts_judged(activity->pool->retries, key_of(activity, room),
                             activity->task.info.attempt);
}

/* ---- making and freeing ---------------------------------------------------------------------- */

/* Grows each time the activity is handed out: a later one has a later time, or the same time and
 * more attempts. */
static uint64_t
fence_of(const struct dk_work *work)
{
  uint32_t attempt = work->attempt < 0xfffff ? work->attempt : 0xfffff;

  return (uint64_t)(work->now > 0 ? work->now : 0) << 20 | attempt;
}

static bool
copy_item(struct activity *activity, const struct dk_work_item *item)
{
  struct dk_task *task = &activity->task;
  struct dk_task_info *info = &task->info;

  info->attempt = item->work.attempt;
  info->execution_id = item->item.execution_id;
  info->activity_id = item->item.activity_id;
  info->fence = fence_of(&item->work);
  info->worker = dk_str_of(activity->pool->setup.name);
  return task_copy(task, item->item.instance, &info->instance) &&
         task_copy(task, item->item.tag, &info->tag) &&
         task_copy(task, item->item.session, &info->session) &&
         task_copy(task, item->item.payload, &activity->payload) &&
         task_copy(task, item->work.lock_token, &activity->lock_token);
}

static const char *
unreadable(struct activity *activity, const char *why)
{
  const char *text = dk_arena_printf(&activity->task.arena,
                                     "its order cannot be read (%s): it was not written by a "
                                     "runtime of this version; cancel the instance, or run a newer "
                                     "worker",
                                     why);

  return text ? text : why;
}

/* Reads what to run; sets `unreadable` if that fails. */
static bool
read_order(struct activity *activity)
{
  struct dk_task_info *info = &activity->task.info;
  struct task_order order = {.name = {NULL, 0}};
  const char *why = NULL;
  dk_status status = task_order_decode(&activity->task.arena, activity->payload, &order, &why);

  if (status == DK_NO_MEMORY)
    return false;
  if (status != DK_OK) {
    activity->unreadable = unreadable(activity, why ? why : "of no kind");
    return true;
  }
  info->name = order.name;
  info->orchestration = order.orchestration;
  info->version = order.version;
  activity->input = order.input;
  activity->registered = registry_activity(activity->pool->setup.options->registry, order.name);
  if (activity->registered && activity->registered->grace_ms > 0)
    activity->grace_ms = activity->registered->grace_ms;
  return true;
}

static struct lease *
keep_lease(struct activity *activity, const struct dk_work_item *item)
{
  const struct activity_pool_setup *setup = &activity->pool->setup;
  struct lease_terms terms = {
      .kind = LEASE_WORK,
      .token = activity->lock_token,
      .lock_ms = setup->options->activity_lock_ms,
      .buffer_ms = setup->options->activity_renewal_buffer_ms,
      .deadline = ticks_of(setup->store, item->deadline),
      .instance = activity->task.info.instance,
      .activity = activity->task.info.name,
      .orchestration = activity->task.info.orchestration,
      .execution_id = activity->task.info.execution_id,
      .activity_id = activity->task.info.activity_id,
      .lost = activity_lost,
      .context = activity,
  };

  return leases_keep(setup->leases, &terms);
}

static void
free_activity(struct activity *activity)
{
  assert(!dk_lock_is_held(&activity->pool->lock)); /* 5 */
  if (activity->lease)
    leases_let_go(activity->pool->setup.leases, activity->lease);
  task_done(&activity->task);
  free(activity);
}

struct activity *
activity_new(struct activity_pool *pool, const struct dk_work_item *item)
{
  struct activity *activity = calloc(1, sizeof(*activity));

  if (!activity)
    return NULL;
  activity->pool = pool;
  activity->references = 1;
  activity->grace_ms = pool->setup.options->grace_ms;
  task_init(&activity->task, token_new());
  if (activity->task.token && copy_item(activity, item) && read_order(activity)) {
    activity->judged = activity_judge(activity);
    activity->lease = keep_lease(activity, item);
  }
  if (activity->lease)
    return activity;
  free_activity(activity);
  return NULL;
}

void
activity_drop(struct activity *activity)
{
  struct activity_pool *pool = activity->pool;

  dk_lock(&pool->lock);
  assert(activity->references > 0); /* 5 */
  bool is_last = --activity->references == 0;
  dk_unlock(&pool->lock);
  if (is_last)
    free_activity(activity);
}

/* ---- lists ----------------------------------------------------------------------------------- */

void
activity_add(struct activity *activity)
{
  struct activity_pool *pool = activity->pool;

  assert(dk_lock_is_held(&pool->lock));                                  /* 1 */
  assert(activity->state == ACTIVITY_READY && activity->references > 0); /* 4, 5 */
  assert(pool->n_activities < pool->n_slots);                            /* 3 */
  assert(!*pool->ready_end);                                             /* 4 */
  activity->next = pool->activities;
  pool->activities = activity;
  pool->n_activities++;
  *pool->ready_end = activity;
  pool->ready_end = &activity->next_ready;
  pthread_cond_signal(&pool->has_ready);
}

void
activity_remove(struct activity *activity)
{
  struct activity_pool *pool = activity->pool;
  struct activity **at = &pool->activities;

  assert(dk_lock_is_held(&pool->lock));                                                /* 1 */
  assert(activity->state == ACTIVITY_ENDS || activity->state == ACTIVITY_QUARANTINED); /* 2 */
  while (*at != activity) {
    assert(*at); /* 3 */
    at = &(*at)->next;
  }
  *at = activity->next;
  activity->next = NULL;
  pool->n_activities--;
  assert((pool->n_activities == 0) == !pool->activities); /* 3 */
  pthread_cond_broadcast(&pool->changed);
}

/* ---- cancelled before it arrives ------------------------------------------------------------- */

/* Without memory the activity learns it by its renewal. */
void
activity_note_early(struct activity_pool *pool, dk_str token, int64_t since_ns)
{
  struct early *early = malloc(sizeof(*early) + token.len);

  assert(dk_lock_is_held(&pool->lock)); /* 1 */
  assert(pool->is_fetching);            /* else it would be kept for nothing */
  if (!early)
    return;
  early->since_ns = since_ns;
  early->length = token.len;
  memcpy(early->token, token.ptr, token.len);
  early->next = pool->early;
  pool->early = early;
}

bool
activity_is_early(const struct activity *activity, int64_t *ret_since_ns)
{
  dk_str token = activity->lock_token;

  assert(dk_lock_is_held(&activity->pool->lock)); /* 1 */
  for (const struct early *early = activity->pool->early; early; early = early->next)
    if (early->length == token.len && memcmp(early->token, token.ptr, token.len) == 0) {
      *ret_since_ns = early->since_ns;
      return true;
    }
  return false;
}

void
activity_forget_early(struct activity_pool *pool)
{
  while (pool->early) {
    struct early *early = pool->early;
    pool->early = early->next;
    free(early);
  }
}

/* ---- signals --------------------------------------------------------------------------------- */

struct dk_log_event
activity_event(const struct activity *activity, int32_t number)
{
  const struct dk_task_info *info = &activity->task.info;

  return (struct dk_log_event){
      .struct_size = sizeof(struct dk_log_event),
      .number = number,
      .execution_id = info->execution_id,
      .activity_id = info->activity_id,
      .instance = info->instance,
      .activity = info->name,
      .orchestration = info->orchestration,
      .token = activity->lock_token,
  };
}

static int64_t
good_at_ns(const struct activity *activity)
{
  return lease_good_at(activity->lease) * 1000000;
}

bool
activity_signal(struct activity *activity, int32_t cause, int32_t learnt, int64_t since_ns)
{
  bool has_ended = activity->state != ACTIVITY_READY && activity->state != ACTIVITY_RUNS;

  assert(dk_lock_is_held(&activity->pool->lock)); /* 1 */
  if (has_ended || dk_token_cancelled(activity->task.token) != DK_CAUSE_NONE)
    return false;
  assert(activity->grace_until == 0 && activity->lease); /* 5, 6 */
  activity->learnt = learnt;
  if (activity->state == ACTIVITY_RUNS)
    activity->grace_until = ticks_after(ticks_now(), activity->grace_ms);
  if (learnt == DK_LEARNT_BY_COMMIT)
    lease_rest(activity->lease); /* the row was deleted */
  token_set(activity->task.token, cause);
  int64_t set_ns = ticks_ns();
  activity->signal_delay_ns = set_ns - (since_ns > 0 ? since_ns : good_at_ns(activity));
  pthread_cond_signal(&activity->pool->deadlines_changed);
  pthread_cond_broadcast(&activity->pool->changed);
  return true;
}

void
activity_count_learnt(const struct activity *activity, int32_t learnt, int64_t ns)
{
  static const enum counter counters[] = {
    [DK_LEARNT_BY_COMMIT] = COUNT_LEARNT_BY_COMMIT,
    [DK_LEARNT_BY_RENEWAL] = COUNT_LEARNT_BY_RENEWAL,
    [DK_LEARNT_BY_ACK] = COUNT_LEARNT_BY_ACK,
    [DK_LEARNT_BY_DEADLINE] = COUNT_LEARNT_BY_DEADLINE,
  };
  struct log *log = activity->pool->setup.log;

  log_count(log, counters[learnt]);
  metrics_notified(&log->metrics, learnt, ns);
}

void
activity_count_learnt_late(const struct activity *activity, int32_t learnt)
{
  activity_count_learnt(activity, learnt, ticks_ns() - good_at_ns(activity));
}

static void
count_signal(const struct activity *activity, int32_t cause, int32_t learnt)
{
  struct log *log = activity->pool->setup.log;

  if (cause == DK_CAUSE_CANCELLED)
    log_count(log, COUNT_ACTIVITIES_CANCELLED);
  else if (cause == DK_CAUSE_LEASE_LOST)
    log_count(log, COUNT_ACTIVITIES_LOST);
  if (learnt != DK_LEARNT_BY_STOP)
    activity_count_learnt(activity, learnt, activity->signal_delay_ns);
}

void
activity_log_signal(const struct activity *activity, int32_t cause, int32_t learnt)
{
  struct log *log = activity->pool->setup.log;
  struct dk_log_event event = activity_event(activity, DK_LOG_ACTIVITY_CANCELLED);

  assert(!dk_lock_is_held(&activity->pool->lock));
  assert(dk_token_cancelled(activity->task.token) == cause); /* 6 */
  event.cause = cause;
  event.learnt = learnt;
  count_signal(activity, cause, learnt);
  if (cause == DK_CAUSE_CANCELLED) {
    activity_forget(activity);
    log_report(log, &event, "it is signalled to end");
  } else if (cause == DK_CAUSE_LEASE_LOST) {
    event.number = DK_LOG_LEASE_LOST;
    log_report(log, &event,
               "its lease has ended: it is signalled to end, and might be running "
               "elsewhere");
  } else {
    event.number = DK_LOG_TEXT;
    event.level = DK_LEVEL_INFO;
    log_report(log, &event, "it is signalled to end, and will be run again");
  }
}

void
activity_lost(void *context, enum loss loss)
{
  struct activity *activity = context;
  struct activity_pool *pool = activity->pool;
  int32_t cause = loss == LOSS_REFUSED ? DK_CAUSE_CANCELLED : DK_CAUSE_LEASE_LOST;
  int32_t learnt = loss == LOSS_REFUSED ? DK_LEARNT_BY_RENEWAL : DK_LEARNT_BY_DEADLINE;

  /* The lease is not freed while this runs, and so the activity is not either. */
  dk_lock(&pool->lock);
  bool is_set = activity_signal(activity, cause, learnt, 0);
  dk_unlock(&pool->lock);
  if (loss == LOSS_DEADLINE)
    activity_pardon(activity);
  if (is_set)
    activity_log_signal(activity, cause, learnt);
}
