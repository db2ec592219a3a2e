/* SPDX-License-Identifier: Apache-2.0 */
/* A store that fails on request: see failing-store.h. */
#include "core/runtime/testing/failing-store-state.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define TAP_NO_MACROS /* one of them is `fail` */
#include "conformance/tap/tap.h"
#include "core/plugin/call.h"
#include "core/plugin/library.h"
#include "core/plugin/look.h"

enum { SLOW_MS = 3000 };

/* The store that is being opened, one at a time, because open gets no pointer of ours. */
static struct faulty *being_opened;

static const struct dk_ops *
inner_ops(const struct faulty *faulty)
{
  return dk_library_provider(faulty->inner)->ops;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Under the lock. */
static bool
next_plan(struct faulty *faulty, enum faulty_operation operation, struct plan *ret_plan)
{
  struct plan *later = &faulty->later[operation];

  if (later->times == 0)
    return false;
  *ret_plan = *later;
  later->times -= later->times != UINT32_MAX;
  return true;
}

/* The fault of the next call, which is counted; false: none. */
static bool
next_fault(struct faulty *faulty, enum faulty_operation operation, struct plan *ret_plan)
{
  struct plan *plan = &faulty->plans[operation];
  bool fails = true;

  dk_lock(&faulty->lock);
  faulty->calls[operation]++;
  if (faulty->is_away)
    *ret_plan = (struct plan){.fault = FAULT_REFUSE, .status = DK_UNAVAILABLE};
  else if (plan->times == 0)
    fails = next_plan(faulty, operation, ret_plan);
  else if (plan->skip > 0) {
    plan->skip--;
    fails = false;
  } else {
    *ret_plan = *plan;
    plan->times -= plan->times != UINT32_MAX;
  }
  pthread_cond_broadcast(&faulty->changed);
  dk_unlock(&faulty->lock);
  return fails;
}

static void
count_hanging(struct faulty *faulty, int change)
{
  dk_lock(&faulty->lock);
  faulty->hanging += (uint32_t)change;
  pthread_cond_broadcast(&faulty->changed);
  dk_unlock(&faulty->lock);
}

static void
wait_deafly(int gate)
{
  struct pollfd gate_opens = {.fd = gate, .events = POLLIN};

  while (poll(&gate_opens, 1, -1) < 0 && errno == EINTR)
    continue;
}

/* DK_OK: released. */
static dk_status
hang(struct faulty *faulty, struct dk_call *call, bool is_deaf)
{
  dk_status status = DK_OK;

  count_hanging(faulty, 1);
  if (is_deaf)
    wait_deafly(faulty->gate);
  else
    status = faulty->host->wait(call, faulty->gate, DK_WAIT_READ, INT64_MAX);
  count_hanging(faulty, -1);
  return status;
}

static dk_status
as_planned(struct faulty *faulty, struct dk_call *call, const struct plan *plan)
{
  static const char text[] = "as the test has planned it";

  (void)faulty;
  if (plan->status < DK_BUSY)
    return plan->status;
  return faulty->host->fail(call, plan->status, (struct dk_bytes){text, sizeof(text) - 1});
}

static bool
was_lost(struct faulty *faulty, enum faulty_operation operation)
{
  bool is_fetch = operation == FAULTY_FETCH_TURN || operation == FAULTY_FETCH_WORK;

  dk_lock(&faulty->lock);
  bool is_away = faulty->is_away;
  dk_unlock(&faulty->lock);
  return is_fetch && is_away;
}

/* The real provider's answer is dropped, and replaced; with a text if the status needs one. */
static dk_status
forget(struct faulty *faulty, struct dk_call *call, const struct plan *plan)
{
  faulty->host->reset(call);
  return as_planned(faulty, call, plan);
}

struct asked {
  enum faulty_operation operation;
  const void *request;     /* an item, a fetch, a result, ... */
  struct dk_bytes token;
  uint64_t fetch_id;
  int64_t ms;
  int32_t ignore_attempt;
};

/* Waits until the leases that a fetch has just returned have ended. */
static void
outlast_lease(struct faulty *faulty, struct dk_call *call, const struct asked *asked)
{
  int64_t lock_ms = asked->operation == FAULTY_FETCH_TURN
                      ? ((const struct dk_fetch_turn *)asked->request)->lock_ms
                      : ((const struct dk_fetch_work *)asked->request)->lock_ms;

  faulty->host->wait(call, -1, 0, faulty->host->now(faulty->host) + lock_ms);
}

static void
count_success(struct faulty *faulty, enum faulty_operation operation)
{
  dk_lock(&faulty->lock);
  faulty->successes[operation]++;
  dk_unlock(&faulty->lock);
}

static void
note_custom_status(struct faulty *faulty, const struct dk_turn_result *result)
{
  if (result->custom_status_op == DK_CUSTOM_KEEP)
    return;
  dk_lock(&faulty->lock);
  if (result->custom_status_op == DK_CUSTOM_CLEAR)
    snprintf(faulty->custom_status, sizeof(faulty->custom_status), "cleared");
  else
    snprintf(faulty->custom_status, sizeof(faulty->custom_status), "set to %.*s",
             (int)result->custom_status.len, result->custom_status.ptr);
  dk_unlock(&faulty->lock);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static dk_status
delete_page(struct faulty *faulty, const struct dk_admin *admin, struct dk_call *call,
            const struct dk_delete_matching *request)
{
  struct dk_delete_matching page = *request;

  dk_lock(&faulty->lock);
  if (faulty->most_in_page > 0 && faulty->most_in_page < page.max_instances)
    page.max_instances = faulty->most_in_page;
  dk_unlock(&faulty->lock);
  return admin->delete_matching(faulty->self, call, &page);
}

static dk_status
hand_to_admin(struct faulty *faulty, struct dk_call *call, const struct asked *asked)
{
  const struct dk_admin *admin =
    dk_library_provider(faulty->inner)->extension(faulty->self, DK_ADMIN);
  void *self = faulty->self;

  switch (asked->operation) {
  case FAULTY_LIST_INSTANCES:
    return admin->list_instances(self, call, asked->request);
  case FAULTY_LIST_EXECUTIONS:
    return admin->list_executions(self, call, asked->request);
  case FAULTY_READ_MESSAGES:
    return admin->read_messages(self, call, asked->request);
  case FAULTY_READ_STATS:
    return admin->read_stats(self, call, asked->request);
  case FAULTY_DELETE_INSTANCES:
    return admin->delete_instances(self, call, asked->request);
  case FAULTY_DELETE_MATCHING:
    return delete_page(faulty, admin, call, asked->request);
  default:
    return admin->prune_executions(self, call, asked->request);
  }
}

static dk_status
hand_on(struct faulty *faulty, struct dk_call *call, const struct asked *asked)
{
  const struct dk_ops *ops = inner_ops(faulty);
  void *self = faulty->self;

  switch (asked->operation) {
  case FAULTY_ENQUEUE_MESSAGE:
    return ops->enqueue_for_orchestrator(self, call, asked->request);
  case FAULTY_FETCH_TURN:
    return ops->fetch_orchestration_item(self, call, asked->request);
  case FAULTY_ACK_TURN:
    return ops->ack_orchestration_item(self, call, asked->token, asked->request);
  case FAULTY_ABANDON_TURN:
    return ops->abandon_orchestration_item(self, call, asked->token, asked->ms,
                                           asked->ignore_attempt);
  case FAULTY_RENEW_TURN:
    return ops->renew_orchestration_item_lock(self, call, asked->token, asked->ms);
  case FAULTY_FETCH_WORK:
    return ops->fetch_work_item(self, call, asked->request);
  case FAULTY_ACK_WORK:
    return ops->ack_work_item(self, call, asked->token, asked->request);
  case FAULTY_ABANDON_WORK:
    return ops->abandon_work_item(self, call, asked->token, asked->ms, asked->ignore_attempt);
  case FAULTY_RENEW_WORK:
    return ops->renew_work_item_lock(self, call, asked->token, asked->ms);
  case FAULTY_READ_HISTORY:
    return ops->read_history(self, call, asked->request);
  case FAULTY_ENQUEUE_WORK:
    return ops->enqueue_for_worker(self, call, asked->request);
  case FAULTY_RELEASE_FETCH:
    return ops->release_fetch(self, call, asked->fetch_id);
  default:
    return hand_to_admin(faulty, call, asked);
  }
}

static dk_status
make(void *self, struct dk_call *call, const struct asked *asked)
{
  struct faulty *faulty = self;
  const struct plan lost = {.fault = FAULT_FORGET, .status = DK_UNAVAILABLE};
  struct plan plan = {.fault = FAULT_REFUSE};
  bool fails = next_fault(faulty, asked->operation, &plan);

  if (fails && plan.fault == FAULT_REFUSE)
    return as_planned(faulty, call, &plan);
  if (fails && plan.fault == FAULT_SLOW) {
    faulty->host->wait(call, -1, 0, faulty->host->now(faulty->host) + SLOW_MS);
    return as_planned(faulty, call, &plan);
  }
  if (fails && (plan.fault == FAULT_HANG || plan.fault == FAULT_DEAF))
    TRY(hang(faulty, call, plan.fault == FAULT_DEAF));
  dk_status status = hand_on(faulty, call, asked);
  if (status != DK_OK)
    return status;
  if (asked->operation == FAULTY_ACK_TURN)
    note_custom_status(faulty, asked->request);
  if (was_lost(faulty, asked->operation))
    return forget(faulty, call, &lost);
  if (fails && plan.fault == FAULT_FORGET)
    return forget(faulty, call, &plan);
  if (fails && plan.fault == FAULT_LATE)
    hang(faulty, call, true);
  if (fails && plan.fault == FAULT_OVERDUE)
    outlast_lease(faulty, call, asked);
  count_success(faulty, asked->operation);
  return DK_OK;
}

/* Those that take a request and nothing besides. */
#define WITH_REQUEST(name, type, which)                                                            \
  static dk_status name(void *self, struct dk_call *call, const struct type *request)              \
  {                                                                                                \
    return make(self, call, &(struct asked){.operation = which, .request = request});              \
  }
WITH_REQUEST(enqueue_message, dk_item, FAULTY_ENQUEUE_MESSAGE)
WITH_REQUEST(fetch_turn, dk_fetch_turn, FAULTY_FETCH_TURN)
WITH_REQUEST(fetch_work, dk_fetch_work, FAULTY_FETCH_WORK)
WITH_REQUEST(read_history, dk_read_history, FAULTY_READ_HISTORY)
WITH_REQUEST(enqueue_work, dk_item, FAULTY_ENQUEUE_WORK)
WITH_REQUEST(list_instances, dk_list_instances, FAULTY_LIST_INSTANCES)
WITH_REQUEST(list_executions, dk_list_executions, FAULTY_LIST_EXECUTIONS)
WITH_REQUEST(read_messages, dk_read_messages, FAULTY_READ_MESSAGES)
WITH_REQUEST(read_stats, dk_read_stats, FAULTY_READ_STATS)
WITH_REQUEST(delete_instances, dk_delete_instances, FAULTY_DELETE_INSTANCES)
WITH_REQUEST(delete_matching, dk_delete_matching, FAULTY_DELETE_MATCHING)
WITH_REQUEST(prune_executions, dk_prune, FAULTY_PRUNE)

static dk_status
ack_turn(void *self, struct dk_call *call, struct dk_bytes token,
         const struct dk_turn_result *result)
{
  return make(self, call,
              &(struct asked){.operation = FAULTY_ACK_TURN, .request = result, .token = token});
}

static dk_status
abandon_turn(void *self, struct dk_call *call, struct dk_bytes token, int64_t delay_ms,
             int32_t ignore_attempt)
{
  return make(self, call,
              &(struct asked){.operation = FAULTY_ABANDON_TURN, .token = token, .ms = delay_ms,
                              .ignore_attempt = ignore_attempt});
}

static dk_status
renew_turn(void *self, struct dk_call *call, struct dk_bytes token, int64_t extend_ms)
{
  return make(self, call,
              &(struct asked){.operation = FAULTY_RENEW_TURN, .token = token, .ms = extend_ms});
}

/* Whether it belongs to the instance whose results are refused. */
static bool
is_refused(struct faulty *faulty, const struct dk_work_result *result, struct plan *ret_plan)
{
  dk_lock(&faulty->lock);
  const char *refused = faulty->refused;
  *ret_plan = (struct plan){.fault = FAULT_REFUSE, .status = faulty->refusal};
  dk_unlock(&faulty->lock);
  return refused && result->completion && result->completion->instance.len == strlen(refused) &&
         memcmp(result->completion->instance.ptr, refused, strlen(refused)) == 0;
}

static dk_status
ack_work(void *self, struct dk_call *call, struct dk_bytes token,
         const struct dk_work_result *result)
{
  struct plan plan;

  if (is_refused(self, result, &plan))
    return as_planned(self, call, &plan);
  return make(self, call,
              &(struct asked){.operation = FAULTY_ACK_WORK, .request = result, .token = token});
}

static dk_status
abandon_work(void *self, struct dk_call *call, struct dk_bytes token, int64_t delay_ms,
             int32_t ignore_attempt)
{
  return make(self, call,
              &(struct asked){.operation = FAULTY_ABANDON_WORK, .token = token, .ms = delay_ms,
                              .ignore_attempt = ignore_attempt});
}

static dk_status
renew_work(void *self, struct dk_call *call, struct dk_bytes token, int64_t extend_ms)
{
  return make(self, call,
              &(struct asked){.operation = FAULTY_RENEW_WORK, .token = token, .ms = extend_ms});
}

static dk_status
release_fetch(void *self, struct dk_call *call, uint64_t fetch_id)
{
  return make(self, call,
              &(struct asked){.operation = FAULTY_RELEASE_FETCH, .fetch_id = fetch_id});
}

static void
interrupt(void *self)
{
  struct faulty *faulty = self;

  if (inner_ops(faulty)->interrupt)
    inner_ops(faulty)->interrupt(faulty->self);
}

/* ---- the descriptor -------------------------------------------------------------------------- */

static dk_status
open_inner(const struct dk_host *host, struct dk_call *call, const struct dk_open *open,
           void **ret_self)
{
  struct faulty *faulty = being_opened;

  faulty->host = host;
  TRY(dk_library_provider(faulty->inner)->open(host, call, open, &faulty->self));
  *ret_self = faulty;
  return DK_OK;
}

static void
close_inner(void *self)
{
  struct faulty *faulty = self;

  dk_library_provider(faulty->inner)->close(faulty->self);
}

static const void *
extension(void *self, const char *id)
{
  static const struct dk_admin admin = {
    .struct_size = sizeof(admin),
    .list_instances = list_instances,
    .list_executions = list_executions,
    .read_messages = read_messages,
    .read_stats = read_stats,
    .delete_instances = delete_instances,
    .delete_matching = delete_matching,
    .prune_executions = prune_executions,
  };
  struct faulty *faulty = self;
  const void *inner =
    faulty->is_plain ? NULL : dk_library_provider(faulty->inner)->extension(faulty->self, id);

  return inner && strcmp(id, DK_ADMIN) == 0 ? &admin : inner;
}

/* Like the real one, except for its functions; each test has its own store, so none is
 * destroyed. */
static dk_status
load(struct faulty *faulty, struct dk_refusal *ret_refusal)
{
  struct dk_ops ops = {
    .struct_size = sizeof(ops),
    .enqueue_for_orchestrator = enqueue_message,
    .fetch_orchestration_item = fetch_turn,
    .ack_orchestration_item = ack_turn,
    .abandon_orchestration_item = abandon_turn,
    .renew_orchestration_item_lock = renew_turn,
    .fetch_work_item = fetch_work,
    .ack_work_item = ack_work,
    .abandon_work_item = abandon_work,
    .renew_work_item_lock = renew_work,
    .read_history = read_history,
    .enqueue_for_worker = enqueue_work,
    .interrupt = interrupt,
    .release_fetch = inner_ops(faulty)->release_fetch ? release_fetch : NULL,
  };
  static const char *const none[] = {NULL};
  struct dk_provider provider = *dk_library_provider(faulty->inner);

  if (faulty->is_plain)
    provider.extensions = none;
  provider.struct_size = sizeof(provider);
  provider.ops = &ops;
  provider.open = open_inner;
  provider.close = close_inner;
  provider.extension = extension;
  return dk_library_from_descriptor(&provider, 0, &faulty->outer, ret_refusal);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void
say_violation(void *context, const char *operation, const char *clause, const char *text)
{
  (void)context;
  tap_program_ok(__FILE__, __LINE__, "no violation", false, "%s breaks %s: %s", operation, clause,
                 text);
}

static void
open_store(struct faulty *faulty, const struct dk_setting *settings, size_t n_settings)
{
  struct dk_host_options options = {.struct_size = sizeof(options), .violation = say_violation};
  struct dk_caller *caller = dk_caller_new(NULL, 0);

  if (!caller)
    tap_program_bail_out("no memory for a caller");
  being_opened = faulty;
  if (dk_store_open(faulty->outer, &options, caller, DK_OPEN_CREATE, settings, n_settings,
                    &faulty->store) != DK_OK)
    tap_program_bail_out("the store cannot be opened: %s", dk_caller_failure(caller)->text);
  dk_caller_free(caller);
}

static void
make_locks(struct faulty *faulty)
{
  pthread_condattr_t attributes;

  dk_lock_init(&faulty->lock);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&faulty->changed, &attributes);
  pthread_condattr_destroy(&attributes);
}

static struct faulty *
open_faulty(const char *plugin, const struct dk_setting *settings, size_t n_settings, bool is_plain)
{
  struct faulty *faulty = calloc(1, sizeof(*faulty));
  struct dk_refusal refusal = {.number = 0};

  if (!faulty)
    tap_program_bail_out("no memory for a store");
  make_locks(faulty);
  faulty->is_plain = is_plain;
  faulty->gate = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (faulty->gate < 0)
    tap_program_bail_out("no descriptor for a store");
  if (dk_library_open(plugin, 0, &faulty->inner, &refusal) != 0 || load(faulty, &refusal) != 0)
    tap_program_bail_out("%s cannot be loaded: %s", plugin, refusal.what);
  open_store(faulty, settings, n_settings);
  return faulty;
}

struct faulty *
faulty_open(const char *plugin, const struct dk_setting *settings, size_t n_settings)
{
  return open_faulty(plugin, settings, n_settings, false);
}

static struct faulty *
open_named_by(const char *variable, bool is_plain)
{
  const char *model = getenv(variable);

  if (!model)
    tap_program_bail_out("%s does not name the model's plugin", variable);
  return open_faulty(model, NULL, 0, is_plain);
}

struct faulty *
faulty_open_model(void)
{
  return open_named_by("MODEL", false);
}

struct faulty *
faulty_open_full_model(void)
{
  return open_named_by("MODEL_FULL", false);
}

struct faulty *
faulty_open_plain_model(void)
{
  return open_named_by("MODEL", true);
}

void
faulty_close(struct faulty *faulty)
{
  faulty_heal(faulty);
  faulty_release(faulty);
  const char *stuck = dk_store_close(faulty->store);
  if (stuck)
    tap_program_bail_out("%s had not returned when the store was closed", stuck);
  dk_library_close(faulty->outer);
  dk_library_close(faulty->inner);
  close(faulty->gate);
  pthread_cond_destroy(&faulty->changed);
  dk_lock_done(&faulty->lock);
  free(faulty);
}

struct dk_store *
faulty_store(struct faulty *faulty)
{
  return faulty->store;
}
