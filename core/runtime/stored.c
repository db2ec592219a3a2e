/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in the store of delayed turns: what begins an execution, where it is delayed and not
 * among the messages of the turn.  With durakit.admin/1. */
#include <string.h>

#include "core/base/sat.h"
#include "core/runtime/job.h"
#include "core/runtime/seat.h"

/* All that is stored for the instance. */
static enum fate
read_messages(struct job *job, struct dk_messages **ret_messages)
{
  const struct dk_read_messages request = {.struct_size = sizeof(request),
                                           .instance = job->instance};

  if (!seat_call_begins(job->seat, lease_deadline(job->lease)))
    return FATE_LEFT;
  dk_status status = dk_store_read_messages(job->w->store, job->caller, &request, ret_messages);

  if (!seat_call_ends(job->seat))
    return FATE_LEFT;
  return status == DK_OK ? FATE_COMMITTED : FATE_DROPPED;
}

enum fate
stored_find(struct job *job, dk_str id, const struct dk_message **ret_message)
{
  struct dk_messages *messages;

  *ret_message = NULL;
  if (!job->w->has_admin)
    return FATE_COMMITTED;
  enum fate fate = read_messages(job, &messages);
  if (fate != FATE_COMMITTED)
    return fate;
  for (size_t i = 0; i < messages->n_items && !*ret_message; i++)
    if (messages->items[i].id.ptr && str_equal(messages->items[i].id, id))
      *ret_message = &messages->items[i];
  return FATE_COMMITTED;
}

enum fate
stored_wait_for(struct job *job, const struct dk_message *message)
{
  int64_t left = dk_sat_add(message->visible_at, -job->now);

  job->wait_ms = left > 0 ? left : 0;
  return FATE_WAITS;
}

dk_status
stored_read_start(struct job *job, const struct dk_message *message, struct message *ret_start)
{
  const char *why = NULL;
  dk_status status = message_decode(&job->arena, message->payload, ret_start, &why);

  if (status == DK_NO_MEMORY || (status == DK_OK && ret_start->kind == MESSAGE_START))
    return status;
  *ret_start = (struct message){.kind = MESSAGE_START, .name = dk_str_of("unreadable")};
  return DK_OK;
}

dk_status
stored_take_along(struct job *job)
{
  struct decision *d = &job->decision;
  dk_str *withdrawn = dk_arena_array(&job->arena, d->n_withdrawn + 1, sizeof(*withdrawn));

  if (!withdrawn)
    return DK_NO_MEMORY;
  if (d->n_withdrawn > 0)
    memcpy(withdrawn, d->withdrawn, d->n_withdrawn * sizeof(*withdrawn));
  withdrawn[d->n_withdrawn++] = job->stored_start;
  d->withdrawn = withdrawn;
  return DK_OK;
}
