/* SPDX-License-Identifier: Apache-2.0 */
/* The workloads of the bench on a store, with as many threads as there are callers.
 *
 *   turn         fetch a turn, commit it: 3 events, 1 activity, 1 message to itself
 *   turn-timers  the same beside B instances whose only message is due in a day
 *   work         fetch an activity, ack it with a completion for one of 16 instances
 *   fan-in       the same, all completions for one instance
 *   work-leased  the same beside B activities that are leased
 *   cancel       one commit that cancels A activities beside B of other instances
 *
 * Payloads have 150 bytes, and an operation is one call that succeeded.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/kit/disk.h"
#include "runner/bench/bench.h"
#include "runner/system/clock.h"

enum {
  PAYLOAD = 150,
  INSTANCES = 64,     /* that always have a message */
  DONE_INSTANCES = 16, /* that get completions */
  ROOM = 4000,        /* work items that are ready when a slice begins */
  AT_ONCE = 10000,    /* rows in one commit of the preparation */
  LEASE_MS = 600000,
  A_DAY_MS = 86400000
};

typedef bool step_fn(struct load *load, struct dk_caller *caller);

struct workload {
  const char *name;
  bool (*prepare)(struct load *load);
  bool (*top_up)(struct load *load); /* before each slice; NULL: nothing */
  step_fn *step;
  bool once;
};

static char payload_bytes[PAYLOAD];

static struct dk_bytes
payload(void)
{
  return (struct dk_bytes){payload_bytes, sizeof(payload_bytes)};
}

static struct dk_bytes
text(const char *string)
{
  return (struct dk_bytes){string, strlen(string)};
}

/* The first failure is reported. */
static bool
note_load_failure(struct load *load, struct dk_caller *caller, const char *doing)
{
  const struct dk_failure *failure = dk_caller_failure(caller);
  char name[32];

  if (!atomic_exchange(&load->failed, true))
    snprintf(load->trouble, sizeof(load->trouble), "%s: %s: %s", doing,
             dk_status_name(failure->status, name, sizeof(name)), failure->text);
  return false;
}

static bool
note_words(struct load *load, const char *words)
{
  if (!atomic_exchange(&load->failed, true))
    snprintf(load->trouble, sizeof(load->trouble), "%s", words);
  return false;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Fetches the next turn of any instance; NULL and true: there is none now. */
static bool
take_turn(struct load *load, struct dk_caller *caller, struct dk_turn **ret_turn)
{
  struct dk_fetch_turn fetch = {
    .struct_size = sizeof(fetch), .lock_ms = LEASE_MS, .owner = text("bench")};
  dk_status status = dk_store_fetch_orchestration_item(load->store, caller, &fetch, ret_turn);

  if (status == DK_OK)
    return true;
  *ret_turn = NULL;
  return status == DK_NOTHING || dk_status_class(status) == 1
         || note_load_failure(load, caller, "fetch_orchestration_item");
}

static bool
commit_turn(struct load *load, struct dk_caller *caller, const struct dk_turn *turn,
            struct dk_turn_result *result)
{
  struct dk_commit_outcome outcome;

  result->struct_size = sizeof(*result);
  result->owner = text("bench");
  if (result->execution_id == 0)
    result->execution_id = 1;
  if (!turn->head.known) {
    result->name = text("bench");
    result->version = text("1.0.0");
  }
  return dk_store_ack_orchestration_item(load->store, caller, turn->head.lock_token, result,
                                         &outcome)
           == DK_OK
         || note_load_failure(load, caller, "ack_orchestration_item");
}

static bool
step_turn(struct load *load, struct dk_caller *caller)
{
  struct dk_turn *turn;

  dk_caller_reset(caller);
  if (!take_turn(load, caller, &turn) || !turn)
    return !load->failed;
  load->operations++;
  uint64_t last = turn->head.last_event_id;
  struct dk_event events[] = {{last + 1, payload()}, {last + 2, payload()}, {last + 3, payload()}};
  struct dk_item work = {
    .struct_size = sizeof(work), .activity_id = last + 1, .payload = payload()};
  struct dk_item message = {
    .struct_size = sizeof(message), .instance = turn->head.instance, .payload = payload()};
  const struct dk_item *works[] = {&work};
  const struct dk_item *messages[] = {&message};
  work.execution_id = 1;
  struct dk_turn_result result = {.events = events, .n_events = 3, .worker_items = works,
                                  .n_worker_items = 1, .orchestrator_items = messages,
                                  .n_orchestrator_items = 1};
  if (!commit_turn(load, caller, turn, &result))
    return false;
  load->operations++;
  return true;
}

static bool
send_start(struct load *load, const char *instance)
{
  struct dk_item item = {
    .struct_size = sizeof(item), .instance = text(instance), .payload = payload()};

  return dk_store_enqueue_for_orchestrator(load->store, load->callers[0], &item) == DK_OK
         || note_load_failure(load, load->callers[0], "enqueue_for_orchestrator");
}

/* Sends the instance a message, and takes its turn: it is the only one that is ready. */
static bool
turn_of(struct load *load, const char *instance, struct dk_turn **ret_turn)
{
  dk_caller_reset(load->callers[0]);
  if (!send_start(load, instance) || !take_turn(load, load->callers[0], ret_turn))
    return false;
  return *ret_turn || note_words(load, "a message was enqueued, but there is no turn");
}

static bool
prepare_turns(struct load *load)
{
  char instance[32];

  for (int i = 0; i < INSTANCES; i++) {
    snprintf(instance, sizeof(instance), "bench-%d", i);
    if (!send_start(load, instance))
      return false;
  }
  return true;
}

/* ---- many rows in one commit ----------------------------------------------------------------- */

struct rows {
  struct dk_item *items;
  const struct dk_item **pointers;
  char (*names)[32];
};

static void
rows_done(struct rows *rows)
{
  free(rows->items);
  free(rows->pointers);
  free(rows->names);
}

static bool
rows_make(struct load *load, struct rows *rows, size_t n)
{
  rows->items = calloc(n, sizeof(*rows->items));
  rows->pointers = calloc(n, sizeof(*rows->pointers));
  rows->names = calloc(n, sizeof(*rows->names));
  if (!rows->items || !rows->pointers || !rows->names)
    return note_words(load, "out of memory");
  for (size_t i = 0; i < n; i++) {
    rows->items[i] = (struct dk_item){.struct_size = sizeof(struct dk_item), .payload = payload()};
    rows->pointers[i] = &rows->items[i];
  }
  return true;
}

/* `n` new activities of this instance, scheduled by one turn. */
static bool
schedule(struct load *load, const char *instance, size_t n)
{
  struct rows rows = {0};
  struct dk_turn *turn = NULL;
  bool well = rows_make(load, &rows, n) && turn_of(load, instance, &turn);

  for (size_t i = 0; well && i < n; i++) {
    rows.items[i].execution_id = 1;
    rows.items[i].activity_id = ++load->sequence;
  }
  well = well
         && commit_turn(load, load->callers[0], turn,
                        &(struct dk_turn_result){.worker_items = rows.pointers,
                                                 .n_worker_items = n});
  rows_done(&rows);
  return well;
}

/* As many as one commit allows, up to a bound. */
static int64_t
at_once(const struct load *load)
{
  uint64_t most = dk_library_provider(dk_store_library(load->store))->limits->max_commit_items;

  return most < AT_ONCE ? (int64_t)most : AT_ONCE;
}

static bool
schedule_all(struct load *load, const char *instance, int64_t n)
{
  int64_t most = at_once(load);

  for (; n > 0; n -= most)
    if (!schedule(load, instance, (size_t)(n < most ? n : most)))
      return false;
  return true;
}

/* Timers of `n` instances, set by one turn of another. */
static bool
set_timers(struct load *load, size_t n)
{
  struct rows rows = {0};
  struct dk_turn *turn = NULL;
  bool well = rows_make(load, &rows, n) && turn_of(load, "clock", &turn);

  for (size_t i = 0; well && i < n; i++) {
    snprintf(rows.names[i], sizeof(rows.names[i]), "timer-%" PRIu64, ++load->sequence);
    rows.items[i].instance = text(rows.names[i]);
    rows.items[i].delay_ms = A_DAY_MS;
  }
  well = well
         && commit_turn(load, load->callers[0], turn,
                        &(struct dk_turn_result){.orchestrator_items = rows.pointers,
                                                 .n_orchestrator_items = n});
  rows_done(&rows);
  return well;
}

static bool
prepare_turns_among_timers(struct load *load)
{
  int64_t most = at_once(load);

  for (int64_t n = load->b; n > 0; n -= most)
    if (!set_timers(load, (size_t)(n < most ? n : most)))
      return false;
  return prepare_turns(load);
}

/* ---- work ------------------------------------------------------------------------------------ */

static dk_status
take_work(struct load *load, struct dk_caller *caller, uint32_t most, struct dk_works **ret_works)
{
  struct dk_fetch_work fetch = {.struct_size = sizeof(fetch),
                                .max_items = most,
                                .lock_ms = LEASE_MS,
                                .owner = text("bench"),
                                .tag_rule = DK_TAG_ANY};

  return dk_store_fetch_work_item(load->store, caller, &fetch, ret_works);
}

/* Fetches an activity, and acks it with a completion for this instance. */
static bool
do_work(struct load *load, struct dk_caller *caller, const char *completes)
{
  struct dk_works *works;

  dk_caller_reset(caller);
  dk_status status = take_work(load, caller, 1, &works);
  if (status != DK_OK)
    return status == DK_NOTHING || dk_status_class(status) == 1
           || note_load_failure(load, caller, "fetch_work_item");
  load->operations++;
  load->left--;
  struct dk_item done = {
    .struct_size = sizeof(done), .instance = text(completes), .payload = payload()};
  struct dk_work_result result = {.struct_size = sizeof(result), .completion = &done};
  if (dk_store_ack_work_item(load->store, caller, works->items[0].work.lock_token, &result)
      != DK_OK)
    return note_load_failure(load, caller, "ack_work_item");
  load->operations++;
  return true;
}

static bool
step_work(struct load *load, struct dk_caller *caller)
{
  char instance[32];

  snprintf(instance, sizeof(instance), "done-%" PRIu64, ++load->sequence % DONE_INSTANCES);
  return do_work(load, caller, instance);
}

static bool
step_fan_in(struct load *load, struct dk_caller *caller)
{
  return do_work(load, caller, "bench");
}

/* Removes the completions of the slice before. */
static bool
consume_messages(struct load *load)
{
  struct dk_turn *turn;

  do {
    dk_caller_reset(load->callers[0]);
    if (!take_turn(load, load->callers[0], &turn))
      return false;
    if (turn && !commit_turn(load, load->callers[0], turn, &(struct dk_turn_result){.flags = 0}))
      return false;
  } while (turn);
  return true;
}

static bool
top_up_work(struct load *load)
{
  int64_t missing = ROOM - load->left;

  if (missing <= 0)
    return true;
  if (!consume_messages(load))
    return false;
  load->left = ROOM;
  return schedule_all(load, "bench", missing);
}

/* Fetches `n` items, which stay locked. */
static bool
hold_work(struct load *load, int64_t n)
{
  struct dk_works *works;

  while (n > 0) {
    uint32_t most = n < 1000 ? (uint32_t)n : 1000;
    dk_caller_reset(load->callers[0]);
    if (take_work(load, load->callers[0], most, &works) != DK_OK)
      return note_load_failure(load, load->callers[0], "fetch_work_item");
    n -= (int64_t)works->n_items;
  }
  return true;
}

static bool
prepare_leased_work(struct load *load)
{
  return schedule_all(load, "held", load->b) && hold_work(load, load->b);
}

static bool
prepare_nothing(struct load *load)
{
  (void)load;
  return true;
}

/* ---- cancellations --------------------------------------------------------------------------- */

static bool
prepare_cancels(struct load *load)
{
  return schedule_all(load, "others", load->b);
}

/* The rows, the turn and the list are made before the clock starts. */
static bool
run_cancel(struct load *load, int64_t *ret_ns)
{
  uint64_t first = load->sequence + 1;
  struct dk_activity *list = calloc((size_t)load->a, sizeof(*list));
  struct dk_turn *turn = NULL;

  bool well = list ? schedule_all(load, "bench", load->a) && turn_of(load, "bench", &turn)
                   : note_words(load, "out of memory");
  for (int64_t i = 0; well && i < load->a; i++)
    list[i] = (struct dk_activity){1, first + (uint64_t)i};
  struct dk_event event = {well ? turn->head.last_event_id + 1 : 1, payload()};
  struct dk_turn_result result = {.events = &event, .n_events = 1, .cancelled_activities = list,
                                  .n_cancelled_activities = (size_t)load->a};
  uint64_t syncs = kit_disk_syncs();
  int64_t start = clock_ns();
  well = well && commit_turn(load, load->callers[0], turn, &result);
  *ret_ns = clock_ns() - start;
  load->syncs = kit_disk_syncs() - syncs;
  load->operations = 1;
  free(list);
  return well;
}

/* ---- the table, and a slice ------------------------------------------------------------------ */

static const struct workload workloads[] = {
  {"turn", prepare_turns, NULL, step_turn, false},
  {"turn-timers", prepare_turns_among_timers, NULL, step_turn, false},
  {"work", prepare_nothing, top_up_work, step_work, false},
  {"fan-in", prepare_nothing, top_up_work, step_fan_in, false},
  {"work-leased", prepare_leased_work, top_up_work, step_work, false},
  {"cancel", prepare_cancels, NULL, NULL, true},
};

bool
bench_load_begin(struct load *load, const char *workload, int64_t a, int64_t b)
{
  memset(payload_bytes, 'x', sizeof(payload_bytes));
  load->a = a;
  load->b = b;
  for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++)
    if (strcmp(workloads[i].name, workload) == 0)
      load->workload = &workloads[i];
  if (!load->workload || a < 1 || b < 0 || (!load->workload->once && a > BENCH_CALLERS))
    return note_words(load, "no such workload, or not with these numbers");
  return load->workload->prepare(load);
}

struct thread {
  struct load *load;
  struct dk_caller *caller;
  pthread_t thread;
};

/* Runs until the slice has ended, or there might not be work for all callers; at least once. */
static void *
call_until_it_ends(void *argument)
{
  struct thread *thread = argument;
  struct load *load = thread->load;
  bool well;

  do
    well = load->workload->step(load, thread->caller);
  while (well && !load->failed && clock_ns() < load->ends_ns
         && (!load->workload->top_up || load->left > load->a));
  return NULL;
}

static bool
run_threads(struct load *load, int64_t ms, int64_t *ret_ns)
{
  struct thread threads[BENCH_CALLERS];
  int64_t started = 0;
  uint64_t syncs = kit_disk_syncs();
  int64_t start = clock_ns();

  load->ends_ns = start + ms * 1000000;
  for (int64_t i = 0; i < load->a; i++) {
    threads[i] = (struct thread){.load = load, .caller = load->callers[i]};
    if (pthread_create(&threads[i].thread, NULL, call_until_it_ends, &threads[i]) != 0)
      break;
    started++;
  }
  for (int64_t i = 0; i < started; i++)
    pthread_join(threads[i].thread, NULL);
  *ret_ns = clock_ns() - start;
  load->syncs = kit_disk_syncs() - syncs;
  return started == load->a ? !load->failed : note_words(load, "a thread cannot be started");
}

bool
bench_load_run(struct load *load, int64_t ms, int64_t *ret_ns)
{
  load->operations = 0;
  if (load->workload->once)
    return run_cancel(load, ret_ns);
  if (load->workload->top_up && !load->workload->top_up(load))
    return false;
  return run_threads(load, ms, ret_ns);
}
