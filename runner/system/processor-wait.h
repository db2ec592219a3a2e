/* SPDX-License-Identifier: Apache-2.0 */
/* How long a process has waited for a processor while it could have run. */
#ifndef DK_RUNNER_SYSTEM_PROCESSOR_WAIT_H
#define DK_RUNNER_SYSTEM_PROCESSOR_WAIT_H

#include <stdint.h>
#include <sys/types.h>

/* The time of the thread that has waited most, in nanoseconds, since it began; 0 if the kernel does
 * not report it, or the process has ended. */
int64_t processor_wait_ns(pid_t pid);

#endif
