/* SPDX-License-Identifier: Apache-2.0 */
/* A warm turn with 10,000 events against one with 10: see bench.h.
 *
 * Both wait for an event; each event is one turn.  They take turns, so that whatever else the
 * machine does meets both; each group has a small instance of its own. */
#include "core/runtime/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>

enum { LONG = 10000, SHORT = 10, AT_ONCE = 100, GROUPS = 7, TURNS = 7 };

static dk_result
nothing(dk_task *task, dk_str input)
{
  return dk_done(task, input);
}

/* A history of about that many events, then a turn for each "go". */
static dk_result
grow(dk_orch *o, dk_str input)
{
  int left = atoi(input.ptr) / 2;

  while (left > 0) {
    dk_future *all[AT_ONCE];
    int n = left < AT_ONCE ? left : AT_ONCE;
    for (int i = 0; i < n; i++)
      all[i] = dk_activity(o, "nothing", dk_str_of("0"));
    dk_all_of(o, all, (size_t)n);
    left -= n;
  }
  while (strcmp(dk_await(o, dk_external(o, "go")).ptr, "stop") != 0)
    continue;
  return dk_completed(o, input);
}

static uint64_t
events_of(struct scene *s, const char *name)
{
  struct dk_instance_info info = {.struct_size = sizeof info};

  return dk_client_status(s->client, dk_str_of(name), &info) == DK_OK ? info.n_events : 0;
}

struct measured {
  double whole, decided;  /* microseconds */
};

static struct measured
one_turn(struct scene *s, const char *name)
{
  struct turn_seen *seen = &turns_seen[number_of(dk_str_of(name))];
  unsigned before = atomic_load(&seen->n);

  if (dk_client_raise(s->client, dk_str_of(name), "go", dk_str_of("0")) != DK_OK)
    die("%s: %s", name, dk_client_error(s->client));
  WAIT_FOR(atomic_load(&seen->n) > before);
  if (!atomic_load(&seen->is_warm))
    die("a turn of %s was not warm", name);
  return (struct measured){(double)atomic_load(&seen->whole) / 1000,
                           (double)atomic_load(&seen->decided) / 1000};
}

struct group {
  double whole[2], decided[2];
};

static struct group
run_group(struct scene *s, int number)
{
  double whole[2][TURNS], decided[2][TURNS];
  char small[32];

  snprintf(small, sizeof small, "small-%d", number + 2);
  scene_begin(s, small, "grow", "10");
  WAIT_FOR(events_of(s, small) >= SHORT);
  one_turn(s, small);
  for (int i = 0; i < TURNS; i++)
    for (int big = 0; big < 2; big++) {
      struct measured m = one_turn(s, big ? "big-1" : small);
      whole[big][i] = m.whole;
      decided[big][i] = m.decided;
    }
  return (struct group){{median_of(whole[0], TURNS), median_of(whole[1], TURNS)},
                        {median_of(decided[0], TURNS), median_of(decided[1], TURNS)}};
}

void
bench_warm(struct bench *bench)
{
  double whole[2][GROUPS], decided[2][GROUPS], ratio[GROUPS];
  struct scene s = scene_open(bench, "warm");

  scene_orchestration(&s, "grow", grow);
  scene_activity(&s, "nothing", nothing);
  scene_start(&s);
  scene_begin(&s, "big-1", "grow", "10000");
  WAIT_FOR(events_of(&s, "big-1") >= LONG);
  one_turn(&s, "big-1");
  for (int i = 0; i < GROUPS; i++) {
    struct group g = run_group(&s, i);
    ratio[i] = g.whole[1] / g.whole[0];
    for (int big = 0; big < 2; big++) {
      whole[big][i] = g.whole[big];
      decided[big][i] = g.decided[big];
    }
  }
  double middle = median_of(ratio, GROUPS);
  printf("warm      a turn with %d events: %.0f us (%.0f before its commit), with %d: %.0f us"
         " (%.0f): %.2f [%.2f, %.2f] (at most 1.2)", LONG, median_of(whole[1], GROUPS),
         median_of(decided[1], GROUPS), SHORT, median_of(whole[0], GROUPS),
         median_of(decided[0], GROUPS), middle, ratio[0], ratio[GROUPS - 1]);
  judge(bench, middle <= 1.2);
  scene_close(&s);
}
