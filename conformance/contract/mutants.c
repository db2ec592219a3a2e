/* SPDX-License-Identifier: Apache-2.0 */
/* The mutants: see mutants.h.  Owns nothing. */
#include "conformance/contract/mutants.h"

#include <string.h>

static const struct dk_mutant all_mutants[] = {
#define MUTANT(name, id, clause, check, text) [name] = {id, clause, check, text},
#include "conformance/contract/areas.def"
};

enum { LONGEST_ID = 63 };

const struct dk_mutant *
dk_mutants(size_t *ret_n)
{
  *ret_n = DK_MUTANTS;
  return all_mutants;
}

int32_t
dk_mutant_number(const char *id)
{
  for (int32_t i = 0; i < DK_MUTANTS; i++)
    if (strcmp(all_mutants[i].id, id) == 0)
      return i;
  return -1;
}

/* How many characters must be put in, left out or changed to make one of the other. */
static size_t
edits_between(const char *a, const char *b)
{
  size_t row[LONGEST_ID + 1], length = strnlen(b, LONGEST_ID);

  for (size_t j = 0; j <= length; j++)
    row[j] = j;
  for (size_t i = 0; i < LONGEST_ID && a[i]; i++) {
    size_t above_left = row[0];
    row[0] = i + 1;
    for (size_t j = 1; j <= length; j++) {
      size_t changed = above_left + (a[i] != b[j - 1]);
      size_t shorter = row[j - 1] < row[j] ? row[j - 1] : row[j];
      above_left = row[j];
      row[j] = changed <= shorter ? changed : shorter + 1;
    }
  }
  return row[length];
}

const char *
dk_mutant_nearest(const char *id)
{
  const char *nearest = all_mutants[0].id;

  for (size_t i = 1; i < DK_MUTANTS; i++)
    if (edits_between(id, all_mutants[i].id) < edits_between(id, nearest))
      nearest = all_mutants[i].id;
  return nearest;
}
