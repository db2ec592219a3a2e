/* SPDX-License-Identifier: Apache-2.0 */
/* REL: frees, by the id of a fetch, what that fetch has locked, after its answer was lost.  A host
 * asks for it once after such a loss.  So only the lock itself keeps the id, and both queues are
 * searched. */
#include "providers/sqlite/handle.h"

int64_t
fetch_id_of_turn(const struct dk_fetch_turn *request)
{
  return DK_HAS_FIELD(dk_fetch_turn, request, fetch_id) ? (int64_t)request->fetch_id : 0;
}

int64_t
fetch_id_of_work(const struct dk_fetch_work *request)
{
  return DK_HAS_FIELD(dk_fetch_work, request, fetch_id) ? (int64_t)request->fetch_id : 0;
}

/* *ret_iid 0: none. */
static dk_status
find_turn(struct operation *op, int64_t *ret_iid)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(sql, SQL_TURN_OF_FETCH, &row, "i", op->fetch_id));
  TRY(sql_next(sql, row, &is_there));
  *ret_iid = is_there ? sqlite3_column_int64(row, 0) : 0;
  sql_close(row);
  return DK_OK;
}

/* REL-1: a delivery that is given back has never been written, so nothing is taken off. */
static dk_status
release_turns(struct operation *op)
{
  struct turn turn;
  int64_t iid;

  for (;;) {
    TRY(find_turn(op, &iid));
    if (iid == 0)
      return DK_OK;
    TRY(read_turn(op, iid, &turn, NULL));
    TRY(release_turn(op, &turn, turn.done_epoch));
  }
}

dk_status
apply_release_fetch(struct operation *op)
{
  TRY(release_turns(op));
  op->group->rings |= RING_WORK;
  return sql_run(op->group->sql, SQL_RELEASE_WORK, "iii", op->fetch_id, op->group->now,
                 fresh_number(op));                                           /* REL-2 */
}
