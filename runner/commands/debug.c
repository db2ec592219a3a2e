/* SPDX-License-Identifier: Apache-2.0 */
/* `check --in-process` and `check --gdb`: one check under a debugger.  Never a verdict. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/cli/settings.h"
#include "runner/cli/usage.h"
#include "runner/commands/commands.h"
#include "runner/engine/child.h"
#include "runner/engine/judge.h"
#include "runner/report/out.h"
#include "runner/run/plan.h"
#include "runner/setup/run-setup.h"

static const struct check *
the_only(const struct options *options, const char *option, int *ret_code)
{
  size_t n;
  const struct check **checks = plan_select(options, &n, ret_code);
  const struct check *check = checks ? checks[0] : NULL;

  if (checks && n != 1) {
    *ret_code = usage(options, option, "works with one check, and several are selected",
                      "one check: --only ID", NULL);
    check = NULL;
  }
  free(checks);
  return check;
}

/* Runs the check here, and shows what it left; a pass here is not a verdict. */
static int
run_here(struct run *run, const struct check *check)
{
  struct task task = run_task(run, TASK_CHECK);
  struct kit_shared *shared = kit_shared_new();
  struct kit_job job = task.job;
  char folder[300];

  if (!shared) {
    message_print("the shared map cannot be made: %s", strerror(errno));
    return EXIT_ENVIRONMENT;
  }
  snprintf(folder, sizeof(folder), "%s/here", run->folder.path);
  if (mkdir(folder, 0700) != 0 || chdir(folder) != 0) {
    message_print("%s: %s", folder, strerror(errno));
    kit_shared_free(shared);
    return EXIT_ENVIRONMENT;
  }
  job.check = check;
  job.number = 1;
  job.folder = folder;
  job.in_process = true;
  kit_shared_reset(shared);
  child_call(&task, shared, &job);

  struct outcome outcome = {.report = kit_report_of(shared)};
  struct result result = {.check = check, .number = 1, .outcome = &outcome};
  snprintf(result.id, sizeof(result.id), "%.80s", check->id);
  judge_tame(outcome.report);
  result.verdict = (enum verdict)outcome.report->verdict;
  run->out->verbose = true;
  out_result(run->out, run, &result);
  kit_shared_free(shared);
  message_print("ran in the process of the command: this is not a verdict");
  return result.verdict == VERDICT_PASS ? EXIT_INCOMPLETE : EXIT_VIOLATED;
}

int
command_in_process(const struct options *options)
{
  struct options human = *options;
  struct run run;
  int code;
  const struct check *check = the_only(options, "--in-process", &code);

  if (!check)
    return code;
  human.format = FORMAT_HUMAN;
  code = run_begin(&run, &human);
  if (code == EXIT_PASSED)
    code = run_probe(&run);
  if (code == EXIT_PASSED)
    code = run_take_settings(&run);
  if (code == EXIT_PASSED)
    code = run_here(&run, check);
  run_end(&run);
  return code;
}

/* ---- gdb ------------------------------------------------------------------------------------- */

struct words {
  const char **items;
  size_t n, room;
};

static void
add_word(struct words *words, const char *word)
{
  if (words->n + 1 < words->room)
    words->items[words->n++] = word;
}

static char *
joined(const char *a, const char *b, const char *c)
{
  struct dk_text text = DK_TEXT_EMPTY;

  dk_text_printf(&text, "%s%s%s", a, b, c);
  char *copy = strdup(dk_text_str(&text));
  dk_text_done(&text);
  return copy ? copy : (char *)(uintptr_t) "";
}

/* gdb shows the command that it starts, and others can see it: so it must contain no value. */
static const char *
in_environment(const struct given *given, size_t number)
{
  char digits[32];

  snprintf(digits, sizeof(digits), "%zu", number);
  const char *name = joined(SETTINGS_PRIVATE, digits, "");
  setenv(name, given->value, 1);
  return name;
}

/* The words are kept until exec or exit. */
static void
gdb_words(struct words *words, const struct options *options, const struct check *check)
{
  char seed[32];
  static const char *const begin[] = {
    "gdb", "-q", "-ex", "set breakpoint pending on", "-ex", "break kit_run", "-ex", "run", "-ex",
    "eval \"tbreak *%p\", job->check->run", "-ex", "continue", "--args", "/proc/self/exe", "check"};

  for (size_t i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
    add_word(words, begin[i]);
  char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
  self[n > 0 ? n : 0] = '\0';
  words->items[words->n - 2] = joined(n > 0 ? self : options->program, "", "");
  snprintf(seed, sizeof(seed), "%llu", (unsigned long long)options->seed);
  add_word(words, options->arguments[0]);
  add_word(words, "--in-process");
  add_word(words, "--only");
  add_word(words, check->id);
  add_word(words, joined("--seed=", seed, ""));
  for (size_t i = 0; i < options->n_settings; i++) {
    const struct given *given = &options->settings[i];
    add_word(words, "--set-env");
    add_word(words, joined(given->key, "=", given->env ? given->env : in_environment(given, i)));
  }
}

int
command_gdb(const struct options *options)
{
  int code;
  const struct check *check = the_only(options, "--gdb", &code);

  if (!check)
    return code;
  struct words words = {.room = 32 + 2 * options->n_settings};
  words.items = calloc(words.room, sizeof(*words.items));
  if (!words.items) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  gdb_words(&words, options, check);
  execvp("gdb", (char *const *)(uintptr_t)words.items);
  message_problem(&(struct problem){"gdb", "cannot be started", "the debugger gdb on PATH",
                                    strerror(errno), "for another debugger, use --in-process"},
                  NULL);
  free(words.items);
  return EXIT_ENVIRONMENT;
}
