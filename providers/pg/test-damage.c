/* SPDX-License-Identifier: Apache-2.0 */
/* A row that cannot be delivered is reported once, by its name, and does not block the others:
 * payloads of which a part is lost (pg_surgery removes it), and rows that were written by hand. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-handle.h"

enum { LARGE = 1 << 16, FETCHERS = 16, MOST_LOOKS = 1000, FETCH = 7 };

static const char schema[] = "damage";

static struct {
  PGconn *plain, *super; /* super NULL: nothing can be broken */
} server;

/* ---- breaking -------------------------------------------------------------------------------- */

static bool
can_break(void)
{
  const char *conninfo = getenv("DURAKIT_PG_SUPER");

  if (!conninfo || PQserverVersion(server.plain) < 140000)
    return false;
  server.super = connect_to(conninfo);
  char *there = sql_value(server.super, "SELECT count(*) FROM pg_available_extensions"
                          " WHERE name = 'pg_surgery'");
  bool is_there = strcmp(there, "1") == 0;
  free(there);
  if (is_there)
    sql(server.super, "CREATE EXTENSION IF NOT EXISTS pg_surgery");
  return is_there;
}

/* Deletes what was stored out of line in this table; the rows still refer to it. */
static void
break_payloads(const char *table)
{
  char *toast = sql_value(server.super, "SELECT reltoastrelid::regclass FROM pg_class"
                          " WHERE oid = '%s.%s'::regclass", schema, table);

  sql(server.super, "SELECT heap_force_kill('%s'::regclass, ARRAY(SELECT ctid FROM %s))", toast,
      toast);
  free(toast);
}

/* ---- operations ------------------------------------------------------------------------------ */

static struct dk_bytes
large_payload(void)
{
  static char bytes[LARGE];

  memset(bytes, 'x', sizeof bytes);
  return (struct dk_bytes){bytes, sizeof bytes};
}

static void
enqueue_large(struct handle_under_test *h, const char *instance)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text(instance),
                         .payload = large_payload()};

  if (dk_store_enqueue_for_orchestrator(h->store, h->caller, &item) != DK_OK)
    BAIL_OUT("enqueue: %s", dk_caller_failure(h->caller)->text);
}

static void
enqueue_activity(struct handle_under_test *h, uint64_t activity, struct dk_bytes payload)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text("inst"), .execution_id = 1,
                         .activity_id = activity, .payload = payload};

  if (dk_store_enqueue_for_worker(h->store, h->caller, &item) != DK_OK)
    BAIL_OUT("enqueue_for_worker: %s", dk_caller_failure(h->caller)->text);
}

static dk_status
try_turn(struct handle_under_test *h, const char *owner, struct dk_turn **ret_turn)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE,
                                  .fetch_id = FETCH};

  if (owner)
    request.owner = text(owner);
  return dk_store_fetch_orchestration_item(h->store, h->caller, &request, ret_turn);
}

static dk_status
try_work(struct handle_under_test *h, struct dk_works **ret_works)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = 10, .lock_ms = LEASE,
                                  .owner = text("worker"), .tag_rule = DK_TAG_ANY,
                                  .fetch_id = FETCH};

  return dk_store_fetch_work_item(h->store, h->caller, &request, ret_works);
}

/* With one event that is stored out of line. */
static void
commit_large_event(struct handle_under_test *h, struct dk_bytes token, const char *owner)
{
  struct dk_event event = {1, large_payload()};
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .name = text("order"), .version = text("1"), .events = &event,
                                  .n_events = 1, .owner = text(owner)};
  struct dk_commit_outcome outcome;

  if (dk_store_ack_orchestration_item(h->store, h->caller, token, &result, &outcome) != DK_OK)
    BAIL_OUT("commit: %s", dk_caller_failure(h->caller)->text);
}

/* ---- what is expected ------------------------------------------------------------------------ */

static void
is_turn_of(struct handle_under_test *h, const char *instance, const char *what)
{
  struct dk_turn *turn = NULL;
  dk_status status = try_turn(h, NULL, &turn);

  if (!ok(status == DK_OK && turn->head.instance.len == strlen(instance) &&
            memcmp(turn->head.instance.ptr, instance, turn->head.instance.len) == 0,
          "%s", what))
    diag("status %d: %s", (int)status,
         status == DK_OK ? turn->head.instance.ptr : dk_caller_failure(h->caller)->text);
}

static void
is_no_turn(struct handle_under_test *h, const char *what)
{
  struct dk_turn *turn = NULL;

  cmp_ok(try_turn(h, NULL, &turn), "==", DK_NOTHING, "%s", what);
}

static void
is_told(struct handle_under_test *h, dk_status status, const char *who, const char *which,
        const char *what)
{
  const char *words = status == DK_CORRUPT ? dk_caller_failure(h->caller)->text : "";

  if (!ok(strstr(words, who) && strstr(words, which) && strstr(words, "set aside"),
          "%s: DK_CORRUPT, with words that name it", what))
    diag("status %d: %s; expected %s and %s in it", (int)status,
         status >= DK_BUSY ? dk_caller_failure(h->caller)->text : "no words", who, which);
}

static void
remove_all(void)
{
  sql(server.plain, "TRUNCATE damage.instance, damage.message, damage.work, damage.execution,"
      " damage.history");
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void
test_message(struct handle_under_test *h)
{
  struct handle_under_test other;
  struct dk_turn *turn;

  enqueue_large(h, "broken");
  break_payloads("message");
  enqueue(h, "fine");
  is_told(h, try_turn(h, NULL, &turn), "\"broken\"", "message ", "a message that cannot be read");
  is_turn_of(h, "fine", "the next fetch brings the one behind it");
  is_no_turn(h, "and then there is nothing");
  open_store(&other, getenv("DURAKIT_PG"), schema);
  enqueue(h, "broken");
  is_no_turn(&other, "nor for a new handle, also with one message more");
  enqueue(h, "later");
  is_turn_of(&other, "later", "and others are fetched");
  close_store(&other);
  sql(server.plain, "DELETE FROM damage.message WHERE octet_length(payload) > 1000");
  sql(server.plain, "UPDATE damage.instance SET ready_at = 0, locked_until = 0"
      " WHERE instance = 'broken'");
  is_turn_of(h, "broken", "after the repair that the manual describes, it is fetched");
  remove_all();
}

/* TURN-5: an owner that has the history in memory does not read it. */
static void
test_history(struct handle_under_test *h)
{
  struct dk_turn *turn;

  enqueue(h, "old");
  commit_large_event(h, fetch_turn_as(h, "me")->head.lock_token, "me");
  break_payloads("history");
  enqueue(h, "old");
  enqueue(h, "fine");
  is_told(h, try_turn(h, "another", &turn), "\"old\"", "event 1 of execution 1",
          "an event that cannot be read");
  is_turn_of(h, "fine", "the next fetch brings another instance");
  sql(server.plain, "UPDATE damage.instance SET ready_at = 0, locked_until = 0"
      " WHERE instance = 'old'");
  cmp_ok(try_turn(h, "me", &turn), "==", DK_OK, "an owner that needs no history gets the turn");
  remove_all();
}

struct fetcher {
  struct handle_under_test h;
  pthread_t thread;
  int corrupt, others;
  bool has;
};

static void *
fetch_until_it_has(void *argument)
{
  struct fetcher *f = argument;
  struct dk_turn *turn;

  for (int i = 0; i < MOST_LOOKS && !f->has; i++) {
    dk_status status = try_turn(&f->h, NULL, &turn);
    f->has = status == DK_OK;
    f->corrupt += status == DK_CORRUPT;
    f->others += status != DK_OK && status != DK_CORRUPT;
  }
  return NULL;
}

/* All meet the same one at once. */
static void
test_crowd(struct handle_under_test *h)
{
  struct fetcher fetchers[FETCHERS];
  int corrupt = 0, others = 0, have = 0;

  enqueue_large(h, "broken");
  break_payloads("message");
  for (int i = 0; i < FETCHERS; i++) {
    char name[32];
    snprintf(name, sizeof name, "fine-%d", i);
    enqueue(h, name);
  }
  for (int i = 0; i < FETCHERS; i++) {
    fetchers[i] = (struct fetcher){.h = with_caller(h)};
    if (pthread_create(&fetchers[i].thread, NULL, fetch_until_it_has, &fetchers[i]) != 0)
      BAIL_OUT("no thread");
  }
  for (int i = 0; i < FETCHERS; i++) {
    pthread_join(fetchers[i].thread, NULL);
    corrupt += fetchers[i].corrupt;
    others += fetchers[i].others;
    have += fetchers[i].has;
    dk_caller_free(fetchers[i].h.caller);
  }
  cmp_ok(have, "==", FETCHERS, "each of %d fetchers gets a turn", (int)FETCHERS);
  cmp_ok(corrupt, "==", 1, "one fetcher gets the report of the message that cannot be read");
  cmp_ok(others, "==", 0, "and no fetcher gets another error");
  remove_all();
}

/* A host that has met it gives back what its fetch has locked; the damaged row is none of that. */
static void
release(struct handle_under_test *h)
{
  cmp_ok(dk_store_release_fetch(h->store, h->caller, FETCH), "==", DK_OK,
         "what else the fetch has locked is given back");
}

/* Written by hand; no host would take them. */
static void
test_odd_turns(struct handle_under_test *h)
{
  struct dk_turn *turn;

  enqueue(h, "large");
  enqueue(h, "fine");
  sql(server.plain, "UPDATE damage.message SET payload = convert_to(repeat('x', 17 << 20), 'UTF8')"
      " WHERE instance = 'large'");
  is_told(h, try_turn(h, NULL, &turn), "\"large\"", "17825792 bytes",
          "a message that is larger than any");
  release(h);
  is_turn_of(h, "fine", "the next fetch brings another instance");
  is_no_turn(h, "and then there is nothing");

  enqueue(h, "named");
  enqueue(h, "fine-too");
  sql(server.plain, "UPDATE damage.instance SET name = repeat('n', 1025) WHERE instance = 'named'");
  is_told(h, try_turn(h, NULL, &turn), "\"named\"", "its name", "a name that is longer than any");
  is_turn_of(h, "fine-too", "the next fetch brings another instance");

  enqueue(h, "counted");
  sql(server.plain, "UPDATE damage.message SET attempt = -1 WHERE instance = 'counted'");
  is_told(h, try_turn(h, NULL, &turn), "\"counted\"", "attempt is 0", "an impossible attempt");
  is_no_turn(h, "is set aside as well");
  remove_all();
}

/* ---- work ------------------------------------------------------------------------------------ */

/* The others, all of them, each of them for the first time. */
static void
is_work(struct handle_under_test *h, size_t n, const char *what)
{
  struct dk_works *works = NULL;
  dk_status status = try_work(h, &works);
  bool is_first = true;

  for (size_t i = 0; status == DK_OK && i < works->n_items; i++)
    is_first = is_first && works->items[i].work.attempt == 1;
  if (!ok(status == DK_OK && works->n_items == n && is_first, "%s", what))
    diag("status %d, %zu items; expected %zu, each with attempt 1", (int)status,
         status == DK_OK ? works->n_items : 0, n);
}

static void
is_no_work(struct handle_under_test *h, const char *what)
{
  struct dk_works *works;

  cmp_ok(try_work(h, &works), "==", DK_NOTHING, "%s", what);
}

static void
test_work(struct handle_under_test *h)
{
  struct dk_works *works;

  enqueue_activity(h, 1, text("first"));
  enqueue_activity(h, 2, large_payload());
  break_payloads("work");
  enqueue_activity(h, 3, text("last"));
  is_told(h, try_work(h, &works), "\"inst\"", "activity 2 of execution 1: its payload",
          "an activity that cannot be read");
  release(h);
  is_work(h, 2, "the next fetch brings those around it, delivered for the first time");
  is_no_work(h, "and then there is nothing");
  remove_all();
}

static void
test_odd_work(struct handle_under_test *h)
{
  struct dk_works *works;

  enqueue_activity(h, 1, text("first"));
  enqueue_activity(h, 2, text("grows"));
  enqueue_activity(h, 3, text("last"));
  sql(server.plain, "UPDATE damage.work SET payload = convert_to(repeat('x', 17 << 20), 'UTF8')"
      " WHERE activity = 2");
  is_told(h, try_work(h, &works), "\"inst\"", "activity 2 has 17825792 bytes",
          "an activity that is larger than any");
  release(h);
  is_work(h, 2, "the next fetch brings those around it, delivered for the first time");
  is_no_work(h, "and then there is nothing");
  remove_all();
}

/* CANCEL-10: it can be cancelled as any other. */
static void
test_cancel(struct handle_under_test *h)
{
  struct dk_commit_outcome outcome;
  struct dk_works *works;

  enqueue(h, "inst");
  commit_first(h, fetch_turn(h), 0);
  enqueue_activity(h, 1, large_payload());
  break_payloads("work");
  is_told(h, try_work(h, &works), "\"inst\"", "activity 1", "an activity that cannot be read");
  enqueue(h, "inst");
  commit_cancelling(h, fetch_turn(h), 1, 1, &outcome);
  char *left = sql_value(server.plain, "SELECT count(*) FROM damage.work");
  is(left, "0", "is deleted by the commit that cancels it");
  free(left);
  remove_all();
}

int
main(void)
{
  const char *conninfo = getenv("DURAKIT_PG");
  struct handle_under_test h;

  begin();
  server.plain = connect_to(conninfo);
  destroy_store(conninfo, schema);
  open_store(&h, conninfo, schema);
  test_odd_turns(&h);
  test_odd_work(&h);
  if (can_break()) {
    test_message(&h);
    test_history(&h);
    test_crowd(&h);
    test_work(&h);
    test_cancel(&h);
  } else {
    skip(1, "nothing can be broken: no superuser (DURAKIT_PG_SUPER), or no extension pg_surgery");
  }
  if (server.super)
    sql(server.super, "DROP EXTENSION IF EXISTS pg_surgery");
  PQfinish(server.super);
  PQfinish(server.plain);
  close_store(&h);
  destroy_store(conninfo, schema);
  end();
  return done_testing();
}
