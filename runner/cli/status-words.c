/* SPDX-License-Identifier: Apache-2.0 */
/* The words for statuses, in one table: see status-words.h. */
#include "runner/cli/status-words.h"

#include <stddef.h>

#include <durakit/manage.h>

/* An instance that continues as new is running: only the store makes a difference. */
static const struct status_filter filters[] = {
  {"not_started", 1u << DK_NOT_STARTED},
  {"running", 1u << DK_RUNNING | 1u << DK_CONTINUED_AS_NEW},
  {"completed", 1u << DK_COMPLETED},
  {"failed", 1u << DK_FAILED},
  {"cancelled", 1u << DK_CANCELLED},
};

const struct status_filter *
status_filter(size_t i)
{
  return i < sizeof(filters) / sizeof(filters[0]) ? &filters[i] : NULL;
}

const char *
status_word(int32_t status)
{
  for (size_t i = 0; status >= 0 && status < 32 && status_filter(i); i++) {
    if (filters[i].bits & (1u << status))
      return filters[i].word;
  }
  return "unknown";
}

const char *
status_words(int32_t status)
{
  return status == DK_NOT_STARTED ? "not started" : status_word(status);
}
