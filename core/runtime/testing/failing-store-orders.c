/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of a store that fails on request, and its reports: see failing-store.h. */
#include "core/runtime/testing/failing-store-state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/plugin/look.h"

enum { PATIENCE_S = 60 };

/* ---- orders ---------------------------------------------------------------------------------- */

void
faulty_plan(struct faulty *faulty, enum faulty_operation operation, uint32_t skip, uint32_t times,
            enum fault fault, dk_status status)
{
  dk_lock(&faulty->lock);
  dk_unring(faulty->gate);
  faulty->plans[operation] =
    (struct plan){.skip = skip, .times = times, .fault = fault, .status = status};
  faulty->later[operation] = (struct plan){.times = 0};
  dk_unlock(&faulty->lock);
}

void
faulty_then(struct faulty *faulty, enum faulty_operation operation, uint32_t times,
            enum fault fault, dk_status status)
{
  dk_lock(&faulty->lock);
  faulty->later[operation] = (struct plan){.times = times, .fault = fault, .status = status};
  dk_unlock(&faulty->lock);
}

void
faulty_end_pages(struct faulty *faulty, uint32_t after_roots)
{
  dk_lock(&faulty->lock);
  faulty->most_in_page = after_roots;
  dk_unlock(&faulty->lock);
}

void
faulty_refuse_results(struct faulty *faulty, const char *instance, dk_status status)
{
  dk_lock(&faulty->lock);
  faulty->refused = instance;
  faulty->refusal = status;
  dk_unlock(&faulty->lock);
}

void
faulty_heal(struct faulty *faulty)
{
  dk_lock(&faulty->lock);
  memset(faulty->plans, 0, sizeof(faulty->plans));
  memset(faulty->later, 0, sizeof(faulty->later));
  faulty->is_away = false;
  faulty->refused = NULL;
  dk_unlock(&faulty->lock);
}

void
faulty_away(struct faulty *faulty, bool is_away)
{
  dk_lock(&faulty->lock);
  faulty->is_away = is_away;
  dk_unlock(&faulty->lock);
}

void
faulty_release(struct faulty *faulty)
{
  struct timespec until;
  int error = 0;

  dk_ring(faulty->gate);
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += PATIENCE_S;
  dk_lock(&faulty->lock);
  while (faulty->hanging > 0 && error != ETIMEDOUT)
    error = dk_lock_wait_until(&faulty->lock, &faulty->changed, &until);
  dk_unlock(&faulty->lock);
}

/* ---- what has happened ----------------------------------------------------------------------- */

uint64_t
faulty_calls(struct faulty *faulty, enum faulty_operation operation)
{
  dk_lock(&faulty->lock);
  uint64_t calls = faulty->calls[operation];
  dk_unlock(&faulty->lock);
  return calls;
}

uint64_t
faulty_successes(struct faulty *faulty, enum faulty_operation operation)
{
  dk_lock(&faulty->lock);
  uint64_t successes = faulty->successes[operation];
  dk_unlock(&faulty->lock);
  return successes;
}

void
faulty_custom_status(struct faulty *faulty, char *ret_words, size_t size)
{
  dk_lock(&faulty->lock);
  snprintf(ret_words, size, "%s", faulty->custom_status);
  dk_unlock(&faulty->lock);
}

uint32_t
faulty_hanging(struct faulty *faulty)
{
  dk_lock(&faulty->lock);
  uint32_t hanging = faulty->hanging;
  dk_unlock(&faulty->lock);
  return hanging;
}

/* Waits until *calls (NULL: how many hang) is n or more. */
static bool
until_count(struct faulty *faulty, const uint64_t *calls, uint64_t n)
{
  struct timespec until;
  int error = 0;

  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += PATIENCE_S;
  dk_lock(&faulty->lock);
  while ((calls ? *calls : faulty->hanging) < n && error != ETIMEDOUT)
    error = dk_lock_wait_until(&faulty->lock, &faulty->changed, &until);
  bool is_there = (calls ? *calls : faulty->hanging) >= n;
  dk_unlock(&faulty->lock);
  return is_there;
}

bool
faulty_until_calls(struct faulty *faulty, enum faulty_operation operation, uint64_t n)
{
  return until_count(faulty, &faulty->calls[operation], n);
}

bool
faulty_until_hanging(struct faulty *faulty, uint32_t n)
{
  return until_count(faulty, NULL, n);
}
