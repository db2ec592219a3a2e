/* SPDX-License-Identifier: Apache-2.0 */
/* A process that waits for a processor is distinguished from one that waits for anything else. */
#include "runner/system/processor-wait.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

enum { ENOUGH_MS = 100, PATIENCE_S = 60, LOOK_MS = 5 };

/* /proc/PID/stat: "17 (name) S ..." */
static bool
sleeps(pid_t pid)
{
  char path[64];
  char state = '\0';

  snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "re");
  if (!file)
    return true; /* it has ended, which the points below show */
  if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
    state = '\0';
  fclose(file);
  return state == 'S';
}

/* Makes a child on the first processor that this process may use; it spins, or pauses.  When this
 * returns it does so: before that it may have waited for a processor. */
static pid_t
child(const cpu_set_t *one, bool spins)
{
  int ready[2];
  char byte;

  if (pipe(ready) != 0)
    BAIL_OUT("no pipe can be made");
  pid_t pid = fork();

  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sched_setaffinity(0, sizeof(*one), one);
    close(ready[0]);
    close(ready[1]); /* so that the child's end is the only one */
    for (;;) {
      if (!spins)
        pause();
    }
  }
  if (pid < 0)
    BAIL_OUT("no process can be made");
  close(ready[1]);
  if (read(ready[0], &byte, 1) != 0)
    BAIL_OUT("the child does not become ready");
  close(ready[0]);
  while (!spins && !sleeps(pid))
    poll(NULL, 0, 1);
  return pid;
}

static void
one_processor(cpu_set_t *one)
{
  cpu_set_t all;
  size_t first = 0;

  sched_getaffinity(0, sizeof(all), &all);
  while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &all))
    first++;
  CPU_ZERO(one);
  CPU_SET(first, one);
}

/* Two that spin on one processor: each waits half of the time. */
static bool
comes_to(pid_t pid, int64_t ms)
{
  struct timespec begin;
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    if (processor_wait_ns(pid) >= ms * 1000000)
      return true;
    poll(NULL, 0, LOOK_MS);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec - begin.tv_sec < PATIENCE_S);
  return false;
}

int
main(void)
{
  cpu_set_t one;
  pid_t pids[3];

  if (access("/proc/self/schedstat", R_OK) != 0)
    plan(SKIP_ALL, "the kernel does not report how long a process waited (/proc/PID/schedstat)");
  one_processor(&one);
  for (int i = 0; i < 3; i++)
    pids[i] = child(&one, i < 2);
  int64_t before = processor_wait_ns(pids[2]);
  ok(comes_to(pids[0], ENOUGH_MS), "one of two that share a processor has waited for it");
  ok(comes_to(pids[1], ENOUGH_MS), "and so has the other");
  cmp_ok(processor_wait_ns(pids[2]) - before, "==", 0, "one that waits for a signal has not");
  for (int i = 0; i < 3; i++) {
    kill(pids[i], SIGKILL);
    waitpid(pids[i], NULL, 0);
  }
  cmp_ok(processor_wait_ns(pids[0]), "==", 0, "for one that has ended it is 0");
  return done_testing();
}
