/* SPDX-License-Identifier: Apache-2.0 */
/* A handle, its operations, and how they run.
 *
 *   provider.c   the descriptor; open, close
 *   call.c       the operations as the host calls them: a struct operation each, queued
 *   writer.c     the queue, the writer thread, the lock file around each group
 *   group.c      a group of operations as one transaction, and what becomes of it if that fails
 *   message.c    instances as addresses, messages, payloads
 *   turn.c       fetching, renewing, giving back a turn
 *   commit.c     the commit
 *   list.h       how a statement is given any number of rows
 *   work.c       the worker queue
 *   reader.c     reading beside the writer
 *   history.c    a history
 *   admin.h      durakit.admin/1: looking at instances, deleting, pruning
 *   wait.c       the long poll
 *   token.c      lock tokens, and how a dead one is refused
 *
 * How an operation runs.  Its caller queues it and blocks.  The writer thread takes the lock file,
 * then all queued operations.  It begins a transaction, reads the clock once, and applies the
 * operations one after the other: renewals, then small changes, then large changes, fetches last.
 * It hands up rows as it reads them, commits, and wakes the callers.  The operations that arrive
 * meanwhile are the next group, so that all operations of a group share one sync.  There is no
 * timer.
 *
 * There is no savepoint.  An operation refuses, and makes the upcalls that the host may refuse,
 * before its first write.  If a statement fails after that, the writer rolls the group back, takes
 * back each member's upcalls by host->reset, and runs each member again in a transaction of its
 * own.
 */
#ifndef DK_SQLITE_HANDLE_H
#define DK_SQLITE_HANDLE_H

#include <assert.h>
#include <pthread.h>

#include "providers/shared/mutex.h"
#include "providers/shared/request.h"
#include "providers/sqlite/statements.h"
#include "providers/sqlite/store.h"

enum {
  CHECKPOINT_PAGES = 4096, /* of 4 KiB: the log's size at which it is written back */
  RESTART_PAGES = 2 * CHECKPOINT_PAGES, /* its size at which readers are waited for, */
  RESTART_MS = 200,       /* in real time, this long for each RESTART_PAGES, */
  LONGEST_RESTART_MS = 1000 /* but no longer; then again after CHECKPOINT_PAGES */
};

/* ---- operations ------------------------------------------------------------------------------ */

struct group;
struct operation;
typedef dk_status apply_fn(struct operation *op);

/* The order within a group: renewals first, for their leases run out; a fetch sees what its group
 * has enqueued.  Within a turn of this order, by arrival. */
enum turn_of_group { RENEWAL, CHANGE, LARGE_CHANGE, FETCH, TURNS_OF_GROUP };

/* The handle's mutex guards `state` and `next`.  The rest belongs to the caller until the operation
 * has begun, and then to the writer until it is done. */
struct operation {
  /* what is asked */
  const char *name;
  struct dk_call *call;
  apply_fn *apply;
  enum turn_of_group turn;
  enum queue queue;       /* of a fetch */
  const void *request;
  struct dk_bytes token;
  int64_t ms, fetch_id;
  int32_t ignore_attempt;
  /* how it goes */
  struct group *group;    /* while it is applied */
  int64_t due;            /* of a fetch that found nothing: when the first becomes due */
  int32_t list;           /* of a commit that looks for stored items: DK_LIST_... */
  size_t index;           /* and the item there */
  dk_status status;
  /* the queue */
  struct operation *next;
  enum { OPERATION_QUEUED, OPERATION_BEGUN, OPERATION_DONE } state;
  int64_t queued_at;      /* real time */
  pthread_cond_t woken;
};

/* ---- the handle ------------------------------------------------------------------------------ */

struct reader {
  struct connection connection;
  struct store_ids ids;
  struct statements statements;
  struct reader *next;
};

/* Locking: `mutex` guards queue, stop, wait and the state of what is queued; `readers_mutex` guards
 * `readers` and readers_are_held.  A thread holds only one of them at a time, and neither during
 * SQL, a wait or an upcall, except host->cancelled under `mutex`.  The members from `writer` to
 * `fetches` belong to the writer thread. */
struct handle {
  const struct dk_host *host;
  struct store_files files;

  struct mutex mutex;
  pthread_cond_t work;
  struct operation *first, *last;
  bool is_stopping;
  bool waits_for_lock;    /* the writer waits for it: a wake ends the wait */
  bool has_thread;
  pthread_t thread;
  int wake_fd;            /* eventfd: look again; while a group runs only a stop writes it */

  struct connection writer;
  struct store_ids ids;   /* its files */
  struct statements statements;
  bool log_is_in_doubt;   /* a sync of it failed: it is begun anew before the next commit */
  int wal_pages;          /* after the last commit */
  int next_checkpoint;    /* pages: when it is written back next */
  uint64_t fetches;

  struct mutex readers_mutex;
  struct reader *readers; /* those not in use */
  bool readers_are_held;  /* while the log is begun anew no reader begins */
  pthread_cond_t readers_go;
};

/* writer.c */
dk_status writer_start(struct handle *h, struct why *why);
void writer_stop(struct handle *h); /* and joins */
dk_status writer_submit(struct handle *h, struct operation *op);
void sqlite_interrupt(void *self);

/* ---- a group --------------------------------------------------------------------------------- */

struct group {
  struct handle *h;
  struct statements *sql;
  int64_t now;            /* TIME-1 */
  int64_t counter;        /* the last number given */
  int64_t commits, last_now;
  int64_t store;          /* its number, in every token */
  bool has_written;       /* some member has */
  unsigned rings;         /* RING_...: where something may have become ready */
};

/* Runs the operations: afterwards each has its status.  Returns the RING_... for which the caller
 * has to ring the bell. */
unsigned group_run(struct handle *h, struct operation *const *ops, size_t n);
/* Under the lock file; with `is_last`, cuts the log if no other handle has the store open. */
void group_checkpoint(struct handle *h, bool is_last);
/* Before the writer ends, under the lock file. */
void group_leave(struct handle *h);
void group_disconnect(struct handle *h);

static inline int64_t
fresh_number(struct operation *op)
{
  assert(op->group); /* group.c, 2 */
  return ++op->group->counter;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

enum { MAX_TOKEN = 96 };

struct identity {
  int64_t iid, execution, activity; /* of a turn: 0, 0 */
};
struct token {
  int64_t store;
  struct identity of;
  int64_t epoch;
};

struct dk_bytes turn_token(const struct operation *op, char room[MAX_TOKEN], int64_t iid,
                           int64_t epoch);
struct dk_bytes work_token(const struct operation *op, char room[MAX_TOKEN],
                           const struct identity *of, int64_t epoch);
/* A text that is no token of a turn, or of a work item, is DK_LOCK_LOST, which is reported to the
 * host. */
dk_status read_turn_token(struct operation *op, struct dk_bytes text, struct token *ret_token);
dk_status read_work_token(struct operation *op, struct dk_bytes text, struct token *ret_token);
/* For a row whose lock is not, or no longer, this token's; locked_until 0: free.
 */
dk_status refuse_dead_token(struct operation *op, int64_t epoch, int64_t row_epoch,
                            int64_t locked_until);

/* ---- instances, messages, payloads (message.c) ----------------------------------------------- */

struct address {
  int64_t iid;            /* 0: there is none */
  int64_t ready_at;       /* -1: it has no message */
  int64_t locked_until;
  bool is_known;
};

dk_status find_address(struct operation *op, struct dk_bytes instance, struct address *ret_address);
dk_status find_or_make_address(struct operation *op, struct dk_bytes instance,
                               struct address *ret_address);
int64_t visible_from(const struct operation *op, const struct dk_item *item);
dk_status refuse_stored_message(struct operation *op, const struct dk_item *item);
dk_status store_message(struct operation *op, const struct dk_item *item);
dk_status store_payload(struct operation *op, struct dk_bytes payload, int64_t *ret_large);
dk_status delete_large(struct operation *op, int64_t large); /* 0: none */
/* Runs to its end a statement that returns, in its first column, the payloads to be deleted. */
dk_status delete_with_payloads(struct operation *op, sqlite3_stmt *row);

apply_fn apply_enqueue_message;

/* ---- turns ----------------------------------------------------------------------------------- */

struct turn {
  int64_t iid, locked_until, epoch;
  int64_t visible_at, seq, cut;   /* the range of its messages */
  int64_t done_epoch, known, status, execution, last_event;
};

dk_status read_turn(struct operation *op, int64_t iid, struct turn *ret_turn,
                    sqlite3_stmt **ret_row);
dk_status find_live_turn(struct operation *op, struct turn *ret_turn);
dk_status release_turn(struct operation *op, const struct turn *turn, int64_t done_epoch);

apply_fn apply_fetch_turn, apply_renew_turn, apply_abandon_turn, apply_commit;

/* ---- work ------------------------------------------------------------------------------------ */

dk_status refuse_stored_work(struct operation *op, const struct identity *of);
dk_status insert_work(struct operation *op, int64_t iid, const struct dk_item *item);

apply_fn apply_fetch_work, apply_ack_work, apply_renew_work, apply_abandon_work, apply_enqueue_work;

/* ---- lost fetches (release.c) ---------------------------------------------------------------- */

/* 0: none. */
int64_t fetch_id_of_turn(const struct dk_fetch_turn *request);
int64_t fetch_id_of_work(const struct dk_fetch_work *request);

apply_fn apply_release_fetch;

/* ---- reading and waiting --------------------------------------------------------------------- */

struct reading {
  const struct dk_host *host;
  struct dk_call *call;
  struct statements *sql;
  const void *request;
};
typedef dk_status read_fn(struct reading *r);

/* Runs `read` in one transaction, on a connection that only reads. */
dk_status read_beside_writer(struct handle *h, struct dk_call *call, const void *request,
                             read_fn *read);
dk_read_history_fn sqlite_read_history;
void readers_hold(struct handle *h);
void readers_let_go(struct handle *h);
void readers_close(struct handle *h);

/* Submits a fetch, and waits for work until `wait_until`. */
dk_status wait_for_work(struct handle *h, struct operation *op, int64_t wait_until);

/* call.c: has the writer apply it; a fetch waits for work until `wait_until`, if that is not 0. */
dk_status submit(void *self, struct operation *op, int64_t wait_until);
/* The operations' table. */
extern const struct dk_ops sqlite_ops;

#endif
