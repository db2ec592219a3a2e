/* SPDX-License-Identifier: Apache-2.0 */
/* From the commit that cancels to the activity's token: see bench.h.
 *
 * In the same process, and in the way of another process: by its next renewal. */
#include "core/runtime/bench/bench.h"

#include <poll.h>
#include <stdio.h>

enum { BATCHES = 6, LOCK_MS = 30000, INTERVAL_MS = 500 };

static _Atomic int64_t told_at[MOST_NUMBERS];
static atomic_int n_running, n_told;

/* A machine that is too busy to renew in 30 s measures nothing. */
static dk_result
held(dk_task *task, dk_str input)
{
  struct pollfd token = {.fd = dk_task_cancel_fd(task), .events = POLLIN};

  (void)input;
  atomic_fetch_add(&n_running, 1);
  while (!dk_task_cancelled(task))
    poll(&token, 1, -1);
  if (dk_task_cancelled(task) != DK_CAUSE_CANCELLED)
    die("the lease of an activity was lost");
  atomic_store(&told_at[number_of(dk_task_info(task)->instance)], ticks_ns());
  atomic_fetch_add(&n_told, 1);
  return dk_error(task, "cancelled");
}

static dk_result
hold(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, "held", input)));
}

static void
run_batch(struct scene *s, int batch)
{
  char name[32];
  int running = atomic_load(&n_running), told = atomic_load(&n_told);

  for (int i = 0; i < SLOTS; i++) {
    snprintf(name, sizeof name, "held-%d", batch * SLOTS + i + 1);
    scene_begin(s, name, "hold", "0");
  }
  WAIT_FOR(atomic_load(&n_running) == running + SLOTS);
  for (int i = 0; i < SLOTS; i++) {
    snprintf(name, sizeof name, "held-%d", batch * SLOTS + i + 1);
    if (dk_client_cancel(s->client, dk_str_of(name), NULL, NULL) != DK_OK)
      die("%s: %s", name, dk_client_error(s->client));
  }
  WAIT_FOR(atomic_load(&n_told) == told + SLOTS);
}

static void
told_tell(struct bench *bench, const char *what, double limit)
{
  double ms[BATCHES * SLOTS];
  size_t n = 0;

  for (int i = 1; i <= BATCHES * SLOTS; i++)
    ms[n++] = (double)(atomic_load(&told_at[i]) - atomic_load(&turns_seen[i].committed_at)) / 1e6;
  median_of(ms, n);
  printf("told      %s: %.2f ms after the commit, longest %.2f, of %zu; p99 %.2f (at most %.0f)",
         what, quantile_of(ms, n, 0.5), ms[n - 1], n, quantile_of(ms, n, 0.99), limit);
  judge(bench, quantile_of(ms, n, 0.99) <= limit);
}

static void
measure(struct bench *bench, uint32_t flags, const char *what, double limit)
{
  struct scene s = scene_open(bench, "told");

  scene_orchestration(&s, "hold", hold);
  scene_activity(&s, "held", held);
  s.options.flags = flags;
  s.options.activity_lock_ms = LOCK_MS;
  s.options.activity_renewal_buffer_ms = LOCK_MS - INTERVAL_MS;
  scene_start(&s);
  for (int i = 0; i < BATCHES; i++)
    run_batch(&s, i);
  told_tell(bench, what, limit);
  scene_close(&s);
}

void
bench_told(struct bench *bench)
{
  measure(bench, 0, "in the same process", 10);
  measure(bench, DK_RUNTIME_NO_LOCAL_SIGNAL, "by the next renewal, each 500 ms", INTERVAL_MS * 1.1);
}
