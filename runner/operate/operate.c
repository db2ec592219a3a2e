/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the command that the options name. */
#include "runner/operate/operate.h"

#include "runner/cli/message.h"

int
operate(const struct options *options)
{
  static int (*const commands[COMMANDS])(const struct options *) = {
    [COMMAND_START] = operate_start,         [COMMAND_STATUS] = operate_status,
    [COMMAND_WAIT] = operate_wait,           [COMMAND_HISTORY] = operate_history,
    [COMMAND_RAISE] = operate_raise,         [COMMAND_ENQUEUE] = operate_enqueue,
    [COMMAND_CANCEL] = operate_cancel,
    [COMMAND_INSTANCES] = operate_instances, [COMMAND_DELETE] = operate_delete,
    [COMMAND_PRUNE] = operate_prune,         [COMMAND_STATS] = operate_stats,
  };

  return options->command < COMMANDS && commands[options->command]
           ? commands[options->command](options)
           : EXIT_USAGE;
}
