/* SPDX-License-Identifier: Apache-2.0 */
/* What conninfo says, and what libpq is told: see settings.h.  Nothing is shown of it but host,
 * port, database, user and service; not even where it cannot be read, for then nobody knows which
 * of its words is the password. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "providers/pg/settings.h"

static const char *
value_of(const PQconninfoOption *options, const char *keyword)
{
  for (const PQconninfoOption *option = options; option->keyword; option++)
    if (strcmp(option->keyword, keyword) == 0)
      return option->val && *option->val ? option->val : NULL;
  return NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* libpq says which words it cannot read.  They stay out where one of them may be a secret. */
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
                 has_secret ? " (words are left out, for there may be a password among them)" : "");
}

static dk_status
refuse_what_breaks_us(const PQconninfoOption *options, struct why *why)
{
  const char *replication = value_of(options, "replication"), *port = value_of(options, "port");
  const char *dbname = value_of(options, "dbname");
  const char *host = value_of(options, "host");

  if (replication && strcmp(replication, "false") != 0 && strcmp(replication, "0") != 0 &&
      strcmp(replication, "off") != 0 && strcmp(replication, "no") != 0)
    return why_set(why, DK_INVALID, "conninfo has replication; such a connection takes no "
                                    "statements with parameters; leave it out");
  /* An address with a password that is not encoded is taken apart in the wrong places. */
  if (port && port[strspn(port, "0123456789,")])
    return why_set(why, DK_INVALID, "conninfo's port is no number; in an address a password is "
                                    "percent-encoded: %%2F for /, %%40 for @, %%3A for :");
  /* So is its end then, and libpq would show it as a name that it cannot look up.  A folder or an
   * abstract socket begins with one of / and @. */
  if (host && !strchr("/@", *host) && strchr(host, '@'))
    return why_set(why, DK_INVALID, "conninfo's host has an @ in it, so that a part of the "
                                    "password may be taken for the host; in an address a "
                                    "password is percent-encoded: %%40 for @");
  /* libpq takes it for a name here, and the server says that name. */
  if (dbname && (strstr(dbname, "://") || strstr(dbname, "password=")))
    return why_set(why, DK_INVALID, "conninfo's dbname is an address or has a password in it, and "
                                    "is the name of a database there; give the address itself as "
                                    "conninfo");
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
    const char *given = value_of(options, keywords[i]);
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
  PQconninfoOption *options = PQconninfoParse(conninfo, &error);

  if (!options) {
    dk_status refused = error ? refuse_form(conninfo, error, why)
                              : why_set(why, DK_NO_MEMORY, "settings: out of memory");
    PQfreemem(error);
    return refused;
  }
  dk_status status = refuse_what_breaks_us(options, why);
  const char *timeout = value_of(options, "connect_timeout");
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

/* ---- what libpq is told ---------------------------------------------------------------------- */

static void
tell(struct connect_params *params, size_t *n, const char *keyword, const char *value)
{
  params->keywords[*n] = keyword;
  params->values[*n] = value;
  (*n)++;
}

/* Of two with one keyword the later counts, and what conninfo says stands where dbname is. */
dk_status
conninfo_params(const struct settings *settings, struct connect_params *ret_params, struct why *why)
{
  struct connect_params *p = ret_params;
  PQconninfoOption *options = PQconninfoParse(settings->conninfo, NULL);
  size_t n = 0;

  if (!options)
    return why_set(why, DK_NO_MEMORY, "settings: out of memory");
  bool has_service = value_of(options, "service") || getenv("PGSERVICE");
  PQconninfoFree(options);
  *p = (struct connect_params){0};
  snprintf(p->user_timeout, sizeof p->user_timeout, "%lld", (long long)settings->answer_ms);
  tell(p, &n, "fallback_application_name", "durakit");
  /* A service file may have these too, and would be hidden by what is said here. */
  if (!has_service) {
    /* A server that is gone without a word is found out by who only listens, too. */
    tell(p, &n, "keepalives_idle", "30");
    tell(p, &n, "keepalives_interval", "10");
    tell(p, &n, "keepalives_count", "3");
    tell(p, &n, "tcp_user_timeout", p->user_timeout);
    /* Without one OpenSSL would ask on the terminal for that of an encrypted key. */
    tell(p, &n, "sslpassword", "not given");
  }
  tell(p, &n, "dbname", settings->conninfo);
  tell(p, &n, "client_encoding", "UTF8");
  if (settings->password)
    tell(p, &n, "password", settings->password);
  tell(p, &n, NULL, NULL);
  return DK_OK;
}

/* ---- of several hosts ------------------------------------------------------------------------ */

/* Whether the first of a list, "a,b,c", is this one. */
static bool
is_first(const char *list, const char *name)
{
  size_t length = strcspn(list, ",");

  return strlen(name) == length && memcmp(list, name, length) == 0;
}

/* NULL: that was the last. */
static const char *
behind_first(const char *list)
{
  const char *comma = list ? strchr(list, ',') : NULL;

  return comma ? comma + 1 : NULL;
}

static bool
copy_list(const char *list, char **ret)
{
  *ret = list ? strdup(list) : NULL;
  return !list || *ret;
}

/* One port is that of all hosts.  A name that is there twice is found at its first place: so one
 * may be tried again, but the list gets shorter each time. */
bool
hosts_after(PGconn *pg, struct hosts *ret_hosts)
{
  PQconninfoOption *options = PQconninfo(pg);
  struct hosts rest = {0};
  bool is_there = false, is_whole = false;

  if (!options)
    return false;
  const char *host = value_of(options, "host"), *hostaddr = value_of(options, "hostaddr");
  const char *port = value_of(options, "port");
  bool has_ports = port && strchr(port, ',');
  while (!is_there && (host || hostaddr)) {
    const char *name = host && *host && *host != ',' ? host : hostaddr;
    is_there = name && is_first(name, PQhost(pg)) &&
               (!has_ports || *port == ',' || !*port || is_first(port, PQport(pg)));
    host = behind_first(host);
    hostaddr = behind_first(hostaddr);
    port = has_ports ? behind_first(port) : port;
    has_ports = has_ports && port;
  }
  /* One of them that ends in nothing would be taken for one that is not given. */
  bool is_told = (host || hostaddr) && (!host || *host) && (!hostaddr || *hostaddr) &&
                 (!port || *port);
  if (is_there && is_told)
    is_whole = copy_list(host, &rest.host) && copy_list(hostaddr, &rest.hostaddr) &&
               copy_list(port, &rest.port);
  PQconninfoFree(options);
  if (is_whole)
    *ret_hosts = rest;
  else
    hosts_done(&rest);
  return is_whole;
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
    tell(params, &n, "host", hosts->host);
  if (hosts->hostaddr)
    tell(params, &n, "hostaddr", hosts->hostaddr);
  if (hosts->port)
    tell(params, &n, "port", hosts->port);
  tell(params, &n, NULL, NULL);
}
