/* SPDX-License-Identifier: Apache-2.0 */
/* Writes lines and JSON: see printer.h.  JSON has \uXXXX for all that is not ASCII, so that no text
 * of a store moves anything on a terminal. */
#include "runner/cli/printer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/cli/json-memory.h"
#include "runner/cli/message.h"
#include "runner/cli/wrap.h"

/* Those that write to the store, unless it is a dry run. */
static bool
does_change(const struct options *options)
{
  static const bool changing[COMMANDS] = {
    [COMMAND_START] = true,  [COMMAND_RAISE] = true,  [COMMAND_ENQUEUE] = true,
    [COMMAND_CANCEL] = true, [COMMAND_DELETE] = true, [COMMAND_PRUNE] = true,
  };

  return changing[options->command] && !options->operating.dry_run;
}

struct printer
printer_of_text(void)
{
  return (struct printer){.form = FORM_TEXT, .width = wrap_width(STDOUT_FILENO)};
}

struct printer
printer_of(const struct options *options, const char *schema, const char *items)
{
  enum form form = options->json              ? FORM_JSON
                   : options->operating.jsonl ? FORM_JSON_LINES
                                              : FORM_TEXT;
  bool for_people = form == FORM_TEXT && !options->operating.prometheus;

  return (struct printer){.form = form,
                          .width = for_people ? wrap_width(STDOUT_FILENO) : 0,
                          .schema = schema,
                          .items = items,
                          .changes = does_change(options)};
}

bool
printer_is_text(const struct printer *printer)
{
  return printer->form == FORM_TEXT;
}

bool
printer_broken(const struct printer *printer)
{
  return printer->error != 0;
}

static void
printer_put(struct printer *printer, const char *bytes, size_t size)
{
  if (printer->error == 0 && fwrite(bytes, 1, size, stdout) != size)
    printer->error = errno ? errno : EIO;
}

static void
put_string(struct printer *printer, const char *string)
{
  printer_put(printer, string, strlen(string));
}

void
printer_no_memory(struct printer *printer)
{
  printer->no_memory = printer->no_memory || printer->error == 0;
  printer->error = printer->error ? printer->error : ENOMEM;
}

void
printer_flush(struct printer *printer)
{
  if (printer->error == 0 && fflush(stdout) != 0)
    printer->error = errno ? errno : EIO;
}

/* ---- lines ----------------------------------------------------------------------------------- */

void
printer_text(struct printer *printer, struct dk_text *text)
{
  struct dk_text masked = DK_TEXT_EMPTY;
  struct dk_text lines = DK_TEXT_EMPTY;

  secrets_mask(printer->secrets, &masked, dk_text_str(text), text->length);
  if (printer->form == FORM_TEXT)
    wrap_text(&lines, dk_text_str(&masked), masked.length, printer->width);
  if (dk_text_failed(text) || dk_text_failed(&masked) || dk_text_failed(&lines))
    printer_no_memory(printer);
  printer_put(printer, dk_text_str(&lines), lines.length);
  dk_text_done(&masked);
  dk_text_done(&lines);
  dk_text_done(text);
}

void
printer_line(struct printer *printer, const char *format, ...)
{
  struct dk_text text = DK_TEXT_EMPTY;
  va_list args;

  va_start(args, format);
  dk_text_vprintf(&text, format, args);
  va_end(args);
  dk_text_puts(&text, "\n");
  printer_text(printer, &text);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Without the opening brace, if it continues what was written before.  DEL is the only control
 * character that JSON, and so jansson, does not escape. */
static void
dump(struct printer *printer, json_t *value, size_t flags, bool goes_on)
{
  char *bytes = json_dumps(value, flags | JSON_ENSURE_ASCII);
  const char *from = bytes ? bytes + (goes_on ? 1 : 0) : "";
  struct dk_text masked = DK_TEXT_EMPTY;

  secrets_mask(printer->secrets, &masked, from, strlen(from));
  if (!bytes || json_memory_failed() || dk_text_failed(&masked))
    printer_no_memory(printer);
  for (const char *at = dk_text_str(&masked); *at;) {
    size_t n = strcspn(at, "\177");
    printer_put(printer, at, n);
    put_string(printer, at[n] ? "\\u007F" : "");
    at += n + (at[n] ? 1 : 0);
  }
  dk_text_done(&masked);
  free(bytes);
}

/* The beginning of the object, up to its first item. */
static void
printer_begin(struct printer *printer)
{
  put_string(printer, "{\"schema\": \"");
  put_string(printer, printer->schema);
  put_string(printer, "\", \"");
  put_string(printer, printer->items);
  put_string(printer, "\": [");
}

void
printer_item(struct printer *printer, json_t *item)
{
  if (printer->form == FORM_JSON && printer->n_items == 0)
    printer_begin(printer);
  if (printer->form == FORM_JSON)
    put_string(printer, printer->n_items == 0 ? "\n  " : ",\n  ");
  if (printer->form != FORM_TEXT)
    dump(printer, item, 0, false);
  if (printer->form == FORM_JSON_LINES)
    put_string(printer, "\n");
  printer->n_items++;
  json_decref(item);
}

void
printer_value(struct printer *printer, json_t *value)
{
  dump(printer, value, JSON_INDENT(2), false);
  put_string(printer, "\n");
  json_decref(value);
}

void
printer_end(struct printer *printer, json_t *rest)
{
  bool is_empty = json_object_size(rest) == 0;

  if (printer->form != FORM_TEXT) {
    if (printer->form == FORM_JSON && printer->items) {
      if (printer->n_items == 0)
        printer_begin(printer);
      put_string(printer, printer->n_items == 0 ? "]" : "\n]");
    } else {
      put_string(printer, "{\"schema\": \"");
      put_string(printer, printer->schema);
      put_string(printer, "\"");
    }
    put_string(printer, is_empty ? "" : ", ");
    dump(printer, rest, 0, true);
    put_string(printer, "\n");
  }
  json_decref(rest);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The work is done even if its output cannot be written. */
static const char *
next_of_printer(const struct printer *printer, int code)
{
  if (!printer->changes)
    return "this command changes nothing; you can repeat it";
  return code == EXIT_PASSED
           ? "everything was done; durakit status shows the status of instances"
           : "what could be done was done; durakit status shows the status of instances";
}

int
printer_done(struct printer *printer, int code)
{
  printer_flush(printer);
  if (printer->error == 0)
    return code;
  if (printer->error == EPIPE)
    return EXIT_INCOMPLETE; /* the reader has closed the output on purpose: no message */
  message_problem(printer->no_memory
                    ? &(struct problem){NULL, "out of memory: the output is incomplete",
                                        NULL, NULL, next_of_printer(printer, code)}
                    : &(struct problem){"standard output", "cannot be written", NULL,
                                        strerror(printer->error), next_of_printer(printer, code)},
                  NULL);
  return EXIT_ENVIRONMENT;
}
