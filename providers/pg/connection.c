/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and their answers on a connection: see connection.h; connect.c has made it.
 *
 * What a lost answer means.  The server commits a request when it has read the whole of it, to the
 * last byte (Sync, or the end of a script).  So as long as libpq has some of it left, nothing can
 * have been done; from then until the server reports that it is ready for the next request, the
 * outcome is unknown.  The rows of an answer come before its commit: they are no proof of it.
 *
 * Invariants; the asserts name them by number:
 *
 *  1. A connection has one request under way at most, from begin to the end of exchange.
 *  2. The stages of a request follow one another: PARTLY_SENT, ALL_SENT, ANSWERED.
 *  3. A request that is not ANSWERED leaves no connection: later data on it would be taken for the
 *     answer to the next request.
 *  4. After the host has cancelled a request, it is waited for only if it writes and is ALL_SENT.
 *  5. The first error stays as the result; without an error the last result does.
 *  6. Only a request that writes, and was wholly sent, can be DK_OUTCOME_UNKNOWN for lack of an
 *     answer.
 *  7. Whether a server was superseded is asked only where there are servers to ask.
 *  8. No pipeline is left open behind a request. */
#include "providers/pg/connection.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

/* Past this libpq's buffers are worth a new connection: it never makes them smaller. */
enum { LARGE_TEXT = 16 << 20 };

/* ---- a request and its answer ---------------------------------------------------------------- */

/* While something of a request is under way.  After this no farewell is tried. */
static void
drop(struct connection *c)
{
  if (c->pg && PQsocket(c->pg) >= 0)
    shutdown(PQsocket(c->pg), SHUT_RDWR);
  connection_close(c);
}

enum stage { PARTLY_SENT, ALL_SENT, ANSWERED };
enum { TLS_LOOK_MS = 50, LAST_MOMENT_MS = 1000 };

struct exchange {
  struct connection *c;
  struct dk_call *call;
  const char *what;
  bool writes;
  int64_t answer_ms;      /* INT64_MAX: for as long as the host waits */
  int64_t until, look_at; /* when to give up; when to probe the server (silence.c) */
  bool was_silent, is_superseded;
  enum stage stage;
  struct statement statement;
  bool is_pipeline;
  int64_t taken_back_at;  /* real time; 0: it was not cancelled */
  dk_status wait;         /* what ended the waiting; DK_OK: nothing yet */
  PGresult *result;       /* the first error, or else the last */
};

/* OpenSSL may keep up to half a record that libpq had no room for, and no descriptor shows it.  So
 * there is a second look, which certainly has room.  The short waits below see data that comes
 * between the two. */
bool
connection_read(PGconn *pg)
{
  return PQconsumeInput(pg) && (!PQsslInUse(pg) || PQconsumeInput(pg));
}

/* CALL-1, CALL-4: the host has cancelled the call, and the request is done or being done.  The wait
 * for the answer lasts only a moment, in real time: a turn that the server has handed out is better
 * taken than left to its lease.  host->wait would no longer wait. */
static dk_status
wait_a_moment(struct exchange *x)
{
  struct pollfd fd = {.fd = PQsocket(x->c->pg), .events = POLLIN};
  int64_t left;

  assert(x->writes && x->stage == ALL_SENT); /* 4 */
  if (x->taken_back_at == 0)
    x->taken_back_at = real_ms();
  while ((left = x->taken_back_at + LAST_MOMENT_MS - real_ms()) > 0) {
    int n = poll(&fd, 1, PQsslInUse(x->c->pg) && left > TLS_LOOK_MS ? TLS_LOOK_MS : (int)left);
    if (n > 0 || (n == 0 && PQsslInUse(x->c->pg)))
      return DK_OK;
    if (n < 0 && errno != EINTR)
      break;
  }
  return DK_CALL_CANCELLED;
}

/* The limit counts from the last progress: a large answer, or a slow network, needs time, and is
 * not given up while data comes. */
static void
note_progress(struct exchange *x)
{
  const struct dk_host *host = x->c->host;
  int64_t now = host->now(host);

  x->until = time_add(now, x->answer_ms);
  x->look_at = x->c->servers ? time_add(now, x->c->settings->silence_ms) : INT64_MAX;
}

/* A wait is of no use after another server has taken the place of this one. */
static void
look_after(struct exchange *x)
{
  const struct dk_host *host = x->c->host;
  struct servers *servers = x->c->servers;

  assert(servers); /* 7: else there is no look_at */
  x->was_silent = true;
  x->wait = DK_OK;
  if (!servers_have_superseded(servers, &x->c->identity))
    silence_probe(x->c, x->call, x->what);
  x->look_at = time_add(host->now(host), x->c->settings->silence_ms / 2);
  x->is_superseded = servers_have_superseded(servers, &x->c->identity);
  if (x->is_superseded)
    x->wait = DK_UNAVAILABLE;
  else if (host->cancelled(x->call))
    x->wait = DK_CALL_CANCELLED;
}

static void
wait_more(struct exchange *x, uint32_t events)
{
  const struct dk_host *host = x->c->host;
  int64_t until = x->look_at < x->until ? x->look_at : x->until;
  int64_t soon = time_add(host->now(host), TLS_LOOK_MS);
  bool is_short = PQsslInUse(x->c->pg) && soon < until;

  assert(x->wait == DK_OK && x->taken_back_at == 0); /* 4 */
  x->wait = connection_wait(x->c, x->call, events, is_short ? soon : until);
  if (x->wait == DK_OK)
    note_progress(x);
  else if (x->wait == DK_NOTHING && is_short)
    x->wait = DK_OK;
  else if (x->wait == DK_NOTHING && until < x->until)
    look_after(x);
}

/* False: a further wait is of no use.  Data that has come meanwhile is read nevertheless. */
static bool
wait_and_read(struct exchange *x)
{
  if (x->wait != DK_OK)
    return false;
  if (x->taken_back_at == 0)
    wait_more(x, DK_WAIT_READ);
  if (x->writes && (x->wait == DK_CALL_CANCELLED || x->taken_back_at != 0))
    x->wait = wait_a_moment(x);
  return connection_read(x->c->pg);
}

/* While the server sends, it might read nothing: so both directions are waited for.  If the wait
 * was ended, some of the request certainly is unsent, and it is not touched again. */
static bool
connection_send_all(struct exchange *x)
{
  int left;
  bool is_read = true;

  assert(x->stage == PARTLY_SENT && !x->result); /* 2 */
  while (is_read && (left = PQflush(x->c->pg)) > 0) {
    wait_more(x, DK_WAIT_READ | DK_WAIT_WRITE);
    if (x->wait != DK_OK)
      return false;
    is_read = connection_read(x->c->pg); /* which also sends */
  }
  x->stage = ALL_SENT;
  return is_read && left == 0;
}

/* The end of a pipeline, or a statement that was skipped after an error in it. */
static bool
is_of_pipeline(ExecStatusType status)
{
#ifdef LIBPQ_HAS_PIPELINING
  return status == PGRES_PIPELINE_SYNC || status == PGRES_PIPELINE_ABORTED;
#else
  (void)status;
  return false;
#endif
}

static bool
is_error(const PGresult *result)
{
  ExecStatusType status = PQresultStatus(result);

  return status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK &&
         status != PGRES_EMPTY_QUERY && !is_of_pipeline(status);
}

/* After it the server sends nothing of use; a COPY is no answer to any request of ours. */
static bool
is_last(const struct exchange *x, const PGresult *result)
{
  return connection_error_is_fatal(result) || PQstatus(x->c->pg) != CONNECTION_OK ||
         (is_error(result) && PQresultStatus(result) != PGRES_FATAL_ERROR);
}

static void
keep(struct exchange *x, PGresult *result)
{
  if (x->statement.way == TO_BE_PREPARED && !x->result && !is_error(result))
    session_note_prepared(x->c, &x->statement); /* even if its use fails: it stays */
  if ((x->result && is_error(x->result)) || is_of_pipeline(PQresultStatus(result))) {
    PQclear(result);
    return;
  }
  assert(!x->result || !is_error(x->result)); /* 5 */
  PQclear(x->result);
  x->result = result;
}

#ifdef LIBPQ_HAS_PIPELINING
static bool
begin_pipeline(struct exchange *x)
{
  assert(!x->is_pipeline); /* 1, 8 */
  x->is_pipeline = PQenterPipelineMode(x->c->pg) == 1;
  return x->is_pipeline;
}
#endif

static bool
end_pipeline(struct exchange *x)
{
#ifdef LIBPQ_HAS_PIPELINING
  return !x->is_pipeline || PQexitPipelineMode(x->c->pg) == 1;
#else
  return !x->is_pipeline;
#endif
}

/* The end of the answer: for one statement the first NULL, for a pipeline the result for its end.
 * In a pipeline there is one NULL behind each statement, and never two. */
static bool
is_end(const struct exchange *x, const PGresult *result, int n_nothings)
{
#ifdef LIBPQ_HAS_PIPELINING
  if (x->is_pipeline && result)
    return PQresultStatus(result) == PGRES_PIPELINE_SYNC;
#endif
  return !result && n_nothings == (x->is_pipeline ? 2 : 1);
}

/* Waits until the server is ready for the next request, or never will be. */
static bool
receive_all(struct exchange *x)
{
  bool is_over = false, is_useless = false;

  assert(x->stage == ALL_SENT); /* 2 */
  for (int n_nothings = 0; !is_over && !is_useless;) {
    while (PQisBusy(x->c->pg))
      if (!wait_and_read(x))
        return false;
    PGresult *result = PQgetResult(x->c->pg);
    n_nothings = result ? 0 : n_nothings + 1;
    is_over = is_end(x, result, n_nothings);
    is_useless = result && is_last(x, result);
    if (result)
      keep(x, result);
  }
  if (is_useless || !end_pipeline(x))
    return false;
  x->stage = ANSWERED;
  return PQstatus(x->c->pg) == CONNECTION_OK;
}

static const char unknown[] = "the outcome is unknown";

static void
give_up_superseded(const struct exchange *x, bool is_unknown, struct why *why)
{
  char text[400];

  servers_tell(x->c->servers, &x->c->identity, text, sizeof text);
  why_set(why, is_unknown ? DK_OUTCOME_UNKNOWN : DK_UNAVAILABLE, "%s: %s; %s", x->what, text,
          is_unknown ? unknown : "nothing was done; try again");
}

static void
give_up_silent(const struct exchange *x, bool is_unknown, struct why *why)
{
  char wait[300];

  servers_tell_wait(x->c->servers, wait, sizeof wait);
  why_set(why, is_unknown ? DK_OUTCOME_UNKNOWN : DK_UNAVAILABLE,
          "%s: no answer from %s within %lldms%s%s; %s; %s", x->what, x->c->settings->shown,
          (long long)x->answer_ms, *wait ? ": " : "", wait,
          is_unknown ? unknown : "nothing was done",
          x->answer_ms < x->c->settings->answer_ms
            ? "by then the lease that it asks for would have ended; check that the server runs"
            : "check that the server runs, or increase answer_timeout");
}

/* There will be no answer; the connection is closed. */
static dk_status
connection_give_up(struct exchange *x, struct why *why)
{
  bool is_undone = x->stage == PARTLY_SENT;
  bool is_unknown = x->writes && !is_undone;

  assert(!is_unknown || (x->writes && x->stage != PARTLY_SENT)); /* 6 */
  if (x->result && is_error(x->result))
    why_result(why, x->result, is_unknown, x->what);
  else if (x->is_superseded)
    give_up_superseded(x, is_unknown, why);
  else if (x->wait == DK_CALL_CANCELLED && is_unknown)
    why_set(why, DK_OUTCOME_UNKNOWN, "%s: the host cancelled it before the server answered; %s",
            x->what, unknown);
  else if (x->wait == DK_NOTHING)
    give_up_silent(x, is_unknown, why);
  else if (x->wait != DK_OK)
    connection_ended_by_host(x->c, why, is_unknown ? DK_OUTCOME_UNKNOWN : x->wait, x->what);
  else
    why_connection(why, x->c->pg, is_undone ? NOTHING_SENT : SENT, x->writes, x->what);
  drop(x->c);
  return why->status;
}

static dk_status
connection_judge(struct exchange *x, struct why *why)
{
  assert(x->stage == ANSWERED); /* 2 */
  if (!x->result)
    return why_set(why, DK_INTERNAL, "%s: the server returned nothing", x->what);
  if (is_error(x->result)) {
    why_result(why, x->result, x->writes, x->what);
    if (session_was_changed(&x->statement, why))
      x->c->is_settled = false;
    if (why_ends_connection(why->sqlstate))
      drop(x->c);
    return why->status;
  }
  /* The data on a superseded server is about to be discarded. */
  if (x->writes && servers_have_superseded(x->c->servers, &x->c->identity)) {
    give_up_superseded(x, true, why);
    drop(x->c);
    return why->status;
  }
  if (x->c->is_doubtful && x->writes)
    return why_set(why, DK_OUTCOME_UNKNOWN,
                   "%s: the server did not wait for its standby (see the warning in the log), "
                   "so a failover may lose the commit", x->what);
  return DK_OK;
}

/* Call it after a request was given to libpq.  Frees what is not handed on. */
static dk_status
exchange(struct exchange *x, PGresult **ret, struct why *why)
{
  bool is_whole = connection_send_all(x) && receive_all(x);
  dk_status status = is_whole ? connection_judge(x, why) : connection_give_up(x, why);

  assert(is_whole ? x->stage == ANSWERED : !x->c->pg); /* 3 */
  if (is_whole && x->was_silent)
    servers_note_wait(x->c->servers, x->what, ""); /* the wait has ended */
  if (x->c->pg && x->result && PQresultMemorySize(x->result) > LARGE_TEXT)
    x->c->is_bloated = true;
  if (status == DK_OK && ret)
    *ret = x->result;
  else
    PQclear(x->result);
  return status;
}

static dk_status
connection_begin(struct exchange *x, struct why *why)
{
  const struct dk_host *host = x->c->host;

  if (!x->c->pg)
    return why_set(why, DK_UNAVAILABLE, "%s: there is no connection", x->what);
  if (host->cancelled(x->call))
    return connection_ended_by_host(x->c, why, DK_CALL_CANCELLED, x->what);
  /* Without a socket the host cannot wait, and would report that too late. */
  if (host->cancel_fd(x->call) < 0)
    return why_set(why, DK_UNAVAILABLE, "%s: no descriptor is left (ulimit -n)", x->what);
  assert(x->stage == PARTLY_SENT && x->wait == DK_OK && !x->result); /* 1 */
  note_progress(x);
  x->c->is_doubtful = false;
  return DK_OK;
}

/* libpq does not have all of it: the last part is missing. */
static dk_status
refuse_send(struct exchange *x, struct why *why)
{
  why_connection(why, x->c->pg, NOTHING_SENT, x->writes, x->what);
  drop(x->c);
  return why->status;
}

static dk_status
check_values(const struct request *request, struct why *why)
{
  dk_status status = request->values->status;

  if (status == DK_OK)
    return DK_OK;
  return why_set(why, status, "%s: %s", request->what,
                 status == DK_NO_MEMORY   ? "out of memory"
                 : status == DK_TOO_LARGE ? "larger than a request to the server can be"
                                          : "too many values");
}

static bool
is_large(const struct values *v)
{
  size_t size = 0;

  assert(v->n >= 0 && v->n <= MAX_VALUES);
  for (int i = 0; i < v->n && size <= LARGE_TEXT; i++)
    size += v->bytes[i] ? (size_t)v->lengths[i] : 0;
  return size > LARGE_TEXT;
}

static bool
give_at_once(struct exchange *x, const struct request *request)
{
  const struct values *v = request->values;

  return PQsendQueryParams(x->c->pg, request->sql, v->n, v->types, v->bytes, v->lengths, v->formats,
                           1);
}

static bool
give_by_name(struct exchange *x, const struct request *request)
{
  const struct values *v = request->values;

  return PQsendQueryPrepared(x->c->pg, x->statement.name, v->n, v->bytes, v->lengths, v->formats,
                             1);
}

#ifdef LIBPQ_HAS_PIPELINING
/* One round trip, one transaction: after an error in the first statement the second is not done. */
static bool
give_after_preparing(struct exchange *x, const struct request *request)
{
  const struct values *v = request->values;

  return begin_pipeline(x) &&
         PQsendPrepare(x->c->pg, x->statement.name, request->sql, v->n, v->types) &&
         give_by_name(x, request) && PQpipelineSync(x->c->pg);
}

/* For the transaction, and so for this pipeline.  SET LOCAL would write a warning (25P01) to the
 * server's log.  A list of rows with the values is a query that is not itself compiled. */
static bool
give_uncompiled(struct exchange *x, const struct request *request)
{
  static const char sql[] = "VALUES (pg_catalog.set_config('statement_timeout', '0', true)),"
                            " (pg_catalog.set_config('jit', 'off', true))";

  return begin_pipeline(x) && PQsendQueryParams(x->c->pg, sql, 0, NULL, NULL, NULL, NULL, 1) &&
         give_at_once(x, request);
}

static bool
give_after_settling(struct exchange *x, const struct request *request)
{
  struct values values;
  char room[24];
  const struct request settling = session_settling(x->c, false, room, &values);
  bool is_given = give_uncompiled(x, &settling);

  values_done(&values);
  return is_given && give_at_once(x, request) && PQpipelineSync(x->c->pg);
}
#endif

/* To libpq. */
static bool
give(struct exchange *x, const struct request *request)
{
  switch (x->statement.way) {
  case BY_NAME:
    return give_by_name(x, request);
#ifdef LIBPQ_HAS_PIPELINING
  case TO_BE_PREPARED:
    return give_after_preparing(x, request);
  case AFTER_SETTLING:
    return give_after_settling(x, request);
  case UNCOMPILED:
    return give_uncompiled(x, request) && PQpipelineSync(x->c->pg);
#endif
  default:
    return give_at_once(x, request);
  }
}

dk_status
connection_run(struct connection *c, struct dk_call *call, const struct request *request,
               PGresult **ret, struct why *why)
{
  struct exchange x = {.c = c, .call = call, .what = request->what, .writes = request->writes};

  x.answer_ms = request->answer_ms > 0 ? request->answer_ms : c->settings->answer_ms;
  TRY(check_values(request, why));
  TRY(connection_begin(&x, why));
  x.statement = session_statement(c, request);
  if (!give(&x, request))
    return refuse_send(&x, why);
  c->is_bloated = c->is_bloated || is_large(request->values);
  return exchange(&x, ret, why);
}

static dk_status
run_script(struct exchange *x, const char *sql, struct why *why)
{
  TRY(connection_begin(x, why));
  if (!PQsendQuery(x->c->pg, sql))
    return refuse_send(x, why);
  return exchange(x, NULL, why);
}

dk_status
connection_script(struct connection *c, struct dk_call *call, const char *what, const char *sql,
                  struct why *why)
{
  struct exchange x = {
    .c = c, .call = call, .what = what, .writes = true, .answer_ms = INT64_MAX};

  return run_script(&x, sql, why);
}

/* ---- a session that is not as it was --------------------------------------------------------- */

bool
connection_is_changed(const struct connection *c)
{
  return c->pg && !c->is_settled;
}

dk_status
connection_renew(struct connection *c, struct dk_call *call, struct why *why)
{
  struct exchange x = {
    .c = c, .call = call, .what = "connect", .answer_ms = c->settings->answer_ms};

  c->n_renewed++;
  TRY(run_script(&x, "DISCARD ALL", why));
  return session_settle(c, call, why);
}
