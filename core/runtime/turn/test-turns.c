/* SPDX-License-Identifier: Apache-2.0 */
/* Turns that do not succeed: what is delayed, poison, stray, taken, unknown or stuck; and that
 * other instances continue.  What is delayed until it is repaired: test-delays.c. */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

/* ---- orchestrations -------------------------------------------------------------------------- */

static dk_result
hello(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_format(o, "hello %.*s", (int)input.len, input.ptr));
}

static dk_result
waits(dk_orch *o, dk_str input)
{
  (void)input;
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

/* A child with the instance id that is the input; returns how it ended. */
static dk_result
parent(dk_orch *o, dk_str input)
{
  const struct dk_child_options options = {.struct_size = sizeof(options), .instance = input};
  dk_str value = {NULL, 0};
  int32_t how = dk_outcome(o, dk_child(o, "kid", dk_str_of("x"), &options), &value);

  return dk_completed(o, dk_format(o, "%s, %.*s", how == DK_FAULTED ? "faulted" : "succeeded",
                                   (int)value.len, value.ptr));
}

static dk_result
detaches(dk_orch *o, dk_str input)
{
  dk_start_detached(o, "hello", input, dk_str_of("d"), NULL);
  return dk_completed(o, dk_str_of("started"));
}

/* Starts five at once.  The ids of the child and of two others are taken. */
static dk_result
starts_many(dk_orch *o, dk_str input)
{
  const struct dk_child_options taken = {.struct_size = sizeof(taken),
                                         .instance = dk_str_of("stored")};
  dk_future *kid = dk_child(o, "kid", dk_str_of("x"), &taken);
  dk_str value = {NULL, 0};

  (void)input;
  dk_start_detached(o, "hello", dk_str_of("free-1"), dk_str_of("d"), NULL);
  dk_start_detached(o, "hello", dk_str_of("stored-2"), dk_str_of("d"), NULL);
  dk_start_detached(o, "hello", dk_str_of("stored-3"), dk_str_of("d"), NULL);
  dk_start_detached(o, "hello", dk_str_of("free-2"), dk_str_of("d"), NULL);
  return dk_completed(o, dk_str_of(dk_outcome(o, kid, &value) == DK_FAULTED ? "faulted" : "?"));
}

static dk_result
two_waits(dk_orch *o, dk_str input)
{
  (void)input;
  dk_await(o, dk_external(o, "go"));
  return dk_completed(o, dk_await(o, dk_external(o, "more")));
}

/* Another version of that code under the same number. */
static dk_result
two_other_waits(dk_orch *o, dk_str input)
{
  (void)input;
  dk_await(o, dk_external(o, "went"));
  return dk_completed(o, dk_await(o, dk_external(o, "more")));
}

static dk_result
never_ends(dk_orch *o, dk_str input)
{
  (void)input;
  for (;;)
    dk_now(o);
  return dk_completed(o, input);
}

static sem_t let_go;
static atomic_int n_stuck;

static dk_result
does_not_come_back(dk_orch *o, dk_str input)
{
  (void)input;
  atomic_fetch_add(&n_stuck, 1);
  while (sem_wait(&let_go) != 0)
    continue;
  return dk_completed(o, dk_str_of("at last"));
}

enum { N_QUEUED = 40 };

/* Takes two messages in each execution, and passes the texts of all to the next one. */
static dk_result
takes_two(dk_orch *o, dk_str input)
{
  dk_str said = input;

  for (int i = 0; i < 2; i++) {
    dk_str message = dk_await(o, dk_dequeue(o, "q"));
    said = dk_format(o, "%.*s%.*s", (int)said.len, said.ptr, (int)message.len, message.ptr);
  }
  if (said.len < (size_t)2 * N_QUEUED)
    dk_continue_as_new(o, said, NULL);
  return dk_completed(o, said);
}

/* ---- helpers --------------------------------------------------------------------------------- */

static struct dk_turn *
fetch(struct rig *rig)
{
  const struct dk_fetch_turn request = {.struct_size = sizeof(request), .lock_ms = 60000};
  struct dk_turn *turn = NULL;

  dk_caller_reset(rig->caller);
  if (dk_store_fetch_orchestration_item(rig->store, rig->caller, &request, &turn) != DK_OK)
    BAIL_OUT("there is no turn: %s", dk_caller_failure(rig->caller)->text);
  return turn;
}

/* As if a process had crashed with the turn, `n` times. */
static void
deliver_in_vain(struct rig *rig, uint32_t times)
{
  for (uint32_t i = 0; i < times; i++) {
    struct dk_turn *turn = fetch(rig);
    if (dk_store_abandon_orchestration_item(rig->store, rig->caller, turn->head.lock_token, 0,
                                            0) != DK_OK)
      BAIL_OUT("the turn is not given back");
  }
}

/* The next turn ends with one event of this payload and this status, whatever it says. */
static void
commit_raw(struct rig *rig, const char *payload, int32_t status)
{
  struct dk_turn *turn = fetch(rig);
  const struct dk_event event = {1, dk_str_of(payload)};
  const struct dk_turn_result result = {.struct_size = sizeof(result),
                                        .execution_id = 1,
                                        .status = status,
                                        .events = &event,
                                        .n_events = 1,
                                        .name = dk_str_of("waits"),
                                        .version = dk_str_of("1.0.0")};
  struct dk_commit_outcome outcome;

  if (dk_store_ack_orchestration_item(rig->store, rig->caller, turn->head.lock_token, &result,
                                      &outcome) != DK_OK)
    BAIL_OUT("no commit: %s", dk_caller_failure(rig->caller)->text);
}

static void
raise_event(struct rig *rig, const char *instance, const char *event, const char *data)
{
  if (dk_client_raise(rig->client, dk_str_of(instance), event, dk_str_of(data)) != DK_OK)
    BAIL_OUT("the event is not raised: %s", dk_client_error(rig->client));
}

static void
cancel(struct rig *rig, const char *instance, const char *reason)
{
  if (dk_client_cancel(rig->client, dk_str_of(instance), reason, "me") != DK_OK)
    BAIL_OUT("no cancellation: %s", dk_client_error(rig->client));
}

static struct rig
begin(void)
{
  struct rig rig = rig_begin();

  rig_orchestration(&rig, "hello", hello);
  rig_orchestration(&rig, "waits", waits);
  rig_orchestration(&rig, "parent", parent);
  rig_orchestration(&rig, "detaches", detaches);
  rig.options.max_attempts = 3;
  return rig;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void
test_warm(void)
{
  struct rig rig = begin();

  rig_start(&rig);
  rig_run(&rig, "i", "waits", "");
  ok(UNTIL(rig_counters(&rig).turns_committed == 1), "the first turn is committed");
  raise_event(&rig, "i", "go", "done");
  is(rig_result(&rig, "i"), "completed: done", "an event ends it");
  cmp_ok(rig_counters(&rig).warm_turns, "==", 1, "the second turn needs no history");
  cmp_ok(rig_counters(&rig).cold_turns, "==", 0, "none is cold");
  ok(UNTIL(rig_counters(&rig).orchestrations_completed == 1), "it is counted");
  rig_end(&rig);
}

static void
test_unregistered(void)
{
  struct rig rig = begin();

  rig_start(&rig);
  rig_run(&rig, "ghost", "ghost", "");
  rig_run(&rig, "ghost-2", "ghost", "");
  ok(UNTIL(rig_counters(&rig).turns_stalled >= 12), "two are delayed again and again");
  cmp_ok(listener_level(rig.listener, DK_LEVEL_WARNING), "==", 2, "one warning is logged for each");
  rig_is_told(&rig, DK_LOG_STALLED, "instance ghost", "no orchestration \"ghost\"",
              "dk_register_orchestration");
  rig_ten_complete(&rig, "hello");
  cancel(&rig, "ghost-2", "not registered");
  is(rig_result(&rig, "ghost-2"), "cancelled: not registered (me)",
     "a cancel request needs no code");
  rig_stop(&rig, 1000);
  rig_orchestration(&rig, "ghost", hello);
  rig_start(&rig);
  is(rig_result(&rig, "ghost"), "completed: hello ",
     "a deployment that registers it is not too late");
  rig_end(&rig);
}

static void
test_unknown_instance(void)
{
  struct rig rig = begin();

  rig_start(&rig);
  raise_event(&rig, "absent", "go", "lost");
  ok(listener_until(rig.listener, DK_LOG_MESSAGE_DROPPED, 1),
     "a message for an unknown instance is dropped");
  cmp_ok(rig_counters(&rig).messages_dropped, "==", 1, "and counted");
  ok(rig_counters(&rig).turns_stalled == 3, "after max_attempts deliveries");
  rig_is_told(&rig, DK_LOG_STALLED, "instance absent", "was not started (yet)", "dk_client_start");
  rig_is_told(&rig, DK_LOG_MESSAGE_DROPPED, "instance absent", "its instance was not started",
              "dk_client_start");
  rig_ten_complete(&rig, "hello");
  rig_end(&rig);
}

static void
test_start_is_not_poisoned(void)
{
  struct rig rig = begin();

  raise_event(&rig, "late", "go", "early bird");
  deliver_in_vain(&rig, 9);
  rig_run(&rig, "late", "waits", "");
  rig_start(&rig);
  is(rig_result(&rig, "late"), "completed: early bird",
     "a start is not judged by the messages that waited for it");
  rig_end(&rig);
}

static void
test_poison(void)
{
  struct rig rig = begin();

  rig_start(&rig);
  rig_run(&rig, "p", "parent", "the-kid");
  ok(listener_until(rig.listener, DK_LOG_STALLED, 1), "the child is not registered yet");
  rig_stop(&rig, 10000);
  ok(UNTIL(dk_client_status(rig.client, dk_str_of("p"),
                            &(struct dk_instance_info){
                              .struct_size = sizeof(struct dk_instance_info)}) == DK_OK),
     "the parent is there");
  rig_orchestration(&rig, "kid", hello);
  rig.options.backoff_ms = rig.options.max_backoff_ms = 1;
  int64_t until = ticks_now() + 60000;
  struct dk_turn *turn = NULL;
  uint32_t attempt = 0;
  while (attempt < 4 && ticks_now() < until) {
    const struct dk_fetch_turn request = {.struct_size = sizeof(request), .lock_ms = 60000};
    dk_caller_reset(rig.caller);
    if (dk_store_fetch_orchestration_item(rig.store, rig.caller, &request, &turn) != DK_OK) {
      a_moment();
      continue;
    }
    attempt = turn->messages[0].attempt;
    dk_store_abandon_orchestration_item(rig.store, rig.caller, turn->head.lock_token, 0, 0);
  }
  rig_start(&rig);
  ok(rig_says(rig_result(&rig, "the-kid"), "failed: "),
     "a turn that kills its process each time fails");
  ok(rig_says(rig_result(&rig, "p"), "completed: faulted"), "and its parent gets the failure");
  rig_end(&rig);
}

static void
test_nondeterminism(void)
{
  struct rig rig = begin();
  struct dk_registry *first = rig.registry, *second = dk_registry_new();

  rig_orchestration(&rig, "changes", two_waits);
  dk_register_orchestration(second, "changes", NULL, two_other_waits);
  dk_register_orchestration(second, "hello", NULL, hello);
  rig.options.max_attempts = 1000;
  rig_start(&rig);
  rig_run(&rig, "i", "changes", "");
  rig_run(&rig, "j", "changes", "");
  ok(UNTIL(rig_counters(&rig).turns_committed == 2), "two instances of the first code");
  rig_stop(&rig, 10000);

  rig.options.registry = second;
  rig_start(&rig);
  raise_event(&rig, "i", "go", "");
  raise_event(&rig, "j", "go", "");
  ok(UNTIL(rig_counters(&rig).turns_stalled > 4), "changed code delays them");
  ok(rig_says(listener_latest(rig.listener, DK_LOG_STALLED).text, "go"), "and the log says where");
  rig_ten_complete(&rig, "hello");
  rig_stop(&rig, 10000);

  rig.options.registry = first;
  rig_start(&rig);
  raise_event(&rig, "i", "more", "rolled back");
  is(rig_result(&rig, "i"), "completed: rolled back", "a deployment that is taken back heals them");
  rig_stop(&rig, 10000);

  rig.options.registry = second;
  rig.options.flags = DK_RUNTIME_FAIL_FAST;
  rig_start(&rig);
  raise_event(&rig, "j", "more", "");
  ok(rig_says(rig_result(&rig, "j"), "failed: "), "with FAIL_FAST it fails at once");
  rig.options.registry = first;
  rig_end(&rig);
  dk_registry_free(second);
}

static void
test_nondeterminism_in_the_end(void)
{
  struct rig rig = begin();
  struct dk_registry *first = rig.registry, *second = dk_registry_new();

  rig_orchestration(&rig, "changes", two_waits);
  dk_register_orchestration(second, "changes", NULL, two_other_waits);
  rig_start(&rig);
  rig_run(&rig, "i", "changes", "");
  ok(UNTIL(rig_counters(&rig).turns_committed == 1), "an instance of the first code");
  rig_stop(&rig, 10000);
  rig.options.registry = second;
  rig.options.flags = DK_RUNTIME_FAIL_DELAYED;
  rig_start(&rig);
  raise_event(&rig, "i", "go", "");
  ok(rig_says(rig_result(&rig, "i"), "failed: "), "it fails once its attempts are used up");
  cmp_ok(rig_counters(&rig).turns_stalled, "==", 2, "of which the last is the failure");
  rig_stop(&rig, 0);
  rig.options.registry = first;
  rig_end(&rig);
  dk_registry_free(second);
}

static void
test_strays(void)
{
  struct rig rig = begin();
  const struct message strays[] = {
    {.kind = MESSAGE_ACTIVITY_COMPLETED, .execution = 1, .source = 77, .text = dk_str_of("?")},
    {.kind = MESSAGE_ACTIVITY_COMPLETED, .execution = 9, .source = 2, .text = dk_str_of("?")},
    {.kind = MESSAGE_TIMER_FIRED, .execution = 1, .source = 2},
    {.kind = MESSAGE_CONTINUE, .execution = 2, .name = dk_str_of("waits"),
     .version = dk_str_of("1.0.0")},
    {.kind = MESSAGE_START, .name = dk_str_of("hello")},
    {.kind = MESSAGE_CANCEL, .text = dk_str_of("no"),
     .parent = {.instance = dk_str_of("stranger"), .execution = 1, .source = 2}},
  };
  const uint32_t n = sizeof(strays) / sizeof(strays[0]);

  rig_start(&rig);
  rig_run(&rig, "i", "waits", "");
  ok(UNTIL(rig_counters(&rig).turns_committed == 1), "an instance waits");
  for (uint32_t i = 0; i < n; i++)
    rig_send(&rig, "i", NULL, &strays[i]);
  ok(listener_until(rig.listener, DK_LOG_STRAY, n), "messages that refer to nothing are logged");
  raise_event(&rig, "i", "go", "unharmed");
  is(rig_result(&rig, "i"), "completed: unharmed", "and have no effect");
  rig_send(&rig, "i", NULL, &strays[0]);
  ok(listener_until(rig.listener, DK_LOG_STRAY, n + 1), "and so is one for an ended instance");
  cmp_ok(rig_counters(&rig).strays, "==", n + 1, "all are counted");
  cmp_ok(listener_level(rig.listener, DK_LEVEL_WARNING), "==", 0, "without a warning");
  rig_end(&rig);
}

/* The id is taken: by one that runs, by one that has ended, by one whose start is stored. */
static void
test_taken(void)
{
  struct rig rig = begin();

  rig_orchestration(&rig, "kid", hello);
  rig_start(&rig);
  rig_run(&rig, "runs", "waits", "");
  rig_run(&rig, "over", "hello", "");
  rig_run(&rig, "stored", "ghost", "");
  is(rig_result(&rig, "over"), "completed: hello ", "one has ended");
  ok(UNTIL(rig_counters(&rig).turns_committed >= 2), "one runs");
  rig_run(&rig, "p1", "parent", "runs");
  rig_run(&rig, "p2", "parent", "over");
  rig_run(&rig, "p3", "parent", "stored");
  ok(rig_says(rig_result(&rig, "p1"), "completed: faulted, "), "the id of one that runs is taken");
  ok(rig_says(rig_result(&rig, "p2"), "completed: faulted, "), "and of one that has ended");
  ok(rig_says(rig_result(&rig, "p3"), "completed: faulted, "), "and of one whose start is stored");
  rig_run(&rig, "d", "detaches", "stored");
  is(rig_result(&rig, "d"), "completed: started", "a detached start does not fail");
  raise_event(&rig, "runs", "go", "on");
  is(rig_result(&rig, "runs"), "completed: on", "the other instance is not disturbed");
  rig_run(&rig, "p4", "parent", "free");
  is(rig_result(&rig, "p4"), "completed: succeeded, hello x", "an id that is free is all right");
  rig_end(&rig);
}

/* The store names one after the other, and no commit is sent in vain. */
static void
test_many_taken(void)
{
  struct rig rig = begin();

  rig_orchestration(&rig, "many", starts_many);
  rig_start(&rig);
  rig_run(&rig, "stored", "ghost", "");
  rig_run(&rig, "stored-2", "ghost", "");
  rig_run(&rig, "stored-3", "ghost", "");
  ok(listener_until(rig.listener, DK_LOG_STALLED, 3), "three starts are stored, and wait");
  rig_run(&rig, "m", "many", "");
  is(rig_result(&rig, "m"), "completed: faulted", "the id of its child is taken");
  is(rig_result(&rig, "free-1"), "completed: hello d", "a start with a free id succeeds");
  is(rig_result(&rig, "free-2"), "completed: hello d", "and so is the other");
  /* A commit that still runs is a call and not yet a success. */
  ok(UNTIL(faulty_calls(rig.faulty, FAULTY_ACK_TURN) -
             faulty_successes(rig.faulty, FAULTY_ACK_TURN) == 3),
     "each of three refusals names one");
  ok(listener_until(rig.listener, DK_LOG_STRAY, 2), "the two detached starts are logged");
  rig_end(&rig);
}

/* A provider that was built for an ABI before 2.3. */
static void
test_taken_is_not_named(void)
{
  struct rig rig = begin();

  rig_orchestration(&rig, "kid", hello);
  rig_start(&rig);
  faulty_plan(rig.faulty, FAULTY_ACK_TURN, 0, 1, FAULT_REFUSE, DK_DUPLICATE);
  rig_run(&rig, "p", "parent", "free");
  is(rig_result(&rig, "p"), "completed: succeeded, hello x", "the turn is made again");
  cmp_ok(listener_count(rig.listener, DK_LOG_STALLED), "==", 1, "after it was delayed, once");
  rig_is_told(&rig, DK_LOG_STALLED, "p", "already stored", "");
  rig_end(&rig);
}

static void
store_later(struct rig *rig, const char *instance, const char *id)
{
  const struct dk_item item = {.struct_size = sizeof(item), .instance = dk_str_of(instance),
                               .id = dk_str_of(id), .delay_ms = 3600000,
                               .payload = dk_str_of("{}")};

  if (dk_store_enqueue_for_orchestrator(rig->store, rig->caller, &item) != DK_OK)
    BAIL_OUT("a message cannot be stored");
}

/* Two start a child with the id of an ended instance, and one of them has its answer already. */
static void
test_one_answer_is_stored(void)
{
  struct rig rig = begin();
  struct message asks = {.kind = MESSAGE_START, .name = dk_str_of("hello"),
                         .parent = {.instance = dk_str_of("first"), .execution = 1, .source = 7}};

  rig_start(&rig);
  rig_run(&rig, "over", "hello", "");
  is(rig_result(&rig, "over"), "completed: hello ", "one has ended");
  rig_run(&rig, "second", "waits", "");
  ok(UNTIL(rig_counters(&rig).turns_committed >= 2), "one waits");
  rig_stop(&rig, RIG_WAIT_MS);
  store_later(&rig, "first", "e1.7");
  rig_send(&rig, "over", NULL, &asks);
  asks.parent.instance = dk_str_of("second");
  rig_send(&rig, "over", NULL, &asks);
  rig_start(&rig);
  ok(listener_until(rig.listener, DK_LOG_STRAY, 3), "both starts are strays, an answer comes");
  rig_is_told(&rig, DK_LOG_STRAY, "second", "child_failed", "");
  rig_end(&rig);
}

static void
test_corrupt_history(void)
{
  struct rig rig = begin();

  rig.options.flags = DK_RUNTIME_FAIL_DELAYED;
  rig_run(&rig, "i", "waits", "");
  commit_raw(&rig, "garbage", DK_RUNNING);
  rig_run(&rig, "c", "waits", "");
  commit_raw(&rig, "garbage", DK_RUNNING);
  rig_start(&rig);
  raise_event(&rig, "i", "go", "");
  ok(rig_says(rig_result(&rig, "i"), "failed: "),
     "a history that cannot be read fails it in the end");
  cmp_ok(rig_counters(&rig).turns_stalled, "==", 2, "after it was delayed");
  ok(rig_says(listener_latest(rig.listener, DK_LOG_STALLED).text, "event 1"),
     "and the log says where");
  cancel(&rig, "c", "it is broken");
  is(rig_result(&rig, "c"), "cancelled: it is broken (me)", "and can be cancelled before that");
  rig_end(&rig);
}

static void
test_lost_continuation(void)
{
  struct rig rig = begin();
  const char *started = "{\"v\":1,\"kind\":\"started\",\"name\":\"waits\",\"version\":\"1.0.0\"}";

  rig.options.flags = DK_RUNTIME_FAIL_DELAYED;
  rig_run(&rig, "i", "waits", "");
  commit_raw(&rig, started, DK_CONTINUED_AS_NEW);
  rig_run(&rig, "j", "waits", "");
  commit_raw(&rig, started, DK_CONTINUED_AS_NEW);
  rig_start(&rig);
  raise_event(&rig, "i", "go", "");
  ok(rig_says(rig_result(&rig, "i"), "failed: "),
     "without the message that continues it, it fails");
  ok(rig_counters(&rig).turns_stalled == 2, "after delays, not in a hot loop");
  cancel(&rig, "j", "enough");
  is(rig_result(&rig, "j"), "cancelled: enough (me)", "and can be cancelled");
  rig_end(&rig);
}

/* More is queued than one turn takes: the message that begins an execution is behind them. */
static void
test_long_queue(bool starts_first)
{
  struct rig rig = begin();
  char all[16 + 2 * N_QUEUED] = "completed: ", *end = all + strlen(all);

  rig_orchestration(&rig, "takes two", takes_two);
  rig.options.max_messages = 3;
  rig.options.orchestration_slots = 2;
  if (starts_first)
    rig_run(&rig, "i", "takes two", "");
  for (int i = 10; i < 10 + N_QUEUED; i++) {
    end += snprintf(end, 3, "%d", i);
    if (dk_client_enqueue(rig.client, dk_str_of("i"), "q", dk_str_of(end - 2)) != DK_OK)
      BAIL_OUT("a message is not queued");
  }
  if (!starts_first)
    rig_run(&rig, "i", "takes two", "");
  rig_start(&rig);
  is(rig_result(&rig, "i"), all, "a long queue is taken in its order, %s",
     starts_first ? "from the start on" : "even what arrived before the start");
  cmp_ok(rig_counters(&rig).turns_stalled, "==", 0, "and nothing is delayed for it");
  rig_ten_complete(&rig, "hello");
  rig_end(&rig);
}

static void
test_cancelled_before_the_start(void)
{
  struct rig rig = begin();

  rig_run(&rig, "i", "hello", "");
  cancel(&rig, "i", "changed my mind");
  cancel(&rig, "i", "the second reason");
  rig_start(&rig);
  is(rig_result(&rig, "i"), "cancelled: changed my mind (me)",
     "cancelled before its start, it never runs, and the first reason wins");
  ok(UNTIL(rig_counters(&rig).orchestrations_cancelled == 1), "that is counted");
  cancel(&rig, "i", "the third");
  ok(listener_until(rig.listener, DK_LOG_STRAY, 1), "later ones are strays");
  is(rig_result(&rig, "i"), "cancelled: changed my mind (me)", "and change nothing");
  rig_end(&rig);
}

static void
test_overdue(void)
{
  struct rig rig = begin();

  rig_orchestration(&rig, "never", never_ends);
  rig.options.max_turn_ms = 50;
  rig.options.flags = DK_RUNTIME_FAIL_DELAYED;
  rig.options.max_attempts = 2;
  rig.options.max_events = UINT32_MAX;
  rig_start(&rig);
  rig_run(&rig, "i", "never", "");
  ok(rig_says(rig_result(&rig, "i"), "failed: "),
     "code that never ends fails its instance in the end");
  ok(rig_counters(&rig).turns_stalled >= 1, "after it was delayed");
  rig.options.max_turn_ms = 0;
  rig_end(&rig);
}

static void
test_stuck(void)
{
  struct rig rig = begin();
  char reason[256] = "";

  sem_init(&let_go, 0, 0);
  rig_orchestration(&rig, "stuck", does_not_come_back);
  rig.options.max_turn_ms = 100;
  rig.options.turn_lock_ms = 1000;
  rig.options.turn_renewal_buffer_ms = 300;
  rig.options.orchestration_slots = 1;
  rig_start(&rig);
  rig_run(&rig, "i", "stuck", "");
  ok(listener_until(rig.listener, DK_LOG_TURN_STUCK, 1), "code that does not return is logged");
  ok(!dk_runtime_healthy(rig.runtime, reason, sizeof(reason)), "the runtime is not healthy then");
  ok(rig_says(reason, "instance i"), "and the reason names the instance");
  rig_ten_complete(&rig, "hello");
  ok(UNTIL(rig_counters(&rig).turns_stalled > 0), "its next turn does not run it once more");
  cmp_ok(atomic_load(&n_stuck), "==", 1, "as long as the first has not returned");
  sem_post(&let_go);
  ok(UNTIL(dk_runtime_healthy(rig.runtime, reason, sizeof(reason))),
     "it is when the code has returned");
  for (int i = 0; i < 100; i++)
    sem_post(&let_go);
  ok(rig_says(rig_result(&rig, "i"), "completed: at last"), "and the instance ends");
  rig_end(&rig);
  sem_destroy(&let_go);
}

int
main(void)
{
  test_warm();
  test_unregistered();
  test_unknown_instance();
  test_start_is_not_poisoned();
  test_poison();
  test_nondeterminism();
  test_nondeterminism_in_the_end();
  test_strays();
  test_taken();
  test_many_taken();
  test_taken_is_not_named();
  test_one_answer_is_stored();
  test_corrupt_history();
  test_lost_continuation();
  test_long_queue(true);
  test_long_queue(false);
  test_cancelled_before_the_start();
  test_overdue();
  test_stuck();
  return done_testing();
}
