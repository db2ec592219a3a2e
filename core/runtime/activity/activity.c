/* SPDX-License-Identifier: Apache-2.0 */
/* Errands: how they begin, who is told to end, and what is said of it.  Locking: see activity.h. */
#include "core/runtime/activity/activity.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/runtime/activity/token.h"

/* ---- what is remembered of it ---------------------------------------------------------------- */

enum { LONGEST_KEY = 2048 };

/* Its instance, execution and number; an instance that is too long is cut: then activities of such
 * instances are taken for one another, and pardoned together. */
static dk_str
write_key(uint64_t execution_id, uint64_t activity_id, dk_str instance, char room[LONGEST_KEY])
{
  int length = snprintf(room, LONGEST_KEY, "%llu.%llu.%.*s", (unsigned long long)execution_id,
                        (unsigned long long)activity_id,
                        (int)(instance.len < 1024 ? instance.len : 1024), instance.ptr);

  return (dk_str){room, (size_t)length};
}

static dk_str
key_of(const struct errand *errand, char room[LONGEST_KEY])
{
  const struct dk_task_info *info = &errand->task.info;

  return write_key(info->execution_id, info->activity_id, info->instance, room);
}

void
errand_pardon(const struct errand *errand)
{
  char room[LONGEST_KEY];

  notes_pardon(errand->worker->notes, key_of(errand, room), errand->task.info.attempt);
}

uint32_t
errand_stalled(const struct errand *errand, enum stall why, bool *ret_first)
{
  char room[LONGEST_KEY];

  return notes_stalled(errand->worker->notes, key_of(errand, room), why, ret_first);
}

void
errand_delayed(const struct errand *errand, enum stall why, int64_t delay_ms)
{
  char room[LONGEST_KEY];

  notes_delayed_until(errand->worker->notes, key_of(errand, room), why,
                      ticks_after(ticks_now(), delay_ms));
}

void
errand_pardon_item(struct worker *worker, const struct dk_work_item *item)
{
  char room[LONGEST_KEY];

  notes_pardon(worker->notes,
               write_key(item->item.execution_id, item->item.activity_id, item->item.instance,
                         room),
               item->work.attempt);
}

void
errand_forget(const struct errand *errand)
{
  char room[LONGEST_KEY];

  notes_forget(errand->worker->notes, key_of(errand, room));
}

static uint32_t
judge(const struct errand *errand)
{
  char room[LONGEST_KEY];

  return notes_judged(errand->worker->notes, key_of(errand, room), errand->task.info.attempt);
}

/* ---- making and freeing ---------------------------------------------------------------------- */

/* Grows with every handing over: a later one has a later time, or the same and more attempts. */
static uint64_t
fence_of(const struct dk_work *work)
{
  uint32_t attempt = work->attempt < 0xfffff ? work->attempt : 0xfffff;

  return (uint64_t)(work->now > 0 ? work->now : 0) << 20 | attempt;
}

static bool
copy_item(struct errand *errand, const struct dk_work_item *item)
{
  struct dk_task *task = &errand->task;
  struct dk_task_info *info = &task->info;

  info->attempt = item->work.attempt;
  info->execution_id = item->item.execution_id;
  info->activity_id = item->item.activity_id;
  info->fence = fence_of(&item->work);
  info->worker = dk_str_of(errand->worker->setup.name);
  return task_copy(task, item->item.instance, &info->instance) &&
         task_copy(task, item->item.tag, &info->tag) &&
         task_copy(task, item->item.session, &info->session) &&
         task_copy(task, item->item.payload, &errand->payload) &&
         task_copy(task, item->work.lock_token, &errand->lock_token);
}

static const char *
unreadable(struct errand *errand, const char *why)
{
  const char *text = dk_arena_printf(&errand->task.arena,
                                     "its order cannot be read (%s): no runtime of this version "
                                     "has made it; cancel the instance, or let a newer one take it",
                                     why);

  return text ? text : why;
}

/* What it is and what is to be run: not known (text says why), or known. */
static bool
read_order(struct errand *errand)
{
  struct dk_task_info *info = &errand->task.info;
  struct task_order order = {.name = {NULL, 0}};
  const char *why = NULL;
  dk_status status = task_order_decode(&errand->task.arena, errand->payload, &order, &why);

  if (status == DK_NO_MEMORY)
    return false;
  if (status != DK_OK) {
    errand->unreadable = unreadable(errand, why ? why : "of no kind");
    return true;
  }
  info->name = order.name;
  info->orchestration = order.orchestration;
  info->version = order.version;
  errand->input = order.input;
  errand->registered =
    registry_activity(errand->worker->setup.options->registry, order.name);
  if (errand->registered && errand->registered->grace_ms > 0)
    errand->grace_ms = errand->registered->grace_ms;
  return true;
}

static struct lease *
keep_lease(struct errand *errand, const struct dk_work_item *item)
{
  const struct worker_setup *setup = &errand->worker->setup;
  struct lease_terms terms = {
    .kind = LEASE_WORK,
    .token = errand->lock_token,
    .lock_ms = setup->options->activity_lock_ms,
    .buffer_ms = setup->options->activity_renewal_buffer_ms,
    .deadline = ticks_of(setup->store, item->deadline),
    .instance = errand->task.info.instance,
    .activity = errand->task.info.name,
    .orchestration = errand->task.info.orchestration,
    .execution_id = errand->task.info.execution_id,
    .activity_id = errand->task.info.activity_id,
    .lost = errand_lost,
    .context = errand,
  };

  return keeper_keep(setup->keeper, &terms);
}

static void
free_errand(struct errand *errand)
{
  if (errand->lease)
    keeper_let_go(errand->worker->setup.keeper, errand->lease);
  task_done(&errand->task);
  free(errand);
}

struct errand *
errand_new(struct worker *worker, const struct dk_work_item *item)
{
  struct errand *errand = calloc(1, sizeof(*errand));

  if (!errand)
    return NULL;
  errand->worker = worker;
  errand->references = 1;
  errand->grace_ms = worker->setup.options->grace_ms;
  task_init(&errand->task, token_new());
  if (errand->task.token && copy_item(errand, item) && read_order(errand)) {
    errand->judged = judge(errand);
    errand->lease = keep_lease(errand, item);
  }
  if (errand->lease)
    return errand;
  free_errand(errand);
  return NULL;
}

void
errand_drop(struct errand *errand)
{
  struct worker *worker = errand->worker;

  pthread_mutex_lock(&worker->lock);
  bool is_last = --errand->references == 0;
  pthread_mutex_unlock(&worker->lock);
  if (is_last)
    free_errand(errand);
}

/* ---- lists ----------------------------------------------------------------------------------- */

void
errand_add(struct errand *errand)
{
  struct worker *worker = errand->worker;

  errand->next = worker->errands;
  worker->errands = errand;
  worker->n_errands++;
  *worker->ready_end = errand;
  worker->ready_end = &errand->next_ready;
  pthread_cond_signal(&worker->has_ready);
}

void
errand_remove(struct errand *errand)
{
  struct worker *worker = errand->worker;
  struct errand **at = &worker->errands;

  while (*at != errand)
    at = &(*at)->next;
  *at = errand->next;
  errand->next = NULL;
  worker->n_errands--;
  pthread_cond_broadcast(&worker->changed);
}

/* ---- told before it is here ------------------------------------------------------------------ */

/* Without memory it learns by its renewal. */
void
errand_note_early(struct worker *worker, dk_str token, int64_t since_ns)
{
  struct early *early = malloc(sizeof(*early) + token.len);

  if (!early)
    return;
  early->since_ns = since_ns;
  early->length = token.len;
  memcpy(early->token, token.ptr, token.len);
  early->next = worker->early;
  worker->early = early;
}

bool
errand_is_early(const struct errand *errand, int64_t *ret_since_ns)
{
  dk_str token = errand->lock_token;

  for (const struct early *early = errand->worker->early; early; early = early->next)
    if (early->length == token.len && memcmp(early->token, token.ptr, token.len) == 0) {
      *ret_since_ns = early->since_ns;
      return true;
    }
  return false;
}

void
errand_forget_early(struct worker *worker)
{
  while (worker->early) {
    struct early *early = worker->early;
    worker->early = early->next;
    free(early);
  }
}

/* ---- signals --------------------------------------------------------------------------------- */

struct dk_log_event
errand_event(const struct errand *errand, int32_t number)
{
  const struct dk_task_info *info = &errand->task.info;

  return (struct dk_log_event){
    .struct_size = sizeof(struct dk_log_event),
    .number = number,
    .execution_id = info->execution_id,
    .activity_id = info->activity_id,
    .instance = info->instance,
    .activity = info->name,
    .orchestration = info->orchestration,
    .token = errand->lock_token,
  };
}

static int64_t
good_at_ns(const struct errand *errand)
{
  return lease_good_at(errand->lease) * 1000000;
}

bool
errand_signal(struct errand *errand, int32_t cause, int32_t learnt, int64_t since_ns)
{
  bool has_ended = errand->state != ERRAND_READY && errand->state != ERRAND_RUNS;

  if (has_ended || dk_token_cancelled(errand->task.token) != DK_CAUSE_NONE)
    return false;
  errand->learnt = learnt;
  if (errand->state == ERRAND_RUNS)
    errand->grace_until = ticks_after(ticks_now(), errand->grace_ms);
  if (learnt == DK_LEARNT_BY_COMMIT)
    lease_rest(errand->lease); /* the row is gone */
  token_set(errand->task.token, cause);
  int64_t told_ns = ticks_ns();
  errand->told_after_ns = told_ns - (since_ns > 0 ? since_ns : good_at_ns(errand));
  pthread_cond_signal(&errand->worker->warden_looks);
  pthread_cond_broadcast(&errand->worker->changed);
  return true;
}

void
errand_count_learnt(const struct errand *errand, int32_t learnt, int64_t ns)
{
  static const enum counter counters[] = {
    [DK_LEARNT_BY_COMMIT] = COUNT_LEARNT_BY_COMMIT,
    [DK_LEARNT_BY_RENEWAL] = COUNT_LEARNT_BY_RENEWAL,
    [DK_LEARNT_BY_ACK] = COUNT_LEARNT_BY_ACK,
    [DK_LEARNT_BY_DEADLINE] = COUNT_LEARNT_BY_DEADLINE,
  };
  struct journal *journal = errand->worker->setup.journal;

  journal_count(journal, counters[learnt]);
  metrics_notified(&journal->metrics, learnt, ns);
}

void
errand_count_learnt_late(const struct errand *errand, int32_t learnt)
{
  errand_count_learnt(errand, learnt, ticks_ns() - good_at_ns(errand));
}

static void
count_signal(const struct errand *errand, int32_t cause, int32_t learnt)
{
  struct journal *journal = errand->worker->setup.journal;

  if (cause == DK_CAUSE_CANCELLED)
    journal_count(journal, COUNT_ACTIVITIES_CANCELLED);
  else if (cause == DK_CAUSE_LEASE_LOST)
    journal_count(journal, COUNT_ACTIVITIES_LOST);
  if (learnt != DK_LEARNT_BY_STOP)
    errand_count_learnt(errand, learnt, errand->told_after_ns);
}

void
errand_tell_signal(const struct errand *errand, int32_t cause, int32_t learnt)
{
  struct journal *journal = errand->worker->setup.journal;
  struct dk_log_event event = errand_event(errand, DK_LOG_ACTIVITY_CANCELLED);

  event.cause = cause;
  event.learnt = learnt;
  count_signal(errand, cause, learnt);
  if (cause == DK_CAUSE_CANCELLED) {
    errand_forget(errand);
    journal_tell(journal, &event, "it is told to end");
  } else if (cause == DK_CAUSE_LEASE_LOST) {
    event.number = DK_LOG_LEASE_LOST;
    journal_tell(journal, &event, "its lease is over: it is told to end, and may be running "
                 "elsewhere");
  } else {
    event.number = DK_LOG_TEXT;
    event.level = DK_LEVEL_INFO;
    journal_tell(journal, &event, "it is told to end, and will be run again");
  }
}

void
errand_lost(void *context, enum loss loss)
{
  struct errand *errand = context;
  struct worker *worker = errand->worker;
  int32_t cause = loss == LOSS_REFUSED ? DK_CAUSE_CANCELLED : DK_CAUSE_LEASE_LOST;
  int32_t learnt = loss == LOSS_REFUSED ? DK_LEARNT_BY_RENEWAL : DK_LEARNT_BY_DEADLINE;

  /* The keeper lets the lease stay while this runs, and so the errand. */
  pthread_mutex_lock(&worker->lock);
  bool is_told = errand_signal(errand, cause, learnt, 0);
  pthread_mutex_unlock(&worker->lock);
  if (loss == LOSS_DEADLINE)
    errand_pardon(errand);
  if (is_told)
    errand_tell_signal(errand, cause, learnt);
}
