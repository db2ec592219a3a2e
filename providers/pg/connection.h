/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to the server, and requests on it.
 *
 * Non-blocking: whoever waits for the server waits in host->wait, with DK_WAIT_ANSWER, and so can
 * be called back; the socket is then dropped, never asked to cancel (that would block).  A request
 * is one statement with binary parameters and a binary result: one round trip.  Nothing is prepared
 * under a name, and no setting of the session is relied upon, so that a pooler in transaction mode
 * may stand between, and a statement survives failover and a change of the schema. */
#ifndef DK_PG_CONNECTION_H
#define DK_PG_CONNECTION_H

#include "providers/pg/settings.h"
#include "providers/pg/values.h"

/* It stays where it is while it is connected: libpq's notices lead here. */
struct connection {
  const struct dk_host *host;
  const struct settings *settings;
  PGconn *pg;              /* NULL: not connected */
  struct connection *next; /* in the pool */
  bool has_ended;          /* the server has said so to the idle connection */
  bool is_doubtful;        /* a commit did not wait for its standby: see connection.c */
  bool is_bloated;         /* libpq keeps the buffers of something very large */
};

/* Connects, and looks at what is there: server version, encoding, whether it is in recovery.  A
 * server below MIN_SERVER_VERSION is DK_REFUSED with both numbers.  All but the lookup of a name,
 * which libpq makes by itself, can be called back. */
enum { MIN_SERVER_VERSION = 130000 };
dk_status connection_open(struct connection *c, struct dk_call *call, struct why *why);
/* Begins to connect with the parameters of all our connections, for who waits by itself (bell.c):
 * PQconnectPoll is next.  NULL: no memory. */
PGconn *connection_start(const struct settings *settings);
/* Reads what has come, and what TLS has kept of it.  False: the connection is lost. */
bool connection_read(PGconn *pg);
/* The host that is tried has had its time.  True: whoever waits waits as after a start, with a new
 * limit; *pg may be another. */
bool connection_go_on(const struct settings *settings, PGconn **pg);
/* Never blocks, whatever the server does. */
void connection_close(struct connection *c);
/* An idle connection that the server has ended is seen without a round trip. */
bool connection_is_alive(struct connection *c);

struct request {
  const char *what;       /* for people: the operation's name */
  const char *sql;        /* constant text but for the schema's quoted name */
  struct values *values;
  bool writes;            /* a lost answer is DK_OUTCOME_UNKNOWN */
};

/* Sends it and waits for its answer, without progress at most settings->answer_ms.  DK_OK: *ret is
 * the result, to be freed by PQclear, and the server has committed it (it was ready for the next).
 * An error leaves a usable connection, or none (pg NULL).  DK_CALL_CANCELLED only if nothing was
 * done: not all of it was sent, or it only reads. */
dk_status connection_run(struct connection *c, struct dk_call *call, const struct request *request,
                         PGresult **ret, struct why *why);
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

/* ---- the pool -------------------------------------------------------------------------------- */

/* Locking: `mutex` guards all; it is held over no wait, no upcall and no libpq call that talks. */
struct pool;
dk_status pool_new(const struct dk_host *host, const struct settings *settings,
                   struct pool **ret_pool, struct why *why);
void pool_free(struct pool *pool); /* nobody has a connection of it */
/* A connected one: idle, new, or waited for in host->wait. */
dk_status pool_take(struct pool *pool, struct dk_call *call, struct connection **ret,
                    struct why *why);
/* Whatever has become of it: what cannot be used again is closed, and made anew for the next. */
void pool_give_back(struct pool *pool, struct connection *c);

#endif
