/* SPDX-License-Identifier: 0BSD */
/* durakit/provider.h - what a storage provider for durable execution is.
 *
 * This header is the manual: it says what each operation promises, and names the clauses of the
 * contract (docs/contract.md, or `durakit explain CANCEL-5`) that hold it to that.  A provider
 * is one shared object which exports one function, durakit_provider_2, and includes nothing else
 * of ours.
 *
 * The idea.  Histories, queues and locks of a workflow engine live in your store.  A provider is a
 * dumb store: payloads are bytes that it never opens, and everything it must know crosses this
 * header as a field.  Two queues: messages wake orchestrations (a "turn" is one locked batch of one
 * instance's messages, with its history); work items are activities to run.  An activity is
 * cancelled by deleting its row from the worker queue, in the transaction that commits the turn.
 * There is no cancel flag, and no state of an orchestration that a worker could ask for.
 *
 * Growth.    Every struct begins with struct_size and only ever gains members at its end.  A member
 *            beyond the other side's struct_size is absent: test with DK_HAS_FIELD or DK_HAS.  Zero
 *            always means "absent" or "leave it as it is".  Structs marked frozen stand in arrays
 *            and never grow.  A flag bit or a value that you do not know is DK_UNSUPPORTED.
 * Ownership. Memory is freed by the side that allocated it; nothing changes hands.  A pointer
 *            passed in either direction dies when the function it was passed to returns.
 * Results.   Handed up through the upcalls of struct dk_host, copied at once, and provisional: they
 *            count only if the operation then returns DK_OK.
 * Time.      Milliseconds since the Unix epoch; durations in milliseconds.  Read host->now once for
 *            all that an operation decides, after your last wait for a lock or for work; again only
 *            for lease_left_ms.  Every wait for a time goes through host->wait, until an absolute
 *            time; your own threads wait for events only.
 * Tokens.    1 to 2 * max_id + 128 bytes without NUL, opaque to everybody else.  Put your row's
 *            address and a counter in, and no index over tokens is needed.
 * Text.      Instance, id, session, tag, key, owner, name and version are UTF-8 without NUL, 1 to
 *            max_id bytes, compared bytewise; the host checks that.  Payload, output, custom status
 *            and values are any bytes.
 * Threads.   The tag in brackets at the end of each comment:
 *              [load]        the loader's lock is held, there is no handle
 *              [serial]      nothing else runs on this handle
 *              [concurrent]  as your thread model allows
 *              [in-call]     from the call of an operation to its return: upcalls of one dk_call
 *                            never overlap; make them from any thread of yours, but wait only
 *                            from the one that was called
 *              [any]         any thread, from open to close
 * Manners.   No signal handlers, no change of process state (directory, umask, locale,
 *            environment), nothing on standard output, no exit, no fork without exec, and no
 *            exception or panic across this boundary.  After close nothing of the handle is
 *            left.  [ABI-5 to ABI-7, CALL-8]
 */
#ifndef DURAKIT_PROVIDER_H
#define DURAKIT_PROVIDER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DK_ABI_MAJOR 2
#define DK_ABI_MINOR 3u
#define DK_ABI_DRAFT 1u /* part of the stamp until the layout is frozen; see docs/abi.md */
#define DK_MAGIC 0x324b4431u

/* ---- status ---------------------------------------------------------------------------------- */

/* The hundreds digit is the class, so that an old host can act on a code it has never seen:
 *   0  not an error
 *   1  try again: nothing happened that counts
 *   2  do not try again: the same call will be refused again
 *   3  it is unknown whether it happened; repeat only with DK_REPEATED
 * Classes 0 (but for DK_OK) and 2 leave no lock and no counted attempt.  Classes 1 and 3 may
 * leave a lock that runs out, and one counted attempt.  When several refusals hold, the first of
 * these is given: dead token, form, size, state.  [ERR-1, ERR-3, ERR-5] */
typedef int32_t dk_status;

enum {
  DK_OK = 0,
  DK_NOTHING = 1,        /* a fetch found no work; a wait ran out */
  DK_CALL_CANCELLED = 2, /* the host wanted the call back, and nothing was done.  Once a request is
                            out, a call that gives up is DK_OUTCOME_UNKNOWN, fetch and renew too */
  DK_BUSY = 100,         /* somebody holds what the call needs: locked store, lost race, deadlock */
  DK_UNAVAILABLE = 101,  /* the store cannot be reached, or has no room */
  DK_NO_MEMORY = 102,
  DK_INVALID = 200,      /* the request is malformed, or does not fit the instance */
  DK_LOCK_LOST = 201,    /* the token is dead: unknown, used up, expired, taken over, row deleted */
  DK_DUPLICATE = 202,    /* an event, activity or message with this identity is stored */
  DK_NOT_FOUND = 203,
  DK_REFUSED = 204,      /* the store is not for this (other clock, other version, read-only), or
                            the instance is not: it is not over */
  DK_CORRUPT = 205,
  DK_UNSUPPORTED = 206,  /* a flag, value or extension that this provider does not know */
  DK_TOO_LARGE = 207,    /* beyond dk_limits; nothing changed */
  DK_INTERNAL = 299,
  DK_OUTCOME_UNKNOWN = 300
};

/* ptr == NULL: absent.  ptr != NULL with len == 0: empty.  Text that is handed to a provider
 * also has an uncounted NUL at ptr[len].  Frozen. */
struct dk_bytes {
  const char *ptr;
  size_t len;
};

struct dk_call; /* one running operation; dies when it returns */

/* ---- what the host sends --------------------------------------------------------------------- */

/* This very call was made before and its answer was lost.  The first attempt may still be running:
 * decide after your last wait for a lock.  A DK_OK to a repeated commit may bring no stolen and no
 * cancelled_rows.  [ACK-11, WORK-10] */
enum { DK_REPEATED = 1u };

/* A message or an activity: an address, and a payload that you never open.  It becomes visible at
 * max(visible_at, now + delay_ms), and the sum saturates.  [TIME-3, TIME-5] */
struct dk_item {
  uint32_t struct_size, flags;   /* DK_REPEATED, for enqueue_for_* only */
  struct dk_bytes instance;      /* whose queue it goes to; absent in a commit's worker_items, which
                                    belong to the turn's */
  struct dk_bytes id;            /* absent: none.  While a message of this instance with this id is
                                    stored, a second one is DK_DUPLICATE.  [QUEUE-4] */
  uint64_t execution_id;         /* activities: with instance and activity_id the row's identity, */
  uint64_t activity_id;          /*   unique in the worker queue; messages: 0.  [CANCEL-11] */
  struct dk_bytes session, tag;  /* activities; absent: none.  A session comes to you only if you
                                    declare durakit.sessions/1 */
  int64_t visible_at, delay_ms;
  struct dk_bytes payload;
};

struct dk_event {                /* frozen */
  uint64_t event_id;
  struct dk_bytes payload;
};
struct dk_activity {             /* one of the turn's instance; frozen */
  uint64_t execution_id, activity_id;
};
struct dk_version {              /* compared as numbers; frozen.  [PIN-4] */
  uint32_t major, minor, patch;
};
struct dk_version_range {        /* both ends belong to it; frozen */
  struct dk_version min, max;
};

enum { DK_KV_SET = 1, DK_KV_CLEAR = 2, DK_KV_CLEAR_ALL = 3 };
struct dk_kv_change {            /* frozen */
  int32_t op, reserved;
  struct dk_bytes key, value;
  int64_t updated_at;
};

enum {
  DK_STATUS_KEEP = 0, /* leave status and output as they are */
  DK_RUNNING = 1,
  DK_COMPLETED = 2,
  DK_FAILED = 3,
  DK_CONTINUED_AS_NEW = 4,
  DK_CANCELLED = 5    /* a status of its own, never shown as failed.  [EXEC-5] */
};
enum { DK_CUSTOM_KEEP = 0, DK_CUSTOM_SET = 1, DK_CUSTOM_CLEAR = 2 };

/* The lists of a commit of which an item can be stored already: see host->duplicate. */
enum { DK_LIST_EVENTS = 1, DK_LIST_WORKER_ITEMS = 2, DK_LIST_ORCHESTRATOR_ITEMS = 3 };

/* What one turn did: applied whole, or not at all.  The members stand in the order in which a
 * provider applies them, but for the worker items, which go in before the cancelled activities
 * go out. */
struct dk_turn_result {
  uint32_t struct_size, flags;                      /* DK_REPEATED */
  uint64_t execution_id;                            /* 0: the empty commit; else current or next */
  int32_t status, custom_status_op;
  const struct dk_event *events;                    /* ids ascending, above the last stored */
  size_t n_events;
  const struct dk_item *const *worker_items;        /* activities of this instance */
  size_t n_worker_items;
  const struct dk_item *const *orchestrator_items;  /* messages to any instance */
  size_t n_orchestrator_items;
  const struct dk_activity *cancelled_activities;   /* rows to delete, locked ones too */
  size_t n_cancelled_activities;
  const struct dk_bytes *cancelled_messages;        /* ids in its queue (timers that lost) */
  size_t n_cancelled_messages;
  const struct dk_kv_change *kv;                    /* durakit.kv/1 only */
  size_t n_kv;
  struct dk_bytes output;                           /* stored with a status, also when absent */
  struct dk_bytes name, version, parent_instance;   /* absent: as it is */
  struct dk_bytes custom_status;                    /* durakit.status/1 only */
  struct dk_bytes owner;                            /* who holds this history in memory from now on;
                                                       absent: nobody */
  const struct dk_version *pinned;                  /* NULL: as it is */
};

struct dk_work_result {
  uint32_t struct_size, flags;       /* DK_REPEATED */
  const struct dk_item *completion;  /* NULL: remove the row and enqueue nothing */
};

struct dk_fetch_turn {
  uint32_t struct_size;
  uint32_t max_messages;  /* 0: all */
  uint64_t max_bytes;     /* of payload; 0: all.  At least one message comes; then stop before it */
  int64_t lock_ms;        /* length of the lease, at least 1 */
  int64_t wait_until;     /* host time; 0: do not wait */
  /* Equals the owner of an instance's last commit: its history and kv stay away.  Such instances
   * should come first, without starving the others: a cold fetch costs twice a warm one. */
  struct dk_bytes owner;
  const struct dk_version_range *ranges;  /* NULL: any; n_ranges == 0: none */
  size_t n_ranges;
  uint64_t fetch_id;      /* 0: none; else which fetch this is, for release_fetch.  [2.2] */
};

enum { DK_TAG_UNTAGGED = 0, DK_TAG_LISTED = 1, DK_TAG_UNTAGGED_OR_LISTED = 2, DK_TAG_ANY = 3 };
enum { DK_SESSION_NONE = 0, DK_SESSION_HELD = 1, DK_SESSION_ANY = 2 }; /* durakit.sessions/1 */

struct dk_fetch_work {
  uint32_t struct_size;
  uint32_t max_items;     /* at least 1; fewer may come; all of them or none */
  uint64_t max_bytes;     /* of payload; 0: all.  At least one item comes */
  int64_t lock_ms, wait_until;
  struct dk_bytes owner;  /* which worker asks; absent: it cannot be reached */
  int32_t tag_rule, session_rule;
  const struct dk_bytes *tags;
  size_t n_tags;
  int64_t session_lock_ms;
  uint64_t fetch_id;      /* as for turns */
};

struct dk_read_history {
  uint32_t struct_size;
  uint32_t max_events;    /* 0: all */
  struct dk_bytes instance;
  uint64_t execution_id;  /* 0: the latest */
  uint64_t from_event;    /* the first event id wanted */
};

/* ---- what the provider hands up -------------------------------------------------------------- */

struct dk_turn_head {
  uint32_t struct_size, reserved;
  struct dk_bytes lock_token, instance;
  int32_t known, status;        /* known 0: no turn of this instance was ever committed; what
                                   follows, but for the times, is absent */
  struct dk_bytes name, version, parent_instance;
  uint64_t birth;               /* differs between two lives of one id; a delete ends a life */
  uint64_t execution_id, last_event_id;
  uint64_t history_from;        /* id of the first event that follows; last_event_id + 1: none */
  int64_t now;                  /* your clock at the claim */
  int64_t lease_left_ms;        /* at this upcall, at least 1: a lease that is over by then is not
                                   handed up, the fetch is DK_BUSY */
};

struct dk_message {
  uint32_t struct_size, attempt;  /* 1 at the first delivery */
  struct dk_bytes id, payload;
  int64_t visible_at, enqueued_at;
};

struct dk_work {
  uint32_t struct_size, attempt;
  struct dk_bytes lock_token;
  const struct dk_item *item;  /* identity, tag, session, payload and visible_at as stored; no id */
  int64_t now, lease_left_ms;
};

struct dk_kv {
  uint32_t struct_size, reserved;
  struct dk_bytes key, value;
  int64_t updated_at;
};

/* A worker row that a commit deleted although it carried a lock token (expired ones too). */
struct dk_stolen {
  uint32_t struct_size, reserved;
  uint64_t execution_id, activity_id;
  struct dk_bytes lock_token, owner;
};

/* Worker rows that a commit deleted.  Rows that the same commit inserted are not counted;
 * locked_rows is the number of stolen rows.  [CANCEL-6] */
struct dk_cancel_report {
  uint32_t struct_size, reserved;
  uint64_t free_rows, locked_rows;
};

struct dk_execution {
  uint32_t struct_size;
  int32_t status;
  uint64_t execution_id, last_event_id;
  int64_t started_at, completed_at;  /* completed_at 0: it still runs */
  struct dk_bytes output;
};

struct dk_instance; /* these three: durakit/admin.h */
struct dk_stats;
struct dk_removed;

/* What host->wait waits for.  DK_WAIT_ANSWER beside one of the others: somebody outside was asked
 * (a server, a child) and will answer, as a disk would: where the host makes the time, none passes
 * meanwhile.  Without it, to wait is to have nothing to do. */
enum { DK_WAIT_READ = 1u, DK_WAIT_WRITE = 2u, DK_WAIT_ANSWER = 4u };

/* The host.  Keep the pointer that you were given, never a copy of the table: the host is found
 * by its address.  An upcall that answers anything but DK_OK means: stop, undo, return that
 * status.  Upcalls take no lock that the host holds while it calls you, so make them under your
 * own locks; wait is the exception.  All upcalls that can be refused come before an operation's
 * first write: that is how a group of commits needs no savepoint.
 * A turn is handed up in this order: turn, kv..., event... ascending, message... in queue order. */
struct dk_host {
  uint32_t struct_size, abi_minor;
  /* Says why the operation fails, and gives `status` back: return host->fail(call, DK_BUSY, text).
   * Every status from 100 up needs it; after it the operation must not return DK_OK.  [in-call] */
  dk_status (*fail)(struct dk_call *call, dk_status status, struct dk_bytes why);
  /* The head of a fetched turn, first and once.  [in-call] */
  dk_status (*turn)(struct dk_call *call, const struct dk_turn_head *head);
  /* One key of the turn's snapshot; durakit.kv/1 only.  [in-call] */
  dk_status (*kv)(struct dk_call *call, const struct dk_kv *kv);
  /* One event of a turn or of read_history, ids ascending.  [in-call] */
  dk_status (*event)(struct dk_call *call, const struct dk_event *event);
  /* One message of a turn, or of read_messages.  [in-call] */
  dk_status (*message)(struct dk_call *call, const struct dk_message *message);
  /* One fetched work item.  [in-call] */
  dk_status (*work)(struct dk_call *call, const struct dk_work *work);
  /* One locked row that the commit deletes.  Never refused, so it may follow the deletion.
   * [in-call] */
  void (*stolen)(struct dk_call *call, const struct dk_stolen *stolen);
  /* The counts of a commit that names cancelled activities, once.  [in-call] */
  void (*cancelled_rows)(struct dk_call *call, const struct dk_cancel_report *report);
  /* Forgets all that was handed up in this call, fail too: its work is done again.  [in-call] */
  void (*reset)(struct dk_call *call);
  /* The execution that read_history reads, first and once; each of list_executions, numbers
   * ascending.  [in-call] */
  dk_status (*execution)(struct dk_call *call, const struct dk_execution *execution);
  /* Non-zero once the host wants the call back; stays so.  [in-call] */
  int32_t (*cancelled)(struct dk_call *call);
  /* A descriptor that is readable from then on, to be polled beside your own; never read it.
   * [in-call] */
  int32_t (*cancel_fd)(struct dk_call *call);
  /* Waits until the call is cancelled (DK_CALL_CANCELLED), or fd is ready (DK_OK; events:
   * DK_WAIT_...; fd -1: none), or now() has reached `until` (DK_NOTHING; INT64_MAX: no limit), in
   * this order where several hold.  Make the fd, look for work, then wait: nothing slips between.
   * Once cancelled, every further wait says so at once, and a third such answer to one call is a
   * violation.  The only upcall that blocks: hold no lock.  With the lower thread models nobody
   * else can call meanwhile.  [in-call] [CALL-3, CALL-4] */
  dk_status (*wait)(struct dk_call *call, int32_t fd, uint32_t events, int64_t until);
  /* The host's clock; never goes back while a handle is open.  [any] */
  int64_t (*now)(const struct dk_host *host);
  /* One line for people.  level: 0 debug, 1 info, 2 warning, 3 error.  No secrets.  [any] */
  void (*log)(const struct dk_host *host, int32_t level, struct dk_bytes line);
  /* A service of the host by id ("name/revision"): a struct, or NULL if it has none.  [any] */
  const void *(*service)(const struct dk_host *host, const char *id);
  /* One instance of a list, ids ascending bytewise; durakit.admin/1 only.  [in-call] */
  dk_status (*instance)(struct dk_call *call, const struct dk_instance *instance);
  /* The counts of read_stats, once; durakit.admin/1 only.  [in-call] */
  dk_status (*stats)(struct dk_call *call, const struct dk_stats *stats);
  /* What a delete or a prune removes, once, with DK_OK always; durakit.admin/1 only.  Never
   * refused, so it may follow the deletion.  [in-call] */
  void (*removed)(struct dk_call *call, const struct dk_removed *removed);
  /* Which item makes a commit a DK_DUPLICATE: one of its lists (DK_LIST_...), and the index in it,
   * from 0.  Once, before fail; if several items are stored, any one of them.  Never refused.  A
   * host of an older minor does not have it: DK_HAS(dk_host, host, duplicate).  [in-call] [2.3]
   * [ACK-15] */
  void (*duplicate)(struct dk_call *call, int32_t list, uint64_t index);
};

/* ---- what the provider offers ---------------------------------------------------------------- */

typedef dk_status dk_enqueue_fn(void *self, struct dk_call *call, const struct dk_item *item);
typedef dk_status dk_fetch_turn_fn(void *self, struct dk_call *call,
                                   const struct dk_fetch_turn *request);
typedef dk_status dk_ack_turn_fn(void *self, struct dk_call *call, struct dk_bytes token,
                                 const struct dk_turn_result *result);
typedef dk_status dk_abandon_fn(void *self, struct dk_call *call, struct dk_bytes token,
                                int64_t delay_ms, int32_t ignore_attempt);
typedef dk_status dk_renew_fn(void *self, struct dk_call *call, struct dk_bytes token,
                              int64_t extend_ms);
typedef dk_status dk_fetch_work_fn(void *self, struct dk_call *call,
                                   const struct dk_fetch_work *request);
typedef dk_status dk_ack_work_fn(void *self, struct dk_call *call, struct dk_bytes token,
                                 const struct dk_work_result *result);
typedef dk_status dk_release_fetch_fn(void *self, struct dk_call *call, uint64_t fetch_id);
typedef dk_status dk_read_history_fn(void *self, struct dk_call *call,
                                     const struct dk_read_history *request);

/* The operations, in the order in which they are written most easily.
 * Every operation that takes a token answers DK_LOCK_LOST, always permanent, when the token is
 * unknown, used up, expired (also if nobody took over), taken over, or its row was deleted; nothing
 * changes then, and the text should say what became of the row.  [TOKEN-2 to TOKEN-8]
 * Any operation may answer DK_BUSY, DK_UNAVAILABLE, DK_NO_MEMORY, DK_CORRUPT, DK_INTERNAL, and,
 * if it talks to a server, DK_OUTCOME_UNKNOWN. */
struct dk_ops {
  uint32_t struct_size, reserved;

  /* Stores a message for an instance, whether that is known or not; creates no instance.  Once it
   * answered DK_OK the message is there, after a crash too.
   * With DK_REPEATED the rule is the same: with an id that is stored, DK_DUPLICATE; without an id
   * it may be stored twice.
   * Errors: DK_DUPLICATE (a message of this instance with this id is stored), DK_TOO_LARGE.
   * Clauses: QUEUE-1, QUEUE-2, QUEUE-4 to QUEUE-7, QUEUE-9, TIME-3, TIME-5.  Required.
   * [concurrent] */
  dk_enqueue_fn *enqueue_for_orchestrator;

  /* Locks one instance that has a visible message and no live lock, and hands up its turn: head,
   * history of the current execution (none if `owner` made the last commit), and its visible
   * messages in queue order, each counted once more.  The lease ends at now + lock_ms, `now`
   * read after the last wait.  An instance that was never committed is handed out like any
   * other, known = 0, with all its messages.  Instances pinned outside `ranges` are passed over,
   * neither locked nor counted.  With `wait_until` the call waits for work: what is committed
   * meanwhile, here or by another process, is returned by this call; what becomes due meanwhile
   * (a timer, a lease that ends) too; when the time is up or the call is cancelled it makes at
   * most one more attempt.  (What wakes host->wait: an eventfd that commits write in one process,
   * inotify on a file beside the store for several.)
   * Errors: DK_NOTHING, DK_CALL_CANCELLED; neither leaves a trace.
   * Clauses: TURN-1 to TURN-5, TURN-10 to TURN-13, TOKEN-1, TIME-1 to TIME-4, QUEUE-2, QUEUE-3,
   * QUEUE-8, POISON-1 to POISON-3, PIN-1 to PIN-5, CALL-1 to CALL-7.  Required.  [concurrent] */
  dk_fetch_turn_fn *fetch_orchestration_item;

  /* The commit: what one turn did, whole or not at all.  (Everywhere else it is called the commit;
   * here it is an ack, as the host acknowledges what fetch_orchestration_item gave it.)  In this
   * order: the token owns a live
   * lease; the request fits the instance; the turn's own messages go; events are appended;
   * activities are inserted; cancelled activities are deleted, locked or not, and reported
   * through stolen and cancelled_rows; messages are enqueued, cancelled ones removed; status,
   * output, name, version, parent and pin are stored where given, and the owner in any case; the
   * lease is released.  The first commit of an instance names execution 1.  A refused commit
   * changes nothing and keeps the lease.  execution_id 0 is the empty commit: it removes the
   * turn's messages, enqueues orchestrator_items, releases the lease, and touches no instance.
   * Errors: DK_LOCK_LOST; DK_INVALID (first commit without name and version, an execution that is
   * neither the current nor the next, an empty commit with anything else in it); DK_DUPLICATE (an
   * event id not above the last, an activity or a message id that is stored as the commit comes,
   * ids of the turn's own messages among them), after host->duplicate said which; DK_TOO_LARGE.
   * Clauses: ACK-1 to ACK-15, CANCEL-1 to CANCEL-6, CANCEL-10, CANCEL-11, HIST-1, HIST-4, EXEC-1
   * to EXEC-5, TURN-6, PIN-6.  Required.  [concurrent] */
  dk_ack_turn_fn *ack_orchestration_item;

  /* Gives a turn back: the lease ends.  Without a delay its messages keep their visible times and
   * places; with one the visible_at of all becomes now + delay_ms, and so they come by arrival.
   * Messages that arrived after the fetch are not touched.  With ignore_attempt this delivery is
   * taken off their counts, never below 0.
   * Errors: DK_LOCK_LOST.  Clauses: TURN-7, TURN-8, POISON-4.  Required.  [concurrent] */
  dk_abandon_fn *abandon_orchestration_item;

  /* The lease now ends at now + extend_ms, later or sooner than before.
   * Errors: DK_LOCK_LOST.  Clauses: TURN-9, TOKEN-4.  Required.  [concurrent] */
  dk_renew_fn *renew_orchestration_item_lock;

  /* Locks up to max_items work items that are visible, not locked, and fit the tag and session
   * rules; each gets a token of its own and counts one more attempt.  The state of the
   * orchestration plays no part: if the row is there, it is work.  Waiting as in
   * fetch_orchestration_item.
   * Errors: DK_NOTHING, DK_CALL_CANCELLED.
   * Clauses: WORK-1 to WORK-3, WORK-5, WORK-8, WORK-12, CANCEL-9, TAG-1 to TAG-4, POISON-5,
   * TOKEN-1. Required.  [concurrent] */
  dk_fetch_work_fn *fetch_work_item;

  /* Removes the row and, if there is one, enqueues the completion: both or neither.  Look at the
   * number of rows that you deleted: none means the activity was cancelled or taken over, and then
   * nothing may be enqueued.
   * Errors: DK_LOCK_LOST, DK_DUPLICATE (a message with the completion's id is stored; row and lease
   * stay), DK_TOO_LARGE.
   * Clauses: WORK-4, WORK-10, WORK-11, CANCEL-5, CANCEL-7, CANCEL-8, TOKEN-2 to TOKEN-8.
   * Required.  [concurrent] */
  dk_ack_work_fn *ack_work_item;

  /* Gives a work item back: the lease ends, and the item's visible_at becomes now + delay_ms, which
   * without a delay is now.  With ignore_attempt as for turns.
   * Errors: DK_LOCK_LOST.  Clauses: WORK-7, POISON-5, CANCEL-5.  Required.  [concurrent] */
  dk_abandon_fn *abandon_work_item;

  /* The lease now ends at now + extend_ms.  DK_LOCK_LOST here is how a running activity learns
   * that it was cancelled.  Clauses: WORK-6, CANCEL-5, CANCEL-9, TOKEN-5.  Required.
   * [concurrent] */
  dk_renew_fn *renew_work_item_lock;

  /* Hands up the execution, then its events from from_event on.  What does not exist brings nothing
   * and is DK_OK.  Takes no lock of an instance.
   * Clauses: HIST-1 to HIST-5, EXEC-3.  Required.  [concurrent] */
  dk_read_history_fn *read_history;

  /* Stores an activity row outside a turn, as a commit would.  Optional.
   * Errors: DK_DUPLICATE (a row with this identity is stored), DK_TOO_LARGE.
   * Clauses: WORK-9, CANCEL-11, TAG-4.  [concurrent] */
  dk_enqueue_fn *enqueue_for_worker;

  /* Called after a call was marked cancelled: every blocked operation looks at cancelled()
   * again.  What has not begun answers DK_CALL_CANCELLED; what a group has begun answers what
   * the group answers.  Required of a provider that blocks anywhere but in host->wait; never
   * blocks itself.
   * Clauses: CALL-4, CALL-5.  [any] */
  void (*interrupt)(void *self);

  /* Gives back what the fetch of this fetch_id has locked and nobody has fetched since: as an
   * abandon without a delay and with ignore_attempt, whether the lease is alive or has run out.  So
   * a host says that it will never hear what that fetch has brought (a connection was lost): else
   * that would wait for the end of its lease.  Store the id with the lock, in both queues; a fetch
   * without one stores 0.  If there is nothing (any more): DK_OK, and nothing changes.  Optional.
   * Clauses: REL-1 to REL-4.  [concurrent] */
  dk_release_fetch_fn *release_fetch;
};

/* How many calls may run at once.  The host serialises for the first two, and waits for work in
 * their place: it never asks them to (wait_until is 0). */
enum { DK_ONE_AT_A_TIME = 1000, DK_ONE_PER_HANDLE = 2000, DK_PARALLEL = 3000 }; /* with gaps */
/* Whose clock decides about leases and visibility.  Recorded when a store is made; opening it
 * with the other kind is DK_REFUSED.  [TIME-7] */
enum { DK_CLOCK_HOST = 1u, DK_CLOCK_STORE = 2u };
enum { DK_PARAM_REQUIRED = 1u, DK_PARAM_SECRET = 2u, DK_PARAM_STORE = 4u };

/* A setting that open takes.  type: string, path, integer, boolean, duration, address.  A STORE
 * parameter tells one store from another: its value may be extended by "-" and up to 40 of
 * [a-z0-9-], and that is then another store.  Frozen. */
struct dk_param {
  const char *key, *type, *fallback, *help;
  uint32_t flags, reserved;
};
struct dk_setting { /* frozen */
  const char *key;
  struct dk_bytes value;
};

enum {
  DK_OPEN_CREATE = 1u,     /* make the store if it is not there; without it that is DK_NOT_FOUND */
  DK_OPEN_READ_ONLY = 2u,  /* makes nothing; what would write is DK_REFUSED  [ABI-15] */
  DK_OPEN_HOST_CLOCK = 4u  /* leases and visibility go by host->now */
};
struct dk_open {
  uint32_t struct_size, flags;
  const struct dk_setting *settings;
  size_t n_settings;
};

/* What a provider can take; beyond it is DK_TOO_LARGE, nothing changed.  At least 255 bytes of
 * id, 64 KiB of payload, 1 MiB (all lengths together) and 100 items (all lists together) in a
 * commit. The host checks them, so that no author has to.  [ERR-4] */
struct dk_limits {
  uint32_t struct_size, max_id;
  uint64_t max_payload, max_commit_bytes, max_commit_items;
};

/* How the table of every extension begins; its operations follow, and are absent by struct_size
 * where they are not there.  Declared, an extension brings the fields that name it:
 *   durakit.kv/1        a commit's kv is applied with it; a fetch that brings a history brings the
 *                       instance's keys too.  They belong to the instance, not to an execution.
 *   durakit.status/1    a commit's custom_status, likewise the instance's.
 *   durakit.admin/1     struct dk_admin (durakit/admin.h), and no fields.
 *   durakit.sessions/1  session of an item; session_rule and session_lock_ms of a fetch.  A session
 *                       is one for the whole store.  Who is given an item of it holds it for
 *                       session_lock_ms from then on; while somebody does, nobody else is given
 *                       another.  DK_SESSION_NONE: items without a session; DK_SESSION_HELD: those
 *                       and items of sessions that `owner` holds; DK_SESSION_ANY: and of sessions
 *                       that nobody holds.  Without an owner no session is held. */
struct dk_extension {
  uint32_t struct_size, reserved;
};

typedef dk_status dk_open_fn(const struct dk_host *host, struct dk_call *call,
                             const struct dk_open *open, void **ret_self);
typedef dk_status dk_destroy_store_fn(const struct dk_host *host, struct dk_call *call,
                                      const struct dk_open *open);
typedef void dk_close_fn(void *self);
typedef const void *dk_extension_fn(void *self, const char *id);

struct dk_provider {
  uint32_t magic, struct_size;         /* DK_MAGIC, sizeof(struct dk_provider) */
  uint64_t stamp;                      /* DK_STAMP: the layout as this compiler sees it */
  uint32_t abi_minor;                  /* DK_ABI_MINOR when it was compiled */
  uint32_t clocks;                     /* DK_CLOCK_* that it can go by */
  int32_t thread_model;                /* DK_PARALLEL, ... */
  int32_t durable;                     /* 0: may die with its last handle; 1: survives a kill; 2: a
                                          power cut */
  int32_t shared;                      /* who may open one store at once: 0: one handle; 1: one
                                          process; 2: one host; 3: many hosts */
  int32_t unload;                      /* 1: the file may be unmapped after the last close */
  const char *abi_vendor;              /* "durakit"; a fork that breaks the ABI renames it */
  const char *name, *version, *built_with, *help;
  const struct dk_param *params;       /* ends with a NULL key */
  const char *const *extensions;       /* ends with NULL; a handle never offers more, and fewer
                                          only on a store that it did not make.  [ABI-3] */
  const struct dk_limits *limits;
  const struct dk_ops *ops;
  /* Opens a store, and gives a handle that all operations get as `self`.  *ret_self is written
   * on DK_OK only.  Unknown settings were refused before.  Without DK_OPEN_CREATE a store that
   * is not there is DK_NOT_FOUND, and nothing is made.  [serial] [ABI-13] */
  dk_open_fn *open;
  /* Ends the handle: its threads are joined, its descriptors closed, its memory freed.  No call is
   * running.  [serial] [CALL-8] */
  dk_close_fn *close;
  /* Removes all that open made for these settings; what is not there is DK_OK.  No handle is open.
   * [serial] [ABI-14] */
  dk_destroy_store_fn *destroy_store;
  /* An extension of the handle by id ("durakit.kv/1"): a struct that lives until close, or NULL for
   * every id that it does not know.  On a store that this open has made all that are declared are
   * there; on another (an older schema, read-only) there may be fewer.  [concurrent] [ABI-3] */
  dk_extension_fn *extension;
};

/* ---- layout ---------------------------------------------------------------------------------- */

struct dk_probe_ {
  char a;
  uint64_t b;
  char c;
  void *d;
};
#define DK_STAMP                                                                                   \
  ((uint64_t)sizeof(void *) | (uint64_t)offsetof(struct dk_probe_, b) << 8 |                       \
   (uint64_t)offsetof(struct dk_probe_, d) << 16 |                                                 \
   (uint64_t)offsetof(struct dk_provider, extension) << 24 |                                       \
   (uint64_t)offsetof(struct dk_ops, read_history) << 36 | (uint64_t)DK_ABI_DRAFT << 48)

/* Is the member there, by the size that the other side wrote?  And is it set? */
#define DK_HAS_FIELD(type, p, m) ((p)->struct_size >= offsetof(struct type, m) + sizeof((p)->m))
#define DK_HAS(type, p, m) (DK_HAS_FIELD(type, p, m) && (p)->m != NULL)

#if defined __GNUC__
#define DK_EXPORT __attribute__((visibility("default")))
#else
#define DK_EXPORT
#endif

/* The one symbol of a provider.  Pure: no thread, no file, no allocation, the same pointer every
 * time. NULL declines a host of this minor.  [load] [ABI-1, ABI-8] */
typedef const struct dk_provider *dk_entry_fn(uint32_t host_minor);
DK_EXPORT dk_entry_fn durakit_provider_2;

#ifdef __cplusplus
}
#endif
#endif
