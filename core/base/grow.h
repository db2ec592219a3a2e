/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that grow one by one. */
#ifndef DK_BASE_GROW_H
#define DK_BASE_GROW_H

#include <stdlib.h>

/* The list of n elements, of this size each, with room for one more; NULL: no memory, and nothing
 * has changed. */
static inline void *
dk_grown(void *list, size_t n, size_t *room, size_t size)
{
  if (n < *room)
    return list;
  size_t wanted = *room ? *room * 2 : 16;
  void *bigger = reallocarray(list, wanted, size);

  if (bigger)
    *room = wanted;
  return bigger;
}

#endif
