/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the process that a plugin must leave as it was: descriptors, threads, signals,
 * folder, umask, locale, environment, and the size of standard output.  Owns the two snapshots that
 * are compared; both are taken when the kit itself has nothing open. */
#include "conformance/kit/kit.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/checksum.h"

enum { FIRST_DESCRIPTORS = 64, SIGNALS = 64, SHOWN = 80 };

struct descriptor {
  int number;
  char target[128];
};

struct kit_state {
  struct descriptor *descriptors;
  size_t n_descriptors, room;
  uint32_t threads;
  struct sigaction handlers[SIGNALS + 1];
  bool has_handler[SIGNALS + 1];
  sigset_t mask;
  mode_t umask;
  char folder[1024];
  char locale[512];
  uint64_t environment;
  off_t written; /* to standard output; -1: it is not a file */
};

/* ---- taking it ------------------------------------------------------------------------------- */

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

static int
compare_descriptors(const void *a, const void *b)
{
  return ((const struct descriptor *)a)->number - ((const struct descriptor *)b)->number;
}

/* Grows the list as needed: a descriptor that is left out could hide one that is left over. */
static struct descriptor *
add_descriptor(struct kit_state *state)
{
  if (state->n_descriptors == state->room) {
    size_t room = state->room == 0 ? FIRST_DESCRIPTORS : state->room * 2;
    void *more = reallocarray(state->descriptors, room, sizeof(*state->descriptors));

    if (more == NULL)
      return NULL;
    state->descriptors = more;
    state->room = room;
  }
  return &state->descriptors[state->n_descriptors++];
}

static bool
take_descriptor(struct kit_state *state, int folder, const char *name)
{
  struct descriptor *d;
  ssize_t length;

  if (name[0] == '.' || atoi(name) == folder)
    return true;
  d = add_descriptor(state);
  if (d == NULL)
    return false;
  d->number = atoi(name);
  length = readlinkat(folder, name, d->target, sizeof(d->target) - 1);
  d->target[length < 0 ? 0 : length] = '\0';
  return true;
}

static bool
take_descriptors(struct kit_state *state)
{
  DIR *folder = opendir("/proc/self/fd");
  const struct dirent *entry;
  bool well = folder != NULL;

  while (well && (entry = readdir(folder)) != NULL)
    well = take_descriptor(state, dirfd(folder), entry->d_name);
  if (folder != NULL)
    closedir(folder);
  if (well && state->n_descriptors > 0)
    qsort(state->descriptors, state->n_descriptors, sizeof(*state->descriptors),
          compare_descriptors);
  return well;
}

static void
take_signals(struct kit_state *state)
{
  for (int i = 1; i <= SIGNALS; i++)
    state->has_handler[i] = sigaction(i, NULL, &state->handlers[i]) == 0;
  pthread_sigmask(SIG_SETMASK, NULL, &state->mask);
}

static void
take_environment(struct kit_state *state)
{
  state->environment = DK_FNV1A64_START;
  for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
    state->environment = dk_fnv1a64(state->environment, *entry, strlen(*entry) + 1);
}

static void
take_rest(struct kit_state *state)
{
  const char *locale = setlocale(LC_ALL, NULL);
  struct stat out;

  state->umask = umask(0);
  umask(state->umask);
  if (getcwd(state->folder, sizeof(state->folder)) == NULL)
    snprintf(state->folder, sizeof(state->folder), "(unknown)");
  snprintf(state->locale, sizeof(state->locale), "%s", locale == NULL ? "" : locale);
  state->written = fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode) ? out.st_size : -1;
}

struct kit_state *
kit_state_take(void)
{
  struct kit_state *state = calloc(1, sizeof(*state));

  fflush(stdout); /* a plugin's printf uses the same buffer as ours */
  if (state == NULL || !take_descriptors(state)) {
    kit_state_free(state);
    return NULL;
  }
  state->threads = kit_count_threads();
  take_signals(state);
  take_environment(state);
  take_rest(state);
  return state;
}

void
kit_state_free(struct kit_state *state)
{
  if (state == NULL)
    return;
  free(state->descriptors);
  free(state);
}

/* ---- comparing ------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static bool
damage(struct kit_report *report, const char *clause, const char *expected, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  vsnprintf(report->message, sizeof(report->message), format, args);
  va_end(args);
  snprintf(report->clause, sizeof(report->clause), "%s", clause);
  snprintf(report->expected, sizeof(report->expected), "%s", expected);
  snprintf(report->found, sizeof(report->found), "%s", report->message);
  return true;
}

static const struct descriptor *
find_descriptor(const struct kit_state *state, int number)
{
  for (size_t i = 0; i < state->n_descriptors; i++) {
    if (state->descriptors[i].number == number)
      return &state->descriptors[i];
  }
  return NULL;
}

static bool
descriptors_differ(const struct kit_state *before, const struct kit_state *after,
                   struct kit_report *report)
{
  for (size_t i = 0; i < before->n_descriptors; i++) {
    const struct descriptor *was = &before->descriptors[i];
    const struct descriptor *is = find_descriptor(after, was->number);

    if (is == NULL)
      return damage(report, "ABI-6", "the host's descriptors stay open",
                    "descriptor %d (%s) of the host was closed", was->number, was->target);
    if (strcmp(was->target, is->target) != 0)
      return damage(report, "ABI-6", "the host's descriptors stay what they are",
                    "descriptor %d of the host was %s and is now %s", was->number, was->target,
                    is->target);
  }
  for (size_t i = 0; i < after->n_descriptors; i++) {
    const struct descriptor *is = &after->descriptors[i];

    if (find_descriptor(before, is->number) == NULL)
      return damage(report, "CALL-8", "after close nothing of the handle is left",
                    "descriptor %d (%s) is still open after close", is->number, is->target);
  }
  return false;
}

/* A thread that was joined may be visible for a moment longer: so looks again for a while, in which
 * time spent waiting for a processor does not count. */
static bool
threads_differ(const struct kit_state *before, const struct kit_state *after,
               struct kit_report *report)
{
  enum { LOOKS = 150 };
  const struct timespec look = {.tv_nsec = 2000000};
  int64_t bound = kit_real_ns() + INT64_C(10000000000);
  uint32_t n = after->threads;

  for (int still = 0; n > before->threads && still < LOOKS && kit_real_ns() < bound;) {
    (void)ppoll(NULL, 0, &look, NULL);
    still += kit_process_runs(getpid()) ? 0 : 1;
    n = kit_count_threads();
  }
  return n != before->threads &&
         damage(report, "CALL-8", "after close nothing of the handle is left",
                "%u threads after close, %u before the plugin was loaded", n, before->threads);
}

static bool
signals_differ(const struct kit_state *before, const struct kit_state *after,
               struct kit_report *report)
{
  for (int i = 1; i <= SIGNALS; i++) {
    if (before->has_handler[i] && after->has_handler[i] &&
        before->handlers[i].sa_handler != after->handlers[i].sa_handler)
      return damage(report, "ABI-5", "signal handlers are the host's",
                    "the handler of signal %d (%s) was changed", i, strsignal(i));
    if (sigismember(&before->mask, i) != sigismember(&after->mask, i))
      return damage(report, "ABI-5", "the signal mask is the host's",
                    "the signal mask was changed: signal %d (%s)", i, strsignal(i));
  }
  return false;
}

static bool
rest_differs(const struct kit_state *before, const struct kit_state *after,
             struct kit_report *report)
{
  if (strcmp(before->folder, after->folder) != 0)
    return damage(report, "ABI-5", before->folder, "the working directory is now %.400s",
                  after->folder);
  if (before->umask != after->umask)
    return damage(report, "ABI-5", "the umask is the host's", "the umask was %03o and is now %03o",
                  (unsigned)before->umask, (unsigned)after->umask);
  if (strcmp(before->locale, after->locale) != 0)
    return damage(report, "ABI-5", before->locale, "the locale is now %.400s", after->locale);
  if (before->environment != after->environment)
    return damage(report, "ABI-5", "the environment is the host's", "the environment was changed");
  return false;
}

static bool
output_differs(const struct kit_state *before, const struct kit_state *after,
               struct kit_report *report)
{
  char start[SHOWN];
  struct dk_text text = DK_TEXT_EMPTY;
  ssize_t n = 0;
  int fd;

  if (before->written < 0 || after->written <= before->written)
    return false;
  fd = open("/proc/self/fd/1", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    n = pread(fd, start, sizeof(start), before->written);
    close(fd);
  }
  dk_text_add_escaped(&text, start, n > 0 ? (size_t)n : 0, DK_ESCAPE_VISIBLE);
  damage(report, "ABI-6", "nothing is written to standard output",
         "%lld bytes were written to standard output: %s",
         (long long)(after->written - before->written), dk_text_str(&text));
  dk_text_done(&text);
  return true;
}

bool
kit_state_differs(const struct kit_state *before, const struct kit_state *after,
                  struct kit_report *report)
{
  return descriptors_differ(before, after, report) || output_differs(before, after, report) ||
         threads_differ(before, after, report) || signals_differ(before, after, report) ||
         rest_differs(before, after, report);
}
