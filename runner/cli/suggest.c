/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance over short names.  Owns nothing. */
#include "runner/cli/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 80 };

static unsigned
least(unsigned a, unsigned b)
{
  return a < b ? a : b;
}

static int
same_letter(char a, char b)
{
  return tolower((unsigned char)a) == tolower((unsigned char)b);
}

unsigned
suggest_distance(const char *a, const char *b)
{
  size_t n = strlen(a);
  size_t m = strlen(b);
  unsigned rows[3][LONGEST + 1]; /* before the last, the last, this one */

  if (n > LONGEST || m > LONGEST)
    return LONGEST;
  for (unsigned j = 0; j <= m; j++)
    rows[1][j] = j;
  for (size_t i = 1; i <= n; i++) {
    rows[2][0] = (unsigned)i;
    for (size_t j = 1; j <= m; j++) {
      unsigned change = rows[1][j - 1] + (same_letter(a[i - 1], b[j - 1]) ? 0u : 1u);
      unsigned best = least(change, least(rows[1][j], rows[2][j - 1]) + 1);
      if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
        best = least(best, rows[0][j - 2] + 1);
      rows[2][j] = best;
    }
    memcpy(rows[0], rows[1], sizeof(rows[0]));
    memcpy(rows[1], rows[2], sizeof(rows[1]));
  }
  return rows[1][m];
}

void
suggest_try(struct suggest *suggest, const char *name)
{
  size_t length = strlen(suggest->word);

  if (length > LONGEST)
    return;
  const unsigned letters = suggest_distance(suggest->word, name);
  unsigned distance = letters;
  /* A third of the letters may be wrong; the beginning of a longer name is near, too. */
  unsigned bound = (unsigned)(length + 2) / 3;
  if (length >= 3 && strncasecmp(suggest->word, name, length) == 0)
    distance = least(distance, bound);
  bool nearer = distance < suggest->distance
                || (distance == suggest->distance && letters < suggest->letters);
  if (distance > bound || (suggest->best && !nearer))
    return;
  suggest->best = name;
  suggest->distance = distance;
  suggest->letters = letters;
}
