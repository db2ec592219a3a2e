/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons: see delay-reason.h. */
#include "core/runtime/shared/delay-reason.h"

#include <stdio.h>
#include <string.h>

#include "core/base/names.h"

#define PREFIX "delayed."

/* ---- ids: "delayed.3" of a turn, "delayed.1.2.9000" of activity 2 of execution 1 ------------- */

static void
write_id(char *room, size_t size, const struct reason *reason)
{
  if (reason->activity)
    snprintf(room, size, PREFIX "%llu.%llu.%lld", (unsigned long long)reason->execution,
             (unsigned long long)reason->activity, (long long)reason->visible_at);
  else
    snprintf(room, size, PREFIX "%lld", (long long)reason->number);
}

/* Reads the number at the end, and where it begins; false: there is none, or it is too long. */
static bool
delay_reason_read_number(dk_str id, int64_t *ret_number, size_t *ret_at)
{
  enum { MOST_DIGITS = 18 };
  size_t at = id.len;
  int64_t number = 0;

  while (at > 0 && id.ptr[at - 1] >= '0' && id.ptr[at - 1] <= '9')
    at--;
  if (at == id.len || id.len - at > MOST_DIGITS)
    return false;
  for (size_t i = at; i < id.len; i++)
    number = number * 10 + (id.ptr[i] - '0');
  *ret_number = number;
  *ret_at = at;
  return true;
}

bool
reason_read_id(dk_str id, struct reason_id *ret_id)
{
  const size_t n = sizeof(PREFIX) - 1;
  size_t at;

  if (!id.ptr || id.len <= n || memcmp(id.ptr, PREFIX, n) != 0 ||
      !delay_reason_read_number(id, &ret_id->number, &at))
    return false;
  ret_id->whose = (dk_str){id.ptr, at};
  ret_id->is_activity = at > n;
  return true;
}

/* ---- the newest ------------------------------------------------------------------------------ */

const struct dk_message *
reason_newest(const struct dk_message *messages, size_t n)
{
  const struct dk_message *newest = NULL;
  struct reason_id id;
  int64_t number = -1;

  for (size_t i = 0; i < n; i++)
    if (reason_read_id(messages[i].id, &id) && !id.is_activity && id.number > number) {
      newest = &messages[i];
      number = id.number;
    }
  return newest;
}

/* An activity's reason waits in the queue until its own time.  If other messages make a turn
 * meanwhile and that turn is delayed, the reason is delayed with it: then it no longer describes
 * the activity's delay. */
bool
reason_is_outdated(const struct dk_message *messages, size_t n, const struct dk_message *reason)
{
  struct reason_id id, other;

  if (!reason_read_id(reason->id, &id))
    return false;
  if (id.is_activity && reason->visible_at > id.number)
    return true;
  for (size_t i = 0; i < n; i++)
    if (reason_read_id(messages[i].id, &other) && str_equal(other.whose, id.whose) &&
        other.number > id.number)
      return true;
  return false;
}

/* ---- contents -------------------------------------------------------------------------------- */

static void
encode(struct dk_text *payload, const struct reason *reason, dk_str by)
{
  const struct message message = {.kind = MESSAGE_DELAYED,
                                  .name = dk_str_of(delay_name(reason->why)),
                                  .text = reason->text,
                                  .by = by};

  message_encode(payload, &message);
}

bool
reason_is_same(struct dk_arena *arena, const struct dk_message *message,
               const struct reason *reason)
{
  struct message said = {.kind = MESSAGE_NONE};
  struct dk_text payload = DK_TEXT_EMPTY;
  const char *why;

  if (message_decode(arena, message->payload, &said, &why) != DK_OK)
    return false;
  encode(&payload, reason, said.by);
  bool is_same = !dk_text_failed(&payload) &&
                 str_equal(message->payload, (dk_str){dk_text_str(&payload), payload.length});
  dk_text_done(&payload);
  return is_same;
}

dk_status
reason_store(struct dk_store *store, struct dk_caller *caller, const struct reason *reason)
{
  struct dk_text payload = DK_TEXT_EMPTY;
  dk_status status = DK_NO_MEMORY;
  char id[96];

  write_id(id, sizeof(id), reason);
  encode(&payload, reason, reason->by);
  if (!dk_text_failed(&payload)) {
    const struct dk_item item = {.struct_size = sizeof(item),
                                 .instance = reason->instance,
                                 .id = dk_str_of(id),
                                 .visible_at = reason->visible_at,
                                 .payload = {dk_text_str(&payload), payload.length}};
    status = dk_store_enqueue_for_orchestrator(store, caller, &item);
  }
  dk_text_done(&payload);
  return status;
}
