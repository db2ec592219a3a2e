/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the bell, which its two files share: bell.c has the waiters of this handle, and
 * listener.c hears other processes.
 *
 * Locking: `mutex` guards the members above it in the struct, and the waiters; nothing is called
 * under it but the system.  The members below it belong to the thread. */
#ifndef DK_PG_BELL_H
#define DK_PG_BELL_H

#include "providers/pg/handle.h"
#include "providers/shared/mutex.h"

enum work { CONNECT, IDENTIFY, REGISTER, LISTEN, SETTLE, TELL, NO_WORK };

struct bell {
  struct waiter *waiters;
  bool is_stopping, has_thread;
  bool is_poked;          /* the thread has to look for work */
  bool wants_to_hear;     /* a call has waited */
  bool hears;             /* the notifications of other handles */
  uint32_t to_tell;       /* RING_... for other handles */
  int64_t end_by;         /* real time; while it is stopping */
  int64_t number;         /* of the row in the table of listeners; 0: none */
  struct identity identity; /* of the server */
  struct mutex mutex;

  struct handle *h;
  int wake_fd;
  pthread_t thread;

  PGconn *pg;             /* NULL: not connected */
  enum work under_way;
  int64_t since;          /* real time */
  int64_t limit_ms;       /* for a connection to one host */
  short events;           /* of its socket, to be waited for */
  bool is_identified;     /* the server is the right one */
  bool is_deaf;           /* a pooler is in between */
  bool is_registered, listens;
  bool has_failed;        /* and it was logged */
  bool has_said_deaf;
  char *writers;          /* transactions that did not know of this listener; NULL: not asked yet */
  uint32_t telling;
  uint64_t tells;
};

/* ---- bell.c ---------------------------------------------------------------------------------- */

/* Make an eventfd (or -1: nothing) readable, and not readable. */
void bell_make_readable(int fd);
void bell_read_out(int fd);
/* Under the mutex: rings for one waiter of each group that waits for one of these. */
void bell_ring_groups(struct bell *bell, uint32_t rings);
/* Has the waiters look, and then wait with the patience that now applies. */
void bell_set_hears(struct bell *bell, bool hears);

/* ---- listener.c ------------------------------------------------------------------------------ */

/* The thread. */
void *bell_listen(void *bell);
/* Ends the connection, and forgets its state. */
void bell_drop(struct bell *bell);

#endif
