/* SPDX-License-Identifier: Apache-2.0 */
/* Copies: results live in a caller only until its next call of the kind, while a check may hold two
 * turns side by side; and a request for another process must lie in the shared map.  All copies go
 * into an arena; if memory runs out that is trouble of the kit, never a failure of the provider. */
#include "conformance/kit/kit.h"

#include <string.h>

void *
kit_alloc(struct dk_check *t, struct dk_arena *arena, size_t n, size_t size)
{
  void *memory = dk_arena_array(arena, n, size);

  if (memory == NULL)
    kit_trouble(t, "no memory for %zu pieces of %zu bytes", n, size);
  return memory;
}

void *
kit_grow(struct dk_check *t, struct dk_arena *arena, void *old, size_t n, size_t *room, size_t size)
{
  size_t more = *room < 16 ? 16 : *room * 2;
  void *items = kit_alloc(t, arena, more, size);

  if (n > 0)
    memcpy(items, old, n * size);
  *room = more;
  return items;
}

struct dk_bytes
kit_copy_bytes(struct dk_check *t, struct dk_arena *arena, struct dk_bytes bytes)
{
  struct dk_bytes copy = {NULL, bytes.len};

  if (bytes.ptr == NULL)
    return bytes;
  copy.ptr = dk_arena_copy(arena, bytes.ptr, bytes.len);
  if (copy.ptr == NULL)
    kit_trouble(t, "no memory for %zu bytes", bytes.len);
  return copy;
}

static struct dk_event *
copy_events(struct dk_check *t, struct dk_arena *arena, const struct dk_event *events, size_t n)
{
  struct dk_event *copy = kit_alloc(t, arena, n, sizeof(*copy));

  for (size_t i = 0; i < n; i++) {
    copy[i].event_id = events[i].event_id;
    copy[i].payload = kit_copy_bytes(t, arena, events[i].payload);
  }
  return copy;
}

static struct dk_turn *
copy_turn(struct dk_check *t, struct dk_arena *arena, const struct dk_turn *turn)
{
  struct dk_turn *copy = kit_alloc(t, arena, 1, sizeof(*copy));

  *copy = *turn;
  copy->head.lock_token = kit_copy_bytes(t, arena, turn->head.lock_token);
  copy->head.instance = kit_copy_bytes(t, arena, turn->head.instance);
  copy->head.name = kit_copy_bytes(t, arena, turn->head.name);
  copy->head.version = kit_copy_bytes(t, arena, turn->head.version);
  copy->head.parent_instance = kit_copy_bytes(t, arena, turn->head.parent_instance);
  copy->events = copy_events(t, arena, turn->events, turn->n_events);
  copy->messages = kit_alloc(t, arena, turn->n_messages, sizeof(*copy->messages));
  for (size_t i = 0; i < turn->n_messages; i++) {
    copy->messages[i] = turn->messages[i];
    copy->messages[i].id = kit_copy_bytes(t, arena, turn->messages[i].id);
    copy->messages[i].payload = kit_copy_bytes(t, arena, turn->messages[i].payload);
  }
  copy->kv = kit_alloc(t, arena, turn->n_kv, sizeof(*copy->kv));
  for (size_t i = 0; i < turn->n_kv; i++) {
    copy->kv[i] = turn->kv[i];
    copy->kv[i].key = kit_copy_bytes(t, arena, turn->kv[i].key);
    copy->kv[i].value = kit_copy_bytes(t, arena, turn->kv[i].value);
  }
  return copy;
}

static struct dk_item
copy_item(struct dk_check *t, struct dk_arena *arena, const struct dk_item *item)
{
  struct dk_item copy = *item;

  copy.instance = kit_copy_bytes(t, arena, item->instance);
  copy.id = kit_copy_bytes(t, arena, item->id);
  copy.session = kit_copy_bytes(t, arena, item->session);
  copy.tag = kit_copy_bytes(t, arena, item->tag);
  copy.payload = kit_copy_bytes(t, arena, item->payload);
  return copy;
}

static struct dk_works *
copy_works(struct dk_check *t, struct dk_arena *arena, const struct dk_works *works)
{
  struct dk_works *copy = kit_alloc(t, arena, 1, sizeof(*copy));

  copy->n_items = works->n_items;
  copy->items = kit_alloc(t, arena, works->n_items, sizeof(*copy->items));
  for (size_t i = 0; i < works->n_items; i++) {
    struct dk_work_item *to = &copy->items[i];
    const struct dk_work_item *from = &works->items[i];

    *to = *from;
    to->item = copy_item(t, arena, &from->item);
    to->work.item = &to->item;
    to->work.lock_token = kit_copy_bytes(t, arena, from->work.lock_token);
  }
  return copy;
}

static struct dk_history *
copy_history(struct dk_check *t, struct dk_arena *arena, const struct dk_history *history)
{
  struct dk_history *copy = kit_alloc(t, arena, 1, sizeof(*copy));

  *copy = *history;
  copy->execution.output = kit_copy_bytes(t, arena, history->execution.output);
  copy->events = copy_events(t, arena, history->events, history->n_events);
  return copy;
}

static void
copy_outcome(struct dk_check *t, struct dk_arena *arena, struct dk_commit_outcome *outcome)
{
  const struct dk_stolen *from = outcome->stolen;
  struct dk_stolen *to = kit_alloc(t, arena, outcome->n_stolen, sizeof(*to));

  for (size_t i = 0; i < outcome->n_stolen; i++) {
    to[i] = from[i];
    to[i].lock_token = kit_copy_bytes(t, arena, from[i].lock_token);
    to[i].owner = kit_copy_bytes(t, arena, from[i].owner);
  }
  outcome->stolen = to;
}

void
kit_copy_reply(struct dk_check *t, struct dk_arena *arena, struct op *op)
{
  if (op->status != DK_OK) {
    op->turn = NULL;
    op->works = NULL;
    op->history = NULL;
    op->outcome = (struct dk_commit_outcome){.reported = 0};
    kit_give_admin_reply(op, &(struct op){.kind = OP_NONE});
    return;
  }
  kit_copy_admin_reply(t, arena, op);
  if (op->turn != NULL)
    op->turn = copy_turn(t, arena, op->turn);
  if (op->works != NULL)
    op->works = copy_works(t, arena, op->works);
  if (op->history != NULL)
    op->history = copy_history(t, arena, op->history);
  if (op->kind == OP_ACK_TURN)
    copy_outcome(t, arena, &op->outcome);
}

static const struct dk_item *const *
copy_items(struct dk_check *t, struct dk_arena *arena, const struct dk_item *const *items, size_t n)
{
  struct dk_item *copies = kit_alloc(t, arena, n, sizeof(*copies));
  const struct dk_item **list = kit_alloc(t, arena, n, sizeof(*list));

  for (size_t i = 0; i < n; i++) {
    copies[i] = copy_item(t, arena, items[i]);
    list[i] = &copies[i];
  }
  return list;
}

static void *
copy_array(struct dk_check *t, struct dk_arena *arena, const void *items, size_t n, size_t size)
{
  void *copy = kit_alloc(t, arena, n, size);

  if (n > 0)
    memcpy(copy, items, n * size);
  return copy;
}

static void
copy_result_texts(struct dk_check *t, struct dk_arena *arena, struct dk_turn_result *r)
{
  r->output = kit_copy_bytes(t, arena, r->output);
  r->name = kit_copy_bytes(t, arena, r->name);
  r->version = kit_copy_bytes(t, arena, r->version);
  r->parent_instance = kit_copy_bytes(t, arena, r->parent_instance);
  r->custom_status = kit_copy_bytes(t, arena, r->custom_status);
  r->owner = kit_copy_bytes(t, arena, r->owner);
  if (r->pinned != NULL)
    r->pinned = copy_array(t, arena, r->pinned, 1, sizeof(*r->pinned));
}

const struct dk_turn_result *
kit_copy_result(struct dk_check *t, struct dk_arena *arena, const struct dk_turn_result *result)
{
  struct dk_turn_result *r = kit_alloc(t, arena, 1, sizeof(*r));
  *r = *result;

  r->events = copy_events(t, arena, r->events, r->n_events);
  r->worker_items = copy_items(t, arena, r->worker_items, r->n_worker_items);
  r->orchestrator_items = copy_items(t, arena, r->orchestrator_items, r->n_orchestrator_items);
  r->cancelled_activities = copy_array(t, arena, r->cancelled_activities,
                                       r->n_cancelled_activities, sizeof(*r->cancelled_activities));
  struct dk_bytes *ids = kit_alloc(t, arena, r->n_cancelled_messages, sizeof(*ids));
  for (size_t i = 0; i < r->n_cancelled_messages; i++)
    ids[i] = kit_copy_bytes(t, arena, r->cancelled_messages[i]);
  r->cancelled_messages = ids;
  struct dk_kv_change *kv = copy_array(t, arena, r->kv, r->n_kv, sizeof(*kv));
  for (size_t i = 0; i < r->n_kv; i++) {
    kv[i].key = kit_copy_bytes(t, arena, kv[i].key);
    kv[i].value = kit_copy_bytes(t, arena, kv[i].value);
  }
  r->kv = kv;
  copy_result_texts(t, arena, r);
  return r;
}

const struct dk_bytes *
kit_copy_list(struct dk_check *t, struct dk_arena *arena, const struct dk_bytes *list, size_t n)
{
  struct dk_bytes *copy = list == NULL ? NULL : kit_alloc(t, arena, n, sizeof(*copy));

  for (size_t i = 0; copy != NULL && i < n; i++)
    copy[i] = kit_copy_bytes(t, arena, list[i]);
  return copy;
}

void
kit_copy_request(struct dk_check *t, struct dk_arena *arena, const struct op *from, struct op *to)
{
  *to = *from;
  to->token = kit_copy_bytes(t, arena, from->token);
  to->item = copy_item(t, arena, &from->item);
  to->fetch_turn.owner = kit_copy_bytes(t, arena, from->fetch_turn.owner);
  if (from->fetch_turn.ranges != NULL)
    to->fetch_turn.ranges = copy_array(t, arena, from->fetch_turn.ranges, from->fetch_turn.n_ranges,
                                       sizeof(*from->fetch_turn.ranges));
  to->fetch_work.owner = kit_copy_bytes(t, arena, from->fetch_work.owner);
  to->fetch_work.tags = kit_copy_list(t, arena, from->fetch_work.tags, from->fetch_work.n_tags);
  to->read_history.instance = kit_copy_bytes(t, arena, from->read_history.instance);
  if (from->work_result.completion != NULL) {
    to->item = copy_item(t, arena, from->work_result.completion);
    to->work_result.completion = &to->item;
  }
  if (from->result != NULL)
    to->result = kit_copy_result(t, arena, from->result);
  kit_copy_admin_request(t, arena, to);
}

/* ---- overwriting ----------------------------------------------------------------------------- */

enum { NOT_YOURS = 0x5a };

void
kit_overwrite(struct dk_bytes lent)
{
  if (lent.ptr == NULL)
    return;
  memset((void *)(uintptr_t)lent.ptr, NOT_YOURS, lent.len);
  dk_arena_withdraw(lent.ptr, lent.len);
}

static void
take_back_item(const struct dk_item *item)
{
  kit_overwrite(item->instance);
  kit_overwrite(item->id);
  kit_overwrite(item->session);
  kit_overwrite(item->tag);
  kit_overwrite(item->payload);
}

static void
take_back_result(const struct dk_turn_result *r)
{
  for (size_t i = 0; i < r->n_events; i++)
    kit_overwrite(r->events[i].payload);
  for (size_t i = 0; i < r->n_worker_items; i++)
    take_back_item(r->worker_items[i]);
  for (size_t i = 0; i < r->n_orchestrator_items; i++)
    take_back_item(r->orchestrator_items[i]);
  for (size_t i = 0; i < r->n_cancelled_messages; i++)
    kit_overwrite(r->cancelled_messages[i]);
  kit_overwrite(r->output);
  kit_overwrite(r->name);
  kit_overwrite(r->version);
  kit_overwrite(r->parent_instance);
  kit_overwrite(r->owner);
}

/* ABI-10: after its call has returned the texts of a request are overwritten; a provider that kept
 * a pointer then reads what was never sent. */
void
kit_take_back(const struct op *op)
{
  kit_overwrite(op->token);
  take_back_item(&op->item);
  kit_overwrite(op->fetch_turn.owner);
  kit_overwrite(op->fetch_work.owner);
  for (size_t i = 0; i < op->fetch_work.n_tags; i++)
    kit_overwrite(op->fetch_work.tags[i]);
  kit_overwrite(op->read_history.instance);
  kit_take_back_admin(op);
  if (op->result != NULL)
    take_back_result(op->result);
}
