/* SPDX-License-Identifier: Apache-2.0 */
/* An orchestration's code, run against its history.  Pure: no store, no clock, no lock; what goes
 * in decides what comes out.
 *
 * A run begins at the top of the function and goes as far as its history reaches; there it waits,
 * in a thread of its own (coroutine.h).  When the commit of its turn has landed it can be kept, and
 * the next turn goes on where it waits; else, after a restart, say, another run begins at the top
 * and comes to the same place.  Both decide alike: that is what the rules below are for.
 *
 * The rule (by position).  Each event of an execution has a position, its id.  `now` is the highest
 * position of an arrival or completion that the code has consumed so far.  await moves it there;
 * any and select take the first argument that is ready at or before `now`, else the smallest
 * position; nothing that does not wait looks beyond it.  So each decision depends on a prefix of an
 * append-only list only, and later events cannot change it.
 *
 * The other rule (one stream).  Whatever the code begins or says is a command; the k-th command of
 * a run must be the k-th command event of the history, compared at the call.  Commands of the
 * history that are left when the code returns or waits are nondeterminism too.
 */
#ifndef DK_RUNTIME_CODE_REPLAY_H
#define DK_RUNTIME_CODE_REPLAY_H

#include "core/runtime/format/event.h"

#include <stdbool.h>

struct history; /* an index of events, history.h */

/* What the code is run against. */
struct past {
  dk_str instance;
  uint64_t execution;
  const struct event *events;  /* of this execution, by id, without what arrives in this turn; one
                                  that cannot be decoded stays as EVENT_NONE with its id */
  size_t n_events;
  size_t n_committed;          /* so many of them are stored; 0 in an execution's first turn, whose
                                  only event is the EVENT_STARTED to be */
  const struct event *arrived; /* this turn's, of decision_stage; ids go on from events' */
  size_t n_arrived;
  const struct history *index; /* of decision_stage; NULL: made for this run */
  const struct dk_kv *kv;      /* the store's snapshot, of any time in this execution: what this
                                  execution has read or changed comes from its events */
  size_t n_kv;
  int64_t time;                /* the host's clock, for what is recorded in this turn */
  uint64_t seed;               /* for dk_random and dk_guid */
  uint32_t max_events;         /* of the execution; beyond it the turn ends as ENDING_LIMIT */
  uint64_t max_id, max_payload;  /* what the store takes (dk_limits); beyond: ENDING_LIMIT */
  uint64_t max_items;          /* likewise, in one commit: see decide() */
  bool has_kv, has_status, has_sessions;
  /* Non-zero: the code has run too long; asked at each call. */
  int32_t (*overdue)(void *context);
  void (*say)(void *context, int32_t level, dk_str line);
  /* The code begins to wait for this activity, and no longer than a timer of so many ms; where in
   * the source, NULL: not known. */
  void (*limited)(void *context, dk_str activity, int64_t ms, const char *line);
  void *context;
};

enum ending {
  ENDING_WAITS,           /* more has to happen */
  ENDING_COMPLETED,       /* text: the output */
  ENDING_FAILED,          /* text: the error, code: CODE_APPLICATION */
  ENDING_CONTINUED,       /* text: the input, version */
  ENDING_NONDETERMINISM,  /* text says which call, what the history has, what the code did */
  ENDING_LIMIT,           /* text says which */
  ENDING_WRONG_USE,       /* text says which call and why: fails the instance */
  ENDING_OVERDUE,         /* the turn is put off */
  ENDING_NO_MEMORY,       /* the turn is put off */
  ENDING_CORRUPT          /* the history makes no sense; text says where.  The code was not run */
};

struct ran {
  enum ending ending;
  enum code code;       /* of a failure: what its EVENT_FAILED tells */
  dk_str text, version;
  /* The commands that were made anew in this turn, in call order, with ids from the last event's
   * on; not the terminal event. */
  struct event *commands;
  size_t n_commands;
  /* Messages of queues that nobody took, in order, for the next execution. */
  struct carried *carried;
  size_t n_carried;
};

/* NULL: no memory. */
struct dk_orch *replay_new(dk_orchestration_fn *function);
/* One turn; what it gives lives until the next one, or until replay_free.  A pending cancel request
 * is the caller's business: this runs the code.  For a turn behind the first see replay_fits. */
void replay_turn(struct dk_orch *run, const struct past *past, struct ran *ret_ran);
/* It waits: it may be kept. */
bool replay_waits(const struct dk_orch *run);
/* It waits, and what was committed since its last turn is what that turn has said: the same index,
 * settled with the arrivals and the commands.  What the events of that turn tell (texts) has to
 * live as long as the run. */
bool replay_fits(const struct dk_orch *run, const struct past *past);
size_t replay_bytes(const struct dk_orch *run); /* of memory, about */
void replay_free(struct dk_orch *run);          /* NULL is allowed */

#endif
