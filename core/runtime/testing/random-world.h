/* SPDX-License-Identifier: Apache-2.0 */
/* A small store and everything outside, for random programs: it delivers what it likes when it
 * likes, loses turns, and looks whether what an orchestration does fits to what it did before.
 *
 * One thread at a time. */
#ifndef DK_RUNTIME_TESTING_RANDOM_WORLD_H
#define DK_RUNTIME_TESTING_RANDOM_WORLD_H

#include <durakit/runtime.h>

struct tally { /* what the programs have met */
  unsigned long turns, lost, gone_on, strays, events, drops, cancelled_rows, terminal[8];
};

/* Plays one program from its start to its end; what it does, and what happens to it, follows from
 * the seed.  NULL: nothing disagreed; else the first thing that did, in a static buffer. */
const char *world_play(uint64_t seed, dk_orchestration_fn *program, struct tally *tally);

#endif
