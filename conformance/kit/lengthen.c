/* SPDX-License-Identifier: Apache-2.0 */
/* Of a variation: the lists of a request get many entries that name nothing, some of them twice,
 * and are in no order, so that the call does what it would have done.  Owns nothing. */
#include "conformance/kit/vary.h"

#include <inttypes.h>
#include <string.h>

#include "conformance/kit/kit.h"

enum {
  TWICE = 7,    /* each such entry comes twice */
  OTHERS = 5,   /* ... is of an execution that there is not, in a list that is not long */
  LONG = 1000,
  APART = 3,    /* the numbers in a long list lie close together */
  BEYOND = 50000 /* where no check has activities */
};

/* The same each time, so that a twin run and a rerun send the same. */
static size_t
next_place(uint64_t *state, size_t n)
{
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (size_t)((*state >> 33) % n);
}

static void
shuffle(void *list, size_t n, size_t size)
{
  uint64_t state = n;
  char *items = list, kept[64];

  for (size_t i = n; i > 1; i--) {
    size_t place = next_place(&state, i);

    memcpy(kept, items + (i - 1) * size, size);
    memcpy(items + (i - 1) * size, items + place * size, size);
    memcpy(items + place * size, kept, size);
  }
}

/* A longer copy of the list, of `all` entries; NULL: no memory. */
static void *
longer(struct dk_arena *arena, const void *list, size_t n, size_t all, size_t size)
{
  char *copy = dk_arena_array(arena, all, size);

  if (copy != NULL && n > 0)
    memcpy(copy, list, n * size);
  return copy;
}

/* A long list is of one execution, as a fan-out is; of a short one the numbers lie far apart. */
static struct dk_activity
absent_activity(const struct dk_activity *first, size_t i, bool is_long)
{
  uint64_t number = is_long ? BEYOND + APART * i : (UINT64_C(1) << 60) + i;

  return (struct dk_activity){
    !is_long && i % OTHERS == 0 ? INT64_MAX - i : first->execution_id, number
  };
}

static const struct dk_activity *
lengthen_activities(struct dk_arena *arena, const struct dk_activity *list, size_t n, size_t all)
{
  struct dk_activity *made = longer(arena, list, n, all, sizeof(*made));

  for (size_t i = n; made != NULL && i < all; i++)
    made[i] = i % TWICE == 0 ? made[i / 2] : absent_activity(list, i, all > LONG);
  if (made != NULL)
    shuffle(made, all, sizeof(*made));
  return made;
}

static const struct dk_bytes *
lengthen_ids(struct dk_arena *arena, const struct dk_bytes *list, size_t n, size_t all)
{
  struct dk_bytes *made = longer(arena, list, n, all, sizeof(*made));

  for (size_t i = n; made != NULL && i < all; i++) {
    if (i % TWICE == 0) {
      made[i] = made[i / 2];
      continue;
    }
    const char *text = dk_arena_printf(arena, "%zu: no such id", i * 2654435761 % 100003);
    if (text == NULL)
      return NULL;
    made[i] = (struct dk_bytes){text, strlen(text)};
  }
  if (made != NULL)
    shuffle(made, all, sizeof(*made));
  return made;
}

/* No check pins an instance so high. */
static struct dk_version_range
absent_range(size_t i)
{
  uint32_t major = UINT32_MAX - 1 - 2 * (uint32_t)(i * 7919 % 100003);

  return (struct dk_version_range){{major, 0, 1}, {major, UINT32_MAX, 0}};
}

static const struct dk_version_range *
lengthen_ranges(struct dk_arena *arena, const struct dk_version_range *list, size_t n, size_t all)
{
  struct dk_version_range *made = longer(arena, list, n, all, sizeof(*made));

  for (size_t i = n; made != NULL && i < all; i++)
    made[i] = i % TWICE == 0 ? made[i / 2] : absent_range(i);
  if (made != NULL)
    shuffle(made, all, sizeof(*made));
  return made;
}

/* How long the lists of a commit may become: all of its entries count. */
static size_t
room_in(const struct dk_turn_result *r, const struct dk_limits *limits)
{
  uint64_t n = r->n_events + r->n_worker_items + r->n_orchestrator_items +
               r->n_cancelled_activities + r->n_cancelled_messages + r->n_kv;

  return limits->max_commit_items > n ? (size_t)(limits->max_commit_items - n) : 0;
}

bool
kit_lengthen_result(struct dk_arena *arena, size_t by, const struct dk_limits *limits,
                    struct dk_turn_result *r)
{
  size_t room = room_in(r, limits) / 2, more = by < room ? by : room;

  if (r->n_cancelled_activities > 0) {
    r->cancelled_activities = lengthen_activities(arena, r->cancelled_activities,
                                                  r->n_cancelled_activities,
                                                  r->n_cancelled_activities + more);
    r->n_cancelled_activities += more;
    if (r->cancelled_activities == NULL)
      return false;
  }
  if (r->n_cancelled_messages > 0) {
    r->cancelled_messages = lengthen_ids(arena, r->cancelled_messages, r->n_cancelled_messages,
                                         r->n_cancelled_messages + more);
    r->n_cancelled_messages += more;
  }
  return r->n_cancelled_messages == 0 || r->cancelled_messages != NULL;
}

bool
kit_lengthen_fetch(struct dk_arena *arena, size_t by, struct op *op)
{
  enum { MANY = 300 }; /* a worker has no more tags and versions */
  size_t more = by < MANY ? by : MANY;

  if (op->fetch_work.n_tags > 0) {
    size_t all = op->fetch_work.n_tags + more;
    op->fetch_work.tags = lengthen_ids(arena, op->fetch_work.tags, op->fetch_work.n_tags, all);
    op->fetch_work.n_tags = all;
    if (op->fetch_work.tags == NULL)
      return false;
  }
  if (op->fetch_turn.n_ranges > 0) {
    size_t all = op->fetch_turn.n_ranges + more;
    op->fetch_turn.ranges = lengthen_ranges(arena, op->fetch_turn.ranges, op->fetch_turn.n_ranges,
                                            all);
    op->fetch_turn.n_ranges = all;
    if (op->fetch_turn.ranges == NULL)
      return false;
  }
  return true;
}
