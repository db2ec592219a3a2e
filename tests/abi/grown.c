/* SPDX-License-Identifier: Apache-2.0 */
/* A provider for tests/abi/versions.sh, which compiles it against provider.h as it is, and against
 * a copy in which dk_host, dk_ops and dk_provider have a member more at their ends.  ASKS: it tests
 * for the member before it uses it, as it must.  Otherwise it just reads it. */
#include <durakit/provider.h>

#ifdef GROWN
#define LAST_OF_HOST added
#else
#define LAST_OF_HOST service
#endif

static const struct dk_host *kept; /* beyond close, which a provider must not do */

static dk_status
grown_open(const struct dk_host *host, struct dk_call *call, const struct dk_open *open,
           void **ret_self)
{
  static int handle;

  (void)call;
  (void)open;
  kept = host;
#ifdef ASKS
  if (DK_HAS(dk_host, host, LAST_OF_HOST))
    host->LAST_OF_HOST(host, "durakit.no-such-thing/1");
#else
  host->LAST_OF_HOST(host, "durakit.no-such-thing/1");
#endif
  *ret_self = &handle;
  return DK_OK;
}

static void
grown_close(void *self)
{
  (void)self;
}

static dk_status
grown_destroy(const struct dk_host *host, struct dk_call *call, const struct dk_open *open)
{
  (void)call;
  (void)open;
  return host != kept && kept->now(kept) > 0 ? DK_OK : DK_INTERNAL;
}

static const void *
grown_extension(void *self, const char *id)
{
  (void)self;
  (void)id;
  return NULL;
}

static dk_status
grown_renew(void *self, struct dk_call *call, struct dk_bytes token, int64_t extend_ms)
{
  struct dk_bytes why = {"nothing is locked", 17};

  (void)self;
  (void)token;
  (void)extend_ms;
  return kept->fail(call, DK_LOCK_LOST, why);
}

static dk_status
grown_abandon(void *self, struct dk_call *call, struct dk_bytes token, int64_t delay_ms,
              int32_t ignore_attempt)
{
  (void)delay_ms;
  (void)ignore_attempt;
  return grown_renew(self, call, token, 1);
}

static dk_status
grown_enqueue(void *self, struct dk_call *call, const struct dk_item *item)
{
  (void)item;
  return grown_renew(self, call, item->id, 1);
}

static dk_status
grown_fetch_turn(void *self, struct dk_call *call, const struct dk_fetch_turn *request)
{
  (void)self;
  (void)call;
  (void)request;
  return DK_NOTHING;
}

static dk_status
grown_ack_turn(void *self, struct dk_call *call, struct dk_bytes token,
               const struct dk_turn_result *result)
{
  (void)result;
  return grown_renew(self, call, token, 1);
}

static dk_status
grown_fetch_work(void *self, struct dk_call *call, const struct dk_fetch_work *request)
{
  (void)self;
  (void)call;
  (void)request;
  return DK_NOTHING;
}

static dk_status
grown_ack_work(void *self, struct dk_call *call, struct dk_bytes token,
               const struct dk_work_result *result)
{
  (void)result;
  return grown_renew(self, call, token, 1);
}

static dk_status
grown_read(void *self, struct dk_call *call, const struct dk_read_history *request)
{
  (void)self;
  (void)call;
  (void)request;
  return DK_OK;
}

static const struct dk_ops ops = {
  .struct_size = sizeof(struct dk_ops),
  .enqueue_for_orchestrator = grown_enqueue,
  .fetch_orchestration_item = grown_fetch_turn,
  .ack_orchestration_item = grown_ack_turn,
  .abandon_orchestration_item = grown_abandon,
  .renew_orchestration_item_lock = grown_renew,
  .fetch_work_item = grown_fetch_work,
  .ack_work_item = grown_ack_work,
  .abandon_work_item = grown_abandon,
  .renew_work_item_lock = grown_renew,
  .read_history = grown_read,
};

DK_EXPORT const struct dk_provider *
durakit_provider_2(uint32_t host_minor)
{
  static const struct dk_param params[] = {{0}};
  static const char *const extensions[] = {NULL};
  static const struct dk_limits limits = {sizeof limits, 255, 65536, 1048576, 100};
  static const struct dk_provider provider = {
    .magic = DK_MAGIC,
    .struct_size = sizeof(struct dk_provider),
    .stamp = DK_STAMP,
    .abi_minor = DK_ABI_MINOR,
    .clocks = DK_CLOCK_HOST,
    .thread_model = DK_PARALLEL,
    .abi_vendor = "durakit",
    .name = "grown",
    .version = "0",
    .built_with = "a header of the test",
    .help = "for tests/abi/versions.sh",
    .params = params,
    .extensions = extensions,
    .limits = &limits,
    .ops = &ops,
    .open = grown_open,
    .close = grown_close,
    .destroy_store = grown_destroy,
    .extension = grown_extension,
  };

  (void)host_minor;
  return &provider;
}
