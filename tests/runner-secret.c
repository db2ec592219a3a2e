/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that puts its secrets into its texts: the runner must not pass them on.  It is a
 * plugin on its own: each call fails, with the password in the text. */
#include <stdio.h>
#include <string.h>

#include "core/plugin/testing/stub.h"

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

static const struct dk_ops ops = {STUB_OPS};

static const struct dk_param params[] = {
  {.key = "address", .type = "address", .help = "how to reach it; may hold a password"},
  {.key = "password", .type = "string", .help = "the password", .flags = DK_PARAM_SECRET},
  {.key = "user", .type = "string", .help = "who"},
  {.key = NULL},
};

static const struct dk_provider provider = {
  STUB_PROVIDER,
  .clocks = DK_CLOCK_HOST,
  .name = "secret",
  .help = "Tells its secrets.",
  .params = params,
  .extensions = stub_extensions,
  .ops = &ops,
  .open = secret_open,
  .destroy_store = stub_destroy,
};

const struct dk_provider *
durakit_provider_2(uint32_t host_minor)
{
  (void)host_minor;
  return &provider;
}
