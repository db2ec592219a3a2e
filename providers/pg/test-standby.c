/* SPDX-License-Identifier: Apache-2.0 */
/* A primary and its standby, as tests/pg-standby.sh makes them: what a standby can do, and a handle
 * that stays open while the primary stops and the standby takes its place. */
#include <durakit/admin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-stores.h"

enum { MESSAGES = 50 };

static const char *
given(const char *variable)
{
  const char *value = getenv(variable);

  if (!value)
    BAIL_OUT("%s is not set: tests/pg-standby.sh runs this", variable);
  return value;
}

static void
run(const char *variable)
{
  if (system(given(variable)) != 0)
    BAIL_OUT("%s: %s", variable, given(variable));
}

static dk_status
try_to_enqueue(struct handle_under_test *h, int i)
{
  char id[20];
  struct dk_item item = {.struct_size = sizeof item, .instance = text("order"),
                         .payload = text("hello")};

  snprintf(id, sizeof id, "message-%d", i);
  item.id = text(id);
  dk_status status = dk_store_enqueue_for_orchestrator(h->store, h->caller, &item);
  snprintf(said, sizeof said, "%s", dk_caller_failure(h->caller)->text);
  return status;
}

static void
until_standby_has_all(void)
{
  char condition[120], *now = sql_value(super, "SELECT pg_current_wal_lsn()");

  snprintf(condition, sizeof condition, "bool_and(replay_lsn >= '%s') FROM pg_stat_replication",
           now);
  until(super, condition);
  free(now);
}

/* It reads, and is known for what it is. */
static void
test_standby(const char *schema)
{
  const char *standby = given("DURAKIT_PG_STANDBY");
  struct dk_read_history request = {.struct_size = sizeof request, .instance = text("order")};
  struct dk_list_instances list = {.struct_size = sizeof list};
  struct dk_history *history;
  struct dk_instances *instances;
  struct dk_stats stats;
  struct handle_under_test h;

  expect_refused(try_open_as(standby, schema, RW), DK_UNAVAILABLE, "is a standby",
                 "a standby accepts no writes");
  expect_refused(try_open_as(standby, schema, CREATE), DK_UNAVAILABLE,
                 "target_session_attrs=read-write", "and the text says how to find its primary");
  if (!expect_done(open_as(standby, schema, RO, &h), "it is opened read-only"))
    return;
  cmp_ok(dk_store_read_history(h.store, h.caller, &request, &history), "==", DK_OK,
         "histories are read there");
  cmp_ok(dk_store_list_instances(h.store, h.caller, &list, &instances), "==", DK_OK,
         "instances are listed");
  cmp_ok(dk_store_read_stats(h.store, h.caller, &stats), "==", DK_OK, "and counted");
  cmp_ok(stats.not_started, "==", instances->n_items, "as they were on the primary");
  cmp_ok(instances->n_items, "==", 1, "one");
  expect_refused(try_to_enqueue(&h, 0), DK_REFUSED, "read-only", "and nothing is written");
  close_store(&h);
}

/* One handle, before and after. */
static void
test_takeover(const char *both, const char *schema)
{
  struct handle_under_test h;
  int acknowledged = 0;

  if (!expect_done(open_as(both, schema, RW, &h), "of two servers the one that writes is found"))
    return;
  while (acknowledged < MESSAGES && try_to_enqueue(&h, acknowledged) == DK_OK)
    acknowledged++;
  cmp_ok(acknowledged, "==", MESSAGES, "messages are acknowledged");
  run("DURAKIT_PG_CRASH");
  expect_refused(try_to_enqueue(&h, MESSAGES), DK_UNAVAILABLE, "cannot connect to",
                 "while neither of the two accepts writes");
  run("DURAKIT_PG_PROMOTE");
  expect_done(try_to_enqueue(&h, MESSAGES), "when the standby was promoted, the handle continues");
  int there = 0;
  while (there <= MESSAGES && try_to_enqueue(&h, there) == DK_DUPLICATE)
    there++;
  cmp_ok(there, "==", MESSAGES + 1, "nothing that was acknowledged is lost");
  cmp_ok(fetch_turn(&h).len, ">", 0, "its turn is fetched there");
  close_store(&h);
}

int
main(void)
{
  char both[400], schema[64];

  begin_stores();
  snprintf(both, sizeof both, "%s target_session_attrs=read-write", given("DURAKIT_PG_BOTH"));
  snprintf(schema, sizeof schema, "%s", named("standby"));
  until(super, "count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'");
  struct handle_under_test h;
  if (expect_done(open_as(conninfo, schema, CREATE, &h), "a store on the primary")) {
    enqueue(&h, "first");
    close_store(&h);
  }
  until_standby_has_all();
  test_standby(schema);
  test_takeover(both, schema);
  end_stores();
  return done_testing();
}
