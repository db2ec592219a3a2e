/* SPDX-License-Identifier: Apache-2.0 */
/* A fault that passes: each call of the system by the plugin and its SQLite, in open, in each
 * operation and in close, fails once, with each errno that suits it and does not last; so does each
 * allocation.  The operation then succeeds, or may be tried again, and nothing is refused for good.
 * Afterwards the same handle writes and reads, and so do another of the process and one of another
 * process beside it; the store's content is right.
 *
 *   DURAKIT_DEEP=1    every case; else some of each operation's, spread over it */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/sqlite/test-deeds.h"
#include "providers/sqlite/test-system.h"

#ifdef HAVE_VALGRIND
#include <valgrind/valgrind.h>
#endif

/* Cases of one operation that are tried, of its calls and of its allocations. */
static int most_calls = 30, most_allocations = 6;

static const char *template, *path;

/* ---- another process ------------------------------------------------------------------------- */

static int neighbour = -1;
static pid_t neighbour_pid;

static dk_status
write_once(const char *instance)
{
  struct doer doer;
  dk_status status = doer_open(&doer, path, 0);

  if (status == DK_OK)
    status = enqueue_bytes(&doer, instance, 10);
  doer_close(&doer);
  return status;
}

/* Writes once for each byte that it is sent, and sends the status. */
static void
live_beside(int fd)
{
  char byte;

  while (read(fd, &byte, 1) == 1) {
    dk_status status = write_once("neighbour");
    if (write(fd, &status, sizeof status) != (ssize_t)sizeof status)
      break;
  }
  _exit(0);
}

static void
neighbour_begin(void)
{
  int ends[2];

  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
    BAIL_OUT("no sockets");
  neighbour_pid = fork();
  if (neighbour_pid < 0)
    BAIL_OUT("no other process");
  if (neighbour_pid == 0) {
    close(ends[0]);
    live_beside(ends[1]);
  }
  close(ends[1]);
  neighbour = ends[0];
}

static dk_status
neighbour_writes(void)
{
  dk_status status = DK_INTERNAL;

  if (write(neighbour, "w", 1) != 1 ||
      read(neighbour, &status, sizeof status) != (ssize_t)sizeof status)
    BAIL_OUT("the other process has ended");
  return status;
}

/* ---- cases ----------------------------------------------------------------------------------- */

struct one_case {
  const char *name;
  int n, which;         /* the nth call fails so */
  bool is_memory;
};

static struct tally {
  int cases, failed, wrong;
} tally;

static bool
complain(const struct one_case *c, const char *what, dk_status status, const char *why_it_says)
{
  if (tally.wrong < 10 && c->n > 0 && c->n <= MOST_CALLS)
    diag("%s, call %d (%s: %s): %s; status %d: %s", c->name, c->n,
         system_kind_name(seen.kinds[c->n - 1]), system_error(seen.kinds[c->n - 1], c->which),
         what, (int)status, why_it_says);
  else if (tally.wrong < 10)
    diag("%s, no fault: %s; status %d: %s", c->name, what, (int)status, why_it_says);
  return false;
}

static bool
is_of_a_fault(dk_status status)
{
  return status == DK_OK || dk_status_class(status) == 1 || dk_status_class(status) == 3;
}

/* The handle works, and so do others beside it. */
static bool
all_can_write(const struct one_case *c, struct doer *doer)
{
  dk_status status = enqueue_bytes(doer, "later", 10);

  if (status != DK_OK)
    return complain(c, "the handle does not write afterwards", status, failure_of(doer));
  status = deed_do(READING, doer, false);
  if (status != DK_OK)
    return complain(c, "the handle does not read afterwards", status, failure_of(doer));
  status = write_once("beside");
  if (status != DK_OK)
    return complain(c, "another handle does not write", status, "");
  status = neighbour_writes();
  if (status != DK_OK)
    return complain(c, "another process does not write", status, "");
  return true;
}

static bool
fits_together(const struct one_case *c, int deed, enum state expected)
{
  enum state states[DEEDS];

  if (deeds_look(path, states) != 0)
    return complain(c, "what is there does not fit together", DK_OK, "");
  for (int i = 0; i < READING; i++)
    if (states[i] != (i == deed ? expected : UNDONE))
      return complain(c, deed_name(i), DK_OK, "it is not as it was answered");
  if (number_at(path, "SELECT count(*) FROM message m JOIN instance i ON i.iid=m.iid"
                      " WHERE instance='earlier'") != 1)
    return complain(c, "what was there before is lost", DK_OK, "");
  return true;
}

/* ---- an operation ---------------------------------------------------------------------------- */

static void
begin_store(const char *from)
{
  static const char *const endings[] = {"-wal", "-shm", "-lock", "-journal", ""};
  char name[300];

  for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
    snprintf(name, sizeof name, "%s%s", path, endings[i]);
    unlink(name);
  }
  if (from)
    copy_file(from, path);
}

static void
must_open(struct doer *doer, uint32_t flags)
{
  if (doer_open(doer, path, flags) != DK_OK)
    BAIL_OUT("%s", failure_of(doer));
}

/* What may be tried again is, and what is unknown is found out. */
static bool
is_done_at_last(const struct one_case *c, int deed, struct doer *doer, dk_status status)
{
  enum state states[DEEDS];

  if (!is_of_a_fault(status))
    return complain(c, "the answer is not of a fault that passes", status, failure_of(doer));
  if (status == DK_OK)
    return true;
  deeds_look(path, states);
  if (states[deed] == HALF_DONE ||
      (states[deed] == DONE && deed != READING && dk_status_class(status) != 3))
    return complain(c, "what was refused is there", status, failure_of(doer));
  if (states[deed] == DONE)
    return true;
  status = deed_do(deed, doer, dk_status_class(status) == 3);
  return status == DK_OK ||
         complain(c, "it does not work afterwards", status, failure_of(doer));
}

static bool
try_deed(const struct one_case *c, int deed)
{
  struct doer doer;

  begin_store(template);
  must_open(&doer, 0);
  if (enqueue_bytes(&doer, "earlier", 8000) != DK_OK)
    BAIL_OUT("%s", failure_of(&doer));
  system_count(c->is_memory, c->n, c->which);
  dk_status status = deed_do(deed, &doer, false);
  system_stop();
  bool is_right = is_done_at_last(c, deed, &doer, status) && all_can_write(c, &doer);
  doer_close(&doer);
  return is_right && fits_together(c, deed, DONE);
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* What lies there when it is opened, and what else is done than a deed. */
enum before { CLOSED, LEFT_LOG, DATABASE_ONLY, TO_READ, EMPTY_FOLDER, OLD_VERSION, TO_CLOSE,
              TO_WAIT, TO_READ_AGAIN, WAYS };

static const char *const way_names[WAYS] = {
  "open what was closed", "open what a killed process left", "open the database alone",
  "open read-only", "make a store", "migrate version 1", "close", "wait for nothing", "read again"};

static void
write_and_die(void *context)
{
  struct doer doer;

  (void)context;
  must_open(&doer, 0);
  if (enqueue_bytes(&doer, "earlier", 8000) != DK_OK)
    _exit(1);
  raise(SIGKILL);
}

static void
prepare_way(enum before way)
{
  struct doer doer;

  begin_store(way == EMPTY_FOLDER || way == OLD_VERSION ? NULL : template);
  if (way == OLD_VERSION)
    make_version_1(path);
  if (way == LEFT_LOG && in_child(write_and_die, NULL) != -SIGKILL)
    BAIL_OUT("no process that is killed");
  if (way == EMPTY_FOLDER || way == OLD_VERSION || way == LEFT_LOG)
    return;
  must_open(&doer, 0);
  if (enqueue_bytes(&doer, "earlier", 8000) != DK_OK)
    BAIL_OUT("%s", failure_of(&doer));
  doer_close(&doer);
  if (way == DATABASE_ONLY) /* the last to close leaves one file, if it is not of ours */
    sql_at(path, "SELECT count(*) FROM meta");
}

/* A handle that only reads, and beside it those that write. */
static bool
others_can_write(const struct one_case *c, struct doer *doer)
{
  dk_status status = deed_do(READING, doer, false);

  if (status != DK_OK)
    return complain(c, "the handle does not read afterwards", status, failure_of(doer));
  status = neighbour_writes();
  if (status != DK_OK)
    return complain(c, "another process does not write", status, "");
  status = write_once("beside");
  if (status != DK_OK)
    return complain(c, "another handle does not write", status, "");
  status = deed_do(READING, doer, false);
  return status == DK_OK ||
         complain(c, "the handle does not read at last", status, failure_of(doer));
}

static bool
holds_new_store(const struct one_case *c, struct doer *doer)
{
  for (int i = 0; i < 2; i++) {
    dk_status status = enqueue_bytes(doer, "later", 10);
    if (status != DK_OK)
      return complain(c, "the handle does not write afterwards", status, failure_of(doer));
  }
  dk_status status = neighbour_writes();
  return status == DK_OK || complain(c, "another process does not write", status, "");
}

static bool
is_opened(const struct one_case *c, struct doer *doer, uint32_t flags)
{
  system_count(c->is_memory, c->n, c->which);
  dk_status status = doer_open(doer, path, flags);
  system_stop();
  if (status == DK_OK)
    return true;
  if (!is_of_a_fault(status)) {
    complain(c, "the answer is not of a fault that passes", status, failure_of(doer));
    doer_close(doer);
    return false;
  }
  doer_close(doer);
  status = doer_open(doer, path, flags);
  if (status == DK_OK)
    return true;
  complain(c, "it cannot be opened afterwards", status, failure_of(doer));
  doer_close(doer);
  return false;
}

static bool
try_opening(const struct one_case *c, enum before way)
{
  uint32_t flags = way == EMPTY_FOLDER ? DK_OPEN_CREATE : way == TO_READ ? DK_OPEN_READ_ONLY : 0;
  struct doer doer;

  if (!is_opened(c, &doer, flags))
    return false;
  bool is_right = way == TO_READ ? others_can_write(c, &doer)
                  : way == EMPTY_FOLDER || way == OLD_VERSION ? holds_new_store(c, &doer)
                                                              : all_can_write(c, &doer);
  doer_close(&doer);
  if (way == EMPTY_FOLDER || way == OLD_VERSION)
    return is_right && (number_at(path, "SELECT count(*) FROM pragma_integrity_check"
                                        " WHERE integrity_check<>'ok'") == 0 ||
                        complain(c, "the store is damaged", DK_OK, ""));
  return is_right && fits_together(c, -1, UNDONE);
}

static bool
try_closing(const struct one_case *c)
{
  struct doer doer, next;

  must_open(&doer, 0);
  if (deed_do(READING, &doer, false) != DK_OK || enqueue_bytes(&doer, "later", 10) != DK_OK)
    BAIL_OUT("%s", failure_of(&doer));
  system_count(c->is_memory, c->n, c->which);
  doer_close(&doer);
  system_stop();
  dk_status status = neighbour_writes();
  if (status != DK_OK)
    return complain(c, "another process does not write", status, "");
  must_open(&next, 0);
  bool is_right = all_can_write(c, &next);
  doer_close(&next);
  return is_right && fits_together(c, -1, UNDONE);
}

/* On connections that were used before. */
static bool
try_again(const struct one_case *c, enum before way)
{
  struct doer doer;

  must_open(&doer, 0);
  if (deed_do(READING, &doer, false) != DK_OK || wait_in_vain(&doer) != DK_NOTHING)
    BAIL_OUT("%s", failure_of(&doer));
  dk_status expected = way == TO_WAIT ? DK_NOTHING : DK_OK;
  system_count(c->is_memory, c->n, c->which);
  dk_status status = way == TO_WAIT ? wait_in_vain(&doer) : deed_do(READING, &doer, false);
  system_stop();
  bool is_right = status == expected || dk_status_class(status) == 1 ||
                  complain(c, "the answer is not of a fault that passes", status,
                           failure_of(&doer));
  is_right = is_right && all_can_write(c, &doer);
  if (is_right && wait_in_vain(&doer) != DK_NOTHING)
    is_right = complain(c, "it does not wait afterwards", DK_OK, failure_of(&doer));
  doer_close(&doer);
  return is_right && fits_together(c, -1, UNDONE);
}

/* ---- sweeping -------------------------------------------------------------------------------- */

/* An operation by its number: the deeds, then the ways. */
static bool
try_case(const struct one_case *c, int operation)
{
  if (operation < DEEDS)
    return try_deed(c, operation);
  enum before way = (enum before)(operation - DEEDS);
  prepare_way(way);
  return way == TO_CLOSE  ? try_closing(c)
         : way > TO_CLOSE ? try_again(c, way)
                          : try_opening(c, way);
}

static void
try_and_count(const struct one_case *c, int operation)
{
  bool is_right = try_case(c, operation);

  tally.cases++;
  tally.failed += seen.has_failed;
  tally.wrong += !is_right;
}

/* Each errno of each call is a case; of `most` cases, every so many. */
static void
sweep(const char *name, int operation, bool is_memory, int most)
{
  static unsigned char kinds[MOST_CALLS];
  struct one_case c = {.name = name, .is_memory = is_memory};
  int n_cases = 0, number = 0;

  tally = (struct tally){0};
  if (!try_case(&c, operation))
    tally.wrong++;
  int n_calls = seen.count;
  memcpy(kinds, seen.kinds, (size_t)n_calls);
  for (int i = 0; i < n_calls; i++)
    n_cases += system_errors(kinds[i]);
  for (int i = 0; i < n_calls; i++)
    for (int which = 0; which < system_errors(kinds[i]); which++, number++) {
      c.n = i + 1;
      c.which = which;
      if ((long)number * most / n_cases != (long)(number + 1) * most / n_cases || most >= n_cases)
        try_and_count(&c, operation);
    }
  cmp_ok(tally.wrong, "==", 0, "%s: after each of %d faults of %d %s all is well", name,
         tally.cases, n_calls, is_memory ? "allocations" : "calls");
  if (n_cases > 0 && most > 0)
    cmp_ok(tally.failed, ">", 0, "%s: it was tried", name);
}

static void
sweep_all(bool is_memory, int most)
{
  for (int i = 0; i < DEEDS; i++)
    sweep(deed_name(i), i, is_memory, most);
  for (int i = 0; i < WAYS; i++)
    sweep(way_names[i], DEEDS + i, is_memory, most);
}

static void
choose_how_many(void)
{
  if (getenv("DURAKIT_DEEP"))
    most_calls = most_allocations = INT_MAX / 2;
#ifdef HAVE_VALGRIND
  if (RUNNING_ON_VALGRIND)
    most_calls = 1, most_allocations = 0;
#endif
}

int
main(void)
{
  plan(NO_PLAN);
  begin();
  deeds_begin();
  template = strdup(place("template.db"));
  path = strdup(place("tried.db"));
  system_begin();
  choose_how_many();
  neighbour_begin();
  deeds_prepare(template);
  sweep_all(false, most_calls);
  if (!system_has_memory())
    skip(1, "a sanitizer has its own memory");
  else if (most_allocations == 0)
    skip(1, "the allocations: too slow under Valgrind");
  else
    sweep_all(true, most_allocations);
  close(neighbour);
  waitpid(neighbour_pid, NULL, 0);
  deeds_end();
  free((char *)template);
  free((char *)path);
  return end();
}
