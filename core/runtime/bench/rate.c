/* SPDX-License-Identifier: Apache-2.0 */
/* Five activities one after the other, 64 instances at once, against the floor: see bench.h.
 *
 * The floor (providers/NAME/bench/floor) makes turns and work by hand-written statements, each a
 * claim and a commit.  An instance of five activities is six turns and five pieces of work, so its
 * floor is 12 operations of the one workload and 10 of the other. */
#include "core/runtime/bench/bench.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "runner/bench/bench.h"

enum { STEPS = 5, ROUNDS = 7, STARTERS = 8 };

static struct {
  struct scene *scene;
  pthread_t starters[STARTERS];
  atomic_uint began, ended, names;
  atomic_bool stops;
} rate;

static dk_result
nothing(dk_task *task, dk_str input)
{
  return dk_done(task, input);
}

static dk_result
five(dk_orch *o, dk_str input)
{
  for (int i = 0; i < STEPS; i++)
    input = dk_await(o, dk_activity(o, "nothing", input));
  return dk_completed(o, input);
}

static void
listen(void *context, const struct dk_log_event *event)
{
  (void)context;
  dk_str name = event->orchestration;

  if (event->number == DK_LOG_ORCHESTRATION_ENDED && name.len == 4
      && memcmp(name.ptr, "five", 4) == 0)
    atomic_fetch_add(&rate.ended, 1);
}

/* Starts another as soon as one has ended. */
static void *
start_them(void *context)
{
  struct dk_client *client = dk_client_new(rate.scene->store, NULL);
  char name[32];

  (void)context;
  while (client && !atomic_load(&rate.stops)) {
    if (atomic_fetch_add(&rate.began, 1) - atomic_load(&rate.ended) >= IN_FLIGHT) {
      atomic_fetch_sub(&rate.began, 1);
      pause_a_moment();
      continue;
    }
    snprintf(name, sizeof name, "five-%u", MOST_NUMBERS + atomic_fetch_add(&rate.names, 1));
    if (dk_client_start(client, dk_str_of(name), "five", dk_str_of("0"), NULL) != DK_OK)
      die("%s cannot be started: %s", name, dk_client_error(client));
  }
  dk_client_free(client);
  return NULL;
}

void
five_prepare(struct scene *scene)
{
  scene_orchestration(scene, "five", five);
  scene_activity(scene, "nothing", nothing);
  scene->options.log = listen;
}

void
five_begin(struct scene *scene)
{
  unsigned before = atomic_load(&rate.ended);

  rate.scene = scene;
  atomic_store(&rate.stops, false);
  for (int i = 0; i < STARTERS; i++)
    if (pthread_create(&rate.starters[i], NULL, start_them, NULL) != 0)
      die("no thread");
  WAIT_FOR(atomic_load(&rate.ended) >= before + IN_FLIGHT / 2);
}

double
five_rate(const struct scene *scene)
{
  unsigned before = atomic_load(&rate.ended);
  int64_t from = ticks_ns();

  while (ticks_ns() - from < scene->bench->slice_ms * INT64_C(1000000))
    pause_a_moment();
  return (atomic_load(&rate.ended) - before) * 1e9 / (double)(ticks_ns() - from);
}

unsigned
five_ended(void)
{
  return atomic_load(&rate.ended);
}

void
five_end(void)
{
  atomic_store(&rate.stops, true);
  for (int i = 0; i < STARTERS; i++)
    pthread_join(rate.starters[i], NULL);
  WAIT_FOR(atomic_load(&rate.ended) >= atomic_load(&rate.began));
}

static double
run_runtime(struct scene *scene)
{
  five_begin(scene);
  double per_second = five_rate(scene);
  five_end();
  return per_second;
}

/* Operations a second. */
static double
run_floor(struct peer *floor, const char *workload, int ms)
{
  char answer[256];
  uint64_t operations = 0, syncs;
  int64_t ns = 0;

  if (!bench_peer_ask(floor, answer, sizeof answer, "begin %s %d 0", workload, IN_FLIGHT)
      || !bench_peer_ask(floor, answer, sizeof answer, "run %d", ms)
      || sscanf(answer, "%" SCNu64 " %" SCNd64 " %" SCNu64, &operations, &ns, &syncs) != 3)
    die("the floor: %s", floor->trouble);
  return ns > 0 ? (double)operations * 1e9 / (double)ns : 0;
}

static double
floor_rate(struct peer *floor, int ms)
{
  double turns = run_floor(floor, "turn", ms), work = run_floor(floor, "work", ms);

  return 1 / ((STEPS + 1) * 2 / turns + STEPS * 2 / work);
}

static void
start_floor(struct peer *floor, struct bench *bench, char store[600])
{
  char answer[512];

  snprintf(store, 600, "%s-floor", bench->store_name);
  if (!bench_peer_execute(floor, "the floor", bench->floor, store))
    die("the floor: %s", floor->trouble);
  for (size_t i = 0; i + 1 < bench->n_settings; i++)
    if (!bench_peer_ask(floor, answer, sizeof answer, "set %s=%s", bench->settings[i].key,
                        bench->settings[i].value.ptr))
      die("the floor: %s", floor->trouble);
  if (!bench_peer_ask(floor, answer, sizeof answer, "about"))
    die("the floor: %s", floor->trouble);
  printf("floor: %s\n", answer);
}

static void
tell_rate(struct bench *bench, double ours, double floor, double *ratios)
{
  double ratio = median_of(ratios, ROUNDS);

  printf("rate      %d activities in a row, %d at once: %.0f instances/s", STEPS, IN_FLIGHT, ours);
  if (floor <= 0) {
    puts(" (no floor was given)");
    return;
  }
  printf(", the floor %.0f: %.2f [%.2f, %.2f] (at least 0.5)", floor, ratio, ratios[0],
         ratios[ROUNDS - 1]);
  judge(bench, ratio >= 0.5);
}

void
bench_rate(struct bench *bench)
{
  struct peer floor = {.pid = -1};
  double ours[ROUNDS], theirs[ROUNDS] = {0}, ratios[ROUNDS] = {0};
  char store[600];

  if (bench->floor)
    start_floor(&floor, bench, store);
  struct scene scene = scene_open(bench, "rate");
  five_prepare(&scene);
  scene_start(&scene);
  for (int i = 0; i < ROUNDS; i++) {
    theirs[i] = bench->floor ? floor_rate(&floor, bench->slice_ms / 2) : 0;
    ours[i] = run_runtime(&scene);
    ratios[i] = theirs[i] > 0 ? ours[i] / theirs[i] : 0;
  }
  tell_rate(bench, median_of(ours, ROUNDS), median_of(theirs, ROUNDS), ratios);
  scene_close(&scene);
  bench_peer_end(&floor);
}
