/* SPDX-License-Identifier: Apache-2.0 */
/* Commits: what is encoded, how they are tried until they succeed, and else how the turn ends. */
#include <stdatomic.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"
#include "core/runtime/turn/commit-encode.h"

/* ---- encoding -------------------------------------------------------------------------------- */

static struct event events[] = {
  {.id = 3, .kind = EVENT_RAISED, .name = {"go", 2}, .text = {"now", 3}},
  {.id = 4, .kind = EVENT_ACTIVITY, .name = {"pay", 3}, .text = {"7", 1}},
};
static struct scheduled scheduled[] = {
  {.activity_id = 4, .tag = {"gpu", 3}, .order = {.name = {"pay", 3}, .input = {"7", 1}}},
};
static struct cancelled cancelled[] = {{.activity_id = 2}};
static dk_str withdrawn[] = {{"t1.1", 4}};
static struct outgoing outgoing[] = {
  {.instance = {"p", 1}, .id = {"e1.9", 4}, .visible_at = 77,
   .message = {.kind = MESSAGE_CHILD_COMPLETED, .execution = 1, .source = 9, .text = {"ok", 2}}},
};
static struct dk_kv_change kv[] = {{.op = DK_KV_SET, .key = {"k", 1}, .value = {"v", 1}}};

static const struct decision whole = {
  .execution = 1, .status = DK_COMPLETED, .output = {"out", 3}, .name = {"n", 1},
  .version = {"1.0.0", 5}, .parent = {"p", 1}, .events = events, .n_events = 2,
  .scheduled = scheduled, .n_scheduled = 1, .cancelled = cancelled, .n_cancelled = 1,
  .withdrawn = withdrawn, .n_withdrawn = 1, .outgoing = outgoing, .n_outgoing = 1, .kv = kv,
  .n_kv = 1, .custom_status_op = DK_CUSTOM_SET, .custom_status = {"s", 1},
};

static void
test_encoded(void)
{
  struct dk_arena arena;
  struct event event;
  struct message message;
  struct task_order order;
  const char *why;

  dk_arena_init(&arena);
  const struct dk_turn_result *result = commit_encode(&arena, &whole, dk_str_of("me"));
  ok(result, "a decision is encoded");
  ok(result->execution_id == 1 && result->status == DK_COMPLETED && result->n_kv == 1 &&
       result->custom_status_op == DK_CUSTOM_SET && result->n_cancelled_messages == 1,
     "its plain parts are there");
  ok(result->n_events == 2 && result->events[1].event_id == 4 &&
       event_decode(&arena, result->events[1].payload, &event, &why) == DK_OK &&
       event.kind == EVENT_ACTIVITY,
     "events can be read");
  ok(result->n_worker_items == 1 && result->worker_items[0]->activity_id == 4 &&
       !result->worker_items[0]->instance.ptr && result->worker_items[0]->execution_id == 1 &&
       task_order_decode(&arena, result->worker_items[0]->payload, &order, &why) == DK_OK,
     "so can activities, which have no instance of their own");
  is(order.name.ptr, "pay", "with their names");
  ok(result->n_orchestrator_items == 1 && result->orchestrator_items[0]->visible_at == 77 &&
       message_decode(&arena, result->orchestrator_items[0]->payload, &message, &why) == DK_OK &&
       message.source == 9,
     "and messages, at their time");
  ok(result->cancelled_activities[0].activity_id == 2 &&
       result->cancelled_activities[0].execution_id == 1,
     "and what is cancelled");
  const struct dk_turn_result *nothing = commit_encode_nothing(&arena, outgoing, 1);
  ok(nothing && nothing->execution_id == 0 && !nothing->owner.ptr && !nothing->n_events &&
       nothing->n_orchestrator_items == 1,
     "the empty commit has messages only");
  dk_arena_done(&arena);
}

static void
test_no_memory(void)
{
  enum { MOST = 8192 };
  char *region = malloc(MOST);
  struct dk_arena arena;
  size_t size = 64;
  bool encoded = false;

  for (; size <= MOST && !encoded; size += 32) {
    dk_arena_init_fixed(&arena, region, size);
    encoded = commit_encode(&arena, &whole, dk_str_of("me")) != NULL;
  }
  ok(encoded && size > 512, "with too little memory there is no result, and no crash");
  free(region);
}

/* ---- code ------------------------------------------------------------------------------------ */

static atomic_int n_runs;

static dk_result
step(dk_task *task, dk_str input)
{
  atomic_fetch_add(&n_runs, 1);
  return dk_done(task, input);
}

static dk_result
steps(dk_orch *o, dk_str input)
{
  for (int i = 0; i < 3; i++)
    input = dk_await(o, dk_activity(o, "step", input));
  return dk_completed(o, input);
}

static dk_result
all_at_once(dk_orch *o, dk_str input)
{
  int n = atoi(input.ptr);
  dk_future **futures = dk_orch_alloc(o, (size_t)n * sizeof(*futures));

  for (int i = 0; i < n; i++)
    futures[i] = dk_activity(o, "step", input);
  dk_all_of(o, futures, (size_t)n);
  return dk_completed(o, dk_str_of("all"));
}

static dk_result
has_child(dk_orch *o, dk_str input)
{
  dk_str error = {NULL, 0};
  int32_t how = dk_outcome(o, dk_child(o, "all at once", input, NULL), &error);

  return dk_completed(o, dk_str_of(how == DK_FAULTED ? "it failed" : "it did not fail"));
}

static struct rig
begin(void)
{
  struct rig rig = rig_begin();

  atomic_store(&n_runs, 0);
  rig_activity(&rig, "step", step);
  rig_orchestration(&rig, "steps", steps);
  rig_orchestration(&rig, "all at once", all_at_once);
  rig_orchestration(&rig, "has child", has_child);
  return rig;
}

/* ---- tries ----------------------------------------------------------------------------------- */

static void
test_tried_again(void)
{
  struct rig rig = begin();

  faulty_plan(rig.faulty, FAULTY_ACK_TURN, 1, 5, FAULT_REFUSE, DK_BUSY);
  rig_start(&rig);
  rig_run(&rig, "i", "steps", "x");
  is(rig_result(&rig, "i"), "completed: x", "a commit that is refused for now is tried again");
  cmp_ok(rig_counters(&rig).acks_retried, "==", 5, "as often as it takes");
  cmp_ok(listener_level(rig.listener, DK_LEVEL_WARNING), "==", 1, "one warning is logged");
  ok(listener_until(rig.listener, DK_LOG_STORE_BACK, 1), "and the recovery is logged");
  cmp_ok(rig_counters(&rig).turns_dropped, "==", 0, "no turn is dropped");
  cmp_ok(atomic_load(&n_runs), "==", 3, "and no activity ran twice");
  rig_end(&rig);
}

static void
test_unknown_outcome(void)
{
  struct rig rig = begin();

  faulty_plan(rig.faulty, FAULTY_ACK_TURN, 0, 100, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  rig_start(&rig);
  rig_run(&rig, "i", "steps", "x");
  ok(UNTIL(rig_counters(&rig).acks_retried >= 3), "commits whose answers are lost are repeated");
  faulty_heal(rig.faulty);
  is(rig_result(&rig, "i"), "completed: x", "until it is clear");
  cmp_ok(atomic_load(&n_runs), "==", 3, "no activity ran twice");
  cmp_ok(rig_counters(&rig).orchestrations_failed, "==", 0, "and nothing failed");
  rig_end(&rig);
}

static void
test_too_large(void)
{
  struct rig rig = begin();
  struct dk_instance_info info = {.struct_size = sizeof(info)};

  /* The parent's first commit succeeds, its child's does not. */
  faulty_plan(rig.faulty, FAULTY_ACK_TURN, 1, 1, FAULT_REFUSE, DK_TOO_LARGE);
  rig.options.flags = DK_RUNTIME_FAIL_DELAYED;
  rig.options.max_attempts = 1;
  rig_start(&rig);
  rig_run(&rig, "child", "has child", "3");
  is(rig_result(&rig, "child"), "completed: it failed",
     "a turn that is too large for the store fails, and its parent gets the failure");
  cmp_ok(atomic_load(&n_runs), "==", 0, "nothing of it was done");
  ok(dk_client_status(rig.client, dk_str_of("child::1.2"), &info) == DK_OK &&
       info.status == DK_FAILED,
     "its own status is failed");
  ok(rig_says(info.output.ptr, "the store does not accept its turn"), "and why");
  rig_end(&rig);
}

int
main(void)
{
  test_encoded();
  test_no_memory();
  test_tried_again();
  test_unknown_outcome();
  test_too_large();
  return done_testing();
}
