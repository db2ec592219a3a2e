/* SPDX-License-Identifier: Apache-2.0 */
/* From the options to a plugin that is ready to be checked.  All functions that return an int
 * return EXIT_PASSED, or another exit code when they have printed why. */
#ifndef DK_RUNNER_SETUP_RUN_SETUP_H
#define DK_RUNNER_SETUP_RUN_SETUP_H

#include "runner/run/run.h"

int run_begin(struct run *run, const struct options *options); /* plugin, folder, engine */
int run_probe(struct run *run);         /* loads and describes */
int run_take_settings(struct run *run); /* checks and splits the settings */
void run_end(struct run *run);
int run_refuse(struct run *run, int code, const struct problem *problem);
/* A probe has no outcome; or its child ended or hung. */
int run_no_child(struct run *run);
void run_note_trouble(struct run *run, const struct outcome *outcome, const char *doing);

/* ---- run-stores.c ---------------------------------------------------------------------------- */

int run_open(struct run *run);          /* refuses names in use, and a store that cannot be made */
/* Writes the stores that the outcome left into the journal, for `durakit clean`. */
void run_note_leftovers(struct run *run, const struct outcome *outcome);
/* Removes again stores that a server may have made after they were removed; prints those that
 * stay. */
void run_remove_unsure(struct run *run);

/* ---- run-memcheck.c: what Valgrind adds to a run --------------------------------------------- */

/* Prepares Valgrind and the suppressions as the options ask. */
int run_take_memcheck(struct run *run);
/* Adds the suppressions used in this outcome to those of the run. */
struct findings;
void run_note_suppressed(struct run *run, const struct findings *findings);

/* ---- run-suppressions.c ---------------------------------------------------------------------- */

/* Adds the entries of a file.  Refuses the file if an entry has no reason, is not in Valgrind's
 * format, or plainly names the provider. */
int run_read_suppressions(struct run *run, struct suppressions *entries, const char *path);

#endif
