/* SPDX-License-Identifier: Apache-2.0 */
/* Graces that are kept and exceeded; threads that do not return, their number, and their end. */
#include <stdatomic.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/plugin/store.h"
#include "core/runtime/testing/activities-alone.h"

static atomic_int runs, ended, may_end, read_well;

static void
reset(void)
{
  atomic_store(&runs, 0);
  atomic_store(&ended, 0);
  atomic_store(&may_end, 0);
  atomic_store(&read_well, 0);
}

/* Ends when the test allows it, and ignores its token; then it reads its input again. */
static dk_result
stubborn(dk_task *task, dk_str input)
{
  atomic_fetch_add(&runs, 1);
  while (!atomic_load(&may_end))
    a_moment();
  atomic_fetch_add(&read_well, input.len == 5 && memcmp(input.ptr, "hello", 6) == 0 &&
                               dk_task_info(task)->instance.len == 1 &&
                               dk_task_alloc(task, 1000) != NULL);
  atomic_fetch_add(&ended, 1);
  return dk_done(task, input);
}

static dk_result
echo(dk_task *task, dk_str input)
{
  return dk_done(task, input);
}

static dk_result
obeys(dk_task *task, dk_str input)
{
  atomic_fetch_add(&runs, 1);
  dk_task_sleep(task, 3600 * 1000);
  atomic_fetch_add(&ended, 1);
  return dk_done(task, input);
}

static struct shop *
open_shop(void)
{
  struct shop *shop = shop_open();

  reset();
  shop_register(shop, "stubborn", stubborn);
  shop_register(shop, "obeys", obeys);
  shop_register(shop, "echo", echo);
  shop->options.grace_ms = 100;
  return shop;
}

/* The latest event of that number has this level, and names all that is known of the activity. */
static void
is_told_of(struct shop *shop, int32_t number, int32_t level, uint64_t id)
{
  struct heard heard = listener_latest(shop->listener, number);
  struct whom whom = shop_whom(shop, id, "stubborn");

  ok(whom.token[0] != '\0' && heard_names(&heard, &whom), "it names whom it is about");
  cmp_ok(heard.level, "==", level, "in its level");
  cmp_ok(heard.ms, "==", 100, "with the grace that was not kept");
}

static void
test_exceeded(void)
{
  struct shop *shop = open_shop();

  shop->options.activity_slots = 1;
  shop->options.max_quarantined = 2;
  shop_start(shop);
  shop_order(shop, 1, "stubborn", "hello");
  ok(UNTIL(atomic_load(&runs) == 1), "an activity runs");
  shop_order(shop, 2, "echo", "y");
  int64_t from = ticks_now();
  shop_cancel(shop, 1, 1, true);
  is(shop_wait(shop, 2)->text, "y", "after the grace its slot is free, although it still runs");
  cmp_ok(ticks_now() - from, ">=", 100, "not before");
  cmp_ok(atomic_load(&ended), "==", 0, "it still runs");
  ok(listener_until(shop->listener, DK_LOG_GRACE_EXCEEDED, 1), "that is logged");
  struct heard heard = listener_latest(shop->listener, DK_LOG_GRACE_EXCEEDED);
  ok(says(heard.text, "stubborn") && says(heard.text, "100 ms"), "with name and time");
  is_told_of(shop, DK_LOG_GRACE_EXCEEDED, DK_LEVEL_WARNING, 1);
  ok(listener_until(shop->listener, DK_LOG_QUARANTINED, 1), "and so is the quarantine");
  is_told_of(shop, DK_LOG_QUARANTINED, DK_LEVEL_WARNING, 1);
  cmp_ok(shop_counter(shop, COUNT_QUARANTINED_NOW), "==", 1, "one is counted");
  cmp_ok(shop_counter(shop, COUNT_GRACE_EXCEEDED), "==", 1, "and its grace");
  cmp_ok(shop_counter(shop, COUNT_GRACE_KEPT), "==", 0, "which is not kept");
  atomic_store(&may_end, 1);
  ok(UNTIL(shop_counter(shop, COUNT_QUARANTINED_NOW) == 0), "when it returns, none is");
  cmp_ok(atomic_load(&read_well), "==", 1, "what it was given was there all the time");
  shop_look(shop);
  cmp_ok(shop->came[1].times, "==", 0, "its result is dropped");
  shop_close(shop);
}

static void
test_kept(void)
{
  struct shop *shop = open_shop();
  const struct dk_activity_traits traits = {.struct_size = sizeof(traits), .grace_ms = 60000};

  dk_register_activity(shop->registry, "patient", obeys, &traits);
  shop_start(shop);
  shop_order(shop, 1, "patient", "x");
  ok(UNTIL(atomic_load(&runs) == 1), "an activity with a grace of its own runs");
  shop_cancel(shop, 1, 1, true);
  ok(UNTIL(shop_counter(shop, COUNT_GRACE_KEPT) == 1), "it is kept");
  cmp_ok(shop_counter(shop, COUNT_GRACE_EXCEEDED), "==", 0, "and not exceeded");
  shop_close(shop);
}

static void
test_own_grace_is_shorter(void)
{
  struct shop *shop = open_shop();
  const struct dk_activity_traits traits = {.struct_size = sizeof(traits), .grace_ms = 50};

  shop->options.grace_ms = 3600 * 1000;
  dk_register_activity(shop->registry, "hasty", stubborn, &traits);
  shop_start(shop);
  shop_order(shop, 1, "hasty", "hello");
  ok(UNTIL(atomic_load(&runs) == 1), "an activity with a short grace runs");
  shop_cancel(shop, 1, 1, true);
  ok(listener_until(shop->listener, DK_LOG_GRACE_EXCEEDED, 1), "which it exceeds");
  cmp_ok(listener_latest(shop->listener, DK_LOG_GRACE_EXCEEDED).ms, "==", 50, "by its own time");
  atomic_store(&may_end, 1);
  shop_close(shop);
}

static void
test_cap(void)
{
  struct shop *shop = open_shop();
  char reason[200] = "";

  shop->options.activity_slots = 2;
  shop->options.max_quarantined = 2;
  shop_start(shop);
  shop_order(shop, 1, "stubborn", "hello");
  shop_order(shop, 2, "stubborn", "hello");
  ok(UNTIL(atomic_load(&runs) == 2), "two activities run");
  ok(activity_pool_is_well(shop->pool, reason, sizeof(reason)), "the worker is healthy");
  shop_cancel(shop, 1, 2, true);
  ok(listener_until(shop->listener, DK_LOG_CAP_REACHED, 1), "with two that do not end the cap is "
     "reached");
  struct heard heard = listener_latest(shop->listener, DK_LOG_CAP_REACHED);
  is_told_of(shop, DK_LOG_CAP_REACHED, DK_LEVEL_ERROR, heard.activity_id);
  ok(says(heard.text, "2 threads"), "and says how many are left to themselves");
  ok(!activity_pool_is_well(shop->pool, reason, sizeof(reason)), "the worker is not healthy");
  ok(says(reason, "max_quarantined is reached"), "and gives the reason");
  shop_order(shop, 3, "echo", "y");
  uint64_t fetches = faulty_calls(shop->faulty, FAULTY_FETCH_WORK);
  int64_t until = ticks_now() + 300;
  while (ticks_now() < until)
    a_moment();
  cmp_ok(faulty_calls(shop->faulty, FAULTY_FETCH_WORK), "<=", fetches + 1, "nothing is fetched");
  shop_look(shop);
  cmp_ok(shop->came[3].times, "==", 0, "so nothing new is run");
  atomic_store(&may_end, 1);
  is(shop_wait(shop, 3)->text, "y", "until they return");
  ok(UNTIL(activity_pool_is_well(shop->pool, reason, sizeof(reason))), "then it is healthy again");
  cmp_ok(listener_count(shop->listener, DK_LOG_STORE_AWAY), "==", 0,
         "the cancelled fetch does not count as an unreachable store");
  shop_close(shop);
}

/* The lease has ended, and the body still runs: the next owner may have the activity. */
static void
test_lease_lost(void)
{
  struct shop *shop = open_shop();

  shop->options.activity_lock_ms = 600;
  shop->options.activity_renewal_buffer_ms = 500;
  shop->options.max_attempts = 100;
  faulty_plan(shop->faulty, FAULTY_RENEW_WORK, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  shop_start(shop);
  shop_order(shop, 1, "stubborn", "hello");
  ok(UNTIL(atomic_load(&runs) >= 2), "one whose lease is lost runs twice at once, if it does not "
     "end");
  ok(UNTIL(shop_counter(shop, COUNT_QUARANTINED_NOW) >= 1), "the first in quarantine");
  faulty_heal(shop->faulty);
  atomic_store(&may_end, 1);
  struct came *came = shop_wait(shop, 1);
  ok(UNTIL(shop_counter(shop, COUNT_QUARANTINED_NOW) == 0), "all return");
  shop_look(shop);
  cmp_ok(came->times, "==", 1, "but only one result counts");
  shop_close(shop);
}

static void
test_stop(void)
{
  struct shop *shop = open_shop();
  struct dk_leftover leftover;
  struct dk_store *store = faulty_store(shop->faulty);
  struct dk_fetch_work request = {.struct_size = sizeof(request), .max_items = 1,
                                  .lock_ms = 60000};
  struct dk_works *works = NULL;

  shop_start(shop);
  shop_order(shop, 1, "stubborn", "hello");
  ok(UNTIL(atomic_load(&runs) == 1), "an activity runs");
  ok(!shop_stop(shop, 0, &leftover), "a stop does not wait for it for ever");
  cmp_ok(leftover.quarantined, "==", 1, "and says that its thread is left");
  cmp_ok(leftover.activities, "==", 1, "that the activity was given back");
  cmp_ok(leftover.not_given_back, "==", 0, "and the store has taken it");
  request.wait_until = dk_store_now(store) + 60000;
  cmp_ok(dk_store_fetch_work_item(store, shop->caller, &request, &works), "==", DK_OK,
         "so that another worker can fetch it");
  cmp_ok(works ? works->items[0].work.attempt : 0, "==", 1, "without a counted attempt");
  atomic_store(&may_end, 1);
  ok(UNTIL(activity_pool_free(shop->pool)), "once it has returned, everything is freed");
  cmp_ok(atomic_load(&read_well), "==", 1, "what it was given was there all the time");
  leases_stop(shop->leases);
  shop->pool = NULL;
  shop_close(shop);
}

int
main(void)
{
  plan(NO_PLAN);
  test_exceeded();
  test_kept();
  test_own_grace_is_shorter();
  test_cap();
  test_lease_lost();
  test_stop();
  return done_testing();
}
