/* SPDX-License-Identifier: Apache-2.0 */
/* The help of the commands that operate a store; runner/cli/help.c describes its forms. */
#ifndef DK_RUNNER_CLI_OPERATE_HELP_H
#define DK_RUNNER_CLI_OPERATE_HELP_H

extern const char help_of_start[], help_of_status[], help_of_wait[], help_of_history[],
  help_of_raise[], help_of_enqueue[], help_of_cancel[], help_of_instances[], help_of_delete[],
  help_of_prune[], help_of_stats[];
/* What several of them share, and their exit codes. */
extern const char help_of_choice[], help_of_operating[], help_of_exits[];

#endif
