/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict over a child that has ended. */
#ifndef DK_RUNNER_ENGINE_JUDGE_H
#define DK_RUNNER_ENGINE_JUDGE_H

#include <signal.h>

#include "runner/engine/engine.h"
#include "runner/system/seal.h"

struct ending {
  siginfo_t how;          /* of waitid; si_code 0: its end was not seen */
  bool timed_out;
  bool slow;              /* timed out, but its operations still ended */
  bool flooded;           /* ended because it wrote too much */
  int64_t deadline_ms;
  int64_t worked_ms;      /* extra time that it got while its operations still ended */
  int64_t called_ns;      /* timed out: how long its last call had run */
  uint64_t stdout_bytes;  /* written on descriptor 1 */
  char meddled[200];      /* limits of the runner itself that were changed; "": none */
  char intruded[64];      /* a name beside the check's folder that it has taken; "": none */
  const struct seals *seals; /* of the child */
};

/* Fills in the verdict, `ended` and, where the child wrote none, the texts of the report. */
void judge_child(struct outcome *outcome, const struct task *task, const struct ending *ending);

/* Called after it, for a check under memcheck; `self` is this executable. */
void judge_memory(struct outcome *outcome, const struct task *task, const char *self);

/* Make safe to read what comes from a map that a provider could write to. */
void judge_tame(struct kit_report *report);
void judge_tame_probe(struct kit_probe *probe);

#endif
