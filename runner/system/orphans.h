/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that a check left behind: they come to the runner, which is a subreaper. */
#ifndef DK_RUNNER_SYSTEM_ORPHANS_H
#define DK_RUNNER_SYSTEM_ORPHANS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A task that still runs: its child, and its folder, by which what it leaves behind is told from
 * others.  Without a folder: the child only. */
struct running {
  pid_t pid;
  const char *folder;
};

/* Children that this process had before it was the runner: a shell starts some and becomes the
 * runner, and the first process of a container is given others.  They, and what is in their process
 * groups, are neither ended nor reaped. */
struct stranger {
  pid_t pid, group;
  unsigned long long started; /* since the boot, so that the pid may be used again */
};
struct strangers {
  struct stranger *items;
  size_t n, room;
};
/* Those that there are now; false: out of memory. */
bool orphans_note_strangers(struct strangers *strangers);
void orphans_forget_strangers(struct strangers *strangers);

/* Ends and reaps all children of this process but the strangers, those in `running` and what they
 * have left behind; describes those that were alive in `text` ("" if there were none).  Returns how
 * many those were.  What cannot be ended is a stranger from then on. */
size_t orphans_end(struct strangers *strangers, const struct running *running, size_t n_running,
                   char *text, size_t size);

#endif
