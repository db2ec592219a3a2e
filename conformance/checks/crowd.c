/* SPDX-License-Identifier: Apache-2.0 */
/* Crowds: many concurrent fetches, and something for each of them.
 *
 * That they are concurrent does not depend on luck.  In every other round the first fetch is held
 * when it asks for the time, with whatever it has locked by then, until all others have begun; in
 * the rounds between, no fetch is held.  A provider may answer "try again"; it must not answer
 * DK_NOTHING while something is left for the fetch. */
#include "conformance/checks/checks.h"

#include <stdio.h>

enum { CROWD = 6, ROUNDS = 6, EACH = 3 /* items that a fetch asks for */ };

struct crowd {
  struct dk_check *t;
  struct actor *actors[CROWD];
};

static struct crowd
crowd_of(struct dk_check *t)
{
  struct crowd crowd = {.t = t};

  for (int i = 0; i < CROWD; i++)
    crowd.actors[i] = racer(t);
  return crowd;
}

typedef dk_status begin_fn(struct dk_check *t, struct actor *actor, int number);

/* Finishes all of them, when no fetch is held any more. */
static void
begin_all(const struct crowd *crowd, begin_fn *begin, bool is_held)
{
  struct dk_check *t = crowd->t;

  if (is_held)
    hold_at_clock(t, 1);
  must(t, begin(t, crowd->actors[0], 0));
  is_held = is_held && stands_at_clock(t, crowd->actors[0]);
  for (int i = 1; i < CROWD; i++)
    must(t, begin(t, crowd->actors[i], i));
  for (int i = 0; i < CROWD; i++)
    until_begun(t, crowd->actors[i]);
  if (is_held)
    let_clock_go(t);
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Every other fetch has the owner that has committed them all. */
static const char *
owner_of(int number)
{
  return number % 2 == 0 ? "me" : "you";
}

static dk_status
begin_fetch(struct dk_check *t, struct actor *actor, int number)
{
  struct dk_turn *none;

  return try_fetch_turn(t, &none, .on = actor, .start = true, .owner = owner_of(number));
}

static struct dk_turn *
turn_of_one(const struct crowd *crowd, int number)
{
  struct dk_check *t = crowd->t;
  struct actor *actor = crowd->actors[number];
  dk_status status = finish(t, actor);
  struct dk_turn *turn = status == DK_OK ? finished_turn(t, actor) : NULL;

  for (int i = 0; i < MOST_RETRIES && is_retryable(status); i++)
    status = try_fetch_turn(t, &turn, .on = actor, .owner = owner_of(number));
  expect(t, status != DK_NOTHING, "each of %d concurrent fetches gets one of %d ready instances; "
         "fetch %d answers DK_NOTHING", CROWD, CROWD, number + 1);
  expect_status(t, status, DK_OK);
  return turn;
}

/* No other fetch has it, and only the owner of its last commit gets no history. */
static void
judge_turn(struct dk_check *t, struct dk_turn *const *turns, int number)
{
  const struct dk_turn *turn = turns[number];

  for (int i = 0; i < number; i++)
    expect(t, !same_bytes(turn->head.instance, turns[i]->head.instance),
           "concurrent fetches get different instances; %d and %d do not", i + 1, number + 1);
  expect_equal(t, turn->n_events, number % 2 == 0 ? 0 : turn->head.last_event_id,
               "events for an owner whose name is \"%s\"; the last commit's was \"me\"",
               owner_of(number));
}

static void
turns_round(const struct crowd *crowd, bool is_held)
{
  struct dk_turn *turns[CROWD];
  struct dk_check *t = crowd->t;
  char instance[16];

  for (int i = 0; i < CROWD; i++) {
    snprintf(instance, sizeof(instance), "inst-%d", i);
    must(t, enqueue(t, instance));
  }
  begin_all(crowd, begin_fetch, is_held);
  for (int i = 0; i < CROWD; i++)
    turns[i] = turn_of_one(crowd, i);
  for (int i = 0; i < CROWD; i++)
    judge_turn(t, turns, i);
  expect_no_turn(t);
  for (int i = 0; i < CROWD; i++)
    must(t, ack_turn(t, turns[i], .events = {{next_event(turns[i])}}, .owner = "me"));
}

static void
given_instances_of_one_owner(struct dk_check *t)
{
  char instance[16];

  for (int i = 0; i < CROWD; i++) {
    snprintf(instance, sizeof(instance), "inst-%d", i);
    must(t, enqueue(t, instance));
    must(t, ack_turn(t, fetch_turn_of(t, instance), .events = {{1}}, .owner = "me"));
  }
}

/* TURN-10: as many concurrent fetches as there are instances: each gets one, whichever owner had it
 * last. */
void
turn_crowd(struct dk_check *t)
{
  struct crowd crowd = crowd_of(t);

  given_instances_of_one_owner(t);
  for (int i = 0; i < ROUNDS; i++)
    turns_round(&crowd, i % 2 == 0);
}

/* ---- work ------------------------------------------------------------------------------------ */

struct taken {
  bool of[CROWD * EACH + 1]; /* by activity id */
  int n;
};

static dk_status
begin_work(struct dk_check *t, struct actor *actor, int number)
{
  struct dk_works *none;

  (void)number;
  return try_fetch_work(t, &none, .on = actor, .start = true, .max_items = EACH);
}

/* Each item once. */
static void
take_works(struct dk_check *t, struct taken *taken, struct actor *actor,
           const struct dk_works *works)
{
  expect(t, works->n_items <= EACH, "a fetch that asks for %d items gets %zu", EACH,
         works->n_items);
  for (size_t i = 0; i < works->n_items; i++) {
    uint64_t id = works->items[i].item.activity_id;

    expect(t, id >= 1 && id <= CROWD * EACH, "activity %llu was never scheduled",
           (unsigned long long)id);
    expect(t, !taken->of[id], "no two concurrent fetches get the same item; %llu came twice",
           (unsigned long long)id);
    taken->of[id] = true;
    taken->n++;
    insist(t, ack_work(t, works->items[i].work.lock_token, .on = actor));
  }
}

static struct dk_works *
work_of_one(const struct crowd *crowd, int number)
{
  struct dk_check *t = crowd->t;
  struct actor *actor = crowd->actors[number];
  dk_status status = finish(t, actor);
  struct dk_works *works = status == DK_OK ? finished_work(t, actor) : NULL;

  for (int i = 0; i < MOST_RETRIES && is_retryable(status); i++)
    status = try_fetch_work(t, &works, .on = actor, .max_items = EACH);
  expect(t, status != DK_NOTHING, "each of %d concurrent fetches of %d items gets some of %d "
         "items; fetch %d answers DK_NOTHING", CROWD, EACH, CROWD * EACH, number + 1);
  expect_status(t, status, DK_OK);
  return works;
}

/* A fetch may return fewer items than were asked for: a fetch that runs alone gets the rest. */
static void
take_rest(struct dk_check *t, struct taken *taken)
{
  struct dk_works *works;

  while (try_fetch_work(t, &works, .max_items = EACH) == DK_OK)
    take_works(t, taken, NULL, works);
  expect_equal(t, taken->n, CROWD * EACH, "items that the crowd and the fetches after it got");
}

static void
work_round(const struct crowd *crowd, bool is_held)
{
  struct dk_works *works[CROWD];
  struct dk_check *t = crowd->t;
  struct taken taken = {.n = 0};

  schedule_many(t, (struct dk_item){.activity_id = 1, .payload = bytes("work")}, CROWD * EACH);
  begin_all(crowd, begin_work, is_held);
  for (int i = 0; i < CROWD; i++)
    works[i] = work_of_one(crowd, i);
  for (int i = 0; i < CROWD; i++)
    take_works(t, &taken, crowd->actors[i], works[i]);
  take_rest(t, &taken);
}

/* WORK-2, WORK-12: many concurrent fetches of several items: each gets some, and no two the
 * same. */
void
work_crowd(struct dk_check *t)
{
  struct crowd crowd = crowd_of(t);

  given_instance(t, "inst");
  for (int i = 0; i < ROUNDS; i++)
    work_round(&crowd, i % 2 == 0);
}
