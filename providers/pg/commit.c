/* SPDX-License-Identifier: Apache-2.0 */
/* ACK, CANCEL: the commit: all its lists are arrays of one call.  schema/commit.sql defines the
 * refusals, and the order in which the rest is applied. */
#include <string.h>

#include "providers/pg/handle.h"

/* ---- values ---------------------------------------------------------------------------------- */

/* Members of the elements of a list, by their number. */
#define MEMBER(name, type, list, element, expression)                                              \
  static type name(const void *context, size_t i)                                                  \
  {                                                                                                \
    const struct dk_turn_result *r = context;                                                      \
    const element = r->list[i];                                                                    \
    return expression;                                                                             \
  }
MEMBER(event_number, int64_t, events, struct dk_event e, (int64_t)e.event_id)
MEMBER(event_payload, struct dk_bytes, events, struct dk_event e, e.payload)
MEMBER(work_execution, int64_t, worker_items, struct dk_item *w, (int64_t)w->execution_id)
MEMBER(work_activity, int64_t, worker_items, struct dk_item *w, (int64_t)w->activity_id)
MEMBER(work_visible_at, int64_t, worker_items, struct dk_item *w, w->visible_at)
MEMBER(work_delay, int64_t, worker_items, struct dk_item *w, w->delay_ms)
MEMBER(work_tag, struct dk_bytes, worker_items, struct dk_item *w, w->tag)
MEMBER(work_payload, struct dk_bytes, worker_items, struct dk_item *w, w->payload)
MEMBER(message_instance, struct dk_bytes, orchestrator_items, struct dk_item *m, m->instance)
MEMBER(message_id, struct dk_bytes, orchestrator_items, struct dk_item *m, m->id)
MEMBER(message_visible_at, int64_t, orchestrator_items, struct dk_item *m, m->visible_at)
MEMBER(message_delay, int64_t, orchestrator_items, struct dk_item *m, m->delay_ms)
MEMBER(message_payload, struct dk_bytes, orchestrator_items, struct dk_item *m, m->payload)
MEMBER(cancelled_execution, int64_t, cancelled_activities, struct dk_activity c,
       (int64_t)c.execution_id)
MEMBER(cancelled_activity, int64_t, cancelled_activities, struct dk_activity c,
       (int64_t)c.activity_id)
MEMBER(cancelled_message, struct dk_bytes, cancelled_messages, struct dk_bytes id, id)
#undef MEMBER

static int64_t
number_of_version(const void *context, size_t i)
{
  const struct dk_version *version = context;

  return i == 0 ? version->major : i == 1 ? version->minor : version->patch;
}

/* Each value has the name of its parameter: the server compares the names with those of
 * commit_turn. */
static void
add_facts(struct values *v, const struct dk_turn_result *r)
{
  value_bool(values_next(v, "p_is_repeated"), (r->flags & DK_REPEATED) != 0);
  value_bool(values_next(v, "p_is_bare"), commit_is_bare(r));
  value_bigint(values_next(v, "p_execution"), (int64_t)r->execution_id);
  value_int(values_next(v, "p_status"), r->status);
  value_text(values_next(v, "p_name"), r->name);
  value_text(values_next(v, "p_version"), r->version);
  value_text(values_next(v, "p_parent"), r->parent_instance);
  value_text(values_next(v, "p_owner"), r->owner);
  value_bytea(values_next(v, "p_output"), r->output);
  values_next(v, "p_pinned");
  if (r->pinned)
    value_bigints(v, 3, number_of_version, r->pinned);
  else
    value_null(v, TYPE_BIGINTS);
}

static void
add_lists(struct values *v, const struct dk_turn_result *r)
{
  value_bigints(values_next(v, "e_event"), r->n_events, event_number, r);
  value_byteas(values_next(v, "e_payload"), r->n_events, event_payload, r);
  value_bigints(values_next(v, "w_execution"), r->n_worker_items, work_execution, r);
  value_bigints(values_next(v, "w_activity"), r->n_worker_items, work_activity, r);
  value_bigints(values_next(v, "w_visible_at"), r->n_worker_items, work_visible_at, r);
  value_bigints(values_next(v, "w_delay"), r->n_worker_items, work_delay, r);
  value_texts(values_next(v, "w_tag"), r->n_worker_items, work_tag, r);
  value_byteas(values_next(v, "w_payload"), r->n_worker_items, work_payload, r);
  value_texts(values_next(v, "m_instance"), r->n_orchestrator_items, message_instance, r);
  value_texts(values_next(v, "m_id"), r->n_orchestrator_items, message_id, r);
  value_bigints(values_next(v, "m_visible_at"), r->n_orchestrator_items, message_visible_at, r);
  value_bigints(values_next(v, "m_delay"), r->n_orchestrator_items, message_delay, r);
  value_byteas(values_next(v, "m_payload"), r->n_orchestrator_items, message_payload, r);
  value_bigints(values_next(v, "c_execution"), r->n_cancelled_activities, cancelled_execution, r);
  value_bigints(values_next(v, "c_activity"), r->n_cancelled_activities, cancelled_activity, r);
  value_texts(values_next(v, "c_message"), r->n_cancelled_messages, cancelled_message, r);
}

static dk_status
send_commit(struct operation *op, const struct token *token, const struct dk_turn_result *r,
            PGresult **ret)
{
  struct values v;

  operation_values(op, &v);
  value_text(values_next(&v, "p_instance"), token->instance);
  value_bigint(values_next(&v, "p_epoch"), token->epoch);
  add_facts(&v, r);
  add_lists(&v, r);
  return operation_run(op, "commit_turn", true, &v, "ibbbbtt", ret);
}

/* ---- the refusal ----------------------------------------------------------------------------- */

enum { KIND, A, B, C, D, T1, T2 };

/* ACK-15. */
static void
name_duplicate(struct operation *op, int32_t list, size_t index)
{
  const struct dk_host *host = op->h->host;

  if (DK_HAS(dk_host, host, duplicate))
    host->duplicate(op->call, list, index);
}

/* The first event has the smallest number. */
static dk_status
refuse_old_event(struct operation *op, long long event, long long last)
{
  name_duplicate(op, DK_LIST_EVENTS, 0);
  return refuse(op, DK_DUPLICATE, "event %lld does not follow the last one, which is %lld", event,
                last);
}

static dk_status
refuse_stored_work(struct operation *op, const struct dk_turn_result *sent, int64_t execution,
                   int64_t activity)
{
  size_t i = 0;

  while (i < sent->n_worker_items &&
         (work_execution(sent, i) != execution || work_activity(sent, i) != activity))
    i++;
  if (i < sent->n_worker_items)
    name_duplicate(op, DK_LIST_WORKER_ITEMS, i);
  return refuse(op, DK_DUPLICATE, "activity %lld of execution %lld is already stored",
                (long long)activity, (long long)execution);
}

static bool
is_same(struct dk_bytes a, struct dk_bytes b)
{
  return a.ptr && b.ptr && a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static dk_status
refuse_stored_message(struct operation *op, const struct dk_turn_result *sent,
                      struct dk_bytes instance, struct dk_bytes id)
{
  size_t i = 0;

  while (i < sent->n_orchestrator_items &&
         !(is_same(message_instance(sent, i), instance) && is_same(message_id(sent, i), id)))
    i++;
  if (i == sent->n_orchestrator_items)
    return refuse(op, DK_CORRUPT, "the function refused a message that was not sent");
  name_duplicate(op, DK_LIST_ORCHESTRATOR_ITEMS, i);
  return refuse(op, DK_DUPLICATE, "a message of instance \"%.64s\" with the id \"%.64s\" is "
                "already stored", instance.ptr, id.ptr);
}

static dk_status
refuse_unfit(struct operation *op, long long what, long long execution)
{
  if (what == UNFIT_NOT_BARE)
    return refuse(op, DK_INVALID, "an empty commit (execution_id 0) may have only messages");
  if (what == UNFIT_NAMELESS)
    return refuse(op, DK_INVALID, "the first commit of an instance needs name and version");
  return refuse(op, DK_INVALID, "the execution is neither the current one (%lld) nor the next",
                execution);
}

static dk_status
tell_refusal(struct operation *op, const struct token *token, const struct dk_turn_result *sent,
             const PGresult *r, int row)
{
  dk_status status = (dk_status)field_bigint(r, row, A);
  int64_t what = field_bigint(r, row, B), c = field_bigint(r, row, C), d = field_bigint(r, row, D);

  if (status == DK_LOCK_LOST)
    return refuse_dead_token(op, token->epoch, what, c, d);
  if (status == DK_INVALID)
    return refuse_unfit(op, what, c);
  if (status == DK_DUPLICATE && what == DK_LIST_EVENTS)
    return refuse_old_event(op, c, d);
  if (status == DK_DUPLICATE && what == DK_LIST_WORKER_ITEMS)
    return refuse_stored_work(op, sent, c, d);
  if (status == DK_DUPLICATE && what == DK_LIST_ORCHESTRATOR_ITEMS)
    return refuse_stored_message(op, sent, field_bytes(r, row, T1), field_bytes(r, row, T2));
  return refuse(op, DK_CORRUPT, "the function returned the status %d", (int)status);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* CANCEL-6: the outcome names the holder, even if the lease has ended. */
static void
tell_stolen(struct operation *op, struct dk_bytes instance, const PGresult *r, int row)
{
  int64_t execution = field_bigint(r, row, A), activity = field_bigint(r, row, B);
  char room[MAX_TOKEN];

  op->h->host->stolen(op->call, &(struct dk_stolen){
                                  .struct_size = sizeof(struct dk_stolen),
                                  .execution_id = (uint64_t)execution,
                                  .activity_id = (uint64_t)activity,
                                  .lock_token = work_token(op->h, room, instance, execution,
                                                           activity, field_bigint(r, row, C)),
                                  .owner = field_bytes(r, row, T1),
                                });
}

/* The rows of the deleted activities: counts for each execution, and each that was locked. */
static void
tell_cancelled(struct operation *op, struct dk_bytes instance, const PGresult *r, int n)
{
  struct dk_cancel_report report = {.struct_size = sizeof report};

  for (int row = 0; row < n; row++)
    if (field_int(r, row, KIND) == COMMIT_STOLEN) {
      tell_stolen(op, instance, r, row);
    } else {
      report.free_rows += (uint64_t)field_bigint(r, row, A);
      report.locked_rows += (uint64_t)field_bigint(r, row, B);
    }
  if (n > 0)
    op->h->host->cancelled_rows(op->call, &report);
}

/* The answer comes last. */
static dk_status
commit_take_answer(struct operation *op, const struct token *token,
                   const struct dk_turn_result *sent, const PGresult *r)
{
  uint32_t rings = RING_TURNS | (sent->n_worker_items ? RING_WORK : 0u);
  int last = PQntuples(r) - 1;

  if (last < 0 || field_int(r, last, KIND) != COMMIT_ANSWER)
    return refuse(op, DK_CORRUPT, "the function returned no answer");
  if (field_bigint(r, last, A) != DK_OK)
    return tell_refusal(op, token, sent, r, last);
  tell_cancelled(op, token->instance, r, last);
  if (!field_is_null(r, last, B))
    bell_ring(op->h->bell, rings, field_bigint(r, last, B));
  return DK_OK;
}

dk_status
apply_commit(struct operation *op, struct dk_bytes text, const struct dk_turn_result *result)
{
  struct token token;
  PGresult *r;

  TRY(read_turn_token(op, text, &token));
  TRY(commit_refuse_what_is_unknown(op, result));
  TRY(send_commit(op, &token, result, &r));
  dk_status status = commit_take_answer(op, &token, result, r);
  PQclear(r);
  return status;
}
