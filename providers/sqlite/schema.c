/* SPDX-License-Identifier: Apache-2.0 */
/* Whose file it is, which version its tables have, and how they are made: see schema.h. */
#include "providers/sqlite/schema.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "providers/sqlite/tables.h"

/* ---- whose it is ----------------------------------------------------------------------------- */

struct marks {
  int64_t application_id, user_version, tables;
};

/* In one transaction: another process may be making or migrating it. */
static dk_status
read_marks(struct connection *c, struct marks *ret, struct why *why)
{
  dk_status status = connection_exec(c, "BEGIN", "reading whose database it is", why);

  if (status != DK_OK)
    return status;
  status = connection_integer(c, "PRAGMA application_id", &ret->application_id, why);
  if (status == DK_OK)
    status = connection_integer(c, "PRAGMA user_version", &ret->user_version, why);
  if (status == DK_OK)
    status = connection_integer(c, "SELECT count(*) FROM sqlite_schema", &ret->tables, why);
  if (status != DK_OK) {
    sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL); /* the connection is closed then */
    return status;
  }
  return connection_exec(c, "ROLLBACK", "reading whose database it is", why);
}

static dk_status
schema_judge(const struct marks *marks, const char *path, enum schema_found *ret_found,
             struct why *why)
{
  if (marks->application_id == 0 && marks->user_version == 0 && marks->tables == 0) {
    *ret_found = SCHEMA_EMPTY;
    return DK_OK;
  }
  if (marks->application_id != SCHEMA_APPLICATION_ID)
    return why_set(why, DK_REFUSED,
                   "%s: a database of another program; expected application_id %#x, found %#llx "
                   "with %lld tables and indexes; name another file",
                   path, (unsigned)SCHEMA_APPLICATION_ID,
                   (unsigned long long)marks->application_id, (long long)marks->tables);
  if (marks->user_version > SCHEMA_VERSION)
    return why_set(why, DK_REFUSED,
                   "%s: its tables have version %lld, and this plugin knows versions up to %d; use "
                   "the plugin that made it, or a later one",
                   path, (long long)marks->user_version, SCHEMA_VERSION);
  if (marks->user_version < 1)
    return why_set(why, DK_CORRUPT,
                   "%s: ours by its application_id, but user_version is %lld; expected 1 to %d",
                   path, (long long)marks->user_version, SCHEMA_VERSION);
  *ret_found = marks->user_version == SCHEMA_VERSION ? SCHEMA_OURS : SCHEMA_OLD;
  return DK_OK;
}

dk_status
schema_look(struct connection *c, const char *path, enum schema_found *ret_found,
            struct why *why)
{
  struct marks marks;
  dk_status status = read_marks(c, &marks, why);

  if (status != DK_OK && (why->code & 0xff) == SQLITE_NOTADB)
    return why_set(why, DK_REFUSED,
                   "%s: not an SQLite database; expected an SQLite database, an empty file or no "
                   "file; name another file",
                   path);
  return status == DK_OK ? schema_judge(&marks, path, ret_found, why) : status;
}

dk_status
schema_glance(const struct settings *settings, struct why *why)
{
  struct connection c;
  struct marks marks;
  enum schema_found found;

  if (connection_glance(&c, settings, why) != DK_OK)
    return why->status == DK_NO_MEMORY ? DK_NO_MEMORY : DK_OK; /* schema_look will report it */
  dk_status status = read_marks(&c, &marks, why);
  connection_close(&c);
  if (status != DK_OK)
    return status == DK_NO_MEMORY ? DK_NO_MEMORY : DK_OK;
  return schema_judge(&marks, settings->path, &found, why);
}

dk_status
schema_check_clock(struct connection *c, struct why *why)
{
  int64_t clock;

  TRY(connection_integer(c, "SELECT clock FROM meta", &clock, why));
  if (clock != DK_CLOCK_HOST)
    return why_set(why, DK_REFUSED,
                   "the store's times are of clock kind %lld; expected %d, the host's clock",
                   (long long)clock, (int)DK_CLOCK_HOST);
  return DK_OK;
}

/* ---- how it is made -------------------------------------------------------------------------- */

/* Of 48 bits, for a token is short; not 0. */
static dk_status
give_it_a_number(struct connection *c, struct why *why)
{
  static const char what[] = "giving the store its number";
  uint64_t number;
  char sql[64];

  if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
    return why_errno(why, errno, what, "getrandom");
  snprintf(sql, sizeof sql, "UPDATE meta SET store = %llu",
           (unsigned long long)(number >> 16 | 1));
  return connection_exec(c, sql, what, why);
}

dk_status
schema_add_tables(struct connection *c, struct why *why)
{
  char sql[96];

  for (const char *const *table = sqlite_tables; *table; table++)
    TRY(connection_exec(c, *table, "making the tables of the store", why));
  TRY(give_it_a_number(c, why));
  snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d",
           SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
  return connection_exec(c, sql, "marking the store as ours", why);
}

dk_status
schema_create(struct connection *c, struct why *why)
{
  TRY(connection_exec(c, "BEGIN IMMEDIATE", "beginning to make the store", why));
  dk_status status = schema_add_tables(c, why);
  if (status == DK_OK)
    status = connection_exec(c, "COMMIT", "making the store", why);
  if (status != DK_OK)
    sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL); /* may be rolled back already */
  return status;
}
