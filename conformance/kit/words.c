/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary: turns each function of check.h into a request.  Texts are copied into the
 * request's memory, so that an actor in another process can read them, and so that a started call
 * does not depend on the check's stack frames. */
#include "conformance/kit/kit.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/sat.h"

enum { USUAL_LEASE = 30000, USUAL_PATIENCE_MS = 40000 };

/* ---- small ones ------------------------------------------------------------------------------ */

struct dk_bytes
bytes(const char *text)
{
  return (struct dk_bytes){text, text == NULL ? 0 : strlen(text)};
}

bool
same_bytes(struct dk_bytes a, struct dk_bytes b)
{
  if (a.ptr == NULL || b.ptr == NULL)
    return a.ptr == NULL && b.ptr == NULL;
  return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

struct dk_bytes
filled(struct dk_check *t, size_t n, char byte)
{
  char *memory = kit_alloc(t, &t->arena, n + 1, 1);

  memset(memory, byte, n);
  memory[n] = '\0';
  return (struct dk_bytes){memory, n};
}

const struct dk_provider *
provider(struct dk_check *t)
{
  return t->provider;
}

uint32_t
calls_so_far(struct dk_check *t)
{
  return t->report->operations;
}

void
at_end(struct dk_check *t, bool (*ending)(struct dk_check *t))
{
  t->ending = ending;
}

int64_t
patience_ms(const struct dk_check *t)
{
  return t->job->patience_ms > 0 ? t->job->patience_ms : USUAL_PATIENCE_MS;
}

void
skip_check(struct dk_check *t, const char *why)
{
  kit_skip(t, "%s", why);
}

struct dk_store *
store_of(struct dk_check *t, struct actor *actor)
{
  return kit_store_of(t, kit_actor(t, actor));
}

struct dk_caller *
caller_of(struct dk_check *t, struct actor *actor)
{
  struct actor *who = kit_actor(t, actor);

  if (who->caller == NULL)
    kit_trouble(t, "the caller of %s is in another process", who->name);
  return who->caller;
}

const char *
failure_text(struct dk_check *t, struct actor *actor)
{
  return kit_actor(t, actor)->op.text;
}

/* ---- requests -------------------------------------------------------------------------------- */

struct kit_request
kit_request(struct dk_check *t, struct actor *actor, enum op_kind kind)
{
  struct kit_request r = {.t = t, .who = kit_actor(t, actor)};

  r.op = kit_begin(t, r.who, kind);
  r.arena = kit_requests(t, r.who);
  return r;
}

struct dk_bytes
kit_keep(const struct kit_request *r, const char *text)
{
  return kit_copy_bytes(r->t, r->arena, bytes(text));
}

/* The bytes if there are any, else the text, else the default. */
static struct dk_bytes
payload(const struct kit_request *r, struct dk_bytes any, const char *text, const char *usual)
{
  if (any.ptr != NULL)
    return kit_copy_bytes(r->t, r->arena, any);
  return kit_keep(r, text != NULL ? text : usual);
}

static int64_t
wait_until(struct dk_check *t, int64_t wait_ms)
{
  if (wait_ms == 0)
    return 0;
  return wait_ms < 0 ? INT64_MAX : dk_sat_add(now(t), wait_ms);
}

static const char *
numbered(const struct kit_request *r, const char *what, uint64_t number)
{
  char *text = dk_arena_printf(r->arena, "%s %" PRIu64, what, number);

  if (text == NULL)
    kit_trouble(r->t, "no memory");
  return text;
}

/* ---- queues ---------------------------------------------------------------------------------- */

dk_status
kit_enqueue(struct dk_check *t, const char *instance, const struct enqueue_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_ENQUEUE);

  r.op->item = (struct dk_item){
    .struct_size = sizeof(struct dk_item),
    .flags = a->repeated ? DK_REPEATED : 0u,
    .instance = kit_keep(&r, instance),
    .id = kit_keep(&r, a->id),
    .visible_at = a->visible_at,
    .delay_ms = a->delay_ms,
    .payload = payload(&r, a->bytes, a->payload, a->id != NULL ? a->id : "message"),
  };
  return kit_call(t, r.who, a->start);
}

static struct dk_item
activity_item(const struct kit_request *r, const struct activity *a, uint64_t execution_id)
{
  return (struct dk_item){
    .struct_size = sizeof(struct dk_item),
    .execution_id = a->execution_id != 0 ? a->execution_id : execution_id,
    .activity_id = a->activity_id,
    .session = kit_keep(r, a->session),
    .tag = kit_keep(r, a->tag),
    .visible_at = a->visible_at,
    .delay_ms = a->delay_ms,
    .payload = payload(r, a->bytes, a->payload, numbered(r, "activity", a->activity_id)),
  };
}

dk_status
kit_enqueue_work(struct dk_check *t, const char *instance, const struct enqueue_work_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_ENQUEUE_WORK);

  r.op->item = activity_item(&r, &a->activity, 1);
  r.op->item.flags = a->repeated ? DK_REPEATED : 0u;
  r.op->item.instance = kit_keep(&r, instance);
  return kit_call(t, r.who, a->start);
}

/* ---- fetches --------------------------------------------------------------------------------- */

dk_status
kit_try_fetch_turn(struct dk_check *t, struct dk_turn **ret, const struct fetch_turn_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_FETCH_TURN);
  struct dk_version_range *ranges = NULL;

  if (a->ranges != NULL) {
    ranges = kit_alloc(t, r.arena, a->n_ranges, sizeof(*ranges));
    if (a->n_ranges > 0)
      memcpy(ranges, a->ranges, a->n_ranges * sizeof(*ranges));
  }
  r.op->fetch_turn = (struct dk_fetch_turn){
    .struct_size = sizeof(struct dk_fetch_turn),
    .max_messages = a->max_messages,
    .max_bytes = a->max_bytes,
    .lock_ms = a->lock_ms != 0 ? a->lock_ms : USUAL_LEASE,
    .wait_until = wait_until(t, a->wait_ms),
    .owner = kit_keep(&r, a->owner),
    .ranges = ranges,
    .n_ranges = a->n_ranges,
    .fetch_id = a->fetch_id,
  };
  *ret = NULL;
  dk_status status = kit_call(t, r.who, a->start);
  if (!a->start && status == DK_OK)
    *ret = r.op->turn;
  return status;
}

static int32_t
tag_rule(const struct fetch_work_args *a)
{
  if (a->tag_rule == TAG_UNTAGGED)
    return DK_TAG_UNTAGGED;
  return a->tag_rule != 0 ? a->tag_rule : DK_TAG_ANY;
}

static int32_t
session_rule(struct dk_check *t, const struct fetch_work_args *a)
{
  if (a->session_rule != 0)
    return a->session_rule;
  return t->has_sessions ? DK_SESSION_ANY : DK_SESSION_NONE;
}

static struct dk_bytes
worker(const struct kit_request *r, const char *owner)
{
  if (owner != NULL && owner[0] == '\0')
    return bytes(NULL);
  return kit_keep(r, owner != NULL ? owner : "worker");
}

dk_status
kit_try_fetch_work(struct dk_check *t, struct dk_works **ret, const struct fetch_work_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_FETCH_WORK);
  struct dk_bytes *tags = kit_alloc(t, r.arena, 8, sizeof(*tags));
  size_t n = 0;

  while (n < 8 && a->tags[n] != NULL) {
    tags[n] = kit_keep(&r, a->tags[n]);
    n++;
  }
  r.op->fetch_work = (struct dk_fetch_work){
    .struct_size = sizeof(struct dk_fetch_work),
    .max_items = a->max_items != 0 ? a->max_items : 1,
    .max_bytes = a->max_bytes,
    .lock_ms = a->lock_ms != 0 ? a->lock_ms : USUAL_LEASE,
    .wait_until = wait_until(t, a->wait_ms),
    .owner = worker(&r, a->owner),
    .tag_rule = tag_rule(a),
    .session_rule = session_rule(t, a),
    .tags = n > 0 ? tags : NULL,
    .n_tags = n,
    .fetch_id = a->fetch_id,
  };
  if (r.op->fetch_work.session_rule != DK_SESSION_NONE)
    r.op->fetch_work.session_lock_ms = USUAL_LEASE;
  *ret = NULL;
  dk_status status = kit_call(t, r.who, a->start);
  if (!a->start && status == DK_OK)
    *ret = r.op->works;
  return status;
}

/* ---- the commit ------------------------------------------------------------------------------ */

static void
add_events(const struct kit_request *r, const struct ack_turn_args *a,
           struct dk_turn_result *result)
{
  struct dk_event *events = kit_alloc(r->t, r->arena, 16, sizeof(*events));

  for (; result->n_events < 16 && a->events[result->n_events].id != 0; result->n_events++) {
    const struct event *e = &a->events[result->n_events];

    events[result->n_events] = (struct dk_event){
      e->id, kit_keep(r, e->payload != NULL ? e->payload : numbered(r, "event", e->id))
    };
  }
  result->events = events;
}

static void
add_activities(const struct kit_request *r, const struct ack_turn_args *a,
               struct dk_turn_result *result)
{
  struct dk_item *items = kit_alloc(r->t, r->arena, 16, sizeof(*items));
  const struct dk_item **list = kit_alloc(r->t, r->arena, 16, sizeof(*list));
  size_t n = 0;

  for (; n < 16 && a->schedule[n].activity_id != 0; n++) {
    items[n] = activity_item(r, &a->schedule[n], result->execution_id);
    list[n] = &items[n];
  }
  result->worker_items = list;
  result->n_worker_items = n;
}

static void
add_messages(const struct kit_request *r, const struct ack_turn_args *a,
             struct dk_turn_result *result)
{
  struct dk_item *items = kit_alloc(r->t, r->arena, 16, sizeof(*items));
  const struct dk_item **list = kit_alloc(r->t, r->arena, 16, sizeof(*list));
  size_t n = 0;

  for (; n < 16 && a->send[n].to != NULL; n++) {
    const struct message *m = &a->send[n];

    items[n] = (struct dk_item){
      .struct_size = sizeof(struct dk_item),
      .instance = kit_keep(r, m->to),
      .id = kit_keep(r, m->id),
      .visible_at = m->visible_at,
      .delay_ms = m->delay_ms,
      .payload = kit_keep(r, m->payload != NULL ? m->payload : m->id != NULL ? m->id : "message"),
    };
    list[n] = &items[n];
  }
  result->orchestrator_items = list;
  result->n_orchestrator_items = n;
}

static void
add_cancellations(const struct kit_request *r, const struct ack_turn_args *a,
                  struct dk_turn_result *result)
{
  struct dk_activity *activities = kit_alloc(r->t, r->arena, 32, sizeof(*activities));
  struct dk_bytes *ids = kit_alloc(r->t, r->arena, 8, sizeof(*ids));
  size_t n = 0;

  for (size_t i = 0; i < 16 && a->cancel[i] != 0; i++)
    activities[n++] = (struct dk_activity){result->execution_id, a->cancel[i]};
  for (size_t i = 0; i < 16 && a->cancel_of[i].activity_id != 0; i++)
    activities[n++] = a->cancel_of[i];
  result->cancelled_activities = activities;
  result->n_cancelled_activities = n;
  for (n = 0; n < 8 && a->cancel_messages[n] != NULL; n++)
    ids[n] = kit_keep(r, a->cancel_messages[n]);
  result->cancelled_messages = ids;
  result->n_cancelled_messages = n;
}

/* The first commit of an instance needs name and version; most checks are not about them. */
static bool
needs_name(struct dk_check *t, struct dk_bytes token, const struct ack_turn_args *a)
{
  const struct kit_token *met = kit_token(t, token);

  return met != NULL && met->known == 0 && !a->nameless && !a->empty;
}

static const struct dk_turn_result *
result_of(const struct kit_request *r, struct dk_bytes token, const struct ack_turn_args *a)
{
  struct dk_turn_result *result = kit_alloc(r->t, r->arena, 1, sizeof(*result));
  bool named = needs_name(r->t, token, a);

  *result = (struct dk_turn_result){
    .struct_size = sizeof(*result),
    .flags = a->repeated ? DK_REPEATED : 0u,
    .execution_id = a->execution_id != 0 || a->empty ? a->execution_id : 1,
    .status = a->status,
    .output = kit_keep(r, a->output),
    .name = kit_keep(r, a->name != NULL || !named ? a->name : "order"),
    .version = kit_keep(r, a->version != NULL || !named ? a->version : "1.0.0"),
    .parent_instance = kit_keep(r, a->parent),
    .owner = kit_keep(r, a->owner),
  };
  if (a->pinned != NULL) {
    struct dk_version *pinned = kit_alloc(r->t, r->arena, 1, sizeof(*pinned));

    *pinned = *a->pinned;
    result->pinned = pinned;
  }
  add_events(r, a, result);
  add_activities(r, a, result);
  add_messages(r, a, result);
  add_cancellations(r, a, result);
  return result;
}

dk_status
kit_ack_token(struct dk_check *t, struct dk_bytes token, const struct ack_turn_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_ACK_TURN);
  dk_status status;

  r.op->token = kit_copy_bytes(t, r.arena, token);
  if (a->raw == NULL)
    r.op->result = result_of(&r, token, a);
  else
    r.op->result = kit_copy_result(t, r.arena, a->raw);
  status = kit_call(t, r.who, a->start);
  if (a->ret_outcome != NULL && !a->start)
    *a->ret_outcome = r.op->outcome;
  if (a->ret_duplicate != NULL && !a->start)
    *a->ret_duplicate = r.op->duplicate;
  return status;
}

dk_status
kit_ack_turn(struct dk_check *t, const struct dk_turn *turn, const struct ack_turn_args *a)
{
  return kit_ack_token(t, turn->head.lock_token, a);
}

/* ---- leases ---------------------------------------------------------------------------------- */

static dk_status
token_call(struct dk_check *t, enum op_kind kind, struct dk_bytes token, int64_t ms,
           const struct token_args *a)
{
  struct kit_request r = kit_request(t, a->on, kind);

  r.op->token = kit_copy_bytes(t, r.arena, token);
  r.op->ms = ms;
  r.op->ignore_attempt = a->ignore_attempt ? 1 : 0;
  return kit_call(t, r.who, a->start);
}

dk_status
kit_renew_turn(struct dk_check *t, struct dk_bytes token, const struct token_args *a)
{
  return token_call(t, OP_RENEW_TURN, token, a->ms != 0 ? a->ms : USUAL_LEASE, a);
}

dk_status
kit_abandon_turn(struct dk_check *t, struct dk_bytes token, const struct token_args *a)
{
  return token_call(t, OP_ABANDON_TURN, token, a->ms, a);
}

dk_status
kit_renew_work(struct dk_check *t, struct dk_bytes token, const struct token_args *a)
{
  return token_call(t, OP_RENEW_WORK, token, a->ms != 0 ? a->ms : USUAL_LEASE, a);
}

dk_status
kit_abandon_work(struct dk_check *t, struct dk_bytes token, const struct token_args *a)
{
  return token_call(t, OP_ABANDON_WORK, token, a->ms, a);
}

dk_status
kit_release_fetch(struct dk_check *t, uint64_t fetch_id, const struct token_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_RELEASE_FETCH);

  r.op->fetch_id = fetch_id;
  return kit_call(t, r.who, a->start);
}

dk_status
kit_ack_work(struct dk_check *t, struct dk_bytes token, const struct ack_work_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_ACK_WORK);

  r.op->token = kit_copy_bytes(t, r.arena, token);
  r.op->work_result = (struct dk_work_result){
    .struct_size = sizeof(struct dk_work_result), .flags = a->repeated ? DK_REPEATED : 0u
  };
  if (a->to != NULL) {
    r.op->item = (struct dk_item){
      .struct_size = sizeof(struct dk_item),
      .instance = kit_keep(&r, a->to),
      .id = kit_keep(&r, a->id),
      .visible_at = a->visible_at,
      .delay_ms = a->delay_ms,
      .payload = kit_keep(&r, a->payload != NULL ? a->payload : "done"),
    };
    r.op->work_result.completion = &r.op->item;
  }
  return kit_call(t, r.who, a->start);
}

dk_status
kit_try_read_history(struct dk_check *t, const char *instance, const struct read_history_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_READ_HISTORY);

  r.op->read_history = (struct dk_read_history){
    .struct_size = sizeof(struct dk_read_history),
    .max_events = a->max_events,
    .instance = kit_keep(&r, instance),
    .execution_id = a->execution_id,
    .from_event = a->from_event,
  };
  return kit_call(t, r.who, a->start);
}

struct dk_history *
kit_read_history(struct dk_check *t, const char *instance, const struct read_history_args *a,
                 const char *file, int line)
{
  struct read_history_args args = *a;

  args.start = false;
  kit_expect_status(t, kit_try_read_history(t, instance, &args), DK_OK, "read_history", file, line);
  return kit_actor(t, a->on)->op.history;
}
