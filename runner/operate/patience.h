/* SPDX-License-Identifier: Apache-2.0 */
/* A store that does not answer: the command says after a few seconds what it waits for, and after
 * its patience (--patience) cancels the call and ends, whether the call comes back or not.
 *
 * It is the one call that counts, not the command: what goes on from page to page may take its
 * time.  A thread of its own looks, since the command's waits in the call. */
#ifndef DK_RUNNER_OPERATE_PATIENCE_H
#define DK_RUNNER_OPERATE_PATIENCE_H

#include <durakit/host.h>

#include <stdbool.h>

#include "runner/mask.h"

enum { PATIENCE_MS = 30 * 1000 }; /* if none is given */

struct patience;

/* `where` and the mask stay the caller's, and live as long.  NULL: no memory, no thread, with
 * errno. */
struct patience *patience_begin(const char *where, const struct mask *mask, int64_t limit_ms,
                                struct dk_canceller *canceller);
/* No store is looked at any more; NULL is allowed. */
void patience_end(struct patience *patience);

/* A store is opened from now on; then that, or NULL if there is none. */
void patience_opens(struct patience *patience);
void patience_opened(struct patience *patience, struct dk_store *store);
/* What the plugin has to say by itself, by any thread: it may be what is waited for. */
void patience_heard(struct patience *patience, struct dk_bytes line);

/* It is over: a call was cancelled, for the store did not answer in time. */
bool patience_is_over(const struct patience *patience);

#endif
