/* SPDX-License-Identifier: Apache-2.0 */
/* Why an operation fails, in words for the host: a status and a text.  The status comes from the
 * SQLSTATE, from where in the server it was raised, and from how far the request had got; never
 * from the server's words. */
#ifndef DK_PG_WHY_H
#define DK_PG_WHY_H

#include <stdbool.h>

#include <libpq-fe.h>

#include "providers/shared/basics.h"

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

/* Fills what host->fail will get, and returns the status; never DK_OK. */
dk_status why_set(struct why *why, dk_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));
/* The connection is lost, or cannot be used; libpq's message says why. */
dk_status why_connection(struct why *why, const PGconn *pg, enum progress progress, bool writes,
                         const char *what);
/* The server has refused: by SQLSTATE and place.  The text has the message and the detail or the
 * hint. */
dk_status why_result(struct why *why, const PGresult *result, bool writes, const char *what);
/* No connection was made.  The SQLSTATE is taken from libpq's message, which has it because of
 * PQERRORS_VERBOSE: libpq keeps no SQLSTATE of a connection that failed. */
dk_status why_connect(struct why *why, const PGconn *pg, const char *where);
/* Replaces the end of the text of why_result, what to do by the SQLSTATE, by this. */
void why_set_next(struct why *why, const char *next);
/* Writes a text of libpq or of the server as one line into `room`, cut if it is longer. */
const char *why_line(char *room, size_t size, const char *text);
/* What a SQLSTATE means for a request that writes or only reads; "": none.  `place`: the constraint
 * that was violated, or the file of the server's source; "": not known. */
dk_status why_status_of(const char *sqlstate, const char *place, bool writes);
/* True: after this SQLSTATE the connection cannot be used. */
bool why_ends_connection(const char *sqlstate);
/* True: the server, the database or the role has no connection left. */
bool why_server_is_full(const struct why *why);
/* Reports the failure to the host, and returns the status; below DK_BUSY nothing is reported. */
dk_status why_tell(const struct why *why, const struct dk_host *host, struct dk_call *call);

#endif
