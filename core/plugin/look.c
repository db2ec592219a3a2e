/* SPDX-License-Identifier: Apache-2.0 */
/* Polls the descriptors of a wait: see look.h.  Owns nothing. */
#include "core/plugin/look.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "core/base/sat.h"

int64_t
dk_monotonic_ms(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static short
poll_events(uint32_t events)
{
  int wanted = (events & DK_WAIT_READ ? POLLIN : 0) | (events & DK_WAIT_WRITE ? POLLOUT : 0);

  return (short)wanted;
}

static int
left_until(int64_t end)
{
  int64_t left;

  if (end == INT64_MAX)
    return -1;
  left = end - dk_monotonic_ms();
  return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

unsigned
dk_look(const struct dk_wait *wait, int bell, int64_t limit_ms)
{
  struct pollfd fds[] = {
    {.fd = wait->cancel_fd, .events = POLLIN},
    {.fd = wait->fd, .events = poll_events(wait->events)},
    {.fd = bell, .events = POLLIN},
  };
  int64_t end = limit_ms < 0 ? INT64_MAX : limit_ms;
  int n;

  if (limit_ms > 0)
    end = dk_sat_add(dk_monotonic_ms(), limit_ms);
  do {
    n = poll(fds, 3, limit_ms == 0 ? 0 : left_until(end));
  } while (n < 0 && errno == EINTR);

  /* A broken descriptor counts as ready, so that the code that reads it gets the error. */
  return n <= 0 ? 0
                : (fds[0].revents ? DK_LOOK_CANCELLED : 0u) |
                    (fds[1].revents ? DK_LOOK_READY : 0u) | (fds[2].revents ? DK_LOOK_BELL : 0u);
}

void
dk_ring(int bell)
{
  /* It fails only if the bell is ringing already, or is -1. */
  eventfd_write(bell, 1);
}

void
dk_unring(int bell)
{
  eventfd_t rings;

  eventfd_read(bell, &rings);
}
