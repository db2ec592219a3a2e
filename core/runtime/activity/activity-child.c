/* SPDX-License-Identifier: Apache-2.0 */
/* An activity whose body runs in a child process: the slot's thread sends the order, passes on
 * signals, waits for the result, and has the child killed when the grace has ended.  Locking: see
 * activity.h. */
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>

#include "core/runtime/activity/activity.h"
#include "core/runtime/activity/zygote.h"

/* How often the token is checked if it has no descriptor. */
enum { LOOK_MS = 50 };

struct outing {
  struct activity *activity;
  struct dk_zygote *zygote;
  struct child *child;
  bool is_signalled; /* the signal to end was sent to the child */
};

/* ---- the order ------------------------------------------------------------------------------- */

static bool
send_order(const struct outing *outing)
{
  const struct dk_task *task = &outing->activity->task;
  const struct dk_task_info *info = &task->info;
  struct dk_text text = DK_TEXT_EMPTY;

  frame_put_number(&text, info->attempt);
  frame_put_number(&text, info->execution_id);
  frame_put_number(&text, info->activity_id);
  frame_put_number(&text, info->fence);
  frame_put_text(&text, info->name);
  frame_put_text(&text, info->instance);
  frame_put_text(&text, info->orchestration);
  frame_put_text(&text, info->version);
  frame_put_text(&text, info->tag);
  frame_put_text(&text, info->session);
  frame_put_text(&text, info->worker);
  frame_put_text(&text, outing->activity->input);
  bool is_sent = !dk_text_failed(&text) &&
                 frame_send(outing->child->reader.fd, FRAME_ORDER, &text, dk_token_fd(task->token));
  dk_text_done(&text);
  return is_sent;
}

static void
signal_child(struct outing *outing, int32_t cause)
{
  struct dk_text text = DK_TEXT_EMPTY;

  outing->is_signalled = true;
  frame_put_number(&text, (uint64_t)cause);
  if (!dk_text_failed(&text)) /* a child always reads; if it has ended, that is noticed later */
    frame_send(outing->child->reader.fd, FRAME_CANCEL, &text, -1);
  dk_text_done(&text);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Describes how a process ended. */
static void
describe_end(int status, char *words, size_t size)
{
  if (status >= 0 && WIFSIGNALED(status))
    snprintf(words, size, "its process crashed: signal %d (%s)", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
  else if (status >= 0 && WIFEXITED(status))
    snprintf(words, size, "its process ended with exit status %d and returned nothing",
             WEXITSTATUS(status));
  else
    snprintf(words, size, "its process has ended");
}

/* The activity is tried again while attempts are left; then it fails. */
static void
take_crash(struct activity *activity, int status, struct outcome *ret_outcome)
{
  const struct activity_pool *pool = activity->pool;
  uint32_t attempt = activity->task.info.attempt;
  struct dk_log_event event = activity_event(activity, DK_LOG_TEXT);
  char words[128];

  describe_end(status, words, sizeof(words));
  *ret_outcome = (struct outcome){.kind = OUTCOME_LATER, .delay_ms = -1, .is_counted = true};
  if (dk_token_cancelled(activity->task.token) != DK_CAUSE_NONE)
    return; /* in its grace it may end in any way */
  event.level = DK_LEVEL_WARNING;
  log_report(pool->setup.log, &event, "%s, in attempt %u", words, attempt);
  if (activity->judged >= pool->setup.options->max_attempts)
    task_fail(&activity->task, CODE_POISON, ret_outcome, "poison: %s, in attempt %u", words,
              attempt);
}

static void
take_result(struct activity *activity, struct frame_bytes *bytes, struct outcome *ret_outcome)
{
  struct outcome outcome = {.kind = (enum outcome_kind)frame_get_number(bytes)};

  outcome.code = (enum code)frame_get_number(bytes);
  outcome.delay_ms = (int64_t)frame_get_number(bytes);
  outcome.is_counted = frame_get_number(bytes) != 0;
  if (!task_copy(&activity->task, frame_get_text(bytes), &outcome.text))
    outcome = (struct outcome){.kind = OUTCOME_LATER, .delay_ms = -1};
  *ret_outcome = outcome;
}

static void
log_killed(struct activity *activity)
{
  const struct activity_pool *pool = activity->pool;
  struct dk_log_event event = activity_event(activity, DK_LOG_GRACE_EXCEEDED);

  activity->was_killed = true;
  log_count(pool->setup.log, COUNT_GRACE_EXCEEDED);
  log_count(pool->setup.log, COUNT_GRACE_KILLED);
  event.ms = activity->grace_ms;
  log_report(pool->setup.log, &event,
             "it has not ended within its grace of %lld ms: its "
             "process is killed",
             (long long)activity->grace_ms);
}

/* A child that was signalled to end is not used again: it might not have read the signal yet. */
static void
part(const struct outing *outing)
{
  if (outing->is_signalled)
    zygote_bury(outing->zygote, outing->child);
  else
    zygote_return(outing->zygote, outing->child);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* A tick; INT64_MAX: the activity was not signalled to end. */
static int64_t
end_of_grace(const struct activity *activity)
{
  struct activity_pool *pool = activity->pool;

  dk_lock(&pool->lock);
  int64_t until = activity->grace_until > 0 ? activity->grace_until : INT64_MAX;
  dk_unlock(&pool->lock);
  return until;
}

/* Until the child sends something, the token is set, or the tick has come. */
static void
wait_for_news(const struct outing *outing, int64_t until)
{
  int token = outing->is_signalled ? -1 : dk_token_fd(outing->activity->task.token);
  struct pollfd all[4] = {{.fd = outing->child->reader.fd, .events = POLLIN},
                          {.fd = outing->child->pidfd, .events = POLLIN},
                          {.fd = token, .events = POLLIN},
                          {.fd = zygote_life(outing->zygote)}};
  int64_t left = until == INT64_MAX ? -1 : until - ticks_now();

  if (until != INT64_MAX && left < 0)
    left = 0;
  if (!outing->is_signalled && token < 0)
    left = LOOK_MS;
  poll(all, 4, (int)(left < INT32_MAX ? left : INT32_MAX));
}

/* True if there is a result.  Checks whether the child is dead before it reads what the child has
 * sent. */
static bool
activity_child_look(struct outing *outing, struct outcome *ret_outcome)
{
  struct frame_bytes bytes;
  enum frame_kind kind;
  bool is_dead = zygote_child_is_dead(outing->child) || zygote_is_dead(outing->zygote);
  enum frame_state state = frame_read(&outing->child->reader, &kind, &bytes);

  if (state == FRAME_PENDING && !is_dead)
    return false;
  switch (state) {
  case FRAME_WHOLE:
    take_result(outing->activity, &bytes, ret_outcome);
    part(outing);
    return true;
  default:
    take_crash(outing->activity, zygote_bury(outing->zygote, outing->child), ret_outcome);
    return true;
  }
}

static void
wait_for_end(struct outing *outing, struct outcome *ret_outcome)
{
  while (!activity_child_look(outing, ret_outcome)) {
    int32_t cause = dk_token_cancelled(outing->activity->task.token);
    int64_t until = cause == DK_CAUSE_NONE ? INT64_MAX : end_of_grace(outing->activity);
    if (until <= ticks_now()) {
      log_killed(outing->activity);
      zygote_bury(outing->zygote, outing->child);
      *ret_outcome = (struct outcome){.kind = OUTCOME_LATER};
      return;
    }
    if (cause != DK_CAUSE_NONE && !outing->is_signalled)
      signal_child(outing, cause);
    wait_for_news(outing, until);
  }
}

/* There is no process: the activity will be tried again, and the attempt does not count. */
static void
take_no_child(struct outing *outing, struct outcome *ret_outcome)
{
  static const char gone[] = "the zygote, which starts the processes of activities, has ended: "
                             "restart this process";
  struct dk_log_event event = activity_event(outing->activity, DK_LOG_STALLED);

  *ret_outcome = (struct outcome){.kind = OUTCOME_LATER, .delay_ms = -1};
  if (zygote_is_news(outing->zygote))
    log_report(outing->activity->pool->setup.log, &event, gone);
}

void
activity_run_in_child(struct activity *activity, struct outcome *ret_outcome)
{
  struct outing outing = {.activity = activity, .zygote = activity->pool->setup.options->zygote};

  outing.child = zygote_take(outing.zygote);
  if (!outing.child) {
    take_no_child(&outing, ret_outcome);
    return;
  }
  if (send_order(&outing))
    wait_for_end(&outing, ret_outcome);
  else
    take_crash(activity, zygote_bury(outing.zygote, outing.child), ret_outcome);
}
