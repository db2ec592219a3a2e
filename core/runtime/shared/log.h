/* SPDX-License-Identifier: Apache-2.0 */
/* The log: what a runtime reports (log events with numbers) and counts.
 *
 * Any thread may use it; it has no lock: counters are atomic, and the log function is the user's.
 * Counts by name, and durations, are in the metrics (metrics.h).
 */
#ifndef DK_RUNTIME_SHARED_LOG_H
#define DK_RUNTIME_SHARED_LOG_H

#include <durakit/runtime.h>

#include <stdatomic.h>

#include "core/runtime/shared/metrics.h"
#include "core/runtime/shared/retry-counts.h"
#include "core/runtime/shared/store-health.h"

/* Those of struct dk_counters, in its order, then those that only the metrics show. */
enum counter {
  COUNT_TURNS_COMMITTED,
  COUNT_TURNS_DROPPED,
  COUNT_TURNS_STALLED,
  COUNT_TURNS_LOST,
  COUNT_ORCHESTRATIONS_COMPLETED,
  COUNT_ORCHESTRATIONS_FAILED,
  COUNT_ORCHESTRATIONS_CANCELLED,
  COUNT_ORCHESTRATIONS_CONTINUED,
  COUNT_ACTIVITIES_STARTED,
  COUNT_ACTIVITIES_COMPLETED,
  COUNT_ACTIVITIES_FAILED,
  COUNT_ACTIVITIES_CANCELLED,
  COUNT_ACTIVITIES_LOST,
  COUNT_ACTIVITIES_PUT_OFF,
  COUNT_RESULTS_REFUSED,
  COUNT_RENEWALS,
  COUNT_RENEWALS_RETRIED,
  COUNT_RENEWALS_LOST,
  COUNT_ACKS_RETRIED,
  COUNT_LEARNT_BY_COMMIT,
  COUNT_LEARNT_BY_RENEWAL,
  COUNT_LEARNT_BY_ACK,
  COUNT_LEARNT_BY_DEADLINE,
  COUNT_GRACE_KEPT,
  COUNT_GRACE_EXCEEDED,
  COUNT_QUARANTINED_NOW,
  COUNT_STRAYS,
  COUNT_MESSAGES_DROPPED,
  COUNT_COLD_TURNS,
  COUNT_WARM_TURNS,
  N_TOLD_COUNTERS,
  COUNT_GRACE_QUARANTINED = N_TOLD_COUNTERS,
  COUNT_GRACE_KILLED,
  COUNT_WORK_ACKS_OK,
  COUNT_WORK_ACKS_REFUSED,
  COUNT_WORK_ACKS_RETRIED,
  COUNT_WORK_ACKS_LOST,
  COUNT_WORK_ACKS_UNKNOWN,
  COUNT_WORK_ACKS_ERROR,
  COUNT_FAILED,                           /* of orchestrations, by their enum code; from here on */
  COUNT_DELAYED = COUNT_FAILED + N_CODES, /* by their enum stall */
  N_COUNTERS = COUNT_DELAYED + N_DELAYS
};

struct log {
  dk_log_fn *function; /* NULL: warnings and errors to standard error */
  void *context;
  const char *worker;
  _Atomic uint64_t counters[N_COUNTERS];
  struct metrics metrics;
  struct health health; /* how the store answers: decides what must be logged */
};

void log_init(struct log *log, dk_log_fn *function, void *context, const char *worker);
void log_done(struct log *log);
void log_count(struct log *log, enum counter counter);
void log_uncount(struct log *log, enum counter counter); /* for gauges */
uint64_t log_counted(const struct log *log, enum counter counter);
void log_read(const struct log *log, struct dk_counters *ret_counters);
/* Logs the event; level (by its number), worker and text are filled in where they are absent.  A
 * level that is set is used (DK_LEVEL_TRACE for a repetition).  DK_LOG_TEXT has no level by its
 * number: set one; 0 is debug.  The text is one line for people to read:
 *
 *   instance order-1, activity 3 (charge): TEXT [cancelled, learnt by a renewal, DK_LOCK_LOST]
 *
 * where TEXT comes from the format, and the rest from the event's members: use a member where there
 * is one, and do not repeat it in the text. */
void log_report(struct log *log, const struct dk_log_event *event, const char *format, ...)
    DK_PRINTF(3, 4);

#endif
