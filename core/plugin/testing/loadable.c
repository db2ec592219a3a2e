/* SPDX-License-Identifier: Apache-2.0 */
/* A file for the tests of the loader: a descriptor whose operations do nothing, and an entry that
 * misbehaves as the environment says (DK_TEST_ENTRY).  It exports the entry of ABI 1 besides; the
 * tests take names away in copies of the file. */
#include <durakit/provider.h>
#include <stdlib.h>
#include <string.h>

static dk_status
store_item(void *self, struct dk_call *call, const struct dk_item *item)
{
  (void)self;
  (void)call;
  (void)item;
  return DK_OK;
}

static dk_status
fetch_turn(void *self, struct dk_call *call, const struct dk_fetch_turn *request)
{
  (void)self;
  (void)call;
  (void)request;
  return DK_NOTHING;
}

static dk_status
commit(void *self, struct dk_call *call, struct dk_bytes token,
         const struct dk_turn_result *result)
{
  (void)self;
  (void)call;
  (void)token;
  (void)result;
  return DK_OK;
}

static dk_status
give_back(void *self, struct dk_call *call, struct dk_bytes token, int64_t delay_ms,
          int32_t ignore_attempt)
{
  (void)self;
  (void)call;
  (void)token;
  (void)delay_ms;
  (void)ignore_attempt;
  return DK_OK;
}

static dk_status
renew(void *self, struct dk_call *call, struct dk_bytes token, int64_t extend_ms)
{
  (void)self;
  (void)call;
  (void)token;
  (void)extend_ms;
  return DK_OK;
}

static dk_status
fetch_work(void *self, struct dk_call *call, const struct dk_fetch_work *request)
{
  (void)self;
  (void)call;
  (void)request;
  return DK_NOTHING;
}

static dk_status
ack_work(void *self, struct dk_call *call, struct dk_bytes token,
         const struct dk_work_result *result)
{
  (void)self;
  (void)call;
  (void)token;
  (void)result;
  return DK_OK;
}

static dk_status
read_history(void *self, struct dk_call *call, const struct dk_read_history *request)
{
  (void)self;
  (void)call;
  (void)request;
  return DK_OK;
}

static dk_status
open_store(const struct dk_host *host, struct dk_call *call, const struct dk_open *open,
           void **ret_self)
{
  static const char handle = 'h';

  (void)host;
  (void)call;
  (void)open;
  *ret_self = (void *)(uintptr_t)&handle;
  return DK_OK;
}

static void
close_store(void *self)
{
  (void)self;
}

static dk_status
destroy_store(const struct dk_host *host, struct dk_call *call, const struct dk_open *open)
{
  (void)host;
  (void)call;
  (void)open;
  return DK_OK;
}

static const void *
extension(void *self, const char *id)
{
  (void)self;
  (void)id;
  return NULL;
}

static const struct dk_limits limits = {
  sizeof(struct dk_limits), 255, 64 * 1024, 1024 * 1024, 100,
};

#define ALL_BUT_THE_LAST                                                                           \
  .struct_size = sizeof(struct dk_ops), .enqueue_for_orchestrator = store_item,                    \
  .fetch_orchestration_item = fetch_turn, .ack_orchestration_item = commit,                      \
  .abandon_orchestration_item = give_back, .renew_orchestration_item_lock = renew,                 \
  .fetch_work_item = fetch_work, .ack_work_item = ack_work, .abandon_work_item = give_back,        \
  .renew_work_item_lock = renew

static const struct dk_ops ops = {ALL_BUT_THE_LAST, .read_history = read_history};
static const struct dk_ops too_few_ops = {ALL_BUT_THE_LAST};

#define DESCRIPTOR(table)                                                                          \
  {                                                                                                \
    .magic = DK_MAGIC, .struct_size = sizeof(struct dk_provider), .stamp = DK_STAMP,               \
    .clocks = DK_CLOCK_HOST, .thread_model = DK_PARALLEL, .unload = 1, .abi_vendor = "durakit",    \
    .name = "test", .version = "1", .limits = &limits, .ops = (table), .open = open_store,         \
    .close = close_store, .destroy_store = destroy_store, .extension = extension,                  \
  }

static const struct dk_provider whole = DESCRIPTOR(&ops);
static const struct dk_provider another = DESCRIPTOR(&ops);
static const struct dk_provider incomplete = DESCRIPTOR(&too_few_ops);

DK_EXPORT int durakit_provider_1(void);

int
durakit_provider_1(void)
{
  return 1;
}

const struct dk_provider *
durakit_provider_2(uint32_t host_minor)
{
  static int calls;
  const char *how = getenv("DK_TEST_ENTRY");

  (void)host_minor;
  if (how && strcmp(how, "declines") == 0)
    return NULL;
  if (how && strcmp(how, "incomplete") == 0)
    return &incomplete;
  if (how && strcmp(how, "impure") == 0)
    return calls++ % 2 ? &another : &whole;
  return &whole;
}
