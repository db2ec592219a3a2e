/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of version 2, as they are made.  A column that a claim, a renewal or a release writes
 * never shares a row with a payload above 1 KiB: that lies in `large`, and the row has its number.
 */
#include "providers/sqlite/tables.h"

#include <stddef.h>

const char *const sqlite_tables[] = {
  /* One row.  clock: DK_CLOCK_*, whose clock all times are of.  counter: the last number given to
   * an instance, a message, a payload or a lease; no number is ever given twice.  commits: groups
   * that were committed, by which a commit whose answer was lost is found.  last_now: time never
   * goes back.  store: a random number, in every token; no other store has it, nor a store that is
   * made again in the same place. */
  "CREATE TABLE meta("
  "  id INTEGER PRIMARY KEY CHECK(id = 1),"
  "  clock INTEGER NOT NULL,"
  "  counter INTEGER NOT NULL,"
  "  commits INTEGER NOT NULL,"
  "  last_now INTEGER NOT NULL,"
  "  store INTEGER NOT NULL DEFAULT 0)",
  "INSERT INTO meta VALUES(1, 1, 0, 0, 0, 0)", /* schema_add_tables gives it its number */

  /* ready_at: NULL without messages, else the greater of the first message's visible_at and
   * locked_until; ready_seq: the number of what made it so, which is its place among those of one
   * instant.  locked_until 0: its turn is not locked.  epoch: the number of the last lease.  The
   * turn_ columns bound the messages of its turn.  done_epoch: the lease of the last commit.  known
   * 0: no turn was ever committed.  created_at: NULL before that.  fetch: the id of the fetch that
   * took the last lease; 0: it had none. */
  "CREATE TABLE instance("
  "  iid INTEGER PRIMARY KEY,"
  "  ready_at INTEGER,"
  "  ready_seq INTEGER NOT NULL DEFAULT 0,"
  "  locked_until INTEGER NOT NULL DEFAULT 0,"
  "  epoch INTEGER NOT NULL DEFAULT 0,"
  "  turn_visible_at INTEGER NOT NULL DEFAULT 0,"
  "  turn_seq INTEGER NOT NULL DEFAULT 0,"
  "  turn_cut INTEGER NOT NULL DEFAULT 0,"
  "  done_epoch INTEGER NOT NULL DEFAULT 0,"
  "  known INTEGER NOT NULL DEFAULT 0,"
  "  status INTEGER NOT NULL DEFAULT 0,"
  "  execution INTEGER NOT NULL DEFAULT 0,"
  "  last_event INTEGER NOT NULL DEFAULT 0,"
  "  pinned_major INTEGER, pinned_minor INTEGER, pinned_patch INTEGER,"
  "  owner TEXT, name TEXT, version TEXT, parent TEXT,"
  "  instance TEXT NOT NULL UNIQUE, created_at INTEGER,"
  "  fetch INTEGER NOT NULL DEFAULT 0)",
  "CREATE INDEX instance_ready ON instance(ready_at, ready_seq) WHERE ready_at IS NOT NULL",
  "CREATE INDEX instance_parent ON instance(parent, instance) WHERE parent IS NOT NULL",

  "CREATE TABLE message("
  "  iid INTEGER NOT NULL, visible_at INTEGER NOT NULL, seq INTEGER NOT NULL,"
  "  attempt INTEGER NOT NULL DEFAULT 0, enqueued_at INTEGER NOT NULL,"
  "  id TEXT, large INTEGER, payload BLOB,"
  "  PRIMARY KEY(iid, visible_at, seq)) WITHOUT ROWID",
  "CREATE UNIQUE INDEX message_id ON message(iid, id) WHERE id IS NOT NULL",

  /* The primary key is the identity by which a commit cancels.  ready_at: visible_at, or the end of
   * the lease; seq: the number of what made it so, its place among those of one instant.  epoch 0:
   * no token was given since it was free.  tag '': none.  session: of an item of version 1 that
   * had one; nothing goes by it without durakit.sessions/1, and dropping it would lose it.  fetch:
   * as of an instance. */
  "CREATE TABLE work("
  "  iid INTEGER NOT NULL, execution INTEGER NOT NULL, activity INTEGER NOT NULL,"
  "  ready_at INTEGER NOT NULL, seq INTEGER NOT NULL DEFAULT 0,"
  "  epoch INTEGER NOT NULL DEFAULT 0,"
  "  attempt INTEGER NOT NULL DEFAULT 0, visible_at INTEGER NOT NULL,"
  "  tag TEXT NOT NULL DEFAULT '', owner TEXT, session TEXT, large INTEGER, payload BLOB,"
  "  fetch INTEGER NOT NULL DEFAULT 0,"
  "  PRIMARY KEY(iid, execution, activity)) WITHOUT ROWID",
  "CREATE INDEX work_ready ON work(tag, ready_at, seq)",

  "CREATE TABLE execution("
  "  iid INTEGER NOT NULL, execution INTEGER NOT NULL, status INTEGER NOT NULL,"
  "  started_at INTEGER NOT NULL, completed_at INTEGER NOT NULL DEFAULT 0,"
  "  large INTEGER, output BLOB,"
  "  PRIMARY KEY(iid, execution)) WITHOUT ROWID",
  "CREATE TABLE history("
  "  iid INTEGER NOT NULL, execution INTEGER NOT NULL, event INTEGER NOT NULL,"
  "  large INTEGER, payload BLOB,"
  "  PRIMARY KEY(iid, execution, event)) WITHOUT ROWID",
  "CREATE TABLE large(id INTEGER PRIMARY KEY, payload BLOB NOT NULL)",
  NULL,
};
