/* SPDX-License-Identifier: Apache-2.0 */
/* Preparing, binding and stepping; see statements.h. */
#include "providers/sqlite/statements.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "providers/sqlite/schema.h"

static const struct {
  const char *name, *text;
} table[] = {
#define STATEMENT(name, clauses, text) {#name, text},
#include "providers/sqlite/statements.def"
#undef STATEMENT
};

const char *
sql_name(int number)
{
  return table[number].name;
}

const char *
sql_text(int number)
{
  return table[number].text;
}

/* ---- failing --------------------------------------------------------------------------------- */

static const char *
name_of(const struct statements *s, const sqlite3_stmt *row)
{
  for (int i = 0; i < SQL_STATEMENTS; i++)
    if (s->prepared[i] == row)
      return table[i].name;
  return "a statement";
}

/* A statement of ours that SQLite does not understand: its table is not what it was. */
static void
blame_tables(struct statements *s)
{
  struct why missing;

  if ((s->why.code & 0xff) != SQLITE_ERROR ||
      schema_find_missing(s->connection, &missing) == DK_OK)
    return;
  s->why = missing;
  s->why.poisons = true;
}

static dk_status
broken(struct statements *s, int code, const char *name)
{
  if (!s->is_broken) {
    why_sqlite(&s->why, s->connection->db, code, name);
    blame_tables(s);
  }
  s->is_broken = true;
  return s->why.status;
}

static bool
have_tables_changed(struct statements *s)
{
  bool have_changed = false;

  for (int i = 0; i < SQL_STATEMENTS; i++)
    if (s->prepared[i] && sqlite3_stmt_status(s->prepared[i], SQLITE_STMTSTATUS_REPREPARE, 1) > 0)
      have_changed = true;
  return have_changed;
}

dk_status
sql_check_tables(struct statements *s)
{
  if (!have_tables_changed(s) ||
      schema_find_missing(s->connection, &s->why) == DK_OK)
    return DK_OK;
  s->is_broken = true;
  s->why.poisons = true; /* the next connection looks again */
  return s->why.status;
}

/* ---- binding --------------------------------------------------------------------------------- */

static int
bind_text(sqlite3_stmt *row, int at, struct dk_bytes text)
{
  if (!text.ptr)
    return sqlite3_bind_null(row, at);
  return sqlite3_bind_text64(row, at, text.ptr, text.len, SQLITE_STATIC, SQLITE_UTF8);
}

static int
bind_bytes(sqlite3_stmt *row, int at, struct dk_bytes bytes)
{
  if (!bytes.ptr)
    return sqlite3_bind_null(row, at);
  return sqlite3_bind_blob64(row, at, bytes.ptr, bytes.len, SQLITE_STATIC);
}

static int
bind_number(sqlite3_stmt *row, int at, int64_t number, bool is_optional)
{
  if (is_optional && number == 0)
    return sqlite3_bind_null(row, at);
  return sqlite3_bind_int64(row, at, number);
}

static int
bind_payload(sqlite3_stmt *row, int at, struct dk_bytes payload)
{
  return bind_bytes(row, at, payload.len > SMALL_PAYLOAD ? (struct dk_bytes){NULL, 0} : payload);
}

static int
bind_all(sqlite3_stmt *row, const char *types, va_list args)
{
  int code = SQLITE_OK;

  assert((int)strlen(types) == sqlite3_bind_parameter_count(row));
  for (int at = 1; *types != '\0' && code == SQLITE_OK; at++, types++) {
    assert(strchr("iotpb", *types));
    if (*types == 'i' || *types == 'o')
      code = bind_number(row, at, va_arg(args, int64_t), *types == 'o');
    else if (*types == 't')
      code = bind_text(row, at, va_arg(args, struct dk_bytes));
    else if (*types == 'p')
      code = bind_payload(row, at, va_arg(args, struct dk_bytes));
    else
      code = bind_bytes(row, at, va_arg(args, struct dk_bytes));
  }
  return code;
}

/* ---- running --------------------------------------------------------------------------------- */

static dk_status
statements_prepare(struct statements *s, enum statement number)
{
  if (s->prepared[number])
    return DK_OK;
  dk_status status =
    connection_prepare(s->connection, table[number].text, &s->prepared[number], &s->why);
  if (status == DK_OK)
    return DK_OK;
  blame_tables(s);
  s->is_broken = true;
  return s->why.status;
}

static dk_status
open_with(struct statements *s, enum statement number, sqlite3_stmt **ret_row, const char *types,
          va_list args)
{
  TRY(statements_prepare(s, number));
  sqlite3_stmt *row = s->prepared[number];
  assert(!sqlite3_stmt_busy(row)); /* its last user has closed it */
  int code = bind_all(row, types, args);
  if (code != SQLITE_OK)
    return broken(s, code, table[number].name);
  *ret_row = row;
  return DK_OK;
}

dk_status
sql_open(struct statements *s, enum statement number, sqlite3_stmt **ret_row, const char *types,
         ...)
{
  va_list args;

  va_start(args, types);
  dk_status status = open_with(s, number, ret_row, types, args);
  va_end(args);
  return status;
}

dk_status
sql_next(struct statements *s, sqlite3_stmt *row, bool *ret_is_there)
{
  int code = sqlite3_step(row);

  if (code != SQLITE_ROW && code != SQLITE_DONE)
    return broken(s, code, name_of(s, row));
  if (!sqlite3_stmt_readonly(row))
    s->has_written = true;
  *ret_is_there = code == SQLITE_ROW;
  return DK_OK;
}

void
sql_close(sqlite3_stmt *row)
{
  sqlite3_reset(row);
  sqlite3_clear_bindings(row);
}

dk_status
sql_run(struct statements *s, enum statement number, const char *types, ...)
{
  sqlite3_stmt *row = NULL;
  bool is_there;
  va_list args;

  va_start(args, types);
  dk_status status = open_with(s, number, &row, types, args);
  va_end(args);
  if (status == DK_OK)
    status = sql_next(s, row, &is_there);
  if (status == DK_OK)
    sql_close(row);
  return status;
}

struct dk_bytes
sql_bytes(sqlite3_stmt *row, int column)
{
  if (sqlite3_column_type(row, column) == SQLITE_NULL)
    return (struct dk_bytes){NULL, 0};
  const char *bytes = sqlite3_column_blob(row, column);
  size_t size = (size_t)sqlite3_column_bytes(row, column);
  return (struct dk_bytes){bytes ? bytes : "", size}; /* SQLite gives NULL for no bytes */
}

/* ---- ending ---------------------------------------------------------------------------------- */

void
sql_close_all(struct statements *s)
{
  for (int i = 0; i < SQL_STATEMENTS; i++)
    if (s->prepared[i])
      sql_close(s->prepared[i]);
}

void
sql_done(struct statements *s)
{
  for (int i = 0; i < SQL_STATEMENTS; i++) {
    sqlite3_finalize(s->prepared[i]);
    s->prepared[i] = NULL;
  }
}
