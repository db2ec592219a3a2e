/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of dk_client_history, dk_client_executions, dk_client_messages and dk_client_stats.  The
 * turns are made by hand, on the model. */
#include <stdio.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/hand-made-turns.h"

static const dk_str inst = {"inst", 4};

struct told {
  struct dk_text text;
  unsigned n, stop_after;  /* 0: never */
  uint64_t last;
};

static const char *
shown(dk_str text)
{
  return text.ptr ? text.ptr : "-";
}

static void
forget(struct told *told)
{
  dk_text_done(&told->text);
  *told = (struct told){.text = DK_TEXT_EMPTY};
}

/* ---- histories ------------------------------------------------------------------------------- */

static int32_t
hear_event(void *context, const struct dk_history_entry *e)
{
  struct told *told = context;

  dk_text_printf(&told->text, "%d.%d %s %d [%s] %s/%s/%s/%s\n", (int)e->execution_id,
                 (int)e->event_id, e->kind, (int)e->source, e->code, shown(e->name), shown(e->text),
                 shown(e->by), shown(e->other_instance));
  told->last = e->event_id;
  return ++told->n == told->stop_after;
}

static dk_status
history(struct hand *h, uint64_t execution, uint64_t from, uint64_t max, struct told *told)
{
  return dk_client_history(h->client, (dk_str){"instXYZ", 4}, execution, from, max, hear_event,
                           told);
}

/* The events of a second execution: each member is used by one of them. */
static void
make_history(struct hand *h)
{
  const struct event first[] = {hand_started,
                                {.kind = EVENT_CONTINUED, .text = dk_str_of("next")}};
  const struct event second[] = {
    {.kind = EVENT_STARTED, .name = dk_str_of("order"), .text = dk_str_of("next"),
     .parent = {.instance = dk_str_of("mother"), .source = 3}},
    {.kind = EVENT_ACTIVITY, .name = dk_str_of("charge"), .text = dk_str_of("42"), .time = 77},
    {.kind = EVENT_CHILD, .name = dk_str_of("report"), .instance = dk_str_of("daughter")},
    {.kind = EVENT_ACTIVITY_FAILED, .source = 2, .code = CODE_POISON, .text = dk_str_of("no")},
    {.kind = EVENT_CANCEL_REQUESTED, .text = dk_str_of("late"), .by = dk_str_of("me")},
    {.kind = EVENT_ENDED, .source = 3, .code = CODE_TERMINAL_CANCELLED},
    {.kind = EVENT_CANCELLED, .text = dk_str_of("late"), .by = dk_str_of("me")},
  };

  hand_store(h, inst);
  hand_fetch(h);
  hand_commit(h, 1, 1, first, 2, DK_CONTINUED_AS_NEW, "next");
  hand_next_turn(h, inst);
  hand_commit(h, 2, 1, second, 7, DK_CANCELLED, "late");
}

static void
test_history(bool is_plain)
{
  struct hand h;
  struct told told = {.text = DK_TEXT_EMPTY};

  hand_begin(&h, is_plain);
  make_history(&h);
  cmp_ok(history(&h, 0, 0, 0, &told), "==", DK_OK, "the latest execution's history");
  is(dk_text_str(&told.text),
     "2.1 started 0 [] order/next/-/mother\n"
     "2.2 activity 0 [] charge/42/-/-\n"
     "2.3 child 0 [] report/-/-/daughter\n"
     "2.4 activity_failed 2 [poison] -/no/-/-\n"
     "2.5 cancel_requested 0 [] -/late/me/-\n"
     "2.6 ended 3 [terminal_cancelled] -/-/-/-\n"
     "2.7 cancelled 0 [] -/late/me/-\n",
     "each event, and what it says");
  forget(&told);
  cmp_ok(history(&h, 1, 0, 0, &told), "==", DK_OK, "the first one's");
  is(dk_text_str(&told.text), "1.1 started 0 [] order/-/-/-\n1.2 continued 0 [] -/next/-/-\n",
     "its events");
  forget(&told);
  cmp_ok(history(&h, 2, 3, 2, &told), "==", DK_OK, "a part");
  is(dk_text_str(&told.text),
     "2.3 child 0 [] report/-/-/daughter\n2.4 activity_failed 2 [poison] -/no/-/-\n",
     "from an event on, so many");
  forget(&told);
  cmp_ok(history(&h, 2, 8, 0, &told), "==", DK_OK, "a part after the last event");
  cmp_ok(told.n, "==", 0, "is nothing");
  cmp_ok(history(&h, 3, 0, 0, &told), "==", DK_NOT_FOUND, "an execution that does not exist");
  is(dk_client_error(h.client), "inst has no stored execution 3", "the error says so");
  cmp_ok(dk_client_history(h.client, dk_str_of("absent"), 0, 0, 0, hear_event, &told), "==",
         DK_NOT_FOUND, "an instance that does not exist");
  cmp_ok(dk_client_history(h.client, dk_str_of(""), 0, 0, 0, hear_event, &told), "==", DK_INVALID,
         "an invalid id");
  cmp_ok(dk_client_history(h.client, inst, 0, 0, 0, NULL, NULL), "==", DK_INVALID,
         "no callback");
  told.stop_after = 2;
  cmp_ok(history(&h, 0, 0, 0, &told), "==", DK_CALL_CANCELLED, "a callback that ends the list");
  cmp_ok(told.n, "==", 2, "is not called again");
  forget(&told);
  hand_end(&h);
}

static int32_t
hear_payload(void *context, const struct dk_history_entry *entry)
{
  struct told *told = context;

  dk_text_printf(&told->text, "%s %lld %s\n", entry->kind, (long long)entry->time,
                 shown(entry->payload));
  return 0;
}

/* One event of a newer library among others. */
static void
test_unreadable(void)
{
  struct hand h;
  struct told told = {.text = DK_TEXT_EMPTY};
  struct dk_commit_outcome outcome;
  const struct dk_event rows[] = {
    {1, dk_str_of("{\"v\":1,\"kind\":\"started\",\"time\":5,\"name\":\"order\"}")},
    {2, dk_str_of("{\"v\":9}")},
    {3, {"\xff\0", 2}},
  };
  const struct dk_turn_result result = {.struct_size = sizeof(result),
                                        .execution_id = 1,
                                        .status = DK_RUNNING,
                                        .events = rows,
                                        .n_events = 3,
                                        .name = dk_str_of("order"),
                                        .version = dk_str_of("1.0.0")};

  hand_begin(&h, false);
  hand_store(&h, inst);
  hand_fetch(&h);
  if (dk_store_ack_orchestration_item(h.store, h.caller, h.turn->head.lock_token, &result,
                                      &outcome) != DK_OK)
    BAIL_OUT("the commit is refused: %s", dk_caller_failure(h.caller)->text);
  cmp_ok(dk_client_history(h.client, inst, 0, 0, 0, hear_payload, &told), "==", DK_OK,
         "events that cannot be read");
  is(dk_text_str(&told.text),
     "started 5 {\"v\":1,\"kind\":\"started\",\"time\":5,\"name\":\"order\"}\n"
     "unreadable 0 {\"v\":9}\nunreadable 0 \xff\n",
     "are listed as they are stored");
  forget(&told);
  hand_end(&h);
}

/* More than two pages. */
static void
test_long_history(void)
{
  enum { EVENTS = 150 };
  struct hand h;
  struct told told = {.text = DK_TEXT_EMPTY};
  struct event events[EVENTS];

  hand_begin(&h, false);
  for (int i = 0; i < EVENTS; i++)
    events[i] = i == 0 ? hand_started
                       : (struct event){.kind = EVENT_RAISED, .name = dk_str_of("e")};
  hand_store(&h, inst);
  hand_fetch(&h);
  hand_commit(&h, 1, 1, events, EVENTS, DK_RUNNING, NULL);
  uint64_t before = faulty_calls(h.faulty, FAULTY_READ_HISTORY);
  cmp_ok(history(&h, 0, 0, 0, &told), "==", DK_OK, "a long history");
  ok(told.n == EVENTS && told.last == EVENTS, "is listed completely");
  cmp_ok(faulty_calls(h.faulty, FAULTY_READ_HISTORY) - before, "==", 3, "in three pages");
  forget(&told);
  cmp_ok(history(&h, 0, 0, 128, &told), "==", DK_OK, "or two pages of it");
  ok(told.n == 128 && told.last == 128, "exactly");
  faulty_plan(h.faulty, FAULTY_READ_HISTORY, 1, 1, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  forget(&told);
  cmp_ok(history(&h, 0, 0, 0, &told), "==", DK_OK, "an answer that was lost is asked for again");
  cmp_ok(told.n, "==", EVENTS, "and no event is listed twice");
  faulty_plan(h.faulty, FAULTY_READ_HISTORY, 1, 1, FAULT_REFUSE, DK_UNAVAILABLE);
  cmp_ok(history(&h, 0, 0, 0, &told), "==", DK_UNAVAILABLE,
         "a store that becomes unreachable midway");
  isnt(dk_client_error(h.client), "", "and an error says so");
  forget(&told);
  hand_end(&h);
}

/* ---- executions ------------------------------------------------------------------------------ */

static int32_t
hear_execution(void *context, const struct dk_execution *e)
{
  struct told *told = context;

  dk_text_printf(&told->text, "%d:%d:%d:%s ", (int)e->execution_id, (int)e->status,
                 (int)e->last_event_id, shown(e->output));
  told->last = e->execution_id;
  return ++told->n == told->stop_after;
}

static void
test_executions(void)
{
  enum { EXECUTIONS = 40 };
  struct hand h;
  struct told told = {.text = DK_TEXT_EMPTY};

  hand_begin(&h, false);
  make_history(&h);
  cmp_ok(dk_client_executions(h.client, inst, hear_execution, &told), "==", DK_OK, "executions");
  is(dk_text_str(&told.text), "1:4:2:next 2:5:7:late ", "with status, last event and output");
  forget(&told);
  told.stop_after = 1;
  cmp_ok(dk_client_executions(h.client, inst, hear_execution, &told), "==", DK_CALL_CANCELLED,
         "a callback that ends the list");
  cmp_ok(told.n, "==", 1, "is not called again");
  cmp_ok(dk_client_executions(h.client, dk_str_of("absent"), hear_execution, &told), "==",
         DK_NOT_FOUND, "those of an instance that does not exist");
  is(dk_client_error(h.client), "nothing is stored for absent", "the error says so");
  forget(&told);
  hand_store(&h, dk_str_of("other"));
  cmp_ok(dk_client_executions(h.client, dk_str_of("other"), hear_execution, &told), "==", DK_OK,
         "of what is not started");
  cmp_ok(told.n, "==", 0, "there are none");
  hand_fetch(&h);
  for (uint64_t i = 1; i <= EXECUTIONS; i++) {
    hand_commit(&h, i, 1, &hand_started, 1, DK_CONTINUED_AS_NEW, NULL);
    hand_next_turn(&h, dk_str_of("other"));
  }
  cmp_ok(dk_client_executions(h.client, dk_str_of("other"), hear_execution, &told), "==", DK_OK,
         "many");
  ok(told.n == EXECUTIONS && told.last == EXECUTIONS, "each once");
  forget(&told);
  hand_end(&h);
}

/* ---- messages -------------------------------------------------------------------------------- */

static int32_t
hear_message(void *context, const struct dk_waiting *m)
{
  struct told *told = context;

  dk_text_printf(&told->text, "%s %s %s/%s/%s%s\n", m->kind, shown(m->id), shown(m->name),
                 shown(m->text), shown(m->by),
                 m->visible_at > 0 && m->enqueued_at > 0 && m->payload.ptr ? "" : " incomplete");
  return ++told->n == told->stop_after;
}

static void
test_messages(void)
{
  struct hand h;
  struct told told = {.text = DK_TEXT_EMPTY};
  const struct dk_item odd = {.struct_size = sizeof(odd),
                              .instance = inst,
                              .id = dk_str_of("odd"),
                              .payload = dk_str_of("?")};

  hand_begin(&h, false);
  hand_store(&h, inst);
  dk_client_cancel(h.client, inst, "late", "me");
  dk_store_enqueue_for_orchestrator(h.store, h.caller, &odd);
  cmp_ok(dk_client_messages(h.client, (dk_str){"instXYZ", 4}, hear_message, &told), "==", DK_OK,
         "what waits");
  is(dk_text_str(&told.text),
     "start start order/in/-\ncancel cancel -/late/me\nunreadable odd "
     "-/message: the payload is not JSON: byte 0: '?' where a value is expected/-\n",
     "in its order, with what it says");
  forget(&told);
  told.stop_after = 2;
  cmp_ok(dk_client_messages(h.client, inst, hear_message, &told), "==", DK_CALL_CANCELLED,
         "a callback that ends the list");
  cmp_ok(told.n, "==", 2, "is not called again");
  hand_fetch(&h);
  hand_commit(&h, 1, 1, &hand_started, 1, DK_RUNNING, NULL);
  forget(&told);
  cmp_ok(dk_client_messages(h.client, inst, hear_message, &told), "==", DK_OK, "when it is taken");
  cmp_ok(told.n, "==", 0, "nothing waits");
  cmp_ok(dk_client_messages(h.client, dk_str_of("absent"), hear_message, &told), "==",
         DK_NOT_FOUND, "those of an instance that does not exist");
  forget(&told);
  hand_end(&h);
}

/* ---- counts ---------------------------------------------------------------------------------- */

static void
test_stats(void)
{
  struct hand h;
  struct dk_stats stats = {.struct_size = sizeof(stats)};

  hand_begin(&h, false);
  make_history(&h);
  hand_start(&h, dk_str_of("a"));
  hand_store(&h, dk_str_of("b"));
  faulty_plan(h.faulty, FAULTY_READ_STATS, 0, 1, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_stats(h.client, &stats), "==", DK_OK, "counts");
  ok(stats.not_started == 1 && stats.running == 1 && stats.cancelled == 1 && stats.completed == 0 &&
       stats.executions == 3 && stats.events == 10 && stats.messages_ready == 1 && stats.now > 0 &&
       stats.oldest_message > 0 && stats.activities_ready == 0,
     "of all there is");
  cmp_ok(stats.struct_size, "==", sizeof(stats), "the size stays the caller's");
  stats.struct_size = offsetof(struct dk_stats, running);
  stats.running = 77;
  cmp_ok(dk_client_stats(h.client, &stats), "==", DK_OK, "an older caller");
  cmp_ok(stats.running, "==", 77, "gets what its struct has");
  faulty_away(h.faulty, true);
  cmp_ok(dk_client_stats(h.client, &stats), "==", DK_UNAVAILABLE, "an unreachable store");
  hand_end(&h);
}

static void
test_plain(void)
{
  struct hand h;
  struct told told = {.text = DK_TEXT_EMPTY};
  struct dk_stats stats = {.struct_size = sizeof(stats)};

  hand_begin(&h, true);
  cmp_ok(dk_client_executions(h.client, inst, hear_execution, &told), "==", DK_UNSUPPORTED,
         "without the extension: executions");
  ok(strstr(dk_client_error(h.client), "dk_client_executions needs durakit.admin/1"),
     "the error says so");
  cmp_ok(dk_client_messages(h.client, inst, hear_message, &told), "==", DK_UNSUPPORTED, "messages");
  cmp_ok(dk_client_stats(h.client, &stats), "==", DK_UNSUPPORTED, "counts");
  ok(strstr(dk_client_error(h.client), "dk_client_stats needs durakit.admin/1"), "say so");
  hand_end(&h);
}

int
main(void)
{
  plan(NO_PLAN);
  test_history(false);
  test_history(true);
  test_unreadable();
  test_long_history();
  test_executions();
  test_messages();
  test_stats();
  test_plain();
  return exit_status();
}
