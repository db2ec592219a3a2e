/* SPDX-License-Identifier: Apache-2.0 */
/* The command as a child under Valgrind: the zygote, which links the plugin and is forked for each
 * check, or one cold check.  A check is forked by a process that ends at once, so that it becomes a
 * child of the runner, which watches, ends and reaps it as it does with all. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/engine/child.h"
#include "runner/engine/request.h"
#include "runner/engine/zygote.h"

enum { MOST_REQUEST = 256 * 1024 };

struct here {
  int request_fd, file;      /* the socket, or the one request; the shared map, which each check
                                maps for itself: Valgrind would touch all of it in the zygote */
  void *held;
  request_find_fn *find;
};

/* ---- a check --------------------------------------------------------------------------------- */

/* Opens the file that the runner has made, if the name still belongs to it. */
static int
open_beside(const struct request *request, const char *ending)
{
  char path[512];
  struct stat st;

  snprintf(path, sizeof(path), "%s.%s", request->task.job.folder, ending);
  int fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
    return fd;
  close(fd);
  return -1;
}

static void leave_heir(const struct child *child, const struct kit_job *job);

__attribute__((noreturn)) static void
become_check(struct here *here, const struct request *request)
{
  const int keeps[] = {here->request_fd, here->file, -1};
  struct child child = {.task = &request->task,
                        .shared = kit_shared_map(here->file),
                        .folder = request->task.job.folder,
                        .output = open_beside(request, "out"),
                        .errors = open_beside(request, "err"),
                        .runner = request->runner,
                        .memcheck = true,
                        .held = here->held,
                        .context = here};

  if (!child.shared)
    _exit(70);
  if (request->task.warms && here->held) {
    child.keeps = keeps;
    child.leave_heir = leave_heir;
  }
  child_main(&child, &request->task.job);
}

/* ---- the zygote ------------------------------------------------------------------------------ */

static bool
answer(const struct here *here, enum zygote_word word, int32_t value)
{
  struct zygote_answer said = {(int32_t)word, value};

  return send(here->request_fd, &said, sizeof(said), MSG_NOSIGNAL) == (ssize_t)sizeof(said);
}

static bool
read_all(int fd, void *bytes, size_t size)
{
  ssize_t n;

  while ((n = read(fd, bytes, size)) < 0 && errno == EINTR)
    continue;
  return n == (ssize_t)size;
}

/* Forks the check, passes on its process id, and ends at once, without any output. */
__attribute__((noreturn)) static void
be_between(struct here *here, const struct request *request, const int number[2],
           const int go[2])
{
  pid_t pid = fork();
  char word;

  if (pid == 0) {
    /* Not before the runner is its parent. */
    if (!read_all(go[0], &word, 1))
      _exit(70);
    become_check(here, request);
  }
  if (write(number[1], &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
    _exit(70);
  for (;;)
    raise(SIGKILL);
}

/* The check's number; 0: it could not be forked. */
static pid_t
fork_check(struct here *here, const struct request *request)
{
  int number[2];
  int go[2];
  pid_t pid = 0;

  if (pipe2(number, O_CLOEXEC) != 0)
    return 0;
  if (pipe2(go, O_CLOEXEC) == 0) {
    pid_t between = fork();
    if (between == 0)
      be_between(here, request, number, go);
    if (between > 0) {
      close(number[1]);
      number[1] = -1;
      if (!read_all(number[0], &pid, sizeof(pid)) || pid < 0)
        pid = 0;
      while (waitpid(between, NULL, 0) < 0 && errno == EINTR)
        continue;
      /* Its parent has ended, and so it is the runner's. */
      if (pid > 0 && write(go[1], "", 1) != 1)
        pid = 0;
    }
    close(go[0]);
    close(go[1]);
  }
  close(number[0]);
  if (number[1] >= 0)
    close(number[1]);
  return pid;
}

/* Runs until the runner closes its end.  The request does not lie on the heap: there it would be a
 * leak of each check. */
static int
serve(struct here *here)
{
  char *bytes = mmap(NULL, MOST_REQUEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                     0);
  ssize_t n;
  bool well = bytes != MAP_FAILED;
  int seals;

  while (well && (n = request_receive(here->request_fd, bytes, MOST_REQUEST, &seals)) != 0) {
    struct request request = {.settings = NULL};
    if (n < 0 && errno == EINTR)
      continue;
    well = n > 0 && request_read(&request, bytes, (size_t)n, here->find) && seals >= 0;
    request.task.job.seals = seals;
    pid_t pid = well ? fork_check(here, &request) : 0;
    well = well && pid > 0 && answer(here, ZYGOTE_FORKED, pid);
    if (seals >= 0)
      close(seals);
    request_done(&request);
  }
  return well ? 0 : 70;
}

/* ---- an heir --------------------------------------------------------------------------------- */

/* Gives up what belongs to the check, but stays in its folder: by that the runner knows whose it is
 * until it takes it. */
static bool
leave_check(const struct kit_job *job)
{
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);

  close(job->seals);
  return null > 2 && dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2
         && close(null) == 0;
}

/* Until the runner takes it no request comes, and then the runner is its parent. */
__attribute__((noreturn)) static void
be_heir(const struct child *child, const struct kit_job *job)
{
  setpgid(0, 0);
  if (!leave_check(job))
    _exit(70);
  kit_memory_inherit(child->shared, job);
  _exit(serve(child->context));
}

/* Valgrind does not report again in a copy what it has reported in the original, and a copy has one
 * thread: without an heir the next checks are copies of the zygote. */
static void
leave_heir(const struct child *child, const struct kit_job *job)
{
  if (!kit_memory_is_sound() || kit_threads() > 1)
    return;
  pid_t pid = fork();
  if (pid == 0)
    be_heir(child, job);
  if (pid > 0) {
    setpgid(pid, pid);
    answer(child->context, ZYGOTE_HEIR, pid);
  }
}

static int
be_zygote(struct here *here, const char *plugin)
{
  char why[512];

  if (*plugin) {
    here->held = kit_memory_hold(plugin, why, sizeof(why));
    if (!here->held)
      return answer(here, ZYGOTE_FAILED, 0) ? 0 : 70;
  }
  uint32_t threads = kit_threads();
  if (threads > 1)
    return answer(here, ZYGOTE_THREADS, (int32_t)threads) ? 0 : 70;
  kit_memory_baseline();
  return answer(here, ZYGOTE_READY, 0) ? serve(here) : 70;
}

/* ---- cold ------------------------------------------------------------------------------------ */

static int
be_cold(struct here *here)
{
  struct request request;
  struct stat st;
  char *bytes = NULL;

  if (fstat(here->request_fd, &st) == 0 && st.st_size > 0 && st.st_size <= MOST_REQUEST)
    bytes = malloc((size_t)st.st_size);
  if (!bytes || pread(here->request_fd, bytes, (size_t)st.st_size, 0) != (ssize_t)st.st_size
      || !request_read(&request, bytes, (size_t)st.st_size, here->find)
      || fcntl(request.task.job.seals, F_SETFD, FD_CLOEXEC) != 0)
    return 70;
  become_check(here, &request);
}

int
memcheck_child_main(int argc, char **argv, const struct check *(*find)(const char *id))
{
  struct here here = {.find = find,
                      .request_fd = argc > 3 ? atoi(argv[3]) : -1,
                      .file = argc > 4 ? atoi(argv[4]) : -1};

  if (argc < 5 || !kit_under_memcheck() || fcntl(here.request_fd, F_SETFD, FD_CLOEXEC) != 0
      || fcntl(here.file, F_SETFD, FD_CLOEXEC) != 0)
    return 2;
  if (strcmp(argv[2], ZYGOTE_COLD) == 0)
    return be_cold(&here);
  return be_zygote(&here, argc > 5 ? argv[5] : "");
}
