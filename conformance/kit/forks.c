/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a plugin that forks without exec: the copy has the host's locks, connections and buffers,
 * but only one of its threads.
 *
 * The C library calls the functions below around each fork (pthread_atfork), but not around
 * posix_spawn, system, popen and vfork, which end in another program.  The copy writes its number
 * into a pipe and keeps its end open; exec closes that end.  The parent looks at the copy before
 * fork returns, when no other code can have waited for it yet: the kernel knows whether a process
 * has called exec.  A copy that sleeps for long is left alone: if it still runs when the check has
 * ended, the runner finds it. */
#include "conformance/kit/state.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
  NO_EXEC = 0x40,       /* PF_FORKNOEXEC, of the flags in /proc/PID/stat */
  LOOK_MS = 2,
  IDLE_LOOKS = 150,     /* so many times the copy may be seen asleep */
  MOST_NS = 2000000000  /* a fork is delayed for so long at most */
};

enum fate { UNDECIDED, ENDED_AS_COPY, NO_COPY };

/* Of the process that forks.  `forking` is held around each fork, and guards `ends`. */
static struct kit_shared *watched; /* NULL: forks are not watched */
static pthread_mutex_t forking = PTHREAD_MUTEX_INITIALIZER;
static int ends[2] = {-1, -1};

static void
close_end(int *end)
{
  if (*end >= 0)
    close(*end);
  *end = -1;
}

static void
before_fork(void)
{
  if (watched == NULL)
    return;
  pthread_mutex_lock(&forking);
  if (pipe2(ends, O_CLOEXEC) != 0)
    ends[0] = ends[1] = -1;
}

static void
in_copy(void)
{
  pid_t self = getpid();

  if (watched == NULL)
    return;
  watched = NULL;
  close_end(&ends[0]);
  if (ends[1] >= 0 && write(ends[1], &self, sizeof(self)) != (ssize_t)sizeof(self))
    close_end(&ends[1]);
  pthread_mutex_unlock(&forking);
}

static enum fate
look_at_copy(pid_t pid)
{
  char path[64], line[512];
  ssize_t n = -1;
  unsigned flags;
  char state;

  snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    n = read(fd, line, sizeof(line) - 1);
    close(fd);
  }
  line[n > 0 ? n : 0] = '\0';
  const char *name = strrchr(line, ')');
  if (name == NULL || sscanf(name + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2
      || (flags & NO_EXEC) == 0)
    return NO_COPY; /* it is another program now, or has been reaped */
  return state == 'Z' || state == 'X' ? ENDED_AS_COPY : UNDECIDED;
}

/* Waits until it is another program, has ended, or has slept for long. */
static enum fate
follow_copy(pid_t pid, int end)
{
  struct pollfd pipe = {.fd = end, .events = POLLIN};
  int64_t bound = kit_real_ns() + MOST_NS;
  enum fate fate = UNDECIDED;

  for (int idle = 0; fate == UNDECIDED && idle < IDLE_LOOKS && kit_real_ns() < bound;) {
    if (poll(&pipe, 1, LOOK_MS) > 0)
      pipe.fd = -1; /* it is closed, so the next look comes at once; poll passes by -1 */
    idle += kit_process_runs(pid) ? 0 : 1;
    fate = look_at_copy(pid);
  }
  return fate;
}

static void
after_fork(void)
{
  int32_t none = 0;
  pid_t copy;

  if (watched == NULL)
    return;
  close_end(&ends[1]);
  if (ends[0] >= 0 && read(ends[0], &copy, sizeof(copy)) == (ssize_t)sizeof(copy)
      && follow_copy(copy, ends[0]) == ENDED_AS_COPY
      && atomic_compare_exchange_strong(&watched->fork.copy, &none, (int32_t)copy))
    snprintf(watched->fork.operation, sizeof(watched->fork.operation), "%.47s",
             watched->report.operation);
  close_end(&ends[0]);
  pthread_mutex_unlock(&forking);
}

pid_t
kit_fork(void)
{
  struct kit_shared *was = watched;
  pid_t pid;

  watched = NULL;
  pid = fork();
  watched = was;
  return pid;
}

/* Not in checks of the runtime: the runtime itself forks a process for its activities. */
void
kit_watch_forks(struct kit_shared *shared, const struct kit_job *job)
{
  static bool is_set;

  if (job->in_process || (job->check->flags & IS_RUNTIME) != 0)
    return;
  if (!is_set && pthread_atfork(before_fork, after_fork, in_copy) != 0)
    return;
  is_set = true;
  watched = shared;
}

bool
state_forks_differ(const struct kit_state *before, const struct kit_state *after,
                   struct kit_report *report)
{
  const char *operation = before->shared->fork.operation;
  int32_t copy = atomic_load(&before->shared->fork.copy);

  (void)after;
  return copy != 0
         && state_damage(report, "ABI-5",
                         "no fork without exec: start a thread of your own, or a program with "
                         "posix_spawn",
                         "the process was forked%s%s; its copy, process %ld, has ended "
                         "without exec", operation[0] == '\0' ? "" : " in ", operation, (long)copy);
}
