/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: what a runtime counts for graphs, and all its counts as Prometheus' text (0.0.4).
 *
 * The families, their labels and the labels' values are closed lists (metrics.c).  Only the names
 * of orchestrations and of activities come from elsewhere: the first METRIC_NAMES of each are
 * counted separately.  Later names are counted as "other", and so is what cannot be a name: too
 * long, not UTF-8, or with a NUL.
 *
 * Any thread may use it.  There is one lock, under which nothing is called and nothing is allocated
 * except for a new name.  The log counts what needs no name, without a lock.
 */
#ifndef DK_RUNTIME_SHARED_METRICS_H
#define DK_RUNTIME_SHARED_METRICS_H

#include "core/base/lock.h"
#include "core/base/names.h"
#include "core/runtime/format/event.h"

#include <stdatomic.h>

enum { METRIC_NAMES = 100, METRIC_BOUNDS = 14, METRIC_PATHS = 4 };

/* What a commit found when it cancelled an activity. */
enum cancel_phase {
  PHASE_QUEUED,   /* a row without a lease */
  PHASE_LOCKED,   /* a row that a worker has leased */
  PHASE_ABSENT,   /* no row: it had ended */
  PHASE_UNKNOWN,  /* the store did not report it */
  N_PHASES
};

enum { METRIC_CELLS = N_CODES * N_PHASES }; /* at most, for one name */

/* One family's counts by name. */
struct name_row {
  dk_str name;
  _Atomic uint64_t *cells;
};
struct by_name {
  size_t n_cells;                        /* of each name */
  struct names places;                   /* name_row by name */
  struct name_row *rows[METRIC_NAMES];   /* in the order of their first use */
  size_t n_rows;
  _Atomic uint64_t others[METRIC_CELLS]; /* of all other names */
};

/* Durations by their length. */
struct histogram {
  uint64_t within[METRIC_BOUNDS + 1]; /* up to this bound and above the one before */
  uint64_t sum_ns;
};

struct metrics {
  struct dk_lock lock;
  struct dk_arena arena;      /* names and their counts */
  struct by_name requests, cancelled;
  struct histogram notified[METRIC_PATHS];
};

void metrics_init(struct metrics *metrics);
void metrics_done(struct metrics *metrics);

/* Adds `n` requests to cancel instances of this orchestration (absent: unknown). */
void metrics_requested(struct metrics *metrics, enum request_source source,
                       enum request_outcome outcome, dk_str orchestration, uint64_t n);
/* A commit of this runtime has cancelled an activity. */
void metrics_cancelled(struct metrics *metrics, enum code code, enum cancel_phase phase,
                       dk_str activity);
/* The worker learnt this way (DK_LEARNT_BY_COMMIT to _DEADLINE) that an activity must end, and it
 * took `ns` nanoseconds. */
void metrics_notified(struct metrics *metrics, int32_t learnt, int64_t ns);

struct log;
/* Adds all families to the text; dk_text_failed reports a lack of memory. */
void metrics_write(struct log *log, struct dk_text *text);

#endif
