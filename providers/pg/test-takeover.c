/* SPDX-License-Identifier: Apache-2.0 */
/* A handle that stays open while its primary freezes, the standby is promoted, and the old primary
 * thaws, without fencing: servers as tests/pg-takeover.sh makes them.  Its answer_timeout is of
 * hours: no call of it ends for that. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-handle.h"

enum { CROWD = 4 };
static const char schema[] = "takeover";

static const char *
given(const char *variable)
{
  const char *value = getenv(variable);

  if (!value)
    BAIL_OUT("%s is not set: tests/pg-takeover.sh runs this", variable);
  return value;
}

static void
run(const char *variable)
{
  if (system(given(variable)) != 0)
    BAIL_OUT("%s: %s", variable, given(variable));
}

/* ---- the handle ------------------------------------------------------------------------------ */

static void
open_patient(struct handle_under_test *h)
{
  const struct dk_host_options options = {.struct_size = sizeof options, .log = keep_line};
  const struct dk_setting settings[] = {{"conninfo", text(given("DURAKIT_PG_BOTH"))},
                                        {"schema", text(schema)},
                                        {"answer_timeout", text("3h")}};

  open_with(h, library_under_test(), DK_OPEN_CREATE, &options, settings, 3);
}

/* ---- what it is asked ------------------------------------------------------------------------ */

enum deed { ENQUEUE, FETCH, WAIT_FOR_WORK };

struct member {
  struct handle_under_test h;
  pthread_t thread;
  enum deed deed;
  int number;
  dk_status status;
};

static dk_status
try_to_enqueue(struct handle_under_test *h, int number)
{
  char id[20];
  struct dk_item item = {.struct_size = sizeof item, .instance = text("inst")};

  snprintf(id, sizeof id, "message-%d", number);
  item.id = text(id);
  return dk_store_enqueue_for_orchestrator(h->store, h->caller, &item);
}

static void *
take_part(void *argument)
{
  struct member *m = argument;
  const struct dk_fetch_work request = {
    .struct_size = sizeof request, .lock_ms = A_DAY, .max_items = 1,
    .wait_until = m->deed == WAIT_FOR_WORK ? INT64_MAX : 0};
  struct dk_works *works;

  m->status = m->deed == ENQUEUE
                ? try_to_enqueue(&m->h, m->number)
                : dk_store_fetch_work_item(m->h.store, m->h.caller, &request, &works);
  return NULL;
}

static void
begin_member(struct member *m, const struct handle_under_test *h, enum deed deed, int number)
{
  *m = (struct member){.h = with_caller(h), .deed = deed, .number = number};
  if (pthread_create(&m->thread, NULL, take_part, m) != 0)
    BAIL_OUT("no thread");
}

/* 1 if it was ended because another server has taken over. */
static int
end_member(struct member *m)
{
  pthread_join(m->thread, NULL);
  const char *said = dk_caller_failure(m->h.caller)->text;
  int is_so = m->status == DK_OUTCOME_UNKNOWN && strstr(said, "was superseded by") != NULL;

  if (!is_so)
    diag("status %d: %s", (int)m->status, said);
  dk_caller_free(m->h.caller);
  return is_so;
}

/* ---- the tests ------------------------------------------------------------------------------- */

/* So many at a time, so that there are so many connections. */
static void
make_connections(struct handle_under_test *h)
{
  struct member crowd[CROWD];
  PGconn *holder = connect_to(given("DURAKIT_PG"));

  if (try_to_enqueue(h, 0) != DK_OK)
    BAIL_OUT("enqueue: %s", dk_caller_failure(h->caller)->text);
  sql(holder, "BEGIN");
  sql(holder, "SELECT FROM %s.instance FOR UPDATE", schema);
  for (int i = 0; i < CROWD; i++)
    begin_member(&crowd[i], h, ENQUEUE, i + 1);
  until(holder, "count(*) >= 4 FROM pg_locks WHERE NOT granted");
  sql(holder, "COMMIT");
  PQfinish(holder);
  for (int i = 0; i < CROWD; i++) {
    pthread_join(crowd[i].thread, NULL);
    dk_caller_free(crowd[i].h.caller);
  }
}

/* A fetch waits for work all the while, and listens. */
static void
begin_waiting(struct member *waiter, struct handle_under_test *h)
{
  PGconn *pg = connect_to(given("DURAKIT_PG"));

  begin_member(waiter, h, WAIT_FOR_WORK, 0);
  until(pg, "count(*) > 0 FROM takeover.listener");
  PQfinish(pg);
}

static void
expect_work(struct member *waiter, struct handle_under_test *h)
{
  const struct dk_item item = {.struct_size = sizeof item, .instance = text("inst"),
                               .execution_id = 1, .activity_id = 1};

  if (dk_store_enqueue_for_worker(h->store, h->caller, &item) != DK_OK)
    BAIL_OUT("enqueue: %s", dk_caller_failure(h->caller)->text);
  pthread_join(waiter->thread, NULL);
  cmp_ok(waiter->status, "==", DK_OK, "a call that waits for work gets what the new primary has");
  dk_caller_free(waiter->h.caller);
}

/* Calls that wait for it end, and what follows works. */
static void
test_freeze(struct handle_under_test *h)
{
  struct member crowd[CROWD];
  int n_ended = 0;

  run("DURAKIT_PG_PAUSE");
  for (int i = 0; i < CROWD; i++)
    begin_member(&crowd[i], h, i % 2 ? FETCH : ENQUEUE, 10 + i);
  run("DURAKIT_PG_PROMOTE");
  for (int i = 0; i < CROWD; i++)
    n_ended += end_member(&crowd[i]);
  cmp_ok(n_ended, "==", CROWD, "all calls that wait for the frozen server end");
  expect_logged("on timeline 2, has replaced the one at", "it is logged");
  for (int i = 0; i < CROWD; i += 2)
    cmp_ok(try_to_enqueue(h, 10 + i), "==", DK_OK, "the call that follows works on the other one");
  cmp_ok(try_to_enqueue(h, 0), "==", DK_DUPLICATE, "what was acknowledged is there");
}

static char *
messages_at(const char *conninfo)
{
  PGconn *pg = connect_to(conninfo);
  char *n = sql_value(pg, "SELECT count(*) FROM %s.message", schema);

  PQfinish(pg);
  return n;
}

/* The old primary lives again, and the handle's sessions on the new one are ended: it makes others,
 * and none of them on the old one. */
static void
test_thaw(struct handle_under_test *h)
{
  PGconn *new_one = connect_to(given("DURAKIT_PG_STANDBY"));

  run("DURAKIT_PG_RESUME");
  char *before = messages_at(given("DURAKIT_PG"));
  for (int i = 0; i < 20; i++) {
    sql(new_one, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                 " WHERE usename = current_user AND pid <> pg_backend_pid()");
    dk_status status = try_to_enqueue(h, 100 + i);
    if (status != DK_OK && try_to_enqueue(h, 100 + i) != DK_OK)
      diag("message %d: %s", 100 + i, dk_caller_failure(h->caller)->text);
  }
  char *there = sql_value(new_one, "SELECT count(*) FROM %s.message WHERE id LIKE 'message-1__'",
                          schema);
  is(there, "20", "all that is stored from now on is on the new primary");
  char *after = messages_at(given("DURAKIT_PG"));
  is(after, before, "and nothing of it on the old one");
  free(before);
  free(after);
  free(there);
  PQfinish(new_one);
}

int
main(void)
{
  struct handle_under_test h;
  struct member waiter;

  begin();
  open_patient(&h);
  make_connections(&h);
  begin_waiting(&waiter, &h);
  test_freeze(&h);
  expect_work(&waiter, &h);
  test_thaw(&h);
  close_store(&h);
  end();
  return done_testing();
}
