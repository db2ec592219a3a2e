/* SPDX-License-Identifier: Apache-2.0 */
/* CANCEL-10: many at once.  The list of a commit is long, and mixed: free, held, delayed and tagged
 * rows, absent ones, some twice, of two executions; and however long it is, it is one step. */
#include "conformance/checks/checks.h"

/* Of execution 1: so many of each kind, twice as many plain ones; every step-th is not listed. */
struct many {
  uint64_t each, plain, tagged, delayed; /* ids up to which they go */
  uint64_t step;
  size_t n;                              /* of the list */
  struct dk_activity *list;
  const struct dk_work_item **held;
  size_t n_held;
};

enum { MOST_OF_EACH = 300, KEPT = 12, MOST_HELD = 4 * MOST_OF_EACH, HELD_LONG_MS = 4 * LEASE_MS };

static void *
room(struct dk_check *t, size_t n, size_t size)
{
  return (void *)filled(t, n * size, 0).ptr;
}

static struct many
given_many(struct dk_check *t)
{
  uint64_t limit = provider(t)->limits->max_commit_items / 8;
  struct many many = {.each = (limit < MOST_OF_EACH ? limit : MOST_OF_EACH) / KEPT * KEPT};

  many.plain = 2 * many.each;
  many.tagged = many.plain + many.each;
  many.delayed = many.tagged + many.each;
  many.step = many.delayed / KEPT;
  many.list = room(t, 8 * many.each, sizeof *many.list);
  many.held = room(t, MOST_HELD, sizeof *many.held);
  given_instance(t, "inst");
  given_instance_with_activities(t, "other", 16);
  schedule_many(t, (struct dk_item){.activity_id = 1, .payload = bytes("plain")}, many.plain);
  schedule_many(t, (struct dk_item){.activity_id = many.plain + 1, .tag = bytes("gpu"),
                                    .payload = bytes("tagged")}, many.each);
  schedule_many(t, (struct dk_item){.activity_id = many.tagged + 1, .delay_ms = 60000,
                                    .payload = bytes("delayed")}, many.each);
  return many;
}

/* About half of what is ready; which, the provider chooses. */
static void
hold_half(struct dk_check *t, struct many *many)
{
  struct dk_works *works;

  while (many->n_held < many->tagged / 2) {
    expect_status(t, try_fetch_work(t, &works, .max_items = BATCH, .lock_ms = HELD_LONG_MS), DK_OK);
    expect(t, works->n_items <= BATCH, "a fetch brings at most what it was asked for");
    for (size_t i = 0; i < works->n_items && many->n_held < MOST_HELD; i++)
      many->held[many->n_held++] = &works->items[i];
  }
}

static bool
is_kept(const struct many *many, uint64_t activity_id)
{
  return activity_id % many->step == 0;
}

static void
list_one(struct many *many, uint64_t execution_id, uint64_t activity_id)
{
  many->list[many->n++] = (struct dk_activity){execution_id, activity_id};
}

/* In no order; the execution changes on the way, and some come twice. */
static void
list_many(struct many *many)
{
  for (uint64_t i = 1; i <= 8; i++)
    list_one(many, 2, i);
  for (uint64_t i = many->each + 1; i <= many->plain; i++)
    if (!is_kept(many, i))
      list_one(many, 1, i);
  for (uint64_t i = many->delayed; i > 0; i--) {
    if (!is_kept(many, i))
      list_one(many, 1, i);
    if (i % 10 == 1)
      list_one(many, 1, many->delayed + i); /* never there */
  }
}

typedef bool is_listed_fn(const struct many *many, const struct dk_work_item *work);

static bool
is_listed(const struct many *many, const struct dk_work_item *work)
{
  if (!same_bytes(work->item.instance, bytes("inst")))
    return false;
  return work->item.execution_id == 2 ? work->item.activity_id <= 8
                                      : !is_kept(many, work->item.activity_id);
}

static bool
is_of_first(const struct many *many, const struct dk_work_item *work)
{
  (void)many;
  return same_bytes(work->item.instance, bytes("inst")) && work->item.execution_id == 1;
}

/* Each row that was held and listed is reported by its token, once.  Gives how many those are. */
static uint64_t
expect_stolen_of(struct dk_check *t, const struct many *many, is_listed_fn *is_listed_of,
                 const struct dk_commit_outcome *outcome)
{
  uint64_t listed = 0;

  for (size_t h = 0; h < many->n_held; h++) {
    const struct dk_work_item *work = many->held[h];
    size_t found = 0;

    if (!is_listed_of(many, work))
      continue;
    listed++;
    for (size_t i = 0; i < outcome->n_stolen; i++)
      found += same_bytes(outcome->stolen[i].lock_token, work->work.lock_token);
    expect_equal(t, found, 1, "times that activity %llu of execution %llu is reported as stolen",
                 (unsigned long long)work->item.activity_id,
                 (unsigned long long)work->item.execution_id);
  }
  return listed;
}

/* Expects, after all leases and delays have ended, what was not listed, and what belongs to
 * others. */
static void
expect_rest(struct dk_check *t, const struct many *many)
{
  advance(t, HELD_LONG_MS);
  struct taken_work left = take_work(t);

  for (uint64_t i = 1; i <= KEPT; i++)
    expect(t, item_of(&left, "inst", 1, i * many->step), "activity %llu was not listed, and stays",
           (unsigned long long)(i * many->step));
  for (uint64_t i = 1; i <= 16; i++) {
    expect(t, item_of(&left, "other", 1, i), "activity %llu of another instance stays",
           (unsigned long long)i);
    expect(t, (item_of(&left, "inst", 2, i) != NULL) == (i > 8),
           "activity %llu of execution 2 %s", (unsigned long long)i,
           i > 8 ? "was not listed, and stays" : "was listed, and is deleted");
  }
  expect_equal(t, left.n, KEPT + 16 + 8, "activities that are left");
}

static struct dk_turn *
given_two_executions(struct dk_check *t)
{
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2,
                   .schedule = {{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12},
                                {13}, {14}, {15}, {16}}));
  return next_turn(t, "inst");
}

/* CANCEL-10: of many, in every state, those that are listed go and are counted; all others stay. */
void
cancel_mass_mixed(struct dk_check *t)
{
  struct many many = given_many(t);
  struct dk_commit_outcome outcome;

  struct dk_turn *turn = given_two_executions(t);
  hold_half(t, &many);
  list_many(&many);
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 2,
                                  .cancelled_activities = many.list,
                                  .n_cancelled_activities = many.n};
  must(t, ack_turn(t, turn, .raw = &result, .ret_outcome = &outcome));
  uint64_t listed = expect_stolen_of(t, &many, is_listed, &outcome);
  expect_equal(t, outcome.n_stolen, listed, "rows that were reported as stolen");
  expect_equal(t, outcome.report.locked_rows, listed, "locked rows that were deleted");
  expect_equal(t, outcome.report.free_rows + listed, many.delayed - KEPT + 8,
               "rows that were deleted, free and locked");
  for (size_t h = 0; h < many.n_held; h += 50) {
    dk_status wanted = is_listed(&many, many.held[h]) ? DK_LOCK_LOST : DK_OK;
    expect_status(t, renew_work(t, many.held[h]->work.lock_token), wanted);
  }
  expect_rest(t, &many);
}

/* CANCEL-2: a long list is worked off within the commit, and undone with it. */
void
cancel_mass_refused(struct dk_check *t)
{
  struct many many = given_many(t);
  struct dk_event old = {1, bytes("stored already")};
  struct dk_works *works;
  uint64_t n = 0;

  struct dk_turn *turn = next_turn(t, "inst");
  list_many(&many);
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .events = &old, .n_events = 1,
                                  .cancelled_activities = many.list,
                                  .n_cancelled_activities = many.n};
  expect_status(t, ack_turn(t, turn, .raw = &result), DK_DUPLICATE);
  must(t, renew_turn(t, turn->head.lock_token));
  advance(t, 60000);
  while (try_fetch_work(t, &works, .max_items = BATCH, .lock_ms = HELD_LONG_MS) == DK_OK)
    n += works->n_items;
  expect_equal(t, n, many.delayed + 16, "activities that are there after the refused commit");
}

/* CANCEL-10: all of one execution, with as many that were never there, by a commit that ends the
 * orchestration; those of the other execution stay, though they have the same numbers.  The list
 * begins amid those that are held. */
void
cancel_mass_all(struct dk_check *t)
{
  struct many many = given_many(t);
  struct dk_commit_outcome outcome;

  struct dk_turn *turn = given_two_executions(t);
  hold_half(t, &many);
  for (uint64_t i = 0; i < 2 * many.delayed; i++)
    list_one(&many, 1, (i + many.each / 2) % (2 * many.delayed) + 1);
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 2,
                                  .status = DK_CANCELLED, .cancelled_activities = many.list,
                                  .n_cancelled_activities = many.n};
  must(t, ack_turn(t, turn, .raw = &result, .ret_outcome = &outcome));
  expect_stolen_of(t, &many, is_of_first, &outcome);
  expect_equal(t, outcome.report.free_rows + outcome.report.locked_rows, many.delayed,
               "rows that were deleted, free and locked");
  advance(t, HELD_LONG_MS);
  struct taken_work left = take_work(t);
  for (uint64_t i = 1; i <= 16; i++)
    expect(t, item_of(&left, "inst", 2, i), "activity %llu of execution 2 stays",
           (unsigned long long)i);
  expect_equal(t, left.n, 2 * 16, "activities that are left: of execution 2, and of the other "
               "instance");
}
