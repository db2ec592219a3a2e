/* SPDX-License-Identifier: Apache-2.0 */
/* Parking: see delayed-starts.h.
 *
 * Locking: `lock` guards the list and the flags; the store is called without it. */
#include "core/runtime/turn/delayed-starts.h"

#include <stdlib.h>
#include <string.h>

#include "core/runtime/shared/ticks.h"

enum { LET_GO_ON_MS = 2000, LEAVE_MS = 5000 };

struct parked {
  struct parked *next;
  int64_t at;
  size_t length;
  char token[];
};

struct parking {
  struct dk_store *store;
  struct dk_caller *caller;
  struct dk_canceller *canceller;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct parked *first;     /* by `at` */
  uint32_t n;
  bool is_stopping, is_over;
};

/* The next that is due, out of the list; NULL: it is the end. */
static struct parked *
next_due(struct parking *parking)
{
  struct parked *due = NULL;

  pthread_mutex_lock(&parking->lock);
  while (!due && !(parking->is_stopping && !parking->first)) {
    struct parked *first = parking->first;
    if (first && (parking->is_stopping || first->at <= ticks_now())) {
      due = first;
      parking->first = first->next;
      parking->n--;
    } else {
      ticks_cond_wait(&parking->changed, &parking->lock, first ? first->at : INT64_MAX);
    }
  }
  pthread_mutex_unlock(&parking->lock);
  return due;
}

/* If that fails, the lease runs out soon. */
static void
give_back(struct parking *parking, const struct parked *parked)
{
  dk_caller_reset(parking->caller);
  dk_store_abandon_orchestration_item(parking->store, parking->caller,
                                      (struct dk_bytes){parked->token, parked->length}, 0, 1);
}

static void *
parking_main(void *argument)
{
  struct parking *parking = argument;
  struct parked *due;

  while ((due = next_due(parking)) != NULL) {
    give_back(parking, due);
    free(due);
  }
  pthread_mutex_lock(&parking->lock);
  parking->is_over = true;
  pthread_cond_broadcast(&parking->changed);
  pthread_mutex_unlock(&parking->lock);
  return NULL;
}

static void
discard(struct parking *parking)
{
  dk_caller_free(parking->caller);
  dk_canceller_free(parking->canceller);
  pthread_cond_destroy(&parking->changed);
  pthread_mutex_destroy(&parking->lock);
  free(parking);
}

struct parking *
parking_start(struct dk_store *store)
{
  struct parking *parking = calloc(1, sizeof(*parking));

  if (!parking)
    return NULL;
  parking->store = store;
  parking->caller = dk_caller_new(NULL, 0);
  parking->canceller = dk_canceller_new(NULL);
  pthread_mutex_init(&parking->lock, NULL);
  ticks_cond_init(&parking->changed);
  if (parking->caller)
    dk_caller_set_canceller(parking->caller, parking->canceller);
  if (!parking->caller || !parking->canceller ||
      pthread_create(&parking->thread, NULL, parking_main, parking) != 0) {
    discard(parking);
    return NULL;
  }
  return parking;
}

static void
insert(struct parking *parking, struct parked *made)
{
  struct parked **at = &parking->first;

  while (*at && (*at)->at <= made->at)
    at = &(*at)->next;
  made->next = *at;
  *at = made;
  parking->n++;
  pthread_cond_broadcast(&parking->changed);
}

bool
parking_put(struct parking *parking, struct dk_bytes token, int64_t at)
{
  struct parked *made = calloc(1, sizeof(*made) + token.len + 1);

  if (!made)
    return false;
  made->at = at;
  made->length = token.len;
  memcpy(made->token, token.ptr, token.len);
  pthread_mutex_lock(&parking->lock);
  bool has_place = !parking->is_stopping && parking->n < PARKING_PLACES;
  if (has_place)
    insert(parking, made);
  pthread_mutex_unlock(&parking->lock);
  if (!has_place)
    free(made);
  return has_place;
}

static bool
wait_for_end(struct parking *parking, int64_t until)
{
  pthread_mutex_lock(&parking->lock);
  parking->is_stopping = true;
  pthread_cond_broadcast(&parking->changed);
  while (!parking->is_over && ticks_now() < until)
    ticks_cond_wait(&parking->changed, &parking->lock, until);
  bool is_over = parking->is_over;
  pthread_mutex_unlock(&parking->lock);
  return is_over;
}

bool
parking_stop(struct parking *parking)
{
  if (!parking)
    return true;
  if (!wait_for_end(parking, ticks_after(ticks_now(), LET_GO_ON_MS))) {
    dk_cancel(parking->canceller);
    if (!wait_for_end(parking, ticks_after(ticks_now(), LEAVE_MS)))
      return false;
  }
  pthread_join(parking->thread, NULL);
  discard(parking);
  return true;
}
