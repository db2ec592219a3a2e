/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit --completion-words [COMMAND]`: what completions/durakit asks, so that a shell completes
 * what this command takes, and nothing is written down twice.  Without COMMAND the commands, one a
 * line; with it, one a line:
 *
 *   argument PLUGIN           what it takes, in the words of its help
 *   option --set KEY=VALUE    and what that takes, if anything
 *   name checks               one of the names that are meant by an argument or by an option
 */
#include <stdio.h>
#include <string.h>

#include "runner/commands.h"
#include "runner/say.h"

static void
put_option(void *context, const char *name, const char *value)
{
  (void)context;
  printf("option %s%s%s\n", name, value ? " " : "", value ? value : "");
}

/* "PLUGIN [--json]": what is no option. */
static void
put_arguments(enum command command)
{
  struct dk_text arguments = DK_TEXT_EMPTY, says = DK_TEXT_EMPTY;

  options_synopsis(command, &arguments, &says);
  for (const char *at = dk_text_str(&arguments); *at;) {
    size_t n = strcspn(at, " []");
    if (n > 0 && at[0] >= 'A' && at[0] <= 'Z')
      printf("argument %.*s\n", (int)n, at);
    at += n > 0 ? n : 1;
  }
  dk_text_done(&arguments);
  dk_text_done(&says);
}

static void
put_names(enum command command)
{
  const char *name;

  for (size_t i = 0; command == COMMAND_LIST && (name = list_name(i)); i++)
    printf("name %s\n", name);
  for (size_t i = 0; command == COMMAND_BENCH && (name = bench_name(i)); i++)
    printf("name %s\n", name);
}

int
words_main(int argc, char **argv)
{
  const char *wanted = argc > 2 ? argv[2] : NULL;
  bool found = !wanted;

  for (enum command c = COMMAND_NONE + 1; c < COMMANDS; c++) {
    if (!wanted) {
      puts(command_name(c));
    } else if (strcmp(command_name(c), wanted) == 0) {
      put_arguments(c);
      options_each(c, put_option, NULL);
      put_names(c);
      found = true;
    }
  }
  if (!found)
    return usage(wanted, "there is no such command", NULL, "durakit --completion-words lists them");
  return fflush(stdout) == 0 ? EXIT_PASSED : EXIT_ENVIRONMENT;
}
