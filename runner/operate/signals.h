/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end a command in good order: see host.h. */
#ifndef DK_RUNNER_OPERATE_SIGNALS_H
#define DK_RUNNER_OPERATE_SIGNALS_H

#include <durakit/host.h>

#include <stdbool.h>

struct host_signals;

/* To be called before any thread is made, which would take the signals else.  NULL: errno says why;
 * then they end the process as ever. */
struct host_signals *signals_watch(struct dk_canceller *canceller);
void signals_done(struct host_signals *signals);
bool signals_came(const struct host_signals *signals);
int signals_fd(const struct host_signals *signals);

#endif
