/* SPDX-License-Identifier: Apache-2.0 */
/* Why an operation fails, in words for the host: a status and a text.  The status comes from the
 * SQLSTATE, from where in the server it was raised, and from how far the request had got; never
 * from the server's words. */
#ifndef DK_PG_WHY_H
#define DK_PG_WHY_H

#include <stdbool.h>

#include <durakit/provider.h>
#include <libpq-fe.h>

struct why {
  dk_status status;
  char sqlstate[6];       /* "": not from the server */
  char text[1000];        /* no secret is ever in it */
};

/* How far a request had got when it failed. */
enum progress {
  NOTHING_SENT, /* the server cannot have seen it */
  SENT          /* it may have been done, or be done yet */
};

/* What host->fail is told, and DK_OK never. */
dk_status why_set(struct why *why, dk_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));
/* The connection is lost, or cannot be used: by what libpq says of it. */
dk_status why_connection(struct why *why, const PGconn *pg, enum progress progress, bool writes,
                         const char *what);
/* The server has refused: by SQLSTATE and place.  Message and detail, or hint, are told. */
dk_status why_result(struct why *why, const PGresult *result, bool writes, const char *what);
/* No connection was made.  What libpq says is taken in pieces: it was asked for SQLSTATEs by
 * PQERRORS_VERBOSE, for it keeps none of a connection that failed. */
dk_status why_connect(struct why *why, const PGconn *pg, const char *where);
/* Ends what why_result has told with this, instead of what its SQLSTATE says on what to do. */
void why_set_next(struct why *why, const char *next);
/* Text of libpq or of the server as one line in `room`, cut if it is longer. */
const char *why_line(char *room, size_t size, const char *text);
/* What a SQLSTATE means for a request that writes or only reads; "": none.  `place`: the constraint
 * that was violated, or the file of the server's source; "": not known. */
dk_status why_status_of(const char *sqlstate, const char *place, bool writes);
/* After this SQLSTATE the connection is of no use. */
bool why_ends_connection(const char *sqlstate);
/* The server, the database or the role has no connection left. */
bool why_server_is_full(const struct why *why);
/* Tells the host, and gives the status back; below DK_BUSY nothing is told. */
dk_status why_tell(const struct why *why, const struct dk_host *host, struct dk_call *call);

#define TRY(call)                    \
  do {                               \
    dk_status try_status_ = (call);  \
    if (try_status_ != DK_OK)        \
      return try_status_;            \
  } while (0)

#endif
