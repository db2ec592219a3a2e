/* SPDX-License-Identifier: Apache-2.0 */
/* ADMIN, DEL, PRUNE: durakit.admin/1.  Each look is one statement.  Each removal is one statement
 * too, which chooses the instances, judges them under locks and deletes them: see schema/admin.sql.
 */
#include "providers/pg/handle.h"

/* ---- filters --------------------------------------------------------------------------------- */

static dk_status
refuse_unknown_filter(struct operation *op, const struct dk_instance_filter *f)
{
  const uint32_t flags = DK_FILTER_IDS | DK_FILTER_ROOTS, statuses = (2u << DK_CANCELLED) - 1;

  if (!f)
    return DK_OK;
  TRY(refuse_unknown(op, (f->flags & ~flags) != 0, "a flag of the filter"));
  return refuse_unknown(op, (f->statuses & ~statuses) != 0, "a status of the filter");
}

static struct dk_bytes
id_of(const void *context, size_t i)
{
  const struct dk_bytes *ids = context;

  return ids[i];
}

static int64_t
time_of_filter(const void *context, size_t i)
{
  const struct dk_instance_filter *f = context;
  const int64_t times[] = {f->created_from, f->created_before, f->completed_from,
                           f->completed_before};

  return times[i];
}

/* The seven parameters, and where the page begins. */
static void
add_filter(struct values *v, const struct dk_instance_filter *filter, struct dk_bytes after)
{
  static const struct dk_instance_filter all = {.struct_size = sizeof all};
  const struct dk_instance_filter *f = filter ? filter : &all;

  if (f->flags & DK_FILTER_IDS)
    value_texts(v, f->n_ids, id_of, f->ids);
  else
    value_null(v, TYPE_TEXTS);
  value_bool(v, (f->flags & DK_FILTER_ROOTS) != 0);
  value_text(v, f->name);
  value_text(v, f->version);
  value_text(v, f->parent_instance);
  value_int(v, (int32_t)f->statuses);
  value_bigints(v, 4, time_of_filter, f);
  value_text(v, after);
}

/* ---- looking --------------------------------------------------------------------------------- */

static struct operation
begin_looking(void *self, struct dk_call *call, const char *name)
{
  return (struct operation){.name = name, .h = self, .call = call};
}

/* The values of a row may have been written by hand. */
static bool
is_faulty_instance(const struct dk_instance *i, struct fault *f)
{
  return fault_of_id(f, "its id", i->instance, false) ||
         fault_of_id(f, "its owner", i->owner, true) ||
         fault_of_id(f, "its name", i->name, true) ||
         fault_of_id(f, "its version", i->version, true) ||
         fault_of_id(f, "its parent", i->parent_instance, true) ||
         fault_of_payload(f, "the output of execution", (int64_t)i->execution_id, i->output);
}

/* ADMIN-3, ADMIN-4. */
static dk_status
hand_up_instance(struct operation *op, const PGresult *r, int row)
{
  enum {
    INSTANCE, STATUS, CREATED_AT, LOCKED_UNTIL, OWNER, NAME, VERSION, PARENT, BIRTH, EXECUTION,
    LAST_EVENT, STARTED_AT, COMPLETED_AT, OUTPUT
  };
  struct dk_instance told = {
    .struct_size = sizeof told,
    .status = field_int(r, row, STATUS),
    .instance = field_bytes(r, row, INSTANCE),
    .created_at = field_bigint(r, row, CREATED_AT),
    .locked_until = field_bigint(r, row, LOCKED_UNTIL),
    .owner = field_bytes(r, row, OWNER),
    .name = field_bytes(r, row, NAME),
    .version = field_bytes(r, row, VERSION),
    .parent_instance = field_bytes(r, row, PARENT),
    .birth = (uint64_t)field_bigint(r, row, BIRTH),
    .execution_id = (uint64_t)field_bigint(r, row, EXECUTION),
    .last_event_id = (uint64_t)field_bigint(r, row, LAST_EVENT),
    .started_at = field_bigint(r, row, STARTED_AT),
    .completed_at = field_bigint(r, row, COMPLETED_AT),
    .output = field_bytes(r, row, OUTPUT),
  };
  struct fault f;

  if (is_faulty_instance(&told, &f))
    return damage_tell(op, told.instance, &f);
  return op->h->host->instance(op->call, &told);
}

/* ADMIN-1, ADMIN-2. */
static dk_status
pg_list_instances(void *self, struct dk_call *call, const struct dk_list_instances *request)
{
  struct operation op = begin_looking(self, call, "list_instances");
  struct values v;
  PGresult *r;

  TRY(refuse_unknown(&op, (request->flags & ~(uint32_t)DK_LIST_OUTPUT) != 0, "a flag of the list"));
  TRY(refuse_unknown_filter(&op, request->filter));
  operation_values(&op, &v);
  add_filter(&v, request->filter, request->after);
  value_bigint(&v, request->max_instances);
  value_bool(&v, (request->flags & DK_LIST_OUTPUT) != 0);
  TRY(operation_run(&op, "list_instances", false, &v, "tibbttttbbbbby", &r));
  dk_status status = DK_OK;
  for (int row = 0; status == DK_OK && row < PQntuples(r); row++)
    status = hand_up_instance(&op, r, row);
  PQclear(r);
  return status;
}

/* ADMIN-5: the same as read_history gives. */
static dk_status
pg_admin_hand_up_execution(struct operation *op, struct dk_bytes instance, const PGresult *r,
                           int row)
{
  enum { EXECUTION, LAST_EVENT, STARTED_AT, COMPLETED_AT, STATUS, OUTPUT };
  int64_t number = field_bigint(r, row, EXECUTION);
  struct dk_execution told = {
    .struct_size = sizeof told,
    .status = field_int(r, row, STATUS),
    .execution_id = (uint64_t)number,
    .last_event_id = (uint64_t)field_bigint(r, row, LAST_EVENT),
    .started_at = field_bigint(r, row, STARTED_AT),
    .completed_at = field_bigint(r, row, COMPLETED_AT),
    .output = field_bytes(r, row, OUTPUT),
  };
  struct fault f;

  if (fault_of_payload(&f, "the output of execution", number, told.output))
    return damage_tell(op, instance, &f);
  return op->h->host->execution(op->call, &told);
}

static dk_status
pg_list_executions(void *self, struct dk_call *call, const struct dk_list_executions *request)
{
  struct operation op = begin_looking(self, call, "list_executions");
  struct values v;
  PGresult *r;

  if (request->after > INT64_MAX)
    return DK_OK; /* no execution has such a number */
  operation_values(&op, &v);
  value_text(&v, request->instance);
  value_bigint(&v, (int64_t)request->after);
  value_bigint(&v, request->max_executions);
  TRY(operation_run(&op, "list_executions", false, &v, "bbbbiy", &r));
  dk_status status = DK_OK;
  for (int row = 0; status == DK_OK && row < PQntuples(r); row++)
    status = pg_admin_hand_up_execution(&op, request->instance, r, row);
  PQclear(r);
  return status;
}

/* ADMIN-8. */
static dk_status
hand_up_message(struct operation *op, struct dk_bytes instance, const PGresult *r, int row)
{
  enum { ID, VISIBLE_AT, ENQUEUED_AT, PAYLOAD };
  struct dk_message told = {
    .struct_size = sizeof told,
    .id = field_bytes(r, row, ID),
    .payload = field_bytes(r, row, PAYLOAD),
    .visible_at = field_bigint(r, row, VISIBLE_AT),
    .enqueued_at = field_bigint(r, row, ENQUEUED_AT),
  };
  struct fault f;

  if (fault_of_id(&f, "a message's id", told.id, true) ||
      fault_of_payload(&f, "the message enqueued at", told.enqueued_at, told.payload))
    return damage_tell(op, instance, &f);
  return op->h->host->message(op->call, &told);
}

static dk_status
pg_read_messages(void *self, struct dk_call *call, const struct dk_read_messages *request)
{
  struct operation op = begin_looking(self, call, "read_messages");
  struct values v;
  PGresult *r;

  operation_values(&op, &v);
  value_text(&v, request->instance);
  value_bigint(&v, request->max_messages);
  TRY(operation_run(&op, "read_messages", false, &v, "tbby", &r));
  dk_status status = DK_OK;
  for (int row = 0; status == DK_OK && row < PQntuples(r); row++)
    status = hand_up_message(&op, request->instance, r, row);
  PQclear(r);
  return status;
}

/* ADMIN-6: the columns stand in the order of the members. */
static dk_status
hand_up_stats(struct operation *op, const PGresult *r)
{
  struct dk_stats told = {.struct_size = sizeof told, .now = field_bigint(r, 0, 0)};
  uint64_t *const counts[] = {
    &told.not_started, &told.running, &told.completed, &told.failed, &told.continued_as_new,
    &told.cancelled, &told.executions, &told.events, &told.messages_ready, &told.messages_delayed,
    &told.messages_locked, &told.activities_ready, &told.activities_delayed,
    &told.activities_locked};

  for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); i++)
    *counts[i] = (uint64_t)field_bigint(r, 0, 1 + i);
  told.oldest_message = field_bigint(r, 0, 15);
  told.oldest_activity = field_bigint(r, 0, 16);
  return op->h->host->stats(op->call, &told);
}

static dk_status
pg_read_stats(void *self, struct dk_call *call, const struct dk_read_stats *request)
{
  struct operation op = begin_looking(self, call, "read_stats");
  struct values v;
  PGresult *r;

  TRY(refuse_unknown(&op, request->flags != 0, "a flag of the counts"));
  op.is_large = true;
  operation_values(&op, &v);
  TRY(operation_run(&op, "read_stats", false, &v, "bbbbbbbbbbbbbbbbb", &r));
  dk_status status = PQntuples(r) == 1 ? hand_up_stats(&op, r)
                                       : refuse(&op, DK_CORRUPT, "the function returned %d rows",
                                                PQntuples(r));
  PQclear(r);
  return status;
}

/* ---- removing -------------------------------------------------------------------------------- */

/* The answer of each function, one row.  After a success it has roots, and no state. */
static const char removed_types[] = "iitttbbbbb";
enum { STATUS, STATE, T1, T2, NEXT, INSTANCES, EXECUTIONS, EVENTS, MESSAGES, ACTIVITIES };
enum { ROOTS = STATE };

static dk_status
tell_not_over(struct operation *op, struct dk_bytes instance, int32_t state)
{
  return refuse(op, DK_REFUSED, "instance \"%.64s\" has not ended: it %s; cancel it and wait until "
                "it ends, or delete it now with DK_DELETE_FORCE", instance.ptr,
                state == DK_NOT_STARTED        ? "has not started"
                : state == DK_CONTINUED_AS_NEW ? "continues as new"
                                               : "is running");
}

/* missing: what an instance that does not exist lacks. */
static dk_status
tell_refusal(struct operation *op, const char *missing, const PGresult *r)
{
  int32_t status = field_int(r, 0, STATUS);
  struct dk_bytes instance = field_bytes(r, 0, T1), parent = field_bytes(r, 0, T2);

  if (status == DK_NOT_FOUND && instance.ptr)
    return refuse(op, status, "instance \"%.64s\" does not exist: %s", instance.ptr, missing);
  if (status == DK_REFUSED && instance.ptr && parent.ptr)
    return refuse(op, status, "instance \"%.64s\" is a child of \"%.64s\", which exists; delete "
                  "the parent, and its children are deleted too", instance.ptr, parent.ptr);
  if (status == DK_REFUSED && instance.ptr)
    return tell_not_over(op, instance, field_int(r, 0, STATE));
  return refuse(op, DK_CORRUPT, "the function returned the status %d", (int)status);
}

/* DEL-7, DEL-9, PRUNE-4. */
static dk_status
hand_up_removed(struct operation *op, const PGresult *r)
{
  struct dk_removed told = {
    .struct_size = sizeof told,
    .instances = (uint64_t)field_bigint(r, 0, INSTANCES),
    .executions = (uint64_t)field_bigint(r, 0, EXECUTIONS),
    .events = (uint64_t)field_bigint(r, 0, EVENTS),
    .messages = (uint64_t)field_bigint(r, 0, MESSAGES),
    .activities = (uint64_t)field_bigint(r, 0, ACTIVITIES),
    .next = field_bytes(r, 0, NEXT),
    .roots = (uint64_t)field_int(r, 0, ROOTS),
  };

  op->h->host->removed(op->call, &told);
  return DK_OK;
}

/* Frees the values. */
static dk_status
run_removal(struct operation *op, const char *function, const char *missing, struct values *v)
{
  dk_status status;
  PGresult *r;

  op->is_large = true;
  TRY(operation_run(op, function, true, v, removed_types, &r));
  if (PQntuples(r) != 1)
    status = refuse(op, DK_CORRUPT, "the function returned %d rows", PQntuples(r));
  else if (field_int(r, 0, STATUS) != DK_OK)
    status = tell_refusal(op, missing, r);
  else
    status = hand_up_removed(op, r);
  PQclear(r);
  return status;
}

/* DEL-1 to DEL-7. */
static dk_status
pg_delete_instances(void *self, struct dk_call *call, const struct dk_delete_instances *request)
{
  struct operation op;
  struct values v;

  TRY(operation_begin(&op, self, call, "delete_instances"));
  TRY(refuse_unknown(&op, (request->flags & ~(uint32_t)DK_DELETE_FORCE) != 0,
                     "a flag of the deletion"));
  operation_values(&op, &v);
  value_texts(&v, request->n_instances, id_of, request->instances);
  value_bool(&v, (request->flags & DK_DELETE_FORCE) != 0);
  return run_removal(&op, "delete_instances",
                     "it has neither a committed turn nor a message", &v);
}

/* DEL-8, DEL-9. */
static dk_status
pg_delete_matching(void *self, struct dk_call *call, const struct dk_delete_matching *request)
{
  struct operation op;
  struct values v;

  TRY(operation_begin(&op, self, call, "delete_matching"));
  TRY(refuse_unknown(&op, request->flags != 0, "a flag of the deletion"));
  TRY(refuse_unknown_filter(&op, request->filter));
  operation_values(&op, &v);
  add_filter(&v, request->filter, request->after);
  value_bigint(&v, request->max_instances);
  return run_removal(&op, "delete_matching", "though the filter selected it", &v);
}

/* PRUNE-1 to PRUNE-5. */
static dk_status
pg_prune_executions(void *self, struct dk_call *call, const struct dk_prune *request)
{
  struct operation op;
  struct values v;

  TRY(operation_begin(&op, self, call, "prune_executions"));
  TRY(refuse_unknown(&op, request->flags != 0, "a flag of the prune"));
  TRY(refuse_unknown_filter(&op, request->filter));
  operation_values(&op, &v);
  add_filter(&v, request->filter, request->after);
  value_bigint(&v, request->max_instances);
  value_text(&v, request->instance);
  value_bigint(&v, request->keep);
  value_bigint(&v, request->completed_before);
  return run_removal(&op, "prune_executions", "no turn of it was ever committed", &v);
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct dk_admin pg_admin = {
  .struct_size = sizeof(struct dk_admin),
  .list_instances = pg_list_instances,
  .list_executions = pg_list_executions,
  .read_messages = pg_read_messages,
  .read_stats = pg_read_stats,
  .delete_instances = pg_delete_instances,
  .delete_matching = pg_delete_matching,
  .prune_executions = pg_prune_executions,
};
