/* SPDX-License-Identifier: Apache-2.0 */
/* DEL: deleting instances with their descendants, in the transaction that finds them.  All refusals
 * come before the first write.  Then all that is to be deleted is one list, and one statement for
 * each table deletes its rows.
 *
 * No token outlives its instance: the row that it names is deleted, and a later instance with the
 * same id has a number that was never given before.  [DEL-5, DEL-6] */
#include "providers/sqlite/admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- what is deleted ------------------------------------------------------------------------- */

enum { SHOWN = 64 }; /* bytes of an id, in a refusal */

/* One of the instances to be deleted that has not ended, if any: its status, and the front of its
 * id. */
struct unfinished {
  bool is_there;
  int status;
  char id[SHOWN + 1];
};

static bool
is_over(int status)
{
  return status == DK_COMPLETED || status == DK_FAILED || status == DK_CANCELLED;
}

/* DEL-3: the instances of the list, and whatever has one of them for an ancestor, however deep. */
static dk_status
gather_trees(struct operation *op, struct dk_bytes named, struct batch *batch,
             struct unfinished *ret_unfinished)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  ret_unfinished->is_there = false;
  TRY(sql_open(sql, SQL_FIND_TREE, &row, "t", named));
  for (;;) {
    TRY(sql_next(sql, row, &is_there));
    if (!is_there)
      break;
    list_add(&batch->list, (uint64_t)sqlite3_column_int64(row, 0));
    batch->rows += 1 + (uint64_t)sqlite3_column_int64(row, 3);
    int status = sqlite3_column_int(row, 1);
    if (is_over(status) || ret_unfinished->is_there)
      continue;
    *ret_unfinished = (struct unfinished){.is_there = true, .status = status};
    snprintf(ret_unfinished->id, sizeof ret_unfinished->id, "%s",
             (const char *)sqlite3_column_text(row, 2));
  }
  sql_close(row);
  return DK_OK;
}

/* DEL-1, DEL-7: whatever the store has of them. */
static dk_status
delete_trees(struct operation *op, struct dk_bytes list, struct dk_removed *removed)
{
  uint64_t payloads = 0; /* each belongs to a row that is counted */

  TRY(delete_rows(op, SQL_DELETE_LARGE_OF_DOOMED, &payloads, list));
  TRY(delete_rows(op, SQL_DELETE_DOOMED_MESSAGES, &removed->messages, list));
  TRY(delete_rows(op, SQL_DELETE_DOOMED_WORK, &removed->activities, list));
  TRY(delete_rows(op, SQL_DELETE_DOOMED_EXECUTIONS, &removed->executions, list));
  TRY(delete_rows(op, SQL_DELETE_DOOMED_HISTORIES, &removed->events, list));
  return delete_rows(op, SQL_DELETE_DOOMED_INSTANCES, &removed->instances, list);
}

/* ---- those that were named ------------------------------------------------------------------- */

/* DEL-4: an instance is there by a commit or by a message. */
static bool
is_instance(const struct address *address)
{
  return address->is_known || address->ready_at >= 0;
}

static dk_status
find_named(struct operation *op, struct list *list, struct dk_bytes *ret_named)
{
  const struct dk_delete_instances *request = op->request;
  struct address address;

  for (size_t i = 0; i < request->n_instances; i++) {
    TRY(find_address(op, request->instances[i], &address));
    if (!is_instance(&address))
      return refuse(op, DK_NOT_FOUND,
                    "instance \"%.64s\" does not exist: it has neither a committed turn nor a "
                    "message; nothing was deleted; leave it out, and try again",
                    request->instances[i].ptr);
    list_add(list, (uint64_t)address.iid);
  }
  return list_text(op, list, ret_named);
}

/* DEL-3, with force too. */
static dk_status
refuse_children_of_others(struct operation *op, struct dk_bytes named, struct dk_bytes going)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(sql, SQL_FIND_PARENT_THAT_STAYS, &row, "tt", named, going));
  TRY(sql_next(sql, row, &is_there));
  if (is_there)
    return refuse(op, DK_REFUSED,
                  "instance \"%.64s\" is a child of \"%.64s\", which exists and would stay; "
                  "nothing was deleted; delete the parent, and its children are deleted too",
                  (const char *)sqlite3_column_text(row, 0),
                  (const char *)sqlite3_column_text(row, 1));
  sql_close(row);
  return DK_OK;
}

/* DEL-7: each named instance is one, even if it has an ancestor among them; an id given twice
 * counts once.
 */
static dk_status
count_roots(struct operation *op, struct dk_bytes named, struct dk_removed *removed)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(sql, SQL_COUNT_NAMED, &row, "t", named));
  TRY(sql_next(sql, row, &is_there));
  removed->roots = is_there ? (uint64_t)sqlite3_column_int64(row, 0) : 0;
  sql_close(row);
  return DK_OK;
}

/* DEL-2. */
static dk_status
refuse_unfinished(struct operation *op, const struct unfinished *unfinished)
{
  const char *state = unfinished->status == DK_RUNNING ? "is running"
                      : unfinished->status == DK_CONTINUED_AS_NEW
                        ? "continues as new"
                        : "has not started";

  if (!unfinished->is_there)
    return DK_OK;
  return refuse(op, DK_REFUSED,
                "instance \"%s\" has not ended: it %s; nothing was deleted; cancel it and wait "
                "until it ends, or delete it now with DK_DELETE_FORCE", unfinished->id, state);
}

static dk_status
delete_named(struct operation *op, struct list *list, struct batch *batch)
{
  const struct dk_delete_instances *request = op->request;
  struct unfinished unfinished;
  struct dk_bytes named, going;

  TRY(find_named(op, list, &named));                                 /* DEL-4 */
  TRY(gather_trees(op, named, batch, &unfinished));                  /* DEL-3 */
  TRY(list_text(op, &batch->list, &going));
  TRY(refuse_children_of_others(op, named, going));                  /* DEL-3 */
  if (!(request->flags & DK_DELETE_FORCE))
    TRY(refuse_unfinished(op, &unfinished));                         /* DEL-2 */
  TRY(count_roots(op, named, &batch->removed));                      /* DEL-7 */
  return delete_trees(op, going, &batch->removed);                   /* DEL-1 */
}

dk_status
apply_delete_instances(struct operation *op)
{
  struct batch batch = {.removed = {.struct_size = sizeof batch.removed}};
  struct list named = {.length = 0};
  const struct dk_delete_instances *request = op->request;
  dk_status status = request->n_instances > 0 ? delete_named(op, &named, &batch) : DK_OK;

  sql_close_all(op->group->sql); /* a statement that failed may still be bound to the lists */
  free(named.bytes);
  free(batch.list.bytes);
  if (status == DK_OK)
    op->group->h->host->removed(op->call, &batch.removed);
  return status;
}

/* ---- those that a filter selects ------------------------------------------------------------- */

static dk_status
has_parent(struct operation *op, const struct dk_instance *instance, bool *ret_has_parent)
{
  struct address address;

  *ret_has_parent = false;
  if (!instance->parent_instance.ptr)
    return DK_OK;
  TRY(find_address(op, instance->parent_instance, &address));
  *ret_has_parent = is_instance(&address);
  return DK_OK;
}

/* DEL-8: an instance without an existing parent that has ended with all its descendants.  All of
 * them stay until the batch is gathered.  So a child that comes later in the walk still has its
 * parent, and is passed over here, because it is deleted with the parent. */
static dk_status
gather_tree(struct operation *op, const struct found *found, struct batch *batch, bool *ret_counts)
{
  struct batch before = *batch;
  struct unfinished unfinished;
  bool is_child;
  char root[32];

  *ret_counts = false;
  if (!is_over(found->instance.status))
    return DK_OK;
  TRY(has_parent(op, &found->instance, &is_child));
  if (is_child)
    return DK_OK;
  int length = snprintf(root, sizeof root, "[%" PRId64 "]", found->iid);
  TRY(gather_trees(op, (struct dk_bytes){root, (size_t)length}, batch, &unfinished));
  *ret_counts = !unfinished.is_there;
  batch->removed.roots += *ret_counts ? 1 : 0;
  if (unfinished.is_there) {
    batch->rows = before.rows;
    batch->list.length = before.list.length; /* what was added is taken off */
  }
  return DK_OK;
}

dk_status
apply_delete_matching(struct operation *op)
{
  return apply_page(op, gather_tree, delete_trees);
}
