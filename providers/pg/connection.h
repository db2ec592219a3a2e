/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to the server, and requests on it.
 *
 * Non-blocking: a call that waits for the server waits in host->wait, with DK_WAIT_ANSWER, so that
 * the host can cancel it.  A request that is not wholly sent by then is dropped.  A request that
 * was sent and writes gets a moment more: most often its answer is on the way, and a host can do
 * more with the answer than with DK_OUTCOME_UNKNOWN.  A request is one statement with binary
 * parameters and a binary result: one round trip.
 *
 * A session that is ours alone gets its settings as it begins, and keeps frequent statements
 * prepared, each from its first use on.  Behind a pooler that lends sessions out nothing is left in
 * them.  A session that is not as we left it gets its settings again: see session.c. */
#ifndef DK_PG_CONNECTION_H
#define DK_PG_CONNECTION_H

#include "providers/pg/servers.h"
#include "providers/pg/values.h"

enum { MOST_PREPARED = 32 };

/* It must not move while it is connected: libpq's notices lead here. */
struct connection {
  const struct dk_host *host;
  const struct settings *settings;
  struct servers *servers; /* of the handle; NULL: none is remembered */
  PGconn *pg;              /* NULL: not connected */
  struct connection *next; /* in the pool */
  bool has_ended;          /* the server has ended the idle connection */
  bool is_doubtful;        /* a commit did not wait for its standby: see connection.c */
  bool is_bloated;         /* libpq keeps the buffers of something very large */
  struct identity identity; /* of the server */
  bool is_refused;         /* its server is not the right one */
  bool has_passed_over;    /* a host that was silent, or refused */
  int64_t limit_ms;        /* to connect to one host */
  struct connection *beside; /* data on that one ends a wait for this one */
  bool is_own;             /* the session: no pooler lends it out */
  bool is_settled;         /* and is as session.c has left it; else see connection_renew */
  uint64_t prepared[MOST_PREPARED]; /* the statements prepared in this session */
  int n_prepared;
  int n_renewed;           /* how often it was not as it was left */
};

/* ---- making one (connect.c) ------------------------------------------------------------------ */

/* Connects, and checks the server: its version, its encoding, whether it is in recovery.  A server
 * below MIN_SERVER_VERSION is DK_REFUSED with both numbers.  The host can cancel all of it but the
 * lookup of a name, which libpq makes by itself. */
enum { MIN_SERVER_VERSION = 130000 };
dk_status connection_open(struct connection *c, struct dk_call *call, struct why *why);
/* Begins to connect with the parameters of all our connections, for a caller that waits by itself,
 * such as listener.c: it calls PQconnectPoll next.  NULL: no memory.  *ret_limit_ms: how long each
 * host has. */
PGconn *connection_start(const struct settings *settings, struct servers *servers,
                         int64_t *ret_limit_ms);
/* Reads all data that has come, also what TLS holds back.  False: the connection is lost. */
bool connection_read(PGconn *pg);
/* Ends the attempt at the present host, whose time has passed, and begins with the next.  True: the
 * caller waits as after connection_start, with a new limit; *pg may be another. */
bool connection_go_on(const struct settings *settings, struct servers *servers, PGconn **pg);
/* Does the same when the server of this host is not the right one; `why` is logged. */
bool connection_pass_over(const struct settings *settings, struct servers *servers, PGconn **pg,
                          const struct dk_host *host, const struct why *why);
/* For a server that was found and is not known to be superseded: checks, by a session on each of
 * the hosts behind it, whether one of them has taken its place.  It notes the result in the
 * servers. */
void connection_try_others(const struct connection *found, struct dk_call *call);
/* Never blocks, whatever the server does. */
void connection_close(struct connection *c);
/* False: the server has ended this idle connection, or was superseded.  It takes no round trip. */
bool connection_is_alive(struct connection *c);

/* ---- requests (connection.c) ----------------------------------------------------------------- */

struct request {
  const char *what;       /* the operation's name, for people */
  const char *sql;        /* constant text but for the schema's quoted name */
  struct values *values;
  bool writes;            /* a lost answer is DK_OUTCOME_UNKNOWN */
  bool is_frequent;       /* worth a prepared statement */
  bool relies;            /* it relies on the session's settings, and sets none itself */
  int64_t answer_ms;      /* how long the answer may take; 0: settings->answer_ms */
};

/* Sends a request and waits for its answer.  Without progress it waits for answer_ms at most, and
 * no longer than until another server is known to have taken the place of this one (silence.c).
 * DK_OK: *ret is the result, to be freed by PQclear, and the server has committed the request (it
 * was ready for the next one).  An error leaves a usable connection, or none (pg NULL).
 * DK_CALL_CANCELLED means that nothing was done: the request was not wholly sent, or it only reads.
 */
dk_status connection_run(struct connection *c, struct dk_call *call, const struct request *request,
                         PGresult **ret, struct why *why);
/* After an error.  True: the session still exists, but its prepared statements are lost or have
 * changed.  Nothing was done, and after connection_renew the request may be run again. */
bool connection_is_changed(const struct connection *c);
dk_status connection_renew(struct connection *c, struct dk_call *call, struct why *why);
/* Runs several statements at once by the simple protocol, without results: for schemas.  It has no
 * time limit but the host's cancellation, because after a time-out it would only have to begin
 * anew. */
dk_status connection_script(struct connection *c, struct dk_call *call, const char *what,
                            const char *sql, struct why *why);

/* FNV-1a: the hash so far, and these bytes. */
static inline uint64_t
hash_mix(uint64_t hash, const void *bytes, size_t n)
{
  const unsigned char *at = bytes;

  for (size_t i = 0; i < n; i++)
    hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
  return hash;
}

/* ---- for both (connect.c) -------------------------------------------------------------------- */

/* Waits in the host for the connection's socket, for an answer to a request.  DK_BUSY: data has
 * come on the connection beside it, which goes first. */
dk_status connection_wait(struct connection *c, struct dk_call *call, uint32_t events,
                          int64_t until);
/* Fills `why` after the host has cancelled the call, or has refused to wait. */
dk_status connection_ended_by_host(const struct connection *c, struct why *why, dk_status status,
                                   const char *what);
/* True: the server ends the session with this error. */
bool connection_error_is_fatal(const PGresult *result);

/* ---- the session (session.c) ----------------------------------------------------------------- */

/* The request that makes the settings.  `room` and `values` must live until it was sent.  Without
 * `for_good` it is for its transaction only. */
struct request session_settling(const struct connection *c, bool for_good, char room[24],
                                struct values *values);
/* Makes the settings of a new or reset session, and checks that the session can be used. */
dk_status session_settle(struct connection *c, struct dk_call *call, struct why *why);

/* How a request is sent. */
struct statement {
  enum {
    AT_ONCE,
    BY_NAME,
    TO_BE_PREPARED,
    AFTER_SETTLING, /* in a session that is lent out */
    UNCOMPILED      /* before it is known which: to compile (jit) would take longest of all, and a
                     * role's statement_timeout may be short */
  } way;
  uint64_t identity;
  char name[32];
};
struct statement session_statement(const struct connection *c, const struct request *request);
void session_note_prepared(struct connection *c, const struct statement *st);
/* The identity of the server, in a select list: two columns of text, for identity_of. */
#define SESSION_IDENTITY                                                                           \
  "(pg_catalog.pg_control_system()).system_identifier::pg_catalog.text,"                           \
  " CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL"                                            \
  " ELSE pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()) END"
bool session_was_changed(const struct statement *st, const struct why *why);
/* True: a request for the identity ended because the server does not give it.  A managed server may
 * let no role ask, and may have errors of its own for that. */
bool session_withholds(dk_status status);

/* ---- silence (silence.c) --------------------------------------------------------------------- */

/* For a call that has waited for this session for silence_ms without an answer.  It connects anew
 * and checks which server answers, unless another thread of the handle does so now.  It returns at
 * once when data comes on the silent connection.  It notes the result in the servers: a higher
 * timeline, or what the session waits for. */
void silence_probe(struct connection *silent, struct dk_call *call, const char *what);
/* For a request on this session that has waited in vain for a lock: adds to its text what the
 * server waits for, if that is the cause. */
void silence_explain(struct connection *c, struct dk_call *call, struct why *why);

/* ---- the pool -------------------------------------------------------------------------------- */

/* Locking: `mutex` guards all; no thread holds it during a wait, an upcall or a libpq call that
 * uses the network. */
struct pool;
dk_status pool_new(const struct dk_host *host, const struct settings *settings,
                   struct servers *servers, struct pool **ret_pool, struct why *why);
void pool_free(struct pool *pool); /* all its connections were given back */
/* Gives a connected one: an idle one, a new one, or one that it has waited for in host->wait. */
dk_status pool_take(struct pool *pool, struct dk_call *call, struct connection **ret,
                    struct why *why);
/* Takes back a connection in any state: one that cannot be used again is closed, and made anew for
 * the next call. */
void pool_give_back(struct pool *pool, struct connection *c);

#endif
