/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime's options: fills in defaults, and refuses options that do not fit. */
#ifndef DK_RUNTIME_OPTIONS_H
#define DK_RUNTIME_OPTIONS_H

#include <durakit/runtime.h>

/* *ret_options gets every member; an older caller's shorter struct is accepted.  `name` stays
 * absent if it was (the runtime makes the default from the process), and what it points to still
 * belongs to the caller: tags have no NUL after them, so the runtime copies them.  What depends on
 * the store (sessions) is not checked here.  DK_OK, or DK_INVALID with the refusal: what, expected,
 * found, next. */
dk_status options_complete(const struct dk_runtime_options *given,
                           struct dk_runtime_options *ret_options, struct dk_refusal *ret_refusal);

#endif
