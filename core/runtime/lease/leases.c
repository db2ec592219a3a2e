/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: see leases.h.
 *
 * One thread is the clock: it looks at each lease when that is due, hands those that are to be
 * renewed to the renewers, calls back renewals that hang, and sees to the deadlines.  The renewers
 * call the store, one lease each; as many are made as are needed at once, up to MOST_RENEWERS.
 *
 * Locking: `lock` guards all but what is said otherwise.  Neither the store nor `lost` nor the log
 * is called under it; the contact, which has a lock of its own, is.  A lease belongs to the keeper
 * from keeper_keep to keeper_let_go; one whose renewal is under way at that moment is freed by its
 * renewer. */
#include "core/runtime/lease/leases.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/runtime/lease/heap.h"

enum { MOST_RENEWERS = 16, LEAST_RETRY_MS = 50, LEAST_HANG_MS = 250, PATIENCE_MS = 5000 };

enum lease_state {
  LEASE_WAITS,    /* for its time to be renewed */
  LEASE_IS_READY, /* in the list for the renewers */
  LEASE_RENEWS,   /* a renewer has it */
  LEASE_RESTS,    /* not renewed any more */
  LEASE_IS_LOST
};

struct renewer;
struct lease {
  struct due due;             /* first: what the heap has is the lease */
  struct keeper *keeper;
  struct lease_terms terms;   /* its texts stand behind the struct */
  enum lease_state state;
  int64_t deadline, renew_at;
  int64_t good_at;            /* lock_ms before the deadline; stays when it is lost */
  struct renewer *renewer;    /* that has it; a lease that rests may have one, too */
  uint32_t retries;           /* since the last DK_OK */
  struct asker renews;        /* rests unless the lease is kept */
  uint32_t pins;              /* of who tells of it just now, without the lock */
  bool is_let_go;
  struct lease *next;         /* in the list of those that are ready */
};

struct renewer {
  struct keeper *keeper;
  pthread_t thread;
  struct dk_caller *caller;
  struct dk_canceller *canceller;
  int64_t call_back_at;
  bool is_called_back;        /* the clock is at it: the renewer waits with the next one */
};

struct keeper {
  struct dk_store *store;
  struct journal *journal;
  pthread_mutex_t lock;
  pthread_cond_t clock_looks; /* the heap has changed */
  pthread_cond_t is_ready;    /* a lease is ready, or it is the end */
  pthread_cond_t has_changed; /* nobody tells of a lease any more, something is over */
  bool is_stopping;
  bool is_left;               /* the last renewer frees all */
  pthread_t clock;
  struct heap heap;
  size_t n_leases;            /* kept and not freed */
  struct lease *ready, **ready_end;
  uint32_t n_ready, n_idle, n_renewers, n_over;
  struct renewer renewers[MOST_RENEWERS];
};

/* ---- what a lease is told about -------------------------------------------------------------- */

static struct dk_log_event
event_of(const struct lease *lease, int32_t number)
{
  return (struct dk_log_event){
    .struct_size = sizeof(struct dk_log_event),
    .number = number,
    .execution_id = lease->terms.execution_id,
    .activity_id = lease->terms.activity_id,
    .instance = lease->terms.instance,
    .activity = lease->terms.activity,
    .orchestration = lease->terms.orchestration,
    .token = lease->terms.token,
  };
}

/* A row of retries is told once, for all leases together, and once when it is over. */
static void
tell_retry(const struct lease *lease, bool is_news, dk_status status, const char *why)
{
  struct journal *journal = lease->keeper->journal;
  struct dk_log_event event = event_of(lease, DK_LOG_RENEWAL_RETRIED);

  journal_count(journal, COUNT_RENEWALS_RETRIED);
  event.status = status;
  if (!is_news)
    event.level = DK_LEVEL_TRACE;
  journal_tell(journal, &event, "its lease could not be renewed, and it is tried again: %s", why);
}

static void
tell_renewed(const struct lease *lease, bool is_news, uint32_t retries)
{
  struct journal *journal = lease->keeper->journal;
  struct dk_log_event event = event_of(lease, DK_LOG_RENEWED);

  journal_count(journal, COUNT_RENEWALS);
  if (retries == 0 && !is_news) {
    journal_tell(journal, &event, "its lease is renewed");
    return;
  }
  if (is_news)
    event.level = DK_LEVEL_INFO;
  journal_tell(journal, &event, "its lease is renewed, after %u attempts that failed", retries);
}

/* ---- leases, under the lock ------------------------------------------------------------------ */

static void
look_at(struct lease *lease, int64_t at)
{
  struct keeper *keeper = lease->keeper;

  heap_set(&keeper->heap, &lease->due, at);
  if (heap_top(&keeper->heap) == &lease->due)
    pthread_cond_signal(&keeper->clock_looks);
}

static int64_t
sooner(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static void
begin_to_wait(struct lease *lease, int64_t renew_at)
{
  lease->state = LEASE_WAITS;
  lease->renew_at = renew_at;
  look_at(lease, sooner(renew_at, lease->deadline));
}

static void
add_ready(struct keeper *keeper, struct lease *lease)
{
  lease->state = LEASE_IS_READY;
  lease->next = NULL;
  *keeper->ready_end = lease;
  keeper->ready_end = &lease->next;
  keeper->n_ready++;
  look_at(lease, lease->deadline);
}

static void
remove_ready(struct keeper *keeper, struct lease *lease)
{
  struct lease **at = &keeper->ready;

  if (lease->state != LEASE_IS_READY)
    return;
  while (*at != lease)
    at = &(*at)->next;
  *at = lease->next;
  if (!*at)
    keeper->ready_end = at;
  keeper->n_ready--;
}

static void
free_lease(struct lease *lease)
{
  heap_remove(&lease->keeper->heap, &lease->due);
  lease->keeper->n_leases--;
  free(lease);
}

/* Between the two the lock is open, and the lease stays. */
static void
begin_to_tell(struct lease *lease)
{
  lease->pins++;
  pthread_mutex_unlock(&lease->keeper->lock);
}

static void
end_telling(struct lease *lease)
{
  pthread_mutex_lock(&lease->keeper->lock);
  lease->pins--;
  pthread_cond_broadcast(&lease->keeper->has_changed);
}

/* Tells the owner.  The clock goes on looking at a renewal that is still under way. */
static void
lose(struct lease *lease, enum loss loss, int64_t call_back_at)
{
  struct keeper *keeper = lease->keeper;

  remove_ready(keeper, lease);
  contact_rest(&keeper->journal->contact, &lease->renews);
  lease->state = LEASE_IS_LOST;
  lease->deadline = 0;
  if (lease->renewer)
    look_at(lease, call_back_at);
  else
    heap_remove(&keeper->heap, &lease->due);
  begin_to_tell(lease);
  journal_count(keeper->journal, COUNT_RENEWALS_LOST);
  lease->terms.lost(lease->terms.context, loss);
  end_telling(lease);
}

/* ---- renewers -------------------------------------------------------------------------------- */

static dk_status
call_store(struct renewer *renewer, const struct lease *lease)
{
  struct dk_store *store = renewer->keeper->store;
  const struct lease_terms *terms = &lease->terms;

  if (terms->kind == LEASE_TURN)
    return dk_store_renew_orchestration_item_lock(store, renewer->caller, terms->token,
                                                  terms->lock_ms);
  return dk_store_renew_work_item_lock(store, renewer->caller, terms->token, terms->lock_ms);
}

/* The answer to a renewal, in a lease that is still to be kept. */
static void
take_answer(struct lease *lease, dk_status status, const char *why)
{
  int64_t now = ticks_now();
  int64_t pause = (lease->deadline - now) / 5;
  uint32_t retries = lease->retries;

  if (status == DK_LOCK_LOST) {
    lose(lease, now < lease->deadline ? LOSS_REFUSED : LOSS_DEADLINE, 0);
    return;
  }
  struct contact *contact = &lease->keeper->journal->contact;
  bool is_news;
  if (status == DK_OK) {
    is_news = contact_good(contact, &lease->renews, NULL);
    lease->retries = 0;
    begin_to_wait(lease, lease->deadline - lease->terms.buffer_ms);
  } else {
    is_news = contact_refused(contact, &lease->renews, status, why);
    lease->retries++;
    begin_to_wait(lease, now + (pause > LEAST_RETRY_MS ? pause : LEAST_RETRY_MS));
  }
  begin_to_tell(lease);
  if (status == DK_OK)
    tell_renewed(lease, is_news, retries);
  else
    tell_retry(lease, is_news, status, why);
  end_telling(lease);
}

static int64_t
longest_renewal(const struct lease *lease)
{
  int64_t quarter = lease->terms.lock_ms / 4;

  return quarter > LEAST_HANG_MS ? quarter : LEAST_HANG_MS;
}

static void
renew(struct renewer *renewer, struct lease *lease)
{
  struct keeper *keeper = renewer->keeper;
  int64_t began = ticks_now();

  lease->state = LEASE_RENEWS;
  lease->renewer = renewer;
  contact_ask(&keeper->journal->contact, &lease->renews, CONTACT_RENEWALS, 0);
  renewer->call_back_at = began + longest_renewal(lease);
  look_at(lease, sooner(renewer->call_back_at, lease->deadline));
  dk_canceller_reset(renewer->canceller);
  pthread_mutex_unlock(&keeper->lock);
  dk_caller_reset(renewer->caller);
  dk_status status = call_store(renewer, lease);
  pthread_mutex_lock(&keeper->lock);
  while (renewer->is_called_back)
    pthread_cond_wait(&keeper->has_changed, &keeper->lock);
  lease->renewer = NULL;
  if (status == DK_OK && lease->state != LEASE_IS_LOST) {
    lease->deadline = began + lease->terms.lock_ms;
    lease->good_at = began;
  }
  if (lease->is_let_go)
    free_lease(lease);
  else if (lease->state == LEASE_RENEWS)
    take_answer(lease, status, dk_caller_failure(renewer->caller)->text);
  else
    heap_remove(&keeper->heap, &lease->due);
}

static void
discard_renewer(struct renewer *renewer)
{
  dk_caller_free(renewer->caller);
  dk_canceller_free(renewer->canceller);
}

static void
discard_keeper(struct keeper *keeper)
{
  for (uint32_t i = 0; i < keeper->n_renewers; i++)
    discard_renewer(&keeper->renewers[i]);
  heap_done(&keeper->heap);
  pthread_cond_destroy(&keeper->has_changed);
  pthread_cond_destroy(&keeper->is_ready);
  pthread_cond_destroy(&keeper->clock_looks);
  pthread_mutex_destroy(&keeper->lock);
  free(keeper);
}

/* Under the lock, which is open when this returns. */
static void
end_renewer(struct keeper *keeper)
{
  bool is_last = ++keeper->n_over == keeper->n_renewers && keeper->is_left;

  pthread_cond_broadcast(&keeper->has_changed);
  pthread_mutex_unlock(&keeper->lock);
  if (is_last)
    discard_keeper(keeper);
}

static void *
renewer_main(void *argument)
{
  struct renewer *renewer = argument;
  struct keeper *keeper = renewer->keeper;

  pthread_mutex_lock(&keeper->lock);
  while (!keeper->is_stopping) {
    struct lease *lease = keeper->ready;
    if (lease) {
      remove_ready(keeper, lease);
      renew(renewer, lease);
      continue;
    }
    keeper->n_idle++;
    pthread_cond_wait(&keeper->is_ready, &keeper->lock);
    keeper->n_idle--;
  }
  end_renewer(keeper);
  return NULL;
}

/* One more; without memory or threads those that are there have to do. */
static bool
add_renewer(struct keeper *keeper)
{
  struct renewer *renewer = &keeper->renewers[keeper->n_renewers];

  *renewer = (struct renewer){
    .keeper = keeper,
    .caller = dk_caller_new(NULL, 0),
    .canceller = dk_canceller_new(NULL),
  };
  if (renewer->caller)
    dk_caller_set_canceller(renewer->caller, renewer->canceller);
  if (!renewer->caller || !renewer->canceller ||
      pthread_create(&renewer->thread, NULL, renewer_main, renewer) != 0) {
    discard_renewer(renewer);
    return false;
  }
  keeper->n_renewers++;
  return true;
}

/* ---- the clock ------------------------------------------------------------------------------- */

static void
call_back(struct renewer *renewer)
{
  struct keeper *keeper = renewer->keeper;

  renewer->is_called_back = true;
  pthread_mutex_unlock(&keeper->lock);
  dk_cancel(renewer->canceller);
  pthread_mutex_lock(&keeper->lock);
  renewer->is_called_back = false;
  pthread_cond_broadcast(&keeper->has_changed);
}

static void
hand_to_renewers(struct keeper *keeper, struct lease *lease)
{
  add_ready(keeper, lease);
  if (keeper->n_ready > keeper->n_idle && keeper->n_renewers < MOST_RENEWERS)
    add_renewer(keeper);
  pthread_cond_signal(&keeper->is_ready);
}

/* A renewal is under way: called back in time, and as often as it hangs. */
static void
watch_renewal(struct lease *lease, bool is_kept, int64_t now)
{
  struct renewer *renewer = lease->renewer;
  bool hangs = renewer->call_back_at <= now;

  if (hangs)
    renewer->call_back_at = now + longest_renewal(lease);
  look_at(lease, is_kept ? sooner(renewer->call_back_at, lease->deadline) : renewer->call_back_at);
  if (hangs)
    call_back(renewer);
}

/* Its time has come, for one thing or the other. */
static void
attend(struct keeper *keeper, struct lease *lease, int64_t now)
{
  bool is_kept = lease->state != LEASE_RESTS && lease->state != LEASE_IS_LOST;

  if (is_kept && lease->deadline <= now)
    lose(lease, LOSS_DEADLINE, now);
  else if (lease->state == LEASE_WAITS)
    hand_to_renewers(keeper, lease);
  else if (lease->renewer)
    watch_renewal(lease, is_kept, now);
  else
    look_at(lease, lease->deadline);
}

static void *
clock_main(void *argument)
{
  struct keeper *keeper = argument;

  pthread_mutex_lock(&keeper->lock);
  while (!keeper->is_stopping) {
    struct due *due = heap_top(&keeper->heap);
    int64_t now = ticks_now();
    if (due && due->at <= now)
      attend(keeper, (struct lease *)due, now);
    else
      ticks_cond_wait(&keeper->clock_looks, &keeper->lock, due ? due->at : INT64_MAX);
  }
  pthread_mutex_unlock(&keeper->lock);
  return NULL;
}

/* ---- keeping --------------------------------------------------------------------------------- */

/* Into the room at *at, which is zeroed and moves on; an absent text stays absent. */
static dk_str
move_in(char **at, dk_str text)
{
  char *copy = *at;

  if (!text.ptr)
    return text;
  memcpy(copy, text.ptr, text.len);
  *at += text.len + 1;
  return (dk_str){copy, text.len};
}

static struct lease *
new_lease(struct keeper *keeper, const struct lease_terms *terms)
{
  size_t room = terms->token.len + terms->instance.len + terms->activity.len +
                terms->orchestration.len + 4;
  struct lease *lease = calloc(1, sizeof(*lease) + room);

  if (!lease)
    return NULL;
  char *at = (char *)(lease + 1);
  lease->keeper = keeper;
  lease->terms = *terms;
  lease->terms.token = move_in(&at, terms->token);
  lease->terms.instance = move_in(&at, terms->instance);
  lease->terms.activity = move_in(&at, terms->activity);
  lease->terms.orchestration = move_in(&at, terms->orchestration);
  lease->deadline = sooner(terms->deadline, ticks_after(ticks_now(), terms->lock_ms));
  lease->good_at = lease->deadline - terms->lock_ms;
  return lease;
}

struct lease *
keeper_keep(struct keeper *keeper, const struct lease_terms *terms)
{
  struct lease *lease = new_lease(keeper, terms);

  if (!lease)
    return NULL;
  pthread_mutex_lock(&keeper->lock);
  bool has_room = heap_reserve(&keeper->heap, keeper->n_leases);
  if (has_room) {
    keeper->n_leases++;
    begin_to_wait(lease, lease->deadline - terms->buffer_ms);
  }
  pthread_mutex_unlock(&keeper->lock);
  if (has_room)
    return lease;
  free(lease);
  return NULL;
}

bool
lease_rest(struct lease *lease)
{
  struct keeper *keeper = lease->keeper;

  pthread_mutex_lock(&keeper->lock);
  bool is_lost = lease->state == LEASE_IS_LOST;
  if (!is_lost) {
    remove_ready(keeper, lease);
    contact_rest(&keeper->journal->contact, &lease->renews);
    lease->state = LEASE_RESTS;
    if (!lease->renewer) /* else the clock still sees to it that it does not hang */
      heap_remove(&keeper->heap, &lease->due);
  }
  pthread_mutex_unlock(&keeper->lock);
  return !is_lost;
}

void
keeper_let_go(struct keeper *keeper, struct lease *lease)
{
  pthread_mutex_lock(&keeper->lock);
  while (lease->pins > 0)
    pthread_cond_wait(&keeper->has_changed, &keeper->lock);
  remove_ready(keeper, lease);
  contact_rest(&keeper->journal->contact, &lease->renews);
  if (lease->renewer) {
    lease->state = LEASE_RESTS;
    lease->is_let_go = true;
    look_at(lease, lease->renewer->call_back_at);
  } else {
    free_lease(lease);
  }
  pthread_mutex_unlock(&keeper->lock);
}

int64_t
lease_deadline(const struct lease *lease)
{
  struct keeper *keeper = lease->keeper;

  pthread_mutex_lock(&keeper->lock);
  int64_t deadline = lease->deadline;
  pthread_mutex_unlock(&keeper->lock);
  return deadline;
}

int64_t
lease_good_at(const struct lease *lease)
{
  struct keeper *keeper = lease->keeper;

  pthread_mutex_lock(&keeper->lock);
  int64_t good_at = lease->good_at;
  pthread_mutex_unlock(&keeper->lock);
  return good_at;
}

/* ---- starting and stopping ------------------------------------------------------------------- */

/* How many do not come back, although called back: they are left, and so is the keeper. */
static uint32_t
wait_for_renewers(struct keeper *keeper)
{
  int64_t until = ticks_after(ticks_now(), PATIENCE_MS);

  pthread_mutex_lock(&keeper->lock);
  while (keeper->n_over < keeper->n_renewers && ticks_now() < until)
    ticks_cond_wait(&keeper->has_changed, &keeper->lock, until);
  uint32_t left = keeper->n_renewers - keeper->n_over;
  for (uint32_t i = 0; left > 0 && i < keeper->n_renewers; i++)
    pthread_detach(keeper->renewers[i].thread);
  keeper->is_left = left > 0;
  pthread_mutex_unlock(&keeper->lock);
  return left;
}

/* Those that were made: no clock, some renewers or none.  How many are left; 0: all is freed. */
static uint32_t
end_renewers(struct keeper *keeper)
{
  pthread_mutex_lock(&keeper->lock);
  keeper->is_stopping = true;
  pthread_cond_broadcast(&keeper->is_ready);
  pthread_cond_broadcast(&keeper->clock_looks);
  pthread_mutex_unlock(&keeper->lock);
  for (uint32_t i = 0; i < keeper->n_renewers; i++)
    dk_cancel(keeper->renewers[i].canceller);
  uint32_t left = wait_for_renewers(keeper);
  if (left > 0)
    return left;
  for (uint32_t i = 0; i < keeper->n_renewers; i++)
    pthread_join(keeper->renewers[i].thread, NULL);
  assert(keeper->n_leases == 0); /* all were let go, and the renewers have freed theirs */
  discard_keeper(keeper);
  return 0;
}

dk_status
keeper_start(const struct keeper_setup *setup, struct keeper **ret_keeper)
{
  struct keeper *keeper = calloc(1, sizeof(*keeper));

  if (!keeper)
    return DK_NO_MEMORY;
  keeper->store = setup->store;
  keeper->journal = setup->journal;
  keeper->ready_end = &keeper->ready;
  pthread_mutex_init(&keeper->lock, NULL);
  ticks_cond_init(&keeper->clock_looks);
  ticks_cond_init(&keeper->is_ready);
  ticks_cond_init(&keeper->has_changed);
  if (!add_renewer(keeper) ||
      pthread_create(&keeper->clock, NULL, clock_main, keeper) != 0) {
    end_renewers(keeper);
    return DK_NO_MEMORY;
  }
  *ret_keeper = keeper;
  return DK_OK;
}

uint32_t
keeper_stop(struct keeper *keeper)
{
  pthread_mutex_lock(&keeper->lock);
  keeper->is_stopping = true;
  pthread_cond_broadcast(&keeper->clock_looks);
  pthread_mutex_unlock(&keeper->lock);
  pthread_join(keeper->clock, NULL);
  return end_renewers(keeper);
}
