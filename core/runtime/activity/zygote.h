/* SPDX-License-Identifier: Apache-2.0 */
/* The zygote: a process without threads, forked before the program has any, which makes the child
 * processes of activities.
 *
 * The runtime's side requests over a socket a new child (its socket and its pid), or that a child
 * is buried (killed with its group, and waited for).  Only the zygote kills: it has not yet waited
 * for the children that it knows, so no other process can have one of their pids.  The zygote ends
 * with the runtime's process, and its children with it.
 *
 * A child runs one activity at a time (zygote-child.c), and is used again after one that returned.
 */
#ifndef DK_RUNTIME_ACTIVITY_ZYGOTE_H
#define DK_RUNTIME_ACTIVITY_ZYGOTE_H

#include <durakit/runtime.h>

#include <stdbool.h>
#include <sys/types.h>

#include "core/runtime/activity/frames.h"

struct child {
  struct child *next;
  pid_t pid;
  int pidfd;  /* readable when it has died; -1: this kernel has no pidfd */
  struct frame_reader reader;
};

/* An idle child; NULL: the zygote has ended, or cannot make one. */
struct child *zygote_take(struct dk_zygote *zygote);
/* Whether it is dead.  What it sent before can still be read; a process that it has started may
 * hold its socket open. */
bool zygote_child_is_dead(const struct child *child);
/* Returns a child that may be used again. */
void zygote_return(struct dk_zygote *zygote, struct child *child);
/* Kills it and the processes that it has started, if it lives; frees it.  Returns its status as
 * from waitpid; -1: unknown. */
int zygote_bury(struct dk_zygote *zygote, struct child *child);
/* A descriptor that hangs up when the zygote dies, and all children with it; poll it for no
 * events. */
int zygote_life(const struct dk_zygote *zygote);
bool zygote_is_dead(const struct dk_zygote *zygote);
/* True for the first caller after the zygote has ended. */
bool zygote_is_news(struct dk_zygote *zygote);

/* The main function of a child; does not return. */
DK_NORETURN void zygote_child_main(int fd, const struct dk_registry *registry);

#endif
