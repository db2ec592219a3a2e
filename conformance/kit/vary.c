/* SPDX-License-Identifier: Apache-2.0 */
/* See vary.h.  Every function of the first half changes one kind of value on its way to the
 * provider, and its counterpart in the second half changes it back.  The texts of a varied request
 * live as long as the call. */
#include "conformance/kit/vary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conformance/kit/kit.h"
#include "core/base/checksum.h"

struct varying {
  const struct variation *by;
  struct dk_arena arena;
  struct op *op;
  bool failed; /* no memory */
};

/* ---- there ----------------------------------------------------------------------------------- */

static void *
vary_alloc(struct varying *v, size_t n, size_t size)
{
  void *memory = dk_arena_array(&v->arena, n, size);

  v->failed = v->failed || memory == NULL;
  return memory;
}

/* A varied payload: the payload, padding that depends on it, so that two of them cannot be mixed
 * up, its length, and its hash. */
enum { TAIL = 4 + 8 };

static char
padding_at(uint64_t hash, size_t i)
{
  return (char)(unsigned char)(hash >> (i % 8 * 8) ^ i);
}

static uint64_t
hash_of(struct dk_bytes payload)
{
  return dk_fnv1a64(DK_FNV1A64_START, payload.ptr, payload.len);
}

static size_t
size_of(const struct variation *by, struct dk_bytes payload, uint64_t hash)
{
  size_t size = by->sizes[(hash >> 32) % by->n_sizes];

  return size > payload.len + TAIL ? size : payload.len + TAIL;
}

static struct dk_bytes
vary_payload(struct varying *v, struct dk_bytes payload)
{
  uint32_t length = (uint32_t)payload.len;

  if (payload.ptr == NULL || v->by->n_sizes == 0)
    return payload;
  uint64_t hash = hash_of(payload);
  size_t size = size_of(v->by, payload, hash);
  char *padded = vary_alloc(v, size, 1);
  if (padded == NULL)
    return payload;
  memcpy(padded, payload.ptr, payload.len);
  for (size_t i = payload.len; i < size - TAIL; i++)
    padded[i] = padding_at(hash, i);
  memcpy(padded + size - TAIL, &length, sizeof(length));
  memcpy(padded + size - sizeof(hash), &hash, sizeof(hash));
  return (struct dk_bytes){padded, size};
}

/* An empty id stays what it is: it is to be refused. */
static struct dk_bytes
vary_id(struct varying *v, struct dk_bytes id)
{
  const char *before = v->by->before_ids != NULL ? v->by->before_ids : "";
  const char *after = v->by->after_ids != NULL ? v->by->after_ids : "";
  size_t n = strlen(before), more = n + strlen(after);
  char *varied;

  if (id.ptr == NULL || id.len == 0 || more == 0 ||
      (varied = vary_alloc(v, id.len + more + 1, 1)) == NULL)
    return id;
  memcpy(varied, before, n);
  memcpy(varied + n, id.ptr, id.len);
  memcpy(varied + n + id.len, after, more - n);
  return (struct dk_bytes){varied, id.len + more};
}

static const struct dk_bytes *
vary_ids(struct varying *v, const struct dk_bytes *ids, size_t n)
{
  struct dk_bytes *varied = ids == NULL ? NULL : vary_alloc(v, n, sizeof(*varied));

  for (size_t i = 0; varied != NULL && i < n; i++)
    varied[i] = vary_id(v, ids[i]);
  return varied;
}

/* 0 stands for none, and great numbers stay as they are. */
static uint64_t
greatest_varied(const struct variation *by)
{
  return (INT64_MAX - by->above_numbers) / 2;
}

static uint64_t
vary_number(const struct varying *v, uint64_t number)
{
  return number == 0 || number > greatest_varied(v->by) ? number : number + v->by->above_numbers;
}

static void
vary_item(struct varying *v, struct dk_item *item)
{
  item->instance = vary_id(v, item->instance);
  item->id = vary_id(v, item->id);
  item->tag = vary_id(v, item->tag);
  item->activity_id = vary_number(v, item->activity_id);
  item->payload = vary_payload(v, item->payload);
}

static const struct dk_item *const *
vary_items(struct varying *v, const struct dk_item *const *items, size_t n)
{
  struct dk_item *copies = vary_alloc(v, n, sizeof(*copies));
  const struct dk_item **list = vary_alloc(v, n, sizeof(*list));

  for (size_t i = 0; !v->failed && i < n; i++) {
    copies[i] = *items[i];
    vary_item(v, &copies[i]);
    list[i] = &copies[i];
  }
  return list;
}

static void
vary_events(struct varying *v, struct dk_turn_result *r)
{
  struct dk_event *events = vary_alloc(v, r->n_events, sizeof(*events));

  for (size_t i = 0; !v->failed && i < r->n_events; i++)
    events[i] = (struct dk_event){
      vary_number(v, r->events[i].event_id), vary_payload(v, r->events[i].payload)
    };
  r->events = events;
}

static void
vary_cancelled(struct varying *v, struct dk_turn_result *r)
{
  struct dk_activity *list = vary_alloc(v, r->n_cancelled_activities, sizeof(*list));

  for (size_t i = 0; !v->failed && i < r->n_cancelled_activities; i++)
    list[i] = (struct dk_activity){
      r->cancelled_activities[i].execution_id,
      vary_number(v, r->cancelled_activities[i].activity_id)
    };
  r->cancelled_activities = list;
}

static const struct dk_turn_result *
vary_result(struct varying *v, const struct dk_turn_result *result)
{
  struct dk_turn_result *r = vary_alloc(v, 1, sizeof(*r));

  if (v->failed)
    return result;
  *r = *result;
  vary_events(v, r);
  vary_cancelled(v, r);
  r->worker_items = vary_items(v, r->worker_items, r->n_worker_items);
  r->orchestrator_items = vary_items(v, r->orchestrator_items, r->n_orchestrator_items);
  r->cancelled_messages = vary_ids(v, r->cancelled_messages, r->n_cancelled_messages);
  r->output = vary_payload(v, r->output);
  r->parent_instance = vary_id(v, r->parent_instance);
  if (v->by->absent > 0 && !v->failed)
    v->failed = !kit_lengthen_result(&v->arena, v->by->absent, &v->op->limits, r);
  return r;
}

static void
vary_admin(struct varying *v, struct op *op)
{
  struct dk_instance_filter *filter = &op->filter;

  filter->ids = vary_ids(v, filter->ids, filter->n_ids);
  filter->parent_instance = vary_id(v, filter->parent_instance);
  op->list_instances.after = vary_id(v, op->list_instances.after);
  op->list_executions.instance = vary_id(v, op->list_executions.instance);
  op->read_messages.instance = vary_id(v, op->read_messages.instance);
  op->delete_instances.instances =
    vary_ids(v, op->delete_instances.instances, op->delete_instances.n_instances);
  op->delete_matching.after = vary_id(v, op->delete_matching.after);
  op->prune.instance = vary_id(v, op->prune.instance);
  op->prune.after = vary_id(v, op->prune.after);
}

static void
widen(uint64_t no_limit, uint32_t *limit)
{
  if (*limit == 0)
    *limit = (uint32_t)(no_limit >> 32);
}

static void
vary_limits(uint64_t no_limit, struct op *op)
{
  widen(no_limit, &op->fetch_turn.max_messages);
  widen(no_limit, &op->read_history.max_events);
  if (op->fetch_turn.max_bytes == 0)
    op->fetch_turn.max_bytes = no_limit;
  if (op->fetch_work.max_bytes == 0)
    op->fetch_work.max_bytes = no_limit;
}

static void
vary_request(struct varying *v)
{
  struct op *op = v->op;

  vary_item(v, &op->item); /* also that of an ack, which points to it */
  op->fetch_work.tags = vary_ids(v, op->fetch_work.tags, op->fetch_work.n_tags);
  op->read_history.instance = vary_id(v, op->read_history.instance);
  if (op->read_history.from_event > 1)
    op->read_history.from_event = vary_number(v, op->read_history.from_event);
  if (op->result != NULL)
    op->result = vary_result(v, op->result);
  vary_admin(v, op);
  if (v->by->absent > 0)
    v->failed = v->failed || !kit_lengthen_fetch(&v->arena, v->by->absent, op);
  vary_limits(v->by->no_limit, op);
}

/* ---- and back -------------------------------------------------------------------------------- */

static void
note_distortion(struct varying *v, const char *what)
{
  if (v->op->distorted[0] == '\0')
    snprintf(v->op->distorted, sizeof(v->op->distorted), "%s", what);
}

/* True: this is what stands behind a payload of this length. */
static bool
is_whole(const struct variation *by, struct dk_bytes all, uint32_t length)
{
  struct dk_bytes payload = {all.ptr, length};
  uint64_t hash;

  if (length > all.len - TAIL)
    return false;
  memcpy(&hash, all.ptr + all.len - sizeof(hash), sizeof(hash));
  if (hash != hash_of(payload) || all.len != size_of(by, payload, hash))
    return false;
  for (size_t i = length; i < all.len - TAIL; i++)
    if (all.ptr[i] != padding_at(hash, i))
      return false;
  return true;
}

static void
restore_payload(struct varying *v, struct dk_bytes *payload)
{
  uint32_t length;

  if (payload->ptr == NULL || v->by->n_sizes == 0)
    return;
  if (payload->len < TAIL) {
    note_distortion(v, "a payload came back shorter than it was stored");
    return;
  }
  memcpy(&length, payload->ptr + payload->len - TAIL, sizeof(length));
  if (is_whole(v->by, *payload, length))
    payload->len = length;
  else
    note_distortion(v, "a payload came back with other bytes than it was stored with");
}

static void
restore_id(struct varying *v, struct dk_bytes *id)
{
  const char *before = v->by->before_ids != NULL ? v->by->before_ids : "";
  const char *after = v->by->after_ids != NULL ? v->by->after_ids : "";
  size_t n = strlen(before), m = strlen(after);

  if (id->ptr == NULL || id->len == 0 || kit_is_neighbour(v->by, *id))
    return;
  if (id->len < n + m || memcmp(id->ptr, before, n) != 0 ||
      memcmp(id->ptr + id->len - m, after, m) != 0) {
    note_distortion(v, "an id or tag came back with other bytes than it was stored with");
    return;
  }
  id->ptr += n;
  id->len -= n + m;
}

static void
restore_number(const struct varying *v, uint64_t *number)
{
  uint64_t above = v->by->above_numbers;

  if (*number > above && *number - above <= greatest_varied(v->by))
    *number -= above;
}

static void
restore_events(struct varying *v, struct dk_event *events, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    restore_number(v, &events[i].event_id);
    restore_payload(v, &events[i].payload);
  }
}

static void
restore_messages(struct varying *v, struct dk_message *messages, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    restore_id(v, &messages[i].id);
    restore_payload(v, &messages[i].payload);
  }
}

static void
restore_turn(struct varying *v, struct dk_turn *turn)
{
  restore_id(v, &turn->head.instance);
  restore_id(v, &turn->head.parent_instance);
  restore_number(v, &turn->head.last_event_id);
  restore_number(v, &turn->head.history_from);
  restore_events(v, turn->events, turn->n_events);
  restore_messages(v, turn->messages, turn->n_messages);
}

static void
restore_works(struct varying *v, struct dk_works *works)
{
  for (size_t i = 0; i < works->n_items; i++) {
    struct dk_item *item = &works->items[i].item;
    restore_id(v, &item->instance);
    restore_id(v, &item->tag);
    restore_number(v, &item->activity_id);
    restore_payload(v, &item->payload);
  }
}

static void
restore_execution(struct varying *v, struct dk_execution *execution)
{
  restore_number(v, &execution->last_event_id);
  restore_payload(v, &execution->output);
}

static void
restore_admin(struct varying *v, struct op *op)
{
  for (size_t i = 0; op->instances != NULL && i < op->instances->n_items; i++) {
    struct dk_instance *instance = &op->instances->items[i];
    restore_id(v, &instance->instance);
    restore_id(v, &instance->parent_instance);
    restore_number(v, &instance->last_event_id);
    restore_payload(v, &instance->output);
  }
  for (size_t i = 0; op->executions != NULL && i < op->executions->n_items; i++)
    restore_execution(v, &op->executions->items[i]);
  if (op->waiting != NULL)
    restore_messages(v, op->waiting->items, op->waiting->n_items);
  restore_id(v, &op->removed.next);
}

static void
restore_reply(struct varying *v)
{
  struct op *op = v->op;

  if (op->status != DK_OK)
    return;
  if (op->turn != NULL)
    restore_turn(v, op->turn);
  if (op->works != NULL)
    restore_works(v, op->works);
  if (op->history != NULL) {
    restore_execution(v, &op->history->execution);
    restore_events(v, op->history->events, op->history->n_events);
  }
  for (size_t i = 0; op->kind == OP_ACK_TURN && i < op->outcome.n_stolen; i++)
    restore_number(v, &op->outcome.stolen[i].activity_id);
  restore_admin(v, op);
}

/* ---- one call -------------------------------------------------------------------------------- */

/* The request as the check has made it, beside the reply. */
static void
restore_request(struct op *op, const struct op *asked)
{
  op->item = asked->item;
  op->fetch_turn = asked->fetch_turn;
  op->fetch_work = asked->fetch_work;
  op->read_history = asked->read_history;
  op->result = asked->result;
  op->filter = asked->filter;
  op->list_instances = asked->list_instances;
  op->list_executions = asked->list_executions;
  op->read_messages = asked->read_messages;
  op->delete_instances = asked->delete_instances;
  op->delete_matching = asked->delete_matching;
  op->prune = asked->prune;
}

void
kit_vary(struct op *op, struct dk_store *store, struct dk_caller *caller,
         dk_status (*run)(struct op *op, struct dk_store *store, struct dk_caller *caller))
{
  struct varying v = {.by = op->variation, .op = op};
  const struct op asked = *op;

  dk_arena_init(&v.arena);
  vary_request(&v);
  op->status = v.failed ? DK_NO_MEMORY : run(op, store, caller);
  restore_request(op, &asked);
  restore_reply(&v);
  dk_arena_done(&v.arena);
}
