/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of stores share: see test-stores.h. */
#include "providers/pg/test-stores.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

PGconn *super, *plain;
const char *conninfo;
char role[64], said[2000];

void
begin_stores(void)
{
  begin();
  conninfo = getenv("DURAKIT_PG");
  plain = connect_to(conninfo);
  if (getenv("DURAKIT_PG_SUPER"))
    super = connect_to(getenv("DURAKIT_PG_SUPER"));
  char *name = sql_value(plain, "SELECT current_user");
  snprintf(role, sizeof role, "%s", name);
  free(name);
}

void
end_stores(void)
{
  PQfinish(plain);
  PQfinish(super);
  end();
}

const char *
named(const char *name)
{
  static char rooms[4][64];
  static int next;
  char *room = rooms[next++ % 4];

  snprintf(room, sizeof rooms[0], "test-%ld-%s", (long)getpid(), name);
  return room;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void
note_log(void *context, int32_t level, struct dk_bytes line)
{
  (void)context;
  if (level >= 2)
    snprintf(said, sizeof said, "%.*s", (int)line.len, line.ptr);
}

static const struct dk_host_options options = {
  .struct_size = sizeof options, .violation = note_violation, .log = note_log};

static void
note_failure(const struct dk_caller *caller, dk_status status)
{
  if (status != DK_OK)
    snprintf(said, sizeof said, "%s", dk_caller_failure(caller)->text);
}

static struct dk_caller *
caller_of_whom_nothing_is_said(void)
{
  said[0] = '\0';
  return new_caller();
}

dk_status
open_as(const char *by, const char *schema, uint32_t flags, struct handle_under_test *h)
{
  struct dk_setting settings[] = {{"conninfo", text(by)}, {"schema", text(schema)},
                                  {"lock_timeout", text("300ms")}};

  h->caller = caller_of_whom_nothing_is_said();
  dk_status status = dk_store_open(library_under_test(), &options, h->caller, flags, settings, 3,
                                   &h->store);
  note_failure(h->caller, status);
  if (status != DK_OK)
    dk_caller_free(h->caller);
  return status;
}

dk_status
try_open_as(const char *by, const char *schema, uint32_t flags)
{
  struct handle_under_test h;
  dk_status status = open_as(by, schema, flags, &h);

  if (status == DK_OK)
    close_store(&h);
  return status;
}

dk_status
try_open(const char *schema, uint32_t flags)
{
  return try_open_as(conninfo, schema, flags);
}

dk_status
try_destroy(const char *schema)
{
  struct dk_setting settings[] = {{"conninfo", text(conninfo)}, {"schema", text(schema)},
                                  {"lock_timeout", text("300ms")}};
  struct dk_caller *caller = caller_of_whom_nothing_is_said();
  dk_status status = dk_store_destroy(library_under_test(), &options, caller, settings, 3);

  note_failure(caller, status);
  dk_caller_free(caller);
  return status;
}

bool
expect_done(dk_status found, const char *name)
{
  bool is_done = ok(found == DK_OK, "%s", name);

  if (!is_done)
    diag("status %d: %s", (int)found, said);
  return is_done;
}

void
expect_refused(dk_status found, dk_status expected, const char *has, const char *name)
{
  if (!ok(found == expected && strstr(said, has), "%s", name))
    diag("expected status %d and \"%s\", found %d: %s", (int)expected, has, (int)found, said);
}

/* ---- what is there --------------------------------------------------------------------------- */

long
number(PGconn *pg, const char *format, ...)
{
  char statement[4000];
  va_list args;

  va_start(args, format);
  vsnprintf(statement, sizeof statement, format, args);
  va_end(args);
  char *value = sql_value(pg, "%s", statement);
  long n = strtol(value, NULL, 10);
  free(value);
  return n;
}

bool
schema_is_there(const char *schema)
{
  return number(plain, "SELECT count(*) FROM pg_namespace WHERE nspname = $q$%s$q$", schema) == 1;
}

char *
digest(const char *schema)
{
  return sql_value(plain,
                   "SELECT md5(coalesce(string_agg(x, ';' ORDER BY x), '')) FROM ("
                   " SELECT c.relname || ':' || c.relkind::text || coalesce(query_to_xml(CASE WHEN"
                   "   c.relkind = 'r' THEN format('SELECT * FROM %%I.%%I x ORDER BY x::text',"
                   "   $q$%s$q$, c.relname) ELSE 'SELECT 1' END, true, false, '')::text, '') AS x"
                   "  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                   "  WHERE n.nspname = $q$%s$q$"
                   " UNION ALL SELECT 'function ' || p.proname FROM pg_proc p"
                   "  JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = $q$%s$q$) y",
                   schema, schema, schema);
}
