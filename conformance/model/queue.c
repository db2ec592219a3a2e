/* SPDX-License-Identifier: Apache-2.0 */
/* QUEUE: the orchestrator queue.  A message is stored for any target and creates no instance. */
#include "conformance/model/model.h"
#include "core/base/sat.h"

/* TIME-5: from when an item is visible. */
int64_t
visible_from(const struct op *op, const struct dk_item *item)
{
  int64_t delayed = dk_sat_add(op->now, item->delay_ms);

  return item->visible_at > delayed ? item->visible_at : delayed;
}

/* TIME-3: visible from the instant itself on. */
int64_t
due_at(const struct op *op, const struct message *message)
{
  const struct store *s = op->s;
  bool was_delayed = message->visible_at > message->enqueued_at;

  return dk_sat_add(message->visible_at, DEFECT(M_TIME_VISIBLE_ONE_LATE, was_delayed) ? 1 : 0);
}

/* QUEUE-4: while a message of this instance with this id is stored, a second one is refused. */
dk_status
refuse_stored_message(struct op *op, struct dk_bytes instance, const struct dk_item *item)
{
  if (find_message(op->s, instance, item->id))
    return refuse(op, DK_DUPLICATE, "a message of this instance with the id \"%.*s\" is stored",
                  (int)item->id.len, item->id.ptr);
  return DK_OK;
}

void
write_message(struct op *op, struct dk_bytes instance, const struct dk_item *item,
              int64_t visible_at)
{
  STEP(op, .kind = MESSAGE_COMES, .instance = instance, .id = item->id, .payload = item->payload,
       .visible_at = visible_at, .enqueued_at = op->now);
}

static dk_status
enqueue_for_orchestrator(struct op *op, const struct dk_item *item)
{
  TRY(refuse_unknown(op, item->flags & ~(uint32_t)DK_REPEATED, "a flag of the message"));
  TRY(refuse_stored_message(op, item->instance, item));               /* QUEUE-4 */
  write_message(op, item->instance, item, visible_from(op, item));    /* QUEUE-1, TIME-5 */
  return DK_OK;
}

dk_status
model_enqueue_for_orchestrator(void *self, struct dk_call *call, const struct dk_item *item)
{
  struct op op;

  TRY(enter(&op, self, call, "enqueue_for_orchestrator"));
  return leave(&op, enqueue_for_orchestrator(&op, item));
}
