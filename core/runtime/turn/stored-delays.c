/* SPDX-License-Identifier: Apache-2.0 */
/* What the store has about delayed turns: the message that begins an execution, if it is delayed
 * and so not among the messages of the turn; and the reason why a turn is delayed.  Needs
 * durakit.admin/1. */
#include <string.h>

#include "core/base/sat.h"
#include "core/runtime/shared/delay-reason.h"
#include "core/runtime/turn/turn-thread.h"
#include "core/runtime/turn/turn.h"

/* Reads all messages that are stored for the instance. */
static enum fate
read_messages(struct turn *turn, struct dk_messages **ret_messages)
{
  const struct dk_read_messages request = {.struct_size = sizeof(request),
                                           .instance = turn->instance};

  if (!turn_thread_call_begins(turn->thread, lease_deadline(turn->lease)))
    return FATE_LEFT;
  dk_status status =
      dk_store_read_messages(turn->shared->store, turn->caller, &request, ret_messages);

  if (!turn_thread_call_ends(turn->thread))
    return FATE_LEFT;
  return status == DK_OK ? FATE_GOES_ON : FATE_DROPPED;
}

enum fate
stored_find(struct turn *turn, dk_str id, const struct dk_message **ret_message)
{
  struct dk_messages *messages;

  *ret_message = NULL;
  if (!turn->shared->has_admin)
    return FATE_GOES_ON;
  enum fate fate = read_messages(turn, &messages);
  if (fate != FATE_GOES_ON)
    return fate;
  for (size_t i = 0; i < messages->n_items && !*ret_message; i++)
    if (messages->items[i].id.ptr && str_equal(messages->items[i].id, id))
      *ret_message = &messages->items[i];
  return FATE_GOES_ON;
}

enum fate
stored_wait_for(struct turn *turn, const struct dk_message *message)
{
  int64_t left = dk_sat_add(message->visible_at, -turn->now);

  turn->wait_ms = left > 0 ? left : 0;
  return FATE_WAITS;
}

dk_status
stored_read_start(struct turn *turn, const struct dk_message *message, struct message *ret_start)
{
  const char *why = NULL;
  dk_status status = message_decode(&turn->arena, message->payload, ret_start, &why);

  if (status == DK_NO_MEMORY || (status == DK_OK && ret_start->kind == MESSAGE_START))
    return status;
  *ret_start = (struct message){.kind = MESSAGE_START, .name = dk_str_of("unreadable")};
  return DK_OK;
}

dk_status
stored_take_along(struct turn *turn)
{
  struct decision *d = &turn->decision;
  dk_str *withdrawn = dk_arena_array(&turn->arena, d->n_withdrawn + 1, sizeof(*withdrawn));

  if (!withdrawn)
    return DK_NO_MEMORY;
  if (d->n_withdrawn > 0)
    memcpy(withdrawn, d->withdrawn, d->n_withdrawn * sizeof(*withdrawn));
  withdrawn[d->n_withdrawn++] = turn->stored_start;
  d->withdrawn = withdrawn;
  return DK_OK;
}

/* ---- why it is delayed ----------------------------------------------------------------------- */

/* When a message of the turn, and so all of them, becomes due; 0: it is due, or no longer
 * stored. */
static int64_t
due_again(const struct turn *turn, const struct dk_messages *messages)
{
  const struct dk_message *first = &turn->fetched->messages[0];

  for (size_t i = 0; i < messages->n_items; i++) {
    const struct dk_message *row = &messages->items[i];
    if (row->enqueued_at == first->enqueued_at && row->visible_at > turn->now &&
        str_equal(row->payload, first->payload))
      return row->visible_at;
  }
  return 0;
}

static void
log_unstored(struct turn *turn)
{
  struct dk_log_event event = turn_event(turn, DK_LOG_TEXT);

  event.level = DK_LEVEL_TRACE;
  log_report(turn->shared->log, &event, "the reason of its delay cannot be stored: %s",
             dk_caller_failure(turn->caller)->text);
}

/* Until when the turn is delayed; 0: there is nothing to store. */
static int64_t
find_place(struct turn *turn, struct reason *reason)
{
  struct dk_messages *messages;
  struct reason_id id;

  if (read_messages(turn, &messages) != FATE_GOES_ON)
    return 0;
  const struct dk_message *newest = reason_newest(messages->items, messages->n_items);
  if (newest && reason_is_same(&turn->arena, newest, reason))
    return 0;
  if (newest && reason_read_id(newest->id, &id))
    reason->number = id.number + 1;
  return reason->number < MOST_REASONS ? due_again(turn, messages) : 0;
}

/* The text of the last reason that is stored, which explains that later ones are not. */
static dk_str
last_words(struct turn *turn)
{
  const char *words =
      dk_arena_printf(&turn->arena,
                      "%s (the reason has changed %d times: the log of the workers has "
                      "the current one)",
                      turn->words, MOST_REASONS - 1);

  return dk_str_of(words ? words : turn->words);
}

/* Stores a reason once: from then on it is delayed with the turn. */
void
stored_write_reason(struct turn *turn)
{
  struct reason reason = {.instance = turn->instance,
                          .why = turn->delay_why,
                          .text = dk_str_of(turn->words),
                          .by = turn->shared->owner};

  if (!turn->shared->has_admin || turn->delay_why == DELAY_NO_START ||
      turn_thread_ends(turn->thread))
    return;
  const struct dk_message *told = reason_newest(turn->fetched->messages, turn->fetched->n_messages);
  if (told && reason_is_same(&turn->arena, told, &reason))
    return;
  reason.visible_at = find_place(turn, &reason);
  if (reason.visible_at == 0 || !turn_thread_call_begins(turn->thread, lease_deadline(turn->lease)))
    return;
  if (reason.number == MOST_REASONS - 1)
    reason.text = last_words(turn);
  dk_status status = reason_store(turn->shared->store, turn->caller, &reason);
  if (turn_thread_call_ends(turn->thread) && status != DK_OK && status != DK_DUPLICATE)
    log_unstored(turn);
}
