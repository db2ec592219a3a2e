/* SPDX-License-Identifier: Apache-2.0 */
/* A turn: one fetched turn on its way to a commit, or back into the queue.
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
 * A turn belongs to one thread's thread.  What it shares with others is in struct turning.
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
struct turn_shared {
  struct dk_store *store;
  const struct dk_runtime_options *options;
  struct leases *leases;
  struct log *log;
  struct activity_pool *activities;
  dk_str owner;
  struct cache *cache;
  struct retry_counts *retries;
  struct short_limits *too_short; /* limits of activities that were told of */
  struct delayed_starts *delayed_starts;
  struct dk_limits limits;
  bool has_kv, has_status, has_sessions, has_admin;
  atomic_int cold_fetches;   /* so many fetches do without the owner: a cached copy is gone, and
                                only a fetch brings the key-values */
  atomic_int whole_fetches;  /* so many fetches bring all messages: what begins an execution stands
                                behind more than max_messages */
};

/* What becomes of a turn. */
enum fate {
  FATE_GOES_ON,   /* nothing yet: the next step decides */
  FATE_COMMITTED,
  FATE_DELAYED,  /* given back with a delay; turn->stall says why */
  FATE_WAITS,    /* given back for turn->wait_ms, not counted: what it needs is delayed */
  FATE_AGAIN,    /* given back at once, its attempt not counted */
  FATE_DROPPED,  /* the store could not be reached while the lease lived */
  FATE_LOST,     /* the lease is somebody else's, or its commit may have landed */
  FATE_TOO_LATE, /* its code was stuck, and the lease was not kept any more */
  FATE_LEFT      /* the runtime has gone without this thread: nothing of it may be touched */
};

/* A message that does nothing, told once the turn's commit has landed. */
struct stray {
  const char *kind, *why;
  bool is_unreadable;
};

/* Of one that asked for no version, where none is registered. */
#define NO_VERSION "0.0.0"

struct turn_thread;
struct turn {
  struct turn_shared *shared;
  struct turn_thread *thread;
  struct dk_caller *caller;
  struct dk_arena arena;
  const struct dk_turn *fetched;
  dk_str instance;
  struct lease *lease;
  atomic_bool is_lost;       /* the leases' word */
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
  size_t n_taken;            /* detached starts that were left out of the commit */

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

  enum delay delay_why;
  char words[512];
};

/* From the fetched turn to its end. */
void turn_run(struct turn *turn);

/* Says why, and gives the fate back. */
enum fate turn_delay(struct turn *turn, enum delay why, const char *format, ...) DK_PRINTF(3, 4);
/* Does it fail for that, in place of being delayed?  Only where the options want it. */
bool turn_fails(const struct turn *turn, enum delay why);
/* The count of deliveries that counts against the turn. */
uint32_t turn_judged(const struct turn *turn);
void turn_stray(struct turn *turn, const char *kind, const char *why, bool is_unreadable);
/* A log event about the turn. */
struct dk_log_event turn_event(const struct turn *turn, int32_t number);

/* turn-inbox.c: DK_OK or DK_NO_MEMORY. */
dk_status turn_inbox_read(struct turn *turn);
/* Takes the first message of that kind and execution out of the inbox; false: there is none. */
bool turn_inbox_take(struct turn *turn, enum message_kind kind, uint64_t execution,
                     struct message *ret_message, uint32_t *ret_attempt);
bool turn_inbox_has(const struct turn *turn, enum message_kind kind);

/* stored-delays.c: the message of this id that is stored for the instance and not in its turn.
 * *ret_message NULL: there is none, or the provider cannot tell. */
enum fate stored_find(struct turn *turn, dk_str id, const struct dk_message **ret_message);
/* What has come waits until that message does. */
enum fate stored_wait_for(struct turn *turn, const struct dk_message *message);
/* What the start says; one that cannot be read has a name that says so.  DK_OK, DK_NO_MEMORY. */
dk_status stored_read_start(struct turn *turn, const struct dk_message *message,
                            struct message *ret_start);
/* The turn was given back with a delay: why is stored. */
void stored_tell_why(struct turn *turn);
/* The commit of the decision removes the delayed start, too. */
dk_status stored_take_along(struct turn *turn);

/* turn-history.c; FATE_GOES_ON: it is loaded. */
enum fate turn_load_history(struct turn *turn);
/* Begins a new execution with its first event; FATE_GOES_ON: it has begun. */
enum fate turn_begin_history(struct turn *turn, uint64_t execution, const struct event *started);
/* The parent of an instance that is over. */
enum fate turn_load_parent(struct turn *turn, struct parent *ret_parent);

/* turn-decide.c */
enum fate turn_decide(struct turn *turn);
/* The decision anew: failed by the runtime.  DK_OK or DK_NO_MEMORY. */
dk_status turn_decide_failure(struct turn *turn, enum code code, dk_str text);

/* turn-commit.c */
enum fate turn_commit(struct turn *turn);
/* Removes messages that only tell why something was delayed. */
enum fate turn_commit_reasons(struct turn *turn);
/* Removes the messages, sends the answers, touches nothing else. */
enum fate turn_commit_nothing(struct turn *turn, struct outgoing *answers, size_t n_answers);

/* short-limits.c, for struct past: told once, if the limit cannot survive a lost worker. */
void turn_note_limit(void *turn, dk_str activity, int64_t ms, const char *line);

/* commit-count.c, for metrics.h: */
/* The activities whose rows a commit has deleted; before its memory goes back into the cache. */
void commit_count_cancelled(struct turn *turn, const struct dk_commit_outcome *outcome);
/* The requests to cancel that it has taken. */
void commit_count_requests(struct turn *turn);

#endif
