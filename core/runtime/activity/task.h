/* SPDX-License-Identifier: Apache-2.0 */
/* A task: what an activity's body gets, and the result that it returns with it.
 *
 * A task belongs to the thread that runs the body; its token may be set by any.  Its memory is in
 * its arena, and is valid until the body has ended, in a child process as in a thread. */
#ifndef DK_RUNTIME_ACTIVITY_TASK_H
#define DK_RUNTIME_ACTIVITY_TASK_H

#include <durakit/runtime.h>

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/runtime/format/event.h"
#include "core/runtime/shared/retry-counts.h"

/* How a body ended, or what happened instead of an end. */
enum outcome_kind {
  OUTCOME_NONE,
  OUTCOME_DONE,   /* text: the output */
  OUTCOME_ERROR,  /* code, text: the error for the orchestration */
  OUTCOME_LATER   /* given back; text is the cause for the log, unless the body requested it */
};
struct outcome {
  enum outcome_kind kind;
  enum code code;
  dk_str text;
  int64_t delay_ms;
  bool is_counted;  /* OUTCOME_LATER: counts as an attempt */
  bool is_logged;   /* OUTCOME_LATER: the cause is logged already */
  bool is_obstacle; /* OUTCOME_LATER: it cannot run here, for this reason: */
  enum delay why;
};

struct dk_task {
  struct dk_arena arena;
  dk_token *token;
  struct dk_task_info info;
  struct outcome said; /* of the latest dk_done, dk_error or dk_later */
};

/* Takes ownership of the token.  The info's text belongs to the caller, and must be valid as long
 * as the task. */
void task_init(struct dk_task *task, dk_token *token);
void task_done(struct dk_task *task);
/* Runs the body here and now. */
void task_run(struct dk_task *task, dk_activity_fn *function, dk_str input,
              struct outcome *ret_outcome);
/* Copies a text into the task's memory; false: no memory. */
bool task_copy(struct dk_task *task, dk_str text, dk_str *ret_copy);
/* OUTCOME_ERROR with this text. */
void task_fail(struct dk_task *task, enum code code, struct outcome *ret_outcome,
               const char *format, ...) DK_PRINTF(4, 5);

#endif
