/* SPDX-License-Identifier: Apache-2.0 */
/* A program that writes to the store's file and does not know of its lock file, as the shell of
 * SQLite does: it tries to come between what an operation reads and what it writes.  That works
 * if a transaction takes the lock of the database with its first write only. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/sqlite/test-handle.h"

/* The operations are made one after the other: of two threads, one always waits. */
static struct stranger {
  const char *sql;      /* what it tries; NULL: nothing */
  bool is_busy;         /* its own statements are not watched */
  size_t tries, refused;
} stranger;

static bool
is_within(const char *sql)
{
  static const char *const ends[] = {"BEGIN", "COMMIT", "ROLLBACK", "SELECT counter"};

  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
    if (strncmp(sql, ends[i], strlen(ends[i])) == 0)
      return false;
  return true;
}

/* Before each statement of the plugin that follows the first one of its transaction. */
static void
come_between(const char *path, const char *sql)
{
  sqlite3 *db = NULL;

  if (!stranger.sql || stranger.is_busy || !is_within(sql))
    return;
  stranger.is_busy = true;
  stranger.tries++;
  if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
    BAIL_OUT("%s: %s", path, sqlite3_errmsg(db));
  if (sqlite3_exec(db, stranger.sql, NULL, NULL, NULL) == SQLITE_BUSY)
    stranger.refused++;
  sqlite3_close(db);
  stranger.is_busy = false;
}

/* One operation of each kind that writes, and what it takes to have them. */
static void
work_a_little(struct handle_under_test *h)
{
  struct dk_commit_outcome outcome;

  given_activities(h, "inst", 3);
  ack_work(h, fetch_work(h), NULL);
  commit_cancelling(h, fetch_turn(h), 1, 3, &outcome);
}

/* It asks for the lock, and lets go of it. */
static void
test_lock(struct handle_under_test *h)
{
  stranger = (struct stranger){.sql = "BEGIN IMMEDIATE; ROLLBACK"};
  work_a_little(h);
  stranger.sql = NULL;
  ok(stranger.tries > 20 && stranger.refused == stranger.tries,
     "from its first read on no other program gets the database's lock: %zu of %zu tries refused",
     stranger.refused, stranger.tries);
}

/* What it costs if it writes: the operation is refused at once, though no handle is busy. */
static void
test_write(struct handle_under_test *h)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text("inst"),
                         .payload = text("hello")};

  stranger = (struct stranger){.sql = "UPDATE meta SET commits = commits + 1 WHERE id = 1"};
  dk_status status = dk_store_enqueue_for_orchestrator(h->store, h->caller, &item);
  stranger.sql = NULL;
  if (!ok(status == DK_OK && stranger.tries > 0, "what it has read is true when it writes"))
    diag("status %d: %s", (int)status, dk_caller_failure(h->caller)->text);
}

int
main(void)
{
  struct handle_under_test h;

  begin();
  open_store(&h, "stranger.db");
  work_a_little(&h);
  watch_statements(come_between);
  test_lock(&h);
  test_write(&h);
  watch_statements(NULL);
  close_store(&h);
  end();
  return done_testing();
}
