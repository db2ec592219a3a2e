/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the person at the terminal: what happened, where, expected, found, next.  Standard
 * error only; text from a provider is escaped, and secrets are masked, before it is written. */
#ifndef DK_RUNNER_CLI_MESSAGE_H
#define DK_RUNNER_CLI_MESSAGE_H

#include "core/base/text.h"
#include <durakit/host.h>
#include "runner/cli/secrets.h"

/* The exit codes of the command. */
enum {
  EXIT_PASSED = 0,
  EXIT_VIOLATED = 1,   /* a clause is violated */
  EXIT_USAGE = 2,      /* wrong option, setting or name; a store that exists already */
  EXIT_PLUGIN = 3,     /* the plugin cannot be loaded */
  EXIT_ENVIRONMENT = 4,/* the kit, its environment or the store failed */
  EXIT_INCOMPLETE = 5, /* nothing selected, interrupted, a canary missed */
  EXIT_FINDINGS = 6,   /* memory or race findings only */
  EXIT_UNCLEAR = 7     /* flaky or unexercised only */
};

/* Empty and NULL members are left out. */
struct problem {
  const char *where, *what, *expected, *found, *next;
};

/* As lines of text, the first one without "durakit: "; `secrets` may be NULL. */
void message_problem_text(struct dk_text *out, const struct problem *problem,
                          const struct secrets *secrets);
void message_problem(const struct problem *problem, const struct secrets *secrets);
/* One line, "durakit: ...". */
__attribute__((format(printf, 1, 2))) void message_print(const char *format, ...);

struct problem message_problem_of(const struct dk_refusal *refusal);

/* "did you mean X?", or `otherwise` when X is NULL.  Valid until the next call. */
const char *message_did_you_mean(struct dk_text *buffer, const char *best, const char *otherwise);

#endif
