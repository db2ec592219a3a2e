/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end a command in good order: see host.h. */
#ifndef DK_RUNNER_OPERATE_SIGNALS_H
#define DK_RUNNER_OPERATE_SIGNALS_H

#include <durakit/host.h>

#include <stdbool.h>

enum { SIGNALS_A_MINUTE = 60000 };

struct host_signals;

/* To be called before any thread is made, which would take the signals else.  NULL: errno says why;
 * then they end the process as ever. */
struct host_signals *signals_watch(struct dk_canceller *canceller);
void signals_done(struct host_signals *signals);
bool signals_came(const struct host_signals *signals);
/* From now on `words`, which must last, are said each time that so much time has passed, since the
 * command is silent else while it waits for a call that takes long; -1: no more. */
void signals_tell(struct host_signals *signals, const char *words, int period_ms);
int signals_fd(const struct host_signals *signals);

#endif
