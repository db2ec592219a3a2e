/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime's options: defaults filled in, and refused where they do not fit. */
#ifndef DK_RUNTIME_OPTIONS_H
#define DK_RUNTIME_OPTIONS_H

#include <durakit/runtime.h>

/* *ret_options gets every member; an older caller's shorter struct is all right.  `name` stays
 * absent if it was (the default is made of the process, which is the runtime's business), and what
 * it points to stays the caller's: tags have no NUL behind them, so the runtime copies them.  What
 * the store has to be asked for (sessions) is not looked at.  DK_OK, or DK_INVALID with the
 * refusal: what, expected, found, next. */
dk_status options_complete(const struct dk_runtime_options *given,
                           struct dk_runtime_options *ret_options, struct dk_refusal *ret_refusal);

#endif
