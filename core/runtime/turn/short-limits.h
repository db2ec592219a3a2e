/* SPDX-License-Identifier: Apache-2.0 */
/* Detects limits of activities that are too short.  An activity whose worker is lost runs again
 * when its lease has ended.  A limit that is not longer than the lease has ended by then, and
 * cancels the activity however short its work is.
 *
 * The places in the code that were logged are remembered, so that each is logged once.  Any thread;
 * one lock, under which nothing is called. */
#ifndef DK_RUNTIME_TURN_SHORT_LIMITS_H
#define DK_RUNTIME_TURN_SHORT_LIMITS_H

#include <durakit/runtime.h>

#include <stdbool.h>

struct short_limits;
struct short_limits *short_limits_new(void);         /* NULL: no memory */
void short_limits_free(struct short_limits *limits); /* NULL is allowed */
/* False: this place was logged before, or too many were.  line may be NULL. */
bool short_limits_are_news(struct short_limits *limits, dk_str orchestration, dk_str activity,
                           const char *line);

#endif
