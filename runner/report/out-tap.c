/* SPDX-License-Identifier: Apache-2.0 */
/* The TAP view: one top-level point for each check, a YAML block with each that did not pass. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/contract/contract.h"
#include "runner/memory/findings.h"
#include "runner/report/out.h"
#include "runner/report/overview.h"
#include "runner/report/report-text.h"
#include "runner/report/repro-command.h"

enum { FINDINGS_SHOWN = 10, TRACE_SHOWN = 40, OUTPUT_SHOWN = 2000 };

static void
comment(struct out *out, const struct run *run, struct dk_text *text)
{
  char *masked = out_masked_text(out, run, text);

  tap_comment(out->tap, masked ? masked : "out of memory");
  free(masked);
  dk_text_reset(text);
}

void
out_tap_begin(struct out *out, const struct run *run, const char *canaries)
{
  struct dk_text text = DK_TEXT_EMPTY;

  out->tap = tap_new(out->file, tap_version_from_environment());
  out->lost = !out->tap;
  if (!out->tap)
    return;
  tap_plan(out->tap, (unsigned)run->n_results);
  report_not_tested(&text, run);
  if (text.length > 0)
    comment(out, run, &text);
  report_kit(&text);
  comment(out, run, &text);
  report_provider(&text, run);
  comment(out, run, &text);
  report_clauses(&text);
  comment(out, run, &text);
  report_settings(&text, run);
  comment(out, run, &text);
  report_server(&text, run);
  if (text.length > 0)
    comment(out, run, &text);
  report_run(&text, run);
  comment(out, run, &text);
  dk_text_printf(&text, "canaries: %s", canaries);
  comment(out, run, &text);
  dk_text_done(&text);
}

static void
yaml(struct out *out, const struct run *run, const char *key, const char *value)
{
  if (!value || !*value)
    return;
  char *masked = out_masked(out, run, value);
  tap_yaml_string(out->tap, key, masked ? masked : "out of memory");
  free(masked);
}

/* Writes the text, if it is not empty.  Empties it. */
static void
yaml_text(struct out *out, const struct run *run, const char *key, struct dk_text *text)
{
  if (text->length == 0 && !dk_text_failed(text))
    return;
  char *masked = out_masked_text(out, run, text);
  tap_yaml_string(out->tap, key, masked ? masked : "out of memory");
  free(masked);
  dk_text_reset(text);
}

/* Empties the text. */
static void
yaml_item(struct out *out, const struct run *run, struct dk_text *text)
{
  char *masked = out_masked_text(out, run, text);

  tap_yaml_item(out->tap, masked ? masked : "out of memory");
  free(masked);
  dk_text_reset(text);
}

static void
yaml_clause(struct out *out, const struct dk_clause *clause)
{
  if (!clause)
    return;
  tap_yaml_string(out->tap, "clause", clause->id);
  tap_yaml_string(out->tap, "level", dk_clause_level_name(clause->level));
  tap_yaml_string(out->tap, "requirement", clause->text);
  tap_yaml_string(out->tap, "why", clause->why);
}

static void
yaml_answers(struct out *out, const struct run *run, const struct result *result)
{
  const struct kit_report *report = result->outcome->report;
  struct dk_text text = DK_TEXT_EMPTY;

  if (report->n_answers == 0)
    return;
  tap_yaml_list_begin(out->tap, "answers");
  for (unsigned i = 0; i < report->n_answers; i++) {
    report_answers(&text, result, i);
    yaml_item(out, run, &text);
  }
  tap_yaml_list_end(out->tap);
  dk_text_done(&text);
}

static void
yaml_trace(struct out *out, const struct run *run, const struct result *result)
{
  const struct kit_report *report = result->outcome->report;
  const struct kit_trace_line *line;
  unsigned left_out;
  struct dk_text text = DK_TEXT_EMPTY;

  if (report->n_trace == 0)
    return;
  tap_yaml_list_begin(out->tap, "trace");
  for (unsigned n = 0; (line = out_trace(report, TRACE_SHOWN, n, &left_out)) != NULL; n++) {
    dk_text_printf(&text, "%6" PRId64 " ms  %s", line->at, line->text);
    yaml_item(out, run, &text);
  }
  tap_yaml_list_end(out->tap);
  report_more_trace(&text, run, result, left_out);
  yaml_text(out, run, "trace_more", &text);
  dk_text_done(&text);
}

static void
yaml_output(struct out *out, const struct run *run, const struct outcome *outcome)
{
  struct dk_text masked = DK_TEXT_EMPTY;
  struct dk_text shown = DK_TEXT_EMPTY;

  if (outcome->output_size == 0)
    return;
  secrets_mask(&run->secrets, &masked, outcome->output, outcome->output_size);
  size_t n = masked.length < OUTPUT_SHOWN ? masked.length : OUTPUT_SHOWN;
  dk_text_add(&shown, dk_text_str(&masked), n);
  bool lost = dk_text_failed(&masked) || dk_text_failed(&shown);
  out->lost = out->lost || lost;
  if (lost)
    tap_yaml_string(out->tap, "output", "out of memory");
  else
    tap_yaml_bytes(out->tap, "output", dk_text_str(&shown), shown.length);
  if (outcome->output_total > n)
    tap_yaml_number(out->tap, "output_bytes", (int64_t)outcome->output_total);
  dk_text_done(&masked);
  dk_text_done(&shown);
}

/* Each finding on a line of its own; the first finding is also in `found`. */
static void
yaml_findings(struct out *out, const struct run *run, const struct result *result)
{
  const struct findings *findings = result->outcome->findings;
  struct dk_text text = DK_TEXT_EMPTY;

  if (!findings || !findings_any(findings))
    return;
  tap_yaml_list_begin(out->tap, "findings");
  for (unsigned n = 0; report_finding(&text, findings, n, FINDINGS_SHOWN); n++)
    yaml_item(out, run, &text);
  tap_yaml_list_end(out->tap);
  report_xml(&text, run, result);
  yaml_text(out, run, "xml", &text);
  dk_text_done(&text);
}

static void
yaml_outcome(struct out *out, const struct run *run, const struct result *result)
{
  const struct kit_report *report = result->outcome->report;
  struct dk_text text = DK_TEXT_EMPTY;

  yaml(out, run, "message", report->message);
  yaml(out, run, "expected", report->expected);
  yaml(out, run, "found", report->found);
  yaml(out, run, "where", report->where);
  tap_yaml_string(out->tap, "phase", phase_name((enum phase)report->phase));
  report_region(&text, report);
  yaml_text(out, run, "run", &text);
  yaml_findings(out, run, result);
  yaml_answers(out, run, result);
  yaml_trace(out, run, result);
  report_reruns(&text, result);
  yaml_text(out, run, "reruns", &text);
  yaml_output(out, run, result->outcome);
  report_leftovers(&text, run, result->outcome);
  yaml_text(out, run, "left_over", &text);
  dk_text_done(&text);
}

static void
yaml_block(struct out *out, const struct run *run, const struct result *result)
{
  const struct dk_clause *clause = run_result_clause(result);
  struct dk_text text = DK_TEXT_EMPTY;

  tap_yaml_begin(out->tap);
  tap_yaml_string(out->tap, "verdict", verdict_name(result->verdict));
  tap_yaml_string(out->tap, "check", result->check->says);
  yaml_clause(out, clause);
  yaml(out, run, "reason", result->reason);
  if (result->outcome)
    yaml_outcome(out, run, result);
  yaml(out, run, "usual_cause", report_usually(result));
  report_seed(&text, run);
  yaml_text(out, run, "seed", &text);
  repro_of(&text, run, result);
  yaml_text(out, run, "repro", &text);
  report_next(&text, run, result);
  yaml_text(out, run, "next", &text);
  tap_yaml_end(out->tap);
  dk_text_done(&text);
}

/* A check that was not run has only a verdict and a reason. */
static void
yaml_spared(struct out *out, const struct result *result)
{
  tap_yaml_begin(out->tap);
  tap_yaml_string(out->tap, "verdict", verdict_name(result->verdict));
  tap_yaml_string(out->tap, "reason", result->reason);
  tap_yaml_end(out->tap);
}

/* It failed as an earlier point did, and refers to that; only clause and command are its own. */
static void
yaml_told(struct out *out, const struct run *run, const struct result *result,
          const struct result *told)
{
  const struct dk_clause *clause = run_result_clause(result);
  struct dk_text text = DK_TEXT_EMPTY;

  tap_yaml_begin(out->tap);
  tap_yaml_string(out->tap, "verdict", verdict_name(result->verdict));
  if (clause)
    tap_yaml_string(out->tap, "clause", clause->id);
  tap_yaml_string(out->tap, "same_as", told->id);
  yaml(out, run, "message", result->outcome->report->answer);
  repro_of(&text, run, result);
  yaml_text(out, run, "repro", &text);
  tap_yaml_end(out->tap);
  dk_text_done(&text);
}

void
out_tap_result(struct out *out, const struct run *run, const struct result *result)
{
  bool skipped = result->verdict == VERDICT_SKIP;
  bool passed = skipped || result->verdict == VERDICT_PASS;

  if (!out->tap)
    return;
  /* Crashes and the like are reported in full, even if alike: their traces may differ. */
  const struct result *told =
    result->shared && !out->verbose ? overview_same(run, result) : NULL;
  if (run_result_is_advice(result))
    tap_point(out->tap, passed, result->id, TAP_TODO, "SHOULD: reported, and not needed");
  else
    tap_point(out->tap, passed, result->id, skipped ? TAP_SKIP : TAP_NONE, result->reason);
  if (result->spared_by)
    yaml_spared(out, result);
  else if (told)
    yaml_told(out, run, result, told);
  else if (!passed)
    yaml_block(out, run, result);
}

void
out_tap_end(struct out *out, const struct totals *totals)
{
  struct dk_text text = DK_TEXT_EMPTY;

  if (!out->tap)
    return;
  dk_text_printf(&text, "RESULT=%s ", totals->word);
  out_totals_text(&text, totals);
  tap_comment(out->tap, dk_text_failed(&text) ? "out of memory" : dk_text_str(&text));
  out->lost = out->lost || dk_text_failed(&text) || tap_done(out->tap) < 0;
  out->tap = NULL;
  dk_text_done(&text);
}
