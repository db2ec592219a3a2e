/* SPDX-License-Identifier: Apache-2.0 */
/* The inbox of a job: its messages are decoded, and the one that begins an execution is found.
 * What cannot be decoded delays the turn; where that is cancelled, or over, it is told once it is
 * gone for good: with the turn's commit. */
#include "core/runtime/turn/turn.h"

static void
count_attempt(struct job *job, const struct dk_message *message)
{
  if (message->attempt > job->attempt)
    job->attempt = message->attempt;
  if (job->least_attempt == 0 || message->attempt < job->least_attempt)
    job->least_attempt = message->attempt;
}

/* Which of them, and why. */
static const char *
unreadable(struct job *job, dk_str id, const char *why)
{
  const char *text =
    dk_arena_printf(&job->arena,
                    "the one %s%.*s%s: %s; let a client send it (dk_client_raise, "
                    "dk_client_enqueue), or a runtime of this version",
                    id.ptr ? "with the id \"" : "without an id", id.ptr ? (int)id.len : 0,
                    id.ptr ? id.ptr : "", id.ptr ? "\"" : "", why);

  return text ? text : why;
}

/* In their place stays a message of no kind, which nobody looks at. */
static dk_status
read_message(struct job *job, const struct dk_message *message, struct message *ret_message)
{
  const char *why = NULL;
  dk_status status = message_decode(&job->arena, message->payload, ret_message, &why);

  if (status == DK_NO_MEMORY)
    return status;
  if (status == DK_OK && ret_message->kind == MESSAGE_DELAYED) {
    job->n_reasons++; /* nobody looks at it but who asks for the status */
    *ret_message = (struct message){.kind = MESSAGE_NONE};
    return DK_OK;
  }
  count_attempt(job, message);
  ret_message->id = message->id;
  if (status != DK_OK) {
    *ret_message = (struct message){.kind = MESSAGE_NONE};
    job->unreadable = unreadable(job, message->id, why ? why : "its payload cannot be read");
    job_stray(job, "unreadable", job->unreadable, true);
  }
  return DK_OK;
}

dk_status
inbox_read(struct job *job)
{
  size_t n = job->turn->n_messages;

  job->messages = dk_arena_array(&job->arena, n, sizeof(*job->messages));
  /* Each message can be a stray, be it unreadable or not. */
  job->strays = dk_arena_array(&job->arena, n, sizeof(*job->strays));
  if (!job->messages || !job->strays)
    return DK_NO_MEMORY;
  for (size_t i = 0; i < n; i++)
    if (read_message(job, &job->turn->messages[i], &job->messages[i]) != DK_OK)
      return DK_NO_MEMORY;
  job->n_messages = n;
  return DK_OK;
}

bool
inbox_take(struct job *job, enum message_kind kind, uint64_t execution,
           struct message *ret_message, uint32_t *ret_attempt)
{
  for (size_t i = 0; i < job->n_messages; i++) {
    struct message *message = &job->messages[i];
    if (message->kind != kind || message->execution != execution)
      continue;
    *ret_message = *message;
    *ret_attempt = job->turn->messages[i].attempt;
    message->kind = MESSAGE_NONE;
    return true;
  }
  return false;
}

bool
inbox_has(const struct job *job, enum message_kind kind)
{
  for (size_t i = 0; i < job->n_messages; i++)
    if (job->messages[i].kind == kind)
      return true;
  return false;
}
