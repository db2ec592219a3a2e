/* SPDX-License-Identifier: Apache-2.0 */
/* Making, opening and removing a store: whose schemas are refused and stay as they are, which
 * rights are needed, and what several do at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-stores.h"

static long
objects(const char *schema)
{
  return number(plain,
                "SELECT count(*) FROM pg_depend d JOIN pg_namespace n ON d.refobjid = n.oid"
                " AND d.refclassid = 'pg_namespace'::regclass WHERE n.nspname = $q$%s$q$", schema);
}

/* ---- making and opening ---------------------------------------------------------------------- */

static void
test_missing(void)
{
  const char *schema = named("missing");

  expect_refused(try_open(schema, RW), DK_NOT_FOUND, "did not ask to make one", "no store");
  expect_refused(try_open(schema, RO), DK_NOT_FOUND, schema, "read-only: no store");
  expect_refused(try_open(schema, RO | CREATE), DK_NOT_FOUND, schema, "read-only makes none");
  expect_done(try_destroy(schema), "removing a store that does not exist succeeds");
  ok(!schema_is_there(schema), "nothing was made");
}

static void
test_made(void)
{
  const char *schema = named("made");

  expect_done(try_open(schema, CREATE), "a store is made");
  char *before = digest(schema);
  expect_done(try_open(schema, CREATE), "and opened");
  expect_done(try_open(schema, RW), "without DK_OPEN_CREATE too");
  expect_done(try_open(schema, RO), "read-only too");
  expect_refused(try_open(schema, HOST), DK_REFUSED, "the server's clock",
                 "TIME-7: not by the other clock");
  expect_refused(try_open(schema, HOST | RO), DK_REFUSED, "without DK_OPEN_HOST_CLOCK",
                 "nor read-only");
  char *after = digest(schema);
  is(after, before, "and nothing changed by all that");
  free(before);
  free(after);
  expect_done(try_destroy(schema), "it is removed");
  ok(!schema_is_there(schema), "and no longer exists");
  expect_done(try_open(schema, CREATE | HOST), "another, of the hosts' clock");
  expect_refused(try_open(schema, RW), DK_REFUSED, "the hosts' clock", "and that is recorded");
  expect_done(try_destroy(schema), "removed");
}

/* A name may be anything that fits. */
static void
test_names(void)
{
  static const char *const names[] = {
    "it's", "a\"b", "$$", "$head$ $x$", "back\\slash", "sp ace; DROP", "@schema@", "%s%n", "ü-ñ",
    "63-bytes-in-all-0123456789-0123456789-0123456789-0123456789-012",
  };

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    struct handle_under_test h;
    dk_status status = open_as(conninfo, names[i], CREATE, &h);
    char name[100];
    snprintf(name, sizeof name, "a schema may be called %s", names[i]);
    if (!expect_done(status, name))
      continue;
    given_activities(&h, "i", 2);
    ack_work(&h, fetch_work(&h), "i");
    close_store(&h);
    expect_done(try_destroy(names[i]), "used, and removed");
  }
}

/* ---- schemas of other programs --------------------------------------------------------------- */

static void
test_others(void)
{
  const char *schema = named("others");

  sql(plain, "CREATE SCHEMA \"%s\"; CREATE TABLE \"%s\".diary(day date)", schema, schema);
  char *before = digest(schema);
  expect_refused(try_open(schema, CREATE), DK_REFUSED, "diary", "another program's schema");
  expect_refused(try_open(schema, RO), DK_REFUSED, "not a store", "read-only too");
  expect_refused(try_destroy(schema), DK_REFUSED, "diary", "nor is it removed");
  sql(plain, "CREATE TABLE \"%s\".meta(version int)", schema);
  expect_refused(try_open(schema, CREATE), DK_REFUSED, "durakit_version",
                 "even if it has a table meta of its own");
  sql(plain, "DROP TABLE \"%s\".meta", schema);
  char *after = digest(schema);
  is(after, before, "it is as it was");
  free(before);
  free(after);
  sql(plain, "DROP TABLE \"%s\".diary; CREATE FUNCTION \"%s\".f() RETURNS int LANGUAGE sql AS"
             " 'SELECT 1'", schema, schema);
  expect_refused(try_open(schema, CREATE), DK_REFUSED, "not a store", "a function alone is enough");
  sql(plain, "DROP SCHEMA \"%s\" CASCADE", schema);
}

static void
test_versions(void)
{
  const char *schema = named("versions");

  expect_done(try_open(schema, CREATE), "a store");
  sql(plain, "UPDATE \"%s\".meta SET durakit_version = 17", schema);
  expect_refused(try_open(schema, CREATE), DK_REFUSED, "version 17", "of a later version");
  ok(strstr(said, "versions up to 4"), "both numbers are reported");
  expect_refused(try_open(schema, RO), DK_REFUSED, "version 17", "read-only too");
  expect_refused(try_destroy(schema), DK_REFUSED, "version 17", "nor is it removed");
  for (int version = 2; version < 4; version++) {
    sql(plain, "UPDATE \"%s\".meta SET durakit_version = %d", schema, version);
    expect_refused(try_open(schema, CREATE), DK_REFUSED, "DROP SCHEMA",
                   "of a version that was never released");
    expect_refused(try_open(schema, RO), DK_REFUSED, "never released", "read-only too");
    expect_refused(try_destroy(schema), DK_REFUSED, "never released", "nor is it removed");
  }
  sql(plain, "UPDATE \"%s\".meta SET durakit_version = 0", schema);
  expect_refused(try_open(schema, CREATE), DK_CORRUPT, "version is 0", "of version 0");
  sql(plain, "DELETE FROM \"%s\".meta", schema);
  expect_refused(try_open(schema, CREATE), DK_CORRUPT, "one row", "without a version");
  sql(plain, "ALTER TABLE \"%s\".meta DROP COLUMN clock; "
             "INSERT INTO \"%s\".meta(durakit_version, store, schema_name) VALUES (2, 7, '%s')",
      schema, schema, schema);
  expect_refused(try_open(schema, CREATE), DK_CORRUPT, "store, clock and schema_name",
                 "without its columns");
  sql(plain, "DROP SCHEMA \"%s\" CASCADE", schema);
}

static void
test_guests(void)
{
  const char *schema = named("host"), *other = named("other");

  expect_done(try_open(schema, CREATE), "a store");
  sql(plain, "CREATE TABLE \"%s\".guest(x int)", schema);
  char *before = digest(schema);
  expect_refused(try_destroy(schema), DK_REFUSED, "guest", "another program's table is in it");
  sql(plain, "DROP TABLE \"%s\".guest; CREATE SCHEMA \"%s\"", schema, other);
  sql(plain, "CREATE VIEW \"%s\".report AS SELECT * FROM \"%s\".history", other, schema);
  expect_refused(try_destroy(schema), DK_REFUSED, "report", "another program's view needs it");
  ok(strstr(said, "remove or move") && !strstr(said, "report it"), "the text says what to do only");
  cmp_ok(number(plain, "SELECT count(*) FROM \"%s\".report", other), "==", 0, "the view is there");
  sql(plain, "CREATE TABLE \"%s\".guest(x int)", schema);
  char *after = digest(schema);
  is(after, before, "and nothing was removed");
  free(before);
  free(after);
  sql(plain, "DROP TABLE \"%s\".guest; DROP VIEW \"%s\".report", schema, other);
  expect_done(try_destroy(schema), "then it is removed");
  ok(schema_is_there(other), "and its neighbour stays");
  sql(plain, "DROP SCHEMA \"%s\"", other);
}

static void
test_in_use(void)
{
  const char *schema = named("used");

  expect_done(try_open(schema, CREATE), "a store");
  sql(plain, "BEGIN; SELECT * FROM \"%s\".history", schema);
  expect_refused(try_destroy(schema), DK_BUSY, "try again", "in use by another session");
  sql(plain, "COMMIT");
  expect_done(try_open(schema, RW), "it is whole");
  expect_done(try_destroy(schema), "and removed when no session uses it");
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* Roles are the server's, not the database's: this one goes again. */
static void
test_schema_of_an_administrator(void)
{
  const char *schema = named("given"), *guest = named("guest");
  char by[600];

  sql(super, "CREATE ROLE \"%s\" LOGIN; CREATE SCHEMA \"%s\"", guest, schema);
  snprintf(by, sizeof by, "%s user='%s'", conninfo, guest);
  expect_refused(try_open_as(by, named("own"), CREATE), DK_REFUSED, "GRANT CREATE ON DATABASE",
                 "without CREATE on the database");
  expect_refused(try_open_as(by, schema, CREATE), DK_REFUSED, "GRANT USAGE, CREATE ON SCHEMA",
                 "in another role's schema");
  sql(super, "GRANT USAGE, CREATE ON SCHEMA \"%s\" TO \"%s\"", schema, guest);
  expect_refused(try_open_as(by, schema, RW), DK_NOT_FOUND, "no store", "an empty schema is none");
  expect_done(try_open_as(by, schema, CREATE), "one that it may use becomes a store");
  const char *ours = conninfo;
  conninfo = by;
  expect_done(try_destroy(schema), "which is removed");
  expect_done(try_destroy(schema), "twice");
  conninfo = ours;
  ok(schema_is_there(schema), "the schema stays: its owner has made it");
  cmp_ok(objects(schema), "==", 0, "but is empty");
  sql(super, "DROP SCHEMA \"%s\"; DROP ROLE \"%s\"", schema, guest);
}

static bool
is_refused(dk_status status, const char *act)
{
  if (status != DK_REFUSED)
    diag("%s: status %d", act, (int)status);
  return status == DK_REFUSED;
}

/* Everything that writes. */
static bool
refuses_to_write(struct handle_under_test *h)
{
  struct dk_bytes dead = text("1.1.1");
  struct dk_item item = {.struct_size = sizeof item, .instance = text("i"), .execution_id = 1,
                         .activity_id = 9, .payload = text("x")};
  struct dk_item message = {.struct_size = sizeof message, .instance = text("i"),
                            .payload = text("x")};
  struct dk_fetch_turn turns = {.struct_size = sizeof turns, .lock_ms = LEASE};
  struct dk_fetch_work work = {.struct_size = sizeof work, .max_items = 1, .lock_ms = LEASE,
                               .tag_rule = DK_TAG_ANY};
  struct dk_turn_result result = {.struct_size = sizeof result};
  struct dk_work_result done = {.struct_size = sizeof done};
  struct dk_commit_outcome outcome;
  struct dk_turn *turn;
  struct dk_works *works;
  struct dk_store *s = h->store;
  struct dk_caller *c = h->caller;
  int n = 0;

  (void)dead;
  n += is_refused(dk_store_enqueue_for_orchestrator(s, c, &message), "enqueue a message");
  n += is_refused(dk_store_enqueue_for_worker(s, c, &item), "enqueue work");
  n += is_refused(dk_store_fetch_orchestration_item(s, c, &turns, &turn), "fetch a turn");
  n += is_refused(dk_store_fetch_work_item(s, c, &work, &works), "fetch work");
  n += is_refused(dk_store_ack_orchestration_item(s, c, dead, &result, &outcome), "commit");
  n += is_refused(dk_store_abandon_orchestration_item(s, c, dead, 0, 0), "abandon a turn");
  n += is_refused(dk_store_renew_orchestration_item_lock(s, c, dead, LEASE), "renew a turn");
  n += is_refused(dk_store_ack_work_item(s, c, dead, &done), "ack work");
  n += is_refused(dk_store_abandon_work_item(s, c, dead, 0, 0), "abandon work");
  n += is_refused(dk_store_renew_work_item_lock(s, c, dead, LEASE), "renew work");
  return n == 10;
}

static bool
reads_history(struct handle_under_test *h)
{
  struct dk_read_history request = {.struct_size = sizeof request, .instance = text("i")};
  struct dk_history *history = NULL;

  return dk_store_read_history(h->store, h->caller, &request, &history) == DK_OK &&
         history->found && history->execution.execution_id == 1;
}

static void
test_reader(void)
{
  const char *schema = named("read"), *reader = named("reader");
  struct handle_under_test h;
  char by[600];

  expect_done(open_as(conninfo, schema, CREATE, &h), "a store with something in it");
  given_activities(&h, "i", 2);
  close_store(&h);
  sql(super, "CREATE ROLE \"%s\" LOGIN", reader);
  snprintf(by, sizeof by, "%s user='%s'", conninfo, reader);
  expect_refused(try_open_as(by, schema, RO), DK_REFUSED, "GRANT USAGE ON SCHEMA", "no rights");
  sql(plain, "GRANT USAGE ON SCHEMA \"%s\" TO \"%s\"", schema, reader);
  expect_refused(try_open_as(by, schema, RO), DK_REFUSED, "GRANT SELECT ON ALL TABLES",
                 "not to read either");
  sql(plain, "GRANT SELECT ON ALL TABLES IN SCHEMA \"%s\" TO \"%s\"", schema, reader);
  char *before = digest(schema);
  expect_done(open_as(by, schema, RO, &h), "to read is enough");
  ok(reads_history(&h), "it reads the history");
  ok(refuses_to_write(&h), "and refuses all that writes");
  close_store(&h);
  const char *ours = conninfo;
  conninfo = by;
  expect_refused(try_destroy(schema), DK_REFUSED, "owner", "nor does it remove the store");
  conninfo = ours;
  char *after = digest(schema);
  is(after, before, "the store is as it was");
  free(before);
  free(after);
  expect_done(try_destroy(schema), "removed by its owner");
  sql(super, "DROP ROLE \"%s\"", reader);
}

/* As the documents grant it: rights on the rows, and nothing of its own. */
static void
test_worker(void)
{
  const char *schema = named("work"), *worker = named("worker");
  struct handle_under_test h;
  char by[600];

  expect_done(try_open(schema, CREATE), "a store");
  sql(super, "CREATE ROLE \"%s\" LOGIN", worker);
  sql(plain, "GRANT USAGE ON SCHEMA \"%s\" TO \"%s\"", schema, worker);
  sql(plain, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \"%s\" TO \"%s\"",
      schema, worker);
  sql(plain, "GRANT USAGE ON ALL SEQUENCES IN SCHEMA \"%s\" TO \"%s\"", schema, worker);
  snprintf(by, sizeof by, "%s user='%s'", conninfo, worker);
  if (expect_done(open_as(by, schema, RW, &h), "a role that does not own it opens it")) {
    given_activities(&h, "i", 2);
    ack_work(&h, fetch_work(&h), "i");
    fetch_turn(&h);
    ok(reads_history(&h), "and works with it");
    close_store(&h);
  }
  expect_done(try_destroy(schema), "removed by its owner");
  sql(super, "DROP ROLE \"%s\"", worker);
}

/* ---- what a role, a database or a server is set to ------------------------------------------- */

static void
test_settings_of_the_role(void)
{
  const char *schema = named("set"), *evil = named("evil");
  struct handle_under_test h;

  sql(super, "CREATE SCHEMA \"%s\" AUTHORIZATION \"%s\"", evil, role);
  sql(super, "CREATE FUNCTION \"%s\".count(bigint) RETURNS bigint LANGUAGE sql"
             " AS 'SELECT 7::bigint'", evil);
  sql(super, "CREATE TABLE \"%s\".meta(durakit_version int, store bigint, clock int)", evil);
  sql(super, "ALTER ROLE \"%s\" SET search_path = \"%s\", pg_catalog", role, evil);
  sql(super, "ALTER ROLE \"%s\" SET synchronous_commit = off", role);
  sql(super, "ALTER ROLE \"%s\" SET standard_conforming_strings = off", role);
  sql(super, "ALTER ROLE \"%s\" SET quote_all_identifiers = on", role);
  sql(super, "ALTER ROLE \"%s\" SET bytea_output = escape", role);
  if (!expect_done(open_as(conninfo, schema, CREATE, &h), "a role with settings of its own"))
    return;
  given_activities(&h, "i", 2);
  ack_work(&h, fetch_work(&h), "i");
  ok(reads_history(&h), "its store is used");
  close_store(&h);
  sql(super, "ALTER ROLE \"%s\" SET default_transaction_read_only = on", role);
  expect_refused(try_open(named("new"), CREATE), DK_UNAVAILABLE, "read-only",
                 "a role that only reads makes no store");
  expect_done(try_open(schema, RO), "but opens one read-only");
  sql(super, "ALTER ROLE \"%s\" RESET ALL", role);
  expect_done(try_destroy(schema), "removed");
  sql(super, "DROP SCHEMA \"%s\" CASCADE", evil);
}

static void
test_durability_is_said(void)
{
  const char *schema = named("durable");
  bool is_unsafe = number(plain, "SELECT (current_setting('fsync') = 'off')::int") == 1;

  expect_done(try_open(schema, CREATE), "a store");
  if (is_unsafe)
    ok(strstr(said, "fsync=off") && strstr(said, "power"), "a server without syncs is reported");
  else
    is(said, "", "a server that syncs is not warned of");
  expect_done(try_destroy(schema), "removed");
}

/* ---- several at once ------------------------------------------------------------------------- */

enum { PROCESSES = 10 };

/* As one of the processes. */
static bool
act_alone(const char *schema, bool (*act)(const char *schema, struct dk_caller *caller))
{
  struct dk_caller *caller = dk_caller_new(NULL, 0);
  bool is_well = caller && act(schema, caller);

  if (caller && !is_well)
    fprintf(stderr, "# %s\n", dk_caller_failure(caller)->text);
  dk_caller_free(caller);
  return is_well;
}

/* Each in a process of its own, which knows nothing of the others; how many it went well for. */
static int
at_once(const char *schema, bool (*act)(const char *schema, struct dk_caller *caller))
{
  pid_t pids[PROCESSES];
  int gate[2], well = 0, status;
  char go;

  if (pipe(gate) < 0)
    BAIL_OUT("no pipe");
  for (int i = 0; i < PROCESSES; i++) {
    pids[i] = fork();
    if (pids[i] == 0) {
      close(gate[1]);
      if (read(gate[0], &go, 1) != 0)
        _exit(1);
      _exit(act_alone(schema, act) ? 0 : 1);
    }
  }
  close(gate[0]);
  close(gate[1]); /* now */
  for (int i = 0; i < PROCESSES; i++)
    if (waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0)
      well++;
  return well;
}

static bool
make_and_use(const char *schema, struct dk_caller *caller)
{
  struct dk_setting settings[] = {{"conninfo", text(conninfo)}, {"schema", text(schema)}};
  struct dk_host_options quiet = {.struct_size = sizeof quiet};
  struct dk_item item = {.struct_size = sizeof item, .instance = text("i"), .payload = text("x")};
  struct dk_store *store;

  if (dk_store_open(library_under_test(), &quiet, caller, CREATE, settings, 2, &store) != DK_OK)
    return false;
  bool is_well = dk_store_enqueue_for_orchestrator(store, caller, &item) == DK_OK;
  return dk_store_close(store) == NULL && is_well;
}

static bool
make_or_remove(const char *schema, struct dk_caller *caller)
{
  struct dk_setting settings[] = {{"conninfo", text(conninfo)}, {"schema", text(schema)}};
  struct dk_host_options quiet = {.struct_size = sizeof quiet};
  struct dk_store *store;

  for (int i = 0; i < 5; i++) {
    dk_status status =
      dk_store_open(library_under_test(), &quiet, caller, CREATE, settings, 2, &store);
    if (status == DK_OK && dk_store_close(store) != NULL)
      return false;
    if (status == DK_OK)
      status = dk_store_destroy(library_under_test(), &quiet, caller, settings, 2);
    if (status != DK_OK && dk_status_class(status) != 1)
      return false;
  }
  return true;
}

static void
test_at_once(void)
{
  const char *schema = named("at-once");

  for (int round = 0; round < 3; round++) {
    cmp_ok(at_once(schema, make_and_use), "==", PROCESSES,
           "ten processes make one store, and use it");
    cmp_ok(number(plain, "SELECT count(*) FROM \"%s\".message", schema), "==", PROCESSES,
           "it is one store");
    cmp_ok(number(plain, "SELECT count(*) FROM \"%s\".meta", schema), "==", 1, "made once");
    expect_done(try_destroy(schema), "removed");
  }
  cmp_ok(at_once(schema, make_or_remove), "==", PROCESSES,
         "ten make and remove one store: the only failure is DK_BUSY");
  expect_done(try_open(schema, CREATE), "afterwards it is made");
  expect_done(try_destroy(schema), "and removed");
}

int
main(void)
{
  plan(NO_PLAN);
  begin_stores();
  test_missing();
  test_made();
  test_names();
  test_others();
  test_versions();
  test_guests();
  test_in_use();
  test_durability_is_said();
  if (super) {
    test_schema_of_an_administrator();
    test_reader();
    test_worker();
    test_settings_of_the_role();
  } else {
    skip(1, "what needs roles needs a superuser: DURAKIT_PG_SUPER is not set");
  }
  test_at_once();
  end_stores();
  return done_testing();
}
