/* SPDX-License-Identifier: Apache-2.0 */
/* Making, opening and removing a store; which files are refused, and that they stay as they are. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/sqlite/test-files.h"

enum { RW = 0, CREATE = DK_OPEN_CREATE, RO = DK_OPEN_READ_ONLY };

/* A file beside a store, "-lock" say. */
static const char *
beside(const char *path, const char *ending)
{
  char name[700];

  snprintf(name, sizeof name, "%s%s", strrchr(path, '/') + 1, ending);
  return place(name);
}

static bool
only_file(const char *path)
{
  return !is_there(beside(path, "-wal")) && !is_there(beside(path, "-shm")) &&
         !is_there(beside(path, "-lock")) && !is_there(beside(path, "-journal"));
}

static bool
nothing(const char *path)
{
  return !is_there(path) && only_file(path);
}

static int
descriptors(void)
{
  DIR *folder = opendir("/proc/self/fd");
  int n = 0;

  while (folder && readdir(folder))
    n++;
  closedir(folder);
  return n;
}

/* ---- making and opening ---------------------------------------------------------------------- */

static void
test_missing(void)
{
  const char *path = place("missing");

  expect_refused(try_open(path, RW), DK_NOT_FOUND, path, "did not ask to make one", "no store");
  expect_refused(try_open(path, RO), DK_NOT_FOUND, path, "did not ask to make one",
                 "read-only: no store");
  expect_refused(try_open(path, RO | CREATE), DK_NOT_FOUND, path, "", "read-only makes none");
  ok(nothing(path), "nothing was made");
  expect_refused(try_open(place("no-folder/store"), CREATE), DK_NOT_FOUND,
                 "the folder of the store", "no-folder", "no folder for it");

  make_file(path, "", 0);
  expect_refused(try_open(path, RW), DK_NOT_FOUND, path, "did not ask to make", "an empty file");
  expect_refused(try_open(path, RO), DK_NOT_FOUND, path, "", "an empty file, read-only");
  ok(only_file(path), "nothing was made beside it");
  cmp_ok(try_open(path, CREATE), "==", DK_OK, "an empty file becomes a store");
  cmp_ok(try_open(path, RW), "==", DK_OK, "and is one from then on");
}

static void
test_modes(mode_t umask_bits, const char *name)
{
  static const char *const endings[] = {"", "-wal", "-shm", "-lock"};
  const char *path = place(name);
  struct store_files files;
  struct connection c;
  mode_t before = umask(umask_bits);

  cmp_ok(open_files(path, CREATE, &files, &c), "==", DK_OK, "%s: a store is made", name);
  for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
    cmp_ok(mode_of(beside(path, endings[i])), "==", 0600, "%s: 0600 for store%s", name,
           endings[i]);
  close_files(&files, &c);
  cmp_ok(umask(before), "==", umask_bits, "%s: the umask is as it was", name);
}

static void
test_group_mode(void)
{
  const char *path = place("group");

  cmp_ok(try_open(path, CREATE), "==", DK_OK, "a store");
  chmod(path, 0660);
  unlink(beside(path, "-lock"));
  cmp_ok(try_open(path, RW), "==", DK_OK, "opened without its lock file");
  cmp_ok(mode_of(beside(path, "-lock")), "==", 0660, "a user who may open the store may lock it");
}

static void
test_read_only(void)
{
  const char *path = place("read-only");
  struct store_files files;
  struct connection c;

  cmp_ok(try_open(path, CREATE), "==", DK_OK, "a store");
  unlink(beside(path, "-lock"));
  cmp_ok(open_files(path, RO, &files, &c), "==", DK_OK, "opened read-only");
  ok(!is_there(beside(path, "-lock")), "it makes no lock file");
  cmp_ok(connection_exec(&c, "DELETE FROM instance", "deleting", &why), "==", DK_REFUSED,
         "it writes nothing");
  close_files(&files, &c);
}

static void
test_symlink(void)
{
  const char *path = place("linked"), *link = place("link");
  struct store_files files;
  struct connection c;

  cmp_ok(try_open(path, CREATE), "==", DK_OK, "a store");
  if (symlink("linked", link) < 0)
    BAIL_OUT("no symbolic link");
  cmp_ok(open_files(link, RW, &files, &c), "==", DK_OK, "opened by a symbolic link");
  is(files.settings.path, path, "it is the same store");
  is(files.lock.path, beside(path, "-lock"), "with the same lock file");
  close_files(&files, &c);
  ok(!is_there(beside(link, "-lock")), "and no other");
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void
refuse(const char *path, dk_status status, const char *part, const char *other_part,
       const char *name)
{
  size_t before_size, after_size;
  char *before = bytes_of(path, &before_size);
  int open_before = descriptors();

  expect_refused(try_open(path, RW), status, part, other_part, name);
  expect_refused(try_open(path, CREATE), status, part, other_part, "nor made");
  expect_refused(try_open(path, RO), status, part, other_part, "nor read");
  char *after = bytes_of(path, &after_size);
  ok(before_size == after_size && memcmp(before, after, after_size) == 0, "no byte has changed");
  ok(!is_there(beside(path, "-lock")), "no lock file was made");
  cmp_ok(descriptors(), "==", open_before, "no descriptor is left");
  free(before);
  free(after);
}

/* To be made a store. */
static void
refuse_new(const char *path, const char *part, const char *other_part, const char *name)
{
  size_t before_size, after_size;
  char *before = bytes_of(path, &before_size);

  expect_refused(try_open(path, CREATE), DK_REFUSED, part, other_part, name);
  char *after = bytes_of(path, &after_size);
  ok(before_size == after_size && memcmp(before, after, after_size) == 0, "no byte has changed");
  free(before);
  free(after);
}

static void
test_foreign(void)
{
  char noise[8192];

  for (size_t i = 0; i < sizeof noise; i++)
    noise[i] = (char)(i * 7919 >> 3);
  make_file(place("text"), "hello\n", 6);
  refuse(place("text"), DK_REFUSED, "not an SQLite database", place("text"), "a text");
  make_file(place("noise"), noise, sizeof noise);
  refuse(place("noise"), DK_REFUSED, "not an SQLite database", "another file", "noise");
  sql_at(place("tables"), "CREATE TABLE theirs(a); INSERT INTO theirs VALUES(1)");
  refuse(place("tables"), DK_REFUSED, "another program", "found 0 with 1 tables", "their tables");
  sql_at(place("id"), "PRAGMA application_id = 7; CREATE TABLE theirs(a)");
  refuse(place("id"), DK_REFUSED, "another program", "0x7", "their application_id");
  sql_at(place("version"), "PRAGMA user_version = 7");
  refuse(place("version"), DK_REFUSED, "another program", "", "their user_version");
  sql_at(place("wal"), "PRAGMA journal_mode = WAL; CREATE TABLE theirs(a)");
  refuse(place("wal"), DK_REFUSED, "another program", "", "their tables in WAL mode");
}

/* ---- what its owner left behind when it was killed ------------------------------------------- */

struct killed {
  const char *path, *sql;
};

static void
write_and_die(void *context)
{
  static sqlite3 *volatile never_closed;
  const struct killed *killed = context;

  never_closed = somebody(killed->path);
  run_sql(never_closed, killed->sql);
  _exit(0);
}

struct contents {
  char *bytes[3];
  size_t sizes[3];
};

static const char *const left_behind[] = {"", "-wal", "-journal"};

static struct contents
contents_of(const char *path)
{
  struct contents c;

  for (int i = 0; i < 3; i++)
    c.bytes[i] = bytes_of(beside(path, left_behind[i]), &c.sizes[i]);
  return c;
}

/* No byte of it is changed, and what its owner has left is neither recovered nor rolled back. */
static void
test_foreign_and_killed(const char *name, const char *sql, const char *ending)
{
  const char *path = place(name);
  struct killed killed = {path, sql};

  if (in_child(write_and_die, &killed) != 0 || !is_there(beside(path, ending)))
    BAIL_OUT("%s: no %s was left", name, ending);
  unlink(beside(path, "-shm"));
  struct contents before = contents_of(path);
  expect_refused(try_open(path, RW), DK_REFUSED, "another program", path, name);
  expect_refused(try_open(path, CREATE), DK_REFUSED, "another program", path, "nor made");
  expect_refused(destroy(path), DK_REFUSED, "another program", path, "nor removed");
  try_open(path, RO);
  struct contents after = contents_of(path);
  for (int i = 0; i < 3; i++) {
    ok(before.sizes[i] == after.sizes[i] && !before.bytes[i] == !after.bytes[i] &&
         (!before.bytes[i] || memcmp(before.bytes[i], after.bytes[i], before.sizes[i]) == 0),
       "no byte of the file%s has changed", left_behind[i]);
    free(before.bytes[i]);
    free(after.bytes[i]);
  }
  ok(!is_there(beside(path, "-lock")), "no lock file was made");
}

static void
test_left_behind(void)
{
  test_foreign_and_killed("theirs, with a log",
                          "PRAGMA journal_mode = WAL; CREATE TABLE theirs(a);"
                          "PRAGMA wal_checkpoint; INSERT INTO theirs VALUES(1)", "-wal");
  test_foreign_and_killed("theirs, all in the log?100%#",
                          "PRAGMA journal_mode = WAL; CREATE TABLE theirs(a)", "-wal");
  test_foreign_and_killed("theirs, with half a transaction",
                          "CREATE TABLE theirs(a); INSERT INTO theirs VALUES(zeroblob(900000));"
                          "PRAGMA cache_size = 5; BEGIN; UPDATE theirs SET a = randomblob(900000)",
                          "-journal");
}

/* A file without tables that cannot be given the form of a store. */
static void
test_odd_and_empty(void)
{
  sql_at(place("small-pages"), "PRAGMA page_size = 1024; CREATE TABLE x(a); DROP TABLE x");
  refuse_new(place("small-pages"), "page_size", "expected 4096, found 1024", "pages of 1 KiB");
  sql_at(place("wide"), "PRAGMA encoding = 'UTF-16le'; CREATE TABLE x(a); DROP TABLE x");
  refuse_new(place("wide"), "encoding", "expected UTF-8, found UTF-16le", "UTF-16");
}

/* A store of ours, then changed by SQL. */
static const char *
spoilt(const char *name, const char *sql)
{
  const char *path = place(name);

  cmp_ok(try_open(path, CREATE), "==", DK_OK, "a store");
  sql_at(path, sql);
  unlink(beside(path, "-lock"));
  return path;
}

static void
test_not_for_us(void)
{
  refuse(spoilt("later", "PRAGMA user_version = 9"), DK_REFUSED, "version 9", "versions up to 2",
         "a later version, with both numbers");
  refuse(spoilt("zero", "PRAGMA user_version = 0"), DK_CORRUPT, "user_version is 0", "1 to 2",
         "ours, but of no version");
  refuse(spoilt("clock", "UPDATE meta SET clock = 2"), DK_REFUSED, "clock kind 2", "expected 1",
         "another kind of clock");
  refuse(spoilt("page", "PRAGMA journal_mode = DELETE; PRAGMA page_size = 8192; VACUUM;"
                        "PRAGMA journal_mode = WAL"),
         DK_REFUSED, "page_size", "expected 4096, found 8192", "another page size");
  sql_at(place("utf16"), "PRAGMA encoding = 'UTF-16'; PRAGMA journal_mode = WAL;"
                         "PRAGMA user_version = 2; PRAGMA application_id = 1148537705;"
                         "CREATE TABLE meta(clock); INSERT INTO meta VALUES(1)");
  refuse(place("utf16"), DK_REFUSED, "encoding", "expected UTF-8, found UTF-16",
         "another encoding");
}

static void
test_no_file(void)
{
  const char *path = place("one-name");

  mkdir(place("folder"), 0700);
  expect_refused(try_open(place("folder"), CREATE), DK_REFUSED, "folder", "name a file",
                 "a folder");
  mkfifo(place("pipe"), 0600);
  expect_refused(try_open(place("pipe"), CREATE), DK_REFUSED, "pipe", "name a file", "a pipe");
  if (symlink("nowhere", place("dangling")) < 0)
    BAIL_OUT("no symbolic link");
  expect_refused(try_open(place("dangling"), CREATE), DK_REFUSED, "does not exist", "dangling",
                 "a symbolic link to nothing");
  cmp_ok(try_open(path, CREATE), "==", DK_OK, "a store");
  if (link(path, place("other-name")) < 0)
    BAIL_OUT("no hard link");
  expect_refused(try_open(place("other-name"), RW), DK_REFUSED, "2 names", "expected one",
                 "a file with two names");
  expect_refused(try_open(path, RW), DK_REFUSED, "2 names", "", "by its first name too");
  unlink(place("other-name"));
  cmp_ok(try_open(path, RW), "==", DK_OK, "with one name it is opened");
}

/* ---- held by others -------------------------------------------------------------------------- */

static void
test_lock_is_held(void)
{
  const char *path = place("held");
  struct store_files files;
  struct connection c;

  cmp_ok(open_files(path, CREATE, &files, &c), "==", DK_OK, "a store");
  cmp_ok(lockfile_take(&files.lock, 0, -1, &why), "==", DK_OK, "another handle holds it");
  expect_refused(try_open(path, RW), DK_BUSY, "held-lock", "busy_timeout, 300 ms", "opening waits");
  expect_refused(destroy(path), DK_BUSY, "held-lock", "another process", "removing it waits");
  cmp_ok(try_open(path, RO), "==", DK_OK, "a reader need not wait");
  lockfile_release(&files.lock);
  cmp_ok(try_open(path, RW), "==", DK_OK, "it is opened when it is free");
  close_files(&files, &c);
}

static void
test_database_is_held(void)
{
  const char *path = place("held-old");

  make_version_1(path);
  int before = descriptors();
  struct store_files files;
  struct connection c;
  sqlite3 *other = somebody(path);
  run_sql(other, "BEGIN EXCLUSIVE");
  expect_refused(try_open(path, RW), DK_BUSY, "SQLITE_BUSY", "busy_timeout",
                 "a program that does not know our lock file holds it");
  const struct dk_setting setting = {"store", {path, strlen(path)}};
  const struct dk_open open = {sizeof open, 0, &setting, 1};
  int wake = eventfd(1, EFD_CLOEXEC);
  cmp_ok(store_files_open(&files, &open, wake, &c, &why), "==", DK_CALL_CANCELLED,
         "a wait for it is ended");
  close(wake);
  run_sql(other, "ROLLBACK");
  sqlite3_close(other);
  cmp_ok(descriptors(), "==", before, "no descriptor is left");
  cmp_ok(number_at(path, "PRAGMA user_version"), "==", 1, "nothing has changed");
  cmp_ok(try_open(path, RW), "==", DK_OK, "it is opened when it is free");
}

/* ---- many at once ---------------------------------------------------------------------------- */

struct crowd {
  const char *path;
  int start[2];
};

static void
open_when_told(const struct crowd *crowd)
{
  char byte;
  struct store_files files;
  struct connection c;

  close(crowd->start[1]);
  if (read(crowd->start[0], &byte, 1) < 0)
    _exit(2);
  /* The last waits for nine; how long that takes is the machine's. */
  if (open_files_within(crowd->path, CREATE, "10m", &files, &c) != DK_OK) {
    diag("%s", why.text);
    _exit(1);
  }
  close_files(&files, &c);
  _exit(0);
}

static void
test_ten_at_once(const char *path, const char *name)
{
  struct crowd crowd = {.path = path};
  int status, failed = 0;

  if (pipe(crowd.start) < 0)
    BAIL_OUT("no pipe");
  for (int i = 0; i < 10; i++)
    if (fork() == 0)
      open_when_told(&crowd);
  close(crowd.start[1]); /* now */
  for (int i = 0; i < 10; i++)
    failed += wait(&status) < 0 || status != 0;
  close(crowd.start[0]);
  cmp_ok(failed, "==", 0, "ten processes open %s", name);
  cmp_ok(number_at(path, "SELECT count(*) FROM meta"), "==", 1, "%s: it was made once", name);
}

/* ---- the connection -------------------------------------------------------------------------- */

static void
test_connections(void)
{
  const char *path = place("pragmas");
  const struct dk_setting settings[] = {{"store", {path, strlen(path)}},
                                        {"synchronous", {"normal", 6}}};
  const struct dk_open open = {sizeof open, CREATE, settings, 2};
  struct store_files files;
  struct connection c, reader;
  struct store_ids ids;
  int64_t value;

  cmp_ok(open_files(path, CREATE, &files, &c), "==", DK_OK, "a store");
  connection_integer(&c, "PRAGMA synchronous", &value, &why);
  cmp_ok(value, "==", 2, "synchronous is full");
  connection_integer(&c, "PRAGMA secure_delete", &value, &why);
  cmp_ok(value, "==", 0, "secure_delete is off");
  connection_integer(&c, "PRAGMA wal_autocheckpoint", &value, &why);
  cmp_ok(value, "==", 0, "wal_autocheckpoint is off");
  cmp_ok(store_files_connect(&files, CONNECTION_READER, &reader, &ids, &why), "==", DK_OK,
         "a reader");
  cmp_ok(connection_exec(&reader, "DELETE FROM instance", "deleting", &why), "==", DK_REFUSED,
         "it writes nothing");
  connection_close(&reader);
  cmp_ok(connection_integer(&c, "SELECT iid FROM instance", &value, &why), "==", DK_CORRUPT,
         "no row where there must be one");
  close_files(&files, &c);
  cmp_ok(store_files_open(&files, &open, -1, &c, &why), "==", DK_OK, "synchronous=normal");
  connection_integer(&c, "PRAGMA synchronous", &value, &why);
  cmp_ok(value, "==", 1, "is what is read back");
  close_files(&files, &c);
}

/* ---- removing -------------------------------------------------------------------------------- */

static void
test_destroy(void)
{
  const char *path = place("removed"), *theirs = place("tables"), *empty = place("empty");
  size_t size, size_after;

  cmp_ok(destroy(path), "==", DK_OK, "removing a store that does not exist");
  cmp_ok(destroy(place("no-folder/store")), "==", DK_OK, "or whose folder does not exist");
  ok(nothing(path), "leaves nothing");
  try_open(path, CREATE);
  ok(is_there(beside(path, "-wal")) && is_there(beside(path, "-lock")), "a store with its files");
  cmp_ok(destroy(path), "==", DK_OK, "is removed");
  ok(nothing(path), "with all of them");
  make_version_1(path);
  cmp_ok(destroy(path), "==", DK_OK, "a store of version 1 is removed");
  ok(nothing(path), "whole");

  char *before = bytes_of(theirs, &size);
  expect_refused(destroy(theirs), DK_REFUSED, "another program", theirs, "another program's stays");
  char *after = bytes_of(theirs, &size_after);
  ok(size == size_after && memcmp(before, after, size) == 0, "as it was");
  ok(only_file(theirs), "with no lock file");
  free(before);
  free(after);

  make_file(empty, "", 0);
  expect_refused(destroy(empty), DK_REFUSED, "an empty file", "yourself", "an empty file stays");
  ok(is_there(empty) && only_file(empty), "as it was");
  make_file(beside(empty, "-lock"), "", 0);
  cmp_ok(destroy(empty), "==", DK_OK, "of an open that was killed");
  ok(nothing(empty), "nothing is left");
  make_file(beside(empty, "-lock"), "", 0);
  make_file(beside(empty, "-wal"), "x", 1);
  cmp_ok(destroy(empty), "==", DK_OK, "of a removal that was killed");
  ok(nothing(empty), "nothing is left");
}

int
main(void)
{
  plan(NO_PLAN);
  begin();
  test_missing();
  test_modes(0, "umask-0");
  test_modes(0777, "umask-777");
  test_group_mode();
  test_read_only();
  test_symlink();
  test_foreign();
  test_left_behind();
  test_odd_and_empty();
  test_not_for_us();
  test_no_file();
  test_lock_is_held();
  test_database_is_held();
  test_ten_at_once(place("ten-new"), "a new store");
  make_file(place("ten-empty"), "", 0);
  test_ten_at_once(place("ten-empty"), "an empty file");
  make_version_1(place("ten-old"));
  test_ten_at_once(place("ten-old"), "a store of version 1");
  test_connections();
  test_destroy();
  return end();
}
