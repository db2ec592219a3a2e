/* SPDX-License-Identifier: Apache-2.0 */
/* What a run needs for Valgrind: Valgrind itself, the author's suppressions, and the count of those
 * that were used. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/memory/findings.h"
#include "runner/memory/suppressions.h"
#include "runner/setup/run-setup.h"

/* `certify` continues without it, and prints what is then not tested; a run that asks for nothing
 * but Valgrind is refused. */
static int
go_without(struct run *run, const char *why)
{
  if (run->options->command != COMMAND_CERTIFY)
    return run_refuse(run, EXIT_ENVIRONMENT,
                      &(struct problem){"--memcheck", why, "valgrind, and a durakit built with it",
                                        NULL, "durakit check without --memcheck runs natively"});
  snprintf(run->no_memcheck, sizeof(run->no_memcheck), "not tested: %.200s", why);
  message_problem(&(struct problem){run->options->arguments[0],
                                    "memory is not tested: invalid accesses, uses of undefined "
                                    "bytes and leaks are not found",
                                    "valgrind, and a durakit built with it", why,
                                    "install Valgrind; or use --no-memcheck if this is intended"},
                  NULL);
  return EXIT_PASSED;
}

/* The plugin's author has declared it; what was not tested is in the first line of the result. */
static int
go_without_by_declaration(struct run *run)
{
  if (run->options->command != COMMAND_CERTIFY)
    return run_refuse(run, EXIT_USAGE,
                      &(struct problem){"--memcheck",
                                        "the provider declares that it cannot run under Valgrind",
                                        "a provider without DK_RUNTIME_NO_MEMCHECK",
                                        run->probe->name,
                                        "durakit check without --memcheck runs natively"});
  snprintf(run->no_memcheck, sizeof(run->no_memcheck),
           "not tested: the provider declares that it cannot run under Valgrind");
  return EXIT_PASSED;
}

/* The results have their absolute paths, because a repetition may be run in another folder. */
static int
take_files(struct run *run)
{
  int code = EXIT_PASSED;

  for (size_t i = 0; i < run->options->n_suppressions && code == EXIT_PASSED; i++) {
    char *path = realpath(run->options->suppressions[i], NULL);
    code = run_read_suppressions(run, &run->valgrind.authors, run->options->suppressions[i]);
    if (code == EXIT_PASSED && (!path || !memcheck_add_file(&run->valgrind, path)))
      code = run_refuse(run, EXIT_USAGE,
                        &(struct problem){run->options->suppressions[i], "cannot be used",
                                          "a path of at most 1000 bytes", path, NULL});
    free(path);
  }
  return code;
}

int
run_take_memcheck(struct run *run)
{
  const struct options *options = run->options;
  bool certify = options->command == COMMAND_CERTIFY;
  bool wanted = certify ? !options->no_memcheck : options->memcheck || options->both;
  char why[200];

  run->native = certify || options->both || !options->memcheck;
  if (options->n_suppressions > 0 && !wanted)
    return run_refuse(run, EXIT_USAGE,
                      &(struct problem){"--suppressions", "is only for runs under Valgrind",
                                        certify ? "no --no-memcheck" : "--memcheck", NULL, NULL});
  if (certify && options->no_memcheck)
    snprintf(run->no_memcheck, sizeof(run->no_memcheck), "left out: --no-memcheck");
  if (!wanted)
    return EXIT_PASSED;
  if (run->probe->runtime & DK_RUNTIME_NO_MEMCHECK)
    return go_without_by_declaration(run);
  if (!memcheck_find(&run->valgrind, why, sizeof(why)))
    return go_without(run, why);
  /* A plugin that could not be loaded would also hang or end a zygote. */
  run->valgrind.plugin = run->described ? run->plugin : NULL;
  run->memcheck = true;
  engine_use_memcheck(run->engine, &run->valgrind);
  return take_files(run);
}

void
run_note_suppressed(struct run *run, const struct findings *findings)
{
  for (size_t i = 0; findings && i < findings->n_suppressed; i++)
    findings_add_suppressed(&run->suppressed, &run->n_suppressed, &findings->suppressed[i]);
}
