/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from the state of a run: its tasks, times and secrets. */
#include "runner/run/run.h"

#include <string.h>

#include "runner/engine/server-commands.h"

enum {
  SETTLE_MS = 20,
  REAL_WAIT_MS = 400
};

int64_t
run_scaled(const struct run *run, int64_t ms)
{
  double result = (double)ms * run->options->timeout_scale;

  return result < 10 ? 10 : (int64_t)result;
}

struct task
run_task(const struct run *run, enum task_kind kind)
{
  struct task task = {.kind = kind, .deadline_ms = run_scaled(run, RUN_PROBE_MS)};

  /* No check is judged by it, so its time is not reduced with that of checks. */
  task.removal_ms = task.deadline_ms > RUN_PROBE_MS ? task.deadline_ms : RUN_PROBE_MS;
  task.job.plugin = run->plugin;
  task.job.settings = run->settings;
  task.job.n_settings = run->n_settings;
  task.job.store_key = run->store_key;
  task.job.store_value = run->store_value;
  task.job.run = run->options->run_id;
  task.job.seed = run->options->seed;
  task.job.incomplete = run->options->next;
  task.job.real_wait_ms = REAL_WAIT_MS;
  task.job.hurt = server_commands_offer(run->server_commands, &run->options->server);
  /* Another host's wake-up takes a few round trips. */
  task.job.settle_ms = run->probe->shared >= 3 ? SETTLE_MS : 0;
  task.job.answer_ms = (int32_t)run_scaled(run, DK_ANSWER_MS);
  task.store_in_folder = run->store_key && !run->store_value;
  return task;
}

/* If the plugin could not be probed, every setting may be secret. */
bool
run_is_secret(const struct run *run, const struct given *given)
{
  for (uint32_t i = 0; i < run->probe->n_params; i++) {
    if (strcmp(run->probe->params[i].key, given->key) == 0)
      return (run->probe->params[i].flags & DK_PARAM_SECRET) != 0;
  }
  return !run->described;
}
