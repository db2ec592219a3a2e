/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the client: what it reports about an instance, and how it waits, with durakit.admin/1
 * and without.  The turns are made by hand, on the model. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/hand-made-turns.h"

enum { PATIENCE_MS = 60000 };

static const dk_str inst = {"inst", 4};

/* All information is in the histories. */
static bool is_plain;

/* Counts the events that the client reads. */
static atomic_uint reads, events_read;

__typeof__(dk_store_read_history) __real_dk_store_read_history, __wrap_dk_store_read_history;
dk_status
__wrap_dk_store_read_history(struct dk_store *store, struct dk_caller *caller,
                             const struct dk_read_history *request,
                             struct dk_history **ret_history)
{
  dk_status status = __real_dk_store_read_history(store, caller, request, ret_history);

  atomic_fetch_add(&reads, 1);
  if (status == DK_OK)
    atomic_fetch_add(&events_read, (unsigned)(*ret_history)->n_events);
  return status;
}

/* ---- infos ----------------------------------------------------------------------------------- */

static void
test_status(void)
{
  struct hand h;
  struct dk_instance_info info = hand_info();
  const struct event ended = {.kind = EVENT_COMPLETED, .text = dk_str_of("done")};

  hand_begin(&h, is_plain);
  cmp_ok(dk_client_status(h.client, inst, &info), "==", DK_NOT_FOUND,
         "the instance does not exist");
  hand_start(&h, inst);
  cmp_ok(dk_client_status(h.client, (dk_str){"instXYZ", 4}, &info), "==", DK_OK, "now it does");
  ok(is_text(info.instance, "inst"), "whose id needed no NUL");
  ok(info.status == DK_RUNNING && info.execution_id == 1 && info.n_events == 1 &&
       info.started_at > 0 && info.ended_at == 0 && is_text(info.output, NULL),
     "it runs");
  ok(is_text(info.name, "order") && is_text(info.version, "1.2.3"), "its start says what it is");
  hand_next_turn(&h, inst);
  hand_commit(&h, 1, 2, &ended, 1, DK_COMPLETED, "done");
  cmp_ok(dk_client_status(h.client, inst, &info), "==", DK_OK, "once it has ended");
  ok(info.status == DK_COMPLETED && info.n_events == 2 && info.ended_at > 0 &&
       is_text(info.output, "done") && is_text(info.name, "order") &&
       is_text(info.cancelled_by, NULL),
     "it is completed");
  cmp_ok(info.struct_size, "==", sizeof(info), "the size stays the caller's");
  hand_end(&h);
}

static void
test_cancelled(void)
{
  struct hand h;
  struct dk_instance_info info = hand_info();
  const struct event ends[] = {
    {.kind = EVENT_CANCEL_REQUESTED, .text = dk_str_of("too late"), .by = dk_str_of("me")},
    {.kind = EVENT_CANCELLED, .text = dk_str_of("too late"), .by = dk_str_of("me")}};

  hand_begin(&h, is_plain);
  hand_start(&h, inst);
  hand_next_turn(&h, inst);
  hand_commit(&h, 1, 2, ends, 2, DK_CANCELLED, "too late");
  cmp_ok(dk_client_status(h.client, inst, &info), "==", DK_OK, "one that was cancelled");
  ok(info.status == DK_CANCELLED && is_text(info.output, "too late") &&
       is_text(info.cancelled_by, "me"),
     "why, and by whom");
  hand_end(&h);
}

/* The first execution has ended, the second does not exist yet; then it does. */
static void
test_continued(void)
{
  struct hand h;
  struct dk_instance_info info = hand_info();
  const struct event continued = {.kind = EVENT_CONTINUED, .text = dk_str_of("next")};
  const struct event failed = {.kind = EVENT_FAILED, .text = dk_str_of("no money")};

  hand_begin(&h, is_plain);
  hand_start(&h, inst);
  hand_next_turn(&h, inst);
  hand_commit(&h, 1, 2, &continued, 1, DK_CONTINUED_AS_NEW, "next");
  cmp_ok(dk_client_status(h.client, inst, &info), "==", DK_OK, "between two executions");
  ok(info.status == DK_RUNNING && info.ended_at == 0 && is_text(info.output, NULL), "it runs");
  cmp_ok(dk_client_wait(h.client, inst, 0, &info), "==", DK_NOTHING, "it has not ended");
  hand_next_turn(&h, inst);
  const struct event both[] = {hand_started, failed};
  hand_commit(&h, 2, 1, both, 2, DK_FAILED, "no money");
  cmp_ok(dk_client_wait(h.client, inst, PATIENCE_MS, &info), "==", DK_OK,
         "the newest execution is followed");
  ok(info.status == DK_FAILED && info.execution_id == 2 && is_text(info.output, "no money"),
     "to its end");
  hand_end(&h);
}

/* A status is reported even if the history cannot be read. */
static void
test_damaged(void)
{
  struct hand h;
  struct dk_instance_info info = hand_info();
  struct dk_commit_outcome outcome;
  const struct dk_event row = {1, {"{\"v\":9}", 7}};
  const struct dk_turn_result result = {.struct_size = sizeof(result),
                                        .execution_id = 1,
                                        .status = DK_FAILED,
                                        .events = &row,
                                        .n_events = 1,
                                        .output = dk_str_of("no"),
                                        .name = dk_str_of("order"),
                                        .version = dk_str_of("1.0.0")};

  hand_begin(&h, is_plain);
  dk_client_start(h.client, inst, "order", inst, NULL);
  hand_fetch(&h);
  cmp_ok(dk_store_ack_orchestration_item(h.store, h.caller, h.turn->head.lock_token,
                                         &result, &outcome),
         "==", DK_OK, "a history of a newer runtime");
  cmp_ok(dk_client_status(h.client, inst, &info), "==", DK_OK, "does not prevent an answer");
  ok(info.status == DK_FAILED && is_text(info.output, "no") &&
       is_text(info.name, is_plain ? NULL : "order"),
     "which has everything except the contents of the history");
  hand_end(&h);
}

static void
test_older_caller(void)
{
  struct hand h;
  struct dk_instance_info info = hand_info();

  hand_begin(&h, is_plain);
  hand_start(&h, inst);
  info.struct_size = offsetof(struct dk_instance_info, execution_id);
  info.execution_id = 77;
  cmp_ok(dk_client_status(h.client, inst, &info), "==", DK_OK, "an older caller");
  ok(info.status == DK_RUNNING && info.execution_id == 77, "gets what its struct has");
  info.struct_size = 4;
  cmp_ok(dk_client_status(h.client, inst, &info), "==", DK_INVALID, "a size that is too small");
  ok(strstr(dk_client_error(h.client), "struct_size"), "is refused with an error text");
  hand_end(&h);
}

/* Without durakit.admin/1 it is invisible. */
static void
test_not_started(void)
{
  struct hand h;
  struct dk_instance_info info = hand_info();

  hand_begin(&h, is_plain);
  dk_client_raise(h.client, inst, "early", inst);
  cmp_ok(dk_client_status(h.client, inst, &info), "==", DK_NOT_FOUND,
         "messages without a start do not make an instance");
  dk_client_start(h.client, inst, "order", dk_str_of("in"), "1.2.3");
  dk_status status = dk_client_status(h.client, inst, &info);
  if (is_plain) {
    cmp_ok(status, "==", DK_NOT_FOUND, "a stored start is not seen");
  } else {
    cmp_ok(status, "==", DK_OK, "a stored start is seen");
    ok(info.status == DK_NOT_STARTED && is_text(info.name, "order") &&
         is_text(info.version, "1.2.3") && is_text(info.output, "in") &&
         is_text(info.instance, "inst") && !info.parent.ptr,
       "with what it says");
    ok(info.created_at > 0 && info.started_at == 0 && info.ended_at == 0 &&
         info.execution_id == 0 && info.n_events == 0,
       "and without what is not yet");
  }
  cmp_ok(dk_client_wait(h.client, inst, 0, &info), "==", DK_NOTHING, "it is waited for");
  ok(strstr(dk_client_error(h.client), is_plain ? "no turn of it was committed yet"
                                                  : "inst is not started: its start is stored"),
     "and the error says why: %s", dk_client_error(h.client));
  hand_end(&h);
}

/* A start that this version cannot read. */
static void
test_unreadable_start(void)
{
  struct hand h;
  struct dk_instance_info info = hand_info();
  const struct dk_item item = {.struct_size = sizeof(item),
                               .instance = inst,
                               .id = dk_str_of("start"),
                               .payload = dk_str_of("{\"v\":9}")};

  hand_begin(&h, is_plain);
  dk_store_enqueue_for_orchestrator(h.store, h.caller, &item);
  cmp_ok(dk_client_status(h.client, inst, &info), "==", DK_OK, "a start that cannot be read");
  ok(info.status == DK_NOT_STARTED && !info.name.ptr && !info.output.ptr, "is one nevertheless");
  hand_end(&h);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void
test_no_wait(void)
{
  struct hand h;
  struct dk_instance_info info = hand_info();

  hand_begin(&h, is_plain);
  cmp_ok(dk_client_wait(h.client, inst, -1, &info), "==", DK_INVALID, "a negative time");
  cmp_ok(dk_client_wait(h.client, inst, 0, &info), "==", DK_NOTHING, "the instance does not exist");
  cmp_ok(dk_client_wait(h.client, inst, 30, &info), "==", DK_NOTHING,
         "and is not started meanwhile");
  ok(strstr(dk_client_error(h.client), "inst does not exist"), "the error says so: %s",
     dk_client_error(h.client));
  hand_start(&h, inst);
  cmp_ok(dk_client_wait(h.client, inst, 30, &info), "==", DK_NOTHING, "it runs on");
  is(dk_client_error(h.client), "inst is still running", "the error says so");
  faulty_away(h.faulty, true);
  cmp_ok(dk_client_wait(h.client, inst, 30, &info), "==", DK_UNAVAILABLE,
         "the store is unreachable when the time is up");
  faulty_away(h.faulty, false);
  faulty_plan(h.faulty, FAULTY_READ_HISTORY, 0, 3, FAULT_REFUSE, DK_CORRUPT);
  cmp_ok(dk_client_wait(h.client, inst, PATIENCE_MS, &info), "==", DK_CORRUPT,
         "it does not wait after a permanent error");
  hand_end(&h);
}

struct waiter {
  struct hand *h;
  pthread_t thread;
  dk_status status;
  struct dk_instance_info info;
};

static void *
wait_in_thread(void *context)
{
  struct waiter *waiter = context;

  waiter->info = hand_info();
  waiter->status = dk_client_wait(waiter->h->client, inst, INT64_MAX, &waiter->info);
  return NULL;
}

static void
begin_waiting(struct waiter *waiter, struct hand *h)
{
  *waiter = (struct waiter){.h = h};
  if (pthread_create(&waiter->thread, NULL, wait_in_thread, waiter) != 0)
    BAIL_OUT("no thread: %s", strerror(errno));
}

/* A turn of another's client: the waiting one's is in use, which is allowed, but not its error. */
static void
finish(struct hand *h)
{
  const struct event ended = {.kind = EVENT_COMPLETED, .text = dk_str_of("done")};
  struct dk_client *other = dk_client_new(h->store, NULL);

  if (!other || dk_client_raise(other, inst, "go on", inst) != DK_OK || hand_fetch(h) == 0)
    BAIL_OUT("no turn");
  hand_commit(h, 1, 2, &ended, 1, DK_COMPLETED, "done");
  dk_client_free(other);
}

static void
test_wait(void)
{
  struct hand h;
  struct waiter waiter;

  hand_begin(&h, is_plain);
  begin_waiting(&waiter, &h);
  ok(faulty_until_calls(h.faulty, FAULTY_READ_HISTORY, 2), "it waits before the start");
  struct dk_client *other = dk_client_new(h.store, NULL);
  dk_client_start(other, inst, "order", inst, NULL);
  dk_client_free(other);
  hand_fetch(&h);
  hand_commit(&h, 1, 1, &hand_started, 1, DK_RUNNING, NULL);
  uint64_t calls = faulty_calls(h.faulty, FAULTY_READ_HISTORY);
  ok(faulty_until_calls(h.faulty, FAULTY_READ_HISTORY, calls + 2), "and while it runs");
  faulty_away(h.faulty, true);
  calls = faulty_calls(h.faulty, FAULTY_READ_HISTORY);
  ok(faulty_until_calls(h.faulty, FAULTY_READ_HISTORY, calls + 2),
     "and while the store is unreachable");
  faulty_away(h.faulty, false);
  unsigned before = atomic_load(&events_read);
  calls = faulty_calls(h.faulty, FAULTY_READ_HISTORY);
  faulty_until_calls(h.faulty, FAULTY_READ_HISTORY, calls + 2);
  cmp_ok(atomic_load(&events_read), "==", before, "without reading the history");
  finish(&h);
  pthread_join(waiter.thread, NULL);
  cmp_ok(waiter.status, "==", DK_OK, "until it has ended");
  ok(waiter.info.status == DK_COMPLETED && is_text(waiter.info.output, "done"), "with the output");
  cmp_ok(atomic_load(&events_read), "<=", before + 2, "one event was read at the end");
  hand_end(&h);
}

/* Cancelled between two checks, and within one that hangs. */
static void
test_called_back(bool hangs)
{
  struct hand h;
  struct waiter waiter;

  hand_begin(&h, is_plain);
  hand_start(&h, inst);
  if (hangs)
    faulty_plan(h.faulty, FAULTY_READ_HISTORY, 0, UINT32_MAX, FAULT_HANG, DK_OK);
  uint64_t calls = faulty_calls(h.faulty, FAULTY_READ_HISTORY);
  begin_waiting(&waiter, &h);
  ok(hangs ? faulty_until_hanging(h.faulty, 1)
           : faulty_until_calls(h.faulty, FAULTY_READ_HISTORY, calls + 1),
     "it waits");
  dk_cancel(h.canceller);
  pthread_join(waiter.thread, NULL);
  cmp_ok(waiter.status, "==", DK_CALL_CANCELLED, "cancelled, %s",
         hangs ? "in a call of the store" : "between two");
  isnt(dk_client_error(h.client), "", "with an error text");
  dk_canceller_reset(h.canceller);
  faulty_heal(h.faulty);
  struct dk_instance_info info = hand_info();
  cmp_ok(dk_client_status(h.client, inst, &info), "==", DK_OK, "and can be used again");
  hand_end(&h);
}

int
main(void)
{
  plan(NO_PLAN);
  for (int i = 0; i < 2; i++) {
    is_plain = i == 1;
    test_status();
    test_cancelled();
    test_continued();
    test_damaged();
    test_older_caller();
    test_not_started();
    test_no_wait();
    test_wait();
  }
  is_plain = false;
  test_unreadable_start();
  test_called_back(false);
  test_called_back(true);
  return exit_status();
}
