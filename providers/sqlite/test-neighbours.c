/* SPDX-License-Identifier: Apache-2.0 */
/* What callers cost each other: a clock that is behind, many tags, idle pollers, a call that is
 * cancelled, readers without end, a system without inotify. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "providers/shared/basics.h"
#include "providers/sqlite/test-handle.h"

/* ---- what they share ------------------------------------------------------------------------- */

static sqlite3 *
database(const char *name)
{
  sqlite3 *db;

  if (sqlite3_open(path_of(name), &db) != SQLITE_OK)
    BAIL_OUT("%s: %s", name, sqlite3_errmsg(db));
  return db;
}

static void
run(sqlite3 *db, const char *sql)
{
  if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
    BAIL_OUT("%s: %s", sql, sqlite3_errmsg(db));
}

/* A store that has what the SQL puts into it, for a handle that is opened afterwards. */
static void
given_rows(const char *name, const char *sql)
{
  struct handle_under_test h;

  open_store(&h, name);
  enqueue(&h, "first");
  close_store(&h);
  sqlite3 *db = database(name);
  run(db, sql);
  sqlite3_close(db);
}

static long
log_size(const char *name)
{
  char path[300];
  struct stat there;

  snprintf(path, sizeof path, "%s-wal", path_of(name));
  return stat(path, &there) == 0 ? (long)there.st_size : 0;
}

/* Real time, for an event that cannot be observed. */
static void
let_ms_pass(int ms)
{
  poll(NULL, 0, ms);
}

struct deed {
  struct handle_under_test h; /* with a caller of its own */
  enum { ENQUEUE, POLL_TURN, POLL_WORK } kind;
  int64_t wait_ms;
  dk_status status;
  pthread_t thread;
};

static int64_t
until(const struct deed *d)
{
  return dk_clock_system()->now(dk_clock_system()) + d->wait_ms;
}

static void *
do_it(void *context)
{
  struct deed *d = context;
  struct dk_item item = {.struct_size = sizeof item, .instance = text("deed"),
                         .payload = text("hello")};
  struct dk_fetch_turn turn = {.struct_size = sizeof turn, .lock_ms = LEASE,
                               .wait_until = until(d)};
  struct dk_fetch_work work = {.struct_size = sizeof work, .max_items = 1, .lock_ms = LEASE,
                               .owner = text("worker"), .wait_until = until(d)};
  struct dk_turn *ret_turn;
  struct dk_works *ret_works;

  if (d->kind == ENQUEUE)
    d->status = dk_store_enqueue_for_orchestrator(d->h.store, d->h.caller, &item);
  else if (d->kind == POLL_TURN)
    d->status = dk_store_fetch_orchestration_item(d->h.store, d->h.caller, &turn, &ret_turn);
  else
    d->status = dk_store_fetch_work_item(d->h.store, d->h.caller, &work, &ret_works);
  return NULL;
}

static void
start(struct deed *d, const struct handle_under_test *h)
{
  d->h = with_caller(h);
  if (pthread_create(&d->thread, NULL, do_it, d) != 0)
    BAIL_OUT("no thread");
}

/* It is done with that. */
static void
expect_done(struct deed *d, dk_status expected, const char *what)
{
  pthread_join(d->thread, NULL);
  if (!ok(d->status == expected, "%s", what))
    diag("status %d: %s", (int)d->status, dk_caller_failure(d->h.caller)->text);
  dk_caller_free(d->h.caller);
}

static void
enqueue_work(struct handle_under_test *h, uint64_t activity)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text("first"), .execution_id = 1,
                         .activity_id = activity, .payload = text("do")};

  if (dk_store_enqueue_for_worker(h->store, h->caller, &item) != DK_OK)
    BAIL_OUT("enqueue work: %s", dk_caller_failure(h->caller)->text);
}

/* ---- a clock that is behind ------------------------------------------------------------------ */

struct behind {
  struct dk_clock clock;
  int64_t ms;
};

static int64_t
now_behind(struct dk_clock *clock)
{
  return dk_clock_system()->now(dk_clock_system()) - ((struct behind *)clock)->ms;
}

static dk_status
wait_behind(struct dk_clock *clock, const struct dk_wait *wait)
{
  struct dk_wait shifted = *wait;

  if (shifted.until != INT64_MAX)
    shifted.until += ((struct behind *)clock)->ms;
  return dk_clock_system()->wait(dk_clock_system(), &shifted);
}

enum { ROUNDS = 4, SMALL_LOG = 512 << 10 };

static void
test_clock_behind(void)
{
  struct behind behind = {{now_behind, wait_behind}, 2000};
  struct handle_under_test fast, slow;

  given_rows("timers.db",
             "WITH RECURSIVE c(i) AS (SELECT 1000 UNION ALL SELECT i+1 FROM c WHERE i<11000)"
             " INSERT INTO instance(iid, ready_at, ready_seq, instance)"
             " SELECT i, 4000000000000, i, 'timer-'||i FROM c;"
             "INSERT INTO message(iid, visible_at, seq, enqueued_at, payload)"
             " SELECT iid, 4000000000000, iid, 1, x'00' FROM instance WHERE iid>=1000;"
             "UPDATE meta SET counter=1000000");
  open_store(&fast, "timers.db");
  open_store_by(&slow, "timers.db", &behind.clock);
  for (int i = 0; i < ROUNDS; i++) {
    enqueue(&fast, "fast");
    enqueue(&slow, "slow");
  }
  ok(log_size("timers.db") < SMALL_LOG,
     "a clock that is behind does not rewrite 10001 timers at each group: a log of %ld KiB",
     log_size("timers.db") / 1024);
  close_store(&slow);
  close_store(&fast);
}

/* ---- many tags ------------------------------------------------------------------------------- */

enum { TAGS = 100, OF_EACH = 50, MOST_ROWS = 1000 };

static void
test_tags(void)
{
  struct handle_under_test h;
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = OF_EACH,
                                  .lock_ms = LEASE, .owner = text("worker"),
                                  .tag_rule = DK_TAG_ANY};
  struct dk_works *works = NULL;
  uint64_t wrong = 0;

  given_rows("tags.db",
             "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i<4999)"
             " INSERT INTO work(iid, execution, activity, ready_at, seq, visible_at, tag, payload)"
             " SELECT 1, 1, i+1, 1, i+1, 1, 'tag-'||(i%100), x'00' FROM c;"
             "UPDATE meta SET counter=1000000");
  open_store(&h, "tags.db");
  forget_statements();
  dk_status status = dk_store_fetch_work_item(h.store, h.caller, &request, &works);
  size_t rows = n_rows();
  ok(status == DK_OK && works->n_items == OF_EACH, "a fetch under all tags brings what it may");
  for (size_t i = 0; status == DK_OK && i < works->n_items; i++)
    wrong += works->items[i].work.item->activity_id != i + 1;
  ok(wrong == 0, "those of all tags that are ready longest, in order");
  ok(rows < MOST_ROWS, "%d tags with %d items each: %zu rows are read", TAGS, OF_EACH, rows);
  close_store(&h);
}

/* ---- idle pollers ---------------------------------------------------------------------------- */

static atomic_int looks_for_turns, looks_for_work;

static void
count_looks(const char *path, const char *sql)
{
  (void)path;
  if (strstr(sql, "FROM instance WHERE ready_at<=?1"))
    atomic_fetch_add(&looks_for_turns, 1);
  else if (strstr(sql, "FROM work WHERE tag=?1 AND ready_at<="))
    atomic_fetch_add(&looks_for_work, 1);
}

/* It has looked twice, and waits: no further look is due. */
static void
until_it_has_looked(atomic_int *looks)
{
  while (atomic_load(looks) < 2)
    let_ms_pass(1);
  let_ms_pass(20);
  atomic_store(looks, 0);
}

static void
test_idle_pollers(void)
{
  struct handle_under_test h;
  struct deed work = {.kind = POLL_WORK, .wait_ms = LEASE};
  struct deed turn = {.kind = POLL_TURN, .wait_ms = LEASE};

  open_store(&h, "pollers.db");
  watch_statements(count_looks);
  start(&work, &h);
  until_it_has_looked(&looks_for_work);
  for (int i = 0; i < 20; i++) {
    enqueue(&h, "first");
    let_ms_pass(2);
  }
  ok(atomic_load(&looks_for_work) == 0,
     "a wait for work does not look when messages come (%d looks)",
     atomic_load(&looks_for_work));
  enqueue_work(&h, 1);
  expect_done(&work, DK_OK, "but has the work when it comes");
  fetch_turn(&h);
  atomic_store(&looks_for_turns, 0);
  start(&turn, &h);
  until_it_has_looked(&looks_for_turns);
  for (uint64_t i = 2; i < 22; i++) {
    enqueue_work(&h, i);
    let_ms_pass(2);
  }
  ok(atomic_load(&looks_for_turns) == 0,
     "a wait for a turn does not look when work comes (%d looks)",
     atomic_load(&looks_for_turns));
  enqueue(&h, "second");
  expect_done(&turn, DK_OK, "but has the turn when it comes");
  watch_statements(NULL);
  close_store(&h);
}

/* The bell's descriptor may be drained by either: each ring must reach its own. */
static void
test_no_ring_is_lost(void)
{
  struct handle_under_test h;

  open_store(&h, "rings.db");
  enqueue(&h, "first");
  fetch_turn(&h);
  for (uint64_t i = 0; i < 30; i++) {
    struct deed work = {.kind = POLL_WORK, .wait_ms = 30000};
    struct deed turn = {.kind = POLL_TURN, .wait_ms = 30000};
    char instance[32];
    snprintf(instance, sizeof instance, "inst-%d", (int)i);
    start(&work, &h);
    start(&turn, &h);
    let_ms_pass((int)(i % 3));
    enqueue_work(&h, i + 1);
    enqueue(&h, instance);
    pthread_join(work.thread, NULL);
    pthread_join(turn.thread, NULL);
    if (work.status != DK_OK || turn.status != DK_OK)
      fail("round %d: work %d, turn %d", (int)i, (int)work.status, (int)turn.status);
    dk_caller_free(work.h.caller);
    dk_caller_free(turn.h.caller);
  }
  pass("two pollers, two rings, in 30 rounds");
  close_store(&h);
}

/* ---- a call that is cancelled ---------------------------------------------------------------- */

static atomic_int begins;

static void
count_begins(const char *path, const char *sql)
{
  (void)path;
  if (strcmp(sql, "BEGIN IMMEDIATE") == 0)
    atomic_fetch_add(&begins, 1);
}

/* A program that does not know the lock file writes for a while. */
static void
test_cancelled_neighbour(void)
{
  struct handle_under_test h;
  struct deed running = {.kind = ENQUEUE}, cancelled = {.kind = ENQUEUE};
  struct dk_canceller *canceller = dk_canceller_new(NULL);

  open_store(&h, "neighbour.db");
  enqueue(&h, "first");
  sqlite3 *db = database("neighbour.db");
  run(db, "BEGIN IMMEDIATE");
  watch_statements(count_begins);
  start(&running, &h);
  while (atomic_load(&begins) == 0)
    let_ms_pass(1);
  cancelled.h = with_caller(&h);
  dk_caller_set_canceller(cancelled.h.caller, canceller);
  if (pthread_create(&cancelled.thread, NULL, do_it, &cancelled) != 0)
    BAIL_OUT("no thread");
  let_ms_pass(50);
  dk_cancel(canceller);
  pthread_join(cancelled.thread, NULL);
  cmp_ok(cancelled.status, "==", DK_CALL_CANCELLED, "a call behind the one that runs is cancelled");
  ok(strstr(dk_caller_failure(cancelled.h.caller)->text, "cancelled while other operations ran"),
     "and says what it waited for");
  dk_caller_free(cancelled.h.caller);
  let_ms_pass(30);
  watch_statements(NULL);
  run(db, "ROLLBACK");
  sqlite3_close(db);
  expect_done(&running, DK_OK, "and the one that runs waits on for the other program");
  dk_canceller_free(canceller);
  close_store(&h);
}

/* ---- no inotify ------------------------------------------------------------------------------ */

static atomic_bool is_deaf;

/* The plugin's calls find this first. */
__attribute__((visibility("default"))) int
inotify_init1(int flags)
{
  if (!atomic_load(&is_deaf))
    return (int)syscall(SYS_inotify_init1, flags);
  errno = EMFILE;
  return -1;
}

static int
hold_the_lock(const char *name)
{
  char path[300];
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

  snprintf(path, sizeof path, "%s-lock", path_of(name));
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0)
    BAIL_OUT("%s cannot be locked: %s", path, strerror(errno));
  return fd;
}

static void
test_deaf(void)
{
  struct handle_under_test h;
  struct deed behind = {.kind = ENQUEUE}, idle = {.kind = POLL_WORK, .wait_ms = 150};
  struct deed waiting = {.kind = POLL_TURN, .wait_ms = 30000};

  open_store(&h, "deaf.db");
  atomic_store(&is_deaf, true);
  start(&idle, &h);
  expect_done(&idle, DK_NOTHING, "without inotify a call still waits for work");
  start(&waiting, &h);
  let_ms_pass(30);
  enqueue(&h, "first");
  expect_done(&waiting, DK_OK, "and has it when it comes");
  int fd = hold_the_lock("deaf.db");
  start(&behind, &h);
  let_ms_pass(30);
  close(fd);
  expect_done(&behind, DK_OK, "and a process that holds the store is waited for");
  atomic_store(&is_deaf, false);
  close_store(&h);
}

/* ---- readers without end --------------------------------------------------------------------- */

/* Each reads for a while, and ends when the other has begun. */
struct relay {
  sem_t may_begin[2], may_end[2];
  atomic_bool is_over;
  atomic_llong longest_ms;      /* that one has read */
};
struct runner {
  struct relay *relay;
  int which;
  pthread_t thread;
};

static void
note_longest(struct relay *relay, int64_t ms)
{
  long long longest = atomic_load(&relay->longest_ms);

  while (ms > longest && !atomic_compare_exchange_weak(&relay->longest_ms, &longest, ms))
    continue;
}

static void *
read_in_turn(void *context)
{
  struct runner *r = context;
  int me = r->which, other = 1 - me;
  sqlite3 *db = database("readers.db");

  for (;;) {
    sem_wait(&r->relay->may_begin[me]);
    bool is_last = atomic_load(&r->relay->is_over);
    int64_t begin = real_ms();
    run(db, "BEGIN; SELECT counter FROM meta");
    sem_post(&r->relay->may_end[other]);
    let_ms_pass(30);
    sem_post(&r->relay->may_begin[other]);
    if (is_last)
      break;
    sem_wait(&r->relay->may_end[me]);
    run(db, "COMMIT");
    note_longest(r->relay, real_ms() - begin);
  }
  run(db, "COMMIT");
  sqlite3_close(db);
  return NULL;
}

enum { LARGE = 4 << 20, LARGE_ONES = 20, LARGE_LOG = 56 << 20,
       MOST_TO_READ_MS = 150 };

/* The log's largest size while large messages are stored beside such readers. */
static long
store_beside_readers(struct handle_under_test *h, struct relay *relay)
{
  struct runner runners[2];
  char *payload = calloc(1, LARGE);
  struct dk_item item = {.struct_size = sizeof item, .instance = text("large"),
                         .payload = {payload, LARGE}};
  long largest = 0;

  for (int i = 0; i < 2; i++) {
    sem_init(&relay->may_begin[i], 0, i == 0);
    sem_init(&relay->may_end[i], 0, 0);
  }
  for (int i = 0; i < 2; i++) {
    runners[i] = (struct runner){.relay = relay, .which = i};
    if (pthread_create(&runners[i].thread, NULL, read_in_turn, &runners[i]) != 0)
      BAIL_OUT("no thread");
  }
  for (int i = 0; i < LARGE_ONES; i++) {
    if (dk_store_enqueue_for_orchestrator(h->store, h->caller, &item) != DK_OK)
      BAIL_OUT("enqueue: %s", dk_caller_failure(h->caller)->text);
    if (log_size("readers.db") > largest)
      largest = log_size("readers.db");
  }
  atomic_store(&relay->is_over, true);
  for (int i = 0; i < 2; i++)
    pthread_join(runners[i].thread, NULL);
  free(payload);
  return largest;
}

/* The plugin waits for a reader for 200 ms at first.  Where the machine is so busy that one of
 * these takes longer, it need not end before; then again. */
static void
test_readers(void)
{
  const char *what = "readers that overlap do not keep the log from beginning anew";
  struct relay relay;
  struct handle_under_test h;
  long largest;
  int rounds = 0;

  do {
    relay = (struct relay){.is_over = false};
    open_store(&h, "readers.db");
    enqueue(&h, "first");
    largest = store_beside_readers(&h, &relay);
    close_store(&h); /* which cuts the log */
  } while (largest >= LARGE_LOG && relay.longest_ms > MOST_TO_READ_MS && ++rounds < ROUNDS);
  if (largest >= LARGE_LOG && relay.longest_ms > MOST_TO_READ_MS)
    skip(1, "the machine is too busy: a reader of 30 ms took %lld ms", (long long)relay.longest_ms);
  else
    ok(largest < LARGE_LOG, "%s: %ld MiB", what, largest >> 20);
}

int
main(void)
{
  begin();
  test_clock_behind();
  test_tags();
  test_idle_pollers();
  test_no_ring_is_lost();
  test_cancelled_neighbour();
  test_deaf();
  test_readers();
  end();
  return done_testing();
}
