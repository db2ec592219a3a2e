/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the turns: seats (threads) and what they share.
 *
 *   turn-thread.c     a seat as its job sees it
 *   turn-loop.c  a seat's life: fetch, work, fetch; who waits for work
 *   turn-deadlines.c  calls hanging calls back, and finds code that does not come back
 *   turn-pool.c    starts, stops, health
 *
 * Locking: `lock` guards turns and seats, but for a seat's caller and job, which are its thread's.
 * Under it: the keeper's lock (lease_rest), dk_cancel, and the one log line of a stuck turn; never
 * a call of the provider.  A seat that does not come back when the runtime ends is left: from then
 * on (is_over) it touches nothing but its own memory, and ends. */
#ifndef DK_RUNTIME_TURN_TURN_LOOP_H
#define DK_RUNTIME_TURN_TURN_LOOP_H

#include "core/runtime/lease/lost-fetch.h"
#include "core/runtime/shared/ticks.h"
#include "core/runtime/turn/turn-pool.h"
#include "core/runtime/turn/turn-thread.h"
#include "core/runtime/turn/turn.h"

enum seat_state {
  SEAT_IDLE,
  SEAT_FETCHES,
  SEAT_CALLS,
  SEAT_RUNS,   /* the user's code */
  SEAT_WORKS,  /* our own, between those */
  SEAT_IS_GONE
};

struct seat {
  struct turns *turns;
  pthread_t thread;
  pthread_cond_t wake;       /* for its pauses */
  struct dk_caller *caller;
  struct dk_canceller *canceller;
  enum seat_state state;
  int64_t alarm;             /* the watcher looks at it then; INT64_MAX: never */
  int64_t overdue_at;
  dk_str instance;           /* whose code it runs */
  bool is_stuck;
  bool is_left;              /* at the end: nobody waits for it */
  bool had_work;
  bool is_whole;             /* its fetch asked for all messages */
  uint32_t failures;         /* of fetches, in a row */
  struct asker fetching;
  struct lost_fetch lost;
  struct job job;
};

struct turns {
  struct turning w;
  struct fetch_ids fetch_ids;
  pthread_mutex_t lock;
  pthread_cond_t idle;       /* those who wait to be the waiter */
  pthread_cond_t changed;    /* a seat is not busy any more */
  pthread_cond_t watches;    /* an alarm is sooner than the watcher knows */
  struct seat **seats;
  uint32_t n_seats, most_seats;
  uint32_t n_alive, n_stuck, n_left;
  struct seat *waiter;
  bool is_stopping;          /* no fetch any more */
  bool is_over;              /* those that are left are alone */
  atomic_bool is_ending;     /* jobs are to be given back */
  bool watcher_stops;
  pthread_t watcher;
  int64_t next_alarm;
  uint32_t given_back, not_given_back;
};

/* All under the lock. */
void seat_set_alarm(struct seat *seat, int64_t at); /* for the watcher; INT64_MAX: none */
void seat_begin_call(struct seat *seat, enum seat_state state, int64_t at);
/* One more thread.  False: no memory, no thread, or there are enough. */
bool seat_add(struct turns *turns);
/* Does it do a job, or fetch? */
bool seat_is_busy(const struct seat *seat);

void seat_free(struct seat *seat); /* its thread has ended, or never began */

/* The watcher's thread; the argument is the turns. */
void *watcher_main(void *argument);

#endif
