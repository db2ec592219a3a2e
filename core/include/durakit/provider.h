/* SPDX-License-Identifier: 0BSD */
/* durakit/provider.h - what a storage provider for durable execution is.
 *
 * This header is the manual: it says what each operation promises, and names the clauses of the
 * contract that require it (docs/contract.md, or `durakit explain CANCEL-5`).  A provider is one
 * shared object that exports one function, durakit_provider_2, and includes no other header of
 * Durakit.
 *
 * The idea.  Your store keeps the histories, queues and locks of a workflow engine.  A provider is
 * a dumb store: payloads are bytes that it never opens, and everything that it must know is a field
 * in this header.  It has two queues: messages wake orchestrations, and work items are activities
 * to run.  A "turn" is one locked batch of one instance's messages, with its history.  An activity
 * is cancelled by deleting its row from the worker queue, in the transaction that commits the turn.
 * There is no cancel flag, and a worker cannot query the state of an orchestration.
 *
 * Words.     To "commit" a turn is to call ack_orchestration_item; only that name says "ack" of a
 *            turn.  To "ack" a work item is to call ack_work_item.  To "hand up" is to pass a
 *            result to the host, through an upcall.
 * Growth.    Every struct begins with struct_size and only ever gains members at its end.  A member
 *            beyond the other side's struct_size is absent: test with DK_HAS_FIELD or DK_HAS.  Zero
 *            always means "absent" or "leave it unchanged".  Structs marked frozen are elements of
 *            arrays and never grow.  Answer DK_UNSUPPORTED to a flag bit or a value that you do not
 *            know.
 * Ownership. Memory is freed by the side that allocated it; ownership never passes to the other
 *            side.  A pointer passed in either direction is valid until the function that it was
 *            passed to returns.
 * Results.   You hand up results through the upcalls of struct dk_host.  The host copies them at
 *            once.  They are provisional: they count only if the operation then returns DK_OK.
 * Time.      Milliseconds since the Unix epoch; durations in milliseconds.  An operation reads
 *            host->now once for everything that it decides, after its last wait for a lock or for
 *            work; it reads it again only for lease_left_ms.  Every wait for a time goes through
 *            host->wait, and ends at an absolute time; your own threads wait for events only.
 * Tokens.    1 to 2 * max_id + 128 bytes without NUL, opaque to everyone but you.  If a token
 *            contains your row's address and a counter, you need no index over tokens.
 * Text.      Instance, id, session, tag, key, owner, name and version are UTF-8 without NUL, 1 to
 *            max_id bytes, compared bytewise; the host checks this.  Payload, output, custom status
 *            and values are arbitrary bytes.
 * Threads.   The tag in brackets at the end of each comment:
 *              [load]        the loader's lock is held; there is no handle yet
 *              [serial]      nothing else runs on this handle
 *              [concurrent]  at the same time as other calls, as far as your thread model allows
 *              [in-call]     from the call of an operation to its return: upcalls of one dk_call
 *              must not overlap; make them from any of your threads, but wait only from the thread
 *              that was called
 *              [any]         any thread, at any time from open to close
 * Manners.   Install no signal handlers, do not change the state of the process (directory, umask,
 *            locale, environment, limits, timers, priority, floating-point mode, ...), write
 *            nothing to standard output, do not change the host's descriptors, do not exit, do not
 *            fork without exec, and let no exception or panic cross this boundary.  close releases
 *            everything that belongs to the handle.  [ABI-5 to ABI-7, CALL-8]
 */
#ifndef DURAKIT_PROVIDER_H
#define DURAKIT_PROVIDER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DK_ABI_MAJOR 2
#define DK_ABI_MINOR 4u
#define DK_ABI_DRAFT 1u /* part of the stamp until the layout is frozen; see docs/abi.md */
#define DK_MAGIC 0x324b4431u

/* ---- status ---------------------------------------------------------------------------------- */

/* The hundreds digit is the class, so that an old host can act on a code that it does not know:
 *   0  not an error
 *   1  try again: nothing happened that matters
 *   2  do not try again: the same call would be refused again
 *   3  it is unknown whether it happened; repeat only with DK_REPEATED
 * Classes 0 (except DK_OK) and 2 leave no lock and no counted attempt.  Classes 1 and 3 may leave a
 * lock that expires, and one counted attempt.  If a call is to be refused for several reasons,
 * answer the first of: dead token, form, size, state.  [ERR-1, ERR-3, ERR-5] */
typedef int32_t dk_status;

enum {
  DK_OK = 0,
  DK_NOTHING = 1,        /* a fetch found no work; a wait timed out */
  DK_CALL_CANCELLED = 2, /* the host cancelled the call before it did anything.  Once a request has
                            been sent, return DK_OUTCOME_UNKNOWN instead, from fetch and renew as
                            well */
  DK_BUSY = 100,         /* another call holds what this one needs: locked store, lost race,
                            deadlock */
  DK_UNAVAILABLE = 101,  /* the store is unreachable, or full */
  DK_NO_MEMORY = 102,
  DK_INVALID = 200,      /* the request is malformed, or does not fit the instance */
  DK_LOCK_LOST = 201,    /* the token is dead: unknown, used up, expired, taken over, row deleted */
  DK_DUPLICATE = 202,    /* an event, activity or message with this identity is stored already */
  DK_NOT_FOUND = 203,
  DK_REFUSED = 204,      /* the store does not permit this (other clock, other version, read-only),
                            or the instance does not: it has not ended */
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

struct dk_call; /* one running operation; valid until it returns */

/* ---- what the host sends --------------------------------------------------------------------- */

/* The same call was made before, and its answer was lost.  The first attempt might still be
 * running: decide after your last wait for a lock.  When you answer DK_OK to a repeated commit, you
 * may leave out stolen and cancelled_rows.  [ACK-11, WORK-10] */
enum { DK_REPEATED = 1u };

/* A message or an activity: an address, and a payload that you never open.  It becomes visible at
 * max(visible_at, now + delay_ms); the sum saturates.  [TIME-3, TIME-5] */
struct dk_item {
  uint32_t struct_size, flags;   /* DK_REPEATED, for enqueue_for_* only */
  struct dk_bytes instance;      /* whose queue it goes to; absent in a commit's worker_items, which
                                    belong to the turn's instance */
  struct dk_bytes id;            /* absent: none.  While a message of this instance with this id is
                                    stored, answer DK_DUPLICATE to a second one.  [QUEUE-4] */
  uint64_t execution_id;         /* activities: with instance and activity_id the row's identity, */
  uint64_t activity_id;          /*   unique in the worker queue; messages: 0.  [CANCEL-11] */
  struct dk_bytes session, tag;  /* activities; absent: none.  The host sends a session only if you
                                    declare durakit.sessions/1 */
  int64_t visible_at, delay_ms;
  struct dk_bytes payload;
};

struct dk_event {                /* frozen */
  uint64_t event_id;
  struct dk_bytes payload;
};
struct dk_activity {             /* an activity of the turn's instance; frozen */
  uint64_t execution_id, activity_id;
};
struct dk_version {              /* compared as numbers; frozen.  [PIN-4] */
  uint32_t major, minor, patch;
};
struct dk_version_range {        /* both ends are included; frozen */
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
  DK_CANCELLED = 5    /* a separate status, never reported as failed.  [EXEC-5] */
};
enum { DK_CUSTOM_KEEP = 0, DK_CUSTOM_SET = 1, DK_CUSTOM_CLEAR = 2 };

/* The lists of a commit in which an item can be stored already: see host->duplicate. */
enum { DK_LIST_EVENTS = 1, DK_LIST_WORKER_ITEMS = 2, DK_LIST_ORCHESTRATOR_ITEMS = 3 };

/* What one turn did.  A provider applies all of it, or nothing, in the order of the members (the
 * worker items are inserted before the cancelled activities are deleted). */
struct dk_turn_result {
  uint32_t struct_size, flags;                      /* DK_REPEATED */
  uint64_t execution_id;                            /* 0: the empty commit; else the current or the
                                                       next one */
  int32_t status, custom_status_op;
  const struct dk_event *events;                    /* ids ascending, above the last stored one */
  size_t n_events;
  const struct dk_item *const *worker_items;        /* activities of this instance */
  size_t n_worker_items;
  const struct dk_item *const *orchestrator_items;  /* messages to any instance */
  size_t n_orchestrator_items;
  const struct dk_activity *cancelled_activities;   /* rows to delete, locked ones too */
  size_t n_cancelled_activities;
  const struct dk_bytes *cancelled_messages;        /* ids in its queue (timers that lost a race) */
  size_t n_cancelled_messages;
  const struct dk_kv_change *kv;                    /* durakit.kv/1 only */
  size_t n_kv;
  struct dk_bytes output;                           /* stored whenever a status is given, even if
                                                       absent */
  struct dk_bytes name, version, parent_instance;   /* absent: unchanged */
  struct dk_bytes custom_status;                    /* durakit.status/1 only */
  struct dk_bytes owner;                            /* the worker that holds this history in memory
                                                       from now on; absent: none */
  const struct dk_version *pinned;                  /* NULL: unchanged */
};

struct dk_work_result {
  uint32_t struct_size, flags;       /* DK_REPEATED */
  const struct dk_item *completion;  /* NULL: remove the row and enqueue nothing */
};

struct dk_fetch_turn {
  uint32_t struct_size;
  uint32_t max_messages;  /* 0: all */
  uint64_t max_bytes;     /* of payload; 0: no limit.  Hand up at least one message, then stop
                             before the limit would be passed */
  int64_t lock_ms;        /* length of the lease, at least 1 */
  int64_t wait_until;     /* host time; 0: do not wait */
  /* If it equals the owner of the instance's last commit, do not hand up history and kv.  Such
   * instances should be fetched first, without starving the others: a cold fetch costs twice as
   * much as a warm one. */
  struct dk_bytes owner;
  const struct dk_version_range *ranges;  /* NULL: any; n_ranges == 0: none */
  size_t n_ranges;
  uint64_t fetch_id;      /* 0: none; else it identifies this fetch for release_fetch.  [2.2] */
};

enum { DK_TAG_UNTAGGED = 0, DK_TAG_LISTED = 1, DK_TAG_UNTAGGED_OR_LISTED = 2, DK_TAG_ANY = 3 };
enum { DK_SESSION_NONE = 0, DK_SESSION_HELD = 1, DK_SESSION_ANY = 2 }; /* durakit.sessions/1 */

struct dk_fetch_work {
  uint32_t struct_size;
  uint32_t max_items;     /* at least 1.  You may lock fewer; hand up all that you lock, or none */
  uint64_t max_bytes;     /* of payload; 0: no limit.  Hand up at least one item */
  int64_t lock_ms, wait_until;
  struct dk_bytes owner;  /* the worker that fetches; absent: it cannot be notified */
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
  uint64_t from_event;    /* the id of the first event to hand up */
};

/* ---- what the provider hands up -------------------------------------------------------------- */

struct dk_turn_head {
  uint32_t struct_size, reserved;
  struct dk_bytes lock_token, instance;
  int32_t known, status;        /* known 0: no turn of this instance was ever committed; then all
                                   that follows is absent, except for the times */
  struct dk_bytes name, version, parent_instance;
  uint64_t birth;               /* differs between two instances that have the same id one after the
                                   other: a delete ends the first */
  uint64_t execution_id, last_event_id;
  uint64_t history_from;        /* id of the first event handed up; last_event_id + 1: none is */
  int64_t now;                  /* your clock at the claim */
  int64_t lease_left_ms;        /* at this upcall; at least 1: if the lease has ended by then, do
                                   not hand it up, and return DK_BUSY */
};

struct dk_message {
  uint32_t struct_size, attempt;  /* 1 at the first delivery */
  struct dk_bytes id, payload;
  int64_t visible_at, enqueued_at;
};

struct dk_work {
  uint32_t struct_size, attempt;
  struct dk_bytes lock_token;
  const struct dk_item *item;  /* identity, tag, session, payload and visible_at as stored; without
                                  an id */
  int64_t now, lease_left_ms;
};

struct dk_kv {
  uint32_t struct_size, reserved;
  struct dk_bytes key, value;
  int64_t updated_at;
};

/* A worker row that a commit deleted although it had a lock token (even if its lock had
 * expired). */
struct dk_stolen {
  uint32_t struct_size, reserved;
  uint64_t execution_id, activity_id;
  struct dk_bytes lock_token, owner;
};

/* How many worker rows a commit deleted.  Rows that the same commit inserted are not counted;
 * locked_rows is the number of stolen rows.  [CANCEL-6] */
struct dk_cancel_report {
  uint32_t struct_size, reserved;
  uint64_t free_rows, locked_rows;
};

struct dk_execution {
  uint32_t struct_size;
  int32_t status;
  uint64_t execution_id, last_event_id;
  int64_t started_at, completed_at;  /* completed_at 0: it is still running */
  struct dk_bytes output;
};

struct dk_instance; /* these three: durakit/admin.h */
struct dk_stats;
struct dk_removed;

/* What host->wait waits for.  Add DK_WAIT_ANSWER to one of the others if you wait for the answer to
 * a request that you have sent (to a server, to a child process): a virtual clock then does not
 * advance during the wait.  Without it the host takes the wait as having nothing to do. */
enum { DK_WAIT_READ = 1u, DK_WAIT_WRITE = 2u, DK_WAIT_ANSWER = 4u };

/* The host.  Keep the pointer that you were given, never a copy of the table: the host is found
 * by its address.  If an upcall returns anything but DK_OK: stop, undo, and return that status.
 * Upcalls take no lock that the host holds while it calls you, so you may make them while you hold
 * your own locks; wait is the exception.  Make all upcalls that can be refused before the
 * operation's first write: then a group of commits needs no savepoint.
 * A turn is handed up in this order: turn, kv..., event... ascending, message... in queue order. */
struct dk_host {
  uint32_t struct_size, abi_minor;
  /* Reports why the operation fails, and returns `status`: return host->fail(call, DK_BUSY, text).
   * An operation must call it before it returns a status of 100 or more; after it the operation
   * must not return DK_OK.  [in-call] */
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
  /* One locked row that the commit deletes.  Never refused, so you may call it after the deletion.
   * [in-call] */
  void (*stolen)(struct dk_call *call, const struct dk_stolen *stolen);
  /* The counts of a commit that lists cancelled activities, once.  [in-call] */
  void (*cancelled_rows)(struct dk_call *call, const struct dk_cancel_report *report);
  /* Discards everything that was handed up in this call, and what fail reported: call it before you
   * do the work again.  [in-call] */
  void (*reset)(struct dk_call *call);
  /* The execution that read_history reads, first and once; or each one of list_executions, numbers
   * ascending.  [in-call] */
  dk_status (*execution)(struct dk_call *call, const struct dk_execution *execution);
  /* Non-zero once the host has cancelled the call; it stays so.  [in-call] */
  int32_t (*cancelled)(struct dk_call *call);
  /* A descriptor that is readable once the call is cancelled, for you to poll beside your own;
   * never read from it.  [in-call] */
  int32_t (*cancel_fd)(struct dk_call *call);
  /* Waits until the call is cancelled (DK_CALL_CANCELLED), or fd is ready (DK_OK; events:
   * DK_WAIT_...; fd -1: none), or now() has reached `until` (DK_NOTHING; INT64_MAX: no limit); the
   * first of these if several hold.  Make the fd, look for work, then wait: then no event is
   * missed.  Once the call is cancelled, every further wait returns at once; a third such return in
   * one call is a violation.  This is the only upcall that blocks: hold no lock.  With the lower
   * thread models no other call can be made while it waits.  [in-call] [CALL-3, CALL-4] */
  dk_status (*wait)(struct dk_call *call, int32_t fd, uint32_t events, int64_t until);
  /* The host's clock; it never goes back while a handle is open.  [any] */
  int64_t (*now)(const struct dk_host *host);
  /* Logs one line for people to read.  level: 0 debug, 1 info, 2 warning, 3 error.  No secrets.
   * [any] */
  void (*log)(const struct dk_host *host, int32_t level, struct dk_bytes line);
  /* A service of the host by id ("name/revision"): a struct, or NULL if the host has no such
   * service.  [any] */
  const void *(*service)(const struct dk_host *host, const char *id);
  /* One instance of a list, ids ascending bytewise; durakit.admin/1 only.  [in-call] */
  dk_status (*instance)(struct dk_call *call, const struct dk_instance *instance);
  /* The counts of read_stats, once; durakit.admin/1 only.  [in-call] */
  dk_status (*stats)(struct dk_call *call, const struct dk_stats *stats);
  /* What a delete or a prune removes: once, always before it returns DK_OK; durakit.admin/1 only.
   * Never refused, so you may call it after the deletion.  [in-call] */
  void (*removed)(struct dk_call *call, const struct dk_removed *removed);
  /* Names the item that makes a commit a DK_DUPLICATE: one of its lists (DK_LIST_...), and the
   * index in it, from 0.  Once, before fail; if several items are stored, any one of them.  Never
   * refused.  A host of an older minor does not have it: DK_HAS(dk_host, host, duplicate).
   * [in-call] [2.3] [ACK-15] */
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

/* The operations, in the order in which it is easiest to write them.
 * Every operation that takes a token answers DK_LOCK_LOST if the token is unknown, used up, expired
 * (even if no other worker took over), taken over, or its row was deleted.  This answer is
 * permanent, and nothing changes.  The text should report what happened to the row.  [TOKEN-2 to
 * TOKEN-8]
 * Any operation may answer DK_BUSY, DK_UNAVAILABLE, DK_NO_MEMORY, DK_CORRUPT, DK_INTERNAL, and,
 * if it talks to a server, DK_OUTCOME_UNKNOWN. */
struct dk_ops {
  uint32_t struct_size, reserved;

  /* Stores a message for an instance, whether the instance is known or not; creates no instance.
   * Once the operation has answered DK_OK the message survives a crash.
   * With DK_REPEATED the rule is the same: if the id is stored already, DK_DUPLICATE; a message
   * without an id may be stored twice.
   * Errors: DK_DUPLICATE (a message of this instance with this id is stored), DK_TOO_LARGE.
   * Clauses: QUEUE-1, QUEUE-2, QUEUE-4 to QUEUE-7, QUEUE-9, TIME-3, TIME-5.  Required.
   * [concurrent] */
  dk_enqueue_fn *enqueue_for_orchestrator;

  /* Locks one instance that has a visible message and no live lock, and hands up its turn: head,
   * history of the current execution (none if `owner` made the last commit), and its visible
   * messages in queue order; adds 1 to the attempt count of each.  The lease ends at now + lock_ms,
   * where `now` is read after the last wait.  An instance that was never committed is handed up
   * like any other, with known = 0 and all its messages.  Instances pinned outside `ranges` are
   * skipped: they are neither locked nor counted.  With `wait_until` the call waits for work: it
   * returns work that is committed meanwhile, by this process or another, and work that becomes due
   * meanwhile (a timer, a lease that ends).  When the time is up or the call is cancelled, it makes
   * at most one more attempt.  (To wake host->wait: in one process an eventfd that commits write
   * to; between processes inotify on a file beside the store.)
   * Errors: DK_NOTHING, DK_CALL_CANCELLED; neither changes anything.
   * Clauses: TURN-1 to TURN-5, TURN-10 to TURN-13, TOKEN-1, TIME-1 to TIME-4, QUEUE-2, QUEUE-3,
   * QUEUE-8, POISON-1 to POISON-3, PIN-1 to PIN-5, CALL-1 to CALL-7.  Required.  [concurrent] */
  dk_fetch_turn_fn *fetch_orchestration_item;

  /* The commit: applies what one turn did, all of it or nothing.  In this order: check that the
   * token owns a live lease; check that the request fits the instance; delete the turn's own
   * messages; append events; insert activities; delete cancelled activities, locked or not, and
   * report them through stolen and cancelled_rows; enqueue messages, and remove cancelled ones;
   * store status, output, name, version, parent and pin where given, and the owner in any case;
   * release the lease.  The first commit of an instance names execution 1.  A refused commit
   * changes nothing and keeps the lease.  execution_id 0 is the empty commit: it removes the
   * turn's messages, enqueues orchestrator_items, releases the lease, and touches no instance.
   * Errors: DK_LOCK_LOST; DK_INVALID (first commit without name and version, an execution that is
   * neither the current nor the next, an empty commit with anything else in it); DK_DUPLICATE (an
   * event id not above the last, an activity or a message id that is stored when the commit begins,
   * ids of the turn's own messages included), after host->duplicate named one; DK_TOO_LARGE.
   * Clauses: ACK-1 to ACK-15, CANCEL-1 to CANCEL-6, CANCEL-10, CANCEL-11, HIST-1, HIST-4, EXEC-1
   * to EXEC-5, TURN-6, PIN-6.  Required.  [concurrent] */
  dk_ack_turn_fn *ack_orchestration_item;

  /* Gives a turn back: the lease ends.  Without a delay its messages keep their visible times and
   * places; with a delay the visible_at of all becomes now + delay_ms, so that they are ordered by
   * arrival.  Messages that arrived after the fetch are not changed.  With ignore_attempt this
   * delivery is subtracted from their attempt counts, never below 0.
   * Errors: DK_LOCK_LOST.  Clauses: TURN-7, TURN-8, POISON-4.  Required.  [concurrent] */
  dk_abandon_fn *abandon_orchestration_item;

  /* Makes the lease end at now + extend_ms, which may be later or sooner than before.
   * Errors: DK_LOCK_LOST.  Clauses: TURN-9, TOKEN-4.  Required.  [concurrent] */
  dk_renew_fn *renew_orchestration_item_lock;

  /* Locks up to max_items work items that are visible, not locked, and fit the tag and session
   * rules; each gets its own token and its attempt count grows by 1.  The state of the
   * orchestration does not matter: if the row exists, it is work.  Waits as
   * fetch_orchestration_item does.
   * Errors: DK_NOTHING, DK_CALL_CANCELLED.
   * Clauses: WORK-1 to WORK-3, WORK-5, WORK-8, WORK-12, CANCEL-9, TAG-1 to TAG-4, POISON-5,
   * TOKEN-1. Required.  [concurrent] */
  dk_fetch_work_fn *fetch_work_item;

  /* Removes the row and enqueues the completion, if there is one: both or neither.  Check the
   * number of rows that you deleted: none means that the activity was cancelled or taken over, and
   * then you must not enqueue anything.
   * Errors: DK_LOCK_LOST, DK_DUPLICATE (a message with the completion's id is stored; row and lease
   * remain), DK_TOO_LARGE.
   * Clauses: WORK-4, WORK-10, WORK-11, CANCEL-5, CANCEL-7, CANCEL-8, TOKEN-2 to TOKEN-8.
   * Required.  [concurrent] */
  dk_ack_work_fn *ack_work_item;

  /* Gives a work item back: the lease ends, and the item's visible_at becomes now + delay_ms
   * (without a delay: now).  ignore_attempt as for turns.
   * Errors: DK_LOCK_LOST.  Clauses: WORK-7, POISON-5, CANCEL-5.  Required.  [concurrent] */
  dk_abandon_fn *abandon_work_item;

  /* Makes the lease end at now + extend_ms.  DK_LOCK_LOST here is how a running activity learns
   * that it was cancelled.  Clauses: WORK-6, CANCEL-5, CANCEL-9, TOKEN-5.  Required.
   * [concurrent] */
  dk_renew_fn *renew_work_item_lock;

  /* Hands up the execution, then its events from from_event on.  If the execution does not exist,
   * hands up nothing and returns DK_OK.  Takes no lock of an instance.
   * Clauses: HIST-1 to HIST-5, EXEC-3.  Required.  [concurrent] */
  dk_read_history_fn *read_history;

  /* Stores an activity row outside a turn, as a commit would.  Optional.
   * Errors: DK_DUPLICATE (a row with this identity is stored), DK_TOO_LARGE.
   * Clauses: WORK-9, CANCEL-11, TAG-4.  [concurrent] */
  dk_enqueue_fn *enqueue_for_worker;

  /* Called after a call was marked cancelled: every blocked operation must check cancelled() again.
   * An operation that has not begun answers DK_CALL_CANCELLED; one that was begun as part of a
   * group answers what the group answers.  Required if the provider blocks anywhere but in
   * host->wait; must not block itself.
   * Clauses: CALL-4, CALL-5.  [any] */
  void (*interrupt)(void *self);

  /* Gives back what the fetch with this fetch_id locked and no later fetch has locked since: as an
   * abandon without a delay and with ignore_attempt, whether the lease is live or has expired.  A
   * host calls it when it will never receive the results of that fetch (a connection was lost);
   * otherwise that work would wait until its lease ends.  Store the id with the lock, in both
   * queues; a fetch without an id stores 0.  If nothing (more) is locked by that fetch: DK_OK, and
   * nothing changes.  Optional.
   * Clauses: REL-1 to REL-4.  [concurrent] */
  dk_release_fetch_fn *release_fetch;
};

/* How many calls may run at once.  For the first two the host serialises the calls and waits for
 * work itself: it never asks such a provider to wait (wait_until is 0). */
enum { DK_ONE_AT_A_TIME = 1000, DK_ONE_PER_HANDLE = 2000, DK_PARALLEL = 3000 }; /* with gaps */
/* Which clock decides about leases and visibility.  The kind is recorded when a store is created;
 * opening the store with the other kind is DK_REFUSED.  [TIME-7] */
enum { DK_CLOCK_HOST = 1u, DK_CLOCK_STORE = 2u };
enum { DK_PARAM_REQUIRED = 1u, DK_PARAM_SECRET = 2u, DK_PARAM_STORE = 4u };
/* What the runtime of a language other than C brings into the process, if nothing in the file can
 * prevent it.  DK_RUNTIME_STAYS: threads, descriptors, signal handlers on the alternate stack
 * (SA_ONSTACK), that stack, and a raised limit of open descriptors belong to the library, not to a
 * handle.  They stay when the last handle is closed, so unload is 0; they do not grow with the
 * number of handles or calls.  DK_RUNTIME_NO_MEMCHECK: the file cannot run under Valgrind.
 * DK_RUNTIME_ABORTS: where memory runs out the library ends the process, which ABI-7 forbids to all
 * others.  A Go plugin declares the first two; a Rust plugin the last.  [ABI-5, ABI-7, CALL-8] */
enum { DK_RUNTIME_STAYS = 1u, DK_RUNTIME_NO_MEMCHECK = 2u, DK_RUNTIME_ABORTS = 4u };

/* A setting that open takes.  type: string, path, integer, boolean, duration, address.  A STORE
 * parameter identifies the store: its value may be extended by "-" and up to 40 characters of
 * [a-z0-9-], and the result names another store.  Frozen. */
struct dk_param {
  const char *key, *type, *fallback, *help;
  uint32_t flags, reserved;
};
struct dk_setting { /* frozen */
  const char *key;
  struct dk_bytes value;
};

enum {
  DK_OPEN_CREATE = 1u,     /* create the store if it does not exist; without this flag that is
                              DK_NOT_FOUND */
  DK_OPEN_READ_ONLY = 2u,  /* create nothing; an operation that would write is DK_REFUSED
                              [ABI-15] */
  DK_OPEN_HOST_CLOCK = 4u  /* leases and visibility are decided by host->now */
};
struct dk_open {
  uint32_t struct_size, flags;
  const struct dk_setting *settings;
  size_t n_settings;
};

/* The largest requests that a provider accepts; a larger one is DK_TOO_LARGE, and nothing changes.
 * At least 255 bytes of id, 64 KiB of payload, 1 MiB (all lengths together) and 100 items (all
 * lists together) in a commit.  The host checks these limits, so that a provider does not have to.
 * [ERR-4] */
struct dk_limits {
  uint32_t struct_size, max_id;
  uint64_t max_payload, max_commit_bytes, max_commit_items;
};

/* How the table of every extension begins.  Its operations follow; one beyond struct_size is
 * absent.  Declaring an extension also enables the fields that name it:
 *   durakit.kv/1        a commit applies its kv; a fetch that hands up a history also hands up the
 *                       instance's keys.  They belong to the instance, not to an execution.
 *   durakit.status/1    a commit's custom_status, which also belongs to the instance.
 *   durakit.admin/1     struct dk_admin (durakit/admin.h), and no fields.
 *   durakit.sessions/1  session of an item; session_rule and session_lock_ms of a fetch.  A session
 *                       spans the whole store.  The worker that is given an item of a session holds
 *                       the session for session_lock_ms from then on; meanwhile no other worker is
 *                       given an item of it.  DK_SESSION_NONE: items without a session;
 *                       DK_SESSION_HELD: these, and items of sessions that `owner` holds;
 *                       DK_SESSION_ANY: these too, and items of sessions that no worker holds.  A
 *                       fetch without an owner holds no session. */
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
  uint64_t stamp;                      /* DK_STAMP: the layout that this compiler produces */
  uint32_t abi_minor;                  /* DK_ABI_MINOR when it was compiled */
  uint32_t clocks;                     /* the DK_CLOCK_* that it supports */
  int32_t thread_model;                /* DK_PARALLEL, ... */
  int32_t durable;                     /* 0: may be lost with its last handle; 1: survives a kill;
                                          2: survives a power cut */
  int32_t shared;                      /* what may open one store at once: 0: one handle; 1: one
                                          process; 2: one host; 3: many hosts */
  int32_t unload;                      /* 1: the file may be unmapped after the last close */
  const char *abi_vendor;              /* "durakit"; a fork that breaks the ABI renames it */
  const char *name, *version, *built_with, *help;
  const struct dk_param *params;       /* ends with a NULL key */
  const char *const *extensions;       /* ends with NULL; a handle never offers more, and offers
                                          fewer only on a store that it did not create.  [ABI-3] */
  const struct dk_limits *limits;
  const struct dk_ops *ops;
  /* Opens a store, and returns a handle that all operations get as `self`.  *ret_self is written on
   * DK_OK only.  The host has already refused unknown settings.  Without DK_OPEN_CREATE a store
   * that does not exist is DK_NOT_FOUND, and nothing is created.  [serial] [ABI-13] */
  dk_open_fn *open;
  /* Closes the handle: joins its threads, closes its descriptors, frees its memory.  No call is
   * running.  [serial] [CALL-8] */
  dk_close_fn *close;
  /* Removes everything that open created for these settings; if nothing exists, DK_OK.  No handle
   * is open.  [serial] [ABI-14] */
  dk_destroy_store_fn *destroy_store;
  /* An extension of the handle by id ("durakit.kv/1"): a struct that is valid until close, or NULL
   * for an id that the provider does not know.  On a store that this handle's open created, every
   * declared extension is offered; on another store (an older schema, read-only) there may be
   * fewer.  [concurrent] [ABI-3] */
  dk_extension_fn *extension;
  uint32_t runtime, reserved;          /* DK_RUNTIME_...; 0: none.  [2.4] */
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

/* Is the member present, by the size that the other side wrote?  And is it set? */
#define DK_HAS_FIELD(type, p, m) ((p)->struct_size >= offsetof(struct type, m) + sizeof((p)->m))
#define DK_HAS(type, p, m) (DK_HAS_FIELD(type, p, m) && (p)->m != NULL)

#if defined __GNUC__
#define DK_EXPORT __attribute__((visibility("default")))
#else
#define DK_EXPORT
#endif

/* The only symbol of a provider.  Pure: it starts no thread, opens no file, allocates nothing, and
 * returns the same pointer every time.  NULL declines a host of this minor version.  [load] [ABI-1,
 * ABI-8] */
typedef const struct dk_provider *dk_entry_fn(uint32_t host_minor);
DK_EXPORT dk_entry_fn durakit_provider_2;

#ifdef __cplusplus
}
#endif
#endif
