/* SPDX-License-Identifier: Apache-2.0 */
/* How a connection is made, looked at and ended: see connection.h.  Owns the PGconn. */
#include "providers/pg/connection.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

/* ---- notices --------------------------------------------------------------------------------- */

bool
connection_error_is_fatal(const PGresult *result)
{
  const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

  return severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
}

static void
drop_notice(void *context, const PGresult *notice)
{
  (void)context;
  (void)notice;
}

/* Never to standard error, where libpq puts them.  A commit whose wait for a standby was cut short
 * stands on this server alone.  It is answered as any other, after a warning that only the place
 * where it is made tells from others. */
static void
note(void *context, const PGresult *notice)
{
  struct connection *c = context;
  const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char *place = PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);
  bool is_warning = severity && strcmp(severity, "WARNING") == 0;
  char text[300] = "the server says: ";
  size_t length = strlen(text);

  c->has_ended = c->has_ended || connection_error_is_fatal(notice);
  c->is_doubtful = c->is_doubtful || (place && strcmp(place, "SyncRepWaitForLSN") == 0);
  why_line(text + length, sizeof text - length,
           PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY));
  c->host->log(c->host, is_warning ? 2 : 0, (struct dk_bytes){text, strlen(text)});
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* With these hosts; NULL: with all. */
static PGconn *
start(const struct settings *settings, const struct hosts *hosts)
{
  struct connect_params params;
  struct why why;

  if (conninfo_params(settings, &params, &why) != DK_OK)
    return NULL;
  if (hosts)
    conninfo_narrow(&params, hosts);
  PGconn *pg = PQconnectStartParams(params.keywords, params.values, 1);
  if (pg) {
    PQsetNoticeReceiver(pg, drop_notice, NULL);
    PQsetErrorVerbosity(pg, PQERRORS_VERBOSE); /* see why_connect */
  }
  return pg;
}

PGconn *
connection_start(const struct settings *settings)
{
  return start(settings, NULL);
}

/* libpq looks for another by itself when the way to an address fails; what has taken the way and
 * then says nothing it would wait for. */
bool
connection_go_on(const struct settings *settings, PGconn **pg)
{
  struct hosts hosts;

  if (PQstatus(*pg) == CONNECTION_STARTED && PQsocket(*pg) >= 0)
    return shutdown(PQsocket(*pg), SHUT_RDWR) == 0;
  if (!hosts_after(*pg, &hosts))
    return false;
  PGconn *next = start(settings, &hosts);
  hosts_done(&hosts);
  if (!next)
    return false;
  PQfinish(*pg);
  *pg = next;
  return true;
}

dk_status
connection_wait(struct connection *c, struct dk_call *call, uint32_t events, int64_t until)
{
  return c->host->wait(call, PQsocket(c->pg), events | DK_WAIT_ANSWER, until);
}

dk_status
connection_ended_by_host(struct why *why, dk_status status, const char *what)
{
  return why_set(why, status, "%s: the host has ended the wait", what);
}

static dk_status
too_late(const struct connection *c, struct why *why)
{
  return why_set(why, DK_UNAVAILABLE,
                 "cannot connect to %s: no answer within %lldms; look whether it runs and can be "
                 "reached, or give connect_timeout more time",
                 c->settings->shown, (long long)c->settings->connect_ms);
}

/* Of several hosts each has the whole of the limit, as with libpq's own. */
static dk_status
reach_server(struct connection *c, struct dk_call *call, struct why *why)
{
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  const char *tried = NULL, *late = NULL; /* compared by where they are */
  int64_t until = 0;

  while (next != PGRES_POLLING_OK) {
    if (next == PGRES_POLLING_FAILED || PQstatus(c->pg) == CONNECTION_BAD)
      return late && late == PQhost(c->pg) ? too_late(c, why)
                                           : why_connect(why, c->pg, c->settings->shown);
    if (tried != PQhost(c->pg))
      until = time_add(c->host->now(c->host), c->settings->connect_ms);
    tried = PQhost(c->pg);
    uint32_t events = next == PGRES_POLLING_READING ? DK_WAIT_READ : DK_WAIT_WRITE;
    dk_status status = connection_wait(c, call, events, until);
    if (status == DK_NOTHING) {
      PGconn *before = c->pg;
      if (!connection_go_on(c->settings, &c->pg))
        return too_late(c, why);
      PQsetNoticeReceiver(c->pg, note, c);
      late = c->pg == before ? tried : NULL;
      tried = NULL;
      next = PGRES_POLLING_WRITING; /* as after a start; what was shut is ready */
    } else if (status != DK_OK) {
      return connection_ended_by_host(why, status, "connect");
    } else {
      next = PQconnectPoll(c->pg);
    }
  }
  return DK_OK;
}

static dk_status
finish_connecting(struct connection *c, struct dk_call *call, struct why *why)
{
  TRY(reach_server(c, call, why));
  PQsetErrorVerbosity(c->pg, PQERRORS_DEFAULT);
  if (PQsetnonblocking(c->pg, 1) != 0)
    return why_connection(why, c->pg, NOTHING_SENT, false, "connect");
  return DK_OK;
}

static dk_status
check_version(const struct connection *c, struct why *why)
{
  int version = PQserverVersion(c->pg);
  const char *name = PQparameterStatus(c->pg, "server_version");
  const char *encoding = PQparameterStatus(c->pg, "server_encoding");

  if (version < MIN_SERVER_VERSION)
    return why_set(why, DK_REFUSED, "%s is of version %s; expected %d or later", c->settings->shown,
                   name ? name : "unknown", MIN_SERVER_VERSION / 10000);
  if (!encoding || strcmp(encoding, "UTF8") != 0)
    return why_set(why, DK_REFUSED,
                   "the database \"%s\" of %s has the encoding %s; expected UTF8; make one with "
                   "CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",
                   PQdb(c->pg), c->settings->shown, encoding ? encoding : "unknown");
  return DK_OK;
}

dk_status
connection_open(struct connection *c, struct dk_call *call, struct why *why)
{
  if (c->host->cancelled(call))
    return connection_ended_by_host(why, DK_CALL_CANCELLED, "connect");
  c->has_ended = c->is_doubtful = c->is_bloated = c->is_own = c->is_settled = false;
  c->n_renewed = 0;
  c->pg = connection_start(c->settings);
  if (!c->pg)
    return why_set(why, DK_NO_MEMORY, "connect: out of memory");
  PQsetNoticeReceiver(c->pg, note, c);
  dk_status status = finish_connecting(c, call, why);
  if (status == DK_OK)
    status = check_version(c, why);
  if (status == DK_OK)
    status = session_settle(c, call, why);
  if (status != DK_OK)
    connection_close(c);
  return status;
}

/* A farewell that the server does not take is left unsaid: the socket does not block. */
void
connection_close(struct connection *c)
{
  PQfinish(c->pg);
  c->pg = NULL;
}

/* What has come behind the last answer, a notice, a changed setting or the end, may be in the
 * socket, or with libpq, which has read it with that answer. */
bool
connection_is_alive(struct connection *c)
{
  enum { MOST_LOOKS = 10 };
  struct pollfd fd = {.fd = c->pg ? PQsocket(c->pg) : -1, .events = POLLIN};
  PGnotify *unexpected;

  for (int i = 0; c->pg && i < MOST_LOOKS; i++) {
    if (PQisBusy(c->pg))
      return false;
    while ((unexpected = PQnotifies(c->pg)) != NULL)
      PQfreemem(unexpected);
    if (PQstatus(c->pg) != CONNECTION_OK || c->has_ended)
      return false;
    if (poll(&fd, 1, 0) == 0)
      return true;
    if (!PQconsumeInput(c->pg))
      return false;
  }
  return false;
}
