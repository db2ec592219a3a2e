/* SPDX-License-Identifier: Apache-2.0 */
/* Delayed starts: see delayed-starts.h.
 *
 * Locking: `lock` guards the list and the flags; the store is called without it. */
#include "core/runtime/turn/delayed-starts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/runtime/shared/ticks.h"

enum { LET_GO_ON_MS = 2000, LEAVE_MS = 5000 };

struct delayed_start {
  struct delayed_start *next;
  int64_t at;
  size_t length;
  char token[];
};

struct delayed_starts {
  struct dk_store *store;
  struct dk_caller *caller;
  struct dk_canceller *canceller;
  pthread_t pthread;
  struct dk_lock lock;
  pthread_cond_t changed;
  struct delayed_start *first; /* by `at` */
  uint32_t n;
  bool is_stopping, is_over;
};

/* Removes the next that is due from the list; NULL: it is being ended. */
static struct delayed_start *
next_due(struct delayed_starts *delayed_starts)
{
  struct delayed_start *due = NULL;

  dk_lock(&delayed_starts->lock);
  while (!due && !(delayed_starts->is_stopping && !delayed_starts->first)) {
    struct delayed_start *first = delayed_starts->first;
    if (first && (delayed_starts->is_stopping || first->at <= ticks_now())) {
      assert(delayed_starts->n > 0);
      due = first;
      delayed_starts->first = first->next;
      delayed_starts->n--;
    } else {
      ticks_cond_wait(&delayed_starts->changed, &delayed_starts->lock,
                      first ? first->at : INT64_MAX);
    }
  }
  dk_unlock(&delayed_starts->lock);
  return due;
}

/* If that fails, the lease expires soon. */
static void
delayed_starts_give_back(struct delayed_starts *delayed_starts,
                         const struct delayed_start *delayed_start)
{
  dk_caller_reset(delayed_starts->caller);
  dk_store_abandon_orchestration_item(
      delayed_starts->store, delayed_starts->caller,
      (struct dk_bytes){delayed_start->token, delayed_start->length}, 0, 1);
}

static void *
delayed_starts_main(void *argument)
{
  struct delayed_starts *delayed_starts = argument;
  struct delayed_start *due;

  while ((due = next_due(delayed_starts)) != NULL) {
    delayed_starts_give_back(delayed_starts, due);
    free(due);
  }
  dk_lock(&delayed_starts->lock);
  delayed_starts->is_over = true;
  pthread_cond_broadcast(&delayed_starts->changed);
  dk_unlock(&delayed_starts->lock);
  return NULL;
}

static void
discard(struct delayed_starts *delayed_starts)
{
  assert(!delayed_starts->first && delayed_starts->n == 0); /* all were given back */
  dk_caller_free(delayed_starts->caller);
  dk_canceller_free(delayed_starts->canceller);
  pthread_cond_destroy(&delayed_starts->changed);
  dk_lock_done(&delayed_starts->lock);
  free(delayed_starts);
}

struct delayed_starts *
delayed_starts_begin(struct dk_store *store)
{
  struct delayed_starts *delayed_starts = calloc(1, sizeof(*delayed_starts));

  if (!delayed_starts)
    return NULL;
  delayed_starts->store = store;
  delayed_starts->caller = dk_caller_new(NULL, 0);
  delayed_starts->canceller = dk_canceller_new(NULL);
  dk_lock_init(&delayed_starts->lock);
  ticks_cond_init(&delayed_starts->changed);
  if (delayed_starts->caller)
    dk_caller_set_canceller(delayed_starts->caller, delayed_starts->canceller);
  if (!delayed_starts->caller || !delayed_starts->canceller ||
      pthread_create(&delayed_starts->pthread, NULL, delayed_starts_main, delayed_starts) != 0) {
    discard(delayed_starts);
    return NULL;
  }
  return delayed_starts;
}

static void
insert(struct delayed_starts *delayed_starts, struct delayed_start *made)
{
  struct delayed_start **at = &delayed_starts->first;

  assert(dk_lock_is_held(&delayed_starts->lock) && delayed_starts->n < MOST_DELAYED_STARTS);
  while (*at && (*at)->at <= made->at)
    at = &(*at)->next;
  made->next = *at;
  assert(!made->next || made->at < made->next->at);
  *at = made;
  delayed_starts->n++;
  pthread_cond_broadcast(&delayed_starts->changed);
}

bool
delayed_starts_put(struct delayed_starts *delayed_starts, struct dk_bytes token, int64_t at)
{
  struct delayed_start *made = calloc(1, sizeof(*made) + token.len + 1);

  if (!made)
    return false;
  made->at = at;
  made->length = token.len;
  memcpy(made->token, token.ptr, token.len);
  dk_lock(&delayed_starts->lock);
  bool has_place = !delayed_starts->is_stopping && delayed_starts->n < MOST_DELAYED_STARTS;
  if (has_place)
    insert(delayed_starts, made);
  dk_unlock(&delayed_starts->lock);
  if (!has_place)
    free(made);
  return has_place;
}

static bool
wait_for_end(struct delayed_starts *delayed_starts, int64_t until)
{
  dk_lock(&delayed_starts->lock);
  delayed_starts->is_stopping = true;
  pthread_cond_broadcast(&delayed_starts->changed);
  while (!delayed_starts->is_over && ticks_now() < until)
    ticks_cond_wait(&delayed_starts->changed, &delayed_starts->lock, until);
  bool is_over = delayed_starts->is_over;
  dk_unlock(&delayed_starts->lock);
  return is_over;
}

bool
delayed_starts_end(struct delayed_starts *delayed_starts)
{
  if (!delayed_starts)
    return true;
  if (!wait_for_end(delayed_starts, ticks_after(ticks_now(), LET_GO_ON_MS))) {
    dk_cancel(delayed_starts->canceller);
    if (!wait_for_end(delayed_starts, ticks_after(ticks_now(), LEAVE_MS)))
      return false;
  }
  pthread_join(delayed_starts->pthread, NULL);
  discard(delayed_starts);
  return true;
}
