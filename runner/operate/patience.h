/* SPDX-License-Identifier: Apache-2.0 */
/* A store that does not answer: the command says after a few seconds what it waits for, and after
 * its patience (--patience) cancels the call and ends, whether the call comes back or not.
 *
 * The time since the last success counts, not the command's: what goes on from page to page may
 * take its time, and what finds the store busy again and again is one wait.  A command that waits
 * for something until a moment of its own (--timeout) waits for the store until then, too.  A
 * thread of its own looks, since the command's waits in the call. */
#ifndef DK_RUNNER_OPERATE_PATIENCE_H
#define DK_RUNNER_OPERATE_PATIENCE_H

#include <durakit/host.h>

#include <stdbool.h>

#include "runner/cli/secrets.h"

struct patience;

/* `where` and the secrets stay the caller's, and live as long.  NULL: no memory, no thread, with
 * errno. */
struct patience *patience_begin(const char *where, const struct secrets *secrets, int64_t limit_ms,
                                struct dk_canceller *canceller);
/* No store is looked at any more; NULL is allowed. */
void patience_end(struct patience *patience);

/* A store is opened from now on; then that, or NULL if there is none. */
void patience_opens(struct patience *patience);
void patience_opened(struct patience *patience, struct dk_store *store);
/* What the plugin has to say by itself, by any thread: it may be what is waited for. */
void patience_heard(struct patience *patience, struct dk_bytes line);

/* From now on the store is waited for until this tick (when_ticks; INT64_MAX: without end), which
 * the option has said, in place of the patience with each answer. */
void patience_waits(struct patience *patience, int64_t until, const char *option);
/* The patience counts again. */
void patience_resumes(struct patience *patience);

/* It is over: a call was cancelled, for the store did not answer in time. */
bool patience_is_over(const struct patience *patience);
/* "the store did not answer within 30 s", and the option that has it wait longer. */
enum { PATIENCE_WORDS = 80 };
const char *patience_words(const struct patience *patience, char ret_what[PATIENCE_WORDS]);

#endif
