/* SPDX-License-Identifier: Apache-2.0 */
/* ERR: how a message that is stored already is commonly refused wrongly; nothing but mutants. */
#include "conformance/model/model.h"

#include <string.h>

/* ERR-4: all bytes of an id count.  This mutant compares those that its index holds. */
static bool
begins_like_one_stored(const struct op *op, const struct dk_item *item)
{
  enum { INDEXED = 767 };
  const struct instance *of = find_instance(op->s, item->instance);

  if (!of || item->id.len <= INDEXED)
    return false;
  FOR_EACH(at, &of->messages) {
    struct dk_bytes id = OWNER_OF(at, struct message, link)->id;
    if (id.len > INDEXED && memcmp(id.ptr, item->id.ptr, INDEXED) == 0)
      return true;
  }
  return false;
}

/* ERR-1: its own status; ERR-3: and no trace. */
dk_status
refuse_wrongly(struct op *op, const struct dk_item *item)
{
  const struct store *s = op->s;
  bool is_stored = find_message(s, item->instance, item->id) != NULL;

  if (DEFECT(M_ERR_STORED_MESSAGE_IS_INTERNAL, is_stored))
    return refuse(op, DK_INTERNAL, "UNIQUE constraint failed: messages.id");
  if (DEFECT(M_ERR_LONG_IDS_ALIKE, begins_like_one_stored(op, item)))
    return refuse(op, DK_DUPLICATE, "a message with such an id is stored");
  if (DEFECT(M_ERR_REFUSED_ENQUEUE_REPLACES, is_stored)) {
    STEP(op, .kind = MESSAGE_GOES, .instance = item->instance, .id = item->id);
    write_message(op, item->instance, item, visible_from(op, item));
    op->leaves_traces = true;
  }
  return DK_OK;
}
