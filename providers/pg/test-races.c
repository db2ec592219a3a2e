/* SPDX-License-Identifier: Apache-2.0 */
/* Many at once, on few rows: a fetch gets a row as long as there is one (WORK-2, TURN-10), no fetch
 * gets what another has, and the server finds no deadlock.  There is no sleep: a gate lets all
 * begin at once, and each ends by its result. */
#include <durakit/admin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-handle.h"

enum { CALLERS = 16, ROUNDS = 10, STEPS = 60, INSTANCES = 4 };

static const char schema[] = "races";

struct caller {
  struct handle_under_test h;
  pthread_t thread;
  pthread_barrier_t *gate;
  int number;
  bool of_work;
  int got, nothing, busy, deadlocks, other, removed;
  char found[64];
};

static void
start(struct caller callers[CALLERS], const struct handle_under_test *h, pthread_barrier_t *gate,
      void *(*run)(void *), bool of_work)
{
  if (pthread_barrier_init(gate, NULL, CALLERS) != 0)
    BAIL_OUT("no gate");
  for (int i = 0; i < CALLERS; i++) {
    callers[i] = (struct caller){.h = with_caller(h), .gate = gate, .number = i,
                                 .of_work = of_work};
    if (pthread_create(&callers[i].thread, NULL, run, &callers[i]) != 0)
      BAIL_OUT("no thread");
  }
}

static void
join(struct caller callers[CALLERS], pthread_barrier_t *gate, struct caller *ret_sum)
{
  *ret_sum = (struct caller){.number = 0};
  for (int i = 0; i < CALLERS; i++) {
    pthread_join(callers[i].thread, NULL);
    dk_caller_free(callers[i].h.caller);
    ret_sum->got += callers[i].got;
    ret_sum->nothing += callers[i].nothing;
    ret_sum->busy += callers[i].busy;
    ret_sum->deadlocks += callers[i].deadlocks;
    ret_sum->other += callers[i].other;
    ret_sum->removed += callers[i].removed;
  }
  pthread_barrier_destroy(gate);
}

/* 40P01 is reported as DK_BUSY: known by its text. */
static bool
count(struct caller *c, dk_status status)
{
  bool is_busy = status == DK_BUSY;

  c->got += status == DK_OK;
  c->nothing += status == DK_NOTHING;
  c->busy += is_busy;
  c->deadlocks += is_busy && strstr(dk_caller_failure(c->h.caller)->text, "40P01") != NULL;
  c->other += status != DK_OK && status != DK_NOTHING && !is_busy && status != DK_LOCK_LOST;
  if (status > DK_BUSY && status != DK_LOCK_LOST)
    diag("status %d: %s", (int)status, dk_caller_failure(c->h.caller)->text);
  return status == DK_OK;
}

/* ---- as many as there are rows --------------------------------------------------------------- */

static dk_status
take_work(struct handle_under_test *h, struct dk_works **ret_works)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = 1, .lock_ms = LEASE,
                                  .owner = text("worker"), .tag_rule = DK_TAG_ANY};

  return dk_store_fetch_work_item(h->store, h->caller, &request, ret_works);
}

static dk_status
take_turn(struct handle_under_test *h, struct dk_turn **ret_turn)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE,
                                  .owner = text("same")};

  return dk_store_fetch_orchestration_item(h->store, h->caller, &request, ret_turn);
}

static void *
take_one(void *argument)
{
  struct caller *c = argument;
  struct dk_works *works;
  struct dk_turn *turn;

  pthread_barrier_wait(c->gate);
  if (c->of_work) {
    if (count(c, take_work(&c->h, &works)))
      snprintf(c->found, sizeof c->found, "%d", (int)works->items[0].item.activity_id);
  } else if (count(c, take_turn(&c->h, &turn))) {
    snprintf(c->found, sizeof c->found, "%.*s", (int)turn->head.instance.len,
             turn->head.instance.ptr);
  }
  return NULL;
}

static bool
all_differ(const struct caller callers[CALLERS])
{
  for (int i = 0; i < CALLERS; i++)
    for (int j = 0; j < i; j++)
      if (strcmp(callers[i].found, callers[j].found) == 0)
        return false;
  return true;
}

static void
enqueue_activity(struct handle_under_test *h, int activity)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text("inst"), .execution_id = 1,
                         .activity_id = (uint64_t)activity, .payload = text("do")};

  if (dk_store_enqueue_for_worker(h->store, h->caller, &item) != DK_OK)
    BAIL_OUT("enqueue_for_worker: %s", dk_caller_failure(h->caller)->text);
}

/* The rows that all of them would like best are the same. */
static void
test_as_many_as_rows(struct handle_under_test *h, PGconn *pg, bool of_work)
{
  struct caller callers[CALLERS], sum, all = {.number = 0};
  pthread_barrier_t gate;
  bool differ = true;

  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < CALLERS; i++) {
      char name[32];
      snprintf(name, sizeof name, "one-%d-%d", round, i);
      if (of_work)
        enqueue_activity(h, round * CALLERS + i + 1);
      else
        enqueue(h, name);
    }
    start(callers, h, &gate, take_one, of_work);
    join(callers, &gate, &sum);
    differ = differ && all_differ(callers);
    all.got += sum.got;
    all.nothing += sum.nothing;
    all.deadlocks += sum.deadlocks;
  }
  cmp_ok(all.got, "==", ROUNDS * CALLERS, "%d callers, %d rows of %s: each gets one, each time",
         (int)CALLERS, (int)CALLERS, of_work ? "work" : "turns");
  cmp_ok(all.nothing, "==", 0, "no call finds nothing");
  ok(differ, "no two get the same");
  sql(pg, "TRUNCATE races.instance, races.message, races.work");
}

/* ---- cancelled while it is claimed ----------------------------------------------------------- */

struct cancelling {
  struct handle_under_test h;
  struct dk_bytes token;
  struct dk_commit_outcome outcome;
};

static void *
cancel_two(void *argument)
{
  struct cancelling *c = argument;

  commit_cancelling(&c->h, c->token, 1, 2, &c->outcome);
  return NULL;
}

/* Waits until this number of sessions waits for a lock. */
static bool
sessions_wait(PGconn *pg, long n)
{
  for (int i = 0; i < 3000; i++) {
    char *waiting = sql_value(pg, "SELECT count(DISTINCT pid) FROM pg_catalog.pg_locks"
                              " WHERE NOT granted");
    bool is_so = strtol(waiting, NULL, 10) >= n;
    free(waiting);
    if (is_so)
      return true;
    free(sql_value(pg, "SELECT pg_catalog.pg_sleep(0.01)"));
  }
  return false;
}

/* CANCEL-1, CANCEL-6: a row that leaves its place while the commit waits for it is deleted where it
 * is then, and reported as what it has become. */
static void
test_claimed_meanwhile(struct handle_under_test *h, PGconn *pg)
{
  struct cancelling c = {.h = with_caller(h)};
  struct handle_under_test taker = with_caller(h);
  pthread_t thread;

  given_activities(&taker, "claimed", 2);
  c.token = fetch_turn(&taker);
  sql(pg, "BEGIN");
  sql(pg, "UPDATE races.work SET epoch = races.next_number(), owner = 'thief',"
      " ready_at = 9000000000000 WHERE instance = 'claimed' AND activity = 2");
  if (pthread_create(&thread, NULL, cancel_two, &c) != 0)
    BAIL_OUT("no thread");
  ok(somebody_waits(pg), "a commit waits for a row that is being claimed");
  sql(pg, "COMMIT");
  pthread_join(thread, NULL);
  cmp_ok(c.outcome.report.free_rows, "==", 1, "the free row is reported as free");
  cmp_ok(c.outcome.report.locked_rows, "==", 1, "and the claimed row as locked");
  ok(c.outcome.n_stolen == 1 && c.outcome.stolen[0].owner.len == 5 &&
       memcmp(c.outcome.stolen[0].owner.ptr, "thief", 5) == 0, "with the claim's owner");
  char *left = sql_value(pg, "SELECT count(*) FROM races.work");
  is(left, "0", "both are deleted");
  free(left);
  dk_caller_free(taker.caller);
  dk_caller_free(c.h.caller);
}

/* ---- cross traffic --------------------------------------------------------------------------- */

static void
name_instance(char room[16], int number)
{
  snprintf(room, 16, "cross-%d", number % INSTANCES);
}

/* Two messages, to others and in any order, an activity, and the one before cancelled. */
static dk_status
commit_crossing(struct caller *c, const struct dk_turn *turn, int step)
{
  char names[2][16];
  uint64_t last = turn->head.last_event_id;
  struct dk_event event = {last + 1, text("event")};
  struct dk_item work = {.struct_size = sizeof work, .execution_id = 1, .activity_id = last + 1,
                         .payload = text("do")};
  struct dk_item messages[2] = {{.struct_size = sizeof messages[0], .payload = text("a")},
                                {.struct_size = sizeof messages[1], .payload = text("b")}};
  const struct dk_item *list[] = {&messages[0], &messages[1]}, *works[] = {&work};
  struct dk_activity cancelled = {1, last};
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .name = text("cross"), .version = text("1"),
                                  .owner = text("same"), .events = &event, .n_events = 1,
                                  .worker_items = works, .n_worker_items = 1,
                                  .orchestrator_items = list, .n_orchestrator_items = 2,
                                  .cancelled_activities = &cancelled,
                                  .n_cancelled_activities = last > 0 && step % 2 ? 1 : 0};
  struct dk_commit_outcome outcome;

  for (int i = 0; i < 2; i++) {
    name_instance(names[i], c->number + step * (i + 1) + 3 * i);
    messages[i].instance = text(names[i]);
  }
  return dk_store_ack_orchestration_item(c->h.store, c->h.caller, turn->head.lock_token, &result,
                                         &outcome);
}

/* Its completion is for any of them. */
static void
work_across(struct caller *c, int step)
{
  char name[16];
  struct dk_works *works;

  if (!count(c, take_work(&c->h, &works)))
    return;
  name_instance(name, c->number + step);
  struct dk_item done = {.struct_size = sizeof done, .instance = text(name),
                         .payload = text("done")};
  struct dk_work_result result = {.struct_size = sizeof result, .completion = &done};
  count(c, dk_store_ack_work_item(c->h.store, c->h.caller, works->items[0].work.lock_token,
                                 &result));
}

static void *
run_across(void *argument)
{
  struct caller *c = argument;
  struct dk_turn *turn;

  pthread_barrier_wait(c->gate);
  for (int step = 0; step < STEPS; step++) {
    dk_caller_reset(c->h.caller);
    if (c->number % 2)
      work_across(c, step);
    else if (count(c, take_turn(&c->h, &turn)))
      count(c, commit_crossing(c, turn, step));
  }
  return NULL;
}

/* No instance is left behind: each with a due message can be fetched. */
static void
test_cross_traffic(struct handle_under_test *h, PGconn *pg)
{
  struct caller callers[CALLERS], sum;
  pthread_barrier_t gate;

  for (int i = 0; i < INSTANCES; i++) {
    char name[16];
    name_instance(name, i);
    enqueue(h, name);
  }
  start(callers, h, &gate, run_across, false);
  join(callers, &gate, &sum);
  cmp_ok(sum.deadlocks, "==", 0, "%d operations of %d callers on %d instances: no deadlock",
         sum.got, (int)CALLERS, (int)INSTANCES);
  cmp_ok(sum.other, "==", 0, "and no other trouble");
  char *stranded = sql_value(pg, "SELECT count(*) FROM races.instance i WHERE locked_until = 0"
                             " AND ready_at IS NULL AND EXISTS (SELECT FROM races.message m"
                             "   WHERE m.instance = i.instance)");
  is(stranded, "0", "no instance has messages and is not ready");
  free(stranded);
}

/* ---- births and deletions -------------------------------------------------------------------- */

static dk_status
delete_by_force(struct handle_under_test *h, const char *instance, struct dk_removed *ret_removed)
{
  struct dk_bytes id = text(instance);
  struct dk_delete_instances request = {.struct_size = sizeof request, .instances = &id,
                                        .n_instances = 1, .flags = DK_DELETE_FORCE};

  return dk_store_delete_instances(h->store, h->caller, &request, ret_removed);
}

static dk_status
commit_birth(struct handle_under_test *h, struct dk_bytes token)
{
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .name = text("child"), .version = text("1"),
                                  .parent_instance = text("mother")};
  struct dk_commit_outcome outcome;

  return dk_store_ack_orchestration_item(h->store, h->caller, token, &result, &outcome);
}

struct meeting {
  struct handle_under_test h;
  struct dk_bytes token;
  dk_status status;
  struct dk_removed removed;
};

static void *
give_birth(void *argument)
{
  struct meeting *m = argument;

  m->status = commit_birth(&m->h, m->token);
  return NULL;
}

static void *
delete_mother(void *argument)
{
  struct meeting *m = argument;

  m->status = delete_by_force(&m->h, "mother", &m->removed);
  return NULL;
}

static void
begin_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
  if (pthread_create(thread, NULL, run, argument) != 0)
    BAIL_OUT("no thread");
}

/* A mother with an activity, and the first turn of her child. */
static void
given_mother(struct meeting *birth, struct meeting *deletion, const struct handle_under_test *h)
{
  *birth = (struct meeting){.h = with_caller(h)};
  *deletion = (struct meeting){.h = with_caller(h)};
  enqueue(&birth->h, "mother");
  commit_first(&birth->h, fetch_turn(&birth->h), 1);
  enqueue(&birth->h, "child");
  birth->token = fetch_turn(&birth->h);
}

static void
end_meeting(struct meeting *birth, struct meeting *deletion, PGconn *pg)
{
  dk_caller_free(birth->h.caller);
  dk_caller_free(deletion->h.caller);
  sql(pg, "TRUNCATE races.instance, races.message, races.work, races.execution, races.history");
}

/* DEL-3: a child that is born while its parent is deleted is deleted with it, if it was first. */
static void
test_born_first(struct handle_under_test *h, PGconn *pg)
{
  struct meeting birth, deletion;
  pthread_t threads[2];

  given_mother(&birth, &deletion, h);
  sql(pg, "BEGIN");
  sql(pg, "INSERT INTO races.execution VALUES ('child', 1, 1, 1)"); /* holds up the birth */
  begin_thread(&threads[0], give_birth, &birth);
  ok(sessions_wait(pg, 1), "a child is being born");
  begin_thread(&threads[1], delete_mother, &deletion);
  ok(sessions_wait(pg, 2), "the deletion of its mother waits for that");
  sql(pg, "ROLLBACK");
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  ok(birth.status == DK_OK && deletion.status == DK_OK, "the birth is committed, and the deletion");
  cmp_ok(deletion.removed.instances, "==", 2, "both are deleted");
  cmp_ok(deletion.removed.executions, "==", 2, "with what the child has done");
  end_meeting(&birth, &deletion, pg);
}

/* And if it was second, its parent no longer exists.  The commit returns DK_BUSY and does not wait,
 * because the deletion may need rows that the commit has locked. */
static void
test_deleted_first(struct handle_under_test *h, PGconn *pg)
{
  struct meeting birth, deletion;
  pthread_t thread;

  given_mother(&birth, &deletion, h);
  sql(pg, "BEGIN");
  sql(pg, "SELECT FROM races.work FOR UPDATE"); /* holds up the deletion */
  begin_thread(&thread, delete_mother, &deletion);
  ok(sessions_wait(pg, 1), "a mother is being deleted");
  cmp_ok(commit_birth(&birth.h, birth.token), "==", DK_BUSY, "her child is not born meanwhile");
  sql(pg, "ROLLBACK");
  pthread_join(thread, NULL);
  ok(deletion.status == DK_OK && deletion.removed.instances == 1, "she is deleted");
  cmp_ok(commit_birth(&birth.h, birth.token), "==", DK_OK, "then it is born, without a parent");
  end_meeting(&birth, &deletion, pg);
}

/* As all functions that lock several do: by their ids, not by descent.  Else two wait for one
 * another. */
static void
test_in_order(struct handle_under_test *h, PGconn *pg)
{
  struct meeting deletion = {.h = with_caller(h)};
  pthread_t thread;

  sql(pg, "INSERT INTO races.instance(instance, birth, status, execution, parent) VALUES"
      " ('mother', 1, 2, 1, NULL), ('a', 2, 2, 1, 'mother'), ('b', 3, 2, 1, 'mother')");
  sql(pg, "BEGIN");
  sql(pg, "SELECT FROM races.instance WHERE instance = 'b' FOR UPDATE");
  begin_thread(&thread, delete_mother, &deletion);
  ok(sessions_wait(pg, 1), "the deletion of a family waits for one of its members");
  char *is_free = sql_value(pg, "SELECT string_agg(instance, ' ') FROM (SELECT instance"
                            " FROM races.instance ORDER BY 1 FOR UPDATE SKIP LOCKED) x");
  is(is_free, "b mother", "and has taken the one before, and none after it");
  free(is_free);
  sql(pg, "ROLLBACK");
  pthread_join(thread, NULL);
  cmp_ok(deletion.removed.instances, "==", 3, "then all are deleted");
  dk_caller_free(deletion.h.caller);
}

/* A turn of a family in which any instance may be the child of any other. */
static dk_status
commit_in_family(struct caller *c, const struct dk_turn *turn, int step)
{
  char names[2][16];
  struct dk_event event = {turn->head.last_event_id + 1, text("event")};
  struct dk_item work = {.struct_size = sizeof work,
                         .activity_id = (uint64_t)(c->number * STEPS + step + 1)};
  struct dk_item message = {.struct_size = sizeof message, .instance = text(names[0])};
  const struct dk_item *messages[] = {&message}, *works[] = {&work};
  struct dk_turn_result result = {
    .struct_size = sizeof result, .events = &event, .n_events = 1, .worker_items = works,
    .n_worker_items = 1, .orchestrator_items = messages, .n_orchestrator_items = 1,
    .status = step % 3 ? DK_COMPLETED : DK_CONTINUED_AS_NEW};
  struct dk_commit_outcome outcome;

  for (int i = 0; i < 2; i++)
    name_instance(names[i], c->number + step * (i + 1));
  message.instance = text(names[0]);
  result.execution_id = turn->head.execution_id + (step % 2 || !turn->head.known);
  if (result.execution_id != turn->head.execution_id)
    event.event_id = 1;
  work.execution_id = result.execution_id;
  if (!turn->head.known) {
    result.name = result.version = text("1");
    result.parent_instance = text(names[1]);
  }
  return dk_store_ack_orchestration_item(c->h.store, c->h.caller, turn->head.lock_token, &result,
                                         &outcome);
}

/* An instance that does not exist, or has a parent, is no error. */
static void
remove_some(struct caller *c, int step)
{
  static const struct dk_instance_filter all = {.struct_size = sizeof all};
  struct dk_delete_matching matching = {.struct_size = sizeof matching, .filter = &all,
                                        .max_instances = 2};
  struct dk_prune prune = {.struct_size = sizeof prune, .filter = &all, .max_instances = 9};
  struct dk_removed removed = {.instances = 0};
  dk_status status;
  char name[16];

  name_instance(name, c->number + step);
  if (step % 3 == 0)
    status = dk_store_delete_matching(c->h.store, c->h.caller, &matching, &removed);
  else if (step % 3 == 1)
    status = dk_store_prune_executions(c->h.store, c->h.caller, &prune, &removed);
  else
    status = delete_by_force(&c->h, name, &removed);
  if (status != DK_NOT_FOUND && status != DK_REFUSED)
    count(c, status);
  c->removed += removed.executions > 0;
}

/* Looking: no session blocks it. */
static void
look(struct caller *c)
{
  struct dk_list_instances request = {.struct_size = sizeof request, .flags = DK_LIST_OUTPUT};
  struct dk_instances *instances;
  struct dk_stats stats;

  if (!count(c, dk_store_list_instances(c->h.store, c->h.caller, &request, &instances)) ||
      !count(c, dk_store_read_stats(c->h.store, c->h.caller, &stats)))
    c->other++;
}

static void *
run_families(void *argument)
{
  struct caller *c = argument;
  struct dk_turn *turn;
  char name[16];

  pthread_barrier_wait(c->gate);
  for (int step = 0; step < STEPS; step++) {
    dk_caller_reset(c->h.caller);
    if (c->number % 4 == 0)
      remove_some(c, step);
    else if (c->number % 4 == 1)
      work_across(c, step);
    else if (c->number % 8 == 2)
      look(c);
    else if (count(c, take_turn(&c->h, &turn)))
      count(c, commit_in_family(c, turn, step));
    name_instance(name, step);
    if (c->number == 3)
      enqueue(&c->h, name);
  }
  return NULL;
}

/* DEL-1, whatever comes between: no row of an instance is left without it, and no empty address. */
static void
test_families(struct handle_under_test *h, PGconn *pg)
{
  static const char *const tables[] = {"message", "work", "execution", "history"};
  struct caller callers[CALLERS], sum;
  pthread_barrier_t gate;

  start(callers, h, &gate, run_families, false);
  join(callers, &gate, &sum);
  cmp_ok(sum.deadlocks, "==", 0, "%d operations of %d callers in families that are born, pruned and"
         " deleted: no deadlock", sum.got, (int)CALLERS);
  cmp_ok(sum.other, "==", 0, "and no other trouble");
  cmp_ok(sum.removed, ">", 0, "%d of them removed something", sum.removed);
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
    char *left = sql_value(pg, "SELECT count(*) FROM races.%s x WHERE NOT EXISTS (SELECT FROM"
                           " races.instance i WHERE i.instance = x.instance)", tables[i]);
    is(left, "0", "no row of %s is without its instance", tables[i]);
    free(left);
  }
  char *empty = sql_value(pg, "SELECT count(*) FROM races.instance i WHERE birth = 0 AND NOT EXISTS"
                          " (SELECT FROM races.message m WHERE m.instance = i.instance)");
  is(empty, "0", "no address is without a message");
  free(empty);
}

/* ---- as the server counts -------------------------------------------------------------------- */

/* A session reports its counts at its end, at the latest. */
static void
until_alone(PGconn *pg)
{
  for (int i = 0; i < 3000; i++) {
    char *n = sql_value(pg, "SELECT count(*) FROM pg_stat_activity a, pg_stat_activity me"
                        " WHERE me.pid = pg_backend_pid() AND a.datid = me.datid"
                        " AND a.usename = me.usename AND a.backend_start > me.backend_start");
    bool is_alone = strcmp(n, "0") == 0;
    free(n);
    if (is_alone)
      return;
    free(sql_value(pg, "SELECT pg_sleep(0.01)"));
  }
  diag("sessions of this role go on");
}

static long
count_deadlocks(PGconn *pg)
{
  until_alone(pg);
  char *deadlocks = sql_value(pg, "SELECT deadlocks FROM pg_stat_database"
                              " WHERE datname = current_database()");
  long n = strtol(deadlocks, NULL, 10);

  free(deadlocks);
  return n;
}

/* Each has what the other waits for, until one is refused. */
static void
meet_deadly(void)
{
  static const char statement[] = "SELECT pg_advisory_xact_lock(4711, %d)";
  PGconn *pg[2];
  char wait[80];
  int n_refused = 0;

  for (int i = 0; i < 2; i++) {
    pg[i] = connect_to(getenv("DURAKIT_PG"));
    sql(pg[i], "BEGIN");
    sql(pg[i], statement, i);
  }
  for (int i = 0; i < 2; i++) {
    snprintf(wait, sizeof wait, statement, 1 - i);
    if (!PQsendQuery(pg[i], wait))
      BAIL_OUT("%s", PQerrorMessage(pg[i]));
  }
  for (int i = 0; i < 2; i++) {
    PGresult *r = PQgetResult(pg[i]);
    n_refused += PQresultStatus(r) == PGRES_FATAL_ERROR;
    PQclear(r);
    PQfinish(pg[i]);
  }
  if (n_refused != 1)
    BAIL_OUT("no deadlock can be made: %d refused", n_refused);
}

int
main(void)
{
  struct handle_under_test h;

  begin();
  PGconn *pg = connect_to(getenv("DURAKIT_PG"));
  long before = count_deadlocks(pg);
  destroy_store(getenv("DURAKIT_PG"), schema);
  open_store(&h, getenv("DURAKIT_PG"), schema);
  test_as_many_as_rows(&h, pg, false);
  test_as_many_as_rows(&h, pg, true);
  test_claimed_meanwhile(&h, pg);
  test_cross_traffic(&h, pg);
  sql(pg, "TRUNCATE races.instance, races.message, races.work, races.execution, races.history");
  test_born_first(&h, pg);
  test_deleted_first(&h, pg);
  test_in_order(&h, pg);
  test_families(&h, pg);
  close_store(&h);
  destroy_store(getenv("DURAKIT_PG"), schema);
  cmp_ok(count_deadlocks(pg) - before, "==", 0, "the server has counted no deadlock in all this");
  meet_deadly();
  cmp_ok(count_deadlocks(pg) - before, "==", 1, "as it does when there is one");
  PQfinish(pg);
  end();
  return done_testing();
}
