/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals of a command line: each has a line that says what to do next, which names the help of
 * the command if nothing better is known. */
#ifndef DK_RUNNER_CLI_USAGE_H
#define DK_RUNNER_CLI_USAGE_H

#include "runner/cli/message.h"
#include "runner/cli/options.h"

/* "durakit cancel --help shows examples". */
void usage_add_help(struct dk_text *next, const struct options *o, const char *what);

/* All print a message and return EXIT_USAGE: return usage(...). */

/* An option, a setting or a name that was given wrongly; `next` NULL: the command's help. */
int usage(const struct options *o, const char *where, const char *what, const char *expected,
          const char *next);
/* This cannot be the option's value. */
int usage_bad_value(const struct options *o, const char *option, const char *value,
                    const char *expected);
int usage_missing_value(const struct options *o, const char *option, const char *expected);

#endif
