/* SPDX-License-Identifier: Apache-2.0 */
/* Other work before and after 100 instances with five activities each are cancelled at once: see
 * bench.h.  The activities have all slots, and end when they are signalled; other work waits
 * meanwhile.  After the last request it has the time of two renewals to return to its rate. */
#include "core/runtime/bench/bench.h"

#include <poll.h>
#include <stdio.h>

enum { INSTANCES = 100, EACH = 5, ROUNDS = 7, LOCK_MS = 30000, INTERVAL_MS = 500 };

static atomic_uint running, ended;

static dk_result
stays(dk_task *task, dk_str input)
{
  struct pollfd token = {.fd = dk_task_cancel_fd(task), .events = POLLIN};

  (void)input;
  atomic_fetch_add(&running, 1);
  while (!dk_task_cancelled(task))
    poll(&token, 1, -1);
  if (dk_task_cancelled(task) != DK_CAUSE_CANCELLED)
    die("the lease of an activity was lost");
  atomic_fetch_add(&ended, 1);
  return dk_error(task, "cancelled");
}

static dk_result
stay(dk_orch *o, dk_str input)
{
  dk_future *all[EACH];

  for (int i = 0; i < EACH; i++)
    all[i] = dk_activity(o, "stays", input);
  dk_all_of(o, all, EACH);
  return dk_completed(o, input);
}

/* All slots are taken, and the rest waits for one. */
static void
fill_slots(struct scene *s, int round)
{
  unsigned before = atomic_load(&running);
  char name[32];

  for (int i = 0; i < INSTANCES; i++) {
    snprintf(name, sizeof name, "stays-%d", MOST_NUMBERS + round * INSTANCES + i);
    scene_begin(s, name, "stay", "0");
  }
  WAIT_FOR(atomic_load(&running) - before >= SLOTS);
}

static void
back_cancel_all(struct scene *s, int round)
{
  char name[32];

  for (int i = 0; i < INSTANCES; i++) {
    snprintf(name, sizeof name, "stays-%d", MOST_NUMBERS + round * INSTANCES + i);
    if (dk_client_cancel(s->client, dk_str_of(name), NULL, NULL) != DK_OK)
      die("%s: %s", name, dk_client_error(s->client));
  }
}

static void
two_renewals(void)
{
  int64_t until = ticks_ns() + 2 * INTERVAL_MS * INT64_C(1000000);

  while (ticks_ns() < until)
    pause_a_moment();
}

static void
measure(struct bench *bench, uint32_t flags, const char *what)
{
  double before[ROUNDS], after[ROUNDS], ratios[ROUNDS];
  struct scene s = scene_open(bench, "back");

  atomic_store(&running, 0);
  atomic_store(&ended, 0);
  five_prepare(&s);
  scene_orchestration(&s, "stay", stay);
  scene_activity(&s, "stays", stays);
  s.options.flags = flags;
  s.options.activity_lock_ms = LOCK_MS;
  s.options.activity_renewal_buffer_ms = LOCK_MS - INTERVAL_MS;
  scene_start(&s);
  five_begin(&s);
  for (int i = 0; i < ROUNDS; i++) {
    before[i] = five_rate(&s);
    fill_slots(&s, i);
    back_cancel_all(&s, i);
    two_renewals();
    after[i] = five_rate(&s);
    ratios[i] = after[i] / before[i];
  }
  five_end();
  WAIT_FOR(atomic_load(&ended) == atomic_load(&running));
  double ratio = median_of(ratios, ROUNDS);
  printf("back      %s: %.0f instances/s, and %.0f two renewals after %d were cancelled: %.2f"
         " [%.2f, %.2f] (at least 0.9)", what, median_of(before, ROUNDS),
         median_of(after, ROUNDS), INSTANCES * EACH, ratio, ratios[0], ratios[ROUNDS - 1]);
  judge(bench, ratio >= 0.9);
  scene_close(&s);
}

void
bench_back(struct bench *bench)
{
  measure(bench, 0, "signalled by the commit");
  measure(bench, DK_RUNTIME_NO_LOCAL_SIGNAL, "learnt by renewals, each 500 ms");
}
