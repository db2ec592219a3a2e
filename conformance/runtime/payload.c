/* SPDX-License-Identifier: Apache-2.0 */
/* The payloads of the runtime: see payload.h. */
#include "conformance/runtime/payload.h"

#include "core/runtime/format/event.h"

bool
payload_event(struct dk_arena *arena, struct dk_bytes payload, struct told *ret_told,
              const char **ret_why)
{
  struct event event;

  *ret_why = "out of memory";
  if (event_decode(arena, payload, &event, ret_why) != DK_OK)
    return false;
  *ret_told = (struct told){event_kind_name(event.kind), code_name(event.code), event.source};
  return true;
}

/* Moves the text into the arena, and frees it. */
static struct dk_bytes
keep(struct dk_arena *arena, struct dk_text *text)
{
  size_t length = text->length;
  char *copy = dk_text_failed(text) ? NULL : dk_arena_copy(arena, dk_text_str(text), length);

  dk_text_done(text);
  return (struct dk_bytes){copy, copy ? length : 0};
}

struct dk_bytes
payload_completion(struct dk_arena *arena, uint64_t execution, uint64_t activity,
                   const char *result)
{
  const struct message message = {.kind = MESSAGE_ACTIVITY_COMPLETED,
                                  .execution = execution,
                                  .source = activity,
                                  .text = dk_str_of(result)};
  struct dk_text text = DK_TEXT_EMPTY;

  message_encode(&text, &message);
  return keep(arena, &text);
}

struct dk_bytes
payload_order(struct dk_arena *arena, const char *name, const char *input)
{
  const struct task_order order = {.name = dk_str_of(name),
                                   .input = dk_str_of(input),
                                   .orchestration = dk_str_of("order"),
                                   .version = dk_str_of("1.0.0")};
  struct dk_text text = DK_TEXT_EMPTY;

  task_order_encode(&text, &order);
  return keep(arena, &text);
}
