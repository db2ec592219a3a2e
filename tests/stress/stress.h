/* SPDX-License-Identifier: Apache-2.0 */
/* A store under stress: many threads of many processes, some of them killed, and what must hold of
 * it afterwards.  Works with any provider, through the host's interface alone.
 *
 *   main.c     the command, the processes, and what is done to them
 *   cut.c      the sockets of a process are shut, one after the other
 *   load.c     what a thread does: the operations at random, each noted in the journal
 *   drain.c    when all has ended: everything is consumed, the histories are read
 *   judge.c    the invariants, from the journal and the histories
 *
 * The journal lies in memory that the processes share, so that what a killed one has noted is kept.
 * An entry is made before its call, without an answer; the answer is written when it is there.
 * What has none may have happened or not; what has one must be true.  An outcome that is unknown is
 * asked for again with DK_REPEATED, as a runtime would, until it is known.
 *
 * Each message, commit and activity has a number of its own.  A commit writes into the history what
 * it has consumed, scheduled and cancelled, so that the histories tell which commits there were.
 */
#ifndef DK_TESTS_STRESS_H
#define DK_TESTS_STRESS_H

#include <durakit/host.h>

#include <stdatomic.h>
#include <stdbool.h>

enum {
  MOST_INSTANCES = 64,
  MOST_SLOTS = 8,
  MOST_ENTRIES = 1 << 22,
  MOST_RECENT = 16,  /* activities of an instance that a commit may cancel unseen */
  NO_ANSWER = -1
};

/* ---- the journal ----------------------------------------------------------------------------- */

enum kind {
  SENT = 1,   /* number: a message; by: the commit that sends it, 0: enqueued */
  COMMITTED,  /* number: a commit; rows: that it told to have deleted */
  SCHEDULED,  /* number: an activity; by: the commit */
  CANCELLED,  /* number: an activity; by: the commit */
  TURN_HELD,  /* number: the instance; until released, or the end of its lease */
  WORK_HELD,  /* number: the activity */
  ACKED       /* number: the activity; by: the message that completes it, 0: none */
};

struct entry {
  _Atomic int32_t status;  /* NO_ANSWER until there is one */
  int32_t kind;
  uint32_t unknown;        /* so many answers were that the outcome is unknown */
  uint64_t number, by, rows;
  uint64_t asked;          /* ticks, one for each question and answer: before the call, */
  uint64_t answered;       /* after it, */
  uint64_t released;       /* what is held: before the call that gives it back */
  int64_t since, until;    /* the lease, by the clock */
  int64_t seen;            /* what is held: the clock when it was known */
};

struct journal {
  atomic_uint_fast64_t tick, number, n;
  atomic_uint_fast64_t operations[MOST_SLOTS];
  atomic_uint_fast64_t answers[8]; /* by enum answer */
  atomic_uint_fast64_t harmed;     /* sockets that were shut */
  atomic_uint_fast64_t unknown;    /* outcomes that were unknown at first */
  atomic_uint_fast64_t unresolved; /* outcomes that stayed unknown */
  atomic_uint_fast64_t recent[MOST_INSTANCES][MOST_RECENT]; /* scheduled; 0: none */
  atomic_bool stops;
  atomic_bool is_broken;
  char broken[512];
  struct entry entries[MOST_ENTRIES];
};

enum answer { WAS_OK, WAS_NOTHING, WAS_LOST, WAS_RETRYABLE, WAS_UNKNOWN, ANSWERS };

struct entry *enter(struct journal *j, enum kind kind, uint64_t number, uint64_t by);
uint64_t tick(struct journal *j);
uint64_t fresh(struct journal *j); /* a number */
/* The first is kept: what no provider may do. */
void broken(struct journal *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- what is stored -------------------------------------------------------------------------- */

enum what { CONSUMES = 1, SCHEDULES, CANCELS, COMPLETES };

/* An event: one of the n facts of a commit. */
struct fact {
  uint64_t commit, number, instance;
  uint32_t what, n;
};

/* A message or an activity; `fill` bytes follow, which its number decides. */
struct body {
  uint64_t number, activity;  /* activity: that this message completes; 0: none */
  int64_t not_before;
  uint64_t fill;
};

/* ---- a run ----------------------------------------------------------------------------------- */

/* What is done, `kills` times, while the load runs. */
enum harm {
  KILL_PROCESSES,        /* with signal 9; another takes its place */
  CUT_SOCKETS,           /* of the processes: those that are connected */
  RUN_COMMAND            /* which may do anything to the store's server */
};

struct run {
  struct journal *journal;
  struct dk_library *library;
  const struct dk_setting *settings;
  size_t n_settings;
  int processes, threads, kills;
  enum harm harm;
  const char *command;   /* for sh */
  int life_ms;           /* between two of them, at most */
  uint64_t instances;
  bool keeps_histories;  /* all are one owner, whose fetches bring no history */
  uint64_t operations;   /* of each process; 0: until it must stop */
  int64_t lease_ms;
  uint64_t seed;
};

bool open_store(const struct run *run, const struct dk_host_options *options, uint32_t flags,
                struct dk_caller *caller, struct dk_store **ret_store);
/* Real time passes. */
void let_pass(int ms);
/* As many threads as the run has, until all is done. */
void run_load(const struct run *run, int slot, uint64_t seed);

/* Shuts sockets that this process has opened since, a thread of its own, until the run stops. */
struct cutter;
struct cutter *cutter_new(const struct run *run, uint64_t seed);
bool cutter_start(struct cutter *cutter);
void cutter_end(struct cutter *cutter);

/* What the histories say. */
struct told {
  struct fact *facts;
  size_t n, room;
};
/* Everything that is left is consumed, in a time when every lease has ended and every timer is
 * due.  False: it does not end. */
bool drain(const struct run *run, struct told *told);

/* One TAP point for each invariant. */
void judge(const struct run *run, const struct told *told);

void name_instance(char name[16], uint64_t instance);
uint64_t number_of_instance(struct dk_bytes name);
struct dk_bytes text(const char *string);

/* ---- a turn (load.c) ------------------------------------------------------------------------- */

enum { MOST_MESSAGES = 100, MOST_FACTS = 300, MOST_OPEN = 16, MOST_LISTED = 64, MOST_SENT = 4 };

/* What a turn's commit will be. */
struct decision {
  struct fact facts[MOST_FACTS];
  struct dk_event events[MOST_FACTS];
  size_t n_facts;
  struct dk_activity cancelled[MOST_LISTED];
  size_t n_cancelled;
  struct dk_item activities[MOST_SENT], messages[MOST_SENT];
  const struct dk_item *activity_list[MOST_SENT], *message_list[MOST_SENT];
  size_t n_activities, n_messages;
};

/* Notes what the turn's messages are; false: they are not what was sent. */
bool consume(struct journal *j, const struct dk_turn *turn, struct decision *d);
void add_fact(struct decision *d, enum what what, uint64_t number);
/* What it will do is in the journal before it is tried.  Its number is that of its first fact. */
void note_decision(struct journal *j, const struct dk_turn *turn, struct decision *d);
/* `result` may have flags and an owner. */
dk_status commit(struct dk_store *store, struct dk_caller *caller, const struct dk_turn *turn,
                 const struct decision *d, struct dk_turn_result *result,
                 struct dk_commit_outcome *outcome);

#endif
