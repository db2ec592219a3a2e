/* SPDX-License-Identifier: Apache-2.0 */
/* A provider in front of a provider: see unsteady.h.  Its handles are the real one's, and so are
 * all its operations but one. */
#include "conformance/runtime/unsteady.h"

#include <string.h>

#include "core/plugin/library.h"

static const struct dk_provider *real;
static const struct dk_host *real_host;
static struct dk_ops ops;
static atomic_int wanted;
static atomic_uint calls, refused;

static dk_status
open_real(const struct dk_host *host, struct dk_call *call, const struct dk_open *request,
          void **ret_self)
{
  real_host = host;
  return real->open(host, call, request, ret_self);
}

static bool
refuses(void)
{
  uint32_t call = atomic_fetch_add(&calls, 1);
  int how = atomic_load(&wanted);

  return how == RENEWS_NEVER || (how == RENEWS_SOMETIMES && call % 2 == 0);
}

static dk_status
renew(void *self, struct dk_call *call, struct dk_bytes token, int64_t extend_ms)
{
  if (!refuses())
    return real->ops->renew_work_item_lock(self, call, token, extend_ms);
  atomic_fetch_add(&refused, 1);
  return real_host->fail(call, DK_BUSY, bytes("as the check has planned"));
}

void
set_unsteadiness(enum unsteadiness unsteadiness)
{
  atomic_store(&wanted, (int)unsteadiness);
}

uint32_t
refused_renewals(void)
{
  return atomic_load(&refused);
}

struct dk_library *
make_unsteady(struct dk_check *t)
{
  struct dk_refusal refusal = {.number = 0};
  struct dk_library *library = NULL;
  struct dk_provider copy;

  real = provider(t);
  copy = *real;
  copy.struct_size = sizeof(copy);
  memset(&ops, 0, sizeof(ops));
  memcpy(&ops, real->ops, real->ops->struct_size < sizeof(ops) ? real->ops->struct_size
                                                               : sizeof(ops));
  ops.struct_size = sizeof(ops);
  ops.renew_work_item_lock = renew;
  copy.ops = &ops;
  copy.open = open_real;
  atomic_store(&calls, 0);
  atomic_store(&refused, 0);
  set_unsteadiness(RENEWS);
  int32_t failed = dk_library_from_descriptor(&copy, 0, &library, &refusal);
  expect(t, failed == 0, "a provider in front of the one under test: %s", refusal.what);
  close_handle(t, NULL);
  open_handle_through(t, library);
  return library;
}
