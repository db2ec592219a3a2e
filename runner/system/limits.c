/* SPDX-License-Identifier: Apache-2.0 */
/* Notes the runner's own limits and sets them back.  Allocates nothing: memory may be what was
 * limited. */
#include "runner/system/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const names[RLIM_NLIMITS] = {
  [RLIMIT_AS] = "RLIMIT_AS",
  [RLIMIT_CORE] = "RLIMIT_CORE",
  [RLIMIT_CPU] = "RLIMIT_CPU",
  [RLIMIT_DATA] = "RLIMIT_DATA",
  [RLIMIT_FSIZE] = "RLIMIT_FSIZE",
  [RLIMIT_LOCKS] = "RLIMIT_LOCKS",
  [RLIMIT_MEMLOCK] = "RLIMIT_MEMLOCK",
  [RLIMIT_MSGQUEUE] = "RLIMIT_MSGQUEUE",
  [RLIMIT_NICE] = "RLIMIT_NICE",
  [RLIMIT_NOFILE] = "RLIMIT_NOFILE",
  [RLIMIT_NPROC] = "RLIMIT_NPROC",
  [RLIMIT_RSS] = "RLIMIT_RSS",
  [RLIMIT_RTPRIO] = "RLIMIT_RTPRIO",
  [RLIMIT_RTTIME] = "RLIMIT_RTTIME",
  [RLIMIT_SIGPENDING] = "RLIMIT_SIGPENDING",
  [RLIMIT_STACK] = "RLIMIT_STACK",
};

static bool
read_limit(int which, struct rlimit *ret)
{
  return getrlimit((__rlimit_resource_t)which, ret) == 0;
}

void
limits_note(struct limits *limits)
{
  *limits = (struct limits){0};
  for (int i = 0; i < (int)RLIM_NLIMITS; i++)
    read_limit(i, &limits->own[i]);
}

/* If this user cannot raise the hard limit again, raises it as far as possible. */
static bool
set_back(int which, struct rlimit *own, const struct rlimit *found)
{
  struct rlimit most = {.rlim_cur = own->rlim_cur < found->rlim_max ? own->rlim_cur
                                                                    : found->rlim_max,
                        .rlim_max = found->rlim_max};

  if (setrlimit((__rlimit_resource_t)which, own) == 0)
    return true;
  setrlimit((__rlimit_resource_t)which, &most);
  if (!read_limit(which, own))
    *own = most;
  return false;
}

static void
describe_limit(int which, const struct rlimit *found, bool is_back, char *text, size_t size)
{
  size_t used = strlen(text);
  char value[32] = "unlimited";

  if (found->rlim_cur != RLIM_INFINITY)
    snprintf(value, sizeof(value), "%ju", (uintmax_t)found->rlim_cur);
  snprintf(text + used, size - used, "%s%s was set to %s%s", used ? ", " : "",
           names[which] ? names[which] : "a limit", value,
           is_back ? "" : " and cannot be raised again");
}

bool
limits_restore(struct limits *limits, char *text, size_t size)
{
  bool changed = false;

  text[0] = '\0';
  for (int i = 0; i < (int)RLIM_NLIMITS; i++) {
    struct rlimit *own = &limits->own[i];
    struct rlimit found;
    if (!read_limit(i, &found)
        || (found.rlim_cur == own->rlim_cur && found.rlim_max == own->rlim_max))
      continue;
    describe_limit(i, &found, set_back(i, own, &found), text, size);
    changed = true;
  }
  return changed;
}

bool
limits_leave_processor_time(const struct limits *limits)
{
  const struct rlimit *own = &limits->own[RLIMIT_CPU];
  struct timespec used;

  return own->rlim_cur == RLIM_INFINITY
         || (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0
             && (rlim_t)used.tv_sec < own->rlim_cur);
}
