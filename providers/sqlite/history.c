/* SPDX-License-Identifier: Apache-2.0 */
/* HIST: reading a history, beside the writer: on a connection of its own, in one short transaction
 * that sees what is committed.  Takes no lock of an instance, and what does not exist is no error.
 *
 * Locking: handle.readers_mutex guards the list of the connections that nobody uses, and whether
 * they may begin; nothing is called under it. */
#include <stdlib.h>

#include "providers/sqlite/handle.h"

enum { SPARE_READERS = 4 };

/* ---- connections ----------------------------------------------------------------------------- */

static void
reader_free(struct reader *r)
{
  if (!r)
    return;
  sql_done(&r->statements);
  connection_close(&r->connection);
  free(r);
}

static dk_status
reader_new(struct handle *h, struct reader **ret_reader, struct why *why)
{
  struct reader *r = calloc(1, sizeof *r);

  if (!r)
    return why_set(why, DK_NO_MEMORY, "out of memory for another connection");
  dk_status status = store_files_connect(&h->files, CONNECTION_READER, &r->connection, &r->ids,
                                         why);
  if (status != DK_OK) {
    free(r);
    return status;
  }
  r->statements.connection = &r->connection;
  *ret_reader = r;
  return DK_OK;
}

static dk_status
reader_take(struct handle *h, struct reader **ret_reader, struct why *why)
{
  pthread_mutex_lock(&h->readers_mutex);
  while (h->readers_are_held)
    pthread_cond_wait(&h->readers_go, &h->readers_mutex);
  struct reader *r = h->readers;
  if (r)
    h->readers = r->next;
  pthread_mutex_unlock(&h->readers_mutex);
  if (!r)
    return reader_new(h, ret_reader, why);
  *ret_reader = r;
  return DK_OK;
}

static void
reader_give_back(struct handle *h, struct reader *r)
{
  int n = 0;

  pthread_mutex_lock(&h->readers_mutex);
  for (const struct reader *at = h->readers; at; at = at->next)
    n++;
  bool is_kept = n < SPARE_READERS && !r->statements.is_broken;
  if (is_kept) {
    r->next = h->readers;
    h->readers = r;
  }
  pthread_mutex_unlock(&h->readers_mutex);
  if (!is_kept)
    reader_free(r);
}

/* For no longer than LONGEST_RESTART_MS. */
void
readers_hold(struct handle *h)
{
  pthread_mutex_lock(&h->readers_mutex);
  h->readers_are_held = true;
  pthread_mutex_unlock(&h->readers_mutex);
}

void
readers_let_go(struct handle *h)
{
  pthread_mutex_lock(&h->readers_mutex);
  h->readers_are_held = false;
  pthread_cond_broadcast(&h->readers_go);
  pthread_mutex_unlock(&h->readers_mutex);
}

void
readers_close(struct handle *h)
{
  while (h->readers) {
    struct reader *r = h->readers;
    h->readers = r->next;
    reader_free(r);
  }
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
  const struct dk_host *host;
  struct dk_call *call;
  struct statements *sql;
  const struct dk_read_history *request;
  int64_t iid, execution; /* 0: there is none */
};

/* HIST-2, EXEC-3. */
static dk_status
hand_up_execution(struct reading *r)
{
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(r->sql, SQL_READ_EXECUTION, &row, "ti", r->request->instance,
               (int64_t)r->request->execution_id));
  TRY(sql_next(r->sql, row, &is_there));
  if (is_there) {
    r->iid = sqlite3_column_int64(row, 0);
    r->execution = sqlite3_column_int64(row, 1);
    TRY(r->host->execution(r->call, &(struct dk_execution){
                                      .struct_size = sizeof(struct dk_execution),
                                      .status = sqlite3_column_int(row, 2),
                                      .execution_id = (uint64_t)r->execution,
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
hand_up_page(struct reading *r)
{
  uint64_t from = r->request->from_event;
  int64_t most = r->request->max_events ? (int64_t)r->request->max_events : -1;
  sqlite3_stmt *row;
  bool is_there;

  if (r->execution == 0 || from > INT64_MAX)
    return DK_OK;
  TRY(sql_open(r->sql, SQL_READ_EVENTS, &row, "iiii", r->iid, r->execution, (int64_t)from, most));
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
read_both(struct reading *r)
{
  TRY(sql_run(r->sql, SQL_BEGIN_READING, ""));
  TRY(hand_up_execution(r));
  return hand_up_page(r);
}

/* Whatever fails: *ret_why is why, unless the host said no. */
static dk_status
read_with(struct reading *r, struct why *ret_why)
{
  r->sql->is_broken = false;
  dk_status status = read_both(r);

  *ret_why = (struct why){.status = DK_OK};
  if (r->sql->is_broken) {
    *ret_why = r->sql->why;
    status = ret_why->status;
  }
  sql_close_all(r->sql);
  if (!sqlite3_get_autocommit(r->sql->connection->db))
    sql_run(r->sql, SQL_ROLLBACK, ""); /* if it fails, the connection is not kept */
  return status;
}

static dk_status
read_once(struct handle *h, struct dk_call *call, const struct dk_read_history *request,
          struct why *ret_why)
{
  struct reader *reader = NULL;

  TRY(reader_take(h, &reader, ret_why));
  reader->statements.is_broken = store_files_check(&h->files, &reader->ids, ret_why) != DK_OK;
  if (reader->statements.is_broken) {
    reader_give_back(h, reader);
    return ret_why->status;
  }
  struct reading reading = {.host = h->host, .call = call, .sql = &reader->statements,
                            .request = request};
  dk_status status = read_with(&reading, ret_why);
  reader_give_back(h, reader);
  return status;
}

dk_status
sqlite_read_history(void *self, struct dk_call *call, const struct dk_read_history *request)
{
  struct handle *h = self;
  struct why why;

  if (request->execution_id > INT64_MAX)
    return DK_OK; /* no execution has such a number */
  dk_status status = read_once(h, call, request, &why);
  if (status != DK_OK && why_may_be_the_disk(&why)) {
    h->host->reset(call);
    status = read_once(h, call, request, &why);
  }
  return status != DK_OK && why.status == status ? why_tell(&why, h->host, call) : status;
}
