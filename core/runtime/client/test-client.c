/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the client: what it sends, and how it handles a store that fails.  The turns are made
 * by hand, on the model. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/hand-made-turns.h"

static const dk_str inst = {"inst", 4};

/* The answers to the next requests, in order; the first request is done nevertheless. */
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

/* ---- sending --------------------------------------------------------------------------------- */

static void
test_start(void)
{
  struct hand h;

  hand_begin(&h, false);
  cmp_ok(dk_client_start(h.client, (dk_str){"instXYZ", 4}, "order", dk_str_of("{}"), "1.2.3"),
         "==", DK_OK, "a start is sent");
  is(dk_client_error(h.client), "", "without an error");
  cmp_ok(dk_client_start(h.client, inst, "order", dk_str_of("{}"), NULL), "==", DK_DUPLICATE,
         "a second one finds the first");
  cmp_ok(hand_fetch(&h), "==", 1, "one message is there");
  struct message message = hand_message(&h, 0);
  ok(is_text(h.turn->head.instance, "inst"), "for the instance, whose id needed no NUL");
  ok(is_text(h.turn->messages[0].id, "start"), "with the id of all starts");
  ok(message.kind == MESSAGE_START && is_text(message.name, "order") &&
       is_text(message.version, "1.2.3") && is_text(message.text, "{}") &&
       !message.parent.instance.ptr,
     "it says what to start");
  hand_commit(&h, 1, 1, &hand_started, 1, DK_RUNNING, NULL);
  cmp_ok(dk_client_start(h.client, inst, "order", dk_str_of("{}"), NULL), "==", DK_DUPLICATE,
         "a start of what runs");
  is(dk_client_error(h.client), "the instance exists already", "the error says why");
  cmp_ok(hand_fetch(&h), "==", 0, "and sends nothing");
  hand_end(&h);
}

static void
test_messages(void)
{
  struct hand h;

  hand_begin(&h, false);
  cmp_ok(dk_client_raise(h.client, inst, "paid", dk_str_of("42")), "==", DK_OK, "raised");
  cmp_ok(dk_client_raise(h.client, inst, "paid", dk_str_of("42")), "==", DK_OK,
         "raised again: another event");
  cmp_ok(dk_client_enqueue(h.client, inst, "mail", (dk_str){NULL, 0}), "==", DK_OK,
         "put in a queue");
  cmp_ok(dk_client_cancel(h.client, inst, "too late", "me"), "==", DK_OK,
         "a cancellation is asked for, whether the instance is there or not");
  cmp_ok(dk_client_cancel(h.client, inst, "no, later", "you"), "==", DK_OK,
         "and is asked for already, which is as good");
  is(dk_client_error(h.client), "", "and no error");
  cmp_ok(hand_fetch(&h), "==", 4, "all messages are there, the first request among them");
  struct message m[4];
  for (size_t i = 0; i < 4; i++)
    m[i] = hand_message(&h, i);
  ok(m[0].kind == MESSAGE_RAISED && is_text(m[0].name, "paid") && is_text(m[0].text, "42"),
     "the event");
  ok(m[2].kind == MESSAGE_QUEUED && is_text(m[2].name, "mail") && !m[2].text.ptr, "the mail");
  ok(m[3].kind == MESSAGE_CANCEL && is_text(m[3].text, "too late") && is_text(m[3].by, "me") &&
       !m[3].parent.instance.ptr,
     "the request");
  const struct dk_message *rows = h.turn->messages;
  ok(rows[0].id.ptr[0] == 'r' && rows[2].id.ptr[0] == 'q' && rows[0].id.len == 33,
     "each has an id of its own");
  ok(is_text(rows[3].id, "cancel"), "but for the request, whose id is that of all requests");
  isnt(rows[0].id.ptr, rows[1].id.ptr, "which is not another's");
  hand_end(&h);
}

static void
test_refusals(void)
{
  struct hand h;

  hand_begin(&h, false);
  cmp_ok(dk_client_start(h.client, inst, NULL, inst, NULL), "==", DK_INVALID, "no name");
  ok(strstr(dk_client_error(h.client), "the orchestration's name must be 1 to ") &&
       strstr(dk_client_error(h.client), " bytes of UTF-8, but is NULL"),
     "says which: %s", dk_client_error(h.client));
  cmp_ok(dk_client_start(h.client, inst, "", inst, NULL), "==", DK_INVALID, "an empty name");
  cmp_ok(dk_client_start(h.client, inst, "a", inst, "newest"), "==", DK_INVALID, "no version");
  is(dk_client_error(h.client), "the version \"newest\" is not of the form 1.2.3",
     "and the error says so");
  cmp_ok(dk_client_start(h.client, (dk_str){NULL, 0}, "a", inst, NULL), "==", DK_INVALID,
         "no instance");
  isnt(dk_client_error(h.client), "", "and there is an error text");
  cmp_ok(dk_client_raise(h.client, (dk_str){"a\0b", 3}, "e", inst), "==", DK_INVALID,
         "an instance with a NUL");
  cmp_ok(dk_client_raise(h.client, inst, "\xff", inst), "==", DK_INVALID, "no UTF-8");
  cmp_ok(dk_client_enqueue(h.client, inst, NULL, inst), "==", DK_INVALID, "no queue");
  cmp_ok(dk_client_cancel(h.client, (dk_str){"", 0}, NULL, NULL), "==", DK_INVALID,
         "an empty instance");
  cmp_ok(dk_client_cancel(h.client, inst, "two\nlines", NULL), "==", DK_INVALID,
         "a reason with a control character");
  cmp_ok(dk_client_cancel(h.client, inst, NULL, ""), "==", DK_INVALID, "an empty requester");
  cmp_ok(hand_fetch(&h), "==", 0, "nothing was sent");
  cmp_ok(dk_client_raise(h.client, inst, "e", inst), "==", DK_OK, "a good call afterwards");
  is(dk_client_error(h.client), "", "forgets the error");
  hand_end(&h);
}

/* ---- a store that fails ---------------------------------------------------------------------- */

/* Whether the first attempt had an effect or not, the message is stored once. */
static void
unknown_once(enum fault fault, const char *what)
{
  struct hand h;

  hand_begin(&h, false);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, fault, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_raise(h.client, inst, "paid", inst), "==", DK_OK, "%s: a raise", what);
  is(dk_client_error(h.client), "", "%s: is no error", what);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, fault, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_enqueue(h.client, inst, "mail", inst), "==", DK_OK, "%s: a mail", what);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 3, fault, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_cancel(h.client, inst, NULL, NULL), "==", DK_OK, "%s: a cancel", what);
  cmp_ok(hand_fetch(&h), "==", 3, "%s: each is there once", what);
  hand_end(&h);
}

static void
test_unknown_start(void)
{
  struct hand h;

  hand_begin(&h, false);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_start(h.client, inst, "order", inst, NULL), "==", DK_OK,
         "a start that did not arrive is sent again");
  cmp_ok(hand_fetch(&h), "==", 1, "and is stored");
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_start(h.client, dk_str_of("other"), "order", inst, NULL), "==",
         DK_DUPLICATE, "one that did is stored, by an unknown sender");
  ok(strstr(dk_client_error(h.client), "by this call, whose first outcome was unknown"),
     "the error says so");
  cmp_ok(hand_fetch(&h), "==", 1, "it is stored once");
  hand_end(&h);
}

static void
test_away(void)
{
  struct hand h;

  hand_begin(&h, false);
  faulty_away(h.faulty, true);
  cmp_ok(dk_client_raise(h.client, inst, "paid", inst), "==", DK_UNAVAILABLE,
         "an unreachable store");
  cmp_ok(faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE), "==", 1, "is called once");
  ok(strstr(dk_client_error(h.client), "enqueue_for_orchestrator: DK_UNAVAILABLE: "),
     "the error: %s", dk_client_error(h.client));
  faulty_away(h.faulty, false);
  cmp_ok(dk_client_raise(h.client, inst, "paid", inst), "==", DK_OK, "until it is reachable again");

  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, UINT32_MAX, FAULT_REFUSE,
              DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_raise(h.client, inst, "paid", inst), "==", DK_OUTCOME_UNKNOWN,
         "an outcome that stays unknown");
  cmp_ok(faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE), "==", 11,
         "after a number of repetitions");
  faulty_heal(h.faulty);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  dk_cancel(h.canceller);
  cmp_ok(dk_client_raise(h.client, inst, "paid", inst), "==", DK_OUTCOME_UNKNOWN,
         "a cancelled call remains unknown at once");
  cmp_ok(faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE), "==", 12, "and is not repeated");
  hand_end(&h);
}

/* The answers to repetitions prove nothing about the first, except that it is stored. */
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
  struct hand h;

  hand_begin(&h, false);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    answers = rows[i].answers;
    n_answers = rows[i].n;
    cmp_ok(dk_client_raise(h.client, inst, "paid", inst), "==", rows[i].expected,
           "answered %d, and then %d", (int)rows[i].answers[0], (int)rows[i].answers[1]);
    cmp_ok(n_answers, "==", 0, "after so many attempts");
  }
  hand_end(&h);
}

/* The repetition is cancelled: the answer and its text are those of the first attempt. */
static void
test_lost(void)
{
  pthread_t canceller;
  struct hand h;

  hand_begin(&h, false);
  hand_lose(&h, FAULTY_ENQUEUE_MESSAGE, &canceller);
  cmp_ok(dk_client_start(h.client, inst, "order", inst, NULL), "==", DK_OUTCOME_UNKNOWN,
         "a start whose answer is lost, and its repetition cancelled");
  ok(strstr(dk_client_error(h.client), ": DK_OUTCOME_UNKNOWN: as the test has planned it"),
     "has the error text of the first: %s", dk_client_error(h.client));
  hand_lost(&h, canceller);
  hand_lose(&h, FAULTY_ENQUEUE_MESSAGE, &canceller);
  cmp_ok(dk_client_raise(h.client, inst, "paid", inst), "==", DK_OUTCOME_UNKNOWN, "so a raise");
  hand_lost(&h, canceller);
  hand_lose(&h, FAULTY_ENQUEUE_MESSAGE, &canceller);
  cmp_ok(dk_client_cancel(h.client, inst, NULL, NULL), "==", DK_OUTCOME_UNKNOWN, "so a cancel");
  ok(strstr(dk_client_error(h.client), ": DK_OUTCOME_UNKNOWN: as the test has planned it"),
     "in these words: %s", dk_client_error(h.client));
  hand_lost(&h, canceller);
  hand_end(&h);
}

static void
test_not_sent(void)
{
  struct hand h;

  hand_begin(&h, false);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, FAULT_HANG, DK_OK);
  dk_cancel(h.canceller);
  cmp_ok(dk_client_raise(h.client, inst, "paid", inst), "==", DK_CALL_CANCELLED,
         "a call that is cancelled before it does anything");
  isnt(dk_client_error(h.client), "", "with an error text");
  dk_canceller_reset(h.canceller);
  faulty_plan(h.faulty, FAULTY_READ_HISTORY, 0, 1, FAULT_REFUSE, DK_CORRUPT);
  cmp_ok(dk_client_start(h.client, inst, "order", inst, NULL), "==", DK_CORRUPT,
         "a start that cannot check whether the instance exists");
  cmp_ok(hand_fetch(&h), "==", 0, "is not sent");
  faulty_plan(h.faulty, FAULTY_READ_HISTORY, 0, 2, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_start(h.client, inst, "order", inst, NULL), "==", DK_OK,
         "a look whose outcome is unknown is repeated");
  hand_end(&h);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { SENDERS = 4, LETTERS = 25 };

static void *
send_many(void *context)
{
  struct hand *h = context;
  intptr_t wrong = 0;

  for (int i = 0; i < LETTERS; i++)
    wrong += dk_client_enqueue(h->client, inst, "mail", inst) != DK_OK;
  return (void *)wrong;
}

static void
test_threads(void)
{
  struct hand h;
  pthread_t threads[SENDERS];
  intptr_t wrong = 0;

  hand_begin(&h, false);
  for (int i = 0; i < SENDERS; i++)
    if (pthread_create(&threads[i], NULL, send_many, &h) != 0)
      BAIL_OUT("no thread: %s", strerror(errno));
  for (int i = 0; i < SENDERS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    wrong += (intptr_t)result;
  }
  cmp_ok(wrong, "==", 0, "one client can be used by many threads");
  cmp_ok(hand_fetch(&h), "==", SENDERS * LETTERS, "and nothing is lost");
  hand_end(&h);
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
  test_lost();
  test_not_sent();
  test_threads();
  dk_client_free(NULL);
  return exit_status();
}
