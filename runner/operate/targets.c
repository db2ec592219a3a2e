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
#include "runner/say.h"

/* ---- files ----------------------------------------------------------------------------------- */

static int
read_all(FILE *file, const char *name, struct dk_text *ret_bytes)
{
  char piece[65536];
  size_t n;

  while ((n = fread(piece, 1, sizeof(piece), file)) > 0)
    dk_text_add(ret_bytes, piece, n);
  if (ferror(file))
    return usage(name, "cannot be read", "a file, or - for standard input", strerror(errno));
  if (dk_text_failed(ret_bytes)) {
    say("out of memory");
    return EXIT_ENVIRONMENT;
  }
  return EXIT_PASSED;
}

/* "-" is standard input. */
static int
read_file(const char *name, struct dk_text *ret_bytes)
{
  if (strcmp(name, "-") == 0)
    return read_all(stdin, name, ret_bytes);
  FILE *file = fopen(name, "re");
  if (!file)
    return usage(name, "cannot be read", "a file, or - for standard input", strerror(errno));
  int code = read_all(file, name, ret_bytes);
  fclose(file);
  return code;
}

int
payload_take(const struct options *options, struct dk_text *buffer, dk_str *ret_payload)
{
  const char *given = options->operating.payload;
  int code = EXIT_PASSED;

  *ret_payload = (dk_str){NULL, 0};
  if (!given)
    return EXIT_PASSED;
  if (given[0] == '@' || strcmp(given, "-") == 0)
    code = read_file(given[0] == '@' ? given + 1 : given, buffer);
  else
    dk_text_puts(buffer, given);
  *ret_payload = (dk_str){dk_text_str(buffer), buffer->length};
  return code;
}

/* ---- ids ------------------------------------------------------------------------------------- */

static int
check_id(const struct host *host, const char *where, dk_str id)
{
  size_t most = dk_library_provider(host->library)->limits->max_id;
  struct dk_text what = DK_TEXT_EMPTY, expected = DK_TEXT_EMPTY;

  if (dk_text_id_valid(id.ptr, id.len, most))
    return EXIT_PASSED;
  dk_text_puts(&what, "\"");
  dk_text_add_escaped(&what, id.ptr, id.len < 100 ? id.len : 100, DK_ESCAPE_VISIBLE);
  dk_text_printf(&what, "%s cannot be the id of an instance", id.len < 100 ? "\"" : "...\"");
  dk_text_printf(&expected, "1 to %zu bytes of UTF-8", most);
  int code = usage(where, dk_text_str(&what), dk_text_str(&expected), NULL);
  dk_text_done(&what);
  dk_text_done(&expected);
  return code;
}

static int
check_ids_of_arguments(const struct host *host, struct ids *ids)
{
  const struct options *options = host->options;
  int code = EXIT_PASSED;

  ids->n = options->command == COMMAND_RAISE ? 1 : options->n_arguments;
  ids->items = calloc(ids->n + 1, sizeof(*ids->items));
  for (size_t i = 0; ids->items && code == EXIT_PASSED && i < ids->n; i++) {
    ids->items[i] = dk_str_of(options->arguments[i]);
    code = check_id(host, NULL, ids->items[i]);
  }
  return code;
}

/* One a line; empty lines are none. */
static int
check_ids_of_file(const struct host *host, struct ids *ids)
{
  const char *name = host->options->operating.ids_from;
  int code = read_file(name, &ids->file);
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
    }
    dk_text_done(&where);
    at = id.ptr + id.len + 1;
  }
  return code;
}

int
ids_take(const struct host *host, struct ids *ret_ids)
{
  *ret_ids = (struct ids){.file = DK_TEXT_EMPTY};
  int code = host->options->operating.ids_from ? check_ids_of_file(host, ret_ids)
                                               : check_ids_of_arguments(host, ret_ids);
  if (ret_ids->items)
    return code;
  say("out of memory");
  return EXIT_ENVIRONMENT;
}

void
ids_done(struct ids *ids)
{
  free(ids->items);
  dk_text_done(&ids->file);
  *ids = (struct ids){.file = DK_TEXT_EMPTY};
}

/* ---- conditions ------------------------------------------------------------------------------ */

bool
is_for_many(const struct options *options)
{
  return options->n_arguments == 0 && !options->operating.ids_from;
}

struct dk_instance_filter
filter_of(const struct chosen *chosen)
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
check_may_ask(const struct options *options)
{
  if (options->operating.yes || options->operating.dry_run
      || options->operating.expect != UINT64_MAX
      || (isatty(STDIN_FILENO) && isatty(STDERR_FILENO)))
    return EXIT_PASSED;
  return usage(command_name(options->command),
               "conditions select many, and there is no terminal to ask at",
               options->command == COMMAND_CANCEL ? "--yes, or --expect N" : "--yes",
               "--dry-run tells which they are");
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
confirm(const struct host *host, const char *format, ...)
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
  say("nothing was done");
  return EXIT_INCOMPLETE;
}
