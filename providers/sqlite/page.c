/* SPDX-License-Identifier: Apache-2.0 */
/* DEL-9, PRUNE-4: a page of a deletion or a prune, and how far it goes. */
#include "providers/sqlite/admin.h"

#include <stdlib.h>

dk_status
delete_rows(struct operation *op, enum statement statement, uint64_t *rows, struct dk_bytes list)
{
  struct statements *sql = op->group->sql;

  TRY(sql_run(sql, statement, "t", list));
  *rows += (uint64_t)sqlite3_changes64(sql->connection->db);
  return DK_OK;
}

static dk_status
gather_page(struct operation *op, struct walk *walk, uint32_t most, gather_fn *gather,
            struct batch *batch)
{
  struct found found;
  bool is_there, counts;

  while (most > 0 && batch->rows < MOST_REMOVED) {
    TRY(walk_step(walk, &found, &is_there));
    if (!is_there)
      break;
    TRY(gather(op, &found, batch, &counts));
    most -= counts ? 1 : 0;
  }
  walk_stop(walk);
  return DK_OK;
}

static dk_status
delete_batch(struct operation *op, struct batch *batch, delete_fn *delete_gathered)
{
  struct dk_bytes list;

  if (batch->rows == 0)
    return DK_OK;
  TRY(list_text(op, &batch->list, &list));
  return delete_gathered(op, list, &batch->removed);
}

dk_status
apply_page(struct operation *op, gather_fn *gather, delete_fn *delete_gathered)
{
  const struct page *page = op->request;
  struct walk walk = page->walk; /* its ids belong to the function that began it */
  struct batch batch = {.removed = {.struct_size = sizeof batch.removed}};

  walk_start(&walk, op->group->sql, op->group->now, MOST_LOOKED_AT);
  dk_status status = gather_page(op, &walk, page->most, gather, &batch);
  if (status == DK_OK)
    status = delete_batch(op, &batch, delete_gathered);
  sql_close_all(op->group->sql); /* a statement that failed may still be bound to the list */
  free(batch.list.bytes);
  if (status != DK_OK)
    return status;
  if (!walk.is_over)
    batch.removed.next = (struct dk_bytes){walk.last, walk.last_length};
  op->group->h->host->removed(op->call, &batch.removed);
  return DK_OK;
}
