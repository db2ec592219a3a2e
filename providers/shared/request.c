/* SPDX-License-Identifier: Apache-2.0 */
/* What both plugins refuse: see request.h. */
#include "providers/shared/request.h"

dk_status
refuse_odd_work(struct operation *op, const struct dk_item *item)
{
  TRY(refuse_unknown(op, item->session.ptr != NULL, "a session"));
  if (item->tag.ptr && item->tag.len == 0)
    return refuse(op, DK_INVALID, "activity %llu has an empty tag; expected a tag, or none",
                  (unsigned long long)item->activity_id);
  return DK_OK;
}

dk_status
refuse_too_large(struct operation *op, const struct dk_item *item)
{
  if (item->payload.len <= MAX_PAYLOAD)
    return DK_OK;
  return refuse(op, DK_TOO_LARGE, "the payload has %zu bytes; expected at most %d",
                item->payload.len, (int)MAX_PAYLOAD);
}

dk_status
commit_refuse_what_is_unknown(struct operation *op, const struct dk_turn_result *r)
{
  TRY(refuse_unknown(op, (r->flags & ~(uint32_t)DK_REPEATED) != 0, "a flag of the commit"));
  TRY(refuse_unknown(op, r->status < DK_STATUS_KEEP || r->status > DK_CANCELLED, "the status"));
  TRY(refuse_unknown(op, r->n_kv || r->custom_status_op, "what belongs to an extension"));
  for (size_t i = 0; i < r->n_worker_items; i++) {
    TRY(refuse_unknown(op, r->worker_items[i]->flags != 0, "a flag of an activity"));
    TRY(refuse_odd_work(op, r->worker_items[i]));
  }
  for (size_t i = 0; i < r->n_orchestrator_items; i++)
    TRY(refuse_unknown(op, r->orchestrator_items[i]->flags != 0, "a flag of a message"));
  return DK_OK;
}

bool
commit_is_bare(const struct dk_turn_result *r)
{
  return !r->status && !r->n_events && !r->n_worker_items && !r->n_cancelled_activities &&
         !r->n_cancelled_messages && !r->output.ptr && !r->name.ptr && !r->version.ptr &&
         !r->parent_instance.ptr && !r->owner.ptr && !r->pinned;
}

dk_status
refuse_size(struct operation *op, const struct dk_turn_result *r)
{
  const size_t lists[] = {r->n_events, r->n_worker_items, r->n_orchestrator_items,
                          r->n_cancelled_activities, r->n_cancelled_messages};
  size_t items = 0;
  uint64_t bytes = r->output.len;

  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
    items += lists[i];
  for (size_t i = 0; i < r->n_events; i++)
    bytes += r->events[i].payload.len;
  for (size_t i = 0; i < r->n_worker_items; i++)
    bytes += r->worker_items[i]->payload.len;
  for (size_t i = 0; i < r->n_orchestrator_items; i++)
    bytes += r->orchestrator_items[i]->payload.len;
  if (items <= MAX_COMMIT_ITEMS && bytes <= MAX_COMMIT_BYTES)
    return DK_OK;
  return refuse(op, DK_TOO_LARGE,
                "the commit has %zu items and %llu bytes; expected at most %d and %d", items,
                (unsigned long long)bytes, (int)MAX_COMMIT_ITEMS, (int)MAX_COMMIT_BYTES);
}
