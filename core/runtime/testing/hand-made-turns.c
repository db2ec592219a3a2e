/* SPDX-License-Identifier: Apache-2.0 */
/* Turns by hand: see hand-made-turns.h. */
#include "core/runtime/testing/hand-made-turns.h"

#include <string.h>

#include "conformance/tap/tap.h"

enum { PATIENCE_MS = 60000, MOST_EVENTS = 200 };

void
hand_begin(struct hand *hand, bool is_plain)
{
  hand_begin_on(hand, is_plain ? faulty_open_plain_model() : faulty_open_model());
}

void
hand_begin_on(struct hand *hand, struct faulty *faulty)
{
  hand->faulty = faulty;
  hand->store = faulty_store(hand->faulty);
  hand->canceller = dk_canceller_new(NULL);
  hand->client = dk_client_new(hand->store, hand->canceller);
  hand->caller = dk_caller_new(NULL, 0);
  if (!hand->canceller || !hand->client || !hand->caller)
    BAIL_OUT("no memory");
  dk_arena_init(&hand->arena);
  hand->turn = NULL;
  hand->name = "order";
  hand->parent = NULL;
}

void
hand_end(struct hand *hand)
{
  dk_client_free(hand->client);
  dk_caller_free(hand->caller);
  dk_canceller_free(hand->canceller);
  dk_arena_done(&hand->arena);
  faulty_close(hand->faulty);
}

size_t
hand_fetch(struct hand *hand)
{
  const struct dk_fetch_turn request = {.struct_size = sizeof(request), .lock_ms = PATIENCE_MS};

  dk_caller_reset(hand->caller);
  hand->turn = NULL;
  dk_status status =
    dk_store_fetch_orchestration_item(hand->store, hand->caller, &request, &hand->turn);
  return status == DK_OK ? hand->turn->n_messages : 0;
}

struct message
hand_message(struct hand *hand, size_t i)
{
  struct message message = {.kind = MESSAGE_NONE};
  const char *why = "";

  if (message_decode(&hand->arena, hand->turn->messages[i].payload, &message, &why) != DK_OK)
    diag("undecodable: %s", why);
  return message;
}

void
hand_commit(struct hand *hand, uint64_t execution, uint64_t first, const struct event *events,
            size_t n, int32_t status, const char *output)
{
  struct dk_event rows[MOST_EVENTS];
  struct dk_commit_outcome outcome;
  struct dk_turn_result result = {
    .struct_size = sizeof(result),
    .execution_id = execution,
    .status = status,
    .events = rows,
    .n_events = n,
    .output = dk_str_of(output),
    .name = dk_str_of(hand->name),
    .version = dk_str_of("1.2.3"),
    .parent_instance = dk_str_of(hand->parent),
  };

  if (n > MOST_EVENTS)
    BAIL_OUT("%zu events are too many for a turn by hand", n);
  for (size_t i = 0; i < n; i++) {
    struct dk_text text = DK_TEXT_EMPTY;
    event_encode(&text, &events[i]);
    rows[i].event_id = first + i;
    rows[i].payload =
      (dk_str){dk_arena_copy(&hand->arena, dk_text_str(&text), text.length), text.length};
    dk_text_done(&text);
  }
  if (dk_store_ack_orchestration_item(hand->store, hand->caller, hand->turn->head.lock_token,
                                      &result, &outcome) != DK_OK)
    BAIL_OUT("the commit is refused: %s", dk_caller_failure(hand->caller)->text);
}

void
hand_next_turn(struct hand *hand, dk_str instance)
{
  if (dk_client_raise(hand->client, instance, "go on", (dk_str){NULL, 0}) != DK_OK ||
      hand_fetch(hand) == 0)
    BAIL_OUT("no turn: %s", dk_client_error(hand->client));
}

const struct event hand_started = {
  .kind = EVENT_STARTED, .name = {"order", 5}, .version = {"1.2.3", 5}};

void
hand_store(struct hand *hand, dk_str instance)
{
  const struct message start = {.kind = MESSAGE_START,
                                .name = dk_str_of(hand->name),
                                .text = dk_str_of("in"),
                                .version = dk_str_of("1.2.3"),
                                .parent = {.instance = dk_str_of(hand->parent), .source = 2}};
  struct dk_text payload = DK_TEXT_EMPTY;

  message_encode(&payload, &start);
  const struct dk_item item = {.struct_size = sizeof(item),
                               .instance = instance,
                               .id = dk_str_of("start"),
                               .payload = {dk_text_str(&payload), payload.length}};
  dk_caller_reset(hand->caller);
  if (dk_store_enqueue_for_orchestrator(hand->store, hand->caller, &item) != DK_OK)
    BAIL_OUT("no start: %s", dk_caller_failure(hand->caller)->text);
  dk_text_done(&payload);
}

void
hand_make(struct hand *hand, dk_str instance, int32_t status)
{
  const struct event events[] = {
    hand_started, {.kind = status == DK_CANCELLED ? EVENT_CANCELLED : EVENT_COMPLETED,
                   .text = dk_str_of("out"), .by = dk_str_of("me")}};

  hand_store(hand, instance);
  if (hand_fetch(hand) == 0 || strcmp(hand->turn->head.instance.ptr, instance.ptr) != 0)
    BAIL_OUT("no turn of %s: make instances that are not started last", instance.ptr);
  hand_commit(hand, 1, 1, events, status == DK_RUNNING ? 1 : 2, status,
              status == DK_RUNNING ? NULL : "out");
}

void
hand_start(struct hand *hand, dk_str instance)
{
  hand_make(hand, instance, DK_RUNNING);
}

static void *
cancel_when_it_hangs(void *context)
{
  struct hand *hand = context;

  faulty_until_hanging(hand->faulty, 1);
  dk_cancel(hand->canceller);
  return NULL;
}

void
hand_lose(struct hand *hand, enum faulty_operation operation, pthread_t *ret_canceller)
{
  faulty_plan(hand->faulty, operation, 0, 1, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  faulty_then(hand->faulty, operation, 1, FAULT_HANG, DK_OK);
  if (pthread_create(ret_canceller, NULL, cancel_when_it_hangs, hand) != 0)
    BAIL_OUT("no thread");
}

void
hand_lost(struct hand *hand, pthread_t canceller)
{
  pthread_join(canceller, NULL);
  dk_canceller_reset(hand->canceller);
  faulty_heal(hand->faulty);
}

struct dk_instance_info
hand_info(void)
{
  return (struct dk_instance_info){.struct_size = sizeof(struct dk_instance_info)};
}

bool
is_text(dk_str text, const char *expected)
{
  return expected ? text.ptr && text.len == strlen(expected) &&
                      memcmp(text.ptr, expected, text.len + 1) == 0
                  : !text.ptr;
}
