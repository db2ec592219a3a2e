/* SPDX-License-Identifier: Apache-2.0 */
/* What a call does after a long wait: see connection.h.
 *
 * A server that is frozen, or cut off from the network, sends nothing, and nothing ends its
 * sessions.  Meanwhile its standby may have been promoted.  So a call that has waited for a while
 * connects anew, in the same way and with the same time limits for each host and each answer, and
 * checks which server answers.  A server on a higher timeline has taken the place of the silent
 * one.  If it is the same server, the probe asks what the session waits for, so that it is logged
 * while it lasts.  Then the probe also checks the other hosts: a running primary waits for its
 * synchronous standby for ever, if that was promoted. */
#include <stdio.h>
#include <string.h>

#include "providers/pg/connection.h"

/* ---- what the server waits for --------------------------------------------------------------- */

/* $1: the process of the session that waits; NULL: any session of this database.  A session that
 * commits waits for the standby with all its locks, for which others then wait.  Some roles have
 * no right to see what the sessions of another role wait for. */
static const char waits_sql[] =
  "SELECT CASE"
  " WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_stat_activity a"
  "   WHERE a.wait_event OPERATOR(pg_catalog.=) 'SyncRep'"
  "   AND a.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()"
  "   AND ($1 IS NULL OR a.pid OPERATOR(pg_catalog.=) $1"
  "     OR a.pid OPERATOR(pg_catalog.=) ANY (pg_catalog.pg_blocking_pids($1))))"
  " THEN pg_catalog.concat('the server waits for its synchronous standby (',"
  "   'synchronous_standby_names = ''', pg_catalog.current_setting('synchronous_standby_names'),"
  "   '''), which does not confirm; check that it runs and follows, or remove it from there')"
  " ELSE coalesce((SELECT pg_catalog.concat('it waits for a lock that process ', b.pid,"
  "     ' of role \"', b.usename, '\" (', b.application_name, ') holds')"
  "   FROM pg_catalog.pg_stat_activity b"
  "   WHERE b.pid OPERATOR(pg_catalog.=) ANY (pg_catalog.pg_blocking_pids($1))"
  "   ORDER BY b.pid LIMIT 1), '') END";

static dk_status
ask_what_it_waits_for(struct connection *c, struct dk_call *call, int pid, char *room, size_t size)
{
  struct values values;
  struct why why;
  PGresult *r;

  values_begin(&values);
  if (pid != 0)
    value_int(&values, pid);
  else
    value_null(&values, TYPE_INT);
  const struct request request = {
    .what = "what is waited for", .sql = waits_sql, .values = &values, .relies = true};
  dk_status status = connection_run(c, call, &request, &r, &why);
  values_done(&values);
  TRY(status);
  status = result_check(r, "t", "what is waited for", &why);
  if (status == DK_OK && PQntuples(r) == 1)
    why_line(room, size, PQgetvalue(r, 0, 0));
  PQclear(r);
  return status;
}

void
silence_explain(struct connection *c, struct dk_call *call, struct why *why)
{
  char text[300] = "";

  if (strcmp(why->sqlstate, "55P03") != 0 || !c->pg || !c->servers || connection_is_changed(c) ||
      ask_what_it_waits_for(c, call, 0, text, sizeof text) != DK_OK || !*text)
    return;
  why_set_next(why, text);
}

/* ---- which server answers -------------------------------------------------------------------- */

static void
probe(struct connection *silent, struct dk_call *call, const char *what)
{
  struct settings hurried = *silent->settings;
  struct connection c = {.host = silent->host,
                         .settings = &hurried,
                         .servers = silent->servers,
                         .beside = silent};
  int pid = silent->is_own ? PQbackendPID(silent->pg) : 0; /* a pooler gives another number */
  char text[300] = "";
  struct why why;

  hurried.connect_ms = hurried.host_ms = hurried.answer_ms = hurried.silence_ms;
  dk_status status = connection_open(&c, call, &why);
  if (status == DK_OK && !servers_have_superseded(silent->servers, &silent->identity)) {
    (void)ask_what_it_waits_for(&c, call, pid, text, sizeof text);
    connection_try_others(&c, call);
  }
  if (servers_have_superseded(silent->servers, &silent->identity))
    *text = '\0'; /* there is nothing to repair on a server that is no longer the right one */
  servers_note_wait(silent->servers, what, text);
  connection_close(&c);
}

void
silence_probe(struct connection *silent, struct dk_call *call, const char *what)
{
  const struct dk_host *host = silent->host;

  if (silent->beside || !servers_begin_probe(silent->servers, host->now(host)))
    return;
  probe(silent, call, what);
  servers_end_probe(silent->servers, host->now(host));
}
