/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences about a run, for all views. */
#include "runner/report/report-text.h"

#include <inttypes.h>
#include <string.h>

#include "config.h"
#include "conformance/contract/contract.h"
#include "runner/memory/findings.h"
#include "runner/report/repro-command.h"
#include "runner/run/plan.h"

const char report_kit_version[] = PACKAGE_VERSION;

/* Written out, because the numbers have C suffixes ("0u") that a reader does not want. */
_Static_assert(DK_ABI_MAJOR == 2 && DK_ABI_MINOR == 4 && DK_ABI_DRAFT == 1, "report_abi says it");
const char report_abi[] = "2.4 draft 1";

void
report_manifest(struct dk_text *text)
{
  dk_text_printf(text, "0x%016" PRIx64, plan_manifest());
}

void
report_seed(struct dk_text *text, const struct run *run)
{
  dk_text_printf(text, "0x%016" PRIx64, run->options->seed);
}

void
report_kit(struct dk_text *text)
{
  dk_text_printf(text, "durakit %s, ABI %s, contract %s, manifest ", report_kit_version, report_abi,
                 DK_CONTRACT_VERSION);
  report_manifest(text);
}

void
report_provider(struct dk_text *text, const struct run *run)
{
  dk_text_printf(text, "provider: ");
  if (run->described)
    dk_text_printf(text, "%s %s, ", run->probe->name, run->probe->version);
  dk_text_printf(text, "%s", run->plugin);
  if (run->trouble[0])
    dk_text_printf(text, "; %s", run->trouble);
}

void
report_clauses(struct dk_text *text)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);
  size_t judged = 0;

  for (size_t i = 0; i < n; i++)
    judged += clauses[i].planned_issue == 0 ? 1 : 0;
  dk_text_printf(text, "clauses: %zu of %zu are judged by this kit", judged, n);
  if (judged < n)
    dk_text_puts(text, "; the other clauses are planned");
}

void
report_settings(struct dk_text *text, const struct run *run)
{
  struct dk_text shown = DK_TEXT_EMPTY;

  dk_text_puts(text, "settings:");
  for (size_t i = 0; i < run->options->n_settings; i++) {
    const struct given *given = &run->options->settings[i];
    dk_text_printf(text, " %s=", given->key);
    dk_text_reset(&shown);
    secrets_mask(&run->secrets, &shown, given->value, strlen(given->value));
    if (run_is_secret(run, given))
      dk_text_puts(text, "***");
    else
      repro_quote(text, dk_text_str(&shown)); /* quotes would hide a secret from secrets_mask */
    if (dk_text_failed(&shown))
      dk_text_fail(text);
  }
  dk_text_done(&shown);
  if (run->options->n_settings == 0)
    dk_text_puts(text, " none");
}

const char *
report_mode(const struct run *run)
{
  if (run->memcheck)
    return run->native ? "native and memcheck" : "memcheck";
  return "native";
}

void
report_not_tested(struct dk_text *text, const struct run *run)
{
  static const char not_tested[] = "not tested: ";
  size_t length = strlen(not_tested);

  if (strncmp(run->no_memcheck, not_tested, length) == 0)
    dk_text_printf(text, "memory was not checked: %s", run->no_memcheck + length);
}

void
report_run(struct dk_text *text, const struct run *run)
{
  dk_text_puts(text, "seed ");
  report_seed(text, run);
  dk_text_printf(text, ", run %s, mode %s", run->options->run_id, report_mode(run));
  if (run->options->profile != PROFILE_CORE)
    dk_text_printf(text, ", profile %s", options_profile_name(run->options->profile));
  dk_text_printf(text, ", time-out %" PRId64 " ms a check", run->deadline_ms);
  if (run->probe->round_trip_ns > 0)
    dk_text_printf(text, " (one enqueue took %.3f ms)", (double)run->probe->round_trip_ns / 1e6);
}

void
report_region(struct dk_text *text, const struct kit_report *report)
{
  if (report->pass > 0)
    dk_text_printf(text, "%d, %s the calls of region %d of %u", report->pass,
                   report->pass % 2 ? "with" : "without", (report->pass + 1) / 2,
                   report->regions);
}

const char *
report_kind_of_answers(const struct result *result, unsigned number)
{
  const struct kit_report *report = result->outcome->report;

  if (report->last_answers == number + 1 && result->verdict != VERDICT_PASS)
    return "forbidden";
  return report->answers[number].is_interesting ? "interesting" : "allowed";
}

void
report_answers(struct dk_text *text, const struct result *result, unsigned number)
{
  const struct kit_answers *answers = &result->outcome->report->answers[number];

  dk_text_printf(text, "%s: %u (%u at once), %s", answers->what, answers->times, answers->at_once,
                 report_kind_of_answers(result, number));
}

void
report_reruns(struct dk_text *text, const struct result *result)
{
  if (result->reruns > 0)
    dk_text_printf(text, "failed again in %u of %u", result->failed_reruns, result->reruns);
}

/* --in-process, which --gdb is made of, is native. */
void
report_next(struct dk_text *text, const struct run *run, const struct result *result)
{
  if (result->verdict != VERDICT_TIMEOUT || !result->outcome)
    return;
  repro_command(text, run, result->check->id, false);
  dk_text_puts(text, " --gdb; in gdb type continue, then ^C and bt to see where it hangs");
}

const char *
report_usually(const struct result *result)
{
  const struct dk_clause *clause = run_result_clause(result);
  bool is_known = run_is_violation(result->verdict) && result->verdict != VERDICT_TIMEOUT;

  return clause && is_known ? clause->breaks : NULL;
}

void
report_leftovers(struct dk_text *text, const struct run *run, const struct outcome *outcome)
{
  struct kit_job job = run_task(run, TASK_CHECK).job;

  for (size_t i = 0; i < outcome->n_leftovers; i++) {
    char name[2048];
    kit_store_name(&job, outcome->leftovers[i], name, sizeof(name));
    dk_text_printf(text, "%s%s", i ? ", " : "", name);
  }
}

void
report_more_trace(struct dk_text *text, const struct run *run, const struct result *result,
                  unsigned left_out)
{
  if (left_out == 0)
    return;
  dk_text_printf(text, "%u earlier lines", left_out);
  if (run->options->out)
    dk_text_printf(text, ", in %s/checks/%s/trace.txt", run->options->out, result->id);
  else
    dk_text_puts(text, "; --out FOLDER keeps them");
}

/* ---- memcheck -------------------------------------------------------------------------------- */

enum { FRAMES_SHOWN = 8 };

void
report_suppression(struct dk_text *text, const struct suppressed *entry)
{
  if (entry->count > 0)
    dk_text_printf(text, "suppression used: %s (%u)", entry->name, entry->count);
  else
    dk_text_printf(text, "suppression unused: %s (matches %s, which cannot be hidden)",
                   entry->name,
                   entry->provider > 0 ? "the provider's own findings"
                                       : "findings with no frame in another library");
}

static void
add_stop(struct dk_text *text, const struct findings *findings)
{
  dk_text_printf(text, "ended by %s", findings->stopped);
  for (unsigned i = 0; i < findings->stopped_at.n && i < FRAMES_SHOWN; i++) {
    dk_text_puts(text, i ? " < " : ": ");
    finding_frame_text(text, &findings->stopped_at.frames[i]);
  }
}

bool
report_finding(struct dk_text *text, const struct findings *findings, unsigned n, unsigned most)
{
  static const char *const whose[] = {
    [OWNER_UNKNOWN] = "unknown", [OWNER_PROVIDER] = "provider", [OWNER_KIT] = "kit"};
  unsigned left = n;

  if (findings->stopped[0] && left-- == 0) {
    add_stop(text, findings);
    return true;
  }
  for (size_t i = 0; i < findings->n; i++) {
    const struct finding *finding = &findings->items[i];
    if (!finding->counts || left-- > 0)
      continue;
    if (n >= most)
      return false;
    if (n + 1 == most)
      dk_text_puts(text, "the last that is shown: ");
    dk_text_printf(text, "%s, %s: ", finding_clause(finding), whose[finding->owner]);
    finding_text(text, finding, FRAMES_SHOWN);
    return true;
  }
  return false;
}

void
report_xml(struct dk_text *text, const struct run *run, const struct result *result)
{
  const struct findings *findings = result->outcome ? result->outcome->findings : NULL;

  if (findings && findings->xml && run->options->out)
    dk_text_printf(text, "%s/checks/%s/memcheck.xml", run->options->out, result->id);
}

void
report_server(struct dk_text *text, const struct run *run)
{
  const struct server_options *h = &run->options->server;
  const struct {
    const char *given, *what, *options;
  } rows[] = {
    {h->crash, "crash and restart", "--store-crash, --store-start"},
    {h->pause, "a stopped server", "--store-pause, --store-resume"},
    {h->through, "lost messages", "--through, --store-address"},
    {h->deny, "withdrawn rights", "--store-deny, --store-allow"},
  };
  bool first = true;

  if (!run->described || run->probe->shared < 3)
    return;
  dk_text_puts(text, "server: tested: lost connections");
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (rows[i].given)
      dk_text_printf(text, ", %s", rows[i].what);
  }
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (rows[i].given)
      continue;
    dk_text_printf(text, "%s%s (%s)", first ? "; not tested: " : ", ", rows[i].what,
                   rows[i].options);
    first = false;
  }
}
