/* SPDX-License-Identifier: Apache-2.0 */
/* CALL-7: a change by another handle wakes a waiting fetch by a notification; and what can happen
 * to the connection for them.  Nothing here is judged by how long it took: the waiting handle's
 * clock records how long each wait was to last, and what has ended it.  And the cost of waiting for
 * the server, counted at the wire. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-handle.h"
#include "providers/pg/test-wire.h"

static const char schema[] = "bell \"of\" $$ 'test'";

/* ---- a clock that remembers waits ------------------------------------------------------------ */

enum { LONG_MS = 3000 };  /* more than any short patience, less than the long one */

/* Under `mutex` but for the first. */
struct watched_clock {
  struct dk_clock clock;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int64_t patience;       /* of the wait that is under way or was last; 0: none yet */
  size_t n_waits;         /* for work, begun */
  dk_status ended;        /* how the last one ended; -1: it has not */
  size_t n_patient;       /* that are under way and are to last long */
  size_t n_woken;         /* that something ended but the time */
};

static int64_t
watched_now(struct dk_clock *clock)
{
  (void)clock;
  return dk_clock_system()->now(dk_clock_system());
}

static void
remember(struct watched_clock *watched, int64_t patience, dk_status ended)
{
  pthread_mutex_lock(&watched->mutex);
  watched->patience = patience;
  watched->n_waits += ended == -1;
  watched->n_woken += ended == DK_OK;
  if (patience > LONG_MS)
    watched->n_patient += ended == -1 ? 1 : (size_t)-1;
  watched->ended = ended;
  pthread_cond_broadcast(&watched->changed);
  pthread_mutex_unlock(&watched->mutex);
}

static dk_status
watched_wait(struct dk_clock *clock, const struct dk_wait *wait)
{
  struct watched_clock *watched = (struct watched_clock *)clock;
  int64_t patience = wait->until - watched_now(clock);

  if (wait->events & DK_WAIT_ANSWER)
    return dk_clock_system()->wait(dk_clock_system(), wait);
  remember(watched, patience, -1);
  dk_status status = dk_clock_system()->wait(dk_clock_system(), wait);
  remember(watched, patience, status);
  return status;
}

static void
watched_init(struct watched_clock *watched)
{
  *watched = (struct watched_clock){.clock = {.now = watched_now, .wait = watched_wait}};
  pthread_mutex_init(&watched->mutex, NULL);
  pthread_cond_init(&watched->changed, NULL);
}

/* Waits until a wait with a long, or a short, patience is under way; then it stays under way. */
static void
until_patience_is(struct watched_clock *watched, bool is_long)
{
  pthread_mutex_lock(&watched->mutex);
  while (watched->ended != -1 || watched->patience == 0 ||
         (watched->patience > LONG_MS) != is_long)
    pthread_cond_wait(&watched->changed, &watched->mutex);
  pthread_mutex_unlock(&watched->mutex);
}

static void
until_patient(struct watched_clock *watched, size_t n)
{
  pthread_mutex_lock(&watched->mutex);
  while (watched->n_patient < n)
    pthread_cond_wait(&watched->changed, &watched->mutex);
  pthread_mutex_unlock(&watched->mutex);
}

static size_t
count_woken(struct watched_clock *watched)
{
  pthread_mutex_lock(&watched->mutex);
  size_t n = watched->n_woken;
  pthread_mutex_unlock(&watched->mutex);
  return n;
}

/* The longest patience of the next `n` waits. */
static int64_t
longest_of(struct watched_clock *watched, size_t n)
{
  int64_t longest = 0;

  pthread_mutex_lock(&watched->mutex);
  for (size_t end = watched->n_waits + n; watched->n_waits < end;) {
    pthread_cond_wait(&watched->changed, &watched->mutex);
    longest = watched->patience > longest ? watched->patience : longest;
  }
  pthread_mutex_unlock(&watched->mutex);
  return longest;
}

/* ---- a fetch that waits ---------------------------------------------------------------------- */

struct waiting {
  struct handle_under_test h;
  struct dk_canceller *canceller;
  pthread_t thread;
  dk_status status;
};

static void *
fetch_and_wait(void *argument)
{
  struct waiting *w = argument;
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE,
                                  .wait_until = INT64_MAX};
  struct dk_turn *turn;

  w->status = dk_store_fetch_orchestration_item(w->h.store, w->h.caller, &request, &turn);
  return NULL;
}

static void
begin_waiting(struct waiting *w, const struct handle_under_test *h)
{
  *w = (struct waiting){.h = with_caller(h), .canceller = dk_canceller_new(NULL)};
  dk_caller_set_canceller(w->h.caller, w->canceller);
  if (pthread_create(&w->thread, NULL, fetch_and_wait, w) != 0)
    BAIL_OUT("no thread");
}

static dk_status
end_waiting(struct waiting *w)
{
  pthread_join(w->thread, NULL);
  dk_caller_free(w->h.caller);
  dk_canceller_free(w->canceller);
  return w->status;
}

/* ---- what the server knows ------------------------------------------------------------------- */

/* Asks until the condition holds; gives up after half a minute. */
static bool
becomes(PGconn *pg, const char *question)
{
  bool is_so = false;

  for (int i = 0; i < 3000 && !is_so; i++) {
    char *answer = sql_value(pg, "SELECT %s", question);
    is_so = strcmp(answer, "t") == 0;
    free(answer);
    if (!is_so)
      free(sql_value(pg, "SELECT pg_catalog.pg_sleep(0.01)"));
  }
  return is_so;
}

static PGconn *
connect_into_schema(void)
{
  PGconn *pg = connect_to(getenv("DURAKIT_PG"));
  char *quoted = PQescapeIdentifier(pg, schema, strlen(schema));

  sql(pg, "SET search_path = %s", quoted);
  PQfreemem(quoted);
  return pg;
}

/* How many notifications this session was sent. */
static int
count_notifications(PGconn *pg)
{
  PGnotify *n;
  int count = 0;

  sql(pg, "SELECT 1");
  while ((n = PQnotifies(pg)) != NULL) {
    PQfreemem(n);
    count++;
  }
  return count;
}

/* ---- tests ----------------------------------------------------------------------------------- */

struct bells {
  struct watched_clock clock;
  struct handle_under_test here, there; /* the waiter's, another */
  PGconn *pg;
};

/* The wait that the other's message ends would have lasted for seconds more: its bell ends it. */
static void
test_other_handle_wakes(struct bells *t)
{
  struct waiting w;

  begin_waiting(&w, &t->here);
  until_patience_is(&t->clock, true);
  ok(becomes(t->pg, "count(*) = 1 FROM listener"), "a waiting handle is registered");
  enqueue(&t->there, "other");
  cmp_ok(end_waiting(&w), "==", DK_OK, "the fetch brings what another handle has enqueued");
  cmp_ok(t->clock.ended, "==", DK_OK, "a notification has woken it");
}

/* A process that stores one message and ends, as commands do. */
static void
test_closing_handle_wakes(struct bells *t)
{
  struct handle_under_test brief;
  struct waiting w;

  begin_waiting(&w, &t->here);
  until_patience_is(&t->clock, true);
  open_store(&brief, getenv("DURAKIT_PG"), schema);
  enqueue(&brief, "brief");
  close_store(&brief);
  cmp_ok(end_waiting(&w), "==", DK_OK, "the fetch brings what a handle has enqueued and left");
  cmp_ok(t->clock.ended, "==", DK_OK, "a notification has woken it");
}

static void
test_who_is_told(struct bells *t)
{
  struct waiting w;

  sql(t->pg, "DO $do$ BEGIN EXECUTE 'LISTEN durakit_' || (SELECT store FROM meta); END $do$");
  begin_waiting(&w, &t->here);
  until_patience_is(&t->clock, true);
  enqueue(&t->here, "own");
  cmp_ok(end_waiting(&w), "==", DK_OK, "the fetch brings what its own handle has enqueued");
  cmp_ok(count_notifications(t->pg), "==", 0, "while no other handle listens, none is notified");
  sql(t->pg, "INSERT INTO listener(number) VALUES (4711)");
  enqueue(&t->here, "told");
  int n = 0;
  for (int i = 0; i < 3000 && n == 0; i++) {
    n = count_notifications(t->pg);
    if (n == 0)
      free(sql_value(t->pg, "SELECT pg_catalog.pg_sleep(0.01)"));
  }
  cmp_ok(n, "==", 1, "while another handle listens, it is notified");
  ok(becomes(t->pg, "count(*) = 0 FROM listener WHERE number = 4711"),
     "a listener without a session is removed");
  sql(t->pg, "UNLISTEN *");
  fetch_turn(&t->here);
}

/* Waiters of one group are woken one after the other, and each that finds something wakes more. */
static void
test_many_waiters(struct bells *t)
{
  enum { N = 12, MOST_WOKEN = 3 };
  struct waiting w[N];
  char name[16];

  for (int i = 0; i < N; i++)
    begin_waiting(&w[i], &t->here);
  until_patient(&t->clock, N);
  size_t before = count_woken(&t->clock);
  enqueue(&t->there, "for-one");
  for (bool is_taken = false; !is_taken;) {
    free(sql_value(t->pg, "SELECT pg_catalog.pg_sleep(0.01)"));
    char *epoch = sql_value(t->pg, "SELECT epoch FROM instance WHERE instance = 'for-one'");
    is_taken = strcmp(epoch, "0") != 0;
    free(epoch);
  }
  until_patient(&t->clock, N - 1);
  cmp_ok(count_woken(&t->clock) - before, "<=", MOST_WOKEN,
         "a message for one of %d waiters wakes few", N);
  for (int i = 1; i < N; i++) {
    snprintf(name, sizeof name, "burst-%d", i);
    enqueue(i % 2 ? &t->here : &t->there, name);
  }
  size_t n_found = 0;
  for (int i = 0; i < N; i++)
    n_found += end_waiting(&w[i]) == DK_OK;
  cmp_ok(n_found, "==", N, "and of %d messages each waiter brings one", N);
}

/* Ends the session of the listener: it is registered anew, as another. */
static void
test_listener_is_cut(struct bells *t)
{
  struct waiting w;
  char question[200];

  begin_waiting(&w, &t->here);
  until_patience_is(&t->clock, true);
  char *number = sql_value(t->pg, "SELECT max(number) FROM listener");
  sql(t->pg, "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_locks"
      " WHERE locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) = %s", number);
  snprintf(question, sizeof question,
           "count(*) = 1 AND min(number) <> %s FROM listener", number);
  ok(becomes(t->pg, question), "a listener whose session was ended registers again");
  until_patience_is(&t->clock, true);
  enqueue(&t->there, "again");
  cmp_ok(end_waiting(&w), "==", DK_OK, "and what another handle has enqueued comes");
  cmp_ok(t->clock.ended, "==", DK_OK, "and it is notified again");
  free(number);
}

/* A transaction that asked for listeners before the listener existed will notify none. */
static void
test_writer_that_does_not_know(struct bells *t)
{
  struct handle_under_test late;
  struct watched_clock clock;
  struct waiting w;

  watched_init(&clock);
  sql(t->pg, "BEGIN");
  free(sql_value(t->pg, "SELECT status FROM enqueue_message(NULL, 5000, 'unheard', NULL, 0, 0,"
                 " '')"));
  let_clock_be(&clock.clock);
  open_store(&late, getenv("DURAKIT_PG"), schema);
  let_clock_be(NULL);
  begin_waiting(&w, &late);
  until_patience_is(&clock, false);
  cmp_ok(longest_of(&clock, 6), "<", LONG_MS,
         "while a transaction writes that does not know of the listener, patience is short");
  sql(t->pg, "COMMIT");
  cmp_ok(end_waiting(&w), "==", DK_OK, "what it has written comes");
  begin_waiting(&w, &late);
  until_patience_is(&clock, true);
  pass("when it has ended, patience is long");
  dk_cancel(w.canceller);
  cmp_ok(end_waiting(&w), "==", DK_CALL_CANCELLED, "and a fetch can be cancelled");
  close_store(&late);
}

/* Behind a pooler the session that answers is another than the one that the client was given. */
static void
test_pooler(struct bells *t)
{
  char *is_taken = sql_value(t->pg, "SELECT listen(4712, 1)");
  char *n = sql_value(t->pg, "SELECT count(*) FROM listener WHERE number = 4712");

  is(is_taken, "f", "a session that was lent out cannot listen");
  is(n, "0", "and is not registered");
  free(is_taken);
  free(n);
}

/* ---- what waiting costs ---------------------------------------------------------------------- */

enum { IDLE = 12, IDLE_MS = 3000 };

/* While so many wait, no more than they may ask: each `n_first` times, and then once in
 * `patience`. */
static void
expect_quiet(struct wire *wire, int n_first, int64_t patience, const char *name)
{
  struct dk_clock *clock = dk_clock_system();
  int64_t from = clock->now(clock);

  wire_forget(wire);
  clock->wait(clock, &(struct dk_wait){.fd = -1, .cancel_fd = -1, .until = from + IDLE_MS});
  struct wire_counts counts = wire_counts(wire);
  int64_t passed = clock->now(clock) - from;
  int64_t most = IDLE * (n_first + passed / patience + 1);
  cmp_ok(counts.round_trips, "<=", most, "%s: %d fetches that wait ask the server %zu times in %lld"
         " ms, of at most %lld", name, (int)IDLE, counts.round_trips, (long long)passed,
         (long long)most);
}

static void
wait_idly(struct wire *wire, bool is_lent)
{
  struct handle_under_test h;
  struct watched_clock clock;
  struct waiting w[IDLE];

  watched_init(&clock);
  let_clock_be(&clock.clock);
  open_store(&h, wire_conninfo(wire), schema);
  let_clock_be(NULL);
  for (int i = 0; i < IDLE; i++)
    begin_waiting(&w[i], &h);
  if (is_lent) {
    /* 20, 40, ... 640 ms, and then each second. */
    expect_quiet(wire, 7, 1000, "behind a pooler");
  } else {
    until_patient(&clock, IDLE);
    expect_quiet(wire, 0, 5000, "notified of what others do");
  }
  int n_cancelled = 0;
  for (int i = 0; i < IDLE; i++) {
    dk_cancel(w[i].canceller);
    n_cancelled += end_waiting(&w[i]) == DK_CALL_CANCELLED;
  }
  cmp_ok(n_cancelled, "==", IDLE, "all of them waited all the time");
  close_store(&h);
}

static void
test_idle(void)
{
  struct wire *wire = wire_new(getenv("DURAKIT_PG"));

  if (!wire) {
    skip(4, "the server of DURAKIT_PG is on no unix socket");
    return;
  }
  wait_idly(wire, false);
  wire_pose_as_pooler(wire);
  wait_idly(wire, true);
  wire_free(wire);
}

/* ---- a server that is stopped ---------------------------------------------------------------- */

static void
run_command(const char *variable)
{
  if (system(getenv(variable)) != 0)
    BAIL_OUT("%s has failed", variable);
}

/* CALL-8: whatever the listener is at. */
static void
test_close_while_server_stands_still(struct bells *t)
{
  struct waiting w;

  if (!getenv("DURAKIT_PG_PAUSE") || !getenv("DURAKIT_PG_RESUME")) {
    close_store(&t->here);
    close_store(&t->there);
    skip(2, "DURAKIT_PG_PAUSE and DURAKIT_PG_RESUME are not set");
    return;
  }
  begin_waiting(&w, &t->here);
  until_patience_is(&t->clock, true);
  run_command("DURAKIT_PG_PAUSE");
  dk_cancel(w.canceller);
  cmp_ok(end_waiting(&w), "==", DK_CALL_CANCELLED,
         "a waiting fetch is cancelled while the server is stopped");
  close_store(&t->here);
  close_store(&t->there);
  pass("and both handles are closed");
  run_command("DURAKIT_PG_RESUME");
}

int
main(void)
{
  const char *conninfo = getenv("DURAKIT_PG");
  struct bells t;

  begin();
  destroy_store(conninfo, schema);
  watched_init(&t.clock);
  let_clock_be(&t.clock.clock);
  open_store(&t.here, conninfo, schema);
  let_clock_be(NULL);
  open_store(&t.there, conninfo, schema);
  t.pg = connect_into_schema();
  test_other_handle_wakes(&t);
  test_closing_handle_wakes(&t);
  test_who_is_told(&t);
  test_many_waiters(&t);
  test_listener_is_cut(&t);
  test_writer_that_does_not_know(&t);
  test_pooler(&t);
  test_idle();
  test_close_while_server_stands_still(&t);
  PQfinish(t.pg);
  destroy_store(conninfo, schema);
  end();
  return done_testing();
}
