/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit selftest`: canaries, kill matrix and zoo; ends in one line. */
#include "runner/selftest/selftest.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "runner/report/out.h"
#include "runner/report/report-text.h"
#include "runner/selftest/canaries.h"
#include "runner/setup/run-setup.h"
#include "runner/system/clock.h"

enum { JOBS = 3 /* more than processors: some checks only wait */ };

void
selftest_point(struct selftest *selftest, bool holds, const char *name, const char *detail)
{
  progress_clear(&selftest->run.out->progress);
  selftest->points++;
  selftest->failed += holds ? 0u : 1u;
  if (selftest->tap) {
    tap_point(selftest->tap, holds, name, TAP_NONE, NULL);
    if (!holds && detail && *detail) {
      tap_yaml_begin(selftest->tap);
      tap_yaml_string(selftest->tap, "found", detail);
      tap_yaml_end(selftest->tap);
    }
  } else if (!holds) {
    fprintf(selftest->file, "not so: %s\n", name);
    if (detail && *detail)
      fprintf(selftest->file, "  found  %s\n", detail);
    fflush(selftest->file);
  }
}

void
selftest_note(struct selftest *selftest, const char *format, ...)
{
  struct dk_text text = DK_TEXT_EMPTY;
  va_list args;

  progress_clear(&selftest->run.out->progress);
  va_start(args, format);
  dk_text_vprintf(&text, format, args);
  va_end(args);
  if (selftest->tap)
    tap_comment(selftest->tap, dk_text_str(&text));
  else
    fprintf(selftest->file, "%s\n", dk_text_str(&text));
  dk_text_done(&text);
}

void
selftest_progress(struct selftest *selftest, size_t done, size_t n, double share)
{
  progress_tell(&selftest->run.out->progress, done, n, share, clock_ns());
}

const char *
selftest_word(const struct selftest *selftest, int code)
{
  if (code == EXIT_INCOMPLETE)
    return "INCOMPLETE";
  if (code != EXIT_PASSED || selftest->failed > 0)
    return "FAIL";
  return selftest->zoo_is_there && selftest->passed_by == 0 ? "PASS" : "PARTLY";
}

static bool
selftest_begin(struct selftest *selftest)
{
  struct out *out = selftest->run.out;
  struct dk_text text = DK_TEXT_EMPTY;

  selftest->file = out->file;
  if (out->format == FORMAT_TAP)
    selftest->tap = tap_new(out->file, tap_version_from_environment());
  report_kit(&text);
  selftest_note(selftest, "%s", dk_text_str(&text));
  selftest_note(selftest, "canaries not in this kit yet: %s", canaries_to_come);
  dk_text_done(&text);
  return out->format != FORMAT_TAP || selftest->tap;
}

static int
hear_canaries(struct selftest *selftest)
{
  char missed[600];
  unsigned caught = canaries_run(&selftest->run, missed, sizeof(missed));

  if (engine_interrupted(selftest->run.engine))
    return EXIT_INCOMPLETE;
  if (caught < canaries_count(&selftest->run) && !missed[0])
    snprintf(missed, sizeof(missed), "no process could be started: %s", strerror(errno));
  selftest_point(selftest, caught == canaries_count(&selftest->run), "every canary is caught",
                 missed);
  return EXIT_PASSED;
}

/* "mutants 647 of 647 caught; zoo 140 of 140 judged rightly" */
static void
add_parts(struct dk_text *text, const struct selftest *selftest, int code)
{
  if (selftest->mutants_are_judged)
    dk_text_printf(text, "mutants %u of %u caught", selftest->caught, selftest->mutants);
  else
    dk_text_puts(text, "mutants not judged");
  if (selftest->zoo_is_there)
    dk_text_printf(text, "; zoo %u of %u judged rightly", selftest->right, selftest->fixtures);
  else if (code == EXIT_PASSED || code == EXIT_VIOLATED)
    dk_text_puts(text, "; zoo not-here, so not tested (--zoo FOLDER)");
  else
    dk_text_puts(text, "; zoo not judged");
}

/* A reader of TAP must not mistake the results so far for all. */
static void
tell_interrupted(struct selftest *selftest)
{
  const char *signal = sigabbrev_np(engine_interrupted(selftest->run.engine));
  char why[80];

  snprintf(why, sizeof(why), "interrupted by SIG%s: not all of the kit was tested",
           signal ? signal : "");
  message_print("%s", why);
  if (selftest->tap)
    tap_bail_out(selftest->tap, why);
}

static int
selftest_end(struct selftest *selftest, int code)
{
  double seconds = (double)(clock_ns() - selftest->run.started_ns) / 1e9;

  if (engine_interrupted(selftest->run.engine))
    code = EXIT_INCOMPLETE;
  if (code == EXIT_PASSED && selftest->failed > 0)
    code = EXIT_VIOLATED;
  struct dk_text parts = DK_TEXT_EMPTY;
  add_parts(&parts, selftest, code);
  selftest_note(selftest, "SELFTEST=%s points=%u failed=%u; %s; seconds=%.1f",
                selftest_word(selftest, code), selftest->points, selftest->failed,
                dk_text_str(&parts), seconds);
  dk_text_done(&parts);
  if (engine_interrupted(selftest->run.engine))
    tell_interrupted(selftest);
  if (selftest->tap) {
    int failed = tap_done(selftest->tap);
    selftest->tap = NULL;
    if (code != EXIT_INCOMPLETE && failed != (int)selftest->failed)
      return EXIT_ENVIRONMENT;
  }
  return fflush(selftest->file) == 0 && !ferror(selftest->file) ? code : EXIT_ENVIRONMENT;
}

int
command_selftest(const struct options *options)
{
  struct selftest selftest = {0};
  const char *plugin = options->model ? options->model : "model";
  struct options model = *options;

  model.arguments = &plugin;
  model.n_arguments = 1;
  model.jobs = options->jobs ? options->jobs : JOBS;
  selftest.options = &model;
  int code = run_begin(&selftest.run, &model);
  if (code == EXIT_PASSED)
    code = run_probe(&selftest.run);
  if (code == EXIT_PASSED)
    code = run_take_settings(&selftest.run);
  if (code == EXIT_PASSED) {
    code = selftest_begin(&selftest) ? EXIT_PASSED : EXIT_ENVIRONMENT;
    if (code == EXIT_PASSED)
      code = hear_canaries(&selftest);
    if (code == EXIT_PASSED)
      code = matrix_run(&selftest);
    if (code == EXIT_PASSED)
      code = zoo_run(&selftest);
    code = selftest_end(&selftest, code);
  }
  run_end(&selftest.run);
  return code;
}
