/* SPDX-License-Identifier: Apache-2.0 */
/* TOKEN-2: live tokens, nearly.  A token is its bytes: one that differs in any of them, has more of
 * them or fewer, was never given out, and every operation refuses it. */
#include <string.h>

#include "conformance/checks/checks.h"

enum { LONGEST_HERE = 512, PLACES = 48 };

/* Two live tokens of one queue: each is respelled, and neither may be met on the way. */
struct respelled {
  struct dk_check *t;
  struct dk_bytes given[2];
  void (*expect_dead)(struct dk_check *t, struct dk_bytes token);
  char room[LONGEST_HERE];
};

/* What is before place i of the token, then `between`, then what is from place j of the other.  If
 * that is no token, or a live one, another unknown one takes its place: a twin run makes as many
 * calls with other tokens. */
static void
respell(struct respelled *r, struct dk_bytes token, size_t i, const char *between,
        struct dk_bytes other, size_t j)
{
  size_t n = strlen(between), rest = other.len - j, length = i + n + rest;
  size_t most = 2 * (size_t)provider(r->t)->limits->max_id + 128;
  struct dk_bytes made = {r->room, length};

  if (length > 0 && length <= sizeof r->room && length <= most) {
    memcpy(r->room, token.ptr, i);
    memcpy(r->room + i, between, n);
    memcpy(r->room + i + n, other.ptr + j, rest);
  } else {
    made = bytes("never given");
  }
  if (same_bytes(made, r->given[0]) || same_bytes(made, r->given[1]))
    made = bytes("never given");
  r->expect_dead(r->t, made);
}

static char
in_other_case(char c)
{
  bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

  return is_letter ? (char)(c ^ 0x20) : c;
}

/* One change at this place: another byte, another case, one more, one less; and from there on the
 * other token.  Which one changes from place to place. */
static void
respell_at(struct respelled *r, struct dk_bytes token, struct dk_bytes other, size_t i, size_t kind)
{
  char changed[2] = {token.ptr[i] == '7' ? '8' : '7', '\0'};
  char cased[2] = {in_other_case(token.ptr[i]), '\0'};

  respell(r, token, i, cased, token, i + 1);
  switch (kind) {
  case 0:
    respell(r, token, i, changed, token, i + 1);
    break;
  case 1:
    respell(r, token, i, "0", token, i);
    break;
  case 2:
    respell(r, token, i, " ", token, i);
    break;
  case 3:
    respell(r, token, i, "", token, i + 1);
    break;
  default:
    respell(r, token, i, "", other, i < other.len ? i : other.len);
  }
}

static void
respell_all(struct respelled *r, struct dk_bytes token, struct dk_bytes other)
{
  static const char *const pieces[] = {"0", " ", "+", "\t", "\x01", "\xff", ":", "%"};

  for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
    respell(r, token, 0, pieces[i], token, 0);
    respell(r, token, token.len, pieces[i], token, token.len);
  }
  respell(r, token, token.len - 1, "", token, token.len);
  respell(r, token, 0, "", token, 1);
  respell(r, token, token.len, "", token, 0);
  respell(r, token, token.len, "", other, 0);
  for (size_t i = 0; i < PLACES; i++)
    respell_at(r, token, other, i * token.len / PLACES, i % 5);
}

/* TOKEN-2: turns. */
void
token_respelled_turn(struct dk_check *t)
{
  given_instance(t, "inst");
  given_instance(t, "insu");
  struct dk_turn *one = next_turn(t, "inst"), *two = next_turn(t, "insu");
  struct respelled r = {t, {one->head.lock_token, two->head.lock_token}, expect_dead_turn, {0}};

  before(t);
  respell_all(&r, r.given[0], r.given[1]);
  expect_unchanged(t);
  must(t, ack_turn(t, one));
  must(t, ack_turn(t, two));
}

/* TOKEN-2: work. */
void
token_respelled_work(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 2);
  struct dk_work_item *one = fetch_work(t), *two = fetch_work(t);
  struct respelled r = {t, {one->work.lock_token, two->work.lock_token}, expect_dead_work, {0}};

  before(t);
  respell_all(&r, r.given[0], r.given[1]);
  expect_unchanged(t);
  must(t, ack_work(t, one->work.lock_token));
  must(t, ack_work(t, two->work.lock_token));
}
