/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what an orchestration begins: what is recorded, and what is refused as a wrong use. */
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/written-history.h"

static struct scene s;

/* ---- what is recorded -------------------------------------------------------------------------*/

static dk_result
begins_all(dk_orch *o, dk_str input)
{
  const struct dk_activity_options tagged = {.struct_size = sizeof(tagged),
                                             .tag = dk_str_of("gpu"),
                                             .session = dk_str_of("s1")};
  const struct dk_child_options named = {.struct_size = sizeof(named),
                                         .instance = dk_str_of("child-1"), .version = "2.0.0"};

  dk_activity_with(o, "a", input, &tagged);
  dk_timer(o, 50);
  dk_child(o, "c", input, NULL);
  dk_child(o, "c", input, &named);
  dk_start_detached(o, "d", dk_str_of("other"), input, "3.0.0");
  dk_external(o, "e");
  dk_dequeue(o, "q");
  dk_try_dequeue(o, "q", NULL);
  return dk_completed(o, input);
}

static void
recorded(void)
{
  SET_START(&s);
  is(scene_run(&s, begins_all), "completed", "all kinds of commands");
  is(scene_commands(&s), "activity a, timer 50, child c, child c, detached d, wait e, dequeue q, "
                         "try_dequeue q", "are recorded in order");
  const struct event *made = s.ran.commands;
  is(made[0].tag.ptr, "gpu", "a tag");
  is(made[0].session.ptr, "s1", "a session");
  is(made[0].text.ptr, "input", "an input");
  cmp_ok(made[1].time2, "==", 1050, "a timer's time is the turn's and so much more");
  is(made[2].instance.ptr, "order-7::3.4", "a child without an id gets one");
  is(made[2].version.ptr, NULL, "and no version");
  is(made[3].instance.ptr, "child-1", "or has its own");
  is(made[3].version.ptr, "2.0.0", "and a version");
  is(made[4].instance.ptr, "other", "a detached one has its id");
  is(made[4].version.ptr, "3.0.0", "and its version");
  cmp_ok(made[7].id, "==", 9, "ids continue");
}

/* Recorded commands are found again, in whatever memory they are. */
static void
recorded_again(void)
{
  size_t n = s.ran.n_commands;

  for (size_t i = 0; i < n; i++)
    s.events[1 + i] = s.ran.commands[i];
  s.past.n_events = s.past.n_committed = 1 + n;
  s.past.time = 777777;
  is(scene_run(&s, begins_all), "completed", "run again");
  is(scene_commands(&s), "", "it does nothing anew");
}

static dk_result
saturates(dk_orch *o, dk_str input)
{
  dk_timer(o, INT64_MAX);
  dk_timer(o, 0);
  return dk_completed(o, input);
}

static void
far_timers(void)
{
  SET_START(&s);
  is(scene_run(&s, saturates), "completed", "the longest and the shortest timer");
  cmp_ok(s.ran.commands[0].time2, "==", INT64_MAX, "never runs over");
  cmp_ok(s.ran.commands[1].time2, "==", 1000, "is due at once");
}

/* ---- wrong uses -------------------------------------------------------------------------------*/

static char long_name[1000];
static dk_future *kept;
static dk_orch *kept_orch;

static dk_result
null_future(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, input.ptr ? NULL : kept));
}

static dk_result
keeps_future(dk_orch *o, dk_str input)
{
  for (unsigned i = 0; i < 3; i++)
    kept = dk_activity(o, "a", input);
  kept_orch = o;
  dk_await(o, kept);
  return dk_completed(o, input);
}

static dk_result
old_future(dk_orch *o, dk_str input)
{
  dk_timer(o, 5);
  dk_drop(o, kept);
  return dk_completed(o, input);
}

static dk_result
bent_future(dk_orch *o, dk_str input)
{
  dk_future *future = dk_activity(o, "a", input);

  dk_ready(o, (dk_future *)((char *)future + 1));
  return dk_completed(o, input);
}

static dk_result
no_futures(dk_orch *o, dk_str input)
{
  dk_future *none[1] = {NULL};

  dk_any_of(o, none, 0);
  return dk_completed(o, input);
}

static dk_result
null_array(dk_orch *o, dk_str input)
{
  dk_select_of(o, NULL, 3);
  return dk_completed(o, input);
}

static dk_result
null_among(dk_orch *o, dk_str input)
{
  dk_all(o, dk_timer(o, 5), NULL);
  return dk_completed(o, input);
}

static dk_result
negative_time(dk_orch *o, dk_str input)
{
  dk_timer(o, -5);
  return dk_completed(o, input);
}

static dk_result
null_name(dk_orch *o, dk_str input)
{
  dk_activity(o, NULL, input);
  return dk_completed(o, input);
}

static dk_result
empty_name(dk_orch *o, dk_str input)
{
  dk_external(o, "");
  return dk_completed(o, input);
}

static dk_result
too_long_name(dk_orch *o, dk_str input)
{
  memset(long_name, 'x', sizeof(long_name) - 1);
  dk_dequeue(o, long_name);
  return dk_completed(o, input);
}

static dk_result
no_utf8(dk_orch *o, dk_str input)
{
  dk_child(o, "\xff\xfe", input, NULL);
  return dk_completed(o, input);
}

static dk_result
null_bytes(dk_orch *o, dk_str input)
{
  dk_activity(o, "a", (dk_str){NULL, input.len});
  return dk_completed(o, input);
}

static dk_result
after_the_end(dk_orch *o, dk_str input)
{
  dk_result result = dk_completed(o, input);

  dk_activity(o, "a", input);
  return result;
}

static dk_result
old_orch(dk_orch *o, dk_str input)
{
  dk_timer(kept_orch, 5);
  return dk_completed(o, input);
}

static dk_result
null_orch(dk_orch *o, dk_str input)
{
  dk_timer(NULL, 5);
  return dk_completed(o, input);
}

static dk_result
null_orch_fails(dk_orch *o, dk_str input)
{
  if (o)
    dk_fail(NULL, "where?");
  return dk_completed(o, input);
}

static dk_result
no_size(dk_orch *o, dk_str input)
{
  dk_activity_with(o, "a", input, &(struct dk_activity_options){.struct_size = 0});
  return dk_completed(o, input);
}

static dk_result
newer_size(dk_orch *o, dk_str input)
{
  dk_child(o, "a", input, &(struct dk_child_options){.struct_size = 4000});
  return dk_completed(o, input);
}

static dk_result
no_reserved(dk_orch *o, dk_str input)
{
  const struct dk_activity_options options = {.struct_size = sizeof(options), .reserved = 5};

  dk_activity_with(o, "a", input, &options);
  return dk_completed(o, input);
}

static dk_result
no_version(dk_orch *o, dk_str input)
{
  dk_start_detached(o, "a", dk_str_of("i"), input, "two");
  return dk_completed(o, input);
}

static dk_result
no_instance(dk_orch *o, dk_str input)
{
  dk_start_detached(o, "a", dk_str_of(NULL), input, NULL);
  return dk_completed(o, input);
}

static dk_result
no_attempts(dk_orch *o, dk_str input)
{
  const struct dk_retry how = {.struct_size = sizeof(how)};

  dk_activity_retried(o, "a", input, NULL, &how, NULL);
  return dk_completed(o, input);
}

static dk_result
null_retry(dk_orch *o, dk_str input)
{
  dk_activity_retried(o, "a", input, NULL, NULL, NULL);
  return dk_completed(o, input);
}

static dk_result
sets_key(dk_orch *o, dk_str input)
{
  dk_kv_set(o, "k", input);
  return dk_completed(o, input);
}

static dk_result
reads_key(dk_orch *o, dk_str input)
{
  dk_kv_get(o, "k", NULL);
  return dk_completed(o, input);
}

static dk_result
sets_status(dk_orch *o, dk_str input)
{
  dk_set_status(o, input);
  return dk_completed(o, input);
}

static dk_result
has_session(dk_orch *o, dk_str input)
{
  const struct dk_activity_options options = {.struct_size = sizeof(options),
                                              .session = dk_str_of("s")};

  dk_activity_with(o, "a", input, &options);
  return dk_completed(o, input);
}

static const struct {
  dk_orchestration_fn *function;
  const char *what, *says;
} wrong_uses[] = {
  {null_future, "a future that is NULL", "dk_await: the future is NULL"},
  {old_future, "a future of another run", "dk_drop: the future is of another run"},
  {bent_future, "an address inside of a future", "dk_ready: the future is of another run"},
  {no_futures, "no futures at all", "dk_any_of: there are no futures"},
  {null_array, "an array that is NULL", "dk_select_of: there are no futures"},
  {null_among, "NULL among futures", "dk_all_of: the future is NULL"},
  {negative_time, "a negative time", "dk_timer: the time is -5 ms"},
  {null_name, "a name that is NULL", "dk_activity: the name is missing"},
  {empty_name, "an empty name", "dk_external: the event's name is empty"},
  {too_long_name, "a name that is too long",
   "dk_dequeue: the queue's name has 999 bytes; this store takes up to 255"},
  {no_utf8, "a name that is not UTF-8", "dk_child: the name is not valid UTF-8"},
  {null_bytes, "NULL with a length", "dk_activity: the input is NULL with a length of 5"},
  {after_the_end, "a call after the end", "dk_activity: it was called after dk_completed"},
  {old_orch, "the dk_orch of another turn", "dk_timer: its dk_orch is that of another turn"},
  {null_orch, "a dk_orch that is NULL", "dk_timer: its dk_orch is NULL"},
  {null_orch_fails, "the same where it cannot return", "dk_fail: its dk_orch is NULL"},
  {no_size, "options without a size", "dk_activity_with: struct_size of its options is 0"},
  {newer_size, "options of a newer header", "dk_child: struct_size of its options is 4000"},
  {no_reserved, "what is reserved", "dk_activity_with: reserved in its options is 5"},
  {no_version, "a text that is not a version", "dk_start_detached: the version is not of the form"},
  {no_instance, "a detached start without an id",
   "dk_start_detached: the instance id is missing"},
  {no_attempts, "no attempts", "dk_activity_retried: attempts is 0"},
  {null_retry, "no struct dk_retry", "dk_activity_retried: its struct dk_retry is NULL"},
  {sets_key, "a key without the extension", "dk_kv_set: this store has no key-values"},
  {reads_key, "a key that is read without it", "dk_kv_get: this store has no key-values"},
  {sets_status, "a status without the extension", "dk_set_status: this store has no custom"},
  {has_session, "a session without the extension", "dk_activity_with: this store has no sessions"},
};

static void
wrong_use(void)
{
  static struct scene other;

  SET_START(&other);
  scene_run(&other, keeps_future);
  for (size_t i = 0; i < sizeof(wrong_uses) / sizeof(wrong_uses[0]); i++) {
    SET_START(&s);
    s.past.has_kv = s.past.has_status = s.past.has_sessions = false;
    is(scene_run(&s, wrong_uses[i].function), "wrong use", "%s", wrong_uses[i].what);
    ok(strstr(scene_text(&s), wrong_uses[i].says), "says: %s", scene_text(&s));
    cmp_ok(s.ran.code, "==", CODE_APPLICATION, "and fails by the code's fault");
  }
  scene_done(&other);
}

/* ---- ids that grow ----------------------------------------------------------------------------*/

static dk_result
one_child(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_child(o, "c", input, NULL)));
}

static void
long_ids(void)
{
  SET_START(&s);
  s.past.max_id = 12;
  is(scene_run(&s, one_child), "waits", "an id that just fits");
  s.past.max_id = 11;
  is(scene_run(&s, one_child), "limit", "an id that does not fit");
  ok(strstr(scene_text(&s), "dk_child: the child's id would have 12 bytes"), "%s",
     scene_text(&s));
}

int
main(void)
{
  plan(NO_PLAN);
  recorded();
  recorded_again();
  far_timers();
  wrong_use();
  long_ids();
  scene_done(&s);
  return done_testing();
}
