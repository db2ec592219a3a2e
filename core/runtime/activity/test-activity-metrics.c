/* SPDX-License-Identifier: Apache-2.0 */
/* What changes the metrics of a worker: in each test one thing happens, and then all changes are
 * compared, so that a metric that is not named has not changed. */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/activities-alone.h"
#include "core/runtime/testing/prometheus-text.h"

/* No renewal comes by itself while a test runs. */
enum { LONG_MS = 600000 };

#define NOTIFIED(path) "dk_activity_cancel_notification_seconds_count{path=\"" path "\"} +1\n"
#define GRACE(outcome) "dk_activity_cancel_grace_total{outcome=\"" outcome "\"} +1\n"
#define RENEWALS(result, n) "dk_lock_renewals_total{result=\"" result "\"} " n "\n"
#define ACKS(result, n) "dk_work_acks_total{result=\"" result "\"} " n "\n"
#define STARTED "dk_activities_started_total +1\n"
#define ENDED(outcome) "dk_activities_total{outcome=\"" outcome "\"} +1\n"

static struct dk_registry *isolated;
static struct dk_zygote *zygote;
static atomic_int runs, may_end;

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
  (void)input;
  return dk_error(task, "no");
}

static dk_result
later_first(dk_task *task, dk_str input)
{
  return atomic_fetch_add(&runs, 1) == 0 ? dk_later(task, 1) : dk_done(task, input);
}

/* Ends when the test allows it. */
static dk_result
later_again(dk_task *task, dk_str input)
{
  (void)input;
  atomic_fetch_add(&runs, 1);
  while (!atomic_load(&may_end))
    a_moment();
  return dk_later(task, 1);
}

static dk_result
obeys(dk_task *task, dk_str input)
{
  atomic_fetch_add(&runs, 1);
  dk_task_sleep(task, 3600 * 1000);
  return dk_done(task, input);
}

/* Ends when the test allows it, and ignores its token. */
static dk_result
unaware(dk_task *task, dk_str input)
{
  atomic_fetch_add(&runs, 1);
  while (!atomic_load(&may_end))
    a_moment();
  return dk_done(task, input);
}

/* In a process. */
static dk_result
deaf(dk_task *task, dk_str input)
{
  while (input.len > 0)
    pause();
  return dk_done(task, input);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static struct shop *
open_shop(void)
{
  struct shop *shop = shop_open();

  atomic_store(&runs, 0);
  atomic_store(&may_end, 0);
  shop_register(shop, "echo", echo);
  shop_register(shop, "fails", fails);
  shop_register(shop, "later", later_first);
  shop_register(shop, "later again", later_again);
  shop_register(shop, "obeys", obeys);
  shop_register(shop, "unaware", unaware);
  shop->options.activity_lock_ms = LONG_MS;
  shop->options.activity_renewal_buffer_ms = 500;
  return shop;
}

static struct scrape *
scrape(struct shop *shop)
{
  struct dk_text text = DK_TEXT_EMPTY;

  metrics_write(&shop->log, &text);
  struct scrape *found = scrape_read((dk_str){dk_text_str(&text), text.length});
  if (dk_text_failed(&text) || found->complaint[0])
    BAIL_OUT("the metrics cannot be read: %s", found->complaint);
  dk_text_done(&text);
  return found;
}

/* Whether exactly this has been counted so far. */
static bool
counts(struct shop *shop, const char *expected, bool is_told)
{
  struct scrape *now = scrape(shop);
  char *changes = scrape_changes(NULL, now);
  bool is_expected = scrape_alike(changes, expected);

  if (!is_expected && is_told)
    diag("counted:\n%sexpected:\n%s", changes, expected);
  free(changes);
  scrape_free(now);
  return is_expected;
}

/* Once everything has ended, so that no count changes any more. */
static void
counts_in_the_end(struct shop *shop, const char *expected, const char *what)
{
  struct dk_leftover leftover;

  if (!shop_stop(shop, 60000, &leftover))
    BAIL_OUT("the worker does not stop");
  ok(counts(shop, expected, true), "%s: this is counted, and nothing else", what);
}

static double
seconds(struct shop *shop, const char *sum)
{
  struct scrape *now = scrape(shop);
  double value = scrape_value(now, sum);

  scrape_free(now);
  return value;
}

/* A tick may be under way at the beginning. */
static double
since(int64_t tick)
{
  return (double)(ticks_now() + 1 - tick) / 1000;
}

/* So that what is counted from before is seen to be. */
static void
wait_a_while(void)
{
  int64_t until = ticks_now() + 60;

  UNTIL(ticks_now() >= until);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void
test_ends(void)
{
  struct shop *shop = open_shop();

  shop_start(shop);
  shop_order(shop, 1, "echo", "x");
  shop_wait(shop, 1);
  counts_in_the_end(shop, ACKS("ok", "+1") STARTED ENDED("completed"), "one completes");
  shop_close(shop);

  shop = open_shop();
  shop_start(shop);
  shop_order(shop, 1, "fails", "x");
  shop_wait(shop, 1);
  counts_in_the_end(shop, ACKS("ok", "+1") STARTED ENDED("failed"), "one fails");
  shop_close(shop);

  shop = open_shop();
  shop_start(shop);
  shop_order(shop, 1, "later", "x");
  shop_wait(shop, 1);
  counts_in_the_end(shop, ACKS("ok", "+1") "dk_activities_started_total +2\n" ENDED("completed")
                    ENDED("put_off"), "one is delayed, and completes");
  shop_close(shop);
}

/* It is signalled to end, and given back: no cancellation, and no acknowledgement. */
static void
test_stop(void)
{
  struct shop *shop = open_shop();
  struct dk_leftover leftover;

  shop_start(shop);
  shop_order(shop, 1, "obeys", "x");
  UNTIL(atomic_load(&runs) == 1);
  if (!shop_stop(shop, 0, &leftover))
    BAIL_OUT("the worker does not stop");
  ok(counts(shop, GRACE("kept") STARTED, true), "the worker stops: only the grace is counted");
  shop_close(shop);
}

/* ---- signalled to end ------------------------------------------------------------------------ */

static void
test_local(void)
{
  struct shop *shop = open_shop();

  shop_start(shop);
  shop_order(shop, 1, "obeys", "x");
  UNTIL(atomic_load(&runs) == 1);
  wait_a_while();
  int64_t from = ticks_now();
  shop_cancel(shop, 1, 1, true);
  UNTIL(shop_counter(shop, COUNT_GRACE_KEPT) == 1);
  double longest = since(from);
  counts_in_the_end(shop, NOTIFIED("local") GRACE("kept") STARTED ENDED("cancelled"),
                    "signalled by the commit");
  double took = seconds(shop, "dk_activity_cancel_notification_seconds_sum{path=\"local\"}");
  ok(took > 0 && took <= longest, "%.6f s after it, of %.3f s at most", took, longest);
  shop_close(shop);
}

/* The commit deletes the row of a fetch that has not returned. */
static void
test_local_early(void)
{
  struct shop *shop = open_shop();

  faulty_plan(shop->faulty, FAULTY_FETCH_WORK, 0, 1, FAULT_LATE, DK_OK);
  shop_start(shop);
  shop_order(shop, 1, "obeys", "x");
  faulty_until_hanging(shop->faulty, 1);
  shop_cancel(shop, 1, 1, true);
  wait_a_while();
  faulty_release(shop->faulty);
  UNTIL(shop_counter(shop, COUNT_LEARNT_BY_COMMIT) == 1);
  counts_in_the_end(shop, NOTIFIED("local") ENDED("cancelled"), "on its way to its worker");
  ok(seconds(shop, "dk_activity_cancel_notification_seconds_sum{path=\"local\"}") >= 0.059,
     "from the commit on, not from when it came");
  shop_close(shop);
}

/* The renewal is delayed until the row is deleted; the lease was valid when it was fetched. */
static void
test_renew(void)
{
  struct shop *shop = open_shop();

  shop->options.activity_renewal_buffer_ms = LONG_MS - 50;
  faulty_plan(shop->faulty, FAULTY_RENEW_WORK, 0, 1, FAULT_HANG, DK_OK);
  shop_start(shop);
  int64_t from = ticks_now();
  shop_order(shop, 1, "obeys", "x");
  ok(faulty_until_hanging(shop->faulty, 1), "a renewal is under way");
  shop_cancel(shop, 1, 1, false);
  faulty_release(shop->faulty);
  UNTIL(shop_counter(shop, COUNT_GRACE_KEPT) == 1);
  double longest = since(from) + 0.01; /* the store's clock ticks at other moments */
  counts_in_the_end(shop, NOTIFIED("renew") GRACE("kept") RENEWALS("lost", "+1") STARTED
                    ENDED("cancelled"), "signalled by a renewal");
  double took = seconds(shop, "dk_activity_cancel_notification_seconds_sum{path=\"renew\"}");
  ok(took >= 0.049 && took <= longest, "%.3f s after it was good, of %.3f s at most", took,
     longest);
  shop_close(shop);
}

/* Of several renewals the last one counts. */
static void
test_renew_after_others(void)
{
  struct shop *shop = open_shop();

  shop->options.activity_renewal_buffer_ms = LONG_MS - 100;
  faulty_plan(shop->faulty, FAULTY_RENEW_WORK, 3, 1, FAULT_HANG, DK_OK);
  shop_start(shop);
  int64_t from = ticks_now();
  shop_order(shop, 1, "obeys", "x");
  faulty_until_hanging(shop->faulty, 1);
  shop_cancel(shop, 1, 1, false);
  faulty_release(shop->faulty);
  UNTIL(shop_counter(shop, COUNT_GRACE_KEPT) == 1);
  double longest = since(from);
  counts_in_the_end(shop, NOTIFIED("renew") GRACE("kept") RENEWALS("ok", "+3")
                    RENEWALS("lost", "+1") STARTED ENDED("cancelled"), "signalled by the fourth");
  double took = seconds(shop, "dk_activity_cancel_notification_seconds_sum{path=\"renew\"}");
  ok(took >= 0.099 && took <= longest - 0.29, "%.3f s after the third, %.3f s after its fetch",
     took, longest);
  shop_close(shop);
}

static void
test_ack(void)
{
  struct shop *shop = open_shop();

  shop_start(shop);
  shop_order(shop, 1, "unaware", "x");
  UNTIL(atomic_load(&runs) == 1);
  wait_a_while();
  shop_cancel(shop, 1, 1, false);
  atomic_store(&may_end, 1);
  UNTIL(shop_counter(shop, COUNT_LEARNT_BY_ACK) == 1);
  counts_in_the_end(shop, NOTIFIED("ack") ACKS("refused", "+1") STARTED ENDED("cancelled"),
                    "its result is refused");
  ok(seconds(shop, "dk_activity_cancel_notification_seconds_sum{path=\"ack\"}") >= 0.05,
     "long after it was good");
  shop_close(shop);
}

/* The lease cannot be renewed until it ends; the activity is not fetched again. */
static void
test_deadline(void)
{
  struct shop *shop = open_shop();

  shop->options.activity_lock_ms = 700;
  shop->options.activity_renewal_buffer_ms = 600;
  faulty_plan(shop->faulty, FAULTY_RENEW_WORK, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  faulty_plan(shop->faulty, FAULTY_FETCH_WORK, 1, UINT32_MAX, FAULT_HANG, DK_OK);
  shop_order(shop, 1, "obeys", "x");
  shop_start(shop);
  UNTIL(shop_counter(shop, COUNT_GRACE_KEPT) == 1);
  counts_in_the_end(shop, NOTIFIED("deadline") GRACE("kept") RENEWALS("retried", "+N")
                    RENEWALS("lost", "+1") STARTED ENDED("lost"), "signalled by the deadline");
  ok(seconds(shop, "dk_activity_cancel_notification_seconds_sum{path=\"deadline\"}") >= 0.699,
     "when the whole lease has ended");
  shop_close(shop);
}

/* ---- graces ---------------------------------------------------------------------------------- */

static void
test_quarantine(void)
{
  struct shop *shop = open_shop();

  shop->options.grace_ms = 50;
  shop_start(shop);
  shop_order(shop, 1, "unaware", "x");
  UNTIL(atomic_load(&runs) == 1);
  shop_cancel(shop, 1, 1, true);
  ok(UNTIL(counts(shop, NOTIFIED("local") GRACE("quarantined") "dk_activity_stuck +1\n" STARTED
                  ENDED("cancelled"), false)), "one does not end, and its thread is stuck");
  atomic_store(&may_end, 1);
  UNTIL(shop_counter(shop, COUNT_QUARANTINED_NOW) == 0);
  counts_in_the_end(shop, NOTIFIED("local") GRACE("quarantined") STARTED ENDED("cancelled"),
                    "it returns after all");
  shop_close(shop);
}

static void
test_killed(void)
{
  struct shop *shop = shop_open_with(faulty_open_model(), isolated);

  shop->options.zygote = zygote;
  shop->options.grace_ms = 50;
  shop->options.activity_lock_ms = LONG_MS;
  shop->options.activity_renewal_buffer_ms = 500;
  shop_start(shop);
  shop_order(shop, 1, "deaf", "x");
  UNTIL(shop_counter(shop, COUNT_ACTIVITIES_STARTED) == 1);
  shop_cancel(shop, 1, 1, true);
  UNTIL(shop_counter(shop, COUNT_GRACE_EXCEEDED) == 1);
  counts_in_the_end(shop, NOTIFIED("local") GRACE("killed") STARTED ENDED("cancelled"),
                    "one does not end, and its process is killed");
  shop->registry = NULL; /* does not belong to the shop */
  shop_close(shop);
}

/* ---- leases and acknowledgements ------------------------------------------------------------- */

static void
test_renewals(void)
{
  struct shop *shop = open_shop();

  shop->options.activity_renewal_buffer_ms = LONG_MS - 20;
  faulty_plan(shop->faulty, FAULTY_RENEW_WORK, 3, UINT32_MAX, FAULT_HANG, DK_OK);
  shop_start(shop);
  shop_order(shop, 1, "unaware", "x");
  faulty_until_hanging(shop->faulty, 1);
  atomic_store(&may_end, 1);
  shop_wait(shop, 1);
  counts_in_the_end(shop, RENEWALS("ok", "+3") ACKS("ok", "+1") STARTED ENDED("completed"),
                    "three renewals, and one that is cancelled");
  shop_close(shop);
}

static void
test_acks(enum fault fault, dk_status status, const char *expected, const char *what)
{
  struct shop *shop = open_shop();

  faulty_plan(shop->faulty, FAULTY_ACK_WORK, 0, 1, fault, status);
  shop_start(shop);
  shop_order(shop, 1, "echo", "x");
  shop_wait(shop, 1);
  counts_in_the_end(shop, expected, what);
  shop_close(shop);
}

/* What is given back is not counted as acknowledged: neither if that is repeated, nor if the row
 * does not exist. */
static void
test_given_back(void)
{
  struct shop *shop = open_shop();

  faulty_plan(shop->faulty, FAULTY_ABANDON_WORK, 0, 1, FAULT_REFUSE, DK_BUSY);
  shop_start(shop);
  shop_order(shop, 1, "later", "x");
  shop_wait(shop, 1);
  counts_in_the_end(shop, ACKS("ok", "+1") "dk_activities_started_total +2\n" ENDED("completed")
                    ENDED("put_off"), "it is given back at the second attempt");
  shop_close(shop);

  shop = open_shop();
  shop_start(shop);
  shop_order(shop, 1, "later again", "x");
  UNTIL(atomic_load(&runs) == 1);
  shop_cancel(shop, 1, 1, false);
  atomic_store(&may_end, 1);
  UNTIL(shop_counter(shop, COUNT_LEARNT_BY_ACK) == 1);
  counts_in_the_end(shop, NOTIFIED("ack") STARTED ENDED("cancelled") ENDED("put_off"),
                    "it cannot be given back any more");
  shop_close(shop);
}

static void
test_ack_lost(void)
{
  struct shop *shop = open_shop();

  shop->options.activity_lock_ms = 700;
  shop->options.activity_renewal_buffer_ms = 200;
  faulty_plan(shop->faulty, FAULTY_ACK_WORK, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  faulty_plan(shop->faulty, FAULTY_FETCH_WORK, 1, UINT32_MAX, FAULT_HANG, DK_OK);
  shop_order(shop, 1, "echo", "x");
  shop_start(shop);
  UNTIL(shop_counter(shop, COUNT_ACTIVITIES_LOST) == 1);
  counts_in_the_end(shop, NOTIFIED("deadline") ACKS("retried", "+N") ACKS("lost", "+1") STARTED
                    ENDED("lost"), "the store is unreachable until the lease has ended");
  shop_close(shop);
}

int
main(void)
{
  const struct dk_activity_traits traits = {.struct_size = sizeof(traits),
                                            .isolation = DK_IN_PROCESS};

  plan(NO_PLAN);
  isolated = dk_registry_new();
  if (!isolated || dk_register_activity(isolated, "deaf", deaf, &traits) != DK_OK ||
      dk_zygote_start(isolated, &zygote) != DK_OK)
    BAIL_OUT("no zygote");
  test_ends();
  test_stop();
  test_local();
  test_local_early();
  test_renew();
  test_renew_after_others();
  test_ack();
  test_deadline();
  test_quarantine();
  test_killed();
  test_renewals();
  test_acks(FAULT_REFUSE, DK_BUSY, ACKS("ok", "+1") ACKS("retried", "+1") STARTED
            ENDED("completed"), "the store is busy once");
  test_acks(FAULT_FORGET, DK_OUTCOME_UNKNOWN, ACKS("retried", "+1") ACKS("unknown", "+1") STARTED
            ENDED("completed"), "an answer is lost");
  test_acks(FAULT_REFUSE, DK_REFUSED, ACKS("ok", "+1") ACKS("error", "+1")
            "dk_delayed_total{code=\"refused\"} +1\ndk_activities_started_total +2\n"
            ENDED("completed") ENDED("put_off"), "the store refuses its result at first");
  test_acks(FAULT_REFUSE, DK_TOO_LARGE, ACKS("ok", "+1") ACKS("error", "+1") STARTED
            ENDED("failed"), "the store will not have its result");
  test_given_back();
  test_ack_lost();
  dk_zygote_stop(zygote);
  dk_registry_free(isolated);
  return done_testing();
}
