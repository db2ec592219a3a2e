/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the operations share: see test-handle.h. */
#include "providers/pg/test-handle.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"

static struct dk_library *library; /* one program, one plugin */
static struct dk_clock *clock_of_stores;

void
begin(void)
{
  if (!getenv("DURAKIT_PG"))
    BAIL_OUT("DURAKIT_PG is not set: tests/with-postgres COMMAND... starts a server");
  library = load_plugin("PG_PLUGIN");
}

void
end(void)
{
  dk_library_close(library);
}

struct dk_library *
library_under_test(void)
{
  return library;
}

/* ---- handles --------------------------------------------------------------------------------- */

void
let_clock_be(struct dk_clock *clock)
{
  clock_of_stores = clock;
}

dk_status
try_to_open_store(struct handle_under_test *h, const char *conninfo, const char *schema)
{
  struct dk_host_options options = {.struct_size = sizeof options, .clock = clock_of_stores,
                                    .violation = note_violation};
  struct dk_setting settings[] = {{"conninfo", text(conninfo)}, {"schema", text(schema)}};

  h->caller = new_caller();
  return dk_store_open(library, &options, h->caller, DK_OPEN_CREATE, settings, 2, &h->store);
}

void
open_store(struct handle_under_test *h, const char *conninfo, const char *schema)
{
  must(h, try_to_open_store(h, conninfo, schema), "open");
}

void
destroy_store(const char *conninfo, const char *schema)
{
  struct dk_setting settings[] = {{"conninfo", text(conninfo)}, {"schema", text(schema)}};
  struct handle_under_test h = {new_caller(), NULL};

  must(&h, dk_store_destroy(library, NULL, h.caller, settings, 2), "destroy_store");
  dk_caller_free(h.caller);
}

/* ---- SQL ------------------------------------------------------------------------------------- */

static void
ignore_notice(void *context, const PGresult *notice)
{
  (void)context;
  (void)notice;
}

PGconn *
connect_to(const char *conninfo)
{
  PGconn *pg = PQconnectdb(conninfo);

  if (PQstatus(pg) != CONNECTION_OK)
    BAIL_OUT("no server: %s", PQerrorMessage(pg));
  PQsetNoticeReceiver(pg, ignore_notice, NULL);
  return pg;
}

static PGresult *
execute(PGconn *pg, const char *format, va_list args)
{
  char statement[4096];

  vsnprintf(statement, sizeof statement, format, args);
  PGresult *result = PQexec(pg, statement);
  if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
    BAIL_OUT("%s: %s", statement, PQerrorMessage(pg));
  return result;
}

void
sql(PGconn *pg, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  PQclear(execute(pg, format, args));
  va_end(args);
}

char *
sql_value(PGconn *pg, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  PGresult *result = execute(pg, format, args);
  va_end(args);
  char *value = strdup(PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
  PQclear(result);
  return value;
}

void
until(PGconn *pg, const char *condition)
{
  for (int i = 0; i < 6000; i++) {
    char *value = sql_value(pg, "SELECT %s", condition);
    bool is_so = strcmp(value, "t") == 0;
    free(value);
    if (is_so)
      return;
    sql(pg, "SELECT pg_sleep(0.01)");
  }
  BAIL_OUT("waited in vain until %s", condition);
}

bool
somebody_waits(PGconn *pg)
{
  for (int i = 0; i < 3000; i++) {
    char *n = sql_value(pg, "SELECT count(*) FROM pg_catalog.pg_locks WHERE NOT granted");
    bool is_so = strcmp(n, "0") != 0;
    free(n);
    if (is_so)
      return true;
    free(sql_value(pg, "SELECT pg_catalog.pg_sleep(0.01)"));
  }
  return false;
}

/* ---- what is logged -------------------------------------------------------------------------- */

static char logged[4000];
static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;

void
keep_line(void *context, int32_t level, struct dk_bytes line)
{
  (void)context;
  if (level < 2)
    return;
  pthread_mutex_lock(&log_mutex);
  size_t used = strlen(logged);
  snprintf(logged + used, sizeof logged - used, "%.*s\n", (int)line.len, line.ptr);
  pthread_mutex_unlock(&log_mutex);
}

void
expect_logged(const char *words, const char *name)
{
  pthread_mutex_lock(&log_mutex);
  if (!ok(strstr(logged, words) != NULL, "%s: \"%s\"", name, words))
    diag("logged: %s", logged);
  logged[0] = '\0';
  pthread_mutex_unlock(&log_mutex);
}
