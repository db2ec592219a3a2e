/* SPDX-License-Identifier: Apache-2.0 */
/* The human view: each failure with its report; one last line. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/contract/contract.h"
#include "runner/memory/findings.h"
#include "runner/report/out.h"
#include "runner/report/overview.h"
#include "runner/report/report-text.h"
#include "runner/report/repro-command.h"

enum { FINDINGS_SHOWN = 5, TRACE_SHOWN = 14, OUTPUT_SHOWN = 1000, WIDTH = 100 };

enum paint { BOLD, RED, GREEN, YELLOW, PLAIN };

static const char *
painted(const struct out *out, enum paint paint)
{
  static const char *const codes[] = {"\033[1m", "\033[31m", "\033[32m", "\033[33m", "\033[0m"};

  return out->color ? codes[paint] : "";
}

/* Masks and escapes the text; false: there is nothing to show. */
static bool
show(struct dk_text *ret_shown, struct out *out, const struct run *run, const char *text)
{
  char *masked = text && *text ? out_masked(out, run, text) : NULL;

  if (masked)
    dk_text_add_escaped(ret_shown, masked, strlen(masked), DK_ESCAPE_VISIBLE);
  out->lost = out->lost || dk_text_failed(ret_shown);
  bool shows = masked && !dk_text_failed(ret_shown);
  free(masked);
  if (!shows)
    dk_text_done(ret_shown);
  return shows;
}

/* Prints the text masked, escaped, and broken at blanks so that it stays beside its label. */
static void
print_wrapped(struct out *out, const struct run *run, const char *label, const char *text)
{
  struct dk_text shown = DK_TEXT_EMPTY;

  if (!show(&shown, out, run, text))
    return;
  const char *rest = dk_text_str(&shown);
  const size_t room = (out->width > 40 && out->width < WIDTH ? out->width : WIDTH) - 14;
  while (*rest) {
    size_t n = strlen(rest);
    if (n > room) {
      for (n = room; n > 0 && rest[n] != ' '; n--)
        continue;
      n = n > 0 ? n : strcspn(rest, " ");
    }
    fprintf(out->file, "    %-10s%.*s\n", label, (int)n, rest);
    rest += n + strspn(rest + n, " ");
    label = "";
  }
  dk_text_done(&shown);
}

static void
print_line(struct out *out, const struct run *run, const char *label, const char *text)
{
  struct dk_text shown = DK_TEXT_EMPTY;

  if (!show(&shown, out, run, text))
    return;
  fprintf(out->file, "    %-10s%s\n", label, dk_text_str(&shown));
  dk_text_done(&shown);
}

/* Both empty the text.  An incomplete text is not shown, and the output counts as lost. */
static void
print_text(struct out *out, const struct run *run, const char *label, struct dk_text *text)
{
  out->lost = out->lost || dk_text_failed(text);
  print_line(out, run, label, dk_text_failed(text) ? "out of memory" : dk_text_str(text));
  dk_text_reset(text);
}

static void
wrap_text_of(struct out *out, const struct run *run, const char *label, struct dk_text *text)
{
  out->lost = out->lost || dk_text_failed(text);
  print_wrapped(out, run, label, dk_text_failed(text) ? "out of memory" : dk_text_str(text));
  dk_text_reset(text);
}

static void
clauses(struct dk_text *text, const struct run *run)
{
  (void)run;
  report_clauses(text);
}

void
out_human_begin(struct out *out, const struct run *run, const char *canaries)
{
  struct dk_text text = DK_TEXT_EMPTY;
  void (*const facts[])(struct dk_text *, const struct run *) = {report_provider, clauses,
                                                                 report_settings, report_server,
                                                                 report_run};

  report_not_tested(&text, run);
  dk_text_puts(&text, text.length > 0 ? "\n" : "");
  report_kit(&text);
  out->lost = out->lost || dk_text_failed(&text);
  fprintf(out->file, "%s\n", dk_text_str(&text));
  for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
    dk_text_reset(&text);
    facts[i](&text, run);
    struct dk_text shown = DK_TEXT_EMPTY;
    out->lost = out->lost || dk_text_failed(&text);
    if (!dk_text_failed(&text) && show(&shown, out, run, dk_text_str(&text)))
      fprintf(out->file, "%s\n", dk_text_str(&shown));
    dk_text_done(&shown);
  }
  fprintf(out->file, "canaries: %s\n\n", canaries);
  dk_text_done(&text);
}

static void
print_trace(struct out *out, const struct run *run, const struct result *result)
{
  const struct kit_report *report = result->outcome->report;
  const struct kit_trace_line *line;
  struct dk_text text = DK_TEXT_EMPTY;
  unsigned left_out;

  for (unsigned n = 0; (line = out_trace(report, TRACE_SHOWN, n, &left_out)) != NULL; n++) {
    dk_text_printf(&text, "%6" PRId64 " ms  %s", line->at, line->text);
    print_text(out, run, n == 0 ? "trace" : "", &text);
  }
  report_more_trace(&text, run, result, left_out);
  print_text(out, run, "", &text);
  dk_text_done(&text);
}

static void
print_output(struct out *out, const struct run *run, const struct outcome *outcome)
{
  char *text = strndup(outcome->output ? outcome->output : "",
                       outcome->output_size < OUTPUT_SHOWN ? outcome->output_size : OUTPUT_SHOWN);

  out->lost = out->lost || !text;
  if (text)
    print_wrapped(out, run, "output", text);
  free(text);
}

static void
print_findings(struct out *out, const struct run *run, const struct result *result)
{
  const struct findings *findings = result->outcome->findings;
  struct dk_text text = DK_TEXT_EMPTY;

  for (unsigned n = 0; findings && report_finding(&text, findings, n, FINDINGS_SHOWN); n++) {
    wrap_text_of(out, run, n == 0 ? "findings" : "", &text);
  }
  report_xml(&text, run, result);
  print_text(out, run, "xml", &text);
  dk_text_done(&text);
}

static void
print_outcome(struct out *out, const struct run *run, const struct result *result)
{
  const struct kit_report *report = result->outcome->report;
  struct dk_text text = DK_TEXT_EMPTY;

  print_wrapped(out, run, "what", report->message);
  print_wrapped(out, run, "expected", report->expected);
  print_wrapped(out, run, "found", report->found);
  print_line(out, run, "where", report->where);
  print_findings(out, run, result);
  print_trace(out, run, result);
  print_output(out, run, result->outcome);
  report_reruns(&text, result);
  print_text(out, run, "reruns", &text);
  report_leftovers(&text, run, result->outcome);
  wrap_text_of(out, run, "left over", &text);
  dk_text_done(&text);
}

/* Prints the rest of the line. */
static void
print_brief(struct out *out, const struct run *run, const struct dk_text *text)
{
  struct dk_text shown = DK_TEXT_EMPTY;
  char *masked = out_masked_text(out, run, text);

  if (masked)
    dk_text_add_escaped(&shown, masked, strlen(masked), DK_ESCAPE_VISIBLE);
  out->lost = out->lost || dk_text_failed(&shown);
  fprintf(out->file, "%s%s\n", shown.length > 0 ? ": " : "", dk_text_str(&shown));
  dk_text_done(&shown);
  free(masked);
}

static void
print_failure(struct out *out, const struct run *run, const struct result *result)
{
  const struct dk_clause *clause = run_result_clause(result);
  bool violation = run_is_violation(result->verdict) && !run_result_is_advice(result);
  const struct result *told = out->verbose ? NULL : overview_same(run, result);
  bool brief = told || (result->verdict == VERDICT_TIMEOUT && !result->outcome);
  struct dk_text text = DK_TEXT_EMPTY;

  fprintf(out->file, "%s%s %s%s  %s %s  %s", painted(out, violation ? RED : YELLOW),
          violation ? "✗" : "?", result->id, painted(out, PLAIN),
          clause ? clause->id : "", clause ? dk_clause_level_name(clause->level) : "",
          verdict_name(result->verdict));
  if (told && result->shared)
    dk_text_printf(&text, "as %s: %s", told->id, result->outcome->report->answer);
  else if (told)
    dk_text_printf(&text, "as in %s", told->id);
  else if (brief)
    dk_text_puts(&text, result->reason);
  print_brief(out, run, &text);
  if (brief) {
    dk_text_done(&text);
    return;
  }
  print_wrapped(out, run, "check", result->check->says);
  print_wrapped(out, run, "must hold", clause ? clause->text : NULL);
  print_wrapped(out, run, "reason", result->reason);
  if (result->outcome)
    print_outcome(out, run, result);
  if (violation)
    print_wrapped(out, run, "usually", report_usually(result));
  repro_of(&text, run, result);
  print_text(out, run, "repro", &text);
  report_next(&text, run, result);
  print_text(out, run, "next", &text);
  fputc('\n', out->file);
  dk_text_done(&text);
}

/* Checks that are skipped for one reason are reported in one line, even if other checks lie between
 * them. */
void
out_human_skipped(struct out *out)
{
  for (size_t i = 0; i < out->n_skipped; i++) {
    const struct result *first = out->skipped[i].first;

    fprintf(out->file, "- %s", first->id);
    if (out->skipped[i].n > 1)
      fprintf(out->file, " and %zu more", out->skipped[i].n - 1);
    fprintf(out->file, "  %s%s\n", first->spared_by ? "" : "skipped: ", first->reason);
  }
  out->n_skipped = 0;
}

static void
note_skipped(struct out *out, const struct result *result)
{
  size_t i = 0;

  while (i < out->n_skipped && strcmp(out->skipped[i].first->reason, result->reason) != 0)
    i++;
  if (out->verbose || i == sizeof(out->skipped) / sizeof(out->skipped[0])) {
    out_human_skipped(out);
    i = 0;
  }
  if (i == out->n_skipped)
    out->skipped[out->n_skipped++] = (struct skipped){.first = result};
  out->skipped[i].n++;
}

void
out_human_result(struct out *out, const struct run *run, const struct result *result)
{
  if (result->spared_by) {
    note_skipped(out, result);
  } else if (result->verdict == VERDICT_SKIP) {
    /* With --next the author knows what is not written yet; the last line counts it. */
    if (!run->options->next || out->verbose)
      note_skipped(out, result);
  } else if (result->verdict != VERDICT_PASS) {
    out_human_skipped(out);
    print_failure(out, run, result);
  } else if (out->verbose) {
    out_human_skipped(out);
    fprintf(out->file, "%s✓%s %s\n", painted(out, GREEN), painted(out, PLAIN), result->id);
  }
}

void
out_human_end(struct out *out, const struct totals *totals)
{
  struct dk_text text = DK_TEXT_EMPTY;

  out_human_skipped(out);
  out_totals_text(&text, totals);
  out->lost = out->lost || dk_text_failed(&text);
  fprintf(out->file, "%sRESULT=%s%s %s\n",
          painted(out, totals->exit_code == EXIT_PASSED ? GREEN : RED), totals->word,
          painted(out, PLAIN), dk_text_str(&text));
  dk_text_done(&text);
}
