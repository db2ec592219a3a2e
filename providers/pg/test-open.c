/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a store while another session blocks it, has renamed the schema, or has placed objects
 * with the server's names: how long it waits, what it reports, and which functions it runs.  In a
 * session of its own, and through a proxy that poses as a pooler. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-stores.h"
#include "providers/pg/test-wire.h"

/* ---- another session blocks ------------------------------------------------------------------ */

static PGconn *
connect_as(const char *application)
{
  PGconn *pg = connect_to(conninfo);

  sql(pg, "SET application_name = '%s'", application);
  return pg;
}

static void
expect_holder(PGconn *holder, dk_status found, const char *name)
{
  char words[160];

  snprintf(words, sizeof words, "the lock was held by process %d of role \"%s\" (nightly report)",
           PQbackendPID(holder), role);
  expect_refused(found, DK_BUSY, words, name);
}

static void
test_in_the_way(void)
{
  const char *schema = named("held"), *fresh = named("fresh");
  PGconn *holder = connect_as("nightly report");

  expect_done(try_open(schema, CREATE), "a store");
  sql(holder, "BEGIN");
  sql(holder, "LOCK TABLE \"%s\".meta", schema);
  expect_holder(holder, try_open(schema, RW), "its table is locked: open waits for lock_timeout");
  expect_holder(holder, try_open(schema, RO), "read-only too");
  expect_holder(holder, try_destroy(schema), "and so does destroy_store");
  sql(holder, "ROLLBACK");

  sql(holder, "BEGIN");
  sql(holder, "SELECT FROM \"%s\".instance", schema);
  expect_holder(holder, try_destroy(schema), "a table that is being read");
  sql(holder, "ROLLBACK");

  sql(holder, "BEGIN");
  sql(holder, "SELECT pg_advisory_xact_lock(hashtextextended('durakit %s', 0))", fresh);
  expect_holder(holder, try_open(fresh, CREATE), "another process makes, migrates or removes it");
  ok(!schema_is_there(fresh), "nothing is made");
  sql(holder, "ROLLBACK");
  PQfinish(holder);
  expect_done(try_open(schema, RW), "when no session blocks it, it is opened");
  expect_done(try_destroy(schema), "and removed");
}

/* ---- cancelled ------------------------------------------------------------------------------- */

struct opening {
  const char *schema;
  struct dk_canceller *canceller;
  dk_status status;
};

static void *
open_for_long(void *argument)
{
  struct opening *o = argument;
  struct dk_setting settings[] = {{"conninfo", text(conninfo)}, {"schema", text(o->schema)},
                                  {"lock_timeout", text("1h")}, {"answer_timeout", text("2h")}};
  struct dk_host_options options = {.struct_size = sizeof options};
  struct dk_caller *caller = dk_caller_new(NULL, 0);
  struct dk_store *store;

  if (!caller)
    BAIL_OUT("no caller");
  dk_caller_set_canceller(caller, o->canceller);
  o->status = dk_store_open(library_under_test(), &options, caller, DK_OPEN_CREATE, settings, 4,
                            &store);
  if (o->status == DK_OK)
    dk_store_close(store);
  dk_caller_free(caller);
  return NULL;
}

/* Waits until a session waits for what this one holds, or until none does. */
static bool
wait_until(PGconn *pg, bool somebody_waits)
{
  for (int i = 0; i < 6000; i++) {
    char *n = sql_value(pg, "SELECT count(*) FROM pg_locks k WHERE NOT k.granted AND"
                            " pg_backend_pid() = ANY (pg_blocking_pids(k.pid))");
    bool is_so = (strcmp(n, "0") != 0) == somebody_waits;
    free(n);
    if (is_so)
      return true;
    sql(pg, "SELECT pg_sleep(0.01)");
  }
  return false;
}

/* A statement of the server for a closed client may block for a while. */
static dk_status
open_at_last(const char *schema)
{
  dk_status status = DK_BUSY;

  for (int tries = 0; status == DK_BUSY && tries < 200; tries++)
    status = try_open(schema, CREATE);
  return status;
}

/* Whether the server looks if its client is there while it waits. */
static bool
server_looks(void)
{
  return number(plain, "SELECT (current_setting('server_version_num')::int >= 140000"
                       " AND version() LIKE '%%linux%%')::int") == 1;
}

static void
test_taken_back(const char *lock, const char *schema, dk_status expected, const char *name)
{
  struct opening o = {.schema = schema, .canceller = dk_canceller_new(NULL)};
  PGconn *holder = connect_to(conninfo);
  pthread_t thread;

  sql(holder, "BEGIN");
  sql(holder, lock, schema);
  if (!o.canceller || pthread_create(&thread, NULL, open_for_long, &o) != 0)
    BAIL_OUT("no thread");
  ok(wait_until(holder, true), "%s: it waits", name);
  dk_cancel(o.canceller);
  pthread_join(thread, NULL);
  cmp_ok(o.status, "==", expected, "%s: cancelled while it waits", name);
  if (server_looks())
    ok(wait_until(holder, false), "%s: and the server does not go on either", name);
  sql(holder, "ROLLBACK");
  dk_canceller_free(o.canceller);
  PQfinish(holder);
}

/* ---- another name ---------------------------------------------------------------------------- */

/* Its functions use the schema's old name, under which there may be another schema. */
static void
test_renamed(void)
{
  const char *schema = named("first"), *other = named("second");
  struct handle_under_test h;

  expect_done(open_as(conninfo, schema, CREATE, &h), "a store");
  enqueue(&h, "kept");
  close_store(&h);
  sql(plain, "ALTER SCHEMA \"%s\" RENAME TO \"%s\"", schema, other);
  expect_refused(try_open(other, RW), DK_REFUSED, schema, "it was renamed: its old name is named");
  ok(strstr(said, "ALTER SCHEMA") && strstr(said, other), "and what to do");
  expect_done(try_open(schema, CREATE), "another is made where it was");
  char *before = digest(schema);
  expect_refused(try_open(other, CREATE), DK_REFUSED, schema, "the renamed one is refused");
  expect_refused(try_open(other, RO), DK_REFUSED, schema, "read-only too");
  char *after = digest(schema);
  is(after, before, "and the other is unchanged");
  expect_done(try_destroy(schema), "when that is removed");
  sql(plain, "ALTER SCHEMA \"%s\" RENAME TO \"%s\"", other, schema);
  expect_done(open_as(conninfo, schema, RW, &h), "under its old name it is opened");
  cmp_ok(fetch_turn(&h).len, ">", 0, "and has what it had");
  close_store(&h);
  expect_done(try_destroy(schema), "removed");
  free(before);
  free(after);
}

/* ---- traps ----------------------------------------------------------------------------------- */

/* What a search_path may lead to before the server's own: each reports that it was run. */
static void
lay_traps(const char *evil)
{
  static const char *const types[] = {"text", "name", "oid", "int2", "int4", "int8", "\"char\"",
                                      "bool"};
  static const char *const functions[] = {
    "set_config(text, text, bool) RETURNS text", "current_setting(text) RETURNS text",
    "current_setting(text, bool) RETURNS text", "current_database() RETURNS name",
    "pg_backend_pid() RETURNS int", "hashtextextended(text, int8) RETURNS int8",
    "hashtext(text) RETURNS int", "pg_advisory_xact_lock(int8) RETURNS text",
    "pg_advisory_xact_lock(int, int) RETURNS text", "pg_is_in_recovery() RETURNS bool",
    "has_schema_privilege(oid, text) RETURNS bool", "concat_ws(text, text, text) RETURNS text",
    "clock_timestamp() RETURNS timestamptz", "nextval(regclass) RETURNS int8",
    "floor(float8) RETURNS float8", "string_agg(text, text) RETURNS text"};

  sql(super, "CREATE SCHEMA \"%s\"", evil);
  sql(super, "GRANT USAGE ON SCHEMA \"%s\" TO PUBLIC", evil);
  sql(super, "SET search_path = \"%s\"", evil);
  sql(super, "CREATE SEQUENCE ran");
  sql(super, "GRANT ALL ON SEQUENCE ran TO PUBLIC");
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    sql(super, "CREATE FUNCTION same(a pg_catalog.%s, b pg_catalog.%s) RETURNS pg_catalog.bool"
               " LANGUAGE sql AS $$ SELECT nextval('\"%s\".ran') < 0 $$", types[i], types[i], evil);
    sql(super, "CREATE OPERATOR = (LEFTARG = pg_catalog.%s, RIGHTARG = pg_catalog.%s,"
               " FUNCTION = same)", types[i], types[i]);
    sql(super, "CREATE OPERATOR <> (LEFTARG = pg_catalog.%s, RIGHTARG = pg_catalog.%s,"
               " FUNCTION = same)", types[i], types[i]);
  }
  sql(super, "CREATE FUNCTION glue(pg_catalog.text, pg_catalog.text) RETURNS pg_catalog.text"
             " LANGUAGE sql AS $$ SELECT nextval('\"%s\".ran')::pg_catalog.text $$", evil);
  sql(super, "CREATE OPERATOR || (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text,"
             " FUNCTION = glue)");
  sql(super, "SET search_path = pg_catalog");
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    sql(super, "CREATE FUNCTION \"%s\".%s LANGUAGE plpgsql AS $$ BEGIN"
               " PERFORM pg_catalog.nextval('\"%s\".ran'); RETURN NULL; END $$", evil,
        functions[i], evil);
  sql(super, "CREATE DOMAIN \"%s\".text AS pg_catalog.text"
             " CHECK (pg_catalog.nextval('\"%s\".ran') < 0)", evil, evil);
}

static void
expect_no_trap_sprung(const char *evil, const char *name)
{
  char *ran = sql_value(super, "SELECT is_called FROM \"%s\".ran", evil);

  is(ran, "f", "%s: nothing of the hostile schema has run", name);
  free(ran);
}

static void
use_it(const char *by, const char *schema, const char *evil, const char *name)
{
  struct dk_commit_outcome outcome;
  struct handle_under_test h, listener;

  if (!expect_done(open_as(by, schema, CREATE, &h), name) ||
      !expect_done(open_as(by, schema, RW, &listener), name))
    return;
  given_activities(&h, "i", 3);
  ack_work(&h, fetch_work(&h), "i");
  commit_cancelling(&h, fetch_turn(&h), 2, 1, &outcome);
  close_store(&listener);
  close_store(&h);
  expect_no_trap_sprung(evil, name);
  expect_done(try_destroy(schema), name);
  expect_no_trap_sprung(evil, name);
}

static void
test_traps(struct wire *wire)
{
  char evil[64], schema[64];

  snprintf(evil, sizeof evil, "%s", named("evil"));
  snprintf(schema, sizeof schema, "%s", named("trapped"));
  lay_traps(evil);
  PGconn *trapped = connect_to(conninfo);
  sql(trapped, "SET search_path = \"%s\", pg_catalog", evil);
  sql(trapped, "SELECT 'a' || 'b'::pg_catalog.text");
  char *ran = sql_value(super, "SELECT is_called FROM \"%s\".ran", evil);
  is(ran, "t", "the traps are set: a careless statement springs one");
  free(ran);
  PQfinish(trapped);
  sql(super, "SELECT setval('\"%s\".ran', 1, false)", evil);
  sql(super, "ALTER ROLE \"%s\" SET search_path = \"%s\", pg_catalog", role, evil);
  use_it(conninfo, schema, evil, "as a session of its own");
#ifdef LIBPQ_HAS_PIPELINING
  if (wire)
    use_it(wire_conninfo(wire), schema, evil, "through a pooler");
#else
  (void)wire;
#endif
  sql(super, "ALTER ROLE \"%s\" RESET ALL", role);
  sql(super, "DROP SCHEMA \"%s\" CASCADE", evil);
}

/* ---- costly plans ---------------------------------------------------------------------------- */

#ifdef LIBPQ_HAS_PIPELINING

static int64_t
least_time_to_open(const char *schema)
{
  int64_t least = INT64_MAX;

  for (int i = 0; i < 7; i++) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (try_open(schema, RW) != DK_OK)
      BAIL_OUT("open: %s", said);
    clock_gettime(CLOCK_MONOTONIC, &to);
    int64_t us = (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
    least = us < least ? us : least;
  }
  return least;
}

/* Of some opens the fastest, with and without; what is compiled takes twenty times as long. */
static void
test_dear_plans(const char *by)
{
  const char *schema = named("dear");
  const char *before = conninfo;

  expect_done(try_open(schema, CREATE), "a store");
  conninfo = by;
  int64_t cheap = least_time_to_open(schema);
  sql(super, "ALTER ROLE \"%s\" SET enable_nestloop = off", role);
  sql(super, "ALTER ROLE \"%s\" SET enable_indexscan = off", role);
  sql(super, "ALTER ROLE \"%s\" SET jit = on", role);
  sql(super, "ALTER ROLE \"%s\" SET jit_above_cost = 0", role);
  sql(super, "ALTER ROLE \"%s\" SET jit_optimize_above_cost = 0", role);
  sql(super, "ALTER ROLE \"%s\" SET jit_inline_above_cost = 0", role);
  int64_t dear = least_time_to_open(schema);
  cmp_ok(dear, "<", 5 * cheap, "a role with odd plans opens a store as fast: %lld and %lld us",
         (long long)dear, (long long)cheap);
  sql(super, "ALTER ROLE \"%s\" RESET ALL", role);
  conninfo = before;
  expect_done(try_destroy(schema), "removed");
}
#endif

/* ---- a short statement_timeout --------------------------------------------------------------- */

/* The role's statement_timeout may have passed before a new session has received its settings. */
static void
test_short_time(void)
{
  enum { N = 20 };
  const char *schema = named("short");
  int n_opened = 0;

  sql(super, "ALTER ROLE \"%s\" SET statement_timeout = '1ms'", role);
  for (int i = 0; i < N; i++) {
    if (try_open(schema, i == 0 ? CREATE : RW) == DK_OK)
      n_opened++;
    else
      diag("%s", said);
  }
  cmp_ok(n_opened, "==", N, "a role with a statement_timeout of 1 ms opens a store each time");
  expect_done(try_destroy(schema), "and removes it");
  sql(super, "ALTER ROLE \"%s\" RESET ALL", role);
}

int
main(void)
{
  begin_stores();
  struct wire *wire = wire_new(conninfo);
  if (wire)
    wire_pose_as_pooler(wire);
  test_in_the_way();
  const char *schema = named("back");
  test_taken_back("SELECT pg_advisory_xact_lock(hashtextextended('durakit %s', 0))", schema,
                  DK_UNAVAILABLE, "making a store");
  if (server_looks())
    ok(!schema_is_there(schema), "nothing is made");
  expect_done(open_at_last(schema), "then it is made");
  test_taken_back("LOCK TABLE \"%s\".meta", schema, DK_CALL_CANCELLED, "reading its version");
  expect_done(try_destroy(schema), "removed");
  test_renamed();
  if (super) {
    test_traps(wire);
    test_short_time();
#ifdef LIBPQ_HAS_PIPELINING
    test_dear_plans(conninfo);
    if (wire)
      test_dear_plans(wire_conninfo(wire));
#endif
  } else {
    skip(1, "what a role has set: DURAKIT_PG_SUPER is not set");
  }
  if (wire)
    wire_free(wire);
  end_stores();
  return done_testing();
}
