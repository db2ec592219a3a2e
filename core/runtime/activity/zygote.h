/* SPDX-License-Identifier: Apache-2.0 */
/* The zygote: a process without threads, forked before there were any, which makes the children
 * that activities run in.
 *
 * The runtime's side asks it, over a socket, for a child (its socket and its pid) or to bury one
 * (killed with its group, waited for).  Only the zygote kills: it has not waited for a child whose
 * pid it knows, so no other process can have that pid.  The zygote ends with the runtime's process,
 * and its children with it.
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
  int pidfd;  /* readable when it has died; -1: this kernel has none */
  struct frame_reader reader;
};

/* One that does nothing just now; NULL: the zygote is gone, or can make none. */
struct child *zygote_take(struct dk_zygote *zygote);
/* It is dead.  What it sent before can still be read; its socket may be held open by a process that
 * it has started. */
bool zygote_child_is_dead(const struct child *child);
/* It may be used again. */
void zygote_return(struct dk_zygote *zygote, struct child *child);
/* Kills it and what it has started, if it lives; frees.  Its status as waitpid tells it; -1: not
 * known. */
int zygote_bury(struct dk_zygote *zygote, struct child *child);
/* A descriptor that hangs up when the zygote dies, and with it all children; to be polled for no
 * events. */
int zygote_life(const struct dk_zygote *zygote);
bool zygote_is_dead(const struct dk_zygote *zygote);
/* True for the first who asks after the zygote has gone. */
bool zygote_is_news(struct dk_zygote *zygote);

/* The child's own side; does not return. */
DK_NORETURN void zygote_child_main(int fd, const struct dk_registry *registry);

#endif
