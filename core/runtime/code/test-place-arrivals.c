/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of staging: what arrives becomes an event once, or is a stray. */
#include "conformance/tap/tap.h"
#include "core/runtime/code/decision.h"
#include "core/runtime/code/history.h"
#include "core/runtime/testing/written-history.h"

static struct scene s;
static struct staged staged;
static char strays[2000];

static void
tell(void *context, const struct message *message, const char *why)
{
  size_t length = strlen(strays);

  (void)context;
  snprintf(strays + length, sizeof(strays) - length, "%s%s: %s", length > 0 ? "; " : "",
           message_kind_name(message->kind), why);
}

/* "activity_completed 2, raised go": what has arrived. */
static const char *
arrived(void)
{
  char *text = dk_arena_strdup(&s.arena, "");

  for (size_t i = 0; text && i < staged.n_arrived; i++) {
    const struct event *event = &staged.arrived[i];
    text = dk_arena_printf(&s.arena, "%s%s%s %.*s%.0llu", text, i > 0 ? ", " : "",
                           event_kind_name(event->kind), (int)event->name.len,
                           event->name.len > 0 ? event->name.ptr : "",
                           (unsigned long long)event->source);
  }
  return text;
}

static void
stage(const struct message *messages, size_t n)
{
  struct history *history = history_new(&s.arena, s.events, s.n_events);

  strays[0] = '\0';
  if (!history ||
      decision_stage(&s.arena, history, 3, messages, n, 1000, tell, NULL, &staged) != DK_OK)
    BAIL_OUT("no memory for a handful of messages");
}

#define STAGE(...)                                                                                 \
  stage((const struct message[]){__VA_ARGS__},                                                     \
        sizeof((const struct message[]){__VA_ARGS__}) / sizeof(struct message))
#define END(what, of, of_execution)                                                                \
  {                                                                                                \
    .kind = MESSAGE_##what, .execution = of_execution, .source = of, .text = S("result")           \
  }

/* ---- ends -------------------------------------------------------------------------------------*/

static void
ends(void)
{
  SET(&s, ACTIVITY("a", "in"), TIMER(5), CHILD("c", "in", "child"), ACTIVITY("b", "in"));
  STAGE(END(CHILD_FAILED, 4, 3), END(TIMER_FIRED, 3, 3), {.kind = MESSAGE_NONE},
        END(ACTIVITY_COMPLETED, 2, 3), END(ACTIVITY_FAILED, 5, 3));
  is(arrived(), "child_failed 4, timer_fired 3, activity_completed 2, activity_failed 5",
     "ends arrive in the order of the messages");
  is(strays, "", "and none is a stray");
  cmp_ok(staged.arrived[0].id, "==", 6, "their ids follow the history's");
  cmp_ok(staged.arrived[3].id, "==", 9, "without a gap");
  cmp_ok(staged.arrived[3].time, "==", 1000, "the time is the turn's");
  is(staged.arrived[3].text.ptr, "result", "the text is the message's");
}

static void
stray_ends(void)
{
  SET(&s, ACTIVITY("a", "in"), DONE(2, "x"), ACTIVITY("b", "in"), TIMER(5), DROPPED(5),
      ACTIVITY("c", "in"), DROPPED(7));
  STAGE(END(ACTIVITY_COMPLETED, 2, 3));
  is(strays, "activity_completed: what it refers to has already ended", "ended in the history");
  STAGE(END(ACTIVITY_FAILED, 2, 3));
  is(strays, "activity_failed: what it refers to has already ended", "failed after completed");
  STAGE(END(ACTIVITY_COMPLETED, 4, 3), END(ACTIVITY_COMPLETED, 4, 3), END(ACTIVITY_FAILED, 4, 3));
  is(strays, "activity_completed: what it refers to has already ended; activity_failed: what it "
             "refers to has already ended", "ended in the same batch");
  is(arrived(), "activity_completed 4", "only the first counts");
  STAGE(END(ACTIVITY_FAILED, 4, 3), END(ACTIVITY_COMPLETED, 4, 3));
  is(arrived(), "activity_failed 4", "even if it is a failure");
  STAGE(END(TIMER_FIRED, 5, 3), END(ACTIVITY_COMPLETED, 7, 3));
  is(strays, "timer_fired: what it refers to was cancelled; activity_completed: what it refers "
             "to was cancelled", "of what was dropped");
  STAGE(END(ACTIVITY_COMPLETED, 4, 2), END(ACTIVITY_COMPLETED, 4, 4));
  is(strays, "activity_completed: it is for another execution; activity_completed: it is for "
             "another execution", "of an execution before and one to come");
  STAGE(END(ACTIVITY_COMPLETED, 99, 3), END(ACTIVITY_COMPLETED, 0, 3), END(TIMER_FIRED, 4, 3),
        END(CHILD_COMPLETED, 1, 3), END(ACTIVITY_COMPLETED, UINT64_MAX, 3));
  cmp_ok(staged.n_arrived, "==", 0, "of nothing, or of something else");
}

/* ---- from outside -----------------------------------------------------------------------------*/

#define RAISE(n, number) {.kind = MESSAGE_RAISED, .name = S(n), .text = S("x"), .id = S(number)}

static void
outside(void)
{
  static const struct event with_id[] = {
    START, {.kind = EVENT_RAISED, .name = S("go"), .message_id = S("r1")}};

  scene_set(&s, with_id, 2);
  STAGE(RAISE("go", "r2"), {.kind = MESSAGE_QUEUED, .name = S("q"), .text = S("m")},
        RAISE("go", "r3"), {.kind = MESSAGE_QUEUED, .name = S("q"), .text = S("m")});
  is(arrived(), "raised go, queued q, raised go, queued q", "events and messages all arrive");
  is(staged.arrived[0].message_id.ptr, "r2", "with the ids of their messages");
  STAGE(RAISE("go", "r1"), RAISE("go", "r4"), RAISE("stop", "r4"));
  is(arrived(), "raised go", "but one that is sent again does not,");
  is(strays, "raised: it has already arrived; raised: it has already arrived",
     "whether it is in the history or in this batch");
}

/* The outcomes of the requests of that source, in the order of enum request_outcome. */
static const char *
requests(enum request_source source)
{
  char *text = dk_arena_strdup(&s.arena, "");

  for (int i = 0; text && i < N_REQUEST_OUTCOMES; i++)
    text = dk_arena_printf(&s.arena, "%s%s%u", text, i > 0 ? " " : "",
                           (unsigned)staged.requests[source][i]);
  return text;
}

static void
cancels(void)
{
  SET_START(&s);
  s.events[0].parent = (struct parent){S("boss"), 2, 9};
  STAGE({.kind = MESSAGE_CANCEL, .text = S("first"), .by = S("me")},
        {.kind = MESSAGE_CANCEL, .text = S("second")});
  ok(staged.cancel_requested, "a cancellation");
  is(staged.cancel->text.ptr, "first", "the first reason wins");
  is(staged.cancel->by.ptr, "me", "and the requester");
  is(strays, "cancel: the cancellation was already requested", "the second is a stray");
  is(requests(REQUEST_BY_API), "1 1 0 0 0", "one was taken, the other repeated it");
  is(requests(REQUEST_BY_PARENT), "0 0 0 0 0", "and no parent has asked");
  STAGE({.kind = MESSAGE_CANCEL, .parent = {S("boss"), 2, 8}},
        {.kind = MESSAGE_CANCEL, .parent = {S("boss"), 3, 9}},
        {.kind = MESSAGE_CANCEL, .parent = {S("bos"), 2, 9}});
  ok(!staged.cancel_requested, "another's parent cannot cancel");
  is(requests(REQUEST_BY_PARENT), "0 0 0 0 3", "all are refused");
  STAGE({.kind = MESSAGE_CANCEL, .parent = {S("boss"), 2, 9}, .text = S("over")});
  ok(staged.cancel_requested, "its own parent can");
  is(requests(REQUEST_BY_PARENT), "1 0 0 0 0", "that is one of a parent");
  is(requests(REQUEST_BY_API), "0 0 0 0 0", "and none of a client");
  SET(&s, {.kind = EVENT_CANCEL_REQUESTED, .text = S("old")});
  STAGE({.kind = MESSAGE_CANCEL, .text = S("new")});
  is(staged.cancel->text.ptr, "old", "a request of the history is the first");
  cmp_ok(staged.n_arrived, "==", 0, "and another one is nothing");
  is(requests(REQUEST_BY_API), "0 1 0 0 0", "but a repetition");
}

/* ---- starts -----------------------------------------------------------------------------------*/

static void
starts(void)
{
  SET_START(&s);
  s.events[0].parent = (struct parent){S("boss"), 2, 9};
  STAGE({.kind = MESSAGE_START, .name = S("order")},
        {.kind = MESSAGE_START, .name = S("order"), .parent = {S("boss"), 2, 9}},
        {.kind = MESSAGE_CONTINUE, .execution = 3});
  cmp_ok(staged.n_arrived, "==", 0, "starts of what has started are strays");
  cmp_ok(staged.n_answers, "==", 0, "and the own parent's needs no answer");
  STAGE({.kind = MESSAGE_START, .parent = {S("other"), 4, 5}},
        {.kind = MESSAGE_START, .parent = {S("other"), 4, 5}},
        {.kind = MESSAGE_START, .parent = {S("other"), 4, 6}});
  cmp_ok(staged.n_answers, "==", 2, "another parent is answered, each once");
  is(staged.answers[0].instance.ptr, "other", "the answer goes to it");
  is(staged.answers[0].id.ptr, "e4.5", "under the id of its child's end");
  cmp_ok(staged.answers[0].message.kind, "==", MESSAGE_CHILD_FAILED, "that its child has failed");
  cmp_ok(staged.answers[0].message.code, "==", CODE_INSTANCE_TAKEN, "for the id is taken");
  cmp_ok(staged.answers[1].message.source, "==", 6, "and the other one's");
}

static void
damaged_histories(void)
{
  s.n_events = 0;
  STAGE(END(ACTIVITY_COMPLETED, 2, 3), RAISE("go", "r1"));
  cmp_ok(staged.n_arrived, "==", 1, "without a history only what needs none arrives");
  SET(&s, {.kind = EVENT_NONE}, ACTIVITY("a", "in"));
  STAGE(END(ACTIVITY_COMPLETED, 2, 3), END(ACTIVITY_COMPLETED, 3, 3));
  is(arrived(), "activity_completed 3", "what can be read still counts");
}

int
main(void)
{
  plan(NO_PLAN);
  ends();
  stray_ends();
  outside();
  cancels();
  starts();
  damaged_histories();
  scene_done(&s);
  return done_testing();
}
