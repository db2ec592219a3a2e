/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a newer host: structs that are longer, and flags and values that are not known yet.
 * A provider takes the former as they are [ABI-9] and refuses the latter [ABI-11]. */
#include "conformance/random/random.h"

enum { UNKNOWN_FLAG = 1 << 30, UNKNOWN_VALUE = 77, LONGER = 8 };

static const struct dk_item *const *
with_unknown_flag(struct pass *p, const struct dk_item *const *items, size_t n)
{
  const struct dk_item **list = lasting(p, n, sizeof(*list));
  struct dk_item *marked = lasting(p, 1, sizeof(*marked));
  size_t which = (size_t)draw_below(&p->run->chance, n);

  for (size_t i = 0; i < n; i++)
    list[i] = items[i];
  *marked = *items[which];
  marked->flags |= UNKNOWN_FLAG;
  list[which] = marked;
  return list;
}

static void
mark_commit(struct pass *p, struct op *op)
{
  struct dk_turn_result *r = lasting(p, 1, sizeof(*r));
  uint64_t where = draw_below(&p->run->chance, 4);

  *r = *op->result;
  op->result = r;
  if (where == 0 && r->n_worker_items > 0)
    r->worker_items = with_unknown_flag(p, r->worker_items, r->n_worker_items);
  else if (where == 1 && r->n_orchestrator_items > 0)
    r->orchestrator_items = with_unknown_flag(p, r->orchestrator_items, r->n_orchestrator_items);
  else if (where == 2 && r->execution_id > 0)
    r->status = UNKNOWN_VALUE;
  else
    r->flags |= UNKNOWN_FLAG;
}

static void
mark_filter(struct pass *p, struct op *op, uint32_t *flags, const void *filter)
{
  if (filter != NULL && one_in(&p->run->chance, 2))
    op->filter.flags |= UNKNOWN_FLAG;
  else
    *flags |= UNKNOWN_FLAG;
}

/* False: this request has no flags. */
static bool
mark(struct pass *p, struct op *op)
{
  switch (op->kind) {
  case OP_ENQUEUE:
  case OP_ENQUEUE_WORK:
    op->item.flags |= UNKNOWN_FLAG;
    break;
  case OP_ACK_TURN:
    mark_commit(p, op);
    break;
  case OP_ACK_WORK:
    if (op->work_result.completion != NULL && one_in(&p->run->chance, 2))
      op->item.flags |= UNKNOWN_FLAG; /* the completion */
    else
      op->work_result.flags |= UNKNOWN_FLAG;
    break;
  case OP_FETCH_WORK:
    op->fetch_work.tag_rule = UNKNOWN_VALUE;
    break;
  case OP_LIST_INSTANCES:
    mark_filter(p, op, &op->list_instances.flags, op->list_instances.filter);
    break;
  case OP_DELETE_INSTANCES:
    op->delete_instances.flags |= UNKNOWN_FLAG;
    break;
  case OP_DELETE_MATCHING:
    mark_filter(p, op, &op->delete_matching.flags, op->delete_matching.filter);
    break;
  case OP_PRUNE:
    mark_filter(p, op, &op->prune.flags, op->prune.filter);
    break;
  default:
    return false;
  }
  return true;
}

static void
make_longer(struct op *op)
{
  switch (op->kind) {
  case OP_ENQUEUE: case OP_ENQUEUE_WORK: op->item.struct_size += LONGER; break;
  case OP_FETCH_TURN: op->fetch_turn.struct_size += LONGER; break;
  case OP_FETCH_WORK: op->fetch_work.struct_size += LONGER; break;
  case OP_ACK_WORK: op->work_result.struct_size += LONGER; break;
  case OP_READ_HISTORY: op->read_history.struct_size += LONGER; break;
  case OP_LIST_INSTANCES: op->list_instances.struct_size += LONGER; break;
  case OP_LIST_EXECUTIONS: op->list_executions.struct_size += LONGER; break;
  case OP_READ_MESSAGES: op->read_messages.struct_size += LONGER; break;
  case OP_DELETE_INSTANCES: op->delete_instances.struct_size += LONGER; break;
  case OP_DELETE_MATCHING: op->delete_matching.struct_size += LONGER; break;
  case OP_PRUNE: op->prune.struct_size += LONGER; break;
  default: break;
  }
}

/* What was done already may be answered so, before its flags are looked at. */
static bool
is_repeat(const struct op *op)
{
  return (op->kind == OP_ACK_TURN && op->result->flags & DK_REPEATED) ||
         (op->kind == OP_ACK_WORK && op->work_result.flags & DK_REPEATED);
}

void
draw_newer(struct pass *p, struct op *op)
{
  if (one_in(&p->run->chance, 25))
    make_longer(op);
  if (!is_repeat(op) && one_in(&p->run->chance, kit_is_admin(op->kind) ? 12 : 25))
    op->unchecked = mark(p, op);
}
