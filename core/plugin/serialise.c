/* SPDX-License-Identifier: Apache-2.0 */
/* Turnstiles and bells: see serialise.h.
 *
 * Locking.  A turnstile's lock guards `taken` and is held for moments; who is through holds no
 * mutex, so that a closer can give up on a turnstile that is never left.  The bells' lock guards
 * their list; nothing is called under it but eventfd_write. */
#include "core/plugin/serialise.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/plugin/look.h"

bool
dk_turnstile_init(struct dk_turnstile *turnstile)
{
  pthread_condattr_t attributes;
  bool made = false;

  turnstile->taken = false;
  if (pthread_condattr_init(&attributes) != 0)
    return false;
  if (pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
      pthread_cond_init(&turnstile->free, &attributes) == 0) {
    made = pthread_mutex_init(&turnstile->lock, NULL) == 0;
    if (!made)
      pthread_cond_destroy(&turnstile->free);
  }
  pthread_condattr_destroy(&attributes);
  return made;
}

void
dk_turnstile_done(struct dk_turnstile *turnstile)
{
  pthread_cond_destroy(&turnstile->free);
  pthread_mutex_destroy(&turnstile->lock);
}

bool
dk_turnstile_enter(struct dk_turnstile *turnstile, int64_t limit_ms)
{
  if (!turnstile)
    return true;

  int64_t end = dk_monotonic_ms() + (limit_ms < 0 ? 0 : limit_ms);
  struct timespec until = {
    .tv_sec = (time_t)(end / 1000),
    .tv_nsec = (long)(end % 1000) * 1000000,
  };
  int error = 0;
  pthread_mutex_lock(&turnstile->lock);
  while (turnstile->taken && error != ETIMEDOUT)
    error = limit_ms < 0 ? pthread_cond_wait(&turnstile->free, &turnstile->lock)
                         : pthread_cond_timedwait(&turnstile->free, &turnstile->lock, &until);
  bool entered = !turnstile->taken;
  turnstile->taken = true;
  pthread_mutex_unlock(&turnstile->lock);
  return entered;
}

void
dk_turnstile_leave(struct dk_turnstile *turnstile)
{
  if (!turnstile)
    return;
  pthread_mutex_lock(&turnstile->lock);
  turnstile->taken = false;
  pthread_cond_signal(&turnstile->free);
  pthread_mutex_unlock(&turnstile->lock);
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
