/* SPDX-License-Identifier: Apache-2.0 */
/* Which instances a command is for, and what is sent to one: from the command line and files. */
#ifndef DK_RUNNER_OPERATE_TARGETS_H
#define DK_RUNNER_OPERATE_TARGETS_H

#include <durakit/manage.h>

#include "core/base/text.h"
#include "runner/operate/host.h"

/* The names and ids among the options are valid for this provider.  EXIT_PASSED, or EXIT_USAGE
 * after a message. */
int targets_check_names(const struct host *host);

struct ids {
  dk_str *items;
  size_t n;
  struct dk_text file; /* the ids point into it */
  size_t cr_line;      /* of the file: the first whose id ends in \r; 0: none does */
};

/* Those of the command line, or of --ids-from.  An invalid one is refused, with its line.
 * EXIT_PASSED, or another code after a message; ids_done must follow in any case. */
int targets_ids_take(const struct host *host, struct ids *ret_ids);
/* Some were not found: prints a hint if lines that end in \r\n may be the cause. */
void targets_ids_hint(const struct host *host, const struct ids *ids);
void targets_ids_done(struct ids *ids);

/* Conditions were given, not ids. */
bool targets_are_many(const struct options *options);
struct dk_instance_filter targets_filter(const struct chosen *chosen);

/* Loads the plugin, takes the ids if there are no conditions, and opens the store, read-only for a
 * dry run.  `needs_admin` as for host_load; the codes of ids_take. */
int targets_begin(struct host *host, struct ids *ids, const struct options *options,
                  const char *needs_admin);

/* Asks the person at the terminal.  EXIT_PASSED: continue; EXIT_INCOMPLETE: do nothing. */
__attribute__((format(printf, 2, 3))) int targets_confirm(const struct host *host,
                                                          const char *format, ...);
/* EXIT_PASSED if --yes was given, or there is a terminal to ask on; otherwise EXIT_USAGE after a
 * message. */
int targets_check_may_ask(const struct options *options);

/* The text of --input and --data, kept in `buffer`; absent if it was not given.  The codes of
 * ids_take; a text that is longer than the provider's limit for payloads is refused. */
int targets_take_payload(const struct host *host, struct dk_text *buffer, dk_str *ret_payload);

#endif
