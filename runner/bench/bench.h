/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit bench`: workloads on a provider, side by side with a floor if there is one.
 *
 * Both sides are processes that speak the same protocol of lines, so that slices can take turns:
 *
 *   set KEY=VALUE             ok                               floors only, first: a setting
 *   about                     ok TEXT                          what it is, settings read back
 *   begin WORKLOAD A B        ok                               a new store, made ready
 *   run MS                    ok OPERATIONS NANOSECONDS SYNCS  as many as fit; `cancel`: one
 *
 * "no TEXT" is the answer to a request that failed, and the last answer.  The end of the input ends
 * the process, which removes its store.  A is the number of callers ("turn", "work"), or of rows
 * that the workload changes; B is the number of other rows.
 */
#ifndef DK_RUNNER_BENCH_BENCH_H
#define DK_RUNNER_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <durakit/host.h>

/* ---- bench.c --------------------------------------------------------------------------------- */

struct options;
int command_bench(const struct options *options);
/* The names for `bench --only`; NULL after the last. */
const char *bench_name(size_t i);

/* ---- bench-figures.c ------------------------------------------------------------------------- */

/* The median, and an interval that contains the true median in at least 95 of 100 runs (all values,
 * if there are too few). */
struct figures {
  double median, low, high;
};
struct figures bench_figures(double *values, size_t n); /* sorts them */

/* ---- bench-peer.c ---------------------------------------------------------------------------- */

struct peer {
  const char *name;
  pid_t pid;
  FILE *to, *from;
  char trouble[512]; /* why it no longer answers; "": it does */
  void (*on_wait)(void *context); /* called each second of a wait for it; NULL: not used */
  void *context;
};

/* Start a peer: a child runs `serve` with a provider's store, or executes `program` with the path
 * of a store. */
typedef void serve_fn(FILE *from, FILE *to, void *context);
bool bench_peer_fork(struct peer *peer, const char *name, serve_fn *serve, void *context);
bool bench_peer_execute(struct peer *peer, const char *name, const char *program,
                        const char *store);
/* Sends a line; false: `trouble` says what came instead of an "ok". */
__attribute__((format(printf, 4, 5))) bool
bench_peer_ask(struct peer *peer, char *ret_answer, size_t size, const char *format, ...);
void bench_peer_end(struct peer *peer);

/* ---- bench-serve.c: the provider's side of the protocol, in a child -------------------------- */

struct bench_provider {
  const char *plugin;          /* absolute */
  struct dk_setting *settings; /* the STORE parameter is the last, if the plugin has one */
  size_t n_settings;
};
serve_fn bench_serve; /* context: struct bench_provider */

/* ---- bench-load.c: the workloads on a store -------------------------------------------------- */

enum { BENCH_CALLERS = 64 };

struct load {
  struct dk_store *store;
  struct dk_caller *callers[BENCH_CALLERS];
  const struct workload *workload;
  int64_t a, b;                   /* of "begin" */
  int64_t ends_ns;                /* of the slice, on CLOCK_MONOTONIC */
  _Atomic uint64_t operations;
  uint64_t syncs;                 /* of the slice */
  _Atomic int64_t left;           /* work items that were there when the slice began */
  _Atomic uint64_t sequence;      /* activities, and executions of callers, that are new */
  char trouble[512];              /* the first failure; "": none */
  _Atomic bool failed;
};
/* All return false, with `trouble`, if something fails. */
bool bench_load_begin(struct load *load, const char *workload, int64_t a, int64_t b);
bool bench_load_run(struct load *load, int64_t ms, int64_t *ret_ns);

#endif
