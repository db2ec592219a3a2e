/* SPDX-License-Identifier: Apache-2.0 */
/* Readers beside writers: what a call does is seen whole or not at all, by another handle and by
 * another process, even while the call still runs.  A reader makes two calls, one after the other.
 * If the first one shows the commit, the second one must show it too. */
#include "conformance/checks/checks.h"

#include <stdio.h>

/* ---- one commit, and three places in which it is seen ---------------------------------------- */

enum place { HISTORY, WORK, SINK, PLACES };
enum { EVENTS = 8, EVENT_SIZE = 60000 }; /* so many bytes that the commit takes a while */

struct watched {
  char id[32];
  struct dk_bytes work, sink; /* tokens of what the reader was handed, to be ended */
};

static bool
has_event(struct dk_check *t, const struct watched *w)
{
  const struct dk_history *history = read_history(t, w->id);
  bool has = history->execution.last_event_id > 1;

  expect_equal(t, history->n_events, has ? 1 + EVENTS : 1, "events of a history, last event %llu",
               (unsigned long long)history->execution.last_event_id);
  return has;
}

/* What a call beside a commit may answer besides: it is to be made again. */
#define UNTIL_CLEAR(status, call)                                                                  \
  for (int tries_ = 0; tries_ < MOST_RETRIES && is_retryable((status) = (call)); tries_++)         \
  continue

static bool
has_work(struct dk_check *t, struct watched *w)
{
  struct dk_works *works = NULL;
  dk_status status = DK_NOTHING;

  UNTIL_CLEAR(status, try_fetch_work(t, &works));
  expect(t, status == DK_OK || status == DK_NOTHING, "work is fetched, or there is none");
  if (works != NULL)
    w->work = works->items[0].work.lock_token;
  return works != NULL;
}

static bool
has_message(struct dk_check *t, struct watched *w)
{
  struct dk_turn *turn = NULL;
  dk_status status = DK_NOTHING;

  UNTIL_CLEAR(status, try_fetch_turn(t, &turn));
  expect(t, status == DK_OK || status == DK_NOTHING, "a turn is fetched, or there is none");
  if (turn != NULL) {
    expect_text(t, turn->head.instance, "sink", "the instance that has a message");
    w->sink = turn->head.lock_token;
  }
  return turn != NULL;
}

static bool
is_seen(struct dk_check *t, enum place place, struct watched *w)
{
  switch (place) {
  case HISTORY: return has_event(t, w);
  case WORK: return has_work(t, w);
  default: return has_message(t, w);
  }
}

static const char *
name_place(enum place place)
{
  static const char *const names[PLACES] = {
    "its history (read_history)", "its activity (fetch_work_item)",
    "its message (fetch_orchestration_item)",
  };

  return names[place];
}

/* Looks until the commit is seen or its call has returned; true: a look began meanwhile. */
static bool
look_beside(struct dk_check *t, struct actor *writer, enum place first, enum place second,
            struct watched *w)
{
  bool looked = false;

  while (!returns_within(t, writer, 0)) {
    looked = true;
    if (!is_seen(t, first, w))
      continue;
    expect(t, is_seen(t, second, w), "a commit was seen by %s, and then not by %s: half of it",
           name_place(first), name_place(second));
    break;
  }
  return looked;
}

/* Ends what the round has left: the activity and the message, if no look has fetched them. */
static void
clear_round(struct dk_check *t, struct watched *w)
{
  if (w->work.ptr == NULL)
    expect(t, has_work(t, w), "the commit has returned, and its activity can be fetched");
  if (w->sink.ptr == NULL)
    expect(t, has_message(t, w), "the commit has returned, and its message can be fetched");
  must(t, ack_work(t, w->work));
  must(t, ack_token(t, w->sink, .empty = true));
}

static dk_status
commit_much(struct dk_check *t, struct dk_turn *turn, struct actor *writer, bool start)
{
  struct dk_event events[EVENTS];
  struct dk_item activity = {.struct_size = sizeof(activity), .execution_id = 1, .activity_id = 1,
                             .payload = bytes("work")};
  struct dk_item message = {.struct_size = sizeof(message), .instance = bytes("sink"),
                            .payload = bytes("news")};
  const struct dk_item *schedule = &activity, *send = &message;
  struct dk_turn_result result = {.struct_size = sizeof(result), .execution_id = 1,
                                  .events = events, .n_events = EVENTS,
                                  .worker_items = &schedule, .n_worker_items = 1,
                                  .orchestrator_items = &send, .n_orchestrator_items = 1};
  struct dk_bytes payload = filled(t, EVENT_SIZE, 'e');

  for (uint64_t i = 0; i < EVENTS; i++)
    events[i] = (struct dk_event){2 + i, payload};
  return ack_turn(t, turn, .on = writer, .start = start, .raw = &result);
}

static void
watch_commits(struct dk_check *t, struct actor *writer)
{
  for (uint32_t round = 0; more_rounds(t, ENOUGH_OVERLAPS); round++) {
    enum place first = (enum place)(round % PLACES);
    enum place second = (enum place)((first + 1 + round / PLACES % 2) % PLACES);
    struct watched w = {.work = {NULL, 0}};

    snprintf(w.id, sizeof(w.id), "inst-%u", round);
    given_instance(t, w.id);
    struct dk_turn *turn = next_turn(t, w.id);
    must(t, commit_much(t, turn, writer, true));
    until_begun(t, writer);
    witness(t, look_beside(t, writer, first, second, &w));
    dk_status status = finish(t, writer);
    for (int tries = 0; tries < MOST_RETRIES && is_retryable(status); tries++)
      status = commit_much(t, turn, writer, false);
    expect_status(t, status, DK_OK);
    clear_round(t, &w);
  }
}

/* ACK-1: another handle, or another call of the same one, never sees half a commit. */
void
ack_never_seen_half(struct dk_check *t)
{
  watch_commits(t, racer(t));
}

/* ACK-1: another process never sees half a commit. */
void
ack_never_half_to_processes(struct dk_check *t)
{
  watch_commits(t, another_process(t));
}

/* ---- acks ------------------------------------------------------------------------------------ */

enum { ITEMS = 4 };

/* Every activity is either still there or has become a message. */
static void
expect_sum(struct dk_check *t, const struct dk_stats *stats)
{
  uint64_t activities =
    stats->activities_ready + stats->activities_delayed + stats->activities_locked;
  uint64_t messages = stats->messages_ready + stats->messages_delayed + stats->messages_locked;

  expect_equal(t, activities + messages, ITEMS, "activities and completions, counted together");
}

/* An ack and a look at the same moment. */
static void
ack_beside_stats(struct dk_check *t, struct actor *worker, struct actor *looker,
                 struct dk_bytes token, const char *completion)
{
  hold_at_line(t, worker);
  hold_at_line(t, looker);
  must(t, ack_work(t, token, .on = worker, .start = true, .to = "sink", .payload = completion));
  must(t, try_read_stats(t, .on = looker, .start = true));
  witness(t, race(t, worker, looker));
  dk_status acked = finish(t, worker), looked = finish(t, looker);
  if (looked == DK_OK)
    expect_sum(t, finished_stats(t, looker));
  else
    expect(t, is_retryable(looked), "the counts are read, or are to be read again");
  for (int tries = 0; tries < MOST_RETRIES && is_retryable(acked); tries++)
    acked = ack_work(t, token, .on = worker, .to = "sink", .payload = completion);
  expect_status(t, acked, DK_OK);
}

/* WORK-4: at no moment are both there, the activity and its completion, or neither. */
void
work_ack_never_seen_half(struct dk_check *t)
{
  struct actor *worker = racer(t), *looker = racer(t);
  const char *large = filled(t, EVENT_SIZE, 'c').ptr;

  while (more_rounds(t, ENOUGH_OVERLAPS)) {
    given_instance_with_activities(t, "inst", ITEMS);
    for (uint64_t id = 1; id <= ITEMS; id++)
      ack_beside_stats(t, worker, looker, fetch_activity(t, "inst", id)->work.lock_token, large);
    must(t, delete_instances(t, .ids = {"inst", "sink"}, .force = true));
  }
}
