/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches whose answer was lost with the connection, and what they have locked: a proxy before the
 * server cuts in the answer, once the claim is committed.  All leases are of an hour: what is
 * handed out here did not wait for the end of one. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-handle.h"
#include "providers/pg/test-wire.h"

enum { ITEMS = 3 };
static const char schema[] = "release";

/* `far` is behind the proxy. */
static struct {
  struct wire *wire;
  struct handle_under_test far, near;
  PGconn *pg;
} all;

/* ---- operations ------------------------------------------------------------------------------ */

static dk_status
try_turn(struct handle_under_test *h, uint64_t id, struct dk_turn **ret_turn)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE, .fetch_id = id};

  return dk_store_fetch_orchestration_item(h->store, h->caller, &request, ret_turn);
}

static dk_status
try_work(struct handle_under_test *h, uint64_t id, struct dk_works **ret_works)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .lock_ms = LEASE,
                                  .max_items = ITEMS, .fetch_id = id};

  return dk_store_fetch_work_item(h->store, h->caller, &request, ret_works);
}

static void
release(struct handle_under_test *h, uint64_t id)
{
  dk_status status = dk_store_release_fetch(h->store, h->caller, id);

  if (!ok(status == DK_OK, "what fetch %d has locked is given back", (int)id))
    diag("status %d: %s", (int)status, dk_caller_failure(h->caller)->text);
}

static void
is_turn(struct handle_under_test *h, const char *instance, const char *name)
{
  struct dk_turn *turn = NULL;
  dk_status status = try_turn(h, 0, &turn);

  if (!ok(status == DK_OK && strcmp(turn->head.instance.ptr, instance) == 0 &&
            turn->n_messages == 1 && turn->messages[0].attempt == 1, "%s", name))
    diag("status %d: %s", (int)status, dk_caller_failure(h->caller)->text);
}

static void
is_work(struct handle_under_test *h, const char *name)
{
  struct dk_works *works = NULL;
  dk_status status = try_work(h, 0, &works);
  bool is_first = status == DK_OK;

  for (size_t i = 0; is_first && i < works->n_items; i++)
    is_first = works->items[i].work.attempt == 1;
  if (!ok(is_first && works->n_items == ITEMS, "%s", name))
    diag("status %d: %s", (int)status, dk_caller_failure(h->caller)->text);
}

static void
forget_all(void)
{
  sql(all.pg, "DELETE FROM release.message; DELETE FROM release.work; DELETE FROM release.history;"
              " DELETE FROM release.execution; DELETE FROM release.instance");
}

/* ---- the answer is lost ---------------------------------------------------------------------- */

/* The session is there, and all that it prepares: the answer that is cut is the fetch's. */
static void
given_session(void)
{
  struct dk_turn *turn;
  struct dk_works *works;

  for (uint64_t id = 0; id < 2; id++) {
    if (try_turn(&all.far, id, &turn) != DK_NOTHING || try_work(&all.far, id, &works) != DK_NOTHING)
      BAIL_OUT("not empty: %s", dk_caller_failure(all.far.caller)->text);
  }
}

static void
test_turn(void)
{
  struct dk_turn *turn;

  given_session();
  enqueue(&all.near, "one");
  wire_cut_answer(all.wire);
  cmp_ok(try_turn(&all.far, 7, &turn), "==", DK_OUTCOME_UNKNOWN, "the answer of a fetch is lost");
  cmp_ok(try_turn(&all.near, 0, &turn), "==", DK_NOTHING, "and its turn is locked");
  release(&all.far, 7);
  is_turn(&all.near, "one", "another handle has it at once, as delivered for the first time");
  release(&all.far, 7);
  cmp_ok(try_turn(&all.far, 0, &turn), "==", DK_NOTHING, "and it is not taken from that one");
  forget_all();
}

static void
test_work(void)
{
  struct dk_works *works;

  given_session();
  given_activities(&all.near, "one", ITEMS);
  wire_cut_answer(all.wire);
  cmp_ok(try_work(&all.far, 8, &works), "==", DK_OUTCOME_UNKNOWN, "a fetch of work is lost");
  cmp_ok(try_work(&all.near, 0, &works), "==", DK_NOTHING, "and it is locked");
  release(&all.far, 8);
  is_work(&all.near, "all of it is fetched at once, as for the first time");
  forget_all();
}

/* The handle that has fetched was closed, and others wait and listen. */
static void *
wait_for_work(void *argument)
{
  struct handle_under_test *h = argument;
  struct dk_fetch_work request = {.struct_size = sizeof request, .lock_ms = LEASE,
                                  .max_items = ITEMS, .wait_until = INT64_MAX};
  struct dk_works *works;

  return (void *)(intptr_t)dk_store_fetch_work_item(h->store, h->caller, &request, &works);
}

static void
test_waiter(void)
{
  struct dk_works *works;
  pthread_t thread;
  void *status;

  given_activities(&all.near, "one", ITEMS);
  if (try_work(&all.near, 9, &works) != DK_OK)
    BAIL_OUT("no work: %s", dk_caller_failure(all.near.caller)->text);
  if (pthread_create(&thread, NULL, wait_for_work, &all.far) != 0)
    BAIL_OUT("no thread");
  until(all.pg, "count(*) > 0 FROM release.listener");
  release(&all.near, 9);
  pthread_join(thread, &status);
  cmp_ok((int)(intptr_t)status, "==", DK_OK, "a fetch that waits on another handle gets it");
  forget_all();
}

/* ---- beside a commit ------------------------------------------------------------------------- */

static void *
release_ten(void *argument)
{
  struct handle_under_test *h = argument;

  return (void *)(intptr_t)dk_store_release_fetch(h->store, h->caller, 10);
}

/* A commit has its instance, and then its work in the order of its list: a release of that work
 * waits for the instance, and holds nothing that the commit still needs. */
static void
test_order(void)
{
  PGconn *commit = connect_to(getenv("DURAKIT_PG"));
  struct dk_works *works;
  pthread_t thread;
  void *status;

  given_activities(&all.near, "one", ITEMS);
  if (try_work(&all.near, 10, &works) != DK_OK)
    BAIL_OUT("no work: %s", dk_caller_failure(all.near.caller)->text);
  sql(commit, "BEGIN; SELECT FROM release.instance WHERE instance = 'one' FOR NO KEY UPDATE;"
              " SELECT FROM release.work WHERE activity = 3 FOR UPDATE");
  if (pthread_create(&thread, NULL, release_ten, &all.far) != 0)
    BAIL_OUT("no thread");
  until(all.pg, "count(*) > 0 FROM pg_locks WHERE NOT granted");
  char *free_rows = sql_value(commit, "SELECT count(*) FROM (SELECT FROM release.work"
                                      " FOR UPDATE SKIP LOCKED) w");
  is(free_rows, "3", "while it waits for the instance it holds no work of it");
  free(free_rows);
  sql(commit, "DELETE FROM release.work WHERE activity = 1; COMMIT");
  pthread_join(thread, &status);
  cmp_ok((int)(intptr_t)status, "==", DK_OK, "afterwards it is done");
  cmp_ok(try_work(&all.near, 0, &works) == DK_OK ? (int)works->n_items : -1, "==", ITEMS - 1,
         "with what the commit has left");
  PQfinish(commit);
  forget_all();
}

int
main(void)
{
  const char *conninfo = getenv("DURAKIT_PG");

  begin();
  all.wire = wire_new(conninfo);
  if (!all.wire)
    plan(SKIP_ALL, "the server of DURAKIT_PG is on no unix socket");
  destroy_store(conninfo, schema);
  all.pg = connect_to(conninfo);
  open_store(&all.near, conninfo, schema);
  open_store(&all.far, wire_conninfo(all.wire), schema);
  test_turn();
  test_work();
  test_waiter();
  test_order();
  close_store(&all.far);
  close_store(&all.near);
  wire_free(all.wire);
  PQfinish(all.pg);
  destroy_store(conninfo, schema);
  end();
  return done_testing();
}
