/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the end of a child, and what it left in the shared map, into a verdict with words. */
#include "runner/engine/judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* A longer time cannot be a measurement: the probe itself gets less. */
#define LONGEST_TRIP_NS INT64_C(60000000000)

#define TAME(array) ((array)[sizeof(array) - 1] = '\0')

void
judge_tame(struct kit_report *report)
{
  TAME(report->operation);
  TAME(report->command);
  TAME(report->clause);
  TAME(report->message);
  TAME(report->expected);
  TAME(report->found);
  TAME(report->where);
  TAME(report->answer);
  TAME(report->skip_reason);
  for (size_t i = 0; i < KIT_TRACE_LINES; i++)
    TAME(report->trace[i].text);
  for (size_t i = 0; i < KIT_MAX_STORES; i++)
    TAME(report->stores[i]);
  for (size_t i = 0; i < KIT_ANSWERS; i++)
    TAME(report->answers[i].what);
  if (report->n_answers > KIT_ANSWERS)
    report->n_answers = KIT_ANSWERS;
  if (report->n_stores > KIT_MAX_STORES)
    report->n_stores = KIT_MAX_STORES;
  /* The kit writes no other phase; so other code runs. */
  if (report->phase < PHASE_START || report->phase > PHASE_DONE)
    report->phase = PHASE_LOAD;
}

/* The byte may have any value, and only 0 and 1 may be read as a bool. */
static void
tame_bool(bool *value)
{
  unsigned char byte;

  memcpy(&byte, value, 1);
  *value = byte == 1;
}

static void
tame_count(uint32_t *count, size_t most)
{
  if (*count > most)
    *count = (uint32_t)most;
}

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void
tame_lists(struct kit_probe *probe)
{
  tame_count(&probe->n_params, LENGTH(probe->params));
  tame_count(&probe->n_extensions, LENGTH(probe->extensions));
  tame_count(&probe->n_missing, LENGTH(probe->missing));
  for (size_t i = 0; i < LENGTH(probe->params); i++) {
    TAME(probe->params[i].key);
    TAME(probe->params[i].type);
    TAME(probe->params[i].fallback);
    TAME(probe->params[i].help);
  }
  for (size_t i = 0; i < LENGTH(probe->extensions); i++)
    TAME(probe->extensions[i]);
  for (size_t i = 0; i < LENGTH(probe->missing); i++)
    TAME(probe->missing[i]);
}

void
judge_tame_probe(struct kit_probe *probe)
{
  TAME(probe->name);
  TAME(probe->version);
  TAME(probe->built_with);
  TAME(probe->help);
  TAME(probe->open_text);
  TAME(probe->refusal.where);
  TAME(probe->refusal.what);
  TAME(probe->refusal.expected);
  TAME(probe->refusal.found);
  TAME(probe->refusal.next);
  tame_lists(probe);
  tame_bool(&probe->has_enqueue_for_worker);
  tame_bool(&probe->has_interrupt);
  tame_bool(&probe->has_release_fetch);
  tame_bool(&probe->loaded);
  tame_bool(&probe->opened);
  tame_bool(&probe->exists);
  tame_bool(&probe->place_is_well);
  if (probe->round_trip_ns < 0 || probe->round_trip_ns > LONGEST_TRIP_NS)
    probe->round_trip_ns = 0;
}

#define PUT(array, ...) snprintf((array), sizeof(array), __VA_ARGS__)

static void
describe_end(struct outcome *outcome, const siginfo_t *how)
{
  if (how->si_code == 0) {
    PUT(outcome->ended, "unseen: another process took its exit status");
  } else if (how->si_code == CLD_EXITED) {
    PUT(outcome->ended, "with exit %d", how->si_status);
  } else {
    const char *name = sigabbrev_np(how->si_status);
    const char *words = sigdescr_np(how->si_status);
    PUT(outcome->ended, "by SIG%s (%s)", name ? name : "?", words ? words : "unknown");
  }
}

/* "while opening the store, in fetch_work_item" */
static void
describe_place(const struct kit_report *report, char *text, size_t size)
{
  const char *phase = phase_name((enum phase)report->phase);

  snprintf(text, size, "%s%s%s", phase ? phase : "", report->operation[0] ? ", in " : "",
           report->operation);
}

/* A call is blamed only if it has taken half of the time or more: on a busy machine the last of
 * many calls would else be blamed for all calls before it. */
static void
say_timeout(struct outcome *outcome, const struct ending *ending, const char *place)
{
  struct kit_report *r = outcome->report;
  char first[96] = "";

  outcome->verdict = VERDICT_TIMEOUT;
  if (ending->called_ns / 500000 < ending->deadline_ms)
    r->running = 0;
  if (r->running == 1 && r->operation[0])
    PUT(first, "%s did not return, so the check ", r->operation);
  PUT(r->message, "%sdid not end in time: %u operation%s in %" PRId64 " ms, %s; if the store is "
                  "slow, raise --timeout-scale",
      first, r->operations, r->operations == 1 ? "" : "s", ending->deadline_ms, place);
  PUT(r->expected, "an end within %" PRId64 " ms", ending->deadline_ms);
  PUT(r->found, "still running; ended %s", outcome->ended);
}

/* No call hung.  The provider has neither failed nor passed. */
static void
say_slow(struct outcome *outcome, const struct ending *ending, const char *place)
{
  struct kit_report *r = outcome->report;
  int64_t ms = ending->deadline_ms + ending->worked_ms;

  outcome->verdict = VERDICT_UNEXERCISED;
  outcome->slow = true;
  r->running = 0;
  r->clause[0] = '\0';
  PUT(r->message, "the store is too slow for this check: %u operations in %" PRId64 " ms, none of "
                  "which hung, %s; give the check more time with --timeout-scale",
      r->operations, ms, place);
  PUT(r->expected, "an end within %" PRId64 " ms", ms);
  PUT(r->found, "still running; ended %s", outcome->ended);
}

/* A command of the user's, for which the provider is not to blame. */
static void
say_command_timeout(struct outcome *outcome, const struct ending *ending)
{
  struct kit_report *r = outcome->report;

  outcome->verdict = VERDICT_ERROR;
  PUT(r->message, "%s: the command had not ended after %" PRId64 " ms, the time limit of the "
                  "check; it must end once it has had its effect; if it is slow, raise "
                  "--timeout-scale",
      r->command, ending->deadline_ms);
  PUT(r->expected, "a command that ends");
  PUT(r->found, "still running");
}

static void
say_flood(struct outcome *outcome, const char *place)
{
  struct kit_report *r = outcome->report;

  outcome->verdict = VERDICT_HOST_DAMAGE;
  PUT(r->clause, "ABI-6");
  PUT(r->message, "the process wrote output without end, %s", place);
  PUT(r->expected, "nothing on standard output, and little on standard error");
  PUT(r->found, "more than %d MiB; ended %s", OUTPUT_MOST_MIB, outcome->ended);
}

/* Without an exit status there is no pass, and nothing to blame the provider for. */
static void
say_unseen(struct outcome *outcome)
{
  struct kit_report *r = outcome->report;

  outcome->verdict = VERDICT_ERROR;
  PUT(r->message, "the runner did not see how the process ended");
  PUT(r->expected, "an exit status");
  PUT(r->found, "none: SIGCHLD is ignored, or another process took it");
}

/* Nothing of the plugin has run, so it is not to blame. */
static void
say_before_load(struct outcome *outcome, const struct ending *ending)
{
  struct kit_report *r = outcome->report;

  outcome->verdict = VERDICT_ERROR;
  PUT(r->expected, "a process that begins to load the plugin");
  if (ending->timed_out) {
    PUT(r->message, "the process had not begun to load the plugin after %" PRId64 " ms, so the "
                    "plugin was not tested: see what else the machine is doing, and give the check "
                    "more time with --timeout-scale", ending->deadline_ms);
    PUT(r->found, "still running; ended %s", outcome->ended);
    return;
  }
  PUT(r->message, "the process ended %s before it began to load the plugin, so the plugin was not "
                  "tested: check whether memory, processes or descriptors have run out (the "
                  "kernel's log names the processes that it ended), and try again", outcome->ended);
  PUT(r->found, "it ended %s", outcome->ended);
}

/* It had passed, the plugin was closed and nothing of it was left: so another process has ended
 * it. */
static void
say_ended_by_others(struct outcome *outcome)
{
  struct kit_report *r = outcome->report;

  outcome->verdict = VERDICT_ERROR;
  PUT(r->message, "the process was ended %s after the check had passed, by another process or by "
                  "the kernel because memory ran out: try again", outcome->ended);
  PUT(r->expected, "a process that exits by itself");
  PUT(r->found, "it ended %s", outcome->ended);
}

static void
say_crash(struct outcome *outcome, const char *place)
{
  struct kit_report *r = outcome->report;

  outcome->verdict = VERDICT_CRASH;
  PUT(r->clause, "ABI-7");
  PUT(r->message, "the process was ended %s, %s", outcome->ended, place);
  PUT(r->expected, "a process that lives until the check has ended");
  PUT(r->found, "it ended %s", outcome->ended);
}

static void
say_early_exit(struct outcome *outcome, const char *place, bool forged)
{
  struct kit_report *r = outcome->report;

  outcome->verdict = VERDICT_EARLY_EXIT;
  PUT(r->clause, "ABI-7");
  PUT(r->message, "the process ended early, %s, %s%s", outcome->ended, place,
      forged ? "; the verdict in its memory is not the kit's" : "");
  PUT(r->expected, "a process that lives until the check has ended");
  PUT(r->found, "it ended %s", outcome->ended);
}

/* The child's last word about memory may be forged, and hide leaks. */
static void
say_unsealed(struct outcome *outcome)
{
  struct kit_report *r = outcome->report;

  outcome->verdict = VERDICT_HOST_DAMAGE;
  PUT(r->clause, "ABI-5");
  PUT(r->message, "other code than the kit used the kit's socket to the runner, so leaks may be "
                  "hidden");
  PUT(r->expected, "a socket to the runner that only the kit uses");
  PUT(r->found, "another socket in its place, or a request on it that the kit did not make");
}

/* The child reported a pass, or no overlap; its side effects count as well. */
static void
look_beside(struct outcome *outcome, const struct ending *ending)
{
  struct kit_report *r = outcome->report;

  if (outcome->orphans[0]) {
    outcome->verdict = VERDICT_HOST_DAMAGE;
    PUT(r->clause, "ABI-5");
    PUT(r->message, "the check left a process behind");
    PUT(r->expected, "no process of the provider's that still runs after close");
    PUT(r->found, "%s", outcome->orphans);
  } else if (ending->stdout_bytes > 0) {
    outcome->verdict = VERDICT_HOST_DAMAGE;
    PUT(r->clause, "ABI-6");
    PUT(r->message, "something was written to standard output");
    PUT(r->expected, "nothing on descriptor 1, which is the host's");
    PUT(r->found, "%" PRIu64 " bytes, shown as \"output\"", ending->stdout_bytes);
  }
}

/* Under Valgrind a child that is a copy of the zygote has the plugin loaded from the start. */
static bool
has_begun(const struct outcome *outcome, const struct task *task)
{
  return !task->job.plugin || outcome->report->phase != PHASE_START
         || (task->memcheck && !outcome->cold);
}

static bool
ended_by_others(const struct outcome *outcome, const struct task *task,
                const struct ending *ending)
{
  return task->kind == TASK_CHECK && !task->memcheck && outcome->verdict == VERDICT_PASS
         && ending->how.si_code == CLD_KILLED && ending->how.si_status == SIGKILL
         && !outcome->orphans[0];
}

/* Something that the kit itself needs was changed: this becomes the verdict, unless the check has
 * failed already. */
static bool
is_damage(struct outcome *outcome, const char *found)
{
  if (!found[0]
      || (outcome->verdict != VERDICT_PASS && outcome->verdict != VERDICT_ERROR
          && outcome->verdict != VERDICT_UNEXERCISED && outcome->verdict != VERDICT_SKIP))
    return false;
  outcome->verdict = VERDICT_HOST_DAMAGE;
  PUT(outcome->report->clause, "ABI-5");
  return true;
}

/* Without this the next checks would not get their folders. */
static void
look_at_intrusion(struct outcome *outcome, const struct ending *ending)
{
  struct kit_report *r = outcome->report;

  if (!is_damage(outcome, ending->intruded))
    return;
  PUT(r->message, "the check took names outside its folder that later checks need");
  PUT(r->expected, "no file or folder made outside the folder in which the check begins");
  PUT(r->found, "%s", ending->intruded);
}

/* With less memory or fewer descriptors the kit itself would fail. */
static void
look_at_meddling(struct outcome *outcome, const struct ending *ending)
{
  struct kit_report *r = outcome->report;

  if (!is_damage(outcome, ending->meddled))
    return;
  PUT(r->message, "the check changed limits of the process that started it");
  PUT(r->expected, "limits (setrlimit, prlimit) that stay as they were");
  PUT(r->found, "%s", ending->meddled);
}

/* The kit itself reports crash and early exit, of another process of the check. */
static bool
is_a_word(int32_t verdict)
{
  return (verdict >= VERDICT_PASS && verdict <= VERDICT_ERROR) || verdict == VERDICT_CRASH
         || verdict == VERDICT_EARLY_EXIT;
}

/* A verdict was written in the child, by the kit or by other code. */
static bool
has_spoken(const struct kit_report *report)
{
  return is_a_word(report->verdict) && report->word == (KIT_SAID ^ (uint64_t)report->verdict);
}

/* A plugin would profit from a forged pass or skip.  So both need their seal, and no request for a
 * seal may be unanswered; a pass also needs the last phase.  A verdict against the plugin is
 * believed without a seal. */
static bool
is_believed(const struct kit_report *report, const struct seals *seals)
{
  bool passes = report->verdict == VERDICT_PASS;

  if (!passes && report->verdict != VERDICT_SKIP)
    return true;
  return (!passes || report->phase == PHASE_DONE) && report->n_unanswered == 0
         && seals_match(seals, KIT_SEAL_VERDICT, report->seal);
}

/* The verdict that the kit in the child has written; VERDICT_NONE if there is none. */
static enum verdict
spoken(const struct kit_report *report, const struct seals *seals)
{
  return has_spoken(report) && is_believed(report, seals) ? (enum verdict)report->verdict
                                                          : VERDICT_NONE;
}

void
judge_child(struct outcome *outcome, const struct task *task, const struct ending *ending)
{
  char place[128];
  bool exited = ending->how.si_code == CLD_EXITED;

  describe_end(outcome, &ending->how);
  describe_place(outcome->report, place, sizeof(place));
  outcome->verdict = spoken(outcome->report, ending->seals);
  if (!has_begun(outcome, task) && !ending->flooded && ending->how.si_code != 0
      && (ending->timed_out || outcome->verdict == VERDICT_NONE)) {
    say_before_load(outcome, ending);
  } else if (ending->flooded) {
    say_flood(outcome, place);
  } else if (ending->timed_out && outcome->report->command[0]) {
    say_command_timeout(outcome, ending);
  } else if (ending->timed_out && ending->slow) {
    say_slow(outcome, ending, place);
  } else if (ending->timed_out) {
    say_timeout(outcome, ending, place);
  } else if (outcome->verdict == VERDICT_NONE || outcome->verdict == VERDICT_PASS) {
    if (ending->how.si_code == 0)
      say_unseen(outcome);
    else if (ended_by_others(outcome, task, ending))
      say_ended_by_others(outcome);
    else if (!exited)
      say_crash(outcome, place);
    else if (outcome->verdict == VERDICT_PASS && ending->how.si_status == KIT_EXIT_UNSEALED)
      say_unsealed(outcome);
    else if (outcome->verdict == VERDICT_NONE || ending->how.si_status != 0)
      say_early_exit(outcome, place,
                     outcome->verdict == VERDICT_NONE && has_spoken(outcome->report));
    else if (task->kind == TASK_CHECK)
      look_beside(outcome, ending);
  } else if (outcome->verdict == VERDICT_UNEXERCISED && task->kind == TASK_CHECK) {
    look_beside(outcome, ending);
  }
  look_at_meddling(outcome, ending);
  look_at_intrusion(outcome, ending);
}
