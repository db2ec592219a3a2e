/* SPDX-License-Identifier: Apache-2.0 */
/* A process beside the run, the helper, which runs the user's commands on their server.
 *
 * A server that a command starts again must outlive the check and the run; but the runner is a
 * subreaper, and ends all processes that its checks leave behind.  So the helper is made before
 * that, and is no descendant of the runner.  A check sends it requests through a socket in the
 * run's folder; when that client has ended, in whatever way, the helper restores the server. */
#ifndef DK_RUNNER_ENGINE_SERVER_COMMANDS_H
#define DK_RUNNER_ENGINE_SERVER_COMMANDS_H

#include "conformance/kit/engine.h"
#include "runner/cli/options.h"

struct server_commands;
/* *ret is NULL if there is no command to run.  False with errno: the helper cannot be made. */
bool server_commands_start(struct server_commands **ret, const struct server_options *options,
                           const char *folder);
/* Returns when the helper has restored the server and ended. */
void server_commands_end(struct server_commands *commands);
/* What a check may do to the server, and the path of the helper's socket. */
struct kit_hurt server_commands_offer(const struct server_commands *commands,
                                      const struct server_options *options);

#endif
