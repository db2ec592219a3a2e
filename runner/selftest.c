/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit selftest`: canaries, kill matrix and zoo; ends in one line. */
#include "runner/selftest.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "runner/canaries.h"
#include "runner/commands.h"
#include "runner/facts.h"
#include "runner/out.h"

enum { JOBS = 3 /* some only wait */ };

void
selftest_point(struct selftest *selftest, bool holds, const char *name, const char *detail)
{
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

  va_start(args, format);
  dk_text_vprintf(&text, format, args);
  va_end(args);
  if (selftest->tap)
    tap_comment(selftest->tap, dk_text_str(&text));
  else
    fprintf(selftest->file, "%s\n", dk_text_str(&text));
  dk_text_done(&text);
}

const char *
selftest_word(const struct selftest *selftest, int code)
{
  if (code != EXIT_PASSED || selftest->failed > 0)
    return "FAIL";
  return selftest->zoo_is_there && selftest->passed_by == 0 ? "PASS" : "PARTLY";
}

static bool
begin(struct selftest *selftest)
{
  struct out *out = selftest->run.out;
  struct dk_text text = DK_TEXT_EMPTY;

  selftest->file = out->file;
  if (out->format == FORMAT_TAP)
    selftest->tap = tap_new(out->file, tap_version_from_environment());
  facts_kit(&text);
  selftest_note(selftest, "%s", dk_text_str(&text));
  selftest_note(selftest, "canaries not in this kit yet: %s", canaries_to_come);
  dk_text_done(&text);
  return out->format != FORMAT_TAP || selftest->tap;
}

static void
hear_canaries(struct selftest *selftest)
{
  char missed[600];
  unsigned caught = canaries_run(&selftest->run, missed, sizeof(missed));

  if (caught < canaries_count(&selftest->run) && !missed[0])
    snprintf(missed, sizeof(missed), "no process could be started: %s", strerror(errno));
  selftest_point(selftest, caught == canaries_count(&selftest->run), "every canary is caught",
                 missed);
}

static int
end(struct selftest *selftest, int code)
{
  double seconds = (double)(run_clock_ns() - selftest->run.started_ns) / 1e9;

  if (code == EXIT_PASSED && selftest->failed > 0)
    code = EXIT_VIOLATED;
  char zoo[64] = "not-here, so not tested (--zoo FOLDER)";
  if (selftest->zoo_is_there)
    snprintf(zoo, sizeof(zoo), "%u of %u judged rightly", selftest->right, selftest->fixtures);
  selftest_note(selftest, "SELFTEST=%s points=%u failed=%u; mutants %u of %u caught; zoo %s; "
                          "seconds=%.1f",
                selftest_word(selftest, code), selftest->points, selftest->failed,
                selftest->caught, selftest->mutants, zoo, seconds);
  if (selftest->tap) {
    int failed = tap_done(selftest->tap);
    selftest->tap = NULL;
    if (failed != (int)selftest->failed)
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
    code = begin(&selftest) ? EXIT_PASSED : EXIT_ENVIRONMENT;
    hear_canaries(&selftest);
    if (code == EXIT_PASSED)
      code = matrix_run(&selftest);
    if (code == EXIT_PASSED)
      code = zoo_run(&selftest);
    code = end(&selftest, code);
  }
  run_end(&selftest.run);
  return code;
}
