/* SPDX-License-Identifier: Apache-2.0 */
/* HIST: reading a history.  Takes no lock of an instance, and what does not exist is no error. */
#include "conformance/model/model.h"

/* HIST-2: 0 is the latest. */
static const struct execution *
find_execution(const struct store *s, const struct dk_read_history *request)
{
  const struct instance *instance = find_instance(s, request->instance);

  if (!instance || request->execution_id == 0)
    return instance ? instance->current : NULL;
  for (const struct execution *e = instance->first; e; e = e->next)
    if (e->execution_id == request->execution_id)
      return e;
  return NULL;
}

static dk_status
read_history(struct op *op, const struct dk_read_history *request)
{
  const struct dk_host *host = op->s->host;
  const struct execution *e = find_execution(op->s, request);
  uint32_t n = 0;

  if (!e)
    return DK_OK;
  TRY(host->execution(op->call, &(struct dk_execution){
                                  .struct_size = sizeof(struct dk_execution),
                                  .status = e->status,
                                  .execution_id = e->execution_id,
                                  .last_event_id = e->last_event_id,
                                  .started_at = e->started_at,
                                  .completed_at = e->completed_at,
                                  .output = e->output,
                                }));
  for (const struct event *v = e->first; v; v = v->next) {
    if (v->event_id < request->from_event)
      continue;
    if (request->max_events && n++ == request->max_events)
      break;
    TRY(host->event(op->call, &(struct dk_event){v->event_id, v->payload}));
  }
  return DK_OK;
}

dk_status
model_read_history(void *self, struct dk_call *call, const struct dk_read_history *request)
{
  struct op op;

  TRY(enter(&op, self, call, "read_history"));
  return leave(&op, read_history(&op, request));
}
