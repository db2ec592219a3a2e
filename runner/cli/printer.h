/* SPDX-License-Identifier: Apache-2.0 */
/* What a command writes to standard output: lines for people, or one object of JSON.
 *
 * An object is written piece by piece, so that a list of any length needs no memory: first its
 * schema, then its items, then all the rest.  With --jsonl each item is a line of its own, and the
 * object, without its items, is the last line.
 *
 * If memory runs out, nothing more is written, so that incomplete output does not look complete,
 * and printer_done reports it.  A reader that closes its end (head) is not an error: nothing is
 * written any more, and the command learns it by printer_broken.  One thread at a time.
 */
#ifndef DK_RUNNER_CLI_PRINTER_H
#define DK_RUNNER_CLI_PRINTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/text.h"
#include "runner/cli/options.h"
#include "runner/cli/secrets.h"

enum form { FORM_TEXT, FORM_JSON, FORM_JSON_LINES };

struct printer {
  enum form form;
  unsigned width;             /* of the terminal, at which lines are broken; 0: they are not */
  const struct secrets *secrets; /* they must not be written; NULL: nothing is hidden */
  const char *schema, *items; /* "durakit.cancel/1", "instances"; items NULL: it has none */
  size_t n_items;
  bool changes;               /* the command writes to the store */
  int error;                  /* errno of the first writing that failed; 0: none did */
  bool no_memory;             /* not writing failed, but memory: a text or JSON is incomplete */
};

/* For output that has no other form, whatever the options are. */
struct printer printer_of_text(void);
struct printer printer_of(const struct options *options, const char *schema, const char *items);
/* Lines for people are wanted. */
bool printer_is_text(const struct printer *printer);
bool printer_broken(const struct printer *printer);
/* Writes and forgets the text; nothing where JSON is wanted. */
void printer_text(struct printer *printer, struct dk_text *text);
__attribute__((format(printf, 2, 3))) void printer_line(struct printer *printer,
                                                        const char *format, ...);
/* Takes the item (NULL: out of memory); does not write it where lines are wanted. */
void printer_item(struct printer *printer, json_t *item);
/* Takes a value without items: all that the command writes, indented. */
void printer_value(struct printer *printer, json_t *value);
/* Takes the rest of the object. */
void printer_end(struct printer *printer, json_t *rest);
/* Out of memory for a part of the output: nothing more is written. */
void printer_no_memory(struct printer *printer);
/* Hands what was written to the system. */
void printer_flush(struct printer *printer);
/* The exit code: `code`, or after a message that of output that could not be written. */
int printer_done(struct printer *printer, int code);

#endif
