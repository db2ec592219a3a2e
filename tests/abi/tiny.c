/* SPDX-License-Identifier: 0BSD */
/* The smallest provider that loads: everything is there, nothing works.  In the common subset of
 * C90 and C++98, with nothing but the public header: proof that an author needs no more. */
#include <durakit/provider.h>

static const struct dk_host *host_of(void *self)
{
  return *(const struct dk_host **)self;
}

static dk_status not_yet(void *self, struct dk_call *call)
{
  static const char text[] = "not written yet";
  struct dk_bytes why;

  why.ptr = text;
  why.len = sizeof text - 1;
  return host_of(self)->fail(call, DK_UNSUPPORTED, why);
}

static dk_status tiny_enqueue(void *self, struct dk_call *call, const struct dk_item *item)
{
  return not_yet(self, call);
}

static dk_status tiny_fetch_turn(void *self, struct dk_call *call,
                                 const struct dk_fetch_turn *request)
{
  return not_yet(self, call);
}

static dk_status tiny_ack_turn(void *self, struct dk_call *call, struct dk_bytes token,
                               const struct dk_turn_result *result)
{
  return not_yet(self, call);
}

static dk_status tiny_abandon(void *self, struct dk_call *call, struct dk_bytes token,
                              int64_t delay_ms, int32_t ignore_attempt)
{
  return not_yet(self, call);
}

static dk_status tiny_renew(void *self, struct dk_call *call, struct dk_bytes token,
                            int64_t extend_ms)
{
  return not_yet(self, call);
}

static dk_status tiny_fetch_work(void *self, struct dk_call *call,
                                 const struct dk_fetch_work *request)
{
  return not_yet(self, call);
}

static dk_status tiny_ack_work(void *self, struct dk_call *call, struct dk_bytes token,
                               const struct dk_work_result *result)
{
  return not_yet(self, call);
}

static dk_status tiny_read(void *self, struct dk_call *call, const struct dk_read_history *request)
{
  return not_yet(self, call);
}

static const struct dk_host *the_host; /* one handle is enough here */

static dk_status tiny_open(const struct dk_host *host, struct dk_call *call,
                           const struct dk_open *open, void **ret_self)
{
  the_host = host;
  *ret_self = &the_host;
  return DK_OK;
}

static void tiny_close(void *self)
{
}

static dk_status tiny_destroy(const struct dk_host *host, struct dk_call *call,
                              const struct dk_open *open)
{
  return DK_OK;
}

static const void *tiny_extension(void *self, const char *id)
{
  return NULL;
}

static const struct dk_ops ops = {
  sizeof(struct dk_ops), 0,
  tiny_enqueue, tiny_fetch_turn, tiny_ack_turn, tiny_abandon, tiny_renew,
  tiny_fetch_work, tiny_ack_work, tiny_abandon, tiny_renew, tiny_read, NULL, NULL,
  NULL
};
static const struct dk_limits limits = {
  sizeof(struct dk_limits), 255, 65536, 1048576, 100
};
static const struct dk_param params[] = {{NULL, NULL, NULL, NULL, 0, 0}};
static const char *const extensions[] = {NULL};
static const struct dk_provider provider = {
  DK_MAGIC, sizeof(struct dk_provider), DK_STAMP, DK_ABI_MINOR, DK_CLOCK_HOST,
  DK_ONE_AT_A_TIME, 0, 0, 1, "durakit",
  "tiny", "0", "by hand", "Loads, and can do nothing.", params, extensions, &limits, &ops,
  tiny_open, tiny_close, tiny_destroy, tiny_extension, 0, 0
};

const struct dk_provider *durakit_provider_2(uint32_t host_minor)
{
  return &provider;
}
