/* SPDX-License-Identifier: Apache-2.0 */
/* A small store and everything outside, for random programs: it delivers at random, loses turns,
 * and checks whether what an orchestration does agrees with what it did before.
 *
 * One thread at a time. */
#ifndef DK_RUNTIME_TESTING_RANDOM_WORLD_H
#define DK_RUNTIME_TESTING_RANDOM_WORLD_H

#include <durakit/runtime.h>

struct tally { /* what has happened to the programs */
  unsigned long turns, lost, gone_on, strays, events, drops, cancelled_rows, terminal[8];
};

/* Plays one program from its start to its end; what it does, and what happens to it, follows from
 * the seed.  NULL: nothing disagreed; else the first thing that did, in a static buffer. */
const char *world_play(uint64_t seed, dk_orchestration_fn *program, struct tally *tally);

#endif
