/* SPDX-License-Identifier: Apache-2.0 */
/* The commands.  Each gives the exit code. */
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
int command_selftest(const struct options *options);
int command_clean(const struct options *options);
int command_bench(const struct options *options);
int command_version(void);

/* What the shell asks to complete a line: the command's first word, and completion-words.c. */
#define WORDS_WORD "--completion-words"
int words_main(int argc, char **argv);
const char *list_name(size_t i);  /* what `durakit list` takes, and what `bench --only` takes; */
const char *bench_name(size_t i); /* NULL behind the last */

#endif
