/* SPDX-License-Identifier: Apache-2.0 */
/* Code of a child: runs activities, one at a time, as the runtime orders them.
 *
 * The first thread runs the bodies; a second one reads the socket, so that a body is signalled when
 * it must end.  Locking: `lock` guards all of struct bench; nothing is called under it but
 * token_set. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/runtime/activity/task.h"
#include "core/runtime/activity/token.h"
#include "core/runtime/activity/zygote.h"
#include "core/runtime/code/registry.h"

enum { EXIT_NONSENSE = 70, EXIT_NO_MEMORY = 71 };

struct bench {
  int fd;
  const struct dk_registry *registry;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  char *order;      /* to run next; the first thread takes it */
  size_t length;
  dk_token *token;  /* of the running activity; NULL: none */
};

/* ---- listening ------------------------------------------------------------------------------- */

static void
take_order(struct bench *bench, const struct frame_bytes *bytes)
{
  char *order = malloc(bytes->left > 0 ? bytes->left : 1);

  if (!order)
    _exit(EXIT_NO_MEMORY);
  memcpy(order, bytes->at, bytes->left);
  pthread_mutex_lock(&bench->lock);
  if (bench->order || bench->token)
    _exit(EXIT_NONSENSE); /* one at a time */
  bench->order = order;
  bench->length = bytes->left;
  pthread_cond_signal(&bench->changed);
  pthread_mutex_unlock(&bench->lock);
}

static void
take_cancel(struct bench *bench, struct frame_bytes *bytes)
{
  int32_t cause = (int32_t)frame_get_number(bytes);

  pthread_mutex_lock(&bench->lock);
  if (bench->token)
    token_set(bench->token, cause);
  pthread_mutex_unlock(&bench->lock);
}

static void
wait_for_bytes(int fd)
{
  struct pollfd some = {.fd = fd, .events = POLLIN};

  poll(&some, 1, -1);
}

static void *
listen_for_ever(void *argument)
{
  struct bench *bench = argument;
  struct frame_reader reader;
  struct frame_bytes bytes;
  enum frame_kind kind;

  frame_reader_init(&reader, bench->fd);
  for (;;)
    switch (frame_read(&reader, &kind, &bytes)) {
    case FRAME_WHOLE:
      if (kind == FRAME_ORDER)
        take_order(bench, &bytes);
      else if (kind == FRAME_CANCEL)
        take_cancel(bench, &bytes);
      break;
    case FRAME_PENDING:
      wait_for_bytes(bench->fd);
      break;
    default:
      _exit(EXIT_SUCCESS); /* the runtime does not need it any more */
    }
}

/* ---- running --------------------------------------------------------------------------------- */

/* Copies it into the task's memory, with a NUL. */
static dk_str
get_text(struct dk_task *task, struct frame_bytes *bytes)
{
  dk_str copy;

  if (!task_copy(task, frame_get_text(bytes), &copy))
    _exit(EXIT_NO_MEMORY);
  return copy;
}

/* Reads the order, and returns the input. */
static dk_str
read_order(struct dk_task *task, struct frame_bytes *bytes)
{
  struct dk_task_info *info = &task->info;

  info->attempt = (uint32_t)frame_get_number(bytes);
  info->execution_id = frame_get_number(bytes);
  info->activity_id = frame_get_number(bytes);
  info->fence = frame_get_number(bytes);
  info->name = get_text(task, bytes);
  info->instance = get_text(task, bytes);
  info->orchestration = get_text(task, bytes);
  info->version = get_text(task, bytes);
  info->tag = get_text(task, bytes);
  info->session = get_text(task, bytes);
  info->worker = get_text(task, bytes);
  return get_text(task, bytes);
}

static void
run_order(const struct bench *bench, struct dk_task *task, dk_str input,
          struct outcome *ret_outcome)
{
  const struct registered_activity *registered =
    registry_activity(bench->registry, task->info.name);
  static const char why[] = "it was registered after dk_zygote_start: its process does not know it";

  *ret_outcome = (struct outcome){.kind = OUTCOME_LATER, .text = {why, sizeof(why) - 1},
                                  .delay_ms = -1, .is_counted = true};
  if (registered)
    task_run(task, registered->function, input, ret_outcome);
}

static void
send_result(const struct bench *bench, const struct outcome *outcome)
{
  struct dk_text text = DK_TEXT_EMPTY;

  frame_put_number(&text, outcome->kind);
  frame_put_number(&text, outcome->code);
  frame_put_number(&text, (uint64_t)outcome->delay_ms);
  frame_put_number(&text, outcome->is_counted);
  frame_put_text(&text, outcome->text);
  if (dk_text_failed(&text))
    _exit(EXIT_NO_MEMORY);
  if (!frame_send(bench->fd, FRAME_RESULT, &text, -1))
    _exit(EXIT_SUCCESS);
  dk_text_done(&text);
}

/* Takes the order from the bench, and sets the token that the listener may use from now on. */
static char *
next_order(struct bench *bench, dk_token *token, struct frame_bytes *ret_bytes)
{
  pthread_mutex_lock(&bench->lock);
  while (!bench->order)
    pthread_cond_wait(&bench->changed, &bench->lock);
  char *order = bench->order;
  *ret_bytes = (struct frame_bytes){.at = order, .left = bench->length};
  bench->order = NULL;
  bench->token = token;
  pthread_mutex_unlock(&bench->lock);
  return order;
}

static void
leave_order(struct bench *bench)
{
  pthread_mutex_lock(&bench->lock);
  bench->token = NULL;
  pthread_mutex_unlock(&bench->lock);
}

static void
run_next(struct bench *bench)
{
  struct dk_task task;
  struct frame_bytes bytes;
  struct outcome outcome;

  task_init(&task, token_new());
  if (!task.token)
    _exit(EXIT_NO_MEMORY);
  char *order = next_order(bench, task.token, &bytes);
  dk_str input = read_order(&task, &bytes);
  if (bytes.failed)
    _exit(EXIT_NONSENSE);
  run_order(bench, &task, input, &outcome);
  fflush(NULL);
  leave_order(bench); /* before the answer, because the next order may come at once */
  send_result(bench, &outcome);
  task_done(&task);
  free(order);
}

void
zygote_child_main(int fd, const struct dk_registry *registry)
{
  struct bench bench = {.fd = fd, .registry = registry};
  pthread_t listener;

  pthread_mutex_init(&bench.lock, NULL);
  pthread_cond_init(&bench.changed, NULL);
  if (pthread_create(&listener, NULL, listen_for_ever, &bench) != 0)
    _exit(EXIT_NO_MEMORY);
  for (;;)
    run_next(&bench);
}
