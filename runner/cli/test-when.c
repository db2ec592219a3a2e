/* SPDX-License-Identifier: Apache-2.0 */
/* Times and durations: what is read, what is refused, and what is written. */
#include "runner/cli/when.h"

#include <inttypes.h>

#include "conformance/tap/tap.h"

/* 2026-11-01T08:00:00Z, by date -d. */
static const int64_t eight = 1793520000000;

static void
reads(const char *text, int64_t expected)
{
  int64_t ms = -1;

  ok(when_parse(text, eight, &ms), "\"%s\" is a time", text);
  cmp_ok(ms, "==", expected, "and which");
}

static void
refuses(const char *text)
{
  int64_t ms;

  ok(!when_parse(text, eight, &ms), "\"%s\" is not a time", text);
}

static void
lasts(const char *text, int64_t expected)
{
  int64_t ms = -1;

  ok(when_parse_duration(text, &ms), "\"%s\" is a duration", text);
  cmp_ok(ms, "==", expected, "and how long");
}

static void
writes(int64_t ms, const char *expected)
{
  char text[WHEN_SIZE];

  when_format(ms, text);
  is(text, expected, "%" PRId64 " is written", ms);
}

int
main(void)
{
  plan(NO_PLAN);
  reads("2026-11-01T08:00:00Z", eight);
  reads("2026-11-01 08:00Z", eight);
  reads("2026-11-01T08:00:00.250Z", eight + 250);
  reads("2026-11-01T09:30:00+01:30", eight);
  reads("2026-10-31T23:00:00-09:00", eight);
  reads("2026-11-01", eight - 8 * 3600 * 1000);
  reads("2024-02-29", 1709164800000);
  reads("2h", eight - 2 * 3600 * 1000);
  reads("90s", eight - 90 * 1000);
  reads("7d", eight - INT64_C(7) * 24 * 3600 * 1000);
  reads("1500ms", eight - 1500);

  static const char *const none[] = {
    "",           "now",         "2026",        "90",          "2h ",        "-2h",
    "2 h",        "2w",          "2026-11-31",  "2026-13-01",  "2026-02-29", "2026-11-1",
    "2026-11-01T08:00:00", /* whose? */
    "2026-11-01T24:00:00Z", "2026-11-01T08:60Z", "2026-11-01T08:00:00ZZ", "2026-11-01T08:00+1",
    "2026-11-01Z", "1969-12-31", "9999999999d",  "999999999d"};
  for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
    refuses(none[i]);

  lasts("0", 0);
  lasts("30", 30000);
  lasts("30s", 30000);
  lasts("500ms", 500);
  lasts("5m", 300000);
  lasts("999999999d", INT64_C(999999999) * 24 * 3600 * 1000);
  int64_t ms;
  ok(!when_parse_duration("", &ms) && !when_parse_duration("5x", &ms)
                && !when_parse_duration("1.5s", &ms) && !when_parse_duration("9999999999", &ms),
         "other texts are refused as durations");

  writes(eight, "2026-11-01T08:00:00.000Z");
  writes(eight + 7, "2026-11-01T08:00:00.007Z");
  writes(-1, "1969-12-31T23:59:59.999Z");
  writes(INT64_MAX, "9223372036854775807 ms");
  writes(INT64_MIN, "-9223372036854775808 ms");
  return done_testing();
}
