/* SPDX-License-Identifier: Apache-2.0 */
/* The activity pool on a store that fails on request: what runs, what the orchestration gets, what
 * is delayed, and how it stops. */
#include <stdatomic.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/plugin/store.h"
#include "core/runtime/testing/activities-alone.h"

static atomic_int runs, may_end, most_at_once, at_once;

static void
reset(void)
{
  atomic_store(&runs, 0);
  atomic_store(&may_end, 0);
  atomic_store(&most_at_once, 0);
  atomic_store(&at_once, 0);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static dk_result
echo(dk_task *task, dk_str input)
{
  atomic_fetch_add(&runs, 1);
  return dk_done(task, input);
}

static dk_result
fails(dk_task *task, dk_str input)
{
  return dk_error(task, "cannot %.*s: %d", (int)input.len, input.ptr, 42);
}

static dk_result
first_later(dk_task *task, dk_str input)
{
  if (atomic_fetch_add(&runs, 1) < 5)
    return dk_later(task, 5);
  return dk_done(task, input);
}

/* Returns the result of none of the three calls. */
static dk_result
forgets(dk_task *task, dk_str input)
{
  const dk_result result = {0};

  (void)task, (void)input;
  return result;
}

static dk_result
waits(dk_task *task, dk_str input)
{
  int now = atomic_fetch_add(&at_once, 1) + 1;
  int most = atomic_load(&most_at_once);

  atomic_fetch_add(&runs, 1);
  while (most < now && !atomic_compare_exchange_weak(&most_at_once, &most, now))
    continue;
  while (!atomic_load(&may_end) && !dk_task_cancelled(task))
    dk_task_sleep(task, 2);
  atomic_fetch_sub(&at_once, 1);
  return dk_done(task, input);
}

static dk_result
tells_info(dk_task *task, dk_str input)
{
  const struct dk_task_info *info = dk_task_info(task);
  char *text = dk_task_alloc(task, 200);

  (void)input;
  snprintf(text, 200, "%s %llu %llu %s %s %s %s %u %d", info->instance.ptr,
           (unsigned long long)info->execution_id, (unsigned long long)info->activity_id,
           info->name.ptr, info->orchestration.ptr, info->version.ptr, info->worker.ptr,
           info->attempt, info->fence > 0);
  return dk_done(task, dk_str_of(text));
}

enum { HANDED = 200 };
static _Atomic uint64_t fences[HANDED];
static atomic_int last_run;

/* Keeps its fence, and then does what its input says. */
static dk_result
keeps_fence(dk_task *task, dk_str input)
{
  int run = atomic_fetch_add(&runs, 1);

  if (run < HANDED)
    atomic_store(&fences[run], dk_task_info(task)->fence);
  if (run >= atomic_load(&last_run))
    return dk_done(task, input);
  if (strcmp(input.ptr, "later") == 0)
    return dk_later(task, 0);
  dk_task_sleep(task, 3600 * 1000); /* until its lease is lost */
  return dk_done(task, input);
}

static dk_result
returns_much(dk_task *task, dk_str input)
{
  size_t size = (size_t)17 << 20;
  char *text = dk_task_alloc(task, size);

  (void)input;
  memset(text, 'x', size);
  return dk_done(task, (dk_str){text, size});
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void
test_ends(void)
{
  struct shop *shop = shop_open();

  reset();
  shop_register(shop, "echo", echo);
  shop_register(shop, "fails", fails);
  shop_register(shop, "forgets", forgets);
  shop_register(shop, "info", tells_info);
  shop_start(shop);
  shop_order(shop, 1, "echo", "hello");
  shop_order(shop, 2, "fails", "count");
  shop_order(shop, 3, "forgets", "");
  shop_order(shop, 4, "info", "");
  struct came *came = shop_wait(shop, 1);
  cmp_ok(came->kind, "==", MESSAGE_ACTIVITY_COMPLETED, "an activity completes");
  is(came->text, "hello", "with its output");
  came = shop_wait(shop, 2);
  cmp_ok(came->kind, "==", MESSAGE_ACTIVITY_FAILED, "another fails");
  is(came->text, "cannot count: 42", "with its text");
  cmp_ok(came->code, "==", CODE_APPLICATION, "as an error of its own code");
  came = shop_wait(shop, 3);
  cmp_ok(came->kind, "==", MESSAGE_ACTIVITY_FAILED, "one that returns another result fails");
  ok(says(came->text, "dk_done"), "and the error says what to return");
  cmp_ok(listener_count(shop->listener, DK_LOG_PROGRAMMING_ERROR), "==", 1, "which is logged");
  is(shop_wait(shop, 4)->text, "i 1 4 info test 1.0.0 here 1 1", "an activity knows what it is");
  cmp_ok(shop_counter(shop, COUNT_ACTIVITIES_STARTED), "==", 4, "four have started");
  ok(UNTIL(shop_counter(shop, COUNT_ACTIVITIES_COMPLETED) == 2), "two have completed");
  ok(UNTIL(shop_counter(shop, COUNT_ACTIVITIES_FAILED) == 2), "two have failed");
  shop_close(shop);
}

static void
test_slots(void)
{
  enum { MANY = 60, SLOTS = 5 };
  struct shop *shop = shop_open();
  uint32_t once = 0;

  reset();
  shop_register(shop, "waits", waits);
  shop->options.activity_slots = SLOTS;
  for (uint64_t i = 1; i <= MANY; i++)
    shop_order(shop, i, "waits", "x");
  shop_start(shop);
  ok(UNTIL(atomic_load(&runs) == SLOTS), "as many run as there are slots");
  atomic_store(&may_end, 1);
  for (uint64_t i = 1; i <= MANY; i++)
    once += shop_wait(shop, i)->times == 1;
  shop_look(shop);
  cmp_ok(once, "==", MANY, "all complete, each once");
  cmp_ok(atomic_load(&runs), "==", MANY, "and ran once");
  cmp_ok(atomic_load(&most_at_once), "==", SLOTS, "never more at once than there are slots");
  shop_close(shop);
}

static void
test_later(void)
{
  struct shop *shop = shop_open();

  reset();
  shop_register(shop, "later", first_later);
  shop_start(shop);
  shop_order(shop, 1, "later", "x");
  is(shop_wait(shop, 1)->text, "x", "one that could not be tried is run again");
  cmp_ok(atomic_load(&runs), "==", 6, "as often as it asks for, without counting the attempts");
  cmp_ok(shop_counter(shop, COUNT_ACTIVITIES_PUT_OFF), "==", 5,
         "each attempt is counted as delayed");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_WARNING), "==", 0, "and no warning is logged");
  shop_close(shop);
}

static void
fences_grow(const char *what)
{
  int grown = 0, last = atomic_load(&last_run);

  for (int i = 1; i <= last; i++) {
    uint64_t before = atomic_load(&fences[i - 1]), after = atomic_load(&fences[i]);
    grown += after > before;
    if (after <= before)
      diag("fence %llu after %llu", (unsigned long long)after, (unsigned long long)before);
  }
  cmp_ok(grown, "==", last, "%s: its fence grows each time", what);
}

/* Given back at once, without counting the attempt: all have the same attempt, and several fit
 * into one millisecond of the store. */
static void
test_fence_of_later(void)
{
  struct shop *shop = shop_open();

  reset();
  atomic_store(&last_run, HANDED - 1);
  shop_register(shop, "fenced", keeps_fence);
  shop_start(shop);
  shop_order(shop, 1, "fenced", "later");
  is(shop_wait(shop, 1)->text, "later", "an activity is delayed again and again");
  cmp_ok(atomic_load(&runs), "==", HANDED, "and is handed out as often");
  fences_grow("delayed");
  shop_close(shop);
}

static void
test_fence_of_lost(void)
{
  struct shop *shop = shop_open();

  reset();
  atomic_store(&last_run, 3);
  shop_register(shop, "fenced", keeps_fence);
  shop->options.activity_lock_ms = 600;
  shop->options.activity_renewal_buffer_ms = 500;
  shop->options.max_attempts = 1000;
  faulty_plan(shop->faulty, FAULTY_RENEW_WORK, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  shop_start(shop);
  shop_order(shop, 1, "fenced", "lost");
  ok(UNTIL(atomic_load(&runs) >= 4), "an activity loses its lease and is handed out again");
  is(shop_wait(shop, 1)->text, "lost", "until it ends");
  fences_grow("lease lost");
  shop_close(shop);
}

static void
test_cannot_run(void)
{
  struct shop *shop = shop_open();

  reset();
  shop_register(shop, "echo", echo);
  shop->options.flags = DK_RUNTIME_FAIL_DELAYED;
  shop_start(shop);
  shop_order(shop, 1, "stranger", "x");
  shop_order_raw(shop, 2, "no order");
  shop_order(shop, 3, "echo", "x");
  struct came *came = shop_wait(shop, 1);
  cmp_ok(came->kind, "==", MESSAGE_ACTIVITY_FAILED, "an unregistered activity fails in the end");
  cmp_ok(came->code, "==", CODE_UNREGISTERED, "as unregistered");
  ok(says(came->text, "no activity of this name"), "and the error says why");
  came = shop_wait(shop, 2);
  cmp_ok(came->code, "==", CODE_CORRUPT, "so does one that cannot be read");
  cmp_ok(listener_count(shop->listener, DK_LOG_STALLED), "==", 4,
         "each is delayed and logged as often as it may be tried again");
  is(shop_wait(shop, 3)->text, "x", "another one is not delayed");
  shop_close(shop);
}

/* A worker that dies with it each time: here, one that takes it and never answers. */
static void
test_poison(void)
{
  struct shop *shop = shop_open();
  struct dk_fetch_work request = {.struct_size = sizeof(request), .max_items = 1,
                                  .lock_ms = 500};
  struct dk_works *works;

  reset();
  shop_register(shop, "echo", echo);
  shop_order(shop, 1, "echo", "x");
  for (int i = 0; i < 3; i++)
    if (!UNTIL(dk_store_fetch_work_item(faulty_store(shop->faulty), shop->caller, &request,
                                        &works) == DK_OK))
      BAIL_OUT("it cannot be fetched");
  shop_start(shop);
  struct came *came = shop_wait(shop, 1);
  cmp_ok(came->code, "==", CODE_POISON, "one that was handed out too often is poison");
  ok(says(came->text, "3 times"), "and says how often");
  cmp_ok(atomic_load(&runs), "==", 0, "it is not run");
  shop_close(shop);
}

/* ---- acknowledging --------------------------------------------------------------------------- */

static void
test_ack_retried(enum fault fault, dk_status status, const char *what)
{
  struct shop *shop = shop_open();

  reset();
  shop_register(shop, "echo", echo);
  faulty_plan(shop->faulty, FAULTY_ACK_WORK, 0, 3, fault, status);
  shop_start(shop);
  shop_order(shop, 1, "echo", "x");
  is(shop_wait(shop, 1)->text, "x", "%s: it completes nevertheless", what);
  ok(UNTIL(shop_counter(shop, COUNT_ACTIVITIES_COMPLETED) == 1), "it counts as completed");
  shop_look(shop);
  cmp_ok(shop->came[1].times, "==", 1, "once");
  cmp_ok(atomic_load(&runs), "==", 1, "and ran once");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_WARNING), "==", 1, "one warning");
  cmp_ok(shop_counter(shop, COUNT_ACTIVITIES_CANCELLED), "==", 0, "no cancellation");
  shop_close(shop);
}

/* A completion with its id is stored, and the row is not deleted. */
static void
test_duplicate(void)
{
  struct shop *shop = shop_open();
  struct dk_item there = {.struct_size = sizeof(there), .instance = dk_str_of("i"),
                          .id = dk_str_of("a1.1"), .payload = dk_str_of("{}")};

  reset();
  shop_register(shop, "echo", echo);
  if (dk_store_enqueue_for_orchestrator(faulty_store(shop->faulty), shop->caller, &there) != DK_OK)
    BAIL_OUT("no message");
  shop_order(shop, 1, "echo", "x");
  shop_start(shop);
  ok(UNTIL(shop_counter(shop, COUNT_ACTIVITIES_COMPLETED) == 1),
     "one whose completion is stored counts as completed");
  cmp_ok(faulty_successes(shop->faulty, FAULTY_ACK_WORK), "==", 1, "its row is removed");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_WARNING), "==", 0, "and no warning is logged");
  shop_close(shop);
}

static void
test_too_large(void)
{
  struct shop *shop = shop_open();

  reset();
  shop_register(shop, "much", returns_much);
  shop->options.activity_lock_ms = 600000; /* formatting 17 MB may take long */
  shop_start(shop);
  shop_order(shop, 1, "much", "x");
  struct came *came = shop_wait(shop, 1);
  cmp_ok(came->kind, "==", MESSAGE_ACTIVITY_FAILED, "a result that the store will not have fails");
  ok(says(came->text, "DK_TOO_LARGE") && says(came->text, "17825792"), "and the error says so");
  shop_close(shop);
}

static void
test_refused(void)
{
  struct shop *shop = shop_open();

  reset();
  shop_register(shop, "echo", echo);
  faulty_plan(shop->faulty, FAULTY_ACK_WORK, 0, 2, FAULT_REFUSE, DK_REFUSED);
  faulty_plan(shop->faulty, FAULTY_ABANDON_WORK, 0, 2, FAULT_REFUSE, DK_REFUSED);
  shop_start(shop);
  shop_order(shop, 1, "echo", "x");
  is(shop_wait(shop, 1)->text, "x", "a store that takes nothing twice: the result is held");
  cmp_ok(atomic_load(&runs), "==", 1, "its function has run once");
  cmp_ok(shop_counter(shop, COUNT_ACTIVITIES_PUT_OFF), "==", 0, "it was not given back");
  cmp_ok(shop_counter(shop, COUNT_ACKS_RETRIED), "==", 2, "the store was asked again");
  shop_close(shop);
}

/* An acknowledgement that hangs is cancelled when its lease ends, and the slot is free. */
static void
test_ack_hangs(void)
{
  struct shop *shop = shop_open();

  reset();
  shop_register(shop, "echo", echo);
  shop->options.activity_slots = 1;
  shop->options.max_attempts = 1000;
  shop->options.activity_lock_ms = 700;
  shop->options.activity_renewal_buffer_ms = 200;
  faulty_plan(shop->faulty, FAULTY_ACK_WORK, 0, 1, FAULT_HANG, DK_OK);
  shop_start(shop);
  shop_order(shop, 1, "echo", "x");
  ok(faulty_until_hanging(shop->faulty, 1), "an acknowledgement hangs");
  ok(listener_until(shop->listener, DK_LOG_LEASE_LOST, 1), "until the lease has ended");
  is(shop_wait(shop, 1)->text, "x", "then the activity is run again");
  shop_close(shop);
}

/* ---- fetching -------------------------------------------------------------------------------- */

static void
test_store_away(void)
{
  struct shop *shop = shop_open();
  char reason[200] = "";

  reset();
  shop_register(shop, "echo", echo);
  faulty_away(shop->faulty, true);
  shop_start(shop);
  ok(faulty_until_calls(shop->faulty, FAULTY_RELEASE_FETCH, 5),
     "it tries again and again to give back what the first fetch might have locked");
  cmp_ok(listener_count(shop->listener, DK_LOG_STORE_AWAY), "==", 1, "but this is logged once");
  ok(UNTIL(!health_is_well(&shop->log.health, reason, sizeof(reason))), "it is not healthy");
  ok(says(reason, "activities cannot be fetched for "), "and the reason says why");
  faulty_away(shop->faulty, false);
  shop_order(shop, 1, "echo", "x");
  is(shop_wait(shop, 1)->text, "x", "when the store is reachable again, work continues");
  cmp_ok(listener_count(shop->listener, DK_LOG_STORE_BACK), "==", 1, "which is logged once");
  ok(health_is_well(&shop->log.health, reason, sizeof(reason)), "it is healthy");
  shop_close(shop);
}

/* Body, lease and acknowledgement: all while the store is unreachable for longer than a renewal. */
static void
test_away_while_it_runs(void)
{
  struct shop *shop = shop_open();

  reset();
  shop_register(shop, "waits", waits);
  shop_start(shop);
  shop_order(shop, 1, "waits", "x");
  ok(UNTIL(atomic_load(&runs) == 1), "an activity runs");
  uint64_t renewals = faulty_calls(shop->faulty, FAULTY_RENEW_WORK);
  faulty_away(shop->faulty, true);
  ok(faulty_until_calls(shop->faulty, FAULTY_RENEW_WORK, renewals + 1), "a renewal fails");
  atomic_store(&may_end, 1);
  ok(faulty_until_calls(shop->faulty, FAULTY_ACK_WORK, 3), "so do its acknowledgements");
  faulty_away(shop->faulty, false);
  is(shop_wait(shop, 1)->text, "x", "when the store is back, the result is there");
  cmp_ok(atomic_load(&runs), "==", 1, "the activity ran once");
  cmp_ok(shop_counter(shop, COUNT_ACTIVITIES_CANCELLED) + shop_counter(shop, COUNT_ACTIVITIES_LOST),
         "==", 0, "nothing was cancelled, nothing lost");
  shop_close(shop);
}

/* It loses its lease more often than it may be tried, each time because the store is
 * unreachable. */
static void
test_away_too_often(void)
{
  struct shop *shop = shop_open();

  reset();
  shop->options.max_attempts = 2; /* one may be lost in the answer to a fetch of the same outage */
  shop->options.activity_lock_ms = 1500;
  shop->options.activity_renewal_buffer_ms = 1400;
  shop_register(shop, "waits", waits);
  shop_start(shop);
  shop_order(shop, 1, "waits", "x");
  for (uint32_t i = 0; i <= shop->options.max_attempts; i++) {
    if (!UNTIL(atomic_load(&at_once) == 1))
      BAIL_OUT("it does not run in attempt %u", i + 1);
    uint32_t n = listener_count(shop->listener, DK_LOG_LEASE_LOST);
    faulty_away(shop->faulty, true);
    if (!listener_until(shop->listener, DK_LOG_LEASE_LOST, n + 1) ||
        !UNTIL(atomic_load(&at_once) == 0))
      BAIL_OUT("its lease does not run out");
    faulty_away(shop->faulty, false);
  }
  atomic_store(&may_end, 1);
  struct came *came = shop_wait(shop, 1);
  is(came->text, "x", "outages of the store make no activity poison");
  cmp_ok(came->kind, "==", MESSAGE_ACTIVITY_COMPLETED, "it completes");
  shop_close(shop);
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void
test_stop_drains(void)
{
  struct shop *shop = shop_open();
  struct dk_leftover leftover;

  reset();
  shop_register(shop, "waits", waits);
  shop_start(shop);
  shop_order(shop, 1, "waits", "x");
  ok(UNTIL(atomic_load(&runs) == 1), "an activity runs");
  activity_pool_stop_fetching(shop->pool);
  shop_order(shop, 2, "waits", "x");
  ok(!activity_pool_drain(shop->pool, ticks_now() + 50), "it is waited for, but not for ever");
  atomic_store(&may_end, 1);
  ok(activity_pool_drain(shop->pool, ticks_now() + 60000), "until nothing runs");
  ok(shop_stop(shop, 60000, &leftover), "nothing is left");
  cmp_ok(leftover.activities, "==", 0, "nothing was given back");
  cmp_ok(atomic_load(&runs), "==", 1, "and nothing was fetched any more");
  shop_look(shop);
  cmp_ok(shop->came[1].times, "==", 1, "the result is there");
  shop_close(shop);
}

static uint32_t
attempt_of_next(struct shop *shop)
{
  struct dk_store *store = faulty_store(shop->faulty);
  struct dk_fetch_work request = {.struct_size = sizeof(request), .max_items = 1,
                                  .lock_ms = 60000, .wait_until = dk_store_now(store) + 60000};
  struct dk_works *works = NULL;
  dk_status status = dk_store_fetch_work_item(store, shop->caller, &request, &works);

  return status == DK_OK ? works->items[0].work.attempt : 0;
}

static void
test_stop_gives_back(void)
{
  struct shop *shop = shop_open();
  struct dk_leftover leftover;

  reset();
  shop_register(shop, "waits", waits);
  shop_start(shop);
  shop_order(shop, 1, "waits", "x");
  ok(UNTIL(atomic_load(&runs) == 1), "an activity runs");
  ok(shop_stop(shop, 0, &leftover), "a stop that does not wait leaves no threads");
  cmp_ok(leftover.activities, "==", 1, "one activity was given back");
  cmp_ok(leftover.not_given_back, "==", 0, "the store has taken it");
  cmp_ok(attempt_of_next(shop), "==", 1, "and it counts as never handed out");
  shop_look(shop);
  cmp_ok(shop->came[1].times, "==", 0, "its result is dropped");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_WARNING), "==", 0, "no warning is logged");
  shop_close(shop);
}

static void
test_stop_without_store(void)
{
  struct shop *shop = shop_open();
  struct dk_leftover leftover;

  reset();
  shop_register(shop, "waits", waits);
  shop_start(shop);
  shop_order(shop, 1, "waits", "x");
  ok(UNTIL(atomic_load(&runs) == 1), "an activity runs");
  faulty_away(shop->faulty, true);
  ok(shop_stop(shop, 0, &leftover), "a stop ends while the store is unreachable");
  cmp_ok(leftover.activities, "==", 1, "one activity is left");
  cmp_ok(leftover.not_given_back, "==", 1, "and could not be given back");
  shop_close(shop);
}

static void
test_stop_while_fetch_hangs(void)
{
  struct shop *shop = shop_open();
  struct dk_leftover leftover;

  reset();
  shop_register(shop, "echo", echo);
  faulty_plan(shop->faulty, FAULTY_FETCH_WORK, 0, UINT32_MAX, FAULT_HANG, DK_OK);
  shop_start(shop);
  ok(faulty_until_hanging(shop->faulty, 1), "a fetch hangs");
  ok(shop_stop(shop, 0, &leftover), "a stop cancels it");
  cmp_ok(listener_count(shop->listener, DK_LOG_STORE_AWAY), "==", 0,
         "and this does not count as an unreachable store");
  shop_close(shop);
}

int
main(void)
{
  plan(NO_PLAN);
  test_ends();
  test_slots();
  test_later();
  test_fence_of_later();
  test_fence_of_lost();
  test_cannot_run();
  test_poison();
  test_ack_retried(FAULT_REFUSE, DK_BUSY, "acknowledged when the store is busy");
  test_ack_retried(FAULT_REFUSE, DK_OUTCOME_UNKNOWN, "not acknowledged, and the answer is lost");
  test_ack_retried(FAULT_FORGET, DK_OUTCOME_UNKNOWN, "acknowledged, and the answer is lost");
  test_duplicate();
  test_too_large();
  test_refused();
  test_ack_hangs();
  test_store_away();
  test_away_while_it_runs();
  test_away_too_often();
  test_stop_drains();
  test_stop_gives_back();
  test_stop_without_store();
  test_stop_while_fetch_hangs();
  return done_testing();
}
