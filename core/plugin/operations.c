/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of host.h: for each, what is checked before it, how the provider is called, and
 * what is returned.  Owns nothing. */
#include <string.h>

#include "core/plugin/call.h"
#include "core/plugin/library.h"
#include "core/plugin/request.h"
#include "core/plugin/store.h"

static const struct dk_ops *
ops_of(const struct dk_call *call)
{
  return &call->store->library->ops;
}

#define MEMBER(name) offsetof(struct dk_ops, name)

/* ---- queues ---------------------------------------------------------------------------------- */

static dk_status
attempt_enqueue_message(struct dk_call *call, const struct dk_request *request)
{
  return ops_of(call)->enqueue_for_orchestrator(call->store->self, call, request->item);
}

static const struct dk_operation enqueue_message = {
  .name = "enqueue_for_orchestrator",
  .member = MEMBER(enqueue_for_orchestrator),
  .may_bring_work = true,
  .check = dk_check_enqueue_message,
  .attempt = attempt_enqueue_message,
};

dk_status
dk_store_enqueue_for_orchestrator(struct dk_store *store, struct dk_caller *caller,
                                  const struct dk_item *item)
{
  struct dk_request request = {.item = item};

  return dk_call_make(store, caller, &enqueue_message, &request);
}

static dk_status
attempt_enqueue_work(struct dk_call *call, const struct dk_request *request)
{
  return ops_of(call)->enqueue_for_worker(call->store->self, call, request->item);
}

static const struct dk_operation enqueue_work = {
  .name = "enqueue_for_worker",
  .member = MEMBER(enqueue_for_worker),
  .may_bring_work = true,
  .check = dk_check_enqueue_work,
  .attempt = attempt_enqueue_work,
};

dk_status
dk_store_enqueue_for_worker(struct dk_store *store, struct dk_caller *caller,
                            const struct dk_item *item)
{
  struct dk_request request = {.item = item};

  return dk_call_make(store, caller, &enqueue_work, &request);
}

/* Copies a request that may have been compiled for an older host: the members that it lacks are
 * absent. */
static void
copy_request(void *copy, uint32_t size, const void *given, uint32_t given_size)
{
  memcpy(copy, given, given_size < size ? given_size : size);
  memcpy(copy, &size, sizeof(size)); /* struct_size comes first */
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* If calls are serialised, the host waits, never the provider. */
static dk_status
attempt_fetch_turn(struct dk_call *call, const struct dk_request *request)
{
  struct dk_fetch_turn fetch = {.struct_size = 0};

  if (!call->store->turnstile)
    return ops_of(call)->fetch_orchestration_item(call->store->self, call, request->fetch_turn);
  copy_request(&fetch, sizeof(fetch), request->fetch_turn, request->fetch_turn->struct_size);
  fetch.wait_until = 0;
  return ops_of(call)->fetch_orchestration_item(call->store->self, call, &fetch);
}

static const struct dk_operation fetch_turn = {
  .name = "fetch_orchestration_item",
  .member = MEMBER(fetch_orchestration_item),
  .takes = DK_TAKES_TURN,
  .may_find_nothing = true,
  .check = dk_check_fetch_turn,
  .attempt = attempt_fetch_turn,
};

dk_status
dk_store_fetch_orchestration_item(struct dk_store *store, struct dk_caller *caller,
                                  const struct dk_fetch_turn *request, struct dk_turn **ret_turn)
{
  struct dk_request asked = {.fetch_turn = request};

  TRY(dk_call_make(store, caller, &fetch_turn, &asked));
  *ret_turn = caller->call.results.turn;
  return DK_OK;
}

static dk_status
attempt_commit(struct dk_call *call, const struct dk_request *request)
{
  return ops_of(call)->ack_orchestration_item(call->store->self, call, request->token,
                                              request->turn_result);
}

static const struct dk_operation commit = {
  .name = "ack_orchestration_item",
  .member = MEMBER(ack_orchestration_item),
  .takes = DK_TAKES_STOLEN | DK_TAKES_DUPLICATE,
  .may_bring_work = true,
  .check = dk_check_commit,
  .attempt = attempt_commit,
};

dk_status
dk_store_ack_orchestration_item(struct dk_store *store, struct dk_caller *caller,
                                struct dk_bytes token, const struct dk_turn_result *result,
                                struct dk_commit_outcome *ret_outcome)
{
  struct dk_request request = {.token = token, .turn_result = result};
  const struct dk_results *results = &caller->call.results;

  TRY(dk_call_make(store, caller, &commit, &request));
  if (ret_outcome)
    *ret_outcome = (struct dk_commit_outcome){
      .report = results->report,
      .reported = results->is_reported,
      .incomplete = results->is_incomplete,
      .stolen = results->stolen.first,
      .n_stolen = results->stolen.n,
    };
  return DK_OK;
}

static dk_status
attempt_abandon_turn(struct dk_call *call, const struct dk_request *request)
{
  return ops_of(call)->abandon_orchestration_item(call->store->self, call, request->token,
                                                  request->ms, request->ignore_attempt);
}

static const struct dk_operation abandon_turn = {
  .name = "abandon_orchestration_item",
  .member = MEMBER(abandon_orchestration_item),
  .may_bring_work = true,
  .check = dk_check_abandon,
  .attempt = attempt_abandon_turn,
};

dk_status
dk_store_abandon_orchestration_item(struct dk_store *store, struct dk_caller *caller,
                                    struct dk_bytes token, int64_t delay_ms,
                                    int32_t ignore_attempt)
{
  struct dk_request request = {.token = token, .ms = delay_ms, .ignore_attempt = ignore_attempt};

  return dk_call_make(store, caller, &abandon_turn, &request);
}

static dk_status
attempt_renew_turn(struct dk_call *call, const struct dk_request *request)
{
  return ops_of(call)->renew_orchestration_item_lock(call->store->self, call, request->token,
                                                     request->ms);
}

static const struct dk_operation renew_turn = {
  .name = "renew_orchestration_item_lock",
  .member = MEMBER(renew_orchestration_item_lock),
  .may_bring_work = true,
  .check = dk_check_renew,
  .attempt = attempt_renew_turn,
};

dk_status
dk_store_renew_orchestration_item_lock(struct dk_store *store, struct dk_caller *caller,
                                       struct dk_bytes token, int64_t extend_ms)
{
  struct dk_request request = {.token = token, .ms = extend_ms};

  return dk_call_make(store, caller, &renew_turn, &request);
}

/* ---- work ------------------------------------------------------------------------------------ */

static dk_status
attempt_fetch_work(struct dk_call *call, const struct dk_request *request)
{
  struct dk_fetch_work fetch = {.struct_size = 0};

  if (!call->store->turnstile)
    return ops_of(call)->fetch_work_item(call->store->self, call, request->fetch_work);
  copy_request(&fetch, sizeof(fetch), request->fetch_work, request->fetch_work->struct_size);
  fetch.wait_until = 0;
  return ops_of(call)->fetch_work_item(call->store->self, call, &fetch);
}

static const struct dk_operation fetch_work = {
  .name = "fetch_work_item",
  .member = MEMBER(fetch_work_item),
  .takes = DK_TAKES_WORK,
  .may_find_nothing = true,
  .check = dk_check_fetch_work,
  .attempt = attempt_fetch_work,
};

dk_status
dk_store_fetch_work_item(struct dk_store *store, struct dk_caller *caller,
                         const struct dk_fetch_work *request, struct dk_works **ret_works)
{
  struct dk_request asked = {.fetch_work = request};

  TRY(dk_call_make(store, caller, &fetch_work, &asked));
  *ret_works = caller->call.results.works;
  return DK_OK;
}

static dk_status
attempt_ack_work(struct dk_call *call, const struct dk_request *request)
{
  return ops_of(call)->ack_work_item(call->store->self, call, request->token,
                                     request->work_result);
}

static const struct dk_operation ack_work = {
  .name = "ack_work_item",
  .member = MEMBER(ack_work_item),
  .may_bring_work = true,
  .check = dk_check_ack_work,
  .attempt = attempt_ack_work,
};

dk_status
dk_store_ack_work_item(struct dk_store *store, struct dk_caller *caller, struct dk_bytes token,
                       const struct dk_work_result *result)
{
  struct dk_request request = {.token = token, .work_result = result};

  return dk_call_make(store, caller, &ack_work, &request);
}

static dk_status
attempt_abandon_work(struct dk_call *call, const struct dk_request *request)
{
  return ops_of(call)->abandon_work_item(call->store->self, call, request->token, request->ms,
                                         request->ignore_attempt);
}

static const struct dk_operation abandon_work = {
  .name = "abandon_work_item",
  .member = MEMBER(abandon_work_item),
  .may_bring_work = true,
  .check = dk_check_abandon,
  .attempt = attempt_abandon_work,
};

dk_status
dk_store_abandon_work_item(struct dk_store *store, struct dk_caller *caller, struct dk_bytes token,
                           int64_t delay_ms, int32_t ignore_attempt)
{
  struct dk_request request = {.token = token, .ms = delay_ms, .ignore_attempt = ignore_attempt};

  return dk_call_make(store, caller, &abandon_work, &request);
}

static dk_status
attempt_renew_work(struct dk_call *call, const struct dk_request *request)
{
  return ops_of(call)->renew_work_item_lock(call->store->self, call, request->token, request->ms);
}

static const struct dk_operation renew_work = {
  .name = "renew_work_item_lock",
  .member = MEMBER(renew_work_item_lock),
  .may_bring_work = true,
  .check = dk_check_renew,
  .attempt = attempt_renew_work,
};

dk_status
dk_store_renew_work_item_lock(struct dk_store *store, struct dk_caller *caller,
                              struct dk_bytes token, int64_t extend_ms)
{
  struct dk_request request = {.token = token, .ms = extend_ms};

  return dk_call_make(store, caller, &renew_work, &request);
}

static dk_status
attempt_release_fetch(struct dk_call *call, const struct dk_request *request)
{
  return ops_of(call)->release_fetch(call->store->self, call, request->fetch_id);
}

static const struct dk_operation release_fetch = {
  .name = "release_fetch",
  .member = MEMBER(release_fetch),
  .may_bring_work = true,
  .check = dk_check_release_fetch,
  .attempt = attempt_release_fetch,
};

dk_status
dk_store_release_fetch(struct dk_store *store, struct dk_caller *caller, uint64_t fetch_id)
{
  struct dk_request request = {.fetch_id = fetch_id};

  return dk_call_make(store, caller, &release_fetch, &request);
}

/* ---- history --------------------------------------------------------------------------------- */

static dk_status
attempt_read_history(struct dk_call *call, const struct dk_request *request)
{
  return ops_of(call)->read_history(call->store->self, call, request->read_history);
}

static const struct dk_operation read_history = {
  .name = "read_history",
  .member = MEMBER(read_history),
  .takes = DK_TAKES_HISTORY,
  .check = dk_check_read_history,
  .attempt = attempt_read_history,
};

dk_status
dk_store_read_history(struct dk_store *store, struct dk_caller *caller,
                      const struct dk_read_history *request, struct dk_history **ret_history)
{
  struct dk_request asked = {.read_history = request};

  TRY(dk_call_make(store, caller, &read_history, &asked));
  *ret_history = caller->call.results.history;
  return DK_OK;
}
