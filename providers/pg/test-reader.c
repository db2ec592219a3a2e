/* SPDX-License-Identifier: Apache-2.0 */
/* What people and roles that only read may do: the view history_text shows what can be read as
 * text, whatever the bytes; a role with no more than SELECT reads all, and every act that would
 * change something is refused by the server (42501).  What is tried comes from the catalogue, so
 * that nothing is forgotten. */
#include <durakit/admin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-handle.h"

static const char schema[] = "reader";

/* The tables, each of their columns, */
static const char tables[] =
  "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'reader'"
  " ORDER BY 1";
static const char columns[] =
  "SELECT format('UPDATE reader.%I SET %I = %I', table_name, column_name, column_name)"
  " FROM information_schema.columns JOIN pg_tables ON tablename = table_name"
  " AND schemaname = table_schema WHERE table_schema = 'reader' ORDER BY 1";
/* and the functions that are not declared as reading only: with a time at which all that is stored
 * is due, this session's own number, and little room, so that each reaches its write. */
static const char functions[] =
  "SELECT format('SELECT * FROM reader.%I(%s)', p.proname, (SELECT string_agg(CASE"
  "   WHEN p.proargnames[n] = 'p_pid' THEN 'pg_backend_pid()'"
  "   WHEN p.proargnames[n] = 'p_rule' THEN '3'" /* any tag */
  "   WHEN p.proargnames[n] = 'p_now' THEN '9000000000000'"
  "   WHEN p.proargnames[n] = 'p_before' THEN '9000000000000'"
  "   WHEN p.proargnames[n] = 'p_birth' THEN (SELECT birth::text FROM reader.instance"
  "     WHERE instance = 'inst')"
  "   WHEN t = 'text'::regtype THEN '''inst''' WHEN t = 'integer'::regtype THEN '1'"
  "   WHEN t = 'text[]'::regtype THEN '''{x}''' WHEN t = 'bigint'::regtype THEN '1'"
  "   WHEN t = 'boolean'::regtype THEN 'true'"
  "   ELSE format('NULL::%s', t::regtype) END, ', ' ORDER BY n)"
  "   FROM unnest(p.proargtypes) WITH ORDINALITY AS a(t, n))),"
  "  p.prosrc ~ '(INSERT INTO|UPDATE \"?reader|DELETE FROM|FOR UPDATE|FOR NO KEY UPDATE|nextval)'"
  " FROM pg_proc p WHERE p.pronamespace = 'reader'::regnamespace AND p.provolatile = 'v'"
  " ORDER BY 1";

/* ---- refused acts ---------------------------------------------------------------------------- */

static void
expect_refused(PGconn *reader, const char *statement)
{
  PGresult *result = PQexec(reader, statement);
  const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

  if (!ok(state && strcmp(state, "42501") == 0, "refused: %.120s", statement))
    diag("%s %s", state ? state : "done", PQresultErrorMessage(result));
  PQclear(result);
}

/* A statement for each row of a query of the owner's, with `format`'s %s replaced. */
static void
expect_all_refused(PGconn *owner, PGconn *reader, const char *query, const char *format)
{
  PGresult *rows = PQexec(owner, query);

  if (PQresultStatus(rows) != PGRES_TUPLES_OK || PQntuples(rows) == 0)
    BAIL_OUT("%s: %d rows: %s", query, PQntuples(rows), PQerrorMessage(owner));
  for (int i = 0; i < PQntuples(rows); i++) {
    char statement[1000];
    const char *at = strstr(format, "%s");
    snprintf(statement, sizeof statement, "%.*s%s%s", (int)(at - format), format,
             PQgetvalue(rows, i, 0), at + 2);
    expect_refused(reader, statement);
  }
  PQclear(rows);
}

/* All that is stored, and the sequence's number. */
static char *
store_as_text(PGconn *owner)
{
  return sql_value(owner, "SELECT md5(string_agg(query_to_xml(CASE WHEN c.relkind = 'r'"
                   " THEN format('SELECT * FROM reader.%%I x ORDER BY x::text', c.relname)"
                   " ELSE format('SELECT last_value, is_called FROM reader.%%I', c.relname) END,"
                   " true, false, '')::text, ';' ORDER BY c.relname)) FROM pg_class c"
                   " WHERE c.relnamespace = 'reader'::regnamespace AND c.relkind IN ('r', 'S')");
}

/* A function that writes by itself is refused; any other is, or changes nothing. */
static void
test_functions(PGconn *owner, PGconn *reader)
{
  PGresult *rows = PQexec(owner, functions);
  int n_writing = 0;

  if (PQresultStatus(rows) != PGRES_TUPLES_OK)
    BAIL_OUT("%s", PQerrorMessage(owner));
  for (int i = 0; i < PQntuples(rows); i++) {
    const char *call = PQgetvalue(rows, i, 0);
    if (strcmp(PQgetvalue(rows, i, 1), "t") == 0) {
      expect_refused(reader, call);
      n_writing++;
      continue;
    }
    char *before = store_as_text(owner);
    PQclear(PQexec(reader, call));
    char *after = store_as_text(owner);
    is(after, before, "refused, or without effect: %.120s", call);
    free(before);
    free(after);
  }
  cmp_ok(n_writing, ">=", 20, "%d of %d functions write by themselves", n_writing,
         PQntuples(rows));
  PQclear(rows);
}

static void
test_refused_acts(PGconn *owner, PGconn *reader)
{
  expect_all_refused(owner, reader, tables, "INSERT INTO %s DEFAULT VALUES");
  expect_all_refused(owner, reader, tables, "DELETE FROM %s");
  expect_all_refused(owner, reader, tables, "TRUNCATE %s");
  expect_all_refused(owner, reader, tables, "ALTER TABLE %s SET (fillfactor = 90)");
  expect_all_refused(owner, reader, tables, "SELECT 1 FROM %s FOR UPDATE");
  expect_all_refused(owner, reader, tables, "DROP TABLE %s");
  expect_all_refused(owner, reader, columns, "%s");
  test_functions(owner, reader);
  expect_refused(reader, "SELECT nextval('reader.number')");
  expect_refused(reader, "SELECT setval('reader.number', 1)");
  expect_refused(reader, "CREATE TABLE reader.mine(n int)");
  expect_refused(reader, "CREATE FUNCTION reader.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'");
  expect_refused(reader, "DROP SCHEMA reader CASCADE");
}

/* ---- reading --------------------------------------------------------------------------------- */

static void
commit_events(struct handle_under_test *h, const struct dk_event *events, size_t n)
{
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .name = text("order"), .version = text("1"), .events = events,
                                  .n_events = n};
  struct dk_commit_outcome outcome;

  enqueue(h, "inst");
  if (dk_store_ack_orchestration_item(h->store, h->caller, fetch_turn(h), &result, &outcome)
      != DK_OK)
    BAIL_OUT("commit: %s", dk_caller_failure(h->caller)->text);
}

static void
test_view(struct handle_under_test *h, PGconn *reader)
{
  static const struct dk_event events[] = {
    {1, {"{\"name\": \"caf\xc3\xa9\"}", 17}}, {2, {"a\xff" "b", 3}}, {3, {"", 0}}, {4, {NULL, 0}},
    {5, {"a\0b", 3}}, {6, {"\\", 1}},
  };
  static const char *const shown[] = {"{\"name\": \"caf\xc3\xa9\"}", "a\\377b", "", "(null)",
                                      "a\\000b", "\\"};

  commit_events(h, events, sizeof events / sizeof events[0]);
  for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
    char *payload = sql_value(reader, "SELECT coalesce(payload, '(null)') FROM reader.history_text"
                              " WHERE instance = 'inst' AND execution = 1 AND event = %zu", i + 1);
    is(payload, shown[i], "event %zu as history_text shows it", i + 1);
    free(payload);
  }
}

/* As docs/operating.md grants it. */
static void
test_reads(PGconn *owner, PGconn *reader)
{
  PGresult *rows = PQexec(owner, tables);

  for (int i = 0; i < PQntuples(rows); i++) {
    free(sql_value(reader, "SELECT count(*) FROM %s", PQgetvalue(rows, i, 0)));
    pass("reads %s", PQgetvalue(rows, i, 0));
  }
  PQclear(rows);
}

static struct handle_under_test
open_as_reader(uint32_t flags)
{
  struct dk_host_options options = {.struct_size = sizeof options};
  struct dk_setting settings[] = {{"conninfo", text(getenv("DURAKIT_PG_READER"))},
                                  {"schema", text(schema)}};
  struct handle_under_test h;

  open_with(&h, library_under_test(), flags, &options, settings, 2);
  return h;
}

/* ADMIN: the extension, by a handle of this role that only reads. */
static void
test_looking(void)
{
  struct dk_list_instances instances = {.struct_size = sizeof instances, .flags = DK_LIST_OUTPUT};
  struct dk_list_executions executions = {.struct_size = sizeof executions,
                                          .instance = text("inst")};
  struct dk_read_messages messages = {.struct_size = sizeof messages, .instance = text("inst")};
  struct handle_under_test h = open_as_reader(DK_OPEN_READ_ONLY);
  struct dk_instances *found = NULL;
  struct dk_executions *run = NULL;
  struct dk_messages *waiting = NULL;
  struct dk_stats stats;

  ok(dk_store_list_instances(h.store, h.caller, &instances, &found) == DK_OK &&
     found->n_items == 1 && found->items[0].execution_id == 2, "lists the instances");
  ok(dk_store_list_executions(h.store, h.caller, &executions, &run) == DK_OK &&
     run->n_items == 2, "and their executions");
  ok(dk_store_read_messages(h.store, h.caller, &messages, &waiting) == DK_OK &&
     waiting->n_items == 1, "reads messages");
  ok(dk_store_read_stats(h.store, h.caller, &stats) == DK_OK && stats.activities_ready == 2,
     "and counts");
  close_store(&h);
}

/* What its rights do not cover, where the handle would. */
static void
test_removing(PGconn *owner)
{
  static const struct dk_instance_filter all = {.struct_size = sizeof all};
  struct dk_bytes id = text("inst");
  struct dk_delete_instances deletion = {.struct_size = sizeof deletion, .instances = &id,
                                         .n_instances = 1, .flags = DK_DELETE_FORCE};
  struct dk_delete_matching matching = {.struct_size = sizeof matching, .filter = &all,
                                        .max_instances = 1};
  struct dk_prune prune = {.struct_size = sizeof prune, .instance = id};
  struct handle_under_test h = open_as_reader(0);
  char *before = store_as_text(owner);

  cmp_ok(dk_store_delete_instances(h.store, h.caller, &deletion, NULL), "==", DK_REFUSED,
         "it is refused a deletion");
  ok(strstr(dk_caller_failure(h.caller)->text, "42501"), "because a right is missing: %s",
     dk_caller_failure(h.caller)->text);
  cmp_ok(dk_store_delete_matching(h.store, h.caller, &matching, NULL), "==", DK_REFUSED,
         "by a filter, too");
  cmp_ok(dk_store_prune_executions(h.store, h.caller, &prune, NULL), "==", DK_REFUSED,
         "and to prune");
  char *after = store_as_text(owner);
  is(after, before, "nothing has changed");
  free(before);
  free(after);
  close_store(&h);
}

static void
test_read_only_handle(void)
{
  struct handle_under_test h = open_as_reader(DK_OPEN_READ_ONLY);
  struct dk_read_history request = {.struct_size = sizeof request, .instance = text("inst")};
  struct dk_item item = {.struct_size = sizeof item, .instance = text("inst"),
                         .payload = text("hello")};
  struct dk_history *history = NULL;

  ok(dk_store_read_history(h.store, h.caller, &request, &history) == DK_OK &&
       history->n_events == 6, "a handle of this role that only reads the history");
  cmp_ok(dk_store_enqueue_for_orchestrator(h.store, h.caller, &item), "==", DK_REFUSED,
         "and every write is refused");
  close_store(&h);
}

int
main(void)
{
  struct handle_under_test h;

  if (!getenv("DURAKIT_PG_READER"))
    plan(SKIP_ALL, "DURAKIT_PG_READER is not set: it names a role without any rights");
  begin();
  destroy_store(getenv("DURAKIT_PG"), schema);
  open_store(&h, getenv("DURAKIT_PG"), schema);
  PGconn *owner = connect_to(getenv("DURAKIT_PG"));
  PGconn *reader = connect_to(getenv("DURAKIT_PG_READER"));
  sql(owner, "GRANT USAGE ON SCHEMA reader TO %s", PQuser(reader));
  sql(owner, "GRANT SELECT ON ALL TABLES IN SCHEMA reader TO %s", PQuser(reader));
  test_view(&h, reader);
  test_reads(owner, reader);
  test_read_only_handle();
  given_activities(&h, "inst", 2);
  sql(owner, "UPDATE reader.instance SET execution = 2, status = 2 WHERE instance = 'inst'");
  sql(owner, "INSERT INTO reader.execution VALUES ('inst', 2, 2, 1, 1)");
  sql(owner, "UPDATE reader.execution SET status = 4, completed_at = 1 WHERE instance = 'inst'");
  test_looking();
  test_removing(owner);
  test_refused_acts(owner, reader);
  PQfinish(reader);
  PQfinish(owner);
  close_store(&h);
  destroy_store(getenv("DURAKIT_PG"), schema);
  end();
  return done_testing();
}
