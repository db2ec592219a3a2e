/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons: see reason.h. */
#include "core/runtime/reason.h"

#include <stdio.h>

dk_status
reason_store(struct dk_store *store, struct dk_caller *caller, const struct reason *reason)
{
  const struct message message = {.kind = MESSAGE_DELAYED,
                                  .name = dk_str_of(stall_name(reason->why)),
                                  .text = reason->text,
                                  .by = reason->by};
  struct dk_text payload = DK_TEXT_EMPTY;
  dk_status status = DK_NO_MEMORY;
  char id[96];

  snprintf(id, sizeof(id), reason->activity ? "delayed.%s.%llu.%llu" : "delayed.%s",
           stall_name(reason->why), (unsigned long long)reason->execution,
           (unsigned long long)reason->activity);
  message_encode(&payload, &message);
  if (!dk_text_failed(&payload)) {
    const struct dk_item item = {.struct_size = sizeof(item),
                                 .instance = reason->instance,
                                 .id = dk_str_of(id),
                                 .visible_at = reason->visible_at,
                                 .payload = {dk_text_str(&payload), payload.length}};
    status = dk_store_enqueue_for_orchestrator(store, caller, &item);
  }
  dk_text_done(&payload);
  return status;
}
