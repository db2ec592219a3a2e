/* SPDX-License-Identifier: Apache-2.0 */
/* The functions and macros that checks are written in: the vocabulary of the contract.
 *
 * A check is one function and one line in its area's table.  It runs in a child process that has
 * loaded the plugin and opened a fresh store.  It states what it expects; the first expectation
 * that fails ends it, and reports its text, the trace of all operations, and the clause.  Nothing
 * here sleeps: with a virtual clock time moves only when all actors wait.
 *
 * Where the provider has a choice (which instance, which work item comes first) a check fetches all
 * and selects by identity.
 *
 * Results (turns, work, histories, commit outcomes) are copies; they live until the check ends.
 *
 * Options are designated initialisers: fetch_turn(t, .on = other, .wait_ms = 60000).
 */
#ifndef DK_KIT_CHECK_H
#define DK_KIT_CHECK_H

#include <stdbool.h>

#include <durakit/host.h>

struct dk_check; /* one run of one check */
struct actor;    /* makes a call: the check itself (NULL), another handle, thread or process */

/* ---- the table ------------------------------------------------------------------------------- */

enum {
  NEEDS_HANDLES = 1u,       /* two handles on one store: `shared` is at least 1 */
  NEEDS_PROCESSES = 2u,     /* `shared` is at least 2 */
  NEEDS_WORKER_ENQUEUE = 4u, /* the optional operation enqueue_for_worker */
  NEEDS_HOST_CLOCK = 8u,     /* checks exact instants, so time has to be virtual */
  NEEDS_STORE = 16u,         /* stores with names: a STORE parameter selects one */
  NEEDS_RIVALS = 32u,        /* two calls at once on one store: DK_PARALLEL, or two handles */
  NEEDS_DURABLE = 64u,       /* a store that outlives its last handle: `durable` is at least 1 */
  NEEDS_TWO_CLOCKS = 128u,   /* a provider that can use the host's clock and its own */
  NEEDS_STORE_CLOCK = 256u,  /* uses the store's own clock, in real time: see below */
  NEEDS_SERVER = 512u,       /* a server behind the store: `shared` is 3 */
  NEEDS_CRASH = 1024u,       /* ... that may be crashed and started (--store-crash ...) */
  NEEDS_PAUSE = 2048u,       /* ... that may be stopped for a while */
  NEEDS_RIGHTS = 4096u,      /* ... whose rights may be withdrawn */
  NEEDS_PROXY = 8192u,       /* ... that is reached through the kit (--through) */
  NEEDS_ADMIN = 16384u,      /* durakit.admin/1 */
  NEEDS_RELEASE = 32768u,    /* the optional operation release_fetch */
  NEEDS_ROOTS = 65536u,      /* ABI 2.2: struct dk_removed has `roots` from then on */
  NEEDS_DUPLICATE = 131072u, /* ABI 2.3: a duplicate is named from then on */
  NEEDS_FILES = 262144u,     /* no server: its other processes may have the store in turn, and what
                                they do to files is seen */
  NEEDS_POWER = 524288u      /* ... and survives a power cut: `durable` is 2 */
};
enum {
  IS_RACE = 1u, /* runs alone, and reports how many overlaps it saw */
  IS_SLOW = 2u, /* takes real time: the kill matrix runs it only on mutants that it must catch */
  IS_ALONE = 4u, /* runs alone, also under Valgrind: it disturbs what other checks use */
  IS_RUNTIME = 8u, /* of the profile `runtime`: the runtime on the provider, in real time */
  /* What its subject excludes from variations. */
  OF_SIZES = 16u, OF_IDS = 32u, OF_NUMBERS = 64u, OF_HANDLES = 128u, OF_ALL = 256u,
  OF_DELIVERIES = 512u, OF_COUNTS = 1024u, /* of deliveries, and their order */
  OF_NEIGHBOURS = 2048u
};

/* What has happened to whatever a fetch brings, before the check gets it. */
enum first_delivery {
  FIRST_NEVER,
  FIRST_GIVEN_BACK, /* it was fetched, and given back with ignore_attempt */
  FIRST_PUT_OFF,    /* ... with a delay, which has passed */
  FIRST_EXPIRED,    /* the lease of the first fetch has ended */
  FIRST_TAKEN_OVER  /* ... which was another owner's, who comes too late */
};

/* The same again in another way, which the check does not see. */
struct variation {
  const char *id;          /* "payload-1025" */
  const char *says;        /* for people: "each payload has 1,025 bytes" */
  bool is_usual;           /* one of those that certify chooses from */
  uint32_t not_for;        /* checks with one of these flags */
  uint32_t not_with;       /* checks with one of these needs */
  size_t sizes[36];        /* one of these each payload gets, if it is not larger; 0: its own */
  size_t n_sizes;
  const char *before_ids, *after_ids; /* stand around each id and tag; NULL: nothing */
  uint64_t above_numbers;  /* is added to the ids of events and activities */
  size_t absent;           /* that many entries that name nothing, in each list; and no order */
  uint64_t no_limit;       /* stands for 0, where this means that there is no limit */
  bool alternates;         /* the check's own calls are made by two handles in turn */
  bool leaves;             /* ... by its handle and another process in turn */
  bool reopens;            /* its own handle is closed and opened before each of its calls */
  bool has_neighbours;     /* instances with similar ids exist, and some are deleted meanwhile */
  enum first_delivery first;
};

enum { MOST_PROCESSES = 3 };
struct check {
  const char *id;       /* "cancel/ack-after-deletion", "queue/order~payload-1025" */
  const char *clauses;  /* "CANCEL-5 TOKEN-6": the first one is the one that it tests */
  const char *says;     /* one line for people: what must hold */
  void (*run)(struct dk_check *t);
  uint32_t needs, flags;
  uint32_t processes;   /* other processes that it uses; forked before the load */
  const struct variation *variation; /* NULL: as it is written */
};

/* All checks of the profile `core`, area by area, in the contract's order. */
const struct check *const *dk_checks(size_t *ret_n);
/* The same checks with each variation, which not every one of them is for. */
size_t dk_varied_count(void);
const struct check *dk_varied_check(size_t i);
bool dk_variation_applies(const struct check *check);
bool dk_variation_is_usual(size_t i);
/* Those of the profile `runtime` (conformance/runtime). */
const struct check *const *dk_runtime_checks(size_t *ret_n);

/* ---- expectations ---------------------------------------------------------------------------- */

/* Each ends the check when it does not hold.  `what` is for people, printf style. */
#define expect(t, condition, ...) \
  kit_expect(t, (condition), #condition, __FILE__, __LINE__, __VA_ARGS__)
/* The status of a call; the text of the call is part of the message. */
#define expect_status(t, call, status) \
  kit_expect_status(t, (call), (status), #call, __FILE__, __LINE__)
#define must(t, call) kit_expect_status(t, (call), DK_OK, #call, __FILE__, __LINE__)
/* expect_equal(t, turn->n_events, 3, "events of the turn") */
#define expect_equal(t, got, wanted, ...) \
  kit_expect_equal(t, (int64_t)(got), (int64_t)(wanted), #got, __FILE__, __LINE__, __VA_ARGS__)
/* expect_text(t, turn->head.name, "order", "name of the orchestration"); NULL: absent */
#define expect_text(t, got, wanted, ...) \
  kit_expect_text(t, (got), (wanted), #got, __FILE__, __LINE__, __VA_ARGS__)
#define expect_bytes(t, got, wanted, ...) \
  kit_expect_bytes(t, (got), (wanted), #got, __FILE__, __LINE__, __VA_ARGS__)
/* No instance has a turn to fetch now; there is no work item to fetch now (any tag, any session).
 */
#define expect_no_turn(t, ...) \
  kit_expect_no_turn(t, &(struct fetch_turn_args){__VA_ARGS__}, __FILE__, __LINE__)
#define expect_no_work(t, ...) \
  kit_expect_no_work(t, &(struct fetch_work_args){__VA_ARGS__}, __FILE__, __LINE__)
/* After each call the check also fails if the provider has broken a rule of the ABI. */

/* The calls between the two must change nothing: the kit runs the check again in two more stores,
 * once with these calls and once without.  Then it drains both stores through virtual time, and
 * they must agree.  A check may have several such regions; they do not nest.  A region may hold
 * only calls that are refused, find nothing or repeat what was done (DK_OK without results), and
 * none that is started.  In the run without them they are not made, and return the status and text
 * of the run before.  The code behind expect_unchanged runs in the first run only. */
#define before(t) kit_before(t)
#define expect_unchanged(t) kit_expect_unchanged(t, __FILE__, __LINE__)

/* ---- time ------------------------------------------------------------------------------------ */

int64_t now(struct dk_check *t);
int64_t elapsed(struct dk_check *t);              /* since the check began */
void advance(struct dk_check *t, int64_t ms);     /* actors whose deadlines come on the way run */
void advance_to(struct dk_check *t, int64_t time);
void set_clock_back(struct dk_check *t, int64_t ms); /* while no handle is open */
/* A check with NEEDS_STORE_CLOCK opens stores that use their own clock.  Its host's clock, which
 * `now` reads, begins an hour behind the system's, so that a confusion of the two is seen.  This
 * function moves the host's clock forward, and not the store's. */
void set_host_clock_forward(struct dk_check *t, int64_t ms);

/* ---- actors ---------------------------------------------------------------------------------- */

struct actor *another_handle(struct dk_check *t);  /* opens the same store again */
struct actor *another_thread(struct dk_check *t);  /* same handle, own thread */
struct actor *another_process(struct dk_check *t); /* own process, own handle */

/* With .start = true a call returns DK_OK at once and continues; `finish` gives its status, and
 * finished_turn or finished_work the result of a fetch.  An actor makes one call at a time.  The
 * check's own thread makes the calls of another handle until one is started: from then on that
 * handle has a thread of its own.  A process loads the plugin and opens the store with its first
 * call. */
dk_status finish(struct dk_check *t, struct actor *actor);
/* Before finish, if the call must answer at this instant: time stands still there until it has
 * answered, or for long enough, so that a busy machine is not taken for a call that is late. */
void until_it_answers(struct dk_check *t, struct actor *actor, int64_t at, bool patiently);
struct dk_turn *finished_turn(struct dk_check *t, struct actor *actor);       /* NULL: none came */
struct dk_works *finished_work(struct dk_check *t, struct actor *actor);
const struct dk_commit_outcome *finished_commit(struct dk_check *t, struct actor *actor);
void until_it_waits(struct dk_check *t, struct actor *actor); /* if it returns, the check fails */
void cancel_call(struct dk_check *t, struct actor *actor);    /* of a thread or another handle */
void kill_process(struct dk_check *t, struct actor *actor);   /* SIGKILL: it cannot be used again */

/* The next call of this process is made by a copy of it, which opens the store for it and is
 * killed: before the n-th call by which it changes or syncs a file, in the midst of that (a write
 * of which whole sectors remain), or with the loss of all that was not synced; FAILED: the n-th one
 * fails, and the process is killed as soon as the call has answered; n 0: then, and none fails.  No
 * other handle may be open unless `shared` permits it. */
enum end_of_process { KILLED = 1, TORN, POWER_CUT, FAILED };
void kill_in_next_call(struct dk_check *t, struct actor *process, enum end_of_process how,
                       uint32_t n);
/* In the next call of this process, or of the check's own (NULL; or in its next open or
 * destroy_store), the n-th call of this kind that the provider makes fails with this errno;
 * `lasts`: so do all that follow it.  The process lives on. */
enum failing {
  CHANGES_FILE,     /* or syncs it, or changes a name or its rights */
  READS_FILE,
  OPENS_FILE,       /* by its name */
  ASKS_DESCRIPTOR   /* for any: a file, a socket, an eventfd, ... */
};
struct fault {
  enum failing of;
  int error;
  bool lasts;
  uint32_t n;
};
void fail_in_next_call(struct dk_check *t, struct actor *actor, struct fault fault);
/* In the next call of the check's own, open or destroy_store, the n-th request for memory that the
 * provider makes fails; `lasts`: so do all that follow it.  And how many requests that call has
 * made. */
void run_out_of_memory(struct dk_check *t, uint32_t n, bool lasts);
uint32_t requests_for_memory(struct dk_check *t);
/* What became of the last of the calls that were to be killed or to fail. */
struct last_call {
  bool answered;          /* before it was killed, with this status */
  dk_status status;
  uint32_t calls, writes, syncs; /* that reached the files */
  const char *at;         /* the last one: "pwrite of 4096 bytes to store-wal" */
};
struct last_call last_call_of(struct dk_check *t, struct actor *actor);

/* ---- operations ------------------------------------------------------------------------------ */
/* All of them trace themselves.  Those that return dk_status are for expect_status and must. */

struct enqueue_args {
  struct actor *on;
  bool start;
  const char *id, *payload;      /* payload NULL: the id, or "message" */
  struct dk_bytes bytes;         /* a payload of any bytes, instead */
  int64_t visible_at, delay_ms;
  bool repeated;
};
#define enqueue(t, instance, ...) kit_enqueue(t, instance, &(struct enqueue_args){__VA_ARGS__})

/* An activity, in a commit or enqueued directly.  activity_id 0 ends a list of them. */
struct activity {
  uint64_t activity_id;
  uint64_t execution_id;         /* 0: the commit's; 1 when enqueued directly */
  const char *tag, *session, *payload; /* payload NULL: "activity N" */
  struct dk_bytes bytes;
  int64_t visible_at, delay_ms;
};
struct enqueue_work_args {
  struct actor *on;
  bool start, repeated;
  struct activity activity;
};
#define enqueue_work(t, instance, ...) \
  kit_enqueue_work(t, instance, &(struct enqueue_work_args){__VA_ARGS__})

struct fetch_turn_args {
  struct actor *on;
  bool start;
  int64_t lock_ms;               /* 0: 30,000 */
  int64_t wait_ms;               /* 0: does not wait; < 0: without a limit */
  uint32_t max_messages;
  uint64_t max_bytes;
  const char *owner;
  const struct dk_version_range *ranges;
  size_t n_ranges;
  uint64_t fetch_id;
};
/* One turn; nothing or an error ends the check. */
#define fetch_turn(t, ...) \
  kit_fetch_turn(t, &(struct fetch_turn_args){__VA_ARGS__}, __FILE__, __LINE__)
/* The turn of this instance: fetches until it comes.  Other turns that come before stay locked; a
 * later fetch_turn_of that asks for one gets it, as long as its lease lasts. */
#define fetch_turn_of(t, instance, ...) \
  kit_fetch_turn_of(t, instance, &(struct fetch_turn_args){__VA_ARGS__}, __FILE__, __LINE__)
/* Any status; *ret is NULL unless DK_OK. */
#define try_fetch_turn(t, ret, ...) \
  kit_try_fetch_turn(t, ret, &(struct fetch_turn_args){__VA_ARGS__})

struct fetch_work_args {
  struct actor *on;
  bool start;
  int64_t lock_ms, wait_ms;      /* as for turns */
  uint32_t max_items;            /* 0: 1 */
  uint64_t max_bytes;
  const char *owner;             /* NULL: "worker"; "": absent */
  int32_t tag_rule;              /* 0 means DK_TAG_ANY here; TAG_UNTAGGED for untagged only */
  const char *tags[8];
  int32_t session_rule;          /* 0: DK_SESSION_ANY if the provider has sessions, else NONE */
  uint64_t fetch_id;
};
enum { TAG_UNTAGGED = 100 };
#define fetch_work(t, ...) \
  kit_fetch_work(t, &(struct fetch_work_args){__VA_ARGS__}, __FILE__, __LINE__)
#define try_fetch_work(t, ret, ...) \
  kit_try_fetch_work(t, ret, &(struct fetch_work_args){__VA_ARGS__})
/* Fetches all work there is, one by one, and gives this item.  The others stay locked; a later
 * fetch_activity that asks for one gets it, as long as its lease lasts. */
#define fetch_activity(t, instance, activity_id, ...) \
  kit_fetch_activity(t, instance, 1, activity_id, &(struct fetch_work_args){__VA_ARGS__}, \
                     __FILE__, __LINE__)
#define fetch_activity_of(t, instance, execution_id, activity_id, ...) \
  kit_fetch_activity(t, instance, execution_id, activity_id, \
                     &(struct fetch_work_args){__VA_ARGS__}, __FILE__, __LINE__)

struct event {
  uint64_t id;                   /* 0 ends a list */
  const char *payload;           /* NULL: "event N" */
};
struct message {                 /* an orchestrator item of a commit */
  const char *to;                /* NULL ends a list */
  const char *id, *payload;
  int64_t visible_at, delay_ms;
};
struct named_item {              /* of a commit that was refused as a duplicate */
  int32_t list;                  /* DK_LIST_...; 0: the provider has not named it */
  uint64_t index;
};
struct ack_turn_args {
  struct actor *on;
  bool start, repeated, empty;   /* empty: execution_id 0 */
  uint64_t execution_id;         /* 0: 1 unless empty */
  int32_t status;                /* 0: keep */
  const char *name, *version;    /* NULL: "order"/"1.0.0" when the turn is the first of its
                                    instance, and the check has not set .nameless */
  bool nameless;
  const char *parent, *output, *owner;
  struct event events[16];
  struct activity schedule[16];
  struct message send[16];
  uint64_t cancel[16];           /* activity ids of the commit's execution; 0 ends */
  struct dk_activity cancel_of[16]; /* with their execution */
  const char *cancel_messages[8];
  const struct dk_version *pinned;
  /* For results that the members above cannot express: used unchanged, with the token, instead of
   * all of them. */
  const struct dk_turn_result *raw;
  struct dk_commit_outcome *ret_outcome;
  struct named_item *ret_duplicate; /* not between before and expect_unchanged */
};
/* The commit of a turn.  `turn` gives the token, and whether the instance is known. */
#define ack_turn(t, turn, ...) kit_ack_turn(t, turn, &(struct ack_turn_args){__VA_ARGS__})
#define ack_token(t, token, ...) kit_ack_token(t, token, &(struct ack_turn_args){__VA_ARGS__})

struct token_args {
  struct actor *on;
  bool start;
  int64_t ms;                    /* renew: 0 means 30,000; abandon: the delay */
  bool ignore_attempt;
};
#define renew_turn(t, token, ...) kit_renew_turn(t, token, &(struct token_args){__VA_ARGS__})
#define abandon_turn(t, token, ...) kit_abandon_turn(t, token, &(struct token_args){__VA_ARGS__})
#define renew_work(t, token, ...) kit_renew_work(t, token, &(struct token_args){__VA_ARGS__})
#define abandon_work(t, token, ...) kit_abandon_work(t, token, &(struct token_args){__VA_ARGS__})
/* For checks with NEEDS_RELEASE. */
#define release_fetch(t, fetch_id, ...) \
  kit_release_fetch(t, fetch_id, &(struct token_args){__VA_ARGS__})

struct ack_work_args {
  struct actor *on;
  bool start, repeated;
  const char *to;                /* NULL: no completion */
  const char *id, *payload;      /* payload NULL: "done" */
  int64_t visible_at, delay_ms;
};
#define ack_work(t, token, ...) kit_ack_work(t, token, &(struct ack_work_args){__VA_ARGS__})

struct read_history_args {
  struct actor *on;
  bool start;                    /* of try_read_history only */
  uint64_t execution_id, from_event;
  uint32_t max_events;
};
#define read_history(t, instance, ...) \
  kit_read_history(t, instance, &(struct read_history_args){__VA_ARGS__}, __FILE__, __LINE__)

/* Any status. */
#define try_read_history(t, instance, ...) \
  kit_try_read_history(t, instance, &(struct read_history_args){__VA_ARGS__})

/* ---- durakit.admin/1 ------------------------------------------------------------------------- */
/* For checks with NEEDS_ADMIN. */

struct filter {                  /* a member that is not given selects all */
  bool by_ids;                   /* DK_FILTER_IDS, even without ids */
  const char *ids[8];
  const struct dk_bytes *list;   /* ids too: any number */
  size_t n;
  bool roots;
  const char *name, *version, *parent;
  uint32_t statuses;             /* WITH_STATUS(DK_RUNNING) | ... */
  int64_t created_from, created_before, completed_from, completed_before;
};
#define WITH_STATUS(status) (1u << (status))

/* Each look returns its result, or ends the check.  Its form with try_ returns any status, and then
 * finished_... gives its result.  Between before and expect_unchanged they may also have results.
 */
struct look_args {
  struct actor *on;
  bool start;                    /* of try_... only */
  struct filter only;            /* list_instances; nothing given: no filter */
  bool filtered;                 /* a filter although none of its members is given */
  bool outputs;
  const char *after;             /* list_instances */
  uint64_t after_number;         /* list_executions */
  uint32_t max;
};
#define list_instances(t, ...) \
  kit_list_instances(t, &(struct look_args){__VA_ARGS__}, __FILE__, __LINE__)
#define list_executions(t, instance, ...) \
  kit_list_executions(t, instance, &(struct look_args){__VA_ARGS__}, __FILE__, __LINE__)
#define read_messages(t, instance, ...) \
  kit_read_messages(t, instance, &(struct look_args){__VA_ARGS__}, __FILE__, __LINE__)
#define read_stats(t, ...) \
  kit_read_stats(t, &(struct look_args){__VA_ARGS__}, __FILE__, __LINE__)
#define try_list_instances(t, ...) \
  kit_try_list_instances(t, &(struct look_args){__VA_ARGS__})
#define try_list_executions(t, instance, ...) \
  kit_try_list_executions(t, instance, &(struct look_args){__VA_ARGS__})
#define try_read_messages(t, instance, ...) \
  kit_try_read_messages(t, instance, &(struct look_args){__VA_ARGS__})
#define try_read_stats(t, ...) \
  kit_try_read_stats(t, &(struct look_args){__VA_ARGS__})
const struct dk_instances *finished_instances(struct dk_check *t, struct actor *actor);
const struct dk_executions *finished_executions(struct dk_check *t, struct actor *actor);
const struct dk_messages *finished_messages(struct dk_check *t, struct actor *actor);
const struct dk_stats *finished_stats(struct dk_check *t, struct actor *actor);

/* What was removed is all 0 unless the call answered DK_OK. */
struct delete_args {
  struct actor *on;
  bool start, force;
  const char *ids[8];
  const struct dk_bytes *list;   /* ids too: any number */
  size_t n;
  struct dk_removed *ret;
};
struct remove_args {
  struct actor *on;
  bool start;
  struct filter only;            /* nothing given: all */
  const char *after;
  uint32_t max;                  /* 0: 1,000 */
  uint32_t keep;                 /* of a prune, as the next */
  int64_t completed_before;
  struct dk_removed *ret;
};
#define delete_instances(t, ...) \
  kit_delete_instances(t, &(struct delete_args){__VA_ARGS__})
#define delete_matching(t, ...) \
  kit_delete_matching(t, &(struct remove_args){__VA_ARGS__})
#define prune(t, instance, ...) \
  kit_prune(t, instance, &(struct remove_args){__VA_ARGS__})
#define prune_matching(t, ...) \
  kit_prune(t, NULL, &(struct remove_args){__VA_ARGS__})
const struct dk_removed *finished_removal(struct dk_check *t, struct actor *actor);

/* ---- common beginnings ----------------------------------------------------------------------- */

/* A known instance, running in execution 1, with one event and no message left. */
void given_instance(struct dk_check *t, const char *instance);
/* The same, with activities 1 to n scheduled, free. */
void given_instance_with_activities(struct dk_check *t, const char *instance, uint64_t n);
/* Sends the instance a message, fetches that turn and returns it: for the commit under test. */
struct dk_turn *next_turn(struct dk_check *t, const char *instance);
/* A whole turn that cancels one activity of execution 1 and only adds to the history else. */
void commit_cancelling(struct dk_check *t, const char *instance, uint64_t activity_id);
/* Event ids that the next commit of this turn may use: last_event_id + 1. */
uint64_t next_event(const struct dk_turn *turn);

/* ---- races ----------------------------------------------------------------------------------- */

/* Releases two started calls that wait at the line (hold_at_line) at the same moment.  Waits until
 * both are done; then `finish` gives their statuses.  True: they really overlapped. */
bool race(struct dk_check *t, struct actor *a, struct actor *b);
/* Counts one witnessed overlap: a check that ends with fewer than it needs is "unexercised". */
void witness(struct dk_check *t, bool overlapped);
/* True until `enough` overlaps were seen or the bound of rounds is reached. */
bool more_rounds(struct dk_check *t, uint32_t enough);
/* For races: the next started call of this actor waits at the line until `race` lets it go. */
void hold_at_line(struct dk_check *t, struct actor *actor);

/* When the finished call of this actor began and ended, in real time. */
void call_times(struct dk_check *t, struct actor *actor, int64_t *ret_began, int64_t *ret_ended);

/* ---- time that passes in a call -------------------------------------------------------------- */

/* Holds the call that asks for the time as the n-th from now (`question`), whatever locks it has:
 * so the following calls must be started ones.  A provider asks when it begins to decide, and the
 * host asks for it as a result is handed up, so that a fetch of a turn is at least two questions.
 */
void hold_at_clock(struct dk_check *t, uint32_t question);
/* Waits until one is held (true), or the call of this actor is done (false): then none will be. */
bool stands_at_clock(struct dk_check *t, struct actor *actor);
/* Lets the held call continue without passed time. */
void let_clock_go(struct dk_check *t);
/* Waits until the started call of this actor has begun, and returns at once if it is done. */
void until_begun(struct dk_check *t, struct actor *actor);
/* For a call that was started meanwhile: when it has come as far as it can, this lets `ms` pass and
 * lets the held call go on.  PASSED_DURING: the provider had not judged the call of this actor by
 * then, so that it must judge it by the new time.  PASSED_AFTER: the call was quicker, or may have
 * been. */
enum passed { PASSED_DURING, PASSED_AFTER };
enum passed pass_time(struct dk_check *t, struct actor *actor, int64_t ms);
/* Call it after both calls are finished. */
void time_has_passed(struct dk_check *t);
/* True: the started call of this actor has returned, or returns within this real time. */
bool returns_within(struct dk_check *t, struct actor *actor, int real_ms);

/* ---- hurting a server ------------------------------------------------------------------------ */

/* What happens at the n-th wait for a server (host->wait with a connected socket) from now on. */
enum cut {
  CUT_REQUEST = 1, /* the connection is shut down, and then waited for */
  CUT_ANSWER,      /* the answer is waited for, thrown away, and the connection shut down */
  CRASH_SERVER     /* the server is crashed, and then waited for */
};
void cut_at_wait(struct dk_check *t, enum cut cut, uint32_t n);
bool was_cut(struct dk_check *t); /* whether it was cut; from here on it will not be */
/* Shuts down all connections that the provider has in this process; returns their number. */
size_t cut_connections(struct dk_check *t);

/* What the kit, between provider and server, does with the n-th piece that one side sends from now
 * on.  The piece is dropped, or first passed on; and the connection is closed to both sides, or
 * reset, or ends in this direction only.  Held: the piece is kept, with all data behind it on its
 * connection, until let_message_go; then it is dropped and the connection closed, or it is passed
 * on and nothing is cut. */
struct message_cut {
  uint32_t n;
  bool is_answer;  /* from the server, else from the provider */
  bool passed_on, reset, half, held;
};
void cut_at_message(struct dk_check *t, struct message_cut cut);
bool message_was_cut(struct dk_check *t);
/* Waits until the piece is held (true), or the started call of this actor is done (false): then
 * none will be. */
bool message_is_held(struct dk_check *t, struct actor *actor);
void let_message_go(struct dk_check *t);

/* Each ends the check as a fault of the kit or its environment if the command fails, or if a new
 * handle shows that it had no effect.  The kit undoes all of them when the check ends, in whatever
 * way. */
void crash_server(struct dk_check *t);
void start_server(struct dk_check *t);
void crash_server_now(struct dk_check *t); /* while a call runs; call judge_crashed afterwards */
void judge_crashed(struct dk_check *t); /* after that, or CRASH_SERVER: checks its effect */
void pause_server(struct dk_check *t); /* it continues by itself after SERVER_PAUSE_MS */
/* For a call that was answered, which a stopped server cannot do: the command had no effect. */
__attribute__((noreturn)) void judge_not_paused(struct dk_check *t, const char *call);
bool resume_server(struct dk_check *t); /* false: it had continued by itself */
void deny_rights(struct dk_check *t);
void allow_rights(struct dk_check *t);
enum { SERVER_PAUSE_MS = 12000 };
/* Real time, even if the store uses the host's clock. */
int64_t real_time_ms(void);
void wait_for_real(struct dk_check *t, int ms);

/* ---- the provider's declarations ------------------------------------------------------------- */

const struct dk_provider *provider(struct dk_check *t);
uint32_t calls_so_far(struct dk_check *t);
/* Ends the check: for this reason it cannot find whether the clause holds. */
__attribute__((noreturn)) void skip_check(struct dk_check *t, const char *why);
struct dk_store *store_of(struct dk_check *t, struct actor *actor); /* for calls without a macro */
struct dk_caller *caller_of(struct dk_check *t, struct actor *actor);
const char *failure_text(struct dk_check *t, struct actor *actor); /* of the last call */
struct dk_bytes bytes(const char *text);         /* NULL: absent */
struct dk_bytes filled(struct dk_check *t, size_t n, char byte);
bool same_bytes(struct dk_bytes a, struct dk_bytes b);
void close_handle(struct dk_check *t, struct actor *actor);  /* NULL: the check's own */
void open_handle(struct dk_check *t, struct actor *actor);   /* again, after close_handle */
/* The same, of the check's own; whatever the answer is. */
dk_status try_open_handle(struct dk_check *t);
/* Opens the check's own handle with a host whose table ends after `host_size` bytes. */
void open_handle_of_older_host(struct dk_check *t, size_t host_size);
/* Opens the check's own handle again, closed before, with DK_OPEN_READ_ONLY. */
void open_handle_to_read(struct dk_check *t);
/* Opens with just these flags, and closes.  The store is the check's own (NULL), or another one. */
dk_status open_status(struct dk_check *t, uint32_t flags, const char *store_suffix);
dk_status destroy_store(struct dk_check *t, const char *store_suffix);
/* The name of a file in the store's folder that begins as the store's does, or NULL: for stores
 * whose value is a path. */
const char *left_of_store(struct dk_check *t, const char *store_suffix);
/* Opens the check's own handle again, closed before, by this library, which takes the place of the
 * plugin and calls it. */
void open_handle_through(struct dk_check *t, struct dk_library *library);
/* Adds a line of the check's own to the trace. */
__attribute__((format(printf, 2, 3))) void say_in_trace(struct dk_check *t, const char *format,
                                                        ...);
/* Sets a function that is called once when this pass of the check has ended, passed or failed,
 * before the store is closed.  It returns false if something still runs and may use the store,
 * which is then left open. */
void at_end(struct dk_check *t, bool (*ending)(struct dk_check *t));
/* How long a check of the profile `runtime` waits for what should happen. */
int64_t patience_ms(const struct dk_check *t);
/* A call of a dk_store_* function that has no macro here; its text goes to the trace.  Between
 * before and expect_unchanged it is left out in the run without the refused calls, like the other
 * calls. */
#define traced(t, call) \
  (kit_skips(t, #call) ? kit_skipped_status(t) : kit_traced(t, (call), #call))

/* What must not grow from one cycle of open, use and close to the next: memory, mappings, thread
 * keys, descriptors, threads.  A look follows each close.  Growth in each of the looks that count
 * is a failure; what is made once, or up to a limit, is none. */
enum { GROWTH_KINDS = 5 };
struct growth {
  uint64_t last[GROWTH_KINDS];
  uint64_t least[GROWTH_KINDS], second[GROWTH_KINDS]; /* of the growths that count */
  uint32_t cycles; /* that counted */
};
void growth_look(struct growth *growth, bool counts);
void expect_no_growth(struct dk_check *t, const struct growth *growth);

/* ---- behind the macros (conformance/kit) ----------------------------------------------------- */

__attribute__((format(printf, 6, 7))) void
kit_expect(struct dk_check *t, bool holds, const char *condition, const char *file, int line,
           const char *what, ...);
void kit_expect_status(struct dk_check *t, dk_status got, dk_status wanted, const char *call,
                       const char *file, int line);
__attribute__((format(printf, 7, 8))) void
kit_expect_equal(struct dk_check *t, int64_t got, int64_t wanted, const char *expression,
                 const char *file, int line, const char *what, ...);
__attribute__((format(printf, 7, 8))) void
kit_expect_text(struct dk_check *t, struct dk_bytes got, const char *wanted, const char *expression,
                const char *file, int line, const char *what, ...);
__attribute__((format(printf, 7, 8))) void
kit_expect_bytes(struct dk_check *t, struct dk_bytes got, struct dk_bytes wanted,
                 const char *expression, const char *file, int line, const char *what, ...);
void kit_expect_no_turn(struct dk_check *t, const struct fetch_turn_args *a, const char *file,
                        int line);
void kit_expect_no_work(struct dk_check *t, const struct fetch_work_args *a, const char *file,
                        int line);
void kit_before(struct dk_check *t);
void kit_expect_unchanged(struct dk_check *t, const char *file, int line);
dk_status kit_enqueue(struct dk_check *t, const char *instance, const struct enqueue_args *a);
dk_status kit_enqueue_work(struct dk_check *t, const char *instance,
                           const struct enqueue_work_args *a);
struct dk_turn *kit_fetch_turn(struct dk_check *t, const struct fetch_turn_args *a,
                               const char *file, int line);
struct dk_turn *kit_fetch_turn_of(struct dk_check *t, const char *instance,
                                  const struct fetch_turn_args *a, const char *file, int line);
dk_status kit_try_fetch_turn(struct dk_check *t, struct dk_turn **ret,
                             const struct fetch_turn_args *a);
struct dk_work_item *kit_fetch_work(struct dk_check *t, const struct fetch_work_args *a,
                                    const char *file, int line);
dk_status kit_try_fetch_work(struct dk_check *t, struct dk_works **ret,
                             const struct fetch_work_args *a);
struct dk_work_item *kit_fetch_activity(struct dk_check *t, const char *instance,
                                        uint64_t execution_id, uint64_t activity_id,
                                        const struct fetch_work_args *a, const char *file,
                                        int line);
dk_status kit_ack_turn(struct dk_check *t, const struct dk_turn *turn,
                       const struct ack_turn_args *a);
bool kit_skips(struct dk_check *t, const char *call);
dk_status kit_skipped_status(struct dk_check *t);
dk_status kit_traced(struct dk_check *t, dk_status status, const char *call);
dk_status kit_ack_token(struct dk_check *t, struct dk_bytes token, const struct ack_turn_args *a);
dk_status kit_renew_turn(struct dk_check *t, struct dk_bytes token, const struct token_args *a);
dk_status kit_abandon_turn(struct dk_check *t, struct dk_bytes token, const struct token_args *a);
dk_status kit_renew_work(struct dk_check *t, struct dk_bytes token, const struct token_args *a);
dk_status kit_abandon_work(struct dk_check *t, struct dk_bytes token, const struct token_args *a);
dk_status kit_release_fetch(struct dk_check *t, uint64_t fetch_id, const struct token_args *a);
dk_status kit_ack_work(struct dk_check *t, struct dk_bytes token, const struct ack_work_args *a);
dk_status kit_try_read_history(struct dk_check *t, const char *instance,
                               const struct read_history_args *a);
struct dk_history *kit_read_history(struct dk_check *t, const char *instance,
                                    const struct read_history_args *a, const char *file, int line);
dk_status kit_try_list_instances(struct dk_check *t, const struct look_args *a);
dk_status kit_try_list_executions(struct dk_check *t, const char *instance,
                                  const struct look_args *a);
dk_status kit_try_read_messages(struct dk_check *t, const char *instance,
                                const struct look_args *a);
dk_status kit_try_read_stats(struct dk_check *t, const struct look_args *a);
const struct dk_instances *kit_list_instances(struct dk_check *t, const struct look_args *a,
                                              const char *file, int line);
const struct dk_executions *kit_list_executions(struct dk_check *t, const char *instance,
                                                const struct look_args *a, const char *file,
                                                int line);
const struct dk_messages *kit_read_messages(struct dk_check *t, const char *instance,
                                            const struct look_args *a, const char *file, int line);
const struct dk_stats *kit_read_stats(struct dk_check *t, const struct look_args *a,
                                      const char *file, int line);
dk_status kit_delete_instances(struct dk_check *t, const struct delete_args *a);
dk_status kit_delete_matching(struct dk_check *t, const struct remove_args *a);
dk_status kit_prune(struct dk_check *t, const char *instance, const struct remove_args *a);

#endif
