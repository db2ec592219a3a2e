/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that can do nothing, for plugins of tests that are about something else: the file that
 * includes this writes that, and takes the rest from here.
 *
 * It may define before what the operations answer: STUB_ANSWER(call), and STUB_FETCHED of the two
 * fetches. */
#ifndef DK_PLUGIN_TESTING_STUB_H
#define DK_PLUGIN_TESTING_STUB_H

#include <durakit/provider.h>

#ifndef STUB_ANSWER
#define STUB_ANSWER(call) DK_OK
#endif
#ifndef STUB_FETCHED
#define STUB_FETCHED DK_NOTHING
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define STUB(name, answer, ...)                                                                    \
  __attribute__((unused)) static dk_status stub_##name(void *self, struct dk_call *call,           \
                                                       __VA_ARGS__)                                \
  {                                                                                                \
    return answer;                                                                                 \
  }
STUB(enqueue, STUB_ANSWER(call), const struct dk_item *item)
STUB(fetch_turn, STUB_FETCHED, const struct dk_fetch_turn *request)
STUB(ack_turn, STUB_ANSWER(call), struct dk_bytes token, const struct dk_turn_result *result)
STUB(abandon, STUB_ANSWER(call), struct dk_bytes token, int64_t delay_ms, int32_t ignore_attempt)
STUB(renew, STUB_ANSWER(call), struct dk_bytes token, int64_t extend_ms)
STUB(fetch_work, STUB_FETCHED, const struct dk_fetch_work *request)
STUB(ack_work, STUB_ANSWER(call), struct dk_bytes token, const struct dk_work_result *result)
STUB(read_history, DK_OK, const struct dk_read_history *request)
#undef STUB

__attribute__((unused)) static dk_status
stub_destroy(const struct dk_host *host, struct dk_call *call, const struct dk_open *open)
{
  return DK_OK;
}

__attribute__((unused)) static void
stub_close(void *self)
{
}

__attribute__((unused)) static const void *
stub_extension(void *self, const char *id)
{
  return NULL;
}
#pragma GCC diagnostic pop

/* Members of struct dk_ops. */
#define STUB_OPS_BUT_THE_LAST                                                                      \
  .struct_size = sizeof(struct dk_ops), .enqueue_for_orchestrator = stub_enqueue,                  \
  .fetch_orchestration_item = stub_fetch_turn, .ack_orchestration_item = stub_ack_turn,            \
  .abandon_orchestration_item = stub_abandon, .renew_orchestration_item_lock = stub_renew,         \
  .fetch_work_item = stub_fetch_work, .ack_work_item = stub_ack_work,                              \
  .abandon_work_item = stub_abandon, .renew_work_item_lock = stub_renew
#define STUB_OPS STUB_OPS_BUT_THE_LAST, .read_history = stub_read_history

/* Members of struct dk_provider.  Not among them: the clocks, the name, the operations, open and
 * destroy_store. */
#define STUB_PROVIDER                                                                              \
  .magic = DK_MAGIC, .struct_size = sizeof(struct dk_provider), .stamp = DK_STAMP,                 \
  .abi_minor = DK_ABI_MINOR, .thread_model = DK_PARALLEL, .abi_vendor = "durakit",                 \
  .version = "1", .built_with = "cc", .limits = &stub_limits, .close = stub_close,                 \
  .extension = stub_extension

__attribute__((unused)) static const struct dk_limits stub_limits = {
  .struct_size = sizeof(struct dk_limits), .max_id = 255, .max_payload = 65536,
  .max_commit_bytes = 1 << 20, .max_commit_items = 100,
};
__attribute__((unused)) static const char *const stub_extensions[] = {NULL};

#endif
