/* SPDX-License-Identifier: Apache-2.0 */
/* The bell's thread, with a connection of its own: it hears the notifications of other handles, and
 * notifies them.
 *
 * A notification is only a hint: it may be missed, and then a waiter looks when its patience ends.
 * So an error of this connection is no operation's error.  The thread waits for events only, except
 * in libpq's lookup of a name, which nothing can interrupt.  When a waiter pokes it, it connects,
 * asks again, and drops requests that take too long.  Each waiter with a short patience pokes it;
 * without waiters nothing is missed.  A handle that is being closed has a moment for its last
 * notifications, so that a command that stores one message and ends is also heard.
 *
 * To listen: register in the table of listeners; LISTEN; wait until all transactions that wrote
 * without knowing of it have ended; ring once, for what they wrote; from then on patience is long.
 * Behind a pooler that lends sessions out there is no listening, and patience stays short. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "providers/pg/bell.h"

enum { TELLS_TO_FORGET = 100 }; /* at the first and each hundredth dead listeners are forgotten */

/* ---- one request after the other ------------------------------------------------------------- */

/* The socket first: there is no wait for a server that does not answer. */
void
bell_drop(struct bell *bell)
{
  if (bell->pg && PQsocket(bell->pg) >= 0)
    shutdown(PQsocket(bell->pg), SHUT_RDWR);
  PQfinish(bell->pg);
  free(bell->writers);
  bell->pg = NULL;
  bell->writers = NULL;
  bell->under_way = NO_WORK;
  bell->is_identified = bell->is_deaf = bell->is_registered = bell->listens = false;
  mutex_lock(&bell->mutex);
  bell->identity = (struct identity){0};
  bell->to_tell |= bell->telling;
  mutex_unlock(&bell->mutex);
  bell->telling = 0;
  bell_set_hears(bell, false);
}

/* Logs it once, until the connection works again: it is no operation's error, and each try repeats
 * it. */
static void
drop_and_say(struct bell *bell, const struct why *why)
{
  const struct dk_host *host = bell->h->host;
  char line[sizeof why->text + 100];

  int length = snprintf(line, sizeof line,
                        "notifications of other handles cannot be received, so waiting fetches "
                        "poll once a second: %s",
                        why->text);
  if (!bell->has_failed && length > 0 && (size_t)length < sizeof line)
    host->log(host, 1, (struct dk_bytes){line, (size_t)length});
  bell->has_failed = true;
  bell_drop(bell);
}

static void
drop_lost(struct bell *bell)
{
  struct why why;

  why_connection(&why, bell->pg, SENT, false, "LISTEN");
  drop_and_say(bell, &why);
}

static void
drop_unconnected(struct bell *bell)
{
  struct why why;

  why_connect(&why, bell->pg, bell->h->settings.shown);
  drop_and_say(bell, &why);
}

static void
listener_begin(struct bell *bell, enum work work)
{
  assert(work != NO_WORK);
  bell->under_way = work;
  bell->since = real_ms();
  bell->events = POLLIN | POLLOUT;
}

static void
listener_ask(struct bell *bell, enum work work, const char *function, int n,
             const char *const *values)
{
  static const char *const places[] = {"", "$1", "$1,$2", "$1,$2,$3"};
  char sql[400];

  assert(n >= 0 && (size_t)n < sizeof places / sizeof places[0]);
  snprintf(sql, sizeof sql, "SELECT * FROM %s.%s(%s)", bell->h->settings.quoted, function,
           places[n]);
  listener_begin(bell, work);
  if (!PQsendQueryParams(bell->pg, sql, n, NULL, values, NULL, NULL, 0))
    drop_lost(bell);
}

/* One for each session: an old one may hold its lock for a while yet. */
static void
begin_registration(struct bell *bell)
{
  char number[24], pid[16];
  int64_t random;

  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
    random = real_ms() ^ (int64_t)(intptr_t)bell;
  random = (random & INT64_MAX) | 1;
  snprintf(number, sizeof number, "%lld", (long long)random);
  snprintf(pid, sizeof pid, "%d", PQbackendPID(bell->pg));
  mutex_lock(&bell->mutex);
  bell->number = random;
  mutex_unlock(&bell->mutex);
  listener_ask(bell, REGISTER, "listen", 2, (const char *const[]){number, pid});
}

static void
begin_identifying(struct bell *bell)
{
  listener_begin(bell, IDENTIFY);
  if (!PQsendQuery(bell->pg, "SELECT " SESSION_IDENTITY))
    drop_lost(bell);
}

static void
write_channel(const struct bell *bell, char room[40])
{
  snprintf(room, 40, "durakit_%llu", (unsigned long long)bell->h->store.number);
}

static void
begin_listening(struct bell *bell)
{
  char channel[40], sql[60];

  write_channel(bell, channel);
  snprintf(sql, sizeof sql, "LISTEN %s", channel);
  listener_begin(bell, LISTEN);
  if (!PQsendQuery(bell->pg, sql))
    drop_lost(bell);
}

static void
begin_telling(struct bell *bell, uint32_t rings)
{
  char channel[40], text[12];

  write_channel(bell, channel);
  snprintf(text, sizeof text, "%u", (unsigned)rings);
  assert(rings != 0);
  bell->telling = rings;
  bool forgets = bell->tells++ % TELLS_TO_FORGET == 0;
  listener_ask(bell, TELL, "tell", 3, (const char *const[]){channel, text, forgets ? "t" : "f"});
}

/* Chooses the next work that is possible now. */
static enum work
next_work(struct bell *bell, uint32_t *ret_rings)
{
  mutex_lock(&bell->mutex);
  bool is_poked = bell->is_poked, hears = bell->hears;
  bool wants_to_hear = bell->wants_to_hear && !bell->is_deaf && !bell->is_stopping;
  enum work work = NO_WORK;
  *ret_rings = bell->to_tell;

  bell->is_poked = false;
  if (!bell->pg)
    work = is_poked ? CONNECT : NO_WORK;
  else if (!bell->is_identified)
    work = IDENTIFY;
  else if (*ret_rings)
    work = TELL;
  else if (wants_to_hear && !bell->is_registered)
    work = REGISTER;
  else if (wants_to_hear && !bell->listens)
    work = LISTEN;
  else if (wants_to_hear && !hears && (is_poked || !bell->writers))
    work = SETTLE;
  if (work == TELL)
    bell->to_tell = 0;
  mutex_unlock(&bell->mutex);
  return work;
}

static void
begin_next(struct bell *bell)
{
  const struct settings *settings = &bell->h->settings;
  uint32_t rings;

  switch (next_work(bell, &rings)) {
  case CONNECT:
    bell->pg = connection_start(settings, bell->h->servers, &bell->limit_ms);
    listener_begin(bell, CONNECT);
    if (PQstatus(bell->pg) == CONNECTION_BAD)
      drop_unconnected(bell);
    break;
  case IDENTIFY:
    begin_identifying(bell);
    break;
  case REGISTER:
    begin_registration(bell);
    break;
  case LISTEN:
    begin_listening(bell);
    break;
  case SETTLE:
    listener_ask(bell, SETTLE, "writers", 2,
                 (const char *const[]){settings->schema, bell->writers});
    break;
  case TELL:
    begin_telling(bell, rings);
    break;
  case NO_WORK:
    bell->events = POLLIN;
    break;
  }
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool
answer_is_true(const PGresult *r)
{
  return PQntuples(r) == 1 && PQnfields(r) == 1 && strcmp(PQgetvalue(r, 0, 0), "t") == 0;
}

static void
say_deaf(struct bell *bell)
{
  static const char line[] =
    "a pooler lends out the server's sessions, so no notification can be received: waiting "
    "fetches poll once a second";
  const struct dk_host *host = bell->h->host;

  if (!bell->has_said_deaf)
    host->log(host, 1, (struct dk_bytes){line, sizeof line - 1});
  bell->has_said_deaf = true;
}

/* The transactions that wrote without knowing of this listener, and still run. */
static void
note_writers(struct bell *bell, const PGresult *r)
{
  bool is_row = PQntuples(r) == 1 && PQnfields(r) == 1;

  free(bell->writers);
  bell->writers = strdup(is_row ? PQgetvalue(r, 0, 0) : "");
  if (bell->writers && is_row && !*bell->writers)
    bell_set_hears(bell, true);
}

static void
note_identity(struct bell *bell, const struct identity *identity)
{
  mutex_lock(&bell->mutex);
  bell->identity = *identity;
  mutex_unlock(&bell->mutex);
}

/* Runs before anything is stored there. */
static dk_status
take_identity(struct bell *bell, const PGresult *r, struct why *why)
{
  struct identity identity = {0};

  if (PQntuples(r) == 1 && PQnfields(r) == 2)
    identity = identity_of(field_bytes(r, 0, 0), field_bytes(r, 0, 1));
  note_identity(bell, &identity);
  TRY(servers_judge(bell->h->servers, &identity, bell->pg, why));
  bell->is_identified = true;
  return DK_OK;
}

/* For a server that does not give its identity. */
static dk_status
do_without_identity(struct bell *bell, struct why *why)
{
  const struct identity identity = {.is_withheld = true};
  const struct why refusal = *why;

  note_identity(bell, &identity);
  TRY(servers_judge_withheld(bell->h->servers, &refusal, bell->pg, why));
  bell->is_identified = true;
  return DK_OK;
}

/* Not DK_OK: the server is not the right one. */
static dk_status
listener_take_answer(struct bell *bell, const PGresult *r, struct why *why)
{
  enum work done = bell->under_way;

  if (done == IDENTIFY)
    TRY(take_identity(bell, r, why));
  bell->has_failed = false;
  if (done == REGISTER) {
    bell->is_registered = answer_is_true(r);
    bell->is_deaf = !bell->is_registered;
    if (bell->is_deaf)
      say_deaf(bell);
  } else if (done == LISTEN) {
    bell->listens = true;
  } else if (done == SETTLE) {
    note_writers(bell, r);
  } else if (done == TELL) {
    bell->telling = 0;
  }
  return DK_OK;
}

static void
try_next_host(struct bell *bell, const struct why *why)
{
  const struct handle *h = bell->h;

  if (connection_pass_over(&h->settings, h->servers, &bell->pg, h->host, why))
    listener_begin(bell, CONNECT);
  else
    drop_and_say(bell, why);
}

/* All of it has come; so nothing here waits. */
static void
take_results(struct bell *bell)
{
  bool is_answer = true, is_well = true;
  struct why why;
  PGresult *r;

  while (bell->pg && !PQisBusy(bell->pg) && bell->under_way != NO_WORK) {
    r = PQgetResult(bell->pg);
    if (!r) {
      bell->under_way = NO_WORK;
      break;
    }
    ExecStatusType status = PQresultStatus(r);
    is_answer = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    dk_status error = is_answer ? DK_OK : why_result(&why, r, false, "LISTEN");
    if (bell->under_way == IDENTIFY && session_withholds(error)) {
      is_answer = true;
      is_well = do_without_identity(bell, &why) == DK_OK;
    } else {
      is_well = is_answer && listener_take_answer(bell, r, &why) == DK_OK;
    }
    PQclear(r);
    if (is_well)
      continue;
    if (is_answer)
      try_next_host(bell, &why);
    else
      drop_and_say(bell, &why);
    return;
  }
}

static void
take_notifications(struct bell *bell)
{
  PGnotify *n;

  while (bell->pg && (n = PQnotifies(bell->pg)) != NULL) {
    uint32_t rings = (uint32_t)strtoul(n->extra, NULL, 10);
    bool is_own = n->be_pid == PQbackendPID(bell->pg);
    PQfreemem(n);
    if (is_own)
      continue;
    mutex_lock(&bell->mutex);
    bell_ring_groups(bell, rings);
    mutex_unlock(&bell->mutex);
  }
}

static void
go_on_connecting(struct bell *bell)
{
  switch (PQconnectPoll(bell->pg)) {
  case PGRES_POLLING_OK:
    bell->under_way = NO_WORK;
    if (PQsetnonblocking(bell->pg, 1) != 0)
      drop_lost(bell);
    break;
  case PGRES_POLLING_READING:
    bell->events = POLLIN;
    break;
  case PGRES_POLLING_WRITING:
    bell->events = POLLOUT;
    break;
  default:
    drop_unconnected(bell);
    break;
  }
}

static void
go_on_talking(struct bell *bell)
{
  int flushed = PQflush(bell->pg);

  bell->events = POLLIN;
  if (flushed > 0)
    bell->events |= POLLOUT;
  if (flushed < 0 || !connection_read(bell->pg)) {
    drop_lost(bell);
    return;
  }
  take_results(bell);
  take_notifications(bell);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Checks the time limits when a waiter pokes. */
static void
drop_what_is_late(struct bell *bell)
{
  const struct settings *settings = &bell->h->settings;
  int64_t limit = bell->under_way == CONNECT ? bell->limit_ms : settings->answer_ms;

  if (!bell->pg || bell->under_way == NO_WORK || real_ms() - bell->since <= limit)
    return;
  if (bell->under_way == CONNECT && connection_go_on(settings, bell->h->servers, &bell->pg))
    listener_begin(bell, CONNECT);
  else
    drop_lost(bell);
}

/* True: no notification is left to send, or it cannot be sent, or not in time. */
static bool
has_ended(struct bell *bell)
{
  mutex_lock(&bell->mutex);
  bool is_owed = (bell->to_tell || bell->telling) && (bell->pg || bell->is_poked);
  bool has = bell->is_stopping && (!is_owed || real_ms() >= bell->end_by);
  mutex_unlock(&bell->mutex);
  return has;
}

/* How long the thread may wait: without limit, until it is woken, except at the end. */
static int
time_left(struct bell *bell)
{
  mutex_lock(&bell->mutex);
  int64_t left = bell->is_stopping ? bell->end_by - real_ms() : -1;
  if (bell->is_stopping && left < 0)
    left = 0;
  mutex_unlock(&bell->mutex);
  return (int)left;
}

/* Waits, and gives whether there is something to do on the connection. */
static bool
wait_for_event(struct bell *bell)
{
  struct pollfd fds[] = {
    {.fd = bell->wake_fd, .events = POLLIN},
    {.fd = bell->pg ? PQsocket(bell->pg) : -1, .events = bell->events},
  };

  while (poll(fds, 2, time_left(bell)) < 0 && errno == EINTR)
    continue;
  if (fds[0].revents)
    bell_read_out(bell->wake_fd);
  return fds[1].revents != 0;
}

void *
bell_listen(void *argument)
{
  struct bell *bell = argument;

  while (!has_ended(bell)) {
    if (bell->pg && servers_have_superseded(bell->h->servers, &bell->identity))
      bell_drop(bell); /* nothing can be sent or heard there */
    if (bell->under_way == NO_WORK)
      begin_next(bell);
    if (!wait_for_event(bell))
      drop_what_is_late(bell);
    else if (bell->under_way == CONNECT)
      go_on_connecting(bell);
    else
      go_on_talking(bell);
  }
  return NULL;
}
