/* SPDX-License-Identifier: Apache-2.0 */
/* TURN: fetching, renewing and giving back one instance with its messages.
 *
 * A claim writes the instance's row and no message: the turn's messages are a range.  A message in
 * the range of a lease that was not given back has been delivered once more than its row says.  The
 * next claim writes that number, or the release of the turn does.
 */
#include "providers/sqlite/handle.h"

#include <string.h>

/* QUEUE-8: how far a fetch looks for an instance whose history its owner has, and how often it does
 * not look, so that no instance starves. */
enum { AFFINITY_DEPTH = 16, HEAD_EVERY = 8 };

/* ---- which instance -------------------------------------------------------------------------- */

static bool
same_bytes(struct dk_bytes a, struct dk_bytes b)
{
  return a.ptr && b.ptr && a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static int
compare_versions(struct dk_version a, struct dk_version b)
{
  if (a.major != b.major)
    return a.major < b.major ? -1 : 1;
  if (a.minor != b.minor)
    return a.minor < b.minor ? -1 : 1;
  return a.patch == b.patch ? 0 : a.patch < b.patch ? -1 : 1;
}

/* PIN-1 to PIN-5; the pin is in columns 3 to 5. */
static bool
fits_ranges(const struct dk_fetch_turn *request, sqlite3_stmt *row)
{
  struct dk_version pin = {(uint32_t)sqlite3_column_int64(row, 3),
                           (uint32_t)sqlite3_column_int64(row, 4),
                           (uint32_t)sqlite3_column_int64(row, 5)};

  if (!request->ranges)
    return true;
  if (sqlite3_column_type(row, 3) == SQLITE_NULL)
    return request->n_ranges > 0;
  for (size_t i = 0; i < request->n_ranges; i++)
    if (compare_versions(request->ranges[i].min, pin) <= 0 &&
        compare_versions(pin, request->ranges[i].max) <= 0)
      return true;
  return false;
}

static bool
is_warm(const struct dk_fetch_turn *request, struct dk_bytes owner, bool is_known)
{
  return is_known && same_bytes(owner, request->owner);
}

/* TURN-10: the one that is ready longest; but one whose history is in the fetcher's memory first,
 * if it is near.  *ret_iid 0: none. */
static dk_status
choose_instance(struct operation *op, int64_t *ret_iid)
{
  const struct dk_fetch_turn *request = op->request;
  struct statements *sql = op->group->sql;
  bool seeks = request->owner.ptr && ++op->group->h->fetches % HEAD_EVERY != 0, is_there;
  sqlite3_stmt *row;

  *ret_iid = 0;
  if (request->ranges && request->n_ranges == 0)
    return DK_OK;                                                     /* PIN-2 */
  TRY(sql_open(sql, SQL_READY_INSTANCES, &row, "i", op->group->now));
  for (int seen = 0;;) {
    TRY(sql_next(sql, row, &is_there));
    if (!is_there)
      break;
    if (!fits_ranges(request, row))
      continue;                                                       /* PIN-1: passed over */
    bool is_near = is_warm(request, sql_bytes(row, 1), sqlite3_column_int(row, 2) != 0);
    if (*ret_iid == 0 || is_near)
      *ret_iid = sqlite3_column_int64(row, 0);
    if (!seeks || is_near || ++seen == AFFINITY_DEPTH)
      break;
  }
  sql_close(row);
  return DK_OK;
}

/* CALL-6: what a waiting fetch wakes up for. */
static dk_status
note_next_turn(struct operation *op)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(sql, SQL_NEXT_READY_INSTANCE, &row, "i", op->group->now));
  TRY(sql_next(sql, row, &is_there));
  op->due = INT64_MAX;
  if (is_there && sqlite3_column_type(row, 0) != SQLITE_NULL)
    op->due = sqlite3_column_int64(row, 0);
  sql_close(row);
  return DK_NOTHING;
}

/* ---- handing it up --------------------------------------------------------------------------- */

dk_status
read_turn(struct operation *op, int64_t iid, struct turn *ret_turn, sqlite3_stmt **ret_row)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(sql, SQL_READ_INSTANCE, &row, "i", iid));
  TRY(sql_next(sql, row, &is_there));
  *ret_turn = (struct turn){.iid = 0};
  if (is_there)
    *ret_turn = (struct turn){
      .iid = iid,
      .locked_until = sqlite3_column_int64(row, 0),
      .epoch = sqlite3_column_int64(row, 1),
      .visible_at = sqlite3_column_int64(row, 2),
      .seq = sqlite3_column_int64(row, 3),
      .cut = sqlite3_column_int64(row, 4),
      .done_epoch = sqlite3_column_int64(row, 5),
      .known = sqlite3_column_int64(row, 6),
      .status = sqlite3_column_int64(row, 7),
      .execution = sqlite3_column_int64(row, 8),
      .last_event = sqlite3_column_int64(row, 9),
    };
  if (ret_row)
    *ret_row = row;
  else
    sql_close(row);
  return DK_OK;
}

/* TURN-13: what follows the head: the whole history, or nothing. */
static dk_status
find_history_from(struct operation *op, const struct turn *turn, bool warm, uint64_t *ret_from)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  *ret_from = (uint64_t)turn->last_event + 1;
  if (warm || turn->last_event == 0)
    return DK_OK;
  TRY(sql_open(sql, SQL_FIRST_EVENT, &row, "ii", turn->iid, turn->execution));
  TRY(sql_next(sql, row, &is_there));
  if (is_there && sqlite3_column_type(row, 0) != SQLITE_NULL)
    *ret_from = (uint64_t)sqlite3_column_int64(row, 0);
  sql_close(row);
  return DK_OK;
}

/* The rest of a lease at an upcall; if the lease has ended, the turn is not handed up.  [TIME-2] */
static dk_status
hand_up_head(struct operation *op, const struct turn *turn, sqlite3_stmt *row, bool warm,
             int64_t until, int64_t epoch)
{
  const struct dk_host *host = op->group->h->host;
  char room[MAX_TOKEN];
  struct dk_turn_head head = {
    .struct_size = sizeof head,
    .lock_token = turn_token(op, room, turn->iid, epoch),
    .instance = sql_bytes(row, 17),
    .now = op->group->now,
    .known = turn->known != 0,
  };

  if (turn->known) {                                                   /* TURN-4, TURN-11 */
    head.status = (int32_t)turn->status;
    head.name = sql_bytes(row, 14);
    head.version = sql_bytes(row, 15);
    head.parent_instance = sql_bytes(row, 16);
    head.birth = (uint64_t)turn->iid;
    head.execution_id = (uint64_t)turn->execution;
    head.last_event_id = (uint64_t)turn->last_event;
    TRY(find_history_from(op, turn, warm, &head.history_from));
  }
  head.lease_left_ms = until - host->now(host);
  if (head.lease_left_ms < 1)
    return refuse(op, DK_BUSY, "the lease ended before the turn could be delivered");
  return host->turn(op->call, &head);
}

static dk_status
hand_up_events(struct operation *op, const struct turn *turn)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(sql, SQL_TURN_EVENTS, &row, "ii", turn->iid, turn->execution));
  for (;;) {
    TRY(sql_next(sql, row, &is_there));
    if (!is_there)
      break;
    struct dk_event event = {(uint64_t)sqlite3_column_int64(row, 0), sql_bytes(row, 1)};
    TRY(op->group->h->host->event(op->call, &event));
  }
  sql_close(row);
  return DK_OK;
}

/* POISON-2: a delivery whose lease has ended counts, though no row says so. */
static int64_t
attempt_of(const struct turn *before, int64_t stored, int64_t visible_at, int64_t seq)
{
  bool was_delivered = before->locked_until != 0 && seq <= before->cut &&
                       (visible_at < before->visible_at ||
                        (visible_at == before->visible_at && seq <= before->seq));

  return stored + 1 + (was_delivered ? 1 : 0);
}

/* TURN-2: from the front, within the bounds, but at least one.  `claimed` gets their range. */
static dk_status
hand_up_messages(struct operation *op, const struct turn *before, struct turn *claimed)
{
  const struct dk_fetch_turn *request = op->request;
  struct statements *sql = op->group->sql;
  int64_t most = request->max_messages ? (int64_t)request->max_messages : -1;
  uint64_t bytes = 0;
  sqlite3_stmt *row;
  bool is_there;

  claimed->seq = 0;
  TRY(sql_open(sql, SQL_TURN_MESSAGES, &row, "iii", before->iid, op->group->now, most));
  for (;;) {
    TRY(sql_next(sql, row, &is_there));
    if (!is_there)
      break;
    struct dk_message message = {
      .struct_size = sizeof message,
      .id = sql_bytes(row, 4),
      .payload = sql_bytes(row, 5),
      .visible_at = sqlite3_column_int64(row, 0),
      .enqueued_at = sqlite3_column_int64(row, 3),
    };
    int64_t seq = sqlite3_column_int64(row, 1);
    bytes += message.payload.len;
    if (request->max_bytes && bytes > request->max_bytes && claimed->seq != 0)
      break;
    message.attempt = (uint32_t)attempt_of(before, sqlite3_column_int64(row, 2),
                                           message.visible_at, seq);
    claimed->visible_at = message.visible_at;
    claimed->seq = seq;
    TRY(op->group->h->host->message(op->call, &message));
  }
  sql_close(row);
  return DK_OK;
}

/* ---- fetching -------------------------------------------------------------------------------- */

static dk_status
count_last_delivery(struct operation *op, const struct turn *before)
{
  if (before->locked_until == 0)
    return DK_OK;
  return sql_run(op->group->sql, SQL_COUNT_ATTEMPTS, "iiii", before->iid, before->visible_at,
                 before->seq, before->cut);
}

/* TURN-2, TURN-4, TURN-13: head, history, messages.  `claimed` gets their range. */
static dk_status
hand_up_turn(struct operation *op, const struct turn *before, sqlite3_stmt *row,
             struct turn *claimed)
{
  bool warm = is_warm(op->request, sql_bytes(row, 13), before->known != 0);  /* TURN-5 */

  TRY(hand_up_head(op, before, row, warm, claimed->locked_until, claimed->epoch));
  sql_close(row);
  if (before->known && !warm)
    TRY(hand_up_events(op, before));
  TRY(hand_up_messages(op, before, claimed));
  if (claimed->seq == 0)
    return refuse(op, DK_CORRUPT, "instance %lld is marked as ready but has no message; the store "
                  "is damaged", (long long)before->iid);
  return DK_OK;
}

static dk_status
store_claim(struct operation *op, const struct turn *claimed)
{
  return sql_run(op->group->sql, SQL_CLAIM_TURN, "iiiiiii", claimed->iid, claimed->locked_until,
                 claimed->epoch, claimed->visible_at, claimed->seq, claimed->cut,
                 fetch_id_of_turn(op->request));
}

/* TURN-1, TIME-1: all upcalls first, then what is written. */
dk_status
apply_fetch_turn(struct operation *op)
{
  const struct dk_fetch_turn *request = op->request;
  struct turn before, claimed = {.cut = op->group->counter};
  sqlite3_stmt *row;

  TRY(choose_instance(op, &claimed.iid));
  if (claimed.iid == 0)
    return note_next_turn(op);
  TRY(read_turn(op, claimed.iid, &before, &row));
  claimed.locked_until = time_add(op->group->now, request->lock_ms);
  claimed.epoch = fresh_number(op);                                          /* TOKEN-1 */
  TRY(hand_up_turn(op, &before, row, &claimed));
  TRY(count_last_delivery(op, &before));                                     /* POISON-2 */
  return store_claim(op, &claimed);
}

/* ---- with a token ---------------------------------------------------------------------------- */

/* TOKEN-2 to TOKEN-8, TIME-6: the turn that this token holds now. */
dk_status
find_live_turn(struct operation *op, struct turn *ret_turn)
{
  struct token token;

  TRY(read_turn_token(op, op->token, &token));
  TRY(read_turn(op, token.of.iid, ret_turn, NULL));
  if (ret_turn->iid == 0)
    return refuse(op, DK_LOCK_LOST, "this token was never issued, or its instance was deleted");
  if (ret_turn->epoch != token.epoch || ret_turn->locked_until <= op->group->now)
    return refuse_dead_token(op, token.epoch, ret_turn->epoch, ret_turn->locked_until);
  return DK_OK;
}

/* TURN-6, TURN-7: it comes after those that are ready now. */
dk_status
release_turn(struct operation *op, const struct turn *turn, int64_t done_epoch)
{
  op->group->rings |= RING_TURNS;
  return sql_run(op->group->sql, SQL_RELEASE_TURN, "iiii", turn->iid, op->group->now,
                 fresh_number(op), done_epoch);
}

dk_status
apply_renew_turn(struct operation *op)
{
  int64_t until = time_add(op->group->now, op->ms);
  struct turn turn;

  TRY(find_live_turn(op, &turn));
  if (until < turn.locked_until)
    op->group->rings |= RING_TURNS; /* a fetch may wait for the old end */
  return sql_run(op->group->sql, SQL_RENEW_TURN, "ii", turn.iid, until);     /* TURN-9 */
}

/* TURN-7, TURN-8, POISON-4: the messages of this turn, and nothing else. */
dk_status
apply_abandon_turn(struct operation *op)
{
  int64_t counted = op->ignore_attempt ? 0 : 1;
  struct turn turn;

  TRY(find_live_turn(op, &turn));
  if (op->ms > 0)
    TRY(sql_run(op->group->sql, SQL_DELAY_MESSAGES, "iiiiii", turn.iid, turn.visible_at, turn.seq,
                turn.cut, time_add(op->group->now, op->ms), counted));
  else if (counted)
    TRY(sql_run(op->group->sql, SQL_COUNT_ATTEMPTS, "iiii", turn.iid, turn.visible_at, turn.seq,
                turn.cut));
  return release_turn(op, &turn, turn.done_epoch);
}
