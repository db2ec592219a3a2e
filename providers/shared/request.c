/* SPDX-License-Identifier: Apache-2.0 */
/* What both plugins refuse: see request.h. */
#include "providers/shared/request.h"

dk_status
refuse_session(struct operation *op, const struct dk_item *item)
{
  return refuse_unknown(op, item->session.ptr != NULL, "a session");
}

dk_status
commit_refuse_what_is_unknown(struct operation *op, const struct dk_turn_result *r)
{
  TRY(refuse_unknown(op, (r->flags & ~(uint32_t)DK_REPEATED) != 0, "a flag of the commit"));
  TRY(refuse_unknown(op, r->status < DK_STATUS_KEEP || r->status > DK_CANCELLED, "the status"));
  TRY(refuse_unknown(op, r->n_kv || r->custom_status_op, "what belongs to an extension"));
  for (size_t i = 0; i < r->n_worker_items; i++) {
    TRY(refuse_unknown(op, r->worker_items[i]->flags != 0, "a flag of an activity"));
    TRY(refuse_session(op, r->worker_items[i]));
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
