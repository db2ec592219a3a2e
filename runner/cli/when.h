/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time and durations, as people type and read them.  Owns nothing. */
#ifndef DK_RUNNER_CLI_WHEN_H
#define DK_RUNNER_CLI_WHEN_H

#include <stdbool.h>
#include <stdint.h>

enum { WHEN_SIZE = 40 };

#define WHEN_EXPECTED "2026-11-01T08:00:00Z, 2026-11-01, or how long ago: 90s, 30m, 2h, 7d"
#define WHEN_DURATIONS "30 or 30s, 500ms, 5m, 2h, 7d"
#define WHEN_EXPECTED_DURATION "a duration: " WHEN_DURATIONS

/* "2026-11-01T08:00:00.000Z": UTC, with milliseconds. */
void when_format(int64_t ms, char ret_text[WHEN_SIZE]);
/* "90s", "500ms", "30m", "2h", "7d"; a number alone is seconds. */
bool when_parse_duration(const char *text, int64_t *ret_ms);
/* RFC 3339, a date alone, which is its first moment in UTC, or a duration before now, which needs
 * its unit. */
bool when_parse(const char *text, int64_t now_ms, int64_t *ret_ms);
int64_t when_now(void);
int64_t when_ticks(void); /* never goes back; for limits */
/* The tick when these milliseconds have passed; negative: never. */
int64_t when_until(int64_t ms);

#endif
