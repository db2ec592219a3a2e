/* SPDX-License-Identifier: Apache-2.0 */
/* The options that say how a server may be disturbed, as a list: to be recorded and shown. */
#ifndef DK_RUNNER_CLI_SERVER_OPTIONS_H
#define DK_RUNNER_CLI_SERVER_OPTIONS_H

#include "core/base/text.h"
#include "runner/cli/options.h"
#include "runner/cli/secrets.h"

struct server_option {
  const char *name;  /* "--store-crash" */
  size_t offset;     /* in struct server_options */
};
const struct server_option *server_options_all(size_t *ret_n);
const char **server_options_value(struct server_options *server,
                                  const struct server_option *option);
const char *server_options_given(const struct server_options *server,
                                 const struct server_option *option);
/* Adds their passwords: commands for a server, and the way to it, may contain some, too. */
void server_options_add_secrets(struct secrets *secrets, const struct server_options *server);

#endif
