/* SPDX-License-Identifier: Apache-2.0 */
/* SRV-7: two calls of which one may win, and the messages of one come between those of the other.
 *
 * Which messages come between does not depend on luck: the kit holds a message of the first call
 * until the second has ended, or waits for the first inside the provider. */
#include "conformance/checks/server-trials.h"

#include <stdio.h>

enum {
  MOST_MESSAGES = 12,
  THROUGH_MS = 500 /* by then the second call has ended, or waits for the first */
};

enum match { TWO_FETCHES, TWO_COMMITS, TWO_WORK_FETCHES, TWO_ACKS, TWO_ENQUEUES, MATCHES };

static const struct {
  const char *name;
  dk_status of_loser;
} matches[MATCHES] = {
  [TWO_FETCHES] = {"fetches of one turn", DK_NOTHING},
  [TWO_COMMITS] = {"commits with one token", DK_LOCK_LOST},
  [TWO_WORK_FETCHES] = {"fetches of one work item", DK_NOTHING},
  [TWO_ACKS] = {"acks with one token", DK_LOCK_LOST},
  [TWO_ENQUEUES] = {"messages with one id", DK_DUPLICATE},
};

struct contest {
  struct dk_check *t;
  enum match match;
  char instance[32];
  struct dk_turn *turn;
  struct dk_work_item *work;
  struct actor *first, *second;
};

static void
server_between_prepare(struct contest *c)
{
  struct dk_check *t = c->t;
  bool is_of_work = c->match == TWO_WORK_FETCHES || c->match == TWO_ACKS;

  snprintf(c->instance, sizeof(c->instance), "inst-%u", calls_so_far(t));
  if (c->match == TWO_ENQUEUES)
    return;
  given_instance_with_activities(t, c->instance, is_of_work ? 1 : 0);
  if (c->match == TWO_FETCHES)
    must(t, enqueue(t, c->instance));
  if (c->match == TWO_COMMITS)
    c->turn = next_turn(t, c->instance);
  if (c->match == TWO_ACKS)
    c->work = fetch_work(t);
}

static dk_status
contend(const struct contest *c, struct actor *on, bool start)
{
  struct dk_check *t = c->t;
  struct dk_turn *turn;
  struct dk_works *works;

  switch (c->match) {
  case TWO_FETCHES:
    return try_fetch_turn(t, &turn, .on = on, .start = start);
  case TWO_COMMITS:
    return ack_turn(t, c->turn, .on = on, .start = start, .events = {{next_event(c->turn)}});
  case TWO_WORK_FETCHES:
    return try_fetch_work(t, &works, .on = on, .start = start);
  case TWO_ACKS:
    return ack_work(t, c->work->work.lock_token, .on = on, .start = start, .to = c->instance);
  default:
    return enqueue(t, c->instance, .on = on, .start = start, .id = "message");
  }
}

static dk_status
answer_in_the_end(const struct contest *c, struct actor *on)
{
  dk_status status = finish(c->t, on);

  for (int i = 0; i < MOST_RETRIES && is_retryable(status); i++)
    status = contend(c, on, false);
  return status;
}

static void
expect_one_message(const struct contest *c)
{
  struct dk_turn *turn = the_turn_of(c->t, c->instance);

  expect_equal(c->t, turn->n_messages, 1, "messages of a call that was done once");
  must(c->t, ack_turn(c->t, turn, .empty = true));
}

/* What the winner has done is there once; afterwards nothing of it is left. */
static void
settle(const struct contest *c, struct actor *winner)
{
  struct dk_check *t = c->t;

  if (c->match == TWO_FETCHES)
    must(t, ack_turn(t, finished_turn(t, winner), .empty = true));
  else if (c->match == TWO_COMMITS)
    expect_equal(t, read_history(t, c->instance)->n_events, 2, "events after one commit more");
  else if (c->match == TWO_WORK_FETCHES)
    must(t, ack_work(t, finished_work(t, winner)->items[0].work.lock_token));
  else
    expect_one_message(c);
  expect_no_turn(t);
  expect_no_work(t);
}

static void
server_between_judge(const struct contest *c)
{
  struct dk_check *t = c->t;
  dk_status first = answer_in_the_end(c, c->first), second = answer_in_the_end(c, c->second);
  dk_status lost = first == DK_OK ? second : first;
  char name[2][32];

  expect(t, (first == DK_OK) != (second == DK_OK),
         "of two concurrent %s one is done: they answer %s "
         "and %s", matches[c->match].name, dk_status_name(first, name[0], sizeof(name[0])),
         dk_status_name(second, name[1], sizeof(name[1])));
  expect_status(t, lost, matches[c->match].of_loser);
  settle(c, first == DK_OK ? c->first : c->second);
}

/* False: the first call ended before its n-th message. */
static bool
let_between(struct contest *c, uint32_t n)
{
  struct dk_check *t = c->t;

  server_between_prepare(c);
  cut_at_message(t, (struct message_cut){.n = n, .passed_on = true, .held = true});
  must(t, contend(c, c->first, true));
  bool is_held = message_is_held(t, c->first);
  must(t, contend(c, c->second, true));
  if (is_held) {
    returns_within(t, c->second, THROUGH_MS);
    let_message_go(t);
  }
  server_between_judge(c);
  return is_held;
}

/* SRV-7: of two calls of which one may win just one does. */
void
srv_second_call_between(struct dk_check *t)
{
  struct actor *first = another_thread(t), *second = another_handle(t);

  for (int match = 0; match < MATCHES; match++) {
    bool is_held = true;

    for (uint32_t n = 1; n <= MOST_MESSAGES && is_held; n++) {
      struct contest contest = {.t = t, .match = (enum match)match, .first = first,
                                .second = second};

      is_held = let_between(&contest, n);
    }
  }
}
