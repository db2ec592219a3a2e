/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict over an ended child: only the word with an exit of 0, in time and without damage, is
 * a pass. */
#include "runner/judge.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "conformance/tap/tap.h"

/* What a child has left; each case changes one thing. */
struct left {
  int32_t verdict;    /* said, if `said` */
  bool said;
  int code, status;   /* of waitid */
  bool timed_out;
  uint64_t stdout_bytes;
  const char *orphans;
};

static const struct left well = {.verdict = VERDICT_PASS, .said = true, .code = CLD_EXITED};

static void
judged(struct left left, enum verdict expected, const char *clause, const char *name)
{
  struct task task = {.kind = TASK_CHECK};
  struct outcome outcome = {.report = calloc(1, sizeof(*outcome.report))};
  struct ending ending = {
    .timed_out = left.timed_out, .deadline_ms = 5000, .stdout_bytes = left.stdout_bytes};

  if (!outcome.report)
    BAIL_OUT("out of memory");
  ending.how.si_code = left.code;
  ending.how.si_status = left.status;
  outcome.report->verdict = left.verdict;
  outcome.report->word = left.said ? KIT_SAID ^ (uint64_t)left.verdict : 0;
  if (left.orphans)
    memcpy(outcome.orphans, left.orphans, strlen(left.orphans) + 1);
  judge(&outcome, &task, &ending);
  is(verdict_name(outcome.verdict), verdict_name(expected), "%s", name);
  is(outcome.report->clause, clause, "%s: the clause", name);
  free(outcome.report);
}

#define WITH(...) ((struct left){__VA_ARGS__})

static void
judges(void)
{
  struct left left = well;
  judged(left, VERDICT_PASS, "", "the word, and an exit of 0");

  left = well;
  left.said = false;
  judged(left, VERDICT_EARLY_EXIT, "ABI-7", "exit(0) without the word");
  left = well;
  left.status = 3;
  judged(left, VERDICT_EARLY_EXIT, "ABI-7", "the word, and another exit");
  left = well;
  left.code = CLD_KILLED;
  left.status = SIGSEGV;
  judged(left, VERDICT_CRASH, "ABI-7", "a signal after the word");
  left.said = false;
  judged(left, VERDICT_CRASH, "ABI-7", "a signal");
  left = well;
  left.timed_out = true;
  judged(left, VERDICT_TIMEOUT, "", "the word, but too late");
  left = well;
  left.stdout_bytes = 5;
  judged(left, VERDICT_HOST_DAMAGE, "ABI-6", "the word, and something on standard output");
  left = well;
  left.orphans = "process 17 (helper)";
  judged(left, VERDICT_HOST_DAMAGE, "ABI-5", "the word, and a process left behind");
}

static void
believes_no_other_word(void)
{
  static const enum verdict never[] = {VERDICT_NONE, VERDICT_TIMEOUT, VERDICT_FLAKY,
                                       VERDICT_NOT_RUN, (enum verdict)99, (enum verdict)-1};

  for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
    judged(WITH(.verdict = (int32_t)never[i], .said = true, .code = CLD_EXITED),
           VERDICT_EARLY_EXIT, "ABI-7", "a word that no child may say");
  judged(WITH(.verdict = VERDICT_FAIL, .said = true, .code = CLD_EXITED), VERDICT_FAIL, "",
         "a failure, said");
  judged(WITH(.verdict = VERDICT_SKIP, .said = true, .code = CLD_EXITED), VERDICT_SKIP, "",
         "a skip, said");
  judged(WITH(.verdict = VERDICT_FAIL, .said = true, .code = CLD_KILLED, .status = SIGABRT),
         VERDICT_FAIL, "", "a failure, said before a signal");
}

static void
tames(void)
{
  struct kit_report *report = malloc(sizeof(*report));

  if (!report)
    BAIL_OUT("out of memory");
  memset(report, 'x', sizeof(*report));
  judge_tame(report);
  cmp_ok(strlen(report->message), "<", sizeof(report->message), "a message ends");
  cmp_ok(strlen(report->trace[KIT_TRACE_LINES - 1].text), "<", KIT_TRACE_WIDTH, "a trace ends");
  cmp_ok(report->n_stores, "<=", KIT_MAX_STORES, "no more stores than there are");
  ok(report->phase == PHASE_START, "a phase that there is");
  free(report);
}

int
main(void)
{
  plan(NO_PLAN);
  judges();
  believes_no_other_word();
  tames();
  return done_testing();
}
