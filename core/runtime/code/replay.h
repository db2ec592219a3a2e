/* SPDX-License-Identifier: Apache-2.0 */
/* An orchestration's code, run against its history.  Pure: no store, no clock, no lock; the result
 * depends only on the arguments.
 *
 * A run begins at the top of the function and continues as far as its history reaches; there it
 * waits, in its own thread (coroutine.h).  When the commit of its turn has succeeded the run can be
 * kept, and the next turn continues where it waits.  Otherwise, for example after a restart,
 * another run begins at the top and comes to the same place.  The rules below ensure that both
 * decide alike.
 *
 * The rule (by position).  Each event of an execution has a position, its id.  `now` is the highest
 * position of an arrival or completion that the code has consumed so far.  await moves it there;
 * any and select take the first argument that is ready at or before `now`, else the smallest
 * position; calls that do not wait look no further.  So each decision depends only on a prefix of
 * an append-only list, and later events cannot change it.
 *
 * The other rule (one stream).  Everything that the code begins or records is a command; the k-th
 * command of a run must be the k-th command event of the history, compared at the call.  If
 * commands of the history are left when the code returns or waits, that is nondeterminism too.
 */
#ifndef DK_RUNTIME_CODE_REPLAY_H
#define DK_RUNTIME_CODE_REPLAY_H

#include "core/runtime/format/event.h"

#include <stdbool.h>

struct history; /* an index of events: history.h */

/* The input of a run. */
struct past {
  dk_str instance;
  uint64_t execution;
  const struct event *events;  /* of this execution, by id, without the arrivals of this turn; one
                                  that cannot be decoded is EVENT_NONE with its id */
  size_t n_events;
  size_t n_committed;          /* how many of them are stored; 0 in an execution's first turn, whose
                                  only event is the EVENT_STARTED, not yet stored */
  const struct event *arrived; /* this turn's, from decision_stage; their ids continue those of
                                  events */
  size_t n_arrived;
  const struct history *index; /* from decision_stage; NULL: made for this run */
  const struct dk_kv *kv;      /* the store's snapshot, from any time in this execution: what this
                                  execution has read or changed is in its events */
  size_t n_kv;
  int64_t time;                /* the host's clock, for what is recorded in this turn */
  uint64_t seed;               /* for dk_random and dk_guid */
  uint32_t max_events;         /* of the execution; with more the turn ends as ENDING_LIMIT */
  uint64_t max_id, max_payload;  /* the store's limits (dk_limits); beyond: ENDING_LIMIT */
  uint64_t max_items;          /* likewise, in one commit: see decide() */
  bool has_kv, has_status, has_sessions;
  /* Non-zero: the code has run too long; checked at each call. */
  int32_t (*overdue)(void *context);
  void (*say)(void *context, int32_t level, dk_str line);
  /* The code begins to wait for this activity, with a timer of `ms` as its limit; `line` is the
   * source line; NULL: unknown. */
  void (*limited)(void *context, dk_str activity, int64_t ms, const char *line);
  void *context;
};

enum ending {
  ENDING_WAITS,           /* it waits for more events */
  ENDING_COMPLETED,       /* text: the output */
  ENDING_FAILED,          /* text: the error, code: CODE_APPLICATION */
  ENDING_CONTINUED,       /* text: the input, version */
  ENDING_NONDETERMINISM,  /* text has the call, what the history has, what the code did */
  ENDING_LIMIT,           /* text says which */
  ENDING_WRONG_USE,       /* text has the call and the cause: fails the instance */
  ENDING_OVERDUE,         /* the turn is delayed */
  ENDING_NO_MEMORY,       /* the turn is delayed */
  ENDING_CORRUPT          /* the history is invalid; text says where.  The code was not run */
};

struct ran {
  enum ending ending;
  enum code code;       /* of a failure: the code of its EVENT_FAILED */
  dk_str text, version;
  /* The new commands of this turn, in call order, with ids that continue after the last event;
   * without the terminal event. */
  struct event *commands;
  size_t n_commands;
  /* Messages of queues that were not taken, in order, for the next execution. */
  struct carried *carried;
  size_t n_carried;
};

/* NULL: no memory. */
struct dk_orch *replay_new(dk_orchestration_fn *function);
/* Runs one turn; the result is valid until the next one, or until replay_free.  The caller handles
 * a pending cancel request: this runs the code.  For a turn after the first see replay_fits. */
void replay_turn(struct dk_orch *run, const struct past *past, struct ran *ret_ran);
/* True if it waits: then it may be kept. */
bool replay_waits(const struct dk_orch *run);
/* True if it waits, and exactly what its last turn produced was committed since: the same index,
 * settled with the arrivals and the commands.  The texts of that turn's events must be valid as
 * long as the run. */
bool replay_fits(const struct dk_orch *run, const struct past *past);
size_t replay_bytes(const struct dk_orch *run); /* of memory, approximately */
void replay_free(struct dk_orch *run);          /* NULL is allowed */

#endif
