/* SPDX-License-Identifier: Apache-2.0 */
/* The poller: fetches as many activities as there are free slots, and hands them over.  It waits in
 * the store, and is called back when the worker drains or its cap is reached.  Locking: see
 * activity.h.
 */
#include "core/runtime/activity/activity.h"

#include "core/plugin/store.h"

enum { FIRST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 1000 };

/* ---- asking ---------------------------------------------------------------------------------- */

/* How many may be fetched now; waits for a free slot.  0: nothing any more.  A call-back that comes
 * from now on reaches the next fetch, and what is cancelled from now on may be what that brings. */
static uint32_t
wait_for_room(struct worker *worker)
{
  pthread_mutex_lock(&worker->lock);
  worker->is_fetching = false;
  errand_forget_early(worker);
  while (!worker->is_draining &&
         (worker_is_capped(worker) || worker->n_slots <= worker->n_errands)) {
    contact_rest(&worker->setup.journal->contact, &worker->fetching);
    pthread_cond_wait(&worker->changed, &worker->lock);
  }
  uint32_t room = worker->is_draining ? 0 : worker->n_slots - worker->n_errands;
  worker->is_fetching = room > 0;
  dk_canceller_reset(worker->fetch_canceller);
  pthread_mutex_unlock(&worker->lock);
  return room;
}

/* After a failure it does not wait for work: that the store is back is to be told at once. */
static dk_status
fetch(struct worker *worker, uint32_t room, bool has_failed, struct dk_works **ret_works)
{
  const struct dk_runtime_options *options = worker->setup.options;
  struct dk_store *store = worker->setup.store;
  struct dk_fetch_work request = {
    .struct_size = sizeof(request),
    .max_items = room,
    .lock_ms = options->activity_lock_ms,
    .wait_until = has_failed ? 0 : ticks_after(dk_store_now(store), options->poll_ms),
    .owner = dk_str_of(worker->setup.name),
    .tag_rule = options->tag_rule,
    .session_rule = options->session_rule,
    .tags = options->tags,
    .n_tags = options->n_tags,
    .session_lock_ms =
      options->session_rule == DK_SESSION_NONE ? 0 : options->session_lock_ms,
  };

  request.fetch_id = fetch_ids_next(&worker->fetch_ids);
  dk_caller_reset(worker->fetcher);
  contact_ask(&worker->setup.journal->contact, &worker->fetching, CONTACT_WORK,
              has_failed ? 0 : options->poll_ms);
  dk_status status = dk_store_fetch_work_item(store, worker->fetcher, &request, ret_works);
  lost_fetch_note(&worker->lost, request.fetch_id, status);
  return status;
}

/* What the last fetch has locked, if its answer was lost, is given back before the next. */
static dk_status
release_lost(struct worker *worker)
{
  if (worker->lost.id != 0)
    contact_ask(&worker->setup.journal->contact, &worker->fetching, CONTACT_WORK, 0);
  return lost_fetch_release(&worker->lost, worker->setup.store, worker->fetcher);
}

/* No fetch follows.  What calls the fetch back is not meant for this. */
static void
release_last(struct worker *worker)
{
  dk_caller_set_canceller(worker->fetcher, NULL);
  if (lost_fetch_is_near(&worker->lost))
    release_lost(worker);
}

/* ---- handing over ---------------------------------------------------------------------------- */

/* Nobody here can take it: given back as it was.  Without an answer its lease runs out. */
static void
return_item(struct worker *worker, const struct dk_work_item *item, const char *why)
{
  struct dk_log_event event = {
    .struct_size = sizeof(event),
    .number = DK_LOG_TEXT,
    .level = DK_LEVEL_INFO,
    .execution_id = item->item.execution_id,
    .activity_id = item->item.activity_id,
    .instance = item->item.instance,
    .token = item->work.lock_token,
  };
  /* What calls the fetch back is not meant for this. */
  dk_caller_set_canceller(worker->fetcher, NULL);
  dk_status status = dk_store_abandon_work_item(worker->setup.store, worker->fetcher,
                                                item->work.lock_token, 0, 1);
  dk_caller_set_canceller(worker->fetcher, worker->fetch_canceller);

  event.status = status;
  journal_count(worker->setup.journal, COUNT_ACTIVITIES_PUT_OFF);
  journal_tell(worker->setup.journal, &event, "given back: %s", why);
  pthread_mutex_lock(&worker->lock);
  if (worker->is_draining) {
    worker->leftover.activities++;
    worker->leftover.not_given_back += status != DK_OK && status != DK_LOCK_LOST;
  }
  pthread_mutex_unlock(&worker->lock);
}

/* Told before anybody runs it, with a reference; false: its row was there when it was last heard
 * of.  Under the lock. */
static bool
tell_early(struct errand *errand)
{
  int64_t since_ns;

  if (!errand_is_early(errand, &since_ns) ||
      !errand_signal(errand, DK_CAUSE_CANCELLED, DK_LEARNT_BY_COMMIT, since_ns))
    return false;
  errand->references++;
  return true;
}

static void
hand_over(struct worker *worker, const struct dk_work_item *item)
{
  struct errand *errand = errand_new(worker, item);
  bool is_told = false;

  if (!errand) {
    return_item(worker, item, "there is no memory to run it");
    return;
  }
  pthread_mutex_lock(&worker->lock);
  bool is_taken = !worker->is_draining;
  if (is_taken) {
    errand_add(errand);
    is_told = tell_early(errand);
  }
  pthread_mutex_unlock(&worker->lock);
  if (is_told) {
    errand_tell_signal(errand, DK_CAUSE_CANCELLED, DK_LEARNT_BY_COMMIT);
    errand_drop(errand);
  }
  if (is_taken)
    return;
  return_item(worker, item, "the runtime stops");
  errand_drop(errand);
}

/* ---- leases that are over -------------------------------------------------------------------- */

static void
tell_overdue(struct worker *worker, const struct dk_work_item *item)
{
  struct dk_log_event event = {
    .struct_size = sizeof(event),
    .number = DK_LOG_LEASE_LOST,
    .level = worker->is_late ? DK_LEVEL_TRACE : 0,
    .execution_id = item->item.execution_id,
    .activity_id = item->item.activity_id,
    .instance = item->item.instance,
    .token = item->work.lock_token,
  };

  journal_tell(worker->setup.journal, &event,
               "its lease of %lld ms was over before the store's answer came: it does not run, "
               "the attempt does not count, and it is fetched again; give a longer "
               "activity_lock_ms, or a faster store",
               (long long)worker->setup.options->activity_lock_ms);
}

/* The store has counted these attempts, and nobody has made them. */
static void
pardon_overdue(struct worker *worker)
{
  const struct dk_overdue *overdue = dk_caller_overdue(worker->fetcher);

  for (size_t i = 0; i < overdue->n_items; i++) {
    errand_pardon_item(worker, &overdue->items[i]);
    journal_count(worker->setup.journal, COUNT_ACTIVITIES_LOST);
    tell_overdue(worker, &overdue->items[i]);
    worker->is_late = true;
  }
}

/* ---- failures -------------------------------------------------------------------------------- */

static void
fetch_was_refused(struct worker *worker, dk_status status)
{
  const struct dk_log_event event = {.number = DK_LOG_STORE_AWAY, .status = status};
  const char *why = dk_caller_failure(worker->fetcher)->text;
  struct journal *journal = worker->setup.journal;

  if (contact_refused(&journal->contact, &worker->fetching, status, why))
    journal_tell(journal, &event, "activities cannot be fetched, it is tried until they can: %s",
                 why);
}

static void
fetch_was_good(struct worker *worker)
{
  struct dk_log_event event = {.number = DK_LOG_STORE_BACK};
  struct journal *journal = worker->setup.journal;

  if (contact_good(&journal->contact, &worker->fetching, &event.ms))
    journal_tell(journal, &event, "activities can be fetched again, after %lld ms",
                 (long long)event.ms);
}

static void
note_status(struct worker *worker, dk_status status)
{
  if (status == DK_OK || status == DK_NOTHING)
    fetch_was_good(worker);
  else
    fetch_was_refused(worker, status);
}

/* After a failure, longer each time; sooner if the worker drains. */
static void
pause_after(struct worker *worker, uint32_t failures)
{
  int64_t pause = (int64_t)FIRST_PAUSE_MS << (failures < 8 ? failures : 8);
  int64_t until = ticks_now() + (pause < LONGEST_PAUSE_MS ? pause : LONGEST_PAUSE_MS);

  pthread_mutex_lock(&worker->lock);
  while (!worker->is_draining && ticks_now() < until)
    ticks_cond_wait(&worker->changed, &worker->lock, until);
  pthread_mutex_unlock(&worker->lock);
}

/* ---- the thread ------------------------------------------------------------------------------ */

void *
poller_main(void *argument)
{
  struct worker *worker = argument;
  struct contact *contact = &worker->setup.journal->contact;
  uint32_t room, failures = 0;

  while ((room = wait_for_room(worker)) > 0) {
    struct dk_works *works = NULL;
    bool fails = contact_fails(contact, CONTACT_WORK);
    dk_status status = release_lost(worker);
    if (status == DK_OK)
      status = fetch(worker, room, failures > 0 || fails, &works);
    if (status != DK_OK && dk_cancelled(worker->fetch_canceller)) {
      contact_rest(contact, &worker->fetching); /* called back: that says nothing of the store */
      continue;
    }
    note_status(worker, status);
    if (status == DK_OK && dk_caller_overdue(worker->fetcher)->n_items == 0)
      worker->is_late = false;
    pardon_overdue(worker);
    for (size_t i = 0; status == DK_OK && i < works->n_items; i++)
      hand_over(worker, &works->items[i]);
    failures = status == DK_OK || status == DK_NOTHING ? 0 : failures + 1;
    if (failures > 0 || (status == DK_NOTHING && contact_fails(contact, CONTACT_WORK)))
      pause_after(worker, failures);
  }
  release_last(worker);
  contact_rest(contact, &worker->fetching);
  pthread_mutex_lock(&worker->lock);
  worker->is_poller_over = true;
  pthread_cond_broadcast(&worker->changed);
  pthread_mutex_unlock(&worker->lock);
  return NULL;
}
