/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a run: how it begins, waits and ends, and what it can query. */
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/written-history.h"

static struct scene s;

/* ---- the ends ---------------------------------------------------------------------------------*/

static dk_result
completes(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_format(o, "<%s>", input.ptr));
}

static dk_result
fails(dk_orch *o, dk_str input)
{
  (void)input;
  return dk_failed(o, "no luck");
}

static dk_result
fails_with(dk_orch *o, dk_str input)
{
  return dk_failed_with(o, "no luck with %s", input.ptr);
}

static void
deeper(dk_orch *o, int depth)
{
  if (depth > 0)
    deeper(o, depth - 1);
  if (depth == 0)
    dk_fail(o, "from %s", "below");
}

static dk_result
fails_deep(dk_orch *o, dk_str input)
{
  deeper(o, 20);
  return dk_completed(o, input);
}

static dk_result
continues(dk_orch *o, dk_str input)
{
  (void)input;
  dk_continue_as_new(o, dk_str_of("next"), "2.0.0");
}

static dk_result
one_activity(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, "charge", input)));
}

static void
ends(void)
{
  SET_START(&s);
  is(scene_run(&s, completes), "completed", "a run completes");
  is(scene_text(&s), "<input>", "with its output, made of its input");
  is(scene_run(&s, fails), "failed", "a run fails");
  is(scene_text(&s), "no luck", "with its error");
  cmp_ok(s.ran.code, "==", CODE_APPLICATION, "as the code said");
  is(scene_run(&s, fails_with), "failed", "a run fails with a format");
  is(scene_text(&s), "no luck with input", "with its error");
  is(scene_run(&s, fails_deep), "failed", "a run fails from a depth");
  is(scene_text(&s), "from below", "with its error");
  is(scene_run(&s, continues), "continued", "a run continues as new");
  is(scene_text(&s), "next", "with the next input");
  is(s.ran.version.ptr, "2.0.0", "and the version that was asked for");
}

static void
waits_and_goes_on(void)
{
  SET_START(&s);
  is(scene_run(&s, one_activity), "waits", "the code waits for a result that has not arrived");
  is(scene_commands(&s), "activity charge", "and begins the activity");
  cmp_ok(s.ran.commands[0].id, "==", 2, "its id follows the history's");
  SET(&s, ACTIVITY("charge", "input"));
  is(scene_run(&s, one_activity), "waits", "it still waits");
  is(scene_commands(&s), "", "and not begun again");
  SET(&s, ACTIVITY("charge", "input"), DONE(2, "paid"));
  is(scene_run(&s, one_activity), "completed", "when the result has arrived, the run continues");
  is(scene_text(&s), "paid", "with its result");
  SET(&s, ACTIVITY("charge", "input"), FAULT(2, "card refused"));
  is(scene_run(&s, one_activity), "failed", "a failed activity fails the code that awaits it");
  is(scene_text(&s), "card refused", "with its error");
}

/* ---- queries ----------------------------------------------------------------------------------*/

static dk_result
asks(dk_orch *o, dk_str input)
{
  (void)input;
  return dk_completed(o, dk_format(o, "%s %llu %s %s %s", dk_orch_instance(o).ptr,
                                   (unsigned long long)dk_orch_execution(o), dk_orch_name(o).ptr,
                                   dk_orch_version(o).ptr,
                                   dk_orch_parent(o).ptr ? dk_orch_parent(o).ptr : "none"));
}

static dk_result
allocates(dk_orch *o, dk_str input)
{
  char *memory = dk_orch_alloc(o, 100000);

  for (size_t i = 0; i < 100000; i++)
    if (memory[i] != 0)
      dk_fail(o, "not zeroed");
  return dk_completed(o, input);
}

static dk_result
wants_too_much(dk_orch *o, dk_str input)
{
  dk_orch_alloc(o, SIZE_MAX / 2);
  return dk_completed(o, input);
}

static void
questions(void)
{
  SET_START(&s);
  scene_run(&s, asks);
  is(scene_text(&s), "order-7 3 order 1.0.0 none", "the code can read its instance and name");
  s.events[0].parent.instance = dk_str_of("boss");
  scene_run(&s, asks);
  is(scene_text(&s), "order-7 3 order 1.0.0 boss", "and its parent");
  is(scene_run(&s, allocates), "completed", "its memory is zeroed");
  is(scene_run(&s, wants_too_much), "no memory", "too much memory delays the turn");
}

/* ---- replaying --------------------------------------------------------------------------------*/

static dk_result
says(dk_orch *o, dk_str input)
{
  int32_t before = dk_replaying(o);

  dk_say(o, DK_LEVEL_INFO, "first");
  dk_await(o, dk_activity(o, "charge", input));
  dk_say(o, DK_LEVEL_INFO, "second");
  return dk_completed(o, dk_format(o, "%d%d", before, dk_replaying(o)));
}

static void
replaying(void)
{
  SET_START(&s);
  s.past.n_committed = 0;
  scene_run(&s, says);
  cmp_ok(s.n_said, "==", 1, "the first turn says its line");
  SET(&s, ACTIVITY("charge", "input"), DONE(2, "paid"));
  s.past.n_committed = 2;
  scene_run(&s, says);
  is(s.said, "second", "the second turn says the next");
  cmp_ok(s.n_said, "==", 1, "and not the first again");
  is(scene_text(&s), "10", "replaying ends with the first thing that is new");
  SET(&s, ACTIVITY("charge", "input"), DONE(2, "paid"));
  scene_run(&s, says);
  is(scene_text(&s), "11", "all of it is replayed when nothing is new");
}

static void
arrivals_beside(void)
{
  struct event arrived[] = {DONE(2, "paid")};

  SET(&s, ACTIVITY("charge", "input"));
  arrived[0].id = 3;
  s.past.arrived = arrived;
  s.past.n_arrived = 1;
  is(scene_run(&s, says), "completed", "what arrives in this turn lies elsewhere");
  is(scene_text(&s), "10", "and is what is new");
}

/* ---- limits -----------------------------------------------------------------------------------*/

static dk_result
begins_for_ever(dk_orch *o, dk_str input)
{
  while (dk_replaying(o) < 2)
    dk_activity(o, "charge", input);
  return dk_completed(o, input);
}

static dk_result
asks_for_ever(dk_orch *o, dk_str input)
{
  dk_future *future = dk_activity(o, "charge", input);

  while (dk_ready(o, future) == DK_PENDING)
    ;
  return dk_completed(o, input);
}

static int32_t
overdue_soon(void *context)
{
  static unsigned asked;

  (void)context;
  return ++asked > 1000;
}

static dk_result
sends_much(dk_orch *o, dk_str input)
{
  char *much = dk_orch_alloc(o, 70000);

  memset(much, 'x', 70000);
  dk_activity(o, "charge", (dk_str){much, 70000});
  return dk_completed(o, input);
}

static dk_result
returns_quotes(dk_orch *o, dk_str input)
{
  char *much = dk_orch_alloc(o, 20000);

  (void)input;
  memset(much, '"', 20000);
  return dk_completed(o, (dk_str){much, 20000});
}

static void
limits(void)
{
  SET_START(&s);
  is(scene_run(&s, begins_for_ever), "limit", "an execution has so many events at most");
  ok(strstr(scene_text(&s), "event 1001 of an execution, but at most 1000 are allowed"),
     "and the error says so: %s",
     scene_text(&s));
  cmp_ok(s.ran.code, "==", CODE_LIMIT, "as a limit");
  s.past.max_events = 0;
  SET(&s, ACTIVITY("charge", "input"), DONE(2, "paid"));
  s.past.max_events = 2;
  is(scene_run(&s, one_activity), "limit", "a history that is longer is not run");
  SET_START(&s);
  s.past.overdue = overdue_soon;
  is(scene_run(&s, asks_for_ever), "overdue", "code that loops without an end is stopped");
  SET_START(&s);
  is(scene_run(&s, sends_much), "limit", "an input that no payload can hold");
  ok(strstr(scene_text(&s), "dk_activity: the input takes 70018 bytes"),
     "is refused with its size: %s", scene_text(&s));
  is(scene_run(&s, returns_quotes), "limit", "so is an output that has to be escaped");
}

static dk_result
returns_nothing(dk_orch *o, dk_str input)
{
  (void)o;
  (void)input;
  return (dk_result){0};
}

static dk_result
returns_another(dk_orch *o, dk_str input)
{
  dk_failed(o, "no luck");
  return (dk_result){(int32_t)input.len};
}

static void
wrong_returns(void)
{
  SET_START(&s);
  is(scene_run(&s, returns_nothing), "wrong use", "a result that nothing gave");
  ok(strstr(scene_text(&s), "did not return the result of dk_completed"), "%s",
     scene_text(&s));
  is(scene_run(&s, returns_another), "wrong use", "a result of something else");
}

static void
outside_of_runs(void)
{
  is(dk_orch_instance(NULL).ptr, NULL, "a call where nothing runs gives nothing");
  ok(!dk_timer(NULL, 5), "a future neither");
}

int
main(void)
{
  plan(NO_PLAN);
  ends();
  waits_and_goes_on();
  questions();
  replaying();
  arrivals_beside();
  limits();
  wrong_returns();
  outside_of_runs();
  scene_done(&s);
  return done_testing();
}
