/* SPDX-License-Identifier: Apache-2.0 */
/* The status and the text for a result code of SQLite; and the settings of open. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "providers/sqlite/test-files.h"

static const struct {
  int code;
  dk_status status;
  bool poisons;
} codes[] = {
  {SQLITE_OK, DK_OK, false},
  {SQLITE_ROW, DK_OK, false},
  {SQLITE_DONE, DK_OK, false},
  {SQLITE_BUSY, DK_BUSY, false},
  {SQLITE_BUSY_SNAPSHOT, DK_BUSY, false},
  {SQLITE_BUSY_RECOVERY, DK_BUSY, false},
  {SQLITE_BUSY_TIMEOUT, DK_BUSY, false},
  {SQLITE_LOCKED, DK_BUSY, false},
  {SQLITE_LOCKED_SHAREDCACHE, DK_BUSY, false},
  {SQLITE_PROTOCOL, DK_BUSY, true},
  {SQLITE_FULL, DK_UNAVAILABLE, false},
  {SQLITE_NOMEM, DK_NO_MEMORY, false},
  {SQLITE_IOERR_NOMEM, DK_NO_MEMORY, false},
  {SQLITE_IOERR, DK_UNAVAILABLE, true},
  {SQLITE_IOERR_READ, DK_UNAVAILABLE, true},
  {SQLITE_IOERR_WRITE, DK_UNAVAILABLE, true},
  {SQLITE_IOERR_FSYNC, DK_UNAVAILABLE, true},
  {SQLITE_IOERR_DIR_FSYNC, DK_UNAVAILABLE, true},
  {SQLITE_IOERR_LOCK, DK_UNAVAILABLE, true}, /* no row of its own */
  {SQLITE_IOERR_CORRUPTFS, DK_UNAVAILABLE, true},
  {SQLITE_CORRUPT, DK_CORRUPT, true},
  {SQLITE_CORRUPT_INDEX, DK_CORRUPT, true},
  {SQLITE_NOTADB, DK_CORRUPT, true},
  {SQLITE_READONLY, DK_UNAVAILABLE, true}, /* it may pass: the rights are asked of the system */
  {SQLITE_READONLY_DIRECTORY, DK_UNAVAILABLE, true},
  {SQLITE_READONLY_DBMOVED, DK_UNAVAILABLE, true}, /* if it was, the next look refuses it */
  {SQLITE_CANTOPEN, DK_UNAVAILABLE, true},
  {SQLITE_CANTOPEN_ISDIR, DK_UNAVAILABLE, true},
  {SQLITE_PERM, DK_UNAVAILABLE, true},
  {SQLITE_TOOBIG, DK_TOO_LARGE, false},
  {SQLITE_ERROR, DK_INTERNAL, true},
  {SQLITE_CONSTRAINT_UNIQUE, DK_INTERNAL, false},
  {SQLITE_MISUSE, DK_INTERNAL, true},
};

static void
test_codes(void)
{
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    cmp_ok(why_status_of(codes[i].code), "==", codes[i].status, "the status of %d", codes[i].code);
    cmp_ok(why_poisons(codes[i].code), "==", codes[i].poisons, "whether %d poisons",
           codes[i].code);
  }
}

static void
test_texts(void)
{
  sqlite3 *db = somebody(place("texts"));

  /* What SQLite gives is the primary code; the extended one is asked for. */
  run_sql(db, "CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES(1)");
  int code = sqlite3_exec(db, "INSERT INTO t VALUES(1)", NULL, NULL, NULL);
  cmp_ok(code, "==", SQLITE_CONSTRAINT, "a primary code");
  expect_refused(why_sqlite(&why, db, code, "inserting"), DK_INTERNAL, "inserting: ", "t.a",
                 "SQLite's message is in the text");
  cmp_ok(why.code, "==", SQLITE_CONSTRAINT_UNIQUE, "the extended code is kept");
  ok(!why.poisons, "the connection can be used");
  sqlite3_close(db);
  expect_refused(why_sqlite(&why, NULL, SQLITE_IOERR_FSYNC, "syncing"), DK_UNAVAILABLE,
                 "SQLITE_IOERR_FSYNC", "system's log", "without a connection");
  ok(why.poisons, "a failed sync poisons");
  expect_refused(why_set(&why, DK_BUSY, "%s %d", "text", 7), DK_BUSY, "text 7", "", "a text");
  ok(why.code == 0 && !why.poisons, "has no code of SQLite");
  char big[3000];
  memset(big, 'x', sizeof big - 1);
  big[sizeof big - 1] = '\0';
  why_set(&why, DK_BUSY, "%s", big);
  cmp_ok(strlen(why.text), "==", sizeof why.text - 1, "what is too long is cut");
  expect_refused(why_errno(&why, ENOSPC, "writing", "/a"), DK_UNAVAILABLE, "/a: writing",
                 "free space", "a full disk");
  expect_refused(why_errno(&why, EACCES, "writing", "/a"), DK_REFUSED, "Permission denied",
                 "read-only", "no right");
  expect_refused(why_errno(&why, ENOMEM, "writing", "/a"), DK_NO_MEMORY, "/a", "", "no memory");
}

/* ---- settings -------------------------------------------------------------------------------- */

static dk_status
read_settings(const char *store, const char *synchronous, const char *busy_timeout,
              struct settings *settings)
{
  struct dk_setting list[3];
  struct dk_open open = {sizeof open, 0, list, 0};

  if (store)
    list[open.n_settings++] = (struct dk_setting){"store", {store, strlen(store)}};
  if (synchronous)
    list[open.n_settings++] =
      (struct dk_setting){"synchronous", {synchronous, strlen(synchronous)}};
  if (busy_timeout)
    list[open.n_settings++] =
      (struct dk_setting){"busy_timeout", {busy_timeout, strlen(busy_timeout)}};
  return settings_read(&open, settings, &why);
}

static void
expect_busy(const char *value, int64_t expected)
{
  struct settings settings;

  cmp_ok(read_settings("store", NULL, value, &settings), "==", DK_OK, "busy_timeout %s",
         value ? value : "absent");
  cmp_ok(settings.busy_ms, "==", expected, "is so many ms");
  settings_done(&settings);
}

static void
expect_path(const char *store, const char *expected)
{
  struct settings settings;

  cmp_ok(read_settings(store, NULL, NULL, &settings), "==", DK_OK, "store %s", store);
  is(settings.path, expected, "is this file");
  cmp_ok(settings.synchronous, "==", SYNCHRONOUS_FULL, "synchronous is full by default");
  settings_done(&settings);
}

static void
test_settings(void)
{
  struct settings settings;
  char folder[600], path[700];

  snprintf(folder, sizeof folder, "%s", place(""));
  folder[strlen(folder) - 1] = '\0';
  if (chdir(folder) < 0)
    BAIL_OUT("no folder");
  expect_busy(NULL, 5000);
  expect_busy("0", 0);
  expect_busy("250ms", 250);
  expect_busy("3s", 3000);
  expect_busy("2m", 120000);
  expect_busy("1h", 3600000);
  expect_busy("7", 7);
  expect_path("store", place("store"));
  expect_path("//absent", "/absent");
  snprintf(path, sizeof path, "%s/./store", folder);
  expect_path(path, place("store"));
  cmp_ok(read_settings("a", "normal", NULL, &settings), "==", DK_OK, "synchronous normal");
  cmp_ok(settings.synchronous, "==", SYNCHRONOUS_NORMAL, "is 1");
  settings_done(&settings);

  expect_refused(read_settings(NULL, NULL, NULL, &settings), DK_INVALID, "store is missing",
                 "expected", "no store");
  expect_refused(read_settings(":memory:", NULL, NULL, &settings), DK_INVALID, ":memory:", "file",
                 "a store in memory");
  expect_refused(read_settings("a", "off", NULL, &settings), DK_INVALID, "\"off\"",
                 "full or normal", "synchronous off");
  expect_refused(read_settings("a", NULL, "5 days", &settings), DK_INVALID, "5 days", "500ms",
                 "a busy_timeout that is not a duration");
  expect_refused(read_settings("a", NULL, "99999999999999999h", &settings), DK_INVALID, "9h",
                 "500ms", "a busy_timeout that is too long");
  expect_refused(read_settings("folder/x", NULL, NULL, &settings), DK_NOT_FOUND, "folder/x",
                 "the folder of the store", "a folder that does not exist");
  memset(path, 'x', sizeof path);
  path[255] = '/';
  path[511] = '\0';
  expect_refused(read_settings(path, NULL, NULL, &settings), DK_NOT_FOUND, "the folder", "xxx",
                 "a long path that does not exist");
  for (int i = 0; i < 255; i++)
    memcpy(path + 2 * i, "./", 2);
  memset(path + 300, 'y', 200);
  path[500] = '\0';
  cmp_ok(read_settings(path, NULL, NULL, &settings), "==", DK_OK, "a path is measured as it is");
  settings_done(&settings);
}

int
main(void)
{
  plan(NO_PLAN);
  begin();
  test_codes();
  test_texts();
  test_settings();
  return end();
}
