/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: threads that run errands, one at a time.  Locking: see activity.h. */
#include "core/runtime/activity/activity.h"

#include <stdlib.h>

/* ---- what they call the store with ----------------------------------------------------------- */

bool
slot_begin(struct slot *slot, struct worker *worker)
{
  *slot = (struct slot){
    .worker = worker,
    .caller = dk_caller_new(NULL, 0),
    .canceller = dk_canceller_new(NULL),
    .call_back_at = INT64_MAX,
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
  struct worker *worker = slot->worker;

  dk_caller_reset(slot->caller);
  pthread_mutex_lock(&worker->lock);
  dk_canceller_reset(slot->canceller);
  slot->call_back_at = until;
  pthread_cond_signal(&worker->warden_looks);
  pthread_mutex_unlock(&worker->lock);
}

void
slot_end_call(struct slot *slot)
{
  struct worker *worker = slot->worker;

  pthread_mutex_lock(&worker->lock);
  slot->call_back_at = INT64_MAX;
  while (slot->is_called_back)
    pthread_cond_wait(&worker->changed, &worker->lock);
  pthread_mutex_unlock(&worker->lock);
}

/* ---- before the body ------------------------------------------------------------------------- */

static bool
needs_zygote(const struct errand *errand)
{
  return errand->registered->isolation == DK_IN_PROCESS &&
         !errand->worker->setup.options->zygote;
}

/* Why it cannot be run here, and with which code it would fail for that; NULL: it can. */
static const char *
obstacle(const struct errand *errand, enum code *ret_code)
{
  *ret_code = errand->unreadable ? CODE_CORRUPT : CODE_UNREGISTERED;
  if (errand->unreadable)
    return errand->unreadable;
  if (!errand->registered)
    return "no activity of this name is registered here: dk_register_activity, or give it a tag "
           "that only those fetch who know it";
  if (needs_zygote(errand))
    return "it is to run in a process, and the runtime was started without a zygote "
           "(dk_zygote_start, dk_runtime_options.zygote)";
  return NULL;
}

static enum stall
stall_of(enum code code)
{
  return code == CODE_CORRUPT ? STALL_UNREADABLE : STALL_UNREGISTERED;
}

/* Delayed until a worker can run it, or it is cancelled; where that is wanted, the orchestration is
 * told in the end. */
static void
stall(struct errand *errand, const char *why, enum code code, struct outcome *ret_outcome)
{
  const struct worker *worker = errand->worker;
  const struct dk_runtime_options *options = worker->setup.options;
  bool may_fail = options->flags & DK_RUNTIME_FAIL_DELAYED, is_first;
  uint32_t in_a_row = errand_stalled(errand, stall_of(code), &is_first);
  uint32_t attempt = errand->judged;

  if (may_fail && attempt >= options->max_attempts) {
    task_fail(&errand->task, code, ret_outcome, "%s: tried %u times: %s", code_name(code), attempt,
              why);
    return;
  }
  int64_t delay_ms = worker_backoff(worker, attempt > in_a_row ? attempt : in_a_row);
  errand_delayed(errand, stall_of(code), delay_ms);
  journal_count(worker->setup.journal, COUNT_DELAYED + stall_of(code));
  *ret_outcome = (struct outcome){
    .kind = OUTCOME_LATER,
    .text = dk_str_of(why),
    .delay_ms = delay_ms,
    .is_counted = may_fail,
    .is_told = !is_first,
    .is_obstacle = true,
    .why = stall_of(code),
  };
}

/* Handed out more often than it may be, and nobody has come to an end with it.  When the store was
 * away for an attempt of this process, that one does not count; those of others do. */
static bool
is_poison(const struct errand *errand)
{
  return errand->judged > errand->worker->setup.options->max_attempts;
}

/* Whether the body is to be run; else what is to be done instead. */
static bool
may_run(struct errand *errand, struct outcome *ret_outcome)
{
  enum code code;
  const char *why = obstacle(errand, &code);

  if (why)
    stall(errand, why, code, ret_outcome);
  else if (is_poison(errand))
    task_fail(&errand->task, CODE_POISON, ret_outcome,
              "poison: handed out %u times, and no worker has come to its end",
              errand->judged - 1);
  else
    return true;
  return false;
}

/* ---- the body -------------------------------------------------------------------------------- */

/* false: it was told to end before it began. */
static bool
begin_body(struct slot *slot, struct errand *errand)
{
  struct worker *worker = slot->worker;

  pthread_mutex_lock(&worker->lock);
  bool runs = dk_token_cancelled(errand->task.token) == DK_CAUSE_NONE;
  if (runs)
    errand->state = ERRAND_RUNS;
  errand->slot = slot;
  pthread_mutex_unlock(&worker->lock);
  if (runs)
    journal_count(worker->setup.journal, COUNT_ACTIVITIES_STARTED);
  return runs;
}

/* No signal reaches it from now on, and its lease rests, so that no renewal meets the end.  If the
 * lease is lost, whoever is about to tell so is waited for.  false: the warden has put the thread
 * into quarantine meanwhile. */
static bool
end_body(struct errand *errand)
{
  struct worker *worker = errand->worker;

  pthread_mutex_lock(&worker->lock);
  bool has_ended = errand->state != ERRAND_QUARANTINED;
  if (has_ended && !lease_rest(errand->lease))
    while (dk_token_cancelled(errand->task.token) == DK_CAUSE_NONE)
      pthread_cond_wait(&worker->changed, &worker->lock);
  has_ended = errand->state != ERRAND_QUARANTINED; /* perhaps while it waited */
  if (has_ended)
    errand->state = ERRAND_ENDS;
  pthread_cond_broadcast(&worker->changed);
  bool kept_grace = has_ended && errand->grace_until > 0 && !errand->was_killed;
  pthread_mutex_unlock(&worker->lock);
  if (kept_grace)
    journal_count(worker->setup.journal, COUNT_GRACE_KEPT);
  return has_ended;
}

static void
tell_wrong_use(struct errand *errand, struct outcome *ret_outcome)
{
  struct dk_log_event event = errand_event(errand, DK_LOG_PROGRAMMING_ERROR);
  static const char what[] = "its function returned something that is none of dk_done, dk_error "
                             "and dk_later";

  journal_tell(errand->worker->setup.journal, &event, what);
  task_fail(&errand->task, CODE_APPLICATION, ret_outcome, "%s", what);
}

static void
run_body(struct errand *errand, struct outcome *ret_outcome)
{
  if (errand->registered->isolation == DK_IN_PROCESS)
    errand_run_in_child(errand, ret_outcome);
  else
    task_run(&errand->task, errand->registered->function, errand->input, ret_outcome);
  if (ret_outcome->kind == OUTCOME_NONE)
    tell_wrong_use(errand, ret_outcome);
}

/* false: the thread is in quarantine. */
static bool
do_errand(struct slot *slot, struct errand *errand)
{
  struct outcome outcome = {.kind = OUTCOME_NONE};

  if (may_run(errand, &outcome) && begin_body(slot, errand))
    run_body(errand, &outcome);
  if (!end_body(errand))
    return false;
  errand_settle(slot, errand, &outcome);
  pthread_mutex_lock(&slot->worker->lock);
  errand_remove(errand);
  pthread_mutex_unlock(&slot->worker->lock);
  return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* The next errand; NULL: it is the end. */
static struct errand *
take_errand(struct worker *worker)
{
  pthread_mutex_lock(&worker->lock);
  while (!worker->ready && !worker->is_over)
    pthread_cond_wait(&worker->has_ready, &worker->lock);
  struct errand *errand = worker->ready;
  if (errand) {
    worker->ready = errand->next_ready;
    if (!worker->ready)
      worker->ready_end = &worker->ready;
  }
  pthread_mutex_unlock(&worker->lock);
  return errand;
}

/* A body has come back after all: one less in quarantine. */
static void
leave_quarantine(struct slot *slot, const struct errand *errand)
{
  struct worker *worker = slot->worker;
  struct dk_log_event event = errand_event(errand, DK_LOG_TEXT);

  journal_uncount(worker->setup.journal, COUNT_QUARANTINED_NOW);
  event.level = DK_LEVEL_INFO;
  journal_tell(worker->setup.journal, &event, "its thread has come back");
  pthread_mutex_lock(&worker->lock);
  worker->n_quarantined--;
  pthread_mutex_unlock(&worker->lock);
}

static void *
slot_main(void *argument)
{
  struct slot *slot = argument;
  struct worker *worker = slot->worker;
  struct errand *errand;
  bool is_free = true;

  while (is_free && (errand = take_errand(worker)) != NULL) {
    is_free = do_errand(slot, errand);
    if (!is_free)
      leave_quarantine(slot, errand);
    errand_drop(errand);
  }
  pthread_mutex_lock(&worker->lock);
  slot->is_over = true;
  pthread_cond_broadcast(&worker->changed);
  pthread_cond_signal(&worker->warden_looks);
  pthread_mutex_unlock(&worker->lock);
  return NULL;
}

bool
slot_start(struct worker *worker)
{
  struct slot *slot = malloc(sizeof(*slot));

  if (!slot)
    return false;
  if (!slot_begin(slot, worker)) {
    free(slot);
    return false;
  }
  if (pthread_create(&slot->thread, NULL, slot_main, slot) != 0) {
    slot_free(slot);
    free(slot);
    return false;
  }
  slot->next = worker->slots;
  worker->slots = slot;
  worker->n_slots++;
  return true;
}
