/* SPDX-License-Identifier: Apache-2.0 */
/* HIST: what commits append is kept for good, and read whole, page after page, execution by
 * execution. */
#include "conformance/checks/checks.h"

#define BEYOND_31_BITS ((uint64_t)1 << 31)
#define BEYOND_32_BITS ((uint64_t)1 << 32)
#define BEYOND_DOUBLE  (((uint64_t)1 << 53) + 1)

/* The next turn of "inst" appends these, and nothing else. */
static void
hist_append(struct dk_check *t, uint64_t execution_id, const struct dk_event *events, size_t n)
{
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = execution_id,
                                  .events = events, .n_events = n};

  must(t, ack_turn(t, next_turn(t, "inst"), .raw = &result));
}

static void
expect_events(struct dk_check *t, const struct dk_event *got, size_t n_got,
              const struct dk_event *wanted, size_t n, const char *where)
{
  for (size_t i = 0; i < n && i < n_got; i++) {
    expect_equal(t, got[i].event_id, wanted[i].event_id, "id of event %zu %s", i + 1, where);
    expect_bytes(t, got[i].payload, wanted[i].payload, "payload of event %lld %s",
                 (long long)wanted[i].event_id, where);
  }
  expect_equal(t, n_got, n, "events %s", where);
}

/* Expects all of them, read and fetched.  The turn is abandoned. */
static void
expect_history(struct dk_check *t, const struct dk_event *wanted, size_t n)
{
  struct dk_history *history = read_history(t, "inst");
  struct dk_turn *turn = next_turn(t, "inst");

  expect(t, history->found, "the history is there");
  expect_events(t, history->events, history->n_events, wanted, n, "in what was read");
  expect_events(t, turn->events, turn->n_events, wanted, n, "in the turn");
  must(t, abandon_turn(t, turn->head.lock_token));
}

static void
expect_event_ids(struct dk_check *t, const struct dk_history *history, const uint64_t *ids)
{
  size_t n = 0;

  expect(t, history->found, "the execution is reported, whichever events follow");
  for (; ids[n]; n++)
    if (n < history->n_events)
      expect_equal(t, history->events[n].event_id, ids[n], "id of event %zu of the page", n + 1);
  expect_equal(t, history->n_events, n, "events of the page");
}
#define expect_page(t, history, ...)                                                               \
  expect_event_ids(t, history, (const uint64_t[]){__VA_ARGS__, 0})

/* ---- appended for good ----------------------------------------------------------------------- */

/* HIST-1: any bytes come back, under the ids that they were given. */
void
hist_comes_back_bytewise(struct dk_check *t)
{
  struct dk_bytes every = filled(t, 256, 0);
  for (size_t i = 0; i < every.len; i++)
    ((char *)every.ptr)[i] = (char)i;
  const struct dk_event events[] = {
    {2, {"", 0}}, {3, every}, {7, {"before\0after", 12}}, {40, {"\xff\xfe no UTF-8", 12}},
    {41, {"\0", 1}}, {90, {" blanks \r\n", 10}}, {91, {"", 0}},
  };

  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t)));
  hist_append(t, 1, events, 4);
  hist_append(t, 1, events + 4, 3);
  expect_history(t, events, 7);
}

/* HIST-1: the order is that of numbers, over any count of digits and of commits. */
void
hist_ascends_as_numbers(struct dk_check *t)
{
  const struct dk_event events[] = {
    {8, bytes("a")},   {9, bytes("b")},    {10, bytes("c")},
    {11, bytes("d")},  {99, bytes("e")},   {100, bytes("f")},
    {101, bytes("g")}, {1000, bytes("h")}, {BEYOND_31_BITS + 5, bytes("i")},
    {BEYOND_32_BITS + 4, bytes("j")},
  };

  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t)));
  hist_append(t, 1, events, 2);
  hist_append(t, 1, events + 2, 5);
  hist_append(t, 1, events + 7, 3);
  expect_history(t, events, 10);
}

/* HIST-1: neither a refused commit nor a later one nor the end changes what was appended. */
void
hist_never_changes(struct dk_check *t)
{
  const struct dk_event events[] = {{1, bytes("started")}, {2, bytes("second")},
                                    {3, bytes("third")}};

  given_instance(t, "inst");
  hist_append(t, 1, events + 1, 2);
  struct dk_turn *turn = next_turn(t, "inst");
  before(t);
  expect_status(t, ack_turn(t, turn, .events = {{2, "changed"}, {4}}), DK_DUPLICATE);
  expect_status(t, ack_turn(t, turn, .events = {{3, "changed"}}), DK_DUPLICATE);
  expect_unchanged(t);
  must(t, ack_turn(t, turn, .name = "renamed", .version = "2.0.0"));
  expect_history(t, events, 3);
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_COMPLETED, .output = "result"));
  expect_history(t, events, 3);
}

/* ---- asked for ------------------------------------------------------------------------------- */

/* HIST-2: each execution is read by its number, and the current one by 0, even if it has no
 * event. */
void
hist_reads_what_is_asked(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .events = {{5, "of the second"}}));
  struct dk_history *history = read_history(t, "inst");
  expect(t, history->found, "a read of execution 0 finds the current one");
  expect_equal(t, history->execution.execution_id, 2, "the latest execution");
  expect_page(t, history, 5);
  history = read_history(t, "inst", .execution_id = 1);
  expect_equal(t, history->execution.execution_id, 1, "the execution that was asked for");
  expect_page(t, history, 1);

  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 3));
  history = read_history(t, "inst");
  expect_equal(t, history->execution.execution_id, 3, "the latest execution, which has no event");
  expect_page(t, history, 0);
  expect_equal(t, history->execution.last_event_id, 0, "last event of the latest execution");
  expect_page(t, read_history(t, "inst", .execution_id = 3), 0);
  history = read_history(t, "inst", .execution_id = 2);
  expect_equal(t, history->execution.last_event_id, 5, "last event of the second execution");
  expect_page(t, history, 5);
  history = read_history(t, "inst", .execution_id = 4);
  expect(t, !history->found, "an execution that never existed brings nothing");
  expect_equal(t, history->n_events, 0, "events of an execution that never existed");
}

static void
expect_nothing(struct dk_check *t, const char *instance, uint64_t execution_id)
{
  struct dk_history *history =
    read_history(t, instance, .execution_id = execution_id, .from_event = 1);

  expect(t, !history->found, "\"%s\" was never committed, and has no execution", instance);
  expect_equal(t, history->n_events, 0, "events of \"%s\"", instance);
}

/* HIST-2: a queue, a locked turn or an empty commit makes no instance known. */
void
hist_absent_is_no_error(struct dk_check *t)
{
  given_instance(t, "inst");
  expect_nothing(t, "absent", 0);
  expect_nothing(t, "absent", 1);
  expect_nothing(t, "ins", 0);
  expect_nothing(t, "INST", 0);
  must(t, enqueue(t, "awaited", .id = "start"));
  expect_nothing(t, "awaited", 0);
  struct dk_turn *turn = fetch_turn(t);
  expect_nothing(t, "awaited", 1);
  must(t, ack_turn(t, turn, .empty = true));
  expect_nothing(t, "awaited", 0);
}

/* HIST-2: reading a history waits for no turn, and prevents no fetch of one. */
void
hist_reading_locks_nothing(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, enqueue(t, "inst", .id = "m"));
  expect_page(t, read_history(t, "inst"), 1);
  struct dk_turn *turn;
  dk_status status = try_fetch_turn(t, &turn);
  expect(t, status != DK_NOTHING, "reading a history leaves the instance free");
  expect_status(t, status, DK_OK);
  expect_ids(t, turn, "m");
  expect_equal(t, turn->messages[0].attempt, 1, "attempt: reading is not a delivery");

  expect_page(t, read_history(t, "inst"), 1);
  expect_page(t, read_history(t, "inst", .execution_id = 1), 1);
  expect_no_turn(t);
  must(t, renew_turn(t, turn->head.lock_token));
  must(t, ack_turn(t, turn, .events = {{2}}));
  expect_page(t, read_history(t, "inst"), 1, 2);
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* HIST-3: from_event is the first that may come, max_events how many. */
void
hist_from_and_max(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t), .events = {{2}, {5}, {9}}));
  must(t, ack_turn(t, next_turn(t, "inst"), .events = {{10}, {20}}));
  expect_page(t, read_history(t, "inst"), 2, 5, 9, 10, 20);
  expect_page(t, read_history(t, "inst", .from_event = 1), 2, 5, 9, 10, 20);
  expect_page(t, read_history(t, "inst", .from_event = 2), 2, 5, 9, 10, 20);
  expect_page(t, read_history(t, "inst", .from_event = 3), 5, 9, 10, 20);
  expect_page(t, read_history(t, "inst", .from_event = 5), 5, 9, 10, 20);
  expect_page(t, read_history(t, "inst", .from_event = 20), 20);
  expect_page(t, read_history(t, "inst", .max_events = 1), 2);
  expect_page(t, read_history(t, "inst", .max_events = 4), 2, 5, 9, 10);
  expect_page(t, read_history(t, "inst", .max_events = 5), 2, 5, 9, 10, 20);
  expect_page(t, read_history(t, "inst", .max_events = UINT32_MAX), 2, 5, 9, 10, 20);
  struct dk_history *history = read_history(t, "inst", .from_event = 6, .max_events = 2);
  expect_page(t, history, 9, 10);
  expect_equal(t, history->execution.last_event_id, 20, "last event, wherever the page ends");
}

/* HIST-3: page after page gives each event once, whether or not the last page is full. */
void
hist_page_after_page(struct dk_check *t)
{
  enum { EVENTS = 30 };
  struct dk_event events[EVENTS];

  for (uint64_t i = 0; i < EVENTS; i++)
    events[i] = (struct dk_event){3 * i + 2 + i % 3, bytes("event")};
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t)));
  hist_append(t, 1, events, 13);
  hist_append(t, 1, events + 13, EVENTS - 13);

  for (uint32_t size = 1; size <= EVENTS + 1; size += size < 8 ? 1 : 11) {
    uint64_t from = 0;
    size_t n = 0;
    struct dk_history *page;

    do {
      page = read_history(t, "inst", .from_event = from, .max_events = size);
      expect(t, page->found, "every page reports the execution, even the empty one behind the end");
      for (size_t i = 0; i < page->n_events && n < EVENTS; i++, n++)
        expect_equal(t, page->events[i].event_id, events[n].event_id,
                     "event %zu, read in pages of %u", n + 1, size);
      from = page->n_events ? page->events[page->n_events - 1].event_id + 1 : from;
    } while (page->n_events == size);
    expect_equal(t, n, EVENTS, "events, read in pages of %u", size);
    expect_page(t, read_history(t, "inst", .from_event = from, .max_events = size), 0);
  }
}

/* HIST-3: a page begins at any id that an event may have. */
void
hist_pages_at_great_ids(struct dk_check *t)
{
  const uint64_t ids[] = {BEYOND_31_BITS,    BEYOND_32_BITS + 1, BEYOND_DOUBLE - 1,
                          BEYOND_DOUBLE,     INT64_MAX - 1,      INT64_MAX};
  enum { EVENTS = sizeof ids / sizeof ids[0] };
  struct dk_event events[EVENTS];

  for (size_t i = 0; i < EVENTS; i++)
    events[i] = (struct dk_event){ids[i], bytes("event")};
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t)));
  hist_append(t, 1, events, EVENTS);
  for (size_t i = 0; i < EVENTS; i++) {
    struct dk_history *page = read_history(t, "inst", .from_event = ids[i]);
    expect_events(t, page->events, page->n_events, events + i, EVENTS - i,
                  "in a page from its own id on");
    expect_page(t, read_history(t, "inst", .from_event = ids[i], .max_events = 1), ids[i]);
  }
  expect_page(t, read_history(t, "inst", .from_event = BEYOND_31_BITS + 1, .max_events = 1),
              BEYOND_32_BITS + 1);
}

/* ---- earlier executions ---------------------------------------------------------------------- */

static void
expect_execution(struct dk_check *t, uint64_t execution_id, const struct dk_event *wanted, size_t n)
{
  struct dk_history *history = read_history(t, "inst", .execution_id = execution_id);

  expect(t, history->found, "execution %lld exists", (long long)execution_id);
  expect_events(t, history->events, history->n_events, wanted, n, "of an earlier execution");
  expect_equal(t, history->execution.last_event_id, wanted[n - 1].event_id, "its last event");
}

/* Four executions of "inst", whose event ids are the same, and what each was given. */
static const struct dk_event stories[4][3] = {
  {{1, {"one of first", 12}}, {2, {"two of first", 12}}, {3, {"three of first", 14}}},
  {{1, {"one of second", 13}}, {2, {"two of second", 13}}, {5, {"five of second", 14}}},
  {{2, {"two of third", 12}}, {3, {"three of third", 14}}, {4, {"", 0}}},
  {{1, {"one of fourth", 13}}, {2, {"\0two of fourth", 14}}, {9, {"nine of fourth", 14}}},
};

static void
given_four_executions(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t)));
  for (uint64_t e = 1; e <= 4; e++) {
    hist_append(t, e, stories[e - 1], 2);
    hist_append(t, e, stories[e - 1] + 2, 1);
  }
}

/* HIST-4: later executions leave the events of earlier ones as they are, even where ids are the
 * same. */
void
hist_earlier_stay(struct dk_check *t)
{
  given_four_executions(t);
  for (uint64_t e = 1; e <= 4; e++)
    expect_execution(t, e, stories[e - 1], 3);
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 4, .status = DK_COMPLETED));
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t), .empty = true));
  for (uint64_t e = 1; e <= 4; e++)
    expect_execution(t, e, stories[e - 1], 3);
}

/* HIST-5: every execution, and every event of it, is in the store. */
void
hist_same_after_reopening(struct dk_check *t)
{
  given_four_executions(t);
  close_handle(t, NULL);
  open_handle(t, NULL);
  expect_history(t, stories[3], 3);
  for (uint64_t e = 1; e <= 4; e++)
    expect_execution(t, e, stories[e - 1], 3);
  expect_page(t, read_history(t, "inst", .execution_id = 2, .from_event = 2, .max_events = 1), 2);
}

/* ---- long and large -------------------------------------------------------------------------- */

enum { LONG = 3000, IN_COMMIT = 1500, LARGE = 256 << 10, LARGE_EVENTS = 4, COMMITS = 3 };

/* HIST-5: thousands of events come with a cold fetch and with a read, none with a warm fetch. */
void
hist_long(struct dk_check *t)
{
  static const char story[] = "what happened";
  uint64_t most = provider(t)->limits->max_commit_items;
  size_t in_commit = most < IN_COMMIT ? (size_t)most : IN_COMMIT, n = 0;
  struct dk_event events[IN_COMMIT];
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .events = events, .owner = bytes("me")};

  given_instance(t, "inst");
  for (uint64_t id = 2; id <= LONG; id += n) {
    for (n = 0; n < in_commit && id + n <= LONG; n++)
      events[n] = (struct dk_event){id + n, {story + (id + n) % 10, 3}};
    result.n_events = n;
    must(t, ack_turn(t, next_turn(t, "inst"), .raw = &result));
  }
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t, .owner = "me");
  expect_equal(t, turn->n_events, 0, "events for the owner of a long history");
  expect_equal(t, turn->head.last_event_id, LONG, "last event of a long history");
  must(t, abandon_turn(t, turn->head.lock_token));

  struct dk_history *history = read_history(t, "inst");
  turn = fetch_turn(t);
  expect_equal(t, turn->n_events, LONG, "events that came with the turn");
  expect_equal(t, history->n_events, LONG, "events that were read");
  for (size_t i = 0; i < LONG; i++)
    expect(t, turn->events[i].event_id == i + 1 && history->events[i].event_id == i + 1,
           "event %zu has its id", i + 1);
  for (size_t i = 1; i < LONG; i++) {
    struct dk_bytes written = {story + (i + 1) % 10, 3};
    expect(t, same_bytes(turn->events[i].payload, written) &&
                same_bytes(history->events[i].payload, written),
           "event %zu has its payload", i + 1);
  }
  expect_page(t, read_history(t, "inst", .from_event = LONG - 1), LONG - 1, LONG);
}

/* HIST-5: a history may be larger than any one commit, and comes back whole. */
void
hist_large(struct dk_check *t)
{
  const struct dk_limits *limits = provider(t)->limits;
  uint64_t most = limits->max_commit_bytes / (LARGE_EVENTS + 1);
  size_t size = most < LARGE ? (size_t)most : LARGE;
  struct dk_event events[COMMITS * LARGE_EVENTS];

  size = limits->max_payload < size ? (size_t)limits->max_payload : size;
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t)));
  for (size_t i = 0; i < COMMITS * LARGE_EVENTS; i++) {
    events[i] = (struct dk_event){i + 1, filled(t, size, (char)('a' + i))};
    ((char *)events[i].payload.ptr)[size - 1] = '\0';
  }
  for (size_t i = 0; i < COMMITS; i++)
    hist_append(t, 1, events + i * LARGE_EVENTS, LARGE_EVENTS);
  expect_history(t, events, COMMITS * LARGE_EVENTS);
}
