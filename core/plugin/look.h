/* SPDX-License-Identifier: Apache-2.0 */
/* Polls the descriptors of a wait, for both clocks.  Owns nothing. */
#ifndef DK_PLUGIN_LOOK_H
#define DK_PLUGIN_LOOK_H

#include <durakit/clock.h>

enum { DK_LOOK_CANCELLED = 1u, DK_LOOK_READY = 2u, DK_LOOK_BELL = 4u };

/* Polls until one of the wait's descriptors or `bell` is ready, for at most `limit_ms` of real time
 * (-1: no limit).  Returns what is ready, or 0.  Descriptors of -1 are ignored. */
unsigned dk_look(const struct dk_wait *wait, int bell, int64_t limit_ms);

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t dk_monotonic_ms(void);

/* The first rings an eventfd, the second clears all its rings; neither blocks. */
void dk_ring(int bell);
void dk_unring(int bell);

#endif
