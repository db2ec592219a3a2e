/* SPDX-License-Identifier: Apache-2.0 */
/* TOKEN: a token is the number of the store, the address of a row, and the number of a claim, in
 * hex: "t3f9a6c81d20b.2a.7f" is a turn, "w3f9a6c81d20b.2a.1.5.80" activity 5 of execution 1.  No
 * claim of a store has another's number, so no index over tokens is needed, and no token comes
 * twice.  The store's is random: a host that mixes up two stores, or brings a token of one that was
 * removed and made again, finds no row by chance. */
#include <inttypes.h>
#include <stdio.h>

#include "providers/shared/text.h"
#include "providers/sqlite/handle.h"

struct dk_bytes
turn_token(const struct operation *op, char room[MAX_TOKEN], int64_t iid, int64_t epoch)
{
  int length = snprintf(room, MAX_TOKEN, "t%" PRIx64 ".%" PRIx64 ".%" PRIx64,
                        (uint64_t)op->group->store, (uint64_t)iid, (uint64_t)epoch);

  return (struct dk_bytes){room, (size_t)length};
}

struct dk_bytes
work_token(const struct operation *op, char room[MAX_TOKEN], const struct identity *of,
           int64_t epoch)
{
  int length = snprintf(room, MAX_TOKEN,
                        "w%" PRIx64 ".%" PRIx64 ".%" PRIx64 ".%" PRIx64 ".%" PRIx64,
                        (uint64_t)op->group->store, (uint64_t)of->iid, (uint64_t)of->execution,
                        (uint64_t)of->activity, (uint64_t)epoch);

  return (struct dk_bytes){room, (size_t)length};
}

static bool
is_turn_token(struct dk_bytes text, struct token *ret_token)
{
  *ret_token = (struct token){.epoch = 0};
  return token_take_letter(&text, 't') && token_take_number(&text, &ret_token->store) &&
         token_take_letter(&text, '.') && token_take_number(&text, &ret_token->of.iid) &&
         token_take_letter(&text, '.') && token_take_number(&text, &ret_token->epoch) &&
         text.len == 0;
}

static bool
is_work_token(struct dk_bytes text, struct token *ret_token)
{
  struct identity *of = &ret_token->of;

  *ret_token = (struct token){.epoch = 0};
  return token_take_letter(&text, 'w') && token_take_number(&text, &ret_token->store) &&
         token_take_letter(&text, '.') && token_take_number(&text, &of->iid) &&
         token_take_letter(&text, '.') && token_take_number(&text, &of->execution) &&
         token_take_letter(&text, '.') && token_take_number(&text, &of->activity) &&
         token_take_letter(&text, '.') && token_take_number(&text, &ret_token->epoch) &&
         text.len == 0;
}

/* ---- refusing -------------------------------------------------------------------------------- */

static dk_status
refuse_strange_token(struct operation *op)
{
  return refuse(op, DK_LOCK_LOST, "this token was never issued");
}

/* Of its form; was it this store that gave it? */
static dk_status
refuse_anothers_token(struct operation *op, const struct token *token)
{
  if (token->store != op->group->store)
    return refuse(op, DK_LOCK_LOST, "this token belongs to another store, or to this one before "
                                    "it was removed and made again");
  return token->epoch > op->group->counter ? refuse_strange_token(op) : DK_OK;
}

dk_status
read_turn_token(struct operation *op, struct dk_bytes text, struct token *ret_token)
{
  struct token other;

  if (is_turn_token(text, ret_token))
    return refuse_anothers_token(op, ret_token);
  if (is_work_token(text, &other))
    return refuse(op, DK_LOCK_LOST, "this token belongs to a work item; expected one of a turn");
  return refuse_strange_token(op);
}

dk_status
read_work_token(struct operation *op, struct dk_bytes text, struct token *ret_token)
{
  struct token other;

  if (is_work_token(text, ret_token))
    return refuse_anothers_token(op, ret_token);
  if (is_turn_token(text, &other))
    return refuse(op, DK_LOCK_LOST, "this token belongs to a turn; expected one of a work item");
  return refuse_strange_token(op);
}

/* TOKEN-7: what became of the row. */
dk_status
refuse_dead_token(struct operation *op, int64_t epoch, int64_t row_epoch, int64_t locked_until)
{
  if (epoch > row_epoch)
    return refuse_strange_token(op);
  if (locked_until == 0)
    return refuse(op, DK_LOCK_LOST, "this token is used: its lock was given back or committed");
  if (epoch != row_epoch)
    return refuse(op, DK_LOCK_LOST, "this token was taken over: its lease ended or was given "
                                    "back, and its row was fetched again");
  return refuse(op, DK_LOCK_LOST, "the lease of this token ended %" PRId64 " ms ago; no fetch has "
                                  "taken over yet", op->group->now - locked_until);
}
