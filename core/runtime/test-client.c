/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the client: what it sends, what it makes of a store that fails, and what it tells of an
 * instance.  The turns are made by hand, on the model. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/plugin/look.h"
#include "core/runtime/event.h"
#include "core/runtime/testing/faulty.h"

enum { PATIENCE_MS = 60000 };

/* What the client reads, counted on its way. */
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

/* What the next sendings are answered, in order; the first of them is done all the same. */
static const dk_status *answers;
static size_t n_answers;

__typeof__(dk_store_enqueue_for_orchestrator) __real_dk_store_enqueue_for_orchestrator,
  __wrap_dk_store_enqueue_for_orchestrator;
dk_status
__wrap_dk_store_enqueue_for_orchestrator(struct dk_store *store, struct dk_caller *caller,
                                         const struct dk_item *item)
{
  if (n_answers == 0)
    return __real_dk_store_enqueue_for_orchestrator(store, caller, item);
  if (!(item->flags & DK_REPEATED))
    __real_dk_store_enqueue_for_orchestrator(store, caller, item);
  n_answers--;
  return *answers++;
}

/* ---- a store, a client, and turns by hand ---------------------------------------------------- */

struct rig {
  struct faulty *faulty;
  struct dk_store *store;
  struct dk_canceller *canceller;
  struct dk_client *client;
  struct dk_caller *caller; /* of the turns */
  struct dk_arena arena;    /* what was decoded */
  struct dk_turn *turn;
};

static void
set_up(struct rig *rig)
{
  rig->faulty = faulty_open_model();
  rig->store = faulty_store(rig->faulty);
  rig->canceller = dk_canceller_new(NULL);
  rig->client = dk_client_new(rig->store, rig->canceller);
  rig->caller = dk_caller_new(NULL, 0);
  if (!rig->canceller || !rig->client || !rig->caller)
    BAIL_OUT("no memory");
  dk_arena_init(&rig->arena);
  rig->turn = NULL;
}

static void
tear_down(struct rig *rig)
{
  dk_client_free(rig->client);
  dk_caller_free(rig->caller);
  dk_canceller_free(rig->canceller);
  dk_arena_done(&rig->arena);
  faulty_close(rig->faulty);
}

/* The turn of the one instance that has messages; how many it has. */
static size_t
fetch(struct rig *rig)
{
  const struct dk_fetch_turn request = {.struct_size = sizeof(request), .lock_ms = PATIENCE_MS};

  dk_caller_reset(rig->caller);
  rig->turn = NULL;
  dk_status status =
    dk_store_fetch_orchestration_item(rig->store, rig->caller, &request, &rig->turn);
  return status == DK_OK ? rig->turn->n_messages : 0;
}

static struct message
message_of(struct rig *rig, size_t i)
{
  struct message message = {.kind = MESSAGE_NONE};
  const char *why = "";

  if (message_decode(&rig->arena, rig->turn->messages[i].payload, &message, &why) != DK_OK)
    diag("undecodable: %s", why);
  return message;
}

/* Commits the turn: events from `first` on, and this status. */
static void
commit(struct rig *rig, uint64_t execution, uint64_t first, const struct event *events, size_t n,
       int32_t status, const char *output)
{
  struct dk_event rows[8];
  struct dk_commit_outcome outcome;
  struct dk_turn_result result = {
    .struct_size = sizeof(result),
    .execution_id = execution,
    .status = status,
    .events = rows,
    .n_events = n,
    .output = dk_str_of(output),
    .name = dk_str_of("order"),
    .version = dk_str_of("1.0.0"),
  };

  for (size_t i = 0; i < n; i++) {
    struct dk_text text = DK_TEXT_EMPTY;
    event_encode(&text, &events[i]);
    rows[i].event_id = first + i;
    rows[i].payload =
      (dk_str){dk_arena_copy(&rig->arena, dk_text_str(&text), text.length), text.length};
    dk_text_done(&text);
  }
  if (dk_store_ack_orchestration_item(rig->store, rig->caller, rig->turn->head.lock_token,
                                      &result, &outcome) != DK_OK)
    BAIL_OUT("the commit is refused: %s", dk_caller_failure(rig->caller)->text);
}

/* The turn of a message that is sent only to have one. */
static void
next_turn(struct rig *rig, dk_str instance)
{
  if (dk_client_raise(rig->client, instance, "go on", (dk_str){NULL, 0}) != DK_OK ||
      fetch(rig) == 0)
    BAIL_OUT("no turn: %s", dk_client_error(rig->client));
}

static const struct event started = {
  .kind = EVENT_STARTED, .name = {"order", 5}, .version = {"1.2.3", 5}};

static const dk_str inst = {"inst", 4};

/* The instance runs: its first turn is committed. */
static void
start(struct rig *rig)
{
  if (dk_client_start(rig->client, inst, "order", dk_str_of("in"), NULL) != DK_OK ||
      fetch(rig) == 0)
    BAIL_OUT("no turn: %s", dk_client_error(rig->client));
  commit(rig, 1, 1, &started, 1, DK_RUNNING, NULL);
}

static struct dk_instance_info
an_info(void)
{
  return (struct dk_instance_info){.struct_size = sizeof(struct dk_instance_info)};
}

static bool
is_text(dk_str text, const char *expected)
{
  return expected ? text.ptr && text.len == strlen(expected) &&
                      memcmp(text.ptr, expected, text.len + 1) == 0
                  : !text.ptr;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void
test_start(void)
{
  struct rig rig;

  set_up(&rig);
  cmp_ok(dk_client_start(rig.client, (dk_str){"instXYZ", 4}, "order", dk_str_of("{}"), "1.2.3"),
         "==", DK_OK, "a start is sent");
  is(dk_client_error(rig.client), "", "without an error");
  cmp_ok(dk_client_start(rig.client, inst, "order", dk_str_of("{}"), NULL), "==", DK_DUPLICATE,
         "a second one finds the first");
  cmp_ok(fetch(&rig), "==", 1, "one message is there");
  struct message message = message_of(&rig, 0);
  ok(is_text(rig.turn->head.instance, "inst"), "for the instance, whose id needed no NUL");
  ok(is_text(rig.turn->messages[0].id, "start"), "with the id of all starts");
  ok(message.kind == MESSAGE_START && is_text(message.name, "order") &&
       is_text(message.version, "1.2.3") && is_text(message.text, "{}") &&
       !message.parent.instance.ptr,
     "it says what to start");
  commit(&rig, 1, 1, &started, 1, DK_RUNNING, NULL);
  cmp_ok(dk_client_start(rig.client, inst, "order", dk_str_of("{}"), NULL), "==", DK_DUPLICATE,
         "a start of what runs");
  is(dk_client_error(rig.client), "the instance is there already", "is told why");
  cmp_ok(fetch(&rig), "==", 0, "and sends nothing");
  tear_down(&rig);
}

static void
test_messages(void)
{
  struct rig rig;

  set_up(&rig);
  cmp_ok(dk_client_raise(rig.client, inst, "paid", dk_str_of("42")), "==", DK_OK, "raised");
  cmp_ok(dk_client_raise(rig.client, inst, "paid", dk_str_of("42")), "==", DK_OK,
         "raised again: another event");
  cmp_ok(dk_client_enqueue(rig.client, inst, "mail", (dk_str){NULL, 0}), "==", DK_OK,
         "put in a queue");
  cmp_ok(dk_client_cancel(rig.client, inst, "too late", "me"), "==", DK_OK,
         "a cancellation is asked for, whether the instance is there or not");
  cmp_ok(dk_client_cancel(rig.client, inst, NULL, NULL), "==", DK_OK, "and without words");
  cmp_ok(fetch(&rig), "==", 5, "all messages are there");
  struct message m[5];
  for (size_t i = 0; i < 5; i++)
    m[i] = message_of(&rig, i);
  ok(m[0].kind == MESSAGE_RAISED && is_text(m[0].name, "paid") && is_text(m[0].text, "42"),
     "the event");
  ok(m[2].kind == MESSAGE_QUEUED && is_text(m[2].name, "mail") && !m[2].text.ptr, "the mail");
  ok(m[3].kind == MESSAGE_CANCEL && is_text(m[3].text, "too late") && is_text(m[3].by, "me") &&
       !m[3].parent.instance.ptr,
     "the request");
  ok(m[4].kind == MESSAGE_CANCEL && !m[4].text.ptr && !m[4].by.ptr, "the one without words");
  const struct dk_message *rows = rig.turn->messages;
  ok(rows[0].id.ptr[0] == 'r' && rows[2].id.ptr[0] == 'q' && rows[3].id.ptr[0] == 'k' &&
       rows[0].id.len == 33,
     "each has an id of its own");
  isnt(rows[0].id.ptr, rows[1].id.ptr, "which is not another's");
  tear_down(&rig);
}

static void
test_refusals(void)
{
  struct rig rig;

  set_up(&rig);
  cmp_ok(dk_client_start(rig.client, inst, NULL, inst, NULL), "==", DK_INVALID, "no name");
  ok(strstr(dk_client_error(rig.client), "the orchestration's name has to be 1 to ") &&
       strstr(dk_client_error(rig.client), " bytes of UTF-8, and is NULL"),
     "says which: %s", dk_client_error(rig.client));
  cmp_ok(dk_client_start(rig.client, inst, "", inst, NULL), "==", DK_INVALID, "an empty name");
  cmp_ok(dk_client_start(rig.client, inst, "a", inst, "newest"), "==", DK_INVALID, "no version");
  is(dk_client_error(rig.client), "the version \"newest\" is not of the form 1.2.3", "says so");
  cmp_ok(dk_client_start(rig.client, (dk_str){NULL, 0}, "a", inst, NULL), "==", DK_INVALID,
         "no instance");
  isnt(dk_client_error(rig.client), "", "says something");
  cmp_ok(dk_client_raise(rig.client, (dk_str){"a\0b", 3}, "e", inst), "==", DK_INVALID,
         "an instance with a NUL");
  cmp_ok(dk_client_raise(rig.client, inst, "\xff", inst), "==", DK_INVALID, "no UTF-8");
  cmp_ok(dk_client_enqueue(rig.client, inst, NULL, inst), "==", DK_INVALID, "no queue");
  cmp_ok(dk_client_cancel(rig.client, (dk_str){"", 0}, NULL, NULL), "==", DK_INVALID,
         "an empty instance");
  cmp_ok(fetch(&rig), "==", 0, "nothing was sent");
  cmp_ok(dk_client_raise(rig.client, inst, "e", inst), "==", DK_OK, "a good call afterwards");
  is(dk_client_error(rig.client), "", "forgets the error");
  tear_down(&rig);
}

/* ---- a store that fails ---------------------------------------------------------------------- */

/* Whatever became of the first attempt, the message is there once. */
static void
unknown_once(enum fault fault, const char *what)
{
  struct rig rig;

  set_up(&rig);
  faulty_plan(rig.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, fault, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_raise(rig.client, inst, "paid", inst), "==", DK_OK, "%s: a raise", what);
  is(dk_client_error(rig.client), "", "%s: is no error", what);
  faulty_plan(rig.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, fault, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_enqueue(rig.client, inst, "mail", inst), "==", DK_OK, "%s: a mail", what);
  faulty_plan(rig.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 3, fault, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_cancel(rig.client, inst, NULL, NULL), "==", DK_OK, "%s: a cancel", what);
  cmp_ok(fetch(&rig), "==", 3, "%s: each is there once", what);
  tear_down(&rig);
}

static void
test_unknown_start(void)
{
  struct rig rig;

  set_up(&rig);
  faulty_plan(rig.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_start(rig.client, inst, "order", inst, NULL), "==", DK_OK,
         "a start that did not arrive is sent again");
  cmp_ok(fetch(&rig), "==", 1, "and is there");
  faulty_plan(rig.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_start(rig.client, dk_str_of("other"), "order", inst, NULL), "==",
         DK_DUPLICATE, "one that did is stored, by whomever");
  ok(strstr(dk_client_error(rig.client), "this one, whose first outcome was unknown"),
     "which is said");
  cmp_ok(fetch(&rig), "==", 1, "it is there once");
  tear_down(&rig);
}

static void
test_away(void)
{
  struct rig rig;

  set_up(&rig);
  faulty_away(rig.faulty, true);
  cmp_ok(dk_client_raise(rig.client, inst, "paid", inst), "==", DK_UNAVAILABLE,
         "a store that is away");
  cmp_ok(faulty_calls(rig.faulty, FAULTY_ENQUEUE_MESSAGE), "==", 1, "is asked once");
  ok(strstr(dk_client_error(rig.client), "enqueue_for_orchestrator: DK_UNAVAILABLE: "),
     "the error: %s", dk_client_error(rig.client));
  faulty_away(rig.faulty, false);
  cmp_ok(dk_client_raise(rig.client, inst, "paid", inst), "==", DK_OK, "until it is back");

  faulty_plan(rig.faulty, FAULTY_ENQUEUE_MESSAGE, 0, UINT32_MAX, FAULT_REFUSE,
              DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_raise(rig.client, inst, "paid", inst), "==", DK_OUTCOME_UNKNOWN,
         "an outcome that stays unknown");
  cmp_ok(faulty_calls(rig.faulty, FAULTY_ENQUEUE_MESSAGE), "==", 11,
         "after a number of repetitions");
  faulty_heal(rig.faulty);
  faulty_plan(rig.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  dk_cancel(rig.canceller);
  cmp_ok(dk_client_raise(rig.client, inst, "paid", inst), "==", DK_OUTCOME_UNKNOWN,
         "called back, it stays unknown at once");
  cmp_ok(faulty_calls(rig.faulty, FAULTY_ENQUEUE_MESSAGE), "==", 12, "and is not repeated");
  tear_down(&rig);
}

/* What the repetitions are answered says nothing of the first, but that it is there. */
static void
test_unknown_and_then(void)
{
  static const struct {
    dk_status answers[4];
    size_t n;
    dk_status expected;
  } rows[] = {
    {{DK_OUTCOME_UNKNOWN, DK_REFUSED}, 2, DK_OUTCOME_UNKNOWN},
    {{DK_OUTCOME_UNKNOWN, DK_UNAVAILABLE, DK_BUSY, DK_DUPLICATE}, 4, DK_OK},
    {{DK_OUTCOME_UNKNOWN, DK_OUTCOME_UNKNOWN, DK_OK}, 3, DK_OK},
    {{399, DK_UNAVAILABLE, DK_OK}, 3, DK_OK},
    {{DK_TOO_LARGE}, 1, DK_TOO_LARGE},
    {{DK_BUSY}, 1, DK_BUSY},
  };
  struct rig rig;

  set_up(&rig);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    answers = rows[i].answers;
    n_answers = rows[i].n;
    cmp_ok(dk_client_raise(rig.client, inst, "paid", inst), "==", rows[i].expected,
           "answered %d, and then %d", (int)rows[i].answers[0], (int)rows[i].answers[1]);
    cmp_ok(n_answers, "==", 0, "after so many attempts");
  }
  tear_down(&rig);
}

static void
test_not_sent(void)
{
  struct rig rig;

  set_up(&rig);
  faulty_plan(rig.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, FAULT_HANG, DK_OK);
  dk_cancel(rig.canceller);
  cmp_ok(dk_client_raise(rig.client, inst, "paid", inst), "==", DK_CALL_CANCELLED,
         "called back before anything was done");
  isnt(dk_client_error(rig.client), "", "with words");
  dk_canceller_reset(rig.canceller);
  faulty_plan(rig.faulty, FAULTY_READ_HISTORY, 0, 1, FAULT_REFUSE, DK_CORRUPT);
  cmp_ok(dk_client_start(rig.client, inst, "order", inst, NULL), "==", DK_CORRUPT,
         "a start that cannot look whether the instance is there");
  cmp_ok(fetch(&rig), "==", 0, "is not sent");
  faulty_plan(rig.faulty, FAULTY_READ_HISTORY, 0, 2, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_start(rig.client, inst, "order", inst, NULL), "==", DK_OK,
         "a look whose outcome is unknown is repeated");
  tear_down(&rig);
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void
test_status(void)
{
  struct rig rig;
  struct dk_instance_info info = an_info();
  const struct event ended = {.kind = EVENT_COMPLETED, .text = dk_str_of("done")};

  set_up(&rig);
  cmp_ok(dk_client_status(rig.client, inst, &info), "==", DK_NOT_FOUND, "nobody is there");
  start(&rig);
  cmp_ok(dk_client_status(rig.client, inst, &info), "==", DK_OK, "somebody is");
  ok(info.status == DK_RUNNING && info.execution_id == 1 && info.n_events == 1 &&
       info.started_at > 0 && info.ended_at == 0 && is_text(info.output, NULL),
     "it runs");
  ok(is_text(info.name, "order") && is_text(info.version, "1.2.3"), "what is told by its start");
  next_turn(&rig, inst);
  commit(&rig, 1, 2, &ended, 1, DK_COMPLETED, "done");
  cmp_ok(dk_client_status(rig.client, inst, &info), "==", DK_OK, "once it is over");
  ok(info.status == DK_COMPLETED && info.n_events == 2 && info.ended_at > 0 &&
       is_text(info.output, "done") && is_text(info.name, "order") &&
       is_text(info.cancelled_by, NULL),
     "it is completed");
  cmp_ok(info.struct_size, "==", sizeof(info), "the size stays the caller's");
  tear_down(&rig);
}

static void
test_cancelled(void)
{
  struct rig rig;
  struct dk_instance_info info = an_info();
  const struct event ends[] = {
    {.kind = EVENT_CANCEL_REQUESTED, .text = dk_str_of("too late"), .by = dk_str_of("me")},
    {.kind = EVENT_CANCELLED, .text = dk_str_of("too late"), .by = dk_str_of("me")}};

  set_up(&rig);
  start(&rig);
  next_turn(&rig, inst);
  commit(&rig, 1, 2, ends, 2, DK_CANCELLED, "too late");
  cmp_ok(dk_client_status(rig.client, inst, &info), "==", DK_OK, "one that was cancelled");
  ok(info.status == DK_CANCELLED && is_text(info.output, "too late") &&
       is_text(info.cancelled_by, "me"),
     "why, and by whom");
  tear_down(&rig);
}

/* The first execution is over, the second is not there yet; then it is. */
static void
test_continued(void)
{
  struct rig rig;
  struct dk_instance_info info = an_info();
  const struct event continued = {.kind = EVENT_CONTINUED, .text = dk_str_of("next")};
  const struct event failed = {.kind = EVENT_FAILED, .text = dk_str_of("no money")};

  set_up(&rig);
  start(&rig);
  next_turn(&rig, inst);
  commit(&rig, 1, 2, &continued, 1, DK_CONTINUED_AS_NEW, "next");
  cmp_ok(dk_client_status(rig.client, inst, &info), "==", DK_OK, "between two executions");
  ok(info.status == DK_RUNNING && info.ended_at == 0 && is_text(info.output, NULL), "it runs");
  cmp_ok(dk_client_wait(rig.client, inst, 0, &info), "==", DK_NOTHING, "it is not over");
  next_turn(&rig, inst);
  const struct event both[] = {started, failed};
  commit(&rig, 2, 1, both, 2, DK_FAILED, "no money");
  cmp_ok(dk_client_wait(rig.client, inst, PATIENCE_MS, &info), "==", DK_OK,
         "the newest execution is followed");
  ok(info.status == DK_FAILED && info.execution_id == 2 && is_text(info.output, "no money"),
     "to its end");
  tear_down(&rig);
}

/* A status is told also where the history cannot be read. */
static void
test_damaged(void)
{
  struct rig rig;
  struct dk_instance_info info = an_info();
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

  set_up(&rig);
  dk_client_start(rig.client, inst, "order", inst, NULL);
  fetch(&rig);
  cmp_ok(dk_store_ack_orchestration_item(rig.store, rig.caller, rig.turn->head.lock_token,
                                         &result, &outcome),
         "==", DK_OK, "a history of a newer runtime");
  cmp_ok(dk_client_status(rig.client, inst, &info), "==", DK_OK, "is no reason to tell nothing");
  ok(info.status == DK_FAILED && is_text(info.output, "no") && is_text(info.name, NULL),
     "all but what stands in it");
  tear_down(&rig);
}

static void
test_older_caller(void)
{
  struct rig rig;
  struct dk_instance_info info = an_info();

  set_up(&rig);
  start(&rig);
  info.struct_size = offsetof(struct dk_instance_info, execution_id);
  info.execution_id = 77;
  cmp_ok(dk_client_status(rig.client, inst, &info), "==", DK_OK, "an older caller");
  ok(info.status == DK_RUNNING && info.execution_id == 77, "gets what its struct has");
  info.struct_size = 4;
  cmp_ok(dk_client_status(rig.client, inst, &info), "==", DK_INVALID, "a size that says nothing");
  ok(strstr(dk_client_error(rig.client), "struct_size"), "is refused with words");
  tear_down(&rig);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void
test_no_wait(void)
{
  struct rig rig;
  struct dk_instance_info info = an_info();

  set_up(&rig);
  cmp_ok(dk_client_wait(rig.client, inst, -1, &info), "==", DK_INVALID, "a negative time");
  cmp_ok(dk_client_wait(rig.client, inst, 0, &info), "==", DK_NOTHING, "nobody is there");
  cmp_ok(dk_client_wait(rig.client, inst, 30, &info), "==", DK_NOTHING, "and nobody comes");
  start(&rig);
  cmp_ok(dk_client_wait(rig.client, inst, 30, &info), "==", DK_NOTHING, "it runs on");
  faulty_away(rig.faulty, true);
  cmp_ok(dk_client_wait(rig.client, inst, 30, &info), "==", DK_UNAVAILABLE,
         "the store is away when the time is up");
  faulty_away(rig.faulty, false);
  faulty_plan(rig.faulty, FAULTY_READ_HISTORY, 0, 3, FAULT_REFUSE, DK_CORRUPT);
  cmp_ok(dk_client_wait(rig.client, inst, PATIENCE_MS, &info), "==", DK_CORRUPT,
         "what will not get better is not waited for");
  tear_down(&rig);
}

struct waiter {
  struct rig *rig;
  pthread_t thread;
  dk_status status;
  struct dk_instance_info info;
};

static void *
wait_in_thread(void *context)
{
  struct waiter *waiter = context;

  waiter->info = an_info();
  waiter->status = dk_client_wait(waiter->rig->client, inst, INT64_MAX, &waiter->info);
  return NULL;
}

static void
begin_waiting(struct waiter *waiter, struct rig *rig)
{
  *waiter = (struct waiter){.rig = rig};
  if (pthread_create(&waiter->thread, NULL, wait_in_thread, waiter) != 0)
    BAIL_OUT("no thread: %s", strerror(errno));
}

/* A turn of another's client: the waiting one's is in use, which is allowed, but not its error. */
static void
finish(struct rig *rig)
{
  const struct event ended = {.kind = EVENT_COMPLETED, .text = dk_str_of("done")};
  struct dk_client *other = dk_client_new(rig->store, NULL);

  if (!other || dk_client_raise(other, inst, "go on", inst) != DK_OK || fetch(rig) == 0)
    BAIL_OUT("no turn");
  commit(rig, 1, 2, &ended, 1, DK_COMPLETED, "done");
  dk_client_free(other);
}

static void
test_wait(void)
{
  struct rig rig;
  struct waiter waiter;

  set_up(&rig);
  begin_waiting(&waiter, &rig);
  ok(faulty_until_calls(rig.faulty, FAULTY_READ_HISTORY, 2), "it waits before the start");
  struct dk_client *other = dk_client_new(rig.store, NULL);
  dk_client_start(other, inst, "order", inst, NULL);
  dk_client_free(other);
  fetch(&rig);
  commit(&rig, 1, 1, &started, 1, DK_RUNNING, NULL);
  uint64_t calls = faulty_calls(rig.faulty, FAULTY_READ_HISTORY);
  ok(faulty_until_calls(rig.faulty, FAULTY_READ_HISTORY, calls + 2), "and while it runs");
  faulty_away(rig.faulty, true);
  calls = faulty_calls(rig.faulty, FAULTY_READ_HISTORY);
  ok(faulty_until_calls(rig.faulty, FAULTY_READ_HISTORY, calls + 2), "and while the store is away");
  faulty_away(rig.faulty, false);
  unsigned before = atomic_load(&events_read);
  calls = faulty_calls(rig.faulty, FAULTY_READ_HISTORY);
  faulty_until_calls(rig.faulty, FAULTY_READ_HISTORY, calls + 2);
  cmp_ok(atomic_load(&events_read), "==", before, "without reading the history");
  finish(&rig);
  pthread_join(waiter.thread, NULL);
  cmp_ok(waiter.status, "==", DK_OK, "until it is over");
  ok(waiter.info.status == DK_COMPLETED && is_text(waiter.info.output, "done"), "with the output");
  cmp_ok(atomic_load(&events_read), "<=", before + 2, "one event was read at the end");
  tear_down(&rig);
}

/* Called back between two looks, and within one that hangs. */
static void
test_called_back(bool hangs)
{
  struct rig rig;
  struct waiter waiter;

  set_up(&rig);
  start(&rig);
  if (hangs)
    faulty_plan(rig.faulty, FAULTY_READ_HISTORY, 0, UINT32_MAX, FAULT_HANG, DK_OK);
  uint64_t calls = faulty_calls(rig.faulty, FAULTY_READ_HISTORY);
  begin_waiting(&waiter, &rig);
  ok(hangs ? faulty_until_hanging(rig.faulty, 1)
           : faulty_until_calls(rig.faulty, FAULTY_READ_HISTORY, calls + 1),
     "it waits");
  dk_cancel(rig.canceller);
  pthread_join(waiter.thread, NULL);
  cmp_ok(waiter.status, "==", DK_CALL_CANCELLED, "called back, %s",
         hangs ? "in a call of the store" : "between two");
  isnt(dk_client_error(rig.client), "", "with words");
  dk_canceller_reset(rig.canceller);
  faulty_heal(rig.faulty);
  struct dk_instance_info info = an_info();
  cmp_ok(dk_client_status(rig.client, inst, &info), "==", DK_OK, "and can be used again");
  tear_down(&rig);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { SENDERS = 4, LETTERS = 25 };

static void *
send_many(void *context)
{
  struct rig *rig = context;
  intptr_t wrong = 0;

  for (int i = 0; i < LETTERS; i++)
    wrong += dk_client_enqueue(rig->client, inst, "mail", inst) != DK_OK;
  return (void *)wrong;
}

static void
test_threads(void)
{
  struct rig rig;
  pthread_t threads[SENDERS];
  intptr_t wrong = 0;

  set_up(&rig);
  for (int i = 0; i < SENDERS; i++)
    if (pthread_create(&threads[i], NULL, send_many, &rig) != 0)
      BAIL_OUT("no thread: %s", strerror(errno));
  for (int i = 0; i < SENDERS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    wrong += (intptr_t)result;
  }
  cmp_ok(wrong, "==", 0, "one client can be used by many threads");
  cmp_ok(fetch(&rig), "==", SENDERS * LETTERS, "and nothing is lost");
  tear_down(&rig);
}

int
main(void)
{
  plan(NO_PLAN);
  test_start();
  test_messages();
  test_refusals();
  unknown_once(FAULT_REFUSE, "the first did not arrive");
  unknown_once(FAULT_FORGET, "the first did arrive");
  test_unknown_start();
  test_away();
  test_unknown_and_then();
  test_not_sent();
  test_status();
  test_cancelled();
  test_continued();
  test_damaged();
  test_older_caller();
  test_no_wait();
  test_wait();
  test_called_back(false);
  test_called_back(true);
  test_threads();
  dk_client_free(NULL);
  return exit_status();
}
