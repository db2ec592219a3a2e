/* SPDX-License-Identifier: Apache-2.0 */
/* HIST: reading a history: one statement, which sees what was committed when it began, takes no
 * lock, and finds nothing where there is nothing. */
#include "providers/pg/handle.h"

/* kind, a to d, status, payload */
enum { KIND, A, B, C, D, STATUS, PAYLOAD };

/* HIST-2, EXEC-3. */
static dk_status
history_hand_up_execution(struct operation *op, const PGresult *r, int row)
{
  return op->h->host->execution(op->call, &(struct dk_execution){
                                            .struct_size = sizeof(struct dk_execution),
                                            .status = field_int(r, row, STATUS),
                                            .execution_id = (uint64_t)field_bigint(r, row, A),
                                            .last_event_id = (uint64_t)field_bigint(r, row, B),
                                            .started_at = field_bigint(r, row, C),
                                            .completed_at = field_bigint(r, row, D),
                                            .output = field_bytes(r, row, PAYLOAD),
                                          });
}

static dk_status
hand_up_rows(struct operation *op, const PGresult *r)
{
  for (int row = 0; row < PQntuples(r); row++)
    if (field_int(r, row, KIND) == HISTORY_EXECUTION)
      TRY(history_hand_up_execution(op, r, row));
    else
      TRY(op->h->host->event(op->call, &(struct dk_event){(uint64_t)field_bigint(r, row, A),
                                                          field_bytes(r, row, PAYLOAD)}));
  return DK_OK;
}

/* A handle that only reads may also do it. */
dk_status
pg_read_history(void *self, struct dk_call *call, const struct dk_read_history *request)
{
  struct operation op = {.name = "read_history", .h = self, .call = call};
  struct values v;
  PGresult *r;

  if (request->execution_id > INT64_MAX)
    return DK_OK; /* no execution has such a number */
  operation_values(&op, &v);
  value_text(&v, request->instance);
  value_bigint(&v, (int64_t)request->execution_id);
  if (request->from_event > INT64_MAX)
    value_null(&v, TYPE_BIGINT); /* HIST-3: no event has such a number */
  else
    value_bigint(&v, (int64_t)request->from_event);
  value_bigint(&v, request->max_events);
  TRY(operation_run(&op, "read_history", false, &v, "ibbbbiy", &r));
  dk_status status = hand_up_rows(&op, r);
  PQclear(r);
  return status;
}
