/* SPDX-License-Identifier: Apache-2.0 */
/* Callers: memory for results, the text of the last failure, and one call at a time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/plugin/call.h"

enum { ALIGNMENT = 64 };

/* The caller is at the beginning of its region, the arena after it. */
static struct dk_caller *
place_in(void *region, size_t size)
{
  size_t skip = (ALIGNMENT - (uintptr_t)region % ALIGNMENT) % ALIGNMENT;

  if (size < skip + sizeof(struct dk_caller))
    return NULL;
  struct dk_caller *caller = (void *)((char *)region + skip);
  memset(caller, 0, sizeof(*caller));
  dk_arena_init_fixed(&caller->arena, caller + 1, size - skip - sizeof(*caller));
  return caller;
}

struct dk_caller *
dk_caller_new(void *region, size_t size)
{
  struct dk_caller *caller = region ? place_in(region, size) : calloc(1, sizeof(*caller));

  if (!caller)
    return NULL;
  if (!region) {
    caller->is_own = true;
    dk_arena_init(&caller->arena);
  }
  caller->failure.text = caller->text;
  caller->failure.operation = "";
  caller->call.gate = -1;
  return caller;
}

void
dk_caller_free(struct dk_caller *caller)
{
  if (!caller)
    return;
  dk_arena_done(&caller->arena);
  if (caller->is_own)
    free(caller);
}

void
dk_caller_set_canceller(struct dk_caller *caller, struct dk_canceller *canceller)
{
  caller->canceller = canceller;
}

void
dk_caller_set_actor(struct dk_caller *caller, int32_t actor)
{
  caller->actor = actor;
}

void
dk_caller_set_unchecked(struct dk_caller *caller, int32_t unchecked)
{
  caller->is_unchecked = unchecked != 0;
}

void
dk_caller_refuse_result(struct dk_caller *caller, uint32_t n)
{
  caller->refuses = n;
}

void
dk_caller_reset(struct dk_caller *caller)
{
  dk_arena_reset(&caller->arena);
  caller->failure = (struct dk_failure){.operation = "", .text = caller->text};
  caller->overdue = (struct dk_overdue){.turn = NULL};
  caller->text[0] = '\0';
}

const struct dk_failure *
dk_caller_failure(const struct dk_caller *caller)
{
  return &caller->failure;
}

const struct dk_overdue *
dk_caller_overdue(const struct dk_caller *caller)
{
  return &caller->overdue;
}

void
dk_caller_set_text(struct dk_caller *caller, struct dk_bytes text)
{
  size_t size = text.ptr ? text.len : 0;

  if (size >= sizeof(caller->text)) {
    size = sizeof(caller->text) - 1;
    while (size > 0 && ((unsigned char)text.ptr[size] & 0xc0) == 0x80)
      size--; /* not in the middle of a character */
  }
  if (size > 0)
    memcpy(caller->text, text.ptr, size);
  caller->text[size] = '\0';
  for (char *nul = memchr(caller->text, '\0', size); nul;
       nul = memchr(caller->text, '\0', size))
    *nul = '?';
}
