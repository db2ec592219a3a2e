/* SPDX-License-Identifier: Apache-2.0 */
/* A change of the store as bytes: which of the step's numbers and texts are there, then those.
 * Owns nothing. */
#include <string.h>

#include "conformance/model/model.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

_Static_assert(sizeof(struct step) == sizeof ((struct step *)0)->numbers +
                                        sizeof ((struct step *)0)->texts,
               "numbers and texts are all of a step");

void
step_write(struct dk_text *record, const struct step *step)
{
  uint32_t present = 0;

  for (size_t i = 0; i < COUNT(step->numbers); i++)
    present |= (uint32_t)(step->numbers[i] != 0) << i;
  for (size_t i = 0; i < COUNT(step->texts); i++)
    present |= (uint32_t)(step->texts[i].ptr != NULL) << (COUNT(step->numbers) + i);
  dk_text_add(record, &present, sizeof present);
  for (size_t i = 0; i < COUNT(step->numbers); i++)
    if (step->numbers[i])
      dk_text_add(record, &step->numbers[i], sizeof step->numbers[i]);
  for (size_t i = 0; i < COUNT(step->texts); i++) {
    if (!step->texts[i].ptr)
      continue;
    uint64_t length = step->texts[i].len;
    dk_text_add(record, &length, sizeof length);
    dk_text_add(record, step->texts[i].ptr, step->texts[i].len);
  }
}

static bool
take(struct dk_bytes *rest, void *ret_value, size_t size)
{
  if (rest->len < size)
    return false;
  memcpy(ret_value, rest->ptr, size);
  *rest = (struct dk_bytes){rest->ptr + size, rest->len - size};
  return true;
}

bool
step_read(struct dk_bytes *rest, struct step *ret_step)
{
  uint32_t present;
  uint64_t length;

  memset(ret_step, 0, sizeof *ret_step);
  if (!take(rest, &present, sizeof present))
    return false;
  for (size_t i = 0; i < COUNT(ret_step->numbers); i++)
    if (present >> i & 1 && !take(rest, &ret_step->numbers[i], sizeof ret_step->numbers[i]))
      return false;
  for (size_t i = 0; i < COUNT(ret_step->texts); i++) {
    if (!(present >> (COUNT(ret_step->numbers) + i) & 1))
      continue;
    if (!take(rest, &length, sizeof length) || length > rest->len)
      return false;
    ret_step->texts[i] = (struct dk_bytes){rest->ptr, length};
    *rest = (struct dk_bytes){rest->ptr + length, rest->len - length};
  }
  return ret_step->kind >= 1 && ret_step->kind < STEP_KINDS;
}
