/* SPDX-License-Identifier: Apache-2.0 */
/* PIN: an instance is handed out only to a fetch whose ranges hold its version. */
#include <stdio.h>

#include "conformance/checks/checks.h"

enum { WAIT_MS = 60000 };

static const struct dk_version_range only_1 = {{1, 0, 0}, {1, UINT32_MAX, UINT32_MAX}};
static const struct dk_version_range only_2 = {{2, 0, 0}, {2, UINT32_MAX, UINT32_MAX}};
static const struct dk_version_range only_3 = {{3, 0, 0}, {3, UINT32_MAX, UINT32_MAX}};
static const struct dk_version_range only_99 = {{99, 0, 0}, {99, 9, 9}};
static const struct dk_version_range none = {{0, 0, 0}, {0, 0, 0}};

static struct dk_version
version(uint32_t major, uint32_t minor, uint32_t patch)
{
  return (struct dk_version){major, minor, patch};
}

/* A known instance with this pin, NULL: none.  No other instance may be ready. */
static void
given_pinned(struct dk_check *t, const char *instance, const struct dk_version *pin)
{
  must(t, enqueue(t, instance));
  must(t, ack_turn(t, fetch_turn(t), .events = {{1}}, .pinned = pin));
}

/* Does a fetch with these ranges return a turn?  It is abandoned, and not counted. */
static bool
comes(struct dk_check *t, const struct dk_version_range *ranges, size_t n)
{
  struct dk_turn *turn;
  dk_status status = try_fetch_turn(t, &turn, .ranges = ranges, .n_ranges = n);

  if (status == DK_OK)
    must(t, abandon_turn(t, turn->head.lock_token, .ignore_attempt = true));
  else
    expect_status(t, status, DK_NOTHING);
  return status == DK_OK;
}

/* The turn that a fetch with these ranges must return. */
static struct dk_turn *
turn_for(struct dk_check *t, const struct dk_version_range *range, const char *whom)
{
  struct dk_turn *turn;
  dk_status status = try_fetch_turn(t, &turn, .ranges = range, .n_ranges = 1);

  expect(t, status != DK_NOTHING, "%s must be returned by a fetch for %u.%u.%u to %u.%u.%u", whom,
         range->min.major, range->min.minor, range->min.patch, range->max.major, range->max.minor,
         range->max.patch);
  expect_status(t, status, DK_OK);
  return turn;
}

struct trial {
  struct dk_version pin, min, max;
  bool fits;
};

/* Each pin is given to "inst" by a commit, and a fetch asks for its range. */
static void
expect_trials(struct dk_check *t, const struct trial *trials, size_t n)
{
  given_pinned(t, "inst", &trials[0].pin);
  for (size_t i = 0; i < n; i++) {
    const struct trial *a = &trials[i];
    const struct dk_version_range range = {a->min, a->max};

    must(t, ack_turn(t, next_turn(t, "inst"), .pinned = &a->pin));
    must(t, enqueue(t, "inst"));
    expect(t, comes(t, &range, 1) == a->fits,
           "pin %u.%u.%u lies %s the range from %u.%u.%u to %u.%u.%u, so that the instance %s",
           a->pin.major, a->pin.minor, a->pin.patch, a->fits ? "in" : "outside", a->min.major,
           a->min.minor, a->min.patch, a->max.major, a->max.minor, a->max.patch,
           a->fits ? "is fetched" : "is skipped");
  }
}
#define expect_all(t, trials) expect_trials(t, trials, sizeof(trials) / sizeof((trials)[0]))

/* ---- skipped --------------------------------------------------------------------------------- */

/* PIN-1: what does not fit is neither locked nor counted nor moved. */
void
pin_skipped_stays_as_it_is(struct dk_check *t)
{
  struct dk_version pin = version(1, 2, 3);

  given_pinned(t, "inst", &pin);
  must(t, enqueue(t, "inst", .id = "m"));
  before(t);
  expect_no_turn(t, .ranges = &only_2, .n_ranges = 1);
  expect_no_turn(t, .ranges = &only_99, .n_ranges = 1, .owner = "me");
  expect_no_turn(t, .ranges = &none, .n_ranges = 1);
  expect_unchanged(t);
  struct dk_turn *turn = turn_for(t, &only_1, "an instance that others have skipped");
  expect_ids(t, turn, "m");
  expect_equal(t, turn->messages[0].attempt, 1, "attempt of a message that was skipped");
  expect_equal(t, turn->n_events, 1, "events");
}

enum { SKIPPED = 120, IN_COMMIT = 60, SENDERS = 4 };

/* This turn's commit sends a message to half of them. */
static void
send_to_half(struct dk_check *t, const struct dk_turn *sender, char names[SKIPPED][16], size_t half)
{
  struct dk_item items[IN_COMMIT];
  const struct dk_item *pointers[IN_COMMIT];

  for (size_t i = 0; i < IN_COMMIT; i++) {
    items[i] = (struct dk_item){.struct_size = sizeof items[i], .payload = bytes("message"),
                                .instance = bytes(names[half * IN_COMMIT + i])};
    pointers[i] = &items[i];
  }
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .name = bytes("order"), .version = bytes("1.0.0"),
                                  .orchestrator_items = pointers,
                                  .n_orchestrator_items = IN_COMMIT};
  must(t, ack_turn(t, sender, .raw = &result));
}

/* PIN-1: the one that fits is found behind many that do not. */
void
pin_skipped_hold_up_nobody(struct dk_check *t)
{
  struct dk_version old = version(1, 0, 0), new = version(2, 0, 0);
  struct dk_turn *senders[SENDERS];
  char names[SKIPPED][16];

  for (size_t i = 0; i < SKIPPED; i++)
    snprintf(names[i], sizeof names[i], "old-%zu", i);
  given_pinned(t, "new", &new);
  for (size_t i = 0; i < SENDERS; i++) {
    must(t, enqueue(t, i == 0 ? "s0" : i == 1 ? "s1" : i == 2 ? "s2" : "s3"));
    senders[i] = fetch_turn(t, .lock_ms = 10 * WAIT_MS);
  }
  send_to_half(t, senders[0], names, 0);
  send_to_half(t, senders[1], names, 1);
  for (size_t i = 0; i < SKIPPED; i++)
    must(t, ack_turn(t, fetch_turn(t), .pinned = &old));
  send_to_half(t, senders[2], names, 0);
  send_to_half(t, senders[3], names, 1);
  expect_no_turn(t, .ranges = &only_2, .n_ranges = 1);

  advance(t, 10);
  must(t, enqueue(t, "new", .id = "last"));
  struct dk_turn *turn = turn_for(t, &only_2, "the one that fits, behind 120 that do not,");
  expect_text(t, turn->head.instance, "new", "the instance that fits");
  expect_no_turn(t, .ranges = &only_2, .n_ranges = 1);
  turn = fetch_turn(t, .ranges = &only_1, .n_ranges = 1);
  expect_equal(t, turn->messages[0].attempt, 1, "attempt of a message that was skipped");
}

/* PIN-1: a waiting fetch returns the instance that fits, and none that does not. */
void
pin_waits_for_what_fits(struct dk_check *t)
{
  struct actor *waiter = another_thread(t);
  struct dk_version old = version(1, 0, 0), new = version(2, 0, 0);
  struct dk_turn *turn;

  given_pinned(t, "old", &old);
  given_pinned(t, "new", &new);
  must(t, try_fetch_turn(t, &turn, .on = waiter, .start = true, .wait_ms = WAIT_MS,
                         .ranges = &only_2, .n_ranges = 1));
  until_it_waits(t, waiter);
  insist(t, enqueue(t, "old", .id = "of no use"));
  advance(t, 10);
  until_it_waits(t, waiter);
  insist(t, enqueue(t, "new", .id = "awaited"));
  expect_status(t, finish(t, waiter), DK_OK);
  turn = finished_turn(t, waiter);
  expect_text(t, turn->head.instance, "new", "the instance that fits");
  expect_ids(t, turn, "awaited");
  turn = fetch_turn(t, .ranges = &only_1, .n_ranges = 1);
  expect_ids(t, turn, "of no use");
  expect_equal(t, turn->messages[0].attempt, 1, "attempt of what was skipped");
}

/* ---- no ranges, and none --------------------------------------------------------------------- */

/* An unknown, an unpinned and a pinned instance, each with a message. */
static void
given_three(struct dk_check *t)
{
  struct dk_version pin = version(1, 0, 0);

  given_pinned(t, "pinned", &pin);
  given_pinned(t, "unpinned", NULL);
  must(t, enqueue(t, "pinned", .id = "a"));
  must(t, enqueue(t, "unpinned", .id = "b"));
  must(t, enqueue(t, "unknown", .id = "c"));
}

static void
expect_all_three(struct dk_check *t)
{
  struct taken_turns taken = take_turns(t);

  expect_equal(t, taken.n, 3, "turns without ranges");
  expect(t, turn_of(&taken, "pinned"), "a fetch without ranges returns the pinned instance");
  expect(t, turn_of(&taken, "unpinned"), "a fetch without ranges returns the unpinned instance");
  expect(t, turn_of(&taken, "unknown"), "a fetch without ranges returns the unknown instance");
}

/* PIN-2: a fetch without ranges takes every instance. */
void
pin_no_ranges_take_all(struct dk_check *t)
{
  given_three(t);
  expect_all_three(t);
}

/* PIN-2: an empty list of ranges takes nothing. */
void
pin_empty_list_takes_none(struct dk_check *t)
{
  given_three(t);
  before(t);
  expect_no_turn(t, .ranges = &only_1, .n_ranges = 0);
  expect_no_turn(t, .ranges = &only_1, .n_ranges = 0, .owner = "me");
  expect_unchanged(t);
  expect_all_three(t);
}

/* ---- which ranges ---------------------------------------------------------------------------- */

/* PIN-3: a range holds its two ends, and what lies between. */
void
pin_both_ends_included(struct dk_check *t)
{
  static const struct trial trials[] = {
    {{1, 5, 3}, {1, 5, 3}, {1, 5, 3}, true},  {{1, 5, 3}, {1, 5, 3}, {2, 0, 0}, true},
    {{1, 5, 3}, {1, 0, 0}, {1, 5, 3}, true},  {{1, 5, 3}, {1, 5, 2}, {1, 5, 4}, true},
    {{1, 5, 3}, {1, 5, 4}, {9, 9, 9}, false}, {{1, 5, 3}, {0, 0, 0}, {1, 5, 2}, false},
    {{1, 5, 3}, {2, 0, 0}, {1, 0, 0}, false}, {{0, 0, 0}, {0, 0, 0}, {0, 0, 1}, true},
    {{0, 0, 0}, {0, 0, 1}, {0, 0, 9}, false},
  };

  expect_all(t, trials);
}

/* PIN-3: one range that holds the pin is enough, whatever its place in the list; a gap between
 * ranges holds none. */
void
pin_any_range_will_do(struct dk_check *t)
{
  const struct dk_version_range apart[] = {only_1, only_3}, backward[] = {only_3, only_1};
  const struct dk_version_range many[] = {only_99, only_99, none, only_3, only_1, only_1};
  struct dk_version pin = version(1, 4, 0);

  given_pinned(t, "inst", &pin);
  must(t, enqueue(t, "inst"));
  expect(t, comes(t, apart, 2), "the first of two ranges holds the pin");
  expect(t, comes(t, backward, 2), "the second of two ranges holds the pin");
  expect(t, comes(t, many, 6), "the last of many ranges holds the pin");
  expect(t, !comes(t, many, 4), "none of these ranges holds the pin");
  pin = version(2, 4, 0);
  must(t, ack_turn(t, fetch_turn(t), .pinned = &pin));
  must(t, enqueue(t, "inst"));
  expect(t, !comes(t, apart, 2), "the pin lies in the gap between two ranges");
  expect(t, !comes(t, backward, 2), "the pin lies in the gap, whatever the order of the ranges");
}

/* PIN-3: a long list, in no order, with a gap behind each range; some ranges come twice. */
void
pin_many_ranges(struct dk_check *t)
{
  enum { ALL = 10000, STEP = 7919, GAP = 2, PLACES = 5 };
  static const uint32_t places[PLACES] = {0, 127, 1000, ALL / 2, ALL - 1};
  static struct dk_version_range ranges[ALL];
  struct dk_version pin = version(1, 0, 0);

  for (uint32_t i = 0; i < ALL; i++) {
    uint32_t minor = GAP * (i % 11 == 10 ? i - 10 : i * STEP % ALL);

    ranges[i] = (struct dk_version_range){{1, minor, 0}, {1, minor, 9}};
  }
  given_pinned(t, "inst", &pin);
  for (size_t i = 0; i < PLACES; i++) {
    pin.minor = ranges[places[i]].min.minor;
    must(t, enqueue(t, "inst"));
    must(t, ack_turn(t, fetch_turn(t), .pinned = &pin));
    must(t, enqueue(t, "inst"));
    expect(t, comes(t, ranges, ALL), "range %u of %d holds the pin 1.%u.0", places[i] + 1, ALL,
           pin.minor);
    pin.minor++;
    must(t, ack_turn(t, fetch_turn(t), .pinned = &pin));
    must(t, enqueue(t, "inst"));
    expect(t, !comes(t, ranges, ALL), "the pin 1.%u.0 lies in a gap of %d ranges", pin.minor, ALL);
    must(t, ack_turn(t, fetch_turn(t)));
  }
}

/* ---- compared -------------------------------------------------------------------------------- */

/* PIN-4: 0.10 comes after 0.9; a minor means something only where the majors are equal. */
void
pin_compared_as_numbers(struct dk_check *t)
{
  static const struct trial trials[] = {
    {{0, 10, 0}, {0, 9, 0}, {0, 11, 0}, true},     {{0, 10, 0}, {0, 1, 0}, {0, 9, 99}, false},
    {{0, 1, 26}, {0, 1, 9}, {0, 1, 100}, true},    {{0, 1, 26}, {0, 1, 0}, {0, 1, 9}, false},
    {{10, 0, 0}, {9, 0, 0}, {11, 0, 0}, true},     {{10, 0, 0}, {1, 0, 0}, {9, 9, 9}, false},
    {{1, 9, 7}, {1, 0, 0}, {2, 0, 0}, true},       {{1, 9, 7}, {1, 2, 8}, {2, 3, 1}, true},
    {{2, 0, 0}, {1, 5, 5}, {3, 0, 0}, true},       {{1, 2, 9}, {1, 2, 0}, {1, 3, 0}, true},
    {{2, 1, 0}, {1, 0, 0}, {2, 0, 9}, false},      {{1, 1, 1}, {1, 1, 2}, {1, 9, 9}, false},
  };

  expect_all(t, trials);
}

/* PIN-4: no part runs over into the next one. */
void
pin_parts_beyond_a_thousand(struct dk_check *t)
{
  static const struct trial trials[] = {
    {{1, 1000, 0}, {2, 0, 0}, {2, 0, 0}, false},
    {{2, 0, 0}, {1, 1000, 0}, {1, 1000, 0}, false},
    {{0, 0, 1000}, {0, 1, 0}, {0, 1, 0}, false},
    {{1, 2, 1000000}, {1, 2, 0}, {1, 2, 1000000}, true},
    {{1, 2, 1000000}, {1, 3, 0}, {9, 0, 0}, false},
    {{1, 2, 20261118}, {1, 2, 20261117}, {1, 2, 20261119}, true},
    {{1, 65536, 0}, {1, 65535, 0}, {1, 65537, 0}, true},
    {{1, 256, 0}, {1, 1, 0}, {1, 255, 0}, false},
  };

  expect_all(t, trials);
}

/* PIN-4: over the whole width of uint32_t. */
void
pin_whole_width(struct dk_check *t)
{
  enum { TWO_21 = 1 << 21 };
  const uint32_t most = UINT32_MAX, half = UINT32_C(1) << 31;
  const struct trial trials[] = {
    {{most, most, most}, {most, most, most}, {most, most, most}, true},
    {{most, most, most}, {0, 0, 0}, {most, most, most - 1}, false},
    {{half, 0, 0}, {half - 1, 0, 0}, {most, 0, 0}, true},
    {{half, 0, 0}, {0, 0, 0}, {half - 1, most, most}, false},
    {{1, half, 0}, {1, half - 1, 0}, {1, half + 1, 0}, true},
    {{1, 1, most}, {1, 1, 1}, {1, 1, most}, true},
    {{0, TWO_21, 0}, {1, 0, 0}, {1, most, most}, false},
    {{0, most, most}, {1, 0, 0}, {most, most, most}, false},
    {{0, most, 0}, {0, 1, 0}, {0, most, most}, true},
  };

  expect_all(t, trials);
}

/* ---- without a pin --------------------------------------------------------------------------- */

/* PIN-5: an instance without a pin, or an unknown one, fits all ranges. */
void
pin_unpinned_fit_all(struct dk_check *t)
{
  const struct dk_version_range all[] = {{{99, 0, 0}, {99, 9, 9}},
                                         {{0, 0, 0}, {0, 0, 0}},
                                         {{UINT32_MAX, 0, 0}, {UINT32_MAX, 0, 0}}};

  given_pinned(t, "known", NULL);
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    must(t, enqueue(t, "known"));
    must(t, ack_turn(t, turn_for(t, &all[i], "an instance without a pin")));
    must(t, enqueue(t, "unknown"));
    struct dk_turn *turn = turn_for(t, &all[i], "an instance that was never committed");
    expect_text(t, turn->head.instance, "unknown", "the instance that was never committed");
    must(t, ack_turn(t, turn, .empty = true));
  }
}

/* ---- whose pin ------------------------------------------------------------------------------- */

static void
expect_only(struct dk_check *t, const struct dk_version_range *fits, const char *when)
{
  const struct dk_version_range *const all[] = {&only_1, &only_2, &only_3};

  must(t, enqueue(t, "inst", .id = "probe"));
  for (size_t i = 0; i < 3; i++) {
    bool is_fit = !fits || fits == all[i];

    expect(t, comes(t, all[i], 1) == is_fit, "%s, the instance %s a fetch for %u.x.x", when,
           is_fit ? "is returned by" : "is skipped by", all[i]->min.major);
  }
}

static struct dk_turn *
probed_turn(struct dk_check *t)
{
  struct dk_turn *turn = fetch_turn(t);

  expect_ids(t, turn, "probe");
  return turn;
}

/* PIN-6: a pin stays until a commit gives another one. */
void
pin_kept_and_replaced(struct dk_check *t)
{
  struct dk_version one = version(1, 0, 0), two = version(2, 0, 0);

  given_pinned(t, "inst", &one);
  expect_only(t, &only_1, "pinned by its first commit");
  must(t, ack_turn(t, probed_turn(t), .events = {{2}}, .status = DK_RUNNING));
  expect_only(t, &only_1, "after a commit without a pin");
  must(t, ack_turn(t, probed_turn(t), .empty = true));
  expect_only(t, &only_1, "after an empty commit");
  must(t, ack_turn(t, probed_turn(t), .pinned = &two));
  expect_only(t, &only_2, "after a commit with another pin");
  must(t, ack_turn(t, probed_turn(t), .pinned = &one));
  expect_only(t, &only_1, "after a commit with the first pin again");
}

/* PIN-6: a pin may come with a later commit, and 0.0.0 is one. */
void
pin_given_later(struct dk_check *t)
{
  struct dk_version zero = version(0, 0, 0), two = version(2, 7, 1);

  given_pinned(t, "inst", NULL);
  expect_only(t, NULL, "without a pin");
  must(t, ack_turn(t, probed_turn(t), .pinned = &two));
  expect_only(t, &only_2, "pinned by its second commit");
  must(t, ack_turn(t, probed_turn(t), .pinned = &zero));
  must(t, enqueue(t, "inst"));
  expect(t, comes(t, &none, 1), "a fetch for 0.0.0 returns an instance pinned to 0.0.0");
  expect(t, !comes(t, &only_2, 1), "0.0.0 is a pin: the instance does not fit all ranges");
}

/* PIN-6: the old execution's pin decides until the new execution is committed, and no longer. */
void
pin_of_its_execution(struct dk_check *t)
{
  struct dk_version one = version(1, 0, 0), three = version(3, 0, 0);

  given_pinned(t, "inst", &one);
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_CONTINUED_AS_NEW));
  expect_only(t, &only_1, "ended, with the next execution still to come");
  must(t, ack_turn(t, probed_turn(t), .execution_id = 2, .events = {{1}}));
  expect_only(t, NULL, "in a new execution without a pin");
  must(t, ack_turn(t, probed_turn(t), .execution_id = 3, .events = {{1}}, .pinned = &three));
  expect_only(t, &only_3, "in a new execution with a pin");
  must(t, ack_turn(t, probed_turn(t), .execution_id = 3, .status = DK_COMPLETED));
  expect_only(t, &only_3, "when it has ended");
}

/* PIN-6: pins are stored. */
void
pin_same_after_reopening(struct dk_check *t)
{
  struct dk_version two = version(2, UINT32_MAX, UINT32_MAX);

  given_pinned(t, "inst", &two);
  close_handle(t, NULL);
  open_handle(t, NULL);
  expect_only(t, &only_2, "after the store was opened again");
}
