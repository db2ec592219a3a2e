/* SPDX-License-Identifier: Apache-2.0 */
/* Killed (SIGKILL) before each system call that changes a file, while a store is made or migrated:
 * what is left is what was there before or what there was to be, whole, and is opened the next
 * time. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "providers/sqlite/test-calls.h"
#include "providers/sqlite/test-files.h"

struct victim {
  const char *path;
  uint32_t flags;
};

static void
open_and_die(void *context)
{
  const struct victim *victim = context;

  _exit(try_open(victim->path, victim->flags) == DK_OK ? 0 : 1);
}

/* Opens it in a process that dies before its call `n`. */
static int
killed_at(int n, const char *path, uint32_t flags)
{
  struct victim victim = {path, flags};

  calls = (struct calls){.kinds = CALL_ANY, .dies_before = n};
  int status = in_child(open_and_die, &victim);
  calls.dies_before = 0;
  return status;
}

/* The store's own number is random: with one, and 0 stands for none. */
static char *
dump_with_number_1(const char *path)
{
  if (number_at(path, "PRAGMA user_version") == 2)
    sql_at(path, "UPDATE meta SET store = min(store, 1)");
  return dump_of(path);
}

static bool
is_dump(const char *path, const char *expected)
{
  char *found = dump_with_number_1(path);
  bool is_same = strcmp(found, expected) == 0;

  if (!is_same)
    diag("%s: found\n%s\nexpected\n%s", path, found, expected);
  free(found);
  return is_same;
}

/* Not on the stack: the child that exits is asked by memcheck for what nobody points to any more,
 * and the optimizer may have left a local in no place where that is seen. */
static char *version_1, *version_2, *made;

static void
test_migration(const char *before_sql, const char *name)
{
  const char *old = place("old"), *new = place("new"), *path = place("killed");
  int n, wrong = 0, left[2] = {0, 0}, status;

  unlink(old);
  destroy(new);
  make_version_1(old);
  sql_at(old, before_sql);
  copy_file(old, new);
  try_open(new, 0);
  version_1 = dump_of(old);
  version_2 = dump_with_number_1(new);
  for (n = 1;; n += calls_step()) {
    destroy(path);
    copy_file(old, path);
    status = killed_at(n, path, 0);
    if (status != -SIGKILL)
      break;
    bool is_old = number_at(path, "PRAGMA user_version") == 1;
    left[!is_old]++;
    wrong += !is_dump(path, is_old ? version_1 : version_2);
    wrong += try_open(path, 0) != DK_OK || !is_dump(path, version_2);
  }
  cmp_ok(status, "==", 0, "%s: at last it was done", name);
  cmp_ok(n, ">", 20, "%s: killed before each of %d calls (step %d)", name, n - 1, calls_step());
  cmp_ok(wrong, "==", 0, "%s: version 1 or 2 was left, whole, and then opened", name);
  ok(left[0] > 0 && (left[1] > 0 || calls_step() > 1),
     "%s: %d times 1 was left, %d times 2", name, left[0], left[1]);
  free(version_1);
  free(version_2);
}

static void
test_creation(bool has_file, const char *name)
{
  const char *path = place("made"), *whole = place("whole");
  int n, wrong = 0, status;

  try_open(whole, DK_OPEN_CREATE);
  made = dump_with_number_1(whole);
  for (n = 1;; n += calls_step()) {
    destroy(path);
    if (has_file)
      make_file(path, "", 0);
    status = killed_at(n, path, DK_OPEN_CREATE);
    if (status != -SIGKILL)
      break;
    /* Without leave to make one there is none, or a whole one. */
    dk_status found = try_open(path, 0);
    wrong += found != DK_NOT_FOUND && !(found == DK_OK && is_dump(path, made));
    wrong += try_open(path, DK_OPEN_CREATE) != DK_OK || !is_dump(path, made);
  }
  cmp_ok(status, "==", 0, "%s: at last it was made", name);
  cmp_ok(n, ">", 5, "%s: killed before each of %d calls", name, n - 1);
  cmp_ok(wrong, "==", 0, "%s: none or a whole one was left, and then it was made", name);
  free(made);
}

int
main(void)
{
  plan(NO_PLAN);
  begin();
  calls_begin();
  test_creation(false, "a new store");
  test_creation(true, "an empty file");
  test_migration("PRAGMA journal_mode = DELETE", "version 1 with a rollback journal");
  test_migration("PRAGMA journal_mode = WAL", "version 1 with a log");
  return end();
}
