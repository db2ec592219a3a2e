/* SPDX-License-Identifier: Apache-2.0 */
/* The turns: their seats and the watcher are started and stopped.  Locking: turn-loop.h. */
#include "core/runtime/turn/turn-pool.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/plugin/refusal.h"
#include "core/runtime/turn/turn-loop.h"

enum {
  LET_GO_ON_MS = 500,       /* at the end, before calls are called back */
  LEAVE_MS = 5000,          /* at the end, before a thread is left */
  MOST_REPLACED = 4096
};

/* ---- starting -------------------------------------------------------------------------------- */

static bool
offers(struct dk_store *store, const char *id)
{
  return dk_store_extension(store, id) != NULL;
}

/* Threads that are stuck are replaced up to this number. */
static uint32_t
most_replaced(const struct dk_runtime_options *options)
{
  return options->max_quarantined < MOST_REPLACED ? options->max_quarantined : MOST_REPLACED;
}

static bool
prepare(struct turns *turns, const struct turns_setup *setup)
{
  turns->w = (struct turning){
    .store = setup->store,
    .options = setup->options,
    .keeper = setup->keeper,
    .journal = setup->journal,
    .worker = setup->worker,
    .owner = dk_str_of(setup->name),
    .limits = *dk_library_provider(dk_store_library(setup->store))->limits,
    .has_kv = offers(setup->store, "durakit.kv/1"),
    .has_status = offers(setup->store, "durakit.status/1"),
    .has_sessions = offers(setup->store, "durakit.sessions/1"),
    .has_admin = offers(setup->store, "durakit.admin/1"),
    .cache = cache_new(setup->options->cache_bytes, CACHE_RUNS),
    .notes = notes_new(),
    .too_short = limits_new(),
    .parking = parking_start(setup->store),
  };
  fetch_ids_begin(&turns->fetch_ids, setup->store);
  turns->next_alarm = INT64_MAX;
  turns->most_seats = setup->options->orchestration_slots + most_replaced(setup->options);
  turns->seats = calloc(turns->most_seats, sizeof(struct seat *));
  pthread_mutex_init(&turns->lock, NULL);
  ticks_cond_init(&turns->idle);
  ticks_cond_init(&turns->changed);
  ticks_cond_init(&turns->watches);
  return turns->w.cache && turns->w.notes && turns->w.too_short && turns->w.parking &&
         turns->seats;
}

static void
discard(struct turns *turns)
{
  for (uint32_t i = 0; i < turns->n_seats; i++)
    seat_free(turns->seats[i]);
  free(turns->seats);
  parking_stop(turns->w.parking); /* with nothing in it, here */
  cache_free(turns->w.cache);
  notes_free(turns->w.notes);
  limits_free(turns->w.too_short);
  pthread_cond_destroy(&turns->watches);
  pthread_cond_destroy(&turns->changed);
  pthread_cond_destroy(&turns->idle);
  pthread_mutex_destroy(&turns->lock);
  free(turns);
}

static void
stop_watcher(struct turns *turns)
{
  pthread_mutex_lock(&turns->lock);
  turns->watcher_stops = true;
  pthread_cond_signal(&turns->watches);
  pthread_mutex_unlock(&turns->lock);
  pthread_join(turns->watcher, NULL);
}

static void
join_seats(struct turns *turns)
{
  for (uint32_t i = 0; i < turns->n_seats; i++) {
    struct seat *seat = turns->seats[i];
    if (seat->is_left)
      pthread_detach(seat->thread);
    else
      pthread_join(seat->thread, NULL);
  }
}

static bool
add_all_seats(struct turns *turns)
{
  bool all = true;

  pthread_mutex_lock(&turns->lock);
  while (all && turns->n_seats < turns->w.options->orchestration_slots)
    all = seat_add(turns);
  pthread_mutex_unlock(&turns->lock);
  return all;
}

static dk_status
refuse(struct dk_refusal *ret_refusal)
{
  dk_refusal_begin(ret_refusal, 0, "orchestration_slots", "the runtime cannot begin its threads");
  dk_refusal_say(ret_refusal->expected, "memory, threads and descriptors for its slots");
  dk_refusal_say(ret_refusal->next, "raise the limits of the process, or give fewer slots");
  return DK_NO_MEMORY;
}

dk_status
turns_start(const struct turns_setup *setup, struct turns **ret_turns,
            struct dk_refusal *ret_refusal)
{
  struct turns *turns = calloc(1, sizeof(*turns));

  if (!turns)
    return refuse(ret_refusal);
  if (!prepare(turns, setup) ||
      pthread_create(&turns->watcher, NULL, watcher_main, turns) != 0) {
    discard(turns);
    return refuse(ret_refusal);
  }
  if (!add_all_seats(turns)) {
    turns_stop_fetching(turns);
    stop_watcher(turns);
    join_seats(turns);
    discard(turns);
    return refuse(ret_refusal);
  }
  *ret_turns = turns;
  return DK_OK;
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void
wake_all(struct turns *turns)
{
  pthread_cond_broadcast(&turns->idle);
  for (uint32_t i = 0; i < turns->n_seats; i++)
    pthread_cond_broadcast(&turns->seats[i]->wake);
}

static void
call_back_all(struct turns *turns, enum seat_state state)
{
  for (uint32_t i = 0; i < turns->n_seats; i++)
    if (turns->seats[i]->state == state)
      dk_cancel(turns->seats[i]->canceller);
}

void
turns_stop_fetching(struct turns *turns)
{
  pthread_mutex_lock(&turns->lock);
  turns->is_stopping = true;
  call_back_all(turns, SEAT_FETCHES);
  wake_all(turns);
  pthread_mutex_unlock(&turns->lock);
}

/* Those that are stuck are not waited for. */
static uint32_t
n_busy(const struct turns *turns)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < turns->n_seats; i++)
    n += seat_is_busy(turns->seats[i]) && !turns->seats[i]->is_stuck;
  return n;
}

static void
wait_for_jobs(struct turns *turns, int64_t until)
{
  while (n_busy(turns) > 0 && ticks_now() < until)
    ticks_cond_wait(&turns->changed, &turns->lock, until);
}

bool
turns_drain(struct turns *turns, int64_t until)
{
  pthread_mutex_lock(&turns->lock);
  wait_for_jobs(turns, until);
  bool is_quiet = n_busy(turns) == 0 && turns->n_stuck == 0;
  pthread_mutex_unlock(&turns->lock);
  return is_quiet;
}

static void
leave_those_that_stay(struct turns *turns)
{
  turns->n_left = n_busy(turns) + turns->n_stuck;
  turns->is_over = turns->n_left > 0;
  for (uint32_t i = 0; i < turns->n_seats; i++) {
    struct seat *seat = turns->seats[i];
    seat->is_left = seat_is_busy(seat);
    if (seat->is_left && seat->job.lease)
      lease_rest(seat->job.lease);
  }
}

void
turns_end(struct turns *turns, struct dk_leftover *leftover)
{
  int64_t now = ticks_now();

  pthread_mutex_lock(&turns->lock);
  atomic_store(&turns->is_ending, true);
  wake_all(turns);
  wait_for_jobs(turns, ticks_after(now, LET_GO_ON_MS));
  call_back_all(turns, SEAT_CALLS);
  call_back_all(turns, SEAT_FETCHES);
  wait_for_jobs(turns, ticks_after(now, LEAVE_MS));
  leave_those_that_stay(turns);
  leftover->turns += turns->given_back + turns->n_left;
  leftover->quarantined += turns->n_left;
  leftover->not_given_back += turns->not_given_back + turns->n_left;
  pthread_mutex_unlock(&turns->lock);
}

bool
turns_free(struct turns *turns)
{
  bool nothing_hangs = parking_stop(turns->w.parking);

  turns->w.parking = NULL;
  stop_watcher(turns);
  pthread_mutex_lock(&turns->lock);
  bool is_over = turns->is_over;
  pthread_mutex_unlock(&turns->lock);
  join_seats(turns);
  if (is_over || !nothing_hangs)
    return false; /* and what they use stays */
  discard(turns);
  return true;
}

/* ---- health ---------------------------------------------------------------------------------- */

static const struct seat *
stuck_seat(const struct turns *turns)
{
  for (uint32_t i = 0; i < turns->n_seats; i++)
    if (turns->seats[i]->is_stuck)
      return turns->seats[i];
  return NULL;
}

bool
turns_healthy(struct turns *turns, char *reason, size_t size)
{
  pthread_mutex_lock(&turns->lock);
  const struct seat *stuck = stuck_seat(turns);
  bool is_healthy = !stuck;
  if (stuck)
    snprintf(reason, size, "%u turns do not come back, instance %.*s among them", turns->n_stuck,
             (int)stuck->instance.len, stuck->instance.ptr);
  pthread_mutex_unlock(&turns->lock);
  return is_healthy;
}

size_t
turns_delayed(struct turns *turns, enum stall *ret_why, char *room, size_t size)
{
  return notes_delayed(turns->w.notes, ticks_now(), ret_why, room, size);
}
