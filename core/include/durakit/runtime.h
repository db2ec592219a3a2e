/* SPDX-License-Identifier: 0BSD */
/* durakit/runtime.h - durable orchestrations and activities on any provider.
 *
 * An orchestration is a plain C function that outlives the process.  While it waits, the runtime
 * keeps it in memory, if there is room, and continues it from there.  Otherwise the runtime runs it
 * again from its start and matches its calls with its history, so that it reaches the point where
 * it was.  This may happen in any turn.  An activity is a plain C function that runs in a worker's
 * thread; it may do anything, and runs at least once.
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
 * Rules for orchestrations.  Take time, random numbers and everything external from the calls
 * below, never from elsewhere: the same history must lead to the same calls.  A call that has to
 * wait might never return (longjmp), so hold nothing across a call of this header: no lock, no
 * file, no malloc.  Use memory from dk_orch_alloc, which is valid as long as the run.  Each run has
 * its own thread, with a stack of 1 MiB.
 *
 * Text that you pass to a call is copied, and needs no NUL; dk_str_of("...") makes it from a
 * string.  Text that a call returns has a NUL at ptr[len], and is valid as long as the run (the
 * activity).
 *
 * Threads.  One thread fills a registry before a runtime is started with it.  A runtime, a client
 * and a token may be used by any thread; a dk_orch only by the function that it was passed to; a
 * dk_task only by the activity that it was passed to, but its token can be cloned for other
 * threads.
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
typedef struct dk_future dk_future; /* an operation that it began, which might not have ended */
typedef struct dk_task dk_task;     /* a running activity */
typedef struct dk_token dk_token;   /* signals an activity that it must end */

/* How an orchestration or an activity ended; only the calls below that return it can make it. */
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

/* Return one of these.  Everything that is still outstanding is cancelled in the same commit. */
dk_result dk_completed(dk_orch *o, dk_str output);
dk_result dk_failed(dk_orch *o, const char *error);
dk_result dk_failed_with(dk_orch *o, const char *format, ...) DK_PRINTF(2, 3);
/* From any call depth: ends the orchestration as failed; does not return. */
DK_NORETURN void dk_fail(dk_orch *o, const char *format, ...) DK_PRINTF(2, 3);
/* From any call depth: ends this execution, cancels what is outstanding, and begins the next one,
 * with an empty history and this input, under the version given (NULL: the newest registered).  The
 * next execution gets the messages in queues that were not taken; key-values and custom status
 * remain. */
DK_NORETURN void dk_continue_as_new(dk_orch *o, dk_str input, const char *version);

/* ---- orchestrations: what they begin --------------------------------------------------------- */

struct dk_activity_options {
  uint32_t struct_size, reserved;
  dk_str tag;      /* only workers that request this tag run it */
  dk_str session;  /* durakit.sessions/1: one worker runs all activities of a session */
};
struct dk_child_options {
  uint32_t struct_size, reserved;
  dk_str instance;      /* absent: made from the parent's id, execution and position */
  const char *version;  /* NULL: the newest that is registered where it starts */
};

dk_future *dk_activity(dk_orch *o, const char *name, dk_str input);
dk_future *dk_activity_with(dk_orch *o, const char *name, dk_str input,
                            const struct dk_activity_options *options);
/* A durable timer: it keeps running while the store or the workers are unreachable.  A timer that
 * limits an activity must therefore exceed the lease (activity_lock_ms of the workers) by the time
 * that the work takes: if a worker is lost, its activity runs again only when its lease has ended.
 * The runtime logs a limit that is too short (DK_LOG_SHORT_LIMIT). */
dk_future *dk_timer(dk_orch *o, int64_t ms);
/* The next event of this name that was raised and that no earlier call waited for: events that
 * arrive early are kept. */
dk_future *dk_external(dk_orch *o, const char *event);
/* The next message of a queue.  Unlike events, messages that were not taken pass to the next
 * execution. */
dk_future *dk_dequeue(dk_orch *o, const char *queue);
/* 1 and the message if one arrived before the last event that the code has waited for; else 0. */
int32_t dk_try_dequeue(dk_orch *o, const char *queue, dk_str *ret_message);
/* Starts a child; the future ends when the child ends.  If the parent ends first, or drops the
 * future, the child is cancelled.  If the instance id is taken, the future fails. */
dk_future *dk_child(dk_orch *o, const char *name, dk_str input,
                    const struct dk_child_options *options);
/* Starts an independent orchestration, without waiting for it. */
void dk_start_detached(dk_orch *o, const char *name, dk_str instance, dk_str input,
                       const char *version);

/* ---- orchestrations: waiting ----------------------------------------------------------------- */

enum { DK_PENDING = 0, DK_SUCCEEDED = 1, DK_FAULTED = 2, DK_DROPPED = 3 };

/* Waits and returns the result.  If the future failed or was dropped, the orchestration fails with
 * that error. */
dk_str dk_await(dk_orch *o, dk_future *future);
/* Waits and returns DK_SUCCEEDED with the result, DK_FAULTED with the error's text, or
 * DK_DROPPED. */
int32_t dk_outcome(dk_orch *o, dk_future *future, dk_str *ret_value);
/* Waits for the first to end, in the order of the history; if the code has already waited past the
 * end of several, returns the first of these in the order of the arguments.  dk_any leaves the
 * others open.  dk_select cancels them: this turn's commit deletes the row of an activity, removes
 * a timer, and sends a child a request to cancel. */
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
/* Cancels one; nothing happens if it has already ended. */
void dk_drop(dk_orch *o, dk_future *future);
/* DK_PENDING, or how it ended, as far as the code has waited: it does not look ahead in the
 * history. */
int32_t dk_ready(const dk_orch *o, const dk_future *future);

/* Runs an activity until it succeeds.  Waits, as dk_outcome does, until the last attempt has
 * ended. */
struct dk_retry {
  uint32_t struct_size, attempts;  /* at least 1 */
  int64_t timeout_ms;              /* after which an attempt is cancelled; 0: none.  It is a limit:
                                      see dk_timer */
  int64_t first_delay_ms, max_delay_ms;
  uint32_t factor_percent;         /* each delay as a percentage of the one before; 0: 200 */
  uint32_t retry_timeouts;         /* 0: do not retry an attempt that has timed out */
};
int32_t dk_activity_retried(dk_orch *o, const char *name, dk_str input,
                            const struct dk_activity_options *options,
                            const struct dk_retry *retry, dk_str *ret_value);

/* ---- orchestrations: the rest ---------------------------------------------------------------- */

/* Recorded: every replay returns the same values. */
int64_t dk_now(dk_orch *o);
void dk_guid(dk_orch *o, char ret_guid[37]);
uint64_t dk_random(dk_orch *o);

/* durakit.kv/1 and durakit.status/1.  Register an orchestration that calls these with what it needs
 * (dk_register_orchestration_with): then a runtime does not start on a store without them.
 * Otherwise the call is a programming error on such a store. */
void dk_kv_set(dk_orch *o, const char *key, dk_str value);
int32_t dk_kv_get(dk_orch *o, const char *key, dk_str *ret_value); /* 1: the key exists */
void dk_kv_clear(dk_orch *o, const char *key);
void dk_kv_clear_all(dk_orch *o);
void dk_set_status(dk_orch *o, dk_str status); /* absent: clears it */

dk_str dk_orch_instance(const dk_orch *o);
uint64_t dk_orch_execution(const dk_orch *o);
dk_str dk_orch_name(const dk_orch *o);
dk_str dk_orch_version(const dk_orch *o);
dk_str dk_orch_parent(const dk_orch *o); /* absent: none */
/* 1 while the code repeats what an earlier turn has committed. */
int32_t dk_replaying(const dk_orch *o);
/* Zeroed memory of the run.  If there is no memory, the turn is delayed, and the call does not
 * return. */
void *dk_orch_alloc(dk_orch *o, size_t size);
dk_str dk_format(dk_orch *o, const char *format, ...) DK_PRINTF(2, 3);
/* Logs a line for people to read, once: not while replaying. */
void dk_say(dk_orch *o, int32_t level, const char *format, ...) DK_PRINTF(3, 4);

/* Records the source line of the next call; returns `o`. */
dk_orch *dk_orch_at(dk_orch *o, const char *line);

/* With these macros each call passes its source line, so that messages about the call (a change
 * that is not deterministic, a programming error) can name it.  In C++, and with DK_NO_SOURCE_LINES
 * defined, the calls are functions only. */
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

/* Return one of these.  After a cancellation the result is discarded. */
dk_result dk_done(dk_task *task, dk_str output);
dk_result dk_error(dk_task *task, const char *format, ...) DK_PRINTF(2, 3);
/* The activity could not be tried: it is given back, and runs again after delay_ms. */
dk_result dk_later(dk_task *task, int64_t delay_ms);

/* Why an activity must end. */
enum {
  DK_CAUSE_NONE = 0,
  DK_CAUSE_CANCELLED = 1,   /* its row was deleted: its result is not needed */
  DK_CAUSE_LEASE_LOST = 2,  /* the store was unreachable until the lease ended, or another worker
                               has the lease: the activity might be running elsewhere */
  DK_CAUSE_SHUTDOWN = 3     /* the runtime stops: the activity will run again */
};

/* The token: once set, it stays set.  The descriptor is readable from then on; never read from
 * it. */
int32_t dk_task_cancelled(const dk_task *task);
int32_t dk_task_cancel_fd(const dk_task *task);
/* Sleeps for `ms`, or until the token is set.  Returns its cause, or DK_CAUSE_NONE if the time has
 * passed. */
int32_t dk_task_sleep(const dk_task *task, int64_t ms);
/* Clones the token for work in other threads, which may outlive the activity.  Free each clone
 * separately. */
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
  /* Grows each time this activity is handed to a worker.  Pass it to external systems, so that they
   * can refuse a worker that another one has replaced. */
  uint64_t fence;
};
const struct dk_task_info *dk_task_info(const dk_task *task);
/* Zeroed memory, valid until the activity ends; NULL if there is no memory. */
void *dk_task_alloc(dk_task *task, size_t size);

/* ---- what can be run ------------------------------------------------------------------------- */

enum {
  DK_IN_THREAD = 0,
  /* In a child process, which is killed when the grace period ends.  Needs dk_zygote_start. */
  DK_IN_PROCESS = 1
};
struct dk_activity_traits {
  uint32_t struct_size;
  int32_t isolation;
  int64_t grace_ms;  /* 0: that of the runtime */
};

struct dk_registry;
/* NULL: no memory. */
struct dk_registry *dk_registry_new(void);
void dk_registry_free(struct dk_registry *registry);
/* version "1.2.3"; NULL: "1.0.0".  DK_INVALID, DK_DUPLICATE, DK_NO_MEMORY. */
dk_status dk_register_orchestration(struct dk_registry *registry, const char *name,
                                    const char *version, dk_orchestration_fn *function);
/* What an orchestration needs from its store besides the core. */
enum {
  DK_NEEDS_KV = 1u,       /* durakit.kv/1: dk_kv_... */
  DK_NEEDS_STATUS = 2u,   /* durakit.status/1: dk_set_status */
  DK_NEEDS_SESSIONS = 4u  /* durakit.sessions/1: struct dk_activity_options with a session */
};
struct dk_orchestration_traits {
  uint32_t struct_size, needs;
};
/* As above; traits may be NULL.  dk_runtime_start refuses a store that does not offer what the
 * registered orchestrations need.  Also DK_INVALID for needs that this version does not know. */
dk_status dk_register_orchestration_with(struct dk_registry *registry, const char *name,
                                         const char *version, dk_orchestration_fn *function,
                                         const struct dk_orchestration_traits *traits);
dk_status dk_register_activity(struct dk_registry *registry, const char *name,
                               dk_activity_fn *function, const struct dk_activity_traits *traits);

/* Forks the process that makes the children for DK_IN_PROCESS.  Call it at the top of main, before
 * any thread is started and any store is opened.  Such activities are looked up in that process, so
 * register them first, in this registry.  DK_OK; DK_INVALID if there is more than one thread;
 * DK_UNAVAILABLE. */
struct dk_zygote;
dk_status dk_zygote_start(const struct dk_registry *registry, struct dk_zygote **ret_zygote);
void dk_zygote_stop(struct dk_zygote *zygote);

/* ---- the log --------------------------------------------------------------------------------- */

/* What happened; numbers are stable. */
enum {
  DK_LOG_TEXT = 0,                  /* a line without a number: info, from the library or a user */
  DK_LOG_RENEWED = 1,               /* trace: a lease was renewed */
  DK_LOG_RENEWAL_RETRIED = 2,       /* warning: the first failure in a row; then trace */
  DK_LOG_ACTIVITY_CANCELLED = 3,    /* info: cause, and how the worker learnt it */
  DK_LOG_RESULT_REFUSED = 4,        /* info: the row had been deleted; the result is dropped */
  DK_LOG_GRACE_EXCEEDED = 5,        /* warning: an activity runs on after its grace */
  DK_LOG_QUARANTINED = 6,           /* warning: its thread was abandoned, and runs on */
  DK_LOG_CAP_REACHED = 7,           /* error: too many abandoned threads; no more work is fetched */
  DK_LOG_ACK_RETRIED = 8,           /* warning: the first failure in a row; then trace */
  DK_LOG_LEASE_LOST = 9,            /* warning: of a turn or an activity */
  DK_LOG_TURN_DROPPED = 10,         /* warning: not committed; it will be fetched again */
  DK_LOG_STALLED = 11,              /* warning: nondeterminism, unregistered, unreadable: delayed */
  DK_LOG_STRAY = 12,                /* info: a message that no instance can use (any more) */
  DK_LOG_MESSAGE_DROPPED = 13,      /* warning: its instance was not started in time */
  DK_LOG_STORE_AWAY = 14,           /* warning: the store is unreachable; once, until it answers */
  DK_LOG_STORE_BACK = 15,           /* info: the store answers again */
  DK_LOG_ORCHESTRATION_ENDED = 16,  /* debug; a warning if the runtime failed it (poison, ...) */
  DK_LOG_PROGRAMMING_ERROR = 17,    /* error: an invalid call in an orchestration or activity */
  DK_LOG_TURN_STUCK = 18,           /* error: an orchestration's code does not return */
  DK_LOG_SHORT_LIMIT = 19           /* warning: a limit too short for a lost worker; once each */
};
enum { DK_LEVEL_TRACE = -1, DK_LEVEL_DEBUG = 0, DK_LEVEL_INFO = 1, DK_LEVEL_WARNING = 2,
       DK_LEVEL_ERROR = 3 };
/* How a worker learnt that an activity must end. */
enum { DK_LEARNT_NOT = 0, DK_LEARNT_BY_COMMIT = 1, DK_LEARNT_BY_RENEWAL = 2, DK_LEARNT_BY_ACK = 3,
       DK_LEARNT_BY_DEADLINE = 4, DK_LEARNT_BY_STOP = 5 };

/* Members that do not apply are absent (NULL, 0).  Valid during the call. */
struct dk_log_event {
  uint32_t struct_size;
  int32_t number, level;
  int32_t cause, learnt;
  uint64_t execution_id, activity_id;
  dk_str instance, activity, orchestration, token, worker;
  dk_status status;
  int64_t ms;       /* a duration, if the event has one: the grace, the time without the store */
  dk_str text;      /* the whole event as a line for people to read */
};
/* Called by any thread of the runtime, by several at once; must not block or call the runtime. */
typedef void dk_log_fn(void *context, const struct dk_log_event *event);

/* ---- a runtime ------------------------------------------------------------------------------- */

enum {
  DK_RUNTIME_NO_LOCAL_SIGNAL = 1u,  /* activities of this process learn of a cancellation by renewal
                                       only */
  DK_RUNTIME_FAIL_FAST = 2u,        /* for tests: each turn runs an orchestration from its start;
                                       changed code, an invalid call or a limit fails its instance
                                       at once */
  DK_RUNTIME_FAIL_DELAYED = 4u      /* an instance with an error that a retry cannot fix (changed
                                       code, not registered, not readable, a limit, an invalid call)
                                       fails after max_attempts.  Without the flag it is delayed
                                       until it is fixed or cancelled */
};

/* Zero means the default, which is in brackets.  Times are in milliseconds. */
struct dk_runtime_options {
  uint32_t struct_size, flags;
  struct dk_registry *registry;
  struct dk_zygote *zygote;             /* NULL: DK_IN_PROCESS activities are refused */
  const char *name;                     /* the name of this worker in logs [host:pid:number] */
  dk_log_fn *log;                       /* [warnings and errors go to standard error] */
  void *log_context;
  uint32_t orchestration_slots;         /* turns at once [2] */
  uint32_t activity_slots;              /* activities at once [2] */
  uint32_t max_quarantined;             /* number of abandoned threads at which no more work is
                                           fetched [twice activity_slots] */
  uint32_t max_attempts;                /* of a turn or an activity that does not end (its process
                                           crashes, its lease expires): then it is poison [10] */
  int64_t turn_lock_ms;                 /* [5,000] */
  int64_t turn_renewal_buffer_ms;       /* [2,000]; renewed every lock - buffer */
  int64_t max_turn_ms;                  /* a turn that takes longer is reported as stuck [10,000] */
  int64_t activity_lock_ms;             /* limits of activities must exceed it: see dk_timer
                                           [30,000] */
  int64_t activity_renewal_buffer_ms;   /* [5,000] */
  int64_t grace_ms;                     /* from the signal until the activity must have ended
                                           [10,000] */
  int64_t poll_ms;                      /* how long one fetch waits for work [30,000] */
  int64_t backoff_ms, max_backoff_ms;   /* delay before a retry [1,000; 60,000] */
  uint32_t max_events;                  /* in one execution, which fails if it has more [100,000] */
  uint32_t max_messages;                /* taken into one turn [1,000] */
  uint64_t cache_bytes;                 /* recent histories and runs in memory [64 MiB] */
  const dk_str *tags;                   /* run activities with these tags only... */
  size_t n_tags;
  int32_t tag_rule;                     /* DK_TAG_... [DK_TAG_UNTAGGED] */
  int32_t session_rule;                 /* DK_SESSION_... [DK_SESSION_NONE] */
  int64_t session_lock_ms;              /* [30,000] */
};

struct dk_runtime;

/* Checks the options, and refuses those that do not fit before anything runs: *ret_refusal has
 * what, expected and next.  The store still belongs to the caller, who closes it after the runtime
 * was stopped. */
dk_status dk_runtime_start(struct dk_store *store, const struct dk_runtime_options *options,
                           struct dk_runtime **ret_runtime, struct dk_refusal *ret_refusal);

struct dk_leftover {
  uint32_t struct_size;
  uint32_t turns, activities;  /* given back unfinished */
  uint32_t quarantined;        /* threads that still run (activities, or calls of the store that do
                                  not end when cancelled); their code must remain loaded */
  uint32_t not_given_back;     /* turns and activities that could not be given back: they wait for
                                  the end of their lease */
};
/* Stops fetching, waits up to wait_ms for what runs, signals the rest (DK_CAUSE_SHUTDOWN), waits
 * for the grace, gives back what is unfinished without counting the attempt, and frees the runtime.
 * Returns 1 if no thread of it still runs in this process; else 0: then the memory that these
 * threads use is not freed. */
int32_t dk_runtime_stop(struct dk_runtime *runtime, int64_t wait_ms,
                        struct dk_leftover *ret_leftover);

/* 1 if the runtime is healthy; `reason` then lists what it delays at present, if anything, because
 * a retry cannot fix it (see DK_RUNTIME_FAIL_DELAYED: then the process is healthy, but a deployment
 * is not).  0 with the reason if it is not: the cap of abandoned threads reached, a stuck turn, the
 * zygote dead, or a kind of request (fetches of turns, fetches of activities, commits, ends of
 * activities, renewals) that the store has refused for more than one second or has not answered for
 * more than five. */
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

/* All counts of this runtime as text for Prometheus (version 0.0.4 of the format).  Calls `write`
 * once, in this thread, with the whole text: so its length is known before the first byte is sent,
 * and nothing has to be freed.  No lock is held, so that `write` may send it.  The text is valid
 * during that call.  DK_OK, or DK_NO_MEMORY: `write` was not called. */
typedef void dk_write_fn(void *context, dk_str text);
dk_status dk_runtime_metrics(struct dk_runtime *runtime, dk_write_fn *write, void *context);
/* Saves the same text in a file, for a program that collects it there.  It writes a new file beside
 * it (PATH.NUMBER.tmp, mode 0644 less the umask), which replaces `path` when it is complete: a
 * reader sees the old text or the new one, even if several threads or processes save to one path.
 * It does not sync the file: counts are not worth it, and begin at 0 with each runtime.  It may
 * take as long as the file system takes, so call it from a thread of yours; no thread of the
 * runtime waits for it. `path` is relative to the current folder, and must be a regular file or not
 * exist.
 *
 * DK_OK; else `path` is unchanged, the new file was removed, and `reason` (may be NULL) is the
 * cause: DK_INVALID (no path, or it is a link, a folder, a device), DK_NO_MEMORY, DK_UNAVAILABLE
 * (it cannot be written: no such folder, no permission, no space). */
dk_status dk_runtime_save_metrics(struct dk_runtime *runtime, const char *path, char *reason,
                                  size_t size);

/* ---- a client -------------------------------------------------------------------------------- */

struct dk_client;
/* NULL: no memory.  The canceller (may be NULL) cancels the client's calls and waits. */
struct dk_client *dk_client_new(struct dk_store *store, struct dk_canceller *canceller);
void dk_client_free(struct dk_client *client);
/* How the last call of the client failed; "" if it did not.  If you use this, or the text in an
 * info, only one thread at a time may use the client. */
const char *dk_client_error(const struct dk_client *client);

/* If the outcome of a call is unknown, the client repeats it for about a second until it is known.
 * It does not repeat a call that failed with DK_BUSY or DK_UNAVAILABLE: nothing happened, and the
 * caller decides.  DK_OUTCOME_UNKNOWN: the store remained unreachable; the call may have taken
 * effect.
 *
 * DK_OK: the start is stored.  DK_DUPLICATE: the instance exists, or a start is stored already
 * (after an unknown outcome it may be this one; dk_client_error says so).  If two starts of one
 * instance are made at once and both are stored, the first one counts. */
dk_status dk_client_start(struct dk_client *client, dk_str instance, const char *name, dk_str input,
                          const char *version);
/* If the instance does not exist (yet), the message waits for its start for some time, and is then
 * dropped.  If the client repeats it after an unknown outcome, it still arrives only once, unless
 * the instance took the first copy in an earlier execution. */
dk_status dk_client_raise(struct dk_client *client, dk_str instance, const char *event,
                          dk_str data);
dk_status dk_client_enqueue(struct dk_client *client, dk_str instance, const char *queue,
                            dk_str data);
/* Requests the cancellation, whether the instance exists or not (dk_cancel_one of durakit/manage.h
 * checks first).  DK_OK: it is requested, now or earlier.  The first reason counts; an instance
 * that has ended is not changed.  reason (at most 1,024 bytes) and by (1 to 256 bytes) are UTF-8
 * without control characters, or NULL. */
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
  /* Only with a provider that has durakit.admin/1: */
  dk_str parent;             /* absent: none */
  dk_str owner;              /* the worker that has its history in memory */
  int64_t created_at;        /* when its first message was stored */
  int64_t locked_until;      /* until when its turn is locked; 0: it is not locked */
};
/* Text in the info is valid until the client's next call.  DK_NOT_STARTED: the start is stored, but
 * no turn was committed yet; name, version (if one was requested), input and parent are those of
 * the start.  A provider without durakit.admin/1 cannot show this: then it is DK_NOT_FOUND. */
dk_status dk_client_status(struct dk_client *client, dk_str instance,
                           struct dk_instance_info *ret_info);
/* Waits until the instance has ended, in whatever execution.  DK_NOTHING if it has not ended after
 * wait_ms (dk_client_error has its state: it does not exist, is not started, is running);
 * DK_CALL_CANCELLED.  While the store is unreachable, the client waits too; it returns the store's
 * error (DK_UNAVAILABLE, ...) if the store is still unreachable when the time is up. */
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
