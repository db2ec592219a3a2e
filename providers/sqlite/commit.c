/* SPDX-License-Identifier: Apache-2.0 */
/* ACK, CANCEL: the commit.  It stores what one turn did, whole or not at all.  All refusals come
 * before the first write, by the state of the store before the commit. */
#include <stdlib.h>

#include "providers/sqlite/list.h"

/* ---- refusing -------------------------------------------------------------------------------- */

/* ACK-11: the last commit of its instance, once more, is done already.  Else the token must be
 * live. */
static dk_status
find_turn_to_commit(struct operation *op, struct turn *ret_turn, bool *ret_is_done)
{
  const struct dk_turn_result *r = op->request;
  struct token token;

  *ret_is_done = false;
  if (!(r->flags & DK_REPEATED))
    return find_live_turn(op, ret_turn);
  TRY(read_turn_token(op, op->token, &token));
  TRY(read_turn(op, token.of.iid, ret_turn, NULL));
  *ret_is_done = ret_turn->iid != 0 && ret_turn->done_epoch == token.epoch;
  return *ret_is_done ? DK_OK : find_live_turn(op, ret_turn);
}

static dk_status
refuse_form(struct operation *op, const struct turn *turn, const struct dk_turn_result *r)
{
  bool is_first = turn->known == 0;
  int64_t execution = (int64_t)r->execution_id;

  if (execution == 0)
    return commit_is_bare(r) ? DK_OK
                             : refuse(op, DK_INVALID,
                                      "an empty commit (execution_id 0) may have only messages");
  if (is_first && (!r->name.ptr || !r->version.ptr))                         /* ACK-4 */
    return refuse(op, DK_INVALID, "the first commit of an instance needs name and version");
  if (execution == turn->execution + 1 || (!is_first && execution == turn->execution))
    return DK_OK;
  return refuse(op, DK_INVALID,                                              /* ACK-5, EXEC-2 */
                "execution %lld is neither the current one (%lld) nor the next",
                (long long)execution, (long long)turn->execution);
}

static int64_t
last_event_of(const struct turn *turn, const struct dk_turn_result *r)
{
  return turn->execution == (int64_t)r->execution_id ? turn->last_event : 0;
}

/* ACK-12. */
static dk_status
refuse_old_event(struct operation *op, uint64_t event, uint64_t last)
{
  if (event > last)
    return DK_OK;
  return refuse(op, DK_DUPLICATE, "event %llu does not follow the last one, which is %llu",
                (unsigned long long)event, (unsigned long long)last);
}

/* Each item of a list; the refusal names the one that op has come to.  [ACK-15] */
#define FOR_EACH_ITEM(op, its_list, n)                                                             \
  for ((op)->list = (its_list), (op)->index = 0; (op)->index < (n); (op)->index++)

/* ACK-12, CANCEL-11, QUEUE-4: what is stored already, or would be twice. */
static dk_status
refuse_duplicates(struct operation *op, const struct turn *turn, const struct dk_turn_result *r)
{
  uint64_t last = (uint64_t)last_event_of(turn, r);

  FOR_EACH_ITEM(op, DK_LIST_EVENTS, r->n_events) {
    TRY(refuse_old_event(op, r->events[op->index].event_id, last));
    last = r->events[op->index].event_id;
  }
  FOR_EACH_ITEM(op, DK_LIST_WORKER_ITEMS, r->n_worker_items) {
    const struct dk_item *item = r->worker_items[op->index];
    TRY(refuse_stored_work(op, &(struct identity){turn->iid, (int64_t)item->execution_id,
                                                  (int64_t)item->activity_id}));
  }
  FOR_EACH_ITEM(op, DK_LIST_ORCHESTRATOR_ITEMS, r->n_orchestrator_items)
    TRY(refuse_stored_message(op, r->orchestrator_items[op->index]));
  return DK_OK;
}

/* ERR-5: form, then state; the host has checked sizes. */
static dk_status
refuse_what_cannot_be_applied(struct operation *op, const struct turn *turn,
                              const struct dk_turn_result *r)
{
  TRY(commit_refuse_what_is_unknown(op, r));
  TRY(refuse_form(op, turn, r));
  return refuse_duplicates(op, turn, r);
}

/* ---- applying -------------------------------------------------------------------------------- */

/* ACK-3: the messages that this turn was given, and no others. */
static dk_status
remove_messages_of_turn(struct operation *op, const struct turn *turn)
{
  sqlite3_stmt *row;

  TRY(sql_open(op->group->sql, SQL_DELETE_TURN_MESSAGES, &row, "iiii", turn->iid, turn->visible_at,
               turn->seq, turn->cut));
  return delete_with_payloads(op, row);
}

/* HIST-1. */
static dk_status
append_events(struct operation *op, const struct turn *turn, const struct dk_turn_result *r)
{
  for (size_t i = 0; i < r->n_events; i++) {
    const struct dk_event *event = &r->events[i];
    int64_t large;
    TRY(store_payload(op, event->payload, &large));
    TRY(sql_run(op->group->sql, SQL_INSERT_EVENT, "iiiop", turn->iid, (int64_t)r->execution_id,
                (int64_t)event->event_id, large, event->payload));
  }
  return DK_OK;
}

/* ACK-6. */
static dk_status
insert_activities(struct operation *op, const struct turn *turn, const struct dk_turn_result *r)
{
  for (size_t i = 0; i < r->n_worker_items; i++)
    TRY(insert_work(op, turn->iid, r->worker_items[i]));
  return DK_OK;
}

/* ---- cancelling ------------------------------------------------------------------------------ */

static dk_status
write_identities(struct operation *op, const struct dk_turn_result *r, struct list *list,
                 struct dk_bytes *ret_text)
{
  const struct dk_activity *all = r->cancelled_activities;

  for (size_t i = 0; i < r->n_cancelled_activities; i++)
    list_add_pair(list, all[i].execution_id, all[i].activity_id);
  return list_text(op, list, ret_text);
}

/* Of one execution. */
static dk_status
write_numbers(struct operation *op, const struct dk_turn_result *r, struct list *list,
              struct dk_bytes *ret_text)
{
  for (size_t i = 0; i < r->n_cancelled_activities; i++)
    list_add(list, r->cancelled_activities[i].activity_id);
  return list_text(op, list, ret_text);
}

/* CANCEL-6: the outcome names the holder, even if the lease has ended.  Rows that this commit
 * itself inserted (numbers above `before`) are not counted. */
static void
report_row(struct operation *op, int64_t iid, sqlite3_stmt *row, int64_t before,
           struct dk_cancel_report *report)
{
  struct identity of = {iid, sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)};
  int64_t epoch = sqlite3_column_int64(row, 2);
  char room[MAX_TOKEN];

  if (sqlite3_column_int64(row, 3) > before)
    return;
  *(epoch ? &report->locked_rows : &report->free_rows) += 1;
  if (epoch)
    op->group->h->host->stolen(op->call, &(struct dk_stolen){
                                           .struct_size = sizeof(struct dk_stolen),
                                           .execution_id = (uint64_t)of.execution,
                                           .activity_id = (uint64_t)of.activity,
                                           .lock_token = work_token(op, room, &of, epoch),
                                           .owner = sql_bytes(row, 4),
                                         });
}

/* The payload of a deleted row, if it lies elsewhere. */
static void
note_large(struct list *large, int64_t id)
{
  if (id != 0)
    list_add(large, (uint64_t)id);
}

static dk_status
delete_noted(struct operation *op, struct list *large)
{
  struct dk_bytes text;

  if (!large->bytes && !large->is_short)
    return DK_OK;
  TRY(list_text(op, large, &text));
  return sql_run(op->group->sql, SQL_DELETE_ALL_LARGE, "t", text);
}

/* CANCEL-1: free, delayed, locked, expired or tagged, the listed rows of this instance are deleted,
 * and the statement returns which they were. */
static dk_status
delete_listed(struct operation *op, int64_t iid, struct dk_bytes list, int64_t before,
              struct list *large)
{
  struct dk_cancel_report report = {.struct_size = sizeof report};
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(sql, SQL_CANCEL_ACTIVITIES, &row, "it", iid, list));
  for (;;) {
    TRY(sql_next(sql, row, &is_there));
    if (!is_there)
      break;
    report_row(op, iid, row, before, &report);
    note_large(large, sqlite3_column_int64(row, 5));
  }
  sql_close(row);
  TRY(delete_noted(op, large));
  op->group->h->host->cancelled_rows(op->call, &report);
  return DK_OK;
}

/* To return a row costs more than to delete it.  Where many rows of one execution are deleted, the
 * rows that must be reported are looked for first: in the whole span of their numbers, which takes
 * no list. */
enum { FEW = 2000, WIDEST_SPAN = 16 }; /* as many numbers for each cancelled one */

struct span {
  uint64_t execution, first, last;
};

static bool
is_one_span(const struct dk_turn_result *r, struct span *ret_span)
{
  const struct dk_activity *all = r->cancelled_activities;
  struct span span = {all[0].execution_id, all[0].activity_id, all[0].activity_id};

  if (r->n_cancelled_activities <= FEW)
    return false;
  for (size_t i = 1; i < r->n_cancelled_activities; i++) {
    if (all[i].execution_id != span.execution)
      return false;
    span.first = all[i].activity_id < span.first ? all[i].activity_id : span.first;
    span.last = all[i].activity_id > span.last ? all[i].activity_id : span.last;
  }
  *ret_span = span;
  return (span.last - span.first) / WIDEST_SPAN < r->n_cancelled_activities;
}

/* Reports the rows that are locked, have their payload elsewhere, or were inserted by this commit.
 */
static dk_status
tell_odd_rows(struct operation *op, int64_t iid, const struct span *span, struct dk_bytes list,
              int64_t before, struct list *large, struct dk_cancel_report *report,
              uint64_t *ret_rows)
{
  struct statements *sql = op->group->sql;
  sqlite3_stmt *row;
  bool is_there;

  *ret_rows = 0;
  TRY(sql_open(sql, SQL_FIND_ODD_ACTIVITIES, &row, "iiiiit", iid, (int64_t)span->execution,
               (int64_t)span->first, (int64_t)span->last, before, list));
  for (;;) {
    TRY(sql_next(sql, row, &is_there));
    if (!is_there)
      break;
    report_row(op, iid, row, before, report);
    note_large(large, sqlite3_column_int64(row, 5));
    *ret_rows += 1;
  }
  sql_close(row);
  return DK_OK;
}

/* Does what delete_listed does, but only counts the rows that need no report. */
static dk_status
delete_span(struct operation *op, int64_t iid, const struct span *span, struct dk_bytes list,
            int64_t before, struct list *large)
{
  struct dk_cancel_report report = {.struct_size = sizeof report};
  struct statements *sql = op->group->sql;
  uint64_t odd;

  TRY(tell_odd_rows(op, iid, span, list, before, large, &report, &odd));
  TRY(sql_run(sql, SQL_CANCEL_OF_EXECUTION, "iit", iid, (int64_t)span->execution, list));
  report.free_rows += (uint64_t)sqlite3_changes(sql->connection->db) - odd;
  TRY(delete_noted(op, large));
  op->group->h->host->cancelled_rows(op->call, &report);
  return DK_OK;
}

static dk_status
delete_cancelled_activities(struct operation *op, const struct turn *turn,
                            const struct dk_turn_result *r, int64_t before)
{
  struct list list = {.length = 0}, large = {.length = 0};
  struct dk_bytes text;
  struct span span;

  if (r->n_cancelled_activities == 0)
    return DK_OK;
  bool is_span = is_one_span(r, &span);
  dk_status status =
    is_span ? write_numbers(op, r, &list, &text) : write_identities(op, r, &list, &text);
  if (status == DK_OK)
    status = is_span ? delete_span(op, turn->iid, &span, text, before, &large)
                     : delete_listed(op, turn->iid, text, before, &large);
  sql_close_all(op->group->sql); /* a statement that failed may still be bound to them */
  free(list.bytes);
  free(large.bytes);
  return status;
}

/* ---- messages, outcome ----------------------------------------------------------------------- */

/* ACK-7, QUEUE-2: in the order of the list. */
static dk_status
enqueue_messages(struct operation *op, const struct dk_turn_result *r)
{
  for (size_t i = 0; i < r->n_orchestrator_items; i++)
    TRY(store_message(op, r->orchestrator_items[i]));
  return DK_OK;
}

/* ACK-13: after the inserts; those that are not there are no error. */
static dk_status
remove_cancelled_messages(struct operation *op, const struct turn *turn,
                          const struct dk_turn_result *r)
{
  for (size_t i = 0; i < r->n_cancelled_messages; i++) {
    sqlite3_stmt *row;
    TRY(sql_open(op->group->sql, SQL_CANCEL_MESSAGE, &row, "it", turn->iid,
                 r->cancelled_messages[i]));
    TRY(delete_with_payloads(op, row));
  }
  return DK_OK;
}

/* EXEC-4. */
static int64_t
completed_at(const struct operation *op, int32_t status)
{
  return status == DK_STATUS_KEEP || status == DK_RUNNING ? 0 : op->group->now;
}

static dk_status
begin_execution(struct operation *op, const struct turn *turn, const struct dk_turn_result *r)
{
  struct dk_bytes output = r->status ? r->output : (struct dk_bytes){NULL, 0};
  int64_t large;

  TRY(store_payload(op, output, &large));
  return sql_run(op->group->sql, SQL_INSERT_EXECUTION, "iiiiiop", turn->iid,
                 (int64_t)r->execution_id, (int64_t)(r->status ? r->status : DK_RUNNING),
                 op->group->now, completed_at(op, r->status), large, output);
}

static dk_status
forget_output(struct operation *op, const struct turn *turn)
{
  struct statements *sql = op->group->sql;
  int64_t large = 0;
  sqlite3_stmt *row;
  bool is_there;

  TRY(sql_open(sql, SQL_FIND_OUTPUT, &row, "ii", turn->iid, turn->execution));
  TRY(sql_next(sql, row, &is_there));
  if (is_there)
    large = sqlite3_column_int64(row, 0);
  sql_close(row);
  return delete_large(op, large);
}

/* ACK-9, EXEC-1 to EXEC-5: status and output together, or neither. */
static dk_status
store_outcome(struct operation *op, const struct turn *turn, const struct dk_turn_result *r)
{
  int64_t large;

  if (turn->execution != (int64_t)r->execution_id)
    return begin_execution(op, turn, r);
  if (r->status == DK_STATUS_KEEP)
    return DK_OK;
  TRY(forget_output(op, turn));
  TRY(store_payload(op, r->output, &large));
  return sql_run(op->group->sql, SQL_END_EXECUTION, "iiiiop", turn->iid, turn->execution,
                 (int64_t)r->status, completed_at(op, r->status), large, r->output);
}

/* PIN-6: a new execution has the pin that its first commit gives, or none. */
static dk_status
store_pin(struct operation *op, const struct turn *turn, const struct dk_turn_result *r)
{
  const struct dk_version *pin = r->pinned;

  if (pin)
    return sql_run(op->group->sql, SQL_PIN_INSTANCE, "iiii", turn->iid, (int64_t)pin->major,
                   (int64_t)pin->minor, (int64_t)pin->patch);
  if (turn->known && turn->execution != (int64_t)r->execution_id)
    return sql_run(op->group->sql, SQL_PIN_INSTANCE, "iooo", turn->iid, (int64_t)0, (int64_t)0,
                   (int64_t)0);
  return DK_OK;
}

/* ACK-4, ACK-10, TURN-5, TURN-6: what is known of the instance from now on; and it is free. */
static dk_status
store_facts(struct operation *op, const struct turn *turn, const struct dk_turn_result *r)
{
  bool is_new = turn->execution != (int64_t)r->execution_id;
  int64_t status = r->status ? r->status : is_new ? DK_RUNNING : turn->status;
  int64_t last = r->n_events > 0 ? (int64_t)r->events[r->n_events - 1].event_id
                                 : last_event_of(turn, r);

  op->group->rings |= RING_TURNS;
  if (r->parent_instance.ptr)
    TRY(sql_run(op->group->sql, SQL_SET_PARENT, "it", turn->iid, r->parent_instance));
  return sql_run(op->group->sql, SQL_COMMIT_INSTANCE, "iiiiiittt", turn->iid, op->group->now,
                 fresh_number(op), status, (int64_t)r->execution_id, last, r->owner, r->name,
                 r->version);
}

/* ACK-8. */
static dk_status
apply_empty_commit(struct operation *op, const struct turn *turn, const struct dk_turn_result *r)
{
  TRY(remove_messages_of_turn(op, turn));
  TRY(enqueue_messages(op, r));
  return release_turn(op, turn, turn->epoch);
}

/* A step a line, in the contract's order and words. */
dk_status
apply_commit(struct operation *op)
{
  const struct dk_turn_result *r = op->request;
  int64_t before = op->group->counter;
  struct turn turn;
  bool is_done;

  TRY(find_turn_to_commit(op, &turn, &is_done));                     /* TOKEN-2 to TOKEN-8 */
  if (is_done)
    return DK_OK;                                                    /* ACK-11 */
  TRY(refuse_what_cannot_be_applied(op, &turn, r));                  /* ACK-2 */
  if (r->execution_id == 0)
    return apply_empty_commit(op, &turn, r);
  if (!turn.known)
    TRY(sql_run(op->group->sql, SQL_NOTE_CREATION, "i", turn.iid));  /* ADMIN-3 */
  TRY(remove_messages_of_turn(op, &turn));                           /* ACK-3 */
  TRY(append_events(op, &turn, r));                                  /* HIST-1 */
  TRY(insert_activities(op, &turn, r));                              /* CANCEL-3: insert first, */
  TRY(delete_cancelled_activities(op, &turn, r, before));            /* CANCEL-1: delete second */
  TRY(enqueue_messages(op, r));                                      /* ACK-7 */
  TRY(remove_cancelled_messages(op, &turn, r));                      /* ACK-13 */
  TRY(store_outcome(op, &turn, r));                                  /* ACK-9, EXEC-1 */
  TRY(store_pin(op, &turn, r));                                      /* PIN-6 */
  return store_facts(op, &turn, r);                                  /* TURN-6 */
}
