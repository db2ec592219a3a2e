/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the command line that are not options: how many each command takes. */
#include <stdint.h>

#include "runner/cli/option-row.h"
#include "runner/cli/usage.h"

/* How many arguments each command takes, and what they are. */
int
arguments_check(const struct options *o)
{
  static const struct {
    size_t least, most;
    const char *expected;
  } wants[COMMANDS] = {
    [COMMAND_CERTIFY] = {1, 1, "a plugin: ./my_provider.so, or the name of an installed one"},
    [COMMAND_CHECK] = {1, 1, "a plugin: ./my_provider.so, or the name of an installed one"},
    [COMMAND_LIST] = {1, 1, "checks, clauses, mutants, topics or providers"},
    [COMMAND_EXPLAIN] = {1, 1, "a check, a clause or a mutant: CANCEL-5"},
    [COMMAND_PROBE] = {1, 1, "a plugin: ./my_provider.so, an installed one, or DURAKIT_PROVIDER"},
    [COMMAND_REPRO] = {1, 1, "FILE[:CHECK]: out/results.jsonl:cancel/locked-row"},
    [COMMAND_SELFTEST] = {0, 0, "no argument"},
    [COMMAND_CLEAN] = {0, 1, "nothing, or the plugin whose stores are to be removed"},
    [COMMAND_BENCH] = {1, 1, "a plugin: ./my_provider.so, or the name of an installed one"},
    [COMMAND_START] = {1, 1, "the id of the instance: order-1"},
    [COMMAND_STATUS] = {1, SIZE_MAX, "ids of instances: order-1 order-2"},
    [COMMAND_WAIT] = {1, SIZE_MAX, "ids of instances: order-1 order-2"},
    [COMMAND_HISTORY] = {1, 1, "the id of an instance: order-1"},
    [COMMAND_RAISE] = {2, 2, "the id of an instance, and the name of the event: order-1 paid"},
    [COMMAND_ENQUEUE] = {2, 2, "the id of an instance, and the name of the queue: order-1 items"},
    [COMMAND_CANCEL] = {0, SIZE_MAX, "ids of instances, or conditions that select them"},
    [COMMAND_INSTANCES] = {0, 0, "no argument; --name and other conditions select instances"},
    [COMMAND_DELETE] = {0, SIZE_MAX, "ids of instances, or conditions that select them"},
    [COMMAND_PRUNE] = {0, 1, "the id of an instance, or conditions that select some"},
    [COMMAND_STATS] = {0, 0, "no argument"},
  };
  const char *where = options_command_name(o->command);
  const char *expected = wants[o->command].expected;
  const size_t most = wants[o->command].most;

  if (o->n_arguments < wants[o->command].least)
    return usage(o, where, "an argument is missing", expected, NULL);
  if (o->n_arguments > most)
    return usage(o, o->arguments[most], "is one argument too many", expected, NULL);
  return EXIT_PASSED;
}
