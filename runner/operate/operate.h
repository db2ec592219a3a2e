/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that operate a store: durakit start, status, wait, history, raise, enqueue,
 * cancel, instances, delete, prune, stats.  Each returns the exit code; 1, EXIT_VIOLATED, means
 * that not everything has the wanted result. */
#ifndef DK_RUNNER_OPERATE_OPERATE_H
#define DK_RUNNER_OPERATE_OPERATE_H

#include "runner/cli/options.h"

/* The one that the options name. */
int operate(const struct options *options);

int operate_start(const struct options *options);
int operate_raise(const struct options *options);
int operate_enqueue(const struct options *options);
int operate_status(const struct options *options);
int operate_wait(const struct options *options);
int operate_history(const struct options *options);
int operate_cancel(const struct options *options);
int operate_instances(const struct options *options);
int operate_delete(const struct options *options);
int operate_prune(const struct options *options);
int operate_stats(const struct options *options);

#endif
