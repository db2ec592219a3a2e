/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that stop at the limits instead of overflowing: for times, where "for ever" plus a delay is
 * still "for ever".  Owns nothing. */
#ifndef DK_BASE_SAT_H
#define DK_BASE_SAT_H

#include <stdint.h>

static inline int64_t
dk_sat_add(int64_t a, int64_t b)
{
  int64_t sum;

  if (!__builtin_add_overflow(a, b, &sum))
    return sum;
  /* Only two numbers of the same sign can overflow. */
  return a < 0 ? INT64_MIN : INT64_MAX;
}

#endif
