/* SPDX-License-Identifier: Apache-2.0 */
/* Turnstiles and bells: see serialise.h.
 *
 * Locking.  A turnstile is an eventfd with the count one: the thread that reads it has passed, and
 * holds no mutex.  So a waiting call can be cancelled, a virtual clock sees it waiting, and
 * dk_store_close can give up on a call that never leaves.  The bells' lock guards their list; only
 * eventfd_write is called under it. */
#include "core/plugin/serialise.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/plugin/look.h"

bool
dk_turnstile_init(struct dk_turnstile *turnstile)
{
  turnstile->fd = eventfd(1, EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK);
  return turnstile->fd >= 0;
}

void
dk_turnstile_done(struct dk_turnstile *turnstile)
{
  close(turnstile->fd);
}

bool
dk_turnstile_try(struct dk_turnstile *turnstile)
{
  eventfd_t one;

  return !turnstile || eventfd_read(turnstile->fd, &one) == 0;
}

bool
dk_turnstile_enter(struct dk_turnstile *turnstile, int64_t limit_ms)
{
  int64_t end = dk_monotonic_ms() + limit_ms;

  while (!dk_turnstile_try(turnstile)) {
    struct pollfd look = {.fd = turnstile->fd, .events = POLLIN};
    int64_t left = limit_ms < 0 ? -1 : end - dk_monotonic_ms();
    if (limit_ms >= 0 && left <= 0)
      return false;
    poll(&look, 1, left < 0 ? -1 : (int)(left < 60000 ? left : 60000));
  }
  return true;
}

void
dk_turnstile_leave(struct dk_turnstile *turnstile)
{
  if (turnstile)
    eventfd_write(turnstile->fd, 1);
}

bool
dk_bells_init(struct dk_bells *bells)
{
  bells->first = NULL;
  return pthread_mutex_init(&bells->lock, NULL) == 0;
}

void
dk_bells_done(struct dk_bells *bells)
{
  pthread_mutex_destroy(&bells->lock);
}

bool
dk_bells_add(struct dk_bells *bells, struct dk_bell *bell)
{
  bell->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (bell->fd < 0)
    return false;
  pthread_mutex_lock(&bells->lock);
  bell->next = bells->first;
  bells->first = bell;
  pthread_mutex_unlock(&bells->lock);
  return true;
}

void
dk_bells_remove(struct dk_bells *bells, struct dk_bell *bell)
{
  pthread_mutex_lock(&bells->lock);
  for (struct dk_bell **at = &bells->first; *at; at = &(*at)->next)
    if (*at == bell) {
      *at = bell->next;
      break;
    }
  pthread_mutex_unlock(&bells->lock);
  close(bell->fd);
}

void
dk_bell_quiet(struct dk_bell *bell)
{
  dk_unring(bell->fd);
}

void
dk_bells_ring(struct dk_bells *bells)
{
  pthread_mutex_lock(&bells->lock);
  for (struct dk_bell *bell = bells->first; bell; bell = bell->next)
    dk_ring(bell->fd);
  pthread_mutex_unlock(&bells->lock);
}
