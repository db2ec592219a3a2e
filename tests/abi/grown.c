/* SPDX-License-Identifier: Apache-2.0 */
/* A provider for tests/abi/versions.sh, which compiles it against provider.h as it is, and against
 * a copy in which dk_host, dk_ops and dk_provider have a member more at their ends.  ASKS: it tests
 * for the member before it uses it, as it must.  Otherwise it just reads it. */
#include <durakit/provider.h>

static dk_status nothing_is_locked(struct dk_call *call);
#define STUB_ANSWER(call) nothing_is_locked(call)
#include "core/plugin/testing/stub.h"

#ifdef GROWN
#define LAST_OF_HOST added
#else
#define LAST_OF_HOST service
#endif

static const struct dk_host *kept; /* beyond close, which a provider must not do */

static dk_status
nothing_is_locked(struct dk_call *call)
{
  return kept->fail(call, DK_LOCK_LOST, (struct dk_bytes){"nothing is locked", 17});
}

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

static dk_status
grown_destroy(const struct dk_host *host, struct dk_call *call, const struct dk_open *open)
{
  (void)call;
  (void)open;
  return host != kept && kept->now(kept) > 0 ? DK_OK : DK_INTERNAL;
}

static const struct dk_ops ops = {STUB_OPS};

DK_EXPORT const struct dk_provider *
durakit_provider_2(uint32_t host_minor)
{
  static const struct dk_param params[] = {{0}};
  static const struct dk_provider provider = {
    STUB_PROVIDER,
    .clocks = DK_CLOCK_HOST,
    .name = "grown",
    .help = "for tests/abi/versions.sh",
    .params = params,
    .extensions = stub_extensions,
    .ops = &ops,
    .open = grown_open,
    .destroy_store = grown_destroy,
  };

  (void)host_minor;
  return &provider;
}
