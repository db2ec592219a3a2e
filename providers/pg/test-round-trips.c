/* SPDX-License-Identifier: Apache-2.0 */
/* Each attempt of an operation is one round trip, counted at the wire: cold fetches, large commits
 * and refusals among them.  A connection is there already, and stays.  And the server finds nothing
 * to warn of in its log. */
#include <durakit/admin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-handle.h"
#include "providers/pg/test-wire.h"

/* What went over the wire since the last wire_forget: `n` requests with an answer each. */
static void
test_wire_said(struct wire *wire, size_t n, const char *what)
{
  struct wire_counts counts = wire_counts(wire);

  if (!ok(counts.round_trips == n && counts.answers == n && counts.connections == 0,
          "%s: %zu round trip%s", what, n, n == 1 ? "" : "s"))
    diag("round trips %zu, answers %zu, new connections %zu", counts.round_trips, counts.answers,
         counts.connections);
  wire_forget(wire);
}

/* ---- the wire itself ------------------------------------------------------------------------- */

static void
test_wire(struct wire *wire)
{
  PGconn *pg = connect_to(wire_conninfo(wire));
  struct wire_counts counts = wire_counts(wire);

  ok(counts.connections == 1 && counts.round_trips == 0, "logging in is one connection (%zu), and "
     "no round trip (%zu)", counts.connections, counts.round_trips);
  wire_forget(wire);
  sql(pg, "SELECT 1");
  test_wire_said(wire, 1, "a statement");
  PQclear(PQprepare(pg, "two", "SELECT 2", 0, NULL));
  PQclear(PQexecPrepared(pg, "two", 0, NULL, NULL, NULL, 0));
  test_wire_said(wire, 2, "one that is prepared, and run");
  sql(pg, "SELECT repeat('x', 1000000)");
  test_wire_said(wire, 1, "a large answer");
  sql(pg, "DO $$ BEGIN RAISE NOTICE 'heard'; END $$");
  ok(wire_notices(wire) == 1 && strcmp(wire_notice(wire, 0), "heard") == 0, "a notice is kept");
  PQfinish(pg);
  wire_forget(wire);
}

/* ---- operations ------------------------------------------------------------------------------ */

enum { EVENTS = 3000, LARGE = 1 << 20 };

static void
expect(struct handle_under_test *h, dk_status found, dk_status expected, const char *what)
{
  if (found != expected)
    BAIL_OUT("%s: status %d, not %d: %s", what, (int)found, (int)expected,
             dk_caller_failure(h->caller)->text);
}

static void
test_enqueue(struct handle_under_test *h, struct wire *wire)
{
  char *large = calloc(1, LARGE);
  struct dk_item item = {.struct_size = sizeof item, .instance = text("order"), .id = text("id"),
                         .payload = {large, LARGE}};
  dk_status status = dk_store_enqueue_for_orchestrator(h->store, h->caller, &item);

  expect(h, status, DK_OK, "a large message");
  test_wire_said(wire, 1, "enqueue_for_orchestrator, 1 MiB");
  status = dk_store_enqueue_for_orchestrator(h->store, h->caller, &item);
  expect(h, status, DK_DUPLICATE, "again");
  test_wire_said(wire, 1, "a duplicate");
  struct dk_item work = {.struct_size = sizeof work, .instance = text("other"), .execution_id = 1,
                         .activity_id = 1, .payload = text("do")};
  status = dk_store_enqueue_for_worker(h->store, h->caller, &work);
  expect(h, status, DK_OK, "enqueue_for_worker");
  test_wire_said(wire, 1, "enqueue_for_worker");
  free(large);
}

/* Many events, activities and messages; then it continues. */
static void
commit_much(struct handle_under_test *h, struct dk_bytes token)
{
  struct dk_event *events = calloc(EVENTS, sizeof *events);
  struct dk_item *items = calloc(EVENTS, sizeof *items);
  const struct dk_item **list = calloc(EVENTS, sizeof *list);
  struct dk_item message = {.struct_size = sizeof message, .instance = text("order"),
                            .payload = text("go on")};
  const struct dk_item *messages[] = {&message};
  struct dk_turn_result result = {
    .struct_size = sizeof result, .execution_id = 1, .name = text("order"), .version = text("1"),
    .owner = text("me"), .events = events, .n_events = EVENTS, .worker_items = list,
    .n_worker_items = EVENTS, .orchestrator_items = messages, .n_orchestrator_items = 1};
  struct dk_commit_outcome outcome;

  if (!events || !items || !list)
    BAIL_OUT("out of memory");
  for (uint64_t i = 0; i < EVENTS; i++) {
    events[i] = (struct dk_event){i + 1, text("happened")};
    items[i] = (struct dk_item){.struct_size = sizeof items[i], .execution_id = 1,
                                .activity_id = i + 1, .payload = text("do")};
    list[i] = &items[i];
  }
  expect(h, dk_store_ack_orchestration_item(h->store, h->caller, token, &result, &outcome), DK_OK,
         "a large commit");
  free(list);
  free(items);
  free(events);
}

static void
test_turns(struct handle_under_test *h, struct wire *wire)
{
  struct dk_commit_outcome outcome;
  struct dk_turn *turn = fetch_turn_as(h, "me");

  ok(turn->n_messages == 1 && !turn->head.known, "the first turn");
  test_wire_said(wire, 1, "fetch_orchestration_item, of an unknown instance");
  commit_much(h, turn->head.lock_token);
  test_wire_said(wire, 1, "ack_orchestration_item, 3,000 events and 3,000 activities");
  turn = fetch_turn_as(h, "me");
  ok(turn->n_events == 0, "an owner that has the history gets none");
  test_wire_said(wire, 1, "fetch_orchestration_item, warm");
  expect(h, dk_store_renew_orchestration_item_lock(h->store, h->caller, turn->head.lock_token,
                                                   LEASE), DK_OK, "renew");
  test_wire_said(wire, 1, "renew_orchestration_item_lock");
  expect(h, dk_store_abandon_orchestration_item(h->store, h->caller, turn->head.lock_token, 0, 0),
         DK_OK, "abandon");
  test_wire_said(wire, 1, "abandon_orchestration_item");
  expect(h, dk_store_renew_orchestration_item_lock(h->store, h->caller, turn->head.lock_token,
                                                   LEASE), DK_LOCK_LOST, "renew, dead");
  test_wire_said(wire, 1, "a dead token");
  turn = fetch_turn_as(h, "another");
  ok(turn->n_events == EVENTS, "another gets the whole history: %zu events", turn->n_events);
  test_wire_said(wire, 1, "fetch_orchestration_item, cold");
  commit_cancelling(h, turn->head.lock_token, 1, EVENTS - 1, &outcome);
  ok(outcome.report.free_rows == EVENTS - 1, "%llu rows are deleted",
     (unsigned long long)outcome.report.free_rows);
  test_wire_said(wire, 1, "ack_orchestration_item, 2,999 cancellations");
  expect(h, dk_store_fetch_orchestration_item(
              h->store, h->caller,
              &(struct dk_fetch_turn){.struct_size = sizeof(struct dk_fetch_turn), .lock_ms = 1},
              &turn), DK_NOTHING, "fetch nothing");
  test_wire_said(wire, 1, "fetch_orchestration_item that finds nothing");
}

static void
test_work(struct handle_under_test *h, struct wire *wire)
{
  struct dk_history *history;
  struct dk_works *works;

  struct dk_bytes first = fetch_work(h);
  test_wire_said(wire, 1, "fetch_work_item");
  expect(h, dk_store_renew_work_item_lock(h->store, h->caller, first, LEASE), DK_OK, "renew");
  test_wire_said(wire, 1, "renew_work_item_lock");
  ack_work(h, first, "order");
  test_wire_said(wire, 1, "ack_work_item, with a completion");
  struct dk_bytes second = fetch_work(h);
  wire_forget(wire);
  expect(h, dk_store_abandon_work_item(h->store, h->caller, second, A_DAY, 0), DK_OK, "abandon");
  test_wire_said(wire, 1, "abandon_work_item");
  expect(h, dk_store_fetch_work_item(
              h->store, h->caller,
              &(struct dk_fetch_work){.struct_size = sizeof(struct dk_fetch_work), .lock_ms = 1,
                                      .max_items = 9, .tag_rule = DK_TAG_ANY},
              &works), DK_NOTHING, "fetch nothing");
  test_wire_said(wire, 1, "fetch_work_item that finds nothing");
  expect(h, dk_store_release_fetch(h->store, h->caller, 1), DK_OK, "release");
  test_wire_said(wire, 1, "release_fetch that finds nothing");
  expect(h, dk_store_read_history(
              h->store, h->caller,
              &(struct dk_read_history){.struct_size = sizeof(struct dk_read_history),
                                        .instance = text("order")}, &history), DK_OK, "history");
  ok(history->n_events == EVENTS, "the whole history is read");
  test_wire_said(wire, 1, "read_history, 3,000 events");
}

static void
test_admin(struct handle_under_test *h, struct wire *wire)
{
  struct dk_bytes order = text("order");
  struct dk_instance_filter all = {.struct_size = sizeof all};
  struct dk_list_instances instances = {.struct_size = sizeof instances, .filter = &all};
  struct dk_list_executions executions = {.struct_size = sizeof executions, .instance = order};
  struct dk_read_messages messages = {.struct_size = sizeof messages, .instance = order};
  struct dk_delete_instances deletion = {.struct_size = sizeof deletion, .instances = &order,
                                         .n_instances = 1};
  struct dk_delete_matching matching = {.struct_size = sizeof matching, .filter = &all,
                                        .max_instances = 1};
  struct dk_prune prune = {.struct_size = sizeof prune, .filter = &all, .max_instances = 9};
  struct dk_instances *found;
  struct dk_executions *run;
  struct dk_messages *waiting;
  struct dk_stats stats;

  expect(h, dk_store_list_instances(h->store, h->caller, &instances, &found), DK_OK, "a list");
  test_wire_said(wire, 1, "list_instances");
  expect(h, dk_store_list_executions(h->store, h->caller, &executions, &run), DK_OK, "a list");
  test_wire_said(wire, 1, "list_executions");
  expect(h, dk_store_read_messages(h->store, h->caller, &messages, &waiting), DK_OK, "messages");
  test_wire_said(wire, 1, "read_messages");
  expect(h, dk_store_read_stats(h->store, h->caller, &stats), DK_OK, "counts");
  ok(found->n_items > 0 && run->n_items == 1 && stats.events == EVENTS, "with what there is");
  test_wire_said(wire, 1, "read_stats");
  expect(h, dk_store_prune_executions(h->store, h->caller, &prune, NULL), DK_OK, "a prune");
  test_wire_said(wire, 1, "prune_executions");
  expect(h, dk_store_delete_matching(h->store, h->caller, &matching, NULL), DK_OK, "a filter");
  test_wire_said(wire, 1, "delete_matching");
  expect(h, dk_store_delete_instances(h->store, h->caller, &deletion, NULL), DK_REFUSED, "it runs");
  test_wire_said(wire, 1, "delete_instances that is refused");
  deletion.flags = DK_DELETE_FORCE;
  expect(h, dk_store_delete_instances(h->store, h->caller, &deletion, NULL), DK_OK, "by force");
  test_wire_said(wire, 1, "delete_instances, 3,000 events and all the rest");
}

/* What is prepared in the sessions of this wire, as the server knows them. */
static void
test_reuse(struct handle_under_test *h, struct wire *wire)
{
  PGconn *pg = connect_to(getenv("DURAKIT_PG"));

  for (int i = 0; i < 3; i++) {
    enqueue(h, "reused");
    test_wire_said(wire, 1, i == 0 ? "a first use" : "a reuse");
  }
  /* The prepared statement is deleted without the plugin's knowledge, with the next message. */
  sql(pg, "CREATE FUNCTION \"round \"\"trips\".forget() RETURNS trigger LANGUAGE plpgsql AS"
          " 'BEGIN DEALLOCATE ALL; RETURN NULL; END'");
  sql(pg, "CREATE TRIGGER forget AFTER INSERT ON \"round \"\"trips\".message"
          " EXECUTE FUNCTION \"round \"\"trips\".forget()");
  enqueue(h, "forgetful");
  sql(pg, "DROP TRIGGER forget ON \"round \"\"trips\".message");
  sql(pg, "DROP FUNCTION \"round \"\"trips\".forget()");
  wire_forget(wire);
  enqueue(h, "again");
  test_wire_said(wire, 4, "one that was deleted: tried, session reset, settled, prepared and run");
  enqueue(h, "again");
  test_wire_said(wire, 1, "and from then on reused");
  char *n = sql_value(pg, "SELECT count(*) FROM \"round \"\"trips\".message"
                          " WHERE instance = 'again'");
  is(n, "2", "each was done once");
  free(n);
  PQfinish(pg);
}

/* Where sessions are lent out. */
static void
test_lent(struct wire *wire)
{
  struct handle_under_test h;

  wire_pose_as_pooler(wire);
  open_store(&h, wire_conninfo(wire), "round \"trips");
  wire_forget(wire);
  for (int i = 0; i < 3; i++) {
    enqueue(&h, "lent");
    test_wire_said(wire, 1, "through a pooler");
  }
  close_store(&h);
}

/* ---- the server's log ------------------------------------------------------------------------ */

static FILE *
open_log(void)
{
  const char *path = getenv("DURAKIT_PG_LOG");
  FILE *log = path ? fopen(path, "r") : NULL;

  if (log && fseek(log, 0, SEEK_END) != 0)
    BAIL_OUT("%s: cannot be read", path);
  return log;
}

static char found_line[1000];

/* Of the lines since the last count those with this word; the last of them is kept. */
static int
count_lines(FILE *log, const char *word)
{
  char line[1000];
  int n = 0;

  clearerr(log); /* it was read to its end before, and has grown */
  while (fgets(line, sizeof line, log))
    if (strstr(line, word)) {
      snprintf(found_line, sizeof found_line, "%s", line);
      n++;
    }
  return n;
}

static void
test_log(FILE *log)
{
  if (!log) {
    skip(2, "DURAKIT_PG_LOG is not set, or cannot be read");
    return;
  }
  if (!cmp_ok(count_lines(log, "WARNING:"), "==", 0,
              "all this has put no warning into the server's log"))
    diag("%s", found_line);
  PGconn *pg = connect_to(getenv("DURAKIT_PG"));
  sql(pg, "SET LOCAL jit = off");
  PQfinish(pg);
  cmp_ok(count_lines(log, "WARNING:"), "==", 1, "where one would be seen");
  fclose(log);
}

int
main(void)
{
  struct handle_under_test h;

  begin();
  struct wire *wire = wire_new(getenv("DURAKIT_PG"));
  if (!wire)
    plan(SKIP_ALL, "the server of DURAKIT_PG is on no unix socket");
  FILE *log = open_log();
  test_wire(wire);
  open_store(&h, wire_conninfo(wire), "round \"trips");
  enqueue(&h, "first");
  commit_first(&h, fetch_turn(&h), 0);
  wire_forget(wire);
  test_enqueue(&h, wire);
  test_turns(&h, wire);
  test_work(&h, wire);
  test_admin(&h, wire);
  test_reuse(&h, wire);
  close_store(&h);
  test_lent(wire);
  destroy_store(wire_conninfo(wire), "round \"trips");
  test_log(log);
  wire_free(wire);
  end();
  return done_testing();
}
