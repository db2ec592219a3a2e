/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary of checks: alone, with other handles, threads and processes, and in races. */
#include <signal.h>
#include <unistd.h>

#include "conformance/kit/test-meta.h"

/* ---- one actor ------------------------------------------------------------------------------- */

static void
passes(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 3);
  struct dk_turn *turn = next_turn(t, "inst");
  struct dk_commit_outcome outcome;
  struct dk_work_item *second = fetch_activity(t, "inst", 2);

  must(t, ack_turn(t, turn, .events = {{2}}, .cancel = {2, 3}, .ret_outcome = &outcome));
  expect_equal(t, outcome.report.locked_rows, 2, "locked rows");
  expect_status(t, renew_work(t, second->work.lock_token), DK_LOCK_LOST);
  /* It was fetched on the way to the second, and kept. */
  must(t, ack_work(t, fetch_activity(t, "inst", 1)->work.lock_token, .to = "inst", .id = "c1"));
  turn = fetch_turn_of(t, "inst");
  expect_text(t, turn->messages[0].id, "c1", "id of the completion");
  expect_equal(t, next_event(turn), 3, "the next event");
  struct dk_history *history = read_history(t, "inst");
  expect_equal(t, history->n_events, 2, "events");
  expect_no_work(t);
  advance(t, 1000);
  expect_equal(t, elapsed(t), 1000, "elapsed");
}

static void
wrong_assertion(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "a"));
  struct dk_turn *turn = fetch_turn(t);

  expect(t, turn->n_messages == 2, "two messages were sent to %s", "inst");
}

static void
wrong_status(struct dk_check *t)
{
  expect_status(t, renew_turn(t, bytes("unknown")), DK_OK);
}

static void
wrong_number(struct dk_check *t)
{
  expect_equal(t, 1 + 1, 3, "sum");
}

static void
wrong_text(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .payload = "a\nb"));
  expect_text(t, fetch_turn(t)->messages[0].payload, "other", "payload");
}

static void
unwanted_turn(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  expect_no_turn(t);
}

static void
wants_a_turn(struct dk_check *t)
{
  fetch_turn_of(t, "nowhere");
}

static void
two_turns_side_by_side(struct dk_check *t)
{
  must(t, enqueue(t, "a", .payload = "for a"));
  must(t, enqueue(t, "b", .payload = "for b"));
  struct dk_turn *b = fetch_turn_of(t, "b");
  struct dk_turn *a = fetch_turn_of(t, "a");

  expect_text(t, b->messages[0].payload, "for b", "payload");
  expect_text(t, a->messages[0].payload, "for a", "payload");
  expect_no_turn(t);
  must(t, ack_turn(t, b));
  must(t, ack_turn(t, a));
}

static void
own_call(struct dk_check *t)
{
  struct dk_item item = {.struct_size = sizeof(item), .instance = bytes("inst")};

  item.payload = filled(t, 1000, 'x');
  must(t, traced(t, dk_store_enqueue_for_orchestrator(store_of(t, NULL), caller_of(t, NULL),
                                                      &item)));
  expect_bytes(t, fetch_turn(t)->messages[0].payload, filled(t, 1000, 'x'), "payload");
}

static void
waits_for_ever(struct dk_check *t)
{
  struct dk_turn *turn;

  try_fetch_turn(t, &turn, .wait_ms = -1);
}

static void
other_stores(struct dk_check *t)
{
  expect_status(t, open_status(t, DK_OPEN_HOST_CLOCK, "second"), DK_NOT_FOUND);
  expect_status(t, open_status(t, DK_OPEN_HOST_CLOCK | DK_OPEN_CREATE, "second"), DK_OK);
  expect_status(t, destroy_store(t, "second"), DK_OK);
  close_handle(t, NULL);
  open_handle(t, NULL);
  must(t, enqueue(t, "inst"));
}

static void
leaves(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  _exit(0);
}

static const struct expected alone[] = {
  {.name = "a check that holds", .run = passes, .verdict = VERDICT_PASS,
   .trace = "main ack_orchestration_item(#2, execution 1, events 2, cancel 1/2 1/3) -> DK_OK "
            "deleted free 0 locked 2, stolen 2"},
  {.name = "a wrong assertion", .run = wrong_assertion, .verdict = VERDICT_FAIL,
   .clause = "TURN-1", .message = "two messages were sent to inst", .found = "does not hold",
   .trace = "main fetch_orchestration_item(lock 30000) -> DK_OK inst #1 unknown, messages 1 "
            "attempt 1"},
  {.name = "a wrong status", .run = wrong_status, .verdict = VERDICT_FAIL,
   .message = "answered DK_LOCK_LOST, not DK_OK", .found = "DK_LOCK_LOST: ",
   .trace = "main renew_orchestration_item_lock(\"unknown\", extend 30000) -> DK_LOCK_LOST: "},
  {.name = "a wrong number", .run = wrong_number, .verdict = VERDICT_FAIL,
   .message = "sum: 2, not 3", .found = "2 (1 + 1)"},
  {.name = "a wrong text", .run = wrong_text, .verdict = VERDICT_FAIL,
   .message = "payload: \"a\\nb\", not \"other\""},
  {.name = "a turn that should not be", .run = unwanted_turn, .verdict = VERDICT_FAIL,
   .message = "there should be no turn now", .found = "-> DK_OK inst #1"},
  {.name = "a turn that should be", .run = wants_a_turn, .verdict = VERDICT_FAIL,
   .message = "fetch_turn_of(nowhere), after 0 other turns, answered DK_NOTHING, not DK_OK"},
  {.name = "two turns side by side", .run = two_turns_side_by_side, .verdict = VERDICT_PASS},
  {.name = "a call without a function of the kit", .run = own_call, .verdict = VERDICT_PASS,
   .trace = "main dk_store_enqueue_for_orchestrator(store_of("},
  {.name = "a call that waits for ever", .run = waits_for_ever, .verdict = VERDICT_FAIL,
   .message = "deadlock in virtual time: all calls wait and no time limit is left"},
  {.name = "other stores", .run = other_stores, .verdict = VERDICT_PASS},
  {.name = "an exit in the check", .run = leaves, .verdict = VERDICT_NONE,
   .trace = "main enqueue_for_orchestrator(inst) -> DK_OK"},
};

/* ---- several --------------------------------------------------------------------------------- */

static void
second_sees_and_respects(struct dk_check *t, struct actor *second)
{
  struct dk_turn *none;

  given_instance_with_activities(t, "inst", 1);
  struct dk_turn *turn = next_turn(t, "inst");
  expect_status(t, try_fetch_turn(t, &none, .on = second), DK_NOTHING);
  struct dk_work_item *work = fetch_work(t, .on = second);
  expect_text(t, work->item.payload, "activity 1", "payload");
  expect_no_work(t);
  must(t, ack_turn(t, turn, .on = second, .events = {{2, "by the other"}}));
  must(t, ack_work(t, work->work.lock_token, .to = "inst"));
  turn = fetch_turn_of(t, "inst", .on = second);
  expect_text(t, turn->events[1].payload, "by the other", "payload of the event");
  expect_equal(t, read_history(t, "inst", .on = second)->n_events, 2, "events");
}

static void
with_handle(struct dk_check *t)
{
  second_sees_and_respects(t, another_handle(t));
}

static void
with_thread(struct dk_check *t)
{
  second_sees_and_respects(t, another_thread(t));
}

static void
with_process(struct dk_check *t)
{
  second_sees_and_respects(t, another_process(t));
}

static void
long_poll(struct dk_check *t, struct actor *waiter)
{
  expect(t, fetch_turn(t, .on = waiter, .start = true, .wait_ms = 60000) == NULL, "started");
  until_it_waits(t, waiter);
  advance(t, 5000);
  must(t, enqueue(t, "inst", .delay_ms = 2000));
  must(t, finish(t, waiter));
  expect_text(t, finished_turn(t, waiter)->head.instance, "inst", "instance");
  expect_equal(t, elapsed(t), 7000, "when it came");
}

static void
long_poll_of_thread(struct dk_check *t)
{
  long_poll(t, another_thread(t));
}

static void
long_poll_of_handle(struct dk_check *t)
{
  long_poll(t, another_handle(t));
}

static void
long_poll_of_process(struct dk_check *t)
{
  long_poll(t, another_process(t));
}

static void
cancelled_call(struct dk_check *t)
{
  struct actor *waiter = another_thread(t);
  struct dk_works *works;

  try_fetch_work(t, &works, .on = waiter, .start = true, .wait_ms = -1);
  until_it_waits(t, waiter);
  cancel_call(t, waiter);
  expect_status(t, finish(t, waiter), DK_CALL_CANCELLED);
  /* The next call of the same actor is not cancelled. */
  expect_status(t, try_fetch_work(t, &works, .on = waiter), DK_NOTHING);
}

static void
deaf_thread(struct dk_check *t)
{
  struct actor *waiter = another_thread(t);

  fetch_turn(t, .on = waiter, .start = true, .wait_ms = -1);
  finish(t, waiter);
}

static void
does_not_wait(struct dk_check *t)
{
  struct actor *waiter = another_thread(t);

  must(t, enqueue(t, "inst"));
  fetch_turn(t, .on = waiter, .start = true, .wait_ms = 1000);
  until_it_waits(t, waiter);
}

static void
left_waiting(struct dk_check *t)
{
  struct actor *waiter = another_thread(t);

  fetch_turn(t, .on = waiter, .start = true, .wait_ms = 1000);
  until_it_waits(t, waiter);
}

static void
killed_process(struct dk_check *t)
{
  struct actor *other = another_process(t);

  fetch_turn(t, .on = other, .start = true, .wait_ms = -1);
  until_it_waits(t, other);
  kill(other->pid, SIGKILL);
  finish(t, other);
}

static void
killed_while_looked_at(struct dk_check *t)
{
  struct actor *other = another_process(t);

  fetch_turn(t, .on = other, .start = true, .wait_ms = -1);
  until_it_waits(t, other);
  kill(other->pid, SIGKILL);
  until_it_waits(t, other);
}

static void
one_race(struct dk_check *t, struct actor *a, struct actor *b)
{
  while (more_rounds(t, 3)) {
    must(t, enqueue(t, "inst"));
    struct dk_turn *turn = fetch_turn(t);

    hold_at_line(t, a);
    hold_at_line(t, b);
    ack_turn(t, turn, .on = a, .start = true, .empty = true);
    ack_turn(t, turn, .on = b, .start = true, .empty = true);
    witness(t, race(t, a, b));
    dk_status first = finish(t, a), second = finish(t, b);
    expect(t, (first == DK_OK) != (second == DK_OK), "exactly one wins");
  }
}

static void
race_of_threads(struct dk_check *t)
{
  struct actor *a = another_thread(t), *b = another_thread(t);

  one_race(t, a, b);
}

static void
race_of_processes(struct dk_check *t)
{
  struct actor *a = another_process(t), *b = another_process(t);

  one_race(t, a, b);
}

static void
race_without_overlap(struct dk_check *t)
{
  while (more_rounds(t, 1))
    witness(t, false);
}

static void
held_without_start(struct dk_check *t)
{
  struct actor *other = another_thread(t);

  hold_at_line(t, other);
  enqueue(t, "inst", .on = other);
}

/* A process that the check itself kills, whose place a handle then takes. */
static void
killed_by_the_check(struct dk_check *t)
{
  struct actor *other = another_process(t);

  must(t, enqueue(t, "inst", .on = other, .id = "a"));
  kill_process(t, other);
  other = another_handle(t);
  expect_text(t, fetch_turn(t, .on = other)->messages[0].id, "a", "id of what the dead one sent");
}

static void
set_back(struct dk_check *t)
{
  int64_t before_that = now(t);

  close_handle(t, NULL);
  set_clock_back(t, 5000);
  open_handle(t, NULL);
  expect_equal(t, now(t), before_that - 5000, "the clock");
  must(t, enqueue(t, "inst"));
  expect_equal(t, fetch_turn(t)->head.now, before_that - 5000, "the clock of a fetch");
}

static void
set_back_under_a_handle(struct dk_check *t)
{
  set_clock_back(t, 5000);
}

/* The model reads the clock under its lock, so that the second waits for the first. */
static void
time_passes_in_a_call(struct dk_check *t)
{
  struct actor *first = another_thread(t), *second = another_thread(t);
  int64_t start = now(t);
  struct dk_turn *none;

  must(t, enqueue(t, "inst"));
  hold_at_clock(t, 2);
  must(t, try_fetch_turn(t, &none, .on = first, .start = true));
  expect(t, stands_at_clock(t, first), "the first call stands at the clock");
  must(t, enqueue(t, "other", .on = second, .start = true));
  expect_equal(t, pass_time(t, second, 10000), PASSED_DURING, "when time has passed");
  must(t, finish(t, first));
  must(t, finish(t, second));
  time_has_passed(t);
  expect_equal(t, now(t), start + 10000, "the clock");
  expect_equal(t, fetch_turn_of(t, "other")->messages[0].enqueued_at, now(t), "enqueued_at");
}

static void
nobody_stands(struct dk_check *t)
{
  struct actor *other = another_thread(t);

  hold_at_clock(t, 1000);
  must(t, enqueue(t, "inst", .on = other, .start = true));
  expect(t, !stands_at_clock(t, other), "a call that asks less often is not held");
  must(t, finish(t, other));
  fetch_turn(t);
}

static const struct expected together[] = {
  {.name = "another handle", .run = with_handle, .verdict = VERDICT_PASS,
   .trace = "handle 2 fetch_orchestration_item(lock 30000) -> DK_NOTHING"},
  {.name = "another thread", .run = with_thread, .verdict = VERDICT_PASS,
   .trace = "thread 1 fetch_work_item(lock 30000) -> DK_OK inst/1/1 #3 attempt 1"},
  {.name = "another process", .run = with_process, .verdict = VERDICT_PASS, .processes = 1,
   .trace = "process 1 read_history(inst, execution 0) -> DK_OK execution 1 status 1 last event 2"},
  {.name = "a long poll of a thread", .run = long_poll_of_thread, .verdict = VERDICT_PASS,
   .trace = "start thread 1 fetch_orchestration_item(lock 30000, wait until T+60000)"},
  {.name = "a long poll of a handle", .run = long_poll_of_handle, .verdict = VERDICT_PASS},
  {.name = "a long poll of a process", .run = long_poll_of_process, .verdict = VERDICT_PASS,
   .processes = 1, .trace = "process 1 fetch_orchestration_item -> DK_OK inst #1"},
  {.name = "a process that the check kills", .run = killed_by_the_check, .verdict = VERDICT_PASS,
   .processes = 1, .trace = "process 1 is killed"},
  {.name = "a clock that is set back", .run = set_back, .verdict = VERDICT_PASS,
   .trace = "the clock is set back by 5000 ms"},
  {.name = "time that passes in a call", .run = time_passes_in_a_call, .verdict = VERDICT_PASS,
   .trace = "10000 ms pass while a call is held and thread 2 waits for it"},
  {.name = "a call that asks too seldom to be held", .run = nobody_stands,
   .verdict = VERDICT_PASS},
  {.name = "a cancelled call", .run = cancelled_call, .verdict = VERDICT_PASS,
   .trace = "thread 1 fetch_work_item -> DK_CALL_CANCELLED"},
  {.name = "a thread that is not woken", .run = deaf_thread, .verdict = VERDICT_FAIL,
   .message = "work that should have woken fetch_orchestration_item of thread 1 did not"},
  {.name = "a call that does not wait", .run = does_not_wait, .verdict = VERDICT_FAIL,
   .message = "fetch_orchestration_item of thread 1 should have waited, but returned DK_OK"},
  {.name = "a call that is left waiting", .run = left_waiting, .verdict = VERDICT_PASS},
  {.name = "a process that is killed while it is looked at", .run = killed_while_looked_at,
   .verdict = VERDICT_CRASH, .processes = 1, .clause = "ABI-7",
   .message = "process 1 was killed by signal 9 (Killed) in fetch_orchestration_item"},
  {.name = "a process that is killed", .run = killed_process, .verdict = VERDICT_CRASH,
   .processes = 1, .clause = "ABI-7",
   .message = "process 1 was killed by signal 9 (Killed) in fetch_orchestration_item"},
  {.name = "a clock that is set back under a handle", .run = set_back_under_a_handle,
   .verdict = VERDICT_ERROR, .message = "the clock is set back while main may have a handle"},
  {.name = "a held call that is not started", .run = held_without_start,
   .verdict = VERDICT_ERROR, .message = "so its call has to be started"},
  {.name = "a race without overlap", .run = race_without_overlap, .verdict = VERDICT_UNEXERCISED,
   .message = "only 0 of 1 overlaps were seen in 400 rounds"},
};

/* Whether two calls overlap depends on the machine: with few processors, or under Valgrind, none
 * might. */
static void
test_race(const char *name, void (*run)(struct dk_check *t), uint32_t processes)
{
  struct check check = {
    .id = "meta/race", .clauses = "ACK-14", .run = run, .flags = IS_RACE, .processes = processes
  };
  struct kit_job job = job_of(&check, meta.model);
  bool well;

  run_job(&job);
  if (said(VERDICT_UNEXERCISED))
    well = report()->overlaps < 3 && report()->rounds > 3;
  else
    well = said(VERDICT_PASS) && report()->overlaps == 3;
  ok(well, "%s: %u overlaps in %u rounds", name, report()->overlaps, report()->rounds);
  if (!well)
    tell();
}

int
main(void)
{
  meta_begin();
  RUN_ALL(alone);
  RUN_ALL(together);
  test_race("a race of threads", race_of_threads, 0);
  test_race("a race of processes", race_of_processes, 2);
  return meta_end();
}
