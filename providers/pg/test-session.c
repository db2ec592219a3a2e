/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a real server: the results of its types, refusals and ended sessions.  Beside the
 * server of DURAKIT_PG; what changes the server itself is done to one that tests/with-postgres has
 * made: that has a DURAKIT_PG_LOG. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-host.h"

static struct test_host host;
static const char *server, *superuser;

struct session {
  struct dk_call call;
  struct settings settings;
  struct connection c;
  struct why why;
};

/* With more settings of libpq behind the server's. */
static dk_status
session_try(struct session *s, const char *conninfo, const char *more, const char *password)
{
  char all[1000];

  memset(s, 0, sizeof *s);
  call_init(&s->call);
  snprintf(all, sizeof all, "%s %s", conninfo, more);
  s->settings = password ? SETTINGS(0, "conninfo", all, "password", password)
                         : SETTINGS(0, "conninfo", all);
  s->c = (struct connection){.host = &host.host, .settings = &s->settings};
  return connection_open(&s->c, &s->call, &s->why);
}

static void
session_begin(struct session *s, const char *conninfo)
{
  if (session_try(s, conninfo, "", NULL) != DK_OK)
    BAIL_OUT("no session: %s", s->why.text);
}

static void
session_end(struct session *s)
{
  connection_close(&s->c);
  settings_done(&s->settings);
  call_done(&s->call);
}

static dk_status
ask(struct session *s, const char *sql, bool writes, PGresult **ret)
{
  struct values none;
  struct request request = {.what = "ask", .sql = sql, .values = &none, .writes = writes};
  PGresult *result = NULL;

  values_begin(&none);
  dk_status status = connection_run(&s->c, &s->call, &request, &result, &s->why);
  if (ret)
    *ret = result;
  else
    PQclear(result);
  return status;
}

static void
script(struct session *s, const char *sql)
{
  if (connection_script(&s->c, &s->call, "script", sql, &s->why) != DK_OK)
    BAIL_OUT("%s: %s", sql, s->why.text);
}

/* ---- values ---------------------------------------------------------------------------------- */

static int64_t
number_of(const void *context, size_t i)
{
  (void)context;
  return i % 2 ? INT64_MIN + (int64_t)i : (int64_t)i;
}

static struct dk_bytes
bytes_of(const void *context, size_t i)
{
  const struct dk_bytes *bytes = context;

  return bytes[i];
}

/* What the server makes of each, in its own words. */
static void
test_values(void)
{
  static const struct dk_bytes texts[] = {{"a", 1}, {"", 0}, {NULL, 0}, {"\"{},\\ \303\244", 8}};
  static const struct dk_bytes byteas[] = {{"\0\377", 2}, {NULL, 0}, {"", 0}};
  static const char sql[] =
    "SELECT $1 = -2 AND $2 = (-9223372036854775808) AND $3 AND $4 = 'te''xt' AND $5 IS NULL"
    " AND $6 = '\\x00ff'::bytea AND $7 = ARRAY[0, -9223372036854775807]::bigint[]"
    " AND cardinality($8) = 0 AND $8 IS NOT NULL"
    " AND $9 IS NOT DISTINCT FROM ARRAY['a', '', NULL, '\"{},\\ \303\244']"
    " AND $10 IS NOT DISTINCT FROM ARRAY['\\x00ff', NULL, '']::bytea[] AND cardinality($11) = 0"
    " AND (SELECT count(*) FROM unnest($9, $10)) = 4,"
    " $1, $2, $4, $6, $9::text";
  struct session s;
  struct values v;
  PGresult *r;

  session_begin(&s, server);
  values_begin(&v);
  value_int(&v, -2);
  value_bigint(&v, INT64_MIN);
  value_bool(&v, true);
  value_text(&v, (struct dk_bytes){"te'xt", 5});
  value_null(&v, 25);
  value_bytea(&v, (struct dk_bytes){"\0\377", 2});
  value_bigints(&v, 2, number_of, NULL);
  value_bigints(&v, 0, number_of, NULL);
  value_texts(&v, 4, bytes_of, texts);
  value_byteas(&v, 3, bytes_of, byteas);
  value_texts(&v, 0, bytes_of, texts);
  struct request request = {.what = "values", .sql = sql, .values = &v};
  if (connection_run(&s.c, &s.call, &request, &r, &s.why) != DK_OK)
    BAIL_OUT("%s", s.why.text);
  cmp_ok(result_check(r, "oibtyt", "values", &s.why), "==", DK_OK, "the types are as asked for");
  ok(field_bool(r, 0, 0), "the server has understood all of them");
  cmp_ok(field_int(r, 0, 1), "==", -2, "an integer comes back");
  cmp_ok(field_bigint(r, 0, 2), "==", INT64_MIN, "a bigint");
  cmp_mem(field_bytes(r, 0, 3).ptr, "te'xt", 5, "a text");
  cmp_mem(field_bytes(r, 0, 4).ptr, "\0\377", 2, "bytes");
  PQclear(r);
  values_done(&v);
  session_end(&s);
}

/* As much as one payload may be, and arrays as long as a commit's. */
static void
test_large(void)
{
  enum { PAYLOAD = 16 << 20, ITEMS = 200000 };
  char *payload = malloc(PAYLOAD);
  struct session s;
  struct values v;
  PGresult *r;

  if (!payload)
    BAIL_OUT("no memory");
  memset(payload, 'p', PAYLOAD);
  session_begin(&s, server);
  values_begin(&v);
  value_bytea(&v, (struct dk_bytes){payload, PAYLOAD});
  value_bigints(&v, ITEMS, number_of, NULL);
  struct request request = {
    .what = "large", .sql = "SELECT $1, cardinality($2), octet_length($1)", .values = &v};
  if (connection_run(&s.c, &s.call, &request, &r, &s.why) != DK_OK)
    BAIL_OUT("%s", s.why.text);
  cmp_ok(field_bytes(r, 0, 0).len, "==", PAYLOAD, "a large payload comes back");
  cmp_ok(memcmp(field_bytes(r, 0, 0).ptr, payload, PAYLOAD), "==", 0, "as it was");
  cmp_ok(field_int(r, 0, 1), "==", ITEMS, "and a long list");
  PQclear(r);
  values_done(&v);
  free(payload);
  session_end(&s);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void
test_refusals(void)
{
  static const struct {
    const char *sql, *sqlstate;
    dk_status status;
    bool stays;
    const char *words;
  } rows[] = {
    {"SELECT 1/0", "22012", DK_INTERNAL, true, "division by zero"},
    {"SELECT nonsense", "42703", DK_CORRUPT, true, "\"nonsense\" does not exist"},
    {"SELECT * FROM nowhere.table_of_ours", "42P01", DK_CORRUPT, true, "open the store again"},
    {"SELECT count(*) FROM pg_catalog.pg_class FOR UPDATE", "0A000", DK_REFUSED, true,
     "does not support this"},
    {"DO $$ BEGIN RAISE 'no'; END $$", "P0001", DK_REFUSED, true, "what was added to"},
    {"DO $$ BEGIN RAISE 'no' USING HINT = 'so it goes'; END $$", "P0001", DK_REFUSED, true,
     "no (so it goes) (SQLSTATE"},
    {"CREATE TEMP TABLE mine(i int PRIMARY KEY, CHECK (i > 0))", "", DK_OK, true, ""},
    {"INSERT INTO pg_temp.mine VALUES (0)", "23514", DK_REFUSED, true, "what was added to"},
    {"INSERT INTO pg_temp.mine VALUES (1), (1)", "23505", DK_CORRUPT, true, "mine_pkey"},
    {"ALTER TABLE pg_temp.mine RENAME CONSTRAINT mine_pkey TO message_id", "", DK_OK, true, ""},
    {"INSERT INTO pg_temp.mine VALUES (1), (1)", "23505", DK_BUSY, true, "try again"},
    {"SELECT * FROM pg_catalog.pg_authid", "42501", DK_REFUSED, true, "pg_authid"},
    {"SELECT pg_catalog.set_config('statement_timeout', '1', false), pg_catalog.pg_sleep(0)", "",
     DK_OK, true, ""},
    {"SELECT pg_catalog.pg_sleep(100)", "57014", DK_BUSY, true, "statement_timeout"},
    {"SELECT repeat('x', 1100000000)", "54000", DK_TOO_LARGE, true, "send less"},
    {"CREATE TABLE pg_catalog.mine()", "42501", DK_REFUSED, true, "grant it to the role"},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    static struct session s;
    if (i == 0)
      session_begin(&s, server);
    cmp_ok(ask(&s, rows[i].sql, true, NULL), "==", rows[i].status, "%s", rows[i].sql);
    if (rows[i].status != DK_OK) {
      is(s.why.sqlstate, rows[i].sqlstate, "its SQLSTATE");
      has_words(s.why.text, rows[i].words, "its words");
    }
    cmp_ok(s.c.pg != NULL, "==", rows[i].stays, "the connection");
    if (i + 1 == sizeof rows / sizeof rows[0])
      session_end(&s);
  }
}

static void
test_raised(void)
{
  struct session s;

  session_begin(&s, server);
  cmp_ok(connection_script(&s.c, &s.call, "raise",
                           "DO $$ BEGIN RAISE EXCEPTION 'so it is' USING ERRCODE = 'DK201',"
                           " DETAIL = 'look there'; END $$", &s.why), "==", DK_LOCK_LOST,
         "a status that a function raises");
  is(s.why.text, "raise: so it is: look there", "and only its words are reported");
  cmp_ok(ask(&s, "SELECT 1", false, NULL), "==", DK_OK, "the connection goes on");
  session_end(&s);
}

/* ---- what is set and prepared ---------------------------------------------------------------- */

static void
expect_setting(struct session *s, const char *name, const char *expected)
{
  char sql[200];
  PGresult *r;

  snprintf(sql, sizeof sql, "SELECT pg_catalog.current_setting('%s')", name);
  if (ask(s, sql, false, &r) != DK_OK)
    BAIL_OUT("%s", s->why.text);
  is(PQgetvalue(r, 0, 0), expected, "%s", name);
  PQclear(r);
}

/* Whatever a role may have set, and the session may set back. */
static void
test_settled(void)
{
  struct session s;
  const char *options =
    "options='-c search_path=evil -c default_transaction_isolation=serializable"
    " -c lock_timeout=1 -c statement_timeout=100000 -c synchronous_commit=off"
    " -c client_min_messages=error -c standard_conforming_strings=off -c bytea_output=escape"
    " -c transform_null_equals=on -c enable_nestloop=off -c enable_indexscan=off"
    " -c jit_above_cost=0 -c jit=on -c DateStyle=German -c idle_in_transaction_session_timeout=1"
    " -c row_security=on -c plan_cache_mode=force_custom_plan'";

  cmp_ok(session_try(&s, server, options, NULL), "==", DK_OK, "a role with much of its own");
  expect_setting(&s, "search_path", "pg_catalog, pg_temp");
  expect_setting(&s, "transaction_isolation", "read committed");
  expect_setting(&s, "lock_timeout", "5s");
  expect_setting(&s, "statement_timeout", "0");
  expect_setting(&s, "synchronous_commit", "on");
  expect_setting(&s, "client_min_messages", "warning");
  expect_setting(&s, "standard_conforming_strings", "on");
  expect_setting(&s, "bytea_output", "hex");
  expect_setting(&s, "transform_null_equals", "off");
  expect_setting(&s, "enable_nestloop", "on");
  expect_setting(&s, "enable_indexscan", "on");
  expect_setting(&s, "jit", "off");
  expect_setting(&s, "DateStyle", "ISO, DMY");
  expect_setting(&s, "idle_in_transaction_session_timeout", "0");
  expect_setting(&s, "row_security", "off");
  expect_setting(&s, "plan_cache_mode", "force_generic_plan");
  ok(s.c.is_own, "the session is known as one of our own");
  session_end(&s);
  cmp_ok(session_try(&s, server, "options='-c synchronous_commit=remote_apply'", NULL), "==", DK_OK,
         "a role that wants more than durability");
  expect_setting(&s, "synchronous_commit", "remote_apply");
  session_end(&s);
}

#ifdef LIBPQ_HAS_PIPELINING
static dk_status
ask_often(struct session *s, const char *sql)
{
  struct values none;
  struct request request = {.what = "ask", .sql = sql, .values = &none, .is_frequent = true};
  PGresult *r = NULL;

  values_begin(&none);
  dk_status status = connection_run(&s->c, &s->call, &request, &r, &s->why);
  PQclear(r);
  return status;
}
#endif

/* The result type of a prepared statement has changed, or the statement was deleted. */
static void
test_prepared(void)
{
#ifdef LIBPQ_HAS_PIPELINING
  static const char *const changes[] = {"ALTER TABLE prepared.t ADD COLUMN b int", "DISCARD ALL",
                                        "DEALLOCATE ALL"};
  struct session s;

  session_begin(&s, server);
  script(&s, "DROP SCHEMA IF EXISTS prepared CASCADE; CREATE SCHEMA prepared;"
             " CREATE TABLE prepared.t(a int)");
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    for (int n = 0; n < 3; n++)
      cmp_ok(ask_often(&s, "SELECT * FROM prepared.t"), "==", DK_OK, "it is prepared, and used");
    cmp_ok(s.c.n_prepared, "==", 1, "one statement");
    script(&s, changes[i]);
    cmp_ok(ask_often(&s, "SELECT * FROM prepared.t"), "==", DK_BUSY, "after %s", changes[i]);
    ok(connection_is_changed(&s.c), "the session has changed: %s", s.why.sqlstate);
    cmp_ok(connection_renew(&s.c, &s.call, &s.why), "==", DK_OK, "it begins anew");
    ok(!connection_is_changed(&s.c), "and is as it should be");
    expect_setting(&s, "search_path", "pg_catalog, pg_temp");
  }
  script(&s, "DROP SCHEMA prepared CASCADE");
  session_end(&s);
#endif
}

/* A session that a hidden pooler lends out: that is noticed after a while. */
static void
test_hidden_pooler(void)
{
#ifdef LIBPQ_HAS_PIPELINING
  struct session s;
  int n = 0;

  session_begin(&s, server);
  for (; s.c.is_own && n < 20; n++) {
    cmp_ok(ask_often(&s, "SELECT 1"), "==", DK_OK, "a session, and what is prepared there");
    script(&s, "DEALLOCATE ALL");
    cmp_ok(ask_often(&s, "SELECT 1"), "==", DK_BUSY, "was lost, time %d", n + 1);
    cmp_ok(connection_renew(&s.c, &s.call, &s.why), "==", DK_OK, "a new beginning");
  }
  ok(n > 1 && n < 20, "after %d times it is taken for one that is lent out", n);
  for (int i = 0; i < 2; i++) {
    cmp_ok(ask_often(&s, "SELECT 1"), "==", DK_OK, "nothing is prepared from then on");
    script(&s, "DEALLOCATE ALL");
  }
  session_end(&s);
#endif
}

/* As behind a pooler that lends sessions out: the client does not know the server's process. */
static void
test_lent(void)
{
  struct values none;
  struct request request = {.what = "ask", .values = &none, .relies = true,
                            .sql = "SELECT pg_catalog.current_setting('search_path')"};
  struct session s;
  PGresult *r;

  cmp_ok(session_try(&s, server, "options='-c search_path=evil'", NULL), "==", DK_OK, "a session");
  script(&s, "DISCARD ALL");
  s.c.is_own = false;
  values_begin(&none);
#ifdef LIBPQ_HAS_PIPELINING
  for (int i = 0; i < 2; i++) {
    cmp_ok(connection_run(&s.c, &s.call, &request, &r, &s.why), "==", DK_OK, "what relies on it");
    is(PQgetvalue(r, 0, 0), "pg_catalog, pg_temp", "has its settings");
    PQclear(r);
  }
#endif
  request.relies = false;
  request.is_frequent = true;
  cmp_ok(connection_run(&s.c, &s.call, &request, &r, &s.why), "==", DK_OK, "and what does not");
  is(PQgetvalue(r, 0, 0), "evil", "finds the session as it was");
  PQclear(r);
  request.sql = "SELECT count(*)::text FROM pg_catalog.pg_prepared_statements WHERE name <> ''";
  cmp_ok(connection_run(&s.c, &s.call, &request, &r, &s.why), "==", DK_OK, "what is prepared");
  is(PQgetvalue(r, 0, 0), "0", "nothing");
  PQclear(r);
  session_end(&s);
}

static void
test_sessions(void)
{
  struct session s;

  cmp_ok(session_try(&s, server, "options='-c default_transaction_read_only=on'", NULL), "==",
         DK_UNAVAILABLE, "a session that only reads");
  has_words(s.why.text, "default_transaction_read_only is on", "why");
  session_end(&s);
  session_begin(&s, server);
  script(&s, "SET default_transaction_read_only = on");
  cmp_ok(connection_script(&s.c, &s.call, "make", "CREATE SCHEMA mine", &s.why), "==",
         DK_UNAVAILABLE, "one that has become so does not write");
  has_words(s.why.text, "25006", "its SQLSTATE");
  ok(!s.c.pg, "the next session will check whether the server still only reads");
  session_end(&s);

  cmp_ok(session_try(&s, server, "dbname=durakit_nowhere", NULL), "==", DK_REFUSED, "no database");
  has_words(s.why.text, "CREATE DATABASE", "what to do");
  session_end(&s);
  cmp_ok(session_try(&s, server, "client_encoding=latin1 application_name=mine", NULL), "==",
         DK_OK, "with an encoding and a name of their own");
  is(PQparameterStatus(s.c.pg, "client_encoding"), "UTF8", "the encoding is ours");
  is(PQparameterStatus(s.c.pg, "application_name"), "mine", "the name is theirs");
  session_end(&s);
}

/* Sessions that wait for each other's locks. */
static void
test_locks(void)
{
  struct session a, b;

  session_begin(&a, server);
  session_begin(&b, server);
  script(&a, "BEGIN; SELECT pg_catalog.pg_advisory_xact_lock(4711)");
  cmp_ok(connection_script(&b.c, &b.call, "lock",
                           "SET LOCAL lock_timeout = '20ms'; "
                           "SELECT pg_catalog.pg_advisory_xact_lock(4711)", &b.why), "==", DK_BUSY,
         "a lock that another session holds");
  is(b.why.sqlstate, "55P03", "its SQLSTATE");
  has_words(b.why.text, "lock_timeout", "what to do");
  script(&a, "COMMIT");
  session_end(&a);
  session_end(&b);
}

/* ---- deaths ---------------------------------------------------------------------------------- */

static void
terminate(struct session *by, int pid)
{
  char sql[100];

  snprintf(sql, sizeof sql, "SELECT pg_catalog.pg_terminate_backend(%d, 10000)", pid);
  if (ask(by, sql, true, NULL) != DK_OK)
    BAIL_OUT("%s", by->why.text);
}

struct killing {
  struct session *by;
  int pid;
};

static void
kill_at_wait(struct dk_call *call)
{
  struct killing *killing = call->context;

  terminate(killing->by, killing->pid);
}

static void
test_terminated(void)
{
  struct session by;

  session_begin(&by, server);
  for (int writes = 0; writes < 2; writes++) {
    struct session s;
    session_begin(&s, server);
    struct killing killing = {&by, PQbackendPID(s.c.pg)};
    s.call.at_wait = kill_at_wait;
    s.call.context = &killing;
    cmp_ok(ask(&s, "SELECT pg_catalog.pg_sleep(100)", writes != 0, NULL), "==",
           writes ? DK_OUTCOME_UNKNOWN : DK_UNAVAILABLE, "terminated while it runs");
    is(s.why.sqlstate, "57P01", "its SQLSTATE");
    ok(!s.c.pg, "the connection has ended");
    session_end(&s);
  }
  struct session s;
  session_begin(&s, server);
  ok(connection_is_alive(&s.c), "an idle one lives");
  terminate(&by, PQbackendPID(s.c.pg));
  ok(!connection_is_alive(&s.c), "until it is terminated");
  session_end(&s);
  session_end(&by);
}

/* The server's process is stopped: it accepts data, and answers nothing. */
static void
test_stopped(void)
{
  struct session s;

  for (int way = 0; way < 3; way++) {
    session_begin(&s, server);
    int pid = PQbackendPID(s.c.pg);
    if (kill(pid, SIGSTOP) != 0) {
      skip(5, "the server's processes are not in reach");
      session_end(&s);
      return;
    }
    if (way == 0) {
      s.settings.answer_ms = 30;
      cmp_ok(ask(&s, "SELECT 1", true, NULL), "==", DK_OUTCOME_UNKNOWN, "no answer in time");
    } else if (way == 1) {
      s.call.cancel_at = s.call.n_waits + 1;
      cmp_ok(ask(&s, "SELECT 1", true, NULL), "==", DK_OUTCOME_UNKNOWN, "cancelled meanwhile");
    } else {
      ok(connection_is_alive(&s.c), "idle, nothing is seen of it");
    }
    session_end(&s);
    pass("and it is closed");
    kill(pid, SIGCONT);
  }
}

/* ---- a server of our own --------------------------------------------------------------------- */

static void
change_hba(struct session *by, const char *how)
{
  char sql[500];

  snprintf(sql, sizeof sql,
           "DO $$ DECLARE file text := pg_catalog.current_setting('hba_file');"
           " content text := pg_catalog.pg_read_file(file); BEGIN"
           " EXECUTE pg_catalog.format('COPY (SELECT line FROM"
           " pg_catalog.regexp_split_to_table(%%L, E''\\n'') line) TO %%L', %s, file); END $$",
           how);
  script(by, sql);
  script(by, "SELECT pg_catalog.pg_reload_conf()");
}

/* A role with a password, in the settings or in conninfo, right, wrong or missing. */
static void
test_password(void)
{
  struct session by, s;

  session_begin(&by, superuser);
  script(&by, "CREATE ROLE durakit_scram LOGIN PASSWORD 'right hunter2'");
  change_hba(&by, "'local all durakit_scram scram-sha-256' || E'\\n' || content");
  /* Before the server has applied the change, any password is accepted. */
  dk_status status;
  while ((status = session_try(&s, server, "user=durakit_scram", "wrong hunter2")) == DK_OK)
    session_end(&s);
  cmp_ok(status, "==", DK_REFUSED, "a wrong password");
  is(s.why.sqlstate, "28P01", "its SQLSTATE");
  has_words(s.why.text, "durakit_scram", "who");
  ok(!strstr(s.why.text, "hunter2"), "and no password");
  session_end(&s);
  cmp_ok(session_try(&s, server, "user=durakit_scram", "right hunter2"), "==", DK_OK,
         "the right one, as a setting of its own");
  session_end(&s);
  cmp_ok(session_try(&s, server, "user=durakit_scram password='right hunter2'", NULL), "==", DK_OK,
         "and in conninfo");
  session_end(&s);
  cmp_ok(session_try(&s, server, "user=durakit_scram passfile=/nowhere", NULL), "==", DK_REFUSED,
         "none");
  has_words(s.why.text, "give the setting password", "what to do");
  session_end(&s);
  change_hba(&by, "pg_catalog.regexp_replace(content, 'local all durakit_scram[^\\n]*\\n', '')");
  script(&by, "DROP ROLE durakit_scram");
  session_end(&by);
}

struct committing {
  struct session *by;
  char sql[100];          /* another each time: an idle session that has not begun it shows none */
};

/* Or when it has not waited: the server applies a new setting a little later. */
static void
cancel_when_it_commits(struct dk_call *call)
{
  const struct committing *committing = call->context;
  struct session *by = committing->by;
  bool waits = false, is_over = false;
  char sql[400];
  PGresult *r;

  snprintf(sql, sizeof sql,
           "SELECT coalesce(bool_or(wait_event = 'SyncRep'), false),"
           " coalesce(bool_or(state = 'idle' AND query = $it$%s$it$), true)"
           " FROM pg_catalog.pg_stat_activity WHERE application_name = 'it waits'",
           committing->sql);
  while (!waits && !is_over) {
    if (ask(by, sql, false, &r) != DK_OK)
      BAIL_OUT("%s", by->why.text);
    waits = field_bool(r, 0, 0);
    is_over = field_bool(r, 0, 1);
    PQclear(r);
  }
  if (waits)
    script(by, "SELECT pg_catalog.pg_cancel_backend(pid) FROM pg_catalog.pg_stat_activity"
               " WHERE application_name = 'it waits'");
}

/* A commit that is interrupted while it waits for its standby is reported as done. */
static void
test_standby(void)
{
  enum { MOST_TRIES = 10000 };
  dk_status status = DK_OK;
  struct session s, by;

  session_begin(&by, superuser);
  session_begin(&s, superuser);
  script(&s, "SET application_name = 'it waits'");
  script(&by, "ALTER SYSTEM SET synchronous_standby_names = 'absent'");
  script(&by, "SET synchronous_commit = local; SELECT pg_catalog.pg_reload_conf()");
  for (int i = 0; i < MOST_TRIES && status == DK_OK; i++) {
    struct committing committing = {.by = &by};
    snprintf(committing.sql, sizeof committing.sql,
             "SELECT pg_catalog.pg_logical_emit_message(true, 'a', '%d')", i);
    s.call.at_wait = cancel_when_it_commits;
    s.call.context = &committing;
    status = ask(&s, committing.sql, true, NULL);
    s.call.at_wait = NULL;
  }
  cmp_ok(status, "==", DK_OUTCOME_UNKNOWN, "a commit that was not waited for");
  has_words(s.why.text, "did not wait for its standby", "its words");
  has_words(host.log, "canceling wait for synchronous replication", "and the server's in the log");
  script(&by, "ALTER SYSTEM RESET synchronous_standby_names");
  script(&by, "SELECT pg_catalog.pg_reload_conf()");
  session_end(&s);
  session_end(&by);
}

/* LATIN1 is refused before anything is done in it. */
static void
test_encoding(void)
{
  struct session by, s;

  session_begin(&by, superuser);
  script(&by, "CREATE DATABASE durakit_latin1 TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
  cmp_ok(session_try(&s, server, "dbname=durakit_latin1", NULL), "==", DK_REFUSED,
         "a database in LATIN1");
  has_words(s.why.text, "has the encoding LATIN1; expected UTF8", "its words");
  session_end(&s);
  script(&by, "DROP DATABASE durakit_latin1");
  session_end(&by);
}

int
main(void)
{
  server = getenv("DURAKIT_PG");
  superuser = getenv("DURAKIT_PG_SUPER");
  if (!server)
    plan(SKIP_ALL, "DURAKIT_PG is not set (tests/with-postgres starts a server)");
  plan(NO_PLAN);
  test_host_init(&host);
  test_values(); /* what the libraries open once is open */
  int before = n_descriptors();
  test_large();
  test_refusals();
  test_raised();
  test_settled();
  test_prepared();
  test_hidden_pooler();
  test_lent();
  test_sessions();
  test_locks();
  test_terminated();
  test_stopped();
  if (superuser && getenv("DURAKIT_PG_LOG")) {
    test_password();
    test_standby();
    test_encoding();
  } else {
    skip(14, "the server is not one of tests/with-postgres");
  }
  cmp_ok(n_descriptors(), "==", before, "no descriptor is left");
  return done_testing();
}
