/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes in a storm: many processes on one store, some of them killed, one stopped, the store
 * unreachable for a while, cancellations requested; and the required end of each orchestration.
 *
 *   main.c      the command, the processes, and what is done to them
 *   process.c   one process: a runtime, until SIGTERM
 *   shapes.c    the orchestrations and activities
 *   judge.c     what must hold at the end, from the histories and the queues
 *
 * What the processes have done is in shared memory, so that what a killed one has done
 * is counted too.  All that is done to them happens at a point of the whole's progress (the steps
 * that were run for the first time), so that it hits the middle on a slow machine as on a fast one.
 */
#ifndef DK_TESTS_STORM_H
#define DK_TESTS_STORM_H

#include <durakit/runtime.h>

#include <stdatomic.h>
#include <stdbool.h>

enum {
  MOST_INSTANCES = 4096,
  MOST_STEPS = 8,      /* of one instance */
  MOST_PROCESSES = 16,
  NUMBERS = 32,        /* of log events */
  LEVELS = 5,
  CAUSES = 4
};

/* What an instance does: its number decides. */
enum shape {
  FIVE,     /* five activities, one after the other */
  FAN,      /* five at once */
  SELECT,   /* one that does not end, against a timer */
  CHILD,    /* a child that does FIVE */
  HOLD,     /* waits for what never comes: it is cancelled */
  SHAPES
};

struct shared {
  atomic_uint runs[2 * MOST_INSTANCES][MOST_STEPS]; /* children: from MOST_INSTANCES on */
  atomic_uint n_first, n_runs;  /* steps that were run for the first time; and at all */
  atomic_uint numbers[NUMBERS], levels[LEVELS], causes[CAUSES];
  atomic_uint wrongly_cancelled; /* activities that were notified without a cancellation */
  atomic_uint not_given_back;    /* by those that stopped in good order */
  atomic_bool is_away;
};

struct run {
  const char *plugin;
  struct dk_setting *settings;
  size_t n_settings;
  struct shared *shared;
  int memory;                 /* the descriptor of `shared` */
  int processes, kills, instances;
  int64_t lock_ms, away_ms, stop_ms, patience_ms;
  bool by_renewal;            /* no local signal */
  const char *away, *back;    /* commands for sh; NULL: by a store in front of each */
  char **arguments;           /* to start another process with */
};

/* ---- shapes.c -------------------------------------------------------------------------------- */

/* "i-12", and its child "c-12".  -1: neither; children count from MOST_INSTANCES on. */
void instance_name(char name[16], int number);
int instance_number(dk_str name);
enum shape instance_shape(int number);
const char *shape_name(enum shape shape);
/* Steps that are run at least once, whatever happens, in an instance and its child. */
int shape_steps(enum shape shape);
bool register_shapes(struct dk_registry *registry, struct shared *shared);

/* ---- process.c ------------------------------------------------------------------------------- */

/* Returns the exit code: 0 if it was stopped, and nothing is left. */
int run_process(const struct run *run);

/* ---- judge.c --------------------------------------------------------------------------------- */

/* The points of the test. */
void judge(const struct run *run, struct dk_store *store);

#endif
