/* SPDX-License-Identifier: Apache-2.0 */
/* Killed (SIGKILL) before each system call that changes a file, while a store is made or migrated,
 * or something is removed from it: afterwards the store is whole, in its old or its new state, and
 * the next open succeeds. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "providers/sqlite/test-calls.h"
#include "providers/sqlite/test-deeds.h"

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

/* The store's own number is random. */
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

/* Not on the stack: memcheck looks in the exiting child for memory without a pointer to it, and the
 * optimizer may have left a local in no place where that is seen. */
static char *before, *after, *made;

/* The store `old` becomes another when it is opened; `is_new` says by SQL whether it has. */
static void
test_change(const char *old, const char *is_new, const char *name)
{
  const char *new = place("new"), *path = place("killed");
  int n, wrong = 0, left[2] = {0, 0}, status;

  destroy(new);
  copy_file(old, new);
  try_open(new, 0);
  before = dump_with_number_1(old);
  after = dump_with_number_1(new);
  for (n = 1;; n += calls_step()) {
    destroy(path);
    copy_file(old, path);
    status = killed_at(n, path, 0);
    if (status != -SIGKILL)
      break;
    bool is_done = number_at(path, is_new) != 0;
    left[is_done]++;
    wrong += !is_dump(path, is_done ? after : before);
    wrong += try_open(path, 0) != DK_OK || !is_dump(path, after);
  }
  cmp_ok(status, "==", 0, "%s: at last it was done", name);
  cmp_ok(n, ">", 20, "%s: killed before each of %d calls (step %d)", name, n - 1, calls_step());
  cmp_ok(wrong, "==", 0, "%s: the old or the new one was left, whole, and then opened", name);
  ok(left[0] > 0 && (left[1] > 0 || calls_step() > 1), "%s: %d times the old one, %d times the new",
     name, left[0], left[1]);
  free(before);
  free(after);
}

static void
test_migration(const char *before_sql, const char *name)
{
  const char *old = place("old");

  unlink(old);
  make_version_1(old);
  sql_at(old, before_sql);
  test_change(old, "SELECT user_version=2 FROM pragma_user_version", name);
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

/* ---- removing -------------------------------------------------------------------------------- */

struct deed_victim {
  const char *path;
  int deed, dies_before;
};

static void
do_and_die(void *context)
{
  const struct deed_victim *victim = context;
  struct doer doer;

  if (doer_open(&doer, victim->path, 0) != DK_OK)
    _exit(2);
  calls = (struct calls){.kinds = CALL_ANY, .dies_before = victim->dies_before};
  if (deed_do(victim->deed, &doer, false) != DK_OK)
    _exit(3);
  doer_close(&doer);
  _exit(0);
}

/* What it is like, and that all else is as it was. */
static enum state
look(const char *path, int deed, int *wrong)
{
  enum state states[DEEDS];

  *wrong += deeds_look(path, states) != 0;
  for (int i = 0; i < DEEDS; i++)
    *wrong += i != deed && states[i] != UNDONE;
  *wrong += states[deed] == HALF_DONE;
  return states[deed];
}

static void
try_again(const char *path, int deed, enum state state, int *wrong)
{
  dk_status expected = state == DONE ? deed_answer_when_repeated(deed) : DK_OK;
  struct doer doer;

  if (doer_open(&doer, path, 0) != DK_OK)
    BAIL_OUT("%s", failure_of(&doer));
  *wrong += deed_do(deed, &doer, false) != expected;
  doer_close(&doer);
  *wrong += look(path, deed, wrong) != DONE;
}

/* DEL-4, PRUNE-3: all of it, or nothing. */
static void
test_deed(const char *prepared, int deed)
{
  const char *path = place("removed");
  int n, wrong = 0, left[2] = {0, 0}, status;

  for (n = 1;; n += calls_step()) {
    destroy(path);
    copy_file(prepared, path);
    status = in_child(do_and_die, &(struct deed_victim){path, deed, n});
    if (status != -SIGKILL)
      break;
    enum state state = look(path, deed, &wrong);
    left[state == DONE]++;
    try_again(path, deed, state, &wrong);
  }
  cmp_ok(status, "==", 0, "%s: at last it was done", deed_name(deed));
  cmp_ok(n, ">", 5, "%s: killed before each of %d calls (step %d)", deed_name(deed), n - 1,
         calls_step());
  cmp_ok(wrong, "==", 0, "%s: all of it or nothing was done, and then the rest", deed_name(deed));
  ok(left[0] > 0 && (left[1] > 0 || calls_step() > 1), "%s: %d times nothing, %d times all",
     deed_name(deed), left[0], left[1]);
}

static void
test_removing(void)
{
  const char *prepared = place("prepared");

  deeds_begin();
  deeds_prepare(prepared);
  for (int deed = REMOVING; deed < READING; deed++)
    test_deed(prepared, deed);
  deeds_end();
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
  test_removing();
  return end();
}
