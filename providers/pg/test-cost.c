/* SPDX-License-Identifier: Apache-2.0 */
/* What operations cost the server, counted: the statements of a commit do not grow with what it
 * cancels, rows are found by their keys, and no operation reads past rows that are not its own.
 *
 * auto_explain sends the plan of each statement inside the functions, with the pages that it has
 * touched, as notices to the client; the proxy before the server keeps them.  The connection is
 * warmed while the tables are tiny, and they are never analyzed: what was planned then must do.
 *
 *   DURAKIT_DEEP=1    1,000,000 rows instead of 100,000 where they are others'  */
#include <durakit/admin.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-handle.h"
#include "providers/pg/test-wire.h"

enum { MANY = 100000, WARM = 8, TIMES = 5, MOST_AT_ONCE = 1000, FEW_PAGES = 24,
       FIFTY_PAGES = 1000, FEW_STATEMENTS = 3, A_PAGE = 100 };

struct server {
  PGconn *plain, *super;
  struct wire *wire;
  struct handle_under_test quiet; /* whose statements are not explained: for what is prepared */
};

/* ---- plans ----------------------------------------------------------------------------------- */

/* For all connections of this role that are made from now on. */
static void
explain_all(struct server *s)
{
  static const char *const settings[] = {
    "session_preload_libraries = 'auto_explain'",
    "auto_explain.log_level = 'warning'", /* a session of the plugin's hears no less */
    "auto_explain.log_min_duration = 0",
    "auto_explain.log_nested_statements = on",
    "auto_explain.log_analyze = on",
    "auto_explain.log_buffers = on",
    "auto_explain.log_timing = off",
  };

  sql(s->super, "LOAD 'auto_explain'");
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
    sql(s->super, "ALTER ROLE %s IN DATABASE %s SET %s", PQuser(s->plain), PQdb(s->plain),
        settings[i]);
}

static void
explain_no_more(struct server *s)
{
  sql(s->super, "ALTER ROLE %s IN DATABASE %s RESET ALL", PQuser(s->plain), PQdb(s->plain));
}

/* The tables are as they were written: the server neither analyzes nor cleans them by itself. */
static void
leave_alone(struct server *s, const char *schema)
{
  sql(s->plain, "DO $$ DECLARE t text; BEGIN FOR t IN SELECT format('%%I.%%I', schemaname,"
      " tablename) FROM pg_tables WHERE schemaname = '%s' LOOP EXECUTE 'ALTER TABLE ' || t ||"
      " ' SET (autovacuum_enabled = off)'; END LOOP; END $$", schema);
}

static const char *const queues[] = {"instance", "message", "work", "execution", "history"};

/* A table is walked, row by row. */
static bool
walks_a_table(const char *plan)
{
  for (const char *at = strstr(plan, "Seq Scan on "); at; at = strstr(at + 1, "Seq Scan on "))
    for (size_t i = 0; i < sizeof queues / sizeof queues[0]; i++) {
      size_t length = strlen(queues[i]);
      const char *name = at + strlen("Seq Scan on ");
      if (strncmp(name, queues[i], length) == 0 && strchr(" \n", name[length]))
        return true;
    }
  return false;
}

/* Pages that the statement has touched, and all that ran within it. */
static uint64_t
pages_of(const char *plan)
{
  const char *at = strstr(plan, "Buffers: shared ");
  uint64_t hit = 0, missed = 0;

  if (!at)
    return 0;
  at += strlen("Buffers: shared ");
  if (sscanf(at, "hit=%" SCNu64 " read=%" SCNu64, &hit, &missed) < 1)
    sscanf(at, "read=%" SCNu64, &missed);
  return hit + missed;
}

/* Of the operation that was the last: its own statement is the last that ends. */
static uint64_t
pages(struct wire *wire)
{
  size_t n = wire_notices(wire);

  if (n == 0)
    BAIL_OUT("auto_explain says nothing");
  return pages_of(wire_notice(wire, n - 1));
}

static void
test_no_walks(struct wire *wire, const char *what)
{
  const char *bad = NULL;

  for (size_t i = 0; i < wire_notices(wire); i++)
    if (walks_a_table(wire_notice(wire, i)))
      bad = wire_notice(wire, i);
  if (!ok(!bad && wire_notices(wire) > 0, "%s: of %zu statements none walks a table", what,
          wire_notices(wire)))
    diag("%.3000s", bad ? bad : "there are no plans");
}

/* The test itself finds a statement that walks a table. */
static void
test_finder(struct server *s)
{
  PGconn *pg = connect_to(wire_conninfo(s->wire));

  sql(pg, "SET search_path = cost");
  wire_forget(s->wire);
  sql(pg, "SELECT count(*) FROM message WHERE payload = 'x'");
  ok(wire_notices(s->wire) == 1 && walks_a_table(wire_notice(s->wire, 0)),
     "a statement that walks a table is found");
  sql(pg, "SET enable_seqscan = off");
  wire_forget(s->wire);
  sql(pg, "SELECT count(*) FROM message WHERE instance = 'x'");
  ok(wire_notices(s->wire) == 1 && !walks_a_table(wire_notice(s->wire, 0)),
     "one that uses a key is not reported");
  ok(pages_of("Buffers: shared hit=31 read=2 dirtied=1\n  Buffers: shared hit=9") == 33 &&
       pages_of("Buffers: shared read=4") == 4 && pages_of("Result") == 0,
     "pages are read from plans");
  PQfinish(pg);
}

/* ---- each operation -------------------------------------------------------------------------- */

static struct dk_bytes
next_turn(struct handle_under_test *h, const char *instance)
{
  enqueue(h, instance);
  return fetch_turn_as(h, "me")->head.lock_token;
}

/* ---- looking and removing -------------------------------------------------------------------- */

/* Pages that a list of so many touches, the instances after that one. */
static uint64_t
pages_of_list(struct handle_under_test *h, struct wire *wire,
              const struct dk_instance_filter *filter, const char *after, uint32_t n)
{
  struct dk_list_instances request = {.struct_size = sizeof request, .filter = filter,
                                      .after = text(after), .max_instances = n};
  struct dk_instances *instances;

  wire_forget(wire);
  must(h, dk_store_list_instances(h->store, h->caller, &request, &instances), "list_instances");
  uint64_t touched = pages(wire);
  if (instances->n_items != n)
    BAIL_OUT("a page of %zu instances, not %u", instances->n_items, n);
  test_no_walks(wire, "a list");
  dk_caller_reset(h->caller);
  return touched;
}

/* A mother with ten children, deleted. */
static uint64_t
pages_of_deletion(struct handle_under_test *h, struct wire *wire, PGconn *pg)
{
  struct dk_bytes mother = text("m");
  struct dk_delete_instances request = {.struct_size = sizeof request, .instances = &mother,
                                        .n_instances = 1};
  struct dk_removed removed;

  sql(pg, "INSERT INTO cost.instance(instance, birth, status, execution, parent)"
      " SELECT concat('m', nullif(n, 0)), n + 1, 2, 1, CASE WHEN n > 0 THEN 'm' END"
      " FROM generate_series(0, 10) n");
  sql(pg, "INSERT INTO cost.history SELECT 'm' || n, 1, e, 'x' FROM generate_series(1, 10) n,"
      " generate_series(1, 3) e");
  wire_forget(wire);
  must(h, dk_store_delete_instances(h->store, h->caller, &request, &removed), "delete_instances");
  ok(removed.instances == 11 && removed.events == 30, "a family of 11 is deleted");
  test_no_walks(wire, "a deletion");
  return pages(wire);
}

static uint64_t
pages_of_prune(struct handle_under_test *h, struct wire *wire, PGconn *pg)
{
  struct dk_prune request = {.struct_size = sizeof request, .instance = text("m")};
  struct dk_removed removed;

  sql(pg, "INSERT INTO cost.instance(instance, birth, status, execution) VALUES ('m', 1, 1, 11)");
  sql(pg, "INSERT INTO cost.execution SELECT 'm', n, 4, 1, 1 FROM generate_series(1, 11) n");
  sql(pg, "INSERT INTO cost.history SELECT 'm', n, 1, 'x' FROM generate_series(1, 11) n");
  wire_forget(wire);
  must(h, dk_store_prune_executions(h->store, h->caller, &request, &removed), "prune");
  ok(removed.executions == 10 && removed.events == 10, "ten executions are pruned");
  test_no_walks(wire, "a prune");
  uint64_t touched = pages(wire);
  sql(pg, "DELETE FROM cost.instance WHERE instance = 'm'");
  sql(pg, "DELETE FROM cost.execution WHERE instance = 'm'");
  sql(pg, "DELETE FROM cost.history WHERE instance = 'm'");
  return touched;
}

/* Ten that the filter selects. */
static uint64_t
pages_of_matching(struct handle_under_test *h, struct wire *wire, const char *after)
{
  static const struct dk_instance_filter filter = {.struct_size = sizeof filter,
                                                   .statuses = 1u << DK_COMPLETED};
  struct dk_delete_matching request = {.struct_size = sizeof request, .filter = &filter,
                                       .after = text(after), .max_instances = 10};
  struct dk_removed removed;

  wire_forget(wire);
  must(h, dk_store_delete_matching(h->store, h->caller, &request, &removed), "delete_matching");
  ok(removed.instances == 10, "ten are deleted by a filter");
  test_no_walks(wire, "a deletion by a filter");
  return pages(wire);
}

static void
look_at_rest(struct handle_under_test *h)
{
  struct dk_list_executions executions = {.struct_size = sizeof executions, .instance = text("m")};
  struct dk_read_messages messages = {.struct_size = sizeof messages, .instance = text("m")};
  struct dk_executions *found;
  struct dk_messages *read;

  must(h, dk_store_list_executions(h->store, h->caller, &executions, &found), "list_executions");
  must(h, dk_store_read_messages(h->store, h->caller, &messages, &read), "read_messages");
}

/* What is listed goes by the key, from where the page begins. */
static bool
begins_after(struct wire *wire, const char *index, const char *condition)
{
  for (size_t i = 0; i < wire_notices(wire); i++) {
    const char *scan = strstr(wire_notice(wire, i), index);
    const char *line = scan ? strstr(scan, "Index Cond: ") : NULL;
    if (line && memmem(line, strcspn(line, "\n"), condition, strlen(condition)))
      return true;
  }
  return false;
}

/* Instances that have ended, each with one execution; the last tenth are children of one. */
static void
fill_instances(struct server *s, size_t n)
{
  sql(s->plain, "INSERT INTO cost.instance(instance, birth, status, execution, created_at, parent)"
      " SELECT 'n' || lpad(i::text, 8, '0'), i, 2, 1, i, CASE WHEN i > %zu THEN 'big' END"
      " FROM generate_series(1, %zu) i", n - n / 10, n);
  sql(s->plain, "INSERT INTO cost.execution SELECT 'n' || lpad(i::text, 8, '0'), 1, 2, i, i"
      " FROM generate_series(1, %zu) i", n);
}

/* ADMIN-1: a page costs what it has, wherever it begins. */
static void
test_lists(struct handle_under_test *h, struct server *s, size_t n)
{
  static const char *const places[] = {"beginning", "middle", "end"};
  struct dk_instance_filter children = {.struct_size = sizeof children,
                                        .parent_instance = text("big")};
  size_t numbers[] = {0, n / 2, n - 10 * A_PAGE};
  uint64_t first = 0, first_child = 0;

  for (int i = 0; i < 3; i++) {
    char after[32];
    snprintf(after, sizeof after, "n%08zu", numbers[i]);
    uint64_t touched = pages_of_list(h, s->wire, NULL, after, A_PAGE);
    ok(begins_after(s->wire, "Index Scan using instance_pkey on instance", "instance > "),
       "it begins where the one before has ended");
    first = first ? first : touched;
    ok(touched <= first + first / 5, "a page of 100 at the %s of %zu instances touches %" PRIu64
       " pages, at the beginning %" PRIu64 "; at most a fifth more", places[i], n, touched, first);
    touched = pages_of_list(h, s->wire, &children, after, A_PAGE);
    ok(begins_after(s->wire, "using instance_parent on instance", "parent = "),
       "children are found by their parent");
    first_child = first_child ? first_child : touched;
    ok(touched <= first_child + first_child / 5, "a page of 100 children at the %s touches %" PRIu64
       " pages, at the beginning %" PRIu64 "; at most a fifth more", places[i], touched,
       first_child);
  }
}

/* Of instances without messages it sees nothing. */
static void
test_release(struct handle_under_test *h, struct server *s, size_t n)
{
  wire_forget(s->wire);
  must(h, dk_store_release_fetch(h->store, h->caller, 1), "release_fetch");
  test_no_walks(s->wire, "a release");
  uint64_t touched = pages(s->wire);
  ok(touched <= 2 * FEW_PAGES, "a release among %zu instances touches %" PRIu64
     " pages; at most %d", n, touched, 2 * (int)FEW_PAGES);
}

static void
test_instances(struct handle_under_test *h, struct server *s)
{
  size_t most = getenv("DURAKIT_DEEP") ? 10 * MANY : MANY;
  uint64_t deletion = pages_of_deletion(h, s->wire, s->plain);
  uint64_t prune = pages_of_prune(h, s->wire, s->plain);

  fill_instances(s, most);
  test_lists(h, s, most);
  sql(s->plain, "VACUUM ANALYZE cost.instance, cost.execution"); /* and by what the server knows */
  test_lists(h, s, most);
  test_release(h, s, most);
  uint64_t touched = pages_of_deletion(h, s->wire, s->plain);
  ok(touched <= 3 * deletion, "a deletion of 11 among %zu instances touches %" PRIu64
     " pages, among few %" PRIu64 "; at most three times as many", most, touched, deletion);
  touched = pages_of_prune(h, s->wire, s->plain);
  ok(touched <= 3 * prune, "a prune among %zu touches %" PRIu64 " pages, among few %" PRIu64
     "; at most three times as many", most, touched, prune);
  uint64_t matching = pages_of_matching(h, s->wire, "n");
  char middle[32];
  snprintf(middle, sizeof middle, "n%08zu", most / 2);
  touched = pages_of_matching(h, s->wire, middle);
  ok(touched <= matching + matching / 5, "a deletion by a filter from the middle on touches %"
     PRIu64 " pages, from the beginning %" PRIu64 "; at most a fifth more", touched, matching);
  sql(s->plain, "DELETE FROM cost.instance WHERE instance LIKE 'n%%'");
  sql(s->plain, "DELETE FROM cost.execution WHERE instance LIKE 'n%%'");
  sql(s->plain, "VACUUM cost.instance, cost.execution");
}

/* All of them, some times: what is prepared and cached then is for tables of a few rows. */
static void
warm(struct handle_under_test *h, struct wire *wire)
{
  for (int i = 0; i < WARM; i++) {
    struct dk_commit_outcome outcome;
    struct dk_works *works;
    char name[32];
    snprintf(name, sizeof name, "warm-%d", i);
    given_activities(h, name, 4);
    struct dk_bytes token = fetch_turn_as(h, "me")->head.lock_token;
    dk_store_renew_orchestration_item_lock(h->store, h->caller, token, LEASE);
    dk_store_abandon_orchestration_item(h->store, h->caller, token, 0, 0);
    commit_cancelling(h, fetch_turn(h), 1, 2, &outcome);
    token = fetch_work(h);
    dk_store_renew_work_item_lock(h->store, h->caller, token, LEASE);
    ack_work(h, token, name);
    commit_cancelling(h, fetch_turn(h), 3, 2, &outcome);
    struct dk_fetch_work none = {.struct_size = sizeof none, .lock_ms = 1, .max_items = 1};
    dk_store_fetch_work_item(h->store, h->caller, &none, &works);
    dk_store_release_fetch(h->store, h->caller, 1);
    look_at_rest(h);
    dk_caller_reset(h->caller);
  }
  test_no_walks(wire, "all operations on a store of a few rows");
  wire_forget(wire);
}

/* ---- cancellations --------------------------------------------------------------------------- */

/* Statements of the commit that cancels n of the instance's activities. */
static size_t
statements_of_commit(struct handle_under_test *h, struct wire *wire, const char *instance, size_t n)
{
  struct dk_commit_outcome outcome;

  given_activities(h, instance, n);
  struct dk_bytes token = fetch_turn_as(h, "me")->head.lock_token;
  wire_forget(wire);
  commit_cancelling(h, token, 1, n, &outcome);
  ok(outcome.report.free_rows == n && wire_counts(wire).round_trips == 1,
     "%zu rows are deleted in one round trip, %" PRIu64 " are reported", n,
     outcome.report.free_rows);
  dk_caller_reset(h->caller);
  return wire_notices(wire);
}

/* By all three columns of the key; and what is deleted is that, or where that has led. */
static bool
cancels_by_identity(struct wire *wire)
{
  bool finds = false, deletes = false;

  for (size_t i = 0; i < wire_notices(wire); i++) {
    const char *plan = wire_notice(wire, i);
    const char *scan = strstr(plan, "Index Scan using work_pkey on work");
    const char *condition = scan ? strstr(scan, "Index Cond: ") : NULL;
    const char *delete = strstr(plan, "Delete on work");
    if (condition) {
      size_t length = strcspn(condition, "\n");
      finds |= memmem(condition, length, "instance = ", 11) &&
               memmem(condition, length, "execution = ", 12) &&
               memmem(condition, length, "activity = ", 11);
    }
    deletes |= delete && (strstr(delete, "Index Scan using work_pkey on work") ||
                          strstr(delete, "Tid Scan on work"));
  }
  return finds && deletes;
}

/* On the wire it is one, with 100,000 cancels as with none; inside, some few, however many. */
static void
test_statements(struct handle_under_test *h, struct wire *wire)
{
  static const size_t counts[] = {1, 50, 2000, 20000, 100000};
  size_t without = statements_of_commit(h, wire, "none", 0);

  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    char name[32];
    snprintf(name, sizeof name, "many-%zu", counts[i]);
    size_t with = statements_of_commit(h, wire, name, counts[i]);
    ok(with <= without + FEW_STATEMENTS, "%zu cancels take %zu statements inside, none takes %zu; "
       "at most %d more", counts[i], with, without, FEW_STATEMENTS);
    test_no_walks(wire, "a commit that cancels");
    ok(cancels_by_identity(wire), "each row is found by its identity");
  }
}

static int
by_size(const void *a, const void *b)
{
  const uint64_t *x = a, *y = b;

  return (*x > *y) - (*x < *y);
}

static uint64_t
median(uint64_t values[TIMES])
{
  qsort(values, TIMES, sizeof values[0], by_size);
  return values[TIMES / 2];
}

/* Pages that 50 cancels touch. */
static uint64_t
pages_of_fifty(struct handle_under_test *h, struct wire *wire, const char *among)
{
  struct dk_commit_outcome outcome;
  uint64_t values[TIMES];

  for (int i = 0; i < TIMES; i++) {
    char name[32];
    snprintf(name, sizeof name, "fifty-%s-%d", among, i);
    given_activities(h, name, 50);
    struct dk_bytes token = fetch_turn_as(h, "me")->head.lock_token;
    wire_forget(wire);
    commit_cancelling(h, token, 1, 50, &outcome);
    values[i] = pages(wire);
    test_no_walks(wire, "50 cancels");
    dk_caller_reset(h->caller);
  }
  return median(values);
}

/* Rows of others, written by SQL: they do not concern the commit that cancels. */
static void
fill_queue(struct server *s, size_t n)
{
  sql(s->plain, "INSERT INTO cost.work(instance, execution, activity, ready_at, place, visible_at,"
      " payload) SELECT 'others-' || i / 1000, 1, i, 9000000000000, i, 0, 'do' FROM"
      " generate_series(1, %zu) i ON CONFLICT DO NOTHING", n);
}

static void
test_foreign_rows(struct handle_under_test *h, struct server *s)
{
  size_t most = getenv("DURAKIT_DEEP") ? 10 * MANY : MANY;

  fill_queue(s, 1000);
  uint64_t few = pages_of_fifty(h, s->wire, "few");
  fill_queue(s, most);
  uint64_t many = pages_of_fifty(h, s->wire, "many");
  ok(many <= 2 * few, "50 cancels among %zu rows of others touch %" PRIu64 " pages, among 1,000 %"
     PRIu64 "; at most twice as many", most, many, few);
  sql(s->plain, "DELETE FROM cost.work WHERE instance LIKE 'others-%%'");
  sql(s->plain, "VACUUM cost.work");
}

/* ---- fetches --------------------------------------------------------------------------------- */

static uint64_t
pages_of_turn(struct handle_under_test *h, struct wire *wire)
{
  struct dk_commit_outcome outcome;
  uint64_t values[TIMES];

  for (int i = 0; i < TIMES; i++) {
    enqueue(h, "fetched");
    wire_forget(wire);
    struct dk_turn *turn = fetch_turn_as(h, "me");
    values[i] = pages(wire);
    test_no_walks(wire, "a fetch of a turn");
    if (turn->head.known)
      commit_cancelling(h, turn->head.lock_token, 1, 0, &outcome);
    else
      commit_first(h, turn->head.lock_token, 0);
    dk_caller_reset(h->caller);
  }
  return median(values);
}

static uint64_t
pages_of_work(struct handle_under_test *h, struct wire *wire, const char *among)
{
  struct dk_commit_outcome outcome;
  uint64_t values[TIMES];

  for (int i = 0; i < TIMES; i++) {
    char name[32];
    snprintf(name, sizeof name, "worked-%s-%d", among, i);
    given_activities(h, name, 1);
    commit_cancelling(h, fetch_turn(h), 9, 0, &outcome);
    wire_forget(wire);
    struct dk_bytes token = fetch_work(h);
    values[i] = pages(wire);
    test_no_walks(wire, "a fetch of work");
    ack_work(h, token, NULL);
    dk_caller_reset(h->caller);
  }
  return median(values);
}

static uint64_t
pages_of_nothing(struct handle_under_test *h, struct wire *wire, bool work)
{
  struct dk_fetch_turn turn_request = {.struct_size = sizeof turn_request, .lock_ms = 1};
  struct dk_fetch_work work_request = {.struct_size = sizeof work_request, .lock_ms = 1,
                                       .max_items = 1, .tag_rule = DK_TAG_ANY};
  uint64_t values[TIMES];
  struct dk_turn *turn;
  struct dk_works *works;

  for (int i = 0; i < TIMES; i++) {
    wire_forget(wire);
    dk_status status =
      work ? dk_store_fetch_work_item(h->store, h->caller, &work_request, &works)
           : dk_store_fetch_orchestration_item(h->store, h->caller, &turn_request, &turn);
    if (status != DK_NOTHING)
      BAIL_OUT("a fetch that should find nothing: status %d", (int)status);
    values[i] = pages(wire);
    test_no_walks(wire, "a fetch that finds nothing");
  }
  return median(values);
}

/* An index without rows has no pages; with 100,000 it is three pages deep, and has thousands. */
static void
test_ratio(uint64_t many, uint64_t none, const char *what, const char *among)
{
  ok(many <= 2 * none || many <= FEW_PAGES, "%s among 100,000 %s touches %" PRIu64 " pages, among"
     " none %" PRIu64 "; at most twice as many, or %d", what, among, many, none, FEW_PAGES);
}

static void
test_timers(struct handle_under_test *h, struct server *s)
{
  uint64_t turn = pages_of_turn(h, s->wire), none = pages_of_nothing(h, s->wire, false);

  commit_timers(&s->quiet, next_turn(&s->quiet, "clock"), MANY);
  dk_caller_reset(s->quiet.caller);
  test_ratio(pages_of_turn(h, s->wire), turn, "a fetch of a turn", "future timers");
  test_ratio(pages_of_nothing(h, s->wire, false), none, "a fetch that finds no turn",
             "future timers");
}

static void
hold_work(struct handle_under_test *h, size_t n)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = MOST_AT_ONCE,
                                  .lock_ms = LEASE, .tag_rule = DK_TAG_ANY};
  struct dk_works *works;

  for (size_t held = 0; held < n; held += works->n_items) {
    dk_caller_reset(h->caller);
    if (dk_store_fetch_work_item(h->store, h->caller, &request, &works) != DK_OK)
      BAIL_OUT("no work: %s", dk_caller_failure(h->caller)->text);
  }
  dk_caller_reset(h->caller);
}

/* What was claimed leaves dead entries behind, until the server cleans up, as it does by itself
 * once a minute. */
static void
test_leases(struct handle_under_test *h, struct server *s)
{
  uint64_t work = pages_of_work(h, s->wire, "free"), none = pages_of_nothing(h, s->wire, true);
  struct dk_commit_outcome outcome;

  given_activities(&s->quiet, "held", MANY);
  commit_cancelling(&s->quiet, fetch_turn(&s->quiet), MANY + 1, 1, &outcome);
  hold_work(&s->quiet, MANY);
  sql(s->plain, "VACUUM cost.work");
  test_ratio(pages_of_work(h, s->wire, "held"), work, "a fetch of work", "held items");
  test_ratio(pages_of_nothing(h, s->wire, true), none, "a fetch that finds no work", "held items");
}

/* ---- other plans ----------------------------------------------------------------------------- */

static void
set_for_role(struct server *s, const char *what)
{
  sql(s->super, "ALTER ROLE %s IN DATABASE %s %s", PQuser(s->plain), PQdb(s->plain), what);
}

/* When the server knows how large the tables are, and the role has odd wishes: in new sessions. */
static void
test_odd_role(struct server *s)
{
  static const char *const wishes[] = {
    "SET enable_indexscan = off", "SET enable_nestloop = off", "SET enable_tidscan = off",
    "SET random_page_cost = 1000", "SET plan_cache_mode = force_custom_plan",
  };
  struct handle_under_test h;

  sql(s->plain, "VACUUM ANALYZE cost.instance, cost.message, cost.work, cost.execution,"
      " cost.history");
  for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++)
    set_for_role(s, wishes[i]);
  open_store(&h, wire_conninfo(s->wire), "cost");
  warm(&h, s->wire);
  ok(pages_of_fifty(&h, s->wire, "odd") <= FIFTY_PAGES, "50 cancels touch at most %d pages",
     (int)FIFTY_PAGES);
  ok(pages_of_turn(&h, s->wire) <= 2 * FEW_PAGES, "a fetch of a turn at most %d",
     2 * (int)FEW_PAGES);
  ok(pages_of_work(&h, s->wire, "odd") <= FEW_PAGES, "a fetch of work at most %d", (int)FEW_PAGES);
  close_store(&h);
}

int
main(void)
{
  struct handle_under_test h;

  if (!getenv("DURAKIT_PG_SUPER"))
    plan(SKIP_ALL, "auto_explain needs a superuser: DURAKIT_PG_SUPER is not set");
  begin();
  struct server s = {connect_to(getenv("DURAKIT_PG")), connect_to(getenv("DURAKIT_PG_SUPER")),
                     wire_new(getenv("DURAKIT_PG")), {NULL, NULL}};
  if (!s.wire)
    plan(SKIP_ALL, "the server of DURAKIT_PG is on no unix socket");
  open_store(&s.quiet, getenv("DURAKIT_PG"), "cost");
  leave_alone(&s, "cost");
  enqueue(&s.quiet, "first"); /* its connection is there before it would be explained */
  commit_first(&s.quiet, fetch_turn(&s.quiet), 0);
  explain_all(&s);
  open_store(&h, wire_conninfo(s.wire), "cost");
  warm(&h, s.wire);
  test_finder(&s);
  test_instances(&h, &s);
  test_foreign_rows(&h, &s);
  test_timers(&h, &s);
  test_leases(&h, &s);
  test_statements(&h, s.wire);
  test_odd_role(&s);
  close_store(&h);
  close_store(&s.quiet);
  explain_no_more(&s);
  wire_free(s.wire);
  destroy_store(getenv("DURAKIT_PG"), "cost");
  PQfinish(s.plain);
  PQfinish(s.super);
  end();
  return done_testing();
}
