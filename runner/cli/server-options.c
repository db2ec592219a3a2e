/* SPDX-License-Identifier: Apache-2.0 */
/* How a server may be disturbed, as it was given.  Owns nothing. */
#include "runner/cli/server-options.h"

#include <stddef.h>
#include <string.h>

static const struct server_option options[] = {
  {"--store-crash", offsetof(struct server_options, crash)},
  {"--store-start", offsetof(struct server_options, start)},
  {"--store-pause", offsetof(struct server_options, pause)},
  {"--store-resume", offsetof(struct server_options, resume)},
  {"--store-deny", offsetof(struct server_options, deny)},
  {"--store-allow", offsetof(struct server_options, allow)},
  {"--store-address", offsetof(struct server_options, address)},
  {"--through", offsetof(struct server_options, through)},
};

const struct server_option *
server_options_all(size_t *ret_n)
{
  *ret_n = sizeof(options) / sizeof(options[0]);
  return options;
}

const char **
server_options_value(struct server_options *server, const struct server_option *option)
{
  return (const char **)(void *)((char *)server + option->offset);
}

const char *
server_options_given(const struct server_options *server, const struct server_option *option)
{
  return *(const char *const *)(const void *)((const char *)server + option->offset);
}

void
server_options_add_secrets(struct secrets *secrets, const struct server_options *server)
{
  size_t n;
  const struct server_option *all = server_options_all(&n);

  for (size_t i = 0; i < n; i++) {
    const char *value = server_options_given(server, &all[i]);
    if (value)
      secrets_add_passwords(secrets, value, strlen(value));
  }
}
