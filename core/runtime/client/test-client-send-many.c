/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of cancelling many: on a store that fails, when the call is ended early, and many at
 * once. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/cancel-outcomes.h"

/* ---- a store that fails ---------------------------------------------------------------------- */

static const dk_str three[] = {{"a", 1}, {"b", 1}, {"c", 1}};

static void
make_three(struct hand *h)
{
  for (size_t i = 0; i < 3; i++)
    hand_store(h, three[i]);
}

static void
test_unknown(void)
{
  struct hand h;
  struct told told = nothing_told();

  hand_begin(&h, false);
  make_three(&h);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 1, 1, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_OK, "an answer that was lost");
  is(counted(&told), "3 requested, 0 already, 0 over, 0 not found, 0 failed",
     "is requested again, and the stored request is our own");
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_OK,
         "or it might be that of another client");
  is(counted(&told), "1 requested, 2 already, 0 over, 0 not found, 0 failed",
     "which cannot be distinguished then");
  forget(&told);
  hand_end(&h);
}

static void
test_lost(void)
{
  struct hand h;
  struct told told = nothing_told();
  pthread_t canceller;

  hand_begin(&h, false);
  make_three(&h);
  hand_lose(&h, FAULTY_ENQUEUE_MESSAGE, &canceller);
  cmp_ok(cancel_ids(&h, three, 1, NULL, &told), "==", DK_OUTCOME_UNKNOWN,
         "an answer that is lost, and its repetition cancelled");
  ok(strstr(dk_text_str(&told.failures), ": DK_OUTCOME_UNKNOWN: as the test has planned it"),
     "has the error text of the first: %s", dk_text_str(&told.failures));
  hand_lost(&h, canceller);
  forget(&told);
  hand_end(&h);
}

/* A store that takes long to answer that it is busy: no sender repeats for longer than if it had
 * answered at once.  The clock is the one of the library; the first attempt takes longer than the
 * limit. */
static void
test_slow(void)
{
  struct hand h;
  struct told told = nothing_told();

  hand_begin(&h, false);
  make_three(&h);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, UINT32_MAX, FAULT_SLOW, DK_BUSY);
  uint64_t before = faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_OK, "a store that is busy, and slow");
  is(dk_text_str(&told.text), "a=failed/0 b=failed/0 c=failed/0 ", "fails for all");
  cmp_ok(faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE) - before, "<=", 3 + 2,
         "and is hardly asked again");
  forget(&told);
  hand_end(&h);
}

static void
test_busy(void)
{
  struct hand h;
  struct told told = nothing_told();

  hand_begin(&h, false);
  make_three(&h);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 1, 3, FAULT_REFUSE, DK_BUSY);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_OK, "a store that is busy for a moment");
  is(counted(&told), "3 requested, 0 already, 0 over, 0 not found, 0 failed", "is waited for");
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 1, 9, FAULT_REFUSE, DK_BUSY);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_OK, "for longer");
  is(dk_text_str(&told.text), "a=already/0 b=failed/0 c=already/0 ", "it is not for one, and the "
     "others succeed");
  ok(strstr(dk_text_str(&told.failures), "100 enqueue_for_orchestrator: DK_BUSY: "), "why: %s",
     dk_text_str(&told.failures));
  is(dk_client_error(h.client), "", "but the whole call does not fail");
  faulty_plan(h.faulty, FAULTY_LIST_INSTANCES, 0, 2, FAULT_REFUSE, DK_UNAVAILABLE);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_OK,
         "a store that is unreachable for a moment");
  is(counted(&told), "0 requested, 3 already, 0 over, 0 not found, 0 failed", "is waited for, too");
  forget(&told);
  hand_end(&h);
}

/* The store becomes unreachable after the first of three, and remains so. */
static void
test_away(void)
{
  struct hand h;
  struct told told = nothing_told();
  struct dk_instance_filter filter = of_name("order");

  hand_begin(&h, false);
  make_three(&h);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 1, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  uint64_t before = faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_UNAVAILABLE, "a store that goes away");
  is(dk_text_str(&told.text), "a=requested/0 b=failed/0 c=failed/0 ", "leaves the others undone");
  is(counted(&told), "1 requested, 0 already, 0 over, 0 not found, 2 failed", "which is counted");
  cmp_ok(faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE) - before, "==", 10,
         "without being asked for each of them");
  ok(strstr(dk_client_error(h.client), "DK_UNAVAILABLE"), "with the error");
  forget(&told);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 1, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  cmp_ok(dk_cancel_matching(h.client, &filter, NULL, hear, &told, &told.counts), "==",
         DK_UNAVAILABLE, "by filter");
  is(counted(&told), "0 requested, 1 already, 0 over, 0 not found, 2 failed",
     "the batch that it had come to");
  faulty_heal(h.faulty);
  faulty_plan(h.faulty, FAULTY_LIST_INSTANCES, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_UNAVAILABLE, "away from the beginning");
  is(dk_text_str(&told.text), "a=failed/0 b=failed/0 c=failed/0 ", "all are undone");
  faulty_heal(h.faulty);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_OK, "and when it is back");
  is(dk_text_str(&told.text), "a=already/0 b=requested/0 c=requested/0 ", "the rest is done");
  forget(&told);
  hand_end(&h);
}

static void
test_read_only(void)
{
  struct hand h;
  struct told told = nothing_told();
  struct dk_cancel_options options = an_option();

  hand_begin(&h, false);
  make_three(&h);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, UINT32_MAX, FAULT_REFUSE, DK_REFUSED);
  uint64_t before = faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE);
  cmp_ok(cancel_ids(&h, three, 3, &options, &told), "==", DK_REFUSED, "a store that is read-only");
  is(dk_text_str(&told.text), "a=failed/0 b=failed/0 c=failed/0 ", "refuses all");
  cmp_ok(faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE) - before, "==", 1, "and is asked once");
  options.flags = DK_CANCEL_DRY_RUN;
  cmp_ok(cancel_ids(&h, three, 3, &options, &told), "==", DK_OK, "a dry run goes");
  is(counted(&told), "3 requested, 0 already, 0 over, 0 not found, 0 failed", "and tells");
  forget(&told);
  hand_end(&h);
}

/* ---- ending it early ------------------------------------------------------------------------- */

static void
test_stopped(void)
{
  struct hand h;
  struct told told = nothing_told();

  hand_begin(&h, false);
  make_three(&h);
  told.stop_after = 2;
  cmp_ok(dk_cancel_many(h.client, three, 3, NULL, hear, &told, &told.counts), "==",
         DK_CALL_CANCELLED, "a callback that ends the call");
  is(dk_text_str(&told.text), "a=requested/0 b=requested/0 ", "is not called again");
  is(counted(&told), "3 requested, 0 already, 0 over, 0 not found, 0 failed",
     "what was done before it was called is counted");
  forget(&told);
  told.stop_after = 1;
  cmp_ok(dk_cancel_by_name(h.client, "order", NULL, hear, &told, &told.counts), "==",
         DK_CALL_CANCELLED, "by name, too");
  cmp_ok(told.counts.already_requested, "==", 3, "with its counts");
  dk_cancel(h.canceller);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_CALL_CANCELLED, "a cancelled call");
  is(counted(&told), "0 requested, 0 already, 0 over, 0 not found, 0 failed",
     "nothing was tried, and none has failed");
  dk_canceller_reset(h.canceller);
  cmp_ok(dk_cancel_many(h.client, three, 3, NULL, NULL, NULL, NULL), "==", DK_OK,
         "a callback is not required");
  forget(&told);
  hand_end(&h);
}

enum { MANY = 1100 };

static void
make_many(struct hand *h)
{
  char id[16];

  for (int i = 0; i < MANY; i++) {
    snprintf(id, sizeof(id), "i-%04d", i);
    hand_store(h, dk_str_of(id));
  }
}

static int32_t
call_back(void *context, const struct dk_cancel_outcome *outcome)
{
  struct hand *h = context;

  (void)outcome;
  dk_cancel(h->canceller);
  return 0;
}

/* Ended by the callback after the first batch, and while the client waits for an unreachable
 * store. */
static void
test_called_back(void)
{
  struct hand h;
  struct dk_cancel_counts counts = {.struct_size = sizeof(counts)};

  hand_begin(&h, false);
  make_many(&h);
  cmp_ok(dk_cancel_by_name(h.client, "order", NULL, call_back, &h, &counts), "==",
         DK_CALL_CANCELLED, "cancelled after the first batch");
  ok(counts.requested == 500 && counts.failed == 0, "which is done, and none has failed");
  hand_end(&h);
}

static void *
call_back_when_away(void *context)
{
  struct hand *h = context;

  faulty_until_calls(h->faulty, FAULTY_ENQUEUE_MESSAGE, MANY + 20);
  dk_cancel(h->canceller);
  return NULL;
}

static void
test_called_back_while_away(void)
{
  struct hand h;
  struct dk_cancel_counts counts = {.struct_size = sizeof(counts)};
  pthread_t thread;

  hand_begin(&h, false);
  make_many(&h);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  if (pthread_create(&thread, NULL, call_back_when_away, &h) != 0)
    BAIL_OUT("no thread");
  cmp_ok(dk_cancel_by_name(h.client, "order", NULL, NULL, NULL, &counts), "==", DK_CALL_CANCELLED,
         "cancelled while it waits for an unreachable store");
  pthread_join(thread, NULL);
  ok(counts.requested == 0 && counts.failed == 0, "nothing is done, and none has failed");
  hand_end(&h);
}

/* ---- many at once ---------------------------------------------------------------------------- */

static uint32_t most_hanging;

static void *
release_when_many(void *context)
{
  struct hand *h = context;

  faulty_until_hanging(h->faulty, 8);
  most_hanging = faulty_hanging(h->faulty);
  faulty_heal(h->faulty);
  faulty_release(h->faulty);
  return NULL;
}

/* A request is sent to each once, several at a time, and reported in their order. */
static void
test_at_once(void)
{
  struct hand h;
  struct told told = nothing_told();
  struct dk_text expected = DK_TEXT_EMPTY;
  pthread_t thread;

  hand_begin(&h, false);
  make_many(&h);
  for (int i = 0; i < MANY; i++)
    dk_text_printf(&expected, "i-%04d=requested/0 ", i);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 8, FAULT_HANG, DK_OK);
  uint64_t before = requests(&h);
  if (pthread_create(&thread, NULL, release_when_many, &h) != 0)
    BAIL_OUT("no thread");
  cmp_ok(dk_cancel_by_name(h.client, "order", NULL, hear, &told, &told.counts), "==", DK_OK,
         "%d by name", MANY);
  pthread_join(thread, NULL);
  cmp_ok(most_hanging, ">=", 8, "several are on their way at once");
  cmp_ok(requests(&h) - before, "==", MANY, "each is sent once");
  is(dk_text_str(&told.text), dk_text_str(&expected), "and reported, in their order");
  forget(&told);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 700, UINT32_MAX, FAULT_REFUSE, DK_REFUSED);
  cmp_ok(dk_cancel_by_name(h.client, "order", NULL, hear, &told, &told.counts), "==", DK_REFUSED,
         "a store that refuses from some moment on");
  cmp_ok(told.counts.already_requested, "==", 700, "what was done before is counted");
  cmp_ok(told.counts.failed, "==", 300, "and the rest of the batch has failed");
  cmp_ok(told.n, "==", 1000, "all these are reported");
  forget(&told);
  dk_text_done(&expected);
  hand_end(&h);
}

/* The callback may use the client. */
static int32_t
look(void *context, const struct dk_cancel_outcome *outcome)
{
  struct told *told = context;
  struct dk_instance_info info = hand_info();

  told->n += dk_client_status(told->client, outcome->instance, &info) == DK_OK &&
             info.status == outcome->status;
  return 0;
}

static void
test_use_within(void)
{
  struct hand h;
  struct told told = nothing_told();

  hand_begin(&h, false);
  make_three(&h);
  told.client = h.client;
  cmp_ok(dk_cancel_by_name(h.client, "order", NULL, look, &told, NULL), "==", DK_OK,
         "a function that asks the client, too");
  cmp_ok(told.n, "==", 3, "has its answers");
  hand_end(&h);
}

int
main(void)
{
  plan(NO_PLAN);
  test_unknown();
  test_lost();
  test_slow();
  test_busy();
  test_away();
  test_read_only();
  test_stopped();
  test_called_back();
  test_called_back_while_away();
  test_at_once();
  test_use_within();
  return exit_status();
}
