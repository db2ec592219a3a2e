/* SPDX-License-Identifier: Apache-2.0 */
/* results.jsonl: one JSON object a line, written and flushed as it happens; a header, one line for
 * each check, a footer.  A run that was killed leaves what it had. */
#ifndef DK_RUNNER_REPORT_RESULTS_H
#define DK_RUNNER_REPORT_RESULTS_H

#include "runner/run/run.h"

/* Begins results in this folder, which is made if it does not exist; NULL with errno. */
struct results_file *results_new(const char *folder);
void results_close(struct results_file *file);

void results_header(struct results_file *file, const struct run *run, const char *canaries);
/* Also writes the trace and the output of a check that did not pass, under checks/ID/. */
void results_add(struct results_file *file, const struct run *run, const struct result *result);
void results_footer(struct results_file *file, const struct run *run,
                    const struct totals *totals);
/* Everything could be written so far. */
bool results_are_written(const struct results_file *file);

#endif
