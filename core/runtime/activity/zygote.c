/* SPDX-License-Identifier: Apache-2.0 */
/* The zygote, and the runtime's side of it: see zygote.h.
 *
 * Locking: `lock` guards the list of idle children and the conversation with the zygote, which is
 * short (a fork, a wait for a process that was killed). */
#include "core/runtime/activity/zygote.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/grow.h"
#include "core/base/lock.h"
#include "core/plugin/memory.h"

/* The conversation: one request, one answer.  An answer to MAKE carries the child's socket. */
enum { ASK_MAKE = 1, ASK_BURY = 2 };
enum { DEATH_S = 10, ANSWER_MS = 30000 };
struct request {
  int32_t what;
  pid_t pid;
};
struct answer {
  pid_t pid;    /* 0: it failed */
  int status;
};

struct dk_zygote {
  struct dk_lock lock;
  int fd;
  pid_t pid;
  bool has_ended, is_reported;
  struct child *idle;
};

/* ---- in the zygote --------------------------------------------------------------------------- */

struct nursery {
  int control;
  int runtime;       /* a pidfd of the runtime's process; -1: this kernel has none */
  pid_t runtime_pid;
  const struct dk_registry *registry;
  sigset_t mask;     /* as it was before the zygote's own */
  pid_t *children;   /* that were not waited for yet */
  size_t n, room;
};

static bool
remember(struct nursery *nursery, pid_t pid)
{
  pid_t *children = dk_grown(nursery->children, nursery->n, &nursery->room, sizeof(*children));

  if (!children)
    return false;
  nursery->children = children;
  nursery->children[nursery->n++] = pid;
  return true;
}

static void
zygote_forget(struct nursery *nursery, pid_t pid)
{
  for (size_t i = 0; i < nursery->n; i++)
    if (nursery->children[i] == pid) {
      nursery->children[i] = nursery->children[--nursery->n];
      return;
    }
}

/* Kills the child and the processes that it has started: its process group. */
static void
kill_all_of(pid_t pid)
{
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);
}

DK_NORETURN static void
be_child(struct nursery *nursery, int fd, pid_t zygote)
{
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != zygote)
    _exit(EXIT_SUCCESS);
  sigprocmask(SIG_SETMASK, &nursery->mask, NULL);
  close(nursery->control);
  if (nursery->runtime >= 0)
    close(nursery->runtime);
  zygote_child_main(fd, nursery->registry);
}

/* Returns a child's pid, and in *ret_fd the runtime's end of its socket; 0: it failed. */
static pid_t
make_child(struct nursery *nursery, int *ret_fd)
{
  int ends[2];
  pid_t self = getpid();

  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return 0;
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    be_child(nursery, ends[1], self);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return 0;
  }
  setpgid(pid, pid);
  if (!remember(nursery, pid)) {
    kill_all_of(pid);
    waitpid(pid, NULL, 0);
    close(ends[0]);
    return 0;
  }
  *ret_fd = ends[0];
  return pid;
}

/* false: the runtime has ended. */
static bool
send_answer(int control, const struct answer *answer, int fd)
{
  struct iovec bytes = {.iov_base = (void *)(uintptr_t)answer, .iov_len = sizeof(*answer)};
  union {
    char room[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control_bytes = {{0}};
  struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};

  if (fd >= 0) {
    message.msg_control = control_bytes.room;
    message.msg_controllen = sizeof(control_bytes.room);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  }
  while (sendmsg(control, &message, MSG_NOSIGNAL) < 0)
    if (errno != EINTR)
      return false;
  return true;
}

static bool
answer_make(struct nursery *nursery)
{
  int fd = -1;
  struct answer answer = {.pid = make_child(nursery, &fd)};
  bool goes_on = send_answer(nursery->control, &answer, fd);

  if (fd >= 0)
    close(fd);
  return goes_on;
}

/* Waits until it is dead, for a limited time; SIGCHLD is blocked, so that it stays pending for
 * us. */
static bool
wait_for_death(pid_t pid, int *ret_status)
{
  struct timespec second = {.tv_sec = 1};
  sigset_t death;

  sigemptyset(&death);
  sigaddset(&death, SIGCHLD);
  for (int i = 0; i < DEATH_S; i++) {
    pid_t found = waitpid(pid, ret_status, WNOHANG);
    if (found != 0)
      return found == pid;
    sigtimedwait(&death, NULL, &second);
  }
  return false;
}

static bool
answer_bury(struct nursery *nursery, pid_t pid)
{
  struct answer answer = {.pid = 0};

  kill_all_of(pid);
  if (wait_for_death(pid, &answer.status))
    answer.pid = pid;
  zygote_forget(nursery, pid);
  return send_answer(nursery->control, &answer, -1);
}

/* false: the runtime has ended. */
static bool
wait_for_request(const struct nursery *nursery)
{
  struct pollfd both[2] = {{.fd = nursery->control, .events = POLLIN},
                           {.fd = nursery->runtime, .events = POLLIN}};

  while (poll(both, 2, -1) < 0)
    if (errno != EINTR)
      return false;
  return both[1].revents == 0;
}

static bool
serve_one(struct nursery *nursery)
{
  struct request request = {.what = 0};
  ssize_t got = recv(nursery->control, &request, sizeof(request), MSG_DONTWAIT);

  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    return true;
  if (got != sizeof(request))
    return false;
  if (request.what == ASK_MAKE)
    return answer_make(nursery);
  return request.what == ASK_BURY && answer_bury(nursery, request.pid);
}

static int
open_pidfd(pid_t pid)
{
#ifdef SYS_pidfd_open
  if (dk_memory_is_watched()) /* Valgrind does not know the call, and prints that each time */
    return -1;
  return (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
#else
  (void)pid;
  return -1;
#endif
}

/* Gives the zygote its own process group, so that only the runtime gets a terminal's signals, and
 * handles them. */
static void
prepare_process(struct nursery *nursery)
{
  int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  sigset_t death;

  setpgid(0, 0);
  if (nothing >= 0) {
    dup2(nothing, STDIN_FILENO);
    close(nothing);
  }
  signal(SIGCHLD, SIG_DFL);
  sigemptyset(&death);
  sigaddset(&death, SIGCHLD);
  sigprocmask(SIG_BLOCK, &death, &nursery->mask);
  nursery->runtime = open_pidfd(nursery->runtime_pid);
}

DK_NORETURN static void
zygote_main(int control, pid_t runtime, const struct dk_registry *registry)
{
  struct nursery nursery = {.control = control, .runtime_pid = runtime, .registry = registry};

  prepare_process(&nursery);
  while (getppid() == runtime && wait_for_request(&nursery) && serve_one(&nursery))
    continue;
  for (size_t i = 0; i < nursery.n; i++)
    kill_all_of(nursery.children[i]);
  _exit(EXIT_SUCCESS);
}

/* ---- the runtime's side: starting and stopping ----------------------------------------------- */

/* Threads of a sanitizer do not count. */
static bool
has_threads(void)
{
#ifdef __SANITIZE_THREAD__
  return false;
#else
  DIR *tasks = opendir("/proc/self/task");
  int n = 0;

  if (!tasks)
    return false; /* unknown */
  while (readdir(tasks))
    n++;
  closedir(tasks);
  return n > 3; /* ".", ".." and one */
#endif
}

static dk_status
fork_zygote(struct dk_zygote *zygote, const struct dk_registry *registry)
{
  int ends[2];
  pid_t self = getpid();

  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return DK_UNAVAILABLE;
  fflush(NULL); /* else it would be printed twice */
  zygote->pid = fork();
  if (zygote->pid == 0) {
    close(ends[0]);
    zygote_main(ends[1], self, registry);
  }
  close(ends[1]);
  zygote->fd = ends[0];
  if (zygote->pid > 0)
    return DK_OK;
  close(ends[0]);
  return DK_UNAVAILABLE;
}

dk_status
dk_zygote_start(const struct dk_registry *registry, struct dk_zygote **ret_zygote)
{
  if (!registry || has_threads())
    return DK_INVALID;
  struct dk_zygote *zygote = calloc(1, sizeof(*zygote));
  if (!zygote)
    return DK_NO_MEMORY;
  dk_status status = fork_zygote(zygote, registry);
  if (status != DK_OK) {
    free(zygote);
    return status;
  }
  dk_lock_init(&zygote->lock);
  *ret_zygote = zygote;
  return DK_OK;
}

/* Closing its socket makes it end. */
static void
free_child(struct child *child)
{
  close(child->reader.fd);
  if (child->pidfd >= 0)
    close(child->pidfd);
  frame_reader_done(&child->reader);
  free(child);
}

void
dk_zygote_stop(struct dk_zygote *zygote)
{
  if (!zygote)
    return;
  while (zygote->idle) {
    struct child *child = zygote->idle;
    zygote->idle = child->next;
    free_child(child);
  }
  close(zygote->fd);
  while (waitpid(zygote->pid, NULL, 0) < 0 && errno == EINTR)
    continue;
  dk_lock_done(&zygote->lock);
  free(zygote);
}

/* ---- the runtime's side: the conversation ---------------------------------------------------- */

static bool
wait_for_answer(int fd)
{
  struct pollfd answer = {.fd = fd, .events = POLLIN};
  int n;

  while ((n = poll(&answer, 1, ANSWER_MS)) < 0 && errno == EINTR)
    continue;
  return n > 0;
}

/* The descriptor that was sent with the message; -1: none. */
static int
descriptor_in(struct msghdr *message)
{
  struct cmsghdr *header = CMSG_FIRSTHDR(message);
  int fd = -1;

  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
    memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  return fd;
}

static bool
receive_answer(int control, struct answer *answer, int *ret_fd)
{
  struct iovec bytes = {.iov_base = answer, .iov_len = sizeof(*answer)};
  union {
    char room[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control_bytes = {{0}};
  struct msghdr message = {
    .msg_iov = &bytes,
    .msg_iovlen = 1,
    .msg_control = control_bytes.room,
    .msg_controllen = sizeof(control_bytes.room),
  };
  ssize_t got;

  while ((got = recvmsg(control, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
    continue;
  *ret_fd = got > 0 ? descriptor_in(&message) : -1;
  return got == sizeof(*answer);
}

/* Sends a request and reads the answer, under the lock; false: the zygote has ended. */
static bool
converse(struct dk_zygote *zygote, struct request request, struct answer *answer, int *ret_fd)
{
  assert(dk_lock_is_held(&zygote->lock));
  *ret_fd = -1;
  zygote->has_ended =
    zygote->has_ended ||
    send(zygote->fd, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request) ||
    !wait_for_answer(zygote->fd) || !receive_answer(zygote->fd, answer, ret_fd);
  return !zygote->has_ended;
}

static struct child *
new_child(struct dk_zygote *zygote)
{
  struct request request = {.what = ASK_MAKE};
  struct answer answer = {.pid = 0};
  struct child *child = calloc(1, sizeof(*child));
  int fd;

  if (child && converse(zygote, request, &answer, &fd) && answer.pid > 0 && fd >= 0) {
    child->pid = answer.pid;
    child->pidfd = open_pidfd(answer.pid); /* the zygote has not waited for it, so the pid is still
                                              its own */
    frame_reader_init(&child->reader, fd);
    return child;
  }
  free(child);
  return NULL;
}

bool
zygote_child_is_dead(const struct child *child)
{
  struct pollfd death = {.fd = child->pidfd, .events = POLLIN};

  return poll(&death, 1, 0) > 0;
}

/* An idle child sends nothing: if its socket is readable, it has ended. */
static bool
has_died(const struct child *child)
{
  struct pollfd end = {.fd = child->reader.fd, .events = POLLIN};

  return poll(&end, 1, 0) > 0 || zygote_child_is_dead(child);
}

static struct child *
take_idle(struct dk_zygote *zygote)
{
  dk_lock(&zygote->lock);
  struct child *child = zygote->idle;
  if (child)
    zygote->idle = child->next;
  dk_unlock(&zygote->lock);
  return child;
}

struct child *
zygote_take(struct dk_zygote *zygote)
{
  struct child *child;

  while ((child = take_idle(zygote)) != NULL) {
    if (!has_died(child))
      return child;
    zygote_bury(zygote, child);
  }
  dk_lock(&zygote->lock);
  child = new_child(zygote);
  dk_unlock(&zygote->lock);
  return child;
}

void
zygote_return(struct dk_zygote *zygote, struct child *child)
{
  dk_lock(&zygote->lock);
  child->next = zygote->idle;
  zygote->idle = child;
  dk_unlock(&zygote->lock);
}

int
zygote_bury(struct dk_zygote *zygote, struct child *child)
{
  struct request request = {.what = ASK_BURY, .pid = child->pid};
  struct answer answer = {.pid = 0};
  int fd;

  dk_lock(&zygote->lock);
  bool is_known = converse(zygote, request, &answer, &fd) && answer.pid == child->pid;
  dk_unlock(&zygote->lock);
  free_child(child);
  return is_known ? answer.status : -1;
}

int
zygote_life(const struct dk_zygote *zygote)
{
  return zygote->fd;
}

bool
zygote_is_dead(const struct dk_zygote *zygote)
{
  struct pollfd life = {.fd = zygote->fd};

  return poll(&life, 1, 0) > 0;
}

bool
zygote_is_news(struct dk_zygote *zygote)
{
  dk_lock(&zygote->lock);
  bool is_news = zygote->has_ended && !zygote->is_reported;
  zygote->is_reported = zygote->is_reported || is_news;
  dk_unlock(&zygote->lock);
  return is_news;
}
