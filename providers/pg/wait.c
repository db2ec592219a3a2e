/* SPDX-License-Identifier: Apache-2.0 */
/* CALL: the long poll, in the caller's thread.  It joins the bell, looks, and waits: so no ring is
 * missed in between.  Each look is an attempt of its own, with a connection for as long as that
 * takes.  Four things wake it: a ring, of this handle or another; the instant at which the next
 * timer or lease ends, as the last look has found it; the end of its patience, for changes without
 * a notification; the end of the wait.
 *
 * A look may find rows that are due, but that a running transaction holds, most often for a moment.
 * It never waits for them, because it may hold locks itself; there is another look in another
 * transaction.  That one knows how many looks there were.  After a few it begins with a wait for
 * the first such row, while it holds no lock; and not for long, because something else may become
 * ready. */
#include "providers/pg/handle.h"

/* How many looks may find that others were there first, and for how long each of the others waits
 * in the server (begin_await in schema/common.sql).  Then DK_BUSY. */
enum { LOOKS = 200, AWAIT_MS = 100 };

typedef dk_status look_fn(struct operation *op, const void *request, int64_t *ret_due);

struct fetch {
  look_fn *look;
  const void *request;
  int64_t wait_until;
  uint32_t rings;
  uint64_t group;         /* equal for what finds the same */
};

int64_t
host_time(const struct operation *op, int64_t store_now, int64_t store_time)
{
  int64_t left;

  if (store_time == INT64_MAX || op->h->store.host_clock)
    return store_time;
  if (__builtin_sub_overflow(store_time, store_now, &left))
    return INT64_MAX;
  return time_add(op->h->host->now(op->h->host), left);
}

/* ---- one look -------------------------------------------------------------------------------- */

/* DK_NOTHING: *ret_due is when to look again at the latest, as far as the store knows. */
static dk_status
wait_look(struct operation *op, const struct fetch *f, int64_t *ret_due)
{
  const struct dk_host *host = op->h->host;
  int64_t lock_ms = op->h->settings.lock_ms, waited_ms = 0;
  int n_again = 0;

  for (op->tries = 0; n_again < LOOKS && waited_ms < lock_ms; op->tries++) {
    dk_status status = f->look(op, f->request, ret_due);
    if (status == ATTEMPT_IN_VAIN)
      waited_ms += AWAIT_MS;
    else if (status == ATTEMPT_AGAIN)
      n_again++;
    else
      return status;
    if (host->cancelled(op->call))
      return DK_CALL_CANCELLED;
  }
  return refuse(op, DK_BUSY, "other transactions held all that is due at each of %d attempts, and "
                "the same one for %lldms; look for a transaction that was left open, or "
                "increase lock_timeout", (int)op->tries, (long long)waited_ms);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static dk_status
look_and_wait(struct operation *op, const struct fetch *f, struct waiter *waiter)
{
  const struct dk_host *host = op->h->host;

  for (;;) {
    int64_t due = INT64_MAX;
    bool is_last = host->now(host) >= f->wait_until;                   /* CALL-3 */
    bell_hear_out(op->h->bell, waiter);
    dk_status status = wait_look(op, f, &due); /* CALL-2 */
    if (status != DK_NOTHING || is_last)
      return status;

    int64_t patience = bell_patience(op->h->bell, waiter);
    int64_t until = time_earlier(due, f->wait_until);
    until = time_earlier(until, time_add(host->now(host), patience));
    status = host->wait(op->call, waiter->fd, DK_WAIT_READ, until);
    if (status != DK_OK && status != DK_NOTHING)                       /* CALL-4, CALL-6 */
      return status;
  }
}

static dk_status
run_fetch(struct operation *op, const struct fetch *f)
{
  const struct dk_host *host = op->h->host;
  struct waiter waiter;
  int64_t due;

  if (f->wait_until <= host->now(host))
    return wait_look(op, f, &due);
  bell_join(op->h->bell, &waiter, f->rings, f->group);
  dk_status status = look_and_wait(op, f, &waiter);
  bell_leave(op->h->bell, &waiter, status);
  return status;
}

/* ---- both queues ----------------------------------------------------------------------------- */

static uint64_t
group_of_turns(const struct dk_fetch_turn *request)
{
  size_t n = request->ranges ? request->n_ranges : SIZE_MAX; /* any version */
  uint64_t hash = hash_mix(UINT64_C(0xcbf29ce484222325), &n, sizeof n);

  for (size_t i = 0; request->ranges && i < n; i++)
    hash = hash_mix(hash, &request->ranges[i], sizeof request->ranges[i]);
  return hash;
}

static uint64_t
group_of_work(const struct dk_fetch_work *request)
{
  uint64_t hash =
    hash_mix(UINT64_C(0x84222325cbf29ce4), &request->tag_rule, sizeof request->tag_rule);

  for (size_t i = 0; i < request->n_tags; i++) {
    hash = hash_mix(hash, &request->tags[i].len, sizeof request->tags[i].len);
    hash = hash_mix(hash, request->tags[i].ptr, request->tags[i].len);
  }
  return hash;
}

static dk_status
look_for_turn(struct operation *op, const void *request, int64_t *ret_due)
{
  return apply_fetch_turn(op, request, ret_due);
}

static dk_status
look_for_work(struct operation *op, const void *request, int64_t *ret_due)
{
  return apply_fetch_work(op, request, ret_due);
}

dk_status
wait_for_turn(struct operation *op, const struct dk_fetch_turn *request)
{
  return run_fetch(op, &(struct fetch){.look = look_for_turn,
                                       .request = request,
                                       .wait_until = request->wait_until,
                                       .rings = RING_TURNS,
                                       .group = group_of_turns(request)});
}

dk_status
wait_for_work(struct operation *op, const struct dk_fetch_work *request)
{
  return run_fetch(op, &(struct fetch){.look = look_for_work,
                                       .request = request,
                                       .wait_until = request->wait_until,
                                       .rings = RING_WORK,
                                       .group = group_of_work(request)});
}
