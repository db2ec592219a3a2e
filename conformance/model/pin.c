/* SPDX-License-Identifier: Apache-2.0 */
/* PIN: which instances fit the version ranges of a fetch. */
#include <stdio.h>
#include <string.h>

#include "conformance/model/model.h"

/* ---- versions -------------------------------------------------------------------------------- */

static int
sign(uint64_t a, uint64_t b)
{
  return a < b ? -1 : a > b;
}

/* PIN-4. */
static int
compare_numbers(struct dk_version a, struct dk_version b)
{
  int by_major = sign(a.major, b.major), by_minor = sign(a.minor, b.minor);

  return by_major ? by_major : by_minor ? by_minor : sign(a.patch, b.patch);
}

/* What mutants compare instead. */
static int
compare_texts(struct dk_version a, struct dk_version b)
{
  char one[40], two[40];

  snprintf(one, sizeof one, "%u.%u.%u", a.major, a.minor, a.patch);
  snprintf(two, sizeof two, "%u.%u.%u", b.major, b.minor, b.patch);
  int order = strcmp(one, two);
  return order < 0 ? -1 : order > 0;
}

static int
compare_packed_by_thousands(struct dk_version a, struct dk_version b)
{
  uint64_t million = 1000000, thousand = 1000;

  return sign(a.major * million + a.minor * thousand + a.patch,
              b.major * million + b.minor * thousand + b.patch);
}

static int
compare_packed_by_bits(struct dk_version a, struct dk_version b)
{
  enum { BITS = 21 };

  return sign((uint64_t)a.major << 2 * BITS | (uint64_t)a.minor << BITS | a.patch,
              (uint64_t)b.major << 2 * BITS | (uint64_t)b.minor << BITS | b.patch);
}

static struct dk_version
moved_by_half(struct dk_version v)
{
  uint32_t half = UINT32_C(1) << 31;

  return (struct dk_version){v.major ^ half, v.minor ^ half, v.patch ^ half};
}

static int
compare_signed(struct dk_version a, struct dk_version b)
{
  return compare_numbers(moved_by_half(a), moved_by_half(b));
}

static int
compare_versions(const struct store *s, struct dk_version a, struct dk_version b)
{
  static const struct {
    int32_t mutant;
    int (*compare)(struct dk_version, struct dk_version);
  } wrong[] = {
    {M_PIN_AS_TEXT, compare_texts},
    {M_PIN_PACKED_BY_THOUSANDS, compare_packed_by_thousands},
    {M_PIN_PACKED_BY_BITS, compare_packed_by_bits},
    {M_PIN_SIGNED, compare_signed},
  };
  int order = compare_numbers(a, b);

  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    if (DEFECT(wrong[i].mutant, wrong[i].compare(a, b) != order))
      return wrong[i].compare(a, b);
  return order;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static bool
holds_part_by_part(const struct dk_version_range *range, struct dk_version pin)
{
  return range->min.major <= pin.major && pin.major <= range->max.major &&
         range->min.minor <= pin.minor && pin.minor <= range->max.minor &&
         range->min.patch <= pin.patch && pin.patch <= range->max.patch;
}

/* PIN-3: both ends belong to a range. */
static bool
holds(const struct store *s, const struct dk_version_range *range, struct dk_version pin)
{
  int from_min = compare_versions(s, range->min, pin);
  int to_max = compare_versions(s, pin, range->max);
  bool is_held = from_min <= 0 && to_max <= 0;

  if (DEFECT(M_PIN_LOWER_END_EXCLUDED, is_held && from_min == 0) ||
      DEFECT(M_PIN_UPPER_END_EXCLUDED, is_held && to_max == 0) ||
      DEFECT(M_PIN_PARTS_BY_THEMSELVES, is_held && !holds_part_by_part(range, pin)))
    return false;
  return is_held;
}

/* From the smallest minimum to the largest maximum: mutants only. */
static struct dk_version_range
merged(const struct dk_fetch_turn *request)
{
  struct dk_version_range all = request->ranges[0];

  for (size_t i = 1; i < request->n_ranges; i++) {
    const struct dk_version_range *range = &request->ranges[i];
    if (compare_numbers(range->min, all.min) < 0)
      all.min = range->min;
    if (compare_numbers(range->max, all.max) > 0)
      all.max = range->max;
  }
  return all;
}

/* PIN-3: any one of the ranges, of which there is one at least. */
static bool
is_in_ranges(const struct store *s, const struct dk_fetch_turn *request, struct dk_version pin)
{
  enum { AN_ARRAY = 128 };
  struct dk_version_range all = merged(request);
  size_t n = 0;

  for (size_t i = 0; i < request->n_ranges && !DEFECT(M_PIN_RANGES_OF_128, i == AN_ARRAY); i++)
    n += holds(s, &request->ranges[i], pin) ? 1 : 0;
  if (DEFECT(M_PIN_FIRST_RANGE_ONLY, n > 0 && !holds(s, request->ranges, pin)) ||
      DEFECT(M_PIN_ALL_RANGES_MUST_HOLD, n > 0 && n < request->n_ranges))
    return false;
  return n > 0 || DEFECT(M_PIN_RANGES_MERGED, holds(s, &all, pin));
}

/* PIN-5: an instance without a pin, or an unknown one, fits all ranges. */
static bool
fits_without_pin(const struct store *s, const struct instance *turn,
                 const struct dk_fetch_turn *request)
{
  struct dk_version zero = {0, 0, 0};

  if (DEFECT(M_PIN_UNKNOWN_LEFT_OUT, !turn->current) ||
      DEFECT(M_PIN_UNPINNED_LEFT_OUT, turn->current != NULL) ||
      DEFECT(M_PIN_ABSENT_IS_ZERO, turn->current && !is_in_ranges(s, request, zero)))
    return false;
  return true;
}

/* PIN-2: without ranges all fit, with an empty list nothing does. */
bool
fits_ranges(const struct op *op, const struct instance *turn, const struct dk_fetch_turn *request)
{
  const struct store *s = op->s;
  const struct execution *e = turn->current;
  bool is_pinned = e && e->is_pinned;

  if (!request->ranges)
    return !DEFECT(M_PIN_NO_RANGES_IS_UNPINNED_ONLY, is_pinned);
  if (request->n_ranges == 0)
    return MUTANT(M_PIN_EMPTY_LIST_IS_NO_FILTER) ||
           DEFECT(M_PIN_EMPTY_LIST_TAKES_UNPINNED, !is_pinned);
  if (!is_pinned)
    return fits_without_pin(s, turn, request);
  if (is_in_ranges(s, request, e->pin))
    return true;
  bool is_zero = e->pin.major == 0 && e->pin.minor == 0 && e->pin.patch == 0;
  return DEFECT(M_PIN_ZERO_IS_ABSENT, is_zero) ||
         DEFECT(M_PIN_ENDED_DECIDES_NOTHING, e->status != DK_RUNNING) ||
         DEFECT(M_PIN_WAITER_TAKES_ANY, op->is_again);
}

/* PIN-1: what does not fit stays as it is.  Mutants lock it, or abandon it with a delay. */
void
pass_by_pinned(struct op *op, const struct instance *turn, const struct dk_fetch_turn *request)
{
  const struct store *s = op->s;

  if (MUTANT(M_PIN_SKIPPED_IS_LOCKED))
    STEP(op, .kind = TURN_LOCK, .instance = turn->id, .epoch = turn->lock.epoch,
         .until = op->now + request->lock_ms, .held = true, .handle = s->handle,
         .committed = turn->committed);
  if (MUTANT(M_PIN_SKIPPED_IS_MOVED))
    STEP(op, .kind = MESSAGES_BACK, .instance = turn->id, .visible_at = op->now + request->lock_ms);
  if (op->record.length)
    op->leaves_traces = true;
}
