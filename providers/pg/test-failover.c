/* SPDX-License-Identifier: Apache-2.0 */
/* A server that ends sessions, crashes, comes back, or accepts no writes for a while: what an open
 * handle answers meanwhile, and that it continues by itself.  Crashes are for a server that
 * tests/with-postgres has made. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-handle.h"

enum { CROWD = 4 };
static const char schema[] = "failover";
static const char *conninfo, *superuser;

/* ---- operations ------------------------------------------------------------------------------ */

static dk_status
try_to_enqueue(struct handle_under_test *h, const char *instance, const char *id)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text(instance), .id = text(id),
                         .payload = text("hello")};

  return dk_store_enqueue_for_orchestrator(h->store, h->caller, &item);
}

static void
expect_words(struct handle_under_test *h, dk_status found, dk_status expected, const char *words,
             const char *name)
{
  const char *said = dk_caller_failure(h->caller)->text;

  if (!ok(found == expected && strstr(said, words), "%s: %d, \"%s\"", name, (int)expected, words))
    diag("found %d: %s", (int)found, said);
}

static void
test_all_work(struct handle_under_test *h, const char *when)
{
  struct dk_read_history request = {.struct_size = sizeof request, .instance = text("order")};
  struct dk_history *history;

  given_activities(h, "order", 1);
  ack_work(h, fetch_work(h), NULL);
  commit_first(h, fetch_turn(h), 0);
  ok(dk_store_read_history(h->store, h->caller, &request, &history) == DK_OK,
     "%s every operation works at once", when);
}

/* ---- a crowd, so that there are several connections ------------------------------------------ */

struct member {
  struct handle_under_test h;
  pthread_t thread;
  char id[20];
  dk_status status;
};

static void *
join_in(void *argument)
{
  struct member *m = argument;

  m->status = try_to_enqueue(&m->h, "crowded", m->id);
  return NULL;
}

static void
begin_crowd(struct member crowd[CROWD], const struct handle_under_test *h, const char *name)
{
  for (int i = 0; i < CROWD; i++) {
    crowd[i].h = with_caller(h);
    snprintf(crowd[i].id, sizeof crowd[i].id, "%.10s-%d", name, i);
    if (pthread_create(&crowd[i].thread, NULL, join_in, &crowd[i]) != 0)
      BAIL_OUT("no thread");
  }
}

/* How many of them were answered so. */
static int
end_crowd(struct member crowd[CROWD], dk_status status)
{
  int n = 0;

  for (int i = 0; i < CROWD; i++) {
    pthread_join(crowd[i].thread, NULL);
    n += crowd[i].status == status;
    if (crowd[i].status != status)
      diag("%d, not %d: %s", (int)crowd[i].status, (int)status,
           dk_caller_failure(crowd[i].h.caller)->text);
    dk_caller_free(crowd[i].h.caller);
  }
  return n;
}

/* Holds the row that all of them want until they wait for it: each has a connection then. */
static PGconn *
hold_the_row(void)
{
  PGconn *pg = connect_to(conninfo);

  sql(pg, "BEGIN");
  sql(pg, "SELECT FROM %s.instance WHERE instance = 'crowded' FOR UPDATE", schema);
  return pg;
}

static void
given_connections(struct handle_under_test *h, const char *name)
{
  static const char all_wait[] =
    "count(*) >= 4 FROM pg_locks WHERE NOT granted AND locktype IN ('tuple', 'transactionid')";
  struct member crowd[CROWD];
  PGconn *holder = hold_the_row();

  begin_crowd(crowd, h, name);
  until(holder, all_wait);
  sql(holder, "ROLLBACK");
  PQfinish(holder);
  cmp_ok(end_crowd(crowd, DK_OK), "==", CROWD, "%s: %d connections are made and used", name, CROWD);
}

static void
test_crowd_is_served(struct handle_under_test *h, const char *name)
{
  struct member crowd[CROWD];

  begin_crowd(crowd, h, name);
  cmp_ok(end_crowd(crowd, DK_OK), "==", CROWD, "%s: all callers are served at once", name);
}

/* ---- sessions that end ----------------------------------------------------------------------- */

static void
end_sessions(PGconn *super)
{
  sql(super, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
             " AND backend_type = 'client backend'");
  until(super, "count(*) = 0 FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
               " AND backend_type = 'client backend'");
}

static void
test_ended(struct handle_under_test *h, PGconn *super)
{
  given_connections(h, "ended");
  end_sessions(super);
  test_crowd_is_served(h, "after all sessions were ended");
  end_sessions(super);
  test_all_work(h, "after an administrator has ended all sessions");
}

/* As on a primary that has become a standby: there sessions are also read-only. */
static void
test_read_only(struct handle_under_test *h, PGconn *super)
{
  given_connections(h, "read-only");
  sql(super, "ALTER DATABASE \"%s\" SET default_transaction_read_only = on", PQdb(super));
  end_sessions(super);
  for (int i = 0; i < 2; i++)
    expect_words(h, try_to_enqueue(h, "refused", "1"), DK_UNAVAILABLE,
                 "default_transaction_read_only is on", "a server that accepts no writes");
  sql(super, "ALTER DATABASE \"%s\" RESET default_transaction_read_only", PQdb(super));
  test_crowd_is_served(h, "when it accepts writes again");
  cmp_ok(try_to_enqueue(h, "refused", "1"), "==", DK_OK, "what was refused had not been done");
}

/* ---- a server that crashes ------------------------------------------------------------------- */

static void
run(const char *variable)
{
  const char *command = getenv(variable);

  if (!command || system(command) != 0)
    BAIL_OUT("%s: %s", variable, command ? command : "not set");
}

static void
test_restart(struct handle_under_test *h)
{
  given_connections(h, "restarted");
  run("DURAKIT_PG_CRASH");
  expect_words(h, try_to_enqueue(h, "down", "1"), DK_UNAVAILABLE, "cannot connect to",
               "while it is down");
  run("DURAKIT_PG_START");
  test_crowd_is_served(h, "after a restart without a notice");
  run("DURAKIT_PG_CRASH");
  run("DURAKIT_PG_START");
  test_all_work(h, "after a restart");
}

/* It is unknown whether a request that waits in the server during the crash was done. */
static void
test_crash_under_requests(struct handle_under_test *h)
{
  struct member crowd[CROWD];
  PGconn *holder = hold_the_row();

  begin_crowd(crowd, h, "cut");
  until(holder, "count(*) >= 4 FROM pg_locks WHERE NOT granted"
                " AND locktype IN ('tuple', 'transactionid')");
  run("DURAKIT_PG_CRASH");
  cmp_ok(end_crowd(crowd, DK_OUTCOME_UNKNOWN), "==", CROWD, "a crash under requests that write");
  PQfinish(holder);
  run("DURAKIT_PG_START");
  test_crowd_is_served(h, "cut"); /* with the same ids: it had not been done */
  test_all_work(h, "after the crash");
}

/* ---- a server that does not answer ----------------------------------------------------------- */

static void
open_hurried(struct handle_under_test *h, const char *lock_timeout, const char *answer_timeout)
{
  const struct dk_host_options options = {.struct_size = sizeof options, .log = keep_line};
  const struct dk_setting settings[] = {{"conninfo", text(conninfo)}, {"schema", text(schema)},
                                        {"lock_timeout", text(lock_timeout)},
                                        {"answer_timeout", text(answer_timeout)}};

  open_with(h, library_under_test(), 0, &options, settings, 4);
}

/* The request; lease_ms if it brings a lease. */
enum deed { FETCH_TURN, FETCH_WORK, RENEW, ENQUEUE, DELETE };

static dk_status
do_deed(struct handle_under_test *h, enum deed deed, int64_t lock_ms, struct dk_bytes token)
{
  const struct dk_bytes absent = text("absent");
  const struct dk_fetch_turn turns = {.struct_size = sizeof turns, .lock_ms = lock_ms};
  const struct dk_fetch_work works = {
    .struct_size = sizeof works, .lock_ms = lock_ms, .max_items = 1};
  const struct dk_delete_instances deletion = {
    .struct_size = sizeof deletion, .instances = &absent, .n_instances = 1};
  struct dk_removed removed;
  struct dk_turn *turn;
  struct dk_works *found;

  switch (deed) {
  case FETCH_TURN: return dk_store_fetch_orchestration_item(h->store, h->caller, &turns, &turn);
  case FETCH_WORK: return dk_store_fetch_work_item(h->store, h->caller, &works, &found);
  case RENEW: return dk_store_renew_work_item_lock(h->store, h->caller, token, lock_ms);
  case DELETE: return dk_store_delete_instances(h->store, h->caller, &deletion, &removed);
  default: return try_to_enqueue(h, "silent", "silent");
  }
}

/* A call that brings a lease waits no longer than that lasts, beside a wait for a lock; a deletion
 * longer than others. */
static void
test_silence(void)
{
  static const struct {
    const char *name;
    enum deed deed;
    int64_t lock_ms;
    const char *words;
  } rows[] = {
    {"a fetch of a turn for a short lease", FETCH_TURN, 100, "within 1010ms"},
    {"one for a longer lease", FETCH_TURN, 1200, "within 1200ms"},
    {"one for a long lease", FETCH_TURN, A_DAY, "within 1500ms"},
    {"a fetch of work", FETCH_WORK, 1200, "within 1200ms"},
    {"a renewal", RENEW, 1200, "within 1200ms"},
    {"what brings no lease", ENQUEUE, 0, "within 1500ms"},
    {"a deletion", DELETE, 0, "within 4500ms"},
  };
  struct dk_read_history request = {.struct_size = sizeof request, .instance = text("leased")};
  struct dk_history *history;
  struct handle_under_test h;
  char token[300];

  open_hurried(&h, "10ms", "1500ms");
  given_activities(&h, "leased", 1);
  struct dk_bytes fetched = fetch_work(&h);
  snprintf(token, sizeof token, "%.*s", (int)fetched.len, fetched.ptr);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (dk_store_read_history(h.store, h.caller, &request, &history) != DK_OK)
      BAIL_OUT("there is no connection: %s", dk_caller_failure(h.caller)->text);
    run("DURAKIT_PG_PAUSE");
    dk_status status = do_deed(&h, rows[i].deed, rows[i].lock_ms, text(token));
    run("DURAKIT_PG_RESUME");
    expect_words(&h, status, DK_OUTCOME_UNKNOWN, rows[i].words, rows[i].name);
  }
  close_store(&h);
}

/* The setting is in force once a commit waits; one that does not may have been too soon. */
static void
until_commits_wait(PGconn *super)
{
  PGconn *pg = connect_to(conninfo);
  bool waits = false;

  sql(super, "ALTER SYSTEM SET synchronous_standby_names = 'absent'");
  sql(super, "SELECT pg_reload_conf()");
  while (!waits) {
    bool is_done = false;
    if (!PQsendQuery(pg, "CREATE TEMP TABLE t(); DROP TABLE t"))
      BAIL_OUT("%s", PQerrorMessage(pg));
    while (!waits && !is_done) {
      char *value = sql_value(super, "SELECT count(*) FROM pg_stat_activity"
                              " WHERE wait_event = 'SyncRep'");
      waits = strcmp(value, "0") != 0;
      free(value);
      is_done = PQconsumeInput(pg) && !PQisBusy(pg);
    }
    for (PGresult *r; is_done && (r = PQgetResult(pg)) != NULL;)
      PQclear(r);
  }
  PQfinish(pg); /* the server's process waits on */
}

/* A commit that waits for its standby, and a call that waits behind it: both report that. */
static void
test_standby_that_is_gone(PGconn *super)
{
  static const char words[] =
    "waits for its synchronous standby (synchronous_standby_names = 'absent')";
  struct member first;
  struct handle_under_test h;

  open_hurried(&h, "300ms", "5s");
  until_commits_wait(super);
  first = (struct member){.h = with_caller(&h), .id = "unconfirmed"};
  if (pthread_create(&first.thread, NULL, join_in, &first) != 0)
    BAIL_OUT("no thread");
  until(super, "count(*) > 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  expect_words(&h, try_to_enqueue(&h, "crowded", "behind"), DK_BUSY, words,
               "a call that waits for the lock of a commit that waits");
  ok(!strstr(dk_caller_failure(h.caller)->text, "increase lock_timeout"), "and nothing else");
  pthread_join(first.thread, NULL);
  expect_words(&first.h, first.status, DK_OUTCOME_UNKNOWN, words, "the commit itself");
  expect_logged(words, "it was logged meanwhile");
  sql(super, "ALTER SYSTEM RESET synchronous_standby_names");
  sql(super, "SELECT pg_reload_conf()");
  until(super, "count(*) = 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  expect_words(&h, try_to_enqueue(&h, "crowded", "unconfirmed"), DK_DUPLICATE, "unconfirmed",
               "it had been done");
  dk_caller_free(first.h.caller);
  close_store(&h);
}

int
main(void)
{
  struct handle_under_test h;

  conninfo = getenv("DURAKIT_PG");
  superuser = getenv("DURAKIT_PG_SUPER");
  if (!superuser || !getenv("DURAKIT_PG_CRASH") || !getenv("DURAKIT_PG_START"))
    plan(SKIP_ALL, "the server of DURAKIT_PG is not one of tests/with-postgres");
  begin();
  open_store(&h, conninfo, schema);
  enqueue(&h, "crowded");
  commit_first(&h, fetch_turn(&h), 0);
  PGconn *super = connect_to(superuser);
  test_ended(&h, super);
  test_read_only(&h, super);
  test_standby_that_is_gone(super);
  PQfinish(super);
  test_silence();
  test_restart(&h);
  test_crash_under_requests(&h);
  close_store(&h);
  destroy_store(conninfo, schema);
  end();
  return done_testing();
}
