/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to a store's files under an open handle, and files that were left behind: an operation
 * works, or is refused with the reason; nothing is lost silently.  And a member of a group that
 * fails alone. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/sqlite/test-deeds.h"

static const char *const endings[] = {"", "-wal", "-shm", "-lock"};
enum { ENDINGS = 4 };

static const char *
named(const char *name, const char *ending)
{
  char both[200];

  snprintf(both, sizeof both, "%s%s", name, ending);
  return place(both);
}

static void
given_store(struct doer *doer, const char *name)
{
  if (doer_open(doer, place(name), DK_OPEN_CREATE) != DK_OK ||
      enqueue_bytes(doer, "earlier", 100) != DK_OK)
    BAIL_OUT("%s", failure_of(doer));
}

static void
expect_told(const struct doer *doer, dk_status got, dk_status expected, const char *part,
            const char *name)
{
  if (!ok(got == expected && strstr(failure_of(doer), part), "%s", name))
    diag("got %d: %s; expected %d and \"%s\"", (int)got, failure_of(doer), (int)expected, part);
}

static dk_status
read_history(struct doer *doer)
{
  return deed_do(READING, doer, false);
}

/* ---- a deleted file -------------------------------------------------------------------------- */

static void
test_removed(const char *ending)
{
  struct doer doer;
  char name[64];

  snprintf(name, sizeof name, "removed%s.db", ending);
  given_store(&doer, name);
  read_history(&doer); /* which brings nothing, on a connection that is kept */
  if (unlink(named(name, ending)) < 0)
    BAIL_OUT("%s does not exist", named(name, ending));
  snprintf(name, sizeof name, "store%s is removed: it is reported", ending);
  expect_told(&doer, enqueue_bytes(&doer, "lost", 100), DK_REFUSED, "removed, moved or replaced",
              name);
  expect_told(&doer, read_history(&doer), DK_REFUSED, "removed, moved or replaced",
              "and to a reader too");
  doer_close(&doer);
}

static void
test_replaced(void)
{
  struct doer doer, other;

  given_store(&doer, "replaced.db");
  given_store(&other, "other.db");
  doer_close(&other);
  for (int i = 0; i < ENDINGS; i++)
    if (rename(named("other.db", endings[i]), named("replaced.db", endings[i])) < 0 && i == 0)
      BAIL_OUT("the store cannot be replaced");
  expect_told(&doer, enqueue_bytes(&doer, "lost", 100), DK_REFUSED, "removed, moved or replaced",
              "another store is in its place: it is reported");
  doer_close(&doer);
  cmp_ok(doer_open(&doer, place("replaced.db"), 0), "==", DK_OK, "it can be opened");
  cmp_ok(number_at(place("replaced.db"),
                   "SELECT count(*) FROM instance WHERE instance='lost'"), "==", 0,
         "and nothing was written into it");
  doer_close(&doer);
}

static void
test_mode(void)
{
  struct doer doer;

  given_store(&doer, "mode.db");
  chmod(place("mode.db"), 0400);
  cmp_ok(enqueue_bytes(&doer, "new", 100), "==", DK_OK, "its mode forbids writing: it continues");
  chmod(place("mode.db"), 0600);
  doer_close(&doer);
  cmp_ok(number_at(place("mode.db"), "SELECT count(*) FROM message"), "==", 2,
         "and what it has written is there");
}

/* ---- a read-only handle ---------------------------------------------------------------------- */

static void
test_read_only(const char *template)
{
  const char *path = place("read-only.db");
  enum state states[DEEDS];
  struct doer doer;
  int refused = 0;

  copy_file(template, path);
  cmp_ok(doer_open(&doer, path, DK_OPEN_READ_ONLY), "==", DK_OK, "a read-only handle");
  for (int i = 0; i < READING; i++)
    refused += deed_do(i, &doer, false) == DK_REFUSED &&
               strstr(failure_of(&doer), "was opened read-only") != NULL;
  cmp_ok(refused, "==", READING, "it refuses all that would write");
  cmp_ok(read_history(&doer), "==", DK_OK, "and reads a history");
  doer_close(&doer);
  deeds_look(path, states);
  for (int i = 0; i < DEEDS; i++)
    refused -= states[i] == UNDONE;
  cmp_ok(refused, "==", -1, "nothing has changed");
}

/* ---- a process that was killed --------------------------------------------------------------- */

static void
do_some_and_die(void *context)
{
  struct doer doer;

  if (doer_open(&doer, context, 0) != DK_OK)
    _exit(2);
  for (int i = 0; i < DEEDS; i++)
    if (deed_do(i, &doer, false) != DK_OK)
      _exit(3);
  raise(SIGKILL);
}

static void
test_left_log(const char *template)
{
  const char *path = place("left.db");
  enum state states[DEEDS];
  struct doer doer;
  struct stat log;
  int done = 0;

  copy_file(template, path);
  cmp_ok(in_child(do_some_and_die, (void *)path), "==", -SIGKILL,
         "a process is killed when it has done much");
  if (stat(place("left.db-wal"), &log) < 0)
    log.st_size = 0;
  cmp_ok(log.st_size, ">", 4096, "it has left its log");
  unlink(place("left.db-shm")); /* as after a crash of the machine */
  cmp_ok(doer_open(&doer, path, 0), "==", DK_OK, "the next opens the store");
  cmp_ok(enqueue_bytes(&doer, "next", 100), "==", DK_OK, "and continues");
  cmp_ok(deeds_look(path, states), "==", 0, "all is consistent");
  for (int i = 0; i < READING; i++)
    done += states[i] == DONE;
  cmp_ok(done, "==", READING, "and all that it has acknowledged is there");
  doer_close(&doer);
}

/* ---- one member that fails alone ------------------------------------------------------------- */

struct member {
  struct doer doer;
  int deed;             /* -1: the one that is too large */
  dk_status answer;
};

static void *
do_one(void *context)
{
  struct member *m = context;

  m->answer = m->deed < 0 ? enqueue_bytes(&m->doer, "large", 12 << 20)
                          : deed_do(m->deed, &m->doer, false);
  return NULL;
}

/* All at once, and too little memory for one of them. */
static void
test_member(const char *template)
{
  const char *path = place("member.db");
  struct member members[READING + 1];
  pthread_t threads[READING + 1];
  enum state states[DEEDS];
  struct doer doer;
  int done = 0;

  copy_file(template, path);
  if (doer_open(&doer, path, 0) != DK_OK)
    BAIL_OUT("%s", failure_of(&doer));
  sqlite3_hard_heap_limit64(sqlite3_memory_used() + (8 << 20));
  for (int i = 0; i <= READING; i++) {
    members[i] = (struct member){.doer = doer_with_caller(&doer), .deed = i - 1};
    if (pthread_create(&threads[i], NULL, do_one, &members[i]) != 0)
      BAIL_OUT("no thread");
  }
  for (int i = 0; i <= READING; i++)
    pthread_join(threads[i], NULL);
  sqlite3_hard_heap_limit64(0);
  expect_told(&members[0].doer, members[0].answer, DK_NO_MEMORY, "memory",
              "one that needs more memory than there is fails");
  cmp_ok(deeds_look(path, states), "==", 0, "all is consistent");
  for (int i = 0; i < READING; i++)
    done += members[i + 1].answer == DK_OK && states[i] == DONE;
  cmp_ok(done, "==", READING, "the others are done");
  cmp_ok(do_one(&members[0]) == NULL && members[0].answer == DK_OK, "==", 1,
         "and so is the one, when there is enough");
  for (int i = 0; i <= READING; i++)
    dk_caller_free(members[i].doer.caller);
  doer_close(&doer);
}

int
main(void)
{
  plan(NO_PLAN);
  begin();
  deeds_begin();
  const char *template = place("template.db");
  deeds_prepare(template);
  for (int i = 0; i < ENDINGS; i++)
    test_removed(endings[i]);
  test_replaced();
  test_mode();
  test_read_only(template);
  test_left_log(template);
  test_member(template);
  deeds_end();
  return end();
}
