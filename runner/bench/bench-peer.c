/* SPDX-License-Identifier: Apache-2.0 */
/* One side of a measurement: a process that gets a request in a line, and answers in a line. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/bench/bench.h"

enum { A_SECOND = 1000 };

/* Opens two streams, one for reading and one for writing. */
static bool
open_streams(int fd, FILE **ret_from, FILE **ret_to)
{
  int other = dup(fd);

  *ret_from = fdopen(fd, "r");
  *ret_to = other >= 0 ? fdopen(other, "w") : NULL;
  return *ret_from && *ret_to;
}

/* Forks with a line between the two; 0 in the child, whose end is *ret_fd. */
static pid_t
fork_with_line(struct peer *peer, const char *name, int *ret_fd)
{
  int ends[2];

  *peer = (struct peer){.name = name, .pid = -1, .on_wait = peer->on_wait,
                        .context = peer->context};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return -1;
  fflush(NULL);
  pid_t pid = fork();
  *ret_fd = ends[pid == 0];
  close(ends[pid != 0]);
  if (pid == 0)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (pid < 0)
    close(*ret_fd);
  return pid;
}

static bool
take_end(struct peer *peer, pid_t pid, int fd)
{
  peer->pid = pid;
  if (pid > 0 && open_streams(fd, &peer->from, &peer->to))
    return true;
  snprintf(peer->trouble, sizeof(peer->trouble), "cannot be started: %s", strerror(errno));
  return false;
}

bool
bench_peer_fork(struct peer *peer, const char *name, serve_fn *serve, void *context)
{
  int fd = -1;
  pid_t pid = fork_with_line(peer, name, &fd);

  if (pid == 0) {
    FILE *from, *to;
    if (!open_streams(fd, &from, &to))
      _exit(70);
    serve(from, to, context);
    fflush(to);
    _exit(0);
  }
  return take_end(peer, pid, fd);
}

bool
bench_peer_execute(struct peer *peer, const char *name, const char *program, const char *store)
{
  int fd = -1;
  pid_t pid = fork_with_line(peer, name, &fd);

  if (pid == 0) {
    if (dup2(fd, 0) >= 0 && dup2(fd, 1) >= 0)
      execl(program, program, store, (char *)NULL);
    dprintf(1, "no %s: %s\n", program, strerror(errno));
    _exit(70);
  }
  return take_end(peer, pid, fd);
}

/* The other end of the socket may also be held by a process that the peer has started, and that
 * outlives it: so the wait ends when the peer ends.  False: no answer will come. */
static bool
has_word(const struct peer *peer)
{
  int life = (int)syscall(SYS_pidfd_open, peer->pid, 0);
  struct pollfd ends[] = {{.fd = fileno(peer->from), .events = POLLIN},
                          {.fd = life, .events = POLLIN}};

  int n;
  while ((n = poll(ends, 2, peer->on_wait ? A_SECOND : -1)) == 0 || (n < 0 && errno == EINTR)) {
    if (n == 0)
      peer->on_wait(peer->context);
  }
  if (life >= 0)
    close(life);
  return ends[0].revents != 0;
}

/* Reads a line with its '\n', without a buffer, so that poll sees all that was not read. */
static bool
read_line(const struct peer *peer, char *line, size_t size)
{
  size_t n = 0;

  while (n + 1 < size && has_word(peer) && read(fileno(peer->from), &line[n], 1) == 1) {
    if (line[n++] == '\n')
      break;
  }
  line[n] = '\0';
  return n > 0;
}

/* Notes what came instead of an answer. */
static bool
note_end(struct peer *peer)
{
  int status = 0;

  if (peer->pid > 0 && waitpid(peer->pid, &status, 0) == peer->pid)
    peer->pid = -1;
  if (WIFSIGNALED(status))
    snprintf(peer->trouble, sizeof(peer->trouble), "was ended by signal %d (%s)", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
  else
    snprintf(peer->trouble, sizeof(peer->trouble), "ended with exit %d", WEXITSTATUS(status));
  return false;
}

bool
bench_peer_ask(struct peer *peer, char *ret_answer, size_t size, const char *format, ...)
{
  char line[1024];
  va_list args;

  if (peer->trouble[0])
    return false;
  va_start(args, format);
  vfprintf(peer->to, format, args);
  va_end(args);
  fputc('\n', peer->to);
  fflush(peer->to); /* a peer that has ended reads nothing more, but may have written why */
  if (!read_line(peer, line, sizeof(line)))
    return note_end(peer);
  line[strcspn(line, "\n")] = '\0';
  if (strncmp(line, "ok", 2) != 0 || (line[2] && line[2] != ' ')) {
    snprintf(peer->trouble, sizeof(peer->trouble), "%.500s",
             strncmp(line, "no ", 3) == 0 ? line + 3 : line);
    return false;
  }
  snprintf(ret_answer, size, "%s", line[2] ? line + 3 : "");
  return true;
}

void
bench_peer_end(struct peer *peer)
{
  /* The end of its input ends the peer, which then removes its store. */
  if (peer->to) {
    fflush(peer->to);
    shutdown(fileno(peer->to), SHUT_WR);
    fclose(peer->to);
  }
  char rest;
  while (peer->from && peer->pid > 0 && has_word(peer)
         && read(fileno(peer->from), &rest, 1) == 1)
    continue;
  if (peer->from)
    fclose(peer->from);
  while (peer->pid > 0 && waitpid(peer->pid, NULL, 0) < 0 && errno == EINTR)
    continue;
  *peer = (struct peer){.pid = -1};
}
