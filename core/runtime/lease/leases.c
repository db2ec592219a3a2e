/* SPDX-License-Identifier: Apache-2.0 */
/* The leases: see leases.h.
 *
 * One thread is the clock: it handles each lease when it is due, gives leases to the renewers when
 * they must be renewed, cancels renewals that hang, and watches the deadlines.  The renewers call
 * the store, one lease each; as many are started as are needed at the same time, up to
 * MOST_RENEWERS.
 *
 * Locking: `lock` guards everything unless a comment says otherwise.  Neither the store nor `lost`
 * nor the log is called under it; the store's health, which has its own lock, is.  A lease belongs
 * to struct leases from leases_keep to leases_let_go; if its renewal is running at that moment, the
 * renewer frees it.
 *
 * Invariants, whenever the lock is free; the asserts name them by number:
 *
 *  1. All of a lease except its terms, and all of struct leases, changes under `lock` only.
 *  2. A lease goes WAITS -> IS_READY -> RENEWS -> WAITS.  From each of these it may rest or be
 *     lost.  A lease that is lost or rests is never renewed again; `lost` is called at most once.
 *  3. The list `ready` has exactly the leases that are IS_READY, n_ready of them, and `ready_end`
 *     is where the next one is linked.
 *  4. A lease that RENEWS has a renewer; one that WAITS or IS_READY has none.
 *  5. A lease that WAITS, IS_READY or RENEWS is in the heap, and is due by its deadline.  One that
 *     rests or is lost is in the heap only as long as a renewer has it.
 *  6. n_leases counts what is kept and not freed; the heap holds no more than these.
 *  7. A lease that is freed has no pins, is in no list, and no renewer has it.
 *  8. n_over <= n_renewers <= MOST_RENEWERS, and n_idle counts some of these.
 *  9. While the clock cancels a renewer's call, that renewer takes no other lease. */
#include "core/runtime/lease/leases.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/runtime/lease/heap.h"

enum { MOST_RENEWERS = 16, LEAST_RETRY_MS = 50, LEAST_HANG_MS = 250, PATIENCE_MS = 5000 };

enum lease_state {
  LEASE_WAITS,    /* until its time to be renewed */
  LEASE_IS_READY, /* in the list for the renewers */
  LEASE_RENEWS,   /* a renewer has it */
  LEASE_RESTS,    /* no longer renewed */
  LEASE_IS_LOST
};

struct renewer;
struct lease {
  struct due due;             /* first member: the heap's element is the lease */
  struct leases *leases;
  struct lease_terms terms;   /* its texts follow the struct */
  enum lease_state state;
  int64_t deadline;
  int64_t good_at;            /* lock_ms before the deadline; unchanged when it is lost */
  struct renewer *renewer;    /* the one that renews it; a resting lease may have one too */
  uint32_t retries;           /* since the last DK_OK */
  struct asker renews;        /* active only while the lease is kept */
  uint32_t pins;              /* held by threads that are reporting this lease without the lock */
  bool is_let_go;
  struct lease *next;         /* in the list of those that are ready */
};

struct renewer {
  struct leases *leases;
  pthread_t thread;
  struct dk_caller *caller;
  struct dk_canceller *canceller;
  int64_t cancel_at;
  bool is_being_cancelled;  /* the clock is cancelling it: the renewer must wait before the next
                                 one */
};

struct leases {
  struct dk_store *store;
  struct log *log;
  struct dk_lock lock;
  pthread_cond_t clock_looks; /* the heap has changed */
  pthread_cond_t is_ready;    /* a lease is ready, or the leases are being stopped */
  pthread_cond_t has_changed; /* no thread reports a lease any more, or a thread has ended */
  bool is_stopping;
  bool is_left;               /* it was abandoned: the last renewer frees everything */
  pthread_t clock;
  struct heap heap;
  size_t n_leases;            /* kept or not yet freed */
  struct lease *ready, **ready_end;
  uint32_t n_ready, n_idle, n_renewers, n_over;
  struct renewer renewers[MOST_RENEWERS];
};

/* ---- reporting ------------------------------------------------------------------------------- */

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

/* A series of failures is logged once, for all leases together, and once when it has ended. */
static void
log_retry(const struct lease *lease, bool is_news, dk_status status, const char *why)
{
  struct log *log = lease->leases->log;
  struct dk_log_event event = event_of(lease, DK_LOG_RENEWAL_RETRIED);

  log_count(log, COUNT_RENEWALS_RETRIED);
  event.status = status;
  if (!is_news)
    event.level = DK_LEVEL_TRACE;
  log_report(log, &event, "its lease could not be renewed, trying again: %s", why);
}

static void
log_renewed(const struct lease *lease, bool is_news, uint32_t retries)
{
  struct log *log = lease->leases->log;
  struct dk_log_event event = event_of(lease, DK_LOG_RENEWED);

  log_count(log, COUNT_RENEWALS);
  if (retries == 0 && !is_news) {
    log_report(log, &event, "its lease was renewed");
    return;
  }
  if (is_news)
    event.level = DK_LEVEL_INFO;
  log_report(log, &event, "its lease was renewed, after %u failed attempts", retries);
}

/* ---- leases, under the lock ------------------------------------------------------------------ */

static void
look_at(struct lease *lease, int64_t at)
{
  struct leases *leases = lease->leases;

  assert(dk_lock_is_held(&leases->lock)); /* 1 */
  heap_set(&leases->heap, &lease->due, at);
  if (heap_top(&leases->heap) == &lease->due)
    pthread_cond_signal(&leases->clock_looks);
}

static void
begin_to_wait(struct lease *lease, int64_t renew_at)
{
  assert(dk_lock_is_held(&lease->leases->lock));                       /* 1 */
  assert(lease->state == LEASE_WAITS || lease->state == LEASE_RENEWS); /* 2 */
  assert(!lease->renewer);                                             /* 4 */
  lease->state = LEASE_WAITS;
  look_at(lease, ticks_sooner(renew_at, lease->deadline));
}

static void
add_ready(struct leases *leases, struct lease *lease)
{
  assert(dk_lock_is_held(&leases->lock));                 /* 1 */
  assert(lease->state == LEASE_WAITS && !lease->renewer); /* 2, 4 */
  assert(!*leases->ready_end);                            /* 3 */
  lease->state = LEASE_IS_READY;
  lease->next = NULL;
  *leases->ready_end = lease;
  leases->ready_end = &lease->next;
  leases->n_ready++;
  look_at(lease, lease->deadline);
}

static void
remove_ready(struct leases *leases, struct lease *lease)
{
  struct lease **at = &leases->ready;

  assert(dk_lock_is_held(&leases->lock)); /* 1 */
  if (lease->state != LEASE_IS_READY)
    return;
  assert(leases->n_ready > 0); /* 3 */
  while (*at != lease) {
    assert(*at); /* 3 */
    at = &(*at)->next;
  }
  *at = lease->next;
  if (!*at)
    leases->ready_end = at;
  leases->n_ready--;
  assert((leases->n_ready == 0) == !leases->ready); /* 3 */
}

static void
free_lease(struct lease *lease)
{
  assert(dk_lock_is_held(&lease->leases->lock)); /* 1 */
  assert(lease->pins == 0 && !lease->renewer);   /* 7 */
  assert(lease->leases->n_leases > 0);           /* 6 */
  heap_remove(&lease->leases->heap, &lease->due);
  lease->leases->n_leases--;
  free(lease);
}

/* Between these two functions the lock is released, and the lease is not freed. */
static void
begin_report(struct lease *lease)
{
  assert(dk_lock_is_held(&lease->leases->lock)); /* 1 */
  assert(!lease->is_let_go);                     /* 7: leases_let_go waits for the pins */
  lease->pins++;
  dk_unlock(&lease->leases->lock);
}

static void
end_report(struct lease *lease)
{
  dk_lock(&lease->leases->lock);
  assert(lease->pins > 0); /* 7 */
  lease->pins--;
  pthread_cond_broadcast(&lease->leases->has_changed);
}

/* Reports the loss to the owner.  The clock still watches a renewal that is running. */
static void
lose(struct lease *lease, enum loss loss, int64_t cancel_at)
{
  struct leases *leases = lease->leases;

  assert(dk_lock_is_held(&leases->lock));                               /* 1 */
  assert(lease->state != LEASE_IS_LOST && lease->state != LEASE_RESTS); /* 2 */
  remove_ready(leases, lease);
  health_rest(&leases->log->health, &lease->renews);
  lease->state = LEASE_IS_LOST;
  lease->deadline = 0;
  if (lease->renewer)
    look_at(lease, cancel_at);
  else
    heap_remove(&leases->heap, &lease->due);
  begin_report(lease);
  log_count(leases->log, COUNT_RENEWALS_LOST);
  lease->terms.lost(lease->terms.context, loss);
  end_report(lease);
}

/* ---- renewers -------------------------------------------------------------------------------- */

static dk_status
call_store(struct renewer *renewer, const struct lease *lease)
{
  struct dk_store *store = renewer->leases->store;
  const struct lease_terms *terms = &lease->terms;

  assert(!dk_lock_is_held(&renewer->leases->lock));
  if (terms->kind == LEASE_TURN)
    return dk_store_renew_orchestration_item_lock(store, renewer->caller, terms->token,
                                                  terms->lock_ms);
  return dk_store_renew_work_item_lock(store, renewer->caller, terms->token, terms->lock_ms);
}

/* Handles the answer to a renewal of a lease that is still kept. */
static void
leases_take_answer(struct lease *lease, dk_status status, const char *why)
{
  int64_t now = ticks_now();
  int64_t pause = (lease->deadline - now) / 5;
  uint32_t retries = lease->retries;

  assert(dk_lock_is_held(&lease->leases->lock));           /* 1 */
  assert(lease->state == LEASE_RENEWS && !lease->renewer); /* 2, 4 */
  if (status == DK_LOCK_LOST) {
    lose(lease, now < lease->deadline ? LOSS_REFUSED : LOSS_DEADLINE, 0);
    return;
  }
  struct health *health = &lease->leases->log->health;
  bool is_news;
  if (status == DK_OK) {
    is_news = health_good(health, &lease->renews, NULL);
    lease->retries = 0;
    begin_to_wait(lease, lease->deadline - lease->terms.buffer_ms);
  } else {
    is_news = health_refused(health, &lease->renews, status, why);
    lease->retries++;
    begin_to_wait(lease, now + (pause > LEAST_RETRY_MS ? pause : LEAST_RETRY_MS));
  }
  begin_report(lease);
  if (status == DK_OK)
    log_renewed(lease, is_news, retries);
  else
    log_retry(lease, is_news, status, why);
  end_report(lease);
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
  struct leases *leases = renewer->leases;
  int64_t began = ticks_now();

  assert(dk_lock_is_held(&leases->lock));                    /* 1 */
  assert(lease->state == LEASE_IS_READY && !lease->renewer); /* 2, 4 */
  assert(!renewer->is_being_cancelled);                          /* 9 */
  lease->state = LEASE_RENEWS;
  lease->renewer = renewer;
  health_ask(&leases->log->health, &lease->renews, HEALTH_RENEWALS, 0);
  renewer->cancel_at = began + longest_renewal(lease);
  look_at(lease, ticks_sooner(renewer->cancel_at, lease->deadline));
  dk_canceller_reset(renewer->canceller);
  dk_unlock(&leases->lock);
  dk_caller_reset(renewer->caller);
  dk_status status = call_store(renewer, lease);
  dk_lock(&leases->lock);
  while (renewer->is_being_cancelled)
    dk_lock_wait(&leases->lock, &leases->has_changed);
  assert(lease->renewer == renewer); /* 4 */
  lease->renewer = NULL;
  if (status == DK_OK && lease->state != LEASE_IS_LOST) {
    lease->deadline = began + lease->terms.lock_ms;
    lease->good_at = began;
  }
  if (lease->is_let_go)
    free_lease(lease);
  else if (lease->state == LEASE_RENEWS)
    leases_take_answer(lease, status, dk_caller_failure(renewer->caller)->text);
  else
    heap_remove(&leases->heap, &lease->due); /* 5 */
}

static void
discard_renewer(struct renewer *renewer)
{
  dk_caller_free(renewer->caller);
  dk_canceller_free(renewer->canceller);
}

static void
discard_leases(struct leases *leases)
{
  assert(leases->n_over == leases->n_renewers && leases->heap.n == 0); /* 5, 8 */
  for (uint32_t i = 0; i < leases->n_renewers; i++)
    discard_renewer(&leases->renewers[i]);
  heap_done(&leases->heap);
  pthread_cond_destroy(&leases->has_changed);
  pthread_cond_destroy(&leases->is_ready);
  pthread_cond_destroy(&leases->clock_looks);
  dk_lock_done(&leases->lock);
  free(leases);
}

/* Called under the lock, which is released when this returns. */
static void
end_renewer(struct leases *leases)
{
  assert(dk_lock_is_held(&leases->lock)); /* 1 */
  bool is_last = ++leases->n_over == leases->n_renewers && leases->is_left;

  assert(leases->n_over <= leases->n_renewers); /* 8 */
  pthread_cond_broadcast(&leases->has_changed);
  dk_unlock(&leases->lock);
  if (is_last)
    discard_leases(leases);
}

static void *
renewer_main(void *argument)
{
  struct renewer *renewer = argument;
  struct leases *leases = renewer->leases;

  dk_lock(&leases->lock);
  while (!leases->is_stopping) {
    struct lease *lease = leases->ready;
    if (lease) {
      remove_ready(leases, lease);
      renew(renewer, lease);
      continue;
    }
    leases->n_idle++;
    dk_lock_wait(&leases->lock, &leases->is_ready);
    assert(leases->n_idle > 0); /* 8 */
    leases->n_idle--;
  }
  end_renewer(leases);
  return NULL;
}

/* Adds one; without memory or threads the existing ones must suffice. */
static bool
add_renewer(struct leases *leases)
{
  struct renewer *renewer = &leases->renewers[leases->n_renewers];

  assert(leases->n_renewers < MOST_RENEWERS); /* 8 */
  *renewer = (struct renewer){
      .leases = leases,
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
  leases->n_renewers++;
  return true;
}

/* ---- the clock ------------------------------------------------------------------------------- */

static void
cancel_renewal(struct renewer *renewer)
{
  struct leases *leases = renewer->leases;

  assert(dk_lock_is_held(&leases->lock)); /* 1 */
  assert(!renewer->is_being_cancelled);       /* 9: there is one clock */
  renewer->is_being_cancelled = true;
  dk_unlock(&leases->lock);
  dk_cancel(renewer->canceller);
  dk_lock(&leases->lock);
  renewer->is_being_cancelled = false;
  pthread_cond_broadcast(&leases->has_changed);
}

static void
hand_to_renewers(struct leases *leases, struct lease *lease)
{
  add_ready(leases, lease);
  if (leases->n_ready > leases->n_idle && leases->n_renewers < MOST_RENEWERS)
    add_renewer(leases);
  pthread_cond_signal(&leases->is_ready);
}

/* Watches a running renewal: cancels it in time, and again as long as it hangs. */
static void
watch_renewal(struct lease *lease, bool is_kept, int64_t now)
{
  struct renewer *renewer = lease->renewer;
  bool hangs = renewer->cancel_at <= now;

  assert(dk_lock_is_held(&lease->leases->lock)); /* 1 */
  if (hangs)
    renewer->cancel_at = now + longest_renewal(lease);
  look_at(lease, is_kept ? ticks_sooner(renewer->cancel_at, lease->deadline) : renewer->cancel_at);
  if (hangs)
    cancel_renewal(renewer);
}

/* Handles a lease that is due. */
static void
attend(struct leases *leases, struct lease *lease, int64_t now)
{
  bool is_kept = lease->state != LEASE_RESTS && lease->state != LEASE_IS_LOST;

  assert(dk_lock_is_held(&leases->lock));                 /* 1 */
  assert(lease->state != LEASE_RENEWS || lease->renewer); /* 4 */
  assert(is_kept || lease->renewer);                      /* 5 */
  if (is_kept && lease->deadline <= now)
    lose(lease, LOSS_DEADLINE, now);
  else if (lease->state == LEASE_WAITS)
    hand_to_renewers(leases, lease);
  else if (lease->renewer)
    watch_renewal(lease, is_kept, now);
  else
    look_at(lease, lease->deadline);
}

static void *
clock_main(void *argument)
{
  struct leases *leases = argument;

  dk_lock(&leases->lock);
  while (!leases->is_stopping) {
    struct due *due = heap_top(&leases->heap);
    int64_t now = ticks_now();
    if (due && due->at <= now)
      attend(leases, (struct lease *)due, now);
    else
      ticks_cond_wait(&leases->clock_looks, &leases->lock, due ? due->at : INT64_MAX);
  }
  dk_unlock(&leases->lock);
  return NULL;
}

/* ---- keeping --------------------------------------------------------------------------------- */

/* Copies the text to *at, which points to zeroed memory and is advanced; an absent text stays
 * absent. */
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
new_lease(struct leases *leases, const struct lease_terms *terms)
{
  size_t room = terms->token.len + terms->instance.len + terms->activity.len +
                terms->orchestration.len + 4;
  struct lease *lease = calloc(1, sizeof(*lease) + room);

  if (!lease)
    return NULL;
  char *at = (char *)(lease + 1);
  lease->leases = leases;
  lease->terms = *terms;
  lease->terms.token = move_in(&at, terms->token);
  lease->terms.instance = move_in(&at, terms->instance);
  lease->terms.activity = move_in(&at, terms->activity);
  lease->terms.orchestration = move_in(&at, terms->orchestration);
  lease->deadline = ticks_sooner(terms->deadline, ticks_after(ticks_now(), terms->lock_ms));
  lease->good_at = lease->deadline - terms->lock_ms;
  return lease;
}

struct lease *
leases_keep(struct leases *leases, const struct lease_terms *terms)
{
  struct lease *lease = new_lease(leases, terms);

  if (!lease)
    return NULL;
  dk_lock(&leases->lock);
  assert(leases->heap.n <= leases->n_leases); /* 6 */
  bool has_room = heap_reserve(&leases->heap, leases->n_leases);
  if (has_room) {
    leases->n_leases++;
    begin_to_wait(lease, lease->deadline - terms->buffer_ms);
  }
  dk_unlock(&leases->lock);
  if (has_room)
    return lease;
  free(lease);
  return NULL;
}

bool
lease_rest(struct lease *lease)
{
  struct leases *leases = lease->leases;

  dk_lock(&leases->lock);
  bool is_lost = lease->state == LEASE_IS_LOST;
  if (!is_lost) {
    remove_ready(leases, lease);
    health_rest(&leases->log->health, &lease->renews);
    lease->state = LEASE_RESTS;
    if (!lease->renewer) /* else the clock still watches that it does not hang */
      heap_remove(&leases->heap, &lease->due);
  }
  dk_unlock(&leases->lock);
  return !is_lost;
}

void
leases_let_go(struct leases *leases, struct lease *lease)
{
  dk_lock(&leases->lock);
  assert(!lease->is_let_go); /* it is let go once */
  while (lease->pins > 0)
    dk_lock_wait(&leases->lock, &leases->has_changed);
  remove_ready(leases, lease);
  health_rest(&leases->log->health, &lease->renews);
  if (lease->renewer) {
    lease->state = LEASE_RESTS;
    lease->is_let_go = true;
    look_at(lease, lease->renewer->cancel_at);
  } else {
    free_lease(lease);
  }
  dk_unlock(&leases->lock);
}

int64_t
lease_deadline(const struct lease *lease)
{
  struct leases *leases = lease->leases;

  dk_lock(&leases->lock);
  int64_t deadline = lease->deadline;
  dk_unlock(&leases->lock);
  return deadline;
}

int64_t
lease_good_at(const struct lease *lease)
{
  struct leases *leases = lease->leases;

  dk_lock(&leases->lock);
  int64_t good_at = lease->good_at;
  dk_unlock(&leases->lock);
  return good_at;
}

/* ---- starting and stopping ------------------------------------------------------------------- */

/* How many do not return although they were cancelled: they are abandoned, and so is struct
 * leases. */
static uint32_t
wait_for_renewers(struct leases *leases)
{
  int64_t until = ticks_after(ticks_now(), PATIENCE_MS);

  dk_lock(&leases->lock);
  while (leases->n_over < leases->n_renewers && ticks_now() < until)
    ticks_cond_wait(&leases->has_changed, &leases->lock, until);
  uint32_t left = leases->n_renewers - leases->n_over;
  for (uint32_t i = 0; left > 0 && i < leases->n_renewers; i++)
    pthread_detach(leases->renewers[i].thread);
  leases->is_left = left > 0;
  dk_unlock(&leases->lock);
  return left;
}

/* Ends the renewers that were started.  Returns how many are abandoned; 0: everything is freed. */
static uint32_t
end_renewers(struct leases *leases)
{
  dk_lock(&leases->lock);
  leases->is_stopping = true;
  pthread_cond_broadcast(&leases->is_ready);
  pthread_cond_broadcast(&leases->clock_looks);
  dk_unlock(&leases->lock);
  for (uint32_t i = 0; i < leases->n_renewers; i++)
    dk_cancel(leases->renewers[i].canceller);
  uint32_t left = wait_for_renewers(leases);
  if (left > 0)
    return left;
  for (uint32_t i = 0; i < leases->n_renewers; i++)
    pthread_join(leases->renewers[i].thread, NULL);
  assert(leases->n_leases == 0 && leases->n_ready == 0); /* 6: all were released and freed */
  discard_leases(leases);
  return 0;
}

dk_status
leases_start(const struct leases_setup *setup, struct leases **ret_leases)
{
  struct leases *leases = calloc(1, sizeof(*leases));

  if (!leases)
    return DK_NO_MEMORY;
  leases->store = setup->store;
  leases->log = setup->log;
  leases->ready_end = &leases->ready;
  dk_lock_init(&leases->lock);
  ticks_cond_init(&leases->clock_looks);
  ticks_cond_init(&leases->is_ready);
  ticks_cond_init(&leases->has_changed);
  if (!add_renewer(leases) || pthread_create(&leases->clock, NULL, clock_main, leases) != 0) {
    end_renewers(leases);
    return DK_NO_MEMORY;
  }
  *ret_leases = leases;
  return DK_OK;
}

uint32_t
leases_stop(struct leases *leases)
{
  dk_lock(&leases->lock);
  leases->is_stopping = true;
  pthread_cond_broadcast(&leases->clock_looks);
  dk_unlock(&leases->lock);
  pthread_join(leases->clock, NULL);
  return end_renewers(leases);
}
