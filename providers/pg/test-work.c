/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches on a server: rows that another session holds, and rows that the host does not accept. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-handle.h"

static const char schema[] = "work";

static PGconn *
connect_into_schema(void)
{
  PGconn *pg = connect_to(getenv("DURAKIT_PG"));

  sql(pg, "SET search_path = work");
  return pg;
}

static void
enqueue_activity(struct handle_under_test *h, uint64_t activity, const char *tag, size_t size)
{
  char *payload = calloc(1, size + 1);
  struct dk_item item = {.struct_size = sizeof item, .instance = text("inst"), .execution_id = 1,
                         .activity_id = activity, .payload = {payload, size}};

  if (tag)
    item.tag = text(tag);
  if (dk_store_enqueue_for_worker(h->store, h->caller, &item) != DK_OK)
    BAIL_OUT("enqueue_for_worker: %s", dk_caller_failure(h->caller)->text);
  free(payload);
}

static dk_status
try_to_fetch(struct handle_under_test *h, uint32_t max_items, struct dk_works **ret_works)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = max_items,
                                  .lock_ms = LEASE, .owner = text("worker"),
                                  .tag_rule = DK_TAG_ANY};

  return dk_store_fetch_work_item(h->store, h->caller, &request, ret_works);
}

/* ---- held by others -------------------------------------------------------------------------- */

struct fetching {
  struct handle_under_test h;
  pthread_t thread;
  bool of_turn;
  dk_status status;
  uint64_t activity;
};

static dk_status
try_to_fetch_turn(struct handle_under_test *h, struct dk_turn **ret_turn)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE};

  return dk_store_fetch_orchestration_item(h->store, h->caller, &request, ret_turn);
}

static void *
fetch_one(void *argument)
{
  struct fetching *f = argument;
  struct dk_works *works;
  struct dk_turn *turn;

  if (f->of_turn) {
    f->status = try_to_fetch_turn(&f->h, &turn);
    return NULL;
  }
  f->status = try_to_fetch(&f->h, 1, &works);
  if (f->status == DK_OK)
    f->activity = works->items[0].item.activity_id;
  return NULL;
}

static void
begin_fetching(struct fetching *f, const struct handle_under_test *h, bool of_turn)
{
  *f = (struct fetching){.h = with_caller(h), .of_turn = of_turn};
  if (pthread_create(&f->thread, NULL, fetch_one, f) != 0)
    BAIL_OUT("no thread");
}

static dk_status
end_fetching(struct fetching *f)
{
  pthread_join(f->thread, NULL);
  dk_caller_free(f->h.caller);
  return f->status;
}

/* WORK-2: not "nothing", and not one round trip after the other either. */
static void
test_held_row(struct handle_under_test *h, PGconn *pg)
{
  struct fetching f;

  enqueue_activity(h, 1, NULL, 10);
  sql(pg, "BEGIN");
  sql(pg, "SELECT 1 FROM work WHERE activity = 1 FOR NO KEY UPDATE");
  begin_fetching(&f, h, false);
  ok(somebody_waits(pg), "a fetch waits for the only ready row, which another session holds");
  sql(pg, "ROLLBACK");
  cmp_ok(end_fetching(&f), "==", DK_OK, "and brings it when it is released");
  cmp_ok(f.activity, "==", 1, "it and no other");

  enqueue_activity(h, 2, "gpu", 10);
  enqueue_activity(h, 3, NULL, 10);
  sql(pg, "BEGIN");
  sql(pg, "SELECT 1 FROM work WHERE activity = 2 FOR NO KEY UPDATE");
  begin_fetching(&f, h, false);
  cmp_ok(end_fetching(&f), "==", DK_OK, "a held row does not keep a fetch from a free one");
  cmp_ok(f.activity, "==", 3, "which comes");
  begin_fetching(&f, h, false);
  ok(somebody_waits(pg), "the next fetch waits for the one that is held");
  sql(pg, "DELETE FROM work WHERE activity = 2");
  sql(pg, "COMMIT");
  cmp_ok(end_fetching(&f), "==", DK_NOTHING, "and finds nothing when it is deleted");
  sql(pg, "DELETE FROM work");
}

/* TURN-10, QUEUE-8. */
static void
test_held_instance(struct handle_under_test *h, PGconn *pg)
{
  struct fetching f;

  enqueue(h, "held");
  sql(pg, "BEGIN");
  sql(pg, "SELECT 1 FROM instance WHERE instance = 'held' FOR NO KEY UPDATE");
  begin_fetching(&f, h, true);
  ok(somebody_waits(pg), "a fetch waits for the only ready instance, which another session holds");
  enqueue(h, "free");
  struct handle_under_test other = with_caller(h);
  struct dk_turn *turn = NULL;
  cmp_ok(try_to_fetch_turn(&other, &turn), "==", DK_OK, "another fetch gets another instance");
  ok(turn && turn->head.instance.len == 4 && memcmp(turn->head.instance.ptr, "free", 4) == 0,
     "which comes");
  dk_caller_free(other.caller);
  sql(pg, "ROLLBACK");
  cmp_ok(end_fetching(&f), "==", DK_OK, "and brings it when it is released");
}

/* ---- whose history it is --------------------------------------------------------------------- */

/* The instance's first commit, by this owner. */
static void
commit_as(struct handle_under_test *h, const char *instance, const char *owner)
{
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .name = text("order"), .version = text("1"),
                                  .owner = text(owner)};
  struct dk_commit_outcome outcome;

  enqueue(h, instance);
  struct dk_bytes token = fetch_turn_as(h, owner)->head.lock_token;
  if (dk_store_ack_orchestration_item(h->store, h->caller, token, &result, &outcome) != DK_OK)
    BAIL_OUT("commit: %s", dk_caller_failure(h->caller)->text);
}

/* How many of `n` fetches bring this instance, when "yours" is ready for longer than "mine". */
static int
count_brought(struct handle_under_test *h, PGconn *pg, const char *owner, const char *instance,
              int n)
{
  int n_brought = 0;

  for (int i = 0; i < n; i++) {
    sql(pg, "UPDATE instance SET ready_at = CASE instance WHEN 'yours' THEN 1 ELSE 2 END");
    struct dk_turn *turn = fetch_turn_as(h, owner);
    n_brought += turn->head.instance.len == strlen(instance) &&
                 memcmp(turn->head.instance.ptr, instance, strlen(instance)) == 0;
    if (dk_store_abandon_orchestration_item(h->store, h->caller, turn->head.lock_token, 0, 1)
        != DK_OK)
      BAIL_OUT("abandon: %s", dk_caller_failure(h->caller)->text);
  }
  return n_brought;
}

/* QUEUE-8: what its fetcher has committed last comes first, but for one fetch in eight. */
static void
test_preferred(struct handle_under_test *h, PGconn *pg)
{
  enum { N = 16 };

  sql(pg, "TRUNCATE instance, message");
  commit_as(h, "yours", "you");
  commit_as(h, "mine", "me");
  enqueue(h, "yours");
  enqueue(h, "mine");
  cmp_ok(count_brought(h, pg, NULL, "yours", N), "==", N, "no owner: what is ready longest");
  cmp_ok(count_brought(h, pg, "other", "yours", N), "==", N, "so does an owner of neither");
  cmp_ok(count_brought(h, pg, "me", "mine", N), "==", N - N / 8,
         "the owner of the other instance gets that, but for one fetch in eight");
  cmp_ok(count_brought(h, pg, "you", "yours", N), "==", N, "and the other owner gets its own");
  sql(pg, "TRUNCATE instance, message");
}

/* ---- not taken ------------------------------------------------------------------------------- */

/* POISON-6, TURN-12: a caller without room for the answer. */
static void
test_what_the_host_does_not_take(struct handle_under_test *h, PGconn *pg)
{
  enum { ROOM = 1 << 16, LARGE = 1 << 20 };
  char *room = calloc(1, ROOM);
  struct handle_under_test small = {dk_caller_new(room, ROOM), h->store};
  struct dk_works *works;

  if (!small.caller)
    BAIL_OUT("no caller in %d bytes", ROOM);
  enqueue_activity(h, 1, NULL, 10);
  enqueue_activity(h, 2, NULL, LARGE);
  cmp_ok(try_to_fetch(&small, 2, &works), "==", DK_NO_MEMORY, "what the host has no room for");
  char *held = sql_value(pg, "SELECT count(*) FROM work WHERE epoch <> 0 OR attempt <> 0");
  is(held, "0", "is given back, and what was handed up before it, and was not delivered");
  free(held);
  cmp_ok(try_to_fetch(h, 2, &works), "==", DK_OK, "a host that has brings it");
  cmp_ok(works->n_items, "==", 2, "all of it");

  char *payload = calloc(1, LARGE);
  struct dk_item item = {.struct_size = sizeof item, .instance = text("large"),
                         .payload = {payload, LARGE}};
  struct dk_turn *turn = NULL;
  if (dk_store_enqueue_for_orchestrator(h->store, h->caller, &item) != DK_OK)
    BAIL_OUT("enqueue: %s", dk_caller_failure(h->caller)->text);
  free(payload);
  dk_caller_reset(small.caller);
  cmp_ok(try_to_fetch_turn(&small, &turn), "==", DK_NO_MEMORY, "a turn that it has no room for");
  cmp_ok(try_to_fetch_turn(h, &turn), "==", DK_OK, "is given back at once");
  cmp_ok(turn->messages[0].attempt, "==", 1, "and was not delivered");
  dk_caller_free(small.caller);
  free(room);
}

int
main(void)
{
  const char *conninfo = getenv("DURAKIT_PG");
  struct handle_under_test h;

  begin();
  destroy_store(conninfo, schema);
  open_store(&h, conninfo, schema);
  PGconn *pg = connect_into_schema();
  test_held_row(&h, pg);
  test_held_instance(&h, pg);
  test_preferred(&h, pg);
  test_what_the_host_does_not_take(&h, pg);
  PQfinish(pg);
  close_store(&h);
  destroy_store(conninfo, schema);
  end();
  return done_testing();
}
