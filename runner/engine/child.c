/* SPDX-License-Identifier: Apache-2.0 */
/* A child makes itself ready (group, folder, descriptors, signals), then hands over to the kit. */
#include "runner/engine/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

void
child_call(const struct task *task, struct kit_shared *shared, const struct kit_job *job)
{
  switch (task->kind) {
  case TASK_CHECK:
    kit_run(shared, job);
    break;
  case TASK_PROBE:
    kit_probe(shared, job, false);
    break;
  case TASK_PROBE_OPEN:
    kit_probe(shared, job, true);
    break;
  case TASK_SETTINGS:
    kit_check_settings(shared, job);
    break;
  case TASK_DESTROY:
    kit_destroy_stores(shared, job, task->suffixes, task->n_suffixes);
    break;
  }
}

static bool
keeps(const struct child *child, const struct kit_job *job, int fd)
{
  for (const int *kept = child->keeps; kept && *kept >= 0; kept++) {
    if (*kept == fd)
      return true;
  }
  return fd == job->seals;
}

/* The runner's own descriptors are close-on-exec; those that it inherited are not.  Some of them
 * are for the child. */
static int
close_own(const struct child *child, const struct kit_job *job)
{
  DIR *folder = opendir("/proc/self/fd");
  struct dirent *entry;

  if (!folder)
    return -1;
  while ((entry = readdir(folder)) != NULL) {
    int fd = atoi(entry->d_name);
    if (fd > 2 && !keeps(child, job, fd) && fd != dirfd(folder)
        && (fcntl(fd, F_GETFD) & FD_CLOEXEC))
      close(fd);
  }
  return closedir(folder);
}

/* Standard input is /dev/null, output goes to files, the runner's other descriptors are closed.
 * The runner opened the files with O_NONBLOCK; a program usually finds them without it. */
static int
take_descriptors(const struct child *child, const struct kit_job *job)
{
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

  if (null < 0 || dup2(null, 0) < 0 || dup2(child->output, 1) < 0 || dup2(child->errors, 2) < 0
      || fcntl(1, F_SETFL, O_APPEND) < 0 || fcntl(2, F_SETFL, O_APPEND) < 0)
    return -1;
  return close_own(child, job);
}

void
child_main(const struct child *child, const struct kit_job *job)
{
  struct rlimit no_core = {0, 0};
  sigset_t none;

  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* A process that loses its parent in here becomes a child of this process, and of the runner when
   * this process has ended: so the runner knows whose it is. */
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (getppid() != child->runner || take_descriptors(child, job) != 0 || chdir(child->folder) != 0)
    _exit(70);
  setrlimit(RLIMIT_CORE, &no_core);
  signal(SIGPIPE, SIG_DFL);
  /* If a parent of the runner blocks a signal, a crash could look like a pass. */
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  child_call(child->task, child->shared, job);
  if (child->leave_heir && kit_report_of(child->shared)->verdict == VERDICT_PASS)
    child->leave_heir(child, job);
  if (child->memcheck && !kit_memory_end(child->shared, job, child->held))
    _exit(KIT_EXIT_UNSEALED);
  _exit(0);
}
