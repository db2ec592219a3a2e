/* SPDX-License-Identifier: Apache-2.0 */
/* PRUNE: deletes the executions that instances have left behind, with their histories, and nothing
 * else.  The first execution holds the time at which its instance was created; before it is
 * deleted, the instance's row gets that time. */
#include "providers/sqlite/admin.h"

#include <stdlib.h>

static const struct dk_prune *
request_of(const struct operation *op)
{
  const struct page *page = op->request;

  return page->request;
}

/* PRUNE-1, PRUNE-2: which of its executions are deleted, up to which number. */
static dk_status
gather_executions(struct operation *op, int64_t iid, struct batch *batch)
{
  const struct dk_prune *request = request_of(op);
  struct statements *sql = op->group->sql;
  int64_t newer = request->keep > 1 ? (int64_t)request->keep - 1 : 0;
  sqlite3_stmt *row;
  bool is_there;

  batch->removed.instances++;
  TRY(sql_open(sql, SQL_FIND_PRUNED, &row, "iii", iid, newer, request->completed_before));
  TRY(sql_next(sql, row, &is_there));
  int64_t last = is_there ? sqlite3_column_int64(row, 0) : 0;
  if (last > 0) {
    list_add_pair(&batch->list, (uint64_t)iid, (uint64_t)last);
    batch->rows += (uint64_t)(sqlite3_column_int64(row, 1) + sqlite3_column_int64(row, 2));
  }
  sql_close(row);
  return DK_OK;
}

static dk_status
delete_pruned(struct operation *op, enum statement statement, uint64_t *rows, struct dk_bytes list)
{
  struct statements *sql = op->group->sql;

  TRY(sql_run(sql, statement, "ti", list, request_of(op)->completed_before));
  *rows += (uint64_t)sqlite3_changes64(sql->connection->db);
  return DK_OK;
}

/* PRUNE-3. */
static dk_status
delete_executions(struct operation *op, struct dk_bytes list, struct dk_removed *removed)
{
  uint64_t payloads = 0; /* no rows of their own */

  TRY(delete_pruned(op, SQL_DELETE_PRUNED_LARGE, &payloads, list));
  TRY(delete_pruned(op, SQL_DELETE_PRUNED_HISTORIES, &removed->events, list));
  return delete_pruned(op, SQL_DELETE_PRUNED_EXECUTIONS, &removed->executions, list);
}

/* ---- of one instance ------------------------------------------------------------------------- */

static dk_status
prune(struct operation *op, struct batch *batch)
{
  struct dk_bytes instance = request_of(op)->instance, list;
  struct address address;

  TRY(find_address(op, instance, &address));
  if (!address.is_known)                                             /* PRUNE-4 */
    return refuse(op, DK_NOT_FOUND, "no turn of instance \"%.64s\" was ever committed",
                  instance.ptr);
  TRY(gather_executions(op, address.iid, batch));
  if (batch->rows == 0)
    return DK_OK;
  TRY(list_text(op, &batch->list, &list));
  return delete_executions(op, list, &batch->removed);
}

dk_status
apply_prune(struct operation *op)
{
  struct batch batch = {.removed = {.struct_size = sizeof batch.removed}};
  dk_status status = prune(op, &batch);

  sql_close_all(op->group->sql); /* a statement that failed may still be bound to the list */
  free(batch.list.bytes);
  if (status == DK_OK)
    op->group->h->host->removed(op->call, &batch.removed);
  return status;
}

/* ---- of those that a filter selects ---------------------------------------------------------- */

/* An instance of which nothing is deleted counts as looked at.  [PRUNE-4] */
static dk_status
gather_selected(struct operation *op, const struct found *found, struct batch *batch,
                bool *ret_counts)
{
  *ret_counts = true;
  return gather_executions(op, found->iid, batch);
}

dk_status
apply_prune_page(struct operation *op)
{
  return apply_page(op, gather_selected, delete_executions);
}
