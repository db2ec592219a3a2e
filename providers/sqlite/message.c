/* SPDX-License-Identifier: Apache-2.0 */
/* QUEUE: messages, the instances that they are for, and payloads.  A message is stored for any
 * target; the row that its address then has is not yet an instance (known is 0). */
#include "providers/sqlite/handle.h"

/* ---- addresses ------------------------------------------------------------------------------- */

static int64_t
number_or(sqlite3_stmt *row, int column, int64_t absent)
{
  return sqlite3_column_type(row, column) == SQLITE_NULL ? absent
                                                         : sqlite3_column_int64(row, column);
}

dk_status
find_address(struct operation *op, struct dk_bytes instance, struct address *ret_address)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(sql, SQL_FIND_INSTANCE, &row, "t", instance));
  TRY(sql_next(sql, row, &is_there));
  *ret_address = (struct address){.ready_at = -1};
  if (is_there)
    *ret_address = (struct address){sqlite3_column_int64(row, 0), number_or(row, 1, -1),
                                    sqlite3_column_int64(row, 2), sqlite3_column_int(row, 3) != 0};
  sql_close(row);
  return DK_OK;
}

dk_status
find_or_make_address(struct operation *op, struct dk_bytes instance, struct address *ret_address)
{
  TRY(find_address(op, instance, ret_address));
  if (ret_address->iid != 0)
    return DK_OK;
  ret_address->iid = fresh_number(op);
  return sql_run(op->group->sql, SQL_INSERT_INSTANCE, "it", ret_address->iid, instance);
}

/* ---- payloads -------------------------------------------------------------------------------- */

dk_status
store_payload(struct operation *op, struct dk_bytes payload, int64_t *ret_large)
{
  *ret_large = 0;
  if (!payload.ptr || payload.len <= SMALL_PAYLOAD)
    return DK_OK;
  *ret_large = fresh_number(op);
  return sql_run(op->group->sql, SQL_INSERT_LARGE, "ib", *ret_large, payload);
}

dk_status
delete_large(struct operation *op, int64_t large)
{
  return large == 0 ? DK_OK : sql_run(op->group->sql, SQL_DELETE_LARGE, "i", large);
}

dk_status
delete_with_payloads(struct operation *op, sqlite3_stmt *row)
{
  bool is_there;

  for (;;) {
    TRY(sql_next(op->group->sql, row, &is_there));
    if (!is_there)
      break;
    TRY(delete_large(op, sqlite3_column_int64(row, 0)));
  }
  sql_close(row);
  return DK_OK;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* TIME-5: from when an item is visible. */
int64_t
visible_from(const struct operation *op, const struct dk_item *item)
{
  int64_t delayed = time_add(op->group->now, item->delay_ms);

  return item->visible_at > delayed ? item->visible_at : delayed;
}

/* QUEUE-4: while a message of this instance with this id is stored, a second one is refused. */
dk_status
refuse_stored_message(struct operation *op, const struct dk_item *item)
{
  struct statements *sql = op->group->sql;
  struct address to;
  sqlite3_stmt *row;
  bool is_there;

  if (!item->id.ptr)
    return DK_OK;
  TRY(find_address(op, item->instance, &to));
  if (to.iid == 0)
    return DK_OK;
  TRY(sql_open(sql, SQL_FIND_MESSAGE, &row, "it", to.iid, item->id));
  TRY(sql_next(sql, row, &is_there));
  sql_close(row);
  if (!is_there)
    return DK_OK;
  return refuse(op, DK_DUPLICATE,
                "a message of instance \"%.64s\" with the id \"%.64s\" is already stored",
                item->instance.ptr, item->id.ptr);
}

/* QUEUE-5: an instance whose turn is out gets the message with its next one. */
static dk_status
make_ready(struct operation *op, const struct address *to, int64_t visible_at, int64_t seq)
{
  if (to->locked_until != 0 || (to->ready_at >= 0 && to->ready_at <= visible_at))
    return DK_OK;
  return sql_run(op->group->sql, SQL_MAKE_READY, "iii", to->iid, visible_at, seq);
}

/* QUEUE-1, QUEUE-2: all refusals came before. */
dk_status
store_message(struct operation *op, const struct dk_item *item)
{
  int64_t visible_at = visible_from(op, item), large;
  struct address to;

  TRY(find_or_make_address(op, item->instance, &to));
  TRY(store_payload(op, item->payload, &large));
  int64_t seq = fresh_number(op);
  TRY(sql_run(op->group->sql, SQL_INSERT_MESSAGE, "iiiitop", to.iid, visible_at, seq,
              op->group->now, item->id, large, item->payload));
  op->group->rings |= RING_TURNS;
  return make_ready(op, &to, visible_at, seq);
}

dk_status
apply_enqueue_message(struct operation *op)
{
  const struct dk_item *item = op->request;

  TRY(refuse_unknown(op, item->flags & ~(uint32_t)DK_REPEATED, "a flag of the message"));
  TRY(refuse_stored_message(op, item));
  return store_message(op, item);
}
