/* SPDX-License-Identifier: Apache-2.0 */
/* The process before and after a check: each difference is reported in its words, and what does no
 * harm is not. */
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conformance/kit/test-meta.h"

/* What a check has left on this machine, so that the test can remove it.  In a shared map. */
static struct left {
  int segment, semaphores, queue;
  char path[128];
} *left;

/* ---- files ----------------------------------------------------------------------------------- */

static void
changes_flags(struct dk_check *t)
{
  expect(t, fcntl(1, F_SETFL, O_NONBLOCK | O_APPEND) == 0, "the flags are set");
}

static void
changes_flags_of_own(struct dk_check *t)
{
  expect(t, fcntl(0, F_SETFD, fcntl(0, F_GETFD) ^ FD_CLOEXEC) == 0, "the flag is set");
}

static void
changes_owner(struct dk_check *t)
{
  expect(t, fcntl(1, F_SETOWN, getpid()) == 0, "the owner is set");
}

static void
changes_buffer(struct dk_check *t)
{
  expect(t, setvbuf(stdout, NULL, _IONBF, 0) == 0, "stdout is not buffered");
}

static void
gives_buffer(struct dk_check *t)
{
  static char memory[BUFSIZ];

  expect(t, setvbuf(stdout, memory, _IOFBF, sizeof(memory)) == 0, "stdout is buffered elsewhere");
}

static void
leave_file(struct dk_check *t, const char *folder)
{
  snprintf(left->path, sizeof(left->path), "%.100s/test-state-XXXXXX", folder);
  int fd = mkstemp(left->path);
  expect(t, fd >= 0 && close(fd) == 0, "a file is made in %s", folder);
}

static void
leaves_temporary(struct dk_check *t)
{
  leave_file(t, getenv("TMPDIR"));
}

static void
removes_temporary(struct dk_check *t)
{
  leave_file(t, getenv("TMPDIR"));
  unlink(left->path);
}

static void
leaves_shared(struct dk_check *t)
{
  leave_file(t, "/dev/shm");
}

/* A file of another name is no other file. */
static void
removes_shared(struct dk_check *t)
{
  char other[160];

  leave_file(t, "/dev/shm");
  snprintf(other, sizeof(other), "%s-2", left->path);
  expect(t, rename(left->path, other) == 0 && unlink(other) == 0, "it is renamed, and removed");
}

static void
leaves_segment(struct dk_check *t)
{
  left->segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  expect(t, left->segment >= 0, "shared memory");
}

static void
leaves_semaphores(struct dk_check *t)
{
  left->semaphores = semget(IPC_PRIVATE, 3, IPC_CREAT | 0600);
  expect(t, left->semaphores >= 0, "semaphores");
}

static void
leaves_queue(struct dk_check *t)
{
  left->queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
  expect(t, left->queue >= 0, "a queue");
}

static void
remove_what_is_left(void)
{
  if (left->segment >= 0)
    shmctl(left->segment, IPC_RMID, NULL);
  if (left->semaphores >= 0)
    semctl(left->semaphores, 0, IPC_RMID);
  if (left->queue >= 0)
    msgctl(left->queue, IPC_RMID, NULL);
  if (left->path[0] != '\0')
    unlink(left->path);
  *left = (struct left){-1, -1, -1, ""};
}

/* ---- signals and timers ---------------------------------------------------------------------- */

static void
handle(int signal)
{
  (void)signal;
}

static void
change_action(struct dk_check *t, int signal, int flags, int blocked)
{
  struct sigaction action;

  expect(t, sigaction(signal, NULL, &action) == 0, "the action is known");
  action.sa_flags ^= flags;
  if (blocked != 0)
    sigaddset(&action.sa_mask, blocked);
  expect(t, sigaction(signal, &action, NULL) == 0, "the action is set");
}

static void
changes_action_flags(struct dk_check *t)
{
  change_action(t, SIGUSR2, SA_RESTART, 0);
}

static void
changes_action_mask(struct dk_check *t)
{
  change_action(t, SIGUSR2, 0, SIGTERM);
}

static void
changes_default_flags(struct dk_check *t)
{
  change_action(t, SIGCHLD, SA_NOCLDWAIT, 0);
}

/* As older code does around a write, and as system() does. */
static void
restores_handlers(struct dk_check *t)
{
  void (*pipe)(int) = signal(SIGPIPE, SIG_IGN);

  signal(SIGPIPE, pipe);
  change_action(t, SIGUSR2, 0, 0);
  expect(t, system(":") == 0, "a shell");
}

static void
changes_stack(struct dk_check *t)
{
  static char memory[1 << 16];
  stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};

  expect(t, sigaltstack(&stack, NULL) == 0, "the stack is set");
}

static void
leaves_alarm(struct dk_check *t)
{
  struct itimerval hour = {.it_value = {.tv_sec = 3600}};

  expect(t, setitimer(ITIMER_PROF, &hour, NULL) == 0, "the timer is armed");
}

static void
leaves_timer(struct dk_check *t)
{
  struct sigevent silent = {.sigev_notify = SIGEV_NONE};
  timer_t timer;

  expect(t, timer_create(CLOCK_REALTIME, &silent, &timer) == 0, "a timer");
}

/* ---- what the process is --------------------------------------------------------------------- */

static void
limit_descriptors(struct dk_check *t, rlim_t most)
{
  struct rlimit limit;

  expect(t, getrlimit(RLIMIT_NOFILE, &limit) == 0, "the limit is known");
  limit.rlim_cur = most;
  expect(t, setrlimit(RLIMIT_NOFILE, &limit) == 0, "the limit is lowered");
}

static void
changes_limit(struct dk_check *t)
{
  limit_descriptors(t, 64);
}

/* So far that /proc can no longer be read. */
static void
leaves_no_descriptor(struct dk_check *t)
{
  limit_descriptors(t, 1);
}

static void
changes_session(struct dk_check *t)
{
  expect(t, setsid() > 0, "the session is new");
}

static void
changes_priority(struct dk_check *t)
{
  expect(t, setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1) == 0, "it is nicer");
}

static void
changes_affinity(struct dk_check *t)
{
  int processor = sched_getcpu();
  cpu_set_t one;

  CPU_ZERO(&one);
  CPU_SET((size_t)processor, &one);
  expect(t, sched_setaffinity(0, sizeof(one), &one) == 0, "it is bound to a processor");
}

static void
changes_name(struct dk_check *t)
{
  expect(t, prctl(PR_SET_NAME, "another", 0UL, 0UL, 0UL) == 0, "it is named");
}

static void
changes_slack(struct dk_check *t)
{
  expect(t, prctl(PR_SET_TIMERSLACK, 12345UL, 0UL, 0UL, 0UL) == 0, "the slack is set");
}

static void
offers_itself(struct dk_check *t)
{
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

  expect(t, fd >= 0 && write(fd, "999", 3) == 3 && close(fd) == 0, "the score is raised");
}

static void
changes_rounding(struct dk_check *t)
{
  expect(t, fesetround(FE_TOWARDZERO) == 0, "the mode is set");
}

static void
notes_exceptions(struct dk_check *t)
{
  expect(t, feraiseexcept(FE_INEXACT | FE_DIVBYZERO) == 0, "they are noted");
}

#ifdef __SSE__
/* As _MM_SET_ROUNDING_MODE does. */
static void
rounds_in_one_unit(struct dk_check *t)
{
  (void)t;
  __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~0x603fU) | 0x4000);
}

static void
flushes_denormals(struct dk_check *t)
{
  (void)t;
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
}
#endif

static void
changes_thread_locale(struct dk_check *t)
{
  expect(t, uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)) != (locale_t)0, "it is set");
}

static void
adds_variable(struct dk_check *t)
{
  expect(t, setenv("TEST_STATE_NEW", "secret", 1) == 0, "it is set");
}

/* Without a second tzset. */
static void
changes_time_zone(struct dk_check *t)
{
  const char *was = getenv("TZ");
  char kept[128];

  snprintf(kept, sizeof(kept), "%s", was == NULL ? "" : was);
  expect(t, setenv("TZ", "XYZ10", 1) == 0, "it is set");
  tzset();
  expect(t, (was == NULL ? unsetenv("TZ") : setenv("TZ", kept, 1)) == 0, "it is as it was");
}

/* Even if the time zone was not known before. */
static void
asks_for_local_time(struct dk_check *t)
{
  time_t now_s = 0;

  expect(t, localtime(&now_s), "local time");
}

static void
removes_variable(struct dk_check *t)
{
  expect(t, unsetenv("TEST_STATE") == 0, "it is removed");
}

static void
enters_namespace(struct dk_check *t)
{
  expect(t, unshare(CLONE_NEWUTS) == 0, "a namespace");
}

static void
locks_memory(struct dk_check *t)
{
  expect(t, mlockall(MCL_CURRENT | MCL_ONFAULT) == 0, "all is locked");
}

static void
locks_new_memory(struct dk_check *t)
{
  expect(t, mlockall(MCL_FUTURE) == 0, "what is mapped later is locked");
}

/* Where there is no /proc. */
static void
changes_root(struct dk_check *t)
{
  expect(t, chroot(meta.folder) == 0, "another root");
}

/* ---- copies, and other programs -------------------------------------------------------------- */

static void
await(struct dk_check *t, pid_t pid)
{
  int status = -1;

  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    continue;
  expect(t, status == 0, "it ends well");
}

static void
forks(struct dk_check *t)
{
  pid_t pid = fork();

  if (pid == 0)
    _exit(0);
  await(t, pid);
}

/* It has work to do, which takes some time, and closes what it has inherited. */
static void
forks_to_work(struct dk_check *t)
{
  pid_t pid = fork();

  if (pid == 0) {
    for (int i = 3; i < 64; i++)
      close(i);
    for (clock_t begun = clock(); clock() - begun < CLOCKS_PER_SEC / 10;)
      continue;
    _exit(0);
  }
  await(t, pid);
}

static void
starts_programs(struct dk_check *t)
{
  static char shell[] = "/bin/sh", option[] = "-c", nothing[] = ":";
  char *const words[] = {shell, option, nothing, NULL};
  pid_t pid;

  expect(t, system(nothing) == 0, "by system");
  FILE *pipe = popen(nothing, "re");
  expect(t, pipe != NULL && pclose(pipe) == 0, "by popen");
  expect(t, posix_spawn(&pid, shell, NULL, NULL, words, environ) == 0, "by posix_spawn");
  await(t, pid);
  for (int i = 0; i < 20; i++) {
    pid = fork();
    if (pid == 0) {
      execv(shell, words);
      _exit(1);
    }
    await(t, pid);
  }
}

/* ---- growth ---------------------------------------------------------------------------------- */

enum { CYCLES = 6 };

static void
maps(struct dk_check *t)
{
  expect(t, mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED,
         "a mapping");
}

static void
makes_key(struct dk_check *t)
{
  pthread_key_t key;

  expect(t, pthread_key_create(&key, NULL) == 0, "a key");
}

static void
allocates(struct dk_check *t)
{
  void *volatile lost = malloc(100);

  expect(t, lost != NULL, "memory");
}

static void
cycle(struct dk_check *t, void (*grow)(struct dk_check *t), int times)
{
  struct growth growth = {.cycles = 0};

  for (int i = 0; i < CYCLES; i++) {
    if (i < times)
      grow(t);
    growth_look(&growth, i > 0);
  }
  expect_no_growth(t, &growth);
}

static void
loses_mappings(struct dk_check *t)
{
  cycle(t, maps, CYCLES);
}

static void
loses_keys(struct dk_check *t)
{
  cycle(t, makes_key, CYCLES);
}

static void
loses_memory(struct dk_check *t)
{
  cycle(t, allocates, CYCLES);
}

static void
warms_up(struct dk_check *t)
{
  cycle(t, maps, CYCLES - 1);
  cycle(t, makes_key, CYCLES - 1);
}

/* ---- the tables ------------------------------------------------------------------------------ */

#define FOUND(of, by, words)                                                                       \
  {.name = #of, .run = of, .verdict = VERDICT_HOST_DAMAGE, .clause = by, .message = words,         \
   .clauses = "CALL-8", .without_plugin = true}
#define GROWS(of, words)                                                                           \
  {.name = #of, .run = of, .verdict = VERDICT_FAIL, .clause = "CALL-8", .message = words,          \
   .without_plugin = true}
#define HARMLESS(of)                                                                               \
  {.name = #of, .run = of, .verdict = VERDICT_PASS, .clauses = "CALL-8", .without_plugin = true}

static const struct expected differences[] = {
  FOUND(changes_flags, "ABI-6", "the set of flags of descriptor 1 is now O_APPEND O_NONBLOCK"),
  FOUND(changes_flags_of_own, "ABI-6", "the set of flags of descriptor 0 is now"),
  FOUND(changes_owner, "ABI-6", "the set of flags of descriptor 1 is now F_SETOWN; it was none"),
  FOUND(changes_buffer, "ABI-6", "the buffer of stdout is now none; it was written"),
  FOUND(gives_buffer, "ABI-6", "the buffer of stdout is now in foreign memory"),
  FOUND(leaves_temporary, "CALL-8", "(in the working directory, which is also $TMPDIR) was left"),
  FOUND(leaves_segment, "CALL-8", "of shared memory (4096 bytes) was left behind"),
  FOUND(leaves_semaphores, "CALL-8", "of semaphores (of 3) was left behind"),
  FOUND(leaves_queue, "CALL-8", "(System V) was left behind"),
  FOUND(changes_action_flags, "ABI-5", "with SA_RESTART"),
  FOUND(changes_action_mask, "ABI-5", "with the mask 15"),
  FOUND(changes_default_flags, "ABI-5", "is now SIG_DFL with SA_NOCLDWAIT; it was SIG_DFL"),
  FOUND(changes_stack, "ABI-5", "the alternate signal stack is now 65536 bytes at "),
  FOUND(leaves_alarm, "ABI-5", "the timer ITIMER_PROF (setitimer) is now armed"),
  FOUND(leaves_timer, "CALL-8", "(timer_create) was not deleted"),
  FOUND(changes_limit, "ABI-5", "RLIMIT_NOFILE is now 64 (at most"),
  FOUND(leaves_no_descriptor, "ABI-5", "RLIMIT_NOFILE is now 1 (at most"),
  FOUND(changes_session, "ABI-5", "the session is now"),
  FOUND(changes_name, "ABI-5", "the name of the main thread is now another; it was"),
  FOUND(changes_slack, "ABI-5", "PR_SET_TIMERSLACK (prctl) is now 12345; it was"),
  FOUND(offers_itself, "ABI-5", "oom_score_adj is now 999; it was"),
  FOUND(changes_rounding, "ABI-5", "rounding mode is now towards zero; it was to nearest"),
#ifdef __SSE__
  FOUND(rounds_in_one_unit, "ABI-5", "control word of SSE (MXCSR) is now 0x5f80; it was 0x1f80"),
#endif
  FOUND(changes_thread_locale, "ABI-5", "(uselocale) is now"),
  FOUND(adds_variable, "ABI-5", "the environment variable TEST_STATE_NEW was added"),
  FOUND(changes_time_zone, "ABI-5", "the time zone is now XYZ XYZ +36000 s; it was"),
  FOUND(removes_variable, "ABI-5", "the environment variable TEST_STATE was removed"),
  FOUND(forks, "ABI-5", "the process was forked"),
  FOUND(forks_to_work, "ABI-5", "has ended without exec"),
  GROWS(loses_keys, "left at least 1 more thread keys (pthread_key_create)"),
  HARMLESS(removes_temporary),
  HARMLESS(asks_for_local_time),
  HARMLESS(restores_handlers),
  HARMLESS(notes_exceptions),
  HARMLESS(starts_programs),
  HARMLESS(warms_up),
};

static void
test_differences(void)
{
  for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
    run_all(&differences[i], 1);
    remove_what_is_left();
  }
}

/* ---- what not every machine allows ----------------------------------------------------------- */

static bool
has_two_processors(void)
{
  cpu_set_t all;

  return sched_getaffinity(0, sizeof(all), &all) == 0 && CPU_COUNT(&all) > 1;
}

static bool
can_be_nicer(void)
{
  return getpriority(PRIO_PROCESS, 0) < 19;
}

static bool
can_watch(void)
{
#ifdef FAN_REPORT_DFID_NAME
  int group = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_CLOEXEC, O_RDONLY);
  bool can = group >= 0
             && fanotify_mark(group, FAN_MARK_ADD, FAN_CREATE, AT_FDCWD, "/dev/shm") == 0;

  if (group >= 0)
    close(group);
  return can;
#else
  return false;
#endif
}

enum act { ENTER, LOCK, CHANGE_ROOT };

/* Whether this is permitted is tried in another process. */
static bool
may(enum act act)
{
  pid_t pid = fork();
  int status = -1;

  if (pid == 0)
    _exit((act == ENTER  ? unshare(CLONE_NEWUTS)
           : act == LOCK ? mlockall(MCL_FUTURE)
                         : chroot(meta.folder)) == 0 ? 0 : 1);
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool
counts_memory(void)
{
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
  return getenv("ASAN_OPTIONS") == NULL && !kit_under_memcheck();
#else
  return false;
#endif
}

static void
run_if(bool can, const struct expected *expected)
{
  if (can)
    run_all(expected, 1);
  else
    skip(1, "%s: not on this machine", expected->name);
  remove_what_is_left();
}

static void
test_conditions(void)
{
  static const struct expected memory = GROWS(loses_memory, "more bytes of malloc");
  static const struct expected rest[] = {
    FOUND(changes_affinity, "ABI-5", "the set of processors (affinity) is now"),
    FOUND(changes_priority, "ABI-5", "the nice value is now"),
    FOUND(leaves_shared, "CALL-8", "was made, and left behind"),
    FOUND(enters_namespace, "ABI-5", "the namespace uts is now"),
    FOUND(locks_memory, "ABI-5", "the memory of the process is now locked"),
    FOUND(locks_new_memory, "ABI-5", "the memory that it will map is now locked"),
    FOUND(changes_root, "ABI-5", "is now"),
  };
  static const struct expected tidy = HARMLESS(removes_shared);
  /* Valgrind rounds denormal numbers in its own way, and maps memory for itself. */
  static const struct expected natively[] = {
    GROWS(loses_mappings, "left at least 65536 more bytes mapped outside malloc"),
#ifdef __SSE__
    FOUND(flushes_denormals, "ABI-5", "the treatment of denormal numbers is now as zero"),
#endif
  };

  for (size_t i = 0; i < sizeof(natively) / sizeof(natively[0]); i++)
    run_if(!kit_under_memcheck(), &natively[i]);
  run_if(counts_memory(), &memory);
  run_if(has_two_processors(), &rest[0]);
  run_if(can_be_nicer(), &rest[1]);
  run_if(can_watch(), &rest[2]);
  run_if(can_watch(), &tidy);
  run_if(may(ENTER), &rest[3]);
  run_if(may(LOCK), &rest[4]);
  run_if(may(LOCK), &rest[5]);
  run_if(may(CHANGE_ROOT), &rest[6]);
}

/* In its words: what a provider does instead; and no value of the environment. */
static void
test_words(void)
{
  struct expected limit = FOUND(changes_limit, "ABI-5", "RLIMIT_NOFILE");
  struct expected variable = FOUND(adds_variable, "ABI-5", "TEST_STATE_NEW");

  run_all(&limit, 1);
  ok(strstr(report()->expected, "as before the plugin was loaded; limits hold for all of the host")
       != NULL,
     "what was expected: %s", report()->expected);
  run_all(&variable, 1);
  ok(strstr(report()->message, "secret") == NULL && strstr(report()->found, "secret") == NULL,
     "a value is not shown");
}

int
main(void)
{
  struct sigaction action = {.sa_handler = handle};

  left = mmap(NULL, sizeof(*left), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (left == MAP_FAILED || sigaction(SIGUSR2, &action, NULL) != 0
      || setenv("TEST_STATE", "old", 1) != 0)
    BAIL_OUT("the test cannot begin");
  *left = (struct left){-1, -1, -1, ""};
  meta_begin();
  test_differences();
  test_conditions();
  test_words();
  return meta_end();
}
