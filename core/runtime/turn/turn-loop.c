/* SPDX-License-Identifier: Apache-2.0 */
/* A seat's life: it fetches, works, and fetches again.
 *
 * One seat at a time waits for work in the store (the waiter); when a turn comes it leaves that to
 * another and does the job.  A seat that had work looks once more without waiting before it sits
 * down, so that under load all fetch at once, and an idle runtime has one call open.  Locking:
 * turn-loop.h. */
#include "core/runtime/turn/turn-loop.h"

#include <stdlib.h>

#include "core/plugin/store.h"

enum { FIRST_PAUSE_MS = 50, LONGEST_PAUSE_MS = 2000 };

/* ---- the store is away, and back ------------------------------------------------------------- */

static struct contact *
contact_of(const struct seat *seat)
{
  return &seat->turns->w.journal->contact;
}

static bool
is_stopping(struct turns *turns)
{
  pthread_mutex_lock(&turns->lock);
  bool is_stopping = turns->is_stopping;
  pthread_mutex_unlock(&turns->lock);
  return is_stopping;
}

static void
fetch_was_refused(struct seat *seat, dk_status status)
{
  const struct dk_log_event event = {.number = DK_LOG_STORE_AWAY, .status = status};
  const char *why = dk_caller_failure(seat->caller)->text;

  if (seat->failures < UINT32_MAX)
    seat->failures++;
  if (is_stopping(seat->turns)) /* it was called back, maybe */
    contact_rest(contact_of(seat), &seat->fetching);
  else if (contact_refused(contact_of(seat), &seat->fetching, status, why))
    journal_tell(seat->turns->w.journal, &event,
                 "turns cannot be fetched, it is tried until they can: %s", why);
}

static void
fetch_was_good(struct seat *seat)
{
  struct dk_log_event event = {.number = DK_LOG_STORE_BACK};

  seat->failures = 0;
  if (contact_good(contact_of(seat), &seat->fetching, &event.ms))
    journal_tell(seat->turns->w.journal, &event, "turns can be fetched again, after %lld ms",
                 (long long)event.ms);
}

/* ---- fetching -------------------------------------------------------------------------------- */

enum way { WAY_OUT, WAY_TO_WAIT, WAY_TO_LOOK };

static int64_t
longest_fetch(const struct turns *turns)
{
  return turns->w.options->poll_ms + turns->w.options->turn_lock_ms;
}

/* How the seat is to fetch; here it sits while another one waits.  After a failure it looks, for a
 * fetch that waits would not tell for long that the store is back. */
static enum way
next_way(struct seat *seat)
{
  struct turns *turns = seat->turns;
  enum way way = WAY_TO_WAIT;

  pthread_mutex_lock(&turns->lock);
  if ((seat->had_work && turns->waiter) || contact_fails(contact_of(seat), CONTACT_TURNS) ||
      seat->lost.id != 0)
    way = WAY_TO_LOOK;
  seat->state = SEAT_IDLE;
  pthread_cond_broadcast(&turns->changed);
  while (way == WAY_TO_WAIT && !turns->is_stopping && turns->waiter && turns->waiter != seat)
    pthread_cond_wait(&turns->idle, &turns->lock);
  bool is_spare = turns->n_alive - turns->n_stuck > turns->w.options->orchestration_slots;
  if (turns->is_stopping || is_spare)
    way = WAY_OUT;
  turns->n_alive -= way == WAY_OUT;
  if (way == WAY_TO_WAIT)
    turns->waiter = seat;
  if (way != WAY_OUT || lost_fetch_is_near(&seat->lost))
    seat_begin_call(seat, way == WAY_OUT ? SEAT_CALLS : SEAT_FETCHES,
                    ticks_after(ticks_now(), longest_fetch(turns)));
  pthread_mutex_unlock(&turns->lock);
  return way;
}

/* One of so many fetches that are to be different; two at once may both be. */
static bool
take_one(atomic_int *count)
{
  return atomic_load(count) > 0 && atomic_fetch_sub(count, 1) > 0;
}

static dk_status
fetch(struct seat *seat, enum way way, struct dk_turn **ret_turn)
{
  struct turning *w = &seat->turns->w;
  struct dk_fetch_turn request = {.struct_size = sizeof(request),
                                  .max_messages = w->options->max_messages,
                                  .lock_ms = w->options->turn_lock_ms,
                                  .owner = w->owner};

  if (way == WAY_TO_WAIT)
    request.wait_until = ticks_after(dk_store_now(w->store), w->options->poll_ms);
  if (take_one(&w->cold_fetches))
    request.owner = (dk_str){NULL, 0};
  seat->is_whole = take_one(&w->whole_fetches);
  if (seat->is_whole)
    request.max_messages = 0;
  request.fetch_id = fetch_ids_next(&seat->turns->fetch_ids);
  dk_caller_reset(seat->caller);
  contact_ask(contact_of(seat), &seat->fetching, CONTACT_TURNS,
              way == WAY_TO_WAIT ? w->options->poll_ms : 0);
  dk_status status = dk_store_fetch_orchestration_item(w->store, seat->caller, &request, ret_turn);
  lost_fetch_note(&seat->lost, request.fetch_id, status);
  return status;
}

/* What the last fetch has locked, if its answer was lost, is given back before the next. */
static dk_status
release_lost(struct seat *seat)
{
  if (seat->lost.id != 0)
    contact_ask(contact_of(seat), &seat->fetching, CONTACT_TURNS, 0);
  return lost_fetch_release(&seat->lost, seat->turns->w.store, seat->caller);
}

/* A turn that came too late: the store has counted the attempt, and nobody has made it. */
static void
pardon_overdue(struct seat *seat)
{
  const struct dk_turn *turn = dk_caller_overdue(seat->caller)->turn;
  uint32_t attempt = 0;

  if (!turn)
    return;
  for (size_t i = 0; i < turn->n_messages; i++)
    if (turn->messages[i].attempt > attempt)
      attempt = turn->messages[i].attempt;
  notes_pardon(seat->turns->w.notes, turn->head.instance, attempt);
  journal_count(seat->turns->w.journal, COUNT_TURNS_LOST);
}

/* Another one waits from now on. */
static void
hand_over(struct seat *seat)
{
  struct turns *turns = seat->turns;

  pthread_mutex_lock(&turns->lock);
  if (turns->waiter == seat) {
    turns->waiter = NULL;
    pthread_cond_signal(&turns->idle);
  }
  pthread_mutex_unlock(&turns->lock);
}

/* Longer after each failure. */
static void
pause_before_next(struct seat *seat)
{
  struct turns *turns = seat->turns;
  int64_t pause = FIRST_PAUSE_MS;

  for (uint32_t i = 0; i < seat->failures && pause < LONGEST_PAUSE_MS; i++)
    pause *= 2;
  int64_t until = ticks_after(ticks_now(), pause < LONGEST_PAUSE_MS ? pause : LONGEST_PAUSE_MS);
  pthread_mutex_lock(&turns->lock);
  while (!turns->is_stopping && ticks_now() < until)
    ticks_cond_wait(&seat->wake, &turns->lock, until);
  pthread_mutex_unlock(&turns->lock);
}

/* ---- a seat's life --------------------------------------------------------------------------- */

static void
do_job(struct seat *seat, const struct dk_turn *turn)
{
  struct job *job = &seat->job;
  struct dk_arena arena = job->arena;

  *job = (struct job){.w = &seat->turns->w,
                      .seat = seat,
                      .caller = seat->caller,
                      .arena = arena,
                      .is_whole = seat->is_whole,
                      .turn = turn};
  job_run(job);
  if (job->lease && !seat_is_left(seat))
    keeper_let_go(seat->turns->w.keeper, job->lease);
  job->lease = NULL;
  dk_arena_reset(&job->arena);
}

static void
fetch_and_work(struct seat *seat, enum way way)
{
  struct dk_turn *turn = NULL;
  dk_status status = release_lost(seat);

  if (status == DK_OK)
    status = fetch(seat, way, &turn);
  if (!seat_call_ends(seat))
    return;
  seat->had_work = status == DK_OK;
  if (status == DK_OK || status == DK_NOTHING)
    fetch_was_good(seat);
  else
    fetch_was_refused(seat, status);
  if (status == DK_OK) {
    hand_over(seat);
    do_job(seat, turn);
    return;
  }
  pardon_overdue(seat);
  if (contact_fails(contact_of(seat), CONTACT_TURNS))
    pause_before_next(seat);
}

void
seat_free(struct seat *seat)
{
  dk_arena_done(&seat->job.arena);
  dk_caller_free(seat->caller);
  dk_canceller_free(seat->canceller);
  pthread_cond_destroy(&seat->wake);
  free(seat);
}

/* Its place in the list is the next one's. */
static void
leave(struct seat *seat)
{
  struct turns *turns = seat->turns;

  contact_rest(contact_of(seat), &seat->fetching);
  pthread_mutex_lock(&turns->lock);
  if (turns->waiter == seat)
    turns->waiter = NULL;
  seat->state = SEAT_IS_GONE;
  pthread_cond_broadcast(&turns->changed);
  pthread_cond_broadcast(&turns->idle);
  pthread_mutex_unlock(&turns->lock);
}

static void *
seat_main(void *argument)
{
  struct seat *seat = argument;

  for (;;) {
    enum way way = next_way(seat);
    if (way == WAY_OUT)
      break;
    fetch_and_work(seat, way);
  }
  if (lost_fetch_is_near(&seat->lost)) { /* next_way has begun the call */
    release_lost(seat);
    seat_call_ends(seat);
  }
  leave(seat);
  return NULL;
}

static bool
prepare_seat(struct seat *seat, struct turns *turns)
{
  seat->turns = turns;
  seat->alarm = INT64_MAX;
  ticks_cond_init(&seat->wake);
  dk_arena_init(&seat->job.arena);
  seat->caller = dk_caller_new(NULL, 0);
  seat->canceller = dk_canceller_new(NULL);
  if (!seat->caller || !seat->canceller)
    return false;
  dk_caller_set_canceller(seat->caller, seat->canceller);
  return true;
}

/* Frees the seat of a thread that has ended, if there is one: its place is given away. */
static struct seat **
free_place(struct turns *turns)
{
  for (uint32_t i = 0; i < turns->n_seats; i++)
    if (turns->seats[i]->state == SEAT_IS_GONE) {
      pthread_join(turns->seats[i]->thread, NULL); /* it has left the lock, and returns */
      seat_free(turns->seats[i]);
      turns->seats[i] = turns->seats[--turns->n_seats];
      break;
    }
  return turns->n_seats < turns->most_seats ? &turns->seats[turns->n_seats] : NULL;
}

bool
seat_add(struct turns *turns)
{
  struct seat **place = free_place(turns);
  struct seat *seat = place ? calloc(1, sizeof(*seat)) : NULL;

  if (!seat)
    return false;
  if (!prepare_seat(seat, turns) ||
      pthread_create(&seat->thread, NULL, seat_main, seat) != 0) {
    seat_free(seat);
    return false;
  }
  *place = seat;
  turns->n_seats++;
  turns->n_alive++;
  return true;
}

