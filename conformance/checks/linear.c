/* SPDX-License-Identifier: Apache-2.0 */
/* Four calls at once on one turn and one work item: their answers, and what is left after them,
 * must be those of the four made one after the other, in some order.  A call that had returned
 * before another one began comes before it.  A call whose outcome is unknown takes effect at any
 * time after it began, or never. */
#include "conformance/checks/checks.h"

#include <stdio.h>

enum kind { COMMIT, GIVE_BACK_TURN, ACK, RENEW, GIVE_BACK, KINDS };
enum { CALLS = 4 };

struct call {
  enum kind kind;
  struct actor *on;
  dk_status status;
  int64_t began, ended;
};

/* What there is: before the calls, and after each of them. */
struct world {
  bool turn_is_held;
  enum { HELD, FREE, DELETED } row;
  bool is_committed, is_acked;
};

/* ---- one after the other --------------------------------------------------------------------- */

/* The contract, of these calls: TOKEN-3, ACK-14, CANCEL-1, CANCEL-5, WORK-4, WORK-6, WORK-7. */
static dk_status
step(struct world *w, enum kind kind)
{
  bool is_of_turn = kind == COMMIT || kind == GIVE_BACK_TURN;

  if (is_of_turn ? !w->turn_is_held : w->row != HELD)
    return DK_LOCK_LOST;
  switch (kind) {
  case COMMIT:
    w->is_committed = true;
    w->turn_is_held = false;
    w->row = DELETED;
    break;
  case GIVE_BACK_TURN:
    w->turn_is_held = false;
    break;
  case ACK:
    w->is_acked = true;
    w->row = DELETED;
    break;
  case GIVE_BACK:
    w->row = FREE;
    break;
  default:
    break;
  }
  return DK_OK;
}

/* No call that is still to come has returned before this one began. */
static bool
may_be_next(const struct call calls[CALLS], unsigned done, size_t next)
{
  for (size_t i = 0; i < CALLS; i++)
    if (i != next && !(done & 1u << i) && calls[i].ended < calls[next].began &&
        dk_status_class(calls[i].status) != 3)
      return false;
  return true;
}

static bool
is_equal(const struct world *a, const struct world *b)
{
  return (a->row == DELETED) == (b->row == DELETED) && a->is_committed == b->is_committed &&
         a->is_acked == b->is_acked;
}

/* Some order of the calls that are left explains their answers and the end. */
static bool
is_explained(const struct call calls[CALLS], unsigned done, struct world w,
             const struct world *end)
{
  if (done == (1u << CALLS) - 1)
    return is_equal(&w, end);
  for (size_t i = 0; i < CALLS; i++) {
    if ((done & 1u << i) || !may_be_next(calls, done, i))
      continue;
    int32_t class = dk_status_class(calls[i].status);
    struct world after = w;
    dk_status status = step(&after, calls[i].kind);
    if ((class == 3 || status == calls[i].status) &&
        is_explained(calls, done | 1u << i, after, end))
      return true;
    if ((class == 1 || class == 3) && is_explained(calls, done | 1u << i, w, end))
      return true; /* it had no effect */
  }
  return false;
}

/* ---- at once --------------------------------------------------------------------------------- */

static const char *
word_of(enum kind kind)
{
  static const char *const words[KINDS] = {"commit", "abandon turn", "ack", "renew", "abandon"};

  return words[kind];
}

static void
begin_call(struct dk_check *t, struct call *call, struct dk_bytes turn, struct dk_bytes work)
{
  switch (call->kind) {
  case COMMIT:
    must(t, ack_token(t, turn, .on = call->on, .start = true, .events = {{2}}, .cancel = {1}));
    break;
  case GIVE_BACK_TURN:
    must(t, abandon_turn(t, turn, .on = call->on, .start = true));
    break;
  case ACK:
    must(t, ack_work(t, work, .on = call->on, .start = true, .to = "sink"));
    break;
  case RENEW:
    must(t, renew_work(t, work, .on = call->on, .start = true, .ms = LEASE_MS));
    break;
  default:
    must(t, abandon_work(t, work, .on = call->on, .start = true));
  }
}

/* What is left, when every lease has ended; and it is taken, so that the next round has none. */
static struct world
look_and_clear(struct dk_check *t, const char *id)
{
  struct world w = {.row = DELETED};
  struct dk_works *works = NULL;
  struct dk_turn *turn = NULL;

  advance(t, 2 * LEASE_MS);
  w.is_committed = read_history(t, id)->n_events > 1;
  for (; try_fetch_work(t, &works) == DK_OK; w.row = FREE)
    must(t, ack_work(t, works->items[0].work.lock_token));
  while (try_fetch_turn(t, &turn) == DK_OK) {
    w.is_acked = w.is_acked || same_bytes(turn->head.instance, bytes("sink"));
    must(t, ack_turn(t, turn, .empty = true));
  }
  return w;
}

static void
judge_round(struct dk_check *t, const struct call calls[CALLS], const struct world *end)
{
  const struct world start = {.turn_is_held = true, .row = HELD};
  char text[200] = "", name[32];

  if (is_explained(calls, 0, start, end))
    return;
  for (size_t i = 0, n = 0; i < CALLS; i++)
    n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %s", i > 0 ? ", " : "",
                          word_of(calls[i].kind),
                          dk_status_name(calls[i].status, name, sizeof(name)));
  expect(t, false, "no order of the four calls explains their answers (%s) and what is left: %s, "
         "%s, %s", text, end->is_committed ? "committed" : "not committed",
         end->is_acked ? "a completion" : "no completion",
         end->row == DELETED ? "no row" : "the row");
}

/* CANCEL-7, TOKEN-3: the answers of four calls at once are those of some order of them. */
void
cancel_in_some_order(struct dk_check *t)
{
  static const enum kind others[] = {GIVE_BACK, GIVE_BACK_TURN, ACK, COMMIT, RENEW};
  struct call calls[CALLS] = {{.kind = COMMIT}, {.kind = ACK}, {.kind = RENEW}};

  for (size_t i = 0; i < CALLS; i++)
    calls[i].on = racer(t);
  for (uint32_t round = 0; more_rounds(t, ENOUGH_OVERLAPS); round++) {
    char id[32];
    snprintf(id, sizeof(id), "inst-%u", round);
    given_instance_with_activities(t, id, 1);
    struct dk_bytes turn = next_turn(t, id)->head.lock_token;
    struct dk_bytes work = fetch_work(t)->work.lock_token;
    calls[CALLS - 1].kind = others[round % (sizeof(others) / sizeof(others[0]))];
    struct actor *one = calls[round % CALLS].on, *other = calls[(round + 1) % CALLS].on;
    hold_at_line(t, one);
    hold_at_line(t, other);
    for (size_t i = 0; i < CALLS; i++)
      begin_call(t, &calls[(i + round) % CALLS], turn, work);
    bool overlapped = race(t, one, other);
    for (size_t i = 0; i < CALLS; i++) {
      calls[i].status = finish(t, calls[i].on);
      call_times(t, calls[i].on, &calls[i].began, &calls[i].ended);
    }
    witness(t, overlapped);
    const struct world end = look_and_clear(t, id);
    judge_round(t, calls, &end);
  }
}
