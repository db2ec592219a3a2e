/* SPDX-License-Identifier: Apache-2.0 */
/* A row of the tables of options: options.c has the kit's, operate-options.c those of the commands
 * that operate a store. */
#ifndef DK_RUNNER_CLI_OPTION_ROW_H
#define DK_RUNNER_CLI_OPTION_ROW_H

#include "runner/cli/options.h"

typedef int take_fn(struct options *o, const char *option, const char *value);

struct option_row {
  const char *name;  /* "--set" */
  const char *value; /* the word for its value in the help; NULL: it takes none */
  unsigned commands; /* which take it: OF(...) | OF(...); | REPEATS: each value counts */
  take_fn *take;     /* EXIT_PASSED, or another code after a message */
};

#define REPEATS (1u << 31)
#define OF(command) (1u << (COMMAND_##command))
/* Those that operate a store. */
#define OPERATES                                                                                   \
  (OF(START) | OF(STATUS) | OF(WAIT) | OF(HISTORY) | OF(RAISE) | OF(ENQUEUE) | OF(CANCEL)          \
   | OF(INSTANCES) | OF(DELETE) | OF(PRUNE) | OF(STATS))

/* The words that are not options: EXIT_PASSED, or EXIT_USAGE after a message. */
int arguments_check(const struct options *o);

#endif
