/* SPDX-License-Identifier: Apache-2.0 */
/* Each operation against a row that a session beside holds in an open transaction: it answers
 * DK_BUSY after lock_timeout, with a text that names what to do, has changed nothing, and succeeds
 * when the row is free.  If the row becomes free while it waits, it uses the time of that moment
 * (TIME-1, TIME-6).  The same holds for other temporary refusals of the server, while it writes or
 * as it commits.  Nothing is judged by how long it took. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-handle.h"

static const char schema[] = "busy";

/* A turn of "mine" and activity 1 of it are out, activity 2 is locked by another; "other" has a
 * row; nothing is ready. */
struct held {
  struct handle_under_test h;
  struct dk_bytes turn, work;
  struct handle_under_test keeper, worker; /* whose callers keep the tokens */
};

typedef dk_status run_fn(struct held *held);

/* ---- the operations -------------------------------------------------------------------------- */

static dk_status
run_enqueue(struct held *held)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text("other"),
                         .payload = text("hello")};

  return dk_store_enqueue_for_orchestrator(held->h.store, held->h.caller, &item);
}

static dk_status
run_fetch_turn(struct held *held)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE};
  struct dk_turn *turn;

  return dk_store_fetch_orchestration_item(held->h.store, held->h.caller, &request, &turn);
}

static dk_status
commit(struct held *held, struct dk_turn_result *result)
{
  struct dk_commit_outcome outcome;

  result->struct_size = sizeof *result;
  result->execution_id = 1;
  return dk_store_ack_orchestration_item(held->h.store, held->h.caller, held->turn, result,
                                         &outcome);
}

static dk_status
run_commit(struct held *held)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text("mine"),
                         .payload = text("hello")};
  const struct dk_item *list[] = {&item};

  return commit(held, &(struct dk_turn_result){.orchestrator_items = list,
                                               .n_orchestrator_items = 1});
}

static dk_status
run_commit_to_other(struct held *held)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text("other"),
                         .payload = text("hello")};
  const struct dk_item *list[] = {&item};

  return commit(held, &(struct dk_turn_result){.orchestrator_items = list,
                                               .n_orchestrator_items = 1});
}

static dk_status
run_commit_cancelling(struct held *held)
{
  struct dk_activity cancelled = {1, 2};

  return commit(held, &(struct dk_turn_result){.cancelled_activities = &cancelled,
                                               .n_cancelled_activities = 1});
}

static dk_status
run_commit_scheduling(struct held *held)
{
  struct dk_item item = {.struct_size = sizeof item, .execution_id = 1, .activity_id = 9,
                         .payload = text("do")};
  const struct dk_item *list[] = {&item};

  return commit(held, &(struct dk_turn_result){.worker_items = list, .n_worker_items = 1});
}

static dk_status
run_commit_cancelling_and_scheduling(struct held *held)
{
  struct dk_activity cancelled = {1, 2};
  struct dk_item item = {.struct_size = sizeof item, .execution_id = 1, .activity_id = 9,
                         .payload = text("do")};
  const struct dk_item *list[] = {&item};

  return commit(held, &(struct dk_turn_result){.cancelled_activities = &cancelled,
                                               .n_cancelled_activities = 1, .worker_items = list,
                                               .n_worker_items = 1});
}

static dk_status
run_renew_turn(struct held *held)
{
  return dk_store_renew_orchestration_item_lock(held->h.store, held->h.caller, held->turn, LEASE);
}

static dk_status
run_abandon_turn(struct held *held)
{
  return dk_store_abandon_orchestration_item(held->h.store, held->h.caller, held->turn, 0, 0);
}

static dk_status
run_fetch_work(struct held *held)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = 1, .lock_ms = LEASE,
                                  .owner = text("worker"), .tag_rule = DK_TAG_ANY};
  struct dk_works *works;

  return dk_store_fetch_work_item(held->h.store, held->h.caller, &request, &works);
}

static dk_status
run_ack_work(struct held *held)
{
  struct dk_item done = {.struct_size = sizeof done, .instance = text("other"),
                         .payload = text("done")};
  struct dk_work_result result = {.struct_size = sizeof result, .completion = &done};

  return dk_store_ack_work_item(held->h.store, held->h.caller, held->work, &result);
}

static dk_status
run_renew_work(struct held *held)
{
  return dk_store_renew_work_item_lock(held->h.store, held->h.caller, held->work, LEASE);
}

static dk_status
run_abandon_work(struct held *held)
{
  return dk_store_abandon_work_item(held->h.store, held->h.caller, held->work, 0, 0);
}

static dk_status
run_enqueue_work(struct held *held)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text("mine"), .execution_id = 1,
                         .activity_id = 7, .payload = text("do")};

  return dk_store_enqueue_for_worker(held->h.store, held->h.caller, &item);
}

static dk_status
run_read_history(struct held *held)
{
  struct dk_read_history request = {.struct_size = sizeof request, .instance = text("mine")};
  struct dk_history *history;

  return dk_store_read_history(held->h.store, held->h.caller, &request, &history);
}

#define LOCK(table, which) "SELECT 1 FROM busy." table " WHERE " which " FOR NO KEY UPDATE"
#define LOCK_MINE LOCK("instance", "instance = 'mine'")
#define LOCK_OTHER LOCK("instance", "instance = 'other'")
#define LOCK_WORK(n) LOCK("work", "activity = " #n)
#define MAKE_READY "UPDATE busy.instance SET ready_at = 1, locked_until = 0 WHERE instance = 'mine'"
#define MAKE_WORK_READY "UPDATE busy.work SET ready_at = 1, epoch = 0 WHERE activity = 2"
#define ADD_WORK \
  "INSERT INTO busy.work(instance, execution, activity, ready_at, place, visible_at)" \
  " VALUES ('mine', 1, 7, 9000000000000, 1, 0)"

#define STORE_WORK "SELECT * FROM busy.enqueue_work(NULL, 5000, 'mine', 1, 9, 0, 0, NULL, NULL)"
#define TIME_OF_MESSAGE "SELECT max(visible_at) FROM busy.message WHERE instance = 'other'"
#define TIME_OF_TURN "SELECT locked_until - 3600000 FROM busy.instance WHERE instance = 'mine'"
#define TIME_OF_LEASE(n) "SELECT ready_at - 3600000 FROM busy.work WHERE activity = " #n
#define TIME_OF_COMMIT "SELECT max(visible_at) FROM busy.message WHERE instance = 'mine'"

/* `first` is committed; `holds` runs in a transaction that stays open.  `time`: the operation's
 * now, by what it has stored; NULL: it stores none. */
static const struct busy_case {
  const char *name, *first, *holds;
  run_fn *run;
  const char *time;
} cases[] = {
  {"enqueue, of the instance's row", NULL, LOCK_OTHER, run_enqueue, TIME_OF_MESSAGE},
  {"fetch of a turn, of the only one that is ready", MAKE_READY, LOCK_MINE, run_fetch_turn,
   TIME_OF_TURN},
  {"commit, of the instance's row", NULL, LOCK_MINE, run_commit, TIME_OF_COMMIT},
  {"commit, of the row of one that gets a message", NULL, LOCK_OTHER, run_commit_to_other,
   TIME_OF_MESSAGE},
  {"commit, of an activity that another stores", NULL, STORE_WORK, run_commit_scheduling,
   "SELECT ready_at FROM busy.work WHERE activity = 9"},
  {"commit, of an activity that it cancels", NULL, LOCK_WORK(2), run_commit_cancelling,
   NULL},
  {"commit that schedules too, of an activity that it cancels", NULL, LOCK_WORK(2),
   run_commit_cancelling_and_scheduling, "SELECT ready_at FROM busy.work WHERE activity = 9"},
  {"renew of a turn", NULL, LOCK_MINE, run_renew_turn, TIME_OF_TURN},
  {"abandon of a turn", NULL, LOCK_MINE, run_abandon_turn,
   "SELECT ready_at FROM busy.instance WHERE instance = 'mine'"},
  {"fetch of work, of the only item that is ready", MAKE_WORK_READY, LOCK_WORK(2), run_fetch_work,
   TIME_OF_LEASE(2)},
  {"ack of work, of the item", NULL, LOCK_WORK(1), run_ack_work, TIME_OF_MESSAGE},
  {"ack of work, of the instance that it completes for", NULL, LOCK_OTHER, run_ack_work,
   TIME_OF_MESSAGE},
  {"renew of work", NULL, LOCK_WORK(1), run_renew_work, TIME_OF_LEASE(1)},
  {"abandon of work", NULL, LOCK_WORK(1), run_abandon_work,
   "SELECT ready_at FROM busy.work WHERE activity = 1"},
  {"enqueue of work, of one that is being stored", NULL, ADD_WORK, run_enqueue_work, NULL},
  {"read of a history, of the table", NULL, "LOCK TABLE busy.history", run_read_history,
   NULL},
};

/* ---- each ------------------------------------------------------------------------------------ */

static void
open_waiting_for(struct handle_under_test *h, const char *lock_timeout)
{
  struct dk_host_options options = {.struct_size = sizeof options};
  struct dk_setting settings[] = {{"conninfo", text(getenv("DURAKIT_PG"))},
                                  {"schema", text(schema)}, {"lock_timeout", text(lock_timeout)},
                                  {"answer_timeout", text("10m")}};

  open_with(h, library_under_test(), DK_OPEN_CREATE, &options, settings, 4);
}

static void
prepare(struct held *held, const struct busy_case *c, PGconn *pg, const char *lock_timeout)
{
  open_waiting_for(&held->h, lock_timeout);
  held->keeper = with_caller(&held->h);
  held->worker = with_caller(&held->h);
  struct handle_under_test taker = with_caller(&held->h);
  enqueue(&taker, "other");
  commit_first(&taker, fetch_turn(&taker), 0);
  given_activities(&taker, "mine", 2);
  held->turn = fetch_turn(&held->keeper);
  held->work = fetch_work(&held->worker);
  fetch_work(&taker);
  dk_caller_free(taker.caller);
  if (c->first)
    sql(pg, "%s", c->first);
}

static void
remove_all(struct held *held)
{
  dk_caller_free(held->worker.caller);
  dk_caller_free(held->keeper.caller);
  close_store(&held->h);
  destroy_store(getenv("DURAKIT_PG"), schema);
}

/* All that is stored, as one value. */
static char *
store_as_text(PGconn *pg)
{
  return sql_value(pg, "SELECT md5(string_agg(t, '|' ORDER BY t)) FROM ("
                   "SELECT x::text AS t FROM busy.instance x UNION ALL "
                   "SELECT x::text FROM busy.message x UNION ALL "
                   "SELECT x::text FROM busy.work x UNION ALL "
                   "SELECT x::text FROM busy.history x UNION ALL "
                   "SELECT x::text FROM busy.execution x) y");
}

static void
test_busy(const struct busy_case *c, PGconn *pg)
{
  struct held held;

  prepare(&held, c, pg, "100ms");
  char *before = store_as_text(pg);
  sql(pg, "BEGIN");
  sql(pg, "%s", c->holds);
  dk_status status = c->run(&held);
  cmp_ok(status, "==", DK_BUSY, "%s: DK_BUSY", c->name);
  const char *words = status >= DK_BUSY ? dk_caller_failure(held.h.caller)->text : "no words";
  if (!ok(strstr(words, "lock_timeout"), "and what to do"))
    diag("%s; expected lock_timeout in it", words);
  sql(pg, "ROLLBACK");
  char *after = store_as_text(pg);
  is(after, before, "nothing is changed");
  cmp_ok(c->run(&held), "==", DK_OK, "and it is done when the row is released");
  free(before);
  free(after);
  remove_all(&held);
}

/* ---- the row is released while it waits ------------------------------------------------------ */

struct waiting {
  struct held held;
  run_fn *run;
  dk_status status;
};

static void *
run_waiting(void *argument)
{
  struct waiting *w = argument;

  w->status = w->run(&w->held);
  return NULL;
}

static int64_t
number_of(PGconn *pg, const char *query)
{
  char *value = sql_value(pg, "%s", query);
  int64_t number = strtoll(value, NULL, 10);

  free(value);
  return number;
}

/* The server's clock has advanced when the row is released; what is stored has a later time. */
static void
test_time(const struct busy_case *c, PGconn *pg)
{
  struct waiting w = {.run = c->run};
  pthread_t thread;

  prepare(&w.held, c, pg, "5m");
  sql(pg, "BEGIN");
  sql(pg, "%s", c->holds);
  if (pthread_create(&thread, NULL, run_waiting, &w) != 0)
    BAIL_OUT("no thread");
  ok(somebody_waits(pg), "%s: it waits", c->name);
  free(sql_value(pg, "SELECT pg_catalog.pg_sleep(0.02)"));
  int64_t then = number_of(pg, "SELECT busy.clock(NULL)");
  sql(pg, "ROLLBACK");
  pthread_join(thread, NULL);
  cmp_ok(w.status, "==", DK_OK, "is done when the row is released");
  int64_t now = number_of(pg, c->time);
  ok(now >= then, "and with the time of that moment: %lld, not before %lld", (long long)now,
     (long long)then);
  remove_all(&w.held);
}

/* ---- what the server refuses ----------------------------------------------------------------- */

/* The first row that is stored there is refused in this way; `commits`: by the commit, when
 * the function has given all its rows. */
static void
refuse_with(PGconn *pg, const char *table, const char *sqlstate, bool commits)
{
  sql(pg, "CREATE FUNCTION busy.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
          " RAISE EXCEPTION 'so it is' USING ERRCODE = TG_ARGV[0]; END $$");
  sql(pg, "CREATE %s TRIGGER refuse AFTER INSERT ON busy.%s %s FOR EACH ROW"
          " EXECUTE FUNCTION busy.refuse('%s')", commits ? "CONSTRAINT" : "", table,
      commits ? "DEFERRABLE INITIALLY DEFERRED" : "", sqlstate);
}

static void
test_refusal(struct held *held, const struct busy_case *c, PGconn *pg, const char *sqlstate,
             dk_status expected, bool commits)
{
  char *before = store_as_text(pg);
  refuse_with(pg, c->first, sqlstate, commits);
  dk_status status = c->run(held);
  sql(pg, "DROP FUNCTION busy.refuse CASCADE");
  cmp_ok(status, "==", expected, "%s, %s %s", c->name, sqlstate,
         commits ? "as it is committed" : "while it is done");
  const char *words = status >= DK_BUSY ? dk_caller_failure(held->h.caller)->text : "no words";
  if (!ok(strstr(words, sqlstate) && strstr(words, "so it is"), "its words"))
    diag("%s; expected %s in it", words, sqlstate);
  char *after = store_as_text(pg);
  is(after, before, "nothing is changed");
  free(before);
  free(after);
}

/* `first`: the table that is written. */
static void
test_refusals(PGconn *pg)
{
  static const struct busy_case writing[] = {
    {.name = "enqueue", .first = "message", .run = run_enqueue},
    {.name = "enqueue of work", .first = "work", .run = run_enqueue_work},
    {.name = "commit", .first = "message", .run = run_commit_to_other},
    {.name = "commit that schedules", .first = "work", .run = run_commit_scheduling},
    {.name = "ack of work", .first = "message", .run = run_ack_work},
  };
  static const struct {
    const char *sqlstate;
    dk_status status;
  } states[] = {
    {"40001", DK_BUSY}, {"40P01", DK_BUSY}, {"55P03", DK_BUSY}, {"57014", DK_BUSY},
    {"53100", DK_UNAVAILABLE}, {"53200", DK_NO_MEMORY}, {"53400", DK_UNAVAILABLE},
    {"58030", DK_UNAVAILABLE},
  };
  enum { N_STATES = sizeof states / sizeof states[0] };

  for (size_t i = 0; i < sizeof writing / sizeof writing[0]; i++) {
    struct held held;
    prepare(&held, &(struct busy_case){.name = "none"}, pg, "5s");
    for (size_t n = 0; n < 2 * N_STATES; n++)
      test_refusal(&held, &writing[i], pg, states[n / 2].sqlstate, states[n / 2].status, n % 2);
    cmp_ok(writing[i].run(&held), "==", DK_OK, "%s: the same call is then done", writing[i].name);
    remove_all(&held);
  }
}

int
main(void)
{
  begin();
  destroy_store(getenv("DURAKIT_PG"), schema);
  PGconn *pg = connect_to(getenv("DURAKIT_PG"));
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    test_busy(&cases[i], pg);
    if (cases[i].time)
      test_time(&cases[i], pg);
  }
  test_refusals(pg);
  PQfinish(pg);
  end();
  return done_testing();
}
