/* SPDX-License-Identifier: Apache-2.0 */
/* The file <store>-lock: a lock, and a bell.  All write transactions and checkpoints of all
 * processes run under the lock.
 *
 * The lock.  Bytes of the file are locked by the open file description (F_OFD_SETLK).  So the lock
 * also holds between handles of one process, and ends with its owner (but see Fork).  The first
 * byte is the store; the second byte is the gate before it.  A handle that waits for the store
 * holds the gate, and no other handle passes it.  So a busy process cannot take the store again and
 * again before a process that waits.  A wait uses real time, because no result depends on its time.
 * It ends when a descriptor of the caller becomes readable.  Each handle that has the store open
 * locks the third byte for reading.
 *
 * Fork.  An open description is shared with a child that was forked without exec: if its owner dies
 * with the store locked, the store stays locked until that child has ended too.  (With exec it is
 * closed.)  A host that forks does so before it opens a store, or its children exec.
 *
 * The bell.  A write into the file reaches all listeners, in every process, at once (inotify).
 * Ring the bell after a commit that may have made something ready.  A ring writes a number for each
 * queue, larger with each ring for that queue.  A call that waits for work reads the number before
 * it looks, and need not look again if the ring was for another queue.
 *
 * Listening.  A handle has one inotify descriptor (their number is limited per user, and closing
 * one costs 10 ms), and each waiting call an ear: an epoll descriptor over that and an eventfd of
 * its own.  The call that reads the events of inotify wakes all other ears, so that no call takes
 * away another call's ring.  Borrow the ear, hear it out, look for work, wait on ear->fd.
 *
 * Locking: the mutex of struct bell guards its ears and its descriptor; nothing is called under it
 * but the system.  A struct lockfile belongs to one thread at a time.
 */
#ifndef DK_SQLITE_LOCKFILE_H
#define DK_SQLITE_LOCKFILE_H

#include "providers/shared/mutex.h"
#include "providers/sqlite/why.h"

struct ear {
  int fd;               /* readable after a ring; for host->wait, events 1 */
  int told;             /* eventfd: another ear heard it */
  bool is_lent;
  struct ear *next;
};

enum queue { QUEUE_TURNS, QUEUE_WORK, QUEUES };
enum { RING_TURNS = 1u << QUEUE_TURNS, RING_WORK = 1u << QUEUE_WORK, RING_ALL = 3u };

struct bell {
  struct mutex mutex;
  char *path;           /* of the lock file */
  int inotify;          /* -1 until the first ear */
  uint64_t alarms;      /* rings that left no number */
  struct ear *ears;
};

struct lockfile {
  int fd;
  char *path;
  bool is_held;
  bool holds_gate;      /* outside lockfile_take: a release of it has failed */
  bool is_new;          /* this open has made it */
  struct bell *bell;    /* heard while it waits; belongs to the same handle */
  struct ear *ear;      /* made at the first wait */
};

/* The name, to be freed; NULL: no memory. */
char *lockfile_path(const char *store);

/* Opens <store>-lock and, with `create`, makes it.  Only users who may write the store get rights
 * to it.  If root makes it, it belongs to the store's owner; without a store it is 0600.  If the
 * file exists, only the rights of others are taken away.  Without `create` a missing file is
 * DK_NOT_FOUND. */
dk_status lockfile_open(struct lockfile *l, struct bell *bell, const char *store, bool create,
                        struct why *why);
void lockfile_close(struct lockfile *l);

/* Takes the store.  `wake_fd` (-1: none) ends the wait when it is readable.
 * Ask lockfile_look afterwards whether the file is current.  DK_OK; DK_BUSY after `busy_ms` of real
 * time; DK_CALL_CANCELLED: wake_fd became readable, nothing is held, and the caller has to look
 * why.  DK_REFUSED: the filesystem has no such locks. */
dk_status lockfile_take(struct lockfile *l, int64_t busy_ms, int wake_fd, struct why *why);
/* Takes it if it is free: DK_OK or DK_BUSY at once. */
dk_status lockfile_try(struct lockfile *l, struct why *why);
/* False: the system refused to unlock (for lack of memory, for example).  Then the others cannot
 * take the store until this is called again and succeeds. */
bool lockfile_release(struct lockfile *l);

/* Wakes every ear, in this process and in others.  False: nothing could be written. */
bool lockfile_ring(struct lockfile *l);
/* Wakes the ears of those that wait for these queues (RING_...); only while the store is held. */
bool lockfile_ring_for(struct lockfile *l, unsigned queues);
/* The number changes with each ring for this queue, and never with a ring for the other.  Hear the
 * ear out, read this, look for work, wait: while the number is the same there is nothing new.  Any
 * thread may call it. */
uint64_t lockfile_rung_for(const struct lockfile *l, enum queue queue);

/* Marks the store as in use until the close; only while it is held. */
dk_status lockfile_use(struct lockfile *l, struct why *why);

/* Removes the file; only while it is held.  A process that waits for it sees that it is not
 * current. */
dk_status lockfile_unlink(struct lockfile *l, struct why *why);
/* The same, but not if another has the store open. */
void lockfile_unlink_if_unused(struct lockfile *l);

/* Gives whether the name still leads to this file: the store was not removed meanwhile. */
dk_status lockfile_look(const struct lockfile *l, bool *ret_is_current, struct why *why);

dk_status bell_init(struct bell *bell, const char *store, struct why *why);
void bell_done(struct bell *bell); /* all ears must be back */

/* Lends an ear that hears every ring from now on; the lock file must exist.  Give it back after the
 * call, on every path. */
dk_status bell_lend(struct bell *bell, struct ear **ret_ear, struct why *why);
void bell_take_back(struct bell *bell, struct ear *ear);
/* Forgets the rings so far.  What is rung during or after it makes ear->fd readable again. */
void bell_hear_out(struct bell *bell, struct ear *ear);
/* How often inotify reported an event that is no write; one more with `raises`. */
uint64_t bell_alarms(struct bell *bell, bool raises);

#endif
