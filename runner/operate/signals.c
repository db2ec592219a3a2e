/* SPDX-License-Identifier: Apache-2.0 */
/* A thread reads the signals from a descriptor, since a signal handler must not do what follows:
 * the canceller takes locks.  Owns the thread and its descriptors; other threads read `came`, and
 * set the words and the period with signals_tell.
 */
#include "runner/operate/signals.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "runner/cli/message.h"

struct host_signals {
  pthread_t thread;
  sigset_t set, before;
  int fd;       /* the signals */
  int end_fd;   /* readable: the thread must end */
  int came_fd;  /* readable: one came */
  int tell_fd;  /* readable: there are new words, or a new period */
  _Atomic(const char *) words;
  atomic_int period_ms; /* between two messages; -1: no message */
  atomic_bool came;
  struct dk_canceller *canceller;
};

/* All but those that the parent (nohup, a shell) has set to be ignored: blocking one of these would
 * make it seen. */
static void
choose(sigset_t *set)
{
  static const int wanted[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction action;

  sigemptyset(set);
  for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
    if (sigaction(wanted[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
      sigaddset(set, wanted[i]);
  }
}

/* Waits for the end or a signal, and prints the message meanwhile. */
static void
tell_until_signal(struct host_signals *signals, struct pollfd fds[3])
{
  eventfd_t value;

  do {
    int n = poll(fds, 3, atomic_load(&signals->period_ms));
    if (n == 0)
      message_print("%s", atomic_load(&signals->words));
    if (n <= 0)
      fds[0].revents = fds[1].revents = fds[2].revents = 0;
    if (fds[2].revents != 0)
      eventfd_read(signals->tell_fd, &value);
  } while (fds[0].revents == 0 && fds[1].revents == 0);
}

static void *
watch_signals(void *context)
{
  struct host_signals *signals = context;
  struct pollfd fds[3] = {{.fd = signals->end_fd, .events = POLLIN},
                          {.fd = signals->fd, .events = POLLIN},
                          {.fd = signals->tell_fd, .events = POLLIN}};
  struct signalfd_siginfo info;

  tell_until_signal(signals, fds);
  if (fds[0].revents != 0 || read(signals->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
    return NULL;
  atomic_store(&signals->came, true);
  eventfd_write(signals->came_fd, 1);
  dk_cancel(signals->canceller);
  pthread_sigmask(SIG_UNBLOCK, &signals->set, NULL); /* the next one ends the process */
  fds[0].revents = 0;
  while (poll(fds, 1, -1) < 0 && errno == EINTR)
    continue;
  return NULL;
}

static void
close_all(struct host_signals *signals)
{
  if (signals->fd >= 0)
    close(signals->fd);
  if (signals->end_fd >= 0)
    close(signals->end_fd);
  if (signals->came_fd >= 0)
    close(signals->came_fd);
  if (signals->tell_fd >= 0)
    close(signals->tell_fd);
  pthread_sigmask(SIG_SETMASK, &signals->before, NULL);
  free(signals);
}

struct host_signals *
signals_watch(struct dk_canceller *canceller)
{
  struct host_signals *signals = malloc(sizeof(*signals));

  if (!signals)
    return NULL;
  *signals = (struct host_signals){.canceller = canceller, .period_ms = -1};
  choose(&signals->set);
  pthread_sigmask(SIG_BLOCK, &signals->set, &signals->before);
  signals->fd = signalfd(-1, &signals->set, SFD_CLOEXEC);
  signals->end_fd = eventfd(0, EFD_CLOEXEC);
  signals->came_fd = eventfd(0, EFD_CLOEXEC);
  signals->tell_fd = eventfd(0, EFD_CLOEXEC);
  int error = signals->fd < 0 || signals->end_fd < 0 || signals->came_fd < 0
                  || signals->tell_fd < 0
                ? errno
                : pthread_create(&signals->thread, NULL, watch_signals, signals);
  if (error == 0)
    return signals;
  close_all(signals);
  errno = error;
  return NULL;
}

void
signals_done(struct host_signals *signals)
{
  if (!signals)
    return;
  eventfd_write(signals->end_fd, 1);
  pthread_join(signals->thread, NULL);
  close_all(signals);
}

bool
signals_came(const struct host_signals *signals)
{
  return signals && atomic_load(&signals->came);
}

void
signals_tell(struct host_signals *signals, const char *words, int period_ms)
{
  if (!signals)
    return;
  atomic_store(&signals->words, words);
  atomic_store(&signals->period_ms, period_ms);
  eventfd_write(signals->tell_fd, 1);
}

int
signals_fd(const struct host_signals *signals)
{
  return signals ? signals->came_fd : -1;
}
