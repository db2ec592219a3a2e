/* SPDX-License-Identifier: Apache-2.0 */
/* CALL: the long poll, in the caller's thread.  It looks; it borrows an ear, reads the numbers of
 * the rings, looks again, and waits: so no ring is missed in between.  Each look is a fetch in the
 * writer's queue, which writes nothing if it finds nothing.  Three things wake it: a ring for the
 * queue, by any process; the instant at which the next timer or lease ends, as the last look has
 * found it; the end of the wait.  A ring for the other queue costs a read of the lock file, and
 * costs the writer nothing. */
#include "providers/sqlite/handle.h"

/* How often it looks without an ear, when the descriptors are used up; host time. */
enum { DEAF_STEP_MS = 100 };

/* DK_OK: rung; DK_NOTHING: it is `until`; else the wait was ended. */
static dk_status
wait_for_ring(struct handle *h, const struct operation *op, struct ear *ear, uint64_t number,
              int64_t until)
{
  const struct dk_host *host = h->host;

  for (;;) {
    dk_status status = host->wait(op->call, ear->fd, 1, until);
    if (status != DK_OK)
      return status;
    bell_hear_out(&h->files.bell, ear);
    if (lockfile_rung_for(&h->files.lock, op->queue) != number)
      return DK_OK;
    if (host->now(host) >= until) /* a bell that never rests is no reason to miss it */
      return DK_NOTHING;
  }
}

static dk_status
look_and_wait(struct handle *h, struct operation *op, struct ear *ear, int64_t wait_until)
{
  const struct dk_host *host = h->host;

  for (;;) {
    bool is_last = host->now(host) >= wait_until;                      /* CALL-3 */
    bell_hear_out(&h->files.bell, ear);
    uint64_t number = lockfile_rung_for(&h->files.lock, op->queue);
    dk_status status = writer_submit(h, op);                           /* CALL-2 */
    if (status != DK_NOTHING || is_last)
      return status;
    status = wait_for_ring(h, op, ear, number, time_earlier(op->due, wait_until));
    if (status != DK_OK && status != DK_NOTHING)                       /* CALL-4, CALL-6 */
      return status;
  }
}

/* After a look that found nothing: waits until there is an ear, or until the end.  DK_NOTHING: the
 * wait has ended. */
static dk_status
wait_for_ear(struct handle *h, struct operation *op, struct ear **ret_ear, int64_t wait_until)
{
  const struct dk_host *host = h->host;
  struct why why;

  while (bell_lend(&h->files.bell, ret_ear, &why) != DK_OK) {
    int64_t step = time_add(host->now(host), DEAF_STEP_MS);
    int64_t until = time_earlier(step, time_earlier(op->due, wait_until));
    dk_status status = host->wait(op->call, -1, 0, until);
    if (status != DK_OK && status != DK_NOTHING)
      return status;
    bool is_last = host->now(host) >= wait_until;
    status = writer_submit(h, op);
    if (status != DK_NOTHING || is_last)
      return status;
  }
  return DK_OK;
}

dk_status
wait_for_work(struct handle *h, struct operation *op, int64_t wait_until)
{
  dk_status status = writer_submit(h, op);
  struct ear *ear = NULL;

  if (status != DK_NOTHING || h->host->now(h->host) >= wait_until)
    return status;
  status = wait_for_ear(h, op, &ear, wait_until);
  if (!ear)
    return status;
  status = look_and_wait(h, op, ear, wait_until);
  bell_take_back(&h->files.bell, ear);
  return status;
}
