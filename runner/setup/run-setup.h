/* SPDX-License-Identifier: Apache-2.0 */
/* From the options to a plugin that is ready to be checked.  All that answer an int give
 * EXIT_PASSED, or what else with the words said. */
#ifndef DK_RUNNER_SETUP_RUN_SETUP_H
#define DK_RUNNER_SETUP_RUN_SETUP_H

#include "runner/run/run.h"

int run_begin(struct run *run, const struct options *options); /* plugin, folder, engine */
int run_probe(struct run *run);         /* loads and describes */
int run_take_settings(struct run *run); /* checks and splits them */
void run_end(struct run *run);
int run_refuse(struct run *run, int code, const struct problem *problem);
/* There is no outcome of a probe, or a child of it did not come back well. */
int run_no_child(struct run *run);
void run_note_trouble(struct run *run, const struct outcome *outcome, const char *doing);

/* ---- run-stores.c ---------------------------------------------------------------------------- */

int run_open(struct run *run);          /* existing names, a store that is not there */
/* Stores that the outcome left go into the journal, for `durakit clean`. */
void run_note_leftovers(struct run *run, const struct outcome *outcome);
/* Stores that a server may have made after they were removed are removed again; says those that
 * stay. */
void run_remove_unsure(struct run *run);

/* ---- run-memcheck.c: what Valgrind adds to a run --------------------------------------------- */

/* Makes ready what the options ask for: Valgrind, the suppressions. */
int run_take_memcheck(struct run *run);
/* Adds what was used in it to what the run has used. */
struct findings;
void run_note_suppressed(struct run *run, const struct findings *findings);

/* ---- run-suppressions.c ---------------------------------------------------------------------- */

/* Adds the entries of a file.  Refuses it when one has no reason or is none of Valgrind's, and one
 * that plainly names the provider. */
int run_read_suppressions(struct run *run, struct suppressions *entries, const char *path);

#endif
