/* SPDX-License-Identifier: Apache-2.0 */
/* The activity pool: starts and stops its threads, and is notified of commits.  Locking: see
 * activity.h. */
#include "core/runtime/activity/activity.h"
#include "core/runtime/activity/zygote.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/bytes.h"

enum { GIVE_BACK_MS = 5000 };

/* ---- starting -------------------------------------------------------------------------------- */

static dk_status
refuse_sessions(const struct activity_pool_setup *setup, struct dk_refusal *refusal)
{
  if (setup->options->session_rule == DK_SESSION_NONE ||
      dk_store_extension(setup->store, "durakit.sessions/1"))
    return DK_OK;
  *refusal = (struct dk_refusal){.where = "dk_runtime_options.session_rule",
                                 .what = "the store has no sessions",
                                 .expected = "a provider with durakit.sessions/1",
                                 .found = "a provider without it",
                                 .next = "leave session_rule out, or open a store that has them"};
  return DK_INVALID;
}

static dk_status
refuse_for_lack(struct dk_refusal *refusal, const char *of)
{
  *refusal = (struct dk_refusal){.where = "dk_runtime_start"};
  snprintf(refusal->what, sizeof(refusal->what), "the activity slots cannot start: not enough %s",
           of);
  snprintf(refusal->next, sizeof(refusal->next), "use fewer slots, or raise the limits (ulimit)");
  return DK_NO_MEMORY;
}

static struct activity_pool *
new_worker(const struct activity_pool_setup *setup)
{
  struct activity_pool *pool = calloc(1, sizeof(*pool));

  if (!pool)
    return NULL;
  pool->setup = *setup;
  fetch_ids_begin(&pool->fetch_ids, setup->store);
  pool->retries = retry_counts_new();
  pool->ready_end = &pool->ready;
  pool->end_at = INT64_MAX;
  dk_lock_init(&pool->lock);
  ticks_cond_init(&pool->has_ready);
  ticks_cond_init(&pool->changed);
  ticks_cond_init(&pool->deadlines_changed);
  pool->fetcher = dk_caller_new(NULL, 0);
  pool->fetch_canceller = dk_canceller_new(NULL);
  if (pool->fetcher)
    dk_caller_set_canceller(pool->fetcher, pool->fetch_canceller);
  slot_begin(&pool->own, pool);
  return pool;
}

static void
discard_worker(struct activity_pool *pool)
{
  assert(!pool->slots && !pool->activities); /* 3, 8: all were joined and freed */
  retry_counts_free(pool->retries);
  activity_forget_early(pool);
  slot_free(&pool->own);
  dk_caller_free(pool->fetcher);
  dk_canceller_free(pool->fetch_canceller);
  pthread_cond_destroy(&pool->deadlines_changed);
  pthread_cond_destroy(&pool->changed);
  pthread_cond_destroy(&pool->has_ready);
  dk_lock_done(&pool->lock);
  free(pool);
}

static void
join_slots(struct activity_pool *pool)
{
  while (pool->slots) {
    struct slot *slot = pool->slots;
    pool->slots = slot->next;
    pthread_join(slot->thread, NULL);
    slot_free(slot);
    free(slot);
  }
}

static void
signal_over(struct activity_pool *pool)
{
  dk_lock(&pool->lock);
  pool->is_draining = pool->is_over = true;
  pthread_cond_broadcast(&pool->has_ready);
  pthread_cond_broadcast(&pool->changed);
  dk_unlock(&pool->lock);
}

static void
end_deadlines(struct activity_pool *pool)
{
  dk_lock(&pool->lock);
  pool->is_deadlines_over = true;
  pthread_cond_broadcast(&pool->deadlines_changed);
  dk_unlock(&pool->lock);
  pthread_join(pool->deadlines_thread, NULL);
}

static bool
start_slots(struct activity_pool *pool)
{
  bool has_all = true;

  dk_lock(&pool->lock);
  while (has_all && pool->n_slots < pool->setup.options->activity_slots)
    has_all = slot_start(pool);
  dk_unlock(&pool->lock);
  return has_all;
}

static bool
start_threads(struct activity_pool *pool)
{
  if (!start_slots(pool) ||
      pthread_create(&pool->deadlines_thread, NULL, activity_deadlines_main, pool) != 0)
    return false;
  if (pthread_create(&pool->poller, NULL, activity_fetch_main, pool) == 0)
    return true;
  end_deadlines(pool);
  return false;
}

dk_status
activity_pool_start(const struct activity_pool_setup *setup, struct activity_pool **ret_pool,
                    struct dk_refusal *ret_refusal)
{
  dk_status status = refuse_sessions(setup, ret_refusal);

  if (status != DK_OK)
    return status;
  struct activity_pool *pool = new_worker(setup);
  if (!pool)
    return refuse_for_lack(ret_refusal, "memory");
  bool has_calls = pool->retries && pool->fetcher && pool->fetch_canceller && pool->own.caller;
  if (!has_calls || !start_threads(pool)) {
    signal_over(pool);
    join_slots(pool);
    discard_worker(pool);
    return refuse_for_lack(ret_refusal, has_calls ? "threads" : "descriptors or memory");
  }
  *ret_pool = pool;
  return DK_OK;
}

/* ---- commits --------------------------------------------------------------------------------- */

/* Signals the activity of that row to end, and returns it with a reference; NULL: it belongs to
 * another worker, has ended, or is still being fetched and will be signalled when it arrives. */
static struct activity *
signal_owner(struct activity_pool *pool, dk_str instance, const struct dk_stolen *stolen,
             int64_t since_ns)
{
  struct activity *found = NULL;

  dk_lock(&pool->lock);
  for (struct activity *activity = pool->activities; activity && !found; activity = activity->next)
    if (activity->task.info.activity_id == stolen->activity_id &&
        activity->task.info.execution_id == stolen->execution_id &&
        str_equal(activity->lock_token, stolen->lock_token) &&
        str_equal(activity->task.info.instance, instance))
      found = activity;
  if (!found && pool->is_fetching && str_equal(stolen->owner, dk_str_of(pool->setup.name)))
    activity_note_early(pool, stolen->lock_token, since_ns);
  if (found && activity_signal(found, DK_CAUSE_CANCELLED, DK_LEARNT_BY_COMMIT, since_ns))
    found->references++;
  else
    found = NULL;
  dk_unlock(&pool->lock);
  return found;
}

void
activity_pool_signal(struct activity_pool *pool, dk_str instance, const struct dk_stolen *stolen,
                     size_t n_stolen)
{
  int64_t since_ns = ticks_ns();

  for (size_t i = 0; i < n_stolen; i++) {
    struct activity *activity = signal_owner(pool, instance, &stolen[i], since_ns);
    if (!activity)
      continue;
    activity_log_signal(activity, DK_CAUSE_CANCELLED, DK_LEARNT_BY_COMMIT);
    activity_drop(activity);
  }
}

/* ---- stopping -------------------------------------------------------------------------------- */

void
activity_pool_stop_fetching(struct activity_pool *pool)
{
  dk_lock(&pool->lock);
  pool->is_draining = true;
  pthread_cond_broadcast(&pool->changed);
  dk_unlock(&pool->lock);
  dk_cancel(pool->fetch_canceller);
}

static bool
is_idle(const struct activity_pool *pool)
{
  assert(dk_lock_is_held(&pool->lock)); /* 1 */
  return pool->is_poller_over && pool->n_activities == 0;
}

/* Under the lock. */
static bool
wait_until_idle(struct activity_pool *pool, int64_t until)
{
  while (!is_idle(pool) && ticks_now() < until)
    ticks_cond_wait(&pool->changed, &pool->lock, until);
  return is_idle(pool);
}

bool
activity_pool_drain(struct activity_pool *pool, int64_t until)
{
  dk_lock(&pool->lock);
  bool is_drained = wait_until_idle(pool, until);
  dk_unlock(&pool->lock);
  return is_drained;
}

static bool
runs_body(const struct activity_pool *pool)
{
  assert(dk_lock_is_held(&pool->lock)); /* 1 */
  for (const struct activity *activity = pool->activities; activity; activity = activity->next)
    if (activity->state != ACTIVITY_ENDS)
      return true;
  return !pool->is_poller_over;
}

/* Waits for the bodies, and then, for a short time, until their ends are stored. */
static void
wait_for_ends(struct activity_pool *pool)
{
  dk_lock(&pool->lock);
  while (runs_body(pool) && ticks_now() < pool->end_at)
    ticks_cond_wait(&pool->changed, &pool->lock, pool->end_at);
  int64_t end = ticks_after(ticks_now(), GIVE_BACK_MS);
  if (end < pool->end_at)
    pool->end_at = end;
  pthread_cond_broadcast(&pool->changed);
  pthread_cond_signal(&pool->deadlines_changed);
  wait_until_idle(pool, pool->end_at);
  dk_unlock(&pool->lock);
}

/* Signals one that is not signalled yet, and returns it with a reference; NULL: all are
 * signalled. */
static struct activity *
signal_next(struct activity_pool *pool)
{
  struct activity *found = NULL;

  dk_lock(&pool->lock);
  for (struct activity *activity = pool->activities; activity && !found; activity = activity->next)
    if (activity_signal(activity, DK_CAUSE_SHUTDOWN, DK_LEARNT_BY_STOP, 0))
      found = activity;
  if (found)
    found->references++;
  dk_unlock(&pool->lock);
  return found;
}

/* From now on nothing may last longer than the longest grace and some time to give back. */
static void
set_end(struct activity_pool *pool)
{
  int64_t longest = 0;

  dk_lock(&pool->lock);
  for (const struct activity *activity = pool->activities; activity; activity = activity->next)
    if (activity->grace_ms > longest)
      longest = activity->grace_ms;
  pool->end_at = ticks_after(ticks_now(), ticks_after(longest, GIVE_BACK_MS));
  pool->is_ending = true;
  pthread_cond_broadcast(&pool->changed);
  pthread_cond_signal(&pool->deadlines_changed);
  dk_unlock(&pool->lock);
}

static void
signal_all(struct activity_pool *pool)
{
  struct activity *activity;

  while ((activity = signal_next(pool)) != NULL) {
    activity_log_signal(activity, DK_CAUSE_SHUTDOWN, DK_LEARNT_BY_STOP);
    activity_drop(activity);
  }
}

static struct activity *
next_to_give_back(struct activity_pool *pool)
{
  dk_lock(&pool->lock);
  struct activity *activity = pool->to_give_back;
  assert(!activity || activity->state == ACTIVITY_QUARANTINED);
  if (activity)
    pool->to_give_back = activity->next;
  dk_unlock(&pool->lock);
  return activity;
}

static void
free_lease(struct activity *activity)
{
  struct lease *lease = activity->lease;

  activity->lease = NULL;
  leases_let_go(activity->pool->setup.leases, lease);
}

/* Gives back what went into quarantine since the stop: the body still runs, but another worker may
 * have the activity. */
static void
give_back_quarantined(struct activity_pool *pool)
{
  struct activity *activity;

  while ((activity = next_to_give_back(pool)) != NULL) {
    lease_rest(activity->lease);
    bool is_given_back = activity_give_back(&pool->own, activity, 0, false);
    free_lease(activity);
    dk_lock(&pool->lock);
    pool->leftover.activities++;
    pool->leftover.not_given_back += !is_given_back;
    dk_unlock(&pool->lock);
    activity_drop(activity);
  }
}

static uint32_t
n_not_over(const struct activity_pool *pool)
{
  uint32_t n = 0;

  assert(dk_lock_is_held(&pool->lock)); /* 1 */
  for (const struct slot *slot = pool->slots; slot; slot = slot->next)
    n += !slot->is_over;
  return n;
}

/* Waits for the threads except those in quarantine.  A thread whose call of the store does not
 * return although it was cancelled is abandoned in the same way. */
static void
end_threads(struct activity_pool *pool)
{
  int64_t until = ticks_after(ticks_now(), GIVE_BACK_MS);

  signal_over(pool);
  dk_lock(&pool->lock);
  while ((n_not_over(pool) > pool->n_quarantined || !pool->is_poller_over) && ticks_now() < until)
    ticks_cond_wait(&pool->changed, &pool->lock, until);
  dk_unlock(&pool->lock);
  end_deadlines(pool);
}

static void
add_leftover(struct activity_pool *pool, struct dk_leftover *leftover)
{
  dk_lock(&pool->lock);
  uint32_t stuck = pool->n_activities; /* their threads do not return from the store */
  leftover->activities += pool->leftover.activities + stuck;
  leftover->not_given_back += pool->leftover.not_given_back + stuck;
  leftover->quarantined += n_not_over(pool);
  dk_unlock(&pool->lock);
}

void
activity_pool_end(struct activity_pool *pool, struct dk_leftover *leftover)
{
  set_end(pool);
  signal_all(pool);
  wait_for_ends(pool);
  give_back_quarantined(pool);
  end_threads(pool);
  add_leftover(pool, leftover);
}

bool
activity_pool_free(struct activity_pool *pool)
{
  dk_lock(&pool->lock);
  bool is_over = pool->is_poller_over && n_not_over(pool) == 0;
  dk_unlock(&pool->lock);
  if (!is_over)
    return false;
  pthread_join(pool->poller, NULL);
  join_slots(pool);
  discard_worker(pool);
  return true;
}

bool
activity_pool_is_well(struct activity_pool *pool, char *reason, size_t size)
{
  const struct dk_zygote *zygote = pool->setup.options->zygote;
  bool is_childless = zygote && zygote_is_dead(zygote);

  dk_lock(&pool->lock);
  bool is_capped = activity_pool_is_capped(pool);
  uint32_t n = pool->n_quarantined;
  dk_unlock(&pool->lock);
  if (is_capped)
    snprintf(reason, size, "max_quarantined is reached: %u threads of activities do not return", n);
  else if (is_childless)
    snprintf(reason, size, "the zygote has ended, and activities in processes are delayed: "
                           "restart this process");
  return !is_capped && !is_childless;
}

size_t
activity_pool_delayed(struct activity_pool *pool, enum delay *ret_why, char *room, size_t size)
{
  return retry_counts_delayed(pool->retries, ticks_now(), ret_why, room, size);
}
