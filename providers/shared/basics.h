/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions of both plugins are written with: statuses, and times. */
#ifndef DK_PROVIDERS_BASICS_H
#define DK_PROVIDERS_BASICS_H

#include <durakit/provider.h>

#include <time.h>

/* The only control macro: returns any status but DK_OK. */
#define TRY(expression)                                                                            \
  do {                                                                                             \
    dk_status try_status_ = (expression);                                                          \
    if (try_status_ != DK_OK)                                                                      \
      return try_status_;                                                                          \
  } while (0)

/* TIME-5: a sum of times stops at the ends. */
static inline int64_t
time_add(int64_t a, int64_t b)
{
  int64_t sum;

  if (!__builtin_add_overflow(a, b, &sum))
    return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t
time_earlier(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* Real time, for waits that decide nothing but how long they last.  Leases and visibility go by the
 * host's clock.  Never 0. */
static inline int64_t
real_ms(void)
{
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000 + 1;
}

#endif
