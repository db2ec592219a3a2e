/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that open was given: see settings.h. */
#include "providers/pg/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "providers/shared/text.h"

enum {
  MAX_NAME = 63, /* the server cuts longer names, and then two would be one */
  MAX_POOL = 1000,
  DEFAULT_POOL = 16,
  DEFAULT_CONNECT_MS = 10000,
  DEFAULT_HOST_MS = 3000,    /* so the second is reached soon, if the first accepts and is silent */
  DEFAULT_ANSWER_MS = 20000, /* below the leases of activities: each that ends is a repetition */
  DEFAULT_LOCK_MS = 5000,
  SILENCE_MS = 2000
};

const struct dk_param pg_params[] = {
  {.key = "conninfo", .type = "string", .fallback = "",
   .help = "the server, in libpq's form: \"host=... dbname=... user=...\" or postgresql://...; "
           "without it libpq's environment (PGHOST, PGDATABASE, PGSERVICE, ...) names it.  "
           "hostaddr avoids a name lookup, which cannot be cancelled"},
  {.key = "password", .type = "string", .flags = DK_PARAM_SECRET,
   .help = "the password; a passfile (~/.pgpass) is better, because command lines are visible"},
  {.key = "schema", .type = "string", .fallback = "durakit", .flags = DK_PARAM_STORE,
   .help = "the schema of the store: any name of up to 63 bytes that does not begin with pg_"},
  {.key = "pool", .type = "integer", .fallback = "16",
   .help = "the most connections, 1 to 1000, each opened when it is needed; a handle that waits "
           "for work has one more"},
  {.key = "connect_timeout", .type = "duration", .fallback = "10s",
   .help = "how long to wait for a connection before DK_UNAVAILABLE; if conninfo has several "
           "hosts, for each of them, and then 3s by default"},
  {.key = "answer_timeout", .type = "duration", .fallback = "20s",
   .help = "how long to wait for an answer, or for more of it, before the connection is closed; "
           "a write is then DK_OUTCOME_UNKNOWN.  A fetch or a renewal waits no "
           "longer than the lease that it asks for; a deletion waits three times as long"},
  {.key = "lock_timeout", .type = "duration", .fallback = "5s",
   .help = "how long the server waits for a row that another transaction holds, before DK_BUSY"},
  {.key = NULL},
};

static char *
copy(const char *text, struct why *why)
{
  char *made = strdup(text);

  if (!made)
    why_set(why, DK_NO_MEMORY, "settings: out of memory");
  return made;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static dk_status
read_pool(const char *text, uint32_t *ret_pool, struct why *why)
{
  char *rest;

  *ret_pool = DEFAULT_POOL;
  if (!text)
    return DK_OK;
  errno = 0;
  long number = strtol(text, &rest, 10);
  if (rest == text || *rest || errno || number < 1 || number > MAX_POOL)
    return why_set(why, DK_INVALID, "pool is \"%.40s\"; expected a number from 1 to %d", text,
                   MAX_POOL);
  *ret_pool = (uint32_t)number;
  return DK_OK;
}

/* The server takes milliseconds in 32 bits, and 0 for no limit. */
static dk_status
read_duration(const struct dk_open *open, const char *key, int64_t fallback, int64_t *ret_ms,
              struct why *why)
{
  const char *text = setting_value(open, key);

  *ret_ms = fallback;
  if (!text || (text_is_duration(text, ret_ms) && *ret_ms >= 1 && *ret_ms <= INT32_MAX))
    return DK_OK;
  return why_set(why, DK_INVALID, "%s is \"%.40s\"; expected a duration like 500ms or 5s, at least "
                                  "1ms and at most 596h", key, text);
}

static dk_status
read_times(const struct dk_open *open, int64_t of_conninfo, struct settings *s, struct why *why)
{
  bool is_lock_given = setting_value(open, "lock_timeout") != NULL;
  bool is_connect_given = of_conninfo > 0 || setting_value(open, "connect_timeout");

  TRY(read_duration(open, "connect_timeout", of_conninfo > 0 ? of_conninfo : DEFAULT_CONNECT_MS,
                    &s->connect_ms, why));
  s->host_ms = is_connect_given ? s->connect_ms : DEFAULT_HOST_MS;
  s->silence_ms = SILENCE_MS;
  TRY(read_duration(open, "answer_timeout", DEFAULT_ANSWER_MS, &s->answer_ms, why));
  TRY(read_duration(open, "lock_timeout", DEFAULT_LOCK_MS, &s->lock_ms, why));
  if (s->lock_ms < s->answer_ms)
    return DK_OK;
  if (is_lock_given)
    return why_set(why, DK_INVALID, "lock_timeout is %lldms and answer_timeout %lldms; expected "
                                    "lock_timeout to be the shorter: otherwise the outcome of "
                                    "a call that waits for a row is unknown",
                   (long long)s->lock_ms, (long long)s->answer_ms);
  s->lock_ms = s->answer_ms / 2 > 0 ? s->answer_ms / 2 : 1;
  return DK_OK;
}

/* ---- the schema ------------------------------------------------------------------------------ */

static dk_status
check_schema(const char *name, struct why *why)
{
  if (!*name)
    return why_set(why, DK_INVALID, "schema is empty; expected the name of a schema");
  if (strlen(name) > MAX_NAME)
    return why_set(why, DK_INVALID,
                   "schema is \"%.80s\", %zu bytes; expected at most %d; give a shorter name%s",
                   name, strlen(name), MAX_NAME,
                   strstr(name, "-dk") ? " (a test adds up to 41 bytes to the one that it is given)"
                                       : "");
  if (!text_is_utf8(name, strlen(name)))
    return why_set(why, DK_INVALID, "schema is not valid UTF-8");
  if (strncmp(name, "pg_", 3) == 0)
    return why_set(why, DK_INVALID,
                   "schema is \"%s\"; names that begin with pg_ belong to the server", name);
  return DK_OK;
}

static char *
quote(const char *name, struct why *why)
{
  size_t length = strlen(name);
  char *quoted = malloc(2 * length + 3), *at = quoted;

  if (!quoted) {
    why_set(why, DK_NO_MEMORY, "settings: out of memory");
    return NULL;
  }
  *at++ = '"';
  for (; *name; name++) {
    if (*name == '"')
      *at++ = '"';
    *at++ = *name;
  }
  *at++ = '"';
  *at = '\0';
  return quoted;
}

/* ---- all ------------------------------------------------------------------------------------- */

static dk_status
read_all(const struct dk_open *open, struct settings *s, struct why *why)
{
  const char *conninfo = setting_value(open, "conninfo"),
             *schema = setting_value(open, "schema");
  const char *password = setting_value(open, "password");
  int64_t of_conninfo;

  TRY(check_schema(schema ? schema : "durakit", why));
  TRY(read_pool(setting_value(open, "pool"), &s->pool, why));
  TRY(conninfo_read(conninfo ? conninfo : "", &s->shown, &of_conninfo, why));
  TRY(read_times(open, of_conninfo, s, why));
  s->conninfo = copy(conninfo ? conninfo : "", why);
  s->schema = copy(schema ? schema : "durakit", why);
  s->quoted = s->schema ? quote(s->schema, why) : NULL;
  s->password = password ? copy(password, why) : NULL;
  if (!s->conninfo || !s->quoted || (password && !s->password))
    return why->status;
  s->is_read_only = (open->flags & DK_OPEN_READ_ONLY) != 0;
  return DK_OK;
}

dk_status
settings_read(const struct dk_open *open, struct settings *ret_settings, struct why *why)
{
  struct settings settings = {0};
  dk_status status = read_all(open, &settings, why);

  if (status == DK_OK)
    *ret_settings = settings;
  else
    settings_done(&settings);
  return status;
}

static void
wipe(char *secret)
{
  if (secret)
    explicit_bzero(secret, strlen(secret));
  free(secret);
}

void
settings_done(struct settings *settings)
{
  wipe(settings->conninfo);
  wipe(settings->password);
  free(settings->shown);
  free(settings->schema);
  free(settings->quoted);
  *settings = (struct settings){0};
}
