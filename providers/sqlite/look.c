/* SPDX-License-Identifier: Apache-2.0 */
/* ADMIN: looking at instances, beside the writer.  Each look is one transaction, so that its answer
 * is of one moment. */
#include "providers/sqlite/admin.h"

/* TIME-1: the clock is read after the last wait; the first read may wait. */
static dk_status
read_clock(struct reading *r, int64_t *ret_now)
{
  TRY(sql_run(r->sql, SQL_READ_META, ""));
  *ret_now = r->host->now(r->host);
  return DK_OK;
}

/* ---- instances ------------------------------------------------------------------------------- */

/* The output is read only if the request asks for it. */
static dk_status
hand_up_with_output(struct reading *r, const struct found *found)
{
  struct dk_instance instance = found->instance;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(r->sql, SQL_READ_OUTPUT, &row, "ii", found->iid, (int64_t)instance.execution_id));
  TRY(sql_next(r->sql, row, &is_there));
  if (is_there)
    instance.output = sql_bytes(row, 0);
  TRY(r->host->instance(r->call, &instance));
  sql_close(row);
  return DK_OK;
}

/* ADMIN-1 to ADMIN-4. */
dk_status
read_instances(struct reading *r)
{
  const struct listing *asked = r->request;
  const struct dk_list_instances *request = asked->request;
  uint64_t left = request->max_instances ? request->max_instances : UINT64_MAX;
  struct walk walk = asked->walk; /* its ids belong to the function that began it */
  struct found found;
  bool is_there;
  int64_t now;

  TRY(read_clock(r, &now));
  walk_start(&walk, r->sql, now, UINT64_MAX);
  for (; left > 0; left--) {
    TRY(walk_step(&walk, &found, &is_there));
    if (!is_there)
      break;
    TRY(request->flags & DK_LIST_OUTPUT ? hand_up_with_output(r, &found)
                                        : r->host->instance(r->call, &found.instance));
  }
  walk_stop(&walk);
  return DK_OK;
}

/* ---- executions and messages ----------------------------------------------------------------- */

static int64_t
most(uint32_t asked)
{
  return asked ? (int64_t)asked : -1;
}

/* ADMIN-5. */
dk_status
read_executions(struct reading *r)
{
  const struct dk_list_executions *request = r->request;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(r->sql, SQL_LIST_EXECUTIONS, &row, "tii", request->instance,
               (int64_t)request->after, most(request->max_executions)));
  for (;;) {
    TRY(sql_next(r->sql, row, &is_there));
    if (!is_there)
      break;
    TRY(r->host->execution(r->call, &(struct dk_execution){
                                      .struct_size = sizeof(struct dk_execution),
                                      .execution_id = (uint64_t)sqlite3_column_int64(row, 0),
                                      .status = sqlite3_column_int(row, 1),
                                      .started_at = sqlite3_column_int64(row, 2),
                                      .completed_at = sqlite3_column_int64(row, 3),
                                      .output = sql_bytes(row, 4),
                                      .last_event_id = (uint64_t)sqlite3_column_int64(row, 5),
                                    }));
  }
  sql_close(row);
  return DK_OK;
}

/* ADMIN-8, QUEUE-2. */
dk_status
read_messages(struct reading *r)
{
  const struct dk_read_messages *request = r->request;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(r->sql, SQL_READ_MESSAGES, &row, "ti", request->instance,
               most(request->max_messages)));
  for (;;) {
    TRY(sql_next(r->sql, row, &is_there));
    if (!is_there)
      break;
    TRY(r->host->message(r->call, &(struct dk_message){
                                    .struct_size = sizeof(struct dk_message),
                                    .id = sql_bytes(row, 0),
                                    .payload = sql_bytes(row, 1),
                                    .visible_at = sqlite3_column_int64(row, 2),
                                    .enqueued_at = sqlite3_column_int64(row, 3),
                                  }));
  }
  sql_close(row);
  return DK_OK;
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* The one row of a statement, whose columns go where they belong. */
static dk_status
read_row(struct reading *r, enum statement statement, const char *types, int64_t now,
         uint64_t *const columns[], int n, int64_t *ret_oldest)
{
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(r->sql, statement, &row, types, now));
  TRY(sql_next(r->sql, row, &is_there));
  for (int i = 0; i < n && is_there; i++)
    *columns[i] = (uint64_t)sqlite3_column_int64(row, i);
  if (ret_oldest && is_there)
    *ret_oldest = sqlite3_column_int64(row, n);
  sql_close(row);
  return DK_OK;
}

static dk_status
look_count(struct reading *r, struct dk_stats *stats)
{
  uint64_t *const instances[] = {&stats->not_started, &stats->running, &stats->completed,
                                 &stats->failed, &stats->continued_as_new, &stats->cancelled};
  uint64_t *const histories[] = {&stats->executions, &stats->events};
  uint64_t *const messages[] = {&stats->messages_delayed, &stats->messages_locked,
                                &stats->messages_ready};
  uint64_t *const activities[] = {&stats->activities_delayed, &stats->activities_locked,
                                  &stats->activities_ready};

  TRY(read_row(r, SQL_STATS_OF_INSTANCES, "", 0, instances, 6, NULL));
  TRY(read_row(r, SQL_STATS_OF_HISTORIES, "", 0, histories, 2, NULL));
  TRY(read_row(r, SQL_STATS_OF_MESSAGES, "i", stats->now, messages, 3, &stats->oldest_message));
  return read_row(r, SQL_STATS_OF_WORK, "i", stats->now, activities, 3, &stats->oldest_activity);
}

/* ADMIN-6. */
dk_status
read_stats(struct reading *r)
{
  struct dk_stats stats = {.struct_size = sizeof stats};

  TRY(read_clock(r, &stats.now));
  TRY(look_count(r, &stats));
  return r->host->stats(r->call, &stats);
}
