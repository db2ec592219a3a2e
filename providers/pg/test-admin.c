/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at instances: what is listed, in which order, by which filter, with which values; and
 * that it disturbs no other operation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-instances.h"

/* ---- the list -------------------------------------------------------------------------------- */

/* Rows as the operations leave them: the one instance that each filter of the next test is about,
 * and what makes it differ from its neighbours. */
static void
given_rows(const char *schema)
{
  static const char *const rows[] = {
    "INSERT INTO instance(instance, birth, status, execution, last_event, name, version, parent,"
    " created_at) VALUES ('B', 1, 1, 1, 3, 'order', '1', NULL, 1000),"
    " ('a', 2, 2, 1, 3, 'order', '2', NULL, 2000), ('a1', 3, 3, 1, 3, 'Order', '1', 'a', 2001),"
    " ('a2', 4, 5, 1, 3, 'order_', '1', 'a', 3000), ('b', 5, 4, 2, 0, 'order', '1.0', 'B', 999),"
    " ('\xc3\xa4', 6, 2, 2, 3, 'order', '1', 'absent', 2000)",
    "INSERT INTO execution(instance, execution, status, started_at, completed_at, output) VALUES"
    " ('B', 1, 1, 1000, 0, NULL), ('a', 1, 2, 2000, 5000, 'out'), ('a1', 1, 3, 2001, 5001, ''),"
    " ('a2', 1, 5, 3000, 7000, NULL), ('b', 1, 4, 999, 1500, NULL),"
    " ('b', 2, 4, 1500, 4999, 'next'),"
    " ('\xc3\xa4', 1, 4, 2000, 2500, 'early'), ('\xc3\xa4', 2, 2, 2500, 5000, 'late')",
    "INSERT INTO instance(instance, ready_at) VALUES ('p', 9000000000000), ('q', 9000000000000),"
    " ('left over', NULL)",
    "INSERT INTO message(instance, visible_at, seq, enqueued_at, id) VALUES"
    " ('p', 9000000000000, 8, 2500, NULL), ('p', 9000000000000, 7, 2000, 'x'),"
    " ('q', 9000000000000, 9, 6000, NULL), ('B', 9000000000000, 10, 1, NULL)",
  };

  sql(plain, "SET search_path TO \"%s\"", schema);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    sql(plain, "%s", rows[i]);
  sql(plain, "RESET search_path");
}

/* ADMIN-1: bytewise, also what has not started; an address without messages is none. */
static void
test_order(struct handle_under_test *h)
{
  is(listed(h, NULL, NULL, 0), "B a a1 a2 b p q \xc3\xa4", "all, bytewise");
  is(listed(h, NULL, "a1", 0), "a2 b p q \xc3\xa4", "those after one that exists");
  is(listed(h, NULL, "a11", 2), "a2 b", "two after one that does not exist");
  is(listed(h, NULL, "\xc3\xa4", 0), "", "none after the last");
  is(listed(h, NULL, "A", 1), "B", "the first, after what comes before it");
}

#define STATUS(status) (1u << (status))

static const struct {
  const char *what;
  struct dk_instance_filter filter;
  const char *expected;
} filters[] = {
  {"an empty one", {.flags = 0}, "B a a1 a2 b p q \xc3\xa4"},
  {"roots", {.flags = DK_FILTER_ROOTS}, "B a p q"},
  {"a name", {.name = {"order", 5}}, "B a b \xc3\xa4"},
  {"a version", {.version = {"1", 1}}, "B a1 a2 \xc3\xa4"},
  {"a parent", {.parent_instance = {"a", 1}}, "a1 a2"},
  {"a parent that does not exist", {.parent_instance = {"absent", 6}}, "\xc3\xa4"},
  {"a parent, of roots", {.flags = DK_FILTER_ROOTS, .parent_instance = {"a", 1}}, ""},
  {"what runs", {.statuses = STATUS(DK_RUNNING)}, "B"},
  {"what has failed or was cancelled", {.statuses = STATUS(DK_FAILED) | STATUS(DK_CANCELLED)},
   "a1 a2"},
  {"what has not started", {.statuses = STATUS(DK_NOT_STARTED)}, "p q"},
  {"between two executions", {.statuses = STATUS(DK_CONTINUED_AS_NEW)}, "b"},
  {"created from", {.created_from = 2000}, "a a1 a2 p q \xc3\xa4"},
  {"created before", {.created_before = 2000}, "B b"},
  {"created from, and before", {.created_from = 2000, .created_before = 2001}, "a p \xc3\xa4"},
  {"completed from", {.completed_from = 5000}, "a a1 a2 \xc3\xa4"},
  {"completed before", {.completed_before = 5001}, "a b \xc3\xa4"},
  {"completed from, and before", {.completed_from = 5001, .completed_before = 7000}, "a1"},
  {"what has not completed, before a time", {.statuses = STATUS(DK_RUNNING),
                                             .completed_before = INT64_MAX}, ""},
  {"a name of those completed", {.name = {"order", 5}, .statuses = STATUS(DK_COMPLETED),
                                 .version = {"1", 1}}, "\xc3\xa4"},
};

static struct dk_bytes
bytes(const char *string)
{
  return string ? text(string) : (struct dk_bytes){NULL, 0};
}

/* ADMIN-2. */
static void
test_filters(struct handle_under_test *h)
{
  for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
    struct dk_instance_filter filter = filters[i].filter;
    filter.struct_size = sizeof filter;
    is(listed(h, &filter, NULL, 0), filters[i].expected, "%s", filters[i].what);
  }
  struct dk_instance_filter after = {.struct_size = sizeof after, .parent_instance = text("a")};
  is(listed(h, &after, "a1", 0), "a2", "a page of children");
  is(listed(h, &after, NULL, 1), "a1", "and the one before");
}

static void
test_ids(struct handle_under_test *h)
{
  struct dk_bytes ids[] = {bytes("b"), bytes("absent"), bytes("a"), bytes("b"), bytes("p"),
                           bytes("left over")};
  struct dk_instance_filter filter = {.struct_size = sizeof filter, .flags = DK_FILTER_IDS,
                                      .ids = ids, .n_ids = 6};

  is(listed(h, &filter, NULL, 0), "a b p", "of a list of ids those that exist, each once");
  is(listed(h, &filter, "a", 1), "b", "in pages, too");
  filter.name = bytes("order");
  is(listed(h, &filter, NULL, 0), "a b", "with a name beside it both hold");
  filter.n_ids = 0;
  is(listed(h, &filter, NULL, 0), "", "an empty list selects nothing");
}

static void
test_list(void)
{
  const char *schema = named("list");
  struct handle_under_test h;

  expect_done(open_as(conninfo, schema, CREATE, &h), "a store");
  is(listed(&h, NULL, NULL, 0), "", "an empty store has no instances");
  given_rows(schema);
  test_order(&h);
  test_filters(&h);
  test_ids(&h);
  struct dk_instance late = told(&h, "\xc3\xa4"), none = told(&h, "a2");
  is(late.output.ptr, "late", "the output is that of the current execution");
  ok(!none.output.ptr && told(&h, "a1").output.ptr && told(&h, "a1").output.len == 0,
     "an empty one is not an absent one");
  close_store(&h);
  expect_done(try_destroy(schema), "removed");
}

/* ---- one instance ---------------------------------------------------------------------------- */

/* ADMIN-4. */
static void
test_not_started(struct handle_under_test *h, const char *schema)
{
  struct dk_item later = {.struct_size = sizeof later, .instance = text("new"),
                          .visible_at = 9000000000000, .payload = text("later")};

  dk_store_enqueue_for_orchestrator(h->store, h->caller, &later);
  sql(plain, "UPDATE \"%s\".message SET enqueued_at = 4711", schema);
  struct dk_turn *turn = turn_of(h, "new");
  struct dk_instance i = told(h, "new");
  ok(i.status == DK_NOT_STARTED && i.created_at == 4711, "it was created with its oldest message");
  cmp_ok(i.locked_until, ">", turn->head.now, "its turn is held");
  ok(!i.owner.ptr && !i.name.ptr && !i.version.ptr && !i.parent_instance.ptr && !i.output.ptr &&
     !i.birth && !i.execution_id && !i.last_event_id && !i.started_at && !i.completed_at,
     "all else is absent");
  struct dk_turn_result empty = {.struct_size = sizeof empty};
  struct dk_commit_outcome outcome;
  cmp_ok(dk_store_ack_orchestration_item(h->store, h->caller, turn->head.lock_token, &empty,
                                         &outcome), "==", DK_OK, "an empty commit");
  is(listed(h, NULL, NULL, 0), "new", "a message is left");
  cmp_ok(told(h, "new").locked_until, "==", 0, "and its turn is free");
  sql(plain, "UPDATE \"%s\".instance SET ready_at = 0", schema);
  sql(plain, "UPDATE \"%s\".message SET visible_at = 0", schema);
  dk_store_ack_orchestration_item(h->store, h->caller, fetch_turn(h), &empty, &outcome);
  is(listed(h, NULL, NULL, 0), "", "without messages it is not listed");
}

/* ADMIN-3. */
static void
test_facts(struct handle_under_test *h, const char *schema)
{
  static const struct dk_event events[] = {{4, {"a", 1}}, {5, {"b", 1}}};

  COMMIT(h, "inst", .parent_instance = text("mother"), .owner = text("me"), .events = events,
         .n_events = 2, .version = text("7"));
  struct dk_instance first = told(h, "inst");
  ok(first.status == DK_RUNNING && strcmp(first.name.ptr, "order") == 0 &&
     strcmp(first.version.ptr, "7") == 0 && strcmp(first.parent_instance.ptr, "mother") == 0 &&
     strcmp(first.owner.ptr, "me") == 0, "status, name, version, parent and owner");
  ok(first.execution_id == 1 && first.last_event_id == 5 && first.completed_at == 0 &&
     first.created_at <= first.started_at && first.created_at > 0 && !first.output.ptr,
     "numbers and times");
  struct dk_turn *turn = turn_of(h, "inst");
  ok(turn->head.birth == first.birth && first.birth > 0, "the birth that its turns show");
  cmp_ok(told(h, "inst").locked_until, "==", turn->head.now + LEASE, "until when its turn is held");
  sql(plain, "UPDATE \"%s\".instance SET locked_until = 17", schema);
  cmp_ok(told(h, "inst").locked_until, "==", 0, "an expired lease holds nothing");
  sql(plain, "UPDATE \"%s\".instance SET locked_until = 9000000000000", schema);
  sql(plain, "UPDATE \"%s\".instance SET created_at = 17", schema);
  try_to_commit(h, turn->head.lock_token, (struct dk_turn_result){
    .status = DK_CONTINUED_AS_NEW, .output = text("go on")}, NULL);
  struct dk_instance between = told(h, "inst");
  ok(between.status == DK_CONTINUED_AS_NEW && between.execution_id == 1 &&
     between.completed_at >= between.started_at && strcmp(between.output.ptr, "go on") == 0,
     "between two executions the one that has ended is listed");
  ok(!between.owner.ptr && between.last_event_id == 5, "the last commit named no owner");
  COMMIT(h, "inst", .execution_id = 2);
  struct dk_instance next = told(h, "inst");
  ok(next.status == DK_RUNNING && next.execution_id == 2 && next.last_event_id == 0 &&
     next.completed_at == 0 && !next.output.ptr && next.birth == first.birth,
     "then of the next one");
  cmp_ok(next.created_at, "==", 17, "its creation time stays");
}

/* ADMIN-5. */
static void
test_executions(struct handle_under_test *h)
{
  struct dk_list_executions request = {.struct_size = sizeof request, .instance = text("inst")};
  struct dk_executions *all, *some;
  struct dk_history *history;

  for (uint64_t n = 2; n < 11; n++) {
    struct dk_event event = {n, text("x")};
    COMMIT(h, "inst", .execution_id = n, .status = DK_CONTINUED_AS_NEW, .output = text("o"),
           .events = &event, .n_events = n % 2);
    COMMIT(h, "inst", .execution_id = n + 1);
  }
  cmp_ok(dk_store_list_executions(h->store, h->caller, &request, &all), "==", DK_OK, "executions");
  bool are_alike = all->n_items == 11;
  for (size_t i = 0; i < all->n_items; i++) {
    struct dk_execution *e = &all->items[i];
    struct dk_read_history asked = {.struct_size = sizeof asked, .instance = text("inst"),
                                    .execution_id = i + 1};
    dk_store_read_history(h->store, h->caller, &asked, &history);
    are_alike &= e->execution_id == i + 1 && history->execution.status == e->status &&
                 history->execution.last_event_id == e->last_event_id &&
                 history->execution.started_at == e->started_at &&
                 history->execution.completed_at == e->completed_at &&
                 history->execution.output.len == e->output.len;
  }
  ok(are_alike, "each as read_history returns it, 10 after 9");
  request.after = 8;
  request.max_executions = 2;
  dk_store_list_executions(h->store, h->caller, &request, &some);
  ok(some->n_items == 2 && some->items[0].execution_id == 9 && some->items[1].execution_id == 10,
     "two of those above the eighth");
  request.after = INT64_MAX;
  dk_store_list_executions(h->store, h->caller, &request, &some);
  cmp_ok(some->n_items, "==", 0, "none is above all");
  request.instance = text("ins");
  cmp_ok(dk_store_list_executions(h->store, h->caller, &request, &some), "==", DK_OK,
         "an id that does not exist");
  cmp_ok(some->n_items, "==", 0, "has none");
}

/* ADMIN-8: whatever it is, in the order in which it will be delivered. */
static void
test_messages(struct handle_under_test *h)
{
  static const int64_t visible[] = {9000000000002, 9000000000001, 9000000000001, 1};
  static const char *const ids[] = {NULL, "one", NULL, "held"};
  struct dk_read_messages request = {.struct_size = sizeof request, .instance = text("inst")};
  struct dk_messages *found;

  for (int i = 0; i < 4; i++) {
    char payload[] = {(char)('0' + i), '\0'};
    struct dk_item item = {.struct_size = sizeof item, .instance = text("inst"),
                           .id = bytes(ids[i]), .visible_at = visible[i],
                           .payload = text(payload)};
    dk_store_enqueue_for_orchestrator(h->store, h->caller, &item);
  }
  fetch_turn(h);
  cmp_ok(dk_store_read_messages(h->store, h->caller, &request, &found), "==", DK_OK, "messages");
  bool is_whole = found->n_items == 4;
  for (size_t i = 0; is_whole && i < 4; i++) {
    static const int order[] = {3, 1, 2, 0};
    struct dk_message *m = &found->items[i];
    const char *id = ids[order[i]];
    is_whole &= m->payload.ptr[0] == '0' + order[i] && m->visible_at >= visible[order[i]] &&
                m->attempt == 0 && m->enqueued_at > 0 && !m->id.ptr == !id &&
                (!id || strcmp(m->id.ptr, id) == 0);
  }
  ok(is_whole, "held and delayed ones, as they will be delivered");
  request.max_messages = 1;
  dk_store_read_messages(h->store, h->caller, &request, &found);
  ok(found->n_items == 1 && found->items[0].payload.ptr[0] == '3', "the first of them");
  request.instance = text("absent");
  dk_store_read_messages(h->store, h->caller, &request, &found);
  cmp_ok(found->n_items, "==", 0, "an instance that does not exist has none");
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* ADMIN-6: each row counts once, as what it is now. */
static void
test_stats(struct handle_under_test *h, const char *schema)
{
  struct dk_stats s;

  cmp_ok(dk_store_read_stats(h->store, h->caller, &s), "==", DK_OK, "counts of an empty store");
  ok(s.now > 0 && !s.running && !s.events && !s.oldest_message && !s.oldest_activity, "are 0");
  given_rows(schema);
  sql(plain, "SET search_path TO \"%s\"", schema);
  sql(plain, "INSERT INTO history(instance, execution, event) SELECT 'a', 1, n"
      " FROM generate_series(1, 7) n");
  sql(plain, "UPDATE message SET visible_at = 50 WHERE instance = 'p' AND id IS NULL");
  sql(plain, "UPDATE message SET visible_at = 40 WHERE instance = 'B'");
  sql(plain, "UPDATE instance SET locked_until = 9000000000000 WHERE instance = 'B'");
  sql(plain, "UPDATE instance SET locked_until = 10 WHERE instance = 'p'");
  sql(plain, "INSERT INTO work(instance, execution, activity, ready_at, place, epoch, visible_at)"
      " VALUES ('B', 1, 1, 30, 1, 0, 30), ('B', 1, 2, 20, 2, 5, 10),"
      " ('B', 1, 3, 9000000000000, 3, 6, 5), ('B', 1, 4, 9000000000000, 4, 0, 9000000000000)");
  sql(plain, "RESET search_path");
  dk_store_read_stats(h->store, h->caller, &s);
  ok(s.not_started == 2 && s.running == 1 && s.completed == 2 && s.failed == 1 &&
     s.continued_as_new == 1 && s.cancelled == 1, "instances by status");
  ok(s.executions == 8 && s.events == 7, "executions and events");
  ok(s.messages_ready == 1 && s.messages_delayed == 2 && s.messages_locked == 1 &&
     s.oldest_message == 50, "messages: one is ready, one held, two delayed");
  ok(s.activities_ready == 2 && s.activities_delayed == 1 && s.activities_locked == 1 &&
     s.oldest_activity == 10, "activities: one whose lease has ended is ready again");
}

/* ---- no other operation is disturbed --------------------------------------------------------- */

static char *
all_that_is(const char *schema)
{
  char *rows = digest(schema);
  char *whole = sql_value(plain, "SELECT '%s/' || last_value FROM \"%s\".number", rows, schema);

  free(rows);
  return whole;
}

/* ADMIN-7: while other sessions hold each row, and nothing changes. */
static void
test_looking(struct handle_under_test *h, const char *schema)
{
  struct dk_list_executions executions = {.struct_size = sizeof executions, .instance = text("a")};
  struct dk_read_messages messages = {.struct_size = sizeof messages, .instance = text("new id")};
  struct dk_executions *found;
  struct dk_messages *read;
  struct dk_stats stats;
  char *before = all_that_is(schema);

  sql(plain, "BEGIN");
  sql(plain, "SELECT FROM \"%s\".instance FOR UPDATE", schema);
  sql(plain, "UPDATE \"%s\".message SET attempt = 9", schema);
  sql(plain, "DELETE FROM \"%s\".execution", schema);
  is(listed(h, NULL, NULL, 0), "B a a1 a2 b p q \xc3\xa4", "while all rows are held: a list");
  cmp_ok(dk_store_list_executions(h->store, h->caller, &executions, &found), "==", DK_OK,
         "executions");
  cmp_ok(dk_store_read_messages(h->store, h->caller, &messages, &read), "==", DK_OK, "messages");
  cmp_ok(dk_store_read_stats(h->store, h->caller, &stats), "==", DK_OK, "counts");
  cmp_ok(stats.executions, "==", 8, "of what is committed");
  sql(plain, "ROLLBACK");
  char *after = all_that_is(schema);
  is(after, before, "nothing has changed, and no number was drawn");
  free(before);
  free(after);
}

/* The wait for a locked table lasts as long as lock_timeout. */
static void
test_locked_table(struct handle_under_test *h, const char *schema)
{
  struct dk_list_instances request = {.struct_size = sizeof request};
  struct dk_instances *instances;

  sql(plain, "BEGIN");
  sql(plain, "LOCK TABLE \"%s\".instance IN ACCESS EXCLUSIVE MODE", schema);
  cmp_ok(dk_store_list_instances(h->store, h->caller, &request, &instances), "==", DK_BUSY,
         "the wait for a locked table has a limit");
  sql(plain, "ROLLBACK");
}

/* Values that were written by hand, and that no host would accept. */
static void
test_damage(struct handle_under_test *h, const char *schema)
{
  struct dk_list_instances request = {.struct_size = sizeof request};
  struct dk_instances *instances;

  sql(plain, "UPDATE \"%s\".instance SET name = '' WHERE instance = 'a'", schema);
  cmp_ok(dk_store_list_instances(h->store, h->caller, &request, &instances), "==", DK_CORRUPT,
         "a name of no bytes");
  const char *why = dk_caller_failure(h->caller)->text;
  ok(strstr(why, "instance \"a\": its name is not a text"), "is reported, with its instance: %s",
     why);
  request.after = text("a");
  cmp_ok(dk_store_list_instances(h->store, h->caller, &request, &instances), "==", DK_OK,
         "those after it are listed");
}

/* ---- handles that only read ------------------------------------------------------------------ */

static void
test_read_only(const char *schema)
{
  struct dk_prune prune = {.struct_size = sizeof prune, .instance = text("b")};
  struct dk_instance_filter none = {.struct_size = sizeof none};
  struct dk_delete_matching matching = {.struct_size = sizeof matching, .filter = &none,
                                        .max_instances = 1};
  struct handle_under_test h;
  struct dk_stats stats;

  expect_done(open_as(conninfo, schema, RO, &h), "opened to read only");
  ok(dk_store_extension(h.store, DK_ADMIN) != NULL, "it is offered");
  is(listed(&h, NULL, NULL, 2), "B a", "and lists");
  cmp_ok(dk_store_read_stats(h.store, h.caller, &stats), "==", DK_OK, "and counts");
  char *before = digest(schema);
  expect_refused(try_to_delete(&h, "a", DK_DELETE_FORCE, NULL), DK_REFUSED, "read-only",
                 "it deletes nothing");
  cmp_ok(dk_store_delete_matching(h.store, h.caller, &matching, NULL), "==", DK_REFUSED,
         "by no filter either");
  cmp_ok(dk_store_prune_executions(h.store, h.caller, &prune, NULL), "==", DK_REFUSED,
         "and prunes nothing");
  char *after = digest(schema);
  is(after, before, "nothing has changed");
  free(before);
  free(after);
  close_store(&h);
}

int
main(void)
{
  struct handle_under_test h;
  char schema[64];

  plan(NO_PLAN);
  begin_stores();
  test_list();
  snprintf(schema, sizeof schema, "%s", named("one"));
  expect_done(open_as(conninfo, schema, CREATE, &h), "a store");
  test_not_started(&h, schema);
  test_facts(&h, schema);
  test_executions(&h);
  test_messages(&h);
  close_store(&h);
  expect_done(try_destroy(schema), "removed");
  snprintf(schema, sizeof schema, "%s", named("all"));
  expect_done(open_as(conninfo, schema, CREATE, &h), "a store");
  test_stats(&h, schema);
  test_looking(&h, schema);
  test_locked_table(&h, schema);
  test_read_only(schema);
  test_damage(&h, schema);
  close_store(&h);
  expect_done(try_destroy(schema), "removed");
  end_stores();
  return done_testing();
}
