/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a page of the manual, "durakit" or "durakit-COMMAND", in man(7): what --help says, in the
 * order of a manual.  The top of cli/help.c describes the forms of that text.  An example is
 * printed as it is typed, an option with its description below it, the exit codes one by one.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "runner/cli/options.h"

/* The sections, each as far as it has been read. */
struct page {
  enum command command;
  struct dk_text description, options, exits, environment, examples;
};

/* What the last line was, so that the next one may continue it. */
enum form { NOTHING, TEXT, OPTION, VARIABLE, EXAMPLE, EXITS };

/* ---- roff ------------------------------------------------------------------------------------ */

/* Escapes what roff would interpret.  In prose a hyphen may end a line; in what is typed it is a
 * minus. */
static void
add_word(struct dk_text *out, const char *s, size_t length, bool typed, bool first)
{
  if (first && s[0] == '.') /* else the line would be a request; an apostrophe is escaped anyway */
    dk_text_puts(out, "\\&");
  for (size_t i = 0; i < length; i++) {
    switch (s[i]) {
    case '\\':
      dk_text_puts(out, "\\e");
      break;
    case '-':
      dk_text_puts(out, typed ? "\\-" : "-");
      break;
    case '\'':
      dk_text_puts(out, "\\(aq");
      break;
    case '`':
      dk_text_puts(out, "\\(ga");
      break;
    case '^':
      dk_text_puts(out, "\\(ha");
      break;
    case '~':
      dk_text_puts(out, "\\(ti");
      break;
    default:
      dk_text_add(out, &s[i], 1);
    }
  }
}

static void
add_literal(struct dk_text *out, const char *s, size_t length)
{
  add_word(out, s, length, true, true);
}

/* Prose: `code` is bold, as is an option; other hyphens are hyphens. */
static void
add_prose(struct dk_text *out, const char *s, size_t length)
{
  bool code = false;

  for (size_t i = 0; i < length;) {
    size_t n = strcspn(s + i, " `\n");

    if (s[i] == '`') {
      code = !code;
      dk_text_puts(out, code ? "\\fB" : "\\fR");
      i++;
    } else if (n == 0) {
      dk_text_add(out, &s[i++], 1);
    } else {
      n = n < length - i ? n : length - i;
      bool option = !code && n > 2 && s[i] == '-' && s[i + 1] == '-';
      dk_text_puts(out, option ? "\\fB" : "");
      add_word(out, s + i, n, option || code || s[i] == '-', i == 0);
      dk_text_puts(out, option ? "\\fR" : "");
      i += n;
    }
  }
  dk_text_puts(out, "\n");
}

/* "-j, --jobs N": options are bold, their values are slanted. */
static void
add_term(struct dk_text *out, const char *s, size_t length)
{
  for (size_t i = 0; i < length;) {
    size_t n = strcspn(s + i, " ,=");

    n = n < length - i ? n : length - i;
    if (n == 0) {
      dk_text_add(out, &s[i++], 1);
      continue;
    }
    dk_text_puts(out, s[i] == '-' ? "\\fB" : "\\fI");
    add_literal(out, s + i, n);
    dk_text_puts(out, "\\fR");
    i += n;
  }
}

/* ---- one line of the help -------------------------------------------------------------------- */

/* Where the first column ends: at two blanks, or at the end of the line. */
static size_t
first_column(const char *line, size_t length)
{
  const char *gap = length > 2 ? memmem(line + 2, length - 2, "  ", 2) : NULL;

  return gap ? (size_t)(gap - line) : length;
}

static bool
is_variable(const char *line, size_t length)
{
  size_t n = length > 2 ? strspn(line + 2, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") : 0;

  return n > 2 && 2 + n == first_column(line, length);
}

static void
add_second_column(struct dk_text *out, const char *line, size_t length, size_t at)
{
  while (at < length && line[at] == ' ')
    at++;
  if (at < length)
    add_prose(out, line + at, length - at);
}

/* A line that is indented by two. */
static enum form
add_item(struct page *page, const char *line, size_t length)
{
  size_t end = first_column(line, length);

  if (line[2] == '-') {
    dk_text_puts(&page->options, ".TP\n");
    add_term(&page->options, line + 2, end - 2);
    dk_text_puts(&page->options, "\n");
    add_second_column(&page->options, line, length, end);
    return OPTION;
  }
  bool variable = is_variable(line, length);
  struct dk_text *out = variable ? &page->environment : &page->examples;
  dk_text_puts(out, end < length ? ".TP\n\\fB" : ".PP\n\\fB");
  add_literal(out, line + 2, end - 2);
  dk_text_puts(out, "\\fR\n");
  add_second_column(out, line, length, end);
  return variable ? VARIABLE : EXAMPLE;
}

/* A line that begins at the margin.  Before the first option it describes the command. */
static enum form
add_text(struct page *page, enum form last, const char *line, size_t length)
{
  bool is_heading = last == NOTHING && line[length - 1] == ':' && length < 40;

  if (last == EXITS || (last == NOTHING && strncmp(line, "Exit: ", 6) == 0)) {
    dk_text_puts(&page->exits, last == EXITS ? " " : "");
    dk_text_add(&page->exits, line + (last == EXITS ? 0 : 6), length - (last == EXITS ? 0 : 6));
    return EXITS;
  }
  if (is_heading) {
    if (strncmp(line, "Environment:", length) != 0) {
      dk_text_puts(&page->options, ".SS ");
      add_prose(&page->options, line, length - 1);
    }
    return OPTION;
  }
  struct dk_text *out = page->options.length > 0 ? &page->options : &page->description;
  if (last != TEXT)
    dk_text_puts(out, ".PP\n");
  add_prose(out, line, length);
  return TEXT;
}

/* All but the first line, which is the name and the synopsis. */
static void
read_help(struct page *page, const char *help)
{
  enum form last = NOTHING;

  for (const char *at = strchr(help, '\n'); at && *++at; at += strcspn(at, "\n")) {
    size_t length = strcspn(at, "\n");
    size_t indent = strspn(at, " ");

    if (length == 0)
      last = NOTHING;
    else if (indent == 0)
      last = add_text(page, last, at, length);
    else if (indent == 2)
      last = add_item(page, at, length);
    else if (last == OPTION || last == VARIABLE || last == EXAMPLE)
      add_prose(last == OPTION ? &page->options
                : last == VARIABLE ? &page->environment : &page->examples,
                at + indent, length - indent);
  }
}

/* ---- the page -------------------------------------------------------------------------------- */

static void
put_name(enum command command)
{
  printf("durakit%s%s", command == COMMAND_NONE ? "" : "\\-", options_command_name(command));
}

static void
put_front(const struct page *page)
{
  struct dk_text arguments = DK_TEXT_EMPTY, says = DK_TEXT_EMPTY, out = DK_TEXT_EMPTY;

  options_synopsis(page->command, &arguments, &says);
  printf(".\\\" Made by gen-manual from the text of --help, runner/cli/help.c and "
         "runner/cli/operate-help.c: edit there.\n.TH ");
  put_name(page->command);
  printf(" 1 \"\" \"durakit %s\" \"Durakit\"\n.SH NAME\n", PACKAGE_VERSION);
  put_name(page->command);
  add_prose(&out, dk_text_str(&says), says.length);
  printf(" \\- %s.SH SYNOPSIS\n", dk_text_str(&out));
  if (page->command == COMMAND_NONE)
    printf("\\fBdurakit\\fR \\fICOMMAND\\fR [\\fIARGUMENT\\fR | \\fIOPTION\\fR] ...\n");
  else {
    dk_text_reset(&out);
    add_term(&out, dk_text_str(&arguments), arguments.length);
    printf("\\fBdurakit %s\\fR %s%s[\\fIOPTION\\fR] ...\n", options_command_name(page->command),
           dk_text_str(&out), out.length > 0 ? " " : "");
  }
  dk_text_done(&arguments);
  dk_text_done(&says);
  dk_text_done(&out);
}

static void
put_section(const char *name, const struct dk_text *text)
{
  if (text->length > 0)
    printf(".SH %s\n%s", name, dk_text_str(text));
}

/* Each command with its page and what it does. */
static void
put_commands(void)
{
  printf(".SH COMMANDS\n");
  for (enum command c = COMMAND_NONE + 1; c < COMMANDS; c++) {
    struct dk_text arguments = DK_TEXT_EMPTY, says = DK_TEXT_EMPTY, out = DK_TEXT_EMPTY;

    options_synopsis(c, &arguments, &says);
    add_prose(&out, dk_text_str(&says), says.length);
    printf(".TP\n\\fBdurakit\\-%s\\fR(1)\n%s", options_command_name(c), dk_text_str(&out));
    dk_text_done(&arguments);
    dk_text_done(&says);
    dk_text_done(&out);
  }
}

/* "0 passed; 1 a clause is violated; ...": one entry each. */
static void
put_exits(const struct dk_text *exits)
{
  const char *at = dk_text_str(exits);

  printf(".SH EXIT STATUS\n");
  while (*at) {
    const char *next = strstr(at, "; ");
    size_t length = next ? (size_t)(next - at) : strlen(at);
    size_t number = strspn(at, "0123456789");
    struct dk_text says = DK_TEXT_EMPTY;

    if (!next && at[length - 1] == '.')
      add_prose(&says, at + number + 1, length - number - 2);
    else
      add_prose(&says, at + number + 1, length - number - 1);
    printf(".TP\n\\fB%.*s\\fR\n%s", (int)number, at, dk_text_str(&says));
    dk_text_done(&says);
    at += length + (next ? 2 : 0);
  }
}

static void
put_see_also(enum command command)
{
  printf(".SH SEE ALSO\n");
  if (command != COMMAND_NONE)
    printf(".BR durakit (1),\n");
  printf(".BR valgrind (1),\n.BR prove (1)\n");
}

static void
put_page(const struct page *page)
{
  put_front(page);
  put_section("DESCRIPTION", &page->description);
  if (page->command == COMMAND_NONE)
    put_commands();
  put_section("OPTIONS", &page->options);
  put_exits(&page->exits);
  put_section("ENVIRONMENT", &page->environment);
  put_section("EXAMPLES", &page->examples);
  put_see_also(page->command);
}

int
main(int argc, char **argv)
{
  struct page page = {.command = COMMANDS};
  struct dk_text help = DK_TEXT_EMPTY;
  const char *name = argc == 2 ? argv[1] : "";

  if (strcmp(name, "durakit") == 0)
    page.command = COMMAND_NONE;
  for (enum command c = COMMAND_NONE + 1; c < COMMANDS; c++) {
    if (strncmp(name, "durakit-", 8) == 0 && strcmp(name + 8, options_command_name(c)) == 0)
      page.command = c;
  }
  if (page.command == COMMANDS) {
    fprintf(stderr, "gen-manual: there is no page \"%s\"; expected durakit or durakit-COMMAND\n",
            name);
    return 1;
  }
  options_help_text(page.command, &help);
  read_help(&page, dk_text_str(&help));
  put_page(&page);
  bool failed = dk_text_failed(&help) || dk_text_failed(&page.options) || page.exits.length == 0;
  dk_text_done(&help);
  dk_text_done(&page.description);
  dk_text_done(&page.options);
  dk_text_done(&page.exits);
  dk_text_done(&page.environment);
  dk_text_done(&page.examples);
  if (failed || fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "gen-manual: the page %s could not be written\n", name);
    return 1;
  }
  return 0;
}
