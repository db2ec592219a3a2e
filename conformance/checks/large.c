/* SPDX-License-Identifier: Apache-2.0 */
/* TURN, ACK, WORK, CANCEL: texts as long, payloads as large and numbers as great as any provider
 * has to take come back whole. */
#include "conformance/checks/checks.h"

enum { LONGEST = 1024, LARGE = 64 << 10 };
#define BEYOND_32_BITS ((uint64_t)1 << 32)
#define BEYOND_DOUBLE  (((uint64_t)1 << 53) + 1) /* a floating-point number takes it for 2^53 */

/* As many bytes as an id may have, up to LONGEST, nearly all of them of letters of two bytes; the
 * first byte and the last one are the caller's. */
static const char *
long_text(struct dk_check *t, char first, char last)
{
  uint32_t most = provider(t)->limits->max_id;
  size_t n = most < LONGEST ? most : LONGEST;
  char *text = (char *)filled(t, n, '-').ptr;

  text[0] = first;
  for (size_t i = 1; i + 2 < n; i += 2) {
    text[i] = '\xc3';
    text[i + 1] = '\xbc';
  }
  text[n - 1] = last;
  return text;
}

/* All bytes that there are, again and again. */
static struct dk_bytes
large_bytes(struct dk_check *t)
{
  struct dk_bytes made = filled(t, LARGE, 0);

  for (size_t i = 0; i < made.len; i++)
    ((char *)made.ptr)[i] = (char)(i + i / 256);
  return made;
}

static void
expect_large_head(struct dk_check *t, const struct dk_turn_head *head, const char *instance)
{
  expect_text(t, head->instance, instance, "long instance id");
  expect_text(t, head->name, long_text(t, 'n', '1'), "long name");
  expect_text(t, head->version, long_text(t, 'v', '1'), "long version");
  expect_text(t, head->parent_instance, long_text(t, 'p', '1'), "long parent");
}

/* TURN-4: whatever a turn brings comes whole. */
void
turn_long_and_large(struct dk_check *t)
{
  const char *instance = long_text(t, 'i', '1'), *owner = long_text(t, 'o', '1');
  const char *id = long_text(t, 'm', '1'), *other_id = long_text(t, 'm', '2');
  struct dk_bytes large = large_bytes(t);
  struct dk_event first[] = {{BEYOND_32_BITS + 1, large}, {BEYOND_DOUBLE, bytes("middle")}};
  struct dk_event last = {INT64_MAX, bytes("last")};
  struct dk_turn_result result = {
    .struct_size = sizeof result, .execution_id = 1, .events = first, .n_events = 2,
    .name = bytes(long_text(t, 'n', '1')), .version = bytes(long_text(t, 'v', '1')),
    .parent_instance = bytes(long_text(t, 'p', '1')), .owner = bytes(owner),
  };

  must(t, enqueue(t, instance));
  must(t, ack_turn(t, fetch_turn(t), .raw = &result));
  must(t, enqueue(t, instance, .id = id, .bytes = large));
  must(t, enqueue(t, instance, .id = other_id));
  struct dk_turn *turn = fetch_turn(t, .owner = owner);
  expect_large_head(t, &turn->head, instance);
  expect_equal(t, turn->n_events, 0, "events for an owner with a long name");
  expect_equal(t, turn->head.last_event_id, BEYOND_DOUBLE, "last event");
  expect_ids(t, turn, id, other_id);
  expect_bytes(t, turn->messages[0].payload, large, "a large payload");

  result = (struct dk_turn_result){.struct_size = sizeof result, .execution_id = 1,
                                   .events = &last, .n_events = 1};
  must(t, ack_turn(t, turn, .raw = &result));
  turn = next_turn(t, instance);
  expect_equal(t, turn->n_events, 3, "events with great ids");
  expect_equal(t, turn->events[0].event_id, BEYOND_32_BITS + 1, "an event id beyond 32 bits");
  expect_bytes(t, turn->events[0].payload, large, "a large payload of an event");
  expect_equal(t, turn->events[1].event_id, BEYOND_DOUBLE, "an event id beyond 2^53");
  expect_equal(t, turn->events[2].event_id, INT64_MAX, "the greatest event id");
  expect_equal(t, turn->head.last_event_id, INT64_MAX, "last event");
}

/* ACK-9: an output is bytes, and may be large. */
void
ack_large_output(struct dk_check *t)
{
  struct dk_bytes large = large_bytes(t);
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .status = DK_COMPLETED, .output = large};

  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .raw = &result));
  struct dk_history *history = read_history(t, "inst");
  expect_equal(t, history->execution.status, DK_COMPLETED, "status");
  expect_bytes(t, history->execution.output, large, "a large output");
}

/* WORK-3: whatever a work item brings comes whole, and so does its completion. */
void
work_long_and_large(struct dk_check *t)
{
  const char *instance = long_text(t, 'i', '1'), *tag = long_text(t, 't', '1');
  struct dk_bytes large = large_bytes(t);

  given_instance(t, instance);
  must(t, ack_turn(t, next_turn(t, instance),
                   .schedule = {{BEYOND_DOUBLE, .tag = tag, .bytes = large}}));
  struct dk_work_item *work = fetch_work(t, .owner = long_text(t, 'w', '1'));
  expect_text(t, work->item.instance, instance, "long instance id");
  expect_equal(t, work->item.activity_id, BEYOND_DOUBLE, "a great activity id");
  expect_text(t, work->item.tag, tag, "long tag");
  expect_bytes(t, work->item.payload, large, "a large payload");
  must(t, abandon_work(t, work->work.lock_token));
  expect_no_work(t, .tag_rule = DK_TAG_LISTED, .tags = {long_text(t, 't', '2')});
  work = fetch_work(t, .tag_rule = DK_TAG_LISTED, .tags = {tag});
  must(t, renew_work(t, work->work.lock_token));
  must(t, ack_work(t, work->work.lock_token, .to = instance, .id = long_text(t, 'd', '1')));
  expect_ids(t, the_turn_of(t, instance), long_text(t, 'd', '1'));
}

/* CANCEL-1: an activity is identified by all bits of its number, and all bytes of its instance. */
void
cancel_whole_identity(struct dk_check *t)
{
  const char *one = long_text(t, 'i', '1'), *two = long_text(t, 'i', '2');

  given_instance(t, two);
  must(t, ack_turn(t, next_turn(t, two), .schedule = {{BEYOND_32_BITS + 7}}));
  given_instance(t, one);
  must(t, ack_turn(t, next_turn(t, one),
                   .schedule = {{7}, {BEYOND_32_BITS + 7}, {BEYOND_DOUBLE}, {BEYOND_DOUBLE - 1},
                                {INT64_MAX}, {INT64_MAX - 1}}));
  must(t, ack_turn(t, next_turn(t, one),
                   .cancel = {BEYOND_32_BITS + 7, BEYOND_DOUBLE, INT64_MAX}));
  struct taken_work left = take_work(t);
  expect_equal(t, left.n, 4, "activities that are left");
  expect(t, item_of(&left, one, 1, 7), "an activity with the same lower 32 bits stays");
  expect(t, item_of(&left, one, 1, BEYOND_DOUBLE - 1), "the activity before 2^53 + 1 stays");
  expect(t, item_of(&left, one, 1, INT64_MAX - 1), "the activity before the greatest one stays");
  expect(t, item_of(&left, two, 1, BEYOND_32_BITS + 7), "that of a similar instance stays");
}
