/* SPDX-License-Identifier: Apache-2.0 */
/* ERR-4: the declared limits, tested at their edge.  What is exactly as large works in every
 * operation; one more is refused by the host, by the numbers that the provider has declared.
 *
 * A limit may be declared far beyond what a run can afford: then it is tested as far as the bounds
 * below, which are those of the kit and not of the contract. */
#include <string.h>

#include "conformance/checks/checks.h"

#define FARTHEST_ID        (UINT64_C(64) << 10)
#define FARTHEST_PAYLOAD   (UINT64_C(16) << 20)
#define FARTHEST_IN_COMMIT (UINT64_C(1) << 20) /* one of its payloads */
#define FARTHEST_BYTES     (UINT64_C(16) << 20)
#define FARTHEST_ITEMS     UINT64_C(200000)

static uint64_t
at_most(uint64_t declared, uint64_t farthest)
{
  return declared < farthest ? declared : farthest;
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* As long as an id may be; two of them differ in the last byte only. */
static const char *
longest_id(struct dk_check *t, char first, char last)
{
  size_t n = (size_t)at_most(provider(t)->limits->max_id, FARTHEST_ID);
  char *text = (char *)filled(t, n, 'x').ptr;

  text[0] = first;
  text[n - 1] = last;
  return text;
}

/* One byte more: the host refuses it by the declared number. */
static const char *
longer_id(struct dk_check *t)
{
  return filled(t, (size_t)provider(t)->limits->max_id + 1, 'x').ptr;
}

/* ERR-4: ids of messages and instances, names, versions, parents and owners of turns. */
void
err_longest_ids(struct dk_check *t)
{
  const char *one = longest_id(t, 'i', '1'), *two = longest_id(t, 'i', '2');
  const char *first = longest_id(t, 'm', '1'), *second = longest_id(t, 'm', '2');
  const char *third = longest_id(t, 'm', '3'), *owner = longest_id(t, 'o', '1');
  const char *name = longest_id(t, 'n', '1');

  must(t, enqueue(t, one, .id = first));
  must(t, enqueue(t, one, .id = second));
  expect_status(t, enqueue(t, one, .id = second), DK_DUPLICATE);
  struct dk_turn *turn = fetch_turn(t, .owner = owner);
  expect_ids(t, turn, first, second);
  must(t, renew_turn(t, turn->head.lock_token));
  must(t, abandon_turn(t, turn->head.lock_token));
  turn = fetch_turn(t, .owner = owner);
  must(t, ack_turn(t, turn, .name = name, .version = longest_id(t, 'v', '1'), .parent = two,
                   .owner = owner, .send = {{two, .id = first}, {two, .id = second},
                                            {one, .id = third, .delay_ms = 1000}}));
  must(t, ack_turn(t, the_turn_of(t, two), .cancel_messages = {first}));
  must(t, enqueue(t, one, .id = second));
  turn = fetch_turn(t, .owner = owner);
  expect_text(t, turn->head.name, name, "the longest name");
  expect_text(t, turn->head.version, longest_id(t, 'v', '1'), "the longest version");
  expect_text(t, turn->head.parent_instance, two, "the longest id of a parent");
  expect_ids(t, turn, second);
  must(t, ack_turn(t, turn, .events = {{1}}, .cancel_messages = {third}));
  expect_equal(t, read_history(t, one)->n_events, 1, "events of the instance with the longest id");
  advance(t, 1000);
  expect_no_turn(t);
  if (provider(t)->limits->max_id < FARTHEST_ID)
    expect_status(t, enqueue(t, one, .id = longer_id(t)), DK_INVALID);
}

/* ERR-4: ids of work, with tags and owners of workers, and its completions. */
void
err_longest_work_ids(struct dk_check *t)
{
  const char *one = longest_id(t, 'i', '1'), *two = longest_id(t, 'i', '2');
  const char *gpu = longest_id(t, 't', '1'), *tape = longest_id(t, 't', '2');
  const char *worker = longest_id(t, 'w', '1'), *done = longest_id(t, 'd', '1');
  struct dk_commit_outcome outcome;

  given_instance_with_activities(t, two, 1);
  given_instance(t, one);
  must(t, ack_turn(t, next_turn(t, one), .schedule = {{1, .tag = gpu}, {2, .tag = tape}}));
  struct dk_work_item *work =
    fetch_work(t, .owner = worker, .tag_rule = DK_TAG_LISTED, .tags = {gpu});
  expect_equal(t, work->item.activity_id, 1, "the activity with this of two longest tags");
  expect_no_work(t, .tag_rule = DK_TAG_LISTED, .tags = {gpu});
  must(t, renew_work(t, work->work.lock_token));
  must(t, ack_turn(t, next_turn(t, one), .cancel = {1}, .ret_outcome = &outcome));
  expect_equal(t, outcome.n_stolen, 1, "rows that were reported as stolen");
  expect_text(t, outcome.stolen[0].owner, worker, "the longest id of a worker");
  expect_bytes(t, outcome.stolen[0].lock_token, work->work.lock_token,
               "token of a stolen row of an instance with the longest id");
  work = fetch_work(t, .tag_rule = DK_TAG_LISTED, .tags = {tape});
  expect_text(t, work->item.instance, one, "the longest id of an instance");
  expect_text(t, work->item.tag, tape, "the longest tag");
  must(t, abandon_work(t, work->work.lock_token));
  work = fetch_work(t, .tag_rule = DK_TAG_LISTED, .tags = {tape, gpu});
  must(t, ack_work(t, work->work.lock_token, .to = two, .id = done));
  expect_ids(t, the_turn_of(t, two), done);
  expect_text(t, fetch_work(t)->item.instance, two, "the instance whose activity 1 is left");
}

/* ---- payloads -------------------------------------------------------------------------------- */

/* Nearly all bytes that there are; the ends differ, so that what is cut off is seen. */
static struct dk_bytes
payload_of(struct dk_check *t, uint64_t size)
{
  struct dk_bytes made = filled(t, (size_t)size, 0);
  char *at = (char *)made.ptr;

  for (size_t i = 0; i < made.len; i++)
    at[i] = (char)(i * 31 + (i >> 8));
  at[made.len - 1] = 'e';
  return made;
}

static void
expect_payload(struct dk_check *t, struct dk_bytes got, struct dk_bytes wanted, const char *what)
{
  expect_equal(t, got.len, wanted.len, "bytes of %s", what);
  expect(t, same_bytes(got, wanted), "%s comes back byte for byte", what);
}

/* One byte more than the limit, wherever a payload may be. */
static void
expect_too_large(struct dk_check *t, struct dk_turn *turn, uint64_t most)
{
  struct dk_bytes large = filled(t, (size_t)most + 1, 'x');
  struct dk_event event = {next_event(turn), large};
  struct dk_item message = {.struct_size = sizeof message, .instance = bytes("inst"),
                            .payload = large};
  struct dk_item activity = {.struct_size = sizeof activity, .execution_id = 1, .activity_id = 9,
                             .payload = large};
  const struct dk_item *messages[] = {&message}, *activities[] = {&activity};
  const struct dk_turn_result commits[] = {
    {.execution_id = 1, .events = &event, .n_events = 1},
    {.execution_id = 1, .worker_items = activities, .n_worker_items = 1},
    {.execution_id = 1, .orchestrator_items = messages, .n_orchestrator_items = 1},
    {.execution_id = 1, .status = DK_COMPLETED, .output = large},
  };

  expect_status(t, traced(t, dk_store_enqueue_for_orchestrator(store_of(t, NULL),
                                                               caller_of(t, NULL), &message)),
                DK_TOO_LARGE);
  for (size_t i = 0; i < sizeof commits / sizeof commits[0]; i++) {
    struct dk_turn_result commit = commits[i];
    commit.struct_size = sizeof commit;
    expect_status(t, ack_turn(t, turn, .raw = &commit), DK_TOO_LARGE);
  }
}

/* Everything that a commit stores, and what a worker answers, of this payload. */
static void
expect_everywhere(struct dk_check *t, struct dk_turn *turn, struct dk_bytes payload)
{
  struct dk_event event = {next_event(turn), payload};
  struct dk_item message = {.struct_size = sizeof message, .instance = bytes("other"),
                            .payload = payload};
  struct dk_item activity = {.struct_size = sizeof activity, .execution_id = 1, .activity_id = 1,
                             .payload = payload};
  const struct dk_item *messages[] = {&message}, *activities[] = {&activity};
  struct dk_turn_result commit = {
    .struct_size = sizeof commit, .execution_id = 1, .status = DK_COMPLETED, .events = &event,
    .n_events = 1, .worker_items = activities, .n_worker_items = 1,
    .orchestrator_items = messages, .n_orchestrator_items = 1, .output = payload,
  };

  must(t, ack_turn(t, turn, .raw = &commit));
  struct dk_work_item *work = the_item_of(t, "inst", 1);
  expect_payload(t, work->item.payload, payload, "the large payload of an activity");
  struct dk_turn *other = the_turn_of(t, "other");
  expect_payload(t, other->messages[0].payload, payload, "the large payload of a message");
  must(t, ack_turn(t, other, .empty = true));
  struct dk_history *history = read_history(t, "inst");
  expect_payload(t, history->events[history->n_events - 1].payload, payload,
                 "the large payload of an event");
  expect_payload(t, history->execution.output, payload, "the large output");
  struct dk_work_result done = {.struct_size = sizeof done, .completion = &message};
  must(t, traced(t, dk_store_ack_work_item(store_of(t, NULL), caller_of(t, NULL),
                                           work->work.lock_token, &done)));
  expect_payload(t, the_turn_of(t, "other")->messages[0].payload, payload,
                 "the large payload of a completion");
}

/* ERR-4: the largest payload, as a message; a large one wherever a commit may have it; and one byte
 * more than the limit nowhere. */
void
err_largest_payload(struct dk_check *t)
{
  const struct dk_limits *limits = provider(t)->limits;
  uint64_t most = at_most(limits->max_payload, FARTHEST_PAYLOAD);

  given_instance(t, "inst");
  struct dk_bytes large = payload_of(t, most);
  must(t, enqueue(t, "inst", .id = "large", .bytes = large));
  struct dk_turn *turn = fetch_turn(t);
  expect_payload(t, turn->messages[0].payload, large, "the largest payload of a message");
  if (most == limits->max_payload)
    expect_too_large(t, turn, most);
  large.len = (size_t)at_most(at_most(most, limits->max_commit_bytes / 8), FARTHEST_IN_COMMIT);
  expect_everywhere(t, turn, large);
}

/* ---- commits --------------------------------------------------------------------------------- */

/* ERR-4: as many items as a commit may have, all in one list: which no statement has room for. */
void
err_most_items(struct dk_check *t)
{
  uint64_t limit = provider(t)->limits->max_commit_items, n = at_most(limit, FARTHEST_ITEMS);
  size_t size = (size_t)(n + 1) * sizeof(struct dk_activity);
  struct dk_activity *all = (struct dk_activity *)(void *)filled(t, size, 0).ptr;
  struct dk_commit_outcome outcome;

  given_instance_with_activities(t, "inst", 3);
  fetch_activity(t, "inst", 2);
  for (uint64_t i = 0; i <= n; i++)
    all[i] = (struct dk_activity){1, n - i + 1};
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .cancelled_activities = all, .n_cancelled_activities = n + 1};
  struct dk_turn *turn = next_turn(t, "inst");
  if (n == limit)
    expect_status(t, ack_turn(t, turn, .raw = &result), DK_TOO_LARGE);
  result.n_cancelled_activities = n;
  must(t, ack_turn(t, turn, .raw = &result, .ret_outcome = &outcome));
  expect_equal(t, outcome.report.free_rows + outcome.report.locked_rows, 2,
               "rows that were deleted by a list of %llu, most of them absent",
               (unsigned long long)n);
  advance(t, LEASE_MS);
  the_item_of(t, "inst", 1);
}

/* Events that fill a commit to the last byte, in payloads of equal length but for the last. */
static size_t
fill_with_events(struct dk_event *events, struct dk_bytes large, uint64_t bytes)
{
  size_t n = 0;

  for (; bytes > 0; n++) {
    size_t part = bytes < large.len ? (size_t)bytes : large.len;
    events[n] = (struct dk_event){n + 1, {large.ptr + large.len - part, part}};
    bytes -= part;
  }
  return n;
}

enum { EVENTS_OF_LARGEST = 64 };

/* ERR-4: as many bytes as a commit may have. */
void
err_most_bytes(struct dk_check *t)
{
  const struct dk_limits *limits = provider(t)->limits;
  uint64_t most = at_most(limits->max_commit_bytes, FARTHEST_BYTES);
  struct dk_event events[EVENTS_OF_LARGEST + 2];
  uint64_t part = at_most(limits->max_payload, most / EVENTS_OF_LARGEST + 1);

  most = at_most(most, part * EVENTS_OF_LARGEST);
  must(t, ack_turn(t, next_turn(t, "inst")));
  struct dk_bytes large = payload_of(t, part + 1);
  large = (struct dk_bytes){large.ptr + 1, large.len - 1};
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .events = events};
  struct dk_turn *turn = next_turn(t, "inst");
  if (most == limits->max_commit_bytes) {
    result.n_events = fill_with_events(events, large, most + 1);
    expect_status(t, ack_turn(t, turn, .raw = &result), DK_TOO_LARGE);
  }
  result.n_events = fill_with_events(events, large, most);
  must(t, ack_turn(t, turn, .raw = &result));
  struct dk_history *history = read_history(t, "inst");
  expect_equal(t, history->n_events, result.n_events, "events of the largest commit");
  for (size_t i = 0; i < history->n_events; i++)
    expect_payload(t, history->events[i].payload, events[i].payload, "an event of this commit");
}
