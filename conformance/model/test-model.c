/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the model itself, beside those that the kit makes of it: each operation once, threads,
 * long polls, mass cancellation against the clock, and the choice of mutants. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conformance/contract/mutants.h"
#include "conformance/model/test-handle.h"
#include "conformance/tap/tap.h"

/* ---- each operation once --------------------------------------------------------------------- */

static void
each_operation(const char *path)
{
  struct handle h;
  void *region;
  struct dk_virtual_clock *clock = new_clock(&region);
  struct dk_item item = {.struct_size = sizeof item, .instance = text("tool"), .execution_id = 1,
                         .activity_id = 9, .tag = text("gpu"), .payload = text("direct")};
  struct dk_read_history asked = {.struct_size = sizeof asked, .instance = text("inst")};
  struct dk_history *history;
  struct dk_turn *turn;
  struct dk_work_item *work;
  struct dk_bytes token;

  open_handle(&h, clock, path);
  note("%s", path ? "in a file" : "in memory");
  cmp_ok(enqueue(&h, "inst", "start"), "==", DK_OK, "enqueue_for_orchestrator");
  cmp_ok(enqueue(&h, "inst", "start"), "==", DK_DUPLICATE, "the same id again");
  ok(strstr(dk_caller_failure(h.caller)->text, "enqueue_for_orchestrator"),
     "and the text names the operation");
  turn = fetch_turn(&h);
  ok(turn && same(turn->head.instance, "inst") && !turn->head.known && turn->n_messages == 1,
     "fetch_orchestration_item");
  token = kept(turn->head.lock_token);
  cmp_ok(dk_store_renew_orchestration_item_lock(h.store, h.caller, token, 1000), "==", DK_OK,
         "renew_orchestration_item_lock");
  cmp_ok(dk_store_abandon_orchestration_item(h.store, h.caller, token, 500, 1), "==", DK_OK,
         "abandon_orchestration_item");
  ok(!fetch_turn(&h), "nothing comes before the delay has passed");
  dk_virtual_clock_advance(clock, 0, START + 500);
  turn = fetch_turn(&h);
  ok(turn && turn->messages[0].attempt == 1, "then it comes, and the abandon was not counted");
  token = kept(turn->head.lock_token);
  cmp_ok(commit_first(&h, token, 2), "==", DK_OK, "ack_orchestration_item");
  cmp_ok(commit_first(&h, token, 0), "==", DK_LOCK_LOST, "the token is used up");
  work = fetch_work(&h);
  ok(work && work->item.activity_id == 1 && work->work.attempt == 1, "fetch_work_item");
  token = kept(work->work.lock_token);
  cmp_ok(dk_store_renew_work_item_lock(h.store, h.caller, token, 1000), "==", DK_OK,
         "renew_work_item_lock");
  cmp_ok(dk_store_abandon_work_item(h.store, h.caller, token, 0, 0), "==", DK_OK,
         "abandon_work_item");
  work = fetch_work(&h);
  ok(work && work->item.activity_id == 2, "the one that waited longest is next");
  token = kept(work->work.lock_token);
  cmp_ok(ack_work(&h, token, "inst"), "==", DK_OK, "ack_work_item");
  cmp_ok(dk_store_enqueue_for_worker(h.store, h.caller, &item), "==", DK_OK, "enqueue_for_worker");
  cmp_ok(dk_store_enqueue_for_worker(h.store, h.caller, &item), "==", DK_DUPLICATE,
         "the same identity again");
  cmp_ok(dk_store_read_history(h.store, h.caller, &asked, &history), "==", DK_OK, "read_history");
  ok(history->found && history->n_events == 1 && same(history->events[0].payload, "began"),
     "it brings the event");
  turn = fetch_turn(&h);
  ok(turn && turn->head.known && turn->n_events == 1 && same(turn->messages[0].payload, "done"),
     "the completion comes with the history");
  close_handle(&h);
  dk_virtual_clock_done(clock);
  free(region);
}

/* ---- threads, and long polls ----------------------------------------------------------------- */

struct actor {
  struct handle h; /* the store, with a caller of its own */
  int number;
  dk_status status;
};

static void *
work_hard(void *argument)
{
  struct actor *a = argument;
  char instance[16];

  snprintf(instance, sizeof instance, "i%d", a->number);
  for (int i = 0; i < 20; i++) {
    struct dk_turn *turn;
    dk_status sent = enqueue(&a->h, instance, NULL);
    a->status = a->status == DK_OK ? sent : a->status;
    if (!(turn = fetch_turn(&a->h)))
      continue;
    struct dk_bytes token = kept(turn->head.lock_token);
    sent = dk_store_abandon_orchestration_item(a->h.store, a->h.caller, token, 0, 0);
    a->status = a->status == DK_OK ? sent : a->status;
  }
  return NULL;
}

static void *
wait_for_turn(void *argument)
{
  struct actor *a = argument;
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE,
                                  .wait_until = INT64_MAX};
  struct dk_turn *turn;

  a->status = dk_store_fetch_orchestration_item(a->h.store, a->h.caller, &request, &turn);
  return NULL;
}

static void
run(pthread_t *thread, struct actor *a, struct handle *h, void *(*body)(void *), int number)
{
  *a = (struct actor){.h = {.store = h->store, .caller = dk_caller_new(NULL, 0)},
                      .number = number};
  if (pthread_create(thread, NULL, body, a) != 0)
    BAIL_OUT("no thread");
}

static void
threads(const char *path)
{
  enum { THREADS = 4 };
  pthread_t ids[THREADS];
  struct actor actors[THREADS];
  struct handle h, other;
  size_t n = 0;

  open_handle(&h, NULL, path);
  if (path)
    open_handle(&other, NULL, path);
  for (int i = 0; i < THREADS; i++)
    run(&ids[i], &actors[i], path && i % 2 ? &other : &h, work_hard, i);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(ids[i], NULL);
    cmp_ok(actors[i].status, "==", DK_OK, "thread %d was never refused", i);
    dk_caller_free(actors[i].h.caller);
  }
  for (struct dk_turn *turn; (turn = fetch_turn(&h));)
    n += turn->n_messages;
  cmp_ok(n, "==", THREADS * 20, "all that they sent is stored");
  if (path)
    close_handle(&other);
  close_handle(&h);
}

static void
long_polls(void)
{
  struct handle h, other;
  struct actor a;
  pthread_t id;
  const char *path = store_path("poll");

  open_handle(&h, NULL, NULL);
  run(&id, &a, &h, wait_for_turn, 0);
  enqueue(&h, "inst", NULL);
  pthread_join(id, NULL);
  cmp_ok(a.status, "==", DK_OK, "in memory: a waiting fetch brings what is sent meanwhile");
  dk_caller_free(a.h.caller);
  close_handle(&h);

  open_handle(&h, NULL, path);
  run(&id, &a, &h, wait_for_turn, 0);
  pid_t sender = fork();
  if (sender == 0) {
    open_handle(&other, NULL, path);
    _exit(enqueue(&other, "inst", NULL) == DK_OK ? 0 : 1);
  }
  pthread_join(id, NULL);
  waitpid(sender, NULL, 0);
  cmp_ok(a.status, "==", DK_OK, "in a file: another process wakes it");
  dk_caller_free(a.h.caller);
  close_handle(&h);
}

/* A call that waits for the file's lock, which another process holds, returns when it is
 * cancelled. */
static void
cancelled_behind_the_lock(void)
{
  struct handle h;
  struct actor a;
  pthread_t id;
  struct dk_canceller *canceller = dk_canceller_new(NULL);
  const char *path = store_path("behind");
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

  open_handle(&h, NULL, path);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  ok(fcntl(fd, F_OFD_SETLK, &lock) == 0, "another descriptor has the file's lock");
  a = (struct actor){.h = {.store = h.store, .caller = dk_caller_new(NULL, 0)}};
  dk_caller_set_canceller(a.h.caller, canceller);
  if (pthread_create(&id, NULL, wait_for_turn, &a) != 0)
    BAIL_OUT("no thread");
  dk_cancel(canceller);
  pthread_join(id, NULL);
  cmp_ok(a.status, "==", DK_CALL_CANCELLED, "a call behind it ends on cancel");
  close(fd);
  cmp_ok(enqueue(&h, "inst", NULL), "==", DK_OK, "and the lock is free after its holder");
  dk_caller_free(a.h.caller);
  dk_canceller_free(canceller);
  close_handle(&h);
}

/* ---- many rows, and mutants ------------------------------------------------------------------ */

/* Time of this thread on a processor: others that want one do not count. */
static int64_t
milliseconds(void)
{
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* How long one commit takes that cancels n rows, beside n of another instance. */
static int64_t
cancel_many(size_t n)
{
  struct handle h;
  struct dk_commit_outcome outcome = {.n_stolen = 0};

  open_handle(&h, NULL, NULL);
  enqueue(&h, "other", NULL);
  commit_first(&h, kept(fetch_turn(&h)->head.lock_token), n);
  enqueue(&h, "inst", NULL);
  commit_first(&h, kept(fetch_turn(&h)->head.lock_token), n);
  enqueue(&h, "inst", NULL);
  struct dk_bytes token = kept(fetch_turn(&h)->head.lock_token);
  int64_t began = milliseconds();
  cmp_ok(commit_cancelling(&h, token, n, &outcome), "==", DK_OK, "one commit deletes %zu rows", n);
  int64_t took = milliseconds() - began;
  cmp_ok(outcome.report.free_rows, "==", n, "all of them are reported");
  close_handle(&h);
  return took;
}

static void
many_rows(void)
{
  int64_t few = cancel_many(10000), many = cancel_many(100000);

  note("10,000 rows took %lld ms, 100,000 took %lld ms", (long long)few, (long long)many);
  cmp_ok(many, "<", 40 * (few + 10), "time grows with the rows, not with their square");
}

/* TIME-7: by the store's clock, too, what is delayed comes when it is due, and ends a wait then. */
static void
by_its_own_clock(void)
{
  enum { DELAY = 30, LONG = 20000 };
  struct handle h;
  const char *path = store_path("own-clock");
  struct dk_item item = {.struct_size = sizeof item, .instance = text("inst"),
                         .payload = text("hello"), .delay_ms = DELAY};
  int64_t start = dk_clock_system()->now(dk_clock_system());
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE,
                                  .wait_until = start + LONG};
  struct dk_turn *turn = NULL;

  if (open_by_its_own_clock(&h, path) != DK_OK)
    BAIL_OUT("open: %s", dk_caller_failure(h.caller)->text);
  cmp_ok(dk_store_enqueue_for_orchestrator(h.store, h.caller, &item), "==", DK_OK, "enqueue");
  cmp_ok(dk_store_fetch_orchestration_item(h.store, h.caller, &request, &turn), "==", DK_OK,
         "a fetch waits for what is delayed by the store's clock");
  if (turn) {
    cmp_ok(turn->head.now, ">=", start + DELAY, "it is not early");
    cmp_ok(turn->head.lease_left_ms, ">", 0, "its lease is by that clock too");
  }
  close_handle(&h);
  cmp_ok(open_with(&h, NULL, path, NULL, 0), "==", DK_REFUSED, "by the host's it is refused");
  ok(strstr(dk_caller_failure(h.caller)->text, "clock"), "and the text names the clock");
  close_handle(&h);
}

static void
mutants(void)
{
  size_t n, opened = 0, shortest = SIZE_MAX;
  struct handle h;
  const struct dk_mutant *all = dk_mutants(&n);

  for (size_t i = 0; i < n; i++) {
    if (dk_mutant_number(all[i].id) != (int32_t)i)
      fail("%s does not have its number", all[i].id);
    if (strlen(all[i].id) < shortest)
      shortest = strlen(all[i].id);
    if (i == M_CALL_CLOSE_LEAVES_MEMORY)
      continue; /* this program leaves none, under memcheck too */
    opened += open_with(&h, NULL, NULL, all[i].id, DK_OPEN_CREATE) == DK_OK;
    close_handle(&h);
  }
  cmp_ok(opened, "==", n - 1, "each mutant can be chosen, but for the one that leaks");
  cmp_ok(open_with(&h, NULL, NULL, "cancel/only-unlockt", 0), "==", DK_INVALID,
         "one that does not exist cannot");
  ok(strstr(dk_caller_failure(h.caller)->text, "\"cancel/only-unlocked\""),
     "and the nearest is named");
  close_handle(&h);
  is(dk_mutant_nearest("turn/brith-changes"), "turn/birth-changes", "the nearest mutant");
  cmp_ok(strlen(dk_mutant_nearest("")), "==", shortest, "the nearest to nothing is the shortest");
}

int
main(void)
{
  plan(NO_PLAN);
  begin();
  each_operation(NULL);
  each_operation(store_path("each"));
  threads(NULL);
  threads(store_path("threads"));
  long_polls();
  cancelled_behind_the_lock();
  many_rows();
  by_its_own_clock();
  mutants();
  end();
  return done_testing();
}
