/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to the server, and requests on it.
 *
 * Non-blocking: whoever waits for the server waits in host->wait, with DK_WAIT_ANSWER, and so can
 * be called back.  What is not sent by then is dropped; what was sent and writes is given a moment
 * more, for most often the answer is on its way, and whoever is told that it is not known can do
 * less than who has it.  A request is one statement with binary parameters and a binary result: one
 * round trip.
 *
 * A session that is ours alone is settled as it begins, and keeps what is asked often as prepared
 * statements, each from its first use on.  Behind a pooler that lends sessions out nothing is left
 * in them.  A session that is not as we left it is settled again: see session.c. */
#ifndef DK_PG_CONNECTION_H
#define DK_PG_CONNECTION_H

#include "providers/pg/servers.h"
#include "providers/pg/values.h"

enum { MOST_PREPARED = 32 };

/* It stays where it is while it is connected: libpq's notices lead here. */
struct connection {
  const struct dk_host *host;
  const struct settings *settings;
  struct servers *servers; /* of the handle; NULL: none is remembered */
  PGconn *pg;              /* NULL: not connected */
  struct connection *next; /* in the pool */
  bool has_ended;          /* the server has said so to the idle connection */
  bool is_doubtful;        /* a commit did not wait for its standby: see connection.c */
  bool is_bloated;         /* libpq keeps the buffers of something very large */
  struct identity identity; /* of the server */
  bool is_refused;         /* that server: it is not the one */
  bool has_passed_over;    /* a host that was silent, or refused */
  int64_t limit_ms;        /* to connect to one host */
  struct connection *beside; /* while this one is waited for, what comes there ends the wait */
  bool is_own;             /* the session: no pooler lends it out */
  bool is_settled;         /* and is as session.c has left it; not: see connection_renew */
  uint64_t prepared[MOST_PREPARED]; /* what is, in this session */
  int n_prepared;
  int n_renewed;           /* so often was it not as it was left */
};

/* ---- making one (connect.c) ------------------------------------------------------------------ */

/* Connects, and looks at what is there: server version, encoding, whether it is in recovery.  A
 * server below MIN_SERVER_VERSION is DK_REFUSED with both numbers.  All but the lookup of a name,
 * which libpq makes by itself, can be called back. */
enum { MIN_SERVER_VERSION = 130000 };
dk_status connection_open(struct connection *c, struct dk_call *call, struct why *why);
/* Begins to connect with the parameters of all our connections, for who waits by itself, as
 * listener.c: PQconnectPoll is next.  NULL: no memory.  *ret_limit_ms: how long each host has. */
PGconn *connection_start(const struct settings *settings, struct servers *servers,
                         int64_t *ret_limit_ms);
/* Reads what has come, and what TLS has kept of it.  False: the connection is lost. */
bool connection_read(PGconn *pg);
/* The host that is tried has had its time.  True: whoever waits waits as after a start, with a new
 * limit; *pg may be another. */
bool connection_go_on(const struct settings *settings, struct servers *servers, PGconn **pg);
/* The server of this host is not the one: the same with the next host; `why` is logged. */
bool connection_pass_over(const struct settings *settings, struct servers *servers, PGconn **pg,
                          const struct dk_host *host, const struct why *why);
/* A server was found, and is not known to be superseded: looks whether one of the hosts behind it
 * has taken its place, as a session on each would tell.  What it learns is with the servers. */
void connection_try_others(const struct connection *found, struct dk_call *call);
/* Never blocks, whatever the server does. */
void connection_close(struct connection *c);
/* An idle connection that the server has ended is seen without a round trip, and one to a server
 * that was superseded, too. */
bool connection_is_alive(struct connection *c);

/* ---- requests (connection.c) ----------------------------------------------------------------- */

struct request {
  const char *what;       /* for people: the operation's name */
  const char *sql;        /* constant text but for the schema's quoted name */
  struct values *values;
  bool writes;            /* a lost answer is DK_OUTCOME_UNKNOWN */
  bool is_frequent;       /* worth a prepared statement */
  bool relies;            /* on the session's settings, and sets none for itself */
  int64_t answer_ms;      /* how long the answer may take; 0: settings->answer_ms */
};

/* Sends it and waits for its answer, without progress at most for answer_ms, and no longer than
 * until it is known that another server has taken the place of this one (silence.c).  DK_OK: *ret
 * is the result, to be freed by PQclear, and the server has committed it (it was ready for the
 * next).  An error leaves a usable connection, or none (pg NULL).  DK_CALL_CANCELLED only if
 * nothing was done: not all of it was sent, or it only reads. */
dk_status connection_run(struct connection *c, struct dk_call *call, const struct request *request,
                         PGresult **ret, struct why *why);
/* After an error: the session is there, and has lost what was prepared in it, or it has changed.
 * Nothing was done; once connection_renew has begun anew, the request may be run again. */
bool connection_is_changed(const struct connection *c);
dk_status connection_renew(struct connection *c, struct dk_call *call, struct why *why);
/* Several statements at once by the simple protocol, without results: for schemas.  For as long as
 * it takes, or until the host ends the wait: given up, it would only have to be begun anew. */
dk_status connection_script(struct connection *c, struct dk_call *call, const char *what,
                            const char *sql, struct why *why);

/* TIME-5: a sum of times stops at the ends. */
static inline int64_t
time_add(int64_t a, int64_t b)
{
  int64_t sum;

  if (!__builtin_add_overflow(a, b, &sum))
    return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

/* ---- for both (connect.c) -------------------------------------------------------------------- */

/* Waits in the host for the connection's socket, as one who has asked it for something.  DK_BUSY:
 * something has come on the one beside it, which goes first. */
dk_status connection_wait(struct connection *c, struct dk_call *call, uint32_t events,
                          int64_t until);
/* The host wants the call back, or will not wait. */
dk_status connection_ended_by_host(const struct connection *c, struct why *why, dk_status status,
                                   const char *what);
/* The server ends the session with it. */
bool connection_error_is_fatal(const PGresult *result);

/* ---- the session (session.c) ----------------------------------------------------------------- */

/* What `room` and `values` hold until it was sent.  Not for good: for its transaction only. */
struct request session_settling(const struct connection *c, bool for_good, char room[24],
                                struct values *values);
/* Of a new session, or one that was reset; also looks whether it will do. */
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
/* Who the server is, in a select list: two columns of text, for identity_of. */
#define SESSION_IDENTITY                                                                           \
  "(pg_catalog.pg_control_system()).system_identifier::pg_catalog.text,"                           \
  " CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL"                                            \
  " ELSE pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()) END"
bool session_was_changed(const struct statement *st, const struct why *why);
/* How a request for it ends where the server does not say: a managed one may let nobody ask, and
 * has its own words for that. */
bool session_withholds(dk_status status);

/* ---- silence (silence.c) --------------------------------------------------------------------- */

/* The call waits for this session, and for silence_ms no answer has come.  Unless somebody else of
 * the handle is at it, connects anew and looks who answers there; returns at once when something
 * comes on the silent one.  What it finds is with the servers: a higher timeline, or what the
 * session waits for. */
void silence_probe(struct connection *silent, struct dk_call *call, const char *what);
/* A request on this session has waited in vain for a lock: adds to its words what the server waits
 * for, if that is the cause of it. */
void silence_explain(struct connection *c, struct dk_call *call, struct why *why);

/* ---- the pool -------------------------------------------------------------------------------- */

/* Locking: `mutex` guards all; it is held over no wait, no upcall and no libpq call that talks. */
struct pool;
dk_status pool_new(const struct dk_host *host, const struct settings *settings,
                   struct servers *servers, struct pool **ret_pool, struct why *why);
void pool_free(struct pool *pool); /* nobody has a connection of it */
/* A connected one: idle, new, or waited for in host->wait. */
dk_status pool_take(struct pool *pool, struct dk_call *call, struct connection **ret,
                    struct why *why);
/* Whatever has become of it: what cannot be used again is closed, and made anew for the next. */
void pool_give_back(struct pool *pool, struct connection *c);

#endif
