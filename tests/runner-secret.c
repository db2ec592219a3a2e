/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that tells everybody the secrets it is given: the runner must not pass them on.  It is
 * a plugin on its own: whatever it is asked, it fails and says its password. */
#include <stdio.h>
#include <string.h>

#include <durakit/provider.h>

static char told[1024];

static void
remember(const struct dk_open *open)
{
  for (size_t i = 0; i < open->n_settings; i++) {
    size_t used = strlen(told);
    snprintf(told + used, sizeof(told) - used, "%s is %.*s; ", open->settings[i].key,
             (int)open->settings[i].value.len, open->settings[i].value.ptr);
  }
}

static dk_status
tell(const struct dk_host *host, struct dk_call *call)
{
  fprintf(stderr, "on standard error: %s\n", told);
  host->log(host, 2, (struct dk_bytes){told, strlen(told)});
  return host->fail(call, DK_INTERNAL, (struct dk_bytes){told, strlen(told)});
}

static dk_status
secret_open(const struct dk_host *host, struct dk_call *call, const struct dk_open *open,
            void **ret_self)
{
  (void)ret_self;
  told[0] = '\0';
  remember(open);
  return tell(host, call);
}

static dk_status
secret_destroy(const struct dk_host *host, struct dk_call *call, const struct dk_open *open)
{
  (void)host;
  (void)call;
  (void)open;
  return DK_OK;
}

static void
secret_close(void *self)
{
  (void)self;
}

static const void *
secret_extension(void *self, const char *id)
{
  (void)self;
  (void)id;
  return NULL;
}

/* Never called: open always fails.  They are there because they are required. */
#define NEVER(name, ...)                                                                           \
  static dk_status name(void *self, struct dk_call *call, __VA_ARGS__)                             \
  {                                                                                                \
    (void)self;                                                                                    \
    (void)call;                                                                                    \
    return DK_INTERNAL;                                                                            \
  }
#pragma GCC diagnostic ignored "-Wunused-parameter"
NEVER(enqueue, const struct dk_item *item)
NEVER(fetch_turn, const struct dk_fetch_turn *request)
NEVER(ack_turn, struct dk_bytes token, const struct dk_turn_result *result)
NEVER(abandon, struct dk_bytes token, int64_t delay_ms, int32_t ignore_attempt)
NEVER(renew, struct dk_bytes token, int64_t extend_ms)
NEVER(fetch_work, const struct dk_fetch_work *request)
NEVER(ack_work, struct dk_bytes token, const struct dk_work_result *result)
NEVER(read_history, const struct dk_read_history *request)

static const struct dk_ops ops = {
  .struct_size = sizeof(ops),
  .enqueue_for_orchestrator = enqueue,
  .fetch_orchestration_item = fetch_turn,
  .ack_orchestration_item = ack_turn,
  .abandon_orchestration_item = abandon,
  .renew_orchestration_item_lock = renew,
  .fetch_work_item = fetch_work,
  .ack_work_item = ack_work,
  .abandon_work_item = abandon,
  .renew_work_item_lock = renew,
  .read_history = read_history,
};

static const struct dk_limits limits = {
  .struct_size = sizeof(limits),
  .max_id = 255,
  .max_payload = 65536,
  .max_commit_bytes = 1 << 20,
  .max_commit_items = 100,
};

static const struct dk_param params[] = {
  {.key = "address", .type = "address", .help = "how to reach it; may hold a password"},
  {.key = "password", .type = "string", .help = "the password", .flags = DK_PARAM_SECRET},
  {.key = "user", .type = "string", .help = "who"},
  {.key = NULL},
};
static const char *const extensions[] = {NULL};

static const struct dk_provider provider = {
  .magic = DK_MAGIC,
  .struct_size = sizeof(provider),
  .stamp = DK_STAMP,
  .abi_minor = DK_ABI_MINOR,
  .clocks = DK_CLOCK_HOST,
  .thread_model = DK_PARALLEL,
  .abi_vendor = "durakit",
  .name = "secret",
  .version = "1",
  .built_with = "cc",
  .help = "Tells its secrets.",
  .params = params,
  .extensions = extensions,
  .limits = &limits,
  .ops = &ops,
  .open = secret_open,
  .close = secret_close,
  .destroy_store = secret_destroy,
  .extension = secret_extension,
};

const struct dk_provider *
durakit_provider_2(uint32_t host_minor)
{
  (void)host_minor;
  return &provider;
}
