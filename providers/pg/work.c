/* SPDX-License-Identifier: Apache-2.0 */
/* WORK, TAG: the worker queue.  schema/work.sql makes all decisions; here are the values for it,
 * and the use of the rows that come back.  Owns nothing. */
#include "providers/pg/handle.h"

/* ---- storing --------------------------------------------------------------------------------- */

/* Runs a function that answers by one row (status, listening, ...) with the given values, and frees
 * them.  Rings if something became ready.  On DK_OK *ret_row is set. */
static dk_status
run_for_status(struct operation *op, const char *function, struct values *v, const char *types,
               uint32_t rings, PGresult **ret_row)
{
  PGresult *row;

  TRY(operation_run(op, function, true, v, types, &row));
  if (PQntuples(row) != 1) {
    dk_status status = refuse(op, DK_CORRUPT, "%s returned %d rows; expected one", function,
                              PQntuples(row));
    PQclear(row);
    return status;
  }
  if (field_int(row, 0, 0) == DK_OK && !field_is_null(row, 0, 1))
    bell_ring(op->h->bell, rings, field_bigint(row, 0, 1));
  *ret_row = row;
  return DK_OK;
}

/* WORK-9. */
dk_status
apply_enqueue_work(struct operation *op, const struct dk_item *item)
{
  struct values v;
  PGresult *row;

  TRY(refuse_unknown(op, (item->flags & ~(uint32_t)DK_REPEATED) != 0, "a flag of the activity"));
  TRY(refuse_session(op, item));
  operation_values(op, &v);
  value_text(&v, item->instance);
  value_bigint(&v, (int64_t)item->execution_id);
  value_bigint(&v, (int64_t)item->activity_id);
  value_bigint(&v, item->visible_at);
  value_bigint(&v, item->delay_ms);
  value_text(&v, item->tag);
  value_bytea(&v, item->payload);
  TRY(run_for_status(op, "enqueue_work", &v, "ib", RING_WORK, &row));
  dk_status status = field_int(row, 0, 0);
  PQclear(row);
  if (status == DK_DUPLICATE)
    return refuse(op, DK_DUPLICATE, "activity %llu of execution %llu is already stored",
                  (unsigned long long)item->activity_id, (unsigned long long)item->execution_id);
  return status;
}

/* With a token: what has become of its row. */
enum { HELD_STATUS, HELD_LISTENING, HELD_EPOCH, HELD_UNTIL, HELD_NOW };
#define HELD_TYPES "ibbbb"

static void
add_token(struct operation *op, const struct token *token, struct values *v)
{
  operation_values(op, v);
  value_text(v, token->instance);
  value_bigint(v, token->execution);
  value_bigint(v, token->activity);
  value_bigint(v, token->epoch);
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* The columns of fetch_work's rows. */
enum column {
  KIND, NOW, DUE, INSTANCE, EXECUTION, ACTIVITY, EPOCH, ATTEMPT, VISIBLE_AT, TAG, PAYLOAD
};
#define ITEM_TYPES "ibbtbbbbbty"

/* What one fetch brings at most, because its whole answer is held in memory.  [WORK-8] */
enum { MOST_ITEMS = 1024, MOST_BYTES = 64 << 20 };

static struct dk_bytes
tag_of(const void *context, size_t i)
{
  const struct dk_fetch_work *request = context;

  return request->tags[i];
}

static int32_t
most_items(const struct dk_fetch_work *request)
{
  return (int32_t)(request->max_items < MOST_ITEMS ? request->max_items : MOST_ITEMS);
}

static void
add_request(struct operation *op, const struct dk_fetch_work *request, struct values *v)
{
  bool is_bound = request->max_bytes > 0 && request->max_bytes < MOST_BYTES;

  operation_values(op, v);
  value_int(v, op->tries);
  value_bigint(v, request->lock_ms);
  value_text(v, request->owner);
  value_int(v, most_items(request));
  value_bigint(v, is_bound ? (int64_t)request->max_bytes : MOST_BYTES);
  value_int(v, request->tag_rule);
  value_texts(v, request->n_tags, tag_of, request);
  value_fetch_id(v, fetch_id_of_work(request));
}

/* TIME-2: counted from before the claim, so that it is never more than is left. */
static dk_status
hand_up_item(struct operation *op, const struct dk_fetch_work *request, const PGresult *rows, int i)
{
  const struct dk_host *host = op->h->host;
  const struct dk_item item = {
    .struct_size = sizeof item,
    .instance = field_bytes(rows, i, INSTANCE),
    .execution_id = (uint64_t)field_bigint(rows, i, EXECUTION),
    .activity_id = (uint64_t)field_bigint(rows, i, ACTIVITY),
    .tag = field_bytes(rows, i, TAG),
    .visible_at = field_bigint(rows, i, VISIBLE_AT),
    .payload = field_bytes(rows, i, PAYLOAD),
  };
  char room[MAX_TOKEN];
  const struct dk_work work = {
    .struct_size = sizeof work,
    .attempt = (uint32_t)field_bigint(rows, i, ATTEMPT),
    .lock_token = work_token(op->h, room, item.instance, (int64_t)item.execution_id,
                             (int64_t)item.activity_id, field_bigint(rows, i, EPOCH)),
    .item = &item,
    .now = field_bigint(rows, i, NOW),
    .lease_left_ms = time_add(op->sent_at, request->lock_ms) - host->now(host),
  };

  if (work.lease_left_ms < 1)
    return refuse(op, DK_BUSY, "the lease ended before the work could be delivered");
  return host->work(op->call, &work);
}

static struct token
token_of_row(const PGresult *rows, int i)
{
  return (struct token){field_bytes(rows, i, INSTANCE), field_bigint(rows, i, EXECUTION),
                        field_bigint(rows, i, ACTIVITY), field_bigint(rows, i, EPOCH)};
}

static dk_status
give_back_row(struct operation *op, const PGresult *rows, int i)
{
  struct token token = token_of_row(rows, i);
  struct values v;
  PGresult *row;

  add_token(op, &token, &v);
  value_bigint(&v, 0);
  value_bool(&v, true);
  dk_status status = run_for_status(op, "abandon_work", &v, HELD_TYPES, RING_WORK, &row);
  if (status == DK_CALL_CANCELLED)
    return refuse(op, DK_OUTCOME_UNKNOWN, "the call was cancelled before work that the host did "
                  "not accept was given back; its lease will end by itself");
  TRY(status);
  PQclear(row);
  return DK_OK;
}

/* All but one; -1: all. */
static dk_status
give_back_but(struct operation *op, const PGresult *rows, int one)
{
  for (int i = 0; i < PQntuples(rows); i++)
    if (i != one)
      TRY(give_back_row(op, rows, i));
  return DK_OK;
}

/* POISON-6: the host does not accept them, and they are claimed by now.  If a release fails, the
 * answer is that failure's status: it allows a lock to be left, which the host's status does not.
 */
static dk_status
work_give_back(struct operation *op, const PGresult *rows, dk_status why)
{
  TRY(give_back_but(op, rows, -1));
  return why;
}

static bool
is_faulty_row(const PGresult *rows, int i, struct fault *f)
{
  return fault_of_id(f, "the instance's id", field_bytes(rows, i, INSTANCE), false) ||
         fault_of_id(f, "an activity's tag", field_bytes(rows, i, TAG), true) ||
         fault_of_number(f, "an activity's attempt", field_bigint(rows, i, ATTEMPT), UINT32_MAX) ||
         fault_of_payload(f, "activity", field_bigint(rows, i, ACTIVITY),
                          field_bytes(rows, i, PAYLOAD));
}

/* The damaged item stays claimed, for longer than the request asked for if its id can be sent; the
 * others are given back. */
static dk_status
keep_aside(struct operation *op, const PGresult *rows, int i, const struct fault *f)
{
  struct token token = token_of_row(rows, i);
  struct values v;
  struct why why;
  PGresult *row;

  add_token(op, &token, &v);
  value_bigint(&v, SET_ASIDE_MS);
  op->keeps = &why;
  if (operation_run(op, "keep_work_aside", true, &v, "o", &row) == DK_OK)
    PQclear(row);
  op->keeps = NULL;
  TRY(give_back_but(op, rows, i));
  return damage_refuse(op, token.instance, f->text);
}

static dk_status
hand_up_items(struct operation *op, const struct dk_fetch_work *request, const PGresult *rows)
{
  dk_status status = DK_OK;
  struct fault f;

  for (int i = 0; i < PQntuples(rows); i++)
    if (is_faulty_row(rows, i, &f))
      return keep_aside(op, rows, i, &f);
  for (int i = 0; i < PQntuples(rows) && status == DK_OK; i++)
    status = hand_up_item(op, request, rows, i);
  return status == DK_OK ? DK_OK : work_give_back(op, rows, status);
}

static dk_status
take_rows(struct operation *op, const struct dk_fetch_work *request, const PGresult *rows,
          int64_t *ret_due)
{
  int kind = PQntuples(rows) > 0 ? field_int(rows, 0, KIND) : WORK_NOTHING;

  if (kind == WORK_AGAIN)
    return ATTEMPT_AGAIN;
  if (kind == WORK_IN_VAIN)
    return ATTEMPT_IN_VAIN;
  if (kind == WORK_NOTHING) {
    *ret_due = PQntuples(rows) == 0 || field_is_null(rows, 0, DUE)
                 ? INT64_MAX
                 : host_time(op, field_bigint(rows, 0, NOW), field_bigint(rows, 0, DUE));
    return DK_NOTHING;
  }
  return hand_up_items(op, request, rows);
}

static dk_status
send_fetch(struct operation *op, const struct dk_fetch_work *request, PGresult **ret)
{
  struct values v;

  add_request(op, request, &v);
  return operation_run(op, "fetch_work", true, &v, ITEM_TYPES, ret);
}

/* An item that the server cannot read would stand first for ever. */
static dk_status
set_aside(struct operation *op, const struct dk_fetch_work *request, const struct why *why)
{
  struct values v;

  operation_values(op, &v);
  value_int(&v, most_items(request));
  value_int(&v, request->tag_rule);
  value_texts(&v, request->n_tags, tag_of, request);
  return damage_find(op, "set_aside_work", &v, why);
}

static dk_status
work_fetch(struct operation *op, const struct dk_fetch_work *request, PGresult **ret)
{
  struct why why = {.status = DK_OK};

  op->keeps = &why;
  dk_status status = send_fetch(op, request, ret);
  op->keeps = NULL;
  if (status < DK_BUSY || why.status == DK_OK) /* reported by now */
    return status;
  return damage_may_be(&why) ? set_aside(op, request, &why)
                             : why_tell(&why, op->h->host, op->call);
}

dk_status
apply_fetch_work(struct operation *op, const struct dk_fetch_work *request, int64_t *ret_due)
{
  PGresult *rows;

  TRY(refuse_unknown(op, request->tag_rule < DK_TAG_UNTAGGED || request->tag_rule > DK_TAG_ANY,
                     "the tag rule"));
  TRY(refuse_unknown(op, request->session_rule != DK_SESSION_NONE, "the session rule"));
  TRY(work_fetch(op, request, &rows));
  dk_status status = take_rows(op, request, rows, ret_due);
  PQclear(rows);
  return status;
}

/* ---- with a token ---------------------------------------------------------------------------- */

/* An item that was given back has no record of its leases: so it had one after the token's. */
static dk_status
refuse_dead(struct operation *op, const struct token *token, const PGresult *row)
{
  int64_t epoch = field_bigint(row, 0, HELD_EPOCH);

  if (!field_is_null(row, 0, HELD_EPOCH) && epoch == 0)
    epoch = INT64_MAX;
  return refuse_dead_token(op, token->epoch, epoch, field_bigint(row, 0, HELD_UNTIL),
                           field_bigint(row, 0, HELD_NOW));
}

static dk_status
run_with_token(struct operation *op, const char *function, const struct token *token,
               struct values *v, uint32_t rings)
{
  PGresult *row;

  TRY(run_for_status(op, function, v, HELD_TYPES, rings, &row));
  dk_status status = field_int(row, 0, HELD_STATUS);
  if (status == DK_LOCK_LOST)
    status = refuse_dead(op, token, row);
  PQclear(row);
  return status;
}

/* WORK-4, CANCEL-8. */
dk_status
apply_ack_work(struct operation *op, struct dk_bytes text, const struct dk_work_result *result)
{
  static const struct dk_item none;
  const struct dk_item *completion = result->completion ? result->completion : &none;
  struct token token;
  struct values v;

  TRY(read_work_token(op, text, &token));
  TRY(refuse_unknown(op, (result->flags & ~(uint32_t)DK_REPEATED) != 0, "a flag of the ack"));
  TRY(refuse_unknown(op, completion->flags != 0, "a flag of the completion"));
  add_token(op, &token, &v);
  value_text(&v, completion->instance);
  value_text(&v, completion->id);
  value_bigint(&v, completion->visible_at);
  value_bigint(&v, completion->delay_ms);
  value_bytea(&v, completion->payload);
  dk_status status = run_with_token(op, "ack_work", &token, &v, RING_TURNS);
  if (status == DK_DUPLICATE)
    return refuse(op, DK_DUPLICATE, "a message with the completion's id is already stored: "
                  "\"%.*s\"", (int)completion->id.len, completion->id.ptr);
  return status;
}

dk_status
apply_renew_work(struct operation *op, struct dk_bytes text, int64_t extend_ms)
{
  struct token token;
  struct values v;

  TRY(read_work_token(op, text, &token));
  add_token(op, &token, &v);
  value_bigint(&v, extend_ms);
  return run_with_token(op, "renew_work", &token, &v, RING_WORK);
}

dk_status
apply_abandon_work(struct operation *op, struct dk_bytes text, int64_t delay_ms,
                   bool ignore_attempt)
{
  struct token token;
  struct values v;

  TRY(read_work_token(op, text, &token));
  add_token(op, &token, &v);
  value_bigint(&v, delay_ms);
  value_bool(&v, ignore_attempt);
  return run_with_token(op, "abandon_work", &token, &v, RING_WORK);
}
