/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the refusals of a command line: see usage.h. */
#include "runner/cli/usage.h"

void
usage_add_help(struct dk_text *next, const struct options *o, const char *what)
{
  dk_text_printf(next, "durakit%s%s --help %s", o->command ? " " : "",
                 options_command_name(o->command), what);
}

int
usage(const struct options *o, const char *where, const char *what, const char *expected,
      const char *next)
{
  struct dk_text help = DK_TEXT_EMPTY;

  usage_add_help(&help, o, "shows examples");
  message_problem(&(struct problem){where, what, expected, NULL, next ? next : dk_text_str(&help)},
                  NULL);
  dk_text_done(&help);
  return EXIT_USAGE;
}

int
usage_bad_value(const struct options *o, const char *option, const char *value,
                const char *expected)
{
  struct dk_text what = DK_TEXT_EMPTY;

  dk_text_printf(&what, "cannot be \"%s\"", value);
  int code = usage(o, option, dk_text_str(&what), expected, NULL);
  dk_text_done(&what);
  return code;
}

int
usage_missing_value(const struct options *o, const char *option, const char *expected)
{
  return usage(o, option, "needs a value", expected, NULL);
}
