/* SPDX-License-Identifier: Apache-2.0 */
/* Crashes, stops and restricts a server, and cuts the connections to it.
 *
 * Connections are cut from within: a provider in this process waits for its server by host->wait,
 * which is the kit's, and between calls its sockets are found in /proc/self/fd.  A server is
 * crashed, stopped and so on by the user's commands; they are run by the hand, a process beside the
 * run (runner/engine/server-commands.c), which restores the server as soon as the process that
 * asked has ended.
 *
 * Owns the descriptor to the hand.  A cut is armed by the check's thread, and made by the thread
 * that waits then; there is no lock. */
#include "conformance/kit/kit.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int64_t
real_time_ms(void)
{
  return kit_real_ns() / 1000000;
}

void
wait_for_real(struct dk_check *t, int ms)
{
  int64_t until = real_time_ms() + ms;

  (void)t;
  for (int64_t left = ms; left > 0; left = until - real_time_ms())
    (void)poll(NULL, 0, (int)left);
}

/* ---- sockets of the provider ----------------------------------------------------------------- */

/* The socket is connected, so that there is something to cut. */
static bool
is_connection(int fd)
{
  struct sockaddr_storage peer;
  socklen_t size = sizeof(peer);
  struct stat kind;

  return fstat(fd, &kind) == 0 && S_ISSOCK(kind.st_mode) &&
         getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
}

static bool
is_own(const struct dk_check *t, int fd)
{
  for (size_t i = 0; i < t->n_own_sockets; i++) {
    if (t->own_sockets[i] == fd)
      return true;
  }
  return fd == t->hand_fd;
}

typedef void use_fn(struct dk_check *t, int fd);

static size_t
for_each_connection(struct dk_check *t, use_fn *use)
{
  DIR *folder = opendir("/proc/self/fd");
  struct dirent *entry;
  size_t n = 0;

  if (folder == NULL)
    kit_trouble(t, "/proc/self/fd cannot be read: %s", strerror(errno));
  while ((entry = readdir(folder)) != NULL) {
    int fd = atoi(entry->d_name);

    if (fd <= 2 || fd == dirfd(folder) || is_own(t, fd) || !is_connection(fd))
      continue;
    use(t, fd);
    n++;
  }
  closedir(folder);
  return n;
}

static void
note_own(struct dk_check *t, int fd)
{
  int *grown = realloc(t->own_sockets, (t->n_own_sockets + 1) * sizeof(*grown));

  if (grown == NULL)
    kit_trouble(t, "no memory");
  t->own_sockets = grown;
  t->own_sockets[t->n_own_sockets++] = fd;
}

void
kit_note_own_sockets(struct dk_check *t)
{
  if (t->job->check != NULL && (t->job->check->needs & NEEDS_SERVER) != 0)
    for_each_connection(t, note_own);
}

static void
cut_connection(struct dk_check *t, int fd)
{
  (void)t;
  shutdown(fd, SHUT_RDWR);
}

size_t
cut_connections(struct dk_check *t)
{
  size_t n = for_each_connection(t, cut_connection);

  say_in_trace(t, "%zu connection%s cut between two calls", n, n == 1 ? " is" : "s are");
  return n;
}

/* ---- at a wait ------------------------------------------------------------------------------- */

void
cut_at_wait(struct dk_check *t, enum cut cut, uint32_t n)
{
  struct kit_cut *armed = &t->shared->cut;

  if (t->shared->gate.shared == NULL || (t->real_time && t->shared->is_gated == 0))
    kit_trouble(t, "a wait can be cut only in a check that NEEDS_SERVER");
  armed->what = (int32_t)cut;
  armed->by = t;
  armed->trouble[0] = '\0';
  atomic_store(&armed->done, 0);
  atomic_store(&armed->countdown, (int32_t)n);
}

bool
was_cut(struct dk_check *t)
{
  static const char *const words[] = {
    [CUT_REQUEST] = "the connection was cut in the wait for an answer",
    [CUT_ANSWER] = "the answer was discarded, and the connection cut",
    [CRASH_SERVER] = "the server was crashed in the wait for an answer",
  };
  struct kit_cut *armed = &t->shared->cut;

  atomic_store(&armed->countdown, 0);
  if (armed->trouble[0] != '\0')
    kit_trouble(t, "--store-crash: %s", armed->trouble);
  bool done = atomic_load(&armed->done) != 0;
  if (done)
    say_in_trace(t, "(meanwhile %s)", words[armed->what]);
  return done;
}

static void
throw_away(int fd)
{
  char unread[4096];

  while (recv(fd, unread, sizeof(unread), MSG_DONTWAIT) > 0)
    continue;
}

static bool ask_hand(struct dk_check *t, const char *verb, char *ret_answer, size_t size);

bool
kit_cut_wait(struct kit_shared *shared, struct dk_clock *behind, const struct dk_wait *wait,
             dk_status *ret_status)
{
  struct kit_cut *cut = &shared->cut;

  if (wait->fd < 0 || !is_connection(wait->fd) || atomic_fetch_sub(&cut->countdown, 1) != 1)
    return false;
  if (cut->what == CRASH_SERVER) {
    char answer[sizeof(cut->trouble)];

    if (ask_hand(cut->by, "crash", answer, sizeof(answer)))
      atomic_store(&cut->done, 1);
    else
      snprintf(cut->trouble, sizeof(cut->trouble), "%s", answer);
    return false;
  }
  if (cut->what == CUT_ANSWER) {
    *ret_status = behind->wait(behind, wait);
    if (*ret_status != DK_OK || (wait->events & DK_WAIT_READ) == 0)
      return true; /* no answer has come that could be lost */
    throw_away(wait->fd);
  }
  shutdown(wait->fd, SHUT_RDWR);
  atomic_store(&cut->done, 1);
  return cut->what == CUT_ANSWER;
}

/* ---- the hand -------------------------------------------------------------------------------- */

static int
connect_to_hand(const char *path)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd;

  if (path == NULL || strlen(path) >= sizeof(address.sun_path))
    return -1;
  memcpy(address.sun_path, path, strlen(path));
  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

/* Sends one line, and reads one line. */
static bool
exchange(int fd, const char *line, char *ret_answer, size_t size)
{
  size_t n = 0;

  ret_answer[0] = '\0';
  if (send(fd, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line))
    return false;
  while (n + 1 < size) {
    ssize_t got = recv(fd, ret_answer + n, size - 1 - n, 0);

    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    n += (size_t)got;
    ret_answer[n] = '\0';
    if (ret_answer[n - 1] == '\n')
      break;
  }
  ret_answer[strcspn(ret_answer, "\n")] = '\0';
  return n > 0;
}

/* While the hand works, the kit waits for a command, and not for the provider. */
static bool
hurt_ask(struct kit_report *report, int fd, const char *option, const char *line, char *ret_answer,
         size_t size)
{
  snprintf(report->command, sizeof(report->command), "%s", option);
  bool answered = exchange(fd, line, ret_answer, size);
  report->command[0] = '\0';
  return answered;
}

/* A thread of the provider's may call it, so it judges nothing.  False: `ret_answer` says why. */
static bool
ask_hand(struct dk_check *t, const char *verb, char *ret_answer, size_t size)
{
  char line[KIT_MAX_VALUE + 32], option[32];

  if (t->hand_fd < 0)
    t->hand_fd = connect_to_hand(t->job->hurt.hand);
  snprintf(line, sizeof(line), "%s %s\n", verb, t->shared->store_value);
  snprintf(option, sizeof(option), "--store-%s", verb);
  if (t->hand_fd < 0 || !hurt_ask(t->report, t->hand_fd, option, line, ret_answer, size)) {
    snprintf(ret_answer, size, "the process that runs the commands does not answer");
    return false;
  }
  return strncmp(ret_answer, "ok", 2) == 0;
}

static const char *
command(struct dk_check *t, const char *verb)
{
  enum { ROOM = 512 };
  char *answer = kit_alloc(t, &t->arena, ROOM, 1);

  if (!ask_hand(t, verb, answer, ROOM))
    kit_trouble(t, "--store-%s: %s", verb, answer);
  say_in_trace(t, "--store-%s: %s", verb, answer);
  return answer;
}

/* ---- whether it has had its effect ----------------------------------------------------------- */

/* Asks a handle of its own, because the answers of the one under test are the provider's. */
static void
expect_no_answer(struct dk_check *t, const char *verb, const char *wanted)
{
  char why[700];

  if (kit_store_answers(t, why, sizeof(why)))
    kit_trouble(t, "--store-%s: it ended with exit 0 but had no effect: expected %s; %s", verb,
                wanted, why);
}

static void
expect_answer(struct dk_check *t, const char *verb, int within_ms)
{
  enum { ASKED_EVERY_MS = 100 };
  int64_t bound = real_time_ms() + within_ms;
  char why[700];

  while (!kit_store_answers(t, why, sizeof(why))) {
    if (real_time_ms() >= bound)
      kit_trouble(t, "--store-%s: it ended with exit 0 but had no effect: expected a server that "
                  "answers within %d s; %s", verb, within_ms / 1000, why);
    wait_for_real(t, ASKED_EVERY_MS);
  }
}

void
judge_crashed(struct dk_check *t)
{
  expect_no_answer(t, "crash", "a server that is down until --store-start");
}

void
judge_not_paused(struct dk_check *t, const char *call)
{
  kit_trouble(t, "--store-pause: it ended with exit 0, but the server still answers: %s returned "
              "DK_OK", call);
}

/* ---- on demand ------------------------------------------------------------------------------- */

/* Its effect is checked later (judge_crashed), because a new handle might wait for the running
 * call. */
void
crash_server_now(struct dk_check *t)
{
  command(t, "crash");
}

void
crash_server(struct dk_check *t)
{
  crash_server_now(t);
  judge_crashed(t);
}

void
start_server(struct dk_check *t)
{
  command(t, "start");
  expect_answer(t, "start", 20000);
}

void
pause_server(struct dk_check *t)
{
  command(t, "pause");
}

bool
resume_server(struct dk_check *t)
{
  return strcmp(command(t, "resume"), "ok") == 0;
}

void
deny_rights(struct dk_check *t)
{
  command(t, "deny");
  expect_no_answer(t, "deny", "a store that refuses every call until --store-allow");
}

void
allow_rights(struct dk_check *t)
{
  command(t, "allow");
  expect_answer(t, "allow", 5000);
}

void
kit_hurt_end(struct dk_check *t)
{
  char answer[512];

  atomic_store(&t->shared->cut.countdown, 0);
  atomic_store(&t->shared->proxy.countdown, 0);
  if (atomic_load(&t->shared->proxy.holds) != 0)
    atomic_store(&t->shared->proxy.go, 1);
  if (t->hand_fd < 0)
    return;
  if (!hurt_ask(t->report, t->hand_fd, "--store-start, --store-resume or --store-allow", "mend\n",
                answer, sizeof(answer)) ||
      strncmp(answer, "ok", 2) != 0)
    say_in_trace(t, "the server might not be restored: %s", answer);
  close(t->hand_fd);
  t->hand_fd = -1;
}

/* The hand serves one check after the other, and restores the server in between. */
void
kit_wait_until_mended(const struct kit_job *job)
{
  char answer[512];
  int fd = connect_to_hand(job->hurt.hand);

  if (fd < 0)
    return;
  (void)exchange(fd, "mend\n", answer, sizeof(answer));
  close(fd);
}

/* ---- what the user has given ----------------------------------------------------------------- */

bool
kit_lacks_power(const struct kit_job *job, const struct check *check, char *why, size_t size)
{
  static const struct {
    uint32_t need, power;
    const char *options;
  } rows[] = {
    {NEEDS_CRASH, KIT_CAN_CRASH, "--store-crash and --store-start"},
    {NEEDS_PAUSE, KIT_CAN_PAUSE, "--store-pause and --store-resume"},
    {NEEDS_RIGHTS, KIT_CAN_DENY, "--store-deny and --store-allow"},
    {NEEDS_PROXY, KIT_CAN_STAND_BETWEEN, "--through and --store-address"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if ((check->needs & rows[i].need) == 0 || (job->hurt.powers & rows[i].power) != 0)
      continue;
    snprintf(why, size, "needs %s", rows[i].options);
    return true;
  }
  return false;
}
