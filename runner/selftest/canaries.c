/* SPDX-License-Identifier: Apache-2.0 */
/* Each canary is a check that does one wrong thing by itself.  No plugin is loaded for it, so that
 * its result does not depend on the plugin under test.  The canaries of memory make their errors in
 * this file, which then counts as the plugin. */
#include "runner/selftest/canaries.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/kit/check.h"
#include "runner/report/out.h"
#include "runner/system/clock.h"

enum { HANG_MS = 20, OTHERS_MS = 5000, MEMCHECK_MS = 60000 };

const char *const canaries_to_come =
  "a race: it comes with the race mode";

static void
wrong_assertion(struct dk_check *t)
{
  expect(t, getpid() < 0, "a canary expects something false");
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

/* ---- memory: natively all of them would pass ------------------------------------------------- */

#define HERE __attribute__((noinline))

/* A block about which the compiler knows nothing. */
HERE static volatile char *
block(struct dk_check *t, size_t size)
{
  volatile char *volatile made = malloc(size);

  if (!made)
    expect(t, made, "there is memory for a canary");
  return made;
}

HERE static void
leak(struct dk_check *t)
{
  volatile char *lost = block(t, 16);

  *lost = 1;
}

HERE static void
undefined_byte(struct dk_check *t)
{
  volatile char *byte = block(t, 1);
  bool differs = *byte - *byte != 0; /* never; but the byte was never written */

  expect(t, !differs, "a byte is equal to itself");
  free((void *)(uintptr_t)byte);
}

HERE static void
write_past_the_end(struct dk_check *t)
{
  enum { SIZE = 20 }; /* the allocator gives 24 */
  volatile char *bytes = block(t, SIZE);

  bytes[SIZE] = 1;
  free((void *)(uintptr_t)bytes);
}

struct canary {
  struct check check;
  enum verdict verdict;  /* the one that it must get */
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
  {{.id = "canary/leak", .clauses = "MEM-3", .says = "a block that is lost is found", .run = leak},
   VERDICT_MEMORY, MEMCHECK_MS},
  {{.id = "canary/undefined-byte", .clauses = "MEM-1",
    .says = "a byte that was never written is found", .run = undefined_byte},
   VERDICT_MEMORY, MEMCHECK_MS},
  {{.id = "canary/write-past-the-end", .clauses = "MEM-2",
    .says = "a write beyond a block is found", .run = write_past_the_end},
   VERDICT_MEMORY, MEMCHECK_MS},
};
enum { N_CANARIES = sizeof(canaries) / sizeof(canaries[0]) };

/* Under Valgrind; these come last. */
static bool
is_of_memory(unsigned number)
{
  return canaries[number].verdict == VERDICT_MEMORY;
}

unsigned
canaries_count(const struct run *run)
{
  unsigned native = 0;

  while (native < N_CANARIES && !is_of_memory(native))
    native++;
  return run->memcheck ? N_CANARIES : native;
}

const char *
canaries_name(unsigned number)
{
  return number < N_CANARIES ? canaries[number].check.id : NULL;
}

const struct check *
canaries_find(const char *id)
{
  for (size_t i = 0; i < N_CANARIES; i++) {
    if (strcmp(canaries[i].check.id, id) == 0)
      return &canaries[i].check;
  }
  return NULL;
}

static bool
start_canary(struct run *run, size_t number)
{
  struct task task = {.kind = TASK_CHECK, .deadline_ms = canaries[number].deadline_ms};

  task.job.check = &canaries[number].check;
  task.job.run = run->options->run_id;
  task.job.number = (uint32_t)number + 1;
  task.job.seed = run->options->seed;
  task.memcheck = is_of_memory((unsigned)number);
  task.tag = number;
  return engine_start(run->engine, &task);
}

unsigned
canaries_run(struct run *run, char *text, size_t size)
{
  unsigned count = canaries_count(run);
  unsigned caught = 0, n_ended = 0;
  size_t started = 0;
  int reason = 0;

  text[0] = '\0';
  out_part(run->out, "canaries");
  while (started < count || engine_running(run->engine) > 0) {
    while (started < count && engine_has_room(run->engine) && start_canary(run, started))
      started++;
    reason = started < count ? errno : 0;
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
    n_ended++;
    progress_tell(&run->out->progress, n_ended, count, (double)n_ended / count, clock_ns());
  }
  progress_clear(&run->out->progress);
  errno = reason;
  return caught;
}
