/* SPDX-License-Identifier: Apache-2.0 */
/* Pruning: which executions are deleted and which stay, that nothing else is touched, nor even
 * waited for, and pages of what a filter selects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-instances.h"

static struct handle_under_test h;
static char schema[64];

static void
begin_store(const char *name)
{
  snprintf(schema, sizeof schema, "%s", named(name));
  expect_done(open_as(conninfo, schema, CREATE, &h), name);
}

static void
end_store(void)
{
  close_store(&h);
  expect_done(try_destroy(schema), "removed");
}

static void
run(const char *statement)
{
  sql(plain, "SET search_path TO \"%s\"", schema);
  sql(plain, "%s", statement);
  sql(plain, "RESET search_path");
}

/* The numbers of the executions that are stored, and those of which events are. */
static void
is_left(const char *instance, const char *expected, const char *name)
{
  char *found = sql_value(plain, "SELECT"
                          " (SELECT string_agg(execution::text, ' ' ORDER BY execution)"
                          " FROM \"%s\".execution x WHERE x.instance = '%s') || ' / ' ||"
                          " (SELECT string_agg(DISTINCT lpad(execution::text, 2), '' )"
                          " FROM \"%s\".history x WHERE x.instance = '%s')",
                          schema, instance, schema, instance);

  is(found, expected, "%s", name);
  free(found);
}

static struct dk_removed
prune(struct dk_prune request)
{
  struct dk_removed removed = {.instances = 4711};

  request.struct_size = sizeof request;
  dk_status status = dk_store_prune_executions(h.store, h.caller, &request, &removed);
  snprintf(said, sizeof said, "%s", dk_caller_failure(h.caller)->text);
  if (status != DK_OK)
    removed.messages = (uint64_t)status;
  return removed;
}
#define PRUNE(...) prune((struct dk_prune){__VA_ARGS__})

/* An instance that has continued as new so often, with two events in each execution; then it runs.
 * The nth has ended at 1000 n. */
static void
given_chain(const char *instance, uint64_t n)
{
  static const struct dk_event events[] = {{1, {"a", 1}}, {2, {"b", 1}}};

  for (uint64_t i = 1; i <= n; i++) {
    COMMIT(&h, instance, .execution_id = i, .status = DK_CONTINUED_AS_NEW, .events = events,
           .n_events = 2);
    dk_caller_reset(h.caller);
  }
  COMMIT(&h, instance, .execution_id = n + 1, .events = events, .n_events = 2);
  run("UPDATE execution SET completed_at = 1000 * execution WHERE completed_at > 0");
}

/* PRUNE-1, PRUNE-2. */
static void
test_which(void)
{
  struct dk_bytes inst = text("inst");

  begin_store("which");
  given_chain("inst", 9);
  struct dk_removed removed = PRUNE(.instance = inst, .keep = 20);
  is_removed(&removed, "1 0 0 0 0 -", "the newest twenty of ten stay");
  removed = PRUNE(.instance = inst, .keep = 8);
  is_removed(&removed, "1 2 4 0 0 -", "all but the newest eight are deleted");
  is_left("inst", "3 4 5 6 7 8 9 10 /  3 4 5 6 7 8 910", "with their histories");
  removed = PRUNE(.instance = inst, .keep = 2, .completed_before = 4000);
  is_removed(&removed, "1 1 2 0 0 -", "before a time, not at it");
  removed = PRUNE(.instance = inst, .keep = 6, .completed_before = 9000000000000);
  is_removed(&removed, "1 1 2 0 0 -", "both have to hold");
  run("UPDATE execution SET status = 1, completed_at = 0 WHERE execution = 6");
  removed = PRUNE(.instance = inst);
  is_removed(&removed, "1 4 8 0 0 -", "keep 0 is 1");
  is_left("inst", "6 10 /  610", "the current one stays, and one that has not ended");
  run("UPDATE execution SET status = 2, completed_at = 9 WHERE execution = 10");
  removed = PRUNE(.instance = inst, .completed_before = 10);
  is_removed(&removed, "1 0 0 0 0 -", "the current one when it has ended, too");
  end_store();
}

/* PRUNE-4. */
static void
test_not_found(void)
{
  begin_store("unknown");
  enqueue(&h, "pending");
  struct dk_removed removed = PRUNE(.instance = text("pending"));
  ok(removed.messages == DK_NOT_FOUND && strstr(said, "\"pending\" does not exist"),
     "one that has not started is not found: %s", said);
  removed = PRUNE(.instance = text("absent"));
  cmp_ok(removed.messages, "==", DK_NOT_FOUND, "nor one that does not exist");
  end_store();
}

/* PRUNE-3, PRUNE-5: all but those executions is unchanged, and continues. */
static void
test_rest(void)
{
  struct dk_item work = {.struct_size = sizeof work, .instance = text("inst"), .execution_id = 1,
                         .activity_id = 9, .payload = text("of the first")};
  struct dk_commit_outcome outcome;

  begin_store("rest");
  given_chain("inst", 3);
  given_chain("other", 2);
  dk_store_enqueue_for_worker(h.store, h.caller, &work);
  struct dk_turn *turn = turn_of(&h, "inst");
  struct dk_bytes token = turn->head.lock_token;
  struct dk_instance before = told(&h, "inst");
  run("CREATE TABLE kept AS SELECT (SELECT md5(string_agg(x::text, ' ' ORDER BY x::text)) FROM ("
      " SELECT i::text FROM instance i UNION ALL SELECT m::text FROM message m"
      " UNION ALL SELECT w::text FROM work w UNION ALL SELECT x::text FROM execution x"
      "   WHERE (instance, execution) NOT IN (('inst', 1), ('inst', 2), ('inst', 3))"
      " UNION ALL SELECT y::text FROM history y"
      "   WHERE (instance, execution) NOT IN (('inst', 1), ('inst', 2), ('inst', 3))) x)");
  struct dk_removed removed = PRUNE(.instance = text("inst"));
  is_removed(&removed, "1 3 6 0 0 -", "the instance has a turn under way");
  run("INSERT INTO kept SELECT md5(string_agg(x::text, ' ' ORDER BY x::text)) FROM ("
      " SELECT i::text FROM instance i UNION ALL SELECT m::text FROM message m"
      " UNION ALL SELECT w::text FROM work w UNION ALL SELECT x::text FROM execution x"
      " UNION ALL SELECT y::text FROM history y) x");
  cmp_ok(number(plain, "SELECT count(DISTINCT k) FROM \"%s\".kept k", schema), "==", 1,
         "and nothing else has changed");
  run("DROP TABLE kept");
  ok(told(&h, "inst").created_at == before.created_at && before.created_at > 0,
     "its creation time stays");
  struct dk_event event = {3, text("c")};
  struct dk_turn_result end = {.execution_id = 4, .events = &event, .n_events = 1,
                               .status = DK_CONTINUED_AS_NEW};
  expect_done(try_to_commit(&h, token, end, NULL), "the turn is committed");
  expect_done(try_to_commit(&h, turn_of(&h, "inst")->head.lock_token,
                            (struct dk_turn_result){.execution_id = 5}, &outcome),
              "and the next execution is the fifth");
  end_store();
}

/* While others hold the instances' rows, as a commit or a fetch does. */
static void
test_no_waits(void)
{
  begin_store("waits");
  given_chain("inst", 2);
  sql(plain, "BEGIN");
  sql(plain, "UPDATE \"%s\".instance SET ready_at = 5", schema);
  struct dk_removed removed = PRUNE(.instance = text("inst"));
  is_removed(&removed, "1 2 4 0 0 -", "a turn that is being committed does not block it");
  sql(plain, "ROLLBACK");
  sql(plain, "BEGIN");
  sql(plain, "SELECT FROM \"%s\".instance FOR UPDATE", schema);
  run("INSERT INTO execution SELECT instance, 1, 4, 1, 1 FROM instance");
  removed = PRUNE(.instance = text("inst"));
  is_removed(&removed, "1 0 0 0 0 -", "where nothing is deleted, there is no wait");
  sql(plain, "COMMIT");
  sql(plain, "BEGIN");
  sql(plain, "SELECT FROM \"%s\".instance FOR UPDATE", schema);
  removed = PRUNE(.instance = text("inst"));
  cmp_ok(removed.messages, "==", DK_BUSY, "a deletion of the instance blocks it");
  sql(plain, "ROLLBACK");
  end_store();
}

/* PRUNE-4: in pages. */
static void
test_pages(void)
{
  struct dk_instance_filter all = {.struct_size = sizeof all};
  struct dk_instance_filter roots = {.struct_size = sizeof roots, .flags = DK_FILTER_ROOTS,
                                     .created_from = 1};

  begin_store("pages");
  given_chain("a", 2);
  enqueue(&h, "b");
  run("UPDATE instance SET ready_at = 9000000000000");
  given_chain("c", 3);
  given_chain("d", 1);
  run("UPDATE instance SET parent = 'a' WHERE instance = 'd'");
  struct dk_removed removed = PRUNE(.filter = &all, .max_instances = 2, .keep = 2);
  is_removed(&removed, "2 1 2 0 0 b", "two are looked at, even if nothing of one is deleted");
  removed = PRUNE(.filter = &all, .max_instances = 2, .keep = 2, .after = text("b"));
  is_removed(&removed, "2 2 4 0 0 -", "two more, and that was all");
  removed = PRUNE(.filter = &roots, .max_instances = 9);
  is_removed(&removed, "3 2 4 0 0 -", "what the filter selects");
  removed = PRUNE(.filter = &roots, .max_instances = 3, .after = text("zzz"));
  is_removed(&removed, "0 0 0 0 0 -", "nothing is left after the last");
  end_store();
}

static void
test_bounds(void)
{
  struct dk_instance_filter all = {.struct_size = sizeof all};

  begin_store("bounds");
  run("INSERT INTO instance(instance, birth, status, execution, created_at)"
      " SELECT 'r' || lpad(n::text, 5, '0'), n, 1, 3, 1 FROM generate_series(1, 3000) n");
  struct dk_removed removed = PRUNE(.filter = &all, .max_instances = 1000000);
  is_removed(&removed, "2000 0 0 0 0 r02000", "2,000 are looked at");
  run("INSERT INTO execution(instance, execution, status, started_at, completed_at)"
      " SELECT i.instance, n, CASE n WHEN 3 THEN 1 ELSE 4 END, 1, 2 FROM instance i,"
      " generate_series(1, 3) n");
  run("INSERT INTO history(instance, execution, event) SELECT i.instance, x, n FROM instance i,"
      " generate_series(1, 3) x, generate_series(1, 10) n");
  removed = PRUNE(.filter = &all, .max_instances = 1000000);
  ok(removed.executions + removed.events >= 20000 && removed.executions + removed.events < 20030 &&
     removed.next.ptr, "or about 20,000 rows are deleted: %zu and %zu", (size_t)removed.executions,
     (size_t)removed.events);
  run("INSERT INTO instance(instance, birth, status, execution) VALUES ('large', 1, 1, 30000)");
  run("INSERT INTO execution(instance, execution, status, started_at, completed_at)"
      " SELECT 'large', n, 4, 1, 2 FROM generate_series(1, 30000) n");
  removed = PRUNE(.instance = text("large"), .keep = 2);
  is_removed(&removed, "1 29998 0 0 0 -", "one instance is pruned whole");
  end_store();
}

int
main(void)
{
  plan(NO_PLAN);
  begin_stores();
  test_which();
  test_not_found();
  test_rest();
  test_no_waits();
  test_pages();
  test_bounds();
  end_stores();
  return done_testing();
}
