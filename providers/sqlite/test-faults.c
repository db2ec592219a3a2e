/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of the disk and of memory in the middle of operations: one caller, and all deeds in one
 * group.  Each call of the system fails, once or until the fault is removed.  An operation that
 * answered DK_OK must be in the store, in a copy as a killed process leaves it, and there after a
 * power cut.  One that may be tried again must have left nothing.  Each must report the reason, and
 * work after the fault is removed. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "providers/sqlite/test-calls.h"
#include "providers/sqlite/test-deeds.h"
#include "providers/sqlite/test-disk.h"

struct fault {
  unsigned kinds;
  int error;
  bool is_once;
  bool is_for_groups;   /* only */
  const char *name;
};

static const struct fault faults[] = {
  {CALL_WRITE | CALL_CUT, ENOSPC, true, false, "no room, once"},
  {CALL_WRITE | CALL_CUT, ENOSPC, false, true, "no room"},
  {CALL_WRITE | CALL_CUT, EIO, true, true, "a write that fails"},
  {CALL_WRITE | CALL_CUT, EIO, false, false, "no writes"},
  {CALL_SYNC, EIO, true, false, "a sync that fails"},
  {CALL_SYNC, EIO, false, false, "no syncs"},
  {CALL_WRITE | CALL_CUT | CALL_SYNC, EIO, false, true, "neither writes nor syncs"},
  {CALL_WRITE | CALL_CUT, EROFS, false, true, "a filesystem that became read-only"},
  {CALL_READ, EIO, true, false, "a read that fails"},
  {CALL_OPEN | CALL_MAP, ENOMEM, true, false, "a file that cannot be opened"},
  {CALL_ANY | CALL_READ | CALL_OPEN | CALL_MAP, EIO, false, false, "no disk"},
  {CALL_MEMORY, ENOMEM, true, false, "no memory, once"},
};

/* ---- one case -------------------------------------------------------------------------------- */

static char *template, *path, *copy;

struct one_case {
  const struct fault *fault;
  int n;                        /* the call that fails */
  int deed;                     /* -1: all, at once */
  dk_status answers[DEEDS];
  char texts[DEEDS][256];
  bool is_wrong;
};
static int reached;     /* how many calls the last case made */
static struct tally {
  int cases, done, refused, unknown, wrong;
} tally;

static const char *
beside(const char *ending)
{
  char name[300];

  snprintf(name, sizeof name, "%s%s", strrchr(path, '/') + 1, ending);
  return place(name);
}

static bool
takes_part(const struct one_case *c, int deed)
{
  return c->deed < 0 || c->deed == deed;
}

static void
complain(struct one_case *c, int deed, const char *what)
{
  if (!c->is_wrong && tally.wrong < 10)
    diag("%s, call %d, %s: %s: %s; it answered %d: %s", c->fault->name, c->n,
         c->deed < 0 ? "all at once" : "alone", deed_name(deed), what, (int)c->answers[deed],
         c->texts[deed]);
  c->is_wrong = true;
}

static bool
fits(const struct one_case *c, int deed, enum state state)
{
  if (!takes_part(c, deed) || deed == READING)
    return state == UNDONE;
  switch (dk_status_class(c->answers[deed])) {
  case 0:
    return state == DONE;
  case 3:
    return state != HALF_DONE;
  default:
    return state == UNDONE;
  }
}

static void
look(struct one_case *c, const char *at, const char *what)
{
  enum state states[DEEDS];

  if (deeds_look(at, states) != 0)
    complain(c, c->deed < 0 ? 0 : c->deed, what);
  if (number_at(at, "SELECT count(*) FROM instance WHERE instance='earlier'") != 1)
    complain(c, c->deed < 0 ? 0 : c->deed, "what was done before is lost");
  for (int i = 0; i < DEEDS; i++)
    if (!fits(c, i, states[i]))
      complain(c, i, states[i] == HALF_DONE ? "half of it is there" : what);
}

/* Not in this process: closing a descriptor of the file drops SQLite's locks on it. */
static void
copy_files(void)
{
  char command[2200];

  snprintf(command, sizeof command, "rm -f '%s-wal' '%s-shm'; cp '%s' '%s'; cp '%s-wal' '%s-wal'",
           copy, copy, path, copy, path, copy);
  if (system(command) != 0)
    BAIL_OUT("the store cannot be copied");
}

static void
look_everywhere(struct one_case *c)
{
  copy_files();
  look(c, copy, "it does not hold in what a killed process leaves");
  disk_cut(copy);
  look(c, copy, "it does not hold after a power cut");
  look(c, path, "it does not hold in the store");
}

/* ---- doing ----------------------------------------------------------------------------------- */

static void
answer(struct one_case *c, int deed, struct doer *doer)
{
  c->answers[deed] = deed_do(deed, doer, false);
  if (c->answers[deed] != DK_OK)
    snprintf(c->texts[deed], sizeof c->texts[deed], "%s", failure_of(doer));
}

struct member {
  struct one_case *c;
  int deed;
  struct doer doer;
  pthread_t thread;
  atomic_int tid;
};

static void *
do_one(void *context)
{
  struct member *m = context;

  atomic_store(&m->tid, (int)syscall(SYS_gettid));
  answer(m->c, m->deed, &m->doer);
  return NULL;
}

static bool
is_blocked(struct member *m)
{
  char name[64], state = 'R';
  int tid = atomic_load(&m->tid);

  snprintf(name, sizeof name, "/proc/self/task/%d/stat", tid);
  FILE *file = tid ? fopen(name, "r") : NULL;
  if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
    state = 'R';
  if (file)
    fclose(file);
  return state == 'S';
}

/* While another process seems to have the store, all of them are queued: they are one group. */
static void
do_together(struct one_case *c, struct doer *doer)
{
  static struct member members[DEEDS];
  struct bell bell;
  struct lockfile lock;

  if (bell_init(&bell, path, &why) != DK_OK ||
      lockfile_open(&lock, &bell, path, false, &why) != DK_OK ||
      lockfile_take(&lock, 5000, -1, &why) != DK_OK)
    BAIL_OUT("%s", why.text);
  for (int i = 0; i < DEEDS; i++) {
    members[i] = (struct member){.c = c, .deed = i, .doer = doer_with_caller(doer)};
    if (pthread_create(&members[i].thread, NULL, do_one, &members[i]) != 0)
      BAIL_OUT("no thread");
  }
  for (int i = 0; i < READING; i++)
    while (!is_blocked(&members[i]))
      sched_yield();
  lockfile_release(&lock);
  for (int i = 0; i < DEEDS; i++) {
    pthread_join(members[i].thread, NULL);
    dk_caller_free(members[i].doer.caller);
  }
  lockfile_close(&lock);
  bell_done(&bell);
}

/* ---- what is to hold ------------------------------------------------------------------------- */

static void
count(struct one_case *c)
{
  for (int i = 0; i < DEEDS; i++) {
    if (!takes_part(c, i))
      continue;
    int class = dk_status_class(c->answers[i]);
    tally.done += class == 0;
    tally.refused += class == 1;
    tally.unknown += class == 3;
    if (class == 2 || (class == 0 && c->answers[i] != DK_OK))
      complain(c, i, "an answer that is not of a fault");
    if (class != 0 && (!strchr(c->texts[i], ':') || strlen(c->texts[i]) < 40))
      complain(c, i, "it does not report why");
    if (class == 3 && c->fault->is_once)
      complain(c, i, "the outcome should be known");
  }
}

/* After the repair, what was refused works, and repeating finds out what was unknown. */
static void
repeat(struct one_case *c, struct doer *doer)
{
  enum state states[DEEDS];

  deeds_look(path, states);
  for (int i = 0; i < DEEDS; i++) {
    if (!takes_part(c, i) || c->answers[i] == DK_OK)
      continue;
    bool is_unknown = dk_status_class(c->answers[i]) == 3;
    dk_status expected = states[i] == DONE ? deed_answer_when_repeated(i) : DK_OK;
    if (expected == -1) {
      c->answers[i] = DK_OK;
      continue;
    }
    dk_status found = deed_do(i, doer, is_unknown);
    if (found != expected) {
      snprintf(c->texts[i], sizeof c->texts[i], "%s", failure_of(doer));
      c->answers[i] = found;
      complain(c, i, "it does not work after the repair");
    }
    c->answers[i] = DK_OK;
  }
  /* What was once read is durable with the next acknowledged commit. */
  if (enqueue_bytes(doer, "later", 10) != DK_OK)
    complain(c, c->deed < 0 ? 0 : c->deed, failure_of(doer));
}

static void
begin_store(struct doer *doer)
{
  unlink(beside("-wal"));
  unlink(beside("-shm"));
  copy_file(template, path);
  disk_begin(path);
  calls = (struct calls){.watch = disk_watch};
  if (doer_open(doer, path, 0) != DK_OK || enqueue_bytes(doer, "earlier", 8000) != DK_OK)
    BAIL_OUT("%s", failure_of(doer));
}

static void
try_case(const struct fault *fault, int n, int deed)
{
  struct one_case c = {.fault = fault, .n = n, .deed = deed};
  struct doer doer;

  begin_store(&doer);
  calls = (struct calls){.kinds = fault->kinds, .fails_from = n, .error = fault->error,
                         .fails_until = fault->is_once ? n : 0, .watch = disk_watch};
  if (deed < 0)
    do_together(&c, &doer);
  else
    answer(&c, deed, &doer);
  reached = calls.count;
  calls = (struct calls){.watch = disk_watch};
  count(&c);
  look_everywhere(&c);
  repeat(&c, &doer);
  disk_cut(copy);
  look(&c, copy, "it does not hold after a later power cut");
  doer_close(&doer);
  look(&c, path, "it does not hold after the close");
  calls = (struct calls){.count = 0};
  disk_end();
  tally.cases++;
  tally.wrong += c.is_wrong;
}

/* ---- the tests ------------------------------------------------------------------------------- */

/* How many calls there are if none fails. */
static int
calls_of(const struct fault *fault, int deed)
{
  const struct fault none = {.kinds = fault->kinds, .is_once = true, .name = "no fault"};

  try_case(&none, INT_MAX, deed);
  return reached;
}

/* The first, the last and some between; a few under Valgrind. */
static bool
is_tried(int n, int last)
{
  if (calls_step() > 1)
    return n == (last + 1) / 2;
  return n <= 2 || n > last - 2 || n == last / 2;
}

static void
test_fault(const struct fault *fault, int first, int last)
{
  tally = (struct tally){0};
  for (int deed = first; deed <= last; deed++) {
    int n_calls = calls_of(fault, deed);
    for (int n = 1; n <= n_calls; n++)
      if (is_tried(n, n_calls))
        try_case(fault, n, deed);
  }
  cmp_ok(tally.wrong, "==", 0, "%s, %s: %d cases: what is done is there, and what is not is not",
         fault->name, first < 0 ? "all at once" : "one caller", tally.cases);
  if (first < 0)
    cmp_ok(tally.cases, ">", 1, "it was tried");
  note("%d done, %d refused, %d unknown", tally.done, tally.refused, tally.unknown);
}

/* ---- writing the log back -------------------------------------------------------------------- */

enum { SO_LARGE_THAT_THE_LOG_IS_WRITTEN_BACK = 16 << 20 };

/* The operation is committed before: it is done, whatever becomes of that. */
static void
try_writing_back(const struct fault *fault, int n)
{
  struct one_case c = {.fault = fault, .n = n, .deed = READING};
  struct doer doer;

  begin_store(&doer);
  calls = (struct calls){.kinds = fault->kinds, .fails_from = n, .error = fault->error,
                         .fails_until = fault->is_once ? n : 0, .watch = disk_watch};
  c.answers[READING] = enqueue_bytes(&doer, "large", SO_LARGE_THAT_THE_LOG_IS_WRITTEN_BACK);
  reached = calls.count;
  calls = (struct calls){.watch = disk_watch};
  count(&c);
  look_everywhere(&c);
  repeat(&c, &doer);
  disk_cut(copy);
  look(&c, copy, "it does not hold after a later power cut");
  if (number_at(copy, "SELECT count(*) FROM large WHERE length(payload)=16777216") != 1)
    complain(&c, READING, "it is lost");
  doer_close(&doer);
  look(&c, path, "it does not hold after the close");
  calls = (struct calls){.count = 0};
  disk_end();
  tally.cases++;
  tally.wrong += c.is_wrong;
}

static void
test_writing_back(void)
{
  static const struct fault of_writing_back[] = {
    {CALL_WRITE | CALL_SYNC, ENOSPC, false, false, "no room to write the log back"},
    {CALL_WRITE | CALL_SYNC, EIO, true, false, "a failure while the log is written back"},
    {CALL_WRITE | CALL_SYNC, EIO, false, false, "the log cannot be written back"},
  };
  const struct fault none = {CALL_WRITE | CALL_SYNC, 0, true, false, "no fault"};

  tally = (struct tally){0};
  try_writing_back(&none, INT_MAX);
  const int last = reached, from_end[] = {0, 1, 2000, 4000};
  for (size_t i = 0; i < 3; i++)
    for (size_t at = 0; at < 4; at++)
      try_writing_back(&of_writing_back[i], last - from_end[at]);
  cmp_ok(last, ">", 3 * 4096, "a large message: the log is written back (%d calls)", last);
  cmp_ok(tally.wrong, "==", 0, "%d failures of it: what is done is there", tally.cases);
}

/* Closed while it is unknown whether a commit is on the disk: the next open does not build on a log
 * with a gap. */
static void
test_closing(void)
{
  const struct fault no_syncs = {CALL_SYNC, EIO, false, false, "no syncs, and a close"};
  struct one_case c = {.fault = &no_syncs, .n = 1, .deed = COMMITTING};
  struct doer doer;

  tally = (struct tally){0};
  begin_store(&doer);
  calls = (struct calls){.kinds = CALL_SYNC, .fails_from = 1, .error = EIO, .watch = disk_watch};
  answer(&c, COMMITTING, &doer);
  cmp_ok(c.answers[COMMITTING], "==", DK_OUTCOME_UNKNOWN, "nothing is synced: unknown outcome");
  calls = (struct calls){.watch = disk_watch};
  doer_close(&doer);
  if (doer_open(&doer, path, 0) != DK_OK)
    BAIL_OUT("%s", failure_of(&doer));
  cmp_ok(enqueue_bytes(&doer, "later", 10), "==", DK_OK, "the next handle continues");
  disk_cut(copy);
  look(&c, copy, "it does not hold after a power cut");
  cmp_ok(number_at(copy, "SELECT count(*) FROM instance WHERE instance='later'"), "==", 1,
         "and what it has done is there after a power cut");
  ok(!c.is_wrong, "and all else");
  doer_close(&doer);
  calls = (struct calls){.count = 0};
  disk_end();
}

int
main(void)
{
  plan(NO_PLAN);
  calls_begin_with_memory();
  begin();
  deeds_begin();
  template = strdup(place("template.db"));
  path = strdup(place("tried.db"));
  copy = strdup(place("copy.db"));
  deeds_prepare(template);
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    if (!faults[i].is_for_groups && calls_step() == 1)
      test_fault(&faults[i], 0, DEEDS - 1);
    test_fault(&faults[i], -1, -1);
  }
  test_closing();
  if (calls_step() > 1)
    skip(2, "thousands of calls, which is too slow under Valgrind");
  else
    test_writing_back();
  deeds_end();
  free(template);
  free(path);
  free(copy);
  return end();
}
