/* SPDX-License-Identifier: Apache-2.0 */
/* How long a connection waits: for each of several hosts, for the next piece of an answer, for what
 * TLS has kept inside; and what it keeps of a large request.  Time goes as the test wants it.  And
 * how often it sends a session its settings, if the role's time-out is short. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-lone.h"

static void
serve_well(int fd, void *context)
{
  (void)context;
  if (fake_let_in(fd))
    fake_answer_all(fd);
}

static void
serve_and_fall_silent(int fd, void *context)
{
  if (fake_let_in(fd))
    serve_silence(fd, context);
}

/* ---- several hosts --------------------------------------------------------------------------- */

/* A port of this machine where each client waits for ever: its queue is full. */
struct hole {
  int listener, guests[4];
  char port[8];
};

static void
hole_dig(struct hole *hole)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;

  hole->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (hole->listener < 0 || bind(hole->listener, (void *)&address, size) < 0 ||
      listen(hole->listener, 0) < 0 ||
      getsockname(hole->listener, (void *)&address, &size) < 0)
    BAIL_OUT("no port to listen on");
  for (size_t i = 0; i < sizeof hole->guests / sizeof hole->guests[0]; i++) {
    hole->guests[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(hole->guests[i], (void *)&address, size) < 0 && errno != EINPROGRESS)
      BAIL_OUT("no way to a port of our own");
  }
  snprintf(hole->port, sizeof hole->port, "%d", ntohs(address.sin_port));
}

static void
hole_fill(struct hole *hole)
{
  close(hole->listener);
  for (size_t i = 0; i < sizeof hole->guests / sizeof hole->guests[0]; i++)
    close(hole->guests[i]);
}

/* More time passes than there is, but before the last of the hosts. */
static void
pass_unless_last(struct dk_call *call)
{
  const struct lone *s = call->context;

  call->passes = strcmp(PQhost(s->c.pg), fake_folder(s->fake)) == 0 ? 0 : 25000;
}

/* Of `hosts` each letter is one: (q)uiet, a (h)ole, (n)owhere, and a (g)ood one. */
static void
write_hosts(char room[300], const char *hosts, const char *quiet, const char *hole,
            const char *good)
{
  char names[200] = "", ports[60] = "";

  for (const char *at = hosts; *at; at++) {
    const char *name = *at == 'q' ? quiet : *at == 'g' ? good : *at == 'h' ? "127.0.0.1" : "/none";
    const char *comma = at > hosts ? "," : "";
    size_t used = strlen(names), ports_used = strlen(ports);
    snprintf(names + used, sizeof names - used, "%s%s", comma, name);
    snprintf(ports + ports_used, sizeof ports - ports_used, "%s%s", comma,
             *at == 'h' ? hole : "5432");
  }
  snprintf(room, 300, "user=me host=%s port=%s", names, ports);
}

static void
test_hosts(void)
{
  static const struct {
    const char *hosts;
    dk_status status;
    const char *words;
  } rows[] = {{"qg", DK_OK, ""}, {"hg", DK_OK, ""}, {"nqhqg", DK_OK, ""},
              {"qh", DK_UNAVAILABLE, "no answer within 20000ms"},
              {"qn", DK_UNAVAILABLE, "No such file"}};
  struct fake *silent = fake_start(serve_silence, NULL);
  char conninfo[300];
  struct hole hole;
  struct lone s;

  hole_dig(&hole);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    lone_begin(&s, 0, serve_well, NULL);
    settings_done(&s.settings);
    write_hosts(conninfo, rows[i].hosts, fake_folder(silent), hole.port, fake_folder(s.fake));
    s.settings = SETTINGS(0, "conninfo", conninfo, "connect_timeout", "20s");
    s.call.host = &s.host;
    s.call.at_wait = pass_unless_last;
    s.call.context = &s;
    expect_open(&s, rows[i].status, rows[i].words, rows[i].hosts);
    if (rows[i].status == DK_OK)
      is(PQhost(s.c.pg), fake_folder(s.fake), "it is the good one");
    lone_end(&s);
  }
  hole_fill(&hole);
  fake_stop(silent);
}

/* ---- requests -------------------------------------------------------------------------------- */

static dk_status
run(struct lone *s, bool writes, const char *payload, size_t length)
{
  struct values values;
  struct request request = {.what = "commit", .sql = "SELECT $1", .values = &values,
                            .writes = writes};
  PGresult *result = NULL;

  values_begin(&values);
  value_bytea(&values, (struct dk_bytes){payload, length});
  dk_status status = connection_run(&s->c, &s->call, &request, &result, &s->why);
  values_done(&values);
  cmp_ok(result != NULL, "==", status == DK_OK, "a result with DK_OK only");
  PQclear(result);
  return status;
}

/* ---- limits ---------------------------------------------------------------------------------- */

enum { PIECES = 12 };

/* Sends a piece of the answer for each byte that it receives. */
static void
serve_pieces(int fd, void *context)
{
  const int *told = context;
  char byte;

  if (!fake_let_in(fd) || !fake_read_request(fd))
    return;
  for (int i = 0; i < PIECES && recv(told[0], &byte, 1, 0) == 1; i++)
    fake_error(fd, 'N', "NOTICE", "00000", "a piece");
  fake_row(fd, true, "yes", 3);
  fake_ready(fd, 'I');
  fake_answer_all(fd);
}

static void
tell_server(struct dk_call *call)
{
  const int *told = call->context;

  if (write(told[1], "x", 1) != 1)
    BAIL_OUT("the server cannot be notified");
}

/* Each piece takes half of the limit, and all of them six times as long; a script has none. */
static void
test_slow(void)
{
  struct lone s;
  int told[2];

  for (int way = 0; way < 3; way++) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, told) < 0)
      BAIL_OUT("no sockets");
    lone_begin(&s, 0, serve_pieces, told);
    expect_open(&s, DK_OK, "", "open");
    s.settings.answer_ms = way == 2 ? 5000 : 20000;
    s.call.host = &s.host;
    s.call.passes = 10000;
    s.call.at_wait = tell_server;
    s.call.context = told;
    if (way < 2)
      cmp_ok(run(&s, way == 0, "x", 1), "==", DK_OK, "an answer that comes slowly comes");
    else
      cmp_ok(connection_script(&s.c, &s.call, "migrate", "SELECT", &s.why), "==", DK_OK,
             "a script takes as long as it takes");
    cmp_ok(s.host.passed, ">", 2 * s.settings.answer_ms, "which is long");
    shutdown(told[1], SHUT_RDWR);
    lone_end(&s);
    close(told[0]);
    close(told[1]);
  }
}

/* Instead of libpq's: what TLS keeps inside is played by a host that does not see it come. */
static bool plays_tls;

int
PQsslInUse(PGconn *pg)
{
  (void)pg;
  return plays_tls;
}

static void
test_tls(void)
{
  struct lone s;

  lone_begin(&s, 0, serve_well, NULL);
  expect_open(&s, DK_OK, "", "open");
  plays_tls = true;
  s.call.host = &s.host;
  s.call.is_blind = true;
  cmp_ok(run(&s, true, "x", 1), "==", DK_OK, "an answer that no descriptor shows is found");
  cmp_ok(s.host.passed, "<", s.settings.answer_ms / 10, "soon");
  plays_tls = false;
  lone_end(&s);

  lone_begin(&s, 0, serve_and_fall_silent, NULL);
  expect_open(&s, DK_OK, "", "open");
  plays_tls = true;
  s.settings.answer_ms = 200;
  cmp_ok(run(&s, true, "x", 1), "==", DK_OUTCOME_UNKNOWN, "the limit stays what it is");
  has_words(s.why.text, "within 200ms", "its words");
  plays_tls = false;
  lone_end(&s);
}

/* What libpq once had room for it keeps room for. */
static void
test_large_request(void)
{
  enum { MUCH = 8 << 20, LARGE = 20 << 20 };
  char *large = calloc(1, LARGE);
  struct lone s;

  lone_begin(&s, 0, serve_well, NULL);
  expect_open(&s, DK_OK, "", "open");
  cmp_ok(run(&s, true, large, MUCH), "==", DK_OK, "a request");
  ok(!s.c.is_bloated, "its buffers are kept");
  cmp_ok(run(&s, true, large, LARGE), "==", DK_OK, "a very large one");
  ok(s.c.is_bloated, "its buffers are worth a new connection");
  lone_end(&s);
  free(large);
}

/* ---- a role's statement_timeout -------------------------------------------------------------- */

struct impatience {
  int n_ended, n_asked;  /* so often is the settling of the session ended; asked for */
};

static void
serve_impatience(int fd, void *context)
{
  static const struct fake_session own = {.is_own = true};
  struct impatience *p = context;

  if (!fake_read_start(fd))
    return;
  fake_welcome(fd);
  fake_greet(fd, "15.1", "UTF8");
  while (fake_read_request(fd)) {
    if (++p->n_asked > p->n_ended) {
      fake_session(fd, &own);
      continue;
    }
    fake_error(fd, 'E', "ERROR", "57014", "too slow");
    fake_ready(fd, 'I');
  }
}

static void
test_impatience(void)
{
  enum { MOST = 20 };
  static const int n_ended[] = {1, MOST - 1, MOST};

  for (size_t i = 0; i < sizeof n_ended / sizeof n_ended[0]; i++) {
    struct impatience p = {.n_ended = n_ended[i]};
    struct lone s;
    lone_begin(&s, 0, serve_impatience, &p);
    bool is_settled = n_ended[i] < MOST;
    expect_open(&s, is_settled ? DK_OK : DK_BUSY, "statement_timeout",
                is_settled ? "a session that is settled at last" : "one that is given up");
    cmp_ok(p.n_asked, "==", n_ended[i] + is_settled, "after so many tries");
    cmp_ok(fake_connections(s.fake), "==", 1, "on one connection");
    lone_end(&s);
  }
}

int
main(void)
{
  plan(NO_PLAN);
  test_hosts();
  int before = n_descriptors();
  test_hosts();
  test_slow();
  test_tls();
  test_large_request();
  test_impatience();
  cmp_ok(n_descriptors(), "==", before, "no descriptor is left");
  return done_testing();
}
