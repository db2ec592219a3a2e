/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit selftest`: what its parts share.  Each thing that must hold is one point. */
#ifndef DK_RUNNER_SELFTEST_SELFTEST_H
#define DK_RUNNER_SELFTEST_SELFTEST_H

#include <stdbool.h>
#include <stdio.h>

#include "conformance/tap/tap.h"
#include "runner/run/run.h"

int command_selftest(const struct options *options);

struct selftest {
  const struct options *options;
  struct run run;        /* over the model */
  FILE *file;
  struct tap *tap;       /* NULL: the human view */
  unsigned points, failed;
  unsigned mutants, caught, fixtures, right;
  bool mutants_are_judged, zoo_is_there;
  unsigned passed_by;    /* providers of the zoo that nothing here can judge */
};

/* `detail` is shown if the point fails; may be NULL. */
void selftest_point(struct selftest *selftest, bool holds, const char *name, const char *detail);
__attribute__((format(printf, 2, 3))) void
selftest_note(struct selftest *selftest, const char *format, ...);

/* Reports how much of this part of the test is done; `share`: of its work. */
void selftest_progress(struct selftest *selftest, size_t done, size_t n, double share);

/* The word in the last line: INCOMPLETE if it was interrupted; PARTLY if no point failed, but the
 * zoo was missing or could not be judged completely. */
const char *selftest_word(const struct selftest *selftest, int code);

/* matrix.c: the model passes, its mutants do not.  EXIT_PASSED, or the code that ended the test. */
int matrix_run(struct selftest *selftest);
/* zoo.c: each provider of the zoo gets its one verdict. */
int zoo_run(struct selftest *selftest);

#endif
