/* SPDX-License-Identifier: Apache-2.0 */
/* The token: tells an activity, and whoever has a clone, that it is to end.
 *
 * Set once, with its cause (DK_CAUSE_...); the first one wins.  Counted: it lives until the last
 * clone is freed, whatever became of the activity. */
#ifndef DK_RUNTIME_ACTIVITY_TOKEN_H
#define DK_RUNTIME_ACTIVITY_TOKEN_H

#include <durakit/runtime.h>

#include <stdbool.h>

/* NULL: no memory. */
dk_token *token_new(void);
/* Wakes all that wait for it; false: it was set before. */
bool token_set(dk_token *token, int32_t cause);
dk_token *token_clone(dk_token *token);

#endif
