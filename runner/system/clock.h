/* SPDX-License-Identifier: Apache-2.0 */
/* The clock for limits and measurements. */
#ifndef DK_RUNNER_SYSTEM_CLOCK_H
#define DK_RUNNER_SYSTEM_CLOCK_H

#include <stdint.h>

/* Never moves backwards. */
int64_t clock_ns(void);

#endif
