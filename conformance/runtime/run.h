/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks of the profile `runtime` are written in, beside the words of check.h: a runtime
 * on the check's store, a client, some activities, and all that the runtime has logged.
 *
 * They run in real time and never sleep: each wait is for a condition (eventually), with an upper
 * limit that says how much patience there is, not how fast it should be.  A check that fails stops
 * its runtime before the store is closed, and its trace ends with what the runtime has said.
 *
 * Most checks are run twice: told by the commit that cancels (the local signal; leases are so long
 * that no renewal comes meanwhile), and "by renewal" (no local signal; short renewals).
 */
#ifndef DK_CONFORMANCE_RUN_H
#define DK_CONFORMANCE_RUN_H

#include <stdatomic.h>

#include <durakit/runtime.h>

#include "conformance/kit/check.h"
#include "conformance/runtime/payload.h"

/* ---- a runtime ------------------------------------------------------------------------------- */

/* All is prepared and nothing runs yet: the options may be changed, up to start_runtime. */
struct dk_runtime_options *given_runtime(struct dk_check *t);
/* From here on, in this check: learnt by renewal only.  Before given_runtime. */
void without_local_signal(void);
bool is_by_renewal(void);
void given_orchestration(struct dk_check *t, const char *name, dk_orchestration_fn *function);
void given_activity(struct dk_check *t, const char *name, dk_activity_fn *function,
                    const struct dk_activity_traits *traits);
/* Activities may run in processes: all that do are registered. */
void given_processes(struct dk_check *t);
void start_runtime(struct dk_check *t);
/* A second one with the same options, on this handle's store (NULL: the check's own). */
void start_second_runtime(struct dk_check *t, struct actor *handle);
/* Stops it in peace, waiting for what runs; what it had just fetched it gives back. */
void stop_runtime(struct dk_check *t);
void stop_second_runtime(struct dk_check *t);
struct dk_counters counters(struct dk_check *t); /* of the first */

/* ---- activities ------------------------------------------------------------------------------ */

/* All runtimes know them:
 *   echo      gives its input back
 *   obeys     runs until its token is set, then ends well
 *   errs      the same, and then fails
 *   deaf      runs until release_deaf, whatever its token says, then ends well */
void release_deaf(void);
/* What bodies have counted in this check. */
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
/* Waits for its end: "completed: output", "failed: error", "cancelled: reason (by)". */
#define expect_end(t, instance, words) run_expect_end(t, instance, words, __FILE__, __LINE__)
void run_expect_end(struct dk_check *t, const char *instance, const char *words, const char *file,
                    int line);

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
int64_t run_out_of_patience(struct dk_check *t); /* the tick at which it is over */
bool run_waits(int64_t until);            /* a moment; false: the tick has come */

/* How many events of this kind ("activity_completed") the execution has; 0: the newest.  The code
 * too, if it is not NULL. */
uint32_t count_events(struct dk_check *t, const char *instance, uint64_t execution,
                      const char *kind, const char *code);
/* The id of the which-th (from 1) event of this kind in execution 1. */
uint64_t event_id(struct dk_check *t, const char *instance, const char *kind, uint32_t which);
/* What the runtimes have logged: how many lines of a number (of one cause, learnt so; -1: any). */
uint32_t heard(int32_t number);
uint32_t heard_how(int32_t number, int32_t cause, int32_t learnt);
uint32_t renewals_of(uint64_t activity_id);
/* How it is learnt in this check: DK_LEARNT_BY_COMMIT, or DK_LEARNT_BY_RENEWAL. */
int32_t learnt_here(void);
/* No warning and no error was logged, but that the store was busy. */
void expect_no_warning(struct dk_check *t);
/* n activities were told that they are cancelled, each once, and learnt it as this check says. */
void expect_told(struct dk_check *t, uint32_t n);
/* Stops the runtime: no message has come for nobody, and neither a message nor work is left. */
void expect_nothing_left(struct dk_check *t);
/* The same, and each body that has begun was told, however it has learnt it. */
void expect_all_told(struct dk_check *t);
/* As expect_nothing_left, without a look at the messages that came for nobody. */
void expect_queues_empty(struct dk_check *t);
void keep_library(struct dk_library *library); /* is closed when the check ends */
struct dk_arena *run_arena(void); /* until the check ends */

#endif
