/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: the values of each type, and the words of each refusal. */
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/plugin/settings.h"

struct row {
  const char *type;
  const char *value;
  bool fits;
};

static const struct row rows[] = {
  {"string", "", true},            {"string", "anything", true},
  {"path", "/a/b", true},          {"path", "", false},
  {"integer", "0", true},          {"integer", "-7", true},
  {"integer", "9223372036854775807", true},
  {"integer", "-9223372036854775808", true},
  {"integer", "9223372036854775808", false},
  {"integer", "-9223372036854775809", false},
  {"integer", "", false},          {"integer", "-", false},
  {"integer", "1x", false},        {"integer", " 1", false},
  {"boolean", "true", true},       {"boolean", "off", true},
  {"boolean", "1", true},          {"boolean", "maybe", false},
  {"boolean", "", false},          {"duration", "250ms", true},
  {"duration", "5s", true},        {"duration", "2m", true},
  {"duration", "1h", true},        {"duration", "1500", true},
  {"duration", "0", true},         {"duration", "s", false},
  {"duration", "5 s", false},      {"duration", "5d", false},
  {"duration", "-5s", false},      {"duration", "9223372036854775807", true},
  {"duration", "9223372036854775807s", false},
  {"address", "localhost", true},  {"address", "db.example.org:5432", true},
  {"address", "[::1]:5432", true}, {"address", "[::1]", true},
  {"address", "/run/db.sock", true},
  {"address", "", false},          {"address", "a b", false},
  {"address", "host:", false},     {"address", "host:0", false},
  {"address", "host:65536", false},
  {"address", ":5432", false},
};

static const struct dk_param params[] = {
  {.key = "store", .type = "path", .help = "the file", .flags = DK_PARAM_REQUIRED},
  {.key = "timeout", .type = "duration"},
  {.key = "password", .type = "integer", .flags = DK_PARAM_SECRET},
  {.key = NULL},
};

static struct dk_bytes
bytes(const char *text)
{
  return (struct dk_bytes){text, strlen(text)};
}

static struct dk_setting
set(const char *key, const char *value)
{
  return (struct dk_setting){.key = key, .value = bytes(value)};
}

static void
expect_refused(const struct dk_param *of, const struct dk_setting *settings, size_t n,
               const char *what, const char *expected, const char *found, const char *next)
{
  struct dk_refusal refusal = {.number = -1};

  cmp_ok(dk_settings_check_params(of, "x.so", settings, n, &refusal), "==", -1, "refused: %s",
         what);
  cmp_ok(refusal.number, "==", 0, "with number 0");
  is(refusal.what, what, "what");
  is(refusal.expected, expected, "expected");
  is(refusal.found, found, "found");
  is(refusal.next, next, "next");
}

int
main(void)
{
  struct dk_setting good[] = {set("store", "/a"), set("timeout", "5s")};
  struct dk_setting typo[] = {set("stroe", "/a")};
  struct dk_setting far[] = {set("colour", "red")};
  struct dk_setting twice[] = {set("store", "/a"), set("store", "/b")};
  struct dk_setting wrong[] = {set("store", "/a"), set("timeout", "soon")};
  struct dk_setting secret[] = {set("store", "/a"), set("password", "hush")};
  struct dk_setting absent[] = {{.key = "store", .value = {NULL, 0}}};
  struct dk_setting with_nul[] = {{.key = "store", .value = {"a\0b", 3}}};
  struct dk_refusal refusal;

  plan(NO_PLAN);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    cmp_ok(dk_setting_fits(rows[i].type, bytes(rows[i].value)), "==", rows[i].fits,
           "'%s' is %s %s", rows[i].value, rows[i].fits ? "a" : "no", rows[i].type);

  cmp_ok(dk_settings_check_params(params, "x.so", good, 2, &refusal), "==", 0, "good settings");
  cmp_ok(dk_settings_check_params(NULL, "x.so", NULL, 0, &refusal), "==", 0, "none for none");
  expect_refused(params, typo, 1, "there is no setting 'stroe'", "store, timeout, password",
                 "stroe", "did you mean 'store'?");
  expect_refused(params, far, 1, "there is no setting 'colour'", "store, timeout, password",
                 "colour", "durakit probe x.so lists its settings");
  expect_refused(NULL, typo, 1, "there is no setting 'stroe'",
                 "no settings: this provider has none", "stroe",
                 "durakit probe x.so lists its settings");
  expect_refused(params, twice, 2, "the setting 'store' is given twice", "each setting once",
                 "'store' again", "");
  expect_refused(params, wrong, 2, "the value of the setting 'timeout' is not a valid duration",
                 "a number and a unit (250ms, 5s, 2m, 1h), or milliseconds without one",
                 "'soon'", "");
  expect_refused(params, secret, 2, "the value of the setting 'password' is not a valid integer",
                 "a whole number of 64 bits, such as 42 or -7", "a secret of 4 bytes", "");
  expect_refused(params, absent, 1, "the value of the setting 'store' is not a valid path",
                 "a path, not empty, without NUL", "no value", "store: the file");
  cmp_ok(dk_settings_check_params(params, "x.so", with_nul, 1, &refusal), "==", -1,
         "a NUL in a value");
  expect_refused(params, NULL, 0, "the setting 'store' is required",
                 "store=..., a path, not empty, without NUL", "it is not set", "store: the file");
  return done_testing();
}
