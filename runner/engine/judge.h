/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict over a child that has ended. */
#ifndef DK_RUNNER_ENGINE_JUDGE_H
#define DK_RUNNER_ENGINE_JUDGE_H

#include <signal.h>

#include "runner/engine/engine.h"
#include "runner/system/seal.h"

struct ending {
  siginfo_t how;          /* of waitid; si_code 0: nobody saw it */
  bool timed_out;
  bool slow;              /* timed out, but its operations still ended */
  bool flooded;           /* ended for the sake of what it wrote */
  int64_t deadline_ms;
  int64_t worked_ms;      /* so much longer it was given, while its operations ended */
  int64_t called_ns;      /* timed out: so long its last call had run */
  uint64_t stdout_bytes;  /* written on descriptor 1 */
  char meddled[200];      /* limits of the runner itself that were changed; "": none */
  char intruded[64];      /* a name beside the check's folder that it has taken; "": none */
  const struct seals *seals; /* that were given to the child */
};

/* Fills in verdict, `ended` and, where the child found no words, those of the report. */
void judge_child(struct outcome *outcome, const struct task *task, const struct ending *ending);

/* After it, of a check under memcheck; `self` is this executable. */
void judge_memory(struct outcome *outcome, const struct task *task, const char *self);

/* What comes from a map that a provider could write to becomes safe to read. */
void judge_tame(struct kit_report *report);
void judge_tame_probe(struct kit_probe *probe);

#endif
