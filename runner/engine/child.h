/* SPDX-License-Identifier: Apache-2.0 */
/* What happens in a child between fork and exit. */
#ifndef DK_RUNNER_ENGINE_CHILD_H
#define DK_RUNNER_ENGINE_CHILD_H

#include <sys/types.h>

#include "runner/engine/engine.h"

struct child {
  const struct task *task;
  struct kit_shared *shared;
  const char *folder;         /* its working directory */
  int output, errors;         /* descriptors 1 and 2 of the child */
  pid_t runner;
  bool memcheck;              /* Valgrind judges the memory at the end */
  void *held;                 /* under memcheck: the plugin as it was linked before, or NULL */
  const int *keeps;           /* descriptors that stay open, until a negative one; NULL: none */
  /* Called when the check has passed, before the plugin is unloaded; NULL: is not. */
  void (*leave_heir)(const struct child *child, const struct kit_job *job);
  void *context;              /* of leave_heir */
};

/* Never returns.  `job` is the task's with the engine's members filled in. */
__attribute__((noreturn)) void child_main(const struct child *child, const struct kit_job *job);

/* Runs the task by its kind: in a child, or in the runner for --in-process. */
void child_call(const struct task *task, struct kit_shared *shared, const struct kit_job *job);

#endif
