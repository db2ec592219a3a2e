/* SPDX-License-Identifier: Apache-2.0 */
/* A file for the tests of the loader: a descriptor whose operations do nothing, and an entry that
 * misbehaves as the environment says (DK_TEST_ENTRY).  It exports the entry of ABI 1 besides; the
 * tests take names away in copies of the file. */
#include <stdlib.h>
#include <string.h>

#include "core/plugin/testing/stub.h"

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

static const struct dk_ops ops = {STUB_OPS};
static const struct dk_ops too_few_ops = {STUB_OPS_BUT_THE_LAST};

#define DESCRIPTOR(table)                                                                          \
  {                                                                                                \
    STUB_PROVIDER, .clocks = DK_CLOCK_HOST, .unload = 1, .name = "test", .ops = (table),           \
    .open = open_store, .destroy_store = stub_destroy,                                             \
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
