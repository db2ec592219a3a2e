/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-written histories: an orchestration that has changed, and invalid histories. */
#include "conformance/tap/tap.h"
#include "core/runtime/testing/written-history.h"

static struct scene s;

/* ---- the code that they are run against -------------------------------------------------------*/

static dk_result
one_activity(dk_orch *o, dk_str input)
{
  (void)input;
  return dk_completed(o, dk_await(o, dk_activity(o, "a", dk_str_of("in"))));
}

static dk_result
tagged(dk_orch *o, dk_str input)
{
  const struct dk_activity_options options = {.struct_size = sizeof(options),
                                              .tag = dk_str_of("gpu"),
                                              .session = dk_str_of("s")};

  (void)input;
  return dk_completed(o, dk_await(o, dk_activity_with(o, "a", dk_str_of("in"), &options)));
}

static dk_result
one_timer(dk_orch *o, dk_str input)
{
  (void)input;
  return dk_completed(o, dk_await(o, dk_timer(o, 50)));
}

static dk_result
one_child(dk_orch *o, dk_str input)
{
  (void)input;
  return dk_completed(o, dk_await(o, dk_child(o, "c", dk_str_of("in"), NULL)));
}

static dk_result
one_named_child(dk_orch *o, dk_str input)
{
  const struct dk_child_options options = {.struct_size = sizeof(options),
                                           .instance = dk_str_of("mine"), .version = "1.0.0"};

  (void)input;
  return dk_completed(o, dk_await(o, dk_child(o, "c", dk_str_of("in"), &options)));
}

static dk_result
one_detached(dk_orch *o, dk_str input)
{
  dk_start_detached(o, "d", dk_str_of("other"), dk_str_of("in"), NULL);
  return dk_completed(o, input);
}

static dk_result
one_wait(dk_orch *o, dk_str input)
{
  (void)input;
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

static dk_result
one_dequeue(dk_orch *o, dk_str input)
{
  (void)input;
  return dk_completed(o, dk_await(o, dk_dequeue(o, "q")));
}

static dk_result
one_try(dk_orch *o, dk_str input)
{
  dk_try_dequeue(o, "q", NULL);
  return dk_completed(o, input);
}

static dk_result
one_drop(dk_orch *o, dk_str input)
{
  dk_drop(o, dk_activity(o, "a", dk_str_of("in")));
  return dk_completed(o, input);
}

static dk_result
drops_one_of_two(dk_orch *o, dk_str input)
{
  dk_future *activity = dk_activity(o, "a", dk_str_of("in"));

  dk_timer(o, 5);
  dk_drop(o, activity);
  return dk_completed(o, input);
}

static dk_result
one_now(dk_orch *o, dk_str input)
{
  dk_now(o);
  return dk_completed(o, input);
}

static dk_result
one_key(dk_orch *o, dk_str input)
{
  dk_kv_set(o, "k", dk_str_of("v"));
  return dk_completed(o, input);
}

static dk_result
one_status(dk_orch *o, dk_str input)
{
  dk_set_status(o, dk_str_of("busy"));
  return dk_completed(o, input);
}

static dk_result
nothing(dk_orch *o, dk_str input)
{
  return dk_completed(o, input);
}

static dk_result
fails(dk_orch *o, dk_str input)
{
  (void)input;
  dk_fail(o, "at once");
}

static dk_result
continues(dk_orch *o, dk_str input)
{
  dk_continue_as_new(o, input, NULL);
}

/* ---- the table --------------------------------------------------------------------------------*/

#define ROW(what, function, ending, says, ...)                                                     \
  {                                                                                                \
    what, function, ending, says, (const struct event[]){__VA_ARGS__},                             \
      sizeof((const struct event[]){__VA_ARGS__}) / sizeof(struct event)                           \
  }
#define CHANGED(what, function, says, ...)                                                         \
  ROW(what, function, "nondeterminism", says, START, __VA_ARGS__)
#define BROKEN(what, says, ...) ROW(what, one_activity, "corrupt", says, __VA_ARGS__)
#define FINE(what, function, ending, ...) ROW(what, function, ending, "", START, __VA_ARGS__)
#define AUTO "order-7::3.2"

static const struct row {
  const char *what;
  dk_orchestration_fn *function;
  const char *ending, *says;
  const struct event *events;
  size_t n_events;
} rows[] = {
  /* code that has changed */
  CHANGED("a timer in place of an activity", one_timer, "event 2 of the history (activity "
          "\"a\"), but the code now calls: timer of 50 ms.  Its kind has changed",
          ACTIVITY("a", "in")),
  CHANGED("an activity in place of a timer", one_activity, "kind", TIMER(50)),
  CHANGED("another activity", one_activity, "Its name has changed", ACTIVITY("b", "in")),
  CHANGED("another input", one_activity, "Its input or value has changed", ACTIVITY("a", "out")),
  CHANGED("a longer input", one_activity, "Its input or value has", ACTIVITY("a", "in and out")),
  CHANGED("a tag that is new", tagged, "Its tag has changed",
          {.kind = EVENT_ACTIVITY, .name = S("a"), .text = S("in"), .session = S("s")}),
  CHANGED("another tag", tagged, "Its tag has changed",
          {.kind = EVENT_ACTIVITY, .name = S("a"), .text = S("in"), .tag = S("cpu"),
           .session = S("s")}),
  CHANGED("a tag that was removed", one_activity, "Its tag has changed",
          {.kind = EVENT_ACTIVITY, .name = S("a"), .text = S("in"), .tag = S("cpu")}),
  CHANGED("another session", tagged, "Its session has changed",
          {.kind = EVENT_ACTIVITY, .name = S("a"), .text = S("in"), .tag = S("gpu"),
           .session = S("t")}),
  CHANGED("a timer of another length", one_timer, "Its number has changed", TIMER(60)),
  CHANGED("another child", one_child, "Its name has changed", CHILD("b", "in", AUTO)),
  CHANGED("a child with another input", one_child, "Its input", CHILD("c", "out", AUTO)),
  CHANGED("a child that had an id", one_child, "Its instance id", CHILD("c", "in", "mine")),
  CHANGED("a child that had no version", one_named_child, "Its version",
          CHILD("c", "in", "mine")),
  CHANGED("a child in place of a detached start", one_child, "kind", DETACHED("c", "in", AUTO)),
  CHANGED("another detached start", one_detached, "Its instance id", DETACHED("d", "in", "x")),
  CHANGED("a wait for another event", one_wait, "Its name", WAIT("stop")),
  CHANGED("a dequeue in place of a wait", one_dequeue, "kind", WAIT("q")),
  CHANGED("another queue", one_dequeue, "Its name", DEQUEUE("r")),
  CHANGED("try_dequeue in place of dequeue", one_try, "kind", DEQUEUE("q")),
  CHANGED("try_dequeue that took nothing, and would", one_try, "Its number", TRIED("q", 1, 2)),
  CHANGED("a drop of something else", drops_one_of_two, "Its source", ACTIVITY("a", "in"), TIMER(5),
          DROPPED(3)),
  CHANGED("a value of another kind", one_now, "Its name", VALUE("random", 5)),
  CHANGED("another key", one_key, "Its name", KV(DK_KV_SET, "l", "v")),
  CHANGED("another value of a key", one_key, "Its input or value", KV(DK_KV_SET, "k", "w")),
  CHANGED("a key that was read", one_key, "Its number", KV(0, "k", "v")),
  CHANGED("another status", one_status, "Its input or value", STATUS("idle")),
  CHANGED("a status that was cleared", one_status, "Its input or value", {.kind = EVENT_STATUS}),
  CHANGED("a call that is missing when it returns", nothing, "1 recorded calls were not "
          "repeated, the first is event 2 (activity \"a\")", ACTIVITY("a", "in")),
  CHANGED("when it waits", one_wait, "2 recorded calls were not repeated", WAIT("go"), TIMER(5),
          TIMER(6)),
  CHANGED("when it fails", fails, "1 recorded calls were not repeated", TIMER(5)),
  CHANGED("when it continues as new", continues, "1 recorded calls were not repeated", STATUS("x")),
  CHANGED("a drop that is missing", one_activity, "1 recorded calls were not repeated, the first "
          "is event 4 (drop of event 2)", ACTIVITY("a", "in"), DONE(2, "x"), DROPPED(2)),
  CHANGED("a status that is missing", nothing, "1 recorded", STATUS("x")),
  CHANGED("a key that is not set any more", nothing, "1 recorded", KV(DK_KV_SET, "k", "v")),

  /* invalid histories */
  ROW("no events", one_activity, "corrupt", "it is empty", {.kind = EVENT_NONE}),
  BROKEN("no start", "event 1 (activity): the first event", ACTIVITY("a", "in")),
  BROKEN("a start that is not the first", "event 1 (activity)", ACTIVITY("a", "in"), START),
  BROKEN("two starts", "event 2 (started): the first event", START, START),
  BROKEN("an event that cannot be read", "event 2 (none): it could not be read", START,
         {.kind = EVENT_NONE}),
  BROKEN("a kind that there is not", "event 2 (none): it could not be read", START,
         {.kind = (enum event_kind)200}),
  BROKEN("ids that do not begin with 1", "event 5 (started): its id is not the next",
         {.id = 5, .kind = EVENT_STARTED, .name = S("order")}),
  BROKEN("a gap in the ids", "event 3 (activity): its id is not the next one", START,
         {.id = 3, .kind = EVENT_ACTIVITY, .name = S("a")}),
  BROKEN("ids that go back", "event 1 (activity): its id is not the next one", START,
         {.id = 1, .kind = EVENT_ACTIVITY, .name = S("a")}),
  BROKEN("the largest id", "its id is not the next one", START,
         {.id = UINT64_MAX, .kind = EVENT_ACTIVITY_COMPLETED, .source = UINT64_MAX}),
  BROKEN("an end of nothing", "event 2 (activity_completed): its source is not an earlier event",
         START, DONE(0, "x")),
  BROKEN("an end of what comes later", "event 2 (activity_completed): its source", START,
         DONE(3, "x"), ACTIVITY("a", "in")),
  BROKEN("an end of itself", "event 2 (activity_completed): its source", START, DONE(2, "x")),
  BROKEN("an end of the start", "its source is not an earlier", START, DONE(1, "x")),
  BROKEN("an end of what is far away", "its source is not an earlier", START,
         DONE(UINT64_MAX, "x")),
  BROKEN("an activity's end of a timer", "its source is not an earlier", START, TIMER(5),
         DONE(2, "x")),
  BROKEN("a timer's end of an activity", "event 3 (timer_fired): its source", START,
         ACTIVITY("a", "in"), FIRED(2)),
  BROKEN("a child's end of an activity", "event 3 (child_completed): its source", START,
         ACTIVITY("a", "in"), CHILD_DONE(2, "x")),
  BROKEN("an activity's end of a child", "event 3 (activity_failed): its source", START,
         CHILD("c", "in", AUTO), FAULT(2, "x")),
  BROKEN("two ends", "event 4 (activity_completed): its source had already ended", START,
         ACTIVITY("a", "in"), DONE(2, "x"), DONE(2, "y")),
  BROKEN("completed after failed", "event 4 (activity_completed): its source had already", START,
         ACTIVITY("a", "in"), FAULT(2, "x"), DONE(2, "y")),
  BROKEN("a timer that fires twice", "event 4 (timer_fired): its source had already ended", START,
         TIMER(5), FIRED(2), FIRED(2)),
  BROKEN("a child that fails twice", "event 4 (child_failed): its source had already ended", START,
         CHILD("c", "in", AUTO), CHILD_FAULT(2, "x"), CHILD_FAULT(2, "x")),
  BROKEN("a drop of nothing", "event 2 (dropped): its source is not an earlier event that can be",
         START, DROPPED(0)),
  BROKEN("a drop of a value", "event 3 (dropped): its source", START, VALUE("now", 5),
         DROPPED(2)),
  BROKEN("a drop of itself", "event 2 (dropped): its source", START, DROPPED(2)),
  BROKEN("an end in the middle", "event 2 (completed): the execution has ended here", START,
         {.kind = EVENT_COMPLETED}, ACTIVITY("a", "in")),
  BROKEN("a failure at the end", "event 2 (failed): the execution has ended", START,
         {.kind = EVENT_FAILED}),
  BROKEN("continued as new", "event 2 (continued): the execution has ended", START,
         {.kind = EVENT_CONTINUED}),
  BROKEN("cancelled", "event 2 (cancelled): the execution has ended", START,
         {.kind = EVENT_CANCELLED}),
  BROKEN("what only an end brings", "event 3 (ended): the execution has ended", START,
         ACTIVITY("a", "in"), {.kind = EVENT_ENDED, .source = 2}),

  /* unusual ones that are valid */
  FINE("an activity with its input", one_activity, "completed", ACTIVITY("a", "in"),
       DONE(2, "x")),
  FINE("a child with its id", one_child, "completed", CHILD("c", "in", AUTO),
       CHILD_DONE(2, "x")),
  FINE("an end after its drop", one_drop, "completed", ACTIVITY("a", "in"), DROPPED(2),
       DONE(2, "x")),
  FINE("an end that the code does not await", one_timer, "waits", TIMER(50), RAISED("a", "b")),
  FINE("a name without letters", one_wait, "waits", WAIT("go"), RAISED("", ""), QUEUED("", "")),
  FINE("a cancel request", one_wait, "waits", WAIT("go"), {.kind = EVENT_CANCEL_REQUESTED}),
  FINE("two cancel requests", one_wait, "waits", WAIT("go"), {.kind = EVENT_CANCEL_REQUESTED},
       {.kind = EVENT_CANCEL_REQUESTED}),
  FINE("events of one name twice", one_wait, "completed", WAIT("go"), RAISED("go", "x"),
       RAISED("go", "x")),
  FINE("a value as it was", one_now, "completed", VALUE("now", 5)),
  FINE("other letters", one_wait, "waits", WAIT("go"), RAISED("\xc3\xa4\xe2\x82\xac", "\xff")),
};

static void
play(const struct row *row)
{
  scene_set(&s, row->events, row->events[0].kind == EVENT_NONE ? 0 : row->n_events);
  is(scene_run(&s, row->function), row->ending, "%s: %s", row->what, row->ending);
  if (row->says[0] == '\0')
    return;
  if (!ok(strstr(scene_text(&s), row->says), "%s: the text says it", row->what))
    diag("  text      %s\n  expected  %s", scene_text(&s), row->says);
}

/* A long text is compared to its end, and one byte is enough. */
static void
long_inputs(void)
{
  static char one[50000], other[50000];
  struct event events[] = {START, ACTIVITY("a", "")};

  memset(one, 'x', sizeof(one));
  memset(other, 'x', sizeof(other));
  other[sizeof(other) - 1] = 'y';
  events[1].text = (dk_str){one, sizeof(one)};
  scene_set(&s, events, 2);
  is(scene_run(&s, one_activity), "nondeterminism", "a huge input is another one");
}

/* The message names the line of the call. */
static dk_result
on_one_line(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, "b", input)));
}
enum { THAT_LINE = __LINE__ - 2 };

static void
source_lines(void)
{
  char line[50];

  snprintf(line, sizeof(line), "test-history.c:%d: dk_activity: ", THAT_LINE);
  SET(&s, ACTIVITY("a", "input"));
  scene_run(&s, on_one_line);
  ok(strstr(scene_text(&s), line), "the error names the line of the call: %s", scene_text(&s));
}

int
main(void)
{
  plan(NO_PLAN);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    play(&rows[i]);
  long_inputs();
  source_lines();
  scene_done(&s);
  return done_testing();
}
