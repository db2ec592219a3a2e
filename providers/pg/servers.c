/* SPDX-License-Identifier: Apache-2.0 */
/* Which servers a handle has had sessions on: see servers.h. */
#include "providers/pg/servers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/shared/mutex.h"

struct servers {
  const struct dk_host *host;
  const struct settings *settings;
  struct mutex mutex;
  struct identity highest;
  char where[200];        /* the server of the highest timeline */
  struct hosts all;       /* as conninfo has them; all NULL: not known yet */
  struct hosts preferred; /* all NULL: in that order */
  bool is_told;           /* it was logged that a server did not give its identity */
  bool is_probed;         /* a thread probes now */
  int64_t probe_at, pause; /* when the next may begin, and how long after the last that is */
  char wait[300];         /* see servers_note_wait */
};

dk_status
servers_new(const struct dk_host *host, const struct settings *settings,
            struct servers **ret_servers, struct why *why)
{
  struct servers *servers = calloc(1, sizeof *servers);

  if (!servers)
    return why_set(why, DK_NO_MEMORY, "open: out of memory");
  servers->host = host;
  servers->settings = settings;
  mutex_init(&servers->mutex);
  *ret_servers = servers;
  return DK_OK;
}

void
servers_free(struct servers *servers)
{
  if (!servers)
    return;
  hosts_done(&servers->all);
  hosts_done(&servers->preferred);
  mutex_done(&servers->mutex);
  free(servers);
}

static void
log_line(const struct servers *servers, int32_t level, const char *line)
{
  servers->host->log(servers->host, level, (struct dk_bytes){line, strlen(line)});
}

/* ---- their identities ------------------------------------------------------------------------ */

struct identity
identity_of(struct dk_bytes system, struct dk_bytes file)
{
  enum { DIGITS = 8 };
  struct identity identity = {0};
  char room[24], timeline[DIGITS + 1];

  if (system.ptr && system.len < sizeof room) {
    snprintf(room, sizeof room, "%.*s", (int)system.len, system.ptr);
    identity.system = strtoull(room, NULL, 10);
  }
  if (file.ptr && file.len > DIGITS) {
    snprintf(timeline, sizeof timeline, "%.*s", DIGITS, file.ptr);
    identity.timeline = (uint32_t)strtoul(timeline, NULL, 16);
  }
  return identity;
}

/* ---- which is the one ------------------------------------------------------------------------ */

/* Which of several hosts it is. */
static void
write_where(char *room, size_t size, const PGconn *pg)
{
  snprintf(room, size, "host=%.120s port=%.10s", PQhost(pg), PQport(pg));
}

static dk_status
refuse_cluster(const struct servers *servers, const struct identity *identity, const PGconn *pg,
               struct why *why)
{
  char where[200];

  write_where(where, sizeof where, pg);
  return why_set(why, DK_UNAVAILABLE,
                 "the server at %s belongs to another database cluster: its system identifier is "
                 "%llu; expected %llu, on which this store was opened; correct conninfo, or the "
                 "name or proxy that leads there; if the store was moved there (pg_upgrade, a "
                 "dump), restart this process",
                 where, (unsigned long long)identity->system,
                 (unsigned long long)servers->highest.system);
}

static dk_status
refuse_superseded(const struct servers *servers, const struct identity *identity, const PGconn *pg,
                  struct why *why)
{
  char where[200];

  write_where(where, sizeof where, pg);
  return why_set(why, DK_UNAVAILABLE,
                 "the server at %s accepts writes, but was superseded: it is on timeline %u, and "
                 "this store has been on timeline %u, at %s; stop the old server or fence it off "
                 "(docs/postgresql.md, Failover); if it is the right one, restart this process",
                 where, identity->timeline, servers->highest.timeline, servers->where);
}

/* Under the mutex. */
static void
note_highest(struct servers *servers, const struct identity *identity, const PGconn *pg)
{
  uint32_t before = servers->highest.timeline;
  char line[700], where[200];

  assert(mutex_is_held(&servers->mutex));
  if (identity->system != 0)
    servers->highest.system = identity->system;
  if (identity->timeline <= before)
    return;
  write_where(where, sizeof where, pg);
  if (before != 0) {
    snprintf(line, sizeof line, "the server at %s, on timeline %u, has replaced the one at "
             "%s, on timeline %u, whose sessions are closed", where, identity->timeline,
             servers->where, before);
    log_line(servers, 2, line);
  }
  assert(identity->timeline > servers->highest.timeline); /* it never falls */
  servers->highest.timeline = identity->timeline;
  memcpy(servers->where, where, sizeof where);
}

static bool
is_lower(const struct servers *servers, const struct identity *identity)
{
  assert(mutex_is_held(&servers->mutex));
  return (identity->timeline != 0 || identity->is_withheld) &&
         identity->timeline < servers->highest.timeline;
}

/* Under the mutex. */
static void
tell_withheld(struct servers *servers, const struct why *refusal)
{
  char line[sizeof refusal->text + 200];

  assert(mutex_is_held(&servers->mutex));
  if (servers->is_told)
    return;
  snprintf(line, sizeof line, "the server does not give its identity, so a superseded server would "
           "not be recognised: %.700s", refusal->text);
  log_line(servers, 1, line);
  servers->is_told = true;
}

dk_status
servers_judge_withheld(struct servers *servers, const struct why *refusal, const PGconn *pg,
                       struct why *why)
{
  dk_status status = DK_OK;
  char where[200];

  mutex_lock(&servers->mutex);
  write_where(where, sizeof where, pg);
  if (servers->highest.timeline != 0)
    status = why_set(why, DK_UNAVAILABLE,
                     "the server at %s does not give its identity, so it may be one that was "
                     "superseded: this store has been on timeline %u, at %s; let the role run "
                     "pg_control_system(), pg_current_wal_lsn() and pg_walfile_name(), or, if it "
                     "is the right one, restart this process: %.400s",
                     where, servers->highest.timeline, servers->where, refusal->text);
  else
    tell_withheld(servers, refusal);
  mutex_unlock(&servers->mutex);
  return status;
}

dk_status
servers_judge(struct servers *servers, const struct identity *identity, const PGconn *pg,
              struct why *why)
{
  dk_status status = DK_OK;

  if (!servers)
    return DK_OK;
  mutex_lock(&servers->mutex);
  uint64_t system = servers->highest.system;
  if (system != 0 && identity->system != 0 && identity->system != system)
    status = refuse_cluster(servers, identity, pg, why);
  else if (is_lower(servers, identity))
    status = refuse_superseded(servers, identity, pg, why);
  else
    note_highest(servers, identity, pg);
  mutex_unlock(&servers->mutex);
  return status;
}

bool
servers_have_superseded(struct servers *servers, const struct identity *identity)
{
  if (!servers)
    return false;
  mutex_lock(&servers->mutex);
  bool is = is_lower(servers, identity);
  mutex_unlock(&servers->mutex);
  return is;
}

uint32_t
servers_timeline(struct servers *servers)
{
  if (!servers)
    return 0;
  mutex_lock(&servers->mutex);
  uint32_t timeline = servers->highest.timeline;
  mutex_unlock(&servers->mutex);
  return timeline;
}

void
servers_tell(struct servers *servers, const struct identity *identity, char *room, size_t size)
{
  char on[40] = "on an unknown timeline";

  if (identity->timeline != 0)
    snprintf(on, sizeof on, "on timeline %u", identity->timeline);
  mutex_lock(&servers->mutex);
  snprintf(room, size, "the server of this session, %s, was superseded by the one at %s, on "
           "timeline %u", on, servers->where, servers->highest.timeline);
  mutex_unlock(&servers->mutex);
}

/* ---- while a session is silent --------------------------------------------------------------- */

enum { LONG_AGO = 5 };

bool
servers_begin_probe(struct servers *servers, int64_t now)
{
  if (!servers)
    return false;
  mutex_lock(&servers->mutex);
  bool begins = !servers->is_probed && now >= servers->probe_at;
  if (begins && now - servers->probe_at > LONG_AGO * servers->settings->silence_ms)
    servers->pause = 0;
  servers->is_probed = servers->is_probed || begins;
  mutex_unlock(&servers->mutex);
  return begins;
}

void
servers_end_probe(struct servers *servers, int64_t now)
{
  mutex_lock(&servers->mutex);
  assert(servers->is_probed);
  int64_t silence_ms = servers->settings->silence_ms, longest = silence_ms * 3 / 2;
  int64_t pause = servers->pause == 0 ? silence_ms / 2 : 2 * servers->pause;
  servers->pause = pause < longest ? pause : longest;
  servers->probe_at = now + servers->pause;
  servers->is_probed = false;
  mutex_unlock(&servers->mutex);
}

void
servers_note_wait(struct servers *servers, const char *what, const char *text)
{
  char line[600];

  if (!servers)
    return;
  mutex_lock(&servers->mutex);
  bool is_news = *text && strcmp(servers->wait, text) != 0;
  snprintf(servers->wait, sizeof servers->wait, "%s", text);
  mutex_unlock(&servers->mutex);
  if (!is_news)
    return;
  snprintf(line, sizeof line, "%s: no answer yet: %s", what, text);
  log_line(servers, 2, line);
}

void
servers_tell_wait(struct servers *servers, char *room, size_t size)
{
  *room = '\0';
  if (!servers)
    return;
  mutex_lock(&servers->mutex);
  snprintf(room, size, "%s", servers->wait);
  mutex_unlock(&servers->mutex);
}

/* ---- which is tried first -------------------------------------------------------------------- */

void
servers_note_hosts(struct servers *servers, PGconn *pg)
{
  if (!servers)
    return;
  mutex_lock(&servers->mutex);
  if (!servers->all.host && !servers->all.hostaddr)
    (void)hosts_of(pg, &servers->all);
  mutex_unlock(&servers->mutex);
}

void
servers_prefer(struct servers *servers, const PGconn *pg, bool is_new)
{
  struct hosts turned;

  if (!servers)
    return;
  mutex_lock(&servers->mutex);
  bool is_in_force = servers->preferred.host || servers->preferred.hostaddr;
  if ((is_new || is_in_force) && hosts_from(&servers->all, pg, &turned)) {
    hosts_done(&servers->preferred);
    servers->preferred = turned;
  }
  mutex_unlock(&servers->mutex);
}

bool
servers_preferred(struct servers *servers, struct hosts *ret_hosts)
{
  bool is_whole = false;

  if (!servers)
    return false;
  mutex_lock(&servers->mutex);
  if (servers->preferred.host || servers->preferred.hostaddr)
    is_whole = hosts_copy(&servers->preferred, ret_hosts);
  mutex_unlock(&servers->mutex);
  return is_whole;
}
