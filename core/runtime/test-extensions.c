/* SPDX-License-Identifier: Apache-2.0 */
/* Key-values, the custom status and sessions on a store that has them, turn after turn, and on one
 * without them. */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

/* ---- what the orchestrations do -------------------------------------------------------------- */

/* What follows the word, or absent. */
static dk_str
after(const char *order, const char *word)
{
  size_t length = strlen(word);

  return dk_str_of(strncmp(order, word, length) == 0 ? order + length : NULL);
}

/* "set key=value" */
static void
set_key(dk_orch *o, dk_str rest)
{
  const char *equals = strchr(rest.ptr, '=');

  dk_kv_set(o, dk_format(o, "%.*s", (int)(equals - rest.ptr), rest.ptr).ptr,
            dk_str_of(equals + 1));
}

static dk_str
read_key(dk_orch *o, dk_str said, const char *key)
{
  dk_str value = dk_str_of("none");

  dk_kv_get(o, key, &value);
  return dk_format(o, "%.*s%s=%.*s ", (int)said.len, said.ptr, key, (int)value.len, value.ptr);
}

/* Gives what is said so far back. */
static dk_str
obey(dk_orch *o, dk_str said, const char *order)
{
  if (after(order, "set ").ptr)
    set_key(o, after(order, "set "));
  else if (after(order, "get ").ptr)
    return read_key(o, said, after(order, "get ").ptr);
  else if (after(order, "clear ").ptr)
    dk_kv_clear(o, after(order, "clear ").ptr);
  else if (strcmp(order, "clear-all") == 0)
    dk_kv_clear_all(o);
  else if (after(order, "status ").ptr)
    dk_set_status(o, after(order, "status "));
  else if (strcmp(order, "no-status") == 0)
    dk_set_status(o, dk_str_of(NULL));
  else if (strcmp(order, "again") == 0)
    dk_continue_as_new(o, said, NULL);
  return said;
}

/* One order after the other, until "end"; its output is what its reads have found. */
static dk_result
obeys(dk_orch *o, dk_str input)
{
  dk_str said = input, order;

  for (;;) {
    order = dk_await(o, dk_dequeue(o, "do"));
    if (strcmp(order.ptr, "end") == 0)
      return dk_completed(o, said);
    said = obey(o, said, order.ptr);
  }
}

enum { MOST_RUNS = 16 };

static sem_t let_go;
static atomic_int n_bound, n_free;
static char bound_ran_on[MOST_RUNS][128], free_ran_on[MOST_RUNS][128];

static void
note_worker(dk_task *task, char place[128])
{
  dk_str worker = dk_task_info(task)->worker;

  snprintf(place, 128, "%.*s", (int)worker.len, worker.ptr);
}

/* Ends when it is let go. */
static dk_result
runs_bound(dk_task *task, dk_str input)
{
  char worker[128];

  note_worker(task, worker);
  memcpy(bound_ran_on[atomic_fetch_add(&n_bound, 1) % MOST_RUNS], worker, sizeof(worker));
  while (sem_wait(&let_go) != 0)
    continue;
  return dk_done(task, input);
}

static dk_result
runs_free(dk_task *task, dk_str input)
{
  char worker[128];

  note_worker(task, worker);
  memcpy(free_ran_on[atomic_fetch_add(&n_free, 1) % MOST_RUNS], worker, sizeof(worker));
  return dk_done(task, input);
}

enum { N_BOUND = 4 };

/* As many activities of one session at once as the input requests. */
static dk_result
binds(dk_orch *o, dk_str input)
{
  const struct dk_activity_options options = {.struct_size = sizeof(options),
                                              .session = dk_str_of("s-1")};
  dk_future *all[N_BOUND];

  for (size_t i = 0; i < input.len && i < N_BOUND; i++)
    all[i] = dk_activity_with(o, "runs_bound", input, &options);
  for (size_t i = 0; i < input.len && i < N_BOUND; i++)
    dk_await(o, all[i]);
  return dk_completed(o, input);
}

static dk_result
frees(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, "runs_free", input)));
}

/* ---- helpers --------------------------------------------------------------------------------- */

static struct rig
prepared(struct rig rig)
{
  rig_orchestration(&rig, "obeys", obeys);
  rig_orchestration(&rig, "binds", binds);
  rig_orchestration(&rig, "frees", frees);
  rig_activity(&rig, "runs_bound", runs_bound);
  rig_activity(&rig, "runs_free", runs_free);
  /* One turn at a time: the next fetch comes when what was committed is in memory. */
  rig.options.orchestration_slots = 1;
  rig.options.activity_slots = 1;
  atomic_store(&n_bound, 0);
  atomic_store(&n_free, 0);
  sem_init(&let_go, 0, 0);
  return rig;
}

static void
finish(struct rig *rig)
{
  rig_end(rig);
  sem_destroy(&let_go);
}

static uint64_t
execution_of(struct rig *rig, const char *instance)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};

  return dk_client_status(rig->client, dk_str_of(instance), &info) == DK_OK ? info.execution_id
                                                                            : 0;
}

static void
send(struct rig *rig, const char *instance, const char *order)
{
  if (dk_client_enqueue(rig->client, dk_str_of(instance), "do", dk_str_of(order)) != DK_OK)
    BAIL_OUT("the order is not sent: %s", dk_client_error(rig->client));
}

/* Sends the order, which is done when this returns. */
static void
give(struct rig *rig, const char *instance, const char *order)
{
  uint64_t execution = execution_of(rig, instance);
  uint32_t obeyed = rig_count_events(rig, instance, EVENT_QUEUED);

  send(rig, instance, order);
  bool carried_out = strcmp(order, "again") == 0
                       ? UNTIL(execution_of(rig, instance) == execution + 1)
                       : UNTIL(rig_count_events(rig, instance, EVENT_QUEUED) == obeyed + 1);
  if (!carried_out)
    fail("\"%s\" is carried out", order);
}

/* Orders with a comma between them. */
static void
give_all(struct rig *rig, const char *instance, const char *orders)
{
  char order[64];

  for (const char *at = orders; *at; at += strspn(at, ", ")) {
    size_t length = strcspn(at, ",");
    snprintf(order, sizeof(order), "%.*s", (int)length, at);
    give(rig, instance, order);
    at += length;
  }
}

static void
run_obeying(struct rig *rig, const char *instance, const char *orders)
{
  rig_run(rig, instance, "obeys", "");
  ok(UNTIL(execution_of(rig, instance) == 1), "%s has begun", instance);
  give_all(rig, instance, orders);
}

/* Another owner, with nothing in memory. */
static void
start_again(struct rig *rig)
{
  struct dk_leftover leftover = rig_stop(rig, RIG_WAIT_MS);

  cmp_ok(leftover.turns + leftover.activities, "==", 0, "the runtime stops with nothing left");
  rig_start(rig);
}

static const char *
said_by(struct rig *rig, const char *instance)
{
  give(rig, instance, "end");
  return rig_result(rig, instance);
}

/* ---- key-values ------------------------------------------------------------------------------ */

static void
test_turns(void)
{
  struct rig rig = prepared(rig_begin_full());

  rig_start(&rig);
  run_obeying(&rig, "i", "get a, set a=1, get a, set b=2, clear a, get a, get b");
  run_obeying(&rig, "j", "get b, set b=9");
  give_all(&rig, "i", "get b, clear-all, get b, set c=, get c");
  is(said_by(&rig, "i"), "completed: a=none a=1 a=none b=2 b=2 b=none c= ",
     "keys are set, read and cleared over many turns");
  is(said_by(&rig, "j"), "completed: b=none ", "and another instance has its own");
  finish(&rig);
}

static void
test_continued(void)
{
  struct rig rig = prepared(rig_begin_full());

  rig_start(&rig);
  run_obeying(&rig, "i", "set a=1, set b=2, clear b, again, get a, get b, set a=3, again, get a");
  give_all(&rig, "i", "clear-all, set c=4, again, get a, get c");
  is(said_by(&rig, "i"), "completed: a=1 b=none a=3 a=none c=4 ",
     "the next execution finds the keys as they were left");
  cmp_ok(rig_counters(&rig).cold_turns, "==", 0, "and they were never fetched");
  finish(&rig);
}

/* The key is read first in its execution, so its value comes from the store. */
static void
test_restarted(void)
{
  struct rig rig = prepared(rig_begin_full());

  rig_start(&rig);
  run_obeying(&rig, "i", "set a=1, set b=2, set c=3, clear b, again");
  start_again(&rig);
  give_all(&rig, "i", "get a, get b, get c, set a=5");
  start_again(&rig);
  give_all(&rig, "i", "get a, again");
  start_again(&rig);
  give_all(&rig, "i", "get a, clear-all, again");
  start_again(&rig);
  give_all(&rig, "i", "get a, get c");
  is(said_by(&rig, "i"), "completed: a=1 b=none c=3 a=5 a=5 a=none c=none ",
     "another owner finds the keys in the store");
  cmp_ok(rig_counters(&rig).cold_turns, "==", 1, "which it fetched, once");
  finish(&rig);
}

/* The store returns no keys, because our commit was the last; and no memory has them any more. */
static void
test_forgotten(void)
{
  struct rig rig = prepared(rig_begin_full());

  rig.options.cache_bytes = 1;
  rig_start(&rig);
  run_obeying(&rig, "i", "set a=1, set b=2, clear b, again, get a, get b, set a=3, again, get a");
  is(said_by(&rig, "i"), "completed: a=1 b=none a=3 ", "they are fetched again");
  cmp_ok(rig_counters(&rig).cold_turns, ">", 0, "with their history");
  cmp_ok(rig_counters(&rig).warm_turns, "==", 0, "for none was in memory");
  cmp_ok(faulty_calls(rig.faulty, FAULTY_ABANDON_TURN), ">", 0,
         "after a turn that came without was given back");
  cmp_ok(listener_level(rig.listener, DK_LEVEL_WARNING), "==", 0, "which is worth no warning");
  finish(&rig);
}

/* From memory or from the store, by chance: there is room for a few only, and a fetch may be faster
 * than the thread that puts the history into memory. */
static void
test_many(void)
{
  static const char *const orders[] = {"set a=1", "get b", "set b=2", "again",   "get a",
                                       "clear a", "again", "get a",   "set b=3", "again",
                                       "get b",   "end"};
  enum { INSTANCES = 40, ORDERS = sizeof(orders) / sizeof(orders[0]) };
  struct rig rig = prepared(rig_begin_full());
  char name[16];
  int as_said = 0;

  rig.options.orchestration_slots = 4;
  rig.options.cache_bytes = 64 << 10;
  rig_start(&rig);
  for (int i = 0; i < INSTANCES * ORDERS; i++) {
    snprintf(name, sizeof(name), "i-%d", i % INSTANCES);
    if (i < INSTANCES)
      rig_run(&rig, name, "obeys", "");
    send(&rig, name, orders[i / INSTANCES]);
  }
  for (int i = 0; i < INSTANCES; i++) {
    snprintf(name, sizeof(name), "i-%d", i);
    as_said += strcmp(rig_result(&rig, name), "completed: b=none a=1 a=none b=3 ") == 0;
  }
  cmp_ok(as_said, "==", INSTANCES, "all of many at once read what they should");
  cmp_ok(rig_counters(&rig).cold_turns, ">", 0, "not all of it from memory");
  finish(&rig);
}

/* ---- custom status --------------------------------------------------------------------------- */

/* A commit is visible in the store before it returns here. */
static void
expect_status(struct rig *rig, const char *expected, const char *what)
{
  char words[64] = "";

  ok(UNTIL((faulty_custom_status(rig->faulty, words, sizeof(words)),
            strcmp(words, expected) == 0)), "%s: \"%s\"", what, words);
}

static void
test_status(void)
{
  struct rig rig = prepared(rig_begin_full());

  rig_start(&rig);
  run_obeying(&rig, "i", "set a=1");
  expect_status(&rig, "", "no commit has touched the custom status");
  give(&rig, "i", "status halfway");
  expect_status(&rig, "set to halfway", "it is set by the turn's commit");
  give_all(&rig, "i", "set a=2, again, set a=3");
  expect_status(&rig, "set to halfway", "and kept by what comes after");
  give(&rig, "i", "no-status");
  expect_status(&rig, "cleared", "and cleared");
  is(said_by(&rig, "i"), "completed: ", "the store has taken all of it");
  finish(&rig);
}

/* ---- sessions -------------------------------------------------------------------------------- */

enum { N_FREE = 5 };

static void
run_all_free(struct rig *rig)
{
  char name[16];

  for (int i = 0; i < N_FREE; i++) {
    snprintf(name, sizeof(name), "free-%d", i);
    rig_run(rig, name, "frees", "x");
  }
}

static int
count_runs(char ran_on[MOST_RUNS][128], int n_runs, const char *worker)
{
  int count = 0;

  for (int i = 0; i < n_runs; i++)
    count += strcmp(ran_on[i], worker) == 0;
  return count;
}

static void
let_all_go(void)
{
  for (int i = 0; i < N_BOUND; i++)
    sem_post(&let_go);
}

/* The first worker holds the session with its only slot; the second has nothing to do. */
static void
test_one_worker(void)
{
  struct rig rig = prepared(rig_begin_full());

  rig.options.session_rule = DK_SESSION_ANY;
  rig_start(&rig);
  rig_run(&rig, "bound", "binds", "xxxx");
  ok(UNTIL(atomic_load(&n_bound) == 1), "a worker has the first of four of a session");
  struct dk_runtime *second = rig_start_another(&rig);
  run_all_free(&rig);
  ok(UNTIL(atomic_load(&n_free) == N_FREE || atomic_load(&n_bound) > 1) &&
       atomic_load(&n_free) == N_FREE,
     "another runs all that is of no session");
  cmp_ok(atomic_load(&n_bound), "==", 1, "and none of that session");
  let_all_go();
  is(rig_result(&rig, "bound"), "completed: xxxx", "the four complete");
  cmp_ok(count_runs(bound_ran_on, N_BOUND, bound_ran_on[0]), "==", N_BOUND, "on one worker");
  cmp_ok(count_runs(free_ran_on, N_FREE, bound_ran_on[0]), "==", 0,
         "which had no slot for the others");
  dk_runtime_stop(second, RIG_WAIT_MS, NULL);
  finish(&rig);
}

/* The hold of a stopped worker is not renewed. */
static void
test_next_worker(void)
{
  struct rig rig = prepared(rig_begin_full());

  rig.options.session_rule = DK_SESSION_ANY;
  rig.options.session_lock_ms = 200;
  let_all_go();
  rig_start(&rig);
  rig_run(&rig, "first", "binds", "x");
  is(rig_result(&rig, "first"), "completed: x", "a worker holds a session");
  start_again(&rig);
  rig_run(&rig, "next", "binds", "x");
  is(rig_result(&rig, "next"), "completed: x", "when its hold has ended, the next worker gets it");
  isnt(bound_ran_on[1], bound_ran_on[0], "which is another worker");
  finish(&rig);
}

/* A worker with this rule gets items without a session, and none of a session that no worker
 * holds. */
static void
gets_none(int32_t rule, const char *name)
{
  struct rig rig = prepared(rig_begin_full());

  rig.options.session_rule = rule;
  let_all_go();
  rig_start(&rig);
  rig_run(&rig, "bound", "binds", "x");
  ok(UNTIL(rig_count_events(&rig, "bound", EVENT_ACTIVITY) == 1), "one of a session waits");
  run_all_free(&rig);
  ok(UNTIL(atomic_load(&n_free) == N_FREE), "a worker with %s runs the others", name);
  cmp_ok(atomic_load(&n_bound), "==", 0, "and not that one");
  rig.options.session_rule = DK_SESSION_ANY;
  start_again(&rig);
  is(rig_result(&rig, "bound"), "completed: x", "one with DK_SESSION_ANY does");
  finish(&rig);
}

/* ---- a store that has none of it ------------------------------------------------------------- */

static void
fails(struct rig *rig, const char *order, const char *why)
{
  static int n;
  char name[16];

  snprintf(name, sizeof(name), "refused-%d", n++);
  rig_run(rig, name, "obeys", "");
  send(rig, name, order);
  const char *result = rig_result(rig, name);
  ok(strncmp(result, "failed: ", 8) == 0 && rig_says(result, why), "\"%s\" fails: %s", order, why);
}

/* ---- what is needed is said first ------------------------------------------------------------ */

static void
begins(struct rig *rig, uint32_t needs, const char *extension)
{
  const struct dk_orchestration_traits traits = {.struct_size = sizeof(traits), .needs = needs};
  struct dk_registry *registry = dk_registry_new();
  struct dk_runtime_options options = rig->options;
  struct dk_runtime *runtime = NULL;
  struct dk_refusal refusal = {0};

  options.registry = registry;
  ok(dk_register_orchestration(registry, "other", NULL, obeys) == DK_OK &&
       dk_register_orchestration_with(registry, "obeys", "2.0.0", obeys, &traits) == DK_OK,
     "one that needs something is registered");
  dk_status status = dk_runtime_start(rig->store, &options, &runtime, &refusal);
  if (!extension) {
    ok(status == DK_OK, "a runtime starts on a store that has it");
    dk_runtime_stop(runtime, 0, NULL);
  } else {
    ok(status == DK_UNSUPPORTED, "a runtime does not start on a store without %s", extension);
    ok(rig_says(refusal.what, "the orchestration obeys, version 2.0.0, needs what the store does "
                              "not offer") &&
         rig_says(refusal.expected, extension) && rig_says(refusal.found, "model") &&
         rig_says(refusal.next, "open a store that has it"),
       "and says which orchestration, and what to do");
  }
  dk_registry_free(registry);
}

static void
test_needs(void)
{
  const struct dk_orchestration_traits unknown = {.struct_size = sizeof(unknown), .needs = 8};
  const struct dk_orchestration_traits empty = {.struct_size = 0};
  struct rig plain = prepared(rig_begin()), full = prepared(rig_begin_full());

  begins(&plain, DK_NEEDS_KV, "durakit.kv/1");
  begins(&plain, DK_NEEDS_STATUS, "durakit.status/1");
  begins(&plain, DK_NEEDS_SESSIONS, "durakit.sessions/1");
  begins(&plain, 0, NULL);
  begins(&full, DK_NEEDS_KV | DK_NEEDS_STATUS | DK_NEEDS_SESSIONS, NULL);
  ok(dk_register_orchestration_with(plain.registry, "x", NULL, obeys, &unknown) == DK_INVALID,
     "an unknown need is refused");
  ok(dk_register_orchestration_with(plain.registry, "x", NULL, obeys, &empty) == DK_INVALID,
     "so are traits without their size");
  finish(&plain);
  finish(&full);
}

static void
test_refused(void)
{
  struct rig rig = prepared(rig_begin());
  struct dk_runtime *runtime = NULL;
  struct dk_refusal refusal = {0};

  rig.options.flags = DK_RUNTIME_FAIL_FAST; /* else it is delayed */
  rig_start(&rig);
  fails(&rig, "set a=1", "dk_kv_set: this store has no key-values (durakit.kv/1)");
  fails(&rig, "get a", "dk_kv_get: this store has no key-values (durakit.kv/1)");
  fails(&rig, "clear a", "dk_kv_clear: this store has no key-values (durakit.kv/1)");
  fails(&rig, "clear-all", "dk_kv_clear_all: this store has no key-values (durakit.kv/1)");
  fails(&rig, "status x", "dk_set_status: this store has no custom status (durakit.status/1)");
  rig_run(&rig, "bound", "binds", "x");
  ok(rig_says(rig_result(&rig, "bound"), "dk_activity_with: this store has no sessions "
                                         "(durakit.sessions/1); leave the session out"),
     "an activity with a session fails its orchestration");
  rig.options.session_rule = DK_SESSION_HELD;
  ok(dk_runtime_start(rig.store, &rig.options, &runtime, &refusal) == DK_UNSUPPORTED,
     "a runtime that asks for sessions does not start");
  is(refusal.what, "the store has no sessions", "for that reason");
  finish(&rig);
}

int
main(void)
{
  plan(NO_PLAN);
  test_turns();
  test_continued();
  test_restarted();
  test_forgotten();
  test_many();
  test_status();
  test_one_worker();
  test_next_worker();
  gets_none(DK_SESSION_NONE, "DK_SESSION_NONE");
  gets_none(DK_SESSION_HELD, "DK_SESSION_HELD");
  test_needs();
  test_refused();
  return done_testing();
}
