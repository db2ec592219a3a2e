/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of waiting: await, outcome, any, select, all, drop, ready, retry, and which wait gets
 * what arrives. */
#include "conformance/tap/tap.h"
#include "core/runtime/testing/written-history.h"

static struct scene s;

/* ---- select -----------------------------------------------------------------------------------*/

static dk_result
pays(dk_orch *o, dk_str input)
{
  dk_future *pay = dk_activity(o, "charge", input);
  dk_future *limit = dk_timer(o, 50);

  if (dk_select(o, pay, limit) == limit)
    return dk_failed(o, "timed out");
  return dk_completed(o, dk_await(o, pay));
}

static void
select_timeout(void)
{
  SET(&s, ACTIVITY("charge", "input"), TIMER(50));
  is(scene_run(&s, pays), "waits", "select waits while nothing is there");
  is(scene_commands(&s), "", "and drops nothing");
  SET(&s, ACTIVITY("charge", "input"), TIMER(50), FIRED(3));
  is(scene_run(&s, pays), "failed", "the timer wins");
  is(scene_commands(&s), "dropped 2 select_loser_timeout", "and the activity is dropped");
  SET(&s, ACTIVITY("charge", "input"), TIMER(50), DONE(2, "paid"));
  is(scene_run(&s, pays), "completed", "the activity wins");
  is(scene_commands(&s), "dropped 3 select_loser_other", "and the timer is dropped");
}

static void
select_both(void)
{
  SET(&s, ACTIVITY("charge", "input"), TIMER(50), FIRED(3), DONE(2, "paid"));
  is(scene_run(&s, pays), "failed", "of two in one batch the first in the history wins");
  is(scene_commands(&s), "dropped 2 select_loser_timeout",
     "the other is dropped: it was not looked at");
  SET(&s, ACTIVITY("charge", "input"), TIMER(50), DONE(2, "paid"), FIRED(3));
  is(scene_run(&s, pays), "completed", "also the other way round");
  SET(&s, ACTIVITY("charge", "input"), TIMER(50), FIRED(3), DROPPED(2));
  is(scene_run(&s, pays), "failed", "a drop in the history is not made again");
  is(scene_commands(&s), "", "nothing is done twice");
  SET(&s, ACTIVITY("charge", "input"), TIMER(50), FIRED(3), DROPPED(2), DONE(2, "late"));
  is(scene_run(&s, pays), "failed", "a result after its drop changes nothing");
}

/* Both were seen before, so the order of the arguments decides, and none is a loser. */
static dk_result
selects_late(dk_orch *o, dk_str input)
{
  dk_future *one = dk_activity(o, "one", input), *other = dk_activity(o, "other", input);
  dk_future *last = dk_timer(o, 50);

  dk_await(o, last);
  dk_future *won = dk_select(o, one, other);
  return dk_completed(o, dk_str_of(won == one ? "one" : "other"));
}

static void
select_seen(void)
{
  SET(&s, ACTIVITY("one", "input"), ACTIVITY("other", "input"), TIMER(50), DONE(3, "b"),
      DONE(2, "a"), FIRED(4));
  is(scene_run(&s, selects_late), "completed", "what the code has seen ready");
  is(scene_text(&s), "one", "wins in the order of the arguments");
  is(scene_commands(&s), "", "and what has ended is not dropped");
  SET(&s, ACTIVITY("one", "input"), ACTIVITY("other", "input"), TIMER(50), DONE(3, "b"),
      FIRED(4), DONE(2, "a"));
  scene_run(&s, selects_late);
  is(scene_text(&s), "other", "what arrived later is not seen yet");
  is(scene_commands(&s), "dropped 2 select_loser_other", "and is dropped, although it has arrived");
}

static dk_result
any_of_three(dk_orch *o, dk_str input)
{
  dk_future *a = dk_activity(o, "a", input), *b = dk_child(o, "b", input, NULL);
  dk_future *won = dk_any(o, a, b, a, a);

  dk_any(o, won);
  return dk_completed(o, dk_format(o, "%s", won == b ? "child" : "activity"));
}

static void
any(void)
{
  SET(&s, ACTIVITY("a", "input"), CHILD("b", "input", "order-7::3.3"), CHILD_FAULT(3, "oh"));
  is(scene_run(&s, any_of_three), "completed", "any takes what failed as well");
  is(scene_text(&s), "child", "the first to be there");
  is(scene_commands(&s), "", "and leaves the others open");
}

/* ---- all, outcome, ready ----------------------------------------------------------------------*/

static dk_result
all_of_them(dk_orch *o, dk_str input)
{
  dk_future *a = dk_activity(o, "a", input), *b = dk_activity(o, "b", input);
  dk_str one, other;

  dk_all(o, a, b);
  int32_t first = dk_outcome(o, a, &one), second = dk_outcome(o, b, &other);
  return dk_completed(o, dk_format(o, "%d %s %d %s", first, one.ptr, second, other.ptr));
}

static void
all(void)
{
  SET(&s, ACTIVITY("a", "input"), ACTIVITY("b", "input"), FAULT(3, "oh"));
  is(scene_run(&s, all_of_them), "waits", "all waits for the last");
  SET(&s, ACTIVITY("a", "input"), ACTIVITY("b", "input"), FAULT(3, "oh"), DONE(2, "fine"));
  is(scene_run(&s, all_of_them), "completed", "though one has failed");
  is(scene_text(&s), "1 fine 2 oh", "and each tells how it ended");
}

static dk_result
looks(dk_orch *o, dk_str input)
{
  dk_future *a = dk_activity(o, "a", input), *b = dk_activity(o, "b", input);
  int32_t before = dk_ready(o, a);

  dk_await(o, b);
  int32_t after = dk_ready(o, a);
  dk_drop(o, a);
  return dk_completed(o, dk_format(o, "%d %d %d %d", before, after, dk_ready(o, a),
                                   dk_outcome(o, a, NULL)));
}

static void
ready(void)
{
  SET(&s, ACTIVITY("a", "input"), ACTIVITY("b", "input"), DONE(2, "x"), DONE(3, "y"));
  scene_run(&s, looks);
  is(scene_text(&s), "0 1 1 1", "ready sees what the code has waited for; its drop has no effect");
  is(scene_commands(&s), "", "and is not recorded");
  SET(&s, ACTIVITY("a", "input"), ACTIVITY("b", "input"), DONE(3, "y"), DONE(2, "x"));
  scene_run(&s, looks);
  is(scene_text(&s), "0 0 3 3", "ready does not look ahead, and the drop has an effect");
  is(scene_commands(&s), "dropped 2 dropped", "and is recorded");
}

/* What was seen remains seen: an old result does not turn the clock back. */
static dk_result
looks_back(dk_orch *o, dk_str input)
{
  dk_future *a = dk_activity(o, "a", input), *b = dk_activity(o, "b", input);

  dk_await(o, dk_timer(o, 50));
  dk_await(o, a);
  return dk_completed(o, dk_format(o, "%d", dk_ready(o, b)));
}

static void
seen_stays_seen(void)
{
  SET(&s, ACTIVITY("a", "input"), ACTIVITY("b", "input"), TIMER(50), DONE(2, "x"), DONE(3, "y"),
      FIRED(4));
  scene_run(&s, looks_back);
  is(scene_text(&s), "1", "what was seen stays seen");
}

static dk_result
awaits_dropped(dk_orch *o, dk_str input)
{
  dk_future *a = dk_activity(o, "a", input);

  dk_drop(o, a);
  dk_drop(o, a);
  return dk_completed(o, dk_await(o, a));
}

static void
dropped(void)
{
  SET_START(&s);
  is(scene_run(&s, awaits_dropped), "failed", "code that awaits a dropped future fails");
  is(scene_text(&s), "waited for a dropped future: activity a", "and the error says so");
  is(scene_commands(&s), "activity a, dropped 2 dropped", "a second drop has no effect");
}

/* ---- which wait gets what arrives
 * --------------------------------------------------------------------*/

static dk_result
two_waits(dk_orch *o, dk_str input)
{
  dk_future *first = dk_external(o, "go"), *second = dk_external(o, "go");

  (void)input;
  dk_str b = dk_await(o, second), a = dk_await(o, first);
  return dk_completed(o, dk_format(o, "%s %s", a.ptr, b.ptr));
}

static dk_result
wait_gives_back(dk_orch *o, dk_str input)
{
  dk_future *first = dk_external(o, "go"), *limit = dk_timer(o, 50);

  (void)input;
  dk_select(o, limit, first);
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

/* Both are seen ready, and the timer is first: the wait is dropped, with what was kept for it. */
static dk_result
seen_wait_loses(dk_orch *o, dk_str input)
{
  dk_future *first = dk_external(o, "go"), *limit = dk_timer(o, 50);

  (void)input;
  dk_await(o, dk_external(o, "later"));
  dk_select(o, limit, first);
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

static dk_result
many_waits(dk_orch *o, dk_str input)
{
  dk_future *waits[4];

  (void)input;
  for (size_t i = 0; i < 4; i++)
    waits[i] = dk_dequeue(o, "q");
  dk_drop(o, waits[1]);
  dk_drop(o, waits[0]);
  dk_str third = dk_await(o, waits[2]), last = dk_await(o, waits[3]), more = dk_str_of("none");
  dk_try_dequeue(o, "q", &more);
  return dk_completed(o, dk_format(o, "%s %s %s", third.ptr, last.ptr, more.ptr));
}

static void
events(void)
{
  SET(&s, RAISED("go", "early"), RAISED("go", "late"), RAISED("other", "x"));
  scene_run(&s, two_waits);
  is(scene_text(&s), "early late", "events that came early are kept, in order");
  SET(&s, RAISED("go", "early"), WAIT("go"), WAIT("go"));
  is(scene_run(&s, two_waits), "waits", "the second wait does not get the first event");
  SET(&s, WAIT("go"), TIMER(50), FIRED(3));
  is(scene_run(&s, wait_gives_back), "waits", "a wait that lost waits no more");
  is(scene_commands(&s), "dropped 2 select_loser_timeout, wait go", "and is dropped");
  SET(&s, WAIT("go"), TIMER(50), FIRED(3), RAISED("go", "now"));
  is(scene_run(&s, wait_gives_back), "completed", "it takes no event");
  is(scene_text(&s), "now", "from the next wait");
  SET(&s, WAIT("go"), TIMER(50), WAIT("later"), RAISED("go", "before"), FIRED(3),
      RAISED("later", ""));
  is(scene_run(&s, seen_wait_loses), "completed", "what was seen, and lost");
  is(scene_text(&s), "before", "is given back too");
}

static void
queues(void)
{
  SET(&s, QUEUED("q", "1"), QUEUED("q", "2"), QUEUED("q", "3"), QUEUED("q", "4"));
  scene_run(&s, many_waits);
  is(scene_text(&s), "1 2 none", "what was kept for dropped waits goes to the others, in order");
  SET(&s, QUEUED("q", "1"), QUEUED("q", "2"), DEQUEUE("q"), DEQUEUE("q"), DEQUEUE("q"),
      DEQUEUE("q"), DROPPED(5), DROPPED(4));
  is(scene_run(&s, many_waits), "completed", "even if they were dropped before");
}

/* ---- try_dequeue and what is carried along ----------------------------------------------------*/

static dk_result
tries(dk_orch *o, dk_str input)
{
  dk_str message = dk_str_of("nothing");

  dk_try_dequeue(o, "q", &message);
  dk_await(o, dk_timer(o, 50));
  dk_try_dequeue(o, "q", NULL);
  dk_dequeue(o, "q");
  dk_continue_as_new(o, dk_format(o, "%s %s", input.ptr, message.ptr), NULL);
}

static void
try_dequeue(void)
{
  SET(&s, QUEUED("q", "1"), QUEUED("q", "2"), QUEUED("r", "3"), TIMER(50));
  is(scene_run(&s, tries), "nondeterminism", "try_dequeue is a command");
  SET(&s, TRIED("q", 0, 0), TIMER(50), QUEUED("q", "1"), QUEUED("r", "2"), FIRED(3),
      QUEUED("q", "3"));
  is(scene_run(&s, tries), "continued", "it finds what came before the event that was awaited");
  is(scene_text(&s), "input nothing", "and no more");
  cmp_ok(s.ran.n_carried, "==", 2, "messages that were not taken are carried along");
  is(s.ran.carried[0].data.ptr, "2", "in order, of all queues");
  is(s.ran.carried[1].data.ptr, "3", "even one that was kept for a wait");
}

static void
carried(void)
{
  struct carried before[] = {{S("q"), S("old")}, {S("r"), S("older")}};
  static const struct event history[] = {START};

  scene_set(&s, history, 1);
  s.events[0].carried = before;
  s.events[0].n_carried = 2;
  scene_run(&s, tries);
  cmp_ok(s.ran.commands[0].number, "==", 1, "what was carried here is there from the start");
  is(scene_run(&s, many_waits), "waits", "and waited for like the rest");
}

/* ---- retry ------------------------------------------------------------------------------------*/

static struct dk_retry how;

static dk_result
tries_again(dk_orch *o, dk_str input)
{
  dk_str value;
  int32_t outcome = dk_activity_retried(o, "a", input, NULL, &how, &value);

  return dk_completed(o, dk_format(o, "%d %s", outcome, value.ptr));
}

static void
retry(void)
{
  how = (struct dk_retry){.struct_size = sizeof(how), .attempts = 3, .first_delay_ms = 10};
  SET_START(&s);
  is(scene_run(&s, tries_again), "waits", "the first attempt");
  is(scene_commands(&s), "activity a", "has no timer without a timeout");
  SET(&s, ACTIVITY("a", "input"), FAULT(2, "one"), TIMER(10), FIRED(4), ACTIVITY("a", "input"),
      FAULT(6, "two"));
  is(scene_run(&s, tries_again), "waits", "after a failure it waits");
  is(scene_commands(&s), "timer 20", "twice as long each time");
  how.factor_percent = 1000;
  how.max_delay_ms = 30;
  scene_run(&s, tries_again);
  is(scene_commands(&s), "timer 30", "or what was asked for, up to the longest");
  SET(&s, ACTIVITY("a", "input"), FAULT(2, "one"), TIMER(10), FIRED(4), ACTIVITY("a", "input"),
      FAULT(6, "two"), TIMER(30), FIRED(8), ACTIVITY("a", "input"), FAULT(10, "three"));
  is(scene_run(&s, tries_again), "completed", "after the last failure");
  is(scene_text(&s), "2 three", "its error is the end");
}

static void
retry_timeout(void)
{
  how = (struct dk_retry){.struct_size = sizeof(how), .attempts = 2, .timeout_ms = 50};
  SET(&s, ACTIVITY("a", "input"), TIMER(50), FIRED(3));
  is(scene_run(&s, tries_again), "completed", "an attempt that takes too long is the end");
  is(scene_text(&s), "2 activity a took longer than 50 ms (attempt 1 of 2)",
     "and the error says so");
  is(scene_commands(&s), "dropped 2 select_loser_timeout", "and is cancelled");
  how.retry_timeouts = 1;
  is(scene_run(&s, tries_again), "waits", "or not the end");
  is(scene_commands(&s), "dropped 2 select_loser_timeout, activity a, timer 50",
     "the next attempt has its own timer");
  SET(&s, ACTIVITY("a", "input"), TIMER(50), DONE(2, "fine"));
  is(scene_run(&s, tries_again), "completed", "an attempt in time");
  is(scene_text(&s), "1 fine", "is a success");
  is(scene_commands(&s), "dropped 3 select_loser_other", "and its timer withdrawn");
}

int
main(void)
{
  plan(NO_PLAN);
  select_timeout();
  select_both();
  select_seen();
  any();
  all();
  ready();
  seen_stays_seen();
  dropped();
  events();
  queues();
  try_dequeue();
  carried();
  retry();
  retry_timeout();
  scene_done(&s);
  return done_testing();
}
