/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks: milliseconds of CLOCK_MONOTONIC, by which the runtime waits and judges leases.  A wall
 * clock that is set changes nothing here. */
#ifndef DK_RUNTIME_SHARED_TICKS_H
#define DK_RUNTIME_SHARED_TICKS_H

#include <durakit/host.h>

#include "core/base/lock.h"

int64_t ticks_now(void);
/* The same clock in nanoseconds, for what takes less than a tick. */
int64_t ticks_ns(void);
/* The same, cheap enough to be asked for at every call of a replay; a few milliseconds behind. */
int64_t ticks_roughly(void);
/* The tick at which a lease of `deadline` (the host's clock, as in struct dk_turn) ends. */
int64_t ticks_of(struct dk_store *store, int64_t deadline);
/* So many milliseconds after that tick; at most INT64_MAX. */
int64_t ticks_after(int64_t tick, int64_t ms);

/* A condition whose waits are limited by ticks. */
void ticks_cond_init(pthread_cond_t *condition);
/* Waits until it is signalled or the tick has come (INT64_MAX: no limit); may return early. */
void ticks_cond_wait(pthread_cond_t *condition, struct dk_lock *lock, int64_t until);

#endif
