/* SPDX-License-Identifier: Apache-2.0 */
/* Fills in a struct dk_refusal: see refusal.h.  Text that is too long is cut off.  Owns nothing. */
#include "core/plugin/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int32_t
dk_refusal_begin(struct dk_refusal *refusal, int32_t number, const char *where, const char *what,
                 ...)
{
  va_list args;

  memset(refusal, 0, sizeof(*refusal));
  refusal->number = number;
  dk_refusal_say(refusal->where, "%s", where);
  va_start(args, what);
  vsnprintf(refusal->what, sizeof(refusal->what), what, args);
  va_end(args);
  return -1;
}

void
dk_refusal_say(char part[DK_REFUSAL_TEXT], const char *format, ...)
{
  va_list args;

  va_start(args, format);
  vsnprintf(part, DK_REFUSAL_TEXT, format, args);
  va_end(args);
}

void
dk_refusal_add(char part[DK_REFUSAL_TEXT], const char *format, ...)
{
  size_t used = strlen(part);
  va_list args;

  if (used > 0 && used + 2 < DK_REFUSAL_TEXT) {
    memcpy(part + used, ", ", 3);
    used += 2;
  }
  va_start(args, format);
  vsnprintf(part + used, DK_REFUSAL_TEXT - used, format, args);
  va_end(args);
}
