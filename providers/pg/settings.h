/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that open was given: which server, which schema, how many connections, how long to
 * wait. */
#ifndef DK_PG_SETTINGS_H
#define DK_PG_SETTINGS_H

#include "providers/pg/why.h"

struct settings {
  char *conninfo;         /* as given; may have a password in it: never shown */
  char *password;         /* NULL: none but what conninfo and the environment have */
  char *shown;            /* host, port, dbname and user only, for people */
  char *schema;           /* as given: for parameters, and for people in double quotes */
  char *quoted;           /* "schema", each quote doubled: for the text of a statement */
  uint32_t pool;          /* connections at most, the listener's not counted */
  int64_t connect_ms, answer_ms, lock_ms; /* connect_timeout, answer_timeout, lock_timeout */
  int64_t host_ms;        /* connect_timeout for each of several hosts */
  int64_t silence_ms;     /* a server may be silent so long before others are tried */
  bool is_read_only;      /* DK_OPEN_READ_ONLY: a standby is accepted */
};

extern const struct dk_param pg_params[];

/* Bad input is refused before anything is done.  On success free by settings_done. */
dk_status settings_read(const struct dk_open *open, struct settings *ret_settings,
                        struct why *why);
void settings_done(struct settings *settings);

/* ---- conninfo (conninfo.c) ------------------------------------------------------------------- */

/* Checks that libpq can read it, and that it has nothing in it that would break the plugin.  Gives
 * the part that may be shown, and its connect_timeout in milliseconds, 0 for none. */
dk_status conninfo_read(const char *conninfo, char **ret_shown, int64_t *ret_connect_ms,
                        struct why *why);

/* What PQconnectStartParams is given, with expand_dbname. */
enum { MOST_CONNECT_PARAMS = 16 };
struct connect_params {
  const char *keywords[MOST_CONNECT_PARAMS + 1], *values[MOST_CONNECT_PARAMS + 1];
  char user_timeout[24];
};
dk_status conninfo_params(const struct settings *settings, struct connect_params *ret_params,
                          struct why *why);

/* Lists as libpq takes them, "a,b,c"; NULL: not given. */
struct hosts {
  char *host, *hostaddr, *port;
};
/* Each is false without memory, or without a host; then hosts_done must not be called. */
bool hosts_copy(const struct hosts *hosts, struct hosts *ret);
/* All that this connection tries. */
bool hosts_of(PGconn *pg, struct hosts *ret);
/* The hosts behind the one that this connection tries now. */
bool hosts_after(PGconn *pg, struct hosts *ret_hosts);
/* All of these hosts: first the one that is tried now, last those before it. */
bool hosts_from(const struct hosts *hosts, const PGconn *pg, struct hosts *ret_hosts);
bool hosts_are_several(const struct hosts *hosts);
void hosts_done(struct hosts *hosts);
/* Leaves only these hosts in the parameters; they must live as long as the parameters. */
void conninfo_narrow(struct connect_params *params, const struct hosts *hosts);

#endif
