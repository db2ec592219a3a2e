/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that wait on a server for what another session holds: which time they use then
 * (TIME-1, TIME-6), how long they wait, and what blocks them for good.  Nothing is judged by how
 * long it took: the other session lets go when the server shows that one waits for it, or when a
 * lease has ended by the server's clock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-handle.h"

static const char schema[] = "waits";

/* A handle that does not wait for long. */
static void
open_impatient(struct handle_under_test *h, const char *conninfo)
{
  struct dk_host_options options = {.struct_size = sizeof options};
  struct dk_setting settings[] = {{"conninfo", text(conninfo)}, {"schema", text(schema)},
                                  {"lock_timeout", text("300ms")},
                                  {"answer_timeout", text("20s")}};

  open_with(h, library_under_test(), 0, &options, settings, 4);
}

/* ---- operations in a thread of their own ----------------------------------------------------- */

struct waiting {
  struct handle_under_test h;
  pthread_t thread;
  dk_status (*run)(struct waiting *w);
  struct dk_bytes token;  /* of a commit */
  uint64_t schedules, cancels; /* activities of the commit; 0: none */
  int64_t wait_until;     /* of a fetch */
  struct dk_canceller *canceller; /* NULL: none */
  char found[32];         /* the instance that a fetch has brought */
  dk_status status;
};

static dk_status
run_commit(struct waiting *w)
{
  struct dk_activity cancelled = {1, w->cancels};
  struct dk_item item = {.struct_size = sizeof item, .execution_id = 1,
                         .activity_id = w->schedules, .payload = text("do")};
  const struct dk_item *list[] = {&item};
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .cancelled_activities = &cancelled,
                                  .n_cancelled_activities = w->cancels ? 1 : 0,
                                  .worker_items = list, .n_worker_items = w->schedules ? 1 : 0};
  struct dk_commit_outcome outcome;

  return dk_store_ack_orchestration_item(w->h.store, w->h.caller, w->token, &result, &outcome);
}

static dk_status
run_enqueue_work(struct waiting *w)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text("order"), .execution_id = 1,
                         .activity_id = w->schedules, .delay_ms = A_DAY, .payload = text("do")};

  return dk_store_enqueue_for_worker(w->h.store, w->h.caller, &item);
}

static dk_status
run_fetch_turn(struct waiting *w)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE,
                                  .wait_until = w->wait_until};
  struct dk_turn *turn;
  dk_status status = dk_store_fetch_orchestration_item(w->h.store, w->h.caller, &request, &turn);

  if (status == DK_OK)
    snprintf(w->found, sizeof w->found, "%.*s", (int)turn->head.instance.len,
             turn->head.instance.ptr);
  return status;
}

static dk_status
run_fetch_work(struct waiting *w)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = 1, .lock_ms = LEASE,
                                  .owner = text("worker"), .tag_rule = DK_TAG_ANY,
                                  .wait_until = w->wait_until};
  struct dk_works *works;
  dk_status status = dk_store_fetch_work_item(w->h.store, w->h.caller, &request, &works);

  if (status == DK_OK)
    snprintf(w->found, sizeof w->found, "%.*s", (int)works->items[0].item.instance.len,
             works->items[0].item.instance.ptr);
  return status;
}

static void *
run_it(void *argument)
{
  struct waiting *w = argument;

  w->status = w->run(w);
  return NULL;
}

static void
begin_waiting(struct waiting *w, const struct handle_under_test *h)
{
  w->h = with_caller(h);
  if (w->canceller)
    dk_caller_set_canceller(w->h.caller, w->canceller);
  if (pthread_create(&w->thread, NULL, run_it, w) != 0)
    BAIL_OUT("no thread");
}

static dk_status
end_waiting(struct waiting *w)
{
  pthread_join(w->thread, NULL);
  dk_caller_free(w->h.caller);
  return w->status;
}

/* ---- the other session ----------------------------------------------------------------------- */

static PGconn *
connect_into_schema(void)
{
  PGconn *pg = connect_to(getenv("DURAKIT_PG"));

  sql(pg, "SET search_path = %s", schema);
  return pg;
}

static bool
is_so(PGconn *pg, const char *condition)
{
  char *value = sql_value(pg, "SELECT %s", condition);
  bool so = strcmp(value, "t") == 0;

  free(value);
  return so;
}

/* Until a session waits for what this one holds. */
static bool
somebody_waits_for(PGconn *pg)
{
  for (int i = 0; i < 3000; i++) {
    if (is_so(pg, "EXISTS (SELECT FROM pg_catalog.pg_locks AS k WHERE NOT k.granted AND"
                  " pg_catalog.pg_backend_pid() = ANY (pg_catalog.pg_blocking_pids(k.pid)))"))
      return true;
    sql(pg, "SELECT pg_catalog.pg_sleep(0.01)");
  }
  return false;
}

static void
until_lease_is_over(PGconn *pg)
{
  while (!is_so(pg, "locked_until < extract(epoch FROM clock_timestamp()) * 1000"
                    " FROM instance WHERE instance = 'order'"))
    sql(pg, "SELECT pg_catalog.pg_sleep(0.05)");
}

/* ---- the time -------------------------------------------------------------------------------- */

enum { SHORT_LEASE = 1000 };

static struct dk_bytes
fetch_for_short(struct handle_under_test *h)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = SHORT_LEASE};
  struct dk_turn *turn;

  enqueue(h, "order");
  if (dk_store_fetch_orchestration_item(h->store, h->caller, &request, &turn) != DK_OK)
    BAIL_OUT("fetch: %s", dk_caller_failure(h->caller)->text);
  return turn->head.lock_token;
}

/* TIME-6: the lease ends while the commit waits for the worker that holds what it cancels, or for a
 * transaction that stores what it schedules, and is not decided yet. */
static void
test_lease_that_ends(struct handle_under_test *h, PGconn *pg)
{
  enqueue(h, "order");
  commit_first(h, fetch_turn(h), 1);
  struct waiting w = {.run = run_commit, .token = fetch_for_short(h), .cancels = 1};
  sql(pg, "BEGIN");
  sql(pg, "SELECT 1 FROM work WHERE activity = 1 FOR NO KEY UPDATE");
  begin_waiting(&w, h);
  ok(somebody_waits_for(pg), "a commit waits for an activity that it cancels");
  until_lease_is_over(pg);
  sql(pg, "ROLLBACK");
  cmp_ok(end_waiting(&w), "==", DK_LOCK_LOST, "its lease has ended meanwhile, and it is refused");
  ok(is_so(pg, "count(*) = 1 FROM work WHERE activity = 1"), "and has cancelled nothing");

  w = (struct waiting){.run = run_commit, .token = fetch_for_short(h), .schedules = 7};
  sql(pg, "BEGIN");
  sql(pg, "SELECT * FROM enqueue_work(NULL, 5000, 'order', 1, 7, 0, 0, NULL, '')");
  begin_waiting(&w, h);
  ok(somebody_waits_for(pg),
     "a commit waits for a session that stores an activity that it schedules");
  until_lease_is_over(pg);
  sql(pg, "ROLLBACK");
  cmp_ok(end_waiting(&w), "==", DK_LOCK_LOST, "its lease has ended meanwhile, and it is refused");
  ok(is_so(pg, "count(*) = 0 FROM work WHERE activity = 7"), "and has scheduled nothing");

  w = (struct waiting){.run = run_commit, .token = fetch_for_short(h), .schedules = 1};
  sql(pg, "BEGIN");
  sql(pg, "DELETE FROM work WHERE activity = 1");
  begin_waiting(&w, h);
  ok(somebody_waits_for(pg), "a commit waits for an ack of an activity that it schedules again");
  until_lease_is_over(pg);
  sql(pg, "COMMIT");
  cmp_ok(end_waiting(&w), "==", DK_LOCK_LOST, "its lease has ended meanwhile, and it is refused");
  ok(is_so(pg, "count(*) = 0 FROM work WHERE activity = 1"), "and has scheduled nothing");

  w = (struct waiting){.run = run_commit, .token = fetch_turn(h), .schedules = 8, .cancels = 8};
  begin_waiting(&w, h);
  cmp_ok(end_waiting(&w), "==", DK_OK, "CANCEL-3: what one commit schedules and cancels");
  ok(is_so(pg, "count(*) = 0 FROM work WHERE activity = 8"), "is not stored");
}

/* TIME-1. */
static void
test_delay(struct handle_under_test *h, PGconn *pg)
{
  struct waiting w = {.run = run_enqueue_work, .schedules = 9};

  sql(pg, "BEGIN");
  sql(pg, "INSERT INTO work(instance, execution, activity, ready_at, place, visible_at)"
          " VALUES ('order', 1, 9, 0, 0, 0)");
  begin_waiting(&w, h);
  ok(somebody_waits_for(pg), "an activity with a delay waits for the same one");
  sql(pg, "SELECT pg_catalog.pg_sleep(0.1)");
  char *now = sql_value(pg, "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
  sql(pg, "ROLLBACK");
  cmp_ok(end_waiting(&w), "==", DK_OK, "and is stored when that is not");
  char *late = sql_value(pg, "SELECT ready_at = visible_at AND visible_at >= %s + %d FROM work"
                         " WHERE activity = 9", now, A_DAY);
  is(late, "t", "and its delay has begun then");
  free(late);
  free(now);
  sql(pg, "DELETE FROM work");
}

/* ---- for how long ---------------------------------------------------------------------------- */

/* CALL-2: a row that becomes ready meanwhile is fetched although another row is held. */
static void
test_what_comes_meanwhile(struct handle_under_test *h, struct handle_under_test *impatient,
                          PGconn *pg)
{
  struct waiting w = {.run = run_fetch_turn};

  enqueue(h, "held");
  sql(pg, "BEGIN");
  sql(pg, "SELECT 1 FROM instance WHERE instance = 'held' FOR NO KEY UPDATE");
  begin_waiting(&w, h);
  ok(somebody_waits_for(pg), "a fetch waits for an instance that another session holds");
  enqueue(h, "free");
  cmp_ok(end_waiting(&w), "==", DK_OK, "one that comes meanwhile is brought");
  is(w.found, "free", "although the other is still held");
  w = (struct waiting){.run = run_fetch_turn, .wait_until = INT64_MAX};
  begin_waiting(&w, impatient);
  cmp_ok(end_waiting(&w), "==", DK_BUSY, "a fetch waits no longer than lock_timeout");
  sql(pg, "ROLLBACK");

  w = (struct waiting){.run = run_fetch_work};
  sql(pg, "SELECT * FROM enqueue_work(NULL, 5000, 'held', 1, 1, 0, 0, NULL, '')");
  sql(pg, "BEGIN");
  sql(pg, "SELECT 1 FROM work WHERE instance = 'held' FOR NO KEY UPDATE");
  begin_waiting(&w, h);
  ok(somebody_waits_for(pg), "a fetch waits for work that another session holds");
  PGconn *other = connect_into_schema();
  sql(other, "SELECT * FROM enqueue_work(NULL, 5000, 'free', 1, 1, 0, 0, NULL, '')");
  PQfinish(other);
  cmp_ok(end_waiting(&w), "==", DK_OK, "work that comes meanwhile is brought");
  is(w.found, "free", "although the other is still held");
  w = (struct waiting){.run = run_fetch_work, .wait_until = INT64_MAX};
  begin_waiting(&w, impatient);
  cmp_ok(end_waiting(&w), "==", DK_BUSY, "a fetch waits no longer than lock_timeout");
  sql(pg, "ROLLBACK");
  sql(pg, "DELETE FROM work");
}

static void
test_read(struct handle_under_test *impatient, PGconn *pg)
{
  struct dk_read_history request = {.struct_size = sizeof request, .instance = text("order")};
  struct dk_history *history;

  sql(pg, "BEGIN");
  sql(pg, "LOCK TABLE history");
  cmp_ok(dk_store_read_history(impatient->store, impatient->caller, &request, &history), "==",
         DK_BUSY, "a read waits no longer than lock_timeout");
  sql(pg, "ROLLBACK");
  cmp_ok(dk_store_read_history(impatient->store, impatient->caller, &request, &history), "==",
         DK_OK, "and can be repeated");
}

/* ---- cancelled ------------------------------------------------------------------------------- */

/* A long poll that is cancelled while the server is about to answer it, and then does. */
static dk_status
fetch_taken_back(struct handle_under_test *h, PGconn *pg, struct waiting *w, const char *table)
{
  w->canceller = dk_canceller_new(NULL);
  w->wait_until = INT64_MAX;
  if (!w->canceller)
    BAIL_OUT("no canceller");
  sql(pg, "BEGIN");
  sql(pg, "LOCK TABLE %s", table);
  begin_waiting(w, h);
  if (!somebody_waits_for(pg))
    BAIL_OUT("no fetch waits for %s", table);
  dk_cancel(w->canceller);
  sql(pg, "ROLLBACK");
  dk_status status = end_waiting(w);
  dk_canceller_free(w->canceller);
  return status;
}

/* CALL-1: what the server has handed out by then is brought, or no worker has it.  A machine
 * that is slow enough lets the moment pass that the fetch waits, and then it is not known. */
static void
test_taken_back(struct handle_under_test *h, PGconn *pg)
{
  static const struct {
    dk_status (*run)(struct waiting *w);
    const char *table, *name, *leased;
  } rows[] = {
    {run_fetch_turn, "instance", "a turn", "count(*) = 0 FROM instance WHERE locked_until <> 0"},
    {run_fetch_work, "work", "an activity", "count(*) = 0 FROM work WHERE epoch <> 0"},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct waiting w = {.run = rows[i].run};
    dk_status status = DK_OUTCOME_UNKNOWN;
    sql(pg, "DELETE FROM work");
    sql(pg, "DELETE FROM message");
    sql(pg, "DELETE FROM instance");
    for (int tries = 0; status == DK_OUTCOME_UNKNOWN && tries < 20; tries++) {
      char name[20];
      snprintf(name, sizeof name, "late-%d", tries);
      enqueue(h, name);
      sql(pg, "SELECT * FROM enqueue_work(NULL, 5000, '%s', 1, 1, 0, 0, NULL, '')", name);
      status = fetch_taken_back(h, pg, &w, rows[i].table);
    }
    cmp_ok(status, "==", DK_OK, "%s that is found for a cancelled fetch is brought", rows[i].name);
    ok(strncmp(w.found, "late-", 5) == 0, "whole: \"%s\"", w.found);
    ok(!is_so(pg, rows[i].leased), "and is leased");
    sql(pg, "DELETE FROM work");
    sql(pg, "DELETE FROM message");
    sql(pg, "DELETE FROM instance");
    cmp_ok(fetch_taken_back(h, pg, &w, rows[i].table), "==", DK_CALL_CANCELLED,
           "where nothing is found, the fetch is cancelled");
  }
}

/* ---- what the session or the store has ------------------------------------------------------- */

/* A commit that did not wait for its standby is known by a warning. */
static void
test_session(PGconn *pg)
{
  sql(pg, "BEGIN");
  sql(pg, "SET LOCAL client_min_messages = error");
  sql(pg, "SELECT begin_write(100)");
  ok(is_so(pg, "current_setting('client_min_messages') = 'warning'"),
     "a write hears warnings, whatever the role has set");
  sql(pg, "SET LOCAL client_min_messages = notice");
  sql(pg, "SELECT begin_write(100)");
  ok(is_so(pg, "current_setting('client_min_messages') = 'notice'"), "and no less than it has");
  sql(pg, "ROLLBACK");
  ok(is_so(pg, "count(*) > 5 AND bool_and('jit=off' = ANY (p.proconfig)) FROM pg_catalog.pg_proc p"
               " WHERE p.pronamespace = 'waits'::regnamespace AND p.proconfig IS NOT NULL"),
     "no operation is compiled, however costly the server thinks it");
}

/* TOKEN-1: as a copy that was made table by table has it. */
static void
test_number(struct handle_under_test *h, PGconn *pg)
{
  struct waiting turn = {.run = run_fetch_turn}, work = {.run = run_fetch_work};

  enqueue(h, "numbered");
  sql(pg, "SELECT * FROM enqueue_work(NULL, 5000, 'numbered', 1, 1, 0, 0, NULL, '')");
  char *last = sql_value(pg, "SELECT nextval('number')");
  sql(pg, "ALTER SEQUENCE number RESTART");
  turn.h = work.h = *h;
  cmp_ok(run_fetch_turn(&turn), "==", DK_CORRUPT, "a lease without a number of its own is refused");
  ok(strstr(dk_caller_failure(h->caller)->text, "fallen behind") != NULL, "with words");
  cmp_ok(run_fetch_work(&work), "==", DK_CORRUPT, "and so is that of work");
  ok(is_so(pg, "count(*) = 0 FROM work WHERE epoch <> 0"), "which is not claimed");
  sql(pg, "SELECT setval('number', %s)", last);
  cmp_ok(run_fetch_work(&work), "==", DK_OK, "it is claimed when the sequence is restored");
  free(last);
}

int
main(void)
{
  const char *conninfo = getenv("DURAKIT_PG");
  struct handle_under_test h, impatient;

  begin();
  destroy_store(conninfo, schema);
  open_store(&h, conninfo, schema);
  open_impatient(&impatient, conninfo);
  PGconn *pg = connect_into_schema();
  test_lease_that_ends(&h, pg);
  test_delay(&h, pg);
  test_what_comes_meanwhile(&h, &impatient, pg);
  test_read(&impatient, pg);
  test_taken_back(&h, pg);
  test_session(pg);
  test_number(&h, pg);
  PQfinish(pg);
  close_store(&impatient);
  close_store(&h);
  destroy_store(conninfo, schema);
  end();
  return done_testing();
}
