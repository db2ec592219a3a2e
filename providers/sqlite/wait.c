/* SPDX-License-Identifier: Apache-2.0 */
/* CALL: the long poll, in the caller's thread.  Look; borrow an ear, look again, and wait: so
 * nothing slips between.  Each look is a fetch in the writer's queue, which writes nothing if it
 * finds nothing.  What wakes: a ring of the bell, by whatever process; the instant at which the
 * next timer or lease ends, as the last look has found it; the end of the wait. */
#include "providers/sqlite/handle.h"

static dk_status
look_and_wait(struct handle *h, struct operation *op, struct ear *ear, int64_t wait_until)
{
  const struct dk_host *host = h->host;

  for (;;) {
    bool is_last = host->now(host) >= wait_until;                      /* CALL-3 */
    bell_hear_out(&h->files.bell, ear);
    dk_status status = writer_submit(h, op);                           /* CALL-2 */
    if (status != DK_NOTHING || is_last)
      return status;
    status = host->wait(op->call, ear->fd, 1, op->due < wait_until ? op->due : wait_until);
    if (status != DK_OK && status != DK_NOTHING)                       /* CALL-4, CALL-6 */
      return status;
  }
}

dk_status
wait_for_work(struct handle *h, struct operation *op, int64_t wait_until)
{
  dk_status status = writer_submit(h, op);
  struct ear *ear;
  struct why why;

  if (status != DK_NOTHING || h->host->now(h->host) >= wait_until)
    return status;
  if (bell_lend(&h->files.bell, &ear, &why) != DK_OK)
    return why_tell(&why, h->host, op->call);
  status = look_and_wait(h, op, ear, wait_until);
  bell_take_back(&h->files.bell, ear);
  return status;
}
