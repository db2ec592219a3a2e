/* SPDX-License-Identifier: Apache-2.0 */
/* The hand: a process beside the run that runs the user's commands on his server.
 *
 * What a command starts (the server, again) has to outlive check and run; but the runner is a
 * subreaper, and ends whatever its checks leave behind.  So the hand is made before that, and is no
 * descendant of the runner any more.  A check asks it through a socket in the run's folder; when
 * whoever asked is gone, however that came, the hand undoes what was done. */
#ifndef DK_RUNNER_ENGINE_SERVER_COMMANDS_H
#define DK_RUNNER_ENGINE_SERVER_COMMANDS_H

#include "conformance/kit/engine.h"
#include "runner/cli/options.h"

struct hand;
/* NULL in *ret_hand if there is no command to run.  False with errno: it cannot be made. */
bool hand_start(struct hand **ret_hand, const struct hurting *commands, const char *folder);
/* Returns when it is gone, and has undone what was left. */
void hand_end(struct hand *hand);
/* What a check may do, and where it asks. */
struct kit_hurt hand_hurt(const struct hand *hand, const struct hurting *commands);

#endif
