/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the worker: its activities, its slots, its threads.
 *
 * An activity is one activity that was handed to this worker, from its fetch to its end:
 *
 *     READY -> RUNS -> ENDS          the body returned; what it said is acknowledged or given back
 *                   -> QUARANTINED   it did not return in the grace: its slot has a new thread
 *
 * Threads: one poller fetches (activity-fetch.c); each slot has one that runs activities
 * (activity-slot.c) and ends them (activity-finish.c); the deadlines thread sees to times: graces,
 * calls of the store that hang (activity-deadlines.c).
 *
 * Locking: the worker's `lock` guards the lists, the states and all that is not said to be
 * somebody's own.  Under it neither the store, nor the log, nor a body is called; lease_rest,
 * lease_good_at, health_rest and token_set, which have locks of their own, are.
 *
 * Invariants, whenever the lock is free; the asserts name them by number:
 *
 *  1. The lists, the counts and the states change under `lock` only.
 *  2. A state is left in the order of the drawing and never entered again: RUNS and ENDS are
 *     entered by the activity's own thread, QUARANTINED by the deadlines thread, and only from
 *     RUNS.  What does not run at all goes from READY to ENDS.
 *  3. `activities` holds n_activities, none of them in quarantine, and no more than n_slots.
 *  4. `ready` holds the activities that no slot has taken yet, all of them READY; `ready_end` is
 *     where the next one is linked.
 *  5. An activity in a list has a reference, and a lease until it is in quarantine; the last
 *     reference frees it, without the lock.
 *  6. Its token is set at most once, before it ENDS; a grace runs only after that.
 *  7. A slot makes one call of the store at a time; while it makes none, call_back_at is INT64_MAX
 *     and the deadlines thread does not call it back.
 *  8. Each thread that runs activities is one of n_slots or, until its body comes back, one of
 *     n_quarantined. */
#ifndef DK_RUNTIME_ACTIVITY_ACTIVITY_H
#define DK_RUNTIME_ACTIVITY_ACTIVITY_H

#include "core/runtime/activity/activity-pool.h"
#include "core/runtime/activity/task.h"
#include "core/runtime/lease/lost-fetch.h"
#include "core/runtime/shared/retry-counts.h"
#include "core/runtime/shared/ticks.h"

enum activity_state { ACTIVITY_READY, ACTIVITY_RUNS, ACTIVITY_ENDS, ACTIVITY_QUARANTINED };

/* The token of a row that a commit has deleted while the poller was still bringing it. */
struct early {
  struct early *next;
  int64_t since_ns;        /* the commit */
  size_t length;
  char token[];
};

struct slot;
struct activity {
  struct activity *next, *next_ready;
  struct activity_pool *pool;
  uint32_t references;     /* the thread's, and of who tells of it without the lock */
  enum activity_state state;
  int32_t learnt;          /* with the token's cause */
  int64_t told_after_ns;   /* it was set so long after there was reason to, see activity_signal */
  struct slot *slot;       /* that runs it */
  int64_t grace_ms;
  int64_t grace_until;     /* a tick; 0: the body was not told to end */
  uint32_t judged;         /* attempts that count against it: not those that an outage has ended */
  bool was_killed;         /* its own thread's: the child was, for the grace was over */
  /* Does not change once it is ready, but for the task, which is its own thread's: */
  struct dk_task task;
  struct lease *lease;
  struct dk_bytes lock_token;
  dk_str payload, input;
  const char *unreadable;  /* why; NULL: its order was read */
  const struct registered_activity *registered; /* NULL: it is not */
};

/* A thread that runs activities, with what it calls the store with. */
struct slot {
  struct slot *next;
  struct activity_pool *pool;
  pthread_t thread;
  struct dk_caller *caller;
  struct dk_canceller *canceller;
  int64_t call_back_at;    /* the call that runs; INT64_MAX: none does */
  bool is_called_back;     /* the deadlines thread is at it */
  bool is_quarantined;
  bool is_over;            /* the thread touches nothing any more: it can be joined */
};

struct activity_pool {
  struct activity_pool_setup setup;
  struct retry_counts *retries; /* with a lock of their own */
  struct dk_lock lock;
  pthread_cond_t has_ready;     /* for the slots */
  pthread_cond_t changed;       /* for the poller, and who waits for an end */
  pthread_cond_t deadlines_changed;
  struct activity *activities; /* those that are not in quarantine */
  struct activity *ready, **ready_end;
  uint32_t n_activities;
  struct slot *slots;           /* all, those in quarantine too */
  uint32_t n_slots;             /* not in quarantine */
  uint32_t n_quarantined;
  struct activity *to_give_back; /* in quarantine when the runtime stops; by `next` */
  struct slot own;               /* activity_pool_end's caller; no thread */

  pthread_t poller, deadlines_thread;
  struct dk_caller *fetcher;
  struct dk_canceller *fetch_canceller;
  struct fetch_ids fetch_ids;
  struct lost_fetch lost;       /* the poller's own */
  struct asker fetching;        /* the poller's own */
  bool is_late;                 /* the poller's own: the last fetch brought leases that were over */
  bool is_fetching;             /* the poller may hold rows that are no activities yet: */
  struct early *early;          /* of these a commit has deleted some */

  bool is_draining;             /* nothing is fetched any more */
  bool is_poller_over;
  int64_t end_at;               /* a tick: calls of the store are called back then */
  bool is_ending;               /* what is given back is counted: */
  struct dk_leftover leftover;
  bool is_over;                 /* the slots end, when nothing is ready any more */
  bool is_deadlines_over;
};

/* ---- activities (activity.c) ----------------------------------------------------------------- */

/* NULL: no memory.  Kept by the leases from now on; not in a list yet. */
struct activity *activity_new(struct activity_pool *pool, const struct dk_work_item *item);
/* Frees with the last reference; without the lock. */
void activity_drop(struct activity *activity);
/* Under the lock: */
void activity_add(struct activity *activity);
void activity_remove(struct activity *activity);
/* A commit has deleted a row that may be on its way; and whether it was this one's. */
void activity_note_early(struct activity_pool *pool, dk_str token, int64_t since_ns);
bool activity_is_early(const struct activity *activity, int64_t *ret_since_ns);
void activity_forget_early(struct activity_pool *pool);
/* Sets the token if the body has not ended; false: nothing changed.  since_ns (ticks_ns): when the
 * row was deleted; 0: nobody knows, it was there when the lease was last known to be good. */
bool activity_signal(struct activity *activity, int32_t cause, int32_t learnt, int64_t since_ns);
/* Counts how it was learnt that it is to end, and how long that took; without the lock. */
void activity_count_learnt(const struct activity *activity, int32_t learnt, int64_t ns);
/* The same when its end could not be told. */
void activity_count_learnt_late(const struct activity *activity, int32_t learnt);
/* Tells of a signal and counts it; without the lock. */
void activity_tell_signal(const struct activity *activity, int32_t cause, int32_t learnt);
/* This attempt ended because the store could not be reached: it does not count against it. */
void activity_pardon(const struct activity *activity);
/* The same of one that never became an activity. */
void activity_pardon_item(struct activity_pool *pool, const struct dk_work_item *item);
/* It cannot be run here: how often in a row, and whether for this the first time. */
uint32_t activity_count_delay(const struct activity *activity, enum delay why, bool *ret_first);
void activity_delayed(const struct activity *activity, enum delay why, int64_t delay_ms);
/* It has come to its end, and nothing has to be remembered of it. */
void activity_forget(const struct activity *activity);
/* The leases has lost its lease. */
void activity_lost(void *context, enum loss loss);

struct dk_log_event activity_event(const struct activity *activity, int32_t number);

/* ---- slots (activity-slot.c) ----------------------------------------------------------------- */

bool slot_begin(struct slot *slot, struct activity_pool *pool);
void slot_free(struct slot *slot);
/* One more thread; false: no memory, no threads.  Under the lock. */
bool slot_start(struct activity_pool *pool);
/* A call of the store that is called back at that tick at the latest; the canceller is ready for
 * it.  Not under the lock. */
void slot_begin_call(struct slot *slot, int64_t until);
void slot_end_call(struct slot *slot);

/* ---- ends (activity-finish.c) ---------------------------------------------------------------- */

/* What the store is told of an activity whose body is over, or never ran. */
void activity_settle(struct slot *slot, struct activity *activity, const struct outcome *outcome);
/* Whether the store has taken it, or somebody else has it by now. */
bool activity_give_back(struct slot *slot, struct activity *activity, int64_t delay_ms,
                        bool is_counted);
int64_t activity_pool_backoff(const struct activity_pool *pool, uint32_t attempt);

/* ---- the other threads ----------------------------------------------------------------------- */

void *activity_fetch_main(void *pool);
void *activity_deadlines_main(void *pool);
/* Whether so many are in quarantine that nothing is fetched; under the lock. */
bool activity_pool_is_capped(const struct activity_pool *pool);

/* ---- processes (activity-child.c) ------------------------------------------------------------ */

/* Runs the body in a child, and sees to its grace. */
void activity_run_in_child(struct activity *activity, struct outcome *ret_outcome);

#endif
