/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the operations share: see test-handle.h.
 *
 * Statements are seen by sqlite3_trace_v2 on every connection, through sqlite3_auto_extension;
 * syncs because this program's fsync and fdatasync come before the C library's.
 *
 * Locking: `mutex` guards the list of statements; the number of syncs is atomic. */
#include "config.h"

#include "providers/sqlite/test-handle.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

#ifdef HAVE_VALGRIND
#include <valgrind/valgrind.h>
#endif

static struct dk_library *library; /* one program, one plugin, one folder */
static char folder[] = "/tmp/test-sqlite-XXXXXX";

/* ---- what is watched ------------------------------------------------------------------------- */

enum { MOST_STATEMENTS = 100000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char **statements;
static size_t n_run;
static atomic_size_t syncs, rows, steps;
static void (*watcher)(const char *path, const char *sql);

static int
note_statement(unsigned kind, void *context, void *statement, void *unused)
{
  (void)context;
  (void)unused;
  if (kind == SQLITE_TRACE_ROW) {
    atomic_fetch_add(&rows, 1);
    return 0;
  }
  if (kind == SQLITE_TRACE_PROFILE) {
    atomic_fetch_add(&steps, (size_t)sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1));
    return 0;
  }
  pthread_mutex_lock(&mutex);
  if (n_run < MOST_STATEMENTS)
    statements[n_run++] = strdup(sqlite3_sql(statement));
  void (*act)(const char *path, const char *sql) = watcher;
  pthread_mutex_unlock(&mutex);
  if (act)
    act(sqlite3_db_filename(sqlite3_db_handle(statement), "main"), sqlite3_sql(statement));
  return 0;
}

void
watch_statements(void (*act)(const char *path, const char *sql))
{
  pthread_mutex_lock(&mutex);
  watcher = act;
  pthread_mutex_unlock(&mutex);
}

static int
watch_connection(sqlite3 *db, char **error, const void *api)
{
  (void)error;
  (void)api;
  return sqlite3_trace_v2(db, SQLITE_TRACE_STMT | SQLITE_TRACE_ROW | SQLITE_TRACE_PROFILE,
                          note_statement, NULL);
}

void
forget_statements(void)
{
  pthread_mutex_lock(&mutex);
  while (n_run > 0)
    free(statements[--n_run]);
  atomic_store(&rows, 0);
  atomic_store(&steps, 0);
  pthread_mutex_unlock(&mutex);
}

size_t
n_statements(void)
{
  return n_run;
}

const char *
statement_run(size_t i)
{
  return statements[i];
}

size_t
n_rows(void)
{
  return atomic_load(&rows);
}

size_t
n_steps(void)
{
  return atomic_load(&steps);
}

/* The database's calls find these first. */
__attribute__((visibility("default"))) int
fdatasync(int fd)
{
  atomic_fetch_add(&syncs, 1);
  return (int)syscall(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) int
fsync(int fd)
{
  atomic_fetch_add(&syncs, 1);
  return (int)syscall(SYS_fsync, fd);
}

void
forget_syncs(void)
{
  atomic_store(&syncs, 0);
}

size_t
n_syncs(void)
{
  return atomic_load(&syncs);
}

/* ---- the plugin and a folder ----------------------------------------------------------------- */

void
begin(void)
{
  struct dk_refusal refusal;
  const char *plugin = getenv("SQLITE_PLUGIN");

  statements = calloc(MOST_STATEMENTS, sizeof *statements);
  if (!statements || sqlite3_auto_extension((void (*)(void))watch_connection) != SQLITE_OK)
    BAIL_OUT("the connections cannot be watched");
  if (!plugin || dk_library_open(plugin, 0, &library, &refusal) < 0)
    BAIL_OUT("no plugin: %s", plugin ? refusal.what : "SQLITE_PLUGIN is not set");
  if (!mkdtemp(folder))
    BAIL_OUT("no folder for the stores: %s", strerror(errno));
}

void
end(void)
{
  char command[sizeof folder + 16];

  dk_library_close(library);
  sqlite3_reset_auto_extension();
  forget_statements();
  free(statements);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command) != 0)
    diag("cannot remove %s", folder);
}

bool
is_slow(void)
{
#ifdef HAVE_VALGRIND
  return RUNNING_ON_VALGRIND != 0;
#else
  return false;
#endif
}

/* ---- handles --------------------------------------------------------------------------------- */

static void
must(struct handle_under_test *h, dk_status status, const char *what)
{
  if (status != DK_OK)
    BAIL_OUT("%s: status %d: %s", what, (int)status, dk_caller_failure(h->caller)->text);
}

static void
note_violation(void *context, const char *operation, const char *clause, const char *what)
{
  (void)context;
  fail("%s breaks %s: %s", operation, clause, what);
}

struct dk_bytes
text(const char *string)
{
  return (struct dk_bytes){string, strlen(string)};
}

const char *
path_of(const char *name)
{
  static char path[sizeof folder + 64];

  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

void
open_store_with(struct handle_under_test *h, const char *name, uint32_t flags,
                struct dk_host_options *options)
{
  struct dk_setting setting = {"store", text(path_of(name))};

  options->violation = note_violation;
  h->caller = dk_caller_new(NULL, 0);
  if (!h->caller)
    BAIL_OUT("no caller");
  must(h, dk_store_open(library, options, h->caller, flags, &setting, 1, &h->store), "open");
}

void
open_store_by(struct handle_under_test *h, const char *name, struct dk_clock *clock)
{
  struct dk_host_options options = {.struct_size = sizeof options, .clock = clock};

  open_store_with(h, name, DK_OPEN_CREATE, &options);
}

void
open_store(struct handle_under_test *h, const char *name)
{
  open_store_by(h, name, NULL);
}

void
close_store(struct handle_under_test *h)
{
  if (dk_store_close(h->store) != 0)
    BAIL_OUT("close: an operation did not come back");
  dk_caller_free(h->caller);
}

const char *
place(const char *name)
{
  static char path[sizeof folder + 64];

  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

dk_status
destroy_store(const char *name, struct dk_canceller *canceller)
{
  struct dk_host_options options = {.struct_size = sizeof options, .violation = note_violation};
  struct dk_setting settings[] = {{"store", text(place(name))}, {"busy_timeout", text("1m")}};
  struct dk_caller *caller = dk_caller_new(NULL, 0);

  if (!caller)
    BAIL_OUT("no caller");
  dk_caller_set_canceller(caller, canceller);
  dk_status status = dk_store_destroy(library, &options, caller, settings, 2);
  if (status >= DK_BUSY)
    diag("%s", dk_caller_failure(caller)->text);
  dk_caller_free(caller);
  return status;
}

struct handle_under_test
with_caller(const struct handle_under_test *h)
{
  struct handle_under_test other = {dk_caller_new(NULL, 0), h->store};

  if (!other.caller)
    BAIL_OUT("no caller");
  return other;
}

/* ---- operations ------------------------------------------------------------------------------ */

void
enqueue(struct handle_under_test *h, const char *instance)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text(instance),
                         .payload = text("hello")};

  must(h, dk_store_enqueue_for_orchestrator(h->store, h->caller, &item), "enqueue");
}

struct dk_bytes
fetch_turn(struct handle_under_test *h)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE};
  struct dk_turn *turn = NULL;

  must(h, dk_store_fetch_orchestration_item(h->store, h->caller, &request, &turn), "fetch a turn");
  return turn->head.lock_token;
}

struct dk_bytes
fetch_work(struct handle_under_test *h)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = 1, .lock_ms = LEASE,
                                  .owner = text("worker")};
  struct dk_works *works = NULL;

  must(h, dk_store_fetch_work_item(h->store, h->caller, &request, &works), "fetch work");
  return works->items[0].work.lock_token;
}

void
ack_work(struct handle_under_test *h, struct dk_bytes token)
{
  struct dk_work_result result = {.struct_size = sizeof result};

  must(h, dk_store_ack_work_item(h->store, h->caller, token, &result), "ack work");
}

void
commit_first(struct handle_under_test *h, struct dk_bytes token, size_t n_activities)
{
  struct dk_item *items = calloc(n_activities + 1, sizeof *items);
  const struct dk_item **list = calloc(n_activities + 1, sizeof *list);
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .name = text("order"), .version = text("1"),
                                  .worker_items = list, .n_worker_items = n_activities};
  struct dk_commit_outcome outcome;

  if (!items || !list)
    BAIL_OUT("out of memory");
  for (size_t i = 0; i < n_activities; i++) {
    items[i] = (struct dk_item){.struct_size = sizeof items[i], .execution_id = 1,
                                .activity_id = i + 1, .payload = text("do")};
    list[i] = &items[i];
  }
  must(h, dk_store_ack_orchestration_item(h->store, h->caller, token, &result, &outcome),
       "the first commit");
  free(list);
  free(items);
}

void
commit_cancelling(struct handle_under_test *h, struct dk_bytes token, uint64_t first, size_t n,
                  struct dk_commit_outcome *ret_outcome)
{
  struct dk_activity *cancelled = calloc(n + 1, sizeof *cancelled);
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .cancelled_activities = cancelled, .n_cancelled_activities = n};

  if (!cancelled)
    BAIL_OUT("out of memory");
  for (size_t i = 0; i < n; i++)
    cancelled[i] = (struct dk_activity){1, first + i};
  must(h, dk_store_ack_orchestration_item(h->store, h->caller, token, &result, ret_outcome),
       "the cancelling commit");
  free(cancelled);
}

void
given_activities(struct handle_under_test *h, const char *instance, size_t n)
{
  enqueue(h, instance);
  commit_first(h, fetch_turn(h), n);
  enqueue(h, instance);
}
