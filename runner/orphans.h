/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that a check left behind: they come to the runner, which is a subreaper. */
#ifndef DK_RUNNER_ORPHANS_H
#define DK_RUNNER_ORPHANS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A task that still runs: its child, and its folder, by which what it leaves behind is told from
 * others.  Without a folder: the child only. */
struct running {
  pid_t pid;
  const char *folder;
};

/* Ends and reaps all children of this process but those in `running` and what they have left
 * behind; describes those that were alive in `text` ("" if there were none).  Returns how many
 * those were. */
size_t orphans_end(const struct running *running, size_t n_running, char *text, size_t size);

#endif
