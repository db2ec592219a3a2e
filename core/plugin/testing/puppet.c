/* SPDX-License-Identifier: Apache-2.0 */
/* The puppet: see puppet.h.  Owns nothing but what puppet_open makes. */
#include "core/plugin/testing/puppet.h"

#include <stdio.h>
#include <string.h>

#include "core/plugin/library.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

struct dk_bytes
text(const char *string)
{
  return (struct dk_bytes){string, string ? strlen(string) : 0};
}

struct dk_turn_head
a_head(void)
{
  return (struct dk_turn_head){
    .struct_size = sizeof(struct dk_turn_head),
    .lock_token = text("turn-token"),
    .instance = text("inst"),
    .now = 1000,
    .lease_left_ms = 30000,
  };
}

struct dk_message
a_message(const char *id)
{
  return (struct dk_message){
    .struct_size = sizeof(struct dk_message),
    .attempt = 1,
    .id = text(id),
    .payload = text("payload"),
    .visible_at = 900,
    .enqueued_at = 800,
  };
}

struct dk_item
an_item(const char *instance)
{
  return (struct dk_item){
    .struct_size = sizeof(struct dk_item),
    .instance = text(instance),
    .payload = text("payload"),
  };
}

struct dk_item
an_activity(uint64_t activity_id)
{
  return (struct dk_item){
    .struct_size = sizeof(struct dk_item),
    .execution_id = 1,
    .activity_id = activity_id,
    .payload = text("payload"),
  };
}

struct dk_work
a_work(const struct dk_item *item, const char *token)
{
  return (struct dk_work){
    .struct_size = sizeof(struct dk_work),
    .attempt = 1,
    .lock_token = text(token),
    .item = item,
    .now = 1000,
    .lease_left_ms = 30000,
  };
}

struct dk_fetch_turn
a_fetch_turn(void)
{
  return (struct dk_fetch_turn){.struct_size = sizeof(struct dk_fetch_turn), .lock_ms = 30000};
}

struct dk_fetch_work
a_fetch_work(uint32_t max_items)
{
  return (struct dk_fetch_work){
    .struct_size = sizeof(struct dk_fetch_work),
    .max_items = max_items,
    .lock_ms = 30000,
    .tag_rule = DK_TAG_ANY,
  };
}

struct dk_turn_result
a_result(void)
{
  return (struct dk_turn_result){.struct_size = sizeof(struct dk_turn_result), .execution_id = 1};
}

/* ---- the provider ---------------------------------------------------------------------------- */

dk_status
failing(struct puppet *puppet, struct dk_call *call, dk_status status, struct dk_bytes why)
{
  return puppet->host->fail(call, status, why);
}

dk_status
give_turn(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();
  struct dk_message message = a_message("m1");
  dk_status status = puppet->host->turn(call, &head);

  return status == DK_OK ? puppet->host->message(call, &message) : status;
}

static dk_status
give_work(struct puppet *puppet, struct dk_call *call, uint32_t n)
{
  dk_status status = DK_OK;

  for (uint32_t i = 0; i < n && status == DK_OK; i++) {
    char token[32];
    struct dk_item item = an_activity(i + 1);
    snprintf(token, sizeof(token), "work-%u", i);
    item.instance = text("inst");
    struct dk_work work = a_work(&item, token);
    status = puppet->host->work(call, &work);
  }
  return status;
}

static bool
acts(struct puppet *puppet, const char *operation)
{
  atomic_fetch_add(&puppet->acts, 1);
  puppet->operation = operation;
  return puppet->act != NULL;
}

static dk_status
puppet_enqueue(void *self, struct dk_call *call, const struct dk_item *item)
{
  struct puppet *puppet = self;

  (void)item;
  return acts(puppet, "enqueue") ? puppet->act(puppet, call) : DK_OK;
}

static dk_status
puppet_fetch_turn(void *self, struct dk_call *call, const struct dk_fetch_turn *request)
{
  struct puppet *puppet = self;

  puppet->wait_until = request->wait_until;
  return acts(puppet, "fetch_turn") ? puppet->act(puppet, call) : give_turn(puppet, call);
}

static dk_status
puppet_commit(void *self, struct dk_call *call, struct dk_bytes token,
                const struct dk_turn_result *result)
{
  struct puppet *puppet = self;

  (void)result;
  puppet->token = token;
  return acts(puppet, "commit") ? puppet->act(puppet, call) : DK_OK;
}

static dk_status
puppet_abandon(void *self, struct dk_call *call, struct dk_bytes token, int64_t delay_ms,
               int32_t ignore_attempt)
{
  struct puppet *puppet = self;

  (void)token;
  (void)delay_ms;
  (void)ignore_attempt;
  return acts(puppet, "abandon") ? puppet->act(puppet, call) : DK_OK;
}

static dk_status
puppet_renew(void *self, struct dk_call *call, struct dk_bytes token, int64_t extend_ms)
{
  struct puppet *puppet = self;

  (void)token;
  (void)extend_ms;
  return acts(puppet, "renew") ? puppet->act(puppet, call) : DK_OK;
}

static dk_status
puppet_fetch_work(void *self, struct dk_call *call, const struct dk_fetch_work *request)
{
  struct puppet *puppet = self;

  puppet->wait_until = request->wait_until;
  return acts(puppet, "fetch_work") ? puppet->act(puppet, call)
                                    : give_work(puppet, call, request->max_items);
}

static dk_status
puppet_ack_work(void *self, struct dk_call *call, struct dk_bytes token,
                const struct dk_work_result *result)
{
  struct puppet *puppet = self;

  (void)token;
  (void)result;
  return acts(puppet, "ack_work") ? puppet->act(puppet, call) : DK_OK;
}

static dk_status
puppet_read_history(void *self, struct dk_call *call, const struct dk_read_history *request)
{
  struct puppet *puppet = self;

  (void)request;
  return acts(puppet, "read_history") ? puppet->act(puppet, call) : DK_OK;
}

static void
puppet_interrupt(void *self)
{
  struct puppet *puppet = self;

  atomic_fetch_add(&puppet->interrupts, 1);
  if (puppet->on_interrupt)
    puppet->on_interrupt(puppet);
}

static dk_status
provider_open(const struct dk_host *host, struct dk_call *call, const struct dk_open *open,
              void **ret_self)
{
  struct puppet *puppet = (struct puppet *)(uintptr_t)host->service(host, "test.puppet/1");

  (void)open;
  puppet->host = host;
  if (puppet->open_status != DK_OK)
    return host->fail(call, puppet->open_status, text("the puppet does not open"));
  puppet->is_open = true;
  *ret_self = puppet;
  return DK_OK;
}

static void
provider_close(void *self)
{
  struct puppet *puppet = self;

  puppet->is_open = false;
}

static dk_status
provider_destroy(const struct dk_host *host, struct dk_call *call, const struct dk_open *open)
{
  struct puppet *puppet = (struct puppet *)(uintptr_t)host->service(host, "test.puppet/1");

  (void)open;
  puppet->host = host;
  return acts(puppet, "destroy") ? puppet->act(puppet, call) : DK_OK;
}

static const void *
provider_extension(void *self, const char *id)
{
  struct puppet *puppet = self;

  return puppet->answers_any_extension || strcmp(id, "durakit.inspect/1") == 0 ? puppet : NULL;
}

void
puppet_describe(struct puppet_descriptor *d)
{
  static const struct dk_param params[] = {
    {.key = "store", .type = "path", .flags = DK_PARAM_STORE},
    {.key = "timeout", .type = "duration", .fallback = "5s"},
    {.key = NULL},
  };
  static const char *const extensions[] = {"durakit.inspect/1", NULL};

  *d = (struct puppet_descriptor){
    .provider = {.magic = DK_MAGIC,
                 .struct_size = sizeof(struct dk_provider),
                 .stamp = DK_STAMP,
                 .clocks = DK_CLOCK_HOST,
                 .thread_model = DK_PARALLEL,
                 .abi_vendor = "durakit",
                 .name = "puppet",
                 .version = "1",
                 .params = params,
                 .extensions = extensions,
                 .open = provider_open,
                 .close = provider_close,
                 .destroy_store = provider_destroy,
                 .extension = provider_extension},
    .ops = {.struct_size = sizeof(struct dk_ops),
            .enqueue_for_orchestrator = puppet_enqueue,
            .fetch_orchestration_item = puppet_fetch_turn,
            .ack_orchestration_item = puppet_commit,
            .abandon_orchestration_item = puppet_abandon,
            .renew_orchestration_item_lock = puppet_renew,
            .fetch_work_item = puppet_fetch_work,
            .ack_work_item = puppet_ack_work,
            .abandon_work_item = puppet_abandon,
            .renew_work_item_lock = puppet_renew,
            .read_history = puppet_read_history,
            .enqueue_for_worker = puppet_enqueue,
            .interrupt = puppet_interrupt},
    .limits = {.struct_size = sizeof(struct dk_limits),
               .max_id = 255,
               .max_payload = 64 * 1024,
               .max_commit_bytes = 1024 * 1024,
               .max_commit_items = 100},
  };
  d->provider.ops = &d->ops;
  d->provider.limits = &d->limits;
}

/* ---- the host's side ------------------------------------------------------------------------- */

static void
on_violation(void *context, const char *operation, const char *clause, const char *words)
{
  struct puppet *puppet = context;

  puppet->violations++;
  snprintf(puppet->clause, sizeof(puppet->clause), "%s", clause);
  snprintf(puppet->text, sizeof(puppet->text), "%s", words);
  snprintf(puppet->violated_in, sizeof(puppet->violated_in), "%s", operation);
}

static void
on_log(void *context, int32_t level, struct dk_bytes line)
{
  struct puppet *puppet = context;

  puppet->logs += level;
  snprintf(puppet->line, sizeof(puppet->line), "%.*s", (int)line.len, line.ptr);
}

static const void *
on_service(void *context, const char *id)
{
  return strcmp(id, "test.puppet/1") == 0 ? context : NULL;
}

dk_status
puppet_open(struct puppet *puppet, const struct puppet_descriptor *descriptor)
{
  struct puppet_descriptor usual;
  struct dk_refusal refusal;

  if (!descriptor) {
    puppet_describe(&usual);
    descriptor = &usual;
  }
  puppet->options.struct_size = sizeof(puppet->options);
  puppet->options.context = puppet;
  puppet->options.violation = on_violation;
  puppet->options.log = on_log;
  puppet->options.service = on_service;
  if (dk_library_from_descriptor(&descriptor->provider, 0, &puppet->library, &refusal) != 0) {
    fprintf(stderr, "%s: %s\n", refusal.what, refusal.found);
    return DK_INTERNAL;
  }
  puppet->caller = dk_caller_new(NULL, 0);
  return dk_store_open(puppet->library, &puppet->options, puppet->caller, DK_OPEN_CREATE, NULL, 0,
                       &puppet->store);
}

const char *
puppet_close(struct puppet *puppet)
{
  const char *stuck = dk_store_close(puppet->store);

  dk_caller_free(puppet->caller);
  dk_library_close(puppet->library);
  puppet->store = NULL;
  return stuck;
}

dk_status
fetch_turn(struct puppet *puppet, struct dk_turn **ret_turn)
{
  struct dk_fetch_turn request = a_fetch_turn();

  return dk_store_fetch_orchestration_item(puppet->store, puppet->caller, &request, ret_turn);
}

dk_status
enqueue(struct puppet *puppet)
{
  struct dk_item item = an_item("inst");

  return dk_store_enqueue_for_orchestrator(puppet->store, puppet->caller, &item);
}

const char *
failure_text(struct puppet *puppet)
{
  return dk_caller_failure(puppet->caller)->text;
}
