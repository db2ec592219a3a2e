/* SPDX-License-Identifier: Apache-2.0 */
/* The settings for the provider: --set, --set-env, --settings; otherwise the environment. */
#ifndef DK_RUNNER_CLI_SETTINGS_H
#define DK_RUNNER_CLI_SETTINGS_H

#include <stddef.h>

#include <durakit/provider.h>

#include "runner/cli/options.h"

/* Variables that the command passes to itself: their values count as given with --set. */
#define SETTINGS_PRIVATE "DURAKIT_SETTING_"

/* Each returns EXIT_PASSED, or another code after a message. */
int settings_take_pair(struct options *options, const char *option, const char *pair);
int settings_take_env(struct options *options, const char *option, const char *pair);
/* `whose`: the option or variable that names it. */
int settings_take_file(struct options *options, const char *path, const char *whose);
/* What DURAKIT_PROVIDER and DURAKIT_SETTINGS say, for a command line that names no provider. */
int settings_take_environment(struct options *options);
int settings_add(struct options *options, const char *key, const char *value, const char *env);

/* A relative path in a file starts at the folder of that file, wherever the command runs: makes it
 * a path from here.  Only for a setting whose type is path. */
int settings_place(struct given *given);
/* "--settings FILE" or "DURAKIT_SETTINGS=FILE" if the setting came from there, "--set" if not. */
void settings_tell_source(const struct given *given, struct dk_text *source);

void settings_done(struct options *options);

/* The setting of this key, NULL: not given. */
const struct given *settings_find(const struct options *options, const char *key);

/* As a provider takes them, without the one named `except` (NULL: all); from malloc, NULL: out of
 * memory.  Points into the options. */
struct dk_setting *settings_for_provider(const struct options *options, const char *except,
                                         size_t *ret_n);

#endif
