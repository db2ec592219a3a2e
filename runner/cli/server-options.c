/* SPDX-License-Identifier: Apache-2.0 */
/* How a server may be hurt, as it was given.  Owns nothing. */
#include "runner/cli/server-options.h"

#include <stddef.h>
#include <string.h>

static const struct hurting_option options[] = {
  {"--store-crash", offsetof(struct hurting, crash)},
  {"--store-start", offsetof(struct hurting, start)},
  {"--store-pause", offsetof(struct hurting, pause)},
  {"--store-resume", offsetof(struct hurting, resume)},
  {"--store-deny", offsetof(struct hurting, deny)},
  {"--store-allow", offsetof(struct hurting, allow)},
  {"--store-address", offsetof(struct hurting, address)},
  {"--through", offsetof(struct hurting, through)},
};

const struct hurting_option *
hurting_options(size_t *ret_n)
{
  *ret_n = sizeof(options) / sizeof(options[0]);
  return options;
}

const char **
hurting_value(struct hurting *hurting, const struct hurting_option *option)
{
  return (const char **)(void *)((char *)hurting + option->offset);
}

const char *
hurting_given(const struct hurting *hurting, const struct hurting_option *option)
{
  return *(const char *const *)(const void *)((const char *)hurting + option->offset);
}

void
server_options_add_secrets(struct secrets *secrets, const struct hurting *hurting)
{
  size_t n;
  const struct hurting_option *all = hurting_options(&n);

  for (size_t i = 0; i < n; i++) {
    const char *value = hurting_given(hurting, &all[i]);
    if (value)
      secrets_add_passwords(secrets, value, strlen(value));
  }
}
