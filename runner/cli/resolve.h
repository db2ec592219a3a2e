/* SPDX-License-Identifier: Apache-2.0 */
/* From what a user types to the absolute path of a plugin. */
#ifndef DK_RUNNER_CLI_RESOLVE_H
#define DK_RUNNER_CLI_RESOLVE_H

#include <stdbool.h>

#include "runner/cli/message.h"

/* "./x.so" is a path, made absolute; "sqlite" is a plugin that is looked for in
 * DURAKIT_PLUGIN_PATH, then, if this command is not installed, among those built with it, then
 * where plugins are installed.  From malloc; NULL with *ret_problem, whose texts are kept in
 * `words`. */
char *resolve_plugin(const char *name, struct problem *ret_problem, struct dk_text words[3]);

/* From the folder that the command was called in; from malloc, NULL with errno. */
char *resolve_absolute(const char *path);

/* Calls `each` for every installed plugin: its name, each once, and the path that it means.
 * false: out of memory, and some are left out. */
bool resolve_each(void (*each)(void *context, const char *name, const char *path), void *context);

/* The path is that of a plugin which was built with this command, and is not installed. */
bool resolve_is_built(const char *path);

#endif
