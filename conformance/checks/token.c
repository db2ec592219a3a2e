/* SPDX-License-Identifier: Apache-2.0 */
/* TOKEN: the only proof of holding something, and what a dead one can no longer do. */
#include <string.h>

#include "conformance/checks/checks.h"

/* ---- new each time --------------------------------------------------------------------------- */

struct seen_tokens {
  struct dk_bytes tokens[MOST_TAKEN];
  size_t n;
};

static void
expect_new(struct dk_check *t, struct seen_tokens *seen, struct dk_bytes token)
{
  size_t most = 2 * (size_t)provider(t)->limits->max_id + 128;

  expect(t, token.len >= 1 && token.len <= most, "a token has 1 to %zu bytes", most);
  expect(t, !memchr(token.ptr, 0, token.len), "a token holds no NUL");
  for (size_t i = 0; i < seen->n; i++)
    expect(t, !same_bytes(token, seen->tokens[i]),
           "the token of fetch %zu has been given before, by fetch %zu", seen->n + 1, i + 1);
  if (seen->n < MOST_TAKEN)
    seen->tokens[seen->n++] = token;
}

/* TOKEN-1: after an abandon, an ended lease, a commit: each fetch gives another token. */
void
token_fresh_every_time(struct dk_check *t)
{
  struct seen_tokens seen = {.n = 0};

  given_instance_with_activities(t, "inst", 1);
  for (int round = 0; round < 3; round++) {
    struct dk_turn *turn = next_turn(t, "inst");
    expect_new(t, &seen, turn->head.lock_token);
    must(t, abandon_turn(t, turn->head.lock_token));
    expect_new(t, &seen, fetch_turn(t, .lock_ms = 1000)->head.lock_token);
    struct dk_work_item *work = fetch_work(t);
    expect_new(t, &seen, work->work.lock_token);
    must(t, abandon_work(t, work->work.lock_token));
    expect_new(t, &seen, fetch_work(t, .lock_ms = 1000)->work.lock_token);

    advance(t, 1000);
    turn = fetch_turn(t);
    expect_new(t, &seen, turn->head.lock_token);
    must(t, ack_turn(t, turn));
    work = fetch_work(t);
    expect_new(t, &seen, work->work.lock_token);
    must(t, abandon_work(t, work->work.lock_token));
  }
}

/* TOKEN-1: after as many fetches as a small counter has numbers, too. */
void
token_fresh_for_long(struct dk_check *t)
{
  enum { TURNS = 70, ITEMS = 70 };
  struct dk_bytes tokens[TURNS + ITEMS];

  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst"));
  for (size_t n = 0; n < TURNS + ITEMS; n++) {
    bool is_turn = n % 2;
    tokens[n] = is_turn ? fetch_turn(t)->head.lock_token : fetch_work(t)->work.lock_token;
    for (size_t i = 0; i < n; i++)
      expect(t, !same_bytes(tokens[n], tokens[i]),
             "the token of fetch %zu has been given before, by fetch %zu", n + 1, i + 1);
    must(t, is_turn ? abandon_turn(t, tokens[n]) : abandon_work(t, tokens[n]));
  }
}

/* TOKEN-1: two handles, each as old as the other and asked as often, give different tokens. */
void
token_unique_over_handles(struct dk_check *t)
{
  struct seen_tokens seen = {.n = 0};
  struct actor *actors[2] = {another_handle(t), another_handle(t)};

  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst"));
  for (int i = 0; i < 8; i++) {
    struct actor *on = actors[i % 2];
    struct dk_turn *turn = fetch_turn(t, .on = on);
    expect_new(t, &seen, turn->head.lock_token);
    must(t, abandon_turn(t, turn->head.lock_token, .on = on));
    struct dk_work_item *work = fetch_work(t, .on = on);
    expect_new(t, &seen, work->work.lock_token);
    must(t, abandon_work(t, work->work.lock_token, .on = on));
  }
}

/* ---- never given ----------------------------------------------------------------------------- */

enum { TOKEN_ROOM = 4096, UNKNOWN_TOKENS = 8 };

struct unknown_tokens {
  struct dk_bytes tokens[UNKNOWN_TOKENS];
  size_t n;
  char room[3][TOKEN_ROOM + 2];
};

/* Bytes that are no token, as long as `given` is the only token of its queue: text, bytes that mean
 * something to others, the longest one, and `given` changed, longer and shorter. */
static void
make_unknown(struct dk_check *t, struct unknown_tokens *unknown, struct dk_bytes given)
{
  enum { LONG_ENOUGH = 1 << 20 };
  size_t most = 2 * (size_t)provider(t)->limits->max_id + 128;

  if (most > LONG_ENOUGH)
    most = LONG_ENOUGH;
  unknown->tokens[0] = bytes("never-given");
  unknown->tokens[1] = bytes("%s%n'; --");
  unknown->tokens[2] = bytes("\xff\x01\xc3:0:1");
  unknown->tokens[3] = filled(t, most, '9');
  unknown->n = 4;
  if (given.len > TOKEN_ROOM)
    return;
  for (int i = 0; i < 3; i++)
    memcpy(unknown->room[i], given.ptr, given.len);
  unknown->room[0][given.len - 1] = given.ptr[given.len - 1] == '7' ? '8' : '7';
  unknown->tokens[unknown->n++] = (struct dk_bytes){unknown->room[0], given.len};
  if (given.len < most) {
    unknown->room[1][given.len] = '0';
    unknown->tokens[unknown->n++] = (struct dk_bytes){unknown->room[1], given.len + 1};
  }
  if (given.len > 1) {
    unknown->room[2][given.len - 1] = '\0';
    unknown->tokens[unknown->n++] = (struct dk_bytes){unknown->room[2], given.len - 1};
  }
}

/* TOKEN-2: a turn token that was never given out is a lost lock, and nothing changes. */
void
token_unknown_turn_token(struct dk_check *t)
{
  struct unknown_tokens unknown = {.n = 0};

  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t);
  must(t, enqueue(t, "inst", .id = "later"));
  make_unknown(t, &unknown, turn->head.lock_token);

  before(t);
  for (size_t i = 0; i < unknown.n; i++)
    expect_dead_turn(t, unknown.tokens[i]);
  expect_unchanged(t);
  must(t, ack_turn(t, turn));
}

/* TOKEN-2: a work token that was never given out is a lost lock, and nothing changes. */
void
token_unknown_work_token(struct dk_check *t)
{
  struct unknown_tokens unknown = {.n = 0};

  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *work = fetch_work(t);
  make_unknown(t, &unknown, work->work.lock_token);

  before(t);
  for (size_t i = 0; i < unknown.n; i++)
    expect_dead_work(t, unknown.tokens[i]);
  expect_unchanged(t);
  must(t, ack_work(t, work->work.lock_token));
}

/* A turn and a work item, held. */
static void
hold_both(struct dk_check *t, struct dk_turn **ret_turn, struct dk_work_item **ret_work)
{
  given_instance_with_activities(t, "inst", 1);
  *ret_turn = next_turn(t, "inst");
  *ret_work = fetch_work(t);
}

/* TOKEN-2: a store that is made anew counts as it did before it was destroyed, and accepts no token
 * from then. */
void
token_next_life(struct dk_check *t)
{
  struct dk_turn *old_turn, *turn;
  struct dk_work_item *old_work, *work;

  hold_both(t, &old_turn, &old_work);
  close_handle(t, NULL);
  must(t, destroy_store(t, NULL));
  open_handle(t, NULL);
  hold_both(t, &turn, &work);

  before(t);
  expect_dead_turn(t, old_turn->head.lock_token);
  expect_dead_work(t, old_work->work.lock_token);
  expect_unchanged(t);
  must(t, ack_turn(t, turn));
  must(t, ack_work(t, work->work.lock_token));
}

/* ---- used up --------------------------------------------------------------------------------- */

/* TOKEN-3: a commit and an abandon each use up their token; a second use meets only a refusal. */
void
token_used_up_turn(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .events = {{next_event(turn)}}));
  must(t, enqueue(t, "inst"));
  before(t);
  expect_dead_turn(t, turn->head.lock_token);
  expect_unchanged(t);

  turn = fetch_turn(t);
  must(t, abandon_turn(t, turn->head.lock_token));
  before(t);
  expect_dead_turn(t, turn->head.lock_token);
  expect_unchanged(t);
}

/* TOKEN-3: an abandon and an ack each use up their token. */
void
token_used_up_work(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *work = fetch_work(t);
  must(t, abandon_work(t, work->work.lock_token));
  before(t);
  expect_dead_work(t, work->work.lock_token);
  expect_unchanged(t);

  work = fetch_work(t);
  must(t, ack_work(t, work->work.lock_token, .to = "inst"));
  before(t);
  expect_dead_work(t, work->work.lock_token);
  expect_unchanged(t);
}

/* ---- expired, taken over, deleted ------------------------------------------------------------ */

/* TOKEN-4: when the lease has run out the token is dead, even if no other holder took the turn
 * over. */
void
token_expired_turn(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t, .lock_ms = 1000);
  advance(t, 2000);

  before(t);
  expect_dead_turn(t, turn->head.lock_token);
  expect_unchanged(t);
}

/* TOKEN-4: when the lease has run out the token is dead, even if no other holder took the work
 * over. */
void
token_expired_work(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *work = fetch_work(t, .lock_ms = 1000);
  advance(t, 2000);

  before(t);
  expect_dead_work(t, work->work.lock_token);
  expect_unchanged(t);
}

/* TOKEN-5: a former holder can neither commit, renew nor abandon the turn of the new one. */
void
token_takeover_turn(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, enqueue(t, "inst"));
  struct dk_turn *slow = fetch_turn(t, .lock_ms = 1000);
  advance(t, 2000);
  struct dk_turn *holder = fetch_turn(t);

  before(t);
  expect_dead_turn(t, slow->head.lock_token);
  expect_unchanged(t);
  must(t, renew_turn(t, holder->head.lock_token));
  must(t, ack_turn(t, holder, .events = {{next_event(holder)}}));
}

/* TOKEN-5: a former holder can neither ack, renew nor abandon the work of the new one. */
void
token_takeover_work(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *slow = fetch_work(t, .lock_ms = 1000);
  advance(t, 2000);
  struct dk_work_item *holder = fetch_work(t);

  before(t);
  expect_dead_work(t, slow->work.lock_token);
  expect_unchanged(t);
  must(t, renew_work(t, holder->work.lock_token));
  must(t, ack_work(t, holder->work.lock_token, .to = "inst"));
}

/* TOKEN-6: the token of a deleted row is dead, and not valid for a later row of the same
 * identity. */
void
token_deleted_work_row(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *deleted = fetch_work(t);
  commit_cancelling(t, "inst", 1);
  expect_dead_work(t, deleted->work.lock_token);
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, turn, .schedule = {{1}}));
  struct dk_work_item *again = fetch_work(t);

  before(t);
  expect_dead_work(t, deleted->work.lock_token);
  expect_unchanged(t);
  must(t, ack_work(t, again->work.lock_token, .to = "inst"));
}

/* TOKEN-6: nor is it valid for the later row while no worker has fetched that yet. */
void
token_remade_row_is_free(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *deleted = fetch_work(t);
  commit_cancelling(t, "inst", 1);
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1}}));

  before(t);
  expect_dead_work(t, deleted->work.lock_token);
  expect_unchanged(t);
  struct dk_work_item *again = the_item_of(t, "inst", 1);
  expect_equal(t, again->work.attempt, 1, "attempt of the row that was made later");
  must(t, ack_work(t, again->work.lock_token, .to = "inst", .id = "done"));
  expect_ids(t, the_turn_of(t, "inst"), "done");
}

/* ---- what a refusal says, and the two queues ------------------------------------------------- */

static bool
is_letter(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Does a word of the text begin like this?  In any case; "_" parts words. */
static bool
has_word(const char *text, const char *beginning)
{
  for (const char *at = text; (at = strcasestr(at, beginning)); at++)
    if (at == text || !is_letter(at[-1]))
      return true;
  return false;
}

static void
expect_named(struct dk_check *t, dk_status status, const char *verb, const char *other)
{
  expect_status(t, status, DK_LOCK_LOST);
  const char *text = failure_text(t, NULL);
  expect(t, text && *text, "the refusal has a text");
  expect(t, has_word(text, verb) || (other && has_word(text, other)),
         "the text of the refusal names the operation (%s): \"%s\"", verb, text);
}

/* TOKEN-7: the text of a lost lock names the operation that was refused. */
void
token_refusal_tells_why(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_turn *turn = next_turn(t, "inst");
  struct dk_work_item *work = fetch_work(t);
  must(t, ack_turn(t, turn));
  must(t, ack_work(t, work->work.lock_token));

  expect_named(t, ack_turn(t, turn), "ack", "commit");
  expect_named(t, renew_turn(t, turn->head.lock_token), "renew", "extend");
  expect_named(t, abandon_turn(t, turn->head.lock_token), "abandon", NULL);
  expect_named(t, ack_work(t, work->work.lock_token), "ack", NULL);
  expect_named(t, renew_work(t, work->work.lock_token), "renew", "extend");
  expect_named(t, abandon_work(t, work->work.lock_token), "abandon", NULL);
}

/* TOKEN-8: the token of a live turn is not valid for the work operations, nor that of live work for
 * those of turns. */
void
token_queues_do_not_mix(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *work = fetch_work(t);
  struct dk_turn *second = next_turn(t, "inst");
  must(t, enqueue(t, "fresh"));
  struct dk_turn *first = fetch_turn(t);

  before(t);
  expect_dead_turn(t, work->work.lock_token);
  expect_dead_work(t, first->head.lock_token);
  expect_dead_work(t, second->head.lock_token);
  expect_unchanged(t);
  must(t, renew_turn(t, first->head.lock_token));
  must(t, renew_turn(t, second->head.lock_token));
  must(t, renew_work(t, work->work.lock_token));
}
