/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the runner's own process, which a child of the same user can change. */
#ifndef DK_RUNNER_SYSTEM_LIMITS_H
#define DK_RUNNER_SYSTEM_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

struct limits {
  struct rlimit own[RLIM_NLIMITS];
};

/* Notes the limits that are in force. */
void limits_note(struct limits *limits);
/* Restores limits that differ from the noted ones; false: none does.  The text names those that
 * were changed, and whether they could be restored; if one could not, its new value is noted, so
 * that it is reported once. */
bool limits_restore(struct limits *limits, char *text, size_t size);
/* True: the noted limit of processor time is not used up. */
bool limits_leave_processor_time(const struct limits *limits);

#endif
