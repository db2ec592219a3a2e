/* SPDX-License-Identifier: Apache-2.0 */
/* Real time, for waits that decide nothing but how long they last.  Leases and visibility go by the
 * host's clock. */
#ifndef DK_SQLITE_ELAPSED_H
#define DK_SQLITE_ELAPSED_H

#include <stdint.h>
#include <time.h>

static inline int64_t
real_ms(void)
{
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

#endif
