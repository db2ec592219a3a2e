/* SPDX-License-Identifier: Apache-2.0 */
/* Which instances a command is for, and what is sent to one: from the command line and files. */
#ifndef DK_RUNNER_OPERATE_TARGETS_H
#define DK_RUNNER_OPERATE_TARGETS_H

#include <durakit/manage.h>

#include "core/base/text.h"
#include "runner/operate/host.h"

/* The names and ids among the options could be some, at this provider.  EXIT_PASSED, or EXIT_USAGE
 * with the words said. */
int targets_check_names(const struct host *host);

struct ids {
  dk_str *items;
  size_t n;
  struct dk_text file; /* that they point into */
  size_t cr_line;      /* of the file: the first whose id ends in \r; 0: none does */
};

/* Those of the command line, or of --ids-from.  One that cannot be an id is refused, with where it
 * stands.  EXIT_PASSED, or what else with the words said; ids_done comes in any case. */
int targets_ids_take(const struct host *host, struct ids *ret_ids);
/* Some were not found: says it if lines that end in \r\n may be why. */
void targets_ids_hint(const struct host *host, const struct ids *ids);
void targets_ids_done(struct ids *ids);

/* The conditions were given, not ids. */
bool targets_are_many(const struct options *options);
struct dk_instance_filter targets_filter(const struct chosen *chosen);

/* Asks the person at the terminal.  EXIT_PASSED: go on; EXIT_INCOMPLETE: nothing is to be done. */
__attribute__((format(printf, 2, 3))) int targets_confirm(const struct host *host,
                                                          const char *format, ...);
/* EXIT_PASSED if --yes was given, or there is a terminal to ask; else the words are said. */
int targets_check_may_ask(const struct options *options);

/* The text of --input and --data; absent if it was not given.  Lives in `buffer`.  The codes of
 * ids_take; what is longer than the provider's limit of a payload is refused. */
int targets_take_payload(const struct host *host, struct dk_text *buffer, dk_str *ret_payload);

#endif
