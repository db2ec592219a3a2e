/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks: see ticks.h.  Owns nothing. */
#include "core/runtime/shared/ticks.h"

#include <time.h>

#include "core/plugin/look.h"
#include "core/plugin/store.h"

int64_t
ticks_now(void)
{
  return dk_monotonic_ms();
}

int64_t
ticks_ns(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t
ticks_roughly(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t
ticks_after(int64_t tick, int64_t ms)
{
  return ms > INT64_MAX - tick ? INT64_MAX : tick + ms;
}

int64_t
ticks_of(struct dk_store *store, int64_t deadline)
{
  int64_t tick = ticks_now(); /* first: the time between the two calls then makes the lease shorter,
                                 never longer */

  return ticks_after(tick, deadline - dk_store_now(store));
}

void
ticks_cond_init(pthread_cond_t *condition)
{
  pthread_condattr_t attributes;

  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

void
ticks_cond_wait(pthread_cond_t *condition, struct dk_lock *lock, int64_t until)
{
  struct timespec at = {
    .tv_sec = (time_t)(until / 1000),
    .tv_nsec = (long)(until % 1000) * 1000000,
  };

  if (until == INT64_MAX)
    dk_lock_wait(lock, condition);
  else
    dk_lock_wait_until(lock, condition, &at);
}
