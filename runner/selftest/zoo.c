/* SPDX-License-Identifier: Apache-2.0 */
/* The zoo: this same command, run over each provider with one defect; exit code, verdicts, clause
 * and message must be those of the table.  Owns the children and the files of their output. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conformance/fixtures/zoo.h"
#include "runner/cli/usage.h"
#include "runner/memory/memcheck.h"
#include "runner/report/out.h"
#include "runner/selftest/selftest.h"
#include "runner/system/clock.h"

enum { MOST_JOBS = 8, MOST_WORDS = 48, MOST_OUTPUT = 1 << 20 };
enum { LIMIT_S = 180, MEMCHECK_LIMIT_S = 300, INTERRUPTED_S = 10 };

struct visit {
  const struct dk_fixture *fixture;
  pid_t pid;           /* 0: none */
  int output;
  int64_t deadline_ns;
  char server[4096];   /* the folder of its server; "": it has none */
};

struct zoo_tour {
  struct selftest *selftest;
  const char *folder;
  struct visit visits[MOST_JOBS];
  unsigned jobs, running, servers;
  bool memcheck;       /* Valgrind is here */
  char without[600];   /* if it is not: why */
};

/* ---- one visit ------------------------------------------------------------------------------- */

/* ---- the server of some ---------------------------------------------------------------------- */

/* Runs one of its commands; that is no provider code, so it may be run from here. */
static bool
command_server(const struct zoo_tour *tour, const char *command, const char *folder)
{
  struct dk_text program = DK_TEXT_EMPTY;
  int status = -1;

  dk_text_printf(&program, "%s/server", tour->folder);
  pid_t pid = fork();
  if (pid == 0) {
    execl(dk_text_str(&program), "server", command, folder, (char *)NULL);
    _exit(127);
  }
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
    continue;
  dk_text_done(&program);
  return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The options that let a run crash, pause and restrict it; they last until the process executes
 * another program. */
static size_t
put_server_words(const char **words, size_t n, const struct zoo_tour *tour, const char *folder)
{
  static const char *const verbs[] = {"crash", "start", "pause", "resume", "deny", "allow"};
  static struct dk_text texts[10];
  size_t used = 0;
  char program[4096];

  if (!realpath(tour->folder, program))
    return n;
  for (; used < sizeof(verbs) / sizeof(verbs[0]); used++)
    dk_text_printf(&texts[used], "--store-%s='%s/server' %s '%s'", verbs[used], program,
                   verbs[used], folder);
  dk_text_printf(&texts[used++], "--set=server=%s/socket", folder);
  dk_text_printf(&texts[used++], "--store-address=%s/socket", folder);
  dk_text_puts(&texts[used++], "--through=server={folder}/socket");
  for (size_t i = 0; i < used; i++)
    words[n++] = dk_text_str(&texts[i]);
  return n;
}

/* The words of the command; splits `options`. */
static size_t
put_words(const char **words, const struct dk_fixture *fixture, const char *path, char *options)
{
  size_t n = 0;
  char *rest = options;

  words[n++] = "durakit";
  words[n++] = fixture->only ? "check" : "certify";
  words[n++] = path;
  words[n++] = "--format=tap";
  if (!fixture->only)
    words[n++] = "--no-memcheck"; /* fixtures about memory ask for Valgrind */
  if (strcmp(fixture->verdict, "pass") == 0 && !strstr(fixture->options, "--timeout-scale"))
    words[n++] = "--timeout-scale=4"; /* nothing hangs, but the machine may be busy */
  if (fixture->only) {
    words[n++] = "--only";
    words[n++] = fixture->only;
  }
  for (char *word; n < MOST_WORDS - 16 && (word = strtok_r(rest, " ", &rest)) != NULL;)
    words[n++] = word;
  return n;
}

__attribute__((noreturn)) static void
become(const struct zoo_tour *tour, const struct visit *visit, const char *path)
{
  const char *words[MOST_WORDS];
  char *options = strdup(visit->fixture->options);
  sigset_t none;

  if (!options || dup2(visit->output, 1) < 0 || dup2(visit->output, 2) < 0)
    _exit(70);
  size_t n = put_words(words, visit->fixture, path, options);
  if (visit->server[0])
    n = put_server_words(words, n, tour, visit->server);
  words[n] = NULL;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  unsetenv("TAP_VERSION");
  execv("/proc/self/exe", (char *const *)(uintptr_t)words);
  _exit(71);
}

static bool
is_for_memcheck(const struct dk_fixture *fixture)
{
  return strstr(fixture->options, "--memcheck") != NULL;
}

static bool
begin_visit(struct zoo_tour *tour, const struct dk_fixture *fixture)
{
  struct visit *visit = tour->visits;
  char path[4096];

  while (visit->pid != 0)
    visit++;
  snprintf(path, sizeof(path), "%s/%s.so", tour->folder, fixture->name);
  *visit = (struct visit){.fixture = fixture, .output = memfd_create("output", MFD_CLOEXEC)};
  if (fixture->has_server) {
    snprintf(visit->server, sizeof(visit->server), "%s/server-%u",
             tour->selftest->run.folder.path, ++tour->servers);
    if (!command_server(tour, "start", visit->server))
      return false;
  }
  int64_t limit_s = is_for_memcheck(fixture) ? MEMCHECK_LIMIT_S : LIMIT_S;
  visit->deadline_ns = clock_ns() + limit_s * 1000000000;
  fflush(NULL);
  visit->pid = visit->output >= 0 ? fork() : -1;
  if (visit->pid == 0)
    become(tour, visit, path);
  if (visit->pid < 0) {
    visit->pid = 0;
    return false;
  }
  tour->running++;
  return true;
}

/* ---- its output ------------------------------------------------------------------------------ */

struct heard {
  unsigned points, passed, skipped;
  unsigned unseen;          /* races of an honest one that did not overlap on a busy machine */
  bool bailed_out, plan;
  const char *wrong;        /* the first thing that differs from the table */
  char value[80];           /* its value */
};

static void
blame(struct heard *heard, const char *wrong, const char *value)
{
  if (heard->wrong)
    return;
  heard->wrong = wrong;
  snprintf(heard->value, sizeof(heard->value), "%s", value);
}

/* The value of "  key: "...""; NULL: another line. */
static const char *
zoo_value_of(const char *line, const char *key, char *buffer, size_t size)
{
  size_t n = strlen(key);

  if (strncmp(line, "  ", 2) != 0 || strncmp(line + 2, key, n) != 0
      || strncmp(line + 2 + n, ": \"", 3) != 0)
    return NULL;
  snprintf(buffer, size, "%s", line + n + 5);
  buffer[strcspn(buffer, "\"")] = '\0';
  return buffer;
}

static void
hear_verdict(struct heard *heard, const struct dk_fixture *fixture, const char *value)
{
  if (strcmp(fixture->verdict, "pass") == 0 && strcmp(value, "unexercised") == 0)
    heard->unseen++;
  else if (strcmp(value, fixture->verdict) != 0)
    blame(heard, "verdict", value);
}

static void
hear_line(struct heard *heard, const struct dk_fixture *fixture, const char *line)
{
  char buffer[80];
  const char *value;

  if (strncmp(line, "ok ", 3) == 0) {
    heard->points++;
    heard->passed++;
    heard->skipped += strstr(line, " # SKIP ") ? 1u : 0u;
  } else if (strncmp(line, "not ok ", 7) == 0) {
    heard->points++;
  } else if (strncmp(line, "1..", 3) == 0) {
    heard->plan = true;
  } else if (strncmp(line, "Bail out!", 9) == 0) {
    heard->bailed_out = true;
  } else if (strncmp(line, "::", 2) == 0) {
    blame(heard, "a line that a CI system obeys", line);
  } else if ((value = zoo_value_of(line, "verdict", buffer, sizeof(buffer))) != NULL) {
    hear_verdict(heard, fixture, value);
  } else if ((value = zoo_value_of(line, "clause", buffer, sizeof(buffer))) != NULL) {
    if (fixture->clause && strcmp(value, fixture->clause) != 0)
      blame(heard, "clause", value);
  }
}

/* Splits `output` into lines. */
static void
hear_fixture(struct heard *heard, const struct dk_fixture *fixture, char *output)
{
  bool phrase = !fixture->phrase || strstr(output, fixture->phrase);
  char *rest = output;

  for (char *line; (line = strtok_r(rest, "\n", &rest)) != NULL;)
    hear_line(heard, fixture, line);
  if (!phrase)
    blame(heard, "this phrase is missing", fixture->phrase);
  bool refused = strcmp(fixture->verdict, "refused") == 0;
  if (refused || (heard->points == 0 && fixture->exit_code == 4)) {
    if (heard->points > 0 || heard->plan || !heard->bailed_out)
      blame(heard, "checks", "a plan or points, instead of one line that bails out");
  } else if (heard->points == 0 || !heard->plan || heard->bailed_out) {
    blame(heard, "checks", "no plan with points");
  } else if (strcmp(fixture->verdict, "pass") == 0
               ? heard->passed + heard->unseen != heard->points : heard->passed > 0) {
    blame(heard, "passed", strcmp(fixture->verdict, "pass") == 0 ? "not all" : "some");
  }
}

static bool
is_interrupted(const struct zoo_tour *tour)
{
  return engine_interrupted(tour->selftest->run.engine) != 0;
}

static void
judge_visit(struct zoo_tour *tour, const struct visit *visit, int status)
{
  const struct dk_fixture *fixture = visit->fixture;
  struct heard heard = {0};
  char *output = calloc(MOST_OUTPUT + 1, 1);
  char number[40];
  struct dk_text name = DK_TEXT_EMPTY;
  struct dk_text detail = DK_TEXT_EMPTY, printed = DK_TEXT_EMPTY;

  if (output && pread(visit->output, output, MOST_OUTPUT, 0) < 0)
    blame(&heard, "output", "cannot be read");
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  dk_text_printf(&printed, "; exit %d; it printed: %.400s", code, output ? output : "");
  if (output)
    hear_fixture(&heard, fixture, output);
  int expected = heard.unseen > 0 ? EXIT_UNCLEAR : fixture->exit_code;
  snprintf(number, sizeof(number), "%d instead of %d", code, expected);
  if (code != expected)
    blame(&heard, "exit code", number);
  dk_text_printf(&name, "zoo: %s is %s, exit %d", fixture->name, fixture->verdict,
                 fixture->exit_code);
  if (heard.wrong)
    dk_text_printf(&detail, "%s: %s%s", heard.wrong, heard.value, dk_text_str(&printed));
  tour->selftest->fixtures++;
  tour->selftest->right += heard.wrong ? 0u : 1u;
  selftest_point(tour->selftest, !heard.wrong, dk_text_str(&name), dk_text_str(&detail));
  dk_text_done(&name);
  dk_text_done(&detail);
  dk_text_done(&printed);
  free(output);
}

/* ---- the tour -------------------------------------------------------------------------------- */

/* Waits for a child to end, or for the first deadline; then ends the children that are late. */
static void
wait_a_while(struct zoo_tour *tour)
{
  struct timespec second = {.tv_sec = 1};
  sigset_t child;

  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigtimedwait(&child, NULL, &second);
  for (unsigned i = 0; i < tour->jobs; i++) {
    struct visit *visit = &tour->visits[i];
    if (visit->pid != 0 && clock_ns() > visit->deadline_ns)
      kill(visit->pid, SIGKILL);
  }
}

static void
take_ended(struct zoo_tour *tour)
{
  for (unsigned i = 0; i < tour->jobs; i++) {
    struct visit *visit = &tour->visits[i];
    int status;
    if (visit->pid == 0 || waitpid(visit->pid, &status, WNOHANG) != visit->pid)
      continue;
    if (!is_interrupted(tour))
      judge_visit(tour, visit, status);
    close(visit->output);
    if (visit->server[0])
      command_server(tour, "crash", visit->server);
    visit->pid = 0;
    tour->running--;
  }
}

/* Passes over a fixture that only Valgrind can judge, if it is not available. */
static bool
passes_by(struct zoo_tour *tour, const struct dk_fixture *fixture)
{
  if (tour->memcheck || !is_for_memcheck(fixture))
    return false;
  tour->selftest->passed_by++;
  return true;
}

/* After an interruption the children end in order; those that do not are killed. */
static void
interrupt_all(struct zoo_tour *tour)
{
  const int64_t deadline_ns = clock_ns() + INTERRUPTED_S * INT64_C(1000000000);

  for (unsigned i = 0; i < tour->jobs; i++) {
    struct visit *visit = &tour->visits[i];
    if (visit->pid == 0 || visit->deadline_ns <= deadline_ns)
      continue;
    visit->deadline_ns = deadline_ns;
    kill(visit->pid, SIGTERM);
  }
}

/* Begins at the end, with those that take longest and mostly wait. */
static void
walk(struct zoo_tour *tour)
{
  size_t n;
  const struct dk_fixture *fixtures = dk_zoo(&n);
  size_t next = 0;

  out_part(tour->selftest->run.out, "the zoo");
  while ((next < n && !is_interrupted(tour)) || tour->running > 0) {
    while (next < n && !is_interrupted(tour) && tour->running < tour->jobs) {
      const struct dk_fixture *fixture = &fixtures[n - 1 - next];
      if (!passes_by(tour, fixture) && !begin_visit(tour, fixture))
        selftest_point(tour->selftest, false, fixture->name, "it could not be started");
      next++;
    }
    take_ended(tour);
    const size_t done = next - tour->running;
    selftest_progress(tour->selftest, done, n, (double)done / (double)n);
    if (tour->running > 0 && (is_interrupted(tour) || next >= n || tour->running == tour->jobs))
      wait_a_while(tour);
    engine_hear(tour->selftest->run.engine);
    if (is_interrupted(tour))
      interrupt_all(tour);
  }
}

static const char *
zoo_folder(const struct selftest *selftest)
{
  const char *folder = selftest->options->zoo;

  return folder ? folder : getenv("DURAKIT_ZOO");
}

int
zoo_run(struct selftest *selftest)
{
  struct zoo_tour tour = {.selftest = selftest, .folder = zoo_folder(selftest)};
  struct memcheck setup;
  sigset_t child;
  sigset_t before;
  struct stat st;

  if (!tour.folder) {
    selftest_note(selftest, "the zoo was not found: make check builds it; name its folder by "
                            "--zoo FOLDER or DURAKIT_ZOO");
    return EXIT_PASSED;
  }
  if (stat(tour.folder, &st) != 0 || !S_ISDIR(st.st_mode))
    return usage(selftest->options, tour.folder, "is no folder with the providers of the zoo", NULL,
                 "make check builds them");
  selftest->zoo_is_there = true;
  tour.memcheck = memcheck_find(&setup, tour.without, sizeof(tour.without));
  memcheck_done(&setup);
  tour.jobs = selftest->options->jobs < MOST_JOBS ? selftest->options->jobs : MOST_JOBS;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, &before);
  walk(&tour);
  sigprocmask(SIG_SETMASK, &before, NULL);
  if (selftest->passed_by > 0)
    selftest_note(selftest, "%u providers of the zoo with defects of memory were not judged: %s",
                  selftest->passed_by, tour.without);
  return is_interrupted(&tour) ? EXIT_INCOMPLETE : EXIT_PASSED;
}
