/* SPDX-License-Identifier: Apache-2.0 */
/* The command `durakit`: options, and then one of the commands. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runner/bench/bench.h"
#include "runner/cli/json-memory.h"
#include "runner/cli/printer.h"
#include "runner/cli/usage.h"
#include "runner/commands/commands.h"
#include "runner/completion-words.h"
#include "runner/engine/zygote.h"
#include "runner/operate/operate.h"
#include "runner/report/report-text.h"
#include "runner/run/plan.h"
#include "runner/selftest/canaries.h"
#include "runner/selftest/selftest.h"

static int
command_version(void)
{
  struct printer printer = printer_of_text();
  struct dk_text text = DK_TEXT_EMPTY;

  report_kit(&text);
  dk_text_puts(&text, "\n");
  printer_text(&printer, &text);
  return printer_done(&printer, EXIT_PASSED);
}

/* The variables that are in effect here, which no manual can know. */
static void
add_environment(struct dk_text *help, const struct environment *environment)
{
  if (environment->provider)
    dk_text_printf(help, "\nIn effect here: DURAKIT_PROVIDER=%s", environment->provider);
  if (environment->settings)
    dk_text_printf(help, ", DURAKIT_SETTINGS=%s", environment->settings);
  if (environment->provider)
    dk_text_puts(help, "\n");
}

static int
command_help(const struct options *options)
{
  struct printer printer = printer_of_text();
  struct dk_text help = DK_TEXT_EMPTY;

  options_help_text(options->command, &help);
  add_environment(&help, &options->environment);
  printer_text(&printer, &help);
  return printer_done(&printer, EXIT_PASSED);
}

static int
command_check(const struct options *options)
{
  if (options->memcheck && (options->gdb || options->in_process))
    return usage(options, "--memcheck", options->gdb ? "cannot be combined with --gdb"
                                            : "cannot be combined with --in-process",
                 "checks in processes of their own, under Valgrind", "give one of the two");
  if (options->gdb)
    return command_gdb(options);
  if (options->in_process)
    return command_in_process(options);
  return command_certify(options);
}

static int
call(struct options *options)
{
  switch (options->command) {
  case COMMAND_CERTIFY:
    return command_certify(options);
  case COMMAND_CHECK:
    return command_check(options);
  case COMMAND_LIST:
    return command_list(options);
  case COMMAND_EXPLAIN:
    return command_explain(options);
  case COMMAND_PROBE:
    return command_probe(options);
  case COMMAND_REPRO:
    return command_repro(options);
  case COMMAND_SELFTEST:
    return command_selftest(options);
  case COMMAND_CLEAN:
    return command_clean(options);
  case COMMAND_BENCH:
    return command_bench(options);
  default:
    return operate(options);
  }
}

/* A standard descriptor that was closed before the start stays unusable (EBADF), and its number is
 * not given to another file, which would be mistaken for it. */
static bool
keep_standard_descriptors(void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
      return false;
  }
  return true;
}

/* For a child, which receives only an id. */
static const struct check *
find_check(const char *id)
{
  const struct check *check = plan_find(id);

  return check ? check : canaries_find(id);
}

int
main(int argc, char **argv)
{
  struct options options;

  if (argc > 1 && strcmp(argv[1], MEMCHECK_WORD) == 0)
    return memcheck_child_main(argc, argv, find_check);
  if (argc > 1 && strcmp(argv[1], COMPLETION_WORDS) == 0)
    return completion_words_main(argc, argv);
  if (!keep_standard_descriptors()) {
    message_print("a standard descriptor is closed, and /dev/null cannot replace it: %s",
                  strerror(errno));
    return EXIT_ENVIRONMENT;
  }
  /* If the reader has closed the pipe, the call that writes reports it. */
  signal(SIGPIPE, SIG_IGN);
  json_memory_watch();
  int code = options_parse(&options, argc, argv);
  if (code == EXIT_PASSED && options.version) {
    code = command_version();
  } else if (code == EXIT_PASSED && options.help) {
    code = command_help(&options);
  } else if (code == EXIT_PASSED) {
    code = call(&options);
  }
  options_done(&options);
  return code;
}
