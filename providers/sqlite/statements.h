/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of one connection: each is prepared at its first use, and kept until the
 * connection is closed.  A failure is noted in `why`; the function that has the call reports it to
 * the host.  One thread at a time uses them. */
#ifndef DK_SQLITE_STATEMENTS_H
#define DK_SQLITE_STATEMENTS_H

#include "providers/sqlite/connection.h"

enum statement {
#define STATEMENT(name, clauses, text) SQL_##name,
#include "providers/sqlite/statements.def"
#undef STATEMENT
  SQL_STATEMENTS
};

struct statements {
  struct connection *connection;
  sqlite3_stmt *prepared[SQL_STATEMENTS];
  struct why why;
  bool is_broken;       /* a statement failed: the transaction must be rolled back */
  bool has_written;     /* since group.c last cleared it */
};

/* What the plan test and the statement counter show; `number` is an enum statement. */
const char *sql_name(int number);
const char *sql_text(int number);

/* Payloads up to here lie in their row. */
enum { SMALL_PAYLOAD = 1024 };

/* Binds by letter: i int64_t; o int64_t, 0 for NULL; t struct dk_bytes, text; p struct dk_bytes, a
 * payload (NULL if it is above SMALL_PAYLOAD, for then it is in `large`); b struct dk_bytes, any
 * bytes.  What is absent is NULL.  The bytes must live until the statement is closed. */
dk_status sql_open(struct statements *s, enum statement number, sqlite3_stmt **ret_row,
                   const char *types, ...);
/* The next row: *ret_is_there false after the last. */
dk_status sql_next(struct statements *s, sqlite3_stmt *row, bool *ret_is_there);
void sql_close(sqlite3_stmt *row);

/* Open, no rows expected, close. */
dk_status sql_run(struct statements *s, enum statement number, const char *types, ...);

/* A column as bytes; they live until the next row.  NULL is absent. */
struct dk_bytes sql_bytes(sqlite3_stmt *row, int column);

/* DK_CORRUPT if the tables have changed since the last check, and something is missing now.
 * Statements that were prepared before notice a change, and only then the tables are checked. */
dk_status sql_check_tables(struct statements *s);

/* Closes all that a failure has left open. */
void sql_close_all(struct statements *s);
/* Frees them: before the connection is closed. */
void sql_done(struct statements *s);

#endif
