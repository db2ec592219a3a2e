/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that open was given: which are accepted, which are refused and with which text, and
 * the parameters for libpq.  No server is asked. */
#include "providers/pg/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"

static struct why why;

static dk_status
read_flagged(uint32_t flags, const char *key, const char *value, const char *key2,
             const char *value2, struct settings *ret)
{
  const struct dk_setting given[] = {{key, {value, value ? strlen(value) : 0}},
                                     {key2, {value2, value2 ? strlen(value2) : 0}}};
  struct dk_open open = {.struct_size = sizeof open, .flags = flags, .settings = given,
                         .n_settings = key2 ? 2 : key ? 1 : 0};

  why = (struct why){0};
  return settings_read(&open, ret, &why);
}

static void
takes(const char *key, const char *value, struct settings *ret)
{
  cmp_ok(read_flagged(0, key, value, NULL, NULL, ret), "==", DK_OK, "%s=%s is taken", key, value);
}

static void
refuses(const char *key, const char *value, const char *words)
{
  struct settings s;

  cmp_ok(read_flagged(0, key, value, NULL, NULL, &s), "==", DK_INVALID, "%s=%s is refused", key,
         value);
  if (!ok(strstr(why.text, words) != NULL, "and why: %s", words))
    diag("in: %s", why.text);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void
test_defaults(void)
{
  struct settings s;

  cmp_ok(read_flagged(0, NULL, NULL, NULL, NULL, &s), "==", DK_OK, "nothing needs to be given");
  is(s.conninfo, "", "conninfo");
  ok(!s.password, "no password");
  is(s.schema, "durakit", "schema");
  is(s.quoted, "\"durakit\"", "as an identifier");
  is(s.shown, "the server of libpq's environment", "where");
  cmp_ok(s.pool, "==", 16, "pool");
  cmp_ok(s.connect_ms, "==", 10000, "connect_timeout");
  cmp_ok(s.answer_ms, "==", 20000, "answer_timeout: below a lease of 30 s");
  cmp_ok(s.host_ms, "==", 3000, "connect_timeout of each of several hosts");
  cmp_ok(s.lock_ms, "==", 5000, "lock_timeout");
  ok(!s.is_read_only, "it writes");
  settings_done(&s);
  ok(!s.conninfo && !s.quoted, "nothing is left");
  cmp_ok(read_flagged(DK_OPEN_READ_ONLY, NULL, NULL, NULL, NULL, &s), "==", DK_OK, "to read");
  ok(s.is_read_only, "it only reads");
  settings_done(&s);
}

/* What the descriptor says of a setting left out is what holds. */
static void
test_fallbacks(void)
{
  struct settings s, named;

  for (const struct dk_param *param = pg_params; param->key; param++) {
    if (!param->fallback)
      continue;
    cmp_ok(read_flagged(0, NULL, NULL, NULL, NULL, &s), "==", DK_OK, "left out");
    takes(param->key, param->fallback, &named);
    ok(strcmp(s.conninfo, named.conninfo) == 0 && strcmp(s.schema, named.schema) == 0 &&
         s.pool == named.pool && s.connect_ms == named.connect_ms &&
         s.answer_ms == named.answer_ms && s.lock_ms == named.lock_ms,
       "%s: the fallback is what is done without it", param->key);
    settings_done(&s);
    settings_done(&named);
  }
}

static void
test_numbers(void)
{
  static const char *const bad_pools[] = {"0", "-1", "1001", "", "8x", "99999999999999999999"};
  static const char *const bad_times[] = {"0",  "-1s",  "",
                                          "5x", "600h", "9223372036854775807h"};
  static const struct {
    const char *text;
    int64_t ms;
  } times[] = {{"1", 1}, {"250ms", 250}, {"3s", 3000}, {"2m", 120000}, {"596h", 2145600000}};
  struct settings s;

  takes("pool", "1", &s);
  cmp_ok(s.pool, "==", 1, "the smallest pool");
  settings_done(&s);
  takes("pool", "1000", &s);
  cmp_ok(s.pool, "==", 1000, "the largest pool");
  settings_done(&s);
  for (size_t i = 0; i < sizeof bad_pools / sizeof bad_pools[0]; i++)
    refuses("pool", bad_pools[i], "expected a number from 1 to 1000");
  for (size_t i = 0; i < sizeof bad_times / sizeof bad_times[0]; i++) {
    refuses("connect_timeout", bad_times[i], "connect_timeout is \"");
    refuses("answer_timeout", bad_times[i], "expected a duration");
    refuses("lock_timeout", bad_times[i], "at least 1ms");
  }
  for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
    takes("connect_timeout", times[i].text, &s);
    cmp_ok(s.connect_ms, "==", times[i].ms, "a time");
    settings_done(&s);
  }
}

static void
test_times_that_do_not_fit(void)
{
  struct settings s;

  takes("answer_timeout", "2s", &s);
  cmp_ok(s.lock_ms, "<", s.answer_ms, "a lock is waited for less than an answer");
  settings_done(&s);
  takes("answer_timeout", "1ms", &s);
  cmp_ok(s.lock_ms, ">=", 1, "never for 0, which is for ever");
  settings_done(&s);
  refuses("lock_timeout", "1m", "expected lock_timeout to be the shorter");
  cmp_ok(read_flagged(0, "lock_timeout", "1m", "answer_timeout", "2m", &s), "==", DK_OK,
         "if both are given");
  settings_done(&s);
  takes("conninfo", "connect_timeout=7", &s);
  cmp_ok(s.connect_ms, "==", 7000, "conninfo has a time to connect");
  settings_done(&s);
  cmp_ok(read_flagged(0, "conninfo", "connect_timeout=7", "connect_timeout", "3s", &s), "==",
         DK_OK, "and so has the setting");
  cmp_ok(s.connect_ms, "==", 3000, "which counts more");
  settings_done(&s);
}

/* ---- the schema ------------------------------------------------------------------------------ */

static void
test_schema(void)
{
  static const struct {
    const char *name, *quoted;
  } names[] = {
    {"a", "\"a\""},
    {"Two Words", "\"Two Words\""},
    {"a\"b", "\"a\"\"b\""},
    {"\"\"\"", "\"\"\"\"\"\"\"\""},
    {"select", "\"select\""},
    {"x'; DROP TABLE y; --", "\"x'; DROP TABLE y; --\""},
    {"\\", "\"\\\""},
    {"$1", "\"$1\""},
    {"line\nbreak", "\"line\nbreak\""},
    {"Stra\303\237e \360\237\230\200", "\"Stra\303\237e \360\237\230\200\""},
    {"pg", "\"pg\""},
    {"PG_x", "\"PG_x\""},
    {"@schema@", "\"@schema@\""},
    {"012345678901234567890123456789012345678901234567890123456789012",
     "\"012345678901234567890123456789012345678901234567890123456789012\""},
  };
  struct settings s;

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    takes("schema", names[i].name, &s);
    is(s.schema, names[i].name, "as it was given");
    is(s.quoted, names[i].quoted, "and as an identifier");
    settings_done(&s);
  }
  refuses("schema", "", "schema is empty");
  refuses("schema", "pg_x", "belong to the server");
  refuses("schema", "0123456789012345678901234567890123456789012345678901234567890123",
          "64 bytes; expected at most 63");
  refuses("schema", "a-name-of-23-bytes-or-so-dk0123456789012345678901234567890123456789",
          "a test adds up to 41 bytes");
  static const char *const broken[] = {
    "\200", "a\300\200", "\303", "\355\240\200", "\360\200\200", "\364\220\200\200",
    "\377", "\340\200\200", "\303(", "\360\237\230",
  };
  for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
    refuses("schema", broken[i], "not valid UTF-8");
}

/* ---- conninfo -------------------------------------------------------------------------------- */

static void
test_shown(void)
{
  static const struct {
    const char *conninfo, *shown;
  } rows[] = {
    {"host=db port=5433 dbname=it user=me password=hunter2",
     "the server of host=db port=5433 dbname=it user=me"},
    {"postgresql://me:hunter2@db:5433/it?sslmode=require",
     "the server of host=db port=5433 dbname=it user=me"},
    {"postgres://me:hun%2Fter2@a,b/it", "the server of host=a,b dbname=it user=me"},
    {"service=mine password='hunter2 hunter2'", "the server of service=mine"},
    {"hostaddr=127.0.0.1 sslpassword=hunter2", "the server of hostaddr=127.0.0.1"},
    {"password=hunter2", "the server of libpq's environment"},
    /* Not encoded, so that what follows the first @ is taken for a host. */
    {"postgresql://me:ab@hunter2@db/it", NULL},
    {"postgresql://me:1/hunter2@db/it", NULL},
  };
  struct settings s;

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    dk_status status = read_flagged(0, "conninfo", rows[i].conninfo, NULL, NULL, &s);
    const char *said = status == DK_OK ? s.shown : why.text;
    if (rows[i].shown)
      is(said, rows[i].shown, "what is shown");
    ok(!strstr(said, "hunter2"), "no password in \"%s\"", said);
    if (status == DK_OK)
      settings_done(&s);
  }
}

/* libpq repeats the words that it cannot read: none of them where they may be a password. */
static void
test_unreadable(void)
{
  static const char *const secrets[] = {
    "host=db password=my hunter2",
    "host=db password=my hunter2=x",
    "host=db PASSWORD=x hunter2",
    "password='hunter2",
    "postgresql://me:hunter2@[db/it",
    "postgresql://me:hunter%xx2@db/it",
    "postgresql://me:x/hunter2@db:p/it",
    "postgresql://me:hunter2/y@db/it",
    "postgresql://db/it?password=x&hunter2=y&z",
    "passfile=x hunter2",
  };

  for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
    refuses("conninfo", secrets[i], "conninfo");
    ok(!strstr(why.text, "hunter"), "no password: %s", why.text);
  }
  refuses("conninfo", "host", "missing \"=\" after \"host\"");
  refuses("conninfo", "hots=db", "invalid connection option \"hots\"");
  refuses("conninfo", "host='db", "unterminated quoted string");
  refuses("conninfo", "replication=database", "remove it");
  refuses("conninfo", "replication=1 host=db", "remove it");
  refuses("conninfo", "host=db port=http", "port is not a number");
  refuses("conninfo", "postgresql://app:secr@Zw77@db/work", "host contains an @");
  refuses("conninfo", "dbname=postgresql://app:Zw77@db/work", "dbname contains an address");
  refuses("conninfo", "dbname='host=db password=Zw77'", "an address or a password");

  struct settings s;
  takes("conninfo", "replication=false", &s);
  settings_done(&s);
}

/* ---- the parameters for libpq ---------------------------------------------------------------- */

/* The last value, which libpq uses; conninfo's words are in the place of dbname. */
static const char *
told(const struct connect_params *params, const char *keyword)
{
  const char *value = NULL;

  for (size_t i = 0; params->keywords[i]; i++)
    if (strcmp(params->keywords[i], keyword) == 0)
      value = params->values[i];
  return value;
}

static void
test_params(void)
{
  struct connect_params params;
  struct settings s;

  unsetenv("PGSERVICE");
  cmp_ok(read_flagged(0, "conninfo", "host=db client_encoding=latin1", "password", "hunter2", &s),
         "==", DK_OK, "a password of its own");
  cmp_ok(conninfo_params(&s, &params, &why), "==", DK_OK, "params");
  is(told(&params, "dbname"), "host=db client_encoding=latin1", "conninfo");
  is(told(&params, "password"), "hunter2", "the password");
  is(told(&params, "client_encoding"), "UTF8", "the encoding is ours");
  is(told(&params, "fallback_application_name"), "durakit", "the name may be another");
  is(told(&params, "tcp_user_timeout"), "20000", "a dead network is found out");
  settings_done(&s);

  takes("conninfo", "service=mine", &s);
  cmp_ok(conninfo_params(&s, &params, &why), "==", DK_OK, "params");
  ok(!told(&params, "tcp_user_timeout"), "a service may have its own times");
  settings_done(&s);
  setenv("PGSERVICE", "mine", 1);
  takes("conninfo", "", &s);
  cmp_ok(conninfo_params(&s, &params, &why), "==", DK_OK, "params");
  ok(!told(&params, "keepalives_idle"), "even if the environment names it");
  settings_done(&s);
  unsetenv("PGSERVICE");
}

/* As libpq has understood it: by a connection that is never made. */
static void
test_precedence(void)
{
  static const struct {
    const char *keyword, *expected;
  } rows[] = {
    {"keepalives_idle", "7"}, {"keepalives_interval", "10"}, {"client_encoding", "UTF8"},
    {"application_name", "mine"}, {"fallback_application_name", "durakit"}, {"dbname", "it"},
    {"sslpassword", "theirs"},
  };
  struct connect_params params;
  struct settings s;

  takes("conninfo", "host=/nowhere dbname=it keepalives_idle=7 client_encoding=latin1 "
                    "application_name=mine sslpassword=theirs", &s);
  cmp_ok(conninfo_params(&s, &params, &why), "==", DK_OK, "params");
  PGconn *pg = PQconnectStartParams(params.keywords, params.values, 1);
  PQconninfoOption *options = PQconninfo(pg);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    for (PQconninfoOption *option = options; option && option->keyword; option++)
      if (strcmp(option->keyword, rows[i].keyword) == 0)
        is(option->val, rows[i].expected, "%s", rows[i].keyword);
  PQconninfoFree(options);
  PQfinish(pg);
  settings_done(&s);
}

/* Of three hosts the one that is tried now is the first, and those before it the last. */
static void
test_order(void)
{
  static const struct {
    const char *conninfo, *host, *port;
  } rows[] = {
    {"host=/a,/b,/c port=1,2,3", "/c,/a,/b", "3,1,2"},
    {"host=/a,/b,/c port=7", "/c,/a,/b", "7"},
    {"host=/a,/b,/c port=1,,3", "/c,/a,/b", "3,1,"},
    {"host=/a port=1", "/a", "1"},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct hosts all, turned;
    PGconn *pg = PQconnectStart(rows[i].conninfo); /* tries all of them at once, in vain */

    if (!hosts_of(pg, &all) || !hosts_from(&all, pg, &turned))
      BAIL_OUT("%s: no hosts", rows[i].conninfo);
    is(turned.host, rows[i].host, "%s: the hosts", rows[i].conninfo);
    is(turned.port, rows[i].port, "%s: the ports", rows[i].conninfo);
    cmp_ok(hosts_are_several(&all), "==", strchr(rows[i].conninfo, ',') != NULL, "several or one");
    hosts_done(&all);
    hosts_done(&turned);
    PQfinish(pg);
  }
}

int
main(void)
{
  plan(NO_PLAN);
  test_defaults();
  test_fallbacks();
  test_numbers();
  test_times_that_do_not_fit();
  test_schema();
  test_shown();
  test_unreadable();
  test_params();
  test_precedence();
  test_order();
  return done_testing();
}
