/* SPDX-License-Identifier: Apache-2.0 */
/* A turn: one fetched turn until its commit, or until it is given back.
 *
 *   turn.c            the order of the steps, and the outcome of the turn
 *   turn-inbox.c      decodes the messages
 *   stored-delays.c   finds what is delayed in the store: the start, the reasons of delays
 *   turn-history.c    loads the history: from the cache, from the fetch, or by reading it
 *   turn-decide.c     runs the code, and makes a decision from what it did
 *   turn-commit.c     commits the decision, and repeats that until the lease ends
 *   commit-count.c    counts what the commit has done
 *   short-limits.c    logs limits that are too short
 *
 * A turn belongs to one turn thread.  What turns share is in struct turn_shared.
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
  struct short_limits *too_short; /* limits of activities that were logged */
  struct delayed_starts *delayed_starts;
  struct dk_limits limits;
  bool has_kv, has_status, has_sessions, has_admin;
  atomic_int cold_fetches;   /* how many fetches to make without the owner: a cached copy was lost,
                                and only a fetch returns the key-values */
  atomic_int whole_fetches;  /* how many fetches must return all messages: the one that begins an
                                execution comes after more than max_messages */
};

/* The outcome of a turn or of one of its steps. */
enum fate {
  FATE_GOES_ON,   /* nothing yet: the next step decides */
  FATE_COMMITTED,
  FATE_DELAYED,  /* given back with a delay; turn->delay is the reason */
  FATE_WAITS,    /* given back for turn->wait_ms, not counted: a message that it needs is delayed */
  FATE_AGAIN,    /* given back without a delay, not counted */
  FATE_DROPPED,  /* the store was unreachable until the lease ended */
  FATE_LOST,     /* the lease is lost, or its commit might have succeeded */
  FATE_TOO_LATE, /* its code was stuck, and its lease was given up */
  FATE_LEFT      /* the runtime was freed without this thread: nothing of it may be used */
};

/* A message without an effect, logged once the turn's commit has succeeded. */
struct stray {
  const char *kind, *why;
  bool is_unreadable;
};

/* The version of an instance that requested none, if none is registered. */
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
  atomic_bool is_lost;       /* set by the leases */
  int64_t now;               /* the store's clock at the claim: for everything that this turn
                                decides */
  struct asker commits;
  bool is_unsure;            /* a commit might have succeeded */
  bool is_whole;             /* fetched with all due messages */

  /* The inbox. */
  struct message *messages;  /* in order; MESSAGE_NONE: already handled */
  size_t n_messages;
  const char *unreadable;    /* why one of them cannot be read; NULL: all can */
  size_t n_reasons;          /* messages that are reasons of a delay */
  uint32_t attempt;          /* the highest count of deliveries, */
  uint32_t least_attempt;    /* the lowest, */
  uint32_t start_attempt;    /* and that of the start */
  dk_str stored_start;       /* the id of a delayed start that this turn's commit removes; or
                                absent */
  int64_t wait_ms;           /* for FATE_WAITS */
  struct stray *strays;
  size_t n_strays;
  size_t n_taken;            /* detached starts that were left out of the commit */

  /* The past. */
  struct remembered *memory;
  uint64_t execution;
  size_t n_committed;
  bool is_first;             /* first turn of its execution */
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

/* Records why the turn is delayed, and returns the fate. */
enum fate turn_delay(struct turn *turn, enum delay why, const char *format, ...) DK_PRINTF(3, 4);
/* Whether it fails instead of being delayed; only if the options request that. */
bool turn_fails(const struct turn *turn, enum delay why);
/* The number of deliveries that count against the turn. */
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

/* stored-delays.c: the message with this id that is stored for the instance but not in its turn.
 * *ret_message NULL: there is none, or the provider cannot list messages. */
enum fate stored_find(struct turn *turn, dk_str id, const struct dk_message **ret_message);
/* Makes the turn wait until that message is due. */
enum fate stored_wait_for(struct turn *turn, const struct dk_message *message);
/* Reads the start; an unreadable one gets a name that shows that.  DK_OK, DK_NO_MEMORY. */
dk_status stored_read_start(struct turn *turn, const struct dk_message *message,
                            struct message *ret_start);
/* After the turn was given back with a delay: stores the reason. */
void stored_write_reason(struct turn *turn);
/* Makes the commit of the decision remove the delayed start as well. */
dk_status stored_take_along(struct turn *turn);

/* turn-history.c; FATE_GOES_ON: it is loaded. */
enum fate turn_load_history(struct turn *turn);
/* Begins a new execution with its first event; FATE_GOES_ON: it has begun. */
enum fate turn_begin_history(struct turn *turn, uint64_t execution, const struct event *started);
/* Reads the parent of an instance that has ended. */
enum fate turn_load_parent(struct turn *turn, struct parent *ret_parent);

/* turn-decide.c */
enum fate turn_decide(struct turn *turn);
/* Replaces the decision: failed by the runtime.  DK_OK or DK_NO_MEMORY. */
dk_status turn_decide_failure(struct turn *turn, enum code code, dk_str text);

/* turn-commit.c */
enum fate turn_commit(struct turn *turn);
/* Removes messages that are only reasons of a delay. */
enum fate turn_commit_reasons(struct turn *turn);
/* Removes the messages, sends the answers, and changes nothing else. */
enum fate turn_commit_nothing(struct turn *turn, struct outgoing *answers, size_t n_answers);

/* short-limits.c, for struct past: logs once if the limit is too short for a lost worker. */
void turn_note_limit(void *turn, dk_str activity, int64_t ms, const char *line);

/* commit-count.c, for metrics.h: */
/* Counts the activities whose rows a commit has deleted; before its memory goes back into the
 * cache. */
void commit_count_cancelled(struct turn *turn, const struct dk_commit_outcome *outcome);
/* Counts the requests to cancel that it has taken. */
void commit_count_requests(struct turn *turn);

#endif
