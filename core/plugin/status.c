/* SPDX-License-Identifier: Apache-2.0 */
/* Names and classes of the statuses.  Owns nothing. */
#include <stdio.h>

#include "core/plugin/status.h"

struct named {
  dk_status status;
  const char *name;
};

#define NAMED(status) {status, #status}

static const struct named names[] = {
  NAMED(DK_OK),         NAMED(DK_NOTHING),   NAMED(DK_CALL_CANCELLED),   NAMED(DK_BUSY),
  NAMED(DK_UNAVAILABLE), NAMED(DK_NO_MEMORY), NAMED(DK_INVALID),          NAMED(DK_LOCK_LOST),
  NAMED(DK_DUPLICATE),  NAMED(DK_NOT_FOUND), NAMED(DK_REFUSED),          NAMED(DK_CORRUPT),
  NAMED(DK_UNSUPPORTED), NAMED(DK_TOO_LARGE), NAMED(DK_INTERNAL),         NAMED(DK_OUTCOME_UNKNOWN),
};

const char *
dk_status_known_name(dk_status status)
{
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (names[i].status == status)
      return names[i].name;
  return NULL;
}

const char *
dk_status_name(dk_status status, char *buffer, size_t size)
{
  const char *name = dk_status_known_name(status);

  if (name)
    return name;
  snprintf(buffer, size, "status %d", (int)status);
  return buffer;
}

int32_t
dk_status_class(dk_status status)
{
  /* A number that is not a status is treated as a permanent error. */
  return status < 0 || status > 399 ? 2 : status / 100;
}
