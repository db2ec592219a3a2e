/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of deciding: what a turn does to the store, and the one end of an execution. */
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/base/utf8.h"
#include "core/runtime/code/decision.h"
#include "core/runtime/code/history.h"
#include "core/runtime/code/orch.h"
#include "core/runtime/testing/written-history.h"

static struct scene s;
static struct staged staged;
static struct decision d;

/* ---- what is looked at ------------------------------------------------------------------------*/

static char *
add(char *text, const char *format, ...) DK_PRINTF(2, 3);
static char *
add(char *text, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  char *more = dk_arena_vprintf(&s.arena, format, args);
  va_end(args);
  return dk_arena_printf(&s.arena, "%s%s%s", text, *text ? ", " : "", more);
}

static const char *
events(void)
{
  char *text = dk_arena_strdup(&s.arena, "");

  for (size_t i = 0; i < d.n_events; i++) {
    const struct event *event = &d.events[i];
    bool has_code = event->code != CODE_NONE;
    text = add(text, "%llu %s%s%s", (unsigned long long)event->id, event_kind_name(event->kind),
               has_code ? " " : "", code_name(event->code));
  }
  return text;
}

static const char *
outgoing(void)
{
  char *text = dk_arena_strdup(&s.arena, "");

  for (size_t i = 0; i < d.n_outgoing; i++)
    text = add(text, "%s %s to %s", message_kind_name(d.outgoing[i].message.kind),
               d.outgoing[i].id.ptr ? d.outgoing[i].id.ptr : "-", d.outgoing[i].instance.ptr);
  return text;
}

/* "rows 5 -2 -3, withdrawn t3.4" */
static const char *
rows(void)
{
  char *text = dk_arena_strdup(&s.arena, "");

  for (size_t i = 0; i < d.n_scheduled; i++)
    text = add(text, "+%llu", (unsigned long long)d.scheduled[i].activity_id);
  for (size_t i = 0; i < d.n_cancelled; i++)
    text = add(text, "-%llu", (unsigned long long)d.cancelled[i].activity_id);
  for (size_t i = 0; i < d.n_withdrawn; i++)
    text = add(text, "%s", d.withdrawn[i].ptr);
  return text;
}

/* "a dropped": which activities lose their rows, and why. */
static const char *
reasons(void)
{
  char *text = dk_arena_strdup(&s.arena, "");

  for (size_t i = 0; i < d.n_cancelled; i++)
    text = add(text, "%.*s %s", (int)d.cancelled[i].name.len, d.cancelled[i].name.ptr,
               code_name(d.cancelled[i].code));
  return text;
}

/* ---- a turn -----------------------------------------------------------------------------------*/

static void
stage(const struct message *messages, size_t n)
{
  struct history *history = history_new(&s.arena, s.events, s.n_events);

  if (!history ||
      decision_stage(&s.arena, history, 3, messages, n, 1000, NULL, NULL, &staged) != DK_OK)
    BAIL_OUT("no memory for a handful of messages");
  s.past.arrived = staged.arrived;
  s.past.n_arrived = staged.n_arrived;
  s.past.index = staged.index;
}

static dk_status
conclude(struct verdict_of verdict)
{
  return decide(&s.arena, &s.past, &s.events[0], s.past.n_committed == 0, &staged, &s.ran,
                &verdict, &d);
}

/* Runs the code, and decides. */
static void
turn(dk_orchestration_fn *function, const struct message *messages, size_t n)
{
  stage(messages, n);
  scene_run(&s, function);
  if (conclude((struct verdict_of){.verdict = VERDICT_RAN}) != DK_OK)
    BAIL_OUT("a run that ended as %s cannot be decided: %s", ending_name(s.ran.ending),
             scene_text(&s));
}

#define TURN(function, ...)                                                                        \
  turn(function, (const struct message[]){__VA_ARGS__},                                            \
       sizeof((const struct message[]){__VA_ARGS__}) / sizeof(struct message))
#define END(what, of)                                                                              \
  {                                                                                                \
    .kind = MESSAGE_##what, .execution = 3, .source = of, .text = S("result")                      \
  }

/* ---- a turn that waits ------------------------------------------------------------------------*/

static dk_result
begins_all(dk_orch *o, dk_str input)
{
  const struct dk_activity_options options = {.struct_size = sizeof(options),
                                              .tag = dk_str_of("gpu"),
                                              .session = dk_str_of("s1")};

  dk_activity_with(o, "a", input, &options);
  dk_timer(o, 50);
  dk_child(o, "c", input, NULL);
  dk_start_detached(o, "d", dk_str_of("other"), input, "2.0.0");
  dk_kv_set(o, "k", input);
  dk_kv_get(o, "l", NULL);
  dk_set_status(o, dk_str_of("busy"));
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

static void
first_turn(void)
{
  SET_START(&s);
  s.past.n_committed = 0;
  s.events[0].parent.instance = dk_str_of("boss");
  TURN(begins_all, {.kind = MESSAGE_QUEUED, .name = S("q"), .text = S("x")});
  cmp_ok(d.status, "==", DK_RUNNING, "a first turn that waits");
  is(d.name.ptr, "order", "it gives the instance's name");
  is(d.version.ptr, "1.0.0", "its version");
  is(d.parent.ptr, "boss", "and its parent");
  is(events(), "1 started, 2 queued, 3 activity, 4 timer, 5 child, 6 detached, 7 kv, 8 kv, "
               "9 status, 10 wait", "all events are new, in order");
  is(rows(), "+3", "the activity has a row");
  is(d.scheduled[0].tag.ptr, "gpu", "with its tag");
  is(d.scheduled[0].session.ptr, "s1", "its session");
  is(d.scheduled[0].order.orchestration.ptr, "order", "and the orchestration that ordered it");
  is(outgoing(), "timer_fired t3.4 to order-7, start start to order-7::3.5, start start to other",
     "messages go out");
  cmp_ok(d.outgoing[0].visible_at, "==", 1050, "the timer's when it is due");
  is(d.outgoing[1].message.parent.instance.ptr, "order-7", "the child's with its parent");
  ok(!d.outgoing[2].message.parent.instance.ptr, "the other one's without");
  cmp_ok(d.n_kv, "==", 1, "one key is changed, and none by reading it");
  is(d.custom_status.ptr, "busy", "the status is set");
}

static dk_result
drops_at_once(dk_orch *o, dk_str input)
{
  dk_drop(o, dk_activity(o, "a", input));
  dk_drop(o, dk_timer(o, 50));
  dk_drop(o, dk_child(o, "c", input, NULL));
  dk_drop(o, dk_external(o, "go"));
  return dk_completed(o, dk_await(o, dk_external(o, "end")));
}

static void
begun_and_dropped(void)
{
  SET_START(&s);
  turn(drops_at_once, NULL, 0);
  is(rows(), "", "what is begun and dropped in one turn makes and deletes no row");
  is(outgoing(), "", "and sends no message");
}

static dk_result
races(dk_orch *o, dk_str input)
{
  dk_future *a = dk_activity(o, "a", input), *c = dk_child(o, "c", input, NULL);
  dk_future *t = dk_timer(o, 50), *e = dk_external(o, "go");

  dk_select(o, a, c, t, e);
  return dk_completed(o, dk_await(o, dk_external(o, "end")));
}

#define RACE ACTIVITY("a", "input"), CHILD("c", "input", "order-7::3.3"), TIMER(50), WAIT("go")

static void
losers(void)
{
  SET(&s, RACE);
  TURN(races, END(TIMER_FIRED, 4));
  is(events(), "6 timer_fired, 7 dropped select_loser_timeout, 8 dropped select_loser_timeout, "
               "9 dropped select_loser_timeout, 10 wait", "the losers are in the history");
  is(rows(), "-2", "the activity's row is deleted");
  is(reasons(), "a select_loser_timeout", "with its name and the reason");
  is(outgoing(), "cancel x3.3 to order-7::3.3", "the child gets a request to cancel");
  is(d.outgoing[0].message.text.ptr, "select_loser_timeout", "with the reason");
  is(d.outgoing[0].message.parent.instance.ptr, "order-7", "and the sender");
  cmp_ok(d.outgoing[0].message.parent.source, "==", 3, "and the event that began it");
  SET(&s, RACE);
  TURN(races, END(CHILD_COMPLETED, 3));
  is(rows(), "-2, t3.4", "a timer that lost is withdrawn");
  is(outgoing(), "", "a child that won gets no message");
  SET(&s, RACE);
  TURN(races, END(TIMER_FIRED, 4), END(ACTIVITY_COMPLETED, 2), END(CHILD_FAILED, 3));
  is(rows(), "", "what has ended in the same batch has no row any more");
  is(outgoing(), "", "and needs no message");
  SET(&s, RACE, FIRED(4), DROPPED(2), DROPPED(3), DROPPED(5));
  TURN(races, {.kind = MESSAGE_QUEUED, .name = S("q"), .text = S("x")});
  is(rows(), "", "a replay deletes nothing again");
  is(outgoing(), "", "and sends no message again");
}

static dk_result
starts_twice(dk_orch *o, dk_str input)
{
  const struct dk_child_options options = {.struct_size = sizeof(options),
                                           .instance = dk_str_of("same")};

  dk_child(o, "c", input, &options);
  dk_child(o, "c", input, &options);
  dk_start_detached(o, "c", dk_str_of("same"), input, NULL);
  return dk_completed(o, dk_await(o, dk_external(o, "end")));
}

static void
one_id_twice(void)
{
  SET_START(&s);
  turn(starts_twice, NULL, 0);
  is(outgoing(), "start start to same, child_failed e3.3 to order-7",
     "one id can be started once in a commit; the other child has failed");
  cmp_ok(d.outgoing[1].message.code, "==", CODE_INSTANCE_TAKEN, "for its id is taken");
  cmp_ok(decision_leave_away(&s.arena, s.past.instance, &d, 0), "==", DK_OK, "if it is stored");
  is(outgoing(), "child_failed e3.2 to order-7, child_failed e3.3 to order-7",
     "so has the first");
  cmp_ok(decision_leave_away(&s.arena, s.past.instance, &d, 0), "==", DK_OK, "what is there");
  is(outgoing(), "child_failed e3.3 to order-7", "is left out");
}

/* ---- the ends ---------------------------------------------------------------------------------*/

/* Waits for "go", and then ends as that requests, with an activity just begun. */
static dk_result
ends_as_told(dk_orch *o, dk_str input)
{
  dk_activity(o, "a", input);
  dk_timer(o, 50);
  dk_child(o, "c", input, NULL);
  dk_str how = dk_await(o, dk_external(o, "go"));
  dk_activity(o, "b", input);
  dk_timer(o, 60);
  dk_child(o, "c", input, NULL);
  dk_start_detached(o, "d", dk_str_of("other"), input, NULL);
  dk_kv_set(o, "k", input);
  if (how.ptr[0] == 'f')
    dk_fail(o, "told to");
  if (how.ptr[0] == 'n')
    dk_continue_as_new(o, dk_str_of("next"), "2.0.0");
  if (how.ptr[0] == 'w')
    dk_timer(o, -1);
  return dk_completed(o, dk_str_of("done"));
}

#define OPEN ACTIVITY("a", "input"), TIMER(50), CHILD("c", "input", "order-7::3.4"), WAIT("go")
#define GO(how) {.kind = MESSAGE_RAISED, .name = S("go"), .text = S(how)}

static void
set_open(void)
{
  SET(&s, OPEN);
  s.events[0].parent = (struct parent){S("boss"), 8, 9};
}

static void
completed(void)
{
  set_open();
  TURN(ends_as_told, GO("c"));
  cmp_ok(d.status, "==", DK_COMPLETED, "completed");
  is(d.output.ptr, "done", "with its output");
  is(events(), "6 raised, 7 activity, 8 timer, 9 child, 10 detached, 11 kv, "
               "12 ended terminal_completed, 13 ended terminal_completed, "
               "14 ended terminal_completed, 15 ended terminal_completed, 16 completed",
     "what is open is ended, and the end is the last event");
  cmp_ok(d.events[6].source, "==", 2, "the activity before");
  cmp_ok(d.events[7].source, "==", 4, "the child before");
  cmp_ok(d.events[8].source, "==", 7, "the activity of this turn");
  cmp_ok(d.events[9].source, "==", 9, "the child of this turn");
  is(rows(), "-2, t3.3", "the row is deleted, the timer is withdrawn, nothing new is begun");
  is(reasons(), "a terminal_completed", "the row for that reason");
  is(outgoing(), "start start to other, cancel x3.4 to order-7::3.4, child_completed e8.9 to boss",
     "the detached one begins, the child and the parent get a message");
  cmp_ok(d.n_kv, "==", 1, "keys are changed");
}

static void
failed(void)
{
  set_open();
  TURN(ends_as_told, GO("f"));
  cmp_ok(d.status, "==", DK_FAILED, "failed by its code");
  is(d.output.ptr, "told to", "with its error");
  is(rows(), "-2, t3.3", "all that is open ends");
  is(outgoing(), "start start to other, cancel x3.4 to order-7::3.4, child_failed e8.9 to boss",
     "detached starts are kept, and the parent gets a message");
  cmp_ok(d.outgoing[2].message.code, "==", CODE_APPLICATION, "that the code has failed");
  cmp_ok(d.n_kv, "==", 1, "keys are changed");
  cmp_ok(d.events[d.n_events - 1].code, "==", CODE_APPLICATION, "as in the last event");
}

static void
continued(void)
{
  set_open();
  TURN(ends_as_told, {.kind = MESSAGE_QUEUED, .name = S("q"), .text = S("m")}, GO("n"));
  cmp_ok(d.status, "==", DK_CONTINUED_AS_NEW, "continued as new");
  is(rows(), "-2, t3.3", "all that is open ends");
  is(reasons(), "a terminal_continued_as_new", "for that reason");
  is(outgoing(), "start start to other, cancel x3.4 to order-7::3.4, continue c4 to order-7",
     "the next execution begins, and the parent gets no message");
  const struct message *next = &d.outgoing[2].message;
  cmp_ok(next->execution, "==", 4, "with its number");
  is(next->name.ptr, "order", "its name");
  is(next->version.ptr, "2.0.0", "the version asked for");
  is(next->text.ptr, "next", "its input");
  is(next->parent.instance.ptr, "boss", "the parent");
  cmp_ok(next->n_carried, "==", 1, "and what was not taken");
  is(next->carried[0].data.ptr, "m", "of the queue");
  ok(strstr(events(), "ended terminal_continued_as_new"), "the history has the reason");
}

static void
cancelled(void)
{
  set_open();
  stage((const struct message[]){GO("c"), END(ACTIVITY_COMPLETED, 2),
                                 {.kind = MESSAGE_CANCEL, .text = S("enough"), .by = S("me")}},
        3);
  conclude((struct verdict_of){.verdict = VERDICT_CANCELLED});
  cmp_ok(d.status, "==", DK_CANCELLED, "cancelled");
  is(events(), "6 raised, 7 activity_completed, 8 cancel_requested, 9 ended terminal_cancelled, "
               "10 cancelled", "what had arrived is kept, the code was not run");
  is(rows(), "t3.3", "an activity that has ended has no row any more");
  is(outgoing(), "cancel x3.4 to order-7::3.4, child_failed e8.9 to boss",
     "child and parent get a message");
  is(d.outgoing[0].message.text.ptr, "enough", "to the child: the reason");
  is(d.outgoing[1].message.text.ptr, "cancelled: enough", "to the parent, too");
  cmp_ok(d.outgoing[1].message.code, "==", CODE_CANCELLED, "with the code for a cancelled child");
  is(d.output.ptr, "enough", "the output is the reason");
  is(d.events[4].by.ptr, "me", "and the last event has the requester");
}

/* ---- ends by the runtime ----------------------------------------------------------------------*/

static void
by_the_runtime(enum code code, const char *ended)
{
  char expected[200], reason[200];

  set_open();
  stage(NULL, 0);
  scene_run(&s, ends_as_told);
  conclude((struct verdict_of){VERDICT_FAILED, code, dk_str_of("too bad")});
  cmp_ok(d.status, "==", DK_FAILED, "failed by the runtime: %s", code_name(code));
  snprintf(expected, sizeof(expected), "6 ended %s, 7 ended %s, 8 failed %s", ended, ended,
           code_name(code));
  is(events(), expected, "%s: only what ends", code_name(code));
  is(rows(), "-2, t3.3", "%s: all that is open ends", code_name(code));
  snprintf(reason, sizeof(reason), "a %s", ended);
  is(reasons(), reason, "%s: for that reason", code_name(code));
  is(outgoing(), "cancel x3.4 to order-7::3.4, child_failed e8.9 to boss",
     "%s: child and parent get a message", code_name(code));
  cmp_ok(d.outgoing[1].message.code, "==", code, "%s: with the code", code_name(code));
}

static void
wrong_use_and_limit(void)
{
  set_open();
  TURN(ends_as_told, GO("w"));
  cmp_ok(d.status, "==", DK_FAILED, "a wrong use fails the instance");
  is(events(), "6 raised, 7 ended terminal_failed, 8 ended terminal_failed, "
               "9 failed application", "without what this turn has begun");
  is(outgoing(), "cancel x3.4 to order-7::3.4, child_failed e8.9 to boss",
     "child and parent get a message");
  cmp_ok(d.n_kv, "==", 0, "and no key is changed");
  set_open();
  s.past.max_events = 8;
  TURN(ends_as_told, GO("c"));
  is(events(), "6 raised, 7 ended limit, 8 ended limit, 9 failed limit", "so does a limit");
}

static void
cannot_be_committed(void)
{
  set_open();
  stage(NULL, 0);
  for (enum ending ending = ENDING_WAITS; ending <= ENDING_CORRUPT; ending++) {
    bool can = ending <= ENDING_CONTINUED || ending == ENDING_LIMIT ||
               ending == ENDING_WRONG_USE;
    s.ran = (struct ran){.ending = ending};
    cmp_ok(conclude((struct verdict_of){.verdict = VERDICT_RAN}), "==",
           can ? DK_OK : DK_INVALID, "ending %s", ending_name(ending));
  }
}

static void
first_commit_fails(void)
{
  SET_START(&s);
  s.past.n_committed = 0;
  stage(NULL, 0);
  conclude((struct verdict_of){VERDICT_FAILED, CODE_POISON, dk_str_of("too often")});
  is(events(), "1 started, 2 failed poison", "an instance that never had a turn");
  is(d.name.ptr, "order", "is stored with its name");
}

static void
damaged_history(void)
{
  SET(&s, ACTIVITY("a", "in"), {.kind = EVENT_NONE}, ACTIVITY("b", "in"), DONE(99, "x"));
  stage(NULL, 0);
  conclude((struct verdict_of){VERDICT_FAILED, CODE_CORRUPT, dk_str_of("event 3")});
  is(rows(), "-2, -4", "of a damaged history what can be read is ended");
  is(events(), "6 ended terminal_failed, 7 ended terminal_failed, 8 failed corrupt",
     "after its last id");
}

/* ---- sizes ------------------------------------------------------------------------------------*/

static void
long_texts(void)
{
  size_t size = 100000;
  char *text = malloc(size);

  if (!text)
    BAIL_OUT("no memory");
  for (size_t i = 0; i < size; i += 2)
    memcpy(text + i, "\xc3\xa4", 2);
  set_open();
  stage(NULL, 0);
  conclude((struct verdict_of){VERDICT_FAILED, CODE_POISON, {text, size}});
  cmp_ok(d.output.len, "<", 65536 / 2, "an error that would not fit is cut");
  cmp_ok(d.output.len, ">", 65536 / 4, "and not more than it has to be");
  ok(dk_utf8_valid(d.output.ptr, d.output.len), "between two characters");
  memset(text, 1, size);
  conclude((struct verdict_of){VERDICT_FAILED, CODE_POISON, {text, size}});
  cmp_ok(d.output.len, "<", 65536 / 12, "what has to be escaped takes more room");
  free(text);
}

static dk_result
continues(dk_orch *o, dk_str input)
{
  dk_continue_as_new(o, input, NULL);
}

static void
much_is_carried(void)
{
  enum { N = 100 };
  static char data[2000];
  struct message messages[N];

  memset(data, 'x', sizeof(data));
  for (size_t i = 0; i < N; i++)
    messages[i] = (struct message){.kind = MESSAGE_QUEUED, .name = S("q"),
                                   .text = {data, sizeof(data)}};
  SET_START(&s);
  turn(continues, messages, N);
  size_t carried = d.outgoing[0].message.n_carried;
  cmp_ok(carried, ">", 25, "what fits into a payload is carried");
  cmp_ok(carried, "<", 33, "and not more");
  cmp_ok(d.n_outgoing, "==", 1 + N - carried, "the rest is queued again");
  cmp_ok(d.outgoing[1].message.kind, "==", MESSAGE_QUEUED, "as messages to itself");
}

static void
answers_go_along(void)
{
  set_open();
  TURN(ends_as_told, {.kind = MESSAGE_START, .parent = {S("stranger"), 1, 2}},
       {.kind = MESSAGE_QUEUED, .name = S("q"), .text = S("m")});
  is(outgoing(), "child_failed e1.2 to stranger",
     "the other parent that wanted this id gets an answer");
}

/* More is open than a commit can end. */
static void
many_items(void)
{
  SET(&s, ACTIVITY("a", "1"), ACTIVITY("a", "2"), TIMER(5), TIMER(6), ACTIVITY("a", "3"));
  stage(NULL, 0);
  for (uint64_t max = 9; max > 2; max--) {
    s.past.max_items = max;
    conclude((struct verdict_of){VERDICT_FAILED, CODE_POISON, dk_str_of("too often")});
    cmp_ok(d.n_events + d.n_cancelled + d.n_withdrawn, "<=", max, "an end of %llu items",
           (unsigned long long)max);
    if (max == 9)
      is(events(), "7 ended poison, 8 ended poison, 9 ended poison, 10 failed poison", "all");
    if (max == 6)
      is(events(), "7 failed poison", "first the events of the ends are left out");
    if (max == 6)
      is(rows(), "-2, -3, -6, t3.4, t3.5", "and everything is stopped");
    if (max == 4)
      is(rows(), "-2, -3, -6", "then timers are left to fire without effect");
    if (max == 3)
      is(rows(), "-2, -3", "then rows");
  }
}

/* ---- no memory --------------------------------------------------------------------------------*/

/* A whole turn with so many bytes of memory: true if they were enough. */
static bool
turn_within(size_t size)
{
  static char region[64 * 1024];
  static const struct message messages[] = {
    {.kind = MESSAGE_QUEUED, .name = S("q"), .text = S("m"), .id = S("r1")}, GO("n"),
    {.kind = MESSAGE_START, .parent = {S("stranger"), 1, 2}}};
  const struct verdict_of verdict = {.verdict = VERDICT_RAN};
  struct dk_arena small;

  dk_arena_init_fixed(&small, region, size);
  struct history *history = history_new(&small, s.events, s.n_events);
  if (!history ||
      decision_stage(&small, history, 3, messages, 3, 1000, NULL, NULL, &staged) != DK_OK)
    return false;
  s.past.arrived = staged.arrived;
  s.past.n_arrived = staged.n_arrived;
  replay_free(s.run);
  s.run = replay_new(ends_as_told);
  s.run->arena = &small;
  replay_turn(s.run, &s.past, &s.ran);
  if (s.ran.ending == ENDING_NO_MEMORY)
    return false;
  if (s.ran.ending != ENDING_CONTINUED)
    fail("with %zu bytes the run ends as %s", size, ending_name(s.ran.ending));
  return decide(&small, &s.past, &s.events[0], false, &staged, &s.ran, &verdict, &d) == DK_OK;
}

static void
no_memory(void)
{
  size_t size = 0, n_refused = 0;

  set_open();
  while (size < 64 * 1024 && !turn_within(size)) {
    size += 16;
    n_refused++;
  }
  cmp_ok(n_refused, ">", 100, "a turn without the memory that it needs is refused");
  cmp_ok(size, "<", 64 * 1024, "and one with %zu bytes is decided", size);
  is(outgoing(), "start start to other, child_failed e1.2 to stranger, "
                 "cancel x3.4 to order-7::3.4, continue c4 to order-7", "as any other");
}

int
main(void)
{
  plan(NO_PLAN);
  first_turn();
  begun_and_dropped();
  losers();
  one_id_twice();
  completed();
  failed();
  continued();
  cancelled();
  by_the_runtime(CODE_POISON, "poison");
  by_the_runtime(CODE_LIMIT, "limit");
  by_the_runtime(CODE_NONDETERMINISM, "terminal_failed");
  wrong_use_and_limit();
  cannot_be_committed();
  first_commit_fails();
  damaged_history();
  long_texts();
  much_is_carried();
  answers_go_along();
  many_items();
  no_memory();
  scene_done(&s);
  return done_testing();
}
