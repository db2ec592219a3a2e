/* SPDX-License-Identifier: Apache-2.0 */
/* TOKEN: lock tokens.  A token is a number that no other token of the store has, the number of the
 * store, which no other has, nor this one when it is made anew, and the address of what it locks:
 * "t7:4711:order-1" is a turn, "w8:4711:1:2:order-1" activity 2 of execution 1. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "conformance/model/model.h"

struct dk_bytes
turn_token(const struct store *s, char room[MAX_TOKEN], const struct instance *turn,
           uint64_t epoch)
{
  int length = snprintf(room, MAX_TOKEN, "t%" PRIu64 ":%" PRIu64 ":%.*s", epoch, s->life,
                        (int)turn->id.len, turn->id.ptr);

  return (struct dk_bytes){room, length < MAX_TOKEN ? (size_t)length : MAX_TOKEN - 1};
}

struct dk_bytes
work_token(const struct store *s, char room[MAX_TOKEN], const struct identity *row, uint64_t epoch)
{
  int length = snprintf(room, MAX_TOKEN,
                        "w%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%.*s", epoch, s->life,
                        row->execution_id, row->activity_id, (int)row->instance.len,
                        row->instance.ptr);

  return (struct dk_bytes){room, length < MAX_TOKEN ? (size_t)length : MAX_TOKEN - 1};
}

/* Takes "123:" off the front.  One number has one spelling, so one token has one. */
static bool
take_number(struct dk_bytes *text, uint64_t *ret_number)
{
  uint64_t number = 0;
  size_t i = 0;

  for (; i < text->len && text->ptr[i] >= (i ? '0' : '1') && text->ptr[i] <= '9'; i++) {
    if (__builtin_mul_overflow(number, 10, &number) ||
        __builtin_add_overflow(number, (uint64_t)(text->ptr[i] - '0'), &number))
      return false;
  }
  if (i == 0 || i == text->len || text->ptr[i] != ':')
    return false;
  *ret_number = number;
  *text = (struct dk_bytes){text->ptr + i + 1, text->len - i - 1};
  return true;
}

static bool
model_token_take_letter(struct dk_bytes *text, char letter)
{
  if (text->len == 0 || text->ptr[0] != letter)
    return false;
  *text = (struct dk_bytes){text->ptr + 1, text->len - 1};
  return true;
}

/* TOKEN-2: another store's is none. */
static bool
take_life(const struct store *s, struct dk_bytes *text)
{
  uint64_t life;

  return take_number(text, &life) && HOLDS(M_TOKEN_OF_ANOTHER_LIFE, life == s->life);
}

bool
parse_turn_token(const struct store *s, struct dk_bytes text, struct token *ret_token)
{
  while (DEFECT(M_TOKEN_SPACES_SKIPPED, text.len > 0 && text.ptr[0] == ' '))
    text = (struct dk_bytes){text.ptr + 1, text.len - 1};
  bool is_one = model_token_take_letter(&text, 't') && take_number(&text, &ret_token->epoch) &&
                take_life(s, &text);

  ret_token->of = (struct identity){.instance = text};
  return is_one;
}

bool
parse_work_token(const struct store *s, struct dk_bytes text, struct token *ret_token)
{
  char first = DEFECT(M_TOKEN_IN_ANY_CASE, text.len > 0 && text.ptr[0] == 'W') ? 'W' : 'w';
  bool is_one = model_token_take_letter(&text, first) && take_number(&text, &ret_token->epoch) &&
                take_life(s, &text) && take_number(&text, &ret_token->of.execution_id) &&
                take_number(&text, &ret_token->of.activity_id);

  ret_token->of.instance = text;
  return is_one;
}

/* TOKEN-1: a number above all that any handle has given out, by the log.  */
uint64_t
fresh_epoch(const struct op *op, uint64_t given_in_this_call)
{
  const struct store *s = op->s;
  uint64_t last = DEFECT(M_TOKEN_COUNTER_PER_HANDLE, s->own_epochs != s->epochs) ? s->own_epochs
                                                                                 : s->epochs;

  if (DEFECT(M_TOKEN_COUNTER_WRAPS, last >= 128))
    last = (last + s->own_epochs) % 128;
  return last + given_in_this_call + 1;
}

/* ---- refusing -------------------------------------------------------------------------------- */

/* TOKEN-7: the operation, and what became of the row. */
dk_status
lost(struct op *op, const char *format, ...)
{
  const struct store *s = op->s;
  char why[200];
  va_list args;

  va_start(args, format);
  vsnprintf(why, sizeof why, format, args);
  va_end(args);
  dk_status status = DK_LOCK_LOST; /* ERR-1: its own status */
  if (DEFECT(M_ERR_LOST_TURN_NOT_FOUND, strcmp(op->name, "abandon_orchestration_item") == 0))
    status = DK_NOT_FOUND;
  if (DEFECT(M_ERR_LOST_WORK_IS_INTERNAL, strcmp(op->name, "ack_work_item") == 0))
    status = DK_INTERNAL;
  if (MUTANT(M_TOKEN_WORDLESS_REFUSAL))
    return s->host->fail(op->call, DK_LOCK_LOST, (struct dk_bytes){"lock lost", 9});
  return refuse(op, status, "%s", why);
}

/* The row is there, but its lock is not this token's, or no longer. */
dk_status
lost_because(struct op *op, const struct lock *lock, uint64_t epoch)
{
  if (epoch > lock->epoch)
    return lost(op, "this token was never given out, or its instance was deleted");
  if (epoch < lock->epoch)
    return lost(op, "this token is of an earlier delivery; there was another since");
  if (!lock->held)
    return lost(op, "this token is used up: its lock was given back");
  return lost(op, "the lease of this token ran out %" PRId64 " ms ago", op->now - lock->until);
}
