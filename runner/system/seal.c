/* SPDX-License-Identifier: Apache-2.0 */
/* Draws and gives out seals.  A number is drawn when it is asked for: before that it is in no
 * memory, not even in that of the runner's forked copies. */
#include "runner/system/seal.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

bool
seals_begin(struct seals *seals, int *ret_end)
{
  int ends[2];

  seals_end(seals);
  *seals = (struct seals){.fd = -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return false;
  seals->fd = ends[0];
  *ret_end = ends[1];
  return true;
}

/* 0 without randomness: then no seal is believed. */
static uint64_t
draw(void)
{
  uint64_t number = 0;
  ssize_t n;

  while ((n = getrandom(&number, sizeof(number), 0)) < 0 && errno == EINTR)
    continue;
  return n == (ssize_t)sizeof(number) ? number : 0;
}

static uint64_t
number_for(struct seals *seals, unsigned char use)
{
  if (use >= KIT_SEALS)
    return 0;
  seals->numbers[use] = seals->asked[use] ? 0 : draw();
  seals->asked[use] = true;
  return seals->numbers[use];
}

void
seals_answer(struct seals *seals)
{
  unsigned char use;
  ssize_t n;

  while (seals->fd >= 0 && (n = recv(seals->fd, &use, 1, MSG_DONTWAIT)) >= 0) {
    uint64_t number = n == 1 ? number_for(seals, use) : 0;
    /* The other end is closed, or is not read: so no more seals are given out. */
    if (n == 0
        || send(seals->fd, &number, sizeof(number), MSG_DONTWAIT | MSG_NOSIGNAL)
             != (ssize_t)sizeof(number))
      seals_end(seals);
  }
}

void
seals_end(struct seals *seals)
{
  if (seals->fd >= 0)
    close(seals->fd);
  seals->fd = -1;
}

bool
seals_match(const struct seals *seals, int use, uint64_t number)
{
  return number != 0 && seals->numbers[use] == number;
}
