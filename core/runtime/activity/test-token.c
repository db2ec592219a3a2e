/* SPDX-License-Identifier: Apache-2.0 */
/* The token and the task: a token is set once, wakes all waiting threads, and is freed with its
 * last clone; the calls of an activity. */
#include <poll.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/runtime/activity/task.h"
#include "core/runtime/activity/token.h"
#include "core/runtime/shared/ticks.h"

static bool
is_readable(int fd)
{
  struct pollfd look = {.fd = fd, .events = POLLIN};

  return poll(&look, 1, 0) == 1 && (look.revents & POLLIN);
}

static void
test_set_once(void)
{
  dk_token *token = token_new();
  int fd = dk_token_fd(token);

  cmp_ok(dk_token_cancelled(token), "==", DK_CAUSE_NONE, "a new token is not set");
  ok(fd >= 0 && !is_readable(fd), "its descriptor is not readable");
  ok(token_set(token, DK_CAUSE_CANCELLED), "it is set");
  cmp_ok(dk_token_cancelled(token), "==", DK_CAUSE_CANCELLED, "with its cause");
  ok(is_readable(fd), "the descriptor is readable");
  ok(!token_set(token, DK_CAUSE_SHUTDOWN), "a second time changes nothing");
  cmp_ok(dk_token_cancelled(token), "==", DK_CAUSE_CANCELLED, "the first cause stays");
  cmp_ok(dk_token_fd(token), "==", fd, "the descriptor stays");
  dk_token_free(token);
  token = token_new();
  token_set(token, DK_CAUSE_LEASE_LOST);
  ok(is_readable(dk_token_fd(token)), "one that is asked for later is readable, too");
  dk_token_free(token);
  dk_token_free(NULL);
}

static void
test_sleep(void)
{
  dk_token *token = token_new();
  int64_t from = ticks_now();

  cmp_ok(dk_token_sleep(token, 50), "==", DK_CAUSE_NONE,
         "a sleep whose time has passed returns no cause");
  cmp_ok(ticks_now() - from, ">=", 50, "not sooner");
  cmp_ok(dk_token_sleep(token, -1), "==", DK_CAUSE_NONE, "a negative time does not sleep");
  token_set(token, DK_CAUSE_SHUTDOWN);
  cmp_ok(dk_token_sleep(token, INT64_MAX), "==", DK_CAUSE_SHUTDOWN,
         "a token that is set does not sleep");
  dk_token_free(token);
}

static void *
sleep_long(void *token)
{
  int32_t *cause = malloc(sizeof(*cause));

  if (cause)
    *cause = dk_token_sleep(token, INT64_MAX);
  dk_token_free(token);
  return cause;
}

/* Each with a clone; the first owner lets go before they wake. */
static void
test_clones(void)
{
  enum { SLEEPERS = 8 };
  dk_token *token = token_new();
  struct dk_task task;
  pthread_t threads[SLEEPERS];
  int heard = 0;

  task_init(&task, token);
  for (int i = 0; i < SLEEPERS; i++)
    pthread_create(&threads[i], NULL, sleep_long, dk_task_token(&task));
  dk_token *last = dk_task_token(&task);
  task_done(&task);
  token_set(last, DK_CAUSE_CANCELLED);
  for (int i = 0; i < SLEEPERS; i++) {
    void *cause;
    pthread_join(threads[i], &cause);
    heard += cause && *(int32_t *)cause == DK_CAUSE_CANCELLED;
    free(cause);
  }
  cmp_ok(heard, "==", SLEEPERS, "clones wake in all threads, after the activity has ended");
  cmp_ok(dk_token_cancelled(last), "==", DK_CAUSE_CANCELLED, "and can be asked");
  dk_token_free(last);
}

/* ---- the task -------------------------------------------------------------------------------- */

static dk_result
two_minds(dk_task *task, dk_str input)
{
  dk_error(task, "first %.*s", (int)input.len, input.ptr);
  return dk_done(task, input);
}

static dk_result
mixed_up(dk_task *task, dk_str input)
{
  dk_result error = dk_error(task, "one");

  dk_done(task, input);
  return error;
}

static dk_result
absent(dk_task *task, dk_str input)
{
  (void)input;
  return dk_done(task, (dk_str){NULL, 0});
}

static void
test_said(void)
{
  struct dk_task task;
  struct outcome outcome;
  dk_str input = dk_str_of("in");

  task_init(&task, token_new());
  task_run(&task, two_minds, input, &outcome);
  cmp_ok(outcome.kind, "==", OUTCOME_DONE, "what is returned counts, not what was said before");
  ok(outcome.text.len == 2 && outcome.text.ptr != input.ptr, "its text is a copy");
  task_run(&task, mixed_up, input, &outcome);
  cmp_ok(outcome.kind, "==", OUTCOME_NONE, "a result from an earlier task does not count");
  task_run(&task, absent, input, &outcome);
  ok(outcome.kind == OUTCOME_DONE && !outcome.text.ptr, "an output may be absent");
  char *memory = dk_task_alloc(&task, 100);
  int sum = 0;
  for (int i = 0; i < 100; i++)
    sum |= memory[i];
  cmp_ok(sum, "==", 0, "memory is zeroed");
  ok(dk_task_alloc(&task, SIZE_MAX / 2) == NULL, "and NULL if there is none");
  cmp_ok(dk_task_sleep(&task, 1), "==", DK_CAUSE_NONE, "it may sleep");
  token_set(task.token, DK_CAUSE_CANCELLED);
  ok(dk_task_cancelled(&task) == DK_CAUSE_CANCELLED && is_readable(dk_task_cancel_fd(&task)),
     "and sees its token");
  task_done(&task);
}

int
main(void)
{
  plan(NO_PLAN);
  test_set_once();
  test_sleep();
  test_clones();
  test_said();
  return done_testing();
}
