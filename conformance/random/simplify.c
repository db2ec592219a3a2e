/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which one request can be made simpler.  A step is not changed, but copied. */
#include "conformance/random/random.h"

#include <string.h>

static const struct dk_bytes plain = {"x", 1};

/* Each returns false if it finds nothing to simplify. */

static bool
simplify_item(struct dk_item *item, uint32_t how)
{
  switch (how) {
  case 0:
    if (item->payload.len <= 1)
      return false;
    item->payload = plain;
    return true;
  case 1:
    if (item->delay_ms == 0 && item->visible_at == 0)
      return false;
    item->delay_ms = item->visible_at = 0;
    return true;
  case 2:
    if (item->id.ptr == NULL && item->flags == 0)
      return false;
    item->id = bytes(NULL);
    item->flags = 0;
    return true;
  default:
    return false;
  }
}

/* Leaves out one half of a list. */
static bool
halve(const void **items, size_t *n, size_t size, bool second)
{
  size_t half = (*n + 1) / 2;

  if (*n == 0)
    return false;
  if (second && *n > 1)
    *items = (const char *)*items + half * size;
  *n = second && *n > 1 ? *n - half : *n == 1 ? 0 : half;
  return true;
}

static bool
simplify_lists(struct dk_turn_result *r, uint32_t how)
{
  const void *events = r->events, *schedule = r->worker_items, *send = r->orchestrator_items;
  const void *cancel = r->cancelled_activities;
  bool done = false;

  switch (how) {
  case 0: case 1:
    done = halve(&events, &r->n_events, sizeof(*r->events), how == 1);
    break;
  case 2: case 3:
    done = halve(&schedule, &r->n_worker_items, sizeof(*r->worker_items), how == 3);
    break;
  case 4: case 5:
    done = halve(&send, &r->n_orchestrator_items, sizeof(*r->orchestrator_items), how == 5);
    break;
  case 6: case 7:
    done = halve(&cancel, &r->n_cancelled_activities, sizeof(*r->cancelled_activities), how == 7);
    break;
  default:
    break;
  }
  r->events = events;
  r->worker_items = schedule;
  r->orchestrator_items = send;
  r->cancelled_activities = cancel;
  return done;
}

static bool
simplify_facts(struct dk_turn_result *r, uint32_t how)
{
  switch (how) {
  case 8:
    if (r->output.ptr == NULL)
      return false;
    r->output = bytes(NULL);
    return true;
  case 9:
    if (r->pinned == NULL && r->parent_instance.ptr == NULL)
      return false;
    r->pinned = NULL;
    r->parent_instance = bytes(NULL);
    return true;
  case 10:
    if (r->owner.ptr == NULL)
      return false;
    r->owner = bytes(NULL);
    return true;
  case 11:
    if (r->n_cancelled_messages == 0)
      return false;
    r->n_cancelled_messages = 0;
    return true;
  case 12:
    if (r->status == DK_STATUS_KEEP)
      return false;
    r->status = DK_STATUS_KEEP;
    return true;
  default:
    return false;
  }
}

static bool
has_long_payload(const struct dk_turn_result *r)
{
  bool has = r->output.len > 1;

  for (size_t i = 0; i < r->n_events; i++)
    has = has || r->events[i].payload.len > 1;
  for (size_t i = 0; i < r->n_worker_items; i++)
    has = has || r->worker_items[i]->payload.len > 1;
  for (size_t i = 0; i < r->n_orchestrator_items; i++)
    has = has || r->orchestrator_items[i]->payload.len > 1;
  return has;
}

static const struct dk_item *const *
with_plain_payloads(struct pass *p, const struct dk_item *const *items, size_t n)
{
  struct dk_item *copies = lasting(p, n, sizeof(*copies));
  const struct dk_item **list = lasting(p, n, sizeof(*list));

  for (size_t i = 0; i < n; i++) {
    copies[i] = *items[i];
    copies[i].payload = plain;
    list[i] = &copies[i];
  }
  return list;
}

static bool
simplify_payloads(struct pass *p, struct dk_turn_result *r)
{
  struct dk_event *events = lasting(p, r->n_events, sizeof(*events));

  if (!has_long_payload(r))
    return false;
  for (size_t i = 0; i < r->n_events; i++)
    events[i] = (struct dk_event){r->events[i].event_id, plain};
  r->events = events;
  r->worker_items = with_plain_payloads(p, r->worker_items, r->n_worker_items);
  r->orchestrator_items = with_plain_payloads(p, r->orchestrator_items, r->n_orchestrator_items);
  if (r->output.ptr != NULL)
    r->output = plain;
  return true;
}

static bool
simplify_result(struct pass *p, struct op *op, uint32_t how)
{
  struct dk_turn_result *r = lasting(p, 1, sizeof(*r));

  *r = *op->result;
  op->result = r;
  return how == 13 ? simplify_payloads(p, r) : simplify_lists(r, how) || simplify_facts(r, how);
}

static bool
simplify_fetch_turn(struct dk_fetch_turn *request, uint32_t how)
{
  struct dk_fetch_turn simple = *request;

  switch (how) {
  case 0: simple.max_messages = 0; break;
  case 1: simple.max_bytes = 0; break;
  case 2: simple.lock_ms = PLAIN_LEASE; break;
  case 3: simple.owner = bytes(NULL); break;
  case 4: simple.ranges = NULL; simple.n_ranges = 0; break;
  case 5: simple.fetch_id = 0; break;
  default: break;
  }
  bool changed = memcmp(&simple, request, sizeof(simple)) != 0;
  *request = simple;
  return changed;
}

static bool
simplify_fetch_work(struct dk_fetch_work *request, uint32_t how)
{
  struct dk_fetch_work simple = *request;

  switch (how) {
  case 0: simple.max_items = 1; break;
  case 1: simple.max_bytes = 0; break;
  case 2: simple.lock_ms = PLAIN_LEASE; break;
  case 3: simple.owner = bytes(NULL); break;
  case 4: simple.tag_rule = DK_TAG_ANY; simple.tags = NULL; simple.n_tags = 0; break;
  case 5: simple.fetch_id = 0; break;
  default: break;
  }
  bool changed = memcmp(&simple, request, sizeof(simple)) != 0;
  *request = simple;
  return changed;
}

static bool
simplify_ack(struct op *op, uint32_t how)
{
  if (op->work_result.completion == NULL)
    return false;
  if (how == 3) {
    op->work_result.completion = NULL;
    return true;
  }
  op->item = *op->work_result.completion;
  op->work_result.completion = &op->item;
  return simplify_item(&op->item, how);
}

static bool
simplify_request(struct pass *p, struct op *op, uint32_t how)
{
  switch (op->kind) {
  case OP_ENQUEUE:
  case OP_ENQUEUE_WORK:
    return simplify_item(&op->item, how);
  case OP_FETCH_TURN:
    return simplify_fetch_turn(&op->fetch_turn, how);
  case OP_FETCH_WORK:
    return simplify_fetch_work(&op->fetch_work, how);
  case OP_ACK_TURN:
    return simplify_result(p, op, how);
  case OP_ACK_WORK:
    return simplify_ack(op, how);
  default:
    return false;
  }
}

bool
make_simpler(struct pass *p, struct step *step, uint32_t how)
{
  if (how == WAYS_TO_SIMPLIFY - 1) {
    bool was_other = step->handle != 0 && step->during == NULL;
    if (was_other)
      step->handle = 0;
    return was_other;
  }
  if (step->kind != STEP_CALL || step->request->unchecked || step->only_reads)
    return false;
  if (how == WAYS_TO_SIMPLIFY - 2) {
    bool has_waited = step->ms > 0;
    if (step->during == NULL)
      step->ms = 0;
    step->during = NULL;
    return has_waited;
  }
  struct op *op = lasting(p, 1, sizeof(*op));
  *op = *step->request;
  step->request = op;
  return simplify_request(p, op, how);
}
