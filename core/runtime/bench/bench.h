/* SPDX-License-Identifier: Apache-2.0 */
/* `make bench-runtime`: figures of the runtime on a provider, each with its target and whether that
 * was reached; the exit code is 1 if one was missed.  The figures of a busy machine mean nothing.
 *
 *   main.c    the command, stores and runtimes
 *   rate.c    five activities one after the other, 64 instances at once, against the floor
 *   warm.c    a warm turn with a long history against one with a short one
 *   told.c    from the commit that cancels to the activity's token
 *   back.c    the rate of other work before and after many activities were cancelled at once
 *   many.c    lists and prunes of large stores, where the provider offers durakit.admin/1
 */
#ifndef DK_RUNTIME_BENCH_BENCH_H
#define DK_RUNTIME_BENCH_BENCH_H

#include <durakit/runtime.h>

#include <stdatomic.h>
#include <stdbool.h>

#include "core/runtime/shared/ticks.h"

enum { SLOTS = 32, MOST_SETTINGS = 8 };

struct bench {
  const char *floor, *only;    /* the program, NULL: none; the part, NULL: all */
  struct dk_library *library;
  struct dk_setting settings[MOST_SETTINGS];
  size_t n_settings;           /* the last one identifies the store */
  char store_name[512], place[600];  /* as it was given; and with a scene's name */
  int slice_ms;
  unsigned instances;          /* of the large store */
  bool has_missed;             /* a target */
};

/* A store of its own with a runtime on it. */
struct scene {
  struct bench *bench;
  struct dk_store *store;
  struct dk_caller *caller;
  struct dk_registry *registry;
  struct dk_runtime_options options;
  struct dk_runtime *runtime;
  struct dk_client *client;
};

/* Each of these ends the program with a message if it fails. */
struct scene scene_open(struct bench *bench, const char *name);
void scene_orchestration(struct scene *scene, const char *name, dk_orchestration_fn *function);
void scene_activity(struct scene *scene, const char *name, dk_activity_fn *function);
void scene_start(struct scene *scene);
void scene_close(struct scene *scene);
void scene_begin(struct scene *scene, const char *instance, const char *name, const char *input);
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);
/* Ends the line of a figure: "reached" or "missed". */
void judge(struct bench *bench, bool is_reached);
/* Checks the condition until it holds. */
#define WAIT_FOR(condition)                                                                        \
  do {                                                                                             \
    int64_t until_ = ticks_ns() + 300 * INT64_C(1000000000);                                       \
    while (!(condition))                                                                           \
      if (ticks_ns() > until_)                                                                     \
        die("waited too long for: %s", #condition);                                                \
      else                                                                                         \
        pause_a_moment();                                                                          \
  } while (0)
void pause_a_moment(void);
double median_of(double *values, size_t n);                   /* sorts them, */
double quantile_of(const double *sorted, size_t n, double q); /* as this wants them */

/* The last turn of an instance that was committed ("NAME-NUMBER" with a number below MOST_NUMBERS),
 * as seen at the store's door. */
enum { MOST_NUMBERS = 4096 };
struct turn_seen {
  atomic_uint n;                   /* how many */
  _Atomic int64_t committed_at;    /* when the commit returned, ns */
  _Atomic int64_t decided, whole;  /* from the fetch to the commit's call, and to its end, ns */
  atomic_bool is_warm;
};
extern struct turn_seen turns_seen[MOST_NUMBERS];
int number_of(dk_str instance);

void bench_rate(struct bench *bench);
void bench_warm(struct bench *bench);
void bench_told(struct bench *bench);
void bench_back(struct bench *bench);
void bench_pages(struct bench *bench);
void bench_prune(struct bench *bench);

/* rate.c: instances of five activities that do nothing, one after the other, IN_FLIGHT at once.
 * From five_begin, which waits until they flow, to five_end; how many end per second in one
 * slice. */
enum { IN_FLIGHT = 64 };
void five_prepare(struct scene *scene); /* before scene_start */
void five_begin(struct scene *scene);
double five_rate(const struct scene *scene);
void five_end(void);
unsigned five_ended(void);               /* so far */

#endif
