/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit certify` and `durakit check`: runs and judges the selected checks, in plan order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/commands/commands.h"
#include "runner/commands/next-operation.h"
#include "runner/memory/findings.h"
#include "runner/report/out.h"
#include "runner/report/overview.h"
#include "runner/report/report-text.h"
#include "runner/report/results.h"
#include "runner/run/cause.h"
#include "runner/run/plan.h"
#include "runner/selftest/canaries.h"
#include "runner/setup/run-setup.h"

/* The tag of a task that has no result. */
static const uint64_t NO_RESULT = UINT64_MAX;

/* The queue of one run.  When several checks run at a time, races are the last of the native runs,
 * since they run alone; a run under Valgrind always follows its native twin.  The first of these is
 * memory/cycle, which runs in each slot: so the others find their code translated. */
struct queue {
  struct run *run;
  size_t *order;
  size_t n, next;
  size_t shown, finished;
  bool one_runs_alone;
  bool cause_is_told;
  unsigned *repeats;       /* left, by result */
};

/* Nothing overlaps under Valgrind, so that nothing has to run alone there. */
static bool
is_race(const struct result *result)
{
  return (result->check->flags & IS_RACE) != 0 && result->mode == MODE_NATIVE;
}

static bool
warms(const struct result *result)
{
  return result->check == &kit_memory_cycle;
}

/* A race, or a check that disturbs a server which other checks would use meanwhile; or the one that
 * each slot needs for itself first. */
static bool
runs_alone(const struct result *result)
{
  return is_race(result) || warms(result) || (result->check->flags & IS_ALONE) != 0;
}

enum turn_of { FIRST_OF_ALL, TOGETHER, ALONE };

static enum turn_of
turn_of(const struct queue *queue, const struct result *result)
{
  if (warms(result))
    return FIRST_OF_ALL;
  return queue->run->options->jobs > 1 && runs_alone(result) ? ALONE : TOGETHER;
}

static void
add_to_order(struct queue *queue, enum mode mode)
{
  for (enum turn_of turn = FIRST_OF_ALL; turn <= ALONE; turn++) {
    for (size_t i = 0; i < queue->run->n_results; i++) {
      const struct result *result = &queue->run->results[i];
      if (result->mode == mode && turn_of(queue, result) == turn)
        queue->order[queue->n++] = i;
    }
  }
}

static bool
queue_begin(struct queue *queue, struct run *run)
{
  *queue = (struct queue){.run = run};
  queue->order = calloc(run->n_results + 1, sizeof(*queue->order));
  queue->repeats = calloc(run->n_results + 1, sizeof(*queue->repeats));
  if (!queue->order || !queue->repeats)
    return false;
  add_to_order(queue, MODE_NATIVE);
  add_to_order(queue, MODE_MEMCHECK);
  for (size_t i = 0; i < run->n_results; i++)
    queue->repeats[i] = run->options->repeat - 1;
  return true;
}

static void
settle_without_run(struct result *result, enum verdict verdict, const char *reason)
{
  result->done = true;
  result->verdict = verdict;
  snprintf(result->reason, sizeof(result->reason), "%s", reason);
}

static int64_t
at_least(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

/* Once more in each free slot, only for what comes after it there: without it that takes longer. */
static void
warm_other_slots(const struct run *run, const struct task *first)
{
  struct task task = *first;

  task.tag = NO_RESULT;
  task.job.number = (uint32_t)run->n_results;
  do
    task.job.number++;
  while (engine_has_room(run->engine) && engine_start(run->engine, &task));
}

static bool
start_check(struct queue *queue, size_t number)
{
  struct run *run = queue->run;
  struct result *result = &run->results[number];
  struct task task = run_task(run, TASK_CHECK);

  task.job.check = result->check;
  task.job.number = result->number;
  task.memcheck = result->mode == MODE_MEMCHECK;
  task.deadline_ms = task.memcheck ? run_memcheck_deadline(run)
                                   : run_deadline(run, is_race(result));
  if (!task.memcheck && !(result->check->flags & IS_SLOW))
    task.more_ms = run_more(run);
  if (result->check->flags & IS_SLOW)
    task.deadline_ms = at_least(task.deadline_ms, run_slow_deadline(run, result));
  task.job.patience_ms = run_patience(run, result);
  task.job.unload = task.memcheck && run->probe->unload == 1;
  /* The second run of an undefined byte finds its origin, too. */
  task.origins = task.memcheck && result->verdict == VERDICT_MEMORY
                 && strcmp(result->outcome->report->clause, "MEM-1") == 0;
  task.warms = task.memcheck && warms(result) && !result->outcome;
  task.tag = number;
  if (!engine_start(run->engine, &task))
    return false;
  queue->one_runs_alone = runs_alone(result);
  if (task.warms)
    warm_other_slots(run, &task);
  return true;
}

/* The first checks have all failed alike, and this one would fail the same way. */
static void
spare(struct result *result, const struct result *first)
{
  char reason[sizeof(result->reason)];

  snprintf(reason, sizeof(reason), "not run, because %d checks ended as %s did and none has passed",
           CAUSE_ALIKE, first->id);
  settle_without_run(result, VERDICT_NOT_RUN, reason);
  result->spared_by = first;
}

/* A check that failed natively as another one did would fail the same way under Valgrind, where the
 * other one reports the memory findings. */
static void
spare_twin(struct result *result, const struct result *first)
{
  char reason[sizeof(result->reason)];

  snprintf(reason, sizeof(reason), "not run under Valgrind, because natively it failed as %s did",
           first->id);
  settle_without_run(result, VERDICT_NOT_RUN, reason);
  result->spared_by = first;
  result->twin_failed = true;
}

/* The result of the check of which this is a variation, if it has failed; NULL: it has not. */
static const struct result *
failed_without_variation(const struct run *run, const struct result *result)
{
  for (size_t i = 0; result->check->variation && i < run->n_results; i++) {
    const struct result *other = &run->results[i];
    if (other->check->run == result->check->run && !other->check->variation
        && other->mode == result->mode)
      return run_is_violation(other->verdict) ? other : NULL;
  }
  return NULL;
}

/* A check that fails as it is written says nothing new in another way. */
static void
spare_variation(struct result *result, const struct result *plain)
{
  char reason[sizeof(result->reason)];

  snprintf(reason, sizeof(reason), "not run, because %s failed", plain->id);
  settle_without_run(result, VERDICT_NOT_RUN, reason);
  result->spared_by = plain;
  result->twin_failed = true;
}

/* A check that hung natively would hang many times as long under Valgrind, and find nothing new. */
static void
start_next(struct queue *queue)
{
  size_t number = queue->order[queue->next++];
  struct result *result = &queue->run->results[number];
  const struct result *plain = failed_without_variation(queue->run, result);
  const struct result *cause = cause_of(queue->run, result);
  const struct result *hung = overview_hung_twin(queue->run, result);
  const struct result *failed = overview_failed_twin(queue->run, result);
  char reason[256];

  if (result->mode == MODE_MEMCHECK && !queue->run->memcheck) {
    settle_without_run(result, VERDICT_SKIP, "the provider declares that it cannot run under "
                                             "Valgrind");
    results_add(queue->run->file, queue->run, result);
    queue->finished++;
    return;
  }
  if (!cause && !hung && !failed && !plain && start_check(queue, number))
    return;
  if (hung)
    snprintf(reason, sizeof(reason), "not run under Valgrind, because %s hung natively",
             hung->id);
  else
    snprintf(reason, sizeof(reason), "no process could be started: %.200s",
             engine_reason(queue->run->engine));
  if (cause)
    spare(result, cause);
  else if (plain)
    spare_variation(result, plain);
  else if (failed && !hung)
    spare_twin(result, failed);
  else
    settle_without_run(result, hung ? VERDICT_TIMEOUT : VERDICT_ERROR, reason);
  results_add(queue->run->file, queue->run, result);
  queue->finished++;
}

static bool
may_start(const struct queue *queue)
{
  const struct run *run = queue->run;

  if (queue->next >= queue->n || engine_interrupted(run->engine)
      || !engine_has_room(run->engine))
    return false;
  const struct result *next = &run->results[queue->order[queue->next]];
  /* A check that still runs might show that it does not always end so. */
  bool alone = queue->one_runs_alone || runs_alone(next) || cause_of(run, next);
  return !alone || engine_running(run->engine) == 0;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static bool
deserves_rerun(const struct run *run, const struct result *result)
{
  bool failed = run_is_violation(result->verdict) || result->verdict == VERDICT_MEMORY;

  return failed && result->verdict != VERDICT_TIMEOUT && !result->repeated
         && result->reruns < run->options->classify && !engine_interrupted(run->engine);
}

/* The same findings, which now name the origins. */
static void
take_origins(struct result *result, struct outcome *outcome)
{
  struct findings *origins = outcome->findings;

  if (result->verdict != VERDICT_MEMORY || outcome->verdict != VERDICT_MEMORY
      || strcmp(outcome->report->clause, "MEM-1") != 0)
    return;
  outcome->findings = result->outcome->findings;
  result->outcome->findings = origins;
}

/* The first outcome of a check decides; later ones only show whether it is always so. */
static void
take_rerun(struct run *run, struct result *result, struct outcome *outcome)
{
  if (!outcome->interrupted) {
    result->reruns++;
    result->failed_reruns += outcome->verdict != VERDICT_PASS ? 1u : 0u;
    take_origins(result, outcome);
  }
  run_note_leftovers(run, outcome);
  outcome_free(outcome);
}

static void
take_first(struct run *run, struct result *result, struct outcome *outcome)
{
  outcome_free(result->outcome);
  result->outcome = outcome;
  result->verdict = outcome->interrupted ? VERDICT_NOT_RUN : outcome->verdict;
  if (result->mode == MODE_MEMCHECK)
    run_note_memcheck_time(run, outcome);
  else
    run_note_time(run, is_race(result), outcome);
  run_note_suppressed(run, outcome->findings);
  if (outcome->interrupted)
    snprintf(result->reason, sizeof(result->reason), "interrupted");
  if (result->verdict == VERDICT_SKIP)
    snprintf(result->reason, sizeof(result->reason), "%s", outcome->report->skip_reason);
  if (result->verdict == VERDICT_SKIP && !result->reason[0]) {
    result->verdict = VERDICT_ERROR;
    snprintf(result->reason, sizeof(result->reason), "skipped without a reason");
  }
  if (run->options->next)
    next_operation_judge(run, result);
  result->repeated = !cause_note(run, result);
  result->repeated |= cause_note_answer(run, result);
  run_note_leftovers(run, outcome);
}

/* Some reruns passed.  A race is seen by chance: there one failure is a failure. */
static void
classify(struct run *run, struct result *result)
{
  if (result->failed_reruns == result->reruns)
    return;
  cause_forget(run, result);
  if (!is_race(result))
    result->verdict = VERDICT_FLAKY;
}

/* Once, before the first check that is not run because of it. */
static void
tell_cause(struct queue *queue, const struct result *result)
{
  struct dk_text text = DK_TEXT_EMPTY;

  if (!result->spared_by || result->twin_failed || queue->cause_is_told)
    return;
  queue->cause_is_told = true;
  cause_text(&text, result->spared_by);
  char *masked = out_masked_text(queue->run->out, queue->run, &text);
  out_comment(queue->run->out, masked ? masked : "out of memory");
  free(masked);
  dk_text_done(&text);
}

/* What a race has seen, for an author who runs this one. */
static void
tell_answers(const struct run *run, const struct result *result)
{
  struct dk_text text = DK_TEXT_EMPTY;
  bool passed = result->outcome && result->verdict == VERDICT_PASS;

  for (unsigned i = 0; passed && i < result->outcome->report->n_answers; i++) {
    dk_text_puts(&text, "  ");
    report_answers(&text, result, i);
    out_comment_text(run->out, &text);
    dk_text_reset(&text);
  }
  dk_text_done(&text);
}

static void
show_ready(struct queue *queue)
{
  struct run *run = queue->run;

  for (; queue->shown < run->n_results && run->results[queue->shown].done; queue->shown++) {
    tell_cause(queue, &run->results[queue->shown]);
    out_result(run->out, run, &run->results[queue->shown]);
    if (run->options->command == COMMAND_CHECK)
      tell_answers(run, &run->results[queue->shown]);
  }
  out_progress(run->out, run, queue->finished);
}

static void
take_outcome(struct queue *queue, struct outcome *outcome)
{
  struct run *run = queue->run;
  size_t number = (size_t)outcome->tag;

  if (outcome->tag == NO_RESULT) {
    run_note_leftovers(run, outcome);
    outcome_free(outcome);
    return;
  }
  struct result *result = &run->results[number];
  bool is_rerun = result->outcome != NULL && result->verdict != VERDICT_PASS;

  queue->one_runs_alone = false;
  if (is_rerun)
    take_rerun(run, result, outcome);
  else
    take_first(run, result, outcome);
  bool again = deserves_rerun(run, result);
  if (result->verdict == VERDICT_PASS && queue->repeats[number] > 0
      && !engine_interrupted(run->engine)) {
    queue->repeats[number]--;
    again = true;
  }
  if (again && start_check(queue, number))
    return;
  classify(run, result);
  result->done = true;
  queue->finished++;
  results_add(run->file, run, result);
}

/* Gives each check without a result the reason for it. */
static void
settle_the_rest(struct queue *queue)
{
  struct run *run = queue->run;
  int number = engine_interrupted(run->engine);
  char reason[64] = "its result was lost";

  if (number)
    snprintf(reason, sizeof(reason), "interrupted by SIG%s", sigabbrev_np(number));
  for (size_t i = 0; i < run->n_results; i++) {
    if (run->results[i].done)
      continue;
    settle_without_run(&run->results[i], VERDICT_NOT_RUN, reason);
    results_add(run->file, run, &run->results[i]);
  }
  show_ready(queue);
}

static int
run_queue(struct run *run)
{
  struct queue queue;

  if (!queue_begin(&queue, run)) {
    free(queue.order);
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  out_progress(run->out, run, 0);
  for (;;) {
    while (may_start(&queue))
      start_next(&queue);
    struct outcome *outcome = engine_wait(run->engine);
    if (outcome)
      take_outcome(&queue, outcome);
    show_ready(&queue);
    if (!outcome && (queue.next >= queue.n || engine_interrupted(run->engine)))
      break;
  }
  settle_the_rest(&queue);
  free(queue.order);
  free(queue.repeats);
  return EXIT_PASSED;
}

/* ---- the whole run --------------------------------------------------------------------------- */

/* Valgrind takes fifty times as long: variations run there only if they were asked for.  A check
 * that would be skipped is skipped once, and not in its variations. */
static bool
is_varied(const struct run *run, const struct check *check, enum mode mode)
{
  const struct options *options = run->options;

  if (options->n_only > 0 || options->effort == EFFORT_DEEP)
    return true;
  return mode == MODE_NATIVE && plan_is_offered(check, run->probe, run->store_key != NULL);
}

static void
add_results(struct run *run, const struct check **checks, size_t n, enum mode mode)
{
  for (size_t i = 0; i < n; i++) {
    struct result *result = &run->results[run->n_results];
    if (mode == MODE_NATIVE && checks[i] == &kit_memory_cycle)
      continue;
    if (checks[i]->variation && !is_varied(run, checks[i], mode))
      continue;
    *result = (struct result){.check = checks[i], .mode = mode};
    result->number = (uint32_t)++run->n_results;
    snprintf(result->id, sizeof(result->id), "%.80s%s", checks[i]->id,
             mode == MODE_MEMCHECK ? "@memcheck" : "");
  }
}

/* One skip for all, so that readers of TAP see it, too. */
static void
add_skipped_memcheck(struct run *run, const struct check **checks, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (checks[i] == &kit_memory_cycle)
      add_results(run, &checks[i], 1, MODE_MEMCHECK);
  }
}

static int
make_results(struct run *run, const struct check **checks, size_t n)
{
  run->results = calloc(2 * n, sizeof(*run->results));
  if (!run->results) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  if (run->native)
    add_results(run, checks, n, MODE_NATIVE);
  if (run->memcheck)
    add_results(run, checks, n, MODE_MEMCHECK);
  else if (run->no_memcheck[0] && !run->options->no_memcheck
           && run->probe->runtime & DK_RUNTIME_NO_MEMCHECK)
    add_skipped_memcheck(run, checks, n);
  if (run->n_results > 0)
    return EXIT_PASSED;
  return run_refuse(run, EXIT_INCOMPLETE,
                    &(struct problem){kit_memory_cycle.id,
                                      "runs only under Valgrind, so that nothing is selected",
                                      "--memcheck", NULL, NULL});
}

/* The canaries, in words for the header; EXIT_INCOMPLETE if one is missed. */
static int
hear_canaries(struct run *run, struct dk_text *words)
{
  char missed[600];
  unsigned count = canaries_count(run);
  unsigned caught = canaries_run(run, missed, sizeof(missed));

  if (caught < count && !missed[0])
    return run_no_child(run);
  dk_text_printf(words, "%u of %u caught", caught, count);
  for (unsigned i = 0; i < count; i++)
    dk_text_printf(words, "%s%s", i ? ", " : ": ", canaries_name(i) + strlen("canary/"));
  if (dk_text_failed(words)) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  if (caught == count)
    return EXIT_PASSED;
  if (engine_interrupted(run->engine))
    return run_no_child(run);
  return run_refuse(run, EXIT_INCOMPLETE,
                    &(struct problem){"canary", "a check that must not pass got a wrong verdict, "
                                      "so that no verdict of this run can be trusted",
                                      NULL, missed, "durakit selftest shows more"});
}

static int
open_results(struct run *run)
{
  if (!run->options->out)
    return EXIT_PASSED;
  run->file = results_new(run->options->out);
  if (run->file)
    return EXIT_PASSED;
  if (errno == EEXIST)
    return run_refuse(run, EXIT_USAGE,
                      &(struct problem){run->options->out, "the folder has other files already",
                                        "a new folder, or one with results of an earlier run",
                                        "results.jsonl or checks that no run of durakit wrote",
                                        "give another --out"});
  if (errno == EBUSY)
    return run_refuse(run, EXIT_USAGE,
                      &(struct problem){run->options->out, "another run writes its results there",
                                        "a folder for each run", NULL, "give another --out"});
  return run_refuse(run, EXIT_ENVIRONMENT,
                    &(struct problem){run->options->out, "results cannot be written there",
                                      "a folder for results.jsonl", strerror(errno), NULL});
}

static void
tell_leftovers(const struct run *run)
{
  struct dk_text text = DK_TEXT_EMPTY;

  if (run->n_leftovers == 0)
    return;
  dk_text_printf(&text, "%zu store%s could not be removed; see %s/journal; durakit clean PLUGIN "
                        "with the same settings tries again",
                 run->n_leftovers, run->n_leftovers == 1 ? "" : "s", run->folder.path);
  out_comment_text(run->out, &text);
  dk_text_done(&text);
}

/* What was suppressed, and what was not tested at all. */
static void
tell_memcheck(const struct run *run)
{
  struct dk_text text = DK_TEXT_EMPTY;

  for (size_t i = 0; i < run->n_suppressed; i++) {
    report_suppression(&text, &run->suppressed[i]);
    out_comment_text(run->out, &text);
    dk_text_reset(&text);
  }
  if (run->memcheck && engine_cold_reason(run->engine)[0]) {
    dk_text_printf(&text, "memcheck: Valgrind was started anew for each check, because the plugin "
                          "cannot be copied: %s", engine_cold_reason(run->engine));
    out_comment_text(run->out, &text);
    dk_text_reset(&text);
  }
  if (run->no_memcheck[0]) {
    dk_text_printf(&text, "memcheck was %s", run->no_memcheck);
    out_comment_text(run->out, &text);
  }
  dk_text_done(&text);
}

static void
tell_overview(const struct run *run)
{
  struct dk_text text = DK_TEXT_EMPTY;

  overview_text(&text, run);
  if (text.length > 0)
    out_comment_text(run->out, &text);
  dk_text_done(&text);
}

static int
certify_conclude(struct run *run)
{
  struct totals totals = run_totals(run, false);

  run_remove_unsure(run);
  tell_leftovers(run);
  tell_memcheck(run);
  tell_overview(run);
  if (run->options->next && run->out->format == FORMAT_HUMAN)
    next_operation_print(run);
  results_footer(run->file, run, &totals);
  if (engine_interrupted(run->engine))
    message_print("interrupted: %u of %zu checks were not run", totals.counts[VERDICT_NOT_RUN],
                  run->n_results);
  bool written = out_end(run->out, &totals);
  if (!written || !results_are_written(run->file)) {
    message_print("the results could not be written: %s",
                  written ? run->options->out : "standard output");
    return EXIT_ENVIRONMENT;
  }
  return totals.exit_code;
}

static int
certify(struct run *run, const struct check **checks, size_t n)
{
  struct dk_text canaries = DK_TEXT_EMPTY;

  out_part(run->out, "still before the first check");
  int code = run_probe(run);

  if (code == EXIT_PASSED)
    code = run_take_settings(run);
  if (code == EXIT_PASSED)
    code = run_open(run);
  if (code == EXIT_PASSED)
    code = run_take_memcheck(run);
  if (code == EXIT_PASSED)
    code = hear_canaries(run, &canaries);
  if (code == EXIT_PASSED)
    code = make_results(run, checks, n);
  if (code == EXIT_PASSED)
    code = open_results(run);
  if (code == EXIT_PASSED) {
    if (run->file)
      results_header(run->file, run, dk_text_str(&canaries));
    out_begin(run->out, run, dk_text_str(&canaries));
    if (run->options->next && run->out->format == FORMAT_TAP)
      next_operation_print(run); /* a pipe is read from the top; a terminal shows the end */
    code = run_queue(run);
  }
  dk_text_done(&canaries);
  return code == EXIT_PASSED ? certify_conclude(run) : code;
}

int
command_certify(const struct options *options)
{
  struct run run;
  size_t n;
  int code;
  const struct check **checks = plan_select(options, &n, &code);

  if (!checks)
    return code;
  code = run_begin(&run, options);
  if (code == EXIT_PASSED)
    code = certify(&run, checks, n);
  run_end(&run);
  free(checks);
  return code;
}
