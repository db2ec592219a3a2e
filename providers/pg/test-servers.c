/* SPDX-License-Identifier: Apache-2.0 */
/* Which of two servers is the one, and how a handle comes from one to the other: by a new session,
 * by one that waits for an answer that does not come, and what becomes of the idle ones.  Both say
 * what the test tells them to. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-fake.h"
#include "providers/pg/test-host.h"

/* ---- two servers ----------------------------------------------------------------------------- */

/* What a server says, and how often it was asked.  `is_frozen`: from now on nothing, to nobody. */
struct play {
  struct fake_session session;
  const char *denies;        /* SQLSTATE to who asks who it is; NULL: it says so */
  const char *text;          /* to every request after that; NULL: a row of two */
  atomic_bool is_frozen, is_standby;
  atomic_bool first_is_silent; /* to its first session, which it settles, nothing else */
  atomic_bool lets_first_go_on, lets_go_on_at_next; /* the latter: when the next one comes */
  atomic_int n_sessions, n_requests, n_frozen, most_frozen; /* most_frozen: at one time */
};

static void
be_silent(int fd)
{
  char byte;

  while (recv(fd, &byte, 1, 0) == 1)
    continue;
}

/* Who comes to a frozen server. */
static void
freeze(int fd, struct play *p)
{
  int n = atomic_fetch_add(&p->n_frozen, 1) + 1, most = atomic_load(&p->most_frozen);

  while (n > most && !atomic_compare_exchange_weak(&p->most_frozen, &most, n))
    continue;
  be_silent(fd);
  atomic_fetch_sub(&p->n_frozen, 1);
}

static void
answer(int fd, struct play *p)
{
  if (p->text)
    fake_text(fd, p->text);
  else
    fake_row(fd, true, "yes", 3);
  fake_ready(fd, 'I');
}

static void
wait_to_go_on(struct play *p)
{
  while (!atomic_load(&p->lets_first_go_on) && !atomic_load(&p->is_frozen))
    poll(NULL, 0, 1);
}

static bool
settle(int fd, struct play *p)
{
  struct fake_session session = p->session;

  if (!fake_read_start(fd))
    return false;
  fake_welcome(fd);
  fake_greet(fd, "15.1", "UTF8");
  if (p->denies && fake_read_request(fd)) {
    atomic_fetch_add(&p->n_requests, 1);
    fake_error(fd, 'E', "ERROR", p->denies, "you may not ask");
    fake_ready(fd, 'I');
  }
  if (!fake_read_request(fd))
    return false;
  atomic_fetch_add(&p->n_requests, 1);
  session.is_standby = atomic_load(&p->is_standby);
  fake_session(fd, &session);
  return true;
}

static void
serve(int fd, void *context)
{
  struct play *p = context;
  bool is_first = atomic_fetch_add(&p->n_sessions, 1) == 0;

  if (!is_first && atomic_load(&p->lets_go_on_at_next))
    atomic_store(&p->lets_first_go_on, true);
  if (atomic_load(&p->is_frozen) || (!is_first && atomic_load(&p->lets_go_on_at_next))) {
    freeze(fd, p);
    return;
  }
  if (!settle(fd, p))
    return;
  while (fake_read_request(fd)) {
    atomic_fetch_add(&p->n_requests, 1);
    if (is_first && atomic_load(&p->first_is_silent))
      wait_to_go_on(p);
    if (atomic_load(&p->is_frozen)) {
      be_silent(fd);
      return;
    }
    answer(fd, p);
  }
}

/* ---- a handle before them -------------------------------------------------------------------- */

struct scene {
  struct test_host host;
  struct dk_call call;
  struct settings settings;
  struct play play[2];       /* "old" and "new", in the order of conninfo */
  struct fake *fake[2];
  struct servers *servers;
  struct why why;
  char lines[10][400];       /* of the log, from info on */
  atomic_int n_lines;
};

enum { OLD, NEW };

static struct scene *logging;

static void
keep_line(const struct dk_host *host, int32_t level, struct dk_bytes line)
{
  int n = level > 0 ? atomic_fetch_add(&logging->n_lines, 1) : 10;

  (void)host;
  if (n < 10)
    snprintf(logging->lines[n], sizeof logging->lines[n], "%.*s", (int)line.len, line.ptr);
}

/* Two hosts, or the first alone.  The old server is on timeline 1, the new one on 10. */
static void
scene_begin(struct scene *s, int n_hosts)
{
  char conninfo[200];

  memset(s, 0, sizeof *s);
  logging = s;
  test_host_init(&s->host);
  s->host.host.log = keep_line;
  call_init(&s->call);
  for (int i = 0; i < 2; i++) {
    s->play[i].session = (struct fake_session){
      .is_own = true, .system = "7709876934548409745",
      .file = i == OLD ? "000000010000000000000001" : "0000000A0000000000000001"};
    s->fake[i] = fake_start(serve, &s->play[i]);
  }
  snprintf(conninfo, sizeof conninfo, "host=%s%s%s user=me", fake_folder(s->fake[OLD]),
           n_hosts > 1 ? "," : "", n_hosts > 1 ? fake_folder(s->fake[NEW]) : "");
  s->settings = SETTINGS(0, "conninfo", conninfo, "answer_timeout", "10m");
  s->settings.silence_ms = 50;
  if (servers_new(&s->host.host, &s->settings, &s->servers, &s->why) != DK_OK)
    BAIL_OUT("no memory of servers");
}

static void
scene_end(struct scene *s)
{
  atomic_store(&s->play[OLD].lets_first_go_on, true);
  for (int i = 0; i < 2; i++)
    fake_stop(s->fake[i]);
  servers_free(s->servers);
  settings_done(&s->settings);
  call_done(&s->call);
}

/* It stays where it is. */
static dk_status
open_connection(struct scene *s, struct connection *c)
{
  *c = (struct connection){
    .host = &s->host.host, .settings = &s->settings, .servers = s->servers};
  return connection_open(c, &s->call, &s->why);
}

static void
expect_at(const struct scene *s, const struct connection *c, int which, const char *name)
{
  is(c->pg ? PQhost(c->pg) : "none", fake_folder(s->fake[which]), "%s: it is on the %s server",
     name, which == OLD ? "old" : "new");
}

/* The handle has had a session on the new server: it was met by a host of its own. */
static void
meet(struct scene *s, const char *system, const char *file)
{
  const struct identity identity = identity_of(as_bytes(system), as_bytes(file));
  PGconn *pg = PQconnectStart("host=/nowhere");

  if (servers_judge(s->servers, &identity, pg, &s->why) != DK_OK)
    BAIL_OUT("the first server is refused: %s", s->why.text);
  PQfinish(pg);
}

static dk_status
ask(struct scene *s, struct dk_call *call, struct connection *c, bool writes, int64_t answer_ms,
    struct why *why)
{
  struct values none;
  const struct request request = {.what = "ask", .sql = "SELECT", .values = &none,
                                  .writes = writes, .answer_ms = answer_ms};
  PGresult *result = NULL;

  (void)s;
  values_begin(&none);
  dk_status status = connection_run(c, call, &request, &result, why);
  PQclear(result);
  values_done(&none);
  return status;
}

/* ---- who is the one -------------------------------------------------------------------------- */

#define SYSTEM "7709876934548409745"

static void
test_judgement(void)
{
  static const struct {
    const char *name, *met_system, *met_file, *system, *file;
    const char *words;       /* of the refusal; NULL: it is none */
  } rows[] = {
    {"the first", NULL, NULL, SYSTEM, "000000010000000000000001", NULL},
    {"the same again", SYSTEM, "000000010000000000000001", SYSTEM, "0000000100000000000000FF",
     NULL},
    {"one on a higher timeline", SYSTEM, "000000090000000000000001", SYSTEM,
     "0000000A0000000000000001", NULL},
    {"one on a lower timeline", SYSTEM, "0000000A0000000000000001", SYSTEM,
     "000000090000000000000001",
     "was superseded: it is on timeline 9, and this store has been on timeline 10, at "
     "host=/nowhere"},
    {"another cluster", SYSTEM, "000000010000000000000001", "7709876934548409746",
     "000000020000000000000001",
     "its system identifier is 7709876934548409746, expected 7709876934548409745"},
    {"a standby, which writes no timeline", SYSTEM, "000000020000000000000001", SYSTEM, NULL, NULL},
    {"a standby of another cluster", SYSTEM, "000000020000000000000001", "1", NULL,
     "of another database cluster"},
    {"one that says nothing", SYSTEM, "000000020000000000000001", NULL, NULL, NULL},
    {"the first, when the cluster is not known", NULL, "000000020000000000000001", SYSTEM,
     "000000020000000000000002", NULL},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct connection c;
    struct scene s;

    scene_begin(&s, 1);
    meet(&s, rows[i].met_system, rows[i].met_file);
    s.play[OLD].session.system = rows[i].system;
    s.play[OLD].session.file = rows[i].file;
    dk_status status = open_connection(&s, &c);
    cmp_ok(status, "==", rows[i].words ? DK_UNAVAILABLE : DK_OK, "%s", rows[i].name);
    if (rows[i].words)
      has_words(s.why.text, rows[i].words, "its words");
    cmp_ok(c.pg != NULL, "==", !rows[i].words, "the connection");
    connection_close(&c);
    scene_end(&s);
  }
}

/* The next host is tried, that is logged, and from then on it is the first. */
static void
test_next_host(void)
{
  struct connection c, second;
  struct scene s;

  scene_begin(&s, 2);
  meet(&s, SYSTEM, "0000000A0000000000000001");
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "with another host the refusal is not the end");
  expect_at(&s, &c, NEW, "the next host is tried");
  cmp_ok(atomic_load(&s.n_lines), "==", 1, "that is logged");
  has_words(s.lines[0], "was superseded", "why");
  has_words(s.lines[0], "the next host is tried", "and what is done");
  cmp_ok(open_connection(&s, &second), "==", DK_OK, "another session");
  expect_at(&s, &second, NEW, "at once");
  cmp_ok(fake_connections(s.fake[OLD]), "==", 1, "the old server is not tried any more");
  cmp_ok(atomic_load(&s.n_lines), "==", 1, "and nothing more is logged");
  connection_close(&c);
  connection_close(&second);

  /* When the new one has gone, the others have their turn again. */
  s.play[OLD].session.file = "0000000B0000000000000001";
  atomic_store(&s.play[NEW].is_frozen, true);
  s.settings.host_ms = 1000;
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "the first host again");
  expect_at(&s, &c, OLD, "the new one is frozen");
  has_words(s.lines[1], "on timeline 11, has taken the place of that at", "which is logged");
  cmp_ok(open_connection(&s, &second), "==", DK_OK, "another session");
  cmp_ok(fake_connections(s.fake[NEW]), "==", 3, "the frozen one is not tried first any more");
  connection_close(&c);
  connection_close(&second);
  scene_end(&s);
}

/* Of several hosts the first has little time by default, one alone has more. */
static void
test_limits(void)
{
  struct connection c;
  struct scene s;

  for (int n_hosts = 1; n_hosts <= 2; n_hosts++) {
    scene_begin(&s, n_hosts);
    cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
    cmp_ok(c.limit_ms, "==", n_hosts == 1 ? 10000 : 3000, "time for one of %d hosts", n_hosts);
    connection_close(&c);
    scene_end(&s);
  }
}

/* Who may not ask does without, is told so once, and does not ask again. */
static void
test_denied(void)
{
  static const char *const states[] = {"42501", "42883", "0A000", "55000", "XX000"};

  for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
    struct connection c, second;
    struct scene s;

    scene_begin(&s, 1);
    meet(&s, SYSTEM, "0000000A0000000000000001");
    s.play[OLD].denies = states[i];
    s.play[OLD].session.system = s.play[OLD].session.file = NULL;
    cmp_ok(open_connection(&s, &c), "==", DK_OK, "%s: who may not ask does without", states[i]);
    cmp_ok(atomic_load(&s.n_lines), "==", 1, "it is logged");
    has_words(s.lines[0], "you may not ask", "in the server's words");
    s.play[OLD].denies = NULL;
    int before = atomic_load(&s.play[OLD].n_requests);
    cmp_ok(open_connection(&s, &second), "==", DK_OK, "another session");
    cmp_ok(atomic_load(&s.play[OLD].n_requests), "==", before + 1, "does not ask again");
    cmp_ok(atomic_load(&s.n_lines), "==", 1, "and it is not logged again");
    connection_close(&c);
    connection_close(&second);
    scene_end(&s);
  }
}

/* ---- idle ------------------------------------------------------------------------------------ */

static void
test_idle(void)
{
  struct connection *c[3], *taken;
  struct pool *pool;
  int connected = 0;
  struct scene s;

  scene_begin(&s, 1);
  if (pool_new(&s.host.host, &s.settings, s.servers, &pool, &s.why) != DK_OK)
    BAIL_OUT("no pool");
  for (int i = 0; i < 3; i++)
    if (pool_take(pool, &s.call, &c[i], &s.why) != DK_OK)
      BAIL_OUT("take: %s", s.why.text);
  pool_give_back(pool, c[0]);
  pool_give_back(pool, c[1]);
  ok(connection_is_alive(c[2]), "a session is alive");
  meet(&s, SYSTEM, "0000000A0000000000000001");
  ok(!connection_is_alive(c[2]), "and of no use once its server was superseded");
  pool_give_back(pool, c[2]);
  s.play[OLD].session.file = "0000000A0000000000000002";
  if (pool_take(pool, &s.call, &taken, &s.why) != DK_OK)
    BAIL_OUT("take: %s", s.why.text);
  cmp_ok(taken->identity.timeline, "==", 10, "who takes one is given one of the right server");
  cmp_ok(fake_connections(s.fake[OLD]), "==", 4, "a new one");
  for (int i = 0; i < 3; i++)
    connected += c[i]->pg != NULL;
  cmp_ok(connected, "==", 1, "those that are idle are dropped all at once");
  pool_give_back(pool, taken);
  pool_free(pool);
  scene_end(&s);
}

/* ---- silence --------------------------------------------------------------------------------- */

/* A server falls silent, and the other one is on a higher timeline: the call ends. */
static void
test_frozen(void)
{
  for (int writes = 0; writes < 2; writes++) {
    struct connection c, second;
    struct scene s;

    scene_begin(&s, 2);
    cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
    expect_at(&s, &c, OLD, "before");
    atomic_store(&s.play[OLD].is_frozen, true);
    cmp_ok(ask(&s, &s.call, &c, writes != 0, 0, &s.why), "==",
           writes ? DK_OUTCOME_UNKNOWN : DK_UNAVAILABLE, "%s on a frozen server ends",
           writes ? "what writes" : "what reads");
    has_words(s.why.text, "on timeline 1, was superseded by that at", "its words");
    has_words(s.why.text, writes ? "not known" : "nothing was done", "what may have come of it");
    ok(!c.pg, "the session is dropped");
    has_words(s.lines[0], "has taken the place", "it is logged");
    cmp_ok(atomic_load(&s.n_lines), "==", 1, "once");
    int tried = fake_connections(s.fake[OLD]);
    cmp_ok(open_connection(&s, &second), "==", DK_OK, "the next session");
    expect_at(&s, &second, NEW, "afterwards");
    cmp_ok(fake_connections(s.fake[OLD]), "==", tried, "without a try at the frozen one");
    connection_close(&second);
    scene_end(&s);
  }
}

/* The other one is still a standby for a while, and is promoted then. */
static void *
promote_later(void *context)
{
  struct scene *s = context;

  while (fake_connections(s->fake[NEW]) < 3)
    poll(NULL, 0, 1);
  atomic_store(&s->play[NEW].is_standby, false);
  return NULL;
}

static void
test_promoted_later(void)
{
  struct connection c;
  struct scene s;
  pthread_t thread;

  scene_begin(&s, 2);
  atomic_store(&s.play[NEW].is_standby, true);
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
  atomic_store(&s.play[OLD].is_frozen, true);
  if (pthread_create(&thread, NULL, promote_later, &s) != 0)
    BAIL_OUT("no thread");
  cmp_ok(ask(&s, &s.call, &c, true, 0, &s.why), "==", DK_OUTCOME_UNKNOWN,
         "it is looked for again until there is one");
  has_words(s.why.text, "was superseded", "its words");
  pthread_join(thread, NULL);
  scene_end(&s);
}

/* It lives, and says what it is that the session waits for: the call goes on waiting. */
static void *
answer_when_logged(void *context)
{
  struct scene *s = context;

  while (atomic_load(&s->n_lines) == 0 || fake_connections(s->fake[OLD]) < 4)
    poll(NULL, 0, 1);
  atomic_store(&s->play[OLD].lets_first_go_on, true);
  return NULL;
}

static void
test_busy(void)
{
  struct connection c;
  struct scene s;
  pthread_t thread;

  scene_begin(&s, 1);
  s.play[OLD].text = "the server waits for its synchronous standby";
  atomic_store(&s.play[OLD].first_is_silent, true);
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
  if (pthread_create(&thread, NULL, answer_when_logged, &s) != 0)
    BAIL_OUT("no thread");
  cmp_ok(ask(&s, &s.call, &c, true, 0, &s.why), "==", DK_OK,
         "a call on a server that lives goes on waiting, until it is answered");
  pthread_join(thread, NULL);
  has_words(s.lines[0], "ask: no answer yet: the server waits for its synchronous standby",
            "what it waits for is logged");
  cmp_ok(atomic_load(&s.n_lines), "==", 1, "once, however often it was looked");
  connection_close(&c);
  scene_end(&s);
}

/* What it waits for is told by who has waited in vain. */
static void
test_told_in_the_end(void)
{
  struct connection c;
  struct scene s;

  scene_begin(&s, 1);
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
  atomic_store(&s.play[OLD].is_frozen, true);
  servers_note_wait(s.servers, "another", "the server waits for its synchronous standby");
  s.settings.silence_ms = s.settings.answer_ms;
  cmp_ok(ask(&s, &s.call, &c, true, 50, &s.why), "==", DK_OUTCOME_UNKNOWN, "no answer");
  has_words(s.why.text, "within 50ms: the server waits for its synchronous standby; whether",
            "its words");
  scene_end(&s);
}

/* The answer comes while it is looked who is there: that is given up, no other host is tried. */
static void
test_answer_beside(void)
{
  struct connection c;
  struct scene s;

  scene_begin(&s, 2);
  atomic_store(&s.play[OLD].first_is_silent, true);
  atomic_store(&s.play[OLD].lets_go_on_at_next, true);
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
  s.settings.silence_ms = 3000;
  cmp_ok(ask(&s, &s.call, &c, true, 0, &s.why), "==", DK_OK, "the answer is taken");
  cmp_ok(fake_connections(s.fake[OLD]), "==", 2, "it was looked");
  cmp_ok(fake_connections(s.fake[NEW]), "==", 0, "and not waited to the end of that");
  connection_close(&c);
  scene_end(&s);
}

/* Nobody answers anywhere: to the end of its time, which passes once each was tried again. */
static void
pass_when_tried(struct dk_call *call)
{
  const struct scene *s = call->context;

  call->passes = fake_connections(s->fake[NEW]) > 1 ? s->settings.answer_ms : 0;
}

static void
test_nobody(void)
{
  struct connection c;
  struct scene s;

  scene_begin(&s, 2);
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
  atomic_store(&s.play[OLD].is_frozen, true);
  atomic_store(&s.play[NEW].is_frozen, true);
  s.call.host = &s.host;
  s.call.at_wait = pass_when_tried;
  s.call.context = &s;
  cmp_ok(ask(&s, &s.call, &c, true, s.settings.answer_ms - 1, &s.why), "==", DK_OUTCOME_UNKNOWN,
         "nobody answers");
  has_words(s.why.text, "within 599999ms; whether it was done is not known; by then the lease",
            "its words");
  scene_end(&s);
}

/* Taken back while it looks. */
static void
test_taken_back(void)
{
  for (int at = 2; at <= 4; at++) {
    struct connection c;
    struct scene s;

    scene_begin(&s, 2);
    cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
    atomic_store(&s.play[OLD].is_frozen, true);
    atomic_store(&s.play[NEW].is_frozen, true);
    s.call.cancel_at = s.call.n_waits + at;
    cmp_ok(ask(&s, &s.call, &c, false, 0, &s.why), "==", DK_CALL_CANCELLED,
           "taken back at wait %d", at);
    cmp_ok(s.call.n_cancelled, "==", 1, "which then is the last");
    scene_end(&s);
  }
}

/* Another session meets the new server while this one is answered by the old: that is no
 * acknowledgement. */
static void
meet_and_go_on(struct dk_call *call)
{
  struct scene *s = call->context;

  meet(s, SYSTEM, "0000000A0000000000000001");
  atomic_store(&s->play[OLD].lets_first_go_on, true);
}

static void
test_answered_too_late(void)
{
  for (int writes = 0; writes < 2; writes++) {
    struct connection c;
    struct scene s;

    scene_begin(&s, 1);
    atomic_store(&s.play[OLD].first_is_silent, true);
    cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
    s.settings.silence_ms = s.settings.answer_ms;
    s.call.at_wait = meet_and_go_on;
    s.call.context = &s;
    cmp_ok(ask(&s, &s.call, &c, writes != 0, 0, &s.why), "==",
           writes ? DK_OUTCOME_UNKNOWN : DK_OK, "an answer of a server that was superseded, to %s",
           writes ? "what writes" : "what reads");
    if (writes)
      has_words(s.why.text, "was superseded by that at", "its words");
    connection_close(&c);
    scene_end(&s);
  }
}

struct asker {
  struct scene *scene;
  struct dk_call call;
  struct connection c;
  pthread_t thread;
  dk_status status;
  struct why why;
};

static void *
ask_in_vain(void *context)
{
  struct asker *a = context;

  a->status = ask(a->scene, &a->call, &a->c, true, 0, &a->why);
  return NULL;
}

/* Of many that wait one looks at a time, and what it finds ends all. */
static void
test_many(void)
{
  enum { MANY = 8 };
  struct asker askers[MANY];
  int n_ended = 0;
  struct scene s;

  scene_begin(&s, 2);
  atomic_store(&s.play[NEW].is_standby, true);
  for (int i = 0; i < MANY; i++) {
    askers[i] = (struct asker){.scene = &s};
    call_init(&askers[i].call);
    if (open_connection(&s, &askers[i].c) != DK_OK)
      BAIL_OUT("no session: %s", s.why.text);
  }
  atomic_store(&s.play[OLD].is_frozen, true);
  for (int i = 0; i < MANY; i++)
    if (pthread_create(&askers[i].thread, NULL, ask_in_vain, &askers[i]) != 0)
      BAIL_OUT("no thread");
  promote_later(&s);
  for (int i = 0; i < MANY; i++) {
    pthread_join(askers[i].thread, NULL);
    n_ended += askers[i].status == DK_OUTCOME_UNKNOWN &&
               strstr(askers[i].why.text, "was superseded") != NULL;
    call_done(&askers[i].call);
  }
  cmp_ok(n_ended, "==", MANY, "all calls end");
  cmp_ok(atomic_load(&s.play[OLD].most_frozen), "==", 1, "one of them has looked at a time");
  scene_end(&s);
}

int
main(void)
{
  plan(NO_PLAN);
  test_judgement();
  int before = n_descriptors();
  test_next_host();
  test_limits();
  test_denied();
  test_idle();
  test_frozen();
  test_promoted_later();
  test_busy();
  test_told_in_the_end();
  test_answer_beside();
  test_nobody();
  test_taken_back();
  test_many();
  test_answered_too_late();
  cmp_ok(n_descriptors(), "==", before, "no descriptor is left");
  return done_testing();
}
