/* SPDX-License-Identifier: Apache-2.0 */
/* The operations as the host calls them: what is asked becomes a struct operation on the caller's
 * stack, which the writer applies.  Owns nothing. */
#include <string.h>

#include "providers/sqlite/handle.h"

/* A cancellation of as many is applied after the others of its group. */
enum { MANY_CANCELS = 2000 };

static dk_status
refuse_read_only(const struct handle *h, const struct operation *op)
{
  struct why why;

  why_set(&why, DK_REFUSED, "%s: the store was opened read-only: %s; open it without "
          "DK_OPEN_READ_ONLY to change it", op->name, h->files.settings.path);
  return why_tell(&why, h->host, op->call);
}

dk_status
submit(void *self, struct operation *op, int64_t wait_until)
{
  struct handle *h = self;

  if (h->files.is_read_only)
    return refuse_read_only(h, op);
  return wait_until > 0 ? wait_for_work(h, op, wait_until) : writer_submit(h, op);
}

static dk_status
sqlite_enqueue_for_orchestrator(void *self, struct dk_call *call, const struct dk_item *item)
{
  return submit(self, &(struct operation){.name = "enqueue_for_orchestrator",
                                          .call = call,
                                          .apply = apply_enqueue_message,
                                          .turn = CHANGE,
                                          .request = item}, 0);
}

static dk_status
sqlite_fetch_orchestration_item(void *self, struct dk_call *call,
                                const struct dk_fetch_turn *request)
{
  return submit(self, &(struct operation){.name = "fetch_orchestration_item",
                                          .call = call,
                                          .apply = apply_fetch_turn,
                                          .turn = FETCH,
                                          .queue = QUEUE_TURNS,
                                          .request = request}, request->wait_until);
}

static dk_status
sqlite_ack_orchestration_item(void *self, struct dk_call *call, struct dk_bytes token,
                              const struct dk_turn_result *result)
{
  bool is_large = result->n_cancelled_activities > MANY_CANCELS;

  return submit(self, &(struct operation){.name = "ack_orchestration_item",
                                          .call = call,
                                          .apply = apply_commit,
                                          .turn = is_large ? LARGE_CHANGE : CHANGE,
                                          .request = result,
                                          .token = token}, 0);
}

static dk_status
sqlite_abandon_orchestration_item(void *self, struct dk_call *call, struct dk_bytes token,
                                  int64_t delay_ms, int32_t ignore_attempt)
{
  return submit(self, &(struct operation){.name = "abandon_orchestration_item",
                                          .call = call,
                                          .apply = apply_abandon_turn,
                                          .turn = CHANGE,
                                          .token = token,
                                          .ms = delay_ms,
                                          .ignore_attempt = ignore_attempt}, 0);
}

static dk_status
sqlite_renew_orchestration_item_lock(void *self, struct dk_call *call, struct dk_bytes token,
                                     int64_t extend_ms)
{
  return submit(self, &(struct operation){.name = "renew_orchestration_item_lock",
                                          .call = call,
                                          .apply = apply_renew_turn,
                                          .turn = RENEWAL,
                                          .token = token,
                                          .ms = extend_ms}, 0);
}

static dk_status
sqlite_fetch_work_item(void *self, struct dk_call *call, const struct dk_fetch_work *request)
{
  return submit(self, &(struct operation){.name = "fetch_work_item",
                                          .call = call,
                                          .apply = apply_fetch_work,
                                          .turn = FETCH,
                                          .queue = QUEUE_WORK,
                                          .request = request}, request->wait_until);
}

static dk_status
sqlite_ack_work_item(void *self, struct dk_call *call, struct dk_bytes token,
                     const struct dk_work_result *result)
{
  return submit(self, &(struct operation){.name = "ack_work_item",
                                          .call = call,
                                          .apply = apply_ack_work,
                                          .turn = CHANGE,
                                          .request = result,
                                          .token = token}, 0);
}

static dk_status
sqlite_abandon_work_item(void *self, struct dk_call *call, struct dk_bytes token,
                         int64_t delay_ms, int32_t ignore_attempt)
{
  return submit(self, &(struct operation){.name = "abandon_work_item",
                                          .call = call,
                                          .apply = apply_abandon_work,
                                          .turn = CHANGE,
                                          .token = token,
                                          .ms = delay_ms,
                                          .ignore_attempt = ignore_attempt}, 0);
}

static dk_status
sqlite_renew_work_item_lock(void *self, struct dk_call *call, struct dk_bytes token,
                            int64_t extend_ms)
{
  return submit(self, &(struct operation){.name = "renew_work_item_lock",
                                          .call = call,
                                          .apply = apply_renew_work,
                                          .turn = RENEWAL,
                                          .token = token,
                                          .ms = extend_ms}, 0);
}

static dk_status
sqlite_enqueue_for_worker(void *self, struct dk_call *call, const struct dk_item *item)
{
  return submit(self, &(struct operation){.name = "enqueue_for_worker",
                                          .call = call,
                                          .apply = apply_enqueue_work,
                                          .turn = CHANGE,
                                          .request = item}, 0);
}

static dk_status
sqlite_release_fetch(void *self, struct dk_call *call, uint64_t fetch_id)
{
  return submit(self, &(struct operation){.name = "release_fetch",
                                          .call = call,
                                          .apply = apply_release_fetch,
                                          .turn = CHANGE,
                                          .fetch_id = (int64_t)fetch_id}, 0);
}

const struct dk_ops sqlite_ops = {
  .struct_size = sizeof(struct dk_ops),
  .enqueue_for_orchestrator = sqlite_enqueue_for_orchestrator,
  .fetch_orchestration_item = sqlite_fetch_orchestration_item,
  .ack_orchestration_item = sqlite_ack_orchestration_item,
  .abandon_orchestration_item = sqlite_abandon_orchestration_item,
  .renew_orchestration_item_lock = sqlite_renew_orchestration_item_lock,
  .fetch_work_item = sqlite_fetch_work_item,
  .ack_work_item = sqlite_ack_work_item,
  .abandon_work_item = sqlite_abandon_work_item,
  .renew_work_item_lock = sqlite_renew_work_item_lock,
  .read_history = sqlite_read_history,
  .enqueue_for_worker = sqlite_enqueue_for_worker,
  .interrupt = sqlite_interrupt,
  .release_fetch = sqlite_release_fetch,
};
