/* SPDX-License-Identifier: Apache-2.0 */
/* A cause that ends all checks in the same way: before or after their own steps, a plugin that
 * cannot be loaded, opened or closed, or the same damage or leak in each; in their steps, an
 * operation that always fails.  It is reported once. */
#ifndef DK_RUNNER_RUN_CAUSE_H
#define DK_RUNNER_RUN_CAUSE_H

#include "core/base/text.h"
#include "runner/run/run.h"

/* So many checks of a mode must have ended alike, and none passed; and if it was in their own
 * steps, none may have ended in another way. */
enum { CAUSE_ALIKE = 5 };

/* Notes the first outcome of a check; false: all end so, and a rerun would show nothing new.  A
 * check that came through shows that not all do. */
bool cause_note(struct run *run, const struct result *result);
/* If the answer of an operation shows its failure: marks it and all results with the same answer as
 * shared.  True: one of them already has all its reruns. */
bool cause_note_answer(struct run *run, struct result *result);
/* Called when a rerun has shown that it does not always end so. */
void cause_forget(struct run *run, const struct result *result);
/* The first of the checks that ended alike, if this one need not run because it would show nothing
 * new; NULL: run it. */
const struct result *cause_of(const struct run *run, const struct result *result);
/* The cause, in one line. */
void cause_text(struct dk_text *text, const struct result *first);

/* True for two results of one mode and verdict with the same answer of the same operation, or with
 * the same place and message, apart from numbers.  Messages of host damage are compared up to the
 * first colon, because what was found follows it. */
bool cause_is_same(const struct result *a, const struct result *b);

#endif
