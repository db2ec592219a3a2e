/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict over an ended child: only the word with an exit of 0, in time and without damage, is
 * a pass. */
#include "runner/engine/judge.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

/* What a child has left; each case changes one thing. */
struct left {
  int32_t verdict;    /* said, if `said` */
  bool said;
  int code, status;   /* of waitid */
  bool timed_out, flooded;
  uint64_t stdout_bytes;
  const char *orphans, *command, *meddled, *plugin;
  bool memcheck, cold;
  enum phase phase;
  uint64_t seal;
  int32_t n_unanswered;
};

enum { SEAL = 17 }; /* that the child was given */

static const struct left well = {.verdict = VERDICT_PASS, .said = true, .code = CLD_EXITED,
                                 .phase = PHASE_DONE, .seal = SEAL};

static void
judged(struct left left, enum verdict expected, const char *clause, const char *name)
{
  struct task task = {.kind = TASK_CHECK, .job.plugin = left.plugin, .memcheck = left.memcheck};
  struct outcome outcome = {.cold = left.cold, .report = calloc(1, sizeof(*outcome.report))};
  struct seals seals = {.fd = -1, .numbers = {[KIT_SEAL_VERDICT] = SEAL, [KIT_SEAL_MEMORY] = 18}};
  struct ending ending = {
    .seals = &seals, .timed_out = left.timed_out, .flooded = left.flooded, .deadline_ms = 5000,
    .stdout_bytes = left.stdout_bytes};

  if (!outcome.report)
    BAIL_OUT("out of memory");
  ending.how.si_code = left.code;
  ending.how.si_status = left.status;
  outcome.report->verdict = left.verdict;
  outcome.report->phase = (int32_t)left.phase;
  outcome.report->seal = left.seal;
  outcome.report->n_unanswered = left.n_unanswered;
  outcome.report->word = left.said ? KIT_SAID ^ (uint64_t)left.verdict : 0;
  if (left.orphans)
    memcpy(outcome.orphans, left.orphans, strlen(left.orphans) + 1);
  if (left.command)
    memcpy(outcome.report->command, left.command, strlen(left.command) + 1);
  if (left.meddled)
    memcpy(ending.meddled, left.meddled, strlen(left.meddled) + 1);
  judge_tame(outcome.report);
  judge_child(&outcome, &task, &ending);
  is(verdict_name(outcome.verdict), verdict_name(expected), "%s", name);
  is(outcome.report->clause, clause, "%s: the clause", name);
  free(outcome.report);
}

#define WITH(...) ((struct left){__VA_ARGS__})

/* What ends before the plugin is loaded, or after all of it has ended, is not the plugin's. */
static void
judges_whose_it_is(void)
{
  struct left left = {.plugin = "/x.so", .phase = PHASE_START, .code = CLD_KILLED,
                      .status = SIGKILL};
  judged(left, VERDICT_ERROR, "", "killed before it loads");
  left.phase = PHASE_LOAD;
  judged(left, VERDICT_CRASH, "ABI-7", "killed while it loads");
  left.phase = (enum phase)77;
  judged(left, VERDICT_CRASH, "ABI-7", "killed in a phase that does not exist");
  left.phase = PHASE_START;
  left.code = CLD_EXITED;
  left.status = 70;
  judged(left, VERDICT_ERROR, "", "an exit before it loads");
  left.timed_out = true;
  judged(left, VERDICT_ERROR, "", "no end in time, before it loads");
  left.phase = PHASE_LOAD;
  judged(left, VERDICT_TIMEOUT, "", "no end in time, while it loads");
  left = (struct left){.plugin = "/x.so", .phase = PHASE_START, .code = CLD_KILLED,
                       .status = SIGSEGV, .memcheck = true};
  judged(left, VERDICT_CRASH, "ABI-7", "a signal in a copy that has the plugin");
  left.cold = true;
  judged(left, VERDICT_ERROR, "", "a signal in a cold one, before it loads");

  left = well;
  left.plugin = "/x.so";
  left.code = CLD_KILLED;
  left.status = SIGKILL;
  judged(left, VERDICT_ERROR, "", "killed after everything had ended");
  left.orphans = "a process";
  judged(left, VERDICT_CRASH, "ABI-7", "killed after all but a process of the plugin's had ended");
  left.orphans = NULL;
  left.seal = SEAL + 1;
  judged(left, VERDICT_CRASH, "ABI-7", "killed after a word without its seal");
}

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
  left.said = false;
  left.command = "--store-crash";
  judged(left, VERDICT_ERROR, "", "no word in time, while a command of the user's ran");
  left = well;
  left.stdout_bytes = 5;
  judged(left, VERDICT_HOST_DAMAGE, "ABI-6", "the word, and something on standard output");
  left = well;
  left.orphans = NULL;
  left.flooded = true;
  left.timed_out = false;
  left.code = CLD_KILLED;
  judged(left, VERDICT_HOST_DAMAGE, "ABI-6", "output without end");
  left.said = false;
  judged(left, VERDICT_HOST_DAMAGE, "ABI-6", "output without end, and no word");
  left = well;
  left.code = 0;
  judged(left, VERDICT_ERROR, "", "the word, and an end that was not seen");
  left.verdict = VERDICT_FAIL;
  judged(left, VERDICT_FAIL, "", "a reported failure, and an end that was not seen");
  left = well;
  left.orphans = "process 17 (helper)";
  judged(left, VERDICT_HOST_DAMAGE, "ABI-5", "the word, and a process left behind");
  left = well;
  left.orphans = "process 17 (helper)";
  left.verdict = VERDICT_UNEXERCISED;
  judged(left, VERDICT_HOST_DAMAGE, "ABI-5", "no overlap, and a process left behind");
  left = well;
  left.meddled = "RLIMIT_AS was set to 4096";
  judged(left, VERDICT_HOST_DAMAGE, "ABI-5", "the word, and a lower limit of the runner");
  left.verdict = VERDICT_ERROR;
  judged(left, VERDICT_HOST_DAMAGE, "ABI-5", "reported trouble, and a lower limit of the runner");
  left.verdict = VERDICT_FAIL;
  judged(left, VERDICT_FAIL, "", "a reported failure, and a lower limit of the runner");
}

/* The words of a time-out: which call, if any, is to blame. */
static void
blames(int64_t called_ms, bool blamed, const char *name)
{
  struct task task = {.kind = TASK_CHECK};
  struct outcome outcome = {.report = calloc(1, sizeof(*outcome.report))};
  struct ending ending = {
    .timed_out = true, .deadline_ms = 5000, .called_ns = called_ms * 1000000};

  if (!outcome.report)
    BAIL_OUT("out of memory");
  outcome.report->running = 1;
  memcpy(outcome.report->operation, "read_history", sizeof("read_history"));
  judge_child(&outcome, &task, &ending);
  is(verdict_name(outcome.verdict), "timeout", "%s: a time-out", name);
  ok((strstr(outcome.report->message, "read_history did not return") != NULL) == blamed,
     "%s: the call is %sblamed", name, blamed ? "" : "not ");
  ok((outcome.report->running == 1) == blamed, "%s: it counts as hanging only if blamed", name);
  free(outcome.report);
}

/* A store that is slow has shown no fault. */
static void
blames_nothing_slow(void)
{
  struct task task = {.kind = TASK_CHECK};
  struct outcome outcome = {.report = calloc(1, sizeof(*outcome.report))};
  struct ending ending = {
    .timed_out = true, .slow = true, .deadline_ms = 5000, .worked_ms = 50000, .called_ns = 9};

  if (!outcome.report)
    BAIL_OUT("out of memory");
  outcome.report->running = 1;
  outcome.report->operations = 969;
  memcpy(outcome.report->clause, "ACK-1", sizeof("ACK-1"));
  judge_child(&outcome, &task, &ending);
  is(verdict_name(outcome.verdict), "unexercised", "slow: neither passed nor failed");
  ok(outcome.slow, "slow: it differs from a race without overlaps");
  is(outcome.report->clause, "", "slow: no clause is blamed");
  ok(outcome.report->running == 0, "slow: no call, either");
  ok(strstr(outcome.report->message, "too slow for this check: 969 operations in 55000 ms") != NULL
       && strstr(outcome.report->message, "--timeout-scale") != NULL,
     "slow: the message says so, and what helps");
  free(outcome.report);
}

static void
blames_what_took_long(void)
{
  blames(4900, true, "a call that took nearly all of the time");
  blames(2500, true, "a call that took half of it");
  blames(40, false, "the last of many");
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
         "a reported failure");
  judged(WITH(.verdict = VERDICT_SKIP, .said = true, .code = CLD_EXITED, .seal = SEAL),
         VERDICT_SKIP, "", "a reported skip");
  judged(WITH(.verdict = VERDICT_FAIL, .said = true, .code = CLD_KILLED, .status = SIGABRT),
         VERDICT_FAIL, "", "a failure, reported before a signal");
}

/* The word alone is a constant, which a plugin can write as well. */
static void
believes_no_forged_word(void)
{
  struct left left = well;

  left.seal = 0;
  judged(left, VERDICT_EARLY_EXIT, "ABI-7", "a pass without a seal");
  left.seal = SEAL + 1;
  judged(left, VERDICT_EARLY_EXIT, "ABI-7", "a pass with the seal of another word");
  left = well;
  left.phase = PHASE_RUN;
  judged(left, VERDICT_EARLY_EXIT, "ABI-7", "a pass before the last phase");
  left = well;
  left.n_unanswered = 1;
  judged(left, VERDICT_EARLY_EXIT, "ABI-7", "a pass after a question without an answer");
  left = well;
  left.status = KIT_EXIT_UNSEALED;
  judged(left, VERDICT_HOST_DAMAGE, "ABI-5", "a last word about memory without a seal");
  judged(WITH(.verdict = VERDICT_SKIP, .said = true, .code = CLD_EXITED), VERDICT_EARLY_EXIT,
         "ABI-7", "a skip without a seal");
}

/* Asks as a child does. */
static uint64_t
asked(struct seals *seals, int end, unsigned char use)
{
  uint64_t number = 0;

  if (send(end, &use, 1, MSG_NOSIGNAL) != 1)
    return 0;
  seals_answer(seals);
  return recv(end, &number, sizeof(number), MSG_DONTWAIT) == (ssize_t)sizeof(number) ? number : 0;
}

static void
draws_seals(void)
{
  struct seals seals = {.fd = -1};
  int end = -1;

  if (!seals_begin(&seals, &end))
    BAIL_OUT("no socket");
  ok(!seals_match(&seals, KIT_SEAL_VERDICT, 0), "nothing was asked for: nothing matches");
  uint64_t first = asked(&seals, end, KIT_SEAL_VERDICT);
  uint64_t second = asked(&seals, end, KIT_SEAL_MEMORY);
  ok(first != 0 && second != 0 && first != second, "each use has a number of its own");
  ok(seals_match(&seals, KIT_SEAL_VERDICT, first), "which matches for its use");
  ok(!seals_match(&seals, KIT_SEAL_VERDICT, second), "and for no other");
  asked(&seals, end, KIT_SEAL_VERDICT);
  ok(!seals_match(&seals, KIT_SEAL_VERDICT, first), "if it is asked for twice it no longer counts");
  ok(asked(&seals, end, KIT_SEALS) == 0, "there is none for an unknown use");
  seals_end(&seals);
  ok(seals_match(&seals, KIT_SEAL_MEMORY, second), "the numbers outlive the child");
  close(end);
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
  ok(report->phase == PHASE_LOAD, "an existing phase, in which a call may run");
  free(report);
}

static void
tames_a_probe(int filling)
{
  struct kit_probe *probe = malloc(sizeof(*probe));

  if (!probe)
    BAIL_OUT("out of memory");
  memset(probe, filling, sizeof(*probe));
  judge_tame_probe(probe);
  cmp_ok(probe->n_params, "<=", 32, "no more parameters than there are");
  cmp_ok(probe->n_extensions, "<=", 32, "no more extensions");
  cmp_ok(probe->n_missing, "<=", 16, "no more operations that are missing");
  cmp_ok(strlen(probe->name), "<", sizeof(probe->name), "a name ends");
  cmp_ok(strlen(probe->help), "<", sizeof(probe->help), "a help ends");
  cmp_ok(strlen(probe->open_text), "<", sizeof(probe->open_text), "a text ends");
  cmp_ok(strlen(probe->refusal.next), "<", sizeof(probe->refusal.next), "a refusal ends");
  for (size_t i = 0; i < 32; i++) {
    if (strlen(probe->params[i].help) >= sizeof(probe->params[i].help)
        || strlen(probe->params[i].key) >= sizeof(probe->params[i].key)
        || strlen(probe->extensions[i]) >= sizeof(probe->extensions[i]))
      BAIL_OUT("row %zu has no end", i);
  }
  ok(probe->round_trip_ns >= 0 && probe->round_trip_ns <= INT64_C(60000000000),
     "a time that can be computed with");
  unsigned char loaded;
  memcpy(&loaded, &probe->loaded, 1);
  cmp_ok(loaded, "<=", 1, "a yes or no");
  free(probe);
}

int
main(void)
{
  plan(NO_PLAN);
  judges();
  judges_whose_it_is();
  blames_what_took_long();
  blames_nothing_slow();
  believes_no_other_word();
  believes_no_forged_word();
  draws_seals();
  tames();
  tames_a_probe(0xff);
  tames_a_probe(0x7f);
  return done_testing();
}
