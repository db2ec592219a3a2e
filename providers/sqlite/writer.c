/* SPDX-License-Identifier: Apache-2.0 */
/* The queue and the writer thread.
 *
 * The writer takes the lock file first and the queue second.  So an operation that waits for
 * another process has not begun, and its caller can take it back when the call is cancelled.  The
 * callers return after the lock is given back and the bell is rung.
 *
 * Locking: handle.mutex guards the queue, is_stopping, and the state of every operation in it.
 * Under it nothing is called but the system and host->cancelled, which the caller of an operation
 * asks until it has begun; from then on all upcalls are the writer's.
 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "providers/sqlite/handle.h"

enum { LARGEST_GROUP = 512, RELEASE_STEP_MS = 20 };

static void
wake_writer(struct handle *h)
{
  uint64_t one = 1;

  while (write(h->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
    continue; /* that it is full already means that it is readable */
}

static void
forget_wakes(struct handle *h)
{
  uint64_t heard;

  while (read(h->wake_fd, &heard, sizeof heard) > 0)
    continue;
}

/* ---- the queue: all under the mutex ---------------------------------------------------------- */

static void
writer_append(struct handle *h, struct operation *op)
{
  assert(mutex_is_held(&h->mutex));
  assert(!h->first == !h->last && (!h->last || !h->last->next));
  op->next = NULL;
  op->state = OPERATION_QUEUED;
  op->queued_at = real_ms();
  assert(!h->last || h->last->queued_at <= op->queued_at);
  *(h->last ? &h->last->next : &h->first) = op;
  h->last = op;
}

static void
take_back(struct handle *h, struct operation *op)
{
  struct operation *before = NULL;

  assert(mutex_is_held(&h->mutex) && op->state == OPERATION_QUEUED);
  for (struct operation *at = h->first; at != op; at = at->next) {
    assert(at); /* what is queued is in the queue */
    before = at;
  }
  *(before ? &before->next : &h->first) = op->next;
  if (h->last == op)
    h->last = before;
  assert(!h->first == !h->last && (!h->last || !h->last->next));
}

/* The first of the queue that were there by `until`. */
static size_t
take_group(struct handle *h, struct operation *group[LARGEST_GROUP], int64_t until)
{
  size_t n = 0;

  assert(mutex_is_held(&h->mutex));
  while (h->first && n < LARGEST_GROUP && h->first->queued_at <= until) {
    assert(h->first->state == OPERATION_QUEUED && (h->first->next || h->last == h->first));
    group[n] = h->first;
    h->first = h->first->next;
    group[n++]->state = OPERATION_BEGUN;
  }
  if (!h->first)
    h->last = NULL;
  return n;
}

/* ---- the writer ------------------------------------------------------------------------------ */

/* Wakes their callers. */
static void
writer_finish(struct handle *h, struct operation *const *group, size_t n)
{
  mutex_lock(&h->mutex);
  for (size_t i = 0; i < n; i++) {
    assert(group[i]->state == OPERATION_BEGUN && !group[i]->group);
    group[i]->state = OPERATION_DONE;
    pthread_cond_signal(&group[i]->woken);
  }
  mutex_unlock(&h->mutex);
}

/* The writer cannot get the lock: the operations that have waited as long as they may end with
 * that. */
static void
fail_waiting(struct handle *h, const struct why *why, int64_t until)
{
  struct operation *group[LARGEST_GROUP];

  mutex_lock(&h->mutex);
  size_t n = take_group(h, group, until);
  mutex_unlock(&h->mutex);
  for (size_t i = 0; i < n; i++)
    group[i]->status = why_tell(why, h->host, group[i]->call);
  writer_finish(h, group, n);
}

static void
run_queued(struct handle *h)
{
  struct operation *group[LARGEST_GROUP];
  unsigned rings = 0;

  mutex_lock(&h->mutex);
  size_t n = take_group(h, group, INT64_MAX);
  h->waits_for_lock = false;
  if (!h->is_stopping)
    forget_wakes(h); /* from now on none comes before the end */
  mutex_unlock(&h->mutex);
  if (n > 0)
    rings = group_run(h, group, n);
  group_checkpoint(h, false);
  if (rings)
    lockfile_ring_for(&h->files.lock, rings);
  lockfile_release(&h->files.lock);
  writer_finish(h, group, n);
}

static void
run_under_lock(struct handle *h)
{
  struct why why = {.status = DK_OK};
  int64_t since = real_ms();
  dk_status status = lockfile_take(&h->files.lock, h->files.settings.busy_ms, h->wake_fd, &why);

  if (status == DK_OK)
    run_queued(h);
  else if (status == DK_CALL_CANCELLED)
    forget_wakes(h);
  else
    fail_waiting(h, &why, status == DK_BUSY ? since : INT64_MAX);
}

/* Cuts the log if the lock is free; otherwise the handle that has the lock will cut it. */
static void
cut_log(struct handle *h)
{
  struct why why;

  if ((h->wal_pages == 0 && !h->log_is_in_doubt) || lockfile_try(&h->files.lock, &why) != DK_OK)
    return;
  group_leave(h);
  lockfile_release(&h->files.lock);
}

/* Waits under the mutex until there is work.  No event reports that the system would unlock now. */
static void
wait_for_operation(struct handle *h)
{
  struct timespec until;

  assert(mutex_is_held(&h->mutex));
  while (!h->first && !h->is_stopping) {
    if (lockfile_release(&h->files.lock)) {
      mutex_wait(&h->mutex, &h->work);
      continue;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)RELEASE_STEP_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    mutex_wait_until(&h->mutex, &h->work, &until);
  }
}

static void *
write_in_groups(void *self)
{
  struct handle *h = self;
  bool is_over = false;

  while (!is_over) {
    mutex_lock(&h->mutex);
    wait_for_operation(h);
    is_over = !h->first;
    h->waits_for_lock = !is_over;
    mutex_unlock(&h->mutex);
    if (!is_over)
      run_under_lock(h);
  }
  cut_log(h);
  group_disconnect(h);
  return NULL;
}

/* ---- the callers ----------------------------------------------------------------------------- */

/* Waits under the mutex until the operation is done, or its call is cancelled before it has begun.
 */
static dk_status
wait_until_done(struct handle *h, struct operation *op, bool *ret_waited_for_lock)
{
  assert(mutex_is_held(&h->mutex));
  while (op->state != OPERATION_DONE) {
    if (op->state == OPERATION_QUEUED && h->host->cancelled(op->call)) {
      take_back(h, op);
      *ret_waited_for_lock = h->waits_for_lock;
      if (!h->first && h->waits_for_lock)
        wake_writer(h); /* it need no longer wait for the lock */
      return DK_CALL_CANCELLED;
    }
    mutex_wait(&h->mutex, &op->woken);
  }
  return op->status;
}

static dk_status
tell_cancelled(const struct handle *h, const struct operation *op, bool waited_for_lock)
{
  struct why why;

  why_set(&why, DK_CALL_CANCELLED, "%s: cancelled while %s: %s", op->name,
          waited_for_lock ? "another process held the store" : "other operations ran",
          h->files.settings.path);
  return why_tell(&why, h->host, op->call);
}

dk_status
writer_submit(struct handle *h, struct operation *op)
{
  bool waited_for_lock = false;

  pthread_cond_init(&op->woken, NULL);
  mutex_lock(&h->mutex);
  writer_append(h, op);
  pthread_cond_signal(&h->work);
  dk_status status = wait_until_done(h, op, &waited_for_lock);
  bool was_taken_back = op->state != OPERATION_DONE;
  mutex_unlock(&h->mutex);
  pthread_cond_destroy(&op->woken);
  return was_taken_back ? tell_cancelled(h, op, waited_for_lock) : status;
}

/* CALL-5: an operation that has not begun checks whether its call is cancelled. */
void
sqlite_interrupt(void *self)
{
  struct handle *h = self;

  mutex_lock(&h->mutex);
  for (struct operation *op = h->first; op; op = op->next)
    pthread_cond_signal(&op->woken);
  mutex_unlock(&h->mutex);
}

/* ---- beginning and ending -------------------------------------------------------------------- */

/* The thread takes no signals: they are the host's. */
static int
start_thread(struct handle *h)
{
  sigset_t all, before;

  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int error = pthread_create(&h->thread, NULL, write_in_groups, h);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

dk_status
writer_start(struct handle *h, struct why *why)
{
  int error = start_thread(h);

  if (error != 0)
    return why_errno(why, error, "the writer thread cannot be started", h->files.settings.path);
  h->has_thread = true;
  return DK_OK;
}

void
writer_stop(struct handle *h)
{
  if (!h->has_thread)
    return;
  mutex_lock(&h->mutex);
  h->is_stopping = true;
  pthread_cond_signal(&h->work);
  mutex_unlock(&h->mutex);
  wake_writer(h);
  pthread_join(h->thread, NULL);
  h->has_thread = false;
}
