/* SPDX-License-Identifier: Apache-2.0 */
/* The trace: a ring of lines in the report, so that it survives a crash.
 *
 * A call's line is written before the call and completed after it.  Lines come from any thread and
 * process (the provider's own log too): each takes its number by one atomic addition, and a reader
 * looks at the ring only when all have stopped.  Tokens are shown as #1, #2 in order of
 * appearance.
 */
#include "conformance/kit/kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint32_t
kit_trace(struct kit_report *report, int64_t at, const char *text)
{
  uint32_t number = __atomic_fetch_add(&report->n_trace, 1, __ATOMIC_RELAXED);
  struct kit_trace_line *line = &report->trace[number % KIT_TRACE_LINES];

  line->at = at;
  snprintf(line->text, sizeof(line->text), "%s", text);
  return number;
}

void
kit_trace_add(struct kit_report *report, uint32_t number, const char *text)
{
  struct kit_trace_line *line = &report->trace[number % KIT_TRACE_LINES];
  size_t length;

  if (__atomic_load_n(&report->n_trace, __ATOMIC_RELAXED) - number > KIT_TRACE_LINES)
    return; /* overwritten since */
  length = strlen(line->text);
  snprintf(line->text + length, sizeof(line->text) - length, "%s", text);
}

void
say_in_trace(struct dk_check *t, const char *format, ...)
{
  char text[KIT_TRACE_WIDTH];
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  kit_trace(t->report, elapsed(t), text);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

struct kit_token *
kit_token(struct dk_check *t, struct dk_bytes bytes)
{
  /* The latest first: if a provider gives one token twice, its latest meaning counts. */
  for (size_t i = t->tokens.n; i > 0; i--) {
    if (same_bytes(t->tokens.items[i - 1].bytes, bytes))
      return &t->tokens.items[i - 1];
  }
  return NULL;
}

static void
meet_token(struct dk_check *t, struct dk_bytes bytes, int32_t known)
{
  struct kit_token *token = kit_token(t, bytes);

  if (token == NULL)
    token = LIST_ADD(t, &t->arena, &t->tokens);
  *token = (struct kit_token){.bytes = bytes, .known = known};
}

void
kit_meet_tokens(struct dk_check *t, const struct op *op)
{
  if (op->turn != NULL)
    meet_token(t, op->turn->head.lock_token, op->turn->head.known);
  for (size_t i = 0; op->works != NULL && i < op->works->n_items; i++)
    meet_token(t, op->works->items[i].work.lock_token, 1);
}

/* ---- words for values ------------------------------------------------------------------------ */

void
kit_say_bytes(struct dk_text *text, struct dk_bytes bytes)
{
  enum { SHOWN = 32 };

  if (bytes.ptr == NULL) {
    dk_text_puts(text, "absent");
    return;
  }
  dk_text_puts(text, "\"");
  dk_text_add_escaped(text, bytes.ptr, bytes.len < SHOWN ? bytes.len : SHOWN, DK_ESCAPE_VISIBLE);
  dk_text_puts(text, "\"");
  if (bytes.len > SHOWN)
    dk_text_printf(text, " (%zu bytes)", bytes.len);
}

/* Times are relative to the beginning of the check; 0 and "never" are written as such. */
void
kit_say_time(struct dk_check *t, struct dk_text *text, int64_t time)
{
  if (time == 0)
    dk_text_puts(text, "0");
  else if (time == INT64_MAX)
    dk_text_puts(text, "never");
  else
    dk_text_printf(text, "T%+" PRId64, time - t->start);
}

void
kit_say_id(struct dk_text *text, struct dk_bytes id)
{
  enum { SHOWN = 40 };

  if (id.ptr == NULL)
    dk_text_puts(text, "-");
  else
    dk_text_add_escaped(text, id.ptr, id.len < SHOWN ? id.len : SHOWN, DK_ESCAPE_VISIBLE);
}

static void
say_token(struct dk_check *t, struct dk_text *text, struct dk_bytes bytes)
{
  const struct kit_token *token = kit_token(t, bytes);

  if (token != NULL)
    dk_text_printf(text, "#%td", token - t->tokens.items + 1);
  else
    kit_say_bytes(text, bytes);
}

/* ---- words for requests ---------------------------------------------------------------------- */

static void
say_item(struct dk_check *t, struct dk_text *text, const struct dk_item *item)
{
  kit_say_id(text, item->instance);
  if (item->activity_id != 0)
    dk_text_printf(text, "/%" PRIu64 "/%" PRIu64, item->execution_id, item->activity_id);
  if (item->id.ptr != NULL) {
    dk_text_puts(text, ", id ");
    kit_say_bytes(text, item->id);
  }
  if (item->tag.ptr != NULL) {
    dk_text_puts(text, ", tag ");
    kit_say_bytes(text, item->tag);
  }
  if (item->visible_at != 0) {
    dk_text_puts(text, ", visible ");
    kit_say_time(t, text, item->visible_at);
  }
  if (item->delay_ms != 0)
    dk_text_printf(text, ", delay %" PRId64, item->delay_ms);
  if ((item->flags & DK_REPEATED) != 0)
    dk_text_puts(text, ", repeated");
}

static void
say_fetch_turn(struct dk_check *t, struct dk_text *text, const struct dk_fetch_turn *r)
{
  dk_text_printf(text, "lock %" PRId64, r->lock_ms);
  if (r->wait_until != 0) {
    dk_text_puts(text, ", wait until ");
    kit_say_time(t, text, r->wait_until);
  }
  if (r->max_messages != 0)
    dk_text_printf(text, ", at most %" PRIu32 " messages", r->max_messages);
  if (r->max_bytes != 0)
    dk_text_printf(text, ", at most %" PRIu64 " bytes", r->max_bytes);
  if (r->owner.ptr != NULL) {
    dk_text_puts(text, ", owner ");
    kit_say_bytes(text, r->owner);
  }
  if (r->ranges != NULL)
    dk_text_printf(text, ", %zu version ranges", r->n_ranges);
}

static void
say_fetch_work(struct dk_check *t, struct dk_text *text, const struct dk_fetch_work *r)
{
  dk_text_printf(text, "lock %" PRId64, r->lock_ms);
  if (r->wait_until != 0) {
    dk_text_puts(text, ", wait until ");
    kit_say_time(t, text, r->wait_until);
  }
  if (r->max_items != 1)
    dk_text_printf(text, ", at most %" PRIu32 " items", r->max_items);
  if (r->max_bytes != 0)
    dk_text_printf(text, ", at most %" PRIu64 " bytes", r->max_bytes);
  if (r->tag_rule == DK_TAG_UNTAGGED)
    dk_text_puts(text, ", untagged");
  for (size_t i = 0; i < r->n_tags; i++) {
    dk_text_puts(text, i == 0 ? ", tags " : " ");
    kit_say_bytes(text, r->tags[i]);
  }
}

static void
say_count(struct dk_text *text, const char *what, size_t n)
{
  if (n > 0)
    dk_text_printf(text, ", %s %zu", what, n);
}

static void
say_result(struct dk_check *t, struct dk_text *text, const struct dk_turn_result *r)
{
  if (r->execution_id == 0)
    dk_text_puts(text, ", empty");
  else
    dk_text_printf(text, ", execution %" PRIu64, r->execution_id);
  if (r->status != DK_STATUS_KEEP)
    dk_text_printf(text, ", status %" PRId32, r->status);
  if (r->name.ptr != NULL) {
    dk_text_puts(text, ", name ");
    kit_say_bytes(text, r->name);
  }
  for (size_t i = 0; i < r->n_events && i < 4; i++)
    dk_text_printf(text, "%s%" PRIu64, i == 0 ? ", events " : " ", r->events[i].event_id);
  if (r->n_events > 4)
    dk_text_printf(text, " ... %" PRIu64, r->events[r->n_events - 1].event_id);
  for (size_t i = 0; i < r->n_worker_items && i < 4; i++)
    dk_text_printf(text, "%s%" PRIu64, i == 0 ? ", schedule " : " ",
                   r->worker_items[i]->activity_id);
  if (r->n_worker_items > 4)
    dk_text_printf(text, " ... (%zu)", r->n_worker_items);
  for (size_t i = 0; i < r->n_cancelled_activities && i < 4; i++)
    dk_text_printf(text, "%s%" PRIu64 "/%" PRIu64, i == 0 ? ", cancel " : " ",
                   r->cancelled_activities[i].execution_id, r->cancelled_activities[i].activity_id);
  if (r->n_cancelled_activities > 4)
    dk_text_printf(text, " ... (%zu)", r->n_cancelled_activities);
  for (size_t i = 0; i < r->n_orchestrator_items && i < 3; i++) {
    dk_text_puts(text, ", send ");
    say_item(t, text, r->orchestrator_items[i]);
  }
  say_count(text, "messages in all", r->n_orchestrator_items > 3 ? r->n_orchestrator_items : 0);
  say_count(text, "cancelled messages", r->n_cancelled_messages);
  if ((r->flags & DK_REPEATED) != 0)
    dk_text_puts(text, ", repeated");
}

static void
say_ack_work(struct dk_check *t, struct dk_text *text, const struct dk_work_result *r)
{
  dk_text_puts(text, r->completion == NULL ? ", no completion" : ", completion to ");
  if (r->completion != NULL)
    say_item(t, text, r->completion);
  if ((r->flags & DK_REPEATED) != 0)
    dk_text_puts(text, ", repeated");
}

static void
say_token_request(struct dk_check *t, struct dk_text *text, const struct op *op)
{
  say_token(t, text, op->token);
  if (op->kind == OP_ACK_TURN)
    say_result(t, text, op->result);
  else if (op->kind == OP_ACK_WORK)
    say_ack_work(t, text, &op->work_result);
  else if (op->kind == OP_RENEW_TURN || op->kind == OP_RENEW_WORK)
    dk_text_printf(text, ", extend %" PRId64, op->ms);
  else if (op->ms != 0)
    dk_text_printf(text, ", delay %" PRId64, op->ms);
  if (op->ignore_attempt != 0)
    dk_text_puts(text, ", ignore attempt");
}

void
kit_say_op(struct dk_check *t, struct dk_text *text, const struct op *op)
{
  dk_text_printf(text, "%s(", kit_op_name(op->kind));
  switch (op->kind) {
  case OP_ENQUEUE:
  case OP_ENQUEUE_WORK:
    say_item(t, text, &op->item);
    break;
  case OP_FETCH_TURN:
    say_fetch_turn(t, text, &op->fetch_turn);
    break;
  case OP_FETCH_WORK:
    say_fetch_work(t, text, &op->fetch_work);
    break;
  case OP_RELEASE_FETCH:
    dk_text_printf(text, "fetch %" PRIu64, op->fetch_id);
    break;
  case OP_READ_HISTORY:
    kit_say_id(text, op->read_history.instance);
    dk_text_printf(text, ", execution %" PRIu64, op->read_history.execution_id);
    if (op->read_history.from_event != 0)
      dk_text_printf(text, ", from %" PRIu64, op->read_history.from_event);
    if (op->read_history.max_events != 0)
      dk_text_printf(text, ", at most %" PRIu32, op->read_history.max_events);
    break;
  case OP_NONE:
  case OP_QUIT:
  case OP_OPEN:
  case OP_CLOSE:
  case OP_RAW:
    break;
  default:
    if (kit_is_admin(op->kind))
      kit_say_admin_op(t, text, op);
    else
      say_token_request(t, text, op);
  }
  dk_text_puts(text, ")");
}

/* ---- words for replies ----------------------------------------------------------------------- */

static void
say_turn(struct dk_check *t, struct dk_text *text, const struct dk_turn *turn)
{
  const struct dk_turn_head *head = &turn->head;

  dk_text_puts(text, " ");
  kit_say_id(text, head->instance);
  dk_text_puts(text, " ");
  say_token(t, text, head->lock_token);
  if (head->known == 0)
    dk_text_puts(text, " unknown");
  else
    dk_text_printf(text, " execution %" PRIu64 " last event %" PRIu64 ", events %zu",
                   head->execution_id, head->last_event_id, turn->n_events);
  dk_text_printf(text, ", messages %zu", turn->n_messages);
  for (size_t i = 0; i < turn->n_messages && i < 5; i++)
    dk_text_printf(text, "%s%" PRIu32, i == 0 ? " attempt " : " ", turn->messages[i].attempt);
}

static void
say_works(struct dk_check *t, struct dk_text *text, const struct dk_works *works)
{
  for (size_t i = 0; i < works->n_items && i < 5; i++) {
    const struct dk_work_item *work = &works->items[i];

    dk_text_puts(text, " ");
    kit_say_id(text, work->item.instance);
    dk_text_printf(text, "/%" PRIu64 "/%" PRIu64 " ", work->item.execution_id,
                   work->item.activity_id);
    say_token(t, text, work->work.lock_token);
    dk_text_printf(text, " attempt %" PRIu32, work->work.attempt);
  }
  if (works->n_items > 5)
    dk_text_printf(text, " ... (%zu)", works->n_items);
}

static void
say_history(struct dk_text *text, const struct dk_history *history)
{
  if (history->found == 0)
    dk_text_puts(text, " nothing");
  else
    dk_text_printf(text, " execution %" PRIu64 " status %" PRId32 " last event %" PRIu64
                   ", events %zu", history->execution.execution_id, history->execution.status,
                   history->execution.last_event_id, history->n_events);
}

void
kit_say_reply(struct dk_check *t, struct dk_text *text, const struct op *op)
{
  char name[32];

  dk_text_printf(text, " -> %s", kit_status_name(op->status, name, sizeof(name)));
  if (op->status == DK_OK && op->turn != NULL)
    say_turn(t, text, op->turn);
  if (op->status == DK_OK && op->works != NULL)
    say_works(t, text, op->works);
  if (op->status == DK_OK && op->history != NULL)
    say_history(text, op->history);
  if (op->status == DK_OK && op->outcome.reported != 0)
    dk_text_printf(text, " deleted free %" PRIu64 " locked %" PRIu64 ", stolen %zu",
                   op->outcome.report.free_rows, op->outcome.report.locked_rows,
                   op->outcome.n_stolen);
  if (op->status == DK_OK)
    kit_say_admin_reply(t, text, op);
  if (op->text[0] != '\0') {
    dk_text_puts(text, op->by_host != 0 ? ": (the host) " : ": ");
    dk_text_add_escaped(text, op->text, strlen(op->text), DK_ESCAPE_VISIBLE);
  }
}
