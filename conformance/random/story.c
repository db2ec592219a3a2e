/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as the source of a check, in the words of check.h, for its reader to paste and to go on
 * from.  A payload that is long or not printable is given as its length. */
#include "conformance/random/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"

enum { MOST_LINES = 60, LONG_PAYLOAD = 24, FEW = 8 };

struct story {
  struct pass *p;
  struct dk_text line;
};

/* ---- values ---------------------------------------------------------------------------------- */

static void
say(struct story *s, const char *text)
{
  dk_text_puts(&s->line, text);
}

static void
say_string(struct story *s, struct dk_bytes text)
{
  say(s, "\"");
  for (size_t i = 0; i < text.len; i++) {
    unsigned char c = (unsigned char)text.ptr[i];
    if (c == '"' || c == '\\')
      dk_text_printf(&s->line, "\\%c", c);
    else if (c < ' ' || c > '~')
      dk_text_printf(&s->line, "\\%03o", c);
    else
      dk_text_printf(&s->line, "%c", c);
  }
  say(s, "\"");
}

static void
say_text_member(struct story *s, const char *name, struct dk_bytes text)
{
  if (text.ptr == NULL)
    return;
  dk_text_printf(&s->line, ", .%s = ", name);
  say_string(s, text);
}

static void
say_number_member(struct story *s, const char *name, int64_t number)
{
  if (number == INT64_MAX)
    dk_text_printf(&s->line, ", .%s = INT64_MAX", name);
  else if (number != 0)
    dk_text_printf(&s->line, ", .%s = %" PRId64, name, number);
}

static void
say_time_member(struct story *s, const char *name, int64_t time)
{
  struct dk_check *t = s->p->t;

  if (time == 0 || time == INT64_MAX)
    say_number_member(s, name, time);
  else if (time < t->start)
    dk_text_printf(&s->line, ", .%s = %" PRId64, name, time);
  else
    dk_text_printf(&s->line, ", .%s = now(t)%+" PRId64, name, time - now(t));
}

static void
say_payload(struct story *s, struct dk_bytes payload)
{
  bool is_short = payload.len <= LONG_PAYLOAD && dk_utf8_valid(payload.ptr, payload.len) &&
                  memchr(payload.ptr, 0, payload.len) == NULL;

  if (is_short)
    say_text_member(s, "payload", payload);
  else
    dk_text_printf(&s->line, ", .bytes = filled(t, %zu, 'x')", payload.len);
}

static void
say_on(struct story *s, const struct step *step)
{
  if (step->handle > 0)
    dk_text_printf(&s->line, ", .on = handle%" PRIu32, step->handle);
  say_number_member(s, "wait_ms", step->ms);
  if (step->during != NULL)
    say(s, ", .start = true");
}

/* Shrinking may have left out the fetch that gave the token: then no call gives it. */
static bool
is_told(const struct story *s, uint32_t fetch)
{
  const steps *plan = &s->p->run->plan;

  for (size_t i = 0; i < plan->n; i++)
    if (plan->items[i].number == fetch && s->p->statuses.items[i] == DK_OK)
      return true;
  return false;
}

static void
say_token(struct story *s, const struct step *step, bool is_turn)
{
  const struct token_ref *ref = &step->token;

  if (ref->fetch == 0 || !is_told(s, ref->fetch))
    say(s, "bytes(\"made up\")");
  else
    dk_text_printf(&s->line, is_turn ? "turn%" PRIu32 "->head.lock_token"
                                     : "work%" PRIu32 "->items[%" PRIu32 "].work.lock_token",
                   ref->fetch, ref->item);
  if (ref->fetch != 0 && ref->spelled != 0)
    say(s, " /* respelled */");
}

/* ---- requests -------------------------------------------------------------------------------- */

static void
say_when(struct story *s, const struct dk_item *item)
{
  say_time_member(s, "visible_at", item->visible_at);
  say_number_member(s, "delay_ms", item->delay_ms);
}

static void
say_enqueue(struct story *s, const struct step *step)
{
  const struct dk_item *item = &step->request->item;

  say(s, "enqueue(t, ");
  say_string(s, item->instance);
  say_text_member(s, "id", item->id);
  say_payload(s, item->payload);
  say_when(s, item);
  if (item->flags & DK_REPEATED)
    say(s, ", .repeated = true");
  say_on(s, step);
  say(s, ")");
}

static void
say_activity(struct story *s, const struct dk_item *item, const char *before)
{
  dk_text_printf(&s->line, "%s{%" PRIu64 ", %" PRIu64, before, item->activity_id,
                 item->execution_id);
  say_text_member(s, "tag", item->tag);
  say_payload(s, item->payload);
  say_when(s, item);
  say(s, "}");
}

static void
say_enqueue_work(struct story *s, const struct step *step)
{
  say(s, "enqueue_work(t, ");
  say_string(s, step->request->item.instance);
  say_activity(s, &step->request->item, ", .activity = ");
  say_on(s, step);
  say(s, ")");
}

/* Declares them: a list of none has an element that does not count. */
static void
say_ranges(struct story *s, const struct step *step)
{
  const struct dk_fetch_turn *f = &step->request->fetch_turn;

  if (step->request->kind != OP_FETCH_TURN || f->ranges == NULL)
    return;
  dk_text_printf(&s->line, "const struct dk_version_range ranges%" PRIu32 "[] = {", step->number);
  for (size_t i = 0; i < f->n_ranges; i++) {
    const struct dk_version *a = &f->ranges[i].min, *b = &f->ranges[i].max;
    dk_text_printf(&s->line, "%s{{%" PRIu32 "u, %" PRIu32 "u, %" PRIu32 "u}, ", i == 0 ? "" : ", ",
                   a->major, a->minor, a->patch);
    dk_text_printf(&s->line, "{%" PRIu32 "u, %" PRIu32 "u, %" PRIu32 "u}}", b->major, b->minor,
                   b->patch);
  }
  say(s, f->n_ranges == 0 ? "{{0, 0, 0}, {0, 0, 0}}}; " : "}; ");
}

static void
say_fetch_turn(struct story *s, const struct step *step)
{
  const struct dk_fetch_turn *f = &step->request->fetch_turn;

  dk_text_printf(&s->line, "try_fetch_turn(t, &turn%" PRIu32, step->number);
  say_number_member(s, "lock_ms", f->lock_ms);
  if (f->max_messages != 0)
    dk_text_printf(&s->line, ", .max_messages = %" PRIu32, f->max_messages);
  if (f->max_bytes != 0)
    dk_text_printf(&s->line, ", .max_bytes = %" PRIu64 "u", f->max_bytes);
  say_text_member(s, "owner", f->owner);
  if (f->ranges != NULL)
    dk_text_printf(&s->line, ", .ranges = ranges%" PRIu32 ", .n_ranges = %zu", step->number,
                   f->n_ranges);
  if (f->fetch_id != 0)
    dk_text_printf(&s->line, ", .fetch_id = %" PRIu64, f->fetch_id);
  say_on(s, step);
  say(s, ")");
}

static void
say_fetch_work(struct story *s, const struct step *step)
{
  const struct dk_fetch_work *f = &step->request->fetch_work;

  dk_text_printf(&s->line, "try_fetch_work(t, &work%" PRIu32, step->number);
  say_number_member(s, "lock_ms", f->lock_ms);
  if (f->max_items != 1)
    dk_text_printf(&s->line, ", .max_items = %" PRIu32, f->max_items);
  if (f->max_bytes != 0)
    dk_text_printf(&s->line, ", .max_bytes = %" PRIu64 "u", f->max_bytes);
  say_text_member(s, "owner", f->owner);
  if (f->tag_rule != DK_TAG_ANY)
    dk_text_printf(&s->line, ", .tag_rule = %" PRId32, f->tag_rule);
  for (size_t i = 0; i < f->n_tags && i < FEW; i++) {
    say(s, i == 0 ? ", .tags = {" : ", ");
    say_string(s, f->tags[f->n_tags - 1 - i]);
  }
  if (f->n_tags > 0)
    say(s, f->n_tags > FEW ? " /* and more */}" : "}");
  if (f->fetch_id != 0)
    dk_text_printf(&s->line, ", .fetch_id = %" PRIu64, f->fetch_id);
  say_on(s, step);
  say(s, ")");
}

static void
say_lists(struct story *s, const struct dk_turn_result *r)
{
  for (size_t i = 0; i < r->n_events && i < FEW; i++) {
    dk_text_printf(&s->line, "%s{%" PRIu64, i == 0 ? ", .events = {" : ", ",
                   r->events[i].event_id);
    say_payload(s, r->events[i].payload);
    say(s, "}");
  }
  say(s, r->n_events > FEW ? " /* and more */}" : r->n_events > 0 ? "}" : "");
  for (size_t i = 0; i < r->n_worker_items; i++)
    say_activity(s, r->worker_items[i], i == 0 ? ", .schedule = {" : ", ");
  say(s, r->n_worker_items > 0 ? "}" : "");
  for (size_t i = 0; i < r->n_orchestrator_items; i++) {
    const struct dk_item *item = r->orchestrator_items[i];
    say(s, i == 0 ? ", .send = {{" : ", {");
    say_string(s, item->instance);
    say_text_member(s, "id", item->id);
    say_payload(s, item->payload);
    say_when(s, item);
    say(s, "}");
  }
  say(s, r->n_orchestrator_items > 0 ? "}" : "");
  for (size_t i = 0; i < r->n_cancelled_activities && i < FEW; i++)
    dk_text_printf(&s->line, "%s{%" PRIu64 ", %" PRIu64 "}", i == 0 ? ", .cancel_of = {" : ", ",
                   r->cancelled_activities[i].execution_id,
                   r->cancelled_activities[i].activity_id);
  say(s, r->n_cancelled_activities > FEW ? " /* and more */}"
         : r->n_cancelled_activities > 0 ? "}"
                                         : "");
  for (size_t i = 0; i < r->n_cancelled_messages; i++) {
    say(s, i == 0 ? ", .cancel_messages = {" : ", ");
    say_string(s, r->cancelled_messages[i]);
  }
  say(s, r->n_cancelled_messages > 0 ? "}" : "");
}

static void
say_commit(struct story *s, const struct step *step)
{
  const struct dk_turn_result *r = step->request->result;

  say(s, "ack_token(t, ");
  say_token(s, step, true);
  if (r->execution_id == 0)
    say(s, ", .empty = true");
  else
    dk_text_printf(&s->line, ", .execution_id = %" PRIu64, r->execution_id);
  if (r->flags & DK_REPEATED)
    say(s, ", .repeated = true");
  say_number_member(s, "status", r->status);
  say_text_member(s, "name", r->name);
  say_text_member(s, "version", r->version);
  say_text_member(s, "parent", r->parent_instance);
  say_text_member(s, "owner", r->owner);
  if (r->output.ptr != NULL)
    dk_text_printf(&s->line, ", .output = /* %zu bytes */ \"x\"", r->output.len);
  if (r->pinned != NULL)
    dk_text_printf(&s->line, ", .pinned = &(struct dk_version){%" PRIu32 ", %" PRIu32 ", %" PRIu32
                   "}", r->pinned->major, r->pinned->minor, r->pinned->patch);
  say_lists(s, r);
  say_on(s, step);
  say(s, ")");
}

static void
say_ack_work(struct story *s, const struct step *step)
{
  const struct dk_work_result *result = &step->request->work_result;
  const struct dk_item *item = result->completion;

  say(s, "ack_work(t, ");
  say_token(s, step, false);
  if (item != NULL) {
    say_text_member(s, "to", item->instance);
    say_text_member(s, "id", item->id);
    say_payload(s, item->payload);
    say_when(s, item);
  }
  if (result->flags & DK_REPEATED)
    say(s, ", .repeated = true");
  say_on(s, step);
  say(s, ")");
}

static void
say_with_token(struct story *s, const struct step *step, const char *word)
{
  const struct op *op = step->request;

  dk_text_printf(&s->line, "%s(t, ", word);
  say_token(s, step, op->kind == OP_RENEW_TURN || op->kind == OP_ABANDON_TURN);
  say_number_member(s, "ms", op->ms);
  if (op->ignore_attempt)
    say(s, ", .ignore_attempt = true");
  say_on(s, step);
  say(s, ")");
}

static void
say_call(struct story *s, const struct step *step)
{
  const struct op *op = step->request;

  switch (op->kind) {
  case OP_ENQUEUE: say_enqueue(s, step); break;
  case OP_ENQUEUE_WORK: say_enqueue_work(s, step); break;
  case OP_FETCH_TURN: say_fetch_turn(s, step); break;
  case OP_FETCH_WORK: say_fetch_work(s, step); break;
  case OP_ACK_TURN: say_commit(s, step); break;
  case OP_ACK_WORK: say_ack_work(s, step); break;
  case OP_RENEW_TURN: say_with_token(s, step, "renew_turn"); break;
  case OP_RENEW_WORK: say_with_token(s, step, "renew_work"); break;
  case OP_ABANDON_TURN: say_with_token(s, step, "abandon_turn"); break;
  case OP_ABANDON_WORK: say_with_token(s, step, "abandon_work"); break;
  case OP_RELEASE_FETCH:
    dk_text_printf(&s->line, "release_fetch(t, %" PRIu64 ")", op->fetch_id);
    break;
  case OP_READ_HISTORY:
    say(s, "try_read_history(t, ");
    say_string(s, op->read_history.instance);
    say_number_member(s, "execution_id", (int64_t)op->read_history.execution_id);
    say_number_member(s, "from_event", (int64_t)op->read_history.from_event);
    say_number_member(s, "max_events", op->read_history.max_events);
    say(s, ")");
    break;
  default: /* durakit.admin/1 */
    kit_say_op(s->p->t, &s->line, op);
  }
}

/* ---- the check ------------------------------------------------------------------------------- */

static const char *
handle_name(const struct step *step, char *buffer, size_t size)
{
  if (step->handle == 0)
    return "NULL";
  snprintf(buffer, size, "handle%" PRIu32, step->handle);
  return buffer;
}

static void
end_line(struct story *s)
{
  kit_trace(s->p->t->report, elapsed(s->p->t), dk_text_str(&s->line));
  dk_text_reset(&s->line);
}

static const struct meanwhile *
find_meanwhile(const struct story *s, const struct step *step)
{
  for (size_t i = 0; i < s->p->meanwhile.n; i++)
    if (s->p->meanwhile.items[i].step == step->number)
      return &s->p->meanwhile.items[i];
  return NULL;
}

static void say_step(struct story *s, const struct step *step, dk_status status);

/* After a fetch that was started: what happened while it waited, and what it has answered. */
static void
say_meanwhile(struct story *s, const struct step *step, dk_status status)
{
  const struct meanwhile *meanwhile = find_meanwhile(s, step);
  bool is_turn = step->request->kind == OP_FETCH_TURN;
  char who[32], name[32];

  handle_name(step, who, sizeof(who));
  end_line(s);
  if (meanwhile == NULL || meanwhile->has_waited)
    dk_text_printf(&s->line, "until_it_waits(t, %s); ", who);
  if (step->during->kind == STEP_CANCEL)
    dk_text_printf(&s->line, "cancel_call(t, %s);", who);
  else
    say_step(s, step->during, meanwhile == NULL ? DK_OK : meanwhile->status);
  end_line(s);
  dk_text_printf(&s->line, "expect_status(t, finish(t, %s), %s); ", who,
                 kit_status_name(status, name, sizeof(name)));
  dk_text_printf(&s->line, "%s%" PRIu32 " = finished_%s(t, %s);", is_turn ? "turn" : "work",
                 step->number, is_turn ? "turn" : "work", who);
}

static void
say_fair(struct story *s, const struct step *step)
{
  bool is_turn = step->request->kind == OP_FETCH_TURN;
  const char *what = is_turn ? "turn" : "work";
  const char *token = is_turn ? "head.lock_token" : "items[0].work.lock_token";
  char who[32];

  dk_text_printf(&s->line, "for (struct dk_%s *%s; try_fetch_%s(t, &%s", is_turn ? "turn" : "works",
                 what, what, what);
  if (is_turn)
    say_text_member(s, "owner", step->request->fetch_turn.owner);
  say_on(s, step);
  say(s, ") == DK_OK;) /* until all have come */");
  end_line(s);
  handle_name(step, who, sizeof(who));
  if (step->request->item.activity_id == 0)
    dk_text_printf(&s->line, "  must(t, abandon_%s(t, %s->%s, .ignore_attempt = true, .on = %s));",
                   what, what, token, who);
  else
    dk_text_printf(&s->line, "  must(t, ack_work(t, work->%s, .on = %s)); "
                   "/* and a new one comes */", token, who);
}

static void
say_step(struct story *s, const struct step *step, dk_status status)
{
  char name[32];

  if (step->kind == STEP_TIME) {
    dk_text_printf(&s->line, "advance(t, %" PRId64 ");", step->ms);
  } else if (step->kind == STEP_ANEW) {
    say(s, "/* here the store is destroyed and made anew */");
  } else if (step->kind == STEP_FAIR) {
    say_fair(s, step);
  } else if (step->kind == STEP_REOPEN) {
    const char *who = handle_name(step, name, sizeof(name));
    dk_text_printf(&s->line, "close_handle(t, %s); open_handle(t, %s);", who, who);
  } else {
    if (step->is_cancelled)
      dk_text_printf(&s->line, "cancel_call(t, %s); ", handle_name(step, name, sizeof(name)));
    if (step->only_reads)
      say(s, "close_handle(t, NULL); open_handle_to_read(t); ");
    if (step->request->unchecked)
      say(s, "/* with a flag or a value that is not known */ ");
    say_ranges(s, step);
    if (step->request->kind == OP_FETCH_TURN)
      dk_text_printf(&s->line, "struct dk_turn *turn%" PRIu32 "; ", step->number);
    if (step->request->kind == OP_FETCH_WORK)
      dk_text_printf(&s->line, "struct dk_works *work%" PRIu32 "; ", step->number);
    say(s, "expect_status(t, ");
    say_call(s, step);
    dk_status answer = step->during != NULL ? DK_OK : status;
    dk_text_printf(&s->line, ", %s);", kit_status_name(answer, name, sizeof(name)));
    if (step->only_reads)
      say(s, " close_handle(t, NULL); open_handle(t, NULL);");
    if (step->during != NULL)
      say_meanwhile(s, step, status);
  }
}

/* The handles that the plan uses. */
static void
say_handles(struct story *s)
{
  const struct pass *p = s->p;
  const steps *plan = &p->run->plan;

  for (uint32_t h = 1; h < p->n_handles; h++) {
    bool is_used = false;
    for (size_t i = 0; i < plan->n; i++)
      is_used = is_used || plan->items[i].handle == h;
    if (!is_used)
      continue;
    dk_text_printf(&s->line, "struct actor *handle%" PRIu32 " = another_%s(t);", h,
                   p->run->profile->processes ? "process" : "handle");
    end_line(s);
  }
}

void
tell_as_check(struct pass *p)
{
  struct story s = {.p = p};
  const steps *plan = &p->run->plan;

  dk_text_init(&s.line);
  say_in_trace(p->t, "the same as a check (conformance/kit/check.h):");
  say_handles(&s);
  for (size_t i = 0; i < plan->n && i < MOST_LINES; i++) {
    say_step(&s, &plan->items[i], p->statuses.items[i]);
    end_line(&s);
  }
  if (plan->n > MOST_LINES)
    say_in_trace(p->t, "... and %zu more", plan->n - MOST_LINES);
  say_in_trace(p->t, "/* here %s: expected %s; found %s */", p->difference.what,
                   p->difference.expected, p->difference.got);
  dk_text_done(&s.line);
}
