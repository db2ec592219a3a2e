/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a handle: how many are made, which call gets one, and which are never given
 * again. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-fake.h"
#include "providers/pg/test-host.h"

/* ---- a pool before a server ------------------------------------------------------------------ */

static atomic_bool refuses; /* the server accepts no session */
static atomic_int n_refused;

static void
serve(int fd, void *context)
{
  (void)context;
  if (atomic_load(&refuses)) {
    atomic_fetch_add(&n_refused, 1);
    if (fake_read_start(fd))
      fake_error(fd, 'E', "FATAL", "53300", "full");
    return;
  }
  if (fake_let_in(fd))
    fake_answer_all(fd);
}

struct scene {
  struct test_host host;
  struct dk_call call;
  struct settings settings;
  struct fake *fake;
  struct pool *pool;
  struct why why;
};

static void
scene_begin(struct scene *s, uint32_t size, fake_serve_fn *serve_fn)
{
  char conninfo[100], pool[12];

  memset(s, 0, sizeof *s);
  atomic_store(&refuses, false);
  atomic_store(&n_refused, 0);
  test_host_init(&s->host);
  call_init(&s->call);
  s->fake = fake_start(serve_fn, NULL);
  snprintf(conninfo, sizeof conninfo, "host=%s user=me", fake_folder(s->fake));
  snprintf(pool, sizeof pool, "%u", size);
  s->settings = SETTINGS(0, "conninfo", conninfo, "pool", pool);
  if (pool_new(&s->host.host, &s->settings, NULL, &s->pool, &s->why) != DK_OK)
    BAIL_OUT("no pool");
}

static void
scene_end(struct scene *s)
{
  pool_free(s->pool);
  fake_stop(s->fake);
  settings_done(&s->settings);
  call_done(&s->call);
}

static struct connection *
take(struct scene *s)
{
  struct connection *c = NULL;

  if (pool_take(s->pool, &s->call, &c, &s->why) != DK_OK)
    BAIL_OUT("take: %s", s->why.text);
  return c;
}

static dk_status
ask(struct scene *s, struct connection *c)
{
  struct values none;
  struct request request = {.what = "ask", .sql = "SELECT", .values = &none};
  PGresult *result = NULL;

  values_begin(&none);
  dk_status status = connection_run(c, &s->call, &request, &result, &s->why);
  PQclear(result);
  return status;
}

static void
test_order(void)
{
  struct scene s;

  scene_begin(&s, 3, serve);
  cmp_ok(fake_connections(s.fake), "==", 0, "none is made before it is needed");
  struct connection *first = take(&s);
  cmp_ok(fake_connections(s.fake), "==", 1, "the first is made");
  struct connection *second = take(&s);
  cmp_ok(fake_connections(s.fake), "==", 2, "and the second");
  pool_give_back(s.pool, first);
  pool_give_back(s.pool, second);
  ok(take(&s) == second, "the last used comes first");
  ok(take(&s) == first, "then the one before");
  cmp_ok(fake_connections(s.fake), "==", 2, "none is made for it");
  cmp_ok(ask(&s, first), "==", DK_OK, "it works");
  pool_give_back(s.pool, first);
  pool_give_back(s.pool, second);
  scene_end(&s);
}

/* ---- waiting calls --------------------------------------------------------------------------- */

struct waiter {
  struct scene *scene;
  struct dk_call call;
  pthread_t thread;
  struct connection *c;
  dk_status status;
  struct why why;
  atomic_bool waits;         /* it is in the queue, or its call has ended */
  atomic_int *turn;          /* the next number to be drawn by a call that gets one */
  int number;
};

static void
note_wait(struct dk_call *call)
{
  struct waiter *w = call->context;

  if (call->events == DK_WAIT_READ)
    atomic_store(&w->waits, true);
}

static void *
wait_for_one(void *context)
{
  struct waiter *w = context;

  w->status = pool_take(w->scene->pool, &w->call, &w->c, &w->why);
  w->number = atomic_fetch_add(w->turn, 1);
  atomic_store(&w->waits, true);
  return NULL;
}

static void
begin_waiting(struct waiter *w, struct scene *s, atomic_int *turn)
{
  *w = (struct waiter){.scene = s, .turn = turn};
  call_init(&w->call);
  w->call.at_wait = note_wait;
  w->call.context = w;
  if (pthread_create(&w->thread, NULL, wait_for_one, w) != 0)
    BAIL_OUT("no thread");
  while (!atomic_load(&w->waits))
    sched_yield();
}

static void
end_waiting(struct waiter *w)
{
  pthread_join(w->thread, NULL);
  call_done(&w->call);
}

static void
test_queue(void)
{
  struct waiter w[3];
  struct scene s;
  atomic_int turn = 0;

  scene_begin(&s, 1, serve);
  struct connection *c = take(&s);
  for (int i = 0; i < 3; i++)
    begin_waiting(&w[i], &s, &turn);
  cmp_ok(atomic_load(&turn), "==", 0, "three calls wait, and no place is free");
  for (int i = 0; i < 3; i++) {
    pool_give_back(s.pool, c);
    end_waiting(&w[i]);
    cmp_ok(w[i].status, "==", DK_OK, "waiter %d is given one", i);
    cmp_ok(w[i].number, "==", i, "in the order of arrival");
    ok(w[i].c == c, "the only one");
  }
  cmp_ok(fake_connections(s.fake), "==", 1, "no other was made");
  pool_give_back(s.pool, c);
  ok(take(&s) == c, "afterwards it is free again");
  pool_give_back(s.pool, c);
  scene_end(&s);
}

/* The first, the middle and the last of a queue leave it. */
static void
test_leaving(void)
{
  for (int who = 0; who < 3; who++) {
    struct waiter w[3];
    struct scene s;
    atomic_int turn = 0;

    scene_begin(&s, 1, serve);
    struct connection *c = take(&s);
    for (int i = 0; i < 3; i++)
      begin_waiting(&w[i], &s, &turn);
    call_cancel(&w[who].call);
    end_waiting(&w[who]);
    cmp_ok(w[who].status, "==", DK_CALL_CANCELLED, "waiter %d is cancelled", who);
    for (int i = 0; i < 3; i++) {
      if (i == who)
        continue;
      pool_give_back(s.pool, c);
      end_waiting(&w[i]);
      cmp_ok(w[i].status, "==", DK_OK, "the others are given one");
    }
    pool_give_back(s.pool, c);
    c = take(&s);
    begin_waiting(&w[0], &s, &turn);
    pool_give_back(s.pool, c);
    end_waiting(&w[0]);
    cmp_ok(w[0].status, "==", DK_OK, "the queue is whole for later calls");
    pool_give_back(s.pool, c);
    scene_end(&s);
  }
}

/* Given and cancelled at once: whichever comes first, the connection is not lost. */
static void
test_both(void)
{
  int n_given = 0, n_back = 0;

  for (int i = 0; i < 30; i++) {
    struct waiter w;
    struct scene s;
    atomic_int turn = 0;

    scene_begin(&s, 1, serve);
    struct connection *c = take(&s);
    begin_waiting(&w, &s, &turn);
    if (i % 2)
      call_cancel(&w.call);
    pool_give_back(s.pool, c);
    if (!(i % 2))
      call_cancel(&w.call);
    end_waiting(&w);
    n_given += w.status == DK_OK;
    n_back += w.status == DK_CALL_CANCELLED;
    if (w.status == DK_OK)
      pool_give_back(s.pool, w.c);
    if (take(&s) != c)
      fail("the connection is lost");
    pool_give_back(s.pool, c);
    scene_end(&s);
  }
  note("%d were given one, %d were cancelled", n_given, n_back);
  cmp_ok(n_given + n_back, "==", 30, "each was given one or was cancelled");
}

static void
test_called_back_before(void)
{
  struct connection *c;
  struct scene s;

  scene_begin(&s, 1, serve);
  call_cancel(&s.call);
  cmp_ok(pool_take(s.pool, &s.call, &c, &s.why), "==", DK_CALL_CANCELLED, "before it began");
  cmp_ok(fake_connections(s.fake), "==", 0, "no connection is made");
  scene_end(&s);
}

/* A call that cannot connect makes room for the next, which tries it itself. */
static void
test_failing(void)
{
  struct waiter w[2];
  struct scene s;
  atomic_int turn = 0;
  struct connection *c;

  scene_begin(&s, 1, serve);
  c = take(&s);
  for (int i = 0; i < 2; i++)
    begin_waiting(&w[i], &s, &turn);
  atomic_store(&refuses, true);
  connection_close(c); /* as a lost one is */
  pool_give_back(s.pool, c);
  for (int i = 0; i < 2; i++) {
    end_waiting(&w[i]);
    cmp_ok(w[i].status, "==", DK_UNAVAILABLE, "waiter %d could not connect", i);
    ok(strstr(w[i].why.text, "53300") != NULL, "and says why");
  }
  cmp_ok(atomic_load(&n_refused), "==", 2, "each has tried it");
  atomic_store(&refuses, false);
  c = take(&s);
  cmp_ok(ask(&s, c), "==", DK_OK, "when the server is back, the next call works");
  pool_give_back(s.pool, c);
  scene_end(&s);
}

/* ---- a server that is full ------------------------------------------------------------------- */

static atomic_int room, n_in; /* how many sessions the server has, and how many are in use */
static atomic_int n_lines;    /* in the log, from info on */

static void
serve_in_room(int fd, void *context)
{
  (void)context;
  if (atomic_fetch_add(&n_in, 1) >= atomic_load(&room)) {
    atomic_fetch_add(&n_refused, 1);
    if (fake_read_start(fd))
      fake_error(fd, 'E', "FATAL", "53300", "full");
  } else if (fake_let_in(fd)) {
    fake_answer_all(fd);
  }
  atomic_fetch_sub(&n_in, 1);
}

static void
count_line(const struct dk_host *host, int32_t level, struct dk_bytes line)
{
  (void)host;
  if (level < 1)
    return;
  atomic_fetch_add(&n_lines, 1);
  note("log: %.*s", (int)line.len, line.ptr);
}

enum { CALLS = 50 };

struct caller {
  struct scene *scene;
  struct dk_call call;
  pthread_t thread;
  int n_failed;
};

static void *
call_often(void *context)
{
  struct caller *caller = context;
  struct pool *pool = caller->scene->pool;
  struct connection *c;
  struct why why;

  for (int i = 0; i < CALLS; i++)
    if (pool_take(pool, &caller->call, &c, &why) == DK_OK) {
      poll(NULL, 0, 1); /* so that there are more at a time than connections */
      pool_give_back(pool, c);
    } else {
      caller->n_failed++;
    }
  return NULL;
}

static int
crowd(struct scene *s, int n)
{
  struct caller callers[16];
  int n_failed = 0;

  for (int i = 0; i < n; i++) {
    callers[i] = (struct caller){.scene = s};
    call_init(&callers[i].call);
    if (pthread_create(&callers[i].thread, NULL, call_often, &callers[i]) != 0)
      BAIL_OUT("no thread");
  }
  for (int i = 0; i < n; i++) {
    pthread_join(callers[i].thread, NULL);
    call_done(&callers[i].call);
    n_failed += callers[i].n_failed;
  }
  return n_failed;
}

static void
full_begin(struct scene *s, int n_sessions)
{
  scene_begin(s, 8, serve_in_room);
  atomic_store(&room, n_sessions);
  atomic_store(&n_lines, 0);
  s->host.host.log = count_line;
}

/* The calls share what there is, and none fails. */
static void
test_full(void)
{
  struct connection *c[8];
  struct scene s;

  full_begin(&s, 3);
  for (int i = 0; i < 3; i++)
    c[i] = take(&s);
  for (int i = 0; i < 3; i++)
    pool_give_back(s.pool, c[i]);
  cmp_ok(crowd(&s, 8), "==", 0, "eight share three connections, and no call fails");
  int tried = atomic_load(&n_refused);
  cmp_ok(tried, "<=", 5, "each place for one more was tried once at the most");
  cmp_ok(atomic_load(&n_lines), "<=", 1, "and it is logged once");
  cmp_ok(crowd(&s, 8), "==", 0, "the same again");
  cmp_ok(atomic_load(&n_refused), "<=", 5, "it is not tried again and again");
  cmp_ok(atomic_load(&n_lines), "<=", 1, "nor logged");
  scene_end(&s);
}

/* Now and then one more is tried, and as many are made as there are. */
static void
test_growth(void)
{
  struct connection *c[8];
  struct waiter w;
  struct scene s;
  atomic_int turn = 0;

  full_begin(&s, 3);
  for (int i = 0; i < 3; i++)
    c[i] = take(&s);
  begin_waiting(&w, &s, &turn);
  while (atomic_load(&n_refused) < 1)
    sched_yield();
  pool_give_back(s.pool, c[0]);
  end_waiting(&w);
  cmp_ok(w.status, "==", DK_OK, "a call that was refused one more waits for an existing one");
  ok(w.c == c[0], "and is given it");
  cmp_ok(atomic_load(&n_refused), "==", 1, "the server has refused one");
  cmp_ok(atomic_load(&n_lines), "==", 1, "which is logged");
  atomic_store(&room, 8);
  begin_waiting(&w, &s, &turn);
  pool_give_back(s.pool, c[0]);
  end_waiting(&w);
  cmp_ok(fake_connections(s.fake), "==", 4, "no other is tried for a while");
  s.host.passed += 3600000;
  for (int i = 3; i < 8; i++)
    c[i] = take(&s);
  cmp_ok(fake_connections(s.fake), "==", 9, "later as many are made as the server has");
  cmp_ok(atomic_load(&n_lines), "==", 1, "and nothing is logged");
  for (int i = 0; i < 8; i++)
    pool_give_back(s.pool, c[i]);
  scene_end(&s);
}

/* ---- what is not given again ----------------------------------------------------------------- */

static void
serve_one(int fd, void *context)
{
  (void)context;
  if (fake_let_in(fd) && fake_read_request(fd)) {
    fake_row(fd, true, "yes", 3);
    fake_ready(fd, 'I');
  }
}

static void
serve_open_transaction(int fd, void *context)
{
  (void)context;
  if (!fake_let_in(fd))
    return;
  while (fake_read_request(fd)) {
    fake_row(fd, true, "yes", 3);
    fake_ready(fd, 'T');
  }
}

static void
serve_much(int fd, void *context)
{
  enum { MUCH = 17 << 20 };
  char *much = calloc(1, MUCH);

  (void)context;
  if (!much)
    BAIL_OUT("no memory");
  if (fake_let_in(fd))
    while (fake_read_request(fd)) {
      fake_row(fd, true, much, MUCH);
      fake_ready(fd, 'I');
    }
  free(much);
}

static void
test_not_again(void)
{
  static const struct {
    fake_serve_fn *serve;
    const char *name;
    int connections;
  } rows[] = {
    {serve, "one that works", 1},
    {serve_one, "one that the server has ended", 2},
    {serve_open_transaction, "one in a transaction", 2},
    {serve_much, "one that holds much memory", 2},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct scene s;

    scene_begin(&s, 1, rows[i].serve);
    struct connection *c = take(&s);
    cmp_ok(ask(&s, c), "==", DK_OK, "%s: it is used", rows[i].name);
    if (rows[i].serve == serve_one) {
      struct pollfd end = {.fd = PQsocket(c->pg), .events = POLLIN};
      char byte;
      cmp_ok(poll(&end, 1, -1), "==", 1, "something is there");
      cmp_ok(recv(end.fd, &byte, 1, MSG_PEEK), "==", 0, "the end");
    }
    pool_give_back(s.pool, c);
    c = take(&s);
    cmp_ok(fake_connections(s.fake), "==", rows[i].connections, "%s: then a new one or not",
           rows[i].name);
    pool_give_back(s.pool, c);
    scene_end(&s);
  }
}

/* One that lives is taken before one that would have to be made. */
static void
test_living_first(void)
{
  struct scene s;

  scene_begin(&s, 2, serve);
  struct connection *living = take(&s), *dead = take(&s);
  pool_give_back(s.pool, living);
  connection_close(dead);
  pool_give_back(s.pool, dead);
  ok(take(&s) == living, "the one that lives");
  cmp_ok(fake_connections(s.fake), "==", 2, "nothing is made");
  pool_give_back(s.pool, living);
  scene_end(&s);
}

static void
test_no_descriptors(void)
{
  struct rlimit before, none;
  struct connection *other;
  struct scene s;

  scene_begin(&s, 1, serve);
  struct connection *c = take(&s);
  if (getrlimit(RLIMIT_NOFILE, &before) != 0)
    BAIL_OUT("no limits");
  none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &none) != 0)
    BAIL_OUT("limits cannot be set");
  dk_status status = pool_take(s.pool, &s.call, &other, &s.why);
  setrlimit(RLIMIT_NOFILE, &before);
  cmp_ok(status, "==", DK_UNAVAILABLE, "no descriptor is left to wait with");
  has_words(s.why.text, "ulimit -n", "what to do");
  pool_give_back(s.pool, c);
  ok(take(&s) == c, "the pool is as it was");
  pool_give_back(s.pool, c);
  scene_end(&s);
}

int
main(void)
{
  plan(NO_PLAN);
  test_order(); /* what the libraries open once is open */
  int before = n_descriptors();
  test_queue();
  test_leaving();
  test_both();
  test_called_back_before();
  test_failing();
  test_full();
  test_growth();
  test_not_again();
  test_living_first();
  test_no_descriptors();
  cmp_ok(n_descriptors(), "==", before, "no descriptor is left");
  return done_testing();
}
