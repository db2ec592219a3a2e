/* SPDX-License-Identifier: Apache-2.0 */
/* The inbox of a turn: decodes its messages, and finds the one that begins an execution.  A message
 * that cannot be decoded delays the turn; if the instance is cancelled or has ended, it is logged
 * once the turn's commit has deleted it. */
#include "core/runtime/turn/turn.h"

static void
count_attempt(struct turn *turn, const struct dk_message *message)
{
  if (message->attempt > turn->attempt)
    turn->attempt = message->attempt;
  if (turn->least_attempt == 0 || message->attempt < turn->least_attempt)
    turn->least_attempt = message->attempt;
}

/* The text: which message is unreadable, and why. */
static const char *
unreadable(struct turn *turn, dk_str id, const char *why)
{
  const char *text =
      dk_arena_printf(&turn->arena,
                      "the one %s%.*s%s: %s; send messages only with a client (dk_client_raise, "
                      "dk_client_enqueue) or a runtime of this version",
                      id.ptr ? "with the id \"" : "without an id", id.ptr ? (int)id.len : 0,
                      id.ptr ? id.ptr : "", id.ptr ? "\"" : "", why);

  return text ? text : why;
}

/* In its place it keeps a MESSAGE_NONE, which is ignored. */
static dk_status
read_message(struct turn *turn, const struct dk_message *message, struct message *ret_message)
{
  const char *why = NULL;
  dk_status status = message_decode(&turn->arena, message->payload, ret_message, &why);

  if (status == DK_NO_MEMORY)
    return status;
  if (status == DK_OK && ret_message->kind == MESSAGE_DELAYED) {
    turn->n_reasons++; /* it is only for users who read the status */
    *ret_message = (struct message){.kind = MESSAGE_NONE};
    return DK_OK;
  }
  count_attempt(turn, message);
  ret_message->id = message->id;
  if (status != DK_OK) {
    *ret_message = (struct message){.kind = MESSAGE_NONE};
    turn->unreadable = unreadable(turn, message->id, why ? why : "its payload cannot be read");
    turn_stray(turn, "unreadable", turn->unreadable, true);
  }
  return DK_OK;
}

dk_status
turn_inbox_read(struct turn *turn)
{
  size_t n = turn->fetched->n_messages;

  turn->messages = dk_arena_array(&turn->arena, n, sizeof(*turn->messages));
  /* Every message can be a stray, unreadable ones too. */
  turn->strays = dk_arena_array(&turn->arena, n, sizeof(*turn->strays));
  if (!turn->messages || !turn->strays)
    return DK_NO_MEMORY;
  for (size_t i = 0; i < n; i++)
    if (read_message(turn, &turn->fetched->messages[i], &turn->messages[i]) != DK_OK)
      return DK_NO_MEMORY;
  turn->n_messages = n;
  return DK_OK;
}

bool
turn_inbox_take(struct turn *turn, enum message_kind kind, uint64_t execution,
                struct message *ret_message, uint32_t *ret_attempt)
{
  for (size_t i = 0; i < turn->n_messages; i++) {
    struct message *message = &turn->messages[i];
    if (message->kind != kind || message->execution != execution)
      continue;
    *ret_message = *message;
    *ret_attempt = turn->fetched->messages[i].attempt;
    message->kind = MESSAGE_NONE;
    return true;
  }
  return false;
}

bool
turn_inbox_has(const struct turn *turn, enum message_kind kind)
{
  for (size_t i = 0; i < turn->n_messages; i++)
    if (turn->messages[i].kind == kind)
      return true;
  return false;
}
