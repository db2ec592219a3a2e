/* SPDX-License-Identifier: Apache-2.0 */
/* QUEUE: what is sent to an instance is stored, as it is and in its order, until it is consumed. */
#include <stdio.h>

#include "conformance/checks/checks.h"

enum { NEWS_LEASE_MS = 600000, MOST_DELIVERIES = 1000 };

/* ---- which targets --------------------------------------------------------------------------- */

static void
given_instance_of_status(struct dk_check *t, const char *instance, int32_t status)
{
  given_instance(t, instance);
  must(t, ack_turn(t, next_turn(t, instance), .status = status));
}

/* QUEUE-1: a message is stored whatever has become of its instance, and changes nothing there. */
void
queue_for_any_instance(struct dk_check *t)
{
  static const struct {
    const char *instance;
    int32_t status;
  } targets[] = {{"running", DK_RUNNING},
                 {"completed", DK_COMPLETED},
                 {"failed", DK_FAILED},
                 {"cancelled", DK_CANCELLED},
                 {"continued", DK_CONTINUED_AS_NEW}};
  enum { TARGETS = sizeof targets / sizeof targets[0] };

  for (size_t i = 0; i < TARGETS; i++)
    given_instance_of_status(t, targets[i].instance, targets[i].status);
  given_instance(t, "locked");
  struct dk_turn *held = next_turn(t, "locked");
  for (size_t i = 0; i < TARGETS; i++)
    must(t, enqueue(t, targets[i].instance, .id = "news"));
  must(t, enqueue(t, "locked", .id = "news"));

  struct taken_turns taken = take_turns(t);
  expect_equal(t, taken.n, TARGETS, "turns of instances that are not locked");
  for (size_t i = 0; i < TARGETS; i++) {
    struct dk_turn *turn = turn_of(&taken, targets[i].instance);
    expect(t, turn, "%s has a turn for its message", targets[i].instance);
    expect_ids(t, turn, "news");
    expect_equal(t, turn->head.status, targets[i].status, "status of %s", targets[i].instance);
    expect_equal(t, turn->head.last_event_id, 1, "last event of %s", targets[i].instance);
  }
  must(t, ack_turn(t, held, .events = {{next_event(held)}}));
  expect_ids(t, the_turn_of(t, "locked"), "news");
}

static void
expect_not_there(struct dk_check *t, const char *instance)
{
  expect_equal(t, read_history(t, instance)->found, 0, "an execution of %s", instance);
  struct dk_turn *turn = fetch_turn_of(t, instance);
  expect_equal(t, turn->head.known, 0, "known, of %s", instance);
  expect_equal(t, turn->head.birth, 0, "birth of %s", instance);
  expect_equal(t, turn->head.execution_id, 0, "execution of %s", instance);
}

/* QUEUE-1: no message creates an instance or an execution, whichever way it came. */
void
queue_message_creates_nothing(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "by-enqueue"));
  must(t, ack_turn(t, next_turn(t, "inst"), .send = {{"by-commit", .id = "sent"}}));
  must(t, ack_work(t, fetch_work(t)->work.lock_token, .to = "by-ack", .id = "done"));
  expect_not_there(t, "by-enqueue");
  expect_not_there(t, "by-commit");
  expect_not_there(t, "by-ack");
}

/* ---- in which order -------------------------------------------------------------------------- */

/* QUEUE-2: messages that are due at the same time come as they arrived, whatever their sender, and
 * whether a time or a delay was given. */
void
queue_equal_times_by_arrival(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  given_instance(t, "other");
  struct dk_turn *sender = next_turn(t, "other");
  struct dk_work_item *work = fetch_work(t);
  int64_t due = now(t) + 1000;

  must(t, enqueue(t, "inst", .id = "z", .visible_at = due));
  advance(t, 10);
  must(t, enqueue(t, "inst", .id = "m", .delay_ms = 990));
  advance(t, 10);
  must(t, ack_turn(t, sender, .send = {{"inst", .id = "k", .visible_at = due}}));
  advance(t, 10);
  must(t, ack_work(t, work->work.lock_token, .to = "inst", .id = "c", .delay_ms = 970));
  advance(t, 10);
  must(t, enqueue(t, "inst", .id = "b", .visible_at = due));
  must(t, enqueue(t, "inst", .id = "a", .visible_at = due));
  advance_to(t, due + 500);
  expect_ids(t, fetch_turn(t), "z", "m", "k", "c", "b", "a");
}

/* QUEUE-2: the messages of one commit arrive in the order of its list. */
void
queue_list_in_its_order(struct dk_check *t)
{
  given_instance(t, "other");
  must(t, ack_turn(t, next_turn(t, "other"),
                   .send = {{"inst", .id = "m-01"}, {"inst", .id = "m-02"}, {"inst", .id = "m-03"},
                            {"else", .id = "e-01"}, {"inst", .id = "m-04"}, {"inst", .id = "m-05"},
                            {"inst", .id = "m-06"}, {"inst", .id = "m-07"}, {"else", .id = "e-02"},
                            {"inst", .id = "m-08"}, {"inst", .id = "m-09"}, {"inst", .id = "m-10"},
                            {"inst", .id = "m-11"}, {"inst", .id = "m-12"}}));
  expect_ids(t, fetch_turn_of(t, "inst"), "m-01", "m-02", "m-03", "m-04", "m-05", "m-06", "m-07",
             "m-08", "m-09", "m-10", "m-11", "m-12");
  expect_ids(t, fetch_turn_of(t, "else"), "e-01", "e-02");
}

/* QUEUE-2: a message keeps its place when it comes again: after a bounded turn whose lease has
 * ended, and after one that was abandoned. */
void
queue_delivered_keep_their_place(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "first"));
  must(t, enqueue(t, "inst", .id = "second"));
  must(t, enqueue(t, "inst", .id = "third"));
  expect_ids(t, fetch_turn(t, .max_messages = 1, .lock_ms = 1000), "first");
  must(t, enqueue(t, "inst", .id = "fourth"));
  advance(t, 1000);
  struct dk_turn *turn = fetch_turn(t, .max_messages = 2);
  expect_ids(t, turn, "first", "second");
  must(t, abandon_turn(t, turn->head.lock_token));
  must(t, enqueue(t, "inst", .id = "fifth"));
  expect_ids(t, fetch_turn(t), "first", "second", "third", "fourth", "fifth");
}

/* QUEUE-2: a message with an earlier time comes first, even if it is sent later than those that
 * wait. */
void
queue_earlier_time_comes_first(struct dk_check *t)
{
  int64_t start = now(t);

  must(t, enqueue(t, "inst", .id = "at-3000", .visible_at = start + 3000));
  must(t, enqueue(t, "inst", .id = "at-1000", .visible_at = start + 1000));
  advance(t, 500);
  must(t, enqueue(t, "inst", .id = "at-500"));
  struct dk_turn *turn = fetch_turn(t);
  expect_ids(t, turn, "at-500");
  must(t, enqueue(t, "inst", .id = "at-2000", .delay_ms = 1500));
  must(t, abandon_turn(t, turn->head.lock_token, .ms = 2000));
  advance_to(t, start + 4000);
  expect_ids(t, fetch_turn(t), "at-1000", "at-2000", "at-500", "at-3000");
}

/* ---- while a turn runs ----------------------------------------------------------------------- */

/* QUEUE-5: what arrives during a turn, in whatever way, belongs to the next one: neither the commit
 * takes it away nor the abandon changes it. */
void
queue_arrivals_wait_for_the_next_turn(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  given_instance(t, "other");
  struct dk_turn *turn = next_turn(t, "inst"), *sender = next_turn(t, "other");
  must(t, enqueue(t, "inst", .id = "enqueued"));
  must(t, ack_work(t, fetch_work(t)->work.lock_token, .to = "inst", .id = "done"));
  must(t, ack_turn(t, sender, .send = {{"inst", .id = "sent"}}));
  must(t, ack_turn(t, turn, .send = {{"inst", .id = "own"}}));

  turn = the_turn_of(t, "inst");
  expect_ids(t, turn, "enqueued", "done", "sent", "own");
  must(t, enqueue(t, "inst", .id = "late"));
  must(t, abandon_turn(t, turn->head.lock_token));
  turn = the_turn_of(t, "inst");
  expect_ids(t, turn, "enqueued", "done", "sent", "own", "late");
  expect_equal(t, turn->messages[3].attempt, 2, "attempt of what was abandoned");
  expect_equal(t, turn->messages[4].attempt, 1, "attempt of what came during that turn");
}

/* QUEUE-5: a delayed arrival neither ends nor prolongs the lease of a running turn. */
void
queue_arrival_leaves_the_lease(struct dk_check *t)
{
  given_instance(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");
  int64_t end = now(t) + LEASE_MS;

  must(t, enqueue(t, "inst", .id = "in-5000", .delay_ms = 5000));
  advance(t, 5000);
  expect_no_turn(t);
  advance_to(t, end - 1);
  expect_no_turn(t);
  must(t, renew_turn(t, turn->head.lock_token, .ms = 1000));
  advance(t, 1000);
  expect_equal(t, the_turn_of(t, "inst")->n_messages, 2, "messages when the lease had ended");

  must(t, enqueue(t, "inst", .id = "in-90000", .delay_ms = 3 * LEASE_MS));
  advance(t, LEASE_MS - 1);
  expect_no_turn(t);
  advance(t, 1);
  expect_equal(t, the_turn_of(t, "inst")->n_messages, 2, "messages when the next lease had ended");
}

/* ---- as it was stored ------------------------------------------------------------------------ */

/* QUEUE-6: a payload may be any bytes, or none; an absent id comes back absent. */
void
queue_any_payload(struct dk_check *t)
{
  static const char odd[] = "\0nul\0 \xff\xfe\xc3\x28 \r\n'\"\\%s\x7f \t ";
  char all[256];

  for (int i = 0; i < 256; i++)
    all[i] = (char)i;
  struct dk_bytes every = {all, sizeof all}, some = {odd, sizeof odd - 1}, none = {"", 0};
  must(t, enqueue(t, "inst", .id = "every", .bytes = every));
  must(t, enqueue(t, "inst", .bytes = some));
  must(t, enqueue(t, "inst", .bytes = none));
  struct dk_turn *turn = fetch_turn(t);
  expect_equal(t, turn->n_messages, 3, "messages");
  expect_bytes(t, turn->messages[0].payload, every, "a payload of all bytes");
  expect_bytes(t, turn->messages[1].payload, some, "a payload that is not text");
  expect_equal(t, turn->messages[2].payload.len, 0, "bytes of an empty payload");
  expect_text(t, turn->messages[0].id, "every", "id of the first message");
  expect_text(t, turn->messages[1].id, NULL, "id of a message that was sent without");
  expect_text(t, turn->messages[2].id, NULL, "id of another message that was sent without");

  struct dk_item item = {.struct_size = sizeof item, .instance = bytes("to"), .payload = some};
  struct dk_item empty = {.struct_size = sizeof empty, .instance = bytes("to"), .payload = none};
  const struct dk_item *items[] = {&item, &empty};
  struct dk_turn_result result = {.struct_size = sizeof result, .orchestrator_items = items,
                                  .n_orchestrator_items = 2};
  must(t, ack_turn(t, turn, .raw = &result));
  turn = fetch_turn(t);
  expect_equal(t, turn->n_messages, 2, "messages of the commit");
  expect_bytes(t, turn->messages[0].payload, some, "a payload of a commit");
  expect_equal(t, turn->messages[1].payload.len, 0, "bytes of an empty payload of a commit");
  expect_text(t, turn->messages[0].id, NULL, "id of a message that a commit sent without");
}

static void
expect_times(struct dk_check *t, const struct dk_turn *turn, size_t i, int64_t visible_at,
             int64_t enqueued_at)
{
  expect_equal(t, turn->messages[i].visible_at, visible_at, "visible_at of message %zu", i + 1);
  expect_equal(t, turn->messages[i].enqueued_at, enqueued_at, "enqueued_at of message %zu", i + 1);
}

/* QUEUE-6: visible_at is the effective visible time, enqueued_at the clock when it was stored. */
void
queue_times_as_they_were(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  given_instance(t, "other");
  struct dk_turn *sender = next_turn(t, "other");
  struct dk_work_item *work = fetch_work(t);
  int64_t start = now(t);

  must(t, enqueue(t, "inst", .id = "a"));
  advance(t, 7);
  must(t, enqueue(t, "inst", .id = "b", .delay_ms = 100));
  must(t, enqueue(t, "inst", .id = "past", .visible_at = start - 5000));
  advance(t, 13);
  must(t, ack_turn(t, sender, .send = {{"inst", .id = "c", .visible_at = start + 300}}));
  advance(t, 21);
  must(t, ack_work(t, work->work.lock_token, .to = "inst", .id = "d", .delay_ms = 500));
  advance(t, 1000);
  struct dk_turn *turn = fetch_turn(t);
  expect_ids(t, turn, "a", "past", "b", "c", "d");
  expect_times(t, turn, 0, start, start);
  expect_times(t, turn, 1, start + 7, start + 7);
  expect_times(t, turn, 2, start + 107, start + 7);
  expect_times(t, turn, 3, start + 300, start + 20);
  expect_times(t, turn, 4, start + 541, start + 41);

  int64_t back = now(t);
  must(t, abandon_turn(t, turn->head.lock_token, .ms = 2000));
  advance(t, 5000);
  expect_times(t, fetch_turn(t), 0, back + 2000, start);
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* Looks like the first to a collation, a padded column, a pattern, a number or a normaliser. */
static const char *const alike[] = {"order_1", "Order_1",    "order_1 ",       "orderX1",
                                    "order%",  "caf\xc3\xa9", "cafe\xcc\x81", "1",
                                    "01",      "1.0",        "null",           "1 "};
enum { ALIKE = sizeof alike / sizeof alike[0] };

/* QUEUE-7: instances whose ids look alike have queues, histories and locks of their own. */
void
queue_instances_bytewise(struct dk_check *t)
{
  given_instance(t, alike[0]);
  for (size_t i = 0; i < ALIKE; i++)
    must(t, enqueue(t, alike[i], .id = alike[ALIKE - 1 - i]));
  struct taken_turns taken = take_turns(t);
  expect_equal(t, taken.n, ALIKE, "turns, one for each instance");
  for (size_t i = 0; i < ALIKE; i++) {
    struct dk_turn *turn = turn_of(&taken, alike[i]);
    expect(t, turn, "\"%s\" has a turn of its own", alike[i]);
    expect_ids(t, turn, alike[ALIKE - 1 - i]);
    expect_equal(t, turn->head.known, i == 0, "known, of \"%s\"", alike[i]);
    expect_equal(t, read_history(t, alike[i])->found, i == 0, "an execution of \"%s\"", alike[i]);
  }
}

/* QUEUE-7: messages whose ids look alike are not duplicates, and are cancelled one by one. */
void
queue_messages_bytewise(struct dk_check *t)
{
  for (size_t i = 0; i < ALIKE; i++)
    must(t, enqueue(t, "inst", .id = alike[i], .delay_ms = 1000));
  for (size_t i = 0; i < ALIKE; i++)
    expect_status(t, enqueue(t, "inst", .id = alike[i]), DK_DUPLICATE);
  must(t, ack_turn(t, next_turn(t, "inst"), .cancel_messages = {alike[0], alike[4], alike[5]}));
  advance(t, 1000);
  expect_ids(t, fetch_turn(t), alike[1], alike[2], alike[3], alike[6], alike[7], alike[8],
             alike[9], alike[10], alike[11]);
}

/* ---- no instance delays another -------------------------------------------------------------- */

enum { PINNED = 20, FUTURE = 45, LOCKED = 40, MOST_OF_A_KIND = 50 };

/* One message for each of n instances of this name, by one commit. */
static void
send_to_each(struct dk_check *t, const char *name, size_t n, int64_t delay_ms)
{
  char instances[MOST_OF_A_KIND][32];
  struct dk_item items[MOST_OF_A_KIND];
  const struct dk_item *pointers[MOST_OF_A_KIND];

  for (size_t i = 0; i < n; i++) {
    snprintf(instances[i], sizeof instances[i], "%s-%zu", name, i);
    items[i] = (struct dk_item){.struct_size = sizeof items[i], .instance = bytes(instances[i]),
                                .payload = bytes("news"), .delay_ms = delay_ms};
    pointers[i] = &items[i];
  }
  struct dk_turn_result result = {.struct_size = sizeof result, .orchestrator_items = pointers,
                                  .n_orchestrator_items = n};
  must(t, ack_turn(t, next_turn(t, "sender"), .raw = &result));
}

/* QUEUE-8: however many at the head are locked, pinned to other versions or due in the future, one
 * that is ready behind them comes at once. */
void
queue_others_hold_up_nobody(struct dk_check *t)
{
  const struct dk_version pin = {2, 0, 0};
  const struct dk_version_range older = {{1, 0, 0}, {1, 9, 9}};

  send_to_each(t, "pinned", PINNED, 0);
  for (int i = 0; i < PINNED; i++)
    must(t, ack_turn(t, fetch_turn(t), .pinned = &pin));
  send_to_each(t, "future", FUTURE, NEWS_LEASE_MS);
  send_to_each(t, "locked", LOCKED, 0);
  for (int i = 0; i < LOCKED; i++)
    fetch_turn(t, .lock_ms = NEWS_LEASE_MS);
  send_to_each(t, "pinned", PINNED, 0);
  must(t, enqueue(t, "ready"));
  struct dk_turn *turn = fetch_turn(t, .ranges = &older, .n_ranges = 1);
  expect_text(t, turn->head.instance, "ready", "the one instance that can be served");
}

static bool
is_quiet(const struct dk_turn *turn)
{
  return same_bytes(turn->head.instance, bytes("quiet"));
}

/* QUEUE-8: an instance that always has more messages lets others have their turn. */
void
queue_busy_instance_lets_others_in(struct dk_check *t)
{
  must(t, enqueue(t, "busy"));
  must(t, enqueue(t, "busy"));
  must(t, enqueue(t, "quiet"));
  for (int i = 0; i < MOST_DELIVERIES; i++) {
    struct dk_turn *turn = fetch_turn(t, .max_messages = 1);
    if (is_quiet(turn))
      return;
    must(t, enqueue(t, "busy"));
    must(t, ack_turn(t, turn));
  }
  expect(t, false, "a waiting message is delivered before %d others", MOST_DELIVERIES);
}

/* QUEUE-8: a message whose turn is abandoned each time lets others have their turn. */
void
queue_given_back_lets_others_in(struct dk_check *t)
{
  must(t, enqueue(t, "stuck"));
  must(t, enqueue(t, "quiet"));
  for (int i = 0; i < MOST_DELIVERIES; i++) {
    struct dk_turn *turn = fetch_turn(t);
    if (is_quiet(turn))
      return;
    must(t, abandon_turn(t, turn->head.lock_token, .ignore_attempt = i % 2));
  }
  expect(t, false, "a waiting message is delivered before another is abandoned %d times",
         MOST_DELIVERIES);
}

/* QUEUE-8: an owner whose own instances always have more messages gets other instances as well. */
void
queue_owner_lets_others_in(struct dk_check *t)
{
  must(t, enqueue(t, "own"));
  must(t, ack_turn(t, fetch_turn(t), .events = {{1}}, .owner = "me"));
  must(t, enqueue(t, "own"));
  must(t, enqueue(t, "quiet"));
  for (int i = 0; i < MOST_DELIVERIES; i++) {
    struct dk_turn *turn = fetch_turn(t, .owner = "me");
    if (is_quiet(turn))
      return;
    must(t, ack_turn(t, turn, .owner = "me"));
    must(t, enqueue(t, "own"));
  }
  expect(t, false, "a waiting message is delivered before %d turns of the owner's own instance",
         MOST_DELIVERIES);
}

/* ---- never lost ------------------------------------------------------------------------------ */

/* QUEUE-9: a message that was answered with DK_OK is still stored when the store is opened
 * again. */
void
queue_there_after_reopening(struct dk_check *t)
{
  int64_t start = now(t);

  must(t, enqueue(t, "inst", .id = "a", .payload = "hello"));
  must(t, enqueue(t, "inst", .id = "later", .delay_ms = 5000));
  must(t, enqueue(t, "inst", .id = "b"));
  close_handle(t, NULL);
  open_handle(t, NULL);
  expect_status(t, enqueue(t, "inst", .id = "b"), DK_DUPLICATE);
  struct dk_turn *turn = fetch_turn(t);
  expect_ids(t, turn, "a", "b");
  expect_text(t, turn->messages[0].payload, "hello", "payload, after the store was opened again");
  must(t, ack_turn(t, turn, .empty = true));
  advance(t, 5000);
  turn = fetch_turn(t);
  expect_ids(t, turn, "later");
  expect_times(t, turn, 0, start + 5000, start);
}

/* QUEUE-9: an acknowledged message is still stored even if its sender's process is killed at
 * once. */
void
queue_there_after_a_kill(struct dk_check *t)
{
  struct actor *sender = another_process(t);

  must(t, enqueue(t, "inst", .on = sender, .id = "a"));
  must(t, enqueue(t, "other", .on = sender, .id = "b"));
  must(t, enqueue(t, "inst", .on = sender, .id = "c"));
  kill_process(t, sender);
  expect_ids(t, fetch_turn_of(t, "inst"), "a", "c");
  expect_ids(t, fetch_turn_of(t, "other"), "b");
}
