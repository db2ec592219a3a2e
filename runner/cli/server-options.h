/* SPDX-License-Identifier: Apache-2.0 */
/* The options that say how a server may be hurt, as a list: for what is recorded and shown. */
#ifndef DK_RUNNER_CLI_SERVER_OPTIONS_H
#define DK_RUNNER_CLI_SERVER_OPTIONS_H

#include "core/base/text.h"
#include "runner/cli/options.h"
#include "runner/cli/secrets.h"

struct hurting_option {
  const char *name;  /* "--store-crash" */
  size_t offset;     /* in struct hurting */
};
const struct hurting_option *hurting_options(size_t *ret_n);
const char **hurting_value(struct hurting *hurting, const struct hurting_option *option);
const char *hurting_given(const struct hurting *hurting, const struct hurting_option *option);
/* Adds their passwords: commands for a server, and the way to it, may have some too. */
void server_options_add_secrets(struct secrets *secrets, const struct hurting *hurting);

#endif
