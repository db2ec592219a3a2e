/* SPDX-License-Identifier: Apache-2.0 */
/* A process beside the run, the helper, which runs the user's commands on their server.
 *
 * What a command starts (the server, again) has to outlive check and run; but the runner is a
 * subreaper, and ends whatever its checks leave behind.  So the helper is made before that, and is
 * no descendant of the runner any more.  A check asks it through a socket in the run's folder; when
 * the asker has ended, however that came, the helper undoes what was done. */
#ifndef DK_RUNNER_ENGINE_SERVER_COMMANDS_H
#define DK_RUNNER_ENGINE_SERVER_COMMANDS_H

#include "conformance/kit/engine.h"
#include "runner/cli/options.h"

struct server_commands;
/* NULL in *ret if there is no command to run.  False with errno: it cannot be made. */
bool server_commands_start(struct server_commands **ret, const struct server_options *options,
                           const char *folder);
/* Returns when it is gone, and has undone what was left. */
void server_commands_end(struct server_commands *commands);
/* What a check may do, and where it asks. */
struct kit_hurt server_commands_offer(const struct server_commands *commands,
                                      const struct server_options *options);

#endif
