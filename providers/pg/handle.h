/* SPDX-License-Identifier: Apache-2.0 */
/* A handle, its operations, and how they run.
 *
 *   provider.c    the descriptor; open, close, destroy_store
 *   settings.c    the settings that open was given
 *   connect.c     how a connection is made                pool.c    the connections
 *   connection.c  requests on one                         servers.c which server is the right one
 *   silence.c     a server that does not answer
 *   session.c     what is set and prepared in a session
 *   values.c      parameters and fields in binary         why.c     SQLSTATE to status and words
 *   store.c       whose schema, which version             migrate.c from version 1
 *   schema/....sql tables and functions, as the server has them
 *   call.c        the operations as the host calls them; one attempt, and again where it must be
 *   damage.c      rows that cannot be handed over
 *   message.c turn.c commit.c work.c release.c history.c  each operation: values, result, upcalls
 *   admin.c       durakit.admin/1: its operations as the host calls them, values, result, upcalls
 *   token.c       lock tokens, and how a dead one is refused
 *   bell.c        the waiters of this handle              wait.c    the long poll
 *   listener.c    what other processes notify (LISTEN, NOTIFY)
 *
 * How an operation runs.  It takes a connection from the pool, calls one function of the schema
 * with all its values (lists as arrays), and gets all it needs as rows of one result: one round
 * trip.  The function decides under row locks, and refuses before it writes; a refusal is a row of
 * the answer, and only a race raises an error.  Then the operation hands the rows up.
 */
#ifndef DK_PG_HANDLE_H
#define DK_PG_HANDLE_H

#include <durakit/admin.h>

#include "providers/pg/answers.h"
#include "providers/pg/connection.h"
#include "providers/pg/store.h"
#include "providers/shared/request.h"

enum { MAX_TOKEN = 2 * MAX_ID + 128 };

struct bell;

struct handle {
  const struct dk_host *host;
  struct settings settings;
  struct store store;
  struct servers *servers;
  struct pool *pool;
  struct bell *bell;      /* NULL: read-only */
  _Atomic uint32_t fetches; /* of turns: see turn.c */
};

/* ---- operations (call.c) --------------------------------------------------------------------- */

struct operation {
  const char *name;
  struct handle *h;
  struct dk_call *call;
  int64_t lease_ms;       /* of the lease in the answer; 0: none */
  bool is_large;          /* it may take long: see operation_run */
  int64_t sent_at;        /* the host's clock when the last attempt was sent, as in p_now */
  uint64_t sent_bytes;    /* the same, as it is sent */
  int32_t tries;          /* of a fetch: how often it was tried before: p_try */
  struct why *keeps;      /* keeps a failure of operation_run; NULL: it is reported */
};

/* Begins an operation that writes.  On a handle that only reads: DK_REFUSED, reported to the host.
 */
dk_status operation_begin(struct operation *op, void *self, struct dk_call *call,
                          const char *name);
/* Adds the values that every function begins with: the host's `now` or NULL for the server's clock,
 * and the lock timeout. */
void operation_values(struct operation *op, struct values *v);
/* Runs `SELECT * FROM "schema".function($1, ..., $n)` with these values in one attempt on a
 * connection of the pool.  The answer has answer_timeout; three times that for what is large (a
 * deletion, a commit of many items); for a lease as long as the lease lasts, because a later answer
 * is worth nothing.  `types` as for result_check.  Reports an error to the host.  Frees the values.
 */
dk_status operation_run(struct operation *op, const char *function, bool writes, struct values *v,
                        const char *types, PGresult **ret);
/* Converts a time of the store's clock to the host's; `store_now` came with the answer of the last
 * attempt.  INT64_MAX stays what it is. */
int64_t host_time(const struct operation *op, int64_t store_now, int64_t store_time);

/* What an attempt of a fetch answers inside: due rows are there, but a transaction that runs holds
 * them.  Nothing is reported to the host; the caller tries again in a new transaction: see call.c.
 */
enum { ATTEMPT_AGAIN = -1, ATTEMPT_IN_VAIN = -2 }; /* the latter has waited for them */

extern const struct dk_ops pg_ops;
extern const struct dk_admin pg_admin;

/* ---- tokens (token.c) ------------------------------------------------------------------------ */

struct token {
  struct dk_bytes instance;         /* points into the text */
  int64_t execution, activity;      /* of a turn: 0, 0 */
  int64_t epoch;
};

struct dk_bytes turn_token(const struct handle *h, char room[MAX_TOKEN], struct dk_bytes instance,
                           int64_t epoch);
struct dk_bytes work_token(const struct handle *h, char room[MAX_TOKEN], struct dk_bytes instance,
                           int64_t execution, int64_t activity, int64_t epoch);
/* A text that is no token of a turn, or of a work item, of this store is DK_LOCK_LOST, which is
 * reported to the host. */
dk_status read_turn_token(struct operation *op, struct dk_bytes text, struct token *ret_token);
dk_status read_work_token(struct operation *op, struct dk_bytes text, struct token *ret_token);

/* Reports what became of the token's lease: `row_epoch` is the epoch of the row's last lease, 0 if
 * there is no row; `locked_until` is 0 if it is not locked. */
dk_status refuse_dead_token(struct operation *op, int64_t epoch, int64_t row_epoch,
                            int64_t locked_until, int64_t store_now);

/* ---- what cannot be handed over (damage.c) --------------------------------------------------- */

enum { SET_ASIDE_MS = 3600000 };
/* DK_CORRUPT, reported to the host with the instance and the fault. */
dk_status damage_refuse(struct operation *op, struct dk_bytes instance, const char *what);
/* True: a fetch may have failed with this because of a damaged row. */
bool damage_may_be(const struct why *why);
/* Finds the damaged row, by a function of schema/damage.sql that takes the values and two more, and
 * sets it aside: DK_CORRUPT.  ATTEMPT_AGAIN: there is none, or no longer.  Frees the values. */
dk_status damage_find(struct operation *op, const char *function, struct values *v,
                      const struct why *first);

/* The description of a value that no host would accept. */
struct fault {
  char text[200];
};
bool fault_of_id(struct fault *f, const char *what, struct dk_bytes text, bool may_be_absent);
bool fault_of_number(struct fault *f, const char *what, int64_t number, int64_t most);
bool fault_of_payload(struct fault *f, const char *what, int64_t number, struct dk_bytes payload);
/* DK_CORRUPT, reported to the host by an operation that only reads: nothing is set aside. */
dk_status damage_tell(struct operation *op, struct dk_bytes instance, const struct fault *f);

/* ---- each operation -------------------------------------------------------------------------- */
/* pg_... is an operation by its name in the ABI, as the host calls it (call.c, history.c, admin.c);
 * apply_... is what it does in one attempt. */

dk_status apply_enqueue_message(struct operation *op, const struct dk_item *item);
/* Makes one attempt.  *ret_due: if nothing was found, when the first will be due (host time;
 * INT64_MAX: unknown).  The caller tries again after ATTEMPT_AGAIN and ATTEMPT_IN_VAIN. */
dk_status apply_fetch_turn(struct operation *op, const struct dk_fetch_turn *request,
                           int64_t *ret_due);
dk_status apply_fetch_work(struct operation *op, const struct dk_fetch_work *request,
                           int64_t *ret_due);
dk_status apply_renew_turn(struct operation *op, struct dk_bytes token, int64_t extend_ms);
dk_status apply_abandon_turn(struct operation *op, struct dk_bytes token, int64_t delay_ms,
                             bool ignore_attempt);
dk_status apply_commit(struct operation *op, struct dk_bytes token,
                       const struct dk_turn_result *result);
dk_status apply_ack_work(struct operation *op, struct dk_bytes token,
                         const struct dk_work_result *result);
dk_status apply_renew_work(struct operation *op, struct dk_bytes token, int64_t extend_ms);
dk_status apply_abandon_work(struct operation *op, struct dk_bytes token, int64_t delay_ms,
                             bool ignore_attempt);
dk_status apply_enqueue_work(struct operation *op, const struct dk_item *item);
dk_read_history_fn pg_read_history;

dk_status apply_release_fetch(struct operation *op, uint64_t fetch_id);

/* release.c: the id of a fetch, 0 if the host is older; and the last value of a fetch, which is
 * left out if it is 0. */
uint64_t fetch_id_of_turn(const struct dk_fetch_turn *request);
uint64_t fetch_id_of_work(const struct dk_fetch_work *request);
void value_fetch_id(struct values *v, uint64_t fetch_id);

/* ---- the bell, and waiting ------------------------------------------------------------------- */

enum { RING_TURNS = 1u, RING_WORK = 2u };

/* The bell has a connection and a thread of its own for the notifications of other processes.  The
 * thread waits for events only, and begins with the first waiter. */
dk_status bell_new(struct handle *h, struct bell **ret_bell, struct why *why);
void bell_free(struct bell *bell); /* even while the server does not answer */
/* Call it when something may have become ready: waiters of this handle look at once, and other
 * handles that listen are notified.  `listening`: what the operation's function returned from
 * "schema".listening(), which it calls after its first write: see schema/listener.sql. */
void bell_ring(struct bell *bell, uint32_t rings, int64_t listening);

/* The bell's mutex guards it, except `fd`, which only its owner polls. */
struct waiter {
  int fd;                 /* readable after a ring; -1: waiting is polling */
  uint32_t rings;
  uint64_t group;         /* each of a group can fetch what another can */
  bool waits;             /* else it looks */
  bool is_rung;           /* and has not begun a look since */
  bool was_rung;          /* for the look that is under way */
  int64_t patience;       /* the next short one, in ms */
  struct waiter *next;
};
/* Before the first look for work. */
void bell_join(struct bell *bell, struct waiter *waiter, uint32_t rings, uint64_t group);
/* Before a look: rings from here on are heard by the next wait. */
void bell_hear_out(struct bell *bell, struct waiter *waiter);
/* After a look that found nothing: how long the waiter may wait before it looks anyway, in ms.
 * It is short, and then longer, while no other handle can be heard.  Begins to listen, or begins
 * anew. */
int64_t bell_patience(struct bell *bell, struct waiter *waiter);
/* `status`: the result of the last look, or of the wait.  A ring that the waiter has not used is
 * handed on. */
void bell_leave(struct bell *bell, struct waiter *waiter, dk_status status);

dk_status wait_for_turn(struct operation *op, const struct dk_fetch_turn *request);
dk_status wait_for_work(struct operation *op, const struct dk_fetch_work *request);

#endif
