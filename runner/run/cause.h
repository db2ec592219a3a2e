/* SPDX-License-Identifier: Apache-2.0 */
/* What all checks meet alike: before or after their own steps a plugin that cannot be loaded,
 * opened or closed, the same damage or the same leak in each; in their steps an operation that
 * always fails.  It is told once. */
#ifndef DK_RUNNER_RUN_CAUSE_H
#define DK_RUNNER_RUN_CAUSE_H

#include "core/base/text.h"
#include "runner/run/run.h"

/* So many checks of a mode must have ended alike, while none has come through; and if it was in
 * their own steps, while none has ended otherwise either. */
enum { CAUSE_ALIKE = 5 };

/* The first outcome of a check is there; false: all end so, and a rerun would tell nothing new.
 * One that came through shows that not all do. */
bool cause_note(struct run *run, const struct result *result);
/* If an operation's answer tells its failure: marks it and all that got the same as shared.  True:
 * one of them has been run again already, as often as it is to be. */
bool cause_note_answer(struct run *run, struct result *result);
/* A rerun has shown that it does not end so always. */
void cause_forget(struct run *run, const struct result *result);
/* The first of those that ended alike, so that this one, which has not run, would tell nothing new;
 * NULL: run it. */
const struct result *cause_of(const struct run *run, const struct result *result);
/* In one line. */
void cause_text(struct dk_text *text, const struct result *first);

/* Two results of one mode and verdict, with the same answer of the same operation, or with the same
 * place and words, which differ in numbers at most; of host damage
 * those up to the first colon, behind which stands what was found. */
bool cause_is_same(const struct result *a, const struct result *b);

#endif
