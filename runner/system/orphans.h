/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that a check left behind: they become children of the runner, which is a subreaper. */
#ifndef DK_RUNNER_SYSTEM_ORPHANS_H
#define DK_RUNNER_SYSTEM_ORPHANS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A task that still runs: its child, and its folder, by which its orphans are recognised.  Without
 * a folder: the child only. */
struct running {
  pid_t pid;
  const char *folder;
};

/* Children that this process had before it became the runner: a shell may start some and exec the
 * runner, and the first process of a container gets others.  They, and the processes in their
 * groups, are neither ended nor reaped. */
struct stranger {
  pid_t pid, group;
  unsigned long long started; /* time since boot, because the pid may be used again */
};
struct strangers {
  struct stranger *items;
  size_t n, room;
};
/* Notes the present children; false: out of memory. */
bool orphans_note_strangers(struct strangers *strangers);
void orphans_forget_strangers(struct strangers *strangers);

/* Ends and reaps all children of this process but the strangers, those in `running` and their
 * orphans; describes those that were alive in `text` ("" if there were none).  Returns how many
 * were alive.  A process that cannot be ended is a stranger from then on. */
size_t orphans_end(struct strangers *strangers, const struct running *running, size_t n_running,
                   char *text, size_t size);

#endif
