/* SPDX-License-Identifier: Apache-2.0 */
/* What of the tables, columns and indexes of version 2 a store has not: see schema.h.  What there
 * has to be is asked of a database in memory that is made as a store is made. */
#include "providers/sqlite/schema.h"
#include "providers/sqlite/tables.h"

/* An index has no column here. */
struct part {
  const char *kind, *name, *column;
};

static const char all_parts[] =
  "SELECT type, name, NULL FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
  " UNION ALL SELECT m.type, m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c"
  " WHERE m.type = 'table'";
static const char this_part[] =
  "SELECT count(*) FROM sqlite_schema m WHERE m.type = ?1 AND m.name = ?2"
  " AND (?3 IS NULL OR EXISTS (SELECT 1 FROM pragma_table_info(m.name) c WHERE c.name = ?3))";

static dk_status
look_for(sqlite3 *db, sqlite3_stmt *look, const struct part *p, struct why *why)
{
  const char *path = sqlite3_db_filename(db, "main");
  int code = sqlite3_bind_text(look, 1, p->kind, -1, SQLITE_STATIC);

  if (code == SQLITE_OK)
    code = sqlite3_bind_text(look, 2, p->name, -1, SQLITE_STATIC);
  if (code == SQLITE_OK)
    code = sqlite3_bind_text(look, 3, p->column, -1, SQLITE_STATIC);
  if (code == SQLITE_OK)
    code = sqlite3_step(look);
  bool is_there = code == SQLITE_ROW && sqlite3_column_int(look, 0) > 0;
  sqlite3_reset(look);
  if (code != SQLITE_ROW)
    return why_sqlite(why, db, code, "looking for the tables of the store");
  if (is_there)
    return DK_OK;
  return why_set(why, DK_CORRUPT,
                 "%s: the store is damaged: %s%s%s %s is missing; expected all of version %d; end "
                 "all processes that use it, and restore a backup; if a build that was never "
                 "released made it, remove it and make it again",
                 path ? path : "", p->column ? "column " : "", p->column ? p->column : "",
                 p->column ? " of table" : p->kind, p->name, SCHEMA_VERSION);
}

static dk_status
missing_compare(sqlite3 *db, sqlite3_stmt *look, sqlite3_stmt *parts, struct why *why)
{
  int code;

  while ((code = sqlite3_step(parts)) == SQLITE_ROW) {
    const struct part part = {(const char *)sqlite3_column_text(parts, 0),
                              (const char *)sqlite3_column_text(parts, 1),
                              (const char *)sqlite3_column_text(parts, 2)};
    if (!part.kind || !part.name)
      return why_set(why, DK_NO_MEMORY, "looking for the tables of the store: out of memory");
    TRY(look_for(db, look, &part, why));
  }
  return code == SQLITE_DONE ? DK_OK
                             : why_sqlite(why, NULL, code, "listing the tables of a store");
}

static dk_status
compare_with(sqlite3 *db, sqlite3 *expected, struct why *why)
{
  sqlite3_stmt *parts = NULL, *look = NULL;
  int code = SQLITE_OK;

  for (const char *const *sql = sqlite_tables; *sql && code == SQLITE_OK; sql++)
    code = sqlite3_exec(expected, *sql, NULL, NULL, NULL);
  if (code == SQLITE_OK)
    code = sqlite3_prepare_v2(expected, all_parts, -1, &parts, NULL);
  if (code != SQLITE_OK)
    return why_sqlite(why, expected, code, "making the tables of a store in memory");
  code = sqlite3_prepare_v2(db, this_part, -1, &look, NULL);
  dk_status status = code == SQLITE_OK
                         ? missing_compare(db, look, parts, why)
                         : why_sqlite(why, db, code, "looking for the tables of the store");
  sqlite3_finalize(look);
  sqlite3_finalize(parts);
  return status;
}

dk_status
schema_find_missing(struct connection *c, struct why *why)
{
  sqlite3 *expected = NULL;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  int code = sqlite3_open_v2(":memory:", &expected, flags, NULL);
  dk_status status = code == SQLITE_OK
                       ? compare_with(c->db, expected, why)
                       : why_sqlite(why, expected, code, "a database in memory");

  sqlite3_close(expected);
  return status;
}
