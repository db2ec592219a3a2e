/* SPDX-License-Identifier: 0BSD */
/* boundary.c - the C that a provider in Go needs: the tables of functions, because C cannot call a
 * Go function by a pointer, nor Go a C function.  It has no rule of the contract in it.
 *
 *   host -> operation (here) -> goOperation (provider.go) -> inner_operation (here) -> minimal.c
 *   minimal.c -> up (here) -> goUpcall (provider.go) -> host_upcall (here) -> host */
#include <stdlib.h>

#include "boundary.h"

/* ---- minimal.c, under another name of its entry (inner.c) ------------------------------------ */

dk_entry_fn minimal_provider;

static const struct dk_provider *inner(void) { return minimal_provider(DK_ABI_MINOR); }

dk_status inner_open(struct crossing *crossing, const struct dk_open *open) {
  struct dk_open without_settings = *open;
  without_settings.settings = NULL;
  without_settings.n_settings = 0;
  return inner()->open(&crossing->store->table, (struct dk_call *)crossing, &without_settings,
                       &crossing->store->inner);
}

void inner_close(struct store *store) { inner()->close(store->inner); }

dk_status inner_operation(struct crossing *crossing, const struct operation *o) {
  struct dk_call *call = (struct dk_call *)crossing;
  void *self = crossing->store->inner;
  const struct dk_ops *ops = inner()->ops;
  switch (o->number) {
  case ENQUEUE_FOR_ORCHESTRATOR: return ops->enqueue_for_orchestrator(self, call, o->request);
  case FETCH_ORCHESTRATION_ITEM: return ops->fetch_orchestration_item(self, call, o->request);
  case ACK_ORCHESTRATION_ITEM:
    return ops->ack_orchestration_item(self, call, o->token, o->request);
  case ABANDON_ORCHESTRATION_ITEM:
    return ops->abandon_orchestration_item(self, call, o->token, o->ms, o->ignore_attempt);
  case RENEW_ORCHESTRATION_ITEM_LOCK:
    return ops->renew_orchestration_item_lock(self, call, o->token, o->ms);
  case FETCH_WORK_ITEM: return ops->fetch_work_item(self, call, o->request);
  case ACK_WORK_ITEM: return ops->ack_work_item(self, call, o->token, o->request);
  case ABANDON_WORK_ITEM:
    return ops->abandon_work_item(self, call, o->token, o->ms, o->ignore_attempt);
  case RENEW_WORK_ITEM_LOCK: return ops->renew_work_item_lock(self, call, o->token, o->ms);
  case READ_HISTORY: return ops->read_history(self, call, o->request);
  default: return ops->enqueue_for_worker(self, call, o->request);
  }
}

/* ---- upcalls: from minimal.c to Go, and from Go to the host ---------------------------------- */

static dk_status up(struct dk_call *call, struct upcall upcall) {
  return goUpcall((struct crossing *)call, &upcall);
}
static dk_status up_fail(struct dk_call *call, dk_status status, struct dk_bytes why) {
  return up(call, (struct upcall){.number = UP_FAIL, .status = status, .why = why});
}
static dk_status up_turn(struct dk_call *call, const struct dk_turn_head *head) {
  return up(call, (struct upcall){.number = UP_TURN, .what = head});
}
static dk_status up_event(struct dk_call *call, const struct dk_event *event) {
  return up(call, (struct upcall){.number = UP_EVENT, .what = event});
}
static dk_status up_message(struct dk_call *call, const struct dk_message *message) {
  return up(call, (struct upcall){.number = UP_MESSAGE, .what = message});
}
static dk_status up_work(struct dk_call *call, const struct dk_work *work) {
  return up(call, (struct upcall){.number = UP_WORK, .what = work});
}
static void up_stolen(struct dk_call *call, const struct dk_stolen *stolen) {
  up(call, (struct upcall){.number = UP_STOLEN, .what = stolen});
}
static void up_cancelled_rows(struct dk_call *call, const struct dk_cancel_report *report) {
  up(call, (struct upcall){.number = UP_CANCELLED_ROWS, .what = report});
}
static dk_status up_execution(struct dk_call *call, const struct dk_execution *execution) {
  return up(call, (struct upcall){.number = UP_EXECUTION, .what = execution});
}
static void up_duplicate(struct dk_call *call, int32_t list, uint64_t index) {
  up(call, (struct upcall){.number = UP_DUPLICATE, .list = list, .index = index});
}
/* Of the store, not of a call: it may be made from any thread, at any time. */
static int64_t up_now(const struct dk_host *host) {
  const struct store *s = (const struct store *)host;
  return s->host->now(s->host);
}

dk_status host_upcall(struct crossing *crossing, const struct upcall *u) {
  const struct dk_host *host = crossing->store->host;
  struct dk_call *call = crossing->call;
  switch (u->number) {
  case UP_FAIL: return host->fail(call, u->status, u->why);
  case UP_TURN: return host->turn(call, u->what);
  case UP_EVENT: return host->event(call, u->what);
  case UP_MESSAGE: return host->message(call, u->what);
  case UP_WORK: return host->work(call, u->what);
  case UP_STOLEN: return host->stolen(call, u->what), DK_OK;
  case UP_CANCELLED_ROWS: return host->cancelled_rows(call, u->what), DK_OK;
  case UP_EXECUTION: return host->execution(call, u->what);
  default: return host->duplicate(call, u->list, u->index), DK_OK;
  }
}

dk_status host_fail(struct crossing *crossing, dk_status status, char *why, size_t length) {
  dk_status failed = crossing->store->host->fail(crossing->call, status,
                                                 (struct dk_bytes){why, length});
  free(why);
  return failed;
}

void host_log(struct store *store, char *line, size_t length) {
  store->host->log(store->host, 0, (struct dk_bytes){line, length});
  free(line);
}

/* ---- operations: from the host to Go --------------------------------------------------------- */

static dk_status cross(void *self, struct dk_call *call, struct operation operation) {
  return goOperation(&(struct crossing){self, call}, &operation);
}
static dk_status go_enqueue(void *self, struct dk_call *call, const struct dk_item *item) {
  return cross(self, call, (struct operation){.number = ENQUEUE_FOR_ORCHESTRATOR, .request = item});
}
static dk_status go_fetch_turn(void *self, struct dk_call *call, const struct dk_fetch_turn *r) {
  return cross(self, call, (struct operation){.number = FETCH_ORCHESTRATION_ITEM, .request = r});
}
static dk_status go_ack_turn(void *self, struct dk_call *call, struct dk_bytes token,
                             const struct dk_turn_result *result) {
  return cross(self, call, (struct operation){.number = ACK_ORCHESTRATION_ITEM, .token = token,
                                              .request = result});
}
static dk_status go_abandon_turn(void *self, struct dk_call *call, struct dk_bytes token,
                                 int64_t delay_ms, int32_t ignore_attempt) {
  return cross(self, call, (struct operation){.number = ABANDON_ORCHESTRATION_ITEM, .token = token,
                                              .ms = delay_ms, .ignore_attempt = ignore_attempt});
}
static dk_status go_renew_turn(void *self, struct dk_call *call, struct dk_bytes token,
                               int64_t extend_ms) {
  return cross(self, call, (struct operation){.number = RENEW_ORCHESTRATION_ITEM_LOCK,
                                              .token = token, .ms = extend_ms});
}
static dk_status go_fetch_work(void *self, struct dk_call *call, const struct dk_fetch_work *r) {
  return cross(self, call, (struct operation){.number = FETCH_WORK_ITEM, .request = r});
}
static dk_status go_ack_work(void *self, struct dk_call *call, struct dk_bytes token,
                             const struct dk_work_result *result) {
  return cross(self, call, (struct operation){.number = ACK_WORK_ITEM, .token = token,
                                              .request = result});
}
static dk_status go_abandon_work(void *self, struct dk_call *call, struct dk_bytes token,
                                 int64_t delay_ms, int32_t ignore_attempt) {
  return cross(self, call, (struct operation){.number = ABANDON_WORK_ITEM, .token = token,
                                              .ms = delay_ms, .ignore_attempt = ignore_attempt});
}
static dk_status go_renew_work(void *self, struct dk_call *call, struct dk_bytes token,
                               int64_t extend_ms) {
  return cross(self, call, (struct operation){.number = RENEW_WORK_ITEM_LOCK, .token = token,
                                              .ms = extend_ms});
}
static dk_status go_read_history(void *self, struct dk_call *call,
                                 const struct dk_read_history *request) {
  return cross(self, call, (struct operation){.number = READ_HISTORY, .request = request});
}
static dk_status go_enqueue_work(void *self, struct dk_call *call, const struct dk_item *item) {
  return cross(self, call, (struct operation){.number = ENQUEUE_FOR_WORKER, .request = item});
}

/* ---- the handle, and what the file declares -------------------------------------------------- */

static dk_status go_open(const struct dk_host *host, struct dk_call *call,
                         const struct dk_open *open, void **ret_self) {
  static const char why[] = "open: out of memory";
  struct store *s = calloc(1, sizeof *s);
  if (!s)
    return host->fail(call, DK_NO_MEMORY, (struct dk_bytes){why, sizeof why - 1});
  s->host = host;
  s->table = (struct dk_host){
    .struct_size = sizeof s->table, .abi_minor = host->abi_minor, .fail = up_fail, .turn = up_turn,
    .event = up_event, .message = up_message, .work = up_work, .stolen = up_stolen,
    .cancelled_rows = up_cancelled_rows, .execution = up_execution, .now = up_now,
    .duplicate = DK_HAS(dk_host, host, duplicate) ? up_duplicate : NULL}; /* [ABI-9] */
  dk_status status = goOpen(&(struct crossing){s, call}, (struct dk_open *)open);
  if (status == DK_OK)
    *ret_self = s;
  else
    free(s);
  return status;
}

static void go_close(void *self) {
  goClose(self);
  free(self);
}

static const struct dk_ops go_ops = {
  .struct_size = sizeof go_ops,
  .enqueue_for_orchestrator = go_enqueue,
  .fetch_orchestration_item = go_fetch_turn,
  .ack_orchestration_item = go_ack_turn,
  .abandon_orchestration_item = go_abandon_turn,
  .renew_orchestration_item_lock = go_renew_turn,
  .fetch_work_item = go_fetch_work, .ack_work_item = go_ack_work,
  .abandon_work_item = go_abandon_work, .renew_work_item_lock = go_renew_work,
  .read_history = go_read_history,
  .enqueue_for_worker = go_enqueue_work,
};
static const struct dk_param go_params[] = {
  {.key = "panic", .type = "string",
   .help = "the operation that panics, to see what becomes of it"},
  {.key = NULL},
};

/* NULL for every unknown id: there is none.  [ABI-3] */
static const void *go_extension(void *self, const char *id) {
  (void)self;
  (void)id;
  return NULL;
}

/* Go's runtime starts its threads when the file is loaded, sets signal handlers, and never ends:
 * the file stays loaded.  Valgrind cannot run it.  All else is as minimal.c declares it. */
const struct dk_provider *durakit_provider_2(uint32_t host_minor) {
  static struct dk_provider go_provider;
  go_provider = *minimal_provider(host_minor);
  go_provider.unload = 0;
  go_provider.name = "minimal-go";
  go_provider.built_with = "Go";
  go_provider.help = "What a provider in Go needs at the boundary: an example to copy.";
  go_provider.params = go_params;
  go_provider.ops = &go_ops;
  go_provider.open = go_open;
  go_provider.close = go_close;
  go_provider.extension = go_extension;
  go_provider.runtime = DK_RUNTIME_STAYS | DK_RUNTIME_NO_MEMCHECK;
  return &go_provider;
}
