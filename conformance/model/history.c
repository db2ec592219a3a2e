/* SPDX-License-Identifier: Apache-2.0 */
/* HIST: reading a history.  Takes no lock of an instance, and what does not exist is no error. */
#include "conformance/model/model.h"

#include <string.h>

struct reading {
  struct op *op;
  const struct dk_read_history *request;
  const struct instance *of;
  const struct execution *e;
  uint64_t position;      /* of the event in the history, from 1 */
  uint32_t n;             /* events handed up, or counted as such */
};

/* ---- which execution ------------------------------------------------------------------------- */

static const struct execution *
last_with_events(const struct instance *instance)
{
  const struct execution *found = instance->current;

  for (const struct execution *e = instance->first; e; e = e->next)
    if (e->first)
      found = e;
  return found;
}

static bool
is_kept(const struct store *s, const struct instance *of, const struct execution *e)
{
  return !DEFECT(M_HIST_KEEPS_TWO, e->execution_id + 1 < of->current->execution_id);
}

/* HIST-2: 0 is the latest. */
static const struct execution *
find_execution(const struct store *s, const struct instance *of, uint64_t execution_id)
{
  const struct execution *latest = of ? of->current : NULL;

  if (!latest)
    return NULL;
  if (DEFECT(M_HIST_LATEST_HAS_EVENTS, execution_id == 0 && !latest->first))
    return last_with_events(of);
  if (REFUSED(M_HIST_ZERO_IS_A_NUMBER, execution_id == 0))
    return latest;
  for (const struct execution *e = of->first; e; e = e->next)
    if (e->execution_id == execution_id && is_kept(s, of, e))
      return e;
  return DEFECT(M_HIST_ANY_EXECUTION, execution_id != 0) ? latest : NULL;
}

struct dk_execution
told_execution(const struct execution *e)
{
  return (struct dk_execution){
    .struct_size = sizeof(struct dk_execution),
    .status = e->status,
    .execution_id = e->execution_id,
    .last_event_id = e->last_event_id,
    .started_at = e->started_at,
    .completed_at = e->completed_at,
    .output = e->output,
  };
}

/* EXEC-3: of each execution its own. */
static dk_status
model_history_hand_up_execution(const struct reading *r)
{
  enum { SECOND = 1000 };
  const struct store *s = r->op->s;
  const struct execution *e = r->e, *current = r->of->current;
  struct dk_execution head = told_execution(e);

  if (DEFECT(M_EXEC_ONE_STATUS, e->status != current->status))
    head.status = current->status;
  if (DEFECT(M_EXEC_ONE_OUTPUT, !equal_bytes(e->output, current->output)))
    head.output = current->output;
  if (DEFECT(M_EXEC_TIMES_IN_SECONDS, e->started_at % SECOND || e->completed_at % SECOND)) {
    head.started_at -= e->started_at % SECOND;
    head.completed_at -= e->completed_at % SECOND;
  }
  if (MUTANT(M_EXEC_TIMES_ARE_ZERO))
    head.started_at = head.completed_at = 0;
  return s->host->execution(r->op->call, &head);
}

/* ---- which events ---------------------------------------------------------------------------- */

static bool
is_before(const struct reading *r, const struct event *v)
{
  const struct store *s = r->op->s;
  uint64_t from = r->request->from_event;

  if (DEFECT(M_HIST_FROM_32_BITS, from > UINT32_MAX))
    from = (uint32_t)from;
  if (DEFECT(M_HIST_FROM_IS_OFFSET, (r->position < from) != (v->event_id < from)))
    return r->position < from;
  return v->event_id < from || DEFECT(M_HIST_FROM_EXCLUSIVE, v->event_id == from);
}

/* HIST-3: 0 is all. */
static bool
is_beyond_page(const struct reading *r)
{
  const struct store *s = r->op->s;
  uint32_t most = r->request->max_events;

  return REFUSED(M_HIST_MAX_IGNORED, most && r->n >= most) ||
         DEFECT(M_HIST_MAX_ZERO_IS_NONE, !most) || DEFECT(M_HIST_READ_BRINGS_1000, r->n >= 1000);
}

/* What a mutant has written over this event: that of a later execution with its id. */
static const struct event *
overwritten_by(const struct reading *r, const struct event *v)
{
  const struct event *found = NULL;

  for (const struct execution *e = r->e->next; e; e = e->next)
    for (const struct event *later = e->first; later; later = later->next)
      if (later->event_id == v->event_id)
        found = later;
  return found;
}

/* HIST-1: byte for byte, under its own id. */
static dk_status
hand_up_event(const struct reading *r, const struct event *v)
{
  const struct store *s = r->op->s;
  struct dk_event event = {v->event_id, v->payload};
  const struct event *other = r->e->next ? overwritten_by(r, v) : NULL;
  const char *nul = event.payload.len ? memchr(event.payload.ptr, 0, event.payload.len) : NULL;

  if (DEFECT(M_HIST_EMPTY_SKIPPED, event.payload.len == 0))
    return DK_OK;
  if (DEFECT(M_HIST_KEYED_WITHOUT_EXECUTION, other != NULL))
    event.payload = other->payload;
  if (DEFECT(M_HIST_CUT_AT_NUL, nul != NULL))
    event.payload.len = (size_t)(nul - event.payload.ptr);
  if (DEFECT(M_HIST_EVENT_CUT, event.payload.len > UINT16_MAX))
    event.payload.len &= UINT16_MAX;
  if (DEFECT(M_HIST_RENUMBERED, event.event_id != r->position))
    event.event_id = r->position;
  return s->host->event(r->op->call, &event);
}

static unsigned
first_digit(uint64_t number)
{
  while (number > 9)
    number /= 10;
  return (unsigned)number;
}

/* Those whose id begins with this digit; 0: all. */
static dk_status
hand_up_events(struct reading *r, unsigned digit)
{
  const struct store *s = r->op->s;

  r->position = 0;
  for (const struct event *v = r->e->first; v; v = v->next) {
    r->position++;
    if (digit && first_digit(v->event_id) != digit)
      continue;
    if (is_before(r, v)) {
      r->n += DEFECT(M_HIST_LIMIT_BEFORE_FILTER, r->request->max_events) ? 1 : 0;
      continue;
    }
    if (is_beyond_page(r))
      break;
    r->n++;
    TRY(hand_up_event(r, v));
  }
  return DK_OK;
}

/* As text, 10 comes before 9: what a mutant sorts by. */
static bool
is_other_as_text(const struct execution *e)
{
  for (const struct event *v = e->first; v && v->next; v = v->next)
    if (first_digit(v->event_id) > first_digit(v->next->event_id))
      return true;
  return false;
}

static bool
is_gone(const struct reading *r)
{
  const struct store *s = r->op->s;
  const struct execution *e = r->e;

  return DEFECT(M_HIST_TRIMMED_WHEN_ENDED, !e->next && e->status != DK_RUNNING) ||
         DEFECT(M_HIST_CLEANED_WHEN_CONTINUED, e->next != NULL);
}

/* ---- the operation --------------------------------------------------------------------------- */

/* HIST-2: what does not exist brings nothing. */
static dk_status
answer_absent(struct op *op, const struct instance *of)
{
  const struct store *s = op->s;

  if (DEFECT(M_HIST_QUEUE_IS_INSTANCE, of && !of->current))
    return s->host->execution(op->call, &(struct dk_execution){
                                          .struct_size = sizeof(struct dk_execution),
                                          .status = DK_RUNNING,
                                          .execution_id = 1,
                                          .started_at = op->now,
                                        });
  if (DEFECT(M_HIST_ABSENT_IS_NOT_FOUND, !of))
    return refuse(op, DK_NOT_FOUND, "there is no such instance");
  return DK_OK;
}

/* HIST-2: reading asks for no lock, and leaves none. */
static dk_status
take_lock_to_read(struct op *op, const struct instance *of)
{
  enum { A_WHILE = 10000 };
  const struct store *s = op->s;
  bool is_held = of->lock.held && of->lock.until > op->now;

  if (DEFECT(M_HIST_READ_WANTS_LOCK, is_held))
    return refuse(op, DK_BUSY, "a turn of this instance is held");
  if (DEFECT(M_HIST_READ_LEAVES_LOCK, !is_held))
    STEP(op, .kind = TURN_LOCK, .instance = of->id, .epoch = of->lock.epoch,
         .until = op->now + A_WHILE, .held = true, .committed = of->committed);
  return DK_OK;
}

static dk_status
read_history(struct op *op, const struct dk_read_history *request)
{
  enum { DIGITS = 9 };
  const struct store *s = op->s;
  const struct instance *of = find_instance(s, request->instance);
  struct reading r = {.op = op, .request = request, .of = of};

  r.e = find_execution(s, of, request->execution_id);
  if (!r.e)
    return answer_absent(op, of);
  TRY(take_lock_to_read(op, of));
  if (DEFECT(M_HIST_NOTHING_PAST_END, request->from_event > r.e->last_event_id))
    return DK_OK;
  TRY(model_history_hand_up_execution(&r));
  if (is_gone(&r))
    return DK_OK;
  if (!DEFECT(M_HIST_SORTED_AS_TEXT, is_other_as_text(r.e)))
    return hand_up_events(&r, 0);
  for (unsigned digit = 1; digit <= DIGITS; digit++)
    TRY(hand_up_events(&r, digit));
  return DK_OK;
}

dk_status
model_read_history(void *self, struct dk_call *call, const struct dk_read_history *request)
{
  struct op op;

  TRY(enter(&op, self, call, "read_history"));
  const struct store *s = op.s;
  const volatile char *beyond = (const volatile char *)(request + 1); /* ABI-9: not to be read */
  if (MUTANT(M_ABI_READS_BEYOND) && *beyond == 'Z')
    return leave(&op, refuse(&op, DK_UNSUPPORTED, "such an order is not known"));
  return leave(&op, read_history(&op, request));
}
