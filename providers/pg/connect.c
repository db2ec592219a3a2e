/* SPDX-License-Identifier: Apache-2.0 */
/* How a connection is made, checked and ended: see connection.h.  Owns the PGconn. */
#include "providers/pg/connection.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* The server's notices never go to standard error, where libpq puts them.  A commit whose wait for
 * a standby was cut short is on this server alone.  It gets the same answer as any other, after a
 * warning that differs from others only by the place in the server's source. */
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
connect_start(const struct settings *settings, const struct hosts *hosts)
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
connection_start(const struct settings *settings, struct servers *servers, int64_t *ret_limit_ms)
{
  struct hosts hosts;
  bool has_preferred = servers_preferred(servers, &hosts);
  PGconn *pg = connect_start(settings, has_preferred ? &hosts : NULL);

  if (has_preferred)
    hosts_done(&hosts);
  else if (pg)
    servers_note_hosts(servers, pg);
  bool are_several = pg && hosts_of(pg, &hosts);
  if (are_several) {
    are_several = hosts_are_several(&hosts);
    hosts_done(&hosts);
  }
  *ret_limit_ms = are_several ? settings->host_ms : settings->connect_ms;
  return pg;
}

/* The hosts behind the one that it has, or has tried last. */
static bool
next_host(const struct settings *settings, struct servers *servers, PGconn **pg)
{
  struct hosts hosts;

  if (!hosts_after(*pg, &hosts))
    return false;
  PGconn *next = connect_start(settings, &hosts);
  hosts_done(&hosts);
  if (!next)
    return false;
  PQfinish(*pg);
  *pg = next;
  servers_prefer(servers, next, true);
  return true;
}

/* libpq tries the next address by itself if it cannot reach one; but it would wait for a server
 * that it reaches and that does not answer. */
bool
connection_go_on(const struct settings *settings, struct servers *servers, PGconn **pg)
{
  if (PQstatus(*pg) == CONNECTION_STARTED && PQsocket(*pg) >= 0)
    return shutdown(PQsocket(*pg), SHUT_RDWR) == 0;
  return next_host(settings, servers, pg);
}

bool
connection_pass_over(const struct settings *settings, struct servers *servers, PGconn **pg,
                     const struct dk_host *host, const struct why *why)
{
  char line[sizeof why->text + 40];

  if (!next_host(settings, servers, pg))
    return false;
  snprintf(line, sizeof line, "%s; trying the next host", why->text);
  host->log(host, 2, (struct dk_bytes){line, strlen(line)});
  return true;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool
is_readable(PGconn *pg)
{
  struct pollfd fd = {.fd = PQsocket(pg), .events = POLLIN};

  return poll(&fd, 1, 0) > 0;
}

static bool
connect_add(int set, int fd, uint32_t events)
{
  struct epoll_event event = {.events = (events & DK_WAIT_READ ? EPOLLIN : 0) |
                                        (events & DK_WAIT_WRITE ? EPOLLOUT : 0)};

  return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0;
}

static dk_status
wait_for_either(struct connection *c, struct dk_call *call, uint32_t events, int64_t until)
{
  int both = epoll_create1(EPOLL_CLOEXEC);
  dk_status status = DK_UNAVAILABLE;

  if (both >= 0 && connect_add(both, PQsocket(c->pg), events) &&
      connect_add(both, PQsocket(c->beside->pg), DK_WAIT_READ))
    status = c->host->wait(call, both, DK_WAIT_READ | DK_WAIT_ANSWER, until);
  if (both >= 0)
    close(both);
  return status == DK_OK && is_readable(c->beside->pg) ? DK_BUSY : status;
}

dk_status
connection_wait(struct connection *c, struct dk_call *call, uint32_t events, int64_t until)
{
  if (c->beside)
    return wait_for_either(c, call, events, until);
  return c->host->wait(call, PQsocket(c->pg), events | DK_WAIT_ANSWER, until);
}

dk_status
connection_ended_by_host(const struct connection *c, struct why *why, dk_status status,
                         const char *what)
{
  return why_set(why, status, "%s: cancelled while it waited for %s", what, c->settings->shown);
}

/* ---- one that is settled --------------------------------------------------------------------- */

static dk_status
too_late(const struct connection *c, struct why *why)
{
  return why_set(why, DK_UNAVAILABLE,
                 "cannot connect to %s: no answer within %lldms; check that it runs and can be "
                 "reached, or increase connect_timeout",
                 c->settings->shown, (long long)c->limit_ms);
}

/* Each of several hosts has the whole limit, as in libpq. */
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
      until = time_add(c->host->now(c->host), c->limit_ms);
    tried = PQhost(c->pg);
    uint32_t events = next == PGRES_POLLING_READING ? DK_WAIT_READ : DK_WAIT_WRITE;
    dk_status status = connection_wait(c, call, events, until);
    if (status == DK_NOTHING) {
      PGconn *before = c->pg;
      if (!connection_go_on(c->settings, c->servers, &c->pg))
        return too_late(c, why);
      PQsetNoticeReceiver(c->pg, note, c);
      c->has_passed_over = true;
      late = c->pg == before ? tried : NULL;
      tried = NULL;
      next = PGRES_POLLING_WRITING; /* as after a start; a socket that was shut is ready */
    } else if (status != DK_OK) {
      return connection_ended_by_host(c, why, status, "connect");
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

/* Every server reports both when it accepts a connection. */
static dk_status
check_version(const struct connection *c, struct why *why)
{
  int version = PQserverVersion(c->pg);
  const char *name = PQparameterStatus(c->pg, "server_version");
  const char *encoding = PQparameterStatus(c->pg, "server_encoding");

  if (version == 0 || !name || !encoding)
    return why_set(why, DK_NO_MEMORY,
                   "connect: libpq has no version or no encoding of %s, which it forgets if memory "
                   "runs out; give the process more memory, and try again", c->settings->shown);
  if (version < MIN_SERVER_VERSION)
    return why_set(why, DK_REFUSED, "%s has version %s; expected %d or later", c->settings->shown,
                   name, MIN_SERVER_VERSION / 10000);
  if (strcmp(encoding, "UTF8") != 0)
    return why_set(why, DK_REFUSED,
                   "the database \"%s\" of %s has the encoding %s; expected UTF8; create one with "
                   "CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",
                   PQdb(c->pg), c->settings->shown, encoding);
  return DK_OK;
}

static dk_status
connect_once(struct connection *c, struct dk_call *call, struct why *why)
{
  TRY(finish_connecting(c, call, why));
  TRY(check_version(c, why));
  return session_settle(c, call, why);
}

/* Tries the hosts until one of them has the right server. */
static dk_status
connect_to_one(struct connection *c, struct dk_call *call, struct why *why)
{
  dk_status status = connect_once(c, call, why);

  while (status != DK_OK && c->is_refused &&
         connection_pass_over(c->settings, c->servers, &c->pg, c->host, why)) {
    PQsetNoticeReceiver(c->pg, note, c);
    c->has_passed_over = true;
    status = connect_once(c, call, why);
  }
  if (status == DK_OK)
    servers_prefer(c->servers, c->pg, c->has_passed_over);
  return status;
}

dk_status
connection_open(struct connection *c, struct dk_call *call, struct why *why)
{
  if (c->host->cancelled(call))
    return connection_ended_by_host(c, why, DK_CALL_CANCELLED, "connect");
  c->has_ended = c->is_doubtful = c->is_bloated = c->is_own = c->is_settled = false;
  c->has_passed_over = c->is_refused = false;
  c->n_renewed = 0;
  c->pg = connection_start(c->settings, c->servers, &c->limit_ms);
  if (!c->pg)
    return why_set(why, DK_NO_MEMORY, "connect: out of memory");
  PQsetNoticeReceiver(c->pg, note, c);
  dk_status status = connect_to_one(c, call, why);
  if (status != DK_OK)
    connection_close(c);
  return status;
}

/* Connects to one after the other, each behind those that were tried, until one is on a higher
 * timeline.  That one is the first to be tried from now on; or the one that was found, if an order
 * is in force. */
void
connection_try_others(const struct connection *found, struct dk_call *call)
{
  struct connection other = {.host = found->host,
                             .settings = found->settings,
                             .servers = found->servers,
                             .beside = found->beside,
                             .limit_ms = found->settings->host_ms};
  dk_status status = DK_UNAVAILABLE;
  struct hosts hosts;
  struct why why;

  bool are_more = hosts_after(found->pg, &hosts);
  while (are_more) {
    connection_close(&other);
    other.pg = connect_start(found->settings, &hosts);
    hosts_done(&hosts);
    if (!other.pg)
      break;
    PQsetNoticeReceiver(other.pg, note, &other);
    status = connect_once(&other, call, &why);
    are_more = (status == DK_UNAVAILABLE || status == DK_REFUSED) && hosts_after(other.pg, &hosts);
  }
  bool is_superseded =
    status == DK_OK && servers_have_superseded(found->servers, &found->identity);
  servers_prefer(found->servers, is_superseded ? other.pg : found->pg, is_superseded);
  connection_close(&other);
}

/* If the server does not accept the farewell, it is not sent: the socket does not block. */
void
connection_close(struct connection *c)
{
  PQfinish(c->pg);
  c->pg = NULL;
}

/* Data behind the last answer (a notice, a changed setting or the end) may be in the socket, or in
 * libpq, which has read it with that answer. */
bool
connection_is_alive(struct connection *c)
{
  enum { MOST_LOOKS = 10 };
  struct pollfd fd = {.fd = c->pg ? PQsocket(c->pg) : -1, .events = POLLIN};
  PGnotify *unexpected;

  if (servers_have_superseded(c->servers, &c->identity))
    return false;
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
