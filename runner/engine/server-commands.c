/* SPDX-License-Identifier: Apache-2.0 */
/* Runs commands for one client after another.  Owns its listening socket, and in the runner one end
 * of a socket pair by which each side notices that the other has ended. */
#include "runner/engine/server-commands.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.h"

enum { COMMAND_MS = 60000, LINE = 4096, SAID = 300 };

struct server_commands {
  int runner_end;             /* the runner's; the helper ends when it is closed */
  char path[100];
};

/* In the helper itself. */
struct work {
  const struct server_options *commands;
  const char *folder;
  int listener, runner;
  bool crashed, paused, denied; /* by the present client, and not undone yet */
  bool went_on;                 /* it was paused for so long that the helper resumed it */
  char store[LINE];             /* whose rights were withdrawn */
};

/* ---- one command ----------------------------------------------------------------------------- */

/* Replaces {store} and {folder} in the command by their values, unquoted. */
static void
fill_in(struct dk_text *text, const char *command, const char *store, const char *folder)
{
  while (*command) {
    if (strncmp(command, "{store}", 7) == 0) {
      dk_text_puts(text, store);
      command += 7;
    } else if (strncmp(command, "{folder}", 8) == 0) {
      dk_text_puts(text, folder);
      command += 8;
    } else {
      dk_text_add(text, command++, 1);
    }
  }
}

__attribute__((noreturn)) static void
become_shell(const char *command, const char *store, const char *folder, int output)
{
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

  setpgid(0, 0);
  if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 ||
      setenv("DURAKIT_STORE", store, 1) != 0 || setenv("DURAKIT_FOLDER", folder, 1) != 0)
    _exit(126);
  execl("/bin/sh", "sh", "-c", command, (char *)NULL);
  _exit(127);
}

/* 0: it has ended in time. */
static int
wait_for(pid_t pid, int *ret_status)
{
  int fd = (int)syscall(SYS_pidfd_open, pid, 0);
  struct pollfd ended = {.fd = fd, .events = POLLIN};
  bool in_time = fd < 0 || poll(&ended, 1, COMMAND_MS) == 1;

  if (!in_time)
    kill(-pid, SIGKILL);
  if (fd >= 0)
    close(fd);
  while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
    continue;
  return in_time ? 0 : -1;
}

/* The command's output, in one line. */
static void
tell_output(int output, char *buffer, size_t size)
{
  ssize_t n = pread(output, buffer, size - 1, 0);

  buffer[n > 0 ? n : 0] = '\0';
  for (char *c = buffer; *c; c++) {
    if (*c == '\n')
      *c = c[1] ? '|' : '\0';
  }
}

static bool
run_command(const struct work *work, const char *command, const char *store, char *ret_said,
            size_t size)
{
  struct dk_text text = DK_TEXT_EMPTY;
  int output = memfd_create("output", MFD_CLOEXEC), status = -1;
  char said[SAID] = "";

  fill_in(&text, command, store, work->folder);
  pid_t pid = output >= 0 && !dk_text_failed(&text) ? fork() : -1;
  if (pid == 0)
    become_shell(dk_text_str(&text), store, work->folder, output);
  int late = pid > 0 ? wait_for(pid, &status) : 0;
  if (output >= 0) {
    tell_output(output, said, sizeof(said));
    close(output);
  }
  dk_text_done(&text);
  if (pid > 0 && !late && WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return true;
  if (pid < 0)
    snprintf(ret_said, size, "cannot be run: %s", strerror(errno));
  else if (late)
    snprintf(ret_said, size, "did not end within %d s: %s", COMMAND_MS / 1000, said);
  else
    snprintf(ret_said, size, "ended with %s %d: %s", WIFEXITED(status) ? "exit" : "signal",
             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), said);
  return false;
}

/* ---- what is asked --------------------------------------------------------------------------- */

/* Undoes all that was done.  `said` has the output of the command that failed. */
static bool
mend(struct work *work, char *said, size_t size)
{
  bool well = true;

  if (work->paused)
    well = run_command(work, work->commands->resume, work->store, said, size) && well;
  if (work->crashed)
    well = run_command(work, work->commands->start, work->store, said, size) && well;
  if (work->denied)
    well = run_command(work, work->commands->allow, work->store, said, size) && well;
  work->paused = work->crashed = work->denied = false;
  return well;
}

static bool
obey(struct work *work, const char *verb, const char *store, char *said, size_t size)
{
  const struct server_options *c = work->commands;
  const struct {
    const char *verb, *command;
    bool *done, after;
  } rows[] = {
    {"crash", c->crash, &work->crashed, true},  {"start", c->start, &work->crashed, false},
    {"pause", c->pause, &work->paused, true},   {"resume", c->resume, &work->paused, false},
    {"deny", c->deny, &work->denied, true},     {"allow", c->allow, &work->denied, false},
  };

  if (strcmp(verb, "mend") == 0)
    return mend(work, said, size);
  if (strcmp(verb, "resume") == 0 && work->went_on) {
    work->went_on = false;
    snprintf(said, size, ", late");
    return true;
  }
  snprintf(work->store, sizeof(work->store), "%s", store);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (strcmp(rows[i].verb, verb) != 0 || !rows[i].command)
      continue;
    /* Noted before it is run, because a command that fails halfway must be undone as well. */
    *rows[i].done = *rows[i].done || rows[i].after;
    bool well = run_command(work, rows[i].command, store, said, size);
    *rows[i].done = well ? rows[i].after : *rows[i].done;
    return well;
  }
  snprintf(said, size, "is not known here");
  return false;
}

/* False: the client has ended, or the runner has. */
static bool
hear_asker(struct work *work, int asker)
{
  struct pollfd ends[] = {{.fd = asker, .events = POLLIN}, {.fd = work->runner, .events = POLLIN}};
  char line[LINE], said[2 * SAID] = "", answer[2 * SAID + 16];
  int ready = poll(ends, 2, work->paused ? SERVER_PAUSE_MS : -1);

  if (ready == 0) {
    mend(work, said, sizeof(said));
    work->went_on = true;
    return true;
  }
  if (ready < 0)
    return errno == EINTR;
  ssize_t n = ends[0].revents ? recv(asker, line, sizeof(line) - 1, 0) : 0;
  if (n <= 0)
    return false;
  line[n] = '\0';
  line[strcspn(line, "\n")] = '\0';
  char *blank = strchr(line, ' ');
  if (blank)
    *blank++ = '\0';
  bool well = obey(work, line, blank ? blank : "", said, sizeof(said));
  snprintf(answer, sizeof(answer), "%s%s\n", well ? "ok" : "", said);
  return send(asker, answer, strlen(answer), MSG_NOSIGNAL) > 0;
}

/* Serves one client after another, until the runner has ended. */
__attribute__((noreturn)) static void
serve(struct work *work)
{
  struct pollfd ends[] = {{.fd = work->listener, .events = POLLIN},
                          {.fd = work->runner, .events = POLLIN}};
  char said[2 * SAID];

  for (;;) {
    if (poll(ends, 2, -1) < 0 && errno != EINTR)
      _exit(1);
    if (ends[1].revents != 0)
      _exit(0);
    int asker = ends[0].revents != 0 ? accept4(work->listener, NULL, NULL, SOCK_CLOEXEC) : -1;
    if (asker < 0)
      continue;
    while (hear_asker(work, asker))
      continue;
    mend(work, said, sizeof(said));
    work->went_on = false;
    close(asker);
  }
}

/* ---- the runner's side ----------------------------------------------------------------------- */

static bool
has_commands(const struct server_options *c)
{
  return c->crash || c->pause || c->deny;
}

static int
listen_at(const char *path)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (strlen(path) >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
  } else {
    memcpy(address.sun_path, path, strlen(path));
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        listen(fd, 64) == 0)
      return fd;
  }
  int reason = errno;
  if (fd >= 0)
    close(fd);
  errno = reason;
  return -1;
}

/* The first child ends at once, so that the second is no child of the runner.  It has a session of
 * its own, because it must restore the server even after a ^C. */
static bool
fork_away(struct work *work, int runner_end)
{
  int status;
  pid_t between = fork();

  if (between == 0) {
    setsid();
    pid_t pid = fork();
    if (pid == 0) {
      close(runner_end);
      signal(SIGHUP, SIG_IGN);
      signal(SIGPIPE, SIG_IGN);
      if (chdir("/") != 0)
        _exit(1);
      serve(work);
    }
    _exit(pid < 0 ? 1 : 0);
  }
  while (between > 0 && waitpid(between, &status, 0) < 0 && errno == EINTR)
    continue;
  return between > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool
server_commands_start(struct server_commands **ret, const struct server_options *options,
                      const char *folder)
{
  struct server_commands *commands;
  int ends[2];

  *ret = NULL;
  if (!has_commands(options))
    return true;
  commands = calloc(1, sizeof(*commands));
  if (!commands || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    free(commands);
    return false;
  }
  int length = snprintf(commands->path, sizeof(commands->path), "%s/hand", folder);
  struct work work = {.commands = options, .folder = folder, .runner = ends[1]};
  work.listener = length < (int)sizeof(commands->path) ? listen_at(commands->path) : -1;
  bool well = work.listener >= 0 && fork_away(&work, ends[0]);
  if (work.listener >= 0)
    close(work.listener);
  close(ends[1]);
  commands->runner_end = ends[0];
  *ret = commands;
  return well;
}

void
server_commands_end(struct server_commands *commands)
{
  char nothing;

  if (!commands)
    return;
  shutdown(commands->runner_end, SHUT_WR);
  while (recv(commands->runner_end, &nothing, 1, 0) < 0 && errno == EINTR)
    continue;
  close(commands->runner_end);
  free(commands);
}

struct kit_hurt
server_commands_offer(const struct server_commands *commands, const struct server_options *c)
{
  struct kit_hurt hurt = {.hand = commands ? commands->path : NULL,
                          .through = c->through,
                          .address = c->address};

  hurt.powers = (c->crash ? (uint32_t)KIT_CAN_CRASH : 0) | (c->pause ? (uint32_t)KIT_CAN_PAUSE : 0)
                | (c->deny ? (uint32_t)KIT_CAN_DENY : 0)
                | (c->through ? (uint32_t)KIT_CAN_STAND_BETWEEN : 0);
  return hurt;
}
