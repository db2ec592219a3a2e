/* SPDX-License-Identifier: Apache-2.0 */
/* TURN: fetching, renewing and giving back one instance with its messages.  schema/turn.sql defines
 * which instance is chosen, and what a claim writes. */
#include "providers/pg/handle.h"

/* QUEUE-8: how often a fetch does not prefer the instances whose history its owner has, so that no
 * instance starves. */
enum { HEAD_EVERY = 8 };

/* ---- what is asked --------------------------------------------------------------------------- */

/* PIN-3, PIN-4: six numbers for each range. */
static int64_t
number_of_range(const void *context, size_t i)
{
  const struct dk_fetch_turn *request = context;
  const struct dk_version_range *range = &request->ranges[i / 6];
  const struct dk_version *end = i % 6 < 3 ? &range->min : &range->max;

  return i % 3 == 0 ? end->major : i % 3 == 1 ? end->minor : end->patch;
}

static dk_status
send_fetch(struct operation *op, const struct dk_fetch_turn *request, PGresult **ret)
{
  bool prefers = request->owner.ptr && ++op->h->fetches % HEAD_EVERY != 0;
  struct values v;

  operation_values(op, &v);
  value_int(&v, op->tries);
  value_bigint(&v, request->lock_ms);
  value_text(&v, request->owner);
  value_bool(&v, prefers);
  value_bigint(&v, request->max_messages);
  value_bigint(&v, request->max_bytes > INT64_MAX ? 0 : (int64_t)request->max_bytes);
  if (request->ranges)
    value_bigints(&v, request->n_ranges * 6, number_of_range, request);
  else
    value_null(&v, TYPE_BIGINTS);
  value_fetch_id(&v, fetch_id_of_turn(request));
  return operation_run(op, "fetch_turn", true, &v, "ibbbbbbtttty", ret);
}

/* An instance that the server cannot read would stand first for ever. */
static dk_status
set_aside(struct operation *op, const struct dk_fetch_turn *request, const struct why *why)
{
  struct values v;

  operation_values(op, &v);
  value_text(&v, request->owner);
  if (request->ranges)
    value_bigints(&v, request->n_ranges * 6, number_of_range, request);
  else
    value_null(&v, TYPE_BIGINTS);
  return damage_find(op, "set_aside_turn", &v, why);
}

static dk_status
turn_fetch(struct operation *op, const struct dk_fetch_turn *request, PGresult **ret)
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

/* ---- handing it up --------------------------------------------------------------------------- */

/* The columns a to f, t1 to t4 and the payload. */
enum { KIND, A, B, C, D, E, F, T1, T2, T3, T4, PAYLOAD };

/* TURN-13: even if no event can have that number. */
static uint64_t
history_from(const PGresult *r, int row)
{
  if (!field_is_null(r, row, E))
    return (uint64_t)field_bigint(r, row, E);
  return field_bigint(r, row, B) ? (uint64_t)field_bigint(r, row, D) + 1 : 0;
}

/* TIME-2: at most what is left since the request was sent; if the lease has ended, the turn is not
 * handed up. */
static dk_status
hand_up_head(struct operation *op, const PGresult *r, int row, int64_t now, int64_t lock_ms)
{
  const struct dk_host *host = op->h->host;
  char room[MAX_TOKEN];
  struct dk_turn_head head = {
    .struct_size = sizeof head,
    .instance = field_bytes(r, row, T1),
    .known = field_bigint(r, row, B) != 0,
    .status = (int32_t)field_bigint(r, row, F),
    .name = field_bytes(r, row, T2),
    .version = field_bytes(r, row, T3),
    .parent_instance = field_bytes(r, row, T4),
    .birth = (uint64_t)field_bigint(r, row, B),
    .execution_id = (uint64_t)field_bigint(r, row, C),
    .last_event_id = (uint64_t)field_bigint(r, row, D),
    .history_from = history_from(r, row),
    .now = now,
  };

  head.lock_token = turn_token(op->h, room, head.instance, field_bigint(r, row, A));
  head.lease_left_ms = time_add(op->sent_at, lock_ms) - host->now(host);
  if (head.lease_left_ms < 1)
    return refuse(op, DK_BUSY, "the lease ended before the turn could be delivered");
  return host->turn(op->call, &head);
}

static dk_status
hand_up_message(struct operation *op, const PGresult *r, int row)
{
  return op->h->host->message(op->call, &(struct dk_message){
                                          .struct_size = sizeof(struct dk_message),
                                          .attempt = (uint32_t)field_bigint(r, row, A),
                                          .id = field_bytes(r, row, T1),
                                          .payload = field_bytes(r, row, PAYLOAD),
                                          .visible_at = field_bigint(r, row, B),
                                          .enqueued_at = field_bigint(r, row, C),
                                        });
}

static dk_status
hand_up_row(struct operation *op, const PGresult *r, int row, int64_t lock_ms)
{
  switch (field_int(r, row, KIND)) {
  case TURN_HEAD:
    return hand_up_head(op, r, row, field_bigint(r, 0, B), lock_ms);
  case TURN_EVENT:
    return op->h->host->event(op->call, &(struct dk_event){(uint64_t)field_bigint(r, row, A),
                                                           field_bytes(r, row, PAYLOAD)});
  case TURN_MESSAGE:
    return hand_up_message(op, r, row);
  default:
    return refuse(op, DK_CORRUPT, "the function returned a row of kind %d",
                  field_int(r, row, KIND));
  }
}

/* ---- fetching -------------------------------------------------------------------------------- */

static dk_status
send_abandon(struct operation *op, const struct token *token, int64_t delay_ms,
             bool ignore_attempt, PGresult **ret)
{
  struct values v;

  operation_values(op, &v);
  value_text(&v, token->instance);
  value_bigint(&v, token->epoch);
  value_bigint(&v, delay_ms);
  value_bool(&v, ignore_attempt);
  return operation_run(op, "abandon_turn", true, &v, "ibbbb", ret);
}

/* TURN-12, POISON-6: the host does not accept the turn, which is claimed by now.  If the release
 * fails, the answer is that failure's status: it allows a lock to be left, which the host's status
 * does not. */
static dk_status
undo_claim(struct operation *op, const PGresult *r, dk_status why)
{
  struct token token = {.instance = field_bytes(r, 1, T1), .epoch = field_bigint(r, 1, A)};
  PGresult *answer;

  if (why >= DK_OUTCOME_UNKNOWN)
    return why;
  dk_status status = send_abandon(op, &token, 0, true, &answer);
  if (status == DK_CALL_CANCELLED)
    return refuse(op, DK_OUTCOME_UNKNOWN, "the call was cancelled before a turn that the host did "
                  "not accept was given back; its lease will end by itself");
  if (status != DK_OK)
    return status;
  bell_ring(op->h->bell, RING_TURNS, field_bigint(answer, 0, 1));
  PQclear(answer);
  return why;
}

static bool
is_faulty_row(const PGresult *r, int row, struct fault *f)
{
  int64_t number = field_bigint(r, row, A);

  switch (field_int(r, row, KIND)) {
  case TURN_HEAD:
    return fault_of_id(f, "the instance's id", field_bytes(r, row, T1), false) ||
           fault_of_id(f, "its name", field_bytes(r, row, T2), true) ||
           fault_of_id(f, "its version", field_bytes(r, row, T3), true) ||
           fault_of_id(f, "its parent", field_bytes(r, row, T4), true);
  case TURN_EVENT:
    return fault_of_number(f, "the number of an event", number, INT64_MAX) ||
           fault_of_payload(f, "event", number, field_bytes(r, row, PAYLOAD));
  case TURN_MESSAGE:
    return fault_of_number(f, "a message's attempt", number, UINT32_MAX) ||
           fault_of_id(f, "a message's id", field_bytes(r, row, T1), true) ||
           fault_of_payload(f, "the message enqueued at", field_bigint(r, row, C),
                            field_bytes(r, row, PAYLOAD));
  default:
    return false;
  }
}

/* The turn is claimed by now, and stays claimed without a holder: for longer than the request asked
 * for, or, if not even its id can be sent, for as long as that. */
static dk_status
keep_aside(struct operation *op, const PGresult *r, const struct fault *f)
{
  struct values v;
  struct why why;
  PGresult *answer;

  operation_values(op, &v);
  value_text(&v, field_bytes(r, 1, T1));
  value_bigint(&v, field_bigint(r, 1, A));
  value_bigint(&v, SET_ASIDE_MS);
  op->keeps = &why;
  if (operation_run(op, "keep_turn_aside", true, &v, "o", &answer) == DK_OK)
    PQclear(answer);
  op->keeps = NULL;
  return damage_refuse(op, field_bytes(r, 1, T1), f->text);
}

/* Head, events, messages, in the order of the rows. */
static dk_status
hand_up_turn(struct operation *op, const PGresult *r, int64_t lock_ms)
{
  struct fault f;

  for (int row = 1; row < PQntuples(r); row++)
    if (is_faulty_row(r, row, &f))
      return keep_aside(op, r, &f);
  for (int row = 1; row < PQntuples(r); row++) {
    dk_status status = hand_up_row(op, r, row, lock_ms);
    if (status != DK_OK)
      return undo_claim(op, r, status);
  }
  return DK_OK;
}

dk_status
apply_fetch_turn(struct operation *op, const struct dk_fetch_turn *request, int64_t *ret_due)
{
  PGresult *r;

  *ret_due = INT64_MAX;
  if (request->ranges && request->n_ranges == 0)
    return DK_NOTHING;                                                  /* PIN-2 */
  TRY(turn_fetch(op, request, &r));
  int64_t found = PQntuples(r) > 0 ? field_bigint(r, 0, A) : -1;
  dk_status status = DK_NOTHING;
  if (found == TURN_FOUND && PQntuples(r) > 1)
    status = hand_up_turn(op, r, request->lock_ms);
  else if (found == TURN_AGAIN)
    status = ATTEMPT_AGAIN;
  else if (found == TURN_IN_VAIN)
    status = ATTEMPT_IN_VAIN;
  else if (found != TURN_NOTHING)
    status = refuse(op, DK_CORRUPT, "the function returned %d rows", PQntuples(r));
  else if (!field_is_null(r, 0, C))
    *ret_due = host_time(op, field_bigint(r, 0, B), field_bigint(r, 0, C));
  PQclear(r);
  return status;
}

/* ---- with a token ---------------------------------------------------------------------------- */

/* Of renew and abandon: status, listening, and what became of a dead token's row. */
static dk_status
turn_take_answer(struct operation *op, const struct token *token, PGresult *r)
{
  dk_status status = DK_OK;

  if (PQntuples(r) != 1)
    status = refuse(op, DK_CORRUPT, "the function returned %d rows", PQntuples(r));
  else if (field_int(r, 0, 0) != DK_OK)
    status = refuse_dead_token(op, token->epoch, field_bigint(r, 0, 2), field_bigint(r, 0, 3),
                               field_bigint(r, 0, 4));
  else if (!field_is_null(r, 0, 1))
    bell_ring(op->h->bell, RING_TURNS, field_bigint(r, 0, 1));
  PQclear(r);
  return status;
}

/* TURN-9. */
dk_status
apply_renew_turn(struct operation *op, struct dk_bytes text, int64_t extend_ms)
{
  struct token token;
  struct values v;
  PGresult *r;

  TRY(read_turn_token(op, text, &token));
  operation_values(op, &v);
  value_text(&v, token.instance);
  value_bigint(&v, token.epoch);
  value_bigint(&v, extend_ms);
  TRY(operation_run(op, "renew_turn", true, &v, "ibbbb", &r));
  return turn_take_answer(op, &token, r);
}

/* TURN-7, TURN-8, POISON-4. */
dk_status
apply_abandon_turn(struct operation *op, struct dk_bytes text, int64_t delay_ms,
                   bool ignore_attempt)
{
  struct token token;
  PGresult *r;

  TRY(read_turn_token(op, text, &token));
  TRY(send_abandon(op, &token, delay_ms, ignore_attempt, &r));
  return turn_take_answer(op, &token, r);
}
