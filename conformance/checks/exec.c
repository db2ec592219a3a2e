/* SPDX-License-Identifier: Apache-2.0 */
/* EXEC: one execution after the other, each with a history, a status and times of its own. */
#include "conformance/checks/checks.h"

static const struct dk_execution *
execution_of(struct dk_check *t, const char *instance, uint64_t execution_id)
{
  struct dk_history *history = read_history(t, instance, .execution_id = execution_id);

  expect(t, history->found, "execution %lld exists", (long long)execution_id);
  return &history->execution;
}

/* ---- the next one begins --------------------------------------------------------------------- */

/* EXEC-1: the ids of the next execution's events start where they like. */
void
exec_starts_at_event_1(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .events = {{2}, {30}}));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2,
                   .events = {{1, "first of second"}, {2}}));
  struct dk_turn *turn = next_turn(t, "inst");
  expect_equal(t, turn->head.execution_id, 2, "execution");
  expect_equal(t, turn->n_events, 2, "events of the new execution, and of no other");
  expect_equal(t, turn->events[0].event_id, 1, "id of its first event");
  expect_text(t, turn->events[0].payload, "first of second", "payload of its first event");
  expect_equal(t, turn->head.last_event_id, 2, "its last event");

  expect_status(t, ack_turn(t, turn, .execution_id = 2, .events = {{2}}), DK_DUPLICATE);
  must(t, ack_turn(t, turn, .execution_id = 2, .events = {{3}}));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 3, .events = {{1}}));
  expect_equal(t, next_turn(t, "inst")->n_events, 1, "events of the third execution");
}

/* EXEC-1: a new execution has neither events nor output nor owner of the one before. */
void
exec_starts_from_nothing(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .events = {{2}}, .owner = "me",
                   .status = DK_CONTINUED_AS_NEW, .output = "of the first"));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2));
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t, .owner = "me");
  expect_equal(t, turn->head.execution_id, 2, "execution");
  expect_equal(t, turn->head.status, DK_RUNNING, "status");
  expect_equal(t, turn->n_events, 0, "events");
  expect_equal(t, turn->head.last_event_id, 0, "last event");
  expect_equal(t, turn->head.history_from, 1, "history_from");
  const struct dk_execution *begun = execution_of(t, "inst", 2);
  expect_equal(t, begun->status, DK_RUNNING, "status that is read");
  expect_equal(t, begun->last_event_id, 0, "last event that is read");
  expect_equal(t, begun->completed_at, 0, "completed_at");
  expect_text(t, begun->output, NULL, "output");

  must(t, ack_turn(t, turn, .execution_id = 2, .events = {{1}}, .owner = "me"));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 3, .events = {{1}, {2}}));
  must(t, enqueue(t, "inst"));
  turn = fetch_turn(t, .owner = "me");
  expect_equal(t, turn->n_events, 2, "events for the owner of an earlier execution's last commit");
}

/* ---- never back ------------------------------------------------------------------------------ */

/* EXEC-2: a commit that names an earlier execution changes neither that one nor the current one. */
void
exec_never_moves_back(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .events = {{1}}));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 3, .events = {{1}}));
  struct dk_turn *turn = next_turn(t, "inst");
  before(t);
  expect_status(t, ack_turn(t, turn, .execution_id = 1, .events = {{7, "late"}},
                            .status = DK_COMPLETED, .output = "late", .schedule = {{7}}),
                DK_INVALID);
  expect_status(t, ack_turn(t, turn, .execution_id = 2, .events = {{7, "late"}}), DK_INVALID);
  expect_status(t, ack_turn(t, turn, .execution_id = 2), DK_INVALID);
  expect_unchanged(t);
  expect_equal(t, read_history(t, "inst", .execution_id = 1)->n_events, 1, "events of the first");
  expect_equal(t, read_history(t, "inst", .execution_id = 2)->n_events, 1, "events of the second");
  expect_equal(t, read_history(t, "inst")->execution.execution_id, 3, "current execution");
  must(t, ack_turn(t, turn, .execution_id = 3, .events = {{2}}));
  turn = next_turn(t, "inst");
  expect_equal(t, turn->head.execution_id, 3, "current execution");
  expect_equal(t, turn->head.last_event_id, 2, "its last event");
}

/* ---- each its own ---------------------------------------------------------------------------- */

/* EXEC-3: status and output are kept per execution, and no execution ends another. */
void
exec_each_its_own_outcome(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .events = {{1}}));
  const struct dk_execution *first = execution_of(t, "inst", 1);
  expect_equal(t, first->status, DK_RUNNING, "status of the first, which no commit has ended");
  expect_equal(t, first->completed_at, 0, "completed_at of the first, which no commit has ended");
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .status = DK_CONTINUED_AS_NEW,
                   .output = "of the second"));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 3, .status = DK_FAILED));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 4, .status = DK_COMPLETED,
                   .output = "of the fourth"));

  expect_equal(t, execution_of(t, "inst", 1)->status, DK_RUNNING, "status of the first");
  expect_text(t, execution_of(t, "inst", 1)->output, NULL, "output of the first");
  const struct dk_execution *second = execution_of(t, "inst", 2);
  expect_equal(t, second->status, DK_CONTINUED_AS_NEW, "status of the second");
  expect_text(t, second->output, "of the second", "output of the second");
  expect_equal(t, execution_of(t, "inst", 3)->status, DK_FAILED, "status of the third");
  expect_text(t, execution_of(t, "inst", 3)->output, NULL, "output of the third");
  expect_equal(t, execution_of(t, "inst", 0)->status, DK_COMPLETED, "status of the latest");
  expect_text(t, execution_of(t, "inst", 0)->output, "of the fourth", "output of the latest");
}

static void
expect_times(struct dk_check *t, uint64_t execution_id, int64_t started_at, int64_t completed_at)
{
  const struct dk_execution *e = execution_of(t, "inst", execution_id);

  expect_equal(t, e->started_at, started_at, "started_at of execution %lld",
               (long long)execution_id);
  expect_equal(t, e->completed_at, completed_at, "completed_at of execution %lld",
               (long long)execution_id);
}

/* EXEC-3: the times are those of the commits that began and ended it, to the millisecond. */
void
exec_each_its_own_times(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  struct dk_turn *turn = fetch_turn(t);
  advance(t, 1234);
  int64_t began_first = now(t);
  must(t, ack_turn(t, turn, .events = {{1}}));
  advance(t, 1017);
  must(t, ack_turn(t, next_turn(t, "inst"), .events = {{2}}));
  expect_times(t, 1, began_first, 0);
  advance(t, 2001);
  turn = next_turn(t, "inst");
  advance(t, 3);
  int64_t ended_first = now(t);
  must(t, ack_turn(t, turn, .status = DK_CONTINUED_AS_NEW));
  expect_times(t, 1, began_first, ended_first);

  advance(t, 5432);
  int64_t began_second = now(t);
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .events = {{1}}));
  expect_times(t, 2, began_second, 0);
  advance(t, 777);
  int64_t ended_second = now(t);
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .status = DK_COMPLETED));
  expect_times(t, 2, began_second, ended_second);
  advance(t, 1);
  int64_t third = now(t);
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 3, .status = DK_FAILED));
  expect_times(t, 3, third, third);
  expect_times(t, 2, began_second, ended_second);
  expect_times(t, 1, began_first, ended_first);
}

/* EXEC-3: status, output and times of all executions are stored, also of earlier ones. */
void
exec_same_after_reopening(struct dk_check *t)
{
  enum { EXECUTIONS = 3 };
  static const int32_t ends[EXECUTIONS] = {DK_CANCELLED, DK_CONTINUED_AS_NEW, DK_RUNNING};
  static const char *const outputs[EXECUTIONS] = {"of the first", NULL, NULL};
  struct dk_execution was[EXECUTIONS];

  given_instance(t, "inst");
  for (uint64_t e = 1; e <= EXECUTIONS; e++) {
    must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = e, .events = {{2}}));
    advance(t, 1111);
    must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = e, .status = ends[e - 1],
                     .output = outputs[e - 1]));
    was[e - 1] = *execution_of(t, "inst", e);
  }
  close_handle(t, NULL);
  open_handle(t, NULL);
  for (uint64_t e = 1; e <= EXECUTIONS; e++) {
    const struct dk_execution *is = execution_of(t, "inst", e), *it = &was[e - 1];
    expect_equal(t, is->status, it->status, "status of execution %lld", (long long)e);
    expect_text(t, is->output, outputs[e - 1], "output of execution %lld", (long long)e);
    expect_times(t, e, it->started_at, it->completed_at);
  }
}

/* ---- completed ------------------------------------------------------------------------------- */

/* EXEC-4: each of the four ends sets completed_at. */
void
exec_completed_with_each_end(struct dk_check *t)
{
  static const int32_t ends[] = {DK_COMPLETED, DK_FAILED, DK_CANCELLED, DK_CONTINUED_AS_NEW};

  given_instance(t, "inst");
  for (uint64_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
    must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = e + 1, .events = {{2}}));
    expect_equal(t, execution_of(t, "inst", e + 1)->completed_at, 0, "completed_at while it runs");
    advance(t, 1500);
    int64_t ended = now(t);
    must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = e + 1, .status = ends[e]));
    advance(t, 1500);
    const struct dk_execution *got = execution_of(t, "inst", e + 1);
    expect_equal(t, got->completed_at, ended, "completed_at with status %d", ends[e]);
  }
}

/* EXEC-4: DK_RUNNING, and no status at all, end no execution; one that runs again has no time of
 * its end. */
void
exec_running_is_not_completed(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  must(t, ack_turn(t, fetch_turn(t), .status = DK_RUNNING));
  expect_equal(t, execution_of(t, "inst", 1)->completed_at, 0, "completed_at, begun as running");
  must(t, ack_turn(t, next_turn(t, "inst"), .events = {{1}}));
  expect_equal(t, execution_of(t, "inst", 1)->completed_at, 0, "completed_at, a status kept");
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_RUNNING, .output = "half"));
  expect_equal(t, execution_of(t, "inst", 1)->completed_at, 0, "completed_at, running once more");
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_FAILED));
  expect(t, execution_of(t, "inst", 1)->completed_at != 0, "completed_at is set with the end");
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_RUNNING));
  const struct dk_execution *again = execution_of(t, "inst", 1);
  expect_equal(t, again->status, DK_RUNNING, "status of an execution that runs again");
  expect_equal(t, again->completed_at, 0, "completed_at of an execution that runs again");
}

/* EXEC-4: later commits that bring no status leave the time of the end as it is. */
void
exec_completed_once(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_COMPLETED));
  int64_t ended = execution_of(t, "inst", 1)->completed_at;
  expect(t, ended != 0, "completed_at is set with the end");
  advance(t, 1000);
  must(t, ack_turn(t, next_turn(t, "inst"), .events = {{2}}));
  must(t, ack_turn(t, next_turn(t, "inst"), .empty = true));
  expect_equal(t, execution_of(t, "inst", 1)->completed_at, ended, "completed_at, a commit later");
  expect_equal(t, execution_of(t, "inst", 1)->status, DK_COMPLETED, "status, a commit later");
}

/* EXEC-5: every status is handed up as the one that was stored, with the turn and by a read. */
void
exec_cancelled_is_itself(struct dk_check *t)
{
  static const int32_t all[] = {DK_CANCELLED, DK_FAILED, DK_CANCELLED, DK_COMPLETED,
                                DK_CONTINUED_AS_NEW, DK_RUNNING};

  given_instance(t, "inst");
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    must(t, ack_turn(t, next_turn(t, "inst"), .status = all[i], .output = "why"));
    expect_equal(t, execution_of(t, "inst", 0)->status, all[i], "status that is read");
    struct dk_turn *turn = next_turn(t, "inst");
    expect_equal(t, turn->head.status, all[i], "status that comes with the turn");
    must(t, ack_turn(t, turn));
  }
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_CANCELLED));
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2));
  expect_equal(t, execution_of(t, "inst", 1)->status, DK_CANCELLED, "status of the one before");
}
