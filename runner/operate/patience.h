/* SPDX-License-Identifier: Apache-2.0 */
/* A store that does not answer: after a few seconds the command reports what it waits for, and
 * after its patience (--patience) it cancels the call and ends, whether the call returns or not.
 *
 * The time since the last success counts, not that of the whole command: an operation of many pages
 * can take as long as it needs, but repeated calls of a busy store are one wait.  A command with a
 * limit of its own (--timeout) waits for the store until that limit, too.  A separate thread
 * watches, since the command's thread waits in the call. */
#ifndef DK_RUNNER_OPERATE_PATIENCE_H
#define DK_RUNNER_OPERATE_PATIENCE_H

#include <durakit/host.h>

#include <stdbool.h>

#include "runner/cli/secrets.h"

struct patience;

/* The caller keeps `where` and the secrets as long as the patience.  NULL with errno: no memory, or
 * no thread. */
struct patience *patience_begin(const char *where, const struct secrets *secrets, int64_t limit_ms,
                                struct dk_canceller *canceller);
/* Watches no store any more; NULL is allowed. */
void patience_end(struct patience *patience);

/* A store is being opened; then the store, or NULL if there is none. */
void patience_opens(struct patience *patience);
void patience_opened(struct patience *patience, struct dk_store *store);
/* A log line of the plugin, from any thread: it might name what the store waits for. */
void patience_heard(struct patience *patience, struct dk_bytes line);

/* From now on the command waits for the store until this tick (when_ticks; INT64_MAX: without end),
 * the limit that the option has given, instead of the patience with each answer. */
void patience_waits(struct patience *patience, int64_t until, const char *option);
/* The patience counts again. */
void patience_resumes(struct patience *patience);

/* The patience has ended: a call was cancelled, since the store did not answer in time. */
bool patience_is_over(const struct patience *patience);
/* "the store did not answer within 30 s", and the option that sets the limit. */
enum { PATIENCE_WORDS = 80 };
const char *patience_words(const struct patience *patience, char ret_what[PATIENCE_WORDS]);

#endif
