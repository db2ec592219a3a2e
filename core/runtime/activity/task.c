/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of an activity: see task.h.  Owns nothing but the task's memory. */
#include "core/runtime/activity/task.h"

#include "core/runtime/activity/token.h"

void
task_init(struct dk_task *task, dk_token *token)
{
  *task = (struct dk_task){.token = token, .info = {.struct_size = sizeof(task->info)}};
  dk_arena_init(&task->arena);
}

void
task_done(struct dk_task *task)
{
  dk_token_free(task->token);
  dk_arena_done(&task->arena);
}

bool
task_copy(struct dk_task *task, dk_str text, dk_str *ret_copy)
{
  char *copy = text.ptr ? dk_arena_copy(&task->arena, text.ptr, text.len) : NULL;

  *ret_copy = (dk_str){copy, copy ? text.len : 0};
  return copy || !text.ptr;
}

/* ---- how it ends ----------------------------------------------------------------------------- */

static const struct outcome without_memory = {
  .kind = OUTCOME_LATER,
  .text = {"there is no memory for its result", 33},
  .delay_ms = -1,
};

static dk_result
set_outcome(struct dk_task *task, struct outcome outcome)
{
  task->said = outcome;
  return (dk_result){(int32_t)outcome.kind};
}

dk_result
dk_done(dk_task *task, dk_str output)
{
  struct outcome outcome = {.kind = OUTCOME_DONE};

  return set_outcome(task, task_copy(task, output, &outcome.text) ? outcome : without_memory);
}

static bool
set_words(struct dk_task *task, struct outcome *outcome, const char *format, va_list args)
{
  const char *words = dk_arena_vprintf(&task->arena, format, args);

  outcome->text = dk_str_of(words);
  return words;
}

dk_result
dk_error(dk_task *task, const char *format, ...)
{
  struct outcome outcome = {.kind = OUTCOME_ERROR, .code = CODE_APPLICATION};
  va_list args;

  va_start(args, format);
  bool has_words = set_words(task, &outcome, format, args);
  va_end(args);
  return set_outcome(task, has_words ? outcome : without_memory);
}

void
task_fail(struct dk_task *task, enum code code, struct outcome *ret_outcome, const char *format,
          ...)
{
  va_list args;

  *ret_outcome = (struct outcome){.kind = OUTCOME_ERROR, .code = code};
  va_start(args, format);
  if (!set_words(task, ret_outcome, format, args))
    ret_outcome->text = dk_str_of(format);
  va_end(args);
}

dk_result
dk_later(dk_task *task, int64_t delay_ms)
{
  const struct outcome later = {.kind = OUTCOME_LATER, .delay_ms = delay_ms > 0 ? delay_ms : 0};

  return set_outcome(task, later);
}

void
task_run(struct dk_task *task, dk_activity_fn *function, dk_str input, struct outcome *ret_outcome)
{
  task->said.kind = OUTCOME_NONE;
  dk_result result = function(task, input);
  *ret_outcome = task->said;
  if (task->said.kind == OUTCOME_NONE || result.private_ != (int32_t)task->said.kind)
    *ret_outcome = (struct outcome){.kind = OUTCOME_NONE};
}

/* ---- queries --------------------------------------------------------------------------------- */

int32_t
dk_task_cancelled(const dk_task *task)
{
  return dk_token_cancelled(task->token);
}

int32_t
dk_task_cancel_fd(const dk_task *task)
{
  return dk_token_fd(task->token);
}

int32_t
dk_task_sleep(const dk_task *task, int64_t ms)
{
  return dk_token_sleep(task->token, ms);
}

dk_token *
dk_task_token(const dk_task *task)
{
  return token_clone(task->token);
}

const struct dk_task_info *
dk_task_info(const dk_task *task)
{
  return &task->info;
}

void *
dk_task_alloc(dk_task *task, size_t size)
{
  return dk_arena_alloc(&task->arena, size);
}
