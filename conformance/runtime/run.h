/* SPDX-License-Identifier: Apache-2.0 */
/* The functions in which the checks of the profile `runtime` are written, beside those of check.h:
 * a runtime on the check's store, a client, some activities, and the runtime's log.
 *
 * They run in real time and never sleep: each wait is for a condition (eventually), with an upper
 * limit that is a bound of patience, not a measure of speed.  A check that fails stops its runtime
 * before the store is closed, and its trace ends with the runtime's log.
 *
 * Most checks are run twice: once activities are notified by the commit that cancels (the local
 * signal; leases are so long that no renewal is due), once "by renewal" (no local signal; short
 * renewals).
 */
#ifndef DK_CONFORMANCE_RUN_H
#define DK_CONFORMANCE_RUN_H

#include <stdatomic.h>

#include <durakit/runtime.h>

#include "conformance/kit/check.h"
#include "conformance/runtime/payload.h"

/* ---- a runtime ------------------------------------------------------------------------------- */

/* Prepares everything; nothing runs yet.  The options may be changed until start_runtime. */
struct dk_runtime_options *given_runtime(struct dk_check *t);
/* From here on, cancellations are learnt only by renewal in this check.  Called before
 * given_runtime. */
void without_local_signal(void);
bool is_by_renewal(void);
void given_orchestration(struct dk_check *t, const char *name, dk_orchestration_fn *function);
void given_activity(struct dk_check *t, const char *name, dk_activity_fn *function,
                    const struct dk_activity_traits *traits);
/* Lets activities run in processes: called when all of those are registered. */
void given_processes(struct dk_check *t);
void start_runtime(struct dk_check *t);
/* Starts a second runtime with the same options, on this handle's store (NULL: the check's own). */
void start_second_runtime(struct dk_check *t, struct actor *handle);
/* Stops it gently: it waits for what runs, and gives back what it has just fetched. */
void stop_runtime(struct dk_check *t);
void stop_second_runtime(struct dk_check *t);
struct dk_counters counters(struct dk_check *t); /* of the first runtime */

/* ---- activities ------------------------------------------------------------------------------ */

/* All runtimes have them:
 *   echo      returns its input
 *   obeys     runs until its token is set, then succeeds
 *   errs      runs until its token is set, then fails
 *   deaf      runs until release_deaf, even if its token is set, then succeeds */
void release_deaf(void);
/* Counts of the bodies in this check. */
struct marks {
  atomic_uint began, echoed, ended; /* ended: obeys, errs, deaf */
  atomic_uint set_at_first;         /* the token was set before anything was cancelled */
  atomic_uint told;                 /* the token was set, and its cause was DK_CAUSE_CANCELLED */
  atomic_uint lost;                 /* ... DK_CAUSE_LEASE_LOST */
};
extern struct marks marks;

/* ---- a client -------------------------------------------------------------------------------- */

void start_instance(struct dk_check *t, const char *instance, const char *name, const char *input);
void cancel_instance(struct dk_check *t, const char *instance); /* "no use", by "the check" */
void raise_event(struct dk_check *t, const char *instance, const char *event);
/* A runtime that runs this orchestration as "i". */
void given_started(struct dk_check *t, const char *name, dk_orchestration_fn *function,
                   const char *input);
/* An orchestration: awaits the activity that its input names. */
dk_result works(dk_orch *o, dk_str input);
/* Waits for its end: "completed: output", "failed: error", "cancelled: reason (by)". */
#define expect_end(t, instance, words) run_expect_end(t, instance, words, __FILE__, __LINE__)
void run_expect_end(struct dk_check *t, const char *instance, const char *words, const char *file,
                    int line);
#define cancel_and_expect(t, instance)                                                             \
  do {                                                                                             \
    cancel_instance(t, instance);                                                                  \
    expect_end(t, instance, "cancelled: no use (the check)");                                      \
  } while (0)

/* ---- waiting and looking --------------------------------------------------------------------- */

/* Waits until the condition holds. */
#define eventually(t, condition, ...)                                                              \
  do {                                                                                             \
    int64_t patience_ = run_out_of_patience(t);                                                    \
    bool holds_;                                                                                   \
    while (!(holds_ = (condition)) && run_waits(patience_))                                        \
      continue;                                                                                    \
    kit_expect(t, holds_, #condition, __FILE__, __LINE__, __VA_ARGS__);                            \
  } while (0)
int64_t run_out_of_patience(struct dk_check *t); /* the tick at which patience ends */
bool run_waits(int64_t until);            /* waits a moment; false: the tick has passed */

/* How many events of this kind ("activity_completed"), and of this code if it is not NULL, the
 * execution has; 0: the newest execution. */
uint32_t count_events(struct dk_check *t, const char *instance, uint64_t execution,
                      const char *kind, const char *code);
/* The id of the which-th (from 1) event of this kind in execution 1. */
uint64_t event_id(struct dk_check *t, const char *instance, const char *kind, uint32_t which);
/* How many lines with this number the runtimes have logged (of one cause, learnt in one way; -1:
 * any). */
uint32_t heard(int32_t number);
uint32_t heard_how(int32_t number, int32_t cause, int32_t learnt);
uint32_t renewals_of(uint64_t activity_id);
/* How cancellations are learnt in this check: DK_LEARNT_BY_COMMIT, or DK_LEARNT_BY_RENEWAL. */
int32_t learnt_here(void);
/* No warning and no error was logged, except that the store was busy. */
void expect_no_warning(struct dk_check *t);
/* n activities were notified that they are cancelled, each once, in the way of this check. */
void expect_told(struct dk_check *t, uint32_t n);
/* Stops the runtime: there were no stray messages, and neither a message nor work is left. */
void expect_nothing_left(struct dk_check *t);
/* The same, and each body that has begun was notified, in either way. */
void expect_all_told(struct dk_check *t);
/* As expect_nothing_left, but stray messages are allowed. */
void expect_queues_empty(struct dk_check *t);
void keep_library(struct dk_library *library); /* closes it when the check ends */
struct dk_arena *run_arena(void); /* until the check ends */

#endif
