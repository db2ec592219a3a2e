/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the model's log: reopened, shared, torn, damaged, destroyed, and written by a process
 * that is killed. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/model/test-handle.h"
#include "conformance/tap/tap.h"

static struct dk_library *library; /* the model */

/* ---- the log --------------------------------------------------------------------------------- */

static void
reopened(void)
{
  struct handle h;
  void *region;
  struct dk_virtual_clock *clock = new_clock(&region);
  const char *path = store_path("reopened");
  struct stat file;
  struct dk_commit_outcome outcome;
  struct dk_turn *turn;

  open_handle(&h, clock, path);
  enqueue(&h, "inst", NULL);
  commit_first(&h, kept(fetch_turn(&h)->head.lock_token), 3);
  struct dk_bytes work = kept(fetch_work(&h)->work.lock_token);
  enqueue(&h, "inst", "m");
  struct dk_bytes held = kept(fetch_turn(&h)->head.lock_token);
  close_handle(&h);

  ok(stat(path, &file) == 0 && (file.st_mode & 0777) == 0600, "the file is the owner's alone");
  open_handle(&h, clock, path);
  ok(!fetch_turn(&h), "after reopening the turn is still locked");
  cmp_ok(dk_store_renew_work_item_lock(h.store, h.caller, work, LEASE), "==", DK_OK,
         "and the old token of the work still lives");
  cmp_ok(enqueue(&h, "inst", "m"), "==", DK_DUPLICATE, "the message is still stored");
  cmp_ok(commit_cancelling(&h, held, 3, &outcome), "==", DK_OK, "the old token commits");
  cmp_ok(outcome.report.locked_rows, "==", 1, "one row was locked");
  cmp_ok(outcome.report.free_rows, "==", 2, "two were free");
  ok(outcome.n_stolen == 1 && same(outcome.stolen[0].owner, "worker") &&
       same(outcome.stolen[0].lock_token, work.ptr),
     "the locked one is reported with token and holder");
  cmp_ok(ack_work(&h, work, "inst"), "==", DK_LOCK_LOST, "its worker has lost it");
  enqueue(&h, "inst", NULL);
  turn = fetch_turn(&h);
  ok(turn && turn->head.birth && !same(turn->head.lock_token, held.ptr),
     "a token is never repeated");
  close_handle(&h);
  dk_virtual_clock_done(clock);
  free(region);
}

static void
two_handles(void)
{
  struct handle a, b;
  void *region;
  struct dk_virtual_clock *clock = new_clock(&region);
  const char *path = store_path("two");

  open_handle(&a, clock, path);
  open_handle(&b, clock, path);
  enqueue(&a, "inst", NULL);
  struct dk_bytes first = kept(fetch_turn(&b)->head.lock_token);
  ok(!fetch_turn(&a), "what one handle holds the other does not get");
  dk_store_abandon_orchestration_item(b.store, b.caller, first, 0, 0);
  struct dk_bytes second = kept(fetch_turn(&a)->head.lock_token);
  ok(!same(second, first.ptr), "two handles never give one token");
  cmp_ok(commit_first(&b, second, 0), "==", DK_OK, "a token is good with any handle");
  close_handle(&a);
  close_handle(&b);
  dk_virtual_clock_done(clock);
  free(region);
}

/* Which messages a turn took is in the log, not in the order that a handle keeps them in. */
static void
other_order(void)
{
  struct handle h;
  void *region;
  struct dk_virtual_clock *clock = new_clock(&region);
  const char *path = store_path("order");
  struct dk_fetch_turn one = {.struct_size = sizeof one, .max_messages = 1, .lock_ms = LEASE};
  struct dk_turn *turn;

  if (open_with(&h, clock, path, "queue/newest-first", DK_OPEN_CREATE) != DK_OK)
    BAIL_OUT("no mutant");
  enqueue(&h, "inst", "old");
  enqueue(&h, "inst", "new");
  cmp_ok(dk_store_fetch_orchestration_item(h.store, h.caller, &one, &turn), "==", DK_OK, "a turn");
  ok(same(turn->messages[0].id, "new"), "of a handle that has the newest first");
  dk_store_abandon_orchestration_item(h.store, h.caller, kept(turn->head.lock_token), 0, 0);
  close_handle(&h);
  open_handle(&h, clock, path);
  turn = fetch_turn(&h);
  ok(turn && turn->n_messages == 2 && same(turn->messages[0].id, "old") &&
       same(turn->messages[1].id, "new"), "another handle has the oldest first");
  ok(turn && turn->messages[0].attempt == 1 && turn->messages[1].attempt == 2,
     "and knows which of them was taken before");
  close_handle(&h);
  dk_virtual_clock_done(clock);
  free(region);
}

static void
put_bytes(const char *path, off_t at, const void *bytes, size_t size)
{
  int fd = open(path, O_WRONLY | O_CLOEXEC);

  if (fd < 0 || pwrite(fd, bytes, size, at) != (ssize_t)size)
    BAIL_OUT("cannot write %s", path);
  close(fd);
}

/* Two messages were appended; the log is cut or padded by hand, and these are still there. */
static void
expect_messages(const char *path, size_t expected, const char *what)
{
  struct handle h;

  open_handle(&h, NULL, path);
  struct dk_turn *turn = fetch_turn(&h);
  cmp_ok(turn ? turn->n_messages : 0, "==", expected, "%s", what);
  cmp_ok(enqueue(&h, "other", NULL), "==", DK_OK, "and the log can be appended to");
  close_handle(&h);
}

/* A fresh log with two messages; *ret_last is where the second one's record begins. */
static const char *
log_of_two(const char *name, off_t *ret_last)
{
  struct handle h;
  const char *path = store_path(name);

  open_handle(&h, NULL, path);
  enqueue(&h, "inst", NULL);
  *ret_last = size_of(path);
  enqueue(&h, "inst", NULL);
  close_handle(&h);
  return path;
}

static void
torn(void)
{
  char zeros[100] = {0};
  char name[32];
  off_t last;
  const char *path = log_of_two("torn", &last);
  off_t size = size_of(path);
  bool all_fit = true;

  for (off_t at = last + 1; at < size; at++) {
    struct handle h;
    snprintf(name, sizeof name, "torn-%lld", (long long)at);
    path = log_of_two(name, &last);
    if (truncate(path, at) < 0)
      BAIL_OUT("cannot cut %s", path);
    open_handle(&h, NULL, path);
    struct dk_turn *turn = fetch_turn(&h);
    all_fit = all_fit && turn && turn->n_messages == 1;
    close_handle(&h);
  }
  ok(all_fit, "wherever the last record is torn, the one before it is there and it is not");

  path = log_of_two("zeros", &last);
  put_bytes(path, size_of(path), zeros, sizeof zeros);
  expect_messages(path, 2, "a tail of zeros is cut off");
  path = log_of_two("last-damaged", &last);
  put_bytes(path, size_of(path) - 1, "X", 1);
  expect_messages(path, 1, "a last record without its checksum is cut off");
}

/* Disks write sectors in any order: of a long record the first may be what is missing. */
static void
torn_at_its_head(void)
{
  enum { LONG = 20000, HEAD = 16 };
  char *long_text = calloc(1, LONG);
  struct dk_item item = {.struct_size = sizeof item, .instance = text("inst")};
  struct handle h;
  off_t last;
  const char *path = log_of_two("headless", &last);

  if (!long_text)
    BAIL_OUT("no memory");
  item.payload = (struct dk_bytes){memset(long_text, 'x', LONG), LONG};
  last = size_of(path);
  open_handle(&h, NULL, path);
  cmp_ok(dk_store_enqueue_for_orchestrator(h.store, h.caller, &item), "==", DK_OK, "a long record");
  close_handle(&h);
  ok(size_of(path) > last + LONG, "is long in the log too");
  memset(long_text, 0, HEAD);
  put_bytes(path, last, long_text, HEAD);
  expect_messages(path, 2, "a last record whose head was never written is cut off");
  path = log_of_two("headless-short", &last);
  put_bytes(path, last, "0123456789abcdef", HEAD);
  expect_messages(path, 1, "a last record with something else for a head is cut off");
  free(long_text);
}

static void
expect_refused(const char *path, uint32_t flags, dk_status status, const char *word,
               const char *what)
{
  struct handle h;
  off_t size = size_of(path);
  dk_status got = open_with(&h, NULL, path, NULL, flags);

  cmp_ok(got, "==", status, "%s", what);
  if (!ok(strstr(dk_caller_failure(h.caller)->text, word), "and it says so"))
    diag("%s", dk_caller_failure(h.caller)->text);
  cmp_ok(size_of(path), "==", size, "and the file stays as it was");
  close_handle(&h);
}

static void
damaged(void)
{
  enum { FIRST_HEAD = 53 }; /* behind the two lines */
  off_t last;
  const char *path = log_of_two("damaged", &last);

  put_bytes(path, last - 1, "X", 1);
  expect_refused(path, 0, DK_CORRUPT, "checksum", "damage before the last record is no torn tail");
  path = log_of_two("damaged-head", &last);
  put_bytes(path, FIRST_HEAD, "X", 1);
  expect_refused(path, 0, DK_CORRUPT, "head", "a damaged length is no torn tail");
  path = log_of_two("damaged-head-and-torn", &last);
  put_bytes(path, FIRST_HEAD, "X", 1);
  if (truncate(path, last + 20) < 0)
    BAIL_OUT("cannot cut %s", path);
  expect_refused(path, 0, DK_CORRUPT, "head", "even if the record behind it is torn");
  path = log_of_two("no-number", &last);
  put_bytes(path, 32, "X", 1);
  expect_refused(path, DK_OPEN_CREATE, DK_CORRUPT, "number", "a log without its number");
  path = log_of_two("other-version", &last);
  put_bytes(path, 14, "9", 1);
  expect_refused(path, 0, DK_REFUSED, "version", "a log of another version");
  path = log_of_two("other-clock", &last);
  put_bytes(path, 22, "store", 5);
  expect_refused(path, 0, DK_REFUSED, "clock", "a log of another clock");
  path = log_of_two("no-store", &last);
  put_bytes(path, 0, "root:x:0:0", 10);
  expect_refused(path, DK_OPEN_CREATE, DK_CORRUPT, "no store", "a file that is something else");
  expect_refused(store_path("not-there"), 0, DK_NOT_FOUND, "no store",
                 "a store that does not exist");
  expect_refused("/tmp", DK_OPEN_CREATE, DK_REFUSED, "/tmp", "a folder");
}

static void
destroyed(void)
{
  off_t last;
  const char *path = log_of_two("destroyed", &last);
  struct dk_setting setting = {"store", text(path)};
  struct dk_caller *caller = dk_caller_new(NULL, 0);

  cmp_ok(dk_store_destroy(library, NULL, caller, &setting, 1), "==", DK_OK, "destroy_store");
  cmp_ok(size_of(path), "==", -1, "the file was removed");
  cmp_ok(dk_store_destroy(library, NULL, caller, &setting, 1), "==", DK_OK, "once more");
  path = log_of_two("foreign", &last);
  put_bytes(path, 0, "root:x:0:0", 10);
  setting.value = text(path);
  cmp_ok(dk_store_destroy(library, NULL, caller, &setting, 1), "==", DK_REFUSED,
         "a file that is something else is left alone");
  cmp_ok(size_of(path), ">", 0, "the file is kept");
  dk_caller_free(caller);
}

static void
read_only(void)
{
  struct handle h;
  off_t last;
  const char *path = log_of_two("read-only", &last);
  struct dk_read_history asked = {.struct_size = sizeof asked, .instance = text("inst")};
  struct dk_history *history;

  cmp_ok(open_with(&h, NULL, path, NULL, DK_OPEN_READ_ONLY), "==", DK_OK, "open read-only");
  cmp_ok(dk_store_read_history(h.store, h.caller, &asked, &history), "==", DK_OK, "it reads");
  cmp_ok(enqueue(&h, "inst", NULL), "==", DK_REFUSED, "it does not write");
  close_handle(&h);
}

/* ---- kill -9 --------------------------------------------------------------------------------- */

enum { KILLS = 20, MOST_MESSAGES = 100000 };

/* Sends numbered messages and reports each that was acknowledged, until it is killed. */
static void
write_until_killed(const char *path, int say, uint32_t first)
{
  struct handle h;
  char id[16];

  open_handle(&h, NULL, path);
  for (uint32_t i = first;; i++) {
    snprintf(id, sizeof id, "m%u", i);
    if (enqueue(&h, "inst", id) != DK_OK || write(say, &i, sizeof i) != sizeof i)
      _exit(1);
  }
}

/* One writer's life, which ends after `n` acknowledgements or a few more.  Returns the last. */
static uint32_t
one_life(const char *path, uint32_t first, uint32_t n, bool *acknowledged)
{
  int pipes[2];
  uint32_t heard, last = first;
  pid_t writer;

  if (pipe(pipes) < 0 || (writer = fork()) < 0)
    BAIL_OUT("no process");
  if (writer == 0) {
    close(pipes[0]);
    write_until_killed(path, pipes[1], first);
  }
  close(pipes[1]);
  for (uint32_t i = 0; read(pipes[0], &heard, sizeof heard) == sizeof heard; i++) {
    if (heard < MOST_MESSAGES)
      acknowledged[last = heard] = true;
    if (i == n)
      kill(writer, SIGKILL); /* and read what was reported before it died */
  }
  waitpid(writer, NULL, 0);
  close(pipes[0]);
  return last;
}

static void
killed(void)
{
  const char *path = store_path("killed");
  bool *acknowledged = calloc(MOST_MESSAGES, sizeof *acknowledged);
  struct handle h;
  uint32_t last = 0, n_acknowledged = 0;
  unsigned seed = 1;

  for (int i = 0; i < KILLS; i++) /* the next number may have been stored and never reported */
    last = one_life(path, last + 2, (uint32_t)rand_r(&seed) % 40, acknowledged);
  for (uint32_t i = 0; i < MOST_MESSAGES; i++)
    n_acknowledged += acknowledged[i];
  open_handle(&h, NULL, path);
  struct dk_turn *turn = fetch_turn(&h);
  size_t n = turn ? turn->n_messages : 0;
  for (size_t i = 0; i < n; i++)
    acknowledged[strtoul(turn->messages[i].id.ptr + 1, NULL, 10) % MOST_MESSAGES] = false;
  note("%u messages were acknowledged, %zu are stored", n_acknowledged, n);
  cmp_ok(n_acknowledged, ">=", KILLS, "each writer got something done before it was killed");
  cmp_ok(n, "<=", n_acknowledged + KILLS, "at most one a writer was stored and never reported");
  n_acknowledged = 0;
  for (uint32_t i = 0; i < MOST_MESSAGES; i++)
    n_acknowledged += acknowledged[i];
  cmp_ok(n_acknowledged, "==", 0, "nothing that was acknowledged is lost");
  free(acknowledged);
  close_handle(&h);
}

int
main(void)
{
  plan(NO_PLAN);
  library = begin();
  reopened();
  two_handles();
  other_order();
  torn();
  torn_at_its_head();
  damaged();
  destroyed();
  read_only();
  killed();
  end();
  return done_testing();
}
