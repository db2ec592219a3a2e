/* SPDX-License-Identifier: Apache-2.0 */
/* The runner's side of children under Valgrind.  Owns the zygote of one slot and the socket to it.
 * Settings go over the socket or through a file in memory, never over a command line. */
#include "runner/engine/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/engine/request.h"
#include "runner/system/clock.h"
#include "runner/system/file.h"
#include "runner/system/remove.h"

/* A zygote that needs longer is considered to hang, in its plugin's constructor. */
enum { READY_MS = 30000, FORK_MS = 30000 };

void
zygote_init(struct zygote *zygote, int run_folder, unsigned number)
{
  *zygote = (struct zygote){
    .socket = -1, .run_folder = run_folder, .number = number, .folder = -1};
}

static void
end_process(pid_t pid)
{
  kill(pid, SIGKILL);
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
    continue;
}

static void
zygote_end(struct zygote *zygote)
{
  if (zygote->pid > 0)
    end_process(zygote->pid);
  if (zygote->socket >= 0)
    close(zygote->socket);
  zygote->pid = zygote->linker = 0;
  zygote->socket = -1;
}

void
zygote_done(struct zygote *zygote)
{
  zygote_end(zygote);
  if (zygote->folder >= 0)
    close(zygote->folder);
  zygote->folder = -1;
}

/* Replaces anything that has its name. */
static bool
make_folder(struct zygote *zygote)
{
  char name[32];

  if (zygote->folder >= 0)
    return true;
  snprintf(name, sizeof(name), "memcheck-%u", zygote->number);
  remove_entry(zygote->run_folder, name, NULL);
  zygote->folder = file_make_folder(zygote->run_folder, name, 0700);
  return zygote->folder >= 0;
}

/* ---- exec ------------------------------------------------------------------------------------ */

/* Both descriptors go to the other program, which closes them for its own children. */
__attribute__((noreturn)) static void
become(const struct memcheck *memcheck, const struct zygote *zygote, const char *way,
       const int fds[2], const char *plugin, bool origins)
{
  struct memcheck_words words;
  char folder[64];
  sigset_t none;

  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  snprintf(folder, sizeof(folder), "/proc/%ld/fd/%d", (long)getppid(), zygote->folder);
  memcheck_words(&words, memcheck, folder, way, fds, plugin, origins);
  if (fcntl(fds[0], F_SETFD, 0) == 0 && fcntl(fds[1], F_SETFD, 0) == 0)
    execv(memcheck->valgrind, (char *const *)(uintptr_t)words.items);
  _exit(71);
}

/* Output of the zygote itself is the constructor's: the checks will show it. */
static bool
take_null(void)
{
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);

  return null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0;
}

__attribute__((noreturn)) static void
become_zygote(const struct memcheck *memcheck, const struct zygote *zygote, const int fds[2])
{
  struct rlimit no_core = {0, 0};

  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setrlimit(RLIMIT_CORE, &no_core);
  signal(SIGPIPE, SIG_DFL);
  if (!take_null() || fchdir(zygote->folder) != 0)
    _exit(70);
  become(memcheck, zygote, ZYGOTE_WARM, fds, zygote->plugin, false);
}

/* ---- talking --------------------------------------------------------------------------------- */

/* false: it has ended, or does not answer in time. */
static bool
hear_zygote(struct zygote *zygote, int64_t ms, struct zygote_answer *ret)
{
  int64_t until = clock_ns() + ms * 1000000;
  struct pollfd socket = {.fd = zygote->socket, .events = POLLIN};

  for (;;) {
    int64_t left = (until - clock_ns()) / 1000000;
    int ready = left > 0 ? poll(&socket, 1, (int)left) : 0;
    if (ready < 0 && errno == EINTR)
      continue;
    return ready > 0 && recv(zygote->socket, ret, sizeof(*ret), 0) == (ssize_t)sizeof(*ret);
  }
}

/* The request, with the child's end of the seals' socket. */
static bool
send_request(const struct zygote *zygote, const struct task *task, const struct kit_job *job)
{
  struct dk_text bytes = DK_TEXT_EMPTY;

  request_write(&bytes, task, job, getpid());
  bool told = !dk_text_failed(&bytes)
              && request_send(zygote->socket, bytes.bytes, bytes.length, job->seals);
  dk_text_done(&bytes);
  return told;
}

/* From now on this plugin's checks run cold. */
static void
zygote_give_up(struct zygote *zygote, const char *why)
{
  zygote_end(zygote);
  zygote->cold = true;
  snprintf(zygote->why, sizeof(zygote->why), "%s", why);
}

static void
zygote_begin(struct zygote *zygote, const struct memcheck *memcheck, const char *plugin, int file)
{
  struct zygote_answer answer;
  int ends[2];
  char why[sizeof(zygote->why)];

  zygote_end(zygote);
  zygote->cold = false;
  zygote->why[0] = '\0';
  snprintf(zygote->plugin, sizeof(zygote->plugin), "%s", plugin);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    zygote_give_up(zygote, "there is no socket for it");
    return;
  }
  fflush(NULL);
  zygote->pid = fork();
  if (zygote->pid == 0)
    become_zygote(memcheck, zygote, (const int[2]){ends[1], file});
  close(ends[1]);
  zygote->linker = zygote->pid;
  zygote->socket = ends[0];
  if (zygote->pid < 0 || !hear_zygote(zygote, READY_MS, &answer)) {
    zygote_give_up(zygote, "linking it did not end in a process that can be forked");
  } else if (answer.word == ZYGOTE_THREADS) {
    snprintf(why, sizeof(why), "it has %d threads after linking", answer.value);
    zygote_give_up(zygote, why);
  } else if (answer.word != ZYGOTE_READY) {
    zygote_give_up(zygote, "it cannot be linked");
  }
}

static pid_t
start_warm(struct zygote *zygote, const struct task *task, const struct kit_job *job)
{
  struct zygote_answer answer;

  if (send_request(zygote, task, job) && hear_zygote(zygote, FORK_MS, &answer)
      && answer.word == ZYGOTE_FORKED)
    return answer.value;
  zygote_give_up(zygote, "its process under Valgrind ended");
  return 0;
}

/* A child of this process that runs.  The number was sent by a process in which the plugin ran. */
static bool
is_own_child(pid_t pid)
{
  siginfo_t how = {.si_pid = 0};

  return pid > 0 && waitid(P_PID, (id_t)pid, &how, WEXITED | WNOWAIT | WNOHANG) == 0
         && how.si_pid == 0;
}

void
zygote_take_heir(struct zygote *zygote)
{
  struct zygote_answer answer;

  if (zygote->pid <= 0
      || recv(zygote->socket, &answer, sizeof(answer), MSG_DONTWAIT) != (ssize_t)sizeof(answer)
      || answer.word != ZYGOTE_HEIR || !is_own_child(answer.value))
    return;
  end_process(zygote->pid);
  zygote->pid = answer.value;
}

/* The request lies in a file without a name. */
static int
write_request(const struct task *task, const struct kit_job *job)
{
  struct dk_text bytes = DK_TEXT_EMPTY;
  int file = memfd_create("request", MFD_CLOEXEC);

  request_write(&bytes, task, job, getpid());
  if (file >= 0
      && (dk_text_failed(&bytes)
          || pwrite(file, bytes.bytes, bytes.length, 0) != (ssize_t)bytes.length)) {
    close(file);
    file = -1;
  }
  dk_text_done(&bytes);
  return file;
}

static pid_t
start_cold(const struct zygote *zygote, const struct memcheck *memcheck, const struct task *task,
           const struct kit_job *job, int file)
{
  int request = write_request(task, job);

  if (request < 0)
    return 0;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fcntl(job->seals, F_SETFD, 0);
    become(memcheck, zygote, ZYGOTE_COLD, (const int[2]){request, file}, NULL, task->origins);
  }
  int reason = errno;
  close(request);
  errno = reason;
  return pid > 0 ? pid : 0;
}

pid_t
zygote_start_child(struct zygote *zygote, const struct memcheck *memcheck,
                   const struct task *task, const struct kit_job *job, int file)
{
  const char *plugin = job->plugin ? job->plugin : memcheck->plugin ? memcheck->plugin : "";
  pid_t pid = 0;

  if (!make_folder(zygote))
    return 0;
  if (!task->origins) {
    bool known = (zygote->pid > 0 || zygote->cold) && strcmp(zygote->plugin, plugin) == 0;
    if (!known)
      zygote_begin(zygote, memcheck, plugin, file);
    if (!zygote->cold)
      pid = start_warm(zygote, task, job);
  }
  return pid > 0 ? pid : start_cold(zygote, memcheck, task, job, file);
}
