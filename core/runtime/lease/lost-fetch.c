/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches whose answer was lost: see lost-fetch.h.  Owns nothing. */
#include "core/runtime/lease/lost-fetch.h"

#include <sys/random.h>

void
fetch_ids_begin(struct fetch_ids *ids, struct dk_store *store)
{
  uint64_t random = 0;

  ids->can_release = dk_library_provider(dk_store_library(store))->ops->release_fetch &&
                     getrandom(&random, sizeof(random), 0) == (ssize_t)sizeof(random);
  atomic_init(&ids->last, random >> 2); /* ids must not exceed 2^63 - 1 */
}

uint64_t
fetch_ids_next(struct fetch_ids *ids)
{
  return ids->can_release ? atomic_fetch_add(&ids->last, 1) + 1 : 0;
}

/* True if, with this answer, the store has locked nothing, or has reported what. */
static bool
is_conclusive(dk_status status)
{
  return status == DK_OK || status == DK_NOTHING || status == DK_CALL_CANCELLED;
}

void
lost_fetch_note(struct lost_fetch *lost, uint64_t id, dk_status status)
{
  *lost = (struct lost_fetch){is_conclusive(status) ? 0 : id, status};
}

dk_status
lost_fetch_release(struct lost_fetch *lost, struct dk_store *store, struct dk_caller *caller)
{
  if (lost->id == 0)
    return DK_OK;
  lost->status = dk_store_release_fetch(store, caller, lost->id);
  if (lost->status != DK_OK && dk_status_class(lost->status) != 2)
    return lost->status;
  lost->id = 0; /* a refusal would be repeated: its leases expire */
  return DK_OK;
}

bool
lost_fetch_is_near(const struct lost_fetch *lost)
{
  return lost->id != 0 && lost->status != DK_UNAVAILABLE;
}
