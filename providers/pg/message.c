/* SPDX-License-Identifier: Apache-2.0 */
/* QUEUE: messages.  A message is stored for any target; the row that its address then has is not
 * yet an instance (birth is 0). */
#include "providers/pg/handle.h"

/* "status", "listening" */
static const char answer[] = "ib";

static dk_status
send_message(struct operation *op, const struct dk_item *item, PGresult **ret)
{
  struct values v;

  operation_values(op, &v);
  value_text(&v, item->instance);
  value_text(&v, item->id);
  value_bigint(&v, item->visible_at);
  value_bigint(&v, item->delay_ms);
  value_bytea(&v, item->payload);
  return operation_run(op, "enqueue_message", true, &v, answer, ret);
}

/* QUEUE-1, QUEUE-2, QUEUE-4. */
dk_status
apply_enqueue_message(struct operation *op, const struct dk_item *item)
{
  PGresult *r;

  TRY(refuse_unknown(op, (item->flags & ~(uint32_t)DK_REPEATED) != 0, "a flag of the message"));
  TRY(send_message(op, item, &r));
  int32_t status = field_int(r, 0, 0);
  int64_t listening = field_bigint(r, 0, 1);
  bool is_whole = PQntuples(r) == 1;
  PQclear(r);
  if (!is_whole)
    return refuse(op, DK_CORRUPT, "the function returned no row");
  if (status != DK_OK)
    return refuse(op, status, "a message of instance \"%.64s\" with the id \"%.64s\" is already "
                  "stored", item->instance.ptr, item->id.ptr);
  bell_ring(op->h->bell, RING_TURNS, listening);
  return DK_OK;
}
