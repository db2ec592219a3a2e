/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for the tests of the runtime: the same ones from the same seed.  Owns nothing. */
#ifndef DK_RUNTIME_TESTING_DICE_H
#define DK_RUNTIME_TESTING_DICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/plugin/memory.h"

struct dice {
  uint64_t state;
};

/* splitmix64 */
static inline uint64_t
dice_roll(struct dice *dice)
{
  uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* 0 to n - 1. */
static inline size_t
dice_below(struct dice *dice, size_t n)
{
  return (size_t)(dice_roll(dice) % n);
}

/* Numbers at the edges are more likely than others. */
static inline uint64_t
dice_number(struct dice *dice)
{
  static const uint64_t edges[] = {0, 1, 2, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};

  switch (dice_below(dice, 3)) {
  case 0:
    return edges[dice_below(dice, sizeof(edges) / sizeof(edges[0]))];
  case 1:
    return dice_below(dice, 1000);
  default:
    return dice_roll(dice) >> dice_below(dice, 64);
  }
}

/* How often a property is tried: a hundredth under Valgrind, 20 times with DURAKIT_DEEP. */
static inline unsigned
dice_rounds(unsigned usual)
{
  if (dk_memory_is_watched())
    return usual / 100 + 1;
  return getenv("DURAKIT_DEEP") ? usual * 20 : usual;
}

#endif
