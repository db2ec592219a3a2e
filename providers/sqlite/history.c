/* SPDX-License-Identifier: Apache-2.0 */
/* HIST: reading a history, beside the writer.  What does not exist is no error. */
#include "providers/sqlite/handle.h"

struct execution {
  int64_t iid, number; /* 0: there is none */
};

/* HIST-2, EXEC-3. */
static dk_status
history_hand_up_execution(struct reading *r, struct execution *ret_execution)
{
  const struct dk_read_history *request = r->request;
  sqlite3_stmt *row;
  bool is_there;

  *ret_execution = (struct execution){.number = 0};
  TRY(sql_open(r->sql, SQL_READ_EXECUTION, &row, "ti", request->instance,
               (int64_t)request->execution_id));
  TRY(sql_next(r->sql, row, &is_there));
  if (is_there) {
    *ret_execution =
      (struct execution){sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)};
    TRY(r->host->execution(r->call, &(struct dk_execution){
                                      .struct_size = sizeof(struct dk_execution),
                                      .status = sqlite3_column_int(row, 2),
                                      .execution_id = (uint64_t)ret_execution->number,
                                      .last_event_id = (uint64_t)sqlite3_column_int64(row, 6),
                                      .started_at = sqlite3_column_int64(row, 3),
                                      .completed_at = sqlite3_column_int64(row, 4),
                                      .output = sql_bytes(row, 5),
                                    }));
  }
  sql_close(row);
  return DK_OK;
}

/* HIST-3; a page begins wherever it is asked to, at the most at an id that no event has. */
static dk_status
hand_up_page(struct reading *r, const struct execution *execution)
{
  const struct dk_read_history *request = r->request;
  int64_t most = request->max_events ? (int64_t)request->max_events : -1;
  sqlite3_stmt *row;
  bool is_there;

  if (execution->number == 0 || request->from_event > INT64_MAX)
    return DK_OK;
  TRY(sql_open(r->sql, SQL_READ_EVENTS, &row, "iiii", execution->iid, execution->number,
               (int64_t)request->from_event, most));
  for (;;) {
    TRY(sql_next(r->sql, row, &is_there));
    if (!is_there)
      break;
    struct dk_event event = {(uint64_t)sqlite3_column_int64(row, 0), sql_bytes(row, 1)};
    TRY(r->host->event(r->call, &event));
  }
  sql_close(row);
  return DK_OK;
}

static dk_status
read_history(struct reading *r)
{
  struct execution execution;

  TRY(history_hand_up_execution(r, &execution));
  return hand_up_page(r, &execution);
}

dk_status
sqlite_read_history(void *self, struct dk_call *call, const struct dk_read_history *request)
{
  if (request->execution_id > INT64_MAX)
    return DK_OK; /* no execution has such a number */
  return read_beside_writer(self, call, request, read_history);
}
