/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the activity pool: its activities, its slots, its threads.
 *
 * A struct activity is one activity that was handed to this worker, from its fetch to its end:
 *
 *     READY -> RUNS -> ENDS          the body returned; its result is acknowledged or given back ->
 *                   QUARANTINED   it did not return within the grace: its slot has a new thread
 *
 * Threads: one poller fetches (activity-fetch.c); each slot has one that runs activities
 * (activity-slot.c) and ends them (activity-finish.c); the deadlines thread watches graces, and
 * calls of the store that hang (activity-deadlines.c).
 *
 * Locking: the pool's `lock` guards the lists, the states, and everything that no comment assigns
 * to one thread.  Neither the store, nor the log, nor a body is called under it; lease_rest,
 * lease_good_at, health_rest and token_set, which have their own locks, are.
 *
 * Invariants, whenever the lock is free; the asserts name them by number:
 *
 *  1. The lists, the counts and the states change under `lock` only.
 *  2. A state is left in the order of the drawing and never entered again: RUNS and ENDS are
 *     entered by the activity's own thread, QUARANTINED by the deadlines thread, and only from
 *     RUNS.  An activity that does not run at all goes from READY to ENDS.
 *  3. `activities` holds n_activities, none of them in quarantine, and no more than n_slots.
 *  4. `ready` holds the activities that no slot has taken yet, all of them READY; `ready_end` is
 *     where the next one is linked.
 *  5. An activity in a list has a reference, and a lease until it is in quarantine; the last
 *     reference frees it, without the lock.
 *  6. Its token is set at most once, before it ENDS; a grace runs only after that.
 *  7. A slot makes one call of the store at a time; while it makes none, cancel_at is INT64_MAX
 *     and the deadlines thread does not cancel it.
 *  8. Each thread that runs activities is one of n_slots or, until its body returns, one of
 *     n_quarantined. */
#ifndef DK_RUNTIME_ACTIVITY_ACTIVITY_H
#define DK_RUNTIME_ACTIVITY_ACTIVITY_H

#include "core/runtime/activity/activity-pool.h"
#include "core/runtime/activity/task.h"
#include "core/runtime/lease/lost-fetch.h"
#include "core/runtime/shared/retry-counts.h"
#include "core/runtime/shared/ticks.h"

enum activity_state { ACTIVITY_READY, ACTIVITY_RUNS, ACTIVITY_ENDS, ACTIVITY_QUARANTINED };

/* The token of a row that a commit deleted while the poller was still fetching it. */
struct early {
  struct early *next;
  int64_t since_ns;        /* the time of the commit */
  size_t length;
  char token[];
};

struct slot;
struct activity {
  struct activity *next, *next_ready;
  struct activity_pool *pool;
  uint32_t references;     /* the thread's, and those of threads that report it without the lock */
  enum activity_state state;
  int32_t learnt;          /* valid with the token's cause */
  int64_t signal_delay_ns; /* how long after the cause the token was set: see activity_signal */
  struct slot *slot;       /* the slot that runs it */
  int64_t grace_ms;
  int64_t grace_until;     /* a tick; 0: the body was not signalled to end */
  uint32_t judged;         /* attempts that count against it: without those that an outage has
                              ended */
  bool was_killed;         /* its own thread's: the child was killed because the grace had ended */
  /* Unchanged once it is ready, except for the task, which is its own thread's: */
  struct dk_task task;
  struct lease *lease;
  struct dk_bytes lock_token;
  dk_str payload, input;
  const char *unreadable;  /* why; NULL: its order was read */
  const struct registered_activity *registered; /* NULL: it is not registered */
};

/* A thread that runs activities, with its caller and canceller. */
struct slot {
  struct slot *next;
  struct activity_pool *pool;
  pthread_t thread;
  struct dk_caller *caller;
  struct dk_canceller *canceller;
  int64_t cancel_at;       /* when to cancel the running call; INT64_MAX: none runs */
  bool is_being_cancelled; /* the deadlines thread is cancelling it */
  bool is_quarantined;
  bool is_over;            /* the thread uses nothing any more: it can be joined */
};

struct activity_pool {
  struct activity_pool_setup setup;
  struct retry_counts *retries; /* have their own lock */
  struct dk_lock lock;
  pthread_cond_t has_ready;     /* for the slots */
  pthread_cond_t changed;       /* for the poller, and for threads that wait for an end */
  pthread_cond_t deadlines_changed;
  struct activity *activities; /* all that are not in quarantine */
  struct activity *ready, **ready_end;
  uint32_t n_activities;
  struct slot *slots;           /* all, including those in quarantine */
  uint32_t n_slots;             /* number of those not in quarantine */
  uint32_t n_quarantined;
  struct activity *to_give_back; /* in quarantine when the runtime stops; linked by `next` */
  struct slot own;               /* used by activity_pool_end; has no thread */

  pthread_t poller, deadlines_thread;
  struct dk_caller *fetcher;
  struct dk_canceller *fetch_canceller;
  struct fetch_ids fetch_ids;
  struct lost_fetch lost;       /* the poller's own */
  struct asker fetching;        /* the poller's own */
  bool is_late;                 /* the poller's own: the last fetch returned leases that had
                                   ended */
  bool is_fetching;             /* the poller may hold rows that are not activities yet: */
  struct early *early;          /* those of them that a commit has deleted */

  bool is_draining;             /* nothing more is fetched */
  bool is_poller_over;
  int64_t end_at;               /* a tick: when calls of the store are cancelled */
  bool is_ending;               /* activities that are given back are counted: */
  struct dk_leftover leftover;
  bool is_over;                 /* the slots end once nothing is ready */
  bool is_deadlines_over;
};

/* ---- activities (activity.c) ----------------------------------------------------------------- */

/* NULL: no memory.  Its lease is kept from now on; it is not in a list yet. */
struct activity *activity_new(struct activity_pool *pool, const struct dk_work_item *item);
/* Drops a reference, and frees with the last one; without the lock. */
void activity_drop(struct activity *activity);
/* Under the lock: */
void activity_add(struct activity *activity);
void activity_remove(struct activity *activity);
/* The first notes that a commit has deleted a row that might be in a running fetch; the second
 * returns whether it was this activity's row. */
void activity_note_early(struct activity_pool *pool, dk_str token, int64_t since_ns);
bool activity_is_early(const struct activity *activity, int64_t *ret_since_ns);
void activity_forget_early(struct activity_pool *pool);
/* Sets the token if the body has not ended; false: nothing changed.  since_ns (ticks_ns): when the
 * row was deleted; 0: unknown, but it existed when the lease was last known to be valid. */
bool activity_signal(struct activity *activity, int32_t cause, int32_t learnt, int64_t since_ns);
/* Counts how the worker learnt that it must end, and how long that took; without the lock. */
void activity_count_learnt(const struct activity *activity, int32_t learnt, int64_t ns);
/* The same when its end could not be stored. */
void activity_count_learnt_late(const struct activity *activity, int32_t learnt);
/* Logs a signal and counts it; without the lock. */
void activity_log_signal(const struct activity *activity, int32_t cause, int32_t learnt);
/* This attempt ended because the store was unreachable: it does not count against the activity. */
void activity_pardon(const struct activity *activity);
/* The same for an item that never became a struct activity. */
void activity_pardon_item(struct activity_pool *pool, const struct dk_work_item *item);
/* It cannot be run here: returns how often in a row, and whether it is the first time for this
 * reason. */
uint32_t activity_count_delay(const struct activity *activity, enum delay why, bool *ret_first);
void activity_delayed(const struct activity *activity, enum delay why, int64_t delay_ms);
/* It has ended, and nothing about it needs to be remembered. */
void activity_forget(const struct activity *activity);
/* Called by the leases: its lease was lost. */
void activity_lost(void *context, enum loss loss);

struct dk_log_event activity_event(const struct activity *activity, int32_t number);

/* ---- slots (activity-slot.c) ----------------------------------------------------------------- */

bool slot_begin(struct slot *slot, struct activity_pool *pool);
void slot_free(struct slot *slot);
/* Starts one more thread; false: no memory, no threads.  Under the lock. */
bool slot_start(struct activity_pool *pool);
/* Begins a call of the store, which is cancelled at that tick at the latest; the canceller is reset
 * for it.  Not under the lock. */
void slot_begin_call(struct slot *slot, int64_t until);
void slot_end_call(struct slot *slot);

/* ---- ends (activity-finish.c) ---------------------------------------------------------------- */

/* Stores the outcome of an activity whose body has ended, or never ran. */
void activity_settle(struct slot *slot, struct activity *activity, const struct outcome *outcome);
/* True: the store has taken it back, or another worker has it by now. */
bool activity_give_back(struct slot *slot, struct activity *activity, int64_t delay_ms,
                        bool is_counted);
int64_t activity_pool_backoff(const struct activity_pool *pool, uint32_t attempt);

/* ---- the other threads ----------------------------------------------------------------------- */

void *activity_fetch_main(void *pool);
void *activity_deadlines_main(void *pool);
/* Whether too many are in quarantine to fetch more; under the lock. */
bool activity_pool_is_capped(const struct activity_pool *pool);

/* ---- processes (activity-child.c) ------------------------------------------------------------ */

/* Runs the body in a child, and enforces its grace. */
void activity_run_in_child(struct activity *activity, struct outcome *ret_outcome);

#endif
