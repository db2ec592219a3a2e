/* SPDX-License-Identifier: Apache-2.0 */
/* Scenes for the tests of durakit.admin/1: see test-scene.h. */
#include "providers/sqlite/test-scene.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"

/* ---- the clock ------------------------------------------------------------------------------- */

static _Atomic int64_t time_now = NOON;

static int64_t
stand_still(struct dk_clock *clock)
{
  (void)clock;
  return atomic_load(&time_now);
}

static dk_status
wait_by_the_system(struct dk_clock *clock, const struct dk_wait *wait)
{
  (void)clock;
  return dk_clock_system()->wait(dk_clock_system(), wait);
}

static struct dk_clock scene_clock = {stand_still, wait_by_the_system};

void
set_time(int64_t now)
{
  atomic_store(&time_now, now);
}

void
open_scene(struct handle_under_test *h, const char *name)
{
  set_time(NOON);
  open_store_by(h, name, &scene_clock);
}

/* ---- making ---------------------------------------------------------------------------------- */

static struct dk_bytes
bytes(size_t size)
{
  static char room[LARGE + 1];

  memset(room, 'p', LARGE);
  if (size > LARGE)
    BAIL_OUT("a payload of %zu bytes", size);
  return (struct dk_bytes){room, size};
}

static struct dk_bytes
text_or_none(const char *string)
{
  return string ? text(string) : (struct dk_bytes){NULL, 0};
}

void
send(struct handle_under_test *h, const char *instance, const char *id, int64_t visible_at,
     size_t payload)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text(instance),
                         .id = text_or_none(id), .visible_at = visible_at,
                         .payload = bytes(payload)};

  must(h, dk_store_enqueue_for_orchestrator(h->store, h->caller, &item), "enqueue");
}

struct dk_bytes
keep(struct dk_bytes token)
{
  static char rooms[64][200];
  static size_t next;
  char *room = rooms[next++ % 64];

  if (token.len > sizeof rooms[0])
    BAIL_OUT("a token has %zu bytes", token.len);
  memcpy(room, token.ptr, token.len);
  return (struct dk_bytes){room, token.len};
}

struct dk_bytes
take_turn(struct handle_under_test *h, const char *instance)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE};
  struct dk_turn *turn = NULL;

  send(h, instance, NULL, 0, 10);
  must(h, dk_store_fetch_orchestration_item(h->store, h->caller, &request, &turn), "fetch a turn");
  if (turn->head.instance.len != strlen(instance) ||
      memcmp(turn->head.instance.ptr, instance, strlen(instance)) != 0)
    BAIL_OUT("fetched %.*s instead of %s", (int)turn->head.instance.len, turn->head.instance.ptr,
             instance);
  return keep(turn->head.lock_token);
}

struct dk_bytes
take_work(struct handle_under_test *h)
{
  return keep(fetch_work(h));
}

void
drop_turn(struct handle_under_test *h, struct dk_bytes token)
{
  struct dk_turn_result nothing = {.struct_size = sizeof nothing};
  struct dk_commit_outcome outcome;

  must(h, dk_store_ack_orchestration_item(h->store, h->caller, token, &nothing, &outcome),
       "an empty commit");
}

enum { MOST_OF_A_COMMIT = 1000 };

static void
commit_execution(struct handle_under_test *h, struct dk_bytes token, const struct making *m,
                 uint64_t execution, int32_t status)
{
  static struct dk_event events[MOST_OF_A_COMMIT];
  static struct dk_item items[MOST_OF_A_COMMIT];
  static const struct dk_item *list[MOST_OF_A_COMMIT];
  struct dk_bytes payload = bytes(m->payload ? m->payload : 10);
  struct dk_turn_result result = {
    .struct_size = sizeof result, .execution_id = execution, .status = status,
    .events = events, .n_events = m->events ? m->events : 2,
    .worker_items = list, .n_worker_items = m->activities,
    .name = text(m->name ? m->name : "order"), .version = text(m->version ? m->version : "1"),
    .parent_instance = text_or_none(m->parent), .owner = text_or_none(m->owner),
  };
  struct dk_commit_outcome outcome;

  if (status != DK_RUNNING)
    result.output = payload;
  for (size_t i = 0; i < result.n_events; i++)
    events[i] = (struct dk_event){i + 1, payload};
  for (size_t i = 0; i < m->activities; i++) {
    items[i] = (struct dk_item){.struct_size = sizeof items[i], .execution_id = execution,
                                .activity_id = i + 1, .payload = payload};
    list[i] = &items[i];
  }
  must(h, dk_store_ack_orchestration_item(h->store, h->caller, token, &result, &outcome),
       "a commit");
}

void
make_instance(struct handle_under_test *h, const char *instance, const struct making *making)
{
  const int last = making->executions ? making->executions : 1;
  const int32_t status = making->status ? making->status : DK_RUNNING;

  for (int i = 1; i <= last; i++)
    commit_execution(h, take_turn(h, instance), making, (uint64_t)i,
                     i < last ? DK_CONTINUED_AS_NEW : status);
}

void
commit_next(struct handle_under_test *h, const char *instance, uint64_t execution, int32_t status)
{
  const struct making making = {.given = true};

  commit_execution(h, take_turn(h, instance), &making, execution, status);
}

/* ---- looking --------------------------------------------------------------------------------- */

static sqlite3 *
database(const char *name)
{
  sqlite3 *db;

  if (sqlite3_open(path_of(name), &db) != SQLITE_OK)
    BAIL_OUT("%s: %s", name, sqlite3_errmsg(db));
  sqlite3_busy_timeout(db, 10000);
  return db;
}

int64_t
number_in(const char *name, const char *sql)
{
  sqlite3 *db = database(name);
  sqlite3_stmt *row;

  if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK || sqlite3_step(row) != SQLITE_ROW)
    BAIL_OUT("%s: %s", sql, sqlite3_errmsg(db));
  int64_t number = sqlite3_column_int64(row, 0);
  sqlite3_finalize(row);
  sqlite3_close(db);
  return number;
}

void
run_in(const char *name, const char *sql)
{
  sqlite3 *db = database(name);

  if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
    BAIL_OUT("%s: %s", sql, sqlite3_errmsg(db));
  sqlite3_close(db);
}

#define STRAY(table) "(SELECT count(*) FROM " table " WHERE iid NOT IN (SELECT iid FROM instance))"

void
expect_no_leftovers(const char *name, const char *what)
{
  int64_t stray = number_in(name, "SELECT " STRAY("message") "+" STRAY("work") "+"
                                  STRAY("execution") "+" STRAY("history"));
  int64_t payloads = number_in(name,
    "SELECT count(*) FROM large WHERE id NOT IN (SELECT large FROM message WHERE large NOTNULL"
    " UNION ALL SELECT large FROM work WHERE large NOTNULL"
    " UNION ALL SELECT large FROM execution WHERE large NOTNULL"
    " UNION ALL SELECT large FROM history WHERE large NOTNULL)");

  if (!ok(stray == 0 && payloads == 0, "%s: no row is left over", what))
    diag("rows without instance: %lld, payloads without row: %lld", (long long)stray,
         (long long)payloads);
}

void
expect(struct handle_under_test *h, dk_status found, dk_status expected, const char *part,
       const char *what)
{
  const char *why = found < DK_BUSY ? "" : dk_caller_failure(h->caller)->text;

  if (!ok(found == expected && strstr(why, part), "%s", what))
    diag("expected %d with \"%s\", found %d: %s", (int)expected, part, (int)found, why);
}

dk_status
delete_ids(struct handle_under_test *h, const char *ids, uint32_t flags,
           struct dk_removed *ret_removed)
{
  struct dk_bytes list[64];
  char *words = strdup(ids), *rest = NULL;
  size_t n = 0;

  for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
    list[n++] = text(word);
  struct dk_delete_instances request = {.struct_size = sizeof request, .flags = flags,
                                        .instances = list, .n_instances = n};
  *ret_removed = (struct dk_removed){.struct_size = 0};
  dk_status status = dk_store_delete_instances(h->store, h->caller, &request, ret_removed);
  free(words);
  return status;
}
