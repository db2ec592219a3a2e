/* SPDX-License-Identifier: Apache-2.0 */
/* Each canary is a check that does one wrong thing by itself; no plugin is loaded for it, so that
 * it says the same whatever the plugin under test is. */
#include "runner/canaries.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conformance/kit/check.h"

enum { HANG_MS = 20, OTHERS_MS = 5000 };

const char *const canaries_to_come =
  "a leak, an undefined byte, a race: they come with the memory and race modes";

static void
wrong_assertion(struct dk_check *t)
{
  expect(t, getpid() < 0, "a canary expects what does not hold");
}

static void
early_exit(struct dk_check *t)
{
  (void)t;
  exit(0);
}

static void
hang(struct dk_check *t)
{
  (void)t;
  for (;;)
    pause();
}

static void
crash(struct dk_check *t)
{
  (void)t;
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

static void
write_to_stdout(struct dk_check *t)
{
  static const char line[] = "ok 1 - a canary that prints TAP\n";

  (void)t;
  if (write(STDOUT_FILENO, line, sizeof(line) - 1) < 0)
    _exit(71);
}

struct canary {
  struct check check;
  enum verdict verdict;  /* that it must get */
  int64_t deadline_ms;
};

static const struct canary canaries[] = {
  {{.id = "canary/assertion", .clauses = "", .says = "a wrong assertion fails",
    .run = wrong_assertion}, VERDICT_FAIL, OTHERS_MS},
  {{.id = "canary/early-exit", .clauses = "", .says = "exit(0) is no pass", .run = early_exit},
   VERDICT_EARLY_EXIT, OTHERS_MS},
  {{.id = "canary/hang", .clauses = "", .says = "a hang is ended", .run = hang},
   VERDICT_TIMEOUT, HANG_MS},
  {{.id = "canary/crash", .clauses = "", .says = "a crash is seen", .run = crash},
   VERDICT_CRASH, OTHERS_MS},
  {{.id = "canary/stdout", .clauses = "", .says = "output on descriptor 1 is seen",
    .run = write_to_stdout}, VERDICT_HOST_DAMAGE, OTHERS_MS},
};
enum { N_CANARIES = sizeof(canaries) / sizeof(canaries[0]) };

unsigned
canaries_count(void)
{
  return N_CANARIES;
}

const char *
canaries_name(unsigned number)
{
  return number < N_CANARIES ? canaries[number].check.id : NULL;
}

static bool
start(struct run *run, size_t number)
{
  struct task task = {.kind = TASK_CHECK, .deadline_ms = canaries[number].deadline_ms};

  task.job.check = &canaries[number].check;
  task.job.run = run->options->run_id;
  task.job.number = (uint32_t)number + 1;
  task.job.seed = run->options->seed;
  task.tag = number;
  return engine_start(run->engine, &task);
}

unsigned
canaries_run(struct run *run, char *text, size_t size)
{
  unsigned caught = 0;
  size_t started = 0;

  text[0] = '\0';
  while (started < N_CANARIES || engine_running(run->engine) > 0) {
    while (started < N_CANARIES && engine_has_room(run->engine) && start(run, started))
      started++;
    struct outcome *outcome = engine_wait(run->engine);
    if (!outcome)
      break;
    const struct canary *canary = &canaries[outcome->tag];
    if (outcome->verdict == canary->verdict && !outcome->interrupted)
      caught++;
    else if (!text[0])
      snprintf(text, size, "%s: expected %s, found %s: %s", canary->check.id,
               verdict_name(canary->verdict), verdict_name(outcome->verdict),
               outcome->report->message);
    outcome_free(outcome);
  }
  if (caught < N_CANARIES && !text[0])
    snprintf(text, size, "%u of %u canaries were run", (unsigned)started, (unsigned)N_CANARIES);
  return caught;
}
