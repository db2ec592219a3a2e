/* SPDX-License-Identifier: Apache-2.0 */
/* Reading beside the writer: on a connection of its own, in one short transaction that sees what is
 * committed.  A read takes no lock of an instance, writes nothing, and also works on a read-only
 * handle.
 *
 * Locking: handle.readers_mutex guards the list of the unused connections, and whether readers may
 * begin; nothing is called under it. */
#include <assert.h>
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
  mutex_lock(&h->readers_mutex);
  while (h->readers_are_held)
    mutex_wait(&h->readers_mutex, &h->readers_go);
  struct reader *r = h->readers;
  if (r)
    h->readers = r->next;
  mutex_unlock(&h->readers_mutex);
  if (!r)
    return reader_new(h, ret_reader, why);
  *ret_reader = r;
  return DK_OK;
}

static void
reader_give_back(struct handle *h, struct reader *r)
{
  int n = 0;

  mutex_lock(&h->readers_mutex);
  for (const struct reader *at = h->readers; at; at = at->next)
    n++;
  bool is_kept = n < SPARE_READERS && !r->statements.is_broken;
  if (is_kept) {
    r->next = h->readers;
    h->readers = r;
  }
  mutex_unlock(&h->readers_mutex);
  if (!is_kept)
    reader_free(r);
}

/* For no longer than LONGEST_RESTART_MS. */
void
readers_hold(struct handle *h)
{
  mutex_lock(&h->readers_mutex);
  assert(!h->readers_are_held); /* there is one writer */
  h->readers_are_held = true;
  mutex_unlock(&h->readers_mutex);
}

void
readers_let_go(struct handle *h)
{
  mutex_lock(&h->readers_mutex);
  assert(h->readers_are_held);
  h->readers_are_held = false;
  pthread_cond_broadcast(&h->readers_go);
  mutex_unlock(&h->readers_mutex);
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

static dk_status
read_in_transaction(struct reading *r, read_fn *read)
{
  TRY(sql_run(r->sql, SQL_BEGIN_READING, ""));
  dk_status status = read(r);
  return status == DK_OK ? sql_check_tables(r->sql) : status;
}

/* On a failure *ret_why is the reason, unless the host refused. */
static dk_status
read_with(struct reading *r, read_fn *read, struct why *ret_why)
{
  r->sql->is_broken = false;
  dk_status status = read_in_transaction(r, read);

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
read_once(struct handle *h, struct dk_call *call, const void *request, read_fn *read,
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
  dk_status status = read_with(&reading, read, ret_why);
  reader_give_back(h, reader);
  return status;
}

dk_status
read_beside_writer(struct handle *h, struct dk_call *call, const void *request, read_fn *read)
{
  struct why why;
  dk_status status = read_once(h, call, request, read, &why);

  if (status != DK_OK && why_may_be_the_disk(&why)) {
    h->host->reset(call);
    status = read_once(h, call, request, read, &why);
  }
  return status != DK_OK && why.status == status ? why_tell(&why, h->host, call) : status;
}
