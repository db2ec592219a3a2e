/* SPDX-License-Identifier: Apache-2.0 */
/* The content of conninfo, and the parameters for libpq: see settings.h.  Only host, port,
 * database, user and service are ever shown.  Nothing else is shown even if conninfo cannot be
 * read, because then any of its words may be the password. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "providers/pg/settings.h"

static const char *
conninfo_value_of(const PQconninfoOption *options, const char *keyword)
{
  for (const PQconninfoOption *option = options; option->keyword; option++)
    if (strcmp(option->keyword, keyword) == 0)
      return option->val && *option->val ? option->val : NULL;
  return NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* libpq's message has the words that it cannot read.  They are left out where one of them may be a
 * secret. */
static dk_status
refuse_form(const char *conninfo, const char *error, struct why *why)
{
  bool has_secret = strcasestr(conninfo, "pass") || strcasestr(conninfo, "secret") ||
                    strcasestr(conninfo, "scram_") || strstr(conninfo, "://");
  char said[300], line[300];
  size_t used = 0;
  bool is_quoted = false;

  for (const char *at = error; *at && used + 1 < sizeof said; at++) {
    bool is_word = *at != '=' && *at != ']';
    if (*at == '"')
      is_quoted = !is_quoted;
    else if (has_secret && is_quoted && is_word)
      continue;
    said[used++] = *at;
  }
  said[used] = '\0';
  return why_set(why, DK_INVALID,
                 "conninfo cannot be read: %s%s; expected \"host=... dbname=... user=...\", values "
                 "with spaces in single quotes, or postgresql://user@host/dbname with %%40 for @",
                 why_line(line, sizeof line, error == said ? "" : said),
                 has_secret ? " (some words are left out, because one may be a password)" : "");
}

static dk_status
refuse_what_breaks_us(const PQconninfoOption *options, struct why *why)
{
  const char *replication = conninfo_value_of(options, "replication"),
             *port = conninfo_value_of(options, "port");
  const char *dbname = conninfo_value_of(options, "dbname");
  const char *host = conninfo_value_of(options, "host");

  if (replication && strcmp(replication, "false") != 0 && strcmp(replication, "0") != 0 &&
      strcmp(replication, "off") != 0 && strcmp(replication, "no") != 0)
    return why_set(why, DK_INVALID, "conninfo has replication; a replication connection accepts "
                                    "no statements with parameters; remove it");
  /* An address whose password is not encoded is split in the wrong places. */
  if (port && port[strspn(port, "0123456789,")])
    return why_set(why, DK_INVALID, "conninfo's port is not a number; in an address, write the "
                                    "password percent-encoded: %%2F for /, %%40 for @, %%3A for :");
  /* So is its end then, and libpq would show it as a name that it cannot look up.  A folder or an
   * abstract socket begins with one of / and @. */
  if (host && !strchr("/@", *host) && strchr(host, '@'))
    return why_set(why, DK_INVALID, "conninfo's host contains an @, so it may include a part of "
                                    "the password; in an address, write the password "
                                    "percent-encoded: %%40 for @");
  /* libpq takes it for a name here, and the server's message has that name. */
  if (dbname && (strstr(dbname, "://") || strstr(dbname, "password=")))
    return why_set(why, DK_INVALID, "conninfo's dbname contains an address or a password; expected "
                                    "the name of a database; give the address itself as conninfo");
  return DK_OK;
}

static char *
show(const char *conninfo, const PQconninfoOption *options)
{
  static const char *const keywords[] = {"service", "host", "hostaddr", "port", "dbname", "user"};
  bool is_address = strstr(conninfo, "://") != NULL;
  char room[400] = "", value[100];
  size_t used = 0;
  char *shown;

  for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
    const char *given = conninfo_value_of(options, keywords[i]);
    /* Behind an @ that is not encoded there is more of the address than a name. */
    if (!given || (is_address && strchr(given, '@')) || used + 1 >= sizeof room ||
        !given[strspn(given, ",")])
      continue;
    int n = snprintf(room + used, sizeof room - used, "%s%s=%s", used > 0 ? " " : "", keywords[i],
                     why_line(value, sizeof value, given));
    used += n > 0 ? (size_t)n : 0;
  }
  if (asprintf(&shown, "the server of %s", used > 0 ? room : "libpq's environment") < 0)
    return NULL;
  return shown;
}

dk_status
conninfo_read(const char *conninfo, char **ret_shown, int64_t *ret_connect_ms, struct why *why)
{
  enum { MOST_SECONDS = 2000000 };
  char *error = NULL;

  errno = 0; /* libpq says in words, of some language, if memory ran out */
  PQconninfoOption *options = PQconninfoParse(conninfo, &error);
  if (!options) {
    dk_status refused = error && errno != ENOMEM
                          ? refuse_form(conninfo, error, why)
                          : why_set(why, DK_NO_MEMORY, "settings: out of memory");
    PQfreemem(error);
    return refused;
  }
  dk_status status = refuse_what_breaks_us(options, why);
  const char *timeout = conninfo_value_of(options, "connect_timeout");
  long seconds = timeout ? strtol(timeout, NULL, 10) : 0;
  char *shown = status == DK_OK ? show(conninfo, options) : NULL;
  PQconninfoFree(options);
  if (status != DK_OK)
    return status;
  if (!shown)
    return why_set(why, DK_NO_MEMORY, "settings: out of memory");
  *ret_shown = shown;
  *ret_connect_ms = seconds > 0 && seconds < MOST_SECONDS ? seconds * 1000 : 0;
  return DK_OK;
}

/* ---- the parameters for libpq ---------------------------------------------------------------- */

static void
conninfo_tell(struct connect_params *params, size_t *n, const char *keyword, const char *value)
{
  assert(*n < MOST_CONNECT_PARAMS || (*n == MOST_CONNECT_PARAMS && !keyword));
  params->keywords[*n] = keyword;
  params->values[*n] = value;
  (*n)++;
}

/* Of two values for one keyword the later counts, and the values of conninfo have the place of
 * dbname. */
dk_status
conninfo_params(const struct settings *settings, struct connect_params *ret_params, struct why *why)
{
  struct connect_params *p = ret_params;
  PQconninfoOption *options = PQconninfoParse(settings->conninfo, NULL);
  size_t n = 0;

  if (!options)
    return why_set(why, DK_NO_MEMORY, "settings: out of memory");
  bool has_service = conninfo_value_of(options, "service") || getenv("PGSERVICE");
  PQconninfoFree(options);
  *p = (struct connect_params){0};
  snprintf(p->user_timeout, sizeof p->user_timeout, "%lld", (long long)settings->answer_ms);
  conninfo_tell(p, &n, "fallback_application_name", "durakit");
  /* A service file may have these too, and a value here would hide it. */
  if (!has_service) {
    /* So a connection that only listens also notices a server that disappeared without a message.
     */
    conninfo_tell(p, &n, "keepalives_idle", "30");
    conninfo_tell(p, &n, "keepalives_interval", "10");
    conninfo_tell(p, &n, "keepalives_count", "3");
    conninfo_tell(p, &n, "tcp_user_timeout", p->user_timeout);
    /* Without one OpenSSL would ask on the terminal for that of an encrypted key. */
    conninfo_tell(p, &n, "sslpassword", "not given");
  }
  conninfo_tell(p, &n, "dbname", settings->conninfo);
  conninfo_tell(p, &n, "client_encoding", "UTF8");
  if (settings->password)
    conninfo_tell(p, &n, "password", settings->password);
  conninfo_tell(p, &n, NULL, NULL);
  return DK_OK;
}

/* ---- of several hosts ------------------------------------------------------------------------ */

static bool
copy_lists(const char *host, const char *hostaddr, const char *port, struct hosts *ret)
{
  *ret = (struct hosts){host ? strdup(host) : NULL, hostaddr ? strdup(hostaddr) : NULL,
                        port ? strdup(port) : NULL};
  if ((!host || ret->host) && (!hostaddr || ret->hostaddr) && (!port || ret->port))
    return true;
  hosts_done(ret);
  return false;
}

bool
hosts_copy(const struct hosts *hosts, struct hosts *ret)
{
  return copy_lists(hosts->host, hosts->hostaddr, hosts->port, ret);
}

bool
hosts_of(PGconn *pg, struct hosts *ret)
{
  PQconninfoOption *options = PQconninfo(pg);
  bool is_whole = options && copy_lists(conninfo_value_of(options, "host"),
                                        conninfo_value_of(options, "hostaddr"),
                                        conninfo_value_of(options, "port"), ret);

  PQconninfoFree(options);
  return is_whole;
}

bool
hosts_are_several(const struct hosts *hosts)
{
  return (hosts->host && strchr(hosts->host, ',')) ||
         (hosts->hostaddr && strchr(hosts->hostaddr, ','));
}

/* Whether the first of a list, "a,b,c", is this one. */
static bool
conninfo_is_first(const char *list, const char *name)
{
  size_t length = strcspn(list, ",");

  return strlen(name) == length && memcmp(list, name, length) == 0;
}

/* NULL: that was the last one. */
static const char *
behind_first(const char *list)
{
  const char *comma = list ? strchr(list, ',') : NULL;

  return comma ? comma + 1 : NULL;
}

/* The place of one host in each list; NULL: not in it.  One port is that of all. */
struct stand {
  const char *host, *hostaddr, *port;
  bool has_ports;
};

static void
step(struct stand *at)
{
  at->host = behind_first(at->host);
  at->hostaddr = behind_first(at->hostaddr);
  at->port = at->has_ports ? behind_first(at->port) : at->port;
  at->has_ports = at->has_ports && at->port;
}

/* The one that is tried now.  A name that is there twice is found at its first place. */
static bool
find_host(const struct hosts *hosts, const PGconn *pg, struct stand *at)
{
  *at = (struct stand){hosts->host, hosts->hostaddr, hosts->port,
                       hosts->port && strchr(hosts->port, ',')};
  for (; at->host || at->hostaddr; step(at)) {
    bool is_named = at->host && *at->host && *at->host != ',';
    const char *name = is_named ? at->host : at->hostaddr;
    if (name && conninfo_is_first(name, PQhost(pg)) &&
        (!at->has_ports || *at->port == ',' || !*at->port ||
         conninfo_is_first(at->port, PQport(pg))))
      return true;
  }
  return false;
}

/* So one may be tried again, but the list gets shorter each time. */
bool
hosts_after(PGconn *pg, struct hosts *ret_hosts)
{
  struct hosts all;
  struct stand at;

  if (!hosts_of(pg, &all))
    return false;
  bool is_there = find_host(&all, pg, &at);
  step(&at);
  /* One of them that ends in nothing would be taken for one that is not given. */
  bool is_told = (at.host || at.hostaddr) && (!at.host || *at.host) &&
                 (!at.hostaddr || *at.hostaddr) && (!at.port || *at.port);
  bool is_whole = is_there && is_told && copy_lists(at.host, at.hostaddr, at.port, ret_hosts);
  hosts_done(&all);
  return is_whole;
}

/* "a,b,c" from b on: "b,c,a". */
static bool
turn_list(const char *list, const char *from, char **ret)
{
  *ret = NULL;
  if (!list)
    return true;
  if (!from || from == list)
    *ret = strdup(list);
  else if (asprintf(ret, "%s,%.*s", from, (int)(from - list - 1), list) < 0)
    *ret = NULL;
  return *ret != NULL;
}

bool
hosts_from(const struct hosts *hosts, const PGconn *pg, struct hosts *ret_hosts)
{
  struct hosts turned = {0};
  struct stand at;

  if (find_host(hosts, pg, &at) && turn_list(hosts->host, at.host, &turned.host) &&
      turn_list(hosts->hostaddr, at.hostaddr, &turned.hostaddr) &&
      turn_list(hosts->port, at.port, &turned.port)) {
    *ret_hosts = turned;
    return true;
  }
  hosts_done(&turned);
  return false;
}

void
hosts_done(struct hosts *hosts)
{
  free(hosts->host);
  free(hosts->hostaddr);
  free(hosts->port);
  *hosts = (struct hosts){0};
}

void
conninfo_narrow(struct connect_params *params, const struct hosts *hosts)
{
  size_t n = 0;

  while (params->keywords[n])
    n++;
  if (hosts->host)
    conninfo_tell(params, &n, "host", hosts->host);
  if (hosts->hostaddr)
    conninfo_tell(params, &n, "hostaddr", hosts->hostaddr);
  if (hosts->port)
    conninfo_tell(params, &n, "port", hosts->port);
  conninfo_tell(params, &n, NULL, NULL);
}
