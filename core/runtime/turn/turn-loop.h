/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the turn pool: its threads and what they share.
 *
 *   turn-thread.c      a thread, as its turn sees it
 *   turn-loop.c        the loop of a thread: fetch, work, fetch; which thread waits for work
 *   turn-deadlines.c   cancels calls that hang, and detects code that does not return
 *   turn-pool.c        starts, stops, health
 *
 * Locking: `lock` guards the pool and its threads, except a thread's caller and turn, which only
 * that thread uses.  Taken or called under it: the leases' lock (lease_rest), dk_cancel, and the
 * one log line of a stuck turn; never the provider.  A thread that does not return when the runtime
 * ends is abandoned: from then on (is_over) it uses only its own memory, and ends. */
#ifndef DK_RUNTIME_TURN_TURN_LOOP_H
#define DK_RUNTIME_TURN_TURN_LOOP_H

#include "core/runtime/lease/lost-fetch.h"
#include "core/runtime/shared/ticks.h"
#include "core/runtime/turn/turn-pool.h"
#include "core/runtime/turn/turn-thread.h"
#include "core/runtime/turn/turn.h"

enum turn_thread_state {
  THREAD_IDLE,
  THREAD_FETCHES,
  THREAD_CALLS,
  THREAD_RUNS,  /* the user's code */
  THREAD_WORKS, /* our own code, between the two */
  THREAD_IS_GONE
};

struct turn_thread {
  struct turn_pool *pool;
  pthread_t pthread;
  pthread_cond_t wake;       /* for its pauses */
  struct dk_caller *caller;
  struct dk_canceller *canceller;
  enum turn_thread_state state;
  int64_t alarm; /* when the deadlines thread checks it; INT64_MAX: never */
  int64_t overdue_at;
  dk_str instance;           /* whose code it runs */
  bool is_stuck;
  bool is_left;              /* at the end: it was abandoned */
  bool had_work;
  bool is_whole;             /* its fetch requested all messages */
  uint32_t failures;         /* of fetches, in a row */
  struct asker fetching;
  struct lost_fetch lost;
  struct turn turn;
};

struct turn_pool {
  struct turn_shared shared;
  struct fetch_ids fetch_ids;
  struct dk_lock lock;
  pthread_cond_t idle;       /* threads that wait to be the waiter */
  pthread_cond_t changed;    /* a thread is not busy any more */
  pthread_cond_t alarm_changed; /* an alarm is earlier than the deadlines thread knows */
  struct turn_thread **threads;
  uint32_t n_threads, most_threads;
  uint32_t n_alive, n_stuck, n_left;
  struct turn_thread *waiter;
  bool is_stopping;          /* no more fetches */
  bool is_over;              /* abandoned threads must not use the pool any more */
  atomic_bool is_ending;     /* turns must be given back */
  bool deadlines_stop;
  pthread_t deadlines_thread;
  int64_t next_alarm;
  uint32_t given_back, not_given_back;
};

/* All are called under the lock. */
void turn_thread_set_alarm(struct turn_thread *thread,
                           int64_t at); /* for the deadlines thread; INT64_MAX: none */
void turn_thread_begin_call(struct turn_thread *thread, enum turn_thread_state state, int64_t at);
/* Adds a thread.  False: no memory, no thread, or there are enough. */
bool turn_thread_add(struct turn_pool *pool);
/* Whether it runs a turn, or fetches. */
bool turn_thread_is_busy(const struct turn_thread *thread);

void turn_thread_free(struct turn_thread *thread); /* its thread has ended, or never began */

/* The main function of the deadlines thread; the argument is the pool. */
void *turn_deadlines_main(void *argument);

#endif
