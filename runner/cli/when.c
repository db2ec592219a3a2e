/* SPDX-License-Identifier: Apache-2.0 */
/* Times are read strictly: a time that leaves something to guess (no zone) is refused. */
#include "runner/cli/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/sat.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR };

static int64_t
read_clock(clockid_t clock)
{
  struct timespec now;

  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * SECOND + now.tv_nsec / 1000000;
}

int64_t
when_now(void)
{
  return read_clock(CLOCK_REALTIME);
}

int64_t
when_ticks(void)
{
  return read_clock(CLOCK_MONOTONIC);
}

int64_t
when_until(int64_t ms)
{
  return ms < 0 ? INT64_MAX : dk_sat_add(when_ticks(), ms);
}

void
when_format(int64_t ms, char ret_text[WHEN_SIZE])
{
  int64_t rest = (ms % SECOND + SECOND) % SECOND;
  time_t seconds = (time_t)((ms - rest) / SECOND);
  struct tm tm;

  if (!gmtime_r(&seconds, &tm) || tm.tm_year > 9999 - 1900 || tm.tm_year < -1900)
    snprintf(ret_text, WHEN_SIZE, "%" PRId64 " ms", ms); /* a store may return anything */
  else
    snprintf(ret_text, WHEN_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)rest);
}

/* ---- durations ------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  int64_t ms;
} units[] = {{"ms", 1}, {"s", SECOND}, {"m", MINUTE}, {"h", HOUR}, {"d", DAY}};

/* Reads at least and at most so many digits. */
static bool
take_digits(const char **at, int least, int most, int64_t *ret_number)
{
  int n = 0;

  *ret_number = 0;
  for (; n < most && **at >= '0' && **at <= '9'; n++, (*at)++)
    *ret_number = *ret_number * 10 + (**at - '0');
  return n >= least;
}

bool
when_parse_duration(const char *text, int64_t *ret_ms)
{
  int64_t number;

  if (!take_digits(&text, 1, 9, &number))
    return false;
  if (!*text) {
    *ret_ms = number * SECOND;
    return true;
  }
  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
    if (strcmp(units[i].name, text) == 0) {
      *ret_ms = number * units[i].ms;
      return true;
    }
  }
  return false;
}

/* ---- points in time -------------------------------------------------------------------------- */

static bool
when_take_letter(const char **at, char letter)
{
  if (**at != letter)
    return false;
  (*at)++;
  return true;
}

/* "2026-11-01"; a day that the month does not have is refused. */
static bool
take_date(const char **at, struct tm *tm)
{
  int64_t year, month, day;

  if (!take_digits(at, 4, 4, &year) || !when_take_letter(at, '-') ||
      !take_digits(at, 2, 2, &month) || !when_take_letter(at, '-') || !take_digits(at, 2, 2, &day))
    return false;
  *tm = (struct tm){.tm_year = (int)year - 1900, .tm_mon = (int)month - 1, .tm_mday = (int)day};
  struct tm normal = *tm;
  timegm(&normal);
  return normal.tm_mon == tm->tm_mon && normal.tm_mday == tm->tm_mday;
}

/* "08:00", "08:00:00", "08:00:00.123": the time of the day. */
static bool
take_clock(const char **at, int64_t *ret_ms)
{
  int64_t hours, minutes, seconds = 0, fraction = 0;

  if (!take_digits(at, 2, 2, &hours) || !when_take_letter(at, ':') ||
      !take_digits(at, 2, 2, &minutes))
    return false;
  if (when_take_letter(at, ':')) {
    if (!take_digits(at, 2, 2, &seconds))
      return false;
    if (when_take_letter(at, '.') && !take_digits(at, 3, 3, &fraction))
      return false;
  }
  *ret_ms = hours * HOUR + minutes * MINUTE + seconds * SECOND + fraction;
  return hours < 24 && minutes < 60 && seconds < 60;
}

/* "Z", "+01:00": what has to be subtracted to get UTC. */
static bool
take_zone(const char **at, int64_t *ret_ms)
{
  int64_t hours, minutes, sign = **at == '-' ? -1 : 1;

  *ret_ms = 0;
  if (when_take_letter(at, 'Z'))
    return true;
  if (!when_take_letter(at, '+') && !when_take_letter(at, '-'))
    return false;
  if (!take_digits(at, 2, 2, &hours) || !when_take_letter(at, ':') ||
      !take_digits(at, 2, 2, &minutes))
    return false;
  *ret_ms = sign * (hours * HOUR + minutes * MINUTE);
  return hours < 24 && minutes < 60;
}

bool
when_parse(const char *text, int64_t now_ms, int64_t *ret_ms)
{
  struct tm tm;
  int64_t clock = 0, zone = 0, ago;
  const char *at = text;

  if (take_date(&at, &tm)) {
    if (*at && ((!when_take_letter(&at, 'T') && !when_take_letter(&at, ' ')) ||
                !take_clock(&at, &clock) || !take_zone(&at, &zone)))
      return false;
    *ret_ms = (int64_t)timegm(&tm) * SECOND + clock - zone;
    return *at == '\0' && *ret_ms > 0;
  }
  if (strspn(text, "0123456789") == strlen(text) || !when_parse_duration(text, &ago))
    return false;
  *ret_ms = now_ms - ago;
  return *ret_ms > 0;
}
