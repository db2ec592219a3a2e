/* SPDX-License-Identifier: Apache-2.0 */
/* Whose schema it is, and making, migrating and removing it: see store.h.
 *
 * The plugin first reads from the catalogs, which every role may read, what exists: so no statement
 * has to fail to find out.  Each change is one script (schema.h), which looks again under the lock
 * of this store.  If another process was first, the script is undone, and the plugin looks again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "providers/pg/schema.h"

/* ---- what is there --------------------------------------------------------------------------- */

/* What marks a table meta as ours from version 2 on. */
enum { ALL_MARKS = 4 };

/* The SQLSTATE that our scripts raise if the schema has changed since the look. */
#define OVERTAKEN "DK100"

struct found {
  bool has_schema, may_use, may_create, owns_schema, may_create_schema;
  int64_t marks;          /* columns of meta that are as ours, in version 1 one; 0: not ours */
  bool may_read;
  int64_t objects;        /* in the schema, of any owner */
  bool is_in_recovery;
  char first[100], role[64], database[64], unsafe[100];
};

static const char look_sql[] =
  "SELECT n.oid IS NOT NULL,"
  " pg_catalog.has_schema_privilege(n.oid, 'USAGE'),"
  " pg_catalog.has_schema_privilege(n.oid, 'CREATE'),"
  " coalesce(pg_catalog.pg_has_role(n.nspowner, 'USAGE'), false),"
  " pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'),"
  " m.marks, pg_catalog.has_table_privilege(m.oid, 'SELECT'),"
  " (SELECT count(*) FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid)"
  " + (SELECT count(*) FROM pg_catalog.pg_proc p WHERE p.pronamespace = n.oid)"
  " + (SELECT count(*) FROM pg_catalog.pg_type t WHERE t.typnamespace = n.oid AND t.typrelid = 0),"
  " pg_catalog.pg_is_in_recovery(),"
  " coalesce((SELECT min(c.relname::text) FROM pg_catalog.pg_class c"
  "   WHERE c.relnamespace = n.oid), ''),"
  " current_user::text, pg_catalog.current_database()::text,"
  " pg_catalog.concat_ws(', ',"
  "   CASE WHEN pg_catalog.current_setting('fsync') <> 'on' THEN 'fsync=off' END,"
  "   CASE WHEN pg_catalog.current_setting('full_page_writes') <> 'on'"
  "     THEN 'full_page_writes=off' END)"
  " FROM (SELECT) one LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = $1"
  " LEFT JOIN LATERAL (SELECT c.oid, count(*) AS marks FROM pg_catalog.pg_class c"
  "   JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = n.oid"
  "   AND c.relname = 'meta' AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped"
  "   AND a.attname IN ('durakit_version', 'store', 'clock', 'schema_name')"
  "   GROUP BY c.oid HAVING bool_or(a.attname = 'durakit_version')) m ON true";

static void
take_text(char *room, size_t size, const PGresult *r, int column)
{
  struct dk_bytes text = field_bytes(r, 0, column);

  snprintf(room, size, "%.*s", (int)text.len, text.ptr ? text.ptr : "");
}

static void
read_found(const PGresult *r, struct found *ret)
{
  *ret = (struct found){
    .has_schema = field_bool(r, 0, 0),
    .may_use = field_bool(r, 0, 1),
    .may_create = field_bool(r, 0, 2),
    .owns_schema = field_bool(r, 0, 3),
    .may_create_schema = field_bool(r, 0, 4),
    .marks = field_bigint(r, 0, 5),
    .may_read = field_bool(r, 0, 6),
    .objects = field_bigint(r, 0, 7),
    .is_in_recovery = field_bool(r, 0, 8),
  };
  take_text(ret->first, sizeof ret->first, r, 9);
  take_text(ret->role, sizeof ret->role, r, 10);
  take_text(ret->database, sizeof ret->database, r, 11);
  take_text(ret->unsafe, sizeof ret->unsafe, r, 12);
}

/* One row of a statement that only reads. */
static dk_status
read_row(struct connection *c, struct dk_call *call, const char *what, const char *sql,
         struct values *values, const char *types, PGresult **ret, struct why *why)
{
  const struct request request = {.what = what, .sql = sql, .values = values, .relies = true};

  TRY(connection_run(c, call, &request, ret, why));
  dk_status status = result_check(*ret, types, what, why);
  if (status == DK_OK && PQntuples(*ret) != 1)
    status = why_set(why, DK_CORRUPT, "%s: expected one row, found %d", what, PQntuples(*ret));
  if (status != DK_OK)
    PQclear(*ret);
  return status;
}

/* The schema has changed since the look: there is another look, and after many DK_BUSY. */
static dk_status
overtaken(struct why *why, const struct connection *c)
{
  why_set(why, DK_BUSY, "schema %s (%s): other processes keep making and removing it; try again",
          c->settings->quoted, c->settings->shown);
  snprintf(why->sqlstate, sizeof why->sqlstate, OVERTAKEN);
  return DK_BUSY;
}

/* Rights on what was removed while we looked are neither given nor denied. */
static dk_status
pg_store_look(struct connection *c, struct dk_call *call, struct found *ret, struct why *why)
{
  const char *schema = c->settings->schema;
  struct values values;
  PGresult *r;

  values_begin(&values);
  value_text(&values, (struct dk_bytes){schema, strlen(schema)});
  dk_status status = read_row(c, call, "looking for the store", look_sql, &values,
                              "ooooobobotttt", &r, why);
  values_done(&values);
  TRY(status);
  read_found(r, ret);
  bool is_gone = (ret->has_schema && field_is_null(r, 0, 1)) ||
                 (ret->marks > 0 && field_is_null(r, 0, 6));
  PQclear(r);
  return is_gone ? overtaken(why, c) : DK_OK;
}

/* ---- what it is ------------------------------------------------------------------------------ */

struct meta {
  int32_t version, clock;
  int64_t number;
  char schema[64];        /* "" in version 1 */
};

/* ABI-13, ABI-14: a schema without our meta is no store; with anything in it, it is another's. */
static dk_status
refuse_others(const struct connection *c, const struct found *found, struct why *why)
{
  if (found->marks > 0 || found->objects == 0)
    return DK_OK;
  return why_set(why, DK_REFUSED,
                 "schema %s of database %s (%s): not a store: expected no such schema, an empty "
                 "one, or a table meta with durakit_version; found %lld objects, \"%s\" among "
                 "them; nothing was changed; name another schema with the setting schema",
                 c->settings->quoted, found->database, c->settings->shown,
                 (long long)found->objects, found->first);
}

static dk_status
refuse_without_rights(const struct connection *c, const struct found *found, struct why *why)
{
  if (found->may_use && found->may_read)
    return DK_OK;
  return why_set(why, DK_REFUSED,
                 "schema %s of database %s (%s): the role \"%s\" has no right to read it; its "
                 "owner can run: GRANT USAGE ON SCHEMA %s TO \"%s\"; GRANT SELECT ON ALL TABLES IN "
                 "SCHEMA %s TO \"%s\"; to write, INSERT, UPDATE, DELETE, and USAGE ON ALL "
                 "SEQUENCES too",
                 c->settings->quoted, found->database, c->settings->shown, found->role,
                 c->settings->quoted, found->role, c->settings->quoted, found->role);
}

static dk_status
check_version(const struct connection *c, const struct found *found, int32_t version,
              struct why *why)
{
  if (version > SCHEMA_VERSION)
    return why_set(why, DK_REFUSED,
                   "schema %s (%s): its tables have version %d, and this plugin knows versions up "
                   "to %d; use the plugin that made it, or a later one",
                   c->settings->quoted, c->settings->shown, version, SCHEMA_VERSION);
  if (version < 1 || (version > 1 && found->marks != ALL_MARKS)) {
    why_set(why, DK_CORRUPT,
            "schema %s (%s): ours by its table meta, but its version is %d with %lld of the "
            "columns durakit_version, store, clock and schema_name; expected version 1 to %d, and "
            "all of them from version 2 on",
            c->settings->quoted, c->settings->shown, version, (long long)found->marks,
            SCHEMA_VERSION);
    snprintf(why->sqlstate, sizeof why->sqlstate, OVERTAKEN); /* migrated since we looked? */
    return DK_CORRUPT;
  }
  if (version > 1 && version < SCHEMA_VERSION)
    return why_set(why, DK_REFUSED,
                   "schema %s (%s): its tables have version %d, of a build that was never "
                   "released; this plugin accepts version %d, and migrates only version 1; finish "
                   "its work with the build that made it, then DROP SCHEMA %s CASCADE and make it "
                   "again",
                   c->settings->quoted, c->settings->shown, version, SCHEMA_VERSION,
                   c->settings->quoted);
  return DK_OK;
}

/* In version 1 there is the version only. */
static dk_status
read_meta(struct connection *c, struct dk_call *call, const struct found *found, struct meta *ret,
          struct why *why)
{
  char sql[400];
  struct values none;
  PGresult *r;

  TRY(refuse_without_rights(c, found, why));
  snprintf(sql, sizeof sql, "SELECT durakit_version, %s FROM %s.meta",
           found->marks == ALL_MARKS ? "store, clock, schema_name" : "0::bigint, 0, ''::text",
           c->settings->quoted);
  values_begin(&none);
  dk_status status = read_row(c, call, "reading the store's version", sql, &none, "ibit", &r, why);
  values_done(&none);
  TRY(status);
  *ret = (struct meta){
    .version = field_int(r, 0, 0), .number = field_bigint(r, 0, 1), .clock = field_int(r, 0, 2)};
  take_text(ret->schema, sizeof ret->schema, r, 3);
  PQclear(r);
  return check_version(c, found, ret->version, why);
}

/* The functions name the schema that they were made in, which may be there too, and another's. */
static dk_status
check_schema_name(const struct connection *c, const struct meta *meta, struct why *why)
{
  if (strcmp(meta->schema, c->settings->schema) == 0)
    return DK_OK;
  return why_set(why, DK_REFUSED,
                 "schema %s (%s): the store was made in the schema \"%s\", and was renamed or "
                 "copied since; its functions still use that name, so it cannot be opened; rename "
                 "it back (ALTER SCHEMA %s RENAME TO \"%s\"), or restore the copy into another "
                 "database, under the old name",
                 c->settings->quoted, c->settings->shown, meta->schema, c->settings->quoted,
                 meta->schema);
}

static int32_t
clock_of(const struct dk_open *open)
{
  return open->flags & DK_OPEN_HOST_CLOCK ? DK_CLOCK_HOST : DK_CLOCK_STORE;
}

static const char *
clock_name(int32_t clock)
{
  return clock == DK_CLOCK_HOST ? "the hosts' clock" : "the server's clock";
}

/* TIME-7 */
static dk_status
check_clock(const struct connection *c, const struct meta *meta, const struct dk_open *open,
            struct why *why)
{
  if (meta->clock == clock_of(open))
    return DK_OK;
  return why_set(why, DK_REFUSED,
                 "schema %s (%s): the store was made for %s, and is opened for %s; open it %s "
                 "DK_OPEN_HOST_CLOCK",
                 c->settings->quoted, c->settings->shown, clock_name(meta->clock),
                 clock_name(clock_of(open)), meta->clock == DK_CLOCK_HOST ? "with" : "without");
}

/* ---- making and migrating -------------------------------------------------------------------- */

/* A lost answer: another open or removal will see what became of it. */
static dk_status
repeatable(dk_status status, struct why *why)
{
  if (status == DK_OUTCOME_UNKNOWN)
    why->status = status = DK_UNAVAILABLE;
  return status;
}

/* Another process did the same meanwhile, and there is another look. */
static bool
was_overtaken(const struct why *why)
{
  static const char *const states[] = {OVERTAKEN, "42P01", "42P06", "42P07", "42710", "42723",
                                       "23505", "3F000", "40001", "40P01"};

  for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
    if (strcmp(why->sqlstate, states[i]) == 0)
      return true;
  return false;
}

/* 48 bits, for a token is short; not 0. */
static dk_status
make_number(int64_t *ret, struct why *why)
{
  uint64_t number;

  if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
    return why_set(why, DK_UNAVAILABLE, "the store's number: getrandom: %s", strerror(errno));
  *ret = (int64_t)(number >> 16 | 1);
  return DK_OK;
}

static dk_status
refuse_to_make(const struct connection *c, const struct found *found, struct why *why)
{
  if (found->has_schema ? found->may_use && found->may_create : found->may_create_schema)
    return DK_OK;
  if (found->has_schema)
    return why_set(why, DK_REFUSED,
                   "schema %s (%s) is empty, but the role \"%s\" has no right to create tables in "
                   "it; let its owner run: GRANT USAGE, CREATE ON SCHEMA %s TO \"%s\"",
                   c->settings->quoted, c->settings->shown, found->role, c->settings->quoted,
                   found->role);
  return why_set(why, DK_REFUSED,
                 "schema %s (%s) does not exist, and the role \"%s\" has no right to create it; "
                 "let the owner of the database run: GRANT CREATE ON DATABASE \"%s\" TO \"%s\"; "
                 "or: CREATE SCHEMA %s AUTHORIZATION \"%s\"",
                 c->settings->quoted, c->settings->shown, found->role, found->database, found->role,
                 c->settings->quoted, found->role);
}

static void
add_meta_row(struct script *s, const struct meta *meta)
{
  script_add(s, "\nINSERT INTO @schema@.meta(durakit_version, store, clock, schema_name)"
                " VALUES (");
  script_add_number(s, meta->version);
  script_add(s, ", ");
  script_add_number(s, meta->number);
  script_add(s, ", ");
  script_add_number(s, meta->clock);
  script_add(s, ", @schema_literal@);\n");
}

/* Under the lock: checks that the schema has not changed since the look.  The next look will report
 * any other fault. */
static void
add_look_again(struct script *s, bool expect_meta, int32_t version)
{
  script_add(s, "DO $look$ DECLARE found integer; BEGIN\n"
                "IF EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
                " ON n.oid = c.relnamespace WHERE n.nspname = @schema_literal@"
                " AND c.relname = 'meta') THEN\n"
                "SELECT durakit_version INTO found FROM @schema@.meta; END IF;\n"
                "IF found IS DISTINCT FROM ");
  if (expect_meta)
    script_add_number(s, version);
  else
    script_add(s, "NULL");
  script_add(s, " THEN RAISE EXCEPTION USING ERRCODE = '" OVERTAKEN "',"
                " MESSAGE = 'another process was first'; END IF;\n"
                "END $look$;\n");
}

static dk_status
make(struct connection *c, struct dk_call *call, const struct dk_open *open,
     const struct found *found, struct meta *ret, struct why *why)
{
  const char *schema = c->settings->schema;
  struct script s;

  TRY(refuse_to_make(c, found, why));
  *ret = (struct meta){.version = SCHEMA_VERSION, .clock = clock_of(open)};
  TRY(make_number(&ret->number, why));
  script_begin(&s, schema);
  script_add_head(&s, c->settings->lock_ms);
  add_look_again(&s, false, 0);
  if (!found->has_schema)
    script_add(&s, "CREATE SCHEMA @schema@;\n");
  script_add(&s, pg_schema_text);
  add_meta_row(&s, ret);
  return script_run(&s, c, call, "making the store", why);
}

/* The existing objects belong to a role, and only that role may change them. */
static void
add_owner(const struct connection *c, dk_status status, struct why *why)
{
  char said[sizeof why->text];

  if (status != DK_REFUSED || strcmp(why->sqlstate, "42501") != 0)
    return;
  snprintf(said, sizeof said, "%s", why->text);
  why_set(why, DK_REFUSED,
          "schema %s (%s): only the role that owns its tables can migrate them; open it once as "
          "that role: %.600s",
          c->settings->quoted, c->settings->shown, said);
}

/* Version 1 has neither a number nor a clock of its own. */
static dk_status
migrate(struct connection *c, struct dk_call *call, const struct dk_open *open, struct meta *ret,
        struct why *why)
{
  struct script s;

  *ret = (struct meta){.version = SCHEMA_VERSION, .clock = clock_of(open)};
  TRY(make_number(&ret->number, why));
  script_begin(&s, c->settings->schema);
  script_add_head(&s, c->settings->lock_ms);
  add_look_again(&s, true, 1);
  script_add_migration(&s);
  add_meta_row(&s, ret);
  dk_status status = script_run(&s, c, call, "migrating the store from version 1", why);
  add_owner(c, status, why);
  return status;
}

/* ---- open ------------------------------------------------------------------------------------ */

static dk_status
not_there(const struct connection *c, const struct found *found, struct why *why)
{
  return why_set(why, DK_NOT_FOUND,
                 "schema %s of database %s (%s): there is no store, and the host did not ask to "
                 "make one",
                 c->settings->quoted, found->database, c->settings->shown);
}

static dk_status
open_what_is_there(struct connection *c, struct dk_call *call, const struct dk_open *open,
                   const struct found *found, struct meta *ret, struct why *why)
{
  TRY(read_meta(c, call, found, ret, why));
  if (ret->version == SCHEMA_VERSION) {
    TRY(check_schema_name(c, ret, why));
    return check_clock(c, ret, open, why);
  }
  if (open->flags & DK_OPEN_READ_ONLY)
    return why_set(why, DK_REFUSED,
                   "schema %s (%s): its tables have version %d, expected %d; a read-only handle "
                   "cannot migrate them; open it once for writing",
                   c->settings->quoted, c->settings->shown, ret->version, SCHEMA_VERSION);
  return migrate(c, call, open, ret, why);
}

static dk_status
open_once(struct connection *c, struct dk_call *call, const struct dk_open *open,
          struct found *found, struct meta *ret, struct why *why)
{
  const bool makes = (open->flags & DK_OPEN_CREATE) && !(open->flags & DK_OPEN_READ_ONLY);

  TRY(pg_store_look(c, call, found, why));
  TRY(refuse_others(c, found, why));
  if (found->is_in_recovery && !(open->flags & DK_OPEN_READ_ONLY))
    return why_set(why, DK_UNAVAILABLE,
                   "%s: the server is a standby, which accepts no writes; name the primary "
                   "(target_session_attrs=read-write in conninfo chooses it among several), or "
                   "open with DK_OPEN_READ_ONLY",
                   c->settings->shown);
  if (found->marks > 0)
    return open_what_is_there(c, call, open, found, ret, why);
  return makes ? make(c, call, open, found, ret, why) : not_there(c, found, why);
}

/* ---- which session blocks -------------------------------------------------------------------- */

/* Of the sessions that hold the lock of this store, or a lock on something in it, the one that
 * blocks most.  Every role may see that much of the others. */
static const char holder_sql[] =
  "SELECT 'process ' || k.pid || ' of role \"' || coalesce(a.usename, '?') || '\"'"
  " || CASE WHEN coalesce(a.application_name, '') <> ''"
  "   THEN ' (' || a.application_name || ')' ELSE '' END"
  " FROM pg_catalog.pg_locks k LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = k.pid"
  " WHERE k.granted AND k.database = (SELECT d.oid FROM pg_catalog.pg_database d"
  "     WHERE d.datname = current_database()) AND k.pid <> pg_backend_pid()"
  "   AND (k.locktype = 'advisory' AND k.objsubid = 1"
  "       AND (k.classid::bigint << 32 | k.objid::bigint) = hashtextextended('durakit ' || $1, 0)"
  "     OR k.locktype = 'relation' AND k.relation IN (SELECT c.oid FROM pg_catalog.pg_class c"
  "       JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1))"
  " ORDER BY k.locktype <> 'advisory', k.mode <> 'AccessExclusiveLock', k.pid LIMIT 1";

/* For an open that has waited for long enough.  The text is for people: if it cannot be had, or no
 * session blocks any longer, the text so far stays. */
static void
add_holder(struct connection *c, struct dk_call *call, dk_status status, struct why *why)
{
  const struct dk_bytes schema = {c->settings->schema, strlen(c->settings->schema)};
  char before[sizeof why->text], holder[200];
  struct why ignored;
  struct values values;
  PGresult *r;

  if (status != DK_BUSY || strcmp(why->sqlstate, "55P03") != 0 || !c->pg)
    return;
  values_begin(&values);
  value_text(&values, schema);
  status = read_row(c, call, "which session blocks", holder_sql, &values, "t", &r, &ignored);
  values_done(&values);
  if (status != DK_OK)
    return;
  take_text(holder, sizeof holder, r, 0);
  PQclear(r);
  snprintf(before, sizeof before, "%s", why->text);
  why_set(why, DK_BUSY, "schema %s: %.600s; the lock was held by %s", c->settings->quoted, before,
          holder);
}

/* DUR: read back and logged, because it cannot be seen from outside. */
static void
warn_of_losses(const struct connection *c, const struct found *found)
{
  char line[300];

  if (!*found->unsafe)
    return;
  int n = snprintf(line, sizeof line,
                   "%s: the server runs with %s: acknowledged commits may be lost, or damaged, "
                   "when its machine loses power",
                   c->settings->shown, found->unsafe);
  if (n > 0)
    c->host->log(c->host, 2, (struct dk_bytes){line, strlen(line)});
}

/* How often others may be first before the open gives up. */
enum { MAX_TRIES = 20 };

dk_status
store_open(struct connection *c, struct dk_call *call, const struct dk_open *open,
           struct store *ret_store, struct why *why)
{
  struct found found;
  struct meta meta;
  dk_status status;
  int tries = 0;

  do {
    why->sqlstate[0] = '\0';
    status = open_once(c, call, open, &found, &meta, why);
  } while (status >= DK_BUSY && was_overtaken(why) && ++tries < MAX_TRIES && c->pg);
  add_holder(c, call, status, why);
  TRY(repeatable(status, why));
  warn_of_losses(c, &found);
  *ret_store = (struct store){
    .number = meta.number,
    .is_read_only = (open->flags & DK_OPEN_READ_ONLY) != 0,
    .host_clock = meta.clock == DK_CLOCK_HOST,
  };
  return DK_OK;
}

/* ---- destroy --------------------------------------------------------------------------------- */

/* Drops the store's objects by name, then the schema, which must be empty by then.  A schema that
 * another role owns stays, because that role made it. */
static dk_status
remove_store(struct connection *c, struct dk_call *call, const struct found *found,
             int32_t version, struct why *why)
{
  struct script s;

  script_begin(&s, c->settings->schema);
  script_add_head(&s, c->settings->lock_ms);
  add_look_again(&s, true, version);
  script_add(&s, version == 1 ? pg_drop_version_1 : pg_drop_text);
  if (found->owns_schema)
    script_add(&s, "DROP SCHEMA @schema@ RESTRICT;\n");
  dk_status status = script_run(&s, c, call, "removing the store", why);
  if (status >= DK_BUSY && strcmp(why->sqlstate, "2BP01") == 0) {
    char said[sizeof why->text];
    snprintf(said, sizeof said, "%s", why->text);
    status = why_set(why, DK_REFUSED,
                     "schema %s: something that Durakit did not make is in it, or uses it; nothing "
                     "was removed: %.600s",
                     c->settings->quoted, said);
  }
  return status;
}

static dk_status
destroy_once(struct connection *c, struct dk_call *call, struct why *why)
{
  struct found found;
  struct meta meta;

  TRY(pg_store_look(c, call, &found, why));
  TRY(refuse_others(c, &found, why));
  if (found.marks == 0)
    return DK_OK;
  TRY(read_meta(c, call, &found, &meta, why));
  return remove_store(c, call, &found, meta.version, why);
}

dk_status
store_destroy(struct connection *c, struct dk_call *call, struct why *why)
{
  dk_status status;
  int tries = 0;

  do {
    why->sqlstate[0] = '\0';
    status = destroy_once(c, call, why);
  } while (status >= DK_BUSY && was_overtaken(why) && ++tries < MAX_TRIES && c->pg);
  add_holder(c, call, status, why);
  return repeatable(status, why);
}
