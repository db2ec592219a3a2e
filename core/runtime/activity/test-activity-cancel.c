/* SPDX-License-Identifier: Apache-2.0 */
/* Cancellation as a running activity sees it, twice: signalled by the commit here, and learnt
 * by the renewal that finds no row. */
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/plugin/memory.h"
#include "core/runtime/testing/activities-alone.h"

static bool is_local; /* which of the two */
static atomic_int runs, ended, seen_before, seen, fd_seen, child_seen, may_end;
static _Atomic int32_t cause;

static void
reset(void)
{
  atomic_store(&runs, 0);
  atomic_store(&ended, 0);
  atomic_store(&seen_before, 0);
  atomic_store(&seen, 0);
  atomic_store(&fd_seen, 0);
  atomic_store(&child_seen, 0);
  atomic_store(&may_end, 0);
  atomic_store(&cause, 0);
}

static const char *
how(void)
{
  return is_local ? "by commit" : "by renewal";
}

static int32_t
learnt(void)
{
  return is_local ? DK_LEARNT_BY_COMMIT : DK_LEARNT_BY_RENEWAL;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* Ends normally as soon as it is signalled. */
static dk_result
obeys(dk_task *task, dk_str input)
{
  atomic_fetch_add(&seen_before, dk_task_cancelled(task) != DK_CAUSE_NONE);
  atomic_fetch_add(&runs, 1);
  atomic_store(&cause, dk_task_sleep(task, 3600 * 1000));
  atomic_fetch_add(&seen, dk_task_cancelled(task) != DK_CAUSE_NONE);
  atomic_fetch_add(&ended, 1);
  return dk_done(task, input);
}

/* Never checks its token. */
static dk_result
unaware(dk_task *task, dk_str input)
{
  atomic_fetch_add(&runs, 1);
  while (!atomic_load(&may_end))
    a_moment();
  atomic_fetch_add(&ended, 1);
  return dk_done(task, input);
}

static dk_result
echo(dk_task *task, dk_str input)
{
  atomic_fetch_add(&ended, 1);
  return dk_done(task, input);
}

/* Work in another thread, which waits on the descriptor of a clone. */
static void *
child_work(void *token)
{
  struct pollfd set = {.fd = dk_token_fd(token), .events = POLLIN};

  atomic_fetch_add(&runs, 1);
  if (poll(&set, 1, 60000) == 1)
    atomic_fetch_add(&child_seen, 1);
  dk_token_free(token);
  return NULL;
}

static dk_result
with_child(dk_task *task, dk_str input)
{
  struct pollfd set = {.fd = dk_task_cancel_fd(task), .events = POLLIN};
  pthread_t thread;

  (void)input;
  pthread_create(&thread, NULL, child_work, dk_task_token(task));
  atomic_fetch_add(&fd_seen, poll(&set, 1, 60000) == 1);
  pthread_join(thread, NULL);
  atomic_fetch_add(&ended, 1);
  return dk_error(task, "interrupted");
}

/* The latest event of that number names everything that is known of the activity. */
static void
is_told_of(struct shop *shop, int32_t number, uint64_t id, const char *name)
{
  struct heard heard = listener_latest(shop->listener, number);
  struct whom whom = shop_whom(shop, id, name);

  ok(whom.token[0] != '\0' && heard_names(&heard, &whom), "the line names the activity");
}

/* One in which this way is the first to signal: if it is the commit, no renewal comes before it,
 * however long this process waits for a processor. */
static struct shop *
shop_for_this_way(void)
{
  struct shop *shop = shop_open();

  if (is_local)
    shop->options.activity_renewal_buffer_ms = 500;
  return shop;
}

/* ---- one ------------------------------------------------------------------------------------- */

static void
test_token(void)
{
  struct shop *shop = shop_for_this_way();

  reset();
  shop_register(shop, "obeys", obeys);
  shop_start(shop);
  shop_order(shop, 1, "obeys", "x");
  ok(UNTIL(atomic_load(&runs) == 1), "%s: an activity runs", how());
  shop_cancel(shop, 1, 1, is_local);
  ok(UNTIL(atomic_load(&ended) == 1), "it is signalled to end");
  cmp_ok(atomic_load(&seen_before), "==", 0, "its token was not set at first");
  cmp_ok(atomic_load(&seen), "==", 1, "and was in the end");
  cmp_ok(atomic_load(&cause), "==", DK_CAUSE_CANCELLED, "with its cause");
  ok(UNTIL(shop_counter(shop, COUNT_GRACE_KEPT) == 1), "it has kept its grace");
  listener_until(shop->listener, DK_LOG_ACTIVITY_CANCELLED, 1);
  cmp_ok(listener_matching(shop->listener, DK_LOG_ACTIVITY_CANCELLED, DK_CAUSE_CANCELLED,
                           learnt()), "==", 1, "one line, with cause and how it was learnt");
  is_told_of(shop, DK_LOG_ACTIVITY_CANCELLED, 1, "obeys");
  cmp_ok(shop_counter(shop, is_local ? COUNT_LEARNT_BY_COMMIT : COUNT_LEARNT_BY_RENEWAL), "==", 1,
         "it is counted");
  shop_order(shop, 2, "obeys", "x");
  ok(UNTIL(atomic_load(&runs) == 2), "the slot is free for another");
  cmp_ok(faulty_calls(shop->faulty, FAULTY_ACK_WORK), "==", 0, "the result was not acknowledged");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_WARNING) +
         listener_level(shop->listener, DK_LEVEL_ERROR), "==", 0, "no warning is logged");
  shop_cancel(shop, 2, 1, is_local);
  shop_look(shop);
  cmp_ok(shop->came[1].times + shop->came[2].times, "==", 0, "and neither result arrived");
  shop_close(shop);
}

static void
test_fd_and_child(void)
{
  struct shop *shop = shop_for_this_way();

  reset();
  shop_register(shop, "child", with_child);
  shop_start(shop);
  shop_order(shop, 1, "child", "x");
  ok(UNTIL(atomic_load(&runs) == 1), "%s: an activity and a thread of its own wait", how());
  shop_cancel(shop, 1, 1, is_local);
  ok(UNTIL(atomic_load(&ended) == 1), "both end");
  cmp_ok(atomic_load(&fd_seen), "==", 1, "the descriptor was readable");
  cmp_ok(atomic_load(&child_seen), "==", 1, "for the clone, too");
  shop_look(shop);
  cmp_ok(shop->came[1].times, "==", 0, "an error after the signal is dropped, too");
  shop_close(shop);
}

/* A body that never checks its token needs no change: its late result is dropped. */
static void
test_unaware(void)
{
  struct shop *shop = shop_for_this_way();

  reset();
  shop_register(shop, "unaware", unaware);
  shop_start(shop);
  shop_order(shop, 1, "unaware", "x");
  ok(UNTIL(atomic_load(&runs) == 1), "%s: an activity that never checks its token runs", how());
  shop_cancel(shop, 1, 1, is_local);
  ok(listener_until(shop->listener, DK_LOG_ACTIVITY_CANCELLED, 1), "it is signalled");
  atomic_store(&may_end, 1);
  ok(UNTIL(shop_counter(shop, COUNT_GRACE_KEPT) == 1), "it ends in its grace, by chance");
  shop_look(shop);
  cmp_ok(shop->came[1].times, "==", 0, "its result is dropped");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_WARNING), "==", 0, "no warning is logged");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_INFO), "==", 1,
         "one line of information is logged");
  shop_close(shop);
}

/* The acknowledgement is the first to find that the row was deleted. */
static void
test_learnt_by_ack(void)
{
  struct shop *shop = shop_open();

  reset();
  shop_register(shop, "unaware", unaware);
  shop->options.activity_renewal_buffer_ms = 500; /* no renewal comes before it */
  shop_start(shop);
  shop_order(shop, 1, "unaware", "x");
  ok(UNTIL(atomic_load(&runs) == 1), "an activity runs");
  shop_cancel(shop, 1, 1, false);
  atomic_store(&may_end, 1);
  ok(listener_until(shop->listener, DK_LOG_RESULT_REFUSED, 1), "its result is refused");
  cmp_ok(listener_matching(shop->listener, DK_LOG_RESULT_REFUSED, DK_CAUSE_CANCELLED,
                           DK_LEARNT_BY_ACK), "==", 1, "which shows the cancellation");
  is_told_of(shop, DK_LOG_RESULT_REFUSED, 1, "unaware");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_INFO), "==", 1, "one line is logged");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_WARNING), "==", 0, "no warning is logged");
  cmp_ok(shop_counter(shop, COUNT_ACTIVITIES_CANCELLED), "==", 1, "counted as cancelled");
  cmp_ok(shop_counter(shop, COUNT_LEARNT_BY_ACK), "==", 1, "and how it was learnt");
  shop_look(shop);
  cmp_ok(shop->came[1].times, "==", 0, "nothing came back");
  shop_close(shop);
}

static void
test_before_start(void)
{
  struct shop *shop = shop_for_this_way();

  reset();
  shop_register(shop, "obeys", obeys);
  shop_register(shop, "echo", echo);
  shop->options.activity_slots = 1;
  shop_start(shop);
  shop_order(shop, 1, "obeys", "x");
  ok(UNTIL(atomic_load(&runs) == 1), "%s: the only slot is busy", how());
  shop_order(shop, 2, "obeys", "x");
  shop_order(shop, 3, "echo", "y");
  shop_cancel(shop, 1, 2, is_local);
  is(shop_wait(shop, 3)->text, "y", "it is free once both before are cancelled");
  cmp_ok(atomic_load(&runs), "==", 1, "the second never ran");
  cmp_ok(shop->came[1].times + shop->came[2].times, "==", 0, "neither came back");
  shop_close(shop);
}

/* Acknowledged before the cancelling commit, it is there. */
/* Its row was locked for us, and deleted before the fetch returned it. */
static void
test_on_its_way(void)
{
  struct shop *shop = shop_open();

  reset();
  shop->options.activity_renewal_buffer_ms = 1; /* no renewal in time */
  shop_register(shop, "obeys", obeys);
  faulty_plan(shop->faulty, FAULTY_FETCH_WORK, 0, 1, FAULT_LATE, DK_OK);
  shop_start(shop);
  shop_order(shop, 1, "obeys", "x");
  ok(faulty_until_hanging(shop->faulty, 1),
     "an activity is fetched, but the answer has not arrived yet");
  shop_cancel(shop, 1, 1, true);
  faulty_release(shop->faulty);
  ok(listener_until(shop->listener, DK_LOG_ACTIVITY_CANCELLED, 1),
     "it is signalled when it arrives");
  cmp_ok(listener_matching(shop->listener, DK_LOG_ACTIVITY_CANCELLED, DK_CAUSE_CANCELLED,
                           DK_LEARNT_BY_COMMIT), "==", 1, "by the commit");
  faulty_heal(shop->faulty);
  shop_order(shop, 2, "obeys", "x");
  ok(UNTIL(atomic_load(&runs) == 1), "the next one runs");
  cmp_ok(atomic_load(&seen_before), "==", 0, "and is not signalled");
  shop_cancel(shop, 2, 1, true);
  ok(UNTIL(atomic_load(&ended) == 1), "before it is cancelled itself");
  cmp_ok(atomic_load(&runs), "==", 1, "the first has never run");
  shop_close(shop);
}

static void
test_too_late(void)
{
  struct shop *shop = shop_for_this_way();

  reset();
  shop_register(shop, "echo", echo);
  shop_start(shop);
  shop_order(shop, 1, "echo", "x");
  ok(UNTIL(shop_counter(shop, COUNT_ACTIVITIES_COMPLETED) == 1), "%s: one completes", how());
  shop_cancel(shop, 1, 1, is_local);
  cmp_ok(shop->came[1].times, "==", 1, "a cancellation that comes later finds the result");
  cmp_ok(shop_counter(shop, COUNT_ACTIVITIES_CANCELLED), "==", 0, "and cancels nothing");
  shop_close(shop);
}

/* All slots are busy, and all their activities are cancelled at once. */
static void
test_many(void)
{
  uint32_t many = dk_memory_is_watched() ? 60 : 500;
  struct shop *shop = shop_for_this_way();
  uint32_t came = 0;

  reset();
  shop_register(shop, "obeys", obeys);
  shop_register(shop, "echo", echo);
  shop->options.activity_slots = many;
  shop->options.max_quarantined = many;
  for (uint64_t i = 1; i <= many; i++)
    shop_order(shop, i, "obeys", "x");
  shop_start(shop);
  ok(UNTIL(atomic_load(&runs) == (int)many), "%s: %u activities fill all slots", how(), many);
  shop_order(shop, many + 1, "echo", "y");
  shop_cancel(shop, 1, many, is_local);
  is(shop_wait(shop, many + 1)->text, "y", "cancelled at once, they leave their slots");
  ok(UNTIL(shop_counter(shop, COUNT_GRACE_KEPT) == many), "all of them");
  for (uint32_t i = 1; i <= many; i++)
    came += shop->came[i].times;
  cmp_ok(came, "==", 0, "no result arrives");
  listener_until(shop->listener, DK_LOG_ACTIVITY_CANCELLED, many);
  cmp_ok(listener_matching(shop->listener, DK_LOG_ACTIVITY_CANCELLED, DK_CAUSE_CANCELLED,
                           learnt()), "==", many, "a line for each, with cause and path");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_INFO), "==", many, "and no other");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_WARNING) +
         listener_level(shop->listener, DK_LEVEL_ERROR), "==", 0, "no warning, no error");
  cmp_ok(shop_counter(shop, COUNT_ACTIVITIES_CANCELLED), "==", many, "the counters say the same");
  cmp_ok(shop_counter(shop, is_local ? COUNT_LEARNT_BY_COMMIT : COUNT_LEARNT_BY_RENEWAL), "==",
         many, "all of them");
  cmp_ok(faulty_calls(shop->faulty, FAULTY_ACK_WORK), "==", 1, "only the other acknowledged");
  shop_close(shop);
}

/* ---- what is no cancellation ----------------------------------------------------------------- */

static void
test_busy_is_none(void)
{
  struct shop *shop = shop_open();

  reset();
  shop_register(shop, "unaware", unaware);
  faulty_plan(shop->faulty, FAULTY_RENEW_WORK, 0, 1, FAULT_REFUSE, DK_BUSY);
  shop->options.activity_lock_ms = 6000;
  shop->options.activity_renewal_buffer_ms = 5950;
  shop_start(shop);
  shop_order(shop, 1, "unaware", "x");
  ok(UNTIL(faulty_successes(shop->faulty, FAULTY_RENEW_WORK) > 0), "a renewal that fails is "
     "tried again");
  ok(UNTIL(listener_latest(shop->listener, DK_LOG_RENEWED).activity_id == 1), "which is logged");
  struct heard retried = listener_latest(shop->listener, DK_LOG_RENEWAL_RETRIED);
  struct heard renewed = listener_latest(shop->listener, DK_LOG_RENEWED);
  struct whom whom = shop_whom(shop, 1, "unaware");
  whom.token = renewed.token;
  ok(renewed.token[0] != '\0' && heard_names(&retried, &whom), "the line names the activity");
  ok(heard_names(&renewed, &whom), "so does the line about the success");
  atomic_store(&may_end, 1);
  is(shop_wait(shop, 1)->text, "x", "and cancels nothing");
  shop_close(shop);
}

static void
test_lease_lost(void)
{
  struct shop *shop = shop_open();

  reset();
  shop_register(shop, "obeys", obeys);
  shop->options.activity_lock_ms = 700;
  shop->options.activity_renewal_buffer_ms = 600;
  faulty_plan(shop->faulty, FAULTY_RENEW_WORK, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  shop_start(shop);
  int64_t from = ticks_now();
  shop_order(shop, 1, "obeys", "x");
  ok(UNTIL(atomic_load(&ended) == 1), "a lease that cannot be renewed ends the activity");
  cmp_ok(ticks_now() - from, ">=", 600, "when it has ended, and not before");
  cmp_ok(atomic_load(&cause), "==", DK_CAUSE_LEASE_LOST, "with its cause");
  listener_until(shop->listener, DK_LOG_LEASE_LOST, 1);
  cmp_ok(listener_matching(shop->listener, DK_LOG_LEASE_LOST, DK_CAUSE_LEASE_LOST,
                           DK_LEARNT_BY_DEADLINE), ">=", 1, "learnt by the deadline");
  cmp_ok(shop_counter(shop, COUNT_ACTIVITIES_CANCELLED), "==", 0,
         "which does not count as cancelled");
  cmp_ok(faulty_calls(shop->faulty, FAULTY_ACK_WORK), "==", 0, "its result is not acknowledged");
  ok(UNTIL(atomic_load(&runs) >= 2), "it is run again");
  shop_close(shop);
}

/* A token of another delivery, or of another activity, has no effect here. */
static void
test_stranger(void)
{
  struct shop *shop = shop_open();
  struct dk_stolen stolen = {.struct_size = sizeof(stolen), .execution_id = 1, .activity_id = 1,
                             .lock_token = dk_str_of("of another worker")};

  reset();
  shop_register(shop, "unaware", unaware);
  shop_start(shop);
  shop_order(shop, 1, "unaware", "x");
  ok(UNTIL(atomic_load(&runs) == 1), "an activity runs");
  activity_pool_signal(shop->pool, dk_str_of("i"), &stolen, 1);
  atomic_store(&may_end, 1);
  is(shop_wait(shop, 1)->text, "x", "a row of another worker has no effect here");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_INFO), "==", 0, "and nothing is logged");
  shop_close(shop);
}

int
main(void)
{
  plan(NO_PLAN);
  for (int i = 0; i < 2; i++) {
    is_local = i == 0;
    test_token();
    test_fd_and_child();
    test_unaware();
    test_before_start();
    test_too_late();
    test_many();
  }
  test_on_its_way();
  test_learnt_by_ack();
  test_busy_is_none();
  test_lease_lost();
  test_stranger();
  return done_testing();
}
