/* SPDX-License-Identifier: Apache-2.0 */
/* A full disk, a disk that fails, no memory, no right to write: the status and the text, that
 * nothing has changed, and that the next call works. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/sqlite/test-calls.h"
#include "providers/sqlite/test-files.h"

static const char *
beside(const char *path, const char *ending)
{
  char name[700];

  snprintf(name, sizeof name, "%s%s", strrchr(path, '/') + 1, ending);
  return place(name);
}

static bool
nothing_is_left_of(const char *path)
{
  static const char *const endings[] = {"", "-wal", "-shm", "-lock", "-journal"};

  for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
    if (is_there(beside(path, endings[i])))
      return false;
  return true;
}

/* ---- a disk that takes nothing more ---------------------------------------------------------- */

struct trouble {
  unsigned kinds;
  int error;
  const char *part;     /* of the text of a refusal */
  const char *name;
};

static const struct trouble troubles[] = {
  {CALL_WRITE | CALL_CUT, ENOSPC, "No space left", "a full disk"},
  {CALL_WRITE | CALL_CUT, EIO, "system's log", "a disk that cannot be written"},
  {CALL_SYNC, EIO, "system's log", "a disk that cannot be synced"},
};

static bool
is_said(const struct trouble *trouble)
{
  bool says = strstr(why.text, trouble->part) || (trouble->error == ENOSPC && why.code &&
                                                  strstr(why.text, "free space"));

  if (!says)
    diag("%s: the text was: %s", trouble->name, why.text);
  return says;
}

/* Making a store, with trouble from each call on: nothing is left of it. */
static void
test_making(const struct trouble *trouble)
{
  const char *path = place("made");
  int n, wrong = 0, poisoned = 0;

  for (n = 1;; n += calls_step()) {
    calls = (struct calls){.kinds = trouble->kinds, .fails_from = n, .error = trouble->error};
    dk_status status = try_open(path, DK_OPEN_CREATE);
    calls.fails_from = 0;
    if (status == DK_OK && calls.count < n)
      break;
    wrong += status != DK_UNAVAILABLE || !is_said(trouble) || !nothing_is_left_of(path);
    poisoned += why.poisons;
    wrong += try_open(path, DK_OPEN_CREATE) != DK_OK || destroy(path) != DK_OK;
  }
  destroy(path);
  cmp_ok(n, ">", 2, "%s from each of %d calls on: no store is made", trouble->name, n - 1);
  cmp_ok(wrong, "==", 0, "%s: it is reported, nothing is left, and the next open makes it",
         trouble->name);
  if (trouble->error == EIO)
    cmp_ok(poisoned, ">", 0, "%s: the connection must not be used again", trouble->name);
}

/* Migrating: what was there is there, or what there was to be. */
static void
test_migrating(const struct trouble *trouble)
{
  const char *old = place("old"), *path = place("migrated");
  int n, wrong = 0, kept = 0;

  unlink(old);
  make_version_1(old);
  char *version_1 = dump_of(old);
  for (n = 1;; n += calls_step()) {
    copy_file(old, path);
    calls = (struct calls){.kinds = trouble->kinds, .fails_from = n, .error = trouble->error};
    dk_status status = try_open(path, 0);
    calls.fails_from = 0;
    if (status == DK_OK && calls.count < n)
      break;
    wrong += status != DK_UNAVAILABLE || !is_said(trouble) || is_there(beside(path, "-lock"));
    if (number_at(path, "PRAGMA user_version") == 1) {
      char *found = dump_of(path);
      wrong += strcmp(found, version_1) != 0;
      kept++;
      free(found);
    }
    wrong += try_open(path, 0) != DK_OK || destroy(path) != DK_OK;
  }
  destroy(path);
  cmp_ok(kept, ">", calls_step() > 1 ? 0 : 2,
         "%s from each of %d calls on: %d times version 1 is left", trouble->name, n - 1, kept);
  cmp_ok(wrong, "==", 0, "%s: it is reported, nothing has changed, and the next open migrates it",
         trouble->name);
  free(version_1);
}

/* A write of a store that is open. */
static void
test_writing(const struct trouble *trouble)
{
  const char *path = place("written");
  struct store_files files;
  struct connection c;
  int64_t n = -1;

  if (open_files(path, DK_OPEN_CREATE, &files, &c) != DK_OK)
    BAIL_OUT("%s", why.text);
  calls = (struct calls){.kinds = trouble->kinds, .fails_from = 1, .error = trouble->error};
  cmp_ok(connection_exec(&c, "INSERT INTO instance(instance) VALUES('x')", "inserting", &why), "==",
         DK_UNAVAILABLE, "%s: a write fails", trouble->name);
  ok(is_said(trouble) && strstr(why.text, "inserting"), "%s: it is reported", trouble->name);
  bool poisons = why.poisons;
  cmp_ok(poisons, "==", trouble->error == EIO, "%s: whether the connection may be used again",
         trouble->name);
  calls.fails_from = 0;
  if (poisons) {
    connection_close(&c);
    struct store_ids ids;
    cmp_ok(store_files_connect(&files, CONNECTION_WRITER, &c, &ids, &why), "==", DK_OK,
           "%s: another is opened", trouble->name);
  }
  cmp_ok(connection_exec(&c, "INSERT INTO instance(instance) VALUES('y')", "inserting", &why), "==",
         DK_OK, "%s: when the disk works again, a write works", trouble->name);
  connection_integer(&c, "SELECT count(*) FROM instance WHERE instance = 'y'", &n, &why);
  cmp_ok(n, "==", 1, "%s: and is there", trouble->name);
  close_files(&files, &c);
  destroy(path);
}

/* ---- no memory ------------------------------------------------------------------------------- */

static void
test_memory(void)
{
  const char *path = place("memory");
  int refused = 0, wrong = 0;
  dk_status status = DK_NO_MEMORY;

  for (int64_t room = 4096; status != DK_OK && room < 4 << 20; room += 4096 * calls_step()) {
    sqlite3_hard_heap_limit64(sqlite3_memory_used() + room);
    status = try_open(path, DK_OPEN_CREATE);
    sqlite3_hard_heap_limit64(0);
    refused += status == DK_NO_MEMORY;
    wrong += status != DK_OK && (status != DK_NO_MEMORY || !nothing_is_left_of(path));
    if (wrong)
      diag("with %lld bytes: %d: %s", (long long)room, status, why.text);
  }
  cmp_ok(refused, ">", calls_step() > 1 ? 0 : 3, "no memory: refused with %d sizes", refused);
  cmp_ok(wrong, "==", 0, "no memory: it is reported, and nothing is left");
  cmp_ok(status, "==", DK_OK, "with enough of it the store is made");
}

/* ---- no right -------------------------------------------------------------------------------- */

struct stranger {
  const char *path;
  uint32_t flags;
  struct why *why;
};

/* As a user for whom permissions count. */
static void
open_as_nobody(void *context)
{
  struct stranger *stranger = context;

  if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0))
    _exit(2);
  try_open(stranger->path, stranger->flags);
  *stranger->why = why;
}

static void
expect_stranger(const char *path, uint32_t flags, dk_status expected, const char *part,
                const char *name)
{
  struct why *told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  struct stranger stranger = {path, flags, told};

  if (told == MAP_FAILED || in_child(open_as_nobody, &stranger) != 0)
    BAIL_OUT("no child of another user");
  why = *told;
  munmap(told, sizeof *told);
  if (expected == DK_OK)
    cmp_ok(why.status, "==", DK_OK, "%s", name);
  else
    expect_refused(why.status, expected, part, path, name);
}

static void
set_modes(const char *path, mode_t mode)
{
  static const char *const endings[] = {"", "-wal", "-shm", "-lock"};

  for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
    chmod(beside(path, endings[i]), mode);
}

/* All else may be written; SQLite opens this for reading, and reports it only at the first write.
 */
static void
expect_lack_of(const char *path, const char *ending, const char *name)
{
  char part[100];

  snprintf(part, sizeof part, "%s: the file cannot be written: Permission denied", ending);
  set_modes(path, 0666);
  chmod(beside(path, ending), 0444);
  expect_stranger(path, 0, DK_REFUSED, part, name);
}

static void
test_rights(void)
{
  const char *path = place("rights");
  char folder[600];

  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  try_open(path, DK_OPEN_CREATE);
  chmod(folder, 0555);
  set_modes(path, 0400);
  expect_stranger(place("new"), DK_OPEN_CREATE, DK_REFUSED, "Permission denied",
                  "a folder that cannot be written");
  if (geteuid() == 0)
    expect_stranger(path, 0, DK_REFUSED, "Permission denied", "a store of another user");
  else
    skip(1, "needs another user");
  set_modes(path, 0444);
  expect_stranger(path, 0, DK_REFUSED, "read-only", "a lock file that cannot be written");
  chmod(beside(path, "-lock"), 0666);
  expect_stranger(path, 0, DK_REFUSED, "the file cannot be written",
                  "a store that cannot be written");
  expect_stranger(path, DK_OPEN_READ_ONLY, DK_OK, "", "it can be opened read-only");
  expect_lack_of(path, "-wal", "a log that cannot be written");
  expect_lack_of(path, "-shm", "an index of the log that cannot be written");
  set_modes(path, 0600);
  chmod(folder, 0700);
  cmp_ok(try_open(path, 0), "==", DK_OK, "with the right it is opened");
}

int
main(void)
{
  plan(NO_PLAN);
  begin();
  calls_begin();
  for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++) {
    test_making(&troubles[i]);
    test_migrating(&troubles[i]);
    test_writing(&troubles[i]);
  }
  test_memory();
  test_rights();
  return end();
}
