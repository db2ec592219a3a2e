/* SPDX-License-Identifier: Apache-2.0 */
/* What we rely on in a session, and which statements are prepared there: see connection.h.  Owns
 * the names of prepared statements.
 *
 * The settings of a role, a database or the server are defaults for programs without settings of
 * their own.  In a session that is ours alone the plugin sets once, at the beginning, all that it
 * relies on.  So only the server's own and the store's functions, types and operators are ever run,
 * whatever search_path a role has, and the plans are made for our queries.  In a session that a
 * pooler lends out nothing is left: the functions of the schema set for themselves what they need,
 * and any other request has the same settings before it, in the same transaction and round trip.
 *
 * Not set are default_transaction_read_only, because an administrator sets it to forbid writes, and
 * the settings that only a superuser may change. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "providers/pg/connection.h"

/* Without a name that could be another's, for it runs before there is a search_path of ours. $1:
 * the process that this client believes to talk to, which behind a pooler is another. */
static const char settle_sql[] =
  "SELECT pg_catalog.pg_is_in_recovery() AS is_standby,"
  " pg_catalog.current_setting('default_transaction_isolation') AS isolation,"
  " o.is_own,"
  " pg_catalog.current_setting('transaction_read_only') AS read_only,"
  " (SELECT pg_catalog.count(pg_catalog.set_config(s.name, s.value, NOT o.is_own))"
  "  FROM (VALUES"
  "   ('search_path', 'pg_catalog, pg_temp'),"
  "   ('default_transaction_isolation', 'read committed'),"
  "   ('lock_timeout', $2),"
  /* The client has answer_timeout; and a statement that ends in the server by a time-out gives no
   * better answer. */
  "   ('statement_timeout', '0'), ('transaction_timeout', '0'),"
  "   ('idle_in_transaction_session_timeout', '0'), ('idle_session_timeout', '0'),"
  /* A request of a client that has disappeared must not be done later, after lock_timeout or the
   * time of a migration. */
  "   ('client_connection_check_interval', CASE WHEN pg_catalog.version()"
  "     OPERATOR(pg_catalog.~~) '%linux%' THEN '1s' ELSE '0' END),"
  /* An acknowledged commit lasts, and the client receives any warning that puts that in doubt. */
  "   ('synchronous_commit', CASE WHEN pg_catalog.current_setting('synchronous_commit')"
  "     OPERATOR(pg_catalog.=) ANY (ARRAY['off', 'local']) THEN 'on'"
  "     ELSE pg_catalog.current_setting('synchronous_commit') END),"
  "   ('client_min_messages', 'warning'),"
  /* Rows that a policy hides are an error, and not a queue without them. */
  "   ('row_security', 'off'),"
  "   ('standard_conforming_strings', 'on'), ('transform_null_equals', 'off'),"
  "   ('array_nulls', 'on'), ('bytea_output', 'hex'), ('DateStyle', 'ISO'),"
  "   ('IntervalStyle', 'postgres'), ('extra_float_digits', '1'),"
  "   ('quote_all_identifiers', 'off'), ('check_function_bodies', 'on'),"
  "   ('default_tablespace', ''), ('default_table_access_method', 'heap'),"
  "   ('plan_cache_mode', 'force_generic_plan'), ('jit', 'off'),"
  "   ('max_parallel_workers_per_gather', '0'),"
  "   ('enable_bitmapscan', 'on'), ('enable_hashagg', 'on'), ('enable_hashjoin', 'on'),"
  "   ('enable_incremental_sort', 'on'), ('enable_indexonlyscan', 'on'),"
  "   ('enable_indexscan', 'on'), ('enable_material', 'on'), ('enable_memoize', 'on'),"
  "   ('enable_mergejoin', 'on'), ('enable_nestloop', 'on'), ('enable_seqscan', 'on'),"
  "   ('enable_sort', 'on'), ('enable_tidscan', 'on')"
  "  ) AS s(name, value)"
  "  WHERE pg_catalog.current_setting(s.name, true) IS NOT NULL) AS n_set"
  " FROM (SELECT pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1 AS is_own) AS o";

struct request
session_settling(const struct connection *c, bool for_good, char room[24], struct values *values)
{
  int length = snprintf(room, 24, "%lld", (long long)c->settings->lock_ms);

  values_begin(values);
  value_int(values, for_good ? PQbackendPID(c->pg) : 0);
  value_text(values, (struct dk_bytes){room, length > 0 ? (size_t)length : 0});
  return (struct request){.what = "connect", .sql = settle_sql, .values = values};
}

/* ---- whether it will do ---------------------------------------------------------------------- */

static dk_status
refuse_standby(const struct connection *c, struct why *why)
{
  return why_set(why, DK_UNAVAILABLE,
                 "%s is a standby, which accepts no writes; name its primary (with several hosts "
                 "target_session_attrs=read-write finds it), or open the store with "
                 "DK_OPEN_READ_ONLY",
                 c->settings->shown);
}

static dk_status
refuse_read_only(const struct connection *c, struct why *why)
{
  return why_set(why, DK_UNAVAILABLE,
                 "%s accepts no writes, because its sessions are read-only: "
                 "default_transaction_read_only is on for the role \"%s\", the database or the "
                 "server; have it turned off, or open the store with DK_OPEN_READ_ONLY",
                 c->settings->shown, PQuser(c->pg));
}

/* A function must see what was committed while it waited for a lock. */
static dk_status
refuse_isolation(const struct connection *c, const char *isolation, struct why *why)
{
  return why_set(why, DK_REFUSED,
                 "default_transaction_isolation is \"%.40s\" on %s, and cannot be changed for a "
                 "session that a pooler lends out; expected read committed: ALTER ROLE \"%s\" SET "
                 "default_transaction_isolation = 'read committed'",
                 isolation, c->settings->shown, PQuser(c->pg));
}

/* `refusal`: the server did not give its identity; NULL: it did. */
static dk_status
session_judge(struct connection *c, const PGresult *r, const struct why *refusal, struct why *why)
{
  TRY(result_check(r, "ototbtt", "connect", why));
  if (PQntuples(r) != 1)
    return why_set(why, DK_UNAVAILABLE, "connect: %s returned %d rows; expected one",
                   c->settings->shown, PQntuples(r));
  c->is_own = field_bool(r, 0, 2);
  if (field_bool(r, 0, 0) && !c->settings->is_read_only)
    return refuse_standby(c, why);
  if (strcmp(PQgetvalue(r, 0, 3), "off") != 0 && !c->settings->is_read_only)
    return refuse_read_only(c, why);
  if (!c->is_own && strcmp(PQgetvalue(r, 0, 1), "read committed") != 0)
    return refuse_isolation(c, PQgetvalue(r, 0, 1), why);
  c->identity = refusal ? (struct identity){.is_withheld = true}
                        : identity_of(field_bytes(r, 0, 5), field_bytes(r, 0, 6));
  dk_status status = refusal ? servers_judge_withheld(c->servers, refusal, c->pg, why)
                             : servers_judge(c->servers, &c->identity, c->pg, why);
  c->is_refused = status != DK_OK;
  c->is_settled = status == DK_OK;
  return status;
}

/* If a session again and again is not as it was left, a hidden pooler lends it out. */
enum { MOST_RENEWALS = 3 };

/* A role's statement_timeout may end this statement before it can change that setting, especially
 * as a new session has looked up nothing yet.  Nothing is changed then, and the settings are sent
 * again. */
enum { MOST_SETTLINGS = 20 };

static dk_status
tell_settings(struct connection *c, struct dk_call *call, bool asks_who, PGresult **ret,
              struct why *why)
{
  bool for_good = c->n_renewed <= MOST_RENEWALS, was_ended = true;
  char room[24], sql[sizeof settle_sql + sizeof SESSION_IDENTITY + 40];
  dk_status status = DK_BUSY;
  struct values values;

  struct request request = session_settling(c, for_good, room, &values);
  snprintf(sql, sizeof sql, "SELECT s.*, %s FROM (%s) AS s",
           asks_who ? SESSION_IDENTITY : "NULL::pg_catalog.text, NULL::pg_catalog.text",
           settle_sql);
  request.sql = sql;
  for (int i = 0; i < MOST_SETTLINGS && was_ended; i++) {
    status = connection_run(c, call, &request, ret, why);
    was_ended = status == DK_BUSY && strcmp(why->sqlstate, "57014") == 0;
  }
  values_done(&values);
  return status;
}

/* Any other failure also occurs without the question for the identity. */
bool
session_withholds(dk_status status)
{
  return status >= DK_INVALID && status <= DK_INTERNAL;
}

dk_status
session_settle(struct connection *c, struct dk_call *call, struct why *why)
{
  bool asks_who = c->servers != NULL;
  struct why refusal = {0};
  PGresult *r;

  c->is_own = c->is_settled = c->is_refused = false;
  c->n_prepared = 0;
  dk_status status = tell_settings(c, call, asks_who, &r, why);
  if (asks_who && c->pg && session_withholds(status)) {
    refusal = *why;
    status = tell_settings(c, call, false, &r, why);
  }
  TRY(status);
  status = session_judge(c, r, *refusal.text ? &refusal : NULL, why);
  PQclear(r);
  return status;
}

/* ---- prepared statements --------------------------------------------------------------------- */

/* Made of the text and the types: a statement of this name is this statement, whichever client has
 * prepared it. */
static uint64_t
hash_of(const struct request *request)
{
  const struct values *v = request->values;
  uint64_t hash = hash_mix(UINT64_C(0xcbf29ce484222325), request->sql, strlen(request->sql));

  return hash_mix(hash, v->types, (size_t)v->n * sizeof v->types[0]);
}

struct statement
session_statement(const struct connection *c, const struct request *request)
{
  struct statement st = {.way = AT_ONCE};

#ifdef LIBPQ_HAS_PIPELINING
  if (!c->is_settled)
    st.way = UNCOMPILED;
  else if (!c->is_own && request->relies)
    st.way = AFTER_SETTLING;
  if (!c->is_own || !c->is_settled || !request->is_frequent)
    return st;
  st.identity = hash_of(request);
  snprintf(st.name, sizeof st.name, "durakit_%016llx", (unsigned long long)st.identity);
  for (int i = 0; i < c->n_prepared && st.way == AT_ONCE; i++)
    if (c->prepared[i] == st.identity)
      st.way = BY_NAME;
  if (st.way == AT_ONCE && c->n_prepared < MOST_PREPARED)
    st.way = TO_BE_PREPARED;
#else
  (void)c;
  (void)request;
  (void)hash_of;
#endif
  return st;
}

void
session_note_prepared(struct connection *c, const struct statement *st)
{
  /* session_statement had room for it, and one request is under way at a time. */
  assert(st->way == TO_BE_PREPARED && c->n_prepared < MOST_PREPARED);
  c->prepared[c->n_prepared++] = st->identity;
}

/* The statement was deleted, it is another client's, or its result type has changed.  It was
 * refused before anything was done, and can be tried again; the same SQLSTATE from another place
 * does not allow that. */
bool
session_was_changed(const struct statement *st, const struct why *why)
{
  static const char *const states[] = {"26000", "0A000", "42P05"};

  for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
    if (why->status == DK_BUSY && strcmp(states[i], why->sqlstate) == 0)
      return st->way == BY_NAME || st->way == TO_BE_PREPARED;
  return false;
}
