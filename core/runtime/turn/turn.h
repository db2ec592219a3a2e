/* SPDX-License-Identifier: Apache-2.0 */
/* A job: one fetched turn on its way to a commit, or back into the queue.
 *
 *   turn-inbox.c       what the messages say
 *   stored-delays.c      what begins the execution, delayed in the store
 *   turn-history.c        the history: from memory, from the fetch, or read
 *   turn-decide.c    the code is run, and what it did becomes a decision
 *   turn-commit.c  the decision becomes a commit, tried until the lease ends
 *   commit-count.c    what the commit has done is counted
 *   short-limits.c      limits that are too short are told
 *   turn.c         the order of these, and what becomes of the turn
 *
 * A job belongs to one seat's thread.  What it shares with others is in struct turning.
 */
#ifndef DK_RUNTIME_TURN_TURN_H
#define DK_RUNTIME_TURN_TURN_H

#include "core/runtime/activity/activity-pool.h"
#include "core/runtime/code/decision.h"
#include "core/runtime/code/registry.h"
#include "core/runtime/lease/leases.h"
#include "core/runtime/shared/retry-counts.h"
#include "core/runtime/turn/delayed-starts.h"
#include "core/runtime/turn/history-cache.h"
#include "core/runtime/turn/short-limits.h"

/* What all turns of a runtime share. */
struct turning {
  struct dk_store *store;
  const struct dk_runtime_options *options;
  struct keeper *keeper;
  struct journal *journal;
  struct worker *worker;
  dk_str owner;
  struct cache *cache;
  struct notes *notes;
  struct limits *too_short;  /* limits of activities that were told of */
  struct parking *parking;
  struct dk_limits limits;
  bool has_kv, has_status, has_sessions, has_admin;
  atomic_int cold_fetches;   /* so many fetches do without the owner: a cached copy is gone, and
                                only a fetch brings the key-values */
  atomic_int whole_fetches;  /* so many fetches bring all messages: what begins an execution stands
                                behind more than max_messages */
};

/* What becomes of a turn. */
enum fate {
  FATE_COMMITTED,
  FATE_STALLED,   /* given back with a delay; job->stall says why */
  FATE_WAITS,     /* given back for job->wait_ms, not counted: what it needs is delayed */
  FATE_AGAIN,     /* given back at once, its attempt not counted */
  FATE_DROPPED,   /* the store could not be reached while the lease lived */
  FATE_LOST,      /* the lease is somebody else's, or its commit may have landed */
  FATE_TOO_LATE,  /* its code was stuck, and the lease was not kept any more */
  FATE_LEFT       /* the runtime has gone without this thread: nothing of it may be touched */
};

/* A message that does nothing, told once the turn's commit has landed. */
struct stray {
  const char *kind, *why;
  bool is_unreadable;
};

/* Of one that asked for no version, where none is registered. */
#define NO_VERSION "0.0.0"

struct seat;
struct job {
  struct turning *w;
  struct seat *seat;
  struct dk_caller *caller;
  struct dk_arena arena;
  const struct dk_turn *turn;
  dk_str instance;
  struct lease *lease;
  atomic_bool is_lost;       /* the keeper's word */
  int64_t now;               /* the store's clock at the claim: for all that this turn decides */
  struct asker commits;
  bool is_unsure;            /* a commit may have landed */
  bool is_whole;             /* fetched with all messages that are due */

  /* The inbox. */
  struct message *messages;  /* in order; those that nobody has to look at are of no kind */
  size_t n_messages;
  const char *unreadable;    /* why one of them cannot be read; NULL: all can */
  size_t n_reasons;          /* messages that tell why it was delayed */
  uint32_t attempt;          /* the highest count of deliveries, */
  uint32_t least_attempt;    /* the lowest, */
  uint32_t start_attempt;    /* and that of the start */
  dk_str stored_start;       /* the id of a delayed start that this turn takes along; or absent */
  int64_t wait_ms;           /* for FATE_WAITS */
  struct stray *strays;
  size_t n_strays;

  /* The past. */
  struct remembered *memory;
  uint64_t execution;
  size_t n_committed;
  bool is_first;             /* of its execution */
  const struct event *started;  /* in memory, or in the arena */
  dk_str name;               /* of the orchestration, for the log */
  const char *corrupt;       /* why the history, or what begins it, cannot be read */

  /* The decision. */
  struct staged staged;
  struct decision decision;

  enum stall stall;
  char words[512];
};

/* From the fetched turn to its end. */
void job_run(struct job *job);

/* Says why, and gives the fate back. */
enum fate job_stalled(struct job *job, enum stall why, const char *format, ...)
  DK_PRINTF(3, 4);
/* Does it fail for that, in place of being delayed?  Only where the options want it. */
bool job_fails(const struct job *job, enum stall why);
/* The count of deliveries that counts against the turn. */
uint32_t job_judged(const struct job *job);
void job_stray(struct job *job, const char *kind, const char *why, bool is_unreadable);
/* A log event about the job. */
struct dk_log_event job_event(const struct job *job, int32_t number);

/* turn-inbox.c: DK_OK or DK_NO_MEMORY. */
dk_status inbox_read(struct job *job);
/* Takes the first message of that kind and execution out of the inbox; false: there is none. */
bool inbox_take(struct job *job, enum message_kind kind, uint64_t execution,
                struct message *ret_message, uint32_t *ret_attempt);
bool inbox_has(const struct job *job, enum message_kind kind);

/* stored-delays.c: the message of this id that is stored for the instance and not in its turn.
 * *ret_message NULL: there is none, or the provider cannot tell. */
enum fate stored_find(struct job *job, dk_str id, const struct dk_message **ret_message);
/* What has come waits until that message does. */
enum fate stored_wait_for(struct job *job, const struct dk_message *message);
/* What the start says; one that cannot be read has a name that says so.  DK_OK, DK_NO_MEMORY. */
dk_status stored_read_start(struct job *job, const struct dk_message *message,
                            struct message *ret_start);
/* The turn was given back with a delay: why is stored. */
void stored_tell_why(struct job *job);
/* The commit of the decision removes the delayed start, too. */
dk_status stored_take_along(struct job *job);

/* turn-history.c: FATE_COMMITTED here says: go on. */
enum fate past_load(struct job *job);
/* The first event of a new execution; FATE_COMMITTED: go on. */
enum fate past_begin(struct job *job, uint64_t execution, const struct event *started);
/* The parent of an instance that is over. */
enum fate past_parent(struct job *job, struct parent *ret_parent);

/* turn-decide.c */
enum fate decide_turn(struct job *job);
/* The decision anew: failed by the runtime.  DK_OK or DK_NO_MEMORY. */
dk_status decide_failure(struct job *job, enum code code, dk_str text);

/* turn-commit.c */
enum fate commit_decision(struct job *job);
/* Removes messages that only tell why something was delayed. */
enum fate commit_reasons(struct job *job);
/* Removes the messages, sends the answers, touches nothing else. */
enum fate commit_nothing(struct job *job, const struct outgoing *answers, size_t n_answers);

/* short-limits.c, for struct past: told once, if the limit cannot survive a lost worker. */
void job_limited(void *job, dk_str activity, int64_t ms, const char *line);

/* commit-count.c, for metrics.h: */
/* The activities whose rows a commit has deleted; before its memory goes back into the cache. */
void count_cancelled(struct job *job, const struct dk_commit_outcome *outcome);
/* The requests to cancel that it has taken. */
void count_requests(struct job *job);

#endif
