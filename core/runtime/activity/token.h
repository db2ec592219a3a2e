/* SPDX-License-Identifier: Apache-2.0 */
/* The token: signals an activity, and every holder of a clone, that it must end.
 *
 * It is set once, with its cause (DK_CAUSE_...); the first cause remains.  It is counted: it is
 * freed with its last clone, independently of the activity. */
#ifndef DK_RUNTIME_ACTIVITY_TOKEN_H
#define DK_RUNTIME_ACTIVITY_TOKEN_H

#include <durakit/runtime.h>

#include <stdbool.h>

/* NULL: no memory. */
dk_token *token_new(void);
/* Sets the token and wakes all threads that wait for it; false: it was set before. */
bool token_set(dk_token *token, int32_t cause);
dk_token *token_clone(dk_token *token);

#endif
