/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the process's state that says what the process is and may do: threads, limits, ids,
 * scheduling, names, the floating-point unit, locale and environment.  The state that each thread
 * has of its own is compared for the main thread, which makes the calls. */
#include "conformance/kit/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#ifdef __SSE__
#include <fpu_control.h>
#endif
#include <locale.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/checksum.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- threads --------------------------------------------------------------------------------- */

uint32_t
kit_count_threads(void)
{
  DIR *folder = opendir("/proc/self/task");
  const struct dirent *entry;
  uint32_t n = 0;

  while (folder != NULL && (entry = readdir(folder)) != NULL)
    n += entry->d_name[0] != '.';
  if (folder != NULL)
    closedir(folder);
  return n;
}

/* True: this thread has a processor, or waits for one. */
static bool
thread_runs(const char *folder, const char *thread)
{
  char path[128], line[512];
  ssize_t n = -1;

  snprintf(path, sizeof(path), "%s/%.20s/stat", folder, thread);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    n = read(fd, line, sizeof(line) - 1);
    close(fd);
  }
  line[n > 0 ? n : 0] = '\0';
  const char *state = strrchr(line, ')'); /* the program's name may have any letters */
  return state != NULL && strlen(state) > 2 && (state[2] == 'R' || state[2] == 'D');
}

bool
kit_process_runs(pid_t pid)
{
  char folder[64], self[24];
  const struct dirent *entry;
  bool runs = false;

  snprintf(folder, sizeof(folder), "/proc/%ld/task", (long)pid);
  snprintf(self, sizeof(self), "%ld", (long)gettid());
  DIR *threads = opendir(folder);
  while (threads != NULL && !runs && (entry = readdir(threads)) != NULL)
    runs = entry->d_name[0] != '.' && strcmp(entry->d_name, self) != 0 &&
           thread_runs(folder, entry->d_name);
  if (threads != NULL)
    closedir(threads);
  return runs;
}

void
state_take_threads(struct kit_state *state)
{
  state->threads = kit_count_threads();
}

/* A thread that was joined may be visible for a moment longer: so looks again for a while, in which
 * time spent waiting for a processor does not count. */
bool
state_threads_differ(const struct kit_state *before, const struct kit_state *after,
                     struct kit_report *report)
{
  enum { LOOKS = 150, LOOKS_BETWEEN_RUNS = 15 }; /* if they differ then, there is one more run */
  const int looks = before->before == NULL ? LOOKS : LOOKS_BETWEEN_RUNS;
  const struct timespec look = {.tv_nsec = 2000000};
  int64_t bound = kit_real_ns() + INT64_C(10000000000);
  uint32_t n = after->threads;

  for (int still = 0; n > before->threads && still < looks && kit_real_ns() < bound
                      && !state_brings_runtime(before, after);) {
    (void)ppoll(NULL, 0, &look, NULL);
    still += kit_process_runs(getpid()) ? 0 : 1;
    n = kit_count_threads();
  }
  if (n == before->threads || (n > before->threads && state_brings_runtime(before, after)))
    return false;
  return state_damage(report, "CALL-8", "after close nothing of the handle is left",
                      "%u threads after close, %u before %s", n, before->threads,
                      before->before == NULL ? "the plugin was loaded" : "this run");
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void
say_limit(char *text, size_t size, rlim_t limit)
{
  if (limit == RLIM_INFINITY)
    snprintf(text, size, "unlimited");
  else
    snprintf(text, size, "%llu", (unsigned long long)limit);
}

void
state_take_limits(struct kit_state *state)
{
  static const struct {
    __rlimit_resource_t which;
    const char *key;
  } limits[] = {
    {RLIMIT_NOFILE, "RLIMIT_NOFILE"},         {RLIMIT_AS, "RLIMIT_AS"},
    {RLIMIT_CORE, "RLIMIT_CORE"},             {RLIMIT_CPU, "RLIMIT_CPU"},
    {RLIMIT_DATA, "RLIMIT_DATA"},             {RLIMIT_FSIZE, "RLIMIT_FSIZE"},
    {RLIMIT_LOCKS, "RLIMIT_LOCKS"},           {RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK"},
    {RLIMIT_MSGQUEUE, "RLIMIT_MSGQUEUE"},     {RLIMIT_NICE, "RLIMIT_NICE"},
    {RLIMIT_NPROC, "RLIMIT_NPROC"},           {RLIMIT_RSS, "RLIMIT_RSS"},
    {RLIMIT_RTPRIO, "RLIMIT_RTPRIO"},         {RLIMIT_RTTIME, "RLIMIT_RTTIME"},
    {RLIMIT_SIGPENDING, "RLIMIT_SIGPENDING"}, {RLIMIT_STACK, "RLIMIT_STACK"},
  };
  struct rlimit limit;
  char soft[32], hard[32];

  for (size_t i = 0; i < LENGTH(limits); i++) {
    if (getrlimit(limits[i].which, &limit) != 0)
      continue;
    say_limit(soft, sizeof(soft), limit.rlim_cur);
    say_limit(hard, sizeof(hard), limit.rlim_max);
    state_add(state, limits[i].key, "%s (at most %s)", soft, hard);
  }
}

/* Go raises this one as far as it may.  Values are as above: "1024 (at most 4096)". */
bool
state_limit_is_of_runtime(const struct state_entry *was, const struct state_entry *is)
{
  char *rest_was, *rest_is;

  if (was == NULL || strcmp(was->key, "RLIMIT_NOFILE") != 0)
    return false;
  unsigned long long soft_was = strtoull(was->value, &rest_was, 10);
  unsigned long long soft_is = strtoull(is->value, &rest_is, 10);
  return soft_is > soft_was && strcmp(rest_was, rest_is) == 0;
}

/* ---- what every process has ------------------------------------------------------------------ */

void
state_take_umask(struct kit_state *state)
{
  mode_t mask = umask(0);

  umask(mask);
  state_add(state, "the umask", "%03o", (unsigned)mask);
}

void
state_take_locale(struct kit_state *state)
{
  const char *locale = setlocale(LC_ALL, NULL);
  locale_t own = uselocale((locale_t)0);

  state_add(state, "the locale", "%s", locale == NULL ? "unknown" : locale);
  if (own == LC_GLOBAL_LOCALE)
    state_add(state, "the locale of the thread (uselocale)", "that of the process");
  else
    state_add(state, "the locale of the thread (uselocale)", "%p", (void *)own);
}

/* tzset() first: a function that needs the time zone calls it as well, which changes nothing then.
 */
void
state_take_time_zone(struct kit_state *state)
{
  if (state->before == NULL)
    tzset();
  state_add(state, "the time zone", "%s %s %+ld s", tzname[0], tzname[1], timezone);
}

/* Values may be secrets: only their checksums are kept, and only the names are reported. */
void
state_take_environment(struct kit_state *state)
{
  for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
    const char *key = state_text(state, "the environment variable %.*s",
                                 (int)strcspn(*entry, "="), *entry);

    state_add(state, key, "%llx",
              (unsigned long long)dk_fnv1a64(DK_FNV1A64_START, *entry, strlen(*entry)));
  }
}

void
state_take_groups(struct kit_state *state)
{
  state_add(state, "the session", "%ld", (long)getsid(0));
  state_add(state, "the process group", "%ld", (long)getpgrp());
}

void
state_take_rights(struct kit_state *state)
{
  static const struct {
    const char *name, *key;
  } lines[] = {
    {"Uid:", "the set of user ids"},
    {"Gid:", "the set of group ids"},
    {"Groups:", "the list of supplementary groups"},
    {"CapInh:", "the set of inheritable capabilities"},
    {"CapPrm:", "the set of permitted capabilities"},
    {"CapEff:", "the set of effective capabilities"},
    {"CapBnd:", "the bounding set of capabilities"},
    {"CapAmb:", "the set of ambient capabilities"},
    {"NoNewPrivs:", "no_new_privs (prctl)"},
    {"Seccomp:", "the mode of seccomp"},
    {"Seccomp_filters:", "the number of seccomp filters"},
  };

  for (size_t i = 0; i < LENGTH(lines); i++)
    state_add(state, lines[i].key, "%s", state_status(state, lines[i].name));
}

static void
take_control(struct kit_state *state, const char *key, int value)
{
  if (value < 0)
    state_add(state, key, "unknown");
  else
    state_add(state, key, "%d", value);
}

static int
read_control(int option)
{
  int value = -1;

  return prctl(option, &value, 0UL, 0UL, 0UL) == 0 ? value : -1;
}

void
state_take_control(struct kit_state *state)
{
  take_control(state, "PR_SET_DUMPABLE (prctl)", prctl(PR_GET_DUMPABLE, 0UL, 0UL, 0UL, 0UL));
  take_control(state, "PR_SET_KEEPCAPS (prctl)", prctl(PR_GET_KEEPCAPS, 0UL, 0UL, 0UL, 0UL));
  take_control(state, "PR_SET_SECUREBITS (prctl)", prctl(PR_GET_SECUREBITS, 0UL, 0UL, 0UL, 0UL));
  take_control(state, "PR_SET_TIMERSLACK (prctl)", prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL));
  take_control(state, "PR_SET_THP_DISABLE (prctl)", prctl(PR_GET_THP_DISABLE, 0UL, 0UL, 0UL, 0UL));
  take_control(state, "PR_SET_PDEATHSIG (prctl)", read_control(PR_GET_PDEATHSIG));
  take_control(state, "PR_SET_CHILD_SUBREAPER (prctl)", read_control(PR_GET_CHILD_SUBREAPER));
  state_add(state, "the personality", "%#x", (unsigned)personality(0xffffffff));
  state_add(state, "oom_score_adj", "%s", state_file(state, "/proc/self/oom_score_adj", 32));
  state_add(state, "coredump_filter", "%s", state_file(state, "/proc/self/coredump_filter", 32));
}

/* ---- scheduling ------------------------------------------------------------------------------ */

void
state_take_scheduling(struct kit_state *state)
{
  enum { OF_PROCESS = 1 }; /* IOPRIO_WHO_PROCESS */
  struct sched_param parameters = {.sched_priority = 0};

  errno = 0;
  int priority = getpriority(PRIO_PROCESS, 0);
  if (errno == 0)
    state_add(state, "the nice value", "%d", priority);
  state_add(state, "the scheduling policy", "%d", sched_getscheduler(0));
  if (sched_getparam(0, &parameters) == 0)
    state_add(state, "the real-time priority", "%d", parameters.sched_priority);
  state_add(state, "the input/output priority", "%ld", syscall(SYS_ioprio_get, OF_PROCESS, 0));
}

/* Another program may change it for a whole container.  Then the parent's changes, too. */
void
state_take_affinity(struct kit_state *state)
{
  const char *key = "the set of processors (affinity)";
  cpu_set_t own, parents;
  int policy = 0;

  if (syscall(SYS_get_mempolicy, &policy, NULL, 0UL, NULL, 0UL) == 0)
    state_add(state, "the memory policy (set_mempolicy)", "%d", policy);

  CPU_ZERO(&own);
  CPU_ZERO(&parents);
  if (sched_getaffinity(0, sizeof(own), &own) == 0
      && sched_getaffinity(getppid(), sizeof(parents), &parents) == 0 && CPU_EQUAL(&own, &parents))
    state_add(state, key, "that of the parent process");
  else
    state_add(state, key, "%s", state_status(state, "Cpus_allowed_list:"));
}

/* ---- names ----------------------------------------------------------------------------------- */

void
state_take_names(struct kit_state *state)
{
  char name[32] = "";

  if (prctl(PR_GET_NAME, name, 0UL, 0UL, 0UL) == 0)
    state_add(state, "the name of the main thread", "%s", name);
}

/* It may hold secrets. */
void
state_take_command_line(struct kit_state *state)
{
  uint64_t sum = DK_FNV1A64_START;
  char piece[4096];
  ssize_t n = 0;
  int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);

  while (fd >= 0 && ((n = read(fd, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR)))
    sum = dk_fnv1a64(sum, piece, n > 0 ? (size_t)n : 0);
  if (fd >= 0)
    close(fd);
  state_add(state, "the command line of the process", "%llx", (unsigned long long)sum);
}

/* ---- the floating-point unit ----------------------------------------------------------------- */

/* The exceptions that it has noted so far do not count.  On x86 each of its two units has a control
 * word, with rounding, traps and precision; fegetround reads only one of them. */
void
state_take_rounding(struct kit_state *state)
{
  static const struct {
    int mode;
    const char *name;
  } modes[] = {{FE_TONEAREST, "to nearest"}, {FE_UPWARD, "upwards"}, {FE_DOWNWARD, "downwards"},
               {FE_TOWARDZERO, "towards zero"}};
  const char *name = "unknown";
  int mode = fegetround();

  for (size_t i = 0; i < LENGTH(modes); i++) {
    if (modes[i].mode == mode)
      name = modes[i].name;
  }
  state_add(state, "the floating-point rounding mode", "%s", name);
#ifdef __GLIBC__
  state_add(state, "the set of floating-point traps", "%#x", (unsigned)fegetexcept());
#endif
#ifdef __SSE__
  enum { FLUSH = 0x8040, NOTED = 0x3f }; /* FTZ and DAZ; the exceptions */
  unsigned control = __builtin_ia32_stmxcsr();
  fpu_control_t of_x87;

  _FPU_GETCW(of_x87);
  state_add(state, "the treatment of denormal numbers", "%s",
            (control & FLUSH) == 0 ? "as they are" : "as zero");
  state_add(state, "the control word of SSE (MXCSR)", "%#x", control & ~(unsigned)NOTED);
  state_add(state, "the control word of the x87 unit", "%#x", (unsigned)of_x87);
#endif
}

/* ---- memory and namespaces ------------------------------------------------------------------- */

/* A new page that is locked is there before it is used. */
static bool
locks_new_pages(void)
{
  size_t size = (size_t)sysconf(_SC_PAGESIZE);
  unsigned char is_there = 0;
  void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (page == MAP_FAILED)
    return false;
  mincore(page, size, &is_there);
  munmap(page, size);
  return (is_there & 1) != 0;
}

/* A library may lock a few pages for its secrets.  If more than half is locked, it was mlockall. */
void
state_take_locked_memory(struct kit_state *state)
{
  unsigned long long locked = strtoull(state_status(state, "VmLck:"), NULL, 10);
  unsigned long long all = strtoull(state_status(state, "VmSize:"), NULL, 10);

  state_add(state, "the memory of the process", "%s", locked > all / 2 ? "locked" : "not locked");
  state_add(state, "the memory that it will map", "%s",
            locks_new_pages() ? "locked" : "not locked");
}

void
state_take_namespaces(struct kit_state *state)
{
  static const char *const names[] = {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"};
  char path[64], key[48];

  for (size_t i = 0; i < LENGTH(names); i++) {
    snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
    snprintf(key, sizeof(key), "the namespace %s", names[i]);
    state_add(state, key, "%s", state_link(state, path));
  }
}
