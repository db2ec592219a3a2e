/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the file of a store that was drained: `test-file STORE`.  The file must be sound, no row
 * may be left in a queue, and each payload must belong to a row. */
#include <sqlite3.h>
#include <string.h>

#include "conformance/tap/tap.h"

static void
expect_answer(sqlite3 *db, const char *sql, const char *expected, const char *name)
{
  sqlite3_stmt *row;

  if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK || sqlite3_step(row) != SQLITE_ROW)
    BAIL_OUT("%s: %s", sql, sqlite3_errmsg(db));
  const char *found = (const char *)sqlite3_column_text(row, 0);
  if (!ok(found && strcmp(found, expected) == 0, "%s", name))
    diag("%s: %s, not %s", sql, found ? found : "nothing", expected);
  sqlite3_finalize(row);
}

int
main(int argc, char **argv)
{
  sqlite3 *db;

  if (argc != 2 || sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
    BAIL_OUT("usage: test-file STORE");
  expect_answer(db, "PRAGMA integrity_check", "ok", "the file is sound");
  expect_answer(db, "SELECT count(*) FROM message", "0", "no message is left");
  expect_answer(db, "SELECT count(*) FROM work", "0", "no activity is left");
  expect_answer(db, "SELECT count(*) FROM instance WHERE ready_at IS NOT NULL", "0",
                "no instance is marked as ready");
  expect_answer(db, "SELECT count(*) FROM large WHERE id NOT IN"
                    " (SELECT large FROM history WHERE large IS NOT NULL"
                    "  UNION SELECT large FROM execution WHERE large IS NOT NULL)", "0",
                "every large payload belongs to a row");
  sqlite3_close(db);
  return done_testing();
}
