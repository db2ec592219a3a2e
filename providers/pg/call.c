/* SPDX-License-Identifier: Apache-2.0 */
/* The operations as the host calls them, and one attempt of one: a connection of the pool for as
 * long as the request takes.  Owns nothing. */
#include <assert.h>
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "providers/pg/handle.h"

/* ---- telling --------------------------------------------------------------------------------- */

dk_status
refuse(struct operation *op, dk_status status, const char *format, ...)
{
  struct why why = {.status = status};
  int length = snprintf(why.text, sizeof why.text, "%s: ", op->name);
  va_list arguments;

  if (length < 0 || (size_t)length >= sizeof why.text)
    length = 0;
  va_start(arguments, format);
  vsnprintf(why.text + length, sizeof why.text - (size_t)length, format, arguments);
  va_end(arguments);
  return why_tell(&why, op->h->host, op->call);
}

dk_status
refuse_unknown(struct operation *op, bool is_unknown, const char *what)
{
  if (!is_unknown)
    return DK_OK;
  return refuse(op, DK_UNSUPPORTED, "%s is not known to this provider", what);
}

/* ---- one attempt ----------------------------------------------------------------------------- */

void
operation_values(struct operation *op, struct values *v)
{
  const struct handle *h = op->h;

  values_begin(v);
  if (h->store.host_clock)
    value_bigint(v, h->host->now(h->host));
  else
    value_null(v, TYPE_BIGINT);
  value_int(v, h->settings.lock_ms > INT32_MAX ? INT32_MAX : (int32_t)h->settings.lock_ms);
}

/* The function's name is a constant, and the schema's name is quoted: the text has no data in it.
 */
enum { MAX_FUNCTION = 64, MAX_SQL = 1024 };
enum { LOCK_ANSWER_MS = 1000, LARGE_TIMES = 3, MANY_ITEMS = 10000 };

/* A value that has the name of a parameter goes to it, and the server knows of no such function if
 * a name is wrong or missing. */
static bool
write_statement(char room[MAX_SQL], const char *schema, const char *function,
                const struct values *v)
{
  int length = snprintf(room, MAX_SQL, "SELECT * FROM %s.%s(", schema, function);

  for (int i = 0; i < v->n && length > 0 && length < MAX_SQL; i++) {
    const char *name = v->names[i];
    int more = snprintf(room + length, (size_t)(MAX_SQL - length), "%s%s%s$%d", i == 0 ? "" : ",",
                        name ? name : "", name ? "=>" : "", i + 1);
    length = more < 0 ? more : length + more;
  }
  if (length < 0 || length + 1 >= MAX_SQL)
    return false;
  room[length] = ')';
  room[length + 1] = '\0';
  return true;
}

/* TIME-1: the host's `now` is the time of sending; there may have been a wait for a connection
 * before. */
static dk_status
send_request(struct operation *op, struct connection *c, struct request *request, PGresult **ret,
             struct why *why)
{
  const struct handle *h = op->h;

  op->sent_at = h->host->now(h->host);
  op->sent_bytes = htobe64((uint64_t)op->sent_at);
  /* operation_values has put it there, unless memory ran out: then nothing is sent. */
  assert(request->values->status != DK_OK ||
         (request->values->n >= 2 && request->values->types[0] == TYPE_BIGINT));
  if (h->store.host_clock)
    request->values->bytes[0] = (const char *)&op->sent_bytes;
  return connection_run(c, op->call, request, ret, why);
}

/* If a prepared statement was deleted or no longer fits the schema, it is prepared again, and the
 * host does not see it. */
static dk_status
send_and_check(struct operation *op, struct connection *c, struct request *request,
               const char *types, PGresult **ret, struct why *why)
{
  PGresult *result;
  dk_status status = send_request(op, c, request, &result, why);

  if (status >= DK_BUSY && connection_is_changed(c)) {
    TRY(connection_renew(c, op->call, why));
    status = send_request(op, c, request, &result, why);
  }
  TRY(status);
  status = result_check(result, types, op->name, why);
  if (status == DK_OK)
    *ret = result;
  else
    PQclear(result);
  return status;
}

/* Not shorter than a wait for a lock, which has an answer of its own. */
static int64_t
answer_ms_of(const struct operation *op)
{
  const struct settings *settings = &op->h->settings;
  int64_t least = settings->lock_ms + LOCK_ANSWER_MS, all = settings->answer_ms;
  int64_t lease = op->lease_ms > least ? op->lease_ms : least;

  if (op->is_large)
    return LARGE_TIMES * all;
  return op->lease_ms > 0 && lease < all ? lease : all;
}

static dk_status
run_on_connection(struct operation *op, const char *function, bool writes, struct values *v,
                  const char *types, PGresult **ret)
{
  struct handle *h = op->h;
  struct why why = {.status = DK_OK};
  struct connection *c;
  char sql[MAX_SQL];

  if (!write_statement(sql, h->settings.quoted, function, v))
    return refuse(op, DK_INTERNAL, "the statement is longer than %d bytes", (int)MAX_SQL);
  dk_status status = pool_take(h->pool, op->call, &c, &why);
  if (status == DK_OK) {
    struct request request = {
      .what = op->name, .sql = sql, .values = v, .writes = writes, .is_frequent = true,
      .answer_ms = answer_ms_of(op)};
    status = send_and_check(op, c, &request, types, ret, &why);
    if (status == DK_BUSY)
      silence_explain(c, op->call, &why);
    pool_give_back(h->pool, c);
  }
  if (status >= DK_BUSY && op->keeps) {
    *op->keeps = why;
    return status;
  }
  return status == why.status ? why_tell(&why, h->host, op->call) : status;
}

dk_status
operation_run(struct operation *op, const char *function, bool writes, struct values *v,
              const char *types, PGresult **ret)
{
  dk_status status = run_on_connection(op, function, writes, v, types, ret);

  values_done(v);
  return status;
}

/* ---- the operations -------------------------------------------------------------------------- */

dk_status
operation_begin(struct operation *op, void *self, struct dk_call *call, const char *name)
{
  *op = (struct operation){.name = name, .h = self, .call = call};
  if (!op->h->store.is_read_only)
    return DK_OK;
  return refuse(op, DK_REFUSED, "the store was opened read-only: schema %s of %s; open it without "
                "DK_OPEN_READ_ONLY to change it", op->h->settings.quoted, op->h->settings.shown);
}

static dk_status
pg_enqueue_for_orchestrator(void *self, struct dk_call *call, const struct dk_item *item)
{
  struct operation op;

  TRY(operation_begin(&op, self, call, "enqueue_for_orchestrator"));
  return apply_enqueue_message(&op, item);
}

static dk_status
pg_fetch_orchestration_item(void *self, struct dk_call *call, const struct dk_fetch_turn *request)
{
  struct operation op;

  TRY(operation_begin(&op, self, call, "fetch_orchestration_item"));
  op.lease_ms = request->lock_ms;
  return wait_for_turn(&op, request);
}

static dk_status
pg_ack_orchestration_item(void *self, struct dk_call *call, struct dk_bytes token,
                          const struct dk_turn_result *result)
{
  struct operation op;

  TRY(operation_begin(&op, self, call, "ack_orchestration_item"));
  op.is_large = result->n_worker_items + result->n_orchestrator_items +
                  result->n_cancelled_activities > MANY_ITEMS;
  return apply_commit(&op, token, result);
}

static dk_status
pg_abandon_orchestration_item(void *self, struct dk_call *call, struct dk_bytes token,
                              int64_t delay_ms, int32_t ignore_attempt)
{
  struct operation op;

  TRY(operation_begin(&op, self, call, "abandon_orchestration_item"));
  return apply_abandon_turn(&op, token, delay_ms, ignore_attempt != 0);
}

static dk_status
pg_renew_orchestration_item_lock(void *self, struct dk_call *call, struct dk_bytes token,
                                 int64_t extend_ms)
{
  struct operation op;

  TRY(operation_begin(&op, self, call, "renew_orchestration_item_lock"));
  op.lease_ms = extend_ms;
  return apply_renew_turn(&op, token, extend_ms);
}

static dk_status
pg_fetch_work_item(void *self, struct dk_call *call, const struct dk_fetch_work *request)
{
  struct operation op;

  TRY(operation_begin(&op, self, call, "fetch_work_item"));
  op.lease_ms = request->lock_ms;
  return wait_for_work(&op, request);
}

static dk_status
pg_ack_work_item(void *self, struct dk_call *call, struct dk_bytes token,
                 const struct dk_work_result *result)
{
  struct operation op;

  TRY(operation_begin(&op, self, call, "ack_work_item"));
  return apply_ack_work(&op, token, result);
}

static dk_status
pg_abandon_work_item(void *self, struct dk_call *call, struct dk_bytes token, int64_t delay_ms,
                     int32_t ignore_attempt)
{
  struct operation op;

  TRY(operation_begin(&op, self, call, "abandon_work_item"));
  return apply_abandon_work(&op, token, delay_ms, ignore_attempt != 0);
}

static dk_status
pg_renew_work_item_lock(void *self, struct dk_call *call, struct dk_bytes token,
                        int64_t extend_ms)
{
  struct operation op;

  TRY(operation_begin(&op, self, call, "renew_work_item_lock"));
  op.lease_ms = extend_ms;
  return apply_renew_work(&op, token, extend_ms);
}

static dk_status
pg_enqueue_for_worker(void *self, struct dk_call *call, const struct dk_item *item)
{
  struct operation op;

  TRY(operation_begin(&op, self, call, "enqueue_for_worker"));
  return apply_enqueue_work(&op, item);
}

static dk_status
pg_release_fetch(void *self, struct dk_call *call, uint64_t fetch_id)
{
  struct operation op;

  TRY(operation_begin(&op, self, call, "release_fetch"));
  return apply_release_fetch(&op, fetch_id);
}

/* There is no `interrupt`: a call blocks only in host->wait, and for a moment where the answer of a
 * cancelled call is on the way (connection.c). */
const struct dk_ops pg_ops = {
  .struct_size = sizeof(struct dk_ops),
  .enqueue_for_orchestrator = pg_enqueue_for_orchestrator,
  .fetch_orchestration_item = pg_fetch_orchestration_item,
  .ack_orchestration_item = pg_ack_orchestration_item,
  .abandon_orchestration_item = pg_abandon_orchestration_item,
  .renew_orchestration_item_lock = pg_renew_orchestration_item_lock,
  .fetch_work_item = pg_fetch_work_item,
  .ack_work_item = pg_ack_work_item,
  .abandon_work_item = pg_abandon_work_item,
  .renew_work_item_lock = pg_renew_work_item_lock,
  .read_history = pg_read_history,
  .enqueue_for_worker = pg_enqueue_for_worker,
  .release_fetch = pg_release_fetch,
};
