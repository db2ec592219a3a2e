/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict over a child under Valgrind: first the one over any child, then its memory.  A check
 * that has failed by itself keeps that verdict, and its findings are reported beside it. */
#include <stdio.h>
#include <string.h>

#include "runner/engine/judge.h"
#include "runner/memory/findings.h"

enum { STACK_IN_WORDS = 12 };

#define PUT(array, ...) snprintf((array), sizeof(array), __VA_ARGS__)

static const char *
expected_of(const char *clause)
{
  if (strcmp(clause, "MEM-1") == 0)
    return "bytes that are written before they are read or passed to the host";
  if (strcmp(clause, "MEM-3") == 0)
    return "memory that is freed by the time the store is closed and the plugin unloaded";
  return "accesses only to memory that the provider owns at that time";
}

static void
say_finding(struct outcome *outcome, const struct finding *finding, const char *whose,
            const char *object)
{
  struct kit_report *r = outcome->report;
  const struct frame *frame = finding_frame(finding, object);
  struct dk_text text = DK_TEXT_EMPTY;
  struct dk_text place = DK_TEXT_EMPTY;

  if (frame)
    finding_frame_text(&place, frame);
  PUT(r->message, "memcheck: %s%s%.300s%s", finding->what, frame ? ", in " : "",
      dk_text_str(&place), whose);
  PUT(r->clause, "%s", finding_clause(finding));
  PUT(r->expected, "%s", expected_of(r->clause));
  finding_text(&text, finding, STACK_IN_WORDS);
  PUT(r->found, "%s", dk_text_str(&text));
  r->where[0] = '\0';
  if (frame && frame->file[0])
    PUT(r->where, "%.100s:%u", frame->file, frame->line);
  dk_text_done(&text);
  dk_text_done(&place);
}

static void
say_kit(struct outcome *outcome, const struct finding *finding, const char *self)
{
  outcome->verdict = VERDICT_ERROR;
  say_finding(outcome, finding, "; no frame of its stack is in the provider", self);
  outcome->report->clause[0] = '\0';
  PUT(outcome->report->expected, "a kit without memory errors: please report this");
}

static void
say_mapped(struct outcome *outcome)
{
  struct kit_report *r = outcome->report;

  outcome->verdict = VERDICT_MEMORY;
  PUT(r->clause, "MEM-4");
  PUT(r->message, "memcheck: the plugin stays mapped after it was unloaded, though it declares "
                  "unload 1");
  PUT(r->expected, "a file that is unmapped after the last dlclose; or declare unload 0");
  PUT(r->found, "/proc/self/maps still lists it: a thread-local destructor, a dlopen of its own, "
                "RTLD_NODELETE or a unique symbol (g++ without -fno-gnu-unique) keeps it mapped");
}

/* Without the last word in Valgrind's output nothing is known about the memory. */
static void
say_unjudged(struct outcome *outcome, const struct findings *findings)
{
  struct kit_report *r = outcome->report;

  if (findings && findings->whole) {
    outcome->verdict = VERDICT_EARLY_EXIT;
    PUT(r->clause, "ABI-7");
    PUT(r->message, "the process ended while the plugin was unloaded, %s", outcome->ended);
    PUT(r->expected, "a destructor that returns");
    PUT(r->found, "it ended %s", outcome->ended);
    return;
  }
  outcome->verdict = VERDICT_ERROR;
  PUT(r->message, "Valgrind left no complete report of this check");
  PUT(r->expected, "a complete XML file");
  PUT(r->found, findings && findings->there ? "an XML file that is cut off" : "no file");
}

static void
judge_pass(struct outcome *outcome, const char *object, const char *self)
{
  const struct findings *findings = outcome->findings;
  const struct finding *finding;

  if (!findings || !findings->whole || !findings->judged) {
    say_unjudged(outcome, findings);
  } else if ((finding = findings_first(findings, OWNER_PROVIDER)) != NULL) {
    outcome->verdict = VERDICT_MEMORY;
    say_finding(outcome, finding, "", object);
  } else if (findings->mapped) {
    say_mapped(outcome);
  } else if ((finding = findings_first(findings, OWNER_UNKNOWN)) != NULL) {
    outcome->verdict = VERDICT_MEMORY;
    say_finding(outcome, finding, "; it is unknown whose it is: no frame is in the provider", NULL);
  } else if ((finding = findings_first(findings, OWNER_KIT)) != NULL) {
    say_kit(outcome, finding, self);
  }
}

void
judge_memory(struct outcome *outcome, const struct task *task, const char *self)
{
  const char *object = task->job.plugin ? task->job.plugin : self;
  bool cycles = task->job.check && strcmp(task->job.check->id, kit_memory_cycle.id) == 0;

  if (outcome->findings) {
    outcome->findings->unloads = task->job.unload;
    findings_judge(outcome->findings, cycles);
  }
  if (outcome->verdict == VERDICT_PASS)
    judge_pass(outcome, object, self);
  else if (outcome->verdict == VERDICT_FAIL
           && strncmp(outcome->report->clause, "MEM-", 4) == 0)
    outcome->verdict = VERDICT_MEMORY;
}
