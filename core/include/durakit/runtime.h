/* SPDX-License-Identifier: 0BSD */
/* durakit/runtime.h - durable orchestrations and activities on any provider.
 *
 * An orchestration is a plain C function that lives longer than the process.  Where it waits it is
 * kept in memory, if there is room, and goes on from there; else it is run again from its start, in
 * any turn, and what it calls is matched with its history, so that it finds itself where it was.
 * An activity is a plain C function in a worker's thread, which may do whatever it likes and is run
 * at least once.
 *
 *   static dk_result order(dk_orch *o, dk_str input)
 *   {
 *     dk_future *pay = dk_activity(o, "charge", input);
 *     dk_future *limit = dk_timer(o, 2 * 60 * 1000);
 *     if (dk_select(o, pay, limit) == limit)   // the loser is cancelled: its row is deleted
 *       return dk_failed(o, "payment timed out");
 *     return dk_completed(o, dk_await(o, pay));
 *   }
 *
 * Rules for orchestrations.  Time, chance and everything outside come through the calls below,
 * never from elsewhere: the same history must lead to the same calls.  A call that has to wait may
 * not come back (longjmp), so nothing may be held across a call of this header: no lock, no file,
 * no malloc.  Memory is dk_orch_alloc's and lives as long as the run, which has a thread of its
 * own with a stack of 1 MiB.
 *
 * Text that is given to a call is copied, and needs no NUL; dk_str_of("...") makes it of a string.
 * Text that comes from one has a NUL at ptr[len], and lives as long as the run (the activity).
 *
 * Threads.  Registries are filled by one thread before a runtime is started with them.  A runtime,
 * a client and a token may be used by any thread; a dk_orch by the function that it was given to; a
 * dk_task by the activity it was given to, but for its token, which can be cloned for others.
 */
#ifndef DURAKIT_RUNTIME_H
#define DURAKIT_RUNTIME_H

#include <durakit/host.h>

#include <stdarg.h>
#include <string.h>

#if defined __GNUC__
#pragma GCC visibility push(default)
#if defined __cplusplus /* dk_activity and dk_task_info are functions beside structs */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#define DK_PRINTF(at, first) __attribute__((format(printf, at, first)))
#define DK_NORETURN __attribute__((noreturn))
#else
#define DK_PRINTF(at, first)
#define DK_NORETURN
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct dk_bytes dk_str;
typedef struct dk_orch dk_orch;     /* a run of an orchestration */
typedef struct dk_future dk_future; /* what was begun in it and may not be over */
typedef struct dk_task dk_task;     /* a running activity */
typedef struct dk_token dk_token;   /* tells an activity that it is to end */

/* How an orchestration or an activity ended; made only by the calls that say so. */
typedef struct {
  int32_t private_;
} dk_result;

static inline dk_str
dk_str_of(const char *string)
{
  const dk_str text = {string, string == NULL ? 0 : strlen(string)};
  return text;
}

/* ---- orchestrations: how they end ------------------------------------------------------------ */

typedef dk_result dk_orchestration_fn(dk_orch *o, dk_str input);

/* To be returned.  Whatever is still outstanding is cancelled in the same commit. */
dk_result dk_completed(dk_orch *o, dk_str output);
dk_result dk_failed(dk_orch *o, const char *error);
dk_result dk_failed_with(dk_orch *o, const char *format, ...) DK_PRINTF(2, 3);
/* From any depth: ends the orchestration as failed; does not return. */
DK_NORETURN void dk_fail(dk_orch *o, const char *format, ...) DK_PRINTF(2, 3);
/* From any depth: ends this execution, cancels what is outstanding, and begins the next one, with
 * an empty history and this input, under the version given (NULL: the newest registered).  Messages
 * in queues that were not taken go along; key-values and custom status stay. */
DK_NORETURN void dk_continue_as_new(dk_orch *o, dk_str input, const char *version);

/* ---- orchestrations: what they begin --------------------------------------------------------- */

struct dk_activity_options {
  uint32_t struct_size, reserved;
  dk_str tag;      /* only workers that ask for it run it */
  dk_str session;  /* durakit.sessions/1: one worker runs all of a session */
};
struct dk_child_options {
  uint32_t struct_size, reserved;
  dk_str instance;      /* absent: made of the parent's id, execution and position */
  const char *version;  /* NULL: the newest that is registered where it starts */
};

dk_future *dk_activity(dk_orch *o, const char *name, dk_str input);
dk_future *dk_activity_with(dk_orch *o, const char *name, dk_str input,
                            const struct dk_activity_options *options);
/* Durable: it runs on while the store or the workers are away.  So where it is the limit of an
 * activity it must exceed the lease (activity_lock_ms of the workers) by the time of the work: the
 * activity of a worker that was lost is run again only when its lease has ended.  One that does not
 * is logged (DK_LOG_SHORT_LIMIT). */
dk_future *dk_timer(dk_orch *o, int64_t ms);
/* The next event of this name that was raised and not waited for by an earlier call: events that
 * come early are kept. */
dk_future *dk_external(dk_orch *o, const char *event);
/* The next message of a queue.  Unlike events, what was not taken goes along to the next
 * execution. */
dk_future *dk_dequeue(dk_orch *o, const char *queue);
/* 1 and the message if one came before what the code has waited for so far; else 0. */
int32_t dk_try_dequeue(dk_orch *o, const char *queue, dk_str *ret_message);
/* A child: its end is the future's; if the parent ends first, or drops it, the child is cancelled.
 * An instance id that is taken makes the future fail. */
dk_future *dk_child(dk_orch *o, const char *name, dk_str input,
                    const struct dk_child_options *options);
/* An orchestration of its own that nobody waits for. */
void dk_start_detached(dk_orch *o, const char *name, dk_str instance, dk_str input,
                       const char *version);

/* ---- orchestrations: waiting ----------------------------------------------------------------- */

enum { DK_PENDING = 0, DK_SUCCEEDED = 1, DK_FAULTED = 2, DK_DROPPED = 3 };

/* Waits and gives the result.  If it failed, or was dropped, the orchestration fails with that
 * error. */
dk_str dk_await(dk_orch *o, dk_future *future);
/* Waits and tells: DK_SUCCEEDED with the result, DK_FAULTED with the error's text, DK_DROPPED. */
int32_t dk_outcome(dk_orch *o, dk_future *future, dk_str *ret_value);
/* Waits for the first, in the order of the history; among those that the code has already seen
 * ready, the first in the order of the arguments.  dk_any leaves the others open, dk_select cancels
 * them: in this turn's commit an activity's row is deleted, a timer withdrawn, a child told. */
dk_future *dk_any_of(dk_orch *o, dk_future *const *futures, size_t n);
dk_future *dk_select_of(dk_orch *o, dk_future *const *futures, size_t n);
/* Waits for all of them, whether they succeed or fail. */
void dk_all_of(dk_orch *o, dk_future *const *futures, size_t n);
#if !defined __cplusplus
#define DK_FUTURES_(...) (dk_future *const[]){__VA_ARGS__}
#define DK_N_FUTURES_(...) (sizeof(DK_FUTURES_(__VA_ARGS__)) / sizeof(dk_future *))
#define dk_any(o, ...) dk_any_of(o, DK_FUTURES_(__VA_ARGS__), DK_N_FUTURES_(__VA_ARGS__))
#define dk_select(o, ...) dk_select_of(o, DK_FUTURES_(__VA_ARGS__), DK_N_FUTURES_(__VA_ARGS__))
#define dk_all(o, ...) dk_all_of(o, DK_FUTURES_(__VA_ARGS__), DK_N_FUTURES_(__VA_ARGS__))
#endif
/* Cancels one; nothing happens if it is over already. */
void dk_drop(dk_orch *o, dk_future *future);
/* DK_PENDING, or how it ended, as far as the code has waited: no look ahead. */
int32_t dk_ready(const dk_orch *o, const dk_future *future);

/* Runs an activity until it succeeds.  Waits, as dk_outcome does, for the last attempt's end. */
struct dk_retry {
  uint32_t struct_size, attempts;  /* at least 1 */
  int64_t timeout_ms;              /* for each attempt, which is cancelled then; 0: none.  A limit,
                                      see dk_timer */
  int64_t first_delay_ms, max_delay_ms;
  uint32_t factor_percent;         /* of each delay to the one before; 0: 200 */
  uint32_t retry_timeouts;         /* 0: an attempt that takes too long is the end */
};
int32_t dk_activity_retried(dk_orch *o, const char *name, dk_str input,
                            const struct dk_activity_options *options,
                            const struct dk_retry *retry, dk_str *ret_value);

/* ---- orchestrations: the rest ---------------------------------------------------------------- */

/* Recorded: every replay sees the same. */
int64_t dk_now(dk_orch *o);
void dk_guid(dk_orch *o, char ret_guid[37]);
uint64_t dk_random(dk_orch *o);

/* durakit.kv/1 and durakit.status/1.  An orchestration that calls these is registered with what it
 * needs (dk_register_orchestration_with), so that a runtime on a store without them does not start;
 * else the call is a wrong one there. */
void dk_kv_set(dk_orch *o, const char *key, dk_str value);
int32_t dk_kv_get(dk_orch *o, const char *key, dk_str *ret_value); /* 1: it is there */
void dk_kv_clear(dk_orch *o, const char *key);
void dk_kv_clear_all(dk_orch *o);
void dk_set_status(dk_orch *o, dk_str status); /* absent: cleared */

dk_str dk_orch_instance(const dk_orch *o);
uint64_t dk_orch_execution(const dk_orch *o);
dk_str dk_orch_name(const dk_orch *o);
dk_str dk_orch_version(const dk_orch *o);
dk_str dk_orch_parent(const dk_orch *o); /* absent: none */
/* 1 while the code does again what an earlier turn has committed. */
int32_t dk_replaying(const dk_orch *o);
/* Zeroed memory of the run; without memory the turn is delayed, and the call does not return. */
void *dk_orch_alloc(dk_orch *o, size_t size);
dk_str dk_format(dk_orch *o, const char *format, ...) DK_PRINTF(2, 3);
/* A line for people, once: not while replaying. */
void dk_say(dk_orch *o, int32_t level, const char *format, ...) DK_PRINTF(3, 4);

/* Tells the run where in the source its next call stands; gives the dk_orch back. */
dk_orch *dk_orch_at(dk_orch *o, const char *line);

/* So that messages about a call (a change that is not deterministic, a wrong use) name its line:
 * each call takes it along.  In C++, and with DK_NO_SOURCE_LINES defined, the calls are functions
 * only. */
#if !defined DK_NO_SOURCE_LINES && !defined __cplusplus
#define DK_TEXT_OF_(n) #n
#define DK_TEXT_(n) DK_TEXT_OF_(n)
#define DK_AT_(o) dk_orch_at(o, __FILE__ ":" DK_TEXT_(__LINE__))
#define dk_completed(o, ...) dk_completed(DK_AT_(o), __VA_ARGS__)
#define dk_failed(o, ...) dk_failed(DK_AT_(o), __VA_ARGS__)
#define dk_failed_with(o, ...) dk_failed_with(DK_AT_(o), __VA_ARGS__)
#define dk_fail(o, ...) dk_fail(DK_AT_(o), __VA_ARGS__)
#define dk_continue_as_new(o, ...) dk_continue_as_new(DK_AT_(o), __VA_ARGS__)
#define dk_activity(o, ...) dk_activity(DK_AT_(o), __VA_ARGS__)
#define dk_activity_with(o, ...) dk_activity_with(DK_AT_(o), __VA_ARGS__)
#define dk_timer(o, ...) dk_timer(DK_AT_(o), __VA_ARGS__)
#define dk_external(o, ...) dk_external(DK_AT_(o), __VA_ARGS__)
#define dk_dequeue(o, ...) dk_dequeue(DK_AT_(o), __VA_ARGS__)
#define dk_try_dequeue(o, ...) dk_try_dequeue(DK_AT_(o), __VA_ARGS__)
#define dk_child(o, ...) dk_child(DK_AT_(o), __VA_ARGS__)
#define dk_start_detached(o, ...) dk_start_detached(DK_AT_(o), __VA_ARGS__)
#define dk_await(o, ...) dk_await(DK_AT_(o), __VA_ARGS__)
#define dk_outcome(o, ...) dk_outcome(DK_AT_(o), __VA_ARGS__)
#define dk_any_of(o, ...) dk_any_of(DK_AT_(o), __VA_ARGS__)
#define dk_select_of(o, ...) dk_select_of(DK_AT_(o), __VA_ARGS__)
#define dk_all_of(o, ...) dk_all_of(DK_AT_(o), __VA_ARGS__)
#define dk_drop(o, ...) dk_drop(DK_AT_(o), __VA_ARGS__)
#define dk_activity_retried(o, ...) dk_activity_retried(DK_AT_(o), __VA_ARGS__)
#define dk_kv_set(o, ...) dk_kv_set(DK_AT_(o), __VA_ARGS__)
#define dk_kv_get(o, ...) dk_kv_get(DK_AT_(o), __VA_ARGS__)
#define dk_kv_clear(o, ...) dk_kv_clear(DK_AT_(o), __VA_ARGS__)
#define dk_set_status(o, ...) dk_set_status(DK_AT_(o), __VA_ARGS__)
#define dk_guid(o, ...) dk_guid(DK_AT_(o), __VA_ARGS__)
#define dk_now(o) dk_now(DK_AT_(o))
#define dk_random(o) dk_random(DK_AT_(o))
#define dk_kv_clear_all(o) dk_kv_clear_all(DK_AT_(o))
#endif

/* ---- activities ------------------------------------------------------------------------------ */

typedef dk_result dk_activity_fn(dk_task *task, dk_str input);

/* To be returned.  What is returned after a cancellation goes nowhere. */
dk_result dk_done(dk_task *task, dk_str output);
dk_result dk_error(dk_task *task, const char *format, ...) DK_PRINTF(2, 3);
/* The activity could not be tried: it is given back, to be run again after so long. */
dk_result dk_later(dk_task *task, int64_t delay_ms);

/* Why an activity is to end. */
enum {
  DK_CAUSE_NONE = 0,
  DK_CAUSE_CANCELLED = 1,   /* its row is deleted: nobody waits for its result */
  DK_CAUSE_LEASE_LOST = 2,  /* the store could not be reached until the lease was over, or somebody
                               else has it: it may be running elsewhere */
  DK_CAUSE_SHUTDOWN = 3     /* the runtime stops: it will be run again */
};

/* The token: set once.  The descriptor is readable from then on; never read it. */
int32_t dk_task_cancelled(const dk_task *task);
int32_t dk_task_cancel_fd(const dk_task *task);
/* Sleeps for so long, or until the token is set; its cause, DK_CAUSE_NONE if time ran out. */
int32_t dk_task_sleep(const dk_task *task, int64_t ms);
/* For work in other threads, which may outlive the activity; each clone is freed by itself. */
dk_token *dk_task_token(const dk_task *task);
void dk_token_free(dk_token *token);
int32_t dk_token_cancelled(const dk_token *token);
int32_t dk_token_fd(const dk_token *token);
int32_t dk_token_sleep(const dk_token *token, int64_t ms);

struct dk_task_info {
  uint32_t struct_size, attempt;  /* 1 at the first */
  dk_str instance;
  uint64_t execution_id, activity_id;
  dk_str name, orchestration, version, tag, session, worker;
  /* Grows with every handing over of this activity: give it to outside systems, which then refuse a
   * worker that was overtaken. */
  uint64_t fence;
};
const struct dk_task_info *dk_task_info(const dk_task *task);
/* Zeroed memory until the activity ends; NULL without memory. */
void *dk_task_alloc(dk_task *task, size_t size);

/* ---- what can be run ------------------------------------------------------------------------- */

enum {
  DK_IN_THREAD = 0,
  /* In a child process, which really is killed when the grace is over.  Needs dk_zygote_start. */
  DK_IN_PROCESS = 1
};
struct dk_activity_traits {
  uint32_t struct_size;
  int32_t isolation;
  int64_t grace_ms;  /* 0: the runtime's */
};

struct dk_registry;
/* NULL: no memory. */
struct dk_registry *dk_registry_new(void);
void dk_registry_free(struct dk_registry *registry);
/* version "1.2.3"; NULL: "1.0.0".  DK_INVALID, DK_DUPLICATE, DK_NO_MEMORY. */
dk_status dk_register_orchestration(struct dk_registry *registry, const char *name,
                                    const char *version, dk_orchestration_fn *function);
/* What an orchestration needs of its store beside the core. */
enum {
  DK_NEEDS_KV = 1u,       /* durakit.kv/1: dk_kv_... */
  DK_NEEDS_STATUS = 2u,   /* durakit.status/1: dk_set_status */
  DK_NEEDS_SESSIONS = 4u  /* durakit.sessions/1: struct dk_activity_options with a session */
};
struct dk_orchestration_traits {
  uint32_t struct_size, needs;
};
/* As above; traits may be NULL.  dk_runtime_start refuses a store that does not offer what the
 * registered orchestrations need.  DK_INVALID: also needs that this version does not know. */
dk_status dk_register_orchestration_with(struct dk_registry *registry, const char *name,
                                         const char *version, dk_orchestration_fn *function,
                                         const struct dk_orchestration_traits *traits);
dk_status dk_register_activity(struct dk_registry *registry, const char *name,
                               dk_activity_fn *function, const struct dk_activity_traits *traits);

/* At the top of main, before any thread and any store: forks the process from which the children
 * for DK_IN_PROCESS are made.  Such activities are found there, so they are registered before, in
 * this registry.  DK_OK; DK_INVALID if there is more than one thread; DK_UNAVAILABLE. */
struct dk_zygote;
dk_status dk_zygote_start(const struct dk_registry *registry, struct dk_zygote **ret_zygote);
void dk_zygote_stop(struct dk_zygote *zygote);

/* ---- the log --------------------------------------------------------------------------------- */

/* What happened; numbers are stable. */
enum {
  DK_LOG_TEXT = 0,                  /* a line without a number: info, from the library or a user */
  DK_LOG_RENEWED = 1,               /* trace */
  DK_LOG_RENEWAL_RETRIED = 2,       /* warning, the first of all leases' row; then trace */
  DK_LOG_ACTIVITY_CANCELLED = 3,    /* info: cause, and how it was learnt */
  DK_LOG_RESULT_REFUSED = 4,        /* info: the row was gone; the result is dropped */
  DK_LOG_GRACE_EXCEEDED = 5,        /* warning: name and time */
  DK_LOG_QUARANTINED = 6,           /* warning: the thread is left to itself */
  DK_LOG_CAP_REACHED = 7,           /* error: so many are left that no more work is fetched */
  DK_LOG_ACK_RETRIED = 8,           /* warning, the first of a row of all; then trace */
  DK_LOG_LEASE_LOST = 9,            /* warning */
  DK_LOG_TURN_DROPPED = 10,         /* warning: not committed; it will be fetched again */
  DK_LOG_STALLED = 11,              /* warning: nondeterminism, unregistered, unreadable: delayed */
  DK_LOG_STRAY = 12,                /* info: a message that is for nobody (any more) */
  DK_LOG_MESSAGE_DROPPED = 13,      /* warning: nobody came for it */
  DK_LOG_STORE_AWAY = 14,           /* warning: fetching fails; once, until it works again */
  DK_LOG_STORE_BACK = 15,           /* info */
  DK_LOG_ORCHESTRATION_ENDED = 16,  /* debug; a warning: failed by the runtime (poison, ...) */
  DK_LOG_PROGRAMMING_ERROR = 17,    /* error: a wrong call in an orchestration or activity */
  DK_LOG_TURN_STUCK = 18,           /* error: an orchestration does not come back */
  DK_LOG_SHORT_LIMIT = 19           /* warning: a limit that a lost worker exceeds; once each */
};
enum { DK_LEVEL_TRACE = -1, DK_LEVEL_DEBUG = 0, DK_LEVEL_INFO = 1, DK_LEVEL_WARNING = 2,
       DK_LEVEL_ERROR = 3 };
/* How a worker learnt that an activity is to end. */
enum { DK_LEARNT_NOT = 0, DK_LEARNT_BY_COMMIT = 1, DK_LEARNT_BY_RENEWAL = 2, DK_LEARNT_BY_ACK = 3,
       DK_LEARNT_BY_DEADLINE = 4, DK_LEARNT_BY_STOP = 5 };

/* Absent (NULL, 0) is what does not apply.  Lives during the call. */
struct dk_log_event {
  uint32_t struct_size;
  int32_t number, level;
  int32_t cause, learnt;
  uint64_t execution_id, activity_id;
  dk_str instance, activity, orchestration, token, worker;
  dk_status status;
  int64_t ms;       /* a duration that belongs to it: grace, time without the store */
  dk_str text;      /* the whole as a line for people */
};
/* Called by any thread of the runtime, several at once; must not block or call the runtime. */
typedef void dk_log_fn(void *context, const struct dk_log_event *event);

/* ---- a runtime ------------------------------------------------------------------------------- */

enum {
  DK_RUNTIME_NO_LOCAL_SIGNAL = 1u,  /* activities of this process learn by renewal only */
  DK_RUNTIME_FAIL_FAST = 2u,        /* for tests: an orchestration is run from its start at each
                                       turn, and changed code, a wrong call and a limit fail its
                                       instances at once */
  DK_RUNTIME_FAIL_DELAYED = 4u      /* what trying again does not mend (changed code, what is not
                                       registered or cannot be read, a limit, a wrong call) fails
                                       after max_attempts; else it is delayed until it is mended or
                                       cancelled */
};

/* Zero is the default, in brackets.  Times in milliseconds. */
struct dk_runtime_options {
  uint32_t struct_size, flags;
  struct dk_registry *registry;
  struct dk_zygote *zygote;             /* NULL: activities in processes are refused */
  const char *name;                     /* which worker this is, in logs (host:pid:number) */
  dk_log_fn *log;                       /* (warnings and errors go to standard error) */
  void *log_context;
  uint32_t orchestration_slots;         /* turns at once [2] */
  uint32_t activity_slots;              /* activities at once [2] */
  uint32_t max_quarantined;             /* threads left to themselves before no work is fetched any
                                           more [twice activity_slots] */
  uint32_t max_attempts;                /* of a turn or an activity that came to no end (its process
                                           crashed, its lease ran out): then it is poison [10] */
  int64_t turn_lock_ms;                 /* [5,000] */
  int64_t turn_renewal_buffer_ms;       /* [2,000]; renewed every lock - buffer */
  int64_t max_turn_ms;                  /* a turn that takes longer is stuck [10,000] */
  int64_t activity_lock_ms;             /* limits of activities must exceed it, see dk_timer
                                           [30,000] */
  int64_t activity_renewal_buffer_ms;   /* [5,000] */
  int64_t grace_ms;                     /* from the signal until the slot is taken back [10,000] */
  int64_t poll_ms;                      /* how long one fetch waits for work [30,000] */
  int64_t backoff_ms, max_backoff_ms;   /* for what is delayed [1,000; 60,000] */
  uint32_t max_events;                  /* in one execution, then it fails [100,000] */
  uint32_t max_messages;                /* taken into one turn [1,000] */
  uint64_t cache_bytes;                 /* recent histories and runs in memory [64 MiB] */
  const dk_str *tags;                   /* activities with these tags only... */
  size_t n_tags;
  int32_t tag_rule;                     /* DK_TAG_... [DK_TAG_UNTAGGED] */
  int32_t session_rule;                 /* DK_SESSION_... [DK_SESSION_NONE] */
  int64_t session_lock_ms;              /* [30,000] */
};

struct dk_runtime;

/* What does not fit is refused before anything runs: *ret_refusal says what, expected and next. The
 * store stays the caller's, and is closed after the runtime was stopped. */
dk_status dk_runtime_start(struct dk_store *store, const struct dk_runtime_options *options,
                           struct dk_runtime **ret_runtime, struct dk_refusal *ret_refusal);

struct dk_leftover {
  uint32_t struct_size;
  uint32_t turns, activities;  /* given back unfinished */
  uint32_t quarantined;        /* threads that still run (bodies, or calls of the store that cannot
                                  be called back); their code must stay loaded */
  uint32_t not_given_back;     /* whose giving back failed: they wait for the end of their lease */
};
/* Drains: fetches nothing any more, waits for what runs until wait_ms, signals the rest
 * (DK_CAUSE_SHUTDOWN), waits for the grace, gives the leftovers back without counting the attempt,
 * and frees the runtime.  1 if nothing is left in this process; 0 if threads are: then memory that
 * they use stays. */
int32_t dk_runtime_stop(struct dk_runtime *runtime, int64_t wait_ms,
                        struct dk_leftover *ret_leftover);

/* 1, with what this runtime delays at present, if anything (what trying again does not mend, see
 * DK_RUNTIME_FAIL_DELAYED: the process is well, a deployment is not); or 0 with the reason: cap
 * reached, a stuck turn, the zygote dead, or a kind of request
 * (fetches of turns, of activities, commits, ends of activities, renewals) that the store has
 * refused for more than a second, or not answered for more than five. */
int32_t dk_runtime_healthy(struct dk_runtime *runtime, char *reason, size_t size);

struct dk_counters {
  uint32_t struct_size, reserved;
  uint64_t turns_committed, turns_dropped, turns_stalled, turns_lost;
  uint64_t orchestrations_completed, orchestrations_failed, orchestrations_cancelled,
    orchestrations_continued;
  uint64_t activities_started, activities_completed, activities_failed, activities_cancelled,
    activities_lost, activities_put_off;
  uint64_t results_refused, renewals, renewals_retried, renewals_lost, acks_retried;
  uint64_t learnt_by_commit, learnt_by_renewal, learnt_by_ack, learnt_by_deadline;
  uint64_t grace_kept, grace_exceeded, quarantined_now;
  uint64_t strays, messages_dropped, cold_turns, warm_turns;
};
void dk_runtime_counters(struct dk_runtime *runtime, struct dk_counters *ret_counters);

/* All counts of this runtime as text for Prometheus (the format's version is 0.0.4).  `write` is
 * called once, by this thread, with the whole text: its length is known before the first byte goes
 * out, nothing has to be freed, and no lock is held, so that it may be sent from there.  It lives
 * during the call.  DK_OK, or DK_NO_MEMORY: `write` was not called. */
typedef void dk_write_fn(void *context, dk_str text);
dk_status dk_runtime_metrics(struct dk_runtime *runtime, dk_write_fn *write, void *context);
/* The same text as a file, for whoever collects it there.  It is written to a new file beside it
 * (PATH.NUMBER.tmp, of mode 0644 less the umask), which takes the place of `path` when it is whole:
 * a reader sees the old text or the new one, also where several threads or processes save to one
 * path.  Nothing is synced: counts are not worth it, and begin at 0 with each runtime.  It takes as
 * long as the file system does, so it is for a thread of yours; none of the runtime's waits for it.
 * `path` is relative to the current folder, and has to be a regular file, or nothing yet.
 *
 * DK_OK; else `path` is as it was, nothing stays beside it, and the reason (NULL: nobody asks) says
 * why: DK_INVALID (no path, or there is a link, a folder, a device), DK_NO_MEMORY, DK_UNAVAILABLE
 * (it cannot be written: no such folder, no right, no room). */
dk_status dk_runtime_save_metrics(struct dk_runtime *runtime, const char *path, char *reason,
                                  size_t size);

/* ---- a client -------------------------------------------------------------------------------- */

struct dk_client;
/* NULL: no memory.  The canceller (may be NULL) calls its calls and waits back. */
struct dk_client *dk_client_new(struct dk_store *store, struct dk_canceller *canceller);
void dk_client_free(struct dk_client *client);
/* How the last call of the client failed; "" if it did not.  It belongs to one thread at a time
 * where this, or the text in an info, is used. */
const char *dk_client_error(const struct dk_client *client);

/* A call whose outcome is unknown is repeated for about a second until it is known; what can be
 * tried again besides (DK_BUSY, DK_UNAVAILABLE) is not, that is the caller's to decide: nothing
 * happened.  DK_OUTCOME_UNKNOWN: the store stayed away; it may have happened.
 *
 * DK_OK: the start is stored.  DK_DUPLICATE: the instance is there, or a start is stored (after an
 * unknown outcome that may be this one; dk_client_error says so).  Of two starts at once, that are
 * stored one after the other, the first counts. */
dk_status dk_client_start(struct dk_client *client, dk_str instance, const char *name, dk_str input,
                          const char *version);
/* To an instance that is not there (yet): the message waits for its start for a while, and is
 * dropped then.  A repetition after an unknown outcome is found and arrives once, unless the
 * instance took the first one in an execution before the current one. */
dk_status dk_client_raise(struct dk_client *client, dk_str instance, const char *event,
                          dk_str data);
dk_status dk_client_enqueue(struct dk_client *client, dk_str instance, const char *queue,
                            dk_str data);
/* Asks for the cancellation, whether the instance is there or not (dk_cancel_one of
 * durakit/manage.h looks first); DK_OK: asked, now or before.  The first reason wins; what is over
 * stays as it is.  reason (at most 1,024 bytes) and by (1 to 256 bytes) are UTF-8 without control
 * characters, or NULL. */
dk_status dk_client_cancel(struct dk_client *client, dk_str instance, const char *reason,
                           const char *by);

struct dk_instance_info {
  uint32_t struct_size;
  int32_t status;            /* DK_NOT_STARTED, DK_RUNNING, DK_COMPLETED, DK_FAILED, DK_CANCELLED */
  uint64_t execution_id, n_events;
  int64_t started_at, ended_at;
  dk_str name, version;
  dk_str output;             /* not started: the input; completed: the output; failed: the error;
                                cancelled: the reason */
  dk_str cancelled_by;
  dk_str instance;
  /* Of a provider with durakit.admin/1: */
  dk_str parent;             /* absent: none */
  dk_str owner;              /* who has its history in memory */
  int64_t created_at;        /* when its first message was stored */
  int64_t locked_until;      /* somebody runs its turn; 0: nobody does */
};
/* Text in the info lives until the client's next call.  DK_NOT_STARTED: its start is stored, and no
 * turn of it was committed yet, which a provider with durakit.admin/1 can tell; name, version (if
 * one was asked for), input and parent are the start's.  Else that is DK_NOT_FOUND. */
dk_status dk_client_status(struct dk_client *client, dk_str instance,
                           struct dk_instance_info *ret_info);
/* Waits until the instance is over, whatever execution it is in by then: DK_NOTHING if it is not
 * after wait_ms (dk_client_error tells how it stands: not there, not started, running),
 * DK_CALL_CANCELLED.  A store that is away is waited for as well; it is told (DK_UNAVAILABLE, ...)
 * if it is away when the time is up. */
dk_status dk_client_wait(struct dk_client *client, dk_str instance, int64_t wait_ms,
                         struct dk_instance_info *ret_info);

#ifdef __cplusplus
}
#endif
#if defined __GNUC__
#if defined __cplusplus
#pragma GCC diagnostic pop
#endif
#pragma GCC visibility pop
#endif
#endif
