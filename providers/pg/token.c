/* SPDX-License-Identifier: Apache-2.0 */
/* TOKEN: a token is the number of the store, the number of a claim and the address of a row:
 * "t3f9a6c81d20b.7f.order-1" is a turn of instance "order-1", "w3f9a6c81d20b.80.1.5.order-1" its
 * activity 5 of execution 1.  No claim of a store has another's number, so no index over tokens is
 * needed, and no token comes twice.  The store's is random: a host that mixes up two stores, or
 * brings a token of one that was removed and made again, finds no row by chance. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "providers/pg/handle.h"
#include "providers/shared/text.h"

static struct dk_bytes
pg_token_finish(char room[MAX_TOKEN], int length, struct dk_bytes instance)
{
  size_t left = (size_t)(MAX_TOKEN - length);
  size_t n = instance.len < left ? instance.len : left; /* no id is longer */

  memcpy(room + length, instance.ptr, n);
  return (struct dk_bytes){room, (size_t)length + n};
}

struct dk_bytes
turn_token(const struct handle *h, char room[MAX_TOKEN], struct dk_bytes instance, int64_t epoch)
{
  int length = snprintf(room, MAX_TOKEN, "t%" PRIx64 ".%" PRIx64 ".", (uint64_t)h->store.number,
                        (uint64_t)epoch);

  return pg_token_finish(room, length, instance);
}

struct dk_bytes
work_token(const struct handle *h, char room[MAX_TOKEN], struct dk_bytes instance,
           int64_t execution, int64_t activity, int64_t epoch)
{
  int length = snprintf(room, MAX_TOKEN, "w%" PRIx64 ".%" PRIx64 ".%" PRIx64 ".%" PRIx64 ".",
                        (uint64_t)h->store.number, (uint64_t)epoch, (uint64_t)execution,
                        (uint64_t)activity);

  return pg_token_finish(room, length, instance);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A token's bytes may be any, and the server takes no others as text. */
static bool
is_an_id(struct dk_bytes text)
{
  return text.len > 0 && text.len <= MAX_ID && text_is_utf8(text.ptr, text.len);
}

/* A number and the dot behind it. */
static bool
take_number(struct dk_bytes *text, int64_t *ret_number)
{
  return token_take_number(text, ret_number) && token_take_letter(text, '.');
}

static bool
is_turn_token(struct dk_bytes text, int64_t *ret_store, struct token *ret_token)
{
  struct token token = {.epoch = 0};

  if (!token_take_letter(&text, 't') || !take_number(&text, ret_store) ||
      !take_number(&text, &token.epoch) || !is_an_id(text))
    return false;
  token.instance = text;
  *ret_token = token;
  return true;
}

static bool
is_work_token(struct dk_bytes text, int64_t *ret_store, struct token *ret_token)
{
  struct token token = {.epoch = 0};

  if (!token_take_letter(&text, 'w') || !take_number(&text, ret_store) ||
      !take_number(&text, &token.epoch) || !take_number(&text, &token.execution) ||
      !take_number(&text, &token.activity) || !is_an_id(text))
    return false;
  token.instance = text;
  *ret_token = token;
  return true;
}

/* ---- refusing -------------------------------------------------------------------------------- */

static dk_status
refuse_strange_token(struct operation *op)
{
  return refuse(op, DK_LOCK_LOST, "this token was never issued");
}

static dk_status
refuse_anothers_token(struct operation *op, int64_t store)
{
  if (store == op->h->store.number)
    return DK_OK;
  return refuse(op, DK_LOCK_LOST, "this token belongs to another store, or to this one before it "
                                  "was removed and made again");
}

dk_status
read_turn_token(struct operation *op, struct dk_bytes text, struct token *ret_token)
{
  struct token other;
  int64_t store;

  if (is_turn_token(text, &store, ret_token))
    return refuse_anothers_token(op, store);
  if (is_work_token(text, &store, &other))
    return refuse(op, DK_LOCK_LOST, "this token belongs to a work item; expected one of a turn");
  return refuse_strange_token(op);
}

dk_status
read_work_token(struct operation *op, struct dk_bytes text, struct token *ret_token)
{
  struct token other;
  int64_t store;

  if (is_work_token(text, &store, ret_token))
    return refuse_anothers_token(op, store);
  if (is_turn_token(text, &store, &other))
    return refuse(op, DK_LOCK_LOST, "this token belongs to a turn; expected one of a work item");
  return refuse_strange_token(op);
}

/* TOKEN-7: what became of the row. */
dk_status
refuse_dead_token(struct operation *op, int64_t epoch, int64_t row_epoch, int64_t locked_until,
                  int64_t store_now)
{
  if (row_epoch == 0)
    return refuse(op, DK_LOCK_LOST, "there is no row for this token: its work was done, cancelled "
                                    "or deleted, or the token was never issued");
  if (epoch > row_epoch)
    return refuse_strange_token(op);
  if (locked_until == 0)
    return refuse(op, DK_LOCK_LOST, "this token is used: its lock was given back or committed");
  if (epoch != row_epoch)
    return refuse(op, DK_LOCK_LOST, "this token was taken over: its lease ended or was given "
                                    "back, and its row was fetched again");
  return refuse(op, DK_LOCK_LOST, "the lease of this token ended %" PRId64 " ms ago; no fetch has "
                                  "taken over yet", store_now - locked_until);
}
