/* SPDX-License-Identifier: Apache-2.0 */
/* All that changes a database or its log, and every checkpoint, happens under the lock file: of
 * opening, migrating, each operation, the log's way back, and its end at the close. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "providers/sqlite/test-calls.h"
#include "providers/sqlite/test-deeds.h"

enum { MEGABYTES_16 = 16 << 20 };

static char path[700], log_path[710], lock_path[710];

/* By the writer's thread; read when it is idle or gone. */
static struct tally {
  int database, log;    /* writes, syncs and cuts of each */
  int log_cuts;
  int checkpoints;
  int unlocked;
} seen;

/* ---- watching -------------------------------------------------------------------------------- */

/* A query by a file description of its own reports the lock of any other. */
static bool
is_locked(void)
{
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
  int fd = open(lock_path, O_RDWR | O_CLOEXEC);
  bool is_held = fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;

  if (fd >= 0)
    close(fd);
  return is_held;
}

static void
expect_locked(const char *what)
{
  if (!calls.watch || is_locked())
    return;
  if (seen.unlocked++ == 0)
    diag("%s without the lock on %s", what, lock_path);
}

static bool
leads_to(const char *name, const struct stat *file)
{
  struct stat there;

  return stat(name, &there) == 0 && there.st_dev == file->st_dev && there.st_ino == file->st_ino;
}

static void
watch(const struct change *change)
{
  struct stat file;

  if (fstat(change->fd, &file) < 0)
    BAIL_OUT("a descriptor that is none: %s", strerror(errno));
  if (leads_to(path, &file)) {
    seen.database++;
    expect_locked("the database is written");
  } else if (leads_to(log_path, &file)) {
    seen.log++;
    seen.log_cuts += change->kind == CALL_CUT;
    expect_locked("the log is written");
  }
}

/* The plugin finds this one before SQLite's. */
__attribute__((visibility("default"))) int
sqlite3_wal_checkpoint_v2(sqlite3 *db, const char *name, int mode, int *pages, int *done)
{
  int (*real)(sqlite3 *, const char *, int, int *, int *);
  void *found = dlsym(RTLD_NEXT, "sqlite3_wal_checkpoint_v2");

  if (!found)
    BAIL_OUT("SQLite's checkpoint is not found: %s", dlerror());
  memcpy(&real, &found, sizeof real);
  seen.checkpoints++;
  expect_locked("a checkpoint begins");
  int code = real(db, name, mode, pages, done);
  expect_locked("a checkpoint ends");
  return code;
}

static void
watch_store(const char *name)
{
  snprintf(path, sizeof path, "%s", name);
  snprintf(log_path, sizeof log_path, "%s-wal", name);
  snprintf(lock_path, sizeof lock_path, "%s-lock", name);
  seen = (struct tally){0};
  calls = (struct calls){.watch = watch};
}

/* What was seen since the last time, and that it was locked. */
static void
expect_seen(const char *what, bool is_in_database, bool is_in_log)
{
  ok((seen.database > 0 || !is_in_database) && (seen.log > 0 || !is_in_log),
     "%s: the database is written %d times, its log %d times", what, seen.database, seen.log);
  cmp_ok(seen.unlocked, "==", 0, "%s: never without the lock", what);
  seen = (struct tally){0};
}

/* ---- what is watched ------------------------------------------------------------------------- */

static void
must_open(struct doer *doer, uint32_t flags)
{
  if (doer_open(doer, path, flags) != DK_OK)
    BAIL_OUT("%s", failure_of(doer));
}

static void
must_enqueue(struct doer *doer, const char *instance, size_t size)
{
  if (enqueue_bytes(doer, instance, size) != DK_OK)
    BAIL_OUT("%s", failure_of(doer));
}

static void
test_opening(void)
{
  struct doer doer;

  watch_store(place("made"));
  must_open(&doer, DK_OPEN_CREATE);
  expect_seen("making a store", true, true);
  doer_close(&doer);
  calls.watch = NULL;
  make_version_1(place("old"));
  watch_store(place("old"));
  must_open(&doer, 0);
  expect_seen("migrating one", true, false);
  doer_close(&doer);
  expect_seen("closing it", false, false);
}

static void
test_operations(const char *prepared)
{
  struct doer doer;

  copy_file(prepared, place("deeds"));
  watch_store(place("deeds"));
  must_open(&doer, 0);
  expect_seen("opening one again", false, false);
  for (int i = 0; i < DEEDS; i++) {
    if (deed_do(i, &doer, false) != DK_OK)
      BAIL_OUT("%s: %s", deed_name(i), failure_of(&doer));
    expect_seen(deed_name(i), false, i != READING);
  }
  doer_close(&doer);
  ok(seen.log_cuts > 0 && seen.checkpoints > 0, "closing it: its log is cut");
  expect_seen("closing it", true, true);
}

/* Without another handle, and with a reader for which it waits. */
static void
test_writing_back(void)
{
  struct doer doer;

  watch_store(place("large"));
  must_open(&doer, DK_OPEN_CREATE);
  seen = (struct tally){0};
  must_enqueue(&doer, "first", MEGABYTES_16);
  ok(seen.checkpoints > 0, "a large message: the log is written back");
  must_enqueue(&doer, "first", 1); /* the writer is idle after the first */
  expect_seen("a large message", true, true);
  sqlite3 *reader = somebody(path);
  run_sql(reader, "BEGIN; SELECT count(*) FROM meta");
  for (int i = 0; i < 3; i++)
    must_enqueue(&doer, "behind a reader", MEGABYTES_16);
  run_sql(reader, "COMMIT");
  sqlite3_close(reader);
  must_enqueue(&doer, "after the reader", MEGABYTES_16);
  ok(seen.checkpoints >= 3, "beside a reader: %d attempts to write the log back",
     seen.checkpoints);
  expect_seen("beside a reader", true, true);
  doer_close(&doer);
  expect_seen("closing it", false, true);
}

/* The watch itself: a stranger's write is without the lock. */
static void
test_watch(void)
{
  struct doer doer;

  watch_store(place("strange"));
  must_open(&doer, DK_OPEN_CREATE);
  doer_close(&doer);
  seen = (struct tally){0};
  sql_at(path, "UPDATE meta SET counter=counter+1");
  cmp_ok(seen.unlocked, ">", 0, "a write without the lock is seen");
}

int
main(void)
{
  plan(NO_PLAN);
  begin();
  calls_begin();
  deeds_begin();
  const char *prepared = place("prepared");
  deeds_prepare(prepared);
  test_opening();
  test_operations(prepared);
  test_writing_back();
  test_watch();
  calls = (struct calls){0};
  deeds_end();
  return end();
}
