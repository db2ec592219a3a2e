/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold after the storm: see storm.h. */
#include "tests/storm/storm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/format/event.h"

enum { SHOWN = 10, MOST_EVENTS = 64 };

struct verdict {
  struct dk_store *store;
  struct dk_caller *caller;
  int by_shape[SHAPES][2];   /* as wanted; otherwise */
  int failed, not_over, wrong_output, twice, wrong_ids, wrong_ends, wrong_cancels, unreadable;
  int shown;
};

static int *
wrong(struct verdict *v, int *which, int number, const char *what)
{
  char name[16];

  ++*which;
  instance_name(name, number);
  if (v->shown++ < SHOWN)
    diag("%s (%s): %s", name, shape_name(instance_shape(number)), what);
  return which;
}

/* ---- one history ----------------------------------------------------------------------------- */

struct tally {
  int kinds[N_EVENT_KINDS];
  int ends[MOST_EVENTS + 1];   /* of the event with this id */
};

static void
count_event(struct verdict *v, int number, struct tally *tally, const struct event *event,
            uint64_t expected_id)
{
  bool is_end = event->kind == EVENT_ACTIVITY_COMPLETED || event->kind == EVENT_ACTIVITY_FAILED
                || event->kind == EVENT_DROPPED || event->kind == EVENT_ENDED
                || event->kind == EVENT_TIMER_FIRED || event->kind == EVENT_CHILD_COMPLETED
                || event->kind == EVENT_CHILD_FAILED;

  tally->kinds[event->kind]++;
  if (event->id != expected_id)
    wrong(v, &v->wrong_ids, number, "an event's id is not one above the last");
  if (is_end && (event->source == 0 || event->source >= event->id || event->source > MOST_EVENTS))
    wrong(v, &v->wrong_ends, number, "what has ended never began");
  else if (is_end && tally->ends[event->source]++ > 0)
    wrong(v, &v->twice, number, "something has ended twice");
}

/* How many of what ends by itself, and of what is cancelled, a shape has: completions, drops, ended
 * with the instance. */
static void
judge_counts(struct verdict *v, int number, const struct tally *tally, int executions)
{
  enum shape shape = instance_shape(number);
  const int *n = tally->kinds;
  int completions = shape == FIVE || shape == FAN ? 5 : shape == HOLD ? 1 : 0;
  bool is_hold = shape == HOLD;

  /* One that is cancelled early has not done its first step. */
  if (is_hold ? n[EVENT_ACTIVITY_COMPLETED] > 1 : n[EVENT_ACTIVITY_COMPLETED] != completions)
    wrong(v, &v->twice, number, "a wrong number of activities is completed");
  if (n[EVENT_ACTIVITY_FAILED] + n[EVENT_CHILD_FAILED] > 0)
    wrong(v, &v->failed, number, "an activity, or a child, has failed");
  if (n[EVENT_DROPPED] != (shape == SELECT) || (n[EVENT_ENDED] > 0 && !is_hold))
    wrong(v, &v->wrong_cancels, number, "something is cancelled, or not, against the code");
  if (n[EVENT_CANCEL_REQUESTED] != is_hold || n[EVENT_CANCELLED] != is_hold)
    wrong(v, &v->wrong_cancels, number, "cancelled without being asked, or not once");
  if (n[EVENT_COMPLETED] + n[EVENT_FAILED] + n[EVENT_CANCELLED] != 1 || executions != 1)
    wrong(v, &v->not_over, number, "it has not ended once");
}

static void
judge_end(struct verdict *v, int number, const struct event *last)
{
  enum event_kind wanted = instance_shape(number) == HOLD ? EVENT_CANCELLED : EVENT_COMPLETED;

  v->by_shape[instance_shape(number)][last->kind != wanted]++;
  if (last->kind == EVENT_FAILED)
    wrong(v, &v->failed, number, last->text.ptr ? last->text.ptr : "failed");
  else if (last->kind != wanted)
    wrong(v, &v->not_over, number, event_kind_name(last->kind));
  else if (wanted == EVENT_COMPLETED && strcmp(last->text.ptr ? last->text.ptr : "", "5") != 0)
    wrong(v, &v->wrong_output, number, "the output is wrong");
}

static void
judge_events(struct verdict *v, int number, const struct dk_history *history)
{
  struct tally tally = {.kinds = {0}};
  struct event event = {.id = 0};
  const char *why = "";
  struct dk_arena arena;

  dk_arena_init(&arena);
  for (size_t i = 0; i < history->n_events; i++) {
    if (event_decode(&arena, history->events[i].payload, &event, &why) != DK_OK) {
      wrong(v, &v->unreadable, number, why);
      break;
    }
    event.id = history->events[i].event_id;
    count_event(v, number, &tally, &event, i + 1);
  }
  judge_end(v, number, &event);
  judge_counts(v, number, &tally, (int)history->execution.execution_id);
  dk_arena_done(&arena);
}

static void
judge_instance(struct verdict *v, int number)
{
  char name[16];
  struct dk_read_history request = {.struct_size = sizeof request};
  struct dk_history *history = NULL;

  instance_name(name, number);
  request.instance = dk_str_of(name);
  dk_caller_reset(v->caller);
  dk_status status = dk_store_read_history(v->store, v->caller, &request, &history);
  if (status != DK_OK)
    wrong(v, &v->unreadable, number, dk_caller_failure(v->caller)->text);
  else if (!history->found || history->n_events == 0)
    wrong(v, &v->not_over, number, "it has no history");
  else
    judge_events(v, number, history);
}

/* ---- the queues ------------------------------------------------------------------------------ */

/* What a killed process held may still be locked, so this waits for a lease.  A message for an
 * instance that has ended (the second of two cancellations) is dropped, as a runtime drops it. */
static int
drain_turns(struct verdict *v, int64_t wait_ms, int *ret_strays)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = 60000};
  struct dk_turn_result nothing = {.struct_size = sizeof nothing};
  struct dk_commit_outcome outcome = {.incomplete = 0};
  struct dk_turn *turn;
  int left = 0;

  for (;;) {
    dk_caller_reset(v->caller);
    request.wait_until = dk_clock_system()->now(dk_clock_system()) + wait_ms;
    dk_status status = dk_store_fetch_orchestration_item(v->store, v->caller, &request, &turn);
    if (status == DK_NOTHING)
      return left;
    if (status != DK_OK)
      return -1;
    if (turn->head.known && turn->head.status != DK_RUNNING)
      ++*ret_strays;
    else
      left++;
    if (dk_store_ack_orchestration_item(v->store, v->caller, turn->head.lock_token, &nothing,
                                        &outcome) != DK_OK)
      return -1;
  }
}

static int
drain_work(struct verdict *v)
{
  struct dk_fetch_work request = {.struct_size = sizeof request,
                                  .max_items = 1,
                                  .lock_ms = 60000,
                                  .tag_rule = DK_TAG_ANY};
  struct dk_works *works;
  int left = 0;
  dk_status status;

  dk_caller_reset(v->caller);
  while ((status = dk_store_fetch_work_item(v->store, v->caller, &request, &works)) == DK_OK)
    left++;
  return status == DK_NOTHING ? left : -1;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void
tell_bodies(const struct shared *shared)
{
  unsigned runs = atomic_load(&shared->n_runs), first = atomic_load(&shared->n_first);

  diag("%u bodies of steps began; %u of them again, because their process had ended", runs,
       runs - first);
  diag("activities notified to end: %u because of deleted rows, %u at a stop; leases lost: %u",
       atomic_load(&shared->causes[DK_CAUSE_CANCELLED]),
       atomic_load(&shared->causes[DK_CAUSE_SHUTDOWN]),
       atomic_load(&shared->numbers[DK_LOG_LEASE_LOST]));
  diag("turns dropped %u, delayed %u; store unreachable %u, back %u; strays %u; refused results %u",
       atomic_load(&shared->numbers[DK_LOG_TURN_DROPPED]),
       atomic_load(&shared->numbers[DK_LOG_STALLED]),
       atomic_load(&shared->numbers[DK_LOG_STORE_AWAY]),
       atomic_load(&shared->numbers[DK_LOG_STORE_BACK]),
       atomic_load(&shared->numbers[DK_LOG_STRAY]),
       atomic_load(&shared->numbers[DK_LOG_RESULT_REFUSED]));
}

static void
tell_shapes(const struct verdict *v)
{
  diag("%-8s %8s %8s", "shape", "as asked", "not so");
  for (int i = 0; i < SHAPES; i++)
    diag("%-8s %8d %8d", shape_name((enum shape)i), v->by_shape[i][0], v->by_shape[i][1]);
}

static void
judge_queues(const struct run *run, struct verdict *v)
{
  int strays = 0, turns = drain_turns(v, run->lock_ms + 500, &strays), work = drain_work(v);

  if (!ok(turns == 0 && work == 0, "the queues are empty"))
    diag("%d turns and %d activities are left (-1: they cannot be fetched: %s)", turns, work,
         dk_caller_failure(v->caller)->text);
  diag("%d turns held only messages for instances that have ended", strays);
}

void
judge(const struct run *run, struct dk_store *store)
{
  struct verdict v = {.store = store, .caller = dk_caller_new(NULL, 0)};
  const struct shared *shared = run->shared;

  if (!v.caller)
    BAIL_OUT("no memory for a caller");
  for (int i = 0; i < run->instances; i++) {
    judge_instance(&v, i);
    if (instance_shape(i) == CHILD)
      judge_instance(&v, i + MOST_INSTANCES);
  }
  tell_shapes(&v);
  cmp_ok(v.not_over, "==", 0, "every instance has ended once, as requested");
  cmp_ok(v.failed, "==", 0, "none has failed");
  cmp_ok(v.wrong_output, "==", 0, "each has the right output");
  cmp_ok(v.twice, "==", 0, "nothing is recorded twice, no completion is missing");
  cmp_ok(v.wrong_ids, "==", 0, "the event ids ascend without a gap: no turn is committed twice");
  cmp_ok(v.wrong_ends, "==", 0, "all that has ended had begun");
  cmp_ok(v.wrong_cancels, "==", 0, "each cancellation was requested, and took effect once");
  cmp_ok(v.unreadable, "==", 0, "all histories can be read");
  cmp_ok(atomic_load(&shared->wrongly_cancelled), "==", 0,
         "no activity was notified of a cancellation that was not made");
  cmp_ok(atomic_load(&shared->levels[DK_LEVEL_ERROR + 1]), "==", 0, "no error was logged");
  judge_queues(run, &v);
  tell_bodies(shared);
  dk_caller_free(v.caller);
}
