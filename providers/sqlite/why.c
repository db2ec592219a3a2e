/* SPDX-License-Identifier: Apache-2.0 */
/* Why an operation fails: see why.h.  Owns the table of SQLite's result codes. */
#include "providers/sqlite/why.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "providers/sqlite/rights.h"

/* Of what the process has the right to do. */
#define NO_DESCRIPTOR                                                                              \
  "the process has the right, so try again, and check the number of descriptors (ulimit -n) "      \
  "and the system's log"

#define REPORT_IT "this is a fault of the plugin or of SQLite; report it"

/* What a result code means to a host, and what a person may do about it.  An extended code that has
 * no row of its own goes by its primary one.  A connection is kept only after what leaves it as it
 * was. */
static const struct meaning {
  int code;
  dk_status status;
  bool poisons;
  const char *name, *next;
} meanings[] = {
  {SQLITE_BUSY, DK_BUSY, false, "SQLITE_BUSY",
   "another process holds the database; try again, or increase busy_timeout"},
  {SQLITE_BUSY_RECOVERY, DK_BUSY, false, "SQLITE_BUSY_RECOVERY",
   "another process is recovering the database after a crash; try again"},
  {SQLITE_BUSY_SNAPSHOT, DK_BUSY, false, "SQLITE_BUSY_SNAPSHOT", "try again"},
  {SQLITE_LOCKED, DK_BUSY, false, "SQLITE_LOCKED", "try again"},
  {SQLITE_PROTOCOL, DK_BUSY, true, "SQLITE_PROTOCOL", "the locks are contended; try again"},
  {SQLITE_FULL, DK_UNAVAILABLE, false, "SQLITE_FULL", "free space on the store's disk; try again"},
  {SQLITE_NOMEM, DK_NO_MEMORY, false, "SQLITE_NOMEM", "give the process more memory"},
  {SQLITE_IOERR_NOMEM, DK_NO_MEMORY, false, "SQLITE_IOERR_NOMEM", "give the process more memory"},
  {SQLITE_IOERR, DK_UNAVAILABLE, true, "SQLITE_IOERR", "check the disk and the system's log"},
  {SQLITE_IOERR_READ, DK_UNAVAILABLE, true, "SQLITE_IOERR_READ",
   "the disk cannot be read; see the system's log"},
  {SQLITE_IOERR_SHORT_READ, DK_UNAVAILABLE, true, "SQLITE_IOERR_SHORT_READ",
   "the file is shorter than it should be; check whether another program writes it"},
  {SQLITE_IOERR_WRITE, DK_UNAVAILABLE, true, "SQLITE_IOERR_WRITE",
   "the disk cannot be written; see the system's log"},
  {SQLITE_IOERR_FSYNC, DK_UNAVAILABLE, true, "SQLITE_IOERR_FSYNC",
   "the disk did not store what was written; see the system's log"},
  {SQLITE_IOERR_DIR_FSYNC, DK_UNAVAILABLE, true, "SQLITE_IOERR_DIR_FSYNC",
   "the disk did not store what was written; see the system's log"},
  {SQLITE_IOERR_TRUNCATE, DK_UNAVAILABLE, true, "SQLITE_IOERR_TRUNCATE",
   "check the disk and the system's log"},
  {SQLITE_IOERR_SHMOPEN, DK_UNAVAILABLE, true, "SQLITE_IOERR_SHMOPEN",
   "the folder must be writable and on a disk of this machine; see the system's log"},
  {SQLITE_IOERR_SHMSIZE, DK_UNAVAILABLE, true, "SQLITE_IOERR_SHMSIZE",
   "free space on the store's disk, and see the system's log; try again"},
  {SQLITE_IOERR_CORRUPTFS, DK_UNAVAILABLE, true, "SQLITE_IOERR_CORRUPTFS",
   "the disk cannot be read; see the system's log, and check the filesystem"},
  {SQLITE_CORRUPT, DK_CORRUPT, true, "SQLITE_CORRUPT",
   "run PRAGMA integrity_check, and restore a backup"},
  {SQLITE_NOTADB, DK_CORRUPT, true, "SQLITE_NOTADB",
   "something has overwritten the store; restore a backup"},
  {SQLITE_READONLY, DK_UNAVAILABLE, true, "SQLITE_READONLY", NO_DESCRIPTOR},
  {SQLITE_READONLY_DBMOVED, DK_UNAVAILABLE, true, "SQLITE_READONLY_DBMOVED",
   "the file was moved or removed while it was open, or could not be examined; try again"},
  {SQLITE_CANTOPEN, DK_UNAVAILABLE, true, "SQLITE_CANTOPEN", NO_DESCRIPTOR},
  {SQLITE_PERM, DK_UNAVAILABLE, true, "SQLITE_PERM", NO_DESCRIPTOR},
  {SQLITE_NOLFS, DK_UNAVAILABLE, false, "SQLITE_NOLFS",
   "the filesystem does not support large files"},
  {SQLITE_TOOBIG, DK_TOO_LARGE, false, "SQLITE_TOOBIG", "send less at once"},
  {SQLITE_CONSTRAINT, DK_INTERNAL, false, "SQLITE_CONSTRAINT", REPORT_IT},
};

static const struct meaning other = {SQLITE_ERROR, DK_INTERNAL, true, "SQLite", REPORT_IT};

static const struct meaning *
meaning_of(int code)
{
  const struct meaning *found = &other;

  for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
    if (meanings[i].code == code)
      return &meanings[i];
    if (meanings[i].code == (code & 0xff))
      found = &meanings[i];
  }
  return found;
}

static bool
is_no_error(int code)
{
  return code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE;
}

dk_status
why_status_of(int code)
{
  return is_no_error(code) ? DK_OK : meaning_of(code)->status;
}

bool
why_poisons(int code)
{
  return !is_no_error(code) && meaning_of(code)->poisons;
}

dk_status
why_set(struct why *why, dk_status status, const char *format, ...)
{
  va_list args;

  why->status = status;
  why->code = 0;
  why->poisons = false;
  va_start(args, format);
  if (vsnprintf(why->text, sizeof why->text, format, args) < 0)
    why->text[0] = '\0';
  va_end(args);
  return status;
}

dk_status
why_errno(struct why *why, int error, const char *what, const char *path)
{
  dk_status status = DK_UNAVAILABLE;
  const char *next = "";
  char room[128];

  if (error == ENOMEM) {
    status = DK_NO_MEMORY;
  } else if (error == ENOENT || error == ENOTDIR) {
    status = DK_NOT_FOUND;
  } else if (error == EACCES || error == EPERM || error == EROFS || error == EISDIR ||
             error == ELOOP) {
    status = DK_REFUSED;
    next = "; give the process the right to write it and its folder, or open the store read-only";
  } else if (error == ENOSPC || error == EDQUOT) {
    next = "; free space on the store's disk, and try again";
  }
  return why_set(why, status, "%s: %s: %s%s", path, what, strerror_r(error, room, sizeof room),
                 next);
}

/* Gives whether a missing right may be the cause: SQLite does not report that. */
static bool
may_be_for_rights(int code, int error)
{
  switch (code & 0xff) {
  case SQLITE_READONLY:
    return code != SQLITE_READONLY_DBMOVED;
  case SQLITE_CANTOPEN:
  case SQLITE_PERM:
    return true;
  case SQLITE_IOERR:
    return error == EACCES || error == EPERM || error == EROFS;
  default:
    return false;
  }
}

static bool
rights_say_why(struct why *why, sqlite3 *db)
{
  const char *path = db ? sqlite3_db_filename(db, "main") : NULL;

  return path && path[0] != '\0' &&
         rights_are_lacking(path, sqlite3_db_readonly(db, "main") != 1, why);
}

dk_status
why_sqlite(struct why *why, sqlite3 *db, int code, const char *what)
{
  int extended = db ? sqlite3_extended_errcode(db) : code;
  int error = db ? sqlite3_system_errno(db) : 0;
  char room[128], system[192] = "";

  if (code > 0xff || (extended & 0xff) != (code & 0xff))
    extended = code;
  if (is_no_error(extended))
    extended = SQLITE_INTERNAL;
  const struct meaning *meaning = meaning_of(extended);
  if (may_be_for_rights(extended, error) && rights_say_why(why, db)) {
    why->code = extended;
    why->poisons = meaning->poisons;
    return why->status;
  }
  if (error && ((extended & 0xff) == SQLITE_IOERR || (extended & 0xff) == SQLITE_CANTOPEN ||
                (extended & 0xff) == SQLITE_FULL))
    snprintf(system, sizeof system, "; the system says: %s",
             strerror_r(error, room, sizeof room));
  why_set(why, meaning->status, "%s: %s (%s, code %d)%s; %s", what,
          db && sqlite3_errcode(db) ? sqlite3_errmsg(db) : sqlite3_errstr(extended),
          meaning->name, extended, system, meaning->next);
  why->code = extended;
  why->poisons = meaning->poisons;
  return meaning->status;
}

bool
why_may_be_the_disk(const struct why *why)
{
  return (why->code & 0xff) == SQLITE_CORRUPT;
}

dk_status
why_tell(const struct why *why, const struct dk_host *host, struct dk_call *call)
{
  if (why->status < DK_BUSY && why->status != DK_CALL_CANCELLED)
    return why->status;
  return host->fail(call, why->status, (struct dk_bytes){why->text, strlen(why->text)});
}
