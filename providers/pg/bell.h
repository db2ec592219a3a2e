/* SPDX-License-Identifier: Apache-2.0 */
/* The bell's inside, which its two files share: bell.c, who waits here, and listener.c, what other
 * processes say.
 *
 * Locking: `mutex` guards what is above it in the struct, and the waiters; nothing is called under
 * it but the system.  What is below belongs to the thread. */
#ifndef DK_PG_BELL_H
#define DK_PG_BELL_H

#include "providers/pg/handle.h"
#include "providers/pg/mutex.h"

enum work { CONNECT, IDENTIFY, REGISTER, LISTEN, SETTLE, TELL, NO_WORK };

struct bell {
  struct waiter *waiters;
  bool is_stopping, has_thread;
  bool is_poked;          /* look what there is to do */
  bool wants_to_hear;     /* somebody has waited */
  bool hears;             /* whatever others tell */
  uint32_t to_tell;       /* RING_..., to others */
  int64_t end_by;         /* real time; once it is stopping */
  int64_t number;         /* of the row in the table of listeners; 0: none */
  struct identity identity; /* of the server */
  struct mutex mutex;

  struct handle *h;
  int wake_fd;
  pthread_t thread;

  PGconn *pg;             /* NULL: not connected */
  enum work under_way;
  int64_t since;          /* real time */
  int64_t limit_ms;       /* to connect to one host */
  short events;           /* of its socket, to be waited for */
  bool is_identified;     /* the server is the one */
  bool is_deaf;           /* there is a pooler between */
  bool is_registered, listens;
  bool has_failed;        /* and people were told so */
  bool has_said_deaf;
  char *writers;          /* that did not know of this listener; NULL: not asked yet */
  uint32_t telling;
  uint64_t tells;
};

/* ---- bell.c ---------------------------------------------------------------------------------- */

int64_t bell_real_ms(void);
/* An eventfd, or -1: it is readable; it is so no more. */
void bell_make_readable(int fd);
void bell_read_out(int fd);
/* Under the mutex: one waiter of each group that waits for one of these. */
void bell_ring_groups(struct bell *bell, uint32_t rings);
/* The waiters look, and then wait with the patience that is right now. */
void bell_set_hears(struct bell *bell, bool hears);

/* ---- listener.c ------------------------------------------------------------------------------ */

/* The thread. */
void *bell_listen(void *bell);
/* Ends the connection, and forgets what was known of it. */
void bell_drop(struct bell *bell);

#endif
