/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the view, and owns the private copy of standard output that it writes to. */
#include "runner/report/out.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/cli/wrap.h"
#include "runner/system/clock.h"

static bool
is_set(const char *variable)
{
  const char *value = getenv(variable);

  return value && *value;
}

static bool
wants_color(const struct options *options, int fd)
{
  if (options->color != COLOR_AUTO)
    return options->color == COLOR_ALWAYS;
  return isatty(fd) && !is_set("NO_COLOR") && !is_set("CI");
}

struct out *
out_new(const struct options *options)
{
  struct out *out = calloc(1, sizeof(*out));

  if (!out)
    return NULL;
  out->format = options->format;
  if (out->format == FORMAT_AUTO)
    out->format = isatty(STDOUT_FILENO) && !is_set("HARNESS_ACTIVE") ? FORMAT_HUMAN : FORMAT_TAP;
  out->color = wants_color(options, STDOUT_FILENO);
  out->progress = progress_of_stderr();
  out->verbose = options->verbose;
  int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  out->width = out->format == FORMAT_HUMAN ? wrap_width(STDOUT_FILENO) : 0;
  if (fd >= 0)
    out->file = out->width > 0 ? wrap_stream(fd, out->width) : fdopen(fd, "w");
  if (out->file)
    return out;
  if (fd >= 0)
    close(fd);
  free(out);
  return NULL;
}

void
out_free(struct out *out)
{
  if (!out)
    return;
  if (out->tap)
    tap_done(out->tap);
  fclose(out->file);
  free(out);
}

/* A reader of TAP must learn why there is no plan. */
void
out_refusal(struct out *out, const struct problem *problem, const struct secrets *secrets)
{
  struct dk_text text = DK_TEXT_EMPTY;
  struct problem first = {.where = problem->where, .what = problem->what};

  if (!out || out->format != FORMAT_TAP || out->began)
    return;
  out->tap = tap_new(out->file, tap_version_from_environment());
  message_problem_text(&text, &first, secrets);
  if (out->tap)
    tap_bail_out(out->tap, dk_text_str(&text));
  dk_text_done(&text);
}

void
out_progress(struct out *out, const struct run *run, size_t done)
{
  progress_tell(&out->progress, done, run->n_results, progress_share(run), clock_ns());
}

void
out_part(struct out *out, const char *part)
{
  progress_begin(&out->progress, part, clock_ns());
}

void
out_wait(void *context)
{
  struct out *out = context;

  progress_wait(&out->progress, clock_ns());
}

void
out_begin(struct out *out, const struct run *run, const char *canaries)
{
  out->began = true;
  progress_begin(&out->progress, NULL, clock_ns());
  if (out->format == FORMAT_TAP)
    out_tap_begin(out, run, canaries);
  else
    out_human_begin(out, run, canaries);
  fflush(out->file);
}

void
out_result(struct out *out, const struct run *run, const struct result *result)
{
  progress_clear(&out->progress);
  if (out->format == FORMAT_TAP)
    out_tap_result(out, run, result);
  else
    out_human_result(out, run, result);
  fflush(out->file);
}

void
out_comment(struct out *out, const char *text)
{
  progress_clear(&out->progress);
  if (out->format == FORMAT_TAP && out->tap) {
    tap_comment(out->tap, text);
  } else if (out->format == FORMAT_HUMAN) {
    out_human_skipped(out);
    fprintf(out->file, "%s\n", text);
  }
  fflush(out->file);
}

void
out_comment_text(struct out *out, const struct dk_text *text)
{
  out->lost = out->lost || dk_text_failed(text);
  out_comment(out, dk_text_failed(text) ? "out of memory" : dk_text_str(text));
}

bool
out_end(struct out *out, const struct totals *totals)
{
  progress_clear(&out->progress);
  if (out->format == FORMAT_TAP)
    out_tap_end(out, totals);
  else
    out_human_end(out, totals);
  return fflush(out->file) == 0 && !ferror(out->file) && !out->lost;
}

/* ---- shared by the two views ----------------------------------------------------------------- */

char *
out_masked(struct out *out, const struct run *run, const char *text)
{
  struct dk_text masked = DK_TEXT_EMPTY;

  secrets_mask(&run->secrets, &masked, text, strlen(text));
  char *copy = dk_text_failed(&masked) ? NULL : strdup(dk_text_str(&masked));
  dk_text_done(&masked);
  out->lost = out->lost || !copy;
  return copy;
}

char *
out_masked_text(struct out *out, const struct run *run, const struct dk_text *text)
{
  if (!dk_text_failed(text))
    return out_masked(out, run, dk_text_str(text));
  out->lost = true;
  return NULL;
}

const struct kit_trace_line *
out_trace(const struct kit_report *report, unsigned most, unsigned n, unsigned *ret_left_out)
{
  unsigned kept = report->n_trace < KIT_TRACE_LINES ? report->n_trace : KIT_TRACE_LINES;
  unsigned shown = kept < most ? kept : most;

  *ret_left_out = report->n_trace - shown;
  if (n >= shown)
    return NULL;
  return &report->trace[(report->n_trace - shown + n) % KIT_TRACE_LINES];
}

void
out_totals_text(struct dk_text *text, const struct totals *totals)
{
  dk_text_printf(text, "passed=%u failed=%u skipped=%u", totals->passed, totals->failed,
                 totals->skipped);
  if (totals->counts[VERDICT_FLAKY] > 0)
    dk_text_printf(text, " flaky=%u", totals->counts[VERDICT_FLAKY]);
  if (totals->counts[VERDICT_UNEXERCISED] > 0)
    dk_text_printf(text, " unexercised=%u", totals->counts[VERDICT_UNEXERCISED]);
  if (totals->memory > 0)
    dk_text_printf(text, " memory=%u", totals->memory);
  if (totals->advised > 0)
    dk_text_printf(text, " advised=%u", totals->advised);
  if (totals->counts[VERDICT_ERROR] > 0)
    dk_text_printf(text, " errors=%u", totals->counts[VERDICT_ERROR]);
  if (totals->counts[VERDICT_NOT_RUN] > 0)
    dk_text_printf(text, " not-run=%u", totals->counts[VERDICT_NOT_RUN]);
  if (totals->memcheck && totals->memcheck[0])
    dk_text_puts(text, " memcheck=not-tested");
  dk_text_printf(text, " seconds=%.2f", totals->seconds);
}
