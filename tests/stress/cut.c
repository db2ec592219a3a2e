/* SPDX-License-Identifier: Apache-2.0 */
/* The client's own end of its connections is shut, so that an answer that is on its way is lost
 * although what it answers has landed. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "tests/stress/stress.h"

enum { MOST_FDS = 1024 };

struct cutter {
  const struct run *run;
  uint64_t state;                /* of chance */
  bool is_old[MOST_FDS];         /* sockets that were here before, and are left alone */
  bool is_started;
  _Atomic bool ends;
  pthread_t thread;
};

static uint64_t
chance(struct cutter *cutter, uint64_t below)
{
  cutter->state ^= cutter->state << 13;
  cutter->state ^= cutter->state >> 7;
  cutter->state ^= cutter->state << 17;
  return (cutter->state >> 11) % below;
}

/* And not yet shut. */
static bool
is_connected(int fd)
{
  struct sockaddr_storage peer;
  socklen_t size = sizeof peer;
  struct pollfd line = {.fd = fd, .events = POLLRDHUP};

  return getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && poll(&line, 1, 0) >= 0 &&
         !(line.revents & (POLLHUP | POLLRDHUP | POLLERR));
}

/* Any of them; false: there is none. */
static bool
cut_one(struct cutter *cutter)
{
  int fds[MOST_FDS];
  size_t n = 0;

  for (int fd = 0; fd < MOST_FDS; fd++)
    if (!cutter->is_old[fd] && is_connected(fd))
      fds[n++] = fd;
  return n > 0 && shutdown(fds[chance(cutter, n)], SHUT_RDWR) == 0;
}

static void *
cut_on(void *context)
{
  struct cutter *cutter = context;
  struct journal *j = cutter->run->journal;

  while (!atomic_load(&cutter->ends) && !atomic_load(&j->stops)) {
    let_pass((int)chance(cutter, (uint64_t)cutter->run->life_ms));
    if (cut_one(cutter))
      atomic_fetch_add(&j->harmed, 1);
  }
  return NULL;
}

struct cutter *
cutter_new(const struct run *run, uint64_t seed)
{
  struct cutter *cutter = calloc(1, sizeof *cutter);

  if (!cutter)
    return NULL;
  cutter->run = run;
  cutter->state = (seed + 1) * 2654435761u | 1;
  for (int fd = 0; fd < MOST_FDS; fd++)
    cutter->is_old[fd] = is_connected(fd);
  return cutter;
}

bool
cutter_start(struct cutter *cutter)
{
  if (cutter)
    cutter->is_started = pthread_create(&cutter->thread, NULL, cut_on, cutter) == 0;
  return cutter && cutter->is_started;
}

void
cutter_end(struct cutter *cutter)
{
  if (!cutter)
    return;
  atomic_store(&cutter->ends, true);
  if (cutter->is_started)
    pthread_join(cutter->thread, NULL);
  free(cutter);
}
