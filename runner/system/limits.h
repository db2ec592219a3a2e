/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the runner's own process, which a child of the same user may set. */
#ifndef DK_RUNNER_SYSTEM_LIMITS_H
#define DK_RUNNER_SYSTEM_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

struct limits {
  struct rlimit own[RLIM_NLIMITS];
};

/* Those that are in force. */
void limits_note(struct limits *limits);
/* Sets back what is not as it was noted; false: all of it is.  The text names what was changed, and
 * whether it could be set back; what could not is noted as it is, and not found again. */
bool limits_restore(struct limits *limits, char *text, size_t size);
/* True if the noted limit of processor time is not used up. */
bool limits_leave_processor_time(const struct limits *limits);

#endif
