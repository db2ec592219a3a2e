/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: starts and stops its threads, and hears of commits.  Locking: see activity.h. */
#include "core/runtime/activity/activity.h"
#include "core/runtime/activity/zygote.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { GIVE_BACK_MS = 5000 };

/* ---- starting -------------------------------------------------------------------------------- */

static dk_status
refuse_sessions(const struct worker_setup *setup, struct dk_refusal *refusal)
{
  if (setup->options->session_rule == DK_SESSION_NONE ||
      dk_store_extension(setup->store, "durakit.sessions/1"))
    return DK_OK;
  *refusal = (struct dk_refusal){.where = "dk_runtime_options.session_rule",
                                 .what = "this provider has no sessions",
                                 .expected = "a provider with durakit.sessions/1",
                                 .found = "none such",
                                 .next = "leave session_rule DK_SESSION_NONE"};
  return DK_INVALID;
}

static dk_status
refuse_for_lack(struct dk_refusal *refusal, const char *of)
{
  *refusal = (struct dk_refusal){.where = "dk_runtime_start"};
  snprintf(refusal->what, sizeof(refusal->what), "there are no %s for the worker", of);
  snprintf(refusal->next, sizeof(refusal->next), "fewer slots, or higher limits (ulimit)");
  return DK_NO_MEMORY;
}

static struct worker *
new_worker(const struct worker_setup *setup)
{
  struct worker *worker = calloc(1, sizeof(*worker));

  if (!worker)
    return NULL;
  worker->setup = *setup;
  fetch_ids_begin(&worker->fetch_ids, setup->store);
  worker->notes = notes_new();
  worker->ready_end = &worker->ready;
  worker->end_at = INT64_MAX;
  pthread_mutex_init(&worker->lock, NULL);
  ticks_cond_init(&worker->has_ready);
  ticks_cond_init(&worker->changed);
  ticks_cond_init(&worker->warden_looks);
  worker->fetcher = dk_caller_new(NULL, 0);
  worker->fetch_canceller = dk_canceller_new(NULL);
  if (worker->fetcher)
    dk_caller_set_canceller(worker->fetcher, worker->fetch_canceller);
  slot_begin(&worker->own, worker);
  return worker;
}

static void
discard_worker(struct worker *worker)
{
  notes_free(worker->notes);
  errand_forget_early(worker);
  slot_free(&worker->own);
  dk_caller_free(worker->fetcher);
  dk_canceller_free(worker->fetch_canceller);
  pthread_cond_destroy(&worker->warden_looks);
  pthread_cond_destroy(&worker->changed);
  pthread_cond_destroy(&worker->has_ready);
  pthread_mutex_destroy(&worker->lock);
  free(worker);
}

static void
join_slots(struct worker *worker)
{
  while (worker->slots) {
    struct slot *slot = worker->slots;
    worker->slots = slot->next;
    pthread_join(slot->thread, NULL);
    slot_free(slot);
    free(slot);
  }
}

static void
say_over(struct worker *worker)
{
  pthread_mutex_lock(&worker->lock);
  worker->is_draining = worker->is_over = true;
  pthread_cond_broadcast(&worker->has_ready);
  pthread_cond_broadcast(&worker->changed);
  pthread_mutex_unlock(&worker->lock);
}

static void
end_warden(struct worker *worker)
{
  pthread_mutex_lock(&worker->lock);
  worker->is_warden_over = true;
  pthread_cond_broadcast(&worker->warden_looks);
  pthread_mutex_unlock(&worker->lock);
  pthread_join(worker->warden, NULL);
}

static bool
start_slots(struct worker *worker)
{
  bool has_all = true;

  pthread_mutex_lock(&worker->lock);
  while (has_all && worker->n_slots < worker->setup.options->activity_slots)
    has_all = slot_start(worker);
  pthread_mutex_unlock(&worker->lock);
  return has_all;
}

static bool
start_threads(struct worker *worker)
{
  if (!start_slots(worker) ||
      pthread_create(&worker->warden, NULL, warden_main, worker) != 0)
    return false;
  if (pthread_create(&worker->poller, NULL, poller_main, worker) == 0)
    return true;
  end_warden(worker);
  return false;
}

dk_status
worker_start(const struct worker_setup *setup, struct worker **ret_worker,
             struct dk_refusal *ret_refusal)
{
  dk_status status = refuse_sessions(setup, ret_refusal);

  if (status != DK_OK)
    return status;
  struct worker *worker = new_worker(setup);
  if (!worker)
    return refuse_for_lack(ret_refusal, "bytes");
  bool has_calls =
    worker->notes && worker->fetcher && worker->fetch_canceller && worker->own.caller;
  if (!has_calls || !start_threads(worker)) {
    say_over(worker);
    join_slots(worker);
    discard_worker(worker);
    return refuse_for_lack(ret_refusal, has_calls ? "threads" : "descriptors or bytes");
  }
  *ret_worker = worker;
  return DK_OK;
}

/* ---- commits --------------------------------------------------------------------------------- */

static bool
is_same(dk_str a, dk_str b)
{
  return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* The errand of that row, with a reference, told to end; NULL: it is somebody else's, or over, or
 * on its way here, and will be told then. */
static struct errand *
signal_owner(struct worker *worker, dk_str instance, const struct dk_stolen *stolen,
             int64_t since_ns)
{
  struct errand *found = NULL;

  pthread_mutex_lock(&worker->lock);
  for (struct errand *errand = worker->errands; errand && !found; errand = errand->next)
    if (errand->task.info.activity_id == stolen->activity_id &&
        errand->task.info.execution_id == stolen->execution_id &&
        is_same(errand->lock_token, stolen->lock_token) &&
        is_same(errand->task.info.instance, instance))
      found = errand;
  if (!found && worker->is_fetching && is_same(stolen->owner, dk_str_of(worker->setup.name)))
    errand_note_early(worker, stolen->lock_token, since_ns);
  if (found && errand_signal(found, DK_CAUSE_CANCELLED, DK_LEARNT_BY_COMMIT, since_ns))
    found->references++;
  else
    found = NULL;
  pthread_mutex_unlock(&worker->lock);
  return found;
}

void
worker_signal(struct worker *worker, dk_str instance, const struct dk_stolen *stolen,
              size_t n_stolen)
{
  int64_t since_ns = ticks_ns();

  for (size_t i = 0; i < n_stolen; i++) {
    struct errand *errand = signal_owner(worker, instance, &stolen[i], since_ns);
    if (!errand)
      continue;
    errand_tell_signal(errand, DK_CAUSE_CANCELLED, DK_LEARNT_BY_COMMIT);
    errand_drop(errand);
  }
}

/* ---- stopping -------------------------------------------------------------------------------- */

void
worker_stop_fetching(struct worker *worker)
{
  pthread_mutex_lock(&worker->lock);
  worker->is_draining = true;
  pthread_cond_broadcast(&worker->changed);
  pthread_mutex_unlock(&worker->lock);
  dk_cancel(worker->fetch_canceller);
}

static bool
is_idle(const struct worker *worker)
{
  return worker->is_poller_over && worker->n_errands == 0;
}

/* Under the lock. */
static bool
wait_until_idle(struct worker *worker, int64_t until)
{
  while (!is_idle(worker) && ticks_now() < until)
    ticks_cond_wait(&worker->changed, &worker->lock, until);
  return is_idle(worker);
}

bool
worker_drain(struct worker *worker, int64_t until)
{
  pthread_mutex_lock(&worker->lock);
  bool is_drained = wait_until_idle(worker, until);
  pthread_mutex_unlock(&worker->lock);
  return is_drained;
}

static bool
runs_body(const struct worker *worker)
{
  for (const struct errand *errand = worker->errands; errand; errand = errand->next)
    if (errand->state != ERRAND_ENDS)
      return true;
  return !worker->is_poller_over;
}

/* Waits for the bodies, and then, for a moment, until the store was told of their ends. */
static void
wait_for_ends(struct worker *worker)
{
  pthread_mutex_lock(&worker->lock);
  while (runs_body(worker) && ticks_now() < worker->end_at)
    ticks_cond_wait(&worker->changed, &worker->lock, worker->end_at);
  int64_t end = ticks_after(ticks_now(), GIVE_BACK_MS);
  if (end < worker->end_at)
    worker->end_at = end;
  pthread_cond_broadcast(&worker->changed);
  pthread_cond_signal(&worker->warden_looks);
  wait_until_idle(worker, worker->end_at);
  pthread_mutex_unlock(&worker->lock);
}

/* One that is not told yet, told, with a reference; NULL: all are told. */
static struct errand *
signal_next(struct worker *worker)
{
  struct errand *found = NULL;

  pthread_mutex_lock(&worker->lock);
  for (struct errand *errand = worker->errands; errand && !found; errand = errand->next)
    if (errand_signal(errand, DK_CAUSE_SHUTDOWN, DK_LEARNT_BY_STOP, 0))
      found = errand;
  if (found)
    found->references++;
  pthread_mutex_unlock(&worker->lock);
  return found;
}

/* From now on nothing lasts longer than the longest grace, and some time to give back. */
static void
set_end(struct worker *worker)
{
  int64_t longest = 0;

  pthread_mutex_lock(&worker->lock);
  for (const struct errand *errand = worker->errands; errand; errand = errand->next)
    if (errand->grace_ms > longest)
      longest = errand->grace_ms;
  worker->end_at = ticks_after(ticks_now(), ticks_after(longest, GIVE_BACK_MS));
  worker->is_ending = true;
  pthread_cond_broadcast(&worker->changed);
  pthread_cond_signal(&worker->warden_looks);
  pthread_mutex_unlock(&worker->lock);
}

static void
signal_all(struct worker *worker)
{
  struct errand *errand;

  while ((errand = signal_next(worker)) != NULL) {
    errand_tell_signal(errand, DK_CAUSE_SHUTDOWN, DK_LEARNT_BY_STOP);
    errand_drop(errand);
  }
}

static struct errand *
next_to_give_back(struct worker *worker)
{
  pthread_mutex_lock(&worker->lock);
  struct errand *errand = worker->to_give_back;
  if (errand)
    worker->to_give_back = errand->next;
  pthread_mutex_unlock(&worker->lock);
  return errand;
}

static void
free_lease(struct errand *errand)
{
  struct lease *lease = errand->lease;

  errand->lease = NULL;
  keeper_let_go(errand->worker->setup.keeper, lease);
}

/* What is in quarantine since the stop: its body runs on, but somebody else may have it. */
static void
give_back_quarantined(struct worker *worker)
{
  struct errand *errand;

  while ((errand = next_to_give_back(worker)) != NULL) {
    lease_rest(errand->lease);
    bool is_given_back = errand_give_back(&worker->own, errand, 0, false);
    free_lease(errand);
    pthread_mutex_lock(&worker->lock);
    worker->leftover.activities++;
    worker->leftover.not_given_back += !is_given_back;
    pthread_mutex_unlock(&worker->lock);
    errand_drop(errand);
  }
}

static uint32_t
n_not_over(const struct worker *worker)
{
  uint32_t n = 0;

  for (const struct slot *slot = worker->slots; slot; slot = slot->next)
    n += !slot->is_over;
  return n;
}

/* Waits for the threads but those in quarantine.  Who does not come back from the store, although
 * called back, is left like those. */
static void
end_threads(struct worker *worker)
{
  int64_t until = ticks_after(ticks_now(), GIVE_BACK_MS);

  say_over(worker);
  pthread_mutex_lock(&worker->lock);
  while ((n_not_over(worker) > worker->n_quarantined || !worker->is_poller_over) &&
         ticks_now() < until)
    ticks_cond_wait(&worker->changed, &worker->lock, until);
  pthread_mutex_unlock(&worker->lock);
  end_warden(worker);
}

static void
add_leftover(struct worker *worker, struct dk_leftover *leftover)
{
  pthread_mutex_lock(&worker->lock);
  uint32_t stuck = worker->n_errands; /* their threads do not come back from the store */
  leftover->activities += worker->leftover.activities + stuck;
  leftover->not_given_back += worker->leftover.not_given_back + stuck;
  leftover->quarantined += n_not_over(worker);
  pthread_mutex_unlock(&worker->lock);
}

void
worker_end(struct worker *worker, struct dk_leftover *leftover)
{
  set_end(worker);
  signal_all(worker);
  wait_for_ends(worker);
  give_back_quarantined(worker);
  end_threads(worker);
  add_leftover(worker, leftover);
}

bool
worker_free(struct worker *worker)
{
  pthread_mutex_lock(&worker->lock);
  bool is_over = worker->is_poller_over && n_not_over(worker) == 0;
  pthread_mutex_unlock(&worker->lock);
  if (!is_over)
    return false;
  pthread_join(worker->poller, NULL);
  join_slots(worker);
  discard_worker(worker);
  return true;
}

bool
worker_healthy(struct worker *worker, char *reason, size_t size)
{
  const struct dk_zygote *zygote = worker->setup.options->zygote;
  bool is_childless = zygote && zygote_is_dead(zygote);

  pthread_mutex_lock(&worker->lock);
  bool is_capped = worker_is_capped(worker);
  uint32_t n = worker->n_quarantined;
  pthread_mutex_unlock(&worker->lock);
  if (is_capped)
    snprintf(reason, size, "cap reached: %u threads of activities do not come back", n);
  else if (is_childless)
    snprintf(reason, size, "the zygote is dead: activities in processes are delayed; restart");
  return !is_capped && !is_childless;
}

size_t
worker_delayed(struct worker *worker, enum stall *ret_why, char *room, size_t size)
{
  return notes_delayed(worker->notes, ticks_now(), ret_why, room, size);
}
