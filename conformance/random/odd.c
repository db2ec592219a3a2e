/* SPDX-License-Identifier: Apache-2.0 */
/* Odd values: those at which providers go wrong, far more often than chance alone would draw them.
 */
#include "conformance/random/random.h"

/* ---- chance ---------------------------------------------------------------------------------- */

/* splitmix64: every seed is a good one, 0 too. */
uint64_t
draw(struct chance *chance)
{
  uint64_t z = chance->state += UINT64_C(0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

uint64_t
draw_below(struct chance *chance, uint64_t n)
{
  return draw(chance) % n;
}

bool
one_in(struct chance *chance, uint64_t n)
{
  return draw_below(chance, n) == 0;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

size_t
odd_size(struct chance *chance, size_t most)
{
  enum { HIGHEST_POWER = 16 };
  size_t size;

  switch (draw_below(chance, 8)) {
  case 0:
    size = 0;
    break;
  case 1:
  case 2:
    size = (size_t)1 << draw_below(chance, HIGHEST_POWER + 1);
    size += (size_t)draw_below(chance, 3) - 1;
    break;
  case 3:
    size = (size_t)draw_below(chance, 5000);
    break;
  default:
    size = 1 + (size_t)draw_below(chance, 24);
  }
  return size < most ? size : most;
}

/* ---- times ----------------------------------------------------------------------------------- */

static int64_t
one_of(struct chance *chance, const int64_t *times, size_t n)
{
  return times[draw_below(chance, n)];
}
#define ONE_OF(chance, ...)                                                                        \
  one_of(chance, (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / 8)

int64_t
odd_lease(struct chance *chance)
{
  if (!one_in(chance, 3))
    return one_in(chance, 2) ? 30000 : 60000;
  return ONE_OF(chance, 1, 2, 999, 1000, 1001, 5000, 30000, 3600000, (int64_t)UINT32_MAX,
                (int64_t)UINT32_MAX + 1, INT64_MAX / 2, INT64_MAX);
}

int64_t
odd_delay(struct chance *chance)
{
  if (!one_in(chance, 4))
    return 0;
  return ONE_OF(chance, 1, 2, 9, 10, 999, 1000, 1001, 5000, 30000, 60000, 86400000,
                (int64_t)INT32_MAX + 1, INT64_MAX - KIT_START, INT64_MAX);
}

int64_t
odd_passing(struct chance *chance)
{
  if (!one_in(chance, 4))
    return ONE_OF(chance, 1, 1, 2, 9, 10, 500, 998, 999, 1000, 1001);
  return ONE_OF(chance, 4000, 5000, 29999, 30000, 30001, 60000, 3600000);
}

/* ---- names and numbers ----------------------------------------------------------------------- */

const char *
look_alike(size_t number)
{
  static const char *const ids[LOOK_ALIKES] = {
    "order",     "Order",    "order ",        "ordes",         "orde",     "order%",   "o_der",
    "o*der",     "o?der",    "[o]rder",       "o'rder",        "o\"rder",  "o\\rder",  "10",
    "9",         "1e1",      "caf\xc3\xa9",   "cafe\xcc\x81",  "order\t",  "order:1",
  };

  return ids[number % LOOK_ALIKES];
}

uint64_t
odd_number(struct chance *chance)
{
  static const uint64_t ends[] = {
    INT32_MAX, (uint64_t)INT32_MAX + 1, UINT32_MAX, (uint64_t)UINT32_MAX + 1,
    (UINT64_C(1) << 53) - 1, (UINT64_C(1) << 53) + 1, INT64_MAX - 1, INT64_MAX,
  };

  if (one_in(chance, 12))
    return ends[draw_below(chance, sizeof(ends) / sizeof(ends[0]))];
  return 1 + draw_below(chance, 6);
}
