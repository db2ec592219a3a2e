/* SPDX-License-Identifier: Apache-2.0 */
/* The bell: the waiters of this handle.  It owns an eventfd for each waiter, and the thread of
 * listener.c, which begins with the first waiter or the first notification to others.
 *
 * A ring wakes one waiter of each group.  A waiter that finds something after a ring wakes two
 * more, because there may be more.  So all of a burst is found soon, and the cost of a single
 * message does not grow with the number of waiters. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "providers/pg/bell.h"

enum {
  SHORT_PATIENCE_MS = 20, /* twice as long each time, up to */
  LONGEST_SHORT_PATIENCE_MS = 1000,
  LONG_PATIENCE_MS = 5000,
  LAST_WORDS_MS = 500,    /* at most, of a handle that is closed */
  MORE = 2                /* how many a waiter wakes that found something */
};

/* ---- waiters --------------------------------------------------------------------------------- */

/* A write to an eventfd that is full fails; it is readable in both cases. */
void
bell_make_readable(int fd)
{
  const uint64_t one = 1;

  if (fd >= 0 && write(fd, &one, sizeof one) < 0)
    return;
}

void
bell_read_out(int fd)
{
  uint64_t count;

  while (fd >= 0 && read(fd, &count, sizeof count) > 0)
    continue;
}

static void
ring_waiter(struct waiter *waiter)
{
  waiter->is_rung = true;
  bell_make_readable(waiter->fd);
}

/* Rings for at most `n` waiters.  One that was rung before and has not looked since needs no ring.
 * If none waits, those that look now have to look again. */
static void
ring_group(struct bell *bell, uint64_t group, int n)
{
  bool somebody_waits = false;

  assert(mutex_is_held(&bell->mutex));
  assert(n > 0);
  for (struct waiter *w = bell->waiters; w && n > 0; w = w->next)
    if (w->group == group && w->waits) {
      somebody_waits = true;
      n -= w->is_rung ? 0 : 1;
      ring_waiter(w);
    }
  for (struct waiter *w = bell->waiters; w && !somebody_waits; w = w->next)
    if (w->group == group)
      ring_waiter(w);
}

static bool
is_first_of_group(const struct bell *bell, const struct waiter *waiter)
{
  const struct waiter *w = bell->waiters;

  assert(mutex_is_held(&bell->mutex));
  while (w->group != waiter->group)
    w = w->next;
  return w == waiter;
}

void
bell_ring_groups(struct bell *bell, uint32_t rings)
{
  assert(mutex_is_held(&bell->mutex));
  for (struct waiter *w = bell->waiters; w; w = w->next)
    if ((w->rings & rings) && is_first_of_group(bell, w))
      ring_group(bell, w->group, 1);
}

static void
ring_all(struct bell *bell)
{
  assert(mutex_is_held(&bell->mutex));
  for (struct waiter *w = bell->waiters; w; w = w->next)
    ring_waiter(w);
}

/* The waiters look, and then wait with the patience that is right now. */
void
bell_set_hears(struct bell *bell, bool hears)
{
  mutex_lock(&bell->mutex);
  if (bell->hears != hears)
    ring_all(bell);
  bell->hears = hears;
  if (!hears)
    bell->number = 0;
  mutex_unlock(&bell->mutex);
}

void
bell_join(struct bell *bell, struct waiter *waiter, uint32_t rings, uint64_t group)
{
  *waiter = (struct waiter){.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
                            .rings = rings,
                            .group = group,
                            .patience = SHORT_PATIENCE_MS};
  mutex_lock(&bell->mutex);
  waiter->next = bell->waiters;
  bell->waiters = waiter;
  mutex_unlock(&bell->mutex);
}

void
bell_hear_out(struct bell *bell, struct waiter *waiter)
{
  mutex_lock(&bell->mutex);
  bell_read_out(waiter->fd);
  waiter->was_rung = waiter->is_rung;
  waiter->is_rung = waiter->waits = false;
  mutex_unlock(&bell->mutex);
}

void
bell_leave(struct bell *bell, struct waiter *waiter, dk_status status)
{
  struct waiter **at = &bell->waiters;

  mutex_lock(&bell->mutex);
  while (*at != waiter) {
    assert(*at); /* bell_join has put it there */
    at = &(*at)->next;
  }
  *at = waiter->next;
  if (waiter->is_rung || (waiter->was_rung && !waiter->waits && status != DK_NOTHING))
    ring_group(bell, waiter->group, MORE);
  mutex_unlock(&bell->mutex);
  if (waiter->fd >= 0)
    close(waiter->fd);
}

/* ---- for the operations ---------------------------------------------------------------------- */

/* Under the mutex.  The thread takes no signals: they are the host's. */
static void
wake_thread(struct bell *bell)
{
  sigset_t all, before;

  assert(mutex_is_held(&bell->mutex));
  bell->is_poked = true;
  if (!bell->has_thread) {
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bell->has_thread = pthread_create(&bell->thread, NULL, bell_listen, bell) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  bell_make_readable(bell->wake_fd);
}

void
bell_ring(struct bell *bell, uint32_t rings, int64_t listening)
{
  mutex_lock(&bell->mutex);
  bell_ring_groups(bell, rings);
  if (listening != 0 && listening != bell->number) {
    bell->to_tell |= rings;
    wake_thread(bell);
  }
  mutex_unlock(&bell->mutex);
}

/* A notification from a superseded server is worth nothing. */
static bool
hears_the_wrong_one(struct bell *bell)
{
  mutex_lock(&bell->mutex);
  struct identity identity = bell->identity;
  mutex_unlock(&bell->mutex);
  return servers_have_superseded(bell->h->servers, &identity);
}

int64_t
bell_patience(struct bell *bell, struct waiter *waiter)
{
  int64_t patience = LONG_PATIENCE_MS, next = SHORT_PATIENCE_MS;
  bool is_wrong = hears_the_wrong_one(bell);

  mutex_lock(&bell->mutex);
  waiter->waits = true;
  bell->wants_to_hear = true;
  if (!bell->hears || is_wrong)
    wake_thread(bell);
  if (!bell->hears || waiter->fd < 0) {
    patience = waiter->patience;
    next = 2 * patience;
  }
  waiter->patience = next < LONGEST_SHORT_PATIENCE_MS ? next : LONGEST_SHORT_PATIENCE_MS;
  mutex_unlock(&bell->mutex);
  return patience;
}

dk_status
bell_new(struct handle *h, struct bell **ret_bell, struct why *why)
{
  struct bell *bell = malloc(sizeof *bell);

  if (!bell)
    return why_set(why, DK_NO_MEMORY, "out of memory");
  *bell = (struct bell){.h = h,
                        .wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
                        .under_way = NO_WORK};
  if (bell->wake_fd < 0) {
    why_set(why, DK_UNAVAILABLE, "no descriptor is left (ulimit -n): %s", strerror(errno));
    free(bell);
    return why->status;
  }
  mutex_init(&bell->mutex);
  *ret_bell = bell;
  return DK_OK;
}

/* Waits a moment at most for the last notifications to others.  The next listener, or the next
 * notification, removes the row of this listener. */
void
bell_free(struct bell *bell)
{
  if (!bell)
    return;
  mutex_lock(&bell->mutex);
  bell->is_stopping = true;
  bell->end_by = real_ms() + LAST_WORDS_MS;
  bell_make_readable(bell->wake_fd);
  mutex_unlock(&bell->mutex);
  if (bell->has_thread)
    pthread_join(bell->thread, NULL);
  if (bell->pg && bell->under_way == NO_WORK) {
    PQfinish(bell->pg); /* does not wait: the connection is non-blocking */
    bell->pg = NULL;
  }
  bell_drop(bell);
  close(bell->wake_fd);
  mutex_done(&bell->mutex);
  free(bell);
}
