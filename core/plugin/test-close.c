/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: cancelling, closing under running calls, serialising. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/plugin/look.h"
#include "core/plugin/store.h"
#include "core/plugin/testing/puppet.h"

/* ---- another thread that makes one call ------------------------------------------------------ */

struct other {
  struct puppet *puppet;
  struct dk_store *store;
  struct dk_caller *caller;
  int64_t wait_until;
  struct dk_virtual_clock *clock; /* NULL: real time */
  int32_t actor;
  dk_status status;
  int64_t returned_at;
  pthread_t thread;
};

static void *
other_thread(void *argument)
{
  struct other *other = argument;
  struct dk_fetch_turn request = a_fetch_turn();
  struct dk_turn *turn = NULL;

  request.wait_until = other->wait_until;
  other->status = dk_store_fetch_orchestration_item(other->store, other->caller, &request, &turn);
  if (other->clock) {
    other->returned_at = dk_virtual_clock_now(other->clock);
    dk_virtual_clock_finished(other->clock, other->actor);
  }
  return NULL;
}

static void
start(struct other *other, struct puppet *puppet)
{
  other->puppet = puppet;
  other->store = other->store ? other->store : puppet->store;
  other->caller = dk_caller_new(NULL, 0);
  if (other->clock) {
    dk_caller_set_actor(other->caller, other->actor);
    dk_virtual_clock_give(other->clock, other->actor);
  }
}

static void
go(struct other *other)
{
  pthread_create(&other->thread, NULL, other_thread, other);
}

static void
finish(struct other *other)
{
  pthread_join(other->thread, NULL);
  dk_caller_free(other->caller);
}

/* A moment in which other threads run; what is waited for is looked at again after it. */
static void
a_moment(void)
{
  struct dk_wait nothing = {.cancel_fd = -1, .fd = -1};

  dk_look(&nothing, -1, 1);
}

static void
until_inside(struct puppet *puppet, int n)
{
  while (atomic_load(&puppet->acts) < n)
    a_moment();
}

/* ---- cancelling ------------------------------------------------------------------------------ */

static dk_status
wait_for_ever(struct puppet *puppet, struct dk_call *call)
{
  return puppet->host->wait(call, -1, 0, INT64_MAX);
}

/* Polls the descriptor itself, as a provider does that waits for a server. */
static dk_status
poll_for_ever(struct puppet *puppet, struct dk_call *call)
{
  struct dk_wait wait = {.cancel_fd = puppet->host->cancel_fd(call), .fd = -1};

  while (!(dk_look(&wait, -1, -1) & DK_LOOK_CANCELLED))
    continue;
  return puppet->host->cancelled(call) ? DK_CALL_CANCELLED : DK_INTERNAL;
}

static void
test_cancel(act_fn *act, const char *what)
{
  struct puppet puppet = {.act = act};
  struct dk_canceller *canceller = dk_canceller_new(NULL);
  struct other other = {.actor = 0};

  puppet_open(&puppet, NULL);
  start(&other, &puppet);
  dk_caller_set_canceller(other.caller, canceller);
  go(&other);
  until_inside(&puppet, 1);
  cmp_ok(dk_cancelled(canceller), "==", 0, "a new canceller is not cancelled");
  dk_cancel(canceller);
  finish(&other);
  cmp_ok(other.status, "==", DK_CALL_CANCELLED, "a call that %s is cancelled", what);
  cmp_ok(dk_cancelled(canceller), "==", 1, "the mark stays");
  ok(atomic_load(&puppet.interrupts) <= 1, "the store was interrupted at most once");
  dk_canceller_reset(canceller);
  puppet.act = NULL;
  dk_caller_set_canceller(puppet.caller, canceller);
  struct dk_turn *turn;
  cmp_ok(fetch_turn(&puppet, &turn), "==", DK_OK, "after a reset calls run again");
  cmp_ok(puppet.violations, "==", 0, "no rule was broken: %s", puppet.text);
  puppet_close(&puppet);
  dk_canceller_free(canceller);
}

/* Blocks outside of wait, until it is interrupted. */
struct gate {
  pthread_mutex_t lock;
  pthread_cond_t opened;
  bool is_open;
};

static dk_status
block(struct puppet *puppet, struct dk_call *call)
{
  struct gate *gate = puppet->data;

  (void)call;
  pthread_mutex_lock(&gate->lock);
  while (!gate->is_open)
    pthread_cond_wait(&gate->opened, &gate->lock);
  pthread_mutex_unlock(&gate->lock);
  return puppet->n ? DK_CALL_CANCELLED : DK_NOTHING;
}

static void
open_gate(struct puppet *puppet)
{
  struct gate *gate = puppet->data;

  pthread_mutex_lock(&gate->lock);
  gate->is_open = true;
  pthread_cond_broadcast(&gate->opened);
  pthread_mutex_unlock(&gate->lock);
}

#define A_GATE {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER}

static void
test_interrupt(void)
{
  struct gate gate = A_GATE;
  struct puppet puppet = {.act = block, .data = &gate, .on_interrupt = open_gate, .n = 1};
  struct puppet bystander = {.act = NULL};
  struct dk_canceller *canceller = dk_canceller_new(NULL);
  struct other other = {.actor = 0};

  puppet_open(&puppet, NULL);
  puppet_open(&bystander, NULL);
  start(&other, &puppet);
  dk_caller_set_canceller(other.caller, canceller);
  go(&other);
  until_inside(&puppet, 1);
  dk_cancel(canceller);
  finish(&other);
  cmp_ok(other.status, "==", DK_CALL_CANCELLED, "interrupt frees a call that blocks elsewhere");
  cmp_ok(atomic_load(&bystander.interrupts), "==", 0, "another store is not interrupted");
  puppet_close(&puppet);
  puppet_close(&bystander);
  dk_canceller_free(canceller);
}

/* Lets its call go, through a copy of the host's table, which must not find anything locked. */
static void
open_gate_and_log(struct puppet *puppet)
{
  struct {
    char before[64];
    struct dk_host host;
  } copy = {.host = *puppet->host};

  copy.host.log(&copy.host, 1, text("interrupted"));
  open_gate(puppet);
}

/* Lets the call go, and stays itself. */
static void
open_gate_and_block(struct puppet *puppet)
{
  struct gate *gates = puppet->data;

  open_gate(puppet);
  pthread_mutex_lock(&gates[1].lock);
  while (!gates[1].is_open)
    pthread_cond_wait(&gates[1].opened, &gates[1].lock);
  pthread_mutex_unlock(&gates[1].lock);
}

static void *
cancel_thread(void *canceller)
{
  dk_cancel(canceller);
  return NULL;
}

/* The canceller holds nothing while it interrupts: the copy would wait for it for ever. */
static void
test_upcall_from_interrupt(void)
{
  struct gate gate = A_GATE;
  struct puppet puppet = {.act = block, .data = &gate, .on_interrupt = open_gate_and_log, .n = 1};
  struct dk_canceller *canceller = dk_canceller_new(NULL);
  struct other other = {.actor = 0};
  pthread_t thread;
  struct timespec limit;

  puppet_open(&puppet, NULL);
  start(&other, &puppet);
  dk_caller_set_canceller(other.caller, canceller);
  go(&other);
  until_inside(&puppet, 1);
  pthread_create(&thread, NULL, cancel_thread, canceller);
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 10;
  if (pthread_timedjoin_np(thread, NULL, &limit) != 0)
    BAIL_OUT("dk_cancel blocks when interrupt calls the host");
  finish(&other);
  cmp_ok(other.status, "==", DK_CALL_CANCELLED, "interrupt may call the host, by any table");
  is(puppet.line, "interrupted", "which receives the line");
  is(puppet.clause, "ABI-12", "and reports: %s", puppet.text);
  puppet_close(&puppet);
  dk_canceller_free(canceller);
}

/* Nothing is closed under an interrupt, either. */
static void
test_close_under_interrupt(void)
{
  struct gate gates[2] = {A_GATE, A_GATE};
  struct puppet puppet = {
    .act = block, .data = gates, .on_interrupt = open_gate_and_block, .n = 1};
  struct puppet second_gate = {.data = &gates[1]};
  struct dk_canceller *canceller = dk_canceller_new(NULL);
  struct other other = {.actor = 0};
  pthread_t thread;

  puppet.options.close_wait_ms = 20;
  puppet_open(&puppet, NULL);
  start(&other, &puppet);
  dk_caller_set_canceller(other.caller, canceller);
  go(&other);
  until_inside(&puppet, 1);
  pthread_create(&thread, NULL, cancel_thread, canceller);
  finish(&other);
  is(dk_store_close(puppet.store), "interrupt", "an interrupt that does not return is named");
  ok(puppet.is_open, "and its handle stays");
  open_gate(&second_gate);
  pthread_join(thread, NULL);
  is(puppet_close(&puppet), NULL, "once it has returned the store can be closed");
  ok(!puppet.is_open, "and is");
  dk_canceller_free(canceller);
}

/* One canceller for calls of several stores. */
static void
test_cancel_of_many(void)
{
  enum { STORES = 3 };
  struct gate gates[STORES] = {A_GATE, A_GATE, A_GATE};
  struct puppet puppets[STORES];
  struct other others[STORES];
  struct dk_canceller *canceller = dk_canceller_new(NULL);

  for (int i = 0; i < STORES; i++) {
    puppets[i] = (struct puppet){
      .act = block, .data = &gates[i], .on_interrupt = open_gate, .n = 1};
    others[i] = (struct other){.actor = 0};
    puppet_open(&puppets[i], NULL);
    start(&others[i], &puppets[i]);
    dk_caller_set_canceller(others[i].caller, canceller);
    go(&others[i]);
    until_inside(&puppets[i], 1);
  }
  dk_cancel(canceller);
  for (int i = 0; i < STORES; i++) {
    finish(&others[i]);
    cmp_ok(others[i].status, "==", DK_CALL_CANCELLED, "store %d of %d is interrupted", i + 1,
           (int)STORES);
    cmp_ok(atomic_load(&puppets[i].interrupts), "==", 1, "once");
    puppet_close(&puppets[i]);
  }
  dk_canceller_free(canceller);
}

/* ---- closing --------------------------------------------------------------------------------- */

static void
test_close_cancels(void)
{
  struct puppet puppet = {.act = wait_for_ever};
  struct dk_canceller *canceller = dk_canceller_new(NULL);
  struct other plain = {.actor = 0}, with_canceller = {.actor = 0};

  puppet_open(&puppet, NULL);
  start(&plain, &puppet);
  start(&with_canceller, &puppet);
  dk_caller_set_canceller(with_canceller.caller, canceller);
  go(&plain);
  go(&with_canceller);
  until_inside(&puppet, 2);
  is(puppet_close(&puppet), NULL, "a store with waiting calls closes");
  finish(&plain);
  finish(&with_canceller);
  cmp_ok(plain.status, "==", DK_CALL_CANCELLED, "a call returns");
  cmp_ok(with_canceller.status, "==", DK_CALL_CANCELLED, "one with a canceller too");
  ok(!puppet.is_open, "then it is closed");
  cmp_ok(dk_cancelled(canceller), "==", 0, "no other calls are cancelled");
  dk_canceller_free(canceller);
}

static void
test_close_of_stuck_call(int32_t thread_model)
{
  struct gate gate = A_GATE;
  struct puppet puppet = {.act = block, .data = &gate};
  struct puppet_descriptor described;
  struct other other = {.actor = 0};

  puppet_describe(&described);
  described.provider.thread_model = thread_model;
  puppet.options.close_wait_ms = 20;
  puppet_open(&puppet, &described);
  start(&other, &puppet);
  go(&other);
  until_inside(&puppet, 1);
  is(dk_store_close(puppet.store), "fetch_orchestration_item", "a stuck call is named (model %d)",
     (int)thread_model);
  ok(puppet.is_open, "nothing is closed under it");
  cmp_ok(enqueue(&puppet), "==", DK_CALL_CANCELLED, "new calls are refused");
  is(failure_text(&puppet), "enqueue_for_orchestrator: the store is being closed", "with a text");
  open_gate(&puppet);
  finish(&other);
  is(puppet_close(&puppet), NULL, "once it has returned the store can be closed");
  ok(!puppet.is_open, "and is");
}

/* Wrapped by the linker (core/local.mk): a closer that comes as soon as the last call is off the
 * list meets no other. */
void __real_dk_store_remove_call(struct dk_store *store, struct dk_call *call, dk_status status);
void __wrap_dk_store_remove_call(struct dk_store *store, struct dk_call *call, dk_status status);

static struct dk_store *closes_at_once;

void
__wrap_dk_store_remove_call(struct dk_store *store, struct dk_call *call, dk_status status)
{
  __real_dk_store_remove_call(store, call, status);
  if (store == closes_at_once) {
    closes_at_once = NULL;
    is(dk_store_close(store), NULL, "a store is closed while its last call leaves");
  }
}

static void
test_close_at_once(int32_t thread_model)
{
  struct puppet puppet = {.act = NULL};
  struct puppet_descriptor described;

  puppet_describe(&described);
  described.provider.thread_model = thread_model;
  puppet_open(&puppet, &described);
  mallopt(M_PERTURB, 0xa5); /* what is freed does not look the same */
  closes_at_once = puppet.store;
  cmp_ok(enqueue(&puppet), "==", DK_OK, "the call touches nothing of it after (model %d)",
         (int)thread_model);
  mallopt(M_PERTURB, 0);
  ok(!puppet.is_open, "it is closed");
  dk_caller_free(puppet.caller);
  dk_library_close(puppet.library);
}

static void
test_close_nothing(void)
{
  is(dk_store_close(NULL), NULL, "closing nothing is no error");
  dk_library_close(NULL);
  dk_caller_free(NULL);
  dk_canceller_free(NULL);
}

/* ---- serialising ----------------------------------------------------------------------------- */

/* Counts how many are in the provider at once; `data` points to the counter. */
struct crowd {
  atomic_int now, most, in_all;
};

static dk_status
join_crowd(struct puppet *puppet, struct dk_call *call)
{
  struct crowd *crowd = puppet->data;
  int now = atomic_fetch_add(&crowd->now, 1) + 1;
  int most = atomic_load(&crowd->most);

  (void)call;
  while (most < now && !atomic_compare_exchange_weak(&crowd->most, &most, now))
    continue;
  a_moment();
  atomic_fetch_sub(&crowd->now, 1);
  atomic_fetch_add(&crowd->in_all, 1);
  return DK_NOTHING;
}

enum { CALLS = 10 };

static void *
crowd_thread(void *argument)
{
  struct other *other = argument;

  for (int i = 0; i < CALLS; i++)
    other_thread(other);
  return NULL;
}

/* Two threads on each of two stores of one library. */
static int
most_at_once(int32_t thread_model, bool two_stores)
{
  struct crowd crowd = {.now = 0};
  struct puppet puppet = {.act = join_crowd, .data = &crowd};
  struct puppet_descriptor described;
  struct dk_store *second = NULL;
  struct other others[4];

  puppet_describe(&described);
  described.provider.thread_model = thread_model;
  puppet_open(&puppet, &described);
  dk_store_open(puppet.library, &puppet.options, puppet.caller, 0, NULL, 0, &second);
  for (int i = 0; i < 4; i++) {
    others[i] = (struct other){.store = two_stores && i % 2 ? second : puppet.store};
    start(&others[i], &puppet);
    pthread_create(&others[i].thread, NULL, crowd_thread, &others[i]);
  }
  for (int i = 0; i < 4; i++)
    finish(&others[i]);
  cmp_ok(atomic_load(&crowd.in_all), "==", 4 * CALLS, "every call of model %d got through",
         (int)thread_model);
  dk_store_close(second);
  puppet_close(&puppet);
  return atomic_load(&crowd.most);
}

static void
test_serialising(void)
{
  cmp_ok(most_at_once(DK_ONE_AT_A_TIME, true), "==", 1, "one at a time, over all handles");
  cmp_ok(most_at_once(1999, true), "==", 1, "what is between the models counts as the lower one");
  cmp_ok(most_at_once(DK_ONE_PER_HANDLE, false), "==", 1, "one at a time of one handle");
  cmp_ok(most_at_once(DK_ONE_PER_HANDLE, true), "<=", 2, "two handles are two");
  cmp_ok(most_at_once(DK_PARALLEL, false), ">", 1, "in parallel they meet");
}

/* ---- waiting in the provider's place --------------------------------------------------------- */

/* Nothing, until something was enqueued. */
static dk_status
look_for_work(struct puppet *puppet, struct dk_call *call)
{
  if (strcmp(puppet->operation, "enqueue") == 0) {
    puppet->n = 1;
    return DK_OK;
  }
  return puppet->n ? give_turn(puppet, call) : DK_NOTHING;
}

static struct dk_virtual_clock *
new_clock(void)
{
  size_t size = (dk_virtual_clock_size() + 63) / 64 * 64;

  return dk_virtual_clock_init(aligned_alloc(64, size), 1000, 0);
}

static void
free_clock(struct dk_virtual_clock *clock)
{
  dk_virtual_clock_done(clock);
  free(clock);
}

static void
test_host_waits(void)
{
  struct dk_virtual_clock *clock = new_clock();
  struct puppet puppet = {.act = look_for_work, .wait_until = -1};
  struct puppet_descriptor described;
  struct other other = {.clock = clock, .actor = dk_virtual_clock_add_actor(clock)};

  puppet_describe(&described);
  described.provider.thread_model = DK_ONE_AT_A_TIME;
  puppet.options.clock = dk_virtual_clock_as_clock(clock);
  puppet_open(&puppet, &described);
  other.wait_until = 61000;
  start(&other, &puppet);
  go(&other);
  ok(dk_virtual_clock_until_it_waits(clock, 0, other.actor), "the host waits");
  cmp_ok(puppet.wait_until, "==", 0, "the provider is not asked to");
  cmp_ok(enqueue(&puppet), "==", DK_OK, "meanwhile other calls are let in");
  dk_virtual_clock_join(clock, 0, other.actor);
  finish(&other);
  cmp_ok(other.status, "==", DK_OK, "what they bring is returned by the waiting call");
  cmp_ok(other.returned_at, "==", 1000, "at once");

  puppet.n = 0;
  atomic_store(&puppet.acts, 0);
  start(&other, &puppet);
  go(&other);
  dk_virtual_clock_join(clock, 0, other.actor);
  finish(&other);
  cmp_ok(other.status, "==", DK_NOTHING, "when nothing comes the call ends");
  cmp_ok(other.returned_at, "==", 61000, "when its time is up");
  cmp_ok(atomic_load(&puppet.acts), "==", 301, "having looked every 200 ms for others' work");

  struct dk_canceller *canceller = dk_canceller_new(NULL);
  other.wait_until = INT64_MAX;
  start(&other, &puppet);
  dk_caller_set_canceller(other.caller, canceller);
  go(&other);
  ok(dk_virtual_clock_until_it_waits(clock, 0, other.actor), "it waits again");
  dk_cancel(canceller);
  dk_virtual_clock_join(clock, 0, other.actor);
  finish(&other);
  cmp_ok(other.status, "==", DK_CALL_CANCELLED, "and is cancelled");
  dk_canceller_free(canceller);
  puppet_close(&puppet);
  free_clock(clock);
}

/* A wait in the provider's turn, of a minute. */
static dk_status
wait_a_minute(struct puppet *puppet, struct dk_call *call)
{
  int64_t now = puppet->host->now(puppet->host);

  puppet->host->wait(call, -1, 0, now + 60000);
  return DK_NOTHING;
}

static void
start_waiting(struct other *other, struct puppet *puppet, const char *name)
{
  start(other, puppet);
  go(other);
  ok(dk_virtual_clock_until_it_waits(other->clock, 0, other->actor), "%s", name);
}

/* A call before the turnstile counts as waiting for the clock: time passes for the one inside, and
 * a call that has not entered can be cancelled. */
static void
test_queue_at_turnstile(void)
{
  struct dk_virtual_clock *clock = new_clock();
  struct dk_canceller *canceller = dk_canceller_new(NULL);
  struct puppet puppet = {.act = wait_a_minute};
  struct puppet_descriptor described;
  struct other inside = {.clock = clock, .actor = dk_virtual_clock_add_actor(clock)};
  struct other queued = {.clock = clock, .actor = dk_virtual_clock_add_actor(clock)};

  puppet_describe(&described);
  described.provider.thread_model = DK_ONE_PER_HANDLE;
  puppet.options.clock = dk_virtual_clock_as_clock(clock);
  puppet_open(&puppet, &described);
  start_waiting(&inside, &puppet, "one waits in its turn");
  start_waiting(&queued, &puppet, "another one waits for its turn");
  dk_virtual_clock_join(clock, 0, queued.actor);
  cmp_ok(inside.returned_at, "==", 61000, "time went on for the first");
  cmp_ok(queued.returned_at, "==", 121000, "and then for the second");
  finish(&inside);
  finish(&queued);

  start_waiting(&inside, &puppet, "one waits in its turn again");
  start(&queued, &puppet);
  dk_caller_set_canceller(queued.caller, canceller);
  go(&queued);
  ok(dk_virtual_clock_until_it_waits(clock, 0, queued.actor), "and another one for its turn");
  dk_cancel(canceller);
  dk_virtual_clock_join(clock, 0, queued.actor);
  cmp_ok(queued.status, "==", DK_CALL_CANCELLED, "which is cancelled");
  cmp_ok(queued.returned_at, "==", 121000, "at once");
  dk_virtual_clock_join(clock, 0, inside.actor);
  finish(&inside);
  finish(&queued);
  dk_canceller_free(canceller);
  puppet_close(&puppet);
  free_clock(clock);
}

int
main(void)
{
  plan(NO_PLAN);
  test_cancel(wait_for_ever, "waits");
  test_cancel(poll_for_ever, "polls");
  test_interrupt();
  test_upcall_from_interrupt();
  test_close_under_interrupt();
  test_cancel_of_many();
  test_close_cancels();
  test_close_of_stuck_call(DK_PARALLEL);
  test_close_of_stuck_call(DK_ONE_AT_A_TIME);
  test_close_at_once(DK_PARALLEL);
  test_close_at_once(DK_ONE_AT_A_TIME);
  test_close_nothing();
  test_serialising();
  test_host_waits();
  test_queue_at_turnstile();
  return done_testing();
}
