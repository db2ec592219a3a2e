/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of activities that are too short.  An activity whose worker is lost is run again when its
 * lease has ended; a limit that is not above the lease has ended by then, and the activity loses
 * against it however short its work is.
 *
 * Which places in the code were told of is remembered, so that each is told once.  Any thread; one
 * lock, under which nothing is called. */
#ifndef DK_RUNTIME_TURN_SHORT_LIMITS_H
#define DK_RUNTIME_TURN_SHORT_LIMITS_H

#include <durakit/runtime.h>

#include <stdbool.h>

struct short_limits;
struct short_limits *short_limits_new(void);         /* NULL: no memory */
void short_limits_free(struct short_limits *limits); /* NULL is allowed */
/* False: this place was told of before, or too many were.  line may be NULL. */
bool short_limits_are_news(struct short_limits *limits, dk_str orchestration, dk_str activity,
                           const char *line);

#endif
