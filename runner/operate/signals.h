/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end a command in an orderly way: see host.h. */
#ifndef DK_RUNNER_OPERATE_SIGNALS_H
#define DK_RUNNER_OPERATE_SIGNALS_H

#include <durakit/host.h>

#include <stdbool.h>

enum { SIGNALS_A_MINUTE = 60000 };

struct host_signals;

/* Must be called before any other thread is made, which would receive the signals otherwise.  NULL
 * with errno: then signals end the process as usual. */
struct host_signals *signals_watch(struct dk_canceller *canceller);
void signals_done(struct host_signals *signals);
bool signals_came(const struct host_signals *signals);
/* From now on prints `words`, which must stay valid, each time that this period has passed, since
 * the command prints nothing else while it waits for a long call; -1: no more. */
void signals_tell(struct host_signals *signals, const char *words, int period_ms);
int signals_fd(const struct host_signals *signals);

#endif
