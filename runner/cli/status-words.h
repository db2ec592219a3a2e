/* SPDX-License-Identifier: Apache-2.0 */
/* The statuses of an instance in words: those that --status takes, and those that are shown. */
#ifndef DK_RUNNER_CLI_STATUS_WORDS_H
#define DK_RUNNER_CLI_STATUS_WORDS_H

#include <stddef.h>
#include <stdint.h>

/* "not_started", "running", ...; in words for people. */
const char *status_word(int32_t status);
const char *status_words(int32_t status);

/* What --status takes. */
#define STATUS_WORDS "not_started|running|completed|failed|cancelled"
#define STATUS_EXPECTED "not_started, running, completed, failed or cancelled"
struct status_filter {
  const char *word;
  uint32_t bits;
};
const struct status_filter *status_filter(size_t i); /* NULL after the last */

#endif
