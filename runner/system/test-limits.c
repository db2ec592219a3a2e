/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the own process: those that were lowered are found, named and restored as far as
 * possible. */
#include "runner/system/limits.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

static void
lower(int which, rlim_t value, bool for_good)
{
  struct rlimit limit;

  getrlimit((__rlimit_resource_t)which, &limit);
  limit.rlim_cur = value;
  if (for_good)
    limit.rlim_max = value;
  setrlimit((__rlimit_resource_t)which, &limit);
}

static void
sets_back(void)
{
  struct limits limits;
  struct rlimit before;
  struct rlimit after;
  char text[200];

  getrlimit(RLIMIT_FSIZE, &before);
  limits_note(&limits);
  ok(!limits_restore(&limits, text, sizeof(text)), "nothing was changed");
  is(text, "", "and nothing is reported");
  lower(RLIMIT_FSIZE, 4096, false);
  lower(RLIMIT_NOFILE, 20, false);
  ok(limits_restore(&limits, text, sizeof(text)), "two were lowered");
  ok(strstr(text, "RLIMIT_FSIZE was set to 4096"), "the first is named");
  ok(strstr(text, "RLIMIT_NOFILE was set to 20"), "and the second");
  getrlimit(RLIMIT_FSIZE, &after);
  ok(before.rlim_cur == after.rlim_cur && before.rlim_max == after.rlim_max, "it is set back");
  ok(!limits_restore(&limits, text, sizeof(text)), "and not found again");
}

static void
knows_of_processor_time(void)
{
  struct limits limits;

  limits_note(&limits);
  ok(limits_leave_processor_time(&limits), "some of the processor time is left");
  limits.own[RLIMIT_CPU].rlim_cur = 0;
  ok(!limits_leave_processor_time(&limits), "nothing is left of a limit of 0");
}

/* In a child without any privilege, even if this process has some: true if all is as expected. */
static bool
is_said_once(void)
{
  struct limits limits;
  char text[200];
  char again[200];

  if (getuid() == 0 && setuid(65534) != 0)
    return false;
  limits_note(&limits);
  lower(RLIMIT_FSIZE, 4096, true);
  return limits_restore(&limits, text, sizeof(text))
         && strcmp(text, "RLIMIT_FSIZE was set to 4096 and cannot be raised again") == 0
         && !limits_restore(&limits, again, sizeof(again));
}

static void
goes_on_with_what_is_left(void)
{
  int status = -1;
  pid_t pid = fork();

  if (pid == 0)
    _exit(is_said_once() ? 0 : 1);
  ok(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
     "a limit that cannot be raised again is reported once");
}

int
main(void)
{
  plan(NO_PLAN);
  sets_back();
  knows_of_processor_time();
  goes_on_with_what_is_left();
  return done_testing();
}
