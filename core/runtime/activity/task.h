/* SPDX-License-Identifier: Apache-2.0 */
/* What an activity is given, and what it says with it.
 *
 * A task belongs to the thread that runs the body; its token may be set by any.  Its memory is its
 * arena's and lives until the body is over, in a child process as in a thread. */
#ifndef DK_RUNTIME_ACTIVITY_TASK_H
#define DK_RUNTIME_ACTIVITY_TASK_H

#include <durakit/runtime.h>

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/runtime/format/event.h"
#include "core/runtime/shared/retry-counts.h"

/* How a body ended, or what became of it in place of an end. */
enum outcome_kind {
  OUTCOME_NONE,
  OUTCOME_DONE,   /* text: the output */
  OUTCOME_ERROR,  /* code, text: what the orchestration is told */
  OUTCOME_LATER   /* given back; text says why, for the log, if it was not the body's wish */
};
struct outcome {
  enum outcome_kind kind;
  enum code code;
  dk_str text;
  int64_t delay_ms;
  bool is_counted;  /* OUTCOME_LATER: as an attempt */
  bool is_told;     /* OUTCOME_LATER: why was told before */
  bool is_obstacle; /* OUTCOME_LATER: it cannot be run here, for the reason: */
  enum delay why;
};

struct dk_task {
  struct dk_arena arena;
  dk_token *token;
  struct dk_task_info info;
  struct outcome said; /* by the latest dk_done, dk_error or dk_later */
};

/* Takes the token over.  The info's text is the caller's, and lives as long. */
void task_init(struct dk_task *task, dk_token *token);
void task_done(struct dk_task *task);
/* Runs the body here and now. */
void task_run(struct dk_task *task, dk_activity_fn *function, dk_str input,
              struct outcome *ret_outcome);
/* A copy in the task's memory; false: none is left. */
bool task_copy(struct dk_task *task, dk_str text, dk_str *ret_copy);
/* OUTCOME_ERROR with these words. */
void task_fail(struct dk_task *task, enum code code, struct outcome *ret_outcome,
               const char *format, ...) DK_PRINTF(4, 5);

#endif
