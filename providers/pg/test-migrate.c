/* SPDX-License-Identifier: Apache-2.0 */
/* From version 1: everything is kept, a row that cannot be understood makes all of it fail, and a
 * program that comes in between finds one version or the other. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-stores.h"

/* ---- older stores ---------------------------------------------------------------------------- */

enum { TODAY = 4 };

static void
given_version_1(const char *schema)
{
  const char *folder = getenv("top_srcdir");
  char command[1000];

  snprintf(command, sizeof command,
           "psql -X -q -d \"$DURAKIT_PG\" -v schema='%s'"
           " -f '%s/providers/pg/fixtures/version-1.sql' > /dev/null",
           schema, folder ? folder : ".");
  if (system(command) != 0)
    BAIL_OUT("the fixture cannot be loaded: %s", command);
}

static void
drop(const char *schema)
{
  sql(plain, "DROP SCHEMA IF EXISTS \"%s\" CASCADE", schema);
}

static long
version_of(const char *schema)
{
  return number(plain, "SELECT durakit_version FROM \"%s\".meta", schema);
}

/* ---- what becomes of it ---------------------------------------------------------------------- */

/* All rows of a query in one text; to be freed. */
static char *
rows(const char *schema, const char *query)
{
  sql(plain, "SET search_path TO \"%s\"", schema);
  char *found = sql_value(plain, "SELECT string_agg(x::text, ' ' ORDER BY x::text COLLATE \"C\")"
                          " FROM (%s) x", query);
  sql(plain, "RESET search_path");
  return found;
}

static void
is_kept(const char *schema, const char *what, const char *query, const char *expected)
{
  char *found = rows(schema, query);

  is(found, expected, "%s", what);
  free(found);
}

/* All that a store is made of, each with what it is, whatever the schema's name; to be freed. */
static char *
parts(const char *schema)
{
  return sql_value(plain,
    "WITH rel AS (SELECT c.* FROM pg_class c WHERE c.relnamespace ="
    "   (SELECT n.oid FROM pg_namespace n WHERE n.nspname = '%s'))"
    " SELECT string_agg(p.name || ' ' || md5(replace(p.is, '%s', '@')), ' '"
    "   ORDER BY p.name COLLATE \"C\") FROM ("
    " SELECT c.relname AS name, concat(c.relkind, c.relpersistence, c.reloptions,"
    "   obj_description(c.oid)) AS is FROM rel c"
    " UNION ALL SELECT c.relname || '.' || a.attname, concat_ws(' ', a.attnum, a.attnotnull,"
    "   a.attstorage, a.attcollation, format_type(a.atttypid, a.atttypmod),"
    "   pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum))"
    "   FROM rel c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
    "   LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"
    " UNION ALL SELECT 'index ' || c.relname, pg_get_indexdef(c.oid) FROM rel c"
    "   WHERE c.relkind = 'i'"
    " UNION ALL SELECT 'view ' || c.relname, pg_get_viewdef(c.oid) FROM rel c WHERE c.relkind = 'v'"
    " UNION ALL SELECT 'function ' || f.proname, pg_get_functiondef(f.oid) FROM pg_proc f"
    "   WHERE f.pronamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = '%s')) p",
    schema, schema, schema);
}

static void
test_parts(const char *schema)
{
  const char *fresh = named("fresh");
  char *migrated = parts(schema);

  expect_done(try_open(fresh, CREATE), "a store that is made");
  char *made = parts(fresh);
  ok(strstr(made, "instance.created_at ") && strstr(made, "work.fetch_id ") &&
       strstr(made, "function commit_turn ") && strstr(made, "function release_fetch "),
     "is made of tables, indexes and functions");
  is(migrated, made, "and one that was migrated is made of the same");
  free(migrated);
  free(made);
  expect_done(try_destroy(fresh), "removed");
  expect_done(try_destroy(schema), "both");
}

#define OLD_PAYLOADS                                                                               \
  "SELECT md5(work_item) FROM worker_queue"                                                        \
  " UNION ALL SELECT md5(work_item) FROM orchestrator_queue"                                       \
  " UNION ALL SELECT concat(instance_id, execution_id, '/', event_id, md5(event_data)) FROM history"
#define NEW_PAYLOADS                                                                               \
  "SELECT md5(payload) FROM work UNION ALL SELECT md5(payload) FROM message"                       \
  " UNION ALL SELECT concat(instance, execution, '/', event, md5(payload)) FROM history"

static void
test_rows(void)
{
  const char *schema = named("rows");

  given_version_1(schema);
  char *payloads = rows(schema, OLD_PAYLOADS);
  cmp_ok(strlen(payloads), ">", 18 * 32, "payloads of version 1");
  expect_done(try_open(schema, RW), "version 1 is migrated");
  cmp_ok(version_of(schema), "==", TODAY, "to version %d", (int)TODAY);
  is_kept(schema, "instances",
          "SELECT instance, birth > 0, status, execution, last_event, pinned, name, version,"
          " parent, locked_until, owner, created_at - 1700000000000 FROM instance"
          " WHERE birth > 0",
          "(order-1,t,1,2,6,\"{1,3,0}\",order,1.2.0,,0,,0)"
          " (order-2,t,2,1,2,,order,1.2.0,order-1,0,,1000) (order-3,t,3,1,2,,bill,,,0,,2000)");
  is_kept(schema, "and an address that is no instance yet",
          "SELECT instance, birth, status, execution, locked_until, created_at FROM instance"
          " WHERE birth = 0", "(\"order 'ü' 4\",0,0,0,0,0)");
  is_kept(schema, "when each is ready",
          "SELECT instance, ready_at FROM instance",
          "(\"order 'ü' 4\",1700000009000) (order-1,1700000008000) (order-2,) (order-3,)");
  is_kept(schema, "executions",
          "SELECT instance, execution, status, started_at, completed_at,"
          " convert_from(output, 'UTF8') FROM execution",
          "(order-1,1,4,1700000000000,1700000005000,\"{\"\"round\"\":1}\")"
          " (order-1,2,1,1700000005000,0,)"
          " (order-2,1,2,1700000001000,1700000004000,\"\"\"done\"\"\")"
          " (order-3,1,3,1700000002000,1700000005000,\"{\"\"message\"\":\"\"no money\"\"}\")");
  is_kept(schema, "messages, in their order",
          "SELECT row_number() OVER (ORDER BY seq), instance, visible_at, attempt, enqueued_at,"
          " left(convert_from(payload, 'UTF8'), 8) FROM message",
          "(1,order-1,1700000008000,2,1700000008000,\"{\"\"Activi\")"
          " (2,order-1,1800000000000,0,1700000005000,\"{\"\"TimerF\")"
          " (3,\"order 'ü' 4\",1700000009000,0,1700000009000,\"{\"\"StartO\")");
  is_kept(schema, "work, by its identity",
          "SELECT row_number() OVER (ORDER BY place), instance, execution, activity, ready_at,"
          " visible_at, attempt, epoch, tag, session FROM work",
          "(1,order-1,2,4,1700000005000,1700000005000,1,0,\"\",)"
          " (2,order-1,2,5,1700000005000,1700000005000,0,0,gpu,s-1)"
          " (3,order-2,1,2,1900000000000,1900000000000,4,0,\"\",)"
          " (4,order-1,2,6,1700000006000,1700000006000,0,0,\"\",)");
  is_kept(schema, "payloads, byte for byte", NEW_PAYLOADS, payloads);
  free(payloads);
  test_parts(schema);
}

/* The operations go on with what was migrated. */
static void
test_use(void)
{
  const char *schema = named("use");
  struct dk_fetch_work work = {.struct_size = sizeof work, .max_items = 10, .lock_ms = LEASE,
                               .tag_rule = DK_TAG_ANY};
  struct handle_under_test h;
  struct dk_activity all[] = {{2, 4}, {2, 5}, {2, 6}};
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 2,
                                  .cancelled_activities = all, .n_cancelled_activities = 3};
  struct dk_commit_outcome outcome;
  struct dk_works *works;

  given_version_1(schema);
  expect_done(open_as(conninfo, schema, RW, &h), "version 1 is migrated");
  struct dk_turn *turn = fetch_turn_as(&h, NULL);
  is(turn->head.instance.ptr, "order-1", "its first turn is fetched");
  cmp_ok(turn->head.known, "==", 1, "of an instance that is known");
  cmp_ok(turn->n_events, "==", 6, "with its history");
  cmp_ok(turn->messages[0].attempt, "==", 3, "and the third delivery of its message");
  cmp_ok(dk_store_fetch_work_item(h.store, h.caller, &work, &works), "==", DK_OK, "its work too");
  cmp_ok(works->n_items, "==", 3, "all that is due");
  expect_done(dk_store_ack_orchestration_item(h.store, h.caller, turn->head.lock_token, &result,
                                              &outcome), "its turn is committed");
  cmp_ok(outcome.report.locked_rows, "==", 3, "it is cancelled by its identity");
  cmp_ok(dk_store_renew_work_item_lock(h.store, h.caller, works->items[0].work.lock_token, LEASE),
         "==", DK_LOCK_LOST, "and its worker learns of it");
  close_store(&h);
  cmp_ok(try_open(schema, HOST), "==", DK_REFUSED, "its clock is that of the migrating open");
  expect_done(try_destroy(schema), "removed");
}

static void
grant_all(const char *schema, const char *grantee)
{
  sql(plain, "GRANT ALL ON SCHEMA \"%s\" TO %s", schema, grantee);
  sql(plain, "GRANT ALL ON ALL TABLES IN SCHEMA \"%s\" TO %s", schema, grantee);
}

/* A role that may write must not change the existing objects. */
static void
test_owner(void)
{
  const char *schema = named("own"), *other = getenv("DURAKIT_PG_READER");

  if (!other) {
    skip(3, "DURAKIT_PG_READER is not set: it names another role");
    return;
  }
  given_version_1(schema);
  PGconn *pg = connect_to(other);
  grant_all(schema, PQuser(pg));
  expect_refused(try_open_as(other, schema, RW), DK_REFUSED, "only the role that owns its tables",
                 "another role than the owner does not migrate it");
  expect_done(try_open(schema, RW), "the owner migrates it,");
  grant_all(schema, PQuser(pg));
  expect_done(try_open_as(other, schema, RW),
              "and with the rights on its tables that the owner grants, the other role can use it");
  PQfinish(pg);
  drop(schema);
}

/* ---- rows that cannot be migrated ------------------------------------------------------------ */

static const struct {
  const char *what, *change, *says;
} bad[] = {
  {"no JSON", "UPDATE worker_queue SET work_item = 'no json' WHERE id = 12", "id = 12"},
  {"JSON of another kind", "UPDATE worker_queue SET work_item = '[1]' WHERE id = 13", "id = 13"},
  {"no identity", "UPDATE worker_queue SET work_item = '{\"ActivityExecute\":{\"id\":1}}'"
                  " WHERE id = 11", "identity"},
  {"half a number", "UPDATE worker_queue SET work_item = replace(work_item, '\"id\":4',"
                    " '\"id\":4.5') WHERE id = 11", "id = 11"},
  {"a number that is too large", "UPDATE worker_queue SET work_item = replace(work_item,"
   " '\"id\":4', '\"id\":9223372036854775808') WHERE id = 11", "id = 11"},
  {"a NUL", "UPDATE worker_queue SET work_item = replace(work_item, 'order-1', 'a\\u0000b')"
            " WHERE id = 11", "id = 11"},
  {"an id of 1,025 bytes", "UPDATE worker_queue SET work_item = replace(work_item, 'order-1',"
                           " repeat('x', 1025)) WHERE id = 11", "id = 11"},
  {"an empty tag", "UPDATE worker_queue SET work_item = replace(work_item, 'gpu', '')", "id = 12"},
  {"a negative count", "UPDATE worker_queue SET attempt_count = -1 WHERE id = 14", "id = 14"},
  {"one activity twice", "INSERT INTO worker_queue SELECT 21, work_item, visible_at, NULL, NULL, 0,"
                         " created_at FROM worker_queue WHERE id = 11", "another row"},
  {"a message without an instance", "UPDATE orchestrator_queue SET instance_id = '' WHERE id = 9",
   "orchestrator_queue"},
  {"an unknown status", "UPDATE executions SET status = 'Asleep' WHERE instance_id = 'order-2'",
   "order-2"},
  {"an execution that is missing", "DELETE FROM executions WHERE instance_id = 'order-3'",
   "current execution"},
  {"a history without an instance", "INSERT INTO history VALUES('x', 1, 1, 'a', 'b', 1)", "'x'"},
  {"an event 0", "UPDATE history SET event_id = 0 WHERE event_id = 1 AND instance_id = 'order-2'",
   "event_id = 0"},
  {"a name of no bytes", "UPDATE instances SET orchestration_name = ''"
                         " WHERE instance_id = 'order-2'", "instances"},
  {"a table that is missing", "DROP TABLE instance_locks", "of the six tables"},
};

static void
test_bad_rows(void)
{
  const char *schema = named("bad");

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    given_version_1(schema);
    sql(plain, "SET search_path TO \"%s\"; %s; RESET search_path", schema, bad[i].change);
    char *before = digest(schema);
    dk_status status = try_open(schema, RW);
    char *after = digest(schema);
    if (!ok((status == DK_REFUSED || status == DK_CORRUPT) && strstr(said, bad[i].says) &&
            strcmp(before, after) == 0, "%s: refused, and nothing changed", bad[i].what))
      diag("status %d: %s", (int)status, said);
    free(before);
    free(after);
    drop(schema);
  }
}

/* ---- beside others --------------------------------------------------------------------------- */

static void
test_read_only(void)
{
  const char *schema = named("look");

  given_version_1(schema);
  char *before = digest(schema);
  expect_refused(try_open(schema, RO), DK_REFUSED, "version 1", "a read-only handle migrates none");
  char *after = digest(schema);
  is(after, before, "and changes nothing");
  free(before);
  free(after);
  expect_done(try_destroy(schema), "version 1 is ours too: removed");
  ok(!schema_is_there(schema), "it no longer exists");
}

static void
test_old_process(void)
{
  const char *schema = named("old");

  given_version_1(schema);
  char *before = digest(schema);
  sql(plain, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM \"%s\".worker_queue", schema);
  expect_refused(try_open(schema, RW), DK_BUSY, "try again", "a process of version 1 is at work");
  cmp_ok(number(plain, "SELECT count(*) FROM \"%s\".worker_queue", schema), "==", 4,
         "it is not disturbed");
  sql(plain, "COMMIT");
  char *after = digest(schema);
  is(after, before, "nothing has changed");
  expect_done(try_open(schema, RW), "afterwards it is migrated");
  PGresult *r = PQexec(plain, "SELECT 1");
  PQclear(r);
  char old[200];
  snprintf(old, sizeof old, "SELECT * FROM \"%s\".worker_queue", schema);
  r = PQexec(plain, old);
  is(PQresultErrorField(r, PG_DIAG_SQLSTATE), "42P01", "and the old process finds nothing");
  PQclear(r);
  free(before);
  free(after);
  drop(schema);
}

/* ---- killed in the middle -------------------------------------------------------------------- */

static void *
migrate(void *schema)
{
  struct dk_setting settings[] = {{"conninfo", text(conninfo)}, {"schema", text(schema)}};
  struct dk_host_options quiet = {.struct_size = sizeof quiet};
  struct dk_caller *caller = dk_caller_new(NULL, 0);
  struct dk_store *store;
  dk_status status = dk_store_open(library_under_test(), &quiet, caller, RW, settings, 2, &store);

  if (status == DK_OK)
    dk_store_close(store);
  else if (dk_status_class(status) != 1)
    diag("%s", dk_caller_failure(caller)->text);
  dk_caller_free(caller);
  return (void *)(intptr_t)status;
}

/* Ends its session once it has got hold of a table, `moment` ms later. */
static bool
kill_migration(const char *schema, int moment)
{
  for (int tries = 0; tries < 2000; tries++) {
    long pid = number(super,
                      "SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
                      " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '%s'"
                      " AND l.mode = 'AccessExclusiveLock' AND l.granted LIMIT 1", schema);
    if (pid > 0) {
      poll(NULL, 0, moment);
      sql(super, "SELECT pg_terminate_backend(%ld)", pid);
      return true;
    }
    poll(NULL, 0, 1);
  }
  return false;
}

/* Rows enough for a migration to take a while. */
static void
given_many_rows(const char *schema)
{
  given_version_1(schema);
  sql(plain, "INSERT INTO \"%s\".history SELECT 'order-3', 1, n, 'x', 'y', 1"
             " FROM generate_series(10, 3000) n", schema);
}

static bool
has_many_rows(const char *schema)
{
  return number(plain, "SELECT count(*) FROM \"%s\".history WHERE instance = 'order-3'",
                schema) == 2993;
}

/* It is whole, whichever it is, and so it is after the next try.  Both: 2. */
static int
count_whole(const char *schema, const char *before, int moment)
{
  char *after = digest(schema);
  long found = version_of(schema);
  bool is_whole = found == 1 ? strcmp(before, after) == 0 : found == TODAY;

  free(after);
  if (!is_whole)
    diag("after %d ms: version %ld", moment, found);
  if (found == 1 && try_open(schema, RW) != DK_OK)
    diag("after %d ms: %s", moment, said);
  return is_whole + has_many_rows(schema);
}

static bool
kill_in_the_middle(const char *schema, int moment)
{
  pthread_t thread;
  if (pthread_create(&thread, NULL, migrate, (void *)schema) != 0)
    BAIL_OUT("no thread");
  bool was_seen = kill_migration(schema, moment);
  pthread_join(thread, NULL);
  return was_seen;
}

static void
test_killed(void)
{
  const char *schema = named("killed");
  int killed = 0, whole = 0;

  for (int moment = 0; moment < 40; moment += 3) {
    given_many_rows(schema);
    char *before = digest(schema);
    bool was_seen = kill_in_the_middle(schema, moment);
    killed += was_seen && version_of(schema) == 1;
    whole += count_whole(schema, before, moment);
    free(before);
    drop(schema);
  }
  cmp_ok(killed, ">", 0, "sessions were ended in the middle of a migration");
  cmp_ok(whole, "==", 28, "each leaves version 1 whole or the new one, and the next migrates it");
}

enum { PROCESSES = 10 };

static void
test_at_once(void)
{
  const char *schema = named("once");
  pid_t pids[PROCESSES];
  int well = 0, status;

  given_version_1(schema);
  long events = number(plain, "SELECT count(*) FROM \"%s\".history", schema);
  for (int i = 0; i < PROCESSES; i++) {
    pids[i] = fork();
    if (pids[i] == 0)
      _exit((intptr_t)migrate((void *)schema) == DK_OK ? 0 : 1);
  }
  for (int i = 0; i < PROCESSES; i++)
    if (waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0)
      well++;
  cmp_ok(well, "==", PROCESSES, "ten processes migrate one store");
  cmp_ok(version_of(schema), "==", TODAY, "once");
  cmp_ok(number(plain, "SELECT count(*) FROM \"%s\".history", schema), "==", events,
         "all is there");
  drop(schema);
}

int
main(void)
{
  plan(NO_PLAN);
  begin_stores();
  test_rows();
  test_use();
  test_owner();
  test_bad_rows();
  test_read_only();
  test_old_process();
  if (super)
    test_killed();
  else
    skip(2, "to end a session needs a superuser: DURAKIT_PG_SUPER is not set");
  test_at_once();
  end_stores();
  return done_testing();
}
