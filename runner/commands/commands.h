/* SPDX-License-Identifier: Apache-2.0 */
/* The commands.  Each returns the exit code. */
#ifndef DK_RUNNER_COMMANDS_COMMANDS_H
#define DK_RUNNER_COMMANDS_COMMANDS_H

#include "runner/cli/options.h"

int command_certify(const struct options *options); /* and check */
int command_in_process(const struct options *options);
int command_gdb(const struct options *options);
int command_list(const struct options *options);
int command_explain(const struct options *options);
int command_probe(const struct options *options);
int command_repro(struct options *options);
int command_clean(const struct options *options);

/* What `durakit list` takes; NULL after the last. */
const char *list_name(size_t i);

#endif
