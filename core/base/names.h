/* SPDX-License-Identifier: Apache-2.0 */
/* A map from names to pointers, in an arena.  Zeroed is empty.  One thread at a time. */
#ifndef DK_BASE_NAMES_H
#define DK_BASE_NAMES_H

#include <durakit/runtime.h>

#include "core/base/arena.h"
#include "core/base/bytes.h"

struct name_entry;

struct names {
  struct name_entry **buckets;
  size_t n_buckets, n_entries;
};

/* The place of this name's pointer, which is NULL at first; the name is not copied.  NULL: no
 * memory.
 */
void **names_at(struct names *names, struct dk_arena *arena, dk_str name);

/* The pointer; NULL if the map does not have the name. */
void *names_find(const struct names *names, dk_str name);

#endif
