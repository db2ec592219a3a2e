/* SPDX-License-Identifier: Apache-2.0 */
/* A store of which a part is missing, or to which a part was added.  An impossible operation is
 * refused for good: it is no fault to be reported, nothing that passes, and is not taken for a
 * message that is stored already.  After a repair it works again. */
#include <durakit/admin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-handle.h"

enum { MANY = 50 };

static const char schema[] = "missing";
static PGconn *plain;

/* ---- operations ------------------------------------------------------------------------------ */

/* Each fetch is to find something. */
static dk_status
do_enqueue(struct handle_under_test *h)
{
  static int number;
  char name[20];

  snprintf(name, sizeof name, "inst-%d", ++number);
  struct dk_item item = {.struct_size = sizeof item, .instance = text(name)};
  return dk_store_enqueue_for_orchestrator(h->store, h->caller, &item);
}

static dk_status
do_enqueue_work(struct handle_under_test *h)
{
  static uint64_t activity = 100;
  struct dk_item item = {.struct_size = sizeof item, .instance = text("inst"), .execution_id = 1,
                         .activity_id = ++activity};

  return dk_store_enqueue_for_worker(h->store, h->caller, &item);
}

static dk_status
do_fetch_turn(struct handle_under_test *h)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE};
  struct dk_turn *turn;

  return dk_store_fetch_orchestration_item(h->store, h->caller, &request, &turn);
}

static dk_status
do_fetch_work(struct handle_under_test *h)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .lock_ms = LEASE, .max_items = 1};
  struct dk_works *works;

  return dk_store_fetch_work_item(h->store, h->caller, &request, &works);
}

static dk_status
do_read_history(struct handle_under_test *h)
{
  struct dk_read_history request = {.struct_size = sizeof request, .instance = text("inst")};
  struct dk_history *history;

  return dk_store_read_history(h->store, h->caller, &request, &history);
}

static dk_status
do_list(struct handle_under_test *h)
{
  struct dk_list_instances request = {.struct_size = sizeof request};
  struct dk_instances *instances;

  return dk_store_list_instances(h->store, h->caller, &request, &instances);
}

static dk_status
do_count(struct handle_under_test *h)
{
  struct dk_stats stats;

  return dk_store_read_stats(h->store, h->caller, &stats);
}

static dk_status
do_release(struct handle_under_test *h)
{
  return dk_store_release_fetch(h->store, h->caller, 1);
}

static const struct {
  const char *name;
  dk_status (*run)(struct handle_under_test *h);
} operations[] = {
  {"enqueue_for_orchestrator", do_enqueue}, {"enqueue_for_worker", do_enqueue_work},
  {"fetch_orchestration_item", do_fetch_turn}, {"fetch_work_item", do_fetch_work},
  {"read_history", do_read_history}, {"list_instances", do_list}, {"read_stats", do_count},
  {"release_fetch", do_release},
};

/* ---- parts ----------------------------------------------------------------------------------- */

#define MISSING "a part of the store is missing"

static const struct {
  const char *name, *away, *back; /* @ is the schema */
  dk_status status;
  const char *words;
  int least;                      /* so many operations need it */
} parts[] = {
  {"the table instance", "ALTER TABLE @.instance RENAME TO gone",
   "ALTER TABLE @.gone RENAME TO instance", DK_CORRUPT, MISSING, 5},
  {"the table message", "ALTER TABLE @.message RENAME TO gone",
   "ALTER TABLE @.gone RENAME TO message", DK_CORRUPT, MISSING, 2},
  {"the table work", "ALTER TABLE @.work RENAME TO gone", "ALTER TABLE @.gone RENAME TO work",
   DK_CORRUPT, MISSING, 2},
  {"the table history", "ALTER TABLE @.history RENAME TO gone",
   "ALTER TABLE @.gone RENAME TO history", DK_CORRUPT, MISSING, 1},
  {"the table execution", "ALTER TABLE @.execution RENAME TO gone",
   "ALTER TABLE @.gone RENAME TO execution", DK_CORRUPT, MISSING, 1},
  {"a column", "ALTER TABLE @.instance RENAME ready_at TO gone",
   "ALTER TABLE @.instance RENAME gone TO ready_at", DK_CORRUPT, MISSING, 2},
  {"the columns of version 4",
   "ALTER TABLE @.instance RENAME fetch_id TO gone; ALTER TABLE @.work RENAME fetch_id TO gone",
   "ALTER TABLE @.instance RENAME gone TO fetch_id; ALTER TABLE @.work RENAME gone TO fetch_id",
   DK_CORRUPT, MISSING, 2},
  {"a function", "ALTER FUNCTION @.later RENAME TO gone", "ALTER FUNCTION @.gone RENAME TO later",
   DK_CORRUPT, MISSING, 2},
  {"the sequence", "ALTER SEQUENCE @.number RENAME TO gone",
   "ALTER SEQUENCE @.gone RENAME TO number", DK_CORRUPT, MISSING, 2},
  {"the index of messages' ids", "DROP INDEX @.message_id",
   "CREATE UNIQUE INDEX message_id ON @.message((instance || ''), id) WHERE id IS NOT NULL",
   DK_CORRUPT, MISSING, 1},
  {"the schema", "ALTER SCHEMA @ RENAME TO gone", "ALTER SCHEMA gone RENAME TO @", DK_REFUSED,
   "schema no longer exists", 7},
};

static void
change(const char *template)
{
  char statement[200];
  size_t used = 0;

  for (const char *at = template; *at && used + sizeof schema < sizeof statement; at++)
    if (*at == '@')
      used += (size_t)snprintf(statement + used, sizeof statement - used, "%s", schema);
    else
      statement[used++] = *at;
  statement[used] = '\0';
  sql(plain, "%s", statement);
}

static void
test_part(struct handle_under_test *h, size_t part)
{
  int refused = 0;

  change(parts[part].away);
  for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
    dk_status status = operations[i].run(h);
    const char *said = dk_caller_failure(h->caller)->text;
    bool is_expected = status == parts[part].status && strstr(said, parts[part].words);
    refused += is_expected;
    ok(status == DK_OK || status == DK_NOTHING || is_expected, "without %s: %s", parts[part].name,
       operations[i].name);
    if (status >= DK_BUSY && !is_expected)
      diag("status %d: %s", (int)status, said);
  }
  cmp_ok(refused, ">=", parts[part].least, "without %s so many are refused", parts[part].name);
  change(parts[part].back);
  for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
    dk_status status = operations[i].run(h);
    ok(status == DK_OK || status == DK_NOTHING, "with %s again: %s", parts[part].name,
       operations[i].name);
    if (status >= DK_BUSY)
      diag("status %d: %s", (int)status, dk_caller_failure(h->caller)->text);
  }
}

/* ---- added objects --------------------------------------------------------------------------- */

static dk_status
do_enqueue_with_id(struct handle_under_test *h)
{
  static int number;
  char id[20];

  snprintf(id, sizeof id, "id-%d", ++number);
  struct dk_item item = {.struct_size = sizeof item, .instance = text("inst"), .id = text(id)};
  return dk_store_enqueue_for_orchestrator(h->store, h->caller, &item);
}

static dk_status
do_enqueue_with_tag(struct handle_under_test *h)
{
  static uint64_t activity = 100000;
  struct dk_item item = {.struct_size = sizeof item, .instance = text("inst"), .execution_id = 1,
                         .activity_id = ++activity, .tag = text("added")};

  return dk_store_enqueue_for_worker(h->store, h->caller, &item);
}

static const struct {
  const char *name, *add, *remove;
  dk_status (*run)(struct handle_under_test *h);
  dk_status status;
} additions[] = {
  {"a unique index of messages",
   "CREATE UNIQUE INDEX own ON @.message((instance || 'x')) WHERE id LIKE 'id-%%'",
   "DROP INDEX @.own", do_enqueue_with_id, DK_CORRUPT},
  {"a unique index of activities",
   "CREATE UNIQUE INDEX own ON @.work(tag) WHERE tag = 'added'", "DROP INDEX @.own",
   do_enqueue_with_tag, DK_CORRUPT},
  {"a column that must be filled",
   "ALTER TABLE @.message ADD own int NOT NULL DEFAULT 1;"
   " ALTER TABLE @.message ALTER own DROP DEFAULT",
   "ALTER TABLE @.message DROP own", do_enqueue, DK_REFUSED},
};

static void
test_addition(struct handle_under_test *h, size_t number)
{
  dk_status (*run)(struct handle_under_test *h) = additions[number].run;
  dk_status status = DK_OK;

  change(additions[number].add);
  for (int i = 0; i < 2 && status == DK_OK; i++)
    status = run(h);
  const char *said = dk_caller_failure(h->caller)->text;
  if (!cmp_ok(status, "==", additions[number].status, "%s: refused", additions[number].name))
    diag("%s", said);
  ok(strstr(said, "what was added to") != NULL, "%s: the cause is named", additions[number].name);
  change(additions[number].remove);
  cmp_ok(run(h), "==", DK_OK, "without %s again", additions[number].name);
}

int
main(void)
{
  const char *conninfo = getenv("DURAKIT_PG");
  struct handle_under_test h;

  plan(NO_PLAN);
  if (!conninfo)
    BAIL_OUT("DURAKIT_PG is not set: tests/with-postgres runs this");
  begin();
  destroy_store(conninfo, schema);
  plain = connect_to(conninfo);
  open_store(&h, conninfo, schema);
  given_activities(&h, "inst", MANY);
  for (int i = 0; i < MANY; i++)
    if (do_enqueue(&h) != DK_OK)
      BAIL_OUT("enqueue: %s", dk_caller_failure(h.caller)->text);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    test_part(&h, i);
  for (size_t i = 0; i < sizeof additions / sizeof additions[0]; i++)
    test_addition(&h, i);
  close_store(&h);
  destroy_store(conninfo, schema);
  PQfinish(plain);
  end();
  return done_testing();
}
