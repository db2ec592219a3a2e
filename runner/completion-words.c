/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit --completion-words [COMMAND]`: what completions/durakit asks, so that a shell completes
 * what this command takes, and nothing is written down twice.  Without COMMAND the commands, one a
 * line; with it, one a line:
 *
 *   argument PLUGIN           what it takes, in the words of its help
 *   option --set KEY=VALUE    and what that takes, if anything
 *   name checks               one of the names that are meant by an argument or by an option
 */
#include "runner/completion-words.h"

#include <stdio.h>
#include <string.h>

#include "runner/bench/bench.h"
#include "runner/cli/printer.h"
#include "runner/cli/usage.h"
#include "runner/commands/commands.h"

static void
put_option(void *context, const char *name, const char *value)
{
  dk_text_printf(context, "option %s%s%s\n", name, value ? " " : "", value ? value : "");
}

/* "PLUGIN [--json]": what is no option. */
static void
put_arguments(struct dk_text *out, enum command command)
{
  struct dk_text arguments = DK_TEXT_EMPTY, says = DK_TEXT_EMPTY;

  options_synopsis(command, &arguments, &says);
  for (const char *at = dk_text_str(&arguments); *at;) {
    size_t n = strcspn(at, " []");
    if (n > 0 && at[0] >= 'A' && at[0] <= 'Z')
      dk_text_printf(out, "argument %.*s\n", (int)n, at);
    at += n > 0 ? n : 1;
  }
  if (dk_text_failed(&arguments))
    dk_text_fail(out);
  dk_text_done(&arguments);
  dk_text_done(&says);
}

static void
put_names(struct dk_text *out, enum command command)
{
  const char *name;

  for (size_t i = 0; command == COMMAND_LIST && (name = list_name(i)); i++)
    dk_text_printf(out, "name %s\n", name);
  for (size_t i = 0; command == COMMAND_BENCH && (name = bench_name(i)); i++)
    dk_text_printf(out, "name %s\n", name);
}

int
completion_words_main(int argc, char **argv)
{
  const char *wanted = argc > 2 ? argv[2] : NULL;
  struct printer printer = printer_of_text();
  struct dk_text text = DK_TEXT_EMPTY;
  bool found = !wanted;

  for (enum command c = COMMAND_NONE + 1; c < COMMANDS; c++) {
    if (!wanted) {
      dk_text_printf(&text, "%s\n", options_command_name(c));
    } else if (strcmp(options_command_name(c), wanted) == 0) {
      put_arguments(&text, c);
      options_each(c, put_option, &text);
      put_names(&text, c);
      found = true;
    }
  }
  if (!found)
    return usage(&(struct options){.command = COMMAND_NONE}, wanted, "there is no such command",
                 NULL, "durakit --completion-words lists them");
  printer_text(&printer, &text);
  return printer_done(&printer, EXIT_PASSED);
}
