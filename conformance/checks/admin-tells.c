/* SPDX-License-Identifier: Apache-2.0 */
/* ADMIN-3 to ADMIN-6, ADMIN-8: what is reported of an instance, its executions and its messages,
 * and what is counted. */
#include "conformance/checks/admin.h"

/* ---- an instance ----------------------------------------------------------------------------- */

/* ADMIN-3: what the commits have set, as they have set it; the output only if it is asked for. */
void
admin_tells_all(struct dk_check *t)
{
  static const char output[] = "any\0bytes\xff";
  struct dk_turn_result result = {
    .struct_size = sizeof result, .execution_id = 1, .status = DK_FAILED,
    .output = {output, sizeof output}, .name = bytes("order"), .version = bytes("2.0.0"),
    .parent_instance = bytes("parent"), .owner = bytes("host-7")};
  const struct dk_event events[] = {{3, bytes("three")}, {8, bytes("eight")}};

  result.events = events;
  result.n_events = 2;
  given_root(t, "parent", DK_RUNNING);
  must(t, ack_turn(t, next_turn(t, "inst"), .raw = &result));
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, abandon_turn(t, turn->head.lock_token));
  const struct dk_instances *list = list_instances(t, .outputs = true);
  expect_listed(t, list, "inst", "parent");
  const struct dk_instance *inst = &list->items[0];
  expect_equal(t, inst->status, DK_FAILED, "status");
  expect_text(t, inst->name, "order", "name");
  expect_text(t, inst->version, "2.0.0", "version");
  expect_text(t, inst->parent_instance, "parent", "parent");
  expect_text(t, inst->owner, "host-7", "owner");
  expect_equal(t, inst->birth, turn->head.birth, "birth, compared with that of a turn");
  expect_equal(t, inst->execution_id, 1, "execution");
  expect_equal(t, inst->last_event_id, 8, "last event");
  expect_bytes(t, inst->output, result.output, "output");
  expect_text(t, look_at(t, "inst")->output, NULL, "output that was not asked for");
}

/* ADMIN-3: what no commit has set is absent, and not empty. */
void
admin_tells_what_is_absent(struct dk_check *t)
{
  given_root(t, "inst", DK_STATUS_KEEP);
  must(t, ack_turn(t, next_turn(t, "empty"), .status = DK_COMPLETED, .output = ""));
  const struct dk_instances *list = list_instances(t, .outputs = true);
  const struct dk_instance *inst = listed(list, "inst"), *empty = listed(list, "empty");
  expect(t, inst && empty, "both are in the list");
  expect_equal(t, inst->status, DK_RUNNING, "status that no commit has given");
  expect_text(t, inst->parent_instance, NULL, "parent");
  expect_text(t, inst->owner, NULL, "owner");
  expect_text(t, inst->output, NULL, "output");
  expect_equal(t, inst->completed_at, 0, "completed_at");
  expect_equal(t, inst->locked_until, 0, "locked_until");
  expect_text(t, empty->output, "", "an output of no bytes");
  must(t, ack_turn(t, next_turn(t, "inst"), .owner = "me"));
  expect_text(t, look_at(t, "inst")->owner, "me", "owner");
  must(t, ack_turn(t, next_turn(t, "inst")));
  expect_text(t, look_at(t, "inst")->owner, NULL, "owner, when the last commit named none");
}

static void
expect_current(struct dk_check *t, uint64_t execution_id, int32_t status, const char *output)
{
  const struct dk_instances *list = list_instances(t, .only = {.ids = {"inst"}}, .outputs = true);

  expect_listed(t, list, "inst");
  expect_equal(t, list->items[0].execution_id, execution_id, "execution");
  expect_equal(t, list->items[0].status, status, "status of execution %lld",
               (long long)execution_id);
  expect_text(t, list->items[0].output, output, "output of execution %lld",
              (long long)execution_id);
}

/* ADMIN-3: number, status, last event and output are those of the current execution, even between
 * two. */
void
admin_tells_the_current_execution(struct dk_check *t)
{
  must(t, ack_turn(t, next_turn(t, "inst"), .events = {{1}, {2}, {3}}, .output = "first",
                   .status = DK_CONTINUED_AS_NEW));
  expect_current(t, 1, DK_CONTINUED_AS_NEW, "first");
  must(t, enqueue(t, "inst"));
  expect_current(t, 1, DK_CONTINUED_AS_NEW, "first");
  must(t, ack_turn(t, fetch_turn(t), .execution_id = 2, .events = {{1}}));
  expect_current(t, 2, DK_RUNNING, NULL);
  expect_equal(t, look_at(t, "inst")->last_event_id, 1, "last event of the second execution");
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .status = DK_CANCELLED,
                   .output = "why"));
  expect_current(t, 2, DK_CANCELLED, "why");
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 3));
  expect_current(t, 3, DK_RUNNING, NULL);
  expect_equal(t, look_at(t, "inst")->last_event_id, 0, "last event, without events");
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 4, .name = "other", .version = "2.0"));
  expect_text(t, look_at(t, "inst")->name, "other", "name, as the last commit has set it");
  expect_text(t, look_at(t, "inst")->version, "2.0", "version, as the last commit has set it");
}

static void
expect_times(struct dk_check *t, int64_t created, int64_t started, int64_t completed)
{
  const struct dk_instance *inst = look_at(t, "inst");

  expect_equal(t, inst->created_at, created, "created_at");
  expect_equal(t, inst->started_at, started, "started_at");
  expect_equal(t, inst->completed_at, completed, "completed_at");
}

/* ADMIN-3: an instance is created once, by its first message, and started and completed with each
 * execution. */
void
admin_tells_times(struct dk_check *t)
{
  int64_t created = now(t), started = created + 7;

  must(t, enqueue(t, "inst"));
  advance_to(t, started);
  must(t, ack_turn(t, fetch_turn(t)));
  advance(t, 100);
  expect_times(t, created, started, 0);
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_CONTINUED_AS_NEW));
  expect_times(t, created, started, started + 100);
  advance(t, 1111);
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2));
  expect_times(t, created, started + 1211, 0);
  advance(t, 1);
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .status = DK_COMPLETED));
  advance(t, 5);
  expect_times(t, created, started + 1211, started + 1212);
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t), .empty = true));
  expect_times(t, created, started + 1211, started + 1212);
}

static void
expect_created(struct dk_check *t, const char *id, int64_t created)
{
  const struct dk_instances *selected =
    list_instances(t, .only = {.created_from = created, .created_before = created + 1});

  expect_equal(t, look_at(t, id)->created_at, created, "created_at of %s", id);
  expect_listed(t, selected, id);
}

/* ADMIN-3: created_at is the same before the first commit and after it, whichever message that
 * commit consumes. */
void
admin_created_for_good(struct dk_check *t)
{
  int64_t first = now(t), second;

  must(t, enqueue(t, "delayed", .id = "oldest", .delay_ms = 300));
  advance(t, 200);
  must(t, enqueue(t, "delayed", .id = "due"));
  expect_created(t, "delayed", first);
  struct dk_turn *turn = fetch_turn(t);
  expect_ids(t, turn, "due");
  advance(t, 10);
  must(t, ack_turn(t, turn));
  expect_created(t, "delayed", first);
  advance(t, 90);
  must(t, ack_turn(t, fetch_turn(t), .status = DK_CONTINUED_AS_NEW));
  expect_created(t, "delayed", first);

  second = now(t);
  must(t, enqueue(t, "queued", .id = "start"));
  advance(t, 40);
  must(t, enqueue(t, "queued", .id = "later"));
  expect_created(t, "queued", second);
  must(t, ack_turn(t, fetch_turn(t)));
  expect_created(t, "queued", second);
  advance(t, 1000);
  must(t, ack_turn(t, next_turn(t, "queued"), .status = DK_COMPLETED));
  expect_created(t, "queued", second);
}

/* ADMIN-3: locked_until is the end of the lease while the turn is held; at that instant the turn is
 * free. */
void
admin_tells_the_lease(struct dk_check *t)
{
  given_root(t, "inst", DK_RUNNING);
  expect_equal(t, look_at(t, "inst")->locked_until, 0, "locked_until after a commit");
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t, .lock_ms = 5000);
  expect_equal(t, look_at(t, "inst")->locked_until, now(t) + 5000, "locked_until of a held turn");
  advance(t, 1000);
  must(t, renew_turn(t, turn->head.lock_token, .ms = 9000));
  expect_equal(t, look_at(t, "inst")->locked_until, now(t) + 9000, "locked_until after a renewal");
  must(t, abandon_turn(t, turn->head.lock_token));
  expect_equal(t, look_at(t, "inst")->locked_until, 0, "locked_until after an abandon");
  fetch_turn(t, .lock_ms = 3000);
  int64_t ends = now(t) + 3000;
  advance_to(t, ends - 1);
  expect_equal(t, look_at(t, "inst")->locked_until, ends, "locked_until, 1 ms before the end");
  advance_to(t, ends);
  expect_equal(t, look_at(t, "inst")->locked_until, 0, "locked_until at the end of a lease");
  advance(t, 1);
  expect_equal(t, look_at(t, "inst")->locked_until, 0, "locked_until after a lease");
  must(t, ack_turn(t, fetch_turn(t), .status = DK_COMPLETED));
  must(t, enqueue(t, "inst"));
  fetch_turn(t, .lock_ms = 3000);
  expect_equal(t, look_at(t, "inst")->locked_until, now(t) + 3000,
               "locked_until of an ended instance");
}

/* ADMIN-3: what is reported of instances is the same when the store is opened again. */
void
admin_same_after_reopening(struct dk_check *t)
{
  must(t, ack_turn(t, next_turn(t, "inst"), .owner = "me", .parent = "root", .events = {{4}}));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .owner = "me",
                   .status = DK_COMPLETED, .output = "result"));
  must(t, enqueue(t, "pending", .id = "start"));
  const struct dk_instances *was = list_instances(t, .outputs = true);
  const struct dk_stats *counted = read_stats(t);
  close_handle(t, NULL);
  advance(t, 500);
  open_handle(t, NULL);
  const struct dk_instances *is = list_instances(t, .outputs = true);
  expect_listed(t, is, "inst", "pending");
  for (size_t i = 0; i < 2; i++) {
    expect_equal(t, is->items[i].status, was->items[i].status, "status of %zu", i);
    expect_equal(t, is->items[i].created_at, was->items[i].created_at, "created_at of %zu", i);
    expect_equal(t, is->items[i].started_at, was->items[i].started_at, "started_at of %zu", i);
    expect_equal(t, is->items[i].completed_at, was->items[i].completed_at, "completed_at");
    expect_bytes(t, is->items[i].owner, was->items[i].owner, "owner of %zu", i);
    expect_bytes(t, is->items[i].parent_instance, was->items[i].parent_instance, "parent");
    expect_bytes(t, is->items[i].output, was->items[i].output, "output of %zu", i);
  }
  expect_equal(t, read_stats(t)->events, counted->events, "events");
  expect_equal(t, read_stats(t)->executions, counted->executions, "executions");
  expect_text(t, read_messages(t, "pending")->items[0].id, "start", "id of the message");
}

/* ADMIN-3, ADMIN-5, ADMIN-8: large outputs and payloads are reported as they are. */
void
admin_tells_what_is_large(struct dk_check *t)
{
  enum { LARGE = 60000 };
  struct dk_bytes first = filled(t, LARGE, 'a'), second = filled(t, LARGE, 'b');

  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_CONTINUED_AS_NEW, .output = first.ptr));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .status = DK_COMPLETED,
                   .output = second.ptr));
  must(t, enqueue(t, "inst", .bytes = first));
  const struct dk_instances *list = list_instances(t, .outputs = true);
  expect_listed(t, list, "inst");
  expect_bytes(t, list->items[0].output, second, "output of the instance");
  const struct dk_executions *executions = list_executions(t, "inst");
  expect_equal(t, executions->n_items, 2, "executions");
  expect_bytes(t, executions->items[0].output, first, "output of the first execution");
  expect_bytes(t, executions->items[1].output, second, "output of the second execution");
  const struct dk_messages *messages = read_messages(t, "inst");
  expect_equal(t, messages->n_items, 1, "messages");
  expect_bytes(t, messages->items[0].payload, first, "payload of the message");
}

/* ---- what has not started -------------------------------------------------------------------- */

static void
expect_pending(struct dk_check *t, bool is_held)
{
  const struct dk_instances *list =
    list_instances(t, .only = {.ids = {"inst"}}, .outputs = true);

  expect_listed(t, list, "inst");
  const struct dk_instance *inst = &list->items[0];
  expect_equal(t, inst->status, DK_NOT_STARTED, "status before the first commit");
  expect(t, (inst->locked_until != 0) == is_held,
         "locked_until is set while the turn is held, and only then");
  expect_text(t, inst->owner, NULL, "owner");
  expect_text(t, inst->name, NULL, "name");
  expect_text(t, inst->version, NULL, "version");
  expect_text(t, inst->parent_instance, NULL, "parent");
  expect_text(t, inst->output, NULL, "output");
  expect_equal(t, (int64_t)inst->birth + inst->started_at + inst->completed_at, 0,
               "birth and times");
  expect_equal(t, inst->execution_id + inst->last_event_id, 0, "execution and last event");
}

/* ADMIN-4: an id with messages has not started until its first commit, or until its last message is
 * removed. */
void
admin_not_started(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "start", .delay_ms = 400));
  expect_pending(t, false);
  advance(t, 400);
  struct dk_turn *turn = fetch_turn(t, .owner = "me");
  expect_pending(t, true);
  must(t, ack_turn(t, turn, .empty = true));
  expect_none_listed(t, list_instances(t));
  expect_none_listed(t, list_instances(t, .only = {.statuses = WITH_STATUS(DK_NOT_STARTED)}));
  must(t, enqueue(t, "inst"));
  turn = fetch_turn(t);
  must(t, abandon_turn(t, turn->head.lock_token));
  expect_pending(t, false);
  expect_listed(t, list_instances(t, .only = {.statuses = WITH_STATUS(DK_NOT_STARTED)}), "inst");
  must(t, ack_turn(t, fetch_turn(t)));
  expect_equal(t, look_at(t, "inst")->status, DK_RUNNING, "status after the first commit");
  expect_none_listed(t, list_instances(t, .only = {.statuses = WITH_STATUS(DK_NOT_STARTED)}));
}

/* ADMIN-4: what has not started is as old as the oldest of its stored messages, whenever that is
 * due. */
void
admin_age_of_not_started(struct dk_check *t)
{
  int64_t first = now(t);

  must(t, enqueue(t, "inst", .id = "first", .delay_ms = 300));
  advance(t, 200);
  must(t, enqueue(t, "inst", .id = "second"));
  expect_equal(t, look_at(t, "inst")->created_at, first,
               "created_at, by a message that is not due");
  advance(t, 100);
  expect_listed(t, list_instances(t, .only = {.created_from = first, .created_before = first + 1}),
                "inst");
  expect_none_listed(t, list_instances(t, .only = {.created_from = first + 1}));
  struct dk_turn *turn = fetch_turn(t, .max_messages = 1);
  expect_ids(t, turn, "second");
  must(t, ack_turn(t, turn, .empty = true));
  expect_equal(t, look_at(t, "inst")->created_at, first, "created_at, by the message that is left");
  must(t, ack_turn(t, fetch_turn(t), .empty = true));
  advance(t, 50);
  must(t, enqueue(t, "inst"));
  expect_equal(t, look_at(t, "inst")->created_at, first + 350, "created_at of an id used again");
}

/* ---- its executions -------------------------------------------------------------------------- */

/* ADMIN-5: executions are listed in the order of their numbers, each as read_history reports it. */
void
admin_executions(struct dk_check *t)
{
  enum { EXECUTIONS = 12 };

  given_executions(t, "inst", EXECUTIONS, 0);
  must(t, enqueue(t, "pending"));
  const struct dk_executions *list = list_executions(t, "inst");
  expect_equal(t, list->n_items, EXECUTIONS, "executions");
  for (uint64_t i = 0; i < EXECUTIONS; i++) {
    const struct dk_execution *got = &list->items[i];
    const struct dk_execution *read =
      &read_history(t, "inst", .execution_id = i + 1)->execution;

    expect_equal(t, got->execution_id, i + 1, "number of an execution");
    expect_equal(t, got->status, read->status, "status of execution %llu", (long long)i + 1);
    expect_equal(t, got->last_event_id, read->last_event_id, "last event");
    expect_equal(t, got->started_at, read->started_at, "started_at");
    expect_equal(t, got->completed_at, read->completed_at, "completed_at");
    expect_bytes(t, got->output, read->output, "output of execution %llu", (long long)i + 1);
  }
  expect_equal(t, list_executions(t, "absent")->n_items, 0, "executions of no instance");
  expect_equal(t, list_executions(t, "pending")->n_items, 0, "executions of what has not started");
}

/* ADMIN-5: executions above a number, whether that exists or not, and no more than were asked
 * for. */
void
admin_executions_in_pages(struct dk_check *t)
{
  enum { EXECUTIONS = 12 };

  given_executions(t, "inst", EXECUTIONS, 0);
  for (uint32_t size = 1; size <= EXECUTIONS + 1; size++) {
    const struct dk_executions *page;
    uint64_t last = 0;

    do {
      page = list_executions(t, "inst", .after_number = last, .max = size);
      for (size_t i = 0; i < page->n_items; i++)
        expect_equal(t, page->items[i].execution_id, ++last, "an execution, in pages of %u", size);
    } while (page->n_items == size);
    expect_equal(t, last, EXECUTIONS, "the last execution, in pages of %u", size);
  }
  expect_equal(t, list_executions(t, "inst", .after_number = INT64_MAX)->n_items, 0,
               "executions above all numbers");
  must(t, prune(t, "inst", .keep = 3));
  const struct dk_executions *left = list_executions(t, "inst", .after_number = 4, .max = 2);
  expect_equal(t, left->n_items, 2, "executions above one that was pruned");
  expect_equal(t, left->items[0].execution_id, 10, "the first of them");
}

/* ---- its messages ---------------------------------------------------------------------------- */

/* ADMIN-8: messages are reported with all that was stored of each: delivered, held or not yet
 * due. */
void
admin_messages(struct dk_check *t)
{
  const struct dk_bytes any = {"any\0bytes\xff", 10};
  int64_t first = now(t);

  must(t, enqueue(t, "inst", .id = "held", .bytes = any));
  must(t, abandon_turn(t, fetch_turn(t)->head.lock_token));
  fetch_turn(t);
  advance(t, 100);
  must(t, enqueue(t, "inst", .payload = "without an id"));
  must(t, enqueue(t, "inst", .id = "later", .delay_ms = 5000));
  const struct dk_messages *list = read_messages(t, "inst");
  expect_equal(t, list->n_items, 3, "messages");
  expect_text(t, list->items[0].id, "held", "id of the first");
  expect_bytes(t, list->items[0].payload, any, "payload");
  expect_equal(t, list->items[0].visible_at, first, "visible_at of the first");
  expect_equal(t, list->items[0].enqueued_at, first, "enqueued_at of the first");
  expect_text(t, list->items[1].id, NULL, "id of the second");
  expect_text(t, list->items[1].payload, "without an id", "payload of the second");
  expect_text(t, list->items[2].id, "later", "id of the third");
  expect_equal(t, list->items[2].enqueued_at, first + 100, "enqueued_at of the third");
  expect_equal(t, list->items[2].visible_at, first + 5100, "visible_at of the third");
  for (size_t i = 0; i < 3; i++)
    expect_equal(t, list->items[i].attempt, 0, "attempt, which is not reported here");
  expect_equal(t, read_messages(t, "inst", .max = 2)->n_items, 2, "messages of a page of two");
  expect_equal(t, read_messages(t, "absent")->n_items, 0, "messages for no instance");
}

/* ADMIN-8: by the time at which each is due, then by arrival: as a turn brings them. */
void
admin_messages_in_order(struct dk_check *t)
{
  static const char *const order[] = {"now", "then", "at 50", "at 50 too", "at 200"};
  enum { MESSAGES = sizeof order / sizeof order[0] };

  must(t, enqueue(t, "inst", .id = "at 200", .delay_ms = 200));
  must(t, enqueue(t, "inst", .id = "at 50", .delay_ms = 50));
  must(t, enqueue(t, "inst", .id = "now"));
  must(t, enqueue(t, "inst", .id = "at 50 too", .delay_ms = 50));
  must(t, enqueue(t, "inst", .id = "then"));
  const struct dk_messages *list = read_messages(t, "inst");
  expect_equal(t, list->n_items, MESSAGES, "messages");
  for (size_t i = 0; i < MESSAGES; i++)
    expect_text(t, list->items[i].id, order[i], "message %zu", i + 1);
  expect_text(t, read_messages(t, "inst", .max = 1)->items[0].id, "now", "a page of one");
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* ADMIN-6: instances are counted by the status of the current execution; executions and events,
 * all. */
void
admin_counts(struct dk_check *t)
{
  const struct dk_stats *none = read_stats(t);
  expect_equal(t, none->executions + none->events + none->running + none->messages_ready, 0,
               "counts of an empty store");
  expect_equal(t, none->oldest_message + none->oldest_activity, 0, "oldest of an empty store");
  given_executions(t, "chain", 4, 0);
  given_root(t, "running", DK_RUNNING);
  given_root(t, "done", DK_COMPLETED);
  given_root(t, "done too", DK_COMPLETED);
  given_root(t, "failed", DK_FAILED);
  must(t, ack_turn(t, next_turn(t, "cancelled"), .status = DK_CANCELLED,
                   .events = {{7}, {8}, {50}}));
  must(t, ack_turn(t, next_turn(t, "between"), .status = DK_CONTINUED_AS_NEW));
  given_root(t, "again", DK_FAILED);
  must(t, ack_turn(t, next_turn(t, "again"), .execution_id = 2, .events = {{1}}));
  must(t, enqueue(t, "dropped"));
  must(t, ack_turn(t, fetch_turn_of(t, "dropped"), .empty = true));
  must(t, enqueue(t, "pending", .delay_ms = 1000));
  const struct dk_stats *stats = read_stats(t);
  expect_equal(t, stats->not_started, 1, "instances that have not started");
  expect_equal(t, stats->running, 3, "instances that run");
  expect_equal(t, stats->completed, 2, "completed instances");
  expect_equal(t, stats->failed, 1, "failed instances");
  expect_equal(t, stats->cancelled, 1, "cancelled instances");
  expect_equal(t, stats->continued_as_new, 1, "instances between two executions");
  expect_equal(t, stats->executions, 12, "executions");
  expect_equal(t, stats->events, 13, "events");
}

static void
expect_message_depth(struct dk_check *t, uint64_t ready, uint64_t delayed, uint64_t locked,
                     int64_t oldest)
{
  const struct dk_stats *stats = read_stats(t);

  expect_equal(t, stats->now, now(t), "the moment of the counts");
  expect_equal(t, stats->messages_ready, ready, "messages that are ready");
  expect_equal(t, stats->messages_delayed, delayed, "messages that are not due yet");
  expect_equal(t, stats->messages_locked, locked, "messages of instances that are held");
  expect_equal(t, stats->oldest_message, oldest, "visible_at of the oldest that is ready");
}

/* ADMIN-6: delayed before its time, then locked while its instance's turn is held, else ready. */
void
admin_depth_of_messages(struct dk_check *t)
{
  int64_t start = now(t);

  must(t, enqueue(t, "inst", .id = "first"));
  must(t, enqueue(t, "inst", .id = "later", .delay_ms = 700));
  advance(t, 10);
  must(t, enqueue(t, "other"));
  expect_message_depth(t, 2, 1, 0, start);
  struct dk_turn *turn = fetch_turn_of(t, "inst", .lock_ms = 2000);
  must(t, enqueue(t, "inst", .id = "arrival"));
  struct dk_turn *other = fetch_turn_of(t, "other", .lock_ms = 2000);
  expect_message_depth(t, 0, 1, 3, 0);
  must(t, abandon_turn(t, other->head.lock_token));
  expect_message_depth(t, 1, 1, 2, start + 10);
  advance_to(t, start + 700);
  expect_message_depth(t, 1, 0, 3, start + 10);
  must(t, abandon_turn(t, turn->head.lock_token, .ms = 500));
  expect_message_depth(t, 3, 1, 0, start + 10);
  advance_to(t, start + 1200);
  fetch_turn_of(t, "inst", .lock_ms = 100);
  fetch_turn_of(t, "other", .lock_ms = 100);
  advance(t, 99);
  expect_message_depth(t, 0, 0, 4, 0);
  advance(t, 1);
  expect_message_depth(t, 4, 0, 0, start + 10);
}

static void
expect_work_depth(struct dk_check *t, uint64_t ready, uint64_t delayed, uint64_t locked,
                  int64_t oldest)
{
  const struct dk_stats *stats = read_stats(t);

  expect_equal(t, stats->activities_ready, ready, "work items that are ready");
  expect_equal(t, stats->activities_delayed, delayed, "work items that are not due yet");
  expect_equal(t, stats->activities_locked, locked, "work items that are held");
  expect_equal(t, stats->oldest_activity, oldest, "visible_at of the oldest that is ready");
}

/* ADMIN-6: a work item is locked by a live lease, and by nothing else. */
void
admin_depth_of_work(struct dk_check *t)
{
  int64_t start = now(t);

  must(t, ack_turn(t, next_turn(t, "inst"),
                   .schedule = {{1}, {2}, {3, .delay_ms = 600}, {4, .tag = "gpu"}}));
  expect_work_depth(t, 3, 1, 0, start);
  advance(t, 50);
  struct dk_work_item *one = fetch_activity(t, "inst", 1, .lock_ms = 1000);
  expect_work_depth(t, 0, 1, 3, 0);
  must(t, abandon_work(t, one->work.lock_token));
  expect_work_depth(t, 1, 1, 2, start + 50);
  must(t, abandon_work(t, fetch_activity(t, "inst", 2)->work.lock_token, .ms = 500));
  expect_work_depth(t, 1, 2, 1, start + 50);
  must(t, ack_work(t, fetch_activity(t, "inst", 4)->work.lock_token));
  expect_work_depth(t, 1, 2, 0, start + 50);
  advance_to(t, start + 600);
  expect_work_depth(t, 3, 0, 0, start + 50);
  fetch_activity(t, "inst", 3, .lock_ms = 100);
  expect_work_depth(t, 0, 0, 3, 0);
  advance(t, 99);
  expect_work_depth(t, 0, 0, 3, 0);
  advance(t, 1);
  expect_work_depth(t, 3, 0, 0, start + 50);
}

/* ADMIN-6: each ack turns a work item into a message, and no count sees it as both or as
 * neither. */
void
admin_counts_of_one_moment(struct dk_check *t)
{
  struct actor *worker = racer(t), *looker = racer(t);
  uint64_t round = 0;

  given_instance(t, "inst");
  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    round++;
    must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{round}}));
    struct dk_bytes token = fetch_work(t)->work.lock_token;
    hold_at_line(t, worker);
    hold_at_line(t, looker);
    must(t, ack_work(t, token, .on = worker, .start = true, .to = "sink"));
    must(t, try_read_stats(t, .on = looker, .start = true));
    witness(t, race(t, worker, looker));
    dk_status acked = finish(t, worker), looked = finish(t, looker);
    const struct dk_stats stats = *finished_stats(t, looker);
    if (is_retryable(acked))
      insist(t, ack_work(t, token, .on = worker, .to = "sink"));
    else
      expect_status(t, acked, DK_OK);
    if (is_retryable(looked))
      continue;
    expect_status(t, looked, DK_OK);
    expect_equal(t, stats.activities_locked + stats.messages_ready + stats.messages_locked, round,
                 "work items and messages, of which each is one or the other");
  }
}

/* ---- flags ----------------------------------------------------------------------------------- */

/* ABI-11: a flag of a newer host is refused, and does nothing. */
void
admin_unknown_flags(struct dk_check *t)
{
  struct dk_bytes id = bytes("inst");
  struct dk_instance_filter odd = {.struct_size = sizeof odd, .flags = 1u << 30};
  struct dk_instance_filter all = {.struct_size = sizeof all};
  struct dk_list_instances by_filter = {.struct_size = sizeof by_filter, .filter = &odd};
  struct dk_list_instances list = {.struct_size = sizeof list, .flags = 1u << 30};
  struct dk_delete_instances these = {.struct_size = sizeof these, .flags = 1u << 30,
                                      .instances = &id, .n_instances = 1};
  struct dk_delete_matching matching = {.struct_size = sizeof matching, .flags = 1u << 30,
                                        .filter = &all, .max_instances = 1};
  struct dk_prune one = {.struct_size = sizeof one, .flags = 1u << 30, .instance = id};
  struct dk_store *s = store_of(t, NULL);
  struct dk_caller *c = caller_of(t, NULL);
  struct dk_instances *instances;

  given_root(t, "inst", DK_COMPLETED);
  dk_caller_set_unchecked(c, 1);
  before(t);
  expect_status(t, traced(t, dk_store_list_instances(s, c, &by_filter, &instances)),
                DK_UNSUPPORTED);
  expect_status(t, traced(t, dk_store_list_instances(s, c, &list, &instances)), DK_UNSUPPORTED);
  expect_status(t, traced(t, dk_store_delete_instances(s, c, &these, NULL)), DK_UNSUPPORTED);
  expect_status(t, traced(t, dk_store_delete_matching(s, c, &matching, NULL)), DK_UNSUPPORTED);
  expect_status(t, traced(t, dk_store_prune_executions(s, c, &one, NULL)), DK_UNSUPPORTED);
  expect_unchanged(t);
  dk_caller_set_unchecked(c, 0);
  must(t, delete_instances(t, .ids = {"inst"}));
}
