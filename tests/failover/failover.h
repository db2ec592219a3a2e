/* SPDX-License-Identifier: Apache-2.0 */
/* Workers under load whose server is lost and replaced by another.
 *
 *   main.c      the command: the load, what is done to the servers, and what must have become of it
 *   process.c   one worker: a runtime, until SIGTERM
 *
 * What the workers do is recorded in shared memory.  All that is done to the servers happens at a
 * point of the whole's progress (the orders that were done), except the promotion, which comes
 * after the time that an operator needs to notice the event. */
#ifndef DK_TESTS_FAILOVER_H
#define DK_TESTS_FAILOVER_H

#include <durakit/runtime.h>

#include <stdatomic.h>
#include <stdbool.h>

enum { MOST_ORDERS = 4096, STEPS = 5, MOST_WORKERS = 8 };

struct shared {
  atomic_uint begun[MOST_ORDERS][STEPS], ended[MOST_ORDERS][STEPS]; /* bodies of activities */
  atomic_uint n_done;             /* orders whose last activity has ended, each counted once */
  atomic_llong promoted_at;       /* real time in ms; 0: not yet */
  atomic_llong first_at;          /* the first activity that begins afterwards; 0: none yet */
};

struct run {
  const char *plugin;
  struct dk_setting *settings;
  size_t n_settings;
  struct shared *shared;
  int memory;                     /* the descriptor of `shared` */
  int workers, orders;
  int64_t promote_after_ms, patience_ms, most_ms; /* most_ms 0: how long it takes is not judged */
  const char *event, *promote, *back;             /* commands for sh; back may be NULL */
  char **arguments;               /* to start a worker with */
};

int64_t real_ms(void);
/* Opens the store; what the plugin logs goes to standard error, behind `who`.  Bails out. */
struct dk_store *open_store(const struct run *run, const char *who);
void close_store(struct dk_store *store);

/* ---- process.c ------------------------------------------------------------------------------- */

/* Returns the exit code: 0 if it was stopped. */
int run_worker(const struct run *run);

#endif
