/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks: milliseconds of CLOCK_MONOTONIC, which the runtime uses for waits and leases.  Setting the
 * wall clock has no effect here. */
#ifndef DK_RUNTIME_SHARED_TICKS_H
#define DK_RUNTIME_SHARED_TICKS_H

#include <durakit/host.h>

#include "core/base/lock.h"

int64_t ticks_now(void);
/* The same clock in nanoseconds, for durations below a tick. */
int64_t ticks_ns(void);
/* The same as ticks_now, but cheap enough for every call of a replay; a few milliseconds late. */
int64_t ticks_roughly(void);
/* The tick at which a lease of `deadline` (the host's clock, as in struct dk_turn) ends. */
int64_t ticks_of(struct dk_store *store, int64_t deadline);
/* `ms` milliseconds after that tick; at most INT64_MAX. */
int64_t ticks_after(int64_t tick, int64_t ms);

static inline int64_t
ticks_sooner(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* A condition whose waits are limited by ticks. */
void ticks_cond_init(pthread_cond_t *condition);
/* Waits until it is signalled or the tick has come (INT64_MAX: no limit); may return early. */
void ticks_cond_wait(pthread_cond_t *condition, struct dk_lock *lock, int64_t until);

#endif
