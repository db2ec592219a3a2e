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
  statements = calloc(MOST_STATEMENTS, sizeof *statements);
  if (!statements || sqlite3_auto_extension((void (*)(void))watch_connection) != SQLITE_OK)
    BAIL_OUT("the connections cannot be watched");
  library = load_plugin("SQLITE_PLUGIN");
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
  open_with(h, library, flags, options, &setting, 1);
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
  struct dk_caller *caller = new_caller();

  dk_caller_set_canceller(caller, canceller);
  dk_status status = dk_store_destroy(library, &options, caller, settings, 2);
  if (status >= DK_BUSY)
    diag("%s", dk_caller_failure(caller)->text);
  dk_caller_free(caller);
  return status;
}
