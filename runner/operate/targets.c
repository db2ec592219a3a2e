/* SPDX-License-Identifier: Apache-2.0 */
/* Ids, conditions, payloads, and the question before many are changed: see targets.h. */
#include "runner/operate/targets.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/utf8.h"
#include "runner/cli/usage.h"
#include "runner/operate/input.h"

/* About a million and a half of UUIDs. */
enum { MOST_BYTES_OF_IDS = 64 * 1024 * 1024 };

/* ---- names ----------------------------------------------------------------------------------- */

static size_t
most_of(const struct host *host)
{
  return dk_library_provider(host->library)->limits->max_id;
}

static int
refuse_text(const struct host *host, const char *where, dk_str text, const char *cannot)
{
  struct dk_text what = DK_TEXT_EMPTY, expected = DK_TEXT_EMPTY;

  dk_text_puts(&what, "\"");
  dk_text_add_escaped(&what, text.ptr, text.len < 100 ? text.len : 100, DK_ESCAPE_VISIBLE);
  dk_text_printf(&what, "%s %s", text.len < 100 ? "\"" : "...\"", cannot);
  dk_text_printf(&expected, "1 to %zu bytes of UTF-8", most_of(host));
  int code = usage(host->options, where, dk_text_str(&what), dk_text_str(&expected), NULL);
  dk_text_done(&what);
  dk_text_done(&expected);
  return code;
}

int
targets_check_names(const struct host *host)
{
  const struct options *o = host->options;
  const struct chosen *chosen = &o->operating.chosen;
  const struct {
    const char *where, *text, *cannot;
  } texts[] = {
    {"--name", chosen->name, "cannot be the name of an orchestration"},
    {"--version", chosen->version, "cannot be a version"},
    {"--parent", chosen->parent, "cannot be the id of an instance"},
    {"--after", o->operating.after, "cannot be the id of an instance"},
    {"raise", o->command == COMMAND_RAISE ? o->arguments[1] : NULL,
     "cannot be the name of an event"},
    {"enqueue", o->command == COMMAND_ENQUEUE ? o->arguments[1] : NULL,
     "cannot be the name of a queue"},
  };

  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    dk_str text = dk_str_of(texts[i].text);
    if (text.ptr && !dk_text_id_valid(text.ptr, text.len, most_of(host)))
      return refuse_text(host, texts[i].where, text, texts[i].cannot);
  }
  return EXIT_PASSED;
}

/* ---- payloads -------------------------------------------------------------------------------- */

int
targets_take_payload(const struct host *host, struct dk_text *buffer, dk_str *ret_payload)
{
  const char *given = host->options->operating.payload;
  uint64_t most = dk_library_provider(host->library)->limits->max_payload;
  int code = EXIT_PASSED;

  *ret_payload = (dk_str){NULL, 0};
  if (!given)
    return EXIT_PASSED;
  if (given[0] == '@' || strcmp(given, "-") == 0)
    code = input_read(host, given[0] == '@' ? given + 1 : given,
                      most < SIZE_MAX ? (size_t)most : SIZE_MAX,
                      "store it elsewhere, and send a reference to it", buffer);
  else
    dk_text_puts(buffer, given);
  if (code == EXIT_PASSED && dk_text_failed(buffer)) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  *ret_payload = (dk_str){dk_text_str(buffer), buffer->length};
  return code;
}

/* ---- ids ------------------------------------------------------------------------------------- */

static int
check_id(const struct host *host, const char *where, dk_str id)
{
  return dk_text_id_valid(id.ptr, id.len, most_of(host))
           ? EXIT_PASSED
           : refuse_text(host, where, id, "cannot be the id of an instance");
}

static int
check_ids_of_arguments(const struct host *host, struct ids *ids)
{
  const struct options *options = host->options;
  int code = EXIT_PASSED;

  bool sends = options->command == COMMAND_RAISE || options->command == COMMAND_ENQUEUE;

  ids->n = sends ? 1 : options->n_arguments;
  ids->items = calloc(ids->n + 1, sizeof(*ids->items));
  for (size_t i = 0; ids->items && code == EXIT_PASSED && i < ids->n; i++) {
    ids->items[i] = dk_str_of(options->arguments[i]);
    code = check_id(host, NULL, ids->items[i]);
  }
  return code;
}

/* One a line; empty lines are skipped. */
static int
check_ids_of_file(const struct host *host, struct ids *ids)
{
  const char *name = host->options->operating.ids_from;
  int code = input_read(host, name, MOST_BYTES_OF_IDS,
                        "split the file, and run the command once for each part", &ids->file);
  const char *at = dk_text_str(&ids->file), *end = at + ids->file.length;
  size_t lines = 1, line = 1;

  for (const char *c = at; c < end; c++)
    lines += *c == '\n';
  ids->items = calloc(lines, sizeof(*ids->items));
  for (; ids->items && code == EXIT_PASSED && at < end; line++) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    dk_str id = {at, (size_t)((newline ? newline : end) - at)};
    struct dk_text where = DK_TEXT_EMPTY;

    dk_text_printf(&where, "%s:%zu", name, line);
    if (id.len > 0) {
      code = check_id(host, dk_text_str(&where), id);
      ids->items[ids->n++] = id;
      if (id.ptr[id.len - 1] == '\r' && ids->cr_line == 0)
        ids->cr_line = line;
    }
    dk_text_done(&where);
    at = id.ptr + id.len + 1;
  }
  if (code == EXIT_PASSED && ids->items && ids->n == 0)
    message_print("%s: contains no id; nothing was done",
                  strcmp(name, "-") == 0 ? "standard input" : name);
  return code;
}

int
targets_ids_take(const struct host *host, struct ids *ret_ids)
{
  *ret_ids = (struct ids){.file = DK_TEXT_EMPTY};
  int code = host->options->operating.ids_from ? check_ids_of_file(host, ret_ids)
                                               : check_ids_of_arguments(host, ret_ids);
  if (ret_ids->items)
    return code;
  message_print("out of memory");
  return EXIT_ENVIRONMENT;
}

/* An id may end with a carriage return: this alone is not a mistake. */
void
targets_ids_hint(const struct host *host, const struct ids *ids)
{
  struct dk_text where = DK_TEXT_EMPTY;

  if (ids->cr_line == 0)
    return;
  dk_text_printf(&where, "%s:%zu", host->options->operating.ids_from, ids->cr_line);
  message_problem(&(struct problem){dk_text_str(&where), "the id ends in a carriage return",
                                    "lines that end only in a newline", "\\r\\n",
                                    "if they do not belong to the ids, remove them with "
                                    "tr -d '\\r'"},
                  NULL);
  dk_text_done(&where);
}

void
targets_ids_done(struct ids *ids)
{
  free(ids->items);
  dk_text_done(&ids->file);
  *ids = (struct ids){.file = DK_TEXT_EMPTY};
}

/* ---- conditions ------------------------------------------------------------------------------ */

bool
targets_are_many(const struct options *options)
{
  return options->n_arguments == 0 && !options->operating.ids_from;
}

struct dk_instance_filter
targets_filter(const struct chosen *chosen)
{
  return (struct dk_instance_filter){
    .struct_size = sizeof(struct dk_instance_filter),
    .flags = chosen->roots ? DK_FILTER_ROOTS : 0,
    .name = dk_str_of(chosen->name),
    .version = dk_str_of(chosen->version),
    .parent_instance = dk_str_of(chosen->parent),
    .statuses = chosen->statuses,
    .created_from = chosen->created_from,
    .created_before = chosen->created_before,
    .completed_from = chosen->completed_from,
    .completed_before = chosen->completed_before,
  };
}

/* ---- the question ---------------------------------------------------------------------------- */

int
targets_check_may_ask(const struct options *options)
{
  if (options->operating.yes || options->operating.dry_run
      || options->operating.expect != UINT64_MAX
      || (isatty(STDIN_FILENO) && isatty(STDERR_FILENO)))
    return EXIT_PASSED;
  return usage(options, options_command_name(options->command),
               "conditions need a confirmation, and there is no terminal to ask on",
               options->command == COMMAND_CANCEL ? "--yes, or --expect N" : "--yes",
               "--dry-run lists the selected instances");
}

int
targets_begin(struct host *host, struct ids *ids, const struct options *options,
              const char *needs_admin)
{
  bool many = targets_are_many(options);
  int code = many ? targets_check_may_ask(options) : EXIT_PASSED;

  if (code == EXIT_PASSED)
    code = host_load(host, options, needs_admin);
  if (code == EXIT_PASSED && !many)
    code = targets_ids_take(host, ids);
  return code == EXIT_PASSED ? host_open(host, options->operating.dry_run ? DK_OPEN_READ_ONLY : 0)
                             : code;
}

/* Whether a line that begins with y comes before a signal does. */
static bool
hears_yes(const struct host *host)
{
  struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = host_interrupt_fd(host), .events = POLLIN}};
  char line[16];

  while (poll(fds, 2, -1) < 0 && errno == EINTR)
    continue;
  if (fds[1].revents != 0)
    return false;
  ssize_t n = read(STDIN_FILENO, line, sizeof(line));
  return n > 0 && tolower((unsigned char)line[0]) == 'y';
}

int
targets_confirm(const struct host *host, const char *format, ...)
{
  struct dk_text question = DK_TEXT_EMPTY;
  va_list args;

  dk_text_puts(&question, "durakit: ");
  va_start(args, format);
  dk_text_vprintf(&question, format, args);
  va_end(args);
  fprintf(stderr, "%s [y/N] ", dk_text_str(&question));
  fflush(stderr);
  dk_text_done(&question);
  if (hears_yes(host))
    return EXIT_PASSED;
  message_print("nothing was done");
  return EXIT_INCOMPLETE;
}
