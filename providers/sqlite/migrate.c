/* SPDX-License-Identifier: Apache-2.0 */
/* From version 1 to version 2: one transaction, all or nothing.
 *
 * Version 1 knows an activity's identity only from inside of its work item (JSON), and so could not
 * cancel by deleting a row.  Here, once, the work items are opened; afterwards no provider of ours
 * looks into a payload again.  What becomes of the rows:
 *   - instances, executions, histories, messages and work items are kept, with their order, times
 *     and counts of attempts; a payload is the old text, byte for byte
 *   - leases end: a token of the old generation is not valid here.  A locked row is free from the
 *     time at which it was visible, and its count of attempts includes that delivery
 *   - the version of an orchestration that had none stays absent; no owner has a history in memory
 * A row that cannot be understood makes the whole migration fail, naming its number: nothing is
 * dropped silently. */
#include "providers/sqlite/schema.h"

#define ACTIVITY(field) "json_extract(work_item, '$.ActivityExecute." field "')"
#define IS_TEXT(x)                                                                                 \
  "(typeof(" x ") = 'text' AND length(CAST(" x " AS BLOB)) BETWEEN 1 AND 1024"                     \
  " AND instr(" x ", char(0)) = 0)"
#define IS_ABSENT_OR_TEXT(x) "(" x " IS NULL OR " IS_TEXT(x) ")"
#define IS_ID(x) "(typeof(" x ") = 'integer' AND " x " >= 1)"
#define IS_TIME(x) "(typeof(" x ") = 'integer')"
#define IS_COUNT(x) "(typeof(" x ") = 'integer' AND " x " BETWEEN 0 AND 4294967295)"
#define STATUS(x)                                                                                  \
  "CASE " x " WHEN 'Running' THEN 1 WHEN 'Completed' THEN 2 WHEN 'Failed' THEN 3"                  \
  " WHEN 'ContinuedAsNew' THEN 4 WHEN 'Cancelled' THEN 5 END"

#define NO_ROW INT64_MIN

/* ---- what cannot be migrated ----------------------------------------------------------------- */

/* Each gives the rowid of the first invalid row, and nothing if all are valid. */
static const struct demand {
  const char *table, *sql, *what;
} demands[] = {
  {"worker_queue",
   "SELECT id FROM worker_queue WHERE NOT CASE WHEN typeof(work_item) = 'text' AND"
   " json_valid(work_item) THEN coalesce(" IS_TEXT(ACTIVITY("instance"))
   " AND " IS_ID(ACTIVITY("execution_id")) " AND " IS_ID(ACTIVITY("id")) ", 0)"
   " ELSE 0 END ORDER BY id LIMIT 1",
   "the activity's identity cannot be read from work_item; expected JSON with"
   " ActivityExecute.instance, .execution_id and .id"},
  {"worker_queue",
   "SELECT id FROM worker_queue WHERE NOT coalesce(" IS_ABSENT_OR_TEXT(ACTIVITY("session_id"))
   " AND " IS_ABSENT_OR_TEXT(ACTIVITY("tag")) " AND " IS_TIME("visible_at")
   " AND " IS_COUNT("attempt_count") ", 0) ORDER BY id LIMIT 1",
   "session_id, tag, visible_at or attempt_count is not what it must be; expected two texts of 1 to"
   " 1024 bytes or null, and two numbers"},
  {"worker_queue",
   "SELECT max(id) FROM worker_queue GROUP BY " ACTIVITY("instance") ", " ACTIVITY("execution_id")
   ", " ACTIVITY("id") " HAVING count(*) > 1 ORDER BY 1 LIMIT 1",
   "another row has the same instance, execution_id and id; expected one row for an activity"},
  {"orchestrator_queue",
   "SELECT id FROM orchestrator_queue WHERE NOT coalesce(" IS_TEXT("instance_id")
   " AND work_item IS NOT NULL AND " IS_TIME("visible_at") " AND " IS_TIME("created_at")
   " AND " IS_COUNT("attempt_count") ", 0) ORDER BY id LIMIT 1",
   "instance_id, visible_at, created_at or attempt_count is not what it must be; expected a text of"
   " 1 to 1024 bytes, and three numbers"},
  {"instances",
   "SELECT rowid FROM instances WHERE NOT coalesce(" IS_TEXT("instance_id")
   " AND " IS_TEXT("orchestration_name") " AND " IS_ABSENT_OR_TEXT("orchestration_version")
   " AND " IS_ABSENT_OR_TEXT("parent_instance_id") " AND " IS_TIME("created_at")
   ", 0) ORDER BY rowid LIMIT 1",
   "an id, a name, a version or created_at is not what it must be; expected texts of 1 to 1024"
   " bytes, and a number"},
  {"instances",
   "SELECT i.rowid FROM instances i LEFT JOIN executions e ON e.instance_id = i.instance_id"
   " AND e.execution_id = i.current_execution_id WHERE e.execution_id IS NULL"
   " ORDER BY i.rowid LIMIT 1",
   "its current execution has no row in executions"},
  {"executions",
   "SELECT rowid FROM executions WHERE NOT coalesce(" IS_ID("execution_id")
   " AND " STATUS("status") " IS NOT NULL AND " IS_TIME("started_at")
   " AND instance_id IN (SELECT instance_id FROM instances), 0) ORDER BY rowid LIMIT 1",
   "its instance, execution_id, status or started_at is not what it must be; expected a row of"
   " instances, two numbers, and Running, Completed, Failed, ContinuedAsNew or Cancelled"},
  {"history",
   "SELECT rowid FROM history WHERE NOT coalesce(" IS_ID("execution_id") " AND " IS_ID("event_id")
   " AND event_data IS NOT NULL AND instance_id IN (SELECT instance_id FROM instances), 0)"
   " ORDER BY rowid LIMIT 1",
   "its instance, execution_id or event_id is not what it must be; expected a row of instances, and"
   " two numbers"},
};

static dk_status
refuse_row(const struct demand *demand, const char *path, int64_t row, struct why *why)
{
  return why_set(why, DK_REFUSED,
                 "%s: version 1 cannot be migrated to version %d: %s, row %lld: %s; nothing was "
                 "changed; look at it with: SELECT * FROM %s WHERE rowid = %lld, then repair or "
                 "delete it, and open the store again",
                 path, SCHEMA_VERSION, demand->table, (long long)row, demand->what, demand->table,
                 (long long)row);
}

/* The first invalid row, or NO_ROW. */
static dk_status
find_row(struct connection *c, const struct demand *demand, int64_t *ret_row, struct why *why)
{
  sqlite3_stmt *statement = NULL;
  dk_status status = DK_OK;
  int code = sqlite3_prepare_v2(c->db, demand->sql, -1, &statement, NULL);

  *ret_row = NO_ROW;
  if (code == SQLITE_OK)
    code = sqlite3_step(statement);
  if (code == SQLITE_ROW)
    *ret_row = sqlite3_column_int64(statement, 0);
  else if (code != SQLITE_DONE)
    status = why_sqlite(why, c->db, code, "checking the rows of version 1");
  sqlite3_finalize(statement);
  return status;
}

/* SQLite reports JSON as invalid if it has no memory for it, so a row is checked twice. */
static dk_status
check_demand(struct connection *c, const char *path, const struct demand *demand,
             struct why *why)
{
  int64_t row;

  TRY(find_row(c, demand, &row, why));
  if (row != NO_ROW)
    TRY(find_row(c, demand, &row, why));
  return row == NO_ROW ? DK_OK : refuse_row(demand, path, row, why);
}

/* What is read of the tables of version 1. */
static const char *const columns[] = {
  "SELECT instance_id, orchestration_name, orchestration_version, current_execution_id, created_at,"
  " parent_instance_id FROM instances",
  "SELECT instance_id, execution_id, status, output, started_at, completed_at, pinned_major,"
  " pinned_minor, pinned_patch FROM executions",
  "SELECT instance_id, execution_id, event_id, event_data FROM history",
  "SELECT id, instance_id, work_item, visible_at, created_at, attempt_count"
  " FROM orchestrator_queue",
  "SELECT id, work_item, visible_at, attempt_count FROM worker_queue",
};

static dk_status
check_columns(struct connection *c, const char *path, struct why *why)
{
  for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(c->db, columns[i], -1, &statement, NULL);
    sqlite3_finalize(statement);
    if (code == SQLITE_ERROR)
      return why_set(why, DK_CORRUPT,
                     "%s: the store is damaged: %s; expected the columns of version 1; restore "
                     "a backup",
                     path, sqlite3_errmsg(c->db));
    if (code != SQLITE_OK)
      return why_sqlite(why, c->db, code, "looking at the tables of version 1");
  }
  return DK_OK;
}

static dk_status
check_tables(struct connection *c, const char *path, struct why *why)
{
  int64_t found;

  TRY(connection_integer(c,
                         "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN"
                         " ('instances', 'executions', 'history', 'instance_locks',"
                         " 'orchestrator_queue', 'worker_queue')",
                         &found, why));
  if (found != 6)
    return why_set(why, DK_CORRUPT,
                   "%s: its user_version is 1, but it has %lld of the six tables of version 1; "
                   "restore a backup",
                   path, (long long)found);
  return check_columns(c, path, why);
}

/* ---- the copy -------------------------------------------------------------------------------- */

/* A payload lies in its row up to 1 KiB, else in `large`.  The remainder of a number there shows
 * its kind: 0 messages, 1 work items, 2 events, 3 outputs. */
#define IS_LARGE(x) "length(CAST(" x " AS BLOB)) > 1024"
#define LARGE(x, remainder) "CASE WHEN " IS_LARGE(x) " THEN 4 * n + " remainder " END"
#define SMALL(x) "CASE WHEN NOT " IS_LARGE(x) " THEN CAST(" x " AS BLOB) END"
#define NUMBERED(table, order)                                                                     \
  "WITH old AS (SELECT *, row_number() OVER (ORDER BY " order ") AS n FROM " table ") "
#define COPY_LARGE(table, order, x, remainder)                                                     \
  NUMBERED(table, order)                                                                           \
  "INSERT INTO large(id, payload) SELECT 4 * n + " remainder ", CAST(" x " AS BLOB) FROM old"      \
  " WHERE " IS_LARGE(x)

static const char *const copy[] = {
  /* Instances in the order in which they were made; then message targets without an instance. */
  "INSERT INTO instance(iid, known, status, execution, last_event, pinned_major, pinned_minor,"
  " pinned_patch, name, version, parent, instance, created_at)"
  " SELECT row_number() OVER (ORDER BY i.rowid), 1, " STATUS("e.status")
  ", i.current_execution_id, coalesce((SELECT max(event_id) FROM old_history h"
  " WHERE h.instance_id = i.instance_id AND h.execution_id = i.current_execution_id), 0),"
  " e.pinned_major, e.pinned_minor, e.pinned_patch,"
  " i.orchestration_name, i.orchestration_version, i.parent_instance_id, i.instance_id,"
  " i.created_at FROM instances i JOIN executions e ON e.instance_id = i.instance_id"
  " AND e.execution_id = i.current_execution_id",
  "INSERT INTO instance(iid, instance)"
  " SELECT (SELECT coalesce(max(iid), 0) FROM instance) + row_number() OVER (ORDER BY target),"
  " target FROM (SELECT instance_id AS target FROM orchestrator_queue"
  " UNION SELECT " ACTIVITY("instance") " FROM worker_queue EXCEPT SELECT instance FROM instance)",

  NUMBERED("executions", "rowid")
  "INSERT INTO execution(iid, execution, status, started_at, completed_at, large, output)"
  " SELECT iid, execution_id, " STATUS("old.status") ", started_at,"
  " CASE old.status WHEN 'Running' THEN 0 ELSE coalesce(completed_at, started_at) END, "
  LARGE("output", "3") ", " SMALL("output")
  " FROM old JOIN instance ON instance = instance_id",
  COPY_LARGE("executions", "rowid", "output", "3"),

  NUMBERED("old_history", "rowid")
  "INSERT INTO history(iid, execution, event, large, payload)"
  " SELECT iid, execution_id, event_id, " LARGE("event_data", "2") ", " SMALL("event_data")
  " FROM old JOIN instance ON instance = instance_id",
  COPY_LARGE("old_history", "rowid", "event_data", "2"),

  /* Their arrival is their old number; ours go on behind those of the instances. */
  NUMBERED("orchestrator_queue", "id")
  "INSERT INTO message(iid, visible_at, seq, attempt, enqueued_at, large, payload)"
  " SELECT iid, visible_at, n + (SELECT max(iid) FROM instance), attempt_count, old.created_at, "
  LARGE("work_item", "0") ", " SMALL("work_item")
  " FROM old JOIN instance ON instance = instance_id",
  COPY_LARGE("orchestrator_queue", "id", "work_item", "0"),
  "UPDATE instance SET (ready_at, ready_seq) = (SELECT visible_at, seq FROM message m"
  " WHERE m.iid = instance.iid ORDER BY visible_at, seq LIMIT 1)"
  " WHERE iid IN (SELECT iid FROM message)",

  NUMBERED("worker_queue", "id")
  "INSERT INTO work(iid, execution, activity, ready_at, seq, attempt, visible_at, tag, session,"
  " large, payload)"
  " SELECT iid, " ACTIVITY("execution_id") ", " ACTIVITY("id") ", visible_at,"
  " n + (SELECT max(iid) FROM instance) + (SELECT count(*) FROM message), attempt_count,"
  " visible_at, coalesce(" ACTIVITY("tag") ", ''), " ACTIVITY("session_id") ", "
  LARGE("work_item", "1") ", " SMALL("work_item")
  " FROM old JOIN instance ON instance = " ACTIVITY("instance"),
  COPY_LARGE("worker_queue", "id", "work_item", "1"),

  "UPDATE meta SET counter = (SELECT max(n) FROM (SELECT 0 AS n UNION SELECT max(iid) FROM instance"
  " UNION SELECT max(seq) FROM message UNION SELECT max(seq) FROM work"
  " UNION SELECT max(id) FROM large))",
  NULL,
};

/* Nothing was lost on the way. */
static const struct {
  const char *what, *sql;
} counts[] = {
  {"instances", "SELECT (SELECT count(*) FROM instances)"
                " - (SELECT count(*) FROM instance WHERE known = 1)"},
  {"executions", "SELECT (SELECT count(*) FROM executions) - (SELECT count(*) FROM execution)"},
  {"events", "SELECT (SELECT count(*) FROM old_history) - (SELECT count(*) FROM history)"},
  {"messages", "SELECT (SELECT count(*) FROM orchestrator_queue) - (SELECT count(*) FROM message)"},
  {"work items", "SELECT (SELECT count(*) FROM worker_queue) - (SELECT count(*) FROM work)"},
};

static dk_status
check_counts(struct connection *c, const char *path, struct why *why)
{
  int64_t missing;

  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    TRY(connection_integer(c, counts[i].sql, &missing, why));
    if (missing != 0)
      return why_set(why, DK_INTERNAL,
                     "%s: %lld %s of version 1 are missing in version %d; nothing was changed; "
                     "this is a fault of the plugin, report it",
                     path, (long long)missing, counts[i].what, SCHEMA_VERSION);
  }
  return DK_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static dk_status
migrate(struct connection *c, const char *path, struct why *why)
{
  static const char what[] = "migrating the store from version 1";

  TRY(check_tables(c, path, why));
  for (size_t i = 0; i < sizeof demands / sizeof demands[0]; i++)
    TRY(check_demand(c, path, &demands[i], why));
  TRY(connection_exec(c, "ALTER TABLE history RENAME TO old_history", what, why));
  TRY(schema_add_tables(c, why));
  for (const char *const *sql = copy; *sql; sql++)
    TRY(connection_exec(c, *sql, what, why));
  TRY(check_counts(c, path, why));
  return connection_exec(c,
                         "DROP TABLE old_history; DROP TABLE executions; DROP TABLE instances;"
                         "DROP TABLE instance_locks; DROP TABLE orchestrator_queue;"
                         "DROP TABLE worker_queue",
                         what, why);
}

dk_status
schema_migrate(struct connection *c, const char *path, struct why *why)
{
  TRY(connection_exec(c, "BEGIN IMMEDIATE", "beginning the migration from version 1", why));
  dk_status status = migrate(c, path, why);
  if (status == DK_OK)
    status = connection_exec(c, "COMMIT", "committing the migration from version 1", why);
  if (status != DK_OK)
    sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL); /* may be rolled back already */
  return status;
}
