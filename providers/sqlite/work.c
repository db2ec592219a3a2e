/* SPDX-License-Identifier: Apache-2.0 */
/* WORK, TAG: the worker queue.  If the row is there it is work: nothing here reads the state of an
 * orchestration. */
#include "providers/sqlite/handle.h"

#include <stdlib.h>
#include <string.h>

/* ---- storing --------------------------------------------------------------------------------- */

/* CANCEL-11: one identity, one row. */
dk_status
refuse_stored_work(struct operation *op, const struct identity *of)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(sql, SQL_FIND_WORK, &row, "iii", of->iid, of->execution, of->activity));
  TRY(sql_next(sql, row, &is_there));
  sql_close(row);
  if (!is_there)
    return DK_OK;
  return refuse(op, DK_DUPLICATE, "activity %lld of execution %lld is already stored",
                (long long)of->activity, (long long)of->execution);
}

/* ACK-6, TAG-4. */
dk_status
insert_work(struct operation *op, int64_t iid, const struct dk_item *item)
{
  struct dk_bytes tag = item->tag.ptr ? item->tag : (struct dk_bytes){"", 0};
  int64_t large;

  TRY(store_payload(op, item->payload, &large));
  op->group->rings |= RING_WORK;
  return sql_run(op->group->sql, SQL_INSERT_WORK, "iiiiitop", iid, (int64_t)item->execution_id,
                 (int64_t)item->activity_id, visible_from(op, item), fresh_number(op), tag, large,
                 item->payload);
}

/* WORK-9: the same row as a commit's. */
dk_status
apply_enqueue_work(struct operation *op)
{
  const struct dk_item *item = op->request;
  struct address to;

  TRY(refuse_unknown(op, item->flags & ~(uint32_t)DK_REPEATED, "a flag of the activity"));
  TRY(refuse_session(op, item));
  TRY(find_address(op, item->instance, &to));
  if (to.iid != 0)
    TRY(refuse_stored_work(op, &(struct identity){to.iid, (int64_t)item->execution_id,
                                                  (int64_t)item->activity_id}));
  TRY(find_or_make_address(op, item->instance, &to));
  return insert_work(op, to.iid, item);
}

/* ---- which items ----------------------------------------------------------------------------- */

/* A fetch brings no more at once, whatever it asks: a turn of the writer is short.  [WORK-8] */
enum { MOST_ITEMS = 1024 };

struct candidate {
  struct identity of;
  int64_t ready_at, seq, epoch;
};
/* The best so far, the best first, no more than `most`. */
struct candidates {
  struct candidate *first;
  size_t n, most;
};

/* WORK-2: what is ready longest first.  No two items share a number. */
static int
compare_candidates(const struct candidate *a, const struct candidate *b)
{
  if (a->ready_at != b->ready_at)
    return a->ready_at < b->ready_at ? -1 : 1;
  return (a->seq > b->seq) - (a->seq < b->seq);
}

/* Of those of one tag most come behind the others of it: the place is looked for from the end. */
static void
insert_candidate(struct candidates *list, const struct candidate *c)
{
  size_t at = list->n;
  int order = 1;

  while (at > 0 && (order = compare_candidates(c, &list->first[at - 1])) < 0)
    at--;
  if (at > 0 && order == 0)
    return; /* its tag is listed twice */
  if (list->n < list->most)
    list->n++;
  memmove(&list->first[at + 1], &list->first[at], (list->n - 1 - at) * sizeof *c);
  list->first[at] = *c;
}

static bool
is_wanted(const struct candidates *list, const struct candidate *c)
{
  return list->n < list->most || compare_candidates(c, &list->first[list->n - 1]) < 0;
}

/* The bound of what a fetch brings, whatever it asks. */
static dk_status
work_make_room(struct operation *op, struct candidates *list)
{
  const struct dk_fetch_work *request = op->request;

  list->most = request->max_items < MOST_ITEMS ? request->max_items : MOST_ITEMS;
  list->first = reallocarray(NULL, list->most, sizeof *list->first);
  return list->first ? DK_OK : refuse(op, DK_NO_MEMORY, "out of memory");
}

/* They come in order: behind one that is not wanted there is none that is. */
static dk_status
look_under_tag(struct operation *op, struct dk_bytes tag, struct candidates *list)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(sql, SQL_READY_WORK, &row, "tii", tag, op->group->now, (int64_t)list->most));
  for (;;) {
    TRY(sql_next(sql, row, &is_there));
    if (!is_there)
      break;
    struct candidate c = {
      .of = {sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1),
             sqlite3_column_int64(row, 2)},
      .ready_at = sqlite3_column_int64(row, 3),
      .seq = sqlite3_column_int64(row, 4),
    };
    if (!is_wanted(list, &c))
      break;
    insert_candidate(list, &c);
  }
  sql_close(row);
  return DK_OK;
}

/* CALL-6. */
static dk_status
note_next_work(struct operation *op, struct dk_bytes tag)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(sql, SQL_NEXT_READY_WORK, &row, "ti", tag, op->group->now));
  TRY(sql_next(sql, row, &is_there));
  if (is_there && sqlite3_column_type(row, 0) != SQLITE_NULL &&
      sqlite3_column_int64(row, 0) < op->due)
    op->due = sqlite3_column_int64(row, 0);
  sql_close(row);
  return DK_OK;
}

/* With `list` what is ready under the tag, without it when the next will be. */
static dk_status
work_look(struct operation *op, struct dk_bytes tag, struct candidates *list)
{
  return list ? look_under_tag(op, tag, list) : note_next_work(op, tag);
}

/* DK_TAG_ANY: each tag that there is, one after the other in the index: two looks for each tag, and
 * little more than max_items rows in all, for a tag is left at the first row that is not wanted.
 * Right for tags that name kinds of workers; with one for each of many thousand tenants a fetch
 * takes as many looks (some 3 us each), and a host does better to list tags. */
static dk_status
look_under_all_tags(struct operation *op, struct candidates *list)
{
  struct statements *sql = op->group->sql;
  char room[MAX_ID];
  struct dk_bytes tag = {"", 0};

  for (;;) {
    sqlite3_stmt *row;
    bool is_there;

    TRY(sql_open(sql, SQL_NEXT_TAG, &row, "t", tag));
    TRY(sql_next(sql, row, &is_there));
    struct dk_bytes next = is_there ? sql_bytes(row, 0) : (struct dk_bytes){NULL, 0};
    if (next.len > sizeof room)
      return refuse(op, DK_CORRUPT, "a work item has a tag of %zu bytes; the store is damaged",
                    next.len);
    if (next.ptr)
      memcpy(room, next.ptr, next.len);
    tag = (struct dk_bytes){next.ptr ? room : NULL, next.len};
    sql_close(row);
    if (!tag.ptr)
      return DK_OK;
    TRY(work_look(op, tag, list));
  }
}

/* TAG-1. */
static dk_status
look_under_rule(struct operation *op, struct candidates *list)
{
  const struct dk_fetch_work *request = op->request;

  if (request->tag_rule != DK_TAG_LISTED)
    TRY(work_look(op, (struct dk_bytes){"", 0}, list));
  if (request->tag_rule == DK_TAG_ANY)
    return look_under_all_tags(op, list);
  if (request->tag_rule == DK_TAG_UNTAGGED)
    return DK_OK;
  for (size_t i = 0; i < request->n_tags; i++)
    if (request->tags[i].len > 0) /* no item has an empty one */
      TRY(work_look(op, request->tags[i], list));
  return DK_OK;
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* The item lives until the row is closed. */
static dk_status
read_item(struct operation *op, const struct candidate *c, struct dk_work *ret_work,
          struct dk_item *ret_item, sqlite3_stmt **ret_row)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(sql, SQL_READ_WORK, &row, "iii", c->of.iid, c->of.execution, c->of.activity));
  TRY(sql_next(sql, row, &is_there));
  if (!is_there)
    return refuse(op, DK_CORRUPT,
                  "activity %lld of execution %lld of instance %lld has no address; the store is "
                  "damaged", (long long)c->of.activity, (long long)c->of.execution,
                  (long long)c->of.iid);
  *ret_item = (struct dk_item){
    .struct_size = sizeof *ret_item,
    .instance = sql_bytes(row, 3),
    .execution_id = (uint64_t)c->of.execution,
    .activity_id = (uint64_t)c->of.activity,
    .tag = sql_bytes(row, 2),
    .visible_at = sqlite3_column_int64(row, 1),
    .payload = sql_bytes(row, 4),
  };
  if (ret_item->tag.len == 0)
    ret_item->tag.ptr = NULL;
  *ret_work = (struct dk_work){
    .struct_size = sizeof *ret_work,
    .attempt = (uint32_t)sqlite3_column_int64(row, 0) + 1,
    .item = ret_item,
    .now = op->group->now,
  };
  *ret_row = row;
  return DK_OK;
}

/* WORK-8; `bytes` came before it. */
static bool
is_within_bounds(const struct dk_fetch_work *request, const struct dk_item *item, bool is_first,
                 uint64_t *bytes)
{
  *bytes += item->payload.len;
  return is_first || !request->max_bytes || *bytes <= request->max_bytes;
}

/* TOKEN-1, TIME-2: under a token of its own, with what is left of the lease. */
static dk_status
hand_up_item(struct operation *op, struct candidate *c, struct dk_work *work)
{
  const struct dk_fetch_work *request = op->request;
  const struct dk_host *host = op->group->h->host;
  char room[MAX_TOKEN];

  c->epoch = fresh_number(op);
  work->lock_token = work_token(op, room, &c->of, c->epoch);
  work->lease_left_ms = time_add(op->group->now, request->lock_ms) - host->now(host);
  if (work->lease_left_ms < 1)
    return refuse(op, DK_BUSY, "the lease ended before the work could be delivered");
  return host->work(op->call, work);
}

/* *ret_fits false: it would exceed the bound, and was not handed up. */
static dk_status
hand_up_work(struct operation *op, struct candidate *c, bool is_first, uint64_t *bytes,
             bool *ret_fits)
{
  struct dk_work work;
  struct dk_item item;
  sqlite3_stmt *row = NULL;

  TRY(read_item(op, c, &work, &item, &row));
  *ret_fits = is_within_bounds(op->request, &item, is_first, bytes);
  if (*ret_fits)
    TRY(hand_up_item(op, c, &work));
  sql_close(row);
  return DK_OK;
}

static dk_status
store_claims(struct operation *op, const struct candidate *claimed, size_t n)
{
  const struct dk_fetch_work *request = op->request;
  int64_t until = time_add(op->group->now, request->lock_ms);

  for (const struct candidate *c = claimed; c < claimed + n; c++)
    TRY(sql_run(op->group->sql, SQL_CLAIM_WORK, "iiiiiti", c->of.iid, c->of.execution,
                c->of.activity, until, c->epoch, request->owner, fetch_id_of_work(request)));
  return DK_OK;
}

/* WORK-1: all are handed up before the first is written. */
static dk_status
claim_candidates(struct operation *op, struct candidates *list)
{
  size_t n = 0;
  uint64_t bytes = 0;
  bool fits = true;

  while (n < list->n && fits) {
    TRY(hand_up_work(op, &list->first[n], n == 0, &bytes, &fits));
    n += fits ? 1 : 0;
  }
  return store_claims(op, list->first, n);
}

static dk_status
look_and_claim(struct operation *op, struct candidates *list)
{
  TRY(work_make_room(op, list));
  TRY(look_under_rule(op, list));
  if (list->n > 0)
    return claim_candidates(op, list);
  op->due = INT64_MAX;
  TRY(look_under_rule(op, NULL));
  return DK_NOTHING;
}

dk_status
apply_fetch_work(struct operation *op)
{
  const struct dk_fetch_work *request = op->request;
  struct candidates list = {.n = 0};

  TRY(refuse_unknown(op, request->tag_rule < DK_TAG_UNTAGGED || request->tag_rule > DK_TAG_ANY,
                     "the tag rule"));
  TRY(refuse_unknown(op, request->session_rule != DK_SESSION_NONE, "the session rule"));
  dk_status status = look_and_claim(op, &list);
  free(list.first);
  return status;
}

/* ---- with a token ---------------------------------------------------------------------------- */

struct held_work {
  struct token token;
  int64_t locked_until, attempt, large;
};

/* TOKEN-2 to TOKEN-8, CANCEL-5: the row that this token holds now. */
static dk_status
find_live_work(struct operation *op, struct held_work *ret_work)
{
  struct statements *sql = op->group->sql;
  const struct identity *of = &ret_work->token.of;
  int64_t epoch;
  sqlite3_stmt *row;
  bool is_there;

  TRY(read_work_token(op, op->token, &ret_work->token));
  TRY(sql_open(sql, SQL_FIND_WORK, &row, "iii", of->iid, of->execution, of->activity));
  TRY(sql_next(sql, row, &is_there));
  if (!is_there) {
    sql_close(row);
    return refuse(op, DK_LOCK_LOST, "there is no row for this token: the activity was cancelled "
                                    "by a commit or is done, or its instance was deleted");
  }
  epoch = sqlite3_column_int64(row, 1);
  ret_work->locked_until = epoch ? sqlite3_column_int64(row, 0) : 0;
  ret_work->attempt = sqlite3_column_int64(row, 2);
  ret_work->large = sqlite3_column_int64(row, 3);
  sql_close(row);
  if (epoch == ret_work->token.epoch && ret_work->locked_until > op->group->now)
    return DK_OK;
  return refuse_dead_token(op, ret_work->token.epoch, epoch ? epoch : INT64_MAX,
                           ret_work->locked_until);
}

/* WORK-4, CANCEL-7: the completion is enqueued if, and only if, this deleted the row. */
static dk_status
delete_work(struct operation *op, const struct held_work *work)
{
  const struct identity *of = &work->token.of;
  struct statements *sql = op->group->sql;

  TRY(sql_run(sql, SQL_DELETE_WORK, "iiii", of->iid, of->execution, of->activity,
              work->token.epoch));
  if (sqlite3_changes(sql->connection->db) != 1)
    return refuse(op, DK_LOCK_LOST, "there is no row for this token");
  return delete_large(op, work->large);
}

dk_status
apply_ack_work(struct operation *op)
{
  const struct dk_work_result *result = op->request;
  const struct dk_item *completion = result->completion;
  struct held_work work;

  TRY(find_live_work(op, &work));
  TRY(refuse_unknown(op, result->flags & ~(uint32_t)DK_REPEATED, "a flag of the ack"));
  if (completion) {
    TRY(refuse_unknown(op, completion->flags != 0, "a flag of the completion"));
    TRY(refuse_stored_message(op, completion));                        /* QUEUE-4 */
  }
  TRY(delete_work(op, &work));                                         /* WORK-4: both */
  return completion ? store_message(op, completion) : DK_OK;           /* or neither; CANCEL-8 */
}

dk_status
apply_renew_work(struct operation *op)
{
  int64_t until = time_add(op->group->now, op->ms);
  struct held_work work;

  TRY(find_live_work(op, &work));
  if (until < work.locked_until)
    op->group->rings |= RING_WORK; /* a fetch may wait for the old end */
  return sql_run(op->group->sql, SQL_RENEW_WORK, "iiii", work.token.of.iid,
                 work.token.of.execution, work.token.of.activity, until);    /* WORK-6 */
}

/* WORK-7, POISON-5. */
dk_status
apply_abandon_work(struct operation *op)
{
  struct held_work work;

  TRY(find_live_work(op, &work));
  op->group->rings |= RING_WORK;
  return sql_run(op->group->sql, SQL_ABANDON_WORK, "iiiiii", work.token.of.iid,
                 work.token.of.execution, work.token.of.activity,
                 time_add(op->group->now, op->ms), fresh_number(op),
                 (int64_t)(op->ignore_attempt && work.attempt > 0));
}
