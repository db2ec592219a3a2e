/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of a child: strangers stay, orphans are ended, and there is no wait for those that
 * cannot be ended. */
#include "runner/system/orphans.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

/* The name of this process and its children, even under an interpreter such as Valgrind. */
#define NAME "orphans-test"

/* A child that lives until it is killed, in this group; 0: in one of its own. */
static pid_t
sleeper(pid_t group)
{
  pid_t pid = fork();

  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, group);
    for (;;)
      pause();
  }
  if (pid < 0)
    BAIL_OUT("no process can be made");
  setpgid(pid, group ? group : pid);
  return pid;
}

static void
end(pid_t pid)
{
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

static bool
lives(pid_t pid)
{
  return waitpid(pid, NULL, WNOHANG) == 0;
}

static void
spares_strangers(void)
{
  struct strangers strangers = {0};
  char text[160];
  pid_t before = sleeper(0);
  pid_t dead = sleeper(0);

  kill(dead, SIGKILL);
  siginfo_t how;
  waitid(P_PID, (id_t)dead, &how, WEXITED | WNOWAIT);
  ok(orphans_note_strangers(&strangers), "earlier children are noted");
  pid_t left = sleeper(0);
  pid_t of_group = sleeper(before);
  cmp_ok(orphans_end(&strangers, NULL, 0, text, sizeof(text)), "==", 1, "one orphan was left");
  ok(strstr(text, NAME) != NULL, "and is named");
  cmp_ok(waitpid(left, NULL, WNOHANG), "==", -1, "it is ended and reaped");
  ok(lives(before), "an earlier child lives");
  ok(lives(of_group), "so does a process in its group");
  cmp_ok(waitpid(dead, NULL, WNOHANG), "==", dead, "an earlier child that was dead is not reaped");
  end(of_group);
  end(before);
  orphans_forget_strangers(&strangers);
}

static void
spares_the_running(void)
{
  struct strangers strangers = {0};
  char text[160];
  pid_t child = sleeper(0);
  struct running running = {child, NULL};

  cmp_ok(orphans_end(&strangers, &running, 1, text, sizeof(text)), "==", 0, "nothing is left");
  is(text, "", "and nothing is reported");
  ok(lives(child), "a task that runs is not touched");
  end(child);
}

/* In a child, because it gives up root: 0 if the process that it is not permitted to kill is left
 * in time. */
static int
meet_a_stronger_one(void)
{
  struct strangers strangers = {0};
  char text[160];
  pid_t stronger = sleeper(getpid()); /* ended with the group, because it survives our death */

  if (setresuid(65534, 65534, 65534) != 0)
    return 1;
  alarm(20);
  size_t first = orphans_end(&strangers, NULL, 0, text, sizeof(text));
  size_t second = orphans_end(&strangers, NULL, 0, text, sizeof(text));
  orphans_forget_strangers(&strangers);
  return first == 1 && second == 0 && lives(stronger) ? 0 : 2;
}

static void
does_not_wait_for_what_lives_on(void)
{
  int status = -1;

  if (geteuid() != 0) {
    skip(1, "only root can make a child that it cannot kill");
    return;
  }
  pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    _exit(meet_a_stronger_one());
  }
  waitpid(pid, &status, 0);
  kill(-pid, SIGKILL);
  ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
     "one that cannot be ended is reported once, without a wait (0x%x)", (unsigned)status);
}

int
main(void)
{
  prctl(PR_SET_NAME, NAME);
  plan(NO_PLAN);
  spares_strangers();
  spares_the_running();
  does_not_wait_for_what_lives_on();
  return done_testing();
}
