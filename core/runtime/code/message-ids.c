/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of messages and of children: see decision.h.  Owns nothing. */
#include "core/runtime/code/decision-parts.h"

static dk_str
numbered(struct dk_arena *arena, char letter, uint64_t execution, uint64_t event)
{
  return dk_str_of(dk_arena_printf(arena, "%c%llu.%llu", letter, (unsigned long long)execution,
                                   (unsigned long long)event));
}

dk_str
message_id(struct dk_arena *arena, enum message_kind kind, uint64_t execution, uint64_t event)
{
  switch (kind) {
  case MESSAGE_START:
    return dk_str_of("start");
  case MESSAGE_CONTINUE:
    return dk_str_of(dk_arena_printf(arena, "c%llu", (unsigned long long)execution));
  case MESSAGE_TIMER_FIRED:
    return numbered(arena, 't', execution, event);
  case MESSAGE_ACTIVITY_COMPLETED:
  case MESSAGE_ACTIVITY_FAILED:
    return numbered(arena, 'a', execution, event);
  case MESSAGE_CHILD_COMPLETED:
  case MESSAGE_CHILD_FAILED:
    return numbered(arena, 'e', execution, event);
  case MESSAGE_CANCEL:
    return numbered(arena, 'x', execution, event);
  default:
    return dk_str_of(NULL);
  }
}

dk_str
timer_message_id(struct dk_arena *arena, uint64_t execution, uint64_t event)
{
  return message_id(arena, MESSAGE_TIMER_FIRED, execution, event);
}

dk_str
child_instance_id(struct dk_arena *arena, dk_str parent, uint64_t execution, uint64_t event)
{
  return dk_str_of(dk_arena_printf(arena, "%.*s::%llu.%llu", (int)parent.len, parent.ptr,
                                   (unsigned long long)execution, (unsigned long long)event));
}

struct outgoing
outgoing_taken(struct dk_arena *arena, const struct parent *parent)
{
  return (struct outgoing){
    .instance = parent->instance,
    .id = message_id(arena, MESSAGE_CHILD_FAILED, parent->execution, parent->source),
    .message = {.kind = MESSAGE_CHILD_FAILED, .code = CODE_INSTANCE_TAKEN,
                .execution = parent->execution, .source = parent->source,
                .text = dk_str_of("the instance id of the child belongs to another instance")}};
}
